//! Waiting for what is next, through the runs that a run has called.

use std::time::{Duration, Instant};

use super::super::driver::LOOK_EVERY;
use super::super::local::now;
use super::desk::{Answer, Holder, Look, Request};
use super::{AgentError, Agents, TaskPage, Turn, TurnStatus};
use crate::journal::RunId;

/// How long a run is followed that nobody waits for: as long as it goes on by itself.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// What a desk may take beyond the time that was asked for before it is asked without patience.
const GRACE: Duration = Duration::from_millis(5);

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long a run that goes on by itself is waited for.
    pub longest: Duration,
    /// Whether to wait for other agents too: for tasks to end, for a turn to begin one.
    pub for_others: bool,
    /// Whether the run is to go on; otherwise it is only looked at.
    pub drives: bool,
    /// Whether nobody waits for the answer: a run that another process has is left to it then.
    pub unattended: bool,
}

impl Patience {
    /// None at all: the run is looked at as it stands.
    pub const NONE: Patience = Patience {
        longest: Duration::ZERO,
        for_others: false,
        drives: false,
        unattended: false,
    };

    /// So long for what goes on by itself.
    #[must_use]
    pub const fn of(longest: Duration) -> Self {
        Patience {
            longest,
            drives: true,
            ..Patience::NONE
        }
    }

    /// The same, for others too.
    #[must_use]
    pub const fn for_others(self) -> Self {
        Patience {
            for_others: true,
            ..self
        }
    }
}

impl Agents {
    /// The next step of a run, or of a task of it; or how it stands. A task that nobody has begun
    /// is begun. Asking again gives the same step until its result is submitted.
    ///
    /// # Errors
    ///
    /// When there is no such run or task, and those of the journal.
    pub async fn next(
        &self,
        run: RunId,
        task: Option<&str>,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Turn, AgentError> {
        let turn = self.attend(run, task, page, patience).await?;
        if patience.drives && turn.status.is_over() {
            self.lead_on(run, Vec::new())?;
        }
        Ok(turn)
    }

    /// Lets the run that called this one, and those above it, go on from what came of it, without
    /// anybody waiting for that. Where a run that this one has called was answered, the parts of
    /// this one that have called it go on too, the innermost first. A run that another process has
    /// is left to it.
    pub(super) fn lead_on(
        &self,
        run: RunId,
        callers: Vec<Option<String>>,
    ) -> Result<(), AgentError> {
        let outermost = self.host().outermost(run)?;
        if outermost == run && callers.is_empty() {
            return Ok(());
        }
        let agents = self.clone();
        let patience = Patience {
            unattended: true,
            ..Patience::of(LONGEST)
        };
        tokio::spawn(async move {
            let page = TaskPage {
                from: 0,
                most: Some(0),
            };
            let within = callers.into_iter().map(|task| (run, task));
            for (run, task) in within.chain([(outermost, None)]) {
                // What keeps it from going on is told to whoever asks for the run next.
                let _ = agents.attend(run, task.as_deref(), page, patience).await;
            }
        });
        Ok(())
    }

    pub(super) async fn attend(
        &self,
        run: RunId,
        task: Option<&str>,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Turn, AgentError> {
        let began = Instant::now();
        loop {
            let left = patience.longest.saturating_sub(began.elapsed());
            let patience = Patience {
                longest: left,
                ..patience
            };
            let asked = self.look(run, task, page, patience);
            let answer = match tokio::time::timeout(left + GRACE, asked).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let none = Patience {
                        longest: Duration::ZERO,
                        for_others: false,
                        ..patience
                    };
                    self.look(run, task, page, none).await?
                }
            };
            let called = match answer {
                Answer::Turn(turn) => return Ok(turn.masked()),
                Answer::Called(called) => called,
            };
            let rest = called.rest.as_deref();
            let left = patience.longest.saturating_sub(began.elapsed());
            let patience = Patience {
                longest: left,
                ..patience
            };
            let turn = Box::pin(self.attend(called.run, rest, page, patience)).await?;
            if !turn.status.is_over() || rest.is_some() {
                return Ok(turn.seen_from(run, &called));
            }
            let call = called.call;
            let redo = |reply| Request::Redo { call, reply };
            let is_left = match self.ask(run, redo).await? {
                Holder::Here => continue,
                Holder::Beside => false,
                Holder::Elsewhere => patience.unattended,
            };
            let left = patience.longest.saturating_sub(began.elapsed());
            if left.is_zero() || is_left {
                let turn = Turn::new(run, TurnStatus::Running);
                return Ok(match task {
                    Some(task) => turn.of(task),
                    None => turn,
                });
            }
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }

    async fn look(
        &self,
        run: RunId,
        task: Option<&str>,
        page: TaskPage,
        patience: Patience,
    ) -> Result<Answer, AgentError> {
        let left = patience.longest;
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX >> 1);
        let what = Look {
            task: task.map(str::to_owned),
            page,
            until: now() + left,
            for_others: patience.for_others,
            drives: patience.drives,
            unattended: patience.unattended,
        };
        let request = |reply| Request::Look {
            what: what.clone(),
            reply,
        };
        self.ask(run, request).await?
    }
}
