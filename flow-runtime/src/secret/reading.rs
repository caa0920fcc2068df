//! How a place in a text may be read, where a shell, JSON or a screen may have written it.
//!
//! The same bytes may mean several things: `\n` is a line break in `$'…'`, and a backslash and a letter
//! in `'…'`. Whoever wrote them knows; here every reading counts.

/// Longer readings are not made.
pub(super) const LONGEST: usize = 31;

/// What some bytes may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A character as it is.
    Plain(char),
    /// A character in another form: `\x41`, `\101`, `\u0041`.
    Encoded(char),
    /// Nothing of what is written.
    Nothing(Noise),
    /// The text ends, or leaves something out, before it is known.
    Open,
}

/// What stands between the characters of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noise {
    /// Quotes, backslashes, colours: anywhere.
    Quote,
    /// A line break that a screen has put at the end of a row.
    Row,
    /// A blank or a control character, in whatever form: where the value has one.
    Blank,
    /// A quote or a backslash in another form: where the value has one.
    Encoded,
    /// A line break, and what a shell asks with for the next line.
    Prompt,
}

pub(super) const NOISES: usize = 5;

/// What of a value is looked for however it is written; the rest comes and goes with the way of writing.
pub(super) fn is_essential(letter: char) -> bool {
    !is_quote(letter) && !is_blank(letter)
}

pub(super) fn is_quote(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '\\')
}

pub(super) fn is_blank(letter: char) -> bool {
    letter == ' ' || letter.is_control()
}

/// Whether something has been left out before a place.
pub(super) fn is_cut_on(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    if !before.ends_with(b".") && !before.ends_with(b"\xa6") {
        return false;
    }
    before.ends_with("…".as_bytes()) || (before.ends_with(b"...") && text.get(at) != Some(&b'.'))
}

/// Whether something has been left out before a place, or before the quotes and blanks there.
pub(super) fn follows_cut(text: &[u8], at: usize, is_cut: bool) -> bool {
    let quotes = text[..at].iter().rev().take(LONGEST);
    let quotes = quotes.take_while(|it| is_between(**it)).count();
    (at - quotes..=at).any(|at| (at == 0 && is_cut) || is_cut_on(text, at))
}

/// Whether a byte may stand between a cut and what goes on there.
pub(super) fn is_between(byte: u8) -> bool {
    matches!(byte, b'$' | b' ' | b'\n' | b'\r' | b'\'' | b'"' | b'\\')
}

/// Whether something has been left out at a place.
pub(super) fn is_cut_off(text: &[u8], at: usize) -> bool {
    let (before, after) = text.split_at(at);
    after.starts_with("…".as_bytes()) || (after.starts_with(b"...") && !before.ends_with(b"."))
}

/// All readings at a place, with their lengths.
pub(super) fn readings(text: &[u8], at: usize, mut take: impl FnMut(usize, Reading)) {
    let rest = &text[at..];
    let Some(first) = rest.first() else {
        return;
    };
    let next = rest.get(1);
    match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => take(1, Reading::Plain(char::from(*first))),
        b'\\' => {
            take(1, Reading::Plain('\\'));
            take(1, Reading::Nothing(Noise::Quote));
            if next == Some(&b'\n') {
                take(2, Reading::Nothing(Noise::Quote));
            }
            if let Some((length, letter)) = escaped(rest) {
                encoded(length, letter, &mut take);
            }
            let torn = rest.iter().skip(1).take(LONGEST / 2);
            let torn = torn.take_while(|it| it.is_ascii_alphanumeric() || b"\\-^".contains(it));
            let torn = 1 + torn.count();
            if torn == rest.len() || is_cut_off(text, at + torn) {
                take(torn, Reading::Open);
            }
        }
        b'\'' | b'"' => {
            take(1, Reading::Plain(char::from(*first)));
            take(1, Reading::Nothing(Noise::Quote));
        }
        b'$' => {
            take(1, Reading::Plain('$'));
            match next {
                Some(b'\'' | b'"') => take(1, Reading::Nothing(Noise::Quote)),
                Some(_) => {}
                None => take(1, Reading::Open),
            }
        }
        b'^' => {
            take(1, Reading::Plain('^'));
            match next {
                Some(of @ (b'@'..=b'_' | b'?')) => encoded(2, control(*of), take),
                Some(_) => {}
                None => take(1, Reading::Open),
            }
        }
        b'\n' => {
            take(1, Reading::Plain('\n'));
            take(1, Reading::Nothing(Noise::Blank));
            let before = at.checked_sub(1).map(|before| text[before]);
            if next != Some(&b'\n') && before != Some(b'\n') {
                take(1, Reading::Nothing(Noise::Row));
            }
            let word = rest[1..].iter().take(LONGEST - 3);
            let word = word.take_while(|it| it.is_ascii_lowercase() || **it == b' ');
            let asked = 1 + word.count();
            if rest[asked..].starts_with(b"> ") {
                take(asked + 2, Reading::Nothing(Noise::Prompt));
            }
        }
        0x1b => {
            take(1, Reading::Plain('\u{1b}'));
            take(1, Reading::Nothing(Noise::Blank));
            match colour(rest) {
                Some(length) if length == rest.len() => take(length, Reading::Open),
                Some(length) => take(length + 1, Reading::Nothing(Noise::Quote)),
                None => {}
            }
        }
        0..=b' ' | 0x7f => {
            take(1, Reading::Plain(char::from(*first)));
            take(1, Reading::Nothing(Noise::Blank));
            if rest.starts_with(b"\r\n") {
                take(2, Reading::Nothing(Noise::Row));
            }
            // So pagers go on behind the last column of a row.
            if rest.starts_with(b" \x08") {
                take(2, Reading::Nothing(Noise::Quote));
            }
        }
        0x80.. => {
            let Some(chunk) = rest[..rest.len().min(4)].utf8_chunks().next() else {
                return;
            };
            match chunk.valid().chars().next() {
                Some(letter) => {
                    take(letter.len_utf8(), Reading::Plain(letter));
                    if is_blank(letter) {
                        take(letter.len_utf8(), Reading::Nothing(Noise::Blank));
                    }
                }
                None if chunk.invalid().len() == rest.len() => take(rest.len(), Reading::Open),
                None => {}
            }
        }
        _ => take(1, Reading::Plain(char::from(*first))),
    }
}

fn encoded(length: usize, letter: char, mut take: impl FnMut(usize, Reading)) {
    take(length, Reading::Encoded(letter));
    if is_blank(letter) {
        take(length, Reading::Nothing(Noise::Blank));
    } else if is_quote(letter) {
        take(length, Reading::Nothing(Noise::Encoded));
    }
}

fn control(of: u8) -> char {
    char::from(of.to_ascii_uppercase() & 0x7f ^ 0x40)
}

/// The length of a control sequence without its last byte; all of the text, if it ends before that.
fn colour(rest: &[u8]) -> Option<usize> {
    if rest.len() > 1 && rest[1] != b'[' {
        return None;
    }
    let parameters = rest
        .iter()
        .skip(2)
        .take_while(|it| (0x20..0x40).contains(*it));
    let length = (2 + parameters.count()).min(rest.len());
    let is_ended = rest.get(length).is_none_or(|it| (0x40..0x7f).contains(it));
    (is_ended && length < LONGEST).then_some(length)
}

/// A character that a backslash begins.
fn escaped(rest: &[u8]) -> Option<(usize, char)> {
    match rest.get(1)? {
        b'u' | b'U' => scalar(rest),
        b'0'..=b'7' | b'x' | b'X' | b'M' => bytes(rest),
        _ => named(rest),
    }
}

/// A control character that has a name.
fn named(rest: &[u8]) -> Option<(usize, char)> {
    let letter = match rest.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'v' => '\u{b}',
        b'e' | b'E' => '\u{1b}',
        b'c' => return Some((3, control(*rest.get(2)?))),
        b'C' if rest.get(2) == Some(&b'-') => return Some((4, control(*rest.get(3)?))),
        _ => return None,
    };
    Some((2, letter))
}

/// `\u00e9`, `\U0001f600`, and the two halves that JSON makes of the latter.
fn scalar(rest: &[u8]) -> Option<(usize, char)> {
    let number = |from: usize, most: usize| {
        let digits = rest.iter().skip(from).take(most);
        let digits = digits.take_while(|it| it.is_ascii_hexdigit());
        digits.fold((0_u32, from), |(number, at), digit| {
            let digit = char::from(*digit).to_digit(16).unwrap_or(0);
            (number << 4 | digit, at + 1)
        })
    };
    let most = if rest[1] == b'u' { 4 } else { 8 };
    let (first, mut at) = number(2, most);
    let mut letter = char::from_u32(first);
    if (0xd800..0xdc00).contains(&first) && rest[at..].starts_with(b"\\u") {
        let (second, end) = number(at + 2, 4);
        if (0xdc00..0xe000).contains(&second) {
            letter = char::from_u32(0x1_0000 + ((first & 0x3ff) << 10 | second & 0x3ff));
            at = end;
        }
    }
    letter.filter(|_| at > 2).map(|letter| (at, letter))
}

/// The bytes of one character: `\303\251`, `\xc3\xa9`, `\M-C\M-)`.
fn bytes(rest: &[u8]) -> Option<(usize, char)> {
    let (mut at, mut bytes, mut count) = (0, [0; 4], 0);
    while count < bytes.len() {
        let (length, byte) = byte(&rest[at..])?;
        bytes[count] = byte;
        (at, count) = (at + length, count + 1);
        match str::from_utf8(&bytes[..count]) {
            Ok(letter) => return letter.chars().next().map(|letter| (at, letter)),
            Err(error) if error.error_len().is_some() => return None,
            Err(_) => {}
        }
    }
    None
}

fn byte(rest: &[u8]) -> Option<(usize, u8)> {
    let digits = |from: usize, most: usize, radix: u32| {
        let digits = rest.iter().skip(from).take(most);
        let digits = digits.map_while(|it| char::from(*it).to_digit(radix));
        let (count, number) = digits.fold((0, 0), |(count, number), digit| {
            (count + 1, number * radix + digit)
        });
        (count > 0).then_some((from + count, (number & 0xff) as u8))
    };
    match rest {
        [b'\\', b'0'..=b'7', ..] => digits(1, 3, 8),
        [b'\\', b'x' | b'X', ..] => digits(2, 2, 16),
        [b'\\', b'M', b'-', rest @ ..] if rest.first() == Some(&b'\\') => {
            let (length, letter) = named(rest)?;
            Some((3 + length, letter as u8 | 0x80))
        }
        [b'\\', b'M', b'-', b'^', of, ..] => Some((5, of.to_ascii_uppercase() ^ 0x40 | 0x80)),
        [b'\\', b'M', b'-', of, ..] => Some((4, of | 0x80)),
        _ => None,
    }
}
