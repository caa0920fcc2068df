//! The tools that keep workflows: store, list, look at, delete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::workflow::{object_or_text, yes};
use super::{Tool, Toolset, WorkflowSignature, tool};
use crate::graph::{Field, Validation};

/// Stores a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWorkflowRequest {
    /// The whole definition: an object, or its YAML or JSON text. `get_workflow_schema` says what
    /// it may contain.
    #[schemars(schema_with = "object_or_text")]
    pub workflow_definition: Value,
    /// Whether a workflow of the same name is replaced.
    #[serde(default)]
    pub overwrite_existing: bool,
}

/// A workflow was checked and stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CreateWorkflowResponse {
    /// Whether it is stored.
    pub success: bool,
    /// The name it is found by; empty when the definition says none and is not stored.
    pub workflow_name: String,
    /// The file it is stored in; empty when it is not stored.
    pub stored_file: String,
    /// The environment variables the workflow needs and sets; null when the definition has errors.
    pub workflow_signature: Option<WorkflowSignature>,
    /// Every error of the definition, each with its place and what to do about it.
    pub validation_errors: Vec<String>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
    /// Why it is not stored; null when it is.
    pub error: Option<String>,
}

/// Asks what a definition may contain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetWorkflowSchemaRequest {
    /// Whether the JSON Schema comes too: it is large, and the documentation names every key.
    #[serde(default = "yes")]
    pub include_schema: bool,
}

impl Default for GetWorkflowSchemaRequest {
    fn default() -> Self {
        Self {
            include_schema: true,
        }
    }
}

/// What a definition may contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetWorkflowSchemaResponse {
    /// The JSON Schema of definitions; null when it was left out.
    pub json_schema: Value,
    /// The language in short, with every key, and every tool and its parameters, as Markdown.
    pub documentation: String,
    /// The tools that a state can execute.
    pub available_tools: Vec<String>,
    /// Changes whenever the schema does.
    pub schema_version: String,
}

/// Lists workflows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListWorkflowsRequest {
    /// Whether the user's own and the built-in workflows are listed beside the project's.
    #[serde(default = "yes")]
    pub include_global: bool,
}

/// The workflows there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListWorkflowsResponse {
    /// The workflows, by name.
    pub workflows: Vec<WorkflowListing>,
    /// How many there are.
    pub total: u32,
}

/// A workflow in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowListing {
    /// What it is found by.
    pub name: String,
    /// What it does; null when it does not say.
    pub description: Option<String>,
    /// Its version; null when it does not say.
    pub version: Option<String>,
    /// Where it comes from: `project`, `user` or `builtin`.
    pub source: String,
    /// Its file; null for a built-in.
    pub path: Option<String>,
    /// Its inputs.
    pub parameters: Vec<WorkflowParameter>,
    /// How many states or steps it has.
    pub state_count: u32,
    /// When its file was made, in ISO 8601; null when that is not known.
    pub created: Option<String>,
    /// How often it was run.
    pub run_count: u64,
    /// How often it was run to its end.
    pub success_count: u64,
    /// When it was run last, in ISO 8601; null when it never was.
    pub last_run: Option<String>,
    /// What is wrong with its definition; null when nothing is.
    pub error: Option<String>,
}

/// An input of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowParameter {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it must be given.
    pub required: bool,
    /// What it is when absent; null when there is no default, or it is secret.
    pub default: Value,
    /// What it is for; null when the workflow does not say.
    pub description: Option<String>,
    /// Whether its value must not be shown; in lists only with `verbose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<bool>,
    /// What its value must satisfy, by rule; in lists only with `verbose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Map<String, Value>>,
}

impl WorkflowParameter {
    /// A field as lists say it: what callers need, and with `verbose` everything.
    #[must_use]
    pub fn of(field: &Field, verbose: bool) -> Self {
        // A secret's default is a secret.
        let default = field.default.as_ref().filter(|_| !field.secret);
        WorkflowParameter {
            name: field.name.to_string(),
            kind: field.ty.word().to_owned(),
            required: field.required,
            default: default.map_or(Value::Null, Value::from),
            description: field.description.as_deref().map(str::to_owned),
            secret: verbose.then_some(field.secret),
            validation: verbose.then(|| field.validation.rules()),
        }
    }
}

impl Validation {
    /// The rules that are given, under the names that definitions give them.
    #[must_use]
    pub fn rules(&self) -> Map<String, Value> {
        let Validation {
            pattern,
            min_length,
            max_length,
            one_of,
            min,
            max,
            min_items,
            max_items,
            item_type,
            required_keys,
            properties,
            error_message,
        } = self;
        // Whole numbers are written as such.
        #[expect(clippy::cast_possible_truncation, reason = "a whole number, and small")]
        let number = |number: &f64| match number.fract() == 0.0 && number.abs() < 1e15 {
            true => Value::from(*number as i64),
            false => Value::from(*number),
        };
        let some = |list: &[_]| (!list.is_empty()).then(|| Value::from(list.to_vec()));
        let values: Vec<Value> = one_of.iter().map(Value::from).collect();
        let keys: Vec<Value> = required_keys
            .iter()
            .map(|key| Value::from(&**key))
            .collect();
        let inner: Map<String, Value> = properties
            .iter()
            .map(|field| {
                let mut inner = serde_json::to_value(WorkflowParameter::of(field, true));
                if let Ok(Value::Object(inner)) = &mut inner {
                    inner.remove("name");
                }
                (field.name.to_string(), inner.unwrap_or_default())
            })
            .collect();
        let rules = [
            ("pattern", pattern.as_deref().map(Value::from)),
            ("min_length", min_length.map(Value::from)),
            ("max_length", max_length.map(Value::from)),
            ("enum", some(&values)),
            ("min", min.as_ref().map(number)),
            ("max", max.as_ref().map(number)),
            ("min_items", min_items.map(Value::from)),
            ("max_items", max_items.map(Value::from)),
            ("item_type", item_type.map(|ty| Value::from(ty.word()))),
            ("required_keys", some(&keys)),
            (
                "properties",
                (!inner.is_empty()).then_some(Value::Object(inner)),
            ),
            ("error_message", error_message.as_deref().map(Value::from)),
        ];
        let given = rules
            .into_iter()
            .filter_map(|(rule, value)| Some((rule.to_owned(), value?)));
        given.collect()
    }
}

/// Asks what a workflow is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetWorkflowInfoRequest {
    /// The workflow's name.
    pub workflow: String,
}

/// What a workflow is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetWorkflowInfoResponse {
    /// What the list says of it.
    #[serde(flatten)]
    pub listing: WorkflowListing,
    /// Its inputs by name, each with its type, default and description.
    pub inputs: Map<String, Value>,
    /// The outputs it gives, by name; null when it declares none.
    pub outputs: Value,
    /// The environment variables it needs and sets; null when its definition has errors.
    pub workflow_signature: Option<WorkflowSignature>,
    /// Where it was found: a file, or `builtin:NAME`.
    pub found_at: String,
}

/// Asks for the text of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetWorkflowDefinitionRequest {
    /// The workflow's name.
    pub workflow: String,
}

/// The text of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetWorkflowDefinitionResponse {
    /// The workflow's name.
    pub name: String,
    /// The definition as it is written, read as data.
    pub definition: Value,
    /// The definition as it is written, as text.
    pub text: String,
    /// Where it was read: a file, or `builtin:NAME`.
    pub loaded_from: String,
    /// The files it imports: `path` as written, `found_at`, `error`, and `imports` of their own.
    pub resolved_imports: Vec<Value>,
}

/// Deletes a stored workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteWorkflowRequest {
    /// The workflow's name.
    pub workflow_name: String,
}

/// A workflow was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeleteWorkflowResponse {
    /// Whether it is gone.
    pub success: bool,
    /// The workflow's name.
    pub workflow_name: String,
    /// The file that was deleted; null when none was.
    pub deleted_file: Option<String>,
    /// Why it could not be deleted; null when it could.
    pub error: Option<String>,
}

tool! {
    CREATE_WORKFLOW: CreateWorkflowRequest => CreateWorkflowResponse {
        name: "create_workflow",
        title: "Store a workflow",
        description: "Checks a workflow definition and stores it in the project under its name. \
            Answers its signature, or every error with its place and a way out. Call \
            get_workflow_schema first (include_schema: false is enough) to learn what a definition contains. A definition has a name, \
            a description and either steps, or initial_state and states: each state has an action \
            {tool, params} and transitions [{condition, next_state}], and a state without \
            transitions is final. arguments and return_values are environment variables that a run \
            needs and sets in its terminal.",
        toolset: Toolset::Workflow,
        read_only: false,
        destructive: true,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    GET_WORKFLOW_SCHEMA: GetWorkflowSchemaRequest => GetWorkflowSchemaResponse {
        name: "get_workflow_schema",
        title: "What a workflow definition contains",
        description: "Answers a short description of the language of workflow definitions with every \
            key, every tool that a state can execute with its parameters, and the JSON Schema of \
            definitions, which include_schema: false leaves out. Made from the tools of this \
            server, so it is never out of date.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    LIST_WORKFLOWS: ListWorkflowsRequest => ListWorkflowsResponse {
        name: "list_workflows",
        title: "List workflows",
        description: "Lists the workflows that can be run by name, with their parameters, where \
            they come from, how often they were run, and what is wrong with those that cannot be \
            run.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    GET_WORKFLOW_INFO: GetWorkflowInfoRequest => GetWorkflowInfoResponse {
        name: "get_workflow_info",
        title: "Look at a workflow",
        description: "Answers what a workflow does, its inputs and outputs, the environment \
            variables it needs and sets, and where it was found.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    GET_WORKFLOW_DEFINITION: GetWorkflowDefinitionRequest => GetWorkflowDefinitionResponse {
        name: "get_workflow_definition",
        title: "Read a workflow",
        description: "Answers the whole definition of a workflow, as text and as data, with the \
            files it imports.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    DELETE_WORKFLOW: DeleteWorkflowRequest => DeleteWorkflowResponse {
        name: "delete_workflow",
        title: "Delete a workflow",
        description: "Deletes a stored workflow of the project or the user. Runs of it are not \
            disturbed; built-in workflows cannot be deleted.",
        toolset: Toolset::Workflow,
        read_only: false,
        destructive: true,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 6] = [
    &CREATE_WORKFLOW,
    &GET_WORKFLOW_SCHEMA,
    &LIST_WORKFLOWS,
    &GET_WORKFLOW_INFO,
    &GET_WORKFLOW_DEFINITION,
    &DELETE_WORKFLOW,
];
