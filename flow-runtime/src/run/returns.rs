//! What an agent answered, held against the schema that its answer must satisfy, and what a tool
//! returned, held against its declaration.

use flow_model::graph::{Field, Node, ToolSignature, Type, Validation};
use flow_model::value::{self, FaultKind, Values};

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
            returns,
            complaint,
        } = &action.what
        else {
            return Ok(Ok(result.clone()));
        };
        let Some(schema) = returns else {
            return Ok(Ok(plain(result, agent.as_deref())));
        };
        let said = match held_against(schema, result) {
            Ok(Ok(answer)) => return Ok(Ok(reply(result, answer, agent.as_deref()))),
            Ok(Err(said)) => said,
            Err(reason) => {
                let message = format!("`returns` of `{}` is no JSON Schema: {reason}", node.id);
                return Ok(Err(Failure::new(FailureKind::Validation, message)));
            }
        };
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

/// Why the result of an action would be asked for once more.
pub(crate) fn unfit(deed: &Deed, result: &Value) -> Option<String> {
    let Deed::Delegate { returns, .. } = deed else {
        return None;
    };
    held_against(returns.as_ref()?, result).ok()?.err()
}

/// What of a tool's result misses what the tool is declared to return; it may return more.
pub(super) fn missed(tool: &ToolSignature, result: &Value) -> Vec<String> {
    let ty = match tool.result {
        Some(ty) => ty,
        None if tool.returns.is_empty() => return Vec::new(),
        None => Type::Object,
    };
    let whole = Field {
        name: "result".into(),
        ty,
        required: ty != Type::Any,
        default: None,
        description: None,
        secret: false,
        validation: Validation {
            properties: tool.returns.clone(),
            ..Validation::NONE
        },
    };
    let given = Values::from_iter([("result".to_owned(), result.to_json())]);
    let faults = value::faults(&[whole], &given).into_iter();
    let faults = faults.filter(|fault| fault.kind != FaultKind::Unknown);
    let said = faults.map(|fault| fault.message);
    said.take(MOST_FAULTS).collect()
}

/// The answer within a result, or what of it misses the schema. Fails when the schema is none.
fn held_against(schema: &Value, result: &Value) -> Result<Result<Value, String>, String> {
    let mut missed = None;
    for answer in readings(result) {
        let faults = faults(schema, &answer)?;
        if faults.is_empty() {
            return Ok(Ok(answer));
        }
        missed = missed.or(Some(faults));
    }
    Ok(Err(missed.unwrap_or_default().join("; ")))
}

/// What may have been answered: the response within a result, or the whole of it.
fn readings(result: &Value) -> impl Iterator<Item = Value> {
    let response = result.get("response").map(json);
    response.into_iter().chain([json(result)])
}

/// A text as JSON where it is that.
fn json(answer: &Value) -> Value {
    let Value::Str(text) = answer else {
        return answer.clone();
    };
    let text = text.trim();
    // Agents like to put JSON between fences.
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(text, |(_, inner)| inner);
    serde_json::from_str(inner.trim()).unwrap_or_else(|_| answer.clone())
}

/// The result of an agent that was asked for nothing in particular: its response is a text.
fn plain(result: &Value, agent: Option<&str>) -> Value {
    let answer = match result.get("response").unwrap_or(result) {
        text @ (Value::Str(_) | Value::Null) => text.clone(),
        other => Value::text(other.to_string()),
    };
    reply(result, answer, agent)
}

/// What a whole item gave that was handed to an agent: the same as of any agent that was asked for
/// nothing in particular, whoever answered.
pub(super) fn of_item(deed: &Deed, result: &Value) -> Value {
    match deed {
        Deed::DelegateItem { agent, .. } => plain(result, Some(agent)),
        Deed::Shell { .. }
        | Deed::Tool { .. }
        | Deed::Prompt { .. }
        | Deed::Call { .. }
        | Deed::Environment { .. }
        | Deed::Delegate { .. }
        | Deed::Judge { .. } => result.clone(),
    }
}

/// `{response, agent_used}` and what else the agent told beside its response, whoever answered and
/// however it was put.
fn reply(result: &Value, answer: Value, agent: Option<&str>) -> Value {
    let mut fields = match (&answer, result) {
        // The answer has the shape of a result by itself.
        (Value::Map(map), _) if map.0.contains_key("response") => map.0.clone(),
        (_, Value::Map(map)) if map.0.contains_key("response") => map.0.clone(),
        _ => Default::default(),
    };
    if answer.get("response").is_none() {
        fields.insert("response".into(), answer);
    }
    let used = || match agent {
        Some(name) => Value::text(format!("@{}", name.trim_start_matches('@'))),
        None => Value::text("agent"),
    };
    fields.entry("agent_used".into()).or_insert_with(used);
    Value::Map(crate::value::Map(fields).into())
}

/// What of an answer misses its schema, each with its place.
fn faults(schema: &Value, answer: &Value) -> Result<Vec<String>, String> {
    let schema = schema.to_json();
    let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
    let answer = answer.to_json();
    let errors = validator.iter_errors(&answer).take(MOST_FAULTS);
    let mut faults: Vec<String> = errors
        .map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{path}: {error}"),
        })
        .collect();
    // What is no object misses all that one must have, which nothing else says.
    let required = schema.get("required").and_then(|it| it.as_array());
    if let (false, false, Some(required)) = (answer.is_object(), faults.is_empty(), required) {
        let required: Vec<String> = required.iter().map(ToString::to_string).collect();
        faults.push(format!("an object with {} is wanted", required.join(", ")));
    }
    Ok(faults)
}
