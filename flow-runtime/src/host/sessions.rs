//! Terminals of a host: their tools, their environments, and what becomes of those of a run.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use flow_model::graph::{Graph, Kind, ToolRef};
use flow_model::tools::{self, ListTerminalSessionsRequest, OpenTerminalRequest, Toolset};
use serde_json::Value as Json;

use super::called::calls;
use super::deed::Doing;
use super::driver::{Driver, look};
use super::local::{Error, Host, Inner, StartOptions, now};
use crate::journal::{self, RunId, Status};
use crate::run::{self, Action, Deed, Failure, FailureKind, Happening, Run};
use crate::terminal::{self, CallError, Place, Terminals, Unnamed, Untold};
use crate::value::Value;

/// Longer than any run waits for a prompt that has no limit of its own.
const FOR_EVER: u64 = 24 * 60 * 60 * 1000;
/// How much earlier than the limit the wait ends, so that there is time to say why.
const MARGIN: u64 = 100;

/// What a host knows of the sessions of its runs. Whose own a session is, the session itself knows.
#[derive(Default)]
pub(super) struct RunSessions {
    /// Who shares the sessions of runs, where somebody does.
    circles: Mutex<HashMap<RunId, String>>,
    /// Runs that can only go on here, where their sessions are, and that were let go of while they
    /// wait for others that they have called; with those.
    left: Mutex<HashMap<RunId, Vec<RunId>>>,
    /// Whether somebody looks how those end, and the runs that have sessions of their own.
    attended: Mutex<bool>,
}

impl RunSessions {
    fn circles(&self) -> MutexGuard<'_, HashMap<RunId, String>> {
        self.circles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> MutexGuard<'_, HashMap<RunId, Vec<RunId>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attended(&self) -> MutexGuard<'_, bool> {
        self.attended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a run share its sessions, and those of the runs it calls, with a circle.
    pub(super) fn share(&self, run: RunId, circle: String) {
        self.circles().insert(run, circle);
    }
}

/// Somebody looks how runs end; when the runtime that they look from ends, another may.
struct Attendance {
    host: Weak<Inner>,
    over: bool,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if let Some(inner) = self.host.upgrade().filter(|_| !self.over) {
            *inner.sessions.attended() = false;
        }
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

/// The sessions that a run cannot go on without: that of the workflow, and those of its tasks under
/// way.
fn needed_sessions(run: &Run) -> BTreeSet<&str> {
    let Some(data) = run.data() else {
        return BTreeSet::new();
    };
    let frames = data.frames.values();
    let sessions = frames.filter_map(|frame| data.session_at_hand(Some(frame)));
    let sessions: BTreeSet<&str> = sessions.collect();
    match !sessions.is_empty() && may_need_session(run.program().graph()) {
        true => sessions,
        false => BTreeSet::new(),
    }
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

impl Driver {
    /// Whether the run can go on here: its terminal session is not that of another process.
    ///
    /// # Errors
    ///
    /// [`Error::SessionElsewhere`].
    pub(super) fn expect_session_here(&self) -> Result<(), Error> {
        match self.host.session_elsewhere(&self.run) {
            Some((session, owner)) => Err(Error::SessionElsewhere {
                session: session.to_owned(),
                owner,
            }),
            None => Ok(()),
        }
    }

    /// The process in which alone the run goes on, because it has the terminal session.
    pub(super) fn kept_in(&self) -> Option<u32> {
        let goes_on = self.run.status() == run::Status::Running;
        let (_, owner) = self.host.session_elsewhere(&self.run).filter(|_| goes_on)?;
        Some(owner)
    }

    /// Nobody here drives the run from now on. If it can only go on here, it does when what it has
    /// called has ended elsewhere.
    pub(super) fn leave_here(&self) -> Result<(), Error> {
        let mut awaited = Vec::new();
        if self.host.goes_on_here(self.id, &self.run, &mut awaited)? && !awaited.is_empty() {
            self.host.inner.sessions.left().insert(self.id, awaited);
            self.host.attend_sessions();
        }
        Ok(())
    }
}

impl Host {
    /// Calls a tool of terminals. A run that had a session and has none any more goes on in nobody
    /// else's.
    pub(super) async fn in_terminal(
        &self,
        terminals: &Terminals,
        doing: &Doing,
        action: &Action,
        tool: &str,
        parameters: &Value,
    ) -> Happening {
        let run = doing.run;
        let unnamed = match &doing.closed {
            Some(session) => Unnamed::Closed(session.clone()),
            None if tool == "exit_terminal" => Unnamed::NoneToClose,
            None => Unnamed::LatestFree,
        };
        let terminals = terminals.of(&self.circle(run)).meaning(unnamed);
        let (host, left) = (Arc::downgrade(&self.inner), action.clone());
        let terminals = &terminals
            .owned_by(run)
            .interrupting(action.deadline)
            .telling_what_is_left(Arc::new(move |text| {
                if let Some(inner) = host.upgrade().filter(|_| !text.is_empty()) {
                    Host { inner }.wrote(run, &left, &text);
                }
            }));
        let answer = match tool {
            "open_terminal" => {
                let opened = self.open_terminal(terminals, parameters.to_json()).await;
                opened.map(|(answer, untold)| {
                    doing.opened(untold);
                    answer
                })
            }
            _ => terminals.call(tool, parameters.to_json()).await,
        };
        match answer {
            Ok(answer) => Happening::Completed {
                action: action.id,
                result: Value::from(&answer),
            },
            Err(error) => Happening::Failed {
                action: action.id,
                error: Failure::new(FailureKind::Action, format!("`{}`: {error}", action.node)),
                result: Value::Null,
            },
        }
    }

    /// With whom a run shares its sessions: whoever started it, else the runs that belong together.
    fn circle(&self, run: RunId) -> String {
        let mut run = run;
        loop {
            if let Some(circle) = self.inner.sessions.circles().get(&run) {
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
        let near = terminals.of(&circle).meaning(Unnamed::LatestFree);
        near.latest()
    }

    pub(super) fn has_session(&self, session: &str) -> bool {
        let terminals = self.inner.options.terminals.as_ref();
        terminals.is_some_and(|terminals| terminals.exists(session))
    }

    /// The session that a run cannot go on without and that another process has, with that.
    pub(super) fn session_elsewhere<'r>(&self, run: &'r Run) -> Option<(&'r str, u32)> {
        let needed = needed_sessions(run);
        if needed.iter().any(|session| self.has_session(session)) {
            return None;
        }
        let here = std::process::id();
        needed.into_iter().find_map(|session| {
            let owner = terminal::owner_of(session).filter(|owner| *owner != here)?;
            Some((session, owner))
        })
    }

    /// Whether a run can only go on here, itself or in one that it has called and waits for: who ends
    /// what those wait for elsewhere cannot go on with it. Collects all that is waited for, also
    /// what has ended by now.
    fn goes_on_here(&self, id: RunId, run: &Run, awaited: &mut Vec<RunId>) -> Result<bool, Error> {
        let mut needed = needed_sessions(run).into_iter();
        let mut is_here = needed.any(|session| self.has_session(session));
        for called in calls(id, run) {
            awaited.push(called);
            match Driver::open(self.clone(), called) {
                Ok(child) if child.run.status() == run::Status::Running => {
                    is_here |= self.goes_on_here(called, &child.run, awaited)?;
                }
                // It has ended, or has not begun.
                Ok(_) | Err(Error::Journal(journal::Error::NoSuchRun { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(is_here)
    }

    /// Somebody drives a run again.
    pub(super) fn take_up(&self, run: RunId) {
        self.inner.sessions.left().remove(&run);
    }

    /// Goes on in the background, as somebody does from time to time, with runs that can only go on
    /// here, were let go of, and need not wait any more: what they have called has ended elsewhere.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn go_on_with_left(&self) {
        let left = self.inner.sessions.left().clone();
        for (run, awaited) in left {
            // What cannot be read may be the next time.
            let status = |run: RunId| self.journal().run(run).map(|record| record.status);
            let waits = |run: &RunId| status(*run).map_or(true, |it| it == Status::Waiting);
            if status(run).is_ok_and(Status::is_final) {
                self.take_up(run);
            } else if waits(&run) && !awaited.iter().all(waits) && self.can_go_on(run) {
                // It stays among them until somebody here gets hold of it: another process may have
                // it for a moment. Who drives it may be on the way out.
                self.inner.background.recorded(run);
                drop(self.drive_in_background(run));
            }
        }
    }

    fn can_go_on(&self, run: RunId) -> bool {
        let driver = Driver::open(self.clone(), run);
        driver.is_ok_and(|driver| self.has_moved(run, &driver.run).unwrap_or(false))
    }

    /// Opens a session that is the run's own. It is closed where the run does not hear of it.
    async fn open_terminal(
        &self,
        terminals: &Terminals,
        parameters: Json,
    ) -> Result<(Json, Option<Untold>), CallError> {
        let request: OpenTerminalRequest = tools::request(parameters)?;
        let begun = terminals.begin(&request);
        // Before anything is waited for: whoever waits may be stopped.
        self.attend_sessions();
        let (response, untold) = Terminals::opened(request, begun).await;
        // The response has text keys, which every value can hold.
        let answer = serde_json::to_value(response).unwrap_or_default();
        Ok((answer, untold))
    }

    /// Looks from now on, as long as there are any, how runs end that have sessions of their own, or
    /// that others wait for which were left here: nobody may drive them here, and another process
    /// may end them.
    fn attend_sessions(&self) {
        if std::mem::replace(&mut *self.inner.sessions.attended(), true) {
            return;
        }
        let attendance = Attendance {
            host: Arc::downgrade(&self.inner),
            over: false,
        };
        tokio::spawn(async move {
            // The whole of it, not the fields that are named below.
            let mut attendance = attendance;
            let mut look = look();
            loop {
                look.tick().await;
                let Some(inner) = attendance.host.upgrade() else {
                    return;
                };
                let host = Host { inner };
                for run in host.session_owners() {
                    host.release_sessions(run).await;
                }
                host.go_on_with_left();
                // Both are there before their host looks whether somebody attends.
                let mut attended = host.inner.sessions.attended();
                let is_left = !host.inner.sessions.left().is_empty();
                if !is_left && host.session_owners().is_empty() {
                    *attended = false;
                    attendance.over = true;
                    return;
                }
            }
        });
    }

    /// The runs of this host's journal that have sessions of their own.
    fn session_owners(&self) -> Vec<RunId> {
        let terminals = self.inner.options.terminals.as_ref();
        let owners = terminals.map(Terminals::owners).unwrap_or_default();
        let is_known = |run: &RunId| self.journal().run(*run).is_ok();
        owners.into_iter().filter(is_known).collect()
    }

    /// The variables of a session that are set, once its shell is at its prompt. A list is told
    /// without its values.
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
            let is_list = snapshot.lists.contains(name);
            let list = || is_list.then(|| Value::list([]));
            let value = snapshot.get(name).map(Value::text).or_else(list)?;
            Some((name, value))
        })))
    }

    /// The program that a session runs.
    async fn in_front(&self, terminals: &Terminals, session: &str) -> Option<String> {
        let listed = terminals.list(ListTerminalSessionsRequest::default()).await;
        let mut sessions = listed.sessions.into_iter();
        sessions.find(|it| it.session_id == session)?.foreground
    }

    /// Whether a session is a run's own: it has opened it, or a run that it has called and that has
    /// left it open.
    pub(super) fn is_own_session(&self, run: RunId, session: Option<&str>) -> bool {
        let terminals = self.inner.options.terminals.as_ref();
        let own = terminals.map(|terminals| terminals.own_sessions(run));
        let mut own = own.unwrap_or_default().into_iter();
        session.is_some_and(|session| own.any(|it| it == session))
    }

    /// What becomes of the sessions that are a run's own, once it is over: those of one that failed
    /// or was cancelled are closed, those of one that completed stay, for whoever called it to look
    /// after.
    pub(super) async fn release_sessions(&self, run: RunId) {
        let Some(terminals) = &self.inner.options.terminals else {
            return;
        };
        // Read before how the run stands: one that is tried again after that opens others.
        let sessions = terminals.own_sessions(run);
        let Ok(record) = self.journal().run(run) else {
            return;
        };
        match record.status {
            Status::Running | Status::Waiting | Status::Sleeping => {}
            Status::Completed => {
                terminals.hand_over(&sessions, record.parent);
                self.inner.sessions.circles().remove(&run);
            }
            // It may be tried again, by whoever shares its sessions.
            Status::Failed => terminals.close_each(&sessions).await,
            Status::Cancelled => {
                self.inner.sessions.circles().remove(&run);
                terminals.close_each(&sessions).await;
            }
        }
    }
}
