//! Compiled and interpreted runs of one definition, event for event, with the same results of
//! everything they do.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use flow::graph::{Graph, Literal, PromptKind, Type};
use flow::runtime::run::{
    Action, Deed, Effect, Ending, Event, Expressions, Failure, FailureKind, Happening, Onward,
    Program, Run, Start, Status,
};
use flow::runtime::value::Value;

use super::{interpreted, outcomes};
use crate::random::Random;
use crate::{ALL, Case, Machine};

/// Events of a run; one that takes longer is cancelled.
const MOST_EVENTS: u64 = 100;
/// Scripts that every definition is run with.
const SCRIPTS: u64 = 4;

/// A run, and what it still wants.
struct Side {
    run: Run,
    wanted: VecDeque<Effect>,
}

impl Side {
    fn new(graph: Cow<'static, Graph>) -> Self {
        let program = Program::new(graph, Box::new(Expressions::new()));
        Side {
            run: Run::new(Arc::new(program)),
            wanted: VecDeque::new(),
        }
    }

    /// What follows from an event, or why it is refused.
    fn apply(&mut self, event: &Event) -> Result<Vec<Effect>, String> {
        let effects = self
            .run
            .apply(event)
            .map_err(|refusal| refusal.to_string())?;
        self.wanted.extend(effects.iter().cloned());
        Ok(effects)
    }

    /// What happens next, by chance.
    fn next(&mut self, random: &mut Random) -> Option<Happening> {
        while let Some(effect) = self.wanted.pop_front() {
            match effect {
                Effect::Act(action) => return Some(result(&action, random)),
                Effect::Sleep { timer, .. } => return Some(Happening::Woke { timer }),
                Effect::Yield => return Some(Happening::Continued),
                Effect::Stop(_)
                | Effect::Entered(_)
                | Effect::Left { .. }
                | Effect::Told { .. }
                | Effect::Finish(_) => {}
            }
        }
        None
    }
}

/// Somehow an action ends.
fn result(action: &Action, random: &mut Random) -> Happening {
    let id = action.id;
    match random.below(8) {
        0 => Happening::Failed {
            action: id,
            error: Failure::new(FailureKind::Action, "it did not work"),
            result: Value::Null,
        },
        1 => Happening::TimedOut {
            action: id,
            result: Value::Null,
        },
        2 if matches!(action.what, Deed::Prompt { .. }) => Happening::Declined {
            action: id,
            reason: "not now".to_owned(),
        },
        _ => Happening::Completed {
            action: id,
            result: answer(&action.what, random),
        },
    }
}

/// Something that an action can give.
fn answer(deed: &Deed, random: &mut Random) -> Value {
    let texts = ["", "aab", "x busy", "{\"a\": 1}", "key=value\nother=1"];
    let said = Value::text(texts[random.index(texts.len())]);
    match deed {
        Deed::Shell { .. } => Value::map([
            ("stdout", said),
            ("stderr", Value::text("")),
            ("exit_code", Value::Int(i64::from(random.below(4) == 0))),
            ("duration", Value::number(0.25)),
        ]),
        Deed::Tool { .. } => Value::map([
            ("success", Value::Bool(random.below(4) > 0)),
            ("session_id", Value::text("t1")),
            ("screen_content", said.clone()),
            ("match_text", said),
        ]),
        Deed::Prompt { kind, options, .. } => deed.shape(match kind {
            PromptKind::Info => Value::Bool(true),
            PromptKind::Confirm => Value::Bool(random.below(2) == 0),
            PromptKind::Text => said,
            PromptKind::Choice => options.first().cloned().unwrap_or_default(),
        }),
        Deed::Judge { choices, .. } => {
            let chosen = choices.get(random.index(choices.len().max(1)));
            deed.shape(chosen.map_or(Value::Null, |(_, state)| Value::text(state)))
        }
        Deed::Delegate { .. } | Deed::DelegateItem { .. } => deed.shape(said),
        Deed::Environment { variables, .. } => Value::map(
            variables
                .iter()
                .filter(|_| random.below(8) > 0)
                .map(|name| (name.clone(), said.clone()))
                .collect::<Vec<_>>(),
        ),
        Deed::Call { .. } => Value::map([
            ("outputs", Value::map([("n", Value::Int(1))])),
            ("computed", Value::map::<&str>([])),
        ]),
    }
}

/// Inputs that a definition may be given, as far as their types say.
fn inputs(graph: &Graph, random: &mut Random) -> Value {
    let fields = graph.inputs.as_deref().unwrap_or_default();
    Value::map(fields.iter().filter_map(|field| {
        let rules = &field.validation;
        let value = match (&field.default, rules.one_of.first()) {
            (Some(Literal::Null), _) => return None,
            (Some(default), _) if random.below(2) == 0 => Value::from(default),
            (_, Some(first)) => Value::from(first),
            _ => match field.ty {
                Type::Any | Type::String => Value::text("text"),
                Type::Number | Type::Integer => Value::Int(2),
                Type::Boolean => Value::Bool(random.below(2) == 0),
                Type::Array => Value::list([Value::text("a"), Value::text("b")]),
                Type::Object => Value::map([("a", Value::Int(1))]),
            },
        };
        Some((field.name.to_string(), value))
    }))
}

/// A step of the workflow itself is one that the compiled states have too.
fn assert_allowed(machine: &Machine, effect: &Effect, place: &str) {
    let Effect::Left {
        place: left,
        outcome,
        next: Onward::Node(next),
    } = effect
    else {
        return;
    };
    // Children of a fan-out have states of their own.
    let (Some(from), Some(to)) = ((machine.from_name)(&left.node), (machine.from_name)(next))
    else {
        return;
    };
    if left.frame != 0 {
        return;
    }
    let allowed = outcomes().any(|possible| (machine.next)(from, possible) == Some(to));
    let ending: &Ending = outcome;
    assert!(allowed, "{place}: {} → {next} after {ending:?}", left.node);
}

fn compare(case: &Case, graph: &Graph, script: u64) -> u64 {
    let place = format!("{}, script {script}", case.name);
    let mut random = Random::new(script);
    let mut compiled = Side::new(Cow::Borrowed(case.graph));
    let mut read = Side::new(Cow::Owned(graph.clone()));
    let main = case.machines.iter().find(|machine| {
        let body = (machine.body)(case.graph);
        body.is_some_and(|body| std::ptr::eq(body, &case.graph.body))
    });
    let start = Start {
        run: "r-1".to_owned(),
        inputs: inputs(graph, &mut random),
        max_steps: Some(500),
        ..Start::default()
    };
    let mut what = Happening::Started(start);
    for number in 0..MOST_EVENTS {
        let event = Event {
            at: 1_800_000_000_000 + number * 1000,
            what,
        };
        let effects = compiled.apply(&event);
        assert_eq!(effects, read.apply(&event), "{place}: {event:?}");
        for effect in effects.iter().flatten() {
            if let Some(main) = main {
                assert_allowed(main, effect, &place);
            }
        }
        if compiled.run.status() != Status::Running {
            assert_eq!(compiled.run.data(), read.run.data(), "{place}");
            return number;
        }
        let mut other = random.clone();
        what = match compiled.next(&mut random) {
            Some(what) => what,
            None => Happening::Cancelled {
                reason: "nothing is left to do".to_owned(),
            },
        };
        if !matches!(what, Happening::Cancelled { .. }) {
            assert_eq!(Some(&what), read.next(&mut other).as_ref(), "{place}");
        }
        if number + 2 >= MOST_EVENTS {
            what = Happening::Cancelled {
                reason: "it takes too long".to_owned(),
            };
        }
    }
    panic!("{place}: the run goes on after it was cancelled");
}

#[test]
fn compiled_and_interpreted_runs_are_the_same_event_for_event() {
    let mut events = 0;
    for case in ALL {
        let graph = interpreted(case);
        for script in 1..=SCRIPTS {
            events += compare(case, &graph, script);
        }
    }
    assert!(events > 1000, "{events} events prove little");
}
