//! Evaluating expressions, templates and transforms.
//!
//! Evaluation is pure: time and randomness come from the [`Instant`] of the event that is being
//! applied, names from a [`Scope`]. It is bounded by counted work, by the size of what is produced
//! and by memory, so that a replay decides the same; the clock only stands behind these.
//!
//! ```
//! use flow_model::graph::{Dialect, Expression};
//! use flow_runtime::expression::{Context, Engine, EvalError, Instant, Scope, View};
//! use flow_runtime::value::Value;
//!
//! struct Inputs(Value);
//! impl Scope for Inputs {
//!     fn lookup(&self, name: &str) -> Option<Value> {
//!         (name == "inputs").then(|| self.0.clone())
//!     }
//!     fn field(&self, _: View, _: &str) -> Result<Option<Value>, EvalError> {
//!         Ok(None)
//!     }
//!     fn fields(&self, _: View) -> Vec<std::sync::Arc<str>> {
//!         Vec::new()
//!     }
//! }
//!
//! let scope = Inputs(Value::map([("count", Value::Int(2))]));
//! let instant = Instant::new(0, 0);
//! let expression = Expression {
//!     source: "inputs.count + 1".into(),
//!     dialect: Dialect::Jinja,
//! };
//! let value = Engine::new().eval_expression(&expression, &Context::new(&scope, &instant))?;
//! assert_eq!(value, Value::Int(3));
//! # Ok::<(), EvalError>(())
//! ```
//!
//! # Values as text
//!
//! Text with interpolations shows strings as they are, whole numbers without a fraction, `true`,
//! `false`, `null`, and lists and maps as JSON on one line, in both dialects. What is undefined is
//! an error in Jinja and leaves nothing in JavaScript, where an undefined result is null.
//!
//! # Commands
//!
//! [`Engine::render_command`] quotes every value for the place it stands in. A list becomes several
//! words where words can stand and its items with spaces between elsewhere; null is the empty word;
//! maps, and lists inside lists, are JSON. `| unquoted` puts text in as it is, and `| sh` gives an
//! ordinary string that is quoted once more, for handing on to another shell.
//!
//! # Patterns
//!
//! In a regular expression a value stands for its text, whatever signs it has; `| unquoted` makes it
//! a part of the expression.

mod clock;
mod error;
mod held;
mod jinja;
mod js;
mod meter;
mod pattern;
mod scope;
mod shell;
#[cfg(test)]
mod tests;
mod text;
mod trial;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use flow_model::graph::{Dialect, Expression, Rule, Template};
use indexmap::IndexMap;

pub use error::{ErrorKind, EvalError, Limit};
pub use scope::{Absent, Context, Instant, Scope, Variable, View};
pub(crate) use shell::single as quoted;
pub use trial::try_transform;

use crate::value::{List, Map, Value};
use held::Held;
use js::Shape;
use meter::Meter;
pub(crate) use meter::gives_way;
pub use meter::{Decided, Patience, as_judged, judged};
pub(crate) use text::written;

/// A computed field's rule to be evaluated.
#[derive(Clone, Debug)]
pub struct Computation<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What it is handed.
    pub input: Value,
    /// Where its randomness starts.
    pub seed: u64,
}

/// Compiled texts kept per engine.
const MOST_PROGRAMS: usize = 16 * 1024;

/// Lists and maps may not nest deeper than this. Far less than any stack holds.
pub(crate) const DEEPEST: usize = 100;

/// Evaluates the expressions of a definition, compiling each text once.
///
/// Texts are found again by their address, so the graph they belong to should live as long as the
/// engine; a text at a reused address is noticed and compiled anew.
#[derive(Default)]
pub struct Engine {
    programs: RwLock<Programs>,
}

type Programs = HashMap<Key, Arc<Entry>, BuildHasherDefault<AddressHasher>>;

/// Where a text is, and what it is compiled as.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    address: usize,
    length: usize,
    role: Role,
}

/// What a text is compiled as.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    Expression(Dialect),
    Text(Dialect),
    /// An expression that is a whole command.
    Command(Dialect),
    Transform,
    Body,
}

struct Entry {
    text: String,
    program: Result<Program, EvalError>,
}

enum Program {
    Jinja(jinja::Program),
    Js(js::Program),
    JsText(js::Template),
}

/// Addresses are spread by multiplication alone.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

impl Program {
    fn compile(text: &str, role: Role) -> Result<Self, EvalError> {
        Ok(match role {
            Role::Expression(Dialect::Jinja) => Program::Jinja(jinja::Program::expression(text)?),
            Role::Expression(Dialect::Js) => Program::Js(js::Program::expression(text)?),
            Role::Text(Dialect::Jinja) => Program::Jinja(jinja::Program::template(text)?),
            Role::Text(Dialect::Js) => Program::JsText(js::Template::new(text)?),
            Role::Command(dialect) => {
                let braced = format!("{{{{ {text} }}}}");
                return Program::compile(&braced, Role::Text(dialect));
            }
            Role::Transform => Program::Js(js::Program::transform(text, Shape::Expression)?),
            Role::Body => Program::Js(js::Program::transform(text, Shape::Body)?),
        })
    }

    fn value(&self, context: &Context<'_>) -> Result<Value, EvalError> {
        match self {
            Program::Jinja(program) => program.value(context),
            Program::Js(program) => program.value(context),
            Program::JsText(template) => template.text(context).map(Value::text),
        }
    }

    fn text(&self, context: &Context<'_>) -> Result<String, EvalError> {
        match self {
            Program::Jinja(program) => program.text(context),
            Program::Js(program) => text::text(&program.value(context)?),
            Program::JsText(template) => template.text(context),
        }
    }

    fn command(&self, context: &Context<'_>, reader: shell::Reader) -> Result<String, EvalError> {
        let (text, held) = self.marked(context)?;
        shell::compose(&text, &held, reader)
    }

    fn pattern(&self, context: &Context<'_>) -> Result<String, EvalError> {
        let (text, held) = self.marked(context)?;
        pattern::compose(&text, &held)
    }

    /// The text with marks for its values, and the values.
    fn marked(&self, context: &Context<'_>) -> Result<(String, Vec<Held>), EvalError> {
        match self {
            Program::Jinja(program) => program.marked(context),
            Program::JsText(template) => template.marked(context),
            Program::Js(program) => {
                let value = program.value(context)?;
                Ok((held::mark(0), vec![Held::Value(value)]))
            }
        }
    }
}

impl Engine {
    /// An engine that has compiled nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Engine::default()
    }

    /// The native value of an expression.
    ///
    /// # Errors
    ///
    /// When the text does not compile, a value is missing or unfit, or a bound is reached.
    pub fn eval_expression(
        &self,
        expression: &Expression,
        context: &Context<'_>,
    ) -> Result<Value, EvalError> {
        let _running = Meter::start(context.instant);
        meter::decided()?;
        self.expression(expression, context)
    }

    /// The value of a template: evaluated where it has to be, as it is where not.
    ///
    /// # Errors
    ///
    /// As for [`Engine::eval_expression`], for the first part that fails.
    pub fn render(&self, template: &Template, context: &Context<'_>) -> Result<Value, EvalError> {
        let _running = Meter::start(context.instant);
        meter::decided()?;
        let value = self.template(template, context)?;
        if let Template::List(_) | Template::Map(_) = template {
            // Values are put into each other here without being looked at.
            shallow(&value, DEEPEST)?;
        }
        Ok(value)
    }

    /// A command, every value quoted for the place it stands in.
    ///
    /// # Errors
    ///
    /// As for [`Engine::eval_expression`], and with [`ErrorKind::Place`] when a value stands where
    /// it cannot be made safe.
    pub fn render_command(
        &self,
        template: &Template,
        context: &Context<'_>,
    ) -> Result<String, EvalError> {
        let _running = Meter::start(context.instant);
        meter::decided()?;
        match template {
            Template::Literal(literal) => match Value::from(literal) {
                Value::Str(text) => Ok(text.to_string()),
                Value::Map(_) => Err(no_command()),
                other => shell::words(&other),
            },
            Template::Expression(expression) => {
                let role = Role::Command(expression.dialect);
                self.with(&expression.source, role, |program| {
                    program.command(context, shell::Reader::Child)
                })
            }
            Template::Text(expression)
            | Template::Command(expression)
            | Template::Pattern(expression) => {
                let role = Role::Text(expression.dialect);
                self.with(&expression.source, role, |program| {
                    program.command(context, shell::Reader::Child)
                })
            }
            Template::List(_) => shell::words(&self.template(template, context)?),
            Template::Map(_) => Err(no_command()),
        }
    }

    /// The value a computed field's rule makes of its input.
    ///
    /// # Errors
    ///
    /// As for [`Engine::eval_expression`].
    pub fn transform(
        &self,
        rule: &Rule,
        input: &Value,
        context: &Context<'_>,
    ) -> Result<Value, EvalError> {
        let _running = Meter::start(context.instant);
        meter::decided()?;
        let extra = [("input", input.clone())];
        let context = context.with(&extra);
        match rule {
            Rule::Transform(text) => {
                self.with(text, Role::Transform, |program| program.value(&context))
            }
            Rule::Body(text) => self.with(text, Role::Body, |program| program.value(&context)),
            Rule::Value(template) => self.template(template, &context),
        }
    }

    /// The values that several rules make of their inputs. Each is evaluated and bounded as by
    /// [`Engine::transform`]; JavaScript is entered once for all of them.
    ///
    /// # Errors
    ///
    /// Each as for [`Engine::eval_expression`].
    pub fn transform_each(
        &self,
        rules: &[Computation<'_>],
        context: &Context<'_>,
    ) -> Vec<Result<Value, EvalError>> {
        let mut entries = Vec::with_capacity(rules.len());
        for computation in rules {
            entries.push(match computation.rule {
                Rule::Transform(text) => Some(self.entry(text, Role::Transform)),
                Rule::Body(text) => Some(self.entry(text, Role::Body)),
                Rule::Value(_) => None,
            });
        }
        let mut scripts = Vec::with_capacity(rules.len());
        for (computation, entry) in rules.iter().zip(&entries) {
            if let Some(Ok(Program::Js(program))) = entry.as_ref().map(|entry| &entry.program) {
                scripts.push((program, computation));
            }
        }
        let mut values = js::transforms(&scripts, context).into_iter();
        let mut results = Vec::with_capacity(rules.len());
        for (computation, entry) in rules.iter().zip(&entries) {
            let script = matches!(
                entry.as_ref().map(|entry| &entry.program),
                Some(Ok(Program::Js(_)))
            );
            let value = if script { values.next() } else { None };
            results.push(match value {
                Some(value) => value,
                None => {
                    let instant = Instant::new(context.instant.at_millis, computation.seed);
                    self.transform(computation.rule, &computation.input, &context.at(&instant))
                }
            });
        }
        results
    }

    /// Whether a JavaScript expression over `output` holds.
    ///
    /// # Errors
    ///
    /// As for [`Engine::eval_expression`].
    pub fn validate(
        &self,
        expression: &str,
        output: &Value,
        context: &Context<'_>,
    ) -> Result<bool, EvalError> {
        let _running = Meter::start(context.instant);
        meter::decided()?;
        let extra = [("output", output.clone())];
        let context = context.with(&extra);
        let value = self.with(expression, Role::Transform, |program| {
            program.value(&context)
        })?;
        Ok(truth(&value, Dialect::Js))
    }

    fn expression(
        &self,
        expression: &Expression,
        context: &Context<'_>,
    ) -> Result<Value, EvalError> {
        let role = Role::Expression(expression.dialect);
        self.with(&expression.source, role, |program| program.value(context))
    }

    fn template(&self, template: &Template, context: &Context<'_>) -> Result<Value, EvalError> {
        match template {
            Template::Literal(literal) => Ok(Value::from(literal)),
            Template::Expression(expression) => self.expression(expression, context),
            Template::Text(expression) => {
                let role = Role::Text(expression.dialect);
                self.with(&expression.source, role, |program| program.text(context))
                    .map(Value::text)
            }
            Template::Command(expression) => {
                let role = Role::Text(expression.dialect);
                self.with(&expression.source, role, |program| {
                    program.command(context, shell::Reader::Terminal)
                })
                .map(Value::text)
            }
            Template::Pattern(expression) => {
                let role = Role::Text(expression.dialect);
                self.with(&expression.source, role, |program| program.pattern(context))
                    .map(Value::text)
            }
            Template::List(items) => {
                let items: Result<_, _> = items
                    .iter()
                    .map(|item| self.template(item, context))
                    .collect();
                Ok(Value::List(Arc::new(List(items?))))
            }
            Template::Map(entries) => {
                let mut map = IndexMap::with_capacity(entries.len());
                for (key, value) in entries.iter() {
                    map.insert(Arc::from(key.as_ref()), self.template(value, context)?);
                }
                Ok(Value::Map(Arc::new(Map(map))))
            }
        }
    }

    /// Does something with the program of a text, compiling it when it is new.
    fn with<T>(
        &self,
        text: &str,
        role: Role,
        run: impl FnOnce(&Program) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        match &self.entry(text, role).program {
            Ok(program) => run(program),
            Err(error) => Err(error.clone()),
        }
    }

    fn entry(&self, text: &str, role: Role) -> Arc<Entry> {
        let key = Key {
            address: text.as_ptr() as usize,
            length: text.len(),
            role,
        };
        let known = self
            .programs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .filter(|entry| entry.text == text)
            .cloned();
        known.unwrap_or_else(|| {
            let entry = Arc::new(Entry {
                text: text.to_owned(),
                program: Program::compile(text, role),
            });
            let mut programs = self
                .programs
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if programs.len() >= MOST_PROGRAMS {
                programs.clear();
            }
            programs.insert(key, entry.clone());
            entry
        })
    }
}

/// An error when a value nests deeper than so many levels. A run could otherwise put a value into
/// itself step by step until no stack holds it.
fn shallow(value: &Value, levels: usize) -> Result<(), EvalError> {
    match value.is_within(levels) {
        true => Ok(()),
        false => Err(EvalError::too_deep()),
    }
}

fn no_command() -> EvalError {
    EvalError::wrong_type("a command is a text or a list of words, not an object")
}

/// Whether a value counts as true.
///
/// In both dialects null, false, 0 and the empty text do not; in Jinja empty lists and maps do not
/// either.
#[must_use]
pub fn truth(value: &Value, dialect: Dialect) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0 && !number.is_nan(),
        Value::Str(text) => !text.is_empty(),
        Value::List(list) => dialect == Dialect::Js || !list.0.is_empty(),
        Value::Map(map) => dialect == Dialect::Js || !map.0.is_empty(),
    }
}
