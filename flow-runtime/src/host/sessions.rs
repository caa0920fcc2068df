//! Terminals of a host: their tools, their environments, and which run has opened which.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow_model::graph::{Graph, Kind, ToolRef};
use flow_model::tools::{self, ListTerminalSessionsRequest, Toolset};
use serde_json::Value as Json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::local::{Host, StartOptions, now};
use crate::journal::RunId;
use crate::run::{Action, Deed, Failure, FailureKind, Happening, Status};
use crate::terminal::{CallError, Place, Terminals};
use crate::value::Value;

/// Longer than any run waits for a prompt that has no limit of its own.
const FOR_EVER: u64 = 24 * 60 * 60 * 1000;
/// How much earlier than the limit the wait ends, so that there is time to say why.
const MARGIN: u64 = 100;

/// Terminal sessions that runs have opened, or are about to.
#[derive(Default)]
pub(super) struct OpenedSessions {
    by_run: Mutex<HashMap<RunId, Vec<Opening>>>,
    /// Who shares the sessions of runs, where somebody does.
    circles: Mutex<HashMap<RunId, String>>,
}

/// A session that is being opened, or was. It goes on when its run does not: only then is it known
/// what is to be closed.
type Opening = JoinHandle<Option<String>>;

impl OpenedSessions {
    fn by_run(&self) -> MutexGuard<'_, HashMap<RunId, Vec<Opening>>> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: RunId, sessions: impl IntoIterator<Item = Opening>) {
        self.by_run().entry(run).or_default().extend(sessions);
    }

    fn circles(&self) -> MutexGuard<'_, HashMap<RunId, String>> {
        self.circles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run share its sessions, and those of the runs it calls, with a circle.
    pub(super) fn share(&self, run: RunId, circle: String) {
        self.circles().insert(run, circle);
    }

    fn take(&self, run: RunId) -> Vec<Opening> {
        self.by_run().remove(&run).unwrap_or_default()
    }
}

/// Whether a tool is one of terminals.
pub(super) fn is_terminal(tool: &str) -> bool {
    tools::find(tool).is_some_and(|tool| tool.toolset == Toolset::Terminal)
}

/// Whether a workflow reads a session's environment, or works in one itself.
fn works_in_terminals(graph: &Graph) -> bool {
    if !graph.arguments.is_empty() || !graph.return_values.is_empty() {
        return true;
    }
    let cleanups = graph.tasks.iter().filter_map(|task| task.on_error.as_ref());
    let bodies = [&graph.body, &graph.on_error.body]
        .into_iter()
        .chain(graph.tasks.iter().map(|task| &task.body))
        .chain(cleanups.map(|on_error| &on_error.body));
    let mut nodes = bodies.flat_map(|body| body.nodes.iter());
    nodes.any(|node| match &node.kind {
        Kind::Tool {
            tool: ToolRef::Builtin(name),
            ..
        } => tools::find(name).is_some_and(|tool| tool.takes_session()),
        _ => false,
    })
}

/// Whether doing something twice would type twice: what a dead host began of it is not repeated.
pub(super) fn types(deed: &Deed) -> bool {
    match deed {
        Deed::Tool {
            tool,
            builtin: true,
            ..
        } => matches!(tool.as_str(), "send_input" | "run_command"),
        _ => false,
    }
}

/// That something was typed by a host that is gone, or was not.
pub(super) fn interrupted(action: &Action) -> Happening {
    let message = "the process that typed this into the terminal ended before it was known to be \
                   done; it is not typed again";
    Happening::Failed {
        action: action.id,
        error: Failure::new(FailureKind::Action, message),
        result: Value::Null,
    }
}

impl Host {
    /// Calls a tool of terminals.
    pub(super) async fn in_terminal(
        &self,
        terminals: &Terminals,
        run: RunId,
        action: &Action,
        tool: &str,
        parameters: &Value,
    ) -> Option<Happening> {
        let terminals = &terminals.of(&self.circle(run));
        let answer = match tool {
            "open_terminal" => {
                self.open_terminal(terminals, run, parameters.to_json())
                    .await?
            }
            _ => terminals.call(tool, parameters.to_json()).await,
        };
        Some(match answer {
            Ok(answer) => Happening::Completed {
                action: action.id,
                result: Value::from(&answer),
            },
            Err(error) => Happening::Failed {
                action: action.id,
                error: Failure::new(FailureKind::Action, error.to_string()),
                result: Value::Null,
            },
        })
    }

    /// With whom a run shares its sessions: whoever started it, else the runs that belong together.
    fn circle(&self, run: RunId) -> String {
        let mut run = run;
        loop {
            if let Some(circle) = self.inner.opened.circles().get(&run) {
                return circle.clone();
            }
            match self.journal().run(run).ok().and_then(|run| run.parent) {
                Some(parent) => run = parent,
                None => return run.to_string(),
            }
        }
    }

    /// The session that a run which is given none works in until it opens one: the latest of those
    /// that share theirs with it. A workflow that has no use for terminals has none.
    pub(super) fn usual_session(
        &self,
        graph: &Graph,
        run: RunId,
        options: &StartOptions,
    ) -> Option<String> {
        let terminals = self.inner.options.terminals.as_ref()?;
        let names_one = options.variables.get("session_id").is_some();
        if names_one || !works_in_terminals(graph) {
            return None;
        }
        let circle = match (&options.circle, options.parent) {
            (Some(circle), _) => circle.clone(),
            (None, Some((parent, _))) => self.circle(parent),
            (None, None) => run.to_string(),
        };
        terminals.of(&circle).latest()
    }

    /// Opens a session that is the run's to look after, also when the run stops meanwhile.
    async fn open_terminal(
        &self,
        terminals: &Terminals,
        run: RunId,
        parameters: Json,
    ) -> Option<Result<Json, CallError>> {
        let (tell, answer) = oneshot::channel();
        let terminals = terminals.clone();
        let opening = tokio::spawn(async move {
            let answer = terminals.call("open_terminal", parameters).await;
            let opened = answer.as_ref().ok();
            let session = opened.and_then(|it| it["session_id"].as_str().map(str::to_owned));
            // Whoever asked may be gone.
            let _ = tell.send(answer);
            session
        });
        self.inner.opened.add(run, [opening]);
        answer.await.ok()
    }

    /// The variables of a session that are set, once its shell is at its prompt.
    pub(super) async fn environment(
        &self,
        action: &Action,
        session: &str,
        variables: &[String],
    ) -> Result<Value, Failure> {
        let failed = |message: String| Failure::new(FailureKind::Action, message);
        let Some(terminals) = &self.inner.options.terminals else {
            return Err(failed("there are no terminals here".to_owned()));
        };
        let told = |error: crate::terminal::Error| failed(error.to_string());
        let left = action
            .deadline
            .map(|deadline| deadline.saturating_sub(now()));
        let left = left.unwrap_or(FOR_EVER).saturating_sub(MARGIN);
        let limit = Duration::from_millis(left);
        match terminals.prompt(session, limit).await.map_err(told)? {
            // What is no shell is told by the look-up itself.
            Place::Prompt | Place::NoShell => {}
            Place::Typed => {
                return Err(failed(format!(
                    "the prompt of the session `{session}` holds text that was typed and not \
                     entered; finish it, or clear it with the key ctrl-c"
                )));
            }
            Place::Asking => {
                let front = self.in_front(terminals, session).await;
                let front = front.unwrap_or_else(|| "a program".to_owned());
                return Err(failed(format!(
                    "in the session `{session}` {front} is in front and waits for input, not the \
                     shell at its prompt; end it first"
                )));
            }
            Place::Elsewhere => {
                let front = self.in_front(terminals, session).await;
                let busy = front.map_or_else(String::new, |program| format!(": it runs {program}"));
                return Err(failed(format!(
                    "the session `{session}` did not come back to its prompt in time{busy}"
                )));
            }
            Place::Gone => {
                return Err(failed(format!("the session `{session}` has ended")));
            }
        }
        let snapshot = terminals.environment(session).map_err(told)?;
        Ok(Value::map(variables.iter().filter_map(|name| {
            let value = snapshot.get(name)?;
            Some((name, Value::text(value)))
        })))
    }

    /// The program that a session runs.
    async fn in_front(&self, terminals: &Terminals, session: &str) -> Option<String> {
        let listed = terminals.list(ListTerminalSessionsRequest::default()).await;
        let mut sessions = listed.sessions.into_iter();
        sessions.find(|it| it.session_id == session)?.foreground
    }

    /// What becomes of the sessions that a run has opened: those of one that failed or was
    /// cancelled are closed, those of one that completed stay, for whoever called it to look after.
    pub(super) async fn release_sessions(&self, run: RunId, status: Status) {
        if status != Status::Running {
            self.inner.opened.circles().remove(&run);
        }
        match status {
            Status::Running => {}
            Status::Completed => {
                let parent = self.journal().run(run).ok().and_then(|run| run.parent);
                let sessions = self.inner.opened.take(run);
                if let Some(parent) = parent
                    && !sessions.is_empty()
                {
                    self.inner.opened.add(parent, sessions);
                }
            }
            Status::Failed | Status::Cancelled => {
                let sessions = self.inner.opened.take(run);
                if let Some(terminals) = &self.inner.options.terminals {
                    for opening in sessions {
                        if let Ok(Some(session)) = opening.await {
                            // One that has ended already is what was wanted.
                            let _ = terminals.close(&session).await;
                        }
                    }
                }
            }
        }
    }
}
