//! Values that are kept aside while a text is rendered, with marks in their places.
//!
//! The rendered text is then only what the author of the workflow wrote: it can be read in its own
//! language, and each value put in as its place demands.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use crate::value::Value;

/// A value that waits for its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Held {
    /// To be quoted.
    Value(Value),
    /// Text of the surrounding language by the author's own decision.
    Raw(String),
    /// `{name}` of a name that is no variable: text of the template itself.
    Written(String),
}

impl Held {
    pub(super) fn size(&self) -> u64 {
        match self {
            Held::Value(value) => value.size(),
            Held::Raw(text) | Held::Written(text) => text.len() as u64,
        }
    }
}

/// What marks begin with: a noncharacter and a number no input can know. The number never reaches
/// a result.
pub(super) static OPENING: LazyLock<String> = LazyLock::new(|| {
    let secret = RandomState::new().hash_one("mark");
    format!("\u{fdd0}{secret:016x}")
});
const CLOSING: char = '\u{fdd1}';

/// The mark of the n-th value.
pub(super) fn mark(index: usize) -> String {
    format!("{}{index}{CLOSING}", *OPENING)
}

/// The mark at the start of a text: its value, and its length.
pub(super) fn marked(text: &str) -> Option<(usize, usize)> {
    let rest = text.strip_prefix(OPENING.as_str())?;
    let (digits, _) = rest.split_once(CLOSING)?;
    let length = OPENING.len() + digits.len() + CLOSING.len_utf8();
    Some((digits.parse().ok()?, length))
}
