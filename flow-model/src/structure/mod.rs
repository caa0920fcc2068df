//! The first pass: does a tree have the shape the grammar describes?
//!
//! Everything past this pass may take keys, types and limits for granted; what this pass has
//! reported is simply absent there.

mod lost;
mod record;
mod step;
mod value;
mod words;

use std::collections::{HashMap, HashSet};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::grammar::{self, habit};
use crate::source::{Entry, Source, Span, Tree, Value};

pub(crate) use lost::Lost;
pub(crate) use step::doubled_type;
pub(crate) use value::{duration, number};
use words::TRUTH;

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
        ids: HashMap::new(),
        lists: 0,
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
    /// Ids of the graph whose steps are looked at.
    ids: HashMap<String, Span>,
    /// Lists of steps around the step that is looked at.
    lists: usize,
    errors: usize,
    spellings: HashSet<(&'static str, &'static str)>,
}

impl Pass<'_> {
    fn report(&mut self, finding: Diagnostic) {
        self.errors += usize::from(finding.severity == Severity::Error);
        self.out.findings.push(finding);
    }

    fn wrong_type(&mut self, tree: &Tree, what: &str, expected: &str) {
        self.misshapen(tree, what, expected, None);
    }

    /// The same, with how it is written.
    fn misshapen(&mut self, tree: &Tree, what: &str, expected: &str, shape: Option<String>) {
        let mut finding = Diagnostic::new(Code::WrongType, self.source.first_line(tree.span))
            .message(format!("{what} takes {expected}, not {}", tree.noun()))
            .label(format!("this is {}", tree.noun()));
        let quotable = matches!(tree.value, Value::Bool(_) | Value::Int(_) | Value::Float(_));
        self.lose(tree.span);
        if quotable && expected.contains("text") {
            finding = finding.help("put it in quotes if it is meant as text");
        }
        if let Some(shape) = shape {
            finding = finding.help(format!("write `{}: {shape}`", what.trim_matches('`')));
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

    /// The source of something that the reader will not see.
    fn lose(&mut self, span: Span) {
        let text = self.source.text().get(span.range()).unwrap_or_default();
        self.out.lost.text(text);
    }

    fn speaks(&mut self, word: &str) {
        self.out.speaks_js |= JS_WORDS.contains(&word);
    }
}
