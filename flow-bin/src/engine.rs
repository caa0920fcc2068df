//! The engine of the commands that deal with runs: a journal, a host, a small runtime.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use flow_model::diagnostic::Severity;
use flow_model::graph::Graph;
use flow_model::source::Source;
use flow_model::tools;
use flow_model::{Compiled, compile};
use flow_runtime::briefs::{Briefs, Kind};
use flow_runtime::host::mcp::McpServers;
use flow_runtime::host::{
    Host, HostOptions, Kept, Memory, NoWorkflow, People, Report, Toolbox, Tools, Watch, Workflows,
};
use flow_runtime::journal::{self, Journal, Listing, RunId, Status};
use flow_runtime::library::{self, Definition, Library, Place, Saved};
use flow_runtime::run::{Evaluator, Event, Expressions, Happening};
use flow_runtime::terminal::{self, Terminals};
use flow_runtime::value::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Forbidden, Stopped, Usage};
use crate::findings;
use crate::target;

/// What the journal's file is called.
const JOURNAL: &str = "journal.db";
/// So many runs that are not over are looked at, newest first.
const MOST_OPEN: usize = 1000;
/// What names the newest run.
const LATEST: &str = "latest";
/// What a workflow given as a definition is called when it has no name.
const INLINE: &str = "inline";

/// Where runs are recorded: in the project, else in the user's data directory. A project that has no
/// journal yet goes on with the user's while that has runs from here that are not over: they began
/// before there was a project.
pub(crate) fn journal_path(library: &Library) -> Result<PathBuf> {
    let Some(project) = library.project() else {
        return user_journal();
    };
    let own = project.root().join(".flow").join(JOURNAL);
    let outside = || journal_outside(library).filter(|path| has_open_runs(path, project.root()));
    match own.exists() {
        true => Ok(own),
        false => Ok(outside().unwrap_or(own)),
    }
}

/// Whether a journal has runs that are not over and began in a directory or below it.
fn has_open_runs(path: &Path, directory: &Path) -> bool {
    let directory = directory.canonicalize();
    let (Ok(journal), Ok(directory)) = (Journal::open(path), directory) else {
        return false;
    };
    let began_here = |run: RunId| {
        let first = journal.events(run, 1..=1, 1).ok()?;
        let event: Event = serde_json::from_slice(&first.first()?.body).ok()?;
        match event.what {
            Happening::Started(start) => Path::new(&start.directory?).canonicalize().ok(),
            _ => None,
        }
    };
    let is_here = |run: RunId| began_here(run).is_some_and(|begun| begun.starts_with(&directory));
    journal
        .list(&open_runs(), MOST_OPEN)
        .is_ok_and(|open| open.runs.iter().any(|run| is_here(run.id)))
}

/// Runs that nobody called and that are not over.
pub(crate) fn open_runs() -> Listing {
    let open = [Status::Running, Status::Waiting, Status::Sleeping];
    open.into_iter()
        .fold(Listing::new().top_level(), Listing::status)
}

/// Where runs outside of projects are recorded.
fn user_journal() -> Result<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    let directory = if let Some(directory) = variable("FLOW_DATA_DIR") {
        PathBuf::from(directory)
    } else if let Some(directory) = variable("XDG_DATA_HOME") {
        PathBuf::from(directory).join("flow")
    } else if let Some(home) = variable("HOME") {
        PathBuf::from(home).join(".local/share/flow")
    } else {
        let usage = Usage::new("there is no project here and no directory for the user's runs");
        return Err(usage.help("set FLOW_DATA_DIR").into());
    };
    Ok(directory.join(JOURNAL))
}

/// The user's journal, where a project has one of its own: what ran here before there was a project
/// is still there.
pub(crate) fn journal_outside(library: &Library) -> Option<PathBuf> {
    library.project()?;
    user_journal().ok().filter(|path| path.exists())
}

/// Where the run is recorded that a person means, if one is meant. What only the user's journal
/// knows is found there.
fn journal_of(library: &Library, asked: Option<&str>) -> Result<PathBuf> {
    let own = journal_path(library)?;
    let Some(asked) = asked else {
        return Ok(own);
    };
    let holds = |path: &Path| {
        path.exists() && Journal::open(path).is_ok_and(|journal| journal.resolve(asked).is_ok())
    };
    if holds(&own) {
        return Ok(own);
    }
    let outside = sought_outside(library, asked);
    Ok(outside.filter(|path| holds(path)).unwrap_or(own))
}

/// Where else to look for a run that is meant and that the journal here does not hold. The latest
/// one is always meant here.
pub(crate) fn sought_outside(library: &Library, asked: &str) -> Option<PathBuf> {
    journal_outside(library).filter(|_| asked != LATEST)
}

/// What every host of this program is made of, on the command line and in the server.
pub(crate) fn options(
    journal: Journal,
    library: Library,
    terminals: &Terminals,
    servers: &Arc<McpServers>,
) -> Result<HostOptions> {
    let memory = Memory::new(journal.clone());
    let mut options = HostOptions::new(journal, target::current()?, evaluator);
    let tools: [Arc<dyn Tools>; 2] = [Arc::new(memory), Arc::clone(servers) as _];
    options.tools = Arc::new(Toolbox::new(tools));
    options.terminals = Some(terminals.clone());
    options.workflows = Arc::new(Known { library });
    options.agents = Some(Briefs::around(Kind::Agent, &options.directory));
    Ok(options)
}

/// A host and what it runs on.
pub(crate) struct Engine {
    pub(crate) host: Host,
    servers: Arc<McpServers>,
    terminals: Option<Terminals>,
    workflows: Arc<dyn Workflows>,
    runtime: Runtime,
    interrupts: Interrupts,
}

/// What makes this process stop.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal is gone. It is told once: a shell and the system may both say so.
    hangup: Option<Signal>,
}

impl Interrupts {
    /// Listens from now on; a runtime must be at hand.
    pub(crate) fn new() -> Result<Self> {
        Ok(Interrupts {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match ignores_hangup() {
                true => None,
                false => Some(signal(SignalKind::hangup())?),
            },
        })
    }

    pub(crate) async fn next(&mut self) {
        let hangup = &mut self.hangup;
        let hung_up = async {
            match hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let is_gone = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => false,
            _ = hung_up => true,
        };
        if is_gone {
            self.hangup = None;
        }
    }
}

/// Whether this process was started to outlive its terminal, as `nohup` does.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

impl Engine {
    /// An engine that drives runs, over the journal of the one that is meant, if one is.
    pub(crate) fn new(
        library: Library,
        asked: Option<&str>,
        people: Arc<dyn People>,
        watch: Arc<dyn Watch>,
    ) -> Result<Self> {
        let path = journal_of(&library, asked)?;
        Engine::over(&path, library, people, watch)
    }

    fn over(
        journal: &Path,
        library: Library,
        people: Arc<dyn People>,
        watch: Arc<dyn Watch>,
    ) -> Result<Self> {
        let journal = Journal::open(journal)?;
        let terminals = Terminals::new(library.terminal_options())?;
        // Nobody else is asked for tools, so that what is missing is told with what there is.
        let servers = Arc::new(McpServers::around(&target::current()?).answering_all());
        let mut options = options(journal, library, &terminals, &servers)?;
        options.people = people;
        options.watch = watch;
        options.agent = std::env::var("FLOW_AGENT")
            .ok()
            .filter(|command| !command.trim().is_empty());
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("the engine cannot be started")?;
        let interrupts = {
            let _inside = runtime.enter();
            Interrupts::new()?
        };
        Ok(Engine {
            terminals: options.terminals.clone(),
            workflows: Arc::clone(&options.workflows),
            host: Host::new(options),
            servers,
            runtime,
            interrupts,
        })
    }

    /// The journal of the run that is meant, or the one here, with a host that only looks at runs;
    /// `None` before the first run.
    pub(crate) fn reading(asked: Option<&str>) -> Result<Option<Self>> {
        let library = target::library()?;
        let path = journal_of(&library, asked)?;
        Engine::looking(&path, library)
    }

    /// The same of the user's journal, from within a project.
    pub(crate) fn outside() -> Result<Option<Self>> {
        let library = target::library()?;
        let here = journal_path(&library)?;
        match journal_outside(&library).filter(|path| *path != here) {
            Some(path) => Engine::looking(&path, library),
            None => Ok(None),
        }
    }

    fn looking(path: &Path, library: Library) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let nobody = Arc::new(flow_runtime::host::Nobody);
        let unwatched = Arc::new(flow_runtime::host::NoWatch);
        Engine::over(path, library, nobody, unwatched).map(Some)
    }

    /// Opens a terminal session for a run to work in.
    pub(crate) fn open_session(&self, shell: &str) -> Result<String> {
        let Some(terminals) = &self.terminals else {
            anyhow::bail!("there are no terminals here");
        };
        let request = tools::OpenTerminalRequest {
            shell: shell.to_owned(),
            working_directory: None,
            environment: std::collections::BTreeMap::default(),
        };
        let other = "choose another shell with --session";
        let reason = match self.runtime.block_on(terminals.try_open(request)) {
            Ok(opened) => match opened.session_id {
                Some(session) => return Ok(session),
                None => opened.error.unwrap_or_default(),
            },
            Err(error @ (terminal::Error::Refused(_) | terminal::Error::TooMany { .. })) => {
                let message = format!("no terminal may be opened with `{shell}`: {error}");
                let help = format!("{other}, or see with `flow doctor` what is allowed here");
                return Err(Forbidden { message, help }.into());
            }
            Err(error) => error.to_string(),
        };
        let usage = Usage::new(format!(
            "no terminal can be opened with `{shell}`: {reason}"
        ));
        Err(usage.help(other).into())
    }

    /// Terminal sessions that are open and end with this process.
    pub(crate) fn sessions(&self) -> Vec<String> {
        let terminals = self.terminals.as_ref();
        terminals.map(Terminals::sessions).unwrap_or_default()
    }

    /// Waits for something that the host does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Drives a run until it ends, waits, or this process is told to stop.
    pub(crate) fn drive(&mut self, run: RunId) -> Result<Report> {
        let host = self.host.clone();
        let interrupts = &mut self.interrupts;
        let servers = &self.servers;
        let report = self.runtime.block_on(async {
            let mut driven = std::pin::pin!(host.drive(run));
            let mut asked = false;
            loop {
                tokio::select! {
                    report = &mut driven => {
                        servers.shutdown().await;
                        return report;
                    }
                    () = interrupts.next() => {
                        if asked {
                            // Whoever asks twice does not want to wait; `flow resume` cleans up.
                            std::process::exit(130);
                        }
                        asked = true;
                        host.interrupt();
                    }
                }
            }
        });
        report.map_err(|error| {
            use flow_runtime::host::Error;
            let is_outside = matches!(
                &error,
                Error::Journal(
                    journal::Error::Full { .. }
                        | journal::Error::Io { .. }
                        | journal::Error::Poisoned { .. }
                        | journal::Error::Locked { .. }
                        | journal::Error::ReadOnly { .. }
                        | journal::Error::Denied { .. }
                        | journal::Error::Moved { .. }
                )
            );
            let error = anyhow::Error::from(error);
            if is_outside {
                error.context(Stopped(run))
            } else {
                error
            }
        })
    }

    /// Waits a while; true when this process is told to stop meanwhile.
    pub(crate) fn pause(&mut self, time: std::time::Duration) -> bool {
        let interrupts = &mut self.interrupts;
        self.runtime.block_on(async {
            tokio::select! {
                () = interrupts.next() => true,
                () = tokio::time::sleep(time) => false,
            }
        })
    }

    /// The workflow that a step calls by this name, if there is one.
    pub(crate) fn workflow(&self, name: &str, beside: Option<&Path>) -> Option<Graph> {
        self.workflows.find_beside(name, beside).ok()
    }

    /// The workflow of a run.
    pub(crate) fn graph(&self, run: RunId) -> Result<Graph> {
        Ok(self.host.program_of(run)?.graph().clone())
    }

    /// The run that a person means: an id, its beginning, or `latest`.
    pub(crate) fn resolve(&self, asked: &str) -> Result<RunId> {
        if asked == LATEST {
            let newest = self.host.journal().list(&Listing::new().top_level(), 1)?;
            let newest = newest.runs.first().map(|run| run.id);
            return newest.ok_or_else(|| Usage::new("there is no run yet").into());
        }
        Ok(self.host.journal().resolve(asked)?)
    }

    /// The secrets that a run, and the runs it has called, wait for.
    pub(crate) fn missing_secrets(&self, report: &Report) -> Result<Vec<String>> {
        let mut missing = report.missing_secrets.clone();
        for child in self.host.called(report.run)? {
            if !child.status.is_final() {
                let report = self.host.report(child.id)?;
                missing.extend(self.missing_secrets(&report)?);
            }
        }
        missing.sort();
        missing.dedup();
        Ok(missing)
    }
}

fn evaluator(_graph: &Graph) -> Box<dyn Evaluator> {
    Box::new(Expressions::new())
}

/// The workflows that others call: those of the library, then those beside the file that was run.
struct Known {
    library: Library,
}

impl Workflows for Known {
    fn find(&self, name: &str) -> Result<Graph, NoWorkflow> {
        self.find_beside(name, None)
    }

    fn find_beside(&self, name: &str, beside: Option<&Path>) -> Result<Graph, NoWorkflow> {
        let unreadable = |error: library::Error| NoWorkflow::Invalid(error.to_string());
        let in_one = |library: &Library| library.get(name).map_err(unreadable);
        let found = match (in_one(&self.library)?, beside) {
            (Some(entry), _) => Some(entry),
            (None, Some(directory)) => {
                let siblings = Library::empty();
                in_one(&siblings.with_directory(Place::Project, directory.to_owned()))?
            }
            (None, None) => None,
        };
        let Some(entry) = found else {
            let entries = self.library.list().entries.into_iter();
            let names: Vec<String> = entries.map(|entry| entry.name).collect();
            return Err(NoWorkflow::Unknown(target::no_workflow(name, &names)));
        };
        let compiled = target::entry(&self.library, &entry);
        graph(compiled.map_err(unreadable)?, &format!("`{name}`"))
    }

    fn compile(&self, definition: &Value) -> Result<Graph, NoWorkflow> {
        let source = match definition {
            Value::Str(text) => Source::new(INLINE, text.as_ref()),
            other => Source::from_value(INLINE, &other.to_json()),
        };
        graph(compile(source, &self.library), "given here")
    }

    fn keep(&self, definition: &Value) -> Result<Option<Kept>, String> {
        let saved = match definition {
            Value::Str(text) => self.library.save_for_reuse(Definition::Text(text)),
            other => {
                let value = other.to_json();
                self.library.save_for_reuse(Definition::Value(&value))
            }
        };
        let saved = saved.map_err(|error| error.to_string())?;
        Ok(Some(Kept {
            name: saved.entry().name.clone(),
            is_new: matches!(saved, Saved::New(_)),
        }))
    }
}

/// The graph, or the first thing that is wrong with the definition, and where.
fn graph(compiled: Compiled, which: &str) -> Result<Graph, NoWorkflow> {
    let first = findings::lines(&compiled, Severity::Error)
        .into_iter()
        .next();
    compiled.into_graph().ok_or_else(|| {
        let reason = first.unwrap_or_else(|| "it has errors".to_owned());
        NoWorkflow::Invalid(format!("the workflow {which} is not valid: {reason}"))
    })
}
