//! What is known of one workflow: its definition's own words, its file, its runs.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use flow_model::graph::{Field, Form, Graph, Output};
use flow_model::tools::WorkflowSignature;
use serde_json::{Value, json};

use super::{Entry, Fault, Library, StoreError};
use crate::journal::{Journal, Tally};
use crate::run::time::iso;

/// What is known of one workflow.
#[derive(Debug)]
pub struct Card {
    /// Where it was found.
    pub entry: Entry,
    /// The definition, or what is wrong with it.
    pub definition: Result<Box<Graph>, Fault>,
    /// When its file was made, in milliseconds since 1970; `None` when it has none. Overwriting a
    /// workflow makes its file anew.
    pub created: Option<u64>,
    /// When its file was last changed, in milliseconds since 1970.
    pub modified: Option<u64>,
    /// What its runs amount to; `None` when it was never run.
    pub runs: Option<Tally>,
}

impl Library {
    /// What is known of the workflow that a name leads to. A definition with errors has a card too.
    /// Without a journal nothing is known of runs.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Library`], [`StoreError::Journal`].
    pub fn card(&self, name: &str, journal: Option<&Journal>) -> Result<Card, StoreError> {
        let entry = self.find(name)?;
        let runs = match journal {
            Some(journal) => journal.tally(name)?,
            None => None,
        };
        let file = entry.file().and_then(|path| fs::metadata(path).ok());
        let modified = file.as_ref().and_then(|file| file.modified().ok());
        // Not every file system knows when a file was made.
        let created = file.and_then(|file| file.created().ok()).or(modified);
        Ok(Card {
            definition: self.read(&entry),
            created: created.and_then(millis),
            modified: modified.and_then(millis),
            runs,
            entry,
        })
    }
}

impl Card {
    /// The environment variables it needs and sets, and what it is for; empty when it has errors.
    #[must_use]
    pub fn signature(&self) -> WorkflowSignature {
        let graph = self.definition.as_ref().ok();
        graph
            .map(|graph| WorkflowSignature::of(graph))
            .unwrap_or_default()
    }

    /// How many states, or steps, it has.
    #[must_use]
    pub fn state_count(&self) -> usize {
        let graph = self.definition.as_ref().ok();
        graph.map_or(0, |graph| graph.body.nodes.len())
    }

    /// All of it, with times in ISO 8601. Default values of secret inputs are left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let graph = self.definition.as_deref().ok();
        let runs = self.runs.as_ref();
        let found_at = self.entry.file().map(|path| path.display().to_string());
        json!({
            "name": self.entry.name,
            "description": graph.and_then(|graph| graph.description.as_deref()),
            "version": graph.and_then(|graph| graph.version.as_deref()),
            "form": graph.map(|graph| match graph.form {
                Form::Steps => "steps",
                Form::States => "states",
            }),
            "source": self.entry.place.word(),
            "found_at": found_at,
            "created": self.created.map(iso),
            "modified": self.modified.map(iso),
            "run_count": runs.map_or(0, |runs| runs.run_count),
            "success_count": runs.map_or(0, |runs| runs.success_count),
            "last_run": runs.map(|runs| iso(runs.last_run)),
            "state_count": self.state_count(),
            "inputs": graph.map(inputs),
            "outputs": graph.map(outputs),
            "signature": self.signature(),
            "error": self.definition.as_ref().err().map(ToString::to_string),
        })
    }
}

fn millis(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

fn inputs(graph: &Graph) -> Value {
    let fields = graph.inputs.as_deref().unwrap_or_default().iter();
    fields
        .map(|field| (field.name.to_string(), input(field)))
        .collect()
}

fn input(field: &Field) -> Value {
    let default = field.default.as_ref().filter(|_| !field.secret);
    json!({
        "type": field.ty.word(),
        "required": field.required,
        "default": default.map(Value::from),
        "description": field.description,
    })
}

fn outputs(graph: &Graph) -> Value {
    let one = |output: &Output| {
        let field = &output.field;
        let output = json!({"type": field.ty.word(), "description": field.description});
        (field.name.to_string(), output)
    };
    graph.outputs.iter().map(one).collect()
}
