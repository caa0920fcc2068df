//! A template that does not parse, and one with an unknown filter.
flow::workflow!(
    r#"
    name: greet
    inputs: {who: string}
    steps:
      - type: shell
        command: echo {{ inputs.who
      - type: shell
        command: echo {{ inputs.who | uper }}
    "#
);

fn main() {}
