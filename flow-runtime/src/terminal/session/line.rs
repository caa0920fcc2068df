//! What a shell's prompt holds, as far as the keys tell.

use crate::terminal::program::Shell;

/// The line at a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// So many characters, with the cursor behind them.
    Characters(usize),
    /// Some text, with the cursor behind it.
    Text,
    /// Whatever the keys have made of it.
    Unknown,
}

impl Line {
    pub(super) const EMPTY: Line = Line::Characters(0);

    /// The line after more was typed. Keys that edit in other ways than every shell does leave it
    /// unknown until the next prompt.
    pub(super) fn after(self, typed: &str, shell: Option<Shell>) -> Line {
        typed.chars().fold(self, |line, key| match (key, line) {
            (_, Line::Unknown) => Line::Unknown,
            // ctrl-u
            ('\x15', _) => Line::EMPTY,
            // ctrl-z and ctrl-\: a terminal that reads lines drops this one. Editors may insert them, as
            // they may ctrl-l.
            ('\x1a' | '\x1c', _) if shell == Some(Shell::Posix) => Line::EMPTY,
            ('\x7f', Line::Characters(count)) => Line::Characters(count.saturating_sub(1)),
            ('\x7f', Line::Text) => Line::Text,
            // fish writes abbreviations out at a blank.
            (' ', _) if shell == Some(Shell::Fish) => Line::Text,
            (' '..='~', Line::Characters(count)) => Line::Characters(count + 1),
            (' '..='~', Line::Text) => Line::Text,
            (key, _) if key.is_control() => Line::Unknown,
            // Shells do not agree on what is one character.
            _ => Line::Text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_empty_only_when_every_shell_would_have_cleared_it() {
        for (typed, line) in [
            ("echo", Line::Characters(4)),
            ("x\x7f", Line::EMPTY),
            ("\x7f\x7fx", Line::Characters(1)),
            ("echo a b\x15", Line::EMPTY),
            ("é\x7f", Line::Text),
            ("é\x15x", Line::Characters(1)),
            ("a\x1b[D\x15", Line::Unknown),
            ("a\t\x15", Line::Unknown),
            ("a\n", Line::Unknown),
            ("a\x0c\x7f", Line::Unknown),
            ("\x1a", Line::Unknown),
        ] {
            assert_eq!(
                Line::EMPTY.after(typed, Some(Shell::Bash)),
                line,
                "{typed:?}"
            );
        }
        let fish = |typed| Line::EMPTY.after(typed, Some(Shell::Fish));
        assert_eq!(fish("g \x7f\x7f"), Line::Text);
        assert_eq!(fish("g \x15"), Line::EMPTY);
        let dash = |typed| Line::EMPTY.after(typed, Some(Shell::Posix));
        assert_eq!(dash("\x0c"), Line::Unknown);
        assert_eq!(dash("half\x1a"), Line::EMPTY);
    }
}
