//! One event at a time: frames advance from node to node until all of them wait.

use std::collections::VecDeque;

use flow_model::graph::{
    Body, Expression, Form, Graph, Guard, Jump, Kind, Node, Outcome, Target, Template,
};

use super::computed::Dependents;
use super::data::Data;
use super::effect::{Effect, Ending, Place, Status};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{BodyRef, FrameId, Item, Loop, Parent, ROOT, Step, Waits};
use super::gather::Ended;
use super::observe::Observer;
use super::pattern::Patterns;
use super::response::unasked;
use super::state::Bounds;
use super::table::Tables;
use super::time::{self, after};
use super::track::Tracks;
use super::view::{Evaluator, View};
use crate::expression;
use crate::value::Value;

/// Nodes executed without waiting before the run gives way.
const STRETCH: u64 = 10_000;
/// Seconds that a `wait` may take.
const LONGEST_WAIT: f64 = 30.0 * 86_400.0;
/// Failure steps that a run may execute, whatever it is allowed otherwise.
const FAILURE_STEPS: u64 = 10_000;

/// A run while an event is applied to it.
pub(super) struct Machine<'r> {
    pub(super) graph: &'r Graph,
    pub(super) dependents: &'r Dependents,
    pub(super) evaluator: &'r dyn Evaluator,
    pub(super) patterns: &'r Patterns,
    pub(super) tables: &'r Tables,
    pub(super) tracks: Tracks,
    /// What writes to the workflow's state keep to.
    pub(super) bounds: Bounds<'r>,
    pub(super) data: &'r mut Data,
    pub(super) effects: Vec<Effect>,
    pub(super) observer: Option<&'r mut dyn Observer>,
    pub(super) at: u64,
    /// Nodes executed because of this event.
    pub(super) stretch: u64,
    /// Children that have ended, and that their fan-outs have not heard of. Tasks may nest: an end
    /// that leads to the next one must not be told from inside the first.
    pub(super) ended: VecDeque<(Parent, Ended)>,
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
    pub(super) item: Option<&'e Item>,
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

    pub(super) fn next_action(&mut self) -> ActionId {
        self.data.next_action += 1;
        ActionId(self.data.next_action)
    }

    /// Lets every frame that can go on do so.
    pub(super) fn pump(&mut self) {
        while self.data.status == Status::Running {
            if let Some((parent, ended)) = self.ended.pop_front() {
                self.gathered(parent, ended);
                continue;
            }
            if !self.data.ready.is_empty() && self.gives_way() {
                self.effects.push(Effect::Yield);
                return;
            }
            let Some(frame) = self.data.ready.pop_front() else {
                return;
            };
            self.advance(frame);
        }
    }

    /// Whether the run has done so much without waiting, by its count or by the clock, that others
    /// come first: limits, signals, and what somebody has written to it. It never gives way before
    /// it has done something.
    fn gives_way(&self) -> bool {
        self.stretch >= STRETCH || (self.stretch > 0 && expression::gives_way())
    }

    pub(super) fn advance(&mut self, id: FrameId) {
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
            if self.gives_way() {
                self.data.ready.push_front(id);
                return;
            }
            match self.enter(id, node) {
                Next::Go(to) => self.go(id, to),
                Next::Wait | Next::Over => return,
            }
        }
    }

    /// Moves a frame to its next node; loops that do not surround it are over.
    pub(super) fn go(&mut self, id: FrameId, to: Target) {
        let Some(frame) = self.data.frames.get(&id) else {
            return;
        };
        let body = self.body(frame.body);
        let mut around: Vec<u16> = match to {
            Target::Complete => Vec::new(),
            Target::Node(node) => body.loops_around(node).collect(),
        };
        around.reverse();
        // Reaching a loop's head from its body is the next iteration. One that a `goto` starts
        // anew has forgotten that it was under way.
        if let Target::Node(node) = to
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
        self.close_containers(id, to);
        self.discard_kept(id);
        self.leave_loops(id, to);
        if id == ROOT
            && let Target::Node(node) = to
        {
            let id = body.nodes.get(usize::from(node)).map(|n| n.id.to_string());
            self.data.last_node = id.or(self.data.last_node.take());
        }
    }

    /// A loop that a `goto` leads to from within begins from its start.
    fn restart_loop(&mut self, id: FrameId, goto: &Node) {
        let target = goto.edges.iter().find(|edge| edge.guard == Guard::Body);
        let Some(Target::Node(head)) = target.map(|edge| edge.to) else {
            return;
        };
        if let Some(frame) = self.data.frames.get_mut(&id)
            && let Some(at) = frame.loops.iter().position(|inner| inner.node == head)
        {
            frame.loops.truncate(at);
        }
    }

    /// Executes a node.
    pub(super) fn enter(&mut self, id: FrameId, index: u16) -> Next {
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
        let retried = !again && self.is_opened(id, index);
        if !again {
            if let Err(message) = self.count_step(id) {
                let failure = Failure::new(FailureKind::Limit, message).at(&node.id);
                return self.fail_frame(id, failure);
            }
            self.visit(id, index, node);
        }
        if let Some(when) = &node.when
            && !again
            && !retried
        {
            match self.test(id, node, when, Extras::default()) {
                Ok(true) => {}
                Ok(false) => return self.skip(id, index, node),
                Err(failure) => return self.failed(id, index, failure, Value::Null),
            }
        }
        if !again {
            self.open_container(id, index, node);
        }
        match self.begin(id, index, node) {
            Ok(next) => next,
            Err(failure) => self.attempt_failed(id, index, failure, Value::Null),
        }
    }

    /// Counts a node that is about to be executed, or says that there were enough. Failure steps
    /// have a count of their own: they run also when the run has used up its steps.
    fn count_step(&mut self, id: FrameId) -> Result<(), String> {
        let allowed = self.data.start.max_steps;
        let limit = allowed.unwrap_or(self.graph.limits.max_steps);
        if self.data.is_cleaning(id) {
            let limit = limit.max(FAILURE_STEPS);
            if self.data.failure_steps >= limit {
                return Err(format!("{limit} failure steps have been executed"));
            }
            self.data.failure_steps += 1;
            return Ok(());
        }
        if self.data.steps < limit {
            self.data.steps += 1;
            return Ok(());
        }
        let done = match (self.graph.form, limit) {
            (Form::States, 1) => "1 state has".to_owned(),
            (Form::States, _) => format!("{limit} states have"),
            (Form::Steps, 1) => "1 step has".to_owned(),
            (Form::Steps, _) => format!("{limit} steps have"),
        };
        let raise = match allowed {
            Some(_) => "run it with a higher `max_states` (`--max-steps`)",
            None => {
                "raise `limits.max_steps`, or run it with a higher `max_states` (`--max-steps`)"
            }
        };
        Err(format!(
            "{done} been executed and the run is not over; if it is meant to go on, {raise}, or resume it with more (`resume_workflow` with `max_states`, `flow resume --max-steps`)"
        ))
    }

    pub(super) fn skip(&mut self, id: FrameId, index: u16, node: &'r Node) -> Next {
        let to = self.next(id, index, Outcome::Skip);
        let to = to.unwrap_or(Target::Complete);
        self.left(id, node, Ending::Skipped, to);
        Next::Go(to)
    }

    /// Does what a node does, or starts it.
    pub(super) fn begin(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
    ) -> Result<Next, Failure> {
        match &node.kind {
            Kind::Condition { test } => {
                let holds = self.test(id, node, test, Extras::default())?;
                Ok(self.take(
                    id,
                    index,
                    node,
                    if holds { Outcome::Then } else { Outcome::Else },
                ))
            }
            Kind::While { test, bound } => {
                let count = self.iteration(id, index, None);
                if count >= u64::from(bound.times) {
                    return self.bound_reached(id, index, node, bound.explicit, bound.times);
                }
                let holds = self.test(id, node, test, Extras::default())?;
                Ok(self.iterate(id, index, node, holds))
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
                Ok(self.iterate(id, index, node, at < length.unwrap_or(0) as u64))
            }
            Kind::Jump(Jump::Break | Jump::Continue) => {
                Ok(self.take(id, index, node, Outcome::Success))
            }
            Kind::Goto { bound } => {
                let frame = self.data.frames.get_mut(&id);
                let Some(count) = frame.map(|frame| frame.jumps.entry(index).or_insert(0)) else {
                    return Ok(Next::Over);
                };
                let jumps = *count < bound.times;
                *count += u32::from(jumps);
                if jumps {
                    self.restart_loop(id, node);
                }
                Ok(self.take(
                    id,
                    index,
                    node,
                    if jumps { Outcome::Body } else { Outcome::Done },
                ))
            }
            Kind::Return { value } => {
                let value = match value {
                    Some(value) => self.render(id, node, value, Extras::default())?,
                    None => Value::Null,
                };
                self.settle_success(id, index, value)
            }
            Kind::SetState => self.settle_success(id, index, Value::Null),
            Kind::FanOut(fan) => self.fan_out(id, index, node, fan),
            Kind::Wait { seconds, message } => {
                let message = self.optional_text(id, node, message.as_ref())?;
                let value = self.render(id, node, seconds, Extras::default())?;
                let seconds = time::seconds(&value).filter(|it| (0.0..=LONGEST_WAIT).contains(it));
                let seconds = seconds.ok_or_else(|| {
                    let message = format!(
                        "`duration_seconds` is {value}; it must be from 0 to {LONGEST_WAIT} seconds \
                         (30 days), or a text such as `30s`"
                    );
                    Failure::new(FailureKind::Expression, message)
                })?;
                if let Some(message) = message {
                    let place = Place {
                        frame: id,
                        node: node.id.to_string(),
                        within: self.within(id, &node.id),
                    };
                    self.effects.push(Effect::Told { place, message });
                }
                let timer = self.next_action();
                let until = after(self.at, seconds);
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
                let deed = match self.deed(id, node) {
                    Ok(deed) => deed,
                    Err(failure) => {
                        let result = unasked(node, &failure.message);
                        return Ok(self.attempt_failed(id, index, failure, result));
                    }
                };
                let mut action = self.action(id, node, deed);
                self.call_again(id, index, &mut action);
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

    /// Where an outcome leads that needs no result.
    fn next(&self, id: FrameId, index: u16, outcome: Outcome) -> Option<Target> {
        let body = self.data.frames.get(&id)?.body;
        self.tables.of(body)?.next(index, outcome)
    }

    /// Follows the edge of an outcome that needs no result.
    pub(super) fn take(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        outcome: Outcome,
    ) -> Next {
        let Some(to) = self.next(id, index, outcome) else {
            let message = format!("`{}` leads nowhere", node.id);
            let failure = Failure::new(FailureKind::NoTransition, message).at(&node.id);
            return self.fail_frame(id, failure);
        };
        self.left(id, node, Ending::Success, to);
        Next::Go(to)
    }

    pub(super) fn current_loop(&self, id: FrameId, node: u16) -> Option<&Loop> {
        let last = self.data.frames.get(&id)?.loops.last()?;
        (last.node == node).then_some(last)
    }

    /// Starts a loop, or goes on to its next iteration; says which one that is.
    pub(super) fn iteration(&mut self, id: FrameId, node: u16, items: Option<Value>) -> u64 {
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
    pub(super) fn iterate(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        goes_on: bool,
    ) -> Next {
        if goes_on {
            return match self.next(id, index, Outcome::Body) {
                Some(to) => Next::Go(to),
                None => Next::Over,
            };
        }
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.loops.pop();
        }
        self.take(id, index, node, Outcome::Done)
    }

    pub(super) fn bound_reached(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        explicit: bool,
        times: u32,
    ) -> Result<Next, Failure> {
        if explicit {
            return Ok(self.iterate(id, index, node, false));
        }
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.loops.pop();
        }
        let message = format!(
            "the loop `{}` has run {times} times and would go on; set `max_iterations`",
            node.id
        );
        // Nobody has said how often is enough: nothing around it makes that good.
        let failure = Failure::new(FailureKind::Limit, message).at(&node.id);
        Ok(self.fail_frame(id, failure))
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

    pub(super) fn seed(&mut self) -> u64 {
        self.data.evaluations += 1;
        self.data.seed()
    }

    pub(super) fn evaluate<T>(
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
            item: extras.item,
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

    /// A value for initial state: of a task, which has its frame, or of the run.
    pub(super) fn start_value(
        &mut self,
        task: Option<FrameId>,
        template: &Template,
    ) -> Result<Value, Failure> {
        let seed = self.seed();
        let view = View {
            frame: task.and_then(|id| self.data.frames.get(&id)),
            has_state: false,
            ..View::of_state(self.graph, self.dependents, self.data, self.at, seed)
        };
        self.evaluator.render(template, &view)
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

    pub(super) fn test(
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

    pub(super) fn text(
        &mut self,
        id: FrameId,
        node: &Node,
        template: &Template,
    ) -> Result<String, Failure> {
        let value = self.render(id, node, template, Extras::default())?;
        Ok(plain(&value))
    }

    pub(super) fn optional_text(
        &mut self,
        id: FrameId,
        node: &Node,
        template: Option<&Template>,
    ) -> Result<Option<String>, Failure> {
        template
            .map(|template| self.text(id, node, template))
            .transpose()
    }
}

/// A value as text: texts as they are, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        other => expression::written(other),
    }
}
