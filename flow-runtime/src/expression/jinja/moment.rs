//! Times and days, with the attributes and methods that Python's have.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, from_args};
use minijinja::{Error, ErrorKind, State, Value as Jinja};

use super::super::clock::Civil;
use super::filters::{method, produce};

/// What `now()` gives.
#[derive(Debug)]
pub(super) struct Moment(pub(super) Civil);

/// What `now().date()` gives.
#[derive(Debug)]
pub(super) struct Day(Civil);

impl Moment {
    /// Its text.
    pub(super) fn text(&self) -> String {
        self.0.plain()
    }
}

impl Day {
    /// Its text.
    pub(super) fn text(&self) -> String {
        self.0.date()
    }
}

/// A part that days have too.
fn of_day(civil: &Civil, name: &str) -> Option<Jinja> {
    Some(match name {
        "year" => Jinja::from(civil.year()),
        "month" => Jinja::from(civil.month()),
        "day" => Jinja::from(civil.day()),
        _ => return None,
    })
}

/// A method that days have too.
fn called(civil: &Civil, name: &str, args: &[Jinja]) -> Option<Result<Jinja, Error>> {
    Some(match name {
        "strftime" => from_args(args).and_then(|(format,): (&str,)| {
            produce(format.len() as u64 * 16)?;
            Ok(Jinja::from(civil.strftime(format)))
        }),
        // Monday is 0 in one and 1 in the other.
        "weekday" => from_args(args).map(|()| Jinja::from(civil.weekday_from_monday())),
        "isoweekday" => from_args(args).map(|()| Jinja::from(civil.weekday_from_monday() + 1)),
        _ => return None,
    })
}

impl Object for Moment {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        let name = key.as_str()?;
        of_day(&self.0, name).or_else(|| {
            let (hour, minute, second, millis) = self.0.clock();
            Some(Jinja::from(match name {
                "hour" => hour,
                "minute" => minute,
                "second" => second,
                "microsecond" => millis * 1000,
                _ => return None,
            }))
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Jinja],
    ) -> Result<Jinja, Error> {
        match method {
            "isoformat" => from_args(args).map(|()| Jinja::from(self.0.iso())),
            "timestamp" => from_args(args).map(|()| Jinja::from(self.0.timestamp())),
            "date" => from_args(args).map(|()| Jinja::from_object(Day(self.0))),
            _ => called(&self.0, method, args)
                .unwrap_or_else(|| Err(Error::from(ErrorKind::UnknownMethod))),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Object for Day {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Jinja) -> Option<Jinja> {
        of_day(&self.0, key.as_str()?)
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        name: &str,
        args: &[Jinja],
    ) -> Result<Jinja, Error> {
        match name {
            "isoformat" => from_args(args).map(|()| Jinja::from(self.text())),
            _ => match called(&self.0, name, args) {
                Some(made) => made,
                // A day is also its text: `now().date().split('-')`.
                None => method(state, &Jinja::from(self.text()), name, args),
            },
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
