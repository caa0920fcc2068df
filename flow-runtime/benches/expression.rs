//! What evaluating costs, by kind of text.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot be set up has failed"
)]

use std::sync::Arc;

use divan::{Bencher, black_box};
use flow_model::graph::{Dialect, Expression, Rule, Template};
use flow_runtime::expression::{Context, Engine, EvalError, Instant, Scope, View};
use flow_runtime::value::{Map, Value};

fn main() {
    divan::main();
}

struct World {
    inputs: Value,
    state: Map,
}

impl World {
    /// A state with 1,100 fields, one of them a list of 1,000 maps.
    fn new() -> Self {
        let mut state = Map::default();
        for n in 0..1_100 {
            let value = Value::map([("n", Value::Int(n)), ("name", Value::text("field"))]);
            state.0.insert(Arc::from(format!("field_{n}")), value);
        }
        let file = |n: i64| {
            Value::map([
                ("path", Value::text(format!("src/file_{n}.rs"))),
                (
                    "status",
                    Value::text(if n % 3 == 0 { "failed" } else { "ok" }),
                ),
                ("lines", Value::Int(n)),
                ("score", Value::Float(n as f64 + 0.5)),
            ])
        };
        state
            .0
            .insert(Arc::from("files"), Value::list((0..1_000).map(file)));
        state.0.insert(Arc::from("count"), Value::Int(3));
        state.0.insert(Arc::from("status"), Value::text("running"));
        World {
            inputs: Value::map([("name", Value::text("it's")), ("limit", Value::Int(10))]),
            state,
        }
    }
}

impl Scope for World {
    fn lookup(&self, name: &str) -> Option<Value> {
        (name == "inputs").then(|| self.inputs.clone())
    }

    fn field(&self, _: View, name: &str) -> Result<Option<Value>, EvalError> {
        Ok(self.state.0.get(name).cloned())
    }

    fn fields(&self, _: View) -> Vec<Arc<str>> {
        self.state.0.keys().cloned().collect()
    }
}

fn expression(source: &'static str, dialect: Dialect) -> Expression {
    Expression {
        source: source.into(),
        dialect,
    }
}

const CONDITION: &str = "state.count < inputs.limit and state.status == 'running'";

#[divan::bench(args = [
    ("path", "state.field_7.name"),
    ("comparison", "state.count < 10"),
    ("condition", CONDITION),
    ("sum", "state.count + 1"),
    ("filters", "state.status | upper | default('x')"),
    ("selection of 1,000", "state.files | selectattr('status', 'equalto', 'ok') | list | length"),
])]
fn jinja(bencher: Bencher<'_, '_>, (_, source): (&str, &'static str)) {
    eval(bencher, source, Dialect::Jinja);
}

#[divan::bench(args = [
    ("path", "state.field_7.name"),
    ("comparison", "state.count < 10"),
    ("condition", "state.count < inputs.limit && state.status === 'running'"),
    ("filter", "inputs.name | upper"),
])]
fn js(bencher: Bencher<'_, '_>, (_, source): (&str, &'static str)) {
    eval(bencher, source, Dialect::Js);
}

fn eval(bencher: Bencher<'_, '_>, source: &'static str, dialect: Dialect) {
    let (world, instant, engine) = (World::new(), Instant::new(0, 0), Engine::new());
    let context = Context::new(&world, &instant);
    let expression = expression(source, dialect);
    bencher.bench_local(|| {
        engine
            .eval_expression(black_box(&expression), &context)
            .unwrap()
    });
}

#[divan::bench(args = [
    ("one field", "input.map(f => f.lines)"),
    ("filter and map", "input.filter(f => f.status === 'ok').map(f => ({path: f.path, size: f.lines * 2}))"),
    ("sum", "input.reduce((sum, f) => sum + f.lines, 0)"),
])]
fn transform_1000(bencher: Bencher<'_, '_>, (_, source): (&str, &'static str)) {
    let (world, instant, engine) = (World::new(), Instant::new(0, 0), Engine::new());
    let context = Context::new(&world, &instant);
    let files = world.state.0["files"].clone();
    let rule = Rule::Transform(source.into());
    bencher.bench_local(|| {
        engine
            .transform(black_box(&rule), &files, &context)
            .unwrap()
    });
}

#[divan::bench(args = ["Hello {{ inputs.name }}, {{ state.count }} of {{ inputs.limit }}"])]
fn text(bencher: Bencher<'_, '_>, source: &'static str) {
    let (world, instant, engine) = (World::new(), Instant::new(0, 0), Engine::new());
    let context = Context::new(&world, &instant);
    let template = Template::Text(expression(source, Dialect::Jinja));
    bencher.bench_local(|| engine.render(black_box(&template), &context).unwrap());
}

#[divan::bench(args = ["git commit -m {{ inputs.name }} --max=\"{{ inputs.limit }}\""])]
fn command(bencher: Bencher<'_, '_>, source: &'static str) {
    let (world, instant, engine) = (World::new(), Instant::new(0, 0), Engine::new());
    let context = Context::new(&world, &instant);
    let template = Template::Text(expression(source, Dialect::Jinja));
    bencher.bench_local(|| {
        engine
            .render_command(black_box(&template), &context)
            .unwrap()
    });
}

#[divan::bench(args = [Dialect::Jinja, Dialect::Js])]
fn compile(bencher: Bencher<'_, '_>, dialect: &Dialect) {
    let (world, instant) = (World::new(), Instant::new(0, 0));
    let context = Context::new(&world, &instant);
    let expression = expression("state.count < inputs.limit", *dialect);
    bencher.bench_local(|| {
        Engine::new()
            .eval_expression(&expression, &context)
            .unwrap()
    });
}
