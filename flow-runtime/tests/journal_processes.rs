//! Several processes use one journal, and some of them die.
#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

mod journal_support;

use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use flow_runtime::journal::{Error, Journal, ProcessGroup, RunId};
use journal_support::{Other, count, id, one, pause, place, say, start, task};

/// What the other process does.
#[test]
#[ignore = "run by the other tests"]
fn child() {
    let Some((task, path)) = task() else { return };
    let journal = Journal::open(path).unwrap();
    match task.as_str() {
        "append late" => {
            let last = journal.load(id(1)).unwrap().last();
            say("loaded");
            pause();
            match journal.append(one(id(1), last)) {
                Err(Error::Fenced {
                    expected, found, ..
                }) => say(format!("{expected} {found}")),
                other => say(format!("{other:?}")),
            }
        }
        "append in turn" => {
            append_in_turn(&journal);
            say("done");
        }
        "append for ever" => {
            let threads: Vec<_> = (1..=3)
                .map(|n| {
                    let journal = journal.clone();
                    thread::spawn(move || {
                        let mut last = journal.load(id(n)).unwrap().last();
                        loop {
                            last = journal.append(one(id(n), last)).unwrap();
                            say(format!("{} {last}", id(n)));
                        }
                    })
                })
                .collect();
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }
        "hold the lock" => {
            let _lock = journal.lock(id(1)).unwrap();
            say("held");
            pause();
        }
        "leave a group" => {
            let mut command = Command::new("sh");
            command.args(["-c", "sleep 1000 & echo up; wait"]);
            command.process_group(0).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let group = ProcessGroup::led_by(child.id());
            journal.record_process(id(1), "a", 1, group).wait().unwrap();
            let mut up = [0; 3];
            child.stdout.take().unwrap().read_exact(&mut up).unwrap();
            say(child.id());
            child.wait().unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Adds 60 events to a run to which others add too.
fn append_in_turn(journal: &Journal) {
    let mut last = journal.load(id(1)).unwrap().last();
    let mut added = 0;
    while added < 60 {
        match journal.append(one(id(1), last)) {
            Ok(now) => {
                last = now;
                added += 1;
            }
            Err(Error::Fenced { found, .. }) => last = found,
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_process_that_comes_late_is_fenced_off() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let mut other = Other::start("append late", &path);
    other.expect("loaded");
    journal.append(one(run, 1)).unwrap();
    other.go();
    other.expect("1 2");
    other.end();
    assert_eq!(count(&journal, run), 2);
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let others: Vec<_> = (0..2)
        .map(|_| Other::start("append in turn", &path))
        .collect();
    append_in_turn(&journal);
    for mut other in others {
        other.expect("done");
        other.end();
    }
    assert_eq!(count(&journal, run), 1 + 3 * 60);
    journal.verify().unwrap();
}

#[test]
fn what_a_killed_process_was_answered_is_there() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    for n in 1..=3 {
        start(&journal, n);
    }
    drop(journal);
    for round in 0..6 {
        let mut other = Other::start("append for ever", &path);
        let mut said: Vec<_> = (0..40 + round * 37)
            .map(|_| other.hear().unwrap())
            .collect();
        said.extend(other.kill());
        let mut answered: HashMap<RunId, u64> = HashMap::new();
        for line in &said {
            let (run, last) = line.split_once(' ').unwrap();
            let known = answered.entry(run.parse().unwrap()).or_default();
            *known = (*known).max(last.parse().unwrap());
        }
        let journal = Journal::open(&path).unwrap();
        for (run, last) in answered {
            let found = count(&journal, run);
            // One append may have reached the disk without being answered.
            assert!(
                found == last || found == last + 1,
                "{found} events, {last} answered"
            );
            assert_eq!(journal.load(run).unwrap().last(), found);
        }
        journal.verify().unwrap();
    }
}

#[test]
fn the_lock_of_a_run_ends_with_its_process() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let mut other = Other::start("hold the lock", &path);
    other.expect("held");
    match journal.lock(run).unwrap_err() {
        Error::Held { pid, run: held } => assert_eq!((pid, held), (Some(other.pid()), run)),
        error => panic!("{error}"),
    }
    other.kill();
    let lock = journal.lock(run).unwrap();
    assert!(matches!(
        journal.lock(run),
        Err(Error::Held { pid: Some(pid), .. }) if pid == std::process::id()
    ));
    drop(lock);
}

#[test]
fn a_group_that_a_dead_host_left_is_found_and_can_be_ended() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        println!("skipped: this system has no /proc");
        return;
    }
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let mut other = Other::start("leave a group", &path);
    let leader: u32 = other.hear().unwrap().parse().unwrap();
    other.kill();
    let orphans = journal.orphans(run).unwrap();
    assert_eq!(orphans.len(), 1);
    let members = orphans[0].group.members();
    assert!(
        members.contains(&leader) && members.len() == 2,
        "{members:?}"
    );
    let pids = members.iter().map(u32::to_string);
    let killed = Command::new("kill").arg("-9").args(pids).status().unwrap();
    assert!(killed.success());
    while !orphans[0].group.members().is_empty() {
        thread::yield_now();
    }
    journal
        .forget_process(run, &orphans[0].action)
        .wait()
        .unwrap();
    assert_eq!(journal.orphans(run).unwrap(), []);
}
