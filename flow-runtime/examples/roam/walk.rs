//! A session, the steps taken in it, and what is known of where it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::judge::{Fault, Judge, Times, fault};
use crate::steps::{Command, Edge, Program, Setting, Step};
use crate::support::Ground;

/// What has panicked in this process, whoever caught it.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

/// An answer that takes longer although nothing runs is told.
const SLOW: Duration = Duration::from_millis(1500);
/// The longest that something may take which surely comes.
const LONG: f64 = 10.0;

/// Where the session is, as far as what was typed tells.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// At its prompt with nothing behind it, or about to be: all that was typed ends by itself.
    Fresh,
    /// Text behind the prompt, and nothing but text.
    Half(Edge),
    /// Keys were pressed that ctrl-c makes up for.
    Keyed,
    /// A program is in front; the flag says that keys or half a line were typed to it.
    Within(Program, bool),
    Unsure,
}

/// The last input, if it was one that can be waited for.
#[derive(Clone, Copy)]
struct Typed {
    number: u64,
    /// It says its word for certain.
    says: bool,
    /// It was typed at a prompt that was surely there.
    at_prompt: bool,
}

pub(crate) struct Walk<'a> {
    ground: &'a Ground,
    shell: &'static str,
    id: String,
    judge: Judge,
    number: u64,
    place: Place,
    typed: Option<Typed>,
    /// The words of what stands behind the prompt.
    standing: Vec<String>,
    /// The words of what was typed to a program that does not read.
    unread: Vec<String>,
    /// A line was cleared by the keys that do nothing else.
    cleared: bool,
    /// Something was entered and may be under way: keys may come before the prompt.
    ahead: bool,
    /// The last call was a command that has ended: the prompt is there.
    at_prompt: bool,
    /// A key was pressed that may fetch an earlier line.
    recalls: bool,
    /// Jobs may be told of amid the output.
    jobs: bool,
    /// A job in the background may be about to write.
    writes: bool,
    /// Interrupts may be ignored.
    deaf: bool,
    /// Something was typed that no shell reads.
    unreadable: bool,
    /// There is something to undo.
    changed: bool,
    /// No other sequence is walked in this session.
    pub(crate) spent: bool,
    /// What was called and answered.
    pub(crate) calls: Vec<String>,
    /// Answers that took their time.
    pub(crate) slow: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(crate) async fn open(ground: &'a Ground, shell: &'static str) -> Walk<'a> {
        static LOGS: AtomicU64 = AtomicU64::new(0);
        let name = format!("log{}", LOGS.fetch_add(1, Ordering::Relaxed));
        let log = ground.home.path().join(name);
        let variables = [
            ("LOG", &*log.to_string_lossy()),
            ("EDITOR", "true"),
            ("VISUAL", "true"),
        ];
        // The key bindings of fish outlast its sessions.
        let _ = std::fs::remove_file(ground.home.path().join(".config/fish/fish_variables"));
        let opened = ground.open(shell, &variables).await;
        let mut walk = Walk {
            ground,
            shell,
            id: opened["session_id"].as_str().unwrap_or_default().to_owned(),
            judge: Judge::new(&log),
            number: 100,
            place: Place::Fresh,
            typed: None,
            standing: Vec::new(),
            unread: Vec::new(),
            cleared: false,
            ahead: false,
            at_prompt: true,
            recalls: false,
            jobs: false,
            writes: false,
            deaf: false,
            unreadable: false,
            changed: false,
            spent: false,
            calls: Vec::new(),
            slow: Vec::new(),
        };
        // What is quit leaves nothing behind.
        let quiet = json!({"command": "ulimit -c 0; echo out100", "timeout": LONG});
        walk.spent = walk.call("run_command", quiet).await.is_err();
        walk
    }

    pub(crate) async fn close(self) -> Result<(), Fault> {
        let exit = json!({"session_id": self.id});
        let answer = self.ground.call("exit_terminal", exit).await;
        match answer["success"] == true {
            true => Ok(()),
            false => fault("exit_terminal failed", answer.to_string()),
        }
    }

    pub(crate) async fn screen(&self) -> String {
        let parameters = json!({"session_id": self.id});
        let answer = self.ground.call("get_screen_content", parameters).await;
        let screen = answer["screen_content"].as_str().unwrap_or_default();
        screen.trim_end().to_owned()
    }

    /// Takes the steps, finds the way back and holds what ran against what was to run.
    pub(crate) async fn walk(&mut self, steps: &[Step]) -> Result<(), Fault> {
        self.calls.clear();
        self.judge.begin();
        let begin = self.number;
        self.unreadable = false;
        (self.place, self.at_prompt, self.recalls) = (Place::Fresh, true, false);
        (self.typed, self.cleared, self.ahead) = (None, false, false);
        for step in steps {
            self.step(step).await?;
        }
        self.recover().await?;
        self.judge.check()?;
        if std::mem::take(&mut self.writes) {
            // None of them writes into another sequence.
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        self.check_messages(begin).await?;
        if self.changed && !self.spent {
            let undo = json!({"command": Setting::undo(self.shell), "timeout": LONG});
            let ran = self.call("run_command", undo).await?;
            if ran["status"] != "finished" {
                return fault("no way back", format!("undoing: {ran}"));
            }
            (self.changed, self.deaf) = (false, false);
        }
        Ok(())
    }

    async fn call(&mut self, tool: &str, mut parameters: Value) -> Result<Value, Fault> {
        let asked = parameters.to_string();
        parameters["session_id"] = json!(self.id);
        let began = Instant::now();
        let answer = self.ground.call(tool, parameters).await;
        let took = began.elapsed();
        let mut told = vec![format!("{tool} {asked} -> {took:.1?}")];
        for field in [
            "status",
            "exit_code",
            "output",
            "match_text",
            "foreground",
            "error",
        ] {
            if !answer[field].is_null() {
                told.push(format!("{field} {}", answer[field]));
            }
        }
        self.calls
            .push(format!("{} [{:?}]", told.join(", "), self.place));
        let waits = tool == "await_output";
        let in_front = answer["error"]
            .as_str()
            .is_some_and(|error| error.contains("is in front"));
        let runs =
            in_front || matches!(self.place, Place::Within(..)) || answer["status"] == "timed_out";
        if took > SLOW && !waits && !runs {
            let (status, error) = (&answer["status"], &answer["error"]);
            let what = match tool {
                "run_command" => format!("{tool} {status} {error}"),
                _ => format!("{tool} {asked}"),
            };
            // Numbers are of no account.
            let what: String = what.chars().filter(|it| !it.is_ascii_digit()).collect();
            self.slow.push(what);
        }
        if PANICS.swap(0, Ordering::Relaxed) > 0 {
            return fault("a panic", answer.to_string());
        }
        if answer["process_running"] != true {
            return fault("the shell is gone", answer.to_string());
        }
        let error = answer["error"].as_str();
        if error.is_some_and(|error| error.contains("emulator") || error.contains("reader")) {
            return fault("an error of flow's own", answer.to_string());
        }
        if tool != "run_command" && answer["success"] != true {
            return fault("a call failed", answer.to_string());
        }
        Ok(answer)
    }

    async fn send(&mut self, text: &str, keys: &[&str]) -> Result<(), Fault> {
        let parameters = match (text, keys) {
            (_, []) => json!({"input_text": text}),
            ("", _) => json!({"keys": keys}),
            _ => json!({"input_text": text, "keys": keys}),
        };
        // Known before it is typed: it may run before the answer is there.
        self.at_prompt = false;
        self.call("send_input", parameters).await.map(drop)
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    async fn step(&mut self, step: &Step) -> Result<(), Fault> {
        let at_prompt = self.at_prompt;
        match step {
            Step::Half(edge) => {
                let (number, text) = self.half(*edge);
                self.send(&text, &[]).await?;
                self.typed = Some(Typed {
                    number,
                    says: false,
                    at_prompt,
                });
            }
            Step::HalfThen(edge, keys) => {
                let (_, text) = self.half(*edge);
                self.press(keys, true);
                self.send(&text, keys).await?;
                self.typed = None;
            }
            Step::Line | Step::LineThenEnter => {
                let (number, text) = self.line("");
                let says = self.place == Place::Fresh;
                match step {
                    Step::Line => self.send(&format!("{text}\n"), &[]).await?,
                    _ => self.send(&text, &["enter"]).await?,
                }
                self.typed = Some(Typed {
                    number,
                    says,
                    at_prompt,
                });
            }
            Step::Lines(count) => {
                let lines: String = (0..*count).map(|_| self.line("").1 + "\n").collect();
                self.send(&lines, &[]).await?;
                self.typed = None;
            }
            Step::Blank(count) => {
                (0..*count).for_each(|_| self.enter());
                self.send(&"\n".repeat(*count as usize), &[]).await?;
                self.typed = None;
            }
            Step::Start(program) => {
                self.text(Edge::Tight);
                self.enter();
                self.start(*program);
                self.send(&format!("{}\n", program.line()), &[]).await?;
                self.typed = None;
            }
            Step::StartThen(program, keys) => {
                self.text(Edge::Tight);
                self.enter();
                self.start(*program);
                // Nobody waits between keys of one call.
                self.place = Place::Unsure;
                let keys: Vec<&str> = std::iter::once("enter")
                    .chain(keys.iter().copied())
                    .collect();
                self.press(&keys[1..], false);
                self.send(program.line(), &keys).await?;
                self.typed = None;
            }
            Step::Nap => {
                let (_, text) = self.line("; sleep 0.05");
                self.send(&format!("{text}\n"), &[]).await?;
                self.typed = None;
            }
            Step::Background => {
                let number = self.next();
                self.judge.expect(format!("b{number}"), Times::AtMostOnce);
                (self.jobs, self.writes) = (true, true);
                self.text(Edge::Tight);
                self.enter();
                let job = format!("sleep 0.02; echo b{number} >>\"$LOG\"; echo bg{number}");
                let line = match self.shell {
                    "fish" => format!("sh -c '{job}' &\n"),
                    _ => format!("({job}) &\n"),
                };
                self.send(&line, &[]).await?;
                self.typed = None;
            }
            Step::Change(setting) => {
                let reader = match self.place {
                    Place::Within(Program::Shell, _) => "dash",
                    _ => self.shell,
                };
                if let Some(line) = setting.line(reader) {
                    let (_, text) = self.line(&format!("; {line}"));
                    self.change(*setting);
                    self.send(&format!("{text}\n"), &[]).await?;
                    self.typed = None;
                }
            }
            Step::Keys(keys) => {
                // At the prompt of the shell it would end the session.
                let reads = matches!(
                    self.place,
                    Place::Within(Program::Cat | Program::Read | Program::Shell, false)
                );
                if !keys.contains(&"ctrl-d") || keys.len() == 1 && reads {
                    self.press(keys, false);
                    self.send("", keys).await?;
                    self.typed = None;
                }
            }
            Step::Pause(pause) => tokio::time::sleep(Duration::from_micros(*pause)).await,
            Step::Run(command) => self.run(*command).await?,
            Step::AwaitSaid => {
                if let Some(Typed {
                    number, says: true, ..
                }) = self.typed
                {
                    let pattern = json!({"pattern": format!("word{number}"), "timeout": LONG});
                    let answer = self.call("await_output", pattern).await?;
                    if answer["match_text"].is_null() {
                        return fault("output was not seen", answer.to_string());
                    }
                    self.typed = None;
                }
            }
            Step::AwaitTyped => {
                if let Some(Typed {
                    number,
                    at_prompt: true,
                    ..
                }) = self.typed
                {
                    let pattern = format!("echo h{number}|wo''rd{number}");
                    let pattern = json!({"pattern": pattern, "timeout": 0.1});
                    let answer = self.call("await_output", pattern).await?;
                    if !answer["match_text"].is_null() {
                        return fault("typed text counts as output", answer.to_string());
                    }
                }
            }
            Step::Look(mode) => {
                self.call("get_screen_content", json!({"content_mode": mode}))
                    .await?;
            }
        }
        Ok(())
    }

    /// Half a line, and where it leads.
    fn half(&mut self, edge: Edge) -> (u64, String) {
        let number = self.next();
        let word = format!("h{number}");
        let times = match self.place {
            Place::Within(Program::Cat, _) => Times::Never,
            _ => Times::NotYet,
        };
        self.judge.expect(word.clone(), times);
        self.text(edge);
        match self.place {
            Place::Within(Program::Sleep, _) => self.unread.push(word),
            _ => self.standing.push(word),
        }
        let more = match edge {
            Edge::Open => "; ",
            Edge::Tight => "",
        };
        (number, format!("echo h{number} >>\"$LOG\"{more}"))
    }

    /// A whole line without its end, and where it leads.
    fn line(&mut self, more: &str) -> (u64, String) {
        let number = self.next();
        self.text(Edge::Tight);
        let times = match self.place {
            Place::Fresh | Place::Half(_) => Times::Due,
            Place::Within(Program::Cat, _) => Times::Never,
            Place::Keyed | Place::Within(..) | Place::Unsure => Times::AtMostOnce,
        };
        let word = format!("l{number}");
        self.judge.expect(word.clone(), times);
        if matches!(self.place, Place::Within(Program::Sleep, _)) {
            self.unread.push(word);
        }
        self.enter();
        let line = format!("echo l{number} >>\"$LOG\"; echo wo''rd{number}{more}");
        (number, line)
    }

    /// Text is typed.
    fn text(&mut self, edge: Edge) {
        self.place = match self.place {
            Place::Fresh => {
                self.standing.clear();
                Place::Half(edge)
            }
            Place::Half(Edge::Open) => Place::Half(edge),
            Place::Half(Edge::Tight) | Place::Keyed | Place::Unsure => self.blur(),
            Place::Within(program, typed) => {
                // Another shell runs what has grown together, and cannot read what is fish's.
                let other = self.shell == "fish";
                self.judge.blurred |= (typed || other) && program == Program::Shell;
                Place::Within(program, true)
            }
        };
    }

    fn blur(&mut self) -> Place {
        self.judge.blurred = true;
        Place::Unsure
    }

    /// What stands there is entered.
    fn enter(&mut self) {
        let standing = std::mem::take(&mut self.standing);
        if matches!(self.place, Place::Half(_)) {
            for word in standing {
                self.judge.expect(word, Times::Due);
            }
        }
        // Of anything else that was not entered nobody knows where it is.
        self.judge.change(Times::NotYet, Times::AtMostOnce);
        self.ahead = true;
        self.judge.recalled |= self.recalls;
        self.spent |= self.recalls;
        self.place = match self.place {
            Place::Fresh | Place::Half(_) => Place::Fresh,
            Place::Within(Program::Read, _) | Place::Keyed | Place::Unsure => self.blur(),
            Place::Within(program, _) => Place::Within(program, false),
        };
    }

    /// A line that starts a program was entered.
    fn start(&mut self, program: Program) {
        self.place = match self.place {
            Place::Fresh => {
                self.unread.clear();
                Place::Within(program, false)
            }
            _ => self.blur(),
        };
    }

    /// Keys are pressed, behind text in the same call or not.
    fn press(&mut self, keys: &[&str], behind: bool) {
        for (position, key) in keys.iter().enumerate() {
            let last = position + 1 == keys.len();
            let alone = keys.len() == 1 && !behind;
            self.recalls |= matches!(*key, "escape" | "up" | "ctrl-r" | "alt-b");
            self.cleared |= matches!(*key, "backspace" | "ctrl-u");
            self.place = match (*key, self.place) {
                ("enter", _) => {
                    self.enter();
                    self.place
                }
                ("ctrl-c", place) => {
                    self.judge.change(Times::Due, Times::AtMostOnce);
                    let entered = keys[..position].contains(&"enter");
                    match place {
                        _ if self.deaf || !last || entered => self.blur(),
                        Place::Within(Program::Shell, _) => Place::Within(Program::Shell, false),
                        Place::Within(Program::Sleep, _) => {
                            // All that nobody has read is thrown away.
                            for word in self.unread.drain(..) {
                                self.judge.expect(word, Times::Never);
                            }
                            Place::Fresh
                        }
                        Place::Unsure => Place::Unsure,
                        _ => Place::Fresh,
                    }
                }
                ("ctrl-d", place) => {
                    self.judge.change(Times::NotYet, Times::AtMostOnce);
                    match place {
                        Place::Within(_, false) if alone => Place::Fresh,
                        _ => self.blur(),
                    }
                }
                ("ctrl-z" | "ctrl-\\", place) => {
                    self.judge.change(Times::Due, Times::AtMostOnce);
                    self.jobs = true;
                    match place {
                        Place::Within(Program::Sleep | Program::Cat, _) if alone => Place::Fresh,
                        _ => self.blur(),
                    }
                }
                ("ctrl-u", Place::Half(_)) if !self.ahead => Place::Fresh,
                ("ctrl-u" | "backspace", Place::Fresh) if !self.ahead => Place::Fresh,
                ("ctrl-v", _) => self.blur(),
                (_, Place::Within(Program::Read, _)) => self.blur(),
                (_, Place::Within(program, _)) => {
                    self.judge.blurred |= program == Program::Shell;
                    Place::Within(program, true)
                }
                ("tab" | "ctrl-r", _) | (_, Place::Unsure) => self.blur(),
                (_, Place::Fresh | Place::Half(_) | Place::Keyed) => Place::Keyed,
            };
        }
    }

    fn change(&mut self, setting: Setting) {
        self.changed = true;
        self.deaf |= setting == Setting::Deaf;
        self.spent |= setting == Setting::Messages;
    }

    /// Runs a command that leaves its word, and judges the answer.
    async fn run(&mut self, command: Command) -> Result<(), Fault> {
        // What cannot be interrupted waits for its rest, which would run it.
        if command == Command::Incomplete && self.deaf {
            return Ok(());
        }
        let number = self.next();
        let word = format!("r{number}");
        let (log, out) = (format!("echo {word} >>\"$LOG\""), format!("out{number}\n"));
        let (text, status, output, code) = match command {
            Command::Plain => (format!("{log}; echo out{number}"), "finished", out, 0),
            Command::Failing => (
                format!("{log}; echo out{number}; sh -c 'exit 3'"),
                "finished",
                out,
                3,
            ),
            Command::Incomplete => (
                format!("{log}; echo 'out{number}"),
                "incomplete",
                String::new(),
                0,
            ),
            Command::Unreadable => {
                self.unreadable = true;
                (format!("{log}; )"), "finished", String::new(), 0)
            }
            Command::Lines => (format!("{log}\necho out{number}"), "finished", out, 0),
            Command::Tab => {
                let out = format!("o\tut{number}\n");
                (format!("{log}; echo 'o\tut{number}'"), "finished", out, 0)
            }
            // zsh knows no comments at its prompt.
            Command::Comment if self.shell == "zsh" => {
                (" ".to_owned(), "no_command", String::new(), 0)
            }
            Command::Comment => (format!("# {log}"), "no_command", String::new(), 0),
            Command::Endless => (format!("{log}; sleep 1000"), "timed_out", String::new(), 0),
            Command::Change(setting) => {
                let Some(line) = setting.line(self.shell) else {
                    return Ok(());
                };
                self.change(setting);
                (format!("{log}; {line}"), "finished", String::new(), 0)
            }
        };
        let timeout = match command {
            Command::Endless => 0.1,
            _ => LONG,
        };
        // Whatever happens while it is being typed, it runs once at the most.
        self.judge.expect(word.clone(), Times::AtMostOnce);
        let place = self.place;
        let parameters = json!({"command": text, "timeout": timeout});
        let ran = self.call("run_command", parameters).await?;
        let got = ran["status"].as_str().unwrap_or_default();
        let runs = !matches!(
            command,
            Command::Incomplete | Command::Unreadable | Command::Comment
        );
        let times = match got {
            "finished" if runs => Times::Once,
            "timed_out" => Times::AtMostOnce,
            _ => Times::Never,
        };
        self.judge.expect(word, times);
        self.typed = None;
        let reached = matches!(got, "finished" | "incomplete");
        if reached {
            // The prompt has come, so all that was entered before has run.
            self.judge.change(Times::Due, Times::Once);
        }
        self.judge.check()?;
        if reached {
            (self.place, self.at_prompt) = (Place::Fresh, true);
            (self.cleared, self.ahead) = (false, false);
        }
        match (got, place) {
            ("finished", Place::Half(_)) => {
                return fault(
                    "a command ran although text was not entered",
                    ran.to_string(),
                );
            }
            ("finished", Place::Within(Program::Cat | Program::Sleep | Program::Shell, _)) => {
                return fault(
                    "a command ran although a program is in front",
                    ran.to_string(),
                );
            }
            ("finished", _) if command == Command::Unreadable => {
                if ran["exit_code"] == 0 {
                    return fault("an unreadable command succeeded", ran.to_string());
                }
            }
            // Nothing tells then that no command has begun.
            ("finished", _) if command == Command::Comment && self.spent => {}
            ("finished", _) if status != "finished" => {
                return fault("a command ended that does not", ran.to_string());
            }
            ("finished", _) => {
                if self.without_jobs(ran["output"].as_str().unwrap_or_default()) != output {
                    return fault("wrong output", ran.to_string());
                }
                // What a setting answers is the shell's affair.
                if ran["exit_code"] != code && !matches!(command, Command::Change(_)) {
                    return fault("wrong exit code", ran.to_string());
                }
            }
            ("busy" | "refused", _) => {
                if ran["error"].as_str().is_none_or(str::is_empty) {
                    return fault("no reason is given", ran.to_string());
                }
                let known = match command {
                    // The prompt may come later than that.
                    Command::Endless => got == "busy",
                    Command::Unreadable => self.shell == "fish",
                    // Whether the shell takes pastes is among its messages.
                    Command::Tab => self.spent,
                    _ => false,
                };
                if place == Place::Fresh && !known {
                    let kind = match got {
                        "busy" => "busy at a fresh prompt",
                        _ if self.writes => "refused beside a job that writes",
                        _ if self.cleared => "refused after backspace or ctrl-u",
                        _ => "refused at a fresh prompt",
                    };
                    return fault(kind, ran.to_string());
                }
            }
            ("timed_out", _) if command == Command::Endless => {
                let began = ran["error"]
                    .as_str()
                    .is_some_and(|it| it.contains("running"));
                self.at_prompt = false;
                self.unread.clear();
                self.place = match began {
                    true => Place::Within(Program::Sleep, false),
                    false => Place::Unsure,
                };
            }
            ("incomplete" | "no_command", _) if got == status => {}
            _ => return fault("a status that cannot be", ran.to_string()),
        }
        Ok(())
    }

    /// Output without what jobs in the background write, and what the shell says of them.
    fn without_jobs(&self, output: &str) -> String {
        let is_job = |line: &str| {
            let begins = ["bg", "[", "\n", "fish: Job"];
            begins.iter().any(|begin| line.starts_with(begin))
        };
        output
            .split_inclusive('\n')
            .filter(|line| !self.jobs || !is_job(line))
            .collect()
    }

    /// Leaves whatever is in front, as somebody would who sees it; then a command must run.
    async fn recover(&mut self) -> Result<(), Fault> {
        // `ed` is what fish makes of `read` behind the key escape.
        let (mut answer, mut front) = (String::new(), String::new());
        for attempt in 0..10 {
            let fresh = self.place == Place::Fresh;
            let reads = ["cat", "sh", "ed"]
                .iter()
                .any(|reader| front.starts_with(reader));
            let key = match attempt {
                0 if fresh => None,
                _ if attempt > 1 && reads => Some("ctrl-d"),
                // Nothing else helps where interrupts are ignored.
                3 | 7 if self.deaf => Some("ctrl-\\"),
                4 | 8 if self.deaf => Some("ctrl-u"),
                5 | 9 if self.deaf => Some("enter"),
                0..=3 => Some("ctrl-c"),
                _ => break,
            };
            if let Some(key) = key {
                if matches!(key, "ctrl-d" | "enter") {
                    self.judge.change(Times::NotYet, Times::AtMostOnce);
                }
                if key == "enter" {
                    self.enter();
                }
                self.judge.change(Times::Due, Times::AtMostOnce);
                self.jobs |= key == "ctrl-\\";
                self.send("", &[key]).await?;
                // What is promised is judged where it is a step.
                self.place = Place::Unsure;
            }
            self.run(Command::Plain).await?;
            if self.place == Place::Fresh {
                return Ok(());
            }
            answer = self.calls.last().cloned().unwrap_or_default();
            front = answer
                .split_once("foreground \"")
                .map(|(_, front)| front.to_owned())
                .unwrap_or_default();
        }
        fault("no way back", answer)
    }

    /// What the shell has said: it can read all that was typed, unless that has grown together.
    async fn check_messages(&mut self, begin: u64) -> Result<(), Fault> {
        if self.judge.blurred || self.judge.recalled || self.unreadable {
            return Ok(());
        }
        let parameters = json!({"content_mode": "tail", "line_count": 300, "max_chars": 100_000});
        let answer = self.call("get_screen_content", parameters).await?;
        let text = answer["screen_content"].as_str().unwrap_or_default();
        // What came before was another sequence's.
        let Some((_, said)) = text.rsplit_once(&format!("\nout{begin}\n")) else {
            return Ok(());
        };
        let complaints = ["not found", "yntax error", "parse error", "Unknown command"];
        match said
            .lines()
            .find(|line| complaints.iter().any(|it| line.contains(it)))
        {
            Some(line) => fault("the shell could not read a line", line),
            None => Ok(()),
        }
    }
}
