//! Time: timers that run out, and how long a run may take.

use super::action::seconds_for;
use super::effect::{Deed, Effect, Ending, Status};
use super::event::{ActionId, Failure, FailureKind};
use super::frame::{BodyRef, Frame, ROOT, Waits};
use super::machine::Machine;
use super::time;
use crate::value::Value;

impl Machine<'_> {
    pub(super) fn woke(&mut self, timer: ActionId) {
        if self.data.limit.is_some_and(|(limit, _)| limit == timer) {
            self.data.limit = None;
            // There is no time left to begin again.
            self.data.again = true;
            let failure = Failure::new(FailureKind::TimeLimit, self.too_long());
            // A contract that was being looked up has not held in time.
            let root = self.data.frames.get(&ROOT);
            let asked = match root.and_then(|root| root.step.as_ref()).map(|it| &it.waits) {
                Some(Waits::Environment { action, .. }) => Some(&action.what),
                _ => None,
            };
            if let Some(Deed::Environment { side, .. }) = asked {
                self.environment_lost(*side, &failure);
                return;
            }
            // Failure steps that run out of time do not begin again.
            let is_cleaning = |frame: &Frame| frame.body == BodyRef::OnError;
            let mut frames = self.data.frames.iter();
            let cleaning = frames.find(|(_, frame)| is_cleaning(frame));
            let id = cleaning.map_or(ROOT, |(id, _)| *id);
            // Its time has run out, not that of the step under way.
            self.abandon(id, Ending::Stopped);
            self.fail_frame(id, failure);
            return;
        }
        if self.container_woke(timer) {
            return;
        }
        let slept = self.awaited(timer, |waits| {
            matches!(
                waits,
                Waits::Time { .. } | Waits::Pause { .. } | Waits::Again { .. }
            )
        });
        let Some((id, step)) = slept else {
            return;
        };
        match step.waits {
            Waits::Time { seconds, .. } => {
                let result = Value::map([
                    ("resumed", Value::Bool(true)),
                    ("duration", Value::number(seconds)),
                ]);
                let next = match self.settle_success(id, step.node, result) {
                    Ok(next) => next,
                    Err(failure) => self.failed(id, step.node, failure, Value::Null),
                };
                self.move_on(id, next);
            }
            Waits::Pause { action, .. } => {
                let mut again = *action;
                let allowed = self
                    .node(id, step.node)
                    .and_then(|node| seconds_for(node, &again.what));
                again.attempt += 1;
                again.id = self.next_action();
                // The key of a call says which run it is, and the one before has failed.
                if let Deed::Call { .. } = again.what {
                    again.key = self.key(again.id);
                }
                again.deadline = allowed.map(|seconds| time::after(self.at, seconds));
                self.dispatch(id, step.node, again);
            }
            // It stands before its container.
            Waits::Again { .. } => self.data.ready.push_back(id),
            Waits::Action(_)
            | Waits::Turn(_)
            | Waits::Judgement { .. }
            | Waits::Environment { .. }
            | Waits::Children(_) => {}
        }
    }

    /// That the time of the run is up: where it was, and how it gets more.
    fn too_long(&self) -> String {
        let seconds = self.limit_seconds().unwrap_or_default();
        let (given, way) = match self.data.start.timeout {
            Some(_) => (
                "the `execution_timeout` it was started with",
                "start it with a longer one (`--timeout` on the command line)",
            ),
            None => (
                "its `limits.timeout`",
                "raise that in the definition, or start it with a longer `--timeout` on the command line",
            ),
        };
        let root = self.data.frames.get(&ROOT);
        let step = root.and_then(|root| root.step.as_ref());
        let node = step.and_then(|step| self.node(ROOT, step.node));
        let place = match node {
            Some(node) => format!(" at `{}`", node.id),
            None => String::new(),
        };
        format!("the run took longer than {seconds} s, {given}, and was stopped{place}; {way}")
    }

    /// Seconds the run may take.
    pub(super) fn limit_seconds(&self) -> Option<f64> {
        self.data.start.timeout.or(self.graph.limits.timeout)
    }

    /// When the time of the run is up, if nothing more of it is spared.
    pub(super) fn time_limit(&self) -> Option<u64> {
        let limit = (self.limit_seconds()? * 1000.0) as u64;
        let set = self.data.limit.map(|(_, until)| until);
        Some(set.unwrap_or_else(|| self.at.saturating_add(limit.saturating_sub(self.data.used))))
    }

    /// Keeps the clock of `limits.timeout`: it stands still while only people or agents are waited
    /// for.
    pub(super) fn count_time(&mut self) {
        let Some(limit) = self.limit_seconds() else {
            return;
        };
        if self.data.status != Status::Running {
            return;
        }
        let limit = (limit * 1000.0) as u64;
        let agent_driven = self.data.start.agent_driven;
        let is_persons = |frame: &Frame| match frame.step.as_ref().map(|step| &step.waits) {
            Some(Waits::Action(action)) if agent_driven => action.what.is_for_agent(),
            Some(Waits::Action(action)) => matches!(
                action.what,
                Deed::Prompt { .. } | Deed::Delegate { .. } | Deed::DelegateItem { .. }
            ),
            Some(Waits::Judgement { .. } | Waits::Children(_)) => true,
            Some(
                Waits::Turn(_)
                | Waits::Pause { .. }
                | Waits::Again { .. }
                | Waits::Time { .. }
                | Waits::Environment { .. },
            )
            | None => false,
        };
        let waits_for_people = self.data.resting || self.data.frames.values().all(is_persons);
        match (self.data.counting_since, waits_for_people) {
            (None, false) => {
                self.data.counting_since = Some(self.at);
                let timer = self.next_action();
                let until = self.at.saturating_add(limit.saturating_sub(self.data.used));
                self.data.limit = Some((timer, until));
                self.effects.push(Effect::Sleep { timer, until });
            }
            (Some(since), true) => {
                self.data.used += self.at.saturating_sub(since);
                self.data.counting_since = None;
                if let Some((timer, _)) = self.data.limit.take() {
                    self.effects.push(Effect::Stop(timer));
                }
            }
            (Some(_), false) | (None, true) => {}
        }
    }
}
