//! A picture for a terminal: an outline that reads from top to bottom.
//!
//! What follows a node stands below it. Where ways part, each has a branch; where they come together
//! again, the node is told after the branches and every branch says `→ id`. A way back says
//! `↺ to id`.

mod order;

use super::label::{self, columns, elide};
use super::sketch::{Arrow, Goal, Section, Sketch, Tone};
use crate::graph::{Graph, Kind, Node};
use order::Order;

/// The width of a line.
const WIDTH: usize = 80;
/// Branches deeper than this are told after everything else.
const DEEPEST: usize = 10;
/// The most columns an id is padded to.
const ID: usize = 18;

/// Draws the graph as an outline of at most 80 columns.
///
/// ```
/// # use flow_model::graph::Graph;
/// fn show(graph: &Graph) {
///     print!("{}", flow_model::picture::ascii(graph));
/// }
/// ```
#[must_use]
pub fn ascii(graph: &Graph) -> String {
    let sketch = Sketch::new(graph);
    let mut lines = Vec::new();
    let version = graph.version.as_deref().map(label::clean);
    let title = format!(
        "{} {}",
        label::clean(&graph.name),
        version.unwrap_or_default()
    );
    lines.push(elide(title.trim(), WIDTH));
    let about = label::clean(graph.description.as_deref().unwrap_or(""));
    lines.extend(wrapped(&about));
    for section in &sketch.sections {
        lines.push(String::new());
        if let Some(heading) = section.heading(graph) {
            let heading = elide(&heading.line(), WIDTH - 8);
            let rule = "─".repeat(WIDTH - 4 - columns(&heading));
            lines.push(format!("── {heading} {rule}"));
            lines.push(String::new());
        }
        outline(&mut lines, graph, section);
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The text in lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(elide(word, WIDTH)),
        }
    }
    lines
}

fn outline(lines: &mut Vec<String>, graph: &Graph, section: &Section) {
    let order = Order::new(section);
    let widest = section
        .body
        .nodes
        .iter()
        .map(|node| columns(&label::id(node)));
    let mut outline = Outline {
        lines,
        graph,
        nodes: &section.body.nodes,
        told: vec![false; section.body.nodes.len()],
        later: Vec::new(),
        id_width: widest.max().unwrap_or(0).min(ID),
        order: &order,
    };
    match section.entry {
        Some(Goal::Node(entry)) => {
            outline.lines.push("● start".to_owned());
            outline.lines.push("│".to_owned());
            outline.tell(entry, "", 0);
        }
        Some(Goal::End) => {
            let lines = ["● start", "│", "◉ end"];
            outline.lines.extend(lines.map(str::to_owned));
        }
        None => {}
    }
    outline.tell_later();
    let rest = order
        .roots
        .iter()
        .chain(&order.joins[outline.nodes.len()])
        .copied();
    for root in rest.chain(0..outline.nodes.len()) {
        if !outline.told[root] {
            outline.lines.push(String::new());
            outline.lines.push("nothing leads here:".to_owned());
            outline.tell(root, "", 0);
            outline.tell_later();
        }
    }
}

struct Outline<'o> {
    lines: &'o mut Vec<String>,
    graph: &'o Graph,
    nodes: &'o [Node],
    order: &'o Order<'o>,
    told: Vec<bool>,
    /// Nodes that stand too deep to be told where they are reached.
    later: Vec<usize>,
    id_width: usize,
}

impl Outline<'_> {
    fn tell_later(&mut self) {
        while !self.later.is_empty() {
            let node = self.later.remove(0);
            if !self.told[node] {
                self.lines.push(String::new());
                self.tell(node, "", 0);
            }
        }
    }

    /// Tells of a node and of all that follows it on the same level.
    fn tell(&mut self, start: usize, prefix: &str, depth: usize) {
        let mut waiting: Vec<usize> = Vec::new();
        let mut next = Some(start);
        loop {
            let node = match next.take() {
                Some(node) => node,
                None => match self.take_first(&mut waiting) {
                    Some(node) => {
                        self.lines.push(prefix.to_owned());
                        node
                    }
                    None => return,
                },
            };
            if std::mem::replace(&mut self.told[node], true) {
                continue;
            }
            waiting.extend(&self.order.joins[node]);
            self.line(node, prefix);

            let arrows = &self.order.arrows[node];
            let main = self.main(node, &waiting);
            let branches: Vec<&Arrow> = (0..arrows.len())
                .filter(|&at| Some(at) != main)
                .map(|at| arrows[at])
                .collect();
            for (at, arrow) in branches.iter().enumerate() {
                let is_last = at + 1 == branches.len() && main.is_none();
                self.branch(arrow, prefix, depth, is_last);
            }
            if let Some(arrow) = main.map(|at| arrows[at]) {
                next = self.follow(arrow, prefix, &mut waiting);
            }
        }
    }

    /// Takes the node that comes first in the order.
    fn take_first(&self, waiting: &mut Vec<usize>) -> Option<usize> {
        waiting.retain(|&node| !self.told[node]);
        let at = (0..waiting.len()).min_by_key(|&at| self.order.place[waiting[at]])?;
        Some(waiting.remove(at))
    }

    /// The node an arrow leads to, when it is told right where the arrow is.
    fn inline(&self, arrow: &Arrow) -> Option<usize> {
        match arrow.to {
            Goal::Node(to) if self.is_forward(arrow) && !self.order.is_join[to] => {
                (!self.told[to]).then_some(to)
            }
            Goal::Node(_) | Goal::End => None,
        }
    }

    fn is_forward(&self, arrow: &Arrow) -> bool {
        match arrow.to {
            Goal::Node(to) => self.order.place[arrow.from] < self.order.place[to],
            Goal::End => true,
        }
    }

    /// The arrow that the line goes on with.
    fn main(&self, node: usize, waiting: &[usize]) -> Option<usize> {
        let arrows = &self.order.arrows[node];
        if arrows.len() < 2 {
            return (!arrows.is_empty()).then_some(0);
        }
        if matches!(
            self.nodes[node].kind,
            Kind::While { .. } | Kind::Loop { .. } | Kind::Goto { .. }
        ) {
            return arrows.iter().position(|arrow| arrow.label.contains("done"));
        }
        let plain = |at: &usize| arrows[*at].tone == Tone::Plain;
        let ways: Vec<usize> = (0..arrows.len()).filter(plain).collect();
        let inline: Vec<usize> = ways
            .iter()
            .copied()
            .filter(|&at| self.inline(arrows[at]).is_some())
            .collect();
        match inline.as_slice() {
            [] => {
                let is_next = |at: &usize| match arrows[*at].to {
                    Goal::Node(to) => self.is_first(to, waiting),
                    Goal::End => false,
                };
                match ways.as_slice() {
                    [only] if is_next(only) => Some(*only),
                    _ => None,
                }
            }
            [only] if ways.len() == 1 => Some(*only),
            several if self.order.joins[node].is_empty() => several
                .iter()
                .copied()
                .max_by_key(|&at| self.inline(arrows[at]).map(|to| self.order.weight[to])),
            _ => None,
        }
    }

    fn is_first(&self, node: usize, waiting: &[usize]) -> bool {
        let open = waiting.iter().copied().filter(|&other| !self.told[other]);
        open.min_by_key(|&other| self.order.place[other]) == Some(node)
    }

    /// Goes on with an arrow on the same level. Returns the node to tell of next, if any.
    fn follow(&mut self, arrow: &Arrow, prefix: &str, waiting: &mut Vec<usize>) -> Option<usize> {
        let bar = if arrow.tone == Tone::Plain {
            '│'
        } else {
            '╎'
        };
        let next = match arrow.to {
            Goal::End => None,
            Goal::Node(to) => match self.inline(arrow) {
                Some(to) => Some(to),
                None if self.is_forward(arrow) && self.is_first(to, waiting) => {
                    waiting.retain(|&other| other != to);
                    Some(to)
                }
                None => {
                    let line = format!("{prefix}└{}", self.branch_text(arrow));
                    self.lines.push(elide(&line, WIDTH));
                    return None;
                }
            },
        };
        let line = format!("{prefix}{bar} {}", arrow.label);
        self.lines.push(elide(&line, WIDTH));
        if next.is_none() {
            self.lines.push(format!("{prefix}◉ end"));
        }
        next
    }

    fn branch(&mut self, arrow: &Arrow, prefix: &str, depth: usize, is_last: bool) {
        let corner = if is_last { '└' } else { '├' };
        match self.inline(arrow) {
            Some(to) if depth < DEEPEST => {
                let dash = dash(arrow.tone);
                let line = format!("{prefix}{corner}{dash} {}", arrow.label);
                self.lines.push(elide(&line, WIDTH));
                let inner = format!("{prefix}{}  ", if is_last { ' ' } else { '│' });
                self.tell(to, &inner, depth + 1);
                if !is_last {
                    self.lines.push(format!("{prefix}│"));
                }
            }
            Some(to) => {
                self.later.push(to);
                self.jump(arrow, prefix, corner);
            }
            None => self.jump(arrow, prefix, corner),
        }
    }

    fn jump(&mut self, arrow: &Arrow, prefix: &str, corner: char) {
        let text = self.branch_text(arrow);
        self.lines
            .push(elide(&format!("{prefix}{corner}{text}"), WIDTH));
    }

    /// A branch that only says where it leads.
    fn branch_text(&self, arrow: &Arrow) -> String {
        let dash = dash(arrow.tone);
        let to = match arrow.to {
            Goal::End => "→ end".to_owned(),
            Goal::Node(to) => {
                let id = elide(&label::id(&self.nodes[to]), 32);
                match self.is_forward(arrow) {
                    true => format!("→ {id}"),
                    false => format!("↺ to {id}"),
                }
            }
        };
        match arrow.label.is_empty() {
            true => format!("{dash} {to}"),
            false => format!("{dash} {} {to}", elide(&arrow.label, 34)),
        }
    }

    fn line(&mut self, node: usize, prefix: &str) {
        let arrows = &self.order.arrows[node];
        let this = &self.nodes[node];
        let id = elide(&label::id(this), 40);
        let gap = " ".repeat(self.id_width.saturating_sub(columns(&id)));
        let excerpt = label::excerpt(self.graph, this).unwrap_or_default();
        let word = this.kind.word();
        let line = format!(
            "{prefix}{} {id}{gap}  {word:<9}  {excerpt}",
            glyph(&this.kind)
        );
        self.lines.push(elide(&line, WIDTH));
        if let Some(note) = label::note(self.graph, this) {
            let bar = if arrows.is_empty() { ' ' } else { '│' };
            self.lines
                .push(elide(&format!("{prefix}{bar}   {note}"), WIDTH));
        }
    }
}

fn dash(tone: Tone) -> char {
    match tone {
        Tone::Plain => '─',
        Tone::Aside | Tone::Trouble | Tone::Task => '╌',
    }
}

fn glyph(kind: &Kind) -> char {
    match kind {
        Kind::Condition { .. } => '◇',
        Kind::While { .. } | Kind::Loop { .. } => '↻',
        Kind::FanOut(_) => '⇉',
        Kind::Jump(_) | Kind::Goto { .. } => '↷',
        Kind::Return { .. } => '■',
        Kind::SetState
        | Kind::Call(_)
        | Kind::Shell(_)
        | Kind::Tool { .. }
        | Kind::Prompt(_)
        | Kind::Wait { .. }
        | Kind::Delegate { .. } => '□',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::samples;

    #[test]
    fn steps_in_a_row_are_lines_in_a_row() {
        let picture = ascii(&samples::single());
        assert_eq!(
            picture,
            "hello 1.2.0\nSays hello.\n\n● start\n│\n□ hello  shell      echo hello\n│\n◉ end\n"
        );
    }

    #[test]
    fn an_empty_body_goes_from_start_to_end() {
        assert!(ascii(&samples::empty()).ends_with("● start\n│\n◉ end\n"));
    }

    #[test]
    fn ways_back_say_where_they_lead() {
        let picture = ascii(&samples::debugger());
        assert_eq!(picture.matches("↺ to prompt_user").count(), 2, "{picture}");
        assert_eq!(picture.matches("→ cleanup").count(), 2, "{picture}");
    }

    #[test]
    fn every_node_is_told_once_and_no_line_is_too_long() {
        let random = (0..200).map(samples::random);
        let named = samples::all().into_iter().map(|(_, graph)| graph);
        for graph in random.chain(named) {
            let picture = ascii(&graph);
            let sketch = Sketch::new(&graph);
            let nodes: usize = sketch.sections.iter().map(|s| s.body.nodes.len()).sum();
            let told = picture.lines().filter(|line| {
                let line = line.trim_start_matches(['│', ' ']);
                line.starts_with(['□', '◇', '↻', '⇉', '↷', '■'])
            });
            assert_eq!(told.count(), nodes, "{picture}");
            for line in picture.lines() {
                assert!(columns(line) <= WIDTH, "{line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }

    #[test]
    fn a_long_chain_does_not_drift_to_the_right() {
        let picture = ascii(&samples::large());
        assert!(picture.contains("\n□ audit_12"), "{picture}");
    }
}
