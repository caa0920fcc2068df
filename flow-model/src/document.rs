//! A definition after reading: no alias is left, and everything knows where it was written.
//!
//! Values that may contain templates stay trees; what they mean is decided once, when they are
//! analysed and lowered.

use crate::expression::Dialect;
use crate::graph::{
    By, ErrorAction, Form, Limits, OnChildError, OnComputeError, OnResume, Operation, OutputFormat,
    PromptKind, Retry, Type,
};
use crate::source::{Span, Spanned, Tree};

/// A workflow as it was written.
#[derive(Debug)]
pub struct Document<'t> {
    /// The name the workflow is found by.
    pub name: Spanned<String>,
    /// What the workflow is for.
    pub description: Option<String>,
    /// A semantic version.
    pub version: Option<String>,
    /// Steps or states; `None` for a file that is only imported.
    pub form: Option<Form>,
    /// The dialect of expressions.
    pub dialect: Dialect,
    /// Typed parameters; `None` accepts any.
    pub inputs: Option<Vec<Field<'t>>>,
    /// The typed result.
    pub outputs: Vec<Output<'t>>,
    /// Environment variables needed before the run.
    pub arguments: Vec<Variable>,
    /// Environment variables set by the run.
    pub return_values: Vec<Variable>,
    /// State fields.
    pub state: Vec<StateField<'t>>,
    /// Derived fields.
    pub computed: Vec<Computed<'t>>,
    /// Tools the host must provide.
    pub tools: Vec<Tool<'t>>,
    /// Agents that delegation may address.
    pub agents: Vec<Agent>,
    /// Steps run once per item.
    pub tasks: Vec<Task<'t>>,
    /// The state a run starts in.
    pub initial: Option<Spanned<String>>,
    /// Steps, or states, in the order written.
    pub steps: Vec<Step<'t>>,
    /// What happens when a step fails.
    pub on_error: OnError<'t>,
    /// What a resumed run does.
    pub on_resume: OnResume,
    /// Bounds of a run.
    pub limits: Limits,
    /// Lints are errors.
    pub strict: bool,
}

/// A typed, named value.
#[derive(Debug)]
pub struct Field<'t> {
    /// Its name.
    pub name: Spanned<String>,
    /// Its type.
    pub ty: Type,
    /// Where the type was written.
    pub ty_span: Span,
    /// Whether it must be given.
    pub required: bool,
    /// Its value when it is not given.
    pub default: Option<&'t Tree>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// What its value must satisfy.
    pub validation: Validation<'t>,
}

impl Field<'_> {
    /// Whether there is no value unless one is given.
    #[must_use]
    pub fn must_be_given(&self) -> bool {
        self.required && self.default.is_none()
    }
}

/// Rules for a value.
#[derive(Debug, Default)]
pub struct Validation<'t> {
    /// The map the rules stand in, with their keys.
    pub rules: Vec<(&'static str, Span, &'t Tree)>,
    /// Typed keys of a map.
    pub properties: Vec<Field<'t>>,
}

/// A named result.
#[derive(Debug)]
pub struct Output<'t> {
    /// Its name.
    pub name: Spanned<String>,
    /// Its type.
    pub ty: Type,
    /// What it is.
    pub description: Option<String>,
    /// What yields it.
    pub value: &'t Tree,
}

/// An environment variable of a contract.
#[derive(Debug)]
pub struct Variable {
    /// Its name.
    pub name: Spanned<String>,
    /// The name repeated inside, which must be the same.
    pub inner_name: Option<Spanned<String>>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it must be set.
    pub required: bool,
}

/// A state field.
#[derive(Debug)]
pub struct StateField<'t> {
    /// Its name.
    pub name: Spanned<String>,
    /// Set by hand rather than by steps.
    pub by_hand: bool,
    /// Its declared type.
    pub ty: Type,
    /// Its initial value.
    pub value: Option<&'t Tree>,
}

/// A derived field.
#[derive(Debug)]
pub struct Computed<'t> {
    /// Its name.
    pub name: Spanned<String>,
    /// The paths it is made from.
    pub from: Vec<&'t Tree>,
    /// Whether they were written as a list.
    pub from_list: bool,
    /// JavaScript.
    pub transform: Option<&'t Tree>,
    /// An expression of the workflow's dialect.
    pub value: Option<&'t Tree>,
    /// What a failing rule means.
    pub on_error: OnComputeError,
    /// The value when the rule fails.
    pub fallback: Option<&'t Tree>,
    /// A JavaScript expression over `output`.
    pub validate: Option<&'t Tree>,
    /// Computed once.
    pub once: bool,
    /// The dialect of the file it stands in.
    pub dialect: Dialect,
    /// It stands in an imported file.
    pub imported: bool,
}

/// A tool's signature.
#[derive(Debug)]
pub struct Tool<'t> {
    /// Its name.
    pub name: Spanned<String>,
    /// What it does.
    pub description: Option<String>,
    /// Its parameters; `None` accepts any.
    pub params: Option<Vec<Field<'t>>>,
    /// The fields of its result.
    pub returns: Vec<Field<'t>>,
    /// The type of its result, where that is all that is said of it.
    pub result: Option<Type>,
    /// Whether a repeated call is harmless.
    pub idempotent: Option<bool>,
}

/// An agent.
#[derive(Debug)]
pub struct Agent {
    /// Its name, without the `@`.
    pub name: Spanned<String>,
    /// What it is told before the task.
    pub instructions: String,
}

/// Steps run once per item.
#[derive(Debug)]
pub struct Task<'t> {
    /// Its name.
    pub name: Spanned<String>,
    /// What it does.
    pub description: Option<String>,
    /// Its parameters; `None` accepts any.
    pub inputs: Option<Vec<Field<'t>>>,
    /// State of its own.
    pub state: Vec<StateField<'t>>,
    /// Whether it works on the workflow's state.
    pub shares_state: bool,
    /// The dialect of the file it stands in.
    pub dialect: Dialect,
    /// What it does.
    pub steps: Vec<Step<'t>>,
    /// Whether an error becomes the item's result.
    pub returns_error: bool,
    /// Whether it says what happens on failure.
    pub handles_error: bool,
    /// Steps run before it fails.
    pub cleanup: Vec<Step<'t>>,
    /// It stands in an imported file.
    pub imported: bool,
}

/// What happens when a step fails and nothing nearer handles it.
#[derive(Debug)]
pub struct OnError<'t> {
    /// What becomes of the run.
    pub action: ErrorAction,
    /// Where errors are collected.
    pub collect_to: Option<&'t Tree>,
    /// Steps run before the run ends.
    pub steps: Vec<Step<'t>>,
}

/// A step, or a state with its action.
#[derive(Debug)]
pub struct Step<'t> {
    /// Its id, written or made from its position.
    pub id: Spanned<String>,
    /// Where it starts: its first key, or the state's name.
    pub head: Span,
    /// What it does, for people.
    pub description: Option<String>,
    /// What it does.
    pub act: Act<'t>,
    /// The fields it may read.
    pub needs_state: Option<Vec<Spanned<String>>>,
    /// Runs only when this holds.
    pub when: Option<&'t Tree>,
    /// Seconds an attempt may take.
    pub timeout: Option<f64>,
    /// What a failure means.
    pub on_error: StepError,
    /// How failed attempts are repeated.
    pub retry: Option<Retry>,
    /// Replaces the result of a failed step.
    pub fallback_value: Option<&'t Tree>,
    /// What is written on success.
    pub writes: Vec<Write<'t>>,
    /// What is written on failure.
    pub error_writes: Vec<Write<'t>>,
    /// Where a state leads; `None` for a step.
    pub exits: Option<Exits<'t>>,
}

impl Step<'_> {
    /// Whether it writes its result as it is.
    #[must_use]
    pub fn captures_result(&self) -> bool {
        self.writes.iter().any(|write| write.value.is_none())
    }

    /// Whether it says itself what its failure means.
    #[must_use]
    pub fn handles_failure(&self) -> bool {
        let on_error = match self.on_error {
            StepError::Continue | StepError::Goto(_) => true,
            StepError::Fail => false,
        };
        on_error
            || self.retry.is_some()
            || self.fallback_value.is_some()
            || !self.error_writes.is_empty()
    }
}

/// What a step's failure means.
#[derive(Debug)]
pub enum StepError {
    /// It goes on to the task's or workflow's handler.
    Fail,
    /// The next step runs.
    Continue,
    /// That step runs.
    Goto(Spanned<String>),
}

/// Where a state leads.
#[derive(Debug)]
pub struct Exits<'t> {
    /// Tried in order.
    pub transitions: Vec<Transition<'t>>,
    /// Tried first on time-out.
    pub on_timeout: Option<Spanned<String>>,
    /// Some transitions could not be read.
    pub unread: bool,
    /// Where those lead, as far as that could be read.
    pub unread_targets: Vec<Spanned<String>>,
}

/// A condition and the state it leads to.
#[derive(Debug)]
pub struct Transition<'t> {
    /// Where the condition stands.
    pub span: Span,
    /// When it is taken.
    pub condition: Condition<'t>,
    /// Where it leads.
    pub next: Spanned<String>,
}

/// When a transition is taken.
#[derive(Debug)]
pub enum Condition<'t> {
    /// Whatever happened.
    Always,
    /// The action succeeded, or did not.
    Success(bool),
    /// The action timed out, or did not.
    TimedOut(bool),
    /// A regular expression is found.
    Match(&'t Tree),
    /// A regular expression is not found.
    NoMatch(&'t Tree),
    /// A field of the result equals a value.
    Equals(Spanned<String>, &'t Tree),
    /// A field of the result contains a text.
    Contains(Spanned<String>, &'t Tree),
    /// An expression is true.
    Expression(&'t Tree),
    /// Somebody judges it.
    Judged(Spanned<String>),
    /// Every one holds.
    All(Vec<Condition<'t>>),
    /// One holds.
    Any(Vec<Condition<'t>>),
    /// It does not hold.
    Not(Box<Condition<'t>>),
}

/// One write.
#[derive(Debug)]
pub struct Write<'t> {
    /// The path as written.
    pub path: Path<'t>,
    /// How.
    pub operation: Operation,
    /// What; `None` for the result.
    pub value: Option<&'t Tree>,
    /// Stands beside what a `set_state` sets.
    pub beside: bool,
}

/// A state path as written.
#[derive(Clone, Debug)]
pub struct Path<'t> {
    /// The text.
    pub text: &'t str,
    /// Where it stands.
    pub span: Span,
    /// The value it was written as, for positions inside it; `None` for a key.
    pub tree: Option<&'t Tree>,
}

/// What a step does.
#[derive(Debug)]
pub enum Act<'t> {
    /// Branches.
    Condition {
        /// What decides.
        test: &'t Tree,
        /// Steps when it holds.
        then: Vec<Step<'t>>,
        /// Steps when it does not.
        otherwise: Vec<Step<'t>>,
    },
    /// Loops.
    While {
        /// What decides.
        test: &'t Tree,
        /// The body.
        body: Vec<Step<'t>>,
        /// How often at most.
        max_iterations: Option<u32>,
    },
    /// Runs steps in order, once per item.
    Loop {
        /// The items.
        items: &'t Tree,
        /// The body.
        body: Vec<Step<'t>>,
    },
    /// Runs a task once per item.
    FanOut {
        /// The items.
        items: &'t Tree,
        /// The task.
        task: Spanned<String>,
        /// Who runs it.
        agent: Option<Spanned<String>>,
        /// One at a time.
        sequential: bool,
        /// How many at once.
        max_parallel: Option<u32>,
        /// What a failed child means.
        on_child_error: OnChildError,
        /// Where errors are collected.
        collect_to: Option<&'t Tree>,
        /// The sub-agents' prompt.
        prompt: Option<&'t Tree>,
    },
    /// Leaves the loop.
    Break,
    /// Starts the next iteration.
    Continue,
    /// Jumps.
    Goto {
        /// Where to.
        target: Spanned<String>,
        /// How often.
        max_iterations: u32,
    },
    /// Ends the run or task.
    Return {
        /// With this.
        value: Option<&'t Tree>,
    },
    /// Writes the step's writes.
    SetState,
    /// Runs another workflow.
    Call {
        /// Its name.
        workflow: &'t Tree,
        /// Its inputs.
        inputs: Vec<(Spanned<String>, &'t Tree)>,
        /// Its computed fields become readable.
        shares_computed: bool,
    },
    /// Runs a command.
    Shell {
        /// The command.
        command: &'t Tree,
        /// Its environment.
        env: Vec<(Spanned<String>, &'t Tree)>,
        /// Where it runs.
        working_directory: Option<&'t Tree>,
        /// What its result is.
        output: OutputFormat,
        /// Who runs it.
        by: By,
        /// Why an agent has to.
        reason: Option<&'t Tree>,
    },
    /// Calls a tool.
    Tool {
        /// Its name.
        tool: Spanned<String>,
        /// Whether a tool that nobody declared is the host's to find.
        open: bool,
        /// Its parameters.
        parameters: Vec<(Spanned<String>, &'t Tree)>,
    },
    /// Tells or asks a person.
    Prompt {
        /// What the person reads.
        message: &'t Tree,
        /// What is asked.
        kind: PromptKind,
        /// What can be chosen.
        options: Option<&'t Tree>,
        /// What a text must satisfy.
        validation: Validation<'t>,
    },
    /// Lets time pass.
    Wait {
        /// How long.
        duration: &'t Tree,
        /// Shown meanwhile.
        message: Option<&'t Tree>,
    },
    /// Hands a task to an agent.
    Delegate {
        /// What the agent is told.
        instructions: &'t Tree,
        /// Which agent.
        agent: Option<Spanned<String>>,
        /// What the answer must satisfy.
        returns: Option<&'t Tree>,
    },
}

impl<'t> Step<'t> {
    /// The lists of steps inside this one.
    pub fn bodies(&self) -> impl Iterator<Item = &[Step<'t>]> {
        let (first, second): (&[Step<'t>], &[Step<'t>]) = match &self.act {
            Act::Condition {
                then, otherwise, ..
            } => (then, otherwise),
            Act::While { body, .. } | Act::Loop { body, .. } => (body, &[]),
            Act::FanOut { .. }
            | Act::Break
            | Act::Continue
            | Act::Goto { .. }
            | Act::Return { .. }
            | Act::SetState
            | Act::Call { .. }
            | Act::Shell { .. }
            | Act::Tool { .. }
            | Act::Prompt { .. }
            | Act::Wait { .. }
            | Act::Delegate { .. } => (&[], &[]),
        };
        [first, second].into_iter()
    }

    /// Calls a function for this step and every step inside it, in document order.
    pub fn walk<'s>(&'s self, visit: &mut dyn FnMut(&'s Step<'t>)) {
        visit(self);
        for body in self.bodies() {
            for step in body {
                step.walk(visit);
            }
        }
    }

    /// Whether it loops over a body of its own.
    #[must_use]
    pub fn is_loop(&self) -> bool {
        matches!(self.act, Act::While { .. } | Act::Loop { .. })
    }
}

/// Every step of a list, nested ones included, in document order.
#[must_use]
pub fn all_steps<'s, 't>(steps: &'s [Step<'t>]) -> Vec<&'s Step<'t>> {
    let mut all = Vec::new();
    for step in steps {
        step.walk(&mut |inner| all.push(inner));
    }
    all
}
