//! Shells are followed whatever is typed into them, and whatever is done to their hooks.

use std::time::Duration;

use flow_runtime::terminal::Place;
use serde_json::json;

use crate::support::{SHELLS, Terms, outcome};

#[tokio::test]
async fn a_syntax_error_is_a_command_that_failed_with_what_the_shell_says() {
    for (shell, code) in [("bash", 2), ("zsh", 1), ("dash", 2)] {
        let terms = Terms::new();
        terms.open(shell).await;
        let long = format!("echo {} )", "x".repeat(300));
        for command in ["echo )", ";;", "| x", "}", "for", &long] {
            if (shell, command) == ("zsh", "}") {
                continue;
            }
            terms.run("true").await;
            let ran = terms.run(command).await;
            let (status, exit, output) = outcome(&ran);
            assert_eq!((status, exit), ("finished", Some(code)), "{shell}: {ran:#}");
            let named = output.contains(&format!("{shell}: "));
            let whole = output.ends_with('\n') && output.lines().count() == 1;
            assert!(named && whole, "{shell}: {ran:#}");
            // The next command that says nothing is not taken for one that failed.
            let ran = terms.run("# nothing").await;
            if shell != "zsh" {
                assert_eq!(ran["status"], "no_command", "{shell}: {ran:#}");
            }
        }
        assert_eq!(
            outcome(&terms.run("echo ok").await),
            ("finished", Some(0), "ok\n")
        );
    }
}

#[tokio::test]
async fn a_syntax_error_among_several_lines_is_told_with_the_rest() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("echo )\necho two").await;
    let (status, code, output) = outcome(&ran);
    assert_eq!((status, code), ("finished", Some(0)), "{ran:#}");
    assert!(output.contains("unexpected token"), "{ran:#}");
    assert!(output.ends_with("\ntwo\n"), "{ran:#}");
    let ran = terms.run("echo one\necho )").await;
    let (status, code, output) = outcome(&ran);
    assert_eq!((status, code), ("finished", Some(2)), "{ran:#}");
    assert!(output.starts_with("one\n"), "{ran:#}");
    assert!(output.contains("unexpected token"), "{ran:#}");

    let terms = Terms::new();
    terms.open("zsh").await;
    let ran = terms.run("echo one\necho )").await;
    let (status, code, output) = outcome(&ran);
    assert_eq!((status, code), ("finished", Some(1)), "{ran:#}");
    assert!(output.ends_with("parse error near `)'\n"), "{ran:#}");
}

#[tokio::test]
async fn a_failed_history_expansion_is_told_and_leaves_the_prompt_free() {
    let terms = Terms::new();
    let session = terms.open("bash").await;
    for command in ["!!", "echo \"fix!this\""] {
        let ran = terms.run(command).await;
        let (status, code, output) = outcome(&ran);
        assert_eq!((status, code), ("refused", None), "{ran:#}");
        assert!(output.ends_with("event not found\n"), "{ran:#}");
        assert!(
            ran["error"].as_str().unwrap().contains("`set +H`"),
            "{ran:#}"
        );
        let ran = terms.run("echo ok").await;
        assert_eq!(outcome(&ran), ("finished", Some(0), "ok\n"), "{ran:#}");
    }
    let ran = terms.run("echo one\necho \"fix!this\"").await;
    let (status, code, output) = outcome(&ran);
    assert_eq!((status, code), ("finished", None), "{ran:#}");
    assert!(output.starts_with("one\n"), "{ran:#}");
    assert!(output.ends_with("event not found\n"), "{ran:#}");
    assert!(
        ran["error"]
            .as_str()
            .unwrap()
            .contains("the rest of the command"),
        "{ran:#}"
    );
    // Typed by hand it leaves the prompt free as well.
    terms.send("echo \"fix!this\"\n").await;
    let limit = Duration::from_secs(30);
    let place = terms.terminals.prompt(&session, limit).await.unwrap();
    assert_eq!(place, Place::Prompt);
    let ran = terms.run("echo ok").await;
    assert_eq!(outcome(&ran), ("finished", Some(0), "ok\n"), "{ran:#}");

    let terms = Terms::new();
    terms.open("zsh").await;
    let ran = terms.run("echo \"fix!this\"").await;
    let (status, code, output) = outcome(&ran);
    assert_eq!((status, code), ("finished", Some(1)), "{ran:#}");
    assert_eq!(output, "zsh: event not found: this\n", "{ran:#}");
}

#[tokio::test]
async fn a_command_that_shows_the_prompt_has_not_ended() {
    for (shell, shows) in [
        ("bash", r#"echo "${PS1@P}""#),
        ("bash", r#"echo "${PS2@P}""#),
        ("zsh", r#"echo "before $PS1 after""#),
        ("zsh", r#"echo "$PS2""#),
        ("zsh", r#"print -P "$PS1""#),
        ("fish", "fish_prompt"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        let command = format!("{shows}; sleep 0.2; echo tail; sh -c 'exit 3'");
        let ran = terms.run(&command).await;
        let (status, code, output) = outcome(&ran);
        assert_eq!(
            (status, code),
            ("finished", Some(3)),
            "{shell} {shows}: {ran:#}"
        );
        assert!(output.ends_with("tail\n"), "{shell} {shows}: {ran:#}");
        let ran = terms.run("echo next").await;
        assert_eq!(outcome(&ran), ("finished", Some(0), "next\n"), "{ran:#}");
    }
}

#[tokio::test]
async fn a_shell_without_its_hooks_is_at_its_prompt_with_an_unknown_code() {
    for (shell, losing) in [
        ("bash", "PROMPT_COMMAND=(); unset PROMPT_COMMAND"),
        ("bash", "unset PROMPT_COMMAND PS0"),
        ("zsh", "precmd_functions=()"),
        ("zsh", "precmd_functions=(); preexec_functions=()"),
    ] {
        let terms = Terms::new();
        let session = terms.open(shell).await;
        terms.run("export KEPT=old").await;
        let ran = terms.run(losing).await;
        assert_eq!(outcome(&ran), ("finished", None, ""), "{losing}: {ran:#}");
        let ran = terms.run("false").await;
        assert_eq!(outcome(&ran), ("finished", None, ""), "{losing}: {ran:#}");
        let ran = terms.run("echo out; export KEPT=new").await;
        assert_eq!(
            outcome(&ran),
            ("finished", None, "out\n"),
            "{losing}: {ran:#}"
        );
        // What it wrote down is older than that.
        let error = terms.terminals.environment(&session).unwrap_err();
        assert!(error.to_string().contains("was replaced"), "{error}");
    }
    // One that is put back at the next prompt is not missed.
    let terms = Terms::new();
    terms.open("zsh").await;
    terms.run("preexec_functions=()").await;
    let ran = terms.run("echo out").await;
    assert_eq!(outcome(&ran), ("finished", Some(0), "out\n"), "{ran:#}");
}

#[tokio::test]
async fn output_is_whole_when_the_terminal_does_not_show_what_is_typed() {
    for change in ["stty -echo", "stty -icanon", "stty raw", "stty raw -echo"] {
        let terms = Terms::new();
        terms.open("dash").await;
        let ran = terms.run(change).await;
        assert_eq!(
            outcome(&ran),
            ("finished", Some(0), ""),
            "{change}: {ran:#}"
        );
        for (command, output) in [
            ("seq 3", "1\n2\n3\n"),
            ("echo one", "one\n"),
            ("printf abc", "abc"),
            ("echo one\necho two", "one\ntwo\n"),
        ] {
            let ran = terms.run(command).await;
            assert_eq!(
                outcome(&ran),
                ("finished", Some(0), output),
                "{change}: {ran:#}"
            );
        }
    }
    let terms = Terms::new();
    terms.open("dash").await;
    let ran = terms.run("stty -echo\necho one\nstty echo\necho two").await;
    assert_eq!(
        outcome(&ran),
        ("finished", Some(0), "one\ntwo\n"),
        "{ran:#}"
    );
}

#[tokio::test]
async fn a_trace_shows_the_command_and_nothing_of_ours() {
    for shell in ["bash", "zsh", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let ran = terms.run("set -x").await;
        assert_eq!(outcome(&ran), ("finished", Some(0), ""), "{shell}: {ran:#}");
        let ran = terms.run("echo hi").await;
        let (status, code, output) = outcome(&ran);
        assert_eq!((status, code), ("finished", Some(0)), "{shell}: {ran:#}");
        let lines: Vec<_> = output.lines().collect();
        assert!(lines[0].ends_with("echo hi"), "{shell}: {ran:#}");
        assert_eq!(lines[1..], ["hi"], "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn marks_survive_other_messages_and_other_functions() {
    for (shell, change) in [
        ("bash", "exec 2>messages"),
        ("zsh", "exec 2>messages"),
        ("dash", "exec 2>messages"),
        ("dash", "printf() { echo fake; }"),
    ] {
        let terms = Terms::new();
        let session = terms.open(shell).await;
        let ran = terms.run(change).await;
        assert_eq!(outcome(&ran), ("finished", Some(0), ""), "{shell}: {ran:#}");
        let ran = terms.run("echo hi; sh -c 'exit 3'").await;
        assert_eq!(
            outcome(&ran),
            ("finished", Some(3), "hi\n"),
            "{shell} {change}: {ran:#}"
        );
        let ran = terms.run("echo ok").await;
        assert_eq!(
            outcome(&ran),
            ("finished", Some(0), "ok\n"),
            "{shell} {change}: {ran:#}"
        );
        assert!(terms.terminals.environment(&session).is_ok(), "{shell}");
    }
}

#[tokio::test]
async fn a_shell_is_followed_whatever_its_words_stand_for() {
    for (shell, file) in [("bash", ".bashrc"), ("zsh", ".zshrc")] {
        let terms = Terms::new();
        let words = [
            "local", "unset", "typeset", "printf", "eval", "shopt", "setopt", "emulate",
        ];
        let lines = words.map(|word| format!("alias {word}='echo {word} is not what it was'\n"));
        std::fs::write(terms.home().join(file), lines.concat()).unwrap();
        terms.open(shell).await;
        let ran = terms.run("printf x").await;
        let told = outcome(&ran);
        let expected = ("finished", Some(0), "printf is not what it was x\n");
        assert_eq!(told, expected, "{shell}: {ran:#}");
        let screen = terms.screen().await;
        let first = screen.lines().next().unwrap_or_default();
        assert!(!first.contains("not what it was"), "{shell}: {screen}");
    }
}

#[tokio::test]
async fn a_shell_that_cannot_be_followed_says_why_it_is_busy() {
    let terms = Terms::new();
    let fixed = "PS1='> '; readonly PS1; readonly PROMPT_COMMAND\n";
    std::fs::write(terms.home().join(".bashrc"), fixed).unwrap();
    terms.open("bash").await;
    let ran = terms.run("echo hi").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    let error = ran["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("no prompt by which it could be followed"),
        "{error}"
    );
}

#[tokio::test]
async fn bash_is_followed_as_a_posix_shell() {
    let terms = Terms::new();
    let file = terms.home().join("own");
    std::fs::write(&file, "own=read\n").unwrap();
    let variables = json!({"POSIXLY_CORRECT": "1", "ENV": file.to_str()});
    terms.open_with("bash", variables).await;
    let ran = terms.run("echo $own $ENV; shopt -o posix; (exit 3)").await;
    let output = format!("read {}\nposix          \ton\n", file.display());
    assert_eq!(outcome(&ran), ("finished", Some(3), &*output), "{ran:#}");
}

#[tokio::test]
async fn fish_tells_its_marks_by_itself() {
    let terms = Terms::new();
    terms.open("fish").await;
    // What fish writes with this function of its own is not what it was.
    terms.run("alias printf='echo no'").await;
    let ran = terms.run("echo hi; sh -c 'exit 3'").await;
    let (status, code, output) = outcome(&ran);
    assert_eq!((status, code), ("finished", Some(3)), "{ran:#}");
    assert!(output.ends_with("hi\n"), "{ran:#}");
    assert!(!output.contains("133;"), "{ran:#}");
}

#[tokio::test]
async fn what_a_shell_says_to_a_line_it_cannot_read_is_output_to_wait_for() {
    for (shell, error) in [("bash", "syntax error"), ("zsh", "parse error")] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.send("echo )\n").await;
        terms.expect(&format!("^{shell}: {error} .*$")).await;
        let content = json!({"content_mode": "since_input"});
        let content = terms.call("get_screen_content", content).await;
        let content = content["screen_content"].as_str().unwrap();
        assert!(content.starts_with(&format!("{shell}: ")), "{content}");
    }
}

#[tokio::test]
async fn a_posix_shell_that_has_lost_its_prompt_is_said_to() {
    let terms = Terms::new();
    terms.open("dash").await;
    let ran = terms.run("PS1='mine> '").await;
    let (status, code, _) = outcome(&ran);
    assert_eq!((status, code), ("finished", None), "{ran:#}");
    assert!(ran["error"].as_str().unwrap().contains("PS1"), "{ran:#}");
    let ran = terms.run("echo hi").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    assert!(ran["error"].as_str().unwrap().contains("PS1"), "{ran:#}");
}

#[tokio::test]
async fn an_unfinished_line_is_noticed_without_a_word_from_the_shell() {
    // dash shows no prompt for the rest of this.
    let terms = Terms::new();
    terms.open("dash").await;
    let ran = terms.run("echo ${").await;
    assert_eq!(ran["status"], "incomplete", "{ran:#}");
    // `read` wants a line, and is no unfinished one.
    let asks = json!({"command": "read -r line", "timeout": 0.7});
    let ran = terms.call("run_command", asks).await;
    assert_eq!(ran["status"], "timed_out", "{ran:#}");
    terms.send("a line\n").await;
    let ran = terms.run("echo $line").await;
    assert_eq!(outcome(&ran), ("finished", Some(0), "a line\n"), "{ran:#}");

    // fish does not count this as unfinished.
    let terms = Terms::new();
    terms.open("fish").await;
    assert_eq!(terms.run("echo a\\").await["status"], "incomplete");
    assert_eq!(terms.run("echo a\\\\").await["output"], "a\\\n");
    assert_eq!(terms.run("echo )").await["status"], "refused");

    // One that ignores interrupts keeps it.
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("trap '' INT").await;
    let ran = terms.run("echo 'a").await;
    assert_eq!(ran["status"], "incomplete", "{ran:#}");
    assert!(
        ran["error"].as_str().unwrap().contains("ignores ctrl-c"),
        "{ran:#}"
    );
    terms.send("b'\n").await;
    terms.expect("^a\nb$").await;
    assert_eq!(terms.run("echo ok").await["output"], "ok\n");
}

#[tokio::test]
async fn traps_and_options_show_nothing_of_our_hooks() {
    for (shell, change) in [
        ("bash", "trap 'echo \"[$BASH_COMMAND]\"' DEBUG"),
        ("bash", "set -v"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(change).await;
        let ran = terms.run("true").await;
        let output = ran["output"].as_str().unwrap();
        assert!(!output.contains("flow"), "{change}: {ran:#}");
        assert!(output.lines().count() <= 1, "{change}: {ran:#}");
        assert_eq!(ran["exit_code"], 0, "{change}: {ran:#}");
    }
}

#[tokio::test]
async fn a_signal_that_ends_the_shell_is_named() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let own = if shell == "fish" { "$fish_pid" } else { "$$" };
        let ran = terms.run(&format!("kill -KILL {own}")).await;
        assert_eq!(ran["status"], "shell_exited", "{shell}: {ran:#}");
        let said = ran["error"].as_str().unwrap();
        assert!(said.ends_with("by the signal SIGKILL"), "{shell}: {ran:#}");
    }
}

#[tokio::test]
async fn a_directory_that_was_removed_is_told_by_its_path() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("mkdir gone && cd gone && rmdir ../gone").await;
    let gone = terms.home().canonicalize().unwrap().join("gone");
    assert_eq!(ran["working_directory"], gone.to_str().unwrap(), "{ran:#}");
}

#[tokio::test]
async fn fish_is_followed_whatever_becomes_of_its_prompt() {
    let terms = Terms::new();
    terms.open("fish").await;
    for (change, prompt) in [
        ("function fish_prompt; echo -n 'one> '; end", "one> "),
        // As environments of Python do it.
        (
            "functions -c fish_prompt old; function fish_prompt; echo -n '(env) '; old; end",
            "(env) one> ",
        ),
        (
            "functions -e fish_prompt; functions -c old fish_prompt",
            "one> ",
        ),
        ("functions -e fish_prompt", "> "),
    ] {
        let changed = terms.run(change).await;
        assert_eq!(changed["exit_code"], 0, "{change}: {changed:#}");
        let ran = terms.run("sh -c 'echo hi; exit 3'").await;
        assert_eq!(
            outcome(&ran),
            ("finished", Some(3), "hi\n"),
            "{change}: {ran:#}"
        );
        let screen = terms.screen().await;
        let last = screen
            .trim_end_matches('\n')
            .lines()
            .last()
            .unwrap_or_default();
        assert!(
            prompt.starts_with(last.trim_end()) && !last.is_empty(),
            "{change}: {screen}"
        );
    }
}

#[tokio::test]
async fn what_fish_suggests_is_not_shown_as_a_part_of_the_command() {
    let terms = Terms::new();
    terms.open("fish").await;
    for round in 0..5 {
        terms.run("echo hello there").await;
        let ran = terms.run("echo hello").await;
        assert_eq!(outcome(&ran), ("finished", Some(0), "hello\n"), "{ran:#}");
        let screen = terms.screen().await;
        let shown = screen
            .lines()
            .filter(|line| line.ends_with("echo hello there"));
        assert_eq!(shown.count(), round + 1, "{screen}");
    }
}

#[tokio::test]
async fn several_lines_run_whole_when_messages_go_elsewhere() {
    let terms = Terms::new();
    terms.open("bash").await;
    terms.run("exec 2>/dev/null").await;
    for (command, output) in [
        ("for i in 1 2\ndo echo $i\ndone", "1\n2\n"),
        ("cat <<E\nx\nE", "x\n"),
        ("echo a \\\nb", "a b\n"),
        ("f() {\necho f\n}\nf", "f\n"),
    ] {
        let ran = terms.run(command).await;
        let told = (&ran["status"], &ran["output"], &ran["exit_code"]);
        assert_eq!(
            told,
            (&json!("finished"), &json!(output), &json!(0)),
            "{ran:#}"
        );
    }
    terms.send("echo sent\n").await;
    terms.expect("^sent$").await;
}

#[tokio::test]
async fn what_dash_asks_for_more_with_is_no_output_where_nothing_is_echoed() {
    let terms = Terms::new();
    terms.open("dash").await;
    terms.run("stty -echo").await;
    for (command, output) in [
        ("for i in 1 2\ndo echo x$i\ndone", "x1\nx2\n"),
        ("cat <<E\nhi\nE", "hi\n"),
    ] {
        let ran = terms.run(command).await;
        assert_eq!(ran["output"], output, "{ran:#}");
    }
    terms.run("stty echo").await;
    let ran = terms.run("for i in 1 2\ndo echo x$i\ndone").await;
    assert_eq!(ran["output"], "x1\nx2\n", "{ran:#}");
}

#[tokio::test]
async fn an_interrupt_leads_to_a_prompt_that_nothing_shows() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run("exec 2>messages").await;
        for typed in ["", "half", "sleep 1000\n", "cat\n", "true\n"] {
            if !typed.is_empty() {
                terms.send(typed).await;
            }
            terms.keys(&["ctrl-c"]).await;
            let ran = terms.run("echo back").await;
            assert_eq!(
                outcome(&ran),
                ("finished", Some(0), "back\n"),
                "{shell} behind {typed:?}: {ran:#}"
            );
        }
    }
}

#[tokio::test]
async fn options_and_hooks_that_people_have_in_zsh_change_nothing() {
    for startup in [
        "setopt nounset",
        "setopt local_options",
        "setopt warn_create_global",
        "setopt ksh_arrays",
        "setopt sh_word_split",
        "setopt transient_rprompt; RPROMPT='%T'",
        "zle-line-finish() { zle reset-prompt }; zle -N zle-line-finish",
        "zle-line-init() { zle reset-prompt }; zle -N zle-line-init",
        "zle-line-finish() { PROMPT='> '; zle reset-prompt }; zle -N zle-line-finish
precmd_functions+=(shown); shown() { PROMPT='%~ %# ' }",
        "zle-keymap-select() { zle reset-prompt }; zle -N zle-keymap-select; bindkey -v",
        "accept() { BUFFER=${BUFFER%% }; zle reset-prompt; zle .accept-line }; zle -N accept-line accept",
        "setopt prompt_subst; PROMPT='%F{green}head%f\n$(echo sub) %# '",
    ] {
        let terms = Terms::new();
        std::fs::write(terms.home().join(".zshrc"), format!("{startup}\n")).unwrap();
        terms.open("zsh").await;
        for (command, code, output) in [
            ("printf part", 0, "part"),
            ("sh -c 'echo whole; exit 3'", 3, "whole\n"),
            ("echo one\necho two", 0, "one\ntwo\n"),
        ] {
            let ran = terms.run(command).await;
            assert_eq!(
                outcome(&ran),
                ("finished", Some(code), output),
                "{startup}: {ran:#}"
            );
        }
        terms.send("echo aw''aited\n").await;
        assert_eq!(terms.expect("^aw.*$").await, "awaited", "{startup}");
        terms.send("for i in 1\ndo\n echo se''veral\ndone\n").await;
        assert_eq!(terms.expect("^.*se.*$").await, "several", "{startup}");
        terms.send("half").await;
        assert_eq!(terms.run("true").await["status"], "refused", "{startup}");
        terms.keys(&["ctrl-c"]).await;
        assert_eq!(terms.run("echo on").await["output"], "on\n", "{startup}");
    }
}

#[tokio::test]
async fn a_shell_that_cannot_be_marked_runs_nothing_and_says_why() {
    for startup in ["readonly PS0", "readonly PS2='> '", "readonly PS1"] {
        let terms = Terms::new();
        std::fs::write(terms.home().join(".bashrc"), format!("{startup}\n")).unwrap();
        terms.open("bash").await;
        let ran = terms.run("touch ran").await;
        assert_eq!(ran["status"], "busy", "{startup}: {ran:#}");
        let error = ran["error"].as_str().unwrap();
        assert!(error.contains("read-only"), "{startup}: {error}");
        assert!(!terms.home().join("ran").exists(), "{startup}");
    }
}

#[tokio::test]
async fn what_bash_cannot_read_without_a_word_of_its_hooks_is_no_command_of_its_history() {
    let terms = Terms::new();
    terms.open("bash").await;
    let ran = terms.run("[[ a").await;
    assert_eq!(
        (&ran["status"], &ran["exit_code"]),
        (&json!("finished"), &json!(null)),
        "{ran:#}"
    );
    let error = ran["error"].as_str().unwrap();
    assert!(error.contains("could not read"), "{error}");
}

#[tokio::test]
async fn a_line_that_bash_leaves_out_is_not_left_out_of_a_command() {
    let terms = Terms::new();
    terms.open("bash").await;
    for command in [
        "for i in 1 2\ndo\ntouch ran\necho b !zzz\ntouch ran\ndone",
        "touch 'ran\n' \"x\n!zzz\ny\" ran",
    ] {
        let ran = terms.run(command).await;
        assert_eq!(ran["status"], "refused", "{command:?}: {ran:#}");
        let output = ran["output"].as_str().unwrap();
        assert!(output.contains("event not found"), "{command:?}: {ran:#}");
        assert!(!terms.home().join("ran").exists(), "{command:?}");
        assert_eq!(terms.run("echo on").await["output"], "on\n");
    }
    // Text before the next line is no word of the shell's.
    let ran = terms
        .run("for i in 1 2\ndo\necho a!\necho \"b! $i\"\ndone")
        .await;
    assert_eq!(ran["output"], "a!\nb! 1\na!\nb! 2\n", "{ran:#}");
}

#[tokio::test]
async fn a_ctrl_c_right_behind_a_short_command_leaves_its_answer_as_it_is() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        for round in 0..40 {
            let (ran, _) = tokio::join!(terms.run("sh -c 'exit 7'"), async {
                for _ in 0..round * 40 {
                    tokio::task::yield_now().await;
                }
                terms.keys(&["ctrl-c"]).await
            });
            let told = format!("{shell} {round}: {ran:#}");
            match ran["status"].as_str().unwrap() {
                "finished" => {
                    let code = ran["exit_code"].as_i64();
                    assert!([Some(7), Some(130), Some(2)].contains(&code), "{told}");
                }
                status => assert_eq!(status, "refused", "{told}"),
            }
            let ran = terms.run("echo on").await;
            assert_eq!(ran["exit_code"], 0, "{shell} {round}: {ran:#}");
            assert_eq!(ran["output"], "on\n", "{shell} {round}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_read_that_fish_comes_to_by_a_ctrl_c_is_no_prompt() {
    let terms = Terms::new();
    terms.open("fish").await;
    terms
        .send("read -P 'one? ' x; read -P 'two? ' y; echo \"($y)\"\n")
        .await;
    terms.expect_screen("one\\?").await;
    terms.keys(&["ctrl-c"]).await;
    terms.expect_screen("two\\?").await;
    let ran = terms.run("echo hi; touch ran").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    terms.send("answer\n").await;
    terms.expect("\\(answer\\)").await;
    let ran = terms.run("echo on").await;
    assert_eq!(outcome(&ran), ("finished", Some(0), "on\n"), "{ran:#}");
}

#[tokio::test]
async fn a_shell_without_its_hooks_is_followed_behind_a_ctrl_c_and_between_answers() {
    for (shell, unhook) in [
        ("bash", "unset PROMPT_COMMAND"),
        ("zsh", "precmd_functions=()"),
    ] {
        let terms = Terms::new();
        terms.open(shell).await;
        terms.run(unhook).await;
        let (ran, _) = tokio::join!(terms.run("sh -c 'echo begun; exec sleep 1000'"), async {
            terms.expect("^begun$").await;
            terms.keys(&["ctrl-c"]).await
        });
        assert_eq!(ran["status"], "finished", "{shell}: {ran:#}");
        assert!(
            !ran["output"].as_str().unwrap().contains("133;"),
            "{shell}: {ran:#}"
        );
        let (ran, ..) = tokio::join!(
            terms.run("stty -echo\nread a\nread b\necho \"$a\n$b\"; stty echo"),
            terms.send("touch one\n"),
            terms.send("touch two\n"),
        );
        let output = ran["output"].as_str().unwrap();
        assert!(
            output.ends_with("touch one\ntouch two\n"),
            "{shell}: {ran:#}"
        );
        assert_eq!(terms.run("ls").await["output"], "", "{shell}");
    }
}

#[tokio::test]
async fn dash_is_followed_when_a_program_leaves_it_a_terminal_in_another_mode() {
    let terms = Terms::new();
    terms.open("dash").await;
    let program = "python3 -uc 'import tty,os; tty.setcbreak(0); print(\"begun\"); os.read(0,1)'\n";
    terms.send(program).await;
    terms.expect("^begun$").await;
    terms.keys(&["ctrl-c"]).await;
    let ran = terms.run("echo on").await;
    assert_eq!(outcome(&ran), ("finished", Some(0), "on\n"), "{ran:#}");
}

#[tokio::test]
async fn what_plugins_make_of_keys_and_pastes_is_no_part_of_a_command() {
    let quotes = "autoload -Uz url-quote-magic bracketed-paste-magic
zle -N self-insert url-quote-magic
zle -N bracketed-paste bracketed-paste-magic
";
    let pairs = "pair() { LBUFFER+=$KEYS; RBUFFER=\"${${KEYS/\\(/)}/\\[/]}$RBUFFER\" }
zle -N pair
bindkey '(' pair
bindkey '[' pair
";
    let fish = "function fish_user_key_bindings
bind '(' \"commandline -i '()'; commandline -f backward-char\"
end
";
    for (shell, file, startup, commands) in [
        (
            "zsh",
            ".zshrc",
            quotes,
            [
                "u=http://a.b/c; [[ $u == http://* ]] && echo http://a|tr a-z A-Z",
                "u=http://a.b/c\ncase $u in http://*) echo HTTP://A;; esac",
            ],
        ),
        (
            "zsh",
            ".zshrc",
            pairs,
            ["[[ abc =~ ^a ]] && echo HTTP://A", "(\necho HTTP://A\n)"],
        ),
        (
            "zsh",
            ".zshrc",
            "emulate sh\ntypeset -r IFS\n",
            ["(exit 3) || echo HTTP://A", "echo HTTP://A\n:"],
        ),
        (
            "fish",
            ".config/fish/config.fish",
            "abbr -a --position anywhere HTTP://A no\n",
            ["echo HTTP://A", "true\necho HTTP://A"],
        ),
        (
            "fish",
            ".config/fish/config.fish",
            fish,
            [
                "echo (string upper http://a)",
                "if true\necho (string upper http://a)\nend",
            ],
        ),
    ] {
        let terms = Terms::new();
        let path = terms.home().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, startup).unwrap();
        let config = json!({"XDG_CONFIG_HOME": terms.home().join(".config")});
        terms.open_with(shell, config).await;
        for command in commands {
            let ran = terms.run(command).await;
            let told = outcome(&ran);
            let expected = ("finished", Some(0), "HTTP://A\n");
            assert_eq!(told, expected, "{shell}: {command:?}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_command_of_several_lines_that_nobody_waits_for_any_more_is_given_up() {
    for shell in ["bash", "zsh", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let file = terms.home().join("file");
        let lines: String = (0..400).map(|line| format!("line {line}\n")).collect();
        let command = format!("cat > {} <<EOF\n{lines}EOF", file.display());
        for cut in [3, 40, 200] {
            let begun = async {
                // The terminal has shown that much of it.
                let pattern = format!("line {cut}$");
                let screen = json!({"pattern": pattern, "target": "screen", "timeout": 30});
                terms.call("await_output", screen).await
            };
            tokio::select! {
                ran = terms.run(&command) => assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}"),
                _ = begun => {}
            }
            let ran = terms.run("echo on; (exit 3)").await;
            let expected = ("finished", Some(3), "on\n");
            assert_eq!(outcome(&ran), expected, "{shell}, {cut}: {ran:#}");
            let ran = terms.run(&command).await;
            assert_eq!(outcome(&ran), ("finished", Some(0), ""), "{shell}: {ran:#}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), lines, "{shell}");
            terms.run("clear").await;
        }
    }
}

#[tokio::test]
async fn hooks_that_write_the_history_of_bash_do_not_fail() {
    let terms = Terms::new();
    let hooks = "PS1='$ '; PROMPT_COMMAND='history -a; history -n'\n";
    std::fs::write(terms.home().join(".bashrc"), hooks).unwrap();
    terms.open("bash").await;
    for command in ["set -e", "true", "echo on"] {
        let ran = terms.run(command).await;
        assert_eq!(ran["exit_code"], 0, "{command}: {ran:#}");
    }
    assert_eq!(terms.run("false").await["status"], "shell_exited");
    assert!(!terms.home().join(".bash_history").exists());
}

#[tokio::test]
async fn a_shell_that_its_startup_file_replaces_is_named() {
    let terms = Terms::new();
    std::fs::write(terms.home().join(".bashrc"), "exec dash\n").unwrap();
    terms.open("bash").await;
    let ran = terms.run("echo hi").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    let error = ran["error"].as_str().unwrap_or_default();
    assert!(error.contains("replaced by `dash`"), "{error}");
}
