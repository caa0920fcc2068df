//! `flow completions`: a script for a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArguments};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) fn run(arguments: &CompletionsArguments, output: &mut Output) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "flow", &mut script);
    output.print(String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
