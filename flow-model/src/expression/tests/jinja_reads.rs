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
    let text =
        "{{ [a, (b, c), {d: e}, -f, not g, h ~ i, j < k < l, m[n:o:p], q(r) if s else t, *u] }}";
    let text = text.replace(", *u", "").replace("q(r)", "range(*r, **q)");
    let expected = "a b c d e f g h i j k l m n o p r q s t";
    assert_eq!(read_paths(&text, Jinja).join(" "), expected);
}
