use flow_model::graph::{Dialect, Template};

use super::super::clock::draw;
use super::super::{Context, Engine, ErrorKind, EvalError, Instant, Limit};
use crate::value::Value;

fn jinja(source: &str) -> EvalError {
    match super::eval(source, Dialect::Jinja) {
        Ok(value) => panic!("{source} gave {} bytes", value.size()),
        Err(error) => error,
    }
}

fn template(source: &str) -> EvalError {
    match super::render(source, Dialect::Jinja) {
        Ok(text) => panic!("{source} gave {} bytes", text.len()),
        Err(error) => error,
    }
}

fn js(source: &str) -> EvalError {
    match super::eval(source, Dialect::Js) {
        Ok(value) => panic!("{source} gave {} bytes", value.size()),
        Err(error) => error,
    }
}

fn limit(error: &EvalError) -> Limit {
    match error.kind {
        ErrorKind::Limit(limit) => limit,
        _ => panic!("{error:?}"),
    }
}

#[test]
fn an_expression_cannot_produce_more_than_its_share() {
    let doubled = format!(
        "{}'aaaaaaaaaaaaaaaa'{}",
        "(".repeat(30),
        " * 16)".repeat(30)
    );
    for source in [
        "'%1000000000d' | format(1)",
        "'%*d' | format(1000000000, 1)",
        "'%.1000000000f' | format(1.5)",
        "'{:1000000000}'.format(1)",
        "'{:{}}'.format(1, 1000000000)",
        "'a' * 10**9",
        "'a' * 90000000",
        "inputs.name * 10**9",
        "[1] * 10**9",
        "(inputs.tags * 1000000) | join('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "(inputs.name * 1000000) | replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "(inputs.name * 1000000).replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "(inputs.name * 1000000) | regex_replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "'a\nb' | indent(1000000000)",
        "[1] | tojson(indent=1000000000)",
        "[1] | batch(1000000000, 'x')",
        "[1] | slice(1000000000)",
        "(inputs.name * 1000000) ~ (inputs.name * 10000000) ~ (inputs.name * 10000000)",
        &doubled,
    ] {
        let limit = limit(&jinja(source));
        assert!(
            matches!(limit, Limit::Size | Limit::Fuel),
            "{source}: {limit:?}"
        );
    }
}

#[test]
fn a_template_cannot_double_its_way_past_the_bounds() {
    let text = "{% set x = x ~ x %}".repeat(30);
    assert_eq!(
        limit(&template(&format!(
            "{{% set x = 'aaaaaaaa' %}}{text}{{{{ x }}}}"
        ))),
        Limit::Size
    );
    let text = "{% set x = x + x %}".repeat(30);
    assert_eq!(
        limit(&template(&format!(
            "{{% set x = [1, 2] %}}{text}{{{{ x | length }}}}"
        ))),
        Limit::Size
    );
    let text = "{% set x %}{{ x }}{{ x }}{% endset %}".repeat(30);
    assert_eq!(
        limit(&template(&format!("{{% set x = 'aaaaaaaa' %}}{text}"))),
        Limit::Size
    );
    let text = "{% set x = [x, x] %}".repeat(40);
    limit(&template(&format!(
        "{{% set x = [1] %}}{text}{{{{ x == x }}}}"
    )));
    let text = "{% set x = {'a': x, 'b': x} %}".repeat(40);
    limit(&template(&format!(
        "{{% set x = 1 %}}{text}{{{{ x | tojson }}}}"
    )));
    let text = "{% set x = x | chain(x) %}".repeat(40);
    limit(&template(&format!(
        "{{% set x = [1, 2] %}}{text}{{{{ x | list }}}}"
    )));
}

#[test]
fn a_template_cannot_run_for_ever() {
    let nested = "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}";
    assert_eq!(limit(&template(nested)), Limit::Fuel);
    let recursive = "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}";
    assert_eq!(limit(&template(recursive)), Limit::Fuel);
    let wide = "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(25) }}";
    assert_eq!(limit(&template(wide)), Limit::Fuel);
    let sorting =
        "{% set x = range(100000) | list %}{% for a in x %}{{ x | sort | first }}{% endfor %}";
    assert_eq!(limit(&template(sorting)), Limit::Fuel);
    let comparing = "{% set x = range(100000) | list %}{% for a in x %}{{ x == x }}{% endfor %}";
    assert_eq!(limit(&template(comparing)), Limit::Fuel);
    let raw = format!(
        "{{% for a in range(100000) %}}{}{{% endfor %}}",
        "a".repeat(10_000)
    );
    assert_eq!(limit(&template(&raw)), Limit::Size);
}

#[test]
fn a_template_cannot_build_what_would_overflow_the_stack() {
    limit(&template(
        "{% set ns = namespace(x=1) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}",
    ));
    let error = template("{% set ns = namespace(x=1) %}{% set ns.x = [ns] %}{{ ns | tojson }}");
    assert_eq!(error.kind, ErrorKind::Type);
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    assert!(super::eval(&deep, Dialect::Jinja).is_ok());
    let deeper = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(jinja(&deeper).kind, ErrorKind::Syntax);
    assert_eq!(js(&deeper).kind, ErrorKind::Syntax);
}

#[test]
fn javascript_cannot_run_for_ever() {
    for source in [
        "(() => { while (true) {} })()",
        "(() => { try { while (true) {} } catch (e) { return 1 } })()",
        "(() => { for (;;) { try { while (true) {} } finally { continue } } })()",
        "/(a+)+$/.test('a'.repeat(40) + 'b')",
        "(function f() { return f() + f() })()",
    ] {
        let error = js(source);
        assert!(
            matches!(
                error.kind,
                ErrorKind::Limit(Limit::Fuel) | ErrorKind::Thrown
            ),
            "{source}: {error:?}"
        );
    }
    assert_eq!(limit(&js("(() => { while (true) {} })()")), Limit::Fuel);
}

#[test]
fn javascript_cannot_take_more_than_its_memory() {
    for source in [
        "(() => { const a = []; for (;;) a.push('x'.repeat(1000) + a.length) })()",
        "'a'.repeat(200000000)",
        "(() => { let s = 'aaaaaaaa'; for (let i = 0; i < 30; i++) s += s; return s + 'b' })()",
        "new Array(20000000).fill(1)",
        "new Uint8Array(100000000).length",
    ] {
        let error = js(source);
        assert!(
            matches!(
                error.kind,
                ErrorKind::Limit(Limit::Memory) | ErrorKind::Thrown
            ),
            "{source}: {error:?}"
        );
    }
    assert_eq!(
        limit(&js(
            "(() => { const a = []; for (;;) a.push('x'.repeat(1000) + a.length) })()"
        )),
        Limit::Memory
    );
    assert_eq!(super::eval("1 + 1", Dialect::Js), Ok(Value::Int(2)));
}

#[test]
fn javascript_cannot_hide_work_in_native_code() {
    for source in [
        "(() => { const a = new Array(1000000).fill(0); for (;;) a.indexOf(1) })()",
        "(() => { const a = new Array(1000000).fill(0); for (;;) { try { a.indexOf(1) } catch (e) {} } })()",
        "(() => { const a = new Array(1000000).fill(0); try { for (;;) a.indexOf(1) } catch (e) { return 1 } })()",
        "'a'.repeat(10000000).indexOf('a'.repeat(5000000) + 'b')",
        "'a'.repeat(10000000).split('a'.repeat(5000000) + 'b')",
        "(() => { const s = 'a'.repeat(1000000); for (;;) s.toUpperCase() })()",
        "(() => { const a = new Array(100000).fill(0); for (;;) JSON.stringify(a) })()",
    ] {
        assert_eq!(limit(&js(source)), Limit::Fuel, "{source}");
    }
}

#[test]
fn javascript_cannot_walk_arrays_that_are_not_there() {
    for source in [
        "new Array(4294967295).indexOf(1)",
        "new Array(4294967295).forEach(x => x)",
        "Array.prototype.indexOf.call({length: 2 ** 53}, 1)",
        "[].concat(new Array(4294967295)).length",
        "new Set(new Array(4294967295)).size",
        "new Array(4294967295).join('')",
    ] {
        assert_eq!(js(source).kind, ErrorKind::Thrown, "{source}");
    }
}

#[test]
fn a_value_cannot_be_put_into_itself_without_end() {
    let mut world = super::world();
    let instant = Instant::new(0, 0);
    let engine = Engine::new();
    let wrap = super::sole("[state.deep]", Dialect::Jinja);
    let mut deep = Value::Int(1);
    let error = loop {
        world.raw = vec![("deep", deep)];
        match engine.eval_expression(&wrap, &Context::new(&world, &instant)) {
            Ok(value) => deep = value,
            Err(error) => break error,
        }
    };
    assert_eq!(limit(&error), Limit::Size);
    let list = Template::List(
        vec![Template::Expression(super::sole(
            "state.deep",
            Dialect::Jinja,
        ))]
        .into(),
    );
    let error = engine
        .render(&list, &Context::new(&world, &instant))
        .unwrap_err();
    assert_eq!(limit(&error), Limit::Size);
}

#[test]
fn no_text_makes_an_engine_panic() {
    #[rustfmt::skip]
    let pieces = [
        "state", "inputs", ".", "nope", "count", "files", "[", "]", "(", ")", "{", "}", "{{", "}}", "{%", "%}", " ", ",", ":",
        "'a'", "\"b\"", "1", "0", "-1", "2.5", "none", "true", "+", "-", "*", "/", "//", "%", "**", "~", "|", "==", "<", "and",
        "or", "not", "in", "is", "if", "else", "for", "x", "set", "=", "endfor", "endif", "endset", "macro", "endmacro", "filter",
        "upper", "join", "sort", "default", "format", "indent", "batch", "slice", "tojson", "parse_json", "regex_search", "sh",
        "unquoted", "hash", "list", "map", "first", "range", "now", "uuid", "variable", "namespace", "loop", "defined", "length",
        "=>", "&&", "||", "?", "?.", "??", "`", "${", "...", "new", "typeof", "function", "return", "Date", "Math", "/a/", "\\",
        "\n", "é", "$", "\"", "'", "<<EOF", "\u{fdd0}", "#",
    ];
    let mut drawn = 0;
    let mut next = || {
        drawn += 1;
        draw(11, drawn) as usize
    };
    for round in 0..4_000 {
        let mut source = String::new();
        for _ in 0..next() % 14 {
            source.push_str(pieces[next() % pieces.len()]);
            if next() % 2 == 0 {
                source.push(' ');
            }
        }
        let dialect = if round % 2 == 0 {
            Dialect::Jinja
        } else {
            Dialect::Js
        };
        let _ = super::eval(&source, dialect);
        let _ = super::render(&source, dialect);
        let _ = super::command(&format!("echo {{{{ {source} }}}} {source}"), dialect);
    }
}
