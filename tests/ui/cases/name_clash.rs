//! Two names that are one in Rust.
flow::workflow!(
    r#"
    name: clash
    inputs: {dry-run: boolean, dry_run: boolean}
    steps:
      - {id: a-b, type: shell, command: "echo {{ inputs['dry-run'] }} {{ inputs.dry_run }}"}
      - {id: a_b, type: shell, command: make}
    "#
);

fn main() {}
