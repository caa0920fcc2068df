//! Fan-out: a task once per item, each in a frame of its own.

use std::collections::{BTreeMap, BTreeSet};

use flow_model::grammar::MAX_TASK_DEPTH;
use flow_model::graph::{FanOut, Node, Runner};

use super::event::{ActionId, Failure, FailureKind};
use super::frame::{BodyRef, Children, FrameId, Item, OwnPrompt, Waits};
use super::machine::{Extras, Machine, Next, plain};
use super::name::Names;
use super::origin::reads_item;
use crate::value::Value;

/// How many of the tasks around a step a message names.
const SHOWN_TASKS: usize = 4;

impl<'r> Machine<'r> {
    /// Starts the children of a fan-out.
    pub(super) fn fan_out(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        fan: &'r FanOut,
    ) -> Result<Next, Failure> {
        if let Some(children) = self.take_children(id, index) {
            self.fan_out_again(id, index, node, fan, children);
            return Ok(Next::Wait);
        }
        let items = self.items(id, node, &fan.items)?;
        let count = items.as_list().map_or(0, <[Value]>::len);
        if count == 0 {
            return self.settle_success(id, index, Value::list([]));
        }
        self.may_nest(id, node, fan)?;
        let prompt = self.sub_agents_prompt(id, node, fan, &items)?;
        let tasks = self.number_tasks(id, node);
        let number = tasks.unwrap_or_else(|| self.note_fan_out(id, node));
        let names = Names {
            graph: self.graph,
            data: self.data,
        };
        let name = names.of(id, node, number);
        let children = Children {
            items,
            waiting: (0..count).collect(),
            running: BTreeMap::new(),
            handed: BTreeMap::new(),
            results: BTreeMap::new(),
            failures: BTreeMap::new(),
            retries: BTreeMap::new(),
            stopped: false,
            begun: false,
            collected: BTreeSet::new(),
            uncollected: None,
            parked: BTreeMap::new(),
            tasks,
            name,
            prompt,
        };
        self.wait(id, index, Waits::Children(Box::new(children)));
        self.go_on(id, index, node, fan);
        Ok(Next::Wait)
    }

    /// The children that have not given a result go on, or begin.
    fn fan_out_again(
        &mut self,
        id: FrameId,
        index: u16,
        node: &'r Node,
        fan: &'r FanOut,
        mut children: Box<Children>,
    ) {
        children.tasks = self.number_tasks(id, node);
        let names = Names {
            graph: self.graph,
            data: self.data,
        };
        if let Some(tasks) = children.tasks {
            children.name = names.of(id, node, tasks);
        }
        self.wait(id, index, Waits::Children(children));
        self.go_on(id, index, node, fan);
    }

    /// What the author tells sub-agents, made before any task is handed out.
    fn sub_agents_prompt(
        &mut self,
        id: FrameId,
        node: &Node,
        fan: &FanOut,
        items: &Value,
    ) -> Result<Option<OwnPrompt>, Failure> {
        let by_step = self.data.start.agent_driven && fan.is_delegated();
        let (true, Some(prompt), Runner::SubAgent) = (by_step, &fan.prompt, &fan.runner) else {
            return Ok(None);
        };
        if !reads_item(prompt) {
            let rendered = self.render(id, node, prompt, Extras::default())?;
            return Ok(Some(OwnPrompt::Shared(plain(&rendered))));
        }
        let items = items.as_list().unwrap_or_default();
        let mut prompts = Vec::with_capacity(items.len());
        for (index, value) in items.iter().enumerate() {
            let item = Item {
                value: value.clone(),
                index,
                length: items.len(),
            };
            let extras = Extras {
                item: Some(&item),
                ..Extras::default()
            };
            prompts.push(plain(&self.render(id, node, prompt, extras)?));
        }
        Ok(Some(OwnPrompt::OfItems(prompts)))
    }

    /// Tasks run inside tasks only so deep.
    fn may_nest(&self, id: FrameId, node: &Node, fan: &FanOut) -> Result<(), Failure> {
        let name = |body: BodyRef| match body {
            BodyRef::Task(task) | BodyRef::Cleanup(task) => self
                .graph
                .tasks
                .get(usize::from(task))
                .map(|task| task.name.as_ref()),
            BodyRef::Main | BodyRef::OnError => None,
        };
        let mut frame = self.data.frames.get(&id);
        let mut around = Vec::new();
        while let Some(here) = frame {
            around.extend(name(here.body));
            let parent = here.parent.map(|parent| parent.frame);
            frame = parent.and_then(|parent| self.data.frames.get(&parent));
        }
        if around.len() < MAX_TASK_DEPTH {
            return Ok(());
        }
        let mut chain: Vec<&str> = around.into_iter().take(SHOWN_TASKS).collect();
        chain.reverse();
        chain.extend(name(BodyRef::Task(fan.task)));
        let message = format!(
            "`{}` would run tasks more than {MAX_TASK_DEPTH} deep inside each other: … → {}; lead \
             into a task again only under a condition that ends",
            node.id,
            chain.join(" → ")
        );
        Err(Failure::new(FailureKind::Limit, message).at(&node.id))
    }

    pub(super) fn children(&mut self, id: FrameId) -> Option<&mut Children> {
        match &mut self.data.frames.get_mut(&id)?.step.as_mut()?.waits {
            Waits::Children(children) => Some(children),
            _ => None,
        }
    }

    /// Starts as many waiting items as may run at once.
    pub(super) fn start_children(&mut self, id: FrameId, node: &'r Node, fan: &'r FanOut) {
        // Sub-agents begin their tasks themselves.
        if self.data.start.agent_driven && fan.is_delegated() {
            return;
        }
        let limit = fan.at_once(&self.graph.limits);
        loop {
            let Some(children) = self.children(id) else {
                return;
            };
            if children.stopped || children.running.len() >= limit {
                return;
            }
            let Some(item) = children.waiting.pop_front() else {
                return;
            };
            self.begin_child(id, node, fan, item);
        }
    }

    /// The number of a fan-out, by which its tasks are named in a run that an agent drives.
    fn number_tasks(&mut self, id: FrameId, node: &Node) -> Option<ActionId> {
        if !self.data.start.agent_driven {
            return None;
        }
        let tasks = self.next_action();
        self.data.waiting.insert(tasks, id);
        self.remember_first(id, &node.id, tasks);
        Some(tasks)
    }

    /// What tells a fan-out from an earlier one of the same step, in a run that no agent drives: it
    /// has no number of its own there.
    fn note_fan_out(&mut self, id: FrameId, node: &Node) -> ActionId {
        let keeper = self.data.keeper(id);
        let frame = self.data.frames.get(&keeper);
        if frame.is_some_and(|frame| frame.first.contains_key(&*node.id)) {
            return ActionId(self.data.next_action);
        }
        self.remember_first(id, &node.id, ActionId(0));
        ActionId(0)
    }

    /// Remembers what a node hands out first.
    pub(super) fn remember_first(&mut self, id: FrameId, node: &str, action: ActionId) {
        let keeper = self.data.keeper(id);
        if let Some(frame) = self.data.frames.get_mut(&keeper)
            && !frame.first.contains_key(node)
        {
            frame.first.insert(node.to_owned(), action);
        }
    }

    /// The fan-out of a number, with the frame it is a step of.
    fn tasks(&self, tasks: ActionId) -> Option<(FrameId, u16)> {
        let id = *self.data.waiting.get(&tasks)?;
        let step = self.data.frames.get(&id)?.step.as_ref()?;
        match &step.waits {
            Waits::Children(children) if children.tasks == Some(tasks) => Some((id, step.node)),
            _ => None,
        }
    }

    pub(super) fn is_tasks(&self, tasks: ActionId) -> bool {
        self.tasks(tasks).is_some()
    }

    /// A sub-agent has begun a task.
    pub(super) fn taken(&mut self, tasks: ActionId, item: usize) {
        let Some((id, index)) = self.tasks(tasks) else {
            return;
        };
        let Some(node) = self.node(id, index) else {
            return;
        };
        let flow_model::graph::Kind::FanOut(fan) = &node.kind else {
            return;
        };
        let Some(children) = self.children(id) else {
            return;
        };
        // Most are taken from the front.
        let queued = children.waiting.iter().position(|waiting| *waiting == item);
        if let Some(queued) = queued {
            children.begun = true;
            children.waiting.remove(queued);
            self.begin_child(id, node, fan, item);
            self.go_on(id, index, node, fan);
        }
    }

    /// Whoever drives the run cannot have its tasks done.
    pub(super) fn fail_tasks(&mut self, tasks: ActionId, failure: Failure) {
        let Some((id, index)) = self.tasks(tasks) else {
            return;
        };
        // Whoever says so is not told that it is no longer wanted.
        self.data.waiting.remove(&tasks);
        self.stop_step(id);
        let next = match (failure.is_refusal(), self.node(id, index)) {
            (true, Some(node)) => self.fail_frame(id, failure.at(&node.id)),
            _ => self.attempt_failed(id, index, failure, Value::Null),
        };
        if let Next::Go(to) = next {
            self.go(id, to);
            self.data.ready.push_back(id);
        }
    }
}
