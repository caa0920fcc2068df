//! The command line.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use flow_model::{grammar, tools};
use flow_runtime::journal::Status;
use flow_runtime::library::Place;

use crate::output::Color;

/// Workflows as data: check, draw, find and run them.
#[derive(Debug, Parser)]
#[command(
    name = "flow",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  flow check                      check the project's workflows
  flow explain F020               say more about a finding
  flow graph deploy               draw a workflow in the terminal
  flow run deploy staging         run a workflow with its first required input
  flow deploy staging             the same; `flow _list` when a workflow is called `list`

Exit codes: 0 done, 1 failed, 2 usage, 3 definition invalid, 4 refused by a person
or policy, 5 waiting (resumable), 130 interrupted (resumable)."
)]
pub(crate) struct Cli {
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = false
    )]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check definitions and show every fault
    Check(CheckArguments),
    /// Explain a rule of the checker
    Explain(ExplainArguments),
    /// Print the JSON Schema of definitions
    #[command(after_help = "\
Examples:
  flow schema > workflow.schema.json
  # then, in a definition, for editors that know the YAML language server:
  # yaml-language-server: $schema=workflow.schema.json")]
    Schema,
    /// Show a workflow as the Rust module that it becomes
    Expand(ExpandArguments),
    /// Draw a workflow
    Graph(GraphArguments),
    /// List the workflows that can be found by name
    List(ListArguments),
    /// Run a workflow
    Run(RunArguments),
    /// Go on with a run that waits, was interrupted or failed
    Resume(ResumeArguments),
    /// Answer what a run asks, and go on with it
    Answer(AnswerArguments),
    /// End a run
    Cancel(CancelArguments),
    /// List runs, newest first
    Runs(RunsArguments),
    /// Show a run: its steps so far, its state, what it waits for
    Show(ShowArguments),
    /// Show what the commands of a run wrote
    Logs(LogsArguments),
    /// Serve workflows and terminals to agents, over MCP
    Serve(ServeArguments),
    /// Show agents, or one with its arguments filled in
    Agent(BriefArguments),
    /// Show prompts, or one with its arguments filled in
    Prompt(BriefArguments),
    /// Make a project here
    Init(InitArguments),
    /// Look whether everything is in order; nothing is started or changed
    Doctor(DoctorArguments),
    /// Print a script that completes this command in a shell
    Completions(CompletionsArguments),
    /// `flow <workflow> …` stands for `flow run <workflow> …`
    #[command(external_subcommand)]
    Workflow(Vec<OsString>),
}

/// What `flow run` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Required inputs can be given in their order after the workflow, those that -p names left out; others
with -p. Both go before the values of --input-file. A value is read by the type of its input: a text
as it is, yes/no or true/false for a boolean, JSON for arrays and objects. The result goes to
standard output, progress to standard error. A run that asks something nobody here can answer waits:
`flow answer` goes on with it.

Examples:
  flow run review main feature-x -p reviewer=bob
  flow run deploy.yaml --input-file inputs.yaml --format json
  flow run deploy staging --dry-run       what would happen, as far as that is known
  flow run deploy --answers answers.yaml  with answers to its prompts, by step")]
pub(crate) struct RunArguments {
    /// A workflow's name, a file, or `-` for standard input
    pub(crate) workflow: String,

    /// Required inputs, in order
    #[arg(value_name = "INPUT", allow_negative_numbers = true)]
    pub(crate) inputs: Vec<String>,

    /// An input by name; may be given several times
    #[arg(short, long = "param", value_name = "KEY=VALUE")]
    pub(crate) parameters: Vec<String>,

    /// The old name of --param
    #[arg(long = "var", value_name = "KEY=VALUE", hide = true)]
    pub(crate) variables: Vec<String>,

    /// A JSON or YAML file with inputs by name
    #[arg(long, value_name = "FILE")]
    pub(crate) input_file: Option<PathBuf>,

    /// Show what would happen, as far as that is known, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// How long the run may take: seconds, or such as 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,

    /// How many steps may be executed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_steps: Option<u64>,

    /// Run in a terminal session of this shell, which has the environment of this command
    /// [default: bash, for a workflow with `arguments` or `return_values`; else none]
    #[arg(long, value_name = "SHELL")]
    pub(crate) session: Option<String>,

    #[command(flatten)]
    pub(crate) driving: Driving,
}

/// How a run is driven and what is told of it.
#[derive(Debug, Args)]
pub(crate) struct Driving {
    /// Ask on standard input, though it is no terminal
    #[arg(short, long)]
    pub(crate) interactive: bool,

    /// Show no progress; messages of the workflow are shown all the same
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Say what is done for each step; twice: everything. FLOW_LOG=info or debug does the same
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// A JSON or YAML file with answers to prompts and to tasks of agents, by step
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,

    /// How the result is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// The output of the run
    #[default]
    Text,
    /// One object: `{run_id, workflow, status, …, output, …}`
    Json,
    /// An object a line for what happens, then the same object
    Jsonl,
}

/// What `flow resume` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
A run that waits or was interrupted goes on where it was; a failed one tries its failed step again;
of one that is over the result is shown.")]
pub(crate) struct ResumeArguments {
    /// The run: its id, the beginning of it, or `latest`
    pub(crate) run: String,

    /// How many steps a failed run may execute, those before included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_steps: Option<u64>,

    /// How long a failed run may take from now on: seconds, or such as 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,

    #[command(flatten)]
    pub(crate) driving: Driving,
}

/// What `flow answer` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flow answer r-01k true                    to a question with yes or no
  flow answer r-01k staging                 a text, or one of the choices
  flow answer r-01k '{\"input\": \"staging\"}'  the same, in full
  flow answer r-01k --decline               nothing, on purpose

Of two answers the first counts. Exit code 2 says that this one was not taken: the question is
answered already, its time is over, or the answer is not valid.")]
pub(crate) struct AnswerArguments {
    /// The run: its id, the beginning of it, or `latest`
    pub(crate) run: String,

    /// The answer, as JSON or as plain text
    #[arg(
        value_name = "ANSWER",
        allow_negative_numbers = true,
        required_unless_present = "decline"
    )]
    pub(crate) answer: Option<String>,

    /// The step that asks, when several do
    #[arg(long, value_name = "ID")]
    pub(crate) step: Option<String>,

    /// Decline to answer
    #[arg(long, conflicts_with = "answer")]
    pub(crate) decline: bool,

    #[command(flatten)]
    pub(crate) driving: Driving,
}

/// What `flow cancel` is asked.
#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// The run: its id, the beginning of it, or `latest`
    pub(crate) run: String,

    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// What `flow runs` is asked.
#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// Only runs that stand so: running, waiting, interrupted, sleeping, completed, failed or
    /// cancelled
    #[arg(long, value_delimiter = ',')]
    pub(crate) status: Vec<Standing>,

    /// How the list is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunsFormat,

    /// At most so many
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(50).unwrap_or(NonZeroUsize::MIN))]
    pub(crate) limit: NonZeroUsize,

    /// Those of your own journal, which began outside of projects or before there was one here
    #[arg(long)]
    pub(crate) outside: bool,
}

/// How a run stands, for those who look for runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// As the journal says.
    Listed(Status),
    /// It has lost its host, and can be resumed.
    Interrupted,
}

impl FromStr for Standing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "interrupted" {
            return Ok(Standing::Interrupted);
        }
        text.parse().map(Standing::Listed).map_err(|_| {
            format!(
                "`{text}` is not a status; use running, waiting, interrupted, sleeping, completed, \
                 failed or cancelled"
            )
        })
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum RunsFormat {
    /// For people
    #[default]
    Table,
    /// One object: `{runs: […]}`
    Json,
}

/// What `flow show` is asked.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The run: its id, the beginning of it, or `latest`
    pub(crate) run: String,

    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ShowFormat,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ShowFormat {
    /// For people
    #[default]
    Text,
    /// One object
    Json,
}

/// What `flow logs` is asked.
#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// The run: its id, the beginning of it, or `latest`
    pub(crate) run: String,

    /// Only what this step wrote: its id, or with its item or the call it belongs to, as in
    /// `all.1/ping` and `deploy/check`
    #[arg(long, value_name = "ID")]
    pub(crate) step: Option<String>,

    /// Go on as long as the run does; in JSON an object a line
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ShowFormat,
}

/// What `flow agent` and `flow prompt` are asked.
#[derive(Debug, Args)]
#[command(after_help = "\
They are Markdown files with front matter: agents in .flow/agents and .claude/agents, prompts in
.flow/prompts, of the project and then of the user. The text goes to standard output.

Examples:
  flow prompt list                            what can be found from here
  flow prompt review main -p depth=2          a prompt with its arguments filled in
  flow agent reviewer | claude -p             an agent's instructions, handed to a program")]
pub(crate) struct BriefArguments {
    /// Its name, or `list` [default: list]
    pub(crate) name: Option<String>,

    /// Required arguments, in order
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    pub(crate) inputs: Vec<String>,

    /// An argument by name; may be given several times
    #[arg(short, long = "param", value_name = "KEY=VALUE")]
    pub(crate) parameters: Vec<String>,

    /// How the list is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,

    /// Lists their arguments and files as well
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// What `flow init` is asked.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The directory that becomes a project [default: the current one]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// What `flow doctor` is asked.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ShowFormat,
}

/// What `flow completions` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flow completions bash > ~/.local/share/bash-completion/completions/flow
  flow completions zsh > ~/.zfunc/_flow
  flow completions fish > ~/.config/fish/completions/flow.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// What `flow serve` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --http the server talks to the client that started it, over standard input and output. Over
HTTP it listens on this machine only and wants a token with every request: $FLOW_TOKEN, else one
that it makes, prints to standard error and keeps in a file only you can read.

Examples:
  claude mcp add flow -- flow serve
  flow serve --toolsets workflow          no terminals, no step-by-step runs
  flow serve --http 127.0.0.1:7333        for several clients at once")]
pub(crate) struct ServeArguments {
    /// Talk over standard input and output; what happens without --http
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,

    /// Listen on this address of this machine, such as 127.0.0.1:7333; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,

    /// The groups of tools that are offered
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values_t = [ServeToolset::Terminal, ServeToolset::Workflow, ServeToolset::Agent, ServeToolset::Debug]
    )]
    pub(crate) toolsets: Vec<ServeToolset>,

    /// Offer only tools that change nothing
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Serve what the MCP conformance suite expects, and nothing of flow
    #[arg(long, hide = true)]
    pub(crate) conformance: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeToolset {
    /// Terminal sessions
    Terminal,
    /// Workflows, run and managed by name
    Workflow,
    /// Runs that an agent drives step by step
    Agent,
    /// Looking into runs
    Debug,
}

/// A time such as `90`, `90s`, `5m` or `1h`, in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let (least, most) = grammar::RUN_SECONDS;
    match grammar::seconds(text) {
        Some(seconds) if (least..=most).contains(&seconds) => Ok(seconds),
        Some(_) => Err(format!(
            "a run may take from {least} s to {} d",
            most / 86_400.0
        )),
        None => Err("give seconds, or a time such as 90s, 5m, 1h or 2d".to_owned()),
    }
}

/// What `flow check` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
A file that is named is checked. In a directory, files ending in .yaml, .yml or .json are checked
when they stand below a directory called `workflows` or have `steps` or `states` at the top; files
that have only `tasks`, `computed` or `agents` are checked through the files that import them.
Hidden directories (other than .flow), node_modules and target are left out. Links to directories
are not followed.

Findings go to standard output, the summary to standard error. The exit code is 3 when there is an
error among the findings, and 2 when something could not be read.

Examples:
  flow check                              the project's workflows
  flow check deploy.yaml flows/           a file and a directory
  cat deploy.yaml | flow check -          standard input
  flow check --strict --format github .   in a GitHub workflow")]
pub(crate) struct CheckArguments {
    /// Files, directories, or `-` for standard input [default: the project's workflows]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How findings are written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: CheckFormat,

    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For people: each finding with the lines it is about
    #[default]
    Text,
    /// One object: `{ok, diagnostics: […]}`
    Json,
    /// Annotations of a pull request
    Github,
}

/// What `flow explain` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flow explain                list every rule
  flow explain F020           one rule, with an example and its mended form
  flow explain 20             the same")]
pub(crate) struct ExplainArguments {
    /// The code of a rule, such as F020 [default: list them all]
    pub(crate) code: Option<String>,
}

/// What `flow expand` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
The module is what `flow::workflow!` makes of the definition: its inputs, outputs and tools as types,
its states, and the checked graph.

Examples:
  flow expand deploy
  flow expand deploy.yaml | less")]
pub(crate) struct ExpandArguments {
    /// A workflow's name, a file, or `-` for standard input
    pub(crate) workflow: String,
}

/// What `flow graph` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  flow graph deploy                       in the terminal
  flow graph deploy.yaml -o deploy.svg    as a picture; the ending says which kind
  flow graph deploy --format mermaid      for a page that draws Mermaid")]
pub(crate) struct GraphArguments {
    /// A workflow's name, a file, or `-` for standard input
    pub(crate) workflow: String,

    /// What to draw [default: by the ending of --output, else ascii]
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// An outline for a terminal
    Ascii,
    /// A Mermaid diagram
    Mermaid,
    /// A Graphviz graph
    Dot,
    /// A picture
    Svg,
}

/// What `flow list` is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Workflows are looked for in .flow/workflows of the project and the directories that `workflows` in
its flow.toml lists, in the user's directory ($FLOW_CONFIG_DIR, else ~/.config/flow) and among
the built-ins; the first of a name wins. A DIR that is a project stands for its workflows, any other
for the definitions in it.

Examples:
  flow list                               what can be found from here
  flow list --verbose --source project    the project's, with their parameters
  flow list flows/ --format json          the definitions in a directory, for a program")]
pub(crate) struct ListArguments {
    /// A project, or a directory with definitions [default: the project here, the user's, the built-ins]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// How the list is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ListFormat,

    /// Show files and parameters too
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Only workflows that come from here
    #[arg(long, value_enum)]
    pub(crate) source: Option<ListSource>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    Table,
    /// One object: `{workflows: […]}`
    Json,
    /// The same as YAML
    Yaml,
}

impl From<tools::ListFormat> for ListFormat {
    fn from(format: tools::ListFormat) -> Self {
        match format {
            tools::ListFormat::Json => ListFormat::Json,
            tools::ListFormat::Yaml => ListFormat::Yaml,
            tools::ListFormat::Table => ListFormat::Table,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ListSource {
    /// Compiled into the program
    Builtin,
    /// The project's
    Project,
    /// The user's
    User,
}

impl From<ListSource> for Place {
    fn from(source: ListSource) -> Self {
        match source {
            ListSource::Builtin => Place::Builtin,
            ListSource::Project => Place::Project,
            ListSource::User => Place::User,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
