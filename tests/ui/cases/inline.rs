//! The same in a definition that stands in the program: the line is the program's.
flow::workflow!(
    r#"
    name: order
    initial_state: darft
    states:
      draft:
        action: {tool: list_terminal_sessions}
        transitions:
          - {condition: always, next_state: paid}
      paid:
        action: {tool: list_terminal_sessions}
    "#
);

fn main() {
    let _ = order::State::Paid;
}
