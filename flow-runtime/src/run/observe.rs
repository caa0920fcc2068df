//! Watching a run make its computed fields. Nothing of it is recorded: whoever wants to know
//! replays the run's events and watches.

use flow_model::graph::Computed;

use crate::value::Value;

/// Is told of each rule of a computed field as it is evaluated. The run has no clock; an observer
/// that wants to know how long a rule takes has its own.
pub trait Observer {
    /// The rule of a field is about to be evaluated.
    fn begins(&mut self, field: &str);

    /// It has been evaluated; what becomes of the field is decided when all of its pass are.
    fn evaluated(&mut self, field: &str);

    /// The field has been made.
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
    /// What the field is now, after `validate` and `on_error`.
    pub output: Option<&'a Value>,
    /// Why its rule or its `validate` failed.
    pub error: Option<&'a str>,
}
