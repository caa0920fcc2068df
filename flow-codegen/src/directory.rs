//! Every definition of a directory, from a build script.

use std::fs;
use std::path::{Path, PathBuf};

use flow_model::diagnostic::Severity;
use flow_model::{Compiled, compile};
use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::{Expansion, Finding, expand};
use crate::files::{Files, is_definition};
use crate::format::format;
use crate::module::Options;
use crate::names::{Names, lower};

/// Why a directory could not be compiled. Faults of definitions are not among the reasons: those
/// become compile errors of the crate that includes the generated file.
#[derive(Debug)]
pub struct Fault {
    what: String,
    cause: std::io::Error,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

trait During<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Fault>;
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Fault> {
        self.map_err(|cause| Fault {
            what: what(),
            cause,
        })
    }
}

/// Compiles every definition of a directory of the package into the file `out` of `OUT_DIR`: a
/// module each, and a list `ALL` of them. For a build script:
///
/// ```no_run
/// fn main() -> Result<(), flow_codegen::Fault> {
///     flow_codegen::compile_dir("workflows", "workflows.rs")
/// }
/// ```
///
/// and in the crate `include!(concat!(env!("OUT_DIR"), "/workflows.rs"));`. A file whose name
/// starts with `_` is only imported by others. Changed, new and removed files are noticed.
///
/// # Errors
///
/// A file or directory cannot be read or written, or this is not a build script.
pub fn compile_dir(dir: impl AsRef<Path>, out: &str) -> Result<(), Fault> {
    let missing = |name: &'static str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .ok_or_else(|| Fault {
                what: format!("{name} is not set"),
                cause: std::io::Error::new(std::io::ErrorKind::NotFound, "not in a build script"),
            })
    };
    let manifest = missing("CARGO_MANIFEST_DIR")?;
    let target = missing("OUT_DIR")?;
    let lines = compile_dir_with(
        &manifest,
        dir.as_ref(),
        &target.join(out),
        &Options::default(),
    )?;
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// As [`compile_dir`], for a directory `dir` under `base`, into a file, and without printing: the
/// lines that a build script prints are returned.
///
/// # Errors
///
/// A file or directory cannot be read or written.
pub fn compile_dir_with(
    base: &Path,
    dir: &Path,
    out: &Path,
    options: &Options,
) -> Result<Vec<String>, Fault> {
    let directory = base.join(dir);
    let mut lines = vec![format!("cargo::rerun-if-changed={}", directory.display())];
    let reading = || format!("reading {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(&directory).during(reading)? {
        let path = entry.during(reading)?.path();
        if is_definition(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    let root = &options.root;
    let mut names = Names::new("workflow", &[]);
    let mut tokens = TokenStream::new();
    let mut entries = TokenStream::new();
    let mut reports = Vec::new();
    for path in &paths {
        let files = Files::new(base);
        let name = files.name_of(path);
        let source = match files.open(&name) {
            Ok(source) => source,
            Err(reason) => {
                reports.push(format!("`{name}` cannot be read: {reason}"));
                continue;
            }
        };
        let text = path.to_string_lossy().into_owned();
        let compiled: Compiled = compile(source.clone(), &files);
        let mut clashes = Vec::new();
        let module = match compiled.draft() {
            Some(graph) => names.claim(&graph.name, lower(&graph.name), None, &mut clashes),
            None => names.claim(source.stem(), lower(source.stem()), None, &mut clashes),
        };
        let module_options = Options {
            module: Some(module.to_string().trim_start_matches("r#").to_owned()),
            root: root.clone(),
        };
        let Expansion {
            tokens: more,
            mut findings,
            files: read,
        } = expand(source, &files, &module_options);
        tokens.extend(more);
        for path in read {
            lines.push(format!("cargo::rerun-if-changed={}", path.display()));
        }
        findings.extend(
            clashes
                .iter()
                .map(|clash| Finding::plain(clash.report(&compiled.sources).message)),
        );
        for finding in findings {
            match finding.severity {
                Severity::Error => reports.push(finding.text),
                Severity::Warning => lines.push(format!("cargo::warning={}", finding.line)),
            }
        }
        if let Some(graph) = compiled.graph() {
            let workflow: &str = &graph.name;
            let description: &str = graph.description.as_deref().unwrap_or_default();
            entries.extend(quote! {
                #root::Builtin {
                    name: #workflow,
                    description: #description,
                    graph: &#module::GRAPH,
                    source: ::core::include_str!(#text),
                },
            });
        }
    }
    for (number, report) in reports.iter().enumerate() {
        let path = out.with_extension(format!("{number}.txt"));
        fs::write(&path, report).during(|| format!("writing {}", path.display()))?;
        let text = path.to_string_lossy().into_owned();
        tokens.extend(quote!(::core::compile_error!(::core::include_str!(#text));));
    }
    let tokens = quote! {
        #tokens

        /// Every workflow of the directory, by file name.
        pub static ALL: &[#root::Builtin] = &[#entries];
    };
    fs::write(out, format(&tokens)).during(|| format!("writing {}", out.display()))?;
    Ok(lines)
}
