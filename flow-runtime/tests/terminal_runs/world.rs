//! A project with a host and terminals.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use flow_model::compile;
use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_runtime::host::{
    Host, HostOptions, Kept, NoWorkflow, Report, ReportStatus, StartOptions, Workflows,
};
use flow_runtime::journal::RunId;
use flow_runtime::library::{Definition, Library, Project, Saved};
use flow_runtime::terminal::{Options, Terminals};
use flow_runtime::value::Value;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// A project, a host with terminals, and definitions that others call.
pub(crate) struct World {
    pub(crate) root: TempDir,
    pub(crate) terminals: Terminals,
    pub(crate) host: Host,
}

/// The workflows of a project.
struct Stored(Library);

impl Workflows for Stored {
    fn find(&self, name: &str) -> Result<Graph, NoWorkflow> {
        let found = self.0.find(name);
        let entry = found.map_err(|error| NoWorkflow::Unknown(error.to_string()))?;
        let compiled = self.0.compile(&entry);
        let compiled = compiled.map_err(|error| NoWorkflow::Invalid(error.to_string()))?;
        let invalid = || NoWorkflow::Invalid("not valid".to_owned());
        compiled.into_graph().ok_or_else(invalid)
    }

    fn compile(&self, definition: &Value) -> Result<Graph, NoWorkflow> {
        let source = Source::from_value("inline", &definition.to_json());
        let compiled = compile(source, &self.0);
        let first = compiled.findings.first().map(|it| it.message.clone());
        let invalid = || NoWorkflow::Invalid(first.unwrap_or_default());
        compiled.into_graph().ok_or_else(invalid)
    }

    fn keep(&self, definition: &Value) -> Result<Option<Kept>, String> {
        let definition = definition.to_json();
        let saved = self.0.save_for_reuse(Definition::Value(&definition));
        let saved = saved.map_err(|error| error.to_string())?;
        Ok(Some(Kept {
            name: saved.entry().name.clone(),
            is_new: matches!(saved, Saved::New(_)),
        }))
    }
}

impl World {
    pub(crate) fn new(workflows: &[(&str, &str)]) -> Self {
        World::with(workflows, |_| {})
    }

    pub(crate) fn with(workflows: &[(&str, &str)], change: impl FnOnce(&mut HostOptions)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(".flow/workflows");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in workflows {
            fs::write(directory.join(format!("{name}.yaml")), text).unwrap();
        }
        let (host, terminals) = World::host(root.path(), change);
        World {
            root,
            terminals,
            host,
        }
    }

    pub(crate) fn host(root: &Path, change: impl FnOnce(&mut HostOptions)) -> (Host, Terminals) {
        let terminals = Terminals::new(Options {
            directory: Some(root.to_owned()),
            ..Options::default()
        })
        .unwrap();
        let project = Project::at(root).unwrap().unwrap();
        let mut options = HostOptions::open(root.join(".flow")).unwrap();
        options.directory = root.to_owned();
        options.terminals = Some(terminals.clone());
        options.workflows = Arc::new(Stored(Library::empty().with_project(project)));
        change(&mut options);
        (Host::new(options), terminals)
    }

    /// A session in which a command has been run.
    pub(crate) async fn session(&self, command: &str) -> String {
        let opened = self
            .terminals
            .call("open_terminal", json!({"shell": "bash"}))
            .await
            .unwrap();
        let session = opened["session_id"].as_str().unwrap().to_owned();
        if !command.is_empty() {
            self.command(&session, command).await;
        }
        session
    }

    pub(crate) async fn command(&self, session: &str, command: &str) -> Json {
        let parameters = json!({"session_id": session, "command": command, "timeout": 30});
        let ran = self.terminals.call("run_command", parameters).await;
        ran.unwrap()
    }

    pub(crate) async fn run(&self, text: &str, options: StartOptions) -> Report {
        self.run_with(text, Value::Null, options).await
    }

    /// A run that must complete; else all that happened is told.
    pub(crate) async fn completed(&self, text: &str, options: StartOptions) -> Report {
        let report = self.run(text, options).await;
        if report.status != ReportStatus::Completed {
            let log = Json::from(self.log(report.run));
            panic!("{:?}: {:?}\n{log:#}", report.status, report.error);
        }
        report
    }

    pub(crate) async fn run_with(
        &self,
        text: &str,
        inputs: Value,
        options: StartOptions,
    ) -> Report {
        let run = self.start(text, inputs, options).await;
        self.host.drive(run).await.unwrap()
    }

    pub(crate) async fn start(&self, text: &str, inputs: Value, options: StartOptions) -> RunId {
        let started = self.host.start(&graph(text), &inputs, options).await;
        started.unwrap()
    }

    /// Why a run does not even start.
    pub(crate) async fn refused(&self, text: &str, options: StartOptions) -> String {
        let started = self.host.start(&graph(text), &Value::Null, options).await;
        started.unwrap_err().to_string()
    }

    pub(crate) fn log(&self, run: RunId) -> Vec<Json> {
        let page = self.host.execution_log(run, 0, usize::MAX).unwrap();
        assert_eq!(page.next, None);
        let entries = page.entries.iter();
        entries
            .map(|it| serde_json::to_value(it).unwrap())
            .collect()
    }
}

pub(crate) fn graph(text: &str) -> Graph {
    let compiled = compile(Source::new("main.yaml", text), &NoLoader);
    let findings = format!("{:?}", compiled.findings);
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{findings}"))
}

pub(crate) fn in_session(session: &str) -> StartOptions {
    StartOptions {
        session: Some(session.to_owned()),
        ..StartOptions::default()
    }
}
