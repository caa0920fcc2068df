//! Long texts in pages.

use std::sync::Arc;

/// A text that is read page by page. It stays as it was when its first page was read, whatever the
/// terminal does meanwhile.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Counts the texts, so that a cursor into an older one is known.
    edition: u64,
    text: Arc<str>,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// Where to read on, if there is more.
    pub(super) next: Option<String>,
}

impl Book {
    /// The first page of a text, with at most so many characters.
    pub(super) fn open(&mut self, text: &str, most: usize) -> Page {
        let end = text.char_indices().nth(most).map(|(at, _)| at);
        if end.is_some() {
            self.edition += 1;
            self.text = Arc::from(text);
        }
        self.page(text, 0, end)
    }

    /// The page at a cursor; `None` when it leads nowhere, or into a text that was replaced.
    pub(super) fn turn(&mut self, cursor: &str, most: usize) -> Option<Page> {
        let (edition, start) = cursor.split_once('-')?;
        if edition.parse() != Ok(self.edition) {
            return None;
        }
        let text = Arc::clone(&self.text);
        let start = start.parse().ok()?;
        let rest = text.get(start..)?;
        let end = rest.char_indices().nth(most).map(|(at, _)| start + at);
        Some(self.page(&text, start, end))
    }

    fn page(&self, text: &str, start: usize, end: Option<usize>) -> Page {
        Page {
            text: text[start..end.unwrap_or(text.len())].to_owned(),
            next: end.map(|end| format!("{}-{end}", self.edition)),
        }
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
            let mut book = Book::default();
            let mut part = book.open(text, most);
            let mut whole = part.text;
            while let Some(cursor) = part.next {
                part = book.turn(&cursor, most).expect("a page");
                whole.push_str(&part.text);
            }
            assert_eq!(whole, text);
        }
    }

    #[test]
    fn a_cursor_leads_into_its_own_text_or_nowhere() {
        let mut book = Book::default();
        let first = book.open("abcdef", 3).next.expect("more");
        assert_eq!(
            book.turn(&first, 9).map(|page| page.text),
            Some("def".to_owned())
        );
        let second = book.open("uvwxyz", 3).next.expect("more");
        assert_eq!(book.turn(&first, 9), None);
        assert_eq!(
            book.turn(&second, 9).map(|page| page.text),
            Some("xyz".to_owned())
        );
        for wrong in ["", "next", "2", "2-", "2-99", "x-1", "2--1"] {
            assert_eq!(book.turn(wrong, 9), None, "{wrong}");
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
