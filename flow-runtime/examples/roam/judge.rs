//! What must hold always of what has run: how often each word may stand in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What went wrong, by its kind, and in words.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: &'static str,
    pub(crate) words: String,
}

pub(crate) fn fault<T>(kind: &'static str, words: impl Into<String>) -> Result<T, Fault> {
    let words = words.into();
    Err(Fault { kind, words })
}

/// How often something may have run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Times {
    /// The answer said that it does not run, or it was given up.
    Never,
    /// It was not entered until now.
    NotYet,
    /// Nobody can tell whether it did.
    AtMostOnce,
    /// It was entered where nothing stands in its way; it may be under way.
    Due,
    Once,
}

/// The log of a session, in which everything that runs leaves its word, and what is expected of it.
pub(crate) struct Judge {
    path: PathBuf,
    words: BTreeMap<String, Times>,
    /// An earlier line may have been fetched from the history and entered.
    pub(crate) recalled: bool,
    /// Lines may have grown together, by what was typed.
    pub(crate) blurred: bool,
    /// How much of the log was read before this sequence.
    read: usize,
}

impl Judge {
    pub(crate) fn new(path: &Path) -> Judge {
        Judge {
            path: path.to_owned(),
            words: BTreeMap::new(),
            recalled: false,
            blurred: false,
            read: 0,
        }
    }

    pub(crate) fn begin(&mut self) {
        self.read = self.lines().len();
        self.change(Times::NotYet, Times::Never);
        (self.recalled, self.blurred) = (false, false);
    }

    pub(crate) fn expect(&mut self, word: String, times: Times) {
        self.words.insert(word, times);
    }

    /// Changes what is expected of every word of which something else was.
    pub(crate) fn change(&mut self, from: Times, to: Times) {
        for times in self.words.values_mut().filter(|times| **times == from) {
            *times = to;
        }
    }

    fn lines(&self) -> Vec<String> {
        let log = std::fs::read(&self.path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        log.lines().map(str::to_owned).collect()
    }

    /// Holds the log against what is expected.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let lines = self.lines();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, line) in lines.iter().enumerate() {
            if self.words.contains_key(line) {
                *counts.entry(line).or_default() += 1;
            } else {
                self.check_mangled(line, number >= self.read)?;
            }
        }
        for (word, times) in &self.words {
            let count = counts.get(&**word).copied().unwrap_or(0);
            let (kind, fine) = match times {
                Times::Never if word.starts_with('r') => ("a refused command ran", count == 0),
                Times::Never | Times::NotYet => ("text ran that was not entered", count == 0),
                Times::AtMostOnce | Times::Due => {
                    ("something ran twice", count <= 1 || self.recalled)
                }
                Times::Once if count == 0 && word.starts_with('r') => {
                    ("a command is finished and did not run", false)
                }
                Times::Once if count == 0 => ("something did not run", false),
                Times::Once => ("something ran twice", count == 1 || self.recalled),
            };
            if !fine {
                return fault(kind, format!("`{word}` ran {count} times: {times:?}"));
            }
        }
        Ok(())
    }

    /// A line that is no known word. What was typed may have become that, a command that is followed never.
    fn check_mangled(&self, line: &str, new: bool) -> Result<(), Fault> {
        let words: BTreeSet<&str> = line
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter(|word| self.words.contains_key(*word))
            .collect();
        let is_command = |word: &&&str| word.starts_with('r');
        let is_recalled = |word: &str| self.recalled && self.words.get(word) != Some(&Times::Never);
        if let Some(word) = words.iter().find(is_command)
            && new
            && !is_recalled(word)
        {
            return fault("a mangled command ran", format!("`{word}` as {line:?}"));
        }
        if new && !self.blurred {
            return fault("something mangled ran", format!("{line:?}"));
        }
        Ok(())
    }
}
