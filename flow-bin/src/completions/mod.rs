//! `flow completions`: a script for a shell. Those of bash, zsh and fish ask this program what can
//! stand at a place, so that workflows, prompts and runs are completed as they are there.

mod words;

use std::ffi::OsString;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, CompletionsArguments};
use crate::exit::Exit;
use crate::output::Output;

/// The word before a command line that is to be completed; only scripts know it.
pub(crate) const ASKED: &str = "__complete";

const BASH: &str = include_str!("flow.bash");
const ZSH: &str = include_str!("flow.zsh");
const FISH: &str = include_str!("flow.fish");

pub(crate) fn run(arguments: &CompletionsArguments, output: &mut Output) -> Result<Exit> {
    match arguments.shell {
        Shell::Bash => output.print(BASH)?,
        Shell::Zsh => output.print(ZSH)?,
        Shell::Fish => output.print(FISH)?,
        shell => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "flow", &mut script);
            output.print(String::from_utf8_lossy(&script))?;
        }
    }
    Ok(Exit::Done)
}

/// Prints what can stand for the last word, a line each, with a description after a tab. Nothing
/// where files can stand: shells know those.
pub(crate) fn answer(words: &[OsString], output: &mut Output) -> Result<Exit> {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    for candidate in words::candidates(&words) {
        match candidate.told.lines().next() {
            Some(told) => output.line(format_args!("{}\t{}", candidate.word, told.trim()))?,
            None => output.line(candidate.word)?,
        }
    }
    Ok(Exit::Done)
}
