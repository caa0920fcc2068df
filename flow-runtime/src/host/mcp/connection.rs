//! A connection to one MCP server: a program of ours, or an address.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    JsonObject, ProtocolVersion, RequestMetaObject, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService,
    ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::settings::Server;
use crate::secret;

/// How long a server may take until it answers. One that is fetched first takes its time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server may take to end by itself once nobody talks to it.
const GRACE: Duration = Duration::from_secs(2);
/// Where a call says which step makes it, so that a server can recognise one that is made again.
const STEP_KEY: &str = "flow/step_key";
/// How much of what a server says on its standard error is remembered.
const REMEMBERED: usize = 4 << 10;

/// A server that answers.
pub(super) struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    process: Option<Process>,
}

/// Why a server cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    #[error("`{command}` cannot be started: {reason}")]
    NotStarted { command: String, reason: String },
    #[error("it did not answer{}", tail(.said))]
    Silent { said: String },
    #[error("{reason}{}", tail(.said))]
    Refused { reason: String, said: String },
    #[error("`{header}` is not a header that can be sent")]
    Header { header: String },
    #[error("it ended{how}{}", tail(.said))]
    Ended { how: String, said: String },
    #[error("{0}")]
    Told(String),
}

fn tail(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; the last it said was:\n{said}"),
    }
}

impl Connection {
    /// Reaches a server, speaking the newest revision of the protocol that both know.
    pub(super) async fn open(server: &Server) -> Result<Self, ConnectionError> {
        match server {
            Server::Process { .. } => Connection::start(server).await,
            Server::Http { url, headers } => Connection::reach(url, headers).await,
        }
    }

    async fn start(server: &Server) -> Result<Self, ConnectionError> {
        let (mut process, streams) = Process::start(server)?;
        let served = timeout(PATIENCE, client().serve_with_lifecycle(streams, eras())).await;
        match served {
            Ok(Ok(service)) => Ok(Connection {
                service,
                process: Some(process),
            }),
            Ok(Err(error)) => {
                // A server that ended tells more by how it did.
                Err(match process.ended().await {
                    Some(how) => ConnectionError::Ended {
                        how,
                        said: process.last_words().await,
                    },
                    None => ConnectionError::Refused {
                        reason: reason(&error),
                        said: process.said(),
                    },
                })
            }
            Err(_) => Err(ConnectionError::Silent {
                said: process.said(),
            }),
        }
    }

    async fn reach(url: &str, headers: &[(String, String)]) -> Result<Self, ConnectionError> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        let mut custom = HashMap::new();
        for (name, value) in headers {
            let header = HeaderName::try_from(name).ok();
            let value = HeaderValue::try_from(value).ok();
            let (Some(header), Some(value)) = (header, value) else {
                let header = name.clone();
                return Err(ConnectionError::Header { header });
            };
            custom.insert(header, value);
        }
        config.custom_headers = custom;
        // Fails when the program has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_config(config);
        match timeout(PATIENCE, client().serve_with_lifecycle(transport, eras())).await {
            Ok(Ok(service)) => Ok(Connection {
                service,
                process: None,
            }),
            Ok(Err(error)) => Err(ConnectionError::Refused {
                reason: reason(&error),
                said: String::new(),
            }),
            Err(_) => Err(ConnectionError::Silent {
                said: String::new(),
            }),
        }
    }

    /// Whether nobody answers any more.
    pub(super) fn is_over(&self) -> bool {
        self.service.is_transport_closed()
    }

    /// The tools that the server has now.
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, ConnectionError> {
        match self.service.list_all_tools().await {
            Ok(tools) => Ok(tools),
            Err(error) => Err(self.lost(&error).await),
        }
    }

    /// Calls a tool. The key is the same when the call is made again.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        key: &str,
    ) -> Result<CallToolResult, ConnectionError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(STEP_KEY.to_owned(), key.into());
        params.meta = Some(meta);
        match self.service.call_tool(params).await {
            Ok(result) => Ok(result),
            Err(error) => Err(self.lost(&error).await),
        }
    }

    async fn lost(&self, error: &ServiceError) -> ConnectionError {
        match error {
            ServiceError::McpError(error) => ConnectionError::Told(error.message.to_string()),
            ServiceError::TransportClosed => ConnectionError::Ended {
                how: String::new(),
                said: self.last_words().await,
            },
            ServiceError::TransportSend(error) => ConnectionError::Refused {
                reason: unreachable(&*error.error),
                said: self.last_words().await,
            },
            other => ConnectionError::Told(other.to_string()),
        }
    }

    async fn last_words(&self) -> String {
        match &self.process {
            Some(process) => process.last_words().await,
            None => String::new(),
        }
    }

    /// Says goodbye. A server that is a program has ended when this returns.
    pub(super) async fn close(mut self) {
        let _ = self.service.close_with_timeout(GRACE).await;
        if let Some(process) = self.process.take() {
            process.end().await;
        }
    }
}

fn client() -> ClientConfig {
    let this = Implementation::new("flow", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), this)
}

/// Asks in the manner of the newest revision, and shakes hands with a server that does not know it.
fn eras() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn reason(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => unreachable(&*error.error),
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => reason(fallback),
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "it does not speak the protocol".to_owned()
        }
        other => other.to_string(),
    }
}

/// Why nothing could be sent.
fn unreachable(error: &(dyn std::error::Error + 'static)) -> String {
    // The error of the transport does not say what is behind it.
    let inner: &(dyn std::error::Error + 'static) = match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(inner)) => inner,
        _ => error,
    };
    format!("it cannot be reached: {}", chain(inner))
}

/// What an error says, and what each error behind it says.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            let _ = write!(text, ": {more}");
        }
        source = error.source();
    }
    text
}

/// The program of a server, in a process group of its own that ends with this.
struct Process {
    child: Child,
    pid: Option<u32>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Closed when there is nothing more to hear.
    listening: watch::Receiver<()>,
}

type Streams = (tokio::process::ChildStdout, tokio::process::ChildStdin);

impl Process {
    fn start(server: &Server) -> Result<(Self, Streams), ConnectionError> {
        let Server::Process {
            command,
            args,
            env,
            directory,
        } = server
        else {
            return Err(ConnectionError::Told("it is no program".to_owned()));
        };
        let failed = |reason: String| ConnectionError::NotStarted {
            command: command.clone(),
            reason,
        };
        if !directory.is_dir() {
            return Err(failed(format!(
                "there is no directory {}",
                directory.display()
            )));
        }
        let mut program = Command::new(command);
        for name in secret::withheld() {
            program.env_remove(name);
        }
        let spawned = program
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child = spawned.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => failed("there is no such program".to_owned()),
            _ => failed(error.to_string()),
        })?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let (listener, listening) = watch::channel(());
        if let Some(stderr) = child.stderr.take() {
            let said = Arc::clone(&said);
            tokio::spawn(async move {
                remember(stderr, said).await;
                drop(listener);
            });
        }
        let streams = child.stdout.take().zip(child.stdin.take());
        let streams = streams.ok_or_else(|| failed("it has no streams".to_owned()))?;
        let pid = child.id();
        let process = Process {
            child,
            pid,
            said,
            listening,
        };
        Ok((process, streams))
    }

    /// What it said last, once it has said everything: an end can be seen before the words that
    /// came before it.
    async fn last_words(&self) -> String {
        let mut listening = self.listening.clone();
        // What it started may keep the stream open.
        let _ = timeout(GRACE, listening.changed()).await;
        self.said()
    }

    fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// How it ended, if it did or is about to.
    async fn ended(&mut self) -> Option<String> {
        let status = timeout(GRACE, self.child.wait()).await.ok()?.ok()?;
        Some(how(status))
    }

    /// Waits for it to end by itself, then asks it to, then makes it.
    async fn end(mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if timeout(GRACE, self.child.wait()).await.is_ok() {
                break;
            }
            self.signal(signal);
        }
        let _ = timeout(GRACE, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        let pid = self.pid.and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            // A group that has ended already is what was wanted.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // What it started ends with it.
        self.signal(Signal::KILL);
    }
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!(" with exit code {code}"),
        (None, Some(signal)) => format!(" by signal {signal}"),
        (None, None) => String::new(),
    }
}

/// Keeps the end of what is said.
async fn remember(mut from: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 {
            return;
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buffer[..count]);
        let beyond = said.len().saturating_sub(REMEMBERED);
        said.drain(..beyond);
    }
}
