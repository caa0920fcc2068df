//! What is written to a journal is what is read from it.
#![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

mod journal_support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use flow_runtime::journal::{
    Append, Error, Hash, Journal, Listing, NewRun, Options, Orphan, ProcessGroup, Pruned, RunId,
    RunUpdate, Snapshot, Status, Stream, Tally,
};
use journal_support::{count, id, one, place, start, start_as};

#[test]
fn events_come_back_in_order_and_unchanged() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let big = format!(
        "{{ \"z\":\"{0}\", \"a\" : [\"{0}\",1.50, 1e2] }}",
        "ä\\n".repeat(4000)
    );
    let append = Append::after(run, 1)
        .event(5, "big", big.clone())
        .event(6, "empty", "")
        .event(7, "raw", vec![1, 0, 255]);
    assert_eq!(journal.append(append).unwrap(), 4);
    drop(journal);

    let journal = Journal::open(&path).unwrap();
    let loaded = journal.load(run).unwrap();
    assert_eq!(loaded.last(), 4);
    assert_eq!(loaded.run.status, Status::Running);
    let bodies: Vec<_> = loaded
        .events
        .iter()
        .map(|event| event.body.clone())
        .collect();
    assert_eq!(
        bodies,
        [b"{}".to_vec(), big.into_bytes(), vec![], vec![1, 0, 255]]
    );
    assert_eq!(
        (loaded.events[1].at, loaded.events[1].kind.as_str()),
        (5, "big")
    );
    assert_eq!(journal.events(run, 2..4, 10).unwrap(), loaded.events[1..3]);
    assert_eq!(journal.events(run, 2.., 1).unwrap(), loaded.events[1..2]);
    assert_eq!(journal.events(run, ..0, 1).unwrap(), []);
}

#[test]
fn a_run_that_writes_alone_is_recorded_and_fenced_like_any_other() {
    const EVENTS: u64 = 40;
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let alone = start(&journal, 1);
    for after in 1..EVENTS {
        assert_eq!(journal.record(one(alone, after)).wait().unwrap(), after + 1);
    }
    let late = journal.record(one(alone, 3)).wait();
    assert!(matches!(late, Err(Error::Fenced { found: EVENTS, .. })));
    // With others beside it, and in both ways.
    let runs: Vec<_> = (2..6).map(|n| start(&journal, n)).collect();
    thread::scope(|scope| {
        for run in &runs {
            scope.spawn(|| {
                for after in 1..EVENTS {
                    let append = one(*run, after);
                    let receipt = match after % 3 {
                        0 => journal.submit(append),
                        _ => journal.record(append),
                    };
                    assert_eq!(receipt.wait().unwrap(), after + 1);
                }
            });
        }
    });
    drop(journal);
    let journal = Journal::open(&path).unwrap();
    for run in [alone].into_iter().chain(runs) {
        assert_eq!(count(&journal, run), EVENTS);
    }
}

#[test]
fn a_large_value_is_stored_once_however_often_it_occurs() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let value = "v".repeat(100_000);
    for n in 1..=20 {
        let run = start(&journal, n);
        let append = Append::after(run, 1)
            .event(1, "in", format!("{{\"input\":\"{value}\",\"n\":{n}}}"))
            .event(2, "out", format!("[{n},{{\"echo\":\"{value}\"}}]"));
        journal.append(append).unwrap();
    }
    let events = journal.load(id(7)).unwrap().events;
    assert_eq!(
        events[1].body,
        format!("{{\"input\":\"{value}\",\"n\":7}}").into_bytes()
    );
    drop(journal);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 400_000, "{size} bytes for one value of 100,000");
}

#[test]
fn writers_that_share_a_commit_fail_alone() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let runs: Vec<_> = (0..40).map(|n| start(&journal, n)).collect();
    let receipts: Vec<_> = runs
        .iter()
        .enumerate()
        .map(|(n, &run)| journal.submit(one(run, if n % 4 == 0 { 7 } else { 1 })))
        .collect();
    for (n, receipt) in receipts.into_iter().enumerate() {
        match receipt.wait() {
            Ok(last) => assert!(n % 4 != 0 && last == 2),
            Err(Error::Fenced {
                run,
                expected,
                found,
            }) => {
                assert!(n % 4 == 0);
                assert_eq!((run, expected, found), (runs[n], 7, 1));
            }
            Err(other) => panic!("{other}"),
        }
    }
    let counts = runs.iter().map(|&run| count(&journal, run));
    assert!(
        counts
            .enumerate()
            .all(|(n, found)| found == if n % 4 == 0 { 1 } else { 2 })
    );
}

#[test]
fn many_threads_write_to_one_journal() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let threads: Vec<_> = (0..16)
        .map(|n| {
            let journal = journal.clone();
            thread::spawn(move || {
                let run = start(&journal, n);
                for after in 1..=30 {
                    assert_eq!(journal.append(one(run, after)).unwrap(), after + 1);
                    assert_eq!(journal.load(run).unwrap().last(), after + 1);
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert!((0..16).all(|n| count(&journal, id(n)) == 31));
}

#[test]
fn a_receipt_can_be_awaited_without_any_runtime() {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let run = start(&journal, 1);
    let mut work = pin!(async {
        let last = journal.submit(one(run, 1)).await?;
        journal.submit(one(run, last)).await
    });
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let last = loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(last) => break last,
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(last.unwrap(), 3);
}

#[test]
fn of_two_handles_one_appends_and_the_other_is_told() {
    let (_dir, path) = place();
    let (first, second) = (Journal::open(&path).unwrap(), Journal::open(&path).unwrap());
    let run = start(&first, 1);
    assert_eq!(second.load(run).unwrap().last(), 1);
    first.append(one(run, 1)).unwrap();
    let refused = second
        .append(one(run, 1).update(RunUpdate::at(9).status(Status::Failed)))
        .unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Fenced {
                expected: 1,
                found: 2,
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(second.run(run).unwrap().status, Status::Running);
    assert_eq!(second.append(one(run, 2)).unwrap(), 3);
    assert!(matches!(
        first.append(one(run, 9)),
        Err(Error::Fenced { found: 3, .. })
    ));
}

#[test]
fn a_run_starts_once_and_with_a_definition() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let hash = Hash::of(b"name: demo");
    let begin = || Append::start(id(1), NewRun::new("demo", hash, 1)).event(1, "started", "{}");
    assert!(matches!(
        journal.append(begin()),
        Err(Error::NoSuchDefinition { hash: missing }) if missing == hash
    ));
    assert!(matches!(journal.run(id(1)), Err(Error::NoSuchRun { .. })));
    assert_eq!(journal.put_definition(b"name: demo").unwrap(), hash);
    assert_eq!(journal.put_definition(b"name: demo").unwrap(), hash);
    assert_eq!(journal.definition(hash).unwrap(), b"name: demo");
    journal.append(begin()).unwrap();
    assert!(matches!(
        journal.append(begin()),
        Err(Error::RunExists { .. })
    ));
    assert!(matches!(
        journal.append(one(id(2), 0)),
        Err(Error::NoSuchRun { .. })
    ));
    assert!(matches!(
        journal.definition(Hash::of(b"")),
        Err(Error::NoSuchDefinition { .. })
    ));
}

#[test]
fn only_events_after_the_snapshot_are_loaded_and_all_are_kept() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let run = start(&journal, 1);
    journal.append(one(run, 1).snapshot("at two")).unwrap();
    journal.append(one(run, 2)).unwrap();
    let loaded = journal.load(run).unwrap();
    let body = b"at two".to_vec();
    assert_eq!(loaded.snapshot, Some(Snapshot { seq: 2, body }));
    assert_eq!((loaded.events.len(), loaded.last()), (1, 3));

    journal.put_snapshot(run, 3, b"at three").unwrap();
    journal.put_snapshot(run, 1, b"too late").unwrap();
    let loaded = journal.load(run).unwrap();
    let body = b"at three".to_vec();
    assert_eq!(loaded.snapshot, Some(Snapshot { seq: 3, body }));
    assert_eq!((loaded.events.len(), loaded.last()), (0, 3));
    assert_eq!(count(&journal, run), 3);
    assert!(matches!(
        journal.put_snapshot(run, 4, b"ahead"),
        Err(Error::Fenced { .. })
    ));
}

#[test]
fn the_record_of_a_run_changes_with_its_events() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let run = start_as(&journal, 1, "demo", |new| new.parent(id(99)));
    let waits = RunUpdate::at(50)
        .status(Status::Waiting)
        .pending(Some("a person".into()))
        .wake_at(Some(900));
    journal.append(one(run, 1).update(waits)).unwrap();
    let record = journal.run(run).unwrap();
    assert_eq!(record.status, Status::Waiting);
    assert_eq!(record.pending.as_deref(), Some("a person"));
    assert_eq!((record.started_at, record.updated_at), (1001, 50));
    assert_eq!((record.wake_at, record.parent), (Some(900), Some(id(99))));
    assert_eq!(journal.output(run).unwrap(), None);
    assert_eq!(journal.next_wake(899).unwrap(), Some(900));
    assert_eq!(journal.due(0..=899, 10).unwrap(), []);
    assert_eq!(journal.due(900..=900, 10).unwrap(), [record]);

    let output = format!("{{\"report\":\"{}\"}}", "x".repeat(10_000));
    let fails = RunUpdate::at(60)
        .status(Status::Failed)
        .error(Some("no luck".into()))
        .output(output.clone());
    journal.append(one(run, 2).update(fails)).unwrap();
    let record = journal.run(run).unwrap();
    assert_eq!(
        (record.status, record.pending, record.wake_at),
        (Status::Failed, None, None)
    );
    assert_eq!(record.error.as_deref(), Some("no luck"));
    assert!(record.has_output);
    assert_eq!(journal.output(run).unwrap(), Some(output.into_bytes()));
    assert_eq!(journal.next_wake(0).unwrap(), None);
}

#[test]
fn runs_are_listed_newest_first_page_by_page() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let status = |n: u64| Status::ALL[usize::try_from(n % 6).unwrap()];
    for n in 0..60 {
        let workflow = if n % 2 == 0 { "even" } else { "odd" };
        start_as(&journal, n, workflow, |new| {
            let new = new.status(status(n));
            if n >= 50 { new.parent(id(n - 50)) } else { new }
        });
    }
    let all = |listing: Listing, size| {
        let mut found = Vec::new();
        let mut page = journal.list(&listing, size).unwrap();
        loop {
            assert!(page.runs.len() <= size);
            found.extend(page.runs.iter().map(|run| run.id));
            let Some(next) = page.next else { return found };
            let next = next.to_string().parse().unwrap();
            page = journal.list(&listing.clone().before(next), size).unwrap();
        }
    };
    let expected = |keep: &dyn Fn(u64) -> bool| -> Vec<RunId> {
        (0..60).rev().filter(|&n| keep(n)).map(id).collect()
    };
    for size in [1, 7, 60, 100] {
        assert_eq!(all(Listing::new(), size), expected(&|_| true));
        assert_eq!(
            all(Listing::new().workflow("odd"), size),
            expected(&|n| n % 2 == 1)
        );
        assert_eq!(all(Listing::new().workflow("none"), size), []);
        assert_eq!(
            all(Listing::new().status(Status::Waiting), size),
            expected(&|n| n % 6 == 1)
        );
        let two = Listing::new()
            .status(Status::Failed)
            .status(Status::Running);
        assert_eq!(
            all(two.clone(), size),
            expected(&|n| n % 6 == 0 || n % 6 == 4)
        );
        assert_eq!(all(two.workflow("odd"), size), []);
        assert_eq!(all(Listing::new().top_level(), size), expected(&|n| n < 50));
        assert_eq!(all(Listing::new().children_of(id(3)), size), [id(53)]);
    }
}

#[test]
fn workflows_know_how_often_they_ran() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    for n in 1..=5 {
        start_as(&journal, n, "b", |new| new);
    }
    start_as(&journal, 9, "a", |new| new.status(Status::Completed));
    for (n, status) in [
        (1, Status::Completed),
        (2, Status::Failed),
        (3, Status::Completed),
    ] {
        let update = RunUpdate::at(2000).status(status);
        journal.append(one(id(n), 1).update(update)).unwrap();
    }
    let again = RunUpdate::at(2001).status(Status::Completed);
    journal.append(one(id(1), 2).update(again)).unwrap();
    let tally = |workflow: &str, run_count, success_count, last_run| Tally {
        workflow: workflow.into(),
        run_count,
        success_count,
        last_run,
    };
    let expected = [tally("a", 1, 1, 1009), tally("b", 5, 2, 1005)];
    assert_eq!(journal.tallies().unwrap(), expected);
    journal.prune(u64::MAX, 0).unwrap();
    assert_eq!(journal.tallies().unwrap(), expected);
}

#[test]
fn a_run_counts_for_the_workflow_that_its_definition_became() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let definition = journal.put_definition(b"x").unwrap();
    let run = |n| RunId::new(1_500_000_000_000 + n, 5);
    for n in 0..2 {
        let new = NewRun::new("one", definition, n);
        journal.append(Append::start(run(n), new)).unwrap();
    }
    let counts = || {
        let tallies = journal.tallies().unwrap().into_iter();
        let counts = tallies.map(|it| (it.workflow, it.run_count));
        counts.collect::<Vec<_>>()
    };
    journal.rename(run(1), "one_2").unwrap();
    let name = |name: &str, count| (name.to_owned(), count);
    assert_eq!(counts(), [name("one", 1), name("one_2", 1)]);
    journal.rename(run(0), "one_2").unwrap();
    journal.rename(run(0), "one_2").unwrap();
    assert_eq!(counts(), [name("one_2", 2)]);
    assert_eq!(journal.run(run(0)).unwrap().workflow, "one_2");
    journal.forget_tally("one_2").unwrap();
    assert_eq!(counts(), []);
}

#[test]
fn what_was_stored_for_a_run_stays_so_when_its_end_is_tried_again() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let run = start(&journal, 1);
    let kept = || journal.kept_as(run).unwrap();
    assert_eq!(kept(), None);
    journal.keep_as(run, "one", false).unwrap();
    assert_eq!(kept(), Some(("one".to_owned(), false)));
    for is_new in [true, false] {
        journal.keep_as(run, "two", is_new).unwrap();
        assert_eq!(kept(), Some(("two".to_owned(), true)));
    }
}

#[test]
fn the_beginning_of_an_id_finds_the_run() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let early = RunId::new(1_500_000_000_000, 5);
    let definition = journal.put_definition(b"x").unwrap();
    journal
        .append(Append::start(early, NewRun::new("x", definition, 1)))
        .unwrap();
    for n in 0..12 {
        start(&journal, n);
    }
    assert_eq!(journal.resolve(&early.to_string()[..8]).unwrap(), early);
    assert_eq!(
        journal
            .resolve(&early.to_string()[2..9].to_uppercase())
            .unwrap(),
        early
    );
    assert_eq!(journal.resolve(&id(3).to_string()).unwrap(), id(3));
    match journal.resolve("r-01").unwrap_err() {
        Error::Ambiguous { matches, more, .. } => {
            assert_eq!(matches.first(), Some(&id(11)));
            assert!(more && matches.len() == 8);
        }
        other => panic!("{other}"),
    }
    assert!(matches!(
        journal.resolve("r-7"),
        Err(Error::NoSuchRun { .. })
    ));
    assert!(matches!(
        journal.resolve("nothing!"),
        Err(Error::NotARunId { .. })
    ));
    assert!(matches!(journal.resolve(""), Err(Error::NotARunId { .. })));
}

#[test]
fn memory_is_kept_by_key() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    for (key, value) in [
        ("a", "1"),
        ("plan/2", "2"),
        ("plan/1", "3"),
        ("plan0", "4"),
        ("plän", "5"),
    ] {
        journal.remember(key, value.as_bytes(), 1).wait().unwrap();
    }
    journal.remember("a", b"{\"new\":true}", 2).wait().unwrap();
    assert_eq!(journal.recall("a").unwrap().unwrap(), b"{\"new\":true}");
    assert_eq!(journal.recall("b").unwrap(), None);
    assert_eq!(journal.memory_keys("plan/").unwrap(), ["plan/1", "plan/2"]);
    assert_eq!(journal.memory_keys("pl%").unwrap(), Vec::<String>::new());
    assert_eq!(journal.memory_keys("").unwrap().len(), 5);
    assert!(journal.forget("a").wait().unwrap());
    assert!(!journal.forget("a").wait().unwrap());
    assert_eq!(journal.recall("a").unwrap(), None);
}

#[test]
fn the_oldest_part_of_a_long_log_is_dropped_and_said_to_be() {
    let (_dir, path) = place();
    let journal = Options::new().log_limit(100).open(path).unwrap();
    let run = start(&journal, 1);
    let write = |text: &str| {
        let place = journal.log(run, "a/1", Stream::Stdout, text.as_bytes());
        place.wait().unwrap()
    };
    let read =
        |range: std::ops::Range<u64>| journal.read_log(run, "a/1", Stream::Stdout, range).unwrap();
    assert_eq!(read(0..9).bytes, b"");
    assert_eq!(
        (write("0123456789"), write("abcdefghij"), write("")),
        (0, 10, 20)
    );
    assert_eq!(read(5..12).bytes, b"56789ab");
    assert_eq!(read(15..99).text(), "fghij");
    assert_eq!(read(30..99).bytes, b"");
    let err = journal.log(run, "a/1", Stream::Stderr, b"oh");
    assert_eq!(err.wait().unwrap(), 0);
    assert_eq!(write(&"x".repeat(85)), 20);
    let log = read(0..1000);
    assert_eq!(
        (log.start, log.dropped, log.written, log.bytes.len()),
        (10, 10, 105, 95)
    );
    assert!(log.text().starts_with("[10 bytes dropped]\nabcdefghij"));
    assert_eq!(read(11..13).text(), "bc");

    assert_eq!(write(&format!("{}END", "y".repeat(500))), 105 + 403);
    let log = read(0..1000);
    assert_eq!((log.start, log.written, log.bytes.len()), (508, 608, 100));
    assert!(log.bytes.ends_with(b"yEND"));

    let chunks = journal.log_chunks(run, 0, 10).unwrap();
    let streams: Vec<_> = chunks.iter().map(|chunk| chunk.stream).collect();
    assert_eq!(streams, [Stream::Stderr, Stream::Stdout]);
    assert_eq!(
        journal.log_chunks(run, chunks[0].place, 10).unwrap(),
        chunks[1..]
    );
    assert_eq!(journal.log_chunks(run, 0, 1).unwrap(), chunks[..1]);
}

#[test]
fn processes_are_known_until_they_have_ended() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let run = start(&journal, 1);
    let group = ProcessGroup::led_by(std::process::id());
    assert!(matches!(
        journal.record_process(id(2), "a", 1, group.clone()).wait(),
        Err(Error::NoSuchRun { .. })
    ));
    journal
        .record_process(run, "b", 6, group.clone())
        .wait()
        .unwrap();
    journal
        .record_process(run, "a", 5, group.clone())
        .wait()
        .unwrap();
    let orphan = |action: &str, started_at| Orphan {
        action: action.into(),
        started_at,
        group: group.clone(),
    };
    assert_eq!(
        journal.orphans(run).unwrap(),
        [orphan("a", 5), orphan("b", 6)]
    );
    journal.forget_process(run, "a").wait().unwrap();
    assert_eq!(journal.orphans(run).unwrap(), [orphan("b", 6)]);
}

#[test]
fn a_lock_is_held_once_and_leaves_no_file() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let file = path.with_file_name("locks").join(id(1).to_string());
    let lock = journal.lock(id(1)).unwrap();
    assert_eq!(lock.run(), id(1));
    match journal.lock(id(1)).unwrap_err() {
        Error::Held { pid, .. } => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other}"),
    }
    let other = journal.lock(id(2)).unwrap();
    drop(lock);
    assert!(!file.exists());
    std::fs::write(&file, "4000000\nleft by a dead process").unwrap();
    drop(journal.lock(id(1)).unwrap());
    drop(other);
}

#[test]
fn a_lock_passes_between_threads_one_at_a_time() {
    let (_dir, path) = place();
    let journal = Journal::open(path).unwrap();
    let run = start(&journal, 1);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let journal = journal.clone();
            thread::spawn(move || {
                let mut turns = 0;
                while turns < 20 {
                    let Ok(_lock) = journal.lock(run) else {
                        thread::yield_now();
                        continue;
                    };
                    let last = journal.load(run).unwrap().last();
                    journal.append(one(run, last)).unwrap();
                    turns += 1;
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(count(&journal, run), 81);
}

#[test]
fn pruning_deletes_old_ended_runs_and_what_only_they_used() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let (shared, own) = ("s".repeat(9000), "o".repeat(9000));
    let end = |n: u64, at: u64, text: &str| {
        let append = Append::after(id(n), 1)
            .event(1, "out", format!("{{\"v\":\"{text}\"}}"))
            .update(RunUpdate::at(at).status(Status::Completed).output("true"));
        journal.append(append).unwrap();
        journal
            .log(id(n), "a", Stream::Stdout, b"text")
            .wait()
            .unwrap();
    };
    // 1 waits; 2 was started by 1; 3 by 2; 4 ended long ago; 5 lately; 6 is among the newest.
    start(&journal, 1);
    start_as(&journal, 2, "demo", |new| new.parent(id(1)));
    start_as(&journal, 3, "demo", |new| new.parent(id(2)));
    start_as(&journal, 4, "only four", |new| new);
    start(&journal, 5);
    start(&journal, 6);
    for (n, at, text) in [
        (2, 10, &shared),
        (3, 10, &shared),
        (4, 10, &own),
        (5, 90, &shared),
        (6, 10, &own[1..].to_owned()),
    ] {
        end(n, at, text);
    }
    std::fs::write(path.with_file_name("locks").join(id(4).to_string()), "1").unwrap();
    let pruned = journal.prune(50, 1).unwrap();
    assert_eq!(
        pruned,
        Pruned {
            runs: 1,
            values: 1,
            definitions: 1
        }
    );
    assert!(matches!(journal.load(id(4)), Err(Error::NoSuchRun { .. })));
    assert!(
        !path
            .with_file_name("locks")
            .join(id(4).to_string())
            .exists()
    );
    for n in [1, 2, 3, 5, 6] {
        journal.load(id(n)).unwrap();
    }
    let cancelled = RunUpdate::at(95).status(Status::Cancelled);
    journal.append(one(id(1), 1).update(cancelled)).unwrap();
    let pruned = journal.prune(u64::MAX, 0).unwrap();
    assert_eq!(
        pruned,
        Pruned {
            runs: 5,
            values: 3,
            definitions: 1
        }
    );
    assert_eq!(journal.list(&Listing::new(), 9).unwrap().runs, []);
    assert_eq!(journal.prune(u64::MAX, 0).unwrap(), Pruned::default());
    journal.verify().unwrap();
}

#[test]
fn pruning_many_runs_gives_space_back() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let definition = journal.put_definition(b"x").unwrap();
    let receipts: Vec<_> = (0..350)
        .map(|n| {
            let new = NewRun::new("x", definition, n).status(Status::Failed);
            journal.submit(Append::start(id(n), new).event(n, "e", vec![b' '; 3000]))
        })
        .collect();
    receipts
        .into_iter()
        .for_each(|receipt| assert_eq!(receipt.wait().unwrap(), 1));
    assert_eq!(journal.prune(340, 0).unwrap().runs, 340);
    assert_eq!(journal.list(&Listing::new(), 99).unwrap().runs.len(), 10);
    drop(journal);
    assert!(std::fs::metadata(path).unwrap().len() < 300_000);
}

#[test]
fn what_is_queued_when_the_journal_is_dropped_is_written() {
    let (_dir, path) = place();
    let journal = Journal::open(&path).unwrap();
    let run = start(&journal, 1);
    let receipts: Vec<_> = (1..=50)
        .map(|after| journal.submit(one(run, after)))
        .collect();
    drop(journal);
    assert!(receipts.into_iter().all(|receipt| receipt.wait().is_ok()));
    assert_eq!(count(&Journal::open(path).unwrap(), run), 51);
}
