//! Every definition under `tests/corpus/` does what its folder says.
//!
//! `good/` has no finding, `alias/` lowers to the graph of its canonical twin, `bad/` and
//! `hostile/` have exactly the findings drawn in the `.expected` file beside them, `real/` runs.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

#[path = "corpus/folder.rs"]
mod folder;
#[path = "corpus/picture.rs"]
mod picture;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use flow_model::diagnostic::{Code, Diagnostic, Family, Severity, Sources};
use flow_model::graph::{Body, Graph, Kind, Target};
use flow_model::source::{MAX_BYTES, Source};
use flow_model::{Compiled, compile};

use folder::{Definition, Folder, definitions};

/// Checks every definition and fails once, naming all that are wrong.
fn each(definitions: &[Definition], check: impl Fn(&Definition) -> Result<(), String>) {
    let wrong: Vec<String> = definitions
        .iter()
        .filter_map(|definition| {
            let reason = check(definition).err()?;
            Some(format!("== {}\n{reason}", definition.name))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn drawn(compiled: &Compiled) -> String {
    picture::draw(&compiled.findings, &compiled.sources)
}

fn graph(compiled: &Compiled) -> Result<&Graph, String> {
    compiled.graph().ok_or_else(|| drawn(compiled))
}

/// All definitions that must have a graph.
fn sound() -> Vec<Definition> {
    ["good", "alias", "real", "workflows"]
        .into_iter()
        .flat_map(definitions)
        .collect()
}

fn bodies(graph: &Graph) -> Vec<&Body> {
    let mut bodies = vec![&graph.body, &graph.on_error.body];
    for task in graph.tasks.iter() {
        bodies.push(&task.body);
        bodies.extend(task.on_error.as_ref().map(|on_error| &on_error.body));
    }
    bodies
}

/// The doubled `type` of a prompt, which has no counterpart in JSON.
fn doubled(finding: &Diagnostic) -> bool {
    finding.message.contains("second `type`")
}

/// A graph as text, without the lines that only tell where its nodes were written.
fn without_lines(graph: &Graph) -> String {
    let mut graph = graph.clone();
    let blank = |body: &mut Body| {
        for node in body.nodes.to_mut() {
            node.line = 0;
        }
    };
    blank(&mut graph.body);
    blank(&mut graph.on_error.body);
    for task in graph.tasks.to_mut() {
        blank(&mut task.body);
        if let Some(on_error) = &mut task.on_error {
            blank(&mut on_error.body);
        }
    }
    serde_json::to_string_pretty(&graph).unwrap()
}

/// The first lines in which two graphs differ.
fn same_graph(left: &Graph, right: &Graph) -> Result<(), String> {
    let (left, right) = (without_lines(left), without_lines(right));
    let differ = left.lines().zip(right.lines()).position(|(a, b)| a != b);
    let Some(at) = differ else {
        return if left.len() == right.len() {
            Ok(())
        } else {
            Err("one graph is the beginning of the other".to_owned())
        };
    };
    let near = |text: &str| {
        let lines: Vec<&str> = text.lines().skip(at.saturating_sub(6)).take(12).collect();
        lines.join("\n")
    };
    Err(format!(
        "the graphs differ at line {at}:\n{}\n--- and\n{}",
        near(&left),
        near(&right)
    ))
}

#[test]
fn good_definitions_and_called_workflows_have_no_finding() {
    let all: Vec<Definition> = ["good", "workflows"]
        .into_iter()
        .flat_map(definitions)
        .collect();
    each(&all, |definition| {
        let compiled = definition.compile();
        match compiled.findings.is_empty() {
            true => graph(&compiled).map(|_| ()),
            false => Err(drawn(&compiled)),
        }
    });
}

#[test]
fn a_spelling_of_the_documents_lowers_to_the_graph_of_the_canonical_one() {
    let all = definitions("alias");
    let canonical: BTreeMap<&str, &Definition> = all
        .iter()
        .filter_map(|definition| Some((definition.stem().strip_suffix(".canonical")?, definition)))
        .collect();
    each(&all, |definition| {
        let compiled = definition.compile();
        if definition.stem().ends_with(".canonical") {
            return match compiled.findings.as_slice() {
                [] => Ok(()),
                _ => Err(drawn(&compiled)),
            };
        }
        let (older, others): (Vec<_>, Vec<_>) = compiled
            .findings
            .iter()
            .cloned()
            .partition(|finding| finding.code == Code::Deprecated);
        if older.is_empty() {
            return Err("has no older spelling".to_owned());
        }
        if !others.is_empty() {
            return Err(picture::draw(&others, &compiled.sources));
        }
        // The tier that is set by hand, and types of state fields, have one spelling only.
        if definition.stem().starts_with("only-") {
            return graph(&compiled).map(|_| ());
        }
        let twin = canonical
            .get(definition.stem())
            .ok_or("has no canonical twin")?;
        same_graph(graph(&compiled)?, graph(&twin.compile())?)
    });
}

#[test]
fn bad_definitions_have_exactly_the_findings_drawn_beside_them() {
    each(&definitions("bad"), |definition| {
        let compiled = definition.compile();
        picture::expect(&definition.sibling("expected"), &drawn(&compiled))
    });
}

#[test]
fn a_definition_that_breaks_one_rule_has_findings_of_that_rule_only() {
    each(&definitions("bad"), |definition| {
        let code = definition.stem().split('-').next().unwrap();
        let Some(code) = Code::parse(code) else {
            return Ok(());
        };
        let compiled = definition.compile();
        let mut found: BTreeSet<Code> = compiled.findings.iter().map(|f| f.code).collect();
        // Some rules are only about older spellings, which say so themselves.
        if code != Code::Deprecated {
            found.remove(&Code::Deprecated);
        }
        match found == BTreeSet::from([code]) {
            true => Ok(()),
            false => Err(drawn(&compiled)),
        }
    });
}

#[test]
fn every_rule_of_the_checker_is_broken_by_some_definition() {
    let found: BTreeSet<Code> = ["bad", "hostile"]
        .into_iter()
        .flat_map(definitions)
        .flat_map(|definition| read(&definition).findings)
        .map(|finding| finding.code)
        .collect();
    let missing: Vec<&Code> = Code::ALL
        .iter()
        // What generated Rust cannot express is no fault of a definition.
        .filter(|code| code.family() != Family::Rust && !found.contains(code))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn ten_different_faults_give_ten_findings_in_document_order() {
    let all: Vec<Definition> = definitions("bad")
        .into_iter()
        .filter(|definition| definition.stem().starts_with("ten-"))
        .collect();
    assert!(all.len() >= 3);
    each(&all, |definition| {
        let compiled = definition.compile();
        let faults = || {
            compiled
                .findings
                .iter()
                .filter(|f| f.code != Code::Deprecated)
        };
        let codes: BTreeSet<Code> = faults().map(|f| f.code).collect();
        let starts: Vec<u32> = faults().map(|f| f.span.start).collect();
        let right = codes.len() == 10 && starts.len() == 10 && starts.is_sorted_by(|a, b| a < b);
        if right { Ok(()) } else { Err(drawn(&compiled)) }
    });
}

#[test]
fn findings_about_a_json_value_are_the_same_and_have_paths() {
    each(&definitions("bad"), |definition| {
        let Ok(tree) = definition.source().tree() else {
            return Ok(());
        };
        let text = definition.compile();
        // A JSON value cannot hold a key twice, nor be told from its own import by a path.
        let twice = |f: &Diagnostic| f.code == Code::DuplicateKey || doubled(f);
        let unreadable = |f: &Diagnostic| f.code == Code::Syntax;
        if tree.entries().is_none() || text.findings.iter().any(|f| twice(f) || unreadable(f)) {
            return Ok(());
        }
        let value = compile(
            Source::from_value(&definition.name, &tree.to_json()),
            &Folder,
        );
        let said = |compiled: &Compiled| -> Vec<(Code, String, String)> {
            let findings = compiled.findings.iter();
            findings
                .map(|f| (f.code, f.message.clone(), f.path.clone()))
                .collect()
        };
        let (text, value) = (said(&text), said(&value));
        if value.iter().any(|(_, _, path)| path.is_empty()) {
            return Err(format!("a finding has no path:\n{value:#?}"));
        }
        match text == value {
            true => Ok(()),
            false => Err(format!("as text: {text:#?}\nas a value: {value:#?}")),
        }
    });
}

#[test]
fn real_definitions_have_no_error_and_only_the_lints_drawn_beside_them() {
    each(&definitions("real"), |definition| {
        let compiled = definition.compile();
        graph(&compiled)?;
        let picture = drawn(&compiled);
        if compiled.findings.is_empty() {
            return match definition.sibling("expected").exists() {
                false => Ok(()),
                true => Err("expects findings and has none".to_owned()),
            };
        }
        picture::expect(&definition.sibling("expected"), &picture)
    });
}

#[test]
fn a_graph_survives_serialisation() {
    each(&sound(), |definition| {
        let compiled = definition.compile();
        let graph = graph(&compiled)?;
        let text = serde_json::to_string(graph).unwrap();
        let back: Graph = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match back == *graph {
            true => Ok(()),
            false => Err("comes back different".to_owned()),
        }
    });
}

#[test]
fn every_edge_leads_to_a_node_and_every_id_is_unique() {
    each(&sound(), |definition| {
        let compiled = definition.compile();
        let graph = graph(&compiled)?;
        for body in bodies(graph) {
            let inside = |target: Target| match target {
                Target::Node(at) => usize::from(at) < body.nodes.len(),
                Target::Complete => true,
            };
            if !inside(body.entry) {
                return Err("the entry leads nowhere".to_owned());
            }
            let mut ids = HashSet::new();
            for node in body.nodes.iter() {
                if !ids.insert(&node.id) {
                    return Err(format!("`{}` is there twice", node.id));
                }
                if !node.edges.iter().all(|edge| inside(edge.to)) {
                    return Err(format!("an edge of `{}` leads nowhere", node.id));
                }
                if node.parent.is_some_and(|at| !inside(Target::Node(at))) {
                    return Err(format!("`{}` has no parent", node.id));
                }
                if matches!(&node.kind, Kind::FanOut(fan) if usize::from(fan.task) >= graph.tasks.len())
                {
                    return Err(format!("`{}` has no task", node.id));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn a_definition_and_its_json_value_lower_to_the_same_graph() {
    each(&sound(), |definition| {
        let text = definition.compile();
        let tree = definition.source().tree().map_err(|f| f.message)?;
        if text.findings.iter().any(doubled) {
            return Ok(());
        }
        let value = compile(
            Source::from_value(&definition.name, &tree.to_json()),
            &Folder,
        );
        same_graph(graph(&text)?, graph(&value)?)
    });
}

/// A hostile file, which need not even be text.
fn read(definition: &Definition) -> Compiled {
    match Source::from_bytes(&definition.name, &definition.bytes) {
        Ok(source) => compile(source, &Folder),
        Err(unreadable) => {
            let (source, finding) = *unreadable;
            Compiled::refused(source, finding)
        }
    }
}

#[test]
fn hostile_files_give_exactly_the_findings_drawn_beside_them() {
    each(&definitions("hostile"), |definition| {
        let compiled = read(definition);
        picture::expect(&definition.sibling("expected"), &drawn(&compiled))
    });
}

/// The only finding of a text made here.
fn only(text: String) -> (Code, String) {
    let compiled = compile(Source::new("made.yaml", text), &Folder);
    match compiled.findings.as_slice() {
        [finding] => (finding.code, finding.message.clone()),
        findings => panic!(
            "{} findings:\n{}",
            findings.len(),
            picture::draw(&findings[..findings.len().min(5)], &Sources::default())
        ),
    }
}

#[test]
fn a_text_beyond_the_limit_is_refused_before_it_is_parsed() {
    let line = "  - {type: shell, command: make}\n";
    let text = format!("steps:\n{}", line.repeat(50 * MAX_BYTES / line.len()));
    assert!(text.len() > 49 * MAX_BYTES);
    let (code, message) = only(text);
    assert_eq!(code, Code::TooLarge);
    assert!(message.contains("more than 1048576 bytes"), "{message}");
}

#[test]
fn brackets_nested_a_hundred_thousand_deep_are_one_finding() {
    for (open, close) in [
        ("[", "]"),
        ("{a: ", "}"),
        ("{\"a\":", "}"),
        ("- ", ""),
        ("? ", ""),
    ] {
        let depth = 100_000;
        for text in [
            format!("steps: {}{}", open.repeat(depth), close.repeat(depth)),
            format!("{}1{}", open.repeat(depth), close.repeat(depth)),
            open.repeat(depth),
        ] {
            let (code, _) = only(text);
            assert!(
                matches!(code, Code::TooLarge | Code::Syntax),
                "{open}: {code}"
            );
        }
    }
}

#[test]
fn aliases_are_counted_as_often_as_they_are_written_out() {
    let mut text = "state:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..60 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text += &format!("  a{level}: &a{level} [{items}]\n");
    }
    assert_eq!(only(text).0, Code::TooLarge);
}

#[test]
fn one_long_text_repeated_by_aliases_is_counted_in_bytes() {
    let long = "x".repeat(200_000);
    let aliases = "  - *long\n".repeat(1000);
    let (code, _) = only(format!("state:\n  long: &long {long}\n  all:\n{aliases}"));
    assert_eq!(code, Code::TooLarge);
}

#[test]
fn a_thousand_faults_are_a_thousand_findings() {
    let steps: String = (0..1000)
        .map(|at| format!("  - {{type: shell, command: make, colour{at}: red}}\n"))
        .collect();
    let compiled = compile(
        Source::new("made.yaml", format!("steps:\n{steps}")),
        &Folder,
    );
    assert_eq!(compiled.findings.len(), 1000);
    assert!(compiled.findings.iter().all(|f| f.code == Code::UnknownKey));
}

#[test]
fn a_definition_at_every_limit_is_accepted() {
    let steps = "  - {type: shell, command: make}\n".repeat(1000);
    let compiled = compile(
        Source::new("steps.yaml", format!("steps:\n{steps}")),
        &Folder,
    );
    assert_eq!(compiled.findings, []);
    let mut states = "initial_state: s0\nstates:\n".to_owned();
    for at in 0..100 {
        let transitions: String = (0..19)
            .map(|n| {
                let next = (at + 1) % 100;
                format!("      - {{condition: {{pattern_match: \"p{n}\"}}, next_state: s{next}}}\n")
            })
            .collect();
        states += &format!(
            "  s{at}:\n    action: {{tool: get_screen_content}}\n    transitions:\n{transitions}      - {{condition: always, next_state: end}}\n"
        );
    }
    let states = states
        .replacen("  s99:", "  end:", 1)
        .replace("next_state: s99", "next_state: s0");
    let compiled = compile(Source::new("states.yaml", states), &Folder);
    assert!(
        compiled
            .findings
            .iter()
            .all(|f| f.severity != Severity::Error),
        "{}",
        drawn(&compiled)
    );
}
