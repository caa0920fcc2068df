//! The desk where a journal is written, and the thread that works at it.
//!
//! All writes go through one connection. What arrives while a commit is under way goes into the
//! next one together, so that many runs share the cost of reaching the disk. A run that writes
//! alone has nobody to share with: it may write by itself, and nobody has to be woken for it.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::fault::{self, Moment};
use super::receipt::{Answer, Receipt, receipt};
use super::store::Store;
use super::{Error, RunId};

/// At most this many writes share a commit, so that none waits for ever in a full queue.
const GROUP: usize = 1024;

/// Pages in the write-ahead log from which on they are moved to the main file.
const CHECKPOINT: i32 = 1000;

/// A commit that takes longer is not waited for on the thread of whoever asks.
const QUICK: Duration = Duration::from_millis(2);

/// The handle of the desk and of its thread.
#[derive(Debug)]
pub(super) struct Writer {
    store: Arc<Store>,
    desk: Arc<Mutex<Desk>>,
    queue: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    standing: Arc<Standing>,
    /// The run that wrote last.
    last: Mutex<Option<RunId>>,
}

/// What is known of the desk without sitting at it.
#[derive(Debug, Default)]
struct Standing {
    /// Writes that are queued or under way.
    open: AtomicUsize,
    /// The last commit took its time.
    slow: AtomicBool,
    poison: OnceLock<Arc<Error>>,
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
    /// Starts the thread. The connection is used at the desk alone from now on.
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
        let standing = Arc::new(Standing::default());
        if let Some(full) = store.is_sealed() {
            let _ = standing.poison.set(Arc::new(full));
        }
        let (queue, jobs) = channel();
        let desk = Arc::new(Mutex::new(Desk {
            store: Arc::clone(&store),
            connection,
            frames,
            standing: Arc::clone(&standing),
        }));
        let place = Arc::clone(&desk);
        let thread = thread::Builder::new()
            .name("flow-journal".to_owned())
            .spawn(move || work(&place, &jobs))
            .map_err(|error| Error::io(store.path(), error))?;
        Ok(Writer {
            store,
            desk,
            queue: Some(queue),
            thread: Some(thread),
            standing,
            last: Mutex::default(),
        })
    }

    /// Queues a write.
    pub(super) fn submit<T, F>(&self, work: F) -> Receipt<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (job, receipt) = self.job(work);
        self.queue(job);
        receipt
    }

    /// Does a write of a run here if the run writes alone, nobody is in the way and the disk is
    /// quick; else queues it.
    pub(super) fn submit_of<T, F>(&self, run: RunId, work: F) -> Receipt<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    {
        let (mut job, receipt) = self.job(work);
        if self.is_alone(run)
            && let Ok(desk) = self.desk.try_lock()
        {
            match desk.serve_at_once(job) {
                Ok(()) if desk.is_full() => drop(self.submit(|_| Ok(()))),
                Ok(()) => {}
                Err(refused) => {
                    job = refused;
                    self.queue(job);
                }
            }
        } else {
            self.queue(job);
        }
        receipt
    }

    fn job<T, F>(&self, work: F) -> (Box<dyn Job>, Receipt<T>)
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
        (job, receipt)
    }

    fn queue(&self, job: Box<dyn Job>) {
        if let Some(queue) = &self.queue {
            self.standing.open.fetch_add(1, Ordering::Relaxed);
            // A job that comes back unsent answers for itself when it is dropped.
            let _ = queue.send(job);
        }
    }

    /// Whether nobody else would share a commit with this run: it wrote last, nothing is queued,
    /// and the disk does not keep its writers waiting.
    fn is_alone(&self, run: RunId) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.replace(run) == Some(run)
            && self.standing.open.load(Ordering::Relaxed) == 0
            && !self.standing.slow.load(Ordering::Relaxed)
    }

    /// Why nothing is written any more.
    pub(super) fn poison(&self) -> Option<Arc<Error>> {
        self.standing.poison.get().cloned()
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

/// Serves what is queued, until nobody can queue any more.
fn work(desk: &Mutex<Desk>, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(first) = jobs.recv() {
        let desk = sit_down(desk);
        let mut group = vec![(first, None)];
        group.extend(jobs.try_iter().take(GROUP - 1).map(|job| (job, None)));
        let open = group.len();
        desk.serve(group);
        desk.standing.open.fetch_sub(open, Ordering::Relaxed);
        desk.checkpoint();
    }
}

fn sit_down(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What it takes to write.
#[derive(Debug)]
struct Desk {
    store: Arc<Store>,
    connection: Connection,
    frames: Arc<AtomicI32>,
    standing: Arc<Standing>,
}

/// Writes that share a commit, each with what went wrong with it alone.
type Group = Vec<(Box<dyn Job>, Option<Error>)>;

impl Desk {
    /// Does a group of writes in one transaction and answers each.
    fn serve(&self, mut group: Group) {
        fault::reached(Moment::BeforeCommit);
        let failure = self.commit(&mut group).err();
        self.answer(group, failure);
    }

    /// The same for one write, unless another process is writing: then the write is given back.
    fn serve_at_once(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if self.usable().is_err() || !self.begins_at_once() {
            return Err(job);
        }
        fault::reached(Moment::BeforeCommit);
        let mut group = vec![(job, None)];
        let failure = self.finish(&mut group);
        let failure = failure.or_else(|error| self.fail(error)).err();
        self.answer(group, failure);
        Ok(())
    }

    fn answer(&self, group: Group, failure: Option<Error>) {
        fault::reached(Moment::AfterCommit);
        for (job, own) in group {
            job.answer(own.or_else(|| failure.clone()));
        }
    }

    /// Does a group of writes in one transaction. Notes beside each what went wrong with it alone.
    fn commit(&self, group: &mut Group) -> Result<(), Error> {
        self.usable()?;
        self.execute("BEGIN IMMEDIATE")
            .and_then(|()| self.finish(group))
            .or_else(|error| self.fail(error))
    }

    /// Why nothing may be written.
    fn usable(&self) -> Result<(), Error> {
        if let Some(cause) = self.standing.poison.get() {
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
        Ok(())
    }

    /// Begins a transaction if that needs no waiting.
    fn begins_at_once(&self) -> bool {
        let patience = self.store.options().busy_timeout;
        let begun = self.connection.busy_timeout(Duration::ZERO).is_ok()
            && self.execute("BEGIN IMMEDIATE").is_ok();
        let patient = self.connection.busy_timeout(patience).is_ok();
        if begun && !patient {
            let _ = self.execute("ROLLBACK");
        }
        begun && patient
    }

    /// Does the writes of a transaction that has begun, and commits it.
    fn finish(&self, group: &mut Group) -> Result<(), Error> {
        let began = Instant::now();
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
        let done = self.execute("COMMIT");
        let slow = began.elapsed() > QUICK;
        self.standing.slow.store(slow, Ordering::Relaxed);
        done
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
            let _ = self.standing.poison.set(Arc::new(error.clone()));
            let option = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            // Without it, closing would write once more.
            let _ = self.connection.set_db_config(option, true);
        }
        Err(error)
    }

    /// Whether there are pages to be moved to the main file.
    fn is_full(&self) -> bool {
        self.frames.load(Ordering::Relaxed) >= CHECKPOINT
    }

    /// Moves written pages to the main file, as far as no reader still needs the old ones.
    fn checkpoint(&self) {
        if self.standing.poison.get().is_some() || !self.is_full() {
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
