//! Names that parameters have elsewhere, or in another tool, for what has another name in this one.

use crate::suggest::{nearest, nearest_or_part};

/// The parameters somebody may mean who writes this one, the likeliest first.
fn parameters(word: &str) -> &'static [&'static str] {
    match word {
        "workflow_name" | "flow_name" | "flow" | "name" | "workflow" => {
            &["workflow", "workflow_name", "flow_name"]
        }
        "definition" | "yaml" | "source" => &["workflow_definition"],
        "run_id" | "run" | "id" => &["workflow_id"],
        "params" | "parameters" | "args" | "arguments" | "input" | "inputs" | "variables" => {
            &["inputs", "parameters", "input_text"]
        }
        "step" | "step_name" => &["step_id"],
        "task" | "task_name" => &["task_id"],
        "answer" | "response" | "output" => &["result"],
        "message" => &["reason", "error", "input_text"],
        "session" | "terminal" | "terminal_id" => &["session_id"],
        "cwd" | "dir" | "directory" | "workdir" | "working_dir" => &["working_directory"],
        "env" | "env_vars" => &["environment"],
        "cmd" | "script" => &["command"],
        "regex" | "expect" => &["pattern"],
        "timeout_seconds" | "timeout" | "wait" => &["timeout", "wait_seconds"],
        "path" | "fields" => &["paths"],
        "changes" => &["updates"],
        _ => &[],
    }
}

/// The one among some names that was probably meant: one spelt alike, the usual one for the word,
/// one that has it as a part.
pub(super) fn meant<'a>(
    word: &str,
    names: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    nearest(word, names.clone())
        .or_else(|| {
            parameters(word)
                .iter()
                .find_map(|usual| names.clone().into_iter().find(|name| name == usual))
        })
        .or_else(|| nearest_or_part(word, names))
}
