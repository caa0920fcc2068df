//! The evaluator of a run's expressions: the expression engine, looking at the run.

use std::sync::Arc;

use flow_model::graph::{Expression, Rule, Template, Tier};

use super::event::{Failure, FailureKind};
use super::view::{Evaluator, Field, View};
use crate::expression::{
    self, Computation, Context, Engine, ErrorKind, EvalError, Instant, Scope, Variable, truth,
};
use crate::value::Value;

/// Evaluates with the expression engine.
#[derive(Default)]
pub struct Expressions {
    engine: Engine,
}

impl Expressions {
    /// An evaluator for one graph.
    #[must_use]
    pub fn new() -> Self {
        Expressions::default()
    }
}

/// A run's names, as the expression engine asks for them.
struct Names<'v, 'a>(&'v View<'a>);

impl Scope for Names<'_, '_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.0.name(name)
    }

    fn field(&self, view: expression::View, name: &str) -> Result<Option<Value>, EvalError> {
        let tier = match view {
            expression::View::Flat => None,
            expression::View::Raw => Some(Tier::Raw),
            expression::View::Computed => Some(Tier::Computed),
        };
        match self.0.field(tier, name) {
            Field::Value(value) => Ok(Some(value)),
            Field::Unset => Ok(None),
            Field::Failed(reason) => Err(EvalError::new(ErrorKind::Thrown, reason)),
            Field::Hidden => {
                let kind = ErrorKind::NotInNeedsState {
                    field: name.to_owned(),
                };
                let message = format!("the state field `{name}` is not listed in `needs_state`");
                Err(EvalError::new(kind, message))
            }
        }
    }

    fn fields(&self, view: expression::View) -> Vec<Arc<str>> {
        let names = self.0.field_names().into_iter();
        let present = names.filter(|name| matches!(self.field(view, name), Ok(Some(_))));
        present.map(Arc::from).collect()
    }

    fn refused(&self, view: expression::View) -> Vec<(Arc<str>, EvalError)> {
        let names = self.0.all_names().into_iter();
        let refused =
            names.filter_map(|name| Some((Arc::from(name), self.field(view, name).err()?)));
        refused.collect()
    }

    fn variable(&self, name: &str) -> Variable {
        match self.0.name(name) {
            Some(value) => Variable::Set(value),
            None if self.0.knows_variable(name) => Variable::Unset,
            None => Variable::Unknown,
        }
    }
}

fn failure(error: EvalError) -> Failure {
    let kind = match error.kind {
        ErrorKind::NotInNeedsState { .. } => FailureKind::StateAccess,
        ErrorKind::Limit(_) => FailureKind::Limit,
        _ => FailureKind::Expression,
    };
    Failure::new(kind, error.message)
}

/// A moment as the expression engine has it.
fn instant(view: &View<'_>) -> Instant {
    let at = i64::try_from(view.at).unwrap_or(i64::MAX);
    Instant::new(at, view.seed)
}

impl Evaluator for Expressions {
    fn render(&self, template: &Template, view: &View<'_>) -> Result<Value, Failure> {
        let (names, instant) = (Names(view), instant(view));
        let context = Context::new(&names, &instant);
        self.engine.render(template, &context).map_err(failure)
    }

    fn test(&self, expression: &Expression, view: &View<'_>) -> Result<bool, Failure> {
        let (names, instant) = (Names(view), instant(view));
        let context = Context::new(&names, &instant);
        let value = self
            .engine
            .eval_expression(expression, &context)
            .map_err(failure)?;
        Ok(truth(&value, expression.dialect))
    }

    fn command(&self, template: &Template, view: &View<'_>) -> Result<String, Failure> {
        let (names, instant) = (Names(view), instant(view));
        let context = Context::new(&names, &instant);
        self.engine
            .render_command(template, &context)
            .map_err(failure)
    }

    fn compute(&self, rule: &Rule, input: &Value, view: &View<'_>) -> Result<Value, Failure> {
        let (names, instant) = (Names(view), instant(view));
        let context = Context::new(&names, &instant);
        self.engine
            .transform(rule, input, &context)
            .map_err(failure)
    }

    fn compute_each(
        &self,
        rules: &[Computation<'_>],
        view: &View<'_>,
    ) -> Vec<Result<Value, Failure>> {
        let (names, instant) = (Names(view), instant(view));
        let context = Context::new(&names, &instant);
        let values = self.engine.transform_each(rules, &context).into_iter();
        values.map(|value| value.map_err(failure)).collect()
    }

    fn validate(&self, expression: &str, output: &Value, view: &View<'_>) -> Result<bool, Failure> {
        let (names, instant) = (Names(view), instant(view));
        let context = Context::new(&names, &instant);
        self.engine
            .validate(expression, output, &context)
            .map_err(failure)
    }
}
