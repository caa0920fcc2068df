//! Secrets: inputs whose values a run works with and never holds.
//!
//! Wherever a secret would be, a run has a *placeholder*: the run's id and the input's name between
//! two characters that nothing else uses. Templates put it into texts like any other text, the
//! journal records it, and only a host that does something replaces it by the value, at the last
//! moment. What comes back is scrubbed: the value becomes the placeholder again. What people and
//! programs see is *masked*: `[secret token]`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::{List, Map, Value};

/// What a placeholder begins and ends with: private characters.
const OPEN: char = '\u{f8f0}';
const CLOSE: char = '\u{f8f1}';
/// Marks a placeholder that stands for the value quoted as one word of a shell.
const QUOTED: &str = "|sh";
/// Shorter values cannot be told from ordinary text, and scrubbing them would garble everything.
pub const SHORTEST: usize = 4;
/// Lines of a value with several lines that are scrubbed on their own.
const SHORTEST_LINE: usize = 8;
/// Values that are also found where a screen has broken them into rows, and parts of values that
/// are found where a text begins or ends within one. Shorter ones are too likely something else.
const SHORTEST_BROKEN: usize = 6;
const SHORTEST_PART: usize = 16;

/// Where the value of a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// An environment variable of whoever drives the run.
    Environment(String),
    /// A file, without the line break at its end.
    File(String),
    /// The definition's own default.
    Default,
    /// Somebody's memory: it is asked for again when the run goes on elsewhere.
    Hand,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Environment(name) => write!(f, "env:{name}"),
            Reference::File(path) => write!(f, "file:{path}"),
            Reference::Default => f.write_str("default"),
            Reference::Hand => f.write_str("hand"),
        }
    }
}

/// A text that refers to no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret comes from `env:NAME` or `file:PATH`")]
pub struct NoReference;

impl FromStr for Reference {
    type Err = NoReference;

    fn from_str(text: &str) -> Result<Self, NoReference> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Reference::Environment(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Reference::File(path.to_owned())),
            None if text == "default" => Ok(Reference::Default),
            None if text == "hand" => Ok(Reference::Hand),
            _ => Err(NoReference),
        }
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The environment variable that a secret input is taken from when it is not given.
#[must_use]
pub fn variable(input: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = input.chars().map(letter).collect();
    format!("{PREFIX}{name}")
}

/// What the names of variables begin with that hold secrets.
const PREFIX: &str = "FLOW_SECRET_";
/// The variable that holds what lets requests in to this process, where it serves others.
pub const TOKEN: &str = "FLOW_TOKEN";

/// Variables of this process that no program it starts is told of, unless it is given them.
pub(crate) fn withheld() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with(PREFIX) || name == TOKEN
    })
}

/// What a run has instead of a secret.
#[must_use]
pub fn placeholder(run: &str, input: &str) -> String {
    format!("{OPEN}{run}:{input}{CLOSE}")
}

/// A piece of a text: as it is, or a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text.
    Text(&'t str),
    /// A secret's place.
    Secret(Place<'t>),
    /// Part of a placeholder: an expression has taken one apart.
    Broken,
}

/// A placeholder, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'t> {
    /// The run whose input it is.
    pub run: &'t str,
    /// The input.
    pub input: &'t str,
    /// It stands for the value quoted as one word of a shell.
    pub quoted: bool,
    /// The whole placeholder.
    pub text: &'t str,
}

impl Place<'_> {
    /// What people see.
    #[must_use]
    pub fn mask(&self) -> String {
        mask_of(self.input)
    }
}

pub(crate) fn mask_of(input: &str) -> String {
    format!("[secret {input}]")
}

/// Whether a text may have placeholders in it.
#[must_use]
pub fn concerns(text: &str) -> bool {
    text.contains([OPEN, CLOSE])
}

/// Whether a value may have placeholders in its texts.
#[must_use]
pub fn concerns_value(value: &Value) -> bool {
    match value {
        Value::Str(text) => concerns(text),
        Value::List(list) => list.0.iter().any(concerns_value),
        Value::Map(map) => map
            .0
            .iter()
            .any(|(key, value)| concerns(key) || concerns_value(value)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}

/// The pieces of a text, in order.
pub fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        if first == CLOSE {
            rest = &rest[CLOSE.len_utf8()..];
            return Some(Piece::Broken);
        }
        if first != OPEN {
            let (text, after) = rest.split_at(rest.find([OPEN, CLOSE]).unwrap_or(rest.len()));
            rest = after;
            return Some(Piece::Text(text));
        }
        let inside = &rest[OPEN.len_utf8()..];
        let end = inside.find([OPEN, CLOSE]);
        let closed = end.filter(|end| inside[*end..].starts_with(CLOSE));
        let read = closed.and_then(|end| inside[..end].split_once(':').map(|it| (end, it)));
        let Some((end, (run, input))) = read else {
            rest = inside;
            return Some(Piece::Broken);
        };
        let length = OPEN.len_utf8() + end + CLOSE.len_utf8();
        let (text, after) = rest.split_at(length);
        rest = after;
        let (input, quoted) = match input.strip_suffix(QUOTED) {
            Some(input) => (input, true),
            None => (input, false),
        };
        Some(Piece::Secret(Place {
            run,
            input,
            quoted,
            text,
        }))
    })
}

/// The placeholder of the value quoted as one word of a shell; none when it is that already.
pub(crate) fn quoted(place: Place<'_>) -> Option<String> {
    (!place.quoted).then(|| format!("{OPEN}{}:{}{QUOTED}{CLOSE}", place.run, place.input))
}

/// A text as people may see it.
#[must_use]
pub fn mask(text: &str) -> Cow<'_, str> {
    if !concerns(text) {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => masked.push_str(text),
            Piece::Secret(place) => masked.push_str(&place.mask()),
            Piece::Broken => {}
        }
    }
    Cow::Owned(masked)
}

/// A value as people may see it.
#[must_use]
pub fn mask_value(value: &Value) -> Value {
    each_text(value, &|text| match mask(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(masked) => Some(masked),
    })
}

/// JSON as people may see it.
#[must_use]
pub(crate) fn mask_json(json: serde_json::Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match json {
        Json::String(text) => Json::String(mask(&text).into_owned()),
        Json::Array(items) => items.into_iter().map(mask_json).collect(),
        Json::Object(entries) => {
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| (mask(&key).into_owned(), mask_json(value)));
            Json::Object(entries.collect())
        }
        other @ (Json::Null | Json::Bool(_) | Json::Number(_)) => other,
    }
}

/// A text from outside, which cannot speak of secrets: a command may not name one by printing
/// its placeholder.
#[must_use]
pub fn foreign(text: &str) -> Cow<'_, str> {
    if concerns(text) {
        Cow::Owned(text.replace([OPEN, CLOSE], "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A value from outside.
#[must_use]
pub fn foreign_value(value: &Value) -> Value {
    each_text(value, &|text| match foreign(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    })
}

/// A value with its texts and keys replaced where `with` says by what; what has nothing to replace
/// is shared.
pub(crate) fn each_text(value: &Value, with: &dyn Fn(&str) -> Option<String>) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.clone(),
        Value::Str(text) => with(text).map_or_else(|| value.clone(), Value::text),
        Value::List(list) => {
            let items: Vec<Value> = list.0.iter().map(|item| each_text(item, with)).collect();
            if items == list.0 {
                return value.clone();
            }
            Value::List(Arc::new(List(items)))
        }
        Value::Map(map) => {
            let entries = map.0.iter().map(|(key, value)| {
                let name = with(key).map_or_else(|| key.clone(), Arc::from);
                (name, each_text(value, with))
            });
            let entries: indexmap::IndexMap<_, _> = entries.collect();
            if entries == map.0 && entries.keys().eq(map.0.keys()) {
                return value.clone();
            }
            Value::Map(Arc::new(Map(entries)))
        }
    }
}

/// Fields of what the tools of terminals answer that others have written. The rest are words of our own,
/// which mean something, whatever somebody's secret is.
const WRITTEN: [&str; 9] = [
    "error",
    "foreground",
    "match_text",
    "message",
    "output",
    "screen_content",
    "shell",
    "tail",
    "working_directory",
];

/// What a tool of terminals has answered, with the texts of others replaced where `with` says by what.
pub(crate) fn each_written(answer: &Value, with: &dyn Fn(&str) -> Option<String>) -> Value {
    match answer {
        Value::Map(map) => {
            let entries = map.0.iter().map(|(key, value)| {
                let value = match value {
                    Value::Str(_) if !WRITTEN.contains(&&**key) => value.clone(),
                    Value::Str(_) => each_text(value, with),
                    other => each_written(other, with),
                };
                (key.clone(), value)
            });
            Value::Map(Arc::new(Map(entries.collect())))
        }
        Value::List(list) => {
            let items = list.0.iter().map(|item| each_written(item, with));
            Value::List(Arc::new(List(items.collect())))
        }
        other => other.clone(),
    }
}

/// Known values, and what stands for them.
#[derive(Clone, Debug, Default)]
pub struct Scrubber {
    /// Longest first.
    patterns: Vec<Pattern>,
}

#[derive(Clone)]
pub(crate) struct Pattern {
    run: String,
    pub(crate) value: String,
    placeholder: String,
    pub(crate) mask: String,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mask)
    }
}

/// A piece of a stream.
pub(crate) enum Scrubbed<'s> {
    Bytes(&'s [u8]),
    Secret(&'s Pattern),
}

impl Scrubber {
    /// Scrubs a value from now on. Its form inside JSON, what `echo` makes of it, how shells write it
    /// in quotes, and the longer lines of a value with several, are masked as well.
    pub fn add(&mut self, run: &str, input: &str, value: &str) {
        let mut known = self.patterns.iter();
        let is_known = known.any(|known| known.value == value && known.run == run);
        if value.len() < SHORTEST || is_known {
            return;
        }
        let mask = mask_of(input);
        self.patterns.push(Pattern {
            run: run.to_owned(),
            value: value.to_owned(),
            placeholder: placeholder(run, input),
            mask: mask.clone(),
        });
        let json = serde_json::to_string(value).unwrap_or_default();
        let json = json.trim_matches('"');
        let lines = value.lines().filter(|line| line.len() >= SHORTEST_LINE);
        let mut others: Vec<String> = lines.map(str::to_owned).collect();
        others.extend([json.to_owned(), echoed(value)]);
        others.extend(in_quotes(value));
        others.sort_unstable();
        others.dedup();
        for other in others {
            if other != value {
                // Not the value itself, so nothing that could be turned into it again.
                self.patterns.push(Pattern {
                    run: run.to_owned(),
                    value: other,
                    placeholder: mask.clone(),
                    mask: mask.clone(),
                });
            }
        }
        self.patterns
            .sort_by_key(|pattern| std::cmp::Reverse(pattern.value.len()));
    }

    /// Prefers the placeholders of a run where several stand for the same value.
    pub(crate) fn preferring(&self, run: &str) -> Scrubber {
        let mut patterns = self.patterns.clone();
        patterns.sort_by_key(|it| (std::cmp::Reverse(it.value.len()), it.run != run));
        Scrubber { patterns }
    }

    /// Whether there is nothing to scrub.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether some bytes hold one of the values.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        self.find(bytes).is_some()
    }

    /// The first pattern in some bytes, the longest of those that begin there.
    fn find(&self, bytes: &[u8]) -> Option<(usize, &Pattern)> {
        let found = self.patterns.iter().filter_map(|pattern| {
            let value = pattern.value.as_bytes();
            let at = bytes.windows(value.len()).position(|at| at == value)?;
            Some((at, pattern))
        });
        found.min_by_key(|(at, _)| *at)
    }

    /// The first place in a text that must not stay, and what stands for it: a value, or what a
    /// screen has made of one.
    fn first<'s>(&'s self, text: &str, is_begin: bool) -> Option<(Range<usize>, &'s str)> {
        let bytes = text.as_bytes();
        let whole = self.find(bytes);
        let whole = whole.map(|(at, it)| (at..at + it.value.len(), it.placeholder.as_str()));
        if !text.contains('\n') && text.len() < SHORTEST_PART {
            return whole;
        }
        let values = || self.patterns.iter().map(|it| (it.value.as_bytes(), it));
        let begin = || values().find_map(|(value, it)| Some((0..begun(bytes, value)?, it)));
        let is_begin = is_begin && whole.as_ref().is_none_or(|(at, _)| at.start > 0);
        let begin = is_begin.then(begin).flatten();
        let broken = || {
            // An earlier one, or the longest of those that begin there.
            let until = whole.as_ref().map_or(bytes.len(), |(at, _)| at.start);
            (0..until).find_map(|at| {
                let mut found = values().filter_map(|(value, pattern)| {
                    let end = at + broken(&bytes[at..], value)?;
                    Some((at..end, pattern))
                });
                found.next()
            })
        };
        // What a screen shows is masked, not to be turned into the value again.
        let shown = begin.or_else(broken);
        let shown = shown.map(|(at, pattern)| (at, pattern.mask.as_str()));
        shown.or(whole)
    }

    /// A text with placeholders for the values in it.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut scrubbed = String::with_capacity(text.len());
        let mut is_changed = false;
        let mut is_begin = true;
        for piece in pieces(text) {
            match piece {
                Piece::Secret(place) => scrubbed.push_str(place.text),
                Piece::Broken => {}
                Piece::Text(mut rest) => {
                    while let Some((at, instead)) = self.first(rest, is_begin) {
                        scrubbed.push_str(&rest[..at.start]);
                        scrubbed.push_str(instead);
                        rest = &rest[at.end..];
                        (is_changed, is_begin) = (true, false);
                    }
                    scrubbed.push_str(rest);
                }
            }
            is_begin = false;
        }
        is_changed.then_some(scrubbed)
    }

    /// A value with placeholders for the values in it.
    #[must_use]
    pub fn value(&self, value: &Value) -> Value {
        if self.is_empty() {
            return value.clone();
        }
        each_text(value, &|text| self.text(text))
    }

    /// Scrubs what comes in pieces. A value that two pieces share is found as well.
    pub(crate) fn stream(&self) -> Stream<'_> {
        Stream {
            scrubber: self,
            held: Vec::new(),
        }
    }
}

/// How many bytes a value takes at the start of a text in which a screen has broken it into rows,
/// or in which it breaks off with the text.
fn broken(text: &[u8], value: &[u8]) -> Option<usize> {
    let value = value.trim_ascii();
    if value.len() < SHORTEST_BROKEN || text.first() != value.first() {
        return None;
    }
    let blanks = |bytes: &[u8]| {
        bytes
            .iter()
            .take_while(|it| it.is_ascii_whitespace())
            .count()
    };
    let (mut at, mut of) = (0, 0);
    while of < value.len() {
        match text.get(at) {
            // Of blanks a screen shows others, fewer at the end of a row, or none.
            _ if value[of].is_ascii_whitespace() => {
                of += blanks(&value[of..]);
                at += blanks(&text[at..]);
            }
            Some(byte) if *byte == value[of] => (at, of) = (at + 1, of + 1),
            Some(b'\n') if text.get(at + 1).is_none_or(|next| *next == value[of]) => at += 1,
            None if of >= SHORTEST_PART => break,
            Some(_) | None => return None,
        }
    }
    Some(at)
}

/// How many bytes the end of a value takes at the start of a text, where its beginning has scrolled
/// off a screen.
fn begun(text: &[u8], value: &[u8]) -> Option<usize> {
    let last = value.len().checked_sub(SHORTEST_PART)?;
    (1..=last)
        .filter(|from| value[*from] & 0xc0 != 0x80)
        .find_map(|from| broken(text, &value[from..]))
}

/// A value as it stands in a command: as flow types it, within single quotes, within double ones, and
/// with a backslash before all that means something to a shell.
fn in_quotes(value: &str) -> [String; 9] {
    let named = |text: String, before: &str, after: &str| {
        let mut text = text;
        for (byte, name) in [("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")] {
            text = text.replace(byte, &format!("{before}{name}{after}"));
        }
        text
    };
    let escaped = |means: fn(char) -> bool| {
        let letters = value.chars();
        let letters = letters.flat_map(|it| means(it).then_some('\\').into_iter().chain([it]));
        letters.collect()
    };
    let words = escaped(|letter| {
        letter.is_ascii_punctuation() && !"%+,-./:=@_".contains(letter) || letter == ' '
    });
    let ansi: String = escaped(|letter| matches!(letter, '\\' | '\''));
    let single = value.replace('\'', r"'\''");
    [
        crate::expression::quoted(value),
        value.replace('\'', r#"'"'"'"#),
        named(ansi, "", ""),
        named(String::clone(&words), "", ""),
        named(String::clone(&words), "$'", "'"),
        named(single.clone(), "'$'", "''"),
        single,
        escaped(|letter| matches!(letter, '\\' | '"' | '$' | '`')),
        words,
    ]
}

/// A value as `echo` of a plain shell prints it.
fn echoed(value: &str) -> String {
    let mut echoed = String::with_capacity(value.len());
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        let meant = match (letter, letters.peek()) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('a')) => '\u{7}',
            ('\\', Some('b')) => '\u{8}',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some('v')) => '\u{b}',
            ('\\', Some('\\')) => '\\',
            _ => {
                echoed.push(letter);
                continue;
            }
        };
        letters.next();
        echoed.push(meant);
    }
    echoed
}

/// A stream that is scrubbed.
pub(crate) struct Stream<'s> {
    scrubber: &'s Scrubber,
    /// What may be the beginning of a value.
    held: Vec<u8>,
}

impl Stream<'_> {
    pub(crate) fn push(&mut self, bytes: &[u8], mut give: impl FnMut(Scrubbed<'_>)) {
        if self.scrubber.is_empty() {
            return give(Scrubbed::Bytes(bytes));
        }
        self.held.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.held);
        let mut rest = all.as_slice();
        while let Some((at, pattern)) = self.scrubber.find(rest) {
            if at > 0 {
                give(Scrubbed::Bytes(&rest[..at]));
            }
            give(Scrubbed::Secret(pattern));
            rest = &rest[at + pattern.value.len()..];
        }
        let begins = |from: usize| {
            let patterns = self.scrubber.patterns.iter();
            let mut values = patterns.map(|pattern| pattern.value.as_bytes());
            values.any(|value| value.starts_with(&rest[from..]))
        };
        let longest = self
            .scrubber
            .patterns
            .first()
            .map_or(0, |it| it.value.len());
        let from = rest.len().saturating_sub(longest);
        let kept = (from..rest.len()).find(|from| begins(*from));
        let (sure, kept) = rest.split_at(kept.unwrap_or(rest.len()));
        if !sure.is_empty() {
            give(Scrubbed::Bytes(sure));
        }
        self.held = kept.to_vec();
    }

    pub(crate) fn end(&mut self, mut give: impl FnMut(Scrubbed<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            give(Scrubbed::Bytes(&held));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Scrubbed, Scrubber, mask, pieces, placeholder};
    use crate::value::Value;

    fn scrubber() -> Scrubber {
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "token", "hunter2");
        scrubber.add("r-1", "long", "hunter2-and-more");
        scrubber
    }

    fn streamed(parts: &[&str]) -> String {
        let scrubber = scrubber();
        let mut stream = scrubber.stream();
        let mut out = Vec::new();
        let mut give = |piece: Scrubbed<'_>| match piece {
            Scrubbed::Bytes(bytes) => out.extend_from_slice(bytes),
            Scrubbed::Secret(pattern) => out.extend_from_slice(pattern.mask.as_bytes()),
        };
        for part in parts {
            stream.push(part.as_bytes(), &mut give);
        }
        stream.end(&mut give);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_text_is_scrubbed_and_masked() {
        let scrubbed = scrubber().text("a hunter2 b hunter2-and-more c");
        let scrubbed = scrubbed.unwrap_or_default();
        let (token, long) = (placeholder("r-1", "token"), placeholder("r-1", "long"));
        assert_eq!(scrubbed, format!("a {token} b {long} c"));
        assert_eq!(mask(&scrubbed), "a [secret token] b [secret long] c");
        assert_eq!(scrubber().text("nothing here"), None);
    }

    #[test]
    fn the_name_of_a_secret_may_be_the_value_of_another() {
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "token", "token");
        let once = scrubber.text("my token").unwrap_or_default();
        assert_eq!(once, format!("my {}", placeholder("r-1", "token")));
        assert_eq!(scrubber.text(&once), None);
    }

    #[test]
    fn every_field_that_terminals_answer_is_known_to_be_theirs_or_ours() {
        // Names of sessions, words with a meaning, figures, moments, and what holds fields itself.
        const OURS: [&str; 15] = [
            "created_at",
            "duration",
            "elapsed_time",
            "exit_code",
            "next_cursor",
            "output_base64",
            "process_running",
            "session_id",
            "sessions",
            "status",
            "success",
            "timestamp",
            "total_sessions",
            "truncated",
            "web_url",
        ];
        let tools = flow_model::tools::all().iter();
        let tools = tools.filter(|tool| tool.toolset == flow_model::tools::Toolset::Terminal);
        let mut seen = 0;
        for tool in tools {
            for field in tool.result_fields() {
                let field = field.as_str();
                seen += 1;
                assert!(
                    super::WRITTEN.contains(&field) || OURS.contains(&field),
                    "`{field}` of {}: may it hold a secret?",
                    tool.name
                );
            }
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn a_value_in_quotes_of_a_shell_is_masked() {
        let value = r#"it's a $tring with "quotes" \ and `more`"#;
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "token", value);
        let seen = |text: &str| scrubber.text(text).map(|text| mask(&text).into_owned());
        for quoted in [
            crate::expression::quoted(value),
            r#"'it'\''s a $tring with "quotes" \ and `more`'"#.to_owned(),
            r#"'it'"'"'s a $tring with "quotes" \ and `more`'"#.to_owned(),
            r#"$'it\'s a $tring with "quotes" \\ and `more`'"#.to_owned(),
            r#""it's a \$tring with \"quotes\" \\ and \`more\`""#.to_owned(),
            r#"it\'s\ a\ \$tring\ with\ \"quotes\"\ \\\ and\ \`more\`"#.to_owned(),
        ] {
            let masked = seen(&format!("$ echo {quoted}\n")).unwrap_or_default();
            let bare = masked.replace(['\'', '"'], "");
            assert_eq!(
                bare.replace("$[", "["),
                "$ echo [secret token]\n",
                "{quoted}"
            );
        }
        scrubber.add("r-1", "lines", "one two\nthree");
        let seen = |text: &str| scrubber.text(text).map(|text| mask(&text).into_owned());
        for quoted in [
            "'one two'$'\\n''three'",
            r"one\ two\nthree",
            r"one\ two$'\n'three",
        ] {
            let masked = seen(&format!("ls: {quoted}: No such file")).unwrap_or_default();
            let bare = masked.replace('\'', "");
            assert_eq!(bare, "ls: [secret lines]: No such file", "{quoted}");
        }
    }

    #[test]
    fn what_a_screen_made_of_a_value_is_masked() {
        let long = "0123456789abcdefghijklmnopqrstuvwxyz";
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "long", long);
        scrubber.add("r-1", "two", "two words");
        let seen = |text: &str| scrubber.text(text).map(|text| mask(&text).into_owned());
        for (screen, masked) in [
            (
                "$ 0123456789\nabcdefghijklmnopqrstuvwxyz\n$",
                "$ [secret long]\n$",
            ),
            ("0123\n456789abcdefghijklmnopqrstuvw\nxyz", "[secret long]"),
            ("a two\nwords b", "a [secret two] b"),
            // Blanks at the end of a row are not shown, and a tab is shown as some.
            ("a long enough: twowords b", "a long enough: [secret two] b"),
            (
                "a long enough: two     words b",
                "a long enough: [secret two] b",
            ),
            // Its beginning has scrolled away, or its end is not on the page.
            ("ghijklmnopqrstuv\nwxyz\n$ ", "[secret long]\n$ "),
            ("$ 0123456789abcdefg", "$ [secret long]"),
            ("x 0123456789\nabcdefg", "x [secret long]"),
            ("hijklmnopqrstuvw", "[secret long]"),
        ] {
            assert_eq!(seen(screen).as_deref(), Some(masked), "{screen}");
        }
        for other in [
            "0123\n\n456789abcdefghijklmnopqrstuvwxyz",
            "wxyz\n",
            "0123456\n",
        ] {
            assert_eq!(seen(other), None, "{other}");
        }
        // A value as it is can be used on.
        let whole = scrubber.text(&format!("a {long}\n")).unwrap_or_default();
        assert_eq!(whole, format!("a {}\n", placeholder("r-1", "long")));
    }

    #[test]
    fn a_value_in_two_pieces_of_a_stream_is_found() {
        assert_eq!(streamed(&["a hun", "ter", "2 b"]), "a [secret token] b");
        assert_eq!(streamed(&["a hun", "ted"]), "a hunted");
        assert_eq!(streamed(&["hunthunter2"]), "hunt[secret token]");
        assert_eq!(streamed(&["ends in hunter"]), "ends in hunter");
    }

    #[test]
    fn values_are_scrubbed_where_they_are_keys_and_inside_json() {
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "key", "a\"quoted\"b");
        let value = Value::map([("a\"quoted\"b", Value::text(r#"{"k": "a\"quoted\"b"}"#))]);
        let shown = scrubber.value(&value).to_string();
        assert!(!shown.contains("quoted"), "{shown}");
    }

    #[test]
    fn a_placeholder_that_was_taken_apart_is_noticed() {
        let whole = placeholder("r-1", "token");
        assert!(pieces(&whole).all(|piece| matches!(piece, Piece::Secret(_))));
        let mut letters = whole.chars();
        letters.next_back();
        assert!(pieces(letters.as_str()).any(|piece| piece == Piece::Broken));
        let reversed: String = whole.chars().rev().collect();
        assert!(pieces(&reversed).any(|piece| piece == Piece::Broken));
    }
}
