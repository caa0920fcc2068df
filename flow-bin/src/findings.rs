//! What was found about a definition, a line each.

use flow_model::Compiled;
use flow_model::diagnostic::{Diagnostic, Severity, Sources};
use flow_model::source::Origin;

/// Those of a severity, each with its place and a way out.
pub(crate) fn lines(compiled: &Compiled, severity: Severity) -> Vec<String> {
    let found = compiled.findings.iter();
    found
        .filter(|finding| finding.severity == severity)
        .map(|finding| line(finding, &compiled.sources))
        .collect()
}

fn line(finding: &Diagnostic, sources: &Sources) -> String {
    let (start, _) = sources.positions(finding.span);
    let place = match sources.of(finding.span) {
        // Nobody has seen the lines of what came as an object.
        Some(source) if source.origin() == Origin::Value => match finding.path.as_str() {
            "" => "the top".to_owned(),
            path => format!("`{path}`"),
        },
        Some(source) => format!("{}:{}:{}", source.name(), start.line, start.column),
        None => format!("{}:{}", start.line, start.column),
    };
    let mut text = format!("{} at {place}: {}", finding.code, finding.message);
    if let Some(help) = &finding.help {
        text.push_str(&format!(" ({help})"));
    }
    text
}
