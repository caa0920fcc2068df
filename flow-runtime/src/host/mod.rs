//! Hosts: they do what runs want and record what happened.

pub mod agent;
mod alarm;
mod asked;
mod background;
mod called;
mod deed;
mod driver;
mod execution_log;
mod included;
mod instructions;
mod judged;
mod keep;
mod local;
pub mod mcp;
mod memory;
mod orphans;
mod people;
mod presence;
mod recorded;
mod secrets;
mod sessions;
mod shell;
mod tools;
mod traces;
mod unbegun;
mod vault;
mod visits;

use std::future::Future;
use std::pin::Pin;

use flow_model::graph::{Graph, PromptKind};

pub use agent::Agents;
pub use background::Driven;
pub use called::{OpenTasks, Pending};
pub use execution_log::LogPage;
pub use judged::JUDGE_INSTRUCTIONS;
pub use local::{Error, Host, HostOptions, Report, ReportStatus, StartOptions, complete};
pub use memory::Memory;
pub use people::{Answers, BadAnswers, Nobody, judge_message};
pub use secrets::SecretWanted;
pub use tools::Toolbox;
pub use traces::{FieldTime, MOST_TRACES, Trace, Traces};
pub use visits::Visit;

use crate::journal::RunId;
use crate::run::{Effect, Failure};
use crate::value::Value;

/// A future that a trait object returns.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Finds the workflows that others call.
pub trait Workflows: Send + Sync {
    /// The workflow of a name.
    ///
    /// # Errors
    ///
    /// Why there is none.
    fn find(&self, name: &str) -> Result<Graph, NoWorkflow>;

    /// The workflow of a name, which may also stand in the directory of the definition that calls
    /// it.
    ///
    /// # Errors
    ///
    /// As for [`Workflows::find`].
    fn find_beside(
        &self,
        name: &str,
        _beside: Option<&std::path::Path>,
    ) -> Result<Graph, NoWorkflow> {
        self.find(name)
    }

    /// A workflow given as a definition.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    fn compile(&self, definition: &Value) -> Result<Graph, NoWorkflow>;

    /// Keeps a definition that was given whole and has succeeded, for reuse. `None` when nothing is
    /// kept here.
    ///
    /// # Errors
    ///
    /// Why it could not be kept.
    fn keep(&self, definition: &Value) -> Result<Option<Kept>, String> {
        let _ = definition;
        Ok(None)
    }
}

/// Why there is no workflow to run, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWorkflow {
    /// None is known by the name.
    #[error("{0}")]
    Unknown(String),
    /// There is a definition, and it cannot be run.
    #[error("{0}")]
    Invalid(String),
}

impl NoWorkflow {
    /// What the final state of a run is called that does not come about for this.
    #[must_use]
    pub const fn final_state(&self) -> &'static str {
        match self {
            NoWorkflow::Unknown(_) => "workflow_not_found",
            NoWorkflow::Invalid(_) => "definition_invalid",
        }
    }
}

/// A definition that can be found by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The name.
    pub name: String,
    /// Whether it was kept just now, and not known before.
    pub is_new: bool,
}

impl Kept {
    /// What became of the definition, for people and agents.
    #[must_use]
    pub fn sentence(&self) -> String {
        let name = &self.name;
        match self.is_new {
            true => format!("the definition is stored as `{name}`"),
            false => format!(
                "the same definition is stored already, as `{name}`; it is not stored again"
            ),
        }
    }
}

/// Answers what runs ask of people.
pub trait People: Send + Sync {
    /// Asks, and waits for the answer if somebody is there to give one.
    fn ask<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Answer>;

    /// Asks until the answer is valid, or there is none. Whoever can lose sight of the person
    /// between two questions keeps them in sight here.
    fn ask_until<'a>(&'a self, question: Question<'a>, valid: Valid<'a>) -> Boxed<'a, Answer> {
        Box::pin(async move {
            let mut complaint = question.complaint.map(str::to_owned);
            loop {
                let again = Question {
                    complaint: complaint.as_deref(),
                    ..question
                };
                match self.ask(again).await.checked(valid) {
                    Answer::Unfit(reason) => complaint = Some(reason),
                    answer => return answer,
                }
            }
        })
    }

    /// Asks for a secret that a step needs, without showing it. `None` when nobody is there: the
    /// run waits until somebody goes on with it who has the secret.
    fn secret<'a>(&'a self, _wanted: SecretWanted<'a>) -> Boxed<'a, Option<String>> {
        Box::pin(async { None })
    }
}

/// Whether a question can be answered so, or why not.
pub type Valid<'a> = &'a (dyn Fn(&Value) -> Result<(), String> + Send + Sync);

/// Something asked of a person.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The run that asks.
    pub run: RunId,
    /// The step that asks.
    pub step: &'a str,
    /// Every name that the step goes by, the most exact one first, its bare id last.
    pub names: &'a [String],
    /// What the person reads.
    pub message: &'a str,
    /// What is asked.
    pub kind: Asked<'a>,
    /// Why the answer before was not valid.
    pub complaint: Option<&'a str>,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// A prompt, with its options.
    Prompt(PromptKind, &'a [Value]),
    /// Which description holds: descriptions with the states they lead to.
    Judgement(&'a [(String, String)]),
    /// The result of a task that is an agent's to do: whoever has one beforehand gives it.
    Delegate,
}

/// What a person says.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// This.
    Given(Value),
    /// Nothing, on purpose.
    Declined(String),
    /// Something that cannot be an answer, for this reason: they are asked again.
    Unfit(String),
    /// Nothing yet: the run waits.
    Later,
}

impl Answer {
    /// The same, unfit where it is not valid.
    #[must_use]
    pub fn checked(self, valid: Valid<'_>) -> Answer {
        match self {
            Answer::Given(result) => match valid(&result) {
                Ok(()) => Answer::Given(result),
                Err(reason) => Answer::Unfit(reason),
            },
            other => other,
        }
    }
}

/// Tools that a host provides.
pub trait Tools: Send + Sync {
    /// Whether a tool of this name is provided here, so that another provider need not be asked.
    fn has(&self, tool: &str) -> bool {
        let _ = tool;
        true
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// Why it could not do what was asked; a tool that nobody provides is such a failure.
    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>>;
}

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// The run that calls.
    pub run: RunId,
    /// The tool.
    pub tool: &'a str,
    /// Its parameters.
    pub parameters: &'a Value,
    /// The same whenever this call is repeated.
    pub key: &'a str,
}

/// Provides no tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Tools for NoTools {
    fn has(&self, _tool: &str) -> bool {
        false
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        let message = format!("no tool `{}` is available here", call.tool);
        Box::pin(async move { Err(Failure::new(crate::run::FailureKind::Action, message)) })
    }
}

/// Is told what a run does as it does it.
pub trait Watch: Send + Sync {
    /// An effect is about to be acted on.
    fn effect(&self, run: RunId, graph: &Graph, effect: &Effect);

    /// A command has written something.
    fn output(&self, run: RunId, step: &str, text: &[u8]);
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWatch;

impl Watch for NoWatch {
    fn effect(&self, _run: RunId, _graph: &Graph, _effect: &Effect) {}

    fn output(&self, _run: RunId, _step: &str, _text: &[u8]) {}
}
