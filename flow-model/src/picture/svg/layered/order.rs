//! The order of vertices in their rows: few crossings.

use super::rows::{Role, Rows, Wire};

/// An order of all rows, with what can be said for it.
pub(super) struct Sorted {
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) crossings: usize,
    /// Pairs of boxes that do not stand in the order they are given in.
    pub(super) swapped: usize,
}

/// Sorts the rows, from several first orders: for each the order with the fewest crossings that was
/// found, and among those the one closest to the order the boxes are given in.
pub(super) fn orders(rows: &Rows) -> Vec<Sorted> {
    let (above, below) = ends(rows);
    let count = rows.vertices.len();
    let starts: &[(bool, bool)] = match count {
        0..2_000 => &[(true, false), (false, false), (true, true), (false, true)],
        2_000..10_000 => &[(true, false), (false, false)],
        _ => &[(true, false)],
    };
    let passes = match count {
        0..5_000 => 12,
        5_000..50_000 => 4,
        _ => 2,
    };
    let mut orders = Vec::with_capacity(starts.len());
    for &(back_left, reversed) in starts {
        let mut best: Option<(Score, Vec<Vec<usize>>)> = None;
        let mut state = Order {
            rows: first_order(rows, &below, back_left, reversed),
            at: vec![0; count],
            above: &above,
            below: &below,
        };
        state.number_all();
        for pass in 0..=passes {
            let score = state.score(rows);
            if best.as_ref().is_none_or(|(least, _)| score < *least) {
                best = Some((score, state.rows.clone()));
            }
            if score.crossings == 0 {
                break;
            }
            state.sweep(pass % 2 == 0);
            if count < 5_000 {
                state.swap_neighbours();
            }
        }
        if let Some((score, mut rows)) = best {
            if score.mirrored {
                rows.iter_mut().for_each(|row| row.reverse());
            }
            orders.push(Sorted {
                rows,
                crossings: score.crossings,
                swapped: score.swapped,
            });
        }
    }
    orders
}

/// How good an order is; less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    crossings: usize,
    swapped: usize,
    /// Whether that is after left and right were swapped.
    mirrored: bool,
}

/// The other end of a wire.
#[derive(Clone, Copy)]
struct End {
    vertex: usize,
    /// Where on the vertex it is, from 0 to 1.
    port: f64,
}

/// The vertices above and below each vertex.
fn ends(rows: &Rows) -> (Vec<Vec<End>>, Vec<Vec<End>>) {
    let (above, below) = rows.neighbours();
    let end = |vertex: usize, port: f64| End {
        vertex,
        port: 0.5 + 0.9 * port / rows.vertices[vertex].width.max(1.0),
    };
    let ends = |wires: Vec<Vec<usize>>, end: &dyn Fn(&Wire) -> End| {
        wires
            .into_iter()
            .map(|list| list.iter().map(|&wire| end(&rows.wires[wire])).collect())
            .collect()
    };
    (
        ends(above, &|wire| end(wire.upper, wire.upper_port)),
        ends(below, &|wire| end(wire.lower, wire.lower_port)),
    )
}

/// Depth first from the top, ways back beside what they lead to.
fn first_order(
    rows: &Rows,
    below: &[Vec<End>],
    back_left: bool,
    reversed: bool,
) -> Vec<Vec<usize>> {
    let mut order = vec![Vec::new(); rows.rows.len()];
    let mut seen = vec![false; rows.vertices.len()];
    let mut roots: Vec<usize> = (0..rows.vertices.len()).collect();
    roots.sort_by_key(|&vertex| (rows.vertices[vertex].row, vertex));
    let mut stack = Vec::new();
    for root in roots {
        stack.push(root);
        while let Some(vertex) = stack.pop() {
            if seen[vertex] {
                continue;
            }
            let turns = match back_left {
                true => rows.turns.get(vertex).map_or(&[][..], Vec::as_slice),
                false => &[],
            };
            if turns.iter().any(|&turn| !seen[turn]) {
                stack.push(vertex);
                for &turn in turns {
                    if std::mem::replace(&mut seen[turn], true) {
                        continue;
                    }
                    order[rows.vertices[turn].row].push(turn);
                    let trunk = below[turn].iter().map(|end| end.vertex);
                    stack.extend(trunk.filter(|&v| rows.vertices[v].role != Role::Item));
                }
                continue;
            }
            seen[vertex] = true;
            order[rows.vertices[vertex].row].push(vertex);
            let next = below[vertex].iter().map(|end| end.vertex);
            match reversed {
                true => stack.extend(next),
                false => stack.extend(next.rev()),
            }
        }
    }
    order
}

struct Order<'r> {
    rows: Vec<Vec<usize>>,
    /// The position of each vertex in its row.
    at: Vec<usize>,
    above: &'r [Vec<End>],
    below: &'r [Vec<End>],
}

impl Order<'_> {
    fn score(&self, rows: &Rows) -> Score {
        let is_item = |vertex: usize| rows.vertices[vertex].role == Role::Item;
        let (mut swapped, mut kept) = (0, 0);
        for row in &self.rows {
            let items: Vec<usize> = row
                .iter()
                .copied()
                .filter(|&v| is_item(v))
                .take(60)
                .collect();
            for (at, left) in items.iter().enumerate() {
                let after = items[at + 1..].iter().filter(|&right| left < right).count();
                kept += after;
                swapped += items.len() - at - 1 - after;
            }
        }
        Score {
            crossings: self.crossings(),
            swapped: swapped.min(kept),
            mirrored: kept < swapped,
        }
    }

    fn number_all(&mut self) {
        for row in 0..self.rows.len() {
            self.number(row);
        }
    }

    fn number(&mut self, row: usize) {
        for (at, &vertex) in self.rows[row].iter().enumerate() {
            self.at[vertex] = at;
        }
    }

    /// Sorts every row by the middle of its neighbours in the row before, top down or bottom up.
    fn sweep(&mut self, down: bool) {
        let count = self.rows.len();
        for step in 1..count {
            let row = if down { step } else { count - 1 - step };
            let mut moving: Vec<(f64, usize)> = Vec::new();
            let mut fixed = vec![None; self.rows[row].len()];
            for (at, &vertex) in self.rows[row].iter().enumerate() {
                let near = if down { self.above } else { self.below };
                match self.middle(&near[vertex]) {
                    Some(middle) => moving.push((middle, vertex)),
                    None => fixed[at] = Some(vertex),
                }
            }
            moving.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut moving = moving.into_iter().map(|(_, vertex)| vertex);
            let sorted = fixed
                .into_iter()
                .filter_map(|vertex| vertex.or_else(|| moving.next()))
                .collect();
            self.rows[row] = sorted;
            self.number(row);
        }
    }

    /// Where an end is in its row.
    fn place(&self, end: &End) -> f64 {
        self.at[end.vertex] as f64 + end.port
    }

    fn middle(&self, near: &[End]) -> Option<f64> {
        if near.is_empty() {
            return None;
        }
        let sum: f64 = near.iter().map(|end| self.place(end)).sum();
        Some(sum / near.len() as f64)
    }

    /// Swaps neighbours in a row as long as that removes crossings.
    fn swap_neighbours(&mut self) {
        for _ in 0..4 {
            let mut better = false;
            for row in 0..self.rows.len() {
                for at in 1..self.rows[row].len() {
                    let (left, right) = (self.rows[row][at - 1], self.rows[row][at]);
                    if self.pair(right, left) < self.pair(left, right) {
                        self.rows[row].swap(at - 1, at);
                        self.at[right] = at - 1;
                        self.at[left] = at;
                        better = true;
                    }
                }
            }
            if !better {
                break;
            }
        }
    }

    /// How often the wires of two neighbours cross.
    fn pair(&self, left: usize, right: usize) -> usize {
        [self.above, self.below]
            .into_iter()
            .map(|near| {
                let mut count = 0;
                for a in &near[left] {
                    for b in &near[right] {
                        count += usize::from(self.place(a) > self.place(b));
                    }
                }
                count
            })
            .sum()
    }

    fn crossings(&self) -> usize {
        (1..self.rows.len())
            .map(|row| self.crossings_above(row))
            .sum()
    }

    /// Counts inversions with a binary indexed tree.
    fn crossings_above(&self, row: usize) -> usize {
        let mut wires: Vec<(f64, usize)> = Vec::new();
        for (at, &vertex) in self.rows[row].iter().enumerate() {
            wires.extend(self.above[vertex].iter().map(|end| (self.place(end), at)));
        }
        wires.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut tree = vec![0_usize; self.rows[row].len() + 1];
        let mut count = 0;
        for (seen, &(_, at)) in wires.iter().enumerate() {
            let mut index = at + 1;
            let mut not_after = 0;
            while index > 0 {
                not_after += tree[index];
                index -= index & index.wrapping_neg();
            }
            count += seen - not_after;
            let mut index = at + 1;
            while index < tree.len() {
                tree[index] += 1;
                index += index & index.wrapping_neg();
            }
        }
        count
    }
}
