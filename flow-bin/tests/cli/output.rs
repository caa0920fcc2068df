//! Colours, help and usage.

use super::{BAD, GOOD, Place};

#[test]
fn colours_are_for_terminals_and_for_who_asks() {
    let place = Place::with(&[("a.yaml", BAD), (".flow/workflows/b.yaml", GOOD)]);
    let commands: [&[&str]; 3] = [&["check", "a.yaml"], &["list"], &["explain", "F020"]];
    for arguments in commands {
        let painted = |extra: &[&str], no_color: Option<&str>| {
            let mut command = place.command(arguments);
            command.args(extra);
            if let Some(value) = no_color {
                command.env("NO_COLOR", value);
            }
            let ran = super::Ran::from(command.output().unwrap());
            ran.stdout.contains('\u{1b}')
        };
        assert!(!painted(&[], None));
        assert!(!painted(&["--color", "never"], None));
        assert!(painted(&["--color", "always"], None));
        assert!(!painted(&["--color=auto"], Some("1")));
        // What is asked for on the command line goes before the environment.
        assert!(painted(&["--color=always"], Some("1")));
    }
    let before = place.run(&["--color", "always", "check", "a.yaml"]);
    assert!(before.stderr.contains('\u{1b}'));
}

#[test]
fn help_teaches_by_example() {
    let place = Place::new();
    for command in ["check", "explain", "schema", "expand", "graph", "list"] {
        let ran = place.run(&[command, "--help"]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("Examples:\n  flow "), "{}", ran.stdout);
        assert!(place.run(&["--help"]).stdout.contains(command));
    }
    let version = place.run(&["--version"]);
    assert_eq!(
        version.stdout,
        format!("flow {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn what_cannot_be_meant_exits_2() {
    let place = Place::with(&[("a.yaml", GOOD)]);
    let cases: [&[&str]; 7] = [
        &[],
        &["chekc"],
        &["check", "--format", "xml", "a.yaml"],
        &["check", "--colour", "a.yaml"],
        &["graph"],
        &["graph", "a.yaml", "--format", "png"],
        &["list", "--source", "elsewhere"],
    ];
    for arguments in cases {
        let ran = place.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(!ran.stderr.is_empty());
    }
    assert!(place.run(&["chekc"]).stderr.contains("`flow check`"));
}
