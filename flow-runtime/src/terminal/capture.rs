//! What a command writes, from its first byte to its last, as a pipe would have given it.

use std::collections::VecDeque;

use super::program::Shell;
use super::shells::BASH_HOOK;

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

/// How what was typed is shown, and where that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Not at all.
    Nowhere,
    /// By the kernel, which shows the line end or, where lines mean nothing, its name.
    ByKernel { lines: bool },
    /// By the editor of this shell, which says that it takes no pasted text any more, or does not.
    ByEditor { shell: Shell, pastes: bool },
}

impl Shown {
    fn ends(self) -> &'static [&'static [u8]] {
        match self {
            Shown::Nowhere => &[],
            Shown::ByKernel { lines: false } => &[b"^J"],
            Shown::ByEditor {
                shell: Shell::Bash,
                pastes: true,
            } => &[b"\x1b[?2004l\r"],
            Shown::ByEditor { pastes: true, .. } => &[b"\x1b[?2004l", b"\n"],
            Shown::ByKernel { lines: true } | Shown::ByEditor { pastes: false, .. } => &[b"\n"],
        }
    }
}

/// What comes between the start of a capture and the output.
#[derive(Debug)]
enum Before {
    /// Nothing, or nothing any more.
    Nothing,
    /// What was typed, as it is shown: up to the last of these, which come in this order.
    Typed {
        ends: &'static [&'static [u8]],
        /// The last bytes, in which the next of them may have begun.
        held: Vec<u8>,
    },
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

    /// A command begins, as the shell has told; its first bytes may not be its own.
    pub(super) fn begin(&mut self, shell: Shell) {
        self.before = match shell {
            Shell::Bash | Shell::Zsh | Shell::Posix => Before::Nothing,
            Shell::Fish => Before::Prologue(Vec::new()),
        };
    }

    /// What was just typed comes first.
    pub(super) fn begin_typed(&mut self, shown: Shown) {
        let held = Vec::new();
        self.before = match shown.ends() {
            [] => Before::Nothing,
            ends => Before::Typed { ends, held },
        };
    }

    /// Whether all that stands before the output has come.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.before, Before::Nothing)
    }

    /// Takes bytes as they came from the terminal.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let held;
        let mut bytes = bytes;
        match &mut self.before {
            Before::Nothing => {}
            Before::Typed { ends, held: last } => {
                last.extend_from_slice(bytes);
                while let Some((end, later)) = ends.split_first() {
                    match last.windows(end.len()).position(|part| part == *end) {
                        Some(at) => {
                            last.drain(..at + end.len());
                            *ends = later;
                        }
                        None => {
                            last.drain(..last.len().saturating_sub(end.len() - 1));
                            return;
                        }
                    }
                }
                held = std::mem::take(last);
                bytes = &held;
                self.before = Before::Nothing;
            }
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

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0 && !self.returned
    }

    /// How many bytes of output there are.
    pub(super) fn position(&self) -> u64 {
        self.total
    }

    /// Takes back everything behind a position.
    pub(super) fn cut(&mut self, position: u64) {
        let behind = self.total.saturating_sub(position);
        let kept = self.tail.len().saturating_sub(behind as usize);
        self.tail.truncate(kept);
        self.total -= behind;
        self.returned = false;
    }

    /// Takes back what a line editor writes before it shows the prompt: bash, that it takes pasted
    /// text; zsh, that the line is to be empty.
    pub(super) fn unprompt(&mut self) {
        self.strip(b"\x1b[?2004h");
        self.strip(b"\r\x1b[0m\x1b[27m\x1b[24m\x1b[J");
    }

    /// Takes back the sign of zsh for an unfinished line, and the blanks that make it wrap.
    pub(super) fn unsign(&mut self) {
        if self.returned && self.tail.iter().rev().take(2).eq(b" \r") {
            self.returned = false;
            let line = self.tail.iter().rposition(|byte| *byte == b'\n');
            let behind = self.tail.len() - line.map_or(0, |at| at + 1);
            self.cut(self.total - behind as u64);
        }
    }

    /// Takes back our hook, which bash shows like any other code when it shows what it reads.
    pub(super) fn unhook(&mut self) {
        self.strip(format!("{BASH_HOOK}\n").as_bytes());
    }

    /// Takes a text back if it is the last.
    fn strip(&mut self, text: &[u8]) {
        let rest = self.tail.len().saturating_sub(text.len());
        if self.tail.iter().skip(rest).eq(text) {
            self.cut(self.total - text.len() as u64);
        }
    }

    /// Takes over what another has kept.
    pub(super) fn append(&mut self, other: &mut Capture) {
        other.end();
        let missed = other.total - other.tail.len() as u64;
        self.total += missed;
        let kept: Vec<u8> = other.tail.drain(..).collect();
        self.push(&kept);
        other.total = 0;
    }

    /// The command has ended.
    pub(super) fn end(&mut self) {
        match std::mem::replace(&mut self.before, Before::Nothing) {
            Before::Prologue(start) => {
                let length = longest(&start).0;
                self.unmap(&start[length..]);
            }
            Before::Nothing | Before::Typed { .. } => {}
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
        capture.take(b"abc");
        capture.take(b"defgh\r\n");
        capture.end();
        assert_eq!(capture.output(), (b"fgh\n".to_vec(), false));
    }

    #[test]
    fn what_was_typed_ends_where_its_echo_does_however_it_is_cut() {
        let editor = |shell, pastes| Shown::ByEditor { shell, pastes };
        for (shown, bytes) in [
            (Shown::Nowhere, &b"out\r\n"[..]),
            (Shown::ByKernel { lines: true }, b"ls\r\nout\r\n"),
            (Shown::ByKernel { lines: false }, b"ls^Jout\r\n"),
            (editor(Shell::Bash, false), b"ls\r\nout\r\n"),
            (
                editor(Shell::Bash, true),
                b"for\r\nls\r\n\x1b[?2004l\rout\r\n",
            ),
            (
                editor(Shell::Zsh, true),
                b"for\r\r\nls\x1b[?1l\x1b>\x1b[?2004l\r\r\nout\r\n",
            ),
        ] {
            for cut in 0..bytes.len() {
                let mut capture = Capture::new(100);
                capture.begin_typed(shown);
                capture.take(&bytes[..cut]);
                capture.take(&bytes[cut..]);
                capture.end();
                assert_eq!(capture.output().0, b"out\n", "{shown:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn what_a_shell_writes_before_its_prompt_is_taken_back() {
        let mut capture = Capture::new(100);
        capture.begin(Shell::Zsh);
        capture.take(b"out\r\n\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m    \r \r");
        capture.unsign();
        let position = capture.position();
        capture.take(b"\r\x1b[0m\x1b[27m\x1b[24m\x1b[J");
        capture.unprompt();
        assert_eq!(capture.position(), position);
        capture.take(b"$ ");
        capture.cut(position);
        capture.end();
        assert_eq!(capture.output(), (b"out\n".to_vec(), true));
    }
}
