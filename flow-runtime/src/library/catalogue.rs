//! A library with every definition read.

use std::fmt;

use flow_model::Compiled;
use flow_model::diagnostic::Severity;
use flow_model::graph::Graph;

use super::{Entry, Library, Refused, Role};

/// Every workflow of a library with what its definition says.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The workflows, by name. Files that workflows import are none.
    pub workflows: Vec<Workflow>,
    /// What no name leads to, because another of the same name stands before it.
    pub shadowed: Vec<Entry>,
    /// Files that cannot be part of the library, and why.
    pub refused: Vec<Refused>,
}

/// A workflow that was read.
#[derive(Debug)]
pub struct Workflow {
    /// Where it was found.
    pub entry: Entry,
    /// The definition, or what is wrong with it.
    pub definition: Result<Box<Graph>, Fault>,
}

/// Why a workflow cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its file cannot be read, for this reason.
    Unreadable(String),
    /// Its definition has errors.
    Invalid {
        /// How many.
        errors: usize,
        /// The line of the first.
        line: usize,
        /// What the first says.
        first: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable(reason) => f.write_str(reason),
            Fault::Invalid {
                errors: 1,
                line,
                first,
            } => write!(f, "line {line}: {first}"),
            Fault::Invalid {
                errors,
                line,
                first,
            } => write!(f, "line {line}: {first} (and {} more)", errors - 1),
        }
    }
}

impl Library {
    /// Reads every workflow. One that cannot be read or has errors is listed with its fault.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        let listing = self.list();
        let workflows = |entries: Vec<Entry>| {
            entries
                .into_iter()
                .filter(|entry| entry.role() != Role::Part)
        };
        Catalogue {
            workflows: workflows(listing.entries)
                .map(|entry| Workflow {
                    definition: self.read(&entry),
                    entry,
                })
                .collect(),
            shadowed: workflows(listing.shadowed).collect(),
            refused: listing.refused,
        }
    }

    pub(super) fn read(&self, entry: &Entry) -> Result<Box<Graph>, Fault> {
        let compiled = self
            .compile(entry)
            .map_err(|error| Fault::Unreadable(error.to_string()))?;
        let fault = fault(&compiled);
        compiled.into_graph().map(Box::new).ok_or(fault)
    }
}

fn fault(compiled: &Compiled) -> Fault {
    let mut errors = compiled
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let first = errors.next();
    Fault::Invalid {
        errors: errors.count() + usize::from(first.is_some()),
        line: first.map_or(1, |finding| compiled.sources.positions(finding.span).0.line),
        first: first.map_or_else(String::new, |finding| finding.message.clone()),
    }
}
