//! Writing and reading the events of runs.

use std::ops::RangeBounds;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::body::{self, Blob, Stored};
use super::record::{Append, Event, Loaded, NewRun, RunUpdate, Snapshot, Status};
use super::runs::{self, key};
use super::store::Store;
use super::{Error, Hash, Journal, Receipt, RunId};

impl Journal {
    /// Writes a part of a run's history and waits until it is on the disk. Gives the number of the
    /// last event.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`] when another writer was first, [`Error::RunExists`], [`Error::NoSuchRun`],
    /// [`Error::NoSuchDefinition`], [`Error::TooLarge`]; [`Error::Locked`] when another process
    /// keeps the journal: then nothing was written. After [`Error::Full`] or [`Error::Io`] it is
    /// unknown whether it was: open the journal again and look.
    pub fn append(&self, append: Append) -> Result<u64, Error> {
        self.submit(append).wait()
    }

    /// Like [`append`](Journal::append), without waiting: the receipt can be awaited.
    pub fn submit(&self, append: Append) -> Receipt<u64> {
        let store = Arc::clone(&self.store);
        // Splitting and hashing happen here, not on the thread that all writers share.
        let prepared = Prepared::new(append, store.options().large_value);
        self.writer
            .submit(move |connection| prepared?.write(&store, connection))
    }

    /// Like [`submit`](Journal::submit), for the one that drives the run: while its run is the only
    /// one that writes, and the disk is quick, the write is done on this thread before this returns.
    /// That spares two threads from waking each other; many runs still share their commits.
    pub fn record(&self, append: Append) -> Receipt<u64> {
        let store = Arc::clone(&self.store);
        let run = append.run;
        let prepared = Prepared::new(append, store.options().large_value);
        self.writer
            .submit_of(run, move |connection| prepared?.write(&store, connection))
    }

    /// Stores a definition, once however often it is given, and waits until it is on the disk.
    ///
    /// # Errors
    ///
    /// Those of a write: see [`append`](Journal::append).
    pub fn put_definition(&self, body: &[u8]) -> Result<Hash, Error> {
        let hash = Hash::of(body);
        let find = "SELECT EXISTS (SELECT 1 FROM definitions WHERE hash = ?1)";
        let known = self.read(|connection| {
            let mut statement = connection.prepare_cached(find)?;
            statement.query_row([hash.0], |row| row.get::<_, bool>(0))
        })?;
        if known {
            return Ok(hash);
        }
        let body = body.to_vec();
        self.write(move |connection| {
            let insert = "INSERT INTO definitions (hash, body) VALUES (?1, ?2)
                          ON CONFLICT DO NOTHING";
            let mut statement = connection.prepare_cached(insert)?;
            statement.execute(params![hash.0, body])
        })
        .wait()?;
        Ok(hash)
    }

    /// A definition.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchDefinition`], [`Error::Corrupt`], and those of reading the file.
    pub fn definition(&self, hash: Hash) -> Result<Vec<u8>, Error> {
        let find = "SELECT body FROM definitions WHERE hash = ?1";
        let body: Option<Vec<u8>> = self.read(|connection| {
            let mut statement = connection.prepare_cached(find)?;
            statement.query_row([hash.0], |row| row.get(0)).optional()
        })?;
        let body = body.ok_or(Error::NoSuchDefinition { hash })?;
        if Hash::of(&body) == hash {
            Ok(body)
        } else {
            Err(self.store.corrupt(format!("definition {hash} has changed")))
        }
    }

    /// Stores the whole run as it was after the event with this number, in the place of an older
    /// snapshot, and waits until it is on the disk. A snapshot older than the stored one is ignored.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`]; [`Error::Fenced`] when the run has no such event; those of a write.
    pub fn put_snapshot(&self, run: RunId, seq: u64, body: &[u8]) -> Result<(), Error> {
        body::fits(body)?;
        let store = Arc::clone(&self.store);
        let body = body.to_vec();
        let work = move |connection: &Connection| {
            let key = key(&store, connection, run)?;
            let found = last(connection, key).map_err(|error| store.error(error))?;
            if seq > found {
                let expected = seq;
                return Err(Error::Fenced {
                    run,
                    expected,
                    found,
                });
            }
            snapshot(connection, key, seq, &body).map_err(|error| store.error(error))
        };
        self.writer.submit(work).wait()
    }

    /// What it takes to go on with a run: its record, the newest snapshot and the events after it.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`], [`Error::Corrupt`], and those of reading the file.
    pub fn load(&self, run: RunId) -> Result<Loaded, Error> {
        self.store.read(|connection| {
            let (key, record) = runs::find(&self.store, connection, run)?;
            let find = || {
                let find = "SELECT seq, body FROM snapshots WHERE run = ?1";
                let mut statement = connection.prepare_cached(find)?;
                let read = |row: &rusqlite::Row<'_>| {
                    Ok(Snapshot {
                        seq: row.get(0)?,
                        body: row.get(1)?,
                    })
                };
                statement.query_row([key], read).optional()
            };
            let snapshot = find().map_err(|error| self.store.error(error))?;
            let from = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq) + 1;
            let events = read(&self.store, connection, key, (from, u64::MAX), usize::MAX)?;
            for (event, seq) in events.iter().zip(from..) {
                if event.seq != seq {
                    let detail = format!("event {seq} of run {run} is missing");
                    return Err(self.store.corrupt(detail));
                }
            }
            Ok(Loaded {
                run: record,
                snapshot,
                events,
            })
        })
    }

    /// Events of a run by their numbers, oldest first, at most `limit` of them. Events before a
    /// snapshot are kept as well.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`], [`Error::Corrupt`], and those of reading the file.
    pub fn events(
        &self,
        run: RunId,
        range: impl RangeBounds<u64>,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        let range = super::inclusive(&range);
        self.store.read(|connection| {
            let key = key(&self.store, connection, run)?;
            read(&self.store, connection, key, range, limit)
        })
    }

    /// The result of a run, as JSON text.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`], [`Error::Corrupt`], and those of reading the file.
    pub fn output(&self, run: RunId) -> Result<Option<Vec<u8>>, Error> {
        self.store.read(|connection| {
            let key = key(&self.store, connection, run)?;
            let find = || {
                let find = "SELECT output FROM runs WHERE key = ?1";
                let mut statement = connection.prepare_cached(find)?;
                statement.query_row([key], |row| row.get::<_, Option<[u8; 32]>>(0))
            };
            let hash = find().map_err(|error| self.store.error(error))?;
            let Some(hash) = hash.map(Hash) else {
                return Ok(None);
            };
            let (text, _) = fetch(&self.store, connection, hash)?;
            if Hash::of(&text) == hash {
                Ok(Some(text))
            } else {
                Err(self
                    .store
                    .corrupt(format!("the output of run {run} has changed")))
            }
        })
    }
}

/// An [`Append`] as it is stored.
struct Prepared {
    run: RunId,
    after: Option<u64>,
    start: Option<NewRun>,
    events: Vec<(u64, std::borrow::Cow<'static, str>, Stored)>,
    update: Option<RunUpdate>,
    output: Option<Blob>,
    snapshot: Option<Vec<u8>>,
}

impl Prepared {
    fn new(append: Append, threshold: usize) -> Result<Prepared, Error> {
        let mut events = Vec::with_capacity(append.events.len());
        for event in append.events {
            events.push((event.at, event.kind, body::split(event.body, threshold)?));
        }
        let mut update = append.update;
        let output = update.as_mut().and_then(|update| update.output.take());
        for text in output.iter().chain(&append.snapshot) {
            body::fits(text)?;
        }
        let output = output.map(|text| Blob {
            hash: Hash::of(&text),
            text,
            marked: false,
        });
        Ok(Prepared {
            run: append.run,
            after: append.after,
            start: append.start,
            events,
            update,
            output,
            snapshot: append.snapshot,
        })
    }

    fn write(self, store: &Store, connection: &Connection) -> Result<u64, Error> {
        let raise = |error| store.error(error);
        if let Some(new) = &self.start {
            runs::insert(store, connection, self.run, new)?;
        }
        let key = key(store, connection, self.run)?;
        let found = last(connection, key).map_err(raise)?;
        let fits = match self.after {
            Some(after) => found == after,
            None => found > 1 && !runs::is_over(connection, key).map_err(raise)?,
        };
        if !fits {
            return Err(Error::Fenced {
                run: self.run,
                expected: self.after.unwrap_or_default(),
                found,
            });
        }
        let mut seq = found;
        for (at, kind, body) in &self.events {
            seq += 1;
            for blob in &body.blobs {
                keep(connection, key, blob).map_err(raise)?;
            }
            let insert = "INSERT INTO events (run, seq, at, kind, whole, body)
                          VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let mut statement = connection.prepare_cached(insert).map_err(raise)?;
            statement
                .execute(params![key, seq, at, kind, body.whole, body.text])
                .map_err(raise)?;
        }
        if let Some(output) = &self.output {
            keep(connection, key, output).map_err(raise)?;
        }
        if let Some(update) = &self.update {
            let output = self.output.as_ref().map(|output| output.hash);
            runs::update(connection, key, update, output).map_err(raise)?;
        }
        if let Some(body) = &self.snapshot {
            snapshot(connection, key, seq, body).map_err(raise)?;
        }
        Ok(seq)
    }
}

/// The number of the last event of a run.
fn last(connection: &Connection, key: i64) -> rusqlite::Result<u64> {
    let find = "SELECT ifnull(max(seq), 0) FROM events WHERE run = ?1";
    let mut statement = connection.prepare_cached(find)?;
    statement.query_row([key], |row| row.get(0))
}

fn snapshot(connection: &Connection, key: i64, seq: u64, body: &[u8]) -> rusqlite::Result<()> {
    let insert = "INSERT INTO snapshots (run, seq, body) VALUES (?1, ?2, ?3)
                  ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, body = excluded.body
                  WHERE excluded.seq >= snapshots.seq";
    let mut statement = connection.prepare_cached(insert)?;
    statement.execute(params![key, seq, body]).map(drop)
}

/// Keeps a value for as long as the run is kept.
fn keep(connection: &Connection, key: i64, blob: &Blob) -> rusqlite::Result<()> {
    let insert = "INSERT INTO blobs (hash, marked, body) VALUES (?1, ?2, ?3)
                  ON CONFLICT DO NOTHING";
    let mut statement = connection.prepare_cached(insert)?;
    statement.execute(params![blob.hash.0, blob.marked, blob.text])?;
    let insert = "INSERT INTO blob_uses (run, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let mut statement = connection.prepare_cached(insert)?;
    statement.execute(params![key, blob.hash.0]).map(drop)
}

/// A value that was taken out, and whether others were taken out of it.
fn fetch(store: &Store, connection: &Connection, hash: Hash) -> Result<(Vec<u8>, bool), Error> {
    let find = || {
        let find = "SELECT body, marked FROM blobs WHERE hash = ?1";
        let mut statement = connection.prepare_cached(find)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        statement.query_row([hash.0], read).optional()
    };
    find()
        .map_err(|error| store.error(error))?
        .ok_or_else(|| store.corrupt(format!("value {hash} is missing")))
}

/// Events with the numbers from the first to the last of `range`.
fn read(
    store: &Store,
    connection: &Connection,
    key: i64,
    range: (u64, u64),
    limit: usize,
) -> Result<Vec<Event>, Error> {
    let find = || {
        let find = "SELECT seq, at, kind, body, whole FROM events
                    WHERE run = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq LIMIT ?4";
        let mut statement = connection.prepare_cached(find)?;
        let read = |row: &rusqlite::Row<'_>| {
            let event = Event {
                seq: row.get(0)?,
                at: row.get(1)?,
                kind: row.get(2)?,
                body: row.get(3)?,
            };
            Ok((event, row.get::<_, Option<usize>>(4)?))
        };
        let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = params![key, bound(range.0), bound(range.1), limit];
        let rows = statement.query_map(rows, read)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    let rows = find().map_err(|error| store.error(error))?;
    rows.into_iter()
        .map(|(mut event, whole)| {
            if let Some(whole) = whole {
                let fetch = |hash| fetch(store, connection, hash);
                event.body = body::restore(event.body, whole, fetch, |what| store.corrupt(what))?;
            }
            Ok(event)
        })
        .collect()
}

impl Status {
    /// The status a journal holds, where it holds one.
    pub(super) fn stored(text: &str) -> rusqlite::Result<Status> {
        text.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                0,
                rusqlite::types::Type::Text,
                Box::<super::NotAStatus>::new(error),
            )
        })
    }
}
