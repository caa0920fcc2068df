//! How runs stand, as agents are told.

use std::time::{SystemTime, UNIX_EPOCH};

use flow_model::tools::{
    Entries, GetWorkflowStatusResponse, LogEntry, LoopStatus, WorkflowSignature,
};
use flow_runtime::host::{Report, ReportStatus};
use flow_runtime::journal::{RunId, Status};
use flow_runtime::run::{Action, Deed, time};
use flow_runtime::value::Value as Given;
use serde_json::{Map, Value};

use super::Server;
use super::tool::Refused;
use crate::run::pending_json;

/// Entries of a log in one answer.
const LOG_PAGE: usize = 200;
/// Characters of a log in one answer, after its first entry: clients put aside what is longer.
const LOG_SIZE: usize = 50_000;

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

/// The environment variables that a run was to set and that are set, by name.
pub(super) fn return_values(report: &Report) -> Entries<String> {
    let values = report.return_values.as_ref().and_then(Given::as_map);
    let values = values.into_iter().flat_map(|values| &values.0);
    let text = |value: &Given| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    values
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

/// What a run and the runs it called wait for, each with everything needed to answer it.
pub(super) fn pending(
    server: &Server,
    report: &Report,
) -> Result<Vec<Map<String, Value>>, Refused> {
    let pending = server.host.pending(report)?;
    let asked = pending.iter().filter(|it| is_asked(&it.action));
    Ok(asked
        .filter_map(|it| pending_json(report.run, it).as_object().cloned())
        .collect())
}

/// Whether somebody has to answer an action.
pub(super) fn is_asked(action: &Action) -> bool {
    match &action.what {
        Deed::Prompt { .. }
        | Deed::Delegate { .. }
        | Deed::DelegateItem { .. }
        | Deed::Judge { .. } => true,
        // It waits only where nobody here has the tool.
        Deed::Tool { builtin, .. } => !builtin,
        Deed::Shell { .. } | Deed::Call { .. } | Deed::Environment { .. } => false,
    }
}

/// Whether a run waits for nothing but answers of people, also while those are being asked.
pub(super) fn only_asks(server: &Server, report: &Report) -> Result<bool, Refused> {
    let pending = server.host.pending(report)?;
    Ok(!pending.is_empty() && pending.iter().all(|it| it.action.what.asks_person()))
}

/// How a run stands, whoever drives it.
pub(super) fn loop_status(server: &Server, report: &Report) -> Result<LoopStatus, Refused> {
    let record = server.host.journal().run(report.run)?;
    let status = match record.status {
        // Whoever drives it waits for an answer as well.
        Status::Running if only_asks(server, report)? => Status::Waiting,
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
fn is_alive(server: &Server, run: RunId) -> bool {
    server.host.driven(run).is_some() || server.host.journal().is_held(run)
}

/// A run that would be running and that nobody goes on with has lost its host; it waits for
/// somebody to go on with it.
pub(super) fn told(status: LoopStatus, alive: bool) -> LoopStatus {
    match status {
        LoopStatus::Running if !alive => LoopStatus::Waiting,
        status => status,
    }
}

/// Everything about a run.
pub(super) fn status(
    server: &Server,
    run: RunId,
    log_cursor: Option<&str>,
) -> Result<GetWorkflowStatusResponse, Refused> {
    let report = server.host.report(run)?;
    let alive = is_alive(server, run);
    let all_pending = pending(server, &report)?;
    let (execution_log, next_log_cursor) = log(server, run, log_cursor)?;
    let program = server.host.program_of(run)?;
    let kept = report.kept.as_ref().and_then(|kept| kept.as_ref().ok());
    Ok(GetWorkflowStatusResponse {
        workflow_id: run.to_string(),
        status: told(loop_status(server, &report)?, alive),
        wake_at: server.host.sleeps_until(&report)?.map(time::iso),
        alive,
        pending: all_pending.first().cloned(),
        all_pending,
        execution_log,
        next_log_cursor,
        state: report.state.to_json(),
        final_variables: object(&report.variables),
        output: report.output.to_json(),
        return_values: return_values(&report),
        workflow_signature: WorkflowSignature::of(program.graph()),
        workflow_saved: kept.is_some_and(|kept| kept.is_new),
        saved_workflow_name: kept.map(|kept| kept.name.clone()),
        recursion_depth: report.recursion_depth,
        error: report.error.as_ref().map(|error| error.message.clone()),
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

/// How many of some entries fit into an answer.
fn fitting<'a>(entries: impl Iterator<Item = &'a LogEntry>) -> usize {
    let mut size = 0;
    let mut fitting = 0;
    for entry in entries {
        size += serde_json::to_string(entry).map_or(0, |text| text.len());
        if fitting > 0 && size > LOG_SIZE {
            break;
        }
        fitting += 1;
    }
    fitting
}

/// A page of what happened in a run, and where the next one begins.
pub(super) fn log(
    server: &Server,
    run: RunId,
    cursor: Option<&str>,
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
    let mut entries = page.entries;
    let fitting = fitting(entries.iter());
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
) -> Result<(Vec<LogEntry>, Option<String>), Refused> {
    let (first, mut entries) = server.host.latest_log(run, LOG_PAGE)?;
    let older = entries.len() - fitting(entries.iter().rev());
    entries.drain(..older);
    let until = first + older;
    let untold = Untold {
        first: 0,
        until: Some(until),
    };
    Ok((entries, (until > 0).then(|| untold.cursor())))
}
