//! Where the bodies of a graph stand on one page: the run on the left, tasks and failure steps
//! beside it, each in a panel of its own.

use super::face::Face;
use super::layered::Point;
use super::measure::{Font, elide, width, wrap};
use super::nest::{Plan, Sizes, plan};
use crate::graph::{Graph, Node};
use crate::picture::label;
use crate::picture::sketch::{Goal, Role, Section, Sketch, Tone};

/// Room around everything.
const MARGIN: f64 = 36.0;
/// Room between the run and the panels beside it, without the links between them.
const AISLE: f64 = 44.0;
/// Room between two panels.
const BETWEEN: f64 = 32.0;
/// Room between the sides of a panel and what is in it.
const PADDING: f64 = 24.0;
/// Distance between two links beside each other.
const TRACK: f64 = 12.0;
/// Where a link meets a panel, from its top.
const DOCK: f64 = 28.0;
/// Width and height that a label takes besides its text.
const TAG: (f64, f64) = (10.0, 18.0);
/// The widest label.
const LABEL: f64 = 190.0;
/// The widest line of the description.
const ABOUT: f64 = 620.0;

/// A picture with a place for everything.
pub(super) struct Page<'g> {
    pub(super) graph: &'g Graph,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) name: String,
    pub(super) version: Option<String>,
    /// The description, in lines.
    pub(super) about: Vec<String>,
    pub(super) title: Point,
    pub(super) panels: Vec<Panel>,
    pub(super) sheets: Vec<Sheet<'g>>,
    /// The links from fan-outs to the panels of their tasks.
    pub(super) links: Vec<Vec<Point>>,
}

/// A titled background.
pub(super) struct Panel {
    pub(super) at: Point,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) word: &'static str,
    pub(super) name: String,
    pub(super) about: Vec<String>,
    /// A panel inside a panel.
    pub(super) inner: bool,
}

/// A body with its place on the page.
pub(super) struct Sheet<'g> {
    pub(super) nodes: &'g [Node],
    pub(super) at: Point,
    pub(super) faces: Vec<Face>,
    pub(super) plan: Plan,
    /// The words at each arrow with the class of its tone.
    pub(super) arrows: Vec<Words>,
    fans: Vec<usize>,
}

/// What is written at an arrow.
pub(super) struct Words {
    pub(super) text: String,
    pub(super) width: f64,
    pub(super) tone: Tone,
    /// Who it leads from and to, for those who point at it.
    pub(super) title: String,
}

const ABOUT_SIZE: f64 = 13.0;
const NAME_SIZE: f64 = 20.0;
pub(super) const TAG_HEIGHT: f64 = TAG.1;
const SMALL: f64 = 11.0;
const HEADING: f64 = 13.0;
const SAID: f64 = 10.5;

impl<'g> Sheet<'g> {
    fn new(graph: &'g Graph, section: &Section<'g>) -> Self {
        let nodes: &[Node] = &section.body.nodes;
        let faces: Vec<Face> = nodes.iter().map(|node| Face::new(graph, node)).collect();
        let arrows: Vec<Words> = section
            .arrows
            .iter()
            .map(|arrow| {
                let text = elide(&arrow.label, Font::Sans, SAID, LABEL);
                let to = match arrow.to {
                    Goal::Node(to) => label::id(&nodes[to]),
                    Goal::End => "end".to_owned(),
                };
                let mut title = format!("{} → {to}", label::id(&nodes[arrow.from]));
                if !arrow.label.is_empty() {
                    title = format!("{title}\n{}", arrow.label);
                }
                Words {
                    width: width(&text, Font::Sans, SAID) + TAG.0,
                    text,
                    tone: arrow.tone,
                    title,
                }
            })
            .collect();
        let sizes = Sizes {
            nodes: faces.iter().map(|face| (face.width, face.height)).collect(),
            labels: arrows
                .iter()
                .map(|words| (!words.text.is_empty()).then_some((words.width, TAG.1)))
                .collect(),
            insets: faces.iter().map(Face::inset).collect(),
        };
        Sheet {
            nodes,
            at: Point { x: 0.0, y: 0.0 },
            plan: plan(section, &sizes),
            faces,
            arrows,
            fans: section.fans.iter().map(|&(_, task)| task).collect(),
        }
    }
}

/// A titled panel before it has a place: the sheets in it, by index.
struct Block {
    role: Role,
    sheet: usize,
    failure: Option<usize>,
    heading: (&'static str, String, Vec<String>),
    inner_heading: Option<(&'static str, Vec<String>)>,
    width: f64,
    height: f64,
    /// Where links from the run would like to meet it.
    wish: Option<f64>,
}

impl<'g> Page<'g> {
    pub(super) fn new(sketch: &Sketch<'g>) -> Self {
        let graph = sketch.graph;
        let mut sheets: Vec<Sheet<'g>> = sketch
            .sections
            .iter()
            .map(|section| Sheet::new(graph, section))
            .collect();
        let mut blocks = blocks(sketch, &sheets);

        let name = elide(&label::clean(&graph.name), Font::Bold, NAME_SIZE, ABOUT);
        let version = graph.version.as_deref().map(label::clean);
        let version = version.filter(|version| !version.is_empty());
        let about = label::clean(graph.description.as_deref().unwrap_or(""));
        let about = wrap(&about, Font::Sans, ABOUT_SIZE, ABOUT, 3);
        let title_height = NAME_SIZE + 4.0 + about.len() as f64 * 19.0;
        let top = MARGIN + title_height + 30.0;

        let mut page = Page {
            graph,
            width: 0.0,
            height: 0.0,
            title: Point {
                x: MARGIN,
                y: MARGIN,
            },
            name,
            version,
            about,
            panels: Vec::new(),
            sheets: Vec::new(),
            links: Vec::new(),
        };
        let title_width = page.title_width();
        let main = &mut sheets[0];
        main.at = Point { x: MARGIN, y: top };
        if blocks.is_empty() {
            main.at.x += ((title_width - main.plan.width) / 2.0).max(0.0);
        }
        let mut right = (MARGIN + title_width).max(main.at.x + main.plan.width);
        let mut bottom = top + main.plan.height;

        if !blocks.is_empty() {
            for block in &mut blocks {
                block.wish = wish(&sheets[0], block.role);
            }
            // Stable: panels that no link leads to keep their order, after the others.
            blocks.sort_by(|a, b| match (a.wish, b.wish) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            });
            let split = split(&blocks, sheets[0].plan.height);
            let (beside, below) = blocks.split_at(split);
            let below_width = below.iter().map(|block| block.width).fold(0.0, f64::max);
            let lanes = beside.iter().filter(|block| block.wish.is_some()).count();
            let aisle = AISLE + lanes as f64 * TRACK;
            let left = sheets[0].plan.width.max(below_width);
            sheets[0].at.x += (left - sheets[0].plan.width) / 2.0;
            let x = MARGIN + left + aisle;
            let mut y = top;
            for block in beside {
                if let Some(wish) = block.wish {
                    y = y.max(wish - DOCK);
                }
                page.stand(block, &mut sheets, Point { x, y });
                y += block.height + BETWEEN;
            }
            let mut under = bottom + BETWEEN;
            for block in below {
                let at = Point {
                    x: MARGIN,
                    y: under,
                };
                page.stand(block, &mut sheets, at);
                under += block.height + BETWEEN;
            }
            bottom = bottom.max(y - BETWEEN).max(under - BETWEEN);
            let column = beside.iter().map(|block| block.width).fold(0.0, f64::max);
            right = right.max(MARGIN + left).max(x + column);
            right = right.max(page.link(&blocks, &sheets, x, x + column));
        }
        page.width = right + MARGIN;
        page.height = bottom + MARGIN;
        page.sheets = sheets;
        page
    }

    fn title_width(&self) -> f64 {
        let mut first = width(&self.name, Font::Bold, NAME_SIZE);
        if let Some(version) = &self.version {
            first += 12.0 + width(version, Font::Sans, 12.0);
        }
        self.about
            .iter()
            .map(|line| width(line, Font::Sans, ABOUT_SIZE))
            .fold(first, f64::max)
    }

    /// Gives a panel and the sheets in it their places.
    fn stand(&mut self, block: &Block, sheets: &mut [Sheet<'g>], at: Point) {
        let (word, name, about) = &block.heading;
        self.panels.push(Panel {
            at,
            width: block.width,
            height: block.height,
            word,
            name: name.clone(),
            about: about.clone(),
            inner: false,
        });
        let sheet = &mut sheets[block.sheet];
        let y = at.y + heading_height(about);
        sheet.at = Point {
            x: at.x + (block.width - sheet.plan.width) / 2.0,
            y,
        };
        let below = y + sheet.plan.height;
        if let (Some(failure), Some((word, about))) = (block.failure, &block.inner_heading) {
            let at = Point {
                x: at.x + PADDING / 2.0,
                y: below + PADDING,
            };
            let sheet = &mut sheets[failure];
            let inner = block.width - PADDING;
            sheet.at = Point {
                x: at.x + (inner - sheet.plan.width) / 2.0,
                y: at.y + heading_height(about),
            };
            self.panels.push(Panel {
                at,
                width: inner,
                height: heading_height(about) + sheet.plan.height + PADDING,
                word,
                name: String::new(),
                about: about.clone(),
                inner: true,
            });
        }
    }

    /// Leads the ways out of fan-outs to the panels of their tasks. Returns the right bound.
    fn link(&mut self, blocks: &[Block], sheets: &[Sheet<'g>], left: f64, right: f64) -> f64 {
        let panel_of = |task: usize| {
            let block = blocks
                .iter()
                .position(|block| block.role == Role::Task(task))?;
            let panel = self.panels.iter().filter(|panel| !panel.inner).nth(block)?;
            Some((block, panel.at, panel.width))
        };
        let mut links = Vec::new();
        let mut bound = right;
        let lanes = blocks.iter().filter(|block| block.wish.is_some()).count();
        for (index, sheet) in sheets.iter().enumerate() {
            for (points, &task) in sheet.plan.fans.iter().zip(&sheet.fans) {
                let Some((block, at, width)) = panel_of(task) else {
                    continue;
                };
                let mut points: Vec<Point> = points
                    .iter()
                    .map(|point| Point {
                        x: point.x + sheet.at.x,
                        y: point.y + sheet.at.y,
                    })
                    .collect();
                let Some(last) = points.last().copied() else {
                    continue;
                };
                let y = at.y + DOCK;
                // The way of a lower panel turns further left, so that none crosses another.
                let (lane, end) = match index {
                    0 => (left - AISLE / 2.0 - block.min(lanes) as f64 * TRACK, at.x),
                    _ => (right + 16.0 + block as f64 * TRACK, at.x + width),
                };
                if (last.y - y).abs() > 0.5 || index > 0 {
                    points.push(Point { x: lane, y: last.y });
                    points.push(Point { x: lane, y });
                }
                points.push(Point { x: end, y });
                bound = bound.max(lane);
                links.push(points);
            }
        }
        self.links = links;
        bound
    }
}

/// How many of the panels stand beside the run. The others are ones that no link leads to, and stand
/// below it where that makes the page shorter.
fn split(blocks: &[Block], run: f64) -> usize {
    let height =
        |blocks: &[Block]| -> f64 { blocks.iter().map(|block| block.height + BETWEEN).sum() };
    let mut split = blocks.len();
    while split > 0
        && blocks[split - 1].wish.is_none()
        && matches!(blocks[split - 1].role, Role::Failure)
        && run + height(&blocks[split - 1..]) <= height(&blocks[..split])
    {
        split -= 1;
    }
    split
}

fn wish(main: &Sheet, role: Role) -> Option<f64> {
    let Role::Task(task) = role else {
        return None;
    };
    let ways = main.plan.fans.iter().zip(&main.fans);
    ways.filter(|(_, to)| **to == task)
        .filter_map(|(points, _)| points.last())
        .map(|point| point.y + main.at.y)
        .min_by(f64::total_cmp)
}

fn heading_height(about: &[String]) -> f64 {
    42.0 + about.len() as f64 * 16.0 + if about.is_empty() { 0.0 } else { 8.0 }
}

fn blocks(sketch: &Sketch, sheets: &[Sheet]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (index, section) in sketch.sections.iter().enumerate() {
        let Some(heading) = section.heading(sketch.graph) else {
            continue;
        };
        let plan = &sheets[index].plan;
        let inside = plan.width.max(220.0);
        let about = wrap(&heading.text, Font::Sans, SMALL, inside.max(260.0), 2);
        let name = elide(&heading.name, Font::Bold, HEADING, 280.0);
        let title =
            width(heading.word, Font::Sans, SMALL) + 8.0 + width(&name, Font::Bold, HEADING);
        let lines = about.iter().map(|line| width(line, Font::Sans, SMALL));
        let inside = lines.fold(plan.width.max(title), f64::max);
        let height = heading_height(&about) + plan.height + PADDING;
        if let Role::TaskFailure(_) = section.role
            && let Some(task) = blocks.last_mut()
        {
            task.failure = Some(index);
            task.inner_heading = Some((heading.word, about));
            task.width = task.width.max(inside + 3.0 * PADDING);
            task.height += height + PADDING / 2.0;
            continue;
        }
        blocks.push(Block {
            role: section.role,
            sheet: index,
            failure: None,
            heading: (heading.word, name, about),
            inner_heading: None,
            width: inside + 2.0 * PADDING,
            height,
            wish: None,
        });
    }
    blocks
}
