//! What is typed for a command.

use std::collections::VecDeque;
use std::path::PathBuf;

use flow_model::command::belonging;

use crate::terminal::program::Shell;

/// The key that makes a shell that edits a line clear it and insert what follows.
pub(super) const CLEAR: &[u8] = b"\x1b[9134~";
/// What begins pasted text.
pub(super) const PASTE: &str = "\x1b[200~";
/// What ends it.
pub(super) const PASTED: &str = "\x1b[201~";
/// The key that makes a shell fill its line from a file.
const FILL: &str = "\x1b[9137~";
/// Bytes of a command that is pasted although it is a single line: an editor that shows a line anew
/// for every key takes the longer for each the longer the line is.
const LONG: usize = 1000;

/// What is typed for a command, line by line.
pub(super) struct Script {
    pub(super) lines: VecDeque<Typed>,
    /// The file from which the shell takes it.
    pub(super) handed: Option<Handed>,
    /// The shell reads several lines without a prompt in between.
    pub(super) pasted: bool,
    /// It may stand for an earlier command.
    pub(super) recalls: bool,
}

/// A line of a command as it is typed.
pub(super) struct Typed {
    pub(super) text: String,
    /// It belongs to the line before it, and is no command of its own.
    pub(super) belongs: bool,
}

impl Script {
    /// Every line when the shell asks for it.
    pub(super) fn by_line(command: &str) -> Script {
        let belonging = std::iter::once(false).chain(belonging(command));
        let lines = command.split('\n').map(str::to_owned).zip(belonging);
        let typed = |(text, belongs)| Typed { text, belongs };
        Script::of(command, lines.map(typed).collect())
    }

    /// The same, with those lines pasted that keys would change.
    pub(super) fn pasted_by_line(command: &str) -> Script {
        let mut script = Script::by_line(command);
        let long = script.lines.iter_mut().filter(|it| is_pasted(&it.text));
        for line in long {
            line.text = pasted(&line.text);
        }
        script
    }

    /// All at once, with line ends that whoever takes it so takes for such.
    pub(super) fn whole(command: &str, written: &str) -> Script {
        Script {
            pasted: command.contains('\n'),
            ..Script::one(command, pasted(written))
        }
    }

    /// From a file.
    pub(super) fn handed(command: &str, file: Handed) -> Script {
        Script {
            handed: Some(file),
            pasted: command.contains('\n'),
            ..Script::one(command, FILL.to_owned())
        }
    }

    fn one(command: &str, text: String) -> Script {
        let belongs = false;
        Script::of(command, VecDeque::from([Typed { text, belongs }]))
    }

    fn of(command: &str, lines: VecDeque<Typed>) -> Script {
        Script {
            lines,
            handed: None,
            pasted: false,
            recalls: command.contains('!') && !command.trim_start().starts_with('#'),
        }
    }
}

/// Whether a shell that could read a command as a whole must not: bash reads on behind a line that it
/// cannot read and behind a ctrl-c, whatever was pasted with it.
pub(super) fn is_read_by_line(shell: Shell, command: &str) -> bool {
    shell == Shell::Bash && command.contains('\n')
}

/// Whether a command is pasted where the shell takes that. Letters of more than a byte are keys to a
/// shell whose locale does not know them.
pub(super) fn is_pasted(command: &str) -> bool {
    command.contains(['\n', '\t']) || command.len() > LONG || !command.is_ascii()
}

fn pasted(text: &str) -> String {
    format!("{PASTE}{text}{PASTED}")
}

/// A file with a command, as long as the shell has not begun with it.
pub(super) struct Handed {
    path: PathBuf,
    /// Nobody waits for the command any more, and the shell has yet to read it.
    stays: bool,
}

impl Handed {
    pub(super) fn over(path: PathBuf, command: &str) -> Option<Handed> {
        let handed = Handed { path, stays: false };
        std::fs::write(&handed.path, command).ok()?;
        Some(handed)
    }

    /// Leaves the file to the next command, or the end of the session: the key that has the shell take
    /// it is typed.
    pub(super) fn stay(&mut self) {
        self.stays = true;
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        if !self.stays {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
