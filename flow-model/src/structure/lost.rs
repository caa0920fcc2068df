//! What a finding made unreadable.

use std::collections::HashSet;

use crate::source::{Entry, Value};

/// Names and places that a finding made unreadable. What is missing or unused only because of them
/// is not worth a finding of its own.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    names: HashSet<String>,
    texts: Vec<String>,
    targets: HashSet<String>,
    import: bool,
}

impl Lost {
    /// A name whose declaration could not be read.
    pub(crate) fn name(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    /// A piece of the source that could not be read.
    pub(crate) fn text(&mut self, text: &str) {
        self.texts.push(text.to_owned());
    }

    /// A state or step that something leads to which could not be read.
    pub(super) fn target(&mut self, name: &str) {
        self.targets.insert(name.to_owned());
    }

    /// A whole file that could not be read, which may have declared anything.
    pub(crate) fn import(&mut self) {
        self.import = true;
    }

    /// Whether what could not be read may have declared or used a name.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.targets.contains(name) || self.declares(name)
    }

    /// Whether what could not be read may have declared a name. That something leads to it is no
    /// sign that it exists.
    pub(crate) fn declares(&self, name: &str) -> bool {
        self.names.contains(name) || self.texts.iter().any(|text| has_word(text, name))
    }

    /// Whether a file that could not be read may have declared a name that files share.
    pub(crate) fn may_declare(&self, name: &str) -> bool {
        self.import || self.mentions(name)
    }

    pub(crate) fn append(&mut self, other: Lost) {
        self.names.extend(other.names);
        self.texts.extend(other.texts);
        self.targets.extend(other.targets);
        self.import |= other.import;
    }

    /// Everything that a step declares or uses, with all that is inside it.
    pub(super) fn step(&mut self, entries: &[Entry]) {
        for entry in entries {
            match (entry.key.value.as_str(), &entry.value.value) {
                ("target" | "goto" | "next_state" | "on_timeout", Value::Str(scalar)) => {
                    self.target(&scalar.text);
                }
                (
                    "id" | "output_to" | "path" | "name" | "task" | "sub_agent_task" | "if"
                    | "condition" | "when" | "items" | "collect_to",
                    Value::Str(scalar),
                ) => self.text(&scalar.text),
                (_, Value::Str(scalar)) if scalar.text.contains("{{") => self.text(&scalar.text),
                ("updates", Value::Map(updates)) => {
                    for update in updates {
                        self.name(&update.key.value);
                    }
                }
                _ => {}
            }
            self.step(entry.value.entries().unwrap_or_default());
            for item in entry.value.items().unwrap_or_default() {
                self.step(item.entries().unwrap_or_default());
            }
        }
    }
}

/// Whether a text contains a name that does not go on to either side.
fn has_word(text: &str, name: &str) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        !goes_on(text[..at].chars().next_back()) && !goes_on(text[at + name.len()..].chars().next())
    })
}
