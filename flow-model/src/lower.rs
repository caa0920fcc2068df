//! Document to graph: names become indices, control flow becomes edges, texts become templates.
//!
//! Lowering never fails. An edge whose target does not exist is left out; the checker has reported
//! it, and a graph with errors is not handed out.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::document::{
    self, Act, Computed, Document, Exits, Field, OnError, Output, Path, StateField, Step,
    StepError, Task, Validation, Variable, Write,
};
use crate::expression::{self, Dialect, Form as TextForm};
use crate::grammar::{self, DEFAULT_ITERATIONS};
use crate::graph::{
    self, Body, Bound, Call, CallAnswer, CallTarget, Condition, Dependency, Edge, ErrorAction,
    Expression, FanOut, Form, Graph, Guard, Initial, Jump, Kind, List, Literal, Node, Prompt, Rule,
    Runner, Shell, StatePath, Target, TaskError, Template, Text, Tier, ToolRef, ToolSignature,
};
use crate::source::{Source, Spanned, Style, Tree, Value};
use crate::structure::{duration, number};
use crate::tools::{self, Reader};

/// Lowers a document. `order` lists its computed fields in dependency order, each with the paths
/// its rule reads.
pub(crate) fn graph(document: &Document<'_>, order: &[Ordered], sources: &[Source]) -> Graph {
    let lower = Lower::new(document, document.dialect, sources);
    let continues = document.on_error.action == ErrorAction::Continue;
    Graph {
        name: text(&document.name.value),
        description: document.description.as_deref().map(text),
        version: document.version.as_deref().map(text),
        form: document.form.unwrap_or(Form::Steps),
        dialect: document.dialect,
        inputs: document.inputs.as_deref().map(fields),
        outputs: document
            .outputs
            .iter()
            .map(|output| lower.output(output))
            .collect(),
        arguments: variables(&document.arguments),
        return_values: variables(&document.return_values),
        state: lower.initials(&document.state),
        computed: order
            .iter()
            .filter_map(|ordered| {
                let field = document.computed.get(ordered.index)?;
                Some(computed(field, ordered))
            })
            .collect(),
        tools: document.tools.iter().map(signature).collect(),
        agents: document
            .agents
            .iter()
            .map(|agent| graph::Agent {
                name: text(&agent.name.value),
                instructions: text(&agent.instructions),
            })
            .collect(),
        tasks: document
            .tasks
            .iter()
            .map(|task| Lower::new(document, task.dialect, sources).task(task, continues))
            .collect(),
        body: lower.body(&document.steps, document.initial.as_ref(), continues),
        on_error: lower.on_error(&document.on_error),
        on_resume: document.on_resume,
        limits: document.limits,
    }
}

/// A computed field at its place in dependency order.
#[derive(Debug)]
pub(crate) struct Ordered {
    /// Index into the document's computed fields.
    pub(crate) index: usize,
    /// What `from` names.
    pub(crate) from: Vec<Dependency>,
    /// What the rule reads besides.
    pub(crate) reads: Vec<Dependency>,
}

fn text(value: &str) -> Text {
    Cow::Owned(value.to_owned())
}

struct Lower<'d> {
    document: &'d Document<'d>,
    dialect: Dialect,
    sources: &'d [Source],
}

impl<'d> Lower<'d> {
    fn new(document: &'d Document<'d>, dialect: Dialect, sources: &'d [Source]) -> Self {
        Lower {
            document,
            dialect,
            sources,
        }
    }

    fn output(&self, output: &Output<'_>) -> graph::Output {
        graph::Output {
            field: graph::Field {
                name: text(&output.name.value),
                ty: output.ty,
                required: true,
                default: None,
                description: output.description.as_deref().map(text),
                secret: false,
                validation: graph::Validation::NONE,
            },
            value: self.template(output.value),
        }
    }

    fn initials(&self, state: &[StateField<'_>]) -> List<Initial> {
        state
            .iter()
            .map(|field| Initial {
                tier: if field.by_hand {
                    Tier::State
                } else {
                    Tier::Raw
                },
                name: text(&field.name.value),
                ty: field.ty,
                value: field.value.map(|value| self.template(value)),
            })
            .collect()
    }

    fn task(&self, task: &Task<'_>, continues: bool) -> graph::Task {
        graph::Task {
            name: text(&task.name.value),
            description: task.description.as_deref().map(text),
            inputs: task.inputs.as_deref().map(fields),
            state: self.initials(&task.state),
            shares_state: task.shares_state,
            dialect: task.dialect,
            body: self.body(&task.steps, None, continues),
            on_error: task.handles_error.then(|| TaskError {
                returns: task.returns_error,
                body: self.body(&task.cleanup, None, false),
            }),
        }
    }

    fn on_error(&self, on_error: &OnError<'_>) -> graph::OnError {
        graph::OnError {
            action: on_error.action,
            collect_to: on_error.collect_to.and_then(|tree| self.path_of(tree)),
            body: self.body(&on_error.steps, None, false),
        }
    }

    /// Steps, or states when they have exits.
    fn body(&self, steps: &[Step<'_>], initial: Option<&Spanned<String>>, continues: bool) -> Body {
        let all = document::all_steps(steps);
        let mut index = HashMap::new();
        for (at, step) in all.iter().enumerate() {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            index.entry(step.id.value.as_str()).or_insert(at);
        }
        let mut linker = Linker {
            lower: self,
            index,
            nodes: Vec::with_capacity(all.len()),
            continues,
        };
        let states = steps.iter().any(|step| step.exits.is_some());
        let entry = if states {
            for step in steps {
                linker.state(step);
            }
            initial
                .and_then(|name| linker.find(&name.value))
                .unwrap_or(Target::Complete)
        } else {
            linker.list(steps, Target::Complete, None, None)
        };
        Body {
            nodes: linker.nodes.into(),
            entry,
        }
    }

    fn line(&self, step: &Step<'_>) -> u32 {
        let source = self.sources.get(usize::from(step.head.file.0));
        let line = source.map_or(0, |source| source.position(step.head.start as usize).line);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    fn node(&self, step: &Step<'_>, parent: Option<u16>, edges: Vec<Edge>) -> Node {
        Node {
            id: text(&step.id.value),
            description: step.description.as_deref().map(text),
            line: self.line(step),
            parent,
            kind: self.kind(step),
            needs_state: step
                .needs_state
                .as_ref()
                .map(|names| names.iter().map(|name| text(&name.value)).collect()),
            when: step.when.map(|tree| self.condition_expression(tree)),
            timeout: step.timeout,
            retry: step.retry,
            fallback_value: step.fallback_value.map(|tree| self.value(tree)),
            writes: self.writes(&step.writes),
            error_writes: self.writes(&step.error_writes),
            edges: edges.into(),
        }
    }

    fn writes(&self, writes: &[Write<'_>]) -> List<graph::Write> {
        writes
            .iter()
            .filter_map(|write| {
                Some(graph::Write {
                    path: self.path(&write.path)?,
                    operation: write.operation,
                    value: match (write.value, write.operation) {
                        (Some(tree), _) => Some(self.value(tree)),
                        (None, graph::Operation::Increment) => {
                            Some(Template::Literal(Literal::Int(1)))
                        }
                        (None, _) => None,
                    },
                    beside: write.beside,
                })
            })
            .collect()
    }

    fn path_of(&self, tree: &Tree) -> Option<StatePath> {
        self.path(&Path {
            text: tree.as_str()?,
            span: tree.span,
            tree: Some(tree),
        })
    }

    fn path(&self, path: &Path<'_>) -> Option<StatePath> {
        let (tier, segments) = split_path(path.text, self.dialect)?;
        let segments = segments
            .into_iter()
            .map(|range| self.text_template(&path.text[range], false))
            .collect();
        Some(StatePath { tier, segments })
    }

    fn template(&self, tree: &Tree) -> Template {
        match &tree.value {
            Value::Str(scalar) => self.text_template(&scalar.text, scalar.style != Style::Block),
            Value::List(items) => {
                let items: Vec<Template> = items.iter().map(|item| self.template(item)).collect();
                match literals(&items) {
                    Some(literals) => Template::Literal(Literal::List(literals.into())),
                    None => Template::List(items.into()),
                }
            }
            Value::Map(_) => {
                let pairs: Vec<(Text, Template)> = unique_entries(tree)
                    .map(|(key, value)| (text(key), self.template(value)))
                    .collect();
                self.map(pairs)
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Template::Literal(literal(tree))
            }
        }
    }

    fn map(&self, pairs: Vec<(Text, Template)>) -> Template {
        let plain: Option<Vec<(Text, Literal)>> = pairs
            .iter()
            .map(|(key, value)| match value {
                Template::Literal(literal) => Some((key.clone(), literal.clone())),
                _ => None,
            })
            .collect();
        match plain {
            Some(plain) => Template::Literal(Literal::Map(plain.into())),
            None => Template::Map(pairs.into()),
        }
    }

    /// A text. `lines` says that a line end around it was written on purpose, as in `"{{ a }}\n"`,
    /// and is not just how a block of text ends.
    fn text_template(&self, value: &str, lines: bool) -> Template {
        let ends = |c: char| c == '\n' || c == '\r';
        match expression::form(value, self.dialect) {
            TextForm::Literal => Template::Literal(Literal::Str(text(value))),
            TextForm::Sole(_) if lines && (value.starts_with(ends) || value.ends_with(ends)) => {
                Template::Text(self.templated(value))
            }
            TextForm::Sole(range) => Template::Expression(self.bare(&value[range])),
            TextForm::Text => Template::Text(self.templated(value)),
        }
    }

    /// A parameter, in which every line end counts: a terminal reads it as a key.
    fn parameter(&self, tree: &Tree) -> Template {
        match self.document.form {
            Some(Form::States) => self.braced(tree, &|_| true),
            Some(Form::Steps) | None => self.template(tree),
        }
    }

    /// A workflow given inline. It is taken as it is, so that its values are those of its own run;
    /// only a sole value stands for a whole definition.
    fn definition(&self, tree: &Tree) -> Template {
        match self.parameter(tree) {
            whole @ Template::Expression(_) => whole,
            _ => Template::Literal(literal(tree)),
        }
    }

    /// A regular expression, in which values are found as they are.
    fn pattern(&self, tree: &Tree) -> Template {
        let Some(written) = tree.as_str() else {
            return self.parameter(tree);
        };
        let written = match self.document.form {
            Some(Form::States) => expression::unbrace_pattern(written),
            Some(Form::Steps) | None => Cow::Borrowed(written),
        };
        match self.text_template(&written, true) {
            Template::Text(expression) => Template::Pattern(expression),
            Template::Expression(sole) => Template::Pattern(rewrapped(sole)),
            other => other,
        }
    }

    /// A value that a step or a state writes.
    fn value(&self, tree: &Tree) -> Template {
        match self.document.form {
            Some(Form::States) => self.braced(tree, &|style| style != Style::Block),
            Some(Form::Steps) | None => self.template(tree),
        }
    }

    /// A value of a state, in which `{name}` is a variable. `lines` says of a text's style whether
    /// line ends around it were written on purpose.
    fn braced(&self, tree: &Tree, lines: &dyn Fn(Style) -> bool) -> Template {
        match &tree.value {
            Value::Str(scalar) => {
                self.text_template(&expression::unbrace(&scalar.text), lines(scalar.style))
            }
            Value::List(items) => {
                let items = items.iter().map(|item| self.braced(item, lines));
                let items: Vec<Template> = items.collect();
                match literals(&items) {
                    Some(literals) => Template::Literal(Literal::List(literals.into())),
                    None => Template::List(items.into()),
                }
            }
            Value::Map(_) => {
                let pairs = unique_entries(tree)
                    .map(|(key, value)| (text(key), self.braced(value, lines)))
                    .collect();
                self.map(pairs)
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Template::Literal(literal(tree))
            }
        }
    }

    fn bare(&self, value: &str) -> Expression {
        let source = match self.dialect {
            Dialect::Jinja => expression::unraw_expression(value.trim()),
            Dialect::Js => Cow::Borrowed(value.trim()),
        };
        Expression {
            source: text(&source),
            dialect: self.dialect,
        }
    }

    fn templated(&self, value: &str) -> Expression {
        let source = match self.dialect {
            Dialect::Jinja => expression::unraw(value),
            Dialect::Js => Cow::Borrowed(value),
        };
        Expression {
            source: text(&source),
            dialect: self.dialect,
        }
    }

    /// The expression of `if`, `when` and `expression`: a sole interpolation, or bare.
    fn condition_expression(&self, tree: &Tree) -> Expression {
        match &tree.value {
            Value::Bool(value) => self.bare(if *value { "true" } else { "false" }),
            _ => {
                let value = tree.as_str().unwrap_or("false");
                match expression::form(value, self.dialect) {
                    TextForm::Sole(range) => self.bare(&value[range]),
                    TextForm::Literal | TextForm::Text => self.bare(value),
                }
            }
        }
    }

    /// `items`: a list, or an expression that yields one.
    fn items(&self, tree: &Tree) -> Template {
        match tree.as_str() {
            Some(_) => Template::Expression(self.condition_expression(tree)),
            None => self.template(tree),
        }
    }

    fn pairs(&self, pairs: &[(Spanned<String>, &Tree)]) -> List<(Text, Template)> {
        pairs
            .iter()
            .map(|(name, tree)| (text(&name.value), self.parameter(tree)))
            .collect()
    }

    fn kind(&self, step: &Step<'_>) -> Kind {
        match &step.act {
            Act::Condition { test, .. } => Kind::Condition {
                test: self.condition_expression(test),
            },
            Act::While {
                test,
                max_iterations,
                ..
            } => Kind::While {
                test: self.condition_expression(test),
                bound: Bound {
                    times: max_iterations.unwrap_or(DEFAULT_ITERATIONS),
                    explicit: max_iterations.is_some(),
                },
            },
            Act::Loop { items, .. } => Kind::Loop {
                items: self.items(items),
            },
            Act::FanOut {
                items,
                task,
                agent,
                sequential,
                max_parallel,
                on_child_error,
                collect_to,
                prompt,
            } => Kind::FanOut(FanOut {
                items: self.items(items),
                task: self
                    .document
                    .tasks
                    .iter()
                    .position(|t| t.name.value == task.value)
                    .and_then(|at| u16::try_from(at).ok())
                    .unwrap_or(u16::MAX),
                runner: match agent.as_ref().map(|agent| agent.value.as_str()) {
                    None => Runner::Host,
                    Some("@task") => Runner::SubAgent,
                    Some(name) => Runner::Agent(text(name.trim_start_matches('@'))),
                },
                sequential: *sequential,
                max_parallel: *max_parallel,
                on_child_error: *on_child_error,
                collect_to: collect_to.and_then(|tree| self.path_of(tree)),
                prompt: prompt.map(|tree| self.template(tree)),
            }),
            Act::Break => Kind::Jump(Jump::Break),
            Act::Continue => Kind::Jump(Jump::Continue),
            Act::Goto { max_iterations, .. } => Kind::Goto {
                bound: Bound {
                    times: *max_iterations,
                    explicit: true,
                },
            },
            Act::Return { value } => Kind::Return {
                value: value.map(|tree| self.template(tree)),
            },
            Act::SetState => Kind::SetState,
            Act::Call {
                workflow,
                inputs,
                shares_computed,
            } => Kind::Call(Call {
                target: CallTarget::Name(self.template(workflow)),
                inputs: self.map(self.pairs(inputs).into_owned()),
                variables: self.map(Vec::new()),
                session: None,
                max_states: None,
                execution_timeout: None,
                save_on_success: None,
                shares_computed: *shares_computed,
                answer: CallAnswer::Outputs,
            }),
            Act::Shell {
                command,
                env,
                working_directory,
                output,
                by,
                reason,
            } => Kind::Shell(Shell {
                command: self.parameter(command),
                env: self.pairs(env),
                working_directory: working_directory.map(|tree| self.parameter(tree)),
                output: *output,
                by: *by,
                reason: reason.map(|tree| self.template(tree)),
                exit_fails: step.captures_result() && step.handles_failure(),
            }),
            Act::Tool {
                tool, parameters, ..
            } => self.tool(&tool.value, parameters),
            Act::Prompt {
                message,
                kind,
                options,
                validation: rules,
            } => Kind::Prompt(Prompt {
                message: self.parameter(message),
                kind: *kind,
                options: options.map(|tree| self.parameter(tree)),
                validation: validation(rules),
            }),
            Act::Wait { duration, message } => Kind::Wait {
                seconds: self.seconds(duration),
                message: message.map(|tree| self.parameter(tree)),
            },
            Act::Delegate {
                instructions,
                agent,
                returns,
            } => Kind::Delegate {
                instructions: self.parameter(instructions),
                agent: agent
                    .as_ref()
                    .map(|agent| text(agent.value.trim_start_matches('@'))),
                returns: returns.map(literal),
            },
        }
    }

    fn seconds(&self, tree: &Tree) -> Template {
        match duration(tree) {
            Some(seconds) if seconds.fract() == 0.0 && seconds < 9e15 => {
                Template::Literal(Literal::Int(seconds as i64))
            }
            Some(seconds) => Template::Literal(Literal::Float(seconds)),
            None => self.parameter(tree),
        }
    }

    fn tool(&self, name: &str, parameters: &[(Spanned<String>, &Tree)]) -> Kind {
        let declared = self
            .document
            .tools
            .iter()
            .position(|t| t.name.value == name);
        let of = |key: &str| {
            let found = parameters.iter().find(|(name, _)| name.value == key);
            found.map(|(_, tree)| self.parameter(tree))
        };
        if name == "run_workflow" && declared.is_none() {
            let target = match of("workflow_name") {
                Some(name) => CallTarget::Name(name),
                None => {
                    let mut given = parameters.iter();
                    let given = given.find(|(name, _)| name.value == "workflow_definition");
                    CallTarget::Definition(match given {
                        Some((_, tree)) => self.definition(tree),
                        None => Template::Literal(Literal::Null),
                    })
                }
            };
            let map = |key: &str| of(key).unwrap_or_else(|| self.map(Vec::new()));
            return Kind::Call(Call {
                target,
                inputs: map("inputs"),
                variables: map("initial_variables"),
                session: of("session_id"),
                max_states: of("max_states"),
                execution_timeout: of("execution_timeout"),
                save_on_success: of("save_on_success"),
                shares_computed: false,
                answer: CallAnswer::Response,
            });
        }
        let tool = match declared.and_then(|at| u16::try_from(at).ok()) {
            Some(at) => ToolRef::Declared(at),
            None if tools::find(name).is_some() => ToolRef::Builtin(text(name)),
            None => ToolRef::Host(text(name)),
        };
        let builtin = tools::find(name).filter(|_| matches!(tool, ToolRef::Builtin(_)));
        let pairs = parameters
            .iter()
            .map(|(name, tree)| {
                let value = match builtin.map(|tool| tool.reader(&name.value)) {
                    Some(Reader::Shell) => command(self.parameter(tree)),
                    Some(Reader::Pattern) => self.pattern(tree),
                    Some(Reader::Run) => self.definition(tree),
                    Some(Reader::Tool | Reader::Program) | None => self.parameter(tree),
                };
                (text(&name.value), value)
            })
            .collect();
        Kind::Tool {
            tool,
            parameters: self.map(pairs),
        }
    }

    fn guard(&self, condition: &document::Condition<'_>) -> Guard {
        match condition {
            document::Condition::Always => Guard::Always,
            document::Condition::Success(true) => Guard::Success,
            document::Condition::Success(false) => Guard::Failure,
            document::Condition::TimedOut(true) => Guard::Timeout,
            document::Condition::TimedOut(false) => Guard::InTime,
            document::Condition::Judged(description) => Guard::Judged(text(&description.value)),
            document::Condition::Match(_)
            | document::Condition::NoMatch(_)
            | document::Condition::Equals(..)
            | document::Condition::Contains(..)
            | document::Condition::Expression(_)
            | document::Condition::All(_)
            | document::Condition::Any(_)
            | document::Condition::Not(_) => Guard::When(self.condition(condition)),
        }
    }

    fn condition(&self, condition: &document::Condition<'_>) -> Condition {
        let all = |inner: &[document::Condition<'_>]| -> List<Condition> {
            inner.iter().map(|one| self.condition(one)).collect()
        };
        match condition {
            document::Condition::Always | document::Condition::Judged(_) => Condition::Always,
            document::Condition::Success(value) => Condition::Success(*value),
            document::Condition::TimedOut(value) => Condition::TimedOut(*value),
            document::Condition::Match(tree) => Condition::PatternMatch(self.pattern(tree)),
            document::Condition::NoMatch(tree) => Condition::PatternNotMatch(self.pattern(tree)),
            document::Condition::Equals(field, tree) => {
                Condition::FieldEquals(text(&field.value), self.parameter(tree))
            }
            document::Condition::Contains(field, tree) => {
                Condition::FieldContains(text(&field.value), self.parameter(tree))
            }
            document::Condition::Expression(tree) => {
                Condition::Expression(self.condition_expression(tree))
            }
            document::Condition::All(inner) => Condition::All(all(inner)),
            document::Condition::Any(inner) => Condition::Any(all(inner)),
            document::Condition::Not(inner) => Condition::None(vec![self.condition(inner)].into()),
        }
    }
}

/// Nodes are numbered in document order, so a step's index is its place in that order.
struct Linker<'l, 'd> {
    lower: &'l Lower<'d>,
    index: HashMap<&'l str, u16>,
    nodes: Vec<Node>,
    continues: bool,
}

/// The loop around a step: its node, and where it leads when it is over.
#[derive(Clone, Copy)]
struct Around {
    head: Target,
    after: Target,
}

impl Linker<'_, '_> {
    fn find(&self, id: &str) -> Option<Target> {
        self.index.get(id).map(|at| Target::Node(*at))
    }

    fn here(&self) -> u16 {
        u16::try_from(self.nodes.len()).unwrap_or(u16::MAX)
    }

    /// Links a list whose last step leads to `after`, and says where the list starts.
    fn list(
        &mut self,
        steps: &[Step<'_>],
        after: Target,
        parent: Option<u16>,
        around: Option<Around>,
    ) -> Target {
        let mut entry = None;
        for (at, step) in steps.iter().enumerate() {
            let here = self.here();
            entry.get_or_insert(Target::Node(here));
            // The next sibling comes after everything inside this step.
            let inside = document::all_steps(std::slice::from_ref(step)).len();
            let next = match steps.get(at + 1) {
                Some(_) => {
                    Target::Node(here.saturating_add(u16::try_from(inside).unwrap_or(u16::MAX)))
                }
                None => after,
            };
            self.step(step, next, parent, around);
        }
        entry.unwrap_or(after)
    }

    fn step(&mut self, step: &Step<'_>, next: Target, parent: Option<u16>, around: Option<Around>) {
        let here = self.here();
        let edge = |guard, to| Edge { guard, to };
        self.nodes.push(self.lower.node(step, parent, Vec::new()));
        let mut edges = match &step.act {
            Act::Condition {
                then, otherwise, ..
            } => {
                let then = self.list(then, next, Some(here), around);
                let otherwise = self.list(otherwise, next, Some(here), around);
                vec![edge(Guard::Then, then), edge(Guard::Else, otherwise)]
            }
            Act::While { body, .. } | Act::Loop { body, .. } => {
                let head = Target::Node(here);
                let inner = Around { head, after: next };
                let body = self.list(body, head, Some(here), Some(inner));
                vec![edge(Guard::Body, body), edge(Guard::Done, next)]
            }
            // Outside a loop, which is an error, what follows is still reached.
            Act::Break => {
                let after = around.map_or(next, |around| around.after);
                vec![edge(Guard::Success, after)]
            }
            Act::Continue => {
                let head = around.map_or(next, |around| around.head);
                vec![edge(Guard::Success, head)]
            }
            Act::Goto { target, .. } => {
                let mut edges = Vec::new();
                if let Some(target) = self.find(&target.value) {
                    edges.push(edge(Guard::Body, target));
                }
                edges.push(edge(Guard::Done, next));
                edges
            }
            Act::Return { .. } => vec![edge(Guard::Success, Target::Complete)],
            Act::FanOut { .. }
            | Act::SetState
            | Act::Call { .. }
            | Act::Shell { .. }
            | Act::Tool { .. }
            | Act::Prompt { .. }
            | Act::Wait { .. }
            | Act::Delegate { .. } => vec![edge(Guard::Success, next)],
        };
        match &step.on_error {
            StepError::Goto(target) => {
                if let Some(target) = self.find(&target.value) {
                    edges.push(edge(Guard::Failure, target));
                }
            }
            StepError::Continue => edges.push(edge(Guard::Failure, next)),
            StepError::Fail if self.continues => edges.push(edge(Guard::Failure, next)),
            StepError::Fail => {}
        }
        if step.when.is_some() {
            edges.push(edge(Guard::Skip, next));
        }
        // A container that failed and has something to give instead is over.
        let succeeds = edges.iter().any(|edge| edge.guard == Guard::Success);
        if step.fallback_value.is_some() && !succeeds {
            edges.push(edge(Guard::Success, next));
        }
        if let Some(node) = self.nodes.get_mut(usize::from(here)) {
            node.edges = edges.into();
        }
    }

    fn state(&mut self, step: &Step<'_>) {
        let empty = Exits {
            transitions: Vec::new(),
            on_timeout: None,
            unread: false,
            unread_targets: Vec::new(),
        };
        let exits = step.exits.as_ref().unwrap_or(&empty);
        let mut edges = Vec::new();
        if let Some(target) = exits
            .on_timeout
            .as_ref()
            .and_then(|name| self.find(&name.value))
        {
            edges.push(Edge {
                guard: Guard::Timeout,
                to: target,
            });
        }
        for transition in &exits.transitions {
            if let Some(to) = self.find(&transition.next.value) {
                let guard = self.lower.guard(&transition.condition);
                edges.push(Edge { guard, to });
            }
        }
        if exits.transitions.is_empty() {
            edges.push(Edge {
                guard: Guard::Success,
                to: Target::Complete,
            });
        }
        self.nodes.push(self.lower.node(step, None, edges));
    }
}

/// The tier of a path and the ranges of its segments; `None` when it is not a path.
pub(crate) fn split_path(
    path: &str,
    dialect: Dialect,
) -> Option<(Tier, Vec<std::ops::Range<usize>>)> {
    let mut segments = Vec::new();
    let mut start = 0;
    for piece in expression::pieces(path, dialect) {
        match piece {
            expression::Piece::Text(range) => {
                for (at, _) in path[range.clone()].match_indices('.') {
                    segments.push(start..range.start + at);
                    start = range.start + at + 1;
                }
            }
            expression::Piece::Interpolation(_) => {}
            expression::Piece::Statement(_) | expression::Piece::Raw { .. } => return None,
        }
    }
    segments.push(start..path.len());
    let tier = match &path[segments[0].clone()] {
        _ if segments.len() == 1 => None,
        "raw" => Some(Tier::Raw),
        "state" => Some(Tier::State),
        "computed" => Some(Tier::Computed),
        _ => None,
    };
    if tier.is_some() {
        segments.remove(0);
    }
    let whole = |range: &std::ops::Range<usize>| {
        let segment = &path[range.clone()];
        !segment.is_empty() && (segment.contains("{{") || !segment.contains(char::is_whitespace))
    };
    segments
        .iter()
        .all(whole)
        .then(|| (tier.unwrap_or(Tier::Raw), segments))
}

fn unique_entries(tree: &Tree) -> impl Iterator<Item = (&str, &Tree)> {
    let mut seen = std::collections::HashSet::new();
    tree.entries()
        .unwrap_or_default()
        .iter()
        .filter(move |entry| seen.insert(entry.key.value.as_str()))
        .map(|entry| (entry.key.value.as_str(), &entry.value))
}

fn literals(items: &[Template]) -> Option<Vec<Literal>> {
    items
        .iter()
        .map(|item| match item {
            Template::Literal(literal) => Some(literal.clone()),
            _ => None,
        })
        .collect()
}

/// A value taken as it is; whole numbers become integers.
pub(crate) fn literal(tree: &Tree) -> Literal {
    match &tree.value {
        Value::Null => Literal::Null,
        Value::Bool(value) => Literal::Bool(*value),
        Value::Int(value) => Literal::Int(*value),
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
            Literal::Int(*value as i64)
        }
        Value::Float(value) => Literal::Float(*value),
        Value::Str(scalar) => Literal::Str(text(&scalar.text)),
        Value::List(items) => Literal::List(items.iter().map(literal).collect()),
        Value::Map(_) => Literal::Map(
            unique_entries(tree)
                .map(|(key, value)| (text(key), literal(value)))
                .collect(),
        ),
    }
}

pub(crate) fn fields(fields: &[Field<'_>]) -> List<graph::Field> {
    fields.iter().map(field).collect()
}

pub(crate) fn field(field: &Field<'_>) -> graph::Field {
    graph::Field {
        name: text(&field.name.value),
        ty: field.ty,
        required: field.required,
        default: field.default.map(literal),
        description: field.description.as_deref().map(text),
        secret: field.secret,
        validation: validation(&field.validation),
    }
}

fn validation(rules: &Validation<'_>) -> graph::Validation {
    let mut out = graph::Validation::NONE;
    for (name, _, tree) in &rules.rules {
        let words = |tree: &Tree| -> List<Text> {
            let items = tree.items().unwrap_or_default();
            items.iter().filter_map(|i| i.as_str().map(text)).collect()
        };
        let whole = || number(tree).map(|value| value.max(0.0) as u64);
        match *name {
            "pattern" => out.pattern = tree.as_str().map(text),
            "min_length" => out.min_length = whole(),
            "max_length" => out.max_length = whole(),
            "enum" => {
                out.one_of = tree
                    .items()
                    .unwrap_or_default()
                    .iter()
                    .map(literal)
                    .collect();
            }
            "min" => out.min = number(tree),
            "max" => out.max = number(tree),
            "min_items" => out.min_items = whole(),
            "max_items" => out.max_items = whole(),
            "item_type" => out.item_type = tree.as_str().and_then(grammar::type_word),
            "required_keys" => out.required_keys = words(tree),
            "properties" => out.properties = fields(&rules.properties),
            "error_message" => out.error_message = tree.as_str().map(text),
            _ => {}
        }
    }
    out
}

fn variables(variables: &[Variable]) -> List<graph::Variable> {
    variables
        .iter()
        .map(|variable| graph::Variable {
            name: text(&variable.name.value),
            description: variable.description.as_deref().map(text),
            required: variable.required,
        })
        .collect()
}

fn signature(tool: &document::Tool<'_>) -> ToolSignature {
    ToolSignature {
        name: text(&tool.name.value),
        description: tool.description.as_deref().map(text),
        params: tool.params.as_deref().map(fields),
        returns: fields(&tool.returns),
        result: tool.result,
        idempotent: tool.idempotent,
    }
}

fn computed(field: &Computed<'_>, ordered: &Ordered) -> graph::Computed {
    let source = field.transform.and_then(Tree::as_str);
    let rule = match (source, field.value) {
        (Some(source), _) => match expression::transform(source).shape {
            expression::Shape::Expression => Rule::Transform(text(source.trim())),
            expression::Shape::Body => Rule::Body(text(source)),
        },
        (None, Some(tree)) => Rule::Value(value_template(tree, field.dialect)),
        (None, None) => Rule::Value(Template::Literal(Literal::Null)),
    };
    graph::Computed {
        name: text(&field.name.value),
        from: ordered.from.clone().into(),
        from_list: field.from_list,
        reads: ordered.reads.clone().into(),
        rule,
        on_error: field.on_error,
        fallback: field.fallback.map_or(Literal::Null, literal),
        validate: field.validate.and_then(|tree| tree.as_str().map(text)),
        once: field.once,
    }
}

/// `value:` of a computed field: a template, or a bare expression.
fn value_template(tree: &Tree, dialect: Dialect) -> Template {
    let value = tree.as_str().unwrap_or_default();
    let (source, sole) = match expression::form(value, dialect) {
        TextForm::Sole(range) => (value[range].trim(), true),
        TextForm::Literal => (value.trim(), true),
        TextForm::Text => (value, false),
    };
    let source = match (dialect, sole) {
        (Dialect::Jinja, true) => expression::unraw_expression(source),
        (Dialect::Jinja, false) => expression::unraw(source),
        (Dialect::Js, _) => Cow::Borrowed(source),
    };
    let expression = Expression {
        source: text(&source),
        dialect,
    };
    if sole {
        Template::Expression(expression)
    } else {
        Template::Text(expression)
    }
}

/// A template that a shell will read.
fn command(template: Template) -> Template {
    match template {
        Template::Text(expression) => Template::Command(expression),
        Template::Expression(sole) => Template::Command(rewrapped(sole)),
        other => other,
    }
}

/// A sole expression as text with one interpolation.
fn rewrapped(sole: Expression) -> Expression {
    Expression {
        source: text(&format!("{{{{ {} }}}}", sole.source)),
        dialect: sole.dialect,
    }
}
