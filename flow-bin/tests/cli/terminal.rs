//! Workflows in terminals, from the command line.

use std::path::Path;

use serde_json::json;

use super::{Place, Ran};

const BUILD: &str = r#"
arguments: {WHERE: the directory, KIND: debug or release}
return_values: {STATUS: how it went}
initial_state: build
states:
  build:
    action: {tool: run_command, params: {command: 'cd "$WHERE" && export STATUS="built as $KIND"'}}
"#;

#[test]
fn a_contract_is_held_against_the_environment_of_the_command() {
    let place = Place::with(&[("build.yaml", BUILD)]);
    let mut command = place.command(&["run", "build.yaml", "--format", "json"]);
    command.env("WHERE", "/").env("KIND", "release");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let result = ran.json();
    assert_eq!(
        result["return_values"],
        json!({"STATUS": "built as release"})
    );
    assert_eq!(result["final_state"], "build");
    let mut command = place.command(&["run", "build.yaml", "--session", "sh", "-q"]);
    command.env("WHERE", "/").env("KIND", "debug");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.json(), json!({"STATUS": "built as debug"}));
}

#[test]
fn missing_arguments_are_told_with_the_line_that_sets_them() {
    let place = Place::with(&[("build.yaml", BUILD)]);
    let mut command = place.command(&["run", "build.yaml", "--format", "json"]);
    command.env_remove("WHERE").env_remove("KIND");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 1);
    assert_eq!(ran.json()["final_state"], "validation_failed");
    assert_eq!(ran.json()["states_executed"], 0);
    let line = "export WHERE=value; export KIND=value";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    // Its session is gone with it: nothing can be set there, and nothing resumed.
    for word in ["t-", "flow resume"] {
        assert!(!ran.stderr.contains(word), "{}", ran.stderr);
    }
    assert!(ran.stderr.contains("`NAME=value` before"), "{}", ran.stderr);
    let shell = place.run(&["run", "build.yaml", "--session", "no-such-shell"]);
    assert_eq!(shell.code, 2);
    assert!(shell.stderr.contains("no-such-shell"), "{}", shell.stderr);
}

#[test]
fn what_the_policy_forbids_is_told_by_the_exit_code() {
    let place = Place::with(&[("build.yaml", BUILD), ("sub/file", "")]);
    let run = |policy: &str, arguments: &[&str]| {
        place.file("flow.toml", policy);
        let arguments = [&["run", "build.yaml", "--format", "json"], arguments].concat();
        let mut command = place.command(&arguments);
        command.env("WHERE", "/").env("KIND", "debug");
        Ran::from(command.output().unwrap())
    };
    let dash = "[terminal]\nprograms = [\"dash\"]\n";
    let elsewhere = "[terminal]\ndirectories = [\"sub\"]\n";
    let none = "[terminal]\nmax_sessions = 0\n";
    assert_eq!(run(dash, &["--session", "dash"]).code, 0);
    for (policy, arguments) in [
        (dash, &["--session", "zsh"][..]),
        (dash, &[]),
        (elsewhere, &[]),
        (none, &[]),
    ] {
        let ran = run(policy, arguments);
        assert_eq!(ran.code, 4, "{policy}: {}", ran.stderr);
        assert!(ran.stderr.contains("flow doctor"), "{}", ran.stderr);
        assert_eq!(ran.json()["run_id"], json!(null));
    }
}

#[test]
fn the_built_in_test_runner_runs_tests() {
    let place = Place::new();
    let steady = place.run(&["test-runner", "true"]);
    assert_eq!(steady.code, 0, "{}", steady.stderr);
    assert_eq!(steady.json()["steady"], true);
    let shaky = place.run(&["test-runner", "test -e once || { touch once; false; }"]);
    assert_eq!(shaky.code, 0, "{}", shaky.stderr);
    assert_eq!(shaky.json()["steady"], false);
    assert!(Path::new(&place.path("once")).exists());
    for (words, said) in [
        (
            &["false"][..],
            "false fails at both attempts, with exit code 1: ",
        ),
        (&["echo oh no; exit 7"], "with exit code 7: oh no"),
        (&["no-such-program"], "command not found"),
        (&["true", "-p", "directory=nowhere"], "nowhere"),
    ] {
        let failed = place.run(&[&["test-runner"], words].concat());
        assert_eq!(failed.code, 1, "{words:?}");
        assert!(failed.stderr.contains(said), "{words:?}: {}", failed.stderr);
    }
}

#[test]
fn the_built_in_task_runner_runs_what_can_be_run_and_tells_what_cannot() {
    let place = Place::new();
    let ran = |tasks: &str| place.run(&["task-runner", tasks, "--format", "json"]);
    let fine = ran(
        r#"[{"name": "b", "command": "true", "needs": ["a"]}, {"name": "a", "command": "true"}]"#,
    );
    assert_eq!(
        fine.json()["output"]["succeeded"],
        serde_json::json!(["a", "b"])
    );
    for (tasks, said) in [
        (
            r#"[{"name": "a", "command": "touch ran", "needs": ["z"]}]"#,
            "needs z, which is no task",
        ),
        (
            r#"[{"name": "a", "command": "touch ran"}, {"name": "a", "command": "true"}]"#,
            "has the name of an earlier one",
        ),
        (r#"[{"name": "a"}]"#, "has no command"),
        (r#"[{"command": "touch ran"}]"#, "has no name"),
        (
            r#"[{"name": "a", "command": "touch ran", "needs": ["b"]}, {"name": "b", "command": "true", "needs": ["a"]}]"#,
            "a, b need each other",
        ),
        (
            r#"[{"name": "a", "command": "false"}, {"name": "b", "command": "touch ran", "needs": ["a"]}]"#,
            "failed: a; not run: b",
        ),
    ] {
        let refused = ran(tasks);
        assert_eq!(refused.code, 1, "{tasks}: {}", refused.stderr);
        let error = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(said), "{tasks}: {error}");
        assert!(!place.path("ran").exists(), "{tasks}");
    }
    let tasks = r#"[{"name": "a", "command": "false"}]"#;
    let allowed = place.run(&["task-runner", tasks, "-p", "allow_failures=true"]);
    assert_eq!(allowed.code, 0, "{}", allowed.stderr);
    assert_eq!(allowed.json()["failed"], serde_json::json!(["a"]));
}

#[test]
fn built_ins_say_what_is_missing() {
    let place = Place::with(&[
        ("empty.md", ""),
        ("some.md", "1. begin"),
        (
            "answers.json",
            r#"{"work": {"piece": "begin", "nothing_left": false}, "repair": "never"}"#,
        ),
    ]);
    for (words, said) in [
        (&["implement"][..], "PLAN.md is no file with a plan"),
        (
            &[
                "implement",
                "-p",
                "plan_filename=some.md",
                "--answers",
                "answers.json",
            ],
            "`give-up` ended with exit code 1: how to test is not known here",
        ),
        (&["plan", "none.md"], "none.md"),
        (
            &["plan", "empty.md"],
            "empty.md is empty; there is nothing to plan",
        ),
        (&["code-review", "main", "other"], "git"),
    ] {
        let ran = place.run(words);
        assert_eq!(ran.code, 1, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn a_terminal_that_stays_open_is_said_to_end_with_the_command() {
    let text = "initial_state: open\nstates:\n  open: {action: {tool: open_terminal, params: {shell: sh}}}\n";
    let place = Place::with(&[("open.yaml", text)]);
    let ran = place.run(&["run", "open.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("ends with this command"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_run_that_waits_says_that_its_terminal_ends_with_the_command() {
    let text = "initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: sh}}
    transitions: [{condition: success, next_state: ask}]
  ask: {action: {type: prompt, kind: confirm, message: 'Go on?'}}
";
    let place = Place::with(&[("asks.yaml", text)]);
    let ran = place.run(&["run", "asks.yaml"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let told = "of the run ends with this command: a later step";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

const OPENS: &str = "initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: say}]
  say: {action: {tool: run_command, params: {command: echo hello}}}
";

#[test]
fn what_a_command_in_a_terminal_wrote_is_in_the_log() {
    let place = Place::with(&[("opens.yaml", OPENS)]);
    let ran = place.run(&["run", "opens.yaml", "--format", "jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("\"text\":\"hello\\n\""),
        "{}",
        ran.stdout
    );
    let logs = place.run(&["logs", "latest"]);
    assert_eq!(logs.stdout, "--- say\nhello\n");
    let one = place.run(&["logs", "latest", "--step", "say"]);
    assert_eq!(one.stdout, "hello\n");
}

#[test]
fn what_a_command_in_a_terminal_has_written_is_in_the_log_although_it_was_stopped() {
    let late = "initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: much}]
  much:
    action: {tool: run_command, params: {command: 'seq 1 100000'}}
    transitions: [{condition: success, next_state: say}]
  say:
    action: {tool: run_command, params: {command: 'echo early; sleep 100'}}
    timeout: 2
    on_timeout: end
  end: {action: {type: shell, command: 'true'}}
";
    let place = Place::with(&[("late.yaml", late)]);
    let ran = place.run(&["run", "late.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = place.run(&["logs", "latest", "--step", "say"]);
    assert_eq!(log.stdout, "early\n");
    let log = place.run(&["logs", "latest", "--step", "much"]).stdout;
    assert!(
        log.starts_with("[what came before this was dropped]\n"),
        "{}",
        &log[..100]
    );
    assert!(log.ends_with("\n100000\n"));
}

#[test]
fn a_run_that_has_failed_is_said_to_have_lost_its_terminal() {
    let fails = OPENS.replace("echo hello", "cat /nowhere");
    let place = Place::with(&[("fails.yaml", &fails)]);
    let ran = place.run(&["run", "fails.yaml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let told = "is gone then: where a step works in it, run the workflow again instead";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let resumed = place.run(&["resume", "latest"]);
    assert!(resumed.stderr.contains(told), "{}", resumed.stderr);
    // Who had none has lost none.
    let place = Place::with(&[(
        "w.yaml",
        "steps: [{id: a, type: shell, command: 'false'}]\n",
    )]);
    let ran = place.run(&["run", "w.yaml"]);
    assert!(ran.stderr.contains("flow resume"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("terminal"), "{}", ran.stderr);
}

#[test]
fn settings_bound_terminals_and_record_what_is_typed() {
    let place = Place::with(&[
        ("opens.yaml", OPENS),
        ("flow.toml", "[terminal]\nprograms = [\"dash\"]\n"),
    ]);
    let ran = place.run(&["run", "opens.yaml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let told = "the policy does not let `bash` be opened; allowed: dash";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);

    let audit = "[terminal]\nprograms = [\"bash\"]\nmax_sessions = 1\naudit = \"audit.jsonl\"\n";
    let place = Place::with(&[("opens.yaml", OPENS), ("flow.toml", audit)]);
    let ran = place.run(&["run", "opens.yaml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let typed = std::fs::read_to_string(place.path("audit.jsonl")).unwrap();
    assert!(typed.contains("echo hello"), "{typed}");
    let doctor = place.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("only the programs bash; at most 1 at a time"),
        "{doctor}"
    );
}

#[test]
fn the_environment_bounds_terminals_as_well() {
    let place = Place::with(&[
        ("opens.yaml", OPENS),
        ("flow.toml", "[terminal]\nprograms = [\"bash\", \"dash\"]\n"),
    ]);
    let run = |name: &str, value: &str| {
        let mut command = place.command(&["run", "opens.yaml"]);
        Ran::from(command.env(name, value).output().unwrap())
    };
    let ran = run("FLOW_TERMINAL_PROGRAMS", "dash:zsh");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let told = "the policy does not let `bash` be opened; allowed: dash, zsh";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let ran = run("FLOW_TERMINAL_DIRECTORIES", "elsewhere");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let ran = run("FLOW_TERMINAL_PROGRAM", "bash");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let told = "$FLOW_TERMINAL_PROGRAM: it means nothing; did you mean FLOW_TERMINAL_PROGRAMS?";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let ran = run("FLOW_TERMINAL_MAX_SESSIONS", "many");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let told = "$FLOW_TERMINAL_MAX_SESSIONS: it is a whole number from 0 on, and not `many`";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    // An empty list lets nothing through.
    let ran = run("FLOW_TERMINAL_PROGRAMS", "");
    let told = "the policy does not let `bash` be opened; allowed: none";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    let ran = run("FLOW_TERMINAL_AUDIT", "");
    assert!(ran.stderr.contains("names no file"), "{}", ran.stderr);
    let ran = run("FLOW_TERMINAL_AUDIT", "typed.jsonl");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let typed = std::fs::read_to_string(place.path("typed.jsonl")).unwrap();
    assert!(typed.contains("echo hello"), "{typed}");
}

#[test]
fn what_a_project_records_stays_inside_it_whatever_links_say() {
    let place = Place::with(&[("opens.yaml", OPENS), ("inside/kept", "")]);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("file"), "").unwrap();
    let link = |to: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(to, place.path(name)).unwrap();
    };
    link(&outside.path().join("file"), "file.jsonl");
    link(&outside.path().join("none"), "none.jsonl");
    link(outside.path(), "directory");
    link(&place.path("inside"), "within");
    for (audit, code) in [
        ("file.jsonl", 2),
        ("none.jsonl", 2),
        ("directory/file", 2),
        ("directory/new", 2),
        ("within/new", 0),
        ("inside/new", 0),
    ] {
        let settings = format!("[terminal]\naudit = \"{audit}\"\n");
        std::fs::write(place.path("flow.toml"), settings).unwrap();
        let ran = place.run(&["run", "opens.yaml"]);
        assert_eq!(ran.code, code, "{audit}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    let file = std::fs::read_to_string(outside.path().join("file")).unwrap();
    assert_eq!(file, "");
    let inside = std::fs::read_to_string(place.path("inside/new")).unwrap();
    assert_eq!(inside.matches("echo hello").count(), 2, "{inside}");
}

#[test]
fn settings_of_terminals_that_cannot_be_are_named() {
    for (settings, told) in [
        ("terminal = 1\n", "write `[terminal]`"),
        (
            "[terminal]\nprograms = \"bash\"\n",
            "`terminal.programs` is a list",
        ),
        ("[terminal]\nmax_sessions = -1\n", "whole number"),
        (
            "[terminal]\naudit = \"../a\"\n",
            "inside it, and `../a` is not",
        ),
        (
            "[terminal]\naudit = \"/etc/a\"\n",
            "inside it, and `/etc/a` is not",
        ),
        // A bound with a slip of the pen would be none.
        (
            "[terminal]\nprogram = [\"bash\"]\n",
            "`terminal.program` means nothing; did you mean `terminal.programs`?",
        ),
    ] {
        let place = Place::with(&[("opens.yaml", OPENS), ("flow.toml", settings)]);
        let ran = place.run(&["run", "opens.yaml"]);
        assert_eq!(ran.code, 2, "{settings}{}", ran.stderr);
        assert!(ran.stderr.contains(told), "{settings}{}", ran.stderr);
    }
}
