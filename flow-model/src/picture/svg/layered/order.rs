//! The order of vertices in their rows: few crossings.

use super::rows::{Role, Rows, Wire};

/// Fills the rows and sorts them.
pub(super) fn sort(rows: &mut Rows) {
    let (above, below) = ends(rows);
    let mut state = Order {
        rows: first_order(rows, &below),
        at: vec![0; rows.vertices.len()],
        above,
        below,
    };
    state.number_all();

    let passes = match rows.vertices.len() {
        0..5_000 => 12,
        5_000..50_000 => 4,
        _ => 2,
    };
    let mut best = state.rows.clone();
    let mut fewest = state.crossings();
    for pass in 0..passes {
        if fewest == 0 {
            break;
        }
        state.sweep(pass % 2 == 0);
        if rows.vertices.len() < 5_000 {
            state.swap_neighbours();
        }
        let crossings = state.crossings();
        if crossings < fewest {
            fewest = crossings;
            best.clone_from(&state.rows);
        }
    }
    state.rows = best;
    if state.is_mirrored(rows) {
        state.rows.iter_mut().for_each(|row| row.reverse());
    }
    rows.rows = state.rows;
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

/// Depth first from the top, ways back to the left of what they lead to.
fn first_order(rows: &Rows, below: &[Vec<End>]) -> Vec<Vec<usize>> {
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
            let turns = rows.turns.get(vertex).map_or(&[][..], Vec::as_slice);
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
            stack.extend(below[vertex].iter().rev().map(|end| end.vertex));
        }
    }
    order
}

struct Order {
    rows: Vec<Vec<usize>>,
    /// The position of each vertex in its row.
    at: Vec<usize>,
    above: Vec<Vec<End>>,
    below: Vec<Vec<End>>,
}

impl Order {
    /// Whether more boxes would stand in the order they are given in if left and right were swapped.
    fn is_mirrored(&self, rows: &Rows) -> bool {
        let is_item = |vertex: usize| rows.vertices[vertex].role == Role::Item;
        let mut balance = 0_i64;
        for row in &self.rows {
            let items: Vec<usize> = row.iter().copied().filter(|&v| is_item(v)).collect();
            balance += items
                .windows(2)
                .map(|pair| if pair[0] < pair[1] { 1 } else { -1 })
                .sum::<i64>();
        }
        balance < 0
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
                let near = if down { &self.above } else { &self.below };
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
        [&self.above, &self.below]
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
        (1..self.rows.len()).map(|row| self.crossings_above(row)).sum()
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
