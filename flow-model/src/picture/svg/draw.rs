//! A page as SVG text.

use std::fmt::Write as _;

use super::face::{Face, GUTTER, ICON, PADDING, POINT, Shape};
use super::layered::Point;
use super::nest::MARK;
use super::page::{Page, Panel, Sheet, TAG_HEIGHT};
use super::style;
use crate::picture::label::{clean, xml};
use crate::picture::sketch::Tone;

/// Radius of the bends of arrows.
const BEND: f64 = 9.0;
/// Length and half the width of an arrow's tip.
const TIP: (f64, f64) = (8.0, 4.2);

/// Writes the page.
pub(super) fn draw(page: &Page) -> String {
    let mut out = String::new();
    let (width, height) = (number(page.width.ceil()), number(page.height.ceil()));
    let name = xml(&clean(&page.graph.name));
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flow-picture\" role=\"img\" \
         aria-label=\"{name}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{name}</title>\n<desc>{}</desc>",
        xml(&description(page))
    );
    let _ = writeln!(out, "<style>\n{}</style>", style::sheet());
    let _ = writeln!(
        out,
        "<rect class=\"sheet\" width=\"{width}\" height=\"{height}\" rx=\"12\"/>"
    );
    title(&mut out, page);
    for panel in &page.panels {
        self::panel(&mut out, panel);
    }
    for sheet in &page.sheets {
        loops(&mut out, sheet);
    }
    for sheet in &page.sheets {
        arrows(&mut out, sheet);
    }
    for points in &page.links {
        way(&mut out, points, Tone::Task, "");
    }
    for sheet in &page.sheets {
        marks(&mut out, sheet);
        for (index, face) in sheet.faces.iter().enumerate() {
            node(&mut out, face, moved(sheet.plan.nodes[index], sheet.at));
        }
    }
    for sheet in &page.sheets {
        labels(&mut out, sheet);
    }
    out.push_str("</svg>\n");
    out
}

fn description(page: &Page) -> String {
    let about = clean(page.graph.description.as_deref().unwrap_or(""));
    let mut parts = Vec::new();
    if !about.is_empty() {
        parts.push(about);
    }
    let main = page.sheets.first().map_or(0, |sheet| sheet.nodes.len());
    let noun = match page.graph.form {
        crate::graph::Form::Steps => "steps",
        crate::graph::Form::States => "states",
    };
    parts.push(format!("A workflow of {main} {noun}."));
    if !page.graph.tasks.is_empty() {
        let names: Vec<String> = page
            .graph
            .tasks
            .iter()
            .map(|task| clean(&task.name))
            .collect();
        parts.push(format!("Tasks: {}.", names.join(", ")));
    }
    parts.join(" ")
}

fn title(out: &mut String, page: &Page) {
    let Point { x, y } = page.title;
    let version = page.version.as_deref().unwrap_or("");
    pair(out, x, y + 16.0, ("name", &page.name), ("version", version));
    for (index, line) in page.about.iter().enumerate() {
        text(out, "about", x, y + 41.0 + index as f64 * 19.0, line);
    }
}

fn panel(out: &mut String, panel: &Panel) {
    let Point { x, y } = panel.at;
    rect(out, "panel", panel.at, panel.width, panel.height, 14.0);
    let left = x + 18.0;
    let first = y + 29.0;
    match panel.name.as_str() {
        "" => text(out, "heading", left, first, panel.word),
        name => pair(out, left, first, ("small", panel.word), ("heading", name)),
    }
    for (index, line) in panel.about.iter().enumerate() {
        text(out, "small", left, first + 18.0 + index as f64 * 16.0, line);
    }
}

fn loops(out: &mut String, sheet: &Sheet) {
    for panel in &sheet.plan.panels {
        let radius = if panel.depth % 2 == 1 { 16.0 } else { 14.0 };
        let at = moved(panel.at, sheet.at);
        rect(out, "loop", at, panel.width, panel.height, radius);
    }
}

fn arrows(out: &mut String, sheet: &Sheet) {
    if let Some(points) = &sheet.plan.entry {
        way(out, &placed(points, sheet.at), Tone::Plain, "");
    }
    // What goes as it should is drawn last and so stays whole where ways cross.
    for tone in [Tone::Aside, Tone::Trouble, Tone::Plain] {
        for (words, (points, _)) in sheet.arrows.iter().zip(&sheet.plan.arrows) {
            if words.tone == tone {
                way(out, &placed(points, sheet.at), tone, &words.title);
            }
        }
    }
}

fn labels(out: &mut String, sheet: &Sheet) {
    for (words, (_, at)) in sheet.arrows.iter().zip(&sheet.plan.arrows) {
        let Some(at) = at.map(|at| moved(at, sheet.at)) else {
            continue;
        };
        let corner = Point {
            x: at.x - words.width / 2.0,
            y: at.y - TAG_HEIGHT / 2.0,
        };
        rect(out, "tag", corner, words.width, TAG_HEIGHT, 5.0);
        let _ = writeln!(
            out,
            "<text class=\"said {}\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            class(words.tone),
            number(at.x),
            number(at.y + 3.7),
            xml(&words.text)
        );
    }
}

fn marks(out: &mut String, sheet: &Sheet) {
    let half = MARK / 2.0;
    let middle = |corner: Point| Point {
        x: corner.x + sheet.at.x + half,
        y: corner.y + sheet.at.y + half,
    };
    if let Some(start) = sheet.plan.start.map(middle) {
        circle(out, "mark", start, half - 2.0, "start");
    }
    if let Some(end) = sheet.plan.end.map(middle) {
        circle(out, "ring", end, half - 1.0, "end");
        circle(out, "mark", end, half - 4.5, "end");
    }
}

fn circle(out: &mut String, class: &str, at: Point, radius: f64, title: &str) {
    let _ = writeln!(
        out,
        "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"><title>{title}</title></circle>",
        number(at.x),
        number(at.y),
        number(radius)
    );
}

fn node(out: &mut String, face: &Face, at: Point) {
    let (width, height) = (face.width, face.height);
    let _ = writeln!(
        out,
        "<g class=\"node {}\"><title>{}</title>",
        face.look.class,
        xml(&face.details)
    );
    let below = Point {
        x: at.x,
        y: at.y + 2.0,
    };
    for (class, at) in [("shade", below), ("card", at)] {
        match face.shape {
            Shape::Box => rect(out, class, at, width, height, 10.0),
            Shape::Pill => rect(out, class, at, width, height, height / 2.0),
            Shape::Hexagon => hexagon(out, class, at, width, height),
        }
    }

    let icon = Point {
        x: at.x + face.indent(),
        y: at.y + (height - ICON) / 2.0,
    };
    rect(
        out,
        "tile",
        icon,
        ICON,
        ICON,
        if face.shape == Shape::Pill { 14.0 } else { 8.0 },
    );
    let _ = writeln!(
        out,
        "<path class=\"icon\" transform=\"translate({} {})\" d=\"{}\"/>",
        number(icon.x + (ICON - 16.0) / 2.0),
        number(icon.y + (ICON - 16.0) / 2.0),
        face.look.icon
    );

    let left = icon.x + ICON + GUTTER;
    let right = at.x + width - (face.indent() - PADDING) - PADDING - 2.0;
    let mut base = at.y
        + match (&face.line, &face.note) {
            (None, None) => height / 2.0 + 4.5,
            _ => 23.0,
        };
    text(out, "id", left, base, &face.id);
    let _ = writeln!(
        out,
        "<text class=\"word\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        number(right),
        number(base),
        face.word
    );
    for (class, line) in [("line", &face.line), ("note", &face.note)] {
        if let Some(line) = line {
            base += 17.5;
            text(out, class, left, base, line);
        }
    }
    out.push_str("</g>\n");
}

fn hexagon(out: &mut String, class: &str, at: Point, width: f64, height: f64) {
    let Point { x, y } = at;
    let (right, middle, bottom) = (x + width, y + height / 2.0, y + height);
    let corners = [
        (x + POINT, y),
        (right - POINT, y),
        (right, middle),
        (right - POINT, bottom),
        (x + POINT, bottom),
        (x, middle),
    ];
    let corners: Vec<Point> = corners.into_iter().map(|(x, y)| Point { x, y }).collect();
    let mut path = String::new();
    for index in 0..corners.len() {
        let before = corners[(index + corners.len() - 1) % corners.len()];
        let after = corners[(index + 1) % corners.len()];
        let command = if index == 0 { 'M' } else { 'L' };
        corner(&mut path, command, before, corners[index], after, 5.0);
    }
    let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}Z\"/>");
}

/// A line to a rounded corner, and around it.
fn corner(path: &mut String, command: char, before: Point, at: Point, after: Point, radius: f64) {
    let towards = |from: Point, to: Point| {
        let length = (to.x - from.x).hypot(to.y - from.y);
        let part = if length > 0.0 {
            (radius / length).min(0.5)
        } else {
            0.0
        };
        Point {
            x: from.x + (to.x - from.x) * part,
            y: from.y + (to.y - from.y) * part,
        }
    };
    let (first, last) = (towards(at, before), towards(at, after));
    let _ = write!(
        path,
        "{command}{} {}Q{} {} {} {}",
        number(first.x),
        number(first.y),
        number(at.x),
        number(at.y),
        number(last.x),
        number(last.y)
    );
}

/// An arrow along the points, with rounded bends and a tip.
fn way(out: &mut String, points: &[Point], tone: Tone, title: &str) {
    let [first, .., before, end] = points else {
        if let [first, end] = points {
            way(out, &[*first, *first, *end], tone, title);
        }
        return;
    };
    let length = (end.x - before.x).hypot(end.y - before.y);
    if length <= 0.0 {
        return;
    }
    let along = Point {
        x: (end.x - before.x) / length,
        y: (end.y - before.y) / length,
    };
    // The line ends inside the tip, so that the tip is sharp.
    let stop = Point {
        x: end.x - along.x * (TIP.0 - 1.5),
        y: end.y - along.y * (TIP.0 - 1.5),
    };
    let mut path = format!("M{} {}", number(first.x), number(first.y));
    for three in points.windows(3) {
        if three[0] != three[1] {
            corner(&mut path, 'L', three[0], three[1], three[2], BEND);
        }
    }
    let _ = write!(path, "L{} {}", number(stop.x), number(stop.y));

    let class = class(tone);
    if title.is_empty() {
        let _ = writeln!(out, "<path class=\"way {class}\" d=\"{path}\"/>");
    } else {
        let title = xml(title);
        let _ = writeln!(
            out,
            "<path class=\"way {class}\" d=\"{path}\"><title>{title}</title></path>"
        );
    }
    let root = Point {
        x: end.x - along.x * TIP.0,
        y: end.y - along.y * TIP.0,
    };
    let _ = writeln!(
        out,
        "<path class=\"tip {class}\" d=\"M{} {}L{} {}L{} {}Z\"/>",
        number(end.x),
        number(end.y),
        number(root.x - along.y * TIP.1),
        number(root.y + along.x * TIP.1),
        number(root.x + along.y * TIP.1),
        number(root.y - along.x * TIP.1)
    );
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Aside => "aside",
        Tone::Trouble => "trouble",
        Tone::Task => "task",
    }
}

fn text(out: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
        number(x),
        number(y),
        xml(text)
    );
}

/// Two texts beside each other, each with its class.
fn pair(out: &mut String, x: f64, y: f64, first: (&str, &str), second: (&str, &str)) {
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\"><tspan class=\"{}\">{}</tspan>\
         <tspan class=\"{}\" dx=\"9\">{}</tspan></text>",
        number(x),
        number(y),
        first.0,
        xml(first.1),
        second.0,
        xml(second.1)
    );
}

fn rect(out: &mut String, class: &str, at: Point, width: f64, height: f64, radius: f64) {
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>",
        number(at.x),
        number(at.y),
        number(width),
        number(height),
        number(radius)
    );
}

fn placed(points: &[Point], by: Point) -> Vec<Point> {
    points.iter().map(|&point| moved(point, by)).collect()
}

fn moved(point: Point, by: Point) -> Point {
    Point {
        x: point.x + by.x,
        y: point.y + by.y,
    }
}

/// A number with at most one digit after the point.
fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}
