//! One transition of six states with three outcomes each: compiled by `workflow!`, interpreted from
//! the graph, written by hand, and by other crates. `cargo bench` in this directory.

use divan::{Bencher, black_box, counter::ItemsCount};

fn main() {
    divan::main();
}

flow::workflow!(
    r#"
    name: ring
    initial_state: s0
    states:
      s0: {action: {tool: list_terminal_sessions}, transitions: [{condition: success, next_state: s1}, {condition: timeout, next_state: s5}, {condition: failure, next_state: s3}]}
      s1: {action: {tool: list_terminal_sessions}, transitions: [{condition: success, next_state: s2}, {condition: timeout, next_state: s0}, {condition: failure, next_state: s4}]}
      s2: {action: {tool: list_terminal_sessions}, transitions: [{condition: success, next_state: s3}, {condition: timeout, next_state: s1}, {condition: failure, next_state: s5}]}
      s3: {action: {tool: list_terminal_sessions}, transitions: [{condition: success, next_state: s4}, {condition: timeout, next_state: s2}, {condition: failure, next_state: s0}]}
      s4: {action: {tool: list_terminal_sessions}, transitions: [{condition: success, next_state: s5}, {condition: timeout, next_state: s3}, {condition: failure, next_state: s1}]}
      s5: {action: {tool: list_terminal_sessions}, transitions: [{condition: success, next_state: s0}, {condition: timeout, next_state: s4}, {condition: failure, next_state: s2}]}
    "#
);

/// Events in a short rhythm, or without one.
#[derive(Clone, Copy, Debug)]
enum Order {
    Predictable,
    Random,
}

const ORDERS: [Order; 2] = [Order::Predictable, Order::Random];
const EVENTS: usize = 4096;

fn numbers(order: Order) -> Vec<u8> {
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    (0..EVENTS)
        .map(|at| match order {
            Order::Predictable => [0, 0, 1, 0, 2, 0][at % 6],
            Order::Random => {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                (seed % 3) as u8
            }
        })
        .collect()
}

fn events<E>(order: Order, of: [fn() -> E; 3]) -> Vec<E> {
    numbers(order).into_iter().map(|at| of[at as usize]()).collect()
}

#[divan::bench(args = ORDERS)]
fn compiled(bencher: Bencher<'_, '_>, order: Order) {
    use ring::{Outcome, State};
    let events = events(order, [|| Outcome::Success, || Outcome::Failure, || Outcome::Timeout]);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let mut state = State::INITIAL;
        for &event in black_box(&events) {
            if let Some(next) = state.next(event) {
                state = next;
            }
            black_box(&state);
        }
    });
}

#[divan::bench(args = ORDERS)]
fn interpreted(bencher: Bencher<'_, '_>, order: Order) {
    use flow::Outcome;
    use flow::graph::Target;
    let events = events(order, [|| Outcome::Success, || Outcome::Failure, || Outcome::Timeout]);
    let table = flow::graph::Table::of(&ring::GRAPH.body);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let mut state = 0u16;
        for &event in black_box(&events) {
            if let Some(Target::Node(next)) = table.next(state, event) {
                state = next;
            }
            black_box(&state);
        }
    });
}

mod by_hand {
    #[derive(Clone, Copy)]
    pub enum State {
        S0,
        S1,
        S2,
        S3,
        S4,
        S5,
    }

    #[derive(Clone, Copy)]
    pub enum Event {
        A,
        B,
        C,
    }

    impl State {
        pub fn next(self, event: Event) -> Option<State> {
            use Event::*;
            use State::*;
            Some(match (self, event) {
                (S0, A) => S1,
                (S0, B) => S3,
                (S0, C) => S5,
                (S1, A) => S2,
                (S1, B) => S4,
                (S1, C) => S0,
                (S2, A) => S3,
                (S2, B) => S5,
                (S2, C) => S1,
                (S3, A) => S4,
                (S3, B) => S0,
                (S3, C) => S2,
                (S4, A) => S5,
                (S4, B) => S1,
                (S4, C) => S3,
                (S5, A) => S0,
                (S5, B) => S2,
                (S5, C) => S4,
            })
        }
    }
}

#[divan::bench(args = ORDERS)]
fn hand_written_match(bencher: Bencher<'_, '_>, order: Order) {
    use by_hand::{Event, State};
    let events = events(order, [|| Event::A, || Event::B, || Event::C]);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let mut state = State::S0;
        for &event in black_box(&events) {
            if let Some(next) = state.next(event) {
                state = next;
            }
            black_box(&state);
        }
    });
}

mod by_statig {
    use statig::prelude::*;

    pub enum Event {
        A,
        B,
        C,
    }

    #[derive(Default)]
    pub struct Ring;

    #[state_machine(initial = "State::s0()", state(derive(Clone, Copy)))]
    impl Ring {
        #[state]
        fn s0(event: &Event) -> Outcome<State> {
            match event {
                Event::A => Transition(State::s1()),
                Event::B => Transition(State::s3()),
                Event::C => Transition(State::s5()),
            }
        }
        #[state]
        fn s1(event: &Event) -> Outcome<State> {
            match event {
                Event::A => Transition(State::s2()),
                Event::B => Transition(State::s4()),
                Event::C => Transition(State::s0()),
            }
        }
        #[state]
        fn s2(event: &Event) -> Outcome<State> {
            match event {
                Event::A => Transition(State::s3()),
                Event::B => Transition(State::s5()),
                Event::C => Transition(State::s1()),
            }
        }
        #[state]
        fn s3(event: &Event) -> Outcome<State> {
            match event {
                Event::A => Transition(State::s4()),
                Event::B => Transition(State::s0()),
                Event::C => Transition(State::s2()),
            }
        }
        #[state]
        fn s4(event: &Event) -> Outcome<State> {
            match event {
                Event::A => Transition(State::s5()),
                Event::B => Transition(State::s1()),
                Event::C => Transition(State::s3()),
            }
        }
        #[state]
        fn s5(event: &Event) -> Outcome<State> {
            match event {
                Event::A => Transition(State::s0()),
                Event::B => Transition(State::s2()),
                Event::C => Transition(State::s4()),
            }
        }
    }
}

#[divan::bench(args = ORDERS)]
fn statig(bencher: Bencher<'_, '_>, order: Order) {
    use by_statig::{Event, Ring};
    use statig::prelude::*;
    let events = events(order, [|| Event::A, || Event::B, || Event::C]);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let mut machine = Ring.state_machine();
        for event in black_box(&events) {
            machine.handle(event);
            black_box(machine.state());
        }
    });
}

mod by_smlang {
    smlang::statemachine! {
        derive_events: [Clone, Copy],
        transitions: {
            *S0 + A = S1,
            S0 + B = S3,
            S0 + C = S5,
            S1 + A = S2,
            S1 + B = S4,
            S1 + C = S0,
            S2 + A = S3,
            S2 + B = S5,
            S2 + C = S1,
            S3 + A = S4,
            S3 + B = S0,
            S3 + C = S2,
            S4 + A = S5,
            S4 + B = S1,
            S4 + C = S3,
            S5 + A = S0,
            S5 + B = S2,
            S5 + C = S4,
        }
    }

    pub struct Context;

    impl StateMachineContext for Context {}
}

#[divan::bench(args = ORDERS)]
fn smlang(bencher: Bencher<'_, '_>, order: Order) {
    use by_smlang::{Context, Events, StateMachine};
    let events = events(order, [|| Events::A, || Events::B, || Events::C]);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let mut machine = StateMachine::new(Context);
        for &event in black_box(&events) {
            let _ = machine.process_event(event);
            black_box(machine.state());
        }
    });
}

mod by_rust_fsm {
    rust_fsm::state_machine! {
        pub ring(S0)
        S0 => { A => S1, B => S3, C => S5 },
        S1 => { A => S2, B => S4, C => S0 },
        S2 => { A => S3, B => S5, C => S1 },
        S3 => { A => S4, B => S0, C => S2 },
        S4 => { A => S5, B => S1, C => S3 },
        S5 => { A => S0, B => S2, C => S4 }
    }
}

#[divan::bench(args = ORDERS)]
fn rust_fsm(bencher: Bencher<'_, '_>, order: Order) {
    use by_rust_fsm::ring::{Input, StateMachine};
    let events = events(order, [|| Input::A, || Input::B, || Input::C]);
    bencher.counter(ItemsCount::new(EVENTS)).bench_local(|| {
        let mut machine = StateMachine::new();
        for event in black_box(&events) {
            let _ = machine.consume(event);
            black_box(machine.state());
        }
    });
}
