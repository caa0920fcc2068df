//! YAML text to a tree, built from the parser's events so that duplicate keys stay visible.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::{
    Entry, FileId, MAX_DEPTH, MAX_NODES, MAX_VALUE_BYTES, Scalar, Span, Spanned, Style, Tree,
    Value, too_deep, too_many_nodes,
};
use crate::diagnostic::{Code, Diagnostic};

pub(super) fn parse(text: &str, file: FileId) -> Result<Tree, Diagnostic> {
    let mut builder = Builder {
        text,
        file,
        chars: Chars::new(text),
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        bytes: 0,
        kept: (0, 0),
        root: None,
    };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                let start = builder.chars.byte(span.start.index());
                let end = builder.chars.byte(span.end.index());
                builder.event(event, start, end)?;
            }
            Err(error) => return Err(builder.syntax(&error)),
        }
    }
    builder.root.ok_or_else(|| {
        Diagnostic::new(Code::Empty, Span::new(file, 0..0))
            .message("there is no definition here")
            .help("a definition has at least `steps:` or `states:`")
    })
}

/// Character indices to bytes; free for ASCII.
enum Chars {
    Ascii(usize),
    Table(Vec<u32>),
}

impl Chars {
    fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Chars::Ascii(text.len());
        }
        let ends = std::iter::once(text.len());
        let starts = text.char_indices().map(|(at, _)| at).chain(ends);
        Chars::Table(starts.filter_map(|at| u32::try_from(at).ok()).collect())
    }

    fn byte(&self, index: usize) -> usize {
        match self {
            Chars::Ascii(len) => index.min(*len),
            Chars::Table(table) => table
                .get(index)
                .or(table.last())
                .map_or(0, |at| *at as usize),
        }
    }
}

struct Builder<'a> {
    text: &'a str,
    file: FileId,
    chars: Chars,
    open: Vec<Open>,
    anchors: HashMap<usize, Tree>,
    nodes: usize,
    bytes: usize,
    /// Keys and values of everything that has an anchor, and their bytes.
    kept: (usize, usize),
    root: Option<Tree>,
}

/// A list or map under construction.
struct Open {
    start: usize,
    anchor: usize,
    value: Partial,
}

enum Partial {
    List(Vec<Tree>),
    Map(Vec<Entry>, Option<Spanned<String>>),
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, start: usize, end: usize) -> Result<(), Diagnostic> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let start = self.skip_properties(start, end, style);
                let (start, end) = match self.text[start..end].trim_end().len() {
                    // A block without lines stands at its `|`.
                    0 if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) => {
                        let head = self.text[..start].trim_end();
                        let sign = head.rfind(char::is_whitespace).map_or(0, |at| at + 1);
                        (sign, head.len())
                    }
                    length => (start, start + length),
                };
                let quoted = style != ScalarStyle::Plain;
                let as_text = tag.as_ref().is_some_and(|tag| tag.suffix == "str");
                let value = match resolve(&text) {
                    Some(value) if !quoted && !as_text => value,
                    _ => Value::Str(Scalar {
                        text: text.into_owned(),
                        style: match style {
                            ScalarStyle::Plain => Style::Plain,
                            ScalarStyle::SingleQuoted => Style::Single,
                            ScalarStyle::DoubleQuoted => Style::Double,
                            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                        },
                    }),
                };
                let span = Span::new(self.file, start..end);
                self.add(Tree { value, span }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.push(start, anchor, Partial::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                self.push(start, anchor, Partial::Map(Vec::new(), None))
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else {
                    return Ok(());
                };
                let value = match open.value {
                    Partial::List(items) => Value::List(items),
                    Partial::Map(entries, _) => Value::Map(entries),
                };
                let last = match &value {
                    Value::List(items) => items.last().map(|item| item.span.end),
                    Value::Map(entries) => entries.last().map(|entry| entry.value.span.end),
                    _ => None,
                };
                // A block collection ends where its last value does, not at the next line.
                let end = match last {
                    Some(last) if start == end => last as usize,
                    _ => end,
                };
                let span = Span::new(self.file, open.start..end);
                self.add(Tree { value, span }, open.anchor)
            }
            Event::Alias(anchor) => {
                let here = Span::new(self.file, start..end);
                let Some(tree) = self.anchors.get(&anchor).cloned() else {
                    return Err(Diagnostic::new(Code::Syntax, here)
                        .message("this alias stands inside the value it names")
                        .help("write the value out"));
                };
                let (nodes, bytes) = weight(&tree);
                self.nodes += nodes;
                self.bytes += bytes;
                if self.nodes > MAX_NODES || self.bytes > MAX_VALUE_BYTES {
                    return Err(too_many_nodes(here));
                }
                self.add(tree, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                let here = Span::new(self.file, start..end);
                Err(Diagnostic::new(Code::Syntax, here)
                    .message("a second document starts here")
                    .help("a file holds one definition; move this one to a file of its own"))
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    /// The parser counts an anchor or tag as part of the scalar behind it.
    fn skip_properties(&self, start: usize, end: usize, style: ScalarStyle) -> usize {
        let mut at = start;
        if style == ScalarStyle::Plain || self.text[at..end].starts_with(['&', '!']) {
            while let Some(rest) = self.text.get(at..end)
                && rest.starts_with(['&', '!'])
            {
                let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
                let space = rest[word..].len() - rest[word..].trim_start().len();
                at += word + space;
            }
        }
        at
    }

    fn push(&mut self, start: usize, anchor: usize, value: Partial) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(Span::new(self.file, start..start + 1)));
        }
        self.open.push(Open {
            start,
            anchor,
            value,
        });
        Ok(())
    }

    fn add(&mut self, tree: Tree, anchor: usize) -> Result<(), Diagnostic> {
        self.nodes += 1;
        if let Value::Str(scalar) = &tree.value {
            self.bytes += scalar.text.len();
        }
        if self.nodes > MAX_NODES || self.bytes > MAX_VALUE_BYTES {
            return Err(too_many_nodes(tree.span));
        }
        if anchor > 0 {
            // Anchors inside anchors are kept several times.
            self.kept = sum(self.kept, weight(&tree));
            if self.kept.0 > MAX_NODES || self.kept.1 > MAX_VALUE_BYTES {
                return Err(too_many_nodes(tree.span));
            }
            self.anchors.insert(anchor, tree.clone());
        }
        let text = self.text;
        match self.open.last_mut().map(|open| &mut open.value) {
            None => self.root = Some(tree),
            Some(Partial::List(items)) => items.push(tree),
            Some(Partial::Map(entries, pending)) => match pending.take() {
                Some(key) => entries.push(Entry { key, value: tree }),
                None => *pending = Some(key(tree, text)?),
            },
        }
        Ok(())
    }

    fn syntax(&self, error: &ScanError) -> Diagnostic {
        let at = self.chars.byte(error.marker().index());
        let rest = &self.text[at.min(self.text.len())..];
        let width = rest.chars().next().map_or(0, char::len_utf8);
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = &self.text[line_start..];
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let indenting = line[..indent].find('\t').map(|tab| line_start + tab);
        let later = || {
            error
                .info()
                .contains("tab")
                .then(|| Some(at + rest.find('\t')?))
        };
        if let Some(tab) = indenting.or_else(|| later().flatten()) {
            return Diagnostic::new(Code::Syntax, Span::new(self.file, tab..tab + 1))
                .message("a tab indents this line")
                .label("YAML indents with spaces only")
                .help("replace the tab with spaces");
        }
        let here = Span::new(self.file, at..at + width);
        // The scanner reads ahead of the events, and has a limit of its own.
        if error.info() == "recursion limit exceeded" {
            return too_deep(here);
        }
        // `key:` alone, deeper than the value it follows, is read as more of that value.
        let key = self.text.get(line_start + indent..at).unwrap_or_default();
        let key = key.trim_end();
        let keyed = !key.is_empty()
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        if keyed && error.info().contains("mapping values are not allowed") {
            return Diagnostic::new(Code::Syntax, Span::new(self.file, line_start + indent..at))
                .message(format!("`{key}` is indented deeper than the key before it"))
                .label("read as more of the value above")
                .help("let it start in the column of the keys it belongs to");
        }
        let (message, help) = explain(error.info(), rest);
        Diagnostic::new(Code::Syntax, here)
            .message(message)
            .help(help)
    }
}

/// What the parser's words mean for somebody who writes a definition, and what to do.
fn explain(said: &str, rest: &str) -> (String, String) {
    let first = rest.chars().next();
    match first {
        Some(sign @ ('@' | '`' | '%')) if said.contains("unexpected character") => {
            return (
                match sign {
                    '`' => "a value cannot start with a back-quote".to_owned(),
                    _ => format!("a value cannot start with `{sign}`"),
                },
                "put it in quotes".to_owned(),
            );
        }
        Some(':') if said.contains("mapping values are not allowed") => {
            return (
                "a `:` stands inside a text without quotes".to_owned(),
                "put the text in quotes, or the key on a line of its own".to_owned(),
            );
        }
        None => {
            return (
                format!("the text ends too early: {said}"),
                "close the bracket or the quote that is still open".to_owned(),
            );
        }
        _ => {}
    }
    let help = if said.contains("flow") && rest.starts_with("{{") {
        "put the text with `{{ … }}` in quotes: inside `{…}` and `[…]` a brace begins a map"
    } else if said.contains("flow") {
        "close the `[` or `{` that is still open above"
    } else if said.contains("quoted scalar") {
        "close this quote, and indent every line of the text"
    } else if said.contains("unknown anchor") {
        "name it with `&` before it is used; a text that starts with `*` needs quotes"
    } else {
        "check the indentation and the quotes up to here"
    };
    (format!("this is not YAML: {said}"), help.to_owned())
}

/// Keys and values of a tree, and bytes of its texts.
fn weight(tree: &Tree) -> (usize, usize) {
    match &tree.value {
        Value::Str(scalar) => (1, scalar.text.len()),
        Value::List(items) => items.iter().map(weight).fold((1, 0), sum),
        Value::Map(entries) => entries
            .iter()
            .map(|entry| sum(weight(&entry.value), (1, entry.key.value.len())))
            .fold((1, 0), sum),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => (1, 0),
    }
}

fn sum(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0 + b.0, a.1 + b.1)
}

fn key(tree: Tree, text: &str) -> Result<Spanned<String>, Diagnostic> {
    let span = tree.span;
    let value = match tree.value {
        Value::Str(scalar) => scalar.text,
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            text.get(span.range()).unwrap_or_default().to_owned()
        }
        Value::List(_) | Value::Map(_) => {
            let braces = text[..span.start as usize].ends_with('{');
            return Err(Diagnostic::new(Code::Syntax, span)
                .message("a list or map cannot be a key")
                .help(if braces {
                    "a template that starts a value needs quotes: `\"{{ … }}\"`"
                } else {
                    "a key is a text"
                }));
        }
    };
    Ok(Spanned { value, span })
}

/// What a plain scalar means under the core schema of YAML 1.2; `None` for text.
fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Some(Value::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Some(Value::Float(f64::NEG_INFINITY)),
        ".nan" | ".NaN" | ".NAN" => return Some(Value::Float(f64::NAN)),
        _ => {}
    }
    let first = text.as_bytes()[0];
    if !(first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.')) {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Value::Int);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Value::Int);
    }
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    if !text.chars().all(numeric) || !text.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    match text.parse() {
        Ok(whole) => Some(Value::Int(whole)),
        Err(_) => text.parse().ok().map(Value::Float),
    }
}
