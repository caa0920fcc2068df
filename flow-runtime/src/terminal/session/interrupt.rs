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
//! for it, or a part of it. Nothing tells, so before something is typed at the next prompt a shell that
//! edits its line is asked what that holds, and any other is given an empty line: then it has acted on it.
//!
//! A ctrl-c that comes while the shell is about to start a program may be lost altogether: whoever
//! becomes the program takes it for the shell. Where a command is given up, what is in front is
//! looked at, and interrupted again if it cannot have got the first.

use std::time::{Duration, Instant};

use flow_model::tools::Key;
use rustix::process::Signal;

use super::place::Looks;
use super::script::CLEAR;
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

/// A ctrl-c that was typed at a shell's prompt and has not brought about the next one.
#[derive(Debug)]
pub(super) struct Interrupt {
    began: Instant,
    until: Instant,
    look_at: Instant,
    pause: Duration,
    /// How often the shell was seen waiting.
    waits: u32,
    /// How many prompts there were, when it is for a command that was given up: over with the next.
    given_up: Option<u64>,
    /// Whether there was one is not known: an empty line was typed that brings it out.
    doubt: Option<Doubt>,
    /// The key that was typed last for fish to answer. An answer to an earlier one says nothing: the
    /// shell has yet to read what came behind that.
    asked: Option<u8>,
    /// The shell has acted on it and is about to show its prompt: what is typed before that would
    /// be shown ahead of it, and be answered in its line.
    acted: bool,
}

/// An empty line that was typed to bring an interrupt out.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// How many prompts there were before it.
    prompts: u64,
    /// Whether the shell was seen to rest at the next one.
    rested: bool,
}

/// How many keys there are that fish answers. One is used again only after all the others.
const KEYS: u8 = 10;

impl Interrupt {
    pub(super) fn typed(now: Instant) -> Interrupt {
        Interrupt {
            began: now,
            until: now + PATIENCE,
            look_at: now + FIRST_LOOK,
            pause: FIRST_LOOK,
            waits: 0,
            given_up: None,
            doubt: None,
            asked: None,
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

    fn doubtful(now: Instant) -> Interrupt {
        Interrupt {
            until: now + DOUBT,
            look_at: now + DOUBTFUL_LOOK,
            pause: DOUBTFUL_LOOK,
            ..Interrupt::typed(now)
        }
    }

    /// Whether it is over with the next prompt: an empty line brings that by itself, and fish that
    /// was asked says it.
    pub(super) fn ends_with_prompt(&self) -> bool {
        self.doubt.is_none() && self.asked.is_none() && self.given_up.is_none()
    }

    /// Whether this is the answer to what was asked.
    pub(super) fn is_answered(&self, key: u8) -> bool {
        self.asked == Some(key)
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
        let until = interrupt.until;
        if interrupt.given_up.is_some() {
            interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
            interrupt.look_at = now + interrupt.pause;
            match self.pty.foreground().filter(|front| *front != self.pid) {
                Some(front) if process::dies_of_interrupt(front) => {
                    let _ = self.pty.write(b"\x03");
                }
                Some(_) => {}
                None if rests && self.edits() => {
                    interrupt.waits += 1;
                    self.nudge(state);
                }
                None => {}
            }
            if now >= until {
                state.uninterrupted();
            }
            return;
        }
        if let Some(Doubt { prompts, rested }) = interrupt.doubt {
            interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
            interrupt.look_at = now + interrupt.pause;
            let there = rests && state.prompts > prompts && self.reads();
            if there && rested || now >= interrupt.until {
                state.uninterrupted();
            } else {
                let rested = there;
                interrupt.doubt = Some(Doubt { prompts, rested });
            }
            return;
        }
        interrupt.pause = LAST_LOOK.min(interrupt.pause * 2);
        interrupt.look_at = now + interrupt.pause;
        interrupt.waits += u32::from(rests);
        let is_deaf = interrupt.waits >= LOOKS || now >= until;
        // Who reads lines is not the shell's editor: a hook, a trap.
        if rests && self.edits() {
            self.nudge(state);
        }
        if is_deaf {
            state.uninterrupted();
            state.deaf = state.phase == Phase::Prompt;
        }
    }

    /// Makes a shell that waits for a key act on its interrupt.
    fn nudge(&self, state: &mut State) {
        let Some(interrupt) = &state.interrupt else {
            return;
        };
        if self.program.shell == Some(Shell::Fish) {
            let again = interrupt.waits > 1;
            self.ask(state, again && self.pty.has_discarded());
            return;
        }
        // Any signal ends the wait for a key, and this one means nothing without a child that has
        // ended. A read that has begun is ended only by the signal that was noted already, and
        // noting it twice is noting it once, unless a trap has acted on the first.
        let is_silent = state.last_output < interrupt.began;
        let again = matches!(interrupt.waits, 2 | 4) && is_silent;
        let signal = if again { Signal::INT } else { Signal::CHILD };
        process::signal(self.pid, signal);
    }

    /// Types the key by which fish clears its line and says that it is at its prompt. `pasting` says
    /// that it may take keys for pasted text, the end of which was thrown away.
    fn ask(&self, state: &mut State, pasting: bool) {
        state.next_key = (state.next_key + 1) % KEYS;
        let key = state.next_key;
        let end = if pasting { "\x1b[201~" } else { "" };
        let typed = self.pty.write(format!("{end}\x1b[914{key}~").as_bytes());
        if let (Ok(_), Some(interrupt)) = (typed, &mut state.interrupt) {
            interrupt.asked = Some(key);
        }
    }

    /// Whether the shell sleeps over its terminal, and not over what makes its next prompt. Where
    /// the system does not tell, it does.
    pub(super) fn reads(&self) -> bool {
        if self.program.shell == Some(Shell::Fish) {
            // It waits for several files there, and for a program otherwise.
            return process::polls(self.pid).unwrap_or(true);
        }
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

    /// Types what brings out a ctrl-c at the shell's prompt, when one may be noted there. A shell that
    /// edits its line is asked for it: then it has acted on it.
    async fn bring_out(&self) {
        let until = tokio::time::Instant::now() + DOUBT;
        let mut moments = self.moments.subscribe();
        let mut looks = Looks::default();
        loop {
            moments.borrow_and_update();
            let is_at_rest = {
                let mut state = lock(&self.state);
                let is_there = state.phase == Phase::Prompt && self.answers(&state);
                let is_free = state.interrupt.is_none() && state.exit.is_none();
                if !is_there || !state.missed || !is_free {
                    break;
                }
                let is_at_rest = self.is_at_rest(&state);
                state.missed = !is_at_rest;
                is_at_rest
            };
            if is_at_rest {
                self.held(until).await;
                return;
            }
            if tokio::time::Instant::now() >= until {
                return;
            }
            looks.pause(&mut moments, until).await;
        }
        self.bring_out_by_line();
    }

    fn bring_out_by_line(&self) {
        self.bring_out_now(&mut lock(&self.state));
        self.pty.ring();
    }

    /// The same for a command that is run in fish, which has shown no prompt behind it.
    pub(super) fn bring_out_lost(&self, state: &mut State) {
        let is_fish = state.shell == Some(Shell::Fish) && state.run.is_some();
        if is_fish && state.phase != Phase::Prompt && self.has_lost_prompt(state) {
            self.bring_out_now(state);
        }
    }

    fn bring_out_now(&self, state: &mut State) {
        let is_there = match state.phase {
            Phase::Prompt => !state.typed,
            Phase::Running | Phase::Ended => self.has_lost_prompt(state),
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
            return;
        }
        // Its echo is no output.
        state.flush_clean();
        state.typing = true;
        let mut interrupt = Interrupt::doubtful(Instant::now());
        if state.shell == Some(Shell::Fish) {
            state.interrupt = Some(interrupt);
            self.ask(state, false);
        } else if self.pty.write(b"\n").is_ok() {
            let (prompts, rested) = (state.prompts, false);
            interrupt.doubt = Some(Doubt { prompts, rested });
            state.interrupt = Some(interrupt);
        }
    }

    /// Clears the line of a shell that has its own mind about interrupts, and waits for its next prompt:
    /// the ctrl-c was to do that.
    pub(super) async fn clear_line(&self) {
        {
            let mut state = lock(&self.state);
            // zsh can be told to edit none.
            let reads_lines = self.pty.mode().lines;
            let reads = self.is_in_front() && self.reads();
            let is_deaf = std::mem::take(&mut state.deaf);
            if !is_deaf || !reads || state.phase != Phase::Prompt || state.interrupt.is_some() {
                return;
            }
            state.flush_clean();
            state.typing = !reads_lines;
            if self.answers(&state) {
                // It is asked after that; whatever a key has brought there is not entered.
                let _ = self.pty.write(CLEAR);
                return;
            }
            // ctrl-u
            if self.pty.write(b"\x15\n").is_ok() {
                let (prompts, rested) = (state.prompts, false);
                let mut interrupt = Interrupt::doubtful(Instant::now());
                interrupt.doubt = Some(Doubt { prompts, rested });
                state.interrupt = Some(interrupt);
            }
        }
        self.pty.ring();
        self.acted().await;
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

    /// Waits until the shell has acted on a ctrl-c: it would take the next key for the old line.
    pub(in crate::terminal) async fn interrupted(&self) {
        self.acted().await;
        self.bring_out().await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::options::Options;
    use crate::terminal::pty::Mode;
    use crate::terminal::session::Echoed;

    #[test]
    fn fish_is_at_its_prompt_when_it_has_answered_the_last_key_it_was_asked_with() {
        let mut state = State::new(Some(Shell::Fish), 7, "n0", &Options::default());
        let mark = |name: &str| format!("\x1b]133;{name};n0\x07").into_bytes();
        state.take(&mark("B"));
        let editing = Mode {
            echo: false,
            lines: false,
        };
        state.expect("half", Echoed::Typed, editing, Some(7));
        state.expect("\x03", Echoed::Typed, editing, Some(7));
        let asked = |state: &mut State, key| {
            state.interrupt.as_mut().expect("an interrupt").asked = Some(key);
        };
        asked(&mut state, 1);
        asked(&mut state, 2);
        // What was typed behind the first key is yet to be read, and its prompt yet to be shown.
        state.take(&[mark("R;10"), mark("A"), mark("B")].concat());
        assert!(state.interrupt.is_some());
        state.take(&mark("R;20"));
        assert!(state.interrupt.is_none());
        let seen = (state.phase, state.typed, state.prompts);
        assert_eq!(seen.0, Phase::Prompt);
        assert!(!seen.1);
        // Nobody waits for this any more: it is not the prompt behind a command.
        state.take(&mark("R;10"));
        assert_eq!((state.phase, state.typed, state.prompts), seen);
    }
}
