//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use flow_runtime::library::Place;

use crate::output::Color;

/// Workflows as data: check, draw and find them.
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

Exit codes: 0 done, 1 failed, 2 usage, 3 definition invalid."
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
    /// Draw a workflow
    Graph(GraphArguments),
    /// List the workflows that can be found by name
    List(ListArguments),
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

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    #[default]
    Table,
    /// One object: `{workflows: […]}`
    Json,
    /// The same as YAML
    Yaml,
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
