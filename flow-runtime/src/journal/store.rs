//! The file of a journal: how it is made, opened and looked after.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Error, Options, schema};

/// Connections for reading that are kept for the next reader.
const KEPT: usize = 4;

/// Where a journal is, and its connections for reading.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    options: Options,
    identity: (u64, u64),
    /// It can only be read: there is no room for what SQLite keeps beside a journal in use.
    sealed: bool,
    readers: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens the journal, making it or bringing it up to date where needed, and gives the
    /// connection to write with.
    pub(super) fn open(path: &Path, options: Options) -> Result<(Store, Connection), Error> {
        let path = place(path)?;
        let lock_dir = path.with_file_name("locks");
        private_dir(&lock_dir)?;

        // One opener at a time, in this process and in others: a file is not yet a journal while
        // it is being made, and closing it then would drop the locks SQLite holds on it.
        let gate = lock_dir.join(".open");
        let gate_file = private_file(&gate).map_err(|error| Error::io(&gate, error))?;
        wait_for(&gate_file, &path, options.busy_timeout)?;

        make(&path)?;
        let mut store = Store {
            path,
            options,
            identity: (0, 0),
            sealed: false,
            readers: Mutex::default(),
        };
        let writer = match store.writer() {
            Err(full @ Error::Full { .. }) => store.seal(full)?,
            writer => writer?,
        };
        store.identity = store.find().ok_or_else(|| Error::Moved {
            path: store.path.clone(),
        })?;
        Ok((store, writer))
    }

    /// Gives a connection to a journal that nothing can be written to, if it is as whoever used it
    /// last has left it; else why not.
    fn seal(&mut self, full: Error) -> Result<Connection, Error> {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        // What stands in a log is not in the main file, and would be missed.
        if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
            return Err(full);
        }
        self.sealed = true;
        let open = || {
            let reader = self.connection()?;
            let is_known =
                schema::version(&reader)? == schema::VERSION && !schema::is_foreign(&reader)?;
            Ok::<_, rusqlite::Error>(is_known.then_some(reader))
        };
        open().ok().flatten().ok_or(full)
    }

    /// Why nothing can be written, from the start.
    pub(super) fn is_sealed(&self) -> Option<Error> {
        self.sealed.then(|| Error::Full {
            path: self.path.clone(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn error(&self, error: rusqlite::Error) -> Error {
        Error::sqlite(&self.path, self.options.busy_timeout, error)
    }

    pub(super) fn corrupt(&self, detail: impl Into<String>) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            detail: detail.into(),
        }
    }

    /// Whether the file that was opened is still the one at the path.
    pub(super) fn is_in_place(&self) -> bool {
        self.find() == Some(self.identity)
    }

    fn find(&self) -> Option<(u64, u64)> {
        let found = fs::symlink_metadata(&self.path).ok()?;
        Some((found.dev(), found.ino()))
    }

    /// Reads with a connection of its own, from one state of the journal, however much is written
    /// meanwhile.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let kept = self.lock_readers().pop();
        let reader = match kept {
            Some(reader) => reader,
            None => self.reader()?,
        };
        let run = |sql| {
            let mut statement = reader.prepare_cached(sql)?;
            statement.execute([])
        };
        run("BEGIN").map_err(|error| self.error(error))?;
        let result = work(&reader);
        if run("COMMIT").is_ok() {
            let mut readers = self.lock_readers();
            if readers.len() < KEPT {
                readers.push(reader);
            }
        }
        result
    }

    /// Closes the connections for reading that nobody uses.
    pub(super) fn close_readers(&self) {
        self.lock_readers().clear();
    }

    fn lock_readers(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> Result<Connection, Error> {
        let open = || {
            let reader = self.connection()?;
            reader.pragma_update(None, "query_only", true)?;
            // Only a writer that knows its writes to be good moves them into the main file.
            reader.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            Ok(reader)
        };
        open().map_err(|error| self.error(error))
    }

    fn writer(&self) -> Result<Connection, Error> {
        let raise = |error| self.error(error);
        let mut writer = self.connection().map_err(|error| {
            // SQLite says only that it cannot open the file; the system says why.
            let cannot_open = error.sqlite_error_code() == Some(ErrorCode::CannotOpen);
            match OpenOptions::new().read(true).write(true).open(&self.path) {
                Err(reason) if cannot_open => Error::io(&self.path, reason),
                _ => raise(error),
            }
        })?;
        let found = schema::version(&writer).map_err(raise)?;
        if schema::is_foreign(&writer).map_err(raise)? {
            return Err(Error::Foreign {
                path: self.path.clone(),
            });
        }
        if found > schema::VERSION {
            return Err(Error::Newer {
                path: self.path.clone(),
                found,
                known: schema::VERSION,
            });
        }
        let prepare = |writer: &mut Connection| {
            if found == 0 {
                writer.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
            }
            let mode = writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| {
                row.get::<_, String>(0)
            })?;
            if mode != "wal" {
                return Ok(false);
            }
            writer.pragma_update(None, "synchronous", "FULL")?;
            writer.pragma_update(None, "fullfsync", true)?;
            writer.pragma_update(None, "checkpoint_fullfsync", true)?;
            writer.pragma_update(None, "journal_size_limit", 64 << 20)?;
            if let Some(limit) = self.options.max_bytes {
                let page: u64 = writer.query_row("PRAGMA page_size", [], |row| row.get(0))?;
                writer.pragma_update(None, "max_page_count", (limit / page.max(1)).max(1))?;
            }
            if found < schema::VERSION {
                schema::migrate(writer)?;
            }
            Ok(true)
        };
        if prepare(&mut writer).map_err(raise)? {
            return Ok(writer);
        }
        let reason = "its file system does not let several processes share a database";
        Err(Error::io(&self.path, io::Error::other(reason)))
    }

    fn connection(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = if self.sealed {
            let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(unchanging(&self.path), flags)?
        } else {
            Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_READ_WRITE)?
        };
        connection.busy_timeout(self.options.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(64);
        // The file may have come with a project: nothing in its schema is to run by itself.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(connection)
    }
}

/// The address of a file that SQLite needs nothing beside to read.
fn unchanging(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                address.push(char::from(*byte));
            }
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address + "?immutable=1"
}

/// Takes a lock, or gives up when it takes too long.
fn wait_for(gate: &File, journal: &Path, patience: Duration) -> Result<(), Error> {
    let deadline = Instant::now() + patience;
    loop {
        match gate.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Error::io(journal, error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(Error::Locked {
                    path: journal.to_owned(),
                    waited: patience,
                });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// The journal's path with its directory made and its links followed.
fn place(path: &Path) -> Result<PathBuf, Error> {
    let Some(name) = path.file_name() else {
        return Err(Error::IsDirectory {
            path: path.to_owned(),
        });
    };
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    private_dir(dir)?;
    let dir = dir.canonicalize().map_err(|error| Error::io(dir, error))?;
    Ok(dir.join(name))
}

/// Makes a directory that only the user may enter. One that exists is left as it is.
pub(super) fn private_dir(dir: &Path) -> Result<(), Error> {
    let mut maker = fs::DirBuilder::new();
    maker.recursive(true).mode(0o700);
    maker.create(dir).map_err(|error| Error::io(dir, error))
}

/// Opens a file that only the user may read, making it where needed.
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    let mut opener = OpenOptions::new();
    opener.read(true).write(true).create(true).mode(0o600);
    opener.open(path)
}

/// Makes sure of a file at the path that only the user may read. SQLite gives its own files beside
/// it the same permissions.
fn make(path: &Path) -> Result<(), Error> {
    let raise = |error| Error::io(path, error);
    let mut maker = OpenOptions::new();
    match maker.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
        Err(error) => return Err(raise(error)),
    }
    let found = fs::symlink_metadata(path).map_err(raise)?;
    let path = path.to_owned();
    if found.is_dir() {
        return Err(Error::IsDirectory { path });
    }
    if !found.is_file() {
        return Err(Error::NotAFile { path });
    }
    let own = found.permissions().mode() & 0o700;
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.clone().into_os_string();
        file.push(suffix);
        // SQLite's own files beside a journal that was read-only for a while are so still.
        tighten(Path::new(&file), own)?;
    }
    Ok(())
}

/// Takes a file away from everyone but the user, who may do with it what the mode says.
fn tighten(path: &Path, own: u32) -> Result<(), Error> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let mode = found.permissions().mode();
    if mode & 0o777 == own {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(own))
        .map_err(|error| Error::io(path, error))
}
