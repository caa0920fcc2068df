//! The state of a run: two tiers that are written, and the rules for writing them.

use std::sync::Arc;

use flow_model::graph::{Dependency, Operation, Tier};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::event::{Failure, FailureKind};
use super::typed::Types;
use crate::expression::DEEPEST;
use crate::value::{List, Map, Value};

/// The written tiers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Store {
    /// Written by steps.
    pub raw: IndexMap<Arc<str>, Value>,
    /// Set by hand.
    pub state: IndexMap<Arc<str>, Value>,
    /// Roughly the bytes of both as JSON.
    pub bytes: u64,
}

/// What writes keep to.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// Bytes that the state may have.
    pub max_bytes: u64,
    /// Types of its fields.
    pub types: &'a Types,
}

/// One write with everything evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which tier.
    pub tier: Tier,
    /// The path, field first.
    pub path: Vec<String>,
    /// How.
    pub operation: Operation,
    /// What.
    pub value: Value,
}

/// A write that was made: enough to take it back, and to say what it changed.
#[derive(Debug)]
pub struct Written {
    tier: Tier,
    path: Vec<String>,
    /// What was there; `None` for nothing.
    before: Before,
}

impl Written {
    /// The field that was written, or a part of it.
    pub(super) fn field(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Whether what a computed field is made from is another value since.
    pub(super) fn concerns(&self, dependency: &Dependency, now: &Store) -> bool {
        let is_read = match dependency.tier {
            Some(tier) => tier == self.tier,
            // What steps write hides what is set by hand.
            None => self.tier == Tier::Raw || !now.raw.contains_key(self.field()),
        };
        if !is_read {
            return false;
        }
        let mut both = self.path.iter().zip(dependency.path.iter());
        if both.any(|(written, read)| **written != **read) {
            return false;
        }
        let Before::Value(before) = &self.before else {
            return true;
        };
        // The written place lies around what is read, or within it.
        let rest = dependency.path.get(self.path.len()..).unwrap_or_default();
        let rest = rest.iter().map(AsRef::as_ref);
        let before = before
            .as_ref()
            .and_then(|value| within(value, rest.clone()));
        let path = self.path.iter().map(String::as_str).chain(rest);
        let mut path = path.skip(1);
        let now = now.get(self.tier, self.field());
        before != now.and_then(|value| within(value, &mut path))
    }
}

/// The value at a path within a value.
pub(super) fn within<'v, 'p>(
    value: &'v Value,
    path: impl IntoIterator<Item = &'p str>,
) -> Option<&'v Value> {
    path.into_iter().try_fold(value, |here, name| match here {
        Value::Map(map) => map.0.get(name),
        Value::List(list) => list.0.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

#[derive(Debug)]
enum Before {
    /// Nothing, or this value.
    Value(Option<Value>),
    /// A list that was one item shorter.
    Shorter,
}

impl Store {
    /// A field's value.
    #[must_use]
    pub fn get(&self, tier: Tier, field: &str) -> Option<&Value> {
        match tier {
            Tier::Raw => self.raw.get(field),
            Tier::State => self.state.get(field),
            Tier::Computed => None,
        }
    }

    fn tier_mut(&mut self, tier: Tier) -> &mut IndexMap<Arc<str>, Value> {
        match tier {
            Tier::State => &mut self.state,
            Tier::Raw | Tier::Computed => &mut self.raw,
        }
    }

    /// The tier that a path of a tier is written in: `state.x` where reading `state.x` finds it,
    /// unless the state tier has an `x` of its own.
    pub(super) fn home(&self, tier: Tier, field: &str) -> Tier {
        if tier == Tier::State && !self.state.contains_key(field) && self.raw.contains_key(field) {
            Tier::Raw
        } else {
            tier
        }
    }

    /// Gives a field its first value, in the tier that declares it.
    ///
    /// # Errors
    ///
    /// The state would be too large, or the value is of another type than declared.
    pub fn declare(
        &mut self,
        tier: Tier,
        name: &str,
        value: Value,
        bounds: Bounds<'_>,
    ) -> Result<(), Failure> {
        if tier == Tier::State {
            // The tier has a field of its own by that name from here on.
            self.state.insert(name.into(), Value::Null);
            self.bytes += name.len() as u64 + 4 + Value::Null.size();
        }
        let change = Change {
            tier,
            path: vec![name.to_owned()],
            operation: Operation::Set,
            value,
        };
        self.apply(&[change], bounds).map(drop)
    }

    /// Applies a batch, all of it or nothing, and says what was written.
    ///
    /// # Errors
    ///
    /// What did not fit, naming the path.
    pub fn apply(
        &mut self,
        changes: &[Change],
        Bounds { max_bytes, types }: Bounds<'_>,
    ) -> Result<Vec<Written>, Failure> {
        let bytes = self.bytes;
        let mut done: Vec<Written> = Vec::with_capacity(changes.len());
        let mut failed = None;
        for change in changes {
            match self.one(change) {
                Ok(written) => done.push(written),
                Err(message) => {
                    failed = Some(Failure::new(FailureKind::State, message));
                    break;
                }
            }
        }
        for written in &done {
            let field = written.field();
            let fits = types.check(written.tier, field, self.get(written.tier, field));
            if let (Err(message), None) = (fits, &failed) {
                failed = Some(Failure::new(FailureKind::State, message));
            }
        }
        if failed.is_none() && self.bytes > max_bytes {
            failed = Some(Failure::new(
                FailureKind::Limit,
                format!(
                    "the state would have {} bytes; `limits.max_state_bytes` is {max_bytes}",
                    self.bytes
                ),
            ));
        }
        let Some(failure) = failed else {
            return Ok(done);
        };
        for written in done.into_iter().rev() {
            self.take_back(written);
        }
        self.bytes = bytes;
        Err(failure)
    }

    fn one(&mut self, change: &Change) -> Result<Written, String> {
        let shown = || change.path.join(".");
        let field = change.path.first().map_or("", String::as_str);
        let tier = self.home(change.tier, field);
        if tier == Tier::Computed {
            return Err(format!("`{}` is computed and cannot be written", shown()));
        }
        if change.path.iter().any(|part| part.trim().is_empty()) {
            return Err(format!(
                "`{}` is not a state path: a part of it is empty",
                shown()
            ));
        }
        let is_item = usize::from(change.operation == Operation::Append);
        let around = change.path.len().saturating_sub(1) + is_item;
        if !change.value.is_within(DEEPEST.saturating_sub(around)) || around > DEEPEST {
            return Err(format!(
                "`{}` would nest deeper than {DEEPEST} levels",
                shown()
            ));
        }
        let Found {
            mut slot,
            bytes: made_bytes,
            made,
        } = slot(self.tier_mut(tier), &change.path)?;
        // An append must not look at the whole list: loops append.
        let (before, grown, shrunk) = match change.operation {
            Operation::Append => match slot.as_mut() {
                Some(Value::List(list)) => {
                    Arc::make_mut(list).0.push(change.value.clone());
                    (Before::Shorter, change.value.size() + 1, 0)
                }
                None | Some(Value::Null) => {
                    let list = Value::list([change.value.clone()]);
                    let size = list.size();
                    (Before::Value(slot.set(list)), size, 0)
                }
                Some(other) => {
                    let noun = other.noun();
                    return Err(format!("`{}` is {noun}, not a list to append to", shown()));
                }
            },
            Operation::Set => replace(&mut slot, change.value.clone()),
            Operation::Increment => {
                let now = match slot.as_ref() {
                    None | Some(Value::Null) => &Value::Int(0),
                    Some(now) => now,
                };
                let sum = match add(now, &change.value) {
                    Sum::Number(sum) => sum,
                    Sum::NoNumbers => {
                        return Err(format!(
                            "`{}` is {} and cannot be incremented by {}",
                            shown(),
                            now.noun(),
                            change.value.noun()
                        ));
                    }
                    Sum::TooLarge => {
                        return Err(format!(
                            "`{}` is {now} and cannot be incremented by {}: the sum is larger than \
                             a number can be",
                            shown(),
                            change.value
                        ));
                    }
                };
                replace(&mut slot, sum)
            }
            Operation::Merge => {
                let Value::Map(new) = &change.value else {
                    let noun = change.value.noun();
                    return Err(format!("`{}` cannot be merged with {noun}", shown()));
                };
                let mut merged = match slot.as_ref() {
                    None | Some(Value::Null) => IndexMap::new(),
                    Some(Value::Map(now)) => now.0.clone(),
                    Some(other) => {
                        let noun = other.noun();
                        return Err(format!("`{}` is {noun}, not a map to merge into", shown()));
                    }
                };
                merged.extend(
                    new.0
                        .iter()
                        .map(|(key, value)| (key.clone(), value.clone())),
                );
                replace(&mut slot, Value::Map(Arc::new(Map(merged))))
            }
        };
        self.bytes = (self.bytes + made_bytes + grown).saturating_sub(shrunk);
        Ok(match made {
            Some((depth, before)) => Written {
                tier,
                path: change.path[..=depth].to_vec(),
                before: Before::Value(before),
            },
            None => Written {
                tier,
                path: change.path.clone(),
                before,
            },
        })
    }

    fn take_back(&mut self, written: Written) {
        let tier = self.tier_mut(written.tier);
        let Ok(Found { mut slot, .. }) = slot(tier, &written.path) else {
            return;
        };
        match written.before {
            Before::Value(Some(value)) => {
                slot.set(value);
            }
            Before::Value(None) => slot.clear(),
            Before::Shorter => {
                if let Some(Value::List(list)) = slot.as_mut() {
                    Arc::make_mut(list).0.pop();
                }
            }
        }
    }
}

/// What comes of adding two values.
enum Sum {
    Number(Value),
    /// One of them is no number.
    NoNumbers,
    /// There is no number for it: whole ones have 64 bits, others are finite.
    TooLarge,
}

fn add(now: &Value, by: &Value) -> Sum {
    let sum = match (now, by) {
        (Value::Int(a), Value::Int(b)) => {
            return a
                .checked_add(*b)
                .map_or(Sum::TooLarge, |sum| Sum::Number(Value::Int(sum)));
        }
        (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) => *a as f64 + b,
        (Value::Float(a), Value::Float(b)) => a + b,
        _ => return Sum::NoNumbers,
    };
    match sum.is_finite() {
        true => Sum::Number(Value::number(sum)),
        false => Sum::TooLarge,
    }
}

/// A place in a tree of values, with its parent made if need be.
enum Slot<'a> {
    Entry(&'a mut IndexMap<Arc<str>, Value>, Arc<str>),
    Item(&'a mut List, usize),
}

impl Slot<'_> {
    fn as_ref(&self) -> Option<&Value> {
        match self {
            Slot::Entry(map, key) => map.get(key.as_ref()),
            Slot::Item(list, index) => list.0.get(*index),
        }
    }

    fn as_mut(&mut self) -> Option<&mut Value> {
        match self {
            Slot::Entry(map, key) => map.get_mut(key.as_ref()),
            Slot::Item(list, index) => list.0.get_mut(*index),
        }
    }

    fn set(&mut self, value: Value) -> Option<Value> {
        match self {
            Slot::Entry(map, key) => map.insert(key.clone(), value),
            Slot::Item(list, index) => match list.0.get_mut(*index) {
                Some(item) => Some(std::mem::replace(item, value)),
                None => {
                    list.0.push(value);
                    None
                }
            },
        }
    }

    fn clear(&mut self) {
        match self {
            Slot::Entry(map, key) => {
                map.shift_remove(key.as_ref());
            }
            Slot::Item(list, index) => list.0.truncate(*index),
        }
    }
}

/// Replaces what is in a slot, with the bytes that came and went.
fn replace(slot: &mut Slot<'_>, value: Value) -> (Before, u64, u64) {
    let grown = value.size();
    let before = slot.set(value);
    let shrunk = before.as_ref().map_or(0, Value::size);
    (Before::Value(before), grown, shrunk)
}

/// A slot that was looked for.
struct Found<'a> {
    slot: Slot<'a>,
    /// Bytes that making its parents added.
    bytes: u64,
    /// The depth of the first parent that was made, and what was there before.
    made: Option<(usize, Option<Value>)>,
}

fn slot<'a>(
    fields: &'a mut IndexMap<Arc<str>, Value>,
    path: &[String],
) -> Result<Found<'a>, String> {
    let Some((last, parents)) = path.split_last() else {
        return Err("a path needs at least one field".to_owned());
    };
    let mut bytes = 0;
    let mut made = None;
    let mut here = fields;
    for (depth, name) in parents.iter().enumerate() {
        let next = match here.entry(Arc::from(name.as_str())) {
            indexmap::map::Entry::Occupied(entry) => {
                let value = entry.into_mut();
                if *value == Value::Null {
                    *value = Value::Map(Arc::default());
                    made = made.or(Some((depth, Some(Value::Null))));
                }
                value
            }
            indexmap::map::Entry::Vacant(entry) => {
                bytes += name.len() as u64 + 6;
                made = made.or(Some((depth, None)));
                entry.insert(Value::Map(Arc::default()))
            }
        };
        match next {
            Value::Map(map) => here = &mut Arc::make_mut(map).0,
            Value::List(list) => {
                let (before, rest) = path.split_at(depth + 1);
                let slot = in_list(Arc::make_mut(list), rest, before)?;
                return Ok(Found { slot, bytes, made });
            }
            other => {
                let noun = other.noun();
                return Err(format!(
                    "`{}` is {noun} and has no fields",
                    path[..=depth].join(".")
                ));
            }
        }
    }
    if !here.contains_key(last.as_str()) {
        bytes += last.len() as u64 + 4;
    }
    let slot = Slot::Entry(here, Arc::from(last.as_str()));
    Ok(Found { slot, bytes, made })
}

/// The slot at a path that goes on inside a list.
fn in_list<'a>(list: &'a mut List, path: &[String], before: &[String]) -> Result<Slot<'a>, String> {
    let shown = before.join(".");
    let Some((first, rest)) = path.split_first() else {
        return Err(format!("`{shown}` is an array"));
    };
    let length = list.0.len();
    let index = first
        .parse()
        .ok()
        .filter(|index| *index < length || (*index == length && rest.is_empty()));
    let Some(index) = index else {
        return Err(format!(
            "`{shown}` is an array of {length} and has no `{first}`"
        ));
    };
    if rest.is_empty() {
        return Ok(Slot::Item(list, index));
    }
    match &mut list.0[index] {
        Value::Map(map) => slot(&mut Arc::make_mut(map).0, rest).map(|found| found.slot),
        Value::List(inner) => {
            let mut before = before.to_vec();
            before.push(first.clone());
            in_list(Arc::make_mut(inner), rest, &before)
        }
        other => Err(format!(
            "`{shown}.{first}` is {} and has no fields",
            other.noun()
        )),
    }
}
