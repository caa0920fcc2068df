//! Which files `flow check` takes from directories and projects.

use std::path::Path;

use super::{BAD, GOOD, Place, Ran};

/// The files that findings are about, in order.
fn files(ran: &Ran) -> Vec<String> {
    let value = ran.json();
    let diagnostics = value["diagnostics"].as_array().unwrap();
    diagnostics
        .iter()
        .map(|it| it["file"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_directory_is_walked_in_order_without_other_peoples_files() {
    let place = Place::with(&[
        ("b/x.yml", BAD),
        ("a.yaml", BAD),
        ("c.json", "{\"steps\": [{\"type\": \"shel\"}]}"),
        (".flow/workflows/p.yaml", BAD),
        (".hidden/x.yaml", BAD),
        (".x.yaml", BAD),
        ("node_modules/x/x.yaml", BAD),
        ("target/x.yaml", BAD),
        (".github/workflows/ci.yml", "on: push\njobs: {}\n"),
        ("package.json", "{\"name\": \"x\"}"),
        ("docker-compose.yml", "services: {}\n"),
        ("notes.txt", BAD),
        (
            "parts.yaml",
            "tasks:\n  t:\n    steps:\n      - {type: shel}\n",
        ),
    ]);
    let ran = place.run(&["check", ".", "--format", "json"]);
    let expected = [".flow/workflows/p.yaml", "a.yaml", "b/x.yml", "c.json"];
    assert_eq!(files(&ran), expected, "{}", ran.stdout);
    assert_eq!(ran.code, 3);
}

#[test]
fn below_workflows_every_file_is_a_definition() {
    let place = Place::with(&[("workflows/empty.yaml", ""), ("workflows/a/b.json", "{}")]);
    let ran = place.run(&["check", ".", "--format", "json"]);
    let mut files = files(&ran);
    files.dedup();
    assert_eq!(files, ["workflows/a/b.json", "workflows/empty.yaml"]);
    let ran = place.run(&["check", "workflows/a", "--format", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
}

#[test]
fn a_directory_without_definitions_is_said_to_be_one() {
    let place = Place::with(&[("docs/a.md", "x"), ("docs/package.json", "{}")]);
    let ran = place.run(&["check", "docs"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("there are no definitions in `docs`"));
}

#[test]
fn without_arguments_the_project_is_checked_from_anywhere_in_it() {
    let place = Place::with(&[
        (".flow/workflows/a.yaml", BAD),
        ("flow.toml", "workflows = [\"flows\"]\n"),
        ("flows/b.yaml", BAD),
        ("other/c.yaml", BAD),
        ("src/deep/x.txt", ""),
    ]);
    let ran = place.run(&["check", "--format=json"]);
    assert_eq!(files(&ran), [".flow/workflows/a.yaml", "flows/b.yaml"]);
    let mut command = place.command_in(Path::new("src/deep"), &["check", "--format=json"]);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(files(&ran).len(), 2);
}

#[test]
fn without_arguments_and_project_it_says_what_to_do() {
    let ran = Place::new().run(&["check"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("there is no project here"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("flow check FILE"));
    let empty = Place::with(&[(".flow/x", "")]).run(&["check"]);
    assert_eq!(empty.code, 2);
    assert!(empty.stderr.contains("no workflows in `.flow/workflows`"));
}

#[test]
fn settings_that_cannot_be_read_are_told_with_their_line() {
    let place = Place::with(&[("flow.toml", "a = 1\nworkflows = [\n"), ("a.yaml", GOOD)]);
    let ran = place.run(&["check", "a.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("flow.toml: line "), "{}", ran.stderr);
    let place = Place::with(&[("flow.toml", "workflows = \"flows\"\n"), ("a.yaml", GOOD)]);
    let ran = place.run(&["check", "a.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("list of directories"), "{}", ran.stderr);
}

#[test]
fn a_circle_of_imports_is_seen_through_dots_and_links() {
    let a = "imports: [sub/../sub/b.yaml]\nsteps:\n  - {type: shell, command: make}\n";
    let b = "imports: [../sub/../a.yaml]\ntasks: {}\n";
    let place = Place::with(&[("a.yaml", a), ("sub/b.yaml", b)]);
    let ran = place.run(&["check", "sub/../a.yaml", "--format=json"]);
    let codes: Vec<String> = ran.found().into_iter().map(|it| it.0).collect();
    assert_eq!(codes, ["F071"], "{}", ran.stdout);
    assert_eq!(files(&ran), ["sub/b.yaml"]);
}

#[test]
fn imports_stay_inside_the_project() {
    let main = "imports: [../../out.yaml, /etc/passwd, \"https://x/y.yaml\"]\nsteps:\n  - {type: shell, command: make}\n";
    let place = Place::with(&[
        ("out.yaml", "tasks: {}\n"),
        ("project/.flow/x", ""),
        ("project/flows/a.yaml", main),
    ]);
    let mut command = place.command_in(Path::new("project"), &["check", "flows/a.yaml"]);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 3);
    assert!(ran.stdout.contains("it is outside"), "{}", ran.stdout);
    assert!(ran.stdout.contains("its path is not relative"));
    assert!(ran.stdout.contains("only files can be imported"));
}
