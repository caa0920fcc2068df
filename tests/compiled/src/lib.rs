//! Every definition of the repository as compiled code. Its tests hold that code against the graph
//! that is interpreted.
#![deny(warnings, missing_docs)]

use flow::Outcome;
use flow::graph::{Body, Graph, Task};

#[cfg(test)]
#[allow(dead_code, reason = "the build script makes the definitions")]
mod random;
#[cfg(test)]
mod tests;

/// A definition that was compiled.
#[derive(Debug)]
pub struct Case {
    /// Its file.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// The graph in the program.
    pub graph: &'static Graph,
    /// The states of each of its bodies.
    pub machines: &'static [Machine],
}

/// The states of one body.
#[derive(Debug)]
pub struct Machine {
    /// Finds the body in a graph.
    pub body: fn(&Graph) -> Option<&Body>,
    /// How many states there are.
    pub states: usize,
    /// Where it starts.
    pub initial: usize,
    /// The names of the states.
    pub name: fn(usize) -> &'static str,
    /// The state of a name.
    pub from_name: fn(&str) -> Option<usize>,
    /// The state that follows.
    pub next: fn(usize, Outcome) -> Option<usize>,
    /// Whether the end is reached.
    pub completes: fn(usize, Outcome) -> bool,
    /// Whether it may be the last one.
    pub is_final: fn(usize) -> bool,
}

/// A task of a graph.
fn task(graph: &Graph, index: usize) -> Option<&Task> {
    graph.tasks.get(index)
}

/// The [`Machine`] of a generated module.
macro_rules! machine {
    ($($module:ident)::+, $body:expr) => {
        $crate::Machine {
            body: $body,
            states: $($module)::+::State::ALL.len(),
            initial: $($module)::+::State::INITIAL as usize,
            name: |state| $($module)::+::State::ALL[state].name(),
            from_name: |name| $($module)::+::State::from_name(name).map(|state| state as usize),
            next: |state, outcome| {
                $($module)::+::State::ALL[state].next(outcome).map(|state| state as usize)
            },
            completes: |state, outcome| $($module)::+::State::ALL[state].completes(outcome),
            is_final: |state| $($module)::+::State::ALL[state].is_final(),
        }
    };
}
pub(crate) use machine;

include!(concat!(env!("OUT_DIR"), "/all.rs"));

/// Programs of the documentation: that they are here says that they compile.
#[cfg(test)]
#[allow(dead_code, missing_docs, reason = "they are programs of pages")]
mod pages {
    mod readme {
        include!(concat!(env!("OUT_DIR"), "/release.rs"));
    }
    mod embedding {
        include!(concat!(env!("OUT_DIR"), "/deploy.rs"));
    }
}
