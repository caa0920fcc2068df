//! `run_command`: what came out, how it ended, and what to say when it did not.

use std::time::Duration;

use flow_runtime::terminal::Place;
use serde_json::json;

use crate::support::{SHELLS, Terms, outcome};

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn output_and_exit_code_are_exact_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms.run("echo hi; echo there >&2").await;
        assert_eq!(ran["output"], "hi\nthere\n", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], 0, "{shell}");
        assert_eq!(ran["success"], true, "{shell}");
        let ran = terms.run("printf foo").await;
        assert_eq!(ran["output"], "foo", "{shell}");
        let ran = terms.run("sh -c 'exit 17'").await;
        assert_eq!(
            (&ran["exit_code"], &ran["status"], &ran["success"]),
            (&json!(17), &json!("finished"), &json!(false)),
            "{shell}: {ran:#}"
        );
        let ran = terms.run("cd /; true").await;
        assert_eq!(ran["working_directory"], "/", "{shell}");
        let ran = terms.run("true").await;
        assert_eq!(ran["output"], "", "{shell}");
        terms.terminals.close_all().await;
    }
}

#[tokio::test]
async fn a_command_of_several_lines_runs_as_a_whole_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let command = match shell {
            "fish" => "for i in 1 2\n\techo $i\nend\necho done",
            _ => "for i in 1 2\ndo echo $i\ndone\necho done",
        };
        let ran = terms.run(command).await;
        assert_eq!(ran["output"], "1\n2\ndone\n", "{shell}: {ran:#}");
        assert_eq!(ran["status"], "finished", "{shell}: {ran:#}");
        let ran = terms.run("cat <<E\nhello\nE").await;
        if shell != "fish" {
            assert_eq!(ran["output"], "hello\n", "{shell}: {ran:#}");
        }
        let ran = terms.run("echo ok").await;
        assert_eq!(ran["output"], "ok\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn a_command_waits_until_the_shell_has_read_what_was_typed_before() {
    for shell in ["bash", "zsh"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let lines = "0123456789abcdef0123456789abcde\n".repeat(2000);
        let typed = format!("cat > big <<'E'\n{lines}E\n");
        let sent = terms.call("send_input", json!({"input_text": typed}));
        assert_eq!(sent.await["success"], true, "{shell}");
        let ran = terms.run("wc -c < big").await;
        let output = ran["output"].as_str().unwrap_or_default().trim();
        assert_eq!(output, "64000", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn an_unclosed_quote_is_abandoned_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms.run("echo \"never closed").await;
        assert_eq!(ran["status"], "incomplete", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], json!(null), "{shell}");
        let ran = terms.run("echo ok").await;
        assert_eq!(ran["output"], "ok\n", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], 0, "{shell}");
    }
}

#[tokio::test]
async fn a_comment_is_no_command() {
    for shell in ["bash", "fish", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("false").await;
        let ran = terms.run("# nothing").await;
        assert_eq!(ran["status"], "no_command", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], json!(null), "{shell}");
        let ran = terms.run("").await;
        assert_eq!(ran["status"], "no_command", "{shell}: {ran:#}");
        assert_eq!(terms.run("echo ok").await["output"], "ok\n", "{shell}");
    }
}

#[tokio::test]
async fn a_shell_that_exits_is_said_to_with_its_code() {
    for shell in SHELLS {
        for (command, code) in [
            ("exit 5", 5),
            ("exec false", 1),
            ("exec sh -c 'echo x; exit 3'", 3),
        ] {
            let terms = Terms::new();
            terms.open(shell).await;
            let ran = terms.run(command).await;
            assert_eq!(ran["status"], "shell_exited", "{shell}: {ran:#}");
            assert_eq!(ran["exit_code"], code, "{shell}: {ran:#}");
            assert_eq!(ran["process_running"], false, "{shell}");
            let again = terms.run("echo hi").await;
            assert_eq!(again["status"], "shell_exited", "{shell}: {again:#}");
            assert_eq!(again["exit_code"], code, "{shell}: {again:#}");
        }
    }
}

#[tokio::test]
async fn set_e_ends_the_shell_at_the_first_failure_and_not_before() {
    for shell in ["bash", "zsh", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        assert_eq!(terms.run("set -e").await["exit_code"], 0, "{shell}");
        let ran = terms.run("false || false || true").await;
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let ran = terms.run("if false; then :; fi; echo on").await;
        assert_eq!(ran["output"], "on\n", "{shell}: {ran:#}");
        // A failure that `set -e` forgives must not be one for the prompt's hooks either.
        let ran = terms.run("false && true").await;
        assert_eq!(ran["status"], "finished", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], 1, "{shell}: {ran:#}");
        let ran = terms.run("sh -c 'exit 4'").await;
        assert_eq!(ran["status"], "shell_exited", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], 4, "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn a_program_in_front_is_named() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.send("python3 -q\n").await;
    terms.expect(">>> ").await;
    let ran = terms.run("echo hi").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    assert_eq!(ran["foreground"], "python3", "{ran:#}");
    assert!(
        ran["error"].as_str().unwrap().starts_with("busy: python3"),
        "{ran:#}"
    );
    terms.send("exit()\n").await;
    terms.expect(r"\$ ").await;
    assert_eq!(terms.run("echo hi").await["output"], "hi\n");
}

#[tokio::test]
async fn one_command_at_a_time_runs_in_a_session() {
    let terms = Terms::new();
    let session = terms.open("bash").await;
    let terminals = terms.terminals.clone();
    let first = tokio::spawn(async move {
        let command = json!({"command": "echo begun; read -r line; echo $line", "timeout": 60});
        terminals.call("run_command", command).await.unwrap()
    });
    terms.expect("begun").await;
    let second = terms.run("echo second").await;
    assert_eq!(second["status"], "busy", "{second:#}");
    assert_eq!(
        second["error"], "busy: another command is being run in this session",
        "{second:#}"
    );
    terms.send("go on\n").await;
    let first = first.await.unwrap();
    assert_eq!(first["output"], "begun\ngo on\ngo on\n", "{first:#}");
    assert_eq!(terms.terminals.sessions(), [session]);
}

#[tokio::test]
async fn a_nested_shell_is_a_program_in_front() {
    for command in ["bash --norc", "sh"] {
        let terms = Terms::new();
        // A prompt that is exported is inherited, with our marks in it.
        terms.open_with("bash", json!({"PS1": "inherited> "})).await;
        terms.run("PS1='outer> '").await;
        terms.send(&format!("{command}\n")).await;
        terms.expect("outer> ").await;
        let ran = terms.run("echo hi").await;
        assert_eq!(ran["status"], "busy", "{command}: {ran:#}");
        terms.send("exit\n").await;
        terms.expect("outer> ").await;
        assert_eq!(terms.run("echo hi").await["output"], "hi\n");
    }
}

#[tokio::test]
async fn a_shell_that_was_replaced_is_not_at_a_prompt() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("exec bash --norc").await;
    assert_eq!(ran["status"], "shell_exited", "{ran:#}");
    assert_eq!(ran["process_running"], true, "{ran:#}");
    assert_eq!(ran["exit_code"], json!(null));
    let ways = [
        "replaced by `bash`",
        "send_input",
        "await_output",
        "`shell: bash`",
    ];
    let said = ran["error"].as_str().unwrap();
    assert!(ways.iter().all(|way| said.contains(way)), "{said}");
    let ran = terms.run("echo hi").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    let said = ran["error"].as_str().unwrap();
    assert!(ways.iter().all(|way| said.contains(way)), "{said}");
}

#[tokio::test]
async fn an_overwritten_prompt_command_makes_the_code_unknown_never_wrong() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("unset PROMPT_COMMAND; false").await;
    assert_eq!(ran["status"], "finished", "{ran:#}");
    assert_eq!(ran["exit_code"], json!(null), "{ran:#}");
    assert_eq!(ran["success"], false);
    let ran = terms.run("echo out; false").await;
    assert_eq!(ran["output"], "out\n", "{ran:#}");
    assert_eq!(ran["exit_code"], json!(null), "{ran:#}");

    // Only the first hook replaced: it is put back, and the code is known again.
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("PROMPT_COMMAND='MINE=1'; false").await;
    assert_eq!(ran["exit_code"], json!(null), "{ran:#}");
    let ran = terms.run("sh -c 'exit 3'").await;
    assert_eq!(ran["exit_code"], 3, "{ran:#}");
    assert_eq!(terms.run("echo $MINE").await["output"], "1\n");
}

#[tokio::test]
async fn after_a_time_out_the_old_end_is_not_taken_for_the_new_one() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms
        .call(
            "run_command",
            json!({"command": "echo start; sleep 1; (exit 7)", "timeout": 0.3}),
        )
        .await;
    assert_eq!(ran["status"], "timed_out", "{ran:#}");
    assert_eq!(ran["output"], "start\n", "{ran:#}");
    assert_eq!(ran["foreground"], "sleep", "{ran:#}");
    let ran = terms.run("echo too soon").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    terms.expect(r"^\$ ").await;
    let ran = terms.run("echo hi").await;
    assert_eq!(
        (&ran["output"], &ran["exit_code"]),
        (&json!("hi\n"), &json!(0)),
        "{ran:#}"
    );
}

#[tokio::test]
async fn a_long_line_is_refused_where_the_terminal_would_cut_it() {
    let terms = Terms::new();
    terms.open("dash").await;
    let fits = format!("echo {}", "x".repeat(4095 - 5));
    let ran = terms.run(&fits).await;
    assert_eq!(ran["output"].as_str().unwrap().len(), 4091, "{ran:#}");
    let ran = terms.run(&format!("{fits}x")).await;
    assert_eq!(ran["status"], "refused", "{ran:#}");
    assert!(ran["error"].as_str().unwrap().contains("4095"), "{ran:#}");
    assert_eq!(terms.run("echo ok").await["output"], "ok\n");
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms.run(&format!("echo {}", "x".repeat(10_000))).await;
        assert_eq!(ran["output"].as_str().unwrap().len(), 10_001, "{shell}");
    }
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run(&format!(": {}", "x".repeat(5 << 20))).await;
    assert_eq!(ran["status"], "refused", "{ran:#}");
    let told = "put it into a file";
    assert!(ran["error"].as_str().unwrap().contains(told), "{ran:#}");
    assert_eq!(terms.run("echo ok").await["output"], "ok\n");
}

#[tokio::test]
async fn a_spoofed_mark_means_nothing() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms
        .run(r"printf '\033]133;D;0\007\033]133;A\007\033]133;B\007\033]133;D;0;guess\007'; (exit 9)")
        .await;
    assert_eq!(ran["exit_code"], 9, "{ran:#}");
    assert_eq!(ran["output"].as_str().unwrap().matches("133;").count(), 4);
}

#[tokio::test]
async fn control_characters_are_refused_and_tabs_are_typed_as_they_are() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("echo \u{3}").await;
    assert_eq!(ran["status"], "refused", "{ran:#}");
    let ran = terms.run("echo a\r\necho b\r\n").await;
    assert_eq!(ran["status"], "refused", "{ran:#}");
    let told = "end them with `\\n` alone";
    assert!(ran["error"].as_str().unwrap().contains(told), "{ran:#}");
    let ran = terms.run("printf '%s' 'a\tb'").await;
    assert_eq!(ran["output"], "a\tb", "{ran:#}");
}

#[tokio::test]
async fn a_line_that_was_begun_is_not_run_together_with_a_command() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send("echo half").await;
        let ran = terms.run("echo hi").await;
        assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
        terms.keys(&["ctrl-c"]).await;
        let ran = terms.run("echo hi").await;
        assert_eq!(
            ran["output"],
            "hi\n",
            "{shell}: {ran:#} {}",
            terms.screen().await
        );
        // A command sent right before is waited for.
        terms.send("cd /\n").await;
        let ran = terms.run("pwd").await;
        assert_eq!(ran["output"], "/\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn what_is_typed_after_an_interrupt_is_typed_at_the_next_prompt() {
    for shell in SHELLS {
        let terms = Terms::new();
        let session = terms.open(shell).await;
        for round in 0..5 {
            terms.send("echo half").await;
            terms.keys(&["ctrl-c"]).await;
            terms.send(&format!("echo who''le{round}\n")).await;
            terms.expect(&format!("^whole{round}$")).await;
            let place = terms.terminals.prompt(&session, LONG).await.unwrap();
            assert_eq!(place, Place::Prompt, "{shell}: {}", terms.screen().await);
        }
    }
}

#[tokio::test]
async fn tracing_and_other_options_do_not_reach_the_output() {
    for shell in ["bash", "zsh"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("set -x").await;
        let ran = terms.run("true").await;
        assert!(
            !ran["output"].as_str().unwrap().contains("flow"),
            "{shell}: {ran:#}"
        );
        terms.run("set +x; set -u; set -o noclobber").await;
        let ran = terms.run("echo ok").await;
        assert_eq!(ran["output"], "ok\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn the_users_hooks_prompt_and_status_are_kept() {
    let terms = Terms::new();
    std::fs::write(
        terms.home().join(".bashrc"),
        "PROMPT_COMMAND='LAST=$?; COUNT=$((COUNT + 1))'\nPS1='mine $? > '\nPS0='zero\\n'\n",
    )
    .unwrap();
    let opened = terms.open("bash").await;
    assert!(terms.screen().await.starts_with("mine 0 >"), "{opened}");
    terms.run("(exit 3)").await;
    let ran = terms.run("echo $? $LAST").await;
    assert_eq!(ran["output"], "3 3\n", "{ran:#}");
    assert!(
        terms.screen().await.ends_with("mine 0 >"),
        "{}",
        terms.screen().await
    );
    let ran = terms.run("echo $COUNT").await;
    assert_eq!(ran["output"], "3\n", "{ran:#}");

    let terms = Terms::new();
    std::fs::write(
        terms.home().join(".zshrc"),
        "PS1='zmine > '\nprecmd() { LAST=$?; }\npreexec() { BEFORE=$1; }\n",
    )
    .unwrap();
    terms.open("zsh").await;
    terms.run("(exit 3)").await;
    let ran = terms.run("echo $? $LAST $BEFORE").await;
    assert_eq!(ran["output"], "3 3 echo $? $LAST $BEFORE\n", "{ran:#}");
    assert!(terms.screen().await.ends_with("zmine >"));

    let terms = Terms::new();
    std::fs::create_dir_all(terms.home().join(".config/fish")).unwrap();
    std::fs::write(
        terms.home().join(".config/fish/config.fish"),
        "function fish_prompt; echo \"fmine $status > \"; end\nset -g fish_greeting\n",
    )
    .unwrap();
    terms.open("fish").await;
    terms.run("sh -c 'exit 3'").await;
    assert!(
        terms.screen().await.ends_with("fmine 3 >"),
        "{}",
        terms.screen().await
    );
    assert_eq!(terms.run("echo $status").await["output"], "3\n");
}

#[tokio::test]
async fn what_the_function_precmd_of_zsh_prints_is_no_output() {
    let terms = Terms::new();
    let functions = r#"
        precmd() { print -r -- "<$?>"; print -n '\e]0;title\a' }
        chpwd() { precmd }
    "#;
    std::fs::write(terms.home().join(".zshrc"), functions).unwrap();
    terms.open("zsh").await;
    for (command, output, code) in [
        ("echo hi", "hi\n", 0),
        ("printf unfinished", "unfinished", 0),
        ("(exit 3)", "", 3),
        ("echo $?", "3\n", 0),
        // Somebody else calls it.
        ("precmd; false", "<0>\n\x1b]0;title\x07", 1),
        ("cd /; echo there", "<1>\n\x1b]0;title\x07there\n", 0),
        ("set -e; [[ a == b ]] && true", "", 1),
        ("set +e; echo alive; set -x", "alive\n", 0),
    ] {
        let ran = terms.run(command).await;
        assert_eq!(ran["output"], output, "{command}: {ran:#}");
        assert_eq!(ran["exit_code"], code, "{command}: {ran:#}");
    }
    let ran = terms.run("set +x").await;
    let traced = ran["output"].as_str().unwrap();
    assert!(
        traced.starts_with('+') && traced.ends_with("> set +x\n"),
        "{ran:#}"
    );
    assert_eq!(traced.lines().count(), 1, "{ran:#}");
    assert!(terms.screen().await.contains("<1>\n"));
    // One that is defined anew is known from the next prompt on.
    let made = terms.run("precmd() { LAST=$?; print anew }").await;
    assert_eq!(made["exit_code"], 0, "{made:#}");
    terms.run("(exit 5)").await;
    let ran = terms.run("echo $LAST").await;
    assert_eq!(ran["output"], "5\n", "{ran:#}");
}

#[tokio::test]
async fn an_unfinished_line_stays_visible_in_every_shell() {
    for shell in ["zsh", "fish", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("printf unfinished").await;
        assert!(
            terms.screen().await.contains("\nunfinished"),
            "{shell}: {}",
            terms.screen().await
        );
    }
}

#[tokio::test]
async fn a_command_after_ctrl_c_runs_whole_when_another_was_just_ending() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for round in 0..40 {
            // The interrupt comes sooner or later in the life of the command, its end and the
            // prompt after it.
            terms.send(&format!("true {round}\n")).await;
            for _ in 0..round * 50 {
                tokio::task::yield_now().await;
            }
            terms.keys(&["ctrl-c"]).await;
            let ran = terms.run("echo a b c").await;
            assert_eq!(ran["output"], "a b c\n", "{shell} {round}: {ran}");
            assert_eq!(ran["exit_code"], 0, "{shell} {round}: {ran}");
        }
    }
}

#[tokio::test]
async fn an_interrupt_that_a_shell_has_noted_does_not_take_the_next_command() {
    // The shell itself is interrupted right before it reads keys, as by a ctrl-c that a command was
    // too short for.
    for (shell, hook) in [
        (
            "bash",
            "PROMPT_COMMAND+=('[ -e note ] && rm note && kill -INT $$')",
        ),
        (
            "zsh",
            "precmd() { [[ -e note ]] && rm note && kill -INT $$; true }",
        ),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(hook).await;
        for _ in 0..5 {
            terms.send("touch note\n").await;
            terms.keys(&["ctrl-c"]).await;
            let ran = terms.run("echo a b c").await;
            assert_eq!(ran["output"], "a b c\n", "{shell}: {ran}");
        }
    }
}

#[tokio::test]
async fn a_command_that_goes_on_after_its_time_keeps_every_shell_busy() {
    for shell in ["bash", "zsh", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let asks = json!({"command": "read x; echo got $x", "timeout": 0.3});
        let ran = terms.call("run_command", asks).await;
        assert_eq!(ran["status"], "timed_out", "{shell}: {ran:#}");
        let ran = terms.run("echo hi").await;
        assert_eq!(ran["status"], "busy", "{shell}: {ran:#}");
        let said = ran["error"].as_str().unwrap();
        assert!(said.contains("is not at a prompt"), "{shell}: {ran:#}");
        terms.send("an answer\n").await;
        terms.expect("got an answer").await;
        let ran = terms.run("echo hi").await;
        assert_eq!(ran["output"], "hi\n", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn what_fish_cannot_read_is_wrong_and_not_unfinished() {
    let terms = Terms::new();
    terms.open("fish").await;
    for command in ["cat <<X", "end", "echo )"] {
        let ran = terms.run(command).await;
        assert_eq!(ran["status"], "refused", "{command}: {ran:#}");
        let said = ran["error"].as_str().unwrap();
        assert!(said.contains("no here-documents"), "{command}: {ran:#}");
    }
    let ran = terms.run("echo 'a").await;
    assert_eq!(ran["status"], "incomplete", "{ran:#}");
    assert_eq!(terms.run("echo hi").await["output"], "hi\n");
}

#[tokio::test]
async fn a_long_line_is_pasted_where_the_shell_takes_that() {
    // Typed key by key, it takes zsh minutes.
    for shell in ["bash", "zsh", "fish"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let long = "z".repeat(100_000);
        let asked = json!({"command": format!("echo {long}"), "timeout": 30, "max_chars": 200_000});
        let ran = terms.call("run_command", asked).await;
        assert_eq!(ran["status"], "finished", "{shell}: {}", ran["error"]);
        assert_eq!(ran["output"], format!("{long}\n"), "{shell}");
    }
}

#[tokio::test]
async fn a_command_that_is_still_being_read_is_said_to_be_and_given_up_with_ctrl_c() {
    // Others take it from a file.
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("bind 'set enable-bracketed-paste off'").await;
    let command = format!("echo {}", "z".repeat(4_000_000));
    let asked = json!({"command": command, "timeout": 0.1});
    let ran = terms.call("run_command", asked).await;
    assert_eq!(ran["status"], "timed_out", "{ran:#}");
    let error = ran["error"].as_str().unwrap();
    assert!(error.contains("has not begun"), "{error}");
    assert!(error.contains("bytes are left"), "{error}");
    terms.keys(&["ctrl-c"]).await;
    let ran = terms.run("echo ok").await;
    assert_eq!(ran["output"], "ok\n", "{ran:#}");
}

#[tokio::test]
async fn what_the_background_writes_meanwhile_makes_nothing_else_output() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms
            .run("sh -c 'while :; do sleep 0.003; echo noise; done' &")
            .await;
        for round in 0..60 {
            let ran = terms.run(&format!("echo said {round}")).await;
            let output = ran["output"].as_str().unwrap();
            let said: Vec<&str> = output.lines().filter(|line| *line != "noise").collect();
            assert_eq!(said, [format!("said {round}")], "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_prompt_for_more_that_was_replaced_is_no_output() {
    for shell in ["bash", "zsh", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("PS2='more '").await;
        let ran = terms.run("for i in 1 2\ndo echo $i\ndone").await;
        assert_eq!(ran["output"], "1\n2\n", "{shell}: {ran:#}");
        let ran = terms.run("cat <<X\nline\nX").await;
        assert_eq!(ran["output"], "line\n", "{shell}: {ran:#}");
        let ran = terms.run("for i in 1 2").await;
        assert_eq!(ran["status"], "incomplete", "{shell}: {ran:#}");
        assert_eq!(ran["output"], "", "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn a_shell_that_shows_nothing_of_what_is_typed_adds_nothing_to_the_output() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("stty -echo").await;
        for _ in 0..2 {
            let ran = terms.run("echo quiet").await;
            assert_eq!(ran["output"], "quiet\n", "{shell}: {ran:#}");
            let since = terms.since_input().await;
            assert!(since.starts_with("quiet\n"), "{shell}: {since:?}");
        }
    }
}

#[tokio::test]
async fn empty_lines_in_a_command_are_lines_of_it_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for (command, output) in [
            ("\necho a", "a\n"),
            ("echo a\n\necho b", "a\nb\n"),
            ("echo 'a\n\n\nb'", "a\n\n\nb\n"),
        ] {
            let ran = terms.run(command).await;
            assert_eq!(ran["output"], output, "{shell} {command:?}: {ran:#}");
        }
        if shell != "fish" {
            let ran = terms.run("cat <<E\na\n\nb\nE").await;
            assert_eq!(ran["output"], "a\n\nb\n", "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_command_runs_behind_a_ctrl_c_that_a_trap_has_taken() {
    for shell in ["bash", "zsh", "dash"] {
        for trap in ["trap 'echo tra''pped' INT", "trap '' INT"] {
            let terms = Terms::new();
            terms.open(shell).await;
            terms.run(trap).await;
            terms.send("half").await;
            terms.keys(&["ctrl-c"]).await;
            let ran = terms.run("echo after").await;
            assert_eq!(ran["status"], "finished", "{shell} {trap}: {ran:#}");
            // dash runs the trap with its next line.
            let output = ran["output"].as_str().unwrap_or_default();
            assert!(output.ends_with("after\n"), "{shell} {trap}: {ran:#}");
            let history = json!({"content_mode": "history"});
            let shown = terms.call("get_screen_content", history).await;
            let shown = shown["screen_content"].as_str().unwrap_or_default();
            assert!(shown.matches("trapped").count() <= 1, "{shell}: {shown}");
        }
    }
}

#[tokio::test]
async fn a_program_that_takes_the_shells_place_and_works_is_waited_for() {
    for shell in SHELLS {
        for (command, code, output) in [
            ("exec sleep 0.3", 0, ""),
            ("exec sh -c 'sleep 0.3; echo late; exit 3'", 3, "late\n"),
        ] {
            let terms = Terms::new();
            terms.open(shell).await;
            let ran = terms.run(command).await;
            let told = (&ran["status"], &ran["exit_code"], &ran["output"]);
            let right = (&json!("shell_exited"), &json!(code), &json!(output));
            assert_eq!(told, right, "{shell}: {command}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_command_behind_empty_lines_is_told_by_its_own_prompt() {
    let typed = [
        json!({"input_text": "\n\n"}),
        json!({"keys": ["enter", "enter", "enter"]}),
        json!({"keys": ["ctrl-c", "enter", "enter"]}),
        json!({"input_text": " \n \n"}),
    ];
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for typed in typed.iter().cycle().take(20) {
            terms.call("send_input", typed.clone()).await;
            let ran = terms.run("echo out; sh -c 'exit 7'").await;
            let told = (&ran["status"], &ran["exit_code"], &ran["output"]);
            let right = (&json!("finished"), &json!(7), &json!("out\n"));
            assert_eq!(told, right, "{shell} behind {typed}: {ran:#}");
        }
        for _ in 0..10 {
            for _ in 0..5 {
                terms.send("\n").await;
            }
            let ran = terms.run("sh -c 'exit 8'").await;
            assert_eq!(ran["exit_code"], 8, "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_line_behind_empty_lines_never_matches_itself() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for typed in ["\n\n", "\n\n\n\n", " \n \n"].iter().cycle().take(12) {
            terms.send(typed).await;
            terms.send("sleep 0.01; echo marker | tr a-z A-Z\n").await;
            let found = terms.expect(r"(?i)marker").await;
            assert_eq!(found, "MARKER", "{shell} behind {typed:?}");
        }
    }
}

#[tokio::test]
async fn what_a_shell_has_put_into_its_line_is_not_run_with_the_next_command() {
    for (shell, puts) in [
        ("bash", "shopt -s histverify"),
        ("zsh", "setopt histverify"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(puts).await;
        terms.run("echo one").await;
        let ran = terms.run("echo hv !!").await;
        assert_eq!(ran["status"], "refused", "{shell}: {ran:#}");
        assert!(ran["error"].as_str().unwrap().contains("histverify"));
        let ran = terms.run("echo two").await;
        assert_eq!(ran["output"], "two\n", "{shell}: {ran:#}");
    }
    for (shell, puts) in [
        ("zsh", "print -z rm -rf foo"),
        ("fish", "commandline -r 'rm -i'"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        for _ in 0..20 {
            terms.run(puts).await;
            let ran = terms.run("echo two").await;
            assert_eq!(ran["output"], "two\n", "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_key_that_stops_nobody_does_not_hold_the_next_command_up() {
    for key in ["ctrl-z", "ctrl-\\"] {
        let terms = Terms::new();
        terms.open("dash").await;
        for keys in [&[key][..], &["enter", key], &["a", "enter", key]] {
            terms.keys(keys).await;
            let ran = terms.run("echo fine").await;
            assert_eq!(ran["output"], "fine\n", "behind {keys:?}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn half_a_line_behind_lines_typed_ahead_is_there_in_dash() {
    let terms = Terms::new();
    terms.open("dash").await;
    for typed in ["\n\n", "true\n\n", "true\ntrue\n"].iter().cycle().take(12) {
        terms.send(typed).await;
        terms.send("echo half ").await;
        let ran = terms.run("echo whole").await;
        assert_eq!(ran["status"], "refused", "behind {typed:?}: {ran:#}");
        terms.keys(&["ctrl-u"]).await;
        let ran = terms.run("echo whole").await;
        assert_eq!(ran["output"], "whole\n", "behind {typed:?}: {ran:#}");
    }
}

#[tokio::test]
async fn what_was_sent_and_not_entered_is_not_cleared() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run(r#"bind '"\C-j": self-insert'"#).await;
    // Typed ahead, the end of the line is what the terminal makes of it.
    terms.send("sleep 0.1\n").await;
    terms.send("echo kept\n").await;
    let ran = terms.run("echo mid").await;
    assert_eq!(ran["status"], "refused", "{ran:#}");
}

#[tokio::test]
async fn what_belongs_to_a_command_that_a_shell_cannot_read_is_not_run_by_itself() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for (command, is_read_by) in [
            ("echo ) 'a\ntouch ran\nb'", ""),
            ("cat <<< 'a\ntouch ran\nb'", "bash zsh"),
            ("a=(x 'a\ntouch ran\nb')", "bash zsh"),
            ("echo ) <<E\ntouch ran\nE", ""),
            ("echo )) \"a\ntouch ran\n\"", ""),
            (";; $(\ntouch ran\n)", ""),
            ("true 'a\ntouch ran\nb'", "bash zsh dash fish"),
        ] {
            let ran = terms.run(command).await;
            if is_read_by.contains(shell) {
                assert_eq!(ran["success"], true, "{shell} {command:?}: {ran:#}");
            } else {
                assert_eq!(ran["success"], false, "{shell} {command:?}: {ran:#}");
            }
            assert!(
                !terms.home().join("ran").exists(),
                "{shell} {command:?}: {ran:#}"
            );
            let ran = terms.run("echo next").await;
            assert_eq!(ran["output"], "next\n", "{shell} {command:?}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn an_end_of_input_that_a_shell_declines_is_over_before_the_next_command() {
    for (shell, before) in [
        ("bash", "set -o ignoreeof"),
        ("zsh", "setopt ignoreeof"),
        ("bash", "sleep 1000 & kill -STOP $!"),
        ("zsh", "sleep 1000 & kill -STOP $!"),
        ("dash", "set -o ignoreeof"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(before).await;
        let ends = ["true\n", "\n", ""].iter().cycle().take(18).enumerate();
        for (number, line) in ends {
            // Asked twice in a row, a shell with stopped jobs would end.
            terms.run("true").await;
            if line.is_empty() {
                terms.keys(&["enter", "ctrl-d"]).await;
            } else {
                let both = serde_json::json!({"input_text": line, "keys": ["ctrl-d"]});
                terms.call("send_input", both).await;
            }
            let ran = terms.run(&format!("echo ran {number}")).await;
            let output = format!("ran {number}\n");
            assert_eq!(ran["output"], output, "{shell} {before} {line:?}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_shell_that_another_has_taken_the_place_of_runs_nothing() {
    for shell in ["bash", "zsh", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms.run(&format!("exec {shell}")).await;
        assert_eq!(ran["status"], "shell_exited", "{shell}: {ran:#}");
        let ran = terms.run("touch ran").await;
        assert_eq!(ran["status"], "busy", "{shell}: {ran:#}");
        assert!(!terms.home().join("ran").exists(), "{shell}");
    }
}

#[tokio::test]
async fn a_ctrl_c_ends_the_lines_that_are_yet_to_come() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        // It is in front when it says so: a ctrl-c that meets the shell between two programs is the shell's.
        for last in ["true", "echo 'a\nb'"] {
            let command = format!("sh -c 'echo begun; exec sleep 1000'\ntouch ran\n{last}");
            let (ran, _) = tokio::join!(terms.run(&command), async {
                terms.expect("^begun$").await;
                terms.keys(&["ctrl-c"]).await
            });
            assert_eq!(ran["success"], false, "{shell}: {ran:#}");
            let on = terms.run("echo on").await;
            assert_eq!(on["output"], "on\n", "{shell}: {on:#}");
            assert!(!terms.home().join("ran").exists(), "{shell}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn lines_that_bash_repeats_are_not_taken_for_its_word_on_them() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("set -v").await;
    for (command, code) in [
        ("if ! false\nthen echo x\nfi", 0),
        ("[ ! -e /none ]\necho \"$?\n\"", 0),
        ("! true\nsh -c 'exit 3\n'", 3),
    ] {
        let ran = terms.run(command).await;
        assert_eq!(ran["status"], "finished", "{ran:#}");
        assert_eq!(ran["exit_code"], code, "{ran:#}");
        assert_eq!(ran["error"], serde_json::Value::Null, "{ran:#}");
    }
}

#[tokio::test]
async fn every_line_that_bash_repeats_is_output() {
    for edits in [
        "true",
        "set +o emacs",
        "bind 'set enable-bracketed-paste off'",
    ] {
        let terms = Terms::new();
        terms.open("bash").await;
        terms.run(edits).await;
        terms.run("set -v").await;
        for (command, said) in [
            (
                "for i in 1 2; do\n  echo l$i\ndone\necho e",
                "l1\nl2\necho e\ne\n",
            ),
            ("cat <<E\nx\n\ny\nE", "x\n\ny\n"),
            ("echo 'a\nb'", "a\nb\n"),
        ] {
            let ran = terms.run(command).await;
            let repeated = command.strip_suffix("\necho e").unwrap_or(command);
            let output = format!("{repeated}\n{said}");
            assert_eq!(
                outcome(&ran),
                ("finished", Some(0), &*output),
                "{edits}: {ran:#}"
            );
        }
    }
}

#[tokio::test]
async fn letters_that_the_locale_does_not_know_are_letters() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open_with(shell, json!({"LC_ALL": "C"})).await;
        for (command, output) in [
            ("echo 'é'", "é\n"),
            ("echo 'a\n日本 ö\n'", "a\n日本 ö\n\n"),
            ("printf '%s\\n' 'Über' ö", "Über\nö\n"),
        ] {
            let ran = terms.run(command).await;
            assert_eq!(ran["output"], output, "{shell}: {ran:#}");
        }
    }
}
