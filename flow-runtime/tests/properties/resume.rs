//! Resuming a failed run: the failed step runs again, and nothing before it.

use flow_model::graph::Kind;
use flow_runtime::run::{Allowance, Effect, Failure, FailureKind, Happening, Status};
use flow_runtime::value::Value;

use super::world::{Wanted, World};
use super::{compiled, program};

/// Resumes a failed run, which begins with the step that failed, or with the fan-out it is in.
pub(crate) fn repeats_the_failed_step(world: &mut World) {
    let data = world.run.data().unwrap();
    let failed = data.error.as_ref().and_then(|error| error.step.clone());
    let has_begun = data.steps > 0;
    let loops = data.frames[&0].loops.iter();
    let mut around: Vec<u16> = loops.map(|inner| inner.node).collect();
    assert!(world.apply(Happening::Resumed(Allowance::default())));
    let effects = world.records.last().unwrap().effects.iter();
    let mut entered = effects.filter_map(|effect| match effect {
        Effect::Entered(place) if place.frame == 0 => Some(place.node.as_str()),
        _ => None,
    });
    let (Some(failed), Some(first), true) = (failed, entered.next(), has_begun) else {
        return;
    };
    let body = &world.run.program().graph().body;
    // Loops that it is in are entered once more.
    let index = |id: &str| body.nodes.iter().position(|node| *node.id == *id);
    around.pop_if(|inner| Some(usize::from(*inner)) == index(&failed));
    let mut first = first;
    for inner in around {
        assert_eq!(index(first), Some(usize::from(inner)));
        // A run that has no steps left enters nothing else.
        let Some(next) = entered.next() else {
            return;
        };
        first = next;
    }
    let is_inside = |inner: &str, outer: &str| {
        let mut at = index(inner).map(|at| &body.nodes[at]);
        while let Some(parent) = at.and_then(|node| node.parent) {
            let node = &body.nodes[usize::from(parent)];
            if *node.id == *outer {
                return true;
            }
            at = Some(node);
        }
        false
    };
    if body.nodes.iter().any(|node| *node.id == *failed) {
        // What had no more time goes on with what was under way in it.
        assert!(
            first == failed || is_inside(first, &failed),
            "{failed} failed, {first} begins"
        );
    } else {
        let mut nodes = body.nodes.iter();
        let node = nodes.find(|node| *node.id == *first).unwrap();
        assert!(
            matches!(node.kind, Kind::FanOut(_)),
            "{failed} failed, {first} begins"
        );
    }
}

/// Answers the only action under way.
fn answer(world: &mut World, works: bool) -> String {
    let mut wanted = world.wanted.iter();
    let is_action = |(_, wanted): &(_, &Wanted)| matches!(wanted, Wanted::Action(_));
    let (id, wanted) = wanted.find(is_action).unwrap();
    let (action, wanted) = (*id, format!("{wanted:?}"));
    world.at += 10;
    world.apply(if works {
        let result = Value::map([("exit_code", Value::Int(0))]);
        Happening::Completed { action, result }
    } else {
        let error = Failure::new(FailureKind::Action, "it broke");
        let result = Value::Null;
        Happening::Failed {
            action,
            error,
            result,
        }
    });
    wanted
}

#[test]
fn a_run_that_failed_in_a_loop_goes_on_in_the_same_iteration_after_its_failure_steps() {
    let text = "on_error:
  steps:
    - {id: clean, type: shell, command: clean}
    - {id: polish, type: shell, command: polish}
steps:
  - id: each
    type: foreach
    items: [a, b, c]
    steps:
      - {id: work, type: shell, command: 'work {{ item }}'}
";
    let mut world = World::new(program(compiled(text)), Value::Null);
    let asked = |world: &mut World, works: bool, expected: &str| {
        let asked = answer(world, works);
        assert!(asked.contains(expected), "{asked}");
    };
    asked(&mut world, true, "work a");
    asked(&mut world, false, "work b");
    asked(&mut world, true, "clean");
    asked(&mut world, false, "polish");
    assert_eq!(world.run.status(), Status::Failed);
    repeats_the_failed_step(&mut world);
    asked(&mut world, true, "work b");
    asked(&mut world, true, "work c");
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn the_clock_of_a_run_ends_failure_steps_once_and_starts_again_with_a_resumed_run() {
    let text = "limits: {timeout: 5}
on_error:
  action: retry_workflow
  steps: [{id: clean, type: shell, command: clean}]
steps: [{id: work, type: shell, command: work}]
";
    let mut world = World::new(program(compiled(text)), Value::Null);
    for _ in 0..2 {
        let (timer, until) = world.run.data().unwrap().limit.unwrap();
        assert_eq!(until, world.at + 5000);
        world.at = until;
        world.apply(Happening::Woke { timer });
        assert!(answer(&mut world, true).contains("clean"));
        assert_eq!(world.run.status(), Status::Failed);
        let error = world.run.data().unwrap().error.clone().unwrap();
        assert!(error.message.contains("limits.timeout"), "{error:?}");
        world.apply(Happening::Resumed(Allowance::default()));
    }
}

#[test]
fn the_clock_of_a_run_stands_still_while_nobody_drives_it() {
    let text = "limits: {timeout: 5}
steps: [{id: inner, type: call, workflow: asks}, {id: work, type: shell, command: work}]
";
    let mut world = World::new(program(compiled(text)), Value::Null);
    world.at += 2000;
    assert!(world.apply(Happening::Rested));
    assert_eq!(world.run.data().unwrap().limit, None);
    world.at += 3_600_000;
    assert!(world.apply(Happening::Continued));
    let (_, until) = world.run.data().unwrap().limit.unwrap();
    assert_eq!(until, world.at + 3000);
    answer(&mut world, true);
    answer(&mut world, true);
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn a_message_that_is_declined_fails_nothing() {
    let text = "steps:
  - {id: tell, type: prompt, kind: info, message: Hello, output_to: told}
  - {type: return, value: '{{ state.told.acknowledged }}'}
";
    let mut world = World::new(program(compiled(text)), Value::Null);
    let action = *world.wanted.keys().next().unwrap();
    let reason = "declined".to_owned();
    world.apply(Happening::Declined { action, reason });
    assert_eq!(world.run.status(), Status::Completed);
    assert_eq!(world.run.data().unwrap().output, Value::Bool(false));
}
