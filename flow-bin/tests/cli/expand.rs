//! `flow expand`.

use super::{BAD, GOOD, Place};

#[test]
fn a_name_a_file_and_standard_input_become_a_module() {
    let place = Place::with(&[(".flow/workflows/ship.yaml", GOOD)]);
    let ran = place.run(&["expand", "ship"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    for part in [
        "\npub mod ship {\n",
        "    pub enum State {\n",
        "        pub const fn next(self, outcome: Outcome) -> Option<State> {\n",
        "    pub static GRAPH: Graph = {\n",
        "        pub fn run(inputs: Inputs, host: &Host) -> Boxed<'_, Result<Output, Error>> {\n",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let file = place.run(&["expand", ".flow/workflows/ship.yaml"]);
    assert_eq!(file.stdout, ran.stdout);
    let piped = place.pipe(&["expand", "-"], GOOD);
    assert!(piped.stdout.contains("pub mod stdin {"), "{}", piped.stdout);
    let builtin = place.run(&["expand", "tour"]);
    assert!(
        builtin.stdout.contains("pub mod tour {"),
        "{}",
        builtin.stdout
    );
}

#[test]
fn a_definition_with_errors_has_no_module() {
    let clash = "steps:\n  - {id: a-b, type: shell, command: make}\n  - {id: a_b, type: shell, command: make}\n";
    let place = Place::with(&[("bad.yaml", BAD), ("clash.yaml", clash)]);
    for (file, code, place_of_it) in [
        ("bad.yaml", "error[F013]", "bad.yaml:2:12"),
        ("clash.yaml", "error[F", "clash.yaml:3:"),
    ] {
        let ran = place.run(&["expand", file]);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
        assert!(ran.stderr.contains(code), "{}", ran.stderr);
        assert!(ran.stderr.contains(place_of_it), "{}", ran.stderr);
    }
    assert_eq!(place.run(&["expand", "no-such"]).code, 2);
}
