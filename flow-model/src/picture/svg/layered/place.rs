//! Horizontal places: straight arrows and centred boxes, after Brandes and Köpf.
//!
//! Vertices are aligned with the median of their neighbours into blocks, once for each combination
//! of up or down and left or right; each time the blocks are packed; the middle of the four results
//! is the place. Ports move a vertex within its block.

use super::rows::{Role, Rows, Vertex};

/// The x of the middle of every vertex; zero for turns.
pub(super) fn centres(rows: &Rows) -> Vec<f64> {
    let lines: Vec<Vec<usize>> = rows
        .rows
        .iter()
        .map(|row| {
            let placed = |&&vertex: &&usize| rows.vertices[vertex].role != Role::Turn;
            row.iter().filter(placed).copied().collect()
        })
        .collect();
    let (above, below) = rows.neighbours();
    let straight = |wires: Vec<Vec<usize>>| -> Vec<Vec<usize>> {
        let keep = |wire: &usize| rows.wires[*wire].weight > 0;
        wires
            .into_iter()
            .map(|list| list.into_iter().filter(keep).collect())
            .collect()
    };
    let (above, below) = (straight(above), straight(below));
    let blocked = blocked(rows, &lines, &above);

    let mut results = Vec::with_capacity(4);
    for down in [true, false] {
        for left in [true, false] {
            let side = Side {
                rows,
                lines: &lines,
                near: if down { &above } else { &below },
                blocked: &blocked,
                down,
                left,
            };
            results.push((side.places(), left));
        }
    }
    combine(rows, &lines, &results)
}

/// The wires that cross a long straight one and must give way to it.
fn blocked(rows: &Rows, lines: &[Vec<usize>], above: &[Vec<usize>]) -> Vec<bool> {
    let mut blocked = vec![false; rows.wires.len()];
    let at = positions(rows, lines, false);
    let is_inner = |wire: usize| rows.wires[wire].weight >= 8;
    for pair in lines.windows(2) {
        let (upper, lower) = (&pair[0], &pair[1]);
        let mut from = 0;
        let mut scanned = 0;
        for (index, &vertex) in lower.iter().enumerate() {
            let inner = above[vertex].iter().copied().find(|&wire| is_inner(wire));
            let to = inner.map_or(upper.len(), |wire| at[rows.wires[wire].upper]);
            if inner.is_none() && index + 1 < lower.len() {
                continue;
            }
            for &other in &lower[scanned..=index] {
                for &wire in &above[other] {
                    let upper = at[rows.wires[wire].upper];
                    if (upper < from || upper > to) && !is_inner(wire) {
                        blocked[wire] = true;
                    }
                }
            }
            scanned = index + 1;
            from = to;
        }
    }
    blocked
}

fn positions(rows: &Rows, lines: &[Vec<usize>], mirrored: bool) -> Vec<usize> {
    let mut at = vec![0; rows.vertices.len()];
    for line in lines {
        for (index, &vertex) in line.iter().enumerate() {
            at[vertex] = if mirrored {
                line.len() - 1 - index
            } else {
                index
            };
        }
    }
    at
}

/// The least distance between the middles of two neighbours.
pub(super) fn distance(left: &Vertex, right: &Vertex) -> f64 {
    let room = match (left.role, right.role) {
        (Role::Item, Role::Item) => 36.0,
        (Role::Item, _) | (_, Role::Item) => 22.0,
        _ => 16.0,
    };
    (left.width + right.width) / 2.0 + room
}

/// One of the four alignments.
struct Side<'r> {
    rows: &'r Rows,
    lines: &'r [Vec<usize>],
    near: &'r [Vec<usize>],
    blocked: &'r [bool],
    down: bool,
    left: bool,
}

struct Blocks {
    /// The vertex that stands for the block of each vertex.
    root: Vec<usize>,
    /// How far each vertex is from the place of its block.
    shift: Vec<f64>,
}

impl Side<'_> {
    fn places(&self) -> Vec<f64> {
        let blocks = self.align();
        let places = self.pack(&blocks);
        let sign = if self.left { 1.0 } else { -1.0 };
        (0..self.rows.vertices.len())
            .map(|vertex| sign * (places[blocks.root[vertex]] + blocks.shift[vertex]))
            .collect()
    }

    /// The row as this side reads it.
    fn line(&self, index: usize) -> Vec<usize> {
        let mut line = self.lines[index].clone();
        if !self.left {
            line.reverse();
        }
        line
    }

    fn align(&self) -> Blocks {
        let count = self.rows.vertices.len();
        let at = positions(self.rows, self.lines, !self.left);
        let sign = if self.left { 1.0 } else { -1.0 };
        let mut root: Vec<usize> = (0..count).collect();
        let mut aligned = vec![false; count];
        let mut shift = vec![0.0; count];
        for step in 1..self.lines.len() {
            let row = if self.down {
                step
            } else {
                self.lines.len() - 1 - step
            };
            let mut free = 0;
            for vertex in self.line(row) {
                for (other, wire) in self.medians(vertex, &at) {
                    if aligned[vertex] || at[other] < free || self.blocked[wire] {
                        continue;
                    }
                    let wire = &self.rows.wires[wire];
                    let (theirs, mine) = match self.down {
                        true => (wire.upper_port, wire.lower_port),
                        false => (wire.lower_port, wire.upper_port),
                    };
                    aligned[vertex] = true;
                    root[vertex] = root[other];
                    shift[vertex] = shift[other] + sign * (theirs - mine);
                    free = at[other] + 1;
                }
            }
        }
        Blocks { root, shift }
    }

    /// The one or two neighbours in the middle, among those that matter most.
    fn medians(&self, vertex: usize, at: &[usize]) -> Vec<(usize, usize)> {
        let wires = &self.rows.wires;
        let near = &self.near[vertex];
        let most = near.iter().map(|&wire| wires[wire].weight).max();
        let mut ends: Vec<(usize, usize)> = near
            .iter()
            .filter(|&&wire| Some(wires[wire].weight) == most)
            .map(|&wire| match self.down {
                true => (wires[wire].upper, wire),
                false => (wires[wire].lower, wire),
            })
            .collect();
        ends.sort_by_key(|&(vertex, _)| at[vertex]);
        match ends.len() {
            0 => ends,
            count if count % 2 == 1 => vec![ends[count / 2]],
            count => vec![ends[count / 2 - 1], ends[count / 2]],
        }
    }

    /// Packs the blocks to the left, then moves each as far right as its right neighbours allow.
    fn pack(&self, blocks: &Blocks) -> Vec<f64> {
        let count = self.rows.vertices.len();
        let mut right: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
        let mut waiting = vec![0_usize; count];
        for index in 0..self.lines.len() {
            for pair in self.line(index).windows(2) {
                let (a, b) = (pair[0], pair[1]);
                let room = distance(&self.rows.vertices[a], &self.rows.vertices[b])
                    + blocks.shift[a]
                    - blocks.shift[b];
                right[blocks.root[a]].push((blocks.root[b], room));
                waiting[blocks.root[b]] += 1;
            }
        }
        let mut places = vec![0.0_f64; count];
        let mut order: Vec<usize> = (0..count)
            .filter(|&v| blocks.root[v] == v && waiting[v] == 0)
            .collect();
        let mut next = 0;
        while let Some(&block) = order.get(next) {
            next += 1;
            for &(other, room) in &right[block] {
                places[other] = places[other].max(places[block] + room);
                waiting[other] -= 1;
                if waiting[other] == 0 {
                    order.push(other);
                }
            }
        }
        for &block in order.iter().rev() {
            let room = right[block]
                .iter()
                .map(|&(other, room)| places[other] - room)
                .min_by(f64::total_cmp);
            if let Some(room) = room {
                places[block] = places[block].max(room);
            }
        }
        places
    }
}

/// How far arrows run sideways, and how wide the whole is.
pub(super) fn travel(rows: &Rows, centres: &[f64]) -> f64 {
    let wires = rows.wires.iter().filter(|wire| wire.weight > 0);
    let sideways: f64 = wires
        .map(|wire| {
            let off = centres[wire.lower] + wire.lower_port - centres[wire.upper] - wire.upper_port;
            off.abs()
        })
        .sum();
    let width = rows
        .rows
        .iter()
        .flatten()
        .map(|&vertex| centres[vertex] + rows.vertices[vertex].width / 2.0)
        .fold(0.0, f64::max);
    sideways + 2.0 * width
}

/// The middle of the four results, each first moved to the narrowest one.
fn combine(rows: &Rows, lines: &[Vec<usize>], results: &[(Vec<f64>, bool)]) -> Vec<f64> {
    let placed: Vec<usize> = lines.iter().flatten().copied().collect();
    let bounds = |places: &[f64]| {
        placed
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), &vertex| {
                let half = rows.vertices[vertex].width / 2.0;
                let x = places[vertex];
                (low.min(x - half), high.max(x + half))
            })
    };
    let all: Vec<(f64, f64)> = results.iter().map(|(places, _)| bounds(places)).collect();
    let narrowest = all
        .iter()
        .copied()
        .min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
        .unwrap_or((0.0, 0.0));
    let moves: Vec<f64> = results
        .iter()
        .zip(&all)
        .map(|((_, left), (low, high))| match left {
            true => narrowest.0 - low,
            false => narrowest.1 - high,
        })
        .collect();
    let mut centres = vec![0.0; rows.vertices.len()];
    for &vertex in &placed {
        let mut four: Vec<f64> = results
            .iter()
            .zip(&moves)
            .map(|((places, _), by)| places[vertex] + by)
            .collect();
        four.sort_by(f64::total_cmp);
        centres[vertex] = (four[1] + four[2]) / 2.0;
    }
    let left = bounds(&centres).0;
    for &vertex in &placed {
        centres[vertex] -= left;
    }
    centres
}
