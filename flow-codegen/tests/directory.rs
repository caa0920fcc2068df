//! A directory of definitions from a build script.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::fs;
use std::path::{Path, PathBuf};

use flow_codegen::{Options, compile_dir_with};
use tempfile::TempDir;

const GOOD: &str =
    "description: Says hi.\nsteps:\n  - {id: greet, type: shell, command: echo hi}\n";

struct Made {
    lines: Vec<String>,
    code: String,
    base: PathBuf,
    /// Removed when the test is over.
    _directory: TempDir,
}

fn make(files: &[(&str, &str)]) -> Made {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().to_owned();
    fs::create_dir_all(base.join("flows")).unwrap();
    for (file, text) in files {
        fs::write(base.join("flows").join(file), text).unwrap();
    }
    let out = base.join("all.rs");
    let lines = compile_dir_with(&base, Path::new("flows"), &out, &Options::default()).unwrap();
    let code = fs::read_to_string(out).unwrap();
    Made {
        lines,
        code,
        base,
        _directory: directory,
    }
}

#[test]
fn every_definition_is_a_module_and_stands_in_the_list() {
    let made = make(&[("b.yaml", GOOD)]);
    assert!(made.code.contains("pub mod b {"));
    assert!(made.code.contains(r#"description: "Says hi.","#));
    assert!(made.code.contains("graph: &b::GRAPH,"));
    let watched = format!(
        "cargo::rerun-if-changed={}",
        made.base.join("flows").display()
    );
    assert_eq!(made.lines[0], watched);
}

#[test]
fn what_is_only_imported_has_no_module() {
    let tasks = "tasks:\n  each:\n    steps:\n      - {type: shell, command: 'echo {{ item }}'}\n";
    let main = "imports: [_tasks.yaml]\nsteps:\n  - {type: foreach, items: [1], task: each}\n";
    let files = [
        ("_tasks.yaml", tasks),
        ("main.yaml", main),
        ("notes.txt", "x"),
    ];
    let made = make(&files);
    assert_eq!(made.code.matches("::flow::Builtin {").count(), 1);
    assert!(made.lines.iter().any(|line| line.ends_with("_tasks.yaml")));
}

#[test]
fn a_fault_is_a_compile_error_and_the_others_still_stand() {
    let bad = "steps:\n  - {id: greet, type: shel, command: echo hi}\n";
    let made = make(&[("bad.yaml", bad), ("good.yaml", GOOD)]);
    assert_eq!(made.code.matches("::core::compile_error!").count(), 1);
    let report = fs::read_to_string(made.base.join("all.0.txt")).unwrap();
    assert!(report.starts_with("F013: there is no step type `shel`\n --> flows/bad.yaml:2:23"));
    assert!(made.code.contains("pub mod bad {"));
    assert_eq!(made.code.matches("::flow::Builtin {").count(), 1);
}

#[test]
fn a_lint_is_a_warning_and_a_clash_of_modules_an_error() {
    let unused = format!("inputs: {{x: string}}\n{GOOD}");
    let made = make(&[("a-b.yaml", &unused), ("a_b.yaml", GOOD)]);
    let warning =
        "cargo::warning=flows/a-b.yaml:1:10: F106: nothing in the workflow reads the input `x`";
    assert!(
        made.lines.iter().any(|line| line == warning),
        "{:?}",
        made.lines
    );
    let report = fs::read_to_string(made.base.join("all.0.txt")).unwrap();
    assert_eq!(
        report,
        "the workflows `a-b` and `a_b` are both `a_b` in Rust"
    );
}
