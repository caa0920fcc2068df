//! Completion of workflow names, run ids and inputs while a person types them.

use flow_runtime::journal::Listing;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};

use super::definition::Definition;
use super::{Server, prompts, resources};
use crate::list;

/// What the text so far can become.
pub(super) fn complete(server: &Server, request: &CompleteRequestParams) -> CompletionInfo {
    let candidates = match &request.r#ref {
        Reference::Prompt(prompt) if prompt.name == prompts::ORCHESTRATOR => {
            match request.argument.name.as_str() {
                "workflow" => server.shelves.names(),
                "run" => runs(server),
                "inputs" => {
                    let arguments = request.context.as_ref();
                    let workflow = arguments.and_then(|it| it.get_argument("workflow"));
                    workflow.map_or_else(Vec::new, |workflow| inputs(server, workflow))
                }
                _ => Vec::new(),
            }
        }
        Reference::Resource(template) if template.uri.starts_with(resources::WORKFLOW) => {
            server.shelves.names()
        }
        Reference::Resource(template) if template.uri.starts_with(resources::RUN) => runs(server),
        _ => Vec::new(),
    };
    let typed = &request.argument.value;
    let mut values: Vec<String> = candidates
        .into_iter()
        .filter(|it| it.starts_with(typed.as_str()))
        .collect();
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let more = total > values.len();
    CompletionInfo::with_pagination(values, u32::try_from(total).ok(), more).unwrap_or_default()
}

/// The inputs of a workflow, as `key=`.
fn inputs(server: &Server, workflow: &str) -> Vec<String> {
    match Definition::named(server, workflow) {
        Ok(Definition::Ready { graph, .. }) => {
            let fields = list::parameters(&graph).iter();
            fields.map(|field| format!("{}=", field.name)).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The newest runs.
fn runs(server: &Server) -> Vec<String> {
    let listing = Listing::new();
    let newest = server.host.journal().list(&listing, 1000);
    let newest = newest.map(|page| page.runs).unwrap_or_default();
    newest.into_iter().map(|run| run.id.to_string()).collect()
}
