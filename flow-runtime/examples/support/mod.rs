//! What the examples that try terminals have in common: shells that read nothing of their user's, and
//! chance that can be repeated.

use flow_runtime::terminal::{Options, Terminals};
use serde_json::{Value, json};

pub(crate) const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "dash"];

/// Numbers that look like chance, the same for the same seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        // Neighbours among the seeds must not begin alike, and zero would stay zero.
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Random((mixed ^ mixed >> 29).max(1))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Terminals, and the home of their shells.
pub(crate) struct Ground {
    pub(crate) terminals: Terminals,
    pub(crate) home: tempfile::TempDir,
}

impl Ground {
    pub(crate) fn new() -> Result<Ground, Box<dyn std::error::Error>> {
        let home = tempfile::tempdir()?;
        std::fs::write(home.path().join(".zshrc"), "PS1='%% '\n")?;
        std::fs::write(home.path().join(".bashrc"), "PS1='$ '\n")?;
        std::fs::create_dir_all(home.path().join(".local/share/fish/generated_completions"))?;
        let terminals = Terminals::new(Options::default())?;
        Ok(Ground { terminals, home })
    }

    pub(crate) async fn call(&self, tool: &str, parameters: Value) -> Value {
        match self.terminals.call(tool, parameters).await {
            Ok(answer) => answer,
            Err(error) => json!({"error": error.to_string()}),
        }
    }

    /// Opens a shell, with more variables if there are some, and answers what the tool does.
    pub(crate) async fn open(&self, shell: &str, variables: &[(&str, &str)]) -> Value {
        let home = self.home.path().to_string_lossy().into_owned();
        let mut environment =
            json!({"HOME": home, "ZDOTDIR": home, "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": ""});
        for (name, value) in variables {
            environment[name] = json!(value);
        }
        let parameters =
            json!({"shell": shell, "working_directory": home, "environment": environment});
        let opened = self.call("open_terminal", parameters).await;
        assert_eq!(opened["success"], true, "{opened:#}");
        opened
    }
}

/// Makes the machine as busy as the variable `LOAD` says: so many threads that do nothing but compute.
pub(crate) fn load() {
    let load = std::env::var("LOAD")
        .ok()
        .and_then(|load| load.parse().ok());
    for _ in 0..load.unwrap_or(0) {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
}
