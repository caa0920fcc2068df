//! What the MCP conformance suite expects a server under test to offer, by name. It is served
//! instead of the product's own tools, over the same transport, and can do nothing.
#![expect(
    deprecated,
    reason = "the suite tests log messages, sampling and subscriptions, which later protocols drop"
)]

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    CompletionInfo, ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
};
use rmcp::serde::de::DeserializeOwned;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};

/// A red pixel.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// Silence.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// Between messages, so that they come as several.
const PAUSE: Duration = Duration::from_millis(20);

/// A server under test.
pub(super) struct Fixture;

/// A value of the protocol from its JSON, all of which stands in this file.
fn model<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn content(blocks: Value) -> Result<CallToolResult, ErrorData> {
    Ok(CallToolResult::success(model(blocks)?))
}

/// Asks the person and tells what came of it.
async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> Result<CallToolResult, ErrorData> {
    let form = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let said = context.peer.create_elicitation(model(form)?).await;
    let said = said.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let content = said.content.unwrap_or_default();
    let action = json!(said.action);
    let action = action.as_str().unwrap_or_default();
    Ok(text(format!(
        "Elicitation completed: action={action}, content={content}"
    )))
}

async fn sample(
    context: &RequestContext<RoleServer>,
    prompt: &str,
) -> Result<CallToolResult, ErrorData> {
    let request = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": 100,
    });
    let answer = context.peer.create_message(model(request)?).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = json!(answer.message);
    let answer = answer["content"]["text"].as_str().unwrap_or_default();
    Ok(text(format!("LLM response: {answer}")))
}

async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
    for message in ["started", "goes on", "completed"] {
        let message = json!({"level": "info", "data": format!("Tool execution {message}")});
        // A client that is gone is not told.
        let _ = context.peer.notify_logging_message(model(message)?).await;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("logged"))
}

async fn progress(context: &RequestContext<RoleServer>) -> CallToolResult {
    if let Some(token) = context.meta.get_progress_token() {
        for progress in [0.0, 50.0, 100.0] {
            let told = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
            let _ = context.peer.notify_progress(told).await;
            tokio::time::sleep(PAUSE).await;
        }
    }
    text("done")
}

async fn call(
    name: &str,
    arguments: &Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let argument = |name: &str| {
        arguments
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let picture = json!({"type": "image", "data": PICTURE, "mimeType": "image/png"});
    let resource = |uri: &str, mime_type: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}});
    match name {
        "test_simple_text" => Ok(text("This is a simple text response for testing.")),
        "test_image_content" => content(json!([picture])),
        "test_audio_content" => {
            content(json!([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]))
        }
        "test_embedded_resource" => content(json!([resource(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )])),
        "test_multiple_content_types" => content(json!([
            {"type": "text", "text": "Multiple content types test:"},
            picture,
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ])),
        "test_tool_with_logging" => log(context).await,
        "test_tool_with_progress" => Ok(progress(context).await),
        "test_error_handling" => {
            let reason = "This tool intentionally returns an error for testing";
            Ok(CallToolResult::error(vec![ContentBlock::text(reason)]))
        }
        "test_sampling" => sample(context, argument("prompt")).await,
        "test_elicitation" => {
            let field = |what: &str| json!({"type": "string", "description": what});
            let schema = json!({
                "type": "object",
                "properties": {
                    "username": field("User's response"),
                    "email": field("User's email address"),
                },
                "required": ["username", "email"],
            });
            elicit(context, argument("message"), schema).await
        }
        "test_elicitation_sep1034_defaults" => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "default": "John Doe"},
                    "age": {"type": "integer", "default": 30},
                    "score": {"type": "number", "default": 95.5},
                    "status": {
                        "type": "string",
                        "enum": ["active", "inactive", "pending"],
                        "default": "active",
                    },
                    "verified": {"type": "boolean", "default": true},
                },
            });
            elicit(context, "Defaults", schema).await
        }
        "test_elicitation_sep1330_enums" => {
            let titled = |value: &str, title: &str| json!({"const": value, "title": title});
            let options = json!(["option1", "option2", "option3"]);
            let schema = json!({
                "type": "object",
                "properties": {
                    "untitledSingle": {"type": "string", "enum": options},
                    "titledSingle": {
                        "type": "string",
                        "oneOf": [titled("value1", "First Option"), titled("value2", "Second Option")],
                    },
                    "legacyEnum": {
                        "type": "string",
                        "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"],
                    },
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                    "titledMulti": {
                        "type": "array",
                        "items": {
                            "anyOf": [titled("value1", "First Choice"), titled("value2", "Second Choice")],
                        },
                    },
                },
            });
            elicit(context, "Choices", schema).await
        }
        "test_reconnection" => {
            tokio::time::sleep(PAUSE).await;
            Ok(text("answered on the stream it was asked on"))
        }
        "json_schema_2020_12_tool" => Ok(text("ok")),
        _ => {
            let reason = format!("there is no tool `{name}`");
            Err(ErrorData::invalid_params(reason, None))
        }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        let own = Implementation::new("flow conformance fixture", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(own)
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completion = CompletionInfo::with_all_values(vec!["test".to_owned()]);
        Ok(CompleteResult::new(completion.unwrap_or_default()))
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let none = json!({"type": "object", "properties": {}});
        let one = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        let strict = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                },
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
            },
            "additionalProperties": false,
        });
        let tools = [
            ("test_simple_text", none.clone()),
            ("test_image_content", none.clone()),
            ("test_audio_content", none.clone()),
            ("test_embedded_resource", none.clone()),
            ("test_multiple_content_types", none.clone()),
            ("test_tool_with_logging", none.clone()),
            ("test_tool_with_progress", none.clone()),
            ("test_error_handling", none.clone()),
            ("test_sampling", one("prompt")),
            ("test_elicitation", one("message")),
            ("test_elicitation_sep1034_defaults", none.clone()),
            ("test_elicitation_sep1330_enums", none.clone()),
            ("test_reconnection", none),
            ("json_schema_2020_12_tool", strict),
        ];
        let tools: Vec<Value> = tools
            .into_iter()
            .map(|(name, schema)| {
                json!({"name": name, "description": "Fixture", "inputSchema": schema})
            })
            .collect();
        Ok(ListToolsResult::with_all_items(model(tools.into())?))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let answer = call(&request.name, &arguments, &context).await?;
        Ok(answer.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = json!([
            {"uri": "test://static-text", "name": "text", "description": "A text", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "picture", "description": "A picture", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "watched", "description": "A text", "mimeType": "text/plain"},
        ]);
        Ok(ListResourcesResult::with_all_items(model(resources)?))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = json!([
            {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"},
        ]);
        Ok(ListResourceTemplatesResult::with_all_items(model(
            templates,
        )?))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            (_, Some(id)) => json!({
                "uri": uri,
                "mimeType": "application/json",
                "text": json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")})
                    .to_string(),
            }),
            ("test://static-text" | "test://watched-resource", None) => json!({
                "uri": uri,
                "mimeType": "text/plain",
                "text": "This is the content of the static text resource.",
            }),
            ("test://static-binary", None) => {
                json!({"uri": uri, "mimeType": "image/png", "blob": PICTURE})
            }
            (_, None) => {
                let reason = format!("there is no resource `{uri}`");
                return Err(ErrorData::resource_not_found(reason, None));
            }
        };
        Ok(ReadResourceResult::new(vec![model(contents)?]).into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let argument = |name: &str| json!({"name": name, "description": "Text", "required": true});
        let prompts = json!([
            {"name": "test_simple_prompt", "description": "Fixture"},
            {
                "name": "test_prompt_with_arguments",
                "description": "Fixture",
                "arguments": [argument("arg1"), argument("arg2")],
            },
            {
                "name": "test_prompt_with_embedded_resource",
                "description": "Fixture",
                "arguments": [argument("resourceUri")],
            },
            {"name": "test_prompt_with_image", "description": "Fixture"},
        ]);
        Ok(ListPromptsResult::with_all_items(model(prompts)?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let said =
            |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
        let messages = match request.name.as_str() {
            "test_simple_prompt" => {
                json!([said("This is a simple prompt for testing.".to_owned())])
            }
            "test_prompt_with_arguments" => json!([said(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                argument("arg1"),
                argument("arg2")
            ))]),
            "test_prompt_with_embedded_resource" => json!([
                {
                    "role": "user",
                    "content": {
                        "type": "resource",
                        "resource": {
                            "uri": argument("resourceUri"),
                            "mimeType": "text/plain",
                            "text": "Embedded resource content for testing.",
                        },
                    },
                },
                said("Please process the embedded resource above.".to_owned()),
            ]),
            "test_prompt_with_image" => json!([
                {
                    "role": "user",
                    "content": {"type": "image", "data": PICTURE, "mimeType": "image/png"},
                },
                said("Please analyze the image above.".to_owned()),
            ]),
            name => {
                let reason = format!("there is no prompt `{name}`");
                return Err(ErrorData::invalid_params(reason, None));
            }
        };
        Ok(GetPromptResult::new(model(messages)?).into())
    }
}
