//! One event at a time: frames advance from node to node until all of them wait.

use std::sync::Arc;

use flow_model::graph::{
    Body, CallAnswer, CallTarget, Condition, Edge, ErrorAction, Expression, Form, Graph, Guard,
    Jump, Kind, Node, Operation, Outcome, OutputFormat, Target, Template, ToolRef, Write,
};

use super::computed::{Dependents, Moment, recompute};
use super::data::Data;
use super::effect::{Action, Deed, Effect, Ending, Finish, Place, Status};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{BodyRef, Frame, FrameId, Loop, ROOT, Settled, Step, Waits};
use super::state::Change;
use super::view::{Evaluator, View};
use crate::value::Value;

/// Actions that may be under way at once; further ones wait for their turn.
pub(super) const MAX_UNDER_WAY: u64 = 50;
/// Nodes executed without waiting before the run gives way.
const STRETCH: u64 = 10_000;
/// Seconds an action may take when its step does not say.
const DEFAULT_TIMEOUT: f64 = 30.0;
/// The same for a task handed to an agent.
const DELEGATE_TIMEOUT: f64 = 300.0;

/// A run while an event is applied to it.
pub(super) struct Machine<'r> {
    pub(super) graph: &'r Graph,
    pub(super) dependents: &'r Dependents,
    pub(super) evaluator: &'r dyn Evaluator,
    pub(super) data: &'r mut Data,
    pub(super) effects: Vec<Effect>,
    pub(super) at: u64,
    /// Nodes executed because of this event.
    pub(super) stretch: u64,
}

/// Where a frame goes after a node.
pub(super) enum Next {
    /// To another node, or to the end.
    Go(Target),
    /// Nowhere: it waits.
    Wait,
    /// Nowhere: it is over.
    Over,
}

/// What evaluating for a node may use besides the frame.
#[derive(Clone, Copy, Default)]
pub(super) struct Extras<'e> {
    pub(super) error: Option<&'e Value>,
    pub(super) result: Option<&'e Value>,
    pub(super) locals: &'e [(String, Value)],
}

impl<'r> Machine<'r> {
    pub(super) fn body(&self, body: BodyRef) -> &'r Body {
        match body {
            BodyRef::Main => &self.graph.body,
            BodyRef::OnError => &self.graph.on_error.body,
            BodyRef::Task(task) => self
                .graph
                .tasks
                .get(usize::from(task))
                .map_or(&Body::EMPTY, |task| &task.body),
            BodyRef::Cleanup(task) => self
                .graph
                .tasks
                .get(usize::from(task))
                .and_then(|task| task.on_error.as_ref())
                .map_or(&Body::EMPTY, |on_error| &on_error.body),
        }
    }

    pub(super) fn node(&self, frame: FrameId, node: u16) -> Option<&'r Node> {
        let body = self.data.frames.get(&frame)?.body;
        self.body(body).nodes.get(usize::from(node))
    }

    fn place(&self, frame: FrameId, node: &Node) -> Place {
        Place {
            frame,
            node: node.id.to_string(),
        }
    }

    pub(super) fn next_action(&mut self) -> ActionId {
        self.data.next_action += 1;
        ActionId(self.data.next_action)
    }

    /// Lets every frame that can go on do so.
    pub(super) fn pump(&mut self) {
        while self.data.status == Status::Running {
            if self.stretch >= STRETCH && !self.data.ready.is_empty() {
                self.effects.push(Effect::Yield);
                return;
            }
            let Some(frame) = self.data.ready.pop_front() else {
                return;
            };
            self.advance(frame);
        }
    }

    fn advance(&mut self, id: FrameId) {
        while self.data.status == Status::Running {
            let Some(frame) = self.data.frames.get(&id) else {
                return;
            };
            let node = match frame.at {
                Target::Node(node) => node,
                Target::Complete => {
                    self.complete(id, None);
                    return;
                }
            };
            if self.stretch >= STRETCH {
                self.data.ready.push_front(id);
                return;
            }
            match self.enter(id, node) {
                Next::Go(to) => self.go(id, node, to),
                Next::Wait | Next::Over => return,
            }
        }
    }

    /// Moves a frame to its next node; loops that do not surround it are over.
    pub(super) fn go(&mut self, id: FrameId, from: u16, to: Target) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        let body = self.body(frame.body);
        let restarts = body
            .nodes
            .get(usize::from(from))
            .is_some_and(|node| matches!(node.kind, Kind::Goto { .. }));
        let mut around: Vec<u16> = match to {
            Target::Complete => Vec::new(),
            Target::Node(node) => body.loops_around(node).collect(),
        };
        around.reverse();
        // Reaching a loop's head from its body is the next iteration, unless a `goto` leads there.
        if let Target::Node(node) = to
            && !restarts
            && body
                .nodes
                .get(usize::from(node))
                .is_some_and(|n| n.kind.is_loop())
        {
            around.push(node);
        }
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return;
        };
        let keep = frame
            .loops
            .iter()
            .zip(&around)
            .take_while(|(inner, node)| inner.node == **node)
            .count();
        frame.loops.truncate(keep);
        frame.at = to;
        frame.step = None;
        if id == ROOT
            && let Target::Node(node) = to
        {
            let id = body.nodes.get(usize::from(node)).map(|n| n.id.to_string());
            self.data.last_node = id.or(self.data.last_node.take());
        }
    }

    /// Executes a node.
    fn enter(&mut self, id: FrameId, index: u16) -> Next {
        let Some(node) = self.node(id, index) else {
            return self.fail_frame(
                id,
                Failure::new(FailureKind::Action, "the step does not exist"),
            );
        };
        self.stretch += 1;
        let again = self
            .data
            .frames
            .get(&id)
            .and_then(|frame| frame.loops.last())
            .is_some_and(|inner| inner.node == index);
        if !again {
            self.data.steps += 1;
            let limit = self
                .data
                .start
                .max_steps
                .unwrap_or(self.graph.limits.max_steps);
            if self.data.steps > limit {
                let noun = match self.graph.form {
                    Form::States => "states",
                    Form::Steps => "steps",
                };
                let message = format!(
                    "{limit} {noun} have been executed and the run is not over; raise `limits.max_steps` if it is meant to go on"
                );
                let failure = Failure::new(FailureKind::Limit, message).at(&node.id);
                return self.fail_frame(id, failure);
            }
            self.effects.push(Effect::Entered(self.place(id, node)));
        }
        if let Some(when) = &node.when
            && !again
        {
            match self.test(id, node, when, Extras::default()) {
                Ok(true) => {}
                Ok(false) => return self.skip(id, node),
                Err(failure) => return self.failed(id, index, failure, Value::Null),
            }
        }
        match self.begin(id, index, node) {
            Ok(next) => next,
            Err(failure) => self.failed(id, index, failure, Value::Null),
        }
    }

    fn skip(&mut self, id: FrameId, node: &'r Node) -> Next {
        let to = node.next(Outcome::Skip).unwrap_or(Target::Complete);
        self.left(id, node, Ending::Skipped, to);
        Next::Go(to)
    }

    fn left(&mut self, id: FrameId, node: &Node, outcome: Ending, to: Target) {
        let next = match (to, self.data.frames.get(&id)) {
            (Target::Node(next), Some(frame)) => self
                .body(frame.body)
                .nodes
                .get(usize::from(next))
                .map(|node| node.id.to_string()),
            _ => None,
        };
        let place = self.place(id, node);
        self.effects.push(Effect::Left {
            place,
            outcome,
            next,
        });
    }

    /// Does what a node does, or starts it.
    fn begin(&mut self, id: FrameId, index: u16, node: &'r Node) -> Result<Next, Failure> {
        match &node.kind {
            Kind::Condition { test } => {
                let holds = self.test(id, node, test, Extras::default())?;
                Ok(self.take(id, node, if holds { Outcome::Then } else { Outcome::Else }))
            }
            Kind::While { test, bound } => {
                let count = self.iteration(id, index, None);
                if count >= u64::from(bound.times) {
                    return self.bound_reached(id, node, bound.explicit, bound.times);
                }
                let holds = self.test(id, node, test, Extras::default())?;
                Ok(self.iterate(id, node, holds))
            }
            Kind::Loop { items } => {
                let fresh = self.current_loop(id, index).is_none();
                let items = if fresh {
                    Some(self.items(id, node, items)?)
                } else {
                    None
                };
                let at = self.iteration(id, index, items);
                let length = self.current_loop(id, index).and_then(|inner| {
                    inner
                        .items
                        .as_ref()
                        .and_then(Value::as_list)
                        .map(<[Value]>::len)
                });
                Ok(self.iterate(id, node, at < length.unwrap_or(0) as u64))
            }
            Kind::Jump(Jump::Break | Jump::Continue) => Ok(self.take(id, node, Outcome::Success)),
            Kind::Goto { bound } => {
                let frame = self.data.frames.get_mut(&id);
                let Some(count) = frame.map(|frame| frame.jumps.entry(index).or_insert(0)) else {
                    return Ok(Next::Over);
                };
                let jumps = *count < bound.times;
                *count += u32::from(jumps);
                Ok(self.take(id, node, if jumps { Outcome::Body } else { Outcome::Done }))
            }
            Kind::Return { value } => {
                let value = match value {
                    Some(value) => self.render(id, node, value, Extras::default())?,
                    None => Value::Null,
                };
                self.left(id, node, Ending::Success, Target::Complete);
                self.complete(id, Some(value));
                Ok(Next::Over)
            }
            Kind::SetState => self.settle_success(id, index, Value::Null),
            Kind::FanOut(fan) => self.fan_out(id, index, node, fan),
            Kind::Wait { seconds, .. } => {
                let seconds = match self.render(id, node, seconds, Extras::default())? {
                    Value::Int(seconds) if seconds >= 0 => seconds as f64,
                    Value::Float(seconds) if seconds >= 0.0 => seconds,
                    other => {
                        let message =
                            format!("`duration_seconds` is {other}, not a number of seconds");
                        return Err(Failure::new(FailureKind::Expression, message));
                    }
                };
                let timer = self.next_action();
                let until = self.at + (seconds * 1000.0) as u64;
                self.data.waiting.insert(timer, id);
                self.effects.push(Effect::Sleep { timer, until });
                self.wait(id, index, Waits::Time { timer, seconds });
                Ok(Next::Wait)
            }
            Kind::Call(_)
            | Kind::Shell(_)
            | Kind::Tool { .. }
            | Kind::Prompt(_)
            | Kind::Delegate { .. } => {
                let deed = self.deed(id, node)?;
                let action = self.action(id, node, deed);
                self.dispatch(id, index, action);
                Ok(Next::Wait)
            }
        }
    }

    pub(super) fn wait(&mut self, id: FrameId, node: u16, waits: Waits) {
        let since = self.at;
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.step = Some(Step { node, since, waits });
        }
    }

    /// Follows the edge of an outcome that needs no result.
    fn take(&mut self, id: FrameId, node: &'r Node, outcome: Outcome) -> Next {
        let Some(to) = node.next(outcome) else {
            let message = format!("`{}` leads nowhere", node.id);
            let failure = Failure::new(FailureKind::NoTransition, message).at(&node.id);
            return self.fail_frame(id, failure);
        };
        self.left(id, node, Ending::Success, to);
        Next::Go(to)
    }

    fn current_loop(&self, id: FrameId, node: u16) -> Option<&Loop> {
        let last = self.data.frames.get(&id)?.loops.last()?;
        (last.node == node).then_some(last)
    }

    /// Starts a loop, or goes on to its next iteration; says which one that is.
    fn iteration(&mut self, id: FrameId, node: u16, items: Option<Value>) -> u64 {
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return 0;
        };
        match frame.loops.last_mut() {
            Some(inner) if inner.node == node => {
                inner.index += 1;
                inner.index
            }
            _ => {
                frame.loops.push(Loop {
                    node,
                    index: 0,
                    items,
                });
                0
            }
        }
    }

    /// Into the loop's body, or past the loop.
    fn iterate(&mut self, id: FrameId, node: &'r Node, goes_on: bool) -> Next {
        if goes_on {
            return match node.next(Outcome::Body) {
                Some(to) => Next::Go(to),
                None => Next::Over,
            };
        }
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.loops.pop();
        }
        self.take(id, node, Outcome::Done)
    }

    fn bound_reached(
        &mut self,
        id: FrameId,
        node: &'r Node,
        explicit: bool,
        times: u32,
    ) -> Result<Next, Failure> {
        if explicit {
            return Ok(self.iterate(id, node, false));
        }
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.loops.pop();
        }
        Err(Failure::new(
            FailureKind::Limit,
            format!(
                "the loop `{}` has run {times} times and would go on; set `max_iterations`",
                node.id
            ),
        ))
    }

    /// The list a loop runs over.
    pub(super) fn items(
        &mut self,
        id: FrameId,
        node: &Node,
        items: &Template,
    ) -> Result<Value, Failure> {
        let value = self.render(id, node, items, Extras::default())?;
        match value {
            Value::List(_) => Ok(value),
            other => Err(Failure::new(
                FailureKind::Expression,
                format!("`items` of `{}` is {}, not a list", node.id, other.noun()),
            )),
        }
    }

    // --- evaluation ---

    fn seed(&mut self) -> u64 {
        self.data.evaluations += 1;
        self.data.evaluations
    }

    fn evaluate<T>(
        &mut self,
        id: FrameId,
        node: Option<&Node>,
        extras: Extras<'_>,
        with: impl FnOnce(&dyn Evaluator, &View<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let seed = self.seed();
        let frame = self.data.frames.get(&id);
        let own_error = frame
            .and_then(|frame| frame.error.as_ref())
            .map(Failure::to_value);
        let view = View {
            graph: self.graph,
            dependents: self.dependents,
            data: self.data,
            frame,
            needs: node.and_then(|node| node.needs_state.as_deref()),
            error: extras.error.or(own_error.as_ref()),
            result: extras.result,
            locals: extras.locals,
            has_state: true,
            at: self.at,
            seed,
        };
        let evaluated = with(self.evaluator, &view);
        match node {
            Some(node) => evaluated.map_err(|failure| failure.at(&node.id)),
            None => evaluated,
        }
    }

    pub(super) fn render(
        &mut self,
        id: FrameId,
        node: &Node,
        template: &Template,
        extras: Extras<'_>,
    ) -> Result<Value, Failure> {
        if let Template::Literal(literal) = template {
            return Ok(Value::from(literal));
        }
        self.evaluate(id, Some(node), extras, |evaluator, view| {
            evaluator.render(template, view)
        })
    }

    fn test(
        &mut self,
        id: FrameId,
        node: &Node,
        expression: &Expression,
        extras: Extras<'_>,
    ) -> Result<bool, Failure> {
        self.evaluate(id, Some(node), extras, |evaluator, view| {
            evaluator.test(expression, view)
        })
    }

    fn text(&mut self, id: FrameId, node: &Node, template: &Template) -> Result<String, Failure> {
        let value = self.render(id, node, template, Extras::default())?;
        Ok(plain(&value))
    }

    fn optional_text(
        &mut self,
        id: FrameId,
        node: &Node,
        template: Option<&Template>,
    ) -> Result<Option<String>, Failure> {
        template
            .map(|template| self.text(id, node, template))
            .transpose()
    }

    // --- actions ---

    fn deed(&mut self, id: FrameId, node: &'r Node) -> Result<Deed, Failure> {
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
                let (tool, builtin) = match tool {
                    ToolRef::Builtin(name) => (name.to_string(), true),
                    ToolRef::Host(name) => (name.to_string(), false),
                    ToolRef::Declared(index) => {
                        let signature = self.graph.tools.get(usize::from(*index));
                        (
                            signature.map_or(String::new(), |s| s.name.to_string()),
                            false,
                        )
                    }
                };
                let mut parameters = self.render(id, node, parameters, Extras::default())?;
                if builtin {
                    self.inject_session(&tool, &mut parameters);
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
                let mut pairs = |list: &[(flow_model::graph::Text, Template)]| {
                    let mut out = Vec::with_capacity(list.len());
                    for (name, value) in list {
                        out.push((
                            name.as_ref(),
                            self.render(id, node, value, Extras::default())?,
                        ));
                    }
                    Ok::<Value, Failure>(Value::map(out))
                };
                let inputs = pairs(&call.inputs)?;
                let variables = pairs(&call.variables)?;
                let depth = self.data.start.depth + 1;
                if depth > self.graph.limits.max_depth {
                    return Err(Failure::new(
                        FailureKind::Limit,
                        format!(
                            "workflows call each other more than {} deep",
                            self.graph.limits.max_depth
                        ),
                    ));
                }
                self.data.deepest = self.data.deepest.max(depth);
                let session = self.optional_text(id, node, call.session.as_ref())?;
                let number = |value: Option<Value>| match value {
                    Some(Value::Int(value)) => Some(value as f64),
                    Some(Value::Float(value)) => Some(value),
                    _ => None,
                };
                let mut optional = |template: &Option<Template>| {
                    let template = template.as_ref();
                    template
                        .map(|t| self.render(id, node, t, Extras::default()))
                        .transpose()
                };
                let max_states = number(optional(&call.max_states)?).map(|states| states as u64);
                let execution_timeout = number(optional(&call.execution_timeout)?);
                let save = optional(&call.save_on_success)?;
                Ok(Deed::Call {
                    workflow,
                    definition,
                    inputs,
                    variables,
                    session,
                    max_states,
                    execution_timeout,
                    save_on_success: match save {
                        Some(Value::Bool(save)) => Some(save),
                        _ => None,
                    },
                    depth,
                    response: call.answer == CallAnswer::Response,
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

    /// `session_id` of a terminal tool that does not name one: the run's own, else the latest.
    fn inject_session(&self, tool: &str, parameters: &mut Value) {
        let takes = flow_model::tools::find(tool).is_some_and(|tool| tool.takes_session());
        let session = self
            .data
            .variables
            .get("session_id")
            .cloned()
            .or_else(|| self.data.start.session.as_deref().map(Value::text));
        if let (true, Some(session), Value::Map(map)) = (takes, session, parameters)
            && map
                .0
                .get("session_id")
                .is_none_or(|given| *given == Value::Null)
        {
            Arc::make_mut(map)
                .0
                .insert(Arc::from("session_id"), session);
        }
    }

    fn action(&mut self, id: FrameId, node: &Node, deed: Deed) -> Action {
        let action = self.next_action();
        let timeout = node.timeout.or(match &deed {
            Deed::Shell { .. } => Some(DEFAULT_TIMEOUT),
            Deed::Tool { tool, .. } => {
                let own = flow_model::tools::find(tool).is_some_and(|tool| tool.times_itself);
                (!own).then_some(DEFAULT_TIMEOUT)
            }
            Deed::Delegate { .. } | Deed::DelegateItem { .. } => Some(DELEGATE_TIMEOUT),
            Deed::Prompt { .. } | Deed::Call { .. } | Deed::Judge { .. } => None,
        });
        Action {
            id: action,
            key: format!("{}-{}", self.data.start.run, action.0),
            frame: id,
            node: node.id.to_string(),
            attempt: 1,
            deadline: timeout.map(|seconds| self.at + (seconds * 1000.0) as u64),
            what: deed,
        }
    }

    /// Hands an action out, or lets it wait for its turn.
    pub(super) fn dispatch(&mut self, id: FrameId, node: u16, action: Action) {
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
                action.deadline = action.deadline.map(|deadline| deadline + late);
                step.waits = Waits::Action(action.clone());
                step.since = self.at;
                self.data.under_way += 1;
                self.effects.push(Effect::Act(*action));
            }
        }
    }

    // --- how a step ends ---

    /// A step did what was asked: writes, then edges.
    pub(super) fn settle_success(
        &mut self,
        id: FrameId,
        index: u16,
        result: Value,
    ) -> Result<Next, Failure> {
        let Some(node) = self.node(id, index) else {
            return Ok(Next::Over);
        };
        let sets = matches!(node.kind, Kind::SetState);
        let written = self.write(id, node, &node.writes, Some(&result), None, sets)?;
        let result = if sets { written } else { result };
        Ok(self.settle(
            id,
            index,
            Settled {
                outcome: Outcome::Success,
                result,
                error: None,
            },
        ))
    }

    /// Writes a batch; gives the written values by field.
    fn write(
        &mut self,
        id: FrameId,
        node: &Node,
        writes: &[Write],
        result: Option<&Value>,
        error: Option<&Value>,
        sets: bool,
    ) -> Result<Value, Failure> {
        if writes.is_empty() {
            return Ok(Value::Null);
        }
        let mut locals: Vec<(String, Value)> = Vec::new();
        let mut changes = Vec::with_capacity(writes.len());
        for write in writes {
            let visible = if sets { None } else { result };
            let mut path = Vec::with_capacity(write.path.segments.len());
            for segment in write.path.segments.iter() {
                let extras = Extras {
                    error,
                    result: visible,
                    locals: &locals,
                };
                path.push(plain(&self.render(id, node, segment, extras)?));
            }
            let value = match &write.value {
                Some(template) => {
                    let extras = Extras {
                        error,
                        result: visible,
                        locals: &locals,
                    };
                    self.render(id, node, template, extras)?
                }
                None => result.cloned().unwrap_or_default(),
            };
            if write.operation == Operation::Set && path.len() == 1 {
                locals.push((path[0].clone(), value.clone()));
            }
            changes.push(Change {
                tier: write.path.tier,
                path,
                operation: write.operation,
                value,
            });
        }
        self.change(id, &changes)
            .map_err(|failure| failure.at(&node.id))?;
        Ok(Value::map(locals))
    }

    /// Applies a batch to the state a frame works on, and recomputes what depends on it.
    pub(super) fn change(&mut self, id: FrameId, changes: &[Change]) -> Result<(), Failure> {
        let max = self.graph.limits.max_state_bytes;
        let own = self
            .data
            .frames
            .get_mut(&id)
            .and_then(|frame| frame.store.as_mut());
        match own {
            Some(store) => store.apply(changes, max),
            None => {
                self.data.store.apply(changes, max)?;
                let mut fields: Vec<&str> = changes.iter().map(|c| c.path[0].as_str()).collect();
                fields.dedup();
                let moment = Moment {
                    at: self.at,
                    seed: self.data.evaluations,
                };
                self.data.evaluations += 1;
                recompute(
                    self.graph,
                    self.dependents,
                    self.evaluator,
                    self.data,
                    Some(&fields),
                    moment,
                );
                Ok(())
            }
        }
    }

    /// A step failed: attempts, fallback, `error_state_update`, then edges.
    pub(super) fn failed(
        &mut self,
        id: FrameId,
        index: u16,
        failure: Failure,
        result: Value,
    ) -> Next {
        let timed_out = failure.kind == FailureKind::Timeout;
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let failure = failure.at(&node.id);
        if failure.kind == FailureKind::Limit && matches!(node.kind, Kind::While { .. }) {
            return self.fail_frame(id, failure);
        }
        if let Some(fallback) = &node.fallback_value {
            let error = failure.to_value();
            let extras = Extras {
                error: Some(&error),
                ..Extras::default()
            };
            let settled = self
                .render(id, node, fallback, extras)
                .and_then(|value| self.settle_success(id, index, value));
            return match settled {
                Ok(next) => next,
                Err(failure) => self.fail_frame(id, failure),
            };
        }
        if !node.error_writes.is_empty() {
            let error = failure.to_value();
            let written = self.write(
                id,
                node,
                &node.error_writes,
                Some(&result),
                Some(&error),
                false,
            );
            if let Err(failure) = written {
                return self.fail_frame(id, failure);
            }
        }
        self.settle(
            id,
            index,
            Settled {
                outcome: if timed_out {
                    Outcome::Timeout
                } else {
                    Outcome::Failure
                },
                result,
                error: Some(failure),
            },
        )
    }

    /// Chooses the edge of a settled step.
    pub(super) fn settle(&mut self, id: FrameId, index: u16, settled: Settled) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        if self.graph.form == Form::States && id == ROOT {
            self.remember(node, &settled);
        }
        self.edges(id, index, node, settled, 0)
    }

    /// Tries edges from one on.
    fn edges(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        settled: Settled,
        from: usize,
    ) -> Next {
        let mut at = from;
        while let Some(edge) = node.edges.get(at) {
            match &edge.guard {
                Guard::Judged(_) => return self.ask_judgement(id, index, node, settled, at),
                Guard::When(condition) => match self.holds(id, node, condition, &settled) {
                    Ok(true) => return self.follow(id, node, edge, &settled),
                    Ok(false) => {}
                    Err(failure) => return self.fail_frame(id, failure.at(&node.id)),
                },
                guard if guard.holds_for(settled.outcome) => {
                    return self.follow(id, node, edge, &settled);
                }
                _ => {}
            }
            at += 1;
        }
        let failure = match settled.error {
            Some(failure) => failure,
            None => {
                let word = match settled.outcome {
                    Outcome::Timeout => "timeout",
                    Outcome::Failure => "failure",
                    _ => "success",
                };
                Failure::new(
                    FailureKind::NoTransition,
                    format!(
                        "`{}` ended in {word}, and no transition of it holds",
                        node.id
                    ),
                )
                .at(&node.id)
            }
        };
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.step = None;
        }
        self.data.failed_at = Some((id, index));
        self.fail_frame(id, failure)
    }

    fn follow(&mut self, id: FrameId, node: &Node, edge: &Edge, settled: &Settled) -> Next {
        let ending = match (&settled.error, settled.outcome) {
            (_, Outcome::Timeout) => Ending::Timeout,
            (Some(failure), _) => Ending::Failure(failure.message.clone()),
            (None, _) => Ending::Success,
        };
        self.left(id, node, ending, edge.to);
        Next::Go(edge.to)
    }

    fn ask_judgement(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        settled: Settled,
        from: usize,
    ) -> Next {
        let Some(frame) = self.data.frames.get(&id) else {
            return Next::Over;
        };
        let body = self.body(frame.body);
        let name = |to: Target| match to {
            Target::Node(to) => body.nodes.get(usize::from(to)).map_or("", |node| &node.id),
            Target::Complete => "",
        };
        let mut choices = Vec::new();
        let mut edges = Vec::new();
        for (at, edge) in node.edges.iter().enumerate().skip(from) {
            if let Guard::Judged(description) = &edge.guard {
                choices.push((description.to_string(), name(edge.to).to_owned()));
                edges.push(u16::try_from(at).unwrap_or(u16::MAX));
            }
        }
        let deed = Deed::Judge {
            choices,
            result: settled.result.clone(),
        };
        let action = self.action(id, node, deed);
        self.data.waiting.insert(action.id, id);
        self.data.under_way += 1;
        self.effects.push(Effect::Act(action.clone()));
        let waits = Waits::Judgement {
            action: Box::new(action),
            edges,
            settled: Box::new(settled),
        };
        self.wait(id, index, waits);
        Next::Wait
    }

    /// A judgement has come: the chosen edge, or the edges that nobody was asked about.
    pub(super) fn judged(
        &mut self,
        id: FrameId,
        index: u16,
        edges: &[u16],
        settled: Settled,
        answer: &Value,
    ) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let chosen = answer.get("choice").unwrap_or(answer);
        let edge = match chosen {
            Value::Int(choice) => usize::try_from(*choice).ok().and_then(|at| edges.get(at)).copied(),
            Value::Str(name) => edges.iter().copied().find(|at| {
                let target = node.edges.get(usize::from(*at)).map(|edge| edge.to);
                matches!(target, Some(Target::Node(to)) if self.node(id, to).is_some_and(|n| *n.id == **name))
            }),
            _ => None,
        };
        match edge.and_then(|at| node.edges.get(usize::from(at))) {
            Some(edge) => self.follow(id, node, edge, &settled),
            None => {
                let last = edges.last().copied().unwrap_or_default();
                self.edges(id, index, node, settled, usize::from(last) + 1)
            }
        }
    }

    fn holds(
        &mut self,
        id: FrameId,
        node: &Node,
        condition: &Condition,
        settled: &Settled,
    ) -> Result<bool, Failure> {
        let extras = Extras {
            result: Some(&settled.result),
            ..Extras::default()
        };
        Ok(match condition {
            Condition::Always => true,
            Condition::Success(wanted) => (settled.outcome == Outcome::Success) == *wanted,
            Condition::TimedOut(wanted) => (settled.outcome == Outcome::Timeout) == *wanted,
            Condition::PatternMatch(pattern) => found(pattern, &settled.result)?,
            Condition::PatternNotMatch(pattern) => !found(pattern, &settled.result)?,
            Condition::FieldEquals(field, template) => {
                let wanted = self.render(id, node, template, extras)?;
                settled.result.get(field).unwrap_or(&Value::Null) == &wanted
            }
            Condition::FieldContains(field, template) => {
                let wanted = plain(&self.render(id, node, template, extras)?);
                let value = settled.result.get(field).map(plain).unwrap_or_default();
                value.contains(&wanted)
            }
            Condition::Expression(expression) => self.test(id, node, expression, extras)?,
            Condition::All(all) => {
                for one in all.iter() {
                    if !self.holds(id, node, one, settled)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Any(any) => {
                for one in any.iter() {
                    if self.holds(id, node, one, settled)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::None(none) => {
                for one in none.iter() {
                    if self.holds(id, node, one, settled)? {
                        return Ok(false);
                    }
                }
                true
            }
        })
    }

    /// Variables that a state's result sets: its own, and the standard ones.
    fn remember(&mut self, node: &Node, settled: &Settled) {
        let Value::Map(result) = &settled.result else {
            return;
        };
        let fields = result.0.iter().filter(|(_, value)| **value != Value::Null);
        for (field, value) in fields.clone() {
            let standard = flow_model::tools::STANDARD_VARIABLES
                .iter()
                .find(|variable| variable.field == field.as_ref());
            if let Some(standard) = standard {
                self.data
                    .variables
                    .insert(Arc::from(standard.name), value.clone());
            }
        }
        for (field, value) in fields {
            let name = format!("{}_{field}", node.id);
            self.data.variables.insert(Arc::from(name), value.clone());
        }
    }

    // --- how a frame ends ---

    /// A frame has reached the end of its body, or returned.
    pub(super) fn complete(&mut self, id: FrameId, value: Option<Value>) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        match frame.body {
            BodyRef::Main => self.complete_run(value),
            BodyRef::Task(_) => {
                let parent = frame.parent;
                self.data.frames.remove(&id);
                self.child_ended(parent, Ok(value.unwrap_or_default()));
            }
            BodyRef::OnError => {
                let failure = frame.error.clone();
                self.end_failed(failure);
            }
            BodyRef::Cleanup(task) => {
                let (parent, failure) = (frame.parent, frame.error.clone());
                self.data.frames.remove(&id);
                let failure =
                    failure.unwrap_or_else(|| Failure::new(FailureKind::Child, "the task failed"));
                let returns = self
                    .graph
                    .tasks
                    .get(usize::from(task))
                    .and_then(|task| task.on_error.as_ref())
                    .is_some_and(|on_error| on_error.returns);
                let ended = if returns {
                    Ok(Value::map([("error", failure.to_value())]))
                } else {
                    Err(failure)
                };
                self.child_ended(parent, ended);
            }
        }
    }

    fn complete_run(&mut self, value: Option<Value>) {
        let output = if self.graph.outputs.is_empty() {
            Ok(value.unwrap_or_default())
        } else {
            let mut outputs = Vec::with_capacity(self.graph.outputs.len());
            let mut failed = None;
            for output in self.graph.outputs.iter() {
                let rendered = match &output.value {
                    Template::Literal(literal) => Ok(Value::from(literal)),
                    template => self.evaluate(ROOT, None, Extras::default(), |evaluator, view| {
                        evaluator.render(template, view)
                    }),
                };
                match rendered {
                    Ok(value) => outputs.push((output.field.name.as_ref(), value)),
                    Err(failure) => {
                        failed = Some(Failure::new(
                            failure.kind,
                            format!(
                                "the output `{}` has no value: {}",
                                output.field.name, failure.message
                            ),
                        ));
                        break;
                    }
                }
            }
            match failed {
                Some(failure) => Err(failure),
                None => Ok(Value::map(outputs)),
            }
        };
        match output {
            Ok(output) => {
                self.data.output = output.clone();
                self.finish(Finish {
                    status: Status::Completed,
                    output,
                    error: None,
                });
            }
            Err(failure) => {
                self.fail_frame(ROOT, failure);
            }
        }
    }

    /// A frame has failed; what that means depends on whose it is.
    pub(super) fn fail_frame(&mut self, id: FrameId, failure: Failure) -> Next {
        let Some(frame) = self.data.frames.get(&id) else {
            return Next::Over;
        };
        match frame.body {
            BodyRef::Main => self.fail_workflow(failure),
            BodyRef::OnError => {
                // Failing failure steps do not hide why the run failed.
                let first = frame.error.clone();
                self.end_failed(first.or(Some(failure)));
            }
            BodyRef::Task(task) => self.fail_task(id, task, failure),
            BodyRef::Cleanup(_) => {
                let (parent, first) = (frame.parent, frame.error.clone());
                self.data.frames.remove(&id);
                self.child_ended(parent, Err(first.unwrap_or(failure)));
            }
        }
        Next::Over
    }

    fn fail_task(&mut self, id: FrameId, task: u16, failure: Failure) {
        let handler = self
            .graph
            .tasks
            .get(usize::from(task))
            .and_then(|task| task.on_error.as_ref());
        let Some(frame) = self.data.frames.get_mut(&id) else {
            return;
        };
        let Some(handler) = handler else {
            let parent = frame.parent;
            self.data.frames.remove(&id);
            self.child_ended(parent, Err(failure));
            return;
        };
        frame.body = BodyRef::Cleanup(task);
        frame.at = handler.body.entry;
        frame.loops.clear();
        frame.jumps.clear();
        frame.step = None;
        frame.error = Some(failure);
        self.data.ready.push_back(id);
    }

    fn fail_workflow(&mut self, failure: Failure) {
        self.stop_all();
        self.data.error = Some(failure.clone());
        let on_error = &self.graph.on_error;
        if let Some(path) = &on_error.collect_to {
            let segments: Vec<String> = path
                .segments
                .iter()
                .map(|segment| match segment {
                    Template::Literal(literal) => plain(&Value::from(literal)),
                    Template::Expression(_)
                    | Template::Text(_)
                    | Template::List(_)
                    | Template::Map(_) => String::new(),
                })
                .collect();
            let change = Change {
                tier: path.tier,
                path: segments,
                operation: Operation::Append,
                value: failure.to_value(),
            };
            // An error that cannot be collected must not hide the error itself.
            let _ = self.change(ROOT, &[change]);
        }
        let refused = matches!(failure.kind, FailureKind::Refused | FailureKind::Cancelled);
        if on_error.action == ErrorAction::RetryWorkflow && !self.data.again && !refused {
            self.data.again = true;
            self.restart();
            return;
        }
        if on_error.body.nodes.is_empty() || refused {
            self.end_failed(Some(failure));
            return;
        }
        if let Some(frame) = self.data.frames.get_mut(&ROOT) {
            frame.body = BodyRef::OnError;
            frame.at = on_error.body.entry;
            frame.loops.clear();
            frame.step = None;
            frame.error = Some(failure);
            self.data.ready.push_back(ROOT);
        }
    }

    fn end_failed(&mut self, failure: Option<Failure>) {
        self.data.error.clone_from(&failure);
        self.finish(Finish {
            status: Status::Failed,
            output: Value::Null,
            error: failure,
        });
    }

    pub(super) fn finish(&mut self, finish: Finish) {
        self.stop_all();
        if let Some((timer, _)) = self.data.limit.take() {
            self.effects.push(Effect::Stop(timer));
        }
        self.data.status = finish.status;
        self.data.ready.clear();
        self.effects.push(Effect::Finish(finish));
    }

    /// Nothing that is under way is wanted any more.
    pub(super) fn stop_all(&mut self) {
        let waiting: Vec<ActionId> = std::mem::take(&mut self.data.waiting).into_keys().collect();
        for action in waiting {
            self.effects.push(Effect::Stop(action));
        }
        self.data.under_way = 0;
        self.data.queue.clear();
        self.data.ready.clear();
        self.data.frames.retain(|id, _| *id == ROOT);
    }

    /// The workflow from its start, with fresh state.
    pub(super) fn restart(&mut self) {
        let inputs = self.data.start.inputs.clone();
        self.data.frames.clear();
        self.data.frames.insert(
            ROOT,
            Frame::new(BodyRef::Main, self.graph.body.entry, inputs),
        );
        self.data.store = super::state::Store::default();
        self.data.computed.clear();
        self.data.included.clear();
        self.data.steps = 0;
        self.initialise();
    }

    /// Initial state, in document order, then everything computed.
    pub(super) fn initialise(&mut self) {
        let initials = self.graph.state.clone();
        for initial in initials.iter() {
            let Some(template) = &initial.value else {
                continue;
            };
            let value = match template {
                Template::Literal(literal) => Ok(Value::from(literal)),
                template => {
                    let seed = self.seed();
                    let view = View {
                        graph: self.graph,
                        dependents: self.dependents,
                        data: self.data,
                        frame: None,
                        needs: None,
                        error: None,
                        result: None,
                        locals: &[],
                        has_state: false,
                        at: self.at,
                        seed,
                    };
                    self.evaluator.render(template, &view)
                }
            };
            let change = match value {
                Ok(value) => Change {
                    tier: initial.tier,
                    path: vec![initial.name.to_string()],
                    operation: Operation::Set,
                    value,
                },
                Err(failure) => {
                    let message = format!(
                        "the initial value of `{}` cannot be made: {}",
                        initial.name, failure.message
                    );
                    self.end_failed(Some(Failure::new(failure.kind, message)));
                    return;
                }
            };
            if let Err(failure) = self
                .data
                .store
                .apply(&[change], self.graph.limits.max_state_bytes)
            {
                self.end_failed(Some(failure));
                return;
            }
        }
        let moment = Moment {
            at: self.at,
            seed: self.data.evaluations,
        };
        recompute(
            self.graph,
            self.dependents,
            self.evaluator,
            self.data,
            None,
            moment,
        );
        if let Some(Target::Node(entry)) = self.data.frames.get(&ROOT).map(|frame| frame.at) {
            let node = self.graph.body.nodes.get(usize::from(entry));
            self.data.last_node = node.map(|node| node.id.to_string());
        }
        self.data.ready.push_back(ROOT);
    }
}

/// A value as text: texts as they are, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Whether a pattern is found in the match, or else on the screen.
fn found(pattern: &str, result: &Value) -> Result<bool, Failure> {
    let pattern = regex::Regex::new(pattern).map_err(|error| {
        Failure::new(
            FailureKind::Expression,
            format!("the pattern does not compile: {error}"),
        )
    })?;
    let searched = ["match_text", "screen_content", "output", "stdout"];
    Ok(searched
        .iter()
        .filter_map(|field| result.get(field).and_then(Value::as_str))
        .any(|text| pattern.is_match(text)))
}

/// What a command's result means: its value by format, or why it failed.
pub(super) fn shell_result(
    node: &Node,
    output: OutputFormat,
    result: &Value,
) -> Result<Value, Failure> {
    let exit = match result.get("exit_code") {
        Some(Value::Int(code)) => *code,
        _ => 0,
    };
    let captured = node.writes.iter().any(|write| write.value.is_none());
    let whole = output == OutputFormat::Result && captured && node.retry.is_none();
    if exit != 0 && !whole {
        let stderr = result
            .get("stderr")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        let said = last
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
    let trimmed = stdout.strip_suffix('\n').unwrap_or(stdout);
    Ok(match output {
        OutputFormat::Result => result.clone(),
        OutputFormat::Text => Value::text(trimmed),
        OutputFormat::Lines => {
            let lines = if trimmed.is_empty() {
                Vec::new()
            } else {
                trimmed.lines().collect()
            };
            Value::list(lines.into_iter().map(Value::text))
        }
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
