//! The `flow` command.

mod answer;
mod brief;
mod check;
mod cli;
mod completions;
mod doctor;
mod engine;
mod exit;
mod expand;
mod explain;
mod files;
mod findings;
mod graph;
mod init;
mod list;
mod logs;
mod output;
mod run;
mod runs;
mod schema;
mod serve;
mod shortcut;
mod target;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use flow_runtime::briefs::Kind;

use cli::{Cli, Command};
use exit::Exit;
use output::{Color, Output};

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let asks_help = match words.as_slice() {
        [] => true,
        [only] => only == "--help" || only == "-h" || only == "help",
        _ => false,
    };
    if asks_help {
        // Answers and ends.
        shortcut::with_workflows(Cli::command()).get_matches();
    }
    let (mut output, done) = match words.as_slice() {
        [asked, words @ ..] if asked == completions::ASKED => {
            let mut output = Output::new(Color::Never);
            let done = completions::answer(words, &mut output);
            (output, done)
        }
        // What can be run is a command too.
        [help, name] if help == "help" && !shortcut::is_command(name) => {
            let mut output = Output::new(Color::default());
            let done = shortcut::run(&[name.clone(), "--help".into()], &mut output);
            (output, done)
        }
        _ => {
            let runs = words.first().is_some_and(|word| word == "run");
            let cli = Cli::try_parse().unwrap_or_else(|error| {
                run::refused_words(&words, &error);
                match runs {
                    true => shortcut::refuse(error),
                    false => error.exit(),
                }
            });
            let mut output = Output::new(cli.color);
            let done = command(&cli.command, &mut output);
            (output, done)
        }
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

fn command(command: &Command, output: &mut Output) -> Result<Exit> {
    match command {
        Command::Check(arguments) => check::run(arguments, output),
        Command::Explain(arguments) => explain::run(arguments, output),
        Command::Expand(arguments) => expand::run(arguments, output),
        Command::Schema => schema::run(output),
        Command::Graph(arguments) => graph::run(arguments, output),
        Command::List(arguments) => list::run(arguments, output),
        Command::Run(arguments) => run::run(arguments, output),
        Command::Resume(arguments) => answer::resume(arguments, output),
        Command::Answer(arguments) => answer::answer(arguments, output),
        Command::Cancel(arguments) => answer::cancel(arguments, output),
        Command::Runs(arguments) => runs::list(arguments, output),
        Command::Show(arguments) => runs::show(arguments, output),
        Command::Logs(arguments) => logs::run(arguments, output),
        Command::Serve(arguments) => serve::run(arguments, output),
        Command::Agent(arguments) => brief::run(Kind::Agent, arguments, output),
        Command::Prompt(arguments) => brief::run(Kind::Prompt, arguments, output),
        Command::Init(arguments) => init::run(arguments, output),
        Command::Doctor(arguments) => doctor::run(arguments, output),
        Command::Completions(arguments) => completions::run(arguments, output),
        Command::Workflow(words) => shortcut::run(words, output),
    }
}
