//! Opening, listing, closing, and what the policy says.

use std::path::PathBuf;
use std::time::Duration;

use flow_runtime::terminal::{CallError, Options, Policy};
use serde_json::{Value, json};

use crate::support::Terms;

async fn refused(terms: &Terms, parameters: Value) -> String {
    let opened = terms.call("open_terminal", parameters).await;
    assert_eq!(opened["success"], false, "{opened:#}");
    assert_eq!(opened["session_id"], json!(null));
    opened["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn directory_and_environment_are_really_applied() {
    let terms = Terms::new();
    terms
        .open_with("bash", json!({"NUMBER": 5, "FLAG": true, "TEXT": "a b"}))
        .await;
    let ran = terms
        .run("pwd -P; echo $NUMBER $FLAG \"$TEXT\" $TERM")
        .await;
    let home = terms.home().canonicalize().unwrap();
    assert_eq!(
        ran["output"],
        format!("{}\n5 true a b xterm-256color\n", home.display())
    );
}

#[tokio::test]
async fn what_cannot_be_opened_is_an_error_before_anything_starts() {
    let terms = Terms::new();
    let script = terms.home().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let error = refused(&terms, json!({"shell": "no-such-program"})).await;
    assert!(error.contains("`no-such-program`"), "{error}");
    let error = refused(&terms, json!({"shell": script})).await;
    assert!(
        error.contains("`/no/such/interpreter` does not exist"),
        "{error}"
    );
    let error = refused(&terms, json!({"working_directory": "/no/such/place"})).await;
    assert!(error.contains("/no/such/place"), "{error}");
    let error = refused(&terms, json!({"working_directory": "/etc/passwd"})).await;
    assert!(error.contains("not a directory"), "{error}");
    let error = refused(&terms, json!({"working_directory": ""})).await;
    assert!(error.contains("leave `working_directory` out"), "{error}");
    let error = refused(&terms, json!({"working_directory": "~/x"})).await;
    assert!(error.contains("write out the home directory"), "{error}");
    for name in ["A=B", "A B", "A\tB", "A\0B", ""] {
        let error = refused(&terms, json!({"environment": {name: "x"}})).await;
        assert!(error.contains(&format!("`{name}` cannot be")), "{error}");
    }
    let error = refused(&terms, json!({"shell": "bash -l"})).await;
    assert!(error.contains("to give `bash` arguments"), "{error}");
    assert!(terms.terminals.sessions().is_empty());
}

#[tokio::test]
async fn whoever_does_not_wait_for_an_opening_leaves_no_session() {
    let terms = Terms::new();
    let [pid, gate] = ["pid", "gate"].map(|name| {
        let pipe = terms.home().join(name);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        pipe.display().to_string()
    });
    let startup = format!("echo $$ >'{pid}'; read word <'{gate}'\n");
    std::fs::write(terms.home().join(".bashrc"), startup).unwrap();
    let begun = tokio::task::spawn_blocking(move || std::fs::read_to_string(pid).unwrap());
    let begun = tokio::select! {
        id = terms.open("bash") => panic!("{id} is open"),
        begun = begun => begun.unwrap(),
    };
    assert!(terms.terminals.sessions().is_empty());
    // With those that are on their way out.
    terms.terminals.close_all().await;
    let process = PathBuf::from(format!("/proc/{}", begun.trim()));
    assert!(!process.exists(), "{begun}");
}

#[tokio::test]
async fn any_program_can_be_opened() {
    let terms = Terms::new();
    let opened = terms.call("open_terminal", json!({"shell": "gdb"})).await;
    assert!(
        opened["screen_content"].as_str().unwrap().contains("(gdb)"),
        "{opened:#}"
    );
    terms.send("print 6 * 7\n").await;
    terms.expect(r"\$1 = 42").await;
    let ran = terms.run("echo hi").await;
    assert_eq!(ran["status"], "busy", "{ran:#}");
    assert!(
        ran["error"].as_str().unwrap().starts_with("busy: gdb"),
        "{ran:#}"
    );
}

#[tokio::test]
async fn sessions_are_listed_in_order_and_the_last_is_meant_when_none_is_named() {
    let terms = Terms::new();
    let first = terms.open("bash").await;
    let second = terms.open("cat").await;
    let list = terms.call("list_terminal_sessions", json!({})).await;
    assert_eq!(list["total_sessions"], 2);
    assert_eq!(list["sessions"][0]["session_id"], first);
    assert_eq!(list["sessions"][0]["foreground"], "bash");
    assert_eq!(list["sessions"][1]["session_id"], second);
    assert_eq!(list["sessions"][1]["process_running"], true);
    terms.send("meant for cat\n").await;
    terms.expect("meant for cat").await;
    let closed = terms.call("exit_terminal", json!({})).await;
    assert_eq!(closed["session_id"], second, "{closed:#}");
    assert_eq!(closed["success"], true);
    assert_eq!(terms.run("echo bash").await["output"], "bash\n");
    terms.send("exit 9\n").await;
    terms.expect(r"exit").await;
    let again = terms
        .call("exit_terminal", json!({"session_id": first}))
        .await;
    assert_eq!(again["success"], true);
    let none = terms.call("exit_terminal", json!({})).await;
    assert_eq!(none["success"], false);
    assert!(
        none["error"].as_str().unwrap().contains("open_terminal"),
        "{none:#}"
    );
    let gone = terms
        .call("run_command", json!({"session_id": first, "command": "x"}))
        .await;
    assert!(gone["error"].as_str().unwrap().contains(&first), "{gone:#}");
}

#[tokio::test]
async fn a_shell_whose_startup_file_asks_is_open_when_it_does() {
    for (file, answer, shown) in [
        ("read -p 'Which? ' which\n", "this\n", "Which?"),
        (
            "exec python3 -i -q -c 'print(\"in\", \"stead\")'\n",
            "exit()\n",
            "in stead",
        ),
    ] {
        let terms = Terms::new();
        std::fs::write(terms.home().join(".bashrc"), file).unwrap();
        // A prompt would be waited for twice as long.
        let opened = tokio::time::timeout(Duration::from_secs(5), terms.open("bash"));
        assert!(opened.await.is_ok(), "{file}");
        let screen = terms.screen().await;
        assert!(screen.contains(shown), "{screen}");
        terms.send(answer).await;
    }
}

#[tokio::test]
async fn the_number_of_sessions_is_limited() {
    let terms = Terms::with(Options {
        max_sessions: 2,
        ..Options::default()
    });
    terms.open("cat").await;
    terms.open("cat").await;
    let error = refused(&terms, json!({"shell": "cat"})).await;
    assert!(error.contains("limit"), "{error}");
    terms.call("exit_terminal", json!({})).await;
    terms.open("cat").await;
}

#[tokio::test]
async fn the_policy_bounds_programs_and_directories() {
    let inside = tempfile::tempdir().unwrap();
    let policy = Policy {
        programs: Some(vec!["cat".to_owned(), "/bin/sh".to_owned()]),
        directories: Some(vec![inside.path().to_owned()]),
    };
    let terms = Terms::with(Options {
        policies: vec![Policy::default(), policy],
        ..Options::default()
    });
    let home: PathBuf = inside.path().canonicalize().unwrap();
    let error = refused(&terms, json!({"shell": "bash", "working_directory": home})).await;
    assert!(error.contains("`bash`") && error.contains("cat"), "{error}");
    let error = refused(&terms, json!({"shell": "cat", "working_directory": "/"})).await;
    assert!(error.contains("start in /"), "{error}");
    // A link that leads out of the allowed directory is followed before it is judged.
    std::os::unix::fs::symlink("/", home.join("out")).unwrap();
    let error = refused(
        &terms,
        json!({"shell": "cat", "working_directory": home.join("out")}),
    )
    .await;
    assert!(error.contains("start in /"), "{error}");
    // A program of an allowed name elsewhere is another program.
    std::fs::copy("/bin/ls", home.join("cat")).unwrap();
    let error = refused(&terms, json!({"shell": "./cat", "working_directory": home})).await;
    assert!(error.contains("does not let"), "{error}");
    for shell in ["cat", "/bin/sh"] {
        let opened = terms
            .call(
                "open_terminal",
                json!({"shell": shell, "working_directory": home}),
            )
            .await;
        assert_eq!(opened["success"], true, "{opened:#}");
    }
}

#[tokio::test]
async fn every_input_is_logged_privately_and_passwords_are_not() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("audit.jsonl");
    let terms = Terms::with(Options {
        audit: Some(log.clone()),
        ..Options::default()
    });
    let session = terms.open("bash").await;
    terms.run("echo hi").await;
    terms
        .send("stty -echo; printf 'Password: '; read x; stty echo\n")
        .await;
    terms.expect("Password: $").await;
    terms.send("hunter2\n").await;
    terms.expect(r"\$ ").await;
    terms.keys(&["ctrl-l"]).await;
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("hunter2"));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["tool"], "run_command");
    assert_eq!(lines[0]["input"], "echo hi");
    assert_eq!(lines[0]["session_id"], session);
    assert_eq!(lines[2]["hidden_bytes"], 8);
    assert_eq!(lines[3]["input"], "<ctrl-l>");
    assert_eq!(
        std::fs::metadata(&log).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn what_a_program_shows_itself_is_logged_by_its_length_until_it_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("audit.jsonl");
    let terms = Terms::with(Options {
        audit: Some(log.clone()),
        ..Options::default()
    });
    let lines = || -> Vec<Value> {
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.map(Result::unwrap).collect()
    };
    // These read keys, as editors do that show them.
    for (shell, ask) in [
        ("bash", "read -s -e -p 'Password: ' X; echo go''t\n"),
        ("bash", "read -sn 7 -p 'Password: ' X; echo go''t\n"),
        ("fish", "read -s -P 'Password: ' X; echo go''t\n"),
    ] {
        terms.open(shell).await;
        terms.send(ask).await;
        terms.expect("Password: $").await;
        terms
            .call(
                "send_input",
                json!({"input_text": "hunter", "keys": ["2", "enter"]}),
            )
            .await;
        terms.expect("got").await;
        let last = lines().pop().unwrap();
        assert_eq!(last["hidden_bytes"], 7, "{shell}: {last}");
        assert_eq!(last["keys"], "<enter>", "{shell}: {last}");
    }
    // A shell that was not opened by flow tells nothing, but shows what it is given.
    terms.open("bash").await;
    terms.send("PS1='inner> ' bash --norc\n").await;
    terms.expect("inner> $").await;
    terms.send("echo sho''wn\n").await;
    terms.expect("^shown$").await;
    let shown = async {
        loop {
            let last = lines().pop().unwrap();
            if last["input"] == "echo sho''wn\n" {
                break last;
            }
            tokio::task::yield_now().await;
        }
    };
    let shown = tokio::time::timeout(std::time::Duration::from_secs(30), shown);
    let shown = shown.await.expect("it is shown");
    let all = lines();
    let first = all.iter().find(|line| line["time"] == shown["typed_at"]);
    assert_eq!(first.unwrap()["hidden_bytes"], 13, "{all:#?}");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("hunter"), "{text}");
}

#[tokio::test]
async fn a_log_that_was_moved_away_is_made_anew_or_nothing_is_typed() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("audit.jsonl");
    let terms = Terms::with(Options {
        audit: Some(log.clone()),
        ..Options::default()
    });
    terms.open("bash").await;
    terms.run("echo one").await;
    std::fs::rename(&log, directory.path().join("audit.1")).unwrap();
    terms.run("echo two").await;
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(
        text.contains("echo two") && !text.contains("echo one"),
        "{text}"
    );
    let mode = std::fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let ran = terms.run("touch typed").await;
    let error = ran["error"].as_str().unwrap();
    assert!(error.contains("audit.jsonl"), "{error}");
    std::fs::remove_dir(&log).unwrap();
    assert_eq!(terms.run("ls typed").await["exit_code"], 2);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("ls typed"), "{text}");
}

#[tokio::test]
async fn bad_arguments_are_named() {
    let terms = Terms::new();
    for (tool, parameters, word) in [
        ("await_output", json!({}), "pattern"),
        ("await_output", json!({"pattern": "("}), "pattern"),
        (
            "await_output",
            json!({"pattern": "x", "timeout": "soon"}),
            "timeout",
        ),
        ("send_input", json!({"text": "x"}), "text"),
        ("send_input", json!({"keys": ["hello"]}), "keys"),
        ("run_command", json!({"comand": "x"}), "comand"),
        (
            "get_screen_content",
            json!({"content_mode": "all"}),
            "content_mode",
        ),
    ] {
        match terms.terminals.call(tool, parameters).await {
            Err(CallError::Parameters(faults)) => {
                assert!(faults.to_string().contains(word), "{faults}");
            }
            other => panic!("{tool}: {other:?}"),
        }
    }
    let unknown = terms.terminals.call("run_workflow", json!({})).await;
    assert!(matches!(unknown, Err(CallError::NoTool(name)) if name == "run_workflow"));
}

#[tokio::test]
async fn the_users_history_is_neither_read_nor_written_unless_it_is_asked_for() {
    for (shell, file, variable) in [
        ("bash", ".bash_history", "HISTFILE"),
        ("zsh", ".zsh_history", "HISTFILE"),
        ("fish", ".local/share/fish/fish_history", "fish_history"),
    ] {
        let terms = Terms::new();
        let path = terms.home().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let before = match shell {
            "fish" => "- cmd: echo before\n  when: 1\n",
            _ => "echo before\n",
        };
        std::fs::write(&path, before).unwrap();
        let settings = format!(
            "PS1='%% '\nHISTFILE={}\nHISTSIZE=99\nSAVEHIST=99\n",
            path.display()
        );
        std::fs::write(terms.home().join(".zshrc"), settings).unwrap();
        terms.open_with(shell, json!({"XDG_DATA_HOME": ""})).await;
        terms.run("echo meant for nobody").await;
        let seen = terms.run("history").await;
        assert!(
            !seen["output"].as_str().unwrap().contains("before"),
            "{shell}: {seen:#}"
        );
        terms.run("exit").await;
        terms.terminals.close_all().await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{shell}");

        let (asked, kept) = match shell {
            "fish" => ("agent".to_owned(), path.with_file_name("agent_history")),
            _ => {
                let kept = terms.home().join("kept");
                (kept.to_str().unwrap().to_owned(), kept)
            }
        };
        terms
            .open_with(shell, json!({"XDG_DATA_HOME": "", variable: asked}))
            .await;
        terms.run("echo meant to last").await;
        terms.run("exit").await;
        terms.terminals.close_all().await;
        let kept = std::fs::read_to_string(&kept).unwrap();
        assert!(kept.contains("meant to last"), "{shell}: {kept}");
    }
}

#[tokio::test]
async fn what_the_users_options_show_of_startup_files_is_the_users_alone() {
    for (shell, file, options, screen) in [
        ("bash", ".bashrc", "set -x", "++ : mine\n>"),
        ("bash", ".bashrc", "trap 'echo trapped' DEBUG", "trapped\n>"),
        ("zsh", ".zshrc", "setopt verbose", ": mine\n>"),
        ("zsh", ".zshrc", "PS4='+ '; setopt xtrace", "+ : mine\n>"),
        ("zsh", ".zshrc", "setopt warn_nested_var", ">"),
    ] {
        let terms = Terms::new();
        let startup = format!("PS1='> '\n{options}\n: mine\n");
        std::fs::write(terms.home().join(file), startup).unwrap();
        terms.open(shell).await;
        assert_eq!(
            terms.screen().await.trim_end(),
            screen,
            "{shell}: {options}"
        );
    }
}
