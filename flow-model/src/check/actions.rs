//! Declarations, and what steps do with tools, tasks, workflows and people.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::Checker;
use super::scope::{spaces, static_field};
use super::values::{ArgumentFault, arguments, is_literal};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::document::{Act, Computed, Document, Field, Step, all_steps};
use crate::expression::Dialect;
use crate::grammar::{self, habit};
use crate::graph::{self, Form, Operation, PromptKind, Tier, Type};
use crate::loader::Lookup;
use crate::source::{FileId, Span, Spanned, Tree, Value};
use crate::{lower, read, source, structure, tools};

/// What a workflow is called that is written out where it is called, until it says a name.
const INLINE: &str = "workflow";

/// A call of another workflow.
pub(super) struct Called<'d> {
    pub(super) workflow: &'d Tree,
    /// What it is given by name; `None` where only the run can tell.
    pub(super) inputs: Option<Vec<(Spanned<String>, &'d Tree)>>,
    /// The variables it starts with; `None` where only the run can tell.
    variables: Option<Vec<&'d str>>,
}

impl<'d> Called<'d> {
    /// The call that a tool is, when it is one by name.
    pub(super) fn of(
        tool: &Spanned<String>,
        builtin: Option<&tools::Tool>,
        parameters: &'d [(Spanned<String>, &'d Tree)],
    ) -> Option<Self> {
        let find = |key: &str| {
            let found = parameters.iter().find(|(name, _)| name.value == key);
            found.map(|(_, tree)| *tree)
        };
        builtin.filter(|_| tool.value == "run_workflow")?;
        let given = |key: &str| match find(key) {
            None => Some([].as_slice()),
            Some(tree) if tree.value == Value::Null => Some([].as_slice()),
            Some(tree) => tree.entries(),
        };
        let inputs = given("inputs").map(|entries| {
            let entries = entries.iter();
            entries
                .map(|entry| (entry.key.clone(), &entry.value))
                .collect()
        });
        let variables = given("initial_variables").map(|entries| {
            let entries = entries.iter();
            entries.map(|entry| entry.key.value.as_str()).collect()
        });
        Some(Called {
            workflow: find("workflow_name")?,
            inputs,
            variables,
        })
    }
}

impl<'d> Checker<'d> {
    /// Everything a document declares.
    pub(super) fn declarations(&mut self) {
        let document = self.document;
        self.fields(document.inputs.as_deref().unwrap_or_default());
        self.contract();
        for field in &document.state {
            if let Some(value) = field.value {
                self.literal_fits(value, field.ty, document.dialect, &field.name.value);
            }
        }
        for tool in &document.tools {
            self.fields(tool.params.as_deref().unwrap_or_default());
            self.fields(&tool.returns);
        }
        for task in &document.tasks {
            self.fields(task.inputs.as_deref().unwrap_or_default());
        }
        for output in &document.outputs {
            self.literal_fits(
                output.value,
                output.ty,
                document.dialect,
                &output.name.value,
            );
        }
        self.tiers();
        self.written_tiers();
    }

    /// Arguments and return values.
    fn contract(&mut self) {
        let document = self.document;
        for variable in document.arguments.iter().chain(&document.return_values) {
            if let Some(inner) = &variable.inner_name
                && inner.value != variable.name.value
            {
                self.report(
                    Diagnostic::new(Code::BadName, inner.span)
                        .message(format!(
                            "`name` is `{}`, and the key is `{}`",
                            inner.value, variable.name.value
                        ))
                        .related(variable.name.span, "the key")
                        .help("drop `name`, or make both the same"),
                );
            }
        }
        for value in &document.return_values {
            let argument = document
                .arguments
                .iter()
                .find(|a| a.name.value == value.name.value);
            if let Some(argument) = argument {
                self.report(
                    Diagnostic::new(Code::ArgumentAndReturn, value.name.span)
                        .message(format!(
                            "`{}` is both an argument and a return value",
                            value.name.value
                        ))
                        .label("a return value")
                        .related(argument.name.span, "an argument")
                        .help("return the result under another name"),
                );
            }
        }
    }

    /// Names that stand in two tiers.
    fn tiers(&mut self) {
        let document = self.document;
        let mut seen: HashMap<&str, Vec<(&'static str, Span)>> = HashMap::new();
        let state = document.state.iter().map(|field| {
            let tier = if field.by_hand { "state" } else { "raw" };
            (&field.name, tier)
        });
        let computed = document
            .computed
            .iter()
            .map(|field| (&field.name, "computed"));
        for (name, tier) in state.chain(computed) {
            let places = seen.entry(&name.value).or_default();
            if let Some((other_tier, span)) = places.iter().find(|(other, _)| *other != tier) {
                let (found, hidden) = if tier == "computed" || *other_tier == "state" {
                    (tier, *other_tier)
                } else {
                    (*other_tier, tier)
                };
                self.report(
                    Diagnostic::new(Code::ShadowedTier, name.span)
                        .message(format!(
                            "`{}` stands in two tiers: reading it finds {found}, never {hidden}",
                            name.value
                        ))
                        .related(*span, "also here")
                        .help("give one of them another name"),
                );
            }
            if !places.iter().any(|(other, _)| *other == tier) {
                places.push((tier, name.span));
            }
        }
    }

    /// Fields that nothing declares and that steps write to two tiers.
    fn written_tiers(&mut self) {
        let document = self.document;
        let shared = document.tasks.iter().filter(|task| task.shares_state);
        let bodies = [
            (document.dialect, &document.steps),
            (document.dialect, &document.on_error.steps),
        ];
        let bodies = bodies.into_iter().chain(
            shared.flat_map(|task| [(task.dialect, &task.steps), (task.dialect, &task.cleanup)]),
        );
        let mut raw: HashMap<&str, Span> = HashMap::new();
        let mut by_hand: Vec<(&str, Span)> = Vec::new();
        for (dialect, steps) in bodies {
            for step in all_steps(steps) {
                for write in step.writes.iter().chain(&step.error_writes) {
                    match static_field(write.path.text, dialect) {
                        Some((Tier::Raw, field)) => {
                            raw.entry(field).or_insert(write.path.span);
                        }
                        Some((Tier::State, field)) => by_hand.push((field, write.path.span)),
                        _ => {}
                    }
                }
            }
        }
        for (field, span) in by_hand {
            let declared = document.state.iter().any(|f| f.name.value == field);
            let computed = document.computed.iter().any(|f| f.name.value == field);
            if let Some(other) = raw.get(field)
                && !declared
                && !computed
            {
                self.report(
                    Diagnostic::new(Code::ShadowedTier, span)
                        .message(format!(
                            "`{field}` is written to two tiers: reading it finds raw as soon as that is there"
                        ))
                        .related(*other, "raw here")
                        .help(format!("write `{field}` in both places, or declare it under `state`")),
                );
            }
        }
    }

    /// What each step does.
    pub(super) fn actions(&mut self) {
        let document = self.document;
        for step in all_steps(&document.steps) {
            self.action(step, document.dialect, false);
            self.returned(step);
        }
        for step in all_steps(&document.on_error.steps) {
            self.action(step, document.dialect, false);
        }
        for task in &document.tasks {
            let delegated = self.delegated(&task.name.value);
            for step in all_steps(&task.steps)
                .into_iter()
                .chain(all_steps(&task.cleanup))
            {
                self.action(step, task.dialect, delegated);
            }
        }
        for tree in self.trees {
            self.secrets(tree, "");
        }
    }

    /// What a `return` gives where the workflow says what it gives.
    fn returned(&mut self, step: &Step<'d>) {
        if let Act::Return { value: Some(value) } = &step.act
            && !self.document.outputs.is_empty()
        {
            self.report(
                Diagnostic::new(Code::NoEffect, self.line(value.span))
                    .message("`value` is dropped: the result of this workflow is its `outputs`")
                    .label("has no effect")
                    .help("drop it, or write it to the state and read that under `outputs`"),
            );
        }
    }

    /// Whether a sub-agent runs a task.
    fn delegated(&self, task: &str) -> bool {
        let tasks = self
            .document
            .tasks
            .iter()
            .flat_map(|task| all_steps(&task.steps));
        all_steps(&self.document.steps).into_iter().chain(tasks).any(|step| {
            matches!(&step.act, Act::FanOut { task: named, agent: Some(_), .. } if named.value == task)
        })
    }

    fn action(&mut self, step: &'d Step<'d>, dialect: Dialect, delegated: bool) {
        match &step.act {
            Act::FanOut {
                task,
                items,
                prompt,
                ..
            } => {
                self.task(task);
                self.bound_items(task, items, dialect);
                if let Some(prompt) = prompt {
                    self.blank(
                        prompt,
                        "prompt",
                        "drop it, and the sub-agents get the usual one",
                    );
                }
            }
            Act::Shell { command, env, .. } => {
                self.blank(command, "command", "write what the shell is to run");
                for (name, _) in env {
                    self.environment_name(name);
                }
            }
            Act::Delegate {
                instructions,
                returns,
                ..
            } => {
                self.blank(
                    instructions,
                    "instructions",
                    "write what the agent is to do",
                );
                if let Some(schema) = returns {
                    self.json_schema(schema, "returns");
                }
            }
            Act::While {
                max_iterations: None,
                ..
            } => self.report(
                Diagnostic::new(Code::UnboundedLoop, step.head)
                    .message(format!(
                        "the loop `{}` has no bound: after 100 iterations the run fails",
                        step.id.value
                    ))
                    .help("add `max_iterations`"),
            ),
            Act::Prompt {
                kind,
                message,
                options,
                validation,
                ..
            } => {
                self.blank(message, "message", "write what the person is to read");
                self.prompt(step, *kind, *options);
                self.validation(validation, Type::String);
                if delegated {
                    let (does, help) = match kind {
                        PromptKind::Info => (
                            "tells a person something",
                            "show it before or after the `foreach`",
                        ),
                        PromptKind::Confirm | PromptKind::Text | PromptKind::Choice => (
                            "asks a person",
                            "ask before the `foreach`, and pass the answer as an input",
                        ),
                    };
                    self.report(
                        Diagnostic::new(Code::PromptInTask, step.head)
                            .message(format!(
                                "`{}` {does}, and a sub-agent runs this task",
                                step.id.value
                            ))
                            .help(help),
                    );
                }
            }
            Act::Tool {
                tool,
                open,
                parameters,
            } => self.tool(step, tool, *open, parameters, dialect),
            Act::Call {
                workflow,
                inputs,
                shares_computed,
            } => self.call(workflow, inputs, dialect, *shares_computed),
            Act::While { .. }
            | Act::Condition { .. }
            | Act::Loop { .. }
            | Act::Break
            | Act::Continue
            | Act::Goto { .. }
            | Act::Return { .. }
            | Act::SetState
            | Act::Wait { .. } => {}
        }
        let resultless = matches!(
            step.act,
            Act::Condition { .. }
                | Act::While { .. }
                | Act::Loop { .. }
                | Act::Break
                | Act::Continue
                | Act::Goto { .. }
                | Act::Return { .. }
        );
        if resultless && let Some(write) = step.writes.first() {
            let has_steps = step.bodies().any(|body| !body.is_empty());
            let help = match &step.act {
                _ if has_steps => "drop `output_to`; the steps inside have results of their own",
                Act::Return { .. } => "drop `output_to`; nothing runs after `return` to read it",
                _ => "drop `output_to`",
            };
            self.report(
                Diagnostic::new(Code::NoResult, write.path.span)
                    .message(format!("`{}` has no result to store", step.id.value))
                    .help(help),
            );
        }
        if let Act::SetState = step.act {
            self.values_given(step);
        }
    }

    /// What a step sets is its result, so that nothing could stand for a value yet.
    fn values_given(&mut self, step: &Step<'d>) {
        let own = step.writes.iter().filter(|write| !write.beside);
        for write in own.filter(|write| write.value.is_none()) {
            let word = match write.operation {
                Operation::Set => "set",
                Operation::Append => "append",
                Operation::Merge => "merge",
                // By one.
                Operation::Increment => continue,
            };
            self.report(
                Diagnostic::new(Code::MissingKey, write.path.span)
                    .message(format!("`{}` has no `value` to {word}", write.path.text))
                    .label("nothing is written here")
                    .help("give `value:`; `null` is one"),
            );
        }
    }

    /// A text that says nothing, where something has to be said.
    fn blank(&mut self, tree: &'d Tree, key: &str, help: &str) {
        if tree.as_str().is_some_and(|text| text.trim().is_empty()) {
            self.report(
                Diagnostic::new(Code::OutOfLimits, self.line(tree.span))
                    .message(format!("`{key}` is empty"))
                    .label("nothing is written here")
                    .help(help),
            );
        }
    }

    /// A name that the environment of a command can have.
    fn environment_name(&mut self, name: &Spanned<String>) {
        let written = name.value.as_str();
        if !written.is_empty() && !written.contains(['=', '\0']) {
            return;
        }
        let help = match written.split_once('=') {
            Some((name, value)) if !name.is_empty() => format!("write `{name}: {value}`"),
            _ => "write `NAME: value`".to_owned(),
        };
        self.report(
            Diagnostic::new(Code::BadName, name.span)
                .message(format!(
                    "`{written}` is not the name of an environment variable"
                ))
                .help(help),
        );
    }

    fn task(&mut self, name: &Spanned<String>) {
        let document = self.document;
        let known = || document.tasks.iter().map(|task| task.name.value.as_str());
        if known().any(|task| task == name.value) || self.lost.may_declare(&name.value) {
            return;
        }
        let mut finding = Diagnostic::new(Code::UnknownTask, name.span)
            .message(format!("there is no task `{}`", name.value))
            .label("no such task")
            .suggest(&name.value, known());
        match &finding.suggestion {
            Some(near) => self.lost.name(near),
            None => finding = finding.help("define it under `tasks`, or import it"),
        }
        self.report(finding);
    }

    /// Items that are written out and do not fit the task's inputs.
    fn bound_items(&mut self, task: &Spanned<String>, items: &'d Tree, dialect: Dialect) {
        let document = self.document;
        let declared = document.tasks.iter().find(|t| t.name.value == task.value);
        let Some(fields) = declared.and_then(|task| task.inputs.as_deref()) else {
            return;
        };
        for item in items.items().unwrap_or_default() {
            let owner = Spanned {
                value: task.value.clone(),
                span: self.line(item.span),
            };
            if let Some(entries) = item.entries() {
                let given = || {
                    let entries = entries.iter();
                    entries.map(|e| (e.key.value.as_str(), e.key.span, &e.value))
                };
                // What an item has beyond the inputs stays with the item, unless it is one of them
                // that was misspelt.
                let is_input = |name: &str| fields.iter().any(|it| it.name.value == name);
                let own = given().filter(|(name, ..)| is_input(name));
                let literal = |tree: &Tree| is_literal(tree, dialect);
                if arguments(own, fields, literal).is_empty() {
                    continue;
                }
                for fault in arguments(given(), fields, literal) {
                    let names = fields.iter().map(|field| field.name.value.as_str());
                    let finding = self.argument(Code::BadLiteral, &fault, &owner, "input", names);
                    self.report(finding);
                }
                continue;
            }
            let mut required = fields.iter().filter(|field| field.required);
            let only = match (required.next(), required.next(), fields) {
                (Some(only), None, _) | (None, _, [only]) => Some(only),
                _ => None,
            };
            if let (Some(only), true) = (only, is_literal(item, dialect)) {
                // Nothing is as good as not given.
                let given = (item.value != Value::Null).then_some((
                    only.name.value.as_str(),
                    item.span,
                    item,
                ));
                for fault in arguments(given.into_iter(), fields, |_| true) {
                    let names = fields.iter().map(|field| field.name.value.as_str());
                    let finding = self.argument(Code::BadLiteral, &fault, &owner, "input", names);
                    self.report(finding);
                }
                continue;
            }
            if is_literal(item, dialect) && !fields.is_empty() {
                self.report(
                    Diagnostic::new(Code::BadLiteral, self.line(item.span))
                        .message(format!(
                            "this item is {}, and `{}` has no single required input to take it",
                            item.noun(),
                            task.value
                        ))
                        .help("write the item as a map of the task's inputs"),
                );
                return;
            }
        }
    }

    fn prompt(&mut self, step: &'d Step<'d>, kind: PromptKind, options: Option<&'d Tree>) {
        let labelled = options.and_then(Tree::items).unwrap_or_default().iter();
        let labelled = labelled.filter(|option| {
            let names = ["label", "title", "name", "text", "description"];
            option.get("value").is_some() && names.iter().any(|name| option.get(name).is_some())
        });
        for option in labelled {
            self.report(
                Diagnostic::new(Code::LabelledOption, self.line(option.span))
                    .message("an option is a value as it is: neither its `value` nor its label chooses it")
                    .label("chosen as this whole map")
                    .help("give the values alone, `options: [a, b]`, and say in `message` what they mean"),
            );
        }
        let empty = options.is_some_and(|tree| tree.items().is_some_and(<[Tree]>::is_empty));
        if kind == PromptKind::Choice && (options.is_none() || empty) {
            let at = options
                .filter(|_| empty)
                .map_or(step.head, |tree| tree.span);
            self.report(
                Diagnostic::new(Code::NoOptions, at)
                    .message(format!(
                        "`{}` asks for a choice and gives no options",
                        step.id.value
                    ))
                    .help("add `options:` with at least one"),
            );
        }
    }

    fn tool(
        &mut self,
        step: &'d Step<'d>,
        tool: &'d Spanned<String>,
        open: bool,
        parameters: &'d [(Spanned<String>, &'d Tree)],
        dialect: Dialect,
    ) {
        let document = self.document;
        let name = tool.value.as_str();
        if let Some(declared) = document.tools.iter().find(|t| t.name.value == name) {
            if let Some(fields) = &declared.params {
                self.declared_parameters(tool, fields, parameters, dialect);
            }
            if declared.idempotent == Some(false) && step.retry.is_some() {
                self.retried(step, name);
            }
            return;
        }
        if let Some(builtin) = tools::find(name) {
            self.builtin_parameters(tool, builtin, parameters, dialect);
            if name == "await_output" && !parameters.iter().any(|(p, _)| p.value == "timeout") {
                self.report(
                    Diagnostic::new(Code::AwaitWithoutTimeout, tool.span)
                        .message("`await_output` without `timeout` gives up after 10 seconds")
                        .help("add `timeout:` in seconds"),
                );
            }
            if !builtin.idempotent && step.retry.is_some() {
                self.retried(step, name);
            }
            if let Some(call) = Called::of(tool, Some(builtin), parameters) {
                self.called(&call, dialect);
            }
            for (name, tree) in parameters {
                if builtin.reader(&name.value) == tools::Reader::Run {
                    self.inline(tree);
                }
            }
            return;
        }
        if open || self.lost.mentions(name) {
            return;
        }
        let known = tools::all().iter().map(|tool| tool.name);
        let declared = document.tools.iter().map(|tool| tool.name.value.as_str());
        let mut finding = Diagnostic::new(Code::UnknownTool, tool.span)
            .message(format!("there is no tool `{name}`"))
            .label("not a tool")
            .suggest(name, known.clone().chain(declared));
        if grammar::step_word(name).is_some() || habit::step(name) == Some("shell") {
            let step = habit::step(name).unwrap_or(name);
            finding.suggestion = None;
            finding = finding.help(match step {
                "shell" => {
                    "a command is `type: shell` with `command:` in place of `tool:`, or in a \
                            terminal `tool: run_command`"
                        .to_owned()
                }
                step => {
                    format!("it is no tool but a type: write `type: {step}` in place of `tool:`")
                }
            });
        } else if finding.suggestion.is_none() {
            let names: Vec<&str> = known.collect();
            finding = finding.help(format!(
                "flow has `{}`; declare others under `tools`",
                names.join("`, `")
            ));
        }
        self.report(finding);
    }

    fn retried(&mut self, step: &'d Step<'d>, tool: &str) {
        self.report(
            Diagnostic::new(Code::RetryNotIdempotent, step.head)
                .message(format!(
                    "`{tool}` is not idempotent, and `{}` repeats it",
                    step.id.value
                ))
                .help(
                    "drop `retry`, or declare the tool `idempotent: true` if repeating is harmless",
                ),
        );
    }

    fn declared_parameters(
        &mut self,
        tool: &Spanned<String>,
        fields: &'d [Field<'d>],
        parameters: &'d [(Spanned<String>, &'d Tree)],
        dialect: Dialect,
    ) {
        let given = parameters
            .iter()
            .map(|(name, tree)| (name.value.as_str(), name.span, *tree));
        let braces = self.document.form == Some(Form::States);
        let literal = |tree: &Tree| is_literal(tree, dialect) && !(braces && has_braces(tree));
        for fault in arguments(given, fields, literal) {
            let names = fields.iter().map(|field| field.name.value.as_str());
            let finding = self.argument(Code::BadParameter, &fault, tool, "parameter", names);
            self.report(finding);
        }
    }

    fn argument<'a>(
        &self,
        code: Code,
        fault: &ArgumentFault,
        owner: &Spanned<String>,
        noun: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> Diagnostic {
        match fault {
            ArgumentFault::Unknown(name, span) => Diagnostic::new(code, *span)
                .message(format!("`{}` has no {noun} `{name}`", owner.value))
                .label(format!("unknown {noun}"))
                .suggest(name, names),
            ArgumentFault::Misfit(fault, span) => {
                let (path, said) = (&fault.path, fault.predicate());
                Diagnostic::new(code, self.line(*span))
                    .message(format!("{noun} `{path}` of `{}`{said}", owner.value))
                    .label(said.trim_start_matches([':', ' ']))
            }
            ArgumentFault::Missing(name) => Diagnostic::new(code, owner.span)
                .message(format!("`{}` needs the {noun} `{name}`", owner.value))
                .label(format!("no `{name}`"))
                .help(format!("add `{name}`")),
        }
    }

    fn builtin_parameters(
        &mut self,
        tool: &Spanned<String>,
        builtin: &'static tools::Tool,
        parameters: &'d [(Spanned<String>, &'d Tree)],
        dialect: Dialect,
    ) {
        let braces = self.document.form == Some(Form::States);
        let values: Vec<Option<serde_json::Value>> = parameters
            .iter()
            .map(|(_, tree)| {
                (is_literal(tree, dialect) && !(braces && has_braces(tree))).then(|| tree.to_json())
            })
            .collect();
        let known: Vec<(&str, tools::Known<'_>)> = parameters
            .iter()
            .zip(&values)
            .map(|((name, _), value)| (name.value.as_str(), value.as_ref()))
            .collect();
        for fault in tools::check_parameters(builtin, &known) {
            let given = parameters
                .iter()
                .find(|(name, _)| name.value == fault.parameter);
            let at = match (given, &fault.kind) {
                (Some((name, _)), tools::FaultKind::Unknown { .. }) => name.span,
                (Some((_, tree)), _) => self.line(descend(tree, &fault.path).span),
                (None, _) => tool.span,
            };
            // Found with the expressions, which know the place inside the pattern.
            if matches!(fault.kind, tools::FaultKind::InvalidPattern { .. }) {
                continue;
            }
            let mut finding =
                Diagnostic::new(Code::BadParameter, at).message(fault.message.clone());
            finding.help = fault.help.clone();
            finding.suggestion = match &fault.kind {
                tools::FaultKind::Unknown { suggestion }
                | tools::FaultKind::NotOneOf { suggestion, .. } => suggestion.clone(),
                tools::FaultKind::NotAKey { suggestion, .. } => {
                    suggestion.map(|key| key.to_string())
                }
                _ => None,
            };
            self.report(finding);
        }
    }

    fn call(
        &mut self,
        workflow: &'d Tree,
        inputs: &'d [(Spanned<String>, &'d Tree)],
        dialect: Dialect,
        shares_computed: bool,
    ) {
        let call = Called {
            workflow,
            inputs: Some(inputs.to_vec()),
            variables: Some(Vec::new()),
        };
        self.called(&call, dialect);
        if shares_computed
            && let Some(name) = workflow.as_str().filter(|_| is_literal(workflow, dialect))
            && let Lookup::Found(source) = self.loader.workflow(name)
            && let Ok(tree) = source::parse(&source, FileId(0))
        {
            let called = read::document(&tree, Dialect::Jinja, source.stem());
            self.included(name, &called, workflow.span);
        }
    }

    /// Computed fields of an included workflow that have the name of a field here.
    fn included(&mut self, called: &str, included: &Document<'_>, at: Span) {
        let spaces = spaces(self.document);
        for field in &included.computed {
            let name = field.name.value.as_str();
            // The same field, where the file is imported as well.
            let rule = |field: &Computed<'_>| {
                let written = field.transform.or(field.value);
                written.and_then(Tree::as_str).map(str::to_owned)
            };
            let mut own = self.document.computed.iter();
            let is_same =
                own.any(|own| own.imported && own.name.value == name && rule(own) == rule(field));
            if !spaces[0].fields.contains_key(name) || is_same {
                continue;
            }
            let mut state = self.document.state.iter().map(|field| &field.name);
            let mut own = self.document.computed.iter().map(|field| &field.name);
            // What nothing declares is the included field from then on, and that is read-only.
            let found = match state.any(|it| it.value == name) || own.any(|it| it.value == name) {
                true => "there is a field of that name here: reading it finds the one here",
                false => {
                    "a step here writes a field of that name, which `state` does not declare: once it is included, writing it fails"
                }
            };
            self.report(
                Diagnostic::new(Code::ShadowedTier, at)
                    .message(format!("`{called}` computes `{name}`, and {found}"))
                    .help("give one of them another name"),
            );
        }
    }

    /// A workflow called by a name that is known now.
    fn called(&mut self, call: &Called<'d>, dialect: Dialect) {
        let workflow = call.workflow;
        let Some(name) = self.called_by(workflow, dialect) else {
            return;
        };
        let source = match self.loader.workflow(name) {
            Lookup::Found(source) => source,
            Lookup::Unknown => return,
            Lookup::NotFound(known) => {
                let mut finding = Diagnostic::new(Code::UnknownWorkflow, workflow.span)
                    .message(format!("no workflow `{name}` is known yet"))
                    .suggest(name, known.iter().map(String::as_str));
                if finding.suggestion.is_none() {
                    finding = finding.help("it must exist when the step runs");
                }
                self.report(finding);
                return;
            }
        };
        // Only the declared inputs matter here; the called definition is checked on its own.
        let Ok(tree) = source::parse(&source, FileId(0)) else {
            return;
        };
        let called = read::document(&tree, Dialect::Jinja, source.stem());
        let (Some(declared), Some(inputs)) = (called.inputs, &call.inputs) else {
            return;
        };
        let owner = Spanned {
            value: name.to_owned(),
            span: workflow.span,
        };
        let given = inputs
            .iter()
            .map(|(name, tree)| (name.value.as_str(), name.span, *tree));
        let braces = self.document.form == Some(Form::States);
        let literal = |tree: &Tree| is_literal(tree, dialect) && !(braces && has_braces(tree));
        for fault in arguments(given, &declared, literal) {
            // Variables fill the inputs that are named like them.
            let is_filled = match (&fault, &call.variables) {
                (ArgumentFault::Missing(name), Some(names)) => names.contains(&name.as_str()),
                (ArgumentFault::Missing(_), None) => true,
                (ArgumentFault::Unknown(..) | ArgumentFault::Misfit(..), _) => false,
            };
            if is_filled {
                continue;
            }
            let names = declared.iter().map(|field| field.name.value.as_str());
            let finding = self.argument(Code::BadCallInput, &fault, &owner, "input", names);
            self.report(finding);
        }
    }

    /// The name of another workflow, when it is written out.
    pub(super) fn called_by(&self, workflow: &'d Tree, dialect: Dialect) -> Option<&'d str> {
        let name = workflow
            .as_str()
            .filter(|_| is_literal(workflow, dialect))?;
        (name != self.document.name.value).then_some(name)
    }

    /// The inputs that a workflow declares which can be looked up by its name.
    pub(super) fn inputs_of(&self, name: &str) -> Option<Vec<graph::Field>> {
        let Lookup::Found(source) = self.loader.workflow(name) else {
            return None;
        };
        let tree = source::parse(&source, FileId(0)).ok()?;
        let called = read::document(&tree, Dialect::Jinja, source.stem());
        let declared = called.inputs?;
        Some(declared.iter().map(lower::field).collect())
    }

    /// A workflow that is written out where it is called is checked where it stands.
    fn inline(&mut self, tree: &'d Tree) {
        let Some(source) = self.source(tree.span).filter(|_| tree.entries().is_some()) else {
            return;
        };
        let mut found = structure::check(source, tree);
        let dialect = match (read::named_dialect(tree), found.speaks_js) {
            (Some(named), _) => named,
            (None, true) => Dialect::Js,
            (None, false) => Dialect::Jinja,
        };
        // What it imports is found where it runs.
        if !read::imports(tree).is_empty() {
            found.lost.import();
        }
        let mut findings = found.findings;
        if structure::unwrap_document(tree).entries().is_some() && !found.oversized {
            let document = read::document(tree, dialect, INLINE);
            let (sources, loader) = (self.sources, self.loader);
            let trees = std::slice::from_ref(tree);
            let (more, _) = super::check(&document, trees, sources, &mut found.lost, loader);
            findings.extend(more);
            if document.strict {
                for finding in &mut findings {
                    finding.complete();
                    finding.severity = Severity::Error;
                }
            }
        }
        self.findings.extend(findings);
    }

    /// Literals that look like secrets, anywhere in the definition.
    fn secrets(&mut self, tree: &'d Tree, key: &str) {
        match &tree.value {
            Value::Str(scalar) => {
                if let Some(range) = secret(&scalar.text, key) {
                    let at = self.within(tree, &range);
                    self.report(
                        Diagnostic::new(Code::SecretLiteral, at)
                            .message(
                                "this looks like a secret, and definitions are stored and shown",
                            )
                            .label("a secret?")
                            .help("declare an input with `secret: true` and pass it in"),
                    );
                }
            }
            Value::List(items) => {
                for item in items {
                    self.secrets(item, key);
                }
            }
            Value::Map(entries) => {
                for entry in entries {
                    // A default or a value is named by what it belongs to.
                    let own = match entry.key.value.as_str() {
                        "default" | "value" => key,
                        own => own,
                    };
                    self.secrets(&entry.value, own);
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        }
    }
}

fn has_braces(tree: &Tree) -> bool {
    match &tree.value {
        Value::Str(scalar) => !crate::expression::braced(&scalar.text).is_empty(),
        Value::List(items) => items.iter().any(has_braces),
        Value::Map(entries) => entries.iter().any(|entry| has_braces(&entry.value)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}

/// The value at a path below another, as far as it goes.
fn descend<'t>(tree: &'t Tree, path: &[tools::Segment]) -> &'t Tree {
    let mut here = tree;
    for segment in path {
        let next = match segment {
            tools::Segment::Key(key) => here.get(key),
            tools::Segment::Index(index) => here.items().and_then(|items| items.get(*index)),
        };
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    here
}

/// The part of a text that looks like a secret.
fn secret(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    static TOKEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?x)
            (?-u:\b)(?: gh[pousr]_[A-Za-z0-9]{36,} | github_pat_[A-Za-z0-9_]{40,} | glpat-[A-Za-z0-9_-]{20,}
              | sk-(?:[a-z]+-)*[A-Za-z0-9_-]{24,} | AKIA[0-9A-Z]{16}(?-u:\b) | xox[abprs]-[A-Za-z0-9-]{16,}
              | AIza[0-9A-Za-z_-]{35} | eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,} )
            | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----",
        )
        .ok()
    });
    #[rustfmt::skip]
    const NAMES: &[&str] = &[
        "password", "passwd", "secret", "token", "api_key", "apikey", "private_key", "privatekey",
        "access_key", "accesskey",
    ];
    // The expression is large: it is not even compiled as long as no text can match it.
    const MARKS: &[&str] = &[
        "gh",
        "glpat-",
        "sk-",
        "AKIA",
        "xox",
        "AIza",
        "eyJ",
        "-----BEGIN",
    ];
    if text.len() >= 20
        && MARKS.iter().any(|mark| text.contains(mark))
        && let Some(found) = TOKEN.as_ref().and_then(|token| token.find(text))
    {
        return Some(found.range());
    }
    let named = || {
        let key = key.to_ascii_lowercase();
        let word = NAMES.iter().find_map(|name| key.strip_suffix(name));
        word.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    };
    let plain = text.len() >= 8
        && !text.contains(char::is_whitespace)
        && !text.contains(['{', '$', '<', '*'])
        && text.chars().any(|c| c.is_ascii_digit());
    (plain && named()).then_some(0..text.len())
}
