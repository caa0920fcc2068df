//! The tools of runs that an agent drives step by step.
//!
//! A tool here is a request type, a response type and a `tool!` that joins them, listed in
//! [`TOOLS`]. Its handler is offered in the command, under `serve/agent.rs`. Workflows cannot call
//! these tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{LogEntry, Tool, Toolset, tool};

/// Asks how a run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetWorkflowStatusRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// How long to wait for a run that is going, in seconds. The answer comes as soon as the run
    /// ends or waits for somebody.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
    /// Where the log goes on: `next_log_cursor` of the answer before. Absent: from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_cursor: Option<String>,
}

/// How a run stands, for whoever goes on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    /// it is going on by itself
    Running,
    /// it needs an answer: see `pending`
    Waiting,
    /// it waits for tasks that were handed out
    WaitingForTasks,
    /// it waits for a time to come
    Sleeping,
    /// it reached its end
    Completed,
    /// it ended without success
    Failed,
    /// it was stopped from outside
    Cancelled,
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetWorkflowStatusResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow_name: String,
    /// How the run stands.
    pub status: LoopStatus,
    /// The last state executed; `completed` for a workflow of steps that is over; null before the
    /// first.
    pub final_state: Option<String>,
    /// How many states were executed.
    pub states_executed: u64,
    /// From its start to its last event, in seconds.
    pub total_elapsed_time: f64,
    /// The flattened state.
    pub state: Value,
    /// All variables, by name.
    pub final_variables: Map<String, Value>,
    /// The workflow's outputs; null when it has none or did not complete.
    pub output: Value,
    /// The step that waits for an answer; null when none does.
    pub pending: Option<Map<String, Value>>,
    /// Everything that waits for an answer.
    pub all_pending: Vec<Map<String, Value>>,
    /// What happened, a page of it.
    pub execution_log: Vec<LogEntry>,
    /// The `log_cursor` for what follows; null when this was the last of it.
    pub next_log_cursor: Option<String>,
    /// Why the run failed; null when it did not.
    pub error: Option<String>,
}

tool! {
    GET_WORKFLOW_STATUS: GetWorkflowStatusRequest => GetWorkflowStatusResponse {
        name: "get_workflow_status",
        title: "How a run stands",
        description: "Answers how a run stands: its status, state, log, result and what it waits \
            for. With wait_seconds it answers as soon as the run ends or waits for somebody.",
        toolset: Toolset::Agent,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: true,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 1] = [&GET_WORKFLOW_STATUS];
