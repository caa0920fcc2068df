//! What a person means by a workflow or a file.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flow_model::Compiled;
use flow_model::suggest::nearest_or_part;
use flow_runtime::library::{Bytes, EXTENSIONS, Entry, Error, Library, Location};

use crate::exit::Usage;

/// What findings call standard input.
const STDIN: &str = "<stdin>";

/// The library around the current directory.
pub(crate) fn library() -> Result<Library> {
    let builtins = flow::builtin::ALL.iter();
    let builtins = builtins.map(|it| (it.name, it.source, it.graph));
    Ok(Library::around(&current()?)?.with_compiled(builtins))
}

pub(crate) fn current() -> Result<PathBuf> {
    env::current_dir().context("the current directory cannot be told")
}

/// A path as people like to read it: from the current directory, when it is below that.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let current = env::current_dir().unwrap_or_default();
    let below = path
        .strip_prefix(current)
        .or_else(|_| path.strip_prefix("."));
    match below {
        Ok(below) if below.as_os_str().is_empty() => PathBuf::from("."),
        Ok(below) => below.to_owned(),
        Err(_) => path.to_owned(),
    }
}

/// Compiles a workflow of the library; findings call its file as people like to read it.
pub(crate) fn entry(library: &Library, entry: &Entry) -> Result<Compiled, Error> {
    let mut entry = entry.clone();
    if let Location::File(path) = &mut entry.location {
        *path = shown(path);
    }
    library.compile(&entry)
}

/// Compiles what stands on standard input.
pub(crate) fn stdin(library: &Library) -> Result<Compiled> {
    let bytes = Bytes::take(io::stdin().lock()).context("standard input cannot be read")?;
    Ok(library.compile_bytes(STDIN, bytes, &current()?))
}

/// Compiles a file, or says which one was probably meant.
pub(crate) fn file(library: &Library, path: &Path) -> Result<Compiled> {
    match library.compile_file(path) {
        Ok(compiled) => Ok(compiled),
        Err(Error::Missing { .. }) => Err(missing(path).into()),
        Err(error) => Err(error.into()),
    }
}

/// Compiles what a name, a path or `-` stands for.
pub(crate) fn any(library: &Library, asked: &str) -> Result<Compiled> {
    if asked == "-" {
        return stdin(library);
    }
    let path = Path::new(asked);
    if is_path(asked) {
        return file(library, path);
    }
    if let Some(found) = library.get(asked)? {
        return Ok(entry(library, &found)?);
    }
    if path.is_file() {
        return file(library, path);
    }
    let usage = Usage::new(format!("there is no workflow or file `{asked}`"));
    Err(match near_workflow(library, asked) {
        Some(near) => usage.help(format!("did you mean `{near}`?")),
        None => usage.help("`flow list` shows the workflows that can be found from here"),
    }
    .into())
}

/// That there is no workflow of a name, with the one that was probably meant and all there are.
pub(crate) fn no_workflow(name: &str, names: &[String]) -> String {
    let help = match nearest_or_part(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`? "),
        None => String::new(),
    };
    let known = match names.is_empty() {
        true => "there are none yet; create_workflow stores one".to_owned(),
        false => format!("available workflows: {}", names.join(", ")),
    };
    format!("there is no workflow `{name}`: {help}{known}")
}

/// Whether a text is meant as a path and not as a name.
pub(crate) fn is_path(asked: &str) -> bool {
    let extension = Path::new(asked).extension().unwrap_or_default();
    asked.contains(['/', '\\']) || EXTENSIONS.iter().any(|known| extension == *known)
}

/// The directory of a workflow that is given as a file.
pub(crate) fn directory_of(asked: &str) -> Option<PathBuf> {
    let path = Path::new(asked);
    if !is_path(asked) && !path.is_file() {
        return None;
    }
    fs::canonicalize(path.parent()?)
        .ok()
        .or_else(|| current().ok())
}

/// The workflow that was probably meant.
pub(crate) fn near_workflow(library: &Library, wanted: &str) -> Option<String> {
    let entries = library.list().entries.into_iter();
    let names: Vec<String> = entries.map(|entry| entry.name).collect();
    near(wanted, &names).map(str::to_owned)
}

/// That a file is not there, with the one that was probably meant.
pub(crate) fn missing(path: &Path) -> Usage {
    let usage = Usage::new(format!("there is no file `{}`", path.display()));
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let parent = path.parent().unwrap_or(Path::new(""));
    let directory = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let mut names: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    match near(&wanted, &names) {
        Some(near) => usage.help(format!("did you mean `{}`?", parent.join(near).display())),
        None => usage,
    }
}

/// The name that was probably meant: alike, or the last part of one.
pub(crate) fn near<'n>(wanted: &str, names: &'n [String]) -> Option<&'n str> {
    nearest_or_part(wanted, names.iter().map(String::as_str)).or_else(|| {
        let mut names = names.iter().map(String::as_str);
        names.find(|name| name.split([':', '.']).any(|part| part == wanted))
    })
}
