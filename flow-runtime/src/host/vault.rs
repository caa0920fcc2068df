//! The secrets that are known in this process.
//!
//! Runs that belong together, one that somebody has started and those it has called, know the same
//! secrets: each of them may hand one to another, and all of them keep it. What other runs know is nothing
//! to them: a text of theirs is theirs, also where it is somebody else's secret.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::journal::RunId;
use crate::secret::{Scrubber, Secret};
use crate::value::Value;

/// The values that are known in this process.
#[derive(Default)]
pub(super) struct Vault {
    known: Mutex<Known>,
    /// One question at a time: two steps may need the same secret.
    pub(super) asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    /// By the run that has called the others.
    families: HashMap<RunId, Family>,
    /// Which of them a run belongs to.
    of: HashMap<RunId, RunId>,
    /// Secrets that a run waits for.
    missing: HashMap<RunId, BTreeSet<String>>,
}

/// What runs know that belong together.
#[derive(Default)]
struct Family {
    /// By the run whose input it is, and the input.
    values: HashMap<(String, String), Held>,
    scrubber: Arc<Scrubber>,
}

struct Held {
    value: String,
    /// Nobody but this process knows it.
    by_hand: bool,
}

impl Vault {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody here has secrets.
    pub(super) fn is_empty(&self) -> bool {
        self.known().families.is_empty()
    }

    /// Whether there is nothing to forget either.
    pub(super) fn is_unused(&self) -> bool {
        let known = self.known();
        known.families.is_empty() && known.of.is_empty()
    }

    /// The family of a run, if that has been asked for before.
    pub(super) fn family(&self, run: RunId) -> Option<RunId> {
        self.known().of.get(&run).copied()
    }

    /// Notes which family a run is of, until that is forgotten.
    pub(super) fn note_family(&self, run: RunId, family: RunId) {
        self.known().of.insert(run, family);
    }

    /// What is scrubbed from what concerns a run.
    pub(super) fn scrubber(&self, family: RunId, run: &str) -> Arc<Scrubber> {
        let known = self.known();
        match known.families.get(&family) {
            Some(family) => Arc::new(family.scrubber.preferring(run)),
            None => Arc::default(),
        }
    }

    /// Remembers a value, and scrubs it from now on.
    pub(super) fn keep(&self, family: RunId, secret: Secret, by_hand: bool) {
        let mut known = self.known();
        let family = known.families.entry(family).or_default();
        let Secret { run, input, value } = secret;
        Arc::make_mut(&mut family.scrubber).add(&run, &input, &value);
        family.values.insert((run, input), Held { value, by_hand });
    }

    /// Nobody drives the runs of a family any more; when they are over none is asked for again.
    pub(super) fn forget(&self, family: RunId, is_over: bool) {
        let mut known = self.known();
        known.of.retain(|_, of| *of != family);
        let Some(left) = known.families.get_mut(&family) else {
            return;
        };
        let before = left.values.len();
        left.values.retain(|_, held| held.by_hand && !is_over);
        if left.values.is_empty() {
            known.families.remove(&family);
            return;
        }
        if left.values.len() < before {
            let mut scrubber = Scrubber::default();
            for ((run, input), held) in &left.values {
                scrubber.add(run, input, &held.value);
            }
            left.scrubber = Arc::new(scrubber);
        }
    }

    /// The value of an input of a run, if a family knows it.
    pub(super) fn get(&self, family: RunId, run: &str, input: &str) -> Option<String> {
        let key = (run.to_owned(), input.to_owned());
        let known = self.known();
        let held = known.families.get(&family)?.values.get(&key)?;
        Some(held.value.clone())
    }

    /// The inputs that a run waits for.
    pub(super) fn missing(&self, run: RunId) -> Vec<String> {
        let known = self.known();
        let missing = known.missing.get(&run);
        missing.map_or_else(Vec::new, |names| names.iter().cloned().collect())
    }

    /// Whether a run waits for one.
    pub(super) fn misses(&self, run: RunId) -> bool {
        self.known().missing.contains_key(&run)
    }

    /// The runs that wait for one.
    pub(super) fn waiting(&self) -> Vec<RunId> {
        self.known().missing.keys().copied().collect()
    }

    pub(super) fn note_missing(&self, run: RunId, input: String) {
        self.known().missing.entry(run).or_default().insert(input);
    }

    pub(super) fn misses_nothing(&self, run: RunId) {
        self.known().missing.remove(&run);
    }
}

/// A value as it is put into a text.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        other => other.to_string(),
    }
}
