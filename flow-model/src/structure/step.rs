//! Steps: their types and their ids.

use super::Pass;
use super::record::readable;
use super::words::quoted;
use crate::diagnostic::{Code, Diagnostic};
use crate::grammar::{self, MAX_STEPS, StepWord, habit};
use crate::source::{Entry, Span};
use crate::tools;

impl Pass<'_> {
    pub(super) fn step(&mut self, entries: &[Entry], at: Span, action: bool) {
        self.steps += 1;
        self.out.oversized |= self.steps > 2 * MAX_STEPS;
        if self.steps == MAX_STEPS + 1 {
            self.report(
                Diagnostic::new(Code::OutOfLimits, at)
                    .message(format!("the definition has more than {MAX_STEPS} steps"))
                    .help("move some of them into another workflow and `call` it"),
            );
        }
        if !action {
            self.own_id(entries);
        }
        let Some(step) = self.step_type(entries, at) else {
            self.out.lost.step(entries);
            return;
        };
        self.speaks(step.word);
        if step.alias && self.spellings.insert(("type", step.word)) {
            self.deprecated_type(entries, step);
        }
        if action && !step.kind.acts() {
            let span = type_entries(entries).next().map_or(at, |e| e.value.span);
            self.report(
                Diagnostic::new(Code::UnknownStepType, span)
                    .message(format!("`{}` cannot be the action of a state", step.word))
                    .help("a state acts; its transitions say where to go"),
            );
            return;
        }
        if action {
            for entry in entries {
                if matches!(
                    entry.key.value.as_str(),
                    "id" | "when" | "on_error" | "timeout"
                ) {
                    self.report(
                        Diagnostic::new(Code::UnknownKey, entry.key.span)
                            .message(format!(
                                "`{}` does not belong to the action of a state",
                                entry.key.value
                            ))
                            .help("the state has the name, the timeout and the transitions"),
                    );
                }
            }
        }
        // The second `type` of a prompt is its kind and no duplicate.
        let doubled = doubled_type(entries);
        let rest: Vec<Entry>;
        let entries = match doubled {
            Some((_, kind)) => {
                if self.spellings.insert(("prompt", "type")) {
                    self.report(
                        Diagnostic::new(Code::Deprecated, kind.key.span)
                            .message("the second `type` of a prompt is an older spelling of `kind`")
                            .label("older spelling")
                            .help("write `kind`"),
                    );
                }
                rest = entries
                    .iter()
                    .filter(|entry| !std::ptr::eq(*entry, kind))
                    .cloned()
                    .collect();
                &rest
            }
            None => entries,
        };
        self.record(entries, step.record, at);
        if !readable(entries, step.record) {
            self.out.lost.step(entries);
        }
    }

    /// An id that no other step of the graph has, whatever else is wrong with either.
    pub(super) fn own_id(&mut self, entries: &[Entry]) {
        let id = entries.iter().find(|entry| entry.key.value == "id");
        let Some((id, span)) = id.and_then(|id| Some((id.value.as_str()?, id.value.span))) else {
            return;
        };
        match self.ids.get(id) {
            Some(first) => {
                let finding = Diagnostic::new(Code::DuplicateId, span)
                    .message(format!("the id `{id}` is used twice"))
                    .label("the second time")
                    .related(*first, "the first time")
                    .help("give this step another id");
                self.report(finding);
            }
            None => {
                self.ids.insert(id.to_owned(), span);
            }
        }
    }

    pub(super) fn step_type(&mut self, entries: &[Entry], at: Span) -> Option<&'static StepWord> {
        if let Some((prompt, _)) = doubled_type(entries) {
            return prompt.value.as_str().and_then(grammar::step_word);
        }
        let Some(entry) = type_entries(entries).next() else {
            if let Some(merge) = entries.iter().find(|entry| entry.key.value == "<<") {
                self.report(
                    Diagnostic::new(Code::UnknownKey, merge.key.span)
                        .message("a step has no key `<<`")
                        .label("unknown key")
                        .help("YAML 1.2 has no merge keys; write the keys out"),
                );
                return None;
            }
            let mut finding = Diagnostic::new(Code::MissingKey, at)
                .message("`type` is missing in this step")
                .label("no `type` here");
            finding = match guess(entries) {
                Some(word) => finding.help(format!("its keys look like `type: {word}`")),
                None => finding.help("every step says what it does with `type:`"),
            };
            self.report(finding);
            return None;
        };
        let Some(word) = entry.value.as_str() else {
            self.wrong_type(&entry.value, "`type`", "a step type as text");
            return None;
        };
        let found = grammar::step_word(word);
        if found.is_none() {
            let words = grammar::STEPS.iter().filter(|s| !s.alias).map(|s| s.word);
            let mut finding = Diagnostic::new(Code::UnknownStepType, entry.value.span)
                .message(format!("there is no step type `{word}`"))
                .label("not a step type")
                .suggest(word, grammar::STEPS.iter().map(|s| s.word));
            if tools::all().iter().any(|tool| tool.name == word) {
                finding.suggestion = None;
                finding = finding.help(format!(
                    "it is a tool: write `type: mcp_call`, `tool: {word}` and its parameters under \
                     `parameters`"
                ));
            } else if let Some(meant) = habit::step(word) {
                finding = finding.instead(meant);
            } else if finding.suggestion.is_none() {
                finding = finding.help(format!("the types are {}", quoted(words)));
            }
            self.report(finding);
        }
        found
    }

    pub(super) fn deprecated_type(&mut self, entries: &[Entry], step: &'static StepWord) {
        let Some(entry) = type_entries(entries).next() else {
            return;
        };
        let new = match step.word {
            "user_message" | "info" => "prompt` with `kind: info",
            "user_input" | "text" => "prompt` with `kind: text",
            "confirm" => "prompt` with `kind: confirm",
            "choice" => "prompt` with `kind: choice",
            "shell_command" => "shell` with `by: server",
            "agent_shell_command" => "shell` with `by: agent",
            "apply_hints" => "mcp_call` with `tool: apply_hints",
            "include_workflow" => "call` with `shares_computed: true",
            "parallel_foreach" => "foreach` with `agent: \"@task\"",
            _ => grammar::STEPS
                .iter()
                .find(|other| other.kind == step.kind && !other.alias)
                .map_or(step.word, |other| other.word),
        };
        self.report(
            Diagnostic::new(Code::Deprecated, entry.value.span)
                .message(format!(
                    "`type: {}` is an older spelling of `{new}`",
                    step.word
                ))
                .label("older spelling")
                .help(format!("write `{new}`")),
        );
    }
}

pub(super) fn type_entries(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.key.value == "type")
}

/// The `type: prompt` and the `type: confirm` of a prompt that says both.
pub(crate) fn doubled_type(entries: &[Entry]) -> Option<(&Entry, &Entry)> {
    let mut types = type_entries(entries);
    let (first, second) = (types.next()?, types.next()?);
    if types.next().is_some() {
        return None;
    }
    let is_prompt = |entry: &Entry| entry.value.as_str() == Some("prompt");
    let is_kind = |entry: &Entry| {
        matches!(
            entry.value.as_str(),
            Some("info" | "confirm" | "text" | "choice")
        )
    };
    if is_prompt(first) && is_kind(second) {
        Some((first, second))
    } else if is_kind(first) && is_prompt(second) {
        Some((second, first))
    } else {
        None
    }
}

/// The step type whose own required keys are all there.
fn guess(entries: &[Entry]) -> Option<&'static str> {
    grammar::STEPS
        .iter()
        .filter(|step| !step.alias && !step.record.keys.is_empty())
        .find(|step| {
            let mut required = step
                .record
                .keys
                .iter()
                .filter(|key| key.required)
                .peekable();
            required.peek().is_some()
                && required.all(|key| {
                    entries.iter().any(|entry| {
                        let word = entry.key.value.as_str();
                        word == key.name || habit::keys(word).first() == Some(&key.name)
                    })
                })
        })
        .map(|step| step.word)
}
