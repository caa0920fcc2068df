//! What a run wants done. A host does it and answers with events.

use std::sync::Arc;

use flow_model::graph::{By, OutputFormat, PromptKind};
use flow_model::tools::ContractSide;
use serde::{Deserialize, Serialize};

use super::action::AGENT_TIMEOUT;
use super::event::{ActionId, Failure, FailureKind};
use crate::value::Value;

/// Something a run wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Do this, and say how it ended.
    Act(Action),
    /// Say when this time has come.
    Sleep {
        /// Answered with [`super::Happening::Woke`].
        timer: ActionId,
        /// Milliseconds since 1970.
        until: u64,
    },
    /// This is no longer wanted; an answer would be ignored.
    Stop(ActionId),
    /// Apply [`super::Happening::Continued`] soon: the run has done much without waiting.
    Yield,
    /// A node began. For whoever watches; nothing is to be done.
    Entered(Place),
    /// A node ended. For whoever watches; nothing is to be done.
    Left {
        /// Where.
        place: Place,
        /// How.
        outcome: Ending,
        /// What comes next.
        next: Onward,
    },
    /// What a node says to people while it is under way. For whoever watches; nothing is to be done.
    Told {
        /// Where.
        place: Place,
        /// What.
        message: String,
    },
    /// The run is over.
    Finish(Finish),
}

/// Where in a run something is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The frame: 0 for the workflow itself, others for children of fan-outs.
    pub frame: u32,
    /// The node's id.
    pub node: String,
    /// The item of a `foreach` that it belongs to, such as `all.1`; empty outside of any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub within: String,
}

impl Place {
    /// What people and programs know it by: `all.1/ping`, or the node's id.
    #[must_use]
    pub fn name(&self) -> String {
        named(&self.within, &self.node)
    }
}

fn named(within: &str, node: &str) -> String {
    match within {
        "" => node.to_owned(),
        within => format!("{within}/{node}"),
    }
}

/// How a node ended, for whoever watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It did what was asked.
    Success,
    /// It failed.
    Failure(String),
    /// It did not end, or not find what it waited for, in time.
    Timeout(String),
    /// `when` did not hold.
    Skipped,
    /// It was stopped with its run, its fan-out or a step inside it.
    Stopped,
    /// It did what was asked, and no transition of it holds.
    Stuck(String),
}

impl Ending {
    /// The word for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Ending::Success => "success",
            Ending::Failure(_) | Ending::Stuck(_) => "failure",
            Ending::Timeout(_) => "timeout",
            Ending::Skipped => "skipped",
            Ending::Stopped => "stopped",
        }
    }

    /// What went wrong.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Ending::Failure(error) | Ending::Timeout(error) | Ending::Stuck(error) => Some(error),
            Ending::Success | Ending::Skipped | Ending::Stopped => None,
        }
    }
}

impl From<&Failure> for Ending {
    fn from(failure: &Failure) -> Self {
        match failure.kind {
            FailureKind::Timeout => Ending::Timeout(failure.message.clone()),
            FailureKind::NoTransition => Ending::Stuck(failure.message.clone()),
            _ => Ending::Failure(failure.message.clone()),
        }
    }
}

/// What comes after a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Onward {
    /// A node of the same body.
    Node(String),
    /// The body's end.
    End,
    /// Nothing leads on from here: the body has failed or was stopped.
    Nowhere,
}

impl Onward {
    /// The node.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        match self {
            Onward::Node(node) => Some(node),
            Onward::End | Onward::Nowhere => None,
        }
    }
}

/// An action to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Its number in the run.
    pub id: ActionId,
    /// The same for every attempt of one visit of a node: repeated work can be recognised by it.
    pub key: String,
    /// The frame and node it belongs to.
    pub frame: u32,
    /// The node's id.
    pub node: String,
    /// The item of a `foreach` that it belongs to, such as `all.1`; empty outside of any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub within: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Milliseconds since 1970 by which it must have ended.
    pub deadline: Option<u64>,
    /// What to do.
    pub what: Deed,
}

impl Action {
    /// Milliseconds that whoever does it may take, when it was handed out at this time.
    pub(crate) fn allowed(&self, since: u64) -> Option<u64> {
        let own = self.deadline.map(|deadline| deadline.saturating_sub(since));
        own.or(match self.what {
            Deed::Delegate { .. } | Deed::DelegateItem { .. } => Some(AGENT_TIMEOUT),
            Deed::Shell { .. }
            | Deed::Tool { .. }
            | Deed::Prompt { .. }
            | Deed::Call { .. }
            | Deed::Judge { .. }
            | Deed::Environment { .. } => None,
        })
    }

    /// What people and programs know its step by: `all.1/ping`, or the node's id.
    #[must_use]
    pub fn name(&self) -> String {
        named(&self.within, &self.node)
    }
}

/// What an action is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Deed {
    /// Run a command.
    Shell {
        /// The command, quoted and complete.
        command: String,
        /// Variables added to its environment.
        env: Vec<(String, String)>,
        /// Where it runs.
        working_directory: Option<String>,
        /// Who runs it.
        by: By,
        /// What its result is.
        output: OutputFormat,
        /// Why an agent has to run it.
        reason: Option<String>,
    },
    /// Call a tool.
    Tool {
        /// Its name.
        tool: String,
        /// Whether it is one of flow's own.
        builtin: bool,
        /// Its parameters.
        parameters: Value,
    },
    /// Tell or ask a person something.
    Prompt {
        /// What the person reads.
        message: String,
        /// What is asked.
        kind: PromptKind,
        /// What can be chosen.
        options: Vec<Value>,
    },
    /// Hand a task to an agent.
    Delegate {
        /// What the agent is told.
        instructions: String,
        /// Which agent; `None` for the one that drives the run.
        agent: Option<String>,
        /// A JSON Schema that the answer must satisfy.
        returns: Option<Value>,
        /// What was wrong with the answer before.
        complaint: Option<String>,
    },
    /// Hand one item of a fan-out to an agent.
    DelegateItem {
        /// Which agent.
        agent: String,
        /// The task's name.
        task: String,
        /// The task's inputs for this item.
        inputs: Value,
        /// Replaces the standard prompt.
        prompt: Option<String>,
    },
    /// Run another workflow.
    Call {
        /// Its name, unless a definition is given.
        workflow: Option<String>,
        /// A definition given inline.
        definition: Option<Value>,
        /// Its inputs.
        inputs: Value,
        /// Variables of a states workflow.
        variables: Value,
        /// The terminal session it runs in.
        session: Option<String>,
        /// The call itself names that session; else it is the caller's, which may have ended.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        names_session: bool,
        /// How many states it may execute.
        max_states: Option<u64>,
        /// Seconds it may take.
        execution_timeout: Option<f64>,
        /// Whether an inline definition is kept when it succeeds.
        save_on_success: Option<bool>,
        /// How many calls lie above it.
        depth: u32,
        /// How deep the calls above it allow calls to be.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_depth: Option<u8>,
        /// The whole response is wanted, not only the outputs.
        response: bool,
        /// The run that was called has failed, and is to go on from there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        goes_on: bool,
    },
    /// Look up environment variables in a terminal session; nothing is typed into it. Answered
    /// with those that are set, by name.
    Environment {
        /// The session.
        session: String,
        /// What they are to the workflow.
        side: ContractSide,
        /// Their names.
        variables: Vec<String>,
    },
    /// Ask which of several descriptions holds.
    Judge {
        /// Descriptions with the states they lead to.
        choices: Vec<(String, String)>,
        /// What there is to judge.
        result: Value,
    },
}

impl Deed {
    /// The field of the result that answers it, where that is one field.
    #[must_use]
    pub const fn answered_by(&self) -> Option<&'static str> {
        match self {
            Deed::Prompt { kind, .. } => Some(kind.answer()),
            Deed::Judge { .. } => Some("choice"),
            Deed::Delegate { .. } => Some("response"),
            Deed::DelegateItem { .. }
            | Deed::Shell { .. }
            | Deed::Tool { .. }
            | Deed::Environment { .. }
            | Deed::Call { .. } => None,
        }
    }

    /// The form in which its result is given, for whoever is asked.
    #[must_use]
    pub const fn answer_form(&self) -> &'static str {
        match self {
            Deed::Prompt { kind, .. } => match kind {
                PromptKind::Info => "nothing: submit without a result when the person has seen it",
                PromptKind::Confirm => "{\"confirmed\": true} or {\"confirmed\": false}",
                PromptKind::Text => "{\"input\": \"…\"}",
                PromptKind::Choice => "{\"selected\": …} with one of `options`",
            },
            Deed::Judge { .. } => {
                "{\"choice\": index} or {\"next_state\": name}, or {\"choice\": null} if none holds"
            }
            Deed::Delegate { returns: None, .. } => "{\"response\": \"…\"}",
            Deed::Delegate { .. } => "a value that satisfies the JSON Schema in `returns`",
            Deed::DelegateItem { .. } => "what was found or made, as any value",
            Deed::Tool { .. } => {
                "the tool's answer as it is; status \"failed\" with the error where it cannot be called"
            }
            Deed::Shell { .. } => "{\"stdout\": \"…\", \"stderr\": \"…\", \"exit_code\": …}",
            Deed::Call { .. } | Deed::Environment { .. } => "nothing: nobody is asked",
        }
    }

    /// An answer as the result it stands for: `true`, or `yes`, for `{confirmed: true}`.
    #[must_use]
    pub fn shape(&self, answer: Value) -> Value {
        if let Deed::Prompt { kind, options, .. } = self {
            return read_answer(*kind, options, answer);
        }
        match self.answered_by() {
            Some(field) if answer.get(field).is_none() => Value::map([(field, answer)]),
            _ => answer,
        }
    }
}

/// What somebody answers to a prompt as its result, however it reaches the run: alone or in its
/// field, as a value or as the text of one.
#[must_use]
pub fn read_answer(kind: PromptKind, options: &[Value], answer: Value) -> Value {
    let field = kind.answer();
    let (given, around) = match (&answer, answer.get(field)) {
        (Value::Map(around), Some(given)) => (given.clone(), Some(around.clone())),
        _ => (answer, None),
    };
    let text = |value: &Value| match value {
        Value::Str(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    let read = match kind {
        PromptKind::Info => given,
        PromptKind::Confirm => match &given {
            Value::Str(said) => match said.trim().to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => Value::Bool(true),
                "no" | "n" | "false" => Value::Bool(false),
                _ => given,
            },
            _ => given,
        },
        PromptKind::Text => match &given {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => Value::text(text(&given)),
            _ => given,
        },
        PromptKind::Choice if options.contains(&given) => given,
        PromptKind::Choice => {
            let mut meant = options.iter().filter(|it| text(it) == text(&given));
            match (meant.next(), meant.next()) {
                (Some(only), None) => only.clone(),
                _ => given,
            }
        }
    };
    match around {
        Some(mut around) => {
            Arc::make_mut(&mut around).0.insert(Arc::from(field), read);
            Value::Map(around)
        }
        None => Value::map([(field, read)]),
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// How.
    pub status: Status,
    /// The outputs, or what `return` gave.
    pub output: Value,
    /// Why it failed.
    pub error: Option<Failure>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has work to do.
    Running,
    /// It did what was asked.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}
