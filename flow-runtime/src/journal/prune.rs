//! Deleting what is no longer wanted.

use std::sync::Arc;

use rusqlite::{Connection, params};

use super::runs::id;
use super::{Error, Journal, RunId};

/// Runs deleted in one transaction: other writes get their turn in between.
const BATCH: usize = 100;

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs, with their events, snapshots and logs.
    pub runs: usize,
    /// Values that no other run uses.
    pub values: usize,
    /// Definitions that no other run uses.
    pub definitions: usize,
}

impl Journal {
    /// Deletes runs that ended before `older_than` (in milliseconds since 1970), except the newest
    /// `keep` runs of the journal and those started by a run that has not ended. What the workflows'
    /// runs amount to stays: see [`tallies`](Journal::tallies).
    ///
    /// # Errors
    ///
    /// Those of a write: see [`append`](Journal::append). What was deleted before stays deleted.
    pub fn prune(&self, older_than: u64, keep: usize) -> Result<Pruned, Error> {
        let older_than = i64::try_from(older_than).unwrap_or(i64::MAX);
        let keep = i64::try_from(keep).unwrap_or(i64::MAX);
        let mut total = Pruned::default();
        loop {
            let (ids, pruned) = self
                .write(move |connection| batch(connection, older_than, keep))
                .wait()?;
            total.runs += pruned.runs;
            total.values += pruned.values;
            total.definitions += pruned.definitions;
            for &run in &ids {
                self.remove_stale_lock(run);
            }
            if ids.len() < BATCH {
                return Ok(total);
            }
        }
    }

    /// Removes the lock file that a host killed long ago may have left.
    fn remove_stale_lock(&self, run: RunId) {
        if self.lock_file(run).exists() {
            drop(self.lock(run));
        }
    }

    /// Checks the whole file, which takes time in proportion to its size.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] with the first fault, and those of reading the file.
    pub fn verify(&self) -> Result<(), Error> {
        let store = Arc::clone(&self.store);
        self.store.read(|connection| {
            let verdict: String = connection
                .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
                .map_err(|error| store.error(error))?;
            if verdict == "ok" {
                Ok(())
            } else {
                Err(store.corrupt(verdict))
            }
        })
    }
}

fn batch(
    connection: &Connection,
    older_than: i64,
    keep: i64,
) -> rusqlite::Result<(Vec<RunId>, Pruned)> {
    let mut pruned = Pruned::default();
    let ids = choose(connection, older_than, keep)?;
    if ids.is_empty() {
        return Ok((Vec::new(), pruned));
    }
    for table in [
        "events",
        "snapshots",
        "processes",
        "log_chunks",
        "log_streams",
    ] {
        connection.execute(
            &format!("DELETE FROM {table} WHERE run IN (SELECT key FROM temp.doomed)"),
            [],
        )?;
    }
    connection.execute_batch(
        "CREATE TEMP TABLE loose AS
             SELECT DISTINCT hash FROM blob_uses WHERE run IN (SELECT key FROM temp.doomed);
         DELETE FROM blob_uses WHERE run IN (SELECT key FROM temp.doomed);
         DELETE FROM runs WHERE key IN (SELECT key FROM temp.doomed)",
    )?;
    pruned.runs = ids.len();
    pruned.values = connection.execute(
        "DELETE FROM blobs WHERE hash IN (SELECT hash FROM temp.loose)
             AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.hash = blobs.hash)",
        [],
    )?;
    pruned.definitions = connection.execute(
        "DELETE FROM definitions WHERE hash IN (SELECT definition FROM temp.doomed)
             AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.definition = definitions.hash)",
        [],
    )?;
    connection.execute_batch("DROP TABLE temp.doomed; DROP TABLE temp.loose")?;
    let mut vacuum = connection.prepare("PRAGMA incremental_vacuum")?;
    let mut freed = vacuum.query([])?;
    while freed.next()?.is_some() {}
    Ok((ids, pruned))
}

/// Puts the runs to delete into the table `doomed`, oldest first.
fn choose(connection: &Connection, older_than: i64, keep: i64) -> rusqlite::Result<Vec<RunId>> {
    let ended = "('completed', 'failed', 'cancelled')";
    connection.execute(
        "CREATE TEMP TABLE doomed (key INTEGER PRIMARY KEY, id TEXT, definition BLOB)",
        [],
    )?;
    connection.execute(
        &format!(
            "INSERT INTO temp.doomed
             SELECT key, id, definition FROM runs
             WHERE status IN {ended} AND updated_at < ?1
               AND key <= ifnull((SELECT key FROM runs ORDER BY key DESC LIMIT 1 OFFSET ?2), 0)
               AND NOT EXISTS (
                   WITH RECURSIVE above (id, status, parent) AS (
                       SELECT id, status, parent FROM runs AS up WHERE up.id = runs.parent
                       UNION
                       SELECT up.id, up.status, up.parent
                       FROM runs AS up JOIN above ON up.id = above.parent
                   )
                   SELECT 1 FROM above WHERE status NOT IN {ended}
               )
             ORDER BY key LIMIT ?3"
        ),
        params![older_than, keep, BATCH],
    )?;
    let ids = {
        let mut statement = connection.prepare("SELECT id FROM temp.doomed ORDER BY key")?;
        let rows = statement.query_map([], |row| id(row, 0))?;
        rows.collect::<rusqlite::Result<Vec<_>>>()?
    };
    if ids.is_empty() {
        connection.execute("DROP TABLE temp.doomed", [])?;
    }
    Ok(ids)
}
