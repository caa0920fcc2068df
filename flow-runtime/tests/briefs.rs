//! Agents and prompts: found, read, filled in.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use flow_runtime::briefs::{Brief, BriefError, Briefs, Kind};
use flow_runtime::library::Place;
use flow_runtime::value::Value;
use serde_json::json;
use tempfile::TempDir;

const REVIEW: &str = "\
---
description: Reviews a change
model: opus
arguments:
  - {name: branch, required: true, description: what to review}
  - {name: depth, type: integer, default: 2}
  - note
---

Review {{ branch }} to depth {{ depth }}.
{% if note %}Mind: {{ arguments.note | upper }}{% endif %}";

fn project(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".flow")).unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn prompts(root: &Path) -> Briefs {
    Briefs::around(Kind::Prompt, root)
}

fn render(brief: &Brief, arguments: serde_json::Value) -> Result<String, BriefError> {
    brief.render(&Value::from(&arguments))
}

#[test]
fn arguments_are_filled_in_with_their_defaults() {
    let root = project(&[(".flow/prompts/review.md", REVIEW)]);
    // From anywhere inside the project.
    let inner = root.path().join("src/deep");
    fs::create_dir_all(&inner).unwrap();
    let brief = prompts(&inner).brief("review").unwrap();
    assert_eq!(brief.description.as_deref(), Some("Reviews a change"));
    assert_eq!(brief.head["model"], "opus");
    let names: Vec<&str> = brief
        .arguments()
        .unwrap()
        .iter()
        .map(|it| it.name.as_ref())
        .collect();
    assert_eq!(names, ["branch", "depth", "note"]);
    let text = render(&brief, json!({"branch": "main"})).unwrap();
    assert_eq!(text, "Review main to depth 2.\n");
    let text = render(
        &brief,
        json!({"branch": "main", "depth": 3, "note": "locks"}),
    )
    .unwrap();
    assert_eq!(text, "Review main to depth 3.\nMind: LOCKS");
}

#[test]
fn an_argument_that_is_not_given_is_undefined_and_no_mistake() {
    let text = "\
---
arguments: {who: {required: true}, note: {}, tags: {type: array}}
---
{{ who }}[{{ note }}][{{ note | default('none') }}][{{ 'yes' if note else 'no' }}][{{ 'yes' if note }}]\
[{{ note is defined }}][{{ inputs.note }}{{ arguments.note | default('x') }}]\
{% for tag in tags %}{{ tag }}{% endfor %}{{ inputs | tojson }}";
    let root = project(&[(".flow/prompts/greet.md", text)]);
    let brief = prompts(root.path()).brief("greet").unwrap();
    for arguments in [json!({"who": "Bo"}), json!({"who": "Bo", "note": null})] {
        let text = render(&brief, arguments).unwrap();
        assert_eq!(text, "Bo[][none][no][][false][x]{\"who\":\"Bo\"}");
    }
    let text = render(
        &brief,
        json!({"who": "Bo", "note": "n", "tags": ["a", "b"]}),
    )
    .unwrap();
    assert!(
        text.starts_with("Bo[n][n][yes][yes][true][nn]ab{"),
        "{text}"
    );
}

#[test]
fn a_name_that_no_argument_has_is_named() {
    for (text, name) in [
        ("{{ note }}{{ nte }}", "nte"),
        ("{{ note }}{{ inputs.nte }}", "inputs.nte"),
        ("{{ note.length }}", "note"),
    ] {
        let text = format!("---\narguments: {{note: {{}}}}\n---\n{text}");
        let root = project(&[(".flow/prompts/greet.md", text.as_str())]);
        let brief = prompts(root.path()).brief("greet").unwrap();
        let error = render(&brief, json!({})).unwrap_err().to_string();
        assert!(error.contains(&format!("`{name}` is undefined")), "{error}");
    }
}

#[test]
fn every_fault_of_the_arguments_is_told_at_once() {
    let root = project(&[(".flow/prompts/review.md", REVIEW)]);
    let brief = prompts(root.path()).brief("review").unwrap();
    let error = render(&brief, json!({"depth": "many", "brnch": 1})).unwrap_err();
    let BriefError::Arguments(faults) = &error else {
        panic!("{error}");
    };
    assert_eq!(faults.len(), 3, "{error}");
    assert!(error.to_string().contains("`branch`"), "{error}");
}

#[test]
fn a_name_that_means_nothing_in_a_text_is_told_with_the_file() {
    let root = project(&[
        (
            ".flow/prompts/a.md",
            "---\narguments: {x: string}\n---\n{{ y }}",
        ),
        (".flow/prompts/free.md", "Hello {{ name }}!"),
    ]);
    let brief = prompts(root.path()).brief("a").unwrap();
    let error = render(&brief, json!({})).unwrap_err().to_string();
    assert!(error.contains("a.md") && error.contains('y'), "{error}");
    let free = prompts(root.path()).brief("free").unwrap();
    assert!(free.arguments().is_none());
    assert_eq!(render(&free, json!({"name": "you"})).unwrap(), "Hello you!");
}

#[test]
fn faults_of_the_front_matter_have_their_lines() {
    let cases = [
        ("---\ndescription: x\n", 1, "not closed"),
        ("---\n- a\n- b\n---\n", 2, "key: value"),
        ("---\na: b\ndescription: [x]\n---\n", 3, "not text"),
        (
            "---\nx: y\narguments:\n  - {type: string}\n---\n",
            4,
            "no `name`",
        ),
        ("---\narguments: {a: {type: strng}}\n---\n", 2, "string"),
        ("---\narguments: 5\n---\n", 2, "neither a map"),
    ];
    for (text, line, words) in cases {
        let root = project(&[(".flow/prompts/bad.md", text)]);
        let error = prompts(root.path()).brief("bad").unwrap_err();
        let BriefError::FrontMatter { line: at, .. } = &error else {
            panic!("{error}");
        };
        let told = error.to_string();
        assert_eq!(*at, line, "{told}");
        assert!(told.contains(words) && told.contains("bad.md"), "{told}");
    }
}

#[test]
fn the_other_programs_agents_are_found_and_taken_as_they_are() {
    let root = project(&[
        (
            ".claude/agents/reviewer.md",
            "---\nname: reviewer\ntools: Read, Grep\n---\nUse {{ braces }}.",
        ),
        (".claude/agents/both.md", "theirs"),
        (".flow/agents/both.md", "ours"),
        (".flow/agents/team/lead.md", "Leads."),
    ]);
    let agents = Briefs::around(Kind::Agent, root.path())
        .with_builtins([("both", "built in"), ("own", "Own.")]);
    let listed: Vec<(String, Place)> = agents
        .list()
        .into_iter()
        .filter(|found| found.place != Place::User)
        .map(|found| (found.name, found.place))
        .collect();
    let expected = [
        ("both", Place::Project),
        ("own", Place::Builtin),
        ("reviewer", Place::Project),
        ("team:lead", Place::Project),
    ];
    let expected = expected.map(|(name, place)| (name.to_owned(), place));
    assert_eq!(listed, expected);
    let body = |name: &str| agents.brief(name).unwrap().render(&Value::Null).unwrap();
    assert_eq!(body("reviewer"), "Use {{ braces }}.");
    assert_eq!(body("both"), "ours");
    assert_eq!(body("team:lead"), "Leads.");
    assert!(
        Briefs::around(Kind::Prompt, root.path())
            .get("reviewer")
            .is_none()
    );
}

#[test]
fn no_name_and_no_link_leaves_the_project() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.md"), "secret").unwrap();
    let root = project(&[(".flow/prompts/a.md", "a")]);
    symlink(
        outside.path().join("secret.md"),
        root.path().join(".flow/prompts/link.md"),
    )
    .unwrap();
    let prompts = prompts(root.path());
    for name in ["link", "../prompts/a", "a.md", "/etc/passwd", ""] {
        assert!(prompts.get(name).is_none(), "{name}");
    }
    let Err(BriefError::NotFound { near, .. }) = prompts.brief("A") else {
        panic!("there is none");
    };
    assert_eq!(near.as_deref(), Some("a"));
}
