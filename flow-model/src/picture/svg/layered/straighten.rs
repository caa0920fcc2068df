//! Removes small bends: moves boxes and long arrows a little where that makes more arrows straight.

use super::place::distance;
use super::rows::{Role, Rows, Wire};
use super::{Diagram, Item};

/// Bends up to this wide are worth a move.
const SMALL: f64 = 64.0;
/// Pictures with more vertices than this stay as they are.
const MANY: usize = 20_000;
/// Two places closer than this are one.
const SAME: f64 = 0.5;

/// Moves the middles of vertices.
pub(super) fn straighten(diagram: &Diagram, rows: &Rows, centres: &mut [f64]) {
    if rows.vertices.len() > MANY {
        return;
    }
    let mut bench = Bench::new(diagram, rows);
    for _ in 0..3 {
        let mut better = false;
        for vertex in 0..rows.vertices.len() {
            better |= bench.improve(centres, vertex);
        }
        if !better {
            break;
        }
    }
    let left = (0..rows.vertices.len())
        .filter(|&vertex| rows.vertices[vertex].role != Role::Turn)
        .map(|vertex| centres[vertex] - rows.vertices[vertex].width / 2.0)
        .fold(f64::MAX, f64::min);
    for centre in centres.iter_mut() {
        *centre -= left;
    }
}

struct Bench<'r> {
    items: &'r [Item],
    rows: &'r Rows,
    /// The wires of each vertex.
    wires: Vec<Vec<usize>>,
    /// How many wires there are above and below each vertex.
    above: Vec<usize>,
    below: Vec<usize>,
    left: Vec<Option<usize>>,
    right: Vec<Option<usize>>,
    /// Marks the vertices of the block that is about to move.
    moving: Vec<bool>,
}

impl<'r> Bench<'r> {
    fn new(diagram: &'r Diagram, rows: &'r Rows) -> Self {
        let count = rows.vertices.len();
        let mut bench = Bench {
            items: &diagram.items,
            rows,
            wires: vec![Vec::new(); count],
            above: vec![0; count],
            below: vec![0; count],
            left: vec![None; count],
            right: vec![None; count],
            moving: vec![false; count],
        };
        for (index, wire) in rows.wires.iter().enumerate() {
            bench.below[wire.upper] += 1;
            bench.above[wire.lower] += 1;
            if wire.weight > 0 {
                bench.wires[wire.upper].push(index);
                bench.wires[wire.lower].push(index);
            }
        }
        for row in &rows.rows {
            let placed = row
                .iter()
                .copied()
                .filter(|&vertex| rows.vertices[vertex].role != Role::Turn);
            let mut before = None;
            for vertex in placed {
                bench.left[vertex] = before;
                if let Some(before) = before {
                    bench.right[before] = Some(vertex);
                }
                before = Some(vertex);
            }
        }
        bench
    }

    /// How far an arrow is from being straight; positive when its lower end is too far right.
    fn bend(&self, centres: &[f64], wire: usize) -> f64 {
        let wire = &self.rows.wires[wire];
        let off = centres[wire.lower] + wire.lower_port - centres[wire.upper] - wire.upper_port;
        // Arrows may touch a box anywhere along its side, but a sole arrow looks best in the middle
        // and a full side leaves no choice.
        let reach = |vertex: usize, side: &[usize]| match self.items.get(vertex) {
            Some(item) if (2..=4).contains(&side[vertex]) => {
                let others = 12.0 * (side[vertex] - 1) as f64;
                (item.width / 2.0 - item.inset - others).max(0.0)
            }
            Some(_) | None => 0.0,
        };
        let fixed = wire.upper_port != 0.0 || wire.lower_port != 0.0;
        let room = if fixed {
            0.0
        } else {
            reach(wire.upper, &self.below) + reach(wire.lower, &self.above)
        };
        if off.abs() <= room {
            0.0
        } else {
            off - room.copysign(off)
        }
    }

    /// The vertex with everything that is in one straight line with it, marked as moving.
    fn block(&mut self, centres: &[f64], vertex: usize) -> Vec<usize> {
        let mut block = vec![vertex];
        self.moving[vertex] = true;
        let is_item = |vertex: usize| self.rows.vertices[vertex].role == Role::Item;
        let mut next = 0;
        while let Some(&vertex) = block.get(next) {
            next += 1;
            for &wire in &self.wires[vertex] {
                let Wire { upper, lower, .. } = self.rows.wires[wire];
                let other = if upper == vertex { lower } else { upper };
                let sole = (!is_item(upper) || self.below[upper] == 1)
                    && (!is_item(lower) || self.above[lower] == 1);
                if sole && !self.moving[other] && self.bend(centres, wire).abs() < SAME {
                    self.moving[other] = true;
                    block.push(other);
                }
            }
        }
        block
    }

    fn cost(&self, centres: &[f64], block: &[usize]) -> f64 {
        let wires = block.iter().flat_map(|&vertex| &self.wires[vertex]);
        wires
            .map(|&wire| {
                let bend = self.bend(centres, wire).abs();
                let weight = 1.0 + f64::from(self.rows.wires[wire].weight) / 4.0;
                weight * (f64::from(u8::from(bend >= SAME)) + bend / 10_000.0)
            })
            .sum()
    }

    /// Moves the vertex to where it has fewer bends, if there is such a place.
    fn improve(&mut self, centres: &mut [f64], vertex: usize) -> bool {
        if self.rows.vertices[vertex].role == Role::Turn {
            return false;
        }
        let is_small = |bend: f64| (SAME..=SMALL).contains(&bend.abs());
        let moves: Vec<f64> = self.wires[vertex]
            .iter()
            .map(|&wire| match self.rows.wires[wire].lower == vertex {
                true => -self.bend(centres, wire),
                false => self.bend(centres, wire),
            })
            .filter(|&by| is_small(by))
            .collect();
        if moves.is_empty() {
            return false;
        }
        let block = self.block(centres, vertex);
        let before = self.cost(centres, &block);
        let mut best: Option<(f64, f64)> = None;
        for by in moves {
            if self.fits(centres, &block, by) {
                shift(centres, &block, by);
                let cost = self.cost(centres, &block);
                shift(centres, &block, -by);
                if cost < before - 1e-3 && best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, by));
                }
            }
        }
        for &vertex in &block {
            self.moving[vertex] = false;
        }
        if let Some((_, by)) = best {
            shift(centres, &block, by);
        }
        best.is_some()
    }

    fn fits(&self, centres: &[f64], block: &[usize], by: f64) -> bool {
        block.iter().all(|&vertex| {
            let side = if by < 0.0 {
                self.left[vertex]
            } else {
                self.right[vertex]
            };
            let Some(other) = side.filter(|&other| !self.moving[other]) else {
                return true;
            };
            let room = distance(&self.rows.vertices[vertex], &self.rows.vertices[other]);
            let gap = (centres[other] - centres[vertex]).abs() - by.abs();
            gap >= room - 1e-6
        })
    }
}

fn shift(centres: &mut [f64], block: &[usize], by: f64) {
    for &vertex in block {
        centres[vertex] += by;
    }
}
