//! Keys by name.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::suggest::nearest;

/// A key press: `enter`, `ctrl-c`, `alt-f`, `shift-tab`, `f5`.
///
/// ```
/// use flow_model::tools::{Key, KeyCode};
///
/// let key: Key = "ctrl-c".parse().expect("it is a key");
/// assert!(key.ctrl);
/// assert_eq!(key.code, KeyCode::Char('c'));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key {
    /// With the control key.
    pub ctrl: bool,
    /// With the alt (meta) key.
    pub alt: bool,
    /// With the shift key; never set on a character that has a shifted form of its own.
    pub shift: bool,
    /// The key itself.
    pub code: KeyCode,
}

/// A key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A key that types a character; the space bar is `Char(' ')`.
    Char(char),
    /// Return.
    Enter,
    /// Tabulator.
    Tab,
    /// Escape.
    Escape,
    /// Deletes to the left.
    Backspace,
    /// Deletes to the right.
    Delete,
    /// Insert.
    Insert,
    /// Start of the line.
    Home,
    /// End of the line.
    End,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// A function key, 1 to 12.
    Function(u8),
}

/// A name that no key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey(pub String);

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        write!(f, "`{name}` is not a key; text belongs in `input_text`")
    }
}

impl std::error::Error for UnknownKey {}

/// The names of keys, as [`KeyCode`] displays them.
const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("escape", KeyCode::Escape),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("page-up", KeyCode::PageUp),
    ("page-down", KeyCode::PageDown),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("f1", KeyCode::Function(1)),
    ("f2", KeyCode::Function(2)),
    ("f3", KeyCode::Function(3)),
    ("f4", KeyCode::Function(4)),
    ("f5", KeyCode::Function(5)),
    ("f6", KeyCode::Function(6)),
    ("f7", KeyCode::Function(7)),
    ("f8", KeyCode::Function(8)),
    ("f9", KeyCode::Function(9)),
    ("f10", KeyCode::Function(10)),
    ("f11", KeyCode::Function(11)),
    ("f12", KeyCode::Function(12)),
];

/// Other words for the same keys.
const ALIASES: &[(&str, KeyCode)] = &[
    ("return", KeyCode::Enter),
    ("esc", KeyCode::Escape),
    ("del", KeyCode::Delete),
    ("ins", KeyCode::Insert),
    ("pageup", KeyCode::PageUp),
    ("pgup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("pgdn", KeyCode::PageDown),
];

impl Key {
    /// The names of the keys that do not type a character, and `space`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }
}

impl Key {
    /// The key that a text was probably meant to name: as editors write it (`C-c`, `<C-d>`, `^C`), or
    /// mistyped.
    #[must_use]
    pub fn meant(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('<').trim_end_matches('>');
        if let Some(letter) = text.strip_prefix('^') {
            return format!("ctrl-{letter}").parse().ok();
        }
        let mut name = String::new();
        let mut rest = text;
        while let Some((modifier, after)) = rest.split_once(['-', '+']) {
            let modifier = match modifier {
                "C" | "c" => "ctrl",
                "A" | "a" | "M" | "m" => "alt",
                "S" | "s" => "shift",
                other => match nearest(other, ["ctrl", "control", "alt", "meta", "shift"]) {
                    Some(meant) => meant,
                    None => break,
                },
            };
            name.push_str(modifier);
            name.push('-');
            rest = after;
        }
        let known = || nearest(rest, Self::names()).map(|meant| format!("{name}{meant}"));
        let read = format!("{name}{rest}").parse().ok();
        read.or_else(|| known()?.parse().ok())
    }
}

impl FromStr for Key {
    type Err = UnknownKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownKey(text.to_owned());
        let (mut ctrl, mut alt, mut shift) = (false, false, false);
        let mut rest = text;
        while let Some((modifier, after)) = rest.split_once(['-', '+']) {
            let flag = match modifier.to_ascii_lowercase().as_str() {
                "ctrl" | "control" => &mut ctrl,
                "alt" | "meta" => &mut alt,
                "shift" => &mut shift,
                _ => break,
            };
            if std::mem::replace(flag, true) {
                return Err(unknown());
            }
            rest = after;
        }
        let mut code = code(rest).ok_or_else(unknown)?;
        if let KeyCode::Char(typed) = &mut code
            && *typed != ' '
        {
            if ctrl {
                // Terminals have control codes for ASCII only and do not tell the cases apart.
                if !typed.is_ascii_graphic() {
                    return Err(unknown());
                }
                typed.make_ascii_lowercase();
            } else if shift {
                if !typed.is_ascii_alphabetic() {
                    return Err(unknown());
                }
                typed.make_ascii_uppercase();
                shift = false;
            }
        }
        Ok(Self {
            ctrl,
            alt,
            shift,
            code,
        })
    }
}

fn code(name: &str) -> Option<KeyCode> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return (!only.is_control()).then_some(KeyCode::Char(only));
    }
    NAMES
        .iter()
        .chain(ALIASES)
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, code)| *code)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (held, name) in [
            (self.ctrl, "ctrl-"),
            (self.alt, "alt-"),
            (self.shift, "shift-"),
        ] {
            if held {
                f.write_str(name)?;
            }
        }
        self.code.fmt(f)
    }
}

impl fmt::Display for KeyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Char(' ') => "space",
            Self::Char(typed) => return write!(f, "{typed}"),
            Self::Enter => "enter",
            Self::Tab => "tab",
            Self::Escape => "escape",
            Self::Backspace => "backspace",
            Self::Delete => "delete",
            Self::Insert => "insert",
            Self::Home => "home",
            Self::End => "end",
            Self::PageUp => "page-up",
            Self::PageDown => "page-down",
            Self::Up => "up",
            Self::Down => "down",
            Self::Left => "left",
            Self::Right => "right",
            Self::Function(number) => return write!(f, "f{number}"),
        })
    }
}

impl TryFrom<String> for Key {
    type Error = UnknownKey;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

impl JsonSchema for Key {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Key".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "examples": ["enter", "ctrl-c", "up", "escape", "shift-tab", "f5"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        text.parse().expect("a key")
    }

    #[test]
    fn every_name_reads_back_as_it_is_written() {
        for name in Key::names().chain(["ctrl-c", "alt-shift-up", "ctrl--", "-", "+", "é", "A"]) {
            assert_eq!(key(name).to_string(), name);
        }
    }

    #[test]
    fn other_spellings_mean_the_same_key() {
        assert_eq!(key("Ctrl+C"), key("ctrl-c"));
        assert_eq!(key("Esc"), key("escape"));
        assert_eq!(key("shift-a"), key("A"));
        assert_eq!(key("PgDn"), key("page-down"));
    }

    #[test]
    fn what_no_terminal_can_send_is_not_a_key() {
        for name in [
            "",
            "ctrl-",
            "ctrl-é",
            "shift-1",
            "ctrl-ctrl-c",
            "hello",
            "\n",
            "f13",
        ] {
            assert_eq!(name.parse::<Key>(), Err(UnknownKey(name.to_owned())));
        }
    }
}
