//! Findings drawn under the source: the line, `~~~~` under the fault, and what is said about it.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use flow_model::diagnostic::{Diagnostic, Sources, visible};
use flow_model::source::Span;

/// A line longer than this is drawn in part.
const WIDTH: usize = 110;

/// All findings in their order.
pub(crate) fn draw(findings: &[Diagnostic], sources: &Sources) -> String {
    let mut out = String::new();
    for finding in findings {
        if !out.is_empty() {
            out.push('\n');
        }
        one(&mut out, finding, sources);
    }
    if out.is_empty() {
        out.push_str("nothing found\n");
    }
    out
}

fn one(out: &mut String, finding: &Diagnostic, sources: &Sources) {
    place(out, finding.span, sources);
    let (severity, code) = (finding.severity.word(), finding.code);
    writeln!(out, "{severity} {code}: {}", finding.message).unwrap();
    if !finding.label.is_empty() {
        writeln!(out, "  label: {}", finding.label).unwrap();
    }
    for (span, label) in &finding.related {
        let (start, _) = sources.positions(*span);
        let source = sources.of(*span).unwrap();
        let text = &source.text()[source.first_line(*span).range()];
        let name = source.name();
        writeln!(out, "  see: {name}:{}: `{text}`: {label}", start.line).unwrap();
    }
    if let Some(help) = &finding.help {
        writeln!(out, "  help: {help}").unwrap();
    }
    if let Some(suggestion) = &finding.suggestion {
        writeln!(out, "  write: {suggestion}").unwrap();
    }
    if !finding.path.is_empty() {
        writeln!(out, "  path: {}", visible(&finding.path)).unwrap();
    }
}

/// The source line and the tildes under the span; `^` where the span is empty.
fn place(out: &mut String, span: Span, sources: &Sources) {
    let source = sources.of(span).unwrap();
    let (start, end) = sources.positions(span);
    let text = source.text();
    let line = text.lines().nth(start.line - 1).unwrap_or_default();
    let width = line.chars().count() + 1;
    let (last, more) = if end.line > start.line {
        (width, "…")
    } else {
        (end.column, "")
    };
    let skipped = if width > WIDTH {
        (start.column - 1).saturating_sub(WIDTH / 3)
    } else {
        0
    };
    let drawn: String = line.chars().skip(skipped).take(WIDTH).collect();
    let before = if skipped > 0 { "…" } else { "" };
    let after = if skipped + WIDTH < width { "…" } else { "" };
    let pad = " ".repeat(start.column - 1 - skipped + before.chars().count());
    let count = last
        .saturating_sub(start.column)
        .min(WIDTH + skipped + 1 - start.column);
    let tildes = match count {
        0 => "^".to_owned(),
        count => "~".repeat(count),
    };
    writeln!(out, "{}:{}", source.name(), start.line).unwrap();
    writeln!(out, "{before}{}{after}", shown(&drawn)).unwrap();
    writeln!(out, "{pad}{tildes}{more}").unwrap();
}

/// Control characters as the signs for them, so that a picture is text.
fn shown(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap(),
            '\u{7f}' => '␡',
            '\u{80}'..='\u{9f}'
            | '\u{feff}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => '␦',
            _ => c,
        })
        .collect()
}

/// Compares a picture with the file that shows how it must look. `FLOW_BLESS=1` rewrites the file.
pub(crate) fn expect(path: &Path, picture: &str) -> Result<(), String> {
    if std::env::var_os("FLOW_BLESS").is_some() {
        fs::write(path, picture).unwrap();
        return Ok(());
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == picture {
        return Ok(());
    }
    Err(format!(
        "{} differs.\n--- expected\n{expected}\n--- found\n{picture}\nFLOW_BLESS=1 rewrites it; look at the change.\n",
        path.display()
    ))
}
