//! Dates from milliseconds, and randomness from a seed.

use std::fmt::Write;

/// A moment in UTC, by the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    millis: i64,
    year: i64,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

const DAY: i64 = 86_400_000;
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Civil {
    pub(super) fn new(millis: i64) -> Self {
        let days = millis.div_euclid(DAY);
        let rest = millis.rem_euclid(DAY) / 1000;
        // Days since 0000-03-01, in cycles of 400 years, so that leap days end a year.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let day = (of_year - (153 * march_month + 2) / 5 + 1) as u32;
        let month = (if march_month < 10 {
            march_month + 3
        } else {
            march_month - 9
        }) as u32;
        Civil {
            millis,
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day,
            hour: (rest / 3600) as u32,
            minute: (rest / 60 % 60) as u32,
            second: (rest % 60) as u32,
        }
    }

    /// `2026-01-31T12:00:00`.
    pub(super) fn iso(&self) -> String {
        self.strftime("%Y-%m-%dT%H:%M:%S")
    }

    /// `2026-01-31 12:00:00`.
    pub(super) fn plain(&self) -> String {
        self.strftime("%Y-%m-%d %H:%M:%S")
    }

    /// `2026-01-31`.
    pub(super) fn date(&self) -> String {
        self.strftime("%Y-%m-%d")
    }

    pub(super) fn year(&self) -> i64 {
        self.year
    }

    pub(super) fn month(&self) -> u32 {
        self.month
    }

    pub(super) fn day(&self) -> u32 {
        self.day
    }

    /// Hour, minute, second and milliseconds.
    pub(super) fn clock(&self) -> (u32, u32, u32, u32) {
        let millis = u32::try_from(self.millis.rem_euclid(1000)).unwrap_or_default();
        (self.hour, self.minute, self.second, millis)
    }

    /// The day of the week; 0 is Monday.
    pub(super) fn weekday_from_monday(&self) -> i64 {
        (self.millis.div_euclid(DAY) + 3).rem_euclid(7)
    }

    /// Seconds since 1970.
    pub(super) fn timestamp(&self) -> f64 {
        self.millis as f64 / 1000.0
    }

    /// The directives of C's `strftime` in the C locale; unknown ones stay as they are.
    pub(super) fn strftime(&self, format: &str) -> String {
        let mut text = String::new();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            let Some(directive) = letters.next() else {
                text.push('%');
                break;
            };
            // Writing to a string cannot fail.
            let _ = self.directive(&mut text, directive);
        }
        text
    }

    fn directive(&self, text: &mut String, directive: char) -> std::fmt::Result {
        let days = self.millis.div_euclid(DAY);
        let weekday = (days + 4).rem_euclid(7) as usize;
        let of_year = self.day_of_year();
        let hour12 = if self.hour.is_multiple_of(12) {
            12
        } else {
            self.hour % 12
        };
        let month = MONTHS[self.month as usize - 1];
        match directive {
            'Y' => write!(text, "{:04}", self.year),
            'y' => write!(text, "{:02}", self.year.rem_euclid(100)),
            'C' => write!(text, "{:02}", self.year.div_euclid(100)),
            'm' => write!(text, "{:02}", self.month),
            'd' => write!(text, "{:02}", self.day),
            'e' => write!(text, "{:2}", self.day),
            'H' => write!(text, "{:02}", self.hour),
            'I' => write!(text, "{hour12:02}"),
            'M' => write!(text, "{:02}", self.minute),
            'S' => write!(text, "{:02}", self.second),
            'f' => write!(text, "{:06}", self.millis.rem_euclid(1000) * 1000),
            'j' => write!(text, "{of_year:03}"),
            'p' => text.write_str(if self.hour < 12 { "AM" } else { "PM" }),
            'a' => text.write_str(&DAYS[weekday][..3]),
            'A' => text.write_str(DAYS[weekday]),
            'b' | 'h' => text.write_str(&month[..3]),
            'B' => text.write_str(month),
            'w' => write!(text, "{weekday}"),
            'u' => write!(text, "{}", if weekday == 0 { 7 } else { weekday }),
            'F' => text.write_str(&self.date()),
            'T' | 'X' => text.write_str(&self.strftime("%H:%M:%S")),
            'R' => text.write_str(&self.strftime("%H:%M")),
            'D' | 'x' => text.write_str(&self.strftime("%m/%d/%y")),
            'c' => text.write_str(&self.strftime("%a %b %e %H:%M:%S %Y")),
            's' => write!(text, "{}", self.millis.div_euclid(1000)),
            'U' => write!(text, "{:02}", (of_year + 6 - weekday as u32) / 7),
            'W' => write!(text, "{:02}", (of_year + 6 - (weekday as u32 + 6) % 7) / 7),
            'V' | 'G' => {
                let (year, week) = self.iso_week(weekday as i64);
                if directive == 'V' {
                    write!(text, "{week:02}")
                } else {
                    write!(text, "{year:04}")
                }
            }
            'z' => text.write_str("+0000"),
            'Z' => text.write_str("UTC"),
            'n' => text.write_str("\n"),
            't' => text.write_str("\t"),
            '%' => text.write_str("%"),
            other => write!(text, "%{other}"),
        }
    }

    fn leap(year: i64) -> bool {
        (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
    }

    fn day_of_year(&self) -> u32 {
        const BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let leap = u32::from(self.month > 2 && Civil::leap(self.year));
        BEFORE[self.month as usize - 1] + leap + self.day
    }

    /// The year and week of ISO 8601: the week belongs to the year its Thursday is in.
    fn iso_week(&self, weekday: i64) -> (i64, u32) {
        let from_monday = (weekday + 6) % 7;
        let thursday = Civil::new(self.millis.saturating_add((3 - from_monday) * DAY));
        (thursday.year, (thursday.day_of_year() - 1) / 7 + 1)
    }
}

/// The n-th number of a seed, by SplitMix64: no state but the counter.
pub(super) fn draw(seed: u64, n: u64) -> u64 {
    let mut mixed = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A UUID of version 4 from two numbers.
pub(super) fn uuid(high: u64, low: u64) -> String {
    let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
    let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_by_the_calendar() {
        let moment = Civil::new(1_709_210_096_007);
        assert_eq!(moment.plain(), "2024-02-29 12:34:56");
        assert_eq!(moment.iso(), "2024-02-29T12:34:56");
        assert_eq!(
            moment.strftime("%a %d %b %Y %j %U %W %V %I%p %%"),
            "Thu 29 Feb 2024 060 08 09 09 12PM %"
        );
        assert_eq!(Civil::new(0).plain(), "1970-01-01 00:00:00");
        assert_eq!(Civil::new(-1).plain(), "1969-12-31 23:59:59");
        assert_eq!(Civil::new(1_735_603_200_000).strftime("%G-W%V"), "2025-W01");
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let text = uuid(draw(7, 0), draw(7, 1));
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"));
        assert_ne!(text, uuid(draw(7, 2), draw(7, 3)));
    }
}
