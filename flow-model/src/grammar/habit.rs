//! Words that other tools have for what has another name here.

/// The step type somebody means who writes this one.
pub(crate) fn step(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    Some(match word.as_str() {
        "bash" | "cmd" | "command" | "exec" | "run" | "script" | "sh" => "shell",
        "if" | "branch" | "switch" | "case" | "choice" => "condition",
        "for" | "for_each" | "each" | "map" | "parallel" => "foreach",
        "loop" | "until" | "repeat" => "while",
        "sleep" | "delay" | "pause" | "timer" => "wait",
        "ask" | "confirm" | "input" | "message" | "question" => "prompt",
        "agent" | "llm" | "subagent" | "sub_agent" => "delegate",
        "workflow" | "subworkflow" | "sub_workflow" | "run_workflow" | "uses" => "call",
        "set" | "assign" | "let" | "state" | "variable" | "update_state" => "set_state",
        "tool" | "mcp" | "tool_call" | "mcp_tool" => "mcp_call",
        "jump" => "goto",
        "end" | "exit" | "stop" | "finish" => "return",
        "next" => "continue",
        _ => return None,
    })
}

/// The keys somebody may mean who writes this one, the likeliest first.
pub(crate) fn keys(word: &str) -> &'static [&'static str] {
    match word {
        "run" | "cmd" | "script" | "shell" | "bash" | "exec" => &["command"],
        "if" | "condition" | "only_if" | "unless" => &["when", "if", "condition"],
        "when" | "on" | "event" => &["condition"],
        "in" | "over" | "list" | "each" | "for" | "loop" | "with_items" => &["items"],
        "do" | "body" | "run_steps" | "actions" => &["steps"],
        "name" | "key" => &["id"],
        "args" | "arguments" | "params" | "with" => &["params", "parameters", "inputs"],
        "uses" => &["workflow"],
        "question" | "text" | "title" => &["message"],
        "choices" | "values" => &["options"],
        "cwd" | "dir" | "directory" | "workdir" => &["working_directory"],
        "environment" | "vars" => &["env"],
        "set" | "values_to_set" | "assign" => &["updates"],
        "seconds" | "time" | "delay" => &["duration_seconds"],
        "save_as" | "register" | "result" | "store" | "output" => &["output_to"],
        "retries" => &["retry"],
        "catch" | "on_failure" => &["on_error"],
        "parameters" | "variables" => &["inputs"],
        "returns" | "return" | "result_to" => &["outputs"],
        "to" | "target" | "goto" | "go_to" | "then" | "next" => &["next_state", "target"],
        "instruction" | "task_prompt" | "goal" => &["instructions"],
        _ => &[],
    }
}

/// The type somebody means who writes this word.
pub(crate) fn ty(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    Some(match word.as_str() {
        "str" | "text" => "string",
        "int" | "i32" | "i64" | "long" => "integer",
        "float" | "double" | "decimal" => "number",
        "bool" | "flag" => "boolean",
        "list" | "vec" | "tuple" => "array",
        "dict" | "map" | "hash" | "json" => "object",
        _ => return None,
    })
}

/// The truth value that somebody means who writes this word, which is a text in YAML 1.2.
pub(crate) fn truth(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    Some(match word.as_str() {
        "yes" | "on" | "y" | "true" => "true",
        "no" | "off" | "n" | "false" => "false",
        _ => return None,
    })
}
