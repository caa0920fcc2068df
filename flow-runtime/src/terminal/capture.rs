//! What a command writes, from its first byte to its last, as a pipe would have given it.

use std::collections::VecDeque;

use super::program::Shell;

/// The output of one command: the last bytes of it, with the line ends it wrote.
#[derive(Debug)]
pub(super) struct Capture {
    /// The end of the output.
    tail: VecDeque<u8>,
    /// Bytes kept at most.
    limit: usize,
    /// Bytes of output altogether.
    total: u64,
    /// A carriage return that the terminal may have added.
    returned: bool,
    /// What stands before the output.
    before: Before,
}

/// What comes between the start of a capture and the output.
#[derive(Debug)]
enum Before {
    /// Nothing, or nothing any more.
    Nothing,
    /// The kernel's echo of the command, up to its line end.
    Echo,
    /// What fish writes after it says that a command starts.
    Prologue(Vec<u8>),
}

impl Capture {
    pub(super) fn new(limit: usize) -> Capture {
        Capture {
            tail: VecDeque::new(),
            limit,
            total: 0,
            returned: false,
            before: Before::Nothing,
        }
    }

    /// A command begins; its first bytes may not be its own.
    pub(super) fn begin(&mut self, shell: Shell) {
        self.before = match shell {
            Shell::Bash | Shell::Zsh => Before::Nothing,
            Shell::Posix => Before::Echo,
            Shell::Fish => Before::Prologue(Vec::new()),
        };
    }

    /// Takes bytes as they came from the terminal.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let held;
        let mut bytes = bytes;
        match &mut self.before {
            Before::Nothing => {}
            Before::Echo => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    bytes = &bytes[end + 1..];
                    self.before = Before::Nothing;
                }
                None => return,
            },
            Before::Prologue(start) => {
                start.extend_from_slice(bytes);
                let Some(length) = prologue(start) else {
                    return;
                };
                held = start.split_off(length);
                bytes = &held;
                self.before = Before::Nothing;
            }
        }
        self.unmap(bytes);
    }

    /// Takes back that a line editor has switched bracketed paste on.
    pub(super) fn unprompt(&mut self) {
        const ON: &[u8] = b"\x1b[?2004h";
        let rest = self.tail.len().saturating_sub(ON.len());
        if self.tail.iter().skip(rest).eq(ON) {
            self.tail.truncate(rest);
            self.total -= ON.len() as u64;
        }
    }

    /// The command has ended.
    pub(super) fn end(&mut self) {
        if let Before::Prologue(start) = std::mem::replace(&mut self.before, Before::Nothing) {
            let length = longest(&start).0;
            self.unmap(&start[length..]);
        }
        if std::mem::take(&mut self.returned) {
            self.push(b"\r");
        }
    }

    /// Takes back that the terminal made `\r\n` of every `\n`.
    fn unmap(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.returned {
                self.returned = false;
                if rest[0] != b'\n' {
                    self.push(b"\r");
                }
            }
            match rest.iter().position(|byte| *byte == b'\r') {
                Some(at) => {
                    self.push(&rest[..at]);
                    self.returned = true;
                    rest = &rest[at + 1..];
                }
                None => {
                    self.push(rest);
                    rest = &[];
                }
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(self.limit)..];
        let over = (self.tail.len() + kept.len()).saturating_sub(self.limit);
        self.tail.drain(..over);
        self.tail.extend(kept);
    }

    /// The bytes kept, and whether they are all there were.
    pub(super) fn output(&mut self) -> (Vec<u8>, bool) {
        let complete = self.total == self.tail.len() as u64;
        (self.tail.iter().copied().collect(), complete)
    }
}

/// How many bytes at the start are what fish writes itself; `None` while more could tell.
fn prologue(bytes: &[u8]) -> Option<usize> {
    match longest(bytes) {
        (_, true) => None,
        (length, false) => Some(length),
    }
}

/// The same, with whether the text breaks off within it.
fn longest(bytes: &[u8]) -> (usize, bool) {
    // In this order, each at most once: bracketed paste off, the title, colours reset, and the
    // cursor back to the first column.
    const PARTS: &[&[u8]] = &[
        b"\x1b[?2004l",
        b"\x1b]0;",
        b"\x1b[30m",
        b"\x1b(B",
        b"\x1b[m",
        b"\r",
    ];
    let mut at = 0;
    for part in PARTS {
        let rest = &bytes[at..];
        if rest.len() < part.len() && part.starts_with(rest) {
            return (at, true);
        }
        if rest.starts_with(part) {
            at += part.len();
            if part.ends_with(b"0;") {
                match bytes[at..].iter().position(|byte| *byte == 0x07) {
                    Some(end) => at += end + 1,
                    None => return (at - part.len(), true),
                }
            }
        }
    }
    (at, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(shell: Shell, parts: &[&[u8]]) -> Vec<u8> {
        let mut capture = Capture::new(1000);
        capture.begin(shell);
        for part in parts {
            capture.take(part);
        }
        capture.end();
        capture.output().0
    }

    #[test]
    fn line_ends_are_those_the_command_wrote() {
        assert_eq!(
            captured(Shell::Bash, &[b"a\r\nb\r\r\nc\rd\r"]),
            b"a\nb\r\nc\rd\r"
        );
        assert_eq!(
            captured(Shell::Bash, &[b"a\r", b"\nb\r", b"\r\n", b"x"]),
            b"a\nb\r\nx"
        );
    }

    #[test]
    fn what_fish_writes_itself_is_not_output() {
        let prologue = b"\x1b[?2004l\x1b]0;ls /\x07\x1b[30m\x1b(B\x1b[m\r";
        let mut bytes = prologue.to_vec();
        bytes.extend_from_slice(b"\x1b[m\rfoo\r\n");
        assert_eq!(captured(Shell::Fish, &[&bytes]), b"\x1b[m\rfoo\n");
        for cut in 0..bytes.len() {
            let parts = [&bytes[..cut], &bytes[cut..]];
            assert_eq!(captured(Shell::Fish, &parts), b"\x1b[m\rfoo\n");
        }
        assert_eq!(captured(Shell::Fish, &[prologue]), b"");
        assert_eq!(
            captured(Shell::Fish, &[b"\x1b[?2004l\x1b]0;x\x07foo"]),
            b"foo"
        );
    }

    #[test]
    fn only_the_end_of_much_output_is_kept() {
        let mut capture = Capture::new(4);
        capture.begin(Shell::Posix);
        capture.take(b"yes\r\nabc");
        capture.take(b"defgh\r\n");
        capture.end();
        assert_eq!(capture.output(), (b"fgh\n".to_vec(), false));
    }
}
