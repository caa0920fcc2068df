//! What the result of a tool means: a value, or why it did not do what was asked.

use flow_model::graph::Node;
use flow_model::tools::{self, AwaitOutputRequest, RunCommandRequest};

use super::effect::Deed;
use super::event::{Failure, FailureKind};
use crate::secret;
use crate::value::Value;

/// Characters of a command or a pattern, and of a line of output, that a message shows.
const SHOWN: usize = 200;

/// What a tool's result means.
pub(super) fn tool_result(node: &Node, deed: &Deed, result: &Value) -> Result<Value, Failure> {
    if let Some(message) = own_limit(deed, result) {
        return Err(Failure::new(FailureKind::Timeout, message));
    }
    let judged = matches!(
        deed,
        Deed::Tool { builtin: true, .. } | Deed::Call { response: true, .. }
    );
    if judged && result.get("success") == Some(&Value::Bool(false)) {
        let error = result.get("error").and_then(Value::as_str);
        let message = match (exit(deed, result), error) {
            (Some(exit), _) => format!("`{}` failed: {exit}", node.id),
            (None, Some(error)) => format!("`{}` failed: {error}", node.id),
            (None, None) => format!("`{}` failed", node.id),
        };
        return Err(Failure::new(FailureKind::Action, message));
    }
    Ok(match (deed, result.get("outputs")) {
        (
            Deed::Call {
                response: false, ..
            },
            Some(outputs),
        ) => outputs.clone(),
        _ => result.clone(),
    })
}

/// The tool of flow's own that an action calls, with its parameters.
fn builtin(deed: &Deed) -> Option<(&str, &Value)> {
    match deed {
        Deed::Tool {
            tool,
            builtin: true,
            parameters,
        } => Some((tool, parameters)),
        _ => None,
    }
}

/// How a command that ran to its end ended.
fn exit(deed: &Deed, result: &Value) -> Option<String> {
    let (tool, parameters) = builtin(deed)?;
    let text = |field: &str| result.get(field).and_then(Value::as_str);
    if tool != "run_command" || text("status") != Some("finished") {
        return None;
    }
    let command = parameters.get("command").and_then(Value::as_str);
    let command = command.map_or("the command".to_owned(), |it| format!("`{}`", shown(it)));
    let mut message = match result.get("exit_code") {
        Some(Value::Int(code)) => format!("{command} ended with exit code {code}"),
        _ => format!("{command} ended, and its exit code is not known"),
    };
    if let Some(line) = text("output").and_then(last_line) {
        message.push_str(&format!("; its last line is: {line}"));
    }
    Some(message)
}

/// What a tool with a time limit of its own did not see happen in that time.
pub(crate) fn own_limit(deed: &Deed, result: &Value) -> Option<String> {
    let (tool, parameters) = builtin(deed)?;
    let text = |field: &str| result.get(field).and_then(Value::as_str);
    match tool {
        // Its result says success: it has waited, as it was asked to.
        "await_output" => {
            let waited = result.get("success") != Some(&Value::Bool(false));
            if !waited || text("match_text").is_some() {
                return None;
            }
            let mut message = "the pattern was not found in time".to_owned();
            if let Ok(asked) = tools::request::<AwaitOutputRequest>(parameters.to_json()) {
                let (pattern, seconds) = (shown(&asked.pattern), asked.timeout);
                let has_ended = result.get("process_running") == Some(&Value::Bool(false));
                message = match has_ended {
                    true => format!(
                        "the pattern `{pattern}` was not found before the program of the session ended"
                    ),
                    false => format!("the pattern `{pattern}` was not found within {seconds} s"),
                };
            }
            if let Some(line) = text("tail").and_then(last_line) {
                message.push_str(&format!("; the last line is: {line}"));
            }
            Some(message)
        }
        "run_command" if text("status") == Some("timed_out") => {
            let mut message = "the command did not end in time".to_owned();
            if let Ok(asked) = tools::request::<RunCommandRequest>(parameters.to_json()) {
                let (command, seconds) = (shown(&asked.command), asked.timeout);
                message = format!("the command `{command}` did not end within {seconds} s");
            }
            if let Some(error) = text("error") {
                message.push_str(&format!("; {error}"));
            }
            Some(message)
        }
        _ => None,
    }
}

/// The last line that says something.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(shown(line.trim()))
}

/// A text on one line of a message, its secrets masked before anything is cut.
pub(super) fn shown(text: &str) -> String {
    let text = secret::mask(text.trim());
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let mut shown: String = first.chars().take(SHOWN).collect();
    if shown.len() < first.len() || lines.next().is_some() {
        shown.push('…');
    }
    shown
}
