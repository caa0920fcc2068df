//! The shortest sequence that still fails.

use std::time::{Duration, Instant};

use crate::steps::Step;
use crate::support::Ground;
use crate::walk::Walk;

/// How often a candidate is tried: what fails depends on the moment.
const TRIES: u32 = 12;
/// How long a sequence is shortened at least, and measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// What came of a sequence that was walked again and again.
#[derive(Default)]
pub(crate) struct Rate {
    pub(crate) failed: u32,
    pub(crate) tried: u32,
    /// What was called and shown the last time that it failed.
    pub(crate) calls: Vec<String>,
}

/// Walks a sequence again and again, in new sessions after a fault, until it was
/// tried or has failed like this so often.
pub(crate) async fn rate(
    ground: &Ground,
    shell: &'static str,
    steps: &[Step],
    kind: &str,
    (tries, faults): (u32, u32),
    until: Instant,
) -> Rate {
    let mut rate = Rate::default();
    let mut walk = Walk::open(ground, shell).await;
    while rate.tried < tries && rate.failed < faults && (rate.tried == 0 || Instant::now() < until)
    {
        rate.tried += 1;
        let result = walk.walk(steps).await;
        if result.as_ref().is_err_and(|fault| fault.kind == kind) {
            rate.failed += 1;
            rate.calls = std::mem::take(&mut walk.calls);
            rate.calls.push(format!("screen {}", walk.screen().await));
        }
        if result.is_err() || walk.spent {
            let _ = walk.close().await;
            walk = Walk::open(ground, shell).await;
        }
    }
    let _ = walk.close().await;
    rate
}

/// The sequence without one of its steps, or one of its keys.
fn fewer(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    for position in 0..steps.len() {
        let mut fewer = steps.to_vec();
        fewer.remove(position);
        all.push(fewer);
    }
    for (position, step) in steps.iter().enumerate() {
        if let Step::Keys(keys) = step
            && keys.len() > 1
        {
            for key in 0..keys.len() {
                let mut keys = keys.clone();
                keys.remove(key);
                let mut fewer = steps.to_vec();
                fewer[position] = Step::Keys(keys);
                all.push(fewer);
            }
        }
    }
    all
}

/// Leaves out every step that is not needed for the fault; says what is left and how often it fails.
pub(crate) async fn shorten(
    ground: &Ground,
    shell: &'static str,
    steps: &[Step],
    kind: &str,
) -> (Vec<Step>, Rate) {
    let began = Instant::now();
    let mut until = began + PATIENCE;
    let mut steps = steps.to_vec();
    let again = rate(ground, shell, &steps, kind, (2 * TRIES, 1), until).await;
    if again.failed > 0 {
        // One that fails for long is walked a few times all the same.
        until += 10 * began.elapsed() / again.tried;
        let mut left = fewer(&steps).into_iter();
        while let Some(fewer_steps) = left.next()
            && Instant::now() < until
        {
            let without = rate(ground, shell, &fewer_steps, kind, (TRIES, 1), until).await;
            if without.failed > 0 {
                // What was needed before may not be any more.
                steps = fewer_steps;
                left = fewer(&steps).into_iter();
            }
        }
    }
    let until = Instant::now() + PATIENCE / 2;
    let rate = rate(ground, shell, &steps, kind, (40, u32::MAX), until).await;
    (steps, rate)
}
