//! The tool that finds and runs workflows by name, with progress.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::library::WorkflowListing;
use super::workflow::fifty_seconds;
use super::{Entries, LogEntry, RunStatus, Tool, Toolset, tool};

/// Runs a workflow, or lists them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowRequest {
    /// The workflow to run, or `list` to learn which there are.
    pub flow_name: String,
    /// The workflow's inputs, by name. Means nothing with `list`.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// How the list is written into `listing`; `workflows` has it in any case.
    #[serde(default)]
    pub format: ListFormat,
    /// With `list`: whether parameters have the rules that their values must satisfy, and tables have
    /// parameters and files. With a workflow: whether the answer has its execution log.
    #[serde(default)]
    pub verbose: bool,
    /// Whether the person in front of the client is asked what the workflow asks. Absent: when the
    /// client can do that. Otherwise such a run answers status waiting with the pending step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive: Option<bool>,
    /// Whether only the plan is wanted; nothing is run.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether progress is kept back.
    #[serde(default)]
    pub quiet: bool,
    /// The longest this call waits, in seconds. A run still going then is answered with `status:
    /// "running"` and its `workflow_id`, and goes on.
    #[serde(default = "fifty_seconds")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
}

/// How a list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListFormat {
    /// as JSON
    #[default]
    Json,
    /// as YAML
    Yaml,
    /// as a table for people
    Table,
}

/// A list of workflows, a plan, or how a run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResponse {
    /// Whether the list, the plan or the run is complete.
    pub success: bool,
    /// What was asked for.
    pub flow_name: String,
    /// The workflows there are; only with `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflows: Option<Vec<WorkflowListing>>,
    /// The list in the format asked for, when that is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<String>,
    /// What would happen, as far as that is known; only with `dry_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// Where the run stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// The run's id, for status, answers and resuming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The last state executed; `completed` for a workflow of steps that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_state: Option<String>,
    /// How many states were executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_executed: Option<u64>,
    /// How long the run has taken so far, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_elapsed_time: Option<f64>,
    /// The workflow's outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The values that the workflow's return values had in the session at the end, by name; absent
    /// when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_values: Option<Entries<String>>,
    /// The state at the end, or so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// What happened, the last of it when all is too long; only with `verbose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_log: Option<Vec<LogEntry>>,
    /// The step that waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Map<String, Value>>,
    /// The workflows there are, when the one asked for is not among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_workflows: Option<Vec<String>>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
    /// What leads on from here where nothing in the answer does: for a run that has failed or was
    /// interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

tool! {
    FLOW: FlowRequest => FlowResponse {
        name: "flow",
        title: "Find or run a workflow",
        description: "Runs a workflow by flow_name with parameters and answers its output, or lists \
            every workflow with its parameters when flow_name is list. Tells progress while the run \
            goes on. A run that needs a person or an agent answers status waiting with the pending \
            step; one that takes longer than wait_seconds answers status running with its \
            workflow_id, and get_workflow_status follows it.",
        toolset: Toolset::Workflow,
        read_only: false,
        destructive: true,
        idempotent: false,
        times_itself: true,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 1] = [&FLOW];
