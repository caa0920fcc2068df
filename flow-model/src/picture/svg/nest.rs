//! The layout of one body: every loop is laid out on its own and stands as one box in what is
//! around it, so that its panel holds its own nodes and no others.

use std::collections::BTreeMap;

use super::layered::{Diagram, Head, Item, Layout, Link, Point, Rank, arrange};
use crate::picture::sketch::{Goal, Section, Tone};

/// Room between the side of a loop's panel and what is in it.
const PADDING: f64 = 18.0;
/// Room above and below what is in a loop's panel.
const PADDING_Y: f64 = 14.0;
/// Width and height of the marks where a body starts and ends.
pub(super) const MARK: f64 = 18.0;

/// The sizes that a layout needs to know.
pub(super) struct Sizes {
    /// Width and height of each node's box.
    pub(super) nodes: Vec<(f64, f64)>,
    /// Width and height of each arrow's label.
    pub(super) labels: Vec<Option<(f64, f64)>>,
    /// How far arrows stay away from the corners of each box.
    pub(super) insets: Vec<f64>,
}

/// Where everything in a body stands.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The upper left corner of each node's box.
    pub(super) nodes: Vec<Point>,
    /// The upper left corners of the marks.
    pub(super) start: Option<Point>,
    pub(super) end: Option<Point>,
    /// The panels of loops, outer ones first.
    pub(super) panels: Vec<Panel>,
    /// The way of each arrow and the middle of its label.
    pub(super) arrows: Vec<(Vec<Point>, Option<Point>)>,
    /// The way from the start.
    pub(super) entry: Option<Vec<Point>>,
    /// The ways from fan-outs to the right side.
    pub(super) fans: Vec<Vec<Point>>,
}

/// The background of a loop.
pub(super) struct Panel {
    pub(super) at: Point,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) depth: usize,
}

/// Finds a place for everything in a body.
pub(super) fn plan(section: &Section, sizes: &Sizes) -> Plan {
    let mut nest = Nest::new(section);
    nest.thread(section);
    nest.arrange(sizes);
    nest.plan(section)
}

/// What stands in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Start,
    /// Where arrows to this node come in.
    Entry(usize),
    Node(usize),
    Cluster(usize),
    /// Where arrows to this place go out.
    Exit(Exit),
    End,
}

/// A place outside a cluster, with the tone of the arrows that lead there.
type Exit = (Far, Tone);

/// Where a thread leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Far {
    Node(usize),
    End,
    Task(usize),
}

/// One arrow of a cluster's diagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Strand {
    from: Part,
    /// The way out of the cluster it starts in.
    exit: Option<Exit>,
    /// `None` leads out at the right side.
    to: Option<Part>,
    /// The way into the cluster it ends in.
    entry: Option<usize>,
    tone: Tone,
}

/// A loop with what is in it, or the whole body.
#[derive(Default)]
struct Cluster {
    parent: usize,
    depth: usize,
    parts: Vec<Part>,
    part_index: BTreeMap<Part, usize>,
    strands: Vec<Strand>,
    strand_index: BTreeMap<Strand, usize>,
    /// The arrow whose label each strand carries.
    labels: Vec<Option<usize>>,
    layout: Layout,
}

impl Cluster {
    fn part(&mut self, part: Part) -> usize {
        let parts = &mut self.parts;
        *self.part_index.entry(part).or_insert_with(|| {
            parts.push(part);
            parts.len() - 1
        })
    }

    fn strand(&mut self, strand: Strand, label: Option<usize>) -> usize {
        self.part(strand.from);
        if let Some(to) = strand.to {
            self.part(to);
        }
        if let Some(&known) = self.strand_index.get(&strand) {
            return known;
        }
        self.strands.push(strand);
        self.labels.push(label);
        self.strand_index.insert(strand, self.strands.len() - 1);
        self.strands.len() - 1
    }

    /// Where a part stands in the layout.
    fn place(&self, part: Part) -> Option<Point> {
        let index = *self.part_index.get(&part)?;
        self.layout.places.get(index).copied()
    }
}

/// The pieces of one arrow: clusters and strands in them, from its start to its end.
type Thread = Vec<(usize, usize)>;

struct Nest {
    /// The whole body first; the others follow their parents.
    clusters: Vec<Cluster>,
    /// The cluster each node stands in.
    home: Vec<usize>,
    arrows: Vec<Thread>,
    entry: Option<Thread>,
    fans: Vec<Thread>,
}

impl Nest {
    fn new(section: &Section) -> Self {
        let nodes = &section.body.nodes;
        let loops: Vec<Option<usize>> = (0..nodes.len())
            .map(|index| {
                let mut above = section.parents[index];
                while let Some(parent) = above {
                    if nodes[parent].kind.is_loop() {
                        return Some(parent);
                    }
                    above = section.parents[parent];
                }
                None
            })
            .collect();
        // A loop with nothing in it is a box like any other.
        let mut depths: Vec<Option<usize>> = vec![None; nodes.len()];
        for owner in loops.iter().flatten() {
            let mut depth = 1;
            let mut above = loops[*owner];
            while let Some(outer) = above {
                depth += 1;
                above = loops[outer];
            }
            depths[*owner] = Some(depth);
        }
        let mut owners: Vec<usize> = (0..nodes.len()).filter(|&i| depths[i].is_some()).collect();
        owners.sort_by_key(|&owner| (depths[owner], owner));
        let mut cluster_of = vec![0; nodes.len()];
        for (index, &owner) in owners.iter().enumerate() {
            cluster_of[owner] = index + 1;
        }

        let mut clusters = vec![Cluster::default()];
        for &owner in &owners {
            let parent = loops[owner].map_or(0, |outer| cluster_of[outer]);
            clusters.push(Cluster {
                parent,
                depth: depths[owner].unwrap_or(0),
                ..Cluster::default()
            });
        }
        let home: Vec<usize> = (0..nodes.len())
            .map(|index| match depths[index] {
                Some(_) => cluster_of[index],
                None => loops[index].map_or(0, |owner| cluster_of[owner]),
            })
            .collect();

        // Parts in document order: what comes first tends to stand on the left.
        if section.entry.is_some() {
            clusters[0].part(Part::Start);
        }
        for (node, &home) in home.iter().enumerate() {
            clusters[home].part(Part::Node(node));
            let mut inner = home;
            while inner != 0 {
                let parent = clusters[inner].parent;
                clusters[parent].part(Part::Cluster(inner));
                inner = parent;
            }
        }
        Nest {
            clusters,
            home,
            arrows: Vec::new(),
            entry: None,
            fans: Vec::new(),
        }
    }

    /// Cuts every arrow where it goes into or out of a cluster.
    fn thread(&mut self, section: &Section) {
        self.entry = section.entry.map(|goal| {
            let to = far(goal);
            self.lead(Part::Start, 0, to, Tone::Plain, None)
        });
        for (index, arrow) in section.arrows.iter().enumerate() {
            let label = (!arrow.label.is_empty()).then_some(index);
            let from = Part::Node(arrow.from);
            let thread = self.lead(
                from,
                self.home[arrow.from],
                far(arrow.to),
                arrow.tone,
                label,
            );
            self.arrows.push(thread);
        }
        for &(node, task) in &section.fans {
            let from = Part::Node(node);
            let thread = self.lead(from, self.home[node], Far::Task(task), Tone::Task, None);
            self.fans.push(thread);
        }
    }

    fn lead(
        &mut self,
        from: Part,
        home: usize,
        to: Far,
        tone: Tone,
        mut label: Option<usize>,
    ) -> Thread {
        let goal = match to {
            Far::Node(node) => self.home[node],
            Far::End | Far::Task(_) => 0,
        };
        let (up, down) = self.way(home, goal);
        let mut thread = Vec::new();
        let mut from = from;
        let mut exit = None;
        for &inner in &up {
            let strand = Strand {
                from,
                exit,
                to: Some(Part::Exit((to, tone))),
                entry: None,
                tone,
            };
            thread.push((inner, self.clusters[inner].strand(strand, label.take())));
            from = Part::Cluster(inner);
            exit = Some((to, tone));
        }
        let shared = match up.last() {
            Some(&inner) => self.clusters[inner].parent,
            None => home,
        };
        let mut here = shared;
        for next in down.iter().copied().map(Some).chain([None]) {
            let (part, entry) = match (next, to) {
                (Some(inner), Far::Node(node)) => (Some(Part::Cluster(inner)), Some(node)),
                (None, Far::Node(node)) => (Some(Part::Node(node)), None),
                (_, Far::End) => (Some(Part::End), None),
                (_, Far::Task(_)) => (None, None),
            };
            let strand = Strand {
                from,
                exit,
                to: part,
                entry,
                tone,
            };
            thread.push((here, self.clusters[here].strand(strand, label.take())));
            if let (Some(inner), Some(node)) = (next, entry) {
                here = inner;
                from = Part::Entry(node);
                exit = None;
            }
        }
        thread
    }

    /// The clusters to leave, inner ones first, and those to enter, outer ones first.
    fn way(&self, from: usize, to: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut from, mut to) = (from, to);
        while from != to {
            if self.clusters[from].depth >= self.clusters[to].depth {
                up.push(from);
                from = self.clusters[from].parent;
            } else {
                down.push(to);
                to = self.clusters[to].parent;
            }
        }
        down.reverse();
        (up, down)
    }

    /// Lays out every cluster after those in it.
    fn arrange(&mut self, sizes: &Sizes) {
        for index in (0..self.clusters.len()).rev() {
            let diagram = self.diagram(index, sizes);
            self.clusters[index].layout = arrange(&diagram);
        }
    }

    fn diagram(&self, index: usize, sizes: &Sizes) -> Diagram {
        let cluster = &self.clusters[index];
        let items = cluster.parts.iter().map(|&part| self.item(part, sizes));
        let links = cluster.strands.iter().zip(&cluster.labels);
        let links = links.map(|(strand, label)| Link {
            from: cluster.part_index[&strand.from],
            to: match strand.to {
                Some(to) => Head::Item(cluster.part_index[&to]),
                None => Head::Side,
            },
            leaves: self.port(strand.from, strand.exit.map(Part::Exit)),
            enters: strand
                .to
                .and_then(|to| self.port(to, strand.entry.map(Part::Entry))),
            label: label.and_then(|arrow| sizes.labels[arrow]),
            tone: strand.tone,
        });
        Diagram {
            items: items.collect(),
            links: links.collect(),
        }
    }

    fn item(&self, part: Part, sizes: &Sizes) -> Item {
        let (width, height, inset, rank) = match part {
            Part::Start => (MARK, MARK, MARK / 2.0, Rank::First),
            Part::End => (MARK, MARK, MARK / 2.0, Rank::Last),
            Part::Entry(_) => (0.0, 0.0, 0.0, Rank::First),
            Part::Exit(_) => (0.0, 0.0, 0.0, Rank::Last),
            Part::Node(node) => {
                let (width, height) = sizes.nodes[node];
                (width, height, sizes.insets[node], Rank::Free)
            }
            Part::Cluster(inner) => {
                let layout = &self.clusters[inner].layout;
                let width = layout.width + 2.0 * PADDING;
                let height = layout.height + 2.0 * PADDING_Y;
                (width, height, PADDING, Rank::Free)
            }
        };
        Item {
            width,
            height,
            inset,
            rank,
        }
    }

    /// Where a way into or out of an inner cluster is, from the left side of its panel.
    fn port(&self, part: Part, gate: Option<Part>) -> Option<f64> {
        let Part::Cluster(inner) = part else {
            return None;
        };
        Some(PADDING + self.clusters[inner].place(gate?)?.x)
    }

    /// Puts the layouts of all clusters into one.
    fn plan(&self, section: &Section) -> Plan {
        let mut origins = vec![Point { x: 0.0, y: 0.0 }; self.clusters.len()];
        let mut panels = Vec::new();
        for index in 1..self.clusters.len() {
            let cluster = &self.clusters[index];
            let origin = origins[cluster.parent];
            let place = self.clusters[cluster.parent].place(Part::Cluster(index));
            let place = place.unwrap_or(Point { x: 0.0, y: 0.0 });
            let at = moved(place, origin);
            origins[index] = Point {
                x: at.x + PADDING,
                y: at.y + PADDING_Y,
            };
            panels.push(Panel {
                at,
                width: cluster.layout.width + 2.0 * PADDING,
                height: cluster.layout.height + 2.0 * PADDING_Y,
                depth: cluster.depth,
            });
        }
        let nodes = (0..section.body.nodes.len()).map(|node| {
            let home = self.home[node];
            let place = self.clusters[home].place(Part::Node(node));
            moved(place.unwrap_or(Point { x: 0.0, y: 0.0 }), origins[home])
        });
        let trace = |thread: &Thread| {
            let mut points: Vec<Point> = Vec::new();
            let mut label = None;
            for &(cluster, strand) in thread {
                let route = &self.clusters[cluster].layout.routes[strand];
                let here = origins[cluster];
                points.extend(route.points.iter().map(|&point| moved(point, here)));
                label = label.or(route.label.map(|at| moved(at, here)));
            }
            (straightened(points), label)
        };
        let body = &self.clusters[0];
        Plan {
            width: body.layout.width,
            height: body.layout.height,
            nodes: nodes.collect(),
            start: body.place(Part::Start),
            end: body.place(Part::End),
            panels,
            arrows: self.arrows.iter().map(trace).collect(),
            entry: self.entry.as_ref().map(|thread| trace(thread).0),
            fans: self.fans.iter().map(|thread| trace(thread).0).collect(),
        }
    }
}

fn far(goal: Goal) -> Far {
    match goal {
        Goal::Node(node) => Far::Node(node),
        Goal::End => Far::End,
    }
}

fn moved(point: Point, by: Point) -> Point {
    Point {
        x: point.x + by.x,
        y: point.y + by.y,
    }
}

/// Without points that lie on a straight line between their neighbours.
fn straightened(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        if let [.., a, b] = kept[..] {
            let upright = (a.x - b.x).abs() < 0.5 && (b.x - point.x).abs() < 0.5;
            if upright && (b.y - a.y) * (point.y - b.y) >= 0.0 {
                kept.pop();
            }
        }
        kept.push(point);
    }
    kept
}
