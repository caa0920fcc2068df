//! A workflow that is to be run or stored: by its name, or given whole.

use flow_model::diagnostic::Severity;
use flow_model::graph::Graph;
use flow_model::source::Source;
use flow_model::{Compiled, compile};
use serde_json::Value;

use super::Server;
use super::tool::Refused;
use crate::findings;
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
        let errors = findings::lines(&compiled, Severity::Error);
        let warnings = findings::lines(&compiled, Severity::Warning);
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
