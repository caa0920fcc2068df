//! Taking known values out of what comes back.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::reading::is_essential;
use super::search::{Cut, Found, Search};
use super::{
    Piece, SHORTEST, SHORTEST_BEGUN, SHORTEST_LINE, SHORTEST_PART, Secret, each_text, mask_of,
    pieces, placeholder,
};
use crate::value::Value;

/// A stream holds back no more than this of what may become a value.
const MOST_HELD: usize = 64 * 1024;

/// Known values, and what stands for them.
#[derive(Clone, Default)]
pub struct Scrubber {
    known: Arc<Known>,
    /// The run whose placeholders are preferred.
    run: Option<String>,
}

#[derive(Clone, Default)]
struct Known {
    values: Vec<Sought>,
    search: Search,
}

/// A text that is looked for, and whose it is.
#[derive(Clone)]
struct Sought {
    value: String,
    owners: Vec<Owner>,
}

#[derive(Clone)]
struct Owner {
    run: String,
    input: String,
    /// None for what is not the value itself, so nothing that could be turned into it again.
    placeholder: Option<String>,
    mask: String,
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners = self.known.values.iter().flat_map(|it| &it.owners);
        f.debug_list().entries(owners.map(|it| &it.mask)).finish()
    }
}

/// A piece of a stream.
pub(crate) enum Scrubbed<'s> {
    Bytes(&'s [u8]),
    /// A secret, and what is seen instead.
    Secret(&'s [u8], &'s str),
}

/// A place in a text that must not stay, and what stands for it.
struct Hidden<'s> {
    at: Range<usize>,
    placeholder: Option<&'s str>,
    mask: &'s str,
}

impl Scrubber {
    /// Scrubs a value from now on, however a shell, JSON or a screen writes it; what `echo` makes of it
    /// and the longer lines of a value with several are masked as well.
    pub fn add(&mut self, run: &str, input: &str, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        let known = Arc::make_mut(&mut self.known);
        let is_new = known.own(value, run, input, true);
        if !is_new {
            return;
        }
        let echoed = echoed(value);
        let lines = value.lines().chain(echoed.lines());
        let lines = lines.filter(|line| line.len() >= SHORTEST_LINE);
        for other in lines.chain([echoed.as_str()]) {
            if other != value && other.len() >= SHORTEST {
                known.own(other, run, input, false);
            }
        }
    }

    /// Prefers the placeholders of a run where several stand for the same value.
    pub(crate) fn preferring(&self, run: &str) -> Scrubber {
        Scrubber {
            known: Arc::clone(&self.known),
            run: Some(run.to_owned()),
        }
    }

    /// Whether there is nothing to scrub.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.values.is_empty()
    }

    /// Whether some bytes hold one of the values, or part of one where they are cut.
    pub(crate) fn finds(&self, bytes: &[u8]) -> bool {
        let cut = Cut {
            begin: true,
            end: true,
            rows: true,
        };
        !self.known.search.all(bytes, cut).is_empty()
    }

    /// Whether a value is scrubbed as a whole.
    pub(crate) fn knows(&self, value: &str) -> bool {
        let mut known = self.known.values.iter().filter(|it| it.value == value);
        known.any(|it| it.owners.iter().any(|owner| owner.placeholder.is_some()))
    }

    /// The secrets that a text tells something of.
    pub(crate) fn told_by(&self, text: &str) -> Vec<Secret> {
        let cut = Cut {
            begin: true,
            end: true,
            rows: true,
        };
        let mut told: Vec<Secret> = Vec::new();
        for found in self.known.search.all(text.as_bytes(), cut) {
            let owner = self.owner(&found);
            if told
                .iter()
                .any(|it| it.run == owner.run && it.input == owner.input)
            {
                continue;
            }
            let is_value = |it: &&Owner| {
                it.run == owner.run && it.input == owner.input && it.placeholder.is_some()
            };
            let mut values = self.known.values.iter();
            let whole = values.find(|it| it.owners.iter().any(|owner| is_value(&owner)));
            told.extend(whole.map(|whole| Secret {
                run: owner.run.clone(),
                input: owner.input.clone(),
                value: whole.value.clone(),
            }));
        }
        told
    }

    /// Where a text that is still being written ends with the beginning of a value, and what is seen
    /// instead of it.
    pub(crate) fn begun(&self, text: &str) -> Option<(usize, &str)> {
        let search = &self.known.search;
        let (at, which) = search.begun(text.as_bytes(), SHORTEST_BEGUN)?;
        let owner = self.known.values[which].owners.first()?;
        Some((at, &owner.mask))
    }

    /// What is to be hidden of what was found: what overlaps is one. A value that is there as a whole is
    /// that value, also where it could be part of another: of such a part the rest is hidden, if there is
    /// enough of it to be told from ordinary text.
    fn hidden(&self, text: &[u8], found: Vec<Found>) -> Vec<Hidden<'_>> {
        let (parts, whole): (Vec<Found>, Vec<Found>) = found.into_iter().partition(|it| it.is_part);
        let joined = self.joined(whole).into_iter();
        let (mut all, lines): (Vec<_>, Vec<_>) = joined.partition(|(_, of)| self.is_own(of));
        let lines = lines.into_iter().map(|(at, of)| Found {
            is_plain: of.is_plain && of.at == at,
            at,
            ..of
        });
        let mut others: Vec<Found> = lines.collect();
        for part in parts {
            for at in outside(&part.at, &all) {
                if letters(&text[at.clone()]) >= SHORTEST {
                    others.push(Found { at, ..part.clone() });
                }
            }
        }
        all.extend(self.joined(others));
        all.sort_by_key(|(at, _)| at.start);
        let starts = all.iter().map(|(at, _)| at.start).skip(1);
        let starts: Vec<usize> = starts.chain([text.len()]).collect();
        let mut after = 0;
        let all = all.into_iter().zip(starts).map(|((at, of), until)| {
            let is_plain = of.is_plain && of.at == at && !is_word(text, &at);
            let at = match is_plain {
                true => at,
                false => unquoted(text, at, after..until),
            };
            after = at.end;
            let owner = self.owner(&of);
            Hidden {
                at,
                placeholder: owner.placeholder.as_deref().filter(|_| is_plain),
                mask: &owner.mask,
            }
        });
        all.collect()
    }

    /// What was found, with what overlaps as one.
    fn joined(&self, mut found: Vec<Found>) -> Vec<(Range<usize>, Found)> {
        found.sort_by_key(|it| (it.at.start, std::cmp::Reverse(it.at.end), !it.is_plain));
        let mut all: Vec<(Range<usize>, Found)> = Vec::new();
        for found in found {
            match all.last_mut() {
                Some((at, of)) if found.at.start < at.end => {
                    at.end = at.end.max(found.at.end);
                    let is_whole = found.at == *at;
                    if is_whole
                        && (found.is_plain, self.is_own(&found)) > (of.is_plain, self.is_own(of))
                    {
                        *of = found;
                    }
                }
                _ => all.push((found.at.clone(), found)),
            }
        }
        all
    }

    /// Whose secret something is: rather that of the preferred run, and rather a value than part of one.
    fn owner(&self, found: &Found) -> &Owner {
        let owners = &self.known.values[found.which].owners;
        let rank = |it: &&Owner| (Some(&it.run) != self.run.as_ref(), it.placeholder.is_none());
        owners.iter().min_by_key(rank).unwrap_or(&owners[0])
    }

    fn is_own(&self, found: &Found) -> bool {
        self.owner(found).placeholder.is_some()
    }

    /// A text with placeholders for the values in it.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut scrubbed = String::with_capacity(text.len());
        let mut is_changed = false;
        let mut is_begin = true;
        for piece in pieces(text) {
            match piece {
                Piece::Secret(place) => scrubbed.push_str(place.text),
                Piece::Broken => {}
                Piece::Text(text) => {
                    let cut = Cut {
                        begin: is_begin,
                        end: true,
                        rows: true,
                    };
                    let found = self.known.search.all(text.as_bytes(), cut);
                    let mut after = 0;
                    for hidden in self.hidden(text.as_bytes(), found) {
                        scrubbed.push_str(&text[after..hidden.at.start]);
                        scrubbed.push_str(hidden.placeholder.unwrap_or(hidden.mask));
                        after = hidden.at.end;
                        is_changed = true;
                    }
                    scrubbed.push_str(&text[after..]);
                }
            }
            is_begin = false;
        }
        is_changed.then_some(scrubbed)
    }

    /// A value with placeholders for the values in it.
    #[must_use]
    pub fn value(&self, value: &Value) -> Value {
        if self.is_empty() {
            return value.clone();
        }
        each_text(value, &|text| self.text(text))
    }

    /// Scrubs what comes in pieces. A value that two pieces share is found as well.
    pub(crate) fn stream(&self) -> Stream<'_> {
        Stream {
            scrubber: self,
            held: Vec::new(),
            has_begun: false,
        }
    }
}

impl Known {
    /// Looks for a text of an input; false, if it is known to be of its run.
    fn own(&mut self, value: &str, run: &str, input: &str, is_value: bool) -> bool {
        let which = self.values.iter().position(|it| it.value == value);
        let which = which.unwrap_or_else(|| {
            self.search.add(value);
            self.values.push(Sought {
                value: value.to_owned(),
                owners: Vec::new(),
            });
            self.values.len() - 1
        });
        let owners = &mut self.values[which].owners;
        let mut known = owners.iter();
        if known.any(|it| it.run == run && it.placeholder.is_some() == is_value) {
            return false;
        }
        owners.push(Owner {
            run: run.to_owned(),
            input: input.to_owned(),
            placeholder: is_value.then(|| placeholder(run, input)),
            mask: mask_of(input),
        });
        true
    }
}

/// What of a place is outside others, which are in order.
fn outside(place: &Range<usize>, others: &[(Range<usize>, Found)]) -> Vec<Range<usize>> {
    let mut outside = Vec::new();
    let mut from = place.start;
    for (other, _) in others {
        if other.end > from && other.start < place.end {
            outside.push(from..other.start.max(from));
            from = other.end;
        }
    }
    outside.push(from..place.end.max(from));
    outside
}

/// How many letters a text has besides quotes and blanks.
fn letters(text: &[u8]) -> usize {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|it| is_essential(*it)).count()
}

/// Whether a place is all of a word in quotes, as commands have it: who sees it sees no quotes.
fn is_word(text: &[u8], at: &Range<usize>) -> bool {
    text[..at.start].ends_with(b"'") && text[at.end..].starts_with(b"'")
}

/// A place with the quotes around it, between what is before and what comes after.
fn unquoted(text: &[u8], at: Range<usize>, within: Range<usize>) -> Range<usize> {
    let is_quote = |byte: &u8| matches!(byte, b'\'' | b'"' | b'\\');
    let is_escape = |byte: &&u8| **byte == b'\\';
    let before = text[within.start..at.start].iter().rev();
    let quotes = before.take_while(|it| is_quote(it)).count();
    let mut begin = at.start - quotes;
    if text[begin] != b'\\' && is_quote(&text[begin]) && text[within.start..begin].ends_with(b"$") {
        begin -= 1;
    }
    let rest = &text[at.end..within.end];
    let escapes = text[at.clone()].iter().rev().take_while(is_escape).count();
    if escapes % 2 == 1 && rest.first().is_some_and(u8::is_ascii_lowercase) {
        // The last of them is not of the value, and goes with what follows.
        return begin..at.end + 1;
    }
    let quotes = rest.iter().take_while(|it| is_quote(it)).count();
    let escapes = rest[..quotes].iter().rev().take_while(is_escape).count();
    begin..at.end + quotes - escapes
}

/// A value as `echo` of a plain shell prints it.
fn echoed(value: &str) -> String {
    let mut echoed = String::with_capacity(value.len());
    let mut letters = value.chars().peekable();
    while let Some(letter) = letters.next() {
        let meant = match (letter, letters.peek()) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some('a')) => '\u{7}',
            ('\\', Some('b')) => '\u{8}',
            ('\\', Some('f')) => '\u{c}',
            ('\\', Some('v')) => '\u{b}',
            ('\\', Some('\\')) => '\\',
            _ => {
                echoed.push(letter);
                continue;
            }
        };
        letters.next();
        echoed.push(meant);
    }
    echoed
}

/// A stream that is scrubbed.
pub(crate) struct Stream<'s> {
    scrubber: &'s Scrubber,
    /// What may be the beginning of a value.
    held: Vec<u8>,
    /// Something was given: what follows is not where the text begins.
    has_begun: bool,
}

impl Stream<'_> {
    pub(crate) fn push(&mut self, bytes: &[u8], give: impl FnMut(Scrubbed<'_>)) {
        self.held.extend_from_slice(bytes);
        self.give(false, give);
    }

    pub(crate) fn end(&mut self, give: impl FnMut(Scrubbed<'_>)) {
        self.give(true, give);
    }

    fn give(&mut self, is_end: bool, mut give: impl FnMut(Scrubbed<'_>)) {
        let search = &self.scrubber.known.search;
        let begin = !self.has_begun;
        let cut = Cut {
            begin,
            end: is_end,
            rows: true,
        };
        let (found, part) = search.so_far(&self.held, cut);
        let (_, mut open) = search.so_far(&self.held, Cut { rows: false, ..cut });
        // So much of a value may go on in the next row, or be all that comes of it. Less of one does not
        // hold a line back.
        if self.held.len() - part > SHORTEST_PART {
            open = open.min(part);
        }
        let hidden = self.scrubber.hidden(&self.held, found);
        let mut until = match is_end || self.held.len() - open > MOST_HELD {
            true => self.held.len(),
            false => open,
        };
        // What may become a longer value is held as a whole.
        for hidden in &hidden {
            if hidden.at.contains(&until) {
                until = hidden.at.start;
            }
        }
        let mut after = 0;
        for hidden in hidden.iter().take_while(|it| it.at.end <= until) {
            if hidden.at.start > after {
                give(Scrubbed::Bytes(&self.held[after..hidden.at.start]));
            }
            give(Scrubbed::Secret(&self.held[hidden.at.clone()], hidden.mask));
            after = hidden.at.end;
        }
        if until > after {
            give(Scrubbed::Bytes(&self.held[after..until]));
        }
        self.has_begun |= until > 0;
        self.held.drain(..until);
    }
}
