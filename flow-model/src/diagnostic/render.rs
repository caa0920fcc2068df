//! Findings as text with the source under them, as JSON, and as GitHub annotations.

use std::fmt::Write;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};

use super::{Diagnostic, Severity, Sources, visible};
use crate::source::{Origin, Source, Span};

/// How findings are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without colours: pipes, compile errors.
    Plain,
    /// With colours.
    Colour,
}

/// Lines longer than this are not drawn; nobody reads them, and laying them out takes long.
const LONGEST: usize = 16 * 1024;

/// A place to mark, what to say there, and how.
type Mark<'a> = (Span, &'a str, AnnotationKind);

/// One finding with the source line under it, in the manner of rustc.
#[must_use]
pub fn text(finding: &Diagnostic, sources: &Sources, style: Style) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(finding.message.as_str())
        .id(finding.code.as_str());
    let mut group = Group::with_title(title);
    let places = std::iter::once((
        finding.span,
        finding.label.as_str(),
        AnnotationKind::Primary,
    ));
    let related = finding
        .related
        .iter()
        .map(|(span, label)| (*span, label.as_str(), AnnotationKind::Context));
    let mut by_file: Vec<(&Source, Vec<Mark<'_>>)> = Vec::new();
    for place in places.chain(related) {
        let Some(source) = sources.of(place.0) else {
            continue;
        };
        match by_file.iter_mut().find(|(s, _)| std::ptr::eq(*s, source)) {
            Some((_, places)) => places.push(place),
            None => by_file.push((source, vec![place])),
        }
    }
    let names: Vec<String> = by_file
        .iter()
        .map(|(source, _)| match source.origin() {
            Origin::Text => visible(source.name()).into_owned(),
            Origin::Value => {
                visible(&format!("{} at {}", source.name(), finding.path)).into_owned()
            }
        })
        .collect();
    for ((source, places), name) in by_file.into_iter().zip(&names) {
        let endless = |(span, ..): &(Span, _, _)| source.line_len(span.start as usize) > LONGEST;
        if let Some((span, ..)) = places.iter().find(|place| endless(place)) {
            let at = source.position(span.start as usize);
            let place = annotate_snippets::Origin::path(name.as_str());
            group = group.element(place.line(at.line).char_column(at.column));
            continue;
        }
        let (window, offset, line) = window(source, &places);
        let mut snippet = Snippet::source(window).path(name.as_str()).line_start(line);
        for (span, label, kind) in places {
            let range = clip(span, offset, window);
            let label = (!label.is_empty()).then_some(label);
            snippet = snippet.annotation(kind.span(range).label(label));
        }
        group = group.element(snippet);
    }
    if let Some(help) = &finding.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    };
    renderer.render(&[group])
}

/// The lines that hold the places, so that a long source is not scanned for a short picture.
fn window<'a>(source: &'a Source, places: &[Mark<'_>]) -> (&'a str, usize, usize) {
    let text = source.text();
    let first = places.iter().map(|(span, ..)| span.start as usize).min();
    let last = places.iter().map(|(span, ..)| span.end as usize).max();
    let (first, last) = (first.unwrap_or(0).min(text.len()), last.unwrap_or(0));
    let line = source.position(first).line;
    let start = text[..crate::source::floor_boundary(text, first)]
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let last = crate::source::floor_boundary(text, last.max(start));
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
    (&text[start..end], start, line)
}

fn clip(span: Span, offset: usize, window: &str) -> std::ops::Range<usize> {
    let range = span.range();
    let at = |byte: usize| crate::source::floor_boundary(window, byte.saturating_sub(offset));
    at(range.start)..at(range.end)
}

/// All findings as the object that `flow check --format json` prints.
#[must_use]
pub fn json<'a>(findings: impl IntoIterator<Item = (&'a Diagnostic, &'a Sources)>) -> Value {
    let mut ok = true;
    let diagnostics: Vec<Value> = findings
        .into_iter()
        .map(|(finding, sources)| {
            ok &= finding.severity != Severity::Error;
            one_json(finding, sources)
        })
        .collect();
    json!({ "ok": ok, "diagnostics": diagnostics })
}

fn one_json(finding: &Diagnostic, sources: &Sources) -> Value {
    let (start, end) = sources.positions(finding.span);
    let source = sources.of(finding.span);
    json!({
        "code": finding.code.as_str(),
        "severity": finding.severity.word(),
        "message": finding.message,
        "file": source.map(Source::name),
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "path": finding.path,
        "label": finding.label,
        "help": finding.help,
        "suggestion": finding.suggestion,
    })
}

/// One finding as a workflow command that GitHub shows in a pull request.
#[must_use]
pub fn github(finding: &Diagnostic, sources: &Sources) -> String {
    let (start, end) = sources.positions(finding.span);
    let file = sources.of(finding.span).map_or("", Source::name);
    let mut message = finding.message.clone();
    if let Some(help) = &finding.help {
        let _ = write!(message, "\nhelp: {help}");
    }
    format!(
        "::{} file={},line={},endLine={},col={},endColumn={},title={}::{}",
        finding.severity.word(),
        property(&visible(file)),
        start.line,
        end.line,
        start.column,
        end.column,
        finding.code,
        escape(&message),
    )
}

fn escape(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}
