//! What a node wants done: rendering it, handing it out, waiting for its turn.

use std::sync::Arc;

use flow_model::graph::{
    CallAnswer, CallTarget, Kind, Node, OutputFormat, PromptKind, Shell, Template, ToolRef, Type,
};

use super::effect::{Action, Deed, Effect};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{FrameId, Waits};
use super::machine::{Extras, Machine};
use super::parameter;
use super::time::after;
use crate::input;
use crate::secret::{self, Piece};
use crate::value::Value;

/// Actions that may be under way at once; further ones wait for their turn.
const MAX_UNDER_WAY: u64 = 50;
/// Bytes of each stream of a command that its result holds.
pub(crate) const SHELL_RESULT_BYTES: usize = 1 << 20;
/// Seconds an action may take when its step does not say.
const DEFAULT_TIMEOUT: f64 = 30.0;
/// Milliseconds that an agent may take for a task, once it has begun, when the step does not say.
pub(crate) const AGENT_TIMEOUT: u64 = 300_000;

/// A parameter of a call that does not fit.
fn unfit(parameter: &str, reason: &str) -> Failure {
    Failure::new(FailureKind::Validation, format!("`{parameter}` {reason}"))
}

impl<'r> Machine<'r> {
    /// A parameter of a call; a text is read as its type, since variables may all be texts.
    fn limit(
        &mut self,
        id: FrameId,
        node: &'r Node,
        parameter: &str,
        template: &'r Option<Template>,
        ty: Type,
    ) -> Result<Option<Value>, Failure> {
        let Some(template) = template else {
            return Ok(None);
        };
        match self.render(id, node, template, Extras::default())? {
            Value::Null => Ok(None),
            Value::Str(text) => match input::parse(ty, text.trim()) {
                Ok(value) => Ok(Some(value)),
                Err(reason) => Err(unfit(parameter, &reason)),
            },
            value => Ok(Some(value)),
        }
    }

    /// Values by name of a call.
    fn by_name(
        &mut self,
        id: FrameId,
        node: &'r Node,
        parameter: &str,
        template: &'r Template,
    ) -> Result<Value, Failure> {
        match self.render(id, node, template, Extras::default())? {
            Value::Null => Ok(Value::map::<&str>([])),
            map @ Value::Map(_) => Ok(map),
            Value::Str(text) => {
                let read = input::parse(Type::Object, text.trim());
                read.map_err(|reason| unfit(parameter, &reason))
            }
            other => {
                let reason = format!("must be a map of names to values, not {}", other.noun());
                Err(unfit(parameter, &reason))
            }
        }
    }

    pub(super) fn deed(&mut self, id: FrameId, node: &'r Node) -> Result<Deed, Failure> {
        match &node.kind {
            Kind::Shell(shell) => {
                let command =
                    self.evaluate(id, Some(node), Extras::default(), |evaluator, view| {
                        evaluator.command(&shell.command, view)
                    })?;
                let mut env = Vec::with_capacity(shell.env.len());
                for (name, value) in shell.env.iter() {
                    env.push((name.to_string(), self.text(id, node, value)?));
                }
                let command = named_secrets(command, &mut env);
                let texts = env.iter().map(|(name, value)| (Some(name), value));
                for (name, text) in [(None, &command)].into_iter().chain(texts) {
                    if text.contains('\0') {
                        let place = match name {
                            None => "the command".to_owned(),
                            Some(name) => format!("`{name}` of `env`"),
                        };
                        let message = format!(
                            "{place} contains a NUL byte, which no command can be given; take it out, \
                             for example with `replace`"
                        );
                        return Err(Failure::new(FailureKind::Action, message).at(&node.id));
                    }
                }
                Ok(Deed::Shell {
                    command,
                    env,
                    working_directory: self.optional_text(
                        id,
                        node,
                        shell.working_directory.as_ref(),
                    )?,
                    by: shell.by,
                    output: shell.output,
                    reason: self.optional_text(id, node, shell.reason.as_ref())?,
                })
            }
            Kind::Tool { tool, parameters } => {
                let given = self.render(id, node, parameters, Extras::default())?;
                let (tool, builtin, mut parameters) = match tool {
                    ToolRef::Builtin(name) => {
                        let parameters = match flow_model::tools::find(name) {
                            Some(tool) => parameter::fitted(tool, given),
                            None => given,
                        };
                        (name.to_string(), true, parameters)
                    }
                    ToolRef::Host(name) => (name.to_string(), false, given),
                    ToolRef::Declared(index) => {
                        let signature = self.graph.tools.get(usize::from(*index));
                        let name = signature.map_or(String::new(), |it| it.name.to_string());
                        let fields = signature.and_then(|it| it.params.as_deref());
                        let fields = fields.unwrap_or_default();
                        (name, false, parameter::declared(fields, given))
                    }
                };
                if builtin {
                    self.inject_session(id, &tool, &mut parameters);
                }
                Ok(Deed::Tool {
                    tool,
                    builtin,
                    parameters,
                })
            }
            Kind::Prompt(prompt) => {
                let options = match &prompt.options {
                    None => Vec::new(),
                    Some(options) => match self.render(id, node, options, Extras::default())? {
                        Value::List(list) => list.0.clone(),
                        other => {
                            let message = format!("`options` is {}, not a list", other.noun());
                            return Err(Failure::new(FailureKind::Expression, message));
                        }
                    },
                };
                if prompt.kind == PromptKind::Choice && options.is_empty() {
                    let message = "there is nothing to choose from: `options` is empty";
                    return Err(Failure::new(FailureKind::Expression, message));
                }
                Ok(Deed::Prompt {
                    message: self.text(id, node, &prompt.message)?,
                    kind: prompt.kind,
                    options,
                })
            }
            Kind::Delegate {
                instructions,
                agent,
                returns,
            } => Ok(Deed::Delegate {
                instructions: self.text(id, node, instructions)?,
                agent: agent.as_ref().map(ToString::to_string),
                returns: returns.as_ref().map(Value::from),
                complaint: None,
            }),
            Kind::Call(call) => {
                let (workflow, definition) = match &call.target {
                    CallTarget::Name(name) => (Some(self.text(id, node, name)?), None),
                    CallTarget::Definition(definition) => {
                        let value = self.render(id, node, definition, Extras::default())?;
                        (None, Some(value))
                    }
                };
                let inputs = self.by_name(id, node, "inputs", &call.inputs)?;
                let variables = self.by_name(id, node, "initial_variables", &call.variables)?;
                let depth = self.data.start.depth + 1;
                // What a caller allows holds for everything below it.
                let own = self.graph.limits.max_depth;
                let allowed = self
                    .data
                    .start
                    .max_depth
                    .map_or(own, |above| own.min(above.into()));
                if depth > allowed {
                    return Err(Failure::new(
                        FailureKind::Limit,
                        format!("workflows call each other more than {allowed} deep"),
                    ));
                }
                self.data.deepest = self.data.deepest.max(depth);
                let named = self.optional_text(id, node, call.session.as_ref())?;
                let names_session = named.is_some();
                let session = named.or_else(|| self.session(id).map(str::to_owned));
                let max_states =
                    match self.limit(id, node, "max_states", &call.max_states, Type::Integer)? {
                        None => None,
                        Some(Value::Int(states @ 1..=1000)) => Some(states.unsigned_abs()),
                        Some(_) => {
                            return Err(unfit(
                                "max_states",
                                "must be a whole number from 1 to 1000",
                            ));
                        }
                    };
                let (key, seconds) = ("execution_timeout", &call.execution_timeout);
                let execution_timeout = match self.limit(id, node, key, seconds, Type::Number)? {
                    None => None,
                    Some(Value::Int(seconds @ 1..=7200)) => Some(seconds as f64),
                    Some(Value::Float(seconds)) if (1.0..=7200.0).contains(&seconds) => {
                        Some(seconds)
                    }
                    Some(_) => return Err(unfit(key, "must be from 1 to 7200 seconds")),
                };
                let (key, save) = ("save_on_success", &call.save_on_success);
                let save_on_success = match self.limit(id, node, key, save, Type::Boolean)? {
                    None => None,
                    Some(Value::Bool(save)) => Some(save),
                    Some(_) => return Err(unfit(key, "must be true or false")),
                };
                Ok(Deed::Call {
                    workflow,
                    definition,
                    inputs,
                    variables,
                    session,
                    names_session,
                    max_states,
                    execution_timeout,
                    save_on_success,
                    depth,
                    max_depth: u8::try_from(allowed).ok(),
                    response: call.answer == CallAnswer::Response,
                    goes_on: false,
                })
            }
            Kind::Condition { .. }
            | Kind::While { .. }
            | Kind::Loop { .. }
            | Kind::FanOut(_)
            | Kind::Jump(_)
            | Kind::Goto { .. }
            | Kind::Return { .. }
            | Kind::SetState
            | Kind::Wait { .. } => Err(Failure::new(
                FailureKind::Action,
                format!("`{}` is no action", node.id),
            )),
        }
    }

    /// `session_id` of a terminal tool that does not name one.
    pub(super) fn inject_session(&self, id: FrameId, tool: &str, parameters: &mut Value) {
        let takes = flow_model::tools::find(tool).is_some_and(|tool| tool.takes_session());
        let frame = self.data.frames.get(&id);
        let session = match tool {
            "exit_terminal" => self.data.own_session(frame),
            _ => self.data.session_at_hand(frame),
        };
        if let (true, Some(session), Value::Map(map)) = (takes, session, parameters)
            && map
                .0
                .get("session_id")
                .is_none_or(|given| *given == Value::Null)
        {
            Arc::make_mut(map)
                .0
                .insert(Arc::from("session_id"), Value::text(session));
        }
    }

    pub(super) fn action(&mut self, id: FrameId, node: &Node, deed: Deed) -> Action {
        let action = self.next_action();
        Action {
            id: action,
            key: self.key(action),
            frame: id,
            node: node.id.to_string(),
            within: self.within(id, &node.id),
            attempt: 1,
            deadline: seconds_for(node, &deed).map(|seconds| after(self.at, seconds)),
            what: deed,
        }
    }

    /// What repeated work of an action is recognised by.
    pub(super) fn key(&self, action: ActionId) -> String {
        format!("{}-{}", self.data.start.run, action.0)
    }

    /// Hands an action out, or lets it wait for its turn.
    pub(super) fn dispatch(&mut self, id: FrameId, node: u16, action: Action) {
        self.remember_first(id, &action.node, action.id);
        if let Some(node) = self.node(id, node) {
            self.remember_call(&action, node);
        }
        self.data.waiting.insert(action.id, id);
        if self.data.under_way >= MAX_UNDER_WAY {
            self.data.queue.push_back(id);
            self.wait(id, node, Waits::Turn(Box::new(action)));
            return;
        }
        self.data.under_way += 1;
        self.effects.push(Effect::Act(action.clone()));
        self.wait(id, node, Waits::Action(Box::new(action)));
    }

    /// An action has ended; the next one in line may begin.
    pub(super) fn release(&mut self) {
        self.data.under_way = self.data.under_way.saturating_sub(1);
        while self.data.under_way < MAX_UNDER_WAY {
            let Some(id) = self.data.queue.pop_front() else {
                return;
            };
            let Some(frame) = self.data.frames.get_mut(&id) else {
                continue;
            };
            let Some(step) = &mut frame.step else {
                continue;
            };
            if let Waits::Turn(action) = &mut step.waits {
                let mut action = action.clone();
                // The time in line is not the action's.
                let late = self.at.saturating_sub(step.since);
                action.deadline = action.deadline.map(|it| it.saturating_add(late));
                step.waits = Waits::Action(action.clone());
                step.since = self.at;
                self.data.under_way += 1;
                self.effects.push(Effect::Act(*action));
            }
        }
    }
}

/// A command with numbered variables for the secrets in it, which the environment then has.
fn named_secrets(command: String, env: &mut Vec<(String, String)>) -> String {
    if !secret::concerns(&command) {
        return command;
    }
    let mut named = String::with_capacity(command.len());
    let mut known: Vec<&str> = Vec::new();
    for piece in secret::pieces(&command) {
        match piece {
            Piece::Text(text) => named.push_str(text),
            Piece::Broken => {}
            Piece::Secret(place) => {
                let at = known.iter().position(|text| *text == place.text);
                let at = at.unwrap_or_else(|| {
                    known.push(place.text);
                    known.len() - 1
                });
                named.push_str(&format!("FLOW_SECRET_{}", at + 1));
            }
        }
    }
    let secrets = known.into_iter().enumerate();
    env.extend(secrets.map(|(at, text)| (format!("FLOW_SECRET_{}", at + 1), text.to_owned())));
    named
}

/// How long an attempt may take. Somebody who is waited for has no limit that the step does not
/// state; an agent that works has one of its own, see [`AGENT_TIMEOUT`].
pub(super) fn seconds_for(node: &Node, deed: &Deed) -> Option<f64> {
    match deed {
        Deed::Shell { .. } => Some(node.timeout.unwrap_or(DEFAULT_TIMEOUT)),
        Deed::Tool { tool, .. } => {
            let own = flow_model::tools::find(tool).is_some_and(|tool| tool.times_itself);
            node.timeout.or((!own).then_some(DEFAULT_TIMEOUT))
        }
        Deed::Delegate { .. }
        | Deed::DelegateItem { .. }
        | Deed::Prompt { .. }
        | Deed::Call { .. } => node.timeout,
        // The limit of a state is that of its action.
        Deed::Judge { .. } | Deed::Environment { .. } => None,
    }
}

/// What a command's result means: its value by format, or why it failed.
pub(super) fn shell_result(node: &Node, shell: &Shell, result: &Value) -> Result<Value, Failure> {
    let output = shell.output;
    let exit = match result.get("exit_code") {
        Some(Value::Int(code)) => *code,
        _ => 0,
    };
    let captured = node.writes.iter().any(|write| write.value.is_none());
    let handled = shell.exit_fails || node.retry.is_some();
    let is_data = output == OutputFormat::Result && captured && !handled;
    if exit != 0 && !is_data {
        // Most programs say what is wrong where errors belong; the others say it last.
        let said = ["stderr", "stdout"].into_iter().find_map(|stream| {
            let text = result.get(stream).and_then(Value::as_str)?;
            text.lines().rev().find(|line| !line.trim().is_empty())
        });
        let said = said
            .map(|line| format!(": {}", line.trim()))
            .unwrap_or_default();
        let message = format!(
            "the command of `{}` ended with exit code {exit}{said}",
            node.id
        );
        return Err(Failure::new(FailureKind::Action, message));
    }
    let stdout = result
        .get("stdout")
        .and_then(Value::as_str)
        .unwrap_or_default();
    whole_output(node, output, result)?;
    let trimmed = stdout.strip_suffix('\n').unwrap_or(stdout);
    Ok(match output {
        OutputFormat::Result => result.clone(),
        OutputFormat::Text => Value::text(trimmed),
        OutputFormat::Lines => Value::list(stdout.lines().map(Value::text)),
        OutputFormat::Json => match serde_json::from_str::<Value>(stdout) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("the output of `{}` is not JSON: {error}", node.id);
                return Err(Failure::new(FailureKind::Action, message));
            }
        },
        OutputFormat::KeyValue => Value::map(trimmed.lines().filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            Some((key.trim(), Value::text(value.trim())))
        })),
    })
}

/// The result of a command with at most so many bytes of each stream, which says what is missing.
pub(super) fn cut_result(result: &Value, most: usize) -> Value {
    let Value::Map(fields) = result else {
        return result.clone();
    };
    let mut fields = (**fields).clone();
    let before = |stream: &str| match result.get("dropped").and_then(|it| it.get(stream)) {
        Some(Value::Int(dropped)) => *dropped,
        _ => 0,
    };
    let mut dropped = [("stdout", before("stdout")), ("stderr", before("stderr"))];
    for (stream, dropped) in &mut dropped {
        let Some(text) = result.get(stream).and_then(Value::as_str) else {
            continue;
        };
        let mut end = most.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        *dropped += i64::try_from(text.len() - end).unwrap_or(i64::MAX);
        fields
            .0
            .insert(Arc::from(*stream), Value::text(&text[..end]));
    }
    let dropped = dropped.map(|(stream, dropped)| (stream, Value::Int(dropped)));
    fields.0.insert(Arc::from("truncated"), Value::Bool(true));
    fields.0.insert(Arc::from("dropped"), Value::map(dropped));
    Value::Map(fields.into())
}

/// Output that was cut is no value: only the whole result can say that it was.
fn whole_output(node: &Node, output: OutputFormat, result: &Value) -> Result<(), Failure> {
    let dropped = result.get("dropped").and_then(|it| it.get("stdout"));
    match (output, dropped) {
        (OutputFormat::Result, _) | (_, None | Some(Value::Int(0))) => Ok(()),
        (_, Some(dropped)) => {
            let message = format!(
                "the command of `{}` wrote {dropped} bytes more than the {SHELL_RESULT_BYTES} that \
                 a value holds; let it write to a file or write less, or take what fits with \
                 `output_format: result`, which says `truncated`",
                node.id
            );
            Err(Failure::new(FailureKind::Limit, message))
        }
    }
}
