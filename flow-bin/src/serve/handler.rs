//! One connection: the protocol on one side, the server on the other.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol and still in use"
)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow_runtime::terminal::Untold;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, RequestId, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter,
};
use rmcp::service::{
    NotificationContext, RequestContext, SubscriptionContext, SubscriptionSendError,
};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;

use super::catalogue::Changed;
use super::instructions::instructions;
use super::line::Structure;
use super::log::Threshold;
use super::tool::{Call, Refused};
use super::{Server, complete, log, prompts, resources};

/// Methods that take parameters.
const METHODS: [&str; 9] = [
    "completion/complete",
    "initialize",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tools/call",
    "tools/list",
];

/// Connections so far.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// One connection of a client.
pub(crate) struct Connection {
    server: Arc<Server>,
    threshold: Threshold,
    structure: Structure,
    /// What its terminal sessions are shared under.
    circle: Arc<str>,
    /// Calls that are not answered yet, to tell them that their client wants no answer.
    open: Arc<Mutex<Open>>,
}

/// Calls of a connection that are not answered, with what tells them that nobody wants that.
type Open = HashMap<RequestId, watch::Sender<bool>>;

/// How long the word of a client that it wants no answer may be behind that its call is over.
const GRACE: Duration = Duration::from_millis(100);

impl Connection {
    pub(crate) fn new(server: &Arc<Server>, structure: Structure) -> Self {
        Connection {
            server: Arc::clone(server),
            threshold: Threshold::default(),
            structure,
            circle: Arc::from(format!(
                "connection {}",
                CONNECTIONS.fetch_add(1, Ordering::Relaxed)
            )),
            open: Arc::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is known whether a client hears of a session: the answer to a call that was
    /// cancelled is dropped on its way.
    fn tell(&self, context: RequestContext<RoleServer>, session: Untold) {
        let open = Arc::clone(&self.open);
        let told_off = self.open().get(&context.id).map(watch::Sender::subscribe);
        tokio::spawn(async move {
            // The call is over, either way.
            context.ct.cancelled().await;
            tokio::time::sleep(GRACE).await;
            if !told_off.is_some_and(|it| *it.borrow()) {
                session.told();
            }
            open.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&context.id);
        });
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        let own = Implementation::new("flow", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own)
            .with_instructions(instructions(&self.server.offers))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.threshold.set(request.level);
        Ok(())
    }

    /// Requests that could not be read: of a method that there is not, or with other parameters than
    /// the method has.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        Err(match method.as_str() {
            "logging/setLevel" => {
                ErrorData::invalid_params(format!("`level` must be one of {}", log::LEVELS), None)
            }
            method if METHODS.contains(&method) => {
                let message = format!("the parameters of `{method}` are not what it takes");
                ErrorData::invalid_params(message, None)
            }
            method => {
                let message = format!("there is no method `{method}`");
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
            }
        })
    }

    async fn on_cancelled(
        &self,
        told: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        let open = self.open();
        if let Some(call) = told.request_id.as_ref().and_then(|id| open.get(id)) {
            call.send_replace(true);
        }
    }

    /// Clients with a session are told of changes from now on, as long as they are there.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut changes = self.server.shelves.changes();
        tokio::spawn(async move {
            while next(&mut changes).await {
                let tools = context.peer.notify_tool_list_changed().await;
                let resources = context.peer.notify_resource_list_changed().await;
                if tools.is_err() || resources.is_err() {
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
        let mut changes = self.server.shelves.changes();
        let sink = context.sink();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.server.left() => return Ok(()),
                more = next(&mut changes) => {
                    // What the client did not ask for is refused by the sink.
                    let tools = sink.notify_tool_list_changed().await;
                    let resources = sink.notify_resource_list_changed().await;
                    let is_closed =
                        |told| matches!(told, Err(SubscriptionSendError::SubscriptionClosed));
                    if !more || is_closed(tools) || is_closed(resources) {
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
        let tools = self.server.offers.listed(&self.server);
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = resources::list(&self.server);
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(&self.server, &request.uri).await;
        read.map(Into::into)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = prompts::list(&self.server);
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        prompts::get(&self.server, &request.name, &arguments).map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completion = complete::complete(&self.server, &request);
        Ok(CompleteResult::new(completion))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parameters = request.arguments.take().unwrap_or_default();
        let circle = Arc::clone(&self.circle);
        let (tell_off, told_off) = watch::channel(false);
        let of = context.clone();
        let call = Call::new(
            &mut request,
            context,
            &self.threshold,
            self.structure,
            circle,
            told_off,
        );
        let untold = Arc::clone(&call.untold);
        let server = Arc::clone(&self.server);
        let offers = &self.server.offers;
        let Some(answering) = offers.call(server, &request.name, parameters, call) else {
            return Err(unknown(&self.server, &request.name));
        };
        self.open().insert(of.id.clone(), tell_off);
        // What was cancelled before it could be told is not begun.
        let answered = match of.ct.is_cancelled() {
            true => Err(Refused::new("the call was cancelled")),
            false => answering.await,
        };
        let untold = untold.lock().unwrap_or_else(PoisonError::into_inner).take();
        match untold {
            Some(session) => self.tell(of, session),
            None => drop(self.open().remove(&of.id)),
        }
        Ok(match answered {
            Ok(answer) => answer,
            Err(Refused(reason)) => CallToolResult::error(vec![ContentBlock::text(reason)]).into(),
        })
    }
}

/// Waits for a change; false when there will be none any more.
async fn next(changes: &mut broadcast::Receiver<Changed>) -> bool {
    match changes.recv().await {
        // Whoever lags behind is told once of all it missed.
        Ok(Changed) | Err(RecvError::Lagged(_)) => true,
        Err(RecvError::Closed) => false,
    }
}

fn unknown(server: &Server, name: &str) -> ErrorData {
    ErrorData::invalid_params(server.offers.missing(name), None)
}
