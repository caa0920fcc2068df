//! A shell that edits its line is asked what it holds before a command is typed.

use crate::support::{SHELLS, Terms, outcome};

/// Makes a shell edit its line like vi.
fn vi(shell: &str) -> &'static str {
    match shell {
        "zsh" => "bindkey -v",
        "fish" => "fish_vi_key_bindings",
        _ => "set -o vi",
    }
}

#[tokio::test]
async fn whatever_keys_were_pressed_a_command_runs_as_given_or_not_at_all() {
    // Whether they leave an empty line.
    let keys: [(&[&str], bool); 17] = [
        (&["escape"], true),
        (&["ctrl-x"], true),
        (&["ctrl-z"], true),
        (&["ctrl-\\"], true),
        (&["ctrl-l"], true),
        (&["ctrl-v"], true),
        (&["left", "right"], true),
        (&["a", "ctrl-u"], true),
        (&["escape", "escape"], true),
        (&["a", "b", "escape"], false),
        (&["a", "b", "left", "ctrl-l"], false),
        (&["up"], false),
        (&["enter", "a"], false),
        (&["'", "enter"], false),
        (&["ctrl-r", "e", "a"], false),
        // Found nowhere: an editor may hold the words of the search, or nothing.
        (&["ctrl-r", "q", "z"], true),
        (&["l", "s", "space", "/", "tab", "tab"], false),
    ];
    for shell in ["bash", "zsh", "fish"] {
        for mode in ["", vi(shell)] {
            let terms = Terms::new();
            terms.open(shell).await;
            terms.run("echo earlier").await;
            if !mode.is_empty() {
                terms.run(mode).await;
            }
            for (keys, is_empty) in keys {
                terms.keys(keys).await;
                let ran = terms.run("echo one; sh -c 'exit 4'").await;
                let told = format!("{shell} {mode:?} {keys:?}: {ran:#}");
                // Some of them are text to one editor, and a command to another.
                let may_be_text = matches!(
                    keys,
                    ["ctrl-z" | "ctrl-\\" | "ctrl-l" | "ctrl-x" | "ctrl-v"] | ["ctrl-r", ..]
                );
                match ran["status"].as_str().unwrap() {
                    "finished" => {
                        assert!(is_empty, "{told}");
                        assert_eq!(outcome(&ran), ("finished", Some(4), "one\n"), "{told}");
                    }
                    status => {
                        assert!(!is_empty || may_be_text, "{told}");
                        assert_eq!(status, "refused", "{told}");
                        terms.keys(&["ctrl-c"]).await;
                    }
                }
                let ran = terms.run("echo two").await;
                assert_eq!(
                    outcome(&ran),
                    ("finished", Some(0), "two\n"),
                    "{shell} {mode:?} {keys:?}: {ran:#}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_command_is_inserted_where_vi_would_take_it_for_commands_of_its_own() {
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(vi(shell)).await;
        for keys in [&["escape"][..], &["escape", "0"], &["escape", "d"]] {
            terms.keys(keys).await;
            let ran = terms.run("echo ddiixx").await;
            assert_eq!(
                outcome(&ran),
                ("finished", Some(0), "ddiixx\n"),
                "{shell} {keys:?}: {ran:#}"
            );
        }
        // The ctrl-c is read together with the escape before it.
        terms.send("half").await;
        terms.keys(&["escape"]).await;
        terms.keys(&["ctrl-c"]).await;
        let ran = terms.run("echo whole").await;
        assert_eq!(
            outcome(&ran),
            ("finished", Some(0), "whole\n"),
            "{shell}: {ran:#}"
        );
    }
}

#[tokio::test]
async fn asking_for_the_line_changes_nothing_that_a_command_sees() {
    for shell in ["bash", "zsh"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("set -x; trap 'echo trapped' DEBUG").await;
        terms.run("trap - DEBUG").await;
        let before = terms.said().await;
        terms.run("true some words").await;
        terms.keys(&["left"]).await;
        let ran = terms.run("set +x; echo $_").await;
        assert!(
            !ran["output"].as_str().unwrap().contains("flow"),
            "{shell}: {ran:#}"
        );
        assert!(
            !terms.said().await[before.len()..].contains("flow"),
            "{shell}"
        );
        terms.run("sh -c 'exit 7'").await;
        terms.keys(&["left"]).await;
        let ran = terms.run("echo $?").await;
        assert_eq!(ran["output"], "7\n", "{shell}: {ran:#}");
        terms.run("true some words").await;
        terms.keys(&["left"]).await;
        let ran = terms.run("echo $_").await;
        assert_eq!(ran["output"], "words\n", "{shell}: {ran:#}");
        // Nor what is awaited: the prompt is drawn anew, and said once.
        terms.run("PS1='ask> '").await;
        terms.keys(&["left"]).await;
        let said = terms.said().await.matches("ask> ").count();
        terms.run("true").await;
        assert_eq!(
            terms.said().await.matches("ask> ").count(),
            said + 1,
            "{shell}"
        );
    }
}

#[tokio::test]
async fn a_key_that_is_left_over_does_not_take_the_next_command_with_it() {
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        for (line, keys) in [
            ("", &["enter", "escape"][..]),
            ("true\n", &["escape"]),
            ("sleep 0.1\n", &["ctrl-x"]),
            ("sleep 0.1\n", &["enter", "enter"]),
        ] {
            if !line.is_empty() {
                terms.send(line).await;
            }
            terms.keys(keys).await;
            let ran = terms.run("echo one; sh -c 'exit 4'").await;
            assert_eq!(
                outcome(&ran),
                ("finished", Some(4), "one\n"),
                "{shell} {line:?} {keys:?}: {ran:#}"
            );
        }
    }
    // A program that reads keys has taken them.
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send("vim -u NONE -N file\n").await;
        terms.expect_screen("file").await;
        terms.expect_screen("~").await;
        terms.keys(&["i", "x", "escape"]).await;
        terms.send(":q!\n").await;
        let ran = terms.run("echo three").await;
        assert_eq!(ran["output"], "three\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn a_shell_says_what_its_line_holds_whatever_options_its_startup_file_sets() {
    for (shell, file, option) in [
        ("zsh", ".zshrc", "setopt ignore_braces"),
        ("zsh", ".zshrc", "emulate sh"),
        ("zsh", ".zshrc", "emulate ksh"),
        ("zsh", ".zshrc", "disable -r typeset local"),
        ("bash", ".bashrc", "set -k"),
        ("bash", ".bashrc", "set -ku -o posix"),
    ] {
        let terms = Terms::new();
        std::fs::write(terms.home().join(file), format!("PS1='> '\n{option}\n")).unwrap();
        terms.open(shell).await;
        assert_eq!(terms.screen().await.trim_end(), ">", "{option}");
        for _ in 0..2 {
            terms.send("echo ty''ped\n").await;
            terms.expect("^typed$").await;
            let ran = terms.run("echo one; sh -c 'exit 4'").await;
            assert_eq!(
                outcome(&ran),
                ("finished", Some(4), "one\n"),
                "{option}: {ran:#}"
            );
            terms.keys(&["ctrl-c"]).await;
        }
        terms.send("half").await;
        let ran = terms.run("echo two").await;
        assert_eq!(ran["status"], "refused", "{option}: {ran:#}");
        assert!(
            ran["error"].as_str().unwrap().contains("holds text"),
            "{option}: {ran:#}"
        );
    }
}
