//! A document written by walking the grammar, with a wrong turn now and then.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use flow_model::grammar::{self, Pattern, Record, Type};

/// The words of `dictionary.txt`, without their quotes.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    include_str!("../dictionary.txt")
        .lines()
        .filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'))
        .filter_map(|word| serde_json::from_str(&format!("\"{}\"", plain(word))).ok())
        .collect()
});

/// Few names, so that references often meet a declaration.
const NAMES: &[&str] = &[
    "a", "b", "c", "one", "two", "step_1", "build", "@task", "RUN",
];

const ROOTS: &[&str] = &[
    "state.",
    "inputs.",
    "raw.",
    "computed.",
    "item.",
    "",
    "loop.",
    "env.",
];

/// Nothing is nested deeper than this; without a bound the grammar could go on for ever.
const DEEPEST: usize = 12;

fn plain(word: &str) -> String {
    word.replace("\\x", "\\u00")
}

/// Flow-style YAML of a document. Without further choices everything ends in the simplest way.
pub fn write(choices: &mut Unstructured<'_>) -> String {
    let mut text = String::new();
    let mut writer = Writer {
        choices,
        text: &mut text,
    };
    // Running out of choices cuts the document off, which is a case too.
    let _ = writer.record(&grammar::DOCUMENT, 0);
    text
}

struct Writer<'w, 'b> {
    choices: &'w mut Unstructured<'b>,
    text: &'w mut String,
}

impl Writer<'_, '_> {
    fn chance(&mut self, one_in: u8) -> bool {
        self.choices.ratio(1, one_in).unwrap_or(false)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> Result<T> {
        self.choices.choose(from).copied()
    }

    fn count(&mut self, most: usize) -> usize {
        self.choices.int_in_range(0..=most).unwrap_or(0)
    }

    fn quoted(&mut self, text: &str) {
        if text.len().is_multiple_of(3) && !text.contains('\'') {
            self.text.push('\'');
            self.text.push_str(text);
            self.text.push('\'');
        } else {
            self.text
                .push_str(&serde_json::Value::from(text).to_string());
        }
    }

    fn record(&mut self, record: &'static Record, depth: usize) -> Result<()> {
        self.text.push('{');
        self.keys(record, depth)?;
        self.text.push('}');
        Ok(())
    }

    fn keys(&mut self, record: &'static Record, depth: usize) -> Result<()> {
        let keys: Vec<_> = record.all_keys().collect();
        for key in keys.iter().filter(|key| key.required) {
            if !self.chance(16) {
                self.entry(key.name, key.ty, depth)?;
            }
        }
        for _ in 0..self.count(5) {
            let key = self.pick(&keys)?;
            self.entry(key.name, key.ty, depth)?;
        }
        if self.chance(24) {
            let word = self.word()?;
            self.entry(&word, &Type::Any, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, key: &str, ty: &'static Type, depth: usize) -> Result<()> {
        self.quoted(key);
        self.text.push_str(": ");
        self.value(ty, depth + 1)?;
        self.text.push_str(", ");
        if self.chance(6) {
            self.text.push('\n');
        }
        Ok(())
    }

    fn value(&mut self, ty: &'static Type, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            self.text.push('~');
            return Ok(());
        }
        if self.chance(32) {
            return self.anything(depth);
        }
        match ty {
            Type::Null => self.text.push('~'),
            Type::Bool | Type::True => {
                let word = self.pick(&["true", "false", "true"])?;
                self.text.push_str(word);
            }
            Type::Int(..) | Type::Number(..) | Type::Millis(..) => {
                let number = self.pick(&["0", "1", "3", "-1", "1.5", "1e9", "100", ".inf"])?;
                self.text.push_str(number);
            }
            Type::Duration(..) => {
                let text = self.pick(&["1", "30s", "5m", "1.5", "500ms", "9d"])?;
                self.text.push_str(text);
            }
            Type::Word(words) => {
                let word = self.pick(words)?;
                self.quoted(word);
            }
            Type::Text(pattern, _) => {
                let name = self.name(*pattern)?;
                self.quoted(&name);
            }
            Type::Regex => {
                let regex = self.pick(&["^a+$", "(", "[a-z]{2,}", "\\d", "a|b", "(?i)x", "*"])?;
                self.quoted(regex);
            }
            Type::Template | Type::Condition => {
                let text = self.template()?;
                self.quoted(&text);
            }
            Type::Any | Type::Literal => self.anything(depth)?,
            Type::List(of, _) => {
                self.text.push('[');
                for _ in 0..self.count(4) {
                    self.value(of, depth + 1)?;
                    self.text.push_str(", ");
                }
                self.text.push(']');
            }
            Type::Map(pattern, of, _) => {
                self.text.push('{');
                for _ in 0..self.count(4) {
                    let name = self.name(*pattern)?;
                    self.entry(&name, of, depth)?;
                }
                self.text.push('}');
            }
            Type::Record(record) => self.record(record, depth)?,
            Type::Step | Type::ActionStep => {
                let words: Vec<_> = grammar::STEPS.iter().collect();
                let step = self.pick(&words)?;
                self.text.push_str("{type: ");
                self.quoted(step.word);
                self.text.push_str(", ");
                for key in step.record.all_keys().filter(|key| key.required) {
                    if key.name != "type" {
                        self.entry(key.name, key.ty, depth)?;
                    }
                }
                let keys: Vec<_> = step.record.all_keys().collect();
                for _ in 0..self.count(3) {
                    let key = self.pick(&keys)?;
                    if key.name != "type" {
                        self.entry(key.name, key.ty, depth)?;
                    }
                }
                self.text.push('}');
            }
            Type::Either(types) => {
                let ty = self.pick(types)?;
                self.value(ty, depth)?;
            }
        }
        Ok(())
    }

    fn anything(&mut self, depth: usize) -> Result<()> {
        match self.count(7) {
            0 => self.text.push('~'),
            1 => self.text.push('7'),
            2 => self.value(&Type::Bool, depth)?,
            3 => self.value(&Type::List(&Type::Any, 4), depth + 3)?,
            4 => self.value(&Type::Map(Pattern::Name, &Type::Any, 4), depth + 3)?,
            5 => {
                let word = self.word()?;
                self.quoted(&word);
            }
            _ => {
                let text = self.template()?;
                self.quoted(&text);
            }
        }
        Ok(())
    }

    fn name(&mut self, pattern: Pattern) -> Result<String> {
        if self.chance(12) {
            return self.word();
        }
        let name = self.pick(NAMES)?;
        Ok(match pattern {
            Pattern::Free | Pattern::Name | Pattern::Workflow => name.to_owned(),
            Pattern::Environment => name.to_uppercase(),
            Pattern::Agent | Pattern::AgentKey => format!("@{}", name.replace(['_', '@'], "-")),
            Pattern::Version => "1.2.0".to_owned(),
        })
    }

    fn word(&mut self) -> Result<String> {
        let words: &[String] = &WORDS;
        Ok(self.choices.choose(words)?.clone())
    }

    /// Text with interpolations made of known names and of any words.
    fn template(&mut self) -> Result<String> {
        let mut text = String::new();
        for _ in 0..=self.count(3) {
            match self.count(5) {
                0 => text.push_str(&self.word()?),
                1 => text.push_str(self.pick(&["echo ", "{a}", " ", "\n", "sh -c \"", "é"])?),
                2 => {
                    text.push_str("{{ ");
                    for _ in 0..=self.count(5) {
                        text.push_str(&self.word()?);
                        text.push(' ');
                    }
                    text.push_str("}}");
                }
                _ => {
                    let root = self.pick(ROOTS)?;
                    let name = self.pick(NAMES)?;
                    let tail =
                        self.pick(&["", " | length", " == 1", ".x", "[0]", " | default(1)"])?;
                    text.push_str(&format!("{{{{ {root}{name}{tail} }}}}"));
                }
            }
        }
        Ok(text)
    }
}
