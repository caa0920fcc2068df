#![allow(
    clippy::unwrap_used,
    reason = "a failed expectation is the test's failure"
)]

use serde_json::{Value, json};

use super::{FaultKind, Values, accept};
use crate::compile;
use crate::graph::Field;
use crate::loader::NoLoader;
use crate::source::Source;

fn fields(inputs: &str) -> Vec<Field> {
    let text = format!("inputs:\n{inputs}\nsteps:\n  - {{type: shell, command: 'true'}}\n");
    let compiled = compile(Source::new("t.yaml", text), &NoLoader);
    assert!(compiled.is_ok(), "{:#?}", compiled.findings);
    compiled.into_graph().unwrap().inputs.unwrap().into_owned()
}

fn map(value: Value) -> Values {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not a map"),
    }
}

fn messages(fields: &[Field], given: Value) -> Vec<String> {
    match accept(fields, map(given)) {
        Ok(values) => panic!("accepted as {values:?}"),
        Err(invalid) => invalid.0.into_iter().map(|f| f.message).collect(),
    }
}

#[test]
fn every_fault_is_named_at_once() {
    let fields = fields(
        "  env: {type: string, required: true, validation: {enum: [dev, prod]}}\n  count: {type: integer, validation: {min: 1, max: 5}}\n  tag: {type: string, required: true}\n  files: {type: array, validation: {item_type: string, min_items: 2}}\n  name: {type: string, validation: {pattern: '^[a-z]+$', max_length: 3}}",
    );
    let given = json!({"env": "qa", "count": 9, "files": [1], "name": "ABCD", "tga": "x"});
    assert_eq!(
        messages(&fields, given),
        [
            "`env` must be one of `dev`, `prod`",
            "`count` must be at most 5",
            "`tag` must be given (a string)",
            "`files` must have at least 2 items",
            "`files[0]` must be a string, and is a number",
            "`name` must have at most 3 characters",
            "`name` must match `^[a-z]+$`",
            "`tga` is not declared; did you mean `tag`?",
        ]
    );
}

#[test]
fn a_whole_number_is_an_integer_at_every_depth() {
    let fields = fields("  n: integer\n  x: number\n  list: array\n  map: object");
    let given = json!({"n": 2.0, "x": 1e3, "list": [1.0, 1.5, {"a": -0.0}], "map": {"k": 4.0}});
    assert_eq!(
        Value::Object(accept(&fields, map(given)).unwrap()).to_string(),
        r#"{"n":2,"x":1000,"list":[1,1.5,{"a":0}],"map":{"k":4}}"#
    );
}

#[test]
fn a_number_that_no_integer_holds_is_refused() {
    let fields = fields("  n: integer");
    for (given, said) in [
        (
            json!({"n": 1.5}),
            "`n` must be an integer, and is a number with a fraction",
        ),
        (
            json!({"n": 1e300}),
            "`n` must be an integer, and is a number with a fraction",
        ),
        (
            json!({"n": u64::MAX}),
            "`n` must be an integer, and is a number beyond 64 bits",
        ),
    ] {
        assert_eq!(messages(&fields, given), [said]);
    }
}

#[test]
fn null_is_absent_and_defaults_are_filled_in_order() {
    let fields = fields(
        "  a: {type: integer, default: 1.0}\n  b: string\n  c: {type: object, default: {}, validation: {properties: {port: {type: integer, default: 80}}}}",
    );
    let accepted = accept(&fields, map(json!({"b": null, "a": null}))).unwrap();
    assert_eq!(
        Value::Object(accepted).to_string(),
        r#"{"a":1,"c":{"port":80}}"#
    );
}

#[test]
fn nested_values_are_checked_under_their_path() {
    let fields = fields(
        "  server:\n    type: object\n    required: true\n    validation:\n      properties:\n        host: {type: string, required: true}\n        port: {type: integer, validation: {min: 1}}",
    );
    assert_eq!(
        messages(&fields, json!({"server": {"port": 0, "hots": "x"}})),
        [
            "`server.host` must be given (a string)",
            "`server.port` must be at least 1",
            "`server.hots` is not declared; did you mean `host`?",
        ]
    );
}

#[test]
fn a_map_with_required_keys_of_any_type_takes_other_keys() {
    let fields = fields(
        "  tags: {type: object, validation: {required_keys: [owner], properties: {cost: {type: integer}}}}",
    );
    let given = map(json!({"tags": {"owner": 1, "other": 2, "cost": 3}}));
    assert_eq!(accept(&fields, given.clone()).unwrap(), given);
    assert_eq!(
        messages(&fields, json!({"tags": {"cost": "x"}})),
        [
            "`tags` must have `owner`",
            "`tags.cost` must be an integer, and is a string"
        ]
    );
}

#[test]
fn the_definitions_own_message_is_about_values_that_are_given() {
    let fields = fields(
        "  v: {type: string, required: true, validation: {pattern: '^v', error_message: 'a version starts with v'}}",
    );
    assert_eq!(
        messages(&fields, json!({"v": "1"})),
        ["`v`: a version starts with v"]
    );
    let invalid = accept(&fields, Values::new()).unwrap_err();
    assert_eq!(invalid.0[0].kind, FaultKind::Missing);
    assert_eq!(invalid.to_string(), "`v` must be given (a string)");
}
