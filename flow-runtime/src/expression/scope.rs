//! What an expression can see.

use std::cell::Cell;
use std::sync::Arc;

use flow_model::expression::Read;
use flow_model::graph::Text;

use super::error::{ErrorKind, EvalError};
use crate::value::{Map, Value};

/// The names an expression reads, live: nothing is copied but the handle of a value.
pub trait Scope {
    /// The value of a name that is no view of the state: `inputs`, `item`, `loop`, `env`, `run`,
    /// `error`, `result`, or a variable of the states form.
    fn lookup(&self, name: &str) -> Option<Value>;

    /// One field of a view of the state. An error is what reading the field means, as when a
    /// computed field failed.
    ///
    /// # Errors
    ///
    /// Whatever the field's own rule failed with.
    fn field(&self, view: View, name: &str) -> Result<Option<Value>, EvalError>;

    /// The names of the fields of a view, in order.
    fn fields(&self, view: View) -> Vec<Arc<str>>;

    /// The fields of a view that exist and cannot be read, each with what reading it means.
    fn refused(&self, _view: View) -> Vec<(Arc<str>, EvalError)> {
        Vec::new()
    }

    /// What `{name}` stands for.
    fn variable(&self, name: &str) -> Variable {
        self.lookup(name).map_or(Variable::Unknown, Variable::Set)
    }
}

/// A view of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// `state` and `this`: computed, then raw, then state.
    Flat,
    /// `raw`: written by steps.
    Raw,
    /// `computed`: derived.
    Computed,
}

impl View {
    /// The view a name stands for.
    pub(super) fn named(name: &str) -> Option<View> {
        match name {
            "state" | "this" => Some(View::Flat),
            "raw" => Some(View::Raw),
            "computed" => Some(View::Computed),
            _ => None,
        }
    }
}

/// What `{name}` stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Variable {
    /// A value.
    Set(Value),
    /// A name that exists but has no value yet; reading it is an error.
    Unset,
    /// No variable at all; the braces are text.
    Unknown,
}

/// The moment and the randomness of the event that is being applied.
///
/// Everything drawn during one event is drawn from one `Instant`, so that two `uuid()` differ and
/// a replay gives both again.
#[derive(Clone, Debug)]
pub struct Instant {
    /// Milliseconds since 1970, UTC.
    pub at_millis: i64,
    /// Where randomness starts.
    pub seed: u64,
    draws: Cell<u64>,
}

impl Instant {
    /// A moment from which nothing has been drawn.
    #[must_use]
    pub const fn new(at_millis: i64, seed: u64) -> Self {
        Instant {
            at_millis,
            seed,
            draws: Cell::new(0),
        }
    }

    pub(super) fn draws(&self) -> u64 {
        self.draws.get()
    }

    pub(super) fn set_draws(&self, draws: u64) {
        self.draws.set(draws);
    }
}

/// Names that are known and have no value.
#[derive(Clone, Copy, Debug)]
pub struct Absent<'a> {
    /// The names.
    pub names: &'a [&'a str],
    /// The maps that hold them as well.
    pub within: &'a [&'a str],
}

/// Everything an evaluation depends on beside the text.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What names mean.
    pub scope: &'a dyn Scope,
    /// When, and with what randomness.
    pub instant: &'a Instant,
    /// The state fields that may be read; `None` for all of them.
    pub needs_state: Option<&'a [Text]>,
    /// State fields that may be read although they are not listed.
    pub exempt: &'a [Text],
    /// Names that come before those of the scope.
    pub extra: &'a [(&'a str, Value)],
    /// Names that read as nothing: they are written as nothing, and are neither true nor defined.
    /// Without any such rule what has no value is an error.
    pub absent: Option<Absent<'a>>,
}

impl<'a> Context<'a> {
    /// A context that may read everything in `scope`.
    #[must_use]
    pub fn new(scope: &'a dyn Scope, instant: &'a Instant) -> Self {
        Context {
            scope,
            instant,
            needs_state: None,
            exempt: &[],
            extra: &[],
            absent: None,
        }
    }

    /// The same, narrowed to the state fields a step lists.
    #[must_use]
    pub fn narrowed(self, needs_state: Option<&'a [Text]>, exempt: &'a [Text]) -> Self {
        Context {
            needs_state,
            exempt,
            ..self
        }
    }

    /// The same at another moment.
    pub(super) fn at(self, instant: &'a Instant) -> Self {
        Context { instant, ..self }
    }

    /// The same with other names before those of the scope.
    #[must_use]
    pub fn with(self, extra: &'a [(&'a str, Value)]) -> Self {
        Context { extra, ..self }
    }

    /// The same where some names read as nothing.
    #[must_use]
    pub fn forgiving(self, absent: Absent<'a>) -> Self {
        Context {
            absent: Some(absent),
            ..self
        }
    }

    /// Whether a path leads to a name that reads as nothing.
    fn reads_as_nothing(&self, path: &[String]) -> bool {
        let Some(absent) = self.absent else {
            return false;
        };
        let is = |names: &[&str], key: Option<&String>| {
            key.is_some_and(|key| names.contains(&key.as_str()))
        };
        is(absent.names, path.first())
            || (is(absent.within, path.first()) && is(absent.names, path.get(1)))
    }

    fn visible(&self, field: &str) -> bool {
        let listed = |names: &[Text]| names.iter().any(|name| name == field);
        self.needs_state
            .is_none_or(|needs| listed(needs) || listed(self.exempt))
    }

    /// A field of a view, unless the step does not list it.
    pub(super) fn field(&self, view: View, name: &str) -> Result<Option<Value>, EvalError> {
        let found = self.scope.field(view, name)?;
        if found.is_some() && !self.visible(name) {
            let kind = ErrorKind::NotInNeedsState {
                field: name.to_owned(),
            };
            let message = format!("the state field `{name}` is not listed in `needs_state`");
            return Err(EvalError::new(kind, message));
        }
        Ok(found)
    }

    /// All of a view that may be read. Fields that failed are left out.
    pub(super) fn view(&self, view: View) -> Value {
        let entries = self.scope.fields(view).into_iter().filter_map(|name| {
            let value = self.field(view, &name).ok()??;
            Some((name, value))
        });
        Value::Map(Arc::new(Map(entries.collect())))
    }

    /// All of a view: what may be read, and what may not.
    fn whole(&self, view: View) -> Found {
        let mut refused = self.scope.refused(view);
        let mut fields = Vec::new();
        for name in self.scope.fields(view) {
            match self.field(view, &name) {
                Ok(Some(value)) => fields.push((name, value)),
                Ok(None) => {}
                Err(error) => refused.push((name, error)),
            }
        }
        if refused.is_empty() {
            return Found::Value(Value::Map(Arc::new(Map(fields.into_iter().collect()))));
        }
        Found::View { fields, refused }
    }

    /// A name that is no view: bound, in scope, or a state field.
    pub(super) fn name(&self, name: &str) -> Result<Option<Value>, EvalError> {
        if let Some((_, value)) = self.extra.iter().find(|(bound, _)| *bound == name) {
            return Ok(Some(value.clone()));
        }
        match self.scope.lookup(name) {
            Some(value) => Ok(Some(value)),
            None => self.field(View::Flat, name),
        }
    }

    /// What a path starts with: its value, and how many keys that consumed.
    pub(super) fn start<S: AsRef<str>>(
        &self,
        path: &[S],
    ) -> Result<Option<(Value, usize)>, EvalError> {
        let Some(root) = path.first().map(AsRef::as_ref) else {
            return Ok(None);
        };
        match (View::named(root), path.get(1)) {
            (Some(view), Some(field)) => Ok(self.field(view, field.as_ref())?.map(|it| (it, 2))),
            (Some(view), None) => Ok(Some((self.view(view), 1))),
            (None, _) => Ok(self.name(root)?.map(|it| (it, 1))),
        }
    }

    /// The shortest prefix of a path that is missing, written as in the expression.
    pub(super) fn missing(&self, read: &Read) -> Option<String> {
        let (mut value, mut used) = match self.start(&read.path) {
            Ok(Some(found)) => found,
            Ok(None) => {
                let keys = if View::named(&read.path[0]).is_some() {
                    2
                } else {
                    1
                };
                return Some(written(&read.path[..keys.min(read.path.len())]));
            }
            Err(_) => return None,
        };
        while let Some(key) = read.path.get(used) {
            used += 1;
            match step(&value, key) {
                Some(next) => value = next.clone(),
                None => return Some(written(&read.path[..used])),
            }
        }
        None
    }
}

/// The member of a map or list.
pub(super) fn step<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Map(map) => map.0.get(key),
        Value::List(list) => {
            let index: i64 = key.parse().ok()?;
            let length = i64::try_from(list.0.len()).ok()?;
            let index = if index < 0 { index + length } else { index };
            list.0.get(usize::try_from(index).ok()?)
        }
        _ => None,
    }
}

/// A path as it could be written.
fn written(path: &[String]) -> String {
    let mut text = String::new();
    for key in path {
        let plain = key
            .chars()
            .all(|letter| letter.is_alphanumeric() || letter == '_');
        let number = key.parse::<i64>().is_ok();
        if text.is_empty() {
            text.push_str(key);
        } else if number {
            text.push_str(&format!("[{key}]"));
        } else if plain {
            text.push_str(&format!(".{key}"));
        } else {
            text.push_str(&format!("['{key}']"));
        }
    }
    text
}

/// What an expression reads, known from its text.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) roots: Vec<Root>,
    /// The literal arguments of `variable(…)`.
    pub(super) variables: Vec<Arc<str>>,
    /// Reads whose absence is an error.
    required: Vec<Read>,
}

/// A name, and what of it is read.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) name: Arc<str>,
    view: Option<View>,
    /// The fields of a view that are read; none when all of it is.
    fields: Option<Vec<Arc<str>>>,
}

/// What a root is in one evaluation.
pub(super) enum Found {
    Missing,
    /// Known, without a value, and read as nothing.
    Nothing,
    /// A map, and the keys in it that read as nothing.
    Partial(Value, Vec<Arc<str>>),
    Value(Value),
    Failed(EvalError),
    Fields(Vec<(Arc<str>, Result<Value, EvalError>)>),
    /// All of a view, with what of it may not be read.
    View {
        fields: Vec<(Arc<str>, Value)>,
        refused: Vec<(Arc<str>, EvalError)>,
    },
}

impl Plan {
    pub(super) fn new(reads: Vec<Read>, variables: Vec<Arc<str>>) -> Self {
        let mut roots: Vec<Root> = Vec::new();
        for read in &reads {
            let Some(name) = read.path.first() else {
                continue;
            };
            let view = View::named(name);
            let field = read.path.get(1).filter(|_| view.is_some());
            let at = roots.iter().position(|root| *root.name == **name);
            let at = at.unwrap_or_else(|| {
                roots.push(Root {
                    name: Arc::from(name.as_str()),
                    view,
                    fields: view.map(|_| Vec::new()),
                });
                roots.len() - 1
            });
            let root = &mut roots[at];
            match (field, &mut root.fields) {
                (Some(field), Some(fields)) => {
                    if !fields.iter().any(|known| **known == **field) {
                        fields.push(Arc::from(field.as_str()));
                    }
                }
                (None, fields) => *fields = None,
                (Some(_), None) => {}
            }
        }
        let required = reads.into_iter().filter(|read| !read.optional).collect();
        Plan {
            roots,
            variables,
            required,
        }
    }

    /// Which of the reads finds nothing; one that may find nothing only if all others find
    /// something.
    pub(super) fn missing(&self, context: &Context<'_>) -> Option<String> {
        let is_allowed = |read: &&Read| context.reads_as_nothing(&read.path);
        let forbidden = self.required.iter().filter(|read| !is_allowed(read));
        let allowed = self.required.iter().filter(is_allowed);
        let mut all = forbidden.chain(allowed);
        all.find_map(|read| context.missing(read))
    }
}

impl Root {
    pub(super) fn find(&self, context: &Context<'_>) -> Found {
        let Some(view) = self.view else {
            return match (context.name(&self.name), context.absent) {
                (Ok(Some(value)), Some(absent)) if absent.within.contains(&&*self.name) => {
                    let keys = absent.names.iter().map(|&name| Arc::from(name));
                    Found::Partial(value, keys.collect())
                }
                (Ok(None), Some(absent)) if absent.names.contains(&&*self.name) => Found::Nothing,
                (Ok(Some(value)), _) => Found::Value(value),
                (Ok(None), _) => Found::Missing,
                (Err(error), _) => Found::Failed(error),
            };
        };
        let Some(fields) = &self.fields else {
            return context.whole(view);
        };
        let fields = fields.iter().filter_map(|name| {
            let value = context.field(view, name).transpose()?;
            Some((name.clone(), value))
        });
        Found::Fields(fields.collect())
    }
}
