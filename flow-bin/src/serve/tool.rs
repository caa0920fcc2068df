//! Tools as the server offers them: a declaration of the registry with its handler.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use flow_model::suggest::nearest_or_part;
use flow_model::tools::{
    self, AgentRequest, CreateWorkflowRequest, FlowRequest, InvalidParameters, PromptRequest,
    Request, Tool, Toolset,
};
use flow_runtime::briefs::Kind;
use flow_runtime::host::{self, Boxed};
use flow_runtime::terminal::Untold;
use flow_runtime::{journal, library};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitationCapability, InputRequiredResult,
    InputResponses, ProtocolVersion, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::Server;
use super::line::{Structure, Written};
use super::log::{self, Threshold};

/// The name that stands for the list of workflows; a workflow called so is `_list`.
pub(crate) const LIST: &str = "list";

/// What is meant by a name that is not the list: one that is called as the list is has `_` before it.
pub(crate) fn meant(name: &str) -> &str {
    match name.strip_prefix('_') {
        Some(LIST) => LIST,
        _ => name,
    }
}

/// Why a tool did not do what was asked, for the agent that asked.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl Refused {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Refused(message.into())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! refused_from {
    ($($error:ty),*) => {$(
        impl From<$error> for Refused {
            fn from(error: $error) -> Self {
                Refused(error.to_string())
            }
        }
    )*};
}
refused_from!(
    InvalidParameters,
    host::Error,
    journal::Error,
    library::Error,
    library::StoreError,
    serde_json::Error
);

/// What a tool answers.
pub(crate) enum Reply<T> {
    /// This.
    Done(T),
    /// The same, as it was written the last time.
    Again(Arc<Written>),
    /// The person in front of the client is asked first; the client then calls again.
    Ask(Box<InputRequiredResult>),
}

impl<T> From<T> for Reply<T> {
    fn from(done: T) -> Self {
        Reply::Done(done)
    }
}

/// What clients share terminal sessions under whose calls belong to no connection.
const UNCONNECTED: &str = "no connection";

/// A call that has not been answered yet.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) context: RequestContext<RoleServer>,
    /// What the person said to the questions of the answer before.
    pub(crate) answers: Option<InputResponses>,
    /// What the answer before asked to be given back.
    pub(crate) state: Option<String>,
    /// Whether the client is of the time when a server asks by its answer instead of by a request.
    pub(crate) is_stateless: bool,
    /// Which log messages about this call the client wants.
    pub(crate) log: Option<log::Wanted>,
    /// With whom it shares terminal sessions: the calls of its connection.
    pub(crate) circle: Arc<str>,
    /// How the structure of the answer gets there.
    structure: Structure,
    /// Whether the client has said that it wants no answer.
    told_off: watch::Receiver<bool>,
    /// A session that was opened by it, as long as the client may not hear of it.
    pub(super) untold: Arc<Mutex<Option<Untold>>>,
}

impl Call {
    pub(super) fn new(
        request: &mut CallToolRequestParams,
        context: RequestContext<RoleServer>,
        threshold: &Threshold,
        structure: Structure,
        circle: Arc<str>,
        told_off: watch::Receiver<bool>,
    ) -> Self {
        let version = context.protocol_version();
        let is_stateless =
            version.is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        Call {
            answers: request.input_responses.take(),
            state: request.request_state.take(),
            is_stateless,
            log: threshold.wanted(&context, is_stateless),
            structure,
            told_off,
            untold: Arc::default(),
            // Clients without a connection cannot be told apart.
            circle: match is_stateless {
                true => Arc::from(UNCONNECTED),
                false => circle,
            },
            context,
        }
    }

    /// A session is its answer, which may not be heard.
    pub(super) fn opened(&self, session: Option<Untold>) {
        *self.untold.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// Whether the client can show the person a form.
    pub(crate) fn can_ask(&self) -> bool {
        let shows_forms = |it: &ElicitationCapability| it.form.is_some() || it.url.is_none();
        let capabilities = self.context.client_capabilities();
        capabilities
            .and_then(|it| it.elicitation)
            .is_some_and(|it| shows_forms(&it))
    }

    /// Returns when the client no longer wants an answer: it has said so, or, where there are no
    /// sessions, closed the stream that the answer was to come on. A client that ends its session
    /// leaves, and has cancelled nothing.
    pub(crate) async fn cancelled(&self) {
        let told = async {
            if self.told_off.clone().wait_for(|told| *told).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let hung_up = async {
            match self.is_stateless {
                true => self.context.ct.cancelled().await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = told => {}
            () = hung_up => {}
        }
    }
}

type Answering = Boxed<'static, Result<CallToolResponse, Refused>>;
type Handler = Box<dyn Fn(Arc<Server>, Value, Call) -> Answering + Send + Sync>;

/// A tool with its handler.
pub(crate) struct Offer {
    tool: &'static Tool,
    /// Groups it is offered with beside its own.
    also: &'static [Toolset],
    handler: Handler,
}

impl Offer {
    /// A tool whose handler takes its request, checked, and answers its response.
    pub(crate) fn new<R, H, F, A>(handler: H) -> Self
    where
        R: Request + Send,
        H: Fn(Arc<Server>, R, Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<A, Refused>> + Send + 'static,
        A: Into<Reply<R::Response>>,
    {
        Offer {
            tool: R::tool(),
            also: &[],
            handler: Box::new(move |server, parameters, call| {
                let structure = call.structure;
                let answering = match tools::request::<R>(parameters) {
                    Ok(request) => handler(server, request, call),
                    Err(invalid) => return Box::pin(async { Err(invalid.into()) }),
                };
                Box::pin(async move {
                    let result = match answering.await?.into() {
                        Reply::Ask(ask) => return Ok((*ask).into()),
                        Reply::Done(response) => structure.result(&response),
                        Reply::Again(answer) => structure.again(&answer),
                    };
                    Ok(result?.into())
                })
            }),
        }
    }

    /// The groups it is offered with, its own first.
    fn groups(&self) -> impl Iterator<Item = Toolset> {
        std::iter::once(self.tool.toolset).chain(self.also.iter().copied())
    }

    /// Offers it with other groups as well.
    pub(crate) fn also_in(mut self, toolsets: &'static [Toolset]) -> Self {
        self.also = toolsets;
        self
    }
}

/// Every tool, offered or not.
fn every() -> Vec<Offer> {
    let all = [
        super::terminal::offers(),
        super::workflow::offers(),
        super::library::offers(),
        super::memory::offers(),
        super::brief::offers(),
        super::agent::offers(),
        super::run_list::offers(),
        super::debug::offers(),
    ];
    all.into_iter().flatten().collect()
}

/// The tools that are offered.
pub(crate) struct Offers {
    offers: Vec<Offer>,
    by_name: HashMap<&'static str, usize>,
    /// Their schemas are made when somebody wants to see them.
    listed: OnceLock<Vec<rmcp::model::Tool>>,
    /// The groups that were asked for.
    toolsets: Vec<Toolset>,
    /// Only those that change nothing.
    read_only: bool,
}

impl Offers {
    pub(crate) fn new(toolsets: &[Toolset], read_only: bool) -> Self {
        let mut offers = every();
        offers.retain(|offer| {
            let mut groups = offer.groups();
            groups.any(|group| toolsets.contains(&group)) && (offer.tool.read_only || !read_only)
        });
        let by_name = offers.iter().enumerate();
        Offers {
            by_name: by_name
                .map(|(index, offer)| (offer.tool.name, index))
                .collect(),
            listed: OnceLock::new(),
            offers,
            toolsets: toolsets.to_vec(),
            read_only,
        }
    }

    /// Whether nothing can be changed with them.
    pub(crate) fn are_read_only(&self) -> bool {
        self.read_only
    }

    /// What to say of a tool that is not offered.
    pub(crate) fn missing(&self, name: &str) -> String {
        let known = every().into_iter().find(|offer| offer.tool.name == name);
        match (known, self.near(name)) {
            (Some(offer), _) => self.kept_out(&offer),
            (None, Some(near)) => {
                format!("there is no tool `{name}`: did you mean `{near}`?")
            }
            (None, None) => format!("there is no tool `{name}`"),
        }
    }

    /// What keeps a tool out, and with what the server would offer it.
    fn kept_out(&self, offer: &Offer) -> String {
        let words = |groups: &mut dyn Iterator<Item = Toolset>| {
            let words: Vec<&str> = groups.map(Toolset::word).collect();
            words.join(",")
        };
        let mut given = self.toolsets.iter().copied();
        let given = words(&mut given);
        let mut wanted = self.toolsets.iter().copied().chain([offer.tool.toolset]);
        let wanted = format!("`--toolsets {}`", words(&mut wanted));
        let writes = self.read_only && !offer.tool.read_only;
        let is_asked = offer.groups().any(|group| self.toolsets.contains(&group));
        let (why, way) = match (writes, is_asked) {
            (true, true) => (
                "--read-only, and it changes something".to_owned(),
                "without that it is".to_owned(),
            ),
            (true, false) => (
                format!("--read-only and other --toolsets ({given})"),
                format!("with {wanted} and without --read-only it is"),
            ),
            (false, _) => (
                format!("other --toolsets ({given})"),
                format!("with {wanted} it is"),
            ),
        };
        let name = offer.tool.name;
        format!("`{name}` is not offered: the server was started with {why}; {way}")
    }

    /// The tools as clients read them, with the workflows, agents and prompts that there are.
    pub(crate) fn listed(&self, server: &Server) -> Vec<rmcp::model::Tool> {
        let all = || self.offers.iter().map(|offer| listed(offer.tool)).collect();
        let mut listed = self.listed.get_or_init(all).clone();
        for tool in &mut listed {
            let names = |kind| server.briefs(kind).list().into_iter().map(|it| it.name);
            let (parameter, names) = match &*tool.name {
                name if name == FlowRequest::tool().name => ("flow_name", server.shelves.names()),
                name if name == AgentRequest::tool().name => {
                    ("agent_name", names(Kind::Agent).collect())
                }
                name if name == PromptRequest::tool().name => {
                    ("prompt_name", names(Kind::Prompt).collect())
                }
                _ => continue,
            };
            choose(Arc::make_mut(&mut tool.input_schema), parameter, &names);
        }
        listed
    }

    /// Whether a tool of this name is offered.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Calls a tool; `None` when there is none of this name.
    pub(crate) fn call(
        &self,
        server: Arc<Server>,
        name: &str,
        parameters: Map<String, Value>,
        call: Call,
    ) -> Option<Answering> {
        let offer = &self.offers[*self.by_name.get(name)?];
        Some((offer.handler)(server, Value::Object(parameters), call))
    }

    /// The tool that was probably meant.
    fn near(&self, name: &str) -> Option<&'static str> {
        nearest_or_part(name, self.offers.iter().map(|offer| offer.tool.name))
    }
}

/// Lists the names where one is chosen. What is not listed is taken too: it may be newer than the
/// list that a client has.
fn choose(schema: &mut Map<String, Value>, parameter: &str, names: &[String]) {
    let names = names.iter().map(|name| match name.as_str() {
        LIST => format!("_{LIST}"),
        name => name.to_owned(),
    });
    let names: Vec<String> = [LIST.to_owned()].into_iter().chain(names).collect();
    if let Some(choice) = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(parameter))
    {
        choice["enum"] = names.into();
    }
}

fn listed(tool: &'static Tool) -> rmcp::model::Tool {
    let object = |schema: &Value| Arc::new(schema.as_object().cloned().unwrap_or_default());
    let annotations = ToolAnnotations::with_title(tool.title)
        .read_only(tool.read_only)
        .destructive(tool.destructive)
        .idempotent(tool.idempotent)
        .open_world(!tool.read_only);
    let description: Cow<'static, str> = match tool.name {
        name if name == CreateWorkflowRequest::tool().name => {
            let outline = super::library::outline();
            format!("{}\n\n{outline}", tool.description).into()
        }
        _ => tool.description.into(),
    };
    rmcp::model::Tool::new(tool.name, description, object(tool.input_schema()))
        .with_title(tool.title)
        .with_raw_output_schema(object(tool.output_schema()))
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_calls_a_tool_that_is_not_offered_is_told_what_would_offer_it() {
        let groups = [
            Toolset::Terminal,
            Toolset::Workflow,
            Toolset::Agent,
            Toolset::Debug,
        ];
        let said = |toolsets: &[Toolset], read_only, name| {
            let missing = Offers::new(toolsets, read_only).missing(name);
            let start = format!("`{name}` is not offered: the server was started with ");
            missing.strip_prefix(&start).map(str::to_owned)
        };
        let cases = [
            (
                said(&[Toolset::Terminal], false, "debug_workflow"),
                "other --toolsets (terminal); with `--toolsets terminal,debug` it is",
            ),
            (
                said(&[Toolset::Debug], false, "complete_workflow"),
                "other --toolsets (debug); with `--toolsets debug,agent` it is",
            ),
            (
                said(&groups, true, "start_workflow"),
                "--read-only, and it changes something; without that it is",
            ),
            (
                said(&[Toolset::Debug], true, "start_workflow"),
                "--read-only and other --toolsets (debug); \
                 with `--toolsets debug,agent` and without --read-only it is",
            ),
        ];
        for (said, expected) in cases {
            assert_eq!(said.as_deref(), Some(expected));
        }
        // What is said offers it.
        for group in groups {
            let offers = Offers::new(&[group], false);
            for tool in tools::served().filter(|tool| !offers.has(tool.name)) {
                let said = offers.missing(tool.name);
                let way = format!("`--toolsets {},{}`", group.word(), tool.toolset.word());
                assert!(said.contains(&way), "{said}");
                assert!(Offers::new(&[group, tool.toolset], false).has(tool.name));
            }
        }
        let offers = Offers::new(&groups, true);
        let expected = "there is no tool `list_workflow`: did you mean `list_workflows`?";
        assert_eq!(offers.missing("list_workflow"), expected);
    }

    #[test]
    fn whoever_can_start_a_run_can_stop_it() {
        for group in [Toolset::Workflow, Toolset::Agent] {
            assert!(Offers::new(&[group], false).has("complete_workflow"));
        }
    }
}
