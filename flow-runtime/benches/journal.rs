//! What the journal costs: appends one after another, many runs at once, and lists of many runs.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot work should stop"
)]

use std::sync::LazyLock;
use std::thread;

use divan::Bencher;
use divan::counter::ItemsCount;
use flow_runtime::journal::{Append, Journal, Listing, NewRun, RunId, RunUpdate, Status};
use tempfile::TempDir;

fn main() {
    divan::main();
}

/// A body of 256 bytes.
fn body() -> String {
    format!("{{\"result\":\"{}\"}}", "x".repeat(243))
}

struct Bench {
    journal: Journal,
    definition: flow_runtime::journal::Hash,
    _dir: TempDir,
}

impl Bench {
    /// On the disk of the build directory: a file system in memory would flatter.
    fn new() -> Bench {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let journal = Journal::open(dir.path().join("journal.db")).unwrap();
        let definition = journal.put_definition(b"name: bench").unwrap();
        Bench {
            journal,
            definition,
            _dir: dir,
        }
    }

    fn start(&self, n: u64) -> RunId {
        let run = RunId::new(n, u128::from(n));
        let new = NewRun::new("bench", self.definition, n);
        self.journal.append(Append::start(run, new)).unwrap();
        run
    }
}

/// Ten events of one run, each on the disk before the next.
#[divan::bench(sample_count = 300, sample_size = 1)]
fn ten_appends_in_sequence(bencher: Bencher<'_, '_>) {
    let bench = Bench::new();
    let run = bench.start(1);
    let mut last = 0;
    bencher.bench_local(|| {
        for _ in 0..10 {
            last = bench
                .journal
                .append(Append::after(run, last).event(1, "step", body()))
                .unwrap();
        }
    });
}

/// 64 threads, each with a run whose events it appends one after another.
#[divan::bench(sample_count = 10, sample_size = 1, args = [1, 8, 64])]
fn events_of_runs_in_flight(bencher: Bencher<'_, '_>, runs: u64) {
    const EACH: u64 = 200;
    let bench = Bench::new();
    let mut next = 0;
    bencher
        .counter(ItemsCount::new(runs * EACH))
        .with_inputs(|| {
            next += runs;
            (0..runs).map(|n| bench.start(next + n)).collect::<Vec<_>>()
        })
        .bench_local_values(|ids| {
            thread::scope(|scope| {
                for run in ids {
                    let journal = &bench.journal;
                    scope.spawn(move || {
                        for after in 0..EACH {
                            let append = Append::after(run, after).event(1, "step", body());
                            journal.append(append).unwrap();
                        }
                    });
                }
            });
        });
}

/// One thread with 64 runs in flight, as an asynchronous host has them.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn events_of_64_runs_from_one_thread(bencher: Bencher<'_, '_>) {
    const EACH: u64 = 200;
    let bench = Bench::new();
    let mut next = 0;
    bencher
        .counter(ItemsCount::new(64 * EACH))
        .with_inputs(|| {
            next += 64;
            (0..64).map(|n| bench.start(next + n)).collect::<Vec<_>>()
        })
        .bench_local_values(|ids| {
            let step = |run, after| {
                let append = Append::after(run, after).event(1, "step", body());
                bench.journal.submit(append)
            };
            for after in 0..EACH {
                let receipts: Vec<_> = ids.iter().map(|&run| step(run, after)).collect();
                for receipt in receipts {
                    assert_eq!(receipt.wait().unwrap(), after + 1);
                }
            }
        });
}

/// A journal with 100,000 waiting runs of 20 workflows.
static MANY: LazyLock<Bench> = LazyLock::new(|| {
    let bench = Bench::new();
    let receipts: Vec<_> = (0..100_000)
        .map(|n| {
            let run = RunId::new(n, u128::from(n));
            let new = NewRun::new(format!("workflow-{}", n % 20), bench.definition, n);
            let update = RunUpdate::at(n)
                .status(Status::Waiting)
                .pending(Some("approve the deployment".to_owned()));
            let append = Append::start(run, new)
                .event(n, "started", body())
                .update(update);
            bench.journal.submit(append)
        })
        .collect();
    for receipt in receipts {
        receipt.wait().unwrap();
    }
    bench
});

/// A page of 50 among 100,000 runs.
#[divan::bench(args = ["all", "waiting", "workflow", "workflow and status", "top level", "nothing found"])]
fn list_a_page(bencher: Bencher<'_, '_>, what: &str) {
    let listing = match what {
        "waiting" => Listing::new().status(Status::Waiting),
        "workflow" => Listing::new().workflow("workflow-7"),
        "workflow and status" => Listing::new()
            .workflow("workflow-7")
            .status(Status::Waiting),
        "top level" => Listing::new().top_level(),
        "nothing found" => Listing::new().status(Status::Failed),
        _ => Listing::new(),
    };
    let journal = &MANY.journal;
    bencher.bench_local(|| journal.list(&listing, 50).unwrap());
}

/// The last page of 100,000 runs.
#[divan::bench]
fn list_the_last_page(bencher: Bencher<'_, '_>) {
    let listing = Listing::new()
        .status(Status::Waiting)
        .before("51".parse().unwrap());
    let journal = &MANY.journal;
    bencher.bench_local(|| journal.list(&listing, 50).unwrap());
}

/// What the runs of 20 workflows amount to, with 100,000 runs.
#[divan::bench]
fn tallies(bencher: Bencher<'_, '_>) {
    let journal = &MANY.journal;
    bencher.bench_local(|| journal.tallies().unwrap());
}

/// Opening a journal with 100,000 runs and reading a page, as `flow runs` does.
#[divan::bench]
fn open_and_list(bencher: Bencher<'_, '_>) {
    let path = MANY.journal.path();
    bencher.bench_local(|| {
        let journal = Journal::open(path).unwrap();
        journal.list(&Listing::new(), 50).unwrap()
    });
}
