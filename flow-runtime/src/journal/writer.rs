//! The thread that writes.
//!
//! All writes of a journal go through one thread. What arrives while a commit is under way goes
//! into the next one together, so that many runs share the cost of reaching the disk.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::Error;
use super::fault::{self, Moment};
use super::receipt::{Answer, Receipt, receipt};
use super::store::Store;

/// At most this many writes share a commit, so that none waits for ever in a full queue.
const GROUP: usize = 1024;

/// Pages in the write-ahead log from which on they are moved to the main file.
const CHECKPOINT: i32 = 1000;

/// The handle of the writing thread.
#[derive(Debug)]
pub(super) struct Writer {
    store: Arc<Store>,
    queue: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    poison: Arc<OnceLock<Arc<Error>>>,
}

/// One write.
trait Job: Send {
    /// Does it, within a transaction.
    fn run(&mut self, connection: &Connection) -> Result<(), Error>;
    /// Answers it: with the result of `run` when the transaction is on the disk, else with why not.
    fn answer(self: Box<Self>, failure: Option<Error>);
}

struct Write<T, F> {
    work: Option<F>,
    result: Option<Result<T, Error>>,
    answer: Answer<T>,
}

impl<T, F> Job for Write<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Error> + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), Error> {
        let Some(work) = self.work.take() else {
            return Ok(());
        };
        let result = work(connection);
        let outcome = result.as_ref().map(|_| ()).map_err(Error::clone);
        self.result = Some(result);
        outcome
    }

    fn answer(self: Box<Self>, failure: Option<Error>) {
        match (failure, self.result) {
            (Some(failure), _) => self.answer.give(Err(failure)),
            (None, Some(result)) => self.answer.give(result),
            (None, None) => drop(self.answer),
        }
    }
}

impl Writer {
    /// Starts the thread, which owns the connection from now on.
    pub(super) fn start(store: Arc<Store>, mut connection: Connection) -> Result<Writer, Error> {
        let frames = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&frames);
        // In the place of SQLite's own, which would do it before the commit is answered.
        connection
            .wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
                seen.store(pages, Ordering::Relaxed);
                Ok(())
            }))
            .map_err(|error| store.error(error))?;
        let poison = Arc::new(OnceLock::new());
        let (queue, jobs) = channel();
        let desk = Desk {
            store: Arc::clone(&store),
            connection,
            frames,
            poison: Arc::clone(&poison),
        };
        let thread = thread::Builder::new()
            .name("flow-journal".to_owned())
            .spawn(move || desk.work(&jobs))
            .map_err(|error| Error::io(store.path(), error))?;
        Ok(Writer {
            store,
            queue: Some(queue),
            thread: Some(thread),
            poison,
        })
    }

    /// Queues a write.
    pub(super) fn submit<T, F>(&self, work: F) -> Receipt<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (answer, receipt) = receipt(self.store.path().to_owned());
        let job = Box::new(Write {
            work: Some(work),
            result: None,
            answer,
        });
        if let Some(queue) = &self.queue {
            // A job that comes back unsent answers for itself when it is dropped.
            let _ = queue.send(job);
        }
        receipt
    }

    /// Why nothing is written any more.
    pub(super) fn poison(&self) -> Option<Arc<Error>> {
        self.poison.get().cloned()
    }
}

impl Drop for Writer {
    /// Lets the thread finish what is queued, then close the file.
    fn drop(&mut self) {
        self.store.close_readers();
        drop(self.queue.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A thread that ended by a panic has answered everyone with `Closed`.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Desk {
    store: Arc<Store>,
    connection: Connection,
    frames: Arc<AtomicI32>,
    poison: Arc<OnceLock<Arc<Error>>>,
}

impl Desk {
    fn work(self, jobs: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = jobs.recv() {
            let mut group = vec![(first, None)];
            group.extend(jobs.try_iter().take(GROUP - 1).map(|job| (job, None)));
            fault::reached(Moment::BeforeCommit);
            let failure = self.commit(&mut group).err();
            fault::reached(Moment::AfterCommit);
            for (job, own) in group {
                job.answer(own.or_else(|| failure.clone()));
            }
            self.checkpoint();
        }
    }

    /// Does a group of writes in one transaction. Notes beside each what went wrong with it alone.
    fn commit(&self, group: &mut [(Box<dyn Job>, Option<Error>)]) -> Result<(), Error> {
        if let Some(cause) = self.poison.get() {
            return Err(Error::Poisoned {
                path: self.store.path().to_owned(),
                cause: Arc::clone(cause),
            });
        }
        if !self.store.is_in_place() {
            return self.fail(Error::Moved {
                path: self.store.path().to_owned(),
            });
        }
        self.transact(group).or_else(|error| self.fail(error))
    }

    fn transact(&self, group: &mut [(Box<dyn Job>, Option<Error>)]) -> Result<(), Error> {
        self.execute("BEGIN IMMEDIATE")?;
        for (job, own) in group {
            self.execute("SAVEPOINT one")?;
            match job.run(&self.connection) {
                Ok(()) => (),
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => {
                    self.execute("ROLLBACK TO one")?;
                    *own = Some(error);
                }
            }
            self.execute("RELEASE one")?;
        }
        self.execute("COMMIT")
    }

    fn execute(&self, sql: &str) -> Result<(), Error> {
        let run = || self.connection.prepare_cached(sql)?.execute([]);
        run().map(drop).map_err(|error| self.store.error(error))
    }

    /// Leaves a transaction that failed, and writing altogether when the disk is not to be trusted:
    /// a write that is tried again after a failed flush may seem to succeed and be lost.
    fn fail(&self, error: Error) -> Result<(), Error> {
        if !self.connection.is_autocommit() {
            // SQLite has rolled back by itself after most errors that make this one fail.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        let stuck = !self.connection.is_autocommit();
        if error.is_fatal() || stuck {
            let _ = self.poison.set(Arc::new(error.clone()));
            let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            // Without it, closing would write once more.
            let _ = self.connection.set_db_config(option, true);
        }
        Err(error)
    }

    /// Moves written pages to the main file, as far as no reader still needs the old ones.
    fn checkpoint(&self) {
        if self.poison.get().is_some() || self.frames.load(Ordering::Relaxed) < CHECKPOINT {
            return;
        }
        self.frames.store(0, Ordering::Relaxed);
        let done = self
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = done {
            let error = self.store.error(error);
            if error.is_fatal() {
                // The answer to the next write tells.
                let _ = self.fail(error);
            }
        }
    }
}
