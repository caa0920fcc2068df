//! A registry with a home directory of its own.

use std::path::Path;

use flow_runtime::terminal::{Options, Terminals};
use serde_json::{Value, json};

/// Terminals, and the home directory their programs see.
pub(crate) struct Terms {
    pub(crate) terminals: Terminals,
    home: tempfile::TempDir,
}

/// A program of Python that reads a single key and leaves the others where they are.
pub(crate) const READS_A_KEY: &str = "import os, tty, termios
old = termios.tcgetattr(0)
tty.setcbreak(0)
print('begun')
print(os.read(0, 1))
termios.tcsetattr(0, termios.TCSADRAIN, old)
";

/// The shells that must be there.
pub(crate) const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "dash"];

impl Terms {
    pub(crate) fn new() -> Terms {
        Terms::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Terms {
        let home = tempfile::tempdir().unwrap();
        // Without one, zsh asks its new user questions.
        std::fs::write(home.path().join(".zshrc"), "PS1='%% '\n").unwrap();
        std::fs::write(home.path().join(".bashrc"), "PS1='$ '\n").unwrap();
        // Without it, fish reads all manual pages in a process of its own.
        let completions = home.path().join(".local/share/fish/generated_completions");
        std::fs::create_dir_all(completions).unwrap();
        Terms {
            terminals: Terminals::new(options).unwrap(),
            home,
        }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Calls a tool with parameters that fit.
    pub(crate) async fn call(&self, tool: &str, parameters: Value) -> Value {
        self.terminals.call(tool, parameters).await.unwrap()
    }

    /// Opens a program in the home directory.
    pub(crate) async fn open(&self, shell: &str) -> String {
        self.open_with(shell, json!({})).await
    }

    pub(crate) async fn open_with(&self, shell: &str, environment: Value) -> String {
        let home = self.home().to_str().unwrap();
        let mut variables = json!({
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "ENV": "",
            "XDG_CONFIG_HOME": "",
            "ZDOTDIR": home,
            "INPUTRC": "/dev/null",
        });
        for (name, value) in environment.as_object().unwrap() {
            variables[name] = value.clone();
        }
        let opened = self
            .call(
                "open_terminal",
                json!({"shell": shell, "working_directory": home, "environment": variables}),
            )
            .await;
        assert_eq!(opened["success"], true, "{opened:#}");
        opened["session_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn run(&self, command: &str) -> Value {
        self.call("run_command", json!({"command": command, "timeout": 30}))
            .await
    }

    pub(crate) async fn send(&self, text: &str) -> Value {
        let sent = self.call("send_input", json!({"input_text": text})).await;
        assert_eq!(sent["success"], true, "{sent:#}");
        sent
    }

    pub(crate) async fn keys(&self, keys: &[&str]) -> Value {
        let sent = self.call("send_input", json!({"keys": keys})).await;
        assert_eq!(sent["success"], true, "{sent:#}");
        sent
    }

    /// Waits for output that must come.
    pub(crate) async fn expect(&self, pattern: &str) -> String {
        let found = self
            .call("await_output", json!({"pattern": pattern, "timeout": 30}))
            .await;
        match found["match_text"].as_str() {
            Some(text) => text.to_owned(),
            None => panic!("`{pattern}` did not come: {found:#}"),
        }
    }

    /// Waits for something on the screen that must come.
    pub(crate) async fn expect_screen(&self, pattern: &str) -> String {
        let found = self
            .call(
                "await_output",
                json!({"pattern": pattern, "timeout": 30, "target": "screen"}),
            )
            .await;
        match found["match_text"].as_str() {
            Some(text) => text.to_owned(),
            None => panic!("`{pattern}` did not come: {found:#}"),
        }
    }

    /// What has come since the last input.
    pub(crate) async fn since_input(&self) -> String {
        let asked = json!({"content_mode": "since_input"});
        let content = self.call("get_screen_content", asked).await;
        content["screen_content"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn screen(&self) -> String {
        let content = self.call("get_screen_content", json!({})).await;
        content["screen_content"].as_str().unwrap().to_owned()
    }

    /// All that was said, as `await_output` sees it.
    pub(crate) async fn said(&self) -> String {
        let asked = json!({"content_mode": "tail", "line_count": 100_000});
        let content = self.call("get_screen_content", asked).await;
        content["screen_content"].as_str().unwrap().to_owned()
    }
}

/// Status, exit code and output.
pub(crate) fn outcome(ran: &Value) -> (&str, Option<i64>, &str) {
    (
        ran["status"].as_str().unwrap_or_default(),
        ran["exit_code"].as_i64(),
        ran["output"].as_str().unwrap_or_default(),
    )
}
