//! What a terminal shows: the emulator, read as text.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use alacritty_terminal::Term;
use alacritty_terminal::event::{Event, EventListener, WindowSize};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Osc52, TermMode};
use alacritty_terminal::vte::ansi::Processor;

use super::options::Size;

/// Replies kept for a program that never reads them.
const MAX_REPLIES: usize = 64 * 1024;

/// An emulator with scrollback.
pub(super) struct Screen {
    term: Term<Replies>,
    processor: Processor,
    replies: Replies,
    /// The primary screen as it was left, while the alternate one is shown.
    left: Option<String>,
    /// Changes whenever something was shown.
    version: u64,
    size: Size,
    scrollback: usize,
    /// The emulator has panicked and was replaced.
    failed: bool,
}

/// What must not be seen while it is being drawn.
pub(super) trait Hides {
    /// Whether that is nothing.
    fn hides_nothing(&self) -> bool;

    /// Where a text ends with the beginning of it, and what is seen instead.
    fn begun(&self, text: &str) -> Option<(usize, &str)>;
}

/// Rows as text.
struct Rows {
    text: String,
    /// Where the cursor stands in it, or where what is before it ends.
    cursor: usize,
}

fn is_letter(letter: char) -> bool {
    !letter.is_whitespace()
}

/// Collects what the emulator answers to queries.
#[derive(Clone, Debug)]
struct Replies(Arc<Mutex<Outbox>>);

#[derive(Debug)]
struct Outbox {
    bytes: Vec<u8>,
    size: Size,
}

impl Replies {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventListener for Replies {
    fn send_event(&self, event: Event) {
        let mut outbox = self.outbox();
        let reply = match event {
            Event::PtyWrite(text) => text,
            Event::TextAreaSizeRequest(format) => format(WindowSize {
                num_lines: outbox.size.rows,
                num_cols: outbox.size.columns,
                cell_width: 8,
                cell_height: 16,
            }),
            // Clipboard and colours are nobody's business here.
            _ => return,
        };
        if outbox.bytes.len() + reply.len() <= MAX_REPLIES {
            outbox.bytes.extend_from_slice(reply.as_bytes());
        }
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.rows).max(1)
    }

    fn columns(&self) -> usize {
        usize::from(self.columns).max(2)
    }
}

impl Screen {
    pub(super) fn new(size: Size, scrollback: usize) -> Screen {
        let outbox = Outbox {
            bytes: Vec::new(),
            size,
        };
        let replies = Replies(Arc::new(Mutex::new(outbox)));
        let config = Config {
            scrolling_history: scrollback,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Screen {
            term: Term::new(config, &size, replies.clone()),
            processor: Processor::new(),
            replies,
            left: None,
            version: 0,
            size,
            scrollback,
            failed: false,
        }
    }

    /// Shows bytes.
    pub(super) fn advance(&mut self, bytes: &[u8]) {
        self.guarded(|screen| screen.processor.advance(&mut screen.term, bytes));
        if self.left.is_some() && !self.is_alternate() {
            self.left = None;
        }
    }

    /// Whether the emulator has ever panicked.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Lets the emulator work. One that panics is replaced by an empty one: what a program writes
    /// must not end the session.
    fn guarded(&mut self, work: impl FnOnce(&mut Screen)) {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        if outcome.is_err() {
            let version = self.version;
            *self = Screen::new(self.size, self.scrollback);
            self.version = version;
            self.failed = true;
        }
        self.version += 1;
    }

    /// Keeps the primary screen for [`Screen::history`]: the alternate one is about to be shown.
    pub(super) fn leave_primary(&mut self) {
        if self.left.is_none() && !self.is_alternate() {
            self.left = Some(self.history());
        }
    }

    /// Ends the line that the cursor stands in, unless it stands at its start.
    pub(super) fn begin_line(&mut self) {
        if self.term.grid().cursor.point.column != Column(0) {
            self.advance(b"\r\n");
        }
    }

    /// A line begins where the cursor is, although the terminal has wrapped the one before it:
    /// blanks were written until it did, after a sign that is not part of it either.
    pub(super) fn part_line(&mut self, sign: char) {
        let grid = self.term.grid_mut();
        let above = Line(grid.cursor.point.line.0 - 1);
        let kept = -i32::try_from(grid.history_size()).unwrap_or(0);
        if grid.cursor.point.column != Column(0) || above < Line(kept) {
            return;
        }
        let row = &mut grid[above];
        let Some(last) = row.last_mut() else {
            return;
        };
        if !last.flags.contains(Flags::WRAPLINE) {
            return;
        }
        last.flags.remove(Flags::WRAPLINE);
        let columns = row.len();
        let mut cells = (0..columns).rev().map(Column);
        if let Some(column) = cells.find(|column| row[*column].c != ' ')
            && row[column].c == sign
        {
            row[column].c = ' ';
        }
        self.version += 1;
    }

    /// When an update that a program wants to show as a whole is shown regardless.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.processor.sync_timeout().sync_timeout()
    }

    /// Shows an update that has waited too long for its end.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            self.guarded(|screen| screen.processor.stop_sync(&mut screen.term));
        }
    }

    /// Shows what waits for its end: what wanted that has ended itself.
    pub(super) fn unsync(&mut self) {
        if self.deadline().is_some() {
            self.guarded(|screen| screen.processor.stop_sync(&mut screen.term));
        }
    }

    /// Whether the emulator has answered a query.
    pub(super) fn has_replies(&self) -> bool {
        !self.replies.outbox().bytes.is_empty()
    }

    /// Takes what the emulator answered to queries.
    pub(super) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies.outbox().bytes)
    }

    pub(super) fn resize(&mut self, size: Size) {
        self.size = size;
        self.replies.outbox().size = size;
        self.guarded(|screen| screen.term.resize(size));
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn is_alternate(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    /// Whether a program wants pasted text to be told from typed text.
    pub(super) fn wants_bracketed_paste(&self) -> bool {
        self.term.mode().contains(TermMode::BRACKETED_PASTE)
    }

    /// Whether the arrow keys send their application codes.
    pub(super) fn has_application_cursor(&self) -> bool {
        self.term.mode().contains(TermMode::APP_CURSOR)
    }

    /// What is visible, a line each row, without blank rows at the end and without the secret that is just
    /// being drawn.
    pub(super) fn visible(&self, secrets: &impl Hides) -> String {
        self.without_begun(secrets, self.rows(0, false))
    }

    /// The same, with lines joined that the terminal has wrapped.
    pub(super) fn unwrapped(&self, secrets: &impl Hides) -> String {
        self.without_begun(secrets, self.rows(0, true))
    }

    /// The line that the cursor stands in, up to there, joined with those it was wrapped from.
    pub(super) fn before_cursor(&self) -> String {
        let grid = self.term.grid();
        let cursor = grid.cursor.point;
        let kept = -i32::try_from(grid.history_size()).unwrap_or(0);
        let is_wrapped = |line: i32| {
            let last = grid[Line(line)].last();
            last.is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
        };
        let mut first = cursor.line.0;
        while first > kept && is_wrapped(first - 1) {
            first -= 1;
        }
        let mut text = String::new();
        for line in first..=cursor.line.0 {
            let columns = match line == cursor.line.0 {
                true => self.columns_before_cursor(),
                false => grid.columns(),
            };
            self.cells(line, 0..columns, &mut text);
        }
        text
    }

    /// Everything kept, scrolled-away lines included, with wrapped lines joined.
    pub(super) fn history(&self) -> String {
        self.with_left(self.rows(self.term.grid().history_size(), true).text)
    }

    /// The same without the secret that is just being drawn.
    pub(super) fn history_without(&self, secrets: &impl Hides) -> String {
        let rows = self.rows(self.term.grid().history_size(), true);
        self.with_left(self.without_begun(secrets, rows))
    }

    fn with_left(&self, kept: String) -> String {
        match &self.left {
            Some(left) if self.is_alternate() => format!("{left}\n{kept}"),
            _ => kept,
        }
    }

    /// Rows whose text up to the cursor does not end with the beginning of a secret: a program draws its
    /// line bit by bit, and the rest is about to come.
    fn without_begun(&self, secrets: &impl Hides, rows: Rows) -> String {
        let Rows { mut text, cursor } = rows;
        if secrets.hides_nothing() {
            return text;
        }
        let before = self.up_to_cursor();
        if let Some((begin, mask)) = secrets.begun(&before) {
            // The rows may be broken elsewhere, and have other blanks.
            let letters = before[begin..].matches(is_letter).count();
            let mut backwards = text[..cursor].rmatch_indices(is_letter);
            let found = letters.checked_sub(1).and_then(|it| backwards.nth(it));
            if let Some((at, _)) = found {
                text.replace_range(at..cursor, mask);
            }
        }
        text
    }

    /// What is visible up to the cursor, with lines joined that the terminal has wrapped.
    fn up_to_cursor(&self) -> String {
        let grid = self.term.grid();
        let (mut text, mut begun) = (String::new(), 0);
        for line in 0..grid.cursor.point.line.0 {
            self.cells(line, 0..grid.columns(), &mut text);
            let last = grid[Line(line)].last();
            if !last.is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE)) {
                let length = text[begun..].trim_end_matches(' ').len();
                text.truncate(begun + length);
                text.push('\n');
                begun = text.len();
            }
        }
        let columns = 0..self.columns_before_cursor();
        self.cells(grid.cursor.point.line.0, columns, &mut text);
        text
    }

    fn rows(&self, history: usize, joined: bool) -> Rows {
        let grid = self.term.grid();
        let mut text = String::new();
        let mut cursor = 0;
        // Where the last line with something on it ends, and where the current one starts.
        let (mut written, mut begun) = (0, 0);
        let first = -i32::try_from(history).unwrap_or(0);
        let last = i32::try_from(grid.screen_lines()).unwrap_or(i32::MAX);
        for line in first..last {
            let row = &grid[Line(line)];
            let wrapped = row
                .last()
                .is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE));
            let mut before = 0;
            if line == grid.cursor.point.line.0 {
                before = self.columns_before_cursor();
                self.cells(line, 0..before, &mut text);
                cursor = text.len();
            }
            self.cells(line, before..grid.columns(), &mut text);
            if joined && wrapped {
                continue;
            }
            let length = text[begun..].trim_end_matches(' ').len();
            text.truncate(begun + length);
            cursor = cursor.min(text.len());
            if length > 0 {
                written = text.len();
            }
            text.push('\n');
            begun = text.len();
        }
        text.truncate(written);
        Rows {
            cursor: cursor.min(written),
            text,
        }
    }

    /// The columns of the cursor's row that are before it.
    fn columns_before_cursor(&self) -> usize {
        let cursor = &self.term.grid().cursor;
        // A cursor that is about to wrap stands on the last character.
        cursor.point.column.0 + usize::from(cursor.input_needs_wrap)
    }

    /// Adds columns of a row.
    fn cells(&self, line: i32, columns: Range<usize>, text: &mut String) {
        let row = &self.term.grid()[Line(line)];
        for column in columns {
            let cell = &row[Column(column)];
            if cell
                .flags
                .intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER)
            {
                continue;
            }
            // A tab's first cell holds the tab, the others are blank.
            text.push(if cell.c == '\t' { ' ' } else { cell.c });
            text.extend(cell.zerowidth().into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Scrubber;

    fn screen(columns: u16, rows: u16) -> Screen {
        Screen::new(Size { columns, rows }, 100)
    }

    #[test]
    fn wrapped_lines_are_joined_and_wide_characters_are_whole() {
        let mut screen = screen(6, 3);
        screen.advance("abc漢字xyz\r\n\tt".as_bytes());
        assert_eq!(screen.visible(&Scrubber::default()), "abc漢\n字xyz\n     t");
        assert_eq!(screen.unwrapped(&Scrubber::default()), "abc漢字xyz\n     t");
    }

    #[test]
    fn a_line_that_was_wrapped_for_a_prompt_is_not_joined_with_it() {
        let mut screen = screen(10, 3);
        screen.advance("two⏎         \r⏎ \r\x1b[2K".as_bytes());
        screen.part_line('⏎');
        screen.advance(b"> ");
        assert_eq!(screen.history(), "two\n>");
        // The sign where no line was unfinished is gone already.
        screen.advance("\r\nthree\r\n⏎         \r⏎ \r\x1b[2K".as_bytes());
        screen.part_line('⏎');
        screen.begin_line();
        screen.advance(b"> four");
        screen.begin_line();
        screen.advance(b"five");
        assert_eq!(screen.history(), "two\n>\nthree\n> four\nfive");
    }

    #[test]
    fn the_history_outlives_the_alternate_screen() {
        let mut screen = screen(20, 2);
        screen.advance(b"one\r\ntwo\r\nthree");
        screen.leave_primary();
        screen.advance(b"\x1b[?1049h\x1b[Heditor");
        assert_eq!(screen.visible(&Scrubber::default()), "editor");
        assert_eq!(screen.history(), "one\ntwo\nthree\neditor");
        screen.advance(b"\x1b[?1049l");
        assert_eq!(screen.history(), "one\ntwo\nthree");
    }

    #[test]
    fn queries_are_answered() {
        let mut screen = screen(20, 2);
        screen.advance(b"\x1b[c\x1b[6n");
        assert_eq!(screen.take_replies(), b"\x1b[?6c\x1b[1;1R");
    }

    #[test]
    fn a_secret_is_not_seen_while_it_is_being_drawn() {
        let secret = "Kq7'Zk9 LmW2XwVbN8r";
        let mut secrets = Scrubber::default();
        secrets.add("r-1", "token", secret);
        secrets.add("r-1", "lines", "first of all\nsecond of all");
        let drawn = "a\r\n> echo \u{1b}[32m'Kq7'\\''Zk9 LmW2XwVbN8r";
        // In rows of every width, up to each of its letters.
        for columns in 7..40 {
            let mut screen = screen(columns, 9);
            for (at, letter) in drawn.char_indices() {
                screen.advance(letter.encode_utf8(&mut [0; 4]).as_bytes());
                let is_begun = at >= drawn.find('7').unwrap_or(0);
                let seen = [
                    screen.visible(&secrets),
                    screen.unwrapped(&secrets),
                    screen.history_without(&secrets),
                ];
                for seen in seen {
                    let seen = secrets.text(&seen).unwrap_or(seen);
                    let seen = crate::secret::mask(&seen).replace('\n', "");
                    let is_seen = seen.contains("Kq7");
                    assert!(!is_seen, "{columns}: {seen}");
                    assert_eq!(seen.contains("[secret token]"), is_begun, "{seen}");
                }
            }
        }
        let seen = |text: &str| {
            let mut screen = screen(40, 5);
            screen.advance(text.as_bytes());
            screen.visible(&secrets)
        };
        assert_eq!(seen("$ Kq"), "$ Kq");
        assert_eq!(seen("Kq7Zk\r\n"), "Kq7Zk");
        assert_eq!(seen("Kq7Zk\r\n$ "), "Kq7Zk\n$");
        assert_eq!(seen("> first of all\r\n> sec"), "> [secret lines]");
        // What is behind the cursor stays.
        assert_eq!(seen("Kq7Zk# rest\u{1b}[6D"), "[secret token]# rest");
    }
}
