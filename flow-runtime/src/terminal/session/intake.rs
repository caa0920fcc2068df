//! What comes from the terminal, piece by piece.

use std::time::Instant;

use super::interrupt::Interrupt;
use super::run::Run;
use super::unmarked::Unmarked;
use super::{Line, Phase, State};
use crate::terminal::process;
use crate::terminal::program::Shell;
use crate::terminal::scanner::{Mark, Pieces, Scanner, Sequence};

/// The mode in which a program takes pasted text.
const PASTE: u16 = 2004;
/// Modes that show the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

impl State {
    /// Takes bytes apart and puts each piece where it belongs.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let mut scanner = std::mem::replace(&mut self.scanner, Scanner::new(""));
        scanner.scan(bytes, self);
        self.scanner = scanner;
        self.flush_clean();
        // What a shell shows beside its prompt leaves the cursor behind that.
        if self.behind && !self.asks && self.phase == Phase::Prompt {
            self.asks = self.screen.before_cursor() == self.prompt_end;
        }
    }

    /// Passes clean text on to the stream, unless it is what was typed.
    pub(super) fn flush_clean(&mut self) {
        if self.clean.is_empty() {
            return;
        }
        if self.typing {
            // What is typed behind the line may be shown before it begins.
            let mut shown = String::new();
            self.echo.filter(&self.clean, false, &mut shown);
            self.clean.clear();
            return;
        }
        if let Some(before) = &mut self.before_prompt {
            before.push_str(&self.clean);
            match Unfinished::read(before) {
                Unfinished::Perhaps => {
                    self.clean.clear();
                    return;
                }
                Unfinished::No => self.clean.clone_from(before),
                Unfinished::Sign(sign, rest) => {
                    self.clean = rest.to_owned();
                    self.sign = Some(sign);
                    self.cleaner.begin_line();
                    self.stream.end_line();
                }
            }
            self.before_prompt = None;
        }
        // At its prompt an editing shell shows again what was typed ahead. Whether that is what
        // comes is told by the command that starts, or by silence.
        let prompt = self.phase == Phase::Prompt && self.shell != Some(Shell::Posix);
        if prompt && (self.echo.awaits_editor() || !self.doubt.is_empty()) {
            self.doubt.push_str(&self.clean);
        } else if self.echo.pending() {
            let mut heard = String::new();
            self.echo.between(self.phase == Phase::Ended);
            self.echo.filter(&self.clean, self.edited_later, &mut heard);
            self.hear(&heard);
        } else {
            let clean = std::mem::take(&mut self.clean);
            self.say(&clean);
            self.clean = clean;
        }
        self.clean.clear();
    }

    /// Lets text go that did not turn out to be typed.
    pub(super) fn release(&mut self) {
        let mut text = String::new();
        if self.doubt.is_empty() {
            self.echo.release(&mut text);
        } else {
            self.echo.forget(&mut text);
            text.push_str(&std::mem::take(&mut self.doubt));
        }
        self.hear(&text);
    }

    /// Whether text is held back.
    pub(super) fn holds(&self) -> bool {
        self.echo.holds() || !self.doubt.is_empty()
    }

    /// Adds text that may begin with the line end of an echo.
    pub(super) fn hear(&mut self, text: &str) {
        let mut text = text;
        if self.stream.end() == self.input
            && let Some(rest) = text.strip_prefix('\n')
        {
            self.answered();
            text = rest;
        }
        self.say(text);
    }

    /// Adds text. Behind a prompt it is seldom the shell's: somebody in the background writes, or a line
    /// is answered that was shown before the prompt. Either begins a line.
    fn say(&mut self, text: &str) {
        if self.phase == Phase::Prompt && !text.is_empty() && std::mem::take(&mut self.asks) {
            self.answered();
            self.behind = true;
        }
        self.stream.push(text);
    }

    /// What was typed has been shown: what follows begins a line, and is what it brought about.
    fn answered(&mut self) {
        let untouched = self.stream.end() == self.input;
        self.stream.end_line();
        if untouched {
            let end = self.stream.end();
            if self.call == self.input {
                self.call = end;
            }
            self.input = end;
        }
    }

    /// The shell's editor has shown all of a line that was entered: what follows is the shell's word
    /// on it, or what the command writes.
    fn shown(&mut self) {
        if self.typing && self.interrupt.is_none() {
            self.flush_clean();
            self.typing = false;
            self.answered();
        }
    }

    /// Whether whoever reads what is typed takes pasted text.
    pub(super) fn takes_paste(&self) -> bool {
        let at_prompt = self.phase == Phase::Prompt;
        self.screen.wants_bracketed_paste() || at_prompt && self.fish_pastes
    }

    /// A line editor begins to take pasted text, or does not take it any more.
    fn pastes(&mut self, begins: bool) {
        if self.echo.is_drawn() {
            self.flush_clean();
            let mut heard = String::new();
            match begins {
                // It was done with the line before and has not said so.
                true => self.echo.undraw(&mut heard),
                false => self.echo.accepted(&mut heard),
            }
            self.hear(&heard);
        }
        if begins {
            self.fish_pastes |= self.shell == Some(Shell::Fish) && self.phase != Phase::Running;
            return;
        }
        // So the line editor of a shell ends; fish begins again with the same line.
        let edited = self.phase == Phase::Prompt && self.typed && self.entered;
        self.released |= edited && matches!(self.shell, Some(Shell::Bash | Shell::Zsh));
        // bash has left the line by then, unless it shows nothing of it; zsh does so next, and may draw
        // it once more before.
        let is_left = self.shell != Some(Shell::Zsh) && !self.cleaner.is_inside();
        if self.released && is_left {
            self.shown();
        }
    }

    /// Whether a prompt is another one than that whose line was edited last.
    fn has_parted(&self) -> bool {
        self.parted || self.shell != Some(Shell::Zsh)
    }

    /// A command has ended although nobody said how, nor what the environment is by now.
    pub(super) fn ended_unseen(&mut self) {
        if let Some(run) = &mut self.run {
            run.ended(None);
        }
        self.untold = true;
        self.phase = Phase::Ended;
    }

    /// What a running command writes looks like our prompt. A command can show the prompt, and a
    /// shell that has lost its hooks shows it without them: which it is shows the terminal.
    fn suspect(&mut self, begins: bool) {
        let position = self.run.as_ref().and_then(Run::position);
        let unmarked = self.unmarked.get_or_insert_with(Unmarked::now);
        if begins {
            unmarked.position = position;
        }
    }

    /// A complete prompt is shown.
    pub(super) fn prompted(&mut self) {
        self.over();
        self.phase = Phase::Prompt;
        self.released = false;
        self.parted = false;
        self.unmarked = None;
        self.deaf = false;
        // An editor shows what is left over, a terminal that edits lines does not.
        let left_over = self.left_over;
        // More prompts may come before it is at one.
        self.left_over &= self.ahead;
        self.typed = left_over;
        self.line = Line::Text;
        self.entered = false;
        self.continuing = false;
        self.prompts += 1;
        if self.shell != Some(Shell::Posix) {
            let mut heard = String::new();
            self.echo.edited(&mut heard);
            self.hear(&heard);
        }
        if self.image.is_none() {
            self.image = process::image(self.pid);
        }
        self.asks = true;
        self.behind = false;
        if self.shell != Some(Shell::Posix) {
            self.prompt_end = self.screen.before_cursor();
        }
        self.run_prompted();
    }
}

impl Pieces for State {
    fn raw(&mut self, bytes: &[u8]) {
        self.screen.advance(bytes);
        if let Some(run) = &mut self.run {
            run.take(bytes);
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        // zsh may draw anew what it is done with (`zle reset-prompt`). Of several lines, the end of the
        // last is known by nothing but what comes next: the start of the command.
        self.released &= !self.ahead || self.has_parted();
        self.cleaner.text(bytes, &mut self.clean);
    }

    fn control(&mut self, byte: u8) {
        self.cleaner.control(byte, &mut self.clean);
        if byte == b'\n' && self.released {
            self.parted = true;
            self.shown();
        }
    }

    fn sequence(&mut self, sequence: &Sequence<'_>) {
        self.cleaner.sequence(sequence, &mut self.clean);
        if let Some((true, mut modes)) = sequence.private_modes()
            && modes.any(|mode| ALTERNATE.contains(&mode))
        {
            self.screen.leave_primary();
        }
        if let Some((set, mut modes)) = sequence.private_modes()
            && modes.any(|mode| mode == PASTE)
        {
            self.pastes(set);
        }
    }

    fn mark(&mut self, mark: Mark) -> bool {
        // Only hooks, which no command runs, say that one has ended.
        if self.phase == Phase::Running {
            match mark {
                Mark::PromptStart => self.suspect(true),
                Mark::Input => self.suspect(false),
                Mark::Continuation | Mark::More | Mark::Erroneous => {}
                Mark::Prompt
                | Mark::Starting
                | Mark::Started
                | Mark::Ended(_)
                | Mark::Ready(..)
                | Mark::Line(..)
                | Mark::LineStart => {
                    self.believe(mark);
                    return true;
                }
            }
            return false;
        }
        self.believe(mark);
        true
    }
}

impl State {
    /// The interrupt that is over with a prompt or a command.
    fn over(&mut self) -> Option<Interrupt> {
        let ends = self.interrupt.as_ref()?.ends_with_prompt();
        ends.then(|| self.uninterrupted()).flatten()
    }

    /// The shell has acted on an interrupt. fish may lose the mark behind its prompt all the same, and
    /// is looked at until it has said it.
    fn acted(&mut self) {
        if let Some(interrupt) = &mut self.interrupt
            && interrupt.ends_with_prompt()
            && self.shell != Some(Shell::Fish)
        {
            interrupt.noticed();
        }
    }

    fn believe(&mut self, mark: Mark) {
        self.flush_clean();
        let acted = match mark {
            Mark::Started => self.over(),
            Mark::Ended(_) | Mark::Prompt => {
                self.acted();
                None
            }
            Mark::PromptStart
            | Mark::Input
            | Mark::Continuation
            | Mark::More
            | Mark::Erroneous
            | Mark::Starting
            | Mark::Ready(..)
            | Mark::Line(..)
            | Mark::LineStart => None,
        };
        if self.echo.is_drawn() {
            // The command for which the shell has edited a line is over.
            let mut heard = String::new();
            self.echo.undraw(&mut heard);
            self.hear(&heard);
        }
        if let Some(before) = self.before_prompt.take() {
            self.stream.push(&before);
        }
        if let Some(sign) = self.sign.take() {
            self.screen.part_line(sign);
        }
        match mark {
            Mark::LineStart => {
                self.cleaner.begin_line();
                self.stream.end_line();
                self.screen.begin_line();
            }
            Mark::Starting => {
                if let Some(run) = &mut self.run {
                    run.starting();
                }
            }
            Mark::Started => {
                let was_typing = std::mem::take(&mut self.typing);
                if was_typing || !self.doubt.is_empty() {
                    self.doubt.clear();
                    self.answered();
                }
                if !was_typing {
                    self.echo.taken();
                }
                self.typed = false;
                self.released = false;
                self.parted = false;
                self.continuing = false;
                self.unmarked = None;
                // The shell has read keys since, unless the ctrl-c came behind the command.
                self.missed = acted.is_some_and(|it| it.is_open());
                self.phase = Phase::Running;
                if self.run.as_ref().is_some_and(Run::is_held) {
                    self.run_disturbed();
                }
                if let (Some(run), Some(shell)) = (&mut self.run, self.shell) {
                    run.started(shell, Instant::now());
                }
            }
            Mark::Ended(code) => {
                // What asked something has ended without reading the answer.
                self.screen.unsync();
                self.screen.take_replies();
                let before = self.code.replace(code);
                self.untold = false;
                self.lost = false;
                self.unmarked = None;
                // A POSIX shell has no way to tell that a command starts.
                if self.phase == Phase::Running || self.shell == Some(Shell::Posix) {
                    if let Some(run) = &mut self.run {
                        run.ended(Some(code));
                    }
                    self.phase = Phase::Ended;
                } else if let Some(run) = &mut self.run {
                    run.judged(code, before, self.hidden);
                }
                if self.shell == Some(Shell::Fish) {
                    self.before_prompt = Some(String::new());
                }
            }
            Mark::Prompt => {
                if self.phase == Phase::Running {
                    self.ended_unseen();
                }
                if std::mem::take(&mut self.typing) {
                    self.answered();
                }
                self.phase = Phase::Ended;
                self.unmarked = Some(Unmarked::now());
            }
            Mark::Ready(key, code) => {
                if self
                    .interrupt
                    .as_ref()
                    .is_some_and(|it| it.is_answered(key))
                {
                    self.uninterrupted();
                    self.left_over = false;
                    if self.phase == Phase::Running {
                        if let Some(run) = &mut self.run {
                            run.ended(Some(code));
                        }
                        self.code = Some(code);
                        // It has written its environment down before it answers.
                        self.untold = false;
                        self.phase = Phase::Ended;
                    }
                    if std::mem::take(&mut self.typing) {
                        self.answered();
                    }
                    self.prompted();
                }
            }
            Mark::Line(key, held) => self.told(key, held),
            Mark::PromptStart => {
                if let (Phase::Prompt, Some(run), Some(shell)) =
                    (self.phase, &mut self.run, self.shell)
                {
                    self.released |= run.reprompted(shell, self.untold);
                }
            }
            Mark::Input => match self.phase {
                // The shell was done with a line and asks for the next, without its hooks.
                Phase::Prompt if self.released && self.has_parted() => {
                    if std::mem::take(&mut self.typing) {
                        self.answered();
                    }
                    self.prompted();
                }
                // The same prompt, drawn again.
                Phase::Prompt => {
                    self.prompt_end = self.screen.before_cursor();
                    self.asks = true;
                }
                Phase::Starting | Phase::Running | Phase::Ended => {
                    self.hidden = false;
                    self.prompted();
                }
            },
            Mark::Continuation => {
                self.typing = false;
                self.continuing = true;
                // What is typed next is for this line.
                self.entered &= self.run.is_some();
                match (self.shell, &mut self.run) {
                    // Without an echo the next line's output would begin with the prompt.
                    (Some(shell @ (Shell::Posix | Shell::Bash)), Some(run)) => run.asked(shell),
                    _ => self.run_continued(),
                }
            }
            Mark::More => self.run_continued(),
            Mark::Erroneous => {
                self.typing = false;
                self.run_erroneous();
            }
        }
    }
}

/// Whether a text begins with what fish writes before its prompt: a sign and as many blanks as make
/// the line wrap if it was not empty, and then the same again, to be written over.
enum Unfinished<'t> {
    Sign(char, &'t str),
    Perhaps,
    No,
}

impl Unfinished<'_> {
    fn read(text: &str) -> Unfinished<'_> {
        let mut characters = text.chars();
        let sign = match characters.next() {
            None => return Unfinished::Perhaps,
            Some(sign @ ('\u{23ce}' | '¶' | '~')) => sign,
            Some(_) => return Unfinished::No,
        };
        let after = characters.as_str().trim_start_matches(' ');
        let blanks = characters.as_str().len() - after.len();
        let again = format!("\r{sign} ");
        match after.strip_prefix(&again) {
            Some(rest) if blanks > 0 => {
                Unfinished::Sign(sign, rest.strip_prefix('\r').unwrap_or(rest))
            }
            None if again.starts_with(after) => Unfinished::Perhaps,
            Some(_) | None => Unfinished::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::options::Options;
    use crate::terminal::pty::Mode;
    use crate::terminal::session::Echoed;

    /// What fish writes between a command and the next, with a line typed meanwhile that the kernel
    /// has echoed or not.
    fn heard(echoed: &str) -> String {
        let pid = 7;
        let mut state = State::new(Some(Shell::Fish), pid, "n0", &Options::default());
        let mark = |name: &str| format!("\x1b]133;{name};n0\x07");
        let prompt = format!("{}{}host> {}", mark("A"), mark("P"), mark("B"));
        state.take(prompt.as_bytes());
        let line = Mode {
            echo: false,
            lines: false,
        };
        state.expect("echo done\n", Echoed::Typed, line, Some(pid));
        state.take(format!("echo done\r\n{}done\r\n", mark("C")).as_bytes());
        let kernel = Mode {
            echo: true,
            lines: true,
        };
        state.expect("true echoed\n", Echoed::Typed, kernel, Some(pid));
        state.take(format!("{echoed}{}{prompt}", mark("D;0")).as_bytes());
        let shown = "true \r\x1b[11Cechoed\r\x1b[17C\x1b[11D\x1b[34mtrue\x1b[m \x1b[36mechoed\r\x1b[17C\r\n";
        for piece in shown.split_inclusive(' ') {
            state.take(piece.as_bytes());
        }
        state.take(format!("{}answer\r\n", mark("C")).as_bytes());
        state.stream.since(state.input).to_owned()
    }

    #[test]
    fn an_interrupt_is_over_when_the_next_prompt_is_there_and_not_before() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Posix] {
            let mut state = State::new(Some(shell), 7, "n0", &Options::default());
            let mark = |name: &str| format!("\x1b]133;{name};n0\x07");
            state.take(format!("{}# {}", mark("A"), mark("B")).as_bytes());
            let mode = Mode {
                echo: shell == Shell::Posix,
                lines: shell == Shell::Posix,
            };
            state.expect("half", Echoed::Typed, mode, Some(7));
            state.expect("\x03", Echoed::Typed, mode, Some(7));
            state.take(format!("half^C\r\n{}{}", mark("D;130"), mark("A")).as_bytes());
            assert!(state.interrupt.is_some(), "{shell:?}");
            state.take(b"# ");
            assert!(state.interrupt.is_some(), "{shell:?}");
            state.take(mark("B").as_bytes());
            assert!(state.interrupt.is_none(), "{shell:?}");
            assert_eq!(state.interrupts, 1, "{shell:?}");
            assert_eq!(state.phase, Phase::Prompt, "{shell:?}");
        }
    }

    #[test]
    fn what_fish_shows_of_a_line_typed_ahead_is_no_output_whether_the_kernel_showed_it_or_not() {
        assert_eq!(heard("true echoed\r\n"), "host> \nanswer\n");
        // The terminal changed hands between the look at its mode and the input.
        assert_eq!(heard(""), "host> \nanswer\n");
    }

    /// A piece of what a terminal gives: text, controls, sequences, marks of ours in any order.
    fn piece() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::*;
        let marks = [
            "A", "P", "B", "K", "M", "E", "S", "C", "D;0", "D;1", "R;10", "L", "X",
        ];
        let marks =
            prop::sample::select(marks.map(|name| format!("\x1b]133;{name};n0\x07")).to_vec());
        let written = prop::sample::select(vec![
            "\x1b[?2004h",
            "\x1b[?2004l\r",
            "\x1b[?1049h",
            "\x1b[?1049l",
            "\x1b[H\x1b[2J",
            "\r\n",
            "\r",
            "\x08 ",
            "⏎",
            "~",
            "^C",
            "$ ",
            "true",
            "\x1b[6n",
        ]);
        prop_oneof![marks, written.prop_map(str::to_owned), "[ab ⏎\r\n]{0,9}",]
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_typed_and_whatever_comes_a_session_reads_on(
            shell in proptest::sample::select(vec![
                None, Some(Shell::Bash), Some(Shell::Zsh), Some(Shell::Fish), Some(Shell::Posix),
            ]),
            deeds in proptest::collection::vec((0_u8..16, "[ab \r\n\x03\x04\x0c\x15\x7f]{0,6}", piece()), 0..60),
        ) {
            let mut state = State::new(shell, 7, "n0", &Options::default());
            for (deed, typed, piece) in &deeds {
                let before = state.stream.end();
                let mode = Mode { echo: deed % 2 == 0, lines: deed % 3 == 0 };
                match deed {
                    0..4 => state.expect(typed, Echoed::Typed, mode, Some(6 + i32::from(*deed))),
                    4 => state.release(),
                    5 => {
                        state.left_over = true;
                        state.edited_later = true;
                    }
                    6 if shell.is_some() && state.phase == Phase::Prompt && state.run.is_none() => {
                        state.run_lines(typed, mode);
                    }
                    7 => state.run_unanswered(),
                    8 => state.end_run(),
                    6 => {
                        let _ = (state.takes_paste(), state.holds());
                    }
                    _ => state.take(piece.as_bytes()),
                }
                proptest::prop_assert!(state.stream.end() >= before);
                proptest::prop_assert!(state.input <= state.stream.end());
                proptest::prop_assert!(state.consumed <= state.stream.end());
                let since = state.stream.since(state.input);
                proptest::prop_assert!(!since.contains('\x1b') && !since.contains("133;"));
            }
        }
    }
}
