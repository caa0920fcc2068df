//! The nearest known name to one that is not known.

/// The candidate that `name` was most likely meant to be.
///
/// A candidate that differs only in case wins; otherwise the one with the fewest insertions,
/// deletions, substitutions and swaps of neighbours, as long as there are at most a third as many
/// as `name` has letters. Of equally near candidates the first is taken.
///
/// ```
/// use flow_model::suggest::nearest;
/// assert_eq!(nearest("lenght", ["lower", "length"]), Some("length"));
/// assert_eq!(nearest("x", ["lower", "length"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    if wanted.is_empty() || wanted.len() > LONGEST {
        return None;
    }
    let mut allowed = (wanted.len() / 3).max(1);
    let mut best = None;
    let mut letters: Vec<char> = Vec::new();
    let mut rows = Rows::default();
    for candidate in candidates.into_iter().take(MOST) {
        letters.clear();
        letters.extend(candidate.chars().flat_map(char::to_lowercase));
        if letters.len().abs_diff(wanted.len()) > allowed {
            continue;
        }
        let Some(distance) = rows.distance(&wanted, &letters, allowed) else {
            continue;
        };
        // Another letter in a word of two leaves half of it: that is not a resemblance.
        let is_swap = wanted.iter().all(|letter| letters.contains(letter));
        if distance * 2 >= wanted.len().max(letters.len()) && distance > 0 && !is_swap {
            continue;
        }
        best = Some(candidate);
        // Only a nearer one is of interest from here on.
        match distance.checked_sub(1) {
            Some(nearer) => allowed = nearer,
            None => break,
        }
    }
    best
}

/// The same, or else a candidate of which `name` is a whole part: `text` for `input_text`.
pub fn nearest_or_part<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    nearest(name, candidates.clone()).or_else(|| {
        let mut candidates = candidates.into_iter();
        candidates.find(|candidate| candidate.split('_').any(|part| part == name))
    })
}

/// Names longer than this are not names anybody mistyped.
const LONGEST: usize = 128;

/// So many candidates are compared. Nobody chooses among more, and a definition may have tens of
/// thousands of names, all of them wrong.
const MOST: usize = 1000;

/// The last three rows of the table of distances between beginnings of two words.
#[derive(Default)]
struct Rows {
    before: Vec<usize>,
    above: Vec<usize>,
    row: Vec<usize>,
}

impl Rows {
    /// Damerau–Levenshtein distance, each pair of letters swapped at most once, if it is small
    /// enough.
    fn distance(&mut self, a: &[char], b: &[char], allowed: usize) -> Option<usize> {
        self.above.clear();
        self.above.extend(0..=b.len());
        for (i, x) in a.iter().enumerate() {
            self.row.clear();
            self.row.push(i + 1);
            for (j, y) in b.iter().enumerate() {
                let mut least = (self.above[j] + usize::from(x != y))
                    .min(self.above[j + 1] + 1)
                    .min(self.row[j] + 1);
                if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                    least = least.min(self.before[j - 1] + 1);
                }
                self.row.push(least);
            }
            // A swap reaches back two rows; from there on distances only grow.
            if self.row.iter().chain(&self.above).all(|d| *d > allowed) {
                return None;
            }
            std::mem::swap(&mut self.before, &mut self.above);
            std::mem::swap(&mut self.above, &mut self.row);
        }
        Some(self.above[b.len()]).filter(|distance| *distance <= allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_swap_of_neighbours_is_one_mistake() {
        assert_eq!(nearest("tojosn", ["tojson", "join"]), Some("tojson"));
        assert_eq!(nearest("fi", ["in", "if"]), Some("if"));
    }

    #[test]
    fn a_name_that_differs_only_in_case_wins() {
        assert_eq!(nearest("Upper", ["supper", "upper"]), Some("upper"));
    }

    #[test]
    fn the_smallest_distance_wins_and_then_the_first() {
        assert_eq!(nearest("bats", ["bits", "bat"]), Some("bits"));
        assert_eq!(
            nearest("regex_serch", ["regex_findall", "regex_search"]),
            Some("regex_search")
        );
    }

    #[test]
    fn names_too_far_away_are_not_suggested() {
        assert_eq!(nearest("frobnicate", ["first", "length"]), None);
        assert_eq!(nearest("a", ["b"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest(&"a".repeat(100_000), ["a"]), None);
    }

    #[test]
    fn names_are_compared_by_letter_not_by_byte() {
        assert_eq!(nearest("größe", ["grösse", "größen"]), Some("größen"));
    }
}
