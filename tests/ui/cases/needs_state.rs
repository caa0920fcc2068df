//! State read outside `needs_state`.
flow::workflow!(
    r#"
    name: narrow
    state: {a: 1, b: 2}
    steps:
      - type: shell
        needs_state: [a]
        command: echo {{ state.a }} {{ state.b }}
    "#
);

fn main() {}
