//! Generated code at work: inputs, outputs, names and types by hand. The modules are those that
//! `flow-codegen/tests/golden` shows as text.
#![deny(warnings, missing_docs)]
#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use serde_json::json;

include!("../flow-codegen/tests/golden/order.rs");
include!("../flow-codegen/tests/golden/names.rs");

fn inputs() -> order::Inputs {
    order::Inputs {
        customer: "Ada".to_owned(),
        items: vec!["book".to_owned()],
        express: false,
        address: order::InputsAddress {
            street: "Main Street 1".to_owned(),
            zip: None,
        },
        token: Some("hush".to_owned()),
        options: flow::Values::new(),
    }
}

#[test]
fn inputs_are_read_checked_and_completed() {
    let given = json!({
        "customer": "Ada", "items": ["book"], "token": null,
        "address": {"street": "Main Street 1"},
    });
    let read: order::Inputs = serde_json::from_value(given).unwrap();
    assert!(!read.express);
    assert_eq!(read.token, None);
    assert_eq!(read.options["gift"], json!(true));
    assert_eq!(read.address.zip, None);
    read.validate().unwrap();
}

#[test]
fn reading_inputs_names_every_fault() {
    let given = json!({"items": [], "address": {"zip": "1"}, "expres": true});
    let error = serde_json::from_value::<order::Inputs>(given).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`customer` must be given (a string); `items` must have at least 1 item; \
         `address.street` must be given (a string); `address.zip` must match `^[0-9]{5}$`; \
         `expres` is not declared; did you mean `express`?"
    );
}

#[test]
fn inputs_made_by_hand_are_checked_by_the_same_rules() {
    let mut inputs = inputs();
    inputs.validate().unwrap();
    inputs.items.clear();
    inputs.address.zip = Some("x".to_owned());
    let faults = inputs.validate().unwrap_err().0;
    let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(paths, ["items", "address.zip"]);
}

#[test]
fn a_secret_is_not_shown() {
    let shown = format!("{:?}", inputs());
    assert!(shown.contains("Ada") && shown.contains("***"), "{shown}");
    assert!(!shown.contains("hush"), "{shown}");
}

#[test]
fn what_is_written_is_read_again() {
    let written = serde_json::to_value(inputs()).unwrap();
    assert_eq!(written["address"], json!({"street": "Main Street 1"}));
    let read: order::Inputs = serde_json::from_value(written).unwrap();
    assert_eq!(read, inputs());
    let output: order::Output = serde_json::from_str(r#"{"receipt": "r1"}"#).unwrap();
    assert_eq!(output.receipt, "r1");
}

#[test]
fn defaults_have_the_types_of_their_fields() {
    use odd_names_of_things::{Inputs, InputsServer};
    let inputs = Inputs::default();
    assert_eq!(inputs.r#type, "x");
    assert_eq!(inputs.self_, None);
    assert!(inputs.dry_run);
    assert_eq!(inputs._2fa, None);
    assert_eq!(inputs.ratio, 2.0);
    assert_eq!(inputs.levels, [1, 2]);
    let server = InputsServer {
        host: "localhost".to_owned(),
        port: 80,
        tls: None,
    };
    assert_eq!(inputs.server, server);
    assert_eq!(inputs.anything, [json!(1), json!("a"), json!({"b": null})]);
    assert_eq!(
        serde_json::to_value(&inputs).unwrap()["ratio"].to_string(),
        "2"
    );
    let read: Inputs = serde_json::from_str("{}").unwrap();
    assert_eq!(read, inputs);
}

#[test]
fn states_have_the_names_of_the_definition() {
    use order::State;
    assert_eq!(State::INITIAL.to_string(), "draft");
    assert_eq!(format!("{:>10}|", State::Pay), "       pay|");
    assert_eq!("deliver".parse(), Ok(State::Deliver));
    assert_eq!(
        "delivered!".parse::<State>().unwrap_err().to_string(),
        "there is no state `delivered!`; did you mean `delivered`?"
    );
    assert_eq!(
        serde_json::to_string(State::ALL).unwrap(),
        r#"["draft","pay","deliver","delivered","cancelled"]"#
    );
    assert_eq!(
        serde_json::from_str::<State>("\"pay\"").unwrap(),
        State::Pay
    );
}

#[test]
fn transitions_are_known_while_compiling() {
    use order::{Outcome, State};
    const AFTER_PAYMENT: Option<State> = State::Pay.next(Outcome::Success);
    assert_eq!(AFTER_PAYMENT, Some(State::Deliver));
    assert_eq!(State::Draft.next(Outcome::Edge(0)), Some(State::Pay));
    assert_eq!(State::Draft.next(Outcome::Edge(1)), None);
    assert!(State::Delivered.is_final() && State::Delivered.completes(Outcome::Success));
    assert!(!State::Delivered.completes(Outcome::Failure));
}

#[test]
fn types_walk_the_same_way() {
    use order::{State, at};
    let deliver = at::Draft.edge_0().success();
    assert_eq!(deliver.state(), State::Deliver);
    let cancelled: at::Cancelled = deliver.failure();
    cancelled.success();
}

#[test]
fn tools_are_typed() {
    struct Till;
    impl order::Tools for Till {
        async fn charge(
            &self,
            params: order::ChargeParams,
        ) -> Result<order::ChargeResult, flow::ToolError> {
            params.validate()?;
            Ok(order::ChargeResult {
                receipt: format!("{} paid {}", params.customer, params.cents),
            })
        }
        async fn notify(&self, _params: flow::Values) -> Result<flow::Value, flow::ToolError> {
            Err(flow::ToolError::new("nobody is there"))
        }
    }
    fn is_send<T: Send>(_: T) {}
    let params = order::ChargeParams {
        customer: "Ada".to_owned(),
        cents: 0,
    };
    is_send(order::Tools::charge(&Till, params));
}

#[test]
fn built_in_workflows_are_found_by_name() {
    let names: Vec<&str> = flow::builtin::ALL
        .iter()
        .map(|builtin| builtin.name)
        .collect();
    assert_eq!(
        names,
        [
            "code-review",
            "implement",
            "plan",
            "planning-session",
            "task-runner",
            "test-runner",
            "tour"
        ]
    );
    let plan = flow::builtin::find("plan").unwrap();
    assert!(plan.source.starts_with("name: plan"));
    assert!(!plan.description.is_empty());
    let inputs = plan.graph.inputs.as_deref().unwrap();
    assert!(
        inputs
            .iter()
            .any(|field| field.name == "plan_filename" && field.required)
    );
}
