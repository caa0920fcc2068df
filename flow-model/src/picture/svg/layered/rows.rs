//! Boxes and arrows as vertices in rows, each wire going from one row to the next.
//!
//! Arrows that lead to the same box share one trunk of vertices as soon as they can, so that a box
//! that many arrows lead to has one way in. An arrow that leads back leaves its box at the bottom
//! like any other, turns, passes its own row upwards, and turns again above its target. Only an arrow
//! with a label needs a vertex of its own.

use std::collections::BTreeMap;

use super::{Diagram, Head, Item};
use crate::picture::sketch::Tone;

/// A vertex.
#[derive(Clone, Copy)]
pub(super) struct Vertex {
    pub(super) role: Role,
    pub(super) row: usize,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// What a vertex stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A box.
    Item,
    /// The first step of one arrow, where its label is.
    Bend,
    /// A later step, shared by arrows to the same box.
    Trunk,
    /// Where an arrow that leads back turns; it keeps the order honest and takes no place.
    Turn,
}

/// A step of an arrow from a row to the next.
#[derive(Clone, Copy)]
pub(super) struct Wire {
    pub(super) upper: usize,
    pub(super) lower: usize,
    /// How much it should be straight.
    pub(super) weight: u8,
    /// Where it touches its upper vertex, from the middle.
    pub(super) upper_port: f64,
    /// Where it touches its lower vertex, from the middle.
    pub(super) lower_port: f64,
}

/// The vertices by row.
pub(super) struct Rows {
    /// The first vertices are the items.
    pub(super) vertices: Vec<Vertex>,
    pub(super) wires: Vec<Wire>,
    pub(super) rows: Vec<Vec<usize>>,
    /// The vertices of each link, from box to box.
    pub(super) chains: Vec<Vec<usize>>,
    /// Whether each link leads back.
    pub(super) back: Vec<bool>,
    /// For each item the turns that should stand to the left of what leads down to it.
    pub(super) turns: Vec<Vec<usize>>,
}

/// The row of a layer.
fn row_of(rank: usize) -> usize {
    2 * rank + 1
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TrunkKey {
    to: usize,
    port: i64,
    tone: Tone,
    back: bool,
    row: usize,
}

struct Builder<'d> {
    items: &'d [Item],
    rows: Rows,
    trunks: BTreeMap<TrunkKey, usize>,
    known: BTreeMap<(usize, usize), usize>,
}

impl Rows {
    pub(super) fn new(diagram: &Diagram, back: &[bool], ranks: &[usize]) -> Self {
        let vertices: Vec<Vertex> = diagram
            .items
            .iter()
            .zip(ranks)
            .map(|(item, &rank)| Vertex {
                role: Role::Item,
                row: row_of(rank),
                width: item.width,
                height: item.height,
            })
            .collect();
        let last = ranks.iter().max().map_or(0, |&rank| row_of(rank) + 1);
        let mut builder = Builder {
            items: &diagram.items,
            rows: Rows {
                vertices,
                wires: Vec::new(),
                rows: vec![Vec::new(); last + 1],
                chains: Vec::with_capacity(diagram.links.len()),
                back: back.to_vec(),
                turns: vec![Vec::new(); diagram.items.len()],
            },
            trunks: BTreeMap::new(),
            known: BTreeMap::new(),
        };
        for (index, link) in diagram.links.iter().enumerate() {
            let chain = match link.to {
                Head::Side => vec![link.from],
                Head::Item(to) if back[index] => builder.back(link, to),
                Head::Item(to) => builder.forward(link, to),
            };
            builder.rows.chains.push(chain);
        }
        builder.rows
    }

    /// The wires above and below each vertex.
    pub(super) fn neighbours(&self) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let mut above = vec![Vec::new(); self.vertices.len()];
        let mut below = vec![Vec::new(); self.vertices.len()];
        for (index, wire) in self.wires.iter().enumerate() {
            above[wire.lower].push(index);
            below[wire.upper].push(index);
        }
        (above, below)
    }
}

impl Builder<'_> {
    fn forward(&mut self, link: &super::Link, to: usize) -> Vec<usize> {
        let top = self.rows.vertices[link.from].row;
        let bottom = self.rows.vertices[to].row;
        let (width, height) = link.label.unwrap_or((0.0, 0.0));
        let leaves = self.port(link.from, link.leaves);
        let enters = self.port(to, link.enters);
        let plain = u8::from(link.tone == Tone::Plain);

        let bend = self.vertex(Role::Bend, top + 1, width, height);
        let mut chain = vec![link.from, bend];
        self.wire(link.from, bend, 2 + plain, leaves, 0.0);
        let mut last = bend;
        for row in top + 2..bottom {
            let (trunk, _) = self.trunk(link, to, row, false);
            let weight = if last == bend { 4 + plain } else { 8 };
            self.wire(last, trunk, weight, 0.0, 0.0);
            chain.push(trunk);
            last = trunk;
        }
        self.wire(last, to, 2 + plain, 0.0, enters);
        chain.push(to);
        chain
    }

    fn back(&mut self, link: &super::Link, to: usize) -> Vec<usize> {
        let bottom = self.rows.vertices[link.from].row;
        let top = self.rows.vertices[to].row;
        let (width, height) = link.label.unwrap_or((0.0, 0.0));

        let bend = match link.label {
            Some(_) => self.vertex(Role::Bend, bottom, width, height),
            None => self.trunk(link, to, bottom, true).0,
        };
        let turn = self.vertex(Role::Turn, bottom + 1, 0.0, 0.0);
        self.wire(bend, turn, 0, 0.0, 0.0);
        self.wire(link.from, turn, 0, 0.0, 0.0);
        let mut chain = vec![link.from, bend];
        let mut last = bend;
        for row in (top..bottom).rev() {
            let (trunk, _) = self.trunk(link, to, row, true);
            let is_bend = self.rows.vertices[last].role == Role::Bend;
            let weight = if is_bend { 4 } else { 8 };
            self.wire(trunk, last, weight, 0.0, 0.0);
            chain.push(trunk);
            last = trunk;
        }
        // The turn above the target is the trunk's own first vertex.
        let (turn, is_new) = self.trunk(link, to, top - 1, true);
        if is_new {
            self.rows.vertices[turn].role = Role::Turn;
            self.wire(turn, to, 0, 0.0, 0.0);
            self.rows.turns[to].push(turn);
        }
        self.wire(turn, last, 0, 0.0, 0.0);
        chain.push(to);
        chain
    }

    fn vertex(&mut self, role: Role, row: usize, width: f64, height: f64) -> usize {
        self.rows.vertices.push(Vertex {
            role,
            row,
            width,
            height,
        });
        self.rows.vertices.len() - 1
    }

    fn trunk(&mut self, link: &super::Link, to: usize, row: usize, back: bool) -> (usize, bool) {
        let key = TrunkKey {
            to,
            port: link.enters.map_or(-1, |x| (x * 8.0) as i64),
            tone: link.tone,
            back,
            row,
        };
        if let Some(&trunk) = self.trunks.get(&key) {
            return (trunk, false);
        }
        let trunk = self.vertex(Role::Trunk, row, 0.0, 0.0);
        self.trunks.insert(key, trunk);
        (trunk, true)
    }

    fn wire(&mut self, upper: usize, lower: usize, weight: u8, upper_port: f64, lower_port: f64) {
        if let Some(&known) = self.known.get(&(upper, lower)) {
            let wire = &mut self.rows.wires[known];
            wire.weight = wire.weight.max(weight);
            return;
        }
        self.known.insert((upper, lower), self.rows.wires.len());
        self.rows.wires.push(Wire {
            upper,
            lower,
            weight,
            upper_port,
            lower_port,
        });
    }

    /// A port as a distance from the middle.
    fn port(&self, item: usize, at: Option<f64>) -> f64 {
        at.map_or(0.0, |at| at - self.items[item].width / 2.0)
    }
}
