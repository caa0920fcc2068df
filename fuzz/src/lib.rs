//! What must hold for every text that somebody calls a definition.

pub mod document;
pub mod terminal;

use flow_model::diagnostic::{self, Diagnostic, Sources, Style};
use flow_model::graph::Graph;
use flow_model::loader::{Loader, Lookup};
use flow_model::source::{Source, Span};
use flow_model::{Compiled, compile, picture};

/// Pictures of larger graphs are not drawn: laying them out would take most of the time.
const LARGEST_PICTURE: usize = 200;

/// Reads, checks, reports and draws, and panics when something does not hold.
pub fn check(bytes: &[u8]) {
    let source = match Source::from_bytes("definition.yaml", bytes) {
        Ok(source) => source,
        Err(broken) => {
            let (source, finding) = *broken;
            assert_stands_in(finding.span, &source);
            return;
        }
    };
    let loader = Same(source.text());
    let first = compile(source.clone(), &loader);
    let second = compile(source.clone(), &loader);
    assert_eq!(first.findings, second.findings, "two runs, two reports");
    assert_eq!(first.graph(), second.graph(), "two runs, two graphs");
    assert_eq!(first.is_ok(), first.graph().is_some());
    report(&first);
    if let Some(graph) = first.graph() {
        draw(graph);
    }
}

/// Answers every import and every call with the definition itself.
struct Same<'a>(&'a str);

impl Loader for Same<'_> {
    fn import(&self, _from: &str, path: &str) -> Result<Source, String> {
        match path.len() {
            0 => Err("no such file".to_owned()),
            _ => Ok(Source::new(path, self.0)),
        }
    }

    fn workflow(&self, name: &str) -> Lookup {
        match name.len() % 3 {
            0 => Lookup::Unknown,
            1 => Lookup::NotFound(vec!["deploy".to_owned(), "shared:check".to_owned()]),
            _ => Lookup::Found(Box::new(Source::new(name, self.0))),
        }
    }
}

fn report(compiled: &Compiled) {
    let sources = &compiled.sources;
    for finding in &compiled.findings {
        assert!(!finding.message.is_empty());
        for span in places(finding) {
            let source = sources.of(span).expect("a span stands in a source");
            assert_stands_in(span, source);
            assert_positions(span, sources);
        }
        for style in [Style::Plain, Style::Colour] {
            assert!(diagnostic::text(finding, sources, style).contains(finding.code.as_str()));
        }
        assert!(!diagnostic::github(finding, sources).contains('\n'));
    }
    let pairs = compiled.findings.iter().map(|finding| (finding, sources));
    let json = diagnostic::json(pairs);
    assert_eq!(json["ok"], compiled.is_ok());
}

fn places(finding: &Diagnostic) -> impl Iterator<Item = Span> {
    let related = finding.related.iter().map(|(span, _)| *span);
    std::iter::once(finding.span).chain(related)
}

fn assert_stands_in(span: Span, source: &Source) {
    assert!(
        source.text().get(span.range()).is_some(),
        "{span:?} is no part of {} bytes",
        source.text().len()
    );
}

fn assert_positions(span: Span, sources: &Sources) {
    let (start, end) = sources.positions(span);
    assert!(start.line >= 1 && start.column >= 1);
    assert!(start <= end, "{start:?} comes after {end:?}");
}

fn draw(graph: &Graph) {
    let text = serde_json::to_string(graph).expect("a graph is JSON");
    let back: Graph = serde_json::from_str(&text).expect("and comes back");
    assert_eq!(
        serde_json::to_string(&back).expect("again"),
        text,
        "a graph survives the journey"
    );
    let nodes = graph.body.nodes.len();
    let tasks = graph.tasks.iter().map(|task| task.body.nodes.len());
    if nodes + tasks.sum::<usize>() <= LARGEST_PICTURE {
        assert!(picture::svg(graph).starts_with("<svg"));
        assert!(!picture::mermaid(graph).is_empty());
        assert!(!picture::dot(graph).is_empty());
        assert!(!picture::ascii(graph).is_empty());
    }
}
