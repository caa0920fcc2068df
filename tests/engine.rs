//! Compiled workflows run by the engine: typed inputs, outputs, states and tools, and runs that
//! outlive their process.
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use flow::runtime::host::{NoTools, ToolCall, Toolbox, Tools as _};
use flow::runtime::value::Value as Inner;
use flow::{Call, Error, Host, Status, ToolError};
use serde_json::json;

flow::workflow!(
    r#"
    name: order
    inputs:
      customer: {type: string, required: true}
      cents: {type: integer, required: true, validation: {min: 1}}
    outputs:
      receipt: {type: string, value: "{{ state.payment.receipt }}"}
      word: {type: string, value: "{{ state.word }}"}
    tools:
      charge:
        params:
          customer: {type: string, required: true}
          cents: {type: integer, required: true, validation: {max: 5000}}
        returns:
          receipt: {type: string, required: true, validation: {min_length: 3}}
      note: {}
    steps:
      - {id: pay, type: mcp_call, tool: charge, parameters: {customer: "{{ inputs.customer }}", cents: "{{ inputs.cents }}"}, output_to: payment}
      - {id: tell, type: mcp_call, tool: note, parameters: {what: "{{ state.payment.receipt }}"}}
      - {id: say, type: shell, command: "echo {{ inputs.customer }}", output_format: text, output_to: word}
    "#
);

flow::workflow!(
    r#"
    name: sign-off
    initial_state: ask
    states:
      ask:
        action: {type: prompt, kind: confirm, message: Go on?}
        transitions:
          - {condition: {field_equals: {confirmed: true}}, next_state: finish}
          - {condition: always, next_state: give_up}
      finish: {action: {type: shell, command: "true"}}
      give_up: {action: {type: shell, command: "true"}}
    "#
);

flow::workflow!(
    r#"
    name: nothing
    outputs: {one: {type: integer, value: "{{ 1 }}"}}
    steps: []
    "#
);

#[derive(Clone, Default)]
struct Till {
    calls: Arc<Mutex<Vec<Call>>>,
    notes: Arc<Mutex<Vec<flow::Values>>>,
}

impl order::Tools for Till {
    async fn charge(&self, params: order::ChargeParams) -> Result<order::ChargeResult, ToolError> {
        self.calls.lock().unwrap().push(Call::current().unwrap());
        match params.customer.as_str() {
            "Mallory" => Err(ToolError::new("the card is stolen")),
            "Trent" => panic!("the till is on fire"),
            "Peggy" => Ok(order::ChargeResult {
                receipt: "x".to_owned(),
            }),
            customer => Ok(order::ChargeResult {
                receipt: format!("{customer} paid {}", params.cents),
            }),
        }
    }

    async fn note(&self, params: flow::Values) -> Result<flow::Value, ToolError> {
        self.notes.lock().unwrap().push(params);
        Ok(flow::Value::Null)
    }
}

fn inputs(customer: &str, cents: i64) -> order::Inputs {
    order::Inputs {
        customer: customer.to_owned(),
        cents,
    }
}

struct Place {
    directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Place {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Place {
            directory: tempfile::tempdir().unwrap(),
            runtime: runtime.unwrap(),
        }
    }

    fn host(&self) -> Host {
        Host::open(self.directory.path()).unwrap()
    }

    fn order(&self, till: &Till, inputs: order::Inputs) -> Result<order::Output, Error> {
        let host = self.host().with_tools(order::tools(till.clone()));
        self.runtime.block_on(order::run(inputs, &host))
    }
}

#[test]
fn a_run_takes_and_gives_the_types_of_its_definition() {
    let (place, till) = (Place::new(), Till::default());
    let output = place.order(&till, inputs("Ada; ls", 1200)).unwrap();
    assert_eq!(output.receipt, "Ada; ls paid 1200");
    assert_eq!(output.word, "Ada; ls");
    let notes = till.notes.lock().unwrap();
    assert_eq!(notes[0]["what"], json!("Ada; ls paid 1200"));
}

#[test]
fn nothing_is_started_with_inputs_that_are_not_as_declared() {
    let (place, till) = (Place::new(), Till::default());
    let error = place.order(&till, inputs("Ada", 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the workflow `order` is not started: `cents` must be at least 1"
    );
    assert!(order::Run::unfinished(&place.host()).unwrap().is_empty());
}

#[test]
fn what_a_tool_says_and_what_it_may_not_be_given_or_give_is_the_failure_of_its_step() {
    let (place, till) = (Place::new(), Till::default());
    let refusals = [
        (
            inputs("Ada", 6000),
            "the tool `charge` is not called: `cents` must be at most 5000",
        ),
        (
            inputs("Mallory", 1),
            "the tool `charge` failed: the card is stolen",
        ),
        (
            inputs("Trent", 1),
            "the tool `charge` panicked: the till is on fire",
        ),
        (
            inputs("Peggy", 1),
            "the result of the tool `charge` is not as declared: `receipt` must have at least 3 characters",
        ),
    ];
    for (inputs, said) in refusals {
        match place.order(&till, inputs) {
            Err(Error::Failed { error, .. }) => {
                assert!(error.message.ends_with(said), "{}", error.message);
                assert_eq!(error.step.as_deref(), Some("pay"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_failed_run_is_resumed_by_its_id() {
    let (place, till) = (Place::new(), Till::default());
    let Err(Error::Failed { run, .. }) = place.order(&till, inputs("Mallory", 1)) else {
        panic!("the card was accepted");
    };
    // Another host, as after a restart of the program, whose till takes the card.
    #[derive(Clone)]
    struct Lenient(Till);
    impl order::Tools for Lenient {
        async fn charge(
            &self,
            params: order::ChargeParams,
        ) -> Result<order::ChargeResult, ToolError> {
            self.0.calls.lock().unwrap().push(Call::current().unwrap());
            Ok(order::ChargeResult {
                receipt: format!("{} is forgiven", params.customer),
            })
        }
        async fn note(&self, params: flow::Values) -> Result<flow::Value, ToolError> {
            self.0.note(params).await
        }
    }
    let host = place.host().with_tools(order::tools(Lenient(till.clone())));
    let output = place.runtime.block_on(async {
        let run = order::resume(run, &host).await?;
        assert_eq!(run.id().to_string(), run.report()?.run.to_string());
        run.wait().await
    });
    assert_eq!(output.unwrap().receipt, "Mallory is forgiven");
    let calls = till.calls.lock().unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].run, run);
}

#[test]
fn a_run_that_asks_waits_and_is_answered_with_typed_states_on_the_way() {
    let place = Place::new();
    let host = place.host();
    place.runtime.block_on(async {
        let run = sign_off::start(flow::Values::new(), &host).await.unwrap();
        let waiting = run.wait().await.unwrap_err();
        assert_eq!(
            waiting.to_string(),
            format!("the run {} waits for `ask`", run.id())
        );
        assert_eq!(run.state().unwrap(), sign_off::State::Ask);
        assert_eq!(run.status().unwrap(), Status::Waiting);

        let wrong = run.answer("finish", true).await.unwrap_err();
        assert!(wrong.to_string().ends_with("those that do: ask"), "{wrong}");
        let invalid = run.answer("ask", "perhaps").await.unwrap_err();
        assert!(
            invalid.to_string().contains("the answer is not valid"),
            "{invalid}"
        );

        run.answer("ask", true).await.unwrap();
        run.wait().await.unwrap();
        assert_eq!(run.state().unwrap(), sign_off::State::Finish);
        assert_eq!(run.status().unwrap(), Status::Completed);
    });
}

#[test]
fn a_run_of_an_earlier_process_is_found_answered_and_cancelled() {
    let place = Place::new();
    let start = async |host: &Host| sign_off::start(flow::Values::new(), host).await.unwrap();
    let (first, second) = place.runtime.block_on(async {
        let host = place.host();
        let (first, second) = (start(&host).await, start(&host).await);
        let _ = (first.wait().await, second.wait().await);
        (first.id(), second.id())
    });
    let host = place.host();
    place.runtime.block_on(async {
        let unfinished = sign_off::Run::unfinished(&host).unwrap();
        let ids: Vec<_> = unfinished.iter().map(|run| run.id()).collect();
        assert_eq!(ids, [second, first]);
        let run = sign_off::Run::find(first, &host).unwrap();
        run.answer("ask", json!({"confirmed": false}))
            .await
            .unwrap();
        run.wait().await.unwrap();
        assert_eq!(run.state().unwrap(), sign_off::State::GiveUp);
        let run = sign_off::Run::find(second, &host).unwrap();
        run.cancel("no longer wanted").await.unwrap();
        assert!(matches!(run.wait().await, Err(Error::Cancelled { .. })));
        assert!(sign_off::Run::unfinished(&host).unwrap().is_empty());
        let other = order::Run::find(first, &host).unwrap_err();
        assert_eq!(
            other.to_string(),
            format!("{first} is a run of `sign-off`, not of `order`")
        );
    });
}

#[test]
fn a_workflow_without_states_gives_its_outputs() {
    let place = Place::new();
    let host = place.host();
    let output = place
        .runtime
        .block_on(nothing::run(flow::Values::new(), &host));
    assert_eq!(output.unwrap().one, 1);
}

#[test]
fn the_first_provider_that_has_a_tool_is_called() {
    struct Counted(Arc<AtomicUsize>);
    impl flow::runtime::host::Tools for Counted {
        fn call<'a>(
            &'a self,
            _call: ToolCall<'a>,
        ) -> flow::runtime::host::Boxed<'a, Result<Inner, flow::runtime::run::Failure>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(Inner::Null) })
        }
    }
    let (place, count) = (Place::new(), Arc::new(AtomicUsize::new(0)));
    let typed = order::tools(Till::default());
    let rest = Counted(Arc::clone(&count));
    let all = Toolbox::new([
        Arc::new(NoTools) as _,
        Arc::new(typed) as _,
        Arc::new(rest) as _,
    ]);
    let call = |tool: &'static str| {
        let parameters = Inner::map([("customer", Inner::text("Ada")), ("cents", Inner::Int(7))]);
        let call = ToolCall {
            run: flow::RunId::new(0, 0),
            tool,
            parameters: &parameters,
            key: "k",
        };
        place.runtime.block_on(all.call(call)).unwrap()
    };
    assert_eq!(
        call("charge").get("receipt"),
        Some(&Inner::text("Ada paid 7"))
    );
    assert_eq!(count.load(Ordering::Relaxed), 0);
    assert_eq!(call("other"), Inner::Null);
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
