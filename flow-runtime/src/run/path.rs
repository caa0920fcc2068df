//! Places in the state as somebody outside names them: `raw.count`, `files[0].name`, `inputs.who`.

use flow_model::graph::{Graph, Tier};

use super::data::Data;
use super::event::Update;
use super::refusal::Refusal;
use super::state::{Change, within};
use super::view::{Field, View};
use super::{Run, Status};
use crate::value::Value;

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// The flattened view; nothing was said.
    View,
    /// One tier.
    Tier(Tier),
    /// What the run was given.
    Inputs,
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    name: String,
    /// Written in brackets as a number, so that it can only be an item of a list.
    is_index: bool,
}

/// A path that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    root: Root,
    parts: Vec<Part>,
}

impl Place {
    /// Reads a path; `None` for what is none.
    fn read(path: &str) -> Option<Place> {
        let mut parts = Vec::new();
        let mut rest = path;
        loop {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, mut after) = rest.split_at(end);
            if name.trim().is_empty() || name.contains(']') {
                return None;
            }
            parts.push(Part {
                name: name.to_owned(),
                is_index: false,
            });
            while let Some(inner) = after.strip_prefix('[') {
                let (part, beyond) = bracketed(inner)?;
                parts.push(part);
                after = beyond;
            }
            match after.strip_prefix('.') {
                Some(beyond) => rest = beyond,
                None if after.is_empty() => break,
                None => return None,
            }
        }
        let root = match parts[0].name.as_str() {
            "raw" => Some(Root::Tier(Tier::Raw)),
            "state" => Some(Root::Tier(Tier::State)),
            "computed" => Some(Root::Tier(Tier::Computed)),
            "this" => Some(Root::View),
            "inputs" => Some(Root::Inputs),
            _ => None,
        };
        if root.is_some() {
            parts.remove(0);
        }
        Some(Place {
            root: root.unwrap_or(Root::View),
            parts,
        })
    }
}

/// A part as a path has it after others, so that it is read as this one part.
pub(super) fn after_others(name: &str) -> String {
    let is_plain = !name.trim().is_empty() && !name.contains(['.', '[', ']']);
    match (is_plain, name.contains('"')) {
        (true, _) => format!(".{name}"),
        (false, false) => format!("[\"{name}\"]"),
        (false, true) => format!("['{name}']"),
    }
}

/// What stands in brackets, and what follows them.
fn bracketed(inner: &str) -> Option<(Part, &str)> {
    for quote in ['"', '\''] {
        if let Some(quoted) = inner.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            let part = Part {
                name: name.to_owned(),
                is_index: false,
            };
            let after = after.strip_prefix(']')?;
            return (!name.trim().is_empty()).then_some((part, after));
        }
    }
    let (index, after) = inner.split_once(']')?;
    let index: usize = index.trim().parse().ok()?;
    let part = Part {
        name: index.to_string(),
        is_index: true,
    };
    Some((part, after))
}

impl Run {
    /// The value at a path, as somebody outside names it: of one tier (`raw.count`), of the inputs
    /// (`inputs.who`), or of the flattened view. `None` where nothing is set.
    #[must_use]
    pub fn value_at(&self, path: &str) -> Option<Value> {
        let data = self.data()?;
        let place = Place::read(path)?;
        let Some((first, rest)) = place.parts.split_first() else {
            return Some(match place.root {
                Root::View | Root::Tier(Tier::State) => self.flattened(),
                Root::Tier(Tier::Computed) => self.derived(),
                Root::Tier(Tier::Raw) => {
                    let fields = data.store.raw.iter();
                    Value::map(fields.map(|(name, value)| (name.as_ref(), value.clone())))
                }
                Root::Inputs => data.start.inputs.clone(),
            });
        };
        let (graph, dependents) = (self.program().graph(), &self.program().dependents);
        let view = View::of_state(graph, dependents, data, 0, 0);
        let field = match place.root {
            // As in expressions, `state.x` is read from the view.
            Root::View | Root::Tier(Tier::State) => view.field(None, &first.name),
            Root::Tier(tier) => view.field(Some(tier), &first.name),
            Root::Inputs => match data.start.inputs.get(&first.name) {
                Some(value) => Field::Value(value.clone()),
                None => Field::Unset,
            },
        };
        match field {
            Field::Value(value) => {
                within(&value, rest.iter().map(|part| part.name.as_str())).cloned()
            }
            Field::Unset | Field::Failed(_) | Field::Hidden => None,
        }
    }
}

/// Whether the state of a run may be changed from outside.
pub(super) fn may_be_changed(data: &Data) -> Result<(), Refusal> {
    match data.status {
        Status::Running => Ok(()),
        // Whoever resumes it goes on with the state that it has.
        Status::Failed if data.steps > 0 => Ok(()),
        Status::Failed => Err(Refusal::State(
            "the run failed before its first step, and makes its state anew when it is resumed; \
             start it again with other inputs instead"
                .to_owned(),
        )),
        Status::Completed => Err(Refusal::Over("completed")),
        Status::Cancelled => Err(Refusal::Over("was cancelled")),
    }
}

/// Changes that somebody outside wants. As in a step, a name alone means the computed field where
/// there is one, and a tier before it means that tier.
pub(super) fn changes(
    graph: &Graph,
    data: &Data,
    updates: &[Update],
) -> Result<Vec<Change>, Refusal> {
    let mut changes: Vec<Change> = Vec::with_capacity(updates.len());
    for update in updates {
        let written = &update.path;
        let refused = |reason: String| Err(Refusal::State(reason));
        let Some(Place { root, parts }) = Place::read(written) else {
            return refused(format!(
                "`{written}` is not a state path: write a field, or fields joined by dots, such as \
                 `results.first`"
            ));
        };
        if root == Root::Inputs {
            return refused(format!(
                "`{written}` is an input of the run, and inputs are read-only; a field of the \
                 state that has this name is `raw.{written}`"
            ));
        }
        let Some(field) = parts.first().map(|part| part.name.as_str()) else {
            return refused(format!(
                "`{written}` is all of the state, not a field of it: write a field, such as \
                 `{written}.count`"
            ));
        };
        let is_own = graph.computed.iter().any(|computed| computed.name == field);
        let is_computed = match root {
            Root::Tier(tier) => tier == Tier::Computed,
            Root::View | Root::Inputs => is_own,
        };
        if is_computed || (!is_own && data.is_included(field)) {
            return refused(format!(
                "`{field}` is computed and cannot be written: write the fields it is made from; it follows"
            ));
        }
        let tier = match root {
            Root::Tier(tier) => tier,
            Root::View | Root::Inputs => Tier::Raw,
        };
        let is_new = changes.iter().all(|change| change.path[0] != field);
        if let (true, Some(at)) = (is_new, parts.iter().position(|part| part.is_index)) {
            let around = parts[..at].iter().map(|part| part.name.as_str());
            let value = data.store.get(data.store.home(tier, field), field);
            let list = value.and_then(|value| within(value, around.skip(1)));
            if list.and_then(Value::as_list).is_none() {
                let around: Vec<&str> = parts[..at].iter().map(|it| it.name.as_str()).collect();
                return refused(format!(
                    "`{written}` is an item of `{around}`, which is {}: set `{around}` to a list first",
                    list.map_or("not set", Value::noun),
                    around = around.join(".")
                ));
            }
        }
        changes.push(Change {
            tier,
            path: parts.into_iter().map(|part| part.name).collect(),
            operation: update.operation,
            value: update.value.clone(),
        });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<(Root, Vec<String>)> {
        let place = Place::read(path)?;
        let parts = place.parts.into_iter();
        let parts = parts.map(|part| match part.is_index {
            true => format!("[{}]", part.name),
            false => part.name,
        });
        Some((place.root, parts.collect()))
    }

    #[test]
    fn paths_name_fields_items_and_where_they_begin() {
        let parts = |parts: &[&str]| parts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (path, root, expected) in [
            ("a", Root::View, &["a"] as &[&str]),
            ("this.a.b", Root::View, &["a", "b"]),
            ("raw.a", Root::Tier(Tier::Raw), &["a"]),
            ("raw", Root::Tier(Tier::Raw), &[]),
            ("state.a.0", Root::Tier(Tier::State), &["a", "0"]),
            ("computed.a", Root::Tier(Tier::Computed), &["a"]),
            ("inputs.a", Root::Inputs, &["a"]),
            ("a[0][ 12 ].b", Root::View, &["a", "[0]", "[12]", "b"]),
            ("a[\"b.c\"]['d[']", Root::View, &["a", "b.c", "d["]),
        ] {
            assert_eq!(read(path), Some((root, parts(expected))), "{path}");
        }
        for path in [
            "", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[-1]", "a[0]b", "[0]", "a]",
            "a['b]", "by. ",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }
}
