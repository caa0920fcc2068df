//! A workflow ready to run.

use std::borrow::Cow;

use flow_model::graph::Graph;

use super::computed::Dependents;
use super::origin::Origins;
use super::pattern::Patterns;
use super::state::Bounds;
use super::table::Tables;
use super::track::Tracks;
use super::typed::Types;
use super::view::Evaluator;

/// A workflow ready to run: its graph, and what is made from it once.
pub struct Program {
    pub(super) graph: Cow<'static, Graph>,
    pub(super) dependents: Dependents,
    pub(super) patterns: Patterns,
    pub(super) tables: Tables,
    pub(super) tracks: Tracks,
    pub(super) types: Types,
    pub(super) origins: Origins,
    pub(super) evaluator: Box<dyn Evaluator>,
}

impl Program {
    /// A program of a graph.
    pub fn new(graph: impl Into<Cow<'static, Graph>>, evaluator: Box<dyn Evaluator>) -> Self {
        let graph = graph.into();
        Program {
            dependents: Dependents::of(&graph),
            patterns: Patterns::default(),
            tables: Tables::new(&graph),
            tracks: Tracks::of(&graph),
            types: Types::of(&graph),
            origins: Origins::default(),
            graph,
            evaluator,
        }
    }

    /// What writes to its state keep to.
    pub(super) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            max_bytes: self.graph.limits.max_state_bytes,
            types: &self.types,
        }
    }

    /// Its graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("graph", &self.graph.name)
            .finish_non_exhaustive()
    }
}
