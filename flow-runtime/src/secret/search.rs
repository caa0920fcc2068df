//! Finding values in a text, however they are written there.
//!
//! An automaton reads the text once for all values. Its states are how much of a value has been read;
//! they are bits, so that a value which repeats itself costs no more than others. What it keeps are the
//! ends of values; where one begins is found by reading backwards from there.

use std::collections::HashMap;
use std::ops::Range;

use super::reading::{
    LONGEST, NOISES, Noise, Reading, follows_cut, is_between, is_blank, is_cut_off, is_cut_on,
    is_essential, is_quote, readings,
};
use super::{SHORTEST_BROKEN, SHORTEST_PART};

/// How many beginnings of a value are looked at where a text is cut.
const MOST_TRIED: usize = 4;

/// Where a text was cut off within what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) begin: bool,
    pub(super) end: bool,
    /// A screen may have broken it into rows.
    pub(super) rows: bool,
}

/// A place in a text that has a value, or part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) at: Range<usize>,
    /// Which of the values, in the order they were added.
    pub(super) which: usize,
    /// It stands there as it is.
    pub(super) is_plain: bool,
    /// Its beginning or its end is not there.
    pub(super) is_part: bool,
}

/// What is looked for.
#[derive(Clone, Default)]
pub(super) struct Search {
    shapes: Vec<Shape>,
    /// The states that go on with a character.
    on: Letters<Bits>,
    /// The values that begin with a character.
    starts: Letters<Vec<usize>>,
    /// Bytes that a value may begin with.
    first: Vec<bool>,
    /// The states that go on with a character in another form.
    encoded: Bits,
    /// The states that go on with what is nothing of a value.
    past: [Bits; NOISES],
    /// The states in which a value has been read.
    ends: Bits,
    /// The states that a text may begin with that was cut, and those it may end with.
    cut_begin: Bits,
    cut_end: Bits,
}

/// A value: its characters are the states `from..from + letters.len()`.
#[derive(Clone)]
struct Shape {
    from: usize,
    letters: Vec<char>,
    value: String,
    /// How much of the value follows the last of the letters.
    rest: usize,
    /// It is found in quotes.
    is_quoted: bool,
}

/// Something for each letter; most are of ASCII.
#[derive(Clone, Default)]
struct Letters<T> {
    ascii: Vec<T>,
    others: HashMap<char, T>,
}

impl<T: Default + Clone> Letters<T> {
    fn get(&self, letter: char) -> Option<&T> {
        match letter.is_ascii() {
            true => self.ascii.get(letter as usize),
            false => self.others.get(&letter),
        }
    }

    fn get_mut(&mut self, letter: char) -> &mut T {
        if !letter.is_ascii() {
            return self.others.entry(letter).or_default();
        }
        self.ascii.resize(128, T::default());
        &mut self.ascii[letter as usize]
    }
}

#[derive(Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    fn set(&mut self, state: usize) {
        let word = state / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (state % 64);
    }
}

impl Search {
    /// Looks for a value from now on. One of few letters is found with all that it has, in quotes if it has
    /// signs that want them; of a longer one the letters are found, whatever is between them.
    pub(super) fn add(&mut self, value: &str) {
        let essential = value.chars().filter(|it| is_essential(*it)).count();
        let is_loose = essential >= SHORTEST_BROKEN;
        // Lists of numbers are not one that was broken into rows.
        let is_number = value.len() < SHORTEST_PART && value.bytes().all(|it| it.is_ascii_digit());
        // Nobody puts quotes into a word.
        let is_quoted = is_loose || !value.chars().all(char::is_alphanumeric);
        let from = self.shapes.last().map_or(0, Shape::end);
        let mut shape = Shape {
            from,
            letters: Vec::new(),
            value: value.to_owned(),
            rest: 0,
            is_quoted,
        };
        let mut between = String::new();
        for letter in value.chars() {
            if is_loose && !is_essential(letter) {
                between.push(letter);
                continue;
            }
            let state = shape.end();
            shape.letters.push(letter);
            if state == from {
                between.clear();
                continue;
            }
            // The state is that of the letter before.
            let state = state - 1;
            self.on.get_mut(letter).set(state);
            let mut past = |noise: Noise| self.past[noise as usize].set(state);
            if is_quoted {
                past(Noise::Quote);
                self.encoded.set(state);
            }
            if is_loose && !is_number {
                past(Noise::Row);
            }
            if between.contains(is_blank) {
                past(Noise::Blank);
            }
            if between.contains(is_quote) {
                past(Noise::Encoded);
            }
            if between.contains('\n') {
                past(Noise::Prompt);
            }
            between.clear();
        }
        shape.rest = between.len();
        let (Some(first), Some(count)) =
            (shape.letters.first(), shape.letters.len().checked_sub(1))
        else {
            return;
        };
        self.first.resize(256, false);
        self.first[usize::from(first.encode_utf8(&mut [0; 4]).as_bytes()[0])] = true;
        if is_quoted {
            self.first[usize::from(b'\\')] = true;
            self.first[usize::from(b'^')] = true;
        }
        let which = self.shapes.len();
        self.starts.get_mut(*first).push(which);
        self.ends.set(from + count);
        if is_loose {
            (SHORTEST_PART..=count).for_each(|read| {
                self.cut_end.set(from + read - 1);
                self.cut_begin.set(from + count - read);
            });
        }
        self.shapes.push(shape);
    }

    fn words(&self) -> usize {
        self.ends.0.len()
    }

    /// The value that a state is of.
    fn shape_of(&self, state: usize) -> usize {
        self.shapes.partition_point(|shape| shape.end() <= state)
    }

    /// All values in a text. Those that are the same overlap only at their ends.
    pub(super) fn all(&self, text: &[u8], cut: Cut) -> Vec<Found> {
        self.read(text, cut).0
    }

    /// The same in a text that goes on, and where in it something begins that may become a value.
    pub(super) fn so_far(&self, text: &[u8], cut: Cut) -> (Vec<Found>, usize) {
        let (found, mut open) = self.read(text, cut);
        for (word, bits) in &mut open {
            *bits &= !self.ends.word(*word);
        }
        let whole = Back {
            search: self,
            text,
            cut,
            words: 0..self.words(),
        };
        (found, whole.open(open).unwrap_or(text.len()))
    }

    /// The longest beginning of a value, of so many letters at least, that a text ends with which goes on:
    /// where it begins, and of which value it is.
    pub(super) fn begun(&self, text: &[u8], least: usize) -> Option<(usize, usize)> {
        let cut = Cut {
            begin: false,
            end: false,
            rows: false,
        };
        let (_, open) = self.read(text, cut);
        let mut begun = Vec::new();
        for (word, bits) in open {
            let mut bits = bits & !self.ends.word(word);
            while bits != 0 {
                let state = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let which = self.shape_of(state);
                let from = self.shapes[which].from;
                if state + 1 < from + least {
                    continue;
                }
                let back = Back {
                    search: self,
                    text,
                    cut,
                    words: from / 64..state / 64 + 1,
                };
                let begin = back.open(vec![(state / 64, 1 << (state % 64))]);
                begun.extend(begin.map(|begin| (begin, which)));
            }
        }
        begun.into_iter().min()
    }

    fn read(&self, text: &[u8], cut: Cut) -> (Vec<Found>, Vec<(usize, u64)>) {
        let mut found = Vec::new();
        let mut now = Vec::new();
        if self.shapes.is_empty() {
            return (found, now);
        }
        let mut ring = Ring::new(self.words());
        let mut cuts = self.cuts(text, cut).into_iter().peekable();
        // Up to where a value may go on whose beginning is not there.
        let mut goes_on = 0;
        let mut at = 0;
        while at <= text.len() {
            if ring.is_empty() && goes_on <= at {
                let until = cuts.peek().copied().unwrap_or(text.len());
                let skipped = text[at..until].iter();
                let skipped = skipped.take_while(|byte| !self.first[usize::from(**byte)]);
                at += skipped.count();
            }
            if cuts.next_if_eq(&at).is_some() {
                goes_on = at + LONGEST;
            }
            ring.take(at, &mut now);
            for part in 0..now.len() {
                let (word, bits) = now[part];
                let mut ended = bits & self.ends.word(word);
                while ended != 0 {
                    let state = word * 64 + ended.trailing_zeros() as usize;
                    ended &= ended - 1;
                    let which = self.shape_of(state);
                    found.extend(self.found(text, cut, at, which, state));
                    self.shapes[which].clear(&mut ring, &mut now);
                }
            }
            let is_end = at == text.len();
            if (is_end && cut.end) || (!now.is_empty() && is_cut_off(text, at)) {
                self.parts(text, cut, at, &now, &mut found);
            }
            if is_end {
                break;
            }
            readings(text, at, |length, reading| {
                let to = at + length;
                match reading {
                    Reading::Plain(letter) | Reading::Encoded(letter) => {
                        let is_plain = matches!(reading, Reading::Plain(_));
                        if let Some(on) = self.on.get(letter) {
                            for (word, bits) in &now {
                                let mut bits = bits & on.word(*word);
                                if !is_plain {
                                    bits &= self.encoded.word(*word);
                                }
                                ring.put(to, *word, bits << 1);
                                ring.put(to, *word + 1, bits >> 63);
                            }
                            let part = (goes_on > at).then_some(&self.cut_begin.0);
                            for (word, begins) in part.into_iter().flatten().enumerate() {
                                let bits = begins & on.word(word);
                                ring.put(to, word, bits << 1);
                                ring.put(to, word + 1, bits >> 63);
                            }
                        }
                        for which in self.starts.get(letter).into_iter().flatten() {
                            let state = self.shapes[*which].from;
                            let is_taken = is_plain || self.is_encoded(state);
                            ring.put(to, state / 64, u64::from(is_taken) << (state % 64));
                        }
                    }
                    Reading::Nothing(Noise::Row) if !cut.rows => {}
                    Reading::Nothing(noise) => {
                        let past = &self.past[noise as usize];
                        for (word, bits) in &now {
                            ring.put(to, *word, bits & past.word(*word));
                        }
                    }
                    Reading::Open => {
                        for (word, bits) in &now {
                            ring.put(to, *word, *bits & !self.ends.word(*word));
                        }
                    }
                }
            });
            if !is_between(text[at]) {
                goes_on = 0;
            }
            at += 1;
        }
        (found, now)
    }

    fn is_encoded(&self, state: usize) -> bool {
        self.encoded.word(state / 64) >> (state % 64) & 1 == 1
    }

    /// Where values may go on whose beginning is not there.
    fn cuts(&self, text: &[u8], cut: Cut) -> Vec<usize> {
        if self.cut_begin.0.is_empty() {
            return Vec::new();
        }
        let begin = cut.begin.then_some(0);
        let after = (3..text.len()).filter(|at| is_cut_on(text, *at));
        begin.into_iter().chain(after).collect()
    }

    /// What has been found at its end.
    fn found(
        &self,
        text: &[u8],
        cut: Cut,
        end: usize,
        which: usize,
        state: usize,
    ) -> Option<Found> {
        let shape = &self.shapes[which];
        let (core, rest) = shape
            .value
            .as_bytes()
            .split_at(shape.value.len() - shape.rest);
        if state + 1 == shape.end() && text[..end].ends_with(core) && text[end..].starts_with(rest)
        {
            return Some(Found {
                at: end - core.len()..end + rest.len(),
                which,
                is_plain: true,
                is_part: false,
            });
        }
        let words = shape.from / 64..state / 64 + 1;
        let back = Back {
            search: self,
            text,
            cut,
            words,
        };
        let (begin, is_begun) = back.begin(end, shape.from, state)?;
        Some(Found {
            at: begin..end,
            which,
            is_plain: false,
            is_part: !is_begun || state + 1 < shape.end(),
        })
    }

    /// The longest beginnings of values that have been read where the text is cut.
    fn parts(
        &self,
        text: &[u8],
        cut: Cut,
        at: usize,
        now: &[(usize, u64)],
        found: &mut Vec<Found>,
    ) {
        let mut states: Vec<usize> = Vec::new();
        for (word, bits) in now {
            let mut bits = bits & self.cut_end.word(*word);
            while bits != 0 {
                states.push(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
        states.sort_unstable();
        let (mut done, mut tried) = (None, (usize::MAX, 0));
        for state in states.into_iter().rev() {
            let which = self.shape_of(state);
            tried = match tried {
                (of, count) if of == which => (which, count + 1),
                _ => (which, 1),
            };
            // Only a value that repeats itself has more.
            if done != Some(which)
                && tried.1 <= MOST_TRIED
                && let Some(part) = self.found(text, cut, at, which, state)
            {
                done = Some(which);
                // What has been read to its end may be read as less, too.
                let begin = part.at.start;
                let mut before = found.iter().rev().take_while(|it| it.at.end > begin);
                if !before.any(|it| it.which == which && it.at.start <= begin) {
                    found.push(part);
                }
            }
        }
    }
}

impl Shape {
    fn end(&self) -> usize {
        self.from + self.letters.len()
    }

    /// Forgets what has been read of it, except where it is almost read: what ends with the letter of an
    /// escape may go on to end with the letter itself.
    fn clear(&self, ring: &mut Ring, now: &mut [(usize, u64)]) {
        let kept = match self.is_quoted {
            true => SHORTEST_PART.min(self.letters.len() - 1),
            false => 0,
        };
        let (from, end) = (self.from, self.end() - kept);
        let others = |word: usize| {
            let below = match from.saturating_sub(word * 64) {
                count @ 0..64 => (1_u64 << count) - 1,
                _ => u64::MAX,
            };
            let above = match end.saturating_sub(word * 64) {
                count @ 0..64 => u64::MAX << count,
                _ => 0,
            };
            below | above
        };
        for (word, bits) in now.iter_mut() {
            *bits &= others(*word);
        }
        for slot in &mut ring.slots {
            for word in from / 64..=(end - 1) / 64 {
                slot.bits[word] &= others(word);
            }
        }
    }
}

/// The states at the places that readings lead to.
struct Ring {
    slots: Vec<Slot>,
    /// How many words of them may have states.
    count: usize,
}

#[derive(Clone)]
struct Slot {
    bits: Vec<u64>,
    /// The words that may have states, and whether each is among them.
    words: Vec<usize>,
    listed: Vec<bool>,
}

impl Ring {
    fn new(words: usize) -> Ring {
        let slot = Slot {
            // One more, which a shift may write nothing to.
            bits: vec![0; words + 1],
            words: Vec::new(),
            listed: vec![false; words + 1],
        };
        Ring {
            slots: vec![slot; LONGEST + 1],
            count: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn put(&mut self, at: usize, word: usize, bits: u64) {
        if bits == 0 {
            return;
        }
        let slot = &mut self.slots[at % (LONGEST + 1)];
        if !std::mem::replace(&mut slot.listed[word], true) {
            slot.words.push(word);
            self.count += 1;
        }
        slot.bits[word] |= bits;
    }

    /// Takes out the states at a place.
    fn take(&mut self, at: usize, into: &mut Vec<(usize, u64)>) {
        into.clear();
        let slot = &mut self.slots[at % (LONGEST + 1)];
        self.count -= slot.words.len();
        for word in slot.words.drain(..) {
            slot.listed[word] = false;
            let bits = std::mem::take(&mut slot.bits[word]);
            if bits != 0 {
                into.push((word, bits));
            }
        }
    }
}

/// Reads backwards.
struct Back<'s> {
    search: &'s Search,
    text: &'s [u8],
    cut: Cut,
    /// The words of the states that matter.
    words: Range<usize>,
}

impl Back<'_> {
    /// Where a value begins that has been read up to a state, and whether it does: the text may begin
    /// within it.
    fn begin(&self, end: usize, from: usize, state: usize) -> Option<(usize, bool)> {
        let cut = (state - from).checked_sub(SHORTEST_PART);
        let cut = cut.map(|most| from..from + most + 1);
        self.read(end, vec![(state / 64, 1 << (state % 64))], cut)
    }

    /// Where the first of some values begins that have been read up to the end.
    fn open(&self, states: Vec<(usize, u64)>) -> Option<usize> {
        let begun = self.read(self.text.len(), states, None);
        begun.map(|(at, _)| at)
    }

    /// The first place from which the states are reached, and whether a value begins there: what is read in several ways may seem to begin
    /// with the letter of an escape.
    fn read(
        &self,
        end: usize,
        states: Vec<(usize, u64)>,
        cut: Option<Range<usize>>,
    ) -> Option<(usize, bool)> {
        let search = self.search;
        let count = self.words.len();
        let mut ring = vec![vec![0_u64; count]; LONGEST + 1];
        for (word, bits) in states {
            ring[end % (LONGEST + 1)][word - self.words.start] |= bits;
        }
        let mut lowest = None;
        let mut here = vec![0_u64; count];
        let mut last = end;
        for at in (0..end).rev() {
            if last > at + LONGEST {
                break;
            }
            here.fill(0);
            let mut is_start = false;
            readings(self.text, at, |length, reading| {
                if at + length > end {
                    return;
                }
                let to = &ring[(at + length) % (LONGEST + 1)];
                match reading {
                    Reading::Plain(letter) | Reading::Encoded(letter) => {
                        let is_plain = matches!(reading, Reading::Plain(_));
                        let starts = search.starts.get(letter).into_iter().flatten();
                        let mut starts = starts.map(|which| search.shapes[*which].from);
                        is_start |= starts.any(|state| {
                            let word = (state / 64).checked_sub(self.words.start);
                            let bits = word.and_then(|word| to.get(word)).copied().unwrap_or(0);
                            bits >> (state % 64) & 1 == 1 && (is_plain || search.is_encoded(state))
                        });
                        let Some(on) = search.on.get(letter) else {
                            return;
                        };
                        for part in 0..count {
                            let word = self.words.start + part;
                            let above = to.get(part + 1).map_or(0, |bits| bits << 63);
                            let mut bits = (to[part] >> 1 | above) & on.word(word);
                            if !is_plain {
                                bits &= search.encoded.word(word);
                            }
                            here[part] |= bits;
                        }
                    }
                    Reading::Nothing(Noise::Row) if !self.cut.rows => {}
                    Reading::Nothing(noise) => {
                        let past = &search.past[noise as usize];
                        for part in 0..count {
                            here[part] |= to[part] & past.word(self.words.start + part);
                        }
                    }
                    Reading::Open => {
                        let may_start = matches!(self.text[at], b'\\' | 0x80..);
                        is_start |= may_start && at + length == end && !self.cut.end;
                        for part in 0..count {
                            here[part] |= to[part];
                        }
                    }
                }
            });
            if is_start {
                lowest = Some((at, true));
            }
            if let Some(states) = &cut
                && follows_cut(self.text, at, self.cut.begin)
            {
                let is_part = states.clone().any(|state| {
                    let bits = here[state / 64 - self.words.start];
                    let begins = search.cut_begin.word(state / 64);
                    bits & begins & 1 << (state % 64) != 0
                });
                if is_part && !is_start {
                    lowest = Some((at, false));
                }
            }
            if here.iter().any(|bits| *bits != 0) {
                last = at;
            }
            ring[at % (LONGEST + 1)].copy_from_slice(&here);
        }
        lowest
    }
}
