//! The pure core: what a step costs, whether a long loop stays flat, what a write to derived state
//! costs.

use std::borrow::Cow;
use std::sync::Arc;

use divan::{Bencher, black_box};
use flow_model::compile;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::run::{
    Effect, Event, Expressions, Happening, Program, Run, Start, Status, Update,
};
use flow_runtime::value::Value;

fn main() {
    divan::main();
}

fn program(definition: &str) -> Arc<Program> {
    let compiled = compile(Source::new("bench.yaml", definition), &NoLoader);
    let findings = format!("{:?}", compiled.findings);
    let Some(graph) = compiled.into_graph() else {
        panic!("{findings}");
    };
    Arc::new(Program::new(
        Cow::Owned(graph),
        Box::new(Expressions::new()),
    ))
}

fn start(program: &Arc<Program>) -> (Run, Vec<Effect>) {
    let mut run = Run::new(Arc::clone(program));
    let start = Start {
        run: "bench".to_owned(),
        inputs: Value::map::<&str>([]),
        ..Start::default()
    };
    let event = Event {
        at: 1_000,
        what: Happening::Started(start),
    };
    match run.apply(&event) {
        Ok(effects) => (run, effects),
        Err(refusal) => panic!("{refusal}"),
    }
}

fn finish(run: &mut Run) {
    let event = Event {
        at: 1_000,
        what: Happening::Continued,
    };
    while run.status() == Status::Running {
        if let Err(refusal) = run.apply(&event) {
            panic!("{refusal}");
        }
    }
    assert_eq!(run.status(), Status::Completed);
}

fn counting(times: u64) -> Arc<Program> {
    program(&format!(
        "limits: {{max_steps: 100000000}}
state: {{n: 0}}
steps:
  - type: while
    if: '{{{{ state.n < {times} }}}}'
    max_iterations: {times}
    steps:
      - {{type: set_state, updates: {{n: '{{{{ state.n + 1 }}}}'}}}}
"
    ))
}

/// One test, one expression, one write per iteration: two engine steps.
#[divan::bench(args = [1_000, 100_000, 1_000_000], sample_count = 5, sample_size = 1)]
fn loop_iterations(bencher: Bencher<'_, '_>, times: u64) {
    let program = counting(times);
    bencher
        .counter(divan::counter::ItemsCount::new(times))
        .bench_local(|| {
            let (mut run, _) = start(&program);
            finish(&mut run);
            black_box(run);
        });
}

/// One write that a thousand computed fields follow.
#[divan::bench(sample_count = 50)]
fn write_to_1000_dependents(bencher: Bencher<'_, '_>) {
    let fields: String = (0..1000)
        .map(|n| format!("  c{n}: {{from: n, transform: input + {n}}}\n"))
        .collect();
    let program = program(&format!(
        "state: {{n: 0}}\ncomputed:\n{fields}steps:\n  - {{type: prompt, message: 'wait {{{{ state.c1 }}}}'}}\n"
    ));
    let (mut run, _) = start(&program);
    let mut n = 0;
    bencher.bench_local(|| {
        n += 1;
        let event = Event {
            at: 1_000,
            what: Happening::Updated {
                updates: vec![Update {
                    path: "n".to_owned(),
                    operation: flow_model::graph::Operation::Set,
                    value: Value::Int(n),
                }],
            },
        };
        black_box(run.apply(&event).is_ok())
    });
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// The first and the last tenth of a million iterations, and what they leave in memory; told beside
/// the time.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn tenths_of_a_million_iterations(bencher: Bencher<'_, '_>) {
    let program = counting(1_000_000);
    bencher.bench_local(|| {
        let (mut run, _) = start(&program);
        let event = Event {
            at: 1_000,
            what: Happening::Continued,
        };
        let memory = resident();
        let mut times = Vec::new();
        while run.status() == Status::Running {
            let began = std::time::Instant::now();
            assert!(run.apply(&event).is_ok());
            times.push(began.elapsed());
        }
        // The last event ends early.
        times.pop();
        let tenth = times.len() / 10;
        let sum = |part: &[std::time::Duration]| part.iter().sum::<std::time::Duration>();
        let (first, last) = (sum(&times[..tenth]), sum(&times[times.len() - tenth..]));
        eprintln!(
            "first tenth {first:?}, last tenth {last:?}: {:.3} times; {:.1} MB more memory",
            last.as_secs_f64() / first.as_secs_f64(),
            resident().saturating_sub(memory) as f64 / 1e6
        );
    });
}
