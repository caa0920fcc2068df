//! What is done for each step, for a person who wants to know.

use std::sync::Arc;

use flow_model::graph::Graph;
use flow_runtime::host::Watch;
use flow_runtime::journal::RunId;
use flow_runtime::run::{Deed, Effect};

use super::screen::Screen;
use crate::output::clean;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// What is done.
    Info,
    /// Every effect of every event.
    Debug,
}

impl Level {
    /// As the flag says, else the environment; none for nothing.
    ///
    /// # Errors
    ///
    /// What the environment says, when that is no level.
    pub(super) fn asked(flags: u8) -> Result<Option<Self>, String> {
        let variable = std::env::var("FLOW_LOG").unwrap_or_default();
        Ok(match (flags, variable.to_ascii_lowercase().as_str()) {
            (0, "info") | (1, _) => Some(Level::Info),
            (0, "debug" | "trace") | (2.., _) => Some(Level::Debug),
            (0, "" | "off" | "error" | "warn") => None,
            (0, _) => return Err(variable),
        })
    }
}

/// Tells it beside the progress.
pub(super) struct Details {
    pub(super) screen: Arc<Screen>,
    pub(super) level: Level,
}

impl Watch for Details {
    fn effect(&self, run: RunId, graph: &Graph, effect: &Effect) {
        let told = match (self.level, effect) {
            (Level::Debug, effect) => Some(format!("{run} {effect:?}")),
            (Level::Info, Effect::Act(action)) => {
                let again = match action.attempt {
                    1 => String::new(),
                    attempt => format!(" (attempt {attempt})"),
                };
                Some(format!("{}{again}: {}", action.name(), done(&action.what)))
            }
            (Level::Info, _) => None,
        };
        if let Some(told) = told {
            self.screen.say(&self.screen.paint.dim(&clean(&told)));
        }
        self.screen.effect(run, graph, effect);
    }

    fn output(&self, run: RunId, step: &str, text: &[u8]) {
        self.screen.output(run, step, text);
    }
}

/// What an action does, on one line.
fn done(deed: &Deed) -> String {
    match deed {
        Deed::Shell { command, .. } => format!("$ {command}"),
        Deed::Tool {
            tool, parameters, ..
        } => format!("calls the tool {tool} with {parameters}"),
        Deed::Prompt { message, .. } => format!("asks: {message}"),
        Deed::Delegate { agent, .. } => match agent {
            Some(agent) => format!("hands a task to @{agent}"),
            None => "hands a task to the agent".to_owned(),
        },
        Deed::DelegateItem { agent, task, .. } => format!("hands `{task}` to {agent}"),
        Deed::Call { workflow, .. } => match workflow {
            Some(workflow) => format!("runs the workflow {workflow}"),
            None => "runs a workflow given with it".to_owned(),
        },
        Deed::Environment { session, .. } => format!("looks at the terminal {session}"),
        Deed::Judge { .. } => "asks which way to go".to_owned(),
    }
}
