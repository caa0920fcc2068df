//! Watching a run make its computed fields. Nothing of it is recorded: whoever wants to know
//! replays the run's events and watches.

use flow_model::graph::Computed;

use crate::value::Value;

/// Is told of each rule of a computed field as it is evaluated. The run has no clock; an observer
/// that wants to know how long a rule takes has its own.
pub trait Observer {
    /// The rule of a field is about to be evaluated.
    fn begins(&mut self, field: &str);

    /// It has been.
    fn ended(&mut self, transformation: Transformation<'_>);
}

/// One evaluation of a computed field's rule.
#[derive(Clone, Copy, Debug)]
pub struct Transformation<'a> {
    /// The time of the event it belongs to, in milliseconds since 1970.
    pub at: u64,
    /// The field.
    pub field: &'a Computed,
    /// The field whose change made this one due; none at the start of a run.
    pub cause: Option<&'a str>,
    /// What the rule was handed.
    pub input: &'a Value,
    /// What it gave, or why it failed. `validate` and `on_error` come after this.
    pub output: Result<&'a Value, &'a str>,
}
