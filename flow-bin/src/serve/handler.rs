//! One connection: the protocol on one side, the server on the other.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol and still in use"
)]

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, RequestContext, SubscriptionContext, SubscriptionSendError,
};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::broadcast::{self, error::RecvError};

use super::log::Threshold;
use super::tool::{Call, Refused, Reply};
use super::{Change, Server};

/// When to use this server; clients show it to the model and cut it at about 4 KB.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// One connection of a client.
pub(crate) struct Connection {
    server: Arc<Server>,
    threshold: Threshold,
}

impl Connection {
    pub(crate) fn new(server: &Arc<Server>) -> Self {
        Connection {
            server: Arc::clone(server),
            threshold: Threshold::default(),
        }
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .build();
        let own = Implementation::new("flow", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(INSTRUCTIONS)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.threshold.set(request.level);
        Ok(())
    }

    /// Clients with a session are told of changes from now on, as long as they are there.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.server.changes.subscribe();
        tokio::spawn(async move {
            while next(&mut changes).await {
                if context.peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    /// Clients without a session are told of changes while they listen.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.server.changes.subscribe();
        let sink = context.sink();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                more = next(&mut changes) => {
                    // What the client did not ask for is refused by the sink.
                    let told = sink.notify_tool_list_changed().await;
                    if !more || matches!(told, Err(SubscriptionSendError::SubscriptionClosed)) {
                        return Ok(());
                    }
                }
            }
        }
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
        let call = Call::new(&mut request, context, &self.threshold);
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

/// Waits for a change; false when there will be none any more.
async fn next(changes: &mut broadcast::Receiver<Change>) -> bool {
    match changes.recv().await {
        // Whoever lags behind is told once of all it missed.
        Ok(Change::Workflows) | Err(RecvError::Lagged(_)) => true,
        Err(RecvError::Closed) => false,
    }
}

fn unknown(server: &Server, name: &str) -> ErrorData {
    let message = match server.offers.near(name) {
        Some(near) => format!("there is no tool `{name}`: did you mean `{near}`?"),
        None => format!("there is no tool `{name}`"),
    };
    ErrorData::invalid_params(message, None)
}
