//! Patterns that are awaited: regular expressions searched in a text that is still growing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

use super::lock;
use super::stream::Stream;

/// Patterns that are kept: a workflow awaits the same one again and again.
const MOST: usize = 64;
static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Pattern>>>> = LazyLock::new(Mutex::default);

/// How much of a match over several lines may lie before the last line, in a search that goes on from another.
const MAX_LINES_BACK: usize = 64 * 1024;

/// A regular expression that knows what more text could change.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// Whether a match can contain a line end.
    spans_lines: bool,
    /// Whether a match that reaches the end of the text could be another one with more text.
    open: bool,
}

/// What a search says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A match, and the position after it.
    Match(String, u64),
    /// A match that more text could change; it counts once nothing follows.
    Tentative(String, u64),
    /// Nothing. The next search may begin at this position.
    Nothing(u64),
}

impl Pattern {
    /// A pattern that may have been read before.
    pub(super) fn cached(pattern: &str) -> Result<Arc<Pattern>, regex::Error> {
        if let Some(known) = lock(&KNOWN).get(pattern) {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(Pattern::new(pattern)?);
        let mut known = lock(&KNOWN);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(pattern.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    /// Reads a pattern. `^` and `$` match at every line.
    pub(super) fn new(pattern: &str) -> Result<Pattern, regex::Error> {
        let regex = RegexBuilder::new(pattern)
            .multi_line(true)
            .crlf(true)
            .build()?;
        let hir = ParserBuilder::new()
            .multi_line(true)
            .crlf(true)
            .build()
            .parse(pattern);
        // What the other parser accepted and this one does not is treated with the most care.
        let (spans_lines, open) = hir.map_or((true, true), |hir| (spans_lines(&hir), open(&hir)));
        Ok(Pattern {
            regex,
            spans_lines,
            open,
        })
    }

    /// Whether a match can contain a line end.
    pub(super) fn spans_lines(&self) -> bool {
        self.spans_lines
    }

    /// Searches a stream from a position on. `ended` says that no more will come.
    pub(super) fn search(&self, stream: &Stream, from: u64, ended: bool) -> Found {
        let (text, start) = stream.at(from);
        match self.regex.find_at(text, start) {
            Some(found) => {
                let position = stream.position(found.end());
                let matched = found.as_str().to_owned();
                if self.open && found.end() == text.len() && !ended {
                    Found::Tentative(matched, position)
                } else {
                    Found::Match(matched, position)
                }
            }
            None => {
                let line = text[start..].rfind('\n').map_or(start, |at| start + at + 1);
                let resume = if self.spans_lines {
                    start
                        .max(text.len().saturating_sub(MAX_LINES_BACK))
                        .min(line)
                } else {
                    line
                };
                Found::Nothing(stream.position(resume))
            }
        }
    }

    /// The first match in a text that is all there.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.regex.find(text).map(|found| found.as_str())
    }
}

/// Whether a match can contain a line end.
fn spans_lines(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => false,
        HirKind::Literal(literal) => literal.0.contains(&b'\n'),
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => class
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&'\n')),
        HirKind::Class(regex_syntax::hir::Class::Bytes(class)) => class
            .iter()
            .any(|range| (range.start()..=range.end()).contains(&b'\n')),
        HirKind::Repetition(repetition) => spans_lines(&repetition.sub),
        HirKind::Capture(capture) => spans_lines(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(spans_lines),
    }
}

/// Whether a match that reaches the end of the text could change with more text: it ends in a
/// repetition, in a look at what follows, or in alternatives of which an earlier one could yet win.
fn open(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Look(look) => !matches!(
            look,
            regex_syntax::hir::Look::Start
                | regex_syntax::hir::Look::StartLF
                | regex_syntax::hir::Look::StartCRLF
        ),
        HirKind::Repetition(repetition) => {
            let exact = repetition.max == Some(repetition.min);
            // A lazy repetition takes no more than it needs, and at the end it needs no more.
            !exact && repetition.greedy || open(&repetition.sub)
        }
        HirKind::Capture(capture) => open(&capture.sub),
        HirKind::Concat(parts) => {
            for part in parts.iter().rev() {
                if open(part) {
                    return true;
                }
                if part.properties().minimum_len() != Some(0) {
                    return false;
                }
            }
            false
        }
        HirKind::Alternation(parts) => {
            if parts.iter().any(open) {
                return true;
            }
            let literals: Option<Vec<&[u8]>> = parts
                .iter()
                .map(|part| match part.kind() {
                    HirKind::Literal(literal) => Some(&*literal.0),
                    HirKind::Empty => Some(&[][..]),
                    _ => None,
                })
                .collect();
            match literals {
                Some(literals) => literals.iter().enumerate().any(|(index, later)| {
                    literals[..index]
                        .iter()
                        .any(|earlier| earlier.starts_with(later))
                }),
                // All of one length, none can outgrow another.
                None => {
                    let lengths = |part: &Hir| {
                        let properties = part.properties();
                        (properties.minimum_len(), properties.maximum_len())
                    };
                    let first = parts.first().map(lengths);
                    !first.is_some_and(|(minimum, maximum)| {
                        minimum == maximum
                            && parts.iter().all(|part| lengths(part) == (minimum, maximum))
                    })
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).expect("a pattern")
    }

    #[test]
    fn a_match_that_more_text_could_change_is_tentative() {
        let cases = [
            (r"^Pass$", true),
            (r"\d+", true),
            (r"done", false),
            (r"\d+ passing", false),
            (r"passing|failing|Tests failed", false),
            (r"fail|failed", false),
            (r"failed|fail", true),
            (r"(\d+) pass(ing)?", true),
            (r"a.*?b", false),
            (r"a\b", true),
            (r"\$ ?", true),
            (r"[>$] ", false),
            (r">>>|\$|completed", false),
            (r"x{3}", false),
            (r"(?i)done", false),
        ];
        for (text, open) in cases {
            assert_eq!(pattern(text).open, open, "{text}");
        }
    }

    #[test]
    fn a_search_goes_on_at_the_last_line() {
        let mut stream = Stream::new(4096);
        stream.push("one\ntwo\nthr");
        let single = pattern("three");
        assert_eq!(single.search(&stream, 0, false), Found::Nothing(8));
        stream.push("ee\n");
        assert_eq!(
            single.search(&stream, 8, false),
            Found::Match("three".to_owned(), 13)
        );
        assert_eq!(
            pattern(r"two\s+four").search(&stream, 0, false),
            Found::Nothing(0)
        );
    }

    #[test]
    fn the_end_of_a_line_counts_when_it_is_certain() {
        let mut stream = Stream::new(4096);
        stream.push("Pass");
        let pass = pattern("^Pass$");
        assert_eq!(
            pass.search(&stream, 0, false),
            Found::Tentative("Pass".to_owned(), 4)
        );
        stream.push("word: ");
        assert_eq!(pass.search(&stream, 0, false), Found::Nothing(0));
        stream.push("\nPass\n");
        assert_eq!(
            pass.search(&stream, 0, false),
            Found::Match("Pass".to_owned(), 15)
        );
    }
}
