//! Telling what was typed from what was answered.
//!
//! A terminal echoes input into its output, either in the kernel or, when a program edits lines
//! itself, by that program. Text that is about to become such an echo is held back until it is one
//! or is not. Of a line's echo the line end stays, so that what follows begins a line.
//!
//! A line editor that takes pasted text says when it is done with a line. Until then it draws, what
//! was typed more than once perhaps, in parts and in its own way, and all of that is the echo. One
//! that says nothing of the kind is told by the text alone.

use std::collections::VecDeque;

/// Text in which an echo must begin to be believed; later the expectation is dropped.
const PATIENCE: usize = 64 * 1024;

/// The expected lines are others than before: which one the held text may be has to be seen anew.
const UNKNOWN: usize = usize::MAX;

/// Who echoes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echoer {
    /// The kernel, at once and to the letter, for a program that waits for the line.
    Kernel,
    /// The kernel, for whoever will read the line: a line editor that starts before finds it
    /// unread, and shows it again.
    KernelAhead,
    /// A line editor, which breaks lines in its own way.
    Editor,
    /// A line editor that started after the kernel had echoed the line, and shows it again.
    Later,
}

#[derive(Debug)]
struct Line {
    /// As [`named`] gives it.
    text: Vec<char>,
    echoer: Echoer,
    /// The kernel has not echoed it, and may yet: an editor lets the terminal go between two lines.
    unechoed: bool,
}

impl Line {
    /// Whether it is shown by someone who breaks lines in its own way.
    fn is_edited(&self) -> bool {
        matches!(self.echoer, Echoer::Editor | Echoer::Later)
    }

    /// How much of it is shown with this character, behind so much and the character before.
    fn next(&self, matched: usize, before: Option<char>, character: char) -> Option<usize> {
        let shown = |at: usize| {
            let behind = at + named(character).count();
            let wanted = self.text.get(at..behind)?.iter().copied();
            wanted.eq(named(character)).then_some(behind)
        };
        if let Some(behind) = shown(matched) {
            return Some(behind);
        }
        if matched == 0 {
            // An editor may have gone back to the first column before it draws.
            return (self.is_edited() && character == '\r').then_some(0);
        }
        if !self.is_edited() {
            // An editor may have put this between two characters where the line is full.
            let is_wrap = match character {
                '\r' | '\n' => true,
                ' ' => before != Some(' '),
                _ => false,
            };
            return is_wrap.then_some(matched);
        }
        // An editor breaks lines where they are full, shows a tab as blanks, and may go back to draw
        // the line once more.
        if is_blank(character) {
            return Some(matched);
        }
        let rest = self.text.get(matched..self.text.len() - 1)?;
        let blanks = rest.iter().take_while(|blank| is_blank(**blank));
        let at = matched + blanks.count();
        let again = || shown(0).filter(|_| before == Some('\r'));
        shown(at).or_else(again)
    }
}

/// What a line editor draws while it is at a line.
#[derive(Debug)]
struct Drawn {
    /// What was typed, up to the line end.
    typed: String,
    text: String,
    /// Bytes of it that were looked at and are no more than a part of what was typed.
    known: usize,
}

/// Takes echoes out of a text.
#[derive(Debug, Default)]
pub(super) struct Echo {
    expected: VecDeque<Line>,
    drawn: Option<Drawn>,
    held: VecDeque<char>,
    /// Which of the expected lines the held text may be.
    candidate: usize,
    /// Characters of the expected line that the held text has.
    matched: usize,
    /// Characters seen since something was expected.
    seen: usize,
    /// The shell is between two of its prompts.
    between: bool,
    /// A line of blanks is a command to the shell.
    runs_blanks: bool,
}

impl Echo {
    /// For a shell to which a line of blanks is a command.
    pub(super) fn running_blanks(self) -> Echo {
        Echo {
            runs_blanks: true,
            ..self
        }
    }

    /// Expects the echo of typed text, in which `\n` enters a line and `\r` is a line end in pasted
    /// text.
    pub(super) fn expect(&mut self, typed: &str, echoer: Echoer) {
        self.seen = 0;
        for line in typed.split_inclusive('\n') {
            // A program that reads single keys seldom echoes them, so an editor is believed with
            // whole lines only.
            let whole = line.ends_with('\n');
            if matches!(echoer, Echoer::Editor | Echoer::Later) && (!whole || line.len() < 2) {
                continue;
            }
            // A shell that shows a blank line again does not say that it has taken it.
            let is_blank = whole && line.trim().is_empty() && !self.runs_blanks;
            if echoer != Echoer::Kernel && is_blank {
                continue;
            }
            let text = match echoer {
                Echoer::Kernel | Echoer::KernelAhead => {
                    line.chars().flat_map(by_kernel).flat_map(named).collect()
                }
                Echoer::Editor | Echoer::Later => line.chars().flat_map(named).collect(),
            };
            self.expected.push_back(Line {
                text,
                echoer,
                unechoed: echoer == Echoer::Later,
            });
        }
    }

    /// The same, of an editor that will say when it is done with the first line.
    pub(super) fn expect_drawing(&mut self, typed: &str) {
        self.expect(typed, Echoer::Editor);
        if let Some((line, _)) = typed.split_once('\n') {
            self.drawn = Some(Drawn {
                typed: line.to_owned(),
                text: String::new(),
                known: 0,
            });
        }
    }

    /// Expects nothing any more.
    pub(super) fn forget(&mut self, out: &mut String) {
        self.undraw(out);
        self.expected.clear();
        self.let_go(out);
    }

    /// Whether anything is expected.
    pub(super) fn pending(&self) -> bool {
        !self.expected.is_empty() || self.drawn.is_some()
    }

    /// Whether text is held back that time would let go.
    pub(super) fn holds(&self) -> bool {
        let drawn = self.drawn.as_ref();
        !self.held.is_empty() || drawn.is_some_and(|drawn| drawn.text.len() > drawn.known)
    }

    /// Whether an editor is at a line.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// Lets text go that did not become an echo in time. An editor that has drawn a part of the line
    /// and nothing else is still at it.
    pub(super) fn release(&mut self, out: &mut String) {
        if let Some(mut drawn) = self.drawn.take() {
            let mut heard = String::new();
            self.unmask(&drawn);
            self.pass(&drawn.text, true, &mut heard);
            if heard.is_empty() {
                self.let_go(&mut heard);
                drawn.known = drawn.text.len();
                self.drawn = Some(drawn);
                return;
            }
            out.push_str(&heard);
        }
        self.let_go(out);
    }

    fn let_go(&mut self, out: &mut String) {
        self.matched = 0;
        out.extend(self.held.drain(..));
    }

    /// Whoever draws does not say that it is done with the line: what was drawn is told by its text.
    pub(super) fn undraw(&mut self, out: &mut String) {
        if let Some(drawn) = self.drawn.take() {
            self.unmask(&drawn);
            self.pass(&drawn.text, true, out);
        }
    }

    /// Expects nothing of a line that was not shown in the row where it was typed: a password, which
    /// whoever asked for it may repeat later.
    fn unmask(&mut self, drawn: &Drawn) {
        if let Some((row, _)) = drawn.text.split_once('\n')
            && !shows(row, drawn.typed.split('\r').next().unwrap_or_default())
        {
            self.unexpect(&drawn.typed);
        }
    }

    fn unexpect(&mut self, typed: &str) {
        let mut lines = self.expected.iter();
        let typed = || typed.chars().chain(['\n']).flat_map(named);
        let whole = |line: &Line| line.text.iter().copied().eq(typed());
        if let Some(index) = lines.position(whole) {
            self.expected.remove(index);
            self.candidate = UNKNOWN;
        }
    }

    /// An editor is done with the line: what it has drawn, up to the last place where that is what
    /// was typed, is the echo.
    pub(super) fn accepted(&mut self, out: &mut String) {
        let Some(drawn) = self.drawn.take() else {
            return;
        };
        let Drawn { typed, text, .. } = drawn;
        self.unexpect(&typed);
        let rest = &text[end_of_drawing(&typed, &text)..];
        out.push_str(rest.trim_start_matches([' ', '\r']));
        if !text.ends_with('\n') {
            // Some end the line after they have said that they are done.
            self.expected.push_front(Line {
                text: vec!['\n'],
                echoer: Echoer::Editor,
                unechoed: false,
            });
            self.candidate = UNKNOWN;
        }
    }

    /// A line editor has begun to read: what the kernel has not echoed so far, because the editor
    /// was there before the input was, is left to the editor to show.
    pub(super) fn edited(&mut self, out: &mut String) {
        self.undraw(out);
        self.let_go(out);
        self.expected
            .retain(|line| line.text.last() == Some(&'\n') && line.text.len() > 1);
        for line in &mut self.expected {
            line.unechoed |= line.echoer != Echoer::Later;
            line.echoer = Echoer::Later;
        }
    }

    /// Whether a line editor that comes to the front would show typed lines again.
    pub(super) fn awaits_editor(&self) -> bool {
        let first = self.expected.front();
        first.is_some_and(|line| line.echoer == Echoer::Later)
    }

    /// Whether the shell is between two of its prompts: nobody else reads then, and the kernel may echo
    /// what is left to the editor.
    pub(super) fn between(&mut self, between: bool) {
        self.between = between;
    }

    /// Passes text on, without echoes. `later` says that a line editor has come to the front since
    /// the input.
    pub(super) fn filter(&mut self, text: &str, later: bool, out: &mut String) {
        if let Some(drawn) = &mut self.drawn {
            drawn.text.push_str(text);
            if drawn.text.len() > PATIENCE {
                self.undraw(out);
            }
        } else {
            self.pass(text, later, out);
        }
    }

    fn pass(&mut self, text: &str, later: bool, out: &mut String) {
        let mut characters = text.chars();
        while !self.expected.is_empty() {
            let Some(character) = characters.next() else {
                return;
            };
            self.seen += 1;
            self.take(character, later, out);
            if self.seen > PATIENCE {
                self.expected.clear();
                self.let_go(out);
            }
        }
        out.push_str(characters.as_str());
    }

    fn take(&mut self, character: char, later: bool, out: &mut String) {
        let mut next = VecDeque::from([character]);
        while let Some(character) = next.pop_front() {
            match self.fits(character, later) {
                Some((candidate, matched)) if matched == self.expected[candidate].text.len() => {
                    if self.expected[candidate].text.last() == Some(&'\n') {
                        out.push('\n');
                    }
                    self.held.clear();
                    self.matched = 0;
                    self.echoed(candidate);
                }
                Some((candidate, matched)) => {
                    self.held.push_back(character);
                    (self.candidate, self.matched) = (candidate, matched);
                }
                None => {
                    let Some(first) = self.held.pop_front() else {
                        out.push(character);
                        continue;
                    };
                    // Not an echo from here; perhaps one from a later character on.
                    out.push(first);
                    next.push_front(character);
                    for held in self.held.drain(..).rev() {
                        next.push_front(held);
                    }
                    self.matched = 0;
                }
            }
        }
    }

    /// Which expected line the held text and this character may be, and how much of it they show.
    /// Lines come in the order in which they were typed, but for those that an editor shows, or
    /// nobody.
    fn fits(&self, character: char, later: bool) -> Option<(usize, usize)> {
        for (index, line) in self.expected.iter().enumerate() {
            let is_later = line.echoer == Echoer::Later;
            if (!is_later || later || self.between && line.unechoed)
                && let Some(matched) = self.matches(index, line, character)
            {
                return Some((index, matched));
            }
            if !is_later {
                break;
            }
        }
        None
    }

    fn matches(&self, index: usize, line: &Line, character: char) -> Option<usize> {
        let held = self.held.back().copied();
        if index == self.candidate || held.is_none() {
            let matched = if held.is_none() { 0 } else { self.matched };
            return line.next(matched, held, character);
        }
        // The held text was thought to be another line.
        let (mut matched, mut before) = (0, None);
        for shown in &self.held {
            matched = line.next(matched, before, *shown)?;
            before = Some(*shown);
            if matched == line.text.len() {
                return None;
            }
        }
        line.next(matched, before, character)
    }

    /// The shell has taken the first line that was typed ahead, and shown it.
    pub(super) fn taken(&mut self) {
        let mut lines = self.expected.iter();
        if let Some(first) = lines.position(|line| line.echoer == Echoer::Later) {
            self.let_go(&mut String::new());
            self.expected.remove(first);
        }
    }

    /// A line's echo is complete.
    fn echoed(&mut self, index: usize) {
        if let Some(line) = self.expected.get_mut(index)
            && self.between
            && line.unechoed
        {
            line.unechoed = false;
            return;
        }
        if let Some(line) = self.expected.remove(index)
            && line.echoer == Echoer::KernelAhead
            && line.text.last() == Some(&'\n')
            && line.text.len() > 1
        {
            self.expected.push_back(Line {
                text: line.text,
                echoer: Echoer::Later,
                unechoed: false,
            });
        }
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn visible(text: &str) -> String {
    let visible = text.chars().filter(|character| !is_blank(*character));
    visible.flat_map(named).collect()
}

/// A character by its name, as zsh draws one that it would have to join to the one before. Whether an
/// editor does so is not known: every character behind the Latin letters, none of which are joined, goes
/// by its name here, typed or shown.
fn named(character: char) -> impl Iterator<Item = char> {
    let code = u32::from(character);
    let (first, digits, last) = match character {
        '\0'..='\u{2ff}' => (character, 0, None),
        '\u{300}'..='\u{ffff}' => ('<', 4, Some('>')),
        _ => ('<', 8, Some('>')),
    };
    let digits = (0..digits).rev();
    let digits = digits.filter_map(move |at| char::from_digit(code >> (4 * at) & 0xf, 16));
    std::iter::once(first).chain(digits).chain(last)
}

/// Whether a row shows what was typed, or where it is full the beginning of that.
fn shows(row: &str, typed: &str) -> bool {
    /// Characters at the end of a row that are no chance.
    const ENOUGH: usize = 8;
    let (row, typed) = (visible(row), visible(typed));
    let mut starts = typed.char_indices().skip(ENOUGH).map(|(at, _)| at);
    row.contains(&typed) || starts.any(|at| row.ends_with(&typed[..at]))
}

/// Where in a text that an editor has drawn the last part ends that shows what was typed.
fn end_of_drawing(typed: &str, text: &str) -> usize {
    let (last, typed) = (typed.rsplit('\r').next(), visible(typed));
    let last = last.map(visible).unwrap_or_default();
    let mut end = text.len();
    for row in text.rsplit(['\r', '\n']) {
        let shown = visible(row);
        let is_typed = typed.contains(&shown) || !last.is_empty() && shown.contains(&last);
        if !shown.is_empty() && is_typed {
            return end;
        }
        end = end.saturating_sub(row.len() + 1);
    }
    0
}

/// What the kernel shows for a typed character.
fn by_kernel(character: char) -> impl Iterator<Item = char> {
    let (first, second) = match character {
        '\n' | '\r' => ('\n', None),
        '\t' => ('\t', None),
        control @ '\0'..='\x1f' => ('^', Some(char::from(control as u8 + 0x40))),
        '\x7f' => ('^', Some('?')),
        other => (other, None),
    };
    std::iter::once(first).chain(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(typed: &str, echoer: Echoer, later: bool, output: &str) -> String {
        let mut whole = String::new();
        let mut echo = Echo::default();
        echo.expect(typed, echoer);
        echo.filter(output, later, &mut whole);
        echo.release(&mut whole);
        let mut single = String::new();
        let mut echo = Echo::default();
        echo.expect(typed, echoer);
        for character in output.chars() {
            echo.filter(&character.to_string(), later, &mut single);
        }
        echo.release(&mut single);
        assert_eq!(whole, single, "however it is cut");
        whole
    }

    #[test]
    fn the_kernels_echo_is_taken_out_once() {
        let kernel = Echoer::Kernel;
        assert_eq!(
            heard("hello\n", kernel, false, "hello\nhello\n"),
            "\nhello\n"
        );
        assert_eq!(
            heard("y\n", kernel, false, "Sure? y\nyes\n"),
            "Sure? \nyes\n"
        );
        assert_eq!(heard("a\x03", kernel, false, "a^Ca"), "a");
        assert_eq!(heard("aab\n", kernel, false, "aaab\nx"), "a\nx");
        assert_eq!(heard("abc\n", kernel, false, "ab"), "ab");
    }

    #[test]
    fn an_editors_echo_may_be_wrapped() {
        let editor = Echoer::Editor;
        assert_eq!(
            heard(
                "print(12345)\n",
                editor,
                true,
                ">>> print( \r12345)\n12345\n"
            ),
            ">>> \n12345\n"
        );
        assert_eq!(heard("x\n", Echoer::Later, false, "x\n"), "x\n");
        assert_eq!(heard("y", editor, true, "yes"), "yes");
    }

    #[test]
    fn an_editor_may_draw_a_line_again_and_shows_a_tab_as_blanks() {
        let editor = Echoer::Editor;
        assert_eq!(
            heard(
                "true MARK\n",
                editor,
                true,
                "\rtrue \rMARK\rtrue MARK\nMARK\n"
            ),
            "\nMARK\n"
        );
        assert_eq!(heard("a\t b\n", editor, true, "a       b\nb\n"), "\nb\n");
        assert_eq!(heard("a b\n", editor, true, "ab c\n"), "ab c\n");
    }

    #[test]
    fn an_editor_may_show_characters_by_name() {
        let typed = "echo 'e\u{301}' 👩\u{200d}👧\u{e0100}\n";
        let named = "echo 'e<0301>' 👩<200d>👧<000e0100>\n";
        for shown in [typed, named, "echo 'e<03\n01>' 👩\r\u{200d}👧\u{e0100}\n"] {
            let output = format!("{shown}e\u{301}\n");
            for (echoer, later) in [(Echoer::Editor, false), (Echoer::Later, true)] {
                assert_eq!(heard(typed, echoer, later, &output), "\ne\u{301}\n");
            }
            assert_eq!(drawn(typed, shown), "\n", "{shown}");
        }
        let kernel = Echoer::Kernel;
        assert_eq!(heard(typed, kernel, false, typed), "\n");
        assert_eq!(heard("é\u{301}\n", kernel, false, "é\u{300}"), "é\u{300}");
    }

    #[test]
    fn a_line_that_nobody_has_shown_does_not_hide_the_next() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("first\n", Echoer::Later);
        echo.expect("fist\n", Echoer::KernelAhead);
        echo.filter("fist\nsaid first\n", false, &mut out);
        assert_eq!(out, "\nsaid first\n");
        // An editor shows both then, in the order in which they were typed.
        echo.filter("first\nfist\nfist\n", true, &mut out);
        assert_eq!(out, "\nsaid first\n\n\nfist\n");
    }

    #[test]
    fn a_line_that_is_left_to_the_editor_may_be_echoed_between_two_prompts() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("one\n", Echoer::KernelAhead);
        echo.edited(&mut out);
        echo.between(true);
        echo.filter("one\n", false, &mut out);
        assert_eq!(out, "\n");
        assert!(echo.awaits_editor());
        // Once, and by nobody else's output.
        echo.filter("one\n", false, &mut out);
        assert_eq!(out, "\none\n");
        echo.expect("two\n", Echoer::Later);
        echo.between(false);
        echo.filter("two\n", false, &mut out);
        assert_eq!(out, "\none\ntwo\n");
    }

    #[test]
    fn the_line_that_a_shell_has_taken_is_expected_no_more() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("one\ntwo\n", Echoer::Later);
        echo.taken();
        echo.filter("one\ntwo\n", true, &mut out);
        assert_eq!(out, "one\n\n");
    }

    #[test]
    fn what_was_masked_where_it_was_typed_is_no_echo_later() {
        let said = |drawing: &str| {
            let mut echo = Echo::default();
            let mut out = String::new();
            echo.expect_drawing("secret\n");
            echo.filter(drawing, true, &mut out);
            echo.forget(&mut out);
            out
        };
        assert_eq!(said("******\nsecret\n"), "******\nsecret\n");
        assert_eq!(said("secret\nsecret\n"), "\nsecret\n");
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_typed_and_shown_nothing_is_lost_but_what_was_typed(
            deeds in proptest::collection::vec((0_u8..9, "[ab\r\n ]{0,6}"), 0..40),
        ) {
            let mut echo = Echo::default();
            let (mut out, mut shown, mut typed) = (String::new(), String::new(), String::new());
            for (deed, text) in &deeds {
                if *deed < 4 {
                    typed.push_str(text);
                }
                match deed {
                    0 => echo.expect(text, Echoer::Kernel),
                    1 => echo.expect(text, Echoer::KernelAhead),
                    2 => echo.expect(text, Echoer::Later),
                    3 => echo.expect_drawing(text),
                    4 => echo.taken(),
                    5 => echo.accepted(&mut out),
                    6 => echo.release(&mut out),
                    7 => echo.edited(&mut out),
                    _ => {
                        shown.push_str(text);
                        echo.filter(text, text.len() % 2 == 0, &mut out);
                    }
                }
            }
            echo.forget(&mut out);
            proptest::prop_assert!(!typed.is_empty() || out.len() == shown.len());
            proptest::prop_assert!(out.len() <= shown.len() + deeds.len());
        }
    }

    fn drawn(typed: &str, drawing: &str) -> String {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect_drawing(typed);
        for character in drawing.chars() {
            echo.filter(&character.to_string(), false, &mut out);
        }
        assert_eq!(out, "", "not before the editor is done");
        echo.accepted(&mut out);
        out
    }

    #[test]
    fn what_an_editor_draws_until_it_is_done_is_the_echo() {
        // As readline, zsh and fish do it.
        for drawing in [
            "echo a\necho MARK\necho a\necho MARK\n",
            "echo a\necho MARK\necho a\necho MARK",
            "echo a\n\ntrue\necho MARK\necho a\necho MARK\n\n",
        ] {
            let rest = drawn("echo a\recho MARK\n", drawing);
            assert_eq!(rest.trim_end(), "", "{drawing:?}");
        }
        assert_eq!(drawn("echo MARK\n", "eecho MA \rR\rRK"), "");
        // One that says so when it ends as a whole has written more than that.
        assert_eq!(drawn("quit\n", "> quit\nBye\n"), "\nBye\n");
        assert_eq!(drawn("\n", "Bye\n"), "Bye\n");
        assert_eq!(drawn("hidden\n", ""), "");
    }

    #[test]
    fn a_line_end_after_the_editors_last_word_belongs_to_the_line() {
        for (drawing, after) in [("ls\n", "out\n"), ("ls", "\nout\n")] {
            let mut echo = Echo::default();
            let mut out = String::new();
            echo.expect_drawing("ls\n");
            echo.filter(drawing, false, &mut out);
            echo.accepted(&mut out);
            echo.filter(after, false, &mut out);
            assert_eq!(out, "\nout\n");
            assert!(!echo.pending());
        }
    }

    #[test]
    fn an_editor_that_is_at_a_line_is_waited_for_and_one_that_says_more_is_not() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect_drawing("one two\n");
        echo.filter("one ", false, &mut out);
        assert!(echo.holds());
        echo.release(&mut out);
        assert!(echo.is_drawn() && !echo.holds());
        echo.filter("two\nanswer", false, &mut out);
        assert_eq!(out, "");
        assert!(echo.holds());
        echo.release(&mut out);
        assert_eq!(out, "\nanswer");
        assert!(!echo.pending());
    }

    #[test]
    fn a_line_typed_ahead_is_shown_twice_and_heard_never() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("1+1\n", Echoer::KernelAhead);
        echo.filter("1+1\nPython\n", false, &mut out);
        echo.filter(">>> 1+1\n2\n", true, &mut out);
        assert_eq!(out, "\nPython\n>>> \n2\n");
    }

    #[test]
    fn what_the_kernel_did_not_echo_is_left_to_the_editor() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("true a\ntrue b\nrest", Echoer::KernelAhead);
        echo.filter("true a\ndone\ntr", false, &mut out);
        assert!(!echo.awaits_editor());
        echo.edited(&mut out);
        assert_eq!(out, "\ndone\ntr");
        assert!(echo.awaits_editor() && !echo.holds());
        echo.filter("$ true b\n$ true a\n", true, &mut out);
        assert_eq!(out, "\ndone\ntr$ \n$ \n");
        assert!(!echo.pending());
    }

    #[test]
    fn a_line_that_was_waited_for_is_shown_once() {
        let mut echo = Echo::default();
        let mut out = String::new();
        echo.expect("1+1\n", Echoer::Kernel);
        echo.filter("1+1\n", false, &mut out);
        assert!(!echo.pending() && !echo.awaits_editor());
    }
}
