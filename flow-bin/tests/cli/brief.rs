//! `flow agent`, `flow prompt` and their shortcuts.

use super::Place;

const REVIEW: &str = "---\ndescription: Reviews a change\narguments:\n  branch: {required: true}\n  depth: {type: integer, default: 2}\n---\nReview {{ branch }} to depth {{ depth }}.\n";

fn place() -> Place {
    Place::with(&[
        (".flow/prompts/review.md", REVIEW),
        (".flow/prompts/say.md", "Say it.\n"),
        (".flow/prompts/list.md", "Lists.\n"),
        (
            ".claude/agents/checker.md",
            "---\nname: checker\n---\nCheck {{ it }}.",
        ),
        (
            ".flow/workflows/say.yaml",
            "outputs: {word: hi}\nsteps: []\n",
        ),
    ])
}

#[test]
fn a_prompt_is_printed_with_its_arguments() {
    let place = place();
    for arguments in [
        &["prompt", "review", "main", "-p", "depth=3"][..],
        &["review", "-p", "branch=main", "-p", "depth=3"],
        &["_review", "main", "-p", "depth=3"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(ran.stdout, "Review main to depth 3.\n", "{}", ran.stderr);
        assert_eq!(ran.code, 0);
    }
    assert_eq!(place.run(&["checker"]).stdout, "Check {{ it }}.\n");
    // A workflow of the same name comes first.
    assert_eq!(place.run(&["say"]).json()["word"], "hi");
    assert_eq!(place.run(&["prompt", "say"]).stdout, "Say it.\n");
    // What stands for the list has another name.
    assert_eq!(place.run(&["prompt", "_list"]).stdout, "Lists.\n");
    assert_eq!(place.run(&["_list"]).stdout, "Lists.\n");
}

#[test]
fn help_for_a_shortcut_says_what_it_takes() {
    let place = place();
    for arguments in [&["review", "--help"][..], &["review", "main", "-h"]] {
        let ran = place.run(arguments);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for part in [
            "Reviews a change",
            "usage: flow prompt review <branch> [-p key=value]…",
            "depth",
            "default 2",
            "`flow review` stands for `flow prompt review`",
        ] {
            assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
        }
    }
    let ran = place.run(&["_list", "--help"]);
    assert!(ran.stdout.contains("flow prompt _list"), "{}", ran.stdout);
}

#[test]
fn what_is_missing_or_wrong_is_told_with_the_usage() {
    let place = place();
    let missing = place.run(&["prompt", "review", "-p", "depth=deep"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("`branch`"), "{}", missing.stderr);
    assert!(missing.stderr.contains("`depth`"), "{}", missing.stderr);
    assert!(
        missing
            .stderr
            .contains("usage: flow prompt review <branch>"),
        "{}",
        missing.stderr
    );
    let near = place.run(&["prompt", "reveiw"]);
    assert_eq!(near.code, 2);
    assert!(
        near.stderr.contains("did you mean `review`?"),
        "{}",
        near.stderr
    );
    place.file(".flow/prompts/bad.md", "---\na: [\n---\n");
    let bad = place.run(&["prompt", "bad"]);
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("bad.md:"), "{}", bad.stderr);
}

#[test]
fn a_listing_tells_what_can_be_given() {
    let place = place();
    let listed = place.run(&["prompt", "list", "--format", "json"]).json();
    let review = &listed["prompts"][1];
    assert_eq!(review["name"], "review");
    assert_eq!(review["description"], "Reviews a change");
    assert_eq!(review["parameters"][0]["required"], true);
    assert_eq!(review["parameters"][1]["default"], 2);
    assert_eq!(review["parameters"][0].get("secret"), None);
    let detailed = place
        .run(&["prompt", "list", "--format", "json", "-v"])
        .json();
    let branch = &detailed["prompts"][1]["parameters"][0];
    assert_eq!(branch["secret"], false);
    assert!(branch["validation"].is_object(), "{branch}");
    let table = place.run(&["prompt"]).stdout;
    assert!(
        table.starts_with("NAME") && table.contains("Reviews a change"),
        "{table}"
    );
    let verbose = place.run(&["prompt", "list", "--verbose"]).stdout;
    assert!(
        verbose.contains("branch [depth]") && verbose.contains(".flow/prompts/review.md"),
        "{verbose}"
    );
    let agents = place.run(&["agent", "list", "--format", "json"]).json();
    let names: Vec<&str> = agents["agents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["source"] == "project")
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["checker"]);
}
