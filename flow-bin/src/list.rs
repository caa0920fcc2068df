//! `flow list`: the workflows that can be found by name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flow_model::graph::{Field, Graph};
use flow_model::tools::WorkflowParameter;
use flow_runtime::library::{Catalogue, Entry, Library, Place, Project, Workflow};
use serde_json::{Value, json};

use crate::cli::{ListArguments, ListFormat};
use crate::exit::{Exit, Usage};
use crate::files;
use crate::output::{Cell, Output, Paint, cut, plain, table};
use crate::target;

/// Columns of what is said of a parameter's need: a default may be a whole script.
const LONGEST_NEED: usize = 48;

mod yaml;

pub(crate) use yaml::write as yaml;

pub(crate) fn run(arguments: &ListArguments, output: &mut Output) -> Result<Exit> {
    let library = match &arguments.directory {
        Some(directory) => of(directory)?,
        None => target::library()?,
    };
    let mut catalogue = library.catalogue();
    if let Some(directory) = &arguments.directory
        && library.project().is_none()
    {
        only_definitions(&mut catalogue, directory);
    }
    if let Some(source) = arguments.source {
        let place = Place::from(source);
        catalogue.workflows.retain(|it| it.entry.place == place);
        catalogue.shadowed.retain(|it| it.place == place);
        catalogue.refused.retain(|it| it.place == place);
    }
    let (paint, width) = (output.paint, output.width());
    let text = text(
        &catalogue,
        arguments.format,
        arguments.verbose,
        paint,
        width,
    );
    output.print(text)?;
    output.flush()?;
    asides(&catalogue, &library, arguments, output);
    Ok(Exit::Done)
}

/// The list in a format.
pub(crate) fn text(
    catalogue: &Catalogue,
    format: ListFormat,
    in_detail: bool,
    paint: Paint,
    width: Option<usize>,
) -> String {
    match format {
        ListFormat::Json => format!("{:#}\n", as_json(catalogue, in_detail)),
        ListFormat::Yaml => yaml(&as_json(catalogue, in_detail)),
        ListFormat::Table if in_detail => verbose(catalogue, paint, width),
        ListFormat::Table => brief(catalogue, paint, width),
    }
}

/// A directory's library: a project's, or the definitions in it.
fn of(directory: &Path) -> Result<Library> {
    if !directory.is_dir() {
        let usage = if directory.exists() {
            let help = "`flow check` and `flow graph` take files";
            Usage::new(format!("`{}` is not a directory", directory.display())).help(help)
        } else {
            Usage::new(format!("there is no directory `{}`", directory.display()))
        };
        return Err(usage.into());
    }
    Ok(match Project::at(directory)? {
        Some(project) => Library::empty().with_project(project),
        None => Library::empty().with_directory(Place::Project, directory.to_owned()),
    })
}

/// Leaves out what stands in any directory and is no definition.
fn only_definitions(catalogue: &mut Catalogue, directory: &Path) {
    let found = files::definitions(directory, &Library::empty());
    let known: HashSet<&Path> = found.files.iter().map(PathBuf::as_path).collect();
    let is_known = |path: Option<&Path>| path.is_none_or(|path| known.contains(path));
    catalogue.workflows.retain(|it| is_known(it.entry.file()));
    catalogue.shadowed.retain(|it| is_known(it.file()));
    catalogue.refused.retain(|it| is_known(Some(&it.path)));
}

fn as_json(catalogue: &Catalogue, in_detail: bool) -> Value {
    let workflows = catalogue.workflows.iter();
    let workflows: Vec<Value> = workflows.map(|it| one_json(it, in_detail)).collect();
    let shadowed: Vec<Value> = catalogue
        .shadowed
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name,
                "source": entry.place.word(),
                "file": entry.file().map(|path| target::shown(path).display().to_string()),
            })
        })
        .collect();
    json!({ "workflows": workflows, "shadowed": shadowed })
}

fn one_json(workflow: &Workflow, in_detail: bool) -> Value {
    let Workflow { entry, definition } = workflow;
    let graph = definition.as_ref().ok();
    let fields = graph.map(|graph| parameters(graph)).unwrap_or_default();
    json!({
        "name": entry.name,
        "description": graph.and_then(|graph| graph.description.as_deref()),
        "version": graph.and_then(|graph| graph.version.as_deref()),
        "source": entry.place.word(),
        "file": entry.file().map(|path| target::shown(path).display().to_string()),
        "parameters": said(fields, in_detail),
        "error": definition.as_ref().err().map(ToString::to_string),
    })
}

/// Parameters as the formats for programs have them.
pub(crate) fn said(fields: &[Field], in_detail: bool) -> Vec<WorkflowParameter> {
    let fields = fields.iter();
    fields
        .map(|field| WorkflowParameter::of(field, in_detail))
        .collect()
}

pub(crate) fn parameters(graph: &Graph) -> &[Field] {
    graph.inputs.as_deref().unwrap_or_default()
}

/// A line a workflow.
fn brief(catalogue: &Catalogue, paint: Paint, width: Option<usize>) -> String {
    if catalogue.workflows.is_empty() {
        return String::new();
    }
    let heading = |text| Cell::new(text, Paint::dim);
    let mut rows = vec![vec![
        heading("NAME"),
        heading("SOURCE"),
        heading("PARAMETERS"),
        heading("DESCRIPTION"),
    ]];
    rows.extend(catalogue.workflows.iter().map(|workflow| {
        let entry = &workflow.entry;
        let mut row = vec![
            Cell::new(&entry.name, Paint::bold),
            Cell::new(entry.place.word(), Paint::cyan),
        ];
        match &workflow.definition {
            Ok(graph) => {
                let names: Vec<String> = parameters(graph).iter().map(signature).collect();
                row.push(Cell::new(&names.join(" "), plain));
                row.push(Cell::new(graph.description.as_deref().unwrap_or(""), plain));
            }
            Err(fault) => {
                row.push(Cell::new("", plain));
                row.push(Cell::new(&format!("error: {fault}"), Paint::red));
            }
        }
        row
    }));
    table(&rows, paint, width)
}

/// A parameter as in a usage line: in brackets when it need not be given.
fn signature(field: &Field) -> String {
    if field.required {
        field.name.to_string()
    } else {
        format!("[{}]", field.name)
    }
}

/// A paragraph a workflow.
fn verbose(catalogue: &Catalogue, paint: Paint, width: Option<usize>) -> String {
    let mut text = String::new();
    for (index, workflow) in catalogue.workflows.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let title = Cell::new(&workflow.entry.name, Paint::bold);
        let origin = Cell::new(&origin(&workflow.entry), Paint::dim);
        text.push_str(&table(&[vec![title, origin]], paint, None));
        let mut below = |line: Cell| {
            text.push_str("  ");
            text.push_str(&table(&[vec![line]], paint, None));
        };
        let mut rows = Vec::new();
        match &workflow.definition {
            Ok(graph) => {
                if let Some(description) = &graph.description {
                    for line in description.lines().map(str::trim) {
                        below(Cell::new(line, plain));
                    }
                }
                rows.extend(parameters(graph).iter().map(described));
            }
            Err(fault) => below(Cell::new(&format!("error: {fault}"), Paint::red)),
        }
        let width = width.map(|width| width.saturating_sub(4));
        for line in table(&rows, paint, width).lines() {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text
}

fn origin(entry: &Entry) -> String {
    match entry.file() {
        Some(path) => format!("{}, {}", entry.place.word(), target::shown(path).display()),
        None => entry.place.word().to_owned(),
    }
}

/// A parameter as a row of a table.
pub(crate) fn described(field: &Field) -> Vec<Cell> {
    let need = match &field.default {
        _ if field.required => "required".to_owned(),
        Some(_) if field.secret => "has a default".to_owned(),
        Some(default) => cut(&format!("default {}", Value::from(default)), LONGEST_NEED),
        None => "optional".to_owned(),
    };
    vec![
        Cell::new(&field.name, Paint::cyan),
        Cell::new(field.ty.word(), plain),
        Cell::new(&need, plain),
        Cell::new(field.description.as_deref().unwrap_or(""), Paint::dim),
    ]
}

/// What is odd about the keys of settings.
pub(crate) fn unknown_keys(library: &Library) -> impl Iterator<Item = String> {
    library.unknown_keys().map(|(file, unknown)| {
        let file = target::shown(&file);
        let (file, key) = (file.display(), &unknown.key);
        match &unknown.meant {
            Some(meant) => format!("{file}: `{key}` means nothing; did you mean `{meant}`?"),
            None => {
                let known = unknown.known.join("`, `");
                format!("{file}: `{key}` means nothing; there are `{known}`")
            }
        }
    })
}

/// What a person should know beyond the list.
fn asides(
    catalogue: &Catalogue,
    library: &Library,
    arguments: &ListArguments,
    output: &mut Output,
) {
    for entry in &catalogue.shadowed {
        let path = entry.file().map_or_else(
            || "a built-in".into(),
            |path| target::shown(path).display().to_string(),
        );
        let name = &entry.name;
        output.warning(&format!(
            "{path} is not found by `{name}`: another `{name}` stands before it"
        ));
    }
    for refused in &catalogue.refused {
        let path = target::shown(&refused.path);
        output.warning(&format!(
            "{} is left out: {}",
            path.display(),
            refused.reason
        ));
    }
    for odd in unknown_keys(library) {
        output.warning(&odd);
    }
    let project = library.project().map(Project::directories);
    // The first is where workflows are by custom; the others were asked for.
    for directory in project.unwrap_or_default().iter().skip(1) {
        if !directory.is_dir() {
            let path = target::shown(directory);
            output.warning(&format!(
                "flow.toml lists `{}`, which is not a directory",
                path.display()
            ));
        }
    }
    if catalogue.workflows.is_empty() {
        let looked: Vec<String> = library
            .directories()
            .filter(|(place, _)| arguments.source.is_none_or(|it| Place::from(it) == *place))
            .map(|(_, directory)| target::shown(directory).display().to_string())
            .collect();
        if looked.is_empty() {
            output.tell("no workflows");
        } else {
            output.tell(format_args!("no workflows in {}", looked.join(", ")));
        }
    }
}
