//! The `flow` command.

mod check;
mod cli;
mod exit;
mod explain;
mod files;
mod graph;
mod list;
mod output;
mod schema;
mod target;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut output = Output::new(cli.color);
    let done = match &cli.command {
        Command::Check(arguments) => check::run(arguments, &mut output),
        Command::Explain(arguments) => explain::run(arguments, &mut output),
        Command::Schema => schema::run(&mut output),
        Command::Graph(arguments) => graph::run(arguments, &mut output),
        Command::List(arguments) => list::run(arguments, &mut output),
    };
    let done = done.and_then(|exit| {
        output.flush()?;
        Ok(exit)
    });
    match done {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error, &mut output).into(),
    }
}
