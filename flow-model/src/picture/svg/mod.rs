//! A picture as SVG, laid out here and drawn without any other program.

mod draw;
mod face;
mod layered;
mod measure;
mod nest;
mod page;
mod style;

use crate::graph::Graph;
use crate::picture::sketch::Sketch;

/// Draws the graph as an SVG document.
///
/// The picture stands on its own: it has its own style sheet with colours for light and dark, needs
/// no font in particular, and shows everything about a node to a person who points at it. All its
/// rules are scoped to the class `flow-picture`, so it can be put into a page as it is.
///
/// ```
/// # use flow_model::graph::Graph;
/// fn save(graph: &Graph) -> std::io::Result<()> {
///     std::fs::write("workflow.svg", flow_model::picture::svg(graph))
/// }
/// ```
#[must_use]
pub fn svg(graph: &Graph) -> String {
    let sketch = Sketch::new(graph);
    draw::draw(&page::Page::new(&sketch))
}

#[cfg(test)]
mod tests;
