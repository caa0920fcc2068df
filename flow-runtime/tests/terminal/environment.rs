//! The environment of a shell, read without typing anything.

use std::time::Duration;

use flow_runtime::terminal::Place;

use crate::support::{SHELLS, Terms};

#[tokio::test]
async fn set_empty_unset_and_not_exported_are_told_apart_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        let session = terms.open(shell).await;
        let (set, empty, kept) = match shell {
            "fish" => (
                "set -gx FULL 'two words'; set -gx LINES_ (printf 'one\\ntwo' | string collect)",
                "set -gx EMPTY ''",
                "set -g KEPT 'it'\\''s'",
            ),
            _ => (
                "export FULL='two words'; export LINES_='one\ntwo'",
                "export EMPTY=",
                "KEPT='it'\\''s'",
            ),
        };
        for command in [set, empty, kept] {
            let ran = terms.run(command).await;
            assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        }
        let snapshot = terms.terminals.environment(&session).unwrap();
        assert_eq!(snapshot.exported("FULL"), Some("two words"), "{shell}");
        assert_eq!(snapshot.exported("LINES_"), Some("one\ntwo"), "{shell}");
        assert_eq!(snapshot.exported("EMPTY"), Some(""), "{shell}");
        assert_eq!(snapshot.get("KEPT"), Some("it's"), "{shell}");
        assert_eq!(snapshot.exported("KEPT"), None, "{shell}");
        assert_eq!(snapshot.get("ABSENT"), None, "{shell}");
        let home = terms.home().to_str().unwrap().to_owned();
        assert_eq!(snapshot.exported("HOME"), Some(&*home), "{shell}");
        let own: Vec<_> = snapshot
            .variables
            .keys()
            .filter(|name| name.starts_with("__flow"))
            .collect();
        assert!(own.is_empty(), "{shell}: {own:?}");
    }
}

#[tokio::test]
async fn odd_values_survive_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        let odd = [
            "a\tb\x1b[1m é 漢 \\ \" ' $HOME `x` \r end\u{7f}\u{1}",
            "it's q",
            "'' ''",
            "'",
            "\"it's\" \\'",
            "#VALUE_0",
            "one\n#VALUE_0\ntwo",
            " a  b ",
            "",
            "\n",
            "-n",
            "\\",
            "a\\nb",
            "(date) {a,b} *",
        ];
        let names = (0..).map(|number| format!("VALUE_{number}"));
        let given: serde_json::Map<_, _> = names.clone().zip(odd.map(Into::into)).collect();
        let session = terms.open_with(shell, given.into()).await;
        let snapshot = terms.terminals.environment(&session).unwrap();
        for (name, value) in names.zip(odd) {
            assert_eq!(snapshot.exported(&name), Some(value), "{shell}: {name}");
        }
    }
}

#[tokio::test]
async fn an_unset_variable_is_gone_and_nothing_was_typed() {
    let terms = Terms::new();
    let session = terms.open("bash").await;
    let before = terms.screen().await;
    assert_eq!(
        terms.terminals.environment(&session).unwrap().get("X"),
        None
    );
    assert_eq!(terms.screen().await, before);
    terms.send("export X=1\n").await;
    let place = terms
        .terminals
        .prompt(&session, Duration::from_secs(30))
        .await;
    assert_eq!(place.unwrap(), Place::Prompt);
    assert_eq!(
        terms.terminals.environment(&session).unwrap().exported("X"),
        Some("1")
    );
    terms.run("unset X").await;
    assert_eq!(
        terms.terminals.environment(&session).unwrap().get("X"),
        None
    );
}

#[tokio::test]
async fn the_prompt_is_waited_for_until_all_input_is_read() {
    let terms = Terms::new();
    let session = terms.open("bash").await;
    terms.send("sleep 0.3\n").await;
    terms.send("export LATE=yes\n").await;
    let place = terms
        .terminals
        .prompt(&session, Duration::from_secs(30))
        .await;
    assert_eq!(place.unwrap(), Place::Prompt);
    assert_eq!(
        terms
            .terminals
            .environment(&session)
            .unwrap()
            .exported("LATE"),
        Some("yes")
    );
    terms.send("sleep 100\n").await;
    let place = terms
        .terminals
        .prompt(&session, Duration::from_millis(200))
        .await;
    assert_eq!(place.unwrap(), Place::Elsewhere);
    terms.keys(&["ctrl-c"]).await;
    // Nobody types: that is known long before the limit.
    for (typed, expected, away) in [
        ("cat\n", Place::Asking, "ctrl-d"),
        ("python3 -q\n", Place::Asking, "ctrl-d"),
        ("bash --norc\n", Place::Asking, "ctrl-d"),
        ("half a li", Place::Typed, "ctrl-c"),
    ] {
        terms.send(typed).await;
        let limit = Duration::from_secs(300);
        let place = terms.terminals.prompt(&session, limit).await;
        assert_eq!(place.unwrap(), expected, "{typed}");
        terms.keys(&[away]).await;
        let place = terms.terminals.prompt(&session, limit).await;
        assert_eq!(place.unwrap(), Place::Prompt, "{typed}");
    }
    terms.send("exit\n").await;
    let place = terms
        .terminals
        .prompt(&session, Duration::from_secs(30))
        .await;
    assert_eq!(place.unwrap(), Place::Gone);
}

#[tokio::test]
async fn a_program_that_is_no_shell_has_no_environment_to_tell() {
    let terms = Terms::new();
    let session = terms.open("cat").await;
    let error = terms
        .terminals
        .environment(&session)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`cat` is not a shell"), "{error}");
    assert!(terms.terminals.environment("t-none").is_err());
    assert!(!terms.terminals.exists("t-none"));
    assert!(terms.terminals.exists(&session));
}

#[tokio::test]
async fn the_snapshot_is_private_and_goes_with_the_session() {
    use std::os::unix::fs::PermissionsExt;
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms
        .run("umask 0; echo $__flow_environment; umask 022")
        .await;
    let file = std::path::PathBuf::from(ran["output"].as_str().unwrap().trim_end());
    let directory = file.parent().unwrap().to_owned();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&directory)), (0o600, 0o700));
    terms.terminals.close_all().await;
    assert!(!directory.exists());
}
