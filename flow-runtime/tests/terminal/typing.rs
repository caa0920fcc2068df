//! `send_input` and `get_screen_content`.

use serde_json::json;

use crate::support::{READS_A_KEY, SHELLS, Terms, outcome};

#[tokio::test]
async fn text_is_typed_exactly_as_given() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("head -c 15 | od -An -c\n").await;
    terms.expect_screen("od -An -c").await;
    terms.send("a $x `y` \\n {z}").await;
    terms.send("\n").await;
    terms
        .expect(r"a       \$   x       `   y   `       \\   n       \{   z   \}")
        .await;
}

#[tokio::test]
async fn a_newline_at_a_prompt_is_the_key_enter_whatever_ctrl_j_means_there() {
    for (shell, unbind) in [
        ("bash", r#"bind '"\C-j": "x"'"#),
        ("zsh", r"bindkey -s '^j' x"),
        ("fish", r"bind \cj 'commandline -i x'"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        assert_eq!(terms.run(unbind).await["exit_code"], 0, "{shell}");
        let ran = terms.run("echo run").await;
        assert_eq!(ran["output"], "run\n", "{shell}: {ran:#}");
        terms.send("echo ty''ped\n").await;
        assert_eq!(terms.expect("^typedx?$").await, "typed", "{shell}");
        // What is typed ahead of the prompt is whatever the terminal makes of it.
        terms.run("true").await;
        terms.send("echo pas''ted\necho twi''ce\n").await;
        assert_eq!(terms.expect("^twicex?$").await, "twice", "{shell}");
    }
}

#[tokio::test]
async fn a_line_editor_in_a_shell_without_one_shows_no_answer() {
    for (program, prompt, line) in [
        ("python3 -q", ">>>", "print('NEE' + 'DLE')"),
        ("bash --norc", "[#$]", "echo NEE''DLE"),
        ("env -i TERM=dumb bash --norc", "[#$]", "echo NEE''DLE"),
        // Its sign for an unfinished line comes before it edits one.
        ("PS1='ready> ' zsh -f", "ready> ", "echo NEE''DLE"),
    ] {
        let terms = Terms::new();
        terms.open("dash").await;
        terms.send(&format!("{program}\n")).await;
        terms.expect(prompt).await;
        for times in 0..3 {
            if times == 1 {
                let entered = json!({"input_text": line, "keys": ["enter"]});
                terms.call("send_input", entered).await;
            } else {
                terms.send(&format!("{line}\n")).await;
            }
            let found = terms.expect("(?s)NEE.*?DLE").await;
            assert_eq!(found, "NEEDLE", "{program} {times}");
            terms.expect(prompt).await;
        }
    }
}

#[tokio::test]
async fn a_newline_is_the_key_enter_to_whoever_reads_keys() {
    let terms = Terms::new();
    terms.open("bash").await;
    let read =
        "(stty raw -echo; echo g''o; dd bs=1 count=2 2>/dev/null | od -An -tx1; stty sane)\n";
    terms.send(read).await;
    terms.expect("go").await;
    terms.send("x\n").await;
    assert_eq!(terms.expect("78 0.").await, "78 0d");
    terms.send(read).await;
    terms.expect("go").await;
    terms.keys(&["x", "ctrl-j"]).await;
    assert_eq!(terms.expect("78 0.").await, "78 0a");
}

#[tokio::test]
async fn nothing_is_entered_without_a_newline() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("echo go'ne'").await;
    terms.expect_screen("go'ne'").await;
    terms.keys(&["enter"]).await;
    terms.expect("^gone$").await;
}

#[tokio::test]
async fn keys_are_pressed_after_the_text() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms
        .send("sh -c 'echo reading; exec cat > /dev/null'\n")
        .await;
    terms.expect("^reading").await;
    terms
        .call(
            "send_input",
            json!({"input_text": "abc", "keys": ["ctrl-c"]}),
        )
        .await;
    terms.expect(r"\$ ").await;
    terms.run("echo first").await;
    terms.keys(&["up", "enter"]).await;
    terms.expect("^first$").await;
    terms.send("sh -c 'echo started; exec sleep 100'\n").await;
    terms.expect("^started").await;
    let pressed = terms.keys(&["ctrl-z"]).await;
    assert_eq!(pressed["message"], "pressed 1 key");
    terms.expect("Stopped").await;
    terms.run("kill %1").await;
}

#[tokio::test]
async fn several_lines_are_pasted_where_pasting_is_understood() {
    let terms = Terms::new();
    terms.open("bash").await;
    // Pasted, both lines are one input of the shell, so that the first does not eat the second.
    terms.send("read x\necho sec''ond $x\n").await;
    terms.send("first\n").await;
    terms.expect("^second first$").await;

    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("bind 'set enable-bracketed-paste off'").await;
    terms.send("cat\nechoed by cat\n").await;
    terms.expect("echoed by cat").await;
}

#[tokio::test]
async fn lines_that_are_pasted_without_an_end_are_not_entered() {
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send("echo fir''st\necho sec''ond").await;
        let ran = terms.run("echo other").await;
        assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
        terms.keys(&["enter"]).await;
        terms.expect("^first\nsecond$").await;
    }
}

#[tokio::test]
async fn input_for_a_program_that_is_still_starting_is_not_lost() {
    let terms = Terms::new();
    terms
        .open_with("bash", json!({"PYTHON_BASIC_REPL": "1"}))
        .await;
    terms.send("python3 -q\n").await;
    terms.send("print(6 * 7)\n").await;
    terms.expect("42").await;
}

#[tokio::test]
async fn a_line_too_long_for_the_terminal_is_refused() {
    let terms = Terms::new();
    terms.open("cat").await;
    let sent = terms
        .call(
            "send_input",
            json!({"input_text": format!("{}\n", "x".repeat(5000))}),
        )
        .await;
    assert_eq!(sent["success"], false, "{sent:#}");
    assert!(sent["error"].as_str().unwrap().contains("4095"), "{sent:#}");
    terms.send("ok\n").await;
    terms.expect("^ok$").await;
}

#[tokio::test]
async fn input_that_nobody_reads_waits_and_is_bounded() {
    let terms = Terms::new();
    terms.open("bash").await;
    // A shell of its own leads the group in front all the time.
    let deaf = "sh -c 'stty raw -echo; echo go; while :; do sleep 1000; done'\n";
    terms.send(deaf).await;
    terms.expect("go").await;
    let big = "x".repeat(1 << 20);
    let mut refused = None;
    for _ in 0..8 {
        let sent = terms.call("send_input", json!({"input_text": big})).await;
        if sent["success"] == false {
            refused = Some(sent);
            break;
        }
        assert!(
            sent["message"].as_str().unwrap().contains("wait until"),
            "{sent:#}"
        );
    }
    let refused = refused.expect("the limit is reached");
    assert!(
        refused["error"].as_str().unwrap().contains("`sh`"),
        "{refused:#}"
    );
    let more = "x".repeat((4 << 20) + 1);
    let refused = terms.call("send_input", json!({"input_text": more})).await;
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("4194305 bytes"), "{refused:#}");
}

#[tokio::test]
async fn every_part_of_the_text_can_be_read_in_pages() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("seq 1 1000").await;
    let tail = terms
        .call(
            "get_screen_content",
            json!({"content_mode": "tail", "line_count": 3}),
        )
        .await;
    assert_eq!(tail["screen_content"], "999\n1000\n$", "{tail:#}");
    let since = terms
        .call(
            "get_screen_content",
            json!({"content_mode": "since_input", "line_count": 2}),
        )
        .await;
    assert_eq!(since["screen_content"], "1000\n$ ", "{since:#}");
    let mut whole = String::new();
    let mut cursor = json!(null);
    let mut pages = 0;
    loop {
        let page = terms
            .call(
                "get_screen_content",
                json!({"content_mode": "history", "max_chars": 1000, "cursor": cursor}),
            )
            .await;
        let text = page["screen_content"].as_str().unwrap();
        assert!(text.len() <= 1000);
        whole.push_str(text);
        pages += 1;
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert!(pages > 3);
    let numbers: Vec<u32> = whole.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
    let bad = terms
        .call("get_screen_content", json!({"cursor": "next"}))
        .await;
    assert!(
        bad["error"].as_str().unwrap().contains("`cursor`"),
        "{bad:#}"
    );
}

#[tokio::test]
async fn a_ctrl_c_after_a_line_is_the_programs_that_the_line_starts() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for round in 0..5 {
            let (set, ask) = match shell {
                "fish" => (format!("set X {round}"), "echo $X"),
                _ => (format!("X={round}"), "echo $X"),
            };
            // What the line does before that program is done.
            terms.send(&format!("{set}; sleep 600\n")).await;
            terms.keys(&["ctrl-c"]).await;
            let ran = terms.run(ask).await;
            let expected = format!("{round}\n");
            assert_eq!(ran["output"], expected.as_str(), "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn an_end_of_input_after_a_line_is_for_the_program_that_the_line_starts() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for round in 0..10 {
            terms.send("cat\n").await;
            match round % 2 {
                0 => terms.keys(&["ctrl-d"]).await,
                _ => terms.send("\x04").await,
            };
            let ran = terms.run("echo over").await;
            assert_eq!(ran["status"], "finished", "{shell}: {ran:#}");
            assert_eq!(ran["output"], "over\n", "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_line_that_keys_have_cleared_holds_nothing() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let hi = async || {
            let ran = terms.run("echo hi").await;
            assert_eq!(ran["output"], "hi\n", "{shell}: {ran:#}");
        };
        terms.send("echo a b").await;
        terms.keys(&["ctrl-u"]).await;
        hi().await;
        terms.send("xy").await;
        terms.keys(&["backspace"]).await;
        let ran = terms.run("echo hi").await;
        assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
        terms.keys(&["backspace"]).await;
        hi().await;
        terms.send("x").await;
        terms.keys(&["left", "right", "ctrl-u"]).await;
        if shell == "dash" {
            // What other keys have made of it the terminal does not tell.
            let ran = terms.run("echo hi").await;
            assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
            let error = ran["error"].as_str().unwrap();
            assert!(error.contains("cannot tell"), "{shell}: {error}");
            terms.keys(&["ctrl-c"]).await;
        }
        hi().await;
    }
}

#[tokio::test]
async fn a_terminal_can_be_resized() {
    let terms = Terms::new();
    let session = terms.open("bash").await;
    assert_eq!(terms.run("stty size").await["output"], "40 120\n");
    let size = flow_runtime::terminal::Size {
        columns: 60,
        rows: 10,
    };
    terms.terminals.resize(&session, size).unwrap();
    assert_eq!(terms.run("stty size").await["output"], "10 60\n");
    terms.run("seq 1 50").await;
    assert_eq!(terms.screen().await.lines().count(), 10);
}

#[tokio::test]
async fn queries_are_answered_where_they_are_asked_and_nowhere_else() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ask = r"stty -icanon -echo; printf '\033[c'; IFS= read -r -d c answer; stty icanon echo; echo ${#answer}";
    assert_eq!(terms.run(ask).await["output"], "\u{1b}[c4\n");
    // A file that contains the query does not make the shell read an answer.
    terms
        .run(r"printf '\033[c\033[6n' > query; cat query")
        .await;
    assert_eq!(terms.run("echo ok").await["output"], "ok\n");
}

#[tokio::test]
async fn what_a_shell_shows_before_its_prompt_is_no_output() {
    for (shell, prompt) in [("zsh", "% "), ("fish", "> ")] {
        let terms = Terms::new();
        let session = terms.open(shell).await;
        if shell == "fish" {
            terms.run("function fish_prompt; echo -n '> '; end").await;
        }
        let read = async |mode: &str| {
            let asked = json!({"session_id": session, "content_mode": mode});
            let read = terms.call("get_screen_content", asked).await;
            read["screen_content"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        for (command, shown) in [("printf one", "one\n"), ("echo two", "two\n"), ("true", "")] {
            terms.run(command).await;
            assert_eq!(
                read("since_input").await,
                format!("{shown}{prompt}"),
                "{shell}"
            );
            let last = read("tail").await;
            let expected = format!("{prompt}{command}\n{shown}{}", prompt.trim_end());
            assert!(last.ends_with(&expected), "{shell}: {last:?}");
        }
    }
}

#[tokio::test]
async fn tabs_in_lines_that_are_pasted_are_tabs_in_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms
            .run("printf '%s|' 'a\tb' \"c\td\"\nprintf '%s|' '\te'")
            .await;
        assert_eq!(ran["output"], "a\tb|c\td|\te|", "{shell}: {ran}");
        terms.send("printf '<%s>' 'f\tg\n\th'\n").await;
        assert_eq!(
            terms.expect("<f\\tg\\n\\th>").await,
            "<f\tg\n\th>",
            "{shell}"
        );
    }
}

#[tokio::test]
async fn a_ctrl_c_after_a_pipeline_reaches_all_of_it() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for _ in 0..10 {
            terms.send("cat | sleep 1000\n").await;
            terms.keys(&["ctrl-c"]).await;
            let ran = terms.run("echo after").await;
            assert_eq!(ran["output"], "after\n", "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_line_typed_ahead_is_one_for_the_program_that_reads_it() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        if shell == "zsh" {
            // It is still in the mode in which it edits lines when the second one comes.
            let slow = "zle-line-finish() { repeat 50000 :; }; zle -N zle-line-finish";
            terms.run(slow).await;
        }
        terms.send("sh -c 'read x; echo \"got $x\"; cat'\n").await;
        terms.send("one\n").await;
        terms.expect("^got one$").await;
        terms.keys(&["ctrl-d"]).await;
        let ran = terms.run("echo after").await;
        assert_eq!(ran["output"], "after\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn a_program_is_quit_by_its_key_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("ulimit -c 0").await;
        terms.send("sleep 1000\n").await;
        terms.keys(&["ctrl-\\"]).await;
        let ran = terms.run("echo after").await;
        assert_eq!(ran["output"], "after\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn half_a_line_typed_ahead_is_at_the_next_prompt() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send("sleep 0.3\n").await;
        terms.send("half").await;
        // The kernel shows it first, then the shell, at its prompt, if it edits lines itself.
        terms.expect_screen("[#$%] half|half# ?$").await;
        let ran = terms.run("echo ok").await;
        assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
        terms.keys(&["ctrl-c"]).await;
        let ran = terms.run("echo ok").await;
        assert_eq!(ran["output"], "ok\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn keys_that_a_program_has_taken_are_not_at_the_next_prompt() {
    // dash shows nothing of what is left over, so that it counts as being there.
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("seq 500 > long").await;
        for _ in 0..3 {
            terms.send("less long\n").await;
            terms.send("q").await;
            terms.expect_screen("^[^l\n]*[#$%] ?$").await;
            let ran = terms.run("echo after").await;
            assert_eq!(ran["output"], "after\n", "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_line_behind_the_key_that_ends_a_program_is_read_by_the_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for (line, key) in [
            ("cat\n", "ctrl-c"),
            ("sleep 1000\n", "ctrl-\\"),
            ("cat\n", "ctrl-z"),
        ] {
            for number in 0..5 {
                terms.send(line).await;
                terms.keys(&[key]).await;
                terms.send(&format!("echo be''hind {number}\n")).await;
                terms.expect(&format!("^behind {number}$")).await;
            }
        }
        // What outlives it gets the line.
        terms.send("sh -c 'trap \"\" INT; exec cat'\n").await;
        terms.keys(&["ctrl-c"]).await;
        terms.send("to the program\n").await;
        terms.expect("^to the program$").await;
    }
}

#[tokio::test]
async fn a_key_that_the_terminal_takes_for_a_character_interrupts_nothing() {
    let terms = Terms::new();
    terms.open("dash").await;
    terms.send("echo half; ").await;
    terms.keys(&["ctrl-v"]).await;
    terms.keys(&["ctrl-c"]).await;
    let ran = terms.run("echo whole").await;
    assert_eq!(ran["status"], "refused", "{ran:#}");
    terms.keys(&["ctrl-c"]).await;
    assert_eq!(terms.run("echo whole").await["output"], "whole\n");
}

#[tokio::test]
async fn calls_at_the_same_time_type_in_the_order_in_which_they_came() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let (_, _, _, ran) = tokio::join!(
            terms.send("echo 0 >>order\n"),
            terms.send("echo 1 >>order\n"),
            terms.send("echo 2 >>order\n"),
            terms.run("cat order"),
        );
        assert_eq!(ran["output"], "0\n1\n2\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn what_a_program_that_reads_a_key_leaves_is_known_at_the_prompt() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        std::fs::write(terms.home().join("key.py"), READS_A_KEY).unwrap();
        terms.send("python3 -u key.py\n").await;
        terms.expect("^begun$").await;
        terms.send("yes").await;
        terms.expect("b'y'").await;
        let ran = terms.run("echo on").await;
        assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
        terms.keys(&["ctrl-u"]).await;
        assert_eq!(terms.run("echo on").await["output"], "on\n", "{shell}");
    }
}

#[tokio::test]
async fn a_shell_without_an_editor_takes_lines_from_a_terminal_that_was_left_raw() {
    let terms = Terms::new();
    terms.open("dash").await;
    terms.run("stty raw -echo").await;
    terms.send("echo one > written\n").await;
    terms
        .send("echo two >> written\necho three >> written\n")
        .await;
    let ran = terms.run("cat written").await;
    assert_eq!(
        outcome(&ran),
        ("finished", Some(0), "one\ntwo\nthree\n"),
        "{ran:#}"
    );
    // A program that reads keys takes the key Enter all the same.
    let program = "python3 -c 'import os; print(\"begun\"); print(os.read(0, 1))'\n";
    terms.send(program).await;
    terms.expect("begun").await;
    terms.send("\n").await;
    terms.expect(r"b'\\r'").await;
}
