//! What holds for every definition, and whatever the world does to its runs.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

mod choices;
mod containers;
mod corpus;
mod definitions;
mod fan_out;
mod resume;
mod world;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use flow_model::diagnostic::Severity;
use flow_model::graph::{Edge, Graph, Guard};
use flow_model::loader::NoLoader;
use flow_model::source::Source;
use flow_model::{compile, diagnostic};
use flow_runtime::run::{
    Allowance, Data, Effect, Event, Expressions, FailureKind, Happening, Program, Run, Status,
};
use flow_runtime::value::Value;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use choices::Choices;
use world::{World, memory};

/// Things that happen to one run at most.
const TURNS: usize = 60;

fn program(graph: Graph) -> Arc<Program> {
    Arc::new(Program::new(
        Cow::Owned(graph),
        Box::new(Expressions::new()),
    ))
}

fn compiled(definition: &str) -> Graph {
    let compiled = compile(Source::new("generated.yaml", definition), &NoLoader);
    let findings: Vec<String> = compiled
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|f| diagnostic::text(f, &compiled.sources, diagnostic::Style::Plain))
        .collect();
    compiled
        .into_graph()
        .unwrap_or_else(|| panic!("{}\n{definition}", findings.join("\n")))
}

/// A definition, its inputs, and what happens to a run of it.
fn played(definition: Vec<u16>, turns: Vec<u16>) -> World {
    played_in(World::new, definition, turns)
}

fn played_in(
    world: fn(Arc<Program>, Value) -> World,
    definition: Vec<u16>,
    turns: Vec<u16>,
) -> World {
    let text = definitions::definition(&mut Choices::new(definition));
    let inputs = Value::map([
        ("a", Value::Int(3)),
        (
            "list",
            Value::list([Value::Int(1), Value::Int(2), Value::Int(3)]),
        ),
    ]);
    play(world(program(compiled(&text)), inputs), turns)
}

fn play(mut world: World, turns: Vec<u16>) -> World {
    let mut choices = Choices::new(turns);
    for _ in 0..TURNS {
        if choices.is_used_up() || world.run.status() == Status::Completed {
            break;
        }
        if world.run.status() == Status::Failed {
            if choices.once_in(3) {
                break;
            }
            resume::repeats_the_failed_step(&mut world);
        }
        world.turn(&mut choices);
    }
    world
}

/// Applying the events that a journal holds gives the same effects and the same memory, from the
/// start and from what was written down at any moment.
fn replays(world: &World) {
    let program = world.run.program();
    let mut again = Run::new(Arc::clone(program));
    let mut written: Option<Vec<u8>> = None;
    for (at, record) in world.records.iter().enumerate() {
        let event: Event = serde_json::from_slice(&record.event).unwrap();
        let effects = again.apply(&event).unwrap();
        assert_eq!(effects, record.effects, "event {at} of a replay");
        let data = serde_json::to_vec(&record.data).unwrap();
        let same = serde_json::to_vec(again.data().unwrap()).unwrap();
        assert_eq!(text(&same), text(&data), "event {at} of a replay");
        if let Some(written) = &written {
            let read: Data = serde_json::from_slice(written).unwrap();
            assert_eq!(
                read,
                world.records[at - 1].data,
                "as written down after {at}"
            );
            let mut restored = Run::restore(Arc::clone(program), read);
            let effects = restored.apply(&event).unwrap();
            assert_eq!(effects, record.effects, "event {at} after restoring");
            let same = serde_json::to_vec(restored.data().unwrap()).unwrap();
            assert_eq!(text(&same), text(&data), "event {at} after restoring");
            assert_eq!(restored.pending(), again.pending());
        }
        written = Some(data);
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Cancelling now ends everything, and what comes later changes nothing.
fn cancels(world: &World, strays: &mut Choices) {
    if world.run.status() != Status::Running {
        return;
    }
    let mut cancelled = World {
        run: world.run.clone(),
        at: world.at,
        wanted: world.wanted.clone(),
        is_to_continue: world.is_to_continue,
        records: Vec::new(),
        failures: Vec::new(),
        visits: world.visits.clone(),
    };
    let wanted: Vec<_> = cancelled.wanted.keys().copied().collect();
    let reason = "enough".to_owned();
    assert!(cancelled.apply(Happening::Cancelled { reason }));
    assert_eq!(cancelled.run.status(), Status::Cancelled);
    let effects = &cancelled.records.last().unwrap().effects;
    for id in wanted {
        assert!(effects.contains(&Effect::Stop(id)), "{id:?} goes on");
    }
    let begun = |effect: &&Effect| matches!(effect, Effect::Act(_) | Effect::Sleep { .. });
    assert_eq!(effects.iter().find(begun), None, "something begins");
    let before = memory(&cancelled.run);
    for _ in 0..8 {
        cancelled.stray(strays);
        cancelled.apply(Happening::Resumed(Allowance::default()));
        cancelled.apply(Happening::Continued);
    }
    assert_eq!(memory(&cancelled.run), before);
}

/// Whoever takes in what others have recorded, all of it or from some moment on, is left with what
/// is under way then, each of it once.
fn catches_up(world: &World, from: usize) {
    let id = |effect: &Effect| match effect {
        Effect::Act(action) => Some(action.id.0),
        Effect::Sleep { timer, .. } => Some(timer.0),
        Effect::Yield => Some(u64::MAX),
        _ => None,
    };
    let under_way: BTreeSet<u64> = world.run.pending().iter().filter_map(id).collect();
    for from in [0, from % (world.records.len() + 1)] {
        let records = world.records[from..].iter();
        let effects: Vec<Effect> = records.flat_map(|it| it.effects.clone()).collect();
        let told = |effects: &[Effect]| effects.iter().filter(|it| id(it).is_none()).count();
        let before = told(&effects);
        let wanted = world.run.still_wanted(effects, world.at);
        assert_eq!(told(&wanted), before, "what happened is told");
        let ids: Vec<u64> = wanted.iter().filter_map(id).collect();
        let each: BTreeSet<u64> = ids.iter().copied().collect();
        assert_eq!(
            ids.len(),
            each.len(),
            "something is wanted twice: {wanted:?}"
        );
        assert!(
            each.is_subset(&under_way),
            "something is done again: {wanted:?}"
        );
        assert!(from > 0 || each == under_way, "something is left undone");
    }
}

/// Nothing that the checker names may be what a run of a checked definition fails of.
fn is_the_checkers(kind: FailureKind, message: &str) -> bool {
    let phrases = [
        "does not exist",
        "leads nowhere",
        "is no action",
        "does not compile",
        "is computed and cannot be written",
        "unknown filter",
        "unknown function",
        "unknown test",
        "syntax error",
        "there is no state field",
    ];
    kind == FailureKind::StateAccess || phrases.iter().any(|phrase| message.contains(phrase))
}

/// So many cases, unless `PROPTEST_CASES` asks for more.
fn config(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|it| it.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(160))]

    #[test]
    fn a_replay_gives_the_same_effects_and_the_same_memory(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..240),
    ) {
        replays(&played(definition, turns));
    }

    #[test]
    fn whoever_catches_up_with_a_run_does_nothing_again(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..240),
        from in any::<u16>(),
    ) {
        catches_up(&played(definition.clone(), turns.clone()), usize::from(from));
        catches_up(&played_in(World::of_agents, definition, turns), usize::from(from));
    }

    #[test]
    fn cancelling_at_any_moment_ends_everything(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..120),
        strays in vec(any::<u16>(), 0..60),
    ) {
        let world = played(definition, turns);
        cancels(&world, &mut Choices::new(strays));
    }

    #[test]
    fn what_agents_do_to_a_run_is_replayed_the_same(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..240),
    ) {
        replays(&played_in(World::of_agents, definition, turns));
    }

    #[test]
    fn whatever_agents_have_done_cancelling_ends_everything(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..120),
        strays in vec(any::<u16>(), 0..60),
    ) {
        let world = played_in(World::of_agents, definition, turns);
        cancels(&world, &mut Choices::new(strays));
    }

    #[test]
    fn once_agents_behave_every_run_ends(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..120),
    ) {
        let mut world = played_in(World::of_agents, definition, turns);
        prop_assert!(world.finish(5_000), "the run does not end: {:?}", world.wanted);
    }

    #[test]
    fn once_the_world_behaves_every_run_ends(
        definition in vec(any::<u16>(), 0..160),
        turns in vec(any::<u16>(), 0..120),
    ) {
        let mut world = played(definition, turns);
        prop_assert!(world.finish(5_000), "the run does not end: {:?}", world.wanted);
        for failure in &world.failures {
            prop_assert!(!is_the_checkers(failure.kind, &failure.message), "{failure:?}");
        }
    }
}

#[test]
fn generated_definitions_have_every_kind_of_step_in_both_forms() {
    let mut runner = TestRunner::deterministic();
    let numbers = vec(any::<u16>(), 0..160);
    let mut kinds = BTreeSet::new();
    for _ in 0..400 {
        let choices = numbers.new_tree(&mut runner).unwrap().current();
        let text = definitions::definition(&mut Choices::new(choices));
        let graph = compiled(&text);
        let tasks = graph.tasks.iter().map(|task| &task.body);
        for node in tasks
            .chain([&graph.body])
            .flat_map(|body| body.nodes.iter())
        {
            let judged = |edge: &Edge| matches!(edge.guard, Guard::Judged(_));
            if node.edges.iter().any(judged) {
                kinds.insert("judged".to_owned());
            }
            let kind = format!("{:?}", node.kind);
            let name = kind.split(['(', ' ', '{']).next().unwrap();
            kinds.insert(format!("{:?} {name}", graph.form));
        }
    }
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let expected = [
        "States Call",
        "States Delegate",
        "States Prompt",
        "States SetState",
        "States Shell",
        "States Tool",
        "States Wait",
        "Steps Call",
        "Steps Condition",
        "Steps Delegate",
        "Steps FanOut",
        "Steps Goto",
        "Steps Jump",
        "Steps Loop",
        "Steps Prompt",
        "Steps Return",
        "Steps SetState",
        "Steps Shell",
        "Steps Tool",
        "Steps Wait",
        "Steps While",
        "judged",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_run_that_does_much_without_waiting_gives_way_and_can_be_cancelled_there() {
    let text = "state: {n: 0}
limits: {max_steps: 100000}
steps:
  - type: while
    if: 'true'
    max_iterations: 12000
    steps: [{type: set_state, updates: [{path: n, operation: increment}]}]
";
    let mut world = World::new(program(compiled(text)), Value::Null);
    assert!(world.is_to_continue);
    cancels(&world, &mut Choices::new(Vec::new()));
    while world.is_to_continue {
        world.apply(Happening::Continued);
    }
    assert_eq!(world.run.status(), Status::Completed);
    replays(&world);
}
