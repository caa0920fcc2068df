//! A workflow that is to be run or stored: by its name, or given whole.

use flow_model::diagnostic::{Severity, Sources};
use flow_model::graph::Graph;
use flow_model::source::{Origin, Source};
use flow_model::{Compiled, compile};
use serde_json::Value;

use super::Server;
use super::tool::Refused;
use crate::target;

/// What findings call a definition that came with a call.
const GIVEN: &str = "workflow_definition";

/// What came of looking for a workflow.
pub(super) enum Definition {
    /// It can be run.
    Ready {
        /// The workflow.
        graph: Box<Graph>,
        /// What is allowed and probably not meant, each with its place and a way out.
        warnings: Vec<String>,
    },
    /// There is none of this name.
    Unknown(String),
    /// It has errors.
    Invalid {
        /// Its name, if it says one.
        name: Option<String>,
        /// Each error with its place and a way out.
        errors: Vec<String>,
        /// What is allowed and probably not meant besides.
        warnings: Vec<String>,
    },
}

impl Definition {
    /// The workflow of a name.
    pub(super) fn named(server: &Server, name: &str) -> Result<Self, Refused> {
        let library = server.shelves.library();
        let Some(entry) = library.get(name)? else {
            return Ok(Definition::Unknown(name.to_owned()));
        };
        Ok(Definition::of(target::entry(library, &entry)?, Some(name)))
    }

    /// A definition given as an object or a text.
    pub(super) fn given(server: &Server, definition: &Value) -> Result<Self, Refused> {
        let compiled = compile(source(definition), server.shelves.library());
        Ok(Definition::of(compiled, None))
    }

    fn of(compiled: Compiled, name: Option<&str>) -> Self {
        let errors = findings(&compiled, Severity::Error);
        let warnings = findings(&compiled, Severity::Warning);
        let said = compiled.draft().map(|draft| draft.name.to_string());
        match compiled.into_graph() {
            Some(graph) => Definition::Ready {
                graph: Box::new(graph),
                warnings,
            },
            None => Definition::Invalid {
                name: name.map(str::to_owned).or(said),
                errors,
                warnings,
            },
        }
    }

    /// The workflow's name, as far as it is known.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Definition::Ready { graph, .. } => Some(graph.name.to_string()),
            Definition::Unknown(name) => Some(name.clone()),
            Definition::Invalid { name, .. } => name.clone(),
        }
    }
}

/// A definition as source: texts keep their lines.
pub(super) fn source(definition: &Value) -> Source {
    match definition {
        Value::String(text) => Source::new(GIVEN, text.as_str()),
        other => Source::from_value(GIVEN, other),
    }
}

/// What was found about a definition, each in one line with its place and a way out.
pub(super) fn findings(compiled: &Compiled, severity: Severity) -> Vec<String> {
    let found = compiled.findings.iter();
    found
        .filter(|finding| finding.severity == severity)
        .map(|finding| line(finding, &compiled.sources))
        .collect()
}

fn line(finding: &flow_model::diagnostic::Diagnostic, sources: &Sources) -> String {
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
