//! Derived state: where it comes from, and in which order it can be made.

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_set};

use super::Checker;
use super::expressions::segments;
use super::scope::spaces;
use crate::diagnostic::{Code, Diagnostic};
use crate::document::Computed;
use crate::expression::{self, Dialect, Read, vocabulary};
use crate::graph::{Dependency, OnComputeError, Tier};
use crate::lower::Ordered;
use crate::source::{Span, Tree};

/// A computed field with what it depends on.
struct Field<'d> {
    computed: &'d Computed<'d>,
    from: Vec<Dependency>,
    reads: Vec<Dependency>,
}

impl<'d> Checker<'d> {
    /// Checks computed fields and puts them into dependency order.
    pub(super) fn computed(&mut self) -> Vec<Ordered> {
        let document = self.document;
        let spaces = spaces(document);
        let mut fields = Vec::with_capacity(document.computed.len());
        for computed in &document.computed {
            let from = self.from(computed, &spaces[0]);
            let mut reads = Vec::new();
            if let Some(tree) = computed.transform {
                let found = expression::transform(tree.as_str().unwrap_or_default());
                self.javascript_faults(&found.analysis.faults, tree);
                self.tier_reads(&found.analysis.reads, tree, computed, &spaces[0]);
                self.piped(&found.analysis, tree, &spaces[0]);
                reads = dependencies(&found.analysis.reads, &spaces[0]);
                self.transform_inputs(&found.analysis.reads, tree);
            } else if let Some(tree) = computed.value {
                let text = tree.as_str().unwrap_or_default();
                let analysis = match expression::form(text, computed.dialect) {
                    expression::Form::Literal => expression::expression(text, computed.dialect),
                    expression::Form::Sole(_) | expression::Form::Text => {
                        expression::template(text, computed.dialect)
                    }
                };
                reads = dependencies(&analysis.reads, &spaces[0]);
            }
            if let Some(tree) = computed.validate {
                let text = tree.as_str().unwrap_or_default();
                let found = expression::expression(text, Dialect::Js);
                self.javascript_faults(&found.faults, tree);
            }
            if computed.on_error == OnComputeError::UseFallback && computed.fallback.is_none() {
                let name = &computed.name;
                self.report(
                    Diagnostic::new(Code::MissingKey, name.span)
                        .message(format!(
                            "`{}` is to use a `fallback` and has none",
                            name.value
                        ))
                        .label("`on_error: use_fallback` without `fallback`")
                        .help("give `fallback:` the value to use then, `null` for none"),
                );
            }
            for dependency in from.iter().chain(&reads) {
                if let Some(field) = dependency.path.first() {
                    self.uses.field(0, field);
                }
            }
            fields.push(Field {
                computed,
                from,
                reads,
            });
        }
        self.order(&fields)
    }

    /// A filter in a transform, which JavaScript reads as a name for zero.
    fn piped(
        &mut self,
        analysis: &expression::Analysis,
        tree: &'d Tree,
        space: &super::scope::Space<'d>,
    ) {
        let reads = || analysis.reads.iter().filter(|read| read.path.len() == 1);
        for name in &analysis.piped {
            let filter = vocabulary::FILTERS.contains(&name.name.as_str());
            let read = reads().any(|read| read.range == name.range);
            if filter && read && !space.fields.contains_key(name.name.as_str()) {
                let at = self.within(tree, &name.range);
                self.report(
                    Diagnostic::new(Code::UnknownFilter, at)
                        .message(format!(
                            "`{}` is a filter, and a transform is JavaScript alone",
                            name.name
                        ))
                        .label("no filter works here")
                        .help("write JavaScript, or use `value:` with `{{ … }}`"),
                );
            }
        }
    }

    /// Inputs that a transform reads.
    fn transform_inputs(&mut self, reads: &[Read], tree: &'d Tree) {
        let document = self.document;
        for read in reads.iter().filter(|read| read.path[0] == "inputs") {
            let Some(name) = read.path.get(1) else {
                self.uses.all_inputs.insert(0);
                continue;
            };
            self.uses.input(0, name);
            let Some(declared) = &document.inputs else {
                continue;
            };
            let known = || declared.iter().map(|field| field.name.value.as_str());
            if known().any(|input| input == name) || self.lost.mentions(name) {
                continue;
            }
            let at = self.within(tree, &read.range);
            let mut finding = Diagnostic::new(Code::UnknownInput, at)
                .message(format!("there is no input `{name}`"))
                .label("not declared under `inputs`")
                .suggest(name, known());
            match finding.suggestion.clone() {
                Some(near) => {
                    self.uses.input(0, &near);
                    finding.suggestion = Some(format!("inputs.{near}"));
                }
                None => finding = finding.help("declare it under `inputs`"),
            }
            self.report(finding);
        }
    }

    fn javascript_faults(&mut self, faults: &[expression::Fault], tree: &'d Tree) {
        if !faults.is_empty() {
            self.lost.text(tree.as_str().unwrap_or_default());
        }
        for fault in faults {
            let at = self.within(tree, &fault.range);
            let code = match fault.kind {
                expression::FaultKind::Syntax => Code::JavaScriptSyntax,
                expression::FaultKind::UnknownFilter(_)
                | expression::FaultKind::UnknownFunction(_)
                | expression::FaultKind::UnknownTest(_) => Code::UnknownFilter,
            };
            let mut finding = Diagnostic::new(code, at).message(fault.message.clone());
            finding.help = fault.help.clone();
            self.report(finding);
        }
    }

    /// Fields that a transform names with their tier; a bare name may be anything.
    fn tier_reads(
        &mut self,
        reads: &[Read],
        tree: &'d Tree,
        computed: &Computed<'d>,
        space: &super::scope::Space<'d>,
    ) {
        for read in reads {
            let [root, field] = match read.path.as_slice() {
                [root, field, ..] => [root.as_str(), field.as_str()],
                _ => continue,
            };
            let tier = matches!(root, "raw" | "computed" | "state" | "this");
            if tier && !space.has(field) && !self.lost.may_declare(field) {
                let [_, range] = segments(tree.as_str().unwrap_or_default(), read);
                let at = self.within(tree, &range);
                self.unknown_source(field, at, computed, space);
            }
        }
    }

    fn from(
        &mut self,
        computed: &'d Computed<'d>,
        space: &super::scope::Space<'d>,
    ) -> Vec<Dependency> {
        let mut from = Vec::new();
        for tree in &computed.from {
            let text = tree.as_str().unwrap_or_default();
            let Some(dependency) = dependency(text) else {
                self.report(
                    Diagnostic::new(Code::BadPath, tree.span)
                        .message(format!("`{text}` is not a state path"))
                        .help("write a field, or one with its tier: `raw.files`"),
                );
                continue;
            };
            let field = dependency.path[0].to_string();
            if field == "inputs" && dependency.tier.is_none() && !space.has(&field) {
                if let Some(input) = dependency.path.get(1) {
                    self.uses.input(0, input);
                }
                let read = match computed.transform {
                    Some(_) => format!("write `{text}` in the transform instead of `input`"),
                    None => format!("write `{text}` in the value"),
                };
                self.report(
                    Diagnostic::new(Code::UnknownState, tree.span)
                        .message(format!(
                            "`{text}` is an input, and `from` names state fields"
                        ))
                        .label("not a state field")
                        .help(format!(
                            "inputs do not change: {read}, and drop it from `from`"
                        )),
                );
                continue;
            }
            if !space.has(&field) && !self.lost.may_declare(&field) {
                self.unknown_source(&field, tree.span, computed, space);
            }
            from.push(dependency);
        }
        from
    }

    fn unknown_source(
        &mut self,
        field: &str,
        span: Span,
        computed: &Computed<'d>,
        space: &super::scope::Space<'d>,
    ) {
        let own = computed.name.value.as_str();
        let known = space.fields.keys().copied().filter(|name| *name != own);
        let finding = Diagnostic::new(Code::UnknownState, span)
            .message(format!("there is no state field `{field}`"))
            .label("nothing declares or writes it");
        let mut finding = self.suggest(finding, field, known);
        match &finding.suggestion {
            Some(near) => {
                let near = near.clone();
                self.uses.field(0, &near);
            }
            None => finding = finding.help("declare it under `state`"),
        }
        self.report(finding);
    }

    /// Dependency order; a circle is reported once.
    fn order(&mut self, fields: &[Field<'d>]) -> Vec<Ordered> {
        let mut indices: HashMap<&str, usize> = HashMap::new();
        for (index, field) in fields.iter().enumerate() {
            indices.entry(&field.computed.name.value).or_insert(index);
        }
        let needs: Vec<BTreeSet<usize>> = fields
            .iter()
            .map(|field| {
                let all = field.from.iter().chain(&field.reads);
                all.filter(|dependency| matches!(dependency.tier, None | Some(Tier::Computed)))
                    .filter_map(|dependency| indices.get(&**dependency.path.first()?).copied())
                    .collect()
            })
            .collect();
        let mut visit = Visit {
            needs: &needs,
            mark: vec![Mark::New; fields.len()],
            open: Vec::new(),
            order: Vec::new(),
            circles: BTreeMap::new(),
        };
        for index in 0..fields.len() {
            visit.field(index);
        }
        let (order, circles) = (visit.order, visit.circles);
        for (first, circle) in circles {
            let at = circle
                .iter()
                .position(|index| *index == first)
                .unwrap_or_default();
            let names: Vec<&str> = circle[at..]
                .iter()
                .chain(&circle[..at])
                .chain(std::iter::once(&first))
                .map(|index| fields[*index].computed.name.value.as_str())
                .collect();
            self.report(
                Diagnostic::new(Code::ComputedCycle, fields[first].computed.name.span)
                    .message(format!(
                        "computed fields depend on each other in a circle: {}",
                        names.join(" → ")
                    ))
                    .label("cannot be computed before itself")
                    .help("make one of them from state alone"),
            );
        }
        order
            .into_iter()
            .map(|index| Ordered {
                index,
                from: fields[index].from.clone(),
                reads: fields[index].reads.clone(),
            })
            .collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

struct Visit<'a> {
    needs: &'a [BTreeSet<usize>],
    mark: Vec<Mark>,
    /// The fields being visited, each with the needs it has left.
    open: Vec<(usize, btree_set::Iter<'a, usize>)>,
    order: Vec<usize>,
    /// One circle for each field that comes first in any.
    circles: BTreeMap<usize, Vec<usize>>,
}

impl Visit<'_> {
    fn field(&mut self, index: usize) {
        if self.mark[index] == Mark::New {
            self.enter(index);
        }
        while let Some((here, needs)) = self.open.last_mut() {
            let here = *here;
            match needs.next().map(|need| (*need, self.mark[*need])) {
                Some((need, Mark::New)) => self.enter(need),
                Some((need, Mark::Open)) => self.circle(need),
                Some((_, Mark::Done)) => {}
                None => {
                    self.open.pop();
                    self.mark[here] = Mark::Done;
                    self.order.push(here);
                }
            }
        }
    }

    fn enter(&mut self, index: usize) {
        self.mark[index] = Mark::Open;
        self.open.push((index, self.needs[index].iter()));
    }

    /// The open fields from this one on need each other.
    fn circle(&mut self, from: usize) {
        let open = self.open.iter().map(|(index, _)| *index);
        let circle = open.skip_while(|index| *index != from);
        if let Some(first) = circle.clone().min() {
            let circle = circle.collect();
            self.circles.entry(first).or_insert(circle);
        }
    }
}

/// A path of `from`.
fn dependency(text: &str) -> Option<Dependency> {
    let mut parts: Vec<&str> = text.trim().split('.').collect();
    let tier = match parts.first().copied() {
        _ if parts.len() == 1 => None,
        Some("raw") => Some(Tier::Raw),
        Some("computed") => Some(Tier::Computed),
        Some("state") => Some(Tier::State),
        _ => None,
    };
    if tier.is_some() || (parts.len() > 1 && parts[0] == "this") {
        parts.remove(0);
    }
    // `state.x` reads the flattened view unless the tier has the field.
    let tier = tier.filter(|tier| *tier != Tier::State);
    let whole = |part: &&str| !part.is_empty() && !part.contains(['{', '}', ' ', '\n']);
    parts.iter().all(whole).then(|| Dependency {
        tier,
        path: parts.iter().map(|part| (*part).to_owned().into()).collect(),
    })
}

/// Names that every transform has and that are no fields.
const GLOBALS: &[&str] = &["input", "inputs", "output"];

/// The state paths among what an expression reads.
fn dependencies(reads: &[Read], space: &super::scope::Space<'_>) -> Vec<Dependency> {
    let mut out: Vec<Dependency> = Vec::new();
    for read in reads {
        let path: Vec<&str> = read.path.iter().map(String::as_str).collect();
        let (tier, rest) = match path.split_first() {
            Some((&"raw", rest)) => (Some(Tier::Raw), rest),
            Some((&"computed", rest)) => (Some(Tier::Computed), rest),
            Some((&("state" | "this"), rest)) => (None, rest),
            Some((name, _)) if space.fields.contains_key(*name) => (None, path.as_slice()),
            // Any name may be a field: one of an included workflow, or one named at run time.
            Some((name, _)) if space.open && !GLOBALS.contains(name) => (None, path.as_slice()),
            _ => continue,
        };
        if rest.is_empty() {
            // The whole view: every field but computed ones that would make a circle.
            continue;
        }
        // Deeper parts may be methods of the value; the field is what can change.
        let dependency = Dependency {
            tier,
            path: vec![rest[0].to_owned().into()].into(),
        };
        if !out.contains(&dependency) {
            out.push(dependency);
        }
    }
    out
}
