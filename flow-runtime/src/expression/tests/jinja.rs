use std::sync::Arc;

use flow_model::expression::vocabulary;
use flow_model::graph::{Dialect, Literal, Rule, Template};

use super::super::{Context, Engine, ErrorKind, Instant, truth};
use super::{MOMENT, json, narrowed, sole, world};
use crate::value::Value;

fn eval(source: &str) -> Value {
    match super::eval(source, Dialect::Jinja) {
        Ok(value) => value,
        Err(error) => panic!("{source}: {error:?}"),
    }
}

fn fails(source: &str) -> (ErrorKind, String) {
    let error = super::eval(source, Dialect::Jinja).unwrap_err();
    (error.kind, error.message)
}

fn render(source: &str) -> String {
    match super::render(source, Dialect::Jinja) {
        Ok(text) => text,
        Err(error) => panic!("{source}: {error:?}"),
    }
}

#[test]
fn an_expression_has_its_native_value() {
    for (source, value) in [
        ("inputs.count + 1", "4"),
        ("inputs.count / 2", "1.5"),
        ("inputs.count * 2.0", "6"),
        ("4 / 2", "2"),
        ("7 // 2 + 2 ** 3 - 1 % 2", "10"),
        ("inputs.tags + ['c']", r#"["a","b","c"]"#),
        ("'ab' + 'c' ~ 1 ~ inputs.none", r#""abc1null""#),
        ("inputs.none", "null"),
        (
            "[1, 2.0, true, {'b': 1, 'a': 2}]",
            r#"[1,2,true,{"b":1,"a":2}]"#,
        ),
        ("state.count > 3 and state.mode == 'fast'", "true"),
        (
            "state.files | selectattr('status', 'equalto', 'ok') | map(attribute='path') | list",
            r#"["a.rs"]"#,
        ),
        ("inputs.tags | length", "2"),
        ("inputs.tags[-1]", r#""b""#),
        ("inputs.tags[0:1]", r#"["a"]"#),
        ("state['user']['name']", r#""Ada""#),
        ("count", "5"),
        ("mode", r#""fast""#),
        ("total + raw.count + computed.total + this.count", "94"),
        ("item.id if item.status == 'ok' else 0", "7"),
        ("'x' in inputs.tags", "false"),
        ("0 < inputs.count < 4", "true"),
        (
            "state.user.items() | list",
            r#"[["name","Ada"],["age",36]]"#,
        ),
        ("state.user.get('nope', 1)", "1"),
        ("' a b '.strip().split(' ')", r#"["a","b"]"#),
        ("'a,b' | split(',') | list", r#"["a","b"]"#),
        ("'abc'.startswith('a') and 'abc' | endswith('c')", "true"),
        ("'{} of {:>3}'.format(1, 2)", r#""1 of   2""#),
        ("'%s-%03d' | format('a', 7)", r#""a-007""#),
        ("2.6 | round", "3"),
        ("[3, 1, 2] | sort | join('-')", r#""1-2-3""#),
        ("[1, [2]] | join(' ')", r#""1 [2]""#),
        ("{'a': 1} | tojson", r#""{\"a\":1}""#),
        ("{'a': '<&>'} | tojson", r#""{\"a\":\"<&>\"}""#),
        ("[1] | tojson(indent=2)", r#""[\n  1\n]""#),
        (r#"'{"a": [1.0]}' | parse_json"#, r#"{"a":[1]}"#),
        (
            "'Score: 45%' | regex_search('Score: ([0-9]+)') | first | int",
            "45",
        ),
        (
            "'45% reduction' | regex_search('[0-9]+% reduction')",
            r#"["45% reduction"]"#,
        ),
        (r"' 93\n' | int", "93"),
        (r"'\t9.5 \n' | float", "9.5"),
        (r"'93\n' | int(base=16)", "147"),
        ("'none' | regex_search('[0-9]')", "[]"),
        (r"'10 20' | regex_findall(r'\d+')", r#"["10","20"]"#),
        (
            r"'a=1 b=2' | regex_findall(r'(\w)=(\d)')",
            r#"[["a","1"],["b","2"]]"#,
        ),
        (
            r"'a.txt' | regex_replace(r'(\w)\.txt$', r'\1.md')",
            r#""a.md""#,
        ),
        ("'src/a b.rs' | path_to_key", r#""src_a_b_rs""#),
        (
            "'abc' | hash",
            r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
        ),
        (r#"["it's", "b"] | sh"#, r#""'it'\\''s' b""#),
        // A line of an interactive bash that begins with `^` changes an earlier command.
        (r#""^x\n^y" | sh"#, r#""'^x\n'\"^\"'y'""#),
        ("range(3) | list", "[0,1,2]"),
        ("[1, 2, 3] | batch(2, 0)", "[[1,2],[3,0]]"),
        ("[1, 2, 3] | slice(2) | list", "[[1,2],[3]]"),
        ("[1] | chain([2]) | list", "[1,2]"),
        ("'ab' * 2", r#""abab""#),
        ("[1] * 2", "[1,1]"),
        ("10 ** 20", "100000000000000000000"),
        ("3 is odd and 4 is greaterthan(3)", "true"),
        ("dict(a=1)", r#"{"a":1}"#),
        ("'a\nb' | indent(2)", r#""a\n  b""#),
        ("'a-b' | replace('-', '+')", r#""a+b""#),
    ] {
        assert_eq!(eval(source), json(value), "{source}");
    }
}

#[test]
fn a_map_is_a_map_beside_statements_too() {
    for (source, text) in [
        ("{% set p = 1 %}{{ {'id': p} }}", r#"{"id":1}"#),
        ("{% set m = {'z': state.count} %}{{ m.z }}", "5"),
        (
            "{% for k, v in {'z': state.count} | items %}{{ k }}={{ v }}{% endfor %}",
            "z=5",
        ),
        (
            "{% for n in inputs.tags %}{{ {'name': n} | tojson }}{% endfor %}",
            r#"{"name":"a"}{"name":"b"}"#,
        ),
        ("{% with m = {'a': item.id} %}{{ m.a }}{% endwith %}", "7"),
        (
            "{% macro show(m) %}{{ m.a }}{% endmacro %}{{ show({'a': item.id}) }}",
            "7",
        ),
        ("{% set m = {} %}{{ m }}", "{}"),
        ("{% set m = {'a': 1, 'a': item.id} %}{{ m }}", r#"{"a":7}"#),
    ] {
        assert_eq!(render(source), text, "{source}");
    }
}

#[test]
fn values_of_different_kinds_have_no_order() {
    for (source, kinds) in [
        ("'2' > 5", "a string and a number; `| int`"),
        ("inputs.name > inputs.count", "a string and a number"),
        ("inputs.count <= inputs.name", "a number and a string"),
        ("none < 3", "null and a number; `| default(0, true)`"),
        ("inputs.none < 3", "null and a number"),
        ("[1] > 3", "an array and a number; `| length`"),
        ("inputs.tags >= 3", "an array and a number"),
        ("[1, 'a'] < [1, 2]", "a string and a number"),
        ("{'a': 1} < {'a': 2}", "an object and an object"),
        ("1 < inputs.name < 3", "a number and a string"),
        ("1 < 2 < inputs.name", "a number and a string"),
        ("0 < 1 < 'a'", "a number and a string"),
        ("1 if -1 < 'a' else 2", "a number and a string"),
        ("inputs.name is lt(3)", "a string and a number"),
        (
            "inputs.tags | select('gt', 3) | list",
            "a string and a number",
        ),
        ("['b', 1] | sort", "a string and a number"),
        ("[3, none] | max", "a number and null"),
        (
            "[{'n': 1}, {'n': 'a'}] | sort(attribute='n')",
            "a number and a string",
        ),
        (
            "{'a': 1, 'b': 'x'} | dictsort(by='value')",
            "`dictsort` cannot order a number and a string",
        ),
        (
            "[{'n': 1}, {'n': 'a'}] | groupby('n')",
            "`groupby` cannot order a number and a string",
        ),
        (
            "[{'n': 1}, {}] | groupby(attribute='n', default='-')",
            "`groupby` cannot order a number and a string",
        ),
    ] {
        let (kind, message) = fails(source);
        assert_eq!(kind, ErrorKind::Type, "{source}: {message}");
        assert!(message.contains(kinds), "{source}: {message}");
    }
    let error = super::render("{% if inputs.name > 3 %}a{% endif %}", Dialect::Jinja).unwrap_err();
    assert!(
        error
            .message
            .contains("`>` cannot order a string and a number"),
        "{error:?}"
    );
    for (source, value) in [
        ("1 < 2.5 <= 2.5", "true"),
        ("true < 2 and 1 >= true", "true"),
        ("'a' < 'b' < 'c'", "true"),
        ("'b' > inputs.tags[0]", "true"),
        ("3 > inputs.count > 1", "false"),
        ("1 == 1 < 2 != 'a'", "true"),
        ("1 in [1] in [[1]]", "true"),
        ("[1, 2] < [1, 3] and [1] < [1, 0] and [] < [0]", "true"),
        ("inputs.tags <= ['a', 'b']", "true"),
        ("'2' == 2", "false"),
        ("false and '2' > 5", "false"),
        ("now() <= now()", "true"),
        ("[3, 1.5, true] | sort", "[true,1.5,3]"),
        ("['b', 'A'] | sort", r#"["A","b"]"#),
        ("state.files | sort(attribute='path') | length", "2"),
        ("[{'n': 1}, {}] | sort(attribute='n') | length", "2"),
        ("[{'n': 1}, {}] | groupby('n') | length", "2"),
        (
            "[{'n': 2}, {'n': 1}] | groupby('n') | map(attribute=0) | list",
            "[1,2]",
        ),
        (
            "{'b': 1, 'a': 'x'} | dictsort | map('first') | list",
            r#"["a","b"]"#,
        ),
        (
            "{'b': 1, 'a': 2} | dictsort(by='value') | map('first') | list",
            r#"["b","a"]"#,
        ),
        ("[[2, 'a'], [1, 'b']] | min", r#"[1,"b"]"#),
    ] {
        assert_eq!(eval(source), json(value), "{source}");
    }
}

#[test]
fn constants_are_written_as_all_values_are() {
    for (source, text) in [
        ("'n' ~ true", "ntrue"),
        ("'n' ~ true ~ none ~ 2.0", "ntruenull2"),
        ("true ~ [1, none]", "true[1,null]"),
        ("-1 ~ ''", "-1"),
        ("{'a': 1} ~ ''", r#"{"a":1}"#),
        ("[] ~ ''", "[]"),
        ("'%s' | format(true)", "true"),
        (
            "'%s %d%% %5s|%-3s|' | format(none, 3, [1], 'x')",
            "null 3%   [1]|x  |",
        ),
        ("'%03d %s' | format(7, false)", "007 false"),
    ] {
        assert_eq!(eval(source), Value::text(text), "{source}");
    }
}

#[test]
fn the_methods_of_python_give_what_they_give_in_python() {
    for (source, value) in [
        ("'TestHook'.removeprefix('Test')", r#""Hook""#),
        ("'BaseTest'.removeprefix('Test')", r#""BaseTest""#),
        ("'MiscTests'.removesuffix('Tests')", r#""Misc""#),
        ("'a,b,c'.rsplit(',', 1)", r#"["a,b","c"]"#),
        ("' a  b c '.rsplit()", r#"["a","b","c"]"#),
        ("' a  b c '.rsplit(none, 1)", r#"[" a  b","c"]"#),
        ("'a,b'.rsplit(',')", r#"["a","b"]"#),
        ("''.rsplit()", "[]"),
        ("'a=b=c'.partition('=')", r#"["a","=","b=c"]"#),
        ("'abc'.partition('=')", r#"["abc","",""]"#),
        ("'a=b=c'.rpartition('=')", r#"["a=b","=","c"]"#),
        ("'abc'.rpartition('=')", r#"["","","abc"]"#),
        ("'42'.zfill(5)", r#""00042""#),
        ("'-42'.zfill(5)", r#""-0042""#),
        ("'12345'.zfill(3)", r#""12345""#),
        ("'ab'.ljust(4) ~ '|'", r#""ab  |""#),
        ("'ab'.rjust(4, '.')", r#""..ab""#),
        ("'ab'.center(5, '*')", r#""**ab*""#),
        ("'abc'.center(6, '*')", r#""*abc**""#),
        ("'äbcb'.index('b')", "1"),
        ("'äbcb'.rindex('b')", "3"),
        ("'abcb'.index('b', 2)", "3"),
        ("'abcb'.index('b', -1)", "3"),
        ("'Straße'.casefold()", r#""strasse""#),
        ("'aBc'.swapcase()", r#""AbC""#),
        (
            r"'01\t012\t0123\t01234'.expandtabs()",
            r#""01      012     0123    01234""#,
        ),
        (
            r"'01\t012\t0123\t01234'.expandtabs(4)",
            r#""01  012 0123    01234""#,
        ),
        (
            "'12'.isdecimal() and not '1.2'.isdecimal() and not ''.isdecimal()",
            "true",
        ),
        ("'٣'.isdecimal() and not '²'.isdecimal()", "true"),
        (
            "'They Are 3D'.istitle() and not 'They are'.istitle()",
            "true",
        ),
        ("'a_1'.isidentifier() and not '1a'.isidentifier()", "true"),
        ("inputs.tags.index('b')", "1"),
        ("state.user.copy().name", r#""Ada""#),
    ] {
        assert_eq!(eval(source), json(value), "{source}");
    }
    for source in [
        "'abc'.index('x')",
        "'abc'.rindex('x')",
        "inputs.tags.index('x')",
        "'abc'.partition('')",
        "'abc'.ljust(5, 'ab')",
        "'a'.zfill(100000)",
    ] {
        let (kind, message) = fails(source);
        assert_eq!(kind, ErrorKind::Type, "{source}: {message}");
    }
}

#[test]
fn what_is_undefined_is_an_error_that_names_it() {
    for (source, named) in [
        ("state.nope", "`state.nope`"),
        ("nope", "`nope`"),
        ("inputs.nope.deeper", "`inputs.nope`"),
        ("inputs.count.deeper", "`inputs.count.deeper`"),
        ("state.user['no way']", "`state.user['no way']`"),
        ("inputs.tags[5]", "`inputs.tags[5]`"),
        ("[1, state.nope]", "`state.nope`"),
        ("{'a': state.nope}", "`state.nope`"),
        ("state.nope if true else 1", "`state.nope`"),
        ("state.nope == 1", "`state.nope`"),
        ("state.nope ~ 'x'", "`state.nope`"),
        ("state.nope + 1", "`state.nope`"),
        ("state.nope | upper", "`state.nope`"),
        ("state.nope | parse_json", "`state.nope`"),
        ("state.nope.strip()", "`state.nope`"),
        ("not state.nope", "`state.nope`"),
        ("1 if state.nope else 2", "`state.nope`"),
    ] {
        let (kind, message) = fails(source);
        assert_eq!(kind, ErrorKind::Undefined, "{source}: {message}");
        assert!(message.contains(named), "{source}: {message}");
    }
    let error = super::render("a {{ state.nope }} b", Dialect::Jinja).unwrap_err();
    assert_eq!(error.message, "`state.nope` is undefined");
    let error = super::render(
        "{% for f in state.files %}{{ f.nope }}{% endfor %}",
        Dialect::Jinja,
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Undefined);
}

#[test]
fn what_is_undefined_can_be_asked_for_and_defaulted() {
    assert_eq!(eval("state.nope | default('x')"), json(r#""x""#));
    assert_eq!(eval("nope | d(1)"), json("1"));
    assert_eq!(eval("state.nope is defined"), json("false"));
    assert_eq!(
        eval("state.user is defined and inputs.nope is undefined"),
        json("true")
    );
    assert_eq!(eval("1 if inputs.nope is defined else 2"), json("2"));
}

#[test]
fn a_value_that_is_only_read_comes_back_as_the_same_value() {
    let (world, instant) = (world(), Instant::new(0, 0));
    let context = Context::new(&world, &instant);
    let engine = Engine::new();
    let Value::List(files) = &world.raw[0].1 else {
        panic!("files is a list")
    };
    for source in [
        "state.files",
        "files",
        "raw['files']",
        "state.files if true else 0",
        "[state.files][0]",
    ] {
        let Value::List(found) = engine
            .eval_expression(&sole(source, Dialect::Jinja), &context)
            .unwrap()
        else {
            panic!("{source} is a list")
        };
        assert!(Arc::ptr_eq(files, &found), "{source}");
    }
}

#[test]
fn a_step_sees_only_the_state_it_lists() {
    let needs = &["count"];
    assert_eq!(
        narrowed("state.count", Dialect::Jinja, needs).unwrap(),
        json("5")
    );
    assert_eq!(
        narrowed("state", Dialect::Jinja, needs).unwrap(),
        json(r#"{"count":5}"#)
    );
    for source in [
        "state.mode",
        "mode",
        "raw.user.name",
        "state.mode | default(1)",
        "state.count + state.total",
    ] {
        let error = narrowed(source, Dialect::Jinja, needs).unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::NotInNeedsState { .. }),
            "{source}: {error}"
        );
    }
    let error = narrowed("state.nope", Dialect::Jinja, needs).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Undefined);
    assert_eq!(
        narrowed("inputs.count", Dialect::Jinja, &[]).unwrap(),
        json("3")
    );
}

#[test]
fn a_computed_field_that_failed_fails_who_reads_it_and_nobody_else() {
    for source in [
        "state.broken",
        "broken + 1",
        "[computed.broken]",
        "state.broken | default(1)",
    ] {
        let (_, message) = fails(source);
        assert_eq!(message, "the rule of `broken` failed", "{source}");
    }
    assert_eq!(eval("1 if true else state.broken"), json("1"));
    assert_eq!(eval("state | length"), json("5"));
}

#[test]
fn braces_stand_for_variables() {
    assert_eq!(render(r#"kill {{ variable("session_id") }}"#), "kill s-1");
    assert_eq!(render(r#"a {{ variable("nope") }}"#), "a {nope}");
    let error = super::render(r#"{{ variable("match_text") }}"#, Dialect::Jinja).unwrap_err();
    assert_eq!(error.message, "the variable `match_text` has no value yet");
}

#[test]
fn text_shows_values_one_way() {
    assert_eq!(
        render(
            "{{ inputs.name }} {{ inputs.count }} {{ inputs.none }} {{ 4 / 2 }} {{ true }} {{ inputs.tags }} {{ state.user }}"
        ),
        r#"it's 3 null 2 true ["a","b"] {"name":"Ada","age":36}"#
    );
    assert_eq!(
        render(
            "{% for f in state.files %}{{ loop.index }}:{{ f.path }}{% if not loop.last %}, {% endif %}{% endfor %}\n"
        ),
        "1:a.rs, 2:b.rs\n"
    );
    assert_eq!(
        render("${#PATH} {% raw %}{{ x }}{% endraw %}"),
        "${#PATH} {{ x }}"
    );
    assert_eq!(
        render(
            "{% set x = 'a' ~ 1 %}{% macro m(y) %}<{{ y }}>{% endmacro %}{{ m(x) }}{% filter upper %}b{{ x }}{% endfilter %}"
        ),
        "<a1>BA1"
    );
    assert_eq!(
        render(
            "{% for x in range(3) if x != 1 %}a long enough line {{ x }}\n{% else %}none{% endfor %}"
        ),
        "a long enough line 0\na long enough line 2\n"
    );
    assert_eq!(
        render(
            "{% set ns = namespace(n=0) %}{% for x in [1, 2] %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}"
        ),
        "3"
    );
}

#[test]
fn time_and_chance_come_from_the_event() {
    assert_eq!(render("{{ now() }}"), "2025-08-19 14:30:00");
    assert_eq!(eval("now()"), json(r#""2025-08-19 14:30:00""#));
    assert_eq!(eval("now().isoformat()"), json(r#""2025-08-19T14:30:00""#));
    assert_eq!(
        eval("now().strftime('%Y%m%d-%H%M%S')"),
        json(r#""20250819-143000""#)
    );
    assert_eq!(eval("now().timestamp()"), json("1755613800"));
    assert_eq!(eval("now().date()"), json(r#""2025-08-19""#));
    assert_eq!(eval("uuid()"), eval("uuid()"));
    assert_eq!(eval("uuid() == uuid()"), json("false"));

    let (world, instant) = (world(), Instant::new(MOMENT, 9));
    let (engine, expression) = (Engine::new(), sole("uuid()", Dialect::Jinja));
    let context = Context::new(&world, &instant);
    let first = engine.eval_expression(&expression, &context).unwrap();
    let second = engine.eval_expression(&expression, &context).unwrap();
    assert_ne!(first, second);
}

#[test]
fn a_template_is_evaluated_where_it_has_to_be() {
    let template = Template::Map(
        vec![
            ("a".into(), Template::Literal(Literal::Int(1))),
            (
                "b".into(),
                Template::List(
                    vec![Template::Expression(sole("inputs.count", Dialect::Jinja))].into(),
                ),
            ),
            (
                "c".into(),
                Template::Text(sole("n={{ inputs.count }}", Dialect::Jinja)),
            ),
        ]
        .into(),
    );
    let (world, instant) = (world(), Instant::new(0, 0));
    let value = Engine::new()
        .render(&template, &Context::new(&world, &instant))
        .unwrap();
    assert_eq!(value, json(r#"{"a":1,"b":[3],"c":"n=3"}"#));
    let rule = Rule::Value(Template::Expression(sole("input + total", Dialect::Jinja)));
    let value = Engine::new().transform(&rule, &Value::Int(1), &Context::new(&world, &instant));
    assert_eq!(value.unwrap(), Value::Int(43));
}

#[test]
fn a_text_at_an_address_that_is_used_again_is_compiled_again() {
    let engine = Engine::new();
    let (world, instant) = (world(), Instant::new(0, 0));
    let context = Context::new(&world, &instant);
    for n in 0..50 {
        let value = engine.eval_expression(&sole(&format!("{n:02} + 0"), Dialect::Jinja), &context);
        assert_eq!(value.unwrap(), Value::Int(n));
    }
}

#[test]
fn faults_are_told_apart() {
    for source in [
        "1 +",
        "a | nope",
        "a is nope",
        "nope()",
        "'\\d' ~ (",
        "'a'.nope()",
    ] {
        assert_eq!(fails(source).0, ErrorKind::Syntax, "{source}");
    }
    for source in [
        "1 + 'a'",
        "'a' | parse_json",
        "1 / 0",
        "'a' * 'b'",
        "{'a': 1} + 1",
    ] {
        assert_eq!(fails(source).0, ErrorKind::Type, "{source}");
    }
    assert_eq!(fails("'a' | regex_search('(')").0, ErrorKind::Syntax);
}

/// What each yields is what Jinja 3.1 yields.
#[test]
fn filters_for_texts_and_markup_yield_what_they_yield_in_jinja() {
    for (source, value) in [
        ("'abc' | center(10)", "\"   abc    \""),
        ("'abc' | center(9)", "\"   abc   \""),
        ("'abcd' | center(9)", "\"   abcd  \""),
        ("1 | filesizeformat", "\"1 Byte\""),
        ("999 | filesizeformat", "\"999 Bytes\""),
        ("1500 | filesizeformat", "\"1.5 kB\""),
        ("1500 | filesizeformat(true)", "\"1.5 KiB\""),
        ("1234567890 | filesizeformat(binary=true)", "\"1.1 GiB\""),
        ("'13000' | filesizeformat", "\"13.0 kB\""),
        (
            "'<b>\"x\"</b> & y' | forceescape",
            "\"&lt;b&gt;&#34;x&#34;&lt;/b&gt; &amp; y\"",
        ),
        (
            "'<p>Hello,\\n  <b>you</b> &amp; <!-- x > y --> me &#33; 1 < 2' | striptags",
            "\"Hello, you & me ! 1 < 2\"",
        ),
        ("'foo bar baz qux' | truncate(9)", "\"foo...\""),
        ("'foo bar baz qux' | truncate(9, True)", "\"foo ba...\""),
        ("'foo bar baz qux' | truncate(11)", "\"foo bar baz qux\""),
        (
            "'foo bar baz qux' | truncate(11, False, '...', 0)",
            "\"foo bar...\"",
        ),
        (
            "'foo bar baz qux' | truncate(length=10, end='…', leeway=0)",
            "\"foo bar…\"",
        ),
        ("'a b/c?d=é' | urlencode", "\"a%20b/c%3Fd%3D%C3%A9\""),
        ("{'a b': '1/2', 'c': 3} | urlencode", "\"a+b=1%2F2&c=3\""),
        ("[('x', 'y z'), ('q', '&')] | urlencode", "\"x=y+z&q=%26\""),
        ("'one two, three-four 5_six' | wordcount", "5"),
        (
            "'The quick brown fox jumps over the lazy dog' | wordwrap(10)",
            "\"The quick\\nbrown fox\\njumps over\\nthe lazy\\ndog\"",
        ),
        (
            "'well-known self-explanatory a-b 1-2 x' | wordwrap(8)",
            "\"well-\\nknown\\nself-exp\\nlanatory\\na-b 1-2\\nx\"",
        ),
        (
            "'abcdefghijkl mno' | wordwrap(5)",
            "\"abcde\\nfghij\\nkl\\nmno\"",
        ),
        (
            "'abcdefghijkl mno' | wordwrap(5, false)",
            "\"abcdefghijkl\\nmno\"",
        ),
        (
            "'ab-cdefghijkl mno' | wordwrap(6, wrapstring='|')",
            "\"ab-cde|fghijk|l mno\"",
        ),
        (
            "'one  two\\n\\n  three four' | wordwrap(7)",
            "\"one\\ntwo\\n\\n  three\\nfour\"",
        ),
        (
            "{'class': 'a \"b\"', 'missing': none, 'id': 3} | xmlattr",
            "\" class=\\\"a &#34;b&#34;\\\" id=\\\"3\\\"\"",
        ),
        ("{'id': 3} | xmlattr(false)", "\"id=\\\"3\\\"\""),
        (
            "'see (http://a.b/c), www.x.org. me@x.org or foo.com <y>' | urlize",
            "\"see (http://a.b/c), <a href=\\\"https://www.x.org\\\" rel=\\\"noopener\\\">www.x.org</a>. <a href=\\\"mailto:me@x.org\\\">me@x.org</a> or <a href=\\\"https://foo.com\\\" rel=\\\"noopener\\\">foo.com</a> &lt;y&gt;\"",
        ),
        (
            "'http://example.com/a/long/path' | urlize(10, true, target='_blank')",
            "\"<a href=\\\"http://example.com/a/long/path\\\" rel=\\\"nofollow noopener\\\" target=\\\"_blank\\\">http://exa...</a>\"",
        ),
        ("'http://a.b' | urlize(rel='ugc')", "\"http://a.b\""),
        ("'www.a.b/?q=1&x' | urlize", "\"www.a.b/?q=1&amp;x\""),
        (
            "'ab - cd -- efgh--ijkl -x' | wordwrap(4)",
            "\"ab -\\ncd\\n--\\nefgh\\n--\\nijkl\\n-x\"",
        ),
        ("'trailing   ' | wordwrap(20)", "\"trailing\""),
        ("'  lead' | wordwrap(20)", "\"  lead\""),
        ("'a' | wordwrap(3) | wordcount", "1"),
        ("'' | wordwrap(5)", "\"\""),
        ("'' | truncate(5)", "\"\""),
        (
            "'éééé éééé éééé' | truncate(8, true, '', 0)",
            "\"éééé ééé\"",
        ),
        ("0 | filesizeformat", "\"0 Bytes\""),
        ("-5 | filesizeformat", "\"-5 Bytes\""),
        ("999999 | filesizeformat", "\"1000.0 kB\""),
        ("'' | striptags", "\"\""),
        ("'a<b' | striptags", "\"a<b\""),
        ("'&lt;b&gt; &nbsp;&bogus;' | striptags", "\"<b>  &bogus;\""),
        ("'http://x.y).' | urlize", "\"http://x.y).\""),
        (
            "'mailto:a@b.co' | urlize",
            "\"<a href=\\\"mailto:a@b.co\\\">a@b.co</a>\"",
        ),
        (
            "'WWW.A.org http://[::1]/ ftp://x' | urlize",
            "\"<a href=\\\"https://WWW.A.org\\\" rel=\\\"noopener\\\">WWW.A.org</a> <a href=\\\"http://[::1]/\\\" rel=\\\"noopener\\\">http://[::1]/</a> ftp://x\"",
        ),
        (
            "'a--b http://x.com/(y)' | urlize",
            "\"a--b <a href=\\\"http://x.com/(y)\\\" rel=\\\"noopener\\\">http://x.com/(y)</a>\"",
        ),
    ] {
        assert_eq!(eval(source), json(value), "{source}");
    }
    for source in [
        "'x' | truncate(2)",
        "'x' | truncate(9, leeway=-1)",
        "'x' | wordwrap(0)",
        "'x' | center(100000)",
        "'x' | center(5, 6)",
        "'x' | truncate(lenght=5)",
        "'x' | filesizeformat",
        "[1, 2] | urlencode",
        "[[1, 2, 3]] | urlencode",
        "'x' | xmlattr",
        "{'a b': 1} | xmlattr",
    ] {
        assert_eq!(fails(source).0, ErrorKind::Type, "{source}");
    }
}

#[test]
fn what_is_drawn_is_drawn_again_from_the_same_moment() {
    let drawn = |seed: u64| {
        let (world, instant) = (world(), Instant::new(MOMENT, seed));
        let source = sole(
            "[range(1000) | random, range(1000) | random]",
            Dialect::Jinja,
        );
        let value = Engine::new().eval_expression(&source, &Context::new(&world, &instant));
        value.unwrap()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    assert_eq!(eval("['a'] | random ~ 'b' | random"), json(r#""ab""#));
    assert_eq!(fails("[] | random").0, ErrorKind::Undefined);
}

#[test]
fn functions_of_jinja_that_remember_are_there() {
    let source = "{% set c = cycler('a', 'b') %}{% set comma = joiner() %}\
                  {% for n in range(3) %}{{ comma() }}{{ c.next() }}{% endfor %}";
    assert_eq!(render(source), "a, b, a");
    let source = "{% macro m() %}{% endmacro %}{{ m is callable }} {{ now is callable }} {{ 1 is callable }}";
    assert_eq!(render(source), "true true false");
}

#[test]
fn a_time_has_a_day_and_both_have_their_parts() {
    assert_eq!(
        render(
            "{{ now().date() }} {{ now().date().isoformat() }} {{ now().date().strftime('%d.%m.') }} \
             {{ now().date().split('-') | length }} {{ now().year }}-{{ now().date().month }} \
             {{ now().hour }} {{ now().weekday() + 1 == now().date().isoweekday() }}"
        ),
        super::render(
            "{{ now().strftime('%Y-%m-%d') }} {{ now().strftime('%Y-%m-%d') }} \
             {{ now().strftime('%d.%m.') }} 3 {{ now().strftime('%Y') }}-{{ now().strftime('%m') | int }} \
             {{ now().strftime('%H') | int }} true",
            Dialect::Jinja
        )
        .unwrap()
    );
    assert_eq!(eval("now().date()"), eval("now().strftime('%Y-%m-%d')"));
    let day = |source: &str| super::eval(source, Dialect::Js).unwrap();
    assert_eq!(day("now().date()"), eval("now().date()"));
    assert_eq!(day("now().date().isoformat()"), eval("now().date()"));
    assert_eq!(day("now().date() + '!'"), eval("now().date() ~ '!'"));
}

#[test]
fn every_name_of_the_vocabulary_is_registered() {
    for name in vocabulary::FILTERS {
        assert_eq!(
            eval(&format!("'{name}' is filter")),
            Value::Bool(true),
            "{name}"
        );
    }
    for name in vocabulary::TESTS {
        assert_eq!(
            eval(&format!("'{name}' is test")),
            Value::Bool(true),
            "{name}"
        );
    }
    for name in vocabulary::FUNCTIONS {
        if let Err(error) = super::eval(&format!("{name}(1, 2, 3, 4, 5)"), Dialect::Jinja) {
            assert!(!error.message.contains("unknown"), "{name}: {error}");
        }
    }
    for name in vocabulary::JS_FUNCTIONS {
        let found = super::eval(&format!("typeof globalThis.{name}"), Dialect::Js).unwrap();
        assert_eq!(found, Value::text("function"), "{name}");
    }
}

#[test]
fn truth_depends_on_the_dialect() {
    for (value, jinja, js) in [
        ("null", false, false),
        ("0", false, false),
        ("0.5", true, true),
        (r#""""#, false, false),
        (r#""false""#, true, true),
        ("[]", false, true),
        ("{}", false, true),
        ("[0]", true, true),
    ] {
        assert_eq!(truth(&json(value), Dialect::Jinja), jinja, "{value}");
        assert_eq!(truth(&json(value), Dialect::Js), js, "{value}");
    }
}
