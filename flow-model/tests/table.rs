//! The examples that `flow explain` shows are true.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use flow_model::diagnostic::{self, Code, Style};
use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;
use flow_model::{Compiled, compile};

/// Knows no other workflow, for certain.
struct Alone;

impl Loader for Alone {
    fn import(&self, _from: &str, _path: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }

    fn workflow(&self, _name: &str) -> Lookup {
        Lookup::NotFound(Vec::new())
    }
}

fn report(compiled: &Compiled) -> String {
    compiled
        .findings
        .iter()
        .map(|finding| diagnostic::text(finding, &compiled.sources, Style::Plain))
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[test]
fn every_bad_example_breaks_its_rule_and_no_other() {
    let mut wrong = String::new();
    for code in Code::ALL
        .iter()
        .filter(|code| !code.bad_example().is_empty())
    {
        let compiled = compile(Source::new("example.yaml", code.bad_example()), &Alone);
        let mut codes: Vec<Code> = compiled.findings.iter().map(|f| f.code).collect();
        codes.dedup();
        let found =
            codes.contains(code) && codes.iter().all(|c| c == code || *c == Code::Deprecated);
        if !found {
            wrong += &format!("{code}:\n{}\n{}\n", code.bad_example(), report(&compiled));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_good_example_breaks_no_rule() {
    let mut wrong = String::new();
    for code in Code::ALL
        .iter()
        .filter(|code| !code.good_example().is_empty())
    {
        let compiled = compile(Source::new("example.yaml", code.good_example()), &Alone);
        if !compiled.findings.is_empty() {
            wrong += &format!("{code}:\n{}\n{}\n", code.good_example(), report(&compiled));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn codes_are_unique_and_in_order() {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert!(codes.is_sorted());
    assert!(codes.windows(2).all(|pair| pair[0] != pair[1]));
}
