//! One terminal: a program, what it wrote, what it shows, and who waits for what.

mod intake;
mod interrupt;
mod run;

use std::io::{ErrorKind, PipeReader};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flow_model::tools::{AwaitTarget, Key};
use rustix::process::Signal;
use tokio::sync::{oneshot, watch};

use super::clean::Cleaner;
use super::echo::{Echo, Echoer};
use super::environment::Snapshot;
use super::error::Error;
use super::key;
use super::options::{Options, Size};
use super::page::Book;
use super::pattern::{Found, Pattern};
use super::process;
use super::program::{Program, Shell};
use super::pty::{MAX_LINE, Mode, Pty, Started};
use super::scanner::Scanner;
use super::screen::Screen;
use super::shells::{PrivateDirectory, history_variable};
use super::stream::Stream;
use super::{lock, now};

use interrupt::Interrupt;
use run::Run;

/// After this long without output, what a terminal says is taken as said.
const QUIET: Duration = Duration::from_millis(100);
/// Bytes taken at a time.
const BATCH: usize = 64 * 1024;
/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How long the system may take to end what was killed.
const KILLED: Duration = Duration::from_secs(5);

/// A terminal session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) program: Program,
    pub(super) created_at: u64,
    /// The program's process, which leads its session.
    pid: i32,
    nonce: String,
    pty: Pty,
    state: Mutex<State>,
    moments: watch::Sender<Moment>,
    private: Option<PrivateDirectory>,
    /// The text that is being read in pages.
    book: Mutex<Book>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What others may wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moment {
    /// The program has ended and all it wrote was taken.
    ended: bool,
    /// Something was shown.
    spoken: bool,
    /// Where the shell is, counted.
    prompts: u64,
    phase: Phase,
    /// The shell has yet to act on ctrl-c.
    interrupted: bool,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// With this code.
    Code(i32),
    /// By a signal, or nobody knows how.
    Signal,
}

impl Exit {
    pub(super) fn code(self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(code),
            Exit::Signal => None,
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Exit::Code(code) => format!("with exit code {code}"),
            Exit::Signal => "by a signal".to_owned(),
        }
    }
}

/// Where a shell is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// It has shown no prompt so far.
    #[default]
    Starting,
    /// A command runs.
    Running,
    /// A command has ended, the next prompt is not complete.
    Ended,
    /// Its prompt is shown.
    Prompt,
}

/// Everything that changes.
struct State {
    shell: Option<Shell>,
    pid: i32,
    scanner: Scanner,
    cleaner: Cleaner,
    /// Clean text on its way to the stream.
    clean: String,
    echo: Echo,
    /// A line editor has come to the front since the last input.
    edited_later: bool,
    /// Who was in front when the last input was typed.
    addressee: Option<i32>,
    /// Text that may be what was typed ahead of the shell's prompt.
    doubt: String,
    /// What comes is what was typed at the shell's prompt, until the command starts.
    typing: bool,
    screen: Screen,
    stream: Stream,
    /// The position of the last input.
    input: u64,
    /// Up to where matches have been consumed.
    consumed: u64,
    phase: Phase,
    /// Whether something was typed at this prompt.
    typed: bool,
    /// Whether it was entered, so that the shell is about to act on it.
    entered: bool,
    /// Whether more was typed after it, which the next prompt will hold.
    left_over: bool,
    /// The ctrl-c that the shell has yet to act on.
    interrupt: Option<Interrupt>,
    /// Prompts shown so far.
    prompts: u64,
    run: Option<Run>,
    /// To be typed once the lock is free.
    outgoing: Vec<u8>,
    waiters: Vec<Waiter>,
    next_waiter: u64,
    last_output: Instant,
    /// Set by the thread that waits for the program.
    exit: Option<Exit>,
    /// All that the program wrote was taken.
    drained: bool,
    /// The session is being closed: the reader stops.
    closed: bool,
    /// The command line the program was started with.
    image: Option<Vec<u8>>,
}

/// Somebody who waits for output.
struct Waiter {
    id: u64,
    pattern: Pattern,
    target: AwaitTarget,
    /// Where the next search begins.
    from: u64,
    /// The screen that was searched last.
    version: u64,
    tentative: bool,
    answer: Option<oneshot::Sender<Option<String>>>,
}

/// What is told of a session.
pub(super) struct Seen {
    pub(super) running: bool,
    pub(super) exit: Option<Exit>,
    pub(super) foreground: Option<String>,
    pub(super) directory: Option<String>,
}

/// Where in its shell's life a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the prompt, with nothing typed and nothing left to read.
    Prompt,
    /// Not at a prompt.
    Elsewhere,
    /// The program has ended.
    Gone,
}

/// Everything a session needs to be opened.
pub(super) struct Opening {
    pub(super) id: String,
    pub(super) nonce: String,
    pub(super) program: Program,
    pub(super) directory: std::path::PathBuf,
    pub(super) environment: Vec<(String, String)>,
}

impl Session {
    /// Starts the program and everything that watches it.
    pub(super) fn open(opening: Opening, options: &Options) -> Result<Arc<Session>, Error> {
        let Opening {
            id,
            nonce,
            program,
            directory,
            mut environment,
        } = opening;
        let mut arguments = Vec::new();
        let mut private = None;
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
            let prepared = PrivateDirectory::create(&nonce).and_then(|directory| {
                let start = directory.prepare(shell, &nonce, history, inherited)?;
                Ok((directory, start))
            });
            let (directory, start) =
                prepared.map_err(|error| Error::Pty(format!("no private directory: {error}")))?;
            private = Some(directory);
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
        let state = State {
            shell: program.shell,
            pid,
            scanner: Scanner::new(if program.shell.is_some() { &nonce } else { "" }),
            cleaner: Cleaner::default(),
            clean: String::new(),
            echo: Echo::default(),
            edited_later: false,
            addressee: None,
            doubt: String::new(),
            typing: false,
            screen: Screen::new(options.size, options.scrollback),
            stream: Stream::new(options.window),
            input: 0,
            consumed: 0,
            phase: Phase::Starting,
            typed: false,
            entered: false,
            left_over: false,
            interrupt: None,
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
        };
        let session = Arc::new(Session {
            id,
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
                    Ok(status) if status.signal().is_none() => {
                        i32::try_from(status.exit_code()).map_or(Exit::Signal, Exit::Code)
                    }
                    _ => Exit::Signal,
                };
                lock(&waiting.state).exit = Some(exit);
                waiting.pty.ring();
            });
        let waiter = spawned(waiter)?;
        let reading = Arc::clone(&session);
        let reader = std::thread::Builder::new()
            .name("terminal-read".to_owned())
            .stack_size(512 * 1024)
            .spawn(move || reading.read(&alarm));
        let reader = spawned(reader)?;
        lock(&session.threads).extend([waiter, reader]);
        Ok(session)
    }

    /// Takes everything the terminal gives, until it is closed.
    fn read(&self, alarm: &PipeReader) {
        let mut buffer = vec![0; BATCH];
        let mut open = true;
        loop {
            let until = self.deadline();
            self.pty.wait(alarm, open, until);
            // Whether the program had ended before the last byte was read.
            let exit = {
                let state = lock(&self.state);
                if state.closed {
                    return;
                }
                state.exit
            };
            let mut filled = 0;
            let mut more = false;
            while open {
                match self.pty.read(&mut buffer[filled..]) {
                    Ok(0) => open = false,
                    Ok(count) => {
                        filled += count;
                        if filled + 4096 > buffer.len() {
                            more = true;
                            break;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => open = false,
                }
            }
            let ended = exit.is_some() && !more;
            self.take(&buffer[..filled], ended);
            if more {
                // The rest is there already.
                self.pty.ring();
            }
        }
    }

    /// When the reader has to look again although nothing comes.
    fn deadline(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let quiet = state.holds() || state.waiters.iter().any(|waiter| waiter.tentative);
        let quiet = quiet.then(|| state.last_output + QUIET);
        let looked = state.run.as_ref().and_then(|run| run.look_at);
        let nudge = state.interrupt.as_ref().map(Interrupt::look_at);
        [quiet, looked, nudge, state.screen.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Takes bytes, then looks who has waited for them.
    fn take(&self, bytes: &[u8], ended: bool) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        if !bytes.is_empty() {
            state.last_output = now;
            if state.echo.awaits_editor() && !self.pty.mode().lines {
                // Once seen it counts: an editor may be done before its echo is looked at. The
                // shell itself tells by its marks.
                let front = self.pty.foreground();
                state.edited_later |= front != state.addressee && front != Some(self.pid);
            }
            state.take(bytes);
            self.reply(&mut state);
        }
        state.screen.expire(now);
        let outgoing = std::mem::take(&mut state.outgoing);
        if !outgoing.is_empty() {
            let _ = self.pty.write(&outgoing);
        }
        if ended {
            state.drained = true;
        }
        let quiet = now.duration_since(state.last_output) >= QUIET;
        state.settle(quiet || ended);
        if ended {
            state.end_run();
        } else if let Some(run) = &mut state.run
            && run.look_at.is_some_and(|at| at <= now)
        {
            let image = process::image(self.pid);
            state.look(now, image, || self.asleep().is_some());
        }
        self.look_after_interrupt(&mut state, now);
        let moment = Moment {
            ended: state.drained,
            spoken: state.screen.version() > 0,
            prompts: state.prompts,
            phase: state.phase,
            interrupted: state.interrupt.is_some(),
        };
        drop(state);
        self.moments.send_if_modified(|last| {
            let changed = *last != moment;
            *last = moment;
            changed
        });
    }

    /// Answers what was asked of the terminal. Who asks reads keys, not lines, and waits. Else a
    /// file with such a query in it was shown, and the answer would be taken for input.
    fn reply(&self, state: &mut State) {
        if !state.screen.has_replies() {
            return;
        }
        // fish reads keys again before it says that a command has ended.
        let fish = state.shell == Some(Shell::Fish) && state.phase == Phase::Running;
        if self.pty.mode().lines || fish && self.is_in_front() {
            state.screen.take_replies();
        } else if !self.pty.has_output() {
            // bash and zsh say it before, so that if they are who reads keys by now, that was
            // output yet to be read.
            let replies = state.screen.take_replies();
            let _ = self.pty.write(&replies);
        }
    }

    /// Types text and presses keys.
    pub(super) fn send(&self, text: &str, keys: &[Key]) -> Result<usize, Error> {
        let mut state = lock(&self.state);
        if let Some(exit) = state.exit {
            return Err(Error::Ended(exit.words()));
        }
        let mode = self.pty.mode();
        let mut bytes = Vec::new();
        let inner = text.trim_end_matches('\n');
        if inner.contains('\n')
            && !inner.contains('\x1b')
            && !mode.lines
            && state.screen.wants_bracketed_paste()
        {
            bytes.extend_from_slice(b"\x1b[200~");
            bytes.extend_from_slice(inner.replace('\n', "\r").as_bytes());
            bytes.extend_from_slice(b"\x1b[201~");
            bytes.extend_from_slice(&text.as_bytes()[inner.len()..]);
        } else {
            bytes.extend_from_slice(text.as_bytes());
        }
        let mut typed = text.to_owned();
        for key in keys {
            let pressed = key::bytes(*key, state.screen.has_application_cursor());
            typed.push_str(match &*pressed {
                b"\r" => "\n",
                other => std::str::from_utf8(other).unwrap_or_default(),
            });
            bytes.extend_from_slice(&pressed);
        }
        if mode.lines {
            let longest = bytes
                .split(|byte| matches!(byte, b'\n' | b'\r'))
                .map(<[u8]>::len)
                .max();
            if let Some(length) = longest.filter(|length| *length >= MAX_LINE) {
                return Err(Error::LongLine {
                    length,
                    limit: MAX_LINE - 1,
                });
            }
        }
        state.expect(&typed, mode, self.pty.foreground());
        let written = self.pty.write(&bytes);
        drop(state);
        // Held text, if any, is let go in time.
        self.pty.ring();
        written.map_err(|waiting| Error::Unread {
            program: self.foreground().unwrap_or_else(|| "?".to_owned()),
            waiting,
        })
    }

    /// Whether what is typed now would not be shown: a password is asked for.
    pub(super) fn hides_input(&self) -> bool {
        let mode = self.pty.mode();
        !mode.echo && mode.lines
    }

    /// Begins to wait for output.
    pub(super) fn watch(self: &Arc<Self>, pattern: Pattern, target: AwaitTarget) -> Watching {
        let (sender, receiver) = oneshot::channel();
        let mut state = lock(&self.state);
        state.next_waiter += 1;
        let id = state.next_waiter;
        let waiter = Waiter {
            id,
            pattern,
            target,
            from: state.consumed.max(state.input),
            version: u64::MAX,
            tentative: false,
            answer: Some(sender),
        };
        state.waiters.push(waiter);
        let quiet = state.last_output.elapsed() >= QUIET;
        let ended = state.drained;
        state.settle(quiet || ended);
        let tentative = state.waiters.iter().any(|waiter| waiter.tentative);
        drop(state);
        if tentative {
            self.pty.ring();
        }
        Watching {
            session: Arc::clone(self),
            id,
            receiver,
        }
    }

    /// Waits until the first prompt is there, or the program has fallen quiet, or ended.
    pub(super) async fn settled(&self, limit: Duration) {
        let mut moments = self.moments.subscribe();
        let until = tokio::time::Instant::now() + limit;
        // What the program had computed when it was last seen asleep.
        let mut asleep = None;
        loop {
            let moment = *moments.borrow_and_update();
            let now = tokio::time::Instant::now();
            if moment.ended || now >= until {
                return;
            }
            let look = if self.program.shell.is_some() {
                if moment.phase == Phase::Prompt {
                    return;
                }
                until
            } else {
                // A program without marks is taken as ready when it says nothing and does nothing.
                let quiet = lock(&self.state).last_output + QUIET;
                if quiet <= Instant::now() {
                    let before = asleep;
                    asleep = self.asleep();
                    if moment.spoken && asleep.is_some() || asleep.is_some() && asleep == before {
                        return;
                    }
                    until.min(now + QUIET)
                } else {
                    until.min(quiet.into())
                }
            };
            let _ = tokio::time::timeout_at(look, moments.changed()).await;
        }
    }

    /// Waits until the shell is at its prompt with all input read; says whether it is.
    pub(super) async fn prompt(&self, limit: Duration) -> Place {
        let mut moments = self.moments.subscribe();
        let until = tokio::time::Instant::now() + limit;
        loop {
            moments.borrow_and_update();
            let place = self.place();
            let now = tokio::time::Instant::now();
            if place != Place::Elsewhere || now >= until {
                return place;
            }
            // Input that is read without anything being shown makes no moment of its own.
            let look = until.min(now + QUIET);
            let _ = tokio::time::timeout_at(look, moments.changed()).await;
        }
    }

    /// The name of the program in front.
    pub(super) fn foreground(&self) -> Option<String> {
        process::group_name(self.pty.foreground()?)
    }

    /// Whether the program that was started is in front itself.
    fn is_in_front(&self) -> bool {
        self.pty.foreground() == Some(self.pid)
    }

    /// Whether the program that was started has done all there was to do: it sleeps, has read what
    /// was typed, and all it wrote is known. `None` where the system does not tell.
    fn rests(&self) -> Option<bool> {
        // In this order: what was typed has reached it, then it sleeps over that, and what it
        // wrote before it fell asleep is here.
        let read = self.pty.unread() == 0;
        let waits = process::waits(self.pid)?;
        Some(read && waits && !self.pty.has_output())
    }

    /// What everything in the session has computed when all of it rests. A reader that lags behind
    /// must not make a program look silent.
    fn asleep(&self) -> Option<u64> {
        let read = self.pty.unread() == 0;
        let asleep = process::asleep(self.pid);
        asleep.filter(|_| read && !self.pty.has_output())
    }

    /// Whether the shell may be about to act on what was typed ahead of its prompt: it may have
    /// read that without a trace.
    fn is_in_doubt(&self, state: &State) -> bool {
        let quiet = || state.last_output.elapsed() >= QUIET;
        state.typed_ahead() && !self.rests().unwrap_or_else(quiet)
    }

    pub(super) fn seen(&self) -> Seen {
        let exit = lock(&self.state).exit;
        Seen {
            running: exit.is_none(),
            exit,
            foreground: exit.is_none().then(|| self.foreground()).flatten(),
            directory: exit
                .is_none()
                .then(|| process::directory(self.pid))
                .flatten(),
        }
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    pub(super) fn visible(&self) -> String {
        lock(&self.state).screen.visible()
    }

    /// Whether the screen was lost at some point.
    pub(super) fn lost_screen(&self) -> bool {
        lock(&self.state).screen.has_failed()
    }

    pub(super) fn history(&self) -> String {
        lock(&self.state).screen.history()
    }

    pub(super) fn since_input(&self) -> String {
        let state = lock(&self.state);
        state.stream.since(state.input).to_owned()
    }

    /// The last lines of the output.
    pub(super) fn tail(&self, lines: usize) -> String {
        let state = lock(&self.state);
        let text = state.stream.since(0).trim_end_matches('\n');
        let start = text
            .rmatch_indices('\n')
            .nth(lines.saturating_sub(1))
            .map_or(0, |(at, _)| at + 1);
        text[start..].to_owned()
    }

    pub(super) fn resize(&self, size: Size) -> Result<(), Error> {
        self.pty.resize(size)?;
        lock(&self.state).screen.resize(size);
        Ok(())
    }

    /// Where the session's shell is.
    pub(super) fn place(&self) -> Place {
        let state = lock(&self.state);
        if state.exit.is_some() {
            return Place::Gone;
        }
        let at_prompt = state.phase == Phase::Prompt && !state.typed && !self.is_in_doubt(&state);
        drop(state);
        if at_prompt && self.pty.unread() == 0 {
            Place::Prompt
        } else {
            Place::Elsewhere
        }
    }

    /// The environment, as the shell wrote it at its last prompt.
    pub(super) fn environment(&self) -> Result<Snapshot, Error> {
        let unknown = |reason: String| Error::NoEnvironment {
            id: self.id.clone(),
            reason,
        };
        let (Some(shell), Some(private)) = (self.program.shell, &self.private) else {
            let reason = format!("`{}` is not a shell that tells it", self.program.asked);
            return Err(unknown(reason));
        };
        let (phase, exit) = {
            let state = lock(&self.state);
            (state.phase, state.exit)
        };
        if let Some(exit) = exit {
            return Err(unknown(format!("the shell has ended {}", exit.words())));
        }
        if phase == Phase::Starting {
            return Err(unknown("the shell has shown no prompt yet".to_owned()));
        }
        let bytes = std::fs::read(private.environment())
            .map_err(|error| unknown(format!("it cannot be read: {error}")))?;
        Snapshot::read(shell, &self.nonce, &String::from_utf8_lossy(&bytes))
            .ok_or_else(|| unknown("the shell is just writing it; ask again".to_owned()))
    }

    /// Asks everything the session started to end, and kills what does not.
    pub(super) async fn close(self: &Arc<Self>) -> bool {
        let exited = lock(&self.state).exit.is_some();
        if !exited {
            process::signal_group(self.pid, Signal::HUP);
            process::signal_group(self.pid, Signal::CONT);
            if let Some(front) = self.pty.foreground().filter(|front| *front != self.pid) {
                process::signal_group(front, Signal::HUP);
                process::signal_group(front, Signal::CONT);
            }
            let mut moments = self.moments.subscribe();
            let ended = moments.wait_for(|moment| moment.ended);
            let _ = tokio::time::timeout(GRACE, ended).await;
        }
        let session = Arc::clone(self);
        let finish = tokio::task::spawn_blocking(move || session.finish());
        finish.await.unwrap_or(false)
    }

    /// Kills what is left and waits until nothing is. Says whether nothing is.
    pub(super) fn finish(&self) -> bool {
        let mut gone = true;
        // What is being started while others are killed is found in the next round.
        for _ in 0..10 {
            let exited = lock(&self.state).exit.is_some();
            if !exited {
                process::signal_group(self.pid, Signal::KILL);
                process::signal(self.pid, Signal::KILL);
            }
            let members = process::members(self.pid, &self.nonce);
            for pid in &members {
                process::signal(*pid, Signal::KILL);
            }
            gone = process::wait(&members, KILLED);
            if members.is_empty() {
                break;
            }
        }
        lock(&self.state).closed = true;
        self.pty.ring();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        lock(&self.state).abandon();
        gone
    }
}

impl State {
    /// Prepares for the echo of what is about to be typed, and puts the mark where what it brings
    /// about begins.
    fn expect(&mut self, typed: &str, mode: Mode, addressee: Option<i32>) {
        self.flush_clean();
        self.release();
        self.echo.forget(&mut String::new());
        self.edited_later = false;
        self.addressee = addressee;
        self.input = self.stream.end();
        self.consumed = self.consumed.max(self.input);
        let at_prompt = matches!(self.phase, Phase::Prompt) && self.shell.is_some();
        if at_prompt && !typed.is_empty() {
            self.typed = true;
            self.entered = typed.contains(['\n', '\x03', '\x04']);
            let rest = typed.rsplit(['\n', '\x03', '\x04']).next();
            self.left_over = self.entered && rest.is_some_and(|rest| !rest.is_empty());
            self.interrupt = typed
                .contains('\x03')
                .then(|| Interrupt::typed(Instant::now()));
        }
        if at_prompt && self.shell != Some(Shell::Posix) {
            self.typing = true;
        } else if mode.echo {
            // The shell waits for a line; what comes after it is for whoever reads next.
            let waited = match typed.find('\n') {
                Some(end) if at_prompt => end + 1,
                _ => 0,
            };
            let (line, ahead) = typed.split_at(waited);
            self.echo.expect(line, Echoer::Kernel);
            self.echo.expect(ahead, Echoer::KernelAhead);
        } else if !mode.lines {
            // A shell between two prompts shows it at the next one.
            let ahead = self.shell.is_some() && addressee == Some(self.pid);
            let echoer = if ahead { Echoer::Later } else { Echoer::Editor };
            self.echo.expect(typed, echoer);
        }
    }

    /// Answers whoever can be answered. `quiet` says that nothing has come for a while.
    fn settle(&mut self, quiet: bool) {
        if quiet && self.holds() {
            self.release();
        }
        let ended = self.drained;
        let mut waiters = std::mem::take(&mut self.waiters);
        for waiter in &mut waiters {
            waiter.tentative = false;
            let found = match waiter.target {
                AwaitTarget::Stream => {
                    waiter.from = waiter.from.max(self.consumed);
                    match waiter.pattern.search(&self.stream, waiter.from, quiet) {
                        Found::Match(text, end) => {
                            self.consumed = end;
                            Some(text)
                        }
                        Found::Tentative(..) => {
                            waiter.tentative = true;
                            None
                        }
                        Found::Nothing(resume) => {
                            waiter.from = resume;
                            None
                        }
                    }
                }
                AwaitTarget::Screen => {
                    let version = self.screen.version();
                    let fresh = version != waiter.version;
                    waiter.version = version;
                    fresh
                        .then(|| self.screen.unwrapped())
                        .and_then(|text| waiter.pattern.find(&text).map(str::to_owned))
                }
            };
            if (found.is_some() || ended)
                && let Some(answer) = waiter.answer.take()
            {
                let _ = answer.send(found);
            }
        }
        waiters.retain(|waiter| waiter.answer.is_some());
        self.waiters = waiters;
    }

    /// Whether an editor may yet show what was typed ahead of the prompt.
    fn typed_ahead(&self) -> bool {
        self.echo.awaits_editor() || !self.doubt.is_empty()
    }

    /// Nobody will be answered any more.
    fn abandon(&mut self) {
        self.waiters.clear();
        self.run = None;
    }
}

/// A wait for output; dropping it ends the wait.
pub(super) struct Watching {
    session: Arc<Session>,
    id: u64,
    receiver: oneshot::Receiver<Option<String>>,
}

impl Watching {
    /// The text that matched; `None` when the program ended, or the time was up, without it.
    pub(super) async fn found(mut self, limit: Duration) -> Option<String> {
        match tokio::time::timeout(limit, &mut self.receiver).await {
            Ok(found) => found.ok().flatten(),
            Err(_) => {
                // A match that came meanwhile is consumed, so it must be told.
                self.end();
                self.receiver.try_recv().ok().flatten()
            }
        }
    }
}

impl Watching {
    fn end(&self) {
        lock(&self.session.state)
            .waiters
            .retain(|waiter| waiter.id != self.id);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.end();
    }
}
