//! A layered layout of boxes and arrows, top to bottom.
//!
//! The stages are those of Sugiyama, one module each: [`rank`] gives every box a layer, [`rows`]
//! splits arrows into steps from row to row, [`order`] sorts the rows so that few arrows cross,
//! [`place`] finds a horizontal place for everything, [`straighten`] improves it, [`route`] finds the vertical places and bends
//! the arrows at right angles.
//!
//! Boxes stand in odd rows. The even rows between them hold the labels of arrows, so that a label
//! has a place of its own like a box. Horizontal parts of arrows run only between rows, vertical
//! parts in rows have a place of their own, and so no arrow can run through a box or a label.

mod order;
mod place;
mod rank;
mod route;
mod rows;
mod straighten;

use crate::picture::sketch::Tone;

/// What is to be laid out.
#[derive(Default)]
pub(super) struct Diagram {
    pub(super) items: Vec<Item>,
    pub(super) links: Vec<Link>,
}

/// A box.
#[derive(Clone, Copy)]
pub(super) struct Item {
    pub(super) width: f64,
    pub(super) height: f64,
    /// How far arrows stay away from its corners.
    pub(super) inset: f64,
    pub(super) rank: Rank,
}

/// Where a box must stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// Above everything.
    First,
    /// Wherever its arrows put it.
    Free,
    /// Below everything.
    Last,
}

/// An arrow.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) from: usize,
    pub(super) to: Head,
    /// Where it must leave its box, from the box's left side; `None` leaves the choice.
    pub(super) leaves: Option<f64>,
    /// Where it must enter its box, from the box's left side; `None` leaves the choice.
    pub(super) enters: Option<f64>,
    /// Width and height of its label.
    pub(super) label: Option<(f64, f64)>,
    pub(super) tone: Tone,
}

/// Where an arrow leads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// To a box.
    Item(usize),
    /// Out at the right side.
    Side,
}

/// A point; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// Where everything stands. The left and upper bound are zero.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The upper left corner of each item.
    pub(super) places: Vec<Point>,
    pub(super) routes: Vec<Route>,
}

/// The way of an arrow, from box to box, all of it horizontal or vertical.
#[derive(Clone, Default)]
pub(super) struct Route {
    pub(super) points: Vec<Point>,
    /// The middle of the label.
    pub(super) label: Option<Point>,
}

/// How much longer arrows may be to avoid a crossing.
const CROSSING: f64 = 120.0;
/// How much longer arrows may be to keep two boxes in the order they are given in.
const SWAP: f64 = 60.0;

/// Finds a place for every box and a way for every arrow.
pub(super) fn arrange(diagram: &Diagram) -> Layout {
    let back = rank::back_links(diagram);
    let ranks = rank::ranks(diagram, &back);
    let mut rows = rows::Rows::new(diagram, &back, &ranks);

    // Crossings are not everything: an order that lets arrows be short is easier to read.
    let mut best: Option<(f64, Vec<Vec<usize>>, Vec<f64>)> = None;
    for order in order::orders(&rows) {
        rows.rows = order.rows;
        let mut centres = place::centres(&rows);
        straighten::straighten(diagram, &rows, &mut centres);
        let cost = place::travel(&rows, &centres)
            + CROSSING * order.crossings as f64
            + SWAP * order.swapped as f64;
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, std::mem::take(&mut rows.rows), centres));
        }
    }
    let Some((_, order, centres)) = best else {
        return Layout::default();
    };
    rows.rows = order;
    route::route(diagram, &rows, &centres)
}
