//! Keeping workflows: list, look at, store, delete, and what a definition may contain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use flow_model::diagnostic::Severity;
use flow_model::grammar::{self, Instead, Key, Record, Type};
use flow_model::graph::Graph;
use flow_model::schema;
use flow_model::tools::{
    self, CreateWorkflowRequest, CreateWorkflowResponse, DeleteWorkflowRequest,
    DeleteWorkflowResponse, GetWorkflowDefinitionRequest, GetWorkflowDefinitionResponse,
    GetWorkflowInfoRequest, GetWorkflowInfoResponse, GetWorkflowSchemaRequest,
    GetWorkflowSchemaResponse, ListWorkflowsRequest, ListWorkflowsResponse, WorkflowListing,
    WorkflowParameter,
};
use flow_runtime::journal::{Hash, Tally};
use flow_runtime::library::{
    Definition, Entry, Fault, Location, Place, StoreError, Workflow, read, says_name,
};
use flow_runtime::run::time;
use serde_json::{Map, Value};

use super::Server;
use super::catalogue::{Reading, found_at};
use super::line::Written;
use super::tool::{Call, LIST, Offer, Refused, Reply};
use crate::findings;
use crate::list;

pub(super) fn offers() -> Vec<Offer> {
    vec![
        Offer::new(create_workflow),
        Offer::new(delete_workflow),
        Offer::new(get_workflow_schema),
        Offer::new(list_workflows),
        Offer::new(get_workflow_info),
        Offer::new(get_workflow_definition),
    ]
}

async fn get_workflow_schema(
    _server: Arc<Server>,
    request: GetWorkflowSchemaRequest,
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
        json_schema: match request.include_schema {
            true => json_schema,
            false => Value::Null,
        },
    })
}

/// What a definition is made of, in a few lines: an agent that has only the list of tools can write
/// a plain one.
pub(super) fn outline() -> String {
    let names = |record: &Record| -> String {
        let keys = record
            .all_keys()
            .filter(|key| key.instead == Instead::Canonical);
        let names: Vec<String> = keys.map(|key| starred(key.name, key.required)).collect();
        names.join(", ")
    };
    let kinds = grammar::STEPS.iter().filter(|step| !step.alias);
    let kinds: Vec<&str> = kinds.map(|step| step.word).collect();
    let mut text = format!(
        "Required is what has a star.\nA definition: {}\nA state: {}\nA transition: {}\n\
         A condition: {}\nA step: type* (one of {}), and the keys of its type\nTools of states:",
        names(&grammar::DOCUMENT),
        names(&grammar::STATE),
        names(&grammar::TRANSITION),
        conditions(),
        kinds.join(", "),
    );
    for tool in tools::all() {
        let parameters: Vec<String> = tool
            .parameters()
            .iter()
            .map(|it| starred(&it.name, it.required))
            .collect();
        text.push_str(&format!("\n{}({})", tool.name, parameters.join(", ")));
    }
    text
}

fn starred(name: &str, required: bool) -> String {
    format!("{name}{}", if required { "*" } else { "" })
}

/// The words of a condition, then the keys of one that is an object.
fn conditions() -> String {
    fn add(kind: &Type, words: &mut Vec<String>) {
        match kind {
            Type::Either(kinds) => kinds.iter().for_each(|kind| add(kind, words)),
            Type::Word(all) => words.extend(all.iter().map(|word| (*word).to_owned())),
            Type::Record(record) => {
                words.extend(record.all_keys().map(|key| format!("{{{}: …}}", key.name)));
            }
            _ => {}
        }
    }
    let mut words = Vec::new();
    if let Some(condition) = grammar::TRANSITION.find("condition") {
        add(condition.ty, &mut words);
    }
    words.join(", ")
}

/// The language in short, with its keys and the tools of the registry.
fn documentation() -> String {
    let mut text = include_str!("definitions.md").to_owned();
    text.push_str("\n## Keys\n\nWhat has a star is required.\n");
    let mut section = |title: &str, doc: &str, keys: &[Key]| {
        text.push_str(&format!("\n**{title}** – {doc}\n"));
        for key in keys.iter().filter(|key| key.instead == Instead::Canonical) {
            let default = match key.default {
                "" => String::new(),
                default => format!(" Default: {default}."),
            };
            let name = starred(key.name, key.required);
            text.push_str(&format!("- `{name}`: {}{default}\n", key.doc));
        }
    };
    section(
        "A definition",
        grammar::DOCUMENT.doc,
        grammar::DOCUMENT.keys,
    );
    section("An input", grammar::FIELD.doc, grammar::FIELD.keys);
    section(
        "A computed field",
        grammar::COMPUTED.doc,
        grammar::COMPUTED.keys,
    );
    section("A task", grammar::TASK.doc, grammar::TASK.keys);
    section(
        "Every step",
        "What all types of steps have.",
        grammar::COMMON,
    );
    for word in grammar::STEPS.iter().filter(|word| !word.alias) {
        section(
            &format!("type: {}", word.word),
            word.record.doc,
            word.record.keys,
        );
    }
    section("A state", grammar::STATE.doc, grammar::STATE.keys);
    section(
        "A transition",
        grammar::TRANSITION.doc,
        grammar::TRANSITION.keys,
    );
    text.push_str(&format!("\nA condition is one of: {}.\n", conditions()));
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
) -> Result<Reply<ListWorkflowsResponse>, Refused> {
    let tallies = server.host.journal().tallies()?;
    let reading = server.shelves.reading();
    let all = request.include_global;
    let list = reading.lists.list(all, tallies, |tallies| {
        let is_wanted = |entry: &Entry| all || entry.place == Place::Project;
        let workflows = listings(&reading, tallies, false, is_wanted);
        Written::new(&ListWorkflowsResponse {
            total: u32::try_from(workflows.len()).unwrap_or(u32::MAX),
            workflows,
        })
    })?;
    Ok(Reply::Again(list))
}

/// Lists of the workflows of one reading, kept as they were written: agents ask for them again and
/// again, and little changes in between.
#[derive(Default)]
pub(crate) struct Lists {
    all: Mutex<Option<List>>,
    own: Mutex<Option<List>>,
}

struct List {
    tallies: Vec<Tally>,
    answer: Arc<Written>,
}

impl Lists {
    fn list(
        &self,
        all: bool,
        tallies: Vec<Tally>,
        written: impl FnOnce(&[Tally]) -> serde_json::Result<Written>,
    ) -> serde_json::Result<Arc<Written>> {
        let list = if all { &self.all } else { &self.own };
        let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = list.as_ref().filter(|list| list.tallies == tallies) {
            return Ok(Arc::clone(&list.answer));
        }
        let answer = written(&tallies)?.into();
        Ok(Arc::clone(&list.insert(List { tallies, answer }).answer))
    }
}

/// Every workflow with what its runs amount to, as a list says them.
pub(super) fn all_listings(
    server: &Server,
    verbose: bool,
) -> Result<Vec<WorkflowListing>, Refused> {
    let tallies = server.host.journal().tallies()?;
    let reading = server.shelves.reading();
    Ok(listings(&reading, &tallies, verbose, |_| true))
}

fn listings(
    reading: &Reading,
    tallies: &[Tally],
    verbose: bool,
    is_wanted: impl Fn(&Entry) -> bool,
) -> Vec<WorkflowListing> {
    let tallies: HashMap<&str, &Tally> = tallies
        .iter()
        .map(|tally| (tally.workflow.as_str(), tally))
        .collect();
    let workflows = reading.catalogue.workflows.iter().zip(&reading.created);
    workflows
        .filter(|(workflow, _)| is_wanted(&workflow.entry))
        .map(|(Workflow { entry, definition }, created)| {
            let tally = tallies.get(entry.name.as_str()).copied();
            listing(entry, definition, *created, tally, verbose)
        })
        .collect()
}

fn listing(
    entry: &Entry,
    definition: &Result<Box<Graph>, Fault>,
    created: Option<u64>,
    tally: Option<&Tally>,
    verbose: bool,
) -> WorkflowListing {
    let graph = definition.as_deref().ok();
    let fields = graph.map(list::parameters).unwrap_or_default();
    WorkflowListing {
        name: entry.name.clone(),
        description: graph.and_then(|it| it.description.as_deref().map(str::to_owned)),
        version: graph.and_then(|it| it.version.as_deref().map(str::to_owned)),
        source: entry.place.word().to_owned(),
        path: entry.file().map(|path| path.display().to_string()),
        parameters: fields
            .iter()
            .map(|field| WorkflowParameter::of(field, verbose))
            .collect(),
        state_count: graph.map_or(0, |it| u32::try_from(it.body.nodes.len()).unwrap_or(0)),
        created: created.map(time::iso),
        run_count: tally.map_or(0, |tally| tally.run_count),
        success_count: tally.map_or(0, |tally| tally.success_count),
        last_run: tally.map(|tally| time::iso(tally.last_run)),
        error: definition.as_ref().err().map(ToString::to_string),
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
    let library = server.shelves.library();
    let card = library.card(&entry.name, Some(server.host.journal()))?;
    let described = card.to_json();
    let inputs = match &described["inputs"] {
        Value::Object(inputs) => inputs.clone(),
        _ => Map::new(),
    };
    Ok(GetWorkflowInfoResponse {
        listing: listing(
            &card.entry,
            &card.definition,
            card.created,
            card.runs.as_ref(),
            true,
        ),
        inputs,
        outputs: described["outputs"].clone(),
        workflow_signature: card.definition.is_ok().then(|| card.signature()),
        found_at: found_at(&entry),
    })
}

async fn get_workflow_definition(
    server: Arc<Server>,
    request: GetWorkflowDefinitionRequest,
    _call: Call,
) -> Result<GetWorkflowDefinitionResponse, Refused> {
    let entry = find(&server, &request.workflow)?;
    let original = server.shelves.library().original(&entry.name)?;
    let imports = original.imports.iter();
    Ok(GetWorkflowDefinitionResponse {
        name: entry.name.clone(),
        definition: original.definition.unwrap_or_default(),
        text: original.text,
        loaded_from: found_at(&original.entry),
        resolved_imports: imports
            .filter_map(|import| serde_json::to_value(import).ok())
            .collect(),
    })
}

async fn create_workflow(
    server: Arc<Server>,
    request: CreateWorkflowRequest,
    _call: Call,
) -> Result<CreateWorkflowResponse, Refused> {
    let definition = Definition::Value(&request.workflow_definition);
    let library = server.shelves.library();
    let mut response = CreateWorkflowResponse {
        success: false,
        workflow_name: String::new(),
        stored_file: String::new(),
        workflow_signature: None,
        validation_errors: Vec::new(),
        warnings: Vec::new(),
        error: None,
    };
    match library.create(definition, request.overwrite_existing) {
        Ok(created) => {
            let file = created.entry.file();
            response.success = true;
            response.stored_file = file.map_or_else(String::new, |it| it.display().to_string());
            response.workflow_name = created.entry.name;
            response.workflow_signature = Some(created.signature);
            response.warnings = findings::lines(&created.compiled, Severity::Warning);
            if response.workflow_name == LIST {
                response.warnings.push(format!(
                    "`{LIST}` is what `flow` takes for the list of workflows: run this one with \
                     flow_name `_{LIST}`, or with `run_workflow`"
                ));
            }
            // Whoever waits for new workflows hears of it now.
            server.shelves.reading();
        }
        Err(StoreError::Invalid(compiled)) => {
            let errors = findings::lines(&compiled, Severity::Error);
            let name = compiled.draft().map(|draft| draft.name.to_string());
            let name = name.filter(|_| says_name(&request.workflow_definition));
            response.workflow_name = name.unwrap_or_default();
            response.error = Some(match errors.len() {
                1 => "the definition has an error".to_owned(),
                many => format!("the definition has {many} errors"),
            });
            response.validation_errors = errors;
            response.warnings = findings::lines(&compiled, Severity::Warning);
        }
        Err(StoreError::Exists(entry)) => {
            let error = format!(
                "there is a workflow `{}` already ({}); overwrite_existing replaces it",
                entry.name,
                found_at(&entry)
            );
            response.validation_errors = vec![error.clone()];
            response.workflow_name = entry.name;
            response.error = Some(error);
        }
        Err(error) => {
            response.validation_errors = vec![error.to_string()];
            response.error = Some(error.to_string());
        }
    }
    Ok(response)
}

async fn delete_workflow(
    server: Arc<Server>,
    request: DeleteWorkflowRequest,
    _call: Call,
) -> Result<DeleteWorkflowResponse, Refused> {
    let name = request.workflow_name;
    let deleted = server.shelves.library().delete(&name);
    let (deleted_file, error) = match deleted {
        Ok(deleted) => {
            // A new one of the name begins anew.
            server.host.journal().forget_tally(&deleted.entry.name)?;
            server.shelves.reading();
            let file = deleted.entry.file();
            (file.map(|it| it.display().to_string()), None)
        }
        Err(StoreError::NotFound { name, .. }) => (None, Some(server.shelves.no_such(&name))),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(DeleteWorkflowResponse {
        success: error.is_none(),
        workflow_name: name,
        deleted_file,
        error,
    })
}

/// The text of a workflow as it is written.
pub(super) fn text(entry: &Entry) -> Result<String, Refused> {
    Ok(match &entry.location {
        Location::File(path) => read(path)?.lossy().into_owned(),
        Location::Text(text) => text.to_string(),
    })
}
