//! `{name}`, the variables of the states form.

use std::borrow::Cow;
use std::ops::Range;

use super::{Dialect, Piece, pieces};

/// Finds every `{name}` in the literal parts of `text`.
///
/// Interpolations and statements are left alone, and so are `{{name}}`, `{%name%}` and the shell's
/// `${name}`.
///
/// ```
/// use flow_model::expression::braced;
/// assert_eq!(braced("kill {session_id} ${HOME}"), [(5..17, "session_id")]);
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
/// What braces mean in a regular expression they go on meaning: `{3}` and `{2,5}` repeat, and the
/// braces of `\{`, `\p{Greek}` and `\x{41}` belong to the escape.
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
    let named = |text: &str| {
        let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !text.is_empty() && text.bytes().all(part)
    };
    let sole = source.strip_prefix("variable(\"");
    if let Some(name) = sole.and_then(|rest| rest.strip_suffix("\")"))
        && named(name)
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
            Some((name, after)) if named(name) => {
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
            b'{' => {
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

/// Where the name ends that a brace opens, when it is one.
fn named(text: &str, open: usize, before: Option<u8>, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let name = open + 1;
    let length = bytes[name..end]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let close = name + length;
    let is_named = length > 0
        && !bytes[name].is_ascii_digit()
        && close < end
        && bytes[close] == b'}'
        && bytes.get(close + 1) != Some(&b'}')
        && !matches!(before, Some(b'$' | b'{'));
    is_named.then_some(close)
}
