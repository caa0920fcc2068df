//! What stands at a prompt: a shell that edits its line is asked.
//!
//! What keys have made of a line only its editor knows: one may be bound to anything, wait for its rest,
//! search the history, or leave the mode in which characters are inserted. So when anything was typed
//! since the line was last known to be empty, the shell is asked before a command is typed, by a private
//! key that it answers with a mark. Keys are read in the order in which they were typed: the answer is
//! about everything before it. A key that another one waited for is not answered, and asked again; what
//! was made of the first is taken back by then.
//!
//! A terminal that edits lines itself cannot be asked. There the keys are counted.

use super::place::Looks;
use super::{Phase, QUIET, Session, State};
use crate::terminal::lock;
use crate::terminal::program::Shell;
use crate::terminal::scanner::Held;

/// How many keys there are that ask, and as many that ask once more. One is used again only after all
/// the others.
const KEYS: u8 = 4;

/// A question, and its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    key: u8,
    answer: Option<Held>,
}

/// How an attempt to ask went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Answered(Held),
    /// The shell has read the key and waits for another.
    Unanswered,
    /// It is not at a prompt any more, or does not get there.
    Away,
}

impl State {
    /// The shell has answered the key with this number.
    pub(super) fn told(&mut self, key: u8, held: Held) {
        if let Some(question) = self.question.as_mut().filter(|it| it.key == key) {
            let held = match held {
                // It does not know, and its prompt tells.
                Held::Nothing if self.continuing && self.shell == Some(Shell::Bash) => Held::More,
                held => held,
            };
            question.answer = Some(held);
            if held == Held::Nothing {
                self.touched = false;
                self.ahead = false;
                self.left_over = false;
                (self.typed, self.entered) = (false, false);
            }
            self.answers += 1;
        }
    }

    /// Whether a shell of this kind can be asked.
    pub(super) fn can_be_asked(&self) -> bool {
        matches!(self.shell, Some(Shell::Bash | Shell::Zsh | Shell::Fish))
    }
}

impl Session {
    /// Whether the shell edits its line and would answer.
    pub(super) fn answers(&self, state: &State) -> bool {
        state.can_be_asked() && self.edits()
    }

    /// What the line at the prompt holds, by the word of the shell. `None` where it gives none.
    pub(super) async fn held(&self, until: tokio::time::Instant) -> Option<Held> {
        // fish gives up a key's script, too, when it has noted an interrupt.
        for again in [false, true, true] {
            match self.ask_line(again, until).await {
                Asked::Answered(held) => {
                    self.rested(until).await;
                    return Some(held);
                }
                Asked::Unanswered => {}
                Asked::Away => return None,
            }
        }
        None
    }

    /// Waits a moment until the shell waits for more: an interrupt, or the end of input that it was told
    /// between two modes of the terminal, may bring another prompt.
    async fn rested(&self, until: tokio::time::Instant) {
        let until = until.min(tokio::time::Instant::now() + QUIET);
        let mut moments = self.moments.subscribe();
        let mut looks = Looks::default();
        loop {
            moments.borrow_and_update();
            {
                let state = lock(&self.state);
                if state.exit.is_some() || self.is_at_rest(&state) {
                    return;
                }
            }
            if tokio::time::Instant::now() >= until {
                return;
            }
            looks.pause(&mut moments, until).await;
        }
    }

    async fn ask_line(&self, again: bool, until: tokio::time::Instant) -> Asked {
        let mut moments = self.moments.subscribe();
        {
            let mut state = lock(&self.state);
            if state.phase != Phase::Prompt || state.exit.is_some() {
                return Asked::Away;
            }
            // bash draws its prompt anew.
            state.flush_clean();
            state.typing = true;
            state.next_question = (state.next_question + 1) % KEYS;
            let key = state.next_question + if again { KEYS } else { 0 };
            state.question = Some(Question { key, answer: None });
            if self
                .pty
                .write(format!("\x1b[915{key}~").as_bytes())
                .is_err()
            {
                return Asked::Away;
            }
        }
        let mut looks = Looks::default();
        loop {
            moments.borrow_and_update();
            {
                let state = lock(&self.state);
                if let Some(held) = state.question.and_then(|it| it.answer) {
                    return Asked::Answered(held);
                }
                if state.phase != Phase::Prompt || state.exit.is_some() {
                    return Asked::Away;
                }
                if self.is_at_rest(&state) {
                    return Asked::Unanswered;
                }
            }
            if tokio::time::Instant::now() >= until {
                return Asked::Away;
            }
            looks.pause(&mut moments, until).await;
        }
    }
}
