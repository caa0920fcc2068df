//! Filters, functions and methods beyond minijinja's, and those of its own whose result needs a
//! bound.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Object, ObjectRepr, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value as Jinja};
use minijinja_contrib::pycompat;
use regex::Regex;
use sha2::{Digest, Sha256};

use super::super::error::EvalError;
use super::super::{meter, shell, text};
use super::convert::{from_jinja, to_jinja, weigh, weigh_held};
use super::moment::Moment;
use super::{methods, order, wording};
use crate::value::Value;

/// The widest field, and the deepest indentation, that formatting may be told to produce.
const WIDEST: u64 = 10_000;
/// The most that JSON may be indented by.
const MOST_INDENT: u64 = 64;
/// Compiled expressions kept per thread.
const MOST_REGEXES: usize = 256;

/// Text that a command takes as it is.
#[derive(Debug)]
pub(super) struct Unquoted(pub(super) Arc<str>);

impl Object for Unquoted {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `{name}` of a name that is no variable, as it was written.
#[derive(Debug)]
pub(super) struct Written(pub(super) Arc<str>);

impl Object for Written {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Registers everything the vocabulary names beside minijinja's own.
pub(super) fn register(environment: &mut Environment<'static>) {
    environment.add_filter("kept", |value: &Jinja| value.clone());
    environment.add_filter("~", concat);
    environment.add_filter("+", add);
    environment.add_filter("*", multiply);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("string", string);
    environment.add_filter("join", join);
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("format", printf);
    environment.add_filter("tojson", tojson);
    environment.add_filter("batch", batch);
    environment.add_filter("slice", slice);
    environment.add_filter("chain", chain);
    environment.add_filter("pprint", |value: &Jinja| tojson_pretty(value, 2));
    environment.add_filter("parse_json", parse_json);
    environment.add_filter("hash", hash);
    environment.add_filter("path_to_key", path_to_key);
    environment.add_filter("sh", sh);
    environment.add_filter("unquoted", unquoted);
    environment.add_filter("regex_search", regex_search);
    environment.add_filter("regex_findall", regex_findall);
    environment.add_filter("regex_replace", regex_replace);
    for name in [
        "endswith",
        "find",
        "lstrip",
        "rfind",
        "rstrip",
        "splitlines",
        "startswith",
        "strip",
    ] {
        environment.add_filter(
            name,
            move |state: &mut State<'_, '_>, value: &Jinja, args: Rest<Jinja>| {
                method(state, &as_text(value)?, name, &args)
            },
        );
    }
    environment.add_function("now", || Jinja::from_object(Moment(meter::now())));
    environment.add_function("uuid", meter::uuid);
    environment.add_function("variable", |name: &str| {
        let found = meter::variable(name).map_err(fail)?;
        Ok::<_, Error>(match found {
            Some(value) => to_jinja(&value),
            None => Jinja::from_object(Written(Arc::from(format!("{{{name}}}")))),
        })
    });
    order::register(environment);
    wording::register(environment);
    environment.set_unknown_method_callback(method);
}

/// An error of ours on its way through minijinja.
pub(super) fn fail(error: EvalError) -> Error {
    Error::new(ErrorKind::InvalidOperation, error.message.clone()).with_source(error)
}

pub(super) fn produce(bytes: u64) -> Result<(), Error> {
    meter::produce(bytes).map_err(fail)
}

pub(super) fn wrong(message: impl Into<String>) -> Error {
    fail(EvalError::wrong_type(message))
}

/// A value as text.
fn text_of(value: &Jinja) -> Result<String, Error> {
    let value = from_jinja(value).map_err(fail)?;
    text::text(&value).map_err(fail)
}

/// A value as a string value; a string stays itself.
pub(super) fn as_text(value: &Jinja) -> Result<Jinja, Error> {
    if value.as_str().is_some() {
        return Ok(value.clone());
    }
    text_of(value).map(Jinja::from)
}

pub(super) fn as_str<'v>(value: &'v Jinja, filter: &str) -> Result<&'v str, Error> {
    match value.as_str() {
        Some(text) => Ok(text),
        None if value.is_undefined() => Err(fail(EvalError::nameless())),
        None => Err(wrong(format!(
            "`{filter}` needs a string, not {}",
            noun(value)
        ))),
    }
}

pub(super) fn noun(value: &Jinja) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "an undefined value",
        ValueKind::None => "null",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "a string",
        ValueKind::Seq | ValueKind::Iterable => "an array",
        ValueKind::Map => "an object",
        _ => "this value",
    }
}

fn sequence(value: &Jinja) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// The members of a list, counted one by one.
pub(super) fn members(value: &Jinja) -> Result<Vec<Jinja>, Error> {
    let mut items = Vec::new();
    for item in value.try_iter()? {
        produce(24)?;
        meter::work(1).map_err(fail)?;
        items.push(item);
    }
    Ok(items)
}

fn concat(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    let mut joined = text_of(left)?;
    let right = match right.as_str() {
        Some(text) => {
            produce(text.len() as u64)?;
            std::borrow::Cow::Borrowed(text)
        }
        None => std::borrow::Cow::Owned(text_of(right)?),
    };
    joined.push_str(&right);
    Ok(Jinja::from(joined))
}

fn add(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    match (left.as_str(), right.as_str()) {
        (Some(a), Some(b)) => {
            produce((a.len() + b.len()) as u64)?;
            Ok(Jinja::from([a, b].concat()))
        }
        _ if sequence(left) && sequence(right) => {
            let mut items = members(left)?;
            items.extend(members(right)?);
            Ok(Jinja::from(items))
        }
        _ => numbers("+", left, right, i128::checked_add, |a, b| a + b),
    }
}

/// Arithmetic by minijinja's rules: whole numbers stay whole, booleans count as 0 and 1.
fn numbers(
    operator: &str,
    left: &Jinja,
    right: &Jinja,
    whole: fn(i128, i128) -> Option<i128>,
    float: fn(f64, f64) -> f64,
) -> Result<Jinja, Error> {
    let number = |value: &Jinja| value.is_number() || value.kind() == ValueKind::Bool;
    if !number(left) || !number(right) {
        return Err(unfit(operator, left, right));
    }
    let exact = |value: &Jinja| {
        let exact = i128::try_from(value.clone()).ok();
        exact.filter(|_| value.is_integer() || value.kind() == ValueKind::Bool)
    };
    if let (Some(a), Some(b)) = (exact(left), exact(right)) {
        let Some(result) = whole(a, b) else {
            return Err(wrong(format!("the result of `{operator}` is too large")));
        };
        return Ok(i64::try_from(result).map_or_else(|_| Jinja::from(result), Jinja::from));
    }
    let number = |value: &Jinja| match value.kind() {
        ValueKind::Bool => Ok(f64::from(u8::from(value.is_true()))),
        _ => f64::try_from(value.clone()),
    };
    Ok(Jinja::from(float(number(left)?, number(right)?)))
}

fn unfit(operator: &str, left: &Jinja, right: &Jinja) -> Error {
    if left.is_undefined() || right.is_undefined() {
        return fail(EvalError::nameless());
    }
    wrong(format!(
        "`{operator}` cannot be used between {} and {}",
        noun(left),
        noun(right)
    ))
}

fn multiply(left: &Jinja, right: &Jinja) -> Result<Jinja, Error> {
    let (value, times) = if left.is_number() {
        (right, left)
    } else {
        (left, right)
    };
    let count = || {
        let count = i64::try_from(times.clone())
            .ok()
            .filter(|_| times.is_integer());
        let count = count.ok_or_else(|| unfit("*", left, right))?;
        Ok::<u64, Error>(u64::try_from(count).unwrap_or(0))
    };
    if let Some(text) = value.as_str() {
        let count = count()?;
        produce((text.len() as u64).saturating_mul(count))?;
        return Ok(Jinja::from(text.repeat(count as usize)));
    }
    if sequence(value) {
        let items = members(value)?;
        let count = count()?;
        produce((items.len() as u64 * 24).saturating_mul(count))?;
        let repeated = std::iter::repeat_n(items, count as usize).flatten();
        return Ok(Jinja::from(repeated.collect::<Vec<_>>()));
    }
    numbers("*", left, right, i128::checked_mul, |a, b| a * b)
}

fn string(value: &Jinja) -> Result<Jinja, Error> {
    as_text(value)
}

fn join(
    state: &mut State<'_, '_>,
    value: &Jinja,
    separator: Option<Jinja>,
    attribute: Option<Jinja>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    let separator = match separator {
        Some(separator) => separator,
        None => options.get::<Option<Jinja>>("d")?.unwrap_or_default(),
    };
    let separator = match separator.kind() {
        ValueKind::Undefined | ValueKind::None => String::new(),
        _ => text_of(&separator)?,
    };
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => options.get("attribute")?,
    };
    options.assert_all_used()?;
    if !sequence(value) && value.as_str().is_none() && value.kind() != ValueKind::Map {
        as_str(value, "join")?;
    }
    let mut joined = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        meter::work(1).map_err(fail)?;
        let item = match &attribute {
            Some(attribute) => state.apply_filter("attr", &[item, attribute.clone()])?,
            None => item,
        };
        if index > 0 {
            produce(separator.len() as u64)?;
            joined.push_str(&separator);
        }
        match item.as_str() {
            Some(text) => {
                produce(text.len() as u64)?;
                joined.push_str(text);
            }
            None => joined.push_str(&text_of(&item)?),
        }
    }
    Ok(Jinja::from(joined))
}

fn replace(value: &Jinja, from: &Jinja, to: &Jinja, count: Option<i64>) -> Result<Jinja, Error> {
    let text = as_text(value)?;
    let (text, from, to) = (as_str(&text, "replace")?, as_text(from)?, as_text(to)?);
    let (from, to) = (as_str(&from, "replace")?, as_str(&to, "replace")?);
    let count = match count {
        Some(count) if count >= 0 => count as usize,
        _ => usize::MAX,
    };
    meter::work(text.len() as u64 / 16).map_err(fail)?;
    let found = text.matches(from).take(count).count() as u64;
    produce(text.len() as u64 + found.saturating_mul(to.len() as u64))?;
    Ok(Jinja::from(text.replacen(from, to, count)))
}

fn indent(
    value: &Jinja,
    width: Option<u64>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    let width = match width {
        Some(width) => width,
        None => options.get::<Option<u64>>("width")?.unwrap_or(4),
    };
    let first = match first {
        Some(first) => first,
        None => options.get::<Option<bool>>("first")?.unwrap_or(false),
    };
    let blank = match blank {
        Some(blank) => blank,
        None => options.get::<Option<bool>>("blank")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let text = as_text(value)?;
    let text = as_str(&text, "indent")?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines = text.split('\n').count() as u64;
    produce((text.len() as u64).saturating_add(lines.saturating_mul(width)))?;
    let margin = " ".repeat(width as usize);
    let mut indented = String::new();
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            indented.push('\n');
        }
        let empty = line.is_empty() || line == "\r";
        if (index > 0 || first) && (!empty || blank) {
            indented.push_str(&margin);
        }
        indented.push_str(line);
    }
    Ok(Jinja::from(indented))
}

/// Counts what formatting can produce at most: widths are numbers in the text or arguments.
fn bound_format(pattern: &str, args: &[Jinja], computed: bool) -> Result<(), Error> {
    let too_wide = || {
        fail(EvalError::too_large(format!(
            "a field is wider than the {WIDEST} characters that formatting may fill"
        )))
    };
    let mut digits = 0;
    for byte in pattern.bytes() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits > 4 {
            return Err(too_wide());
        }
    }
    let mut largest = 0;
    for arg in args {
        let wide = arg.as_i64().is_some_and(|n| n.unsigned_abs() > WIDEST);
        if computed && wide {
            return Err(too_wide());
        }
        largest = largest.max(match arg.as_str() {
            Some(text) => text.len() as u64,
            None => from_jinja(arg).map_or(0, |value| value.size()),
        });
    }
    let places = pattern.bytes().filter(|b| matches!(b, b'%' | b'{')).count() as u64;
    produce((largest + WIDEST).saturating_mul(places) + pattern.len() as u64)
}

fn int(
    state: &State<'_, '_>,
    value: &Jinja,
    default: Option<Jinja>,
    base: Option<u32>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    let made = minijinja::filters::int(state, &stripped(value), default, base, options);
    made.map_err(|error| not_a_number(value, "int", error))
}

fn float(
    state: &State<'_, '_>,
    value: &Jinja,
    default: Option<Jinja>,
    options: Kwargs,
) -> Result<Jinja, Error> {
    let made = minijinja::filters::float(state, &stripped(value), default, options);
    made.map_err(|error| not_a_number(value, "float", error))
}

/// A text without the blanks and line ends around it: output of commands ends with one.
fn stripped(value: &Jinja) -> Cow<'_, Jinja> {
    match value.as_str() {
        Some(text) if text.trim().len() < text.len() => Cow::Owned(Jinja::from(text.trim())),
        _ => Cow::Borrowed(value),
    }
}

/// What cannot be made a number, by which filter, and the way out.
fn not_a_number(value: &Jinja, filter: &str, error: Error) -> Error {
    if error.kind() != ErrorKind::InvalidOperation {
        return error;
    }
    const SHOWN: usize = 60;
    let text = value.as_str().map(crate::secret::mask);
    let written = match text.as_deref() {
        Some(text) if text.chars().count() > SHOWN => {
            let beginning: String = text.chars().take(SHOWN).collect();
            format!("'{beginning}…'")
        }
        Some(text) => format!("'{text}'"),
        None => format!("a value of the kind {}", value.kind()),
    };
    let message = format!(
        "{written} cannot be made a number by `{filter}`; `{filter}(default=0)` gives another value then"
    );
    fail(EvalError::wrong_type(message))
}

fn printf(value: &Jinja, args: Rest<ValueOrKwargs>) -> Result<Jinja, Error> {
    let pattern = as_str(value, "format")?;
    let args = args.into_values();
    if args.iter().any(Jinja::is_undefined) {
        return Err(fail(EvalError::nameless()));
    }
    bound_format(pattern, &args, pattern.contains('*'))?;
    let args = shown(pattern, &args)?;
    let formatted = format(FormatStyle::Printf, pattern, &args)?;
    produce(formatted.len() as u64)?;
    Ok(Jinja::from(formatted))
}

/// The arguments of `%s` as texts, written as everything else is; the others as they are.
fn shown(pattern: &str, args: &[Jinja]) -> Result<Vec<Jinja>, Error> {
    let mut args = args.to_vec();
    let mut rest = pattern.split('%').skip(1);
    let mut place = 0;
    while let Some(directive) = rest.next() {
        if directive.is_empty() {
            // `%%` is a percent sign.
            rest.next();
            continue;
        }
        // By name, all arguments are one map.
        if directive.starts_with('(') {
            break;
        }
        let kind = directive.trim_start_matches(['#', '-', '+', ' ', '.']);
        let kind = kind.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        if kind.starts_with('s')
            && let Some(arg) = args.get_mut(place)
        {
            *arg = as_text(arg)?;
        }
        place += 1;
    }
    Ok(args)
}

fn tojson(value: &Jinja, indent: Option<Jinja>, options: Kwargs) -> Result<Jinja, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get("indent")?,
    };
    options.assert_all_used()?;
    let width = match indent {
        None => None,
        Some(indent) if indent.is_none() => None,
        Some(indent) => match bool::try_from(indent.clone()) {
            Ok(pretty) => pretty.then_some(2),
            Err(_) => Some(u64::try_from(indent)?),
        },
    };
    match width {
        Some(width) => tojson_pretty(value, width),
        None => {
            let value = from_jinja(value).map_err(fail)?;
            produce(value.size())?;
            Ok(Jinja::from(value.to_string()))
        }
    }
}

fn tojson_pretty(value: &Jinja, width: u64) -> Result<Jinja, Error> {
    if width > MOST_INDENT {
        return Err(fail(EvalError::too_large(format!(
            "`tojson` indents by at most {MOST_INDENT} characters, not by {width}"
        ))));
    }
    let value = from_jinja(value).map_err(fail)?;
    produce(value.size().saturating_mul(width.max(1)))?;
    let margin = " ".repeat(width as usize);
    let formatter = serde_json::ser::PrettyFormatter::with_indent(margin.as_bytes());
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    serde::Serialize::serialize(&value, &mut serializer)
        .map_err(|error| wrong(format!("this cannot be written as JSON: {error}")))?;
    Ok(Jinja::from(String::from_utf8_lossy(&out).into_owned()))
}

fn bound_count(count: i64, filler: bool) -> Result<usize, Error> {
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 {
        return Err(wrong("the count must be at least 1"));
    }
    if filler {
        produce(count as u64 * 24)?;
    }
    Ok(count)
}

fn batch(value: &Jinja, count: i64, filler: Option<Jinja>) -> Result<Jinja, Error> {
    let items = members(value)?;
    let count = bound_count(count, filler.is_some() && !items.is_empty())?;
    let mut batches = Vec::new();
    for chunk in items.chunks(count) {
        let mut chunk = chunk.to_vec();
        if let Some(filler) = &filler {
            chunk.resize(count, filler.clone());
        }
        batches.push(Jinja::from(chunk));
    }
    Ok(Jinja::from(batches))
}

fn slice(value: &Jinja, count: i64, filler: Option<Jinja>) -> Result<Jinja, Error> {
    let items = members(value)?;
    let count = bound_count(count, true)?;
    let (each, longer) = (items.len() / count, items.len() % count);
    let mut rest = items.as_slice();
    let mut slices = Vec::new();
    for index in 0..count {
        let (head, tail) = rest.split_at(each + usize::from(index < longer));
        rest = tail;
        let mut head = head.to_vec();
        if let Some(filler) = filler.as_ref().filter(|_| index >= longer) {
            head.push(filler.clone());
        }
        slices.push(Jinja::from(head));
    }
    Ok(Jinja::from(slices))
}

fn chain(value: &Jinja, others: Rest<Jinja>) -> Result<Jinja, Error> {
    let all = || std::iter::once(value).chain(others.iter());
    if all().all(|value| value.kind() == ValueKind::Map) {
        let mut merged = crate::value::Map::default();
        for value in all() {
            if let Value::Map(map) = from_jinja(value).map_err(fail)? {
                produce(map.0.len() as u64 * 48)?;
                merged
                    .0
                    .extend(map.0.iter().map(|(k, v)| (k.clone(), v.clone())));
            }
        }
        return Ok(to_jinja(&Value::Map(Arc::new(merged))));
    }
    let mut items = Vec::new();
    for value in all() {
        items.extend(members(value)?);
    }
    Ok(Jinja::from(items))
}

fn parse_json(value: &Jinja) -> Result<Jinja, Error> {
    let Some(text) = value.as_str() else {
        as_str(value, "parse_json").or_else(|error| {
            // What has been parsed already is left as it is.
            if value.is_undefined() {
                Err(error)
            } else {
                Ok("")
            }
        })?;
        return Ok(value.clone());
    };
    produce(text.len() as u64 * 4)?;
    match serde_json::from_str::<Value>(text) {
        Ok(value) => Ok(to_jinja(&value)),
        Err(error) => Err(wrong(format!("this text is not JSON: {error}"))),
    }
}

/// The SHA-256 of a value's text, all 64 hexadecimal digits.
fn hash(value: &Jinja) -> Result<String, Error> {
    let text = as_text(value)?;
    let digest = Sha256::digest(as_str(&text, "hash")?.as_bytes());
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A path as one name: what is neither letter, digit, `_` nor `-` becomes `_`.
fn path_to_key(value: &Jinja) -> Result<String, Error> {
    let text = as_text(value)?;
    let letters = as_str(&text, "path_to_key")?.chars();
    let key = letters.map(|letter| {
        if letter.is_alphanumeric() || matches!(letter, '_' | '-') {
            letter
        } else {
            '_'
        }
    });
    Ok(key.collect())
}

/// A value as a word of the shell; a list as several words.
fn sh(value: &Jinja) -> Result<String, Error> {
    let value = from_jinja(value).map_err(fail)?;
    let words = shell::later_words(&value).map_err(fail)?;
    produce(words.len() as u64)?;
    Ok(words)
}

fn unquoted(value: &Jinja) -> Result<Jinja, Error> {
    let value = from_jinja(value).map_err(fail)?;
    let text = shell::plain_words(&value).map_err(fail)?;
    Ok(Jinja::from_object(Unquoted(Arc::from(text))))
}

thread_local! {
    static REGEXES: RefCell<HashMap<String, Arc<Regex>>> = RefCell::new(HashMap::new());
}

/// The compiled expression, shared: a clone of a `Regex` starts with an empty cache.
pub(super) fn regex(pattern: &str) -> Result<Arc<Regex>, Error> {
    REGEXES.with(|known| {
        let mut known = known.borrow_mut();
        if let Some(regex) = known.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = Regex::new(pattern).map_err(|error| {
            fail(EvalError::syntax(format!(
                "the regular expression `{pattern}` is not valid: {error}"
            )))
        })?;
        if known.len() >= MOST_REGEXES {
            known.clear();
        }
        let regex = Arc::new(regex);
        known.insert(pattern.to_owned(), regex.clone());
        Ok(regex)
    })
}

fn count_search(text: &str) -> Result<(), Error> {
    meter::work(text.len() as u64 / 4).map_err(fail)
}

fn groups(captures: &regex::Captures<'_>) -> Vec<Jinja> {
    let group = |group: Option<regex::Match<'_>>| match group {
        Some(group) => Jinja::from(group.as_str()),
        None => Jinja::from(()),
    };
    let skip = usize::from(captures.len() > 1);
    captures.iter().skip(skip).map(group).collect()
}

/// The capture groups of the first match, or the match itself, as a list; empty without a match.
fn regex_search(value: &Jinja, pattern: &str) -> Result<Jinja, Error> {
    let text = as_str(value, "regex_search")?;
    count_search(text)?;
    let regex = regex(pattern)?;
    let found = regex.captures(text).map(|captures| groups(&captures));
    Ok(Jinja::from(found.unwrap_or_default()))
}

/// Every match: the match, its only group, or the list of its groups.
fn regex_findall(value: &Jinja, pattern: &str) -> Result<Jinja, Error> {
    let text = as_str(value, "regex_findall")?;
    count_search(text)?;
    let regex = regex(pattern)?;
    let mut found = Vec::new();
    for captures in regex.captures_iter(text) {
        meter::work(4 * captures.len() as u64).map_err(fail)?;
        produce(24 * captures.len() as u64)?;
        let mut groups = groups(&captures);
        found.push(match groups.len() {
            1 => groups.remove(0),
            _ => Jinja::from(groups),
        });
    }
    Ok(Jinja::from(found))
}

/// Every match replaced; `\1` and `\g<name>` stand for groups, as in Python.
fn regex_replace(value: &Jinja, pattern: &str, replacement: &str) -> Result<Jinja, Error> {
    let text = as_str(value, "regex_replace")?;
    count_search(text)?;
    let regex = regex(pattern)?;
    let replacement = python_replacement(replacement);
    let mut replaced = String::new();
    let mut copied = 0;
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else {
            continue;
        };
        meter::work(4).map_err(fail)?;
        let before = replaced.len();
        replaced.push_str(&text[copied..whole.start()]);
        captures.expand(&replacement, &mut replaced);
        copied = whole.end();
        produce((replaced.len() - before) as u64)?;
    }
    replaced.push_str(&text[copied..]);
    produce((text.len() - copied) as u64)?;
    Ok(Jinja::from(replaced))
}

fn python_replacement(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '$' => out.push_str("$$"),
            '\\' => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                if digits > 0 {
                    out.push_str(&format!("${{{}}}", &rest[..digits]));
                    rest = &rest[digits..];
                } else if let Some((name, after)) = rest
                    .strip_prefix("g<")
                    .and_then(|named| named.split_once('>'))
                {
                    out.push_str(&format!("${{{name}}}"));
                    rest = after;
                } else if let Some(escaped) = rest.chars().next() {
                    out.push(match escaped {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        other => other,
                    });
                    rest = &rest[escaped.len_utf8()..];
                } else {
                    out.push('\\');
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// Python's methods of strings, lists and maps.
pub(super) fn method(
    state: &mut State<'_, '_>,
    value: &Jinja,
    name: &str,
    args: &[Jinja],
) -> Result<Jinja, Error> {
    if value.is_undefined() {
        return Err(fail(EvalError::nameless()));
    }
    let length = value.as_str().map(str::len).or_else(|| value.len());
    meter::work(length.unwrap_or_default() as u64 / 8).map_err(fail)?;
    match (value.as_str(), name) {
        (Some(_), "join") => {
            let (items,): (&Jinja,) = from_args(args)?;
            state.apply_filter("join", &[items.clone(), value.clone()])
        }
        (Some(_), "replace") => {
            let (from, to, count): (&Jinja, &Jinja, Option<i64>) = from_args(args)?;
            replace(value, from, to, count)
        }
        (Some(pattern), "format") => {
            let mut inside = 0;
            let nested = pattern.bytes().any(|byte| {
                match byte {
                    b'{' => inside += 1,
                    b'}' => inside -= 1,
                    _ => {}
                }
                inside > 1
            });
            bound_format(pattern, args, nested)?;
            let formatted = format(FormatStyle::StrFormat, pattern, args)?;
            produce(formatted.len() as u64)?;
            Ok(Jinja::from(formatted))
        }
        _ => {
            if let Some(text) = value.as_str() {
                produce(text.len() as u64)?;
            }
            if let Some(made) = methods::call(value, name, args) {
                return made;
            }
            pycompat::unknown_method_callback(state, value, name, args)
        }
    }
}

/// What programs with loops or assignments are given instead of minijinja's own instructions.
pub(super) fn register_metered(environment: &mut Environment<'static>) {
    environment.add_filter("meter", |units: u64| meter::work(units).map_err(fail));
    environment.add_filter("weigh", |value: &Jinja| {
        weigh(value).map_err(fail)?;
        Ok::<_, Error>(value.clone())
    });
    environment.add_filter("weigh-held", |value: &Jinja| {
        weigh_held(value).map_err(fail)?;
        Ok::<_, Error>(value.clone())
    });
    environment.add_filter(
        "metered-filter",
        |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let (name, args) = named(&args)?;
            state.apply_filter(name, args)
        },
    );
    environment.add_filter(
        "metered-test",
        |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            let (name, args) = named(&args)?;
            state.perform_test(name, args).map(Jinja::from)
        },
    );
    environment.add_filter("[]", |items: Rest<ValueOrKwargs>| {
        built(Jinja::from(items.into_values()))
    });
    environment.add_filter("{}", |items: Rest<ValueOrKwargs>| {
        let items = items.into_values();
        let (pairs, _) = items.as_chunks::<2>();
        // Collected, pairs would be a list.
        let pairs = pairs
            .iter()
            .map(|[key, value]| (key.clone(), value.clone()));
        built(Jinja::from_pairs(pairs))
    });
}

fn built(value: Jinja) -> Result<Jinja, Error> {
    weigh(&value).map_err(fail)?;
    Ok(value)
}

/// The name that was put after the arguments, and the arguments, counted.
fn named(args: &[Jinja]) -> Result<(&str, &[Jinja]), Error> {
    let Some((name, args)) = args.split_last() else {
        return Err(wrong("a filter needs a value"));
    };
    for arg in args {
        let length = arg
            .as_str()
            .map(|text| text.len() / 8)
            .or_else(|| arg.len().map(|length| length * 8));
        meter::work(length.unwrap_or_default() as u64).map_err(fail)?;
    }
    Ok((name.as_str().unwrap_or_default(), args))
}
