//! Puts values where marks stand in a command.

use flow_model::command::{self, Bound, HereDocument, Misplaced, Place, Reading, Standing};

use super::super::error::{ErrorKind, EvalError};
use super::super::held::{Held, marked};
use super::{Reader, single, texts, with_parameters, with_words, word};
use crate::secret;
use crate::value::Value;

/// Composes a command from its text and the values its marks stand for.
pub(super) fn compose(text: &str, held: &[Held], reader: Reader) -> Result<String, EvalError> {
    let mut composition = Composition {
        out: String::with_capacity(text.len() + 64),
        held,
        reader,
        document: 0,
    };
    command::read(text, &mut composition)?;
    Ok(composition.out)
}

/// What a shell replaces by nothing.
const NOTHING: &str = "${-+}";

struct Composition<'a> {
    out: String,
    held: &'a [Held],
    reader: Reader,
    /// Where the text of the here-document begins.
    document: usize,
}

/// Whether a line that is written as it is could be taken for the delimiter, or be garbled by
/// looking for it: dash does not put back every byte it has looked at, and bash stops in
/// `$(…)` at a line that only begins with the delimiter.
fn confuses(document: &HereDocument, line: &str) -> bool {
    let line = document.stripped(line);
    let alike = line
        .bytes()
        .zip(document.delimiter.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let odd = line
        .as_bytes()
        .get(alike)
        .is_some_and(|next| !next.is_ascii());
    alike == document.delimiter.len() || (alike > 0 && odd)
}

fn misplaced(place: &str, help: &str) -> EvalError {
    EvalError::new(
        ErrorKind::Place,
        format!("a value cannot stand {place}; {help}"),
    )
}

fn refused(refused: Misplaced) -> EvalError {
    misplaced(refused.place, refused.help)
}

/// A value that is not of the kind that its place demands.
fn unfit(why: Misplaced, found: &str) -> EvalError {
    let Misplaced { place, help } = why;
    EvalError::new(
        ErrorKind::Place,
        format!(
            "a value cannot stand {place}, and the value is {found}; {help}, or check it before in `when`; \
             the command was not run"
        ),
    )
}

/// A text with a backslash before each of these letters.
fn escaped(text: &str, letters: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if letters.contains(&letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Whether a text is a name, or part of one: nothing in it is code.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(is_letter)
}

fn harmless(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_./,:@-".contains(&byte))
}

impl Reading for Composition<'_> {
    type Error = EvalError;

    fn marked(&self, text: &str) -> Option<(usize, usize)> {
        marked(text)
    }

    fn is_typed(&self) -> bool {
        self.reader == Reader::Terminal
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn value(&mut self, standing: &Standing<'_>) -> Result<bool, EvalError> {
        if let Some(misplaced) = standing.refuses_all() {
            return Err(refused(misplaced));
        }
        let texts = match self.held.get(standing.value) {
            Some(Held::Value(value)) => texts(value)?,
            Some(Held::Raw(_) | Held::Written(_)) | None => Vec::new(),
        };
        if let Some(misplaced) = standing.bound.and_then(|bound| bound.refuses(&texts)) {
            return Err(refused(misplaced));
        }
        if let Some(misplaced) = standing.refuses_some() {
            let mut words = texts.iter().flat_map(|text| text.split(' '));
            let is_harmless = match standing.place {
                Place::Comment => words.all(harmless),
                Place::Harmless(_) | Place::Document { .. } => harmless(&texts.join(" ")),
                _ => texts.iter().all(|text| harmless(text)),
            };
            if !is_harmless {
                return Err(refused(misplaced));
            }
        }
        let mut encoded = String::new();
        match &standing.place {
            Place::Bare => {
                if self.follows_name() && !texts.is_empty() {
                    encoded.push_str("\"\"");
                }
                let before = encoded.chars().chain(self.out.chars().rev()).next();
                let last = texts.len().saturating_sub(1);
                for (number, text) in texts.iter().enumerate() {
                    let first = number == 0;
                    if !first {
                        encoded.push(' ');
                    }
                    let before = if first { before } else { Some(' ') };
                    let after = if number == last {
                        standing.next
                    } else {
                        Some(' ')
                    };
                    // An operator is one only without quotes.
                    let is_operator =
                        matches!(standing.bound, Some(Bound::Operand(_))) && text.starts_with('-');
                    encoded.push_str(&match is_operator && !secret::concerns(text) {
                        true => single(text),
                        false => word(text, before, after, self.reader)?,
                    });
                }
            }
            Place::Double if self.reader == Reader::Terminal => {
                encoded = format!("\"{}\"", with_words(&texts.join(" "))?);
            }
            Place::Single if self.reader == Reader::Terminal => {
                encoded = format!("'{}'", with_words(&texts.join(" "))?);
            }
            Place::Double => {
                encoded = with_parameters(&texts.join(" "), ("", ""), |text| {
                    escaped(text, &['\\', '"', '$', '`'])
                })?;
            }
            Place::Single => {
                let text = |text: &str| text.replace('\'', r"'\''");
                encoded = with_parameters(&texts.join(" "), ("'\"", "\"'"), text)?;
            }
            Place::Number(why) => {
                let text = texts.join(" ");
                let digits = text.strip_prefix('-').unwrap_or(&text);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    let found = match self.held.get(standing.value) {
                        Some(Held::Value(Value::Int(_) | Value::Float(_))) => {
                            "a number that is not whole".to_owned()
                        }
                        Some(Held::Value(Value::Str(_))) => "a string that is none".to_owned(),
                        Some(Held::Value(other)) => other.noun().to_owned(),
                        Some(Held::Raw(_) | Held::Written(_)) | None => "none".to_owned(),
                    };
                    return Err(unfit(*why, &found));
                }
                // `--` and `:-` mean something else.
                if text.starts_with('-') && self.out.ends_with(['-', ':']) {
                    encoded.push(' ');
                }
                encoded.push_str(&text);
            }
            Place::Name(why) => {
                if !texts.iter().all(|text| is_name(text)) {
                    return Err(unfit(*why, "another text"));
                }
                encoded = texts.join(" ");
            }
            Place::Comment | Place::Harmless(_) => encoded = texts.join(" "),
            Place::Document { document, .. } => {
                self.document_value(document, &texts.join(" "))?;
                return Ok(true);
            }
            Place::Nowhere(misplaced) => return Err(refused(*misplaced)),
        }
        if self.reader == Reader::Terminal {
            // At the beginning of a line bash takes it for a change to an earlier command, inside quotes too.
            encoded = encoded.replace("\n^", "\n'\"^\"'");
        }
        if self.joins_name(&encoded) && !matches!(standing.place, Place::Comment | Place::Single) {
            self.out.push_str(NOTHING);
        }
        if standing.backquotes.is_some() {
            encoded = encoded.replace('\\', r"\\").replace('`', r"\`");
        }
        self.out.push_str(&encoded);
        Ok(!texts.is_empty())
    }

    fn document(&mut self, _: &HereDocument) {
        self.document = self.out.len();
    }

    fn document_ends(&mut self, document: &HereDocument, valued: bool) -> Result<(), EvalError> {
        let mut lines = self.out[self.document..].split('\n');
        if valued && lines.any(|line| confuses(document, line)) {
            let delimiter = &document.delimiter;
            let way_out = match document.quoted {
                true => {
                    format!(", or write `<<{delimiter}` without quotes, which takes every value")
                }
                false => String::new(),
            };
            return Err(EvalError::new(
                ErrorKind::Place,
                format!(
                    "a text cannot stand in the here-document `{delimiter}` with a line that would be \
                     taken for its end; choose a delimiter that no value has{way_out}; the command was not run"
                ),
            ));
        }
        Ok(())
    }
}

impl Composition<'_> {
    /// Whether what was written last is, or may be, `$NAME`.
    fn follows_name(&self) -> bool {
        let before = self.out.trim_end_matches(is_of_name);
        before.len() < self.out.len() && before.ends_with('$')
    }

    /// Whether a text would be taken for more of the name of a variable before it.
    fn joins_name(&self, text: &str) -> bool {
        text.starts_with(is_of_name) && self.follows_name()
    }

    fn document_value(&mut self, document: &HereDocument, text: &str) -> Result<(), EvalError> {
        let is_typed = self.reader == Reader::Terminal;
        if let Some(why) = document.refuses_secrets(is_typed)
            && secret::concerns(text)
        {
            return Err(refused(why));
        }
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.out.push('\n');
            }
            let begun = self.out.rfind('\n').map_or(0, |at| at + 1);
            let first = self.out[begun..].trim_start_matches('\t').is_empty();
            let stripped = document.tabs && first && line.starts_with('\t');
            if document.quoted {
                if stripped {
                    return Err(misplaced(
                        "in a here-document that drops its tabs",
                        "write `<<` instead of `<<-`",
                    ));
                }
                self.out.push_str(line);
                continue;
            }
            let encoded = with_parameters(line, ("", ""), |text| escaped(text, &['\\', '$', '`']))?;
            let head = document.stripped(&self.out[begun..]);
            let first_letter = head.chars().chain(encoded.chars()).next();
            let alike = first_letter == document.delimiter.chars().next();
            if stripped || alike || first_letter.is_none() {
                // It keeps the line from being the delimiter.
                self.out.push_str(NOTHING);
            } else if number == 0 && self.joins_name(&encoded) {
                self.out.push_str(NOTHING);
            }
            self.out.push_str(&encoded);
        }
        Ok(())
    }
}
