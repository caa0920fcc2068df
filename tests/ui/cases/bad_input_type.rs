//! A type that does not exist, and a default of another type.
flow::workflow!(
    r#"
    name: typed
    inputs:
      count: {type: integr}
      size: {type: integer, default: large}
    steps:
      - type: shell
        command: echo {{ inputs.count }} {{ inputs.size }}
    "#
);

fn main() {}
