//! What expressions give, through the engine's own front door.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod bounds;
mod commands;
mod javascript;
mod jinja;

use std::sync::Arc;

use flow_model::graph::{Dialect, Expression, Template, Text};

use super::{Context, Engine, ErrorKind, EvalError, Instant, Scope, Variable, View};
use crate::value::Value;

/// Names and three tiers of state.
#[derive(Default)]
pub(super) struct World {
    pub(super) names: Vec<(&'static str, Value)>,
    pub(super) computed: Vec<(&'static str, Result<Value, EvalError>)>,
    pub(super) raw: Vec<(&'static str, Value)>,
    pub(super) set: Vec<(&'static str, Value)>,
    pub(super) unset: Vec<&'static str>,
}

impl Scope for World {
    fn lookup(&self, name: &str) -> Option<Value> {
        let found = self.names.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    }

    fn field(&self, view: View, name: &str) -> Result<Option<Value>, EvalError> {
        let computed = self.computed.iter().find(|(known, _)| *known == name);
        let raw = self.raw.iter().find(|(known, _)| *known == name);
        let set = self.set.iter().find(|(known, _)| *known == name);
        match view {
            View::Computed => computed.map(|(_, value)| value.clone()).transpose(),
            View::Raw => Ok(raw.map(|(_, value)| value.clone())),
            View::Flat => match (computed, raw, set) {
                (Some((_, value)), ..) => value.clone().map(Some),
                (None, Some((_, value)), _) | (None, None, Some((_, value))) => {
                    Ok(Some(value.clone()))
                }
                (None, None, None) => Ok(None),
            },
        }
    }

    fn fields(&self, view: View) -> Vec<Arc<str>> {
        let computed = self.computed.iter().map(|(name, _)| *name);
        let raw = self.raw.iter().map(|(name, _)| *name);
        let set = self.set.iter().map(|(name, _)| *name);
        let names: Vec<&str> = match view {
            View::Computed => computed.collect(),
            View::Raw => raw.collect(),
            View::Flat => computed.chain(raw).chain(set).collect(),
        };
        names.into_iter().map(Arc::from).collect()
    }

    fn variable(&self, name: &str) -> Variable {
        match self.lookup(name) {
            Some(value) => Variable::Set(value),
            None if self.unset.contains(&name) => Variable::Unset,
            None => Variable::Unknown,
        }
    }
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A world with a little of everything.
pub(super) fn world() -> World {
    World {
        names: vec![
            (
                "inputs",
                json(
                    r#"{"name": "it's", "count": 3, "tags": ["a", "b"], "ratio": 2.5, "none": null}"#,
                ),
            ),
            ("item", json(r#"{"id": 7, "status": "ok"}"#)),
            ("session_id", json(r#""s-1""#)),
        ],
        computed: vec![
            ("total", Ok(Value::Int(42))),
            (
                "broken",
                Err(EvalError::new(
                    ErrorKind::Thrown,
                    "the rule of `broken` failed",
                )),
            ),
        ],
        raw: vec![
            (
                "files",
                json(r#"[{"path": "a.rs", "status": "ok"}, {"path": "b.rs", "status": "bad"}]"#),
            ),
            ("count", Value::Int(5)),
            ("user", json(r#"{"name": "Ada", "age": 36}"#)),
        ],
        set: vec![("mode", json(r#""fast""#))],
        unset: vec!["match_text"],
    }
}

pub(super) const MOMENT: i64 = 1_755_613_800_000;

pub(super) fn sole(source: &str, dialect: Dialect) -> Expression {
    Expression {
        source: source.to_owned().into(),
        dialect,
    }
}

pub(super) fn eval(source: &str, dialect: Dialect) -> Result<Value, EvalError> {
    let (world, instant) = (world(), Instant::new(MOMENT, 1));
    Engine::new().eval_expression(&sole(source, dialect), &Context::new(&world, &instant))
}

pub(super) fn render(source: &str, dialect: Dialect) -> Result<String, EvalError> {
    let (world, instant) = (world(), Instant::new(MOMENT, 1));
    let template = Template::Text(sole(source, dialect));
    let value = Engine::new().render(&template, &Context::new(&world, &instant))?;
    Ok(value.as_str().unwrap().to_owned())
}

pub(super) fn command(source: &str, dialect: Dialect) -> Result<String, EvalError> {
    let (world, instant) = (world(), Instant::new(MOMENT, 1));
    let template = Template::Text(sole(source, dialect));
    Engine::new().render_command(&template, &Context::new(&world, &instant))
}

/// Evaluates with `needs_state`.
pub(super) fn narrowed(
    source: &str,
    dialect: Dialect,
    needs: &[&'static str],
) -> Result<Value, EvalError> {
    let (world, instant) = (world(), Instant::new(MOMENT, 1));
    let needs: Vec<Text> = needs.iter().map(|name| Text::Borrowed(name)).collect();
    let context = Context::new(&world, &instant).narrowed(Some(&needs), &[]);
    Engine::new().eval_expression(&sole(source, dialect), &context)
}
