//! Terminals of a host: their tools, their environments, and which run has opened which.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use flow_model::graph::{Graph, Kind, ToolRef};
use flow_model::tools::{self, ListTerminalSessionsRequest, Toolset};
use serde_json::Value as Json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::local::{Error, Host, StartOptions, now};
use crate::journal::RunId;
use crate::run::frame::ROOT;
use crate::run::{Action, Deed, Failure, FailureKind, Happening, Run, Status};
use crate::terminal::{self, CallError, Place, Terminals, Unnamed};
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
struct Opening {
    opened: JoinHandle<()>,
    session: Arc<OnceLock<String>>,
}

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

    /// The sessions of runs that are not over.
    fn owned(&self) -> Vec<String> {
        let by_run = self.by_run();
        let openings = by_run.values().flatten();
        openings
            .filter_map(|opening| opening.session.get().cloned())
            .collect()
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
    any_node(graph, |kind| match kind {
        Kind::Tool {
            tool: ToolRef::Builtin(name),
            ..
        } => tools::find(name).is_some_and(|tool| tool.takes_session()),
        _ => false,
    })
}

/// Whether a workflow works in terminals, or calls others that may.
fn may_need_session(graph: &Graph) -> bool {
    works_in_terminals(graph) || any_node(graph, |kind| matches!(kind, Kind::Call(_)))
}

fn any_node(graph: &Graph, is_meant: impl Fn(&Kind) -> bool) -> bool {
    let cleanups = graph.tasks.iter().filter_map(|task| task.on_error.as_ref());
    let bodies = [&graph.body, &graph.on_error.body]
        .into_iter()
        .chain(graph.tasks.iter().map(|task| &task.body))
        .chain(cleanups.map(|on_error| &on_error.body));
    let mut nodes = bodies.flat_map(|body| body.nodes.iter());
    nodes.any(|node| is_meant(&node.kind))
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
    /// Calls a tool of terminals. `closed` is the session that the run had, where it has none any
    /// more: it goes on in nobody else's.
    pub(super) async fn in_terminal(
        &self,
        terminals: &Terminals,
        run: RunId,
        action: &Action,
        tool: &str,
        parameters: &Value,
        closed: Option<&str>,
    ) -> Option<Happening> {
        let unnamed = match closed {
            Some(session) => Unnamed::Closed(session.to_owned()),
            None if tool == "exit_terminal" => Unnamed::NoneToClose,
            None => Unnamed::Latest {
                except: self.inner.opened.owned(),
            },
        };
        let terminals = terminals.of(&self.circle(run)).meaning(unnamed);
        let terminals = &terminals.interrupting(action.deadline);
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
                error: Failure::new(FailureKind::Action, format!("`{}`: {error}", action.node)),
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

    /// The session that a run which is given none works in until it has one: the latest of those
    /// who share theirs with it, unless another run that is not over has opened it. A workflow that
    /// has no use for terminals has none.
    pub(super) fn near_session(
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
        let except = self.inner.opened.owned();
        let near = terminals.of(&circle).meaning(Unnamed::Latest { except });
        near.latest()
    }

    /// Whether a run can go on here: its terminal session is not that of another process.
    ///
    /// # Errors
    ///
    /// [`Error::SessionElsewhere`].
    pub(super) fn expect_session_here(&self, run: &Run) -> Result<(), Error> {
        let session = run.data().and_then(|data| {
            let root = data.frames.get(&ROOT);
            data.session_at_hand(root)
        });
        let Some(session) = session else {
            return Ok(());
        };
        let terminals = self.inner.options.terminals.as_ref();
        let is_here = terminals.is_some_and(|terminals| terminals.exists(session));
        if is_here || !may_need_session(run.program().graph()) {
            return Ok(());
        }
        match terminal::owner_of(session).filter(|owner| *owner != std::process::id()) {
            Some(owner) => Err(Error::SessionElsewhere {
                session: session.to_owned(),
                owner,
            }),
            None => Ok(()),
        }
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
        let session = Arc::new(OnceLock::new());
        let known = Arc::clone(&session);
        let opened = tokio::spawn(async move {
            let answer = terminals.call("open_terminal", parameters).await;
            let opened = answer.as_ref().ok();
            if let Some(session) = opened.and_then(|it| it["session_id"].as_str()) {
                let _ = known.set(session.to_owned());
            }
            // Whoever asked may be gone.
            let _ = tell.send(answer);
        });
        self.inner.opened.add(run, [Opening { opened, session }]);
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
                        let _ = opening.opened.await;
                        if let Some(session) = opening.session.get() {
                            // One that has ended already is what was wanted.
                            let _ = terminals.close(session).await;
                        }
                    }
                }
            }
        }
    }
}
