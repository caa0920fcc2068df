//! The tools that look into runs.
//!
//! A tool here is a request type, a response type and a `tool!` that joins them, listed in
//! [`TOOLS`]. Its handler is offered in the command, under `serve/debug.rs`. Workflows cannot call
//! these tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{LoopStatus, Tool, Toolset, tool};

/// Asks what a state field is made from, and what is made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetStateDependenciesRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// The field, with its tier or without: `computed.total`, `total`.
    pub field: String,
}

/// What a state field is made from, and what is made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GetStateDependenciesResponse {
    /// The field, with its tier.
    pub field: String,
    /// What it is made from, as its rule says; nothing for a field that steps write.
    pub direct_deps: Vec<String>,
    /// The same, with what those are made from in turn.
    pub all_deps: Vec<String>,
    /// The computed fields that change with it, in the order they do.
    pub dependents: Vec<String>,
    /// The run that makes it: this one, or that of a workflow it includes. What the field is made
    /// from are fields of that one.
    pub made_in: String,
}

/// Asks how computed fields came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceTransformationsRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// One computed field; absent for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Whether to say how long each took.
    #[serde(default)]
    pub include_timing: bool,
    /// How many of the latest to list.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_traces: u64,
}

/// One evaluation of a computed field's transform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransformationTrace {
    /// The field.
    pub field: String,
    /// The run that makes it: the one that was asked about, or that of a workflow it includes.
    pub made_in: String,
    /// When, in ISO 8601.
    pub timestamp: String,
    /// The field whose change made it due; `start` at the start of the run.
    pub trigger: String,
    /// What the transform was handed.
    pub input: Value,
    /// What the field became, with `validate` and `on_error`; null when it has no value.
    pub output: Value,
    /// How long it took when it was evaluated again for this answer, in milliseconds; null when
    /// that was not asked for.
    pub duration_ms: Option<f64>,
    /// Why the transform or `validate` failed; null when neither did.
    pub error: Option<String>,
}

/// How computed fields came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceTransformationsResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The latest evaluations, oldest first.
    pub traces: Vec<TransformationTrace>,
    /// How many came before these.
    pub left_out: u64,
}

/// Asks what a run has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DebugWorkflowRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// How many of the latest steps to list.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_steps: u64,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VisitStatus {
    /// it did what was asked
    Success,
    /// it failed
    Failed,
    /// its condition did not hold
    Skipped,
    /// it has not ended
    Running,
    /// it was stopped with its run or fan-out
    Stopped,
}

/// One visit of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepVisit {
    /// The step.
    pub step_id: String,
    /// 0 for the workflow itself; each child of a fan-out has a number of its own.
    pub frame: u32,
    /// When it began, in ISO 8601.
    pub started_at: String,
    /// When it ended; null when it has not.
    pub completed_at: Option<String>,
    /// How it ended.
    pub status: VisitStatus,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// How much state a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateSize {
    /// Written by steps, roughly, in bytes of JSON.
    pub raw_bytes: u64,
    /// Derived.
    pub computed_bytes: u64,
    /// Set by hand.
    pub state_bytes: u64,
    /// How often a computed field has changed.
    pub total_transformations: u64,
}

/// A computed field whose transform takes long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowTransformation {
    /// The field.
    pub field: String,
    /// How often it was evaluated.
    pub count: u64,
    /// How long an evaluation takes on average, in milliseconds.
    pub avg_ms: f64,
}

/// How long transforms take, measured by evaluating them again for this answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransformationTimes {
    /// On average, in milliseconds.
    pub avg_transformation_time: f64,
    /// The slowest fields, slowest first.
    pub slowest_transformations: Vec<SlowTransformation>,
}

/// What a run has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DebugWorkflowResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow_name: String,
    /// How the run stands, as `get_workflow_status` says it.
    pub status: LoopStatus,
    /// Whether it waits for somebody to go on with it, because its client left or its server ended.
    pub interrupted: bool,
    /// The step that the workflow itself is at, or was last; null before the first.
    pub current_step: Option<String>,
    /// The latest steps, in the order they began.
    pub step_history: Vec<StepVisit>,
    /// How many came before these.
    pub left_out: u64,
    /// How much state there is.
    pub state_size: StateSize,
    /// How long transforms take.
    pub performance: TransformationTimes,
    /// How many events the run has.
    pub events: u64,
    /// Why the run failed; null when it did not.
    pub error: Option<String>,
}

/// Tries a transform out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestTransformationRequest {
    /// The transform: a JavaScript expression over `input`, or a function body with `return`.
    pub transform: String,
    /// What `input` is.
    #[serde(default)]
    pub input: Value,
    /// State fields that are in scope, by name.
    #[serde(default)]
    pub context: Map<String, Value>,
}

/// What a transform gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestTransformationResponse {
    /// Whether it gave something.
    pub success: bool,
    /// What it gave; null when it failed.
    pub output: Value,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
    /// How long it took, in milliseconds, with its compilation.
    pub execution_time_ms: f64,
}

/// Asks what a run of a workflow would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainWorkflowRequest {
    /// The workflow's name.
    pub workflow: String,
    /// Its inputs, by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
}

/// A step that a run would or could come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedStep {
    /// The step.
    pub step_id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// The task it belongs to, or `on_error`; null for the workflow itself.
    pub task: Option<String>,
    /// What it would do, as far as that is known.
    pub does: String,
    /// Whether everything in that is known.
    pub known: bool,
    /// Who does it when an agent drives the run.
    pub done_by: String,
    /// What must hold for it to be reached, outermost first.
    pub conditions: Vec<String>,
    /// How many sub-agents it would take; null when that is not known, or it takes none.
    pub estimated_sub_agents: Option<u64>,
    /// The state fields it reads.
    pub dependencies: Vec<String>,
}

/// What a run of a workflow would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainWorkflowResponse {
    /// The workflow's name.
    pub workflow: String,
    /// The inputs with their defaults, without secrets.
    pub inputs: Value,
    /// Every step, in the order they are written.
    pub steps: Vec<PlannedStep>,
    /// What is known of how long it takes.
    pub estimated_duration: String,
    /// Tools that somebody else has to provide.
    pub required_tools: Vec<String>,
}

fn hundred() -> u64 {
    100
}

tool! {
    GET_STATE_DEPENDENCIES: GetStateDependenciesRequest => GetStateDependenciesResponse {
        name: "get_state_dependencies",
        title: "What a state field depends on",
        description: "Answers what a state field of a run is made from, directly and in turn, and \
            which computed fields change with it.",
        toolset: Toolset::Debug,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    TRACE_TRANSFORMATIONS: TraceTransformationsRequest => TraceTransformationsResponse {
        name: "trace_transformations",
        title: "How computed state came about",
        description: "Answers how the computed fields of a run came about, or one of them: what \
            made each evaluation due, what went in, what came out, and with include_timing how \
            long it takes.",
        toolset: Toolset::Debug,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    DEBUG_WORKFLOW: DebugWorkflowRequest => DebugWorkflowResponse {
        name: "debug_workflow",
        title: "What a run has done",
        description: "Answers what a run has done step by step, how large its state is, and which \
            transforms take long.",
        toolset: Toolset::Debug,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    TEST_TRANSFORMATION: TestTransformationRequest => TestTransformationResponse {
        name: "test_transformation",
        title: "Try a transform out",
        description: "Evaluates a transform of computed state over an input, with context in \
            scope. Nothing is changed anywhere.",
        toolset: Toolset::Debug,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    EXPLAIN_WORKFLOW: ExplainWorkflowRequest => ExplainWorkflowResponse {
        name: "explain_workflow",
        title: "What a run would do",
        description: "Answers what a run of a workflow with these inputs would do: every step \
            with what it depends on, who does it, how many sub-agents it takes, and which tools \
            are needed. Nothing is run.",
        toolset: Toolset::Debug,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 5] = [
    &GET_STATE_DEPENDENCIES,
    &TRACE_TRANSFORMATIONS,
    &DEBUG_WORKFLOW,
    &TEST_TRANSFORMATION,
    &EXPLAIN_WORKFLOW,
];
