//! Characters that show nothing, or reorder what is shown, written out.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with what a terminal or an editor would obey instead of showing: control characters,
/// marks that turn the direction of writing, and spaces without width.
///
/// A message quotes names from the definition. Without this, a name could make the rest of its
/// line read as something else.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if hidden(other) => {
                // Writing into a string does not fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_text_is_written_out() {
        assert_eq!(visible("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(visible("\u{1b}[31m\r\n\u{0}"), "\\u{1b}[31m\\r\\n\\u{0}");
        assert_eq!(visible("x\u{200b}y\u{feff}"), "x\\u{200b}y\\u{feff}");
    }

    #[test]
    fn other_scripts_and_signs_stay_as_they_are() {
        for text in [
            "naïve – “ok” … ✓",
            "שלום",
            "日本語",
            "👩\u{200d}💻",
            "می\u{200c}خواهم",
        ] {
            assert_eq!(visible(text), text);
        }
    }
}
