//! Inputs as people give them, read by their types.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use flow_model::diagnostic::{Code, Diagnostic};
use flow_model::graph::{Field, Graph};
use flow_model::source::{Entry, Position, Source, Spanned, Tree};
use flow_runtime::input::{self, InputFault, accept};
use flow_runtime::library::{self, Bytes, read};
use flow_runtime::secret;
use flow_runtime::value::Value;

use super::hidden;
use crate::cli::RunArguments;
use crate::exit::Usage;
use crate::output::{Cell, Output, Paint, table};

/// The inputs of a run.
pub(crate) struct Inputs {
    /// As they were given: what is secret may be a reference.
    pub(crate) given: Value,
    /// Complete, without secrets.
    pub(crate) shown: Value,
}

/// Inputs as they stand on the command line.
pub(crate) struct Given<'a> {
    /// The command they are for, with what it names: `run build.yaml`.
    pub(crate) command: String,
    /// Required ones, in order.
    pub(crate) inputs: &'a [String],
    /// Others, as `key=value`.
    pub(crate) parameters: Vec<&'a str>,
    /// A file with more of them.
    pub(crate) file: Option<&'a Path>,
}

impl<'a> Given<'a> {
    /// Those of `flow run`.
    pub(super) fn to_run(arguments: &'a RunArguments) -> Self {
        let parameters = arguments.parameters.iter().chain(&arguments.variables);
        Given {
            command: format!("run {}", arguments.workflow),
            inputs: &arguments.inputs,
            parameters: parameters.map(String::as_str).collect(),
            file: arguments.input_file.as_deref(),
        }
    }
}

/// The inputs of a run, or every fault. A secret that is missing is asked for when somebody is
/// there to type it.
pub(crate) fn gather(
    graph: &Graph,
    arguments: &Given<'_>,
) -> Result<Result<Inputs, Vec<InputFault>>> {
    let mut given: Vec<(String, Value)> = Vec::new();
    let mut faults = Vec::new();
    if let Some(path) = arguments.file {
        let Value::Map(map) = file(path, "inputs")? else {
            let usage = format!("`{}` holds no inputs by name", path.display());
            return Err(Usage::new(usage).help("write `name: value` lines").into());
        };
        let entries = map.0.iter();
        given.extend(entries.map(|(name, value)| (name.to_string(), value.clone())));
    }
    let mut texts: Vec<(String, &str)> = Vec::new();
    for parameter in &arguments.parameters {
        let Some((name, text)) = parameter.split_once('=') else {
            let usage = Usage::new(format!("`{parameter}` has no `=`"));
            return Err(usage.help(format!("write `-p {parameter}=VALUE`")).into());
        };
        if name.is_empty() {
            let usage = Usage::new(format!("`{parameter}` has no name before its `=`"));
            return Err(usage.help("write `-p NAME=VALUE`").into());
        }
        texts.push((name.to_owned(), text));
    }
    // What a file gives keeps its place: a value in order comes before the file's.
    let named = |field: &&Field| texts.iter().any(|(known, _)| *known == field.name);
    let required = fields(graph).iter().filter(|field| field.required);
    let (taken, open): (Vec<&Field>, Vec<&Field>) = required.partition(named);
    if arguments.inputs.len() > open.len() {
        let extra = &arguments.inputs[open.len()];
        let taken: Vec<String> = taken.iter().map(|it| format!("`{}`", it.name)).collect();
        let usage = Usage::new(format!(
            "`{extra}` is one value too many: `{}` has {} for values in order{}",
            graph.name,
            match open.len() {
                0 => "no required input left".to_owned(),
                1 => "one required input left".to_owned(),
                count => format!("{count} required inputs left"),
            },
            match taken.is_empty() {
                true => String::new(),
                false => format!("; {} has one by name", taken.join(", ")),
            }
        ));
        return Err(usage
            .help(format!("`{}`", line(graph, &arguments.command)))
            .into());
    }
    for (field, text) in open.iter().zip(arguments.inputs) {
        texts.push((field.name.to_string(), text));
    }
    for (name, text) in texts {
        let field = fields(graph).iter().find(|field| field.name == *name);
        match input::read(field, text) {
            Ok(value) => {
                given.retain(|(known, _)| *known != name);
                given.push((name, value));
            }
            Err(reason) => faults.push(InputFault {
                input: name,
                reason,
            }),
        }
    }
    let unread: Vec<String> = faults.iter().map(|fault| fault.input.clone()).collect();
    for field in fields(graph).iter().filter(|field| field.secret) {
        let is_known = given.iter().any(|(name, _)| *name == field.name)
            || std::env::var_os(secret::variable(&field.name)).is_some();
        if field.required && !is_known && hidden::is_possible() {
            let value = hidden::ask(&format!("secret `{}`: ", field.name))?;
            given.push((field.name.to_string(), Value::text(value)));
        }
    }
    let given = Value::map(given);
    Ok(match accept(graph.inputs.as_deref(), &given) {
        Ok(accepted) if faults.is_empty() => {
            let shown = accepted.shown();
            Ok(Inputs { given, shown })
        }
        Ok(_) => Err(faults),
        Err(others) => {
            let others = others.into_iter();
            // What could not be read was given nevertheless.
            faults.extend(others.filter(|fault| !unread.contains(&fault.input)));
            Err(faults)
        }
    })
}

/// Says everything that is wrong with the inputs, and how the workflow is used: by the command that
/// named it, such as `run build.yaml`.
pub(crate) fn complain(graph: &Graph, command: &str, faults: &[InputFault], output: &mut Output) {
    for fault in faults {
        output.error(&fault.to_string());
    }
    output.tell("");
    let text = described(graph, command, output.aside);
    output.tell(text.trim_end());
}

/// How a workflow is used.
pub(crate) fn described(graph: &Graph, command: &str, paint: Paint) -> String {
    let mut text = format!("usage: {}\n", line(graph, command));
    let rows: Vec<Vec<Cell>> = fields(graph).iter().map(crate::list::described).collect();
    for row in table(&rows, paint, None).lines() {
        text.push_str(&format!("  {row}\n"));
    }
    text
}

/// The usage line of a workflow.
fn line(graph: &Graph, command: &str) -> String {
    let mut line = format!("flow {command}");
    for field in fields(graph).iter().filter(|field| field.required) {
        line.push_str(&format!(" <{}>", field.name));
    }
    if graph.inputs.is_none() || fields(graph).iter().any(|field| !field.required) {
        line.push_str(" [-p key=value]…");
    }
    line
}

fn fields(graph: &Graph) -> &[Field] {
    graph.inputs.as_deref().unwrap_or_default()
}

/// A file of JSON or YAML as a value; `-` is standard input. What it holds is for messages.
pub(crate) fn file(path: &Path, what: &str) -> Result<Value> {
    let shown = path.display();
    let bytes = if path == Path::new("-") {
        Bytes::take(std::io::stdin().lock()).context("standard input cannot be read")?
    } else {
        match read(path) {
            Ok(bytes) => bytes,
            Err(library::Error::Missing { .. }) => return Err(crate::target::missing(path).into()),
            Err(library::Error::Directory { .. }) => {
                let usage = format!("`{shown}` is a directory, not a file of {what}");
                return Err(Usage::new(usage).into());
            }
            Err(error) => return Err(error.into()),
        }
    };
    let source = match bytes.into_source(&shown.to_string()) {
        Ok(source) => source,
        Err(broken) => return Err(unreadable(&broken.0, &broken.1).into()),
    };
    let tree = match source.tree() {
        Ok(tree) => tree,
        Err(finding) if finding.code == Code::Empty => {
            let usage = Usage::new(format!("`{shown}` is empty: it holds no {what}"));
            return Err(usage.help("write `name: value` lines").into());
        }
        Err(finding) => return Err(unreadable(&source, &finding).into()),
    };
    if let Some(key) = given_twice(&tree) {
        let Position { line, column } = source.position(key.span.range().start);
        let usage = Usage::new(format!(
            "`{shown}`, line {line}, column {column}: `{}` is given twice",
            key.value
        ));
        return Err(usage.help("keep one of them").into());
    }
    Ok(Value::from(&tree.to_json()))
}

/// That a file cannot be read, and where it goes wrong.
fn unreadable(source: &Source, finding: &Diagnostic) -> Usage {
    let Position { line, column } = source.position(finding.span.range().start);
    Usage::new(format!(
        "`{}`, line {line}, column {column}, cannot be read: {}",
        source.name(),
        finding.message
    ))
}

/// The first key that stands a second time in its map.
fn given_twice(tree: &Tree) -> Option<&Spanned<String>> {
    let entries = tree.entries().unwrap_or_default();
    let mut seen = HashSet::new();
    for Entry { key, value } in entries {
        if !seen.insert(key.value.as_str()) {
            return Some(key);
        }
        if let Some(inner) = given_twice(value) {
            return Some(inner);
        }
    }
    tree.items()?.iter().find_map(given_twice)
}
