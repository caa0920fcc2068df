//! Completion of workflow names, run ids and inputs while a person types them.

use flow_model::graph::{Field, Type};
use flow_runtime::journal::Listing;
use flow_runtime::value::Value as Given;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};

use super::definition::Definition;
use super::{Server, prompts, resources};
use crate::list;
use crate::run::label;

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
                    let typed = &request.argument.value;
                    workflow.map_or_else(Vec::new, |workflow| inputs(server, workflow, typed))
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

/// What the last word of a workflow's inputs can become: `key=` of those that are not there yet, or
/// what the key it has may be.
fn inputs(server: &Server, workflow: &str, typed: &str) -> Vec<String> {
    match Definition::named(server, workflow) {
        Ok(Definition::Ready { graph, .. }) => words(list::parameters(&graph), typed),
        Ok(_) | Err(_) => Vec::new(),
    }
}

fn words(fields: &[Field], typed: &str) -> Vec<String> {
    let (before, word) = typed.split_at(typed.rfind(' ').map_or(0, |space| space + 1));
    if let Some((key, _)) = word.split_once('=') {
        let field = fields.iter().find(|field| field.name == *key);
        let values = field.map_or_else(Vec::new, values);
        return values
            .iter()
            .map(|value| format!("{before}{key}={value}"))
            .collect();
    }
    let given: Vec<&str> = before
        .split(' ')
        .filter_map(|word| Some(word.split_once('=')?.0))
        .collect();
    let left = fields.iter().filter(|field| !given.contains(&&*field.name));
    left.map(|field| format!("{before}{}=", field.name))
        .collect()
}

/// The values that a field can have, where they can be told.
fn values(field: &Field) -> Vec<String> {
    let one_of = field.validation.one_of.iter();
    let one_of = one_of.map(|value| label(&Given::from(value)));
    match field.ty {
        Type::Boolean if field.validation.one_of.is_empty() => {
            vec!["true".to_owned(), "false".to_owned()]
        }
        _ => one_of.collect(),
    }
}

/// The newest runs.
fn runs(server: &Server) -> Vec<String> {
    let listing = Listing::new();
    let newest = server.host.journal().list(&listing, 1000);
    let newest = newest.map(|page| page.runs).unwrap_or_default();
    newest.into_iter().map(|run| run.id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_completed_word_by_word() {
        let text = "inputs:\n  who: {type: string, validation: {enum: [Ann Lee, Bo]}}\n  n: {type: integer}\n  \
                    sure: {type: boolean}\nsteps: [{type: wait, duration_seconds: 1}]\n";
        let source = flow_model::source::Source::new("w.yaml", text);
        let compiled = flow_model::compile(source, &flow_model::loader::NoLoader);
        let graph = compiled.graph().expect("it has no errors");
        let of = |typed: &str| words(list::parameters(graph), typed);
        assert_eq!(of(""), ["who=", "n=", "sure="]);
        assert_eq!(of("n=3 wh"), ["n=3 who=", "n=3 sure="]);
        assert_eq!(of("who="), ["who=Ann Lee", "who=Bo"]);
        assert_eq!(of("n=3 sure="), ["n=3 sure=true", "n=3 sure=false"]);
        assert_eq!(of("n="), [] as [String; 0]);
        assert_eq!(of("other="), [] as [String; 0]);
    }
}
