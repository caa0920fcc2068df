//! The words in a picture: what a node does in one line, and when an arrow is taken.

use std::fmt::Write as _;

use crate::expression::rebrace;
use crate::graph::{
    CallTarget, Condition, Graph, Guard, Kind, Literal, Node, OnChildError, Operation, Runner,
    StatePath, Template, Tier, ToolRef, Write,
};

/// Nothing in a picture says more than this many bytes in one place.
const LIMIT: usize = 4_000;
/// Values nested deeper than this are shown as an ellipsis.
const DEPTH: usize = 12;

/// The text on one line, without characters that are invisible, reorder what is around them, or
/// may not stand in XML.
pub(super) fn clean(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(LIMIT));
    for char in text.chars() {
        if line.len() > LIMIT {
            line.push('…');
            break;
        }
        if char.is_control() || char.is_whitespace() {
            if !line.ends_with(' ') {
                line.push(' ');
            }
        } else if !is_treacherous(char) {
            line.push(char);
        }
    }
    line.trim().to_owned()
}

fn is_treacherous(char: char) -> bool {
    matches!(
        char,
        '\u{061C}'
            | '\u{200B}'
            | '\u{200E}'
            | '\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{FFFE}'
            | '\u{FFFF}'
    )
}

/// The columns a character takes in a terminal.
pub(super) fn columns_of(char: char) -> usize {
    match u32::from(char) {
        0x0300..=0x036F
        | 0x0483..=0x0489
        | 0x0591..=0x05BD
        | 0x064B..=0x065F
        | 0x1AB0..=0x1AFF
        | 0x1DC0..=0x1DFF
        | 0x200B..=0x200F
        | 0x20D0..=0x20FF
        | 0xFE00..=0xFE0F
        | 0xFE20..=0xFE2F
        | 0xE0000..=0xE01EF => 0,
        0x1100..=0x115F
        | 0x231A..=0x231B
        | 0x23E9..=0x23F3
        | 0x25FD..=0x25FE
        | 0x2614..=0x2615
        | 0x2648..=0x2653
        | 0x26A1
        | 0x26AA..=0x26AB
        | 0x26BD..=0x26BE
        | 0x26C4..=0x26C5
        | 0x26D4
        | 0x26EA
        | 0x26F2..=0x26F3
        | 0x26FD
        | 0x2705
        | 0x270A..=0x270B
        | 0x2728
        | 0x274C
        | 0x274E
        | 0x2753..=0x2757
        | 0x2795..=0x2797
        | 0x27B0
        | 0x2B1B..=0x2B1C
        | 0x2B50
        | 0x2B55
        | 0x2E80..=0x303E
        | 0x3041..=0x33FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xA000..=0xA4CF
        | 0xA960..=0xA97F
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F000..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// The columns a text takes in a terminal.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text, shortened with an ellipsis to at most so many columns.
pub(super) fn elide(text: &str, most: usize) -> String {
    if columns(text) <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for char in text.chars() {
        used += columns_of(char);
        if used > most {
            break;
        }
        short.push(char);
    }
    let mut short = short.trim_end().to_owned();
    if most > 0 {
        short.push('…');
    }
    short
}

/// The text with the characters that mean something to XML written as entities.
pub(super) fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(char),
        }
    }
    safe
}

/// The id of a node as it is shown.
pub(super) fn id(node: &Node) -> String {
    let id = clean(&node.id);
    if id.is_empty() { "·".to_owned() } else { id }
}

/// What a node does, in one line: its command, its message, what it tests.
pub(super) fn excerpt(graph: &Graph, node: &Node) -> Option<String> {
    let line = clean(&action(graph, node));
    if !line.is_empty() {
        return Some(line);
    }
    let description = clean(node.description.as_deref()?);
    (!description.is_empty()).then_some(description)
}

fn action(graph: &Graph, node: &Node) -> String {
    let mut out = String::new();
    match &node.kind {
        Kind::Condition { test } | Kind::While { test, .. } => out.push_str(&test.source),
        Kind::Loop { items } => template(&mut out, items, 0),
        Kind::FanOut(fan) => template(&mut out, &fan.items, 0),
        Kind::Jump(_) => {}
        Kind::Goto { bound } => {
            let _ = write!(out, "{}", at_most(bound.times));
        }
        Kind::Return { value } => {
            if let Some(value) = value {
                template(&mut out, value, 0);
            }
        }
        Kind::SetState => {
            for (index, one) in node.writes.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write(&mut out, one);
            }
        }
        Kind::Call(call) => match &call.target {
            CallTarget::Name(name) => template(&mut out, name, 0),
            CallTarget::Definition(_) => out.push_str("a definition given inline"),
        },
        Kind::Shell(shell) => template(&mut out, &shell.command, 0),
        Kind::Tool { tool, parameters } => {
            out.push_str(tool_name(graph, tool));
            arguments(&mut out, parameters);
        }
        Kind::Prompt(prompt) => template(&mut out, &prompt.message, 0),
        Kind::Wait { seconds, message } => {
            template(&mut out, seconds, 0);
            out.push_str(" s");
            if let Some(message) = message {
                out.push_str(" – ");
                template(&mut out, message, 0);
            }
        }
        Kind::Delegate {
            instructions,
            agent,
            ..
        } => {
            if let Some(agent) = agent {
                let _ = write!(out, "@{agent}: ");
            }
            template(&mut out, instructions, 0);
        }
    }
    out
}

/// What else decides how a node runs: its `when`, its bound, its attempts, its task.
pub(super) fn note(graph: &Graph, node: &Node) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(when) = &node.when {
        parts.push(format!("when {}", clean(&when.source)));
    }
    match &node.kind {
        Kind::While { bound, .. } if bound.explicit => parts.push(at_most(bound.times)),
        Kind::FanOut(fan) => {
            let task = graph.tasks.get(usize::from(fan.task));
            let task = task.map_or_else(|| "a task".to_owned(), |task| clean(&task.name));
            let pace = match (fan.sequential, fan.max_parallel) {
                (true, _) => ", one at a time".to_owned(),
                (false, Some(most)) => format!(", {most} at once"),
                (false, None) => String::new(),
            };
            let runner = match &fan.runner {
                Runner::Host => String::new(),
                Runner::SubAgent => ", by sub-agents".to_owned(),
                Runner::Agent(name) => format!(", by @{}", clean(name)),
            };
            parts.push(format!("{task} per item{pace}{runner}"));
        }
        Kind::Condition { .. }
        | Kind::While { .. }
        | Kind::Loop { .. }
        | Kind::Jump(_)
        | Kind::Goto { .. }
        | Kind::Return { .. }
        | Kind::SetState
        | Kind::Call(_)
        | Kind::Shell(_)
        | Kind::Tool { .. }
        | Kind::Prompt(_)
        | Kind::Wait { .. }
        | Kind::Delegate { .. } => {}
    }
    if let Some(retry) = &node.retry
        && retry.attempts > 1
    {
        parts.push(format!("{} attempts", retry.attempts));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Everything a picture knows about a node, one thing per line.
pub(super) fn details(graph: &Graph, node: &Node) -> String {
    let mut lines = vec![format!("{} ({})", id(node), node.kind.word())];
    lines.extend(node.description.as_deref().map(clean));
    let action = clean(&action(graph, node));
    if !action.is_empty() {
        lines.push(action);
    }
    lines.extend(note(graph, node));
    if let Kind::FanOut(fan) = &node.kind {
        match fan.on_child_error {
            OnChildError::Fail => {}
            OnChildError::Continue => lines.push("goes on when a child fails".to_owned()),
            OnChildError::RetryFailed(times) => {
                lines.push(format!("repeats failed children {}", at_most(times)));
            }
            OnChildError::FailAll => lines.push("stops when a child fails".to_owned()),
        }
    }
    if let Some(timeout) = node.timeout {
        lines.push(format!("at most {timeout} s"));
    }
    if !matches!(node.kind, Kind::SetState) {
        for one in node.writes.iter() {
            let mut line = "writes ".to_owned();
            write(&mut line, one);
            lines.push(clean(&line));
        }
    }
    if node.line > 0 {
        lines.push(format!("line {}", node.line));
    }
    lines.join("\n")
}

/// When an edge is taken. Empty for an edge that is always taken.
pub(super) fn guard(node: &Node, guard: &Guard) -> String {
    match guard {
        Guard::Always | Guard::When(Condition::Always) => String::new(),
        Guard::Success => "success".to_owned(),
        Guard::Failure => "failure".to_owned(),
        Guard::Timeout => "timeout".to_owned(),
        Guard::InTime => "in time".to_owned(),
        Guard::Skip => "when not".to_owned(),
        Guard::Then => "then".to_owned(),
        Guard::Else => "else".to_owned(),
        Guard::Body if matches!(node.kind, Kind::Goto { .. }) => "again".to_owned(),
        Guard::Body => "body".to_owned(),
        Guard::Done => "done".to_owned(),
        Guard::When(test) => {
            let mut out = String::new();
            condition(&mut out, test, 0);
            clean(&out)
        }
        Guard::Judged(text) => format!("“{}”", clean(text)),
    }
}

fn condition(out: &mut String, test: &Condition, depth: usize) {
    if out.len() > LIMIT || depth > DEPTH {
        out.push('…');
        return;
    }
    match test {
        Condition::Always => out.push_str("always"),
        Condition::Success(true) => out.push_str("success"),
        Condition::Success(false) => out.push_str("not success"),
        Condition::TimedOut(true) => out.push_str("timeout"),
        Condition::TimedOut(false) => out.push_str("in time"),
        Condition::PatternMatch(pattern) => {
            out.push_str("matches ");
            template(out, pattern, depth + 1);
        }
        Condition::PatternNotMatch(pattern) => {
            out.push_str("does not match ");
            template(out, pattern, depth + 1);
        }
        Condition::FieldEquals(field, value) => {
            let _ = write!(out, "{field} = ");
            template(out, value, depth + 1);
        }
        Condition::FieldContains(field, value) => {
            let _ = write!(out, "{field} contains ");
            template(out, value, depth + 1);
        }
        Condition::Expression(expression) => {
            let _ = write!(out, "if {}", expression.source);
        }
        Condition::All(tests) => joined(out, tests, " and ", "always", depth),
        Condition::Any(tests) => joined(out, tests, " or ", "never", depth),
        Condition::None(tests) => match tests.len() {
            0 => out.push_str("always"),
            1 => {
                out.push_str("not ");
                joined(out, tests, "", "", depth);
            }
            _ => {
                out.push_str("not (");
                joined(out, tests, " or ", "", depth);
                out.push(')');
            }
        },
    }
}

fn joined(out: &mut String, tests: &[Condition], word: &str, none: &str, depth: usize) {
    if tests.is_empty() {
        out.push_str(none);
    }
    for (index, test) in tests.iter().enumerate() {
        if index > 0 {
            out.push_str(word);
        }
        let nested =
            matches!(test, Condition::All(inner) | Condition::Any(inner) if inner.len() > 1);
        let brackets = nested && tests.len() > 1;
        if brackets {
            out.push('(');
        }
        condition(out, test, depth + 1);
        if brackets {
            out.push(')');
        }
        if out.len() > LIMIT {
            return;
        }
    }
}

/// The name of a tool.
fn tool_name<'g>(graph: &'g Graph, tool: &'g ToolRef) -> &'g str {
    match tool {
        ToolRef::Builtin(name) | ToolRef::Host(name) => name,
        ToolRef::Declared(index) => graph
            .tools
            .get(usize::from(*index))
            .map_or("?", |tool| &tool.name),
    }
}

/// Parameters as a call has them, without those that only pass on a variable of the same name.
fn arguments(out: &mut String, parameters: &Template) {
    let mut entries: Vec<(&str, String)> = Vec::new();
    match parameters {
        Template::Map(map) => {
            for (key, value) in map.iter() {
                let mut text = String::new();
                template(&mut text, value, 1);
                entries.push((key, text));
            }
        }
        Template::Literal(Literal::Map(map)) => {
            for (key, value) in map.iter() {
                let mut text = String::new();
                literal(&mut text, value, 1);
                entries.push((key, text));
            }
        }
        Template::Literal(_)
        | Template::Expression(_)
        | Template::Text(_)
        | Template::Command(_)
        | Template::Pattern(_)
        | Template::List(_) => {
            return;
        }
    }
    entries.retain(|(key, text)| text.trim_matches(['{', '}', ' ']) != *key);
    out.push('(');
    for (index, (key, text)) in entries.iter().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        let _ = write!(out, "{key}: {}", clean(text));
        if out.len() > LIMIT {
            break;
        }
    }
    out.push(')');
}

fn at_most(times: u32) -> String {
    match times {
        1 => "at most once".to_owned(),
        times => format!("at most {times} times"),
    }
}

fn write(out: &mut String, write: &Write) {
    if out.len() > LIMIT {
        return;
    }
    path(out, &write.path);
    let sign = match write.operation {
        Operation::Set => " = ",
        Operation::Append | Operation::Increment => " += ",
        Operation::Merge => " |= ",
    };
    out.push_str(sign);
    match &write.value {
        Some(value) => template(out, value, 0),
        None => out.push_str("result"),
    }
}

fn path(out: &mut String, path: &StatePath) {
    match path.tier {
        Tier::Raw => {}
        Tier::Computed => out.push_str("computed."),
        Tier::State => out.push_str("state."),
    }
    for (index, segment) in path.segments.iter().enumerate() {
        if index > 0 {
            out.push('.');
        }
        template(out, segment, 0);
    }
}

fn template(out: &mut String, value: &Template, depth: usize) {
    if out.len() > LIMIT || depth > DEPTH {
        out.push('…');
        return;
    }
    match value {
        Template::Literal(value) => literal(out, value, depth),
        Template::Expression(expression)
        | Template::Text(expression)
        | Template::Command(expression)
        | Template::Pattern(expression) => {
            out.push_str(&rebrace(&expression.source));
        }
        Template::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, index);
                template(out, item, depth + 1);
                if out.len() > LIMIT {
                    break;
                }
            }
            out.push(']');
        }
        Template::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                separate(out, index);
                let _ = write!(out, "{key}: ");
                template(out, value, depth + 1);
                if out.len() > LIMIT {
                    break;
                }
            }
            out.push('}');
        }
    }
}

fn literal(out: &mut String, value: &Literal, depth: usize) {
    if out.len() > LIMIT || depth > DEPTH {
        out.push('…');
        return;
    }
    match value {
        Literal::Null => out.push_str("null"),
        Literal::Bool(value) => {
            let _ = write!(out, "{value}");
        }
        Literal::Int(value) => {
            let _ = write!(out, "{value}");
        }
        Literal::Float(value) => {
            let _ = write!(out, "{value}");
        }
        Literal::Str(text) => out.push_str(text),
        Literal::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, index);
                literal(out, item, depth + 1);
                if out.len() > LIMIT {
                    break;
                }
            }
            out.push(']');
        }
        Literal::Map(entries) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                separate(out, index);
                let _ = write!(out, "{key}: ");
                literal(out, value, depth + 1);
                if out.len() > LIMIT {
                    break;
                }
            }
            out.push('}');
        }
    }
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push_str(", ");
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::picture::samples;

    #[test]
    fn a_text_becomes_one_line_without_what_cannot_be_seen() {
        assert_eq!(clean("  a\n\tb\u{0}\u{202E}c\u{FEFF} "), "a b c");
        assert_eq!(clean("\u{200B}"), "");
    }

    #[test]
    fn a_text_is_elided_by_columns_not_by_bytes() {
        assert_eq!(elide("漢字漢字", 8), "漢字漢字");
        assert_eq!(elide("漢字漢字", 7), "漢字漢…");
        assert_eq!(elide("漢字漢字", 6), "漢字…");
        assert_eq!(elide("abc", 0), "");
    }

    #[test]
    fn conditions_read_as_sentences() {
        let text = |text: &'static str| samples::text(text);
        let equals = Condition::FieldEquals(Cow::Borrowed("status"), text("200"));
        let contains = Condition::FieldContains(Cow::Borrowed("body"), text("ok"));
        let both = Condition::All(vec![equals, contains].into());
        let late = Condition::TimedOut(true);
        let any = Condition::Any(vec![both, late].into());
        let node = &samples::single().body.nodes[0];
        assert_eq!(
            guard(node, &Guard::When(any.clone())),
            "(status = 200 and body contains ok) or timeout"
        );
        assert_eq!(
            guard(
                node,
                &Guard::When(Condition::None(vec![Condition::Success(true)].into()))
            ),
            "not success"
        );
    }

    #[test]
    fn a_condition_nested_without_end_is_cut_off() {
        let mut test = Condition::Always;
        for _ in 0..200 {
            test = Condition::None(vec![test].into());
        }
        let node = &samples::single().body.nodes[0];
        assert!(guard(node, &Guard::When(test)).ends_with('…'));
    }

    #[test]
    fn a_tool_s_parameters_are_told_unless_they_only_pass_a_variable_on() {
        let graph = samples::debugger();
        assert_eq!(
            excerpt(&graph, &graph.body.nodes[4]).as_deref(),
            Some("await_output(pattern: USER_CMD:([lscq]), timeout: 60.0)")
        );
    }

    #[test]
    fn variables_read_as_they_are_written() {
        let text = "initial_state: a\nstates:\n  a:\n    action: {tool: send_input, params: {input_text: \"kill {pid}\\n\", session_id: \"{session_id}\"}}\n";
        let source = crate::source::Source::new("a.yaml", text);
        let compiled = crate::compile(source, &crate::loader::NoLoader);
        let graph = compiled.draft();
        let line = graph.and_then(|graph| excerpt(graph, &graph.body.nodes[0]));
        assert_eq!(line.as_deref(), Some("send_input(input_text: kill {pid})"));
    }
}
