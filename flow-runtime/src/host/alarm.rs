//! Runs that wait for somebody, and have a time for it, go on when it is up, although nobody drives
//! them. When that is, the journal knows, whoever has let go of them.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::driver::Driver;
use super::local::{Error, Host, now};
use crate::journal::{RunId, Status};

/// How long it may take to hear of what another process has recorded.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long nothing is tried again, in milliseconds.
const AGAIN: u64 = 60_000;
/// Runs that are looked at together.
const TOGETHER: usize = 10_000;

impl Host {
    /// Goes on in the background with the runs of the journal that wait for somebody, when there is no
    /// more time to answer, until the host is told to stop. What this host lets go of goes on in time,
    /// what another process does within seconds. Those that agents drive keep the time themselves, and
    /// those whose time was over before wait until somebody looks at them.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn keep_times(&self) {
        let mut stop = self.inner.stop.subscribe();
        let mut tried = HashMap::new();
        let since = now();
        loop {
            let at = now();
            // What cannot be read now may be the next time.
            let _ = self.ring(since..=at, &mut tried);
            let next = self.journal().next_wake(at).ok().flatten();
            let pause = next.map_or(LOOK_EVERY, |next| {
                Duration::from_millis(next.saturating_sub(now())).min(LOOK_EVERY)
            });
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = self.inner.waits.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Goes on with the runs whose time was up within this one. What could not go on here is tried again
    /// later.
    fn ring(
        &self,
        within: RangeInclusive<u64>,
        tried: &mut HashMap<(RunId, Option<u64>), u64>,
    ) -> Result<(), Error> {
        let at = *within.end();
        let due = self.journal().due(within, TOGETHER)?;
        tried.retain(|_, since| at.saturating_sub(*since) < AGAIN);
        for record in due {
            let time = (record.id, record.wake_at);
            if record.status == Status::Waiting
                && !tried.contains_key(&time)
                && self.goes_on_late(record.id).unwrap_or(true)
            {
                tried.insert(time, at);
            }
        }
        Ok(())
    }

    /// Goes on with a run that has waited long enough; `false` where somebody drives it, who has heard
    /// of the time.
    fn goes_on_late(&self, run: RunId) -> Result<bool, Error> {
        let outermost = self.outermost(run)?;
        if self.journal().is_held(outermost) {
            return Ok(false);
        }
        let waits = self.journal().run(outermost)?.status == Status::Waiting;
        if waits && !Driver::open(self.clone(), outermost)?.run.is_agent_driven() {
            drop(self.drive_in_background(outermost));
        }
        Ok(true)
    }
}
