//! JSON text to a tree. Gives up on anything that is not JSON, so that YAML can say what is wrong.

use std::ops::Range;

use super::{Entry, FileId, MAX_DEPTH, Scalar, Span, Spanned, Style, Tree, Unbounded, Value};

/// Why a text is not JSON.
pub(super) enum NotJson {
    /// A comment, where the text before it is JSON.
    Comment(Range<usize>),
    /// Anything else.
    Other,
}

pub(super) fn parse(text: &str, file: FileId) -> Result<Unbounded, NotJson> {
    let mut parser = Parser {
        text,
        at: 0,
        file,
        nodes: 0,
    };
    let tree = parser.value(0);
    parser.space();
    match tree {
        Some(tree) if parser.at == text.len() => Ok(Unbounded {
            tree,
            nodes: parser.nodes,
        }),
        _ => Err(parser.comment().map_or(NotJson::Other, NotJson::Comment)),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    file: FileId,
    nodes: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The comment at which reading stopped, up to the end of its line.
    fn comment(&self) -> Option<Range<usize>> {
        let (before, rest) = self.text.split_at_checked(self.at)?;
        let line = rest.lines().next()?;
        // In YAML `{"share": //host/path}` has a value.
        let is_value = before.trim_end().ends_with(':') && !line.starts_with("// ");
        let length = match line.get(..2)? {
            "/*" => line.find("*/").map_or(line.len(), |end| end + 2),
            "//" if !is_value => line.len(),
            _ => return None,
        };
        Some(self.at..self.at + length)
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Tree> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        self.nodes += 1;
        let start = self.at;
        let value = match self.peek()? {
            b'{' => self.map(depth)?,
            b'[' => self.list(depth)?,
            b'"' => Value::Str(Scalar {
                text: self.string()?,
                style: Style::Double,
            }),
            b't' => self.word("true", Value::Bool(true))?,
            b'f' => self.word("false", Value::Bool(false))?,
            b'n' => self.word("null", Value::Null)?,
            _ => self.number()?,
        };
        Some(Tree {
            value,
            span: Span::new(self.file, start..self.at),
        })
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.eat(b'[')?;
        let mut items = Vec::new();
        if self.eat(b']').is_some() {
            return Some(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.eat(b']').is_some() {
                return Some(Value::List(items));
            }
            self.eat(b',')?;
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.eat(b'{')?;
        let mut entries = Vec::new();
        if self.eat(b'}').is_some() {
            return Some(Value::Map(entries));
        }
        loop {
            self.space();
            let start = self.at;
            let value = self.string()?;
            let span = Span::new(self.file, start..self.at);
            let key = Spanned { value, span };
            self.eat(b':')?;
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, value });
            if self.eat(b'}').is_some() {
                return Some(Value::Map(entries));
            }
            self.eat(b',')?;
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                0..=0x1F => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.at += 1;
        }
        let number: serde_json::Number = serde_json::from_str(&self.text[start..self.at]).ok()?;
        match number.as_i64() {
            Some(whole) => Some(Value::Int(whole)),
            None => number.as_f64().map(Value::Float),
        }
    }
}
