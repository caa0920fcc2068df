//! Secrets: used by commands, seen by nobody.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{Place, Ran};

/// With everything that a shell, JSON or a terminal could trip over.
const SECRET: &str = "hunter2' \"$(id) `id` \\n${HOME} *";
/// The part of it that must not be found, however the rest is written.
const CORE: &str = "hunter2";

const USES: &str = r#"inputs:
  token: {type: string, required: true, secret: true}
  host: {type: string, default: example.org}
outputs:
  token: '{{ state.bare }}'
  again: '{{ state.again }}'
state: {}
steps:
  - {id: bare, type: shell, command: 'printf %s {{ inputs.token }} | tee bare', output_format: text, output_to: bare}
  - {id: double, type: shell, command: 'printf %s "a {{ inputs.token }} b" > double'}
  - {id: single, type: shell, command: "printf %s 'a {{ inputs.token }} b' > single"}
  - id: document
    type: shell
    command: |
      cat > document <<END
      a {{ inputs.token }} b
      END
  - {id: env, type: shell, command: 'printf %s "$TOKEN" > env', env: {TOKEN: 'a {{ inputs.token }} b'}}
  - {id: inner, type: shell, command: 'sh -c {{ "printf %s " ~ (inputs.token | sh) }} > inner'}
  - {id: all, type: shell, command: 'env; echo {{ inputs.token }} >&2'}
  - {id: again, type: shell, command: 'printf %s {{ state.bare }} | tee again', output_format: text, output_to: again}
  - {id: note, type: prompt, message: 'It is {{ inputs.token }} for {{ inputs.host }}'}
"#;

/// Everything that is left of the runs, as bytes.
fn remains(directory: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(remains(&path));
        } else {
            bytes.extend(fs::read(path).unwrap());
        }
    }
    bytes
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|at| at == text.as_bytes())
}

/// Nothing of a run tells the secret: not what it printed, not its journal, not what shows it.
fn assert_kept(place: &Place, ran: &Ran) {
    let left = remains(&place.path("data"));
    assert!(
        has(&left, "FLOW_SECRET_") || has(&left, "started"),
        "the journal is elsewhere"
    );
    assert!(!has(&left, CORE), "the journal tells the secret");
    let mut shown = vec![ran.stdout.clone(), ran.stderr.clone()];
    let runs = place.run(&["runs", "--format", "json"]);
    for run in runs.json()["runs"].as_array().unwrap() {
        let id = run["run_id"].as_str().unwrap();
        for arguments in [
            ["show", id, "--format", "json"],
            ["show", id, "--format", "text"],
            ["logs", id, "--format", "json"],
            ["logs", id, "--format", "text"],
        ] {
            let ran = place.run(&arguments);
            shown.extend([ran.stdout, ran.stderr]);
        }
    }
    shown.push(runs.stdout);
    for shown in shown {
        assert!(!shown.contains(CORE), "{shown}");
        assert!(!shown.contains('\u{f8f0}'), "{shown}");
    }
}

#[test]
fn a_secret_reaches_commands_as_it_is_and_nobody_else() {
    let place = Place::with(&[("uses.yaml", USES)]);
    let parameter = format!("token={SECRET}");
    let ran = place.run(&["run", "uses.yaml", "-p", &parameter, "--format", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("bare"), SECRET);
    assert_eq!(read("again"), SECRET);
    assert_eq!(read("inner"), SECRET);
    for name in ["double", "single", "env"] {
        assert_eq!(read(name), format!("a {SECRET} b"), "{name}");
    }
    assert_eq!(read("document"), format!("a {SECRET} b\n"));
    let output = &ran.json()["output"];
    assert_eq!(
        *output,
        json!({"token": "[secret token]", "again": "[secret token]"})
    );
    assert!(
        ran.stderr.contains("It is [secret token] for example.org"),
        "{}",
        ran.stderr
    );
    assert_kept(&place, &ran);
}

#[test]
fn progress_for_programs_has_no_secret() {
    let place = Place::with(&[("uses.yaml", USES)]);
    let parameter = format!("token={SECRET}");
    let ran = place.run(&["run", "uses.yaml", "-p", &parameter, "--format", "jsonl"]);
    assert_eq!(ran.code, 0);
    assert_kept(&place, &ran);
    let ran = place.run(&["run", "uses.yaml", "-p", &parameter, "--dry-run"]);
    assert_eq!(ran.code, 0);
    assert_kept(&place, &ran);
}

const ON_A_SCREEN: &str = r#"inputs: {token: {type: string, secret: true, required: true}}
return_values: {OUT: what it is}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {environment: {TOKEN: "{{ inputs.token }}"}}}
    transitions: [{condition: success, next_state: show}]
  show:
    action: {tool: run_command, params: {command: 'echo "$TOKEN"; export OUT="v:$TOKEN"'}}
    transitions: [{condition: success, next_state: look}]
  look: {action: {tool: get_screen_content}}
"#;

#[test]
fn a_secret_that_a_screen_breaks_into_rows_is_kept() {
    let place = Place::with(&[("screen.yaml", ON_A_SCREEN)]);
    // Longer than a row.
    let token = format!("{CORE}{}", "0123456789abcdef".repeat(9));
    let parameter = format!("token={token}");
    let ran = place.run(&["run", "screen.yaml", "-p", &parameter, "--format", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.json()["return_values"]["OUT"], "v:[secret token]");
    assert_kept(&place, &ran);
    let rest = "0123456789abcdef0123456789abcdef";
    assert!(!has(&remains(&place.path("data")), rest));
}

const FAILS: &str = "inputs: {token: {type: string, required: true, secret: true}}
steps:
  - {id: bad, type: shell, command: 'echo \"no {{ inputs.token }}\" >&2; test -e go'}
";

#[test]
fn an_error_does_not_tell_a_secret() {
    let place = Place::with(&[("fails.yaml", FAILS)]);
    let ran = place.run(&["run", "fails.yaml", SECRET, "--format", "json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no [secret token]"), "{}", ran.stderr);
    assert_kept(&place, &ran);
}

#[test]
fn a_secret_given_by_hand_is_wanted_again_when_the_run_goes_on() {
    let place = Place::with(&[("fails.yaml", FAILS)]);
    let ran = place.run(&["run", "fails.yaml", SECRET, "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    place.file("go", "");
    let ran = place.run(&["resume", &run, "--format", "json"]);
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    assert_eq!(ran.json()["missing_secrets"], json!(["token"]));
    // Nobody may answer it in its place.
    let pending = &ran.json()["pending"][0];
    assert_eq!(
        (&pending["step"], pending.get("answer_with")),
        (&json!("bad"), None)
    );
    assert!(ran.stderr.contains("FLOW_SECRET_TOKEN"), "{}", ran.stderr);
    let mut command = place.command(&["resume", &run, "--format", "json"]);
    let ran = Ran::from(command.env("FLOW_SECRET_TOKEN", SECRET).output().unwrap());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_kept(&place, &ran);
}

#[test]
fn a_secret_comes_from_the_environment_or_a_file_on_every_resume() {
    let place = Place::with(&[("fails.yaml", FAILS)]);
    fs::write(place.path("secret.txt"), format!("{SECRET}\n")).unwrap();
    for (given, variable) in [
        ("env:MY_TOKEN", "MY_TOKEN"),
        ("", "FLOW_SECRET_TOKEN"),
        ("file:secret.txt", "UNUSED"),
    ] {
        let mut arguments = vec!["run", "fails.yaml", "--format", "json"];
        if !given.is_empty() {
            arguments.push(given);
        }
        let _ = fs::remove_file(place.path("go"));
        let mut command = place.command(&arguments);
        let ran = Ran::from(command.env(variable, SECRET).output().unwrap());
        assert_eq!(ran.code, 1, "{given}: {}{}", ran.stdout, ran.stderr);
        let run = ran.json()["run_id"].as_str().unwrap().to_owned();
        place.file("go", "");
        let mut command = place.command(&["resume", &run, "--format", "json"]);
        let ran = Ran::from(command.env(variable, SECRET).output().unwrap());
        assert_eq!(ran.code, 0, "{given}: {}{}", ran.stdout, ran.stderr);
        assert_kept(&place, &ran);
    }
    let ran = place.run(&["run", "fails.yaml", "env:NOT_SET_ANYWHERE"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("env:NOT_SET_ANYWHERE"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["run", "fails.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("FLOW_SECRET_TOKEN"), "{}", ran.stderr);
}

#[test]
fn a_called_workflow_gets_the_secret_and_keeps_it() {
    let place = Place::with(&[
        (
            "outer.yaml",
            "inputs: {token: {type: string, required: true, secret: true}}
outputs: {got: '{{ state.got.back }}'}
steps:
  - {id: inner, type: call, workflow: inner, inputs: {key: '{{ inputs.token }}', open: 'x{{ inputs.token }}'}, output_to: got}
  - {id: use, type: shell, command: 'printf %s {{ state.got.back }} > outer'}
",
        ),
        (
            "inner.yaml",
            "name: inner
inputs:
  key: {type: string, required: true, secret: true, validation: {pattern: '^hunter'}}
  open: {type: string, required: true, validation: {max_length: 40}}
outputs: {back: '{{ inputs.key }}'}
steps:
  - {id: write, type: shell, command: 'printf %s {{ inputs.key }} > inner; printf %s {{ inputs.open }} > open'}
",
        ),
    ]);
    let ran = place.run(&["run", "outer.yaml", SECRET, "--format", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("inner"), SECRET);
    assert_eq!(read("open"), format!("x{SECRET}"));
    assert_eq!(read("outer"), SECRET);
    assert_eq!(ran.json()["output"], json!({"got": "[secret token]"}));
    assert_kept(&place, &ran);
}

#[test]
fn a_secret_that_an_expression_changes_is_not_used() {
    let definition = "inputs: {token: {type: string, required: true, secret: true}}
steps:
  - {type: set_state, updates: {kept: '{{ inputs.token }}'}}
  - {id: bad, type: shell, command: 'echo {{ state.kept | upper }} {{ state.kept[2:] }}'}
";
    let place = Place::with(&[("changes.yaml", definition)]);
    let ran = place.run(&["run", "changes.yaml", SECRET]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("which `kept` holds"), "{}", ran.stderr);
    // A field that may hold something else too is only seen as the run goes.
    let definition = format!("state: {{kept: nothing}}\n{definition}");
    let place = Place::with(&[("changes.yaml", definition.as_str())]);
    let ran = place.run(&["run", "changes.yaml", SECRET, "--format", "json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("passed on as it is"), "{}", ran.stderr);
    assert_kept(&place, &ran);
}

#[test]
fn an_expression_that_looks_at_a_secret_is_found_before_it_runs() {
    let step = |expression: &str| {
        format!("  - {{type: set_state, updates: {{a: \"{{{{ {expression} }}}}\"}}}}\n")
    };
    let found = |expressions: &[&str], dialect: &str| {
        let steps: String = expressions.iter().map(|it| step(it)).collect();
        let definition = format!(
            "expressions: {dialect}\ninputs: {{token: {{type: string, secret: true}}}}\nsteps:\n{steps}"
        );
        let place = Place::with(&[("x.yaml", definition.as_str())]);
        let found = place.run(&["check", "x.yaml", "--format", "json"]).found();
        let looked = found.into_iter().filter(|(code, ..)| code == "F057");
        looked.count()
    };
    let looks = [
        "inputs.token | length",
        "inputs.token == 'x'",
        "'x' in inputs.token",
        "inputs.token[:2]",
        "inputs.token.upper()",
        "inputs.token is string",
    ];
    assert_eq!(found(&looks, "jinja"), looks.len());
    let passes = [
        "inputs.token",
        "'Bearer ' ~ inputs.token",
        "'Bearer ' + inputs.token",
        "inputs.token | default('none')",
        "1 if inputs.token else 2",
        "inputs.token is defined",
        "inputs.token != none",
    ];
    assert_eq!(found(&passes, "jinja"), 0);
    let looks = [
        "inputs.token.length",
        "inputs.token === 'x'",
        "inputs.token.startsWith('x')",
    ];
    assert_eq!(found(&looks, "js"), looks.len());
    let passes = [
        "'Bearer ' + inputs.token",
        "inputs.token ? 1 : 2",
        "inputs.token !== undefined",
    ];
    assert_eq!(found(&passes, "js"), 0);
}

#[test]
fn a_command_that_prints_a_placeholder_does_not_get_the_secret() {
    let definition = "inputs: {token: {type: string, required: true, secret: true}}
steps:
  - {id: print, type: shell, command: 'printf \"\\357\\243\\260%s:token\\357\\243\\261\" \"$FLOW_RUN_ID\"', output_format: text, output_to: printed}
  - {id: use, type: shell, command: 'printf %s {{ state.printed }} > got'}
";
    let place = Place::with(&[("prints.yaml", definition)]);
    let ran = place.run(&["run", "prints.yaml", SECRET, "--format", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let got = fs::read_to_string(place.path("got")).unwrap();
    assert!(got.contains(":token") && !got.contains(CORE), "{got}");
    assert!(!has(&remains(&place.path("data")), CORE));
}

#[test]
fn a_fault_of_a_secret_does_not_show_it() {
    let definition = "inputs: {token: {type: string, required: true, secret: true, validation: {pattern: '^x', max_length: 4}}}
steps:
  - {id: use, type: shell, command: 'echo {{ inputs.token }}'}
";
    let place = Place::with(&[("strict.yaml", definition)]);
    let ran = place.run(&["run", "strict.yaml", SECRET]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`token`"), "{}", ran.stderr);
    assert!(!ran.stderr.contains(CORE), "{}", ran.stderr);
    let ran = place.run(&["run", "strict.yaml", "abc"]);
    assert!(
        ran.stderr.contains("fewer than 4 characters"),
        "{}",
        ran.stderr
    );
}

/// Types at a terminal: starts a command that asks for a secret, and interrupts it.
const TYPES: &str = r#"
outputs: {code: '{{ state.code }}'}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: start}]
  start:
    action: {tool: send_input, params: {input_text: "$FLOW run fails.yaml; echo ended-$?\n"}}
    transitions: [{condition: success, next_state: asked}]
  asked:
    action: {tool: await_output, params: {pattern: "secret `token`: ", timeout: 60}}
    transitions: [{condition: success, next_state: interrupt}]
  interrupt:
    action: {tool: send_input, params: {input_text: "half a secret\u0003"}}
    transitions: [{condition: success, next_state: ended}]
  ended:
    action: {tool: await_output, params: {pattern: "ended-[0-9]+", timeout: 60}}
    transitions: [{condition: success, next_state: keep}]
  keep:
    action: {type: set_state, updates: {code: '{match_text}'}}
    transitions: [{condition: success, next_state: close}]
  close:
    action: {tool: exit_terminal}
"#;

#[test]
fn a_question_for_a_secret_can_be_interrupted() {
    let place = Place::with(&[("fails.yaml", FAILS), ("types.yaml", TYPES)]);
    let mut command = place.command(&["run", "types.yaml"]);
    command.env("FLOW", env!("CARGO_BIN_EXE_flow"));
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json(), json!({"code": "ended-130"}));
}

#[test]
fn neither_commands_nor_terminals_are_told_what_the_caller_keeps_secret() {
    let place = Place::with(&[(
        "told.yaml",
        r#"outputs: {terminal: '{{ state.terminal }}', command: '{{ state.command }}'}
initial_state: open
states:
  open:
    action: {tool: open_terminal, params: {shell: bash}}
    transitions: [{condition: success, next_state: typed}]
  typed:
    action: {tool: run_command, params: {command: 'echo "$FLOW_TOKEN/$FLOW_SECRET_OTHER/$ORDINARY"'}}
    transitions: [{condition: success, next_state: keep}]
  keep:
    action: {type: set_state, updates: {terminal: '{typed_output}'}}
    transitions: [{condition: success, next_state: run}]
  run:
    action: {type: shell, command: 'echo "$FLOW_TOKEN/$FLOW_SECRET_OTHER/$ORDINARY"'}
    transitions: [{condition: success, next_state: keep_too}]
  keep_too:
    action: {type: set_state, updates: {command: '{run_stdout}'}}
    transitions: [{condition: success, next_state: close}]
  close:
    action: {tool: exit_terminal}
"#,
    )]);
    let mut command = place.command(&["run", "told.yaml"]);
    command.env("FLOW_TOKEN", SECRET);
    command.env("FLOW_SECRET_OTHER", SECRET);
    command.env("ORDINARY", "ordinary");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let told = ran.json();
    let seen = "//ordinary\n";
    assert_eq!(told, json!({"terminal": seen, "command": seen}));
}

#[test]
fn a_secret_that_went_through_the_state_is_seen_by_no_expression() {
    let place = Place::with(&[(
        "through.yaml",
        r#"inputs: {token: {type: string, required: true, secret: true}}
state: {mixed: nothing}
computed: {size: {from: mixed, transform: input.length}, first: {from: mixed, transform: 'input.slice(0, 7)'}}
outputs: {size: '{{ state.size }}', first: '{{ state.first }}', joined: 'a {{ state.mixed }} b'}
steps:
  - {id: keep, type: set_state, updates: {mixed: '{{ inputs.token }}'}}
  - {id: split, type: set_state, updates: {parts: '{{ state.mixed | list | join("-") }}', reversed: '{{ state.mixed | reverse }}'}}
  - {id: used, type: shell, command: 'printf %s {{ state.mixed }} > used'}
"#,
    )]);
    let mut command = place.command(&["run", "through.yaml", "--format", "json"]);
    let ran = Ran::from(command.env("FLOW_SECRET_TOKEN", SECRET).output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // A command has it, and expressions have what stands for it.
    assert_eq!(fs::read_to_string(place.path("used")).unwrap(), SECRET);
    let output = &ran.json()["output"];
    assert_eq!(output["joined"], "a [secret token] b");
    assert_ne!(output["size"], json!(SECRET.len()));
    assert!(!output["first"].as_str().unwrap().starts_with("hunter"));
    assert_kept(&place, &ran);
    assert!(!has(ran.stdout.as_bytes(), "2retnuh") && !has(ran.stdout.as_bytes(), "h-u-n"));
}

#[test]
fn a_secret_of_the_wrong_type_is_not_shown() {
    for ty in ["integer", "boolean", "array", "object"] {
        let definition = format!(
            "inputs: {{s: {{type: {ty}, required: true, secret: true}}}}\nsteps: [{{type: shell, command: 'true'}}]\n"
        );
        let place = Place::with(&[("s.yaml", &definition)]);
        for arguments in [
            &["run", "s.yaml", "hunter2hunter2"][..],
            &["run", "s.yaml", "-p", "s=hunter2hunter2"],
        ] {
            let ran = place.run(arguments);
            assert_eq!(ran.code, 2, "{}", ran.stderr);
            assert!(ran.stderr.contains("`s`"), "{}", ran.stderr);
            assert!(!ran.stderr.contains(CORE), "{}", ran.stderr);
        }
    }
    let place = Place::with(&[(
        "o.yaml",
        "inputs: {s: {type: object, required: true, secret: true}}
steps: [{type: shell, command: 'true'}]
",
    )]);
    let ran = place.run(&["run", "o.yaml", "{\"key\": \"hunter2\"}"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}
