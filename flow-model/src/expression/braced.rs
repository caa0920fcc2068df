//! `{name}`, the variables of the states form.

use std::borrow::Cow;
use std::ops::Range;

use super::{Dialect, Piece, pieces};

/// Finds every `{name}` in the literal parts of `text`.
///
/// Interpolations and statements are left alone, and so are `{{name}}`, `{%name%}` and the shell's
/// `${name}`. A name is one that [`is_variable_name`] accepts.
///
/// ```
/// use flow_model::expression::braced;
/// assert_eq!(braced("kill {session_id} ${HOME}"), [(5..17, "session_id")]);
/// assert_eq!(braced(r#"{"id": {id}}"#), [(7..11, "id")]);
/// ```
pub fn braced(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    for piece in pieces(text, Dialect::Jinja) {
        if let Piece::Text(range) = piece {
            names(text, range, &mut found);
        }
    }
    found
}

/// Rewrites every `{name}` to an interpolation, `{{ variable("name") }}`.
///
/// ```
/// use flow_model::expression::unbrace;
/// assert_eq!(unbrace("kill {pid}"), r#"kill {{ variable("pid") }}"#);
/// ```
pub fn unbrace(text: &str) -> Cow<'_, str> {
    rewritten(text, braced(text))
}

/// Finds every `{name}` in the literal parts of a regular expression.
///
/// What braces mean in a regular expression they go on meaning: `{3}` and `{2,5}` repeat, the braces
/// of `\{`, `\p{Greek}` and `\x{41}` belong to the escape, and those of `[{a-z}]` are letters of the
/// class.
///
/// ```
/// use flow_model::expression::braced_pattern;
/// assert_eq!(braced_pattern(r"\p{Greek}{2} {name}"), [(13..19, "name")]);
/// ```
pub fn braced_pattern(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut found = Vec::new();
    for piece in pieces(text, Dialect::Jinja) {
        if let Piece::Text(range) = piece {
            pattern_names(text, range, &mut found);
        }
    }
    found
}

/// Rewrites every `{name}` of a regular expression to an interpolation.
///
/// ```
/// use flow_model::expression::unbrace_pattern;
/// assert_eq!(unbrace_pattern(r"\d{3} {unit}"), r#"\d{3} {{ variable("unit") }}"#);
/// ```
pub fn unbrace_pattern(text: &str) -> Cow<'_, str> {
    rewritten(text, braced_pattern(text))
}

fn rewritten<'t>(text: &'t str, found: Vec<(Range<usize>, &str)>) -> Cow<'t, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut rewritten = String::with_capacity(text.len() + found.len() * 18);
    let mut copied = 0;
    for (range, name) in found {
        rewritten.push_str(&text[copied..range.start]);
        rewritten.push_str(&format!("{{{{ variable(\"{name}\") }}}}"));
        copied = range.end;
    }
    rewritten.push_str(&text[copied..]);
    Cow::Owned(rewritten)
}

/// Takes [`unbrace`] back, for people: `{{ variable("name") }}` and a sole `variable("name")` were
/// written as `{name}`.
///
/// ```
/// use flow_model::expression::rebrace;
/// assert_eq!(rebrace(r#"kill {{ variable("pid") }}"#), "kill {pid}");
/// assert_eq!(rebrace(r#"variable("pid")"#), "{pid}");
/// ```
pub fn rebrace(source: &str) -> Cow<'_, str> {
    const OPEN: &str = "{{ variable(\"";
    const CLOSE: &str = "\") }}";
    let sole = source.strip_prefix("variable(\"");
    if let Some(name) = sole.and_then(|rest| rest.strip_suffix("\")"))
        && is_variable_name(name)
    {
        return Cow::Owned(format!("{{{name}}}"));
    }
    if !source.contains(OPEN) {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, after)) = rest.split_once(OPEN) {
        out.push_str(before);
        match after.split_once(CLOSE) {
            Some((name, after)) if is_variable_name(name) => {
                out.extend(["{", name, "}"]);
                rest = after;
            }
            _ => {
                out.push_str(OPEN);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn names<'a>(text: &'a str, range: Range<usize>, found: &mut Vec<(Range<usize>, &'a str)>) {
    let mut at = range.start;
    while let Some(open) = text[at..range.end].find('{').map(|open| at + open) {
        let before = open.checked_sub(1).map(|before| text.as_bytes()[before]);
        at = match named(text, open, before, range.end) {
            Some(close) => {
                found.push((open..close + 1, &text[open + 1..close]));
                close + 1
            }
            None => open + 1,
        };
    }
}

fn pattern_names<'a>(text: &'a str, range: Range<usize>, found: &mut Vec<(Range<usize>, &'a str)>) {
    let bytes = text.as_bytes();
    let mut at = range.start;
    // An escaped sign before a brace is text.
    let mut before = None;
    let mut classes = 0_usize;
    while at < range.end {
        match bytes[at] {
            b'\\' => {
                let is_class = matches!(
                    bytes.get(at + 1),
                    Some(b'p' | b'P' | b'x' | b'u' | b'U' | b'b')
                );
                at += 2;
                if is_class && at < range.end && bytes[at] == b'{' {
                    let close = text[at..range.end].find('}');
                    at = close.map_or(range.end, |close| at + close + 1);
                }
                before = None;
                continue;
            }
            b'[' => {
                classes += 1;
                let negated = usize::from(at + 1 < range.end && bytes[at + 1] == b'^');
                // The first bracket of a class is a letter of it.
                let first = at + 1 + negated;
                if classes == 1 && first < range.end && bytes[first] == b']' {
                    at = first;
                }
            }
            b']' => classes = classes.saturating_sub(1),
            b'{' if classes == 0 => {
                if let Some(close) = named(text, at, before, range.end) {
                    found.push((at..close + 1, &text[at + 1..close]));
                    at = close;
                }
            }
            _ => {}
        }
        before = Some(bytes[at]);
        at += 1;
    }
}

/// Whether `{name}` can stand for a variable of this name: letters, digits, `_`, `-` and `.`, from a
/// letter or `_` to a letter, a digit or `_`. `{a..z}` is the shell's.
///
/// ```
/// use flow_model::expression::is_variable_name;
/// assert!(is_variable_name("build-1.target"));
/// assert!(!is_variable_name("3") && !is_variable_name("a..z") && !is_variable_name("a b"));
/// ```
pub fn is_variable_name(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let first = name.bytes().next();
    let last = name.bytes().next_back();
    name.bytes().all(is_part)
        && !name.contains("..")
        && first.is_some_and(|first| word(first) && !first.is_ascii_digit())
        && last.is_some_and(word)
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Where the name ends that a brace opens, when it is one.
fn named(text: &str, open: usize, before: Option<u8>, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let name = open + 1;
    let length = bytes[name..end]
        .iter()
        .take_while(|byte| is_part(**byte))
        .count();
    let close = name + length;
    let is_named = is_variable_name(&text[name..close])
        && close < end
        && bytes[close] == b'}'
        && !matches!(before, Some(b'$' | b'{'));
    is_named.then_some(close)
}
