//! The tables of a journal, and how an older journal gets them.

use rusqlite::{Connection, Transaction, TransactionBehavior};

/// Tells a journal from the databases of other programs: `FLOW`.
pub(super) const APPLICATION: i64 = 0x464c_4f57;

/// What each version adds to the one before. Entries are never changed, only added: every journal
/// ever written can be brought up to date.
const VERSIONS: &[&str] = &[
    "
    CREATE TABLE definitions (
        hash BLOB NOT NULL PRIMARY KEY,
        body BLOB NOT NULL
    ) STRICT;

    CREATE TABLE runs (
        key        INTEGER PRIMARY KEY AUTOINCREMENT,
        id         TEXT    NOT NULL UNIQUE,
        workflow   TEXT    NOT NULL,
        definition BLOB    NOT NULL,
        status     TEXT    NOT NULL,
        started_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        parent     TEXT,
        pending    TEXT,
        error      TEXT,
        output     BLOB
    ) STRICT;
    CREATE INDEX runs_status     ON runs (status);
    CREATE INDEX runs_workflow   ON runs (workflow, status);
    CREATE INDEX runs_parent     ON runs (parent);
    CREATE INDEX runs_definition ON runs (definition);

    -- Counted as runs start and end, so that they outlive the runs and cost no scan.
    CREATE TABLE workflows (
        name          TEXT    NOT NULL PRIMARY KEY,
        run_count     INTEGER NOT NULL,
        success_count INTEGER NOT NULL,
        last_run      INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- With a rowid: the events of many runs under way share the last pages of the table.
    CREATE TABLE events (
        run   INTEGER NOT NULL,
        seq   INTEGER NOT NULL,
        at    INTEGER NOT NULL,
        kind  TEXT    NOT NULL,
        whole INTEGER,
        body  BLOB    NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT;

    CREATE TABLE blobs (
        hash   BLOB    NOT NULL PRIMARY KEY,
        marked INTEGER NOT NULL,
        body   BLOB    NOT NULL
    ) STRICT;
    CREATE TABLE blob_uses (
        run  INTEGER NOT NULL,
        hash BLOB    NOT NULL,
        PRIMARY KEY (run, hash)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_uses_hash ON blob_uses (hash);

    CREATE TABLE snapshots (
        run  INTEGER PRIMARY KEY,
        seq  INTEGER NOT NULL,
        body BLOB    NOT NULL
    ) STRICT;

    CREATE TABLE processes (
        run        INTEGER NOT NULL,
        action     TEXT    NOT NULL,
        pgid       INTEGER NOT NULL,
        started_at INTEGER NOT NULL,
        boot       TEXT    NOT NULL,
        birth      INTEGER NOT NULL,
        PRIMARY KEY (run, action)
    ) STRICT, WITHOUT ROWID;
    ",
    "
    ALTER TABLE runs ADD COLUMN wake_at INTEGER;
    CREATE INDEX runs_wake_at ON runs (wake_at) WHERE wake_at IS NOT NULL;

    CREATE TABLE memory (
        key        TEXT    NOT NULL PRIMARY KEY,
        value      BLOB    NOT NULL,
        updated_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE log_chunks (
        place  INTEGER PRIMARY KEY AUTOINCREMENT,
        run    INTEGER NOT NULL,
        action TEXT    NOT NULL,
        stream INTEGER NOT NULL,
        start  INTEGER NOT NULL,
        bytes  BLOB    NOT NULL,
        UNIQUE (run, action, stream, start)
    ) STRICT;
    CREATE INDEX log_chunks_run ON log_chunks (run);
    CREATE TABLE log_streams (
        run    INTEGER NOT NULL,
        action TEXT    NOT NULL,
        stream INTEGER NOT NULL,
        start  INTEGER NOT NULL,
        finish INTEGER NOT NULL,
        PRIMARY KEY (run, action, stream)
    ) STRICT, WITHOUT ROWID;
    ",
    "
    -- The workflow that holds the definition a run came with, and whether that was stored for it.
    ALTER TABLE runs ADD COLUMN kept_as TEXT;
    ALTER TABLE runs ADD COLUMN kept_new INTEGER;
    ",
];

/// The version this program writes.
pub(super) const VERSION: i64 = VERSIONS.len() as i64;

/// The version of a database: zero when it is empty.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Whether a database has tables that are not a journal's.
pub(super) fn is_foreign(connection: &Connection) -> rusqlite::Result<bool> {
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application == APPLICATION {
        return Ok(false);
    }
    connection.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| {
        row.get(0)
    })
}

/// Brings a database of an older version, or an empty one, up to date: entirely or not at all.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let migration = Transaction::new(connection, TransactionBehavior::Immediate)?;
    let done = usize::try_from(version(&migration)?).unwrap_or(0);
    for additions in VERSIONS.iter().skip(done) {
        migration.execute_batch(additions)?;
    }
    migration.pragma_update(None, "application_id", APPLICATION)?;
    migration.pragma_update(None, "user_version", VERSION)?;
    migration.commit()
}
