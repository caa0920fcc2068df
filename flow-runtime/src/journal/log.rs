//! What actions write while they run, in pieces and within limits.

use std::ops::RangeBounds;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::runs::key;
use super::{Error, Journal, Receipt, RunId};

/// Where an action writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

impl Stream {
    fn number(self) -> i64 {
        match self {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        }
    }

    fn stored(row: &Row<'_>, column: usize) -> rusqlite::Result<Stream> {
        match row.get(column)? {
            1 => Ok(Stream::Stdout),
            2 => Ok(Stream::Stderr),
            other => Err(rusqlite::Error::IntegralValueOutOfRange(column, other)),
        }
    }
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Where the bytes stand in the stream.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How much of the stream's beginning was dropped, in bytes.
    pub dropped: u64,
    /// How much was written in all, in bytes.
    pub written: u64,
}

impl Log {
    /// The bytes as text, after a line that says what is missing before them.
    ///
    /// ```
    /// # use flow_runtime::journal::Log;
    /// let log = Log { start: 40, bytes: b"done\n".to_vec(), dropped: 40, written: 45 };
    /// assert_eq!(log.text(), "[40 bytes dropped]\ndone\n");
    /// ```
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        if self.dropped > 0 && self.start <= self.dropped {
            format!("[{} bytes dropped]\n{text}", self.dropped)
        } else {
            text.into_owned()
        }
    }
}

/// A piece of what a run wrote, in the order in which it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its place among all pieces of the journal: what the next call goes after.
    pub place: u64,
    /// The action that wrote it.
    pub action: String,
    /// Where to.
    pub stream: Stream,
    /// Where the bytes stand in the stream.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Journal {
    /// Adds to the log of an action. Beyond [`Options::log_limit`](super::Options::log_limit) the
    /// oldest pieces of the stream are dropped. Gives where the bytes stand in the stream.
    ///
    /// Whoever writes much waits for each receipt before the next piece: the queue has no end.
    pub fn log(&self, run: RunId, action: &str, stream: Stream, bytes: &[u8]) -> Receipt<u64> {
        let store = Arc::clone(&self.store);
        let limit = store.options().log_limit;
        // Of a piece beyond the limit only the end is kept; the rest counts as dropped.
        let skipped = bytes.len().saturating_sub(limit);
        let kept = bytes[skipped..].to_vec();
        let action = action.to_owned();
        self.writer.submit(move |connection| {
            let stream = Place {
                run: key(&store, connection, run)?,
                action: &action,
                stream: stream.number(),
            };
            stream
                .add(connection, skipped as u64, &kept, limit as u64)
                .map_err(|error| store.error(error))
        })
    }

    /// A part of what an action wrote: the bytes of the range that are still kept.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`], and those of reading the file.
    pub fn read_log(
        &self,
        run: RunId,
        action: &str,
        stream: Stream,
        range: impl RangeBounds<u64>,
    ) -> Result<Log, Error> {
        let (from, to) = super::inclusive(&range);
        self.store.read(|connection| {
            let stream = Place {
                run: key(&self.store, connection, run)?,
                action,
                stream: stream.number(),
            };
            stream
                .read(connection, from, to)
                .map_err(|error| self.store.error(error))
        })
    }

    /// What a run wrote, all actions and streams, as it arrived: the pieces after a place (zero for
    /// the first), at most `limit` of them.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRun`], and those of reading the file.
    pub fn log_chunks(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Chunk>, Error> {
        self.store.read(|connection| {
            let key = key(&self.store, connection, run)?;
            let read = || {
                let find = "SELECT place, action, stream, start, bytes FROM log_chunks
                            WHERE run = ?1 AND place > ?2 ORDER BY place LIMIT ?3";
                let mut statement = connection.prepare_cached(find)?;
                let after = i64::try_from(after).unwrap_or(i64::MAX);
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                let rows = statement.query_map([key, after, limit], |row| {
                    Ok(Chunk {
                        place: row.get(0)?,
                        action: row.get(1)?,
                        stream: Stream::stored(row, 2)?,
                        start: row.get(3)?,
                        bytes: row.get(4)?,
                    })
                })?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            };
            read().map_err(|error| self.store.error(error))
        })
    }
}

/// One stream of one action.
struct Place<'a> {
    run: i64,
    action: &'a str,
    stream: i64,
}

impl Place<'_> {
    /// Where the kept part of the stream begins and ends.
    fn span(&self, connection: &Connection) -> rusqlite::Result<(u64, u64)> {
        let find = "SELECT start, finish FROM log_streams
                    WHERE run = ?1 AND action = ?2 AND stream = ?3";
        let mut statement = connection.prepare_cached(find)?;
        let span = statement.query_row(params![self.run, self.action, self.stream], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        Ok(span.optional()?.unwrap_or_default())
    }

    fn add(
        &self,
        connection: &Connection,
        skipped: u64,
        bytes: &[u8],
        limit: u64,
    ) -> rusqlite::Result<u64> {
        let (mut start, old) = self.span(connection)?;
        let place = old + skipped;
        let finish = place + bytes.len() as u64;
        if !bytes.is_empty() {
            let insert = "INSERT INTO log_chunks (run, action, stream, start, bytes)
                          VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut statement = connection.prepare_cached(insert)?;
            statement.execute(params![self.run, self.action, self.stream, place, bytes])?;
        }
        if skipped > 0 || finish - start > limit {
            start = self.drop_oldest(connection, finish.saturating_sub(limit), finish)?;
        }
        let change = "INSERT OR REPLACE INTO log_streams (run, action, stream, start, finish)
                      VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut statement = connection.prepare_cached(change)?;
        statement.execute(params![self.run, self.action, self.stream, start, finish])?;
        Ok(place)
    }

    /// Drops the pieces that begin before a place. Gives where the first one left begins.
    fn drop_oldest(
        &self,
        connection: &Connection,
        before: u64,
        finish: u64,
    ) -> rusqlite::Result<u64> {
        let delete = "DELETE FROM log_chunks
                      WHERE run = ?1 AND action = ?2 AND stream = ?3 AND start < ?4";
        let mut statement = connection.prepare_cached(delete)?;
        statement.execute(params![self.run, self.action, self.stream, before])?;
        let find = "SELECT min(start) FROM log_chunks
                    WHERE run = ?1 AND action = ?2 AND stream = ?3";
        let mut statement = connection.prepare_cached(find)?;
        let first: Option<u64> = statement
            .query_row(params![self.run, self.action, self.stream], |row| {
                row.get(0)
            })?;
        Ok(first.unwrap_or(finish))
    }

    fn read(&self, connection: &Connection, from: u64, to: u64) -> rusqlite::Result<Log> {
        let (first, written) = self.span(connection)?;
        let start = from.max(first).min(written);
        let end = to.saturating_add(1).clamp(start, written);
        let mut log = Log {
            start,
            bytes: Vec::new(),
            dropped: first,
            written,
        };
        let find = "SELECT start, bytes FROM log_chunks
                    WHERE run = ?1 AND action = ?2 AND stream = ?3 AND start < ?5
                      AND start >= ifnull((SELECT max(start) FROM log_chunks
                                           WHERE run = ?1 AND action = ?2 AND stream = ?3
                                             AND start <= ?4), 0)
                    ORDER BY start";
        let mut statement = connection.prepare_cached(find)?;
        let mut rows = statement.query(params![self.run, self.action, self.stream, start, end])?;
        while let Some(row) = rows.next()? {
            let at: u64 = row.get(0)?;
            let bytes: Vec<u8> = row.get(1)?;
            let within = |place: u64| {
                let place = place.saturating_sub(at);
                usize::try_from(place)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len())
            };
            log.bytes
                .extend_from_slice(&bytes[within(start)..within(end)]);
        }
        Ok(log)
    }
}
