//! A host that dies at any moment: the run goes on to the same end, and nothing recorded is done
//! again.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::{
    Answers, Boxed, Host, HostOptions, NoWorkflow, Report, ReportStatus, StartOptions, ToolCall,
    Tools, Watch, Workflows,
};
use flow_runtime::journal::{Journal, Listing, RunId};
use flow_runtime::run::{Effect, Evaluator, Event, Expressions, Failure, Happening};
use flow_runtime::value::Value;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

/// The directory of the run, for the process that is killed.
const DIRECTORY: &str = "FLOW_CRASH_DIRECTORY";
/// How many things it may see happen.
const MOMENTS: &str = "FLOW_CRASH_MOMENTS";

/// Every kind of step that needs nothing but this host. Each notes its key when it is done, except
/// the one that is tried twice with the same key.
const EVERYTHING: &str = "
state: {n: 0, seen: [], note: ''}
computed:
  double: {from: n, transform: input * 2}
outputs:
  n: '{{ state.n }}'
  double: '{{ state.double }}'
  seen: '{{ state.seen }}'
  said: '{{ state.said }}'
  tried: '{{ state.tried }}'
  fallen: '{{ state.fallen }}'
  all: '{{ state.all }}'
  called: '{{ state.called.word }}'
  tool: '{{ state.tool.given }}'
  sure: '{{ state.sure.confirmed }}'
  agent: '{{ state.agent.response }}'
  waited: '{{ state.waited.resumed }}'
  note: '{{ state.note }}'
steps:
  - {id: say, type: shell, command: 'echo $FLOW_STEP_KEY >> keys; echo hello', output_format: text, output_to: said}
  - {id: retried, type: shell, command: 'test -e tried || { touch tried; exit 1; }; echo tried', output_format: text, output_to: tried, retry: {attempts: 3, delay: 0.001}}
  - {id: falls, type: shell, command: 'echo $FLOW_STEP_KEY >> keys; exit 3', fallback_value: none, output_format: text, output_to: fallen}
  - id: turns
    type: while
    if: '{{ state.n < 5 }}'
    max_iterations: 10
    steps:
      - {type: set_state, updates: [{path: n, operation: increment}]}
      - {type: continue, when: '{{ state.n == 1 }}'}
      - {type: break, when: '{{ state.n == 3 }}'}
  - {id: back, type: goto, target: turns, max_iterations: 1}
  - id: each
    type: foreach
    items: [a, b]
    steps:
      - {id: one, type: shell, command: 'echo $FLOW_STEP_KEY >> keys; echo {{ item }}', output_format: text, output_to: last}
      - {type: set_state, updates: [{path: seen, operation: append, value: '{{ state.last }}'}]}
  - {id: all, type: foreach, items: [1, 2, 3], task: square, max_parallel: 2, output_to: all}
  - {id: called, type: call, workflow: inner, inputs: {word: hi}, output_to: called}
  - {id: tool, type: mcp_call, tool: server.echo, parameters: {given: 7}, output_to: tool}
  - {id: tell, type: prompt, kind: info, message: look}
  - {id: sure, type: prompt, kind: confirm, message: Sure?, output_to: sure}
  - {id: agent, type: delegate, instructions: think, output_to: agent}
  - {id: waited, type: wait, duration_seconds: 0.001, output_to: waited}
  - {id: jumps, type: shell, command: 'echo $FLOW_STEP_KEY >> keys; exit 4', on_error: {goto: landed}}
  - {id: missed, type: set_state, updates: {note: missed}}
  - type: condition
    id: landed
    if: '{{ state.sure.confirmed }}'
    then: [{type: set_state, updates: {note: landed}}]
    else: [{type: set_state, updates: {note: astray}}]
tasks:
  square:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: compute, type: shell, command: 'echo $FLOW_STEP_KEY >> keys; echo $(( {{ inputs.n }} * {{ inputs.n }} ))', output_format: json, output_to: out}
      - {type: return, value: '{{ state.out }}'}
";

const INNER: &str = "
inputs: {word: string}
outputs: {word: '{{ state.word }}'}
steps:
  - {id: inside, type: shell, command: 'echo $FLOW_STEP_KEY >> keys; echo {{ inputs.word }}', output_format: text, output_to: word}
";

fn graph(name: &str, definition: &str) -> Graph {
    let compiled = compile(Source::new(name, definition), &NoLoader);
    let findings: Vec<String> = compiled
        .findings
        .iter()
        .map(|finding| finding.message.clone())
        .collect();
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{findings:?}"))
}

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

struct Inner;

impl Workflows for Inner {
    fn find(&self, _name: &str) -> Result<Graph, NoWorkflow> {
        Ok(graph("inner.yaml", INNER))
    }

    fn compile(&self, _definition: &Value) -> Result<Graph, NoWorkflow> {
        Err(NoWorkflow::Invalid("there is no definition".to_owned()))
    }
}

/// Gives its parameters back, and says so in the same file as the commands.
struct Echo {
    directory: std::path::PathBuf,
}

impl Tools for Echo {
    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        use std::io::Write;
        let path = self.directory.join("keys");
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{}", call.key).unwrap();
        let parameters = call.parameters.clone();
        Box::pin(async move { Ok(parameters) })
    }
}

/// Kills this process when it has seen enough.
struct Killer {
    left: AtomicUsize,
}

impl Killer {
    fn moment(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
            // The signal may be taken a moment later; nothing may happen in between.
            loop {
                std::thread::park();
            }
        }
    }
}

impl Watch for Killer {
    fn effect(&self, _run: RunId, _graph: &Graph, effect: &Effect) {
        // Entering changes nothing outside; what follows from it is a moment of its own.
        if !matches!(effect, Effect::Entered(_)) {
            self.moment();
        }
    }

    fn output(&self, _run: RunId, _step: &str, _text: &[u8]) {
        self.moment();
    }
}

fn host(directory: &Path, moments: usize) -> Host {
    let journal = Journal::open(directory.join("journal.db")).unwrap();
    let mut options = HostOptions::new(journal, directory.to_owned(), evaluator);
    let answers = Value::from(&json!({"sure": true}));
    options.people = Arc::new(Answers::new(&answers).unwrap());
    options.workflows = Arc::new(Inner);
    options.tools = Arc::new(Echo {
        directory: directory.to_owned(),
    });
    options.agent = Some("cat".to_owned());
    options.watch = Arc::new(Killer {
        left: AtomicUsize::new(moments),
    });
    Host::new(options)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Starts the run and drives it, if it lives so long.
fn begin(directory: &Path, moments: usize) -> Report {
    let host = host(directory, moments);
    runtime().block_on(async {
        let graph = graph("everything.yaml", EVERYTHING);
        let options = StartOptions::default();
        let run = host.start(&graph, &Value::Null, options).await.unwrap();
        host.drive(run).await.unwrap()
    })
}

#[test]
#[ignore = "the process that is killed; another test starts it"]
fn the_host_that_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let moments = std::env::var(MOMENTS).unwrap().parse().unwrap();
    let report = begin(Path::new(&directory), moments);
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
}

fn keys(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("keys")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The keys of actions whose result is recorded.
fn recorded(journal: &Journal) -> HashSet<String> {
    let mut keys = HashSet::new();
    for run in journal.list(&Listing::new(), 10).unwrap().runs {
        for event in journal.events(run.id, 1.., usize::MAX).unwrap() {
            let event: Event = serde_json::from_slice(&event.body).unwrap();
            if let Happening::Completed { action, .. } | Happening::Failed { action, .. } =
                event.what
            {
                keys.insert(format!("{}-{}", run.id, action.0));
            }
        }
    }
    keys
}

/// Kills the host after so many moments and goes on. `None` when it had ended before.
fn killed_after(moments: usize) -> Option<Report> {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "the_host_that_is_killed"])
        .env(DIRECTORY, directory)
        .env(MOMENTS, moments.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    if status.success() {
        return None;
    }
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "the host failed after {moments}");
    let host = host(directory, 0);
    let journal = host.journal();
    let recorded = recorded(journal);
    let top = Listing::new().top_level();
    let run = journal.list(&top, 1).unwrap().runs.remove(0).id;
    let before = keys(directory).len();
    let report = runtime().block_on(host.drive(run)).unwrap();
    for key in &keys(directory)[before..] {
        let again = recorded.contains(key);
        assert!(!again, "after {moments} moments {key} was done again");
    }
    for run in journal.list(&Listing::new(), 10).unwrap().runs {
        assert!(run.status.is_final(), "{run:?}");
        assert!(journal.orphans(run.id).unwrap().is_empty());
    }
    Some(report)
}

#[test]
fn a_host_may_die_at_any_moment() {
    let whole = tempfile::tempdir().unwrap();
    let expected = begin(whole.path(), 0);
    assert_eq!(
        expected.status,
        ReportStatus::Completed,
        "{:?}",
        expected.error
    );
    assert_eq!(expected.output.get("note"), Some(&Value::text("landed")));
    let next = AtomicUsize::new(1);
    let work = || {
        loop {
            let moments = next.fetch_add(1, Ordering::SeqCst);
            let Some(report) = killed_after(moments) else {
                break moments;
            };
            assert_eq!(report.status, expected.status, "{:?}", report.error);
            assert_eq!(report.output, expected.output, "after {moments}");
            assert_eq!(report.state, expected.state, "after {moments}");
        }
    };
    let seen = std::thread::scope(|scope| {
        let other = scope.spawn(work);
        work().min(other.join().unwrap())
    });
    assert!(seen > 40, "only {seen} moments were tried");
}
