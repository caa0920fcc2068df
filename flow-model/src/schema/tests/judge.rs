//! The schema and the structural check side by side: both say yes, or both say no.

use jsonschema::Validator;
use serde_json::Value as Json;

use crate::diagnostic::{Code, Severity};
use crate::schema::workflow;
use crate::source::{self, FileId, Source, Tree};
use crate::structure;

/// The schema and the structural check, with a count of what they agreed on.
pub(super) struct Judge {
    schema: Validator,
    pub(super) accepted: usize,
    pub(super) rejected: usize,
}

impl Judge {
    pub(super) fn new() -> Self {
        Judge {
            schema: jsonschema::validator_for(&workflow()).expect("the schema compiles"),
            accepted: 0,
            rejected: 0,
        }
    }

    /// Whether both accept a definition.
    pub(super) fn accepts(&mut self, definition: &Json) -> bool {
        let source = Source::from_value("definition.json", definition);
        let tree = source::parse(&source, FileId::default()).expect("JSON is read");
        self.agree(&source, &tree)
    }

    pub(super) fn agree(&mut self, source: &Source, tree: &Tree) -> bool {
        let definition = tree.to_json();
        let mut faults = faults(source, tree);
        let verdict = self.schema.validate(&definition);
        if faults.is_empty() && verdict.is_err() {
            faults = miscalls(source);
        }
        assert_eq!(
            faults.is_empty(),
            verdict.is_ok(),
            "structure: {faults:#?}\nschema: {:#?}\n{}",
            verdict.err().map(|error| error.to_string()),
            excerpt(&definition)
        );
        if faults.is_empty() {
            self.accepted += 1;
        } else {
            self.rejected += 1;
        }
        faults.is_empty()
    }
}

/// Faults of form. That no two steps have one id is more than a schema can say.
fn faults(source: &Source, tree: &Tree) -> Vec<String> {
    structure::check(source, tree)
        .findings
        .into_iter()
        .filter(|finding| finding.severity == Severity::Error && finding.code != Code::DuplicateId)
        .map(|finding| finding.message)
        .collect()
}

/// Tools that do not exist and parameters that do not fit: the schema sees some of them, and none
/// that the checker does not see.
fn miscalls(source: &Source) -> Vec<String> {
    let compiled = crate::compile(source.clone(), &crate::loader::NoLoader);
    let found = compiled.findings.into_iter();
    found
        .filter(|it| matches!(it.code, Code::UnknownTool | Code::BadParameter))
        .map(|finding| finding.message)
        .collect()
}

fn excerpt(definition: &Json) -> String {
    let text = format!("{definition:#}");
    text.chars().take(2000).collect()
}
