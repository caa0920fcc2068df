//! Makes random calls at real shells, and judges them by what must hold always.
//!
//! `cargo run --release -p flow-runtime --example roam -- [SECONDS] [SHELL…] [--seed N] [--plain]`. A
//! sequence of calls is drawn from a seed, which is printed with a fault; `--seed N SHELL` walks that one
//! again. A fault is shortened by leaving steps out. `--plain` draws sequences in which all is certain:
//! lines and commands, no keys and no programs. `LOAD=4` adds threads that do nothing but compute.

mod judge;
mod shorten;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod walk;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use judge::Fault;
use steps::Step;
use support::{Ground, SHELLS};
use walk::Walk;

/// Sequences that one session is used for.
const SEQUENCES: u32 = 40;
/// Faults of one kind that are shortened; more are only counted.
const SHORTENED: u32 = 2;
/// How often a sequence is walked that was asked for.
const AGAIN: u32 = 25;

struct Asked {
    seconds: u64,
    shells: Vec<&'static str>,
    seed: Option<u64>,
    plain: bool,
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        seconds: 60,
        shells: Vec::new(),
        seed: None,
        plain: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if let Ok(number) = word.parse() {
            asked.seconds = number;
        } else if let Some(shell) = SHELLS.iter().find(|shell| **shell == word) {
            asked.shells.push(shell);
        } else if word == "--plain" {
            asked.plain = true;
        } else if word == "--seed" {
            let number = words.next().and_then(|number| number.parse().ok());
            asked.seed = Some(number.ok_or("`--seed` takes a number")?);
        } else {
            return Err(format!("`{word}` is neither of {SHELLS:?} nor an option"));
        }
    }
    if asked.shells.is_empty() {
        asked.shells.extend(SHELLS);
    }
    Ok(asked)
}

/// The last lines of a text, the latest first.
fn lately(text: &str) -> String {
    let lines: Vec<_> = text.lines().rev().take(8).collect();
    lines.join(" <- ")
}

/// What has come of the walks.
#[derive(Default)]
struct Account {
    walked: BTreeMap<&'static str, u32>,
    faults: BTreeMap<(&'static str, &'static str), u32>,
    /// How often, and in which sequence first.
    slow: BTreeMap<(&'static str, String), (u32, u64)>,
}

impl Account {
    /// Counts a fault, tells it, and shortens it unless there were enough of its kind.
    async fn fault(
        &mut self,
        ground: &Ground,
        walk: &Walk<'_>,
        shell: &'static str,
        seed: u64,
        steps: &[Step],
        fault: &Fault,
    ) {
        let count = self.faults.entry((shell, fault.kind)).or_default();
        *count += 1;
        println!("FAULT {shell} seed {seed}: {}: {}", fault.kind, fault.words);
        println!("  steps {steps:?}");
        if *count > SHORTENED {
            return;
        }
        for call in &walk.calls {
            println!("    {call}");
        }
        println!("    screen {}", lately(&walk.screen().await));
        let (steps, rate) = shorten::shorten(ground, shell, steps, fault.kind).await;
        match rate.failed {
            0 => println!("  not seen again in {} walks", rate.tried),
            failed => println!("  SHORTEST {failed} of {}: {steps:?}", rate.tried),
        }
        for call in &rate.calls {
            println!("    {}", lately(call));
        }
    }

    fn print(&self) {
        for ((shell, what), (count, seed)) in &self.slow {
            println!("slow  {shell:5} {count:5}  {what}, seed {seed}");
        }
        for ((shell, kind), count) in &self.faults {
            println!("fault {shell:5} {count:5}  {kind}");
        }
        for (shell, walked) in &self.walked {
            println!("{shell:5} {walked} sequences");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = asked()?;
    support::load();
    std::panic::set_hook(Box::new(|panic| {
        walk::PANICS.fetch_add(1, Ordering::Relaxed);
        eprintln!("{panic}");
    }));
    let ground = Ground::new()?;
    let mut account = Account::default();
    let until = Instant::now() + Duration::from_secs(asked.seconds);
    let mut seed = asked.seed.unwrap_or_else(|| {
        let epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        epoch.as_millis() as u64 % 1_000_000_000
    });
    let sequences = match asked.seed {
        Some(_) => AGAIN,
        None => SEQUENCES,
    };
    while Instant::now() < until {
        for shell in asked.shells.iter().copied() {
            let mut walk = Walk::open(&ground, shell).await;
            for _ in 0..sequences {
                let steps = steps::sequence(seed, asked.plain);
                *account.walked.entry(shell).or_default() += 1;
                let result = walk.walk(&steps).await;
                if asked.seed.is_some() && !walk.slow.is_empty() {
                    println!("slow  {shell} {steps:?}");
                    walk.calls.iter().for_each(|call| println!("    {call}"));
                }
                for what in walk.slow.drain(..) {
                    account.slow.entry((shell, what)).or_insert((0, seed)).0 += 1;
                }
                if let Err(fault) = &result {
                    account
                        .fault(&ground, &walk, shell, seed, &steps, fault)
                        .await;
                }
                if result.is_err() || walk.spent {
                    let closed = walk.close().await;
                    walk = Walk::open(&ground, shell).await;
                    if let Err(fault) = closed {
                        account
                            .fault(&ground, &walk, shell, seed, &steps, &fault)
                            .await;
                    }
                }
                if asked.seed.is_none() {
                    seed += 1;
                }
                if Instant::now() > until {
                    break;
                }
            }
            if let Err(fault) = walk.close().await {
                println!("FAULT {shell} seed {seed}: {}: {}", fault.kind, fault.words);
            }
        }
        if asked.seed.is_some() {
            break;
        }
    }
    account.print();
    ground.terminals.close_all().await;
    Ok(())
}
