//! Events that cannot be applied, and why: such an event is not to be recorded.

use flow_model::graph::{Kind, Node, PromptKind, ToolRef};

use super::data::Data;
use super::effect::{Deed, Status};
use super::event::{ActionId, Happening};
use super::frame::Waits;
use super::path::{changes, may_be_changed};
use super::returns::missed;
use super::{Run, settle};
use crate::value::Value;

/// Why an event cannot be applied. Such an event is not to be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The run has begun already.
    #[error("the run has begun already")]
    AlreadyStarted,
    /// The run has not begun.
    #[error("the run has not begun")]
    NotStarted,
    /// The run is over.
    #[error("the run is over: it {0}")]
    Over(&'static str),
    /// The run has not failed, so there is nothing to resume.
    #[error("the run has not failed; there is nothing to try again")]
    NotFailed,
    /// A run that is to go on may not execute a single step.
    #[error("the run has executed {executed} steps; allow more than that, not {allowed}")]
    TooFew {
        /// Executions it would be allowed.
        allowed: u64,
        /// Executions it had.
        executed: u64,
    },
    /// The answer to a prompt is not valid.
    #[error("the answer is not valid: {0}")]
    Invalid(String),
    /// A result is not what its tool is declared to return.
    #[error("the result is not what the tool `{tool}` is declared to return: {faults}")]
    Unfit {
        /// The tool.
        tool: String,
        /// What is wrong, as sentences that name the field.
        faults: String,
    },
    /// A change of state does not fit.
    #[error("{0}")]
    State(String),
    /// A task cannot be begun.
    #[error("{0}")]
    Task(&'static str),
}

impl Run {
    /// Whether an event may be applied, and so recorded. Late and repeated results may: they are
    /// recorded and change nothing.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn check(&self, what: &Happening) -> Result<(), Refusal> {
        let Some(data) = &self.data else {
            return match what {
                Happening::Started(_) => Ok(()),
                _ => Err(Refusal::NotStarted),
            };
        };
        match what {
            Happening::Started(_) => Err(Refusal::AlreadyStarted),
            Happening::Resumed(allowance) if data.status == Status::Failed => {
                match allowance.max_steps {
                    Some(allowed) if allowed <= data.steps => Err(Refusal::TooFew {
                        allowed,
                        executed: data.steps,
                    }),
                    Some(_) | None => Ok(()),
                }
            }
            // One that has ended otherwise stays so; one that goes on needs nothing.
            Happening::Resumed(_) => over(data).and(Err(Refusal::NotFailed)),
            Happening::Updated { updates } => {
                may_be_changed(data)?;
                let changes = changes(self.program.graph(), data, updates)?;
                let mut trial = data.store.clone();
                trial
                    .apply(&changes, self.program.bounds())
                    .map(drop)
                    .map_err(|failure| Refusal::State(failure.message))
            }
            Happening::Completed { action, result } => self.check_answer(data, *action, result),
            // What must have an answer cannot be done without one.
            Happening::Done { action } => self.check_answer(data, *action, &Value::Null),
            Happening::Cancelled { .. }
            | Happening::Checkpointed { .. }
            | Happening::Rested
            | Happening::GivenUp { .. } => over(data),
            Happening::Taken { tasks, item } => {
                over(data)?;
                self.check_taken(*tasks, *item)
            }
            Happening::Failed { .. }
            | Happening::TimedOut { .. }
            | Happening::Declined { .. }
            | Happening::Woke { .. }
            | Happening::Late { .. }
            | Happening::Continued => Ok(()),
        }
    }

    /// Whether the result of a tool is what the tool is declared to return. Asked of what is to be
    /// recorded alone: a run whose journal holds another result can still be read.
    ///
    /// # Errors
    ///
    /// What of it is not.
    pub(crate) fn check_returned(&self, what: &Happening) -> Result<(), Refusal> {
        let (Some(data), Happening::Completed { action, result }) = (&self.data, what) else {
            return Ok(());
        };
        let Some((node, _)) = self.asked(data, *action) else {
            return Ok(());
        };
        let Kind::Tool {
            tool: ToolRef::Declared(index),
            ..
        } = &node.kind
        else {
            return Ok(());
        };
        let Some(tool) = self.program.graph().tools.get(usize::from(*index)) else {
            return Ok(());
        };
        let faults = missed(tool, result);
        match faults.is_empty() {
            true => Ok(()),
            false => Err(Refusal::Unfit {
                tool: tool.name.to_string(),
                faults: faults.join("; "),
            }),
        }
    }

    /// Whether the answer to a prompt, or a judgement, is valid.
    fn check_answer(&self, data: &Data, action: ActionId, result: &Value) -> Result<(), Refusal> {
        let Some((node, deed)) = self.asked(data, action) else {
            return Ok(());
        };
        let invalid = |message: String| Err(Refusal::Invalid(message));
        let (kind, options) = match deed {
            Deed::Prompt { kind, options, .. } => (kind, options),
            Deed::Judge { choices, .. } if !settle::is_judgement(choices, result) => {
                let states: Vec<String> = choices
                    .iter()
                    .enumerate()
                    .map(|(index, (_, state))| format!("{index} (`{state}`)"))
                    .collect();
                return invalid(format!(
                    "answer `{{\"choice\": …}}` with the number or the name of one of {}, or null if none holds",
                    states.join(", ")
                ));
            }
            _ => return Ok(()),
        };
        match kind {
            PromptKind::Info => Ok(()),
            PromptKind::Confirm => match result.get("confirmed") {
                Some(Value::Bool(_)) => Ok(()),
                _ => {
                    invalid("answer `{\"confirmed\": true}` or `{\"confirmed\": false}`".to_owned())
                }
            },
            PromptKind::Choice => match result.get("selected") {
                Some(selected) if options.contains(selected) => Ok(()),
                _ => {
                    let allowed: Vec<String> = options.iter().map(Value::to_string).collect();
                    invalid(format!(
                        "answer `{{\"selected\": …}}` with one of {}",
                        allowed.join(", ")
                    ))
                }
            },
            PromptKind::Text => {
                let Some(input @ Value::Str(_)) = result.get("input") else {
                    return invalid("answer `{\"input\": \"…\"}` with a text".to_owned());
                };
                let Kind::Prompt(prompt) = &node.kind else {
                    return Ok(());
                };
                match crate::input::check_text(&prompt.validation, input) {
                    None => Ok(()),
                    Some(fault) => invalid(fault.to_string()),
                }
            }
        }
    }

    /// The node and deed of an action under way.
    fn asked<'a>(&'a self, data: &'a Data, id: ActionId) -> Option<(&'a Node, &'a Deed)> {
        let frame = data.frames.get(data.waiting.get(&id)?)?;
        let step = frame.step.as_ref()?;
        let (Waits::Action(action) | Waits::Judgement { action, .. }) = &step.waits else {
            return None;
        };
        let node = self.node_of(frame, step.node)?;
        (action.id == id).then_some((node, &action.what))
    }
}

fn over(data: &Data) -> Result<(), Refusal> {
    match data.status {
        Status::Running => Ok(()),
        Status::Completed => Err(Refusal::Over("completed")),
        Status::Failed => Err(Refusal::Over("failed")),
        Status::Cancelled => Err(Refusal::Over("was cancelled")),
    }
}
