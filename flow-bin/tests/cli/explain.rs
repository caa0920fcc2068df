//! `flow explain`.

use flow_model::diagnostic::{Code, Family};

use super::Place;

#[test]
fn every_rule_is_explained_with_its_fault_drawn() {
    let place = Place::new();
    for code in Code::ALL {
        let ran = place.run(&["explain", code.as_str()]);
        assert_eq!(ran.code, 0, "{code}");
        assert!(ran.stdout.contains(code.title()), "{code}");
        // What only generated Rust can break is not the checker's to find.
        if code.family() == Family::Rust {
            continue;
        }
        let drawn = format!("[{code}]");
        // In the heading, and in at least one finding.
        assert!(ran.stdout.matches(&drawn).count() >= 2, "{}", ran.stdout);
        assert!(ran.stdout.contains("--> "), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "{code}");
    }
}

#[test]
fn a_code_may_be_written_in_any_way() {
    let place = Place::new();
    let expected = place.run(&["explain", "F020"]).stdout;
    for spelling in ["f020", "020", "20", "F20"] {
        assert_eq!(place.run(&["explain", spelling]).stdout, expected);
    }
}

#[test]
fn without_a_code_all_are_listed() {
    let ran = Place::new().run(&["explain"]);
    assert_eq!(ran.code, 0);
    for code in Code::ALL {
        let line = format!("  {code}  {}", code.title());
        assert!(ran.stdout.lines().any(|it| it == line), "{code}");
    }
}

#[test]
fn an_unknown_code_is_answered_with_the_nearest() {
    let place = Place::new();
    let ran = place.run(&["explain", "F019"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains("F020"), "{}", ran.stderr);
    let ran = place.run(&["explain", "secret"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("F115"), "{}", ran.stderr);
    for odd in ["", "F", "é", "F99999999999999999999", "-"] {
        assert_eq!(place.run(&["explain", odd]).code, 2, "{odd}");
    }
}
