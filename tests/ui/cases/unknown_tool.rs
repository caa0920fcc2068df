//! A tool that nobody has, and a parameter that a tool does not take.
flow::workflow!(
    r#"
    name: shell
    initial_state: open
    states:
      open:
        action: {tool: open_termnal}
        transitions:
          - {condition: always, next_state: wait}
      wait:
        action: {tool: await_output, params: {patern: "\\$", timeout: 5}}
    "#
);

fn main() {}
