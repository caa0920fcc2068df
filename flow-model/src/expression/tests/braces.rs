use super::*;

#[test]
fn only_names_in_literal_text_are_variables() {
    let text = "{a} {b_1}{{ {c} }} {{d}} ${e} {1} {f g} {} {%h%} {{{i}}} é{j} {k-1} {l.m} {a..z} {-n} {o,p}";
    let names: Vec<_> = braced(text).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["a", "b_1", "j", "k-1", "l.m"]);
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

#[test]
fn what_was_a_variable_reads_as_one_again() {
    for text in [
        "echo {name} ${HOME} {{ x }}",
        "{a}{b}",
        "awk '{print $1}'",
        "no",
    ] {
        assert_eq!(rebrace(&unbrace(text)), text);
    }
    for text in [r#"variable("a b")"#, r#"{{ variable("a") | sh }}"#] {
        assert_eq!(rebrace(text), text);
    }
}

#[test]
fn what_braces_mean_in_a_regular_expression_they_go_on_meaning() {
    let names = |text| -> Vec<&str> {
        let found = braced_pattern(text).into_iter();
        found.map(|(_, name)| name).collect()
    };
    for text in [
        r"a{3}b{2,5}c{1,}",
        r"\p{Greek}\P{L}\x{41}\u{1F600}\b{start}",
        r"\{name\} \{name}",
        r"\\\{name}",
        "{{ name }} ${name} {a b}",
        "\\",
        "\\é{3}",
    ] {
        assert_eq!(names(text), [""; 0], "{text}");
    }
    assert_eq!(
        names(r"{a}{3}\\{b}\${c}[^]{x}]{d-e}[[{a-z}]]"),
        ["a", "b", "c", "d-e"]
    );
    assert_eq!(rebrace(&unbrace_pattern(r"\d{3}{unit}")), r"\d{3}{unit}");
}
