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
