//! Definitions that are stored in a project, looked at and deleted.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use flow_model::diagnostic::Severity;
use flow_runtime::journal::{Append, Journal, NewRun, RunId, RunUpdate, Status};
use flow_runtime::library::{Definition, Error, Library, Place, Project, Saved, StoreError};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A project with nothing in it.
fn project() -> (TempDir, Library) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".flow")).unwrap();
    let library = library(root.path());
    (root, library)
}

fn library(root: &Path) -> Library {
    let builtin = "description: compiled in\nsteps: [{type: shell, command: 'true'}]\n";
    Library::empty()
        .with_builtins([("shipped", builtin)])
        .with_project(Project::at(root).unwrap().unwrap())
}

fn hello(name: &str, command: &str) -> String {
    format!("# Greets.\nname: {name}\nsteps:\n  - {{type: shell, command: {command}}}\n")
}

fn states(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Looks around",
        "arguments": {"PROJECT_ROOT": "where"},
        "return_values": {"FOUND": {"name": "FOUND", "description": "what", "required": false}},
        "initial_state": "look",
        "states": {"look": {"action": {"tool": "list_terminal_sessions", "params": {}}}},
    })
}

/// Files of the store that are not hidden, and those that are.
fn files(root: &Path) -> (Vec<String>, Vec<String>) {
    let entries = fs::read_dir(root.join(".flow/workflows")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.into_iter().partition(|name| !name.starts_with('.'))
}

fn path(created: &flow_runtime::library::Entry) -> PathBuf {
    created.file().unwrap().to_owned()
}

#[test]
fn a_text_is_kept_as_it_is_written_for_the_user_alone() {
    let (root, library) = project();
    let text = hello("greet:all", "echo hello");
    let created = library.create(Definition::Text(&text), false).unwrap();
    let file = path(&created.entry);
    assert!(file.starts_with(root.path().join(".flow/workflows")));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let directory = file.parent().unwrap();
    let mode = fs::metadata(directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let found = library.get("greet:all").unwrap().unwrap();
    assert_eq!(found, created.entry);
    assert!(library.compile(&found).unwrap().is_ok());
    assert_eq!(files(root.path()).1, Vec::<String>::new());
}

#[test]
fn a_value_is_written_as_readable_json_with_its_signature() {
    let (root, library) = project();
    let definition = states("look_around");
    let created = library
        .create(Definition::Value(&definition), false)
        .unwrap();
    assert_eq!(files(root.path()).0, ["look_around.json"]);
    let text = fs::read_to_string(path(&created.entry)).unwrap();
    assert!(text.lines().count() > 10, "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), definition);
    let signature = created.signature;
    assert_eq!(signature.description.as_deref(), Some("Looks around"));
    assert!(signature.arguments.get("PROJECT_ROOT").unwrap().required);
    assert!(!signature.return_values.get("FOUND").unwrap().required);
}

#[test]
fn every_fault_is_found_with_its_place_and_nothing_is_stored() {
    let (root, library) = project();
    let text = "name: broken\ninitial_state: look\nstates:\n  look:\n    action: {tool: opn_terminal}\n    transitions:\n      - {condition: success, next_state: lok}\n";
    let Err(StoreError::Invalid(compiled)) = library.create(Definition::Text(text), false) else {
        panic!("it is not valid");
    };
    let errors: Vec<_> = compiled
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| {
            let at = compiled.sources.positions(finding.span).0;
            let suggestion = finding.suggestion.clone().unwrap_or_default();
            (finding.code.as_str(), at.line, suggestion)
        })
        .collect();
    let expected = [
        ("F030", 5, "open_terminal".to_owned()),
        ("F020", 7, "look".to_owned()),
    ];
    assert_eq!(errors, expected);
    let told = StoreError::Invalid(compiled).to_string();
    assert!(
        told.contains("states.look.action") && told.contains("1 more"),
        "{told}"
    );
    assert!(!root.path().join(".flow/workflows").exists());
}

#[test]
fn a_definition_without_a_name_or_without_steps_is_not_stored() {
    let (_root, library) = project();
    let create = |text: &str| library.create(Definition::Text(text), false).unwrap_err();
    let nameless = create("steps: [{type: shell, command: make}]\n");
    assert!(matches!(nameless, StoreError::Nameless), "{nameless}");
    let part = create("name: part\ntasks: {}\n");
    assert!(matches!(part, StoreError::NothingToRun), "{part}");
    let long = create(&hello(&"a".repeat(65), "make"));
    assert!(matches!(long, StoreError::Invalid(_)), "{long}");
}

#[test]
fn no_name_leaves_the_directory() {
    let (root, library) = project();
    for name in [
        "../out", "/tmp/out", "a/b", "..", "a\\b", "a.yaml", ".hidden", "a\u{0}b", "",
    ] {
        let definition = states(name);
        let result = library.create(Definition::Value(&definition), true);
        assert!(
            matches!(result, Err(StoreError::Invalid(_) | StoreError::Nameless)),
            "{name}: {result:?}"
        );
        let result = library.delete(name);
        assert!(
            matches!(result, Err(StoreError::NotFound { .. })),
            "{name}: {result:?}"
        );
    }
    assert!(!root.path().join(".flow/workflows").exists());
}

#[test]
fn a_link_out_of_the_project_is_not_written_through() {
    let (root, library) = project();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), root.path().join(".flow/workflows")).unwrap();
    let result = library.create(Definition::Text(&hello("a", "make")), false);
    assert!(
        matches!(result, Err(StoreError::Library(Error::Outside { .. }))),
        "{result:?}"
    );
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn an_existing_name_is_refused_unless_it_may_be_overwritten() {
    let (root, library) = project();
    let create = |text: &str, overwrite| library.create(Definition::Text(text), overwrite);
    create(&hello("a", "one"), false).unwrap();
    let refused = create(&hello("a", "two"), false).unwrap_err();
    assert!(matches!(&refused, StoreError::Exists(entry) if entry.name == "a"));
    assert!(refused.to_string().contains("a.yaml"), "{refused}");
    // Whoever made a file readable for others wants it so.
    let file = root.path().join(".flow/workflows/a.yaml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let created = create(&hello("a", "two"), true).unwrap();
    assert!(created.replaced);
    assert!(fs::read_to_string(&file).unwrap().contains("two"));
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o644
    );
    // In the other language it has another ending, and there is still one of it.
    library
        .create(Definition::Value(&states("a")), true)
        .unwrap();
    assert_eq!(files(root.path()).0, ["a.json"]);
}

#[test]
fn a_workflow_in_a_directory_of_its_own_is_replaced_where_it_stands() {
    let (root, _) = project();
    fs::create_dir_all(root.path().join("flows/team")).unwrap();
    fs::write(root.path().join("flow.toml"), "workflows = [\"flows\"]\n").unwrap();
    let file = root.path().join("flows/team/deploy.yaml");
    fs::write(&file, hello("team:deploy", "one")).unwrap();
    let library = library(root.path());
    let text = hello("team:deploy", "two");
    let created = library.create(Definition::Text(&text), true).unwrap();
    assert_eq!(path(&created.entry), file);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    library.delete("team:deploy").unwrap();
    assert!(!file.exists());
}

#[test]
fn a_built_in_name_is_taken_too_and_comes_back_after_deletion() {
    let (_root, library) = project();
    let text = hello("shipped", "make");
    let refused = library.create(Definition::Text(&text), false).unwrap_err();
    assert!(
        refused.to_string().contains("part of the program"),
        "{refused}"
    );
    let hidden = library.create(Definition::Text(&text), true).unwrap();
    assert!(hidden.replaced);
    let deleted = library.delete("shipped").unwrap();
    assert_eq!(deleted.entry, hidden.entry);
    assert_eq!(deleted.uncovered.unwrap().place, Place::Builtin);
    let refused = library.delete("shipped").unwrap_err();
    assert!(matches!(refused, StoreError::NotOurs(_)), "{refused}");
}

#[test]
fn only_workflows_are_deleted_and_a_near_name_is_offered() {
    let (root, library) = project();
    library
        .create(Definition::Text(&hello("deploy", "make")), false)
        .unwrap();
    fs::write(
        root.path().join(".flow/workflows/shared.yaml"),
        "tasks: {}\n",
    )
    .unwrap();
    let part = library.delete("shared").unwrap_err();
    assert!(matches!(part, StoreError::NotAWorkflow(_)), "{part}");
    for broken in ["", "{\"name\": \"x\", \"st", "\u{0}\u{1}", "[1, 2]"] {
        let file = root.path().join(".flow/workflows/broken.json");
        fs::write(&file, broken).unwrap();
        library.delete("broken").unwrap();
        assert!(!file.exists());
    }
    let Err(StoreError::NotFound {
        near, available, ..
    }) = library.delete("deplyo")
    else {
        panic!("there is no such workflow");
    };
    assert_eq!(near.as_deref(), Some("deploy"));
    assert_eq!(available, ["deploy", "shipped"]);
}

#[test]
fn what_does_the_same_is_kept_once() {
    let (root, library) = project();
    let save = |definition: Definition<'_>| library.save_for_reuse(definition).unwrap();
    let first = save(Definition::Value(&states("look")));
    let Saved::New(entry) = &first else {
        panic!("{first:?}");
    };
    assert_eq!(entry.name, "look");
    // Another name, another description, YAML instead of JSON.
    let mut same = states("elsewhere");
    same["description"] = json!("Another word for it");
    assert_eq!(save(Definition::Value(&same)), Saved::Known(entry.clone()));
    let text = "arguments: {PROJECT_ROOT: where}\nreturn_values:\n  FOUND: {name: FOUND, description: what, required: false}\ninitial_state: look\nstates:\n  look: {action: {params: {}, tool: list_terminal_sessions}}\n";
    assert_eq!(save(Definition::Text(text)), Saved::Known(entry.clone()));
    let builtin = "name: mine\nsteps: [{type: shell, command: 'true'}]\n";
    assert_eq!(
        save(Definition::Text(builtin)).entry().place,
        Place::Builtin
    );
    assert_eq!(files(root.path()).0, ["look.json"]);
}

#[test]
fn a_taken_name_gets_a_number_and_no_name_gets_one_of_its_content() {
    let (_root, library) = project();
    let save = |text: &str| match library.save_for_reuse(Definition::Text(text)).unwrap() {
        Saved::New(entry) => entry,
        Saved::Known(entry) => panic!("{entry:?}"),
    };
    assert_eq!(save(&hello("a", "one")).name, "a");
    let second = save(&hello("a", "two"));
    assert_eq!(second.name, "a_2");
    let text = fs::read_to_string(path(&second)).unwrap();
    assert_eq!(text, hello("\"a_2\"", "two"));
    for (at, quoted) in ["'a'", "\"a\"", "&n a"].into_iter().enumerate() {
        let entry = save(&hello(quoted, &format!("more{at}")));
        let graph = library.compile(&entry).unwrap().into_graph().unwrap();
        assert_eq!(graph.name, entry.name, "{quoted}");
        assert_eq!(entry.name, format!("a_{}", at + 3));
    }
    let long = "x".repeat(64);
    save(&hello(&long, "three"));
    let entry = save(&hello(&long, "four"));
    assert_eq!(entry.name, format!("{}_2", "x".repeat(62)));
    let nameless = save("steps: [{type: shell, command: make}]\n");
    assert!(nameless.name.starts_with("workflow_"), "{}", nameless.name);
    let graph = library.compile(&nameless).unwrap().into_graph().unwrap();
    assert_eq!(graph.name, nameless.name);
}

#[test]
fn of_many_that_create_one_name_one_succeeds() {
    let (root, library) = project();
    let barrier = Barrier::new(8);
    let created = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (library, barrier) = (&library, &barrier);
                scope.spawn(move || {
                    let text = hello("same", &format!("echo {n}"));
                    barrier.wait();
                    library.create(Definition::Text(&text), false).is_ok()
                })
            })
            .collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.filter(|created| *created).count()
    });
    assert_eq!(created, 1);
    assert_eq!(files(root.path()).0, ["same.yaml"]);
}

#[test]
fn many_that_save_at_once_lose_nothing_and_double_nothing() {
    let (root, library) = project();
    let barrier = Barrier::new(8);
    let names: Vec<(usize, String)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (library, barrier) = (&library, &barrier);
                scope.spawn(move || {
                    // Every content twice.
                    let text = hello("same", &format!("echo {}", n / 2));
                    barrier.wait();
                    let saved = library.save_for_reuse(Definition::Text(&text)).unwrap();
                    (n / 2, saved.entry().name.clone())
                })
            })
            .collect();
        let done = threads.into_iter().map(|thread| thread.join().unwrap());
        done.collect()
    });
    let distinct: BTreeSet<_> = names.into_iter().collect();
    assert_eq!(distinct.len(), 4, "{distinct:?}");
    assert_eq!(
        files(root.path()).0,
        ["same.yaml", "same_2.yaml", "same_3.yaml", "same_4.yaml"]
    );
}

#[test]
fn whoever_reads_sees_one_whole_definition_while_others_overwrite_it() {
    let (_root, library) = project();
    let long = |n: usize| hello("same", &format!("echo {}", n.to_string().repeat(20_000)));
    library.create(Definition::Text(&long(0)), false).unwrap();
    let file = path(&library.get("same").unwrap().unwrap());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !over.load(Ordering::Relaxed) || reads == 0 {
                let text = fs::read_to_string(&file).unwrap();
                assert!((0..4).any(|n| text == long(n)), "{} bytes", text.len());
                reads += 1;
            }
        });
        let writers: Vec<_> = (1..4)
            .map(|n| {
                let library = &library;
                scope.spawn(move || {
                    for _ in 0..10 {
                        library.create(Definition::Text(&long(n)), true).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

/// What a process that is killed overwrites for ever.
#[test]
#[ignore = "a part of the test below, which runs it in a process of its own"]
fn overwriter() {
    let root = PathBuf::from(std::env::var_os("FLOW_STORE_ROOT").unwrap());
    let library = library(&root);
    for n in 0_usize.. {
        let text = hello(
            "same",
            &format!("echo {}", (n % 10).to_string().repeat(50_000)),
        );
        library.create(Definition::Text(&text), true).unwrap();
        println!("overwritten");
    }
}

#[test]
fn a_writer_that_is_killed_leaves_a_whole_definition_and_no_lock() {
    let (root, library) = project();
    for lines in [1, 2, 5, 11] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "overwriter", "--nocapture"])
            .env("FLOW_STORE_ROOT", root.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let written = output
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains("overwritten"))
            .take(lines)
            .count();
        assert_eq!(written, lines);
        child.kill().unwrap();
        child.wait().unwrap();
        let entry = library.get("same").unwrap().unwrap();
        let text = fs::read_to_string(path(&entry)).unwrap();
        let whole = |n: usize| hello("same", &format!("echo {}", n.to_string().repeat(50_000)));
        assert!((0..10).any(|n| text == whole(n)), "{} bytes", text.len());
    }
    // What a dead writer left is no workflow, and the next one clears it away.
    let left = root
        .path()
        .join(".flow/workflows/.flow-0123456789abcdef.tmp");
    fs::write(&left, "name: ha").unwrap();
    assert_eq!(library.list().entries.len(), 2);
    library
        .create(Definition::Text(&hello("other", "make")), false)
        .unwrap();
    assert_eq!(files(root.path()).1, Vec::<String>::new());
}

#[test]
fn a_card_tells_what_the_definition_the_file_and_the_journal_know() {
    let (root, library) = project();
    library
        .create(Definition::Value(&states("look")), false)
        .unwrap();
    let journal = Journal::open(root.path().join(".flow/journal.db")).unwrap();
    let card = library.card("look", Some(&journal)).unwrap().to_json();
    assert_eq!(card["run_count"], 0);
    assert_eq!(card["last_run"], Value::Null);
    for (n, status) in [(1, Status::Failed), (2, Status::Completed)] {
        let definition = journal.put_definition(b"{}").unwrap();
        let run = RunId::new(n, 7);
        let start = Append::start(run, NewRun::new("look", definition, n * 1000))
            .event(n * 1000, "started", "{}")
            .update(RunUpdate::at(n * 1000).status(status));
        journal.append(start).unwrap();
    }
    let card = library.card("look", Some(&journal)).unwrap();
    let json = card.to_json();
    assert_eq!(json["run_count"], 2);
    assert_eq!(json["success_count"], 1);
    assert_eq!(json["last_run"], "1970-01-01T00:00:02.000Z");
    assert_eq!(json["state_count"], 1);
    assert_eq!(json["source"], "project");
    assert_eq!(
        json["signature"]["arguments"]["PROJECT_ROOT"]["required"],
        true
    );
    assert!(json["found_at"].as_str().unwrap().ends_with("look.json"));
    let created = json["created"].as_str().unwrap();
    assert!(
        created.starts_with("20") && created.ends_with('Z'),
        "{created}"
    );
    let builtin = library.card("shipped", Some(&journal)).unwrap().to_json();
    assert_eq!(builtin["created"], Value::Null);
    assert_eq!(builtin["description"], "compiled in");
    let nearly = library.card("lok", None).unwrap_err();
    assert!(
        nearly.to_string().contains("did you mean `look`?"),
        "{nearly}"
    );
}

#[test]
fn a_broken_workflow_has_a_card_that_says_so() {
    let (root, library) = project();
    fs::create_dir(root.path().join(".flow/workflows")).unwrap();
    fs::write(
        root.path().join(".flow/workflows/broken.yaml"),
        "steps: [{type: shel}]\n",
    )
    .unwrap();
    let card = library.card("broken", None).unwrap().to_json();
    assert!(
        card["error"].as_str().unwrap().starts_with("line 1"),
        "{card}"
    );
    assert_eq!(card["state_count"], 0);
}

#[test]
fn an_original_has_its_text_and_the_tree_of_its_imports() {
    let (root, library) = project();
    let directory = root.path().join(".flow/workflows");
    fs::create_dir(&directory).unwrap();
    let text = "# Ours.\nimports: [shared.yaml, gone.yaml]\nsteps: []\n";
    fs::write(directory.join("main.yaml"), text).unwrap();
    fs::write(
        directory.join("shared.yaml"),
        "imports: [more.yaml]\ntasks: {}\n",
    )
    .unwrap();
    fs::write(
        directory.join("more.yaml"),
        "imports: [shared.yaml]\ntasks: {}\n",
    )
    .unwrap();
    let original = library.original("main").unwrap();
    assert_eq!(original.text, text);
    assert_eq!(original.definition.unwrap()["steps"], json!([]));
    let [shared, gone] = &original.imports[..] else {
        panic!("{:?}", original.imports);
    };
    assert_eq!(shared.path, "shared.yaml");
    assert_eq!(shared.found_at, Some(directory.join("shared.yaml")));
    let [more] = &shared.imports[..] else {
        panic!("{shared:?}");
    };
    // The circle is shown once and not followed.
    assert_eq!(more.imports.len(), 1);
    assert_eq!(more.imports[0].imports, []);
    assert_eq!(gone.found_at, None);
    assert!(gone.error.as_ref().unwrap().contains("no such file"));
}

#[test]
fn a_directory_without_a_project_becomes_one() {
    let root = tempfile::tempdir().unwrap();
    let library = Library::around(root.path()).unwrap();
    assert!(library.project().is_none());
    let created = library
        .create(Definition::Text(&hello("first", "make")), false)
        .unwrap();
    assert_eq!(
        path(&created.entry),
        root.path().join(".flow/workflows/first.yaml")
    );
    assert!(library.get("first").unwrap().is_some());
    assert!(Project::at(root.path()).unwrap().is_some());
    let nowhere = Library::empty();
    let refused = nowhere.create(Definition::Text(&hello("a", "make")), false);
    assert!(matches!(refused, Err(StoreError::NoPlace)));
}
