//! Steps that call tools of real MCP servers: programs and addresses, of both eras of the protocol.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use flow_model::compile;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::mcp::McpServers;
use flow_runtime::host::{Host, HostOptions, Report, ReportStatus, StartOptions, ToolCall, Tools};
use flow_runtime::journal::RunId;
use flow_runtime::run::Failure;
use flow_runtime::value::Value;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// A server with a tool for everything that can happen.
#[derive(Clone)]
struct Sample;

const TOOLS: [&str; 9] = [
    "echo", "key", "greet", "list", "picture", "fail", "die", "hang", "where",
];

impl ServerHandler for Sample {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.map(|name| Tool::new(name, "", Arc::new(JsonObject::new())));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Json::Object(request.arguments.unwrap_or_default());
        let text = |text: &str| CallToolResult::success(vec![ContentBlock::text(text)]);
        let result = match request.name.as_ref() {
            "echo" => CallToolResult::structured(json!({"given": arguments})),
            "key" => CallToolResult::structured(json!({
                "key": context.meta.0.0.get("flow/step_key"),
            })),
            "greet" => text("hello"),
            "list" => text(r#"[{"number": 1}, {"number": 2}]"#),
            "picture" => CallToolResult::success(vec![
                ContentBlock::text("here"),
                ContentBlock::image("aGk=", "image/png"),
            ]),
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such pull request")]),
            "die" => {
                eprintln!("out of memory");
                std::process::exit(3)
            }
            "hang" => {
                context.ct.cancelled().await;
                std::future::pending().await
            }
            "where" => CallToolResult::structured(json!({
                "directory": std::env::current_dir().unwrap_or_default(),
                "key": std::env::var("SAMPLE_KEY").ok(),
                "pid": std::process::id(),
                "header": context
                    .extensions
                    .get::<http::request::Parts>()
                    .and_then(|parts| parts.headers.get("x-sample"))
                    .and_then(|value| value.to_str().ok()),
            })),
            other => return Err(ErrorData::invalid_params(format!("no {other}"), None)),
        };
        Ok(result.into())
    }
}

/// Servers as programs: this file's own, in a process of its own. What the test harness says goes
/// to standard error, and descriptor 3 is what was standard output.
#[test]
#[ignore = "a server that other tests start"]
fn server() {
    match std::env::var("SAMPLE_MODE").as_deref() {
        Ok("newest") => newest(),
        Ok("older") => older(),
        Ok("broken") => {
            eprintln!("config.toml: no such file");
            std::process::exit(7);
        }
        // It does not end when nobody talks to it any more.
        Ok("stubborn") => loop {
            std::thread::park();
        },
        _ => panic!("this test is a part of others"),
    }
}

fn newest() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let out = tokio::net::unix::pipe::OpenOptions::new()
            .open_sender("/dev/fd/3")
            .unwrap();
        let (input, _) = rmcp::transport::stdio();
        let running = Sample.serve((input, out)).await.unwrap();
        running.waiting().await.unwrap();
    });
    std::process::exit(0);
}

/// Speaks only the revision with a handshake, by hand.
fn older() {
    let mut out = fs::File::create("/dev/fd/3").unwrap();
    let mut shaken = false;
    for line in std::io::stdin().lock().lines() {
        let message: Json = serde_json::from_str(&line.unwrap()).unwrap();
        let id = &message["id"];
        let answer = match message["method"].as_str().unwrap() {
            "initialize" => json!({"result": {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "older", "version": "1"},
            }}),
            "notifications/initialized" => {
                shaken = true;
                continue;
            }
            "tools/list" if shaken => json!({"result": {"tools": [
                {"name": "add", "inputSchema": {"type": "object"}},
            ]}}),
            "tools/call" if shaken => {
                let given = &message["params"]["arguments"];
                let sum = given["a"].as_i64().unwrap() + given["b"].as_i64().unwrap();
                json!({"result": {"content": [{"type": "text", "text": sum.to_string()}]}})
            }
            _ => json!({"error": {"code": -32601, "message": "Method not found"}}),
        };
        let mut reply = json!({"jsonrpc": "2.0", "id": id});
        let parts = answer.as_object().unwrap().clone();
        reply.as_object_mut().unwrap().extend(parts);
        writeln!(out, "{reply}").unwrap();
    }
}

/// The entry of `.mcp.json` that starts this file's server.
fn program(mode: &str) -> Json {
    json!({
        "command": "/bin/sh",
        "args": [
            "-c",
            "exec \"$0\" --ignored --exact server --nocapture 3>&1 1>&2",
            std::env::current_exe().unwrap(),
        ],
        "env": {"SAMPLE_MODE": mode, "SAMPLE_KEY": "${SAMPLE_UNSET:-filled in}"},
    })
}

/// A project with these servers.
fn project(servers: Json) -> (TempDir, McpServers) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join(".flow")).unwrap();
    let text = json!({"mcpServers": servers}).to_string();
    fs::write(root.path().join(".mcp.json"), text).unwrap();
    let inner = root.path().join("src");
    fs::create_dir(&inner).unwrap();
    let servers = McpServers::around(&inner).answering_all();
    (root, servers)
}

async fn call(servers: &McpServers, tool: &str, parameters: Json) -> Result<Json, Failure> {
    let parameters = Value::from(&parameters);
    let call = ToolCall {
        run: RunId::new(1, 1),
        tool,
        parameters: &parameters,
        key: "key",
    };
    Tools::call(servers, call)
        .await
        .map(|value| value.to_json())
}

async fn refusal(servers: &McpServers, tool: &str) -> String {
    call(servers, tool, json!({})).await.unwrap_err().message
}

fn is_running(pid: &Json) -> bool {
    let pid = pid.as_i64().unwrap();
    // A process that is gone, or waits only for its parent to notice.
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

#[tokio::test]
async fn a_tool_answers_with_its_structured_result_or_its_text() {
    let (root, servers) = project(json!({"sample": program("newest")}));
    let echoed = call(&servers, "sample.echo", json!({"a": [1, {"b": null}]})).await;
    assert_eq!(echoed.unwrap(), json!({"given": {"a": [1, {"b": null}]}}));
    let keyed = call(&servers, "sample.key", json!({})).await;
    assert_eq!(keyed.unwrap(), json!({"key": "key"}));
    let greeted = call(&servers, "sample.greet", json!({})).await;
    assert_eq!(greeted.unwrap(), json!("hello"));
    let listed = call(&servers, "sample.list", Json::Null).await;
    assert_eq!(listed.unwrap(), json!([{"number": 1}, {"number": 2}]));
    let mixed = call(&servers, "sample.picture", json!({})).await.unwrap();
    assert_eq!(mixed["content"][0]["text"], "here");
    assert_eq!(mixed["content"][1]["mimeType"], "image/png");
    let place = call(&servers, "sample.where", json!({})).await.unwrap();
    assert_eq!(
        place["directory"],
        json!(root.path().canonicalize().unwrap())
    );
    assert_eq!(place["key"], "filled in");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_of_the_older_era_is_shaken_hands_with() {
    let (_root, servers) = project(json!({"older": program("older")}));
    let sum = call(&servers, "older.add", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum.unwrap(), json!("5"));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_name_that_one_server_has_needs_no_server() {
    let (_root, servers) = project(json!({
        "one": program("newest"),
        "two": program("older"),
    }));
    let sum = call(&servers, "add", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum.unwrap(), json!("5"));
    let unknown = refusal(&servers, "ad").await;
    assert!(unknown.contains("did you mean `add`?"), "{unknown}");
    let nothing = refusal(&servers, "frobnicate").await;
    assert!(
        nothing.contains("`one.echo`") && nothing.contains("`two.add`"),
        "{nothing}"
    );
    servers.shutdown().await;
}

#[tokio::test]
async fn several_servers_with_one_tool_must_be_told_apart() {
    let (_root, servers) = project(json!({
        "one": program("newest"),
        "two": program("newest"),
    }));
    let which = refusal(&servers, "echo").await;
    assert!(which.contains("`one.echo`, `two.echo`"), "{which}");
    servers.shutdown().await;
}

#[tokio::test]
async fn what_is_missing_is_told_with_what_there_is() {
    let (_root, servers) = project(json!({"sample": program("newest")}));
    let server = refusal(&servers, "smaple.echo").await;
    assert!(server.contains("did you mean `sample`?"), "{server}");
    let tool = refusal(&servers, "sample.ecoh").await;
    assert!(tool.contains("did you mean `echo`?"), "{tool}");
    let tool = refusal(&servers, "sample.frobnicate").await;
    assert!(tool.contains("it has `echo`, `key`, `greet`"), "{tool}");
    let failed = refusal(&servers, "sample.fail").await;
    assert!(
        failed.contains("`sample.fail` failed: no such pull request"),
        "{failed}"
    );
    servers.shutdown().await;
    let none = McpServers::around(Path::new("/")).answering_all();
    let nothing = refusal(&none, "github.get_pr").await;
    assert!(nothing.contains(".mcp.json"), "{nothing}");
}

#[tokio::test]
async fn a_server_that_does_not_start_leaves_its_last_words() {
    let (_root, servers) = project(json!({
        "broken": program("broken"),
        "absent": {"command": "no-such-program-anywhere"},
        "secret": {"command": "true", "env": {"K": "${SAMPLE_UNSET}"}},
    }));
    let broken = refusal(&servers, "broken.echo").await;
    assert!(
        broken.contains("exit code 7") && broken.contains("config.toml: no such file"),
        "{broken}"
    );
    let absent = refusal(&servers, "absent.echo").await;
    assert!(absent.contains("there is no such program"), "{absent}");
    let secret = refusal(&servers, "secret.echo").await;
    assert!(secret.contains("SAMPLE_UNSET"), "{secret}");
}

#[tokio::test]
async fn a_server_that_dies_is_told_and_started_again() {
    let (_root, servers) = project(json!({"sample": program("newest")}));
    let first = call(&servers, "sample.where", json!({})).await.unwrap();
    let died = refusal(&servers, "sample.die").await;
    assert!(
        died.contains("it ended") && died.contains("out of memory"),
        "{died}"
    );
    let second = call(&servers, "sample.where", json!({})).await.unwrap();
    assert_ne!(first["pid"], second["pid"]);
    servers.shutdown().await;
    assert!(!is_running(&second["pid"]));
}

#[tokio::test]
async fn nothing_runs_before_a_step_calls_it_and_nothing_after_the_host() {
    let (root, servers) = project(json!({
        "sample": program("newest"),
        "trap": {"command": "/bin/sh", "args": ["-c", "touch trapped; cat"]},
    }));
    assert!(servers.has("sample.echo"));
    let pid = call(&servers, "sample.where", json!({})).await.unwrap()["pid"].clone();
    assert!(is_running(&pid));
    servers.shutdown().await;
    assert!(!is_running(&pid));
    assert!(!root.path().join("trapped").exists());
    // A host that is dropped without a word leaves nothing either.
    let (_root, servers) = project(json!({"sample": program("newest")}));
    let pid = call(&servers, "sample.where", json!({})).await.unwrap()["pid"].clone();
    drop(servers);
    // It was killed at once; reaping it is the system's.
    while is_running(&pid) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_server_usable() {
    let (_root, servers) = project(json!({"sample": program("newest")}));
    let before = call(&servers, "sample.where", json!({})).await.unwrap();
    {
        let mut hanging = std::pin::pin!(call(&servers, "sample.hang", json!({})));
        let other = tokio::select! {
            answer = &mut hanging => panic!("{answer:?}"),
            answer = call(&servers, "sample.greet", json!({})) => answer,
        };
        assert_eq!(other.unwrap(), json!("hello"));
    }
    let after = call(&servers, "sample.where", json!({})).await.unwrap();
    assert_eq!(before["pid"], after["pid"]);
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_at_an_address_gets_its_headers() {
    let service = StreamableHttpService::new(
        || Ok(Sample),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback_service(service);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let (_root, servers) = project(json!({
        "remote": {
            "type": "http",
            "url": format!("http://{address}/mcp"),
            "headers": {"X-Sample": "${SAMPLE_UNSET:-sent}"},
        },
        "gone": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
    }));
    let place = call(&servers, "remote.where", json!({})).await.unwrap();
    assert_eq!(place["header"], "sent");
    let gone = refusal(&servers, "gone.echo").await;
    assert!(
        gone.contains("it cannot be reached") && gone.contains("refused"),
        "{gone}"
    );
    servers.shutdown().await;
    serving.abort();
}

async fn run(root: &Path, servers: Arc<McpServers>, text: &str) -> Report {
    let mut options = HostOptions::open(root.join(".flow")).unwrap();
    options.tools = servers;
    let compiled = compile(Source::new("test.yaml", text), &NoLoader);
    let graph = compiled.into_graph().unwrap();
    let host = Host::new(options);
    let started = host.start(&graph, &Value::Null, StartOptions::default());
    let run = started.await.unwrap();
    host.drive(run).await.unwrap()
}

#[tokio::test]
async fn a_workflow_uses_what_servers_answer_and_handles_what_they_refuse() {
    let (root, servers) = project(json!({"sample": program("newest")}));
    let servers = Arc::new(servers);
    let text = "
outputs: {first: '{{ state.prs[0].number }}', said: '{{ state.said }}'}
steps:
  - {id: prs, type: mcp_call, tool: sample.list, output_to: prs}
  - {id: bad, type: mcp_call, tool: sample.fail, on_error: {goto: end}}
  - {id: never, type: return}
  - {id: end, type: mcp_call, tool: greet, output_to: said}
";
    let report = run(root.path(), Arc::clone(&servers), text).await;
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(
        report.output.to_json(),
        json!({"first": 1, "said": "hello"})
    );
    let slow = "steps: [{id: slow, type: mcp_call, tool: sample.hang, timeout: 0.05}]";
    let report = run(root.path(), Arc::clone(&servers), slow).await;
    assert_eq!(report.status, ReportStatus::Failed);
    servers.shutdown().await;
}

#[tokio::test]
async fn a_program_that_does_not_end_by_itself_is_ended() {
    // It never answers, so that the call is given up, as a step's time limit does.
    let (_root, servers) = project(json!({"sample": program("stubborn")}));
    {
        let mut hanging = std::pin::pin!(call(&servers, "sample.echo", json!({})));
        let started = std::future::poll_fn(|context| {
            let _ = hanging.as_mut().poll(context);
            std::task::Poll::Ready(())
        });
        started.await;
    }
    servers.shutdown().await;
}
