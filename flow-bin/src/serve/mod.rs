//! `flow serve`: workflows and terminals for agents, over MCP.
//!
//! A [`Server`] is what the process knows: a host, a library, the runs under way. It outlives every
//! connection, so a run goes on when the call that began it has been answered, and any connection
//! can ask for it. `handler` speaks the protocol for one connection; `stdio` and `http` carry it.
//!
//! A tool is declared once in `flow_model::tools` (name, typed request and response, what it does
//! to the world) and gets its handler here, in the file of its group:
//!
//! ```text
//! pub(super) fn offers() -> Vec<Offer> {
//!     vec![Offer::new(start_workflow)]
//! }
//!
//! async fn start_workflow(
//!     server: Arc<Server>,
//!     request: StartWorkflowRequest,
//!     call: Call,
//! ) -> Result<StartWorkflowResponse, Refused> { … }
//! ```
//!
//! The request has been checked when the handler sees it. What cannot be meant is [`Refused`] and
//! becomes a tool error; a run that failed is an answer. [`Server::follow`] drives a run in the
//! background and waits for it as long as the call may; `standing` says how a run stands.

mod agent;
mod audience;
mod brief;
mod catalogue;
mod complete;
mod debug;
mod definition;
mod elicit;
mod excerpt;
mod explain;
mod fixture;
mod given_inputs;
mod handler;
mod heard;
mod http;
mod instructions;
mod library;
mod line;
mod log;
mod lookout;
mod memory;
mod notices;
mod outside;
mod progress;
mod prompts;
mod resources;
mod run_list;
mod runs;
mod standing;
mod stdio;
mod terminal;
mod tool;
mod workflow;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use flow_model::tools::Toolset;
use flow_runtime::host::mcp::McpServers;
use flow_runtime::host::{Agents, Host, Memory};
use flow_runtime::journal::Journal;
use flow_runtime::library::Library;
use flow_runtime::terminal::Terminals;
use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::cli::{ServeArguments, ServeToolset};
use crate::engine::{self, Interrupts};
use crate::exit::Exit;
use crate::output::Output;
use crate::target;
use audience::Audience;
use catalogue::Shelves;
use handler::Connection;
use line::Structure;
use tool::Offers;

/// What the process knows, whoever is connected.
pub(crate) struct Server {
    pub(crate) host: Host,
    /// Terminal sessions, of agents and of runs.
    pub(crate) terminals: Terminals,
    /// Runs that agents drive.
    pub(crate) agents: Agents,
    /// MCP servers that runs call.
    servers: Arc<McpServers>,
    /// Values kept between runs.
    pub(crate) memory: Memory,
    /// Where the server was started.
    pub(crate) directory: PathBuf,
    /// Where workflows are found.
    pub(crate) shelves: Arc<Shelves>,
    /// Calls that listen to runs.
    pub(crate) audience: Arc<Audience>,
    pub(crate) offers: Arc<Offers>,
    /// The same for runs that the user's journal holds, once one of them was asked for.
    outside: Mutex<Option<Arc<Server>>>,
    leaving: watch::Sender<bool>,
}

impl Server {
    fn new(library: Library, arguments: &ServeArguments) -> Result<Arc<Self>> {
        let journal = Journal::open(engine::journal_path(&library)?)?;
        let terminals = Terminals::new(library.terminal_options())?;
        let directory = target::current()?;
        let servers = Arc::new(McpServers::around(&directory));
        let offers = Offers::new(&toolsets(arguments), arguments.read_only);
        let shelves = Arc::new(Shelves::new(library));
        Server::over(
            journal,
            directory,
            terminals,
            servers,
            shelves,
            Arc::new(offers),
        )
    }

    /// A server of the runs of one journal.
    fn over(
        journal: Journal,
        directory: PathBuf,
        terminals: Terminals,
        servers: Arc<McpServers>,
        shelves: Arc<Shelves>,
        offers: Arc<Offers>,
    ) -> Result<Arc<Self>> {
        let audience = Arc::new(Audience::new(journal.clone()));
        let memory = Memory::new(journal.clone());
        let library = shelves.library().clone();
        let mut options = engine::options(journal, library, &terminals, &servers)?;
        options.people = Arc::clone(&audience) as _;
        options.watch = Arc::clone(&audience) as _;
        // Whoever calls has servers of their own.
        options.agent_has_tools = true;
        let host = Host::new(options);
        Ok(Arc::new(Server {
            agents: Agents::new(host.clone()),
            host,
            terminals,
            servers,
            memory,
            directory,
            shelves,
            audience,
            offers,
            outside: Mutex::default(),
            leaving: watch::Sender::new(false),
        }))
    }

    /// Lets go of everything: runs stay resumable, calls that wait are answered.
    fn leave(&self) {
        self.leaving.send_replace(true);
        self.host.interrupt();
        if let Some(outside) = self.known_outside() {
            outside.leave();
        }
    }

    fn is_leaving(&self) -> bool {
        *self.leaving.borrow()
    }

    /// Returns when the server ends.
    async fn left(&self) {
        let mut leaving = self.leaving.subscribe();
        // The sender lives as long as the server.
        let _ = leaving.wait_for(|leaving| *leaving).await;
    }

    /// Returns when nothing is left of what was begun here.
    async fn stop(&self) {
        self.leave();
        for server in [Some(self), self.known_outside().as_deref()]
            .into_iter()
            .flatten()
        {
            server.host.settled().await;
            server.agents.settled().await;
        }
        self.servers.shutdown().await;
        self.terminals.shut_down().await;
    }
}

fn toolsets(arguments: &ServeArguments) -> Vec<Toolset> {
    let asked = arguments.toolsets.iter();
    asked
        .map(|toolset| match toolset {
            ServeToolset::Terminal => Toolset::Terminal,
            ServeToolset::Workflow => Toolset::Workflow,
            ServeToolset::Agent => Toolset::Agent,
            ServeToolset::Debug => Toolset::Debug,
        })
        .collect()
}

pub(crate) fn run(arguments: &ServeArguments, output: &mut Output) -> Result<Exit> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the server cannot be started")?;
    if arguments.conformance {
        let address = arguments.http.as_deref().unwrap_or("127.0.0.1:0");
        let directory = std::env::temp_dir();
        return runtime.block_on(async {
            let interrupts = Interrupts::new()?;
            let connect = || fixture::Fixture;
            let door = http::Door::Open;
            let ending = http::Ending::new(interrupts, || ());
            http::serve(connect, address, door, &directory, ending, output).await?;
            Ok(Exit::Done)
        });
    }
    let server = Server::new(target::library()?, arguments)?;
    let served = runtime.block_on(async {
        let interrupts = Interrupts::new()?;
        if arguments.http.is_none() && io::stdin().is_terminal() {
            output.tell("a client is expected to speak MCP here; Ctrl-C ends this");
            let help = "`flow serve --http 127.0.0.1:7333` serves clients that are running already";
            output.help(help);
        }
        let watched = Arc::clone(&server);
        let look_out = tokio::spawn(async move { watched.shelves.look_out().await });
        if !arguments.read_only {
            let host = server.host.clone();
            tokio::spawn(async move { host.keep_times().await });
        }
        let served = match &arguments.http {
            None => stdio::serve(&server, interrupts).await,
            Some(address) => {
                let door = http::Door::Token(http::token()?);
                let journal = server.host.journal().path().to_owned();
                let directory = journal.parent().unwrap_or(Path::new("."));
                let shared = Arc::clone(&server);
                let connect = move || Connection::new(&shared, Structure::Tree);
                let leaving = Arc::clone(&server);
                let ending = http::Ending::new(interrupts, move || leaving.leave());
                http::serve(connect, address, door, directory, ending, output).await
            }
        };
        look_out.abort();
        server.stop().await;
        served
    });
    // A read of a terminal cannot be given up, and nobody waits for what it would give.
    runtime.shutdown_background();
    served?;
    Ok(Exit::Done)
}
