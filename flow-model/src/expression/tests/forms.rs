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
