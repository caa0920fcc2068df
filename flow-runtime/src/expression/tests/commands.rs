use flow_model::graph::{Dialect, Template};

use super::super::{Context, Engine, ErrorKind, Instant};
use super::{json, sole, world};

fn command(source: &str) -> String {
    match super::command(source, Dialect::Jinja) {
        Ok(text) => text,
        Err(error) => panic!("{source}: {error:?}"),
    }
}

/// A command with `x` for a value.
fn with(source: &str, value: &str) -> Result<String, ErrorKind> {
    let mut world = world();
    world.names.push(("x", json(value)));
    let instant = Instant::new(0, 0);
    let template = Template::Text(sole(source, Dialect::Jinja));
    let done = Engine::new().render_command(&template, &Context::new(&world, &instant));
    done.map_err(|error| error.kind)
}

#[test]
fn a_value_is_quoted_for_its_place() {
    assert_eq!(command("echo {{ inputs.name }}"), r"echo 'it'\''s'");
    assert_eq!(command(r#"echo "{{ inputs.name }}""#), r#"echo "it's""#);
    assert_eq!(command("echo '{{ inputs.name }}'"), r"echo 'it'\''s'");
    assert_eq!(
        command("echo {{ inputs.count }} {{ inputs.count > 1 }}"),
        "echo 3 true"
    );
    assert_eq!(
        command("rm {{ inputs.tags }} \"{{ inputs.tags }}\""),
        "rm a b \"a b\""
    );
    assert_eq!(command("x={{ inputs.none }} y"), "x='' y");
    assert_eq!(
        command("echo {{ state.user }}"),
        r#"echo '{"name":"Ada","age":36}'"#
    );
    assert_eq!(
        command("{{ 'ls | wc' | unquoted }} {{ inputs.name }}"),
        r"ls | wc 'it'\''s'"
    );
    assert_eq!(
        command("cat <<EOF\n{{ inputs.name }} $HOME\nEOF\n"),
        "cat <<EOF\nit's $HOME\nEOF\n"
    );
    assert_eq!(
        command("{% for f in state.files %}cat {{ f.path }}; {% endfor %}"),
        "cat a.rs; cat b.rs; "
    );
    assert_eq!(
        command("{% set c %}a {{ inputs.name }} b{% endset %}echo {{ c }}"),
        r"echo 'a it'\''s b'"
    );
    assert_eq!(
        command("{% macro m(x) %}<{{ x }}>{% endmacro %}echo \"{{ m(inputs.name) }}\""),
        r#"echo "<it's>""#
    );
    assert_eq!(
        command("echo {{ inputs.name | sh }}"),
        r"echo \''it'\'\\\'\''s'\'"
    );
    assert_eq!(
        command("echo $(({{ inputs.count }} + 1))"),
        "echo $((3 + 1))"
    );
    assert_eq!(
        command("echo ${{ inputs.count }} \"${{ inputs.count }}\""),
        r#"echo \$3 "\$3""#
    );
    assert_eq!(
        command("echo ${PORT:-{{ inputs.count }}}"),
        "echo ${PORT:-3}"
    );
    assert_eq!(command("# about {{ state.mode }}\nls"), "# about fast\nls");
    assert_eq!(command("a#b {{ inputs.name }}"), r"a#b 'it'\''s'");
}

#[test]
fn text_that_a_template_keeps_is_a_value_like_any_other() {
    assert_eq!(
        command(
            "{% set c %}{{ inputs.name }}{% endset %}{% if c == \"it's\" %}echo {{ c | length }}{% endif %}"
        ),
        "echo 4"
    );
    assert_eq!(
        command("echo {% filter upper %}a {{ inputs.name }}{% endfilter %} {{ inputs.name }}"),
        r"echo 'A IT'\''S' 'it'\''s'"
    );
    assert_eq!(
        command(
            "{% macro m(x) %}{% set y %}<{{ x }}>{% endset %}{{ y }}{{ x }}{% endmacro %}{{ m('a b') }} {{ 'c d' }}"
        ),
        "'<a b>a b' 'c d'"
    );
    let recursive = "{% for x in inputs.tags recursive %}{{ loop(x) | upper }}{% endfor %}";
    assert_eq!(
        super::command(recursive, Dialect::Jinja).unwrap_err().kind,
        ErrorKind::Syntax
    );
}

#[test]
fn words_that_mean_something_to_the_shell_are_quoted() {
    for (source, value, result) in [
        ("{{ x }}", r#""if""#, "'if'"),
        ("echo {{ x }}>f", "2", "echo '2'>f"),
        ("{{ x }}=1 ls", r#""PATH""#, "'PATH'=1 ls"),
        ("echo ~{{ x }}", r#""root""#, "echo ~'root'"),
        ("echo {{ x }}", r#""-n""#, "echo -n"),
        ("echo {{ x }}", r#""""#, "echo ''"),
        ("echo {{ x }}", r#""a*b""#, "echo 'a*b'"),
        ("for i in {1..{{ x }}}; do", "3", "for i in {1..3}; do"),
        ("echo {{ x }}", r#"[]"#, "echo "),
        (
            "echo {{ x }}",
            r#"[null, "", "a b", [1, "c"], 2]"#,
            r#"echo '' '' 'a b' '[1,"c"]' 2"#,
        ),
    ] {
        assert_eq!(with(source, value).unwrap(), result, "{source} {value}");
    }
}

#[test]
fn a_value_that_cannot_be_made_safe_is_refused() {
    let hostile = r#""$(reboot)""#;
    for source in [
        "ls # {{ x }}",
        "cat <<{{ x }}\na\nEOF",
        "echo $'{{ x }}'",
        "echo ${PORT:-{{ x }}}",
        "echo ${PORT:-\"{{ x }}\"}",
        "echo $(({{ x }}))",
        "echo \\{{ x }}",
        "echo `echo \\\\{{ x }}`",
        "echo \"`echo {{ x }}`\"",
        "echo \"$(case a in a) echo {{ x }};; esac)\"",
        "cat <<EOF\n$(( {{ x }} + 1 ))\nEOF",
        "cat <<EOF\n$(echo {{ x }})\nEOF",
        "cat <<EOF\n`echo ')'` {{ x }}\nEOF",
    ] {
        assert_eq!(with(source, hostile), Err(ErrorKind::Place), "{source}");
    }
    assert_eq!(with("echo {{ x }}", r#""a\u0000b""#), Err(ErrorKind::Place));
    assert_eq!(
        with("cat <<'EOF'\n{{ x }}\nEOF", r#""a\nEOF\nreboot""#),
        Err(ErrorKind::Place)
    );
    assert_eq!(
        with("cat <<'EOF'\nE{{ x }}\nEOF", r#""OF""#),
        Err(ErrorKind::Place)
    );
    assert_eq!(with("echo ${x{{ x }}}", r#""PATH""#), Err(ErrorKind::Place));
}

#[test]
fn who_gives_a_value_that_does_not_fit_its_place_is_told_what_does() {
    let refused = |source: &str, value: &str| {
        let mut world = world();
        world.names.push(("x", json(value)));
        let instant = Instant::new(0, 0);
        let template = Template::Text(sole(source, Dialect::Jinja));
        let done = Engine::new().render_command(&template, &Context::new(&world, &instant));
        done.unwrap_err().message
    };
    for (value, kind) in [
        (r#""x; ls""#, "a string that is none"),
        ("1.5", "a number that is not whole"),
        ("null", "null"),
        (r#"{"a": 1}"#, "an object"),
    ] {
        let message = refused("echo $(( {{ x }} ))", value);
        assert!(
            message.contains(&format!("the value is {kind}")),
            "{message}"
        );
        assert!(message.contains("`| int`"), "{message}");
    }
    let message = refused("cat <<'EOF'\n{{ x }}\nEOF", r#""a\nEOF\nls""#);
    assert!(message.contains("the here-document `EOF`"), "{message}");
    assert!(message.contains("`<<EOF` without quotes"), "{message}");
    let doc = "cat <<EOF\n$(( {{ x }} + 1 )) {{ x }}\nEOF";
    assert_eq!(with(doc, "3").unwrap(), "cat <<EOF\n$(( 3 + 1 )) 3\nEOF");
    let case = "echo \"$(case {{ x }} in (a) echo {{ x }};; esac)\"";
    let expected = "echo \"$(case '$(a)' in (a) echo '$(a)';; esac)\"";
    assert_eq!(with(case, r#""$(a)""#).unwrap(), expected);
}

#[test]
fn a_command_may_be_one_expression_or_a_list_of_words() {
    let (world, instant) = (world(), Instant::new(0, 0));
    let context = Context::new(&world, &instant);
    let engine = Engine::new();
    let sole_command = Template::Expression(sole("inputs.tags + [inputs.name]", Dialect::Jinja));
    assert_eq!(
        engine.render_command(&sole_command, &context).unwrap(),
        r"a b 'it'\''s'"
    );
    let unquoted = Template::Expression(sole("'ls -la' | unquoted", Dialect::Js));
    assert_eq!(
        engine.render_command(&unquoted, &context).unwrap(),
        "ls -la"
    );
    let list = Template::List(
        vec![
            Template::Literal(flow_model::graph::Literal::Str("echo".into())),
            Template::Expression(sole("inputs.name", Dialect::Js)),
        ]
        .into(),
    );
    assert_eq!(
        engine.render_command(&list, &context).unwrap(),
        r"echo 'it'\''s'"
    );
}

#[test]
fn both_dialects_quote_alike() {
    let text = super::command(
        "echo {{ inputs.name }} \"{{ inputs.name }}\" {{ nope }} {{ 'a b' | unquoted }} {{ inputs.tags }}",
        Dialect::Js,
    );
    assert_eq!(text.unwrap(), r#"echo 'it'\''s' "it's" '' a b a b"#);
}

#[test]
fn a_name_that_is_no_variable_is_text_of_the_command() {
    let unknown = |source: &str| command(&flow_model::expression::unbrace(source));
    for text in [
        "exec {fd}>/tmp/f; echo hello >&$fd",
        "make # {target} it",
        "echo $'a{foo}b'",
        "curl -w '%{http_code}' $url",
        "awk \"{print}\" {a,b} {x}",
        "cat <<EOF\n{foo}\nEOF\n",
    ] {
        assert_eq!(unknown(text), text);
    }
}

#[test]
fn a_sign_right_after_an_expansion_begins_no_comment() {
    for (source, expected) in [
        ("echo $(( 1 ))# {{ x }}", r"echo $(( 1 ))# 'a b'"),
        ("echo ${a}# {{ x }}", r"echo ${a}# 'a b'"),
        ("echo $'a'# {{ x }}", r"echo $'a'# 'a b'"),
    ] {
        assert_eq!(with(source, r#""a b""#).as_deref(), Ok(expected));
    }
    assert_eq!(with("(( 1 ))# {{ x }}", r#""a;b""#), Err(ErrorKind::Place));
}

#[test]
fn braces_around_no_variable_reach_the_shell_as_they_are_written() {
    for dialect in [Dialect::Jinja, Dialect::Js] {
        let command = |source: &str| super::command(source, dialect).unwrap();
        let fd = r#"exec {{ variable("fd") }}>log"#;
        assert_eq!(command(fd), "exec {fd}>log");
        assert_eq!(
            command(r#"echo "{{ variable("nope") }}" {{ variable("session_id") }}"#),
            r#"echo "{nope}" s-1"#
        );
    }
}
