//! What an agent that drives a run is handed: steps and tasks, each by a name.

use flow_model::graph::{Body, By, FanOut, Graph, Kind, Node, Task};

use super::effect::{Action, Deed, Status};
use super::event::{ActionId, Failure};
use super::frame::{Child, Children, Frame, FrameId, ROOT, Waits};
use super::name::{Names, first_in, node_of, of_item};
use super::past::PastCall;
use super::time::after;
use super::{Data, Refusal, Run};
use crate::secret;
use crate::value::Value;

/// Parts of a name that are looked at: tasks within tasks, and a call.
const DEEPEST: usize = 8;

impl Deed {
    /// Whether it is the agent's to do where an agent drives the run. Commands and calls with
    /// secrets are not: nobody but the host learns those.
    #[must_use]
    pub fn is_for_agent(&self) -> bool {
        match self {
            Deed::Shell { by, .. } => match by {
                By::Host | By::Agent => !self.has_secrets(),
                By::Server => false,
            },
            Deed::Tool { builtin, .. } => !builtin && !self.has_secrets(),
            Deed::Prompt { .. }
            | Deed::Delegate { .. }
            | Deed::DelegateItem { .. }
            | Deed::Judge { .. } => true,
            Deed::Call { .. } | Deed::Environment { .. } => false,
        }
    }

    /// Whether it is done with secrets: by the host, and by nobody who does not know them.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        match self {
            Deed::Shell {
                env,
                working_directory,
                ..
            } => {
                let mut texts = env.iter().map(|(_, value)| value).chain(working_directory);
                texts.any(|it| secret::concerns(it))
            }
            Deed::Tool { parameters, .. } => secret::concerns_value(parameters),
            Deed::Prompt { .. }
            | Deed::Delegate { .. }
            | Deed::DelegateItem { .. }
            | Deed::Judge { .. }
            | Deed::Call { .. }
            | Deed::Environment { .. } => false,
        }
    }
}

impl Deed {
    /// Whether somebody is asked for something, whoever hosts the run.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        match self {
            Deed::Prompt { .. }
            | Deed::Judge { .. }
            | Deed::Delegate { .. }
            | Deed::DelegateItem { .. } => true,
            Deed::Shell { .. }
            | Deed::Tool { .. }
            | Deed::Call { .. }
            | Deed::Environment { .. } => false,
        }
    }

    /// Whether its time runs on while nobody drives the run: somebody is waited for, or a run that
    /// was called, which goes on from where it was. All else begins again, and so does its time.
    #[must_use]
    pub const fn runs_on(&self) -> bool {
        self.is_asked() || matches!(self, Deed::Call { .. })
    }

    /// Whether a person is asked; whoever answers first is heard.
    #[must_use]
    pub const fn asks_person(&self) -> bool {
        match self {
            Deed::Prompt { .. } | Deed::Judge { .. } => true,
            Deed::Delegate { .. }
            | Deed::DelegateItem { .. }
            | Deed::Shell { .. }
            | Deed::Tool { .. }
            | Deed::Call { .. }
            | Deed::Environment { .. } => false,
        }
    }
}

/// The part of a run that one agent works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All but what sub-agents do.
    Main,
    /// One task of a fan-out.
    Task {
        /// The fan-out.
        tasks: ActionId,
        /// The index of the item.
        item: usize,
    },
}

/// What a part of a run waits for.
#[derive(Debug, Default)]
pub struct Handouts<'a> {
    /// Everything that somebody has to do, in the order it came up.
    pub steps: Vec<Handout<'a>>,
    /// Fan-outs whose tasks have been begun, in the order they came up.
    pub under_way: Vec<Tasks<'a>>,
    /// The earliest time that is waited for, in milliseconds since 1970.
    pub wakes: Option<u64>,
    /// Whether something waits for its turn, or goes on by itself.
    pub goes_on: bool,
    /// Whether something waits for its turn: others have to end before it can begin.
    pub queued: bool,
}

/// Something that somebody has to do.
#[derive(Clone, Copy, Debug)]
pub enum Handout<'a> {
    /// An action.
    Action(&'a Action),
    /// Tasks for sub-agents.
    Tasks(Tasks<'a>),
}

/// A fan-out whose tasks sub-agents do.
#[derive(Clone, Copy, Debug)]
pub struct Tasks<'a> {
    /// Its number.
    pub id: ActionId,
    /// The frame it is a step of.
    pub frame: FrameId,
    /// Its node.
    pub node: &'a Node,
    /// What the node says.
    pub fan: &'a FanOut,
    /// The task.
    pub task: &'a Task,
    /// How far it is.
    pub children: &'a Children,
}

/// Whom a name belongs to.
#[derive(Debug)]
pub enum Named<'a> {
    /// An action that waits for its result.
    Action(&'a Action),
    /// Tasks under way.
    Tasks(Tasks<'a>),
    /// A step, by this name, of the workflow that this action calls.
    Called(&'a Action, &'a str),
    /// A step that waits for its turn, or for its next attempt: nobody has it.
    Later,
    /// A step that is over.
    Past,
    /// Nothing.
    Nobody,
}

/// Whom the name of a task belongs to.
#[derive(Debug)]
pub enum NamedTask<'a> {
    /// A task of a fan-out under way.
    Task(Part, TaskState<'a>),
    /// A task, by this name, of the workflow that this action calls.
    Called(&'a Action, &'a str),
    /// A task, by this name, of a workflow that was called and is over, under the number of the
    /// call.
    CalledBefore(ActionId, &'a PastCall, &'a str),
    /// A task of a fan-out that is over.
    Past(TaskState<'a>),
    /// A task of something that is over, and that is no longer remembered.
    Forgotten,
    /// Nothing.
    Nobody,
}

/// How a task stands.
#[derive(Debug)]
pub enum TaskState<'a> {
    /// Nobody has begun it.
    Open {
        /// Whether it may be begun now.
        free: bool,
    },
    /// A sub-agent does it.
    Begun,
    /// It gave this; none where that is no longer remembered.
    Completed(Option<&'a Value>),
    /// It failed.
    Failed(&'a Failure),
    /// It was stopped.
    Stopped,
}

impl Handouts<'_> {
    fn wake(&mut self, at: u64) {
        self.wakes = Some(self.wakes.map_or(at, |wakes| wakes.min(at)));
    }
}

impl Tasks<'_> {
    /// How many tasks are not over.
    #[must_use]
    pub fn open(&self) -> usize {
        self.children.waiting.len() + self.children.running.len()
    }

    /// The indices of the tasks that are not over, those begun first.
    pub fn open_items(&self) -> impl Iterator<Item = usize> + '_ {
        let running = self.children.running.keys();
        running.chain(self.children.waiting.iter()).copied()
    }

    /// Whether an agent is to begin tasks that nobody has begun.
    fn is_handed_out(&self) -> bool {
        if self.fan.sequential {
            self.children.running.is_empty()
        } else {
            self.children.is_untouched()
        }
    }
}

impl Run {
    /// Whether an agent drives the run.
    #[must_use]
    pub fn is_agent_driven(&self) -> bool {
        self.data().is_some_and(|data| data.start.agent_driven)
    }

    /// What a part of the run waits for.
    #[must_use]
    pub fn handouts(&self, part: Part) -> Handouts<'_> {
        let mut found = Handouts::default();
        let Some(data) = self.running() else {
            return found;
        };
        match part {
            Part::Main => {
                for head in data.heads() {
                    self.look(data, head, &mut found);
                }
            }
            Part::Task { tasks, item } => {
                let child = self
                    .tasks(tasks)
                    .and_then(|tasks| tasks.children.running.get(&item).copied());
                match child {
                    Some(Child::Frame(frame)) => self.look(data, frame, &mut found),
                    Some(Child::Action(action)) => {
                        let action = self.action(action);
                        found.steps.extend(action.map(Handout::Action));
                    }
                    None => {}
                }
            }
        }
        found.steps.sort_by_key(|step| match step {
            Handout::Action(action) => action.id,
            Handout::Tasks(tasks) => tasks.id,
        });
        found.goes_on |= !data.ready.is_empty();
        found
    }

    /// What a frame waits for, with the frames below it that the same agent works on.
    fn look<'a>(&'a self, data: &'a Data, id: FrameId, found: &mut Handouts<'a>) {
        let Some(step) = data.frames.get(&id).and_then(|frame| frame.step.as_ref()) else {
            return;
        };
        match &step.waits {
            Waits::Action(action) | Waits::Judgement { action, .. } => {
                found.steps.push(Handout::Action(action));
            }
            Waits::Turn(_) => {
                found.goes_on = true;
                found.queued = true;
            }
            Waits::Environment { .. } => found.goes_on = true,
            Waits::Pause { until, .. } | Waits::Again { until, .. } => found.wake(*until),
            Waits::Time { seconds, .. } => found.wake(after(step.since, *seconds)),
            Waits::Children(children) => {
                let tasks = children.tasks.and_then(|tasks| self.tasks(tasks));
                match tasks {
                    Some(tasks) if tasks.fan.is_delegated() => {
                        if tasks.is_handed_out() {
                            found.steps.push(Handout::Tasks(tasks));
                        } else {
                            found.under_way.push(tasks);
                        }
                    }
                    _ => {
                        for child in children.running.values() {
                            match child {
                                Child::Frame(frame) => self.look(data, *frame, found),
                                Child::Action(_) => {}
                            }
                        }
                        let handed = children.handed.values();
                        found.steps.extend(handed.map(Handout::Action));
                    }
                }
            }
        }
    }

    /// Until when the run waits for nothing but a time, in milliseconds since 1970.
    #[must_use]
    pub fn sleeps(&self) -> Option<u64> {
        let data = self.running()?;
        // Nothing to look for while something is being done.
        if data.under_way > 0 || !data.ready.is_empty() {
            return None;
        }
        let found = self.handouts(Part::Main);
        let alone = found.steps.is_empty() && found.under_way.is_empty() && !found.goes_on;
        found.wakes.filter(|_| alone)
    }

    fn running(&self) -> Option<&Data> {
        self.data().filter(|data| data.status == Status::Running)
    }

    /// An action under way.
    #[must_use]
    pub fn action(&self, id: ActionId) -> Option<&Action> {
        let data = self.running()?;
        let frame = data.frames.get(data.waiting.get(&id)?)?;
        match &frame.step.as_ref()?.waits {
            Waits::Action(action)
            | Waits::Judgement { action, .. }
            | Waits::Turn(action)
            | Waits::Environment { action, .. }
            | Waits::Pause { action, .. } => (action.id == id).then_some(&**action),
            Waits::Children(children) => children.handed.values().find(|item| item.id == id),
            Waits::Time { .. } | Waits::Again { .. } => None,
        }
    }

    /// A fan-out under way.
    #[must_use]
    pub fn tasks(&self, id: ActionId) -> Option<Tasks<'_>> {
        self.names(self.running()?).tasks(id)
    }

    /// A node of the body that a frame executes.
    pub(super) fn node_of(&self, frame: &Frame, node: u16) -> Option<&Node> {
        node_of(self.program().graph(), frame, node)
    }

    fn names<'a>(&'a self, data: &'a Data) -> Names<'a> {
        Names {
            graph: self.program().graph(),
            data,
        }
    }

    /// The node an action belongs to.
    #[must_use]
    pub fn node(&self, action: &Action) -> Option<&Node> {
        let frame = self.data()?.frames.get(&action.frame)?;
        self.node_of(frame, frame.step.as_ref()?.node)
    }

    /// The part of the run that an action under way belongs to.
    #[must_use]
    pub fn part(&self, action: &Action) -> Part {
        let Some(data) = self.data() else {
            return Part::Main;
        };
        let names = self.names(data);
        // An item handed over whole is a task of its own.
        if let Some(tasks) = names.tasks_of(action.frame) {
            let mut handed = tasks.children.handed.iter();
            if let Some((item, _)) = handed.find(|(_, handed)| handed.id == action.id) {
                return Part::Task {
                    tasks: tasks.id,
                    item: *item,
                };
            }
        }
        names.part_of(action.frame)
    }

    /// The part of the run that a fan-out is a step of.
    #[must_use]
    pub fn part_of_tasks(&self, tasks: &Tasks<'_>) -> Part {
        let data = self.data();
        data.map_or(Part::Main, |data| self.names(data).part_of(tasks.frame))
    }

    /// The name of a task.
    #[must_use]
    pub fn task_name(&self, tasks: ActionId, item: usize) -> String {
        match self.data() {
            Some(data) => self.names(data).of_task(tasks, item),
            None => format!("{}.{item}", tasks.0),
        }
    }

    /// The name of a fan-out's step.
    #[must_use]
    pub fn tasks_name(&self, tasks: &Tasks<'_>) -> String {
        self.name_in(tasks.frame, tasks.node, tasks.id)
    }

    /// The name of an action under way.
    #[must_use]
    pub fn step_name(&self, action: &Action) -> String {
        let fan_out = self
            .data()
            .and_then(|data| self.names(data).children_of(action.frame));
        if let Some((children, fan)) = fan_out
            && let Some((item, _)) = children.handed.iter().find(|(_, it)| it.id == action.id)
        {
            // One step is all there is to such a task.
            let task = of_item(children, fan, *item);
            return match children.tries(*item) {
                0 => format!("{task}/{}", action.node),
                _ => format!("{task}/{}~{}", action.node, action.id.0),
            };
        }
        match self.node(action) {
            Some(node) => self.name_in(action.frame, node, action.id),
            None => format!("{}~{}", action.node, action.id.0),
        }
    }

    fn name_in(&self, id: FrameId, node: &Node, number: ActionId) -> String {
        match self.data() {
            Some(data) => self.names(data).of(id, node, number),
            None => format!("{}~{}", node.id, number.0),
        }
    }

    /// Whom the name of a step belongs to.
    #[must_use]
    pub fn named<'a>(&'a self, name: &'a str) -> Named<'a> {
        let Some(data) = self.data() else {
            return Named::Nobody;
        };
        let mut past = false;
        if let Some(number) = number_of(name) {
            match self.numbered(number, name) {
                Named::Nobody => past |= self.was_handed_out(data, number, name),
                found => return found,
            }
        }
        // A task or a call before the name; ids may contain anything, so every cut is tried.
        for (cut, _) in name.match_indices('/').take(DEEPEST) {
            let (before, rest) = (&name[..cut], &name[cut + 1..]);
            if let Some((children, item)) = unnumbered(data, before) {
                past |= match children.running.get(&item) {
                    Some(Child::Frame(frame)) => first_in(data, *frame, rest).is_some(),
                    Some(Child::Action(_)) => false,
                    None => item < children.count() && !children.waiting.contains(&item),
                };
                continue;
            }
            match self.named_task(before) {
                NamedTask::Task(part, state) => {
                    let first = self.first_of_task(data, part, rest);
                    match first.map(|number| self.numbered(number, name)) {
                        Some(Named::Nobody) => past = true,
                        Some(found) => return found,
                        None => {
                            let is_over =
                                !matches!(state, TaskState::Open { .. } | TaskState::Begun);
                            past |= is_over || self.was_in_earlier_try(part, rest);
                        }
                    }
                }
                NamedTask::Past(_) | NamedTask::CalledBefore(..) | NamedTask::Forgotten => {
                    past = true;
                }
                NamedTask::Called(..) | NamedTask::Nobody => {}
            }
            match self.named(before) {
                Named::Action(action) if matches!(action.what, Deed::Call { .. }) => {
                    return Named::Called(action, rest);
                }
                Named::Past => past = true,
                _ => {}
            }
        }
        if let Some(number) = first_in(data, ROOT, name) {
            match self.numbered(number, name) {
                Named::Nobody => past |= children_named(data, name).is_none(),
                found => return found,
            }
        }
        // Fan-outs are found by their number only where an agent drives the run.
        if !self.is_agent_driven() {
            let under_way = data.waiting.keys().filter_map(|id| self.action(*id));
            for action in under_way {
                match self.numbered(action.id, name) {
                    Named::Nobody => {}
                    found => return found,
                }
            }
        }
        if past { Named::Past } else { Named::Nobody }
    }

    /// What waits under a number, if it has this name.
    fn numbered(&self, number: ActionId, name: &str) -> Named<'_> {
        if let Some(action) = self.action(number) {
            if self.step_name(action) == name {
                return match self.is_handed_out(number) {
                    true => Named::Action(action),
                    false => Named::Later,
                };
            }
        } else if let Some(tasks) = self.tasks(number)
            && self.tasks_name(&tasks) == name
        {
            return Named::Tasks(tasks);
        }
        Named::Nobody
    }

    /// Whether an action under way is somebody's to do now.
    fn is_handed_out(&self, id: ActionId) -> bool {
        let data = self.running();
        let frame = data.and_then(|data| data.frames.get(data.waiting.get(&id)?));
        match frame
            .and_then(|frame| frame.step.as_ref())
            .map(|it| &it.waits)
        {
            Some(Waits::Turn(_) | Waits::Pause { .. }) => false,
            Some(
                Waits::Action(_)
                | Waits::Judgement { .. }
                | Waits::Environment { .. }
                | Waits::Children(_)
                | Waits::Again { .. }
                | Waits::Time { .. },
            )
            | None => true,
        }
    }

    /// Whether a step that is over may have had this name, which ends in this number.
    fn was_handed_out(&self, data: &Data, number: ActionId, name: &str) -> bool {
        let has_been = (1..=data.next_action).contains(&number.0);
        if !has_been || data.waiting.contains_key(&number) {
            return false;
        }
        let (before, _) = name.rsplit_once('~').unwrap_or((name, ""));
        // What a node of the workflow handed out first has its name alone.
        let root = data.frames.get(&ROOT).filter(|_| !data.again);
        if root.is_some_and(|root| root.first.values().any(|first| *first == number)) {
            return false;
        }
        let mut nodes = bodies(self.program().graph()).flat_map(|body| body.nodes.iter());
        nodes.any(|node| ends_in(before, &node.id))
    }

    /// Whether a task that is tried again has a step of this id, which an earlier try may have handed
    /// out.
    fn was_in_earlier_try(&self, part: Part, node: &str) -> bool {
        let Part::Task { tasks, item } = part else {
            return false;
        };
        let tried = |found: &Tasks<'_>| found.children.tries(item) > 0;
        let Some(found) = self.tasks(tasks).filter(tried) else {
            return false;
        };
        let cleanup = found.task.on_error.iter().map(|on_error| &on_error.body);
        let mut bodies = cleanup.chain([&found.task.body]);
        bodies.any(|body| body.nodes.iter().any(|it| it.id == node))
    }

    fn first_of_task(&self, data: &Data, part: Part, node: &str) -> Option<ActionId> {
        let Part::Task { tasks, item } = part else {
            return None;
        };
        let found = self.tasks(tasks)?;
        match found.children.running.get(&item)? {
            Child::Frame(frame) => first_in(data, *frame, node),
            Child::Action(action) => (node == found.node.id).then_some(*action),
        }
    }

    /// Whom the name of a task belongs to.
    #[must_use]
    pub fn named_task<'a>(&'a self, name: &'a str) -> NamedTask<'a> {
        let Some(data) = self.data() else {
            return NamedTask::Nobody;
        };
        if let Some((before, item)) = name.rsplit_once('.')
            && let Ok(item) = item.parse::<usize>()
        {
            match self.named(before) {
                Named::Tasks(tasks) if item < tasks.children.count() => {
                    let part = Part::Task {
                        tasks: tasks.id,
                        item,
                    };
                    return NamedTask::Task(part, self.task_state(&tasks, item));
                }
                Named::Past => return past_task(data, name, before, item),
                Named::Called(action, rest) => {
                    // The rest of the whole name, with the item.
                    return NamedTask::Called(action, &name[before.len() - rest.len()..]);
                }
                Named::Tasks(_) | Named::Action(_) | Named::Later | Named::Nobody => {}
            }
        }
        NamedTask::Nobody
    }

    /// Whether a name is that of a task which a sub-agent does, or did.
    #[must_use]
    pub fn is_for_sub_agent(&self, task: &str) -> bool {
        match self.named_task(task) {
            NamedTask::Task(Part::Task { tasks, .. }, _) => {
                self.tasks(tasks).is_some_and(|it| it.fan.is_delegated())
            }
            NamedTask::Task(Part::Main, _) | NamedTask::Nobody => false,
            NamedTask::Called(..) | NamedTask::CalledBefore(..) => true,
            NamedTask::Past(_) | NamedTask::Forgotten => {
                let step = task.rsplit_once('.').map_or(task, |(step, _)| step);
                let step = step.rsplit_once('~').map_or(step, |(step, _)| step);
                let graph = self.program().graph();
                let mut nodes = bodies(graph).flat_map(|body| body.nodes.iter());
                nodes.any(|node| match &node.kind {
                    Kind::FanOut(fan) => fan.is_delegated() && ends_in(step, &node.id),
                    _ => false,
                })
            }
        }
    }

    fn task_state<'a>(&self, tasks: &Tasks<'a>, item: usize) -> TaskState<'a> {
        let children = tasks.children;
        if children.running.contains_key(&item) {
            return TaskState::Begun;
        }
        if let Some(value) = children.results.get(&item) {
            return TaskState::Completed(Some(value));
        }
        if let Some(failure) = children.failures.get(&item) {
            return TaskState::Failed(failure);
        }
        if children.stopped || !children.waiting.contains(&item) {
            return TaskState::Stopped;
        }
        let limits = &self.program().graph().limits;
        let slots = children.running.len() < tasks.fan.at_once(limits);
        let in_order = !tasks.fan.sequential || children.waiting.front() == Some(&item);
        TaskState::Open {
            free: slots && in_order,
        }
    }

    /// Whether a task may be begun.
    pub(super) fn check_taken(&self, tasks: ActionId, item: usize) -> Result<(), Refusal> {
        let Some(tasks) = self.tasks(tasks) else {
            return Err(Refusal::Task("there are no such tasks"));
        };
        if !tasks.fan.is_delegated() {
            return Err(Refusal::Task("these tasks are not for sub-agents"));
        }
        match self.task_state(&tasks, item) {
            TaskState::Open { free: true } => Ok(()),
            TaskState::Open { free: false } => {
                Err(Refusal::Task("as many tasks are under way as may be"))
            }
            TaskState::Begun => Err(Refusal::Task("the task has been begun already")),
            TaskState::Completed(_) | TaskState::Failed(_) | TaskState::Stopped => {
                Err(Refusal::Task("the task is over"))
            }
        }
    }
}

/// Every body of a workflow.
fn bodies(graph: &Graph) -> impl Iterator<Item = &Body> {
    let tasks = graph.tasks.iter().flat_map(|task| {
        let cleanup = task.on_error.as_ref().map(|on_error| &on_error.body);
        std::iter::once(&task.body).chain(cleanup)
    });
    tasks.chain([&graph.body, &graph.on_error.body])
}

/// Whether a name is that of a node, alone or after what it belongs to.
fn ends_in(name: &str, node: &str) -> bool {
    let before = name.strip_suffix(node);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// The item that the name of a task means, of a fan-out under way that has no number.
fn unnumbered<'a>(data: &'a Data, task: &str) -> Option<(&'a Children, usize)> {
    let (name, item) = task.rsplit_once('.')?;
    let item = item.parse().ok()?;
    Some((children_named(data, name)?, item))
}

/// The children of a fan-out under way that has this name, and no number.
fn children_named<'a>(data: &'a Data, name: &str) -> Option<&'a Children> {
    let steps = data.frames.values();
    let mut steps = steps.filter_map(|frame| frame.step.as_ref());
    steps.find_map(|step| match &step.waits {
        Waits::Children(children) if children.tasks.is_none() && children.name == name => {
            Some(&**children)
        }
        _ => None,
    })
}

/// A task of something that is over.
fn past_task<'a>(data: &'a Data, name: &'a str, before: &str, item: usize) -> NamedTask<'a> {
    let mut past = data.past_tasks.values().rev();
    if let Some(past) = past.find(|past| past.is_named(before)) {
        return past.state(item).map_or(NamedTask::Nobody, NamedTask::Past);
    }
    let calls = data.past_calls.iter();
    let calls = calls.filter_map(|(id, call)| Some((*id, call, call.rest(name)?)));
    match calls.min_by_key(|(_, _, rest)| rest.len()) {
        Some((id, call, rest)) => NamedTask::CalledBefore(id, call, rest),
        None => NamedTask::Forgotten,
    }
}

/// The number at the end of a name.
fn number_of(name: &str) -> Option<ActionId> {
    let (_, number) = name.rsplit_once('~')?;
    number.parse().ok().map(ActionId)
}
