//! Lateness that is asked for, so that what meets seldom meets often.
//!
//! Shells, the kernel and the threads of a session meet in an order that differs from run to run. In
//! debug builds `FLOW_TERMINAL_LAG=reader=10,writer=20` makes each of them so many milliseconds late at
//! every turn; tests must pass all the same.

use std::time::Duration;

/// Who is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The thread that takes what a program writes.
    Reader,
    /// Whoever types.
    Writer,
}

/// Waits, if that was asked for.
pub(super) fn lag(late: Late) {
    let moment = asked(late);
    if !moment.is_zero() {
        std::thread::sleep(moment);
    }
}

#[cfg(debug_assertions)]
fn asked(late: Late) -> Duration {
    use std::sync::OnceLock;
    static ASKED: OnceLock<[Duration; 2]> = OnceLock::new();
    let [reader, writer] = ASKED.get_or_init(|| {
        let asked = std::env::var("FLOW_TERMINAL_LAG").unwrap_or_default();
        ["reader=", "writer="].map(|name| {
            let told = asked.split(',').find_map(|it| it.strip_prefix(name));
            Duration::from_millis(told.and_then(|it| it.parse().ok()).unwrap_or(0))
        })
    });
    match late {
        Late::Reader => *reader,
        Late::Writer => *writer,
    }
}

#[cfg(not(debug_assertions))]
fn asked(_late: Late) -> Duration {
    Duration::ZERO
}
