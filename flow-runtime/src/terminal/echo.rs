//! Telling what was typed from what was answered.
//!
//! A terminal echoes input into its output, either in the kernel or, when a program edits lines
//! itself, by that program. Text that is about to become such an echo is held back until it is one
//! or is not. Of a line's echo the line end stays, so that what follows begins a line.

use std::collections::VecDeque;

/// Text in which an echo must begin to be believed; later the expectation is dropped.
const PATIENCE: usize = 64 * 1024;

/// Who echoes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echoer {
    /// The kernel, at once and to the letter, for a program that waits for the line.
    Kernel,
    /// The kernel, for whoever will read the line: a line editor that starts before finds it
    /// unread, and shows it again.
    KernelAhead,
    /// A line editor, which breaks lines in its own way.
    Editor,
    /// A line editor that started after the kernel had echoed the line, and shows it again.
    Later,
}

#[derive(Debug)]
struct Line {
    text: Vec<char>,
    echoer: Echoer,
}

/// Takes echoes out of a text.
#[derive(Debug, Default)]
pub(super) struct Echo {
    expected: VecDeque<Line>,
    held: VecDeque<char>,
    /// Characters of the expected line that the held text has.
    matched: usize,
    /// Characters seen since something was expected.
    seen: usize,
}

impl Echo {
    /// Expects the echo of typed bytes.
    pub(super) fn expect(&mut self, typed: &str, echoer: Echoer) {
        self.seen = 0;
        for line in typed.split_inclusive('\n') {
            // A program that reads single keys seldom echoes them, so an editor is believed with
            // whole lines only.
            let whole = line.ends_with('\n');
            if matches!(echoer, Echoer::Editor | Echoer::Later) && (!whole || line.len() < 2) {
                continue;
            }
            let text = match echoer {
                Echoer::Kernel | Echoer::KernelAhead => line.chars().flat_map(by_kernel).collect(),
                Echoer::Editor | Echoer::Later => line.chars().collect(),
            };
            self.expected.push_back(Line { text, echoer });
        }
    }

    /// Expects nothing any more.
    pub(super) fn forget(&mut self, out: &mut String) {
        self.expected.clear();
        self.release(out);
    }

    /// Whether anything is expected.
    pub(super) fn pending(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Whether text is held back.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Lets text go that did not become an echo in time.
    pub(super) fn release(&mut self, out: &mut String) {
        self.matched = 0;
        out.extend(self.held.drain(..));
    }

    /// A line editor has begun to read: what the kernel has not echoed so far, because the editor
    /// was there before the input was, is left to the editor to show.
    pub(super) fn edited(&mut self, out: &mut String) {
        self.release(out);
        self.expected
            .retain(|line| line.text.last() == Some(&'\n') && line.text.len() > 1);
        for line in &mut self.expected {
            line.echoer = Echoer::Later;
        }
    }

    /// Whether a line editor that comes to the front would show typed lines again.
    pub(super) fn awaits_editor(&self) -> bool {
        let first = self.expected.front();
        first.is_some_and(|line| line.echoer == Echoer::Later)
    }

    /// Passes text on, without echoes. `later` says that a line editor has come to the front since
    /// the input.
    pub(super) fn filter(&mut self, text: &str, later: bool, out: &mut String) {
        let mut characters = text.chars();
        while self.pending() {
            let Some(character) = characters.next() else {
                return;
            };
            self.seen += 1;
            self.take(character, later, out);
            if self.seen > PATIENCE {
                self.forget(out);
            }
        }
        out.push_str(characters.as_str());
    }

    fn take(&mut self, character: char, later: bool, out: &mut String) {
        let mut next = VecDeque::from([character]);
        while let Some(character) = next.pop_front() {
            let Some(line) = self.expected.front() else {
                out.push(character);
                continue;
            };
            let believed = line.echoer != Echoer::Later || later;
            let wanted = line.text.get(self.matched).copied();
            if believed && wanted == Some(character) {
                self.held.push_back(character);
                self.matched += 1;
                if self.matched == line.text.len() {
                    if line.text.last() == Some(&'\n') {
                        out.push('\n');
                    }
                    self.held.clear();
                    self.matched = 0;
                    self.echoed();
                }
            } else if believed && self.matched > 0 && self.is_wrap(character) {
                self.held.push_back(character);
            } else if let Some(first) = self.held.pop_front() {
                // Not an echo from here; perhaps one from a later character on.
                out.push(first);
                next.push_front(character);
                for held in self.held.drain(..).rev() {
                    next.push_front(held);
                }
                self.matched = 0;
            } else {
                out.push(character);
            }
        }
    }

    /// Whether an editor may have put this between two characters where the line is full.
    fn is_wrap(&self, character: char) -> bool {
        match character {
            '\r' | '\n' => true,
            ' ' => self.held.back() != Some(&' '),
            _ => false,
        }
    }

    /// A line's echo is complete.
    fn echoed(&mut self) {
        if let Some(line) = self.expected.pop_front()
            && line.echoer == Echoer::KernelAhead
            && line.text.last() == Some(&'\n')
            && line.text.len() > 1
        {
            self.expected.push_back(Line {
                text: line.text,
                echoer: Echoer::Later,
            });
        }
    }
}

/// What the kernel shows for a typed character.
fn by_kernel(character: char) -> impl Iterator<Item = char> {
    let (first, second) = match character {
        '\n' | '\r' => ('\n', None),
        '\t' => ('\t', None),
        control @ '\0'..='\x1f' => ('^', Some(char::from(control as u8 + 0x40))),
        '\x7f' => ('^', Some('?')),
        other => (other, None),
    };
    std::iter::once(first).chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(typed: &str, echoer: Echoer, later: bool, output: &str) -> String {
        let mut whole = String::new();
        let mut echo = Echo::default();
        echo.expect(typed, echoer);
        echo.filter(output, later, &mut whole);
        echo.release(&mut whole);
        let mut single = String::new();
        let mut echo = Echo::default();
        echo.expect(typed, echoer);
        for character in output.chars() {
            echo.filter(&character.to_string(), later, &mut single);
        }
        echo.release(&mut single);
        assert_eq!(whole, single, "however it is cut");
        whole
    }

    #[test]
    fn the_kernels_echo_is_taken_out_once() {
        let kernel = Echoer::Kernel;
        assert_eq!(
            heard("hello\n", kernel, false, "hello\nhello\n"),
            "\nhello\n"
        );
        assert_eq!(
            heard("y\n", kernel, false, "Sure? y\nyes\n"),
            "Sure? \nyes\n"
        );
        assert_eq!(heard("a\x03", kernel, false, "a^Ca"), "a");
        assert_eq!(heard("aab\n", kernel, false, "aaab\nx"), "a\nx");
        assert_eq!(heard("abc\n", kernel, false, "ab"), "ab");
    }

    #[test]
    fn an_editors_echo_may_be_wrapped() {
        let editor = Echoer::Editor;
        assert_eq!(
            heard(
                "print(12345)\n",
                editor,
                true,
                ">>> print( \r12345)\n12345\n"
            ),
            ">>> \n12345\n"
        );
        assert_eq!(heard("x\n", Echoer::Later, false, "x\n"), "x\n");
        assert_eq!(heard("y", editor, true, "yes"), "yes");
    }

    #[test]
    fn a_line_typed_ahead_is_shown_twice_and_heard_never() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("1+1\n", Echoer::KernelAhead);
        echo.filter("1+1\nPython\n", false, &mut out);
        echo.filter(">>> 1+1\n2\n", true, &mut out);
        assert_eq!(out, "\nPython\n>>> \n2\n");
    }

    #[test]
    fn what_the_kernel_did_not_echo_is_left_to_the_editor() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("true a\ntrue b\nrest", Echoer::KernelAhead);
        echo.filter("true a\ndone\ntr", false, &mut out);
        assert!(!echo.awaits_editor());
        echo.edited(&mut out);
        assert_eq!(out, "\ndone\ntr");
        assert!(echo.awaits_editor() && !echo.holds());
        echo.filter("$ true b\n$ true a\n", true, &mut out);
        assert_eq!(out, "\ndone\ntr$ \n$ \n");
        assert!(!echo.pending());
    }

    #[test]
    fn a_line_that_was_waited_for_is_shown_once() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("1+1\n", Echoer::Kernel);
        echo.filter("1+1\n", false, &mut out);
        assert!(!echo.pending() && !echo.awaits_editor());
    }
}
