//! Whether what is typed is shown.
//!
//! A terminal tells whether the kernel shows what is typed. A program that reads single keys shows
//! them itself, or does not: a line editor and a hidden question have the same terminal. There the
//! screen tells, afterwards.

use super::{Phase, Session, State};
use crate::terminal::lock;

/// How a terminal treats what is typed next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::terminal) enum Showing {
    /// It is shown, by the kernel or at a shell's prompt.
    Shown,
    /// It is not: a password is asked for.
    Hidden,
    /// Whoever reads it may show it.
    Unsure,
}

/// Typed text that may be shown where the cursor stands.
#[derive(Debug)]
pub(in crate::terminal) struct Awaited {
    /// What the line at the cursor would be then.
    line: String,
    /// The lines behind it.
    rest: Vec<String>,
    /// How often that stands there already.
    before: usize,
}

impl Awaited {
    fn count(&self, text: &str) -> usize {
        let lines: Vec<_> = text.lines().collect();
        let stands = |from: usize| {
            let (first, behind) = (lines[from], &lines[from + 1..]);
            let mut rest = self.rest.iter().zip(behind);
            let goes_on = rest.all(|(line, shown)| shown.ends_with(line.as_str()));
            first == self.line && behind.len() >= self.rest.len() && goes_on
        };
        (0..lines.len()).filter(|from| stands(*from)).count()
    }
}

impl Session {
    /// Whether what is typed now would be shown.
    pub(in crate::terminal) fn showing(&self) -> Showing {
        let mode = self.pty.mode();
        if mode.echo {
            return Showing::Shown;
        }
        if mode.lines {
            return Showing::Hidden;
        }
        let in_front = self.is_in_front();
        let state = lock(&self.state);
        // What was entered may be about to ask for something.
        let is_free = state.shell.is_some() && !(state.typed && state.entered);
        let at_prompt = state.phase == Phase::Prompt && is_free && !self.is_in_doubt(&state);
        match in_front && at_prompt {
            true => Showing::Shown,
            false => Showing::Unsure,
        }
    }

    /// What the screen would show of a text that is typed now. `None` for one that nothing shows
    /// as it is.
    pub(in crate::terminal) fn await_shown(&self, text: &str) -> Option<Awaited> {
        lock(&self.state).await_shown(text)
    }

    /// Whether it is shown by now.
    pub(in crate::terminal) fn has_shown(&self, awaited: &Awaited) -> bool {
        let history = lock(&self.state).screen.history();
        awaited.count(&history) > awaited.before
    }
}

impl State {
    fn await_shown(&self, text: &str) -> Option<Awaited> {
        let text = text.trim_end_matches('\n');
        let is_odd = |character: char| character.is_control() && character != '\n';
        if text.trim().is_empty() || text.contains(is_odd) {
            return None;
        }
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or_default();
        let line = format!("{}{first}", self.screen.before_cursor());
        let mut awaited = Awaited {
            line: line.trim_end().to_owned(),
            rest: lines.map(|line| line.trim_end().to_owned()).collect(),
            before: 0,
        };
        awaited.before = awaited.count(&self.screen.history());
        Some(awaited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::options::Options;

    fn is_shown(text: &str, output: &str) -> bool {
        let mut state = State::new(None, 7, "", &Options::default());
        state.take(b">>> one\r\nPassword: ");
        let awaited = state.await_shown(text);
        state.take(output.as_bytes());
        let history = state.screen.history();
        awaited.is_some_and(|it| it.count(&history) > it.before)
    }

    #[test]
    fn text_is_shown_when_it_stands_behind_the_cursor_and_nothing_else_does() {
        assert!(is_shown("one\n", "one\r\nfine\r\n"));
        assert!(is_shown("one two", "\x1b[1mone\x1b[m two"));
        assert!(is_shown("one\ntwo\n", "one\r\n... two\r\n"));
        let long = "x".repeat(300);
        assert!(is_shown(&long, &long));
        assert!(!is_shown("one\n", "\r\n>>> one\r\n"), "elsewhere");
        assert!(!is_shown("one\n", "***\r\none\r\n"), "masked");
        assert!(!is_shown("one\n", "one is wrong\r\n"), "an answer");
        assert!(!is_shown("one\ntwo\n", "one\r\nfine\r\ntwo\r\n"), "later");
        assert!(!is_shown("\n", "\r\n"), "nothing");
        assert!(!is_shown("\x1b[A", ""), "a key");
    }
}
