//! Names of runs and of contents.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::Error;

/// Crockford's base 32: no letter that reads like a digit.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const START: &str = "r-";
const TIME: u32 = 10;
const RANDOM: u32 = 8;
const LENGTH: u32 = TIME + RANDOM;

/// The id of a run: `r-` and 18 letters and digits, the first ten of which are the time. Ids sort
/// by time, as values and as texts.
///
/// ```
/// use flow_runtime::journal::RunId;
///
/// let early = RunId::new(1_767_225_600_000, 7);
/// let late = RunId::new(1_767_225_600_001, 3);
/// assert!(early < late && early.to_string() < late.to_string());
/// assert_eq!(early.to_string(), "r-01kdvdna0000000007");
/// assert_eq!("r-01kdvdna0000000007".parse::<RunId>()?, early);
/// # Ok::<(), flow_runtime::journal::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

impl RunId {
    /// The id of a run started at this time, in milliseconds since 1970, told from others of the
    /// same millisecond by 40 of the random bits.
    pub fn new(at_millis: u64, random: u128) -> RunId {
        let time = u128::from(at_millis) & ((1 << (5 * TIME)) - 1);
        let random = random & ((1 << (5 * RANDOM)) - 1);
        RunId(time << (5 * RANDOM) | random)
    }

    /// When the run was started, in milliseconds since 1970.
    pub fn at_millis(self) -> u64 {
        (self.0 >> (5 * RANDOM)) as u64
    }

    /// The first and the last id that begin with this text, which may leave out `r-`.
    pub(super) fn beginning(text: &str) -> Option<(RunId, RunId)> {
        let text = text.trim();
        let digits = text
            .strip_prefix(START)
            .or_else(|| text.strip_prefix("R-"))
            .unwrap_or(text);
        let count = u32::try_from(digits.len()).ok()?;
        if count > LENGTH || digits.is_empty() {
            return None;
        }
        let mut value = 0;
        for letter in digits.bytes() {
            value = value << 5 | u128::from(digit(letter)?);
        }
        let rest = 5 * (LENGTH - count);
        let first = value << rest;
        Some((RunId(first), RunId(first | ((1 << rest) - 1))))
    }
}

/// What a letter counts. Capitals and the letters that look like digits are understood.
fn digit(letter: u8) -> Option<u8> {
    let letter = match letter.to_ascii_lowercase() {
        b'o' => b'0',
        b'i' | b'l' => b'1',
        other => other,
    };
    let place = LETTERS.iter().position(|&known| known == letter)?;
    u8::try_from(place).ok()
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: String = (0..LENGTH)
            .rev()
            .map(|place| char::from(LETTERS[(self.0 >> (5 * place) & 31) as usize]))
            .collect();
        f.pad(&format!("{START}{letters}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RunId {
    type Err = Error;

    fn from_str(text: &str) -> Result<RunId, Error> {
        match RunId::beginning(text) {
            Some((first, last)) if first == last => Ok(first),
            _ => Err(Error::NotARunId {
                text: text.to_owned(),
            }),
        }
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The name of a content: its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The name of this content.
    ///
    /// ```
    /// let hash = flow_runtime::journal::Hash::of(b"abc");
    /// assert!(hash.to_string().starts_with("ba7816bf"));
    /// ```
    pub fn of(content: &[u8]) -> Hash {
        Hash(Sha256::digest(content).into())
    }

    /// The name written as 64 hexadecimal digits.
    pub(super) fn from_hex(digits: &[u8]) -> Option<Hash> {
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        Some(Hash(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Hash, NotAHash> {
        Hash::from_hex(text.as_bytes()).ok_or_else(|| NotAHash(text.to_owned()))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The text is not a SHA-256.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a content hash; they have 64 hexadecimal digits")]
pub struct NotAHash(String);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use super::*;

    #[test]
    fn ids_read_back_as_written() {
        for (at, random) in [(0, 0), (1_767_225_600_123, u128::MAX), (u64::MAX, 42)] {
            let id = RunId::new(at, random);
            assert_eq!(id.to_string().len(), 20);
            assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
            assert_eq!(id.to_string().to_uppercase().parse::<RunId>().unwrap(), id);
        }
        assert_eq!(
            RunId::new(1_767_225_600_123, 9).at_millis(),
            1_767_225_600_123
        );
    }

    #[test]
    fn ids_sort_by_time() {
        let mut ids: Vec<_> = (0..200)
            .map(|n| RunId::new(n * 7919, u128::from(u64::MAX - n)))
            .collect();
        ids.reverse();
        let mut texts: Vec<_> = ids.iter().map(RunId::to_string).collect();
        ids.sort();
        texts.sort();
        assert_eq!(ids.iter().map(RunId::to_string).collect::<Vec<_>>(), texts);
        assert!(
            ids.windows(2)
                .all(|pair| pair[0].at_millis() < pair[1].at_millis())
        );
    }

    #[test]
    fn letters_that_look_like_digits_are_understood() {
        let id: RunId = "r-01kdvqhs0000000010".parse().unwrap();
        assert_eq!("r-OLkdvqhsooo00000iO".parse::<RunId>().unwrap(), id);
    }

    #[test]
    fn other_texts_are_not_ids() {
        for text in [
            "",
            "r-",
            "r-01",
            "r-01kdvqhs000000000u",
            "r-01kdvqhs00000000071",
            "run",
            "r-é",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_beginning_spans_the_ids_that_start_with_it() {
        let id = RunId::new(1_767_225_600_123, 99);
        for length in 3..=20 {
            let (first, last) = RunId::beginning(&id.to_string()[..length]).unwrap();
            assert!(first <= id && id <= last);
        }
        assert_eq!(RunId::beginning("01kd"), RunId::beginning("r-01kd"));
        assert_eq!(RunId::beginning("r-"), None);
    }

    #[test]
    fn hashes_read_back_as_written() {
        let hash = Hash::of(b"flow");
        assert_eq!(hash.to_string().parse::<Hash>().unwrap(), hash);
        assert!("ab".parse::<Hash>().is_err());
        assert!("g".repeat(64).parse::<Hash>().is_err());
    }
}
