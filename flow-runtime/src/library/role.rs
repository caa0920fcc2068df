//! What a file with a definition's ending holds, from a look at its top-level keys.

/// What a text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A workflow: it has `steps` or `states`.
    Workflow,
    /// Something that workflows import: it has `tasks`, `computed` or `agents` only.
    Part,
    /// Neither.
    Other,
}

impl Role {
    /// Tells from the top-level keys. The text need not be well-formed.
    ///
    /// ```
    /// use flow_runtime::library::Role;
    /// assert_eq!(Role::of("name: a\nsteps: []\n"), Role::Workflow);
    /// assert_eq!(Role::of("tasks: {}\n"), Role::Part);
    /// assert_eq!(Role::of("{\"dependencies\": {}}"), Role::Other);
    /// ```
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let keys = if text.trim_start().starts_with('{') {
            flow_keys(text)
        } else {
            block_keys(text)
        };
        let has = |names: &[&str]| keys.iter().any(|key| names.contains(key));
        if has(&["steps", "states"]) {
            Role::Workflow
        } else if has(&["tasks", "sub_agent_tasks", "computed", "agents"]) {
            Role::Part
        } else {
            Role::Other
        }
    }
}

/// The keys that stand at the start of a line, or right below a `workflow:` that does.
fn block_keys(text: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut wrapped = false;
    let mut inner = None;
    for line in text.lines() {
        let trimmed = line.trim_start_matches([' ', '\t']);
        let indent = line.len() - trimmed.len();
        let Some((key, _)) = trimmed.split_once(':') else {
            continue;
        };
        let key = key.trim_matches(['"', '\'', ' ']);
        if trimmed.starts_with('#') {
            continue;
        }
        if indent == 0 {
            wrapped = key == "workflow";
            inner = None;
            keys.push(key);
        } else if wrapped && *inner.get_or_insert(indent) == indent {
            keys.push(key);
        }
    }
    keys
}

/// The keys at the top of `{…}`, or right below a `"workflow"` there, quoted or not.
fn flow_keys(text: &str) -> Vec<&str> {
    let mut keys = Vec::new();
    let mut depth = 0_usize;
    let mut wrapper = None;
    let mut word = "";
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut taken = c.len_utf8();
        match c {
            '{' | '[' => {
                depth += 1;
                word = "";
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if wrapper.is_some_and(|at| depth <= at) {
                    wrapper = None;
                }
            }
            '"' => {
                let end = closing_quote(&rest[1..]);
                word = &rest[1..=end];
                taken = (end + 2).min(rest.len());
            }
            ':' => {
                if depth == 1 || wrapper.is_some_and(|at| depth == at + 1) {
                    keys.push(word);
                }
                if depth == 1 {
                    wrapper = (word == "workflow").then_some(1);
                }
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                taken = end.unwrap_or(rest.len());
                word = &rest[..taken];
            }
            _ => {}
        }
        rest = &rest[taken..];
    }
    keys
}

/// How many bytes stand before the quote that ends a text.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\\' if !escaped => escaped = true,
            b'"' if !escaped => return at,
            _ => escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn top_level_keys_decide_in_yaml() {
        let cases = [
            ("steps: []\n", Role::Workflow),
            ("# steps: none\nname: x\n", Role::Other),
            ("---\n\"states\":\n  a: {}\n", Role::Workflow),
            ("\u{FEFF}steps:\n", Role::Workflow),
            ("workflow:\n  name: a\n  steps: []\n", Role::Workflow),
            ("workflow:\n  rules:\n    steps: 1\n", Role::Other),
            (
                "jobs:\n  build:\n    steps:\n      - run: make\n",
                Role::Other,
            ),
            ("computed:\n  a: {from: b}\n", Role::Part),
            ("agents: {}\nsteps: []\n", Role::Workflow),
            ("", Role::Other),
            ("no colon here", Role::Other),
        ];
        for (text, role) in cases {
            assert_eq!(Role::of(text), role, "{text}");
        }
    }

    #[test]
    fn top_level_keys_decide_in_json() {
        let cases = [
            ("{\"name\": \"x\", \"steps\": []}", Role::Workflow),
            ("{steps: []}", Role::Workflow),
            ("{\"a\": {\"steps\": []}}", Role::Other),
            (
                "{\"workflow\": {\"name\": \"steps\", \"states\": {}}}",
                Role::Workflow,
            ),
            ("{\"workflow\": {\"a\": {\"states\": {}}}}", Role::Other),
            ("{\"text\": \"\\\"steps\\\": \"}", Role::Other),
            ("{\"tasks\": {}}", Role::Part),
            ("{\"open", Role::Other),
            ("{\"", Role::Other),
            ("{", Role::Other),
            ("{\"é\": 1, \"steps\": ", Role::Workflow),
        ];
        for (text, role) in cases {
            assert_eq!(Role::of(text), role, "{text}");
        }
    }
}
