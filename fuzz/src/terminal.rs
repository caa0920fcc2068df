//! What terminals do with bytes, from the same source files, without the rest of the runtime.

#![allow(dead_code, reason = "the rest of the runtime would use it")]

#[path = "../../flow-runtime/src/terminal/capture.rs"]
mod capture;
#[path = "../../flow-runtime/src/terminal/clean.rs"]
mod clean;
#[path = "../../flow-runtime/src/terminal/echo.rs"]
mod echo;
#[path = "../../flow-runtime/src/terminal/scanner.rs"]
mod scanner;
#[path = "../../flow-runtime/src/terminal/screen.rs"]
mod screen;

/// What the files above know of their neighbours.
mod options {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Size {
        pub(super) columns: u16,
        pub(super) rows: u16,
    }
}

mod shells {
    pub(super) const BASH_HOOK: &str = "hook";
}

mod program {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Shell {
        Bash,
        Zsh,
        Fish,
        Posix,
    }
}

/// Hides what was drawn last.
struct Last;

impl screen::Hides for Last {
    fn hides_nothing(&self) -> bool {
        false
    }

    fn begun(&self, text: &str) -> Option<(usize, &str)> {
        let (at, _) = text.char_indices().rev().nth(2)?;
        Some((at, "[secret]"))
    }
}

use capture::{Capture, Shown};
use clean::Cleaner;
use echo::{Echo, Echoer};
use options::Size;
use program::Shell;
use scanner::{Mark, Pieces, Scanner, Sequence};
use screen::Screen;

#[derive(Default, PartialEq, Debug)]
struct Heard {
    raw: Vec<u8>,
    text: String,
    marks: Vec<(usize, Mark)>,
}

struct Ear {
    cleaner: Cleaner,
    heard: Heard,
}

impl Pieces for Ear {
    fn raw(&mut self, bytes: &[u8]) {
        self.heard.raw.extend_from_slice(bytes);
    }

    fn text(&mut self, bytes: &[u8]) {
        assert!(bytes.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f));
        self.cleaner.text(bytes, &mut self.heard.text);
    }

    fn control(&mut self, byte: u8) {
        self.cleaner.control(byte, &mut self.heard.text);
    }

    fn sequence(&mut self, sequence: &Sequence<'_>) {
        assert!(sequence.parameters.len() <= 32);
        self.cleaner.sequence(sequence, &mut self.heard.text);
    }

    fn mark(&mut self, mark: Mark) -> bool {
        self.heard.marks.push((self.heard.raw.len(), mark));
        // One that is not believed is given as what it is.
        mark != Mark::Erroneous
    }
}

const NONCE: &str = "n0nce";

fn heard(bytes: &[u8], cut: usize) -> Heard {
    let mut scanner = Scanner::new(NONCE);
    let mut ear = Ear {
        cleaner: Cleaner::default(),
        heard: Heard::default(),
    };
    for part in bytes.chunks(cut.max(1)) {
        scanner.scan(part, &mut ear);
    }
    ear.heard
}

/// What comes before a command's output.
#[derive(Clone, Copy)]
enum Begun<'t> {
    Told(Shell),
    Typed(Shown<'t>),
}

fn captured(bytes: &[u8], cut: usize, begun: Begun<'_>) -> Vec<u8> {
    let mut capture = Capture::new(usize::MAX);
    match begun {
        Begun::Told(shell) => capture.begin(shell),
        Begun::Typed(shown) => capture.begin_typed(shown),
    }
    for part in bytes.chunks(cut.max(1)) {
        capture.take(part);
    }
    capture.unprompt();
    capture.end();
    capture.output().0
}

/// Lines typed and shown in an order that the bytes choose.
fn echoes(bytes: &[u8], text: &str) {
    let mut echo = Echo::default();
    let mut out = String::new();
    let characters: Vec<char> = text.chars().collect();
    let mut pieces = characters.chunks(5).map(String::from_iter).cycle();
    let (mut shown, mut ends) = (0, 0);
    for byte in bytes.iter().take(200) {
        let piece = pieces.next().unwrap_or_default();
        ends += 1;
        match byte % 9 {
            0 => echo.expect(&piece, Echoer::Kernel),
            1 => echo.expect(&piece, Echoer::KernelAhead),
            2 => echo.expect(&piece, Echoer::Later),
            3 => echo.expect_drawing(&piece),
            4 => echo.taken(),
            5 => echo.accepted(&mut out),
            6 => echo.release(&mut out),
            7 => echo.edited(&mut out),
            _ => {
                shown += piece.len();
                echo.filter(&piece, byte % 2 == 0, &mut out);
            }
        }
    }
    echo.forget(&mut out);
    // A line end may be added where an echo ended.
    assert!(out.len() <= shown + ends);
}

/// Holds what terminals promise for any bytes: nothing panics; how the bytes are cut changes
/// nothing; only our own marks are taken out of them; a line end that the terminal made is undone.
pub fn check(bytes: &[u8]) {
    let (first, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let cut = usize::from(*first);
    let whole = heard(bytes, usize::MAX);
    let parts = heard(bytes, cut);
    // What may yet become a mark is held at the end in both.
    assert_eq!(whole, parts);
    assert!(whole.raw.len() <= bytes.len());
    if whole.marks.is_empty() {
        assert!(bytes.starts_with(&whole.raw));
        // Only what may be a mark is held back.
        assert!(bytes.len() - whole.raw.len() <= 160);
    }

    let line: String = whole.text.chars().take(cut % 16).collect();
    let lines = cut % 2 == 0;
    let mut ways = vec![
        Begun::Typed(Shown::Nowhere),
        Begun::Typed(Shown::ByKernel { line: &line, lines }),
    ];
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Posix] {
        ways.push(Begun::Told(shell));
        ways.extend([true, false].map(|pastes| Begun::Typed(Shown::ByEditor { shell, pastes })));
    }
    for begun in ways {
        let all = captured(bytes, usize::MAX, begun);
        assert_eq!(all, captured(bytes, cut, begun));
    }
    let mut mapped = Vec::new();
    for byte in bytes {
        if *byte == b'\n' {
            mapped.push(b'\r');
        }
        mapped.push(*byte);
    }
    let mut capture = Capture::new(usize::MAX);
    capture.begin(Shell::Bash);
    capture.take(&mapped);
    capture.end();
    assert_eq!(capture.output().0, bytes);

    let typed: String = whole.text.chars().take(cut).collect();
    for echoer in [
        Echoer::Kernel,
        Echoer::KernelAhead,
        Echoer::Editor,
        Echoer::Later,
    ] {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect(&typed, echoer);
        echo.filter(&whole.text, true, &mut out);
        echo.forget(&mut out);
        assert!(out.len() <= whole.text.len());
    }
    echoes(bytes, &whole.text);

    let size = Size {
        columns: 2 + u16::from(*first % 40),
        rows: 1 + u16::from(*first % 7),
    };
    let mut screen = Screen::new(size, 50);
    for part in bytes.chunks(cut.max(1)) {
        screen.leave_primary();
        screen.advance(part);
        let _ = screen.before_cursor();
        match part[0] % 8 {
            0 => screen.begin_line(),
            1 => screen.part_line('~'),
            _ => {}
        }
    }
    screen.unsync();
    screen.resize(Size {
        columns: size.rows + 1,
        rows: size.columns,
    });
    let _ = (screen.visible(&Last), screen.unwrapped(&Last));
    let _ = (screen.history_without(&Last), screen.history());
    assert!(screen.take_replies().len() <= 64 * 1024);
    assert!(!screen.has_failed(), "the emulator panicked");
}
