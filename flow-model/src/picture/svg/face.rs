//! What is written in the box of a node, and how large that makes it.

use super::measure::{Font, elide, width};
use crate::graph::{Graph, Jump, Kind, Node};
use crate::picture::label;

pub(super) const ID_SIZE: f64 = 13.0;
pub(super) const WORD_SIZE: f64 = 10.5;
pub(super) const LINE_SIZE: f64 = 11.0;
/// Side of the square behind the icon.
pub(super) const ICON: f64 = 28.0;
/// Room between the sides of a box and what is in it.
pub(super) const PADDING: f64 = 12.0;
/// Room between the icon and the text.
pub(super) const GUTTER: f64 = 10.0;

/// No line in a box is wider than this.
const WIDEST: f64 = 276.0;
/// How far the points of a condition's box stand out.
pub(super) const POINT: f64 = 12.0;

/// What is written in the box of a node.
pub(super) struct Face {
    pub(super) id: String,
    pub(super) word: &'static str,
    pub(super) line: Option<String>,
    pub(super) note: Option<String>,
    pub(super) shape: Shape,
    pub(super) look: Look,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Everything about the node, for those who point at it.
    pub(super) details: String,
}

/// The outline of a box.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Box,
    /// With a point on either side, for conditions.
    Hexagon,
    /// With round sides, for loops.
    Pill,
}

/// A colour and an icon.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// The class that gives the colour.
    pub(super) class: &'static str,
    /// The icon, drawn with a pen in a square of 16.
    pub(super) icon: &'static str,
}

impl Face {
    pub(super) fn new(graph: &Graph, node: &Node) -> Self {
        let shape = shape(&node.kind);
        let word = node.kind.word();
        let word_width = width(word, Font::Sans, WORD_SIZE);
        let id = elide(
            &label::id(node),
            Font::Bold,
            ID_SIZE,
            WIDEST - word_width - GUTTER,
        );
        let line = label::excerpt(graph, node).map(|l| elide(&l, Font::Mono, LINE_SIZE, WIDEST));
        let note = label::note(graph, node).map(|n| elide(&n, Font::Sans, WORD_SIZE, WIDEST));

        let text = [
            width(&id, Font::Bold, ID_SIZE) + GUTTER + word_width,
            line.as_deref()
                .map_or(0.0, |line| width(line, Font::Mono, LINE_SIZE)),
            note.as_deref()
                .map_or(0.0, |note| width(note, Font::Sans, WORD_SIZE)),
        ]
        .into_iter()
        .fold(96.0, f64::max);
        let height = match (&line, &note) {
            (None, None) => 44.0,
            (Some(_), None) | (None, Some(_)) => 54.0,
            (Some(_), Some(_)) => 71.0,
        };
        let sides = match shape {
            Shape::Box => 0.0,
            Shape::Hexagon => 2.0 * POINT,
            Shape::Pill => 12.0,
        };
        // Even widths keep the middles of boxes on whole pixels.
        let width = 2.0 * ((PADDING + ICON + GUTTER + text + PADDING + 2.0 + sides) / 2.0).ceil();
        Face {
            id,
            word,
            line,
            note,
            shape,
            look: look(&node.kind),
            width,
            height,
            details: label::details(graph, node),
        }
    }

    /// Where the icon starts.
    pub(super) fn indent(&self) -> f64 {
        match self.shape {
            Shape::Box => PADDING,
            Shape::Hexagon => PADDING + POINT,
            Shape::Pill => PADDING + 6.0,
        }
    }

    /// How far arrows stay away from the corners.
    pub(super) fn inset(&self) -> f64 {
        match self.shape {
            Shape::Box => 18.0,
            Shape::Hexagon => POINT + 16.0,
            Shape::Pill => 28.0,
        }
    }
}

fn shape(kind: &Kind) -> Shape {
    match kind {
        Kind::Condition { .. } => Shape::Hexagon,
        Kind::While { .. } | Kind::Loop { .. } | Kind::FanOut(_) => Shape::Pill,
        Kind::Jump(_)
        | Kind::Goto { .. }
        | Kind::Return { .. }
        | Kind::SetState
        | Kind::Call(_)
        | Kind::Shell(_)
        | Kind::Tool { .. }
        | Kind::Prompt(_)
        | Kind::Wait { .. }
        | Kind::Delegate { .. } => Shape::Box,
    }
}

fn look(kind: &Kind) -> Look {
    let (class, icon) = match kind {
        Kind::Condition { .. } => ("orange", "M8 2 14 8 8 14 2 8ZM8 8h.01"),
        Kind::While { .. } => ("green", "M13 8A5 5 0 1 1 11.5 4.5M13 2.2V5.2H10"),
        Kind::Loop { .. } => (
            "green",
            "M3 3.5H10M3 7H8M3 10.5H6M11.5 6.5V13M9 10.5l2.5 2.5L14 10.5",
        ),
        Kind::FanOut(_) => ("green", "M8 2V6M8 6 3.5 9.5V13.5M8 6l4.5 3.5v4M8 6v7.5"),
        Kind::Jump(Jump::Break) => ("slate", "M9.5 3H3.5V13H9.5M6.5 8H14M11.5 5.5 14 8l-2.5 2.5"),
        Kind::Jump(Jump::Continue) => ("slate", "M3 4l4 4-4 4M9 4l4 4-4 4"),
        Kind::Goto { .. } => (
            "slate",
            "M12.5 3V7A2.5 2.5 0 0 1 10 9.5H3.5M6.5 6.5l-3 3 3 3",
        ),
        Kind::Return { .. } => ("rose", "M4 14V2.5H12.5L10.5 5.5l2 3H4"),
        Kind::SetState => (
            "cyan",
            "M3 13 3.6 10.2 10.4 3.4a1.3 1.3 0 0 1 1.8 0l.4.4a1.3 1.3 0 0 1 0 1.8L5.8 12.4Z",
        ),
        Kind::Call(_) => ("indigo", "M2.5 2.5H9.5V9.5H2.5ZM6.5 12V13.5H13.5V6.5H12"),
        Kind::Shell(_) => ("teal", "M3 4l4 4-4 4M8.5 12.5H13.5"),
        Kind::Tool { .. } => (
            "blue",
            "M6 2V5.5M10 2V5.5M4 5.5H12V8a4 4 0 0 1-8 0ZM8 12v2.5",
        ),
        Kind::Prompt(_) => (
            "amber",
            "M3.5 3h9A1.5 1.5 0 0 1 14 4.5v5A1.5 1.5 0 0 1 12.5 11H8L4.5 13.8V11h-1A1.5 1.5 0 0 1 2 9.5v-5A1.5 1.5 0 0 1 3.5 3Z",
        ),
        Kind::Wait { .. } => ("slate", "M8 2.2a5.8 5.8 0 1 0 .01 0ZM8 5V8.3l2.3 1.5"),
        Kind::Delegate { .. } => (
            "violet",
            "M8 7.6a2.7 2.7 0 1 0-.01 0ZM3 13.6C3.4 11 5.4 9.8 8 9.8s4.6 1.2 5 3.8",
        ),
    };
    Look { class, icon }
}
