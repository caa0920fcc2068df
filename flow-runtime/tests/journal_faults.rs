//! Whatever is wrong with a journal is said clearly, and what was acknowledged is not lost.
#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

mod journal_support;

use std::fs::{self, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use flow_runtime::journal::{Append, Error, Hash, Journal, Listing, Options, RunId, Status};
use journal_support::{Other, count, id, one, pause, place, say, start, task};
use rusqlite::Connection;

/// What the other process does.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((task, path)) = task() else { return };
    match task.as_str() {
        "write and wait" => {
            let connection = Connection::open(path).unwrap();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            say("locked");
            pause();
            connection.execute_batch("ROLLBACK").unwrap();
        }
        "keep everyone out" => {
            let connection = Connection::open(path).unwrap();
            let lock = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT";
            connection.execute_batch(lock).unwrap();
            say("locked");
            pause();
        }
        "open" => match Journal::open(path) {
            Ok(_) => say("opened"),
            Err(error) => say(error),
        },
        "append until it fails" => {
            let journal = Journal::open(path).unwrap();
            let (last, error) = append_until_it_fails(&journal, id(1));
            say(last);
            say(match error {
                Error::Io { .. } => "io".to_owned(),
                other => other.to_string(),
            });
            say(is_poisoned(&journal, id(1), last));
        }
        "fail to flush" => {
            let journal = Journal::open(path).unwrap();
            let last = journal.append(one(id(1), 1)).unwrap();
            let flag = std::env::var_os("FAIL_FLUSH").unwrap();
            fs::write(&flag, "").unwrap();
            say(matches!(
                journal.append(one(id(1), last)),
                Err(Error::Io { .. })
            ));
            fs::remove_file(&flag).unwrap();
            say(is_poisoned(&journal, id(1), last));
        }
        other => panic!("{other}"),
    }
}

/// Appends large events. Gives the last that was acknowledged, and what happened then.
fn append_until_it_fails(journal: &Journal, run: RunId) -> (u64, Error) {
    let mut last = journal.load(run).unwrap().last();
    loop {
        let body = format!("\"{}\"", last.to_string().repeat(3000));
        match journal.append(Append::after(run, last).event(1, "big", body)) {
            Ok(now) => last = now,
            Err(error) => return (last, error),
        }
    }
}

/// Whether a journal refuses to write, says why, and still reads what it has acknowledged.
fn is_poisoned(journal: &Journal, run: RunId, last: u64) -> bool {
    let refused = journal.append(one(run, last));
    matches!(refused, Err(Error::Poisoned { .. }))
        && journal.poison().is_some()
        && count(journal, run) == last
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}

/// A closed journal of many pages.
fn filled(path: &Path) -> u64 {
    let journal = Journal::open(path).unwrap();
    let run = start(&journal, 1);
    for after in 1..=100 {
        let append = Append::after(run, after).event(1, "e", vec![b' '; 3000]);
        journal.append(append).unwrap();
    }
    drop(journal);
    assert!(!beside(path, "-wal").exists());
    fs::metadata(path).unwrap().len()
}

#[test]
fn everything_is_private_to_the_user() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let _lock = journal.lock(run).unwrap();
    let locks = path.with_file_name("locks");
    for file in [
        path.clone(),
        beside(&path, "-wal"),
        beside(&path, "-shm"),
        locks.join(run.to_string()),
    ] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&locks), 0o700);
    drop(journal);

    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let _journal = Journal::open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_directory_in_its_place_is_an_error() {
    let (dir, path) = place();
    fs::create_dir_all(&path).unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::IsDirectory { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("state/journal.db is a directory")
    );
    assert!(matches!(Journal::open("/"), Err(Error::IsDirectory { .. })));

    let below_a_file = dir.path().join("file");
    fs::write(&below_a_file, "").unwrap();
    let error = Journal::open(below_a_file.join("journal.db")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn a_link_is_not_followed() {
    let (dir, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let target = dir.path().join("elsewhere");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    assert!(!target.exists());
}

#[test]
fn a_journal_that_was_hardly_made_is_made_again() {
    let (_dir, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    let journal = Journal::open(&path).unwrap();
    start(&journal, 1);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn processes_that_open_a_new_journal_at_once_all_succeed() {
    let (_dir, path) = place();
    let others: Vec<_> = (0..6).map(|_| Other::start("open", &path)).collect();
    for mut other in others {
        other.expect("opened");
        other.end();
    }
}

#[test]
fn a_damaged_header_is_an_error() {
    let (_dir, path) = place();
    filled(&path);
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(&[b'?'; 100]).unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(
        error.to_string().contains("journal.db is damaged"),
        "{error}"
    );

    fs::write(&path, "not a database").unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn a_truncated_file_is_an_error() {
    for part in [2, 10, 3000] {
        let (_dir, path) = place();
        let size = filled(&path);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(size / part).unwrap();
        let error = Journal::open(&path).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "1/{part}: {error}");
    }
}

#[test]
fn damage_in_the_middle_is_found_by_verifying() {
    let (_dir, path) = place();
    let size = filled(&path);
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(size / 2 / 4096 * 4096)).unwrap();
    file.write_all(&[0xff; 4096]).unwrap();
    let journal = Journal::open(&path).unwrap();
    let error = journal.verify().unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let error = journal.load(id(1)).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn a_missing_or_changed_row_is_found_when_it_is_read() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let body = format!("[\"{}\"]", "x".repeat(9000));
    journal
        .append(
            Append::after(run, 1)
                .event(1, "a", body)
                .event(2, "b", "{}"),
        )
        .unwrap();
    let other = Connection::open(&path).unwrap();
    let damage = |sql: &str| {
        other.execute_batch(&format!("BEGIN; {sql}")).unwrap();
        other.execute_batch("COMMIT").unwrap();
        let error = journal.load(run).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{sql}: {error}");
    };
    damage("UPDATE blobs SET body = CAST('x' AS BLOB)");
    damage("DELETE FROM blobs");
    damage("DELETE FROM events WHERE seq = 2");
    damage("UPDATE runs SET status = 'odd'");
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let (dir, _) = place();
    let path = dir.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE runs (mine)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_journal_is_refused() {
    let (_dir, path) = place();
    drop(Journal::open(&path).unwrap());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("newer program"), "{error}");
}

#[test]
fn a_journal_of_version_1_is_brought_up_to_date() {
    let (_dir, path) = place();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("journal_version_1.sql"))
        .unwrap();
    drop(old);

    for _ in 0..2 {
        let journal = Journal::open(&path).unwrap();
        let run = journal.resolve("r-01kd").unwrap();
        let loaded = journal.load(run).unwrap();
        assert_eq!(loaded.run.status, Status::Waiting);
        assert_eq!(loaded.run.pending.as_deref(), Some("an answer"));
        assert_eq!(loaded.snapshot.unwrap().body, b"{\"at\":1}");
        assert_eq!(loaded.events[0].body, b"{\"long\":\"hello\"}");
        assert_eq!(loaded.events[1].body, b"[ 1, 2 ]");
        assert_eq!(journal.orphans(run).unwrap()[0].group.pgid, 4242);
        assert_eq!(journal.definition(Hash::of(b"abc")).unwrap(), b"abc");
        assert_eq!(journal.tallies().unwrap()[0].run_count, 1);
        journal.remember("new", b"1", 1).wait().unwrap();
    }
    let journal = Journal::open(&path).unwrap();
    let run = journal.list(&Listing::new(), 1).unwrap().runs[0].id;
    assert_eq!(journal.append(one(run, 3)).unwrap(), 4);
    journal.verify().unwrap();
}

#[test]
fn a_journal_in_use_is_waited_for_and_then_given_up() {
    let (_dir, path) = place();
    let patient = Journal::open(&path).unwrap();
    let hasty = Options::new()
        .busy_timeout(Duration::from_millis(30))
        .open(&path)
        .unwrap();
    let run = start(&hasty, 1);
    let mut other = Other::start("write and wait", &path);
    other.expect("locked");
    let error = hasty.append(one(run, 1)).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("locked by another process (waited 30ms)")
    );
    assert_eq!(hasty.load(run).unwrap().last(), 1);

    let receipt = patient.submit(one(run, 1));
    other.go();
    other.end();
    assert_eq!(receipt.wait().unwrap(), 2);
    assert_eq!(hasty.append(one(run, 2)).unwrap(), 3);
}

#[test]
fn a_journal_that_another_process_keeps_for_itself_cannot_be_opened() {
    let (_dir, path) = place();
    drop(Journal::open(&path).unwrap());
    let mut other = Other::start("keep everyone out", &path);
    other.expect("locked");
    let hasty = Options::new().busy_timeout(Duration::from_millis(30));
    let error = hasty.open(&path).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    other.go();
    other.end();
    Journal::open(&path).unwrap();
}

#[test]
fn a_journal_that_was_deleted_takes_no_more_writes() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    fs::rename(&path, path.with_extension("old")).unwrap();
    let error = journal.append(one(run, 1)).unwrap_err();
    assert!(matches!(error, Error::Moved { .. }), "{error}");
    assert!(is_poisoned(&journal, run, 1));
}

#[test]
fn a_process_that_never_finishes_opening_is_not_waited_for_without_end() {
    let (_dir, path) = place();
    drop(Journal::open(&path).unwrap());
    let gate = fs::File::open(path.with_file_name("locks/.open")).unwrap();
    gate.lock().unwrap();
    let hasty = Options::new().busy_timeout(Duration::from_millis(30));
    let error = hasty.open(&path).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
}

#[test]
fn an_unreadable_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.db");
    drop(Journal::open(&path).unwrap());
    if fs::metadata(&path).unwrap().uid() != 0 {
        fs::set_permissions(&path, Permissions::from_mode(0o0)).unwrap();
        let error = Journal::open(&path).unwrap_err();
        assert!(matches!(error, Error::Denied { .. }), "{error}");
        return;
    }
    // The superuser may read everything, so someone else tries.
    let nobody = 65534;
    for place in [
        dir.path().to_owned(),
        dir.path().join("locks"),
        dir.path().join("locks/.open"),
    ] {
        std::os::unix::fs::chown(place, Some(nobody), Some(nobody)).unwrap();
    }
    let mut command = Other::command("open", &path);
    match Other::spawn(command.uid(nobody).gid(nobody)) {
        Ok(mut other) => {
            let said = other.hear().unwrap();
            assert!(
                said.contains("journal.db cannot be opened: permission denied"),
                "{said}"
            );
            other.end();
        }
        Err(error) => println!("skipped: this test cannot be started as another user: {error}"),
    }
}

/// A small file system of its own, where the user may mount one.
struct Mount(tempfile::TempDir);

impl Mount {
    fn new(size: &str) -> Option<Mount> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=700");
        if mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], dir.path()) {
            return Some(Mount(dir));
        }
        println!("skipped: a file system cannot be mounted here");
        None
    }

    fn change(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], self.0.path()));
    }

    fn journal(&self) -> PathBuf {
        self.0.path().join("state/journal.db")
    }
}

fn mount(arguments: &[&str], dir: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(arguments).arg(dir).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_stops_writing_and_loses_nothing() {
    let Some(disk) = Mount::new("1m") else { return };
    let path = disk.journal();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let (last, error) = append_until_it_fails(&journal, run);
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().contains("free some space"), "{error}");
    assert!(is_poisoned(&journal, run, last));
    drop(journal);

    disk.change("size=8m");
    let journal = Journal::open(&path).unwrap();
    assert_eq!(count(&journal, run), last);
    journal.verify().unwrap();
    assert_eq!(journal.append(one(run, last)).unwrap(), last + 1);
}

#[test]
fn a_disk_without_room_for_a_journal_is_an_error() {
    let Some(disk) = Mount::new("16k") else {
        return;
    };
    let error = Journal::open(disk.journal()).unwrap_err();
    assert!(
        matches!(error, Error::Full { .. } | Error::Io { .. }),
        "{error}"
    );
}

#[test]
fn a_read_only_file_system_is_an_error() {
    let Some(disk) = Mount::new("8m") else { return };
    let path = disk.journal();
    drop(Journal::open(&path).unwrap());
    disk.change("ro");
    let error = Journal::open(&path).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    let error = Journal::open(path.with_file_name("new/journal.db")).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
}

#[test]
fn a_journal_at_its_size_limit_stops_writing_and_loses_nothing() {
    let (_dir, path) = place();
    let journal = Options::new().max_bytes(512 << 10).open(&path).unwrap();
    let run = start(&journal, 1);
    let (last, error) = append_until_it_fails(&journal, run);
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(is_poisoned(&journal, run, last));
    drop(journal);
    let journal = Journal::open(&path).unwrap();
    assert_eq!(count(&journal, run), last);
    assert_eq!(journal.append(one(run, last)).unwrap(), last + 1);
}

#[test]
fn a_failing_write_stops_writing_and_loses_nothing() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    // A limit on the size of files makes the system refuse to write in the middle of a commit.
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 600; exec \"$0\" --ignored --exact child --nocapture";
    command
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap());
    Other::prepare(&mut command, "append until it fails", &path);
    let mut other = Other::spawn(&mut command).unwrap();
    let last: u64 = other.hear().unwrap().parse().unwrap();
    other.expect("io");
    other.expect("true");
    other.end();
    let found = count(&journal, run);
    assert!(
        last > 1 && found == last,
        "{found} events, {last} acknowledged"
    );
    assert_eq!(journal.append(one(run, found)).unwrap(), found + 1);
}

#[test]
fn a_failing_flush_stops_writing_and_loses_nothing() {
    let (dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    drop(journal);
    let source = dir.path().join("flush.c");
    let library = dir.path().join("flush.so");
    let code = "#include <errno.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
        static int flush(void) {\n\
        if (access(getenv(\"FAIL_FLUSH\"), F_OK) == 0) { errno = EIO; return -1; }\n\
        return 0; }\n\
        int fsync(int file) { (void)file; return flush(); }\n\
        int fdatasync(int file) { (void)file; return flush(); }\n";
    fs::write(&source, code).unwrap();
    let mut compile = Command::new("cc");
    compile
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source);
    if !compile.status().is_ok_and(|status| status.success()) {
        println!("skipped: there is no C compiler to make flushing fail with");
        return;
    }
    let mut command = Other::command("fail to flush", &path);
    command.env("LD_PRELOAD", &library);
    command.env("FAIL_FLUSH", dir.path().join("flag"));
    let mut other = Other::spawn(&mut command).unwrap();
    other.expect("true");
    other.expect("true");
    other.end();
    let journal = Journal::open(&path).unwrap();
    // What failed to be flushed may have arrived nevertheless.
    let found = count(&journal, run);
    assert!(found == 2 || found == 3, "{found}");
    journal.verify().unwrap();
    assert_eq!(journal.append(one(run, found)).unwrap(), found + 1);
}
