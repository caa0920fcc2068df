//! MCP over HTTP on the loopback interface, for any number of clients.
//!
//! Whoever can reach the port of this machine is not yet whoever may run things on it: requests
//! need a token, and a page in a browser is told apart by its `Host` and `Origin`.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use flow_runtime::journal::Hash;
use flow_runtime::secret::TOKEN;
use http_body::{Frame, SizeHint};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::heard;
use crate::engine::Interrupts;
use crate::exit::Usage;
use crate::output::Output;

/// Where MCP is spoken.
const PATH: &str = "/mcp";
const ORIGINS: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
/// Characters of the shortest token that a person may choose: what can be guessed is no token.
const SHORTEST: usize = 16;

/// How long clients are given to take the answers of a server that ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// How a server ends: when it is told to, and what it lets go of before its last answers.
pub(super) struct Ending {
    interrupts: Interrupts,
    leave: Box<dyn FnOnce() + Send>,
}

impl Ending {
    pub(super) fn new(interrupts: Interrupts, leave: impl FnOnce() + Send + 'static) -> Self {
        let leave = Box::new(leave);
        Ending { interrupts, leave }
    }
}

/// What a request must show.
#[derive(Clone)]
pub(super) enum Door {
    /// This token.
    Token(Token),
    /// Nothing: there is nothing behind it.
    Open,
}

/// What lets requests in.
#[derive(Clone)]
pub(super) struct Token {
    text: Arc<str>,
    /// The person has chosen it, and need not be told.
    is_chosen: bool,
}

/// Serves until this process is told to stop. `directory` is private to the user: the file that
/// tells the user's programs address and token stands there meanwhile.
pub(super) async fn serve<H: ServerHandler>(
    connect: impl Fn() -> H + Send + Sync + 'static,
    address: &str,
    door: Door,
    directory: &Path,
    ending: Ending,
    output: &mut Output,
) -> Result<()> {
    let listener = listen(address).await?;
    let bound = listener.local_addr()?;
    let url = format!("http://{bound}{PATH}");
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(ORIGINS)
        .with_max_request_body_bytes(heard::LONGEST);
    let stop = config.cancellation_token.clone();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(connect()), sessions, config);
    let answers = Answers::default();
    let router = Router::new()
        .nest_service(PATH, service)
        .layer(middleware::from_fn_with_state(answers.clone(), count))
        .layer(middleware::from_fn(answer_unreadable))
        .layer(middleware::from_fn(answer_ended))
        .layer(middleware::from_fn_with_state(door.clone(), admit));
    let note = Note::leave(directory, bound, &url, &door)?;
    output.tell(format_args!("serving at {url}"));
    if let Door::Token(Token { text, is_chosen }) = &door {
        let note = note.0.display();
        match is_chosen {
            true => output.tell(format_args!("token as in {TOKEN}, also in {note}")),
            false => output.tell(format_args!("token {text}, also in {note}")),
        }
    }
    let until = async move {
        let Ending {
            mut interrupts,
            leave,
        } = ending;
        interrupts.next().await;
        // Calls that wait are answered now; their answers are given before connections are closed.
        leave();
        let _ = tokio::time::timeout(LAST_ANSWERS, answers.given()).await;
        // Streams that are open would keep the server from ending.
        stop.cancel();
    };
    axum::serve(listener, router)
        .with_graceful_shutdown(until)
        .await?;
    Ok(())
}

/// Answers that are on their way.
#[derive(Clone, Default)]
struct Answers(watch::Sender<usize>);

impl Answers {
    /// Returns when there are none.
    async fn given(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }

    fn one(&self) -> OnItsWay {
        self.0.send_modify(|open| *open += 1);
        OnItsWay(self.clone())
    }
}

/// One of them, until its last byte was taken or its client is gone.
struct OnItsWay(Answers);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

/// Counts the answers to what clients ask.
async fn count(State(answers): State<Answers>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let one = answers.one();
    let answer = next.run(request).await;
    answer.map(|body| Body::new(Answer { body, _one: one }))
}

/// What is said in an answer.
struct Answer {
    body: Body,
    _one: OnItsWay,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Listens on an address of this machine.
async fn listen(address: &str) -> Result<TcpListener> {
    let usage = |reason: String| Usage::new(reason).help("give an address such as 127.0.0.1:7333");
    let found = address.to_socket_addrs();
    let found: Vec<SocketAddr> = found
        .map_err(|error| usage(format!("`{address}` is no address: {error}")))?
        .collect();
    let Some(local) = found.iter().find(|it| it.ip().is_loopback()) else {
        let reason = format!("`{address}` can be reached from other machines");
        return Err(usage(reason).into());
    };
    let listener = TcpListener::bind(local).await;
    listener.with_context(|| format!("`{address}` cannot be listened on"))
}

/// The token that requests must show: the person's, else a new one.
pub(super) fn token() -> Result<Token> {
    if let Ok(token) = std::env::var(TOKEN)
        && !token.trim().is_empty()
    {
        let token = token.trim();
        let length = token.chars().count();
        if length < SHORTEST {
            let usage = Usage::new(format!(
                "{TOKEN} has {length} characters, and a token that short can be guessed"
            ));
            let help = format!(
                "give {SHORTEST} or more, such as `openssl rand -hex 32` makes; without {TOKEN} \
                 the server makes one"
            );
            return Err(usage.help(help).into());
        }
        return Ok(Token {
            text: token.into(),
            is_chosen: true,
        });
    }
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no token can be made: {error}"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Token {
        text: digits.into(),
        is_chosen: false,
    })
}

/// Lets requests in that show the token.
async fn admit(State(door): State<Door>, request: Request, next: Next) -> Response {
    match &door {
        Door::Token(token) if !shows(request.headers(), &token.text) => {
            let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"flow\"")];
            let reason = match token.is_chosen {
                true => {
                    "this server wants `Authorization: Bearer TOKEN`, \
                     with the token that FLOW_TOKEN held when it started\n"
                }
                false => {
                    "this server wants `Authorization: Bearer TOKEN`; \
                     it printed the token when it started\n"
                }
            };
            (StatusCode::UNAUTHORIZED, challenge, reason).into_response()
        }
        Door::Token(_) | Door::Open => next.run(request).await,
    }
}

/// Answers what is no message as JSON-RPC does, which the transport would call media of another
/// type.
async fn answer_unreadable(request: Request, next: Next) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if request.method() != Method::POST || !is_json {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let Ok(said) = to_bytes(body, heard::LONGEST).await else {
        let reason = format!("a message has at most {} bytes\n", heard::LONGEST);
        return (StatusCode::PAYLOAD_TOO_LARGE, reason).into_response();
    };
    let again = Request::from_parts(head, Body::from(said.clone()));
    let response = next.run(again).await;
    if response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let answer = heard::unreadable(&said).to_string();
    (StatusCode::BAD_REQUEST, kind, answer).into_response()
}

/// Says of a session that has ended that it has; clients take "accepted" for a failure.
async fn answer_ended(request: Request, next: Next) -> Response {
    let ends = request.method() == Method::DELETE;
    let response = next.run(request).await;
    match ends && response.status() == StatusCode::ACCEPTED {
        true => StatusCode::NO_CONTENT.into_response(),
        false => response,
    }
}

fn shows(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| {
        let (scheme, shown) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| shown.trim())
    });
    // Hashes take the same time to compare however much of a guess is right.
    shown.is_some_and(|shown| Hash::of(shown.as_bytes()) == Hash::of(token.as_bytes()))
}

/// The file that tells the user's programs where this server is; it goes with the server.
struct Note(PathBuf);

impl Note {
    fn leave(directory: &Path, bound: SocketAddr, url: &str, door: &Door) -> Result<Self> {
        let path = directory.join(format!("serve-{}.json", bound.port()));
        let token = match door {
            Door::Token(token) => Some(token.text.as_ref()),
            Door::Open => None,
        };
        let note = json!({"url": url, "token": token, "pid": std::process::id()});
        // One that a killed server left would keep its mode.
        let _ = fs::remove_file(&path);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{note:#}"));
        written.with_context(|| format!("`{}` cannot be written", path.display()))?;
        Ok(Note(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
