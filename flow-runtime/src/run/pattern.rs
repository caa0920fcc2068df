//! Regular expressions of a definition, each compiled once, when it is first needed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use flow_model::graph::{Condition, Edge, Guard, Literal, Template};
use regex::{Regex, RegexBuilder};

use super::event::{Failure, FailureKind};
use crate::value::Value;

/// Fields of a result that patterns are looked for in, the freshest first.
const SEARCHED: [&str; 4] = ["match_text", "screen_content", "output", "stdout"];

/// Compiled patterns that are kept. Those with values in them may be any number.
const MOST: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Patterns(RwLock<HashMap<String, Result<Regex, String>>>);

/// Where the patterns of a state's transitions are looked for.
#[derive(Clone, Copy)]
pub(super) struct Sought<'v> {
    result: &'v Value,
    /// What patterns that are to be found are looked for in: the first text of the result that
    /// has any of them. What an await has just found thus decides before what is still on the
    /// screen.
    text: Option<&'v str>,
    /// Whether the condition is one that must not hold. What must not be found is looked for
    /// everywhere.
    negated: bool,
}

impl Sought<'_> {
    /// The same for what must not hold.
    pub(super) fn negated(self) -> Self {
        Sought {
            negated: !self.negated,
            ..self
        }
    }
}

impl Patterns {
    /// Where the patterns of transitions are looked for in a result. `written` gives the text of a
    /// pattern; one without is a failure of the transition that needs it, when it is reached.
    pub(super) fn sought<'v>(
        &self,
        edges: &[Edge],
        result: &'v Value,
        mut written: impl FnMut(&Template) -> Option<String>,
    ) -> Result<Sought<'v>, Failure> {
        let mut wanted = Vec::new();
        for edge in edges {
            if let Guard::When(condition) = &edge.guard {
                collect(condition, false, &mut wanted);
            }
        }
        let mut sought = Sought {
            result,
            text: None,
            negated: false,
        };
        if wanted.is_empty() {
            return Ok(sought);
        }
        let wanted: Vec<Cow<'_, str>> = wanted
            .into_iter()
            .filter_map(|pattern| match constant(pattern) {
                Some(text) => Some(Cow::Borrowed(text)),
                None => written(pattern).map(Cow::Owned),
            })
            .collect();
        for text in texts(result) {
            for pattern in &wanted {
                if self.is_in(pattern, text)? {
                    sought.text = Some(text);
                    return Ok(sought);
                }
            }
        }
        Ok(sought)
    }

    /// Whether a pattern is found (`true`), or is not.
    pub(super) fn holds(
        &self,
        pattern: &str,
        found: bool,
        sought: Sought<'_>,
    ) -> Result<bool, Failure> {
        let is_found = if found != sought.negated {
            match sought.text {
                Some(text) => self.is_in(pattern, text)?,
                None => false,
            }
        } else {
            let mut anywhere = false;
            for text in texts(sought.result) {
                anywhere |= self.is_in(pattern, text)?;
            }
            anywhere
        };
        Ok(is_found == found)
    }

    fn is_in(&self, pattern: &str, text: &str) -> Result<bool, Failure> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(pattern) {
            return search(compiled, text);
        }
        drop(known);
        // As awaits look: `^` and `$` stand at every line.
        let compiled = RegexBuilder::new(pattern)
            .multi_line(true)
            .crlf(true)
            .build();
        let compiled = compiled.map_err(|error| error.to_string());
        let answer = search(&compiled, text);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(pattern.to_owned(), compiled);
        answer
    }
}

fn texts(result: &Value) -> impl Iterator<Item = &str> {
    let fields = SEARCHED.iter();
    fields.filter_map(|field| result.get(field).and_then(Value::as_str))
}

/// The patterns that a condition wants found, wherever they stand in it.
fn collect<'c>(condition: &'c Condition, negated: bool, wanted: &mut Vec<&'c Template>) {
    match condition {
        Condition::PatternMatch(pattern) if !negated => wanted.push(pattern),
        Condition::PatternNotMatch(pattern) if negated => wanted.push(pattern),
        Condition::All(inner) | Condition::Any(inner) => {
            inner.iter().for_each(|one| collect(one, negated, wanted));
        }
        Condition::None(inner) => inner.iter().for_each(|one| collect(one, !negated, wanted)),
        Condition::PatternMatch(_)
        | Condition::PatternNotMatch(_)
        | Condition::Always
        | Condition::Success(_)
        | Condition::TimedOut(_)
        | Condition::FieldEquals(..)
        | Condition::FieldContains(..)
        | Condition::Expression(_) => {}
    }
}

/// The patterns that transitions alone depend on.
pub(super) fn decisive(edges: &[Edge]) -> impl Iterator<Item = &str> {
    edges.iter().filter_map(|edge| match &edge.guard {
        Guard::When(Condition::PatternMatch(pattern)) => constant(pattern),
        _ => None,
    })
}

/// The text of a pattern without values.
pub(super) fn constant(pattern: &Template) -> Option<&str> {
    match pattern {
        Template::Literal(Literal::Str(text)) => Some(text),
        _ => None,
    }
}

fn search(pattern: &Result<Regex, String>, text: &str) -> Result<bool, Failure> {
    let pattern = pattern.as_ref().map_err(|error| {
        let message = format!("the pattern does not compile: {error}");
        Failure::new(FailureKind::Expression, message)
    })?;
    Ok(pattern.is_match(text))
}
