//! What can be put in order: numbers with numbers, texts with texts, lists with lists. Anything
//! else is an error, as it is in Jinja: a guess would be a wrong answer that nobody sees.

use std::cmp::Ordering;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, State, Value as Jinja};

use super::super::error::EvalError;
use super::super::meter;
use super::filters::{fail, members, noun, wrong};

/// An operator that asks for an order.
struct Operator {
    sign: &'static str,
    /// The tests of the same meaning.
    tests: &'static [&'static str],
    holds: fn(Ordering) -> bool,
}

const OPERATORS: [Operator; 4] = [
    Operator {
        sign: "<",
        tests: &["<", "lt", "lessthan"],
        holds: Ordering::is_lt,
    },
    Operator {
        sign: "<=",
        tests: &["<=", "le"],
        holds: Ordering::is_le,
    },
    Operator {
        sign: ">",
        tests: &[">", "gt", "greaterthan"],
        holds: Ordering::is_gt,
    },
    Operator {
        sign: ">=",
        tests: &[">=", "ge"],
        holds: Ordering::is_ge,
    },
];

pub(super) fn register(environment: &mut Environment<'static>) {
    for Operator { sign, tests, holds } in OPERATORS {
        let compare = move |left: &Jinja, right: &Jinja| {
            order(sign, left, right).map(|order| order.is_some_and(holds))
        };
        environment.add_filter(sign, compare);
        for test in tests {
            environment.add_test(*test, compare);
        }
        // Both values again, the other way round, for what takes them from the stack.
        environment.add_filter(preserving(sign), move |left: &Jinja, right: &Jinja| {
            order(sign, left, right)?;
            Ok::<_, Error>(Jinja::from(vec![right.clone(), left.clone()]))
        });
    }
    environment.add_filter("sort", |state: &State<'_, '_>, value: Jinja, by: Kwargs| {
        let value = alike("sort", value, &by)?;
        minijinja::filters::sort(state, value, by)
    });
    environment.add_filter("min", |state: &State<'_, '_>, value: Jinja, by: Kwargs| {
        let value = alike("min", value, &by)?;
        minijinja::filters::min(state, value, by)
    });
    environment.add_filter("max", |state: &State<'_, '_>, value: Jinja, by: Kwargs| {
        let value = alike("max", value, &by)?;
        minijinja::filters::max(state, value, by)
    });
    environment.add_filter("dictsort", |value: Jinja, by: Kwargs| {
        if value.kind() == ValueKind::Map {
            let by_value = by.get::<Option<&str>>("by")? == Some("value");
            let mut compared = members(&value)?;
            if by_value {
                let values = compared.iter().map(|key| value.get_item(key));
                compared = values.collect::<Result<_, _>>()?;
            }
            same_kind("`dictsort`", compared.into_iter())?;
        }
        minijinja::filters::dictsort(&value, by)
    });
    environment.add_filter(
        "groupby",
        |value: Jinja, attribute: Option<&str>, by: Kwargs| {
            let named = by.get::<Option<&str>>("attribute")?;
            let default = by.get::<Option<Jinja>>("default")?;
            let name = attribute.or(named).unwrap_or_default();
            let items = members(&value)?;
            let keys = items.iter();
            let keys = keys.filter_map(|item| path(item, name).or_else(|| default.clone()));
            same_kind("`groupby`", keys)?;
            minijinja::filters::groupby(Jinja::from(items), attribute, by)
        },
    );
}

/// The filter that is an error where an operator would be.
pub(super) fn preserving(operator: &str) -> &'static str {
    match operator {
        "<" => "ordered<",
        "<=" => "ordered<=",
        ">" => "ordered>",
        _ => "ordered>=",
    }
}

/// The kinds between which there is an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    List,
    /// A time or a day, which are ordered as their texts are.
    Time,
}

impl Kind {
    fn of(value: &Jinja) -> Option<Self> {
        match value.kind() {
            // A boolean counts as 0 or 1, as it does in a sum.
            ValueKind::Bool | ValueKind::Number => Some(Kind::Number),
            ValueKind::String => Some(Kind::Text),
            ValueKind::Seq | ValueKind::Iterable => Some(Kind::List),
            ValueKind::Plain => Some(Kind::Time),
            _ => None,
        }
    }
}

/// Whether two constants can be put in order.
pub(super) fn comparable(left: &Jinja, right: &Jinja) -> bool {
    match (Kind::of(left), Kind::of(right)) {
        (Some(Kind::List), _) => false,
        (Some(left), Some(right)) => left == right && left != Kind::Time,
        _ => false,
    }
}

/// How two values are ordered; `None` with what is not a number.
fn order(operator: &str, left: &Jinja, right: &Jinja) -> Result<Option<Ordering>, Error> {
    if left.is_undefined() || right.is_undefined() {
        return Err(fail(EvalError::nameless()));
    }
    match (Kind::of(left), Kind::of(right)) {
        (Some(Kind::Number), Some(Kind::Number)) => Ok(numbers(left, right)),
        (Some(Kind::Text), Some(Kind::Text)) | (Some(Kind::Time), Some(Kind::Time)) => {
            Ok(Some(left.cmp(right)))
        }
        (Some(Kind::List), Some(Kind::List)) => {
            let (left, right) = (members(left)?, members(right)?);
            for (left, right) in left.iter().zip(&right) {
                meter::work(1).map_err(fail)?;
                if left != right {
                    return order(operator, left, right);
                }
            }
            Ok(Some(left.len().cmp(&right.len())))
        }
        _ => Err(unordered(&format!("`{operator}`"), left, right)),
    }
}

fn numbers(left: &Jinja, right: &Jinja) -> Option<Ordering> {
    let plain = |value: &Jinja| match value.kind() {
        ValueKind::Bool => Jinja::from(i64::from(value.is_true())),
        _ => value.clone(),
    };
    let nan =
        |value: &Jinja| !value.is_integer() && f64::try_from(value.clone()).is_ok_and(f64::is_nan);
    let (left, right) = (plain(left), plain(right));
    (!nan(&left) && !nan(&right)).then(|| left.cmp(&right))
}

/// Says what cannot be put in order, and the way out where there is one.
fn unordered(what: &str, left: &Jinja, right: &Jinja) -> Error {
    let way_out = match (left.kind(), right.kind()) {
        (ValueKind::String, ValueKind::Number) | (ValueKind::Number, ValueKind::String) => {
            "; `| int` or `| float` makes a text a number"
        }
        (ValueKind::None, _) | (_, ValueKind::None) => {
            "; `| default(0, true)` gives what is null a value"
        }
        (ValueKind::Seq | ValueKind::Map, ValueKind::Number)
        | (ValueKind::Number, ValueKind::Seq | ValueKind::Map) => {
            "; `| length` counts what is in it"
        }
        _ => "",
    };
    wrong(format!(
        "{what} cannot order {} and {}{way_out}",
        noun(left),
        noun(right)
    ))
}

/// A list whose members, or what they are compared by, can be put in order.
fn alike(filter: &str, value: Jinja, by: &Kwargs) -> Result<Jinja, Error> {
    // What is no list, minijinja refuses; a text has nothing but letters.
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(value);
    }
    let attributes = by.get::<Option<&str>>("attribute")?.unwrap_or_default();
    let attributes: Vec<&str> = attributes
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let items = members(&value)?;
    let what = format!("`{filter}`");
    if attributes.is_empty() {
        same_kind(&what, items.iter().cloned())?;
    }
    for attribute in attributes {
        let keys = items.iter().filter_map(|item| path(item, attribute));
        same_kind(&what, keys)?;
    }
    Ok(Jinja::from(items))
}

fn path(item: &Jinja, attribute: &str) -> Option<Jinja> {
    let mut here = item.clone();
    for key in attribute.split('.') {
        here = match key.parse::<usize>() {
            Ok(index) => here.get_item(&Jinja::from(index)),
            Err(_) => here.get_attr(key),
        }
        .ok()?;
    }
    // What an item lacks comes first, as it does in minijinja.
    (!here.is_undefined()).then_some(here)
}

fn same_kind(what: &str, mut items: impl Iterator<Item = Jinja>) -> Result<(), Error> {
    let Some(first) = items.next() else {
        return Ok(());
    };
    for item in items {
        meter::work(1).map_err(fail)?;
        let (left, right) = (Kind::of(&first), Kind::of(&item));
        if left.is_none() || left != right {
            return Err(unordered(what, &first, &item));
        }
    }
    Ok(())
}
