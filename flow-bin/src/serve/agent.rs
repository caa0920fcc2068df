//! Runs that an agent drives step by step, and how any run stands.
//!
//! Requests and responses are declared in `flow_model::tools` (`agent.rs`); their handlers go here
//! as [`Offer`]s, over `server.host`. A handler that lets a run go on does it with
//! [`Server::follow`], so that the run is driven in this process and not in the call.

use std::sync::Arc;
use std::time::Duration;

use flow_model::tools::{GetWorkflowStatusRequest, GetWorkflowStatusResponse, Toolset};

use super::Server;
use super::standing;
use super::tool::{Call, Offer, Refused};

pub(super) fn offers() -> Vec<Offer> {
    vec![Offer::new(get_workflow_status).also_in(&[Toolset::Workflow])]
}

async fn get_workflow_status(
    server: Arc<Server>,
    request: GetWorkflowStatusRequest,
    call: Call,
) -> Result<GetWorkflowStatusResponse, Refused> {
    let run = server.host.journal().resolve(&request.workflow_id)?;
    let wait = Duration::from_secs_f64(request.wait_seconds);
    server.settled(run, wait, &call).await;
    standing::status(&server, run, request.log_cursor.as_deref())
}
