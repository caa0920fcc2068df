//! Expressions that want all time or all memory: the run ends with a sentence, within bounds.

use std::process::{Command, Stdio};

use super::{Place, Ran};

/// Address space of the whole program, in KiB: what these expressions ask for would not fit.
const SPACE: u32 = 700_000;

fn run(definition: &str) -> Ran {
    let place = Place::with(&[("x.yaml", definition)]);
    let flow = env!("CARGO_BIN_EXE_flow");
    let script = format!("ulimit -v {SPACE}; exec {flow} run x.yaml");
    let plain = place.command(&[]);
    let ran = Command::new("sh")
        .args(["-c", &script])
        .current_dir(plain.get_current_dir().unwrap())
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::null())
        .output();
    Ran::from(ran.unwrap())
}

fn fails(definition: &str) {
    let ran = run(definition);
    assert_eq!(ran.code, 1, "{definition}\n{}", ran.stderr);
    let bounds = [
        "does more work than an expression may",
        "produces more than",
        "makes more than 1 MiB of its constants",
        "is wider than",
        "needs more than",
        "Maximum call stack size exceeded",
        "took longer than 5 seconds",
    ];
    let is_bound = bounds.iter().any(|bound| ran.stderr.contains(bound));
    assert!(is_bound, "{definition}\n{}", ran.stderr);
    assert!(
        ran.stderr.contains("greedy"),
        "{definition}\n{}",
        ran.stderr
    );
}

/// A step whose value is an expression.
fn expression(dialect: &str, expression: &str) -> String {
    let value = serde_json::Value::from(format!("{{{{ {expression} }}}}"));
    format!(
        "expressions: {dialect}\nsteps: [{{id: greedy, type: set_state, updates: {{x: {value}}}}}]\n"
    )
}

#[test]
fn jinja_that_wants_everything_ends_with_a_sentence() {
    for greedy in [
        "'%1000000000d' | format(1)",
        "'a' * 10**9",
        "[1] * 10**9",
        "'a\nb' | indent(1000000000)",
        "('a' * 1000000) | replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "range(100000) | batch(1) | map('join', ('a' * 1000000)) | join",
    ] {
        fails(&expression("jinja", greedy));
    }
    let doublings = "{% set x = x ~ x %}".repeat(30);
    let loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    for text in [
        format!("{{% set x = 'aaaaaaaa' %}}{doublings}{{{{ x }}}}"),
        loops.to_owned(),
    ] {
        fails(&format!(
            "steps: [{{id: greedy, type: set_state, updates: {{x: \"{text}\"}}}}]\n"
        ));
    }
}

#[test]
fn javascript_that_wants_everything_ends_with_a_sentence() {
    for greedy in [
        "(() => { while (true) {} })()",
        "(() => { for (;;) { try { while (true) {} } finally { continue } } })()",
        "'a'.repeat(1e9)",
        "(() => { const a = []; for (;;) a.push('x'.repeat(1e6)) })()",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "(function f() { return f() + f() })()",
    ] {
        fails(&expression("js", greedy));
    }
}

#[test]
fn a_computed_field_that_wants_everything_fails_the_step_that_reads_it() {
    for greedy in ["while (true) {}; return 1", "return 'a'.repeat(1e9)"] {
        fails(&format!(
            "state: {{n: 1}}\ncomputed: {{much: {{from: n, transform: \"{greedy}\"}}}}\nsteps: [{{id: greedy, type: set_state, updates: {{x: '{{{{ state.much }}}}'}}}}]\n"
        ));
    }
}
