use flow_model::graph::{Dialect, Rule};

use super::super::{Context, Engine, ErrorKind, EvalError, Instant};
use super::{json, narrowed, sole, world};
use crate::value::Value;

fn eval(source: &str) -> Value {
    match super::eval(source, Dialect::Js) {
        Ok(value) => value,
        Err(error) => panic!("{source}: {error:?}"),
    }
}

fn fails(source: &str) -> EvalError {
    super::eval(source, Dialect::Js).unwrap_err()
}

fn transform(source: &str, input: &str) -> Value {
    let (world, instant) = (world(), Instant::new(0, 1));
    let rule = match flow_model::expression::transform(source).shape {
        flow_model::expression::Shape::Expression => Rule::Transform(source.to_owned().into()),
        flow_model::expression::Shape::Body => Rule::Body(source.to_owned().into()),
    };
    let done = Engine::new().transform(&rule, &json(input), &Context::new(&world, &instant));
    done.unwrap_or_else(|error| panic!("{source}: {error:?}"))
}

#[test]
fn an_expression_has_its_native_value() {
    for (source, value) in [
        ("inputs.count + 1", "4"),
        ("state.files.length > 1 && mode === 'fast'", "true"),
        (
            "state.files.filter(f => f.status == 'ok').map(f => f.path)",
            r#"["a.rs"]"#,
        ),
        ("nope", "null"),
        ("nope ?? 'x'", r#""x""#),
        ("inputs?.nope?.deeper", "null"),
        ("inputs.tags.length", "2"),
        ("inputs.name.length", "4"),
        ("total + this.count + raw.count + computed.total", "94"),
        (
            "({a: undefined, b: [undefined], c: new Date(0), d: 0/0})",
            r#"{"b":[null],"c":"1970-01-01T00:00:00.000Z","d":null}"#,
        ),
        ("2 ** 52 + 2", "4503599627370498"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("5n", "5"),
        ("6 / 2", "3"),
        ("'\\ud800x'", "\"\u{fffd}x\""),
        ("inputs.tags | join('-') | upper", r#""A-B""#),
        ("nope | default('x')", r#""x""#),
        ("5 | 2", "7"),
        (
            "now().isoformat() + now()",
            r#""2025-08-19T14:30:002025-08-19 14:30:00""#,
        ),
        ("now()", r#""2025-08-19 14:30:00""#),
        (
            "[Date.now(), +new Date(), new Date(2020, 1, 3).getHours()]",
            "[1755613800000,1755613800000,0]",
        ),
        (
            "new Date('2020-01-02T03:04:05').toISOString()",
            r#""2020-01-02T03:04:05.000Z""#,
        ),
        ("new Date('2020-01-02').getDate()", "2"),
        (
            "new Date(0).toString()",
            r#""Thu Jan 01 1970 00:00:00 GMT+0000 (UTC)""#,
        ),
        ("new Date() instanceof Date", "true"),
        ("uuid() !== uuid() && uuid().length", "36"),
        ("Math.random() !== Math.random()", "true"),
        (
            "variable('session_id') + variable('nope')",
            r#""s-1{nope}""#,
        ),
        ("typeof Function('return 1')", r#""function""#),
        (
            "(() => { const o = {}; o.constructor = 1; o.toString = 2; return o; })()",
            r#"{"constructor":1,"toString":2}"#,
        ),
        ("[...new Set([1, 1, 2])].concat([3]).flat()", "[1,2,3]"),
        ("new Map([['a', 1]]).get('a')", "1"),
    ] {
        assert_eq!(eval(source), json(value), "{source}");
    }
    assert_eq!(eval("Math.random()"), eval("Math.random()"));
}

#[test]
fn a_transform_is_an_expression_an_object_or_a_body() {
    assert_eq!(transform("input.length", "[1, 2]"), json("2"));
    assert_eq!(
        transform("{ total: input.length }", "[1]"),
        json(r#"{"total":1}"#)
    );
    assert_eq!(
        transform("const n = input * 2; return n + total", "4"),
        json("50")
    );
    assert_eq!(
        transform("input.reduce((a, b) => a + b, 0) // sum", "[1, 2, 3]"),
        json("6")
    );
    let (world, instant) = (world(), Instant::new(0, 1));
    let context = Context::new(&world, &instant);
    let engine = Engine::new();
    assert!(
        engine
            .validate("output > total", &Value::Int(43), &context)
            .unwrap()
    );
    assert!(
        !engine
            .validate("output > total", &Value::Int(42), &context)
            .unwrap()
    );
}

#[test]
fn text_shows_values_one_way() {
    let text = super::render(
        "{{ inputs.name }} {{ inputs.count }} [{{ nope }}] {{ null }} {{ 4 / 2 }} {{ inputs.tags }} {{ {a: 1} }}",
        Dialect::Js,
    );
    assert_eq!(text.unwrap(), r#"it's 3 [] null 2 ["a","b"] {"a":1}"#);
}

#[test]
fn a_step_sees_only_the_state_it_lists() {
    assert_eq!(
        narrowed("state.count", Dialect::Js, &["count"]).unwrap(),
        json("5")
    );
    assert_eq!(
        narrowed("Object.keys(state)", Dialect::Js, &["count"]).unwrap(),
        json(r#"["count"]"#)
    );
    for source in ["state.mode", "mode + 1", "state.user?.name", "[raw.user]"] {
        let error = narrowed(source, Dialect::Js, &["count"]).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::NotInNeedsState { .. }),
            "{source}: {error}"
        );
    }
}

#[test]
fn nothing_of_an_evaluation_is_left_for_the_next() {
    for source in [
        "(globalThis.leak = 1)",
        "(Array.prototype.leak = 1)",
        "(Object.prototype.leak = 1)",
        "([].__proto__.leak = 1)",
        "(Math.leak = 1)",
        "(JSON.parse = 1)",
        "(Date.prototype.leak = 1)",
        "((function*(){}).constructor.prototype.leak = 1)",
        "Object.defineProperty(Object.prototype, 'leak', {value: 1})",
        "Function('leak = 1')()",
        "Function('globalThis.leak = 1')()",
        "(0, eval)('let leak = 1')",
        "(now.leak = 1)",
        "(Object.prototype.toString = 1)",
        "Symbol.for('x').description.constructor.leak = 1",
        "Object.setPrototypeOf(Array.prototype, {leak: 1})",
        "Promise.resolve().then(() => { globalThis.leak = 1 })",
        "(inputs.leak = 1)",
        "(inputs.tags.push('c'))",
    ] {
        let _ = super::eval(source, Dialect::Js);
        let clean = "typeof leak + typeof [].leak + typeof ({}).leak + typeof Math.leak + typeof new Date().leak + typeof inputs.leak + inputs.tags.length + typeof (function*(){}).leak + Object.prototype.toString.call([])";
        assert_eq!(
            super::eval(
                &clean.replace("typeof leak", "typeof globalThis.leak"),
                Dialect::Js
            )
            .unwrap(),
            Value::text(
                "undefinedundefinedundefinedundefinedundefinedundefined2undefined[object Array]"
            ),
            "{source}"
        );
    }
}

#[test]
fn faults_are_told_apart() {
    assert_eq!(fails("1 +").kind, ErrorKind::Syntax);
    assert_eq!(fails("nope()").kind, ErrorKind::Syntax);
    let error = fails("inputs.nope.deeper");
    assert_eq!(error.kind, ErrorKind::Thrown);
    assert!(error.message.contains("TypeError"), "{error}");
    assert_eq!(
        fails("(() => { throw 'x' })()").message,
        "JavaScript threw: x"
    );
    assert_eq!(fails("(async () => 1)()").kind, ErrorKind::Type);
    assert_eq!(
        fails("(() => { const a = []; a.push(a); return a })()").kind,
        ErrorKind::Thrown
    );
    assert_eq!(fails("state.broken").message, "the rule of `broken` failed");
    assert_eq!(fails("eval('1')").kind, ErrorKind::Thrown);
}

#[test]
fn an_engine_works_on_every_thread() {
    let engine = Engine::new();
    let (js, jinja) = (
        sole("inputs.count * 2", Dialect::Js),
        sole("inputs.count * 2", Dialect::Jinja),
    );
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                let (world, instant) = (world(), Instant::new(0, 0));
                let context = Context::new(&world, &instant);
                for expression in [&js, &jinja] {
                    let value = engine.eval_expression(expression, &context);
                    assert_eq!(value.unwrap(), Value::Int(6));
                }
            });
        }
    });
}
