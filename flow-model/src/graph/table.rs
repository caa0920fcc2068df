//! Where every outcome of every node leads, by number.

use super::{Body, Outcome, Target};

/// One for each outcome; [`Outcome::Edge`] is looked up in its node, and its column is empty.
const COLUMNS: usize = Outcome::PLAIN.len() + 1;

/// The edges of a body that depend on the outcome alone, so that a transition is one look-up by two
/// numbers.
///
/// ```
/// use flow_model::graph::{Body, Outcome, Table};
///
/// let table = Table::of(&Body::EMPTY);
/// assert_eq!(table.next(0, Outcome::Success), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By outcome, then by node: which column it is does not wait for the node.
    columns: [Box<[Option<Target>]>; COLUMNS],
}

/// In the order of the variants, which makes it a number to read and nothing to decide.
const fn column(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Success => 0,
        Outcome::Failure => 1,
        Outcome::Timeout => 2,
        Outcome::Skip => 3,
        Outcome::Then => 4,
        Outcome::Else => 5,
        Outcome::Body => 6,
        Outcome::Done => 7,
        Outcome::Edge(_) => 8,
    }
}

impl Table {
    /// The table of a body.
    #[must_use]
    pub fn of(body: &Body) -> Self {
        let mut table = Table::default();
        for outcome in Outcome::PLAIN {
            let targets = || body.nodes.iter().map(|node| node.next(outcome));
            // Nothing is kept for an outcome that leads nowhere.
            if targets().any(|target| target.is_some()) {
                table.columns[column(outcome)] = targets().collect();
            }
        }
        table
    }

    /// Where an outcome of a node leads, as [`super::Node::next`] says; nowhere for
    /// [`Outcome::Edge`].
    #[must_use]
    #[inline]
    pub fn next(&self, node: u16, outcome: Outcome) -> Option<Target> {
        let column = &self.columns[column(outcome)];
        *column.get(usize::from(node))?
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Table};
    use crate::compile;
    use crate::graph::Graph;
    use crate::loader::NoLoader;
    use crate::source::Source;

    #[test]
    fn the_table_says_what_the_nodes_say() {
        let definition = "state: {n: 0}
steps:
  - id: again
    type: while
    if: '{{ state.n < 3 }}'
    steps:
      - {type: condition, if: '{{ state.n == 1 }}', then: [{type: break}], else: [{type: continue}]}
      - {id: set, type: set_state, when: '{{ state.n }}', updates: {n: 1}, on_error: continue}
  - {type: shell, command: make, on_error: {goto: again}}
";
        let graph: Option<Graph> =
            compile(Source::new("test.yaml", definition), &NoLoader).into_graph();
        let body = graph.map(|graph| graph.body).unwrap_or_else(|| panic!());
        let table = Table::of(&body);
        for (index, node) in body.nodes.iter().enumerate() {
            for outcome in Outcome::PLAIN {
                let index = u16::try_from(index).unwrap_or(u16::MAX);
                assert_eq!(
                    table.next(index, outcome),
                    node.next(outcome),
                    "{}",
                    node.id
                );
            }
        }
    }
}
