//! Short constructors that work in a `const`, for graphs written as Rust: compiled workflows,
//! tests, examples.
//!
//! ```
//! use flow_model::graph::{Edge, Node};
//! use flow_model::graph::build::{END, command, success};
//!
//! const EDGES: &[Edge] = &[success(END)];
//! static BUILD: Node = command("build", 3, "make", EDGES);
//! assert_eq!(BUILD.id, "build");
//! ```

use std::borrow::Cow;
use std::mem::{forget, replace};

use super::{
    Agent, Body, By, Computed, Condition, Dialect, Edge, Expression, Field, Form, Graph, Guard,
    Initial, Kind, Limits, List, Literal, Node, OnError, OnResume, Operation, Output, OutputFormat,
    Retry, Shell, StatePath, Target, Task, Template, Text, Tier, ToolRef, ToolSignature, Type,
    Validation, Variable, Write,
};

/// A text of the program.
#[must_use]
pub const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

/// A text of the program where there may be none.
#[must_use]
pub const fn some(text: &'static str) -> Option<Text> {
    Some(Cow::Borrowed(text))
}

/// A list of the program.
#[must_use]
pub const fn list<T: Clone>(items: &'static [T]) -> List<T> {
    Cow::Borrowed(items)
}

/// A workflow with nothing but a body, and what the language has as defaults for the rest.
#[must_use]
pub const fn graph(name: &'static str, form: Form, dialect: Dialect, body: Body) -> Graph {
    Graph {
        name: text(name),
        description: None,
        version: None,
        form,
        dialect,
        inputs: None,
        outputs: list(&[]),
        arguments: list(&[]),
        return_values: list(&[]),
        state: list(&[]),
        computed: list(&[]),
        tools: list(&[]),
        agents: list(&[]),
        tasks: list(&[]),
        body,
        on_error: OnError::FAIL,
        on_resume: OnResume::DEFAULT,
        limits: Limits::of(form),
    }
}

/// A body that starts at a node.
#[must_use]
pub const fn body(entry: u16, nodes: &'static [Node]) -> Body {
    Body {
        nodes: list(nodes),
        entry: Target::Node(entry),
    }
}

/// A text as a plain value.
#[must_use]
pub const fn string(value: &'static str) -> Literal {
    Literal::Str(text(value))
}

/// A list as a plain value.
#[must_use]
pub const fn array(items: &'static [Literal]) -> Literal {
    Literal::List(list(items))
}

/// A map as a plain value.
#[must_use]
pub const fn object(entries: &'static [(Text, Literal)]) -> Literal {
    Literal::Map(list(entries))
}

/// A text that needs no evaluation.
#[must_use]
pub const fn fixed(value: &'static str) -> Template {
    Template::Literal(string(value))
}

/// An expression, or a text with interpolations, in Jinja.
#[must_use]
pub const fn jinja(source: &'static str) -> Expression {
    Expression {
        source: text(source),
        dialect: Dialect::Jinja,
    }
}

/// An expression, or a text with interpolations, in JavaScript.
#[must_use]
pub const fn js(source: &'static str) -> Expression {
    Expression {
        source: text(source),
        dialect: Dialect::Js,
    }
}

/// The end of a body, where edges lead that lead to no node. No body has so many nodes.
pub const END: u16 = u16::MAX;

const fn to(node: u16) -> Target {
    match node {
        END => Target::Complete,
        node => Target::Node(node),
    }
}

macro_rules! edges {
    ($($(#[doc = $doc:literal])+ $name:ident = $guard:ident;)+) => {
        $(
            $(#[doc = $doc])+
            #[must_use]
            pub const fn $name(node: u16) -> Edge {
                Edge { guard: Guard::$guard, to: to(node) }
            }
        )+
    };
}

edges! {
    /// Taken however the node ended.
    always = Always;
    /// Taken on success.
    success = Success;
    /// Taken on failure and on time-out.
    failure = Failure;
    /// Taken on time-out.
    timeout = Timeout;
    /// Taken on success and on failure.
    in_time = InTime;
    /// Taken when `when` does not hold.
    skip = Skip;
    /// Taken when a condition holds.
    then = Then;
    /// Taken when a condition does not hold.
    otherwise = Else;
    /// Taken into a loop.
    again = Body;
    /// Taken out of a loop.
    done = Done;
}

/// Taken when a condition over the result holds.
#[must_use]
pub const fn when(condition: Condition, node: u16) -> Edge {
    Edge {
        guard: Guard::When(condition),
        to: to(node),
    }
}

/// Taken when a person or agent says that the description holds.
#[must_use]
pub const fn judged(description: &'static str, node: u16) -> Edge {
    Edge {
        guard: Guard::Judged(text(description)),
        to: to(node),
    }
}

/// A step or state with nothing but an action and edges.
#[must_use]
pub const fn node(id: &'static str, line: u32, kind: Kind, edges: &'static [Edge]) -> Node {
    Node {
        id: text(id),
        description: None,
        line,
        parent: None,
        kind,
        needs_state: None,
        when: None,
        timeout: None,
        retry: None,
        fallback_value: None,
        writes: list(&[]),
        error_writes: list(&[]),
        edges: list(edges),
    }
}

/// A node that runs a command without values in it, and keeps its whole result.
#[must_use]
pub const fn command(
    id: &'static str,
    line: u32,
    command: &'static str,
    edges: &'static [Edge],
) -> Node {
    node(id, line, Kind::Shell(shell(fixed(command))), edges)
}

/// A node that runs a command with values in it, in Jinja, and keeps its whole result.
#[must_use]
pub const fn template(
    id: &'static str,
    line: u32,
    command: &'static str,
    edges: &'static [Edge],
) -> Node {
    let command = Template::Text(jinja(command));
    node(id, line, Kind::Shell(shell(command)), edges)
}

/// A node that calls a tool of flow itself.
#[must_use]
pub const fn builtin(
    id: &'static str,
    line: u32,
    tool: &'static str,
    parameters: Template,
    edges: &'static [Edge],
) -> Node {
    let tool = ToolRef::Builtin(text(tool));
    node(id, line, Kind::Tool { tool, parameters }, edges)
}

/// A node that calls a declared tool.
#[must_use]
pub const fn declared(
    id: &'static str,
    line: u32,
    tool: u16,
    parameters: Template,
    edges: &'static [Edge],
) -> Node {
    let tool = ToolRef::Declared(tool);
    node(id, line, Kind::Tool { tool, parameters }, edges)
}

/// A command whose whole result is kept, run by the host.
#[must_use]
pub const fn shell(command: Template) -> Shell {
    Shell {
        command,
        env: list(&[]),
        working_directory: None,
        output: OutputFormat::Result,
        by: By::Host,
        reason: None,
        exit_fails: false,
    }
}

/// A write that replaces a field of the raw tier; `None` writes the node's result.
#[must_use]
pub const fn set(field: &'static [Template], value: Option<Template>) -> Write {
    Write {
        path: StatePath {
            tier: Tier::Raw,
            segments: list(field),
        },
        operation: Operation::Set,
        value,
        beside: false,
    }
}

/// An optional value without a default.
#[must_use]
pub const fn field(name: &'static str, ty: Type) -> Field {
    Field {
        name: text(name),
        ty,
        required: false,
        default: None,
        description: None,
        secret: false,
        validation: Validation::NONE,
    }
}

// What a setter replaces is borrowed or empty, so forgetting it loses nothing; a `const fn` may
// not drop it.
macro_rules! setters {
    ($owner:ident: $($(#[doc = $doc:literal])+ $name:ident($value:ident: $ty:ty) = $new:expr;)+) => {
        impl $owner {
            $(
                $(#[doc = $doc])+
                #[must_use]
                #[allow(
                    forgetting_copy_types,
                    clippy::mem_replace_option_with_some,
                    reason = "one body for fields of every type"
                )]
                pub const fn $name(mut self, $value: $ty) -> Self {
                    forget(replace(&mut self.$name, $new));
                    self
                }
            )+
        }
    };
}

setters! { Graph:
    /// With a description.
    description(value: &'static str) = some(value);
    /// With a version.
    version(value: &'static str) = some(value);
    /// With typed inputs.
    inputs(value: &'static [Field]) = Some(list(value));
    /// With outputs.
    outputs(value: &'static [Output]) = list(value);
    /// With environment variables before the run.
    arguments(value: &'static [Variable]) = list(value);
    /// With environment variables after the run.
    return_values(value: &'static [Variable]) = list(value);
    /// With initial state.
    state(value: &'static [Initial]) = list(value);
    /// With derived state.
    computed(value: &'static [Computed]) = list(value);
    /// With tools of the host.
    tools(value: &'static [ToolSignature]) = list(value);
    /// With agents.
    agents(value: &'static [Agent]) = list(value);
    /// With tasks.
    tasks(value: &'static [Task]) = list(value);
    /// With what happens on failure.
    on_error(value: OnError) = value;
    /// With what happens on resume.
    on_resume(value: OnResume) = value;
    /// With bounds.
    limits(value: Limits) = value;
}

setters! { Node:
    /// With a description.
    description(value: &'static str) = some(value);
    /// Inside a container.
    parent(value: u16) = Some(value);
    /// With the state it may read.
    needs_state(value: &'static [Text]) = Some(list(value));
    /// Only when this holds.
    when(value: Expression) = Some(value);
    /// With seconds an attempt may take.
    timeout(value: f64) = Some(value);
    /// With more attempts.
    retry(value: Retry) = Some(value);
    /// With a result for the case that it fails.
    fallback_value(value: Template) = Some(value);
    /// With state written on success.
    writes(value: &'static [Write]) = list(value);
    /// With state written on failure.
    error_writes(value: &'static [Write]) = list(value);
}

setters! { Shell:
    /// With environment variables.
    env(value: &'static [(Text, Template)]) = list(value);
    /// In a directory.
    working_directory(value: Template) = Some(value);
    /// With another result.
    output(value: OutputFormat) = value;
    /// Run by somebody in particular.
    by(value: By) = value;
    /// With the reason why an agent has to run it.
    reason(value: Template) = Some(value);
    /// Whose exit code is never data.
    exit_fails(value: bool) = value;
}

setters! { Field:
    /// With a value for when it is not given.
    default(value: Literal) = Some(value);
    /// With a description.
    description(value: &'static str) = some(value);
    /// With rules.
    validation(value: Validation) = value;
}

impl Field {
    /// Must be given.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Must not be shown.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}
