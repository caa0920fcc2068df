//! Python's methods of texts, lists and maps that minijinja leaves out, with Python's own rules.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value as Jinja};

use super::super::meter;
use super::filters::{fail, members, produce, wrong};

/// The widest that a text may be made.
const WIDEST: i64 = 10_000;

/// Calls a method; `None` when the value has none of that name here.
pub(super) fn call(value: &Jinja, name: &str, args: &[Jinja]) -> Option<Result<Jinja, Error>> {
    if let Some(text) = value.as_str() {
        return of_text(text, name, args);
    }
    match (value.kind(), name) {
        (ValueKind::Seq, "index") => Some(index_of_item(value, args)),
        (ValueKind::Seq | ValueKind::Map, "copy") => Some(from_args(args).map(|()| value.clone())),
        _ => None,
    }
}

fn of_text(text: &str, name: &str, args: &[Jinja]) -> Option<Result<Jinja, Error>> {
    Some(match name {
        "removeprefix" => from_args(args)
            .map(|(prefix,): (&str,)| Jinja::from(text.strip_prefix(prefix).unwrap_or(text))),
        "removesuffix" => from_args(args)
            .map(|(suffix,): (&str,)| Jinja::from(text.strip_suffix(suffix).unwrap_or(text))),
        "rsplit" => rsplit(text, args),
        "partition" => parts(text, args, false),
        "rpartition" => parts(text, args, true),
        "zfill" => zfill(text, args),
        "ljust" | "rjust" | "center" => padded(text, name, args),
        "index" | "rindex" => index(text, name, args),
        "casefold" => from_args(args).map(|()| {
            // Folding differs from lower case in letters that have no single capital.
            Jinja::from(text.to_lowercase().replace('ß', "ss").replace('ς', "σ"))
        }),
        "swapcase" => from_args(args).map(|()| {
            let mut swapped = String::with_capacity(text.len());
            for letter in text.chars() {
                if letter.is_uppercase() {
                    swapped.extend(letter.to_lowercase());
                } else {
                    swapped.extend(letter.to_uppercase());
                }
            }
            Jinja::from(swapped)
        }),
        "expandtabs" => expandtabs(text, args),
        "isdecimal" => from_args(args).map(|()| {
            // Numbers that are written with digits, not fractions or powers.
            let decimal = |letter: char| letter.is_ascii_digit() || other_digit(letter);
            Jinja::from(!text.is_empty() && text.chars().all(decimal))
        }),
        "istitle" => from_args(args).map(|()| Jinja::from(is_title(text))),
        "isidentifier" => from_args(args).map(|()| {
            let mut letters = text.chars();
            let begins = |letter: char| letter == '_' || letter.is_alphabetic();
            Jinja::from(
                letters.next().is_some_and(begins)
                    && letters.all(|letter| letter == '_' || letter.is_alphanumeric()),
            )
        }),
        _ => return None,
    })
}

/// Digits from 0 to 9 of other scripts. Each script has ten in a row, the first of them where
/// Unicode says.
fn other_digit(letter: char) -> bool {
    const ZEROS: [u32; 20] = [
        0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6,
        0xE50, 0xED0, 0xF20, 0x1040, 0x17E0, 0x1810, 0xFF10,
    ];
    let code = u32::from(letter);
    ZEROS.iter().any(|zero| (*zero..zero + 10).contains(&code))
}

/// A separator, which may not be empty.
fn separator(separator: &str) -> Result<&str, Error> {
    match separator.is_empty() {
        true => Err(wrong("the separator is empty; give the text to split at")),
        false => Ok(separator),
    }
}

fn list(items: Vec<&str>) -> Result<Jinja, Error> {
    produce(items.len() as u64 * 24)?;
    Ok(items.into_iter().map(Jinja::from).collect())
}

fn rsplit(text: &str, args: &[Jinja]) -> Result<Jinja, Error> {
    let (at, most): (Option<&str>, Option<i64>) = from_args(args)?;
    let most = most.and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(usize::MAX).saturating_add(1);
    let mut items: Vec<&str> = match at {
        Some(at) => text.rsplitn(most, separator(at)?).collect(),
        None => {
            let mut items = Vec::new();
            let mut rest = text.trim_end();
            while !rest.is_empty() {
                // The last one keeps the blanks inside it.
                let cut = match items.len() + 1 < most {
                    true => rest.rfind(char::is_whitespace),
                    false => None,
                };
                let Some(cut) = cut else {
                    items.push(rest);
                    break;
                };
                items.push(rest[cut..].trim_start());
                rest = rest[..cut].trim_end();
            }
            items
        }
    };
    items.reverse();
    list(items)
}

fn parts(text: &str, args: &[Jinja], last: bool) -> Result<Jinja, Error> {
    let (at,): (&str,) = from_args(args)?;
    let at = separator(at)?;
    let found = match last {
        true => text.rsplit_once(at),
        false => text.split_once(at),
    };
    list(match found {
        Some((before, after)) => vec![before, at, after],
        None if last => vec!["", "", text],
        None => vec![text, "", ""],
    })
}

/// A width, which is counted as produced.
fn width(width: i64, name: &str, text: &str) -> Result<usize, Error> {
    if width > WIDEST {
        return Err(wrong(format!(
            "`{name}` takes a width of at most {WIDEST}, not {width}"
        )));
    }
    let wide = usize::try_from(width).unwrap_or(0);
    produce((text.len() + wide * 4) as u64)?;
    Ok(wide)
}

fn zfill(text: &str, args: &[Jinja]) -> Result<Jinja, Error> {
    let (wide,): (i64,) = from_args(args)?;
    let wide = width(wide, "zfill", text)?;
    let zeros = "0".repeat(wide.saturating_sub(text.chars().count()));
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => text.split_at(text.len() - digits.len()),
        None => ("", text),
    };
    Ok(Jinja::from(format!("{sign}{zeros}{digits}")))
}

fn padded(text: &str, name: &str, args: &[Jinja]) -> Result<Jinja, Error> {
    let (wide, fill): (i64, Option<&str>) = from_args(args)?;
    let wide = width(wide, name, text)?;
    let fill = fill.unwrap_or(" ");
    if fill.chars().count() != 1 {
        return Err(wrong(format!(
            "`{name}` fills with exactly one character, not with '{fill}'"
        )));
    }
    let missing = wide.saturating_sub(text.chars().count());
    let left = match name {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & wide & 1),
    };
    let (left, right) = (fill.repeat(left), fill.repeat(missing - left));
    Ok(Jinja::from(format!("{left}{text}{right}")))
}

fn index(text: &str, name: &str, args: &[Jinja]) -> Result<Jinja, Error> {
    let (what, from, to): (&str, Option<i64>, Option<i64>) = from_args(args)?;
    let length = text.chars().count();
    let place = |given: Option<i64>, other: usize| match given {
        None => other,
        Some(given) if given < 0 => {
            length.saturating_sub(usize::try_from(given.unsigned_abs()).unwrap_or(usize::MAX))
        }
        Some(given) => usize::try_from(given).unwrap_or(usize::MAX),
    };
    let (from, to) = (place(from, 0), place(to, length).min(length));
    let byte = |place: usize| {
        text.char_indices()
            .nth(place)
            .map_or(text.len(), |(at, _)| at)
    };
    let found = (from <= to).then(|| {
        let part = &text[byte(from)..byte(to)];
        let at = match name {
            "index" => part.find(what),
            _ => part.rfind(what),
        };
        at.map(|at| from + part[..at].chars().count())
    });
    match found.flatten() {
        Some(at) => Ok(Jinja::from(at)),
        None => {
            let other = if name == "index" { "find" } else { "rfind" };
            Err(wrong(format!(
                "`{name}` finds no '{what}' in the text; `{other}` gives -1 then"
            )))
        }
    }
}

fn expandtabs(text: &str, args: &[Jinja]) -> Result<Jinja, Error> {
    let (size,): (Option<i64>,) = from_args(args)?;
    let size = width(size.unwrap_or(8), "expandtabs", text)?;
    let tabs = text.bytes().filter(|byte| *byte == b'\t').count();
    produce((tabs as u64).saturating_mul(size as u64))?;
    let (mut out, mut column) = (String::with_capacity(text.len()), 0);
    for letter in text.chars() {
        match letter {
            '\t' if size == 0 => {}
            '\t' => {
                let blanks = size - column % size;
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            '\n' | '\r' => {
                out.push(letter);
                column = 0;
            }
            other => {
                out.push(other);
                column += 1;
            }
        }
    }
    Ok(Jinja::from(out))
}

/// Whether every word begins with a capital and goes on in small letters.
fn is_title(text: &str) -> bool {
    let (mut cased, mut any) = (false, false);
    for letter in text.chars() {
        let (upper, lower) = (letter.is_uppercase(), letter.is_lowercase());
        if (upper && cased) || (lower && !cased) {
            return false;
        }
        cased = upper || lower;
        any |= cased;
    }
    any
}

fn index_of_item(value: &Jinja, args: &[Jinja]) -> Result<Jinja, Error> {
    let (what,): (&Jinja,) = from_args(args)?;
    for (at, item) in members(value)?.iter().enumerate() {
        meter::work(1).map_err(fail)?;
        if item == what {
            return Ok(Jinja::from(at));
        }
    }
    Err(Error::new(
        ErrorKind::InvalidOperation,
        "`index` finds no such item in the list; `in` asks whether it is there",
    ))
}
