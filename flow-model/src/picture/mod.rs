//! Pictures of a graph, for a page, a terminal or a diagram tool.
//!
//! Every function here is pure: the same graph gives the same text, byte for byte. All of them draw
//! the same sketch, so they agree on what is connected to what and on the words at the
//! arrows. A graph whose indices lead nowhere is drawn without the arrows that lead nowhere.
//!
//! An arrow says `success` only where the node has another way out; two ways that lead to the same
//! node are one arrow.

#[cfg(feature = "tooling")]
mod ascii;
#[cfg(feature = "tooling")]
mod dot;
#[cfg_attr(
    not(feature = "tooling"),
    expect(dead_code, reason = "Mermaid needs less of it")
)]
mod label;
mod mermaid;
#[cfg(test)]
mod samples;
#[cfg_attr(
    not(feature = "tooling"),
    expect(dead_code, reason = "Mermaid needs less of it")
)]
mod sketch;
#[cfg(feature = "tooling")]
mod svg;

#[cfg(feature = "tooling")]
pub use ascii::ascii;
#[cfg(feature = "tooling")]
pub use dot::dot;
pub use mermaid::mermaid;
#[cfg(feature = "tooling")]
pub use svg::svg;
