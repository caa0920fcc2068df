//! Process groups that runs have started, so that what a dead host left behind can be ended.

use std::fs;
use std::sync::Arc;

use rusqlite::params;

use super::runs::{id, key};
use super::{Error, Journal, Receipt, RunId};

/// A process group, told from a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessGroup {
    /// Its number, which is that of its first process.
    pub pgid: u32,
    /// The start of the system it belongs to; empty where the system does not say.
    pub boot: String,
    /// When its first process began, in the system's ticks; zero where the system does not say.
    pub birth: u64,
}

/// A process group that the journal holds as running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The action it works for.
    pub action: String,
    /// When it was started, in milliseconds since 1970.
    pub started_at: u64,
    /// The group.
    pub group: ProcessGroup,
}

impl ProcessGroup {
    /// The group that this living process leads.
    pub fn led_by(pid: u32) -> ProcessGroup {
        ProcessGroup {
            pgid: pid,
            boot: boot(),
            birth: Stat::of(pid).map_or(0, |stat| stat.birth),
        }
    }

    /// The living processes of the group, without those of a later group with the same number.
    /// Empty on systems without `/proc`.
    pub fn members(&self) -> Vec<u32> {
        if self.boot.is_empty() || self.boot != boot() {
            return Vec::new();
        }
        // A number is not given away while its group has members, so the group is the same one
        // unless its first process is another.
        if Stat::of(self.pgid).is_some_and(|leader| leader.birth != self.birth) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|&pid| {
                Stat::of(pid).is_some_and(|stat| {
                    stat.pgid == self.pgid && stat.birth >= self.birth && !stat.dead
                })
            })
            .collect()
    }
}

/// The start of the system this process belongs to.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// What `/proc` says of a process.
#[derive(Debug, PartialEq)]
struct Stat {
    dead: bool,
    pgid: u32,
    birth: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Stat> {
        Stat::read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn read(text: &str) -> Option<Stat> {
        // The name before the last parenthesis may contain anything.
        let (_, fields) = text.rsplit_once(')')?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        Some(Stat {
            dead: matches!(*fields.first()?, "Z" | "X"),
            pgid: fields.get(2)?.parse().ok()?,
            birth: fields.get(19)?.parse().ok()?,
        })
    }
}

impl Journal {
    /// Records that a group works for an action of a run. Wait for the receipt before the process
    /// may go on: what runs is then always known.
    pub fn record_process(
        &self,
        run: RunId,
        action: &str,
        started_at: u64,
        group: ProcessGroup,
    ) -> Receipt<()> {
        let store = Arc::clone(&self.store);
        let action = action.to_owned();
        self.writer.submit(move |connection| {
            let key = key(&store, connection, run)?;
            let insert = || {
                let insert = "INSERT OR REPLACE INTO processes
                                  (run, action, pgid, started_at, boot, birth)
                              VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                let mut statement = connection.prepare_cached(insert)?;
                let ProcessGroup { pgid, boot, birth } = &group;
                statement.execute(params![key, action, pgid, started_at, boot, birth])
            };
            insert().map(drop).map_err(|error| store.error(error))
        })
    }

    /// Records that the group of an action has ended.
    pub fn forget_process(&self, run: RunId, action: &str) -> Receipt<()> {
        let action = action.to_owned();
        self.write(move |connection| {
            let delete = "DELETE FROM processes
                          WHERE run = (SELECT key FROM runs WHERE id = ?1) AND action = ?2";
            let mut statement = connection.prepare_cached(delete)?;
            statement
                .execute(params![run.to_string(), action])
                .map(drop)
        })
    }

    /// The groups that a run has started and nobody has seen end. Whoever holds the run's lock and
    /// has started none of them ends their [`members`](ProcessGroup::members).
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn orphans(&self, run: RunId) -> Result<Vec<Orphan>, Error> {
        let all = self.orphans_below(run)?.into_iter();
        let own = all.filter(|(of, _)| *of == run);
        Ok(own.map(|(_, orphan)| orphan).collect())
    }

    /// The same for a run and all that it has called, directly or not, each with its run; those of
    /// one run stand together. Each run has its own lock.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn orphans_below(&self, run: RunId) -> Result<Vec<(RunId, Orphan)>, Error> {
        self.read(|connection| {
            // There are few groups at any time, and many runs: from those up to who called them.
            let find = "WITH RECURSIVE above (key, id, parent) AS (
                            SELECT runs.key, runs.id, runs.parent FROM runs
                            WHERE runs.key IN (SELECT run FROM processes)
                            UNION
                            SELECT above.key, runs.id, runs.parent
                            FROM above JOIN runs ON runs.id = above.parent
                        )
                        SELECT runs.id, action, processes.started_at, pgid, boot, birth
                        FROM processes JOIN runs ON runs.key = processes.run
                        WHERE processes.run IN (SELECT key FROM above WHERE id = ?1)
                        ORDER BY processes.run, processes.started_at, action";
            let mut statement = connection.prepare_cached(find)?;
            let rows = statement.query_map([run.to_string()], |row| {
                let orphan = Orphan {
                    action: row.get(1)?,
                    started_at: row.get(2)?,
                    group: ProcessGroup {
                        pgid: row.get(3)?,
                        boot: row.get(4)?,
                        birth: row.get(5)?,
                    },
                };
                Ok((id(row, 0)?, orphan))
            })?;
            rows.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_may_be_named_like_a_line_of_proc() {
        let line = "77 (a) R 1 (b)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 2 3";
        let stat = Stat {
            dead: false,
            pgid: 42,
            birth: 9876,
        };
        assert_eq!(Stat::read(line), Some(stat));
        assert_eq!(Stat::read(""), None);
        assert_eq!(Stat::read("1 (x) S"), None);
    }

    #[test]
    fn the_members_of_a_group_are_found_and_a_later_group_is_not_mistaken_for_it() {
        if boot().is_empty() {
            println!("skipped: this system has no /proc");
            return;
        }
        let mut child = Command::new("cat")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let group = ProcessGroup::led_by(child.id());
        let later = ProcessGroup {
            birth: group.birth - 1,
            ..group.clone()
        };
        let elsewhere = ProcessGroup {
            boot: "another".to_owned(),
            ..group.clone()
        };
        let found = (group.members(), later.members(), elsewhere.members());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(found, (vec![child.id()], vec![], vec![]));
        assert_eq!(group.members(), Vec::<u32>::new());
    }
}
