//! Trying a transform out, without a run.

use std::sync::Arc;

use flow_model::expression::{Shape, transform};
use flow_model::graph::Rule;

use super::{Context, Engine, EvalError, Instant, Scope, View};
use crate::value::Value;

/// State given as a map, the same for every view.
struct Given<'v>(&'v Value);

impl Scope for Given<'_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn field(&self, _view: View, name: &str) -> Result<Option<Value>, EvalError> {
        Ok(self.0.get(name).cloned())
    }

    fn fields(&self, _view: View) -> Vec<Arc<str>> {
        let fields = self.0.as_map().into_iter();
        fields.flat_map(|map| map.0.keys().cloned()).collect()
    }
}

/// What a transform of a computed field makes of an input, with this state in scope. Nothing is
/// changed anywhere, and the same bounds hold as in a run.
///
/// ```
/// use flow_runtime::{expression, value::Value};
///
/// let input = Value::list([Value::Int(1), Value::Int(2)]);
/// let value = expression::try_transform("input.map(n => n * factor)", &input, &Value::map([("factor", Value::Int(2))]), 0);
/// assert_eq!(value, Ok(Value::list([Value::Int(2), Value::Int(4)])));
/// ```
///
/// # Errors
///
/// When it does not compile, fails, or reaches a bound.
pub fn try_transform(
    source: &str,
    input: &Value,
    state: &Value,
    at: i64,
) -> Result<Value, EvalError> {
    let rule = match transform(source).shape {
        Shape::Expression => Rule::Transform(source.trim().to_owned().into()),
        Shape::Body => Rule::Body(source.to_owned().into()),
    };
    let (scope, instant) = (Given(state), Instant::new(at, 0));
    Engine::new().transform(&rule, input, &Context::new(&scope, &instant))
}
