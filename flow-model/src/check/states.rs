//! Transitions: can each one be taken, and is there one for every outcome?

use super::Checker;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Condition, Exits, Step};
use crate::source::Tree;

/// A set of outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcomes(u8);

impl Outcomes {
    const NONE: Outcomes = Outcomes(0);
    const SUCCESS: Outcomes = Outcomes(1);
    const TIMEOUT: Outcomes = Outcomes(4);
    const FAILURE: Outcomes = Outcomes(2);
    const ALL: Outcomes = Outcomes(7);

    const fn and(self, other: Outcomes) -> Outcomes {
        Outcomes(self.0 & other.0)
    }

    const fn or(self, other: Outcomes) -> Outcomes {
        Outcomes(self.0 | other.0)
    }

    const fn not(self) -> Outcomes {
        Outcomes(!self.0 & Self::ALL.0)
    }

    const fn is_within(self, other: Outcomes) -> bool {
        self.0 & !other.0 == 0
    }

    fn words(self) -> String {
        let named = [
            (Self::SUCCESS, "success"),
            (Self::FAILURE, "failure"),
            (Self::TIMEOUT, "timeout"),
        ];
        let words: Vec<&str> = named
            .into_iter()
            .filter(|(outcome, _)| outcome.is_within(self))
            .map(|(_, word)| word)
            .collect();
        match words.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
            None => String::new(),
        }
    }
}

/// What is known of a condition without running it: it can hold only for `may`, and holds for
/// certain for `must`.
#[derive(Clone, Copy)]
struct Bounds {
    may: Outcomes,
    must: Outcomes,
}

fn bounds(condition: &Condition<'_>) -> Bounds {
    let exact = |outcomes: Outcomes| Bounds {
        may: outcomes,
        must: outcomes,
    };
    match condition {
        Condition::Always => exact(Outcomes::ALL),
        Condition::Success(true) => exact(Outcomes::SUCCESS),
        Condition::Success(false) => exact(Outcomes::SUCCESS.not()),
        Condition::TimedOut(true) => exact(Outcomes::TIMEOUT),
        Condition::TimedOut(false) => exact(Outcomes::TIMEOUT.not()),
        Condition::Match(_)
        | Condition::NoMatch(_)
        | Condition::Equals(..)
        | Condition::Contains(..)
        | Condition::Expression(_)
        | Condition::Judged(_) => Bounds {
            may: Outcomes::ALL,
            must: Outcomes::NONE,
        },
        Condition::All(inner) => {
            let all = inner
                .iter()
                .map(bounds)
                .fold(exact(Outcomes::ALL), |a, b| Bounds {
                    may: a.may.and(b.may),
                    must: a.must.and(b.must),
                });
            if contradicts(inner) {
                exact(Outcomes::NONE)
            } else {
                all
            }
        }
        Condition::Any(inner) => {
            let any = inner
                .iter()
                .map(bounds)
                .fold(exact(Outcomes::NONE), |a, b| Bounds {
                    may: a.may.or(b.may),
                    must: a.must.or(b.must),
                });
            if contradicts(inner) {
                exact(Outcomes::ALL)
            } else {
                any
            }
        }
        Condition::Not(inner) => {
            let inner = bounds(inner);
            Bounds {
                may: inner.must.not(),
                must: inner.may.not(),
            }
        }
    }
}

/// Whether a list asks for a pattern to be found and not to be found.
fn contradicts(conditions: &[Condition<'_>]) -> bool {
    conditions.iter().any(|one| match one {
        Condition::Match(pattern) => conditions
            .iter()
            .any(|other| matches!(other, Condition::NoMatch(other) if same(pattern, other))),
        _ => false,
    })
}

fn same(a: &Tree, b: &Tree) -> bool {
    a.as_str() == b.as_str()
}

/// Whether two conditions are written alike.
fn alike(a: &Condition<'_>, b: &Condition<'_>) -> bool {
    match (a, b) {
        (Condition::Match(a), Condition::Match(b))
        | (Condition::NoMatch(a), Condition::NoMatch(b))
        | (Condition::Expression(a), Condition::Expression(b)) => same(a, b),
        (Condition::Equals(field, a), Condition::Equals(other, b))
        | (Condition::Contains(field, a), Condition::Contains(other, b)) => {
            field.value == other.value && a.to_json() == b.to_json()
        }
        (Condition::Judged(a), Condition::Judged(b)) => a.value == b.value,
        (Condition::All(a), Condition::All(b)) | (Condition::Any(a), Condition::Any(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Condition::Success(a), Condition::Success(b))
        | (Condition::TimedOut(a), Condition::TimedOut(b)) => a == b,
        (Condition::Not(a), Condition::Not(b)) => alike(a, b),
        (Condition::Always, Condition::Always) => true,
        _ => false,
    }
}

/// Outcomes for which a state certainly has somewhere to go.
fn covered(exits: &Exits<'_>) -> Outcomes {
    let mut covered = match exits.on_timeout {
        Some(_) => Outcomes::TIMEOUT,
        None => Outcomes::NONE,
    };
    for (at, transition) in exits.transitions.iter().enumerate() {
        covered = covered.or(bounds(&transition.condition).must);
        // A pattern found and the same pattern not found leave nothing over.
        let complement = exits.transitions[..at].iter().any(|earlier| {
            match (&earlier.condition, &transition.condition) {
                (Condition::Match(a), Condition::NoMatch(b))
                | (Condition::NoMatch(a), Condition::Match(b)) => same(a, b),
                _ => false,
            }
        });
        if complement {
            covered = Outcomes::ALL;
        }
    }
    covered
}

/// Whether some outcome of a state has nowhere to go, so that the run would fail there.
pub(super) fn may_fail(step: &Step<'_>) -> bool {
    match &step.exits {
        Some(exits) => exits.unread || !Outcomes::ALL.is_within(covered(exits)),
        None => true,
    }
}

impl<'d> Checker<'d> {
    /// Conditions of every state.
    pub(super) fn conditions(&mut self) {
        for step in &self.document.steps {
            if let Some(exits) = &step.exits {
                self.transitions(step, exits);
            }
        }
    }

    fn transitions(&mut self, step: &'d Step<'d>, exits: &'d Exits<'d>) {
        let mut taken = match exits.on_timeout {
            Some(_) => Outcomes::TIMEOUT,
            None => Outcomes::NONE,
        };
        for (at, transition) in exits.transitions.iter().enumerate() {
            let span = self.line(transition.span);
            let Bounds { may, must } = bounds(&transition.condition);
            let twin = exits.transitions[..at]
                .iter()
                .find(|earlier| alike(&earlier.condition, &transition.condition));
            if may == Outcomes::NONE {
                self.report(
                    Diagnostic::new(Code::NeverHolds, span)
                        .message(format!(
                            "this condition of `{}` can never hold",
                            step.id.value
                        ))
                        .label("contradicts itself"),
                );
            } else if may.is_within(taken) || twin.is_some() {
                let mut finding = Diagnostic::new(Code::Hidden, span)
                    .message(format!(
                        "this transition of `{}` is never taken",
                        step.id.value
                    ))
                    .label("an earlier one always comes first")
                    .help("put the narrower condition first");
                let earlier = twin.or_else(|| {
                    let mut before = exits.transitions[..at].iter();
                    before
                        .find(|earlier| bounds(&earlier.condition).must.and(may) != Outcomes::NONE)
                });
                if let Some(earlier) = earlier {
                    finding = finding.related(self.line(earlier.span), "this one");
                } else if let Some(target) = &exits.on_timeout {
                    finding = finding
                        .label("`on_timeout` always comes first")
                        .related(target.span, "here")
                        .help("keep one of the two");
                }
                self.report(finding);
            }
            taken = taken.or(must);
        }
        let open = covered(exits).not();
        let judged =
            |t: &crate::document::Transition<'_>| matches!(t.condition, Condition::Judged(_));
        // Whoever judges sees the outcome and decides.
        if exits.unread || exits.transitions.iter().any(judged) {
            return;
        }
        if !exits.transitions.is_empty() && open != Outcomes::NONE {
            let (noun, verb) = if open.0.count_ones() == 1 {
                ("outcome", "has")
            } else {
                ("outcomes", "have")
            };
            self.report(
                Diagnostic::new(Code::UncoveredOutcome, step.id.span)
                    .message(format!(
                        "`{}` can end in {}, which {verb} no certain transition: the run would fail",
                        step.id.value,
                        open.words()
                    ))
                    .label(format!("{noun} with no transition: {}", open.words()))
                    .help("add a transition for it, or one with `condition: always` at the end"),
            );
        }
    }
}
