//! Runs that wait for somebody, and have a time for it, go on when it is up, although nobody drives
//! them then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::local::{Error, Host, Inner, Report, ReportStatus, now};
use crate::journal::{RunId, Status};

/// How long nobody looks at the time: a machine that slept has another one than was waited for.
const LONGEST: Duration = Duration::from_secs(60);

/// When the time is up of runs that this host has let go of.
#[derive(Default)]
pub(super) struct Alarms(Arc<Clock>);

#[derive(Default)]
struct Clock {
    set: Mutex<Set>,
    /// Tells whoever waits that one was set.
    changed: Notify,
}

#[derive(Default)]
struct Set {
    /// In milliseconds since 1970.
    times: HashMap<RunId, u64>,
    /// Waits for the first of them.
    waits: Option<JoinHandle<()>>,
}

impl Clock {
    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it is to the first time; `None` when there is none any more, and nobody waits.
    fn pause(&self) -> Option<Duration> {
        let mut set = self.set();
        let first = set.times.values().min().copied();
        if first.is_none() {
            set.waits = None;
        }
        first.map(|at| Duration::from_millis(at.saturating_sub(now())))
    }

    /// Takes away the runs whose time is up.
    fn due(&self) -> Vec<RunId> {
        let at = now();
        let mut set = self.set();
        let due = set.times.extract_if(|_, time| *time <= at);
        due.map(|(run, _)| run).collect()
    }
}

impl Host {
    /// A run was let go of that was driven in the background since `began`: it goes on here when
    /// the time is up that it has for what it waits for, unless that was before.
    pub(super) fn set_alarm(&self, report: &Report, began: u64) -> Result<(), Error> {
        let mut due = None;
        if report.status == ReportStatus::Waiting {
            let pending = self.pending(report)?;
            let times = pending.iter().filter_map(|awaited| awaited.answer_by);
            due = times.min().filter(|at| *at > began);
        }
        let clock = &self.inner.alarms.0;
        let mut set = clock.set();
        let Some(due) = due else {
            set.times.remove(&report.run);
            return Ok(());
        };
        set.times.insert(report.run, due);
        // The runtime that somebody waited in may be gone.
        if set.waits.as_ref().is_none_or(JoinHandle::is_finished) {
            let host = Arc::downgrade(&self.inner);
            let stop = self.inner.stop.subscribe();
            set.waits = Some(tokio::spawn(wait(host, Arc::clone(clock), stop)));
        }
        drop(set);
        clock.changed.notify_one();
        Ok(())
    }

    /// The time of a run is up. Whoever else went on with it has seen to that.
    fn ring(&self, run: RunId) {
        let record = self.journal().run(run);
        if record.is_ok_and(|record| record.status == Status::Waiting) {
            drop(self.drive_in_background(run));
        }
    }
}

/// Waits for the times that are set, as long as there are any, and as the host lives.
async fn wait(host: Weak<Inner>, clock: Arc<Clock>, mut stop: watch::Receiver<bool>) {
    while let Some(pause) = clock.pause() {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = clock.changed.notified() => {}
            () = tokio::time::sleep(pause.min(LONGEST)) => {}
        }
        let Some(inner) = host.upgrade() else {
            return;
        };
        let host = Host { inner };
        clock.due().into_iter().for_each(|run| host.ring(run));
    }
}
