//! Times: moments from now, and as text.

use flow_model::grammar;

use crate::value::Value;

/// The last moment that a journal can hold.
const END: u64 = i64::MAX as u64;

/// The moment so many seconds after another; the end of time when it lies beyond that.
pub(super) fn after(at: u64, seconds: f64) -> u64 {
    at.saturating_add((seconds * 1000.0) as u64).min(END)
}

/// The seconds that a value says: a number, or a text such as `30s`, as a definition has them.
pub(super) fn seconds(value: &Value) -> Option<f64> {
    match value {
        Value::Int(seconds) => Some(*seconds as f64),
        Value::Float(seconds) => Some(*seconds),
        Value::Str(text) => grammar::seconds(text),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Milliseconds since 1970 as `2026-11-16T05:00:00.123Z`.
#[must_use]
pub fn iso(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = date(days);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, fraction) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{fraction:03}Z")
}

/// Year, month and day of a number of days since 1970, by the civil calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that a leap day is the last of its year.
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::iso;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_794_805_200_123), "2026-11-16T05:00:00.123Z");
    }
}
