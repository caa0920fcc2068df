//! What an agent answered, held against the schema that its answer must satisfy.

use flow_model::graph::Node;

use super::effect::{Action, Deed};
use super::event::{Failure, FailureKind};
use super::frame::FrameId;
use super::machine::{Machine, Next};
use super::time::after;
use crate::value::Value;

/// Faults that a complaint names.
const MOST_FAULTS: usize = 10;

impl Machine<'_> {
    /// The result of a task that was handed to an agent. An answer that misses its schema is asked
    /// for once more; that is the error.
    pub(super) fn answer(
        &mut self,
        id: FrameId,
        index: u16,
        node: &Node,
        action: &Action,
        result: &Value,
    ) -> Result<Result<Value, Failure>, Next> {
        let Deed::Delegate {
            instructions,
            agent,
            returns: Some(schema),
            complaint,
        } = &action.what
        else {
            return Ok(Ok(result.clone()));
        };
        let answer = read(result);
        let faults = match faults(schema, &answer) {
            Ok(faults) => faults,
            Err(reason) => {
                let message = format!("`returns` of `{}` is no JSON Schema: {reason}", node.id);
                return Ok(Err(Failure::new(FailureKind::Validation, message)));
            }
        };
        if faults.is_empty() {
            return Ok(Ok(with_answer(result, answer)));
        }
        let said = faults.join("; ");
        if complaint.is_some() {
            let message = format!(
                "the agent's answer to `{}` does not satisfy `returns`, asked twice: {said}",
                node.id
            );
            return Ok(Err(Failure::new(FailureKind::Validation, message)));
        }
        let number = self.next_action();
        let seconds = super::action::seconds_for(node, &action.what);
        let again = Action {
            id: number,
            deadline: seconds.map(|seconds| after(self.at, seconds)),
            what: Deed::Delegate {
                instructions: instructions.clone(),
                agent: agent.clone(),
                returns: Some(schema.clone()),
                complaint: Some(said),
            },
            ..action.clone()
        };
        self.dispatch(id, index, again);
        Err(Next::Wait)
    }
}

/// What was answered: the response, as JSON where it is that.
fn read(result: &Value) -> Value {
    let response = result.get("response").unwrap_or(result);
    let Value::Str(text) = response else {
        return response.clone();
    };
    let text = text.trim();
    // Agents like to put JSON between fences.
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(text, |(_, inner)| inner);
    serde_json::from_str(inner.trim()).unwrap_or_else(|_| response.clone())
}

/// The result with the answer as it was understood.
fn with_answer(result: &Value, answer: Value) -> Value {
    match result {
        Value::Map(map) if map.0.contains_key("response") => {
            let mut map = (**map).clone();
            map.0.insert("response".into(), answer);
            Value::Map(map.into())
        }
        _ => answer,
    }
}

/// What of an answer misses its schema, each with its place.
fn faults(schema: &Value, answer: &Value) -> Result<Vec<String>, String> {
    let schema = schema.to_json();
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let answer = answer.to_json();
    let errors = validator.iter_errors(&answer).take(MOST_FAULTS);
    Ok(errors
        .map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{path}: {error}"),
        })
        .collect())
}
