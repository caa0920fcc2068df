//! Finding runs: `list_runs`.

use std::sync::Arc;

use flow_model::tools::{
    ListRunsRequest, ListRunsResponse, ListedRun, ListedStatus, LoopStatus, Toolset,
};
use flow_runtime::journal::{Listing, RunRecord, Status};
use flow_runtime::run::time;

use super::Server;
use super::tool::{Call, Offer, Refused};
use super::{excerpt, standing};

/// Records that are read at once.
const PAGE: usize = 200;

pub(super) fn offers() -> Vec<Offer> {
    vec![Offer::new(list_runs).also_in(&[Toolset::Agent])]
}

async fn list_runs(
    server: Arc<Server>,
    request: ListRunsRequest,
    _call: Call,
) -> Result<ListRunsResponse, Refused> {
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let mut listing = Listing::new();
    for status in request.status.map(recorded).unwrap_or_default() {
        listing = listing.status(*status);
    }
    if let Some(workflow) = &request.workflow {
        listing = listing.workflow(workflow);
    }
    let mut runs = Vec::new();
    loop {
        let page = server.host.journal().list(&listing, PAGE)?;
        for record in page.runs {
            let run = listed(&server, record)?;
            if request.status.is_some_and(|status| status != run.status) {
                continue;
            }
            if runs.len() == limit {
                return Ok(ListRunsResponse {
                    runs,
                    has_more: true,
                });
            }
            runs.push(run);
        }
        match page.next {
            Some(next) => listing = listing.before(next),
            None => {
                return Ok(ListRunsResponse {
                    runs,
                    has_more: false,
                });
            }
        }
    }
}

/// What the journal says of runs that may stand so: who drives a run need not have told it yet.
fn recorded(status: ListedStatus) -> &'static [Status] {
    match status {
        ListedStatus::Running => &[Status::Running],
        ListedStatus::Waiting => &[Status::Waiting, Status::Running],
        ListedStatus::Sleeping => &[Status::Sleeping, Status::Running, Status::Waiting],
        ListedStatus::Completed => &[Status::Completed],
        ListedStatus::Failed => &[Status::Failed],
        ListedStatus::Cancelled => &[Status::Cancelled],
    }
}

fn listed(server: &Server, record: RunRecord) -> Result<ListedRun, Refused> {
    let mut run = ListedRun {
        workflow_id: record.id.to_string(),
        workflow: record.workflow,
        status: match record.status {
            Status::Running => ListedStatus::Running,
            Status::Waiting => ListedStatus::Waiting,
            Status::Sleeping => ListedStatus::Sleeping,
            Status::Completed => ListedStatus::Completed,
            Status::Failed => ListedStatus::Failed,
            Status::Cancelled => ListedStatus::Cancelled,
        },
        interrupted: false,
        started_at: time::iso(record.started_at),
        updated_at: time::iso(record.updated_at),
        pending: None,
        called_by: record.parent.map(|parent| parent.to_string()),
        error: record.error.map(excerpt::brief_reason),
    };
    if record.status.is_final() {
        return Ok(run);
    }
    let report = server.host.report(record.id)?;
    let alive = standing::is_alive(server, record.id);
    let status = standing::loop_status(server, &report)?;
    run.interrupted = standing::is_interrupted(status, alive);
    run.status = match standing::told(status, alive) {
        LoopStatus::Running => ListedStatus::Running,
        LoopStatus::Waiting | LoopStatus::WaitingForTasks => ListedStatus::Waiting,
        LoopStatus::Sleeping => ListedStatus::Sleeping,
        LoopStatus::Completed => ListedStatus::Completed,
        LoopStatus::Failed => ListedStatus::Failed,
        LoopStatus::Cancelled => ListedStatus::Cancelled,
    };
    if run.status == ListedStatus::Waiting && !run.interrupted {
        let pending = server.host.pending(&report)?;
        let asked = pending.into_iter().find(|it| it.asked).map(|it| it.step);
        // Tasks are no question of the run itself.
        run.pending = asked.or(record.pending);
    }
    Ok(run)
}
