//! From the pieces of a terminal's output to plain text: what a person would say it wrote.

use super::scanner::Sequence;

/// Turns pieces into text. Line ends become `\n`, a carriage return that overwrites nothing is
/// dropped, and a jump of the cursor separates what it does not join.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    /// The start of a character that the input cut.
    cut: Vec<u8>,
    /// A carriage return whose meaning the next byte tells.
    returned: bool,
    /// Whether the current line has text on it.
    inside: bool,
    /// Whether the last character was a blank.
    blank: bool,
}

impl Cleaner {
    /// Adds printable bytes.
    pub(super) fn text(&mut self, bytes: &[u8], out: &mut String) {
        if bytes.is_empty() {
            return;
        }
        self.settle(out);
        self.inside = true;
        self.blank = bytes.last() == Some(&b' ');
        let mut bytes = bytes;
        let joined;
        if !self.cut.is_empty() {
            joined = [std::mem::take(&mut self.cut), bytes.to_vec()].concat();
            bytes = &joined;
        }
        loop {
            match std::str::from_utf8(bytes) {
                Ok(text) => {
                    out.push_str(text);
                    return;
                }
                Err(error) => {
                    let (good, rest) = bytes.split_at(error.valid_up_to());
                    out.push_str(std::str::from_utf8(good).unwrap_or_default());
                    match error.error_len() {
                        Some(length) => {
                            out.push(char::REPLACEMENT_CHARACTER);
                            bytes = &rest[length..];
                        }
                        None => {
                            self.cut = rest.to_vec();
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Adds a control character.
    pub(super) fn control(&mut self, byte: u8, out: &mut String) {
        self.uncut(out);
        match byte {
            b'\n' => {
                self.returned = false;
                self.line_end(out);
            }
            b'\r' => self.returned = true,
            b'\t' => {
                self.settle(out);
                out.push('\t');
                self.inside = true;
                self.blank = true;
            }
            _ => {}
        }
    }

    /// Adds a control sequence.
    pub(super) fn sequence(&mut self, sequence: &Sequence<'_>, out: &mut String) {
        self.uncut(out);
        match sequence.action {
            // The cursor goes to another line.
            b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'f' if self.inside => {
                self.returned = false;
                self.line_end(out);
            }
            // The cursor goes to another column.
            b'C' | b'G' | b'`' if self.inside && !self.blank && !self.returned => {
                out.push(' ');
                self.blank = true;
            }
            _ => {}
        }
    }

    /// Whether the current line has text on it.
    pub(super) fn is_inside(&self) -> bool {
        self.inside
    }

    /// What follows begins a line, whatever there was before.
    pub(super) fn begin_line(&mut self) {
        self.returned = false;
        self.inside = false;
        self.blank = false;
    }

    fn line_end(&mut self, out: &mut String) {
        out.push('\n');
        self.inside = false;
        self.blank = false;
    }

    /// Decides on a carriage return: more text follows it on the same line.
    fn settle(&mut self, out: &mut String) {
        if self.returned && self.inside {
            out.push('\r');
        }
        self.returned = false;
    }

    fn uncut(&mut self, out: &mut String) {
        if !self.cut.is_empty() {
            self.cut.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scanner::{Mark, Pieces, Scanner};
    use super::*;

    #[derive(Default)]
    struct Clean {
        cleaner: Cleaner,
        text: String,
    }

    impl Pieces for Clean {
        fn raw(&mut self, _: &[u8]) {}

        fn text(&mut self, bytes: &[u8]) {
            self.cleaner.text(bytes, &mut self.text);
        }

        fn control(&mut self, byte: u8) {
            self.cleaner.control(byte, &mut self.text);
        }

        fn sequence(&mut self, sequence: &Sequence<'_>) {
            self.cleaner.sequence(sequence, &mut self.text);
        }

        fn mark(&mut self, _: Mark) -> bool {
            true
        }
    }

    fn clean(bytes: &[u8]) -> String {
        let mut whole = Clean::default();
        Scanner::new("").scan(bytes, &mut whole);
        let mut single = Clean::default();
        let mut scanner = Scanner::new("");
        for byte in bytes {
            scanner.scan(&[*byte], &mut single);
        }
        assert_eq!(whole.text, single.text, "however it is cut");
        whole.text
    }

    #[test]
    fn colours_and_titles_are_not_text() {
        let bytes = b"\x1b]0;title\x07\x1b[1;32mPA\x1b[31mSS\x1b[0m\r\n";
        assert_eq!(clean(bytes), "PASS\n");
    }

    #[test]
    fn only_a_carriage_return_that_overwrites_is_kept() {
        assert_eq!(clean(b"a\r\nb\r\r\n\rc\r\rd"), "a\nb\nc\rd");
        assert_eq!(clean(b"10%\r20%\r\x1b[K30%\r\n"), "10%\r20%\r30%\n");
    }

    #[test]
    fn a_jump_of_the_cursor_separates() {
        assert_eq!(clean(b"\x1b[2J\x1b[1;1Hone\x1b[5;1Htwo"), "one\ntwo");
        assert_eq!(clean(b"a\x1b[20Gb"), "a b");
    }

    #[test]
    fn any_bytes_become_text() {
        assert_eq!(clean("é漢\n".as_bytes()), "é漢\n");
        assert_eq!(
            clean(b"\xff\xc3(\xe6\xbc\n\x00\x07\x08x"),
            "\u{fffd}\u{fffd}(\u{fffd}\nx"
        );
    }
}
