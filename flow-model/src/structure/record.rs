//! Maps with keys of their own: which may stand there, which must, and which exclude each other.

use std::collections::HashMap;

use super::Pass;
use super::step::type_entries;
use super::value::fits;
use super::words::{article, lower_first, names, quoted};
use crate::diagnostic::{Code, Diagnostic};
use crate::grammar::{self, Instead, Key, Record, habit};
use crate::source::{Entry, Span, Spanned, Tree, Value};

impl Pass<'_> {
    /// Keys of a map: known, given once, not in conflict, all there.
    pub(super) fn record(&mut self, entries: &[Entry], record: &'static Record, at: Span) {
        let errors = self.errors;
        let mut seen = Seen::default();
        let mut meant: Vec<&'static str> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let name = entry.key.value.as_str();
            if let Some(first) = seen.before(entry) {
                self.duplicate(&entry.key, first);
                continue;
            }
            let Some(key) = record.find(name) else {
                match record.rest {
                    Some(ty) => self.value(&entry.value, ty, name, entry.key.span),
                    None => {
                        self.lose(entry.value.span);
                        let near = self.unknown_key(entry, record);
                        // What stands under a misspelt key has faults of its own.
                        if let Some(key) = near
                            && fits(key.ty, &entry.value)
                        {
                            self.value(&entry.value, key.ty, key.name, entry.key.span);
                        }
                        meant.extend(near.map(canonical));
                    }
                }
                continue;
            };
            if let Some(other) = other_spelling(&entries[..index], key, record) {
                self.report(
                    Diagnostic::new(Code::Conflict, entry.key.span)
                        .message(format!(
                            "`{name}` and `{}` are two spellings of one key",
                            other.value
                        ))
                        .label("the second spelling")
                        .related(other.span, "the first spelling")
                        .help("keep one of them"),
                );
                self.speaks(name);
                continue;
            }
            self.spelling(entry, key, record);
            self.value(&entry.value, key.ty, name, entry.key.span);
        }
        for key in record.all_keys().filter(|key| key.required) {
            let given = entries
                .iter()
                .filter_map(|entry| record.find(&entry.key.value))
                .any(|found| stands_for(found, key));
            if !given && !meant.contains(&key.name) {
                self.missing(key, record, at);
            }
        }
        if !record.one_of.iter().any(|name| meant.contains(name)) {
            self.one_of(entries, record, at);
        }
        self.without_effect(entries, record);
        if std::ptr::eq(record, &grammar::TRANSITION) {
            self.transition(entries);
            let next = entries.iter().find(|e| e.key.value == "next_state");
            if self.errors > errors
                && let Some(next) = next.and_then(|entry| entry.value.as_str())
            {
                self.out.lost.target(next);
            }
        }
        if std::ptr::eq(record, &grammar::STATE) && !acts(entries) {
            self.out.lost.step(entries);
        }
        if std::ptr::eq(record, &grammar::CONDITION_MAP) && entries.len() > 1 {
            self.judged_alone(entries);
        }
        if entries.len() < record.at_least {
            self.report(
                Diagnostic::new(Code::MissingKey, at)
                    .message(format!("this {} says nothing", record.name))
                    .help(format!("give at least one of {}", names(record))),
            );
        }
    }

    /// Keys of which exactly one is given.
    pub(super) fn one_of(&mut self, entries: &[Entry], record: &'static Record, at: Span) {
        let is_choice = |entry: &&Entry| {
            let key = record.find(&entry.key.value);
            key.is_some_and(|key| record.one_of.contains(&canonical(key)))
        };
        let mut given = entries.iter().filter(is_choice);
        match (given.next(), given.next()) {
            (None, _) if !record.one_of.is_empty() => self.report(
                Diagnostic::new(Code::MissingKey, at)
                    .message(format!(
                        "this {} has none of {}",
                        record.noun(),
                        quoted(record.one_of.iter().copied())
                    ))
                    .help("give one of them"),
            ),
            (Some(first), Some(second)) if first.key.value != second.key.value => self.report(
                Diagnostic::new(Code::Conflict, second.key.span)
                    .message(format!(
                        "`{}` and `{}` exclude each other",
                        first.key.value, second.key.value
                    ))
                    .related(first.key.span, "the first one")
                    .help("keep one of them"),
            ),
            _ => {}
        }
    }

    /// Keys about a case that this step or field does not have.
    pub(super) fn without_effect(&mut self, entries: &[Entry], record: &'static Record) {
        let text = |name: &str| {
            let entry = entries.iter().find(|e| e.key.value == name);
            entry.and_then(|entry| entry.value.as_str())
        };
        let has = |name: &str| entries.iter().any(|entry| entry.key.value == name);
        let (idle, why): (&[&str], &str) =
            if std::ptr::eq(record, &grammar::FOREACH_STEP) && (has("steps") || has("body")) {
                let idle = &[
                    "agent",
                    "max_parallel",
                    "on_child_error",
                    "on_sub_agent_error",
                    "max_retries",
                    "collect_to",
                    "prompt",
                    "sub_agent_prompt_override",
                ];
                (
                    idle,
                    "inline steps run one after another in the enclosing scope",
                )
            } else if std::ptr::eq(record, &grammar::COMPUTED)
                && text("on_error") != Some("use_fallback")
            {
                (&["fallback"], "it is used with `on_error: use_fallback`")
            } else if std::ptr::eq(record, &grammar::PROMPT_STEP) {
                match text("kind") {
                    Some("info" | "confirm") => (
                        &["options", "choices", "validation"],
                        "this kind asks for neither",
                    ),
                    Some("text") => (&["options", "choices"], "a text is not chosen"),
                    Some("choice") => (&["validation"], "a choice is one of its options"),
                    _ => (&[], ""),
                }
            } else {
                (&[], "")
            };
        for entry in entries
            .iter()
            .filter(|e| idle.contains(&e.key.value.as_str()))
        {
            self.report(
                Diagnostic::new(Code::NoEffect, entry.key.span)
                    .message(format!("`{}` has no effect here: {why}", entry.key.value))
                    .label("changes nothing")
                    .help("drop it"),
            );
        }
    }

    /// A judged condition has no other keys.
    pub(super) fn judged_alone(&mut self, entries: &[Entry]) {
        if let Some(judged) = entries.iter().find(|e| e.key.value == "description") {
            self.report(
                Diagnostic::new(Code::Conflict, judged.key.span)
                    .message("a condition with a `description` is judged and has no other keys")
                    .help("write it as a transition of its own"),
            );
        }
    }

    /// The words `pattern_match` and `pattern_no_match` need a pattern, and no other does.
    pub(super) fn transition(&mut self, entries: &[Entry]) {
        let find = |name: &str| entries.iter().find(|entry| entry.key.value == name);
        let Some(condition) = find("condition") else {
            return;
        };
        let wants = matches!(
            condition.value.as_str(),
            Some("pattern_match" | "pattern_no_match")
        );
        match (wants, find("pattern")) {
            (true, None) => self.report(
                Diagnostic::new(Code::MissingKey, condition.value.span)
                    .message("`pattern` is missing: what should be found?")
                    .help("add `pattern:` with a regular expression"),
            ),
            (false, Some(pattern)) => self.report(
                Diagnostic::new(Code::Conflict, pattern.key.span)
                    .message("`pattern` belongs to `pattern_match` and `pattern_no_match`")
                    .related(condition.value.span, "the condition is another")
                    .help("write `condition: {pattern_match: …}`, or drop `pattern`"),
            ),
            (true, Some(_)) | (false, None) => {}
        }
    }

    pub(super) fn missing(&mut self, key: &Key, record: &'static Record, at: Span) {
        let meaning = match key.doc {
            "" => String::new(),
            doc => format!(": {}", lower_first(doc)),
        };
        self.report(
            Diagnostic::new(Code::MissingKey, at)
                .message(format!(
                    "`{}` is missing in this {}",
                    key.name,
                    record.noun()
                ))
                .label(format!("no `{}` here", key.name))
                .help(format!("add `{}`{meaning}", key.name)),
        );
    }

    pub(super) fn duplicate(&mut self, key: &Spanned<String>, first: &Spanned<String>) {
        self.report(
            Diagnostic::new(Code::DuplicateKey, key.span)
                .message(format!("`{}` is given twice", key.value))
                .label("the second time")
                .related(first.span, "the first time")
                .help("keep one of them"),
        );
    }

    /// Reports a key and says which one it probably is.
    pub(super) fn unknown_key(
        &mut self,
        entry: &Entry,
        record: &'static Record,
    ) -> Option<&'static Key> {
        let key = &entry.key;
        let canonical_first = record
            .all_keys()
            .filter(|k| k.instead == Instead::Canonical)
            .chain(
                record
                    .all_keys()
                    .filter(|k| k.instead != Instead::Canonical),
            );
        let candidates = canonical_first.map(|k| k.name);
        let mut finding = Diagnostic::new(Code::UnknownKey, key.span)
            .message(format!("{} has no key `{}`", article(record), key.value))
            .label("unknown key")
            .suggest(&key.value, candidates);
        if key.value == "<<" {
            finding = finding.help("YAML 1.2 has no merge keys; write the keys out");
        } else if let Some(meant) = habit::keys(&key.value).iter().find(|meant| {
            let key = record.find(meant);
            key.is_some_and(|key| key.instead == Instead::Canonical)
        }) {
            finding = finding.instead(meant);
        } else if let Some(around) = record.around(&key.value) {
            finding.suggestion = None;
            finding = finding.help(format!("it is a key of `{}`: write it there", around.name));
        } else if finding.suggestion.is_none() && record.find("field_equals").is_some() {
            finding = finding.help(format!(
                "a field of the result is compared by `field_equals: {{{}: {}}}`; the other keys \
                 are {}",
                key.value,
                written(&entry.value),
                names(record)
            ));
        } else if finding.suggestion.is_none() {
            finding = finding.help(format!("its keys are {}", names(record)));
        }
        let near = finding.suggestion.clone();
        if let Some(near) = &near {
            self.out.lost.name(near);
        }
        self.report(finding);
        record.find(near.as_deref()?)
    }

    pub(super) fn spelling(&mut self, entry: &Entry, found: &'static Key, record: &'static Record) {
        let key = &entry.key;
        self.speaks(found.name);
        // Tiers and types of fields are said in these forms only.
        let only_form = match found.name {
            "default_state" => entry.value.get("state").is_some(),
            "state_schema" => {
                entry.value.get("raw").is_some() || entry.value.get("state").is_some()
            }
            _ => false,
        };
        if only_form {
            return;
        }
        let new = match found.instead {
            Instead::Canonical => return,
            Instead::Name(new) | Instead::Form(new) => new,
        };
        if self.spellings.insert((record.name, found.name)) {
            let (message, help) = match (found.name, &entry.value.value) {
                ("wait_for_all", _) => (
                    "`wait_for_all` says nothing: a `foreach` always waits for its children"
                        .to_owned(),
                    "leave it out".to_owned(),
                ),
                ("retry_count", Value::Int(count)) => (
                    "`retry_count` is an older spelling of `retry.attempts`".to_owned(),
                    format!(
                        "write `retry: {{attempts: {}}}`: `attempts` counts the first try",
                        count.saturating_add(1)
                    ),
                ),
                (name, _) => (
                    format!("`{name}` is an older spelling of `{new}`"),
                    format!("write `{new}`"),
                ),
            };
            self.report(
                Diagnostic::new(Code::Deprecated, key.span)
                    .message(message)
                    .label("older spelling")
                    .help(help),
            );
        }
    }
}

/// The keys of a map so far.
#[derive(Default)]
pub(super) struct Seen<'e>(HashMap<&'e str, &'e Spanned<String>>);

impl<'e> Seen<'e> {
    /// The same key, if it was given before.
    pub(super) fn before(&mut self, entry: &'e Entry) -> Option<&'e Spanned<String>> {
        match self.0.entry(entry.key.value.as_str()) {
            std::collections::hash_map::Entry::Occupied(first) => Some(first.get()),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(&entry.key);
                None
            }
        }
    }
}

/// The canonical spelling of a key with the same values.
fn canonical(key: &'static Key) -> &'static str {
    match key.instead {
        Instead::Canonical => key.name,
        Instead::Name(name) => name,
        Instead::Form(name) => match name.split_once(['.', '`']) {
            Some((first, _)) => first,
            None => name,
        },
    }
}

/// Whether a key that is given makes a required one unnecessary.
fn stands_for(found: &'static Key, key: &Key) -> bool {
    [found.name, canonical(found)].contains(&key.name) || covers(found, key)
}

/// Whether everything is there that the reader needs to make a step of this.
pub(super) fn readable(entries: &[Entry], record: &'static Record) -> bool {
    record.all_keys().filter(|key| key.required).all(|key| {
        entries.iter().any(|entry| {
            let found = record.find(&entry.key.value);
            found.is_some_and(|found| stands_for(found, key) && fits(found.ty, &entry.value))
        })
    })
}

/// Whether the reader finds something to do in a state.
fn acts(state: &[Entry]) -> bool {
    let action = state.iter().find(|entry| entry.key.value == "action");
    let Some(entries) = action.and_then(|entry| entry.value.entries()) else {
        return false;
    };
    let word = type_entries(entries)
        .next()
        .map(|entry| entry.value.as_str());
    match word {
        Some(word) => word
            .and_then(grammar::step_word)
            .is_some_and(|step| readable(entries, step.record)),
        None => readable(entries, &grammar::ACTION),
    }
}

/// Whether another form stands for a required key: `mcp` for `tool`.
fn covers(found: &'static Key, key: &Key) -> bool {
    matches!(found.instead, Instead::Form(name) if name.split(['`', ' ', '.']).any(|n| n == key.name))
}

/// An entry that spells the same key otherwise.
fn other_spelling<'e>(
    entries: &'e [Entry],
    key: &'static Key,
    record: &'static Record,
) -> Option<&'e Spanned<String>> {
    let same = |found: &'static Key| match (found.instead, key.instead) {
        (Instead::Form(_), _) | (_, Instead::Form(_)) => false,
        _ => canonical(found) == canonical(key),
    };
    entries
        .iter()
        .find(|entry| record.find(&entry.key.value).is_some_and(same))
        .map(|entry| &entry.key)
}

/// A plain value as it may be written again; anything longer is left out.
fn written(tree: &Tree) -> String {
    match &tree.value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Str(scalar) if scalar.text.len() < 40 => format!("{:?}", scalar.text),
        Value::Null | Value::Str(_) | Value::List(_) | Value::Map(_) => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::loader::NoLoader;
    use crate::source::Source;

    #[test]
    fn a_required_key_of_another_form_is_given_by_itself() {
        let text = "steps:\n  - {type: mcp_call, mcp: {method: lint, params: {deep: true}}}\n";
        let compiled = crate::compile(Source::new("lint.yaml", text), &NoLoader);
        assert!(compiled.is_ok(), "{:?}", compiled.findings);
    }
}
