//! How runs stand, as agents are told.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flow_model::tools::{
    AgentStep, Entries, GetWorkflowStatusResponse, LogEntry, LoopStatus, WorkflowSignature,
};
use flow_runtime::host::agent::{Patience, TaskPage, TurnStatus};
use flow_runtime::host::{Report, ReportStatus};
use flow_runtime::journal::{RunId, Status};
use flow_runtime::run::{FailureKind, time};
use flow_runtime::value::Value as Given;
use serde_json::{Map, Value};

use super::Server;
use super::excerpt::{self, Room};
use super::tool::Refused;
use crate::run::pending_json;

/// Entries of a log in one answer.
const LOG_PAGE: usize = 200;
/// Tasks that are listed where all of them are a call away.
const TASKS: usize = 20;
/// How a step of tasks is answered.
const TASKS_END: &str = "nothing: the step is over when its tasks are";
/// Where a task stands whole that is told in short.
const TASKS_WHOLE: &str = "`get_next_step` has all";
/// Where a question stands whole that is told in short.
const ASKED: &str = "`pending` or `get_next_step` has all";

/// What `get_workflow_state` finds return values under.
const RETURN_VALUES: &str = "return_values";

/// How much of a run is told.
#[derive(Clone, Copy)]
pub(super) enum Extent<'a> {
    /// As much as an agent can use, with the log from a cursor on, if it is wanted.
    Answer { log: bool, cursor: Option<&'a str> },
    /// Every value as it is.
    Whole,
}

/// The time now, in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A value as an object; anything else is none.
pub(super) fn object(value: &Given) -> Map<String, Value> {
    match value.to_json() {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The environment variables that a run was to set and that are set, by name, as they fit.
pub(super) fn return_values(report: &Report, room: Option<&mut Room>) -> Entries<String> {
    let text = |value: &Value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let values = report.return_values.as_ref().map(object);
    let values = values.unwrap_or_default();
    let values = match room {
        Some(room) => room.map(values, RETURN_VALUES),
        None => values,
    };
    let values = values.iter();
    values
        .map(|(name, value)| (name.clone(), text(value)))
        .collect()
}

/// Why a run failed, if it did.
pub(super) fn error(report: &Report) -> Option<String> {
    let error = report.error.as_ref();
    error.map(|error| excerpt::reason(error.message.clone()))
}

/// What a run and the runs it called wait for, each with everything needed to answer it.
pub(super) fn pending(
    server: &Server,
    report: &Report,
) -> Result<Vec<Map<String, Value>>, Refused> {
    let pending = server.host.pending(report)?;
    let asked = pending.iter().filter(|it| it.asked);
    Ok(asked
        .filter_map(|it| pending_json(report.run, it).as_object().cloned())
        .collect())
}

/// Whether a run waits for somebody, also while those are being asked and while it goes on
/// otherwise.
pub(super) fn asks(server: &Server, report: &Report) -> Result<bool, Refused> {
    let pending = server.host.pending(report)?;
    Ok(pending.iter().any(|it| it.asked))
}

/// How a run stands, whoever drives it.
pub(super) fn loop_status(server: &Server, report: &Report) -> Result<LoopStatus, Refused> {
    let record = server.host.journal().run(report.run)?;
    let status = match record.status {
        // Somebody is asked, whatever goes on beside it.
        Status::Running if asks(server, report)? => Status::Waiting,
        Status::Running | Status::Waiting if server.host.sleeps_until(report)?.is_some() => {
            Status::Sleeping
        }
        status => status,
    };
    Ok(match (report.status, status) {
        (ReportStatus::Completed, _) => LoopStatus::Completed,
        (ReportStatus::Failed, _) => LoopStatus::Failed,
        (ReportStatus::Cancelled, _) => LoopStatus::Cancelled,
        (ReportStatus::Waiting | ReportStatus::Interrupted, Status::Sleeping) => {
            LoopStatus::Sleeping
        }
        (ReportStatus::Waiting | ReportStatus::Interrupted, Status::Waiting) => LoopStatus::Waiting,
        (ReportStatus::Waiting | ReportStatus::Interrupted, _) => LoopStatus::Running,
    })
}

/// Whether some process goes on with a run now.
pub(super) fn is_alive(server: &Server, run: RunId) -> bool {
    server.host.driven(run).is_some() || server.host.journal().is_held(run)
}

/// A run that would be running and that nobody goes on with has lost its host; it waits for
/// somebody to go on with it.
pub(super) fn is_interrupted(status: LoopStatus, alive: bool) -> bool {
    status == LoopStatus::Running && !alive
}

/// What leads on from where a run stands, where that is not to answer it.
pub(super) fn way_on(
    server: &Server,
    report: &Report,
    status: LoopStatus,
    alive: bool,
) -> Option<String> {
    let resume = format!("`resume_workflow` with workflow_id {}", report.run);
    if is_interrupted(status, alive) {
        return Some(format!(
            "the run was interrupted, and nobody goes on with it: {resume} does"
        ));
    }
    if let Some(first) = report.missing_secrets.first() {
        let missing = report.missing_secrets.join("`, `");
        return Some(format!(
            "the run needs the secret `{missing}`, which was given by hand and is not kept: {resume} \
             and `inputs: {{\"{first}\": …}}` gives it again"
        ));
    }
    match status {
        // What it waited for has ended where it could not go on.
        LoopStatus::Waiting if !alive && !asks(server, report).unwrap_or(true) => Some(format!(
            "the run waits for nobody any more: {resume} goes on"
        )),
        LoopStatus::Sleeping if !alive => Some(format!("nobody wakes the run: {resume} does")),
        LoopStatus::Failed => {
            let error = report.error.as_ref()?;
            let way = match error.kind {
                // The same would happen again.
                FailureKind::Arguments => return None,
                FailureKind::TimeLimit => {
                    format!(
                        "{resume} goes on, with its time again; execution_timeout gives it another"
                    )
                }
                FailureKind::ReturnValues => format!("{resume} looks for them again"),
                _ if error.step.is_none() => return None,
                FailureKind::Limit if error.message.contains("max_states") => {
                    format!("{resume} and a higher max_states goes on")
                }
                FailureKind::Child => format!(
                    "{resume} tries the items that failed again; those that are done stay done"
                ),
                _ => format!("{resume} tries the failed step again"),
            };
            Some(match &report.lost_session {
                Some(session) => format!(
                    "{way}; the terminal session `{session}` is gone: where a step works in it, start \
                     the workflow anew instead"
                ),
                None => way,
            })
        }
        LoopStatus::Running
        | LoopStatus::Waiting
        | LoopStatus::WaitingForTasks
        | LoopStatus::Sleeping
        | LoopStatus::Completed
        | LoopStatus::Cancelled => None,
    }
}

/// How a run stands for whoever may go on with it: one that was interrupted waits for that.
pub(super) fn told(status: LoopStatus, alive: bool) -> LoopStatus {
    match is_interrupted(status, alive) {
        true => LoopStatus::Waiting,
        false => status,
    }
}

/// The values of a run as an answer has them.
pub(super) struct Values {
    pub(super) output: Value,
    pub(super) variables: Map<String, Value>,
    pub(super) state: Value,
    pub(super) return_values: Entries<String>,
    /// Bytes of a log that fit beside them.
    pub(super) log_room: usize,
}

impl Values {
    pub(super) fn of(report: &Report, short: bool) -> Self {
        let mut room = Room::new();
        let (output, state) = (report.output.to_json(), report.state.to_json());
        let variables = object(&report.variables);
        let (output, return_values, variables, state) = match short {
            true => (
                room.value(output, "output"),
                return_values(report, Some(&mut room)),
                room.map(variables, "variables"),
                room.value(state, ""),
            ),
            false => (output, return_values(report, None), variables, state),
        };
        Values {
            output,
            variables,
            state,
            return_values,
            log_room: room.for_log(),
        }
    }
}

/// Questions of which one stands whole beside them.
fn in_short(pending: Vec<Map<String, Value>>) -> Vec<Map<String, Value>> {
    let short = |it| excerpt::brief(it, ASKED);
    pending.into_iter().map(short).collect()
}

/// The value at a path of what a run has beside its state: of `variables`, `output`,
/// `return_values`, `log` with the number of an entry, or `error`.
pub(super) fn beside_state(
    server: &Server,
    report: &Report,
    path: &str,
) -> Result<Option<Value>, Refused> {
    let parts: Vec<&str> = path.split('.').collect();
    let found = match parts[0] {
        "variables" => below(&report.variables, &parts[1..]).map(Given::to_json),
        "output" => below(&report.output, &parts[1..]).map(Given::to_json),
        RETURN_VALUES => {
            let values = report.return_values.as_ref();
            values
                .and_then(|values| below(values, &parts[1..]))
                .map(Given::to_json)
        }
        "error" if parts.len() == 1 && report.error.is_some() => {
            let error = report.error.as_ref();
            error.map(|error| error.message.clone().into())
        }
        "log" => {
            let number = parts.get(1).and_then(|number| number.parse().ok());
            let Some(number) = number else {
                return Ok(None);
            };
            let page = server.host.execution_log(report.run, number, 1)?;
            let entry = page.entries.into_iter().next();
            let entry = entry.and_then(|entry| serde_json::to_value(entry).ok());
            let entry = entry.as_ref().map(Given::from);
            entry.and_then(|entry| below(&entry, &parts[2..]).map(Given::to_json))
        }
        _ => below(&report.variables, &parts).map(Given::to_json),
    };
    Ok(found)
}

fn below<'v>(value: &'v Given, path: &[&str]) -> Option<&'v Given> {
    path.iter().try_fold(value, |here, part| match here {
        Given::List(list) => list.0.get(part.parse::<usize>().ok()?),
        here => here.get(part),
    })
}

/// How a run stands for whoever may go on with it, whoever drives it.
pub(super) struct Standing {
    pub(super) report: Report,
    /// One that was interrupted waits for somebody to go on with it.
    pub(super) status: LoopStatus,
    /// Whether some process goes on with it now.
    pub(super) alive: bool,
    pub(super) interrupted: bool,
    /// What leads on from here, where that is not to answer it.
    note: Option<String>,
    /// When it goes on, if it waits for a time.
    wake_at: Option<String>,
    /// Whether an agent drives it, and what that has to do.
    is_agents: bool,
    step: Option<AgentStep>,
    /// Secrets without which it cannot go on.
    missing_secrets: Vec<String>,
}

impl Standing {
    /// How a run stands, or will within this time if it then waits or is over.
    pub(super) async fn of(server: &Server, run: RunId, wait: Duration) -> Result<Self, Refused> {
        // Whoever works on the run here has told the journal how it stands before it answers.
        let turn = match server.agents.is_agent_driven(run).await? {
            true => {
                let page = TaskPage {
                    from: 0,
                    most: Some(TASKS),
                };
                let patience = Patience {
                    longest: wait,
                    for_others: true,
                    ..Patience::NONE
                };
                Some(server.agents.next(run, None, page, patience).await?)
            }
            false => None,
        };
        let report = server.host.report(run)?;
        // Whoever had a run that is over may be on the way out.
        let is_over = match report.status {
            ReportStatus::Completed | ReportStatus::Failed | ReportStatus::Cancelled => true,
            ReportStatus::Waiting | ReportStatus::Interrupted => false,
        };
        let alive = !is_over && is_alive(server, run);
        let is_agents = turn.is_some();
        let (status, wakes, step, missing_secrets, note) = match turn {
            Some(turn) => {
                // It says how to give them.
                let note = turn.note.filter(|_| !turn.missing_secrets.is_empty());
                let status = turn_status(turn.status);
                (status, turn.wakes, turn.step, turn.missing_secrets, note)
            }
            None => {
                let wakes = server.host.sleeps_until(&report)?;
                let missing = report.missing_secrets.clone();
                (loop_status(server, &report)?, wakes, None, missing, None)
            }
        };
        Ok(Standing {
            status: told(status, alive),
            alive,
            interrupted: is_interrupted(status, alive),
            note: note.or_else(|| way_on(server, &report, status, alive)),
            wake_at: wakes.map(time::iso),
            is_agents,
            step,
            missing_secrets,
            report,
        })
    }
}

/// How a run stands that an agent drives.
pub(super) fn turn_status(status: TurnStatus) -> LoopStatus {
    match status {
        TurnStatus::Running => LoopStatus::Running,
        TurnStatus::Waiting => LoopStatus::Waiting,
        TurnStatus::WaitingForTasks => LoopStatus::WaitingForTasks,
        TurnStatus::Sleeping => LoopStatus::Sleeping,
        TurnStatus::Completed => LoopStatus::Completed,
        TurnStatus::Failed => LoopStatus::Failed,
        TurnStatus::Cancelled => LoopStatus::Cancelled,
    }
}

/// Tasks for sub-agents, as what waits is told.
fn tasks(run: RunId, step: AgentStep) -> Map<String, Value> {
    let mut pending = step.definition;
    if let Some(Value::Array(tasks)) = pending.get_mut("tasks") {
        for task in tasks {
            if let Value::Object(task) = task {
                *task = excerpt::brief(std::mem::take(task), TASKS_WHOLE);
            }
        }
    }
    for (name, value) in [
        ("workflow_id", run.to_string().into()),
        ("step_id", step.id.as_str().into()),
        ("id", step.id.as_str().into()),
        ("run_id", run.to_string().into()),
        ("step", step.id.as_str().into()),
        ("type", "parallel_tasks".into()),
        ("instructions", step.instructions.into()),
        ("answer_with", TASKS_END.into()),
    ] {
        pending.insert(name.to_owned(), value);
    }
    pending
}

/// Everything about a run.
pub(super) async fn status(
    server: &Server,
    run: RunId,
    wait: Duration,
    extent: Extent<'_>,
) -> Result<GetWorkflowStatusResponse, Refused> {
    let standing = Standing::of(server, run, wait).await?;
    let report = standing.report;
    let all_pending = pending(server, &report)?;
    let values = Values::of(&report, matches!(extent, Extent::Answer { .. }));
    let (execution_log, next_log_cursor) = match extent {
        Extent::Answer { log: false, .. } => (Vec::new(), None),
        Extent::Answer { log: true, cursor } => log(server, run, cursor, logged, values.log_room)?,
        Extent::Whole => log(server, run, None, |_, entry| entry, values.log_room)?,
    };
    let program = server.host.program_of(run)?;
    let kept = report.kept.as_ref().and_then(|kept| kept.as_ref().ok());
    let first = match standing.step {
        Some(step) => {
            let mut known = all_pending.iter();
            let known = known.find(|it| it["step_id"] == step.id.as_str()).cloned();
            Some(known.unwrap_or_else(|| tasks(run, step)))
        }
        None if standing.is_agents => None,
        None => all_pending.first().cloned(),
    };
    Ok(GetWorkflowStatusResponse {
        workflow_id: run.to_string(),
        status: standing.status,
        interrupted: standing.interrupted,
        note: standing.note,
        wake_at: standing.wake_at,
        alive: standing.alive,
        pending: first,
        all_pending: in_short(all_pending),
        execution_log,
        next_log_cursor,
        state: values.state,
        final_variables: values.variables,
        output: values.output,
        return_values: values.return_values,
        workflow_signature: WorkflowSignature::of(program.graph()),
        workflow_saved: kept.is_some_and(|kept| kept.is_new),
        saved_workflow_name: kept.map(|kept| kept.name.clone()),
        recursion_depth: report.recursion_depth,
        error: match extent {
            Extent::Answer { .. } => error(&report),
            Extent::Whole => report.error.as_ref().map(|error| error.message.clone()),
        },
        missing_secrets: standing.missing_secrets,
        total_elapsed_time: seconds(report.elapsed_ms),
        states_executed: report.states_executed,
        session_id: report.last_session,
        final_state: report.final_state,
        workflow_name: report.workflow,
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a run are far below 2^53"
)]
pub(super) fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// A part of a log that has not been told: from one entry on, to another or to the end.
#[derive(Clone, Copy)]
struct Untold {
    first: usize,
    until: Option<usize>,
}

impl Untold {
    fn read(cursor: &str) -> Option<Self> {
        Some(match cursor.split_once('-') {
            Some((first, until)) => Untold {
                first: first.parse().ok()?,
                until: Some(until.parse().ok()?),
            },
            None => Untold {
                first: cursor.parse().ok()?,
                until: None,
            },
        })
    }

    fn cursor(self) -> String {
        match self.until {
            Some(until) => format!("{}-{until}", self.first),
            None => self.first.to_string(),
        }
    }
}

/// An entry of a log as an answer has it, by its number.
fn logged(number: usize, entry: LogEntry) -> LogEntry {
    let path = |part: &str| format!("log.{number}.{part}");
    match entry {
        LogEntry::Execution {
            state,
            tool,
            params,
            result,
            tool_success,
            error,
            elapsed_time,
            transition,
            timestamp,
        } => LogEntry::Execution {
            state,
            tool,
            params: excerpt::logged(params, &path("params")),
            result: excerpt::logged(result, &path("result")),
            tool_success,
            error: error.map(|error| excerpt::logged_text(error, &path("error"))),
            elapsed_time,
            transition,
            timestamp,
        },
        entry => entry,
    }
}

/// How many of some entries fit into an answer.
fn fitting<'a>(entries: impl Iterator<Item = &'a LogEntry>, room: usize) -> usize {
    let mut size = 0;
    let mut fitting = 0;
    for entry in entries {
        size += serde_json::to_string(entry).map_or(0, |text| text.len());
        if fitting > 0 && size > room {
            break;
        }
        fitting += 1;
    }
    fitting
}

/// A page of what happened in a run, and where the next one begins.
fn log(
    server: &Server,
    run: RunId,
    cursor: Option<&str>,
    told: impl Fn(usize, LogEntry) -> LogEntry,
    room: usize,
) -> Result<(Vec<LogEntry>, Option<String>), Refused> {
    let untold = match cursor {
        None => Untold {
            first: 0,
            until: None,
        },
        Some(text) => Untold::read(text).ok_or_else(|| {
            let help = "give `next_log_cursor` of an answer before, or leave it out";
            Refused(format!("`log_cursor` is no cursor: {help}"))
        })?,
    };
    let left = untold
        .until
        .map_or(usize::MAX, |until| until.saturating_sub(untold.first));
    let page = server
        .host
        .execution_log(run, untold.first, LOG_PAGE.min(left))?;
    let entries = (untold.first..).zip(page.entries);
    let mut entries: Vec<LogEntry> = entries.map(|(at, entry)| told(at, entry)).collect();
    let fitting = fitting(entries.iter(), room);
    let next = match fitting < entries.len() {
        true => Some(untold.first + fitting),
        false => page.next,
    };
    entries.truncate(fitting);
    let next = next.filter(|next| untold.until.is_none_or(|until| *next < until));
    let next = next.map(|first| Untold { first, ..untold }.cursor());
    Ok((entries, next))
}

/// What happened last in a run, and where what happened before it begins.
pub(super) fn latest_log(
    server: &Server,
    run: RunId,
    room: usize,
) -> Result<(Vec<LogEntry>, Option<String>), Refused> {
    let (first, entries) = server.host.latest_log(run, LOG_PAGE)?;
    let entries = (first..).zip(entries);
    let mut entries: Vec<LogEntry> = entries.map(|(at, entry)| logged(at, entry)).collect();
    let older = entries.len() - fitting(entries.iter().rev(), room);
    entries.drain(..older);
    let until = first + older;
    let untold = Untold {
        first: 0,
        until: Some(until),
    };
    Ok((entries, (until > 0).then(|| untold.cursor())))
}
