//! What a command writes, from its first byte to its last, as a pipe would have given it.

use std::collections::VecDeque;

use super::program::Shell;
use super::shells::BASH_HOOK;

/// The output of one command: the last bytes of it, with the line ends it wrote.
#[derive(Clone, Debug)]
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

/// Bytes in which what stands before the output is looked for.
const PATIENCE: usize = 64 * 1024;

/// How what was typed is shown, and where that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown<'t> {
    /// Not at all.
    Nowhere,
    /// By the kernel, to the letter, with the line end or, where lines mean nothing, its name.
    ByKernel { line: &'t str, lines: bool },
    /// By the editor of this shell, which says that it takes no pasted text any more, or does not.
    ByEditor { shell: Shell, pastes: bool },
}

impl Shown<'_> {
    fn before(self) -> Before {
        let (ends, unseen): (&[&[u8]], &[&[u8]]) = match self {
            Shown::Nowhere => return Before::Nothing,
            Shown::ByKernel { line, lines } => {
                return Before::Echoed {
                    line: line.as_bytes().to_vec(),
                    ends: match lines {
                        true => &[b"\r\n", b"\n"],
                        false => &[b"^J"],
                    },
                    held: Vec::new(),
                };
            }
            // Without an echo it ends the line after the word that it is done.
            Shown::ByEditor {
                shell: Shell::Bash,
                pastes: true,
            } => (&[b"\x1b[?2004l\r"], &[b"\n"]),
            Shown::ByEditor { pastes: true, .. } => (&[b"\x1b[?2004l", b"\n"], &[]),
            Shown::ByEditor { pastes: false, .. } => (&[b"\n"], &[]),
        };
        Before::Typed {
            ends,
            unseen,
            held: Vec::new(),
        }
    }
}

/// What comes between the start of a capture and the output.
#[derive(Clone, Debug)]
enum Before {
    /// Nothing, or nothing any more.
    Nothing,
    /// What was typed, as it is shown: up to the last of these, which come in this order.
    Typed {
        ends: &'static [&'static [u8]],
        /// What comes after them if nothing came before.
        unseen: &'static [&'static [u8]],
        /// The last bytes, in which the next of them may have begun.
        held: Vec<u8>,
    },
    /// What was typed, to the letter: up to it and one of its ends. Others may write before it.
    Echoed {
        line: Vec<u8>,
        ends: &'static [&'static [u8]],
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
    pub(super) fn begin_typed(&mut self, shown: Shown<'_>) {
        self.before = shown.before();
    }

    /// Whether all that stands before the output has come.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.before, Before::Nothing)
    }

    /// Takes bytes as they came from the terminal.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let output = match &mut self.before {
            Before::Nothing => {
                self.unmap(bytes);
                return;
            }
            Before::Typed { ends, unseen, held } => {
                held.extend_from_slice(bytes);
                while let Some((end, later)) = ends.split_first() {
                    let found = position(held, end);
                    let drawn = found.unwrap_or(held.len().saturating_sub(end.len() - 1));
                    held.drain(..drawn);
                    if drawn > 0 {
                        *unseen = &[];
                    }
                    if found.is_none() {
                        return;
                    }
                    held.drain(..end.len());
                    *ends = match later {
                        [] => std::mem::take(unseen),
                        later => later,
                    };
                }
                std::mem::take(held)
            }
            Before::Echoed { line, ends, held } => {
                held.extend_from_slice(bytes);
                match after_echo(held, line, ends) {
                    Some(at) => held.split_off(at),
                    None if held.len() > PATIENCE => after_line(held),
                    None => return,
                }
            }
            Before::Prologue(start) => {
                start.extend_from_slice(bytes);
                match without_prologue(start) {
                    Some(output) => output,
                    None if start.len() > PATIENCE => start.split_off(longest(start)),
                    None => return,
                }
            }
        };
        self.before = Before::Nothing;
        self.unmap(&output);
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

    /// Takes back that bash takes no pasted text any more, which it may say of a line for which it has
    /// not said that it does: behind an interrupt.
    pub(super) fn unready(&mut self) {
        let whole = self.total == self.tail.len() as u64;
        if !whole || !self.tail.iter().take(UNPASTE.len()).eq(UNPASTE) {
            return;
        }
        let returns = match self.tail.get(UNPASTE.len()) {
            Some(byte) => *byte == b'\r',
            None => std::mem::take(&mut self.returned),
        };
        if returns {
            let end = self.tail.len().min(UNPASTE.len() + 1);
            self.tail.drain(..end);
            self.total = self.tail.len() as u64;
        }
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

    /// Takes back the line that was begun behind a position: the shell asks for more.
    pub(super) fn unask(&mut self, position: u64) {
        let line = self.tail.iter().rposition(|byte| *byte == b'\n');
        let behind = self.tail.len() - line.map_or(0, |at| at + 1);
        self.cut(position.max(self.total - behind as u64));
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
            Before::Prologue(start) => self.unmap(&start[longest(&start)..]),
            Before::Echoed { mut held, .. } => self.unmap(&after_line(&mut held)),
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

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    (0..=bytes.len()).find(|at| bytes[*at..].starts_with(part))
}

/// Where the echo of a line ends; `None` while it has not come.
fn after_echo(bytes: &[u8], line: &[u8], ends: &[&[u8]]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = position(bytes.get(from..)?, line) {
        let after = from + at + line.len();
        if let Some(end) = ends.iter().find(|end| bytes[after..].starts_with(end)) {
            return Some(after + end.len());
        }
        from += at + 1;
    }
    None
}

/// What comes after the first line, where the echo has not come as it was typed.
fn after_line(bytes: &mut Vec<u8>) -> Vec<u8> {
    let line = position(bytes, b"\n").map_or(bytes.len(), |at| at + 1);
    bytes.split_off(line)
}

/// That a line editor takes no pasted text any more.
const UNPASTE: &[u8] = b"\x1b[?2004l";
/// How fish begins to name the window.
const TITLE: &[u8] = b"\x1b]0;";
/// How fish resets colours, in two pieces.
const BLACK: &[u8] = b"\x1b[30m";
const PLAIN: &[u8] = b"\x1b(B\x1b[m";

/// What others have written before and after what fish writes itself when a command starts; `None`
/// while that is not complete. Behind a title it goes back to the first column at last.
fn without_prologue(bytes: &[u8]) -> Option<Vec<u8>> {
    let black = position(bytes, BLACK)?;
    let mut before = bytes[..black].to_vec();
    let mut after = bytes[black + BLACK.len()..].to_vec();
    let plain = position(&after, PLAIN)?;
    after.drain(plain..plain + PLAIN.len());
    if let Some(at) = position(&before, UNPASTE) {
        before.drain(at..at + UNPASTE.len());
    }
    if let Some(at) = position(&before, TITLE) {
        let length = position(&before[at..], b"\x07")? + 1;
        before.drain(at..at + length);
        let first = |at: usize| at == plain || at > plain && after[at - 1] == b'\n';
        let returned = (0..after.len()).find(|at| after[*at] == b'\r' && first(*at))?;
        after.remove(returned);
    }
    before.extend(after);
    Some(before)
}

/// How many bytes at the start are what fish writes itself.
fn longest(bytes: &[u8]) -> usize {
    // In this order, each at most once.
    const PARTS: &[&[u8]] = &[UNPASTE, TITLE, BLACK, PLAIN, b"\r"];
    let mut at = 0;
    for part in PARTS {
        if !bytes[at..].starts_with(part) {
            continue;
        }
        at += match *part {
            TITLE => match position(&bytes[at..], b"\x07") {
                Some(end) => end + 1,
                None => break,
            },
            part => part.len(),
        };
    }
    at
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
    fn what_fish_writes_itself_is_told_from_what_others_write_meanwhile() {
        let parts = [
            &b"\x1b[?2004l"[..],
            b"\x1b]0;ls /\x07",
            b"\x1b[30m",
            b"\x1b(B\x1b[m",
            b"\r",
            b"foo\r\n",
        ];
        for place in 0..parts.len() {
            let mut bytes = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                if number == place {
                    bytes.extend_from_slice(b"noise\r\n");
                }
                bytes.extend_from_slice(part);
            }
            for cut in 0..bytes.len() {
                let captured = captured(Shell::Fish, &[&bytes[..cut], &bytes[cut..]]);
                assert_eq!(captured, b"noise\nfoo\n", "{place}, cut at {cut}");
            }
        }
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
        let kernel = |lines| Shown::ByKernel { line: "ls", lines };
        for (shown, bytes) in [
            (Shown::Nowhere, &b"out\r\n"[..]),
            (kernel(true), b"ls\r\nout\r\n"),
            (kernel(true), b"lsls\nout\r\n"),
            (kernel(false), b"ls^Jout\r\n"),
            // Something in the background writes before it.
            (kernel(true), b"false\r\nls -l\r\nls\r\nout\r\n"),
            // Nor is it cut into, which leaves the line.
            (kernel(true), b"l.s\r\nout\r\n"),
            (editor(Shell::Bash, false), b"ls\r\nout\r\n"),
            (editor(Shell::Bash, false), b"ls\r\n\x1b[?2004l\rout\r\n"),
            (
                editor(Shell::Bash, true),
                b"for\r\nls\r\n\x1b[?2004l\rout\r\n",
            ),
            (editor(Shell::Bash, true), b"\x1b[?2004l\r\r\nout\r\n"),
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
                capture.unready();
                capture.end();
                assert_eq!(capture.output().0, b"out\n", "{shown:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn that_an_editor_is_done_with_a_line_is_no_word_on_it() {
        let shown = Shown::ByEditor {
            shell: Shell::Bash,
            pastes: false,
        };
        for (bytes, said) in [
            (&b"ls\r\n\x1b[?2004l\r"[..], &b""[..]),
            (b"ls\r\n", b""),
            (b"ls\r\n\x1b[?2004hx\r", b"\x1b[?2004hx\r"),
        ] {
            let mut capture = Capture::new(100);
            capture.begin_typed(shown);
            capture.take(bytes);
            capture.unready();
            assert_eq!(capture.is_empty(), said.is_empty());
            capture.end();
            assert_eq!(capture.output().0, said);
        }
    }

    #[test]
    fn a_prompt_for_more_is_taken_back_and_the_lines_before_it_are_not() {
        let mut capture = Capture::new(100);
        capture.take(b"one\r\ntwo");
        let line = capture.position();
        capture.take(b"> ");
        capture.unask(line);
        assert_eq!(capture.position(), line);
        capture.take(b"\r\n> ");
        capture.unask(line);
        capture.end();
        assert_eq!(capture.output(), (b"one\ntwo\n".to_vec(), true));
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
