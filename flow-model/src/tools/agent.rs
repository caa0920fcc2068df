//! The tools of runs that an agent drives step by step.
//!
//! A tool here is a request type, a response type and a `tool!` that joins them, listed in
//! [`TOOLS`]. Its handler is offered in the command, under `serve/agent.rs`. Workflows cannot call
//! these tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Entries, LogEntry, Tool, Toolset, WorkflowSignature, tool};

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
    /// Whether the answer has the log.
    #[serde(default = "yes")]
    pub include_log: bool,
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
    /// With `sleeping`: when it goes on, in ISO 8601; null otherwise.
    pub wake_at: Option<String>,
    /// Whether some process goes on with it now.
    pub alive: bool,
    /// Whether it is not over, waits for nobody and no process goes on with it: its client left or
    /// its server ended. `resume_workflow` goes on with it.
    pub interrupted: bool,
    /// The last state executed; `completed` for a workflow of steps that is over; null before the
    /// first.
    pub final_state: Option<String>,
    /// How many states were executed.
    pub states_executed: u64,
    /// From its start to its last event, in seconds; to now while some process goes on with it.
    pub total_elapsed_time: f64,
    /// The flattened state.
    pub state: Value,
    /// All variables, by name.
    pub final_variables: Map<String, Value>,
    /// The workflow's outputs; null when it has none or did not complete.
    pub output: Value,
    /// The values that the workflow's return values had in the session at the end, by name; empty
    /// while it is not over.
    pub return_values: Entries<String>,
    /// The terminal session the run used; null when it used none.
    pub session_id: Option<String>,
    /// The environment variables the workflow needs and sets.
    pub workflow_signature: WorkflowSignature,
    /// Whether the definition that the run came with was stored for reuse. False when the same one
    /// was stored already.
    pub workflow_saved: bool,
    /// The name that definition can be run by; null when none came with the run, or it was not kept.
    pub saved_workflow_name: Option<String>,
    /// The deepest level of workflows calling workflows that was reached; 0 when none was called.
    pub recursion_depth: u32,
    /// The step that waits for an answer; null when none does. Its `workflow_id` and `step_id` are
    /// what submit_step_result takes, `answer_with` says in which form.
    pub pending: Option<Map<String, Value>>,
    /// Everything that waits for an answer, each in the same form, with long texts shortened.
    pub all_pending: Vec<Map<String, Value>>,
    /// What happened, a page of it.
    pub execution_log: Vec<LogEntry>,
    /// The `log_cursor` for what follows; null when this was the last of it.
    pub next_log_cursor: Option<String>,
    /// Why the run failed; null when it did not.
    pub error: Option<String>,
    /// The secret inputs that the run waits for, because they were given by hand to a server that is
    /// gone; absent when there are none. `resume_workflow` takes them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<String>,
    /// What leads on from here where nothing in the answer does: for a run that was interrupted or
    /// has failed; null otherwise.
    pub note: Option<String>,
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

/// Something for an agent to do. Everything in `definition` is already evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStep {
    /// Its name in the run: what its result is submitted under.
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: AgentStepType,
    /// What to do, for somebody who does not know the workflow.
    pub instructions: String,
    /// What it takes, evaluated.
    pub definition: Map<String, Value>,
    /// What each `{{ … }}` of the definition as written stands for, to understand the step by.
    pub variable_replacements: Map<String, Value>,
    /// The definition as written; null where nothing in it had to be evaluated.
    pub original_expression: Option<String>,
}

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStepType {
    /// run a command
    Shell,
    /// run a command that needs the agent's own surroundings
    AgentShellCommand,
    /// call a tool
    McpCall,
    /// have tasks done by sub-agents
    ParallelTasks,
    /// tell the person something
    UserMessage,
    /// ask the person something
    UserInput,
    /// do something, or have it done by the agent that is named
    Delegate,
    /// say which description holds
    Judge,
}

/// A task of a sub-agent that is not over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenTask {
    /// Its name: what its sub-agent gives to `get_next_step`.
    pub task_id: String,
    /// The run's id.
    pub workflow_id: String,
    /// The inputs of the task.
    pub context: Value,
    /// Whether a sub-agent has begun it.
    pub begun: bool,
    /// What its sub-agent is told in place of the step's prompt; absent where that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent_prompt: Option<String>,
}

/// A step to do, or how the run or task stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextStepResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The task that was asked about; null for the run itself.
    pub task_id: Option<String>,
    /// How it stands. Only `completed`, `failed` and `cancelled` end the loop.
    pub status: LoopStatus,
    /// What to do; null when there is nothing to do now.
    pub step: Option<AgentStep>,
    /// With `waiting_for_tasks`: tasks that are not over, the first of them.
    pub open_tasks: Vec<OpenTask>,
    /// How many tasks are not over.
    pub open_task_count: u64,
    /// Where `open_tasks` go on: the `first_task` of another `get_next_step`; null when they are all
    /// there.
    pub next_task: Option<u64>,
    /// With `waiting_for_tasks`: the step that they belong to, with the prompt and the rules for
    /// their sub-agents, for whoever has to start those once more; null otherwise.
    pub open_step: Option<AgentStep>,
    /// With `sleeping`: when it goes on, in ISO 8601; null otherwise.
    pub wake_at: Option<String>,
    /// What the run or task gave; null while it is not over.
    pub output: Value,
    /// The values that the workflow's return values had in the session at the end, by name; empty
    /// while it is not over.
    pub return_values: Entries<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
    /// The secret inputs that the run waits for, because they were given by hand to a server that is
    /// gone; absent when there are none. `resume_workflow` takes them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<String>,
    /// That a submitted result was not used and why, what leads on from a run that has failed or
    /// misses a secret, or that `output` of a task that ended long ago is no longer kept; null
    /// otherwise.
    pub note: Option<String>,
}

/// Starts a run that the caller drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StartWorkflowRequest {
    /// The workflow's name.
    pub workflow: String,
    /// Its inputs, by name.
    #[serde(default)]
    pub inputs: Map<String, Value>,
    /// The terminal session the run works in; its `arguments` are looked up there. Absent: the last
    /// one you have opened, if it needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How long to wait for the first step, in seconds, while the server works.
    #[serde(default = "fifty_seconds")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
}

/// A run was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartWorkflowResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow_name: String,
    /// How the run stands.
    pub status: LoopStatus,
    /// Its state, flattened.
    pub state: Value,
    /// What to do first; null when there is nothing to do now.
    pub step: Option<AgentStep>,
    /// With `sleeping`: when it goes on, in ISO 8601; null otherwise.
    pub wake_at: Option<String>,
    /// What the run gave; null while it is not over.
    pub output: Value,
    /// The values that the workflow's return values had in the session at the end, by name; empty
    /// while it is not over.
    pub return_values: Entries<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
    /// What leads on from a run that has failed; null otherwise.
    pub note: Option<String>,
}

/// Asks for the next step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetNextStepRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// The task of a sub-agent; absent for the agent that drives the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The context of a sub-agent; its `task_id` counts where `task_id` itself is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent_context: Option<Map<String, Value>>,
    /// How long to wait, in seconds: while the server works, and, when this is given, also for
    /// sub-agents to end or for a task's turn. Absent: 50 while the server works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: Option<f64>,
    /// Where a long list of tasks goes on: `next_task` of the step, or of the answer, before.
    #[serde(default)]
    pub first_task: u64,
    /// How many tasks to list at most. Absent: as many of a step as fit into an answer, which is
    /// nearly always every one, and the first 100 open ones, as far as they are short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_tasks: Option<u64>,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// it did what was asked
    #[default]
    Success,
    /// it could not be done
    Failed,
    /// it did not end in the time it may take
    TimedOut,
    /// the person did not want to answer
    Declined,
}

/// Submits what came of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitStepResultRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// The step's `id`.
    pub step_id: String,
    /// What the step gave, in the form that its instructions say; absent when there is nothing to
    /// give.
    #[serde(default)]
    pub result: Value,
    /// How the step ended.
    #[serde(default)]
    pub status: StepStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long to wait for the next step, in seconds, while the server works.
    #[serde(default = "fifty_seconds")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
}

/// Submits what came of the first step of a run that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitResultRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// What the step gave.
    #[serde(default)]
    pub result: Value,
    /// How the step ended.
    #[serde(default)]
    pub status: StepStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long to wait for the next step, in seconds, while the server works.
    #[serde(default = "fifty_seconds")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
}

/// Reads the state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetWorkflowStateRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// Paths to read: `files`, `config.retries`, `files[0]`; of one tier or of the inputs with that
    /// before it, as in `raw.files`, `computed.total`, `inputs.who`. Also of `variables`, of
    /// `output`, of `return_values`, of `log` with the number of an entry, as in
    /// `log.0.result.stdout`, and `error`. What they lead to is answered whole, however long. Absent:
    /// all of the state, with long values shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetWorkflowStateResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The values by field, computed ones among them; by path where paths were asked for, null for
    /// one that is not set.
    pub state: Map<String, Value>,
    /// Computed fields that have no value because their rule failed, by name, with the reason; of
    /// those that the paths name, where paths were asked for.
    pub computed_errors: BTreeMap<String, String>,
}

/// How a change combines with what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateOperation {
    /// replaces it
    #[default]
    Set,
    /// adds to the end of a list
    Append,
    /// adds to a number
    Increment,
    /// merges into a map
    Merge,
}

/// One change of state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateUpdate {
    /// Where: `raw.count`, `state.version`, `files[0].name`; without a tier it is `raw`. Computed
    /// fields and inputs cannot be written.
    pub path: String,
    /// How.
    #[serde(default)]
    pub operation: StateOperation,
    /// What; absent to increment by one.
    #[serde(default, deserialize_with = "given")]
    pub value: Option<Value>,
}

/// A value that is there, `null` too.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Changes the state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkflowStateRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// The changes: all are made, or none.
    #[schemars(length(min = 1))]
    pub updates: Vec<StateUpdate>,
}

/// The state of a run was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateWorkflowStateResponse {
    /// Whether the changes were made.
    pub success: bool,
    /// The run's id.
    pub workflow_id: String,
    /// Computed fields that changed because of it, by name.
    pub computed: Map<String, Value>,
    /// Computed fields that have no value now because their rule failed, by name, with the reason.
    pub computed_errors: BTreeMap<String, String>,
}

/// Marks the place where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointWorkflowRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// The step the agent is at; absent for the one that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Why, for whoever goes on.
    pub reason: String,
}

/// A place in a run that somebody wants to be able to come back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowCheckpoint {
    /// Its name: the run's id and the number of the event.
    pub checkpoint_id: String,
    /// The step the agent was at; null when it did not say and none waited.
    pub step_id: Option<String>,
    /// When, in ISO 8601.
    pub timestamp: String,
    /// Why.
    pub reason: String,
}

/// The place where a run is was marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointWorkflowResponse {
    /// Whether it was.
    pub success: bool,
    /// The run's id.
    pub workflow_id: String,
    /// The checkpoint's name.
    pub checkpoint_id: String,
    /// Where the run is kept.
    pub state_path: String,
    /// What to call to go on, in this conversation or another.
    pub resume_with: String,
    /// The checkpoint.
    pub checkpoint: WorkflowCheckpoint,
}

/// Goes on with a run: one that failed tries again, one that waits says what for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeWorkflowRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// For a run that has failed: the most states or steps it may execute, those before included.
    /// Absent: as many as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_states: Option<u64>,
    /// For a run that has failed: the longest it may take from now on, in seconds. Absent: its time
    /// begins again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1.0, max = 7200.0))]
    pub execution_timeout: Option<f64>,
    /// For a run with `missing_secrets`: those inputs again, by name, each as its value, `env:NAME`
    /// or `file:PATH`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// How long to wait for the next step, in seconds, while the server works.
    #[serde(default = "fifty_seconds")]
    #[schemars(range(min = 0.0, max = 7200.0))]
    pub wait_seconds: f64,
}

/// A run goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResumeWorkflowResponse {
    /// The run's id.
    pub workflow_id: String,
    /// The workflow's name.
    pub workflow_name: String,
    /// How the run stands.
    pub status: LoopStatus,
    /// Its state, flattened.
    pub state: Value,
    /// The last checkpoint; null when there is none.
    pub last_checkpoint: Option<WorkflowCheckpoint>,
    /// What to do; null when there is nothing to do now.
    pub step: Option<AgentStep>,
    /// With `waiting_for_tasks`: tasks that are not over, the first of them.
    pub open_tasks: Vec<OpenTask>,
    /// How many tasks are not over.
    pub open_task_count: u64,
    /// Where `open_tasks` go on: the `first_task` of another `get_next_step`; null when they are all
    /// there.
    pub next_task: Option<u64>,
    /// With `waiting_for_tasks`: the step that they belong to, with the prompt and the rules for
    /// their sub-agents, for whoever has to start those once more; null otherwise.
    pub open_step: Option<AgentStep>,
    /// With `sleeping`: when it goes on, in ISO 8601; null otherwise.
    pub wake_at: Option<String>,
    /// What the run gave; null while it is not over.
    pub output: Value,
    /// The values that the workflow's return values had in the session at the end, by name; empty
    /// while it is not over.
    pub return_values: Entries<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
    /// The secret inputs that the run waits for, because they were given by hand to a server that is
    /// gone; absent when there are none. `inputs` gives them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_secrets: Vec<String>,
    /// What leads on from a run that has failed; null otherwise.
    pub note: Option<String>,
}

/// How an agent ends a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompleteStatus {
    /// it has completed by itself
    #[default]
    Success,
    /// it is given up
    Failed,
    /// it is stopped
    Cancelled,
}

/// Ends a run, or takes notice that it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteWorkflowRequest {
    /// The run's id, or its beginning.
    pub workflow_id: String,
    /// How it ends. `success` needs a run that has reached its end.
    #[serde(default)]
    pub status: CompleteStatus,
    /// Why it is given up or stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A run is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompleteWorkflowResponse {
    /// Whether it completed, or was cancelled as it was asked to be.
    pub success: bool,
    /// The run's id.
    pub workflow_id: String,
    /// How it ended.
    pub status: LoopStatus,
    /// Its last state, flattened.
    pub final_state: Value,
    /// What it gave; null when it did not complete.
    pub output: Value,
    /// The values that the workflow's return values had in the session at the end, by name.
    pub return_values: Entries<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

fn yes() -> bool {
    true
}

fn fifty_seconds() -> f64 {
    50.0
}

tool! {
    START_WORKFLOW: StartWorkflowRequest => StartWorkflowResponse {
        name: "start_workflow",
        title: "Start a workflow and drive it",
        description: "Starts a workflow that you drive: the server decides what comes next and \
            does what it can, and hands you one step at a time. Answers the run's workflow_id and \
            the first step. Do what step.instructions says, submit the result with \
            submit_step_result, and go on with the step that it answers until status is \
            completed, failed or cancelled.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: true,
        idempotent: false,
        times_itself: true,
        rules: &[],
    }
}

tool! {
    GET_NEXT_STEP: GetNextStepRequest => NextStepResponse {
        name: "get_next_step",
        title: "Next step of a run",
        description: "Answers the step of a run that waits to be done, or of a sub-agent's task \
            with task_id; the same one until its result is submitted. step is null with status \
            waiting_for_tasks while sub-agents work (open_tasks lists what is open), sleeping \
            until wake_at, running while the server works, waiting for a task whose turn has not \
            come. Only completed, failed and cancelled end the loop.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: false,
        idempotent: true,
        times_itself: true,
        rules: &[],
    }
}

tool! {
    SUBMIT_STEP_RESULT: SubmitStepResultRequest => NextStepResponse {
        name: "submit_step_result",
        title: "Submit the result of a step",
        description: "Submits what came of a step and answers the next one for whoever did it. \
            With status failed the workflow's own error handling decides what follows. State is \
            written by the server. The same step twice is answered as the first time.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: true,
        idempotent: true,
        times_itself: true,
        rules: &[],
    }
}

tool! {
    SUBMIT_RESULT: SubmitResultRequest => NextStepResponse {
        name: "submit_result",
        title: "Submit the result of the pending step",
        description: "As submit_step_result, for the first step of the run that waits. Prefer \
            submit_step_result: it cannot meet another step by mistake.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: true,
        idempotent: false,
        times_itself: true,
        rules: &[],
    }
}

tool! {
    GET_WORKFLOW_STATE: GetWorkflowStateRequest => GetWorkflowStateResponse {
        name: "get_workflow_state",
        title: "State of a run",
        description: "Answers the state of a run as one flat map: computed fields, then written \
            ones. With paths only those, whole: also values that other answers show by their ends.",
        toolset: Toolset::Agent,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    UPDATE_WORKFLOW_STATE: UpdateWorkflowStateRequest => UpdateWorkflowStateResponse {
        name: "update_workflow_state",
        title: "Change the state of a run",
        description: "Changes the state of a run: all updates or none. Computed fields follow; \
            those that changed and those that failed are answered. Steps write their results themselves; this is for \
            what no step says. The state of a run that has failed can be mended before resume_workflow.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: true,
        idempotent: false,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    CHECKPOINT_WORKFLOW: CheckpointWorkflowRequest => CheckpointWorkflowResponse {
        name: "checkpoint_workflow",
        title: "Mark the place in a run",
        description: "Marks where a run is and why, for whoever goes on with it: when your \
            context is nearly full, call this, tell the person resume_with, and stop. Nothing is \
            lost without it: every result that was submitted is kept.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: false,
        idempotent: false,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    RESUME_WORKFLOW: ResumeWorkflowRequest => ResumeWorkflowResponse {
        name: "resume_workflow",
        title: "Go on with a run",
        description: "Goes on with a run, also one of an earlier conversation: answers its state, \
            the last checkpoint and the step that waits. A run that failed tries its failed step, \
            or the failed items of a foreach, again; what is done stays done.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: true,
        idempotent: true,
        times_itself: true,
        rules: &[],
    }
}

tool! {
    COMPLETE_WORKFLOW: CompleteWorkflowRequest => CompleteWorkflowResponse {
        name: "complete_workflow",
        title: "End a run",
        description: "Answers the final state of a run that is over. With status cancelled or \
            failed it ends a run that is not.",
        toolset: Toolset::Agent,
        read_only: false,
        destructive: true,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 10] = [
    &START_WORKFLOW,
    &GET_NEXT_STEP,
    &SUBMIT_STEP_RESULT,
    &SUBMIT_RESULT,
    &GET_WORKFLOW_STATUS,
    &GET_WORKFLOW_STATE,
    &UPDATE_WORKFLOW_STATE,
    &CHECKPOINT_WORKFLOW,
    &RESUME_WORKFLOW,
    &COMPLETE_WORKFLOW,
];
