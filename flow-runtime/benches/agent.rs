//! Runs that agents drive: what a call costs, whether it stays flat with many tasks and many runs,
//! what runs that wait cost in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::agent::{Agents, Patience, Submission, TaskPage, Turn};
use flow_runtime::host::{Host, HostOptions, StartOptions};
use flow_runtime::journal::{Journal, RunId};
use flow_runtime::run::Expressions;
use flow_runtime::value::Value;
use tokio::runtime::Runtime;

fn main() {
    // Not divan benchmarks: they are one long story each. `--stories 10` makes them ten times
    // shorter.
    let mut arguments = std::env::args().skip_while(|argument| argument != "--stories");
    if arguments.next().is_none() {
        return divan::main();
    }
    let share = arguments.next().and_then(|share| share.parse().ok());
    let share: usize = share.filter(|share| *share > 0).unwrap_or(1);
    tasks(10_000 / share);
    log(10_000 / share);
    runs(1_000 / share);
    waiting(100_000 / share);
}

const LOOP: &str = "
limits: {max_steps: 100000000}
state: {n: 0}
tools: {t: {}}
steps:
  - id: again
    type: while
    if: 'true'
    max_iterations: 100000000
    steps:
      - {id: ask, type: mcp_call, tool: t, parameters: {n: '{{ state.n }}'}, output_to: got}
      - {type: set_state, updates: {n: '{{ state.n + 1 }}'}}
";

const TASKS: &str = "
limits: {max_steps: 100000000, max_state_bytes: 100000000}
inputs: {count: integer}
tools: {t: {}}
outputs: {count: '{{ state.all | length }}'}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: ask, type: mcp_call, tool: t, parameters: {n: '{{ inputs.n }}'}, output_to: got}
      - {id: give, type: return, value: '{{ state.got }}'}
steps:
  - {id: each, type: foreach, items: '{{ range(inputs.count) | list }}', task: one, agent: '@task', max_parallel: 50, output_to: all}
";

const PATIENT: Patience = Patience::of(Duration::from_secs(30));

struct Desk {
    agents: Agents,
    runtime: Runtime,
    graph: Graph,
    _directory: Option<tempfile::TempDir>,
}

impl Desk {
    fn new(definition: &str) -> Arc<Self> {
        let compiled = compile(Source::new("bench.yaml", definition), &NoLoader);
        let findings = format!("{:?}", compiled.findings);
        let Some(graph) = compiled.into_graph() else {
            panic!("{findings}");
        };
        let directory = tempfile::tempdir().ok();
        let place = directory
            .as_ref()
            .map_or("/tmp".into(), |d| d.path().to_owned());
        let Ok(journal) = Journal::open(place.join("journal.db")) else {
            panic!("the journal cannot be opened");
        };
        let options = HostOptions::new(journal, place, |_| Box::new(Expressions::new()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            panic!("there is no runtime");
        };
        Arc::new(Desk {
            agents: Agents::new(Host::new(options)),
            runtime,
            graph,
            _directory: directory,
        })
    }

    async fn start(&self, count: usize) -> RunId {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let inputs = Value::map([("count", Value::Int(count))]);
        let options = StartOptions::default();
        match self.agents.start(&self.graph, &inputs, options).await {
            Ok(run) => run,
            Err(error) => panic!("{error}"),
        }
    }

    async fn next(&self, run: RunId, task: Option<&str>) -> Turn {
        let page = TaskPage {
            from: 0,
            most: Some(10),
        };
        match self.agents.next(run, task, page, PATIENT).await {
            Ok(turn) => turn,
            Err(error) => panic!("{error}"),
        }
    }

    async fn submit(&self, run: RunId, turn: &Turn) -> Turn {
        let Some(step) = &turn.step else {
            panic!("no step: {turn:?}");
        };
        let submission = Submission {
            result: Some(Value::Int(1)),
            ..Submission::default()
        };
        let (id, page) = (Some(step.id.as_str()), TaskPage::default());
        match self.agents.submit(run, id, submission, page, PATIENT).await {
            Ok(turn) => turn,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The same step again: nothing is recorded.
#[divan::bench(sample_count = 200)]
fn get_next_step(bencher: Bencher<'_, '_>) {
    let desk = Desk::new(LOOP);
    let run = desk.runtime.block_on(desk.start(0));
    bencher.bench_local(|| black_box(desk.runtime.block_on(desk.next(run, None))));
}

/// A result, and the next step: one durable event.
#[divan::bench(sample_count = 200)]
fn submit_step_result(bencher: Bencher<'_, '_>) {
    let desk = Desk::new(LOOP);
    let run = desk.runtime.block_on(desk.start(0));
    let mut turn = desk.runtime.block_on(desk.next(run, None));
    bencher.bench_local(|| {
        turn = desk.runtime.block_on(desk.submit(run, &turn));
    });
}

/// The first step of a run that is not in memory, as after a restart: 150 events are read.
#[divan::bench(sample_count = 50)]
fn get_next_step_from_the_journal(bencher: Bencher<'_, '_>) {
    let desk = Desk::new(LOOP);
    let run = desk.runtime.block_on(async {
        let run = desk.start(0).await;
        let mut turn = desk.next(run, None).await;
        for _ in 0..149 {
            turn = desk.submit(run, &turn).await;
        }
        run
    });
    bencher.bench_local(|| {
        desk.runtime.block_on(async {
            let agents = Agents::new(desk.agents.host().clone());
            let turn = agents.next(run, None, TaskPage::default(), PATIENT).await;
            black_box(turn.is_ok())
        })
    });
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0)
}

/// Every task of a large fan-out, begun and done one after another; the first and the last tenth.
fn tasks(count: usize) {
    let desk = Desk::new(TASKS);
    desk.runtime.block_on(async {
        let run = desk.start(count).await;
        desk.next(run, None).await;
        let tenth = count / 10;
        let mut times = Vec::new();
        let mut began = Instant::now();
        for n in 0..count {
            let turn = desk.next(run, Some(&format!("each.{n}"))).await;
            desk.submit(run, &turn).await;
            if (n + 1) % tenth == 0 {
                times.push(began.elapsed());
                began = Instant::now();
            }
        }
        let end = desk.next(run, None).await;
        let each = |time: &Duration| time.as_secs_f64() * 1e6 / tenth as f64;
        println!(
            "{count} tasks: {:?}; per task {:.0} µs in the first tenth, {:.0} µs in the last; {} KB",
            end.status,
            each(&times[0]),
            each(&times[times.len() - 1]),
            resident()
        );
    });
}

/// The log of a long run, in pages of 100: the first and the last tenth.
fn log(count: usize) {
    let desk = Desk::new(LOOP);
    desk.runtime.block_on(async {
        let run = desk.start(0).await;
        let mut turn = desk.next(run, None).await;
        for _ in 0..count {
            turn = desk.submit(run, &turn).await;
        }
        let mut times = Vec::new();
        let mut next = Some(0);
        while let Some(first) = next {
            let began = Instant::now();
            let page = desk.agents.host().execution_log(run, first, 100);
            next = page.ok().and_then(|page| page.next);
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let tenth = (times.len() / 10).max(1);
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        println!(
            "log of {count} steps: {} pages, {:.1} ms a page in the first tenth, {:.1} ms in the last",
            times.len(),
            mean(&times[..tenth]),
            mean(&times[times.len() - tenth..])
        );
    });
}

/// Many runs, each a step further in turn.
fn runs(count: usize) {
    let desk = Desk::new(LOOP);
    desk.runtime.block_on(async {
        let began = Instant::now();
        let mut going = Vec::new();
        for _ in 0..count {
            let run = desk.start(0).await;
            going.push((run, desk.next(run, None).await));
        }
        let started = began.elapsed();
        let began = Instant::now();
        for _ in 0..5 {
            for (run, turn) in &mut going {
                *turn = desk.submit(*run, turn).await;
            }
        }
        let one = began.elapsed().as_secs_f64() * 1e6 / (5 * count) as f64;
        let start = started.as_secs_f64() * 1e6 / count as f64;
        println!(
            "{count} runs: {start:.0} µs to start one, {one:.0} µs a step, one caller; {} KB",
            resident()
        );
        let began = Instant::now();
        let mut together = tokio::task::JoinSet::new();
        for (run, mut turn) in going {
            let desk = Arc::clone(&desk);
            together.spawn(async move {
                for _ in 0..5 {
                    turn = desk.submit(run, &turn).await;
                }
            });
        }
        while together.join_next().await.is_some() {}
        let rate = (5 * count) as f64 / began.elapsed().as_secs_f64();
        println!("{count} runs: {rate:.0} steps a second, all callers at once");
    });
}

/// Runs that wait for their agents.
fn waiting(count: usize) {
    let desk = Desk::new(LOOP);
    desk.runtime.block_on(async {
        let mut before = 0;
        for n in 0..count {
            let run = desk.start(0).await;
            desk.next(run, None).await;
            if n + 1 == 2_000 {
                before = resident();
            }
        }
        println!(
            "{count} waiting runs: {} of them in memory, {} KB more than with 2,000",
            desk.agents.kept(),
            resident().saturating_sub(before)
        );
    });
}
