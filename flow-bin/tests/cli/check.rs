//! Findings, formats and exit codes of `flow check`.

use super::{BAD, GOOD, ODD, Place};

#[test]
fn a_good_file_says_so_and_exits_0() {
    let ran = Place::with(&[("a.yaml", GOOD)]).run(&["check", "a.yaml"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.stderr, "1 file checked, no findings\n");
}

#[test]
fn a_fault_is_drawn_under_its_line() {
    let ran = Place::with(&[("a.yaml", BAD)]).run(&["check", "a.yaml"]);
    assert_eq!(ran.code, 3);
    let drawn = "\
error[F013]: there is no step type `shel`
 --> a.yaml:2:12
  |
2 |   - {type: shel, command: make}
  |            ^^^^ not a step type
  |
  = help: did you mean `shell`?
";
    assert_eq!(ran.stdout, drawn);
    assert!(
        ran.stderr.starts_with("1 error in 1 file"),
        "{}",
        ran.stderr
    );
}

#[test]
fn several_files_are_checked_in_the_order_given() {
    let place = Place::with(&[("a.yaml", BAD), ("b.yaml", GOOD), ("c.yaml", ODD)]);
    let ran = place.run(&["check", "c.yaml", "b.yaml", "a.yaml"]);
    assert_eq!(ran.code, 3);
    let (c, a) = (ran.stdout.find("c.yaml:1:"), ran.stdout.find("a.yaml:2:"));
    assert!(c.unwrap() < a.unwrap(), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n\nerror[F013]"), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("1 error, 1 warning in 3 files"));
}

#[test]
fn a_file_named_twice_is_checked_once() {
    let place = Place::with(&[("a.yaml", BAD)]);
    let ran = place.run(&["check", "a.yaml", "./a.yaml", ".", "--format", "json"]);
    assert_eq!(ran.found().len(), 1);
}

#[test]
fn warnings_do_not_fail_unless_strict() {
    let place = Place::with(&[("a.yaml", ODD)]);
    let ran = place.run(&["check", "a.yaml", "--format", "json"]);
    assert_eq!(ran.code, 0);
    assert_eq!(ran.json()["ok"], true);
    assert_eq!(ran.json()["diagnostics"][0]["severity"], "warning");
    let ran = place.run(&["check", "a.yaml", "--format", "json", "--strict"]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.json()["ok"], false);
    assert_eq!(ran.json()["diagnostics"][0]["severity"], "error");
}

#[test]
fn json_has_every_field_and_nothing_else_is_printed() {
    let ran = Place::with(&[("a.yaml", BAD)]).run(&["check", "a.yaml", "--format=json"]);
    assert_eq!(ran.stderr, "");
    let value = ran.json();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["ok", "diagnostics"]);
    let finding = &value["diagnostics"][0];
    assert_eq!(finding["code"], "F013");
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["message"], "there is no step type `shel`");
    assert_eq!(finding["file"], "a.yaml");
    assert_eq!(finding["line"], 2);
    assert_eq!(finding["column"], 12);
    assert_eq!(finding["end_line"], 2);
    assert_eq!(finding["end_column"], 16);
    assert_eq!(finding["help"], "did you mean `shell`?");
    assert_eq!(finding["suggestion"], "shell");
}

#[test]
fn json_without_findings_is_an_empty_list() {
    let ran = Place::with(&[("a.yaml", GOOD)]).run(&["check", "a.yaml", "--format=json"]);
    assert_eq!(
        ran.json(),
        serde_json::json!({"ok": true, "diagnostics": []})
    );
}

#[test]
fn github_gets_an_annotation_a_finding() {
    let place = Place::with(&[("a.yaml", BAD), ("b.yaml", ODD)]);
    let ran = place.run(&["check", "a.yaml", "b.yaml", "--format", "github"]);
    assert_eq!(ran.code, 3);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("::error file=a.yaml,line=2,endLine=2,col=12,"));
    assert!(lines[1].starts_with("::warning file=b.yaml,line=1,"));
}

#[test]
fn ten_faults_give_ten_findings_at_their_places() {
    let text = "\
name: many faults
inputs:
  retries: {type: integer, default: lots}
steps:
  - type: shel
    command: make
  - type: shell
    comand: make
    command: make
  - type: shell
    command: echo {{ inputs.retires }}
  - type: shell
    command: echo {{ inputs.retries | uper }}
  - type: shell
    command: \"echo {{ 1 + }}\"
  - type: prompt
    message: Which?
    kind: choice
  - type: break
  - type: foreach
    items: [1]
    task: eahc
  - type: shell
    command: make
    output_to: \"a..b\"
tasks:
  each:
    steps:
      - {type: shell, command: make}
";
    let place = Place::with(&[("many.yaml", text)]);
    let ran = place.run(&["check", "many.yaml", "--format", "json"]);
    assert_eq!(ran.code, 3);
    let expected = [
        ("F011", "many faults"),
        ("F060", "lots"),
        ("F013", "shel\n"),
        ("F006", "comand"),
        ("F050", "retires"),
        ("F043", "uper"),
        ("F040", "+ }}"),
        ("F061", "type: prompt"),
        ("F025", "type: break"),
        ("F032", "eahc"),
        ("F056", "\"a..b\""),
    ];
    let found = ran.found();
    let value = ran.json();
    for (code, words) in expected {
        let at = text.find(words).unwrap();
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let line = text[..at].matches('\n').count() as u64 + 1;
        let column = text[start..at].chars().count() as u64 + 1;
        let place = (code.to_owned(), line, column);
        assert!(found.contains(&place), "{place:?}: {value:#}");
    }
    let retires = &value["diagnostics"][4];
    assert_eq!(retires["suggestion"], "retries");
    let errors = found.iter().filter(|(code, ..)| code.as_str() < "F100");
    assert_eq!(errors.count(), expected.len(), "{value:#}");
}

#[test]
fn standard_input_is_a_file_called_stdin() {
    let place = Place::new();
    let ran = place.pipe(&["check", "-"], BAD);
    assert_eq!(ran.code, 3);
    assert!(ran.stdout.contains(" --> <stdin>:2:12"), "{}", ran.stdout);
    let ran = place.pipe(&["check", "-", "--format=json"], GOOD);
    assert_eq!(ran.code, 0);
}

#[test]
fn standard_input_imports_from_the_current_directory() {
    let parts = "tasks:\n  each:\n    steps:\n      - {type: shell, command: make}\n";
    let place = Place::with(&[("parts.yaml", parts)]);
    let main = "imports: [parts.yaml]\nsteps:\n  - {type: foreach, items: [1], task: each}\n";
    let ran = place.pipe(&["check", "-"], main);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

#[test]
fn a_missing_file_is_named_and_the_others_are_checked() {
    let place = Place::with(&[("deploy.yaml", BAD)]);
    let ran = place.run(&["check", "deplyo.yaml", "deploy.yaml", "--format=json"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("there is no file `deplyo.yaml`"));
    assert!(ran.stderr.contains("did you mean `deploy.yaml`?"));
    assert_eq!(ran.found().len(), 1);
    let place = Place::with(&[("deploy.yaml", GOOD)]);
    let ran = place.run(&["check", "deplyo.yaml", "deploy.yaml", "--format=json"]);
    assert_eq!(ran.json()["ok"], false);
    assert_eq!(ran.code, 2);
}

#[test]
fn more_than_a_hundred_findings_are_counted() {
    let text = format!(
        "steps:\n{}",
        "  - {type: shel, command: make}\n".repeat(130)
    );
    let place = Place::with(&[("a.yaml", &text)]);
    let ran = place.run(&["check", "a.yaml"]);
    assert_eq!(ran.stdout.matches("error[F013]").count(), 100);
    assert!(ran.stdout.ends_with("\n… and 30 more in a.yaml\n"));
    assert!(ran.stderr.starts_with("130 errors in 1 file"));
    let ran = place.run(&["check", "a.yaml", "--format", "json"]);
    assert_eq!(ran.found().len(), 130);
}

#[test]
fn a_fault_of_a_shared_import_is_told_once() {
    let parts = "tasks:\n  each:\n    steps:\n      - {type: shel, command: make}\n";
    let main = "imports: [parts.yaml]\nsteps:\n  - {type: foreach, items: [1], task: each}\n";
    let place = Place::with(&[("parts.yaml", parts), ("a.yaml", main), ("b.yaml", main)]);
    let ran = place.run(&["check", "a.yaml", "b.yaml", "--format=json"]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.found().len(), 1);
    assert_eq!(ran.json()["diagnostics"][0]["file"], "parts.yaml");
}

#[test]
fn a_called_workflow_is_found_in_the_project_and_beside_the_file() {
    let call = "steps:\n  - {type: call, workflow: other}\n";
    let unknown = Place::with(&[("a.yaml", call)]);
    assert_eq!(unknown.run(&["check", "a.yaml", "--strict"]).code, 3);
    let beside = Place::with(&[("a.yaml", call), ("other.yaml", GOOD)]);
    assert_eq!(beside.run(&["check", "a.yaml", "--strict"]).code, 0);
    let project = Place::with(&[("a.yaml", call), (".flow/workflows/other.yaml", GOOD)]);
    assert_eq!(project.run(&["check", "a.yaml", "--strict"]).code, 0);
    let user = Place::with(&[("a.yaml", call), ("config/workflows/other.yaml", GOOD)]);
    assert_eq!(user.run(&["check", "a.yaml", "--strict"]).code, 0);
}

#[test]
fn a_workflow_that_says_another_name_than_it_is_found_by_is_told() {
    let named = format!("name: release\n{GOOD}");
    let place = Place::with(&[
        (".flow/workflows/deploy.yaml", &named),
        (".flow/workflows/a/b.yaml", &format!("name: a:b\n{GOOD}")),
        (".flow/workflows/a/c.yaml", GOOD),
        ("elsewhere.yaml", &named),
    ]);
    let said = "says `name: release` and is found as `deploy`";
    for words in [
        &["check"][..],
        &["check", ".flow/workflows/deploy.yaml"],
        &["check", "."],
    ] {
        let checked = place.run(words);
        assert_eq!(checked.code, 0, "{}", checked.stderr);
        assert_eq!(
            checked.stderr.matches(said).count(),
            1,
            "{words:?}: {}",
            checked.stderr
        );
        assert_eq!(
            checked.stderr.matches("is found as").count(),
            1,
            "{}",
            checked.stderr
        );
    }
    assert!(
        !place
            .run(&["check", "elsewhere.yaml"])
            .stderr
            .contains("is found as")
    );
}

#[test]
fn a_field_that_is_imported_and_included_is_one_field() {
    let scores = "name: scores
state: {points: [3]}
computed: {score: {from: points, transform: input.length}}
steps: [{type: set_state, updates: {points: [5, 6]}}]
";
    let game = "name: game
imports: [scores.yaml]
outputs: {score: '{{ state.score }}'}
steps: [{type: call, workflow: scores, shares_computed: true}]
";
    let own = game.replace(
        "imports: [scores.yaml]",
        "state: {n: 1}\ncomputed: {score: {from: n, transform: input}}",
    );
    let place = Place::with(&[
        (".flow/workflows/scores.yaml", scores),
        (".flow/workflows/game.yaml", game),
        (".flow/workflows/own.yaml", &own),
    ]);
    let ran = place.run(&["check", ".flow/workflows/game.yaml"]);
    assert_eq!(
        ran.stderr, "1 file checked, no findings\n",
        "{}",
        ran.stdout
    );
    let ran = place.run(&["check", ".flow/workflows/own.yaml"]);
    assert!(ran.stdout.contains("F117"), "{}", ran.stdout);
}

#[test]
fn the_summary_names_an_error_before_a_warning() {
    let place = Place::with(&[(
        "w.yaml",
        "inputs: {unread: string}\nsteps:\n  - {type: shell, command: 'echo {{ item }}'}\n",
    )]);
    let check = place.run(&["check", "w.yaml"]);
    let hint = "`flow explain F052` says more";
    assert!(check.stderr.contains(hint), "{}", check.stderr);
}

#[test]
fn a_workflow_named_like_a_command_is_told_however_it_is_checked() {
    let place = Place::with(&[(".flow/workflows/list.yaml", GOOD)]);
    for asked in [&["check"][..], &["check", ".flow/workflows/list.yaml"]] {
        let ran = place.run(asked);
        let told = "the workflow `list` is run by `flow _list`";
        assert_eq!(ran.stderr.matches(told).count(), 1, "{}", ran.stderr);
        assert_eq!(ran.code, 0, "{asked:?}");
    }
}
