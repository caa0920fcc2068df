//! How much code a state costs.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use flow_codegen::{Options, module};
use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use proc_macro2::{TokenStream, TokenTree};

/// States in a row, each with a way on and a way out.
fn row(states: usize) -> Graph {
    let mut text = String::from("initial_state: s0\nstates:\n");
    for at in 0..states {
        let next = at + 1;
        text += &format!(
            "  s{at}:\n    action: {{type: shell, command: make {at}}}\n    transitions:\n      - {{condition: success, next_state: s{next}}}\n      - {{condition: failure, next_state: s{states}}}\n"
        );
    }
    text += &format!("  s{states}:\n    action: {{tool: list_terminal_sessions}}\n");
    let compiled = compile(Source::new("row.yaml", text), &NoLoader);
    compiled.into_graph().unwrap()
}

/// Every word, mark and literal, and both ends of every pair of brackets.
fn count(tokens: TokenStream) -> usize {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Group(group) => 2 + count(group.stream()),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => 1,
        })
        .sum()
}

/// The tokens of everything but `GRAPH`, and of `GRAPH`.
fn parts(graph: &Graph) -> (usize, usize) {
    let all = module(graph, &Options::default()).tokens;
    let whole = count(all.clone());
    let literal = literal(all).map_or(0, count);
    (whole - literal, literal)
}

/// The value of `static GRAPH`.
fn literal(tokens: TokenStream) -> Option<TokenStream> {
    let mut seen = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "GRAPH" => seen = true,
            TokenTree::Group(group) if seen => return Some(group.stream()),
            TokenTree::Group(group) => {
                if let Some(found) = literal(group.stream()) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn a_state_with_its_edges_costs_at_most_a_hundred_tokens() {
    let (code, literal) = parts(&row(20));
    let (more_code, more_literal) = parts(&row(40));
    let each = (more_code - code) as f64 / 20.0;
    let each_literal = (more_literal - literal) as f64 / 20.0;
    println!("20 states: {code} tokens and {literal} for the graph");
    println!("each state: {each} tokens and {each_literal} for the graph");
    assert!(each + each_literal <= 100.0, "{each} and {each_literal}");
}
