//! What there is to judge, as it is when somebody looks.
//!
//! A tool that types answers before the program has: its result shows a screen on which nothing has
//! happened. Who judges is shown the screen of now: in its place, or beside what a state has read
//! itself, which stays as it was. The run itself goes on from what was recorded.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use flow_model::graph::{Kind, ToolRef};

use super::local::Host;
use crate::journal::RunId;
use crate::run::{Action, Deed};
use crate::secret;
use crate::terminal::Terminals;
use crate::value::Value;

/// How long a shell may take to be back at its prompt before somebody is asked at once.
const SETTLES: Duration = Duration::from_secs(1);

/// Bytes of a long text, and items of a long list, that are shown from its start and from its end.
const SHOWN_TEXT: usize = 4_000;
const SHOWN_ITEMS: usize = 50;

/// What whoever judges is told to do.
pub const JUDGE_INSTRUCTIONS: &str = "Decide which description in `choices` holds for `result`; \
    a `screen` in it is what the terminal shows now. \
    Submit {\"choice\": index} or {\"next_state\": name}, or {\"choice\": null} if none does.";

impl Host {
    /// An action that asks for a judgement with the screen as it is now, and with as much of a long
    /// result as one reads; any other as it is.
    pub(super) fn shown<'a>(&self, run: RunId, action: &'a Action) -> Cow<'a, Action> {
        let Deed::Judge { choices, result } = &action.what else {
            return Cow::Borrowed(action);
        };
        let now = self.with_screen(run, &action.node, result);
        let Cow::Owned(result) = bounded(&now, &action.node) else {
            return match now {
                Cow::Borrowed(_) => Cow::Borrowed(action),
                Cow::Owned(result) => judging(action, choices, result),
            };
        };
        judging(action, choices, result)
    }

    /// A result with the screen as it is now, where it shows one.
    fn with_screen<'a>(&self, run: RunId, state: &str, result: &'a Value) -> Cow<'a, Value> {
        let (Some((terminals, session)), Value::Map(map)) = (self.screen_of(result), result) else {
            return Cow::Borrowed(result);
        };
        let Ok(screen) = terminals.screen(session) else {
            return Cow::Borrowed(result);
        };
        let shown = Value::text(screen);
        self.overhear_in(run, &[session].into(), &shown);
        let screen = self.scrubber(run).value(&shown);
        if map.0.get("screen_content") == Some(&screen) {
            return Cow::Borrowed(result);
        }
        let field = match self.reads(run, state) {
            true => "screen",
            false => "screen_content",
        };
        let mut map = (**map).clone();
        map.0.insert(Arc::from(field), screen);
        Cow::Owned(Value::Map(Arc::new(map)))
    }

    /// Whether a state reads a terminal, so that the text is what it was asked for and not the
    /// screen that happened to be there.
    fn reads(&self, run: RunId, state: &str) -> bool {
        let Ok(program) = self.program_of(run) else {
            return true;
        };
        let mut nodes = program.graph().body.nodes.iter();
        nodes.any(|node| match &node.kind {
            Kind::Tool {
                tool: ToolRef::Builtin(tool),
                ..
            } => *node.id == *state && &**tool == "get_screen_content",
            _ => false,
        })
    }

    /// Lets a shell that was just typed into do what it was told, for a moment.
    pub(super) async fn let_settle(&self, result: &Value) {
        if let Some((terminals, session)) = self.screen_of(result) {
            // One that is gone has settled.
            let _ = terminals.prompt(session, SETTLES).await;
        }
    }

    /// The session whose screen a result shows.
    fn screen_of<'a>(&'a self, result: &'a Value) -> Option<(&'a Terminals, &'a str)> {
        result.get("screen_content")?;
        let session = result.get("session_id")?.as_str()?;
        Some((self.inner.options.terminals.as_ref()?, session))
    }
}

fn judging<'a>(action: &Action, choices: &[(String, String)], result: Value) -> Cow<'a, Action> {
    Cow::Owned(Action {
        what: Deed::Judge {
            choices: choices.to_vec(),
            result,
        },
        ..action.clone()
    })
}

/// A result of a state as far as it is shown: the beginning and the end of what is long, with how
/// much is between them and where all of it is.
fn bounded<'a>(result: &'a Value, state: &str) -> Cow<'a, Value> {
    let Value::Map(map) = result else {
        return cut(result, state);
    };
    let each = map.0.iter().map(|(field, value)| {
        let shown = cut(value, &format!("{state}_{field}"));
        (field.clone(), shown)
    });
    let each: Vec<(Arc<str>, Cow<'_, Value>)> = each.collect();
    if each.iter().all(|(_, it)| matches!(it, Cow::Borrowed(_))) {
        return Cow::Borrowed(result);
    }
    Cow::Owned(Value::map(
        each.into_iter().map(|(field, it)| (field, it.into_owned())),
    ))
}

fn cut<'a>(value: &'a Value, variable: &str) -> Cow<'a, Value> {
    let left_out = |count: usize, what: &str| {
        format!(
            "… {count} {what} left out; `{variable}` among the variables of the run, which \
             `get_workflow_status` tells, has all of it …"
        )
    };
    match value {
        Value::Str(text) if text.len() > 2 * SHOWN_TEXT => {
            let text = secret::mask(text);
            let (head, rest) = text.split_at(text.floor_char_boundary(SHOWN_TEXT));
            let tail = rest.ceil_char_boundary(rest.len().saturating_sub(SHOWN_TEXT));
            let (between, tail) = rest.split_at(tail);
            let count = between.chars().count();
            let said = left_out(count, "characters");
            Cow::Owned(Value::text(format!("{head}\n{said}\n{tail}")))
        }
        Value::List(items) => {
            let items = &items.0;
            let between = items.len().saturating_sub(2 * SHOWN_ITEMS);
            let shown = |item: &Value| cut(item, variable).into_owned();
            match between {
                0 if items
                    .iter()
                    .all(|it| matches!(cut(it, variable), Cow::Borrowed(_))) =>
                {
                    Cow::Borrowed(value)
                }
                0 => Cow::Owned(Value::list(items.iter().map(shown))),
                _ => {
                    let (head, rest) = items.split_at(SHOWN_ITEMS);
                    let said = Value::text(left_out(between, "items"));
                    let tail = rest[between..].iter().map(shown);
                    let head = head.iter().map(shown);
                    Cow::Owned(Value::list(head.chain([said]).chain(tail)))
                }
            }
        }
        Value::Map(map) => {
            let is_short = |it: &Value| matches!(cut(it, variable), Cow::Borrowed(_));
            match map.0.values().all(is_short) {
                true => Cow::Borrowed(value),
                false => Cow::Owned(Value::map(
                    map.0
                        .iter()
                        .map(|(key, it)| (key, cut(it, variable).into_owned())),
                )),
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {
            Cow::Borrowed(value)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_a_long_result_both_ends_are_shown_and_what_lies_between_is_counted() {
        let text = format!("first{}last", "ä".repeat(1_000_000));
        let lines: Vec<usize> = (0..10_000).collect();
        let result = Value::from(&json!({"stdout": text, "lines": lines, "exit_code": 0}));
        let shown = bounded(&result, "look").to_json();
        let stdout = shown["stdout"].as_str().unwrap_or_default();
        assert!(stdout.starts_with("firstä") && stdout.ends_with("älast"));
        assert!(stdout.len() < 3 * SHOWN_TEXT, "{}", stdout.len());
        assert!(stdout.contains("characters left out; `look_stdout`"));
        let lines = shown["lines"].as_array().map_or(0, Vec::len);
        assert_eq!(lines, 2 * SHOWN_ITEMS + 1);
        assert_eq!(shown["exit_code"], 0);
    }

    #[test]
    fn a_result_of_the_usual_size_is_shown_as_it_is() {
        let result = Value::from(&json!({"stdout": "a".repeat(5_000), "lines": [1, {"a": "b"}]}));
        assert!(matches!(bounded(&result, "look"), Cow::Borrowed(_)));
    }
}
