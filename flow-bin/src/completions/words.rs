//! What can stand at the end of a command line.

use clap::{Arg, ArgAction, Command, CommandFactory};
use flow_model::diagnostic::Code;
use flow_model::graph::Field;
use flow_runtime::briefs::{Brief, Kind};
use flow_runtime::journal::{Listing, Status};
use flow_runtime::library::Library;

use crate::brief;
use crate::cli::Cli;
use crate::engine::Engine;
use crate::list;
use crate::shortcut::is_command;
use crate::target;

/// Runs that are offered, newest first.
const MOST_RUNS: usize = 20;

/// A word, and what it is.
pub(super) struct Candidate {
    pub(super) word: String,
    pub(super) told: String,
}

impl Candidate {
    fn new(word: impl Into<String>, told: impl ToString) -> Self {
        Candidate {
            word: word.into(),
            told: told.to_string(),
        }
    }
}

/// What can stand for the last of the words after `flow`. What cannot be found out is left out.
pub(super) fn candidates(words: &[String]) -> Vec<Candidate> {
    let Some((typed, before)) = words.split_last() else {
        return Vec::new();
    };
    let mut root = Cli::command();
    root.build();
    let line = Line::read(&root, before);
    let (head, found) = match (&line.open, typed.split_once('=')) {
        (Some(option), _) => ("", line.values(option)),
        // `--format=js`
        (None, Some((name, _))) if name.starts_with("--") => {
            let option = line.option(name);
            let values = option.map(|it| line.values(it)).unwrap_or_default();
            (&typed[..=name.len()], values)
        }
        (None, _) if typed.starts_with('-') => ("", line.options()),
        (None, _) => ("", line.arguments()),
    };
    let found = found.into_iter().map(|it| Candidate {
        word: format!("{head}{}", it.word),
        ..it
    });
    found.filter(|it| it.word.starts_with(typed)).collect()
}

/// A command line as far as it has been typed.
struct Line<'c> {
    command: &'c Command,
    /// Words that are no options.
    given: Vec<&'c str>,
    /// An option that wants its value next.
    open: Option<&'c Arg>,
}

impl<'c> Line<'c> {
    fn read(root: &'c Command, words: &'c [String]) -> Self {
        let mut line = Line {
            command: root,
            given: Vec::new(),
            open: None,
        };
        let mut is_begun = false;
        for word in words {
            if line.open.take().is_some() {
                continue;
            }
            if word.starts_with('-') {
                line.open = line.option(word).filter(|option| takes_value(option));
                continue;
            }
            if is_begun {
                line.given.push(word);
                continue;
            }
            is_begun = true;
            let command = root.find_subcommand(word);
            line.command = match command {
                Some(command) => command,
                // A shortcut.
                None => {
                    let (kind, name) = line.shortcut(word);
                    line.given.push(name);
                    root.find_subcommand(kind).unwrap_or(root)
                }
            };
        }
        line
    }

    /// The command that a shortcut stands for, and the name after it.
    fn shortcut(&self, word: &'c str) -> (&'static str, &'c str) {
        let plain = word.strip_prefix('_').unwrap_or(word);
        for kind in [Kind::Agent, Kind::Prompt] {
            let is_workflow = || {
                let library = target::library();
                library.is_ok_and(|it| it.get(plain).is_ok_and(|found| found.is_some()))
            };
            let is_brief = brief::briefs(kind).is_ok_and(|it| it.get(plain).is_some());
            if is_brief && !is_workflow() {
                return (kind.word(), plain);
            }
        }
        ("run", plain)
    }

    /// The option that a word is; `None` for one that has its value with it.
    fn option(&self, word: &str) -> Option<&'c Arg> {
        let mut options = self.command.get_arguments();
        match (word.strip_prefix("--"), word.strip_prefix('-')) {
            (Some(long), _) => options.find(|it| it.get_long() == Some(long)),
            (None, Some(short)) => {
                let mut letters = short.chars().rev();
                let last = letters.next()?;
                options.find(|it| it.get_short() == Some(last))
            }
            (None, None) => None,
        }
    }

    fn options(&self) -> Vec<Candidate> {
        let shown = self.command.get_arguments();
        let shown = shown.filter(|it| !it.is_positional() && !it.is_hide_set());
        let long = shown.filter_map(|it| {
            let told = it.get_help().map(ToString::to_string);
            Some(Candidate::new(
                format!("--{}", it.get_long()?),
                told.unwrap_or_default(),
            ))
        });
        long.collect()
    }

    /// The values that an option can have, where those are known.
    fn values(&self, option: &Arg) -> Vec<Candidate> {
        if option.get_id() == "parameters" {
            return self.parameters();
        }
        if option.get_id() == "status" {
            let all = [
                Status::Running,
                Status::Waiting,
                Status::Sleeping,
                Status::Completed,
                Status::Failed,
                Status::Cancelled,
            ];
            return all.map(|it| Candidate::new(it.as_str(), "")).into();
        }
        possible(option)
    }

    /// The inputs of the workflow, or arguments of the brief, that was named.
    fn parameters(&self) -> Vec<Candidate> {
        let Some(name) = self.given.first() else {
            return Vec::new();
        };
        let said = |fields: &[Field]| {
            let fields = fields.iter().map(|field| {
                let told = field.description.as_deref().unwrap_or(field.ty.word());
                Candidate::new(format!("{}=", field.name), told)
            });
            fields.collect()
        };
        let of_brief = |kind| {
            let briefs = brief::briefs(kind).ok()?;
            let brief: Brief = briefs.brief(name).ok()?;
            brief.arguments().map(said)
        };
        let of_workflow = || {
            let library = target::library().ok()?;
            let graph = target::any(&library, name).ok()?.into_graph()?;
            Some(said(list::parameters(&graph)))
        };
        let found = match self.command.get_name() {
            "agent" => of_brief(Kind::Agent),
            "prompt" => of_brief(Kind::Prompt),
            _ => of_workflow(),
        };
        found.unwrap_or_default()
    }

    /// What can stand where no option does.
    fn arguments(&self) -> Vec<Candidate> {
        if self.command.get_name() == Cli::command().get_name() {
            return everything(self.command);
        }
        if !self.given.is_empty() {
            return Vec::new();
        }
        match self.command.get_name() {
            "run" | "graph" | "expand" => library().map(|it| workflows(&it)).unwrap_or_default(),
            "show" | "logs" => runs(&[]),
            "resume" => runs(&[Status::Waiting, Status::Failed, Status::Sleeping]),
            "answer" => runs(&[Status::Waiting]),
            "cancel" => runs(&[Status::Running, Status::Waiting, Status::Sleeping]),
            "agent" => briefs(Kind::Agent, true),
            "prompt" => briefs(Kind::Prompt, true),
            "help" => everything(&Cli::command()),
            "explain" => {
                let codes = Code::ALL.iter();
                let codes = codes.map(|code| Candidate::new(code.as_str(), code.title()));
                codes.collect()
            }
            _ => {
                let first = self.command.get_positionals().next();
                first.map(possible).unwrap_or_default()
            }
        }
    }
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

fn possible(argument: &Arg) -> Vec<Candidate> {
    let values = argument.get_possible_values().into_iter();
    let shown = values.filter(|it| !it.is_hide_set());
    let shown = shown.map(|it| {
        let told = it.get_help().map(ToString::to_string);
        Candidate::new(it.get_name(), told.unwrap_or_default())
    });
    shown.collect()
}

/// Commands, and what has a shortcut.
fn everything(root: &Command) -> Vec<Candidate> {
    let commands = root.get_subcommands().filter(|it| !it.is_hide_set());
    let mut all: Vec<Candidate> = commands
        .map(|it| {
            let told = it.get_about().map(ToString::to_string);
            Candidate::new(it.get_name(), told.unwrap_or_default())
        })
        .collect();
    let mut runnable = library().map(|it| workflows(&it)).unwrap_or_default();
    runnable.extend(briefs(Kind::Agent, false));
    runnable.extend(briefs(Kind::Prompt, false));
    for candidate in runnable {
        let word = match is_command(candidate.word.as_ref()) {
            true => format!("_{}", candidate.word),
            false => candidate.word,
        };
        // A workflow comes before an agent or prompt of its name.
        if !all.iter().any(|it| it.word == word) {
            all.push(Candidate { word, ..candidate });
        }
    }
    all
}

fn library() -> Option<Library> {
    target::library().ok()
}

fn workflows(library: &Library) -> Vec<Candidate> {
    let workflows = library.catalogue().workflows.into_iter();
    let workflows = workflows.map(|it| {
        let told = it.definition.ok().and_then(|graph| graph.description);
        Candidate::new(it.entry.name, told.unwrap_or_default())
    });
    workflows.collect()
}

/// Briefs by name, or by what the command of their kind calls them.
fn briefs(kind: Kind, is_command: bool) -> Vec<Candidate> {
    let mut all = match is_command {
        true => vec![Candidate::new("list", format!("list the {}s", kind.word()))],
        false => Vec::new(),
    };
    let found = brief::briefs(kind).map(|it| it.list()).unwrap_or_default();
    all.extend(found.into_iter().map(|found| {
        let name = match is_command {
            true => brief::called(&found.name),
            false => found.name.clone(),
        };
        let told = Brief::read(found).ok().and_then(|it| it.description);
        Candidate::new(name, told.unwrap_or_default())
    }));
    all
}

/// Runs that stand so, or all of them.
fn runs(statuses: &[Status]) -> Vec<Candidate> {
    let Ok(Some(engine)) = Engine::reading(None) else {
        return Vec::new();
    };
    let all = Listing::new().top_level();
    let wanted = statuses.iter().fold(all, |it, status| it.status(*status));
    let Ok(listed) = engine.host.journal().list(&wanted, MOST_RUNS) else {
        return Vec::new();
    };
    let mut runs = vec![Candidate::new("latest", "the newest run")];
    runs.extend(listed.runs.into_iter().map(|run| {
        let told = format!("{} {}", run.workflow, run.status);
        Candidate::new(run.id.to_string(), told)
    }));
    runs
}
