//! `flow agent` and `flow prompt`: briefs that can be found by name.

use anyhow::Result;
use flow_model::graph::Graph;
use flow_runtime::briefs::{Brief, BriefError, Briefs, Found, Kind};
use flow_runtime::library::Location;
use serde_json::{Value, json};

use crate::cli::{BriefArguments, ListFormat};
use crate::exit::{Exit, Usage};
use crate::list;
use crate::output::{Cell, Output, Paint, plain, table};
use crate::run::{Given, complain, described, gather};
use crate::target;

/// The word that stands for the list; a brief that is called so is `_list`.
const LIST: &str = "list";

/// Shows the briefs of a kind, or one of them with its arguments filled in.
pub(crate) fn run(kind: Kind, arguments: &BriefArguments, output: &mut Output) -> Result<Exit> {
    let briefs = briefs(kind)?;
    match arguments.name.as_deref() {
        None | Some(LIST) => listing(&briefs, arguments, output),
        Some(name) => match name.strip_prefix('_') {
            Some(LIST) => one(&briefs, LIST, arguments, output),
            _ => one(&briefs, name, arguments, output),
        },
    }
}

/// What `flow agent` and `flow prompt` call a brief.
pub(crate) fn called(name: &str) -> String {
    match name {
        LIST => format!("_{LIST}"),
        name => name.to_owned(),
    }
}

/// The arguments of a brief, under the name that it is called by.
fn signature(brief: &Brief) -> Graph {
    Graph {
        name: called(&brief.found.name).into(),
        ..brief.signature().clone()
    }
}

/// What a brief is for and how it is used.
pub(crate) fn help(briefs: &Briefs, asked: &str, name: &str, output: &mut Output) -> Result<Exit> {
    let brief = match briefs.brief(name) {
        Ok(brief) => brief,
        Err(error) => return refuse(error),
    };
    if let Some(description) = &brief.description {
        output.line(description.trim())?;
        output.line("")?;
    }
    let word = briefs.kind().word();
    let name = called(name);
    let command = format!("{word} {name}");
    output.print(described(&signature(&brief), &command, output.paint))?;
    output.line(format_args!(
        "\n`flow {asked}` stands for `flow {word} {name}`; `flow {word} --help` shows its options"
    ))?;
    Ok(Exit::Done)
}

/// The briefs that can be found from here.
pub(crate) fn briefs(kind: Kind) -> Result<Briefs> {
    Ok(Briefs::around(kind, &target::current()?))
}

fn one(
    briefs: &Briefs,
    name: &str,
    arguments: &BriefArguments,
    output: &mut Output,
) -> Result<Exit> {
    let brief = match briefs.brief(name) {
        Ok(brief) => brief,
        Err(error) => return refuse(error),
    };
    let word = briefs.kind().word();
    let command = format!("{word} {}", called(&brief.found.name));
    let given = Given {
        command: command.clone(),
        inputs: &arguments.inputs,
        parameters: arguments.parameters.iter().map(String::as_str).collect(),
        file: None,
    };
    let inputs = match gather(&signature(&brief), &given)? {
        Ok(inputs) => inputs,
        Err(faults) => {
            complain(&signature(&brief), &command, &faults, output);
            return Ok(Exit::Usage);
        }
    };
    match brief.render(&inputs.given) {
        Ok(text) => {
            output.print(&text)?;
            if !text.ends_with('\n') {
                output.line("")?;
            }
            Ok(Exit::Done)
        }
        Err(error) => refuse(error),
    }
}

fn refuse(error: BriefError) -> Result<Exit> {
    let usage = Usage::new(error.to_string());
    Err(match &error {
        BriefError::NotFound {
            kind, near: None, ..
        } => usage.help(format!("`flow {} list` shows what there is", kind.word())),
        _ => usage,
    }
    .into())
}

type Read = (Found, Result<Brief, BriefError>);

/// The list in a format; empty in the one for people when there are none.
pub(crate) fn text(
    briefs: &Briefs,
    format: ListFormat,
    verbose: bool,
    paint: Paint,
    width: Option<usize>,
) -> String {
    let found = briefs.list().into_iter();
    let read: Vec<Read> = found
        .map(|found| (found.clone(), Brief::read(found)))
        .collect();
    match format {
        ListFormat::Json => format!("{:#}\n", as_json(briefs.kind(), &read, verbose)),
        ListFormat::Yaml => list::yaml(&as_json(briefs.kind(), &read, verbose)),
        ListFormat::Table if read.is_empty() => String::new(),
        ListFormat::Table => {
            let heads: &[&str] = match verbose {
                true => &["NAME", "SOURCE", "ARGUMENTS", "FILE", "DESCRIPTION"],
                false => &["NAME", "SOURCE", "DESCRIPTION"],
            };
            let heads = heads.iter().map(|head| Cell::new(head, plain)).collect();
            let rows = read.iter().map(|(found, brief)| row(found, brief, verbose));
            let rows: Vec<Vec<Cell>> = [heads].into_iter().chain(rows).collect();
            table(&rows, paint, width)
        }
    }
}

fn listing(briefs: &Briefs, arguments: &BriefArguments, output: &mut Output) -> Result<Exit> {
    let BriefArguments {
        format, verbose, ..
    } = arguments;
    let (paint, width) = (output.paint, output.width());
    output.print(text(briefs, *format, *verbose, paint, width))?;
    output.flush()?;
    if briefs.list().is_empty() {
        let looked: Vec<String> = briefs
            .directories()
            .map(|directory| target::shown(directory).display().to_string())
            .collect();
        let word = briefs.kind().word();
        output.tell(format_args!("no {word}s in {}", looked.join(", ")));
    }
    Ok(Exit::Done)
}

fn row(found: &Found, brief: &Result<Brief, BriefError>, verbose: bool) -> Vec<Cell> {
    let told = match brief {
        Ok(brief) => brief.description.clone().unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    let first = told.lines().next().unwrap_or_default();
    let mut cells = vec![
        Cell::new(&found.name, plain),
        Cell::new(found.place.word(), plain),
    ];
    if verbose {
        let fields = brief.as_ref().ok().and_then(Brief::arguments);
        let names = fields
            .unwrap_or_default()
            .iter()
            .map(|field| match field.required {
                true => field.name.to_string(),
                false => format!("[{}]", field.name),
            });
        cells.push(Cell::new(&names.collect::<Vec<_>>().join(" "), plain));
        cells.push(Cell::new(&file(found).unwrap_or_default(), plain));
    }
    cells.push(Cell::new(first, plain));
    cells
}

fn file(found: &Found) -> Option<String> {
    match &found.location {
        Location::File(path) => Some(target::shown(path).display().to_string()),
        Location::Text(_) => None,
    }
}

fn as_json(kind: Kind, read: &[Read], in_detail: bool) -> Value {
    let all: Vec<Value> = read
        .iter()
        .map(|(found, brief)| {
            let known = brief.as_ref().ok();
            let fields = known.and_then(Brief::arguments).unwrap_or_default();
            json!({
                "name": found.name,
                "description": known.and_then(|brief| brief.description.as_deref()),
                "source": found.place.word(),
                "file": file(found),
                "parameters": list::said(fields, in_detail),
                "error": brief.as_ref().err().map(ToString::to_string),
            })
        })
        .collect();
    json!({ format!("{}s", kind.word()): all })
}
