//! Large values of a JSON text, stored once.
//!
//! A stored text is the original one with its large values taken out. A value that was taken out
//! leaves a mark: the byte 1, which JSON text can never contain, and the hash of what was there.
//! So nothing that a user writes is mistaken for a mark, nothing has to be escaped, and what is
//! read is, byte for byte, what was written.

use std::collections::HashSet;

use super::{Error, Hash};

/// What stands before the 64 digits of a hash. Not a byte of any JSON text.
const MARK: u8 = 1;
const DIGITS: usize = 64;

/// No text is larger, neither when it is stored nor when it is restored.
const LIMIT: usize = 256 << 20;

/// Whether a text may be stored at all.
pub(super) fn fits(text: &[u8]) -> Result<(), Error> {
    if text.len() <= LIMIT {
        return Ok(());
    }
    Err(Error::TooLarge {
        size: text.len(),
        limit: LIMIT,
    })
}

/// A text as it is stored.
#[derive(Debug, PartialEq)]
pub(super) struct Stored {
    /// The text with marks.
    pub(super) text: Vec<u8>,
    /// The size of the original when something was taken out.
    pub(super) whole: Option<usize>,
    /// What was taken out, inner values first.
    pub(super) blobs: Vec<Blob>,
}

/// A value that was taken out.
#[derive(Debug, PartialEq)]
pub(super) struct Blob {
    pub(super) hash: Hash,
    /// The value, itself with marks when `marked`.
    pub(super) text: Vec<u8>,
    pub(super) marked: bool,
}

/// Takes every string, list and map larger than `threshold` out of a JSON text, except the
/// outermost list or map. What is not JSON is left as it is.
pub(super) fn split(text: Vec<u8>, threshold: usize) -> Result<Stored, Error> {
    fits(&text)?;
    let threshold = threshold.max(1 + DIGITS);
    if text.len() > threshold
        && let Some((short, blobs)) = take_out(&text, threshold)
        && !blobs.is_empty()
    {
        return Ok(Stored {
            text: short,
            whole: Some(text.len()),
            blobs,
        });
    }
    Ok(Stored {
        text,
        whole: None,
        blobs: Vec::new(),
    })
}

/// A list or map that is being read.
struct Open {
    /// Where it begins in the text with marks.
    start: usize,
    marked: bool,
}

fn take_out(text: &[u8], threshold: usize) -> Option<(Vec<u8>, Vec<Blob>)> {
    let mut out = Vec::with_capacity(text.len().min(4 * threshold));
    let mut blobs = Blobs::default();
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = at + 1 + string_end(&text[at + 1..])?;
                if end - at > threshold {
                    mark(&mut out, &mut blobs, text[at..end].to_vec(), false);
                    if let Some(open) = open.last_mut() {
                        open.marked = true;
                    }
                } else {
                    out.extend_from_slice(&text[at..end]);
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                open.push(Open {
                    start: out.len(),
                    marked: false,
                });
                out.push(byte);
            }
            b'}' | b']' => {
                out.push(byte);
                let closed = open.pop()?;
                if let Some(around) = open.last_mut() {
                    around.marked |= closed.marked;
                    if out.len() - closed.start > threshold {
                        let value = out.split_off(closed.start);
                        mark(&mut out, &mut blobs, value, closed.marked);
                        around.marked = true;
                    }
                }
            }
            b'\t' | b'\n' | b'\r' | b' '.. => out.push(byte),
            _ => return None,
        }
        at += 1;
    }
    open.is_empty().then_some((out, blobs.all))
}

/// Where a string ends, after its closing quote, counted from after its opening one.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            b' '.. => at += 1,
            _ => return None,
        }
    }
}

/// The values taken out so far, each once.
#[derive(Default)]
struct Blobs {
    all: Vec<Blob>,
    known: HashSet<Hash>,
}

fn mark(out: &mut Vec<u8>, blobs: &mut Blobs, text: Vec<u8>, marked: bool) {
    let hash = Hash::of(&text);
    out.push(MARK);
    out.extend_from_slice(hash.to_string().as_bytes());
    if blobs.known.insert(hash) {
        blobs.all.push(Blob { hash, text, marked });
    }
}

/// Puts back what [`split`] took out of a text that was `whole` bytes large. `fetch` knows each
/// value and whether it has marks itself. The error says what does not fit.
pub(super) fn restore(
    text: Vec<u8>,
    whole: usize,
    mut fetch: impl FnMut(Hash) -> Result<(Vec<u8>, bool), Error>,
    damaged: impl Fn(String) -> Error,
) -> Result<Vec<u8>, Error> {
    if whole > LIMIT {
        return Err(damaged(format!("a body of {whole} bytes")));
    }
    let mut out = Vec::with_capacity(whole);
    let mut unread = vec![(text, 0)];
    while let Some((text, at)) = unread.last_mut() {
        let rest = &text[*at..];
        let plain = rest
            .iter()
            .position(|&byte| byte == MARK)
            .unwrap_or(rest.len());
        if out.len() + plain > whole {
            return Err(damaged("a body larger than it was".to_owned()));
        }
        out.extend_from_slice(&rest[..plain]);
        if plain == rest.len() {
            unread.pop();
            continue;
        }
        let digits = rest.get(plain + 1..plain + 1 + DIGITS);
        let hash = digits
            .and_then(Hash::from_hex)
            .ok_or_else(|| damaged("a body with a broken mark".to_owned()))?;
        *at += plain + 1 + DIGITS;
        let (value, marked) = fetch(hash)?;
        if Hash::of(&value) != hash {
            return Err(damaged(format!("value {hash} has changed")));
        }
        if marked {
            unread.push((value, 0));
        } else if out.len() + value.len() > whole {
            return Err(damaged("a body larger than it was".to_owned()));
        } else {
            out.extend_from_slice(&value);
        }
    }
    if out.len() == whole {
        Ok(out)
    } else {
        Err(damaged("a body smaller than it was".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use std::collections::HashMap;

    use super::*;

    fn damaged(detail: String) -> Error {
        Error::Corrupt {
            path: "test".into(),
            detail,
        }
    }

    fn back(stored: Stored) -> Result<Vec<u8>, Error> {
        let Some(whole) = stored.whole else {
            return Ok(stored.text);
        };
        let blobs: HashMap<_, _> = stored
            .blobs
            .into_iter()
            .map(|blob| (blob.hash, (blob.text, blob.marked)))
            .collect();
        let fetch = |hash| {
            blobs
                .get(&hash)
                .cloned()
                .ok_or_else(|| damaged("gone".into()))
        };
        restore(stored.text, whole, fetch, damaged)
    }

    fn same(text: &str, blobs: usize) -> Stored {
        let stored = split(text.as_bytes().to_vec(), 100).unwrap();
        assert_eq!(stored.blobs.len(), blobs, "{text}");
        assert_eq!(
            String::from_utf8(back(split(text.as_bytes().to_vec(), 100).unwrap()).unwrap())
                .unwrap(),
            text
        );
        stored
    }

    #[test]
    fn small_values_stay_where_they_are() {
        let many = format!("[{}]", vec!["\"0123456789\""; 50].join(", "));
        assert_eq!(same(&many, 0).text, many.as_bytes());
        same("", 0);
        same("null", 0);
    }

    #[test]
    fn large_values_are_taken_out_once_and_come_back_byte_for_byte() {
        let long = "x".repeat(300);
        let list = vec!["1"; 200].join(" ,\n");
        let text = format!(
            "{{ \"b\" : \"{long}\",\t\"a\":[{list}] , \"c\":\"{long}\", \"d\":1e5,\"e\":{{\"deep\":\"{long}\"}} }}"
        );
        let stored = same(&text, 2);
        assert!(stored.text.len() < 350);
    }

    #[test]
    fn values_within_values_are_taken_out_too() {
        let long = "y".repeat(200);
        let small = vec!["\"0123456789\""; 20].join(",");
        let text =
            format!("{{\"a\":{{\"b\":[\"{long}\",{small}],\"c\":[{small}],\"d\":[{small}, 1]}}}}");
        let stored = same(&text, 5);
        assert!(stored.blobs[1].marked && !stored.blobs[0].marked);
    }

    #[test]
    fn escapes_and_other_scripts_survive() {
        let long = "\\\"\\\\ü\\u0001{[".repeat(30);
        same(&format!("{{\"k\":\"{long}\"}}"), 1);
        same(&format!("\"{long}\""), 1);
    }

    #[test]
    fn texts_that_look_like_marks_are_only_texts() {
        let hash = Hash::of(b"x");
        same(
            &format!("{{\"a\":\"\\u0001{hash}\",\"b\":\"{}\"}}", "z".repeat(200)),
            1,
        );
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        let long = "x".repeat(300);
        for text in [
            format!("\u{1}{long}"),
            format!("[\"{long}\u{1}\"]"),
            format!("[\"{long}\",\u{1}]"),
            format!("[\"{long}"),
            format!("[\"{long}\\"),
            format!("[\"{long}\"]]"),
            format!("[[\"{long}\"]"),
        ] {
            assert_eq!(same(&text, 0).text, text.as_bytes());
        }
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let depth = 200_000;
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let stored = split(text.clone().into_bytes(), 100).unwrap();
        assert_eq!(back(stored).unwrap(), text.as_bytes());
    }

    #[test]
    fn any_json_comes_back_whatever_the_threshold() {
        let mut seed = 1;
        for _ in 0..300 {
            let mut text = String::new();
            write_json(&mut seed, 5, &mut text);
            let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
            for threshold in [65, 100, 400] {
                let stored = split(text.clone().into_bytes(), threshold).unwrap();
                let back = back(stored).unwrap();
                assert_eq!(back, text.as_bytes());
                assert_eq!(
                    serde_json::from_slice::<serde_json::Value>(&back).unwrap(),
                    parsed
                );
            }
        }
    }

    /// A number below `limit`, the same for the same seed.
    fn pick(seed: &mut u64, limit: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) % limit
    }

    fn write_json(seed: &mut u64, depth: u64, out: &mut String) {
        let kinds = if depth == 0 { 3 } else { 5 };
        let kind = pick(seed, kinds);
        match kind {
            0 => out.push_str(["null", "true", "-1.50e3", "0"][pick(seed, 4) as usize]),
            1 | 2 => write_string(seed, out),
            _ => {
                out.push(if kind == 3 { '[' } else { '{' });
                for n in 0..pick(seed, 8) {
                    out.push_str(if n > 0 { "," } else { "" });
                    out.push_str(["", " ", "\n\t", "\r "][pick(seed, 4) as usize]);
                    if kind == 4 {
                        write_string(seed, out);
                        out.push_str([":", " : "][pick(seed, 2) as usize]);
                    }
                    write_json(seed, depth - 1, out);
                }
                out.push(if kind == 3 { ']' } else { '}' });
            }
        }
    }

    fn write_string(seed: &mut u64, out: &mut String) {
        let parts = ["a", "\\\"", "\\\\", "{", "]", "é", "\\u0001", ",", ":", "𝕏"];
        out.push('"');
        let length = [3, 30, 300][pick(seed, 3) as usize];
        for _ in 0..pick(seed, length) {
            out.push_str(parts[pick(seed, parts.len() as u64) as usize]);
        }
        out.push('"');
    }

    #[test]
    fn a_changed_value_is_noticed() {
        let text = format!("[\"{}\"]", "x".repeat(300));
        let change = |edit: fn(&mut Stored)| {
            let mut stored = split(text.clone().into_bytes(), 100).unwrap();
            edit(&mut stored);
            back(stored)
        };
        assert!(change(|_| ()).is_ok());
        assert!(change(|stored| stored.blobs[0].text[5] = b'y').is_err());
        assert!(change(|stored| stored.blobs.clear()).is_err());
        assert!(change(|stored| stored.whole = Some(301)).is_err());
        assert!(change(|stored| stored.whole = Some(400)).is_err());
        assert!(change(|stored| stored.whole = Some(usize::MAX)).is_err());
        assert!(change(|stored| stored.text.truncate(20)).is_err());
    }
}
