//! Deaths at chosen moments, so that tests can show what survives them.
//!
//! `FLOW_FAULT=before-commit:3` kills the process before its third commit, `after-commit:3` when
//! that commit is on the disk and nobody has been told. Programs built for use have none of this.

/// A moment in the life of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Nothing of it is on the disk.
    BeforeCommit,
    /// All of it is on the disk, and nobody has been told.
    AfterCommit,
}

#[cfg(not(debug_assertions))]
pub(super) fn reached(_moment: Moment) {}

#[cfg(debug_assertions)]
pub(super) fn reached(moment: Moment) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static FAULT: OnceLock<Option<(Moment, AtomicU64)>> = OnceLock::new();
    let fault = FAULT.get_or_init(|| {
        let asked = std::env::var("FLOW_FAULT").ok()?;
        let (name, count) = asked.split_once(':')?;
        let moment = match name {
            "before-commit" => Moment::BeforeCommit,
            "after-commit" => Moment::AfterCommit,
            _ => return None,
        };
        Some((moment, AtomicU64::new(count.parse().ok()?)))
    });
    if let Some((deadly, left)) = fault
        && *deadly == moment
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        let _ = kill_process(getpid(), Signal::KILL);
        // The signal may be taken a moment later; nothing may happen in between.
        loop {
            std::thread::park();
        }
    }
}
