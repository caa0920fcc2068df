//! Reads a command as the shell would, and puts values where marks stand.

use super::super::error::{ErrorKind, EvalError};
use super::super::held::{Held, marked};
use super::{Reader, texts, with_parameters, with_words, word};
use crate::secret;

/// Composes a command from its text and the values its marks stand for.
pub(super) fn compose(text: &str, held: &[Held], reader: Reader) -> Result<String, EvalError> {
    let mut lexer = Lexer {
        text,
        at: 0,
        out: String::with_capacity(text.len() + 64),
        held,
        reader,
        frames: vec![Frame::Command],
        pending: Vec::new(),
        fresh: true,
        lost: None,
    };
    while lexer.at < text.len() {
        lexer.step()?;
    }
    Ok(lexer.out)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    out: String,
    held: &'a [Held],
    reader: Reader,
    /// What is open, outermost first.
    frames: Vec<Frame>,
    /// Here-documents whose text begins after the current line.
    pending: Vec<HereDocument>,
    /// A word may begin here.
    fresh: bool,
    /// Why the places of what follows are not known for certain.
    lost: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// The command itself.
    Command,
    /// `(…)`, or `$(…)`.
    Parentheses { substitution: bool },
    /// `` `…` ``, and whether it holds backslashes, which it reads before the command inside.
    Backquotes { backslashes: bool },
    /// `"…"`.
    Double,
    /// `'…'`.
    Single,
    /// `$'…'`.
    Ansi,
    /// `${…}`: where it opened, and whether inside double quotes.
    Parameter { from: usize, quoted: bool },
    /// `$((…))` or `((…))`, and how many parentheses are open.
    Arithmetic { depth: usize, substitution: bool },
}

struct HereDocument {
    delimiter: String,
    /// The text is taken as it is.
    quoted: bool,
    /// Tabs at the start of lines are dropped.
    tabs: bool,
    depth: usize,
}

impl HereDocument {
    /// The line as the shell compares it.
    fn stripped<'l>(&self, line: &'l str) -> &'l str {
        if self.tabs {
            line.trim_start_matches('\t')
        } else {
            line
        }
    }

    /// Whether a line that is written as it is could be taken for the delimiter, or be garbled by
    /// looking for it: dash does not put back every byte it has looked at, and bash stops in
    /// `$(…)` at a line that only begins with the delimiter.
    fn confuses(&self, line: &str) -> bool {
        let line = self.stripped(line);
        let alike = line
            .bytes()
            .zip(self.delimiter.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let odd = line
            .as_bytes()
            .get(alike)
            .is_some_and(|next| !next.is_ascii());
        alike == self.delimiter.len() || (alike > 0 && odd)
    }
}

/// A place for a value.
enum Place {
    Bare,
    Double,
    Single,
    /// Only whole numbers.
    Number,
    /// Only text without any meaning to the shell.
    Harmless(&'static str),
}

fn misplaced(place: &str, help: &str) -> EvalError {
    EvalError::new(
        ErrorKind::Place,
        format!("a value cannot stand {place}; {help}"),
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

fn harmless(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_./,:@-".contains(&byte))
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn top(&self) -> Frame {
        self.frames.last().copied().unwrap_or(Frame::Command)
    }

    /// Whether a value stands `ahead` bytes further.
    fn mark_at(&self, ahead: usize) -> bool {
        let text = self.text.get(self.at + ahead..);
        text.is_some_and(|text| marked(text).is_some())
    }

    /// Copies so many bytes.
    fn copy(&mut self, bytes: usize) {
        let mut end = (self.at + bytes).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.out.push_str(&self.text[self.at..end]);
        self.at = end;
    }

    fn open(&mut self, frame: Frame, bytes: usize) {
        self.copy(bytes);
        self.frames.push(frame);
    }

    fn close(&mut self) {
        self.copy(1);
        if self.frames.len() > 1 {
            self.frames.pop();
        }
    }

    fn step(&mut self) -> Result<(), EvalError> {
        if let Some((index, length)) = marked(self.rest()) {
            return self.value(index, length);
        }
        let Some(letter) = self.rest().chars().next() else {
            return Ok(());
        };
        match self.top() {
            Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. } => {
                self.command(letter)?;
            }
            Frame::Single => match letter {
                '\'' => self.close(),
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Ansi => match letter {
                '\'' => self.close(),
                '\\' => {
                    if self.rest().starts_with(r"\'") {
                        self.lost = Some("after a quote escaped inside `$'…'`");
                    }
                    self.escaped("inside `$'…'`")?;
                }
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Double => match letter {
                '"' => self.close(),
                '\\' if self.mark_at(1) => self.literal_before_value(),
                '\\' => self.copy(2),
                '$' => self.dollar(true),
                '`' => self.backquote(),
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Parameter { quoted, .. } => match letter {
                '}' => self.close(),
                '\\' => self.escaped("after a backslash")?,
                '\'' if !quoted => self.open(Frame::Single, 1),
                '"' => self.open(Frame::Double, 1),
                '$' => self.dollar(quoted),
                '`' => self.backquote(),
                _ => self.copy(letter.len_utf8()),
            },
            Frame::Arithmetic {
                depth,
                substitution,
            } => match letter {
                '(' => self.arithmetic(depth + 1, substitution),
                ')' => self.arithmetic(depth - 1, substitution),
                '\\' => self.escaped("after a backslash")?,
                '\'' => self.open(Frame::Single, 1),
                '"' => self.open(Frame::Double, 1),
                '$' => self.dollar(false),
                '`' => self.backquote(),
                _ => self.copy(letter.len_utf8()),
            },
        }
        Ok(())
    }

    fn arithmetic(&mut self, depth: usize, substitution: bool) {
        self.copy(1);
        self.frames.pop();
        if depth > 0 {
            self.frames.push(Frame::Arithmetic {
                depth,
                substitution,
            });
        } else {
            self.fresh = !substitution;
        }
    }

    /// Copies a backslash and what it escapes.
    fn escaped(&mut self, place: &str) -> Result<(), EvalError> {
        if self.mark_at(1) {
            return Err(misplaced(place, "put it in double quotes"));
        }
        let next = self.rest()[1..].chars().next().map_or(0, char::len_utf8);
        self.copy(1 + next);
        Ok(())
    }

    /// `\` or `$` right before a value is meant as itself.
    fn literal_before_value(&mut self) {
        self.out.push('\\');
        self.copy(1);
    }

    fn dollar(&mut self, quoted: bool) {
        let rest = self.rest();
        if self.mark_at(1) {
            self.literal_before_value();
            self.fresh = false;
        } else if rest.starts_with("$((") {
            let substitution = true;
            self.open(
                Frame::Arithmetic {
                    depth: 2,
                    substitution,
                },
                3,
            );
        } else if rest.starts_with("$(") {
            self.open(Frame::Parentheses { substitution: true }, 2);
            self.fresh = true;
        } else if rest.starts_with("${") {
            let from = self.at + 2;
            self.open(Frame::Parameter { from, quoted }, 2);
            self.fresh = false;
        } else if rest.starts_with("$'") && !quoted {
            self.open(Frame::Ansi, 2);
            self.fresh = false;
        } else {
            self.copy(1);
            self.fresh = false;
        }
    }

    fn backquote(&mut self) {
        let inside = |frame: &Frame| matches!(frame, Frame::Backquotes { .. });
        if let Some(open) = self.frames.iter().rposition(inside) {
            self.frames.truncate(open.max(1));
            self.copy(1);
            self.fresh = false;
            return;
        }
        let body = &self.rest()[1..];
        let mut backslashes = false;
        let mut letters = body.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '`' => break,
                '\\' => {
                    backslashes = true;
                    letters.next();
                }
                _ => {}
            }
        }
        self.open(Frame::Backquotes { backslashes }, 1);
        self.fresh = true;
    }

    fn command(&mut self, letter: char) -> Result<(), EvalError> {
        let rest = self.rest();
        if self.fresh && rest.starts_with("case") && self.substituting() {
            // The `)` of a pattern would be taken for the end of the substitution.
            self.lost = Some("after a `case` inside `$(…)`");
        }
        match letter {
            '\\' => {
                let continues = rest.starts_with("\\\n");
                self.escaped("after a backslash")?;
                self.fresh &= continues;
            }
            '\'' => {
                self.open(Frame::Single, 1);
                self.fresh = false;
            }
            '"' => {
                self.open(Frame::Double, 1);
                self.fresh = false;
            }
            '`' => self.backquote(),
            '$' => self.dollar(false),
            '(' if rest.starts_with("((") => self.open(
                Frame::Arithmetic {
                    depth: 2,
                    substitution: false,
                },
                2,
            ),
            '(' => {
                self.open(
                    Frame::Parentheses {
                        substitution: false,
                    },
                    1,
                );
                self.fresh = true;
            }
            ')' => {
                match self.top() {
                    Frame::Parentheses { substitution } => {
                        self.close();
                        self.fresh = !substitution;
                    }
                    _ => {
                        self.copy(1);
                        self.fresh = true;
                    }
                };
            }
            '<' if rest.starts_with("<<<") => {
                self.copy(3);
                self.fresh = true;
            }
            '<' if rest.starts_with("<<") => self.here_document()?,
            '#' if self.fresh => self.comment()?,
            '\n' => {
                self.copy(1);
                self.fresh = true;
                self.documents()?;
            }
            ' ' | '\t' | ';' | '&' | '|' | '<' | '>' => {
                self.copy(1);
                self.fresh = true;
            }
            other => {
                self.copy(other.len_utf8());
                self.fresh = false;
            }
        }
        Ok(())
    }

    fn substituting(&self) -> bool {
        let substitution = |frame: &Frame| {
            matches!(
                frame,
                Frame::Parentheses { substitution: true } | Frame::Backquotes { .. }
            )
        };
        self.frames.iter().any(substitution)
    }

    fn comment(&mut self) -> Result<(), EvalError> {
        let quoted = self
            .frames
            .iter()
            .any(|f| matches!(f, Frame::Backquotes { .. }));
        while let Some(letter) = self.rest().chars().next() {
            if letter == '\n' || (letter == '`' && quoted) {
                break;
            }
            match marked(self.rest()) {
                Some((index, length)) => {
                    let text = self.texts(index)?.join(" ");
                    if !text.split(' ').all(harmless) {
                        return Err(misplaced("in a comment", "take it out"));
                    }
                    self.out.push_str(&text);
                    self.at += length;
                }
                None => self.copy(letter.len_utf8()),
            }
        }
        Ok(())
    }

    /// Reads `<<WORD`.
    fn here_document(&mut self) -> Result<(), EvalError> {
        self.copy(2);
        let tabs = self.rest().starts_with('-');
        if tabs {
            self.copy(1);
        }
        while self.rest().starts_with([' ', '\t']) {
            self.copy(1);
        }
        let mut delimiter = String::new();
        let mut quoted = false;
        let mut quote = None;
        while let Some(letter) = self.rest().chars().next() {
            if self.mark_at(0) {
                return Err(misplaced(
                    "in the delimiter of a here-document",
                    "write a fixed word",
                ));
            }
            match (quote, letter) {
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    quoted = true;
                }
                (Some(open), _) if open == letter => quote = None,
                (None, '\\') => {
                    quoted = true;
                    self.copy(1);
                    let Some(next) = self.rest().chars().next() else {
                        break;
                    };
                    delimiter.push(next);
                    self.copy(next.len_utf8());
                    continue;
                }
                (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => break,
                _ => delimiter.push(letter),
            }
            self.copy(letter.len_utf8());
        }
        self.fresh = false;
        self.pending.push(HereDocument {
            delimiter,
            quoted,
            tabs,
            depth: self.frames.len(),
        });
        Ok(())
    }

    /// Reads the here-documents that begin on this line.
    fn documents(&mut self) -> Result<(), EvalError> {
        let here = self.frames.len();
        if self.pending.iter().any(|document| document.depth != here) {
            self.lost = Some("after a here-document that another command substitution interrupts");
            self.pending.clear();
        }
        for document in std::mem::take(&mut self.pending) {
            self.document(&document)?;
        }
        Ok(())
    }

    fn document(&mut self, document: &HereDocument) -> Result<(), EvalError> {
        // The text ends at the delimiter, whatever stands in it.
        let mut end = self.at;
        let mut after = self.text.len();
        for line in self.text[self.at..].split_inclusive('\n') {
            if document.stripped(line.strip_suffix('\n').unwrap_or(line)) == document.delimiter {
                after = end + line.len();
                break;
            }
            end += line.len();
        }
        let started = self.out.len();
        let mut nested = false;
        let mut valued = false;
        while self.at < end {
            if let Some((index, length)) = marked(self.rest()) {
                valued = true;
                self.document_value(document, index, nested)?;
                self.at += length;
                continue;
            }
            let letter = self.rest().chars().next().unwrap_or('\n');
            match letter {
                '\\' | '$' if !document.quoted && self.mark_at(1) => self.literal_before_value(),
                '\\' if !document.quoted => {
                    let next = self.rest()[1..].chars().next().map_or(0, char::len_utf8);
                    self.copy(1 + next);
                }
                '$' | '`' if !document.quoted => {
                    nested |= !self.simple();
                    self.copy(1);
                }
                other => self.copy(other.len_utf8()),
            }
        }
        let mut lines = self.out[started..].split('\n');
        if valued && lines.any(|line| document.confuses(line)) {
            return Err(misplaced(
                "in a here-document that it would end",
                "choose another delimiter",
            ));
        }
        self.copy(after - end);
        self.fresh = true;
        Ok(())
    }

    /// Whether the expansion that begins here plainly ends again, without anything inside.
    fn simple(&self) -> bool {
        let rest = self.rest();
        let (body, close) = if let Some(body) = rest.strip_prefix("${") {
            (body, '}')
        } else if let Some(body) = rest.strip_prefix("$(") {
            (body, ')')
        } else {
            return !rest.starts_with('`');
        };
        let inside = |letter: char| "(){}'\"\\`$#\u{fdd0}".contains(letter) || letter == '\n';
        body.find(inside)
            .is_some_and(|at| body[at..].starts_with(close))
    }

    fn document_value(
        &mut self,
        document: &HereDocument,
        index: usize,
        nested: bool,
    ) -> Result<(), EvalError> {
        self.certain()?;
        let text = self.texts(index)?.join(" ");
        let quoted = self
            .frames
            .iter()
            .any(|f| matches!(f, Frame::Backquotes { .. }));
        if quoted {
            return Err(misplaced(
                "in a here-document inside back-quotes",
                "write `$(…)`",
            ));
        }
        if nested && !harmless(&text) {
            return Err(misplaced(
                "after a substitution in a here-document",
                "put the substitution in a variable first",
            ));
        }
        if document.quoted && secret::concerns(&text) {
            return Err(misplaced(
                "in a here-document that is taken as it is when it is a secret",
                "write the delimiter without quotes",
            ));
        }
        if self.reader == Reader::Terminal && secret::concerns(&text) {
            return Err(misplaced(
                "in a here-document of a terminal when it is a secret",
                "put it in a variable before",
            ));
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
                // Expands to nothing, and keeps the line from being the delimiter.
                self.out.push_str("${-+}");
            }
            self.out.push_str(&encoded);
        }
        Ok(())
    }

    fn certain(&self) -> Result<(), EvalError> {
        match self.lost {
            Some(place) => Err(misplaced(place, "put it in a variable before")),
            None => Ok(()),
        }
    }

    fn texts(&self, index: usize) -> Result<Vec<String>, EvalError> {
        match self.held.get(index) {
            Some(Held::Value(value)) => texts(value),
            Some(Held::Raw(_) | Held::Written(_)) | None => Ok(Vec::new()),
        }
    }

    fn place(&self) -> Place {
        let below = self.frames.iter().rev().skip(1);
        let limit = |frame: &Frame| match frame {
            Frame::Ansi => Some(Place::Harmless("inside `$'…'`")),
            Frame::Parameter { .. } => Some(Place::Harmless("inside `${…}`")),
            Frame::Arithmetic { .. } => Some(Place::Number),
            _ => None,
        };
        let nearest = |frame: &&Frame| {
            matches!(
                frame,
                Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. }
            )
        };
        match self.top() {
            Frame::Command | Frame::Parentheses { .. } | Frame::Backquotes { .. } => Place::Bare,
            top @ (Frame::Double | Frame::Single) => {
                let outside = below.take_while(|frame| !nearest(frame)).find_map(limit);
                match (outside, top) {
                    (Some(place), _) => place,
                    (None, Frame::Single) => Place::Single,
                    (None, _) => Place::Double,
                }
            }
            top => limit(&top).unwrap_or(Place::Bare),
        }
    }

    fn value(&mut self, index: usize, length: usize) -> Result<(), EvalError> {
        self.certain()?;
        let texts = self.texts(index)?;
        let place = self.place();
        let before = self.out.chars().next_back();
        let next = self.text[self.at + length..].chars().next();
        let mut encoded = String::new();
        match place {
            Place::Bare => {
                let last = texts.len().saturating_sub(1);
                for (number, text) in texts.iter().enumerate() {
                    let first = number == 0;
                    if !first {
                        encoded.push(' ');
                    }
                    let before = if first { before } else { Some(' ') };
                    let after = if number == last { next } else { Some(' ') };
                    encoded.push_str(&word(text, before, after, self.reader)?);
                }
                self.fresh &= texts.is_empty();
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
            Place::Number => {
                let text = texts.join(" ");
                let digits = text.strip_prefix('-').unwrap_or(&text);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(misplaced(
                        "in arithmetic unless it is a whole number",
                        "check it before",
                    ));
                }
                encoded.push_str(&text);
            }
            Place::Harmless(place) => {
                let text = texts.join(" ");
                if !harmless(&text) || !self.after_operator() {
                    return Err(misplaced(place, "put it in a variable before"));
                }
                encoded.push_str(&text);
            }
        }
        for (index, frame) in self.frames.iter().enumerate().rev() {
            let Frame::Backquotes { backslashes } = frame else {
                continue;
            };
            // Bash looks for braces there as if the inner quotes ended the outer ones.
            if self.frames[..index].contains(&Frame::Double) && !texts.iter().all(|t| harmless(t)) {
                return Err(misplaced(
                    "inside back-quotes inside double quotes",
                    "write `$(…)`",
                ));
            }
            if *backslashes {
                return Err(misplaced(
                    "inside back-quotes that hold backslashes",
                    "write `$(…)`",
                ));
            }
            encoded = encoded.replace('\\', r"\\").replace('`', r"\`");
        }
        self.out.push_str(&encoded);
        self.at += length;
        Ok(())
    }

    /// In `${…}` a value may only be the word after an operator, never a name.
    fn after_operator(&self) -> bool {
        let innermost = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Parameter { from, .. } => Some(*from),
            _ => None,
        });
        innermost.is_none_or(|from| {
            let written = self.text[from..self.at].trim_start_matches(['#', '!']);
            written.contains(['-', '=', '+', '?', '%', '/', '#'])
        })
    }
}
