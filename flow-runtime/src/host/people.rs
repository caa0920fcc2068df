//! Answers without a person: none, or those of a file.

use std::collections::HashMap;

use flow_model::graph::PromptKind;

use super::{Answer, Asked, Boxed, People, Question};
use crate::run::read_answer;
use crate::value::Value;

/// Nobody is there: every question waits, except one that only tells something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl People for Nobody {
    fn ask<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Answer> {
        Box::pin(async move {
            match question.kind {
                Asked::Prompt(PromptKind::Info, _) => acknowledged(),
                Asked::Prompt(..) | Asked::Judgement(_) | Asked::Delegate => Answer::Later,
            }
        })
    }
}

/// Bytes of a result that a person is shown.
const SHOWN: usize = 2_000;

/// What a person is asked who is to judge the transition of a state.
#[must_use]
pub fn judge_message(workflow: &str, state: &str, result: &Value) -> String {
    let mut shown = match result {
        Value::Str(text) => text.to_string(),
        other => format!("{:#}", other.to_json()),
    };
    if shown.len() > SHOWN {
        shown.truncate(shown.floor_char_boundary(SHOWN));
        shown.push('…');
    }
    format!("`{workflow}` has executed `{state}`. Which of these holds for its result?\n{shown}")
}

/// Somebody has read a message.
pub(super) fn acknowledged() -> Answer {
    Answer::Given(Value::map([("acknowledged", Value::Bool(true))]))
}

/// Answers prepared beforehand, by step.
#[derive(Debug, Default)]
pub struct Answers {
    by_step: HashMap<String, Value>,
}

/// Prepared answers that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("answers are a map from step to answer, and this is {0}")]
pub struct BadAnswers(&'static str);

impl Answers {
    /// Answers from a map of steps, each by any of its names. A plain value stands for the field
    /// that the prompt's result has: `true` for `{confirmed: true}`.
    ///
    /// # Errors
    ///
    /// When it is not a map.
    pub fn new(answers: &Value) -> Result<Self, BadAnswers> {
        let Value::Map(map) = answers else {
            return Err(BadAnswers(answers.noun()));
        };
        let by_step = map
            .0
            .iter()
            .map(|(step, answer)| (step.to_string(), answer.clone()));
        Ok(Answers {
            by_step: by_step.collect(),
        })
    }

    /// The steps that are answered, in no order.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.by_step.keys().map(String::as_str)
    }

    fn answer(&self, question: &Question<'_>) -> Answer {
        let mut names = question.names.iter().map(String::as_str);
        let given = names.find_map(|name| self.by_step.get(name));
        let Some(given) = given.or_else(|| self.by_step.get(question.step)) else {
            return match question.kind {
                Asked::Prompt(PromptKind::Info, _) => acknowledged(),
                Asked::Prompt(..) | Asked::Judgement(_) | Asked::Delegate => Answer::Later,
            };
        };
        // Giving the same invalid answer again would ask for ever.
        if question.complaint.is_some() {
            return Answer::Later;
        }
        Answer::Given(match question.kind {
            Asked::Prompt(kind, options) => read_answer(kind, options, given.clone()),
            Asked::Judgement(_) if given.get("choice").is_some() => given.clone(),
            Asked::Judgement(_) => Value::map([("choice", given.clone())]),
            Asked::Delegate => given.clone(),
        })
    }
}

impl People for Answers {
    fn ask<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Answer> {
        Box::pin(async move { self.answer(&question) })
    }
}
