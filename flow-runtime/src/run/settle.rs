//! How a step ends: what it writes, and which edge it takes.

use std::borrow::Cow;
use std::sync::Arc;

use flow_model::graph::{
    Condition, Edge, ErrorAction, Form, Guard, Kind, Node, Operation, Outcome, OutputFormat, Shell,
    StatePath, Target, Template, Write,
};

use super::action::{SHELL_RESULT_BYTES, cut_result};
use super::computed::Changed;
use super::effect::{Action, Deed, Effect, Ending};
use super::event::{Failure, FailureKind};
use super::frame::{BodyRef, Frame, FrameId, ROOT, Settled, Waits};
use super::machine::{Extras, Machine, Next, plain};
use super::meaning::shown;
use super::origin::roots;
use super::pattern::{Sought, constant, decisive};
use super::state::{Bounds, Change};
use super::typed::Types;
use crate::value::Value;

/// What is said of an error that `collect_to` does not take.
pub(super) const UNCOLLECTED: &str = "it cannot be collected";
/// Bytes of a stream that a result holds at least, however little room the state has.
const LEAST_CUT: usize = 1 << 6;
/// How an error ends that says what a state lacks.
const LEADS_ON: &str = " would lead on";
/// Patterns that an error names.
const PATTERNS: usize = 5;

impl<'r> Machine<'r> {
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
        let (written, result) = self.write_result(id, node, result, sets)?;
        let result = if sets { written } else { result };
        // What a `return` gives is what its frame gives.
        if let Kind::Return { .. } = node.kind {
            self.left(id, node, Ending::Success, Target::Complete);
            self.complete(id, Some(result));
            return Ok(Next::Over);
        }
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

    /// A step was done by somebody who gave no result and has written what there was to write. Only
    /// what does not come from the result is written here.
    pub(super) fn settle_done(&mut self, id: FrameId, index: u16, action: &Action) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        let writes = node.writes.iter().filter(|write| {
            let mut segments = write.path.segments.iter();
            write.value.as_ref().is_some_and(needs_no_result) && segments.all(needs_no_result)
        });
        let writes: Vec<Write> = writes.cloned().collect();
        if let Err(failure) = self.write(id, node, &writes, None, None, false) {
            return self.failed(id, index, failure, Value::Null);
        }
        let result = match action.what {
            Deed::Shell { .. } => Value::map([
                ("stdout", Value::text("")),
                ("stderr", Value::text("")),
                ("exit_code", Value::Int(0)),
            ]),
            _ => Value::Null,
        };
        self.settle(
            id,
            index,
            Settled {
                outcome: Outcome::Success,
                result,
                error: None,
            },
        )
    }

    /// Writes what a step writes. The whole result of a command says what is missing of it, so as
    /// much as the state has room for is written; gives it as it was written.
    fn write_result(
        &mut self,
        id: FrameId,
        node: &Node,
        result: Value,
        sets: bool,
    ) -> Result<(Value, Value), Failure> {
        let writes = &node.writes;
        let failure = match self.write(id, node, writes, Some(&result), None, sets) {
            Ok(written) => return Ok((written, result)),
            Err(failure) => failure,
        };
        let whole = |shell: &Shell| shell.output == OutputFormat::Result;
        let is_whole = matches!(&node.kind, Kind::Shell(shell) if whole(shell));
        let captures = writes.iter().any(|write| write.value.is_none());
        if failure.kind == FailureKind::Limit && is_whole && captures {
            let mut most = SHELL_RESULT_BYTES;
            while most > LEAST_CUT {
                most /= 2;
                let cut = cut_result(&result, most);
                if let Ok(written) = self.write(id, node, writes, Some(&cut), None, sets) {
                    return Ok((written, cut));
                }
            }
        }
        Err(failure)
    }

    /// Writes a batch; gives the written values by field.
    pub(super) fn write(
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
        // What a step that sets something gives, once all of that is known.
        let mut new = None;
        for write in writes {
            if sets && write.beside && new.is_none() {
                let values = self.new_values(id, &changes);
                new = Some(values.map_err(|failure| failure.at(&node.id))?);
            }
            let visible = if sets { new.as_ref() } else { result };
            let mut path = Vec::with_capacity(write.path.segments.len());
            for segment in write.path.segments.iter() {
                let extras = Extras {
                    error,
                    result: visible,
                    locals: &locals,
                    item: None,
                };
                path.push(plain(&self.render(id, node, segment, extras)?));
            }
            self.may_write(id, &write.path, &path)
                .map_err(|failure| failure.at(&node.id))?;
            let value = match &write.value {
                Some(template) => {
                    let extras = Extras {
                        error,
                        result: visible,
                        locals: &locals,
                        item: None,
                    };
                    self.render(id, node, template, extras)?
                }
                None => visible.cloned().unwrap_or_default(),
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
        Ok(new.unwrap_or_else(|| Value::map(locals)))
    }

    /// The fields that a batch writes, as it leaves them. Nothing is written yet.
    fn new_values(&self, id: FrameId, changes: &[Change]) -> Result<Value, Failure> {
        let own = self.data.frames.get(&id).and_then(|it| it.store.as_ref());
        let types = Types::default();
        let (mut store, bounds) = match own {
            Some(store) => (
                store.clone(),
                Bounds {
                    types: &types,
                    ..self.bounds
                },
            ),
            None => (self.data.store.clone(), self.bounds),
        };
        store.apply(changes, bounds)?;
        let fields = changes.iter().filter_map(|change| {
            let field = change.path.first()?;
            let value = store.get(store.home(change.tier, field), field)?;
            Some((field.as_str(), value.clone()))
        });
        Ok(Value::map(fields))
    }

    /// An error when a path that only the run can tell leads to a computed field: what is written
    /// there would never be read.
    pub(super) fn may_write(
        &self,
        id: FrameId,
        written: &StatePath,
        path: &[String],
    ) -> Result<(), Failure> {
        let has_own = |frame: &Frame| frame.store.is_some();
        // The check has seen what is written out.
        let is_known = matches!(written.segments.first(), Some(Template::Literal(_)));
        let field = path.first().map_or("", String::as_str);
        if !is_known && path.len() > 1 && matches!(field, "this" | "inputs") {
            let message = format!(
                "`{}` cannot be written: `{field}` is for reading; write the name of a field",
                path.join(".")
            );
            return Err(Failure::new(FailureKind::State, message));
        }
        if is_known
            || self.dependents.index(field).is_none()
            || self.data.frames.get(&id).is_some_and(has_own)
        {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::State,
            format!(
                "`{field}` is computed and cannot be written; write the fields it is made from"
            ),
        ))
    }

    /// Applies a batch to the state a frame works on, and recomputes what depends on it.
    pub(super) fn change(&mut self, id: FrameId, changes: &[Change]) -> Result<(), Failure> {
        let bounds = self.bounds;
        for field in changes.iter().filter_map(|change| change.path.first()) {
            if self.is_included(id, field) {
                let message = format!(
                    "`{field}` is computed by a workflow that is included, and cannot be written; \
                     give what is written another name"
                );
                return Err(Failure::new(FailureKind::State, message));
            }
        }
        let own = self.data.frames.get_mut(&id);
        match own.and_then(|frame| frame.store.as_mut()) {
            // The state of a task has no declared types.
            Some(store) => {
                let types = &Types::default();
                store.apply(changes, Bounds { types, ..bounds }).map(drop)
            }
            None => {
                let written = self.data.store.apply(changes, bounds)?;
                self.recompute(Changed::Written(&written));
                self.data.evaluations += 1;
                Ok(())
            }
        }
    }

    /// Whether a name means a computed field of a workflow that was included, and nothing else, in
    /// the state that a frame works on.
    fn is_included(&self, id: FrameId, field: &str) -> bool {
        let frame = self.data.frames.get(&id);
        match frame.and_then(|frame| Some((frame, frame.store.as_ref()?))) {
            Some((frame, store)) => {
                frame.included.contains_key(field)
                    && !store.raw.contains_key(field)
                    && !store.state.contains_key(field)
            }
            None => self.dependents.index(field).is_none() && self.data.is_included(field),
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
        let mut failure = failure.at(&node.id);
        if let Some(fallback) = &node.fallback_value {
            match self.fall_back(id, index, node, fallback, &failure) {
                Ok(next) => return next,
                // What takes its place cannot be had or written either: the step has failed.
                Err(other) => failure = failure.with("its `fallback_value` has no effect", &other),
            }
        }
        // Where how a command ended cannot be written, that it failed is still what is handled.
        let _ = self.write_exit(id, node, &result);
        if let Err(other) = self.write_error(id, node, &failure, &result) {
            failure = failure.with("its `error_state_update` has no effect", &other);
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

    /// Gives a failed step another result.
    fn fall_back(
        &mut self,
        id: FrameId,
        index: u16,
        node: &Node,
        fallback: &Template,
        failure: &Failure,
    ) -> Result<Next, Failure> {
        let error = failure.to_value();
        let extras = Extras {
            error: Some(&error),
            ..Extras::default()
        };
        let value = self.render(id, node, fallback, extras)?;
        if !matches!(node.kind, Kind::SetState) {
            return self.settle_success(id, index, value);
        }
        // Nothing was set; what stands beside that is written with the other result.
        let beside: Vec<Write> = node.writes.iter().filter(|it| it.beside).cloned().collect();
        self.write(id, node, &beside, Some(&value), None, false)?;
        let settled = Settled {
            outcome: Outcome::Success,
            result: value,
            error: None,
        };
        Ok(self.settle(id, index, settled))
    }

    /// Writes the whole result of a command that failed to where its result goes: how it ended is
    /// data too.
    fn write_exit(&mut self, id: FrameId, node: &Node, result: &Value) -> Result<(), Failure> {
        let Kind::Shell(shell) = &node.kind else {
            return Ok(());
        };
        // One that says what to write on failure writes that.
        let says = !node.error_writes.is_empty();
        if says || shell.output != OutputFormat::Result || result.get("exit_code").is_none() {
            return Ok(());
        }
        let captures = node.writes.iter().filter(|write| write.value.is_none());
        let captures: Vec<Write> = captures.cloned().collect();
        let node = Node {
            writes: captures.into(),
            ..node.clone()
        };
        self.write_result(id, &node, result.clone(), false)
            .map(drop)
    }

    /// Writes what a failed step is to write.
    pub(super) fn write_error(
        &mut self,
        id: FrameId,
        node: &Node,
        failure: &Failure,
        result: &Value,
    ) -> Result<(), Failure> {
        if node.error_writes.is_empty() {
            return Ok(());
        }
        let error = failure.to_value();
        let writes = &node.error_writes;
        self.write(id, node, writes, Some(result), Some(&error), false)
            .map(drop)
    }

    /// Chooses the edge of a settled step.
    pub(super) fn settle(&mut self, id: FrameId, index: u16, settled: Settled) -> Next {
        let Some(node) = self.node(id, index) else {
            return Next::Over;
        };
        self.track(id, node, settled.error.as_ref());
        if self.graph.form == Form::States && id == ROOT {
            self.remember(node, &settled);
        }
        self.edges(id, index, node, settled, 0)
    }

    /// Tries edges from one on.
    pub(super) fn edges(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        settled: Settled,
        from: usize,
    ) -> Next {
        // Shared, so that the settled step can still be handed on.
        let result = settled.seen();
        let patterns = self.patterns;
        let extras = Extras {
            result: Some(&result),
            ..Extras::default()
        };
        let sought = patterns.sought(&node.edges, &result, |pattern| {
            let written = self.render(id, node, pattern, extras);
            written.ok().map(|value| plain(&value))
        });
        let sought = match sought {
            Ok(sought) => sought,
            Err(failure) => return self.guard_failed(id, node, &settled, failure),
        };
        let mut at = from;
        while let Some(edge) = node.edges.get(at) {
            match &edge.guard {
                Guard::Judged(_) => return self.ask_judgement(id, index, node, settled, at),
                Guard::When(condition) => match self.holds(id, node, condition, &settled, sought) {
                    Ok(true) => return self.follow(id, node, edge, &settled),
                    Ok(false) => {}
                    Err(failure) => return self.guard_failed(id, node, &settled, failure),
                },
                guard if guard.holds_for(settled.outcome) => {
                    return self.follow(id, node, edge, &settled);
                }
                _ => {}
            }
            at += 1;
        }
        let failed = settled.error.is_some();
        let failure = self.no_way(id, node, settled);
        if let Some(frame) = self.data.frames.get_mut(&id) {
            frame.step = None;
        }
        if failed {
            self.unhandled(id, index, failure)
        } else {
            self.fail_frame(id, failure)
        }
    }

    /// A transition cannot be decided. That is not a failure of what the step did.
    fn guard_failed(
        &mut self,
        id: FrameId,
        node: &Node,
        settled: &Settled,
        failure: Failure,
    ) -> Next {
        let failure = failure.at(&node.id);
        if settled.outcome == Outcome::Success {
            self.abandon(id, Ending::Stuck(failure.message.clone()));
        }
        self.fail_frame(id, failure)
    }

    /// Why nothing leads on from a settled step.
    fn no_way(&self, id: FrameId, node: &Node, settled: Settled) -> Failure {
        let (word, way) = match settled.outcome {
            Outcome::Timeout => ("timeout", "`on_timeout`, or a transition for `timeout`"),
            Outcome::Failure => ("failure", "a transition for `failure`"),
            _ => ("success", "a transition for `always`"),
        };
        let frame = self.data.frames.get(&id);
        let is_state = self.graph.form == Form::States
            && frame.is_some_and(|frame| frame.body == BodyRef::Main);
        // A final state has no transition that could be missing.
        let is_final = node.edges.iter().all(|edge| edge.to == Target::Complete);
        match settled.error {
            Some(failure) if !is_state || is_final => failure,
            Some(failure) => {
                let named = format!("`{}`: ", node.id);
                let message = &failure.message;
                let said = message.strip_prefix(&named).unwrap_or(message);
                // What a called run has failed with says it for its own state.
                let way = match said.ends_with(LEADS_ON) {
                    true => String::new(),
                    false => format!("; {way}{LEADS_ON}"),
                };
                let message = format!(
                    "`{}` ended in {word}, and no transition of it holds: {said}{way}",
                    node.id
                );
                Failure { message, ..failure }
            }
            None => {
                let patterns = decisive(&node.edges).take(PATTERNS);
                let patterns: Vec<String> = patterns.map(|it| format!("`{}`", shown(it))).collect();
                let missed = match patterns.is_empty() {
                    true => String::new(),
                    false => format!(": what it gave has no match of {}", patterns.join(", ")),
                };
                let message = format!(
                    "`{}` ended in {word}, and no transition of it holds{missed}; {way}{LEADS_ON}",
                    node.id
                );
                Failure::new(FailureKind::NoTransition, message).at(&node.id)
            }
        }
    }

    pub(super) fn follow(
        &mut self,
        id: FrameId,
        node: &Node,
        edge: &Edge,
        settled: &Settled,
    ) -> Next {
        let ending = match (&settled.error, settled.outcome) {
            (Some(failure), Outcome::Timeout) => Ending::Timeout(failure.message.clone()),
            (None, Outcome::Timeout) => Ending::Timeout("it did not end in time".to_owned()),
            (Some(failure), _) => Ending::Failure(failure.message.clone()),
            (None, _) => Ending::Success,
        };
        self.left(id, node, ending, edge.to);
        if let (Some(failure), Guard::Failure, Form::Steps) =
            (&settled.error, &edge.guard, self.graph.form)
            && self.graph.on_error.action == ErrorAction::Continue
            && let Err(uncollected) = self.collect_error(failure)
        {
            // Going on would hide that there was an error at all.
            return self.fail_frame(id, failure.with(UNCOLLECTED, &uncollected));
        }
        Next::Go(edge.to)
    }

    pub(super) fn ask_judgement(
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
        self.remember_first(id, &node.id, action.id);
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
        let states =
            edges.iter().map(
                |at| match node.edges.get(usize::from(*at)).map(|edge| edge.to) {
                    Some(Target::Node(to)) => self.node(id, to).map_or("", |node| &node.id),
                    Some(Target::Complete) | None => "",
                },
            );
        let edge = match choice(answer, states) {
            Choice::One(index) => edges.get(index).copied(),
            Choice::None | Choice::Unknown => None,
        };
        match edge.and_then(|at| node.edges.get(usize::from(at))) {
            Some(edge) => self.follow(id, node, edge, &settled),
            None => {
                let last = edges.last().copied().unwrap_or_default();
                self.edges(id, index, node, settled, usize::from(last) + 1)
            }
        }
    }

    pub(super) fn holds(
        &mut self,
        id: FrameId,
        node: &Node,
        condition: &Condition,
        settled: &Settled,
        sought: Sought<'_>,
    ) -> Result<bool, Failure> {
        let seen = settled.seen();
        let extras = Extras {
            result: Some(&seen),
            ..Extras::default()
        };
        Ok(match condition {
            Condition::Always => true,
            Condition::Success(wanted) => (settled.outcome == Outcome::Success) == *wanted,
            Condition::TimedOut(wanted) => (settled.outcome == Outcome::Timeout) == *wanted,
            Condition::PatternMatch(pattern) => {
                let pattern = self.pattern(id, node, pattern, extras)?;
                self.patterns.holds(&pattern, true, sought)?
            }
            Condition::PatternNotMatch(pattern) => {
                let pattern = self.pattern(id, node, pattern, extras)?;
                self.patterns.holds(&pattern, false, sought)?
            }
            Condition::FieldEquals(field, template) => {
                let wanted = self.render(id, node, template, extras)?;
                settled.field(field) == wanted
            }
            Condition::FieldContains(field, template) => {
                let wanted = plain(&self.render(id, node, template, extras)?);
                plain(&settled.field(field)).contains(&wanted)
            }
            Condition::Expression(expression) => self.test(id, node, expression, extras)?,
            Condition::All(all) => {
                for one in all.iter() {
                    if !self.holds(id, node, one, settled, sought)? {
                        return Ok(false);
                    }
                }
                true
            }
            Condition::Any(any) => {
                for one in any.iter() {
                    if self.holds(id, node, one, settled, sought)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::None(none) => {
                for one in none.iter() {
                    if self.holds(id, node, one, settled, sought.negated())? {
                        return Ok(false);
                    }
                }
                true
            }
        })
    }

    /// The text of a pattern.
    fn pattern<'t>(
        &mut self,
        id: FrameId,
        node: &Node,
        pattern: &'t Template,
        extras: Extras<'_>,
    ) -> Result<Cow<'t, str>, Failure> {
        match constant(pattern) {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => Ok(Cow::Owned(plain(&self.render(id, node, pattern, extras)?))),
        }
    }

    /// Variables that a state sets when it ends: whether it succeeded and why not, the fields of its
    /// result, and the standard ones.
    pub(super) fn remember(&mut self, node: &Node, settled: &Settled) {
        self.forget_fields(node);
        let success = settled.succeeded();
        let error = Value::text(settled.reason());
        let standing = [("success", &success), ("error", &error)];
        let result = settled.result.as_map();
        let fields = result.into_iter().flat_map(|result| &result.0);
        let fields = fields
            .map(|(field, value)| (field.as_ref(), value))
            .filter(|(field, value)| **value != Value::Null && !STANDING.contains(field))
            .chain(standing);
        for (field, value) in fields {
            let mut standard = flow_model::tools::STANDARD_VARIABLES.iter();
            // `session_id` is the run's session, not that of the last result.
            if let Some(standard) = standard.find(|variable| variable.field == field)
                && field != "session_id"
            {
                let name = Arc::from(standard.name);
                self.data.variables.insert(name, value.clone());
            }
            let name = Arc::from(format!("{}_{field}", node.id));
            self.data.variables.insert(name, value.clone());
        }
    }

    /// What an earlier result of a state has set is not that of its last one.
    fn forget_fields(&mut self, node: &Node) {
        let own = format!("{}_", node.id);
        let states = &self.graph.body.nodes;
        let given = &self.data.start.variables;
        let is_own = |name: &str| {
            let longer = |other: &Node| {
                let rest = name.strip_prefix(other.id.as_ref());
                other.id.len() > node.id.len() && rest.is_some_and(|it| it.starts_with('_'))
            };
            name.starts_with(&own) && given.get(name).is_none() && !states.iter().any(longer)
        };
        self.data.variables.retain(|name, _| !is_own(name));
    }
}

impl Settled {
    /// Whether it succeeded, in the words of the tool where it has some: an await that has waited
    /// for nothing has done what it was asked to.
    fn succeeded(&self) -> Value {
        let own = self.result.get("success");
        match (self.outcome, own) {
            (Outcome::Failure, _) => Value::Bool(false),
            (_, Some(Value::Bool(own))) => Value::Bool(*own),
            (Outcome::Success, _) => Value::Bool(true),
            _ => Value::Bool(false),
        }
    }

    /// Why it failed, or was too late; empty where it did neither.
    fn reason(&self) -> &str {
        let own = self.result.get("error").and_then(Value::as_str);
        let failure = self.error.as_ref().map(|failure| failure.message.as_str());
        own.filter(|own| !own.is_empty())
            .or(failure)
            .unwrap_or_default()
    }

    /// The result as conditions see it: one of a failure says so.
    fn seen(&self) -> Value {
        match &self.result {
            Value::Map(map) if self.error.is_some() => {
                let mut map = (**map).clone();
                for field in STANDING {
                    map.0.insert(Arc::from(field), self.field(field));
                }
                Value::Map(map.into())
            }
            other => other.clone(),
        }
    }

    /// A field of the result, or one of those that every state has.
    fn field(&self, field: &str) -> Value {
        match (field, self.result.get(field)) {
            ("success", _) => self.succeeded(),
            ("error", None | Some(Value::Null)) if self.error.is_some() => {
                Value::text(self.reason())
            }
            (_, own) => own.cloned().unwrap_or_default(),
        }
    }
}

/// Fields that every state has when it ends.
const STANDING: [&str; 2] = ["success", "error"];

/// Whether a template says the same with and without a result: bare names may be its fields.
fn needs_no_result(template: &Template) -> bool {
    let known = [
        "inputs", "state", "raw", "computed", "this", "item", "loop", "env", "run",
    ];
    roots(template).iter().all(|root| known.contains(&&**root))
}

/// Where a judgement may name what it names.
const NAMED: [&str; 4] = ["choice", "next_state", "state", "index"];

/// What a judgement names: an index or a state; null says that none holds.
fn chosen(answer: &Value) -> Option<&Value> {
    match answer {
        Value::Map(_) => NAMED
            .iter()
            .find_map(|field| answer.get(field))
            .and_then(chosen),
        other => Some(other),
    }
}

/// Which of some states a judgement names, in their order.
fn choice<'s>(answer: &Value, states: impl Iterator<Item = &'s str>) -> Choice {
    let states: Vec<&str> = states.collect();
    let index = match chosen(answer) {
        Some(Value::Null) => return Choice::None,
        Some(Value::Int(index)) => usize::try_from(*index).ok(),
        Some(Value::Str(name)) => {
            let named = states.iter().position(|state| *state == name.trim());
            named.or_else(|| name.trim().parse().ok())
        }
        _ => None,
    };
    match index.filter(|index| *index < states.len()) {
        Some(index) => Choice::One(index),
        None => Choice::Unknown,
    }
}

/// What a judgement says.
enum Choice {
    /// This one holds.
    One(usize),
    /// None holds.
    None,
    /// Nothing that was asked about.
    Unknown,
}

/// Whether an answer names one of the choices, or says that none holds.
pub(super) fn is_judgement(choices: &[(String, String)], answer: &Value) -> bool {
    let states = choices.iter().map(|(_, state)| state.as_str());
    !matches!(choice(answer, states), Choice::Unknown)
}
