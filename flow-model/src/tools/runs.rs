//! The tool that finds runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Tool, Toolset, tool};

/// Lists runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRunsRequest {
    /// Only runs that stand so. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ListedStatus")]
    pub status: Option<ListedStatus>,
    /// Only runs of this workflow. Absent: of every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// How many at most.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 200))]
    pub limit: u32,
}

fn twenty() -> u32 {
    20
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedStatus {
    /// it is going on by itself
    Running,
    /// it needs an answer, or was interrupted and needs somebody to go on with it
    Waiting,
    /// it waits for a time to come
    Sleeping,
    /// it reached its end
    Completed,
    /// it ended without success
    Failed,
    /// it was stopped from outside
    Cancelled,
}

/// A run among others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedRun {
    /// The run's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow: String,
    /// How the run stands.
    pub status: ListedStatus,
    /// Whether it is not over and nobody goes on with it: `resume_workflow` does.
    pub interrupted: bool,
    /// When it began, in ISO 8601.
    pub started_at: String,
    /// When something happened in it last, in ISO 8601.
    pub updated_at: String,
    /// The id of the step that waits for an answer; null when none does.
    pub pending: Option<String>,
    /// The run that called it; null when none did.
    pub called_by: Option<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// Runs, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListRunsResponse {
    /// The runs.
    pub runs: Vec<ListedRun>,
    /// Whether there are older ones that `limit` has left out.
    pub has_more: bool,
}

tool! {
    LIST_RUNS: ListRunsRequest => ListRunsResponse {
        name: "list_runs",
        title: "List the runs of this project",
        description: "Finds runs, newest first: their ids, how they stand and what they wait for. \
            With status waiting those that somebody has to answer or to go on with. \
            get_workflow_status says more of one, resume_workflow goes on with it.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 1] = [&LIST_RUNS];
