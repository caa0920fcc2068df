//! Vertical places, and arrows bent at right angles between the rows.

use std::collections::BTreeMap;

use super::rows::{Role, Rows};
use super::{Diagram, Head, Layout, Point, Route};

/// Distance between two horizontal parts in the same gap.
const TRACK: f64 = 11.0;
/// Horizontal parts closer than this do not share a track.
const MARGIN: f64 = 12.0;
/// Distance between two arrows at the same side of a box.
const PORT: f64 = 16.0;
/// Two places closer than this are one.
const SAME: f64 = 0.5;
/// Gaps with more horizontal parts than this are not searched for the order with fewest crossings.
const MANY: usize = 300;

/// Finds the vertical places and the ways of all links.
pub(super) fn route(diagram: &Diagram, rows: &Rows, centres: &[f64]) -> Layout {
    let ports = Ports::new(diagram, rows, centres);
    let mut gaps = Gaps::new(diagram, rows, &ports);
    gaps.order();
    let levels = Levels::new(rows, &gaps);

    let places = diagram
        .items
        .iter()
        .enumerate()
        .map(|(index, item)| Point {
            x: centres[index] - item.width / 2.0,
            y: levels.tops[rows.vertices[index].row],
        })
        .collect();
    let width = rows.rows.iter().flatten().fold(0.0_f64, |width, &vertex| {
        width.max(centres[vertex] + rows.vertices[vertex].width / 2.0)
    });
    let routes = (0..diagram.links.len())
        .map(|link| Route {
            points: points(diagram, rows, &ports, &gaps, &levels, link, width),
            label: label(diagram, rows, centres, &levels, link),
        })
        .collect();
    Layout {
        width,
        height: levels.bottom,
        places,
        routes,
    }
}

/// A step of a link between two vertices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hop {
    /// To the next row.
    Down { gap: usize, from: usize, to: usize },
    /// To the row before.
    Up { gap: usize, from: usize, to: usize },
    /// Out at the bottom of a box and up again beside it.
    Under { gap: usize, item: usize, to: usize },
    /// Over a box and into it from above.
    Over {
        gap: usize,
        from: usize,
        item: usize,
    },
    /// Out at the bottom of a box and away to the right.
    Side {
        gap: usize,
        item: usize,
        link: usize,
    },
}

impl Hop {
    fn gap(self) -> usize {
        match self {
            Hop::Down { gap, .. }
            | Hop::Up { gap, .. }
            | Hop::Under { gap, .. }
            | Hop::Over { gap, .. }
            | Hop::Side { gap, .. } => gap,
        }
    }
}

fn hops(rows: &Rows, link: usize) -> impl Iterator<Item = Hop> + '_ {
    let chain = &rows.chains[link];
    let row = |vertex: usize| rows.vertices[vertex].row;
    let side = (chain.len() == 1).then(|| Hop::Side {
        gap: row(chain[0]),
        item: chain[0],
        link,
    });
    let back = rows.back[link];
    let steps = chain.windows(2).enumerate().map(move |(index, pair)| {
        let (from, to) = (pair[0], pair[1]);
        if !back {
            let gap = row(from);
            Hop::Down { gap, from, to }
        } else if index == 0 {
            let gap = row(from);
            Hop::Under {
                gap,
                item: from,
                to,
            }
        } else if index + 2 == chain.len() {
            let gap = row(to) - 1;
            Hop::Over {
                gap,
                from,
                item: to,
            }
        } else {
            let gap = row(to);
            Hop::Up { gap, from, to }
        }
    });
    side.into_iter().chain(steps)
}

/// The other end of an arrow at a box.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mate {
    Vertex(usize),
    Side(usize),
}

/// Where arrows touch boxes.
struct Ports<'c> {
    centres: &'c [f64],
    bottoms: BTreeMap<(usize, Mate), f64>,
    tops: BTreeMap<(usize, usize), f64>,
}

/// An arrow's end before it has a place: what it leads to, where that is, where it must be.
type Wish<K> = (K, f64, Option<f64>);

impl<'c> Ports<'c> {
    fn new(diagram: &Diagram, rows: &Rows, centres: &'c [f64]) -> Self {
        let count = diagram.items.len();
        let mut bottoms: Vec<Vec<Wish<Mate>>> = vec![Vec::new(); count];
        let mut tops: Vec<Vec<Wish<usize>>> = vec![Vec::new(); count];
        for (index, link) in diagram.links.iter().enumerate() {
            let chain = &rows.chains[index];
            match link.to {
                Head::Side => {
                    bottoms[link.from].push((Mate::Side(index), f64::MAX, link.leaves));
                }
                Head::Item(to) => {
                    let (next, last) = (chain[1], chain[chain.len() - 2]);
                    bottoms[link.from].push((Mate::Vertex(next), centres[next], link.leaves));
                    if tops[to].iter().all(|(mate, ..)| *mate != last) {
                        tops[to].push((last, centres[last], link.enters));
                    }
                }
            }
        }
        let mut ports = Ports {
            centres,
            bottoms: BTreeMap::new(),
            tops: BTreeMap::new(),
        };
        for (index, item) in diagram.items.iter().enumerate() {
            let left = centres[index] - item.width / 2.0;
            for (mate, x) in spread(left, item.width, item.inset, &mut bottoms[index]) {
                ports.bottoms.insert((index, mate), x);
            }
            for (mate, x) in spread(left, item.width, item.inset, &mut tops[index]) {
                ports.tops.insert((index, mate), x);
            }
        }
        ports
    }

    /// Where a hop starts and ends.
    fn ends(&self, diagram: &Diagram, hop: Hop) -> (f64, f64) {
        let bottom = |item: usize, mate: Mate| {
            let port = self.bottoms.get(&(item, mate)).copied();
            port.unwrap_or(self.centres[item])
        };
        let top = |item: usize, mate: usize| {
            let port = self.tops.get(&(item, mate)).copied();
            port.unwrap_or(self.centres[item])
        };
        let is_item = |vertex: usize| vertex < diagram.items.len();
        match hop {
            Hop::Down { from, to, .. } => {
                let start = match is_item(from) {
                    true => bottom(from, Mate::Vertex(to)),
                    false => self.centres[from],
                };
                let end = match is_item(to) {
                    true => top(to, from),
                    false => self.centres[to],
                };
                (start, end)
            }
            Hop::Up { from, to, .. } => (self.centres[from], self.centres[to]),
            Hop::Under { item, to, .. } => (bottom(item, Mate::Vertex(to)), self.centres[to]),
            Hop::Over { from, item, .. } => (self.centres[from], top(item, from)),
            Hop::Side { item, link, .. } => (bottom(item, Mate::Side(link)), f64::MAX),
        }
    }
}

/// Gives every arrow at one side of a box a place: straight ones where they are, others evenly.
fn spread<K: Copy>(left: f64, width: f64, inset: f64, wishes: &mut [Wish<K>]) -> Vec<(K, f64)> {
    wishes.sort_by(|a, b| a.1.total_cmp(&b.1));
    let middle = left + width / 2.0;
    let (low, high) = (left + inset, left + width - inset);
    let (low, high) = if low < high {
        (low, high)
    } else {
        (middle, middle)
    };
    let count = wishes.len();
    let step = PORT.min((high - low) / (count.max(2) - 1) as f64);
    let is_straight = |wish: &Wish<K>| wish.2.is_some() || (low..=high).contains(&wish.1);
    let mut places: Vec<f64> = wishes
        .iter()
        .enumerate()
        .map(|(index, wish)| match wish.2 {
            Some(at) => left + at,
            None if is_straight(wish) => wish.1,
            None => left + width * (index + 1) as f64 / (count + 1) as f64,
        })
        .collect();
    for index in 1..count {
        if !is_straight(&wishes[index]) {
            places[index] = places[index].max(places[index - 1] + step);
        }
    }
    for index in (1..count).rev() {
        if !is_straight(&wishes[index - 1]) {
            places[index - 1] = places[index - 1].min(places[index] - step);
        }
    }
    // No two arrows share a place, even where one of them could be straight.
    let step = step.min(12.0);
    wishes
        .iter()
        .zip(places)
        .enumerate()
        .map(|(index, (wish, place))| match wish.2 {
            Some(_) => (wish.0, place),
            None => {
                let low = low + index as f64 * step;
                let high = high - (count - 1 - index) as f64 * step;
                (wish.0, place.max(low).min(high))
            }
        })
        .collect()
}

/// Horizontal parts that are drawn as one.
#[derive(Default)]
struct Net {
    /// Where it is connected to the row above.
    tops: Vec<f64>,
    /// Where it is connected to the row below.
    bottoms: Vec<f64>,
    low: f64,
    high: f64,
    track: usize,
}

impl Net {
    fn overlaps(&self, other: &Net) -> bool {
        self.low - MARGIN < other.high && other.low - MARGIN < self.high
    }

    /// What it costs to draw this net above the other: crossings, and much more for lines that lie
    /// on top of each other.
    fn cost_above(&self, other: &Net) -> i32 {
        let inside = |net: &Net, xs: &[f64]| {
            let hit = xs.iter().filter(|&&x| net.low < x && x < net.high);
            i32::try_from(hit.count()).unwrap_or(i32::MAX / 4)
        };
        let mut cost = inside(self, &other.tops) + inside(other, &self.bottoms);
        for bottom in &self.bottoms {
            for top in &other.tops {
                if (bottom - top).abs() < 6.0 {
                    cost += 40;
                }
            }
        }
        cost
    }
}

/// The horizontal parts between the rows.
struct Gaps {
    nets: Vec<Vec<Net>>,
    /// The net of each vertex in each gap.
    by_vertex: BTreeMap<(usize, Mate), usize>,
    /// The number of tracks in each gap.
    tracks: Vec<usize>,
}

impl Gaps {
    fn new(diagram: &Diagram, rows: &Rows, ports: &Ports) -> Self {
        let mut gaps = Gaps {
            nets: (0..rows.rows.len()).map(|_| Vec::new()).collect(),
            by_vertex: BTreeMap::new(),
            tracks: vec![0; rows.rows.len()],
        };
        let mut last = BTreeMap::new();
        for link in 0..diagram.links.len() {
            for hop in hops(rows, link) {
                let (start, end) = ports.ends(diagram, hop);
                let straight = (start - end).abs() < SAME;
                let (key, tops, bottoms): (_, &[f64], &[f64]) = match hop {
                    Hop::Down { .. } if straight => continue,
                    Hop::Up { .. } if straight => continue,
                    Hop::Down { from, to, .. } => {
                        let shared = rows.vertices[to].role != Role::Item;
                        (
                            Mate::Vertex(if shared { to } else { from }),
                            &[start],
                            &[end],
                        )
                    }
                    Hop::Up { to, .. } => (Mate::Vertex(to), &[end], &[start]),
                    Hop::Under { to, .. } => (Mate::Vertex(to), &[start, end], &[]),
                    Hop::Over { from, .. } => (Mate::Vertex(from), &[], &[start, end]),
                    Hop::Side { link, .. } => (Mate::Side(link), &[start], &[]),
                };
                // Links that share a trunk repeat its hops.
                if last.insert((hop.gap(), key, start.to_bits()), ()).is_some() {
                    continue;
                }
                gaps.add(
                    hop.gap(),
                    key,
                    tops,
                    bottoms,
                    start.min(end),
                    start.max(end),
                );
            }
        }
        gaps
    }

    fn add(&mut self, gap: usize, key: Mate, tops: &[f64], bottoms: &[f64], low: f64, high: f64) {
        let nets = &mut self.nets[gap];
        let index = *self.by_vertex.entry((gap, key)).or_insert_with(|| {
            nets.push(Net {
                low,
                high,
                ..Net::default()
            });
            nets.len() - 1
        });
        let net = &mut nets[index];
        net.tops.extend(tops);
        net.bottoms.extend(bottoms);
        net.low = net.low.min(low);
        net.high = net.high.max(high);
    }

    /// Gives every net a track in its gap.
    fn order(&mut self) {
        for (nets, tracks) in self.nets.iter_mut().zip(&mut self.tracks) {
            let order = top_down(nets);
            for (done, &index) in order.iter().enumerate() {
                let track = order[..done]
                    .iter()
                    .filter(|&&other| nets[other].overlaps(&nets[index]))
                    .map(|&other| nets[other].track + 1)
                    .max()
                    .unwrap_or(0);
                nets[index].track = track;
                *tracks = (*tracks).max(track + 1);
            }
        }
    }

    fn track(&self, hop: Hop) -> Option<usize> {
        let keys = match hop {
            Hop::Down { from, to, .. } => [Some(Mate::Vertex(to)), Some(Mate::Vertex(from))],
            Hop::Up { to, .. } | Hop::Under { to, .. } => [Some(Mate::Vertex(to)), None],
            Hop::Over { from, .. } => [Some(Mate::Vertex(from)), None],
            Hop::Side { link, .. } => [Some(Mate::Side(link)), None],
        };
        keys.into_iter().flatten().find_map(|key| {
            let index = self.by_vertex.get(&(hop.gap(), key))?;
            Some(self.nets[hop.gap()][*index].track)
        })
    }
}

/// The nets of a gap, top first, so that few of them cross.
fn top_down(nets: &[Net]) -> Vec<usize> {
    let count = nets.len();
    let mut order: Vec<usize> = (0..count).collect();
    if !(2..MANY).contains(&count) {
        return order;
    }
    // How much each net wants to be above each other one.
    let mut wants = vec![0_i32; count * count];
    for a in 0..count {
        for b in 0..a {
            if nets[a].overlaps(&nets[b]) {
                let gain = nets[b].cost_above(&nets[a]) - nets[a].cost_above(&nets[b]);
                wants[a * count + b] = gain.max(0);
                wants[b * count + a] = (-gain).max(0);
            }
        }
    }
    let total = |index: usize, rest: &[usize]| {
        let above: i32 = rest.iter().map(|&other| wants[index * count + other]).sum();
        let below: i32 = rest.iter().map(|&other| wants[other * count + index]).sum();
        (below == 0, above - below)
    };
    let mut sorted = Vec::with_capacity(count);
    while !order.is_empty() {
        let best = (0..order.len())
            .rev()
            .max_by_key(|&at| total(order[at], &order));
        let Some(best) = best else { break };
        sorted.push(order.remove(best));
    }
    sorted
}

/// The vertical places of rows and tracks.
struct Levels {
    tops: Vec<f64>,
    heights: Vec<f64>,
    /// The first track of each gap.
    tracks: Vec<f64>,
    bottom: f64,
}

impl Levels {
    fn new(rows: &Rows, gaps: &Gaps) -> Self {
        let heights: Vec<f64> = rows
            .rows
            .iter()
            .map(|row| {
                let height = |&vertex: &usize| rows.vertices[vertex].height;
                row.iter().map(height).fold(0.0, f64::max)
            })
            .collect();
        let mut levels = Levels {
            tops: Vec::with_capacity(heights.len()),
            tracks: Vec::with_capacity(heights.len()),
            bottom: 0.0,
            heights,
        };
        let mut y = 0.0;
        for row in 0..levels.heights.len() {
            levels.tops.push(y);
            y += levels.heights[row];
            if levels.heights[row] > 0.0 || row % 2 == 1 {
                levels.bottom = y;
            }
            let tracks = gaps.tracks[row];
            let is_filled = levels.heights[row] > 0.0;
            let below = levels.heights.get(row + 1).is_some_and(|&next| next > 0.0);
            let boxes_above = row % 2 == 1;
            let upper = match (is_filled, tracks > 0, boxes_above) {
                (false, false, _) => 0.0,
                (false, true, _) => 8.0,
                (true, true, _) => 13.0,
                (true, false, true) => 14.0,
                (true, false, false) => 4.0,
            };
            let lower = match (below, tracks > 0, boxes_above) {
                (false, false, _) => 0.0,
                (false, true, _) => 8.0,
                (true, true, true) => 11.0,
                (true, false, true) => 4.0,
                (true, false, false) if row == 0 => 0.0,
                (true, _, false) => 24.0,
            };
            levels.tracks.push(y + upper);
            y += upper + tracks.saturating_sub(1) as f64 * TRACK + lower;
            if tracks > 0 {
                levels.bottom = levels.bottom.max(y);
            }
        }
        levels
    }
}

fn points(
    diagram: &Diagram,
    rows: &Rows,
    ports: &Ports,
    gaps: &Gaps,
    levels: &Levels,
    link: usize,
    width: f64,
) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut end = None;
    for hop in hops(rows, link) {
        let (from, to) = ports.ends(diagram, hop);
        let to = if to == f64::MAX { width } else { to };
        if points.is_empty() {
            let item = diagram.links[link].from;
            let y = levels.tops[rows.vertices[item].row] + diagram.items[item].height;
            push(&mut points, Point { x: from, y });
        }
        let turns = matches!(hop, Hop::Under { .. } | Hop::Over { .. } | Hop::Side { .. });
        if turns || (from - to).abs() >= SAME {
            let track = gaps.track(hop).unwrap_or(0) as f64;
            let y = levels.tracks[hop.gap()] + track * TRACK;
            push(&mut points, Point { x: from, y });
            push(&mut points, Point { x: to, y });
        }
        end = Some(to);
    }
    if let (Head::Item(item), Some(x)) = (diagram.links[link].to, end) {
        // A hop that counts as straight may be off by less than anyone sees.
        let x = points
            .last()
            .map_or(x, |last| if (last.x - x).abs() < SAME { last.x } else { x });
        let y = levels.tops[rows.vertices[item].row];
        push(&mut points, Point { x, y });
    }
    points
}

/// Adds a point, unless it only prolongs the line that is there.
fn push(points: &mut Vec<Point>, point: Point) {
    if let [.., a, b] = points[..] {
        let upright = (a.x - b.x).abs() < SAME && (b.x - point.x).abs() < SAME;
        let down = (b.y - a.y) * (point.y - b.y) >= 0.0;
        if upright && down {
            points.pop();
        }
    }
    points.push(point);
}

fn label(
    diagram: &Diagram,
    rows: &Rows,
    centres: &[f64],
    levels: &Levels,
    link: usize,
) -> Option<Point> {
    diagram.links[link].label?;
    let bend = *rows.chains[link].get(1)?;
    let row = rows.vertices[bend].row;
    let height = match rows.back[link] {
        true => diagram.items[diagram.links[link].from].height,
        false => levels.heights[row],
    };
    Some(Point {
        x: centres[bend],
        y: levels.tops[row] + height / 2.0,
    })
}
