//! Following the runs that this process drives, whoever asked for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow_runtime::host::{self, Driven, Report};
use flow_runtime::journal::{self, RunId, Status};
use flow_runtime::run::Happening;

use super::Server;
use super::standing;
use super::tool::{Call, Refused};

/// How often the journal is looked at for a run that is driven elsewhere.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long nobody may have a run before it counts as interrupted.
const LEFT_FOR: Duration = Duration::from_secs(1);

/// How a run stood when it was let go of.
#[derive(Clone, Debug)]
pub(crate) enum Stood {
    /// So.
    Let(Box<Report>),
    /// Another process drives it.
    Elsewhere,
    /// It could not be driven, for this reason.
    Broken(String),
}

/// How waiting for a run ended.
pub(crate) enum Followed {
    /// The run was let go of.
    Stood(Stood),
    /// It is still going.
    Going,
}

impl Server {
    /// Drives a run in the background and waits for it as long as the call may: until it is let
    /// go of, or asks somebody while it goes on otherwise. A call that is cancelled meanwhile
    /// cancels the run; a server that ends leaves it as it is.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        run: RunId,
        longest: Duration,
        call: &Call,
    ) -> Result<Followed, Refused> {
        let driven = self.host.drive_in_background(run);
        // Whoever looks at the run after an answer sees that it is driven.
        tokio::task::yield_now().await;
        let stood = tokio::select! {
            biased;
            stood = stood(driven.clone()) => stood,
            () = call.cancelled() => {
                // A server that ends gives its calls up as well, and nobody has cancelled anything.
                if !self.is_leaving() {
                    self.cancel(run).await?;
                }
                stood(driven).await
            }
            () = self.asks(run, &driven) => return Ok(Followed::Going),
            () = tokio::time::sleep(longest) => return Ok(Followed::Going),
        };
        Ok(Followed::Stood(stood))
    }

    /// Waits until a run that is driven here asks somebody who is not here.
    async fn asks(&self, run: RunId, driven: &Driven) {
        loop {
            driven.clone().asks().await;
            // Whoever drives it may not have heard of an answer yet.
            let report = self.host.report(run);
            if report.is_ok_and(|report| standing::asks(self, &report).unwrap_or(false)) {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until a run is over, waits for somebody, wherever it is driven, or has been left by all,
    /// but not for longer than this; gives whether that was so.
    pub(crate) async fn settled(&self, run: RunId, longest: Duration, call: &Call) -> bool {
        let settled = async {
            let mut look = tokio::time::interval(LOOK_EVERY);
            look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut left_since = None;
            while self.is_going(run) {
                // Nobody goes on with a run that was interrupted, unless it is just being taken up.
                left_since = match standing::is_alive(self, run) {
                    true => None,
                    false => left_since.or_else(|| Some(Instant::now())),
                };
                if left_since.is_some_and(|since| since.elapsed() >= LEFT_FOR) {
                    return;
                }
                // A run that is driven here may also be let go of.
                match self.host.driven(run) {
                    Some(driven) => tokio::select! {
                        _ = driven.end() => {}
                        _ = look.tick() => {}
                    },
                    None => drop(look.tick().await),
                }
            }
        };
        tokio::select! {
            () = settled => true,
            () = tokio::time::sleep(longest) => false,
            () = call.cancelled() => false,
            () = self.left() => false,
        }
    }

    /// Whether a run goes on by itself, and nobody is asked.
    fn is_going(&self, run: RunId) -> bool {
        let goes = |status| match status {
            Status::Running | Status::Sleeping => true,
            // It is being taken up.
            Status::Waiting => self.host.driven(run).is_some(),
            Status::Completed | Status::Failed | Status::Cancelled => false,
        };
        let record = self.host.journal().run(run);
        if !record.is_ok_and(|record| goes(record.status)) {
            return false;
        }
        let report = self.host.report(run);
        !report.is_ok_and(|report| standing::asks(self, &report).unwrap_or(false))
    }

    async fn cancel(&self, run: RunId) -> Result<(), Refused> {
        let reason = "the call that waited for it was cancelled".to_owned();
        let cancelled = self.host.record(run, Happening::Cancelled { reason });
        match cancelled.await {
            // It ended meanwhile.
            Ok(()) | Err(host::Error::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

async fn stood(driven: Driven) -> Stood {
    let Some(end) = driven.end().await else {
        return Stood::Broken("the run was let go of unexpectedly".to_owned());
    };
    match end {
        Ok(report) => Stood::Let(Box::new(report)),
        Err(error) => match error.as_ref() {
            host::Error::Journal(journal::Error::Held { .. }) => Stood::Elsewhere,
            error => Stood::Broken(error.to_string()),
        },
    }
}
