//! What must not compile, with the messages a person reads.

#[test]
fn faulty_definitions_and_illegal_uses_do_not_compile() {
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}
