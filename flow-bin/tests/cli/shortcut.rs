//! `flow <workflow> …`.

use super::Place;

const SAYS: &str = "description: Says a word\ninputs: {word: {type: string, required: true}}\noutputs: {word: '{{ inputs.word }}'}\nsteps: []\n";

fn place() -> Place {
    Place::with(&[
        (".flow/workflows/say.yaml", SAYS),
        (".flow/workflows/list.yaml", SAYS),
        (".flow/workflows/team/say.yaml", SAYS),
    ])
}

#[test]
fn a_workflow_is_run_by_its_name() {
    let place = place();
    for arguments in [
        &["say", "hi"][..],
        &["_say", "hi"],
        &["team:say", "-p", "word=hi"],
    ] {
        let ran = place.run(arguments);
        assert_eq!(
            (ran.code, &ran.json()["word"]),
            (0, &"hi".into()),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(place.run(&["say"]).code, 2);
}

#[test]
fn a_workflow_with_the_name_of_a_command_has_an_underscore_before_it() {
    let place = place();
    assert!(place.run(&["list"]).stdout.contains("NAME"));
    assert_eq!(place.run(&["_list", "hi"]).json()["word"], "hi");
    let checked = place.run(&["check"]);
    assert_eq!(checked.code, 0);
    assert!(
        checked.stderr.contains("run by `flow _list`"),
        "{}",
        checked.stderr
    );
}

#[test]
fn the_help_says_what_a_shortcut_stands_for() {
    for arguments in [["say", "--help"], ["help", "say"]] {
        let ran = place().run(&arguments);
        assert_eq!(ran.code, 0);
        for part in [
            "Says a word",
            "usage: flow run say <word>",
            "stands for `flow run say`",
        ] {
            assert!(ran.stdout.contains(part), "{}", ran.stdout);
        }
    }
    assert_eq!(place().run(&["help", "sayy"]).code, 2);
}

#[test]
fn an_unknown_word_is_answered_with_the_nearest_command_or_workflow() {
    let place = place();
    place.file("free.yaml", SAYS);
    for (word, near) in [
        ("chekc", "flow check"),
        ("sayy", "flow say"),
        ("free.yaml", "flow run free.yaml"),
    ] {
        let ran = place.run(&[word]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        assert!(ran.stderr.contains(near), "{}", ran.stderr);
        let ran = place.run(&[word, "--format", "json"]);
        assert!(ran.stderr.contains(near), "{}", ran.stderr);
        let told = ran.json();
        assert_eq!((ran.code, &told["workflow"]), (2, &word.into()));
        assert!(told["error"].as_str().unwrap().contains(word), "{told}");
    }
}

#[test]
fn the_help_lists_what_can_be_run_here() {
    let place = Place::with(&[
        (
            ".flow/workflows/deploy.yaml",
            "description: Ships it\nsteps: [{type: shell, command: 'true'}]\n",
        ),
        (
            ".flow/workflows/list.yaml",
            "steps: [{type: shell, command: 'true'}]\n",
        ),
    ]);
    for arguments in [&["--help"][..], &["-h"], &["help"]] {
        let help = place.run(arguments);
        assert_eq!(help.code, 0);
        assert!(
            help.stdout.contains("  deploy            Ships it\n"),
            "{}",
            help.stdout
        );
        assert!(help.stdout.contains("  _list\n"), "{}", help.stdout);
        assert!(help.stdout.contains("  tour  "), "{}", help.stdout);
    }
}
