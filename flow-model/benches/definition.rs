//! Reading, checking and lowering whole definitions, with the YAML parser alone beside it.

use std::fmt::Write;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use flow_model::diagnostic::{self, Style};
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_model::{Compiled, compile};
use saphyr_parser::Parser;

fn main() {
    divan::main();
}

/// Definitions of about 200 lines, one for each way to write control flow.
const DEFINITIONS: [(&str, &str); 3] = [
    ("steps", include_str!("steps.yaml")),
    ("js", include_str!("js.yaml")),
    ("states", include_str!("states.yaml")),
];
const NAMES: [&str; 3] = ["steps", "js", "states"];

fn definition(name: &str) -> &'static str {
    let found = DEFINITIONS.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, text)| text)
}

fn compiled(text: &str) -> Compiled {
    compile(Source::new("definition.yaml", text), &NoLoader)
}

/// Everything: text to findings and graph.
#[divan::bench(args = NAMES)]
fn whole(bencher: Bencher, name: &str) {
    let text = definition(name);
    assert!(compiled(text).graph().is_some(), "{name} has errors");
    bencher
        .counter(BytesCount::of_str(text))
        .bench(|| compiled(black_box(text)));
}

/// The share of it that parsing YAML costs at least: the parser's events, looked at by nobody.
#[divan::bench(args = NAMES)]
fn yaml_events(bencher: Bencher, name: &str) {
    let text = definition(name);
    bencher
        .counter(BytesCount::of_str(text))
        .bench(|| Parser::new_from_str(black_box(text)).count());
}

/// The cost of a step stays the same up to the most steps a definition may have.
#[divan::bench(args = [10, 100, 1_000])]
fn many_steps(bencher: Bencher, steps: usize) {
    let text = chain(steps);
    assert_eq!(compiled(&text).findings, []);
    bencher
        .counter(ItemsCount::new(steps))
        .bench(|| compiled(black_box(&text)));
}

/// A hundred findings as text, JSON and annotations.
#[divan::bench]
fn render_100_findings(bencher: Bencher) {
    let mut text = chain(100);
    for index in 0..100 {
        let _ = writeln!(
            text,
            "  - {{type: shell, comand: 'echo {index}', command: 'true'}}",
        );
    }
    let compiled = compiled(&text);
    assert_eq!(compiled.findings.len(), 100);
    bencher.counter(ItemsCount::new(100_usize)).bench(|| {
        let sources = &compiled.sources;
        let mut length = 0;
        for finding in &compiled.findings {
            length += diagnostic::text(finding, sources, Style::Colour).len();
            length += diagnostic::github(finding, sources).len();
        }
        let all = compiled.findings.iter().map(|finding| (finding, sources));
        length + diagnostic::json(all).to_string().len()
    });
}

/// Steps that each read what the one before has written, every other one a branch.
fn chain(steps: usize) -> String {
    let mut text = String::from("inputs: {who: string}\nstate: {value_0: 1}\nsteps:\n");
    for index in 1..=steps / 2 {
        let before = index - 1;
        let _ = write!(
            text,
            "  - id: step_{index}
    type: shell
    command: echo {{{{ inputs.who }}}} \"{{{{ state.value_{before} | default('none') }}}}\"
    output_format: text
    output_to: value_{index}
  - id: branch_{index}
    type: condition
    if: \"{{{{ state.value_{index} != 'x' }}}}\"
    then: []
",
        );
    }
    text
}
