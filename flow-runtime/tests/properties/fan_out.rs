//! A fan-out: no item is dropped, none begins twice without a reason, results are in item order.

use std::collections::BTreeMap;

use flow_runtime::run::{Deed, Failure, FailureKind, Happening, Status};
use flow_runtime::value::Value;
use proptest::collection::vec;
use proptest::prelude::*;

use super::choices::Choices;
use super::world::{Wanted, World};
use super::{compiled, config, program};

fn definition(count: usize, how: &str, rule: &str) -> String {
    format!(
        "limits: {{max_steps: 10000}}
steps:
  - {{id: fan, type: foreach, items: '{{{{ range({count}) | list }}}}', task: one, {how}, on_child_error: {rule}, output_to: all, on_error: continue}}
tasks:
  one:
    inputs: {{n: {{type: integer, required: true}}}}
    steps:
      - {{id: work, type: shell, command: 'work {{{{ inputs.n }}}}', output_format: text, output_to: out}}
      - {{type: return, value: '{{{{ state.out }}}}'}}
"
    )
}

/// The item that a command works on.
fn item(deed: &Deed) -> usize {
    let Deed::Shell { command, .. } = deed else {
        panic!("{deed:?}")
    };
    command.rsplit(' ').next().unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn no_item_is_dropped_and_results_are_in_item_order(
        count in 0usize..70,
        parallel in prop_oneof![Just(None), (1usize..80).prop_map(Some)],
        rule in prop_oneof![
            Just("fail"), Just("continue"), Just("fail_all"),
            Just("{strategy: retry_failed, max_retries: 2}"),
        ],
        turns in vec(any::<u16>(), 0..300),
    ) {
        let how = match parallel {
            None => "sequential: true".to_owned(),
            Some(parallel) => format!("max_parallel: {parallel}"),
        };
        let limit = parallel.unwrap_or(1).min(50);
        let text = definition(count, &how, rule);
        let mut world = World::new(program(compiled(&text)), Value::Null);
        let mut choices = Choices::new(turns);
        let mut begun: BTreeMap<usize, usize> = BTreeMap::new();
        let mut results: Vec<Option<Value>> = vec![None; count];
        let mut failed = 0;
        while world.run.status() == Status::Running {
            let under_way: Vec<_> = world.wanted.iter().map(|(id, wanted)| match wanted {
                Wanted::Action(action) => (*id, item(&action.what)),
                Wanted::Time => panic!("nothing here sleeps"),
            }).collect();
            prop_assert!(under_way.len() <= limit);
            let (id, item) = under_way[choices.below(under_way.len())];
            *begun.entry(item).or_default() += 1;
            if choices.once_in(4) {
                failed += 1;
                let error = Failure::new(FailureKind::Action, "it broke");
                world.apply(Happening::Failed { action: id, error, result: Value::Null });
            } else {
                let said = Value::text(format!("{item} {}", begun[&item]));
                results[item] = Some(said.clone());
                let result = Value::map([("stdout", said), ("exit_code", Value::Int(0))]);
                world.apply(Happening::Completed { action: id, result });
            }
        }
        prop_assert_eq!(world.run.status(), Status::Completed);
        let most = if rule.contains("retry") { 3 } else { 1 };
        prop_assert!(begun.values().all(|times| *times <= most), "{:?}", begun);
        if rule != "fail_all" || failed == 0 {
            prop_assert_eq!(begun.len(), count, "an item was dropped");
        }
        let all_worked = results.iter().all(Option::is_some);
        let all = &world.run.data().unwrap().store.raw.get("all").cloned();
        if all_worked || rule == "continue" {
            let expected = Value::list(results.into_iter().map(Option::unwrap_or_default));
            prop_assert_eq!(all, &Some(expected));
        } else {
            prop_assert_eq!(all, &None);
        }
    }
}

#[test]
fn a_fan_out_over_many_items_that_do_not_fit_its_task_fails_and_does_not_overflow() {
    let text = "steps:
  - {type: foreach, items: \"{{ range(20000) | list }}\", task: one, on_child_error: continue, output_to: all}
tasks:
  one:
    inputs: {name: {type: string, required: true}}
    steps: [{type: return, value: '{{ inputs.name }}'}]
";
    let world = World::new(program(compiled(text)), Value::Null);
    assert_eq!(world.run.status(), Status::Completed);
    let all = world.run.data().unwrap().store.raw.get("all").cloned();
    assert_eq!(all.unwrap().as_list().unwrap().len(), 20_000);
}
