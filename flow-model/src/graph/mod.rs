//! The one form every definition ends in: nodes, guarded edges, an entry.
//!
//! A [`Graph`] is plain data. Every type here can be built in a `const` context, so a compiled
//! workflow keeps its graph in read-only memory while an interpreted one owns it. Nothing in a
//! graph is an alias, a position in a file, or a name that still has to be resolved inside it.

pub mod build;
mod dependencies;
mod literal;
mod table;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

pub use table::Table;

pub use crate::expression::Dialect;
use crate::grammar;
use crate::tools;
pub use dependencies::Dependencies;

/// Text that is either part of the program or owned.
pub type Text = Cow<'static, str>;
/// A list that is either part of the program or owned.
pub type List<T> = Cow<'static, [T]>;

/// A workflow, checked and lowered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// The name the workflow is found by.
    pub name: Text,
    /// What the workflow is for.
    pub description: Option<Text>,
    /// A semantic version.
    pub version: Option<Text>,
    /// Which surface form it was written in. Only counters and messages depend on it.
    pub form: Form,
    /// The dialect of every expression that does not say otherwise.
    pub dialect: Dialect,
    /// Typed parameters in document order; `None` accepts any input, untyped.
    pub inputs: Option<List<Field>>,
    /// The typed result of a run.
    pub outputs: List<Output>,
    /// Environment variables that must be set before the run.
    pub arguments: List<Variable>,
    /// Environment variables that must be set after the run.
    pub return_values: List<Variable>,
    /// Initial state, in document order.
    pub state: List<Initial>,
    /// Derived state, in dependency order.
    pub computed: List<Computed>,
    /// Tools the host must provide.
    pub tools: List<ToolSignature>,
    /// Agents that `@name` delegation may address.
    pub agents: List<Agent>,
    /// Sub-graphs that `foreach` runs per item.
    pub tasks: List<Task>,
    /// What the run does.
    pub body: Body,
    /// What happens when a step fails and nothing nearer handles it.
    pub on_error: OnError,
    /// What a resumed run does with what went before.
    pub on_resume: OnResume,
    /// Bounds of a run.
    pub limits: Limits,
}

/// The surface form of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A list that runs top to bottom.
    Steps,
    /// Named states with transitions.
    States,
}

/// Nodes and edges with an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// The nodes, in document order. An index into this list names a node inside the body.
    pub nodes: List<Node>,
    /// Where execution starts; [`Target::Complete`] for an empty body.
    pub entry: Target,
}

impl Body {
    /// A body that completes at once.
    pub const EMPTY: Body = Body {
        nodes: Cow::Borrowed(&[]),
        entry: Target::Complete,
    };

    /// The index of the node with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<u16> {
        let found = self.nodes.iter().position(|node| node.id == id)?;
        u16::try_from(found).ok()
    }

    /// The loops a node stands in, innermost first, as node indices.
    pub fn loops_around(&self, node: u16) -> impl Iterator<Item = u16> + '_ {
        let mut next = self.nodes.get(usize::from(node)).and_then(|n| n.parent);
        std::iter::from_fn(move || {
            loop {
                let here = next?;
                let parent = self.nodes.get(usize::from(here))?;
                next = parent.parent;
                if parent.kind.is_loop() {
                    return Some(here);
                }
            }
        })
    }
}

/// One step or state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Unique in its body and stable: written by the author, or derived from the position.
    pub id: Text,
    /// What the author says it does.
    pub description: Option<Text>,
    /// The line of the definition it was written on, from 1.
    pub line: u32,
    /// The container it stands in (a condition or a loop), as a node index.
    pub parent: Option<u16>,
    /// What it does.
    pub kind: Kind,
    /// The state fields its templates may read; `None` for all of them.
    pub needs_state: Option<List<Text>>,
    /// Runs only when this holds; otherwise the [`Guard::Skip`] edge is taken.
    pub when: Option<Expression>,
    /// Seconds an attempt may take; `None` for the kind's default.
    pub timeout: Option<f64>,
    /// How often a failed attempt is repeated.
    pub retry: Option<Retry>,
    /// Replaces the result of a step whose last attempt failed.
    pub fallback_value: Option<Template>,
    /// State written on success, one atomic batch.
    pub writes: List<Write>,
    /// State written on failure, one atomic batch.
    pub error_writes: List<Write>,
    /// Where to go, tried in order. When no edge holds the run fails.
    pub edges: List<Edge>,
}

impl Node {
    /// The first edge that holds for an outcome, by the outcome alone. An edge that depends on
    /// more than the outcome is chosen by [`Outcome::Edge`], and only such an edge is.
    #[must_use]
    pub fn next(&self, outcome: Outcome) -> Option<Target> {
        match outcome {
            Outcome::Edge(index) => self
                .edges
                .get(usize::from(index))
                .filter(|edge| edge.guard.is_chosen())
                .map(|edge| edge.to),
            Outcome::Success
            | Outcome::Failure
            | Outcome::Timeout
            | Outcome::Skip
            | Outcome::Then
            | Outcome::Else
            | Outcome::Body
            | Outcome::Done => self
                .edges
                .iter()
                .find(|edge| edge.guard.holds_for(outcome))
                .map(|edge| edge.to),
        }
    }
}

/// How a node ended, as far as edges can depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The action did what was asked.
    Success,
    /// The action failed.
    Failure,
    /// The action did not end in time, or an await found nothing.
    Timeout,
    /// `when` did not hold.
    Skip,
    /// A condition held.
    Then,
    /// A condition did not hold.
    Else,
    /// A loop runs its body once more.
    Body,
    /// A loop is over.
    Done,
    /// The n-th edge was chosen by its condition.
    Edge(u16),
}

impl Outcome {
    /// Every outcome that is not a choice of an edge.
    pub const PLAIN: [Outcome; 8] = [
        Outcome::Success,
        Outcome::Failure,
        Outcome::Timeout,
        Outcome::Skip,
        Outcome::Then,
        Outcome::Else,
        Outcome::Body,
        Outcome::Done,
    ];
}

/// A guarded way out of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// When it may be taken.
    pub guard: Guard,
    /// Where it leads.
    pub to: Target,
}

/// Where an edge leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Another node of the same body.
    Node(u16),
    /// The end: the run, the task or the failure steps are complete.
    Complete,
}

/// When an edge may be taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// However the node ended.
    Always,
    /// The outcome is success.
    Success,
    /// The outcome is failure or time-out.
    Failure,
    /// The outcome is time-out.
    Timeout,
    /// The outcome is not time-out.
    InTime,
    /// `when` did not hold.
    Skip,
    /// A condition held.
    Then,
    /// A condition did not hold.
    Else,
    /// A loop runs its body once more.
    Body,
    /// A loop is over.
    Done,
    /// A condition over the node's result holds.
    When(Condition),
    /// A person or agent says that this description holds.
    Judged(Text),
}

impl Guard {
    /// Whether more than the outcome decides, so that the edge is taken by its index.
    #[must_use]
    pub const fn is_chosen(&self) -> bool {
        matches!(self, Guard::When(_) | Guard::Judged(_))
    }

    /// Whether the outcome alone lets this edge be taken.
    #[must_use]
    pub const fn holds_for(&self, outcome: Outcome) -> bool {
        match self {
            Guard::Always => !matches!(outcome, Outcome::Skip),
            Guard::Success => matches!(outcome, Outcome::Success),
            Guard::Failure => matches!(outcome, Outcome::Failure | Outcome::Timeout),
            Guard::Timeout => matches!(outcome, Outcome::Timeout),
            Guard::InTime => matches!(outcome, Outcome::Success | Outcome::Failure),
            Guard::Skip => matches!(outcome, Outcome::Skip),
            Guard::Then => matches!(outcome, Outcome::Then),
            Guard::Else => matches!(outcome, Outcome::Else),
            Guard::Body => matches!(outcome, Outcome::Body),
            Guard::Done => matches!(outcome, Outcome::Done),
            Guard::When(_) | Guard::Judged(_) => false,
        }
    }
}

/// A condition over a node's outcome and result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Holds whatever happened.
    Always,
    /// The outcome is (`true`) or is not (`false`) success.
    Success(bool),
    /// The outcome is (`true`) or is not (`false`) time-out.
    TimedOut(bool),
    /// The regular expression is found in the match or on the screen.
    #[serde(deserialize_with = "pattern")]
    PatternMatch(Template),
    /// The regular expression is found in neither.
    #[serde(deserialize_with = "pattern")]
    PatternNotMatch(Template),
    /// A field of the result equals the value.
    FieldEquals(Text, Template),
    /// A field of the result, as text, contains the text.
    FieldContains(Text, Template),
    /// An expression is true.
    Expression(Expression),
    /// Every one holds.
    All(List<Condition>),
    /// At least one holds.
    Any(List<Condition>),
    /// None holds.
    None(List<Condition>),
}

/// A pattern, as journals have it now, or as the plain text that earlier ones have.
fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Plain(String),
        Template(Template),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Plain(text) => Template::Literal(Literal::Str(Cow::Owned(text))),
        Written::Template(template) => template,
    })
}

/// Fields of what a command gives.
const SHELL_FIELDS: [&str; 7] = [
    "stdout",
    "stderr",
    "exit_code",
    "duration",
    "signal",
    "truncated",
    "dropped",
];

/// What a node does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Chooses between [`Guard::Then`] and [`Guard::Else`].
    Condition {
        /// What decides.
        test: Expression,
    },
    /// Runs its body while the test holds.
    While {
        /// What decides.
        test: Expression,
        /// How often the body may run.
        bound: Bound,
    },
    /// Runs its body once per item, in order, in the enclosing scope.
    Loop {
        /// An array.
        items: Template,
    },
    /// Runs a task once per item, each in a frame of its own.
    FanOut(FanOut),
    /// Goes where its only edge leads: `break`, `continue`.
    Jump(Jump),
    /// Goes to [`Guard::Body`] until the bound is reached, then to [`Guard::Done`].
    Goto {
        /// How often the jump may be taken.
        bound: Bound,
    },
    /// Ends the run or the task with a value.
    Return {
        /// The value; `None` ends without one.
        value: Option<Template>,
    },
    /// Writes the node's `writes`.
    SetState,
    /// Runs another workflow.
    Call(Call),
    /// Runs a command.
    Shell(Shell),
    /// Calls a tool.
    Tool {
        /// Which one.
        tool: ToolRef,
        /// A map of parameters.
        parameters: Template,
    },
    /// Tells or asks a person something.
    Prompt(Prompt),
    /// Lets time pass.
    Wait {
        /// Seconds.
        seconds: Template,
        /// Shown meanwhile.
        message: Option<Template>,
    },
    /// Hands a task to an agent.
    Delegate {
        /// What the agent is told.
        instructions: Template,
        /// Which agent, without the `@`; `None` for the one that drives the run.
        agent: Option<Text>,
        /// A JSON Schema that the answer must satisfy.
        returns: Option<Literal>,
    },
}

impl Kind {
    /// Whether the node owns an iteration frame.
    #[must_use]
    pub const fn is_loop(&self) -> bool {
        matches!(self, Kind::While { .. } | Kind::Loop { .. })
    }

    /// Whether the run itself keeps its time and its attempts: it holds other steps, or lasts,
    /// and is no action that a host does.
    #[must_use]
    pub const fn is_kept_by_run(&self) -> bool {
        matches!(
            self,
            Kind::Condition { .. }
                | Kind::While { .. }
                | Kind::Loop { .. }
                | Kind::FanOut(_)
                | Kind::Wait { .. }
        )
    }

    /// The outcomes that a node of this kind can have, besides [`Outcome::Skip`] and
    /// [`Outcome::Edge`], which depend on the node.
    #[must_use]
    pub const fn outcomes(&self) -> &'static [Outcome] {
        match self {
            Kind::Condition { .. } => &[Outcome::Then, Outcome::Else, Outcome::Failure],
            Kind::While { .. } | Kind::Loop { .. } => {
                &[Outcome::Body, Outcome::Done, Outcome::Failure]
            }
            // A jump cannot fail, but its `when` can.
            Kind::Goto { .. } => &[Outcome::Body, Outcome::Done, Outcome::Failure],
            Kind::Jump(_) | Kind::Return { .. } | Kind::SetState => {
                &[Outcome::Success, Outcome::Failure]
            }
            Kind::FanOut(_)
            | Kind::Call(_)
            | Kind::Shell(_)
            | Kind::Tool { .. }
            | Kind::Prompt(_)
            | Kind::Wait { .. }
            | Kind::Delegate { .. } => &[Outcome::Success, Outcome::Failure, Outcome::Timeout],
        }
    }

    /// Whether a result of this kind can have a field of this name. What comes from outside can
    /// have any.
    #[must_use]
    pub fn may_give(&self, field: &str) -> bool {
        // Every state says how it ended.
        if matches!(field, "success" | "error") {
            return true;
        }
        match self {
            Kind::Shell(shell) => match shell.output {
                OutputFormat::Json | OutputFormat::KeyValue => true,
                OutputFormat::Result | OutputFormat::Text | OutputFormat::Lines => {
                    SHELL_FIELDS.contains(&field)
                }
            },
            Kind::Tool { tool, .. } => match tool {
                ToolRef::Builtin(name) => {
                    tools::find(name).is_some_and(|tool| tool.has_result_field(field))
                }
                ToolRef::Declared(_) | ToolRef::Host(_) => true,
            },
            Kind::Call(call) => match call.answer {
                CallAnswer::Response => {
                    tools::find("run_workflow").is_some_and(|tool| tool.has_result_field(field))
                }
                CallAnswer::Outputs => true,
            },
            Kind::Prompt(prompt) => field == prompt.kind.answer(),
            Kind::Wait { .. } => matches!(field, "resumed" | "duration"),
            Kind::Delegate { .. } | Kind::SetState => true,
            Kind::Condition { .. }
            | Kind::While { .. }
            | Kind::Loop { .. }
            | Kind::FanOut(_)
            | Kind::Jump(_)
            | Kind::Goto { .. }
            | Kind::Return { .. } => false,
        }
    }

    /// The word of the language for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Kind::Condition { .. } => "condition",
            Kind::While { .. } => "while",
            Kind::Loop { .. } | Kind::FanOut(_) => "foreach",
            Kind::Jump(Jump::Break) => "break",
            Kind::Jump(Jump::Continue) => "continue",
            Kind::Goto { .. } => "goto",
            Kind::Return { .. } => "return",
            Kind::SetState => "set_state",
            Kind::Call(_) => "call",
            Kind::Shell(_) => "shell",
            Kind::Tool { .. } => "mcp_call",
            Kind::Prompt(_) => "prompt",
            Kind::Wait { .. } => "wait",
            Kind::Delegate { .. } => "delegate",
        }
    }
}

/// How often something may happen, and what reaching that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The number of times.
    pub times: u32,
    /// An explicit bound falls through; the default one fails the run.
    pub explicit: bool,
}

/// A jump inside a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jump {
    /// Leaves the loop.
    Break,
    /// Starts the next iteration.
    Continue,
}

/// A task run once per item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanOut {
    /// An array.
    pub items: Template,
    /// Index into [`Graph::tasks`].
    pub task: u16,
    /// Who runs the children.
    pub runner: Runner,
    /// One item at a time.
    pub sequential: bool,
    /// How many children may run at once; `None` for the run's limit.
    pub max_parallel: Option<u32>,
    /// What a failed child means.
    pub on_child_error: OnChildError,
    /// A state path that failures are appended to.
    pub collect_to: Option<StatePath>,
    /// Replaces the standard prompt of sub-agents.
    pub prompt: Option<Template>,
}

impl FanOut {
    /// How many children may run at once.
    #[must_use]
    pub fn at_once(&self, limits: &Limits) -> usize {
        match (self.sequential, self.max_parallel) {
            (true, _) => 1,
            (false, Some(most)) => most as usize,
            (false, None) => limits.max_parallel as usize,
        }
    }

    /// Whether agents do the children, where an agent drives the run.
    #[must_use]
    pub fn is_delegated(&self) -> bool {
        match self.runner {
            Runner::Host => false,
            Runner::SubAgent | Runner::Agent(_) => true,
        }
    }
}

/// Who runs the children of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// The host of the run.
    Host,
    /// A sub-agent that asks for each step of the task.
    SubAgent,
    /// A named agent that gets the whole item.
    Agent(Text),
}

/// What a failed child means for its fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnChildError {
    /// The step fails once all children have ended.
    Fail,
    /// The child's result is null.
    Continue,
    /// The child is run again, up to so many times.
    RetryFailed(u32),
    /// The other children are stopped and the step fails.
    FailAll,
}

/// Another workflow to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Which workflow.
    pub target: CallTarget,
    /// Its inputs by name.
    #[serde(deserialize_with = "by_name")]
    pub inputs: Template,
    /// Variables of a states workflow by name.
    #[serde(deserialize_with = "by_name")]
    pub variables: Template,
    /// The terminal session it runs in.
    pub session: Option<Template>,
    /// How many states the child may execute.
    pub max_states: Option<Template>,
    /// Seconds the child may take.
    pub execution_timeout: Option<Template>,
    /// Whether a definition given inline is kept when it succeeds.
    pub save_on_success: Option<Template>,
    /// Whether the child's computed fields become readable here.
    pub shares_computed: bool,
    /// What the step's result is.
    pub answer: CallAnswer,
}

/// Values by name: a template, or, in graphs that were written down before a whole map could be
/// one value, its entries.
fn by_name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Entries(List<(Text, Template)>),
        Whole(Template),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::Entries(entries) => Template::Map(entries),
        Written::Whole(template) => template,
    })
}

/// The workflow a call runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallTarget {
    /// Found by name.
    Name(Template),
    /// Given as a definition.
    Definition(Template),
}

/// What the result of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallAnswer {
    /// The child's outputs.
    Outputs,
    /// The whole response of the `run_workflow` tool.
    Response,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shell {
    /// The command; values are quoted for the place they stand in.
    pub command: Template,
    /// Environment variables added for it.
    pub env: List<(Text, Template)>,
    /// Where it runs.
    pub working_directory: Option<Template>,
    /// What its result is.
    pub output: OutputFormat,
    /// Who runs it.
    pub by: By,
    /// Why an agent has to run it.
    pub reason: Option<Template>,
    /// An exit code that is not zero is a failure also where the whole result is captured: the step
    /// says what happens then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_fails: bool,
}

impl Shell {
    /// Whether it is nothing but a command.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.env.is_empty()
            && self.working_directory.is_none()
            && self.output == OutputFormat::Result
            && self.by == By::Host
            && self.reason.is_none()
            && !self.exit_fails
    }
}

/// Who runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Whoever drives the run.
    Host,
    /// The server, even when an agent drives the run.
    Server,
    /// The agent, even when the server drives the run.
    Agent,
}

/// What the result of a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// `{stdout, stderr, exit_code, duration}`.
    Result,
    /// Standard output as text.
    Text,
    /// Standard output as a list of lines.
    Lines,
    /// Standard output parsed as JSON.
    Json,
    /// `key=value` lines as a map.
    KeyValue,
}

/// A tool by what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRef {
    /// One of flow's own, by name.
    Builtin(Text),
    /// Index into [`Graph::tools`].
    Declared(u16),
    /// The host's to find.
    Host(Text),
}

/// Something told to, or asked of, a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// What the person reads.
    pub message: Template,
    /// What is asked.
    pub kind: PromptKind,
    /// The choices: a list, or an expression that yields one.
    pub options: Option<Template>,
    /// What a text must satisfy.
    pub validation: Validation,
}

/// What a prompt asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptKind {
    /// Nothing; the message is shown.
    Info,
    /// Yes or no.
    Confirm,
    /// A text.
    Text,
    /// One of several options.
    Choice,
}

impl PromptKind {
    /// The field of the result that has the answer.
    #[must_use]
    pub const fn answer(self) -> &'static str {
        match self {
            PromptKind::Info => "acknowledged",
            PromptKind::Confirm => "confirmed",
            PromptKind::Text => "input",
            PromptKind::Choice => "selected",
        }
    }
}

/// How a failed attempt is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// Seconds before the second attempt.
    pub delay: f64,
    /// Factor between one delay and the next.
    pub backoff: f64,
    /// Seconds that no delay exceeds.
    pub max_delay: Option<f64>,
}

/// A value that may have to be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Template {
    /// Needs no evaluation.
    Literal(Literal),
    /// One expression; its native value is the value.
    Expression(Expression),
    /// Text with interpolations; the value is a string.
    Text(Expression),
    /// The same for a shell that reads it later: each value is quoted for the place it stands in.
    Command(Expression),
    /// The same for a regular expression: each value is found as it is.
    Pattern(Expression),
    /// A list with at least one member to evaluate.
    List(List<Template>),
    /// A map with at least one value to evaluate.
    Map(List<(Text, Template)>),
}

/// The text of an expression, or of a template, in a dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    /// The text without the braces of a sole expression.
    pub source: Text,
    /// How to read it.
    pub dialect: Dialect,
}

/// A plain value, as JSON has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Str(Text),
    /// A list.
    List(List<Literal>),
    /// A map, in order.
    Map(List<(Text, Literal)>),
}

/// One write to state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// Where.
    pub path: StatePath,
    /// How.
    pub operation: Operation,
    /// What; `None` for the node's result.
    pub value: Option<Template>,
    /// Stands beside what a `set_state` sets: it is made after that, with the new values as the
    /// result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
}

/// A place in the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatePath {
    /// Which tier.
    pub tier: Tier,
    /// At least one segment. Each template is one segment whatever dots its value has.
    pub segments: List<Template>,
}

/// Where a state field lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Written by steps.
    Raw,
    /// Derived.
    Computed,
    /// Set by hand.
    State,
}

/// How a write combines with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Replaces it.
    Set,
    /// Adds to the end of a list.
    Append,
    /// Adds to a number.
    Increment,
    /// Merges into a map.
    Merge,
}

/// A state field's initial value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Initial {
    /// Which tier.
    pub tier: Tier,
    /// The field.
    pub name: Text,
    /// The declared type.
    pub ty: Type,
    /// The value; `None` for a field that is only declared.
    pub value: Option<Template>,
}

/// A derived state field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// The field.
    pub name: Text,
    /// What `input` is made of: one path gives the value, several an array.
    pub from: List<Dependency>,
    /// Whether `from` was written as a list.
    pub from_list: bool,
    /// Other paths the transform reads.
    pub reads: List<Dependency>,
    /// How the value is made.
    pub rule: Rule,
    /// What a failing rule means.
    pub on_error: OnComputeError,
    /// The value used when the rule fails.
    pub fallback: Literal,
    /// A JavaScript expression over `output` that must be true.
    pub validate: Option<Text>,
    /// Computed once, at start.
    pub once: bool,
}

/// A state path that a computed field depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Which tier; `None` for the flattened view.
    pub tier: Option<Tier>,
    /// The path, field first.
    pub path: List<Text>,
}

/// How a computed field's value is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A JavaScript expression over `input` and the flattened view.
    Transform(Text),
    /// A JavaScript function body with `return`.
    Body(Text),
    /// A value of the workflow's dialect.
    Value(Template),
}

/// What a failing rule of a computed field means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnComputeError {
    /// Reading the field fails the reading step.
    Propagate,
    /// The field has its fallback.
    UseFallback,
    /// The field keeps what it had.
    Ignore,
}

/// A type of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// Any value.
    Any,
    /// Text.
    String,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array,
    /// A map.
    Object,
}

impl Type {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Type::Any => "any",
            Type::String => "string",
            Type::Number => "number",
            Type::Integer => "integer",
            Type::Boolean => "boolean",
            Type::Array => "array",
            Type::Object => "object",
        }
    }
}

/// A typed, named value: an input, a parameter, a property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: Text,
    /// Its type.
    pub ty: Type,
    /// Whether it must be given.
    pub required: bool,
    /// The value when it is not given.
    pub default: Option<Literal>,
    /// What it is for.
    pub description: Option<Text>,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// What its value must satisfy.
    pub validation: Validation,
}

/// What a value must satisfy beyond its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// A regular expression found in a text.
    pub pattern: Option<Text>,
    /// Characters of a text, at least.
    pub min_length: Option<u64>,
    /// Characters of a text, at most.
    pub max_length: Option<u64>,
    /// The allowed values; empty for any.
    pub one_of: List<Literal>,
    /// Least number.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Items of a list, at least.
    pub min_items: Option<u64>,
    /// Items of a list, at most.
    pub max_items: Option<u64>,
    /// Type of every item of a list.
    pub item_type: Option<Type>,
    /// Keys a map must have.
    pub required_keys: List<Text>,
    /// Typed keys of a map.
    pub properties: List<Field>,
    /// Said instead of the standard message.
    pub error_message: Option<Text>,
}

impl Validation {
    /// Accepts every value.
    pub const NONE: Validation = Validation {
        pattern: None,
        min_length: None,
        max_length: None,
        one_of: Cow::Borrowed(&[]),
        min: None,
        max: None,
        min_items: None,
        max_items: None,
        item_type: None,
        required_keys: Cow::Borrowed(&[]),
        properties: Cow::Borrowed(&[]),
        error_message: None,
    };

    /// Whether a map may only have the keys under `properties`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let declared = |key: &Text| self.properties.iter().any(|field| field.name == *key);
        !self.properties.is_empty() && self.required_keys.iter().all(declared)
    }
}

/// A named, typed part of a run's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Its name and type.
    pub field: Field,
    /// What yields it.
    pub value: Template,
}

/// An environment variable of a terminal contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: Text,
    /// What it is for.
    pub description: Option<Text>,
    /// Whether it must be set.
    pub required: bool,
}

/// A tool that the host must provide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSignature {
    /// Its name.
    pub name: Text,
    /// What it does.
    pub description: Option<Text>,
    /// Its parameters; `None` accepts any.
    pub params: Option<List<Field>>,
    /// The fields of its result.
    pub returns: List<Field>,
    /// The type of its result, where that is all that is said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Type>,
    /// Whether a repeated call is harmless; `None` when the definition does not say.
    pub idempotent: Option<bool>,
}

/// An agent that delegation may address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name, without the `@`.
    pub name: Text,
    /// What it is told before the task.
    pub instructions: Text,
}

/// A sub-graph run once per item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: Text,
    /// What it does.
    pub description: Option<Text>,
    /// Its typed parameters; `None` accepts any.
    pub inputs: Option<List<Field>>,
    /// Its own initial state.
    pub state: List<Initial>,
    /// Whether it reads and writes its parent's state.
    pub shares_state: bool,
    /// Its expressions' dialect.
    pub dialect: Dialect,
    /// What it does per item.
    pub body: Body,
    /// What happens when it fails.
    pub on_error: Option<TaskError>,
}

/// What happens when a task fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskError {
    /// The error becomes the child's result instead of a failure.
    pub returns: bool,
    /// Steps run before the child ends.
    pub body: Body,
}

/// What happens when a step fails and nothing nearer handles it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnError {
    /// What becomes of the run.
    pub action: ErrorAction,
    /// A state path that errors are appended to.
    pub collect_to: Option<StatePath>,
    /// Steps run before the run ends.
    pub body: Body,
}

impl OnError {
    /// The run fails.
    pub const FAIL: OnError = OnError {
        action: ErrorAction::Fail,
        collect_to: None,
        body: Body::EMPTY,
    };
}

/// What becomes of a run whose step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorAction {
    /// It fails.
    Fail,
    /// It fails after a checkpoint.
    CheckpointAndFail,
    /// It goes on as if every step said `on_error: continue`.
    Continue,
    /// It is run once more with fresh state.
    RetryWorkflow,
}

/// What a resumed run does with what went before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnResume {
    /// Failed steps are run again.
    pub retry_failed_steps: bool,
    /// Completed steps are not run again.
    pub skip_completed_steps: bool,
    /// Error counters start from zero.
    pub reset_error_counts: bool,
}

impl OnResume {
    /// What a definition that does not say has.
    pub const DEFAULT: OnResume = OnResume {
        retry_failed_steps: true,
        skip_completed_steps: true,
        reset_error_counts: false,
    };
}

/// Bounds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Executions of nodes.
    pub max_steps: u64,
    /// Seconds, not counting waits for a person or agent.
    pub timeout: Option<f64>,
    /// Nested calls.
    pub max_depth: u32,
    /// Children of one fan-out at once.
    pub max_parallel: u32,
    /// Bytes of state.
    pub max_state_bytes: u64,
}

impl Limits {
    /// What a definition that does not say has, in its form.
    #[must_use]
    pub const fn of(form: Form) -> Limits {
        Limits {
            max_steps: match form {
                Form::States => grammar::DEFAULT_MAX_STATES,
                Form::Steps => grammar::DEFAULT_MAX_STEPS,
            },
            timeout: None,
            max_depth: grammar::MAX_CALL_DEPTH,
            max_parallel: grammar::DEFAULT_PARALLEL,
            max_state_bytes: grammar::DEFAULT_STATE_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use super::*;

    #[test]
    fn a_pattern_of_an_earlier_journal_is_read() {
        let plain = Condition::PatternMatch(Template::Literal(Literal::Str("a+".into())));
        let earlier = r#"{"pattern_match": "a+"}"#;
        assert_eq!(serde_json::from_str::<Condition>(earlier).unwrap(), plain);
        let now = serde_json::to_string(&plain).unwrap();
        assert_eq!(serde_json::from_str::<Condition>(&now).unwrap(), plain);
    }
}
