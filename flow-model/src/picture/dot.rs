//! A picture in the language of Graphviz.

use std::fmt::Write as _;

use super::label::{self, xml};
use super::sketch::{Goal, Role, Section, Sketch, Tone};
use crate::graph::{Graph, Kind, Node};

/// The longest text in a node or at an arrow, in columns.
const LONGEST: usize = 48;

/// Draws the graph in the language of Graphviz.
///
/// ```
/// # use flow_model::graph::Graph;
/// fn save(graph: &Graph) -> std::io::Result<()> {
///     // Then: dot -Tpdf -O workflow.dot
///     std::fs::write("workflow.dot", flow_model::picture::dot(graph))
/// }
/// ```
#[must_use]
pub fn dot(graph: &Graph) -> String {
    let sketch = Sketch::new(graph);
    let mut out = String::new();
    let _ = writeln!(out, "digraph {} {{", quoted(&label::clean(&graph.name)));
    out.push_str(
        "  graph [fontname=\"Helvetica\", fontsize=11, labeljust=l, nodesep=0.4, ranksep=0.45, \
         compound=true, pad=0.3]\n  \
         node [fontname=\"Helvetica\", fontsize=11, shape=box, style=\"rounded,filled\", \
         fillcolor=\"#ffffff\", color=\"#8c959f\", penwidth=1.1, margin=\"0.16,0.08\"]\n  \
         edge [fontname=\"Helvetica\", fontsize=9, color=\"#6e7781\", fontcolor=\"#59636e\", \
         arrowsize=0.7]\n",
    );
    title(&mut out, graph);
    let mut open = false;
    for section in &sketch.sections {
        let prefix = prefix(section.role);
        let Some(heading) = section.heading(graph) else {
            body(&mut out, graph, section, &prefix, "  ");
            continue;
        };
        // The failure steps of a task stand inside the task.
        let inner = matches!(section.role, Role::TaskFailure(_));
        if open && !inner {
            out.push_str("  }\n");
        }
        open = true;
        let indent = if inner { "    " } else { "  " };
        let fill = if inner { "#ffffff" } else { "#f6f8fa" };
        let line = quoted(&label::elide(&heading.line(), 72));
        let _ = writeln!(
            out,
            "{indent}subgraph cluster_{prefix} {{\n{indent}  \
             graph [label={line}, style=\"rounded,filled\", color=\"#d1d9e0\", \
             fillcolor=\"{fill}\", margin=14]"
        );
        body(&mut out, graph, section, &prefix, &format!("{indent}  "));
        if inner {
            let _ = writeln!(out, "{indent}}}");
        }
    }
    if open {
        out.push_str("  }\n");
    }
    for section in &sketch.sections {
        for &(node, task) in &section.fans {
            let to = prefix(Role::Task(task));
            let entered = sketch.sections.iter().any(|other| {
                other.role == Role::Task(task)
                    && (other.entry.is_some() || !other.body.nodes.is_empty())
            });
            if entered {
                let _ = writeln!(
                    out,
                    "  {}_{node} -> {to}_start [lhead=cluster_{to}, style=dashed, \
                     color=\"#8250df\", constraint=false]",
                    prefix(section.role)
                );
            }
        }
    }
    out.push_str("}\n");
    out
}

fn title(out: &mut String, graph: &Graph) {
    let name = xml(&label::elide(&label::clean(&graph.name), 80));
    let about = label::clean(graph.description.as_deref().unwrap_or(""));
    let mut text = format!("<b>{name}</b>");
    if !about.is_empty() {
        let about = xml(&label::elide(&about, 100));
        let _ = write!(
            text,
            "<br align=\"left\"/><font point-size=\"10\">{about}</font>"
        );
    }
    let _ = writeln!(
        out,
        "  labelloc=t\n  label=<<font point-size=\"15\">{text}<br align=\"left\"/></font>>"
    );
}

/// What the ids of a body's nodes start with.
fn prefix(role: Role) -> String {
    match role {
        Role::Main => "n".to_owned(),
        Role::Task(index) => format!("task{index}"),
        Role::TaskFailure(index) => format!("task{index}_failed"),
        Role::Failure => "failed".to_owned(),
    }
}

fn body(out: &mut String, graph: &Graph, section: &Section, prefix: &str, indent: &str) {
    let _ = writeln!(
        out,
        "{indent}{prefix}_start [label=\"\", shape=circle, width=0.16, fillcolor=\"#1f2328\", \
         color=\"#1f2328\", tooltip=\"start\"]"
    );
    for (index, node) in section.body.nodes.iter().enumerate() {
        let (shape, colour) = look(&node.kind);
        let _ = writeln!(
            out,
            "{indent}{prefix}_{index} [label=<{}>, {shape}, color=\"{colour}\", tooltip={}]",
            text(graph, node, colour),
            quoted(&label::details(graph, node))
        );
    }
    let mut goals = section
        .arrows
        .iter()
        .map(|arrow| arrow.to)
        .chain(section.entry);
    if goals.any(|to| to == Goal::End) {
        let _ = writeln!(
            out,
            "{indent}{prefix}_end [label=\"\", shape=doublecircle, width=0.12, \
             fillcolor=\"#1f2328\", color=\"#1f2328\", tooltip=\"end\"]"
        );
    }
    let goal = |to: Goal| match to {
        Goal::Node(index) => format!("{prefix}_{index}"),
        Goal::End => format!("{prefix}_end"),
    };
    if let Some(entry) = section.entry {
        let _ = writeln!(out, "{indent}{prefix}_start -> {}", goal(entry));
    }
    for arrow in &section.arrows {
        let mut attributes = Vec::new();
        if !arrow.label.is_empty() {
            let words = quoted(&format!(" {} ", label::elide(&arrow.label, LONGEST)));
            attributes.push(format!("label={words}"));
        }
        match arrow.tone {
            Tone::Plain => {}
            Tone::Aside => attributes.push("style=dashed".to_owned()),
            Tone::Trouble | Tone::Task => {
                attributes.push("color=\"#cf222e\", fontcolor=\"#cf222e\"".to_owned());
            }
        }
        let _ = write!(out, "{indent}{prefix}_{} -> {}", arrow.from, goal(arrow.to));
        match attributes.is_empty() {
            true => out.push('\n'),
            false => {
                let _ = writeln!(out, " [{}]", attributes.join(", "));
            }
        }
    }
}

fn text(graph: &Graph, node: &Node, colour: &str) -> String {
    let id = xml(&label::elide(&label::id(node), LONGEST));
    let word = node.kind.word();
    let mut text = format!("<b>{id}</b>  <font color=\"{colour}\" point-size=\"9\">{word}</font>");
    if let Some(line) = label::excerpt(graph, node) {
        let line = xml(&label::elide(&line, LONGEST));
        let _ = write!(
            text,
            "<br/><font face=\"Courier\" point-size=\"9\">{line}</font>"
        );
    }
    if let Some(note) = label::note(graph, node) {
        let note = xml(&label::elide(&note, LONGEST));
        let _ = write!(text, "<br/><font point-size=\"9\"><i>{note}</i></font>");
    }
    text
}

/// The shape and the colour of a node.
fn look(kind: &Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Condition { .. } => ("shape=hexagon, style=filled", "#c2410c"),
        Kind::While { .. } | Kind::Loop { .. } => ("shape=house, style=filled", "#15803d"),
        Kind::FanOut(_) => ("shape=box3d, style=filled", "#15803d"),
        Kind::Jump(_) | Kind::Goto { .. } => ("shape=cds, style=filled", "#57606a"),
        Kind::Return { .. } => ("shape=note, style=filled", "#be185d"),
        Kind::SetState => ("shape=box", "#0e7490"),
        Kind::Call(_) => ("shape=component, style=filled", "#4547c9"),
        Kind::Shell(_) => ("shape=box", "#0f766e"),
        Kind::Tool { .. } => ("shape=box", "#1d5fd6"),
        Kind::Prompt(_) => ("shape=box", "#a15c07"),
        Kind::Wait { .. } => ("shape=box", "#57606a"),
        Kind::Delegate { .. } => ("shape=box", "#6d3fc4"),
    }
}

/// A string of the language.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Graphviz reads entities in strings, too.
            '&' => out.push_str("&amp;"),
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::samples;

    #[test]
    fn a_single_step_has_a_start_and_an_end() {
        let picture = dot(&samples::single());
        assert!(picture.starts_with("digraph \"hello\" {\n"));
        assert!(picture.contains("  n_start -> n_0\n"));
        assert!(picture.contains("  n_0 -> n_end\n"));
        assert!(picture.ends_with("}\n"));
    }

    #[test]
    fn tasks_are_clusters_with_their_failure_steps_inside() {
        let picture = dot(&samples::fans());
        let task = picture.find("subgraph cluster_task0 {");
        let failed = picture.find("subgraph cluster_task0_failed {");
        let other = picture.find("subgraph cluster_task1 {");
        assert!(task < failed && failed < other && task.is_some());
        assert!(picture.contains("subgraph cluster_failed {"));
        assert!(picture.contains("n_3 -> task0_start [lhead=cluster_task0"));
    }

    #[test]
    fn braces_and_quotes_are_balanced_whatever_the_texts() {
        let random = (0..200).map(samples::random);
        let named = samples::all().into_iter().map(|(_, graph)| graph);
        for graph in random.chain(named) {
            let picture = dot(&graph);
            let (mut depth, mut angle, mut in_string, mut escaped) = (0, 0, false, false);
            for char in picture.chars() {
                match char {
                    _ if escaped => escaped = false,
                    '\\' if in_string => escaped = true,
                    '"' if angle == 0 => in_string = !in_string,
                    '<' if !in_string => angle += 1,
                    '>' if !in_string && angle > 0 => angle -= 1,
                    '{' if !in_string && angle == 0 => depth += 1,
                    '}' if !in_string && angle == 0 => depth -= 1,
                    _ => {}
                }
                assert!(depth >= 0);
            }
            assert_eq!((depth, angle, in_string), (0, 0, false));
        }
    }
}
