//! One terminal: a program, what it wrote, what it shows, and who waits for what.

mod asking;
mod between;
mod closing;
mod command;
mod entered;
mod intake;
mod interrupt;
mod line;
mod opening;
mod place;
mod reading;
mod run;
mod script;
mod showing;
mod typing;
mod unmarked;
mod watching;

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::clean::Cleaner;
use super::echo::Echo;
use super::environment::Snapshot;
use super::error::Error;
use super::lock;
use super::options::Size;
use super::page::Book;
use super::private::PrivateDirectory;
use super::program::{Program, Shell};
use super::pty::{Mode, Pty};
use super::scanner::Scanner;
use super::screen::{Hides, Screen};
use super::stream::Stream;
use crate::journal::RunId;
use crate::secret::Scrubber;

use asking::Question;
use interrupt::Interrupt;
use line::Line;
use run::Run;
use unmarked::Unmarked;
use watching::Waiter;

pub(super) use between::Way;
pub(super) use opening::Opening;
pub use place::Place;
pub(super) use run::Ran;
pub(super) use showing::{Awaited, Showing};
pub(super) use typing::{Echoed, Pasted, Sent};

/// After this long without output, what a terminal says is taken as said.
const QUIET: Duration = Duration::from_millis(100);

/// A terminal session.
pub(super) struct Session {
    pub(super) id: String,
    /// Whose default it may be.
    pub(super) circle: Option<Arc<str>>,
    /// The run whose own it is: closed with it when that fails.
    owner: Mutex<Option<RunId>>,
    pub(super) program: Program,
    pub(super) created_at: u64,
    /// The program's process, which leads its session.
    pid: i32,
    nonce: String,
    pty: Pty,
    state: Mutex<State>,
    moments: watch::Sender<Moment>,
    private: PrivateDirectory,
    /// The text that is being read in pages.
    book: Mutex<Book>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Whose turn it is to type, in the order in which they came.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// Input that waits for who reads it.
    queue: Mutex<between::Queue>,
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
    /// How often ctrl-c was acted on, or given up: one can be over before anyone was told of it.
    interrupts: u64,
    /// How often a shell has said what its line holds.
    answers: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal, if its name is known; or nobody knows how.
    Signal(Option<&'static str>),
}

/// Signals that end a program, by how the system describes them.
const SIGNALS: [(&str, &str); 16] = [
    ("Aborted", "SIGABRT"),
    ("Alarm clock", "SIGALRM"),
    ("Bus error", "SIGBUS"),
    ("Floating point exception", "SIGFPE"),
    ("Hangup", "SIGHUP"),
    ("Illegal instruction", "SIGILL"),
    ("Interrupt", "SIGINT"),
    ("Killed", "SIGKILL"),
    ("Broken pipe", "SIGPIPE"),
    ("Quit", "SIGQUIT"),
    ("Segmentation fault", "SIGSEGV"),
    ("Terminated", "SIGTERM"),
    ("User defined signal 1", "SIGUSR1"),
    ("User defined signal 2", "SIGUSR2"),
    ("CPU time limit exceeded", "SIGXCPU"),
    (
        "File size limit exceeded",
        "SIGXFSZ: a file was larger than `ulimit -f` allows, such as the one to which a followed \
         shell writes its variables",
    ),
];

impl Exit {
    pub(super) fn code(self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) => None,
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Exit::Code(code) => format!("with exit code {code}"),
            Exit::Signal(Some(name)) => format!("by the signal {name}"),
            Exit::Signal(None) => "by a signal".to_owned(),
        }
    }

    /// By a signal that the system describes like this.
    fn by_signal(description: &str) -> Exit {
        // Some systems add its number.
        let known = |(words, _): &&(&str, _)| description.starts_with(words);
        Exit::Signal(SIGNALS.iter().find(known).map(|(_, name)| *name))
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
    /// Text before the prompt of fish, while it may be its sign for an unfinished line.
    before_prompt: Option<String>,
    /// That sign, until the prompt begins.
    sign: Option<char>,
    /// A ctrl-c was typed that the shell may have got, and not the command that ran.
    missed: bool,
    /// What comes is what was typed at the shell's prompt, until the command starts.
    typing: bool,
    screen: Screen,
    stream: Stream,
    /// The position of what was typed last.
    input: u64,
    /// The position of the last input, which may be typed in parts.
    call: u64,
    /// What is typed next is a part of it.
    goes_on: bool,
    /// Up to where matches have been consumed.
    consumed: u64,
    phase: Phase,
    /// The prompt is the last that was said.
    asks: bool,
    /// Something came behind the prompt that was not typed.
    behind: bool,
    /// What stood before the cursor when the prompt had been shown.
    prompt_end: String,
    /// Whether something was typed at this prompt.
    typed: bool,
    /// What that has made of the line.
    line: Line,
    /// Whether it was entered, so that the shell is about to act on it.
    entered: bool,
    /// Whether the terminal gave keys when a line was begun at the prompt of a POSIX shell: the shell has
    /// not asked for that, and reads lines.
    left_raw: bool,
    /// When something was typed last.
    typed_at: Option<Instant>,
    /// When a line was entered last, whoever is to read it.
    entered_at: Option<Instant>,
    /// The terminal takes the next key for a character, whatever it is.
    literal: bool,
    /// When a key was typed last that may end what runs.
    signalled_at: Option<Instant>,
    /// Whether more was typed after it, which the next prompt will hold unless a program takes it.
    left_over: bool,
    /// Whether anything was typed since the line of a shell that edits it was known to be empty.
    touched: bool,
    /// What the shell was last asked of its line.
    question: Option<Question>,
    next_question: u8,
    /// How often it has answered.
    answers: u64,
    /// The shell wants more of the lines that were entered.
    continuing: bool,
    /// Whether lines were typed that the shell, or what it runs, will read at a time of its own.
    ahead: bool,
    /// Whether it was about to do so when something was typed last.
    unsettled: bool,
    /// The line editor has ended since something was entered at this prompt.
    released: bool,
    /// And has left the line.
    parted: bool,
    /// A prompt that may be there although the shell has not said so, or not all of it.
    unmarked: Option<Unmarked>,
    /// The prompt is there and nothing shows it.
    hidden: bool,
    /// The prompt has been replaced by one that tells nothing.
    lost: bool,
    /// fish takes pasted text at its prompts: at every one then, also where an interrupt has kept it
    /// from saying so.
    fish_pastes: bool,
    /// The exit code that the shell told last.
    code: Option<i32>,
    /// A command has ended since the shell wrote its environment down.
    untold: bool,
    /// How the terminal treats what is typed next.
    mode: Mode,
    /// The shell has not acted on a ctrl-c at this prompt, and will not.
    deaf: bool,
    /// The ctrl-c that the shell has yet to act on.
    interrupt: Option<Interrupt>,
    /// How many of them are over.
    interrupts: u64,
    /// The number of the key that fish was last asked with.
    next_key: u8,
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
    /// What the session was told that nobody else may read.
    secrets: Arc<Scrubber>,
}

impl Hides for Scrubber {
    fn hides_nothing(&self) -> bool {
        self.is_empty()
    }

    fn begun(&self, text: &str) -> Option<(usize, &str)> {
        Scrubber::begun(self, text)
    }
}

impl State {
    /// The end of what was written so far, without the secret that is just being written.
    fn without_begun(&self, mut text: String) -> String {
        let begun = self.secrets.begun(&text);
        if let Some((at, mask)) = begun.filter(|_| !self.drained) {
            text.replace_range(at.., mask);
        }
        text
    }
}

impl Session {
    pub(super) fn owner(&self) -> Option<RunId> {
        *lock(&self.owner)
    }

    pub(super) fn hand_over(&self, to: Option<RunId>) {
        *lock(&self.owner) = to;
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    pub(super) fn visible(&self) -> String {
        let state = lock(&self.state);
        state.screen.visible(&*state.secrets)
    }

    /// Whether the screen was lost at some point.
    pub(super) fn lost_screen(&self) -> bool {
        lock(&self.state).screen.has_failed()
    }

    pub(super) fn history(&self) -> String {
        let state = lock(&self.state);
        state.screen.history_without(&*state.secrets)
    }

    pub(super) fn since_input(&self) -> String {
        let state = lock(&self.state);
        state.without_begun(state.stream.since(state.call).to_owned())
    }

    /// The last lines of the output.
    pub(super) fn tail(&self, lines: usize) -> String {
        let state = lock(&self.state);
        let text = state.stream.since(0);
        let whole = text.trim_end_matches('\n').len();
        let start = text[..whole]
            .rmatch_indices('\n')
            .nth(lines.saturating_sub(1))
            .map_or(0, |(at, _)| at + 1);
        let mut tail = state.without_begun(text[start..].to_owned());
        tail.truncate(tail.trim_end_matches('\n').len());
        tail
    }

    /// Keeps secrets from now on from who reads the session while it shows part of them.
    pub(super) fn conceal(&self, secrets: Arc<Scrubber>) {
        lock(&self.state).secrets = secrets;
    }

    /// The same for something that a program has written last.
    pub(super) fn without_begun(&self, text: String) -> String {
        lock(&self.state).without_begun(text)
    }

    pub(super) fn resize(&self, size: Size) -> Result<(), Error> {
        self.pty.resize(size)?;
        lock(&self.state).screen.resize(size);
        Ok(())
    }

    /// The environment, as the shell wrote it at its last prompt.
    pub(super) fn environment(&self) -> Result<Snapshot, Error> {
        let unknown = |reason: String| Error::NoEnvironment {
            id: self.id.clone(),
            reason,
        };
        let Some(shell) = self.program.shell else {
            let reason = format!("`{}` is not a shell that tells it", self.program.asked);
            return Err(unknown(reason));
        };
        let (phase, exit, untold) = {
            let state = lock(&self.state);
            (state.phase, state.exit, state.untold)
        };
        if let Some(exit) = exit {
            return Err(unknown(format!("the shell has ended {}", exit.words())));
        }
        if phase == Phase::Starting {
            return Err(unknown("the shell has shown no prompt yet".to_owned()));
        }
        if untold {
            let hook = match shell {
                Shell::Bash => "PROMPT_COMMAND",
                Shell::Zsh => "precmd_functions",
                Shell::Fish => "the events of the prompt",
                Shell::Posix => "PS1",
            };
            let reason = format!(
                "the shell does not tell it any more, since flow's hook in it ({hook}) was replaced"
            );
            return Err(unknown(reason));
        }
        let bytes = std::fs::read(self.private.environment())
            .map_err(|error| unknown(format!("it cannot be read: {error}")))?;
        Snapshot::read(shell, &self.nonce, &String::from_utf8_lossy(&bytes))
            .ok_or_else(|| unknown("the shell is just writing it; ask again".to_owned()))
    }
}
