//! Where words go, and in which colour.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stderr, Stdout, Write};

use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style};
use flow_model::diagnostic;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

impl Color {
    fn wanted(self, terminal: bool) -> bool {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !set("NO_COLOR") && !dumb,
        }
    }
}

/// Results go to standard output, everything else to standard error.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    stderr: Stderr,
    /// Whether results and everything else stand on one screen.
    pub(crate) together: bool,
    /// How results are painted.
    pub(crate) paint: Paint,
    /// How everything else is painted.
    pub(crate) aside: Paint,
}

impl Output {
    pub(crate) fn new(color: Color) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        Output {
            paint: Paint(color.wanted(stdout.is_terminal())),
            aside: Paint(color.wanted(stderr.is_terminal())),
            together: stdout.is_terminal() && stderr.is_terminal(),
            stdout: BufWriter::new(stdout),
            stderr,
        }
    }

    /// Prints a part of the result.
    pub(crate) fn print(&mut self, text: impl Display) -> io::Result<()> {
        write!(self.stdout, "{text}")
    }

    /// Prints a line of the result.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// Makes sure that the result has left.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Tells something that is not the result. Nobody may be listening.
    pub(crate) fn tell(&mut self, text: impl Display) {
        let _ = writeln!(self.stderr, "{text}");
    }

    /// Says what went wrong.
    pub(crate) fn error(&mut self, message: &str) {
        let word = self.aside.red("error");
        self.tell(format_args!("{word}: {}", clean(message)));
    }

    /// Says what is odd.
    pub(crate) fn warning(&mut self, message: &str) {
        let word = self.aside.yellow("warning");
        self.tell(format_args!("{word}: {}", clean(message)));
    }

    /// Says what to do about it.
    pub(crate) fn help(&mut self, message: &str) {
        let word = self.aside.cyan("help");
        self.tell(format_args!("{word}: {}", clean(message)));
    }

    /// The columns of the terminal that results go to; `None` when they go elsewhere.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0))
    }
}

/// Puts words in colour, or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// How findings are drawn to match.
    /// No colours.
    pub(crate) const fn none() -> Self {
        Paint(false)
    }

    pub(crate) fn style(self) -> diagnostic::Style {
        if self.0 {
            diagnostic::Style::Colour
        } else {
            diagnostic::Style::Plain
        }
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with(AnsiColor::BrightRed.on_default().bold(), text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.with(AnsiColor::Cyan.on_default(), text)
    }
}

/// How a cell of a table looks.
pub(crate) type Look = fn(Paint, &str) -> String;

/// A text in a table.
pub(crate) struct Cell {
    text: String,
    look: Look,
}

impl Cell {
    /// On one line, whatever the text has in it.
    pub(crate) fn new(text: &str, look: Look) -> Self {
        Cell {
            text: clean(text),
            look,
        }
    }
}

/// As it is.
pub(crate) fn plain(_: Paint, text: &str) -> String {
    text.to_owned()
}

/// Columns under each other, the last one cut where the terminal ends.
pub(crate) fn table(rows: &[Vec<Cell>], paint: Paint, width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.width()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut used = 0;
        let mut gap = 0;
        for (cell, column) in row.iter().zip(&widths) {
            if cell.text.is_empty() {
                gap += column + 2;
                continue;
            }
            used += gap;
            let shown = match width {
                Some(width) => cut(&cell.text, width.saturating_sub(used)),
                None => cell.text.clone(),
            };
            if shown.is_empty() {
                break;
            }
            text.extend(std::iter::repeat_n(' ', gap));
            text.push_str(&(cell.look)(paint, &shown));
            used += shown.width();
            gap = (column + 2).saturating_sub(shown.width());
        }
        text.push('\n');
    }
    text
}

/// The text in so many columns, with `…` where it was cut.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let mut short: String = text
        .chars()
        .take_while(|c| {
            let wide = c.width().unwrap_or(0);
            let fits = wide <= room;
            room = room.saturating_sub(wide);
            fits
        })
        .collect();
    short.truncate(short.trim_end().len());
    if columns > 0 {
        short.push('…');
    }
    short
}

/// The text on one line, without anything that a terminal would obey.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.trim().chars() {
        let obeyed = c.is_control() || ('\u{202A}'..='\u{202E}').contains(&c);
        if obeyed || c.is_whitespace() {
            if !clean.ends_with(' ') {
                clean.push(' ');
            }
        } else {
            clean.push(c);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::{Cell, Paint, clean, plain, table};

    fn row(cells: [&str; 3]) -> Vec<Cell> {
        cells.map(|text| Cell::new(text, plain)).into()
    }

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [row(["a", "long", "x"]), row(["schön", "b", "y"])];
        let drawn = table(&rows, Paint(false), None);
        assert_eq!(drawn, "a      long  x\nschön  b     y\n");
    }

    #[test]
    fn wide_letters_count_double() {
        let rows = [row(["日本", "b", "x"]), row(["abcd", "b", "y"])];
        let drawn = table(&rows, Paint(false), None);
        assert_eq!(drawn, "日本  b  x\nabcd  b  y\n");
    }

    #[test]
    fn lines_end_where_the_terminal_does() {
        let rows = [row(["name", "project", "a long description of it"])];
        let drawn = table(&rows, Paint(false), Some(25));
        assert_eq!(drawn, "name  project  a long de…\n");
        for width in 0..40 {
            let drawn = table(&rows, Paint(false), Some(width));
            assert!(drawn.trim_end().chars().count() <= width, "{drawn}");
        }
    }

    #[test]
    fn an_empty_cell_leaves_its_column_empty() {
        let rows = [row(["a", "", "x"]), row(["b", "cc", ""])];
        let drawn = table(&rows, Paint(false), None);
        assert_eq!(drawn, "a      x\nb  cc\n");
    }

    #[test]
    fn nothing_in_a_text_moves_the_cursor() {
        assert_eq!(clean(" a\n\tb\u{1b}[2Jc "), "a b [2Jc");
    }
}
