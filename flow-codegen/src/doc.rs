//! Doc comments.

use flow_model::graph::{Graph, Node};
use flow_model::picture;
use proc_macro2::TokenStream;
use quote::quote;

/// A doc comment on the item that follows.
pub(crate) fn doc(text: &str) -> TokenStream {
    let text = lines(text);
    quote!(#[doc = #text])
}

/// What a definition says, or something else where it says nothing.
pub(crate) fn said_or(said: Option<&str>, otherwise: &str) -> TokenStream {
    match said.map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => doc(&plain(said)),
        None => doc(otherwise),
    }
}

/// What a state is.
pub(crate) fn state(node: &Node) -> TokenStream {
    let otherwise = format!("`{}`, line {}.", node.kind.word(), node.line);
    said_or(node.description.as_deref(), &otherwise)
}

/// The text of a module: what the workflow is for, and its picture.
pub(crate) fn module(graph: &Graph) -> String {
    let said = match graph.description.as_deref().map(str::trim) {
        Some(said) if !said.is_empty() => plain(said),
        _ => format!("The workflow `{}`.", graph.name),
    };
    let picture = picture::mermaid(graph);
    lines(&format!(
        "{said}\n\n```mermaid\n{}\n```",
        picture.trim_end()
    ))
}

/// Text of a person that rustdoc shows as it is.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '<' | '[' | '\\') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// Every line starts with a space, as written comments do.
fn lines(text: &str) -> String {
    let all: Vec<String> = text
        .lines()
        .map(|line| match line.is_empty() {
            true => String::new(),
            false => format!(" {line}"),
        })
        .collect();
    all.join("\n")
}
