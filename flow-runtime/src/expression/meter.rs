//! What one evaluation has used up, and what it draws from.
//!
//! Filters are called without a way to hand them anything, so the evaluation under way is known
//! to its thread. [`Meter::start`] begins one; dropping the guard ends it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time;

use super::clock::{self, Civil};
use super::error::{EvalError, Limit};
use super::scope::{Context, Instant, Plan, Variable};
use crate::value::Value;

/// Bytes an evaluation may produce, all strings and list members together. Half of the 64 MiB it
/// may take, because a string is copied while it grows.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// Units of work an evaluation may do. A unit is an instruction in a loop, a member that is
/// visited, or a few bytes that are read.
const MOST_WORK: u64 = 5_000_000;
/// Work after which the clock is looked at.
const LOOK_EVERY: u64 = 100_000;
/// How long an evaluation may take by the clock. Unoptimised tests on a busy machine are slow, and
/// there too what is counted has to decide.
const LONGEST: time::Duration = time::Duration::from_secs(if cfg!(test) { 300 } else { 5 });

/// How the clock decides on this thread.
enum Clock {
    /// By itself; nobody keeps what it decides.
    Free,
    /// By itself, keeping the seeds of the evaluations that it ended.
    Judging {
        longest: time::Duration,
        late: Vec<u64>,
    },
    /// As it once did: it ended these.
    Judged(Vec<u64>),
}

thread_local! {
    static CLOCK: RefCell<Clock> = const { RefCell::new(Clock::Free) };
    static METER: Meter = const { Meter::idle() };
}

/// The evaluation under way.
pub(super) struct Meter {
    bytes: Cell<u64>,
    work: Cell<u64>,
    looked: Cell<u64>,
    exceeded: Cell<Option<Limit>>,
    since: Cell<Option<time::Instant>>,
    at_millis: Cell<i64>,
    seed: Cell<u64>,
    draws: Cell<u64>,
    variables: RefCell<Vec<(Arc<str>, Variable)>>,
    refused: RefCell<Option<EvalError>>,
}

/// Ends the evaluation and gives back how much was drawn.
pub(super) struct Running<'a> {
    instant: &'a Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        METER.with(|meter| self.instant.set_draws(meter.draws.get()));
    }
}

impl Meter {
    const fn idle() -> Self {
        Meter {
            bytes: Cell::new(0),
            work: Cell::new(0),
            looked: Cell::new(0),
            exceeded: Cell::new(None),
            since: Cell::new(None),
            at_millis: Cell::new(0),
            seed: Cell::new(0),
            draws: Cell::new(0),
            variables: RefCell::new(Vec::new()),
            refused: RefCell::new(None),
        }
    }

    /// Begins an evaluation on this thread.
    pub(super) fn start<'a>(instant: &'a Instant) -> Running<'a> {
        Meter::again(instant);
        Running { instant }
    }

    /// Begins the next of several evaluations that draw from the same moment.
    pub(super) fn again(instant: &Instant) {
        METER.with(|meter| {
            meter.bytes.set(0);
            meter.work.set(0);
            meter.looked.set(0);
            meter.exceeded.set(None);
            meter.since.set(None);
            meter.at_millis.set(instant.at_millis);
            meter.seed.set(instant.seed);
            meter.draws.set(instant.draws());
            meter.refused.take();
        });
    }

    /// Makes the variables that a text reads known to `variable(…)`.
    pub(super) fn prepare(plan: &Plan, context: &Context<'_>) {
        if plan.variables.is_empty() {
            return;
        }
        let known = plan.variables.iter().map(|name| {
            let variable = context.scope.variable(name);
            (name.clone(), variable)
        });
        let known = known.collect();
        METER.with(|meter| *meter.variables.borrow_mut() = known);
    }
}

/// Evaluates with a clock, and says which evaluations it ended, by their seeds.
///
/// The clock is the only bound that depends on the machine. Whoever keeps what it decided can
/// evaluate the same again with [`as_judged`], however fast that machine is.
pub fn judged<T>(longest: time::Duration, evaluate: impl FnOnce() -> T) -> (T, Vec<u64>) {
    let late = Vec::new();
    let before = CLOCK.replace(Clock::Judging { longest, late });
    let value = evaluate();
    match CLOCK.replace(before) {
        Clock::Judging { late, .. } => (value, late),
        Clock::Free | Clock::Judged(_) => (value, Vec::new()),
    }
}

/// Evaluates without a clock, ending the evaluations that it once ended.
pub fn as_judged<T>(late: &[u64], evaluate: impl FnOnce() -> T) -> T {
    let before = CLOCK.replace(Clock::Judged(late.to_vec()));
    let value = evaluate();
    CLOCK.set(before);
    value
}

/// Whether an evaluation that began then has to end.
pub(super) fn is_late(since: time::Instant) -> bool {
    let taken = since.elapsed();
    CLOCK.with_borrow_mut(|clock| match clock {
        Clock::Free => taken > LONGEST,
        Clock::Judged(_) => false,
        Clock::Judging { longest, late } => {
            let is_late = taken > *longest;
            if is_late {
                let seed = METER.with(|meter| meter.seed.get());
                if !late.contains(&seed) {
                    late.push(seed);
                }
            }
            is_late
        }
    })
}

/// An error when the clock has ended this evaluation before.
pub(super) fn decided() -> Result<(), EvalError> {
    let seed = METER.with(|meter| meter.seed.get());
    let is_late = CLOCK.with_borrow(|clock| match clock {
        Clock::Judged(late) => late.contains(&seed),
        Clock::Free | Clock::Judging { .. } => false,
    });
    match is_late {
        true => Err(EvalError::limit(Limit::Time)),
        false => Ok(()),
    }
}

/// Counts bytes that are about to be produced.
pub(super) fn produce(bytes: u64) -> Result<(), EvalError> {
    METER.with(|meter| {
        let sum = meter.bytes.get().saturating_add(bytes);
        meter.bytes.set(sum);
        if sum > MOST_BYTES {
            return Err(EvalError::limit(Limit::Size));
        }
        Ok(())
    })
}

/// Counts work that is about to be done.
pub(super) fn work(units: u64) -> Result<(), EvalError> {
    METER.with(|meter| {
        let sum = meter.work.get().saturating_add(units);
        meter.work.set(sum);
        if sum > MOST_WORK {
            return Err(EvalError::limit(Limit::Fuel));
        }
        if sum - meter.looked.get() > LOOK_EVERY {
            meter.looked.set(sum);
            let since = meter.since.get().unwrap_or_else(time::Instant::now);
            meter.since.set(Some(since));
            if is_late(since) {
                return Err(EvalError::limit(Limit::Time));
            }
        }
        Ok(())
    })
}

/// The moment of the event.
pub(super) fn now() -> Civil {
    Civil::new(at_millis())
}

/// The moment of the event in milliseconds.
pub(super) fn at_millis() -> i64 {
    METER.with(|meter| meter.at_millis.get())
}

fn draw() -> u64 {
    METER.with(|meter| {
        let n = meter.draws.get();
        meter.draws.set(n + 1);
        clock::draw(meter.seed.get(), n)
    })
}

/// A number from 0 to 1, 1 not included.
pub(super) fn random() -> f64 {
    (draw() >> 11) as f64 / (1u64 << 53) as f64
}

/// A fresh identifier.
pub(super) fn uuid() -> String {
    clock::uuid(draw(), draw())
}

/// What `variable(name)` gives; nothing when the name is no variable at all.
pub(super) fn variable(name: &str) -> Result<Option<Value>, EvalError> {
    let found = METER.with(|meter| {
        let known = meter.variables.borrow();
        let found = known.iter().find(|(known, _)| **known == *name);
        found.map(|(_, variable)| variable.clone())
    });
    match found {
        Some(Variable::Set(value)) => Ok(Some(value)),
        Some(Variable::Unset) => Err(EvalError::unset(name)),
        Some(Variable::Unknown) => Ok(None),
        None => Err(EvalError::wrong_type(
            "`variable(…)` needs the name of a variable, written as a string",
        )),
    }
}

/// How much an evaluation has used.
pub(super) struct Mark {
    bytes: u64,
    work: u64,
    draws: u64,
}

/// How much has been used until here.
pub(super) fn mark() -> Mark {
    METER.with(|meter| Mark {
        bytes: meter.bytes.get(),
        work: meter.work.get(),
        draws: meter.draws.get(),
    })
}

/// Goes on from an earlier point, as if nothing had happened since.
pub(super) fn reset(mark: Mark) {
    METER.with(|meter| {
        meter.bytes.set(mark.bytes);
        meter.work.set(mark.work);
        meter.looked.set(mark.work);
        meter.draws.set(mark.draws);
        meter.exceeded.set(None);
    });
}

/// Remembers a bound that was reached where it could not end the evaluation.
pub(super) fn exceed(limit: Option<Limit>) {
    METER.with(|meter| meter.exceeded.set(limit));
}

/// Remembers that something was read that may not be.
pub(super) fn refuse(error: EvalError) {
    METER.with(|meter| *meter.refused.borrow_mut() = Some(error));
}

/// What was read that may not be.
pub(super) fn refused() -> Option<EvalError> {
    METER.with(|meter| meter.refused.take())
}

/// The bound that was reached.
pub(super) fn exceeded() -> Option<Limit> {
    METER.with(|meter| meter.exceeded.get())
}
