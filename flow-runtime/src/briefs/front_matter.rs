//! A Markdown text with YAML between `---` lines before it.

use flow_model::diagnostic::Code;
use flow_model::source::{Source, Tree};

/// The parts of a text.
#[derive(Debug)]
pub(super) struct Parted<'t> {
    /// The YAML, if there is any; positions are those of the whole text.
    pub(super) head: Option<(Source, Tree)>,
    /// What follows.
    pub(super) body: &'t str,
}

/// What is wrong with the YAML, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) message: String,
}

/// Takes a text apart.
pub(super) fn part<'t>(name: &str, text: &'t str) -> Result<Parted<'t>, Fault> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let Some((opening, rest)) = text.split_once('\n').filter(|(line, _)| is_fence(line)) else {
        return Ok(Parted {
            head: None,
            body: text,
        });
    };
    let mut at = 0;
    let closing = rest.split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        is_fence(line).then_some((start, at))
    });
    let Some((end, body)) = closing else {
        return Err(Fault {
            line: 1,
            message: "the `---` that opens the front matter is not closed by another".to_owned(),
        });
    };
    // A line for the fence, so that findings have the lines of the file.
    let yaml = format!("{}\n{}", " ".repeat(opening.len().min(3)), &rest[..end]);
    let source = Source::new(name, yaml);
    let tree = source.tree();
    if tree.as_ref().is_err_and(|it| it.code == Code::Empty) {
        return Ok(Parted {
            head: None,
            body: &rest[body..],
        });
    }
    let tree = tree.map_err(|finding| Fault {
        line: source.position(finding.span.start as usize).line,
        message: match &finding.help {
            Some(help) => format!("{}; {help}", finding.message),
            None => finding.message.clone(),
        },
    })?;
    Ok(Parted {
        head: Some((source, tree)),
        body: &rest[body..],
    })
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use super::*;

    #[test]
    fn a_text_without_front_matter_is_all_body() {
        for text in ["", "just text", "# Title\n---\nmore", "----\na: b\n---\n"] {
            let parted = part("x.md", text).unwrap();
            assert!(parted.head.is_none(), "{text}");
            assert_eq!(parted.body, text);
        }
    }

    #[test]
    fn front_matter_ends_at_the_second_fence() {
        let parted = part("x.md", "---\na: 1\n---\nbody\n---\nrest").unwrap();
        let (_, tree) = parted.head.unwrap();
        assert_eq!(tree.to_json(), serde_json::json!({"a": 1}));
        assert_eq!(parted.body, "body\n---\nrest");
        let windows = part("x.md", "\u{FEFF}---\r\na: 1\r\n---\r\nbody").unwrap();
        assert!(windows.head.is_some());
        assert_eq!(windows.body, "body");
        assert_eq!(part("x.md", "---\n---").unwrap().body, "");
    }

    #[test]
    fn a_fault_has_its_line_in_the_file() {
        let fault = part("x.md", "---\na: 1\nb: [\n---\nbody").unwrap_err();
        assert!(fault.line >= 3, "{fault:?}");
        let fault = part("x.md", "---\na: 1\na: 2\n---\n");
        // Whether a key is given twice is the reader's to say.
        assert!(fault.is_ok() || fault.is_err_and(|fault| fault.line == 3));
        assert_eq!(part("x.md", "---\na: 1\n").unwrap_err().line, 1);
    }
}
