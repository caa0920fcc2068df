//! A transition to a state that does not exist, in a file. The uses of the module are no errors.
flow::workflow!("./missing_state.yaml");

fn main() {
    assert_eq!(order::State::INITIAL, order::State::Draft);
    let _ = order::State::Paid;
}
