//! Containers have a time, attempts and failures of their own.

use flow_runtime::run::{ActionId, Allowance, Effect, Failure, FailureKind, Happening, Status};
use flow_runtime::value::Value;

use super::world::{Wanted, World};
use super::{compiled, program};

fn world(text: &str) -> World {
    World::new(program(compiled(text)), Value::Null)
}

/// Commands under way, oldest first.
fn asked(world: &World) -> Vec<String> {
    let wanted = world.wanted.values();
    let commands = wanted.filter_map(|wanted| match wanted {
        Wanted::Action(_) => {
            let text = format!("{wanted:?}");
            let from = text.find("command: \"")? + 10;
            let to = text[from..].find('"')?;
            Some(text[from..from + to].to_owned())
        }
        _ => None,
    });
    commands.collect()
}

fn answer(world: &mut World, command: &str, works: bool) {
    let found = world.wanted.iter().find_map(|(id, wanted)| {
        let text = format!("{wanted:?}");
        let is_it = matches!(wanted, Wanted::Action(_));
        (is_it && text.contains(&format!("command: \"{command}\""))).then_some(*id)
    });
    let action = found.unwrap_or_else(|| panic!("{command} among {:?}", asked(world)));
    world.at += 10;
    world.apply(if works {
        let result = Value::map([("exit_code", Value::Int(0))]);
        Happening::Completed { action, result }
    } else {
        Happening::Failed {
            action,
            error: Failure::new(FailureKind::Action, "it broke"),
            result: Value::Null,
        }
    });
}

/// The timers that a host which takes the run over now is asked for.
fn timers(world: &World) -> Vec<(ActionId, u64)> {
    let pending = world.run.pending().into_iter();
    let timers = pending.filter_map(|effect| match effect {
        Effect::Sleep { timer, until } => Some((timer, until)),
        _ => None,
    });
    timers.collect()
}

fn wake(world: &mut World) {
    let (timer, until) = timers(world)[0];
    world.at = world.at.max(until);
    world.apply(Happening::Woke { timer });
}

#[test]
fn the_time_of_a_loop_ends_what_runs_in_it_and_its_own_on_error_applies() {
    let mut world = world(
        "state: {n: 0}
steps:
  - id: poll
    type: while
    if: '{{ true }}'
    timeout: 1s
    on_error: continue
    steps: [{id: look, type: shell, command: look}]
  - {id: after, type: shell, command: after}
",
    );
    let began = world.at;
    answer(&mut world, "look", true);
    answer(&mut world, "look", true);
    let (_, until) = timers(&world)[0];
    assert_eq!(until, began + 1000, "one time for all iterations");
    wake(&mut world);
    assert_eq!(asked(&world), ["after"]);
    assert_eq!(timers(&world), []);
    answer(&mut world, "after", true);
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn a_container_whose_time_is_up_fails_the_run_and_goes_on_inside_when_it_is_resumed() {
    let mut world = world(
        "steps:
  - id: both
    type: condition
    if: true
    timeout: 1s
    then:
      - {id: one, type: shell, command: one}
      - {id: two, type: shell, command: two}
",
    );
    answer(&mut world, "one", true);
    wake(&mut world);
    assert_eq!(world.run.status(), Status::Failed);
    let error = world.run.data().unwrap().error.clone().unwrap();
    assert_eq!(error.kind, FailureKind::Timeout);
    assert!(
        error.message.contains("`both` did not end within 1 s"),
        "{error:?}"
    );
    world.at += 5000;
    world.apply(Happening::Resumed(Allowance::default()));
    assert_eq!(asked(&world), ["two"], "what was done is not done again");
    assert_eq!(
        timers(&world)[0].1,
        world.at + 1000,
        "and has its time again"
    );
    answer(&mut world, "two", true);
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn the_time_of_a_fan_out_stops_its_children() {
    let mut world = world(
        "tasks: {t: {inputs: {x: string}, steps: [{id: ping, type: shell, command: 'ping {{ inputs.x }}'}]}}
steps:
  - {id: all, type: foreach, items: [a, b], task: t, timeout: 1s, on_error: continue}
  - {id: after, type: shell, command: after}
",
    );
    assert_eq!(asked(&world), ["ping a", "ping b"]);
    answer(&mut world, "ping a", true);
    wake(&mut world);
    assert_eq!(asked(&world), ["after"]);
    answer(&mut world, "after", true);
    assert_eq!(world.run.status(), Status::Completed);
    assert!(world.run.data().unwrap().parked.is_empty());
}

#[test]
fn a_failure_that_nothing_inside_handles_is_the_containers() {
    let mut world = world(
        "steps:
  - id: outer
    type: foreach
    items: [1, 2]
    steps:
      - id: inner
        type: while
        if: true
        on_error: continue
        steps:
          - {id: work, type: condition, if: true, then: [{id: deep, type: shell, command: deep}]}
      - {id: after, type: shell, command: 'after {{ item }}'}
",
    );
    answer(&mut world, "deep", true);
    answer(&mut world, "deep", false);
    answer(&mut world, "after 1", true);
    answer(&mut world, "deep", false);
    answer(&mut world, "after 2", true);
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn a_container_that_is_tried_again_begins_at_its_start_with_its_time() {
    let mut world = world(
        "steps:
  - id: all
    type: foreach
    items: [a, b]
    retry: {attempts: 3, delay: 2}
    timeout: 10s
    steps: [{id: work, type: shell, command: 'work {{ item }}'}]
",
    );
    answer(&mut world, "work a", true);
    answer(&mut world, "work b", false);
    assert_eq!(
        timers(&world).len(),
        1,
        "the pause, and no time of an attempt"
    );
    wake(&mut world);
    assert_eq!(asked(&world), ["work a"]);
    assert_eq!(timers(&world)[0].1, world.at + 10_000);
    wake(&mut world);
    wake(&mut world);
    answer(&mut world, "work a", true);
    answer(&mut world, "work b", false);
    assert_eq!(world.run.status(), Status::Failed);
}

#[test]
fn a_resumed_fan_out_does_only_what_gave_no_result_and_each_child_goes_on_where_it_failed() {
    let mut world = world(
        "tasks:
  t:
    inputs: {x: string}
    on_error: {steps: [{id: undo, type: shell, command: 'undo {{ inputs.x }}'}]}
    steps:
      - {id: one, type: shell, command: 'one {{ inputs.x }}'}
      - {id: two, type: shell, command: 'two {{ inputs.x }}'}
      - {type: return, value: 'done {{ inputs.x }}'}
steps:
  - {id: all, type: foreach, items: [a, b, c], task: t, output_to: r}
outputs: {r: {type: array, value: '{{ state.r }}'}}
",
    );
    for command in ["one a", "one b", "one c", "two a", "two c"] {
        answer(&mut world, command, true);
    }
    answer(&mut world, "two b", false);
    answer(&mut world, "undo b", true);
    assert_eq!(world.run.status(), Status::Failed);
    world.apply(Happening::Resumed(Allowance::default()));
    assert_eq!(asked(&world), ["two b"]);
    answer(&mut world, "two b", true);
    assert_eq!(world.run.status(), Status::Completed);
    let output = world.run.data().unwrap().output.to_json();
    assert_eq!(
        output["r"],
        serde_json::json!(["done a", "done b", "done c"])
    );
    assert!(world.run.data().unwrap().parked.is_empty());
}

#[test]
fn children_stopped_with_their_run_go_on_where_they_were_also_inside_each_other() {
    let mut world = world(
        "limits: {timeout: 5}
tasks:
  inner: {inputs: {y: integer}, steps: [{id: deep, type: shell, command: 'deep {{ inputs.y }}'}, {id: deeper, type: shell, command: 'deeper {{ inputs.y }}'}]}
  outer: {inputs: {x: string}, steps: [{id: first, type: shell, command: 'first {{ inputs.x }}'}, {id: below, type: foreach, items: [1, 2], task: inner}]}
steps:
  - {id: all, type: foreach, items: [a], task: outer}
",
    );
    answer(&mut world, "first a", true);
    answer(&mut world, "deep 1", true);
    answer(&mut world, "deeper 1", true);
    answer(&mut world, "deep 2", true);
    let (timer, until) = world.run.data().unwrap().limit.unwrap();
    world.at = until;
    world.apply(Happening::Woke { timer });
    assert_eq!(world.run.status(), Status::Failed);
    world.apply(Happening::Resumed(Allowance::default()));
    assert_eq!(asked(&world), ["deeper 2"]);
    answer(&mut world, "deeper 2", true);
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn a_result_for_the_clock_of_a_container_is_nobodys() {
    let mut world = world(
        "steps:
  - id: all
    type: foreach
    items: [1, 2]
    task: each
    timeout: 60
tasks: {each: {steps: [{type: shell, command: work}]}}
",
    );
    let under_way = asked(&world);
    assert_eq!(under_way, ["work", "work"]);
    let (action, _) = timers(&world)[0];
    for stray in [
        Happening::Completed {
            action,
            result: Value::Null,
        },
        Happening::Failed {
            action,
            error: Failure::new(FailureKind::Action, "late"),
            result: Value::Null,
        },
    ] {
        world.apply(stray);
        assert_eq!(asked(&world), under_way);
    }
    answer(&mut world, "work", true);
    answer(&mut world, "work", true);
    assert_eq!(world.run.status(), Status::Completed);
}

#[test]
fn whoever_takes_a_run_over_keeps_the_pause_before_the_next_attempt() {
    for retried in [
        "{id: c, type: shell, command: work, retry: {attempts: 2, delay: 6}}",
        "{id: c, type: condition, if: '{{ true }}', retry: {attempts: 2, delay: 6}, then: [{type: shell, command: work}]}",
    ] {
        let mut world = world(&format!("steps:\n  - {retried}\n"));
        answer(&mut world, "work", false);
        let (_, until) = timers(&world)[0];
        assert_eq!(until, world.at + 6000, "{retried}");
        wake(&mut world);
        answer(&mut world, "work", true);
        assert_eq!(world.run.status(), Status::Completed);
    }
}
