//! The first pass: does a tree have the shape the grammar describes?
//!
//! Everything past this pass may take keys, types and limits for granted; what this pass has
//! reported is simply absent there.

use std::collections::{HashMap, HashSet};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::grammar::{self, Instead, Key, MAX_STEPS, Pattern, Record, StepWord, Type, habit};
use crate::source::{Entry, Source, Span, Spanned, Tree, Value};

/// What the first pass found.
#[derive(Debug, Default)]
pub(crate) struct Structure {
    /// Findings in document order.
    pub(crate) findings: Vec<Diagnostic>,
    /// What the findings made unreadable.
    pub(crate) lost: Lost,
    /// Far more is declared than a definition may have: the rest of its faults can wait.
    pub(crate) oversized: bool,
    /// A word of the JavaScript dialect's documents is used.
    pub(crate) speaks_js: bool,
}

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
    fn target(&mut self, name: &str) {
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
    fn step(&mut self, entries: &[Entry]) {
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

/// Words that imply the JavaScript dialect.
const JS_WORDS: &[&str] = &[
    "agent_shell_command",
    "apply_hints",
    "body",
    "conditional",
    "default_state",
    "error_handling",
    "include_workflow",
    "mcp",
    "on_sub_agent_error",
    "parallel_foreach",
    "retry_count",
    "retry_delay",
    "shell_command",
    "state_schema",
    "sub_agent_prompt_override",
    "sub_agent_task",
    "sub_agent_tasks",
    "user_input",
    "user_message",
    "wait_for_all",
];

/// The document inside a `workflow:` wrapper, or the tree itself.
pub(crate) fn unwrap_document(tree: &Tree) -> &Tree {
    match tree.entries() {
        Some([only]) if only.key.value == "workflow" => &only.value,
        _ => tree,
    }
}

/// Checks a whole document.
pub(crate) fn check(source: &Source, tree: &Tree) -> Structure {
    let mut pass = Pass {
        source,
        out: Structure::default(),
        steps: 0,
        errors: 0,
        spellings: HashSet::new(),
    };
    let root = unwrap_document(tree);
    match &root.value {
        Value::Null => pass.report(
            Diagnostic::new(Code::Empty, root.span)
                .message("there is no definition here")
                .help("a definition has at least `steps:` or `states:`"),
        ),
        Value::Map(entries) => {
            let start = entries.first().map_or(root.span, |entry| entry.key.span);
            pass.record(entries, &grammar::DOCUMENT, start);
            pass.document(entries, start);
        }
        _ => pass.wrong_type(root, "a definition", "a map with `steps:` or `states:`"),
    }
    pass.out
}

struct Pass<'a> {
    source: &'a Source,
    out: Structure,
    steps: usize,
    errors: usize,
    spellings: HashSet<(&'static str, &'static str)>,
}

impl Pass<'_> {
    fn report(&mut self, finding: Diagnostic) {
        self.errors += usize::from(finding.severity == Severity::Error);
        self.out.findings.push(finding);
    }

    fn wrong_type(&mut self, tree: &Tree, what: &str, expected: &str) {
        let mut finding = Diagnostic::new(Code::WrongType, self.source.first_line(tree.span))
            .message(format!("{what} takes {expected}, not {}", tree.noun()))
            .label(format!("this is {}", tree.noun()));
        let quotable = matches!(tree.value, Value::Bool(_) | Value::Int(_) | Value::Float(_));
        self.lose(tree.span);
        if quotable && expected.contains("text") {
            finding = finding.help("put it in quotes if it is meant as text");
        }
        if let (Some(meant), true) = (tree.as_str().and_then(habit::truth), expected == TRUTH) {
            finding = finding.instead(meant);
        }
        self.report(finding);
    }

    /// What holds for a document as a whole, beyond its keys one by one.
    fn document(&mut self, entries: &[Entry], start: Span) {
        let find = |name: &str| entries.iter().find(|entry| entry.key.value == name);
        if let Some(entry) = find("initial_state")
            && entry.value.entries().is_some()
        {
            self.report(
                Diagnostic::new(Code::Deprecated, entry.key.span)
                    .message("`initial_state` with a map is an older spelling of `state`")
                    .label("older spelling")
                    .help("write `state`"),
            );
        }
        let has = |names: &[&str]| names.iter().any(|name| find(name).is_some());
        match (find("steps"), find("states")) {
            (Some(steps), Some(states)) => {
                let (steps, states) = (steps.key.span, states.key.span);
                self.report(
                    Diagnostic::new(Code::Conflict, steps.max(states))
                        .message("`steps` and `states` exclude each other")
                        .label("the second form")
                        .related(steps.min(states), "the first form")
                        .help(
                            "write the workflow as one of them; call another workflow for the rest",
                        ),
                );
            }
            (None, Some(states)) => {
                if !matches!(find("initial_state"), Some(e) if e.value.entries().is_none()) {
                    self.report(
                        Diagnostic::new(Code::MissingKey, states.key.span)
                            .message("`initial_state` is missing: which state does a run start in?")
                            .help("add `initial_state: …` with the name of a state"),
                    );
                }
                if matches!(&states.value.value, Value::Map(map) if map.is_empty()) {
                    self.report(
                        Diagnostic::new(Code::OutOfLimits, states.key.span)
                            .message("`states` has no state")
                            .help("add at least one"),
                    );
                }
            }
            (Some(_), None) => {
                if let Some(entry) = find("initial_state")
                    && entry.value.as_str().is_some()
                {
                    self.report(
                        Diagnostic::new(Code::Conflict, entry.key.span)
                            .message("`initial_state` names a state, and this workflow has steps")
                            .help("initial values go under `state:`"),
                    );
                }
            }
            (None, None)
                if has(&[
                    "tasks",
                    "sub_agent_tasks",
                    "computed",
                    "state_schema",
                    "agents",
                ]) => {}
            (None, None) if self.out.lost.mentions("steps") || self.out.lost.mentions("states") => {
            }
            (None, None) => self.report(
                Diagnostic::new(Code::MissingKey, start)
                    .message("the definition does nothing: `steps` or `states` is missing")
                    .help("add `steps:` with a list, or `initial_state:` and `states:`"),
            ),
        }
    }

    /// Keys of a map: known, given once, not in conflict, all there.
    fn record(&mut self, entries: &[Entry], record: &'static Record, at: Span) {
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
                        let near = self.unknown_key(&entry.key, record);
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
    fn one_of(&mut self, entries: &[Entry], record: &'static Record, at: Span) {
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
    fn without_effect(&mut self, entries: &[Entry], record: &'static Record) {
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
    fn judged_alone(&mut self, entries: &[Entry]) {
        if let Some(judged) = entries.iter().find(|e| e.key.value == "description") {
            self.report(
                Diagnostic::new(Code::Conflict, judged.key.span)
                    .message("a condition with a `description` is judged and has no other keys")
                    .help("write it as a transition of its own"),
            );
        }
    }

    /// The words `pattern_match` and `pattern_no_match` need a pattern, and no other does.
    fn transition(&mut self, entries: &[Entry]) {
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

    fn missing(&mut self, key: &Key, record: &'static Record, at: Span) {
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

    fn duplicate(&mut self, key: &Spanned<String>, first: &Spanned<String>) {
        self.report(
            Diagnostic::new(Code::DuplicateKey, key.span)
                .message(format!("`{}` is given twice", key.value))
                .label("the second time")
                .related(first.span, "the first time")
                .help("keep one of them"),
        );
    }

    /// Reports a key and says which one it probably is.
    fn unknown_key(
        &mut self,
        key: &Spanned<String>,
        record: &'static Record,
    ) -> Option<&'static Key> {
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

    /// The source of something that the reader will not see.
    fn lose(&mut self, span: Span) {
        let text = self.source.text().get(span.range()).unwrap_or_default();
        self.out.lost.text(text);
    }

    fn spelling(&mut self, entry: &Entry, found: &'static Key, record: &'static Record) {
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

    fn speaks(&mut self, word: &str) {
        self.out.speaks_js |= JS_WORDS.contains(&word);
    }

    fn value(&mut self, tree: &Tree, ty: &'static Type, what: &str, at: Span) {
        let said = || format!("`{what}`");
        match ty {
            Type::Any | Type::Literal => self.duplicates_below(tree),
            Type::Null if tree.value == Value::Null => {}
            Type::Bool if matches!(tree.value, Value::Bool(_)) => {}
            Type::True if tree.value == Value::Bool(true) => {}
            Type::True if tree.value == Value::Bool(false) => {
                self.lose(tree.span);
                self.report(
                    Diagnostic::new(Code::WrongType, self.source.first_line(tree.span))
                        .message(format!("{} takes only `true`", said()))
                        .label("this is `false`")
                        .help("write `true`, or leave it out"),
                );
            }
            Type::Template | Type::Condition | Type::Regex if tree.as_str().is_some() => {}
            Type::Condition if matches!(tree.value, Value::Bool(_)) => {}
            Type::Text(pattern, max) if let Some(text) = tree.as_str() => {
                self.text(text, *pattern, *max, tree.span, &said());
            }
            Type::Word(words) if let Some(text) = tree.as_str() => {
                if !words.contains(&text) {
                    self.not_a_word(text, words, tree.span, &said());
                }
            }
            Type::Int(min, max) if let Some(number) = whole(tree) => {
                self.bounds(number, *min as f64, *max as f64, tree.span, &said(), "");
            }
            Type::Number(min, max) if let Some(number) = number(tree) => {
                self.bounds(number, *min, *max, tree.span, &said(), "");
            }
            Type::Duration(..) if duration(tree).is_none() && tree.as_str().is_some() => {
                self.lose(tree.span);
                self.report(
                    Diagnostic::new(Code::WrongType, self.source.first_line(tree.span))
                        .message(format!(
                            "{} cannot be `{}`",
                            said(),
                            tree.as_str().unwrap_or_default()
                        ))
                        .label("not a duration")
                        .help("give seconds, or text such as `500ms`, `30s`, `5m`, `1h`"),
                );
            }
            Type::Duration(min, max) if let Some(seconds) = duration(tree) => {
                self.bounds(seconds, *min, *max, tree.span, &said(), " s");
            }
            Type::Millis(min, max) if let Some(millis) = number(tree) => {
                self.bounds(millis, *min, *max, tree.span, &said(), " ms");
            }
            Type::List(of, max) if let Some(items) = tree.items() => {
                if items.len() > *max {
                    self.too_many(items.len(), *max, self.source.first_line(at), &said());
                }
                for item in items {
                    self.value(item, of, what, self.head(item));
                }
            }
            Type::Map(pattern, of, max) if let Some(entries) = tree.entries() => {
                if entries.len() > *max {
                    self.too_many(entries.len(), *max, self.source.first_line(at), &said());
                }
                self.map(entries, *pattern, of, what);
            }
            Type::Record(record) if let Some(entries) = tree.entries() => {
                self.record(entries, record, at);
            }
            Type::Step if let Some(entries) = tree.entries() => self.step(entries, at, false),
            Type::ActionStep if let Some(entries) = tree.entries() => self.step(entries, at, true),
            Type::Either(_) if std::ptr::eq(ty, &grammar::INPUT) && is_bare_default(tree) => {
                self.bare_default(tree, &said());
            }
            Type::Either(types) => match choose(types, tree) {
                Some(ty) => self.value(tree, ty, what, at),
                None => self.wrong_type(tree, &said(), &describe(ty)),
            },
            Type::Null
            | Type::Bool
            | Type::True
            | Type::Template
            | Type::Condition
            | Type::Regex
            | Type::Text(..)
            | Type::Word(_)
            | Type::Int(..)
            | Type::Number(..)
            | Type::Duration(..)
            | Type::Millis(..)
            | Type::List(..)
            | Type::Map(..)
            | Type::Record(_)
            | Type::Step
            | Type::ActionStep => self.wrong_type(tree, &said(), &describe(ty)),
        }
    }

    /// Where a list item starts: its first key or its first line.
    fn head(&self, item: &Tree) -> Span {
        match item.entries() {
            Some([first, ..]) => first.key.span,
            _ => self.source.first_line(item.span),
        }
    }

    fn map(&mut self, entries: &[Entry], pattern: Pattern, of: &'static Type, what: &str) {
        let mut seen = Seen::default();
        for entry in entries {
            let name = entry.key.value.as_str();
            if let Some(first) = seen.before(entry) {
                self.duplicate(&entry.key, first);
                continue;
            }
            let before = self.errors;
            let max = if pattern == Pattern::Free { 500 } else { 64 };
            self.text(
                name,
                pattern,
                max,
                entry.key.span,
                &format!("a name under `{what}`"),
            );
            self.value(&entry.value, of, name, entry.key.span);
            if self.errors > before {
                self.out.lost.name(name);
            }
        }
    }

    fn text(&mut self, text: &str, pattern: Pattern, max: usize, span: Span, what: &str) {
        let length = text.chars().count();
        if length > max {
            self.report(
                Diagnostic::new(Code::OutOfLimits, self.source.first_line(span))
                    .message(format!(
                        "{what} has {length} characters; at most {max} are allowed"
                    ))
                    .help("shorten it"),
            );
        } else if !pattern.accepts(text) {
            let code = match pattern {
                Pattern::Agent | Pattern::AgentKey => Code::BadAgent,
                _ => Code::BadName,
            };
            self.report(
                Diagnostic::new(code, self.source.first_line(span))
                    .message(format!("{what} cannot be `{text}`"))
                    .help(format!("use {}", pattern.words())),
            );
        }
    }

    fn not_a_word(&mut self, text: &str, words: &[&'static str], span: Span, what: &str) {
        let list = quoted(words.iter().copied());
        let finding = Diagnostic::new(Code::NotAWord, self.source.first_line(span))
            .message(format!("{what} cannot be `{text}`: it is one of {list}"))
            .label("not one of the words");
        let finding = match habit::ty(text).filter(|meant| words.contains(meant)) {
            Some(meant) => finding.instead(meant),
            None => finding.suggest(text, words.iter().copied()),
        };
        self.report(finding);
    }

    /// A value in the place of an input's type. It is not taken as the default: nobody could tell
    /// a default such as `date` from a type that does not exist.
    fn bare_default(&mut self, tree: &Tree, what: &str) {
        let (ty, written) = match &tree.value {
            Value::Str(scalar) => ("string", scalar.text.to_string()),
            Value::Bool(value) => ("boolean", value.to_string()),
            Value::Int(value) => ("integer", value.to_string()),
            Value::Float(value) => ("number", plain(*value)),
            Value::List(_) => ("array", "[…]".to_owned()),
            Value::Null | Value::Map(_) => ("string", "…".to_owned()),
        };
        self.lose(tree.span);
        let at = self.source.first_line(tree.span);
        let name = what.trim_matches('`');
        let finding = Diagnostic::new(Code::NotAWord, at)
            .message(format!("{what} is declared by `{written}`, which is no type"))
            .label("not a type")
            .help(format!(
                "write `{name}: {{type: {ty}, default: {written}}}` where it is meant as the default; \
                 the types are {}",
                quoted(grammar::TYPE_WORDS.iter().copied())
            ));
        let finding = match tree.as_str() {
            Some(text) => match habit::ty(text) {
                Some(meant) => finding.instead(meant),
                None => finding.suggest(text, grammar::TYPE_WORDS.iter().copied()),
            },
            None => finding,
        };
        self.report(finding);
    }

    fn bounds(&mut self, value: f64, min: f64, max: f64, span: Span, what: &str, unit: &str) {
        if value.is_nan() || value < min || value > max {
            let bounded = max.is_finite() && (max < i64::MAX as f64 || value > max);
            let max = plain(max);
            let value = plain(value);
            let range = match (min.is_finite(), bounded) {
                (true, true) => format!("between {min} and {max}{unit}"),
                (true, false) => format!("at least {min}{unit}"),
                (false, true) => format!("at most {max}{unit}"),
                (false, false) => "a number".to_owned(),
            };
            self.report(
                Diagnostic::new(Code::OutOfLimits, span)
                    .message(format!("{what} is {value}{unit}; it must be {range}"))
                    .label(range),
            );
        }
    }

    fn too_many(&mut self, count: usize, max: usize, span: Span, what: &str) {
        self.out.oversized |= count > max.max(MAX_STEPS);
        self.report(Diagnostic::new(Code::OutOfLimits, span).message(format!(
            "{what} has {count} entries; at most {max} are allowed"
        )));
    }

    fn duplicates_below(&mut self, tree: &Tree) {
        match &tree.value {
            Value::List(items) => {
                for item in items {
                    self.duplicates_below(item);
                }
            }
            Value::Map(entries) => {
                let mut seen = Seen::default();
                for entry in entries {
                    if let Some(first) = seen.before(entry) {
                        self.duplicate(&entry.key, first);
                    }
                    self.duplicates_below(&entry.value);
                }
            }
            Value::Float(number) if !number.is_finite() => self.report(
                Diagnostic::new(Code::OutOfLimits, tree.span)
                    .message(format!("{number} is not a number that JSON has"))
                    .help("write it as text, or use a finite number"),
            ),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {}
        }
    }

    fn step(&mut self, entries: &[Entry], at: Span, action: bool) {
        self.steps += 1;
        self.out.oversized |= self.steps > 2 * MAX_STEPS;
        if self.steps == MAX_STEPS + 1 {
            self.report(
                Diagnostic::new(Code::OutOfLimits, at)
                    .message(format!("the definition has more than {MAX_STEPS} steps"))
                    .help("move some of them into another workflow and `call` it"),
            );
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

    fn step_type(&mut self, entries: &[Entry], at: Span) -> Option<&'static StepWord> {
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
            if let Some(meant) = habit::step(word) {
                finding = finding.instead(meant);
            } else if finding.suggestion.is_none() {
                finding = finding.help(format!("the types are {}", quoted(words)));
            }
            self.report(finding);
        }
        found
    }

    fn deprecated_type(&mut self, entries: &[Entry], step: &'static StepWord) {
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

/// The keys of a map so far.
#[derive(Default)]
struct Seen<'e>(HashMap<&'e str, &'e Spanned<String>>);

impl<'e> Seen<'e> {
    /// The same key, if it was given before.
    fn before(&mut self, entry: &'e Entry) -> Option<&'e Spanned<String>> {
        match self.0.entry(entry.key.value.as_str()) {
            std::collections::hash_map::Entry::Occupied(first) => Some(first.get()),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(&entry.key);
                None
            }
        }
    }
}

fn type_entries(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
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
fn readable(entries: &[Entry], record: &'static Record) -> bool {
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

/// Whether a text contains a name that does not go on to either side.
fn has_word(text: &str, name: &str) -> bool {
    let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        !goes_on(text[..at].chars().next_back()) && !goes_on(text[at + name.len()..].chars().next())
    })
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

/// Whether an input is declared by a value that is neither a type nor a map.
fn is_bare_default(tree: &Tree) -> bool {
    match &tree.value {
        Value::Str(scalar) => grammar::type_word(&scalar.text).is_none(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) => true,
        Value::Null | Value::Map(_) => false,
    }
}

/// The alternative whose kind fits.
fn choose(types: &'static [&'static Type], tree: &Tree) -> Option<&'static Type> {
    types.iter().copied().find(|ty| fits(ty, tree))
}

fn fits(ty: &'static Type, tree: &Tree) -> bool {
    match ty {
        Type::Any | Type::Literal => true,
        Type::Null => tree.value == Value::Null,
        Type::Bool | Type::True => matches!(tree.value, Value::Bool(_)),
        Type::Condition => matches!(tree.value, Value::Str(_) | Value::Bool(_)),
        Type::Template | Type::Regex | Type::Text(..) | Type::Word(_) => tree.as_str().is_some(),
        Type::Int(..) | Type::Number(..) | Type::Millis(..) => number(tree).is_some(),
        Type::Duration(..) => duration(tree).is_some(),
        Type::List(..) => tree.items().is_some(),
        Type::Map(..) | Type::Record(_) => tree.entries().is_some(),
        Type::Step => tree.entries().is_some(),
        Type::ActionStep => tree.get("type").is_some(),
        Type::Either(types) => types.iter().any(|ty| fits(ty, tree)),
    }
}

/// A number without a fraction; one beyond all integers is still whole, and out of limits.
fn whole(tree: &Tree) -> Option<f64> {
    number(tree).filter(|value| value.fract() == 0.0)
}

/// A number as people write it: short, however large it is.
fn plain(value: f64) -> String {
    if value.is_finite() && value.abs() >= 1e15 {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

pub(crate) fn number(tree: &Tree) -> Option<f64> {
    match tree.value {
        Value::Int(value) => Some(value as f64),
        Value::Float(value) => Some(value),
        _ => None,
    }
}

/// Seconds of a number or of a text such as `30s`.
pub(crate) fn duration(tree: &Tree) -> Option<f64> {
    number(tree).or_else(|| tree.as_str().and_then(grammar::seconds))
}

const TRUTH: &str = "true or false";

/// What a type takes, for people.
fn describe(ty: &'static Type) -> String {
    match ty {
        Type::Text(..) | Type::Template => "text".to_owned(),
        Type::Regex => "a regular expression as text".to_owned(),
        Type::Condition => "an expression".to_owned(),
        Type::Any | Type::Literal => "any value".to_owned(),
        Type::Null => "nothing".to_owned(),
        Type::Bool => TRUTH.to_owned(),
        Type::True => "only `true`".to_owned(),
        Type::Int(..) => "a whole number".to_owned(),
        Type::Number(..) => "a number".to_owned(),
        Type::Duration(..) => "seconds, or text such as `30s`".to_owned(),
        Type::Millis(..) => "milliseconds".to_owned(),
        Type::Word(words) => format!("one of {}", quoted(words.iter().copied())),
        Type::List(Type::Step, _) => "a list of steps".to_owned(),
        Type::List(..) => "a list".to_owned(),
        Type::Map(..) => "a map".to_owned(),
        Type::Record(record) => match record.keys.first() {
            Some(first) => format!("a map such as `{{{}: …}}`", first.name),
            None => "a map".to_owned(),
        },
        Type::Step | Type::ActionStep => "a step, which is a map with `type:`".to_owned(),
        Type::Either(types) => {
            let mut parts: Vec<String> = Vec::new();
            for ty in *types {
                let part = describe(ty);
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            parts.join(", or ")
        }
    }
}

fn names(record: &'static Record) -> String {
    let keys = record
        .all_keys()
        .filter(|key| key.instead == Instead::Canonical);
    quoted(keys.map(|key| key.name))
}

fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// A record with an article; one that is named after its key stands as that key.
fn article(record: &'static Record) -> String {
    let name = record.noun();
    let key = match record.name {
        "limits" | "config" | "retry" | "mcp" | "computed" => Some(record.name),
        name if name.contains('_') && record.find("id").is_none() => name.rsplit(' ').next(),
        _ => None,
    };
    match key {
        Some(key) => format!("`{key}`"),
        None if name.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {name}"),
        None => format!("a {name}"),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
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
