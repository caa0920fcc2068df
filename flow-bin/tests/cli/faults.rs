//! A journal that cannot be used: the command says why and what to do, ends with the right code,
//! and nothing that was recorded is lost.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Place, Ran};

/// Works, asks, makes a large result, and works again.
const BIG: &str = r#"outputs: {size: '{{ state.big | length }}'}
steps:
  - {id: one, type: shell, command: 'echo 1 >> log'}
  - {id: ask, type: prompt, kind: confirm, message: Go on?, output_to: go}
  - {id: big, type: shell, command: 'echo 2 >> log; head -c 300000 /dev/zero | tr "\0" x', output_format: text, output_to: big}
  - {id: last, type: shell, command: 'echo 3 >> log'}
"#;

const JOURNAL: &str = ".flow/journal.db";

/// A project with a run that waits for an answer.
fn waiting() -> (Place, String) {
    let place = Place::with(&[("big.yaml", BIG), (".flow/keep", "")]);
    let ran = place.run(&["run", "big.yaml", "--format", "json"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    (place, run)
}

fn log(place: &Place) -> String {
    fs::read_to_string(place.path("log")).unwrap()
}

/// The run goes on from what was recorded.
fn goes_on(place: &Place, arguments: &[&str]) {
    let ran = place.run(arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json(), json!({"size": 300_000}));
    let log = log(place);
    assert!(log.starts_with("1\n2\n") && log.ends_with("3\n"), "{log}");
    assert_eq!(log.matches('1').count(), 1, "{log}");
    assert_eq!(log.matches('3').count(), 1, "{log}");
}

/// Every command that needs the journal says the same and changes nothing.
fn all_say(place: &Place, run: &str, said: &[&str]) {
    for arguments in [
        &["runs"][..],
        &["show", run],
        &["logs", run],
        &["answer", run, "true"],
        &["resume", run],
        &["cancel", run],
        &["run", "big.yaml"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 1, "{arguments:?}: {}", ran.stderr);
        for part in said {
            assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
        }
    }
    assert_eq!(log(place), "1\n");
}

#[test]
fn a_damaged_journal_is_named_and_a_copy_of_it_goes_on() {
    let (place, run) = waiting();
    let journal = place.path(JOURNAL);
    let copy = fs::read(&journal).unwrap();
    let mut damaged = copy.clone();
    damaged[..16].copy_from_slice(b"this is no file.");
    let mut torn = copy.clone();
    torn.truncate(5000);
    let mut blotted = copy.clone();
    blotted[4096..].fill(0xff);
    for broken in [damaged, torn, blotted] {
        fs::write(&journal, broken).unwrap();
        all_say(
            &place,
            &run,
            &["journal.db is damaged", "restore it from a copy"],
        );
        fs::write(&journal, &copy).unwrap();
    }
    goes_on(&place, &["answer", &run, "true"]);
}

#[test]
fn a_journal_of_a_newer_program_is_left_alone() {
    let (place, run) = waiting();
    let journal = place.path(JOURNAL);
    let copy = fs::read(&journal).unwrap();
    let mut newer = copy.clone();
    // Where SQLite keeps the number that a program gives its files.
    newer[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&journal, &newer).unwrap();
    all_say(&place, &run, &["has version 99", "use a newer program"]);
    assert!(fs::read(&journal).unwrap() == newer, "the file was changed");
    fs::write(&journal, copy).unwrap();
    goes_on(&place, &["answer", &run, "true"]);
}

#[test]
fn a_journal_that_is_something_else_is_left_alone() {
    let (place, run) = waiting();
    let journal = place.path(JOURNAL);
    let aside = place.path("aside");
    fs::rename(&journal, &aside).unwrap();
    fs::create_dir(&journal).unwrap();
    all_say(&place, &run, &["journal.db is a directory", "remove"]);
    fs::remove_dir(&journal).unwrap();
    std::os::unix::fs::symlink(&aside, &journal).unwrap();
    all_say(&place, &run, &["is not a regular file"]);
    fs::remove_file(&journal).unwrap();
    fs::rename(&aside, &journal).unwrap();
    goes_on(&place, &["answer", &run, "true"]);
}

/// A command as a user without rights, when it is root who runs the tests: root may do everything.
fn as_somebody(place: &Place, arguments: &[&str]) -> Ran {
    let command = place.command(arguments);
    let mut lowered = if fs::metadata("/proc/self").unwrap().uid() == 0 {
        let mut lowered = Command::new("setpriv");
        lowered.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        lowered.arg(command.get_program());
        lowered
    } else {
        Command::new(command.get_program())
    };
    lowered
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null());
    Ran::from(lowered.output().unwrap())
}

/// Gives a directory away with all that is in it. Only root can, and only root needs to.
fn give(path: &Path, user: u32, group: u32) {
    let _ = chown(path, Some(user), Some(group));
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user, group);
        }
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_journal_or_directory_without_rights_says_so() {
    let (place, run) = waiting();
    let directory = place.path(".flow");
    let journal = place.path(JOURNAL);
    mode(place.path("").as_path(), 0o755);
    give(&directory, 65534, 65534);
    let writes = [&["answer", &run, "true"][..], &["run", "big.yaml"]];
    let all = [&["runs"][..], writes[0], writes[1]];
    let say = |commands: &[&[&str]], said: &[&str]| {
        for arguments in commands {
            let ran = as_somebody(&place, arguments);
            assert_eq!(ran.code, 1, "{arguments:?}: {}", ran.stderr);
            for part in said {
                assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
            }
        }
    };
    mode(&journal, 0o000);
    say(&all, &["journal.db cannot be opened: permission denied"]);
    mode(&journal, 0o400);
    say(&writes, &["read-only", "make it writable"]);
    assert_eq!(as_somebody(&place, &["runs"]).code, 0);
    // Reading has left files beside it that were as read-only as the journal.
    mode(&journal, 0o600);
    let way = as_somebody(&place, &["answer", &run, "neither"]);
    assert_eq!(way.code, 2, "{}", way.stderr);
    assert!(way.stderr.contains("not valid"), "{}", way.stderr);
    mode(&directory, 0o500);
    say(&writes, &["make it writable"]);
    mode(&directory, 0o700);
    assert_eq!(log(&place), "1\n");
    let own = fs::metadata("/proc/self").unwrap();
    give(&directory, own.uid(), own.gid());
    goes_on(&place, &["answer", &run, "true"]);
}

#[test]
fn a_full_disk_stops_the_run_which_goes_on_when_there_is_space() {
    let (place, run) = waiting();
    // A bound on the size of files stands for the disk: 200 blocks of 512 bytes or of 1024.
    let flow = env!("CARGO_BIN_EXE_flow");
    let script = format!("trap '' XFSZ; ulimit -f 250; exec {flow} answer {run} true");
    let plain = place.command(&[]);
    let full = Command::new("sh")
        .args(["-c", &script])
        .current_dir(plain.get_current_dir().unwrap())
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .output();
    let full = Ran::from(full.unwrap());
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(full.stderr.contains("journal.db cannot"), "{}", full.stderr);
    let way = format!("flow resume {run}");
    assert!(full.stderr.contains(&way), "{}", full.stderr);
    assert_eq!(
        full.stderr.matches("journal.db").count(),
        1,
        "{}",
        full.stderr
    );
    assert_eq!(log(&place), "1\n2\n");
    goes_on(&place, &["resume", &run]);
}

/// Holds the journal until it is told to let go.
const HOLD: &str = "import sqlite3, sys
journal = sqlite3.connect(sys.argv[1], isolation_level=None)
journal.execute('BEGIN EXCLUSIVE')
print('held', flush=True)
sys.stdin.readline()
";

#[test]
fn a_journal_held_by_another_program_is_waited_for_and_then_told() {
    let (place, run) = waiting();
    let mut holder = Command::new("python3")
        .args(["-c", HOLD, place.path(JOURNAL).to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 holds the journal in this test");
    let mut line = String::new();
    let mut said = BufReader::new(holder.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    let refused = place.run(&["answer", &run, "true"]);
    assert_eq!(refused.code, 1);
    for part in ["locked by another process", "try again"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    goes_on(&place, &["answer", &run, "true"]);
}
