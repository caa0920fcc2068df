//! Commands that a host which is gone has left running.

use super::local::{Error, Host};
use super::shell::end_groups;
use crate::journal::{self, Orphan, ProcessGroup, RunId};

impl Host {
    /// Ends the commands that a dead host left running, for a run whose lock the caller has and for
    /// the runs that it has called: whoever is told to stop before it gets to those leaves nothing
    /// behind either. What somebody else drives is theirs.
    pub(super) async fn end_orphans(&self, run: RunId) -> Result<(), Error> {
        let journal = self.journal();
        let mut locks = Vec::new();
        let mut left: Vec<(RunId, Orphan)> = Vec::new();
        for (of, orphan) in journal.orphans_below(run)? {
            let is_ours = of == run || left.last().is_some_and(|(before, _)| *before == of);
            if !is_ours {
                match journal.lock(of) {
                    Ok(lock) => locks.push(lock),
                    Err(journal::Error::Held { .. }) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            left.push((of, orphan));
        }
        if left.is_empty() {
            return Ok(());
        }
        let groups = left.iter().map(|(_, orphan)| orphan.group.clone());
        let groups: Vec<ProcessGroup> = groups.collect();
        end_groups(&groups, self.inner.stop.subscribe()).await;
        for (of, orphan) in &left {
            journal.forget_process(*of, &orphan.action).await?;
        }
        Ok(())
    }
}
