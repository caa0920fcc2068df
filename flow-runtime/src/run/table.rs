//! The transitions of every body of a graph, by number.

use flow_model::graph::{Graph, Table};

use super::frame::BodyRef;

#[derive(Debug)]
pub(super) struct Tables {
    main: Table,
    on_error: Table,
    /// Tasks with their failure steps.
    tasks: Vec<(Table, Option<Table>)>,
}

impl Tables {
    pub(super) fn new(graph: &Graph) -> Self {
        let tasks = graph.tasks.iter().map(|task| {
            let cleanup = task.on_error.as_ref();
            let cleanup = cleanup.map(|on_error| Table::of(&on_error.body));
            (Table::of(&task.body), cleanup)
        });
        Tables {
            main: Table::of(&graph.body),
            on_error: Table::of(&graph.on_error.body),
            tasks: tasks.collect(),
        }
    }

    pub(super) fn of(&self, body: BodyRef) -> Option<&Table> {
        match body {
            BodyRef::Main => Some(&self.main),
            BodyRef::OnError => Some(&self.on_error),
            BodyRef::Task(task) => self.tasks.get(usize::from(task)).map(|(steps, _)| steps),
            BodyRef::Cleanup(task) => self.tasks.get(usize::from(task))?.1.as_ref(),
        }
    }
}
