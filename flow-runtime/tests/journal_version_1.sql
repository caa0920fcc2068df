-- A journal as version 1 wrote it: one run that waits, with a value stored apart and a snapshot.
PRAGMA journal_mode = WAL;
PRAGMA application_id = 1179406167;
CREATE TABLE definitions (hash BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT;
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
CREATE TABLE workflows (
    name          TEXT    NOT NULL PRIMARY KEY,
    run_count     INTEGER NOT NULL,
    success_count INTEGER NOT NULL,
    last_run      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE snapshots (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE processes (
    run        INTEGER NOT NULL,
    action     TEXT    NOT NULL,
    pgid       INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    boot       TEXT    NOT NULL,
    birth      INTEGER NOT NULL,
    PRIMARY KEY (run, action)
) STRICT, WITHOUT ROWID;

INSERT INTO definitions VALUES
    (x'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad', CAST('abc' AS BLOB));
INSERT INTO runs VALUES
    (1, 'r-01kdvdna0000000007', 'hello',
     x'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
     'waiting', 1767225600000, 1767225600009, NULL, 'an answer', NULL, NULL);
INSERT INTO workflows VALUES ('hello', 1, 0, 1767225600000);
INSERT INTO events VALUES
    (1, 1, 1767225600000, 'started', NULL, CAST('{"inputs":{}}' AS BLOB)),
    (1, 2, 1767225600005, 'ended', 16,
     CAST('{"long":' || char(1)
          || '5aa762ae383fbb727af3c7a36d4940a5b8c40a989452d2304fc958ff3f354e7a' || '}' AS BLOB)),
    (1, 3, 1767225600009, 'asked', NULL, CAST('[ 1, 2 ]' AS BLOB));
-- The hash is that of the quoted text.
INSERT INTO blobs VALUES
    (x'5aa762ae383fbb727af3c7a36d4940a5b8c40a989452d2304fc958ff3f354e7a', 0, CAST('"hello"' AS BLOB));
INSERT INTO blob_uses VALUES
    (1, x'5aa762ae383fbb727af3c7a36d4940a5b8c40a989452d2304fc958ff3f354e7a');
INSERT INTO snapshots VALUES (1, 1, CAST('{"at":1}' AS BLOB));
INSERT INTO processes VALUES (1, 'ask/1', 4242, 1767225600004, 'boot', 77);
PRAGMA user_version = 1;
