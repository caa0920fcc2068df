//! What both dialects promise, in pictures: the source, and `~` under what is meant.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use std::ops::Range;

use super::Dialect::{Jinja, Js};
use super::*;

/// Draws `~` under `ranges` of a single line, a column per character.
fn underline(source: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut marks = vec![' '; source.chars().count()];
    for range in ranges {
        let start = source[..range.start].chars().count();
        let length = source[range].chars().count();
        assert!(length > 0, "an empty range under {source}");
        marks[start..start + length].fill('~');
    }
    marks.into_iter().collect::<String>().trim_end().to_owned()
}

/// Asserts that `picture` is a source and `~` under the faults a template has.
fn faults_at(dialect: Dialect, picture: [&str; 2]) -> Vec<Fault> {
    let analysis = template(picture[0], dialect);
    let ranges = analysis.faults.iter().map(|fault| fault.range.clone());
    assert_eq!(
        underline(picture[0], ranges),
        picture[1],
        "\n{}\n{:#?}",
        picture[0],
        analysis
    );
    analysis.faults
}

/// Asserts that `picture` is a source and `~` under the reads a template has.
fn reads_at(dialect: Dialect, picture: [&str; 2]) -> Vec<Read> {
    let analysis = template(picture[0], dialect);
    assert_eq!(analysis.faults, [], "{}", picture[0]);
    let ranges = analysis.reads.iter().map(|read| read.range.clone());
    assert_eq!(
        underline(picture[0], ranges),
        picture[1],
        "\n{}\n{:#?}",
        picture[0],
        analysis
    );
    analysis.reads
}

fn paths(reads: &[Read]) -> Vec<String> {
    let mark = |read: &Read| match (read.dynamic, read.optional) {
        (false, false) => "",
        (true, false) => "[]",
        (false, true) => "?",
        (true, true) => "[]?",
    };
    reads
        .iter()
        .map(|read| read.path.join(".") + mark(read))
        .collect()
}

fn read_paths(text: &str, dialect: Dialect) -> Vec<String> {
    let analysis = template(text, dialect);
    assert_eq!(analysis.faults, [], "{text}");
    paths(&analysis.reads)
}

mod forms {
    use super::*;

    fn shown(text: &str, dialect: Dialect) -> String {
        match form(text, dialect) {
            Form::Literal => "literal".to_owned(),
            Form::Sole(range) => text[range].to_owned(),
            Form::Text => "text".to_owned(),
        }
    }

    #[test]
    fn one_interpolation_and_nothing_else_is_sole() {
        for dialect in [Jinja, Js] {
            assert_eq!(shown("{{ a }}", dialect), "a");
            assert_eq!(shown("  {{a}}\n", dialect), "a");
            assert_eq!(shown("{{ {'a': {'b': 1}} }}", dialect), "{'a': {'b': 1}}");
            assert_eq!(shown("{{ '}}' }}", dialect), "'}}'");
            assert_eq!(shown("{{ a }}{{ b }}", dialect), "text");
            assert_eq!(shown("x {{ a }}", dialect), "text");
            assert_eq!(shown("{{ a }} x", dialect), "text");
            assert_eq!(shown("{{ a", dialect), "text");
            assert_eq!(shown("", dialect), "literal");
            assert_eq!(shown("{a} ${#PATH} {# text #}", dialect), "literal");
        }
    }

    #[test]
    fn statements_make_text_in_jinja_and_mean_nothing_in_javascript() {
        assert_eq!(shown("{% if a %}b{% endif %}", Jinja), "text");
        assert_eq!(shown("{% if a %}b{% endif %}", Js), "literal");
        assert_eq!(shown("{% raw %}{{ a }}{% endraw %}", Jinja), "text");
        assert_eq!(shown("{{- a -}}", Jinja), "a");
        assert_eq!(shown("{{-a}}", Js), "-a");
    }

    #[test]
    fn javascript_strings_comments_and_expressions_may_contain_braces() {
        assert_eq!(
            shown("{{ `}}${ {a: `}`}.a }` }}", Js),
            "`}}${ {a: `}`}.a }`"
        );
        assert_eq!(shown("{{ a /* }} */ }}", Js), "a /* }} */");
        assert_eq!(shown("{{ /}}['\"]/.test(a) }}", Js), "/}}['\"]/.test(a)");
        assert_eq!(shown("{{ a / b }}{{ c / d }}", Js), "text");
        assert_eq!(
            shown("{{ x => { return {a: 1}} }}", Js),
            "x => { return {a: 1}}"
        );
    }
}

mod jinja_reads {
    use super::*;

    #[test]
    fn a_path_is_read_by_dots_and_by_brackets() {
        let reads = reads_at(
            Jinja,
            [
                "é {{ state.user['first name'].x }} {{ state.list[0] }} {{ a[-1] }}",
                "     ~~~~~~~~~~~~~~~~~~~~~~~~~~       ~~~~~~~~~~~~~       ~~~~~",
            ],
        );
        assert_eq!(
            paths(&reads),
            ["state.user.first name.x", "state.list.0", "a.-1"]
        );
    }

    #[test]
    fn a_key_only_known_at_run_time_makes_a_read_dynamic() {
        let reads = reads_at(
            Jinja,
            [
                "{{ state[name] }} {{ state.a[i + 1].b }} {{ state.secret[:2] }}",
                "   ~~~~~ ~~~~        ~~~~~~~ ~              ~~~~~~~~~~~~",
            ],
        );
        let expected = ["state[]", "name", "state.a[]", "i", "state.secret"];
        assert_eq!(paths(&reads), expected);
    }

    #[test]
    fn a_called_attribute_is_a_method_and_not_a_field() {
        let reads = reads_at(
            Jinja,
            [
                r"{{ state.a.strip().split('\n') }} {{ state.items() }} {{ now().isoformat() }}",
                r"   ~~~~~~~                           ~~~~~",
            ],
        );
        assert_eq!(paths(&reads), ["state.a", "state"]);
    }

    #[test]
    fn default_and_defined_make_a_read_optional() {
        assert_eq!(
            read_paths(
                "{{ a.b | default([]) }}{{ a.c | d | upper }}{{ x if x is defined }}{{ y is not undefined }}{{ z | upper | default(1) }}",
                Jinja,
            ),
            ["a.b?", "a.c?", "x", "x?", "y?", "z"],
        );
    }

    #[test]
    fn names_bound_by_statements_are_not_reads() {
        let text = "{% for k, (v, w) in state.rows if k != limit %}{{ k }}{{ v.x }}{{ w[q] }}{{ loop.index }}{% else %}{{ k }}{% endfor %}";
        assert_eq!(read_paths(text, Jinja), ["state.rows", "limit", "q", "k"]);
        let text = "{% with a = b, c = a %}{{ a }}{{ c }}{% endwith %}{{ a }}";
        assert_eq!(read_paths(text, Jinja), ["b", "a"]);
        let text = "{{ a }}{% set a = b %}{{ a }}{% set c %}{{ d }}{% endset %}{{ c }}";
        assert_eq!(read_paths(text, Jinja), ["a", "b", "d"]);
        let text = "{% macro m(a, b=c) %}{{ a }}{{ b }}{{ d }}{{ caller() }}{% endmacro %}{{ m(1) }}{% call(x) m(e) %}{{ x }}{% endcall %}";
        assert_eq!(read_paths(text, Jinja), ["c", "d", "e"]);
        let text = "{% set ns = namespace(n=0) %}{% set ns.n = ns.n + x %}{{ ns.n }}";
        assert_eq!(read_paths(text, Jinja), ["x"]);
    }

    #[test]
    fn loop_is_a_read_outside_a_for() {
        assert_eq!(
            read_paths(
                "{{ loop.index }}{% for a in b %}{{ loop.last }}{% endfor %}",
                Jinja
            ),
            ["loop.index", "b"],
        );
    }

    #[test]
    fn every_kind_of_expression_and_statement_is_walked() {
        let text = "{% filter replace(a, b) %}{{ c }}{% endfilter %}{% autoescape d %}{{ e }}{% endautoescape %}{% do dict(x=f) %}{% if g %}{% elif h %}{% else %}{{ i }}{% endif %}";
        assert_eq!(
            read_paths(text, Jinja),
            ["c", "a", "b", "d", "e", "f", "g", "h", "i"]
        );
        let text = "{{ [a, (b, c), {d: e}, -f, not g, h ~ i, j < k < l, m[n:o:p], q(r) if s else t, *u] }}";
        let text = text.replace(", *u", "").replace("q(r)", "range(*r, **q)");
        let expected = "a b c d e f g h i j k l m n o p r q s t";
        assert_eq!(read_paths(&text, Jinja).join(" "), expected);
    }
}

mod jinja_names {
    use super::*;

    #[test]
    fn an_unknown_filter_is_pointed_at() {
        let faults = faults_at(
            Jinja,
            [
                "{{ state.files | lenght }} {{ a | map('uper') | list }}",
                "                 ~~~~~~                ~~~~",
            ],
        );
        assert_eq!(faults[0].message, "there is no filter `lenght`");
        assert_eq!(faults[0].help.as_deref(), Some("did you mean `length`?"));
        let unknown = Unknown {
            name: "uper".into(),
            suggestion: Some("upper".into()),
        };
        assert_eq!(faults[1].kind, FaultKind::UnknownFilter(unknown));
    }

    #[test]
    fn an_unknown_test_is_pointed_at_wherever_it_is_named() {
        let faults = faults_at(
            Jinja,
            [
                "{{ a is definde }} {{ b | selectattr('x', 'equalsto', 1) }} {{ c | select(r'od') }}",
                "        ~~~~~~~                            ~~~~~~~~                         ~~",
            ],
        );
        assert!(
            faults
                .iter()
                .all(|fault| matches!(fault.kind, FaultKind::UnknownTest(_)))
        );
        assert_eq!(faults[1].help.as_deref(), Some("did you mean `equalto`?"));
    }

    #[test]
    fn an_unknown_function_is_pointed_at() {
        let faults = faults_at(
            Jinja,
            [
                "{{ noww() }} {{ length(a) }} {{ uuid() }}",
                "   ~~~~         ~~~~~~",
            ],
        );
        assert_eq!(faults[0].help.as_deref(), Some("did you mean `now`?"));
        assert_eq!(
            faults[1].help.as_deref(),
            Some("`length` is a filter: write `value | length`"),
        );
    }

    #[test]
    fn calls_filters_and_interpolations_are_listed_in_order() {
        let text = "a {{ now() | string | upper }} b {{ (x | sh) ~ y }}";
        let analysis = template(text, Jinja);
        let names = |named: &[Named]| named.iter().map(|n| n.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&analysis.calls), ["now"]);
        assert_eq!(names(&analysis.filters), ["string", "upper", "sh"]);
        let ranges = analysis
            .interpolations
            .iter()
            .map(|found| found.range.clone());
        assert_eq!(
            underline(text, ranges),
            "  ~~~~~~~~~~~~~~~~~~~~~~~~~~~~   ~~~~~~~~~~~~~~~~~~",
        );
        assert_eq!(analysis.interpolations[0].filters, ["string", "upper"]);
        assert_eq!(analysis.interpolations[1].filters, [] as [&str; 0]);
    }
}

mod jinja_syntax {
    use super::*;

    fn one(picture: [&str; 2], message: &str, help: Option<&str>) {
        let faults = faults_at(Jinja, picture);
        assert_eq!(faults[0].message, message);
        assert_eq!(faults[0].help.as_deref(), help);
    }

    #[test]
    fn every_broken_interpolation_is_reported() {
        let faults = faults_at(
            Jinja,
            [
                "{{ a b }} {{ c + }} {{ ok }} {{ }}",
                "     ~         ~             ~~~~~",
            ],
        );
        assert_eq!(faults[0].message, "unexpected `b` after the expression");
        assert_eq!(faults[1].message, "the expression is incomplete");
        assert_eq!(faults[2].message, "an expression is needed between these");
        assert_eq!(paths(&template("{{ a b }} {{ ok }}", Jinja).reads), ["ok"]);
    }

    #[test]
    fn what_is_never_closed_is_pointed_at() {
        let help = Some("`{{` needs a `}}`, `{%` a `%}`, `{% raw %}` an `{% endraw %}`");
        one(["a {{ b", "  ~~"], "this is never closed", help);
        one(["a {{ f(b }} c", "      ~"], "`(` is never closed", None);
        one(
            ["a {{ 'b }} c", "     ~~"],
            "this string is never closed",
            None,
        );
        one(
            ["{% if a %}{% for b in c %}x{% endfor %}", "~~~~~~~~~~"],
            "`if` is never closed",
            Some("add `{% endif %}`"),
        );
    }

    #[test]
    fn javascript_in_jinja_is_explained() {
        one(
            ["é {{ a && b }}", "       ~"],
            "unexpected `&`",
            Some("write `and`"),
        );
        one(["{{ !a }}", "   ~"], "unexpected `!`", Some("write `not`"));
        one(
            ["{{ a === b }}", "       ~"],
            "unexpected `=`",
            Some("write `==` to compare"),
        );
    }

    #[test]
    fn a_bad_escape_is_pointed_at() {
        one(
            [r"{{ a ~ '\u12' }}", "       ~~~~~~"],
            "this string has an escape that means nothing",
            Some("write `\\\\` for a backslash, or a raw string `r'…'`"),
        );
    }

    #[test]
    fn an_unknown_statement_is_named() {
        one(
            ["{% fro a in b %}", "   ~~~"],
            "there is no statement `fro`",
            None,
        );
    }

    #[test]
    fn ranges_after_a_raw_string_are_those_of_the_original() {
        let reads = reads_at(
            Jinja,
            [
                r#"{{ a | regex_search(r'\d\'\\') }} {{ R"\w" ~ b }} {{ c }}"#,
                r#"   ~                                         ~       ~"#,
            ],
        );
        assert_eq!(paths(&reads), ["a", "b", "c"]);
        faults_at(Jinja, [r"{{ r'\d' ~ r'\w' b }}", "                 ~"]);
    }

    #[test]
    fn raw_strings_keep_every_backslash() {
        let environment = minijinja::Environment::new();
        for (raw, value) in [
            (r"r'\d\n'", r"\d\n"),
            (r"r'\''", r"\'"),
            (r#"R"\\""#, r"\\"),
            ("r''", ""),
        ] {
            let source = unraw_expression(raw);
            let compiled = environment.compile_expression(&source).unwrap();
            assert_eq!(compiled.eval(()).unwrap().as_str(), Some(value), "{raw}");
        }
        assert_eq!(
            unraw("r'\\d' {% raw %}{{ r'\\d' }}{% endraw %}{{ bar'' }}"),
            "r'\\d' {% raw %}{{ r'\\d' }}{% endraw %}{{ bar'' }}"
        );
    }

    #[test]
    fn a_hash_after_a_brace_is_text() {
        let mut environment = minijinja::Environment::new();
        environment.set_syntax(syntax());
        let rendered = environment
            .render_str("${#PATH} {# {{ 1 }} #}\n", ())
            .unwrap();
        assert_eq!(rendered, "${#PATH} {# 1 #}\n");
        assert_eq!(read_paths("${#PATH} {# {{ a }} #}", Jinja), ["a"]);
    }
}

mod braces {
    use super::*;

    #[test]
    fn only_names_in_literal_text_are_variables() {
        let text = "{a} {b_1}{{ {c} }} {{d}} ${e} {1} {f g} {} {%h%} {{{i}}} é{j}";
        let names: Vec<_> = braced(text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["a", "b_1", "j"]);
    }

    #[test]
    fn variables_become_interpolations_and_the_rest_stays() {
        assert_eq!(
            unbrace("echo {name} ${HOME} {{ x }}"),
            r#"echo {{ variable("name") }} ${HOME} {{ x }}"#,
        );
        assert!(matches!(
            unbrace("awk '{print $1}'"),
            std::borrow::Cow::Borrowed(_)
        ));
    }
}

#[cfg(feature = "js")]
mod javascript {
    use super::*;

    #[test]
    fn free_names_and_their_paths_are_read() {
        let reads = reads_at(
            Js,
            [
                "é {{ has_errors && inputs.retries < files['a b'][0].length }} {{ results[item].hints }}",
                "     ~~~~~~~~~~    ~~~~~~~~~~~~~~   ~~~~~~~~~~~~~~~~~~~~~~       ~~~~~~~ ~~~~",
            ],
        );
        let expected = [
            "has_errors",
            "inputs.retries",
            "files.a b.0.length",
            "results[]",
            "item",
        ];
        assert_eq!(paths(&reads), expected);
    }

    #[test]
    fn a_called_member_is_a_method_and_not_a_field() {
        assert_eq!(
            read_paths("{{ files.filter(f => f.size > limit).map(g).length }}", Js),
            ["files", "limit", "g"],
        );
    }

    #[test]
    fn optional_chaining_typeof_and_coalescing_make_a_read_optional() {
        assert_eq!(
            read_paths(
                "{{ a?.b.c }}{{ d.e?.f(g) }}{{ typeof h }}{{ i ?? j }}{{ k | default(l) }}",
                Js
            ),
            ["a.b.c?", "d.e?", "g", "h?", "i?", "j", "k?", "l"],
        );
    }

    #[test]
    fn locals_and_globals_are_not_reads() {
        let text = "{{ ((a, {b, c: [d = x]}, ...e) => { const f = a; let g; var h; function i(j) { return j + k } try { i(f) } catch (l) { return l } for (const m of e) { return m } return [b, d, g, h] })() }}";
        assert_eq!(read_paths(text, Js), ["x", "k"]);
        let text = "{{ Math.max(...Object.keys(a)) + parseInt(JSON.stringify(NaN)) + new Set(b).size + undefined }}";
        assert_eq!(read_paths(text, Js), ["a", "b"]);
        assert_eq!(
            read_paths(
                "{{ (() => { f(); { var y = 1 } return y; function f() {} })() }}",
                Js
            ),
            [] as [&str; 0]
        );
        assert_eq!(
            read_paths("{{ this.a + (function () { return this.b })() }}", Js),
            ["this.a"]
        );
        assert_eq!(
            read_paths("{{ ({ a, [b]: c, d: e }) }}", Js),
            ["a", "b", "c", "e"]
        );
    }

    #[test]
    fn a_trailing_filter_is_understood_and_a_bitwise_or_is_not_a_filter() {
        let text = "{{ item | path_to_key }}{{ a || b }}{{ c | d2 }}{{ e | 4 | tojson(f) | sh }}";
        let analysis = template(text, Js);
        assert_eq!(analysis.faults, []);
        assert_eq!(
            paths(&analysis.reads),
            ["item", "a", "b", "c", "d2", "e", "f"]
        );
        let filters: Vec<_> = analysis
            .interpolations
            .iter()
            .map(|i| i.filters.join(" "))
            .collect();
        assert_eq!(filters, ["path_to_key", "", "", "tojson sh"]);
        let names = analysis.filters.iter().map(|filter| filter.range.clone());
        assert_eq!(
            underline(text, names),
            "          ~~~~~~~~~~~                                      ~~~~~~      ~~",
        );
    }

    #[test]
    fn an_unknown_function_is_pointed_at() {
        let faults = faults_at(Js, ["{{ noww() + now() + uuid() }}", "   ~~~~"]);
        assert_eq!(faults[0].help.as_deref(), Some("did you mean `now`?"));
    }

    #[test]
    fn what_does_not_parse_is_pointed_at() {
        let faults = faults_at(
            Js,
            [
                "é {{ a b }} {{ c + }} {{ (d }} {{ 'e }} {{ }} {{ ok | upper(+) }} {{ f",
                "       ~         ~       ~        ~~    ~~~~~               ~     ~~",
            ],
        );
        let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "unexpected `b`",
                "the expression is incomplete",
                "`(` is never closed",
                "this string is never closed",
                "an expression is needed between these",
                "an argument is incomplete",
                "this is never closed",
            ]
        );
    }

    #[test]
    fn statements_of_jinja_are_text() {
        assert_eq!(read_paths("{% for a in b %}{{ c }}{% endfor %}", Js), ["c"]);
    }

    #[test]
    fn a_transform_is_an_expression_an_object_or_a_body() {
        let shape = |text| {
            let found = transform(text);
            assert_eq!(found.analysis.faults, [], "{text}");
            (found.shape, paths(&found.analysis.reads).join(" "))
        };
        assert_eq!(
            shape("input.map(x => x)"),
            (Shape::Expression, "input".into())
        );
        assert_eq!(
            shape("{ a: input[0].length, b }\n"),
            (Shape::Expression, "input.0.length b".into())
        );
        assert_eq!(shape("{}"), (Shape::Expression, "".into()));
        assert_eq!(
            shape("const a = input; return a + b;"),
            (Shape::Body, "input b".into())
        );
        assert_eq!(
            shape("// why\nif (input) { return 1 }\nreturn 2"),
            (Shape::Body, "input".into())
        );
    }

    #[test]
    fn a_broken_transform_is_pointed_at() {
        let at = |picture: [&str; 2], shape| {
            let found = transform(picture[0]);
            let ranges = found
                .analysis
                .faults
                .iter()
                .map(|fault| fault.range.clone());
            assert_eq!(underline(picture[0], ranges), picture[1], "{found:#?}");
            assert_eq!(found.shape, shape);
        };
        at(["input.map(x => )", "               ~"], Shape::Expression);
        at(["const a = ; return a", "          ~"], Shape::Body);
        at(["input.length;", "            ~"], Shape::Expression);
        at(["const a = 1", "~~~~~~~~~~~"], Shape::Body);
    }
}

mod hostile {
    use super::*;

    /// Runs everything on `text` and checks what every caller relies on.
    fn survives(text: &str) {
        for dialect in [Jinja, Js] {
            for analysis in [
                template(text, dialect),
                expression(text, dialect),
                transform(text).analysis,
            ] {
                let ranges = (analysis.reads.iter().map(|read| &read.range))
                    .chain(analysis.faults.iter().map(|fault| &fault.range))
                    .chain(analysis.calls.iter().map(|call| &call.range))
                    .chain(analysis.filters.iter().map(|filter| &filter.range))
                    .chain(analysis.interpolations.iter().map(|found| &found.range));
                for range in ranges {
                    assert!(text.get(range.clone()).is_some(), "{range:?} of {text:?}");
                }
            }
            let mut end = 0;
            for piece in pieces(text, dialect) {
                assert_eq!(piece.range().start, end, "{text:?}");
                end = piece.range().end;
            }
            assert_eq!(end, text.len(), "{text:?}");
            if let Form::Sole(range) = form(text, dialect) {
                assert!(text.get(range).is_some());
            }
        }
        for (range, name) in braced(text) {
            assert_eq!(&text[range], format!("{{{name}}}"));
        }
        pipeline(text);
        unbrace(text);
        unraw(text);
        unraw_expression(text);
    }

    const VALID: &[&str] = &[
        "é {{ state.user['näme'][i + 1].x | default([1, {'a': (2, 3)}]) }} ü {% for a, b in c if d %}{{ loop.last }}{% else %}x{% endfor %}",
        r#"{%- set x = r'\d\'' ~ "\u00e9" -%}{{- x|regex_search(R"\w") is defined and not y -}}{% raw %}{{ z }}{% endraw %}"#,
        "{% macro m(a, b=1) %}{{ a }}{% endmacro %}{% call m(1) %}{% endcall %}{% with q = 1 %}{% endwith %}{% filter upper %}{% endfilter %}{% if a %}{% elif b %}{% endif %}",
        "{{ `é${ {a: `${b}`}.a }` + /[/]}}\\/'/.test(c) /* } */ | path_to_key(1, 'x') | sh }} {name} ${x}",
        "{{ ((a, {b, c: [d = x]}, ...e) => { const f = a?.b ?? 1; try { return f } catch (l) { throw l } })() }}",
        "{\n  total: input[0].length, // it's\n  kinds: [...new Set(input[1].map(e => e.type))],\n}",
        "if (input) { return 'ü' }\nelse return `${input}`;",
    ];

    #[test]
    fn every_prefix_and_suffix_of_valid_text_is_survived() {
        for text in VALID {
            for (at, _) in text.char_indices() {
                survives(&text[..at]);
                survives(&text[at..]);
            }
            survives(text);
        }
    }

    #[test]
    fn valid_text_with_one_character_replaced_is_survived() {
        for text in VALID {
            for (at, letter) in text.char_indices() {
                for other in ["", "{", "}", "'", "\\", "|", "é", "\0"] {
                    let after = at + letter.len_utf8();
                    survives(&format!("{}{other}{}", &text[..at], &text[after..]));
                }
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused_instead_of_overflowing_the_stack() {
        let shapes = [
            ("(", "x", ")"),
            ("[", "x", "]"),
            ("{'a':", "x", "}"),
            ("{", "x", "}"),
            ("a[", "x", "]"),
            ("f(", "x", ")"),
            ("not ", "x", ""),
            ("-", "x", ""),
            ("- ", "x", ""),
            ("!", "x", ""),
            ("a if b else ", "c", ""),
            ("a ~ ", "b", ""),
            ("a+", "b", ""),
            ("a.", "b", ""),
            ("", "a", "|e"),
            ("", "a", ".b()"),
            ("", "a", "()"),
            ("", "a", "[0]"),
            ("", "a", "[b]"),
            ("a?b:", "c", ""),
            ("a=>", "b", ""),
            ("(a)=>(", "b", ")"),
            ("a=", "b", ""),
            ("a**", "b", ""),
            ("new ", "b", ""),
            ("typeof ", "b", ""),
            ("`${", "b", "}`"),
            ("function(){return ", "1", "}"),
            ("()=>{", "1", "}"),
            ("if(a)", "b", ""),
            ("if(a)b;else ", "b", ""),
            ("if(a){}else ", "b", ""),
            ("a:", "b", ""),
            ("for(;;)", "b", ""),
            ("do ", "b", " while(1)"),
            ("a,", "b", ""),
            ("a;", "b", ""),
            ("return\nx=", "y", ""),
            ("async ()=>", "y", ""),
            ("class{a=", "y", "}"),
            ("x\nconst y=", "y", ""),
            ("a is b ", "c", ""),
            ("a, b = ", "c", ""),
            ("'a' ", "'b'", ""),
            ("/(", "/", ""),
        ];
        let wrappers = [
            ("", ""),
            ("{{ ", " }}"),
            ("{% if ", " %}{% endif %}"),
            ("{% set ", " = 1 %}"),
            ("return ", ""),
        ];
        for (before, middle, after) in shapes {
            for count in [60, 150, 400, 799, 3_000] {
                let text = format!("{}{middle}{}", before.repeat(count), after.repeat(count));
                for (open, close) in wrappers {
                    survives(&format!("{open}{text}{close}"));
                }
            }
        }
    }

    #[test]
    fn deeply_nested_statements_are_refused_instead_of_overflowing_the_stack() {
        let brackets = format!("{}x{}", "a[".repeat(64), "]".repeat(64));
        for count in [80, 149, 3_000] {
            for (open, close) in [
                ("{% if x %}", "{% endif %}"),
                ("{% for x in y %}", "{% endfor %}"),
                ("{% with %}", "{% endwith %}"),
                ("{% macro m() %}", "{% endmacro %}"),
                ("{% set x %}", "{% endset %}"),
                ("{% filter upper %}", "{% endfilter %}"),
            ] {
                let (open, close) = (open.repeat(count), close.repeat(count));
                survives(&format!("{open}{{{{ {brackets} }}}}{close}"));
            }
            survives(&format!(
                "{{% if a %}}{}{{% endif %}}",
                "{% elif b %}".repeat(count)
            ));
        }
    }

    #[test]
    fn a_thousand_openings_take_no_longer_than_one_reading() {
        for opening in [
            "{% raw %}",
            "{{ '",
            "{{ r'",
            "{{ `",
            "{{ /*",
            "{{ (",
            "{{ a }} }}",
            "{% if",
            "{a",
        ] {
            survives(&opening.repeat(10_000));
        }
    }

    #[test]
    fn an_ordinary_expression_is_not_too_deep() {
        let nested = format!("{}x{}", "(".repeat(50), ")".repeat(50));
        let sum = vec!["a"; 300].join(" + ");
        let list = format!("[{}]", vec!["a.b + 1"; 2000].join(", "));
        let map = format!("{{{}}}", vec!["'k': a.b"; 2000].join(", "));
        for text in [nested, sum, list, map] {
            for dialect in [Jinja, Js] {
                assert_eq!(expression(&text, dialect).faults, [], "{text}");
            }
        }
        let line =
            "const row = input.rows.filter(r => r.ok).map(r => ({ id: r.id, n: r.n * 2 }))\n";
        let body = line.repeat(200) + "return row";
        assert_eq!(transform(&body).analysis.faults, []);
    }

    #[test]
    fn an_expression_beyond_64_kib_is_refused() {
        let text = format!("'{}'", "a".repeat(70_000));
        for dialect in [Jinja, Js] {
            let faults = expression(&text, dialect).faults;
            assert_eq!(faults[0].message, "this expression is longer than 64 KiB");
            let faults = template(&format!("{{{{ {text} }}}}"), dialect).faults;
            assert_eq!(faults[0].range, 3..text.len() + 3);
            assert_eq!(
                template(&"text {{ a }} ".repeat(20_000), dialect).faults,
                []
            );
        }
    }
}
