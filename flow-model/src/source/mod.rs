//! Source text to a tree in which every key and value knows where it stands.
#![allow(
    clippy::result_large_err,
    reason = "reading stops at its one finding, so its size is paid once"
)]

mod json;
mod locate;
mod yaml;

use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic};

/// A source text may have this many bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Lists and maps may be nested this deep.
pub const MAX_DEPTH: usize = 100;
/// A tree may have this many keys and values, with every alias written out.
pub const MAX_NODES: usize = 50_000;
/// All keys and values together may have this many bytes, with every alias written out.
pub const MAX_VALUE_BYTES: usize = 4 * MAX_BYTES;

/// Which of a definition's sources something stands in: the definition itself, or an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(crate) u16);

/// A range of bytes in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The source.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(file: FileId, range: Range<usize>) -> Self {
        let clamp = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Span {
            file,
            start: clamp(range.start),
            end: clamp(range.end.max(range.start)),
        }
    }

    /// The bytes as a range.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A line and a column, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A text to read, with its name.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    /// Characters before each block of [`BLOCK`] bytes, so that columns of a long line are cheap.
    blocks: Vec<usize>,
    origin: Origin,
    title: Option<String>,
}

const BLOCK: usize = 1024;

/// How a source came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A person or program wrote this text.
    Text,
    /// It was a JSON value; the text is ours, so findings are told by path.
    Value,
}

impl Source {
    /// A YAML or JSON text. The name is what findings call it: a path, as a rule.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::with_origin(name.into(), text.into(), Origin::Text)
    }

    /// A JSON value, such as an argument of a tool call. Its findings have paths.
    pub fn from_value(name: impl Into<String>, value: &serde_json::Value) -> Self {
        Self::with_origin(name.into(), format!("{value:#}"), Origin::Value)
    }

    /// Bytes that should be UTF-8.
    ///
    /// # Errors
    ///
    /// A finding that points at the first byte that is not, and the source in which what can be
    /// read stands.
    pub fn from_bytes(
        name: impl Into<String>,
        bytes: &[u8],
    ) -> Result<Self, Box<(Self, Diagnostic)>> {
        let name = name.into();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => {
                let good = error.valid_up_to();
                let head = &bytes[..bytes.len().min(MAX_BYTES)];
                let source = Self::new(name, String::from_utf8_lossy(head));
                let byte = bytes.get(good).copied().unwrap_or_default();
                let at = good.min(source.text.len());
                let end = (at + '\u{FFFD}'.len_utf8()).min(source.text.len());
                let finding = Diagnostic::new(Code::NotUtf8, Span::new(FileId(0), at..end))
                    .message(format!("byte {good} ({byte:#04x}) is not UTF-8"))
                    .help("save the file as UTF-8");
                Err(Box::new((source, finding)))
            }
        }
    }

    fn with_origin(name: String, text: String, origin: Origin) -> Self {
        // What is longer is not read, so that nothing behind it is ever pointed at.
        let head = &text[..floor_boundary(&text, MAX_BYTES)];
        let line_starts = std::iter::once(0)
            .chain(head.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        let mut blocks = vec![0];
        let mut characters = 0;
        for block in head.as_bytes().chunks(BLOCK) {
            characters += starts(block);
            blocks.push(characters);
        }
        Source {
            name,
            text,
            line_starts,
            blocks,
            origin,
            title: None,
        }
    }

    /// The same, found by another name than its file's: `a:b` for `a/b.yaml`.
    #[must_use]
    pub fn titled(mut self, name: impl Into<String>) -> Self {
        self.title = Some(name.into());
        self
    }

    /// What findings call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How it came to be.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// What it is found by, else the name of the file without directories and extension: a
    /// workflow's name when it has none.
    #[must_use]
    pub fn stem(&self) -> &str {
        if let Some(title) = &self.title {
            return title;
        }
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or_default();
        match file.rsplit_once('.') {
            Some((stem, "yaml" | "yml" | "json")) => stem,
            _ => file,
        }
    }

    /// The text as a tree.
    ///
    /// # Errors
    ///
    /// The one finding that stopped the reading.
    pub fn tree(&self) -> Result<Tree, Box<Diagnostic>> {
        parse(self, FileId(0)).map_err(Box::new)
    }

    /// The line and column of a byte.
    #[must_use]
    pub fn position(&self, byte: usize) -> Position {
        let byte = floor_boundary(&self.text, byte.min(MAX_BYTES));
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = self.line_starts[line - 1];
        Position {
            line,
            column: self.characters(byte) - self.characters(start) + 1,
        }
    }

    /// How many bytes the line of a byte has, with its end.
    pub(crate) fn line_len(&self, byte: usize) -> usize {
        let next = self.line_starts.partition_point(|start| *start <= byte);
        let end = self.line_starts.get(next).copied();
        let start = self.line_starts[next.saturating_sub(1)];
        end.unwrap_or(self.text.len()) - start
    }

    /// How many characters begin before a byte.
    fn characters(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        self.blocks[block] + starts(&self.text.as_bytes()[block * BLOCK..byte])
    }

    /// The part of a range that stands on its first line, without the line's end.
    #[must_use]
    pub fn first_line(&self, span: Span) -> Span {
        let range = span.range();
        let start = floor_boundary(&self.text, range.start);
        let end = floor_boundary(&self.text, range.end).max(start);
        let text = &self.text[start..end];
        let line = text.split(['\n', '\r']).next().unwrap_or_default();
        Span::new(span.file, start..start + line.trim_end().len())
    }
}

/// How many characters begin in a piece of UTF-8.
fn starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| (**byte as i8) >= -0x40).count()
}

/// The nearest character boundary at or before a byte.
pub(crate) fn floor_boundary(text: &str, byte: usize) -> usize {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A value of the source with everything below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// What it is.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

/// What a value of the source is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Str(Scalar),
    /// A list.
    List(Vec<Tree>),
    /// A map in the order written, duplicates included.
    Map(Vec<Entry>),
}

/// A text and how it was written, so that a part of it can be found in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The text.
    pub text: String,
    /// How it was written.
    pub style: Style,
}

/// How a text was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In `'…'`.
    Single,
    /// In `"…"`, in YAML or JSON.
    Double,
    /// After `|` or `>`.
    Block,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Spanned<String>,
    /// The value.
    pub value: Tree,
}

impl Tree {
    /// What it is, as a word for messages.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Str(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(scalar) => Some(&scalar.text),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Map(_) => None,
        }
    }

    /// The entries, if it is a map.
    #[must_use]
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The members, if it is a list.
    #[must_use]
    pub fn items(&self) -> Option<&[Tree]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The first value under a key, if it is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Tree> {
        let entry = self.entries()?.iter().find(|e| e.key.value == key)?;
        Some(&entry.value)
    }

    /// The same as JSON; the last of duplicate keys wins.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) => Json::from(*value),
            Value::Float(value) => Json::from(*value),
            Value::Str(scalar) => Json::String(scalar.text.clone()),
            Value::List(items) => Json::Array(items.iter().map(Tree::to_json).collect()),
            Value::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.value.clone(), entry.value.to_json()))
                    .collect(),
            ),
        }
    }
}

/// Reads a source into a tree.
///
/// # Errors
///
/// The one finding that stopped the reading.
pub(crate) fn parse(source: &Source, file: FileId) -> Result<Tree, Diagnostic> {
    let text = source.text();
    if text.len() > MAX_BYTES {
        let whole = Span::new(file, 0..0);
        return Err(Diagnostic::new(Code::TooLarge, whole)
            .message(format!("the definition has more than {MAX_BYTES} bytes"))
            .help("split it: move tasks into files of their own and list them under `imports`"));
    }
    // A text that is JSON throughout is read as JSON, whose tabs and surrogate pairs YAML refuses.
    let begins = text.trim_start();
    if begins.starts_with('{') || (begins.starts_with('/') && begins.contains('{')) {
        match json::parse(text, file) {
            Ok(tree) => return tree.checked(file),
            Err(json::NotJson::Comment(range)) => {
                return Err(Diagnostic::new(Code::Syntax, Span::new(file, range))
                    .message("JSON has no comments")
                    .label("a comment")
                    .help("remove it, or write YAML, where `#` begins a comment"));
            }
            Err(json::NotJson::Other) => {}
        }
    }
    yaml::parse(text, file)
}

/// A tree that may still be too large.
struct Unbounded {
    tree: Tree,
    nodes: usize,
}

impl Unbounded {
    fn checked(self, file: FileId) -> Result<Tree, Diagnostic> {
        if self.nodes > MAX_NODES {
            return Err(too_many_nodes(Span::new(file, 0..0)));
        }
        Ok(self.tree)
    }
}

fn too_many_nodes(span: Span) -> Diagnostic {
    Diagnostic::new(Code::TooLarge, span)
        .message(format!(
            "the definition has more than {MAX_NODES} keys and values"
        ))
        .help("aliases count as often as they are used; write less, or pass data as an input")
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new(Code::TooLarge, span)
        .message(format!(
            "lists and maps are nested more than {MAX_DEPTH} deep"
        ))
        .help("move inner steps into `tasks` or another workflow")
}

pub(crate) use locate::Places;
