//! `flow <workflow> …` stands for `flow run <workflow> …`.

use std::ffi::{OsStr, OsString};

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use flow_runtime::briefs::Kind;
use flow_runtime::library::Library;

use crate::brief;
use crate::cli::{Cli, Command};
use crate::exit::{Exit, Usage};
use crate::output::Output;
use crate::run;
use crate::target;

/// Workflows that the help lists.
const SHOWN: usize = 20;
/// Characters of a line of it.
const WIDEST: usize = 78;

pub(crate) fn run(words: &[OsString], output: &mut Output) -> Result<Exit> {
    let Some((first, rest)) = words.split_first() else {
        return Err(Usage::new("there is no such command").into());
    };
    let asked = first.to_string_lossy();
    let found = target::library().and_then(|library| {
        let name = meant(&library, &asked)?;
        Ok((library, name))
    });
    // Whoever runs it tells what comes of that; that nothing is run is told here.
    let unstarted = |error, output: &mut Output| {
        let format = run::asked_format(words);
        run::told(Err(error), Some(&asked), None, format, output)
    };
    let (library, name) = match found {
        Ok((library, Some(name))) => (library, name),
        Ok((library, None)) => {
            return match of_brief(words, output)? {
                Some(exit) => Ok(exit),
                None => unstarted(unknown(&library, &asked).into(), output),
            };
        }
        Err(error) => return unstarted(error, output),
    };
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        return help(&library, &asked, &name, output);
    }
    let meant = [OsString::from("flow"), "run".into(), OsString::from(&name)];
    let cli = Cli::try_parse_from(meant.iter().chain(rest)).unwrap_or_else(|error| {
        let words: Vec<OsString> = meant[1..].iter().chain(rest).cloned().collect();
        run::refused_words(&words, &error);
        refuse(error)
    });
    if rest
        .iter()
        .any(|word| word.to_string_lossy().starts_with("--color"))
    {
        *output = Output::new(cli.color);
    }
    match &cli.command {
        Command::Run(arguments) => run::run(arguments, output),
        _ => Err(unknown(&library, &asked).into()),
    }
}

/// The workflow that a word stands for.
fn meant(library: &Library, asked: &str) -> Result<Option<String>> {
    for name in std::iter::once(asked).chain(asked.strip_prefix('_')) {
        if library.get(name)?.is_some() {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// Ends the program for words that nobody understands. Inputs of a workflow are no flags, though many
/// try.
pub(crate) fn refuse(mut error: clap::Error) -> ! {
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && let Some(input) = flag.strip_prefix("--")
    {
        let tip = format!("an input of the workflow is given as `-p {input}=VALUE`");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error.exit()
}

/// The command line with what can be run here, for those who ask for help.
pub(crate) fn with_workflows(command: clap::Command) -> clap::Command {
    let after = command.get_after_help().map(ToString::to_string);
    let listed = target::library().map(|library| listed(&library));
    command.after_help(format!(
        "{}{}",
        listed.unwrap_or_default(),
        after.unwrap_or_default()
    ))
}

/// The workflows, each with what `flow` calls it and its first line.
fn listed(library: &Library) -> String {
    let workflows = library.catalogue().workflows;
    if workflows.is_empty() {
        return String::new();
    }
    let names: Vec<String> = workflows
        .iter()
        .map(|it| match is_command(it.entry.name.as_ref()) {
            true => format!("_{}", it.entry.name),
            false => it.entry.name.clone(),
        })
        .collect();
    let widest = names
        .iter()
        .map(|name| name.len())
        .max()
        .unwrap_or_default();
    let mut text = "Workflows here, each a command:\n".to_owned();
    for (name, workflow) in names.iter().zip(&workflows).take(SHOWN) {
        let graph = workflow.definition.as_ref().ok();
        let told = graph.and_then(|graph| graph.description.as_deref());
        let first = told
            .and_then(|told| told.lines().next())
            .unwrap_or_default();
        let line = format!("  {name:widest$}  {first}");
        match line.char_indices().nth(WIDEST) {
            Some((end, _)) => text.push_str(&format!("{}…", line[..end].trim_end())),
            None => text.push_str(line.trim_end()),
        }
        text.push('\n');
    }
    if workflows.len() > SHOWN {
        text.push_str("  …           `flow list` shows them all\n");
    }
    text.push('\n');
    text
}

/// `flow <agent> …` and `flow <prompt> …`, where no workflow has the name.
fn of_brief(words: &[OsString], output: &mut Output) -> Result<Option<Exit>> {
    let asked = words[0].to_string_lossy();
    let plain = asked.strip_prefix('_').unwrap_or(&asked);
    for kind in [Kind::Agent, Kind::Prompt] {
        let briefs = brief::briefs(kind)?;
        let mut names = [asked.as_ref(), plain].into_iter();
        let Some(name) = names.find(|name| briefs.get(name).is_some()) else {
            continue;
        };
        let rest = &words[1..];
        if rest.iter().any(|word| word == "--help" || word == "-h") {
            return brief::help(&briefs, &asked, name, output).map(Some);
        }
        let meant = ["flow", kind.word(), &brief::called(name)].map(OsString::from);
        let cli =
            Cli::try_parse_from(meant.iter().chain(rest)).unwrap_or_else(|error| error.exit());
        if let Command::Agent(arguments) | Command::Prompt(arguments) = &cli.command {
            return brief::run(kind, arguments, output).map(Some);
        }
    }
    Ok(None)
}

/// The names of the commands, which come before those of workflows.
pub(crate) fn commands() -> Vec<String> {
    let cli = Cli::command();
    let commands = cli.get_subcommands().map(clap::Command::get_name);
    commands
        .map(str::to_owned)
        .chain(["help".to_owned()])
        .collect()
}

/// Whether a word is a command, and comes before a workflow of that name.
pub(crate) fn is_command(word: &OsStr) -> bool {
    commands().iter().any(|command| word == command.as_str())
}

/// What a shortcut stands for and how it is used.
fn help(library: &Library, asked: &str, name: &str, output: &mut Output) -> Result<Exit> {
    let compiled = target::any(library, name)?;
    let Some(graph) = run::checked(compiled, output) else {
        return Ok(Exit::Invalid);
    };
    if let Some(description) = &graph.description {
        output.line(description.trim())?;
        output.line("")?;
    }
    let usage = run::described(&graph, &format!("run {name}"), output.paint);
    output.print(usage)?;
    output.line(format_args!(
        "\n`flow {asked}` stands for `flow run {name}`; `flow run --help` shows its options"
    ))?;
    Ok(Exit::Done)
}

/// That nothing has this name, with what was probably meant.
fn unknown(library: &Library, asked: &str) -> Usage {
    if std::path::Path::new(asked).is_file() {
        let usage = Usage::new(format!("`{asked}` is a file, not a command or a workflow"));
        return usage.help(format!("`flow run {asked}` runs it"));
    }
    let usage = Usage::new(format!("there is no command or workflow `{asked}`"));
    let mut names = commands();
    names.extend(library.list().entries.into_iter().map(|entry| entry.name));
    match target::near(asked, &names) {
        Some(near) => usage.help(format!("did you mean `flow {near}`?")),
        None => usage.help("`flow --help` shows the commands, `flow list` the workflows"),
    }
}
