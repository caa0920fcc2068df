//! A server of agents over a journal of its own, and what its answers say.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow_model::graph::Graph;
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_model::{compile, diagnostic};
use flow_runtime::host::agent::{
    AgentError, AgentStepType, Agents, Outcome, Patience, Submission, TaskPage, Turn, TurnStatus,
};
use flow_runtime::host::{Host, HostOptions, NoWorkflow, StartOptions, Workflows};
use flow_runtime::journal::{Journal, RunId};
use flow_runtime::run::Expressions;
use flow_runtime::value::Value;
use serde_json::Value as Json;
use tempfile::TempDir;

pub(crate) fn graph(definition: &str) -> Graph {
    let compiled = compile(Source::new("test.yaml", definition), &NoLoader);
    let findings: Vec<String> = compiled
        .findings
        .iter()
        .map(|f| diagnostic::text(f, &compiled.sources, diagnostic::Style::Plain))
        .collect();
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{}", findings.join("\n")))
}

/// Workflows that others call, by name.
struct Shelf(Vec<(&'static str, &'static str)>);

impl Workflows for Shelf {
    fn find(&self, name: &str) -> Result<Graph, NoWorkflow> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        let (_, definition) =
            found.ok_or_else(|| NoWorkflow::Unknown(format!("no workflow `{name}`")))?;
        Ok(graph(definition))
    }

    fn compile(&self, _definition: &Value) -> Result<Graph, NoWorkflow> {
        Err(NoWorkflow::Invalid("not here".to_owned()))
    }
}

/// A server that can be stopped and started again over the same journal.
pub(crate) struct Server {
    pub(crate) agents: Agents,
    directory: Arc<TempDir>,
    shelf: Vec<(&'static str, &'static str)>,
    keeping: usize,
}

impl Server {
    pub(crate) fn new() -> Self {
        Server::with(Vec::new(), 100)
    }

    /// One that keeps so many runs in memory.
    pub(crate) fn keeping(most: usize) -> Self {
        Server::with(Vec::new(), most)
    }

    /// One with workflows that others call.
    pub(crate) fn calling(shelf: Vec<(&'static str, &'static str)>) -> Self {
        Server::with(shelf, 100)
    }

    fn with(shelf: Vec<(&'static str, &'static str)>, keeping: usize) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        Server {
            agents: agents(directory.path(), &shelf, keeping),
            directory,
            shelf,
            keeping,
        }
    }

    /// Another one over the same journal, as another process would be.
    pub(crate) fn beside(&self) -> Self {
        Server {
            agents: agents(self.directory.path(), &self.shelf, self.keeping),
            directory: Arc::clone(&self.directory),
            shelf: self.shelf.clone(),
            keeping: self.keeping,
        }
    }

    /// Where its commands run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Forgets everything but the journal.
    pub(crate) fn restart(&mut self) {
        self.agents = agents(self.directory.path(), &self.shelf, self.keeping);
    }

    pub(crate) async fn start(&self, definition: &str, inputs: Json) -> RunId {
        let graph = graph(definition);
        let inputs = Value::from(&inputs);
        self.agents
            .start(&graph, &inputs, StartOptions::default())
            .await
            .unwrap()
    }

    pub(crate) async fn next(&self, run: RunId, task: Option<&str>) -> Turn {
        self.try_next(run, task).await.unwrap()
    }

    pub(crate) async fn try_next(
        &self,
        run: RunId,
        task: Option<&str>,
    ) -> Result<Turn, AgentError> {
        self.agents
            .next(run, task, TaskPage::default(), PATIENT)
            .await
    }

    pub(crate) async fn submit(&self, run: RunId, step: &str, result: Json) -> Turn {
        self.try_submit(run, Some(step), result).await.unwrap()
    }

    pub(crate) async fn try_submit(
        &self,
        run: RunId,
        step: Option<&str>,
        result: Json,
    ) -> Result<Turn, AgentError> {
        let submission = Submission {
            result: Some(Value::from(&result)),
            ..Submission::default()
        };
        self.agents
            .submit(run, step, submission, TaskPage::default(), PATIENT)
            .await
    }

    /// Says that a step was done, and nothing else.
    pub(crate) async fn done(&self, run: RunId, step: &str) -> Turn {
        let submission = Submission::default();
        self.agents
            .submit(run, Some(step), submission, TaskPage::default(), PATIENT)
            .await
            .unwrap()
    }

    pub(crate) async fn fail(&self, run: RunId, step: &str, error: &str) -> Turn {
        let submission = Submission {
            outcome: Outcome::Failed,
            result: None,
            error: Some(error.to_owned()),
        };
        self.agents
            .submit(run, Some(step), submission, TaskPage::default(), PATIENT)
            .await
            .unwrap()
    }
}

fn agents(directory: &Path, shelf: &[(&'static str, &'static str)], keeping: usize) -> Agents {
    let journal = Journal::open(directory.join("journal.db")).unwrap();
    let directory = directory.to_owned();
    let mut options = HostOptions::new(journal, directory, |_| Box::new(Expressions::new()));
    options.workflows = Arc::new(Shelf(shelf.to_vec()));
    Agents::keeping(Host::new(options), keeping)
}

pub(crate) const PATIENT: Patience = Patience::of(Duration::from_secs(30));

#[track_caller]
pub(crate) fn step_id(turn: &Turn) -> String {
    match &turn.step {
        Some(step) => step.id.clone(),
        None => panic!("no step: {turn:?}"),
    }
}

pub(crate) fn definition<'t>(turn: &'t Turn, field: &str) -> &'t Json {
    &turn.step.as_ref().unwrap().definition[field]
}

pub(crate) fn kind(turn: &Turn) -> AgentStepType {
    turn.step.as_ref().unwrap().kind
}

pub(crate) fn output(turn: &Turn) -> Json {
    assert_eq!(turn.status, TurnStatus::Completed, "{turn:?}");
    turn.output.to_json()
}
