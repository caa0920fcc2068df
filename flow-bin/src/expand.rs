//! `flow expand`: a workflow as the Rust module that `workflow!` makes of it.

use anyhow::Result;
use flow_codegen::{Options, module};
use flow_model::diagnostic::{self, Diagnostic, Severity};

use crate::cli::ExpandArguments;
use crate::exit::Exit;
use crate::output::Output;
use crate::target;

pub(crate) fn run(arguments: &ExpandArguments, output: &mut Output) -> Result<Exit> {
    let library = target::library()?;
    let compiled = target::any(&library, &arguments.workflow)?;
    let mut errors: Vec<Diagnostic> = compiled
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .cloned()
        .collect();
    let mut code = String::new();
    if let Some(graph) = compiled.graph() {
        let module = module(graph, &Options::default());
        let clashes = module.clashes.iter();
        errors.extend(clashes.map(|clash| clash.report(&compiled.sources)));
        code = flow_codegen::format(&module.tokens);
    }
    if errors.is_empty() {
        output.print(code)?;
        return Ok(Exit::Done);
    }
    let style = output.aside.style();
    for error in &errors {
        let text = diagnostic::text(error, &compiled.sources, style);
        output.tell(format_args!("{text}\n"));
    }
    output.error("a definition with errors has no Rust");
    Ok(Exit::Invalid)
}
