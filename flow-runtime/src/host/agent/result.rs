//! Results as agents submit them, and the results that steps have.
//!
//! Agents answer in more ways than a step's result has: plain text for a command's output, a bare
//! `true` for a confirmation, the whole answer of an MCP tool. What they mean is settled here, before
//! anything is recorded.

use flow_model::graph::{OutputFormat, PromptKind};

use crate::run::Deed;
use crate::value::Value;

/// What a submitted result means.
#[derive(Debug, PartialEq)]
pub(super) enum Meant {
    /// The step gave this.
    Result(Value),
    /// The step was done, and gave nothing.
    Done,
    /// The step failed, for this reason.
    Failed(String, Value),
}

/// A field of a submitted result that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`result.{field}` must be {wanted}, and it is {found}")]
pub struct Unfit {
    /// The field.
    pub field: &'static str,
    /// What it must be.
    pub wanted: &'static str,
    /// What it is.
    pub found: &'static str,
}

/// What a result means as the result of an action; none at all says that the step was done.
pub(super) fn meant(deed: &Deed, given: Option<Value>) -> Result<Meant, Unfit> {
    Ok(match deed {
        Deed::Shell { output, .. } => match given {
            None | Some(Value::Null) => Meant::Done,
            Some(given) => Meant::Result(shell(*output, given)?),
        },
        Deed::Tool { .. } => given.map_or(Meant::Done, tool),
        Deed::Prompt { kind, .. } => Meant::Result(match (kind, given) {
            (PromptKind::Info, None) => Value::map([("acknowledged", Value::Bool(true))]),
            (_, given) => deed.shape(given.unwrap_or_default()),
        }),
        Deed::Judge { .. } => match given {
            // A result that was forgotten must not end the run: that none holds is to be said.
            None | Some(Value::Null) => {
                return Err(Unfit {
                    field: "choice",
                    wanted: "the index of the choice that holds, or null if none does",
                    found: "not given",
                });
            }
            Some(given) => Meant::Result(deed.shape(given)),
        },
        Deed::Delegate { returns: None, .. } if given.is_none() => Meant::Done,
        Deed::Delegate { .. }
        | Deed::DelegateItem { .. }
        | Deed::Call { .. }
        | Deed::Environment { .. } => Meant::Result(given.unwrap_or_default()),
    })
}

/// A command's result. What is not one is its output, parsed or not.
fn shell(output: OutputFormat, given: Value) -> Result<Value, Unfit> {
    let stdout = match given {
        Value::Map(map) if map.0.contains_key("stdout") || map.0.contains_key("exit_code") => {
            let text = |field: &'static str| match map.0.get(field) {
                None | Some(Value::Null) => Ok(Value::text("")),
                Some(text @ Value::Str(_)) => Ok(text.clone()),
                Some(other) => Err(Unfit {
                    field,
                    wanted: "a string",
                    found: other.noun(),
                }),
            };
            // A command whose end is not known must not count as one that went well.
            let exit_code = match map.0.get("exit_code") {
                None => Value::Int(0),
                Some(code @ Value::Int(_)) => code.clone(),
                Some(other) => {
                    return Err(Unfit {
                        field: "exit_code",
                        wanted: "an integer, or left out for 0",
                        found: other.noun(),
                    });
                }
            };
            let mut fields = vec![
                ("stdout", text("stdout")?),
                ("stderr", text("stderr")?),
                ("exit_code", exit_code),
            ];
            if let Some(duration) = map.0.get("duration") {
                fields.push(("duration", duration.clone()));
            }
            return Ok(Value::map(fields));
        }
        Value::Str(text) => text.to_string(),
        Value::List(lines) if output == OutputFormat::Lines => {
            // Each line has its end, so that an empty last one is not lost.
            let lines = lines.0.iter();
            lines.map(|line| format!("{}\n", plain(line))).collect()
        }
        Value::Map(map) if output == OutputFormat::KeyValue => {
            let lines: Vec<String> = map
                .0
                .iter()
                .map(|(key, value)| format!("{key}={}", plain(value)))
                .collect();
            lines.join("\n")
        }
        other => other.to_string(),
    };
    Ok(Value::map([
        ("stdout", Value::text(stdout)),
        ("stderr", Value::text("")),
        ("exit_code", Value::Int(0)),
    ]))
}

/// What an MCP tool answered: its structured content, or its text, or as it was given.
fn tool(given: Value) -> Meant {
    let Value::Map(map) = &given else {
        return Meant::Result(given);
    };
    let structured = map.0.get("structuredContent");
    let content = map.0.get("content").and_then(Value::as_list);
    let is_answer = structured.is_some()
        || content.is_some_and(|blocks| blocks.iter().all(|block| block.get("type").is_some()));
    if !is_answer {
        return Meant::Result(given);
    }
    let texts = content.unwrap_or_default().iter();
    let texts: Vec<&str> = texts
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    let text = texts.join("\n");
    let result = match structured {
        Some(structured) if *structured != Value::Null => structured.clone(),
        _ => match serde_json::from_str::<Value>(&text) {
            Ok(value) => value,
            Err(_) => Value::text(&text),
        },
    };
    match map.0.get("isError") {
        Some(Value::Bool(true)) => Meant::Failed(text, result),
        _ => Meant::Result(result),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use flow_model::graph::By;
    use serde_json::json;

    use super::*;

    fn value(json: serde_json::Value) -> Value {
        Value::from(&json)
    }

    fn command(output: OutputFormat) -> Deed {
        Deed::Shell {
            command: "true".to_owned(),
            env: Vec::new(),
            working_directory: None,
            by: By::Host,
            output,
            reason: None,
        }
    }

    fn stdout(output: OutputFormat, given: serde_json::Value) -> String {
        match meant(&command(output), Some(value(given))) {
            Ok(Meant::Result(result)) => plain(result.get("stdout").unwrap_or(&Value::Null)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_is_answered_by_its_result_its_output_or_what_that_was_parsed_to() {
        assert_eq!(stdout(OutputFormat::Text, json!("hello")), "hello");
        assert_eq!(stdout(OutputFormat::Lines, json!(["a", ""])), "a\n\n");
        assert_eq!(
            stdout(OutputFormat::KeyValue, json!({"a": 1, "b": "x"})),
            "a=1\nb=x"
        );
        assert_eq!(stdout(OutputFormat::Json, json!({"a": 1})), r#"{"a":1}"#);
        assert_eq!(
            meant(
                &command(OutputFormat::Text),
                Some(value(json!({"stdout": "x", "exit_code": 3})))
            ),
            Ok(Meant::Result(value(
                json!({"stdout": "x", "stderr": "", "exit_code": 3})
            )))
        );
        assert_eq!(meant(&command(OutputFormat::Text), None), Ok(Meant::Done));
    }

    #[test]
    fn a_command_whose_end_cannot_be_read_did_not_go_well() {
        let unfit = |given| meant(&command(OutputFormat::Text), Some(value(given))).err();
        for code in [json!("1"), json!(true), json!(null), json!(1.5), json!([0])] {
            let unfit = unfit(json!({"exit_code": code}));
            assert_eq!(unfit.map(|it| it.field), Some("exit_code"), "{code}");
        }
        for field in ["stdout", "stderr"] {
            let unfit = unfit(json!({field: 5, "exit_code": 0}));
            assert_eq!(unfit.map(|it| it.field), Some(field));
        }
    }

    #[test]
    fn the_whole_answer_of_a_tool_is_unwrapped_and_its_error_is_a_failure() {
        let call = Deed::Tool {
            tool: "search".to_owned(),
            builtin: false,
            parameters: Value::Null,
        };
        let text = json!([{"type": "text", "text": "{\"hits\": 2}"}]);
        let meaning = |given| meant(&call, Some(value(given))).expect("a tool may answer anything");
        assert_eq!(
            meaning(json!({"content": text, "isError": false})),
            Meant::Result(value(json!({"hits": 2})))
        );
        assert_eq!(
            meaning(json!({"content": [], "structuredContent": {"hits": 3}})),
            Meant::Result(value(json!({"hits": 3})))
        );
        let refused = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(
            meaning(refused),
            Meant::Failed("no".to_owned(), Value::text("no"))
        );
        // A tool of one's own may have a field of that name.
        let own = json!({"content": ["a"]});
        assert_eq!(meaning(own.clone()), Meant::Result(value(own)));
    }
}
