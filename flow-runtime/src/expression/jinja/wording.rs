//! Jinja's filters for texts and markup that minijinja leaves out, with Jinja's own rules for what
//! each yields.

use std::borrow::Cow;
use std::fmt::Write;

use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, Value as Jinja};

use super::super::meter;
use super::filters::{as_str, as_text, fail, members, noun, produce, wrong};

/// The widest that a text may be laid out.
const WIDEST: i64 = 10_000;

pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("center", center);
    environment.add_filter("filesizeformat", filesizeformat);
    environment.add_filter("forceescape", |value: &Jinja| {
        let text = as_text(value)?;
        escaped(as_str(&text, "forceescape")?).map(Jinja::from)
    });
    environment.add_filter("random", random);
    environment.add_filter("striptags", striptags);
    environment.add_filter("truncate", truncate);
    environment.add_filter("urlencode", urlencode);
    environment.add_filter("urlize", urlize);
    environment.add_filter("wordcount", wordcount);
    environment.add_filter("wordwrap", wordwrap);
    environment.add_filter("xmlattr", xmlattr);
    environment.add_test("callable", |value: &Jinja| {
        // minijinja calls what is one of its own; nothing else that can be called exists here.
        value.as_object().is_some_and(|object| {
            let name = object.type_name();
            ["BoxedFunction", "Macro", "Loop", "Joiner"]
                .iter()
                .any(|kind| name.ends_with(kind))
        })
    });
    environment.add_function("cycler", |items: Rest<Jinja>| {
        minijinja_contrib::globals::cycler(items.0)
    });
    environment.add_function("joiner", |separator: Option<Jinja>| {
        minijinja_contrib::globals::joiner(Some(separator.unwrap_or_else(|| Jinja::from(", "))))
    });
}

/// The arguments of a filter after its value, by place or by name.
struct Options {
    placed: Vec<Jinja>,
    named: Kwargs,
    names: &'static [&'static str],
}

impl Options {
    fn new(args: Rest<ValueOrKwargs>, names: &'static [&'static str]) -> Result<Self, Error> {
        let mut placed = args.into_values();
        let named = match placed.pop_if(|last| last.is_kwargs()) {
            Some(last) => Kwargs::try_from(last)?,
            None => Kwargs::from_iter::<[(&str, Jinja); 0]>([]),
        };
        if placed.len() > names.len() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        Ok(Options {
            placed,
            named,
            names,
        })
    }

    /// An argument that was given and is not null.
    fn given(&self, name: &str) -> Result<Option<Jinja>, Error> {
        let place = self.names.iter().position(|known| *known == name);
        let placed = place.and_then(|place| self.placed.get(place).cloned());
        let given = match placed {
            Some(value) => Some(value),
            None => self.named.get::<Option<Jinja>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none()))
    }

    /// A number, or what stands for none.
    fn number(&self, name: &str, other: i64) -> Result<i64, Error> {
        self.given(name)?.map_or(Ok(other), i64::try_from)
    }

    /// Whether something is wanted.
    fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        Ok(self.given(name)?.map(|value| value.is_true()))
    }

    /// A text.
    fn text(&self, name: &str) -> Result<Option<Jinja>, Error> {
        self.given(name)?.as_ref().map(as_text).transpose()
    }

    /// Names that the filter does not know are an error.
    fn finish(self) -> Result<(), Error> {
        self.named.assert_all_used()
    }
}

/// A width that is at least 1 and not absurd.
fn width(width: i64, filter: &str) -> Result<usize, Error> {
    match usize::try_from(width) {
        Ok(wide) if (1..=WIDEST).contains(&width) => Ok(wide),
        _ => Err(wrong(format!(
            "`{filter}` takes a width from 1 to {WIDEST}, not {width}"
        ))),
    }
}

fn center(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let options = Options::new(args, &["width"])?;
    let wide = width(options.number("width", 80)?, "center")?;
    options.finish()?;
    let text = as_text(value)?;
    let text = as_str(&text, "center")?;
    produce((text.len() + wide) as u64)?;
    let missing = wide.saturating_sub(text.chars().count());
    let left = missing / 2 + (missing & wide & 1);
    let (left, right) = (" ".repeat(left), " ".repeat(missing - left));
    Ok(Jinja::from(format!("{left}{text}{right}")))
}

fn filesizeformat(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let options = Options::new(args, &["binary"])?;
    let binary = options.flag("binary")?.unwrap_or(false);
    options.finish()?;
    let bytes = match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    let Some(bytes) = bytes.filter(|bytes: &f64| bytes.is_finite()) else {
        return Err(match value.is_undefined() {
            true => undefined(),
            false => wrong(format!(
                "`filesizeformat` needs a number, not {}",
                noun(value)
            )),
        });
    };
    let (base, units) = match binary {
        true => (
            1024.0,
            ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"],
        ),
        false => (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]),
    };
    #[expect(clippy::float_cmp, reason = "exactly one byte is singular")]
    if bytes == 1.0 {
        return Ok(Jinja::from("1 Byte"));
    }
    if bytes < base {
        return Ok(Jinja::from(format!("{} Bytes", bytes.trunc())));
    }
    let mut scaled = bytes;
    let mut shown = units[0];
    for unit in units {
        scaled /= base;
        shown = unit;
        if scaled < base {
            break;
        }
    }
    Ok(Jinja::from(format!("{scaled:.1} {shown}")))
}

/// An item, drawn from the moment of the event: a replay draws it again.
fn random(value: &Jinja) -> Result<Jinja, Error> {
    let items = match value.as_str() {
        Some(text) => {
            produce(text.len() as u64)?;
            text.chars().map(Jinja::from).collect()
        }
        None => members(value)?,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a number below the count of items"
    )]
    let index = (meter::random() * items.len() as f64) as usize;
    Ok(items.get(index).cloned().unwrap_or_default())
}

fn undefined() -> Error {
    fail(super::super::error::EvalError::nameless())
}

fn striptags(value: &Jinja) -> Result<Jinja, Error> {
    let text = as_text(value)?;
    let mut rest = as_str(&text, "striptags")?;
    produce(rest.len() as u64)?;
    let mut plain = String::new();
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        let end = match tag.starts_with("<!--") {
            true => tag.find("-->").map(|end| end + 3),
            false => tag.find('>').map(|end| end + 1),
        };
        plain.push_str(before);
        match end {
            Some(end) => rest = &tag[end..],
            // What does not end is no tag.
            None => {
                plain.push_str(tag);
                rest = "";
            }
        }
    }
    plain.push_str(rest);
    let words: Vec<&str> = plain.split_whitespace().collect();
    Ok(Jinja::from(unescaped(&words.join(" "))))
}

/// Character references as what they stand for: those of XML, `&nbsp;`, and numbers.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let reference = rest.find(';').map(|end| (&rest[1..end], end + 1));
        let found = reference.and_then(|(name, length)| Some((character(name)?, length)));
        let (letter, length) = found.unwrap_or(('&', 1));
        out.push(letter);
        rest = &rest[length..];
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
    })
}

/// A text that stands for itself in HTML.
fn escaped(text: &str) -> Result<String, Error> {
    produce(text.len() as u64 * 2)?;
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    Ok(out)
}

fn truncate(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let options = Options::new(args, &["length", "killwords", "end", "leeway"])?;
    let length = options.number("length", 255)?;
    let killwords = options.flag("killwords")?.unwrap_or(false);
    let end = options.text("end")?;
    let leeway = options.number("leeway", 5)?;
    options.finish()?;
    let end = end.unwrap_or_else(|| Jinja::from("..."));
    let end = as_str(&end, "truncate")?;
    let text = as_text(value)?;
    let text = as_str(&text, "truncate")?;
    let kept = usize::try_from(length).ok();
    let kept = kept.and_then(|length| length.checked_sub(end.chars().count()));
    let (Some(kept), Ok(leeway)) = (kept, u64::try_from(leeway)) else {
        return Err(wrong(format!(
            "`truncate` needs a length that leaves room for its end `{end}`, and a leeway from 0 on"
        )));
    };
    produce((text.len() + end.len()) as u64)?;
    let most = (length as u64).saturating_add(leeway);
    if text.chars().count() as u64 <= most {
        return Ok(Jinja::from(text));
    }
    let cut = text
        .char_indices()
        .nth(kept)
        .map_or(text.len(), |(at, _)| at);
    let beginning = &text[..cut];
    let beginning = match killwords {
        true => beginning,
        false => beginning
            .rsplit_once(' ')
            .map_or(beginning, |(words, _)| words),
    };
    Ok(Jinja::from(format!("{beginning}{end}")))
}

/// Percent-encodes what is not unreserved; of a query, `/` too, and spaces as `+`.
fn encode(out: &mut String, text: &str, in_query: bool) -> Result<(), Error> {
    produce(text.len() as u64 * 3)?;
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(char::from(byte));
            }
            b'/' if !in_query => out.push('/'),
            b' ' if in_query => out.push('+'),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    Ok(())
}

fn urlencode(value: &Jinja) -> Result<Jinja, Error> {
    let mut out = String::new();
    let pairs: Vec<(Jinja, Jinja)> = match value.kind() {
        ValueKind::Map => {
            let object = value.as_object();
            let pairs = object.and_then(|object| object.try_iter_pairs());
            pairs.into_iter().flatten().collect()
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut pairs = Vec::new();
            for item in members(value)? {
                match members(&item)?.as_slice() {
                    [key, value] => pairs.push((key.clone(), value.clone())),
                    other => {
                        return Err(wrong(format!(
                            "`urlencode` of a list needs pairs, not a list of {}",
                            other.len()
                        )));
                    }
                }
            }
            pairs
        }
        _ => {
            let text = as_text(value)?;
            encode(&mut out, as_str(&text, "urlencode")?, false)?;
            return Ok(Jinja::from(out));
        }
    };
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push('&');
        }
        encode(&mut out, as_str(&as_text(key)?, "urlencode")?, true)?;
        out.push('=');
        encode(&mut out, as_str(&as_text(value)?, "urlencode")?, true)?;
    }
    Ok(Jinja::from(out))
}

fn urlize(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let options = Options::new(args, &["trim_url_limit", "nofollow", "target", "rel"])?;
    let limit = options.number("trim_url_limit", i64::MAX)?;
    let nofollow = options.flag("nofollow")?.unwrap_or(false);
    let word = |name: &str| match options.text(name)? {
        Some(given) => escaped(as_str(&given, "urlize")?).map(Some),
        None => Ok::<_, Error>(None),
    };
    let (target, rel) = (word("target")?, word("rel")?);
    options.finish()?;
    let mut words: Vec<&str> = rel
        .as_deref()
        .unwrap_or("noopener")
        .split_whitespace()
        .collect();
    words.extend(nofollow.then_some("nofollow"));
    words.extend(rel.as_ref().map(|_| "noopener"));
    words.sort_unstable();
    words.dedup();
    let mut attributes = format!(" rel=\"{}\"", words.join(" "));
    if let Some(target) = target {
        let _ = write!(attributes, " target=\"{target}\"");
    }
    let text = as_text(value)?;
    let text = as_str(&text, "urlize")?;
    let mut out = String::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        meter::work(1).map_err(fail)?;
        let word = piece.trim_end();
        let inner = word.trim_start_matches(['(', '<']);
        let before = &word[..word.len() - inner.len()];
        let link = unpunctuated(inner);
        out.push_str(&escaped(before)?);
        produce((attributes.len() + 16) as u64)?;
        let _ = match Address::of(link) {
            Some(Address::Page { scheme }) => {
                let shown: Cow<'_, str> = match usize::try_from(limit) {
                    Ok(most) if link.chars().count() > most => {
                        Cow::Owned(link.chars().take(most).chain("...".chars()).collect())
                    }
                    _ => Cow::Borrowed(link),
                };
                let (link, shown) = (escaped(link)?, escaped(&shown)?);
                write!(out, "<a href=\"{scheme}{link}\"{attributes}>{shown}</a>")
            }
            Some(Address::Mail(mail)) => {
                let mail = escaped(mail)?;
                write!(out, "<a href=\"mailto:{mail}\">{mail}</a>")
            }
            None => out.write_str(&escaped(link)?),
        };
        out.push_str(&escaped(&inner[link.len()..])?);
        out.push_str(&piece[word.len()..]);
    }
    Ok(Jinja::from(out))
}

/// A word without the punctuation after it; a bracket that it opens is its own.
fn unpunctuated(word: &str) -> &str {
    let mut link = word.trim_end_matches([')', '>', '.', ',']);
    for (opens, closes) in [('(', ')'), ('<', '>')] {
        while link.matches(opens).count() > link.matches(closes).count() {
            let Some(at) = word[link.len()..].find(closes) else {
                break;
            };
            link = &word[..link.len() + at + closes.len_utf8()];
        }
    }
    link
}

/// What a word leads to.
enum Address<'w> {
    Page {
        /// What the word leaves out.
        scheme: &'static str,
    },
    Mail(&'w str),
}

impl<'w> Address<'w> {
    /// The address that a word is, if it is one.
    fn of(word: &'w str) -> Option<Self> {
        const PAGE: &str = r"(?xi) ^ (?:
            (?: https?:// | www\. ) (?: [\w%-]+\. )* (?: [a-z]{2,63} | xn--[\w%]{2,59} )
            | (?: [\w%-]{2,63}\. )+ (?: com | edu | gov | info | int | mil | net | org )
            | https?:// (?: \d{1,3} (?: \.\d{1,3} ){3} | \[ [\da-f:]{2,39} \] )
        ) (?: :\d{1,5} )? (?: [/?\#]\S* )? $";
        const MAIL: &str = r"^\S+@\w[\w.-]*\.\w+$";
        let is = |pattern: &str, word: &str| {
            super::filters::regex(pattern).is_ok_and(|pattern| pattern.is_match(word))
        };
        if is(PAGE, word) {
            let begins = |scheme: &str| {
                let head = word.get(..scheme.len());
                head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
            };
            let is_whole = begins("http://") || begins("https://");
            let scheme = if is_whole { "" } else { "https://" };
            return Some(Address::Page { scheme });
        }
        let mail = word.strip_prefix("mailto:").unwrap_or(word);
        is(MAIL, mail).then_some(Address::Mail(mail))
    }
}

fn wordcount(value: &Jinja) -> Result<Jinja, Error> {
    let text = as_text(value)?;
    let text = as_str(&text, "wordcount")?;
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_word(letter));
    Ok(Jinja::from(words.filter(|word| !word.is_empty()).count()))
}

fn wordwrap(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let names = &[
        "width",
        "break_long_words",
        "wrapstring",
        "break_on_hyphens",
    ];
    let options = Options::new(args, names)?;
    let wrapping = Wrapping {
        width: width(options.number("width", 79)?, "wordwrap")?,
        break_long_words: options.flag("break_long_words")?.unwrap_or(true),
        break_on_hyphens: options.flag("break_on_hyphens")?.unwrap_or(true),
    };
    let end = options.text("wrapstring")?;
    options.finish()?;
    let end = end.unwrap_or_else(|| Jinja::from("\n"));
    let end = as_str(&end, "wordwrap")?;
    let text = as_text(value)?;
    let text = as_str(&text, "wordwrap")?;
    meter::work(text.len() as u64 / 4).map_err(fail)?;
    let mut wrapped = Vec::new();
    for line in text.lines() {
        let lines = wrapping.wrap(line);
        let length: usize = lines.iter().map(|line| line.len() + end.len()).sum();
        produce(length as u64)?;
        wrapped.push(lines.join(end));
    }
    Ok(Jinja::from(wrapped.join(end)))
}

/// How a line is broken into several.
struct Wrapping {
    width: usize,
    break_long_words: bool,
    break_on_hyphens: bool,
}

impl Wrapping {
    fn wrap(&self, line: &str) -> Vec<String> {
        let mut chunks = self
            .chunks(line)
            .into_iter()
            .collect::<std::collections::VecDeque<_>>();
        let mut lines: Vec<String> = Vec::new();
        let is_space = |chunk: &&str| chunk.trim().is_empty();
        while let Some(first) = chunks.front() {
            // Space at a break belongs to no line.
            if !lines.is_empty() && is_space(first) {
                chunks.pop_front();
                continue;
            }
            let mut current: Vec<&str> = Vec::new();
            let mut length = 0;
            while let Some(chunk) = chunks.front() {
                let wide = chunk.chars().count();
                if length + wide > self.width {
                    break;
                }
                length += wide;
                current.push(chunk);
                chunks.pop_front();
            }
            if let Some(chunk) = chunks.front().copied()
                && chunk.chars().count() > self.width
            {
                chunks.pop_front();
                let room = self.width - length;
                match self.break_long_words {
                    true if room > 0 => {
                        let (head, tail) = self.broken(chunk, room);
                        current.push(head);
                        chunks.push_front(tail);
                    }
                    false if current.is_empty() => current.push(chunk),
                    _ => chunks.push_front(chunk),
                }
            }
            if current.last().is_some_and(is_space) {
                current.pop();
            }
            if !current.is_empty() {
                lines.push(current.concat());
            }
        }
        lines
    }

    /// A word that is too long, broken where a line has room for so many letters.
    fn broken<'t>(&self, word: &'t str, room: usize) -> (&'t str, &'t str) {
        let at = |letters: usize| {
            word.char_indices()
                .nth(letters)
                .map_or(word.len(), |it| it.0)
        };
        let head = &word[..at(room)];
        let hyphen = head.rfind('-').filter(|_| self.break_on_hyphens);
        match hyphen {
            Some(hyphen) if head[..hyphen].contains(|it| it != '-') => word.split_at(hyphen + 1),
            _ => word.split_at(head.len()),
        }
    }

    /// Runs of space, and words, compound ones in their parts.
    fn chunks<'t>(&self, line: &'t str) -> Vec<&'t str> {
        let mut chunks = Vec::new();
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let is_space = first.is_whitespace();
            let end = rest.find(|it: char| it.is_whitespace() != is_space);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            let mut run = run;
            while let Some(end) = joint(run).filter(|_| self.break_on_hyphens && !is_space) {
                let (part, after) = run.split_at(end);
                chunks.push(part);
                run = after;
            }
            chunks.push(run);
        }
        chunks
    }
}

/// Where the first part of a compound word ends: after a hyphen between words of letters, and
/// before and after a dash of several hyphens.
fn joint(word: &str) -> Option<usize> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let is_letter = |it: char| is_word(it) && !it.is_numeric();
    let mut start = 0;
    while let Some(found) = word[start..].find('-') {
        let at = start + found;
        let end = at + word[at..].bytes().take_while(|byte| *byte == b'-').count();
        start = end;
        let mut before = word[..at].chars().rev();
        let (last, one_more) = (before.next(), before.next());
        let mut after = word[end..].chars();
        let (next, following) = (after.next(), after.next());
        let is_next = next.is_some_and(is_word);
        if end - at == 1 {
            let is_before = last.is_some_and(is_letter) && one_more.is_some_and(is_word);
            if is_before && is_next && following.is_some_and(is_letter) {
                return Some(end);
            }
        } else if at == 0 && is_next {
            return Some(end);
        } else if is_next && last.is_some_and(|it| is_word(it) || "!\"'&.,?".contains(it)) {
            return Some(at);
        }
    }
    None
}

fn xmlattr(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let options = Options::new(args, &["autospace"])?;
    let autospace = options.flag("autospace")?.unwrap_or(true);
    options.finish()?;
    if value.kind() != ValueKind::Map {
        return Err(match value.is_undefined() {
            true => undefined(),
            false => wrong(format!("`xmlattr` needs an object, not {}", noun(value))),
        });
    }
    let mut out = String::new();
    let object = value.as_object();
    for (key, value) in object
        .and_then(|it| it.try_iter_pairs())
        .into_iter()
        .flatten()
    {
        if value.is_none() || value.is_undefined() {
            continue;
        }
        let (key, value) = (as_text(&key)?, as_text(&value)?);
        let (key, value) = (as_str(&key, "xmlattr")?, as_str(&value, "xmlattr")?);
        if key.contains(|it: char| it.is_whitespace() || matches!(it, '/' | '>' | '=')) {
            return Err(wrong(format!("`{key}` cannot be the name of an attribute")));
        }
        if !out.is_empty() || autospace {
            out.push(' ');
        }
        let _ = write!(out, "{}=\"{}\"", escaped(key)?, escaped(value)?);
    }
    Ok(Jinja::from(out))
}
