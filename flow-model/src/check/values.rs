//! Literals against declarations, and rules against types.

use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Field, Validation};
use crate::expression::{self, Dialect, Form as TextForm, Named};
use crate::graph::{self, Type};
use crate::lower;
use crate::source::{Span, Tree, Value};
use crate::structure::number;
use crate::suggest;

impl<'d> Checker<'d> {
    /// Typed fields: their defaults and rules.
    pub(super) fn fields(&mut self, fields: &'d [Field<'d>]) {
        for field in fields {
            self.validation(&field.validation, field.ty);
            if let Some(default) = field.default
                && let Some((reason, at)) = misfit(default, field)
            {
                self.report(
                    Diagnostic::new(Code::BadLiteral, self.line(at))
                        .message(format!("the default of `{}` {reason}", field.name.value))
                        .label(reason.clone())
                        .related(field.ty_span, format!("declared as {}", word(field.ty))),
                );
            }
        }
    }

    /// Rules that belong to the type, and that a value can satisfy.
    pub(super) fn validation(&mut self, validation: &'d Validation<'d>, ty: Type) {
        for (name, span, tree) in &validation.rules {
            if !applies(name, ty) {
                self.report(
                    Diagnostic::new(Code::BadValidation, *span)
                        .message(format!("`{name}` is no rule for {}", word(ty)))
                        .help(format!("rules for {} are {}", word(ty), rules_for(ty))),
                );
                continue;
            }
            if *name == "pattern" {
                self.regex(tree);
            }
            if *name == "enum" {
                for item in tree.items().unwrap_or_default() {
                    if !has_type(item, ty) {
                        self.report(
                            Diagnostic::new(Code::BadLiteral, self.line(item.span))
                                .message(format!(
                                    "a value under `enum` is {}, not {}",
                                    item.noun(),
                                    word(ty)
                                ))
                                .label(format!("not {}", word(ty))),
                        );
                    }
                }
            }
        }
        for (low, high) in [
            ("min", "max"),
            ("min_length", "max_length"),
            ("min_items", "max_items"),
        ] {
            let find = |name: &str| validation.rules.iter().find(|(rule, ..)| *rule == name);
            if let (Some((_, _, low_tree)), Some((_, _, high_tree))) = (find(low), find(high))
                && let (Some(least), Some(most)) = (number(low_tree), number(high_tree))
                && least > most
            {
                self.report(
                    Diagnostic::new(Code::BadValidation, high_tree.span)
                        .message(format!("no value has `{low}` {least} and `{high}` {most}"))
                        .related(low_tree.span, format!("`{low}` is greater"))
                        .help("exchange the two"),
                );
            }
        }
        self.fields(&validation.properties);
    }

    /// A regular expression that compiles.
    pub(super) fn regex(&mut self, tree: &'d Tree) {
        let Some(pattern) = tree.as_str() else {
            return;
        };
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

    /// A literal that is written to something with a declared type.
    pub(super) fn literal_fits(&mut self, tree: &'d Tree, ty: Type, dialect: Dialect, name: &str) {
        if is_literal(tree, dialect) && tree.value != Value::Null && !has_type(tree, ty) {
            self.report(
                Diagnostic::new(Code::BadLiteral, self.line(tree.span))
                    .message(format!(
                        "`{name}` is declared as {}, and this is {}",
                        word(ty),
                        tree.noun()
                    ))
                    .label(format!("not {}", word(ty))),
            );
        }
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

/// Whether a value holds no template.
pub(super) fn is_literal(tree: &Tree, dialect: Dialect) -> bool {
    match &tree.value {
        Value::Str(scalar) => expression::form(&scalar.text, dialect) == TextForm::Literal,
        Value::List(items) => items.iter().all(|item| is_literal(item, dialect)),
        Value::Map(entries) => entries
            .iter()
            .all(|entry| is_literal(&entry.value, dialect)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => true,
    }
}

pub(super) fn has_type(tree: &Tree, ty: Type) -> bool {
    match ty {
        Type::Any => true,
        Type::String => matches!(tree.value, Value::Str(_)),
        Type::Number => matches!(tree.value, Value::Int(_) | Value::Float(_)),
        Type::Integer => match tree.value {
            Value::Int(_) => true,
            Value::Float(value) => value.fract() == 0.0,
            _ => false,
        },
        Type::Boolean => matches!(tree.value, Value::Bool(_)),
        Type::Array => matches!(tree.value, Value::List(_)),
        Type::Object => matches!(tree.value, Value::Map(_)),
    }
}

/// Why a literal does not fit a field, as the end of a sentence, and where.
pub(super) fn misfit(tree: &Tree, field: &Field<'_>) -> Option<(String, Span)> {
    if tree.value == Value::Null {
        return None;
    }
    if !has_type(tree, field.ty) {
        let reason = format!("is {}, not {}", tree.noun(), word(field.ty));
        return Some((reason, tree.span));
    }
    let rules = lower::validation(&field.validation);
    breaks(tree, &rules, &field.validation)
}

fn breaks(
    tree: &Tree,
    rules: &graph::Validation,
    written: &Validation<'_>,
) -> Option<(String, Span)> {
    let here = |reason: String| Some((reason, tree.span));
    if !rules.one_of.is_empty() && !rules.one_of.contains(&lower::literal(tree)) {
        let allowed = written.rules.iter().find(|(rule, ..)| *rule == "enum");
        let allowed = allowed.and_then(|(_, _, tree)| tree.items());
        let values: Vec<String> = allowed
            .unwrap_or_default()
            .iter()
            .map(|value| match value.as_str() {
                Some(text) => format!("`{text}`"),
                None => format!("`{}`", value.to_json()),
            })
            .collect();
        return here(format!("is not one of {}", values.join(", ")));
    }
    match &tree.value {
        Value::Str(scalar) => {
            let length = scalar.text.chars().count() as u64;
            let pattern = rules.pattern.as_deref().map(regex::Regex::new);
            if let Some(least) = rules.min_length.filter(|least| length < *least) {
                return here(format!("is shorter than `min_length` ({least})"));
            }
            if let Some(most) = rules.max_length.filter(|most| length > *most) {
                return here(format!("is longer than `max_length` ({most})"));
            }
            if let Some(Ok(pattern)) = pattern
                && !pattern.is_match(&scalar.text)
            {
                return here(format!("does not match `{pattern}`"));
            }
        }
        Value::Int(_) | Value::Float(_) => {
            let value = number(tree)?;
            if let Some(least) = rules.min.filter(|least| value < *least) {
                return here(format!("is less than `min` ({least})"));
            }
            if let Some(most) = rules.max.filter(|most| value > *most) {
                return here(format!("is greater than `max` ({most})"));
            }
        }
        Value::List(items) => {
            let length = items.len() as u64;
            if let Some(least) = rules.min_items.filter(|least| length < *least) {
                return here(format!("has fewer than `min_items` ({least}) items"));
            }
            if let Some(most) = rules.max_items.filter(|most| length > *most) {
                return here(format!("has more than `max_items` ({most}) items"));
            }
            if let Some(ty) = rules.item_type
                && let Some(item) = items.iter().find(|item| !has_type(item, ty))
            {
                let reason = format!("has an item that is {}, not {}", item.noun(), word(ty));
                return Some((reason, item.span));
            }
        }
        Value::Map(_) => {
            for key in rules.required_keys.iter() {
                if tree.get(key).is_none() {
                    return here(format!("has no `{key}`"));
                }
            }
            for property in &written.properties {
                let value = tree.get(&property.name.value);
                match value.and_then(|value| misfit(value, property)) {
                    Some((reason, at)) => {
                        let reason = format!("has `{}`, which {reason}", property.name.value);
                        return Some((reason, at));
                    }
                    None if value.is_none() && property.required => {
                        return here(format!("has no `{}`", property.name.value));
                    }
                    None => {}
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
    None
}

/// Rules by the types they apply to.
fn applies(rule: &str, ty: Type) -> bool {
    match rule {
        "pattern" | "min_length" | "max_length" => matches!(ty, Type::String | Type::Any),
        "min" | "max" => matches!(ty, Type::Number | Type::Integer | Type::Any),
        "min_items" | "max_items" | "item_type" => matches!(ty, Type::Array | Type::Any),
        "required_keys" | "properties" => matches!(ty, Type::Object | Type::Any),
        _ => true,
    }
}

fn rules_for(ty: Type) -> String {
    let all = [
        "pattern",
        "min_length",
        "max_length",
        "min",
        "max",
        "min_items",
        "max_items",
        "item_type",
        "required_keys",
        "properties",
        "enum",
        "error_message",
    ];
    let fitting: Vec<String> = all
        .into_iter()
        .filter(|rule| applies(rule, ty))
        .map(|rule| format!("`{rule}`"))
        .collect();
    fitting.join(", ")
}

/// A type with an article.
pub(super) fn word(ty: Type) -> &'static str {
    match ty {
        Type::Any => "any value",
        Type::String => "a string",
        Type::Number => "a number",
        Type::Integer => "an integer",
        Type::Boolean => "a boolean",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}

/// Faults of literal arguments against declared fields: `(name, place, fault)`.
pub(super) fn arguments<'a>(
    given: impl Iterator<Item = (&'a str, Span, &'a Tree)>,
    declared: &'a [Field<'_>],
    dialect: Dialect,
) -> Vec<ArgumentFault> {
    let mut faults = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (name, span, tree) in given {
        seen.push(name);
        match declared.iter().find(|field| field.name.value == *name) {
            None => {
                // A misspelt argument is not missing as well.
                let names = declared.iter().map(|field| field.name.value.as_str());
                seen.extend(suggest::nearest(name, names));
                faults.push(ArgumentFault::Unknown(name.to_owned(), span));
            }
            Some(field) if is_literal(tree, dialect) => {
                if let Some((reason, at)) = misfit(tree, field) {
                    faults.push(ArgumentFault::Misfit(name.to_owned(), at, reason));
                }
            }
            Some(_) => {}
        }
    }
    for field in declared {
        let name = &field.name.value;
        if field.required && field.default.is_none() && !seen.contains(&name.as_str()) {
            faults.push(ArgumentFault::Missing(name.clone()));
        }
    }
    faults
}

/// A fault of an argument.
pub(super) enum ArgumentFault {
    /// Not declared.
    Unknown(String, Span),
    /// Does not fit.
    Misfit(String, Span, String),
    /// Must be given.
    Missing(String),
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
