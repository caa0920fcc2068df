//! Workflows, runs and the schema of definitions as resources.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;

use super::Server;
use super::library;
use super::standing::{self, Extent};
use super::tool::Refused;

/// A workflow's definition, by its name.
pub(super) const WORKFLOW: &str = "workflow://";
/// How a run stands, by its id.
pub(super) const RUN: &str = "run://";
/// What a definition may contain.
const SCHEMA: &str = "schema://workflow";

pub(super) fn list(server: &Server) -> Vec<Resource> {
    let reading = server.shelves.reading();
    let workflows = reading.catalogue.workflows.iter().map(|workflow| {
        let name = &workflow.entry.name;
        let resource = Resource::new(format!("{WORKFLOW}{name}"), name.as_str())
            .with_mime_type(mime_type(workflow.entry.file()));
        let described = workflow.definition.as_ref().ok();
        match described.and_then(|graph| graph.description.as_deref()) {
            Some(description) => resource.with_description(description),
            None => resource,
        }
    });
    let schema = Resource::new(SCHEMA, "workflow schema")
        .with_description("The JSON Schema of workflow definitions")
        .with_mime_type("application/schema+json");
    workflows.chain([schema]).collect()
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{WORKFLOW}{{name}}"), "workflow")
            .with_description("The definition of a workflow, by its name")
            .with_mime_type("application/yaml"),
        ResourceTemplate::new(format!("{RUN}{{id}}"), "run")
            .with_description("How a run stands, by its id: status, state, log, what it waits for")
            .with_mime_type("application/json"),
    ]
}

pub(super) async fn read(server: &Arc<Server>, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let (text, mime_type) = content(server, uri)
        .await
        .map_err(|Refused(reason)| ErrorData::resource_not_found(reason, None))?;
    let contents = ResourceContents::text(text, uri).with_mime_type(mime_type);
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn content(server: &Arc<Server>, uri: &str) -> Result<(String, &'static str), Refused> {
    if uri == SCHEMA {
        let schema = flow_model::schema::workflow();
        return Ok((format!("{schema:#}"), "application/schema+json"));
    }
    if let Some(name) = uri.strip_prefix(WORKFLOW) {
        let entry = library::find(server, &decoded(name))?;
        let mime_type = mime_type(entry.file());
        return Ok((library::text(&entry)?, mime_type));
    }
    if let Some(id) = uri.strip_prefix(RUN) {
        let (server, run) = server.holding(&decoded(id))?;
        let status = standing::status(&server, run, Duration::ZERO, Extent::Whole).await?;
        let status: Value = serde_json::to_value(status).unwrap_or_default();
        return Ok((format!("{status:#}"), "application/json"));
    }
    Err(Refused(format!(
        "there is no resource `{uri}`: there are {WORKFLOW}NAME, {RUN}ID and {SCHEMA}"
    )))
}

fn mime_type(file: Option<&std::path::Path>) -> &'static str {
    match file.and_then(|path| path.extension()) {
        Some(extension) if extension == "json" => "application/json",
        Some(_) | None => "application/yaml",
    }
}

/// A part of an address as it was before clients escaped it.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn an_escaped_name_is_the_name() {
        assert_eq!(decoded("standards%3Afix"), "standards:fix");
        assert_eq!(decoded("standards:fix"), "standards:fix");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
