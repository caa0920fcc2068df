//! Cutting a template into literal text, interpolations and statements.
//!
//! One pass over the bytes, without recursion. It also finds what would make the parsers behind it
//! overflow the stack, so that hostile text never reaches them.

use std::ops::Range;

use super::{Dialect, Fault};

/// One piece of a template. Together the pieces cover the whole text, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(Range<usize>),
    /// `{{ … }}`.
    Interpolation(Tag),
    /// `{% … %}`, in Jinja only.
    Statement(Tag),
    /// `{% raw %}…{% endraw %}`, in Jinja only.
    Raw {
        /// The whole piece.
        range: Range<usize>,
        /// What it protects.
        inner: Range<usize>,
    },
}

/// An interpolation or a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// With its delimiters; to the end of the text when the closing one is missing.
    pub range: Range<usize>,
    /// Between the delimiters and their whitespace control, without surrounding whitespace.
    pub inner: Range<usize>,
    /// Whether the closing delimiter is there.
    pub closed: bool,
    pub(super) flaw: Option<Flaw>,
}

/// What the scanner alone can tell is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The closing delimiter is missing; the range is that of the opening one.
    Open(Range<usize>),
    /// A string without its closing quote.
    String(Range<usize>),
    /// A bracket that is never closed.
    Bracket(Range<usize>, char),
    /// More nesting than [`DEEPEST`]; the range is where it goes too far.
    Deep(Range<usize>),
    /// More than [`LONGEST`] bytes.
    Long(Range<usize>),
}

/// An expression may not be longer than this many bytes.
pub(super) const LONGEST: usize = 64 * 1024;
/// Brackets may not nest deeper than this. A level costs minijinja 15 KiB of stack unoptimised.
const DEEPEST: usize = 64;
/// Operators may not nest heavier than this in sum, each weighing what it costs of the stack.
const HEAVIEST: usize = 800;

impl Piece {
    /// The whole piece.
    pub fn range(&self) -> Range<usize> {
        match self {
            Piece::Text(range) | Piece::Raw { range, .. } => range.clone(),
            Piece::Interpolation(tag) | Piece::Statement(tag) => tag.range.clone(),
        }
    }
}

impl Flaw {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Flaw::Open(range) => Fault::syntax("this is never closed", range.clone())
                .with_help("`{{` needs a `}}`, `{%` a `%}`, `{% raw %}` an `{% endraw %}`"),
            Flaw::String(range) => Fault::syntax("this string is never closed", range.clone()),
            Flaw::Bracket(range, bracket) => {
                Fault::syntax(format!("`{bracket}` is never closed"), range.clone())
            }
            Flaw::Deep(range) => {
                Fault::syntax("this expression is nested too deeply", range.clone())
                    .with_help("compute a part of it in a step of its own")
            }
            Flaw::Long(range) => {
                Fault::syntax("this expression is longer than 64 KiB", range.clone())
            }
        }
    }
}

/// Cuts `text` into pieces.
///
/// ```
/// use flow_model::expression::{pieces, Dialect, Piece};
/// let text = "v{{ version }}";
/// let found = pieces(text, Dialect::Jinja);
/// assert_eq!(found[0], Piece::Text(0..1));
/// assert!(matches!(&found[1], Piece::Interpolation(tag) if &text[tag.inner.clone()] == "version"));
/// ```
pub fn pieces(text: &str, dialect: Dialect) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((start, statement)) = opening(text, at, dialect) {
        if start > at {
            found.push(Piece::Text(at..start));
        }
        if let Some(raw) = statement.then(|| raw(text, start)).flatten() {
            at = raw.range().end;
            found.push(raw);
            continue;
        }
        let close = if statement {
            Close::Statement
        } else {
            Close::Interpolation
        };
        let tag = tag(text, start, close, dialect);
        at = tag.range.end;
        found.push(match close {
            Close::Statement => Piece::Statement(tag),
            _ => Piece::Interpolation(tag),
        });
    }
    if at < text.len() {
        found.push(Piece::Text(at..text.len()));
    }
    found
}

/// What is wrong with a bare expression before any parser has seen it.
pub(super) fn flaw(text: &str, dialect: Dialect) -> Option<Flaw> {
    let scan = scan(text, 0, Close::End, dialect);
    scan.flaw
        .or_else(|| (text.len() > LONGEST).then_some(Flaw::Long(0..text.len())))
}

/// Where single `|` stand in a JavaScript expression, outside strings and brackets.
pub(super) fn pipes(text: &str) -> Vec<usize> {
    scan(text, 0, Close::End, Dialect::Js).pipes
}

/// The place of the next `{{` or `{%`, and whether it is the latter.
fn opening(text: &str, from: usize, dialect: Dialect) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    (from..bytes.len().saturating_sub(1)).find_map(|at| match &bytes[at..at + 2] {
        b"{{" => Some((at, false)),
        b"{%" if dialect == Dialect::Jinja => Some((at, true)),
        _ => None,
    })
}

/// The raw block that starts at `start`, or a statement without an end if nothing closes it.
fn raw(text: &str, start: usize) -> Option<Piece> {
    let inner = start + word(&text[start..], "raw")?;
    let mut at = inner;
    while let Some(found) = text[at..].find("{%") {
        let close = at + found;
        if let Some(length) = word(&text[close..], "endraw") {
            return Some(Piece::Raw {
                range: start..close + length,
                inner: inner..close,
            });
        }
        at = close + 2;
    }
    let flaw = Some(Flaw::Open(start..inner));
    let range = start..text.len();
    Some(Piece::Statement(Tag {
        inner: trimmed(text, inner..text.len()),
        range,
        closed: false,
        flaw,
    }))
}

/// The length of `{% name %}` at the start of `text`.
fn word(text: &str, name: &str) -> Option<usize> {
    let rest = text.strip_prefix("{%")?;
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    let rest = rest
        .trim_ascii_start()
        .strip_prefix(name)?
        .trim_ascii_start();
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    Some(text.len() - rest.strip_prefix("%}")?.len())
}

fn tag(text: &str, start: usize, close: Close, dialect: Dialect) -> Tag {
    let bytes = text.as_bytes();
    let controlled = dialect == Dialect::Jinja && matches!(bytes.get(start + 2), Some(b'-' | b'+'));
    let from = start + 2 + usize::from(controlled);
    let scan = scan(text, from, close, dialect);
    let inner = trimmed(text, from..scan.inner);
    let mut flaw = scan.flaw;
    if scan.end.is_none() {
        flaw = flaw.or(Some(Flaw::Open(start..start + 2)));
    } else if flaw.is_none() && inner.len() > LONGEST {
        flaw = Some(Flaw::Long(inner.clone()));
    }
    Tag {
        range: start..scan.end.unwrap_or(text.len()),
        inner,
        closed: scan.end.is_some(),
        flaw,
    }
}

/// `range` without the whitespace at its ends.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// What ends an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Close {
    Interpolation,
    Statement,
    End,
}

/// How far an expression goes.
struct Scan {
    /// Where the expression ends.
    inner: usize,
    /// Where its closing delimiter ends, if it has one.
    end: Option<usize>,
    flaw: Option<Flaw>,
    /// Where single `|` stand outside all brackets.
    pipes: Vec<usize>,
}

/// An open bracket: which, where, and the weight of the operators seen directly inside it.
struct Level {
    bracket: u8,
    at: usize,
    weight: usize,
}

/// Reads tokens from `from` to the end of the expression.
fn scan(text: &str, from: usize, close: Close, dialect: Dialect) -> Scan {
    let bytes = text.as_bytes();
    let js = dialect == Dialect::Js;
    let mut crossed: Option<(usize, u8)> = None;
    let mut levels = vec![Level {
        bracket: 0,
        at: from,
        weight: 0,
    }];
    let mut nesting = Nesting {
        total: 0,
        kept: 0,
        flaw: None,
    };
    let mut string = None;
    let mut pipes = Vec::new();
    // Whether a `/` would divide: after an operand it does, elsewhere it opens a JavaScript regex.
    let mut operand = false;
    let mut fresh_line = true;
    let mut at = from;
    let mut ended = None;

    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let top = levels.last().map_or(0, |level| level.bracket);
        match byte {
            b'\n' => {
                fresh_line = true;
                at += 1;
                continue;
            }
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' | b'+'
                if close != Close::End
                    && !js
                    && levels.len() == 1
                    && closes(bytes, at + 1, close) =>
            {
                ended = Some((at, at + 3));
                break;
            }
            b'%' if close == Close::Statement && next == Some(b'}') => {
                ended = Some((at, at + 2));
                break;
            }
            b'}' if !matches!(top, b'{' | b'$') && closes(bytes, at, close) => {
                ended = Some((at, at + 2));
                break;
            }
            b'\'' | b'"' => match quoted(bytes, at, js) {
                Some(end) => {
                    at = end;
                    operand = true;
                }
                None => {
                    let open = open_string(text, at, close);
                    string = Some(Flaw::String(open.0));
                    ended = open.1;
                    at = text.len();
                    break;
                }
            },
            b'`' if js => match literal(bytes, at + 1) {
                Literal::Closed(end) => {
                    at = end;
                    operand = true;
                }
                Literal::Hole(end) => {
                    nesting.open(&mut levels, b'$', end - 2);
                    at = end;
                    operand = false;
                }
                Literal::Open => {
                    let open = open_string(text, at, close);
                    string = Some(Flaw::String(open.0));
                    ended = open.1;
                    at = text.len();
                    break;
                }
            },
            b'/' if js && next == Some(b'/') => {
                while bytes.get(at).is_some_and(|&b| b != b'\n') && !closes(bytes, at, close) {
                    at += 1;
                }
            }
            b'/' if js && next == Some(b'*') => {
                at = text[at + 2..]
                    .find("*/")
                    .map_or(text.len(), |end| at + 2 + end + 2);
            }
            b'/' if js && !operand => match regex(bytes, at) {
                Some(end) => {
                    at = end;
                    operand = true;
                }
                None => at += 1,
            },
            b'(' | b'[' | b'{' => {
                nesting.open(&mut levels, byte, at);
                at += 1;
                operand = false;
            }
            b'}' if top == b'$' => {
                nesting.close(&mut levels);
                match literal(bytes, at + 1) {
                    Literal::Closed(end) => {
                        at = end;
                        operand = true;
                    }
                    Literal::Hole(end) => {
                        nesting.open(&mut levels, b'$', end - 2);
                        at = end;
                        operand = false;
                    }
                    Literal::Open => {
                        string = Some(Flaw::String(at..text.len()));
                        at = text.len();
                    }
                }
            }
            b')' | b']' | b'}' => {
                if matches!((top, byte), (b'(', b')') | (b'[', b']') | (b'{', b'}')) {
                    nesting.close(&mut levels);
                } else if crossed.is_none() && matches!(top, b'(' | b'[' | b'{') {
                    crossed = levels.last().map(|level| (level.at, level.bracket));
                }
                at += 1;
                operand = true;
            }
            b'|' if next == Some(b'|') => {
                nesting.add(&mut levels, 1, at..at + 2);
                at += 2;
                operand = false;
            }
            b'|' => {
                if levels.len() == 1 && next != Some(b'=') {
                    pipes.push(at);
                }
                nesting.add(&mut levels, 1, at..at + 1);
                at += 1;
                operand = false;
            }
            b',' | b';' => {
                nesting.reset(&mut levels);
                at += 1;
                operand = false;
            }
            b':' if !js => {
                nesting.reset(&mut levels);
                at += 1;
            }
            _ if word_byte(byte) => {
                let start = at;
                while bytes.get(at).copied().is_some_and(word_byte) {
                    at += 1;
                }
                let word = &bytes[start..at];
                operand = true;
                match weight(word, js) {
                    Weight::Operand => {}
                    Weight::Operator(weight) => {
                        operand = false;
                        nesting.add(&mut levels, weight, start..at);
                    }
                    Weight::Kept(weight) => {
                        operand = false;
                        nesting.keep(weight, start..at);
                    }
                    Weight::Statement => {
                        operand = false;
                        if fresh_line {
                            nesting.reset(&mut levels);
                        }
                    }
                }
            }
            _ => {
                let heavy = !js && byte == b'-';
                nesting.add(&mut levels, if heavy { 4 } else { 1 }, at..at + 1);
                at += 1;
                operand = false;
            }
        }
        fresh_line = false;
    }

    let (inner, end) = match ended {
        Some((inner, end)) => (inner, Some(end)),
        None => (at.min(text.len()), None),
    };
    // An unclosed bracket explains a missing delimiter only if nothing else does.
    let bracket = levels.last().filter(|level| level.bracket != 0);
    let bracket = bracket.filter(|_| end.is_some() || close == Close::End);
    let flaw = nesting.flaw.or(string).or_else(|| {
        bracket.map(|level| {
            // The first one that another's end crossed is the one that was forgotten.
            let (at, bracket) = crossed.unwrap_or((level.at, level.bracket));
            let length = if bracket == b'$' { 2 } else { 1 };
            let bracket = if bracket == b'$' {
                '{'
            } else {
                bracket as char
            };
            Flaw::Bracket(at..at + length.min(text.len() - at), bracket)
        })
    });
    Scan {
        inner,
        end,
        flaw,
        pipes,
    }
}

/// An upper bound of how deep the parsers would recurse at the current place.
struct Nesting {
    total: usize,
    kept: usize,
    flaw: Option<Flaw>,
}

impl Nesting {
    fn open(&mut self, levels: &mut Vec<Level>, bracket: u8, at: usize) {
        self.add(levels, 1, at..at + 1);
        levels.push(Level {
            bracket,
            at,
            weight: 0,
        });
        if levels.len() > DEEPEST + 1 {
            self.too_deep(at..at + 1);
        }
    }

    fn close(&mut self, levels: &mut Vec<Level>) {
        if let Some(level) = levels.pop() {
            self.total -= level.weight;
        }
    }

    fn reset(&mut self, levels: &mut [Level]) {
        if let Some(level) = levels.last_mut() {
            self.total -= level.weight;
            level.weight = 0;
        }
    }

    fn add(&mut self, levels: &mut [Level], weight: usize, range: Range<usize>) {
        if let Some(level) = levels.last_mut() {
            level.weight += weight;
            self.total += weight;
        }
        if self.total + self.kept > HEAVIEST {
            self.too_deep(range);
        }
    }

    /// `else` nests across the `;` before it, so its weight is never taken back.
    fn keep(&mut self, weight: usize, range: Range<usize>) {
        self.kept += weight;
        if self.total + self.kept > HEAVIEST {
            self.too_deep(range);
        }
    }

    fn too_deep(&mut self, range: Range<usize>) {
        self.flaw.get_or_insert(Flaw::Deep(range));
    }
}

enum Weight {
    Operand,
    Operator(usize),
    Kept(usize),
    /// A reserved word that can only begin a statement.
    Statement,
}

fn weight(word: &[u8], js: bool) -> Weight {
    if js {
        match word {
            b"new" | b"function" | b"class" | b"async" => Weight::Operator(3),
            b"typeof" | b"void" | b"delete" | b"await" | b"yield" | b"in" | b"of"
            | b"instanceof" | b"if" | b"for" | b"while" | b"do" | b"with" | b"case"
            | b"extends" => Weight::Operator(1),
            b"else" => Weight::Kept(2),
            b"const" | b"var" | b"return" | b"throw" => Weight::Statement,
            _ => Weight::Operand,
        }
    } else {
        match word {
            b"not" => Weight::Operator(4),
            b"else" => Weight::Operator(6),
            b"and" | b"or" | b"in" | b"is" | b"if" => Weight::Operator(1),
            _ => Weight::Operand,
        }
    }
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

fn closes(bytes: &[u8], at: usize, close: Close) -> bool {
    let delimiter: &[u8] = match close {
        Close::Interpolation => b"}}",
        Close::Statement => b"%}",
        Close::End => return false,
    };
    bytes.get(at..at + 2) == Some(delimiter)
}

/// The end of the string that opens at `at`.
fn quoted(bytes: &[u8], at: usize, js: bool) -> Option<usize> {
    let mut end = at + 1;
    loop {
        match *bytes.get(end)? {
            b'\\' => end += 2,
            b'\n' if js => return None,
            byte if byte == bytes[at] => return Some(end + 1),
            _ => end += 1,
        }
    }
}

/// The visible part of a string without a closing quote, and the delimiter that ends its tag.
fn open_string(text: &str, at: usize, close: Close) -> (Range<usize>, Option<(usize, usize)>) {
    let delimiter = match close {
        Close::Interpolation => text[at..].find("}}"),
        Close::Statement => text[at..].find("%}"),
        Close::End => None,
    };
    let limit = delimiter.map_or(text.len(), |end| at + end);
    let line = text[at..limit].find('\n').map_or(limit, |end| at + end);
    let shown = at + text[at..line].trim_end().len();
    (at..shown, delimiter.map(|end| (at + end, at + end + 2)))
}

enum Literal {
    /// Ends here.
    Closed(usize),
    /// Goes on with an expression, which starts here.
    Hole(usize),
    Open,
}

/// Reads a template literal from `at` to its end or its next `${`.
fn literal(bytes: &[u8], mut at: usize) -> Literal {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'`' => return Literal::Closed(at + 1),
            b'$' if bytes.get(at + 1) == Some(&b'{') => return Literal::Hole(at + 2),
            _ => at += 1,
        }
    }
    Literal::Open
}

/// The end of the regular expression that opens at `at`, on the same line.
fn regex(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    let mut class = false;
    loop {
        match *bytes.get(end)? {
            b'\\' => end += 2,
            b'\n' => return None,
            b'[' => {
                class = true;
                end += 1;
            }
            b']' => {
                class = false;
                end += 1;
            }
            b'/' if !class => return Some(end + 1),
            _ => end += 1,
        }
    }
}
