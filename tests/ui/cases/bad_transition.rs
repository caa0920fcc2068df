//! A condition that no transition can have.

flow::workflow!(
    r#"
    name: shop
    initial_state: build
    states:
      build:
        action: {type: shell, command: make}
        transitions:
          - {condition: succes, next_state: done}
          - {condition: {pattern_match: "("}, next_state: done}
          - {condition: always, next_state: done}
      done: {action: {type: shell, command: "true"}}
    "#
);

fn main() {
    let _ = shop::State::INITIAL;
}
