//! What comes from the terminal, piece by piece.

use std::time::Instant;

use super::{Phase, State};
use crate::terminal::process;
use crate::terminal::program::Shell;
use crate::terminal::scanner::{Mark, Pieces, Scanner, Sequence};

/// Modes that show the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];

impl State {
    /// Takes bytes apart and puts each piece where it belongs.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let mut scanner = std::mem::replace(&mut self.scanner, Scanner::new(""));
        scanner.scan(bytes, self);
        self.scanner = scanner;
        self.flush_clean();
    }

    /// Passes clean text on to the stream, unless it is what was typed.
    pub(super) fn flush_clean(&mut self) {
        if self.clean.is_empty() {
            return;
        }
        if self.typing {
            self.clean.clear();
            return;
        }
        if self.echo.pending() {
            let mut heard = String::new();
            self.echo.filter(&self.clean, self.edited, &mut heard);
            self.stream.push(&heard);
        } else {
            self.stream.push(&self.clean);
        }
        self.clean.clear();
    }

    /// A command has ended although nobody said how.
    fn ended_unseen(&mut self) {
        if let Some(run) = &mut self.run {
            run.ended(None);
        }
        self.phase = Phase::Ended;
    }

    /// A complete prompt is shown.
    fn prompted(&mut self) {
        self.phase = Phase::Prompt;
        self.typed = self.left_over;
        self.entered = false;
        self.prompts += 1;
        if self.image.is_none() {
            self.image = process::image(self.pid);
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
        self.cleaner.text(bytes, &mut self.clean);
    }

    fn control(&mut self, byte: u8) {
        self.cleaner.control(byte, &mut self.clean);
    }

    fn sequence(&mut self, sequence: &Sequence<'_>) {
        self.cleaner.sequence(sequence, &mut self.clean);
        if let Some((true, mut modes)) = sequence.private_modes()
            && modes.any(|mode| ALTERNATE.contains(&mode))
        {
            self.screen.leave_primary();
        }
    }

    fn mark(&mut self, mark: Mark) {
        self.flush_clean();
        match mark {
            Mark::Started => {
                self.typing = false;
                self.typed = false;
                let mut rest = String::new();
                self.echo.forget(&mut rest);
                self.phase = Phase::Running;
                if let (Some(run), Some(shell)) = (&mut self.run, self.shell) {
                    run.started(shell, Instant::now());
                }
            }
            Mark::Ended(code) => {
                // A POSIX shell has no way to tell that a command starts.
                if self.phase == Phase::Running || self.shell == Some(Shell::Posix) {
                    if let Some(run) = &mut self.run {
                        run.ended(Some(code));
                    }
                    self.phase = Phase::Ended;
                }
            }
            Mark::Prompt => {
                if self.phase == Phase::Running {
                    self.ended_unseen();
                }
                self.typing = false;
                self.phase = Phase::Ended;
            }
            Mark::PromptStart => {
                if self.phase == Phase::Running {
                    self.ended_unseen();
                }
            }
            Mark::Input => match self.phase {
                // The same prompt, drawn again.
                Phase::Prompt => {}
                Phase::Running => {
                    self.ended_unseen();
                    self.prompted();
                }
                Phase::Starting | Phase::Ended => self.prompted(),
            },
            Mark::Continuation => {
                self.typing = false;
                self.run_continued();
            }
        }
    }
}
