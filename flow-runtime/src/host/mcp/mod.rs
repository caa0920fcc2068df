//! Tools of MCP servers: flow as their client.
//!
//! A step calls `server.tool`, or a tool by a name that only one server has. The servers stand in
//! the project's `.mcp.json`; one is started when a step first needs it, and ends with the host.

mod connection;
mod settings;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use flow_model::suggest::nearest;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use tokio::sync::Mutex as AsyncMutex;

pub use settings::{FILE, McpSettings, SettingsError, Started};

use super::{Boxed, ToolCall, Tools};
use crate::run::{Failure, FailureKind};
use crate::value::Value;
use connection::{Connection, ConnectionError};

/// The most names that a message lists.
const LISTED: usize = 30;

/// The MCP servers of a project.
pub struct McpServers {
    settings: Result<McpSettings, SettingsError>,
    answers_all: bool,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// The place of one server's connection; whoever holds it is the one that connects.
#[derive(Default)]
struct Slot {
    open: AsyncMutex<Option<Arc<Open>>>,
}

/// A server that answers, with the tools it last said to have.
struct Open {
    connection: Connection,
    tools: Mutex<Vec<String>>,
}

impl Open {
    fn tools(&self) -> Vec<String> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.clone()
    }

    async fn refresh(&self) -> Result<Vec<String>, ConnectionError> {
        let found = self.connection.tools().await?;
        let names: Vec<String> = found
            .into_iter()
            .map(|tool| tool.name.into_owned())
            .collect();
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.clone_from(&names);
        Ok(names)
    }
}

impl McpServers {
    /// The servers of the project around a directory. A `.mcp.json` that cannot be read is told
    /// to the first step that needs it.
    #[must_use]
    pub fn around(directory: &Path) -> Self {
        McpServers::new(McpSettings::around(directory))
    }

    /// The servers that settings name.
    #[must_use]
    pub fn new(settings: Result<McpSettings, SettingsError>) -> Self {
        McpServers {
            settings,
            answers_all: false,
            slots: Mutex::default(),
        }
    }

    /// Answers for every tool that is not flow's own, also for one that no server has: to be the
    /// last that is asked, with messages that name what there is.
    #[must_use]
    pub fn answering_all(self) -> Self {
        McpServers {
            answers_all: true,
            ..self
        }
    }

    /// Ends every server that was started here. No process is left when this returns.
    pub async fn shutdown(&self) {
        let slots: Vec<_> = self.slots().drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            let open = slot.open.lock().await.take();
            // Somebody who still waits for an answer drops the last handle, which ends the server.
            if let Some(open) = open.and_then(Arc::into_inner) {
                open.connection.close().await;
            }
        }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> Result<&McpSettings, Failure> {
        let settings = self.settings.as_ref();
        settings.map_err(|error| action(error.to_string()))
    }

    async fn call(&self, call: ToolCall<'_>) -> Result<Value, Failure> {
        let settings = self.settings()?;
        let (server, tool) = match settings.split(call.tool) {
            Some((server, tool)) => (server.to_owned(), tool),
            None => (self.provider(settings, call.tool).await?, call.tool),
        };
        let arguments = arguments(call)?;
        let open = self.open(settings, &server).await?;
        let told = |error: ConnectionError| failed(&server, tool, &error);
        if !open.tools().iter().any(|name| name == tool) {
            // It may have appeared since the server was asked.
            let tools = open.refresh().await.map_err(told)?;
            if !tools.iter().any(|name| name == tool) {
                return Err(action(no_tool(&server, tool, &tools)));
            }
        }
        let result = open.connection.call(tool, arguments, call.key).await;
        outcome(&server, tool, result.map_err(told)?)
    }

    /// The connection to a server, made where there is none.
    async fn open(&self, settings: &McpSettings, server: &str) -> Result<Arc<Open>, Failure> {
        let slot = {
            let mut slots = self.slots();
            Arc::clone(slots.entry(server.to_owned()).or_default())
        };
        let mut place = slot.open.lock().await;
        if let Some(open) = place.as_ref().filter(|open| !open.connection.is_over()) {
            return Ok(Arc::clone(open));
        }
        *place = None;
        let reached = settings
            .server(server)
            .map_err(|error| action(error.to_string()))?;
        let refused = |error: ConnectionError| {
            action(format!("the MCP server `{server}` cannot be used: {error}"))
        };
        let connection = Connection::open(&reached).await.map_err(refused)?;
        let open = Arc::new(Open {
            connection,
            tools: Mutex::default(),
        });
        open.refresh().await.map_err(refused)?;
        *place = Some(Arc::clone(&open));
        Ok(open)
    }

    /// The one server that has a tool.
    async fn provider(&self, settings: &McpSettings, tool: &str) -> Result<String, Failure> {
        let servers: Vec<&str> = settings.names().collect();
        if servers.is_empty() {
            return Err(action(format!(
                "no tool `{tool}` is available here; MCP servers stand in {FILE} of the project"
            )));
        }
        if let Some((server, _)) = tool.split_once('.') {
            let near = nearest(server, servers.iter().copied());
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", listed(&servers)),
            };
            return Err(action(format!("there is no MCP server `{server}`; {help}")));
        }
        let (mut having, mut all, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
        for server in servers {
            match self.open(settings, server).await {
                Ok(open) => {
                    let tools = open.tools();
                    if tools.iter().any(|name| name == tool) {
                        having.push(server);
                    }
                    all.extend(tools.into_iter().map(|name| format!("{server}.{name}")));
                }
                Err(failure) => unusable.push(failure.message),
            }
        }
        match having[..] {
            [one] => Ok(one.to_owned()),
            [] => {
                let mut message = format!("no MCP server has a tool `{tool}`");
                let names = all.iter().map(String::as_str);
                let bare = |name: &&str| name.rsplit('.').next().unwrap_or_default() == tool;
                match nearest(tool, names.clone().map(last)).or(names.clone().find(bare)) {
                    Some(near) => message.push_str(&format!("; did you mean `{near}`?")),
                    None if all.is_empty() => {}
                    None => {
                        let names: Vec<&str> = names.collect();
                        message.push_str(&format!("; there are {}", listed(&names)));
                    }
                }
                for reason in unusable {
                    message.push('\n');
                    message.push_str(&reason);
                }
                Err(action(message))
            }
            _ => {
                let names: Vec<String> = having.iter().map(|it| format!("{it}.{tool}")).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Err(action(format!(
                    "several MCP servers have a tool `{tool}`; say which: {}",
                    listed(&names)
                )))
            }
        }
    }
}

impl Tools for McpServers {
    fn has(&self, tool: &str) -> bool {
        if flow_model::tools::find(tool).is_some() {
            return false;
        }
        match &self.settings {
            Ok(settings) => {
                let any = settings.names().next().is_some();
                self.answers_all || settings.split(tool).is_some() || (any && !tool.contains('.'))
            }
            // The file may name it; what is wrong with it is the answer.
            Err(_) => true,
        }
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        Box::pin(self.call(call))
    }
}

fn action(message: String) -> Failure {
    Failure::new(FailureKind::Action, message)
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn failed(server: &str, tool: &str, error: &ConnectionError) -> Failure {
    action(format!("the tool `{server}.{tool}` failed: {error}"))
}

fn no_tool(server: &str, tool: &str, tools: &[String]) -> String {
    let names: Vec<&str> = tools.iter().map(String::as_str).collect();
    let help = match nearest(tool, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "it has none at all".to_owned(),
        None => format!("it has {}", listed(&names)),
    };
    format!("the MCP server `{server}` has no tool `{tool}`; {help}")
}

fn listed(names: &[&str]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.len() > LISTED {
        shown.push(format!("{} more", names.len() - LISTED));
    }
    shown.join(", ")
}

fn arguments(call: ToolCall<'_>) -> Result<JsonObject, Failure> {
    match call.parameters.to_json() {
        serde_json::Value::Object(arguments) => Ok(arguments),
        serde_json::Value::Null => Ok(JsonObject::new()),
        _ => Err(action(format!(
            "the parameters of `{}` are {}, not a map",
            call.tool,
            call.parameters.noun()
        ))),
    }
}

/// What a tool answered: its structured result where it gives one; else its text, read as JSON
/// where it is an object or a list; else everything it gave.
fn outcome(server: &str, tool: &str, result: CallToolResult) -> Result<Value, Failure> {
    let texts: Option<Vec<&str>> = result
        .content
        .iter()
        .map(|block| block.as_text().map(|text| text.text.as_str()))
        .collect();
    if result.is_error == Some(true) {
        let told: Vec<&str> = result
            .content
            .iter()
            .filter_map(ContentBlock::as_text)
            .map(|text| text.text.trim())
            .filter(|text| !text.is_empty())
            .collect();
        let told = match told[..] {
            [] => "it does not say why".to_owned(),
            _ => told.join("\n"),
        };
        let error = ConnectionError::Told(told);
        return Err(failed(server, tool, &error));
    }
    if let Some(structured) = result.structured_content.as_ref()
        && !structured.is_null()
    {
        return Ok(Value::from(structured));
    }
    let Some(texts) = texts else {
        let content = serde_json::to_value(&result.content).unwrap_or_default();
        return Ok(Value::map([("content", Value::from(&content))]));
    };
    let text = texts.join("\n");
    let parsed = match text.trim_start().starts_with(['{', '[']) {
        true => serde_json::from_str::<serde_json::Value>(&text).ok(),
        false => None,
    };
    Ok(parsed.map_or_else(|| Value::text(&text), |json| Value::from(&json)))
}
