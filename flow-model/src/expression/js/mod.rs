//! The JavaScript dialect: interpolations, trailing filters, transforms.
//!
//! Without the feature `js` templates are still cut into pieces and filters still found, but the
//! JavaScript itself is taken as it is: no reads, no faults.

#[cfg(feature = "js")]
mod tree;
#[cfg(not(feature = "js"))]
mod unparsed;

use std::ops::Range;

#[cfg(feature = "js")]
use tree as parser;
#[cfg(not(feature = "js"))]
use unparsed as parser;

use super::pieces::{self, Piece, pieces, trimmed};
use super::{
    Analysis, Dialect, Fault, FaultKind, Interpolation, Named, Shape, Transform, vocabulary,
};

/// An expression and the filters applied to its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The JavaScript before the first filter.
    pub expression: Range<usize>,
    /// The filters, in the order they are applied.
    pub filters: Vec<FilterCall>,
}

/// A filter after `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// Which filter, and where its name stands.
    pub filter: Named,
    /// Between the parentheses, if there are any: JavaScript expressions separated by commas.
    pub arguments: Option<Range<usize>>,
}

/// Tells the JavaScript of an interpolation from the filters after it.
///
/// A `|` before anything but the name of a filter is JavaScript's own.
///
/// ```
/// use flow_model::expression::pipeline;
/// let found = pipeline("flags | 4 | tojson(2)");
/// assert_eq!(found.expression, 0..9);
/// assert_eq!(found.filters[0].filter.name, "tojson");
/// assert_eq!(found.filters[0].arguments, Some(19..20));
/// ```
pub fn pipeline(text: &str) -> Pipeline {
    let mut end = text.len();
    let mut filters = Vec::new();
    for pipe in pieces::pipes(text).into_iter().rev() {
        let Some(call) = filter_call(text, trimmed(text, pipe + 1..end)) else {
            break;
        };
        filters.push(call);
        end = pipe;
    }
    filters.reverse();
    Pipeline {
        expression: trimmed(text, 0..end),
        filters,
    }
}

fn filter_call(text: &str, range: Range<usize>) -> Option<FilterCall> {
    let part = &text[range.clone()];
    let length = part
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(part.len());
    let (name, rest) = part.split_at(length);
    if !vocabulary::FILTERS.contains(&name) {
        return None;
    }
    let filter = Named {
        name: name.to_owned(),
        range: range.start..range.start + length,
    };
    if rest.trim().is_empty() {
        return Some(FilterCall {
            filter,
            arguments: None,
        });
    }
    let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    // `f(a)(b)` begins and ends with parentheses that are not a pair.
    if pieces::flaw(inner, Dialect::Js).is_some() {
        return None;
    }
    let start = range.end - 1 - inner.len();
    Some(FilterCall {
        filter,
        arguments: Some(start..start + inner.len()),
    })
}

/// Analyses a bare expression, filters included.
pub(super) fn expression(text: &str) -> Analysis {
    let text_range = trimmed(text, 0..text.len());
    if text_range.is_empty() {
        return Analysis::fault(Fault::syntax("an expression is needed here", 0..text.len()));
    }
    if let Some(flaw) = pieces::flaw(text, Dialect::Js) {
        return Analysis::fault(flaw.fault());
    }
    let pipeline = pipeline(text);
    let mut analysis = part(text, pipeline.expression.clone());
    let first = pipeline
        .filters
        .first()
        .map(|call| call.filter.name.as_str());
    if let Some("default" | "d") = first {
        for read in &mut analysis.reads {
            read.optional |= read.range == pipeline.expression;
        }
    }
    if let Some(name) = last_piped(text, pipeline.expression.end) {
        // What is called there is a filter, not a function.
        let called = |fault: &Fault| {
            matches!(fault.kind, FaultKind::UnknownFunction(_)) && fault.range == name.range
        };
        if let Some(at) = analysis.faults.iter().position(called) {
            analysis.faults.remove(at);
            analysis.unknown_filter(&name.name, name.range.clone());
        }
        analysis.piped.push(name);
    }
    for call in pipeline.filters {
        if let Some(arguments) = call
            .arguments
            .filter(|range| !text[range.clone()].trim().is_empty())
        {
            let written = &text[arguments.clone()];
            let mut found = arguments_of(written);
            if vocabulary::takes_pattern(&call.filter.name) {
                found.patterns.extend(parser::first_text(written));
            }
            analysis.absorb(found, arguments.start);
        }
        analysis.filters.push(call.filter);
    }
    analysis
}

/// The name after the last `|` before `end`, alone or called.
fn last_piped(text: &str, end: usize) -> Option<Named> {
    let pipe = pieces::pipes(&text[..end]).pop()?;
    let range = trimmed(text, pipe + 1..end);
    let part = &text[range.clone()];
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let length = part.find(|letter| !word(letter)).unwrap_or(part.len());
    let (name, rest) = part.split_at(length);
    let alone = rest.is_empty() || rest.trim_start().starts_with('(') && rest.ends_with(')');
    let named = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    (alone && named).then(|| Named {
        name: name.to_owned(),
        range: range.start..range.start + length,
    })
}

fn part(text: &str, range: Range<usize>) -> Analysis {
    let mut analysis = Analysis::default();
    let found = if range.is_empty() {
        Analysis::fault(Fault::syntax(
            "a value is needed before this filter",
            0..text.len(),
        ))
    } else {
        parser::expression(&text[range.clone()]).unwrap_or_else(Analysis::fault)
    };
    analysis.absorb(found, range.start);
    analysis
}

/// Analyses a list of arguments, which is what stands in an array.
fn arguments_of(text: &str) -> Analysis {
    let found = parser::expression(&format!("[{text}]")).unwrap_or_else(|fault| {
        // The bracket is not in the text the fault is about.
        let missing = fault.range.start > text.len();
        let fault = if missing {
            Fault::syntax("an argument is incomplete", 1..text.len() + 1)
        } else {
            fault
        };
        Analysis::fault(fault)
    });
    found.shifted_back(1, text.len())
}

/// Analyses a template.
pub(super) fn template(text: &str) -> Analysis {
    let mut analysis = Analysis::default();
    for piece in pieces(text, Dialect::Js) {
        let Piece::Interpolation(tag) = piece else {
            continue;
        };
        let inner = &text[tag.inner.clone()];
        let mut filters = Vec::new();
        if let Some(flaw) = &tag.flaw {
            analysis.faults.push(flaw.fault());
        } else if inner.is_empty() {
            let fault = Fault::syntax("an expression is needed between these", tag.range.clone());
            analysis.faults.push(fault);
        } else {
            analysis.absorb(expression(inner), tag.inner.start);
            filters.extend(
                pipeline(inner)
                    .filters
                    .into_iter()
                    .map(|call| call.filter.name),
            );
        }
        analysis.interpolations.push(Interpolation {
            range: tag.range,
            filters,
        });
    }
    analysis
}

/// Analyses the transform of a computed field: an expression or a function body.
///
/// An object literal is an expression. What does not parse as an expression is read as a body,
/// which has to `return` something. Without the feature `js` the shape is guessed from the first
/// word.
///
/// ```
/// # #[cfg(feature = "js")] {
/// use flow_model::expression::{transform, Shape};
/// assert_eq!(transform("{ total: input.length }").shape, Shape::Expression);
/// assert_eq!(transform("const n = input.length; return n * 2").shape, Shape::Body);
/// # }
/// ```
pub fn transform(text: &str) -> Transform {
    let expression = |analysis| Transform {
        analysis,
        shape: Shape::Expression,
    };
    let body = |analysis| Transform {
        analysis,
        shape: Shape::Body,
    };
    if text.trim().is_empty() {
        let fault = Fault::syntax("a transform is needed here", 0..text.len());
        return expression(Analysis::fault(fault));
    }
    if let Some(flaw) = pieces::flaw(text, Dialect::Js) {
        return expression(Analysis::fault(flaw.fault()));
    }
    let statement = begins_statement(text);
    if !parser::PARSES {
        return if statement {
            body(Analysis::default())
        } else {
            expression(Analysis::default())
        };
    }
    match (parser::expression(text), parser::body(text)) {
        (Ok(mut analysis), _) => {
            analysis.piped.extend(last_piped(text, text.len()));
            expression(analysis)
        }
        (Err(_), Ok(analysis)) => body(analysis),
        (Err(_), Err(fault)) if statement => body(Analysis::fault(fault)),
        (Err(fault), Err(_)) => expression(Analysis::fault(fault)),
    }
}

fn begins_statement(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("//") {
        rest = comment
            .split_once('\n')
            .map_or("", |(_, rest)| rest.trim_start());
    }
    let end = rest
        .find(|letter: char| !letter.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    matches!(
        &rest[..end],
        "const"
            | "let"
            | "var"
            | "if"
            | "for"
            | "while"
            | "do"
            | "switch"
            | "try"
            | "throw"
            | "return"
            | "function"
            | "class"
    )
}
