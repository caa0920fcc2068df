//! One connection: the protocol on one side, the server on the other.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::Server;
use super::tool::{Call, Refused, Reply};

/// When to use this server; clients show it to the model and cut it at about 4 KB.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// One connection of a client.
#[derive(Clone)]
pub(crate) struct Connection {
    server: Arc<Server>,
}

impl Connection {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        Connection {
            server: Arc::clone(server),
        }
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let own = Implementation::new("flow", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(
            self.server.offers.listed().to_vec(),
        ))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parameters = request.arguments.take().unwrap_or_default();
        let call = Call::new(&mut request, context);
        let server = Arc::clone(&self.server);
        let offers = &self.server.offers;
        let Some(answering) = offers.call(server, &request.name, parameters, call) else {
            return Err(unknown(&self.server, &request.name));
        };
        Ok(match answering.await {
            Ok(Reply::Done(answer)) => CallToolResult::structured(answer).into(),
            Ok(Reply::Ask(ask)) => (*ask).into(),
            Err(Refused(reason)) => CallToolResult::error(vec![ContentBlock::text(reason)]).into(),
        })
    }
}

fn unknown(server: &Server, name: &str) -> ErrorData {
    let message = match server.offers.near(name) {
        Some(near) => format!("there is no tool `{name}`: did you mean `{near}`?"),
        None => format!("there is no tool `{name}`"),
    };
    ErrorData::invalid_params(message, None)
}
