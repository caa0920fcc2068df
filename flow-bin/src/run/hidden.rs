//! Typing that is not shown.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, Result};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::exit::Usage;

/// What the key that interrupts types while typing is hidden: the terminal is put back first.
pub(crate) const INTERRUPT: char = '\u{3}';

/// The terminal shows nothing of what is typed until this is dropped.
pub(crate) struct Hidden {
    before: Option<Termios>,
}

impl Hidden {
    pub(crate) fn begin() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
            // The key that interrupts ends the line, or it would be heard with the next line break.
            quiet.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT as u8;
            // A terminal that cannot be made quiet is still one that can be typed at.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &quiet);
        }
        Hidden { before }
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Whether somebody is at a terminal.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads up to a line break, or to the key that interrupts while typing is hidden.
pub(crate) fn read_line(from: &mut impl BufRead, line: &mut String) -> io::Result<usize> {
    let mut bytes = Vec::new();
    loop {
        let read = from.fill_buf()?;
        let ends = |byte: &u8| *byte == b'\n' || *byte == INTERRUPT as u8;
        let end = read.iter().position(ends).map(|at| at + 1);
        let count = end.unwrap_or(read.len());
        bytes.extend_from_slice(&read[..count]);
        from.consume(count);
        if end.is_some() || count == 0 {
            break;
        }
    }
    line.push_str(&String::from_utf8_lossy(&bytes));
    Ok(bytes.len())
}

/// Asks for a line that is not shown.
pub(crate) fn ask(question: &str) -> Result<String> {
    let mut line = String::new();
    {
        let _hidden = Hidden::begin();
        write!(io::stderr(), "{question}").context("the question cannot be shown")?;
        let read = read_line(&mut io::stdin().lock(), &mut line);
        read.context("the secret cannot be read")?;
    }
    // The line break was typed unseen as well.
    let _ = writeln!(io::stderr());
    if line.contains(INTERRUPT) {
        std::process::exit(130);
    }
    let line = line.trim_end_matches(['\r', '\n']);
    if line.is_empty() {
        return Err(Usage::new("no secret was typed").into());
    }
    Ok(line.to_owned())
}
