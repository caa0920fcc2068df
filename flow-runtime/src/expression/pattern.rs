//! Values in a regular expression: each is found as it is, whatever signs it has.

use super::error::{ErrorKind, EvalError};
use super::held::{Held, marked};
use super::text;
use crate::secret;
use crate::value::Value;

/// The regular expression, with every value in its place.
pub(super) fn compose(rendered: &str, held: &[Held]) -> Result<String, EvalError> {
    let mut out = String::with_capacity(rendered.len());
    // Brackets that are open: inside a class a value is several letters.
    let mut classes = 0_usize;
    let mut rest = rendered;
    while let Some(letter) = rest.chars().next() {
        if let Some((index, length)) = marked(rest) {
            rest = &rest[length..];
            match held.get(index) {
                Some(Held::Raw(raw)) if secret::concerns(raw) => return Err(secret_in_pattern()),
                Some(Held::Raw(raw)) => out.push_str(raw),
                Some(Held::Value(value)) if classes > 0 => out.push_str(&spaced(&escaped(value)?)),
                Some(Held::Value(value)) => {
                    let value = escaped(value)?;
                    match repeats(rest) || is_verbose(rendered) {
                        true => out.push_str(&format!("(?-x:{value})")),
                        false => out.push_str(&value),
                    }
                }
                Some(Held::Written(text)) => out.push_str(&regex::escape(text)),
                None => {}
            }
            continue;
        }
        let taken = match letter {
            '\\' => {
                let escaped = rest.chars().nth(1).filter(|_| marked(&rest[1..]).is_none());
                1 + escaped.map_or(0, char::len_utf8)
            }
            '[' => {
                let negated = usize::from(rest[1..].starts_with('^'));
                // The first bracket of a class is a letter of it.
                let own = usize::from(classes == 0 && rest[1 + negated..].starts_with(']'));
                classes += 1;
                1 + negated + own
            }
            ']' => {
                classes = classes.saturating_sub(1);
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Ok(out)
}

/// Whether what follows a value repeats the whole of it.
fn repeats(rest: &str) -> bool {
    let mut letters = rest.chars();
    match letters.next() {
        Some('*' | '+' | '?') => true,
        Some('{') => letters.next().is_some_and(|digit| digit.is_ascii_digit()),
        _ => false,
    }
}

/// Whether blanks of the expression may mean nothing.
fn is_verbose(rendered: &str) -> bool {
    rendered.split("(?").skip(1).any(|after| {
        let flags = after.split([':', ')', '-', '<', 'P']).next();
        flags.is_some_and(|flags| flags.contains('x'))
    })
}

/// The text of a value with every sign that means something escaped.
fn escaped(value: &Value) -> Result<String, EvalError> {
    let text = match value {
        Value::Null => String::new(),
        other => text::text(other)?,
    };
    match secret::concerns(&text) {
        true => Err(secret_in_pattern()),
        false => Ok(regex::escape(&text)),
    }
}

/// Blanks as escapes, for a class that may be written over several lines.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_whitespace() {
            true => out.push_str(&format!("\\x{{{:x}}}", u32::from(letter))),
            false => out.push(letter),
        }
    }
    out
}

fn secret_in_pattern() -> EvalError {
    EvalError::new(
        ErrorKind::Place,
        "a secret cannot be looked for: what a terminal shows never has it",
    )
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use super::super::held::mark;
    use super::*;

    /// The pattern with a value at every `V`.
    fn with(pattern: &str, value: &str) -> String {
        let held = [Held::Value(Value::text(value))];
        compose(&pattern.replace('V', &mark(0)), &held).unwrap()
    }

    #[test]
    fn a_value_is_found_as_it_is_wherever_it_stands() {
        let signs = r"a.b*c+(d)[e]{2}^$|\x#&~-";
        for value in [
            "plain",
            signs,
            "two words",
            "\\",
            "\\d",
            "1.5",
            "ü]^",
            "\ttab\n",
        ] {
            for pattern in ["V", "^V$", "(V)", "(?x) ^ V $", "(?i)V", "x?V", "\\AV\\z"] {
                let regex = regex::Regex::new(&with(pattern, value)).unwrap();
                let found = regex.find(value).unwrap();
                assert_eq!(found.as_str(), value, "{pattern}");
            }
            let twice = regex::Regex::new(&with("^V{2}$", value)).unwrap();
            assert!(twice.is_match(&value.repeat(2)), "{value}");
            for class in ["^[V]+$", "^[]V]+$", "^[^]V]+$", "(?x)^[V ]+$", "^[a[V]]+$"] {
                let regex = regex::Regex::new(&with(class, value)).unwrap();
                assert_eq!(
                    regex.is_match(value),
                    !class.contains("^]"),
                    "{class} {value}"
                );
            }
        }
    }

    #[test]
    fn a_pattern_without_signs_reads_as_it_is_written() {
        assert_eq!(with("^V: ready", "web 1"), "^web 1: ready");
        assert_eq!(with("V+", ""), "(?-x:)+");
    }

    #[test]
    fn what_is_unquoted_is_part_of_the_expression() {
        let held = [Held::Raw("a|b".to_owned())];
        assert_eq!(
            compose(&format!("^({})$", mark(0)), &held).unwrap(),
            "^(a|b)$"
        );
    }
}
