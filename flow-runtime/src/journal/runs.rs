//! The records of runs: finding and listing them.

use std::fmt;
use std::num::ParseIntError;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rusqlite::types::{ToSql, Type};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::record::{NewRun, RunRecord, RunUpdate, Status};
use super::store::Store;
use super::{Error, Hash, Journal, RunId};

/// How many ids an ambiguous beginning is answered with.
const SHOWN: usize = 8;

const COLUMNS: &str = "key, id, workflow, definition, status, started_at, updated_at, parent, \
                       wake_at, pending, error, output IS NOT NULL";

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    statuses: Vec<Status>,
    workflow: Option<String>,
    parent: Parent,
    before: Option<Cursor>,
}

#[derive(Clone, Debug, Default)]
enum Parent {
    #[default]
    Any,
    None,
    Run(RunId),
}

impl Listing {
    /// All runs.
    pub fn new() -> Listing {
        Listing::default()
    }

    /// Only runs with this status; may be given several times.
    #[must_use]
    pub fn status(mut self, status: Status) -> Listing {
        if !self.statuses.contains(&status) {
            self.statuses.push(status);
        }
        self
    }

    /// Only runs of this workflow.
    #[must_use]
    pub fn workflow(self, workflow: impl Into<String>) -> Listing {
        Listing {
            workflow: Some(workflow.into()),
            ..self
        }
    }

    /// Only runs that no other run started.
    #[must_use]
    pub fn top_level(self) -> Listing {
        Listing {
            parent: Parent::None,
            ..self
        }
    }

    /// Only runs that this run started.
    #[must_use]
    pub fn children_of(self, parent: RunId) -> Listing {
        Listing {
            parent: Parent::Run(parent),
            ..self
        }
    }

    /// Only what follows the page that ended with this cursor.
    #[must_use]
    pub fn before(self, cursor: Cursor) -> Listing {
        Listing {
            before: Some(cursor),
            ..self
        }
    }
}

/// Where a page of a listing ended. Runs that start meanwhile do not move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(i64);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Cursor {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Cursor, ParseIntError> {
        text.parse().map(Cursor)
    }
}

/// A part of a listing.
#[derive(Clone, Debug)]
pub struct Page {
    /// The runs, newest first.
    pub runs: Vec<RunRecord>,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

/// What a workflow's runs amount to, those included that were deleted since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The workflow.
    pub workflow: String,
    /// How many runs were started.
    pub run_count: u64,
    /// How many of them completed.
    pub success_count: u64,
    /// When the last one was started, in milliseconds since 1970.
    pub last_run: u64,
}

impl Journal {
    /// The record of a run.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`], and those of reading the file.
    pub fn run(&self, run: RunId) -> Result<RunRecord, Error> {
        self.store
            .read(|connection| find(&self.store, connection, run).map(|(_, record)| record))
    }

    /// The one run whose id begins like this, with or without `r-`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`]; [`Error::Ambiguous`] with the newest of those that begin so;
    /// [`Error::NotARunId`] when no id can; those of reading the file.
    pub fn resolve(&self, beginning: &str) -> Result<RunId, Error> {
        let (first, last) = RunId::beginning(beginning).ok_or_else(|| Error::NotARunId {
            text: beginning.to_owned(),
        })?;
        let mut matches = self.read(|connection| {
            let find = "SELECT id FROM runs WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3";
            let mut statement = connection.prepare_cached(find)?;
            let span = params![first.to_string(), last.to_string(), SHOWN + 1];
            let rows = statement.query_map(span, |row| id(row, 0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        if let Some(caller) = self.caller_of_all(&matches)? {
            return Ok(caller);
        }
        match matches[..] {
            [] => Err(Error::NoSuchRun {
                run: beginning.to_owned(),
            }),
            [run] => Ok(run),
            _ => {
                let more = matches.len() > SHOWN;
                matches.truncate(SHOWN);
                Err(Error::Ambiguous {
                    prefix: beginning.to_owned(),
                    matches,
                    more,
                })
            }
        }
    }

    /// The run that called all the others, directly or not. Their ids begin like its own.
    fn caller_of_all(&self, runs: &[RunId]) -> Result<Option<RunId>, Error> {
        if runs.len() < 2 || runs.len() > SHOWN {
            return Ok(None);
        }
        let mut outermost = Vec::new();
        for run in runs {
            let parent = self.run(*run)?.parent;
            if parent.is_none_or(|parent| !runs.contains(&parent)) {
                outermost.push(*run);
            }
        }
        Ok(match outermost[..] {
            [only] => Some(only),
            _ => None,
        })
    }

    /// Runs, newest first, at most `limit` of them.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn list(&self, listing: &Listing, limit: usize) -> Result<Page, Error> {
        // The indexes lead to the runs of one status newest first: with several statuses the
        // newest of each are the candidates.
        let statuses: Vec<_> = match (&listing.statuses[..], &listing.workflow) {
            ([], None) => vec![None],
            ([], Some(_)) => Status::ALL.into_iter().map(Some).collect(),
            (some, _) => some.iter().copied().map(Some).collect(),
        };
        let mut found = self.read(|connection| {
            let mut found = Vec::new();
            for status in statuses {
                select(connection, listing, status, limit, &mut found)?;
            }
            Ok(found)
        })?;
        found.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(key, _)| Cursor(*key));
        Ok(Page {
            runs: found.into_iter().map(|(_, record)| record).collect(),
            next,
        })
    }

    /// Runs that want to go on at one of these times, the most overdue first, at most `limit`.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn due(&self, times: RangeInclusive<u64>, limit: usize) -> Result<Vec<RunRecord>, Error> {
        let find = format!(
            "SELECT {COLUMNS} FROM runs WHERE wake_at BETWEEN ?1 AND ?2 ORDER BY wake_at, key LIMIT ?3"
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&find)?;
            let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let bounds = [whole(*times.start()), whole(*times.end()), limit];
            let rows = statement.query_map(bounds, |row| record(row).map(|(_, run)| run))?;
            rows.collect()
        })
    }

    /// When the next run wants to go on after this time.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn next_wake(&self, after: u64) -> Result<Option<u64>, Error> {
        self.read(|connection| {
            let find = "SELECT min(wake_at) FROM runs WHERE wake_at > ?1";
            let mut statement = connection.prepare_cached(find)?;
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            statement.query_row([after], |row| row.get(0))
        })
    }

    /// What the runs of one workflow amount to; `None` when it was never run.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn tally(&self, workflow: &str) -> Result<Option<Tally>, Error> {
        self.read(|connection| {
            let find = "SELECT name, run_count, success_count, last_run FROM workflows
                        WHERE name = ?1";
            let mut statement = connection.prepare_cached(find)?;
            statement.query_row([workflow], tally).optional()
        })
    }

    /// Lets a run stand under another workflow than it began as, the one that its definition has
    /// become, and counts it there.
    ///
    /// # Errors
    ///
    /// Those of a write: see [`append`](Journal::append).
    pub fn rename(&self, run: RunId, workflow: &str) -> Result<(), Error> {
        let (run, workflow) = (run.to_string(), workflow.to_owned());
        self.write(move |connection| {
            count_elsewhere(connection, &run, &workflow, false)?;
            connection
                .prepare_cached("UPDATE runs SET workflow = ?2 WHERE id = ?1")?
                .execute(params![run, workflow])
        })
        .wait()
        .map(drop)
    }

    /// Counts a run that is about to succeed for another workflow than it stands under: the one
    /// that holds the same definition.
    ///
    /// # Errors
    ///
    /// Those of a write: see [`append`](Journal::append).
    pub fn count_for(&self, run: RunId, workflow: &str) -> Result<(), Error> {
        let (run, workflow) = (run.to_string(), workflow.to_owned());
        self.write(move |connection| count_elsewhere(connection, &run, &workflow, true))
            .wait()
            .map(drop)
    }

    /// Remembers which workflow holds the definition that a run came with, and whether it was stored
    /// for this run. What was stored for it once stays so, however often its end is tried.
    ///
    /// # Errors
    ///
    /// Those of a write: see [`append`](Journal::append).
    pub fn keep_as(&self, run: RunId, workflow: &str, is_new: bool) -> Result<(), Error> {
        let (run, workflow) = (run.to_string(), workflow.to_owned());
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "UPDATE runs
                     SET kept_new = ?3 OR (kept_as IS ?2 AND kept_new IS 1), kept_as = ?2
                     WHERE id = ?1",
                )?
                .execute(params![run, workflow, is_new])
        })
        .wait()
        .map(drop)
    }

    /// What [`keep_as`](Journal::keep_as) remembers of a run.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn kept_as(&self, run: RunId) -> Result<Option<(String, bool)>, Error> {
        self.read(|connection| {
            let find = "SELECT kept_as, kept_new FROM runs WHERE id = ?1 AND kept_as IS NOT NULL";
            let mut statement = connection.prepare_cached(find)?;
            let kept = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            statement.query_row([run.to_string()], kept).optional()
        })
    }

    /// Forgets what the runs of a workflow amount to. The runs themselves stay.
    ///
    /// # Errors
    ///
    /// Those of a write: see [`append`](Journal::append).
    pub fn forget_tally(&self, workflow: &str) -> Result<(), Error> {
        let workflow = workflow.to_owned();
        self.write(move |connection| {
            connection
                .prepare_cached("DELETE FROM workflows WHERE name = ?1")?
                .execute([workflow])
        })
        .wait()
        .map(drop)
    }

    /// What the runs of each workflow amount to, by name.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn tallies(&self) -> Result<Vec<Tally>, Error> {
        self.read(|connection| {
            let find = "SELECT name, run_count, success_count, last_run FROM workflows
                        ORDER BY name";
            let mut statement = connection.prepare_cached(find)?;
            let rows = statement.query_map([], tally)?;
            rows.collect()
        })
    }
}

/// Takes a run from the tally of the workflow it stands under to that of another. What the others
/// of the first one amount to is theirs again, the time of the last one too.
fn count_elsewhere(
    connection: &Connection,
    run: &str,
    workflow: &str,
    succeeds: bool,
) -> rusqlite::Result<usize> {
    let taken = connection
        .prepare_cached(
            "UPDATE workflows
             SET run_count = run_count - 1,
                 success_count = success_count - (runs.status = 'completed'),
                 last_run = coalesce(
                     (SELECT max(other.started_at) FROM runs AS other
                      WHERE other.workflow = runs.workflow AND other.id <> runs.id),
                     last_run)
             FROM runs
             WHERE runs.id = ?1 AND name = runs.workflow AND runs.workflow <> ?2",
        )?
        .execute(params![run, workflow])?;
    connection
        .prepare_cached("DELETE FROM workflows WHERE run_count <= 0")?
        .execute([])?;
    if succeeds && taken == 0 {
        // It was taken before.
        return Ok(0);
    }
    connection
        .prepare_cached(
            "INSERT INTO workflows (name, run_count, success_count, last_run)
             SELECT ?2, 1, ?3 OR status = 'completed', started_at FROM runs
             WHERE id = ?1 AND workflow <> ?2
             ON CONFLICT (name) DO UPDATE SET
                 run_count = run_count + 1,
                 success_count = success_count + excluded.success_count,
                 last_run = max(last_run, excluded.last_run)",
        )?
        .execute(params![run, workflow, succeeds])
}

fn tally(row: &Row<'_>) -> rusqlite::Result<Tally> {
    Ok(Tally {
        workflow: row.get(0)?,
        run_count: row.get(1)?,
        success_count: row.get(2)?,
        last_run: row.get(3)?,
    })
}

/// The newest runs of a listing that have one status.
fn select(
    connection: &Connection,
    listing: &Listing,
    status: Option<Status>,
    limit: usize,
    found: &mut Vec<(i64, RunRecord)>,
) -> rusqlite::Result<()> {
    let mut query = format!("SELECT {COLUMNS} FROM runs WHERE key < ?1");
    let before = listing.before.map_or(i64::MAX, |cursor| cursor.0);
    // One more than wanted tells whether another page follows.
    let limit = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let status = status.map(Status::as_str);
    let parent = match &listing.parent {
        Parent::Run(parent) => Some(parent.to_string()),
        Parent::Any | Parent::None => None,
    };
    let mut values: Vec<&dyn ToSql> = vec![&before, &limit];
    if let Some(status) = &status {
        values.push(status);
        query.push_str(&format!(" AND status = ?{}", values.len()));
    }
    if let Some(workflow) = &listing.workflow {
        values.push(workflow);
        query.push_str(&format!(" AND workflow = ?{}", values.len()));
    }
    match (&listing.parent, &parent) {
        (Parent::Any, _) => (),
        (Parent::Run(_), Some(parent)) => {
            values.push(parent);
            query.push_str(&format!(" AND parent = ?{}", values.len()));
        }
        (Parent::None | Parent::Run(_), _) => query.push_str(" AND parent IS NULL"),
    }
    query.push_str(" ORDER BY key DESC LIMIT ?2");
    let mut statement = connection.prepare_cached(&query)?;
    for row in statement.query_map(&values[..], record)? {
        found.push(row?);
    }
    Ok(())
}

/// The key of a run within the journal.
pub(super) fn key(store: &Store, connection: &Connection, run: RunId) -> Result<i64, Error> {
    let find = || {
        let mut statement = connection.prepare_cached("SELECT key FROM runs WHERE id = ?1")?;
        statement
            .query_row([run.to_string()], |row| row.get(0))
            .optional()
    };
    find()
        .map_err(|error| store.error(error))?
        .ok_or_else(|| Error::NoSuchRun {
            run: run.to_string(),
        })
}

/// Whether a run is listed as over.
pub(super) fn is_over(connection: &Connection, key: i64) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached("SELECT status FROM runs WHERE key = ?1")?;
    let status: String = statement.query_row([key], |row| row.get(0))?;
    Ok(Status::stored(&status)?.is_final())
}

/// The key and the record of a run.
pub(super) fn find(
    store: &Store,
    connection: &Connection,
    run: RunId,
) -> Result<(i64, RunRecord), Error> {
    let find = || {
        let find = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
        let mut statement = connection.prepare_cached(&find)?;
        statement.query_row([run.to_string()], record).optional()
    };
    find()
        .map_err(|error| store.error(error))?
        .ok_or_else(|| Error::NoSuchRun {
            run: run.to_string(),
        })
}

/// Adds a run.
pub(super) fn insert(
    store: &Store,
    connection: &Connection,
    run: RunId,
    new: &NewRun,
) -> Result<(), Error> {
    let insert = || {
        let insert = "INSERT INTO runs
                          (id, workflow, definition, status, started_at, updated_at, parent)
                      SELECT ?1, ?2, hash, ?4, ?5, ?5, ?6 FROM definitions WHERE hash = ?3";
        let mut statement = connection.prepare_cached(insert)?;
        statement.execute(params![
            run.to_string(),
            new.workflow,
            new.definition.0,
            new.status.as_str(),
            new.started_at,
            new.parent.map(|parent| parent.to_string()),
        ])
    };
    match insert() {
        Ok(0) => {
            let hash = new.definition;
            return Err(Error::NoSuchDefinition { hash });
        }
        Ok(_) => (),
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
        {
            return Err(Error::RunExists { run });
        }
        Err(error) => return Err(store.error(error)),
    }
    if !new.counts {
        return Ok(());
    }
    let success = new.status == Status::Completed;
    count(connection, &new.workflow, success, new.started_at).map_err(|error| store.error(error))
}

/// Counts one run more for a workflow.
fn count(
    connection: &Connection,
    workflow: &str,
    success: bool,
    started_at: u64,
) -> rusqlite::Result<()> {
    let count = "INSERT INTO workflows (name, run_count, success_count, last_run)
                 VALUES (?1, 1, ?2, ?3)
                 ON CONFLICT (name) DO UPDATE SET
                     run_count = run_count + 1,
                     success_count = success_count + excluded.success_count,
                     last_run = max(last_run, excluded.last_run)";
    let mut statement = connection.prepare_cached(count)?;
    statement
        .execute(params![workflow, success, started_at])
        .map(drop)
}

/// Changes the record of a run.
pub(super) fn update(
    connection: &Connection,
    key: i64,
    update: &RunUpdate,
    output: Option<Hash>,
) -> rusqlite::Result<()> {
    if update.begun {
        let find = "SELECT workflow, started_at FROM runs WHERE key = ?1";
        let mut statement = connection.prepare_cached(find)?;
        let (workflow, started_at): (String, u64) =
            statement.query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        count(connection, &workflow, false, started_at)?;
    }
    if let Some(status) = update.status {
        let count = "UPDATE workflows
                     SET success_count = success_count + (?2 = 'completed') - (old.status = 'completed')
                     FROM (SELECT workflow, status FROM runs WHERE key = ?1) AS old
                     WHERE name = old.workflow
                       AND (?2 = 'completed') <> (old.status = 'completed')";
        let mut statement = connection.prepare_cached(count)?;
        statement.execute(params![key, status.as_str()])?;
    }
    let change = "UPDATE runs SET
                      updated_at = ?2,
                      status = ifnull(?3, status),
                      wake_at = iif(?4, ?5, wake_at),
                      pending = iif(?6, ?7, pending),
                      error = iif(?8, ?9, error),
                      output = ifnull(?10, output)
                  WHERE key = ?1";
    let mut statement = connection.prepare_cached(change)?;
    statement
        .execute(params![
            key,
            update.at,
            update.status.map(Status::as_str),
            update.wake_at.is_some(),
            update.wake_at.flatten(),
            update.pending.is_some(),
            update.pending.clone().flatten(),
            update.error.is_some(),
            update.error.clone().flatten(),
            output.map(|output| output.0),
        ])
        .map(drop)
}

/// A row of `COLUMNS`.
fn record(row: &Row<'_>) -> rusqlite::Result<(i64, RunRecord)> {
    let parent: Option<String> = row.get(7)?;
    let record = RunRecord {
        id: id(row, 1)?,
        workflow: row.get(2)?,
        definition: Hash(row.get(3)?),
        status: Status::stored(&row.get::<_, String>(4)?)?,
        started_at: row.get(5)?,
        updated_at: row.get(6)?,
        parent: parent.map(|_| id(row, 7)).transpose()?,
        wake_at: row.get(8)?,
        pending: row.get(9)?,
        error: row.get(10)?,
        has_output: row.get(11)?,
    };
    Ok((row.get(0)?, record))
}

/// The id of a run in a column.
pub(super) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<RunId> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| {
        let error = Box::<Error>::new(error);
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error)
    })
}
