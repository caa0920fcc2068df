//! One QuickJS per thread: immutable, counted, and thrown away when in doubt.
//!
//! The context's own objects are frozen, and every expression is a strict function that gets the
//! names it reads as parameters. So nothing an evaluation does can be seen by the next one.

use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;
use std::time;

use flow_model::expression::vocabulary::JS_GLOBALS;
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::object::Accessor;
use rquickjs::{
    Array, Atom, CatchResultExt, CaughtError, Context, Ctx, Exception, Function, Object,
    Persistent, Runtime, String as JsString, Value as Js,
};

use super::super::AddressHasher;
use super::super::clock::Civil;
use super::super::error::{ErrorKind, EvalError, Limit};
use super::super::meter;
use crate::value::Value;

const MOST_MEMORY: usize = 64 * 1024 * 1024;
/// Times the interpreter may look whether to go on: once per 10,000 jumps and calls.
const MOST_TICKS: u32 = 2_000;
/// Compiled functions kept per thread: more than a definition's computed fields, so that one write
/// to many of them compiles nothing.
const MOST_FUNCTIONS: usize = 4 * 1024;

thread_local! {
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

/// A function to be compiled once per thread.
pub(super) struct Source {
    /// Distinguishes it from every other in the process.
    pub(super) id: u64,
    /// Its text, an expression that gives a function.
    pub(super) text: String,
}

/// What is handed to a function.
pub(super) enum Argument {
    Undefined,
    Value(Value),
    /// An object with these fields.
    Fields(Vec<(Arc<str>, Value)>),
    /// The same, with fields that are not seen, and whose reading is an error.
    View {
        fields: Vec<(Arc<str>, Value)>,
        refused: Vec<(Arc<str>, EvalError)>,
    },
}

/// One call: a function and what it is handed.
pub(super) struct Call<'s> {
    pub(super) source: &'s Source,
    pub(super) this: Argument,
    pub(super) arguments: Vec<Argument>,
}

type Functions = HashMap<u64, Persistent<Function<'static>>, BuildHasherDefault<AddressHasher>>;

struct Machine {
    functions: Functions,
    well_formed: Option<Persistent<Function<'static>>>,
    context: Context,
    runtime: Runtime,
    watch: Rc<Watch>,
}

/// What the interpreter is stopped by.
#[derive(Default)]
struct Watch {
    ticks: Cell<u32>,
    most: Cell<u32>,
    since: Cell<Option<time::Instant>>,
    tripped: Cell<Option<Limit>>,
}

impl Watch {
    fn start(&self, most: u32) {
        self.ticks.set(0);
        self.most.set(most);
        self.since.set(None);
        self.tripped.set(None);
    }

    fn tick(&self) -> bool {
        if let Some(limit) = meter::exceeded() {
            self.tripped.set(Some(limit));
            return true;
        }
        let ticks = self.ticks.get() + 1;
        self.ticks.set(ticks);
        if ticks > self.most.get() {
            self.tripped.set(Some(Limit::Fuel));
            return true;
        }
        let since = self.since.get().unwrap_or_else(time::Instant::now);
        self.since.set(Some(since));
        if meter::is_late(since) {
            self.tripped.set(Some(Limit::Time));
            return true;
        }
        false
    }
}

/// How a visit of the shared machine ended.
enum Visit {
    /// Every call has its result.
    Done,
    /// A call met a bound; the machine is not to be used again.
    Spent,
    /// Only a fresh machine can decide the next call.
    Doubtful,
}

/// Calls a function; `None` is undefined.
pub(super) fn call(call: &Call<'_>) -> Result<Option<Value>, EvalError> {
    let before = meter::mark();
    let mut results = Vec::with_capacity(1);
    let visit = visit_shared(&mut |machine| machine.visit(1, &mut |_| Ok(call), &mut results))?;
    match (visit, results.pop()) {
        (Visit::Done | Visit::Spent, Some(outcome)) => outcome,
        _ => {
            meter::reset(before);
            Machine::new()?.call(call, MOST_TICKS)
        }
    }
}

/// Calls functions one after another in one visit of the machine. Each is prepared just before it
/// runs, bounded by itself, and decided as if it had run alone.
pub(super) fn call_each<'s>(
    count: usize,
    prepare: &mut dyn FnMut(usize) -> Result<Call<'s>, EvalError>,
) -> Vec<Result<Option<Value>, EvalError>> {
    let mut results = Vec::with_capacity(count);
    while results.len() < count {
        let visit = visit_shared(&mut |machine| machine.visit(count, prepare, &mut results));
        match visit {
            Ok(Visit::Done | Visit::Spent) => {}
            Ok(Visit::Doubtful) => {
                let decided =
                    prepare(results.len()).and_then(|call| Machine::new()?.call(&call, MOST_TICKS));
                results.push(decided);
            }
            Err(error) => results.resize(count, Err(error)),
        }
    }
    results
}

/// Does something with the machine of this thread.
fn visit_shared(visit: &mut dyn FnMut(&mut Machine) -> Visit) -> Result<Visit, EvalError> {
    MACHINE.with(|machine| {
        let mut machine = machine.borrow_mut();
        let full = |m: &Machine| m.functions.len() >= MOST_FUNCTIONS;
        if machine.as_ref().is_some_and(full) {
            *machine = None;
        }
        let running = match &mut *machine {
            Some(running) => running,
            empty => empty.insert(Machine::new()?),
        };
        let visited = visit(running);
        let spent = !matches!(visited, Visit::Done);
        if spent || running.runtime.is_job_pending() {
            *machine = None;
        }
        Ok(visited)
    })
}

fn broken(error: &rquickjs::Error) -> EvalError {
    EvalError::thrown(format!("JavaScript could not be started: {error}"))
}

impl Machine {
    fn new() -> Result<Self, EvalError> {
        let runtime = Runtime::new().map_err(|error| broken(&error))?;
        runtime.set_max_stack_size(512 * 1024);
        let context = Context::full(&runtime).map_err(|error| broken(&error))?;
        let watch = Rc::new(Watch::default());
        watch.start(u32::MAX);
        let well_formed = context.with(|ctx| {
            prepare(&ctx)
                .map(|function| Persistent::save(&ctx, function))
                .catch(&ctx)
                .map_err(|error| caught(&error, None))
        })?;
        runtime.set_memory_limit(MOST_MEMORY);
        let ticking = watch.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || ticking.tick())));
        Ok(Machine {
            functions: Functions::default(),
            well_formed: Some(well_formed),
            context,
            runtime,
            watch,
        })
    }

    /// Calls what has no result yet, until all have one or a fresh machine is needed.
    fn visit<'s, C: Borrow<Call<'s>>>(
        &mut self,
        count: usize,
        prepare: &mut dyn FnMut(usize) -> Result<C, EvalError>,
        results: &mut Vec<Result<Option<Value>, EvalError>>,
    ) -> Visit {
        let Machine {
            functions,
            context,
            watch,
            well_formed,
            ..
        } = self;
        context.with(|ctx| {
            while results.len() < count {
                let call = match prepare(results.len()) {
                    Ok(call) => call,
                    Err(error) => {
                        results.push(Err(error));
                        continue;
                    }
                };
                watch.start(MOST_TICKS + 1);
                let outcome = one(&ctx, functions, watch, well_formed.as_ref(), call.borrow());
                let limit = outcome.as_ref().err().and_then(EvalError::limited);
                // Work is looked at every 10,000 steps, counted on from what ran here before, and
                // so is memory. Where that can matter only a fresh machine decides.
                let close = limit.is_none() && watch.ticks.get() > MOST_TICKS;
                if close || limit == Some(Limit::Memory) {
                    return Visit::Doubtful;
                }
                results.push(outcome);
                if limit.is_some() {
                    return Visit::Spent;
                }
            }
            Visit::Done
        })
    }

    fn call(&mut self, call: &Call<'_>, ticks: u32) -> Result<Option<Value>, EvalError> {
        self.watch.start(ticks);
        let Machine {
            functions,
            context,
            watch,
            well_formed,
            ..
        } = self;
        context.with(|ctx| one(&ctx, functions, watch, well_formed.as_ref(), call))
    }
}

/// One call inside a context.
fn one<'js>(
    ctx: &Ctx<'js>,
    functions: &mut Functions,
    watch: &Watch,
    well_formed: Option<&Persistent<Function<'static>>>,
    call: &Call<'_>,
) -> Result<Option<Value>, EvalError> {
    let source = call.source;
    let function = match functions.get(&source.id) {
        Some(function) => function.clone(),
        None => {
            let compiled = ctx
                .eval_with_options::<Function<'_>, _>(source.text.as_str(), options())
                .catch(ctx)
                .map_err(|error| caught(&error, watch.tripped.get()))?;
            let function = Persistent::save(ctx, compiled);
            functions.insert(source.id, function.clone());
            function
        }
    };
    let value = (|| {
        let function = function.restore(ctx)?;
        let mut atoms = Atoms(Vec::new());
        let mut passed = Args::new(ctx.clone(), call.arguments.len());
        passed.this(argument(ctx, &call.this, &mut atoms)?)?;
        for value in &call.arguments {
            passed.push_arg(argument(ctx, value, &mut atoms)?)?;
        }
        let value: Js<'_> = function.call_arg(passed)?;
        from_js(ctx, &value, well_formed)
    })();
    if let Some(refused) = meter::refused() {
        // Nothing of what was thrown is left behind.
        let _ = value.catch(ctx);
        return Err(refused);
    }
    let tripped = watch.tripped.get().or_else(meter::exceeded);
    let value = value.catch(ctx).map_err(|error| match &error {
        // What is thrown when not even an error fits into memory, or by the expression itself.
        CaughtError::Value(thrown)
            if tripped.is_none() && thrown.is_null() && source.text.contains("throw") =>
        {
            EvalError {
                message: "JavaScript threw null; or it needs more than 64 MiB of memory".to_owned(),
                ..EvalError::limit(Limit::Memory)
            }
        }
        error => caught(error, tripped),
    })?;
    match tripped {
        Some(limit) => Err(EvalError::limit(limit)),
        None => value.transpose(),
    }
}

fn options() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.global = true;
    options.strict = true;
    options.filename = Some("expression".to_owned());
    options
}

/// Sets a context up; gives the function that repairs texts with half characters.
fn prepare<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
    let host = Object::new(ctx.clone())?;
    host.set(
        "time",
        Function::new(ctx.clone(), || meter::at_millis() as f64)?,
    )?;
    host.set(
        "work",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, units: f64| {
            // Even if the script goes on from here, it has failed.
            meter::work(units as u64 / 4).map_err(|error| {
                meter::exceed(error.limited());
                Exception::throw_range(&ctx, &error.message)
            })
        })?,
    )?;
    host.set("random", Function::new(ctx.clone(), meter::random)?)?;
    host.set("uuid", Function::new(ctx.clone(), meter::uuid)?)?;
    host.set(
        "strftime",
        Function::new(ctx.clone(), |format: String, millis: f64| {
            Civil::new(millis as i64).strftime(&format)
        })?,
    )?;
    host.set(
        "variable",
        Function::new(
            ctx.clone(),
            |ctx: Ctx<'js>, name: String| match meter::variable(&name) {
                Ok(found) => {
                    let value = found.unwrap_or_else(|| Value::text(format!("{{{name}}}")));
                    to_js(&ctx, &value, &mut Atoms(Vec::new()))
                }
                Err(error) => Err(Exception::throw_reference(&ctx, &error.message)),
            },
        )?,
    )?;
    let known = Array::new(ctx.clone())?;
    for (index, name) in JS_GLOBALS.iter().enumerate() {
        known.set(index, *name)?;
    }
    let prelude: Function<'js> = ctx.eval_with_options(include_str!("prelude.js"), options())?;
    prelude.call((known, host))
}

/// Says what JavaScript threw.
fn caught(error: &CaughtError<'_>, tripped: Option<Limit>) -> EvalError {
    if let Some(limit) = tripped {
        return EvalError::limit(limit);
    }
    match error {
        CaughtError::Exception(exception) => {
            let name: String = exception.as_object().get("name").unwrap_or_default();
            let message = exception.message().unwrap_or_default();
            if name == "InternalError" && message.contains("out of memory") {
                return EvalError::limit(Limit::Memory);
            }
            let kind = match name.as_str() {
                "SyntaxError" => ErrorKind::Syntax,
                _ => ErrorKind::Thrown,
            };
            EvalError::new(kind, format!("{name}: {message}"))
        }
        CaughtError::Value(value) => {
            let text = match value.as_string().and_then(|text| text.to_string().ok()) {
                Some(text) => text,
                // What is thrown when not even an error fits into memory.
                None if value.is_null() => return EvalError::limit(Limit::Memory),
                None => value.type_name().to_owned(),
            };
            EvalError::thrown(format!("JavaScript threw: {text}"))
        }
        CaughtError::Error(rquickjs::Error::Allocation) => EvalError::limit(Limit::Memory),
        CaughtError::Error(error) => EvalError::thrown(error.to_string()),
    }
}

/// The keys of one conversion: lists of alike maps need each key only once.
struct Atoms<'js>(Vec<(Arc<str>, Atom<'js>)>);

impl<'js> Atoms<'js> {
    fn get(&mut self, ctx: &Ctx<'js>, key: &Arc<str>) -> rquickjs::Result<Atom<'js>> {
        let known = self
            .0
            .iter()
            .find(|(known, _)| Arc::ptr_eq(known, key) || known == key);
        if let Some((_, atom)) = known {
            return Ok(atom.clone());
        }
        let atom = Atom::from_str(ctx.clone(), key)?;
        if self.0.len() < 32 {
            self.0.push((key.clone(), atom.clone()));
        }
        Ok(atom)
    }
}

fn argument<'js>(
    ctx: &Ctx<'js>,
    argument: &Argument,
    atoms: &mut Atoms<'js>,
) -> rquickjs::Result<Js<'js>> {
    match argument {
        Argument::Undefined => Ok(Js::new_undefined(ctx.clone())),
        Argument::Value(value) => to_js(ctx, value, atoms),
        Argument::Fields(fields) => Ok(object(ctx, fields, atoms)?.into_value()),
        Argument::View { fields, refused } => {
            let object = object(ctx, fields, atoms)?;
            for (key, error) in refused {
                let error = error.clone();
                let refuse = move |ctx: Ctx<'js>| -> rquickjs::Result<()> {
                    // Even if the script goes on from here, it has failed.
                    let thrown = Exception::throw_reference(&ctx, &error.message);
                    meter::refuse(error.clone());
                    Err(thrown)
                };
                object.prop(atoms.get(ctx, key)?, Accessor::from(refuse))?;
            }
            Ok(object.into_value())
        }
    }
}

fn object<'js>(
    ctx: &Ctx<'js>,
    fields: &[(Arc<str>, Value)],
    atoms: &mut Atoms<'js>,
) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (key, value) in fields {
        object.set(atoms.get(ctx, key)?, to_js(ctx, value, atoms)?)?;
    }
    Ok(object)
}

fn to_js<'js>(ctx: &Ctx<'js>, value: &Value, atoms: &mut Atoms<'js>) -> rquickjs::Result<Js<'js>> {
    Ok(match value {
        Value::Null => Js::new_null(ctx.clone()),
        Value::Bool(value) => Js::new_bool(ctx.clone(), *value),
        Value::Int(value) => match i32::try_from(*value) {
            Ok(small) => Js::new_int(ctx.clone(), small),
            Err(_) => Js::new_float(ctx.clone(), *value as f64),
        },
        Value::Float(value) => Js::new_float(ctx.clone(), *value),
        Value::Str(text) => JsString::from_str(ctx.clone(), text)?.into_value(),
        Value::List(list) => {
            let array = Array::new(ctx.clone())?;
            for (index, item) in list.0.iter().enumerate() {
                array.set(index, to_js(ctx, item, atoms)?)?;
            }
            array.into_value()
        }
        Value::Map(map) => {
            let object = Object::new(ctx.clone())?;
            for (key, value) in &map.0 {
                let atom = atoms.get(ctx, key)?;
                object.set(atom, to_js(ctx, value, atoms)?)?;
            }
            object.into_value()
        }
    })
}

/// A value as JSON has it; what JSON leaves out is undefined.
#[allow(
    clippy::type_complexity,
    reason = "two ways to fail: in JavaScript, and here"
)]
fn from_js<'js>(
    ctx: &Ctx<'js>,
    value: &Js<'js>,
    well_formed: Option<&Persistent<Function<'static>>>,
) -> rquickjs::Result<Option<Result<Value, EvalError>>> {
    if value.is_promise() {
        let message = "the value of an expression cannot be a promise";
        return Ok(Some(Err(EvalError::wrong_type(message))));
    }
    if value.is_null() {
        return Ok(Some(Ok(Value::Null)));
    }
    if let Some(value) = value.as_bool() {
        return Ok(Some(Ok(Value::Bool(value))));
    }
    if let Some(number) = value.as_number() {
        let number = if number.is_finite() {
            Value::number(number)
        } else {
            Value::Null
        };
        return Ok(Some(Ok(number)));
    }
    if let Some(text) = value.as_string() {
        return string(ctx, text, well_formed).map(|text| Some(Ok(Value::text(text))));
    }
    if value.is_big_int() {
        let text: String = ctx
            .globals()
            .get::<_, Function<'_>>("String")?
            .call((value.clone(),))?;
        let whole = text.parse().map(Value::Int);
        let message = "a number is too large";
        return Ok(Some(whole.map_err(|_| EvalError::wrong_type(message))));
    }
    let Some(json) = ctx.json_stringify(value.clone())? else {
        return Ok(None);
    };
    let json = string(ctx, &json, well_formed)?;
    Ok(Some(
        serde_json::from_str(&json).map_err(|_| EvalError::too_deep()),
    ))
}

fn string<'js>(
    ctx: &Ctx<'js>,
    text: &JsString<'js>,
    well_formed: Option<&Persistent<Function<'static>>>,
) -> rquickjs::Result<String> {
    match text.to_string() {
        Err(rquickjs::Error::Utf8(_)) => match well_formed {
            Some(repair) => repair.clone().restore(ctx)?.call((text.clone(),)),
            None => Ok(String::new()),
        },
        other => other,
    }
}
