//! `await_output`: new output, once, never what was typed.

use serde_json::{Value, json};

use crate::support::{SHELLS, Terms};

/// Waits for something that must not come.
async fn never(terms: &Terms, pattern: &str) -> Value {
    let found = terms
        .call("await_output", json!({"pattern": pattern, "timeout": 0.3}))
        .await;
    assert_eq!(found["match_text"], json!(null), "`{pattern}`: {found:#}");
    assert_eq!(found["success"], true);
    found
}

#[tokio::test]
async fn the_typed_command_never_matches_itself_in_any_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms
            .send("echo mark'er' > /dev/null; sleep 0.1; echo do'ne'\n")
            .await;
        terms.expect("^done$").await;
        terms.send("true echoed\n").await;
        never(&terms, "echoed").await;
    }
}

#[tokio::test]
async fn a_wrapped_echo_is_still_an_echo() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let long = "wide ".repeat(60);
        terms.send(&format!("true {long}\n")).await;
        never(&terms, "wide").await;
        terms.send(&format!("echo {long}\n")).await;
        terms.expect("wide wide wide").await;
    }
}

#[tokio::test]
async fn an_echo_in_a_repl_is_no_output_even_when_wrapped() {
    let terms = Terms::new();
    terms
        .open_with(
            "python3",
            json!({"PYTHON_BASIC_REPL": "1", "PYTHONSTARTUP": ""}),
        )
        .await;
    terms.expect(">>> ").await;
    terms.send("x = 'needle'\n").await;
    terms.expect(">>> ").await;
    terms.send("print(x.upper())\n").await;
    assert_eq!(terms.expect("(?i)needle").await, "NEEDLE");
    terms.expect(">>> ").await;
    let long = format!("y = '{}needle'\n", "a".repeat(300));
    terms.send(&long).await;
    terms.expect(">>> ").await;
    terms.send("1\n").await;
    never(&terms, "needle").await;
    terms
        .send("for i in range(2):\n  print('row', i)\n\n")
        .await;
    terms.expect("^row 1$").await;
}

#[tokio::test]
async fn what_is_pasted_into_a_program_of_its_own_is_no_output() {
    for (shell, program) in [
        ("bash", "env PS1='in> ' bash --norc"),
        ("fish", "env PS1='in> ' bash --norc"),
        ("bash", "env PS1='in> ' zsh -f"),
        (
            "bash",
            "script -qc \"env PS1='in> ' bash --norc\" /dev/null",
        ),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send(&format!("{program}\n")).await;
        terms.expect("in> $").await;
        for typed in [
            ": typed\necho sa''id\n",
            "if : typed; then\necho sa''id\nfi\n",
            "cat > /dev/null <<X\n\ttyped\n\ntyped\nX\necho sa''id\n",
            &format!(": typed {}\necho sa''id\n", "wide ".repeat(60)),
            ": typed; echo sa''id\n",
            &format!(": typed {}; echo sa''id\n", "wide ".repeat(60)),
        ] {
            terms.send(typed).await;
            assert_eq!(terms.expect("typed|said").await, "said", "{program}");
            terms.expect("in> $").await;
            let since = terms.since_input().await;
            assert!(since.starts_with("said\n"), "{program}: {since:?}");
            assert!(!since.contains("typed"), "{program}: {since:?}");
        }
    }
}

#[tokio::test]
async fn characters_that_an_editor_shows_by_name_are_no_output() {
    for program in ["zsh -f", "bash --norc"] {
        let terms = Terms::new();
        terms.open("bash").await;
        terms.send(&format!("env PS1='in> ' {program}\n")).await;
        terms.expect("in> $").await;
        for joined in ["e\u{301}", "👩\u{200d}👧", "a\u{200b}b", "日本"] {
            for typed in [
                &format!(": typed '{joined}'; echo sa''id '{joined}'\n"),
                &format!("{}: typed; echo sa''id '{joined}'\n", " ".repeat(150)),
            ] {
                terms.send(typed).await;
                let said = format!("said {joined}");
                assert_eq!(
                    terms.expect("typed|said .*$").await,
                    said,
                    "{program}: {typed:?}"
                );
                terms.expect("in> $").await;
                let since = terms.since_input().await;
                assert!(
                    since.starts_with(&format!("{said}\n")) && !since.contains("typed"),
                    "{program}: {since:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_line_for_a_command_of_the_shell_that_edits_lines_is_no_output() {
    for (shell, command) in [
        ("bash", "read -e -p 'ok? ' a; echo got ${#a}\n"),
        ("zsh", "a=; vared -p 'ok? ' a; echo got ${#a}\n"),
        ("fish", "read -P 'ok? ' a; echo got (string length $a)\n"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send(command).await;
        terms.expect(r"ok\? $").await;
        terms.send("typed\n").await;
        assert_eq!(terms.expect("typed|got 5").await, "got 5", "{shell}");
        let since = terms.since_input().await;
        assert!(!since.contains("typed"), "{shell}: {since:?}");
        // fish shows its sign for an unfinished line before.
        let begins = since.starts_with("got 5\n") || shell == "fish";
        assert!(begins, "{shell}: {since:?}");
        // The shell has its prompt back, and is followed as before.
        let ran = terms.run("echo $a").await;
        assert_eq!(ran["output"], "typed\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn what_a_program_repeats_is_output() {
    let terms = Terms::new();
    terms.open("cat").await;
    terms.send("hello\n").await;
    assert_eq!(terms.expect("hello").await, "hello");
    never(&terms, "hello").await;
}

#[tokio::test]
async fn a_match_is_consumed() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("printf 'ready %s\\n' 1 2\n").await;
    assert_eq!(terms.expect(r"ready \d").await, "ready 1");
    assert_eq!(terms.expect(r"ready \d").await, "ready 2");
    never(&terms, "ready").await;
    terms.send("true\n").await;
    never(&terms, "ready").await;
}

#[tokio::test]
async fn colours_do_not_break_a_match() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send(r"printf '\033[1;32mPA\033[0;31mSS\033[0m \033]0;t\007ok\n'")
        .await;
    terms.send("\n").await;
    assert_eq!(terms.expect("PASS ok").await, "PASS ok");
}

#[tokio::test]
async fn text_that_scrolled_away_still_matches() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("echo nee''dle; seq 1 20000; echo en''d\n").await;
    terms.expect_screen("^end$").await;
    assert_eq!(terms.expect("needle").await, "needle");
    terms.expect("^20000$").await;
}

#[tokio::test]
async fn the_end_of_a_line_is_not_believed_too_early() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send("stty -echo; printf Pass; printf 'word: '; read x; stty echo; echo \"got ${#x}\"\n")
        .await;
    never(&terms, "^Pass$").await;
    terms.expect("word: $").await;
    let sent = terms
        .call("send_input", json!({"input_text": "hunter2\n"}))
        .await;
    assert!(
        !sent["screen_content"].as_str().unwrap().contains("hunter2"),
        "{sent:#}"
    );
    terms.expect("got 7$").await;
    assert!(!terms.screen().await.contains("hunter2"));
}

#[tokio::test]
async fn a_prompt_without_a_line_end_matches_after_a_quiet_moment() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("read -p 'Name? ' n; echo \"hi $n\"\n").await;
    assert_eq!(terms.expect(r"Name\? $").await, "Name? ");
    terms.send("Ada\n").await;
    assert_eq!(terms.expect("^hi .*$").await, "hi Ada");
}

#[tokio::test]
async fn output_of_the_background_is_heard_at_the_prompt() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("(sleep 0.2; echo liste''ning) &").await;
    assert_eq!(ran["exit_code"], 0, "{ran:#}");
    terms.expect("listening").await;
}

#[tokio::test]
async fn a_program_that_has_ended_is_answered_for_at_once() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("echo last words; exit 3\n").await;
    let found = terms
        .call(
            "await_output",
            json!({"pattern": "never shown", "timeout": 3600}),
        )
        .await;
    assert_eq!(found["match_text"], json!(null), "{found:#}");
    assert_eq!(found["process_running"], false);
    assert!(
        found["tail"].as_str().unwrap().contains("last words"),
        "{found:#}"
    );
    assert_eq!(terms.expect("last words").await, "last words");
    let again = terms
        .call("await_output", json!({"pattern": "never", "timeout": 3600}))
        .await;
    assert_eq!(again["match_text"], json!(null));
    let sent = terms.call("send_input", json!({"input_text": "x\n"})).await;
    assert_eq!(sent["success"], false);
    assert!(
        sent["error"].as_str().unwrap().contains("exit code 3"),
        "{sent:#}"
    );
}

#[tokio::test]
async fn a_time_out_says_what_is_there_instead() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("echo one; echo two; cat\n").await;
    terms.expect("two").await;
    let found = never(&terms, "three").await;
    assert_eq!(found["foreground"], "cat", "{found:#}");
    assert!(
        found["tail"].as_str().unwrap().ends_with("one\ntwo"),
        "{found:#}"
    );
    assert!(found["screen_content"].as_str().unwrap().contains("two"));
    assert_eq!(found["error"], json!(null));
}

#[tokio::test]
async fn a_match_over_several_lines_is_found() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send("for i in 1 2 3; do echo line $i; sleep 0.05; done\n")
        .await;
    assert_eq!(
        terms.expect(r"(?s)line 1.*line 3").await,
        "line 1\nline 2\nline 3"
    );
}

#[tokio::test]
async fn the_screen_is_matched_where_programs_draw() {
    let terms = Terms::new();
    std::fs::write(terms.home().join("notes"), "alpha\nbeta\n").unwrap();
    terms.open("bash").await;
    terms.send("vim -u NONE -N notes\n").await;
    terms.expect_screen("beta\n~").await;
    let during = terms
        .call("get_screen_content", json!({"content_mode": "history"}))
        .await;
    assert!(
        during["screen_content"].as_str().unwrap().contains("$ vim"),
        "{during:#}"
    );
    terms.send("ihello ").await;
    terms.keys(&["escape"]).await;
    terms.expect_screen("^hello alpha$").await;
    terms.send(":wq").await;
    terms.keys(&["enter"]).await;
    terms.expect(r"\$ ").await;
    assert!(!terms.screen().await.contains("alpha"));
    assert_eq!(
        terms.run("cat notes").await["output"],
        "hello alpha\nbeta\n"
    );
}

#[tokio::test]
async fn the_screen_matcher_joins_what_the_terminal_wrapped() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send(&format!("echo {}nee''dle\n", "x".repeat(117)))
        .await;
    terms.expect_screen("xneedle").await;
}

#[tokio::test]
async fn wide_characters_match_and_show() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send("printf '漢字 \\360\\237\\246\\200 e\\314\\201\\n'\n")
        .await;
    assert_eq!(terms.expect("漢字 🦀 e\u{301}$").await, "漢字 🦀 e\u{301}");
    assert!(terms.screen().await.contains("漢字 🦀 e\u{301}"));
}

#[tokio::test]
async fn lines_typed_ahead_of_a_program_are_no_output() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for round in 0..10 {
            // What it is given is not what it says.
            terms.send("sed -u 's/^/said /'\n").await;
            terms.send(&format!("first{round}\n")).await;
            terms.send(&format!("second{round}\n")).await;
            terms.expect(&format!("^said second{round}$")).await;
            let seen = terms.since_input().await;
            let typed = format!("second{round}");
            assert!(!seen.lines().any(|line| line == typed), "{shell}: {seen:?}");
            terms.keys(&["ctrl-d"]).await;
            let ran = terms.run("echo over").await;
            assert_eq!(ran["output"], "over\n", "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn several_lines_typed_ahead_of_the_prompt_are_no_output() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send("sleep 0.2; echo go''ne\n").await;
        terms.send("echo fir''st\n").await;
        terms.send("echo sec''ond\n").await;
        terms.send("echo thi''rd\n").await;
        terms.expect("third\n").await;
        let seen = terms.since_input().await;
        assert!(!seen.contains("''"), "{shell}: {seen:?}");
    }
}

#[tokio::test]
async fn a_password_that_is_repeated_is_output() {
    for (shell, ask) in [
        ("fish", "read -s -P 'Password: ' X; echo got-$X"),
        ("bash", "read -s -e -p 'Password: ' X; echo got-$X"),
        ("zsh", "read -s 'X?Password: '; echo got-$X"),
        (
            "dash",
            "stty -echo; printf 'Password: '; read X; stty echo; echo got-$X",
        ),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send(&format!("{ask}\n")).await;
        terms.expect("Password: ").await;
        terms.send("secret42\n").await;
        terms.expect("got-secret42").await;
    }
}

#[tokio::test]
async fn what_comes_at_a_prompt_begins_a_line() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms
            .run("mkfifo go; sh -c 'read x <go; echo said' &")
            .await;
        std::fs::write(terms.home().join("go"), "x\n").unwrap();
        assert_eq!(terms.expect("^said$").await, "said", "{shell}");
    }
    // Also where the prompt is not the last that the shell shows.
    for (shell, prompt) in [
        ("zsh", "RPROMPT='%T right'"),
        (
            "zsh",
            "zle-line-init() { zle reset-prompt }; zle -N zle-line-init",
        ),
        ("fish", "function fish_right_prompt; echo right; end"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(prompt).await;
        terms
            .run("mkfifo go; sh -c 'read x <go; echo said' &")
            .await;
        if prompt.contains("right") {
            terms.expect_screen(r"right\s*\z").await;
        }
        std::fs::write(terms.home().join("go"), "x\n").unwrap();
        assert_eq!(terms.expect("^said$").await, "said", "{shell} {prompt}");
    }
}

#[tokio::test]
async fn a_match_over_a_hundred_kilobytes_is_found_while_they_come() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send(
            "echo BE''GIN; head -c 102400 /dev/zero | tr '\\0' x | fold -w 80; echo; echo wait''ing; \
             while [ ! -e go ]; do sleep 0.02; done; echo EN''D\n",
        )
        .await;
    let goes = async {
        terms.expect_screen("waiting").await;
        std::fs::write(terms.home().join("go"), "").unwrap();
    };
    let (found, ()) = tokio::join!(terms.expect("(?s)BEGIN.*END"), goes);
    assert!(found.len() > 102_400, "{}", found.len());
}
