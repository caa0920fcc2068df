//! Values of keys: their types, their limits, their words.

use super::Pass;
use super::record::Seen;
use super::words::{describe, quoted, shape};
use crate::diagnostic::{Code, Diagnostic};
use crate::grammar::{self, MAX_STEPS, Pattern, Type, habit};
use crate::source::{Entry, Span, Tree, Value};

impl Pass<'_> {
    pub(super) fn value(&mut self, tree: &Tree, ty: &'static Type, what: &str, at: Span) {
        let said = || format!("`{what}`");
        match ty {
            Type::Any | Type::Literal => self.duplicates_below(tree),
            Type::Null if tree.value == Value::Null => {}
            Type::Bool if matches!(tree.value, Value::Bool(_)) => {}
            Type::True if tree.value == Value::Bool(true) => {}
            Type::True if tree.value == Value::Bool(false) => {
                self.lose(tree.span);
                self.report(
                    Diagnostic::new(Code::WrongType, self.source.first_line(tree.span))
                        .message(format!("{} takes only `true`", said()))
                        .label("this is `false`")
                        .help("write `true`, or leave it out"),
                );
            }
            Type::Template | Type::Condition | Type::Regex if tree.as_str().is_some() => {}
            Type::Condition if matches!(tree.value, Value::Bool(_)) => {}
            Type::Text(pattern, max) if let Some(text) = tree.as_str() => {
                self.text(text, *pattern, *max, tree.span, &said());
            }
            Type::Word(words) if let Some(text) = tree.as_str() => {
                if !words.contains(&text) {
                    self.not_a_word(text, words, tree.span, &said());
                }
            }
            Type::Int(min, max) if let Some(number) = whole(tree) => {
                self.bounds(number, *min as f64, *max as f64, tree.span, &said(), "");
            }
            Type::Number(min, max) if let Some(number) = number(tree) => {
                self.bounds(number, *min, *max, tree.span, &said(), "");
            }
            Type::Duration(..) if duration(tree).is_none() && tree.as_str().is_some() => {
                self.lose(tree.span);
                self.report(
                    Diagnostic::new(Code::WrongType, self.source.first_line(tree.span))
                        .message(format!(
                            "{} cannot be `{}`",
                            said(),
                            tree.as_str().unwrap_or_default()
                        ))
                        .label("not a duration")
                        .help("give seconds, or text such as `500ms`, `30s`, `5m`, `1h`"),
                );
            }
            Type::Duration(min, max) if let Some(seconds) = duration(tree) => {
                self.bounds(seconds, *min, *max, tree.span, &said(), " s");
            }
            Type::Millis(min, max) if let Some(millis) = number(tree) => {
                self.bounds(millis, *min, *max, tree.span, &said(), " ms");
            }
            Type::List(of, max) if let Some(items) = tree.items() => {
                let is_body = matches!(of, Type::Step);
                if items.len() > *max && is_body {
                    // Steps are counted one by one, wherever they stand.
                    self.out.oversized = true;
                } else if items.len() > *max {
                    self.too_many(items.len(), *max, self.source.first_line(at), &said());
                }
                if is_body && self.lists == 0 {
                    // Ids are those of a graph: a workflow's own steps, or those of a task.
                    self.ids.clear();
                }
                self.lists += usize::from(is_body);
                for item in items {
                    self.value(item, of, what, self.head(item));
                }
                self.lists -= usize::from(is_body);
            }
            Type::Map(pattern, of, max) if let Some(entries) = tree.entries() => {
                if entries.len() > *max {
                    self.too_many(entries.len(), *max, self.source.first_line(at), &said());
                }
                self.map(entries, *pattern, of, what);
            }
            Type::Record(record) if let Some(entries) = tree.entries() => {
                self.record(entries, record, at);
            }
            Type::Step if let Some(entries) = tree.entries() => self.step(entries, at, false),
            Type::ActionStep if let Some(entries) = tree.entries() => self.step(entries, at, true),
            Type::Either(_) if std::ptr::eq(ty, &grammar::INPUT) && is_bare_default(tree) => {
                self.bare_default(tree, &said());
            }
            Type::Either(types) => match choose(types, tree) {
                Some(ty) => self.value(tree, ty, what, at),
                None => self.misshapen(tree, &said(), &describe(ty), shape(ty)),
            },
            Type::Null
            | Type::Bool
            | Type::True
            | Type::Template
            | Type::Condition
            | Type::Regex
            | Type::Text(..)
            | Type::Word(_)
            | Type::Int(..)
            | Type::Number(..)
            | Type::Duration(..)
            | Type::Millis(..)
            | Type::List(..)
            | Type::Map(..)
            | Type::Record(_)
            | Type::Step
            | Type::ActionStep => self.misshapen(tree, &said(), &describe(ty), shape(ty)),
        }
    }

    /// Where a list item starts: its first key or its first line.
    pub(super) fn head(&self, item: &Tree) -> Span {
        match item.entries() {
            Some([first, ..]) => first.key.span,
            _ => self.source.first_line(item.span),
        }
    }

    pub(super) fn map(
        &mut self,
        entries: &[Entry],
        pattern: Pattern,
        of: &'static Type,
        what: &str,
    ) {
        let mut seen = Seen::default();
        for entry in entries {
            let name = entry.key.value.as_str();
            if let Some(first) = seen.before(entry) {
                self.duplicate(&entry.key, first);
                continue;
            }
            let before = self.errors;
            let max = if pattern == Pattern::Free { 500 } else { 64 };
            self.text(
                name,
                pattern,
                max,
                entry.key.span,
                &format!("a name under `{what}`"),
            );
            self.value(&entry.value, of, name, entry.key.span);
            if self.errors > before {
                self.out.lost.name(name);
            }
        }
    }

    pub(super) fn text(
        &mut self,
        text: &str,
        pattern: Pattern,
        max: usize,
        span: Span,
        what: &str,
    ) {
        let length = text.chars().count();
        if length > max {
            self.report(
                Diagnostic::new(Code::OutOfLimits, self.source.first_line(span))
                    .message(format!(
                        "{what} has {length} characters; at most {max} are allowed"
                    ))
                    .help("shorten it"),
            );
        } else if !pattern.accepts(text) {
            let code = match pattern {
                Pattern::Agent | Pattern::AgentKey => Code::BadAgent,
                _ => Code::BadName,
            };
            self.report(
                Diagnostic::new(code, self.source.first_line(span))
                    .message(format!("{what} cannot be `{text}`"))
                    .help(format!("use {}", pattern.words())),
            );
        }
    }

    pub(super) fn not_a_word(
        &mut self,
        text: &str,
        words: &[&'static str],
        span: Span,
        what: &str,
    ) {
        let list = quoted(words.iter().copied());
        let finding = Diagnostic::new(Code::NotAWord, self.source.first_line(span))
            .message(format!("{what} cannot be `{text}`: it is one of {list}"))
            .label("not one of the words");
        let jump = text.trim().strip_prefix("goto").map(str::trim);
        let finding = match habit::ty(text).filter(|meant| words.contains(meant)) {
            Some(meant) => finding.instead(meant),
            // A jump is the one way of handling a failure that is no word.
            None if let Some(step) = jump.filter(|_| words.contains(&"continue")) => {
                let step = match step.trim_start_matches(':').trim() {
                    "" => "ID",
                    step => step,
                };
                finding.help(format!("a jump is written as a map: `{{goto: {step}}}`"))
            }
            // An outcome has one word; what compares is a map.
            None if words.contains(&"pattern_match") && text.contains(['=', '<', '>', ' ', '{']) => {
                finding.help(
                    "what compares is a map: `{expression: \"{{ result.exit_code == 0 }}\"}`, or for \
                     one field `{field_equals: {exit_code: 0}}`",
                )
            }
            None => finding.suggest(text, words.iter().copied()),
        };
        self.report(finding);
    }

    /// A value in the place of an input's type. It is not taken as the default: nobody could tell
    /// a default such as `date` from a type that does not exist.
    pub(super) fn bare_default(&mut self, tree: &Tree, what: &str) {
        let (ty, written) = match &tree.value {
            Value::Str(scalar) => ("string", scalar.text.to_string()),
            Value::Bool(value) => ("boolean", value.to_string()),
            Value::Int(value) => ("integer", value.to_string()),
            Value::Float(value) => ("number", plain(*value)),
            Value::List(_) => ("array", "[…]".to_owned()),
            Value::Null | Value::Map(_) => ("string", "…".to_owned()),
        };
        self.lose(tree.span);
        let at = self.source.first_line(tree.span);
        let name = what.trim_matches('`');
        let finding = Diagnostic::new(Code::NotAWord, at)
            .message(format!("{what} is declared by `{written}`, which is no type"))
            .label("not a type")
            .help(format!(
                "write `{name}: {{type: {ty}, default: {written}}}` where it is meant as the default; \
                 the types are {}",
                quoted(grammar::TYPE_WORDS.iter().copied())
            ));
        let finding = match tree.as_str() {
            Some(text) => match habit::ty(text) {
                Some(meant) => finding.instead(meant),
                None => finding.suggest(text, grammar::TYPE_WORDS.iter().copied()),
            },
            None => finding,
        };
        self.report(finding);
    }

    pub(super) fn bounds(
        &mut self,
        value: f64,
        min: f64,
        max: f64,
        span: Span,
        what: &str,
        unit: &str,
    ) {
        if value.is_nan() || value < min || value > max {
            let bounded = max.is_finite() && (max < i64::MAX as f64 || value > max);
            let max = plain(max);
            let value = plain(value);
            let range = match (min.is_finite(), bounded) {
                (true, true) => format!("between {min} and {max}{unit}"),
                (true, false) => format!("at least {min}{unit}"),
                (false, true) => format!("at most {max}{unit}"),
                (false, false) => "a number".to_owned(),
            };
            self.report(
                Diagnostic::new(Code::OutOfLimits, span)
                    .message(format!("{what} is {value}{unit}; it must be {range}"))
                    .label(range),
            );
        }
    }

    pub(super) fn too_many(&mut self, count: usize, max: usize, span: Span, what: &str) {
        self.out.oversized |= count > max.max(MAX_STEPS);
        self.report(Diagnostic::new(Code::OutOfLimits, span).message(format!(
            "{what} has {count} entries; at most {max} are allowed"
        )));
    }

    pub(super) fn duplicates_below(&mut self, tree: &Tree) {
        match &tree.value {
            Value::List(items) => {
                for item in items {
                    self.duplicates_below(item);
                }
            }
            Value::Map(entries) => {
                let mut seen = Seen::default();
                for entry in entries {
                    if let Some(first) = seen.before(entry) {
                        self.duplicate(&entry.key, first);
                    }
                    self.duplicates_below(&entry.value);
                }
            }
            Value::Float(number) if !number.is_finite() => self.report(
                Diagnostic::new(Code::OutOfLimits, tree.span)
                    .message(format!("{number} is not a number that JSON has"))
                    .help("write it as text, or use a finite number"),
            ),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }
}

/// Whether an input is declared by a value that is neither a type nor a map.
fn is_bare_default(tree: &Tree) -> bool {
    match &tree.value {
        Value::Str(scalar) => grammar::type_word(&scalar.text).is_none(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) => true,
        Value::Null | Value::Map(_) => false,
    }
}

/// The alternative whose kind fits.
fn choose(types: &'static [&'static Type], tree: &Tree) -> Option<&'static Type> {
    types.iter().copied().find(|ty| fits(ty, tree))
}

pub(super) fn fits(ty: &'static Type, tree: &Tree) -> bool {
    match ty {
        Type::Any | Type::Literal => true,
        Type::Null => tree.value == Value::Null,
        Type::Bool | Type::True => matches!(tree.value, Value::Bool(_)),
        Type::Condition => matches!(tree.value, Value::Str(_) | Value::Bool(_)),
        Type::Template | Type::Regex | Type::Text(..) | Type::Word(_) => tree.as_str().is_some(),
        Type::Int(..) | Type::Number(..) | Type::Millis(..) => number(tree).is_some(),
        Type::Duration(..) => duration(tree).is_some(),
        Type::List(..) => tree.items().is_some(),
        Type::Map(..) | Type::Record(_) => tree.entries().is_some(),
        Type::Step => tree.entries().is_some(),
        Type::ActionStep => tree.get("type").is_some(),
        Type::Either(types) => types.iter().any(|ty| fits(ty, tree)),
    }
}

/// A number without a fraction; one beyond all integers is still whole, and out of limits.
fn whole(tree: &Tree) -> Option<f64> {
    number(tree).filter(|value| value.fract() == 0.0)
}

/// A number as people write it: short, however large it is.
fn plain(value: f64) -> String {
    if value.is_finite() && value.abs() >= 1e15 {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

pub(crate) fn number(tree: &Tree) -> Option<f64> {
    match tree.value {
        Value::Int(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}

/// Seconds of a number or of a text such as `30s`.
pub(crate) fn duration(tree: &Tree) -> Option<f64> {
    number(tree).or_else(|| tree.as_str().and_then(grammar::seconds))
}
