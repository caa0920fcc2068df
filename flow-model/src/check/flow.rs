//! Where execution can go: targets exist, jumps are legal, everything can be reached and ends.

use std::collections::{HashMap, HashSet};

use super::Checker;
use super::scope::address;
use super::states::may_fail;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Act, Step, StepError, all_steps};
use crate::graph::{Body, Form, Graph, Target, Tier};
use crate::source::{Spanned, Tree};
use crate::structure::unwrap_document;

impl<'d> Checker<'d> {
    /// Ids are unique, and every target exists and may be jumped to.
    pub(super) fn links(&mut self) {
        let document = self.document;
        if document.form == Some(Form::States) {
            self.state_links();
        } else {
            self.some_step();
            self.step_links(&document.steps);
        }
        self.step_links(&document.on_error.steps);
        for task in &document.tasks {
            self.step_links(&task.steps);
            self.step_links(&task.cleanup);
        }
    }

    /// There is something to do. Without a step there may be outputs to make, and nothing else.
    fn some_step(&mut self) {
        let main = self.trees.first().map(unwrap_document);
        let mut entries = main.and_then(Tree::entries).unwrap_or_default().iter();
        let steps = entries.find(|entry| entry.key.value == "steps");
        let none = steps.filter(|entry| entry.value.items().is_some_and(<[Tree]>::is_empty));
        if let Some(entry) = none
            && self.document.outputs.is_empty()
        {
            self.report(
                Diagnostic::new(Code::OutOfLimits, entry.key.span)
                    .message("`steps` has no step, and there are no `outputs` to make")
                    .help("add at least one step"),
            );
        }
    }

    fn state_links(&mut self) {
        let document = self.document;
        let known: Vec<&str> = document.steps.iter().map(|s| s.id.value.as_str()).collect();
        if let Some(initial) = &document.initial
            && !known.is_empty()
            && !known.contains(&initial.value.as_str())
            && !self.lost.declares(&initial.value)
        {
            let mut finding = Diagnostic::new(Code::NoInitialState, initial.span)
                .message(format!(
                    "the initial state does not exist: `{}`",
                    initial.value
                ))
                .label(format!("no state `{}`", initial.value))
                .suggest(&initial.value, known.iter().copied());
            if finding.suggestion.is_none() {
                finding = finding.help(format!("the states are {}", listed(&known)));
            }
            self.report(finding);
        }
        for step in &document.steps {
            let Some(exits) = &step.exits else {
                continue;
            };
            let targets = exits.transitions.iter().map(|transition| &transition.next);
            let targets = exits.on_timeout.iter().chain(targets);
            for target in targets.chain(&exits.unread_targets) {
                if known.contains(&target.value.as_str()) || self.lost.declares(&target.value) {
                    continue;
                }
                let mut finding = Diagnostic::new(Code::NoSuchState, target.span)
                    .message(format!(
                        "transition to a state that does not exist: `{}`",
                        target.value
                    ))
                    .label(format!("no state `{}`", target.value))
                    .suggest(&target.value, known.iter().copied());
                match &finding.suggestion {
                    Some(near) => self.lost.name(near),
                    None => finding = finding.help(format!("the states are {}", listed(&known))),
                }
                self.report(finding);
            }
        }
    }

    fn step_links(&mut self, steps: &'d [Step<'d>]) {
        let mut first: HashMap<&str, &'d Step<'d>> = HashMap::new();
        for step in all_steps(steps) {
            let id = step.id.value.as_str();
            // Its own finding is one of the first pass, which sees what cannot be read too.
            self.ambiguous |= first.contains_key(id);
            first.entry(id).or_insert(step);
        }
        let mut lists: Vec<&'d [Step<'d>]> = Vec::new();
        self.jumps(steps, &first, &mut lists, false);
    }

    fn jumps(
        &mut self,
        steps: &'d [Step<'d>],
        all: &HashMap<&str, &'d Step<'d>>,
        lists: &mut Vec<&'d [Step<'d>]>,
        looped: bool,
    ) {
        lists.push(steps);
        for step in steps {
            match &step.act {
                Act::Break | Act::Continue if !looped => {
                    let word = match step.act {
                        Act::Break => "break",
                        _ => "continue",
                    };
                    self.report(
                        Diagnostic::new(Code::OutsideLoop, step.head)
                            .message(format!("`{word}` stands outside a loop"))
                            .label("no loop around this")
                            .help("`return` ends the run; `goto` jumps to another step"),
                    );
                }
                Act::Goto { target, .. } => self.jump(target, all, lists),
                _ => {}
            }
            if let StepError::Goto(target) = &step.on_error {
                self.jump(target, all, lists);
                let mut reachable = lists.iter().flat_map(|list| list.iter());
                let back = reachable.find(|it| it.id.value == target.value);
                if back.is_some_and(|back| back.head.start <= step.head.start) {
                    self.endless_failure(step, target);
                }
            }
            for body in step.bodies() {
                self.jumps(body, all, lists, looped || step.is_loop());
            }
        }
        lists.pop();
    }

    /// A failure that leads back, however often it happens.
    fn endless_failure(&mut self, step: &'d Step<'d>, target: &'d Spanned<String>) {
        self.report(
            Diagnostic::new(Code::UnboundedLoop, target.span)
                .message(format!(
                    "a failure of `{}` leads back to `{}` without a bound: the run goes on until `max_steps`",
                    step.id.value, target.value
                ))
                .label("leads back every time")
                .help(
                    "use `retry`, or lead to a `goto` step with `max_iterations` that leads back",
                ),
        );
    }

    fn jump(
        &mut self,
        target: &'d Spanned<String>,
        all: &HashMap<&str, &'d Step<'d>>,
        lists: &[&'d [Step<'d>]],
    ) {
        let id = target.value.as_str();
        let reachable = lists.iter().flat_map(|list| list.iter());
        if reachable.clone().any(|step| step.id.value == id) || self.lost.declares(id) {
            return;
        }
        if let Some(inside) = all.get(id) {
            self.report(
                Diagnostic::new(Code::JumpInside, target.span)
                    .message(format!(
                        "`{id}` stands inside a loop or branch that this jump would enter"
                    ))
                    .label("cannot be jumped to from here")
                    .related(inside.id.span, "it stands here")
                    .help("jump to the loop or branch itself"),
            );
            return;
        }
        let known: Vec<&str> = reachable.map(|step| step.id.value.as_str()).collect();
        let mut finding = Diagnostic::new(Code::NoSuchStep, target.span)
            .message(format!("jump to a step that does not exist: `{id}`"))
            .label(format!("no step `{id}`"))
            .suggest(id, known);
        match &finding.suggestion {
            Some(near) => self.lost.name(near),
            None => finding = finding.help("give the step an `id` and name it here"),
        }
        self.report(finding);
    }

    /// What the graph shows: unreachable nodes, endless loops, reads before any write.
    pub(super) fn paths(&mut self, graph: &Graph) {
        let document = self.document;
        if self.ambiguous || self.has_errors(&[Code::NoInitialState]) {
            return;
        }
        self.recursion(graph);
        let main = all_steps(&document.steps);
        self.body(&graph.body, &main, 0);
        if graph.form == Form::States {
            self.endings(&graph.body, &main);
        }
        for (index, (task, body)) in document.tasks.iter().zip(graph.tasks.iter()).enumerate() {
            let space = if task.shares_state { 0 } else { index + 1 };
            // A task that shares state starts after writes that its own graph does not show.
            self.body(
                &body.body,
                &all_steps(&task.steps),
                if task.shares_state { usize::MAX } else { space },
            );
            if task.shares_state && !task.imported {
                self.parallel_writes(&task.name.value, &all_steps(&task.steps), task.dialect);
            }
        }
    }

    fn body(&mut self, body: &Body, steps: &[&'d Step<'d>], space: usize) {
        let reachable = reach(body, body.entry, |_| true);
        self.unreachable(body, steps, &reachable);
        if space != usize::MAX {
            self.early_reads(body, steps, &reachable, space);
        }
    }

    fn unreachable(&mut self, body: &Body, steps: &[&'d Step<'d>], reachable: &HashSet<u16>) {
        let lost: Vec<u16> = (0..body.nodes.len())
            .filter_map(|at| u16::try_from(at).ok())
            .filter(|at| !reachable.contains(at))
            .collect();
        let entered: HashSet<u16> = lost
            .iter()
            .flat_map(|from| successors(body, *from).filter(move |to| to != from))
            .collect();
        // What only other unreachable nodes lead to is their consequence.
        let mut explained: HashSet<u16> = HashSet::new();
        let roots = lost.iter().filter(|at| !entered.contains(at));
        for at in roots.chain(&lost) {
            if explained.contains(at) {
                continue;
            }
            explained.extend(reach(body, Target::Node(*at), |_| true));
            let Some(step) = steps.get(usize::from(*at)) else {
                continue;
            };
            if self.lost.mentions(&step.id.value) {
                continue;
            }
            let noun = if step.exits.is_some() {
                "state"
            } else {
                "step"
            };
            self.report(
                Diagnostic::new(Code::Unreachable, step.id.span)
                    .message(format!("no way leads to the {noun} `{}`", step.id.value))
                    .label("cannot be reached")
                    .help(format!("lead a way to it, or drop the {noun}")),
            );
        }
    }

    /// Reads of fields that no way to the reading node has written.
    fn early_reads(
        &mut self,
        body: &Body,
        steps: &[&'d Step<'d>],
        reachable: &HashSet<u16>,
        space: usize,
    ) {
        let document = self.document;
        let (state, computed_too) = match space {
            0 => (&document.state, true),
            task => (&document.tasks[task - 1].state, false),
        };
        let fields: HashSet<&str> = state.iter().map(|f| f.name.value.as_str()).collect();
        let mut given: HashSet<&str> = state
            .iter()
            .filter(|field| field.value.is_some())
            .map(|field| field.name.value.as_str())
            .collect();
        if computed_too {
            given.extend(document.computed.iter().map(|f| f.name.value.as_str()));
        }
        // What a shared task or a failure step writes can come before anything.
        let elsewhere = document
            .tasks
            .iter()
            .filter(|task| space == 0 && task.shares_state);
        for step in elsewhere.flat_map(|task| all_steps(&task.steps)) {
            given.extend(written(step));
        }
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let writes: Vec<Vec<usize>> = steps
            .iter()
            .map(|step| {
                let number = |field| {
                    let next = numbers.len();
                    *numbers.entry(field).or_insert(next)
                };
                written(step).map(number).collect()
            })
            .collect();
        let mut before: Vec<Option<Numbers>> = vec![None; body.nodes.len()];
        let mut queue: Vec<u16> = Vec::new();
        if let Target::Node(entry) = body.entry
            && let Some(slot) = before.get_mut(usize::from(entry))
        {
            *slot = Some(Numbers::below(numbers.len()));
            queue.push(entry);
        }
        while let Some(at) = queue.pop() {
            let index = usize::from(at);
            let (Some(Some(here)), Some(own)) = (before.get(index), writes.get(index)) else {
                continue;
            };
            let mut after = here.clone();
            for field in own {
                after.insert(*field);
            }
            for next in successors(body, at) {
                let news = match before.get_mut(usize::from(next)) {
                    Some(Some(known)) => known.merge(&after),
                    Some(slot) => slot.replace(after.clone()).is_none(),
                    None => false,
                };
                if news {
                    queue.push(next);
                }
            }
        }
        for at in 0..body.nodes.len() {
            let known = u16::try_from(at).is_ok_and(|at| reachable.contains(&at));
            let (Some(Some(merged)), Some(step), true) = (before.get(at), steps.get(at), known)
            else {
                continue;
            };
            let first = entering(body, at, step, &before, &writes);
            let before = first.as_ref().unwrap_or(merged);
            let reads = self
                .uses
                .by_step
                .get(&address(step))
                .cloned()
                .unwrap_or_default();
            let mut told: HashSet<&str> = HashSet::new();
            for read in &reads {
                let field = read.field.as_str();
                let number = numbers.get(field).copied();
                let declared = number.is_some() || fields.contains(field);
                if read.optional
                    || !declared
                    || given.contains(field)
                    || number.is_some_and(|number| before.contains(number))
                    || self.lost.mentions(field)
                    || !told.insert(field)
                {
                    continue;
                }
                self.report(
                    Diagnostic::new(Code::ReadBeforeWrite, read.span)
                        .message(format!(
                            "nothing has written `{field}` when `{}` reads it",
                            step.id.value
                        ))
                        .label("not written yet")
                        .help(format!(
                            "give it a value under `state`, or use `{field} | default(…)`"
                        )),
                );
            }
        }
    }

    /// States from which only a limit can end the run.
    fn endings(&mut self, body: &Body, steps: &[&'d Step<'d>]) {
        if self.has_errors(&[Code::NoSuchState]) {
            return;
        }
        let mut told: HashSet<u16> = HashSet::new();
        for (at, step) in steps.iter().enumerate() {
            let Ok(at) = u16::try_from(at) else {
                break;
            };
            if told.contains(&at) {
                continue;
            }
            let ahead = reach(body, Target::Node(at), |_| true);
            let ends = ahead.iter().any(|node| {
                let index = usize::from(*node);
                let completes = body
                    .nodes
                    .get(index)
                    .is_some_and(|node| node.edges.iter().any(|edge| edge.to == Target::Complete));
                // A way to a state that could not be read may end there.
                let leaves = |step: &Step<'_>| {
                    let exits = step.exits.iter();
                    let mut targets = exits.flat_map(|exits| {
                        let next = exits.transitions.iter().map(|transition| &transition.next);
                        exits.on_timeout.iter().chain(next)
                    });
                    targets.any(|target| self.lost.mentions(&target.value))
                };
                completes
                    || steps
                        .get(index)
                        .is_none_or(|step| may_fail(step) || leaves(step))
            });
            if !ends && !self.lost.mentions(&step.id.value) {
                told.extend(&ahead);
                self.report(
                    Diagnostic::new(Code::NeverEnds, step.id.span)
                        .message(format!("from `{}` no way leads to an end", step.id.value))
                        .label("runs until a limit stops it")
                        .help("add a transition to a state without transitions"),
                );
            }
        }
    }

    /// Tasks that run side by side and set the same field of a shared state.
    fn parallel_writes(
        &mut self,
        task: &str,
        steps: &[&'d Step<'d>],
        dialect: crate::expression::Dialect,
    ) {
        let side_by_side = all_steps(&self.document.steps).into_iter().any(|step| {
            matches!(
                &step.act,
                Act::FanOut { task: named, sequential: false, max_parallel, .. }
                    if named.value == task && *max_parallel != Some(1)
            )
        });
        if !side_by_side {
            return;
        }
        for step in steps {
            for write in &step.writes {
                let constant = write
                    .value
                    .is_some_and(|value| super::values::is_literal(value, dialect));
                let sets = write.operation == crate::graph::Operation::Set;
                if sets && !constant && !write.path.text.contains("{{") {
                    self.report(
                        Diagnostic::new(Code::ParallelWrite, write.path.span)
                            .message(format!(
                                "every child of `{task}` sets `{}`; the last one wins",
                                write.path.text
                            ))
                            .help("append to a list, or put the item into the path"),
                    );
                }
            }
        }
    }
}

/// Names in a sentence, as many as somebody reads.
fn listed(names: &[&str]) -> String {
    const MOST: usize = 20;
    let more = if names.len() > MOST { ", …" } else { "" };
    let shown = &names[..names.len().min(MOST)];
    format!("`{}`{more}", shown.join("`, `"))
}

/// A set of small numbers.
#[derive(Clone)]
struct Numbers(Vec<u64>);

impl Numbers {
    /// An empty set that holds numbers below a limit.
    fn below(limit: usize) -> Self {
        Numbers(vec![0; limit.div_ceil(64)])
    }

    fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn contains(&self, number: usize) -> bool {
        let word = self.0.get(number / 64).copied().unwrap_or_default();
        word & 1 << (number % 64) != 0
    }

    /// Takes in another set with the same limit; whether that brought anything.
    fn merge(&mut self, other: &Numbers) -> bool {
        let mut news = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            news |= theirs & !*mine != 0;
            *mine |= theirs;
        }
        news
    }
}

/// What is written when a `while` is tested first: its steps have not run yet.
fn entering(
    body: &Body,
    at: usize,
    step: &Step<'_>,
    before: &[Option<Numbers>],
    writes: &[Vec<usize>],
) -> Option<Numbers> {
    let Act::While { body: inner, .. } = &step.act else {
        return None;
    };
    // The steps of a loop follow it in the order of the document.
    let inside = at..=at + all_steps(inner).len();
    if body.entry == Target::Node(u16::try_from(at).ok()?) {
        return Some(Numbers::below(0));
    }
    let mut entered: Option<Numbers> = None;
    for from in (0..body.nodes.len()).filter(|from| !inside.contains(from)) {
        let number = u16::try_from(from).ok()?;
        let leads_here = successors(body, number).any(|to| usize::from(to) == at);
        let (true, Some(Some(known))) = (leads_here, before.get(from)) else {
            continue;
        };
        let mut after = known.clone();
        for field in writes.get(from).into_iter().flatten() {
            after.insert(*field);
        }
        match &mut entered {
            Some(entered) => {
                entered.merge(&after);
            }
            None => entered = Some(after),
        }
    }
    entered
}

/// The fields a step writes, as far as the text tells.
fn written<'d>(step: &'d Step<'d>) -> impl Iterator<Item = &'d str> {
    let collected = match &step.act {
        Act::FanOut {
            collect_to: Some(tree),
            ..
        } => tree.as_str(),
        _ => None,
    };
    let writes = step.writes.iter().chain(&step.error_writes);
    writes
        .map(|write| write.path.text)
        .chain(collected)
        .filter_map(field_of)
}

fn field_of(path: &str) -> Option<&str> {
    let dialect = crate::expression::Dialect::Jinja;
    match super::scope::static_field(path, dialect)? {
        (Tier::Raw | Tier::State, field) => Some(field),
        (Tier::Computed, _) => None,
    }
}

fn successors(body: &Body, at: u16) -> impl Iterator<Item = u16> + '_ {
    let edges = body
        .nodes
        .get(usize::from(at))
        .map(|node| node.edges.iter());
    edges
        .into_iter()
        .flatten()
        .filter_map(|edge| match edge.to {
            Target::Node(to) => Some(to),
            Target::Complete => None,
        })
}

/// The nodes that can be reached, going on only from those that `through` lets pass.
pub(super) fn reach(body: &Body, from: Target, through: impl Fn(u16) -> bool) -> HashSet<u16> {
    let mut seen = HashSet::new();
    let mut queue: Vec<u16> = match from {
        Target::Node(at) => vec![at],
        Target::Complete => Vec::new(),
    };
    while let Some(at) = queue.pop() {
        if seen.insert(at) && through(at) {
            queue.extend(successors(body, at));
        }
    }
    seen
}
