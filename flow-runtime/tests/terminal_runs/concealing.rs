//! Secrets that runs type into terminals.

use std::fs;

use flow_runtime::host::{ReportStatus, StartOptions};
use flow_runtime::run::Happening;
use flow_runtime::terminal::{Options, Terminals};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};

use crate::world::{World, in_session};

const TYPES: &str = r"
inputs: {token: {type: string, required: true, secret: true}}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: SHELL}}
    transitions: [{condition: always, next_state: run}]
  run:
    action: {tool: run_command, params: {command: 'test {{ inputs.token }} != x'}}
    transitions: [{condition: success, next_state: type}]
  type:
    action: {tool: send_input, params: {input_text: 'test {{ inputs.token | sh }} != y'}}
    transitions: [{condition: success, next_state: clear}]
  clear:
    action: {tool: send_input, params: {keys: [ctrl-c]}}
    transitions: [{condition: success, next_state: keep}]
  keep:
    action: {tool: run_command, params: {command: 'KEEP'}}
    transitions: [{condition: success, next_state: look}]
  look:
    action: {tool: get_screen_content, params: {content_mode: history}}
    transitions: []
";

#[tokio::test]
async fn a_secret_that_a_run_types_is_seen_by_nobody_else() {
    for (shell, keep) in [
        ("bash", "export KEPT={{ inputs.token }}"),
        ("zsh", "export KEPT={{ inputs.token }}"),
        ("fish", "set -gx KEPT {{ inputs.token }}"),
        ("dash", "export KEPT={{ inputs.token }}"),
    ] {
        for secret in ["plainSecret12345", "apos'Secret12345", r"b\ac k$lash12345"] {
            let (world, terminals) = audited();
            let text = TYPES.replace("SHELL", shell).replace("KEEP", keep);
            let inputs = Value::from(&json!({"token": secret}));
            let report = world.run_with(&text, inputs, StartOptions::default()).await;
            assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
            let tail = &secret[secret.len() - 5..];

            let sessions = terminals.call("list_terminal_sessions", json!({})).await;
            let session = sessions.unwrap()["sessions"][0]["session_id"].clone();
            let session = session.as_str().unwrap();
            let asked = json!({"session_id": session, "content_mode": "history"});
            let screen = terminals.call("get_screen_content", asked).await.unwrap();
            let screen = screen["screen_content"].as_str().unwrap();
            assert!(screen.contains("[secret token] != x"), "{shell}: {screen}");
            let asked = json!({"session_id": session, "command": "printenv KEPT"});
            let ran = terminals.call("run_command", asked).await.unwrap();
            assert_eq!(ran["output"], "[secret token]\n", "{shell}");

            // Another run, which has no secrets of its own.
            let returns = "return_values: {KEPT: kept}\nsteps: [{type: wait, duration: 0}]";
            let second = world.run(returns, in_session(session)).await;
            assert_eq!(second.status, ReportStatus::Completed, "{:?}", second.error);

            let log = |run| Json::from(world.log(run)).to_string();
            let audit = fs::read_to_string(world.root.path().join("audit.jsonl")).unwrap();
            assert!(
                audit.contains("test [secret token] != x"),
                "{shell}: {audit}"
            );
            for seen in [
                screen.to_owned(),
                audit,
                log(report.run),
                log(second.run),
                format!("{second:?}"),
                String::from_utf8_lossy(&journal(&world)).into_owned(),
            ] {
                assert!(!seen.contains(tail), "{shell}, {secret}: {seen}");
            }
        }
    }
}

const TELLS: &str = r"
inputs:
  pem: {type: string, required: true, secret: true}
  signs: {type: string, required: true, secret: true}
  plain: {type: string, required: true, secret: true}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: SHELL}}
    transitions: [{condition: always, next_state: pem}]
  pem:
    action: {tool: run_command, params: {command: 'export PEM={{ inputs.pem }}'}}
    transitions: [{condition: success, next_state: signs}]
  signs:
    action: {tool: run_command, params: {command: 'export SIGNS={{ inputs.signs }}'}}
    transitions: [{condition: success, next_state: plain}]
  plain:
    action: {tool: run_command, params: {command: 'export PLAIN={{ inputs.plain }}'}}
    transitions: [{condition: success, next_state: tell-0}]
TELLING
  look:
    action: {tool: get_screen_content, params: {content_mode: history, max_chars: 500000}}
    transitions: []
";

#[tokio::test]
async fn no_shell_tells_secrets_in_quotes_of_its_own() {
    let pem = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7bq1\nx9Kd'sd/ab+cdEFGHIJK\nQk7z==\n-----END KEY-----";
    let signs = r#"p@$$w0rd!'"\ x*[Zq]"#;
    let plain = "it's aPlain one Wq8Zk";
    // Whatever is between them, these would tell something.
    let parts = [
        "IIEpAI", "7bq1", "x9Kd", "ab+cd", "HIJK", "Qk7z", "w0rd", "Zq]", "aPlain", "Wq8Zk",
    ];
    let posix = [
        "set",
        "export -p",
        "set -x; : \"$PEM\" \"$SIGNS\" \"$PLAIN\"; set +x",
    ];
    let bash = [
        "declare -p",
        "history",
        "fc -l -20",
        "printf \"%q\\n\" \"$PEM\" \"$SIGNS\"",
        "alias a=\"$PEM\"; alias",
        "\"$PEM\"",
    ];
    let zsh = [
        "typeset -p",
        "history",
        "fc -l -20",
        "print -r -- ${(q)PEM} ${(qqqq)SIGNS}",
        "alias a=\"$PEM\"; alias",
        "\"$PEM\"",
    ];
    let dash = ["env", "alias a=\"$PEM\"; alias", "\"$SIGNS\""];
    let fish = [
        "set",
        "set -S",
        "set --show PEM SIGNS PLAIN",
        "history",
        "string escape -- $PEM $SIGNS $PLAIN",
        "env",
        "set fish_trace 1; true $PEM $SIGNS; set fish_trace",
    ];
    for (shell, commands) in [
        ("bash", [&posix[..], &bash].concat()),
        ("zsh", [&posix[..], &zsh].concat()),
        ("dash", [&posix[..], &dash].concat()),
        ("fish", fish.to_vec()),
    ] {
        let telling = commands.iter().enumerate().map(|(number, command)| {
            let command = Json::from(*command);
            let next = match number + 1 < commands.len() {
                true => format!("tell-{}", number + 1),
                false => "look".to_owned(),
            };
            format!("  tell-{number}: {{action: {{tool: run_command, params: {{command: {command}}}}}, transitions: [{{condition: always, next_state: {next}}}]}}\n")
        });
        let text = TELLS.replace("SHELL", shell);
        let text = text.replace("TELLING\n", &telling.collect::<String>());
        let (world, terminals) = audited();
        let inputs = Value::from(&json!({"pem": pem, "signs": signs, "plain": plain}));
        let report = world.run_with(&text, inputs, StartOptions::default()).await;
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);

        let mut seen = vec![
            format!("{report:?}"),
            Json::from(world.log(report.run)).to_string(),
            fs::read_to_string(world.root.path().join("audit.jsonl")).unwrap(),
            String::from_utf8_lossy(&journal(&world)).into_owned(),
        ];
        for command in &commands {
            let ran = terminals.call("run_command", json!({"command": command}));
            seen.push(ran.await.unwrap().to_string());
        }
        let screen = terminals.call(
            "get_screen_content",
            json!({"content_mode": "history", "max_chars": 500_000}),
        );
        seen.push(screen.await.unwrap().to_string());
        for name in ["pem", "signs", "plain"] {
            let mask = format!("[secret {name}]");
            assert!(
                seen.iter().any(|seen| seen.contains(&mask)),
                "{shell} {name}"
            );
        }
        for seen in seen {
            for part in parts {
                assert!(!seen.contains(part), "{shell}: `{part}` is in {seen}");
            }
        }
    }
}

/// A world whose terminals write an audit log.
fn audited() -> (World, Terminals) {
    let mut opened = None;
    let world = World::with(&[], |options| {
        let audit = options.directory.join("audit.jsonl");
        let terminals = Options {
            directory: Some(options.directory.clone()),
            audit: Some(audit),
            ..Options::default()
        };
        opened = Some(Terminals::new(terminals).unwrap());
        options.terminals.clone_from(&opened);
    });
    (world, opened.unwrap())
}

/// All bytes of the journal.
fn journal(world: &World) -> Vec<u8> {
    let files = fs::read_dir(world.root.path().join(".flow")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|path| path.is_file());
    files.flat_map(|path| fs::read(path).unwrap()).collect()
}

/// Types a secret into a session, and leaves it there.
const EXPORTS: &str = r"
inputs: {a: {type: string, required: true, secret: true}}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: always, next_state: keep}]
  keep:
    action: {tool: run_command, params: {command: 'export RET={{ inputs.a }}'}}
";

const ECHOES: &str = r"
inputs: {v: {type: string, required: true}}
initial_state: first
states:
  first:
    action: {type: shell, command: 'echo {v}'}
    transitions: [{condition: always, next_state: open}]
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: always, next_state: second}]
  second:
    action: {tool: run_command, params: {command: 'echo {v}'}}
    transitions: [{condition: always, next_state: third}]
  third:
    action: {tool: run_command, params: {command: 'printf %s {second_output}'}}
    transitions: []
";

fn given(inputs: &Json) -> Value {
    Value::from(inputs)
}

#[tokio::test]
async fn a_text_of_a_run_is_its_own_also_where_it_is_the_secret_of_another() {
    let (world, terminals) = audited();
    let started = StartOptions::default;
    let secret = given(&json!({"a": "staging-db"}));
    let typed = world.run_with(EXPORTS, secret.clone(), started()).await;
    assert_eq!(typed.status, ReportStatus::Completed, "{:?}", typed.error);
    // One that has the secret and is not over.
    let asks = "inputs: {a: {type: string, required: true, secret: true}}\nsteps: [{id: q, type: user_input, prompt: go on?}]";
    let waits = world.run_with(asks, secret, started()).await;
    assert_eq!(waits.status, ReportStatus::Waiting);
    for text in ["staging-db", "/srv/staging-db/backup.tar"] {
        let inputs = given(&json!({"v": text}));
        let run = world.start(ECHOES, inputs, started()).await;
        let report = world.host.drive(run).await.unwrap();
        assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
        let variables = report.variables.to_json();
        assert_eq!(variables["third_output"], json!(format!("{text}\n")));
        assert_eq!(variables["first_stdout"], json!(format!("{text}\n")));
        let log = Json::from(world.log(run)).to_string();
        assert!(!log.contains("[secret"), "{log}");
    }
    // Nor is it masked in a session that was not told it.
    let opened = terminals.call("open_terminal", json!({"shell": "bash"}));
    let session = opened.await.unwrap()["session_id"].clone();
    let asked = json!({"session_id": session, "command": "echo staging-db"});
    let ran = terminals.call("run_command", asked).await.unwrap();
    assert_eq!(ran["output"], "staging-db\n");
    // In the one that was told, a run which has the text already sees it as it is.
    let told = typed.session.unwrap();
    let same = "inputs: {v: {type: string, required: true}}\ninitial_state: look\nstates: {look: {action: {tool: run_command, params: {command: 'echo $RET {v}'}}}}";
    let inputs = given(&json!({"v": "staging-db"}));
    let report = world.run_with(same, inputs, in_session(&told)).await;
    let variables = report.variables.to_json();
    assert_eq!(variables["look_output"], "staging-db staging-db\n");
}

#[tokio::test]
async fn a_run_goes_on_with_a_secret_that_it_has_read_in_a_terminal() {
    let secret = "Kq7Zk9LmW2XwVbN8";
    let by_environment = r"
arguments: {RET: what is left there}
initial_state: tell
states:
  tell:
    action: {tool: run_command, params: {command: 'printf %s {{ env.RET }} | wc -c'}}
    transitions: [{condition: always, next_state: shell}]
  shell: {action: {type: shell, command: 'printf %s {{ env.RET }} > size; wc -c < size; cat size; rm size'}}
";
    let by_output = r"
initial_state: read
states:
  read:
    action: {tool: run_command, params: {command: 'echo $RET'}}
    transitions: [{condition: always, next_state: tell}]
  tell:
    action: {tool: run_command, params: {command: 'printf %s {read_output} | tr -d [:space:] | wc -c'}}
    transitions: [{condition: always, next_state: shell}]
  shell: {action: {type: shell, command: 'printf %s {read_output} | tr -d [:space:] > size; wc -c < size; cat size; rm size'}}
";
    let by_match = r"
initial_state: send
states:
  send:
    action: {tool: send_input, params: {input_text: 'echo got:$RET:'}}
    transitions: [{condition: always, next_state: enter}]
  enter:
    action: {tool: send_input, params: {keys: [enter]}}
    transitions: [{condition: always, next_state: read}]
  read:
    action: {tool: await_output, params: {pattern: 'got:[^:$]+', timeout: 10}}
    transitions: [{condition: always, next_state: tell}]
  tell:
    action: {tool: run_command, params: {command: 'printf %s {match_text} | tail -c +5 | wc -c'}}
    transitions: [{condition: always, next_state: shell}]
  shell: {action: {type: shell, command: 'printf %s {match_text} | tail -c +5 > size; wc -c < size; cat size; rm size'}}
";
    for text in [by_environment, by_output, by_match] {
        let (world, _) = audited();
        let inputs = given(&json!({"a": secret}));
        let typed = world
            .run_with(EXPORTS, inputs, StartOptions::default())
            .await;
        let session = typed.session.unwrap();
        let report = world.completed(text, in_session(&session)).await;
        let variables = report.variables.to_json();
        assert_eq!(variables["tell_output"], "16\n", "{text}");
        assert_eq!(variables["shell_stdout"], "16\n[secret a]", "{text}");
        for seen in [
            format!("{report:?}"),
            Json::from(world.log(report.run)).to_string(),
            String::from_utf8_lossy(&journal(&world)).into_owned(),
        ] {
            assert!(!seen.contains(secret), "{seen}");
        }
    }
}

#[tokio::test]
async fn a_secret_is_handed_to_a_called_workflow_again_and_again() {
    let inner = "inputs: {a: {type: string, required: true, secret: true}}\ninitial_state: say\nstates: {say: {action: {tool: run_command, params: {command: 'echo {a}'}}}}";
    let outer = r"
inputs: {a: {type: string, required: true, secret: true}}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: always, next_state: call}]
  call:
    action: {tool: run_workflow, params: {workflow_name: inner, inputs: {a: GIVEN}}}
    transitions: [{condition: always, next_state: use}]
  use:
    action: {tool: run_command, params: {command: 'printf %s {{ call_final_variables.say_output }} | wc -c'}}
";
    // The caller's secret, and one that the caller has in the clear.
    for given_as in ["'{a}'", "literal-secret-1"] {
        let world = World::new(&[("inner", inner)]);
        let text = outer.replace("GIVEN", given_as);
        for _ in 0..3 {
            let inputs = given(&json!({"a": "hand-made-secret"}));
            let report = world.run_with(&text, inputs, StartOptions::default()).await;
            let log = Json::from(world.log(report.run));
            assert_eq!(report.status, ReportStatus::Completed, "{log:#}");
            let variables = report.variables.to_json();
            assert_eq!(variables["use_output"], "17\n", "{given_as}: {log:#}");
        }
    }
}

#[tokio::test]
async fn a_secret_that_was_read_in_a_terminal_can_be_given_again_when_that_is_gone() {
    // It has a secret of the same name itself.
    let text = r"
arguments: {RET: what is left there}
inputs: {a: {type: string, required: true, secret: true}}
steps:
  - {id: q, type: user_input, prompt: go on?}
  - {id: e, type: shell, command: 'printf %s {{ env.RET }} | wc -c; printf %s {{ inputs.a }} | wc -c', output_to: sizes}
outputs: {sizes: '{{ state.sizes.stdout }}'}
";
    let (world, _) = audited();
    let inputs = given(&json!({"a": "Kq7Zk9LmW2XwVbN8"}));
    let typed = world
        .run_with(EXPORTS, inputs, StartOptions::default())
        .await;
    let own = given(&json!({"a": "own-secret"}));
    let session = in_session(&typed.session.unwrap());
    let report = world.run_with(text, own.clone(), session).await;
    assert_eq!(report.status, ReportStatus::Waiting);
    let run = report.run;
    let (host, _terminals) = World::host(world.root.path(), |_| {});
    drop(world.host);
    let asked = host.report(run).unwrap().pending[0].action.id;
    let answer = Happening::Completed {
        action: asked,
        result: given(&json!({"input": "yes"})),
    };
    host.record(run, answer).await.unwrap();
    let report = host.drive(run).await.unwrap();
    let name = format!("{}.a", typed.run);
    assert_eq!(report.missing_secrets, [&*name], "{:?}", report.error);
    let wrong = given(&json!({"b": "Kq7Zk9LmW2XwVbN8"}));
    assert!(host.give_secrets(run, &wrong).is_err());
    host.give_secrets(run, &own).unwrap();
    let report = host.drive(run).await.unwrap();
    assert_eq!(report.missing_secrets, [&*name], "{:?}", report.error);
    let right = given(&json!({name: "Kq7Zk9LmW2XwVbN8"}));
    host.give_secrets(run, &right).unwrap();
    let report = host.drive(run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert_eq!(report.output.to_json(), json!({"sizes": "16\n10\n"}));
}

#[tokio::test]
async fn a_secret_is_not_seen_while_a_shell_draws_it() {
    const SENDS: &str = r"
inputs: {a: {type: string, required: true, secret: true}}
initial_state: send
states:
  send:
    action: {tool: send_input, params: {input_text: 'true {{ inputs.a | sh }}'}}
    transitions: [{condition: always, next_state: look}]
  look:
    action: {tool: get_screen_content, params: {}}
    transitions: [{condition: always, next_state: all}]
  all:
    action: {tool: get_screen_content, params: {content_mode: history}}
    transitions: [{condition: always, next_state: clear}]
  clear:
    action: {tool: send_input, params: {keys: [ctrl-c]}}
    transitions: [{condition: always, next_state: after}]
  after: {action: {tool: run_command, params: {command: 'true'}}}
";
    let secret = "Kq7'Zk9\"Lm $W2 wVb N8r";
    for shell in ["bash", "zsh", "fish", "dash"] {
        let world = World::new(&[]);
        let opened = world
            .terminals
            .call("open_terminal", json!({"shell": shell}));
        let opened = opened.await.unwrap();
        let session = opened["session_id"].as_str().unwrap().to_owned();
        let looking = async {
            loop {
                let asked = json!({"session_id": session});
                let seen = world.terminals.call("get_screen_content", asked).await;
                let seen = seen.unwrap()["screen_content"].to_string();
                assert!(!seen.contains("Kq7"), "{shell}: {seen}");
                tokio::task::yield_now().await;
            }
        };
        let running = async {
            for _ in 0..8 {
                let inputs = given(&json!({"a": secret}));
                let report = world.run_with(SENDS, inputs, in_session(&session)).await;
                assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
                let log = Json::from(world.log(report.run)).to_string();
                assert!(!log.contains("Kq7"), "{shell}: {log}");
            }
        };
        tokio::select! {
            () = running => {}
            () = looking => {}
        }
    }
}

#[tokio::test]
async fn a_run_says_which_secret_a_run_waits_for_that_it_has_called() {
    let inner = "inputs: {a: {type: string, required: true, secret: true}}\nsteps: [{id: q, type: user_input, prompt: go on?}, {id: e, type: shell, command: 'test -n {{ inputs.a }}'}]";
    let outer = "inputs: {a: {type: string, required: true, secret: true}}\nsteps: [{id: c, type: call, workflow: inner, inputs: {a: '{{ inputs.a }}'}}]";
    let world = World::new(&[("inner", inner)]);
    let secret = given(&json!({"a": "hand-made-secret"}));
    let report = world
        .run_with(outer, secret.clone(), StartOptions::default())
        .await;
    let run = report.run;
    let (host, _terminals) = World::host(world.root.path(), |_| {});
    drop(world.host);
    let called = host.called(run).unwrap()[0].id;
    let answer = Happening::Completed {
        action: host.report(called).unwrap().pending[0].action.id,
        result: given(&json!({"input": "yes"})),
    };
    host.record(called, answer).await.unwrap();
    let report = host.drive(run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Waiting);
    assert_eq!(report.missing_secrets, ["a"]);
    host.give_secrets(run, &secret).unwrap();
    let report = host.drive(run).await.unwrap();
    assert_eq!(report.status, ReportStatus::Completed, "{:?}", report.error);
    assert!(report.missing_secrets.is_empty());
}
