//! Random definitions, the same ones for the same seed.

/// How many there are.
pub(crate) const COUNT: u64 = 24;

/// Conditions that a transition can have.
const CONDITIONS: [&str; 12] = [
    "success",
    "failure",
    "timeout",
    "always",
    "{success: true}",
    "{success: false}",
    "{timeout_occurred: true}",
    "{timeout_occurred: false}",
    "{pattern_match: 'a+'}",
    "{field_contains: {screen_content: x}}",
    "{all: [{success: true}, {pattern_not_match: b}]}",
    "{description: It looks right.}",
];

/// The text of a definition.
pub(crate) fn definition(seed: u64) -> String {
    let mut random = Random::new(seed);
    match seed % 2 {
        0 => states(&mut random),
        _ => {
            let mut steps = Steps {
                random,
                text: String::from("state: {n: 0}\nsteps:\n"),
                count: 0,
            };
            steps.list(1, 3, false);
            steps.text
        }
    }
}

fn states(random: &mut Random) -> String {
    let count = 1 + random.below(9);
    let mut text = String::from("initial_state: s0\nstates:\n");
    for state in 0..count {
        text += &format!("  s{state}:\n    action: {{tool: list_terminal_sessions}}\n");
        if random.below(3) == 0 {
            text += &format!("    on_timeout: s{}\n", random.below(count));
        }
        let transitions = random.below(5);
        if transitions > 0 {
            text += "    transitions:\n";
        }
        for _ in 0..transitions {
            let condition = CONDITIONS[random.index(CONDITIONS.len())];
            let next = random.below(count);
            text += &format!("      - {{condition: {condition}, next_state: s{next}}}\n");
        }
    }
    text
}

struct Steps {
    random: Random,
    text: String,
    count: u64,
}

impl Steps {
    /// Steps at a depth of indentation; `depth` more levels may follow.
    fn list(&mut self, indent: usize, depth: u64, in_loop: bool) {
        for _ in 0..1 + self.random.below(4) {
            let pad = "  ".repeat(indent);
            self.count += 1;
            self.text += &format!("{pad}- id: s{}\n", self.count);
            let pad = "  ".repeat(indent + 1);
            if self.random.below(4) == 0 {
                self.text += &format!("{pad}when: \"{{{{ state.n > 1 }}}}\"\n");
            }
            let kinds = if depth == 0 { 3 } else { 6 };
            match self.random.below(kinds) {
                0 if in_loop && self.random.below(2) == 0 => {
                    self.text += &format!("{pad}type: continue\n");
                }
                1 if in_loop && self.random.below(2) == 0 => {
                    self.text += &format!("{pad}type: break\n");
                }
                0 => {
                    self.text += &format!("{pad}type: shell\n{pad}command: make\n");
                    if self.random.below(3) == 0 {
                        self.text += &format!("{pad}on_error: continue\n");
                    }
                }
                1 => {
                    self.text += &format!("{pad}type: set_state\n{pad}updates: {{n: 2}}\n");
                }
                2 => {
                    let target = 1 + self.random.below(self.count);
                    self.text += &format!(
                        "{pad}type: shell\n{pad}command: make\n{pad}on_error: {{goto: s{target}}}\n"
                    );
                }
                3 => {
                    self.text += &format!(
                        "{pad}type: condition\n{pad}if: \"{{{{ state.n > 1 }}}}\"\n{pad}then:\n"
                    );
                    self.list(indent + 2, depth - 1, in_loop);
                    if self.random.below(2) == 0 {
                        self.text += &format!("{pad}else:\n");
                        self.list(indent + 2, depth - 1, in_loop);
                    }
                }
                4 => {
                    self.text += &format!(
                        "{pad}type: while\n{pad}if: \"{{{{ state.n > 1 }}}}\"\n{pad}max_iterations: 3\n{pad}steps:\n"
                    );
                    self.list(indent + 2, depth - 1, true);
                }
                _ => {
                    self.text += &format!("{pad}type: foreach\n{pad}items: [1, 2]\n{pad}steps:\n");
                    self.list(indent + 2, depth - 1, true);
                }
            }
        }
    }
}

/// Xorshift.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub(crate) fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap_or(0)
    }
}
