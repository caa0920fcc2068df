//! `flow init`: makes a project.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use flow_runtime::library::Project;

use crate::cli::InitArguments;
use crate::exit::Exit;
use crate::output::Output;
use crate::target;

/// A workflow to begin with.
const HELLO: &str = "\
# Run it with `flow hello`, or `flow hello -p name=you`.
description: Says hello
inputs:
  name: {type: string, default: world}
steps:
  - {id: greet, type: shell, command: 'echo Hello, {{ inputs.name }}!', output_format: text, output_to: said}
outputs:
  said: '{{ state.said }}'
";
/// What belongs to this machine and not to the project.
const IGNORED: &str = "journal.db*\nlocks/\nserve-*.json\n*.jsonl\n";

pub(crate) fn run(arguments: &InitArguments, output: &mut Output) -> Result<Exit> {
    let current = target::current()?;
    let root = arguments.directory.as_deref().unwrap_or(&current);
    let shown = target::shown(root);
    if let Some(project) = Project::at(root)? {
        let place = target::shown(project.root());
        output.tell(format_args!("{} is a project already", place.display()));
    }
    let marked = root.join(".flow");
    let made = [
        (marked.join("workflows/hello.yaml"), HELLO),
        (marked.join(".gitignore"), IGNORED),
    ];
    // Only a project without workflows gets one.
    let bare = !marked.join("workflows").exists();
    for (path, text) in made {
        let is_sample = path.extension().is_some_and(|it| it == "yaml");
        if path.exists() || (is_sample && !bare) {
            continue;
        }
        write(&path, text)?;
        output.line(target::shown(&path).display())?;
    }
    output.flush()?;
    if bare {
        let there = match shown.as_os_str() == "." {
            true => String::new(),
            false => format!("in {}: ", shown.display()),
        };
        output.tell(format_args!(
            "{there}`flow hello` runs the first workflow, `flow list` shows them all"
        ));
    }
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("`{}` cannot be made", parent.display()))?;
    }
    fs::write(path, text).with_context(|| format!("`{}` cannot be written", path.display()))
}
