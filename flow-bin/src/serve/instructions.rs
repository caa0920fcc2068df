//! What a client is told of the server when it connects.

use flow_model::tools;

use super::tool::Offers;

/// When to use this server; clients show it to the model and cut it at about 4 KB.
const TEXT: &str = include_str!("instructions.md");
const READ_ONLY: &str = "It was started with --read-only: it shows workflows and runs; nothing can be run, typed or \
     changed here.\n";

/// The instructions, with the advice alone that names no tool which is not offered.
pub(super) fn instructions(offers: &Offers) -> String {
    let mut paragraphs = Vec::new();
    for paragraph in TEXT.trim_end().split("\n\n") {
        let mut pieces = paragraph.split("\n- ");
        let head = pieces.next().unwrap_or_default();
        let advice: Vec<&str> = pieces.filter(|piece| is_offered(piece, offers)).collect();
        let is_list = paragraph.contains("\n- ");
        if is_list && !advice.is_empty() {
            paragraphs.push(format!("{head}\n- {}", advice.join("\n- ")));
        } else if !is_list {
            paragraphs.push(paragraph.to_owned());
        }
    }
    if offers.are_read_only() {
        paragraphs.insert(1, READ_ONLY.trim_end().to_owned());
    }
    paragraphs.join("\n\n") + "\n"
}

/// Whether every tool that a piece of advice names is there.
fn is_offered(advice: &str, offers: &Offers) -> bool {
    let mut quoted = advice.split('`').skip(1).step_by(2);
    quoted.all(|name| offers.has(name) || !is_tool(name))
}

/// Whether some tool is called so, offered or not.
fn is_tool(name: &str) -> bool {
    tools::served().any(|tool| tool.name == name)
}

#[cfg(test)]
mod tests {
    use flow_model::tools::Toolset;

    use super::*;

    fn told(toolsets: &[Toolset], read_only: bool) -> String {
        instructions(&Offers::new(toolsets, read_only))
    }

    #[test]
    fn a_client_is_told_only_of_tools_that_it_can_call() {
        let all = [
            Toolset::Terminal,
            Toolset::Workflow,
            Toolset::Agent,
            Toolset::Debug,
        ];
        assert_eq!(told(&all, false), TEXT);
        let terminals = told(&[Toolset::Terminal], false);
        assert!(terminals.contains("`open_terminal`"), "{terminals}");
        for toolsets in [
            &all[..],
            &[Toolset::Terminal],
            &[Toolset::Workflow],
            &[Toolset::Debug],
        ] {
            for read_only in [false, true] {
                let offers = Offers::new(toolsets, read_only);
                let told = instructions(&offers);
                let mut named = told.split('`').skip(1).step_by(2);
                let missing = named.find(|name| is_tool(name) && !offers.has(name));
                assert_eq!(missing, None, "{told}");
                assert_eq!(told.contains("--read-only"), read_only, "{told}");
            }
        }
    }
}
