//! A part of a decoded text back to the bytes it was written as.

use std::ops::Range;

use super::{Source, Span, Style, Tree, Value, floor_boundary};

/// Where a range of a scalar's text stands in the source.
///
/// Decoding is repeated side by side with the source, which costs only when there is a finding.
pub(crate) fn within(source: &Source, tree: &Tree, range: &Range<usize>) -> Span {
    let Value::Str(scalar) = &tree.value else {
        return tree.span;
    };
    let raw = source.text();
    let start = floor_boundary(raw, tree.span.start as usize);
    let end = floor_boundary(raw, tree.span.end as usize).max(start);
    let mut walk = Walk {
        raw: &raw[..end],
        at: start,
        style: scalar.style,
    };
    if matches!(scalar.style, Style::Single | Style::Double) {
        walk.at = (start + 1).min(end);
    }
    let mut from = None;
    let mut to = None;
    for (decoded, wanted) in scalar.text.char_indices() {
        let here = walk.step(wanted);
        if decoded <= range.start {
            from = Some(here.start);
        }
        if decoded < range.end || to.is_none() {
            to = Some(here.end);
        } else {
            break;
        }
    }
    let from = if range.start >= scalar.text.len() {
        to.or(from)
    } else {
        from
    };
    let from = from.unwrap_or(start);
    Span::new(tree.span.file, from..to.unwrap_or(end).max(from))
}

struct Walk<'a> {
    raw: &'a str,
    at: usize,
    style: Style,
}

impl Walk<'_> {
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
