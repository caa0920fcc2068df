//! From source to graph in one call.

use std::collections::HashMap;

use crate::check;
use crate::diagnostic::{Code, Diagnostic, Severity, Sources};
use crate::document::Document;
use crate::expression::Dialect;
use crate::graph::Graph;
use crate::loader::Loader;
use crate::read;
use crate::source::{self, Entry, FileId, Source, Span, Spanned, Tree, Value};
use crate::structure::{self, Lost};

/// How deep imports may be nested, and how many files there may be in all.
const MAX_IMPORTS: usize = 100;

/// A definition with everything that was found about it.
#[derive(Debug)]
pub struct Compiled {
    /// The definition's source first, then its imports.
    pub sources: Sources,
    /// What was found, in document order.
    pub findings: Vec<Diagnostic>,
    draft: Option<Graph>,
}

impl Compiled {
    /// A source that could not be read at all, such as bytes that are not UTF-8.
    #[must_use]
    pub fn refused(source: Source, mut finding: Diagnostic) -> Self {
        finding.complete();
        Compiled {
            sources: Sources(vec![source]),
            findings: vec![finding],
            draft: None,
        }
    }

    /// The graph, unless something found is an error.
    #[must_use]
    pub fn graph(&self) -> Option<&Graph> {
        self.draft.as_ref().filter(|_| self.is_ok())
    }

    /// The graph, unless something found is an error.
    #[must_use]
    pub fn into_graph(self) -> Option<Graph> {
        match self.is_ok() {
            true => self.draft,
            false => None,
        }
    }

    /// The graph as far as it could be made, errors or not: for an editor, or for a skeleton of
    /// generated code. What is in error may be left out of it.
    #[must_use]
    pub fn draft(&self) -> Option<&Graph> {
        self.draft.as_ref()
    }

    /// Whether nothing found is an error.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        !self.findings.iter().any(|f| f.severity == Severity::Error)
    }

    /// A graph that was checked before: one that is part of the program.
    #[must_use]
    pub fn ready(graph: Graph) -> Self {
        Compiled {
            sources: Sources::default(),
            findings: Vec::new(),
            draft: Some(graph),
        }
    }

    /// Treats every lint as an error.
    pub fn strict(&mut self) {
        for finding in &mut self.findings {
            finding.severity = Severity::Error;
        }
    }
}

/// Reads, checks and lowers a definition.
///
/// ```
/// use flow_model::{compile, loader::NoLoader, source::Source};
///
/// let source = Source::new("hello.yaml", "steps:\n  - {type: shell, command: echo hello}\n");
/// let compiled = compile(source, &NoLoader);
/// assert!(compiled.is_ok());
/// assert_eq!(compiled.graph().unwrap().name, "hello");
/// ```
pub fn compile(source: Source, loader: &dyn Loader) -> Compiled {
    let mut units = Units {
        loader,
        sources: Vec::new(),
        trees: Vec::new(),
        dialects: Vec::new(),
        lost: Lost::default(),
        findings: Vec::new(),
        names: HashMap::new(),
    };
    units.load(source, &mut Vec::new());
    let Units {
        sources,
        trees,
        dialects,
        mut lost,
        mut findings,
        ..
    } = units;
    let mut graph = None;
    let mut strict = false;
    if let (Some(tree), Some(dialect), Some(source)) =
        (trees.first(), dialects.first(), sources.first())
        && tree.span.file == FileId(0)
    {
        let mut document = read::document(tree, *dialect, source.stem());
        for (tree, dialect) in trees.iter().zip(&dialects).skip(1) {
            let stem = sources
                .get(usize::from(tree.span.file.0))
                .map_or("", Source::stem);
            let imported = read::document(tree, *dialect, stem);
            adopt(&mut document, imported, &mut findings);
        }
        strict = document.strict;
        let (more, lowered) = check::check(&document, &trees, &sources, &mut lost, loader);
        findings.extend(more);
        graph = Some(lowered);
    }
    for finding in &mut findings {
        finding.complete();
        if strict {
            finding.severity = Severity::Error;
        }
        if let Some(tree) = trees
            .iter()
            .find(|tree| tree.span.file == finding.span.file)
        {
            finding.path = path_to(tree, finding.span);
        }
    }
    findings.sort_by_key(|finding| (finding.span.file, finding.span.start, finding.code));
    findings.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.message == b.message);
    Compiled {
        sources: Sources(sources),
        findings,
        draft: graph,
    }
}

/// A definition and its imports while they are loaded.
struct Units<'l> {
    loader: &'l dyn Loader,
    sources: Vec<Source>,
    trees: Vec<Tree>,
    dialects: Vec<Dialect>,
    lost: Lost,
    findings: Vec<Diagnostic>,
    names: HashMap<String, FileId>,
}

impl Units<'_> {
    /// Reads one file and what it imports. `stack` holds the files being read.
    fn load(&mut self, source: Source, stack: &mut Vec<String>) {
        let file = FileId(u16::try_from(self.sources.len()).unwrap_or(u16::MAX));
        let name = source.name().to_owned();
        self.names.insert(name.clone(), file);
        let parsed = source::parse(&source, file);
        self.sources.push(source);
        let source = &self.sources[usize::from(file.0)];
        let tree = match parsed {
            Ok(tree) => tree,
            Err(finding) => {
                self.findings.push(finding);
                // Whatever it would have declared is unknown now.
                self.lost.text(source.text());
                return;
            }
        };
        let found = structure::check(source, &tree);
        let inferred = if found.speaks_js {
            Dialect::Js
        } else {
            Dialect::Jinja
        };
        self.dialects
            .push(read::named_dialect(&tree).unwrap_or(inferred));
        self.lost.append(found.lost);
        self.findings.extend(found.findings);
        let imports = read::imports(&tree);
        if structure::unwrap_document(&tree).entries().is_none() || found.oversized {
            self.dialects.pop();
            return;
        }
        self.trees.push(tree);
        stack.push(name.clone());
        for import in imports {
            self.import(&name, &import, stack);
        }
        stack.pop();
    }

    fn import(&mut self, from: &str, import: &Spanned<String>, stack: &mut Vec<String>) {
        let source = match self.loader.import(from, &import.value) {
            Ok(source) => source,
            Err(reason) => {
                self.findings.push(
                    Diagnostic::new(Code::NoImport, import.span)
                        .message(format!("`{}` cannot be imported: {reason}", import.value))
                        .label(reason)
                        .help("imports are relative to the file they stand in"),
                );
                self.lost.import();
                return;
            }
        };
        if stack.iter().any(|name| name == source.name()) {
            self.findings.push(
                Diagnostic::new(Code::ImportCycle, import.span)
                    .message(format!("`{}` imports this file again", import.value))
                    .label("a circle of imports")
                    .help("move what both need into a third file"),
            );
            return;
        }
        if self.names.contains_key(source.name()) {
            return;
        }
        if self.sources.len() >= MAX_IMPORTS {
            self.findings.push(
                Diagnostic::new(Code::TooLarge, import.span)
                    .message(format!("more than {MAX_IMPORTS} files are imported")),
            );
            return;
        }
        self.load(source, stack);
    }
}

/// Makes an import's tasks, computed fields and agents visible.
fn adopt<'t>(document: &mut Document<'t>, imported: Document<'t>, findings: &mut Vec<Diagnostic>) {
    for mut task in imported.tasks {
        let earlier = document
            .tasks
            .iter()
            .find(|t| t.name.value == task.name.value);
        if let Some(earlier) = earlier {
            findings.push(clash("task", &task.name, earlier.name.span));
            continue;
        }
        task.imported = true;
        document.tasks.push(task);
    }
    for mut field in imported.computed {
        let earlier = document
            .computed
            .iter()
            .find(|f| f.name.value == field.name.value);
        if let Some(earlier) = earlier {
            findings.push(clash("computed field", &field.name, earlier.name.span));
            continue;
        }
        field.imported = true;
        document.computed.push(field);
    }
    for agent in imported.agents {
        let earlier = document
            .agents
            .iter()
            .find(|a| a.name.value == agent.name.value);
        if let Some(earlier) = earlier {
            findings.push(clash("agent", &agent.name, earlier.name.span));
            continue;
        }
        document.agents.push(agent);
    }
}

fn clash(noun: &str, name: &Spanned<String>, earlier: Span) -> Diagnostic {
    Diagnostic::new(Code::ImportClash, name.span)
        .message(format!("the {noun} `{}` is defined twice", name.value))
        .label("the second one")
        .related(earlier, "the first one")
        .help("give one of them another name")
}

/// Keys and indices that lead to a span.
fn path_to(tree: &Tree, span: Span) -> String {
    let inside = |outer: Span| outer.start <= span.start && span.end <= outer.end;
    let mut path = String::new();
    let mut here = tree;
    loop {
        match &here.value {
            Value::Map(entries) => {
                let holds = |entry: &Entry| inside(entry.key.span) || inside(entry.value.span);
                let behind = |entry: &Entry| entry.key.span.start > span.start;
                let Some(entry) = find(entries, behind, holds).map(|at| &entries[at]) else {
                    return path;
                };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&entry.key.value);
                here = &entry.value;
            }
            Value::List(items) => {
                let holds = |item: &Tree| inside(item.span);
                let behind = |item: &Tree| item.span.start > span.start;
                let Some(index) = find(items, behind, holds) else {
                    return path;
                };
                path.push_str(&format!("[{index}]"));
                here = &items[index];
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_) => {
                return path;
            }
        }
    }
}

/// The member that holds a place: the last one that is not behind it, as a rule. What an alias
/// brought stands elsewhere, so that the order does not tell.
fn find<T>(
    members: &[T],
    behind: impl Fn(&T) -> bool,
    holds: impl Fn(&T) -> bool,
) -> Option<usize> {
    let near = members
        .partition_point(|member| !behind(member))
        .checked_sub(1);
    near.filter(|at| holds(&members[*at]))
        .or_else(|| members.iter().position(holds))
}
