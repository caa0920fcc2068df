//! The tools a workflow can call and an MCP server offers, declared once.
//!
//! A tool is a name, typed parameters and a typed result. Its JSON Schemas come from the types, so
//! that the server's tool list, the workflow schema and the checker cannot disagree.
//!
//! ```
//! use flow_model::tools;
//!
//! let tool = tools::find("await_output").expect("it is a tool");
//! let faults = tools::check(tool, &serde_json::json!({"patern": "ready"}));
//! assert_eq!(faults[0].help.as_deref(), Some("did you mean `pattern`?"));
//! ```

#[cfg(feature = "tooling")]
mod agent;
#[cfg(feature = "tooling")]
mod brief;
mod check;
#[cfg(feature = "tooling")]
mod debug;
mod entries;
mod error;
mod fault;
#[cfg(feature = "tooling")]
mod flow;
mod habit;
mod key;
#[cfg(feature = "tooling")]
mod library;
#[cfg(feature = "tooling")]
mod memory;
mod parameter;
#[cfg(feature = "tooling")]
mod runs;
mod schema;
mod terminal;
mod variables;
mod workflow;

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[cfg(feature = "tooling")]
pub use agent::{
    AgentStep, AgentStepType, CheckpointWorkflowRequest, CheckpointWorkflowResponse,
    CompleteStatus, CompleteWorkflowRequest, CompleteWorkflowResponse, GetNextStepRequest,
    GetWorkflowStateRequest, GetWorkflowStateResponse, GetWorkflowStatusRequest,
    GetWorkflowStatusResponse, LoopStatus, NextStepResponse, OpenTask, ResumeWorkflowRequest,
    ResumeWorkflowResponse, StartWorkflowRequest, StartWorkflowResponse, StateOperation,
    StateUpdate, StepStatus, SubmitResultRequest, SubmitStepResultRequest,
    UpdateWorkflowStateRequest, UpdateWorkflowStateResponse, WorkflowCheckpoint,
};
#[cfg(feature = "tooling")]
pub use brief::{AgentRequest, AgentResponse, BriefListing, PromptRequest, PromptResponse};
pub use check::{Known, check, check_parameters, request};
#[cfg(feature = "tooling")]
pub use debug::{
    DebugWorkflowRequest, DebugWorkflowResponse, ExplainWorkflowRequest, ExplainWorkflowResponse,
    GetStateDependenciesRequest, GetStateDependenciesResponse, PlannedStep, SlowTransformation,
    StateSize, StepVisit, TestTransformationRequest, TestTransformationResponse,
    TraceTransformationsRequest, TraceTransformationsResponse, TransformationTimes,
    TransformationTrace, VisitStatus,
};
pub use entries::Entries;
pub use error::ToolError;
pub use fault::{FaultKind, InvalidParameters, ParameterFault, Segment};
#[cfg(feature = "tooling")]
pub use flow::{FlowRequest, FlowResponse, ListFormat};
pub use key::{Key, KeyCode, UnknownKey};
#[cfg(feature = "tooling")]
pub use library::{
    CreateWorkflowRequest, CreateWorkflowResponse, DeleteWorkflowRequest, DeleteWorkflowResponse,
    GetWorkflowDefinitionRequest, GetWorkflowDefinitionResponse, GetWorkflowInfoRequest,
    GetWorkflowInfoResponse, GetWorkflowSchemaRequest, GetWorkflowSchemaResponse,
    ListWorkflowsRequest, ListWorkflowsResponse, WorkflowListing, WorkflowParameter,
};
#[cfg(feature = "tooling")]
pub use memory::{
    ListMemoryKeysRequest, ListMemoryKeysResponse, LoadFromMemoryRequest, LoadFromMemoryResponse,
    SaveToMemoryRequest, SaveToMemoryResponse,
};
pub use parameter::{Parameter, Shape};
#[cfg(feature = "tooling")]
pub use runs::{ListRunsRequest, ListRunsResponse, ListedRun, ListedStatus};
pub use terminal::{
    AwaitOutputRequest, AwaitOutputResponse, AwaitTarget, CommandStatus, ContentMode,
    ExitTerminalRequest, ExitTerminalResponse, GetScreenContentRequest, GetScreenContentResponse,
    ListTerminalSessionsRequest, ListTerminalSessionsResponse, OpenTerminalRequest,
    OpenTerminalResponse, RunCommandRequest, RunCommandResponse, SendInputRequest,
    SendInputResponse, TerminalSession,
};
pub use variables::{STANDARD_VARIABLES, StandardVariable, standard_variable};
pub use workflow::{
    ContractCheck, ContractSide, ContractVariable, LogEntry, LoggedTransition, RunStatus,
    RunWorkflowRequest, RunWorkflowResponse, VariableCheck, VariableStatus, WorkflowSignature,
};

/// A tool: what it is called, what it takes, what it answers.
#[derive(Debug)]
pub struct Tool {
    /// Its name, in a workflow and over MCP.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it does and when to use it, for an agent that chooses among tools.
    pub description: &'static str,
    /// The group it is offered with.
    pub toolset: Toolset,
    /// Whether it changes nothing at all.
    pub read_only: bool,
    /// Whether it can undo or destroy something.
    pub destructive: bool,
    /// Whether a second, equal call changes nothing more.
    pub idempotent: bool,
    /// Whether it has a time limit of its own, so that a step's default one does not apply.
    pub times_itself: bool,
    /// What its parameters must satisfy beyond the schema.
    pub rules: &'static [Rule],
    input: LazyLock<Input>,
    output: LazyLock<Output>,
}

/// A group of tools that is offered or held back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Toolset {
    /// Terminal sessions.
    Terminal,
    /// Workflows, run and managed by name.
    Workflow,
    /// Runs that an agent drives step by step.
    Agent,
    /// Looking into runs.
    Debug,
}

impl Toolset {
    /// What it is called where a server is started.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Toolset::Terminal => "terminal",
            Toolset::Workflow => "workflow",
            Toolset::Agent => "agent",
            Toolset::Debug => "debug",
        }
    }
}

/// A demand on parameters that stands beside the schema: agents' APIs refuse `oneOf` and `anyOf`
/// at the top of a tool's schema, and JSON Schema's patterns are not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Exactly one of these is given.
    ExactlyOne(&'static [&'static str]),
    /// At least one of these is given.
    AtLeastOne(&'static [&'static str]),
    /// This is a regular expression.
    Pattern(&'static str),
    /// This is a list of named keys.
    Keys(&'static str),
    /// A shell reads this: values that a workflow puts into it are quoted.
    Command(&'static str),
    /// The program in front of a terminal reads this, whichever it is: values are typed as they are.
    Typed(&'static str),
    /// This is a workflow of its own: what looks like a value in it is one of its own run.
    Definition(&'static str),
}

/// Who reads the text of a parameter, which decides how a workflow puts values into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The tool itself.
    Tool,
    /// A regular expression engine.
    Pattern,
    /// A shell.
    Shell,
    /// The program in front of a terminal.
    Program,
    /// Another run, which fills in its own values.
    Run,
}

/// The parameters of one tool, as a type.
pub trait Request: Serialize + DeserializeOwned + JsonSchema + 'static {
    /// What the tool answers.
    type Response: Serialize + DeserializeOwned + JsonSchema + 'static;

    /// The tool.
    fn tool() -> &'static Tool;
}

/// What the request type says.
#[derive(Debug)]
struct Input {
    schema: Value,
    parameters: Vec<Parameter>,
}

impl Input {
    fn of<R: Request>() -> Self {
        let schema = schema::of_request::<R>();
        let parameters = parameter::all_of(&schema);
        Self { schema, parameters }
    }
}

/// What the response type says.
#[derive(Debug)]
struct Output {
    schema: Value,
    fields: Vec<String>,
}

impl Output {
    fn of<R: Request>() -> Self {
        let schema = schema::of_response::<R::Response>();
        let fields = schema["properties"]
            .as_object()
            .map(|properties| properties.keys().cloned().collect())
            .unwrap_or_default();
        Self { schema, fields }
    }
}

impl Tool {
    /// The JSON Schema of its parameters; self-contained, closed to unknown names.
    pub fn input_schema(&self) -> &Value {
        &self.input.schema
    }

    /// The JSON Schema of its result; self-contained, open to more fields.
    pub fn output_schema(&self) -> &Value {
        &self.output.schema
    }

    /// Its parameters, in the order of the schema.
    pub fn parameters(&self) -> &[Parameter] {
        &self.input.parameters
    }

    /// One of its parameters.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters()
            .iter()
            .find(|parameter| parameter.name == name)
    }

    /// The names of its result's fields: a state that calls it defines `<state>_<field>` of each.
    pub fn result_fields(&self) -> &[String] {
        &self.output.fields
    }

    /// Whether its result has this field.
    pub fn has_result_field(&self, name: &str) -> bool {
        self.result_fields().iter().any(|field| field == name)
    }

    /// Who reads the text of this parameter.
    pub fn reader(&self, parameter: &str) -> Reader {
        let mut rules = self.rules.iter();
        let found = rules.find_map(|rule| match rule {
            Rule::Pattern(name) if *name == parameter => Some(Reader::Pattern),
            Rule::Command(name) if *name == parameter => Some(Reader::Shell),
            Rule::Typed(name) if *name == parameter => Some(Reader::Program),
            Rule::Definition(name) if *name == parameter => Some(Reader::Run),
            Rule::Pattern(_)
            | Rule::Command(_)
            | Rule::Typed(_)
            | Rule::Definition(_)
            | Rule::ExactlyOne(_)
            | Rule::AtLeastOne(_)
            | Rule::Keys(_) => None,
        });
        found.unwrap_or(Reader::Tool)
    }

    /// Whether it works on a terminal session, which is injected when a workflow names none.
    pub fn takes_session(&self) -> bool {
        self.parameter("session_id").is_some()
    }
}

/// A tool and the request type that stands for it, from one declaration.
macro_rules! tool {
    ($tool:ident: $request:ty => $response:ty { $($field:ident: $value:expr),* $(,)? }) => {
        pub(super) static $tool: $crate::tools::Tool = $crate::tools::Tool {
            $($field: $value,)*
            input: std::sync::LazyLock::new($crate::tools::Input::of::<$request>),
            output: std::sync::LazyLock::new($crate::tools::Output::of::<$request>),
        };

        impl $crate::tools::Request for $request {
            type Response = $response;

            fn tool() -> &'static $crate::tools::Tool {
                &$tool
            }
        }
    };
}
use tool;

static ALL: [&Tool; 8] = [
    &terminal::OPEN_TERMINAL,
    &terminal::SEND_INPUT,
    &terminal::GET_SCREEN_CONTENT,
    &terminal::AWAIT_OUTPUT,
    &terminal::LIST_TERMINAL_SESSIONS,
    &terminal::EXIT_TERMINAL,
    &terminal::RUN_COMMAND,
    &workflow::RUN_WORKFLOW,
];

/// Every tool that a workflow can call.
pub fn all() -> &'static [&'static Tool] {
    &ALL
}

/// The tool of this name that a workflow can call.
pub fn find(name: &str) -> Option<&'static Tool> {
    all().iter().copied().find(|tool| tool.name == name)
}

/// Every tool that an MCP server offers: those of [`all`], and those that only agents call.
#[cfg(feature = "tooling")]
pub fn served() -> impl Iterator<Item = &'static Tool> {
    let lists: [&[&Tool]; 8] = [
        &ALL,
        &flow::TOOLS,
        &library::TOOLS,
        &memory::TOOLS,
        &brief::TOOLS,
        &agent::TOOLS,
        &runs::TOOLS,
        &debug::TOOLS,
    ];
    lists.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests;
