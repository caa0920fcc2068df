//! A world that answers what a run wants with anything, in any order, and holds the run to what it
//! has promised.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow_model::graph::{Operation, PromptKind};
use flow_runtime::run::{
    Action, ActionId, Data, Deed, Effect, Event, Failure, FailureKind, Handout, Happening, Named,
    NamedTask, Part, Program, Run, Start, Status, Update,
};
use flow_runtime::value::Value;

use super::choices::Choices;

/// Something that a run wants and has no answer to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wanted {
    Action(Box<Action>),
    Time,
}

/// An event that was applied, as a journal holds it, and what came of it.
pub(crate) struct Record {
    pub(crate) event: Vec<u8>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) data: Data,
}

pub(crate) struct World {
    pub(crate) run: Run,
    pub(crate) at: u64,
    pub(crate) wanted: BTreeMap<ActionId, Wanted>,
    pub(crate) is_to_continue: bool,
    pub(crate) records: Vec<Record>,
    /// Every failure that a step or the run has had, as far as the run tells.
    pub(crate) failures: Vec<Failure>,
    /// Nodes that were entered and not left.
    pub(crate) visits: Vec<(u32, String)>,
}

/// The memory of a run without the number of events applied, which is all that a stray event
/// changes.
pub(crate) fn memory(run: &Run) -> String {
    let mut data = run.data().cloned();
    if let Some(data) = &mut data {
        data.applied = 0;
    }
    serde_json::to_string(&data).unwrap()
}

impl World {
    pub(crate) fn new(program: Arc<Program>, inputs: Value) -> Self {
        World::started(program, inputs, false)
    }

    /// A world in which agents drive the run.
    pub(crate) fn of_agents(program: Arc<Program>, inputs: Value) -> Self {
        World::started(program, inputs, true)
    }

    fn started(program: Arc<Program>, inputs: Value, agent_driven: bool) -> Self {
        let mut world = World {
            run: Run::new(program),
            at: 1_700_000_000_000,
            wanted: BTreeMap::new(),
            is_to_continue: false,
            records: Vec::new(),
            failures: Vec::new(),
            visits: Vec::new(),
        };
        world.apply(Happening::Started(Start {
            run: "r-test".to_owned(),
            inputs,
            agent_driven,
            ..Start::default()
        }));
        world
    }

    /// Applies an event. `false` when the run refuses it, and then nothing has changed.
    pub(crate) fn apply(&mut self, what: Happening) -> bool {
        let event = Event { at: self.at, what };
        let before = memory(&self.run);
        let effects = match self.run.apply(&event) {
            Ok(effects) => effects,
            Err(_) => {
                assert_eq!(memory(&self.run), before, "a refused event changed the run");
                return false;
            }
        };
        match &event.what {
            Happening::Completed { action, .. }
            | Happening::Done { action }
            | Happening::Failed { action, .. }
            | Happening::TimedOut { action, .. }
            | Happening::Declined { action, .. } => {
                if let Some(Wanted::Action(_)) = self.wanted.get(action) {
                    self.wanted.remove(action);
                }
            }
            Happening::Woke { timer } => {
                if let Some(Wanted::Time) = self.wanted.get(timer) {
                    self.wanted.remove(timer);
                }
            }
            Happening::Continued => self.is_to_continue = false,
            Happening::Started(_)
            | Happening::Updated { .. }
            | Happening::Checkpointed { .. }
            | Happening::Taken { .. }
            | Happening::GivenUp { .. }
            | Happening::Late { .. }
            | Happening::Cancelled { .. }
            | Happening::Rested
            | Happening::Resumed(_) => {}
        }
        self.take_in(&effects);
        self.records.push(Record {
            event: serde_json::to_vec(&event).unwrap(),
            effects,
            data: self.run.data().unwrap().clone(),
        });
        self.hold_to_account();
        true
    }

    fn take_in(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Act(action) => {
                    let wanted = Wanted::Action(Box::new(action.clone()));
                    let before = self.wanted.insert(action.id, wanted);
                    assert_eq!(before, None, "{:?} is handed out twice", action.id);
                }
                Effect::Sleep { timer, .. } => {
                    let before = self.wanted.insert(*timer, Wanted::Time);
                    assert_eq!(before, None, "{timer:?} is handed out twice");
                }
                Effect::Stop(action) => {
                    // One that waits for its turn was never handed out.
                    self.wanted.remove(action);
                }
                Effect::Yield => self.is_to_continue = true,
                Effect::Told { place, .. } => {
                    let visit = (place.frame, place.node.clone());
                    assert!(self.visits.contains(&visit), "{visit:?} is not under way");
                }
                Effect::Finish(finish) => {
                    self.failures.extend(finish.error.clone());
                    self.is_to_continue = false;
                }
                Effect::Entered(place) => {
                    let visit = (place.frame, place.node.clone());
                    assert!(!self.visits.contains(&visit), "{visit:?} is entered twice");
                    self.visits.push(visit);
                }
                Effect::Left { place, .. } => {
                    let is_it = |(frame, node): &(u32, String)| {
                        *frame == place.frame && *node == place.node
                    };
                    let visit = self.visits.iter().rposition(is_it);
                    let visit = visit.unwrap_or_else(|| panic!("{place:?} is not entered"));
                    self.visits.remove(visit);
                }
            }
        }
        let finishes = effects.iter().filter(|it| matches!(it, Effect::Finish(_)));
        assert!(finishes.count() <= 1, "the run ends twice: {effects:?}");
    }

    /// What a host would do again is what was wanted and has no answer; a run that is over wants
    /// nothing, and one that is not over wants something.
    fn hold_to_account(&self) {
        let mut pending = BTreeMap::new();
        let mut continues = false;
        for effect in self.run.pending() {
            match effect {
                Effect::Act(action) => {
                    pending.insert(action.id, Wanted::Action(Box::new(action)));
                }
                Effect::Sleep { timer, .. } => {
                    pending.insert(timer, Wanted::Time);
                }
                Effect::Yield => continues = true,
                other => panic!("{other:?} is nothing that can be pending"),
            }
        }
        assert_eq!(pending, self.wanted);
        assert_eq!(continues, self.is_to_continue);
        let data = self.run.data().unwrap();
        let limit = data.limit.map(|(timer, _)| timer);
        let is_work = |id: &&ActionId| Some(**id) != limit;
        let work = self.wanted.keys().filter(is_work).count();
        match self.run.status() {
            Status::Running => {
                let waits = work > 0 || continues || !self.open_tasks().is_empty();
                assert!(waits, "the run waits for nothing");
            }
            Status::Completed | Status::Failed | Status::Cancelled => {
                assert_eq!((self.wanted.len(), continues), (0, false), "left behind");
                assert!(data.waiting.is_empty() && data.queue.is_empty());
                assert_eq!(self.visits, [], "entered and not left");
            }
        }
        let acts = |wanted: &&Wanted| matches!(wanted, Wanted::Action(_));
        let acts = self.wanted.values().filter(acts).count() as u64;
        assert_eq!(acts, data.under_way, "actions under way are counted wrong");
        if self.run.is_agent_driven() {
            self.names_lead_back();
        }
    }

    /// What an agent is handed is found again by its name, and by no other's.
    fn names_lead_back(&self) {
        for wanted in self.wanted.values() {
            let Wanted::Action(action) = wanted else {
                continue;
            };
            let handed = self.run.handouts(self.run.part(action)).steps;
            let is_it = |it: &Handout<'_>| matches!(it, Handout::Action(it) if it.id == action.id);
            let is_hosts = matches!(action.what, Deed::Environment { .. });
            assert!(
                is_hosts || handed.iter().any(is_it),
                "{:?} is handed to nobody",
                action.id
            );
            let name = self.run.step_name(action);
            match self.run.named(&name) {
                Named::Action(found) => assert_eq!(found.id, action.id, "{name}"),
                other => panic!("{name} leads to {other:?}"),
            }
        }
        for (tasks, item) in self.open_tasks() {
            let name = self.run.task_name(tasks, item);
            let part = Part::Task { tasks, item };
            match self.run.named_task(&name) {
                NamedTask::Task(found, _) => assert_eq!(found, part, "{name}"),
                other => panic!("{name} leads to {other:?}"),
            }
        }
    }

    /// The tasks of sub-agents that are not over, begun or not, with those within them.
    fn open_tasks(&self) -> Vec<(ActionId, usize)> {
        let mut open = Vec::new();
        let mut parts = vec![Part::Main];
        while let Some(part) = parts.pop() {
            let found = self.run.handouts(part);
            let handed = found.steps.iter().filter_map(|step| match step {
                Handout::Tasks(tasks) => Some(*tasks),
                Handout::Action(_) => None,
            });
            for tasks in handed.chain(found.under_way.iter().copied()) {
                for item in tasks.open_items() {
                    let tasks = tasks.id;
                    open.push((tasks, item));
                    parts.push(Part::Task { tasks, item });
                }
            }
        }
        open
    }

    /// A sub-agent begins a task, or tries to begin one that is not free; gives whether one began.
    fn take(&mut self, choices: &mut Choices) -> bool {
        let open = self.open_tasks();
        let first = choices.below(open.len());
        let (before, after) = open.split_at(first.min(open.len()));
        let mut turns = after.iter().chain(before);
        turns.any(|(tasks, item)| {
            let (tasks, item) = (*tasks, *item);
            self.apply(Happening::Taken { tasks, item })
        })
    }

    /// The next thing that happens, as the choices say.
    pub(crate) fn turn(&mut self, choices: &mut Choices) {
        if choices.once_in(8) {
            let jump = choices.pick(&[0, 1, 999, 3_600_000, 10_000_000_000]);
            self.at = if choices.once_in(3) {
                self.at.saturating_sub(jump)
            } else {
                self.at + jump
            };
        }
        match choices.below(16) {
            11 if self.run.is_agent_driven() => self.agents(choices),
            12 => self.stray(choices),
            13 => {
                let update =
                    choices.pick(&["n", "word", "map.k", "seen.0", "computed.x", "", "a..b"]);
                let operation = choices.pick(&[
                    Operation::Set,
                    Operation::Append,
                    Operation::Increment,
                    Operation::Merge,
                ]);
                let value = any(choices, 1);
                self.apply(Happening::Updated {
                    updates: vec![Update {
                        path: update.to_owned(),
                        operation,
                        value,
                    }],
                });
            }
            14 => {
                let reason = "so".to_owned();
                let step = None;
                let what = match choices.below(3) {
                    0 => Happening::Checkpointed { reason, step },
                    1 => Happening::Rested,
                    _ => Happening::Continued,
                };
                self.apply(what);
            }
            15 => self.stray(choices),
            _ => self.answer(choices),
        }
    }

    /// Something that only agents do.
    fn agents(&mut self, choices: &mut Choices) {
        match choices.below(8) {
            6 => {
                // A task that nobody has, or that is not there.
                let last = self.run.data().map_or(0, |data| data.next_action);
                let tasks = ActionId(choices.below(last as usize + 2) as u64);
                let item = choices.below(5);
                self.apply(Happening::Taken { tasks, item });
            }
            7 => {
                let reason = "it cannot be done".to_owned();
                self.apply(Happening::GivenUp { reason });
            }
            _ => drop(self.take(choices)),
        }
    }

    /// Answers something that is wanted.
    fn answer(&mut self, choices: &mut Choices) {
        // Sub-agents begin what there is to begin, sooner or later.
        let limit = self.run.data().and_then(|data| data.limit).map(|it| it.0);
        let is_idle = self.wanted.keys().all(|id| Some(*id) == limit);
        if (is_idle || choices.once_in(4)) && self.take(choices) {
            return;
        }
        if self.is_to_continue && !choices.once_in(3) {
            self.apply(Happening::Continued);
            return;
        }
        let limit = self.run.data().and_then(|data| data.limit).map(|it| it.0);
        // The clock of the whole run runs out last, unless it is chosen to.
        let is_early = choices.once_in(20);
        let ids: Vec<ActionId> = self
            .wanted
            .keys()
            .filter(|id| is_early || Some(**id) != limit)
            .copied()
            .collect();
        let at = choices.below(ids.len());
        let Some(id) = ids.get(at).copied() else {
            return;
        };
        match self.wanted.get(&id).cloned() {
            Some(Wanted::Time) => {
                self.apply(Happening::Woke { timer: id });
            }
            Some(Wanted::Action(action)) => {
                let what = outcome(&action, choices);
                if !self.apply(what) {
                    // An answer that is not valid; a better one follows.
                    let result = good(&action.what, choices);
                    if !self.apply(Happening::Completed { action: id, result }) {
                        // Rules of its own that no prepared text satisfies.
                        let reason = "no".to_owned();
                        assert!(self.apply(Happening::Declined { action: id, reason }));
                    }
                }
            }
            None => {}
        }
    }

    /// Something that nobody waits for: a second answer, a late one, one to the wrong thing. It
    /// changes nothing and nothing follows from it.
    pub(crate) fn stray(&mut self, choices: &mut Choices) {
        let last = self.run.data().map_or(0, |data| data.next_action);
        let id = ActionId(choices.below(last as usize + 3) as u64);
        let what = match choices.below(5) {
            0 => Happening::Completed {
                action: id,
                result: any(choices, 2),
            },
            1 => Happening::Failed {
                action: id,
                error: Failure::new(FailureKind::Action, "late"),
                result: Value::Null,
            },
            2 => Happening::TimedOut {
                action: id,
                result: Value::Null,
            },
            3 => Happening::Declined {
                action: id,
                reason: "late".to_owned(),
            },
            _ => Happening::Woke { timer: id },
        };
        let is_meant = match (self.wanted.get(&id), &what) {
            (Some(Wanted::Time), Happening::Woke { .. }) => true,
            (Some(Wanted::Action(_)), Happening::Woke { .. }) => false,
            (Some(Wanted::Action(_)), _) => true,
            // Tasks complete by themselves; but they can be given up.
            (None, Happening::Completed { .. } | Happening::Woke { .. }) => false,
            (None, _) => self.run.tasks(id).is_some(),
            (Some(Wanted::Time), _) => false,
        };
        if is_meant {
            return;
        }
        let before = memory(&self.run);
        if self.apply(what.clone()) {
            let record = self.records.last().unwrap();
            assert!(
                record.effects.is_empty(),
                "{what:?} wants {:?}",
                record.effects
            );
        }
        assert_eq!(memory(&self.run), before, "{what:?} changed the run");
    }

    /// Goes on with plain answers until the run is over; `false` when that takes too long.
    pub(crate) fn finish(&mut self, most: usize) -> bool {
        let mut plain = Choices::new(Vec::new());
        for _ in 0..most {
            if self.run.status() != Status::Running {
                return true;
            }
            self.at += 1;
            self.answer(&mut plain);
        }
        self.run.status() != Status::Running
    }
}

/// How an action may end.
fn outcome(action: &Action, choices: &mut Choices) -> Happening {
    let id = action.id;
    match choices.below(10) {
        5 => Happening::Failed {
            action: id,
            error: Failure::new(FailureKind::Action, "it broke"),
            result: any(choices, 2),
        },
        6 => Happening::TimedOut {
            action: id,
            result: any(choices, 1),
        },
        7 => Happening::Declined {
            action: id,
            reason: "no".to_owned(),
        },
        8 => Happening::Completed {
            action: id,
            result: any(choices, 2),
        },
        _ => Happening::Completed {
            action: id,
            result: good(&action.what, choices),
        },
    }
}

/// A result such as a host gives.
fn good(deed: &Deed, choices: &mut Choices) -> Value {
    let text = |choices: &mut Choices| {
        Value::text(choices.pick(&[
            "aa",
            "",
            "[1, 2.5]",
            "k=v\nw=x",
            "{\"a\": null}",
            "é\0\u{1f600}",
        ]))
    };
    match deed {
        Deed::Shell { .. } => Value::map([
            ("stdout", text(choices)),
            ("stderr", text(choices)),
            (
                "exit_code",
                Value::Int(choices.pick(&[0, 0, 0, 1, 127, -1])),
            ),
            (
                "duration",
                Value::number(choices.pick(&[0.1, 0.012_345_678_901_234_567, 3.0])),
            ),
        ]),
        Deed::Tool { .. } => Value::map([
            ("success", Value::Bool(choices.pick(&[true, true, false]))),
            ("match_text", choices.pick(&["aa", "b"]).into_value()),
            ("session_id", Value::text("t-1")),
        ]),
        Deed::Prompt { kind, options, .. } => match kind {
            PromptKind::Info => Value::map([("acknowledged", Value::Bool(true))]),
            PromptKind::Confirm => {
                Value::map([("confirmed", Value::Bool(choices.pick(&[true, false])))])
            }
            PromptKind::Text => Value::map([("input", Value::text("a valid, long 1.2.3 text"))]),
            PromptKind::Choice => {
                let at = choices.below(options.len());
                Value::map([("selected", options.get(at).cloned().unwrap_or_default())])
            }
        },
        Deed::Delegate { .. } | Deed::DelegateItem { .. } => Value::map([
            ("response", text(choices)),
            ("safe", Value::Bool(true)),
            ("agent_used", Value::text("helper")),
        ]),
        Deed::Environment { variables, .. } => {
            let set = variables.iter().filter(|_| choices.below(8) > 0);
            let set: Vec<_> = set.map(|name| (name.clone(), Value::text("set"))).collect();
            Value::map(set)
        }
        Deed::Call { .. } => Value::map([
            ("outputs", any(choices, 1)),
            ("computed", Value::map([("inner", Value::Int(1))])),
            ("success", Value::Bool(true)),
        ]),
        Deed::Judge { choices: cases, .. } => match choices.below(cases.len() + 2) {
            0 => Value::map([("choice", Value::Int(0))]),
            1 => Value::map([("choice", Value::Null)]),
            at => Value::map([("choice", Value::text(&cases[at - 2].1))]),
        },
    }
}

/// Any value at all, so deep.
pub(crate) fn any(choices: &mut Choices, depth: usize) -> Value {
    match choices.below(if depth == 0 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => Value::Int(choices.pick(&[0, 1, -7, i64::MAX, i64::MIN])),
        3 => Value::number(choices.pick(&[0.5, 1e300, -0.000_1, 0.1 + 0.2, 5e-324])),
        4 => Value::text("text"),
        5 => Value::text(""),
        6 => Value::text("{{ state.n }}$(id)\u{0}\u{feff}"),
        7 => {
            let count = choices.below(4);
            Value::list((0..count).map(|_| any(choices, depth - 1)))
        }
        _ => {
            let keys = ["success", "error", "exit_code", "stdout", "choice", "input"];
            let count = choices.below(4);
            Value::map(
                (0..count)
                    .map(|_| (choices.pick(&keys), any(choices, depth - 1)))
                    .collect::<Vec<_>>(),
            )
        }
    }
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::text(self)
    }
}
