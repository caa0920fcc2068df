//! The Jinja dialect.

mod convert;
mod filters;
mod methods;
mod moment;
mod order;
mod program;
mod wording;

use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};

use flow_model::expression::{Analysis, Dialect};
use minijinja::machinery::{eval, make_string_output};
use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind as JinjaKind, Output, State, UndefinedBehavior,
    Value as Jinja,
};

use super::error::{ErrorKind, EvalError, Limit};
use super::held::{self, Held};
use super::meter::Meter;
use super::scope::{Context, Found, Plan, step};
use super::text;
use crate::value::Value;
use convert::from_jinja;
use filters::{Unquoted, Written, fail};
use program::{Compiled, NO_BLOCKS, RawText};

/// A compiled expression or template.
pub(super) struct Program {
    compiled: Compiled,
    plan: Plan,
}

/// Where text is headed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    Text,
    /// Text in which what has no value may be written as nothing.
    Forgiving,
    Command,
}

static TEXTS: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Aim::Text));
static FORGIVING: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Aim::Forgiving));
static COMMANDS: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Aim::Command));

/// What reads as nothing: the value of `0 if false`, which is undefined without being an error.
static NOTHING: LazyLock<Jinja> = LazyLock::new(|| {
    let environment = Environment::empty();
    let made = environment.compile_expression("0 if false");
    made.and_then(|made| made.eval(())).unwrap_or_default()
});

thread_local! {
    /// The values of the command being rendered.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    /// How many strings what is emitted goes into before it is part of the output.
    static CAPTURES: Cell<usize> = const { Cell::new(0) };
}

fn environment(aim: Aim) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(200);
    environment.set_debug(true);
    filters::register(&mut environment);
    filters::register_metered(&mut environment);
    environment.add_filter("capture", |begins: bool| {
        let depth = CAPTURES.get();
        CAPTURES.set(if begins {
            depth + 1
        } else {
            depth.saturating_sub(1)
        });
    });
    match aim {
        Aim::Text => environment.set_formatter(emit_text),
        Aim::Forgiving => environment.set_formatter(|out, state, value| {
            // What is an error does not come as far as this.
            match value.is_undefined() {
                true => Ok(()),
                false => emit_text(out, state, value),
            }
        }),
        Aim::Command => environment.set_formatter(emit_held),
    }
    environment
}

fn emit_text(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Jinja) -> Result<(), Error> {
    if let Some(text) = value.as_str() {
        filters::produce(text.len() as u64)?;
        return out.write_str(text).map_err(Error::from);
    }
    if let Some(raw) = value.downcast_object_ref::<RawText>() {
        filters::produce(raw.0.len() as u64)?;
        return out.write_str(&raw.0).map_err(Error::from);
    }
    let value = from_jinja(value).map_err(fail)?;
    let text = text::text(&value).map_err(fail)?;
    out.write_str(&text).map_err(Error::from)
}

/// Writes a mark in place of the value and keeps the value aside. What goes into a string is text:
/// the string will be the value.
fn emit_held(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Jinja) -> Result<(), Error> {
    if CAPTURES.get() > 0 || value.downcast_object_ref::<RawText>().is_some() {
        return emit_text(out, state, value);
    }
    let unquoted = value.downcast_object_ref::<Unquoted>();
    let held = match unquoted {
        Some(unquoted) => Held::Raw(unquoted.0.to_string()),
        None if let Some(written) = value.downcast_object_ref::<Written>() => {
            Held::Written(written.0.to_string())
        }
        None => Held::Value(from_jinja(value).map_err(fail)?),
    };
    filters::produce(held.size())?;
    let mark = HELD.with_borrow_mut(|list| {
        list.push(held);
        held::mark(list.len() - 1)
    });
    out.write_str(&mark).map_err(Error::from)
}

/// What is wrong with a text before it is compiled.
pub(super) fn check(analysis: &Analysis) -> Result<(), EvalError> {
    match analysis.faults.first() {
        Some(fault) => Err(EvalError::syntax(match &fault.help {
            Some(help) => format!("{}; {help}", fault.message),
            None => fault.message.clone(),
        })),
        None => Ok(()),
    }
}

impl Program {
    pub(super) fn expression(source: &str) -> Result<Self, EvalError> {
        let analysis = flow_model::expression::expression(source, Dialect::Jinja);
        check(&analysis)?;
        Ok(Program::new(program::expression(source)?, analysis))
    }

    pub(super) fn template(source: &str) -> Result<Self, EvalError> {
        let analysis = flow_model::expression::template(source, Dialect::Jinja);
        check(&analysis)?;
        Ok(Program::new(program::template(source)?, analysis))
    }

    fn new(compiled: Compiled, analysis: Analysis) -> Self {
        let plan = Plan::new(analysis.reads, compiled.variables.clone());
        Program { compiled, plan }
    }

    /// The native value of an expression.
    pub(super) fn value(&self, context: &Context<'_>) -> Result<Value, EvalError> {
        if let Some(path) = &self.compiled.path
            && let Some(value) = read(path, context)?
        {
            return Ok(value);
        }
        let mut nothing = String::new();
        let value = self
            .run(&TEXTS, &mut nothing, context)
            .and_then(|value| from_jinja(&value.unwrap_or_default()));
        value.map_err(|error| self.named(error, context))
    }

    /// The text of a template.
    pub(super) fn text(&self, context: &Context<'_>) -> Result<String, EvalError> {
        let mut out = String::new();
        let environment = match context.absent {
            Some(_) => &FORGIVING,
            None => &TEXTS,
        };
        self.run(environment, &mut out, context)
            .map_err(|error| self.named(error, context))?;
        Ok(out)
    }

    /// The text with marks for its values, and the values.
    pub(super) fn marked(&self, context: &Context<'_>) -> Result<(String, Vec<Held>), EvalError> {
        if self.compiled.recurses {
            return Err(EvalError::syntax(
                "in a command `loop(…)` can only be written on its own, as `{{ loop(…) }}`",
            ));
        }
        HELD.take();
        CAPTURES.set(0);
        let mut out = String::new();
        let done = self.run(&COMMANDS, &mut out, context);
        let values = HELD.take();
        done.map_err(|error| self.named(error, context))?;
        Ok((out, values))
    }

    fn run(
        &self,
        environment: &'static Environment<'static>,
        out: &mut String,
        context: &Context<'_>,
    ) -> Result<Option<Jinja>, EvalError> {
        Meter::prepare(&self.plan, context);
        let root = Jinja::from_object(Root::new(&self.plan, context));
        self.compiled.code.with_dependent(|_, instructions| {
            let mut out = make_string_output(out);
            let done = eval(
                environment,
                instructions,
                root,
                &NO_BLOCKS,
                &mut out,
                AutoEscape::None,
            );
            done.map(|(value, _)| value)
                .map_err(|error| self::error(&error))
        })
    }

    /// Names what is undefined, when the text alone tells.
    fn named(&self, error: EvalError, context: &Context<'_>) -> EvalError {
        if error.kind != ErrorKind::Undefined || error.path.is_some() {
            return error;
        }
        match self.plan.missing(context) {
            Some(path) => EvalError::undefined(&path),
            None => error,
        }
    }
}

/// Reads a path without running anything; `None` when it takes more than that.
fn read(path: &[String], context: &Context<'_>) -> Result<Option<Value>, EvalError> {
    let Some((start, used)) = context.start(path)? else {
        return Ok(None);
    };
    let mut value = &start;
    for key in &path[used..] {
        match step(value, key) {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value.clone()))
}

/// Says what minijinja's error means here.
fn error(error: &Error) -> EvalError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(here) = source {
        if let Some(own) = here.downcast_ref::<EvalError>() {
            return own.clone();
        }
        source = here.source();
    }
    let detail = error.detail().map(str::to_owned);
    let message = detail.unwrap_or_else(|| error.kind().to_string());
    if message == "recursion limit exceeded" {
        return EvalError::limit(Limit::Fuel);
    }
    let kind = match error.kind() {
        JinjaKind::SyntaxError
        | JinjaKind::UnknownFilter
        | JinjaKind::UnknownTest
        | JinjaKind::UnknownFunction
        | JinjaKind::UnknownMethod
        | JinjaKind::BadEscape => ErrorKind::Syntax,
        JinjaKind::UndefinedError => {
            return match error.detail() {
                Some(detail) => EvalError::new(ErrorKind::Undefined, detail),
                None => EvalError::nameless(),
            };
        }
        _ => ErrorKind::Type,
    };
    EvalError::new(kind, message)
}

/// Applies a filter to a value, for the other dialect.
pub(super) fn filter(
    name: &str,
    value: Option<&Value>,
    arguments: &[Value],
) -> Result<Filtered, EvalError> {
    let mut all = vec![value.map_or(Jinja::UNDEFINED, convert::to_jinja)];
    all.extend(arguments.iter().map(convert::to_jinja));
    let environment: &'static Environment<'static> = &TEXTS;
    let mut state = environment.empty_state();
    let value = state
        .apply_filter(name, &all)
        .map_err(|error| self::error(&error))?;
    match value.downcast_object_ref::<Unquoted>() {
        Some(unquoted) => Ok(Filtered::Unquoted(unquoted.0.clone())),
        None => from_jinja(&value).map(Filtered::Value),
    }
}

/// What a filter gives.
pub(super) enum Filtered {
    Value(Value),
    Unquoted(Arc<str>),
}

/// The names of one evaluation.
#[derive(Debug)]
struct Root(Vec<(Arc<str>, Jinja)>);

impl Root {
    fn new(plan: &Plan, context: &Context<'_>) -> Self {
        let mut names = Vec::with_capacity(plan.roots.len());
        for root in &plan.roots {
            let value = match root.find(context) {
                Found::Missing => continue,
                Found::Nothing => NOTHING.clone(),
                Found::Value(value) => convert::to_jinja(&value),
                Found::Partial(value, absent) => {
                    let held = value.as_map().into_iter().flat_map(|map| &map.0);
                    let held = held.map(|(name, value)| (name.clone(), convert::to_jinja(value)));
                    let absent = absent.into_iter().map(|name| (name, NOTHING.clone()));
                    Jinja::from_object(Fields {
                        fields: held.collect(),
                        hidden: absent.collect(),
                    })
                }
                Found::Failed(error) => Jinja::from(fail(error)),
                Found::Fields(fields) => {
                    let fields = fields.into_iter().map(|(name, value)| match value {
                        Ok(value) => (name, convert::to_jinja(&value)),
                        Err(error) => (name, Jinja::from(fail(error))),
                    });
                    Jinja::from_object(Fields {
                        fields: fields.collect(),
                        hidden: Vec::new(),
                    })
                }
                Found::View { fields, refused } => {
                    let fields = fields.iter();
                    let fields =
                        fields.map(|(name, value)| (name.clone(), convert::to_jinja(value)));
                    let hidden = refused.into_iter();
                    let hidden = hidden.map(|(name, error)| (name, Jinja::from(fail(error))));
                    Jinja::from_object(Fields {
                        fields: fields.collect(),
                        hidden: hidden.collect(),
                    })
                }
            };
            names.push((root.name.clone(), value));
        }
        Root(names)
    }
}

impl Object for Root {
    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        let found = self.0.iter().find(|(name, _)| **name == *key);
        found.map(|(_, value)| value.clone())
    }
}

/// The fields of a view of the state that are read.
#[derive(Debug)]
struct Fields {
    fields: Vec<(Arc<str>, Jinja)>,
    /// Fields that are not seen, and what reading them gives: an error, or nothing.
    hidden: Vec<(Arc<str>, Jinja)>,
}

impl Object for Fields {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Jinja> {
        let mut all = self.fields.iter().chain(&self.hidden);
        let found = all.find(|(name, _)| **name == *key);
        found.map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.fields
                .iter()
                .map(|(name, _)| Jinja::from(name.clone()))
                .collect(),
        )
    }
}
