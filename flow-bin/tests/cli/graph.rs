//! `flow graph` and `flow schema`.

use std::fs;

use super::{BAD, GOOD, Place};

#[test]
fn each_format_draws_the_same_workflow() {
    let place = Place::with(&[(".flow/workflows/ship.yaml", GOOD)]);
    let starts = [
        ("ascii", "ship"),
        ("mermaid", ""),
        ("dot", "digraph"),
        ("svg", "<svg"),
    ];
    for (format, start) in starts {
        let ran = place.run(&["graph", "ship", "--format", format]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.starts_with(start), "{}", ran.stdout);
        assert!(ran.stdout.contains("make"), "{}", ran.stdout);
        assert!(ran.stdout.ends_with('\n'));
        assert_eq!(ran.stderr, "");
    }
    let default = place.run(&["graph", "ship"]);
    let ascii = place.run(&["graph", "ship", "--format=ascii"]);
    assert_eq!(default.stdout, ascii.stdout);
}

#[test]
fn a_name_a_path_and_standard_input_can_be_drawn() {
    let place = Place::with(&[
        (".flow/workflows/a/b.yaml", GOOD),
        ("plain", GOOD),
        ("dir/x.yml", GOOD),
    ]);
    let ran = place.run(&["graph", "a:b"]);
    assert!(ran.stdout.starts_with("a:b\n"), "{}", ran.stdout);
    assert_eq!(place.run(&["graph", "dir/x.yml"]).code, 0);
    assert_eq!(place.run(&["graph", "plain"]).code, 0);
    let ran = place.pipe(&["graph", "-"], GOOD);
    assert!(ran.stdout.starts_with("stdin\n"), "{}", ran.stdout);
}

#[test]
fn the_ending_of_the_output_says_what_is_drawn() {
    let place = Place::with(&[("a.yaml", GOOD)]);
    for (file, start) in [("a.svg", "<svg"), ("a.dot", "digraph"), ("a.txt", "a\n")] {
        let ran = place.run(&["graph", "a.yaml", "-o", file]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
        let drawn = fs::read_to_string(place.path(file)).unwrap();
        assert!(drawn.starts_with(start), "{drawn}");
    }
    let ran = place.run(&["graph", "a.yaml", "-o", "no/such/a.svg"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("`no/such/a.svg` cannot be written"));
}

#[test]
fn a_definition_with_errors_is_not_drawn() {
    let place = Place::with(&[("a.yaml", BAD)]);
    let ran = place.run(&["graph", "a.yaml", "-o", "a.svg"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
    assert!(ran.stderr.contains("error[F013]"), "{}", ran.stderr);
    assert!(!place.path("a.svg").exists());
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let place = Place::with(&[(".flow/workflows/deploy.yaml", GOOD)]);
    let ran = place.run(&["graph", "deplyo"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("did you mean `deploy`?"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["graph", "something-else"]);
    assert!(ran.stderr.contains("flow list"), "{}", ran.stderr);
    for odd in ["../deploy", "..", "", "a:..:b", ".flow/workflows"] {
        assert_eq!(place.run(&["graph", odd]).code, 2, "{odd}");
    }
}

#[test]
fn the_schema_accepts_a_definition_and_refuses_a_fault() {
    let ran = Place::new().run(&["schema"]);
    assert_eq!(ran.code, 0);
    let schema = jsonschema::validator_for(&ran.json()).unwrap();
    let good = serde_json::json!({"steps": [{"type": "shell", "command": "make"}]});
    let bad = serde_json::json!({"steps": [{"type": "shell", "comand": "make"}]});
    assert!(schema.is_valid(&good));
    assert!(!schema.is_valid(&bad));
}
