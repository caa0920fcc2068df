//! Quoting values for the place of a command they stand in.
//!
//! A command is rendered with a mark in place of every value; the values are kept aside. Then the
//! rendered text, which only the author of the workflow wrote, is read once as the shell would read
//! it, and each value is put in as its place demands. No value is ever read as shell, so none can
//! become code.

mod composition;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::error::{ErrorKind, EvalError};
use super::held::{Held, OPENING, marked};
use super::text;
use crate::secret::{self, Piece};
use crate::value::Value;

/// Which shell reads a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// One that is started for it, with the secrets in its environment.
    Child,
    /// The one of a terminal, whichever it is. It knows no secrets; bash and zsh expand `!` within
    /// double quotes, and fish reads backslashes within single ones.
    Terminal,
}

/// The command, with every value in its place.
pub(super) fn compose(rendered: &str, held: &[Held], reader: Reader) -> Result<String, EvalError> {
    if !held
        .iter()
        .any(|held| matches!(held, Held::Raw(_) | Held::Written(_)))
    {
        return composition::compose(rendered, held, reader);
    }
    let mut text = String::new();
    let mut rest = rendered;
    while let Some(at) = rest.find(OPENING.as_str()) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((index, length)) = marked(rest) else {
            break;
        };
        match held.get(index) {
            Some(Held::Raw(raw)) if secret::concerns(raw) => return Err(secret_in_code()),
            Some(Held::Raw(raw) | Held::Written(raw)) => text.push_str(raw),
            _ => text.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    text.push_str(rest);
    composition::compose(&text, held, reader)
}

/// A value as words of the shell: a list as several, anything else as one.
pub(super) fn words(value: &Value) -> Result<String, EvalError> {
    words_for(value, Reader::Child)
}

/// The same for a shell that reads the words later: a secret stands there quoted.
pub(super) fn later_words(value: &Value) -> Result<String, EvalError> {
    words_for(value, Reader::Terminal)
}

fn words_for(value: &Value, reader: Reader) -> Result<String, EvalError> {
    let texts = texts(value)?;
    let words = texts.iter().map(|text| word(text, None, None, reader));
    Ok(words.collect::<Result<Vec<String>, _>>()?.join(" "))
}

/// A text that may have secrets in it, for a place of a shell that is started for it: ordinary text
/// through `text`, and each secret as the parameter that will hold it, between what the place
/// demands around it.
fn with_parameters(
    value: &str,
    around: (&str, &str),
    text: impl Fn(&str) -> String,
) -> Result<String, EvalError> {
    pieced(value, text, |place| {
        Ok(format!("{}${{{}}}{}", around.0, place.text, around.1))
    })
}

/// The same for the shell of a terminal, which reads every piece as a quoted word.
fn with_words(value: &str) -> Result<String, EvalError> {
    pieced(value, single, |place| {
        secret::quoted(place).ok_or_else(secret_in_code)
    })
}

fn pieced(
    value: &str,
    text: impl Fn(&str) -> String,
    secret: impl Fn(secret::Place<'_>) -> Result<String, EvalError>,
) -> Result<String, EvalError> {
    let mut encoded = String::new();
    for piece in secret::pieces(value) {
        match piece {
            Piece::Text(piece) => encoded.push_str(&text(piece)),
            Piece::Secret(place) => encoded.push_str(&secret(place)?),
            Piece::Broken => return Err(broken_secret()),
        }
    }
    Ok(encoded)
}

fn broken_secret() -> EvalError {
    EvalError::new(
        ErrorKind::Place,
        "an expression has changed a secret, which can only be passed on as it is",
    )
}

fn secret_in_code() -> EvalError {
    EvalError::new(
        ErrorKind::Place,
        "a secret cannot be part of the code of a command; use it as a value",
    )
}

/// A value as text; a list as its texts with spaces between.
pub(super) fn plain_words(value: &Value) -> Result<String, EvalError> {
    Ok(texts(value)?.join(" "))
}

/// The texts a value stands for: the items of a list, or the value.
///
/// Null is the empty text. What is itself a list or map is JSON.
fn texts(value: &Value) -> Result<Vec<String>, EvalError> {
    let one = |value: &Value| {
        let text = match value {
            Value::Null => String::new(),
            other => text::text(other)?,
        };
        if text.contains('\0') {
            return Err(EvalError::new(
                ErrorKind::Place,
                "a value with a NUL byte cannot be part of a command",
            ));
        }
        Ok(text)
    };
    match value {
        Value::List(list) => list.0.iter().map(one).collect(),
        other => one(other).map(|text| vec![text]),
    }
}

/// A text as one bare word between two characters.
///
/// Harmless words stay plain, so that commands read as a person would write them.
fn word(
    text: &str,
    before: Option<char>,
    after: Option<char>,
    reader: Reader,
) -> Result<String, EvalError> {
    if secret::concerns(text) {
        return match reader {
            Reader::Child => with_parameters(text, ("\"", "\""), single),
            Reader::Terminal => with_words(text),
        };
    }
    let harmless = |letter: char| {
        letter.is_ascii_alphanumeric()
            || matches!(letter, '_' | '-' | '.' | '/' | ':' | ',' | '@' | '%' | '+')
    };
    let number = text.bytes().all(|byte| byte.is_ascii_digit());
    let apart = match after {
        None => true,
        // `2>` would redirect.
        Some('<' | '>') => false,
        Some('=' | '(' | '[' | '+') if !number => false,
        Some(letter) => {
            letter.is_whitespace()
                || harmless(letter)
                || matches!(letter, ';' | '|' | '&' | ')' | '"' | '\'' | '=' | ']' | '}')
        }
    };
    let plain = !text.is_empty()
        && text.chars().all(harmless)
        && apart
        && before != Some('~')
        // fish replaces `%self`.
        && !text.starts_with('%')
        && !RESERVED.contains(&text);
    Ok(if plain { text.to_owned() } else { single(text) })
}

/// Words that are grammar where a command may begin.
const RESERVED: &[&str] = &[
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

/// A text in single quotes. Backslashes stand outside of them: fish reads them inside.
pub(crate) fn single(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '\\']) {
        let (before, after) = rest.split_at(at);
        quoted.push_str(&enclosed(before));
        quoted.push('\\');
        quoted.push_str(&after[..1]);
        rest = &after[1..];
    }
    match text {
        "" => quoted.push_str("''"),
        _ => quoted.push_str(&enclosed(rest)),
    }
    quoted
}

fn enclosed(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("'{}'", without_changes(text)),
    }
}

/// A text inside single quotes as a line editor may read it, too: at the beginning of a line bash
/// takes `^` for a change to an earlier command, inside quotes as well.
fn without_changes(text: &str) -> Cow<'_, str> {
    match text.contains("\n^") {
        true => Cow::Owned(text.replace("\n^", "\n'\"^\"'")),
        false => Cow::Borrowed(text),
    }
}
