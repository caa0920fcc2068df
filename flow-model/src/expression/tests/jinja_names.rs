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
