//! Regular expressions: do they compile, and is there room for all of them?

use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::expression::Named;
use crate::source::{Span, Tree};

impl<'d> Checker<'d> {
    /// A regular expression that compiles.
    pub(super) fn regex(&mut self, tree: &'d Tree) {
        if let Some(pattern) = tree.as_str() {
            self.regex_text(pattern, tree);
        }
    }

    /// The same of a text that has the places of what is written in `tree`.
    pub(super) fn regex_text(&mut self, pattern: &str, tree: &'d Tree) {
        if let Some((message, range)) = regex_fault(pattern, &mut self.regex_budget) {
            self.bad_regex(message, self.within(tree, &range));
        }
    }

    /// What is wrong with a regular expression that a filter is given.
    pub(super) fn pattern_fault(&mut self, pattern: &Named) -> Option<PatternFault> {
        let Named { name, range } = pattern;
        let (message, inner) = regex_fault(name, &mut self.regex_budget)?;
        // Where the text has escapes, its parts stand elsewhere.
        let range = match range.len() == name.len() {
            true => range.start + inner.start..range.start + inner.end,
            false => range.clone(),
        };
        Some(PatternFault { message, range })
    }

    pub(super) fn bad_regex(&mut self, message: String, at: Span) {
        self.report(
            Diagnostic::new(Code::BadRegex, at)
                .message(format!(
                    "the regular expression does not compile: {message}"
                ))
                .label(message)
                .help("the syntax is that of Rust's `regex`; `\\` before a sign makes it text"),
        );
    }
}

/// Why a regular expression inside an expression does not compile, and where.
pub(super) struct PatternFault {
    pub(super) message: String,
    pub(super) range: Range<usize>,
}

/// What is wrong with a regular expression, and where in it.
///
/// Compiling a large one takes long, so that all of them together have a budget.
fn regex_fault(pattern: &str, budget: &mut usize) -> Option<(String, Range<usize>)> {
    if pattern.len() > LONGEST_REGEX {
        return Some(("it is longer than 16 KiB".to_owned(), 0..pattern.len()));
    }
    match regex_syntax::Parser::new().parse(pattern) {
        Err(regex_syntax::Error::Parse(error)) => {
            let span = error.span();
            Some((error.kind().to_string(), span.start.offset..span.end.offset))
        }
        Err(regex_syntax::Error::Translate(error)) => {
            let span = error.span();
            Some((error.kind().to_string(), span.start.offset..span.end.offset))
        }
        Err(_) => Some(("it is not valid".to_owned(), 0..pattern.len())),
        // What parses can only be too large, and compiling it takes far longer than parsing.
        Ok(hir) if weight(&hir) <= LIGHT => None,
        Ok(hir) => {
            // One that cannot be compiled is given up as soon as that shows.
            let cost = weight(&hir).min(HEAVIEST_REGEX);
            let message = if cost > *budget {
                "it is too large, together with the ones before it"
            } else if regex::Regex::new(pattern).is_err() {
                "it is too large"
            } else {
                *budget -= cost;
                return None;
            };
            *budget = budget.saturating_sub(cost);
            Some((message.to_owned(), 0..pattern.len()))
        }
    }
}

/// What the regular expressions of a definition may weigh that are not light.
pub(super) const REGEX_BUDGET: usize = 50_000_000;
/// Nothing heavier is compiled to its end.
const HEAVIEST_REGEX: usize = 4_000_000;

/// Every two bytes of a pattern may stand for a class with hundreds of ranges.
const LONGEST_REGEX: usize = 16 * 1024;
/// So many states have less than half of the bytes that a compiled expression may have.
const LIGHT: usize = 50_000;

/// No fewer than the states that a regular expression compiles to.
fn weight(hir: &Hir) -> usize {
    // A range of characters is up to seven sequences of up to four ranges of bytes.
    const RANGE: usize = 28;
    let sum = |parts: &[Hir]| {
        let weights = parts.iter().map(weight);
        weights.fold(1, usize::saturating_add)
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => 1,
        HirKind::Class(Class::Unicode(class)) => class.ranges().len() * RANGE,
        HirKind::Class(Class::Bytes(_)) => 1,
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).saturating_add(1);
            let inner = weight(&repetition.sub).saturating_add(1);
            inner.saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => weight(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use super::*;

    #[test]
    fn a_regular_expression_that_is_light_compiles() {
        let weight_of = |pattern: &str| weight(&regex_syntax::parse(pattern).unwrap());
        for part in ["\\d", "\\w", "\\W", "\\pL", "(?i)\\pL", "[^é]", "[α-ω]"] {
            let times = LIGHT / (weight_of(&format!("({part})")) + 1) - 1;
            let pattern = format!("({part}){{{times}}}");
            assert!(weight_of(&pattern) <= LIGHT, "{pattern}");
            assert!(regex::Regex::new(&pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn a_regular_expression_that_is_too_large_is_refused() {
        let fault = |pattern: &str| regex_fault(pattern, &mut { REGEX_BUDGET });
        assert!(fault("((a{100}){100}){100}").is_some());
        assert!(fault(&"a".repeat(LONGEST_REGEX + 1)).is_some());
        assert_eq!(fault("^[\\w-]{1,64}$"), None);
    }

    #[test]
    fn regular_expressions_are_bounded_in_sum() {
        let mut budget = 3 * weight(&regex_syntax::parse("\\w{64}").unwrap());
        let faults = (0..5).map(|_| regex_fault("\\w{64}", &mut budget).is_some());
        assert_eq!(
            faults.collect::<Vec<_>>(),
            [false, false, false, true, true]
        );
    }
}
