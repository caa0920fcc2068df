//! From a definition's text to generated code, or to what is wrong with it.

use std::path::{Path, PathBuf};

use flow_model::compile;
use flow_model::diagnostic::{self, Diagnostic, Severity, Sources, Style};
use flow_model::graph::Graph;
use flow_model::source::Source;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::files::{Files, slashed};
use crate::module::{Module, Options, module};
use crate::names::{ident, module_name};

/// A use of `workflow!`.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// A path, or a definition when it has more than one line.
    pub text: String,
    /// The name that the module is to have.
    pub module: Option<String>,
    /// The directory that paths are relative to.
    pub manifest: PathBuf,
    /// The file the macro is used in, which `./…` is relative to.
    pub file: Option<PathBuf>,
    /// What messages call that file.
    pub file_name: String,
    /// The line the text starts on.
    pub line: usize,
}

/// Generated code and what was found about the definition.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The module; a skeleton of it when the definition has errors.
    pub tokens: TokenStream,
    /// What was found, in document order.
    pub findings: Vec<Finding>,
    /// Files that the code depends on.
    pub files: Vec<PathBuf>,
}

/// One finding as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The code, the message and the place, in rustc's manner, without the word for the severity.
    pub text: String,
    /// The same in one line.
    pub line: String,
}

impl Finding {
    fn new(finding: &Diagnostic, sources: &Sources) -> Self {
        let text = diagnostic::text(finding, sources, Style::Plain);
        let head = format!("{}[{}]: ", finding.severity.word(), finding.code);
        let text = match text.strip_prefix(&head) {
            Some(rest) => format!("{}: {rest}", finding.code),
            None => text,
        };
        let (start, _) = sources.positions(finding.span);
        let file = sources.of(finding.span).map_or("", Source::name);
        Finding {
            severity: finding.severity,
            text,
            line: format!(
                "{file}:{}:{}: {}: {}",
                start.line, start.column, finding.code, finding.message
            ),
        }
    }

    pub(crate) fn plain(text: String) -> Self {
        Finding {
            severity: Severity::Error,
            line: text.lines().next().unwrap_or_default().to_owned(),
            text,
        }
    }
}

impl Expansion {
    /// The code as the macro returns it: the module, one compile error per error, one warning per
    /// warning, and a use of each file so that a change of it is noticed.
    #[must_use]
    pub fn into_tokens(self, span: proc_macro2::Span) -> TokenStream {
        let findings = self.findings.iter().map(|finding| {
            let text = &finding.text;
            match finding.severity {
                Severity::Error => quote_spanned!(span=> ::core::compile_error!(#text);),
                // A macro has no other way to warn than the use of something deprecated.
                Severity::Warning => quote_spanned! {span=>
                    const _: () = {
                        #[deprecated(note = #text)]
                        #[allow(non_upper_case_globals, reason = "the compiler says this name")]
                        const definition: () = ();
                        definition
                    };
                },
            }
        });
        let files = self.files.iter().filter_map(|path| path.to_str());
        let tokens = &self.tokens;
        quote! {
            #(#findings)*
            #(const _: &str = ::core::include_str!(#files);)*
            #tokens
        }
    }
}

impl Invocation {
    /// Reads, checks and generates.
    #[must_use]
    pub fn expand(&self) -> Expansion {
        let options = Options {
            module: self.module.clone(),
            ..Options::default()
        };
        let files = Files::new(&self.manifest);
        match self.source(&files) {
            Ok(source) => expand(source, &files, &options),
            Err(text) => Expansion {
                tokens: skeleton(&stem(&self.text), &options),
                findings: vec![Finding::plain(text)],
                files: Vec::new(),
            },
        }
    }

    fn source(&self, files: &Files) -> Result<Source, String> {
        let text = &self.text;
        if text.contains('\n') {
            // Empty lines before it give every line the number it has in the calling file.
            let padding = "\n".repeat(self.line.saturating_sub(1));
            let name = match &self.file {
                Some(file) => files.name_of(file),
                None => self.file_name.clone(),
            };
            return Ok(Source::new(name, format!("{padding}{text}")));
        }
        let (name, base) = match (&self.file, Path::new(text).strip_prefix("./")) {
            (Some(file), Ok(path)) => {
                let directory = file.parent().unwrap_or(Path::new(""));
                let path = directory.join(path);
                (files.name_of(&path), directory)
            }
            _ => (slashed(Path::new(text)), self.manifest.as_path()),
        };
        files.open(&name).map_err(|reason| {
            format!(
                "`{text}` cannot be read: {reason}\n  = note: looked in {}\n  = help: a path is \
                 relative to the package; one that starts with `./` to the calling file",
                base.display()
            )
        })
    }
}

/// Checks a definition and generates its module.
#[must_use]
pub fn expand(source: Source, files: &Files, options: &Options) -> Expansion {
    let name = module_name(said_name(source.text()).unwrap_or(source.stem()));
    let compiled = compile(source, files);
    let findings: Vec<Finding> = compiled
        .findings
        .iter()
        .map(|finding| Finding::new(finding, &compiled.sources))
        .collect();
    let mut expansion = match compiled.draft() {
        Some(graph) => expand_graph(graph, &compiled.sources, options),
        None => Expansion {
            tokens: skeleton(&name, options),
            findings: Vec::new(),
            files: Vec::new(),
        },
    };
    // Clashes of a faulty definition may be due to the fault.
    match compiled.is_ok() {
        true => expansion.findings.splice(0..0, findings).for_each(drop),
        false => expansion.findings = findings,
    }
    expansion.files = files.read_so_far();
    expansion
}

/// Generates the module of a graph; clashes of names become findings.
#[must_use]
pub fn expand_graph(graph: &Graph, sources: &Sources, options: &Options) -> Expansion {
    let Module { tokens, clashes } = module(graph, options);
    let findings = clashes
        .iter()
        .map(|clash| Finding::new(&clash.report(sources), sources))
        .collect();
    Expansion {
        tokens,
        findings,
        files: Vec::new(),
    }
}

/// The module of a definition that cannot be read, so that its uses do not all become errors.
fn skeleton(name: &str, options: &Options) -> TokenStream {
    let root = &options.root;
    let name = ident(options.module.as_deref().unwrap_or(name));
    quote! {
        #[allow(missing_docs, reason = "the definition cannot be read")]
        pub mod #name {
            pub type Inputs = #root::Values;
            pub type Output = #root::Value;
            pub use #root::Outcome;
            pub enum State {}
            pub mod at {}
        }
    }
}

fn stem(path: &str) -> String {
    module_name(Source::new(path, "").stem())
}

/// The name that a definition gives itself, as far as that can be told of a text that cannot be
/// read.
fn said_name(text: &str) -> Option<&str> {
    let said = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("name:"))?;
    let name = said.trim().trim_matches(['"', '\'']);
    (!name.is_empty()).then_some(name)
}
