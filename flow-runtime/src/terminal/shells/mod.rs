//! Shell integration: how each shell is started so that it tells where it is.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::private::PrivateDirectory;
use super::program::Shell;

/// What bash runs when a command has ended; `set -v` shows it.
pub(super) const BASH_HOOK: &str = r#"{ __flow_ended "$?"; } >/dev/null 2>&1"#;

/// How to start a shell.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

impl PrivateDirectory {
    /// Where the shell writes its environment.
    pub(super) fn environment(&self) -> PathBuf {
        self.path.join("environment")
    }

    /// Where it finds a command that is not typed.
    pub(super) fn command(&self) -> PathBuf {
        self.path.join("command")
    }

    /// Where bash keeps the history of the session: hooks that people have write it to a file, and
    /// fail where there is none.
    fn history(&self) -> PathBuf {
        self.path.join("history")
    }

    /// The line that keeps a shell's history where it was asked for, else nowhere that lasts.
    fn remember(&self, shell: Shell, history: Option<&str>) -> String {
        let name = history.map(|name| name.replace('\'', r"'\''"));
        match (shell, name) {
            (Shell::Bash | Shell::Zsh, Some(name)) => format!("HISTFILE='{name}'"),
            (Shell::Bash, None) => format!("HISTFILE='{}'", quoted(&self.history())),
            (Shell::Zsh, None) => "unset HISTFILE".to_owned(),
            (Shell::Fish, name) => {
                format!("set -g fish_history '{}'", name.unwrap_or_default())
            }
            (Shell::Posix, _) => String::new(),
        }
    }

    /// Writes the files of a shell and says how to start it.
    ///
    /// `history` names the history that was asked for; `variable` looks up what the shell would
    /// inherit.
    pub(super) fn prepare(
        &self,
        shell: Shell,
        nonce: &str,
        history: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> io::Result<Start> {
        let environment = self.environment();
        private_file(&environment, "")?;
        let filled = |script: &str| {
            script
                .replace("@HOOK@", BASH_HOOK)
                .replace("@NONCE@", nonce)
                .replace("@ENVIRONMENT@", &quoted(&environment))
                .replace("@COMMAND@", &quoted(&self.command()))
                .replace("@DIRECTORY@", &quoted(&self.path))
                .replace("@HISTORY@", &self.remember(shell, history))
                .replace("@ESC@", "\x1b")
                .replace("@BEL@", "\x07")
        };
        let mut start = Start::default();
        match shell {
            Shell::Bash => {
                private_file(&self.history(), "")?;
                let file = self.path.join("bashrc");
                let user = match variable("POSIXLY_CORRECT") {
                    Some(_) => {
                        start.environment.push(("ENV".to_owned(), text(&file)));
                        own_env(variable("ENV"))
                    }
                    None => r"if [[ -r ~/.bashrc ]]; then \builtin . ~/.bashrc; fi".to_owned(),
                };
                let script = filled(include_str!("bashrc.sh")).replace("@USER_FILE@", &user);
                private_file(&file, &script)?;
                private_file(&self.path.join("follow"), &filled(include_str!("bash.sh")))?;
                start.arguments = vec!["--rcfile".to_owned(), text(&file)];
            }
            Shell::Zsh => {
                let files = [
                    (".zshenv", include_str!("zshenv.zsh")),
                    (".zshrc", include_str!("zshrc.zsh")),
                    ("follow", include_str!("zsh.zsh")),
                ];
                for (name, script) in files {
                    private_file(&self.path.join(name), &filled(script))?;
                }
                if let Some(directory) = variable("ZDOTDIR") {
                    start
                        .environment
                        .push(("FLOW_ZDOTDIR".to_owned(), directory));
                }
                start
                    .environment
                    .push(("ZDOTDIR".to_owned(), text(&self.path)));
            }
            Shell::Fish => {
                let file = self.path.join("flow.fish");
                private_file(&file, &filled(include_str!("fish.fish")))?;
                start.arguments = vec!["-C".to_owned(), format!("source '{}'", quoted(&file))];
            }
            Shell::Posix => {
                let file = self.path.join("profile");
                let user = own_env(variable("ENV"));
                let script = filled(include_str!("posix.sh")).replace("@USER_FILE@", &user);
                private_file(&file, &script)?;
                start.arguments = vec!["-i".to_owned()];
                start.environment.push(("ENV".to_owned(), text(&file)));
            }
        }
        Ok(start)
    }
}

/// Reads the file that a POSIX shell reads, whose variable is ours until then.
fn own_env(user: Option<String>) -> String {
    match user {
        Some(user) => {
            let user = user.replace('\'', r"'\''");
            format!("ENV='{user}'\nif [ -r \"$ENV\" ]; then . \"$ENV\"; fi")
        }
        None => "unset ENV".to_owned(),
    }
}

/// The variable that names a shell's history.
pub(super) fn history_variable(shell: Shell) -> Option<&'static str> {
    match shell {
        Shell::Bash | Shell::Zsh => Some("HISTFILE"),
        Shell::Fish => Some("fish_history"),
        Shell::Posix => None,
    }
}

fn private_file(path: &Path, content: &str) -> io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content.as_bytes())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// For between single quotes, in each of the shells.
fn quoted(path: &Path) -> String {
    text(path).replace('\'', r"'\''")
}
