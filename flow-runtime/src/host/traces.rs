//! How computed fields came about: the run's events once more, with somebody watching.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::driver::Driver;
use super::local::{Error, Host};
use super::recorded::Recorded;
use crate::journal::RunId;
use crate::run::{Observer, Run, Sizes, Transformation};
use crate::value::Value;

/// Traces that are kept of a run; earlier ones are counted only.
pub const MOST_TRACES: usize = 1_000;

/// One evaluation of a computed field's rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The field.
    pub field: String,
    /// The number of the event in the run that made it due.
    pub event: u64,
    /// When that was, in milliseconds since 1970.
    pub at: u64,
    /// The field whose change made it due; none at the start of the run.
    pub cause: Option<String>,
    /// The paths of `from` with what they were, in order.
    pub inputs: Vec<(String, Value)>,
    /// What the field was then, after `validate` and `on_error`.
    pub output: Option<Value>,
    /// Why its rule or its `validate` failed.
    pub error: Option<String>,
    /// How long it took in this replay. The journal holds no durations.
    pub duration: Duration,
}

/// How computed fields of a run came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traces {
    /// The latest evaluations, oldest first.
    pub traces: Vec<Trace>,
    /// Evaluations before these.
    pub left_out: u64,
    /// All evaluations by field, with the time they took together.
    pub fields: Vec<FieldTime>,
}

/// What a field's evaluations took together.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldTime {
    /// The field.
    pub field: String,
    /// Evaluations.
    pub count: u64,
    /// All of them together, in this replay.
    pub total: Duration,
}

struct Tracer<'f> {
    only: Option<&'f str>,
    event: u64,
    began: Option<Instant>,
    /// What those took that are not made yet, in their order.
    took: VecDeque<Duration>,
    traces: VecDeque<Trace>,
    left_out: u64,
    fields: indexmap::IndexMap<String, (u64, Duration)>,
}

impl Observer for Tracer<'_> {
    fn begins(&mut self, _field: &str) {
        self.began = Some(Instant::now());
    }

    fn evaluated(&mut self, _field: &str) {
        let took = self.began.take().map(|began| began.elapsed());
        self.took.push_back(took.unwrap_or_default());
    }

    fn ended(&mut self, transformation: Transformation<'_>) {
        let duration = self.took.pop_front().unwrap_or_default();
        let field = transformation.field;
        if self.only.is_some_and(|only| only != field.name) {
            return;
        }
        let time = self.fields.entry(field.name.to_string()).or_default();
        time.0 += 1;
        time.1 += duration;
        let paths = field.from.iter().map(|path| {
            let parts: Vec<&str> = path.path.iter().map(AsRef::as_ref).collect();
            parts.join(".")
        });
        let inputs = match (transformation.input, field.from_list) {
            (Value::List(values), true) => paths.zip(values.0.iter().cloned()).collect(),
            (value, _) => paths.map(|path| (path, value.clone())).collect(),
        };
        if self.traces.len() == MOST_TRACES {
            self.traces.pop_front();
            self.left_out += 1;
        }
        self.traces.push_back(Trace {
            field: field.name.to_string(),
            event: self.event,
            at: transformation.at,
            cause: transformation.cause.map(str::to_owned),
            inputs,
            output: transformation.output.cloned(),
            error: transformation.error.map(str::to_owned),
            duration,
        });
    }
}

impl Host {
    /// How much a run remembers of its state.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn sizes(&self, run: RunId) -> Result<Sizes, Error> {
        Ok(Driver::open(self.clone(), run)?.run.sizes())
    }

    /// How the computed fields of a run came about, or one of them: its events are applied once
    /// more, and watched. Nothing is recorded, and the run is not disturbed.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn traces(&self, run: RunId, field: Option<&str>) -> Result<Traces, Error> {
        let program = self.program(self.journal().run(run)?.definition)?;
        let mut replayed = Run::new(program);
        let mut tracer = Tracer {
            only: field,
            event: 0,
            began: None,
            took: VecDeque::new(),
            traces: VecDeque::new(),
            left_out: 0,
            fields: indexmap::IndexMap::new(),
        };
        let events = self.journal().events(run, 1.., usize::MAX)?;
        for recorded in Recorded::all(&events)? {
            tracer.event = recorded.seq;
            recorded.apply(&mut replayed, Some(&mut tracer))?;
        }
        let fields = tracer.fields.into_iter();
        let traces = Traces {
            traces: tracer.traces.into(),
            left_out: tracer.left_out,
            fields: fields
                .map(|(field, (count, total))| FieldTime {
                    field,
                    count,
                    total,
                })
                .collect(),
        };
        Ok(traces.masked())
    }
}
