//! The definitions under `tests/corpus/`, and how they find each other.

use std::fs;
use std::path::{Component, Path, PathBuf};

use flow_model::loader::{Loader, Lookup};
use flow_model::source::Source;
use flow_model::{Compiled, compile};

/// A definition of the corpus.
pub(crate) struct Definition {
    /// Its path below `tests/corpus/`, with `/` between the parts.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) bytes: Vec<u8>,
}

impl Definition {
    /// The file's name without folder and extension.
    pub(crate) fn stem(&self) -> &str {
        let file = self.name.rsplit('/').next().unwrap();
        file.rsplit_once('.').unwrap().0
    }

    /// The definition as a source. Only the hostile ones may be something else than text.
    pub(crate) fn source(&self) -> Source {
        Source::from_bytes(&self.name, &self.bytes).unwrap()
    }

    /// The definition through reader, checker and lowering.
    pub(crate) fn compile(&self) -> Compiled {
        compile(self.source(), &Folder)
    }

    /// A file beside it with another extension.
    pub(crate) fn sibling(&self, extension: &str) -> PathBuf {
        root().join(&self.name).with_extension(extension)
    }
}

/// Where the corpus lies.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus")
}

/// The definitions of a folder, by name. Files in `parts/` are only imported by others.
pub(crate) fn definitions(folder: &str) -> Vec<Definition> {
    let mut names = Vec::new();
    walk(&root().join(folder), folder, &mut names);
    names.sort();
    assert!(!names.is_empty(), "{folder} is empty");
    names
        .into_iter()
        .map(|name| Definition {
            bytes: fs::read(root().join(&name)).unwrap(),
            name,
        })
        .collect()
}

fn walk(folder: &Path, name: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let file = entry.file_name().into_string().unwrap();
        let name = format!("{name}/{file}");
        if entry.file_type().unwrap().is_dir() {
            if file != "parts" {
                walk(&entry.path(), &name, names);
            }
        } else if [".yaml", ".json", ".bin"]
            .iter()
            .any(|end| file.ends_with(end))
        {
            names.push(name);
        }
    }
}

/// Imports from the corpus, and calls the workflows in `workflows/`.
pub(crate) struct Folder;

impl Loader for Folder {
    fn import(&self, from: &str, path: &str) -> Result<Source, String> {
        let folder = Path::new(from).parent().unwrap();
        let mut clean = PathBuf::new();
        for part in folder.join(path).components() {
            match part {
                Component::ParentDir => {
                    clean.pop();
                }
                Component::Normal(part) => clean.push(part),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        let name = clean.to_str().unwrap().replace('\\', "/");
        match fs::read_to_string(root().join(&clean)) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(_) => Err("there is no such file".to_owned()),
        }
    }

    fn workflow(&self, name: &str) -> Lookup {
        let path = |name: &str| format!("workflows/{}.yaml", name.replace(':', "/"));
        match fs::read_to_string(root().join(path(name))) {
            Ok(text) => Lookup::Found(Box::new(Source::new(path(name), text))),
            Err(_) => {
                let known = definitions("workflows").into_iter().map(|definition| {
                    let below = definition.name.strip_prefix("workflows/").unwrap();
                    below.strip_suffix(".yaml").unwrap().replace('/', ":")
                });
                Lookup::NotFound(known.collect())
            }
        }
    }
}
