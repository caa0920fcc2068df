//! The workflow tools.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Entries, Rule, Toolset, tool};
use crate::graph::{Graph, Variable};

/// Runs a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunWorkflowRequest {
    /// The name of a stored workflow. Give exactly one of this and `workflow_definition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_name: Option<String>,
    /// A whole definition to run now: an object, or its YAML or JSON text. Give exactly one of this
    /// and `workflow_name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_or_text")]
    pub workflow_definition: Option<Value>,
    /// The terminal session the workflow runs in; its `arguments` and `return_values` are looked up
    /// there. Absent: the caller's session when a workflow calls this tool; otherwise the one it
    /// opens, and the last one you have opened where it needs one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Variables that `{name}` in the workflow's parameters refers to, by name. One that is named
    /// like an input of the workflow is that input; a text is read by the input's type.
    #[serde(default)]
    pub initial_variables: Map<String, Value>,
    /// The workflow's inputs, by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// The most states or steps to execute before the run is stopped as endless, in place of the
    /// definition's own `limits.max_steps`. Absent: what the definition says; where it says nothing
    /// 100 states, or 10,000 steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("default" = 100))]
    pub max_states: Option<u32>,
    /// The longest the run may take, in seconds. Time spent waiting for a person or an agent does
    /// not count.
    #[serde(default = "half_an_hour")]
    #[schemars(range(min = 1.0, max = 7200.0))]
    pub execution_timeout: f64,
    /// Whether a workflow given as `workflow_definition` is stored for reuse when it succeeds.
    #[serde(default = "yes")]
    pub save_on_success: bool,
    /// The longest this call waits, in seconds. A run still going then is answered with `status:
    /// "running"` and its `workflow_id`, and goes on. Means nothing when a workflow calls this
    /// tool: it waits for its child.
    #[serde(default = "fifty_seconds")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// it reached its end
    Completed,
    /// it ended without success, or never started
    Failed,
    /// it needs an answer: see `pending`
    Waiting,
    /// it is still going
    Running,
    /// it was stopped from outside
    Cancelled,
}

/// A workflow was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunWorkflowResponse {
    /// Whether the run completed.
    pub success: bool,
    /// Where the run stands.
    pub status: RunStatus,
    /// The workflow's name; null when it has none.
    pub workflow_name: Option<String>,
    /// The run's id, for status, answers and resuming; null when no run was started.
    pub workflow_id: Option<String>,
    /// The terminal session the run used; null when it used none.
    pub session_id: Option<String>,
    /// The last state executed (`completed` for a workflow of steps; the present one while the run
    /// goes on), or `workflow_not_found`, `definition_invalid`, `validation_failed` (an argument is
    /// missing), `return_validation_failed` (a return value is missing).
    pub final_state: String,
    /// How many states were executed.
    pub states_executed: u32,
    /// How long the run has taken so far, in seconds.
    pub total_elapsed_time: f64,
    /// The environment variables the workflow needs and sets; null when there is no such workflow.
    pub workflow_signature: Option<WorkflowSignature>,
    /// What happened: one entry a state with the transition taken, and one for each check of
    /// environment variables and each error. The last of them, when all are too long for an answer.
    pub execution_log: Vec<LogEntry>,
    /// The `log_cursor` with which `get_workflow_status` answers what happened before that, from the
    /// start; null when this was all of it.
    pub next_log_cursor: Option<String>,
    /// All variables at the end, by name.
    pub final_variables: Map<String, Value>,
    /// The values that the workflow's return values had in the session at the end, by name.
    pub return_values: Entries<String>,
    /// The workflow's outputs; null when it has none or did not complete.
    pub output: Value,
    /// Whether the definition was stored for reuse by this run. False when the same one, whatever its
    /// name and description, was stored already.
    pub workflow_saved: bool,
    /// The name the definition can be run by: that of the workflow that was stored, or of the one
    /// that holds the same already; null when none does.
    pub saved_workflow_name: Option<String>,
    /// What became of the definition, in a sentence; null when there was none to store.
    pub message: Option<String>,
    /// The names of the stored workflows.
    pub available_workflows: Vec<String>,
    /// The deepest level of workflows calling workflows that was reached; 0 when none was called.
    pub recursion_depth: u32,
    /// The step that waits for an answer; null when none does.
    pub pending: Option<Map<String, Value>>,
    /// Every error of the definition, each with its place and what to do about it; empty when it was
    /// run.
    pub validation_errors: Vec<String>,
    /// What the definition says that is allowed and probably not meant, such as states that are never
    /// reached.
    pub warnings: Vec<String>,
    /// Why the run failed; null when it did not.
    pub error: Option<String>,
    /// What leads on from here where nothing in the answer does: for a run that has failed or was
    /// interrupted; null otherwise.
    pub note: Option<String>,
}

/// The environment variables a workflow needs and sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowSignature {
    /// Variables that must be set in the session before a run, by name, in the order of the
    /// definition.
    pub arguments: Entries<ContractVariable>,
    /// Variables that are set in the session after a run, by name, in the order of the definition.
    pub return_values: Entries<ContractVariable>,
    /// What the workflow does; null when it does not say.
    pub description: Option<String>,
}

impl WorkflowSignature {
    /// The signature of a workflow.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        let side = |variables: &[Variable]| {
            let variables = variables.iter().map(|variable| {
                let contract = ContractVariable {
                    name: variable.name.to_string(),
                    description: variable.description.as_deref().map(str::to_owned),
                    required: variable.required,
                };
                (variable.name.to_string(), contract)
            });
            variables.collect()
        };
        WorkflowSignature {
            arguments: side(&graph.arguments),
            return_values: side(&graph.return_values),
            description: graph.description.as_deref().map(str::to_owned),
        }
    }
}

/// An environment variable of a workflow's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractVariable {
    /// Its name.
    pub name: String,
    /// What it is for; null when the workflow does not say.
    pub description: Option<String>,
    /// Whether it must be set.
    pub required: bool,
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every entry is the large one"
)]
pub enum LogEntry {
    /// The arguments were looked up.
    PreExecutionValidation {
        /// What was found.
        validation_result: ContractCheck,
        /// When, in ISO 8601.
        timestamp: String,
    },
    /// A state was executed.
    Execution {
        /// The state.
        state: String,
        /// The tool, or the type of step, it executed; null when it had no action.
        tool: Option<String>,
        /// The parameters, with every variable replaced.
        params: Value,
        /// What the action answered.
        result: Value,
        /// Whether the action succeeded.
        tool_success: bool,
        /// Why it did not, or what an await has not found in its time; null otherwise.
        error: Option<String>,
        /// How long it took, in seconds.
        elapsed_time: f64,
        /// Where the run went from there; null when the state is final.
        transition: Option<LoggedTransition>,
        /// When, in ISO 8601.
        timestamp: String,
    },
    /// The return values were looked up.
    PostExecutionValidation {
        /// What was found.
        validation_result: ContractCheck,
        /// When, in ISO 8601.
        timestamp: String,
    },
    /// The run failed.
    Error {
        /// Why.
        error: String,
        /// When, in ISO 8601.
        timestamp: String,
    },
}

/// Where a run went from a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoggedTransition {
    /// The state it left.
    pub from_state: String,
    /// The state it went to; null when no transition applied.
    pub to_state: Option<String>,
    /// Whether a transition applied.
    pub condition_met: bool,
    /// Why none did; null when one did.
    pub message: Option<String>,
}

/// A look at the environment variables of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractCheck {
    /// Whether all required ones are set.
    pub valid: bool,
    /// The required ones that are not.
    pub missing_vars: Vec<String>,
    /// Each one looked up.
    pub validation_log: Vec<VariableCheck>,
    /// Which ones were looked up.
    pub validation_type: ContractSide,
}

/// A look at one environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariableCheck {
    /// Its name.
    pub variable: String,
    /// Whether it is set.
    pub status: VariableStatus,
    /// Whether it must be.
    pub required: bool,
}

/// Whether an environment variable is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariableStatus {
    /// it is set, be it to nothing
    Present,
    /// it is not set
    Missing,
}

/// Which environment variables are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContractSide {
    /// those that must be set before a run
    Arguments,
    /// those that must be set after it
    ReturnValues,
}

pub(super) fn object_or_text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "string"]})
}

fn half_an_hour() -> f64 {
    1800.0
}

pub(super) fn fifty_seconds() -> f64 {
    50.0
}

pub(super) fn yes() -> bool {
    true
}

tool! {
RUN_WORKFLOW: RunWorkflowRequest => RunWorkflowResponse {
    name: "run_workflow",
    title: "Run a workflow",
    description: "Runs a stored workflow by workflow_name, or one given whole as \
        workflow_definition (exactly one of the two), and answers its final state, variables and \
        log. Workflows loop, branch, type into terminals and call other workflows to a depth of 5. \
        A definition that succeeds is stored for reuse unless save_on_success is false. A run that \
        needs a person or an agent answers status waiting with the pending step; one that takes \
        longer than wait_seconds answers status running with its workflow_id.",
    toolset: Toolset::Workflow,
    read_only: false,
    destructive: true,
    idempotent: false,
    times_itself: true,
    rules: &[
        Rule::ExactlyOne(&["workflow_name", "workflow_definition"]),
        Rule::Definition("workflow_definition"),
    ],
}
}
