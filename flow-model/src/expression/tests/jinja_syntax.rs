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
fn a_brace_and_a_percent_sign_of_the_shell_are_pointed_at() {
    for (source, message) in [
        (
            [r#"printf "{%s}" x; echo "it is fine""#, "        ~~"],
            "`{%` begins a statement, and `s` is none",
        ),
        (
            ["echo ${a%{%*} it's", "         ~~"],
            "`{%` begins a statement, and none follows",
        ),
    ] {
        one(
            source,
            message,
            Some(
                "put text that contains `{%` between `{% raw %}` and `{% endraw %}`, or write `{{ '{%' }}`",
            ),
        );
    }
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

#[test]
fn what_is_no_token_is_pointed_at_even_after_a_string() {
    one(["{{ 'a' # b }}", "       ~"], "unexpected `#`", None);
    let faults = expression("'a' # b", Jinja).faults;
    assert_eq!(
        underline("'a' # b", faults.into_iter().map(|fault| fault.range)),
        "    ~"
    );
}
