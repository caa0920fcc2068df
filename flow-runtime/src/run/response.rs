//! What the tool `run_workflow` answers to the run that called it. It has the same fields whatever
//! became of the call, so that a transition can look at any of them.

use std::sync::Arc;

use flow_model::graph::{CallAnswer, CallTarget, Kind, Literal, Node, Template};

use crate::value::Value;

/// How a run ended that came about by a call, or why there was none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    pub(crate) success: bool,
    pub(crate) status: &'static str,
    pub(crate) workflow_name: Option<String>,
    pub(crate) workflow_id: Option<String>,
    pub(crate) session_id: Option<String>,
    /// The last state, or the word for why there is none.
    pub(crate) final_state: String,
    pub(crate) states_executed: u64,
    pub(crate) elapsed_ms: u64,
    pub(crate) recursion_depth: u32,
    pub(crate) return_values: Option<Value>,
    pub(crate) final_variables: Value,
    pub(crate) output: Value,
    pub(crate) workflow_saved: bool,
    pub(crate) saved_workflow_name: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) error: Option<String>,
}

/// A mark in the result of a call: its session was opened by the run that was called, or by one
/// below it, and is the caller's own now. Only the run that called is told.
const SESSION_OPENED: &str = "session_opened";

/// Where the result of a call says which computed fields of the run that was called have failed.
pub(crate) const COMPUTED_ERRORS: &str = "computed_errors";

/// The result of a call, with the mark.
pub(crate) fn with_session_opened(mut result: Value) -> Value {
    if let Value::Map(map) = &mut result {
        let mark = (Arc::from(SESSION_OPENED), Value::Bool(true));
        Arc::make_mut(map).0.insert(mark.0, mark.1);
    }
    result
}

/// Whether the result of a call has the mark.
pub(crate) fn has_session_opened(result: &Value) -> bool {
    result.get(SESSION_OPENED) == Some(&Value::Bool(true))
}

/// The result of a call, without the mark.
pub(crate) fn shown(mut result: Value) -> Value {
    if has_session_opened(&result)
        && let Value::Map(map) = &mut result
    {
        Arc::make_mut(map).0.shift_remove(SESSION_OPENED);
    }
    result
}

/// The final state of a call that came to nothing for no reason of the workflow's own.
pub(crate) const ERROR: &str = "error";

impl Response {
    /// The answer to a call that no run has come of.
    pub(crate) fn none(
        workflow: Option<&str>,
        final_state: &str,
        error: impl Into<String>,
    ) -> Self {
        Response {
            success: false,
            status: "failed",
            workflow_name: workflow.map(str::to_owned),
            workflow_id: None,
            session_id: None,
            final_state: final_state.to_owned(),
            states_executed: 0,
            elapsed_ms: 0,
            recursion_depth: 0,
            return_values: None,
            final_variables: Value::Null,
            output: Value::Null,
            workflow_saved: false,
            saved_workflow_name: None,
            message: None,
            error: Some(error.into()),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a run are far below 2^53"
    )]
    pub(crate) fn into_value(self) -> Value {
        let text = |text: Option<String>| text.map_or(Value::Null, Value::text);
        let map = |value: Value| match value {
            Value::Null => Value::map::<&str>([]),
            map => map,
        };
        let whole = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        Value::map([
            ("success", Value::Bool(self.success)),
            ("status", Value::text(self.status)),
            ("workflow_name", text(self.workflow_name)),
            ("workflow_id", text(self.workflow_id)),
            ("session_id", text(self.session_id)),
            ("final_state", Value::text(self.final_state)),
            ("states_executed", whole(self.states_executed)),
            (
                "total_elapsed_time",
                Value::number(self.elapsed_ms as f64 / 1000.0),
            ),
            ("recursion_depth", whole(u64::from(self.recursion_depth))),
            ("return_values", map(self.return_values.unwrap_or_default())),
            ("final_variables", map(self.final_variables)),
            ("output", self.output),
            ("workflow_saved", Value::Bool(self.workflow_saved)),
            ("saved_workflow_name", text(self.saved_workflow_name)),
            ("message", text(self.message)),
            ("error", text(self.error)),
        ])
    }
}

/// The answer to a call of a node that came to nothing before anybody was asked to run it; nothing
/// for a node that wants no such answer.
pub(super) fn unasked(node: &Node, error: &str) -> Value {
    match &node.kind {
        Kind::Call(call) if call.answer == CallAnswer::Response => {
            let name = match &call.target {
                CallTarget::Name(Template::Literal(Literal::Str(name))) => Some(name.as_ref()),
                CallTarget::Name(_) | CallTarget::Definition(_) => None,
            };
            Response::none(name, ERROR, error).into_value()
        }
        _ => Value::Null,
    }
}
