//! Prompts: how to drive a workflow step by step, and the prompt files of the project and the user.

use std::collections::HashMap;
use std::sync::Arc;

use flow_model::graph::{Field, Graph, Type};
use flow_model::tools::{Request, StartWorkflowRequest};
use flow_runtime::briefs::{Brief, BriefError, Kind};
use flow_runtime::value::Value as Given;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use super::Server;
use super::definition::Definition;
use super::given_inputs;
use super::tool::Refused;
use crate::list;

/// The prompt that makes an agent drive a workflow.
pub(super) const ORCHESTRATOR: &str = "workflow";
const ORCHESTRATOR_TEXT: &str = include_str!("orchestrator.md");
/// How a run is begun, and how one is gone on with.
const START: &str = "Call `start_workflow` with `workflow: \"<WORKFLOW>\"` and the inputs as an object. \
    Remember its workflow_id.";
const RESUME: &str = "Call `resume_workflow` with `workflow_id: \"<RUN>\"`: the run has begun before. \
    Its answer has the state, the last checkpoint and the step that waits.";

/// Whether an agent can be made to drive a workflow: with tools that are offered.
fn is_drivable(server: &Server) -> bool {
    server.offers.has(StartWorkflowRequest::tool().name)
}

pub(super) fn list(server: &Server) -> Vec<Prompt> {
    let arguments = vec![
        PromptArgument::new("workflow")
            .with_description("The workflow to drive; not needed with `run`")
            .with_required(false),
        PromptArgument::new("inputs")
            .with_description("Its inputs, as a JSON object or as key=value words")
            .with_required(false),
        PromptArgument::new("run")
            .with_description("The id of a run of it to go on with, instead of beginning one")
            .with_required(false),
    ];
    let described = "Drives a workflow step by step: what the server cannot do itself is done here";
    let own = Prompt::new(ORCHESTRATOR, Some(described), Some(arguments));
    let own = own.with_title("Drive a workflow");
    let files = server.briefs(Kind::Prompt).list().into_iter();
    // One that cannot be read says why when it is asked for.
    let files = files
        .filter(|found| found.name != ORCHESTRATOR)
        .map(|found| {
            let name = found.name.clone();
            let brief = Brief::read(found).ok();
            let arguments = brief.as_ref().and_then(Brief::arguments);
            let arguments = arguments.map(|fields| fields.iter().map(argument).collect());
            let described = brief.as_ref().and_then(|brief| brief.description.clone());
            Prompt::new(name, described, arguments)
        });
    let own = Some(own).filter(|_| is_drivable(server));
    own.into_iter().chain(files).collect()
}

fn argument(field: &Field) -> PromptArgument {
    let argument = PromptArgument::new(field.name.to_string()).with_required(field.required);
    match field.description.as_deref() {
        Some(description) => argument.with_description(description),
        None => argument,
    }
}

/// A prompt file with its arguments filled in; texts are read by the types of the arguments.
fn file(server: &Server, name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let refused = |error: BriefError| {
        let known = list(server).into_iter().map(|prompt| prompt.name);
        let known = known.collect::<Vec<_>>().join(", ");
        let reason = match error {
            BriefError::NotFound { .. } => format!("{error}; there are {known}"),
            error => error.to_string(),
        };
        ErrorData::invalid_params(reason, None)
    };
    let brief = server.briefs(Kind::Prompt).brief(name).map_err(refused)?;
    let fields = brief.arguments().unwrap_or_default();
    let given = arguments.iter().map(|(name, value)| {
        let field = fields.iter().find(|field| field.name == *name);
        let read = match (field.map(|field| field.ty), value.as_str()) {
            (Some(Type::String) | None, _) | (_, None) => None,
            (Some(_), Some(text)) => serde_json::from_str::<serde_json::Value>(text).ok(),
        };
        (name.as_str(), Given::from(read.as_ref().unwrap_or(value)))
    });
    let text = brief.render(&Given::map(given)).map_err(refused)?;
    let message = PromptMessage::new_text(Role::User, text);
    let result = GetPromptResult::new(vec![message]);
    Ok(match brief.description {
        Some(description) => result.with_description(description),
        None => result,
    })
}

pub(super) fn get(
    server: &Arc<Server>,
    name: &str,
    arguments: &JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| arguments.get(name).and_then(|value| value.as_str());
    if name != ORCHESTRATOR {
        return file(server, name, arguments);
    }
    if !is_drivable(server) {
        let reason = "the prompt `workflow` drives workflows with tools that are not offered here";
        return Err(ErrorData::invalid_params(reason, None));
    }
    let refused = |reason: String| ErrorData::invalid_params(reason, None);
    let other = arguments
        .keys()
        .find(|name| !["workflow", "inputs", "run"].contains(&name.as_str()));
    if let Some(other) = other {
        return Err(refused(format!(
            "the prompt `workflow` takes `workflow`, `inputs` and `run`, not `{other}`: inputs of the \
             workflow stand together in `inputs`, as a JSON object or as key=value words"
        )));
    }
    let given = argument("inputs").unwrap_or_default();
    if let Some(run) = argument("run").filter(|run| !run.is_empty()) {
        if !given.is_empty() {
            let reason = "`inputs` are for a run that begins: leave them out with `run`";
            return Err(refused(reason.to_owned()));
        }
        return resumed(server, run, argument("workflow")).map_err(|it| refused(it.0));
    }
    let Some(workflow) = argument("workflow") else {
        let reason =
            "the prompt `workflow` needs the argument `workflow`, or `run` to go on with one";
        return Err(refused(reason.to_owned()));
    };
    let found = Definition::named(server, workflow).map_err(|it| refused(it.0))?;
    let graph = match found {
        Definition::Ready { graph, .. } => graph,
        Definition::Unknown(name) => return Err(refused(server.shelves.no_such(&name))),
        Definition::Invalid { errors, .. } => {
            let errors = errors.join("\n");
            return Err(refused(format!("the definition has errors:\n{errors}")));
        }
    };
    given_inputs::check(&graph, given)
        .map_err(|reason| refused(format!("`inputs` of `{}`: {reason}", graph.name)))?;
    let given = match given.trim() {
        "" => "none given; ask the person for what is required",
        given => given,
    };
    let text = orchestrator(&graph, given, START);
    let message = PromptMessage::new_text(Role::User, text);
    let described = graph.description.as_deref().unwrap_or(workflow).to_owned();
    Ok(GetPromptResult::new(vec![message]).with_description(described))
}

/// The same for a run that has begun.
fn resumed(
    server: &Arc<Server>,
    asked: &str,
    workflow: Option<&str>,
) -> Result<GetPromptResult, Refused> {
    let (server, run) = server.holding(asked)?;
    let report = server.host.report(run)?;
    if let Some(other) = workflow.filter(|other| *other != report.workflow) {
        return Err(Refused(format!(
            "{run} is a run of `{}`, not of `{other}`",
            report.workflow
        )));
    }
    let program = server.host.program_of(run)?;
    let text = orchestrator(program.graph(), "those of the run", RESUME);
    let text = text.replace("<RUN>", &run.to_string());
    let message = PromptMessage::new_text(Role::User, text);
    let described = format!("Goes on with {run}, a run of {}", report.workflow);
    Ok(GetPromptResult::new(vec![message]).with_description(described))
}

fn orchestrator(graph: &Graph, inputs: &str, begin: &str) -> String {
    let mut parameters = String::new();
    for field in list::parameters(graph) {
        let need = if field.required { ", required" } else { "" };
        let described = field.description.as_deref().unwrap_or_default();
        let kind = field.ty.word();
        parameters.push_str(&format!("\n- {} ({kind}{need}) {described}", field.name));
    }
    let values = HashMap::from([
        ("WORKFLOW", graph.name.to_string()),
        (
            "DESCRIPTION",
            graph.description.as_deref().unwrap_or_default().to_owned(),
        ),
        (
            "PARAMETERS",
            match parameters.is_empty() {
                true => " none".to_owned(),
                false => parameters,
            },
        ),
        ("INPUTS", inputs.to_owned()),
    ]);
    let mut text = ORCHESTRATOR_TEXT.replace("<BEGIN>", begin);
    for (name, value) in values {
        text = text.replace(&format!("<{name}>"), &value);
    }
    text
}
