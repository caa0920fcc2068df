//! The variables that every state of a state machine may read.

use super::{Tool, all};

/// A variable that tool results set, whichever state called the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandardVariable {
    /// Its name: `{name}` in a parameter.
    pub name: &'static str,
    /// The field of a tool's result it takes its value from.
    pub field: &'static str,
    /// What it holds.
    pub description: &'static str,
}

impl StandardVariable {
    /// The tools whose results set it.
    pub fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        let field = self.field;
        let all = all().iter().copied();
        all.filter(move |tool| tool.has_result_field(field))
    }
}

/// The standard variables of the states form.
pub const STANDARD_VARIABLES: &[StandardVariable] = &[
    same_name(
        "session_id",
        "the terminal session of the run, or the last it had",
    ),
    same_name("match_text", "the text that the last await found"),
    same_name("screen_content", "the last text of a terminal"),
    same_name("success", "whether the last state succeeded"),
    same_name("error", "why the last state failed; empty when it did not"),
    same_name("timestamp", "when the last tool answered"),
    same_name("elapsed_time", "the seconds the last await took"),
    same_name("shell", "the program of the terminal opened last"),
    same_name("web_url", "where the terminal opened last can be watched"),
    same_name(
        "process_running",
        "whether the terminal's program is running",
    ),
    same_name("total_sessions", "how many terminals there are"),
    same_name("message", "what the last tool did, in a sentence"),
    StandardVariable {
        name: "workflow_final_state",
        field: "final_state",
        description: "the final state of the workflow called last",
    },
    same_name(
        "workflow_saved",
        "whether the workflow called last was stored",
    ),
    same_name(
        "saved_workflow_name",
        "the name the workflow called last was stored under",
    ),
];

/// The standard variable of this name.
pub fn standard_variable(name: &str) -> Option<&'static StandardVariable> {
    STANDARD_VARIABLES
        .iter()
        .find(|variable| variable.name == name)
}

const fn same_name(name: &'static str, description: &'static str) -> StandardVariable {
    StandardVariable {
        name,
        field: name,
        description,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_standard_variable_is_set_by_some_tool() {
        for variable in STANDARD_VARIABLES {
            assert!(variable.tools().next().is_some(), "{}", variable.name);
        }
    }

    #[test]
    fn a_child_s_final_state_has_a_name_of_its_own() {
        let variable = standard_variable("workflow_final_state").expect("a standard variable");
        let tools: Vec<_> = variable.tools().map(|tool| tool.name).collect();
        assert_eq!(
            (variable.field, tools),
            ("final_state", vec!["run_workflow"])
        );
        assert!(standard_variable("final_state").is_none());
    }
}
