//! Which state fields are made from which.

use std::collections::BTreeSet;

use super::{Dependency, Graph, Node, Tier};

/// What a state field is made from, and what is made from it. Names have their tier before them, as
/// in `raw.files`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The field itself.
    pub field: String,
    /// What it is made from, as its rule says.
    pub direct: Vec<String>,
    /// The same, with what those are made from in turn.
    pub all: Vec<String>,
    /// The computed fields that change with it, at once or in turn, in the order they do.
    pub dependents: Vec<String>,
}

impl Graph {
    /// What a state field is made from, and what is made from it. The tier may be left out. `None`
    /// for a field that the definition neither declares nor reads.
    #[must_use]
    pub fn dependencies(&self, field: &str) -> Option<Dependencies> {
        let path: Vec<&str> = field.split('.').collect();
        let name = match path.as_slice() {
            ["raw" | "computed" | "state", name, ..] => *name,
            [name, ..] => *name,
            [] => return None,
        };
        let mut found = Dependencies {
            field: self.with_tier(None, &[name]),
            ..Dependencies::default()
        };
        let computed = self.computed.iter().find(|field| field.name == name);
        if let Some(computed) = computed {
            for path in computed.from.iter().chain(computed.reads.iter()) {
                add(&mut found.direct, self.name_of(path));
            }
            self.made_from(name, &mut BTreeSet::new(), &mut found.all);
        }
        // Computed fields stand in dependency order: one look suffices.
        let mut changed = vec![name];
        for field in self.computed.iter() {
            let mut reads = field.from.iter().chain(field.reads.iter());
            let follows = reads.any(|read| {
                let first = read.path.first();
                first.is_some_and(|first| changed.contains(&first.as_ref()))
            });
            if follows {
                changed.push(&field.name);
                found.dependents.push(format!("computed.{}", field.name));
            }
        }
        let is_known = computed.is_some()
            || !found.dependents.is_empty()
            || self.state.iter().any(|initial| initial.name == name)
            || self.writes(name);
        is_known.then_some(found)
    }

    fn made_from(&self, name: &str, seen: &mut BTreeSet<String>, all: &mut Vec<String>) {
        let Some(field) = self.computed.iter().find(|field| field.name == name) else {
            return;
        };
        if !seen.insert(name.to_owned()) {
            return;
        }
        for path in field.from.iter().chain(field.reads.iter()) {
            add(all, self.name_of(path));
            if let Some(first) = path.path.first() {
                self.made_from(first, seen, all);
            }
        }
    }

    fn name_of(&self, path: &Dependency) -> String {
        let parts: Vec<&str> = path.path.iter().map(AsRef::as_ref).collect();
        self.with_tier(path.tier, &parts)
    }

    fn with_tier(&self, tier: Option<Tier>, path: &[&str]) -> String {
        let name = path.first().copied().unwrap_or_default();
        let tier = tier.unwrap_or_else(|| {
            if self.computed.iter().any(|field| field.name == name) {
                return Tier::Computed;
            }
            let initial = self.state.iter().find(|initial| initial.name == name);
            initial.map_or(Tier::Raw, |initial| initial.tier)
        });
        let word = match tier {
            Tier::Raw => "raw",
            Tier::Computed => "computed",
            Tier::State => "state",
        };
        format!("{word}.{}", path.join("."))
    }

    /// Every node, wherever it stands: in the workflow, in its tasks, and in what is done when they
    /// fail.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let tasks = self.tasks.iter().flat_map(|task| {
            let cleanup = task.on_error.iter().map(|on_error| &on_error.body);
            std::iter::once(&task.body).chain(cleanup)
        });
        let bodies = [&self.body, &self.on_error.body].into_iter().chain(tasks);
        bodies.flat_map(|body| body.nodes.iter())
    }

    /// Whether some step writes a field.
    fn writes(&self, name: &str) -> bool {
        let tasks = self.tasks.iter().filter(|task| task.shares_state);
        let bodies = [&self.body, &self.on_error.body];
        let bodies = bodies.into_iter().chain(tasks.map(|task| &task.body));
        let mut nodes = bodies.flat_map(|body| body.nodes.iter());
        nodes.any(|node| {
            let mut writes = node.writes.iter().chain(node.error_writes.iter());
            writes.any(|write| match write.path.segments.first() {
                Some(super::Template::Literal(super::Literal::Str(first))) => first == name,
                _ => false,
            })
        })
    }
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use crate::compile;
    use crate::loader::NoLoader;
    use crate::source::Source;

    #[test]
    fn dependencies_are_followed_in_both_directions() -> Result<(), String> {
        let definition = "
state: {files: [], limit: 3}
computed:
  kept: {from: raw.files, transform: 'input.filter(f => f)'}
  batches: {from: kept, transform: 'input.slice(0, limit)'}
  first: {from: [batches, raw.files], transform: 'input[0][0]'}
steps:
  - {type: prompt, message: '{{ state.first }}'}
";
        let compiled = compile(Source::new("test.yaml", definition), &NoLoader);
        let findings = format!("{:?}", compiled.findings);
        let graph = compiled.into_graph().ok_or(findings)?;
        let first = graph.dependencies("first").ok_or("first is a field")?;
        assert_eq!(first.direct, ["computed.batches", "raw.files"]);
        assert_eq!(
            first.all,
            [
                "computed.batches",
                "computed.kept",
                "raw.files",
                "raw.limit"
            ]
        );
        assert!(first.dependents.is_empty());
        let files = graph.dependencies("raw.files").ok_or("files is a field")?;
        assert!(files.all.is_empty());
        assert_eq!(
            files.dependents,
            ["computed.kept", "computed.batches", "computed.first"]
        );
        assert_eq!(graph.dependencies("nothing"), None);
        Ok(())
    }
}
