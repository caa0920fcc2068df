//! A picture as a Mermaid flowchart, for pages that draw those.

use std::fmt::Write as _;

use super::label;
use super::sketch::{Goal, Role, Section, Sketch, Tone};
use crate::graph::{Graph, Kind, Node};

/// The longest text in a node or at an arrow, in columns.
const LONGEST: usize = 48;

/// Draws the graph as a Mermaid flowchart.
///
/// GitHub, GitLab and most documentation tools draw it from a code block marked `mermaid`.
///
/// ```
/// # use flow_model::graph::Graph;
/// fn block(graph: &Graph) -> String {
///     format!("```mermaid\n{}```\n", flow_model::picture::mermaid(graph))
/// }
/// ```
#[must_use]
pub fn mermaid(graph: &Graph) -> String {
    let sketch = Sketch::new(graph);
    let mut out = String::from("flowchart TD\n");
    for section in &sketch.sections {
        let prefix = prefix(section.role);
        let Some(heading) = section.heading(graph) else {
            body(&mut out, graph, section, &prefix, "  ");
            continue;
        };
        let title = escaped(&label::elide(&heading.line(), LONGEST));
        let _ = writeln!(out, "  subgraph {prefix}[\"{title}\"]");
        out.push_str("    direction TB\n");
        body(&mut out, graph, section, &prefix, "    ");
        out.push_str("  end\n");
    }
    for section in &sketch.sections {
        let from = prefix(section.role);
        for &(node, task) in &section.fans {
            let to = prefix(Role::Task(task));
            let _ = writeln!(out, "  {from}_{node} -. each item .-> {to}");
        }
    }
    out
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
    if section.entry.is_some() {
        let _ = writeln!(out, "{indent}{prefix}_start([\"start\"])");
    }
    for (index, node) in section.body.nodes.iter().enumerate() {
        let (open, close) = shape(&node.kind);
        let text = text(graph, node);
        let _ = writeln!(out, "{indent}{prefix}_{index}{open}\"{text}\"{close}");
    }
    let ends = section
        .arrows
        .iter()
        .map(|arrow| arrow.to)
        .chain(section.entry);
    if ends.into_iter().any(|to| to == Goal::End) || section.body.nodes.is_empty() {
        let _ = writeln!(out, "{indent}{prefix}_end([\"end\"])");
    }
    let goal = |to: Goal| match to {
        Goal::Node(index) => format!("{prefix}_{index}"),
        Goal::End => format!("{prefix}_end"),
    };
    if let Some(entry) = section.entry {
        let _ = writeln!(out, "{indent}{prefix}_start --> {}", goal(entry));
    }
    for arrow in &section.arrows {
        let line = match arrow.tone {
            Tone::Plain => "-->",
            Tone::Aside | Tone::Trouble | Tone::Task => "-.->",
        };
        let words = match arrow.label.is_empty() {
            true => String::new(),
            false => format!("|\"{}\"|", escaped(&label::elide(&arrow.label, LONGEST))),
        };
        let _ = writeln!(
            out,
            "{indent}{prefix}_{} {line}{words} {}",
            arrow.from,
            goal(arrow.to)
        );
    }
}

fn text(graph: &Graph, node: &Node) -> String {
    let id = escaped(&label::elide(&label::id(node), LONGEST));
    let mut text = format!("<b>{id}</b> {}", node.kind.word());
    let lines = [label::excerpt(graph, node), label::note(graph, node)];
    for line in lines.iter().flatten() {
        let _ = write!(text, "<br/>{}", escaped(&label::elide(line, LONGEST)));
    }
    text
}

/// The brackets that give a node its shape.
fn shape(kind: &Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Condition { .. } => ("{{", "}}"),
        Kind::While { .. } | Kind::Loop { .. } => ("[/", "\\]"),
        Kind::FanOut(_) | Kind::Call(_) => ("[[", "]]"),
        Kind::Return { .. } => ("([", "])"),
        Kind::Jump(_) | Kind::Goto { .. } => (">", "]"),
        Kind::Prompt(_) => ("[/", "/]"),
        Kind::SetState
        | Kind::Shell(_)
        | Kind::Tool { .. }
        | Kind::Wait { .. }
        | Kind::Delegate { .. } => ("[", "]"),
    }
}

/// The text with everything that means something to Mermaid, to Markdown or to HTML written as an
/// entity. Letters and digits of all scripts, spaces and a few marks are left as they are.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let after = chars.peek().copied().unwrap_or(' ');
        let in_word = before.is_alphanumeric() && after.is_alphanumeric();
        let plain = match char {
            '_' | '-' | '.' | '\'' => in_word,
            ' ' | ',' | '/' | '=' | '?' | '!' | '(' | ')' => true,
            _ => char.is_alphanumeric() || !char.is_ascii(),
        };
        match (plain, char) {
            (true, _) => safe.push(char),
            // Mermaid reads a backslash and an n as a line break even after entities.
            (false, '\\') if after == 'n' => safe.push_str("#92;\u{200B}"),
            (false, '"') => safe.push_str("#quot;"),
            (false, '<') => safe.push_str("#lt;"),
            (false, '>') => safe.push_str("#gt;"),
            (false, '&') => safe.push_str("#amp;"),
            (false, _) => {
                let _ = write!(safe, "#{};", u32::from(char));
            }
        }
        before = char;
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::samples;

    #[test]
    fn steps_in_a_row_read_as_they_run() {
        let picture = mermaid(&samples::single());
        assert_eq!(
            picture,
            "flowchart TD\n  \
             n_start([\"start\"])\n  \
             n_0[\"<b>hello</b> shell<br/>echo hello\"]\n  \
             n_end([\"end\"])\n  \
             n_start --> n_0\n  \
             n_0 --> n_end\n"
        );
    }

    #[test]
    fn an_empty_body_goes_from_start_to_end() {
        let picture = mermaid(&samples::empty());
        assert!(picture.contains("n_start --> n_end\n"));
    }

    #[test]
    fn conditions_and_loops_have_shapes_and_labels() {
        let picture = mermaid(&samples::nested());
        assert!(picture.contains("n_1{{\"<b>has_work</b> condition"));
        assert!(picture.contains("n_1 -->|\"then\"| n_2\n"));
        assert!(picture.contains("n_1 -->|\"else\"| n_12\n"));
        assert!(picture.contains("n_2[/\"<b>drain</b> while"));
        assert!(picture.contains("n_2 -->|\"body\"| n_3\n"));
        assert!(picture.contains("n_5 -.->|\"failure\"| n_14\n"));
    }

    #[test]
    fn tasks_and_failure_steps_are_subgraphs() {
        let picture = mermaid(&samples::fans());
        assert!(picture.contains("  subgraph task0[\"task review_file"));
        assert!(picture.contains("  subgraph task0_failed[\"when review_file fails"));
        assert!(picture.contains("  subgraph failed[\"when a step fails"));
        assert!(picture.contains("  n_3 -. each item .-> task0\n"));
        let opened = picture.matches("subgraph ").count();
        assert_eq!(
            picture.lines().filter(|line| line.trim() == "end").count(),
            opened
        );
    }

    #[test]
    fn hostile_texts_stay_inside_their_quotes() {
        let picture = mermaid(&samples::hostile());
        for line in picture.lines() {
            assert_eq!(line.matches('"').count() % 2, 0, "{line}");
            let tags = line
                .replace("<b>", "")
                .replace("</b>", "")
                .replace("<br/>", "");
            assert!(!tags.contains('<'), "{line}");
            assert!(!line.contains("%%") && !line.contains('`'), "{line}");
        }
        assert_eq!(picture, mermaid(&samples::hostile()));
    }

    #[test]
    fn any_graph_can_be_drawn() {
        for seed in 0..200 {
            assert!(mermaid(&samples::random(seed)).starts_with("flowchart TD\n"));
        }
    }
}
