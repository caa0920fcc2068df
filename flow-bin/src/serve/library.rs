//! Keeping workflows: list, look at, store, delete, and what a definition may contain.

use std::collections::HashMap;
use std::sync::Arc;

use flow_model::graph::{Field, Graph, Variable};
use flow_model::schema;
use flow_model::tools::{
    self, ContractVariable, GetWorkflowDefinitionRequest, GetWorkflowDefinitionResponse,
    GetWorkflowInfoRequest, GetWorkflowInfoResponse, GetWorkflowSchemaRequest,
    GetWorkflowSchemaResponse, ListWorkflowsRequest, ListWorkflowsResponse, WorkflowListing,
    WorkflowParameter, WorkflowSignature,
};
use flow_runtime::journal::{Hash, Tally};
use flow_runtime::library::{Entry, Location, Place, Workflow, read};
use flow_runtime::run::time;
use serde_json::{Map, Value, json};

use super::Server;
use super::catalogue::{created, found_at};
use super::tool::{Call, Offer, Refused};
use crate::list;

pub(super) fn offers() -> Vec<Offer> {
    vec![
        Offer::new(get_workflow_schema),
        Offer::new(list_workflows),
        Offer::new(get_workflow_info),
        Offer::new(get_workflow_definition),
    ]
}

async fn get_workflow_schema(
    _server: Arc<Server>,
    _request: GetWorkflowSchemaRequest,
    _call: Call,
) -> Result<GetWorkflowSchemaResponse, Refused> {
    let json_schema = schema::workflow();
    let version = Hash::of(json_schema.to_string().as_bytes()).to_string();
    let names = tools::all().iter().map(|tool| tool.name.to_owned());
    Ok(GetWorkflowSchemaResponse {
        documentation: documentation(),
        available_tools: names.collect(),
        schema_version: format!(
            "{}+{}",
            env!("CARGO_PKG_VERSION"),
            version.chars().take(12).collect::<String>()
        ),
        json_schema,
    })
}

/// The language in short, with the tools of the registry.
fn documentation() -> String {
    let mut text = include_str!("definitions.md").to_owned();
    text.push_str("\n## Tools that a state can execute\n");
    for tool in tools::all() {
        text.push_str(&format!("\n**{}** – {}\n", tool.name, tool.description));
        for parameter in tool.parameters() {
            let need = match (&parameter.default, parameter.required) {
                (_, true) => "required".to_owned(),
                (Some(default), false) => format!("default {default}"),
                (None, false) => "optional".to_owned(),
            };
            let described = parameter.description.lines().next().unwrap_or_default();
            text.push_str(&format!("- `{}` ({need}): {described}\n", parameter.name));
        }
        let fields = tool.result_fields().join(", ");
        text.push_str(&format!("- result: {fields}\n"));
    }
    text
}

async fn list_workflows(
    server: Arc<Server>,
    request: ListWorkflowsRequest,
    _call: Call,
) -> Result<ListWorkflowsResponse, Refused> {
    let workflows = listings(&server, |entry| {
        request.include_global || entry.place == Place::Project
    })?;
    Ok(ListWorkflowsResponse {
        total: u32::try_from(workflows.len()).unwrap_or(u32::MAX),
        workflows,
    })
}

/// The workflows of the library that are wanted, as a list says them.
pub(super) fn listings(
    server: &Server,
    is_wanted: impl Fn(&Entry) -> bool,
) -> Result<Vec<WorkflowListing>, Refused> {
    let tallies = tallies(server)?;
    let catalogue = server.shelves.catalogue();
    let workflows = catalogue.workflows.iter();
    Ok(workflows
        .filter(|workflow| is_wanted(&workflow.entry))
        .map(|workflow| listing(workflow, &tallies))
        .collect())
}

fn tallies(server: &Server) -> Result<HashMap<String, Tally>, Refused> {
    let tallies = server.host.journal().tallies()?.into_iter();
    Ok(tallies
        .map(|tally| (tally.workflow.clone(), tally))
        .collect())
}

fn listing(workflow: &Workflow, tallies: &HashMap<String, Tally>) -> WorkflowListing {
    let Workflow { entry, definition } = workflow;
    let graph = definition.as_deref().ok();
    let tally = tallies.get(&entry.name);
    let fields = graph.map(list::parameters).unwrap_or_default();
    WorkflowListing {
        name: entry.name.clone(),
        description: graph.and_then(|it| it.description.as_deref().map(str::to_owned)),
        version: graph.and_then(|it| it.version.as_deref().map(str::to_owned)),
        source: entry.place.word().to_owned(),
        path: entry.file().map(|path| path.display().to_string()),
        parameters: fields.iter().map(parameter).collect(),
        state_count: graph.map_or(0, |it| u32::try_from(it.body.nodes.len()).unwrap_or(0)),
        created: created(workflow).map(time::iso),
        run_count: tally.map_or(0, |tally| tally.run_count),
        last_run: tally.map(|tally| time::iso(tally.last_run)),
        error: definition.as_ref().err().map(ToString::to_string),
    }
}

fn parameter(field: &Field) -> WorkflowParameter {
    // A secret's default is a secret.
    let default = field.default.as_ref().filter(|_| !field.secret);
    WorkflowParameter {
        name: field.name.to_string(),
        kind: list::word(field.ty).to_owned(),
        required: field.required,
        default: default.map_or(Value::Null, Value::from),
        description: field.description.as_deref().map(str::to_owned),
    }
}

/// The environment variables that a workflow needs and sets.
pub(super) fn signature(graph: &Graph) -> WorkflowSignature {
    let by_name = |variables: &[Variable]| {
        let variables = variables.iter().map(|variable| {
            let described = ContractVariable {
                name: variable.name.to_string(),
                description: variable.description.as_deref().map(str::to_owned),
                required: variable.required,
            };
            (variable.name.to_string(), described)
        });
        variables.collect()
    };
    WorkflowSignature {
        arguments: by_name(&graph.arguments),
        return_values: by_name(&graph.return_values),
        description: graph.description.as_deref().map(str::to_owned),
    }
}

/// The workflow of a name, or that there is none and which there are.
pub(super) fn find(server: &Server, name: &str) -> Result<Entry, Refused> {
    let found = server.shelves.library().get(name)?;
    found.ok_or_else(|| Refused(server.shelves.no_such(name)))
}

async fn get_workflow_info(
    server: Arc<Server>,
    request: GetWorkflowInfoRequest,
    _call: Call,
) -> Result<GetWorkflowInfoResponse, Refused> {
    let entry = find(&server, &request.workflow)?;
    let catalogue = server.shelves.catalogue();
    let mut workflows = catalogue.workflows.iter();
    let known = workflows.find(|workflow| workflow.entry.name == entry.name);
    let Some(workflow) = known else {
        let what = format!("`{}` is a part that workflows import", entry.name);
        return Err(Refused(what));
    };
    let graph = workflow.definition.as_deref().ok();
    let fields = graph.map(list::parameters).unwrap_or_default();
    let inputs: Map<String, Value> = fields
        .iter()
        .filter_map(|field| {
            let described = serde_json::to_value(parameter(field)).ok()?;
            Some((field.name.to_string(), described))
        })
        .collect();
    let outputs = graph.filter(|it| !it.outputs.is_empty()).map(|graph| {
        let outputs = graph.outputs.iter().map(|output| {
            let described = json!({
                "type": list::word(output.field.ty),
                "description": output.field.description,
            });
            (output.field.name.to_string(), described)
        });
        Value::Object(outputs.collect())
    });
    Ok(GetWorkflowInfoResponse {
        listing: listing(workflow, &tallies(&server)?),
        inputs,
        outputs: outputs.unwrap_or(Value::Null),
        workflow_signature: graph.map(signature),
        found_at: found_at(&entry),
    })
}

async fn get_workflow_definition(
    server: Arc<Server>,
    request: GetWorkflowDefinitionRequest,
    _call: Call,
) -> Result<GetWorkflowDefinitionResponse, Refused> {
    let entry = find(&server, &request.workflow)?;
    let text = text(&entry)?;
    let source = flow_model::source::Source::new(found_at(&entry), text.as_str());
    let definition = match source.tree() {
        Ok(tree) => tree.to_json(),
        Err(_) => Value::Null,
    };
    let compiled = server.shelves.library().compile(&entry)?;
    let imports = compiled.sources.all().iter().skip(1);
    Ok(GetWorkflowDefinitionResponse {
        name: entry.name.clone(),
        definition,
        text,
        loaded_from: found_at(&entry),
        resolved_imports: imports.map(|source| source.name().to_owned()).collect(),
    })
}

/// The text of a workflow as it is written.
pub(super) fn text(entry: &Entry) -> Result<String, Refused> {
    Ok(match &entry.location {
        Location::File(path) => read(path)?.lossy().into_owned(),
        Location::Text(text) => text.to_string(),
    })
}
