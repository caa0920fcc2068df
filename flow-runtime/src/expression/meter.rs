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

/// What is done may take so long by the clock. A host takes these from its options.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// One evaluation.
    pub one: time::Duration,
    /// All evaluations because of one event.
    pub all: time::Duration,
    /// Steps, before the run gives way to others.
    pub stretch: time::Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            one: time::Duration::from_secs(5),
            all: time::Duration::from_secs(10),
            stretch: time::Duration::from_millis(250),
        }
    }
}

/// What the clock has decided while an event was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// The evaluations that it ended, by their seeds.
    pub late: Vec<u64>,
    /// Which time of being asked, counted from one, it said that the run is to give way.
    pub gave_way: Option<u64>,
}

impl Decided {
    /// Whether it has decided nothing: all was done in time.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.late.is_empty() && self.gave_way.is_none()
    }
}

/// How the clock decides on this thread.
enum Clock {
    /// By itself; nobody keeps what it decides.
    Free,
    /// By itself, keeping what it decides.
    Judging {
        patience: Patience,
        since: time::Instant,
        /// What this thread had computed by then.
        worked: time::Duration,
        asked: u64,
        decided: Decided,
    },
    /// As it once did.
    Judged { asked: u64, decided: Decided },
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

/// Applies an event with a clock, and says what that decided.
///
/// The clock is the only bound that depends on the machine. Whoever keeps what it decided can
/// apply the same again with [`as_judged`], however fast that machine is.
pub fn judged<T>(patience: Patience, apply: impl FnOnce() -> T) -> (T, Decided) {
    let before = CLOCK.replace(Clock::Judging {
        patience,
        since: time::Instant::now(),
        worked: worked(),
        asked: 0,
        decided: Decided::default(),
    });
    let value = apply();
    match CLOCK.replace(before) {
        Clock::Judging { decided, .. } => (value, decided),
        Clock::Free | Clock::Judged { .. } => (value, Decided::default()),
    }
}

/// Applies an event without a clock, deciding what that once decided.
pub fn as_judged<T>(decided: &Decided, apply: impl FnOnce() -> T) -> T {
    let decided = decided.clone();
    let before = CLOCK.replace(Clock::Judged { asked: 0, decided });
    let value = apply();
    CLOCK.set(before);
    value
}

/// How long this thread has computed.
fn worked() -> time::Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time::Duration::try_from(spent).unwrap_or_default()
}

/// Whether the steps of this event have taken so long that the run gives way to others. Once it
/// has said so, it says so until the next event.
pub(crate) fn gives_way() -> bool {
    CLOCK.with_borrow_mut(|clock| match clock {
        Clock::Free => false,
        Clock::Judged { asked, decided } => {
            *asked += 1;
            decided.gave_way.is_some_and(|at| at <= *asked)
        }
        Clock::Judging {
            patience,
            since,
            worked: before,
            asked,
            decided,
        } => {
            *asked += 1;
            // A machine that stands still keeps nobody waiting by these steps. What was computed is
            // the dearer one to ask.
            let is_long = decided.gave_way.is_none()
                && since.elapsed() >= patience.stretch
                && worked().saturating_sub(*before) >= patience.stretch;
            if is_long {
                decided.gave_way = Some(*asked);
            }
            decided.gave_way.is_some()
        }
    })
}

/// Whether an evaluation that began then has to end.
pub(super) fn is_late(since: time::Instant) -> bool {
    let taken = since.elapsed();
    CLOCK.with_borrow_mut(|clock| match clock {
        Clock::Free => taken > LONGEST,
        Clock::Judged { .. } => false,
        Clock::Judging {
            patience,
            since,
            decided,
            ..
        } => {
            let is_late = taken > patience.one || since.elapsed() >= patience.all;
            if is_late {
                decided.end();
            }
            is_late
        }
    })
}

impl Decided {
    /// Ends the evaluation under way.
    fn end(&mut self) {
        let seed = METER.with(|meter| meter.seed.get());
        if !self.late.contains(&seed) {
            self.late.push(seed);
        }
    }
}

/// An error when this evaluation is not to begin: the clock has ended it before, or those before
/// it have taken all the time there is.
pub(super) fn decided() -> Result<(), EvalError> {
    let is_late = CLOCK.with_borrow_mut(|clock| match clock {
        Clock::Free => false,
        Clock::Judged { decided, .. } => {
            let seed = METER.with(|meter| meter.seed.get());
            decided.late.contains(&seed)
        }
        Clock::Judging {
            patience,
            since,
            decided,
            ..
        } => {
            let is_late = since.elapsed() >= patience.all;
            if is_late {
                decided.end();
            }
            is_late
        }
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
