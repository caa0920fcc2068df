//! What is typed while a command of several lines is run.

use serde_json::json;

use crate::support::{READS_A_KEY, SHELLS, Terms, outcome};

/// Shells that are given the lines of a command with quotes over several lines one by one, and one that
/// takes them as a whole.
const LINES: [&str; 3] = ["bash", "dash", "zsh"];

#[tokio::test]
async fn answers_typed_ahead_reach_the_programs_of_a_command_and_never_its_shell() {
    for shell in LINES {
        for ask in ["read a", "sh -c 'read a; echo $a >first'\na=$(cat first)"] {
            let terms = Terms::new();
            terms.open(shell).await;
            let command = format!(
                "stty -echo; echo begun; cat gate\n{ask}\necho \"got\n$a\"\nread b\necho \"and\n$b\"; stty echo"
            );
            let made = terms.run("mkfifo gate").await;
            assert_eq!(made["exit_code"], 0, "{shell}: {made:#}");
            let gate = terms.home().join("gate");
            let (ran, sent, ()) = tokio::join!(
                terms.run(&command),
                async {
                    terms.expect("^begun$").await;
                    terms.send("touch one\ntouch two\n").await
                },
                async {
                    let open = move || std::fs::write(gate, "");
                    tokio::task::spawn_blocking(open).await.unwrap().unwrap();
                }
            );
            let expected = "begun\ngot\ntouch one\nand\ntouch two\n";
            assert_eq!(
                outcome(&ran),
                ("finished", Some(0), expected),
                "{shell}: {ran:#}"
            );
            assert_eq!(sent["message"], "typed 20 bytes", "{shell}: {sent:#}");
            assert!(!terms.home().join("one").exists(), "{shell}: {ran:#}");
            let on = terms.run("echo on").await;
            assert_eq!(
                outcome(&on),
                ("finished", Some(0), "on\n"),
                "{shell}: {on:#}"
            );
        }
    }
}

#[tokio::test]
async fn input_that_no_program_of_a_command_has_read_is_not_given_to_the_shell() {
    for shell in ["bash", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let command = "sh -c 'echo begun; exec sleep 1000'\ntouch ran\necho 'a\nb'";
        let (ran, sent) = tokio::join!(terms.run(command), async {
            terms.expect("^begun$").await;
            let input = json!({"input_text": "touch typed\n"});
            let mut sending = std::pin::pin!(terms.call("send_input", input));
            tokio::select! {
                biased;
                sent = &mut sending => panic!("{shell}: {sent:#}"),
                () = std::future::ready(()) => {}
            }
            terms.keys(&["ctrl-c"]).await;
            sending.await
        });
        assert_eq!(ran["success"], false, "{shell}: {ran:#}");
        assert_eq!(sent["success"], false, "{shell}: {sent:#}");
        assert_eq!(sent["message"], "nothing was typed", "{shell}: {sent:#}");
        let on = terms.run("echo on").await;
        assert_eq!(on["output"], "on\n", "{shell}: {on:#}");
        for file in ["ran", "typed"] {
            assert!(!terms.home().join(file).exists(), "{shell} {file}: {ran:#}");
        }
    }
}

#[tokio::test]
async fn a_line_that_a_program_leaves_to_the_shell_ends_the_command() {
    for shell in ["bash", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        let command = "echo begun; dd bs=1 count=1 >read 2>messages\necho 'a\nb'";
        let (ran, _) = tokio::join!(terms.run(command), async {
            terms.expect("^begun$").await;
            terms.send("y: left\n").await
        });
        assert_eq!(ran["status"], "finished", "{shell}: {ran:#}");
        assert_eq!(ran["exit_code"], json!(null), "{shell}: {ran:#}");
        let on = terms.run("echo on").await;
        assert_eq!(
            outcome(&on),
            ("finished", Some(0), "on\n"),
            "{shell}: {on:#}"
        );
    }
}

#[tokio::test]
async fn programs_of_every_kind_get_their_input_in_the_middle_of_a_command() {
    for shell in ["bash", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        // Who reads lines until their end.
        let command = "echo begun; cat >read\necho 'a\nb'";
        let (ran, _) = tokio::join!(terms.run(command), async {
            terms.expect("^begun$").await;
            let input = json!({"input_text": "one\ntwo\n", "keys": ["ctrl-d"]});
            terms.call("send_input", input).await
        });
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let read = std::fs::read_to_string(terms.home().join("read")).unwrap();
        assert_eq!(read, "one\ntwo\n", "{shell}: {ran:#}");
        // Who edits lines.
        let command = "python3 -q\necho 'a\nb'";
        let (ran, _) = tokio::join!(terms.run(command), async {
            terms.expect(">>> ").await;
            terms.send("print(6*7)\nexit(3)\n").await
        });
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let output = ran["output"].as_str().unwrap();
        assert!(output.contains("42\n"), "{shell}: {ran:#}");
        assert!(output.ends_with("a\nb\n"), "{shell}: {ran:#}");
        // Who reads keys and waits for more than those.
        let command = "vim -u NONE -N --cmd 'set autoindent' text\necho 'a\nb'";
        let (ran, _) = tokio::join!(terms.run(command), async {
            terms.expect_screen("~").await;
            terms.keys(&["i"]).await;
            terms.expect_screen("INSERT").await;
            terms.send("  one\n  two\nthree").await;
            terms.expect_screen("three").await;
            terms.keys(&["escape"]).await;
            let sent = terms.call(
                "send_input",
                json!({"input_text": ":wq", "keys": ["enter"]}),
            );
            sent.await
        });
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let text = std::fs::read_to_string(terms.home().join("text")).unwrap();
        assert_eq!(text, "  one\n  two\nthree\n", "{shell}");
        // Who outlives a ctrl-c, and is gone on with.
        let (ran, _) = tokio::join!(terms.run("python3 -q\ntouch ran\ntrue"), async {
            terms.expect(">>> ").await;
            terms.keys(&["ctrl-c"]).await;
            terms.expect("KeyboardInterrupt").await;
            terms.send("exit()\n").await
        });
        assert_eq!(ran["success"], false, "{shell}: {ran:#}");
        assert!(!terms.home().join("ran").exists(), "{shell}: {ran:#}");
        // Who is gone before the line has an end.
        let command =
            "sh -c 'trap \"exit 0\" USR1; echo $$ >pid; echo begun; read half'\necho 'a\nb'";
        let (ran, ()) = tokio::join!(terms.run(command), async {
            terms.expect("^begun$").await;
            terms.send("touch half").await;
            let pid = std::fs::read_to_string(terms.home().join("pid")).unwrap();
            let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
        });
        assert_eq!(ran["exit_code"], 0, "{shell}: {ran:#}");
        let output = ran["output"].as_str().unwrap();
        assert!(output.ends_with("a\nb\n"), "{shell}: {ran:#}");
        let on = terms.run("echo on").await;
        assert_eq!(on["output"], "on\n", "{shell}: {on:#}");
    }
}

#[tokio::test]
async fn a_program_that_reads_a_key_gets_one_and_leaves_none_to_the_shell() {
    for shell in ["bash", "dash"] {
        let terms = Terms::new();
        terms.open(shell).await;
        std::fs::write(terms.home().join("key.py"), READS_A_KEY).unwrap();
        let command = "python3 -u key.py\necho \"q\n$?\"\nsh -c 'exit 7'";
        let (ran, sent) = tokio::join!(terms.run(command), async {
            terms.expect("^begun$").await;
            terms.call("send_input", json!({"input_text": "yes"})).await
        });
        let expected = ("finished", Some(7), "begun\nb'y'\nq\n0\n");
        assert_eq!(outcome(&ran), expected, "{shell}: {ran:#} {sent:#}");
        assert_eq!(
            sent["message"], "typed only the first 1 byte",
            "{shell}: {sent:#}"
        );
        let on = terms.run("echo on").await;
        assert_eq!(on["output"], "on\n", "{shell}: {on:#}");
    }
}

#[tokio::test]
async fn a_command_whose_time_is_up_goes_on_with_all_its_lines_in_every_shell() {
    for shell in SHELLS {
        let terms = Terms::new();
        terms.open(shell).await;
        let command = "cat >/dev/null\necho sec''ond\necho end >log";
        let asked = json!({"command": command, "timeout": 0.5});
        let ran = terms.call("run_command", asked).await;
        assert_eq!(ran["status"], "timed_out", "{shell}: {ran:#}");
        let ran = terms.run("echo other").await;
        assert_eq!(ran["status"], "busy", "{shell}: {ran:#}");
        terms.keys(&["ctrl-d"]).await;
        assert_eq!(terms.expect("^second$").await, "second", "{shell}");
        let ran = terms.run("cat log").await;
        assert_eq!(ran["output"], "end\n", "{shell}: {ran:#}");
    }
}
