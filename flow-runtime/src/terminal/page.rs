//! Long texts in pages.

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// Where the next part begins, if there is one.
    pub(super) next: Option<u64>,
}

/// The part of a text that begins at this character and has at most so many.
pub(super) fn page(text: &str, start: u64, most: usize) -> Page {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let mut rest = text.chars();
    let skipped = rest.by_ref().take(start).count();
    let rest = rest.as_str();
    let end = rest.char_indices().nth(most).map(|(at, _)| at);
    Page {
        text: rest[..end.unwrap_or(rest.len())].to_owned(),
        next: end.map(|_| (skipped + most) as u64),
    }
}

/// The last lines of a text.
pub(super) fn last_lines(text: &str, count: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body
        .rmatch_indices('\n')
        .nth(count.saturating_sub(1))
        .map_or(0, |(at, _)| at + 1);
    &text[start..]
}

/// The last characters of a text, and whether some were left out.
pub(super) fn last_characters(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().rev().nth(most.saturating_sub(1)) {
        Some((0, _)) | None => (text, false),
        Some((at, _)) => (&text[at..], true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_put_together_are_the_text() {
        let text = "aé漢\nbcd";
        for most in 1..10 {
            let mut whole = String::new();
            let mut at = Some(0);
            while let Some(start) = at {
                let part = page(text, start, most);
                whole.push_str(&part.text);
                at = part.next;
            }
            assert_eq!(whole, text);
        }
    }

    #[test]
    fn the_last_lines_and_characters_are_counted_from_the_end() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb\nc", 1), "c");
        assert_eq!(last_lines("a", 5), "a");
        assert_eq!(last_characters("aé漢", 2), ("é漢", true));
        assert_eq!(last_characters("aé漢", 3), ("aé漢", false));
        assert_eq!(last_characters("", 3), ("", false));
    }
}
