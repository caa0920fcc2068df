//! Whole durable steps through a host, with a real journal on a disk.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot work should stop"
)]

use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::{Boxed, Host, HostOptions, ReportStatus, StartOptions, ToolCall, Tools};
use flow_runtime::journal::{Journal, Listing, Status};
use flow_runtime::run::{Evaluator, Expressions, Failure};
use flow_runtime::value::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

fn main() {
    divan::main();
}

/// Answers at once, so that only the engine and the journal are measured.
struct Echo;

impl Tools for Echo {
    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        let value = call.parameters.clone();
        Box::pin(async move { Ok(value) })
    }
}

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

struct Bench {
    host: Host,
    runtime: Runtime,
    _directory: TempDir,
}

impl Bench {
    /// On the disk of the build directory: a file system in memory would flatter.
    fn new() -> Bench {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let journal = Journal::open(directory.path().join("journal.db")).unwrap();
        let mut options = HostOptions::new(journal, directory.path().to_owned(), evaluator);
        options.tools = Arc::new(Echo);
        Bench {
            host: Host::new(options),
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
            _directory: directory,
        }
    }

    async fn run(&self, graph: &Graph) -> ReportStatus {
        let none = Value::map::<&str>([]);
        let run = self.host.start(graph, &none, StartOptions::default());
        let run = run.await.unwrap();
        self.host.drive(run).await.unwrap().status
    }

    /// The same, beside others.
    fn spawn(&self, graph: &Graph) -> JoinHandle<ReportStatus> {
        let (host, graph) = (self.host.clone(), graph.clone());
        tokio::spawn(async move {
            let none = Value::map::<&str>([]);
            let run = host.start(&graph, &none, StartOptions::default());
            let run = run.await.unwrap();
            host.drive(run).await.unwrap().status
        })
    }
}

fn graph(definition: &str) -> Graph {
    let compiled = compile(Source::new("bench.yaml", definition), &NoLoader);
    compiled.into_graph().unwrap()
}

/// So many calls of a tool, one after another.
fn calls(count: usize) -> Graph {
    let step = "  - {type: mcp_call, tool: echo, parameters: {n: 1}, output_to: n}\n";
    let steps = step.repeat(count);
    graph(&format!("tools: {{echo: {{}}}}\nsteps:\n{steps}"))
}

/// A run of ten steps from its start to its end: twelve events, each on the disk before what
/// follows from it.
#[divan::bench(sample_count = 300, sample_size = 1)]
fn ten_durable_steps(bencher: Bencher<'_, '_>) {
    let (bench, graph) = (Bench::new(), calls(10));
    bencher.bench_local(|| {
        let status = bench.runtime.block_on(bench.run(&graph));
        assert_eq!(status, ReportStatus::Completed);
    });
}

/// Events per second with so many runs in flight.
#[divan::bench(args = [1, 8, 64], sample_count = 10, sample_size = 1)]
fn events_with_runs_in_flight(bencher: Bencher<'_, '_>, runs: usize) {
    const STEPS: usize = 50;
    let (bench, graph) = (Bench::new(), calls(STEPS));
    bencher
        .counter(ItemsCount::new(runs * (STEPS + 1)))
        .bench_local(|| {
            bench.runtime.block_on(async {
                let mut driven = Vec::new();
                for _ in 0..runs {
                    driven.push(bench.spawn(&graph));
                }
                for run in driven {
                    assert_eq!(run.await.unwrap(), ReportStatus::Completed);
                }
            });
        });
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// What waiting runs cost a host that began them, and a page of them; told beside the time.
#[divan::bench(args = [1_000, 100_000], sample_count = 1, sample_size = 1)]
fn begin_runs_that_wait(bencher: Bencher<'_, '_>, runs: usize) {
    const AT_ONCE: usize = 100;
    let bench = Bench::new();
    let graph = graph("steps:\n  - {type: prompt, kind: text, message: 'Who?', output_to: who}\n");
    assert_eq!(
        bench.runtime.block_on(bench.run(&graph)),
        ReportStatus::Waiting
    );
    bencher.counter(ItemsCount::new(runs)).bench_local(|| {
        let before = resident();
        bench.runtime.block_on(async {
            for _ in 0..runs / AT_ONCE {
                let begun: Vec<_> = (0..AT_ONCE).map(|_| bench.spawn(&graph)).collect();
                for run in begun {
                    assert_eq!(run.await.unwrap(), ReportStatus::Waiting);
                }
            }
        });
        let grown = resident().saturating_sub(before);
        let page = |listing: Listing| {
            let began = std::time::Instant::now();
            let page = bench.host.journal().list(&listing, 50).unwrap();
            assert_eq!(page.runs.len(), 50);
            began.elapsed()
        };
        let waiting = page(Listing::new().status(Status::Waiting));
        eprintln!(
            "{runs} waiting runs: {:.1} MB more memory; 50 of those that wait in {waiting:?}, of all in {:?}",
            grown as f64 / 1e6,
            page(Listing::new()),
        );
    });
}
