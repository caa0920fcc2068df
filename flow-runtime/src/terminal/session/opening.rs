//! How a session begins: its program, its shell's script, its threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use rustix::process::Signal;
use tokio::sync::watch;

use super::{Exit, Line, Moment, Phase, Session, State};
use crate::journal::RunId;
use crate::terminal::clean::Cleaner;
use crate::terminal::echo::Echo;
use crate::terminal::error::Error;
use crate::terminal::options::Options;
use crate::terminal::private::PrivateDirectory;
use crate::terminal::program::{Program, Shell};
use crate::terminal::pty::{Mode, Pty, Started};
use crate::terminal::scanner::Scanner;
use crate::terminal::screen::Screen;
use crate::terminal::shells::history_variable;
use crate::terminal::stream::Stream;
use crate::terminal::{lock, now, process};

/// Everything a session needs to be opened.
pub(in crate::terminal) struct Opening {
    pub(in crate::terminal) id: String,
    pub(in crate::terminal) circle: Option<Arc<str>>,
    pub(in crate::terminal) owner: Option<RunId>,
    pub(in crate::terminal) nonce: String,
    pub(in crate::terminal) program: Program,
    pub(in crate::terminal) directory: std::path::PathBuf,
    pub(in crate::terminal) environment: Vec<(String, String)>,
}

impl Session {
    /// Starts the program and everything that watches it.
    pub(in crate::terminal) fn open(
        opening: Opening,
        options: &Options,
    ) -> Result<Arc<Session>, Error> {
        let Opening {
            id,
            circle,
            owner,
            nonce,
            program,
            directory,
            mut environment,
        } = opening;
        let mut arguments = Vec::new();
        let unprepared =
            |error: std::io::Error| Error::Pty(format!("no private directory: {error}"));
        let private = PrivateDirectory::create(&nonce, &id).map_err(unprepared)?;
        if let Some(shell) = program.shell {
            let inherited = |name: &str| {
                environment
                    .iter()
                    .find(|(known, _)| known == name)
                    .map(|(_, value)| value.clone())
                    .or_else(|| std::env::var(name).ok())
            };
            let history = history_variable(shell).and_then(|name| {
                let asked = environment.iter().find(|(known, _)| known == name);
                asked.map(|(_, value)| value.as_str())
            });
            let start = private.prepare(shell, &nonce, history, inherited);
            let start = start.map_err(unprepared)?;
            arguments = start.arguments;
            environment.extend(start.environment);
        }
        environment.push((process::MARKER.to_owned(), nonce.clone()));
        let Started {
            pty,
            alarm,
            mut child,
            pid,
        } = Pty::start(
            &program.path,
            &arguments,
            &environment,
            &directory,
            options.size,
        )?;
        let state = State::new(program.shell, pid, &nonce, options);
        let session = Arc::new(Session {
            id,
            circle,
            owner: Mutex::new(owner),
            program,
            created_at: now(),
            pid,
            nonce,
            pty,
            state: Mutex::new(state),
            moments: watch::Sender::new(Moment::default()),
            private,
            book: Mutex::default(),
            threads: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            queue: Mutex::default(),
        });
        let spawned = |result: std::io::Result<JoinHandle<()>>| {
            result.map_err(|error| {
                process::signal_group(pid, Signal::KILL);
                Error::Pty(format!("no thread: {error}"))
            })
        };
        let waiting = Arc::clone(&session);
        let waiter = std::thread::Builder::new()
            .name("terminal-end".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || {
                let exit = match child.wait() {
                    Ok(status) => match status.signal() {
                        Some(description) => Exit::by_signal(description),
                        None => {
                            i32::try_from(status.exit_code()).map_or(Exit::Signal(None), Exit::Code)
                        }
                    },
                    Err(_) => Exit::Signal(None),
                };
                lock(&waiting.state).exit = Some(exit);
                waiting.pty.ring();
            });
        let waiter = spawned(waiter)?;
        let reading = Arc::clone(&session);
        let reader = std::thread::Builder::new()
            .name("terminal-read".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || {
                let read = catch_unwind(AssertUnwindSafe(|| reading.read(&alarm)));
                if read.is_err() {
                    reading.give_in();
                }
            });
        let reader = spawned(reader)?;
        lock(&session.threads).extend([waiter, reader]);
        Ok(session)
    }
}

impl State {
    /// Of a program that has said nothing.
    pub(super) fn new(shell: Option<Shell>, pid: i32, nonce: &str, options: &Options) -> State {
        State {
            shell,
            pid,
            scanner: Scanner::new(if shell.is_some() { nonce } else { "" }),
            cleaner: Cleaner::default(),
            clean: String::new(),
            echo: match shell {
                Some(Shell::Fish) => Echo::default().running_blanks(),
                _ => Echo::default(),
            },
            edited_later: false,
            addressee: None,
            doubt: String::new(),
            before_prompt: None,
            sign: None,
            missed: false,
            typing: false,
            screen: Screen::new(options.size, options.scrollback),
            stream: Stream::new(options.window),
            input: 0,
            call: 0,
            goes_on: false,
            consumed: 0,
            phase: Phase::Starting,
            asks: false,
            behind: false,
            prompt_end: String::new(),
            typed: false,
            line: Line::EMPTY,
            entered: false,
            left_raw: false,
            typed_at: None,
            entered_at: None,
            literal: false,
            signalled_at: None,
            left_over: false,
            touched: false,
            question: None,
            next_question: 0,
            answers: 0,
            continuing: false,
            ahead: false,
            unsettled: false,
            released: false,
            parted: false,
            unmarked: None,
            hidden: false,
            lost: false,
            fish_pastes: false,
            code: None,
            untold: false,
            mode: Mode {
                echo: true,
                lines: true,
            },
            deaf: false,
            interrupt: None,
            interrupts: 0,
            next_key: 0,
            prompts: 0,
            run: None,
            outgoing: Vec::new(),
            waiters: Vec::new(),
            next_waiter: 0,
            last_output: Instant::now(),
            exit: None,
            drained: false,
            closed: false,
            image: None,
            secrets: Arc::default(),
        }
    }
}
