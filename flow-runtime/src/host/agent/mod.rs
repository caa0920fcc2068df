//! Runs that agents drive, step by step.
//!
//! Such a run is an ordinary run of a host and its journal; that an agent drives it is recorded when
//! it begins. The server decides what comes next and does what it can do itself. What is the
//! agent's to do is handed out as a [`AgentStep`], and the agent submits what came of it. Everything
//! lives in the journal: agents and servers may come and go between any two calls.
//!
//! [`Agents`] keeps the runs that are being worked on in memory, as many as it is told to; a run
//! that waits for an agent and is not among them costs nothing.

mod attend;
mod course;
mod desk;
mod error;
mod result;
mod state;
pub(super) mod step;
mod submission;
mod turn;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow_model::graph::Graph;
use tokio::sync::oneshot;

pub use attend::Patience;
pub use course::Conclusion;
use desk::{Desk, Request, Seat};
pub use error::AgentError;
pub use flow_model::tools::{AgentStep, AgentStepType};
pub use result::Unfit;
pub use state::Recomputed;
pub use step::{Task, TaskPage};
pub use submission::{Outcome, Submission};
pub use turn::{Turn, TurnStatus};

use super::driver::Driver;
use super::local::{Error, Host, Report, StartOptions};
use crate::journal::RunId;
use crate::run::Happening;
use crate::value::Value;

/// Runs kept in memory, when nobody says how many.
const MOST: usize = 1_000;
/// How often a run is opened for one request.
const TRIES: usize = 8;

/// Runs that agents drive.
#[derive(Clone)]
pub struct Agents {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    most: usize,
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    by_run: HashMap<RunId, (Seat, u64)>,
    clock: u64,
}

impl Agents {
    /// Agents that work on the runs of a host.
    #[must_use]
    pub fn new(host: Host) -> Self {
        Agents::keeping(host, MOST)
    }

    /// The same, with as many runs in memory at most, beside those that something goes on in.
    #[must_use]
    pub fn keeping(host: Host, most: usize) -> Self {
        Agents {
            inner: Arc::new(Inner {
                host,
                most,
                seats: Mutex::default(),
            }),
        }
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.inner.host
    }

    /// How many runs are in memory.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.seats().by_run.len()
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        let seats = &self.inner.seats;
        seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a run that an agent drives.
    ///
    /// # Errors
    ///
    /// Those of [`Host::start`].
    pub async fn start(
        &self,
        graph: &Graph,
        inputs: &Value,
        options: StartOptions,
    ) -> Result<RunId, Error> {
        let options = StartOptions {
            agent_driven: true,
            ..options
        };
        self.host().start(graph, inputs, options).await
    }

    /// The place where a run is worked on.
    fn seat(&self, run: RunId) -> Result<Seat, Error> {
        {
            let mut seats = self.seats();
            seats.clock += 1;
            let clock = seats.clock;
            if let Some((seat, used)) = seats.by_run.get_mut(&run)
                && !seat.requests.is_closed()
            {
                *used = clock;
                return Ok(seat.clone());
            }
        }
        let seat = Desk::open(self.host().clone(), run)?;
        let mut seats = self.seats();
        let clock = seats.clock;
        // Somebody else may have been faster; then theirs it is, and ours ends by itself.
        if let Some((seat, _)) = seats.by_run.get(&run)
            && !seat.requests.is_closed()
        {
            return Ok(seat.clone());
        }
        seats.by_run.insert(run, (seat.clone(), clock));
        if seats.by_run.len() > self.inner.most {
            let idle = seats
                .by_run
                .iter()
                .filter(|(kept, (seat, _))| **kept != run && !seat.going.load(Ordering::Relaxed));
            let oldest = idle.min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(run, _)| *run);
            oldest.and_then(|oldest| seats.by_run.remove(&oldest));
        }
        Ok(seat)
    }

    /// Asks where a run is worked on.
    async fn ask<T>(
        &self,
        run: RunId,
        request: impl Fn(oneshot::Sender<T>) -> Request,
    ) -> Result<T, AgentError> {
        for _ in 0..TRIES {
            if *self.host().inner.stop.borrow() {
                break;
            }
            let seat = self.seat(run)?;
            let (reply, answer) = oneshot::channel();
            // A desk may be put away, or broken, at any time; another is opened then.
            if seat.requests.send(request(reply)).is_ok()
                && let Ok(answer) = answer.await
            {
                return Ok(answer);
            }
        }
        Err(AgentError::Stopping)
    }

    /// Whether an agent drives a run.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn is_agent_driven(&self, run: RunId) -> Result<bool, AgentError> {
        self.read(run, |driver| driver.run.is_agent_driven()).await
    }

    /// Returns when nothing goes on any more in the runs that are kept; [`Host::interrupt`] brings
    /// that about.
    pub async fn settled(&self) {
        let seats: Vec<Seat> = {
            let mut seats = self.seats();
            seats.by_run.drain().map(|(_, (seat, _))| seat).collect()
        };
        for seat in seats {
            seat.ended().await;
        }
    }

    /// How a run stands.
    ///
    /// # Errors
    ///
    /// When there is no such run, and those of the journal.
    pub async fn report(&self, run: RunId) -> Result<Report, AgentError> {
        self.read(run, |driver| driver.report(None).masked()).await
    }

    async fn record(&self, run: RunId, happening: Happening) -> Result<(), AgentError> {
        let request = |reply| Request::Record {
            happening: Box::new(happening.clone()),
            reply,
        };
        self.ask(run, request).await?
    }

    async fn read<T: Send + 'static>(
        &self,
        run: RunId,
        read: impl Fn(&Driver) -> T + Clone + Send + 'static,
    ) -> Result<T, AgentError> {
        let request = |reply: oneshot::Sender<T>| {
            let read = read.clone();
            Request::Read(Box::new(move |driver: &Driver| {
                // Nobody may be waiting any more.
                let _ = reply.send(read(driver));
            }))
        };
        self.ask(run, request).await
    }
}
