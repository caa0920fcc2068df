//! Expressions of both dialects: what they read, which names they use, what is wrong with them.
//!
//! Nothing here evaluates anything. Every function accepts any text, however broken or deep, and
//! reports byte ranges of the text it was given.

mod braced;
mod jinja;
mod js;
mod kinds;
mod pieces;
mod raw;
#[cfg(test)]
mod tests;
pub mod vocabulary;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use braced::{braced, braced_pattern, is_variable_name, rebrace, unbrace, unbrace_pattern};
pub use jinja::syntax;
pub use js::{FilterCall, Pipeline, pipeline, transform};
pub use kinds::{Kinds, kinds};
pub use pieces::{Piece, Tag, pieces};
pub use raw::{unraw, unraw_expression};

/// How the text between `{{` and `}}` is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Jinja, as minijinja reads it.
    #[default]
    Jinja,
    /// JavaScript.
    Js,
}

/// What a string value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text without interpolations.
    Literal,
    /// Exactly one `{{ … }}`, whose value keeps its type. The range is that of the expression.
    Sole(Range<usize>),
    /// Text with interpolations or statements, which yields a string.
    Text,
}

/// Tells a literal, a sole interpolation and text apart.
///
/// ```
/// use flow_model::expression::{form, Dialect, Form};
/// assert_eq!(form("{{ a }}", Dialect::Jinja), Form::Sole(3..4));
/// assert_eq!(form("{{ a }}{{ b }}", Dialect::Jinja), Form::Text);
/// assert_eq!(form("${#PATH}", Dialect::Jinja), Form::Literal);
/// ```
pub fn form(text: &str, dialect: Dialect) -> Form {
    let mut words = false;
    let mut sole = None;
    for piece in pieces(text, dialect) {
        match piece {
            Piece::Text(range) => words |= !text[range].trim().is_empty(),
            Piece::Interpolation(tag) if sole.is_none() => sole = Some(tag),
            Piece::Interpolation(_) | Piece::Statement(_) | Piece::Raw { .. } => return Form::Text,
        }
    }
    match sole {
        None => Form::Literal,
        Some(tag) if tag.closed && !words => Form::Sole(tag.inner),
        Some(_) => Form::Text,
    }
}

/// What an expression or a template uses, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Values that come from outside, in the order they are written.
    pub reads: Vec<Read>,
    /// Everything that is wrong.
    pub faults: Vec<Fault>,
    /// Functions called by their bare name.
    pub calls: Vec<Named>,
    /// Filters, in the order they are applied.
    pub filters: Vec<Named>,
    /// The interpolations of a template; none for a bare expression.
    pub interpolations: Vec<Interpolation>,
    /// Regular expressions that are written out as the argument of a filter.
    pub patterns: Vec<Named>,
    /// In JavaScript, names after the last `|`: filters that do not exist, unless they are
    /// variables.
    pub piped: Vec<Named>,
}

/// A value that an expression takes from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The keys known from the text, root first: `state.user['name']` is `state`, `user`, `name`.
    pub path: Vec<String>,
    /// The path goes on with a key only known at run time.
    pub dynamic: bool,
    /// The expression handles an undefined value here.
    pub optional: bool,
    /// The value is compared, measured or changed, and not just passed on or asked for.
    pub examined: bool,
    /// Where the path is written.
    pub range: Range<usize>,
}

/// A name and where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// Where it is written.
    pub range: Range<usize>,
}

impl Named {
    /// A text that is written as a literal in `range`: where it stands as it is, else the literal.
    fn within(name: &str, text: &str, range: Range<usize>) -> Self {
        let at = text.get(range.clone()).and_then(|text| text.find(name));
        Named {
            name: name.to_owned(),
            range: match at {
                Some(at) => range.start + at..range.start + at + name.len(),
                None => range,
            },
        }
    }
}

/// One `{{ … }}` of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpolation {
    /// With its braces.
    pub range: Range<usize>,
    /// The filters applied to the whole of it, innermost first.
    pub filters: Vec<String>,
}

/// Something wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// One sentence.
    pub message: String,
    /// The text it is about.
    pub range: Range<usize>,
    /// The way out, when there is one to name.
    pub help: Option<String>,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The text does not parse.
    Syntax,
    /// No filter has this name.
    UnknownFilter(Unknown),
    /// No function has this name.
    UnknownFunction(Unknown),
    /// No test has this name.
    UnknownTest(Unknown),
}

/// A name nobody defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The name as written.
    pub name: String,
    /// The known name it resembles most.
    pub suggestion: Option<String>,
}

/// How a computed field's transform is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An expression; an object literal needs parentheses around it.
    Expression,
    /// The body of a function, with `return`.
    Body,
}

/// A computed field's transform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transform {
    /// What it uses and what is wrong with it.
    pub analysis: Analysis,
    /// How it is to be run.
    pub shape: Shape,
}

/// Analyses a bare expression.
///
/// ```
/// use flow_model::expression::{expression, Dialect};
/// let analysis = expression("state.count > 3", Dialect::Jinja);
/// assert_eq!(analysis.reads[0].path, ["state", "count"]);
/// ```
pub fn expression(text: &str, dialect: Dialect) -> Analysis {
    match dialect {
        Dialect::Jinja => jinja::expression(text),
        Dialect::Js => js::expression(text),
    }
}

/// Analyses text with interpolations.
///
/// ```
/// use flow_model::expression::{template, Dialect, FaultKind};
/// let analysis = template("{{ files | lenght }} files", Dialect::Jinja);
/// assert_eq!(analysis.faults[0].help.as_deref(), Some("did you mean `length`?"));
/// ```
pub fn template(text: &str, dialect: Dialect) -> Analysis {
    match dialect {
        Dialect::Jinja => jinja::template(text),
        Dialect::Js => js::template(text),
    }
}

impl Analysis {
    /// An analysis that found nothing but one fault.
    fn fault(fault: Fault) -> Self {
        Analysis {
            faults: vec![fault],
            ..Analysis::default()
        }
    }

    /// Takes over what `other` found in the text that starts at `base`.
    fn absorb(&mut self, other: Analysis, base: usize) {
        let at = |range: Range<usize>| range.start + base..range.end + base;
        let named = |named: Named| Named {
            range: at(named.range),
            ..named
        };
        self.reads.extend(other.reads.into_iter().map(|read| Read {
            range: at(read.range.clone()),
            ..read
        }));
        self.faults
            .extend(other.faults.into_iter().map(|fault| Fault {
                range: at(fault.range.clone()),
                ..fault
            }));
        self.calls.extend(other.calls.into_iter().map(named));
        self.filters.extend(other.filters.into_iter().map(named));
        self.patterns.extend(other.patterns.into_iter().map(named));
        self.piped.extend(other.piped.into_iter().map(named));
    }

    /// The same findings in a text of `length` bytes that starts `by` bytes later.
    fn shifted_back(mut self, by: usize, length: usize) -> Self {
        let ranges = (self.reads.iter_mut().map(|read| &mut read.range))
            .chain(self.faults.iter_mut().map(|fault| &mut fault.range))
            .chain(self.calls.iter_mut().map(|call| &mut call.range))
            .chain(self.filters.iter_mut().map(|filter| &mut filter.range))
            .chain(self.patterns.iter_mut().map(|pattern| &mut pattern.range))
            .chain(self.piped.iter_mut().map(|name| &mut name.range));
        for range in ranges {
            let back = |offset: usize| offset.saturating_sub(by).min(length);
            *range = back(range.start)..back(range.end);
        }
        self
    }

    fn unknown_filter(&mut self, name: &str, range: Range<usize>) {
        let unknown = Unknown::among(name, vocabulary::FILTERS);
        let help = unknown.help();
        self.faults.push(Fault {
            message: format!("there is no filter `{name}`"),
            kind: FaultKind::UnknownFilter(unknown),
            range,
            help,
        });
    }

    fn unknown_test(&mut self, name: &str, range: Range<usize>) {
        let unknown = Unknown::among(name, vocabulary::TESTS);
        let help = unknown.help();
        self.faults.push(Fault {
            message: format!("there is no test `{name}`"),
            kind: FaultKind::UnknownTest(unknown),
            range,
            help,
        });
    }

    fn unknown_function(&mut self, name: &str, range: Range<usize>, known: &[&'static str]) {
        let unknown = Unknown::among(name, known);
        let help = if vocabulary::FILTERS.contains(&name) {
            Some(format!("`{name}` is a filter: write `value | {name}`"))
        } else {
            unknown.help()
        };
        self.faults.push(Fault {
            message: format!("there is no function `{name}`"),
            kind: FaultKind::UnknownFunction(unknown),
            range,
            help,
        });
    }
}

impl Fault {
    fn syntax(message: impl Into<String>, range: Range<usize>) -> Self {
        Fault {
            kind: FaultKind::Syntax,
            message: message.into(),
            range,
            help: None,
        }
    }

    fn with_help(self, help: impl Into<String>) -> Self {
        Fault {
            help: Some(help.into()),
            ..self
        }
    }
}

impl Unknown {
    fn among(name: &str, known: &[&'static str]) -> Self {
        let suggestion = crate::suggest::nearest(name, known.iter().copied()).map(str::to_owned);
        Unknown {
            name: name.to_owned(),
            suggestion,
        }
    }

    fn help(&self) -> Option<String> {
        self.suggestion
            .as_ref()
            .map(|name| format!("did you mean `{name}`?"))
    }
}
