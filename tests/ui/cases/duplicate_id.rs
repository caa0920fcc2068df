//! An id that two steps have.
flow::workflow!(
    r#"
    name: twice
    steps:
      - {id: build, type: shell, command: make}
      - {id: build, type: shell, command: make test}
    "#
);

fn main() {
    let _ = twice::State::Build;
}
