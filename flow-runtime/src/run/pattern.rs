//! Regular expressions of a definition, each compiled once, when it is first needed.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use regex::Regex;

use super::event::{Failure, FailureKind};
use crate::value::Value;

/// Fields of a result that a pattern is looked for in, one after another.
const SEARCHED: [&str; 4] = ["match_text", "screen_content", "output", "stdout"];

#[derive(Debug, Default)]
pub(super) struct Patterns(RwLock<HashMap<String, Result<Regex, String>>>);

impl Patterns {
    /// Whether a pattern is found in the match, or else on the screen.
    pub(super) fn found(&self, pattern: &str, result: &Value) -> Result<bool, Failure> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(pattern) {
            return search(compiled, result);
        }
        drop(known);
        let compiled = Regex::new(pattern).map_err(|error| error.to_string());
        let answer = search(&compiled, result);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(pattern.to_owned(), compiled);
        answer
    }
}

fn search(pattern: &Result<Regex, String>, result: &Value) -> Result<bool, Failure> {
    let pattern = pattern.as_ref().map_err(|error| {
        let message = format!("the pattern does not compile: {error}");
        Failure::new(FailureKind::Expression, message)
    })?;
    let mut texts = SEARCHED
        .iter()
        .filter_map(|field| result.get(field).and_then(Value::as_str));
    Ok(texts.any(|text| pattern.is_match(text)))
}
