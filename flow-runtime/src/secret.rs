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
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::{List, Map, Value};

mod reading;
mod scrubber;
mod search;
#[cfg(test)]
mod shells;

pub(crate) use scrubber::Scrubbed;
pub use scrubber::Scrubber;

/// A secret of a run, with its value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    /// The run whose input it is.
    pub(crate) run: String,
    /// The input.
    pub(crate) input: String,
    pub(crate) value: String,
}

/// What a placeholder begins and ends with: private characters.
const OPEN: char = '\u{f8f0}';
const CLOSE: char = '\u{f8f1}';
/// Marks a placeholder that stands for the value quoted as one word of a shell.
const QUOTED: &str = "|sh";
/// Shorter values cannot be told from ordinary text, and scrubbing them would garble everything.
pub const SHORTEST: usize = 4;
/// Lines of a value with several lines that are scrubbed on their own.
const SHORTEST_LINE: usize = 8;
/// Letters of values that are also found with anything between them that a way of writing puts there, and
/// of parts of values that are found where a text is cut. Fewer are too likely something else.
const SHORTEST_BROKEN: usize = 6;
const SHORTEST_PART: usize = 16;
/// Letters of the beginning of a value that is found where a text is just being written.
const SHORTEST_BEGUN: usize = 3;

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

    fn streamed(scrubber: &Scrubber, parts: &[&str]) -> String {
        let mut stream = scrubber.stream();
        let mut out = Vec::new();
        let mut give = |piece: Scrubbed<'_>| match piece {
            Scrubbed::Bytes(bytes) => out.extend_from_slice(bytes),
            Scrubbed::Secret(_, mask) => out.extend_from_slice(mask.as_bytes()),
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
    fn a_stream_hides_a_part_where_it_begins_and_where_it_ends() {
        let value = "Kq7Zk9LmW2XwVbN8rTyUioPlHgFdSaZxn";
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "token", value);
        for (parts, wanted) in [
            (&[&value[..22]][..], "[secret token]"),
            (
                &["begun ", &value[..9], &value[9..22]],
                "begun [secret token]",
            ),
            (&[&value[11..], " and on"], "[secret token] and on"),
            (&[&value[..22], "\n"], "[secret token]"),
            (
                &["<", &value[..20], "\n", &value[20..], ">\n"],
                "<[secret token]>\n",
            ),
            (&[&value[..22], "\n", "end"], "Kq7Zk9LmW2XwVbN8rTyUio\nend"),
            (&["short ", &value[..9]], "short Kq7Zk9LmW"),
        ] {
            assert_eq!(streamed(&scrubber, parts), wanted, "{parts:?}");
        }
    }

    #[test]
    fn what_a_pager_writes_at_the_margin_hides_nothing_and_a_list_of_numbers_is_none() {
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "token", "Kq7Zk9LmW2XwVbN8");
        scrubber.add("r-1", "pin", "404142");
        let paged = scrubber
            .text("a Kq7Zk9Lm \u{8}W2XwVbN8 b")
            .unwrap_or_default();
        assert_eq!(mask(&paged), "a [secret token] b");
        assert_eq!(scrubber.text("39\n40\n41\n42\n43\n"), None);
        assert!(scrubber.text("pin 404142").is_some());
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
        // Something has been left out of a text, also of an escape.
        scrubber.add(
            "r-1",
            "lines",
            "first of several\nand a second one\nand more",
        );
        let seen = |text: &str| scrubber.text(text).map(|text| mask(&text).into_owned());
        for (cut, masked) in [
            ("A '0123456789abcdefg…\nB x", "A [secret long]…\nB x"),
            ("A first\\ of\\ several\\nand\\ a\\…", "A [secret lines]…"),
            (
                "A first\\ of\\ several\\nand\\ a\\ second\\ one\\…",
                "A [secret lines]…",
            ),
            ("…'fghijklmnopqrstuvwxyz' x", "…[secret long] x"),
            ("...jklmnopqrstuvwxyz", "...[secret long]"),
        ] {
            assert_eq!(seen(cut).as_deref(), Some(masked), "{cut}");
        }
        for other in [
            "0123456789abcdefg, 3",
            "x ghijklmnopqrstuvwxyz",
            "01234567…",
        ] {
            assert_eq!(seen(other), None, "{other}");
        }
        // A value as it is can be used on.
        let whole = scrubber.text(&format!("a {long}\n")).unwrap_or_default();
        assert_eq!(whole, format!("a {}\n", placeholder("r-1", "long")));
    }

    #[test]
    fn a_whole_value_is_itself_and_no_part_of_another() {
        let token = "tok_8Fh2kQ9vLm3Xz7Pw";
        let whole = placeholder("r-1", "a");
        for b in [
            format!("https://u:{token}@host.example/db"),
            format!("{token}-suffix"),
            format!("prefix-{token}"),
        ] {
            let mut scrubber = Scrubber::default();
            scrubber.add("r-1", "a", token);
            scrubber.add("r-1", "b", &b);
            let seen = |text: &str| scrubber.text(text).unwrap_or_default();
            for (text, wanted) in [
                (token.to_owned(), whole.clone()),
                (format!("{token}\n"), format!("{whole}\n")),
                (format!("x {token}"), format!("x {whole}")),
                (format!("{token}-"), format!("{whole}-")),
                (format!("{token}\n{token}\n"), format!("{whole}\n{whole}\n")),
                (b.clone(), placeholder("r-1", "b")),
            ] {
                assert_eq!(seen(&text), wanted, "{b}");
            }
            assert_eq!(streamed(&scrubber, &[token, "\n"]), "[secret a]\n", "{b}");
        }
        // What is more of the other is hidden as well.
        let mut scrubber = Scrubber::default();
        scrubber.add("r-1", "a", token);
        scrubber.add("r-1", "b", &format!("https://u:{token}@host.example/db"));
        let cut = scrubber.text(&format!("at https://u:{token}@host.ex"));
        assert_eq!(
            cut.unwrap_or_default(),
            format!("at [secret b]{whole}[secret b]")
        );
    }

    #[test]
    fn a_value_in_two_pieces_of_a_stream_is_found() {
        assert_eq!(
            streamed(&scrubber(), &["a hun", "ter", "2 b"]),
            "a [secret token] b"
        );
        assert_eq!(streamed(&scrubber(), &["a hun", "ted"]), "a hunted");
        assert_eq!(
            streamed(&scrubber(), &["hunthunter2"]),
            "hunt[secret token]"
        );
        assert_eq!(streamed(&scrubber(), &["ends in hunter"]), "ends in hunter");
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
