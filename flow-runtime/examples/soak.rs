//! Types at real shells in unlucky moments, again and again, and says what went wrong.
//!
//! `cargo run --release -p flow-runtime --example soak -- [SECONDS] [SHELL…] [CASE…]`. What meets once in
//! a thousand tries shows here, the sooner the busier the machine is: `LOAD=4` adds threads that do
//! nothing but compute.

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use support::{Ground, Random, SHELLS};

/// What is typed before a command that must then run as always.
#[derive(Clone, Copy)]
enum Typed {
    Text(&'static str),
    Keys(&'static [&'static str]),
    /// Both in one call.
    Line(&'static str, &'static [&'static str]),
    /// A command that is not waited for to its end.
    Left(&'static str),
    /// A moment of at most so many microseconds.
    Moment(u64),
}

use Typed::{Keys, Left, Moment, Text};

const INTERRUPT: Typed = Keys(&["ctrl-c"]);
const END: Typed = Keys(&["ctrl-d"]);

const CASES: &[(&str, &[Typed])] = &[
    ("interrupt-program", &[Text("sleep 1000\n"), INTERRUPT]),
    (
        "interrupt-later",
        &[Text("sleep 1000\n"), Moment(20_000), INTERRUPT],
    ),
    (
        "interrupt-pipeline",
        &[Text("cat | sleep 1000\n"), INTERRUPT],
    ),
    (
        "interrupt-long-pipeline",
        &[
            Text("sleep 1000 | sleep 1000 | cat | sleep 1000\n"),
            INTERRUPT,
        ],
    ),
    ("interrupt-nested", &[Text("nice sleep 1000\n"), INTERRUPT]),
    ("interrupt-reader", &[Text("cat\n"), INTERRUPT]),
    ("interrupt-output", &[Text("yes\n"), INTERRUPT]),
    (
        "interrupt-later-output",
        &[Text("yes\n"), Moment(20_000), INTERRUPT],
    ),
    ("interrupt-left", &[Left("sleep 1000"), INTERRUPT]),
    (
        "interrupt-ended",
        &[Text("true\n"), Moment(3_000), INTERRUPT],
    ),
    (
        "interrupt-ahead",
        &[Text("true\n"), Text("sleep 1000\n"), INTERRUPT],
    ),
    ("interrupt-line", &[Text("half"), INTERRUPT]),
    (
        "interrupt-line-later",
        &[Text("half a line"), Moment(3_000), INTERRUPT],
    ),
    ("interrupt-nothing", &[INTERRUPT]),
    (
        "interrupt-twice",
        &[Text("half"), INTERRUPT, Moment(3_000), INTERRUPT],
    ),
    (
        "interrupt-with-line",
        &[Typed::Line("sleep 1000", &["enter", "ctrl-c"])],
    ),
    ("end-of-input", &[Text("cat\n"), END]),
    ("end-of-lines", &[Text("cat\n"), Text("one\n"), END]),
    (
        "end-of-reader",
        &[Text("sh -c 'read x; cat'\n"), Text("one\n"), END],
    ),
    ("quit-program", &[Text("sleep 1000\n"), Keys(&["ctrl-\\"])]),
    ("stop-program", &[Text("sleep 1000\n"), Keys(&["ctrl-z"])]),
];

struct Soak {
    ground: Ground,
    random: Random,
}

impl Soak {
    /// Types, then runs a command; says what was wrong.
    async fn once(&mut self, typed: &[Typed], tab: bool) -> Option<String> {
        for typed in typed {
            let (tool, parameters) = match *typed {
                Text(text) => ("send_input", json!({"input_text": text})),
                Keys(keys) => ("send_input", json!({"keys": keys})),
                Typed::Line(text, keys) => {
                    ("send_input", json!({"input_text": text, "keys": keys}))
                }
                Left(command) => ("run_command", json!({"command": command, "timeout": 0.1})),
                Moment(most) => {
                    let moment = self.random.below(most);
                    tokio::time::sleep(Duration::from_micros(moment)).await;
                    continue;
                }
            };
            let answer = self.ground.call(tool, parameters).await;
            if answer["process_running"] != true {
                return Some(format!("{tool}: {answer}"));
            }
        }
        let (command, wanted) = match tab {
            true => ("echo 'o\tk'", "o\tk\n"),
            false => ("echo ok", "ok\n"),
        };
        let parameters = json!({"command": command, "timeout": 10});
        let ran = self.ground.call("run_command", parameters).await;
        let fine = ran["status"] == "finished" && ran["output"] == wanted;
        (!fine).then(|| {
            format!(
                "{} {} {} front {}",
                ran["status"], ran["output"], ran["error"], ran["foreground"]
            )
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut seconds = 60;
    let (mut shells, mut cases) = (Vec::new(), Vec::new());
    for word in std::env::args().skip(1) {
        if let Ok(number) = word.parse() {
            seconds = number;
        } else if let Some(shell) = SHELLS.iter().find(|shell| **shell == word) {
            shells.push(*shell);
        } else if let Some(case) = CASES.iter().find(|(name, _)| *name == word) {
            cases.push(*case);
        } else {
            let names: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
            return Err(format!("`{word}` is neither of {SHELLS:?} nor of {names:?}").into());
        }
    }
    if shells.is_empty() {
        shells.extend(SHELLS);
    }
    if cases.is_empty() {
        cases.extend(CASES);
    }
    support::load();
    let mut soak = Soak {
        ground: Ground::new()?,
        random: Random::new(u64::from(std::process::id())),
    };
    let mut wrong: BTreeMap<(&str, &str), (u32, u32)> = BTreeMap::new();
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        for shell in &shells {
            soak.ground.open(shell, &[]).await;
            for round in 0..5 {
                for (name, typed) in cases.iter().copied() {
                    let began = Instant::now();
                    let tab = round % 2 == 1 && *shell != "dash";
                    let fault = soak.once(typed, tab).await;
                    let count = wrong.entry((shell, name)).or_default();
                    count.0 += 1;
                    if let Some(fault) = fault {
                        count.1 += 1;
                        println!("{shell} {name} after {:?}: {fault}", began.elapsed());
                        let screen = soak.ground.call("get_screen_content", json!({})).await;
                        let screen = screen["screen_content"].as_str().unwrap_or_default();
                        println!(
                            "    {}",
                            screen
                                .trim_end()
                                .lines()
                                .rev()
                                .take(6)
                                .collect::<Vec<_>>()
                                .join(" <- ")
                        );
                        soak.ground.call("exit_terminal", json!({})).await;
                        soak.ground.open(shell, &[]).await;
                    }
                }
            }
            soak.ground.call("exit_terminal", json!({})).await;
        }
    }
    for ((shell, name), (tries, faults)) in wrong {
        println!("{shell:5} {name:24} {faults} of {tries}");
    }
    soak.ground.terminals.close_all().await;
    Ok(())
}
