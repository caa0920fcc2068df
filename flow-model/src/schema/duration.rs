//! Ranges of durations written as text, as regular expressions.
//!
//! A range of decimal numbers is a regular language, also where a bound has no finite decimal, such
//! as 300 s in hours: 0.08333… repeats, and repetition is what expressions can say.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::between;

/// What the schema calls the durations between two bounds in seconds.
pub(super) fn name(min: f64, max: f64) -> String {
    format!("duration_{min}_to_{max}")
}

/// The schema of the durations between two bounds in seconds.
pub(super) fn schema(min: f64, max: f64) -> Value {
    let mut schema = between(json!(["number", "string"]), min, max);
    schema.insert("pattern".to_owned(), json!(FORM));
    schema.insert(
        "not".to_owned(),
        json!({"type": "string", "pattern": outside(min, max)}),
    );
    Value::Object(schema)
}

/// What every duration text looks like.
const FORM: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|m|h|d)?\s*$";

/// Units with their length in milliseconds; seconds may go without.
const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s?", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Of the texts that look like durations, those outside two bounds in seconds.
///
/// The bounds count in whole milliseconds, as all of the grammar do.
fn outside(min: f64, max: f64) -> String {
    let millis = |seconds: f64| (seconds * 1000.0).round() as u64;
    let (min, max) = (millis(min), millis(max));
    let units: Vec<String> = UNITS
        .iter()
        .map(|(unit, length)| {
            let mut numbers = greater(&Decimal::of(max, *length));
            numbers.extend(less(&Decimal::of(min, *length)));
            format!(r"({})\s*{unit}", numbers.join("|"))
        })
        .collect();
    format!(r"^\s*0*({})\s*$", units.join("|"))
}

/// A fraction as a decimal: `whole.head cycle cycle …`; no zeros in front, none for zero itself.
struct Decimal {
    whole: String,
    head: String,
    cycle: String,
}

impl Decimal {
    /// By long division; digits repeat from where a remainder comes back.
    fn of(numerator: u64, denominator: u64) -> Self {
        let whole = match numerator / denominator {
            0 => String::new(),
            whole => whole.to_string(),
        };
        let mut remainders = Vec::new();
        let mut digits = String::new();
        let mut rest = numerator % denominator;
        while rest != 0 && !remainders.contains(&rest) {
            remainders.push(rest);
            let _ = write!(digits, "{}", rest * 10 / denominator);
            rest = rest * 10 % denominator;
        }
        let repeats = remainders.iter().position(|other| *other == rest);
        let cycle = digits.split_off(repeats.unwrap_or(digits.len()));
        Decimal {
            whole,
            head: digits,
            cycle,
        }
    }

    fn is_whole(&self) -> bool {
        self.head.is_empty() && self.cycle.is_empty()
    }
}

/// Numbers greater than this one.
fn greater(bound: &Decimal) -> Vec<String> {
    let Decimal { whole, head, cycle } = bound;
    let mut numbers = vec![format!(r"[1-9]\d{}(\.\d*)?", at_least(whole.len()))];
    let above = |digit: u32| (digit < 9).then(|| range(digit + 1, 9));
    for (before, digit) in places(whole) {
        if let Some(above) = above(digit) {
            let rest = exactly(whole.len() - before.len() - 1);
            numbers.push(format!(r"{before}{above}{rest}(\.\d*)?"));
        }
    }
    for (before, digit) in places(head) {
        if let Some(above) = above(digit) {
            numbers.push(format!(r"{whole}\.{before}{above}\d*"));
        }
    }
    // Past its last digit a finite decimal goes on with zeros.
    let cycle = if cycle.is_empty() { "0" } else { cycle };
    for (before, digit) in places(cycle) {
        if let Some(above) = above(digit) {
            numbers.push(format!(
                r"{whole}\.{head}{}{before}{above}\d*",
                again(cycle)
            ));
        }
    }
    numbers
}

/// Numbers less than this one.
fn less(bound: &Decimal) -> Vec<String> {
    let Decimal { whole, head, cycle } = bound;
    let mut numbers = Vec::new();
    let below = |digit: u32| (digit > 0).then(|| range(0, digit - 1));
    if !whole.is_empty() {
        numbers.push(format!(r"\d{{0,{}}}(\.\d*)?", whole.len() - 1));
    }
    for (before, digit) in places(whole) {
        if let Some(below) = below(digit) {
            let rest = exactly(whole.len() - before.len() - 1);
            numbers.push(format!(r"{before}{below}{rest}(\.\d*)?"));
        }
    }
    if !bound.is_whole() {
        numbers.push(whole.clone());
    }
    // A text that ends before the bound's last digit is less; so is one with a lesser digit.
    let shorter = |digit| below(digit).map_or(String::new(), |below| format!(r"({below}\d*)?"));
    for (before, digit) in places(head) {
        numbers.push(format!(r"{whole}\.{before}{}", shorter(digit)));
    }
    for (before, digit) in places(cycle) {
        let again = again(cycle);
        numbers.push(format!(r"{whole}\.{head}{again}{before}{}", shorter(digit)));
    }
    numbers
}

/// Every digit with the digits before it.
fn places(digits: &str) -> impl Iterator<Item = (&str, u32)> {
    digits
        .char_indices()
        .filter_map(|(at, digit)| Some((&digits[..at], digit.to_digit(10)?)))
}

fn range(from: u32, to: u32) -> String {
    if from == to {
        from.to_string()
    } else {
        format!("[{from}-{to}]")
    }
}

fn at_least(count: usize) -> String {
    match count {
        0 => "*".to_owned(),
        _ => format!("{{{count},}}"),
    }
}

fn exactly(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => r"\d".to_owned(),
        _ => format!(r"\d{{{count}}}"),
    }
}

fn again(cycle: &str) -> String {
    if cycle.len() == 1 {
        format!("{cycle}*")
    } else {
        format!("({cycle})*")
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::grammar::seconds;

    const RANGES: [(f64, f64); 5] = [
        (0.0, 86_400.0),
        (0.01, 2_592_000.0),
        (0.1, 300.0),
        (0.1, 31_536_000.0),
        (1.0, 2_592_000.0),
    ];

    /// Numbers at, near and far from a bound, in every unit.
    fn near(bound: f64) -> Vec<String> {
        let mut numbers = Vec::new();
        for (_, length) in UNITS {
            let at = bound * 1000.0 / length as f64;
            for step in [0.0, 1e-7, 1e-4, 0.01, 0.1, 1.0, 5.0, 10.0, 99.0] {
                for value in [at - step, at + step, at * (1.0 + step)] {
                    let rounded = [0, 3, 9].map(|places| format!("{value:.places$}"));
                    numbers.extend(rounded);
                }
            }
        }
        numbers
    }

    #[test]
    fn the_expressions_tell_durations_inside_the_bounds_from_all_others() {
        let form = Regex::new(FORM).expect("it compiles");
        let odd = [
            "", ".", "0", "00", "1.2.3", "5.", ".5", "007.50", "1e3", "x",
        ];
        for (min, max) in RANGES {
            let outside = Regex::new(&outside(min, max)).expect("it compiles");
            let odd = odd.iter().map(|number| (*number).to_owned());
            for number in odd.chain(near(min)).chain(near(max)) {
                for unit in ["", "ms", "s", "m", "h", "d", " ms ", "x"] {
                    let text = format!("{number}{unit}");
                    let inside = form.is_match(&text) && !outside.is_match(&text);
                    let meant = seconds(&text).is_some_and(|s| s >= min && s <= max);
                    assert_eq!(inside, meant, "{text:?} in {min}..={max}");
                }
            }
        }
    }
}
