//! The text of a terminal in the order it came: a window with absolute positions.

/// The last part of a text that only grows. Positions count bytes from its very beginning.
#[derive(Debug)]
pub(super) struct Stream {
    text: String,
    /// The position of the window's first byte.
    base: u64,
    /// What is kept at least, of what there was.
    window: usize,
}

impl Stream {
    pub(super) fn new(window: usize) -> Stream {
        Stream {
            text: String::new(),
            base: 0,
            window: window.max(1024),
        }
    }

    /// Adds to the end and lets go of what is older than the window.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // Twice the window before anything moves, so that each byte moves once.
        if self.text.len() >= 2 * self.window {
            let mut cut = self.text.len() - self.window;
            while !self.text.is_char_boundary(cut) {
                cut += 1;
            }
            self.text.drain(..cut);
            self.base += cut as u64;
        }
    }

    /// Ends the current line, if it has begun.
    pub(super) fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
    }

    /// The position after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.base + self.text.len() as u64
    }

    /// All text of the window, and the index in it of a position; the first kept byte stands for
    /// those let go.
    pub(super) fn at(&self, position: u64) -> (&str, usize) {
        let index = position
            .saturating_sub(self.base)
            .min(self.text.len() as u64);
        let mut index = index as usize;
        while !self.text.is_char_boundary(index) {
            index += 1;
        }
        (&self.text, index)
    }

    /// The text from a position on.
    pub(super) fn since(&self, position: u64) -> &str {
        let (text, index) = self.at(position);
        &text[index..]
    }

    /// The position of an index of the window.
    pub(super) fn position(&self, index: usize) -> u64 {
        self.base + index as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_outlive_the_text() {
        let mut stream = Stream::new(1024);
        for _ in 0..10_000 {
            stream.push("é123456789\n");
        }
        assert_eq!(stream.end(), 120_000);
        let kept = stream.since(0);
        assert!((1024..=2048).contains(&kept.len()), "{}", kept.len());
        assert_eq!(stream.since(119_990), "123456789\n");
        assert_eq!(stream.since(200_000), "");
    }
}
