//! State and inputs that nothing declares.
flow::workflow!(
    r#"
    name: count
    inputs: {limit: {type: integer, default: 3}}
    state: {counter: 0}
    steps:
      - type: while
        if: "{{ state.conter < inputs.limt }}"
        max_iterations: 5
        steps:
          - type: set_state
            updates: [{path: counter, operation: increment, value: 1}]
    "#
);

fn main() {
    let _ = count::Inputs { limit: 4 };
}
