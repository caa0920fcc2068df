//! Prompts: how to drive a workflow step by step.

use std::collections::HashMap;

use flow_model::graph::Graph;
use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use super::Server;
use super::definition::Definition;
use crate::list;

/// The prompt that makes an agent drive a workflow.
pub(super) const ORCHESTRATOR: &str = "workflow";
const ORCHESTRATOR_TEXT: &str = include_str!("orchestrator.md");

pub(super) fn list(_server: &Server) -> Vec<Prompt> {
    let arguments = vec![
        PromptArgument::new("workflow")
            .with_description("The workflow to drive")
            .with_required(true),
        PromptArgument::new("inputs")
            .with_description("Its inputs, as a JSON object or as key=value words")
            .with_required(false),
    ];
    let described = "Drives a workflow step by step: what the server cannot do itself is done here";
    vec![Prompt::new(ORCHESTRATOR, Some(described), Some(arguments)).with_title("Drive a workflow")]
}

pub(super) fn get(
    server: &Server,
    name: &str,
    arguments: &JsonObject,
) -> Result<GetPromptResult, ErrorData> {
    let argument = |name: &str| arguments.get(name).and_then(|value| value.as_str());
    if name != ORCHESTRATOR {
        let known = list(server)
            .into_iter()
            .map(|prompt| prompt.name)
            .collect::<Vec<_>>()
            .join(", ");
        let reason = format!("there is no prompt `{name}`; there are {known}");
        return Err(ErrorData::invalid_params(reason, None));
    }
    let Some(workflow) = argument("workflow") else {
        let reason = "the prompt `workflow` needs the argument `workflow`";
        return Err(ErrorData::invalid_params(reason, None));
    };
    let refused = |reason: String| ErrorData::invalid_params(reason, None);
    let found = Definition::named(server, workflow).map_err(|it| refused(it.0))?;
    let graph = match found {
        Definition::Ready(graph) => graph,
        Definition::Unknown(name) => return Err(refused(server.shelves.no_such(&name))),
        Definition::Invalid { errors, .. } => {
            let errors = errors.join("\n");
            return Err(refused(format!("the definition has errors:\n{errors}")));
        }
    };
    let text = orchestrator(&graph, argument("inputs").unwrap_or_default());
    let message = PromptMessage::new_text(Role::User, text);
    let described = graph.description.as_deref().unwrap_or(workflow).to_owned();
    Ok(GetPromptResult::new(vec![message]).with_description(described))
}

fn orchestrator(graph: &Graph, inputs: &str) -> String {
    let mut parameters = String::new();
    for field in list::parameters(graph) {
        let need = if field.required { ", required" } else { "" };
        let described = field.description.as_deref().unwrap_or_default();
        let kind = list::word(field.ty);
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
        (
            "INPUTS",
            match inputs.trim() {
                "" => "none given; ask the person for what is required".to_owned(),
                given => given.to_owned(),
            },
        ),
    ]);
    let mut text = ORCHESTRATOR_TEXT.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("<{name}>"), &value);
    }
    text
}
