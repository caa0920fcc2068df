//! Small definitions that the checker has nothing against, with every type of step in both forms.

use super::choices::Choices;

/// Conditions of transitions that need no judgement.
const CONDITIONS: &[&str] = &[
    "always",
    "success",
    "failure",
    "timeout",
    "{success: true}",
    "{success: false}",
    "{timeout_occurred: true}",
    "{timeout_occurred: false}",
    "{pattern_match: 'a+'}",
    "{field_equals: {exit_code: 0}}",
    "{field_contains: {stdout: a}}",
    "{expression: '{{ result is defined and state.n >= 0 }}'}",
    "{any: [timeout, {pattern_match: b}]}",
    "{not: {success: true}}",
];

/// Expressions that have a truth in every state.
const TESTS: &[&str] = &[
    "{{ state.n < 3 }}",
    "{{ state.seen | length < 4 }}",
    "{{ inputs.a is defined }}",
    "{{ state.word == 'x' }}",
    "{{ not state.map }}",
    "{{ run.id is defined and false }}",
];

/// Expressions that have a value in every state.
const VALUES: &[&str] = &[
    "{{ state.n }}",
    "{{ state.n * 3 }}",
    "{{ state.seen | length }}",
    "a {{ state.n }} b",
    "{{ inputs.a }}",
    "{{ now().isoformat() }}",
    "{{ uuid() }}",
    "[1, '{{ state.n }}', {k: '{{ state.word }}'}]",
    "{{ 1e308 * 10 }}",
    "{{ state.n / 3 }}",
    "plain",
];

/// The text of a definition.
pub(crate) fn definition(choices: &mut Choices) -> String {
    let mut writer = Writer {
        text: String::from(
            "name: generated\ninputs: {a: {type: integer, default: 3}, list: {type: array, default: [1, 2, 3]}}\n\
             state: {n: 0, seen: [], word: '', map: {}, errors: []}\nagents: {helper: helps}\n",
        ),
        choices,
        count: 0,
        lists: Vec::new(),
        task: None,
        tasks: 0,
    };
    writer.head();
    if writer.choices.once_in(3) {
        writer.states();
    } else {
        writer.tasks = writer.choices.below(3);
        writer.text += "steps:\n";
        writer.list(1, 3, false);
    }
    writer.all_tasks();
    writer.text
}

struct Writer<'c> {
    text: String,
    choices: &'c mut Choices,
    /// Steps so far.
    count: usize,
    /// The steps that a jump can reach: those before it in its own list and in the lists around it.
    lists: Vec<Vec<String>>,
    /// The task whose steps are written.
    task: Option<usize>,
    /// How many tasks there are.
    tasks: usize,
}

impl Writer<'_> {
    fn head(&mut self) {
        if self.choices.once_in(4) {
            self.text += "computed:\n  double: {from: n, transform: input * 2}\n  ratio: {from: [n, double], transform: 'input[0] / input[1]'}\n  size: {value: '{{ state.seen | length }}'}\n";
        }
        if self.choices.once_in(2) {
            self.text += "outputs: {n: '{{ state.n }}', seen: '{{ state.seen }}'}\n";
        }
        let timeout = self
            .choices
            .pick(&["", ", timeout: 5", ", timeout: 0.5", ", timeout: 365d"]);
        let parallel = 1 + self.choices.below(4);
        self.text += &format!("limits: {{max_steps: 60, max_parallel: {parallel}{timeout}}}\n");
        match self.choices.below(6) {
            1 => self.text += "on_error: {action: fail, collect_to: errors}\n",
            2 => self.text += "on_error: {action: retry_workflow}\n",
            3 => self.text += "on_error: {action: continue}\n",
            4 => {
                self.text += "on_error:\n  action: fail\n  collect_to: errors\n  steps:\n    - {id: clean, type: shell, command: 'echo {{ error.message }}'}\n    - {id: cleaned, type: set_state, updates: {word: '{{ error.type }}'}}\n";
            }
            5 => self.text += "on_error: checkpoint_and_fail\n",
            _ => {}
        }
    }

    fn all_tasks(&mut self) {
        if self.tasks == 0 {
            return;
        }
        self.text += "tasks:\n";
        for task in 0..self.tasks {
            self.task = Some(task);
            self.text += &format!(
                "  t{task}:\n    inputs: {{x: {{type: integer, required: true}}, a: {{type: integer, default: 1}}, list: {{type: array, default: [7, 8]}}}}\n"
            );
            if self.choices.once_in(4) {
                self.text += "    shares_state: true\n";
            } else {
                let first = self
                    .choices
                    .pick(&["0", "'{{ inputs.list[inputs.x] + 1 }}'"]);
                self.text += &format!(
                    "    state: {{n: 0, seen: [], word: '', map: {{}}, errors: [], first: {first}}}\n"
                );
            }
            if self.choices.once_in(4) {
                let returns = self.choices.once_in(2);
                self.text += &format!(
                    "    on_error: {{return: {returns}, steps: [{{id: undo{task}, type: shell, command: undo}}]}}\n"
                );
            }
            self.text += "    steps:\n";
            self.list(3, 1, false);
        }
        self.task = None;
    }

    /// Steps at a depth of indentation, with so many levels below them.
    fn list(&mut self, indent: usize, depth: usize, in_loop: bool) {
        self.lists.push(Vec::new());
        for _ in 0..1 + self.choices.below(4) {
            self.step(indent, depth, in_loop);
        }
        self.lists.pop();
    }

    fn target(&mut self) -> Option<String> {
        let all: Vec<String> = self.lists.concat();
        let at = self.choices.below(all.len().max(1));
        all.get(at).cloned()
    }

    fn step(&mut self, indent: usize, depth: usize, in_loop: bool) {
        self.count += 1;
        let id = format!("s{}", self.count);
        self.text += &format!("{}- id: {id}\n", "  ".repeat(indent));
        let pad = "  ".repeat(indent + 1);
        if self.choices.once_in(4) {
            let test = self.choices.pick(TESTS);
            self.text += &format!("{pad}when: \"{test}\"\n");
        }
        let jump = self.target();
        if let Some(list) = self.lists.last_mut() {
            list.push(id);
        }
        let kinds = if depth == 0 { 11 } else { 15 };
        match self.choices.below(kinds) {
            0 => self.sets(&pad),
            1 | 2 => self.acts(&pad, "type: shell\ncommand: echo {{ state.n }}", jump),
            3 => {
                let prompt = self.choices.pick(&[
                    "type: prompt\nmessage: 'n is {{ state.n }}'",
                    "type: prompt\nkind: confirm\nmessage: Sure?",
                    "type: prompt\nkind: text\nmessage: Name?\nvalidation: {min_length: 2}",
                    "type: prompt\nkind: choice\nmessage: Which?\noptions: [a, 2, true]",
                ]);
                self.acts(&pad, prompt, jump);
            }
            4 => {
                let wait = self.choices.pick(&[
                    "type: wait\nduration_seconds: 2",
                    "type: wait\nduration_seconds: '{{ state.n }}'",
                    "type: wait\nduration_seconds: '{{ 1e300 }}'",
                ]);
                self.acts(&pad, wait, jump);
            }
            5 => self.acts(
                &pad,
                "type: mcp_call\ntool: server.look\nparameters: {n: '{{ state.n }}'}",
                jump,
            ),
            6 => {
                let delegate = self.choices.pick(&[
                    "type: delegate\ninstructions: 'n is {{ state.n }}'",
                    "type: delegate\nagent: '@helper'\ninstructions: think\nreturns: {type: object, required: [safe]}",
                ]);
                self.acts(&pad, delegate, jump);
            }
            7 => self.acts(
                &pad,
                "type: call\nworkflow: other\ninputs: {a: '{{ state.n }}'}",
                jump,
            ),
            8 if in_loop => {
                let word = self.choices.pick(&["break", "continue"]);
                self.text += &format!("{pad}type: {word}\n");
            }
            8 | 9 => match jump {
                Some(target) => {
                    let times = 1 + self.choices.below(2);
                    self.text += &format!(
                        "{pad}type: goto\n{pad}target: {target}\n{pad}max_iterations: {times}\n"
                    );
                }
                None => self.sets(&pad),
            },
            10 => {
                let value = self.choices.pick(VALUES);
                self.text += &format!("{pad}type: return\n{pad}value: {}\n", quoted(value));
            }
            11 => {
                let test = self.choices.pick(TESTS);
                self.container(&pad, jump.as_deref());
                self.text += &format!("{pad}type: condition\n{pad}if: \"{test}\"\n{pad}then:\n");
                self.list(indent + 2, depth - 1, in_loop);
                if self.choices.once_in(2) {
                    self.text += &format!("{pad}else:\n");
                    self.list(indent + 2, depth - 1, in_loop);
                }
            }
            12 => {
                let test = self.choices.pick(TESTS);
                let bound = self.choices.pick(&["\nmax_iterations: 3", ""]);
                let bound = bound.replace('\n', &format!("\n{pad}"));
                self.container(&pad, jump.as_deref());
                self.text +=
                    &format!("{pad}type: while\n{pad}if: \"{test}\"{bound}\n{pad}steps:\n");
                self.list(indent + 2, depth - 1, true);
            }
            13 => {
                let items = self.items();
                self.container(&pad, jump.as_deref());
                self.text += &format!("{pad}type: foreach\n{pad}items: {items}\n{pad}steps:\n");
                self.list(indent + 2, depth - 1, true);
            }
            _ => self.fans(&pad, jump),
        }
    }

    fn items(&mut self) -> &'static str {
        self.choices.pick(&[
            "[1, 2]",
            "\"{{ inputs.list }}\"",
            "\"{{ state.seen }}\"",
            "\"{{ range(7) | list }}\"",
            "[]",
            "\"{{ [1, 'x', 3] }}\"",
            "\"{{ range(60) | list }}\"",
        ])
    }

    fn sets(&mut self, pad: &str) {
        let value = quoted(self.choices.pick(VALUES));
        let updates = match self.choices.below(6) {
            0 => "[{path: n, operation: increment}]".to_owned(),
            1 => format!("[{{path: seen, operation: append, value: {value}}}]"),
            2 => "{word: x}".to_owned(),
            3 => format!("[{{path: 'map.{{{{ state.n }}}}', value: {value}}}, {{path: n, operation: increment, value: 2}}]"),
            4 => "[{path: map, operation: merge, value: {k: '{{ state.n }}'}}, {path: word.deeper, value: 1}]".to_owned(),
            _ => "[{path: state.note, value: by hand}, {path: n, value: 0}]".to_owned(),
        };
        self.text += &format!("{pad}type: set_state\n{pad}updates: {updates}\n");
    }

    /// A step that acts, with what may stand beside any action.
    fn acts(&mut self, pad: &str, step: &str, jump: Option<String>) {
        for line in step.lines() {
            self.text += &format!("{pad}{line}\n");
        }
        let shell = step.starts_with("type: shell");
        if shell && self.choices.once_in(3) {
            let format = self
                .choices
                .pick(&["text", "lines", "json", "key_value", "result"]);
            self.text += &format!("{pad}output_format: {format}\n");
        }
        match self.choices.below(5) {
            0 => self.text += &format!("{pad}output_to: r{}\n", self.count),
            1 => {
                self.text += &format!(
                    "{pad}state_update: {{path: seen, operation: append, value: '{{{{ result }}}}'}}\n"
                )
            }
            2 => self.text += &format!("{pad}state_update: {{path: n, operation: increment}}\n"),
            _ => {}
        }
        if step.contains("type: wait") {
            return;
        }
        if self.choices.once_in(4) {
            let retry = self.choices.pick(&[
                "{attempts: 2}",
                "{attempts: 3, delay: 1, backoff: 2}",
                "{attempts: 3, delay: 1, backoff: 10, max_delay: 3}",
            ]);
            self.text += &format!("{pad}retry: {retry}\n");
        }
        if self.choices.once_in(4) {
            self.text += &format!(
                "{pad}timeout: {}\n",
                self.choices.pick(&["1", "500ms", "5m"])
            );
        }
        if self.choices.once_in(6) {
            self.text += &format!(
                "{pad}fallback_value: {}\n",
                self.choices.pick(&["none", "'{{ state.n }}'"])
            );
        }
        if self.choices.once_in(6) {
            self.text += &format!(
                "{pad}error_state_update: {{path: errors, operation: append, value: '{{{{ error.message }}}}'}}\n"
            );
        }
        match (self.choices.below(5), jump) {
            (3, _) => self.text += &format!("{pad}on_error: continue\n"),
            (4, Some(target)) => self.text += &format!("{pad}on_error: {{goto: {target}}}\n"),
            _ => {}
        }
    }

    fn fans(&mut self, pad: &str, jump: Option<String>) {
        let first = self.task.map_or(0, |task| task + 1);
        if first >= self.tasks {
            return self.sets(pad);
        }
        let task = first + self.choices.below(self.tasks - first);
        let items = self.items();
        self.text += &format!("{pad}type: foreach\n{pad}items: {items}\n{pad}task: t{task}\n");
        if self.choices.once_in(4) {
            self.text += &format!("{pad}sequential: true\n");
        } else if self.choices.once_in(3) {
            self.text += &format!(
                "{pad}max_parallel: {}\n",
                self.choices.pick(&["1", "2", "60"])
            );
        }
        match self.choices.below(8) {
            6 => self.text += &format!("{pad}agent: '@helper'\n"),
            7 => self.text += &format!("{pad}agent: '@task'\n"),
            _ => {}
        }
        let rule = self.choices.pick(&[
            "fail",
            "continue",
            "{strategy: retry_failed, max_retries: 2, collect_to: errors}",
            "fail_all",
            "{strategy: continue, collect_to: errors}",
        ]);
        self.text += &format!(
            "{pad}on_child_error: {rule}\n{pad}output_to: r{}\n",
            self.count
        );
        self.container(pad, jump.as_deref());
    }

    /// The time, the attempts and the failures of a container.
    fn container(&mut self, pad: &str, jump: Option<&str>) {
        if self.choices.once_in(4) {
            let retry = self
                .choices
                .pick(&["{attempts: 2}", "{attempts: 3, delay: 1}"]);
            self.text += &format!("{pad}retry: {retry}\n");
        }
        if self.choices.once_in(4) {
            let timeout = self.choices.pick(&["1", "500ms", "5m"]);
            self.text += &format!("{pad}timeout: {timeout}\n");
        }
        match (self.choices.below(4), jump) {
            (2, _) => self.text += &format!("{pad}on_error: continue\n"),
            (3, Some(target)) => self.text += &format!("{pad}on_error: {{goto: {target}}}\n"),
            _ => {}
        }
    }

    fn states(&mut self) {
        let count = 1 + self.choices.below(6);
        self.text += "initial_state: q0\nstates:\n";
        for state in 0..count {
            let action = self.choices.pick(&[
                "{type: shell, command: 'echo {{ state.n }}', output_to: out}",
                "{type: set_state, updates: [{path: n, operation: increment}]}",
                "{tool: open_terminal, params: {shell: bash}}",
                "{tool: await_output, params: {pattern: 'a+', timeout: 5}}",
                "{type: prompt, kind: confirm, message: Sure?}",
                "{type: delegate, instructions: think}",
                "{type: wait, duration_seconds: 1}",
                "{type: call, workflow: other}",
                "{type: mcp_call, tool: server.look, parameters: {q: '{{ state.word }}'}}",
            ]);
            self.text += &format!("  q{state}:\n    action: {action}\n");
            if self.choices.once_in(4) {
                self.text += &format!("    timeout: {}\n", self.choices.pick(&["1", "300"]));
            }
            if self.choices.once_in(4) {
                self.text += &format!("    on_timeout: q{}\n", self.choices.below(count));
            }
            let transitions = self.choices.below(5);
            if transitions > 0 {
                self.text += "    transitions:\n";
            }
            for n in 0..transitions {
                let condition = if self.choices.once_in(4) {
                    format!("{{description: Case {n} holds.}}")
                } else {
                    self.choices.pick(CONDITIONS).to_owned()
                };
                let next = self.choices.below(count);
                self.text += &format!("      - {{condition: {condition}, next_state: q{next}}}\n");
            }
        }
    }
}

fn quoted(value: &str) -> String {
    if value.starts_with('[') {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}
