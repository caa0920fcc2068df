//! The JavaScript dialect.

mod machine;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flow_model::expression::{
    self, Analysis, Dialect, FilterCall, Piece, Pipeline, pieces, pipeline,
};

use super::error::EvalError;
use super::held::{self, Held};
use super::jinja::{self, Filtered};
use super::meter::{self, Meter};
use super::scope::{Context, Found, Instant, Plan, Variable, step};
use super::{Computation, text};
use crate::value::Value;
use machine::{Argument, Call, Source};

/// A compiled expression, with the filters after it.
pub(super) struct Program {
    function: Code,
    filters: Vec<Filter>,
    /// The whole expression is a path.
    path: Option<Vec<String>>,
    /// The whole expression is the variable of this name.
    variable: Option<String>,
}

struct Filter {
    name: String,
    /// A list of the arguments.
    arguments: Option<Code>,
}

/// A function, and the names it takes.
struct Code {
    source: Source,
    plan: Plan,
}

/// A template: text and expressions in turn.
pub(super) struct Template {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Value(Program),
}

/// What an expression gives: maybe nothing, maybe text for the shell.
enum Given {
    Undefined,
    Value(Value),
    Unquoted(Arc<str>),
    /// `{name}` of a name that is no variable, as it was written.
    Written(String),
}

/// What the text of a function is.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// Gives its value.
    Expression,
    /// Returns its value.
    Body,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Code {
    fn new(text: &str, shape: Shape, analysis: Analysis) -> Result<Self, EvalError> {
        jinja::check(&analysis)?;
        let mut variables: Vec<Arc<str>> = Vec::new();
        for call in analysis.calls.iter().filter(|call| call.name == "variable") {
            if let Some(name) = literal_argument(&text[call.range.end.min(text.len())..]) {
                variables.push(Arc::from(name));
            }
        }
        let plan = Plan::new(analysis.reads, variables);
        let names = plan.roots.iter().map(|root| &*root.name);
        let names: Vec<&str> = names.filter(|name| *name != "this").collect();
        let names = names.join(", ");
        let text = match shape {
            Shape::Expression => format!("(function({names}) {{ return (\n{text}\n); }})"),
            Shape::Body => format!("(function({names}) {{\n{text}\n}})"),
        };
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Code {
            source: Source { id, text },
            plan,
        })
    }

    fn call(&self, context: &Context<'_>) -> Result<Option<Value>, EvalError> {
        machine::call(&self.prepare(context)?)
    }

    /// What the function is called with now.
    fn prepare(&self, context: &Context<'_>) -> Result<Call<'_>, EvalError> {
        Meter::prepare(&self.plan, context);
        let mut this = Argument::Undefined;
        let mut arguments = Vec::with_capacity(self.plan.roots.len());
        for root in &self.plan.roots {
            let argument = match root.find(context) {
                Found::Missing | Found::Nothing => Argument::Undefined,
                Found::Value(value) | Found::Partial(value, _) => Argument::Value(value),
                Found::Failed(error) => return Err(error),
                Found::Fields(fields) => {
                    let fields = fields.into_iter();
                    let fields: Result<_, _> = fields
                        .map(|(name, value)| value.map(|value| (name, value)))
                        .collect();
                    Argument::Fields(fields?)
                }
                Found::View { fields, refused } => Argument::View { fields, refused },
            };
            if *root.name == *"this" {
                this = argument;
            } else {
                arguments.push(argument);
            }
        }
        Ok(Call {
            source: &self.source,
            this,
            arguments,
        })
    }
}

/// The values of several transforms, one after another in one visit of the interpreter. Each has
/// its own bounds and randomness, as if it were alone.
pub(super) fn transforms(
    transforms: &[(&Program, &Computation<'_>)],
    context: &Context<'_>,
) -> Vec<Result<Value, EvalError>> {
    let results = machine::call_each(transforms.len(), &mut |index| {
        let (program, computation) = &transforms[index];
        Meter::again(&Instant::new(context.instant.at_millis, computation.seed));
        meter::decided()?;
        let extra = [("input", computation.input.clone())];
        program.function.prepare(&context.with(&extra))
    });
    let given = results.into_iter();
    given
        .map(|value| value.map(Option::unwrap_or_default))
        .collect()
}

/// The string in `("…")`.
fn literal_argument(rest: &str) -> Option<&str> {
    let inner = rest.trim_start().strip_prefix('(')?.trim_start();
    let quote = inner
        .chars()
        .next()
        .filter(|q| matches!(q, '"' | '\'' | '`'))?;
    let (name, _) = inner[1..].split_once(quote)?;
    (!name.contains('\\')).then_some(name)
}

impl Program {
    pub(super) fn expression(text: &str) -> Result<Self, EvalError> {
        let analysis = expression::expression(text, Dialect::Js);
        jinja::check(&analysis)?;
        let Pipeline {
            expression: range,
            filters,
        } = pipeline(text);
        let part = &text[range];
        let analysis = expression::expression(part, Dialect::Js);
        let path = path(part, &analysis).filter(|_| filters.is_empty());
        let variable = variable(part).filter(|_| filters.is_empty());
        let variable = variable.map(str::to_owned);
        let filters: Result<_, _> = filters.iter().map(|call| Filter::new(text, call)).collect();
        Ok(Program {
            function: Code::new(part, Shape::Expression, analysis)?,
            filters: filters?,
            path,
            variable,
        })
    }

    /// A transform or a validation: JavaScript alone.
    pub(super) fn transform(text: &str, shape: Shape) -> Result<Self, EvalError> {
        let analysis = expression::transform(text).analysis;
        jinja::check(&analysis)?;
        Ok(Program {
            function: Code::new(text, shape, analysis)?,
            filters: Vec::new(),
            path: None,
            variable: None,
        })
    }

    /// The native value; undefined is null.
    pub(super) fn value(&self, context: &Context<'_>) -> Result<Value, EvalError> {
        Ok(match self.given(context)? {
            Given::Undefined => Value::Null,
            Given::Value(value) => value,
            Given::Unquoted(text) => Value::Str(text),
            Given::Written(text) => Value::text(text),
        })
    }

    fn given(&self, context: &Context<'_>) -> Result<Given, EvalError> {
        // What is only read is handed on as it is: JavaScript has no whole numbers beyond 2^53.
        if let Some(path) = &self.path
            && let Some(value) = read(path, context)?
        {
            return Ok(Given::Value(value));
        }
        if let Some(name) = &self.variable
            && let Variable::Unknown = context.scope.variable(name)
        {
            return Ok(Given::Written(format!("{{{name}}}")));
        }
        let mut given = match self.function.call(context)? {
            Some(value) => Given::Value(value),
            None => Given::Undefined,
        };
        for filter in &self.filters {
            let arguments = match &filter.arguments {
                Some(arguments) => arguments.call(context)?,
                None => None,
            };
            let arguments = match &arguments {
                Some(Value::List(list)) => list.0.as_slice(),
                _ => &[],
            };
            let value = match &given {
                Given::Undefined => None,
                Given::Value(value) => Some(value.clone()),
                Given::Unquoted(text) => Some(Value::Str(text.clone())),
                Given::Written(text) => Some(Value::text(text)),
            };
            given = match jinja::filter(&filter.name, value.as_ref(), arguments)? {
                Filtered::Value(value) => Given::Value(value),
                Filtered::Unquoted(text) => Given::Unquoted(text),
            };
        }
        Ok(given)
    }
}

impl Filter {
    fn new(text: &str, call: &FilterCall) -> Result<Self, EvalError> {
        let arguments = match &call.arguments {
            Some(range) if !text[range.clone()].trim().is_empty() => {
                let list = format!("[{}]", &text[range.clone()]);
                let analysis = expression::expression(&list, Dialect::Js);
                Some(Code::new(&list, Shape::Expression, analysis)?)
            }
            _ => None,
        };
        Ok(Filter {
            name: call.filter.name.clone(),
            arguments,
        })
    }
}

/// The name of the variable that an expression is, if it is nothing else: `{name}`, as states write
/// it, is `variable("name")`.
fn variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("variable(\"")?;
    let name = name.strip_suffix("\")")?;
    (!name.contains(['"', '\\'])).then_some(name)
}

/// The path an expression is, if it is nothing else.
fn path(text: &str, analysis: &Analysis) -> Option<Vec<String>> {
    let [read] = analysis.reads.as_slice() else {
        return None;
    };
    // Optional chaining and brackets are left to JavaScript.
    let plain = read.path.join(".") == text && !read.dynamic;
    plain.then(|| read.path.clone())
}

/// Reads a path of maps; `None` when JavaScript has to say what it means.
fn read(path: &[String], context: &Context<'_>) -> Result<Option<Value>, EvalError> {
    let Some((start, used)) = context.start(path)? else {
        return Ok(None);
    };
    let mut value = &start;
    for key in &path[used..] {
        match (value, step(value, key)) {
            (Value::Map(_), Some(next)) => value = next,
            _ => return Ok(None),
        }
    }
    Ok(Some(value.clone()))
}

impl Template {
    pub(super) fn new(text: &str) -> Result<Self, EvalError> {
        jinja::check(&expression::template(text, Dialect::Js))?;
        let mut parts = Vec::new();
        for piece in pieces(text, Dialect::Js) {
            parts.push(match piece {
                Piece::Interpolation(tag) => Part::Value(Program::expression(&text[tag.inner])?),
                other => Part::Text(text[other.range()].to_owned()),
            });
        }
        Ok(Template { parts })
    }

    /// The text; what is undefined leaves nothing.
    pub(super) fn text(&self, context: &Context<'_>) -> Result<String, EvalError> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(program) => match program.given(context)? {
                    Given::Undefined => {}
                    Given::Value(value) => text::write(&mut out, &value)?,
                    Given::Unquoted(text) => out.push_str(&text),
                    Given::Written(text) => out.push_str(&text),
                },
            }
        }
        Ok(out)
    }

    /// The text with marks for its values, and the values.
    pub(super) fn marked(&self, context: &Context<'_>) -> Result<(String, Vec<Held>), EvalError> {
        let mut out = String::new();
        let mut held = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(program) => {
                    out.push_str(&held::mark(held.len()));
                    held.push(match program.given(context)? {
                        Given::Undefined => Held::Value(Value::Null),
                        Given::Value(value) => Held::Value(value),
                        Given::Unquoted(text) => Held::Raw(text.to_string()),
                        Given::Written(text) => Held::Written(text),
                    });
                }
            }
        }
        Ok((out, held))
    }
}
