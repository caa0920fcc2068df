//! `flow doctor`: whether everything flow needs is there. Nothing is started and nothing changed.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flow_runtime::briefs::{Brief, Kind};
use flow_runtime::host::mcp::{McpSettings, Started};
use flow_runtime::journal::{Journal, Listing, Status};
use flow_runtime::library::Library;
use flow_runtime::terminal::Options;
use serde_json::{Value, json};

use crate::brief;
use crate::cli::{DoctorArguments, ShowFormat};
use crate::engine;
use crate::exit::Exit;
use crate::list::unknown_keys;
use crate::output::Output;
use crate::target;

/// Something that was looked at.
struct Finding {
    about: &'static str,
    state: State,
    says: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// It works, perhaps not as meant.
    Odd,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Odd => "note",
            State::Bad => "fault",
        }
    }
}

pub(crate) fn run(arguments: &DoctorArguments, output: &mut Output) -> Result<Exit> {
    let findings = look()?;
    match arguments.format {
        ShowFormat::Json => {
            let all: Vec<Value> = findings
                .iter()
                .map(|it| json!({"about": it.about, "status": it.state.word(), "message": it.says}))
                .collect();
            output.line(format_args!("{:#}", json!({ "findings": all })))?;
        }
        ShowFormat::Text => {
            for finding in &findings {
                let word = format!("{:<5}", finding.state.word());
                let word = match finding.state {
                    State::Good => output.paint.green(&word),
                    State::Odd => output.paint.yellow(&word),
                    State::Bad => output.paint.red(&word),
                };
                let mut lines = finding.says.lines();
                let first = lines.next().unwrap_or_default();
                output.line(format_args!("{word} {:<10} {first}", finding.about))?;
                for line in lines {
                    output.line(format_args!("{:17}{line}", ""))?;
                }
            }
        }
    }
    let bad = findings.iter().any(|finding| finding.state == State::Bad);
    Ok(if bad { Exit::Failed } else { Exit::Done })
}

fn look() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut add = |about, state, says: String| findings.push(Finding { about, state, says });
    let library = match target::library() {
        Ok(library) => library,
        Err(error) => {
            add("project", State::Bad, format!("{error:#}"));
            return Ok(findings);
        }
    };
    match library.project() {
        Some(project) => {
            add("project", State::Good, project.root().display().to_string());
        }
        None => add(
            "project",
            State::Odd,
            "none here; `flow init` makes one".to_owned(),
        ),
    }
    for odd in unknown_keys(&library) {
        add("settings", State::Odd, odd);
    }
    let (state, says) = workflows(&library);
    add("workflows", state, says);
    for kind in [Kind::Agent, Kind::Prompt] {
        let (state, says) = briefs(kind)?;
        let about = match kind {
            Kind::Agent => "agents",
            Kind::Prompt => "prompts",
        };
        add(about, state, says);
    }
    let (state, says) = journal(&engine::journal_path(&library)?);
    add("journal", state, says);
    for (state, says) in servers()? {
        add("mcp", state, says);
    }
    let shells: Vec<&str> = ["bash", "zsh", "fish", "dash"]
        .into_iter()
        .filter(|shell| program(shell).is_some())
        .collect();
    match shells.contains(&"bash") {
        true => add("shells", State::Good, shells.join(", ")),
        false => add(
            "shells",
            State::Odd,
            "there is no bash, which terminals use unless told otherwise".to_owned(),
        ),
    }
    if let Some(says) = terminals(&library) {
        add("terminals", State::Good, says);
    }
    match env::var("FLOW_AGENT") {
        Ok(command) if !command.trim().is_empty() => {
            let mut words = command.split_whitespace();
            let name = words.find(|word| !word.contains('=')).unwrap_or_default();
            match program(name).is_some() || is_of_shell(name) {
                true => add("agent", State::Good, command),
                false => add(
                    "agent",
                    State::Bad,
                    format!("FLOW_AGENT starts with `{name}`, and there is no such program"),
                ),
            }
        }
        _ => add(
            "agent",
            State::Odd,
            "FLOW_AGENT is not set: `delegate` steps wait for `flow answer`".to_owned(),
        ),
    }
    Ok(findings)
}

fn workflows(library: &Library) -> (State, String) {
    let catalogue = library.catalogue();
    let mut faults: Vec<String> = catalogue
        .workflows
        .iter()
        .filter_map(|workflow| {
            let fault = workflow.definition.as_ref().err()?;
            Some(format!("{}: {fault}", workflow.entry.name))
        })
        .collect();
    faults.extend(
        catalogue
            .refused
            .iter()
            .map(|refused| format!("{}: {}", refused.name, refused.reason)),
    );
    let count = catalogue.workflows.len();
    if faults.is_empty() {
        return (State::Good, format!("{count} can be found"));
    }
    let told = format!("{} of {count} cannot run", faults.len());
    (State::Bad, format!("{told}\n{}", faults.join("\n")))
}

fn briefs(kind: Kind) -> Result<(State, String)> {
    let found = brief::briefs(kind)?.list();
    let count = found.len();
    let faults: Vec<String> = found
        .into_iter()
        .filter_map(|found| Brief::read(found).err())
        .map(|error| error.to_string())
        .collect();
    Ok(match faults.is_empty() {
        true => (State::Good, format!("{count} can be found")),
        false => (State::Bad, faults.join("\n")),
    })
}

fn journal(path: &Path) -> (State, String) {
    let shown = path.display();
    if !path.exists() {
        return (State::Good, format!("{shown} is made by the first run"));
    }
    let counted = Journal::open(path).and_then(|journal| {
        let waiting = Listing::new().status(Status::Waiting);
        Ok(journal.list(&waiting, 100)?.runs.len())
    });
    match counted {
        Ok(0) => (State::Good, shown.to_string()),
        Ok(waiting) => (
            State::Good,
            format!("{shown}; {waiting} runs wait for an answer"),
        ),
        Err(error) => (State::Bad, error.to_string()),
    }
}

fn servers() -> Result<Vec<(State, String)>> {
    let settings = match McpSettings::around(&target::current()?) {
        Ok(settings) => settings,
        Err(error) => return Ok(vec![(State::Bad, error.to_string())]),
    };
    let mut found = Vec::new();
    for name in settings.names() {
        found.push(match settings.started_by(name) {
            Ok(Started::Address(url)) => (State::Good, format!("{name}: {url}")),
            Ok(Started::Program(command)) => match program(&command) {
                Some(_) => (State::Good, format!("{name}: {command}")),
                None => (
                    State::Bad,
                    format!("{name}: there is no program `{command}`"),
                ),
            },
            Err(error) => (State::Bad, error.to_string()),
        });
    }
    Ok(found)
}

/// Words that a command line may begin with and that are the shell's own.
const OF_SHELL: [&str; 18] = [
    ".", ":", "!", "{", "cd", "case", "command", "eval", "exec", "export", "for", "if", "set",
    "trap", "ulimit", "umask", "unset", "while",
];

fn is_of_shell(word: &str) -> bool {
    word.starts_with('(') || OF_SHELL.contains(&word)
}

/// Where a program is.
fn program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// What settings let terminals do, where they say something.
fn terminals(library: &Library) -> Option<String> {
    let (given, usual) = (library.terminal_options(), Options::default());
    let mut says = Vec::new();
    for policy in &given.policies {
        if let Some(programs) = &policy.programs {
            says.push(format!("only the programs {}", listed(programs)));
        }
        if let Some(directories) = &policy.directories {
            let shown: Vec<_> = directories.iter().map(|it| target::shown(it)).collect();
            let shown: Vec<_> = shown.iter().map(|it| it.display().to_string()).collect();
            says.push(format!("only in {}", listed(&shown)));
        }
    }
    if given.max_sessions != usual.max_sessions {
        says.push(format!("at most {} at a time", given.max_sessions));
    }
    if let Some(audit) = &given.audit {
        says.push(format!("every input is written to {}", audit.display()));
    }
    (!says.is_empty()).then(|| says.join("; "))
}

fn listed(items: &[String]) -> String {
    match items {
        [] => "none".to_owned(),
        items => items.join(", "),
    }
}
