//! What is wrong with a definition, where, and what to do about it.

mod render;
mod table;
mod visible;

use std::borrow::Cow;

use crate::source::{FileId, Position, Source, Span};

pub use render::{Style, github, json, text};
pub use table::{Code, Family};
pub use visible::visible;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The definition can run, but probably not as meant.
    Warning,
    /// The definition cannot run.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Which rule.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// What is wrong, naming the thing.
    pub message: String,
    /// Where.
    pub span: Span,
    /// A few words for the place itself.
    pub label: String,
    /// What to do.
    pub help: Option<String>,
    /// What to write instead of the text at `span`.
    pub suggestion: Option<String>,
    /// Other places that belong to it.
    pub related: Vec<(Span, String)>,
    /// Keys and indices that lead to the place: `states.build.transitions[0]`.
    pub path: String,
}

impl Diagnostic {
    /// Two names that become the same identifier in generated Rust. The second one is pointed at,
    /// on the line it was written on when that is known.
    #[must_use]
    pub fn name_clash(clash: &NameClash<'_>, sources: &Sources) -> Self {
        let &NameClash {
            noun,
            first,
            second,
            identifier,
            line,
        } = clash;
        let span = sources.find(second, line);
        let mut finding = Diagnostic::new(Code::NameClash, span)
            .message(match first {
                Some(first) => {
                    format!("the {noun}s `{first}` and `{second}` are both `{identifier}` in Rust")
                }
                None => {
                    format!("the {noun} `{second}` would be `{identifier}` in Rust, which is taken")
                }
            })
            .label(format!("also `{identifier}`"))
            .help("give it another name");
        finding.complete();
        finding
    }

    pub(crate) fn new(code: Code, span: Span) -> Self {
        Diagnostic {
            code,
            severity: code.severity(),
            message: code.title().to_owned(),
            span,
            label: String::new(),
            help: None,
            suggestion: None,
            related: Vec::new(),
            path: String::new(),
        }
    }

    pub(crate) fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Offers a name instead.
    pub(crate) fn instead(mut self, name: &str) -> Self {
        self.help = Some(format!("did you mean `{name}`?"));
        self.suggestion = Some(name.to_owned());
        self
    }

    /// Offers a near miss, if there is one.
    pub(crate) fn suggest<'a>(
        self,
        wrong: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match crate::suggest::nearest(wrong, candidates) {
            Some(near) => self.instead(near),
            None => self,
        }
    }

    /// Says what the rule says where the finding itself says nothing, and shows what is hidden in
    /// the names it quotes.
    pub(crate) fn complete(&mut self) {
        if self.label.is_empty() {
            self.label = self.code.label().to_owned();
        }
        if self.help.is_none() {
            self.help = Some(self.code.way_out().to_owned());
        }
        let related = self.related.iter_mut().map(|(_, label)| label);
        let own = [&mut self.message, &mut self.label];
        for said in own.into_iter().chain(&mut self.help).chain(related) {
            if let Cow::Owned(shown) = visible(said) {
                *said = shown;
            }
        }
    }

    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}

/// Two names that are one identifier in generated Rust.
#[derive(Clone, Copy, Debug)]
pub struct NameClash<'a> {
    /// What is named: `state`, `input`, `tool`.
    pub noun: &'a str,
    /// The name that came first; `None` when the identifier belongs to the generated code.
    pub first: Option<&'a str>,
    /// The name that came second.
    pub second: &'a str,
    /// The identifier.
    pub identifier: &'a str,
    /// The line of the second name, if it is known.
    pub line: Option<u32>,
}

/// The sources of a definition: itself first, then what it imports.
#[derive(Clone, Debug, Default)]
pub struct Sources(pub(crate) Vec<Source>);

impl Sources {
    /// The source a span stands in.
    #[must_use]
    pub fn of(&self, span: Span) -> Option<&Source> {
        self.0.get(usize::from(span.file.0))
    }

    /// All of them, the definition first.
    #[must_use]
    pub fn all(&self) -> &[Source] {
        &self.0
    }

    /// Where a name is written, on a line or anywhere; the start of the line, or of the
    /// definition, when it is not found.
    fn find(&self, name: &str, line: Option<u32>) -> Span {
        let mut fallback = Span::default();
        for (at, source) in self.0.iter().enumerate() {
            let file = FileId(u16::try_from(at).unwrap_or(u16::MAX));
            let mut start = 0;
            for (number, text) in (1u32..).zip(source.text().split_inclusive('\n')) {
                let here = line.is_none_or(|line| line == number);
                if here && let Some(found) = whole_word(text, name) {
                    return Span::new(file, start + found..start + found + name.len());
                }
                if here && line.is_some() && at == 0 {
                    fallback = Span::new(file, start..start + text.trim_end().len());
                }
                start += text.len();
            }
        }
        fallback
    }

    /// The first and the last position of a span.
    #[must_use]
    pub fn positions(&self, span: Span) -> (Position, Position) {
        match self.of(span) {
            Some(source) => (
                source.position(span.start as usize),
                source.position(span.end as usize),
            ),
            None => {
                let start = Position { line: 1, column: 1 };
                (start, start)
            }
        }
    }
}

/// Where a name stands in a text, not as part of a longer one.
fn whole_word(text: &str, name: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name)
        .find(|(at, _)| !text[..*at].ends_with(part) && !text[at + name.len()..].starts_with(part))
        .map(|(at, _)| at)
}
