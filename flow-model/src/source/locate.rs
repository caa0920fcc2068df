//! A part of a decoded text back to the bytes it was written as.

use std::ops::Range;

use super::{Source, Span, Style, Tree, Value, floor_boundary};

/// Where the characters of one text stand in the source.
///
/// Decoding is repeated side by side with the source, once for however many parts are looked up.
#[derive(Debug)]
pub(crate) struct Places<'t> {
    tree: &'t Tree,
    /// In the order of the text; empty for what is not a text.
    written: Vec<Written>,
}

/// One character of a text.
#[derive(Debug)]
struct Written {
    /// Its offset in the text.
    decoded: usize,
    /// The bytes of the source that became it.
    start: u32,
    end: u32,
}

impl<'t> Places<'t> {
    pub(crate) fn new(source: &Source, tree: &'t Tree) -> Self {
        let written = match &tree.value {
            Value::Str(scalar) => Walk::new(source, tree, scalar.style).all(&scalar.text),
            _ => Vec::new(),
        };
        Places { tree, written }
    }

    /// The value whose characters these are.
    pub(crate) fn tree(&self) -> &'t Tree {
        self.tree
    }

    /// Where a range of the text stands.
    pub(crate) fn span(&self, range: &Range<usize>) -> Span {
        let Some(first) = self.written.first() else {
            return self.tree.span;
        };
        let before = |end: usize| self.written.partition_point(|w| w.decoded < end);
        let last = self.written.get(before(range.end).saturating_sub(1));
        let end = last.unwrap_or(first).end;
        let start = match self.written.get(before(range.start + 1).saturating_sub(1)) {
            Some(at) if range.start < self.text_len() => at.start,
            // An expression that is cut short ends behind the last character.
            _ => end,
        };
        Span {
            file: self.tree.span.file,
            start,
            end: end.max(start),
        }
    }

    fn text_len(&self) -> usize {
        self.tree.as_str().map_or(0, str::len)
    }
}

struct Walk<'a> {
    raw: &'a str,
    at: usize,
    style: Style,
}

impl<'a> Walk<'a> {
    fn new(source: &'a Source, tree: &Tree, style: Style) -> Self {
        let raw = source.text();
        let start = floor_boundary(raw, tree.span.start as usize);
        let end = floor_boundary(raw, tree.span.end as usize).max(start);
        let quote = matches!(style, Style::Single | Style::Double);
        Walk {
            raw: &raw[..end],
            at: (start + usize::from(quote)).min(end),
            style,
        }
    }

    fn all(mut self, text: &str) -> Vec<Written> {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        text.char_indices()
            .map(|(decoded, letter)| {
                let range = self.step(letter);
                Written {
                    decoded,
                    start: clamp(range.start),
                    end: clamp(range.end),
                }
            })
            .collect()
    }

    /// The bytes that decoded to the next character.
    fn step(&mut self, wanted: char) -> Range<usize> {
        if self.style == Style::Double {
            self.skip_line_continuations();
        }
        let start = self.at;
        let Some(found) = self.raw[self.at..].chars().next() else {
            return start..start;
        };
        if self.style == Style::Double && found == '\\' {
            self.at += self.escape_len();
        } else if self.style == Style::Single && self.raw[self.at..].starts_with("''") {
            self.at += 2;
        } else if found == wanted && !matches!(found, ' ' | '\n') {
            self.at += found.len_utf8();
        } else if wanted == '\n' || wanted == ' ' {
            self.blank(wanted);
        } else if found.is_whitespace() {
            // Indentation and folded line ends have no counterpart in the text.
            self.skip_space();
            return self.step_exact();
        } else {
            self.at += found.len_utf8();
        }
        start..self.at
    }

    fn step_exact(&mut self) -> Range<usize> {
        let start = self.at;
        if let Some(found) = self.raw[self.at..].chars().next() {
            self.at += match (self.style, found) {
                (Style::Double, '\\') => self.escape_len(),
                (Style::Single, '\'') if self.raw[self.at..].starts_with("''") => 2,
                _ => found.len_utf8(),
            };
        }
        start..self.at
    }

    /// A blank of the text: itself, or a folded line end.
    fn blank(&mut self, wanted: char) {
        let rest = &self.raw[self.at..];
        let space = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let at_line_end = rest[space..].starts_with(['\n', '\r']);
        match (wanted, at_line_end) {
            (' ', false) => self.at += 1,
            (' ', true) if self.style == Style::Block && space > 0 => self.at += 1,
            (' ', true) => self.skip_space(),
            (_, _) => {
                self.at += space;
                let rest = &self.raw[self.at..];
                self.at += if rest.starts_with("\r\n") {
                    2
                } else {
                    usize::from(!rest.is_empty())
                };
            }
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.raw[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn skip_line_continuations(&mut self) {
        while self.raw[self.at..].starts_with("\\\n") || self.raw[self.at..].starts_with("\\\r\n") {
            self.at += 1;
            self.skip_space();
        }
    }

    fn escape_len(&self) -> usize {
        let rest = &self.raw[self.at..];
        let mut chars = rest.chars().skip(1);
        let kind = chars.next();
        let digits = match kind {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let mut len = 1 + kind.map_or(0, char::len_utf8) + digits;
        // A JSON surrogate pair is one character.
        if kind == Some('u')
            && rest.get(2..4).is_some_and(|high| {
                matches!(
                    high.to_ascii_lowercase().as_str(),
                    "d8" | "d9" | "da" | "db"
                )
            })
            && rest.get(6..8) == Some("\\u")
        {
            len += 6;
        }
        floor_boundary(rest, len)
    }
}
