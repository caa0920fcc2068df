//! Interrupts that a shell has not noticed.
//!
//! For ctrl-c the kernel throws away what nobody has read and sends SIGINT. bash and zsh note the
//! signal and look for the note before they wait for the next key. When it comes between the look
//! and the wait, or the key they were told of is thrown away, they wait with the note in hand, and
//! the prompt that would follow does not come before another key. So it is when the signal comes
//! after a command and before its prompt: that is not shown at all. fish shows no prompt at all when
//! there was nothing to throw away. Whoever waits for that prompt types no key, so the shell is
//! nudged.
//!
//! A ctrl-c that was typed while a command ran may have come when that had just ended, and be noted
//! by the shell all the same, which acts on it with the next line at the latest and takes the line
//! for it, or a part of it. Nothing tells, so before something is typed at the next prompt the shell
//! is given an empty line, and fish the key that clears its line: then it has acted on it.
//!
//! A ctrl-c that comes while the shell is about to start a program may be lost altogether: whoever
//! becomes the program takes it for the shell. Where a command is given up, what is in front is
//! looked at, and interrupted again if it cannot have got the first.

use std::time::{Duration, Instant};

use flow_model::tools::Key;
use rustix::process::Signal;

use super::{Phase, Session, State};
use crate::terminal::lock;
use crate::terminal::process::{self, Awaits};
use crate::terminal::program::Shell;

/// When a shell is first looked at; every look after it comes twice as late, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(10);
const LAST_LOOK: Duration = Duration::from_millis(160);
/// A shell that has been seen waiting so often has its own mind about interrupts (`trap '' INT`).
const LOOKS: u32 = 8;
/// So has one that is at work for so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a shell may take over an empty line, and when it is first looked at.
const DOUBT: Duration = Duration::from_secs(1);
const DOUBTFUL_LOOK: Duration = Duration::from_millis(1);

/// How long a command that was given up may take over its interrupt.
const GIVING_UP: Duration = Duration::from_secs(2);
/// How long a line that was entered may take to begin, what it begins to come to the front, and how
/// often that is looked at.
const UNBEGUN: Duration = Duration::from_secs(2);
const UNSEEN: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(2);

/// A ctrl-c that was typed at a shell's prompt and has not brought about the next one.
#[derive(Debug)]
pub(super) struct Interrupt {
    until: Instant,
    look_at: Instant,
    pause: Duration,
    /// How often the shell was seen waiting.
    waits: u32,
    /// How many prompts there were, when it is for a command that was given up: over with the next.
    given_up: Option<u64>,
    /// Whether there was one is not known: a key was typed that brings it out.
    doubt: Option<Doubt>,
    /// The shell has acted on it and is about to show its prompt: what is typed before that would
    /// be shown ahead of it, and be answered in its line.
    acted: bool,
}

/// What was typed to bring an interrupt out.
#[derive(Clone, Copy, Debug)]
enum Doubt {
    /// An empty line. How many prompts there were before it, and whether the shell was seen to rest
    /// at the next one.
    Line { prompts: u64, rested: bool },
    /// What makes fish say that it is at its prompt.
    Clear,
}

/// What makes fish clear its line and say that it is at its prompt.
const CLEAR: &[u8] = b"\x1b[9134~";
/// The same where fish takes keys for pasted text, the end of which was thrown away.
const UNPASTE: &[u8] = b"\x1b[201~\x1b[9134~";

impl Interrupt {
    pub(super) fn typed(now: Instant) -> Interrupt {
        Interrupt {
            until: now + PATIENCE,
            look_at: now + FIRST_LOOK,
            pause: FIRST_LOOK,
            waits: 0,
            given_up: None,
            doubt: None,
            acted: false,
        }
    }

    fn giving_up(now: Instant, prompts: u64) -> Interrupt {
        Interrupt {
            until: now + GIVING_UP,
            given_up: Some(prompts),
            ..Interrupt::typed(now)
        }
    }

    fn doubtful(now: Instant, doubt: Doubt) -> Interrupt {
        Interrupt {
            until: now + DOUBT,
            look_at: now + DOUBTFUL_LOOK,
            pause: DOUBTFUL_LOOK,
            doubt: Some(doubt),
            ..Interrupt::typed(now)
        }
    }

    /// Whether it is over with the next prompt: an empty line brings that by itself.
    pub(super) fn ends_with_prompt(&self) -> bool {
        !matches!(self.doubt, Some(Doubt::Line { .. })) && self.given_up.is_none()
    }

    /// The shell has acted on it; what is left is to wait for the prompt.
    pub(super) fn noticed(&mut self) {
        self.acted = true;
        self.look_at = self.until;
    }

    /// Whether the shell has yet to act on it.
    pub(super) fn is_open(&self) -> bool {
        !self.acted
    }

    pub(super) fn look_at(&self) -> Instant {
        self.look_at
    }
}

impl State {
    /// Ends an interrupt, and says so to whoever waits for that.
    pub(super) fn uninterrupted(&mut self) -> Option<Interrupt> {
        let interrupt = self.interrupt.take();
        self.interrupts += u64::from(interrupt.is_some());
        interrupt
    }
}

impl Session {
    /// Nudges a shell that has not noticed its interrupt, when it is time to look.
    pub(super) fn look_after_interrupt(&self, state: &mut State, now: Instant) {
        let Some(interrupt) = &mut state.interrupt else {
            return;
        };
        if interrupt.given_up.is_some_and(|it| state.prompts > it) {
            state.uninterrupted();
            // It may have been for the shell itself.
            state.missed = true;
            return;
        }
        if interrupt.look_at > now {
            return;
        }
        if interrupt.acted {
            // The prompt takes its time.
            state.uninterrupted();
            return;
        }
        let rests = self.rests() == Some(true);
        if interrupt.given_up.is_some() {
            interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
            interrupt.look_at = now + interrupt.pause;
            match self.pty.foreground().filter(|front| *front != self.pid) {
                Some(front) if process::dies_of_interrupt(front) => {
                    let _ = self.pty.write(b"\x03");
                }
                Some(_) => {}
                None if rests && self.edits() => {
                    self.nudge(interrupt.waits > 0);
                    interrupt.waits += 1;
                }
                None => {}
            }
            if now >= interrupt.until {
                state.uninterrupted();
            }
            return;
        }
        if let Some(doubt) = interrupt.doubt {
            interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
            interrupt.look_at = now + interrupt.pause;
            match doubt {
                Doubt::Line { prompts, rested } => {
                    let there = rests && state.prompts > prompts && self.reads();
                    if there && rested || now >= interrupt.until {
                        state.uninterrupted();
                    } else {
                        let rested = there;
                        interrupt.doubt = Some(Doubt::Line { prompts, rested });
                    }
                }
                Doubt::Clear if now >= interrupt.until => state.interrupt = None,
                // The interrupt it was to bring out has taken it.
                Doubt::Clear if rests && self.edits() => {
                    let _ = self.pty.write(CLEAR);
                }
                Doubt::Clear => {}
            }
            return;
        }
        if rests {
            // Who reads lines is not the shell's editor: a hook, a trap.
            if self.edits() {
                self.nudge(interrupt.waits > 0);
            }
            interrupt.waits += 1;
        }
        interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
        interrupt.look_at = now + interrupt.pause;
        if interrupt.waits >= LOOKS || now >= interrupt.until {
            state.uninterrupted();
        }
    }

    /// Makes a shell that waits for a key act on its interrupt.
    fn nudge(&self, again: bool) {
        if self.program.shell == Some(Shell::Fish) {
            // It clears its line and says that it is at its prompt.
            let unpastes = again && self.pty.has_discarded();
            let _ = self.pty.write(if unpastes { UNPASTE } else { CLEAR });
            return;
        }
        // Any signal ends the wait for a key, and this one means nothing without a child that has
        // ended. A read that has begun is ended only by the signal that was noted already, and
        // noting it twice is noting it once.
        let signal = if again { Signal::INT } else { Signal::CHILD };
        process::signal(self.pid, signal);
    }

    /// Whether the shell sleeps over its terminal, and not over what makes its next prompt. Where
    /// the system does not tell, it does.
    pub(super) fn reads(&self) -> bool {
        match process::awaits(self.pid) {
            Awaits::Terminal | Awaits::Unknown => true,
            Awaits::File => false,
            // zsh may have been told to look at other files as well.
            Awaits::Other => self.program.shell == Some(Shell::Zsh),
        }
    }

    /// Whether the shell is in front and edits a line, or would.
    pub(super) fn edits(&self) -> bool {
        self.is_in_front() && !self.pty.mode().lines
    }

    /// Whether the shell waits for keys and has shown no whole prompt: an interrupt at the wrong
    /// moment takes it away, and fish's word that a command has ended.
    pub(super) fn has_lost_prompt(&self, state: &State) -> bool {
        state.missed && state.shell.is_some() && self.edits() && self.rests() == Some(true)
    }

    /// Types what brings out a ctrl-c at the shell's prompt, when one may be noted there.
    fn bring_out(&self) {
        let mut state = lock(&self.state);
        let is_there = match state.phase {
            Phase::Prompt => !state.typed,
            Phase::Running | Phase::Ended => self.has_lost_prompt(&state),
            Phase::Starting => false,
        };
        let is_free = is_there && state.exit.is_none();
        let reads_lines = state.shell == Some(Shell::Posix);
        let reads = self.is_in_front() && self.pty.mode().lines == reads_lines;
        if !state.missed || state.interrupt.is_some() || !is_free || !reads {
            return;
        }
        state.missed = false;
        if state.phase != Phase::Prompt && state.shell != Some(Shell::Fish) {
            // The note it waits with is known; it needs no line for it.
            state.interrupt = Some(Interrupt::typed(Instant::now()));
            drop(state);
            self.pty.ring();
            return;
        }
        let prompts = state.prompts;
        let rested = false;
        let (key, doubt): (&[u8], _) = match state.shell {
            Some(Shell::Fish) => (CLEAR, Doubt::Clear),
            Some(Shell::Bash | Shell::Zsh | Shell::Posix) => {
                (b"\n", Doubt::Line { prompts, rested })
            }
            None => return,
        };
        // Its echo is no output.
        state.flush_clean();
        state.typing = true;
        if self.pty.write(key).is_ok() {
            state.interrupt = Some(Interrupt::doubtful(Instant::now(), doubt));
        }
        drop(state);
        self.pty.ring();
    }

    /// Interrupts the command that whoever ran it no longer waits for.
    pub(in crate::terminal) fn give_up(&self, interrupt: Key) {
        let prompts = lock(&self.state).prompts;
        if self.send("", &[interrupt]).is_ok() {
            let interrupt = Interrupt::giving_up(Instant::now(), prompts);
            lock(&self.state).interrupt = Some(interrupt);
            self.pty.ring();
        }
    }

    /// Waits until what was entered right before has begun: an interrupt that comes earlier throws
    /// it away, or is the shell's own. A shell that does it itself is not told from one that is
    /// about to start a program, and not waited for long.
    pub(in crate::terminal) async fn begun(&self) {
        loop {
            {
                let state = lock(&self.state);
                let since = state.entered_at.map(|at| at.elapsed());
                let longest = match state.phase {
                    Phase::Prompt if state.typed && state.entered => UNBEGUN,
                    Phase::Running => UNSEEN,
                    Phase::Starting | Phase::Prompt | Phase::Ended => return,
                };
                let is_late = since.is_none_or(|since| since >= longest);
                if is_late || state.exit.is_some() || self.program.shell.is_none() {
                    return;
                }
            }
            // What rests waits for keys, or for what it has started. Who is to become another
            // program would take an interrupt for the shell.
            let front = self.pty.foreground().filter(|front| *front != self.pid);
            let image = front.and_then(process::image);
            let is_another = image.is_some() && image != process::image(self.pid);
            if is_another || self.asleep().is_some() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until what was entered right before has been taken, and whoever reads next waits for
    /// more: an end of input is one only in the mode in which that reads. A shell that edits lines,
    /// and one that is about to start a program, would take or lose it.
    pub(in crate::terminal) async fn reading(&self) {
        let mut before = None;
        loop {
            {
                let state = lock(&self.state);
                let since = state.entered_at.map(|at| at.elapsed());
                let is_late = since.is_none_or(|since| since >= UNBEGUN);
                if is_late || state.exit.is_some() {
                    return;
                }
            }
            // In this order: what was typed has reached it, then it waits for more.
            let read = self.pty.unread() == 0;
            let front = self.pty.foreground();
            if read && front.is_some_and(process::reads_terminal) {
                return;
            }
            // Not of every program it is known what it sleeps over; several processes are not seen
            // in one moment.
            let asleep = self.asleep();
            if asleep.is_some() && asleep == before {
                return;
            }
            before = asleep;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the shell has acted on a ctrl-c: it would take the next key for the old line.
    pub(in crate::terminal) async fn interrupted(&self) {
        self.acted().await;
        self.bring_out();
        self.acted().await;
    }

    async fn acted(&self) {
        let mut moments = self.moments.subscribe();
        loop {
            moments.borrow_and_update();
            {
                let state = lock(&self.state);
                if state.interrupt.is_none() || state.exit.is_some() {
                    return;
                }
            }
            if moments.changed().await.is_err() {
                return;
            }
        }
    }
}
