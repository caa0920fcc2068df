//! Bytes of a terminal, taken apart: text, controls, sequences, and the marks of our own shell
//! integration.
//!
//! An emulator drops the marks, and a regular expression must not see the sequences, so both get
//! what they need from here. The scanner is total: any bytes, cut anywhere, give the same pieces.

/// Takes what a scanner finds, in order.
pub(super) trait Pieces {
    /// Bytes for an emulator: everything but our own marks. Comes after the pieces within it.
    fn raw(&mut self, bytes: &[u8]);

    /// Printable bytes; a character may be cut where the input was.
    fn text(&mut self, bytes: &[u8]);

    /// A control character outside of sequences.
    fn control(&mut self, byte: u8);

    /// A control sequence. The bytes before it have been given as [`Pieces::raw`] when it sets or
    /// resets a private mode.
    fn sequence(&mut self, sequence: &Sequence<'_>);

    /// A mark with our nonce. All bytes before it have been given as [`Pieces::raw`]. Says whether it
    /// is believed; if not, it is given as [`Pieces::raw`] like any other.
    fn mark(&mut self, mark: Mark) -> bool;
}

/// A control sequence: `CSI`, its parameters, its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence<'a> {
    /// Parameters and intermediate bytes as they were written; the first 32 of them.
    pub(super) parameters: &'a [u8],
    /// What to do.
    pub(super) action: u8,
}

impl Sequence<'_> {
    /// Whether it sets (`h`) or resets (`l`) a private mode, and which.
    pub(super) fn private_modes(&self) -> Option<(bool, impl Iterator<Item = u16>)> {
        let set = match self.action {
            b'h' => true,
            b'l' => false,
            _ => return None,
        };
        let numbers = self.parameters.strip_prefix(b"?")?;
        let numbers = numbers
            .split(|byte| *byte == b';')
            .filter_map(|number| std::str::from_utf8(number).ok()?.parse().ok());
        Some((set, numbers))
    }
}

/// Where a shell is, as its integration tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A prompt is about to be shown; once for each prompt.
    Prompt,
    /// The first character of the prompt follows; again whenever it is drawn anew.
    PromptStart,
    /// The prompt is shown: what is typed now is edited.
    Input,
    /// The shell wants more of the command.
    Continuation,
    /// The prompt for that is shown, where the shell says so.
    More,
    /// The shell cannot read the command and has taken it away.
    Erroneous,
    /// A command is about to begin: what the shell shows for that follows, up to [`Mark::Started`].
    Starting,
    /// The command begins.
    Started,
    /// The command has ended with this exit code, and the environment is written down.
    Ended(i32),
    /// The shell is at its prompt, which is empty: its answer to the key with this number that asks
    /// for it, and the exit code of the command before.
    Ready(u8, i32),
    /// What the line holds: the answer to the key with this number that asks for it.
    Line(u8, Held),
    /// What follows begins a line: a shell that would show a sign for an unfinished one says so.
    LineStart,
}

/// What the line at a prompt holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Nothing.
    Nothing,
    /// Text.
    Text,
    /// Nothing, but the lines before it want more.
    More,
}

/// Parameters kept of a sequence.
const MAX_PARAMETERS: usize = 32;
/// Bytes of a mark, far more than one has.
const MAX_MARK: usize = 128;
/// How a mark begins, after `ESC ]`.
const PREFIX: &[u8] = b"133;";

/// Takes the bytes of one terminal apart.
#[derive(Debug)]
pub(super) struct Scanner {
    nonce: Vec<u8>,
    state: State,
    parameters: Vec<u8>,
    /// What may yet turn out to be a mark, from its `ESC` on; not given to anybody so far.
    held: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    /// After `ESC`.
    Escape,
    /// After `ESC` and intermediate bytes.
    Intermediate,
    /// In a control sequence.
    Csi,
    /// In a string that may be a mark.
    Mark,
    /// The same, after an `ESC` that may end it.
    MarkEscape,
    /// In a string that is not for us.
    Text,
    /// The same, after an `ESC` that may end it.
    TextEscape,
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

impl Scanner {
    /// A scanner that knows its own marks by this nonce.
    pub(super) fn new(nonce: &str) -> Scanner {
        Scanner {
            nonce: nonce.as_bytes().to_vec(),
            state: State::Ground,
            parameters: Vec::with_capacity(MAX_PARAMETERS),
            held: Vec::new(),
        }
    }

    /// Takes the next bytes apart.
    pub(super) fn scan(&mut self, bytes: &[u8], pieces: &mut impl Pieces) {
        // Bytes before `given` have been passed on as raw.
        let mut given = 0;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            match self.state {
                State::Ground => {
                    let run = printable(&bytes[at..]);
                    if run > 0 {
                        pieces.text(&bytes[at..at + run]);
                        at += run;
                        continue;
                    }
                    if byte == ESC {
                        // The `ESC` is held until the next byte tells what it begins.
                        raw(pieces, &bytes[given..at]);
                        given = at + 1;
                        self.held.clear();
                        self.held.push(ESC);
                        self.state = State::Escape;
                    } else {
                        pieces.control(byte);
                    }
                    at += 1;
                }
                State::Escape => {
                    if byte == b']' {
                        self.held.push(byte);
                        given = at + 1;
                        at += 1;
                        self.state = State::Mark;
                        continue;
                    }
                    self.release(pieces);
                    at = self.escape(bytes, at, &mut given, pieces);
                }
                State::Intermediate => {
                    match byte {
                        ESC => at = self.restart(bytes, at, &mut given, pieces),
                        0x20..=0x2f => at += 1,
                        _ => {
                            self.state = State::Ground;
                            if byte < 0x20 {
                                pieces.control(byte);
                            }
                            at += 1;
                        }
                    };
                }
                State::Csi => match byte {
                    ESC => at = self.restart(bytes, at, &mut given, pieces),
                    CAN | SUB => {
                        self.state = State::Ground;
                        at += 1;
                    }
                    0x00..=0x1f => {
                        pieces.control(byte);
                        at += 1;
                    }
                    0x20..=0x3f => {
                        if self.parameters.len() < MAX_PARAMETERS {
                            self.parameters.push(byte);
                        }
                        at += 1;
                    }
                    0x40..=0x7e => {
                        let sequence = Sequence {
                            parameters: &self.parameters,
                            action: byte,
                        };
                        if sequence.private_modes().is_some() {
                            raw(pieces, &bytes[given..at]);
                            given = at;
                        }
                        pieces.sequence(&sequence);
                        self.state = State::Ground;
                        at += 1;
                    }
                    0x7f..=0xff => at += 1,
                },
                State::Mark => {
                    given = at + 1;
                    at += 1;
                    match byte {
                        BEL => {
                            self.held.push(byte);
                            self.finish(2, 1, pieces);
                        }
                        ESC => {
                            self.held.push(byte);
                            self.state = State::MarkEscape;
                        }
                        CAN | SUB => {
                            self.held.push(byte);
                            self.release(pieces);
                            self.state = State::Ground;
                        }
                        _ => {
                            self.held.push(byte);
                            let content = &self.held[2..];
                            let prefix = content.len().min(PREFIX.len());
                            if content[..prefix] != PREFIX[..prefix] || content.len() > MAX_MARK {
                                self.release(pieces);
                                self.state = State::Text;
                            }
                        }
                    }
                }
                State::MarkEscape => {
                    if byte == b'\\' {
                        self.held.push(byte);
                        given = at + 1;
                        at += 1;
                        self.finish(2, 2, pieces);
                    } else {
                        // The string was cut off by another sequence, whose `ESC` is held.
                        self.held.pop();
                        self.release(pieces);
                        self.held.push(ESC);
                        self.state = State::Escape;
                        given = at;
                    }
                }
                State::Text => {
                    match bytes[at..]
                        .iter()
                        .position(|byte| matches!(*byte, BEL | ESC | CAN | SUB))
                    {
                        None => at = bytes.len(),
                        Some(distance) => {
                            at += distance;
                            if bytes[at] == ESC {
                                // Held, since a mark may follow a string that was never ended.
                                at = self.restart(bytes, at, &mut given, pieces);
                                self.state = State::TextEscape;
                            } else {
                                self.state = State::Ground;
                                at += 1;
                            }
                        }
                    }
                }
                State::TextEscape => {
                    if byte == b'\\' {
                        self.release(pieces);
                        self.state = State::Ground;
                        at += 1;
                    } else {
                        self.state = State::Escape;
                    }
                }
            }
        }
        raw(pieces, &bytes[given.min(bytes.len())..]);
    }

    /// Takes the byte after an `ESC` that begins no mark.
    fn escape(
        &mut self,
        bytes: &[u8],
        at: usize,
        given: &mut usize,
        pieces: &mut impl Pieces,
    ) -> usize {
        self.state = State::Ground;
        match bytes[at] {
            b'[' => {
                self.parameters.clear();
                self.state = State::Csi;
            }
            // Device control, start of string, privacy message, application program command.
            b'P' | b'X' | b'^' | b'_' => self.state = State::Text,
            ESC => return self.restart(bytes, at, given, pieces),
            0x20..=0x2f => self.state = State::Intermediate,
            byte @ 0x00..=0x1f => {
                pieces.control(byte);
                self.state = State::Ground;
            }
            _ => {}
        }
        at + 1
    }

    /// Begins a sequence within another one.
    fn restart(
        &mut self,
        bytes: &[u8],
        at: usize,
        given: &mut usize,
        pieces: &mut impl Pieces,
    ) -> usize {
        raw(pieces, &bytes[*given..at]);
        *given = at + 1;
        self.held.clear();
        self.held.push(ESC);
        self.state = State::Escape;
        at + 1
    }

    /// Gives away what turned out not to be a mark.
    fn release(&mut self, pieces: &mut impl Pieces) {
        raw(pieces, &self.held);
        self.held.clear();
    }

    /// Ends a string that may be a mark.
    fn finish(&mut self, opening: usize, closing: usize, pieces: &mut impl Pieces) {
        self.state = State::Ground;
        let content = &self.held[opening..self.held.len() - closing];
        match read(content, &self.nonce) {
            Some(mark) if pieces.mark(mark) => self.held.clear(),
            Some(_) | None => self.release(pieces),
        }
    }
}

fn raw(pieces: &mut impl Pieces, bytes: &[u8]) {
    if !bytes.is_empty() {
        pieces.raw(bytes);
    }
}

/// How many bytes at the start are printable.
fn printable(bytes: &[u8]) -> usize {
    // Eight at a time: long runs of text are nearly all there is.
    let mut count = 0;
    for chunk in bytes.chunks_exact(8) {
        if chunk
            .iter()
            .fold(false, |found, byte| found | is_control(*byte))
        {
            break;
        }
        count += 8;
    }
    while count < bytes.len() && !is_control(bytes[count]) {
        count += 1;
    }
    count
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// `133;X;…;NONCE`, if it is one of ours.
fn read(content: &[u8], nonce: &[u8]) -> Option<Mark> {
    let content = content.strip_prefix(PREFIX)?;
    let mut fields = content.split(|byte| *byte == b';');
    let kind = fields.next()?;
    let mut last = fields.next()?;
    let mut code = None;
    if let Some(next) = fields.next() {
        code = Some(last);
        last = next;
    }
    if fields.next().is_some() || last != nonce || nonce.is_empty() {
        return None;
    }
    match (kind, code) {
        (b"A", None) => Some(Mark::Prompt),
        (b"P", None) => Some(Mark::PromptStart),
        (b"B", None) => Some(Mark::Input),
        (b"K", None) => Some(Mark::Continuation),
        (b"M", None) => Some(Mark::More),
        (b"E", None) => Some(Mark::Erroneous),
        (b"S", None) => Some(Mark::Starting),
        (b"C", None) => Some(Mark::Started),
        (b"L", None) => Some(Mark::LineStart),
        (b"D", Some(code)) => Some(Mark::Ended(number(code)?)),
        (b"R", Some([key, code @ ..])) => Some(Mark::Ready(number(&[*key])?, number(code)?)),
        (b"Q", Some([key @ .., held])) => {
            let held = match held {
                b'e' => Held::Nothing,
                b't' => Held::Text,
                b'm' => Held::More,
                _ => return None,
            };
            Some(Mark::Line(number(key)?, held))
        }
        _ => None,
    }
}

fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Seen {
        raw: Vec<u8>,
        text: Vec<u8>,
        marks: Vec<(usize, Mark)>,
        sequences: Vec<u8>,
    }

    impl Pieces for Seen {
        fn raw(&mut self, bytes: &[u8]) {
            self.raw.extend_from_slice(bytes);
        }

        fn text(&mut self, bytes: &[u8]) {
            self.text.extend_from_slice(bytes);
        }

        fn control(&mut self, byte: u8) {
            self.text.push(byte);
        }

        fn sequence(&mut self, sequence: &Sequence<'_>) {
            self.sequences.push(sequence.action);
        }

        fn mark(&mut self, mark: Mark) -> bool {
            let believed = mark != Mark::Continuation;
            if believed {
                self.marks.push((self.raw.len(), mark));
            }
            believed
        }
    }

    fn seen(parts: &[&[u8]]) -> Seen {
        let mut scanner = Scanner::new("n0");
        let mut seen = Seen::default();
        for part in parts {
            scanner.scan(part, &mut seen);
        }
        seen
    }

    #[test]
    fn marks_are_found_wherever_the_bytes_are_cut() {
        let bytes = b"a\x1b]133;A;n0\x07\x1b[1m$ \x1b]133;B;n0\x1b\\ls\r\n\x1b]133;D;17;n0\x07z";
        let whole = seen(&[bytes]);
        assert_eq!(
            whole
                .marks
                .iter()
                .map(|(_, mark)| *mark)
                .collect::<Vec<_>>(),
            [Mark::Prompt, Mark::Input, Mark::Ended(17)]
        );
        assert_eq!(whole.raw, b"a\x1b[1m$ ls\r\nz");
        assert_eq!(whole.text, b"a$ ls\r\nz");
        for first in 0..bytes.len() {
            for second in first..bytes.len() {
                let cut = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(seen(&cut), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_mark_without_the_nonce_is_passed_on_and_means_nothing() {
        for bytes in [
            &b"\x1b]133;D;0;n1\x07"[..],
            b"\x1b]133;D;0\x07",
            b"\x1b]133;D\x07",
            b"\x1b]133;D;x;n0\x07",
            b"\x1b]133;A;n0;\x07",
            b"\x1b]133;A;n0\x18",
            b"\x1b]2;title\x07",
            // One that is not believed.
            b"\x1b]133;K;n0\x07",
        ] {
            let seen = seen(&[bytes]);
            assert_eq!(seen.marks, []);
            assert_eq!(seen.raw, bytes);
        }
    }

    #[test]
    fn a_sequence_that_cuts_another_off_is_read() {
        let seen = seen(&[b"\x1b]133;A;\x1b[2J\x1b[3\x1b]133;B;n0\x07\x1bPq\x1b\\x"]);
        assert_eq!(seen.sequences, b"J");
        assert_eq!(seen.marks.len(), 1);
        assert_eq!(seen.text, b"x");
        assert_eq!(seen.raw, b"\x1b]133;A;\x1b[2J\x1b[3\x1bPq\x1b\\x");
    }

    #[test]
    fn a_mark_is_found_after_a_string_that_never_ended() {
        for start in [&b"\x1bP"[..], b"\x1b]2;t", b"\x1b_", b"\x1b["] {
            let seen = seen(&[start, b"123\n", b"\x1b]133;D;0;n0\x07"]);
            assert_eq!(seen.marks.len(), 1, "{start:?}");
        }
    }

    #[test]
    fn private_modes_are_told() {
        let sequence = Sequence {
            parameters: b"?1049;2004",
            action: b'h',
        };
        let (set, modes) = sequence.private_modes().expect("modes");
        assert!(set);
        assert_eq!(modes.collect::<Vec<_>>(), [1049, 2004]);
    }
}
