//! `flow graph`: a picture of a workflow.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use flow_model::diagnostic::{self, Severity};
use flow_model::picture;

use crate::cli::{GraphArguments, GraphFormat};
use crate::exit::Exit;
use crate::output::Output;
use crate::target;

pub(crate) fn run(arguments: &GraphArguments, output: &mut Output) -> Result<Exit> {
    let library = target::library()?;
    let compiled = target::any(&library, &arguments.workflow)?;
    let Some(graph) = compiled.graph() else {
        let style = output.aside.style();
        let errors = compiled.findings.iter();
        for error in errors.filter(|finding| finding.severity == Severity::Error) {
            let text = diagnostic::text(error, &compiled.sources, style);
            output.tell(format_args!("{text}\n"));
        }
        output.error("a definition with errors cannot be drawn");
        return Ok(Exit::Invalid);
    };
    let path = arguments.output.as_deref();
    let format = arguments
        .format
        .or_else(|| by_ending(path?))
        .unwrap_or(GraphFormat::Ascii);
    let mut picture = match format {
        GraphFormat::Ascii => picture::ascii(graph),
        GraphFormat::Mermaid => picture::mermaid(graph),
        GraphFormat::Dot => picture::dot(graph),
        GraphFormat::Svg => picture::svg(graph),
    };
    if !picture.ends_with('\n') {
        picture.push('\n');
    }
    match path {
        Some(path) => fs::write(path, picture)
            .with_context(|| format!("`{}` cannot be written", path.display()))?,
        None => output.print(picture)?,
    }
    Ok(Exit::Done)
}

/// The format that a file's ending stands for.
fn by_ending(path: &Path) -> Option<GraphFormat> {
    match path.extension()?.to_str()? {
        "svg" => Some(GraphFormat::Svg),
        "dot" | "gv" => Some(GraphFormat::Dot),
        "mmd" | "mermaid" => Some(GraphFormat::Mermaid),
        _ => None,
    }
}
