//! The shortest sequence that still fails.

use std::time::{Duration, Instant};

use crate::steps::Step;
use crate::support::Ground;
use crate::walk::Walk;

/// How often a candidate is tried: what fails depends on the moment.
const TRIES: u32 = 12;
/// How long a sequence is shortened, and then measured.
const PATIENCE: Duration = Duration::from_secs(30);

/// Walks a sequence again and again, in new sessions after a fault. Says how often it failed like this
/// and how often it was tried.
pub(crate) async fn rate(
    ground: &Ground,
    shell: &'static str,
    steps: &[Step],
    kind: &str,
    (tries, faults): (u32, u32),
    until: Instant,
) -> (u32, u32) {
    let (mut failed, mut tried) = (0, 0);
    let mut walk = Walk::open(ground, shell).await;
    while tried < tries && failed < faults && (tried == 0 || Instant::now() < until) {
        tried += 1;
        let result = walk.walk(steps).await;
        if result.is_err() || walk.spent {
            let _ = walk.close().await;
            walk = Walk::open(ground, shell).await;
        }
        failed += u32::from(result.is_err_and(|fault| fault.kind == kind));
    }
    let _ = walk.close().await;
    (failed, tried)
}

/// Leaves out every step that is not needed for the fault; says what is left and how often it fails.
pub(crate) async fn shorten(
    ground: &Ground,
    shell: &'static str,
    steps: &[Step],
    kind: &str,
) -> (Vec<Step>, u32, u32) {
    let until = Instant::now() + PATIENCE;
    let mut steps = steps.to_vec();
    let again = rate(ground, shell, &steps, kind, (2 * TRIES, 1), until).await;
    if again.0 > 0 {
        let mut position = 0;
        while position < steps.len() && Instant::now() < until {
            let mut fewer = steps.clone();
            fewer.remove(position);
            match rate(ground, shell, &fewer, kind, (TRIES, 1), until).await.0 {
                0 => position += 1,
                // A step that was needed before may not be any more.
                _ => (steps, position) = (fewer, 0),
            }
        }
    }
    let until = Instant::now() + PATIENCE / 3;
    let (failed, tried) = rate(ground, shell, &steps, kind, (40, u32::MAX), until).await;
    (steps, failed, tried)
}
