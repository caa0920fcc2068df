//! The second pass: does a document that has the right shape mean something?
//!
//! Each file here holds the rules of one idea. They run one after another over the same document
//! and report into one list, which is put into document order at the end.

mod actions;
mod computed;
mod expressions;
mod flow;
mod json_schema;
mod patterns;
mod recursion;
mod scope;
mod secrets;
mod states;
mod unused;
mod values;

use std::cell::RefCell;
use std::ops::Range;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::document::Document;
use crate::graph::Graph;
use crate::loader::Loader;
use crate::lower;
use crate::source::{Places, Source, Span, Tree};
use crate::structure::Lost;

use scope::Uses;

/// What the checks share.
pub(crate) struct Checker<'d> {
    document: &'d Document<'d>,
    trees: &'d [Tree],
    sources: &'d [Source],
    lost: &'d mut Lost,
    loader: &'d dyn Loader,
    uses: Uses,
    findings: Vec<Diagnostic>,
    /// Two steps of one graph have the same id.
    ambiguous: bool,
    /// What is left for large regular expressions.
    regex_budget: usize,
    /// Where the text looked at last stands; its parts are looked up one after another.
    places: RefCell<Option<Places<'d>>>,
}

/// Checks a document and lowers it. The graph counts only when nothing found is an error.
pub(crate) fn check<'d>(
    document: &'d Document<'d>,
    trees: &'d [Tree],
    sources: &'d [Source],
    lost: &'d mut Lost,
    loader: &'d dyn Loader,
) -> (Vec<Diagnostic>, Graph) {
    let mut checker = Checker {
        document,
        trees,
        sources,
        lost,
        loader,
        uses: Uses::default(),
        findings: Vec::new(),
        ambiguous: false,
        regex_budget: patterns::REGEX_BUDGET,
        places: RefCell::new(None),
    };
    checker.declarations();
    checker.links();
    checker.actions();
    let order = checker.computed();
    checker.expressions();
    checker.conditions();
    let graph = lower::graph(document, &order, sources);
    checker.paths(&graph);
    checker.unused();
    (checker.findings, graph)
}

impl<'d> Checker<'d> {
    fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// Offers a near miss, unless there are so many findings that nobody reads them one by one.
    fn suggest<'a>(
        &self,
        finding: Diagnostic,
        wrong: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Diagnostic {
        const MOST: usize = 1000;
        match self.findings.len() {
            0..MOST => finding.suggest(wrong, known),
            _ => finding,
        }
    }

    /// Reports a finding about one name of the path that its span covers: what is suggested then
    /// stands for the whole path. `below` says that the name is not the first of the path.
    fn report_in_path(&mut self, mut finding: Diagnostic, name: &str, below: bool) {
        let source = self.source(finding.span);
        if let (Some(near), Some(source)) = (&finding.suggestion, source)
            && let Some(path) = source.text().get(finding.span.range())
        {
            let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            let whole = |at: &usize| {
                !path[..*at].ends_with(word) && !path[at + name.len()..].starts_with(word)
            };
            let mut places = path.match_indices(name).map(|(at, _)| at).filter(whole);
            let at = places.find(|at| *at > 0 || !below);
            if let Some(at) = at {
                let (before, after) = (&path[..at], &path[at + name.len()..]);
                finding.suggestion = Some(format!("{before}{near}{after}"));
            }
        }
        self.report(finding);
    }

    fn source(&self, span: Span) -> Option<&'d Source> {
        self.sources.get(usize::from(span.file.0))
    }

    /// The part of a span that stands on its first line.
    fn line(&self, span: Span) -> Span {
        match self.source(span) {
            Some(source) => source.first_line(span),
            None => span,
        }
    }

    /// Where a range of a text value stands.
    fn within(&self, tree: &'d Tree, range: &Range<usize>) -> Span {
        let Some(source) = self.source(tree.span) else {
            return tree.span;
        };
        let mut places = self.places.borrow_mut();
        let places = match places.take() {
            Some(known) if std::ptr::eq(known.tree(), tree) => places.insert(known),
            _ => places.insert(Places::new(source, tree)),
        };
        source.first_line(places.span(range))
    }

    fn has_errors(&self, codes: &[Code]) -> bool {
        self.findings
            .iter()
            .any(|f| f.severity == Severity::Error && codes.contains(&f.code))
    }
}
