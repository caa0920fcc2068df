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
