//! `r'…'`, Python's raw strings, which minijinja does not know.

use std::borrow::Cow;
use std::ops::Range;

use super::{Dialect, Piece, pieces};

/// Rewrites the raw strings in the tags of a Jinja template to ordinary ones.
///
/// ```
/// use flow_model::expression::unraw;
/// assert_eq!(unraw(r"{{ s | regex_findall(r'\d+') }}"), r"{{ s | regex_findall('\\d+') }}");
/// ```
pub fn unraw(text: &str) -> Cow<'_, str> {
    Unraw::template(text).text
}

/// Rewrites the raw strings of a bare Jinja expression to ordinary ones.
///
/// ```
/// use flow_model::expression::unraw_expression;
/// assert_eq!(unraw_expression(r"s == r'\n'"), r"s == '\\n'");
/// ```
pub fn unraw_expression(text: &str) -> Cow<'_, str> {
    Unraw::expression(text).text
}

/// Text without raw strings, and the way back to the text it came from.
pub(super) struct Unraw<'a> {
    pub(super) text: Cow<'a, str>,
    /// Offsets that correspond: in the text, in the original. Between them both advance alike.
    anchors: Vec<(usize, usize)>,
    original: usize,
}

impl<'a> Unraw<'a> {
    pub(super) fn template(text: &'a str) -> Self {
        let tags = pieces(text, Dialect::Jinja)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Interpolation(tag) | Piece::Statement(tag) => Some(tag.inner),
                Piece::Text(_) | Piece::Raw { .. } => None,
            });
        Unraw::within(text, tags)
    }

    pub(super) fn expression(text: &'a str) -> Self {
        Unraw::within(text, std::iter::once(0..text.len()))
    }

    fn within(text: &'a str, parts: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut rewritten = String::new();
        let mut anchors = Vec::new();
        let mut copied = 0;
        for part in parts {
            for literal in raw_strings(text, part) {
                rewritten.push_str(&text[copied..literal.start]);
                copied = literal.start + 1;
                anchors.push((rewritten.len(), copied));
                let quote = text.as_bytes()[copied];
                let mut escaped = false;
                for (at, byte) in text.bytes().enumerate().take(literal.end).skip(copied) {
                    let closes = byte == quote && escaped;
                    if byte == b'\\' || closes {
                        rewritten.push_str(&text[copied..at]);
                        rewritten.push('\\');
                        copied = at;
                        anchors.push((rewritten.len(), copied));
                    }
                    escaped = byte == b'\\' && !escaped;
                }
            }
        }
        if anchors.is_empty() {
            return Unraw {
                text: Cow::Borrowed(text),
                anchors,
                original: text.len(),
            };
        }
        rewritten.push_str(&text[copied..]);
        Unraw {
            text: Cow::Owned(rewritten),
            anchors,
            original: text.len(),
        }
    }

    /// The offset in the original text.
    pub(super) fn offset(&self, offset: usize) -> usize {
        let after = self.anchors.partition_point(|(new, _)| *new <= offset);
        let next = self
            .anchors
            .get(after)
            .map_or(self.original, |(_, old)| *old);
        let (new, old) = match after.checked_sub(1) {
            Some(before) => self.anchors[before],
            None => (0, 0),
        };
        (old + (offset - new)).min(next)
    }
}

/// The ranges of raw strings in `part`, each from its `r` to its closing quote.
fn raw_strings(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = part.start;
    while at < part.end {
        let byte = bytes[at];
        if byte == b'\'' || byte == b'"' {
            let start = at;
            at += 1;
            while at < part.end && bytes[at] != byte {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
            let prefixed = start > part.start && matches!(bytes[start - 1], b'r' | b'R');
            let alone = prefixed && (start - 1 == part.start || !word(bytes[start - 2]));
            if alone && at <= part.end {
                found.push(start - 1..at);
            }
        } else {
            at += 1;
        }
    }
    found
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}
