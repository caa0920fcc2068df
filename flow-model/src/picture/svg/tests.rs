//! Properties that every picture has.
#![allow(clippy::unwrap_used, reason = "a missing value is a failed test")]

use super::layered::Point;
use super::nest::MARK;
use super::page::{Page, TAG_HEIGHT};
use super::svg;
use crate::graph::{Body, Graph, Guard, Target};
use crate::picture::samples;
use crate::picture::sketch::{Goal, Sketch};

/// A rectangle with what it is.
#[derive(Debug)]
#[expect(dead_code, reason = "`what` is for the message of a failed test")]
struct Frame {
    what: String,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn new(what: String, at: Point, width: f64, height: f64) -> Self {
        Frame {
            what,
            left: at.x,
            top: at.y,
            right: at.x + width,
            bottom: at.y + height,
        }
    }

    fn overlaps(&self, other: &Frame) -> bool {
        self.left < other.right - 0.1
            && other.left < self.right - 0.1
            && self.top < other.bottom - 0.1
            && other.top < self.bottom - 0.1
    }

    /// Whether a horizontal or vertical line runs through the inside.
    fn is_cut_by(&self, from: Point, to: Point) -> bool {
        let inside = 1.0;
        from.x.min(to.x) < self.right - inside
            && from.x.max(to.x) > self.left + inside
            && from.y.min(to.y) < self.bottom - inside
            && from.y.max(to.y) > self.top + inside
    }

    fn holds(&self, other: &Frame) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }
}

fn moved(point: Point, by: Point) -> Point {
    Point {
        x: point.x + by.x,
        y: point.y + by.y,
    }
}

fn boxes(page: &Page) -> Vec<Frame> {
    let mut frames = Vec::new();
    for sheet in &page.sheets {
        for (index, face) in sheet.faces.iter().enumerate() {
            let at = moved(sheet.plan.nodes[index], sheet.at);
            frames.push(Frame::new(face.id.clone(), at, face.width, face.height));
        }
        for mark in [sheet.plan.start, sheet.plan.end].into_iter().flatten() {
            let at = moved(mark, sheet.at);
            frames.push(Frame::new("mark".to_owned(), at, MARK, MARK));
        }
    }
    frames
}

fn labels(page: &Page) -> Vec<Frame> {
    let mut frames = Vec::new();
    for sheet in &page.sheets {
        for (words, (_, at)) in sheet.arrows.iter().zip(&sheet.plan.arrows) {
            if let Some(at) = at.map(|at| moved(at, sheet.at)) {
                let corner = Point {
                    x: at.x - words.width / 2.0,
                    y: at.y - TAG_HEIGHT / 2.0,
                };
                frames.push(Frame::new(
                    words.title.clone(),
                    corner,
                    words.width,
                    TAG_HEIGHT,
                ));
            }
        }
    }
    frames
}

fn ways(page: &Page) -> Vec<Vec<Point>> {
    let mut ways = page.links.clone();
    for sheet in &page.sheets {
        let arrows = sheet.plan.arrows.iter().map(|(points, _)| points);
        for points in arrows.chain(&sheet.plan.entry) {
            ways.push(points.iter().map(|&point| moved(point, sheet.at)).collect());
        }
    }
    ways
}

fn every_graph() -> Vec<(String, Graph)> {
    let named = samples::all()
        .into_iter()
        .map(|(name, graph)| (name.to_owned(), graph));
    let random = (0..200).map(|seed| (format!("random {seed}"), samples::random(seed)));
    named.chain(random).collect()
}

#[test]
fn no_two_boxes_overlap() {
    for (name, graph) in every_graph() {
        let page = Page::new(&Sketch::new(&graph));
        let boxes = boxes(&page);
        for (index, one) in boxes.iter().enumerate() {
            for other in &boxes[..index] {
                assert!(!one.overlaps(other), "{name}: {one:?} and {other:?}");
            }
        }
    }
}

#[test]
fn no_arrow_runs_through_a_box() {
    for (name, graph) in every_graph() {
        let page = Page::new(&Sketch::new(&graph));
        let boxes = boxes(&page);
        for way in ways(&page) {
            for line in way.windows(2) {
                for frame in &boxes {
                    assert!(
                        !frame.is_cut_by(line[0], line[1]),
                        "{name}: {line:?} of {way:?} runs through {frame:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_arrow_is_made_of_upright_and_level_lines() {
    for (name, graph) in every_graph() {
        let page = Page::new(&Sketch::new(&graph));
        for way in ways(&page) {
            assert!(way.len() >= 2, "{name}: {way:?}");
            for line in way.windows(2) {
                let (across, down) = (line[0].x - line[1].x, line[0].y - line[1].y);
                assert!(across.abs() < 0.6 || down.abs() < 0.01, "{name}: {way:?}");
            }
        }
    }
}

#[test]
fn every_arrow_joins_the_boxes_it_is_about() {
    for (name, graph) in every_graph() {
        let sketch = Sketch::new(&graph);
        let page = Page::new(&sketch);
        for (section, sheet) in sketch.sections.iter().zip(&page.sheets) {
            for (arrow, (points, _)) in section.arrows.iter().zip(&sheet.plan.arrows) {
                let (first, last) = (points[0], points[points.len() - 1]);
                let from = sheet.plan.nodes[arrow.from];
                let face = &sheet.faces[arrow.from];
                assert!((first.y - from.y - face.height).abs() < 0.1, "{name}");
                assert!((from.x..=from.x + face.width).contains(&first.x), "{name}");
                let (to, width) = match arrow.to {
                    Goal::Node(to) => (sheet.plan.nodes[to], sheet.faces[to].width),
                    Goal::End => (sheet.plan.end.unwrap(), MARK),
                };
                assert!((last.y - to.y).abs() < 0.1, "{name}");
                assert!((to.x..=to.x + width).contains(&last.x), "{name}");
            }
        }
    }
}

#[test]
fn no_label_covers_a_label_or_a_box() {
    for (name, graph) in every_graph() {
        let page = Page::new(&Sketch::new(&graph));
        let (boxes, labels) = (boxes(&page), labels(&page));
        for (index, one) in labels.iter().enumerate() {
            for other in labels[..index].iter().chain(&boxes) {
                assert!(!one.overlaps(other), "{name}: {one:?} and {other:?}");
            }
        }
    }
}

#[test]
fn everything_is_on_the_page() {
    for (name, graph) in every_graph() {
        let page = Page::new(&Sketch::new(&graph));
        let sheet = Frame::new(
            "page".to_owned(),
            Point { x: 0.0, y: 0.0 },
            page.width,
            page.height,
        );
        for frame in boxes(&page).iter().chain(&labels(&page)) {
            assert!(sheet.holds(frame), "{name}: {frame:?}");
        }
        for point in ways(&page).into_iter().flatten() {
            let frame = Frame::new(String::new(), point, 0.0, 0.0);
            assert!(sheet.holds(&frame), "{name}: {point:?}");
        }
    }
}

#[test]
fn a_loop_s_panel_holds_its_nodes_and_no_others() {
    let graph = samples::nested();
    let page = Page::new(&Sketch::new(&graph));
    let sheet = &page.sheets[0];
    let frame = |id: &str| {
        let index = usize::from(graph.body.find(id).unwrap());
        let face = &sheet.faces[index];
        Frame::new(
            id.to_owned(),
            sheet.plan.nodes[index],
            face.width,
            face.height,
        )
    };
    let panels: Vec<Frame> = sheet
        .plan
        .panels
        .iter()
        .map(|panel| Frame::new("panel".to_owned(), panel.at, panel.width, panel.height))
        .collect();
    assert_eq!(panels.len(), 2);
    for id in ["drain", "take", "tally", "per_file", "lint"] {
        assert!(panels[0].holds(&frame(id)), "{id}");
    }
    for id in ["load", "has_work", "idle", "report", "give_up"] {
        assert!(!panels[0].overlaps(&frame(id)), "{id}");
    }
    for id in ["per_file", "lint", "clean", "mark", "fatal", "stop", "next"] {
        assert!(panels[1].holds(&frame(id)), "{id}");
    }
    for id in ["drain", "take", "tally"] {
        assert!(!panels[1].overlaps(&frame(id)), "{id}");
    }
}

#[test]
fn steps_in_a_row_stand_in_one_straight_line() {
    let graph = samples::linear();
    let page = Page::new(&Sketch::new(&graph));
    for way in ways(&page) {
        assert_eq!(way.len(), 2, "{way:?}");
    }
}

#[test]
fn the_text_is_well_formed_xml() {
    for (name, graph) in every_graph() {
        if let Err(fault) = well_formed(&svg(&graph)) {
            panic!("{name}: {fault}");
        }
    }
}

#[test]
fn hostile_texts_stay_texts() {
    let picture = svg(&samples::hostile());
    assert!(!picture.contains("<script"));
    assert!(!picture.contains("onload=\""));
    assert!(!picture.contains('\u{202E}'));
    assert!(!picture.contains('\u{0}'));
    assert_eq!(picture.matches("<svg").count(), 1);
}

#[test]
fn the_same_graph_gives_the_same_picture() {
    for (_, graph) in every_graph().into_iter().take(40) {
        assert_eq!(svg(&graph), svg(&graph.clone()));
    }
}

#[test]
fn a_node_s_details_are_there_for_who_points_at_it() {
    let picture = svg(&samples::linear());
    assert!(picture.contains("<title>build (shell)\ncargo build --release --locked --workspace"));
    assert!(picture.contains("role=\"img\""));
    assert!(picture.contains("<title>release</title>"));
}

#[test]
fn a_thousand_nodes_with_long_ways_and_ways_back_are_drawn() {
    let picture = svg(&chain(1_000));
    assert_eq!(picture.matches("class=\"node ").count(), 1_000);
}

#[test]
fn containers_that_contain_each_other_are_drawn() {
    let mut graph = chain(4);
    for (index, node) in graph.body.nodes.to_mut().iter_mut().enumerate() {
        node.kind = samples::repeat("true", 2);
        node.parent = Some([1, 2, 0, 3][index]);
    }
    assert!(well_formed(&svg(&graph)).is_ok());
}

#[test]
fn indices_that_lead_nowhere_are_left_out() {
    let mut graph = chain(2);
    graph.body.entry = Target::Node(999);
    let nodes = graph.body.nodes.to_mut();
    nodes[0].parent = Some(700);
    nodes[0].edges.to_mut()[0].to = Target::Node(40);
    nodes[1].kind = samples::fan_out("xs", 77);
    assert!(well_formed(&svg(&graph)).is_ok());
    graph.body = Body {
        entry: Target::Node(0),
        ..Body::EMPTY
    };
    assert!(well_formed(&svg(&graph)).is_ok());
}

/// Steps in a row, every one of which fails into the last and every seventh of which leads back.
fn chain(count: usize) -> Graph {
    let mut draft = samples::Draft::default();
    for index in 0..count {
        let next = match index + 1 == count {
            true => "end".to_owned(),
            false => format!("step_{}", index + 1),
        };
        draft = draft
            .node(&format!("step_{index}"), samples::shell("make all"))
            .then(&next);
        if index > 20 && index.is_multiple_of(7) {
            draft = draft.to(Guard::Timeout, &format!("step_{}", index - 20));
        }
        draft = draft.to(Guard::Failure, &format!("step_{}", count - 1));
    }
    samples::graph("long", "A long one.", draft.body())
}

/// Whether tags are closed in order and texts hold no character that must be escaped.
fn well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text.trim();
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at])?;
        let close = rest[at..].find('>').ok_or("a tag does not end")?;
        let tag = &rest[at + 1..at + close];
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
        } else {
            let name = tag.split([' ', '/']).next().unwrap_or("");
            for (index, value) in tag.split('"').enumerate() {
                if index % 2 == 1 {
                    check_text(value)?;
                } else if index > 0 && !value.is_empty() && value != "/" && !value.ends_with('=') {
                    return Err(format!("odd attribute in <{tag}>"));
                }
            }
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        rest = &rest[at + close + 1..];
    }
    match open.as_slice() {
        [] => Ok(()),
        open => Err(format!("not closed: {open:?}")),
    }
}

fn check_text(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('&') {
        let entity = text[at..].split(';').next().unwrap_or("");
        if !["&lt", "&gt", "&amp", "&quot", "&#39"].contains(&entity) {
            return Err(format!("bad entity {entity}"));
        }
    }
    match text.chars().find(|c| c.is_control() && *c != '\n') {
        Some(char) => Err(format!("control character {char:?}")),
        None => Ok(()),
    }
}

/// With `FLOW_PICTURES` set to a folder, writes the samples there.
#[test]
fn samples_can_be_looked_at() {
    let Some(folder) = std::env::var_os("FLOW_PICTURES") else {
        return;
    };
    for (name, graph) in samples::all() {
        let write = |ending: &str, text: String| {
            let path = std::path::Path::new(&folder).join(format!("{name}.{ending}"));
            std::fs::write(path, text).unwrap();
        };
        write("svg", svg(&graph));
        write("dot", crate::picture::dot(&graph));
        write("mmd", crate::picture::mermaid(&graph));
        write("txt", crate::picture::ascii(&graph));
    }
}
