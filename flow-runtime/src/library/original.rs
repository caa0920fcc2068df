//! A workflow's definition as it is written, with the files it imports.

use std::path::PathBuf;

use flow_model::loader::Loader;
use flow_model::source::{Source, Tree};
use serde::Serialize;
use serde_json::Value;

use super::{Entry, FileLoader, Library, Location, StoreError, content};

/// A definition as it is written.
#[derive(Clone, Debug)]
pub struct Original {
    /// Where it was found.
    pub entry: Entry,
    /// Its text.
    pub text: String,
    /// The same as a value; `None` for a text that is neither YAML nor JSON.
    pub definition: Option<Value>,
    /// What it imports, and what that imports.
    pub imports: Vec<Import>,
}

/// A file that a definition imports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Import {
    /// The path as it is written.
    pub path: String,
    /// The file it leads to; `None` when there is none.
    pub found_at: Option<PathBuf>,
    /// Why it cannot be read.
    pub error: Option<String>,
    /// What it imports in its turn. A file that is imported again is not followed again.
    pub imports: Vec<Import>,
}

impl Library {
    /// The definition of the workflow that a name leads to, as it is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`], [`StoreError::Library`].
    pub fn original(&self, name: &str) -> Result<Original, StoreError> {
        let entry = self.find(name)?;
        let source = self.source(&entry)?;
        let imports = match &entry.location {
            Location::File(path) => {
                let loader = FileLoader::for_file(self, path);
                imports(&loader, &source, &mut vec![source.name().to_owned()])
            }
            Location::Text(_) => Vec::new(),
        };
        Ok(Original {
            definition: source.tree().ok().map(|tree| tree.to_json()),
            text: source.text().to_owned(),
            imports,
            entry,
        })
    }
}

/// What a source imports. `seen` are the files whose imports were followed.
fn imports(loader: &dyn Loader, source: &Source, seen: &mut Vec<String>) -> Vec<Import> {
    let Ok(tree) = source.tree() else {
        return Vec::new();
    };
    let listed = content::document(&tree)
        .get("imports")
        .and_then(Tree::items);
    let paths: Vec<&str> = listed
        .unwrap_or_default()
        .iter()
        .filter_map(Tree::as_str)
        .collect();
    let mut found = Vec::new();
    for path in paths {
        found.push(match loader.import(source.name(), path) {
            Ok(imported) => {
                let name = imported.name().to_owned();
                let new = !seen.contains(&name);
                if new {
                    seen.push(name.clone());
                }
                Import {
                    path: path.to_owned(),
                    found_at: Some(PathBuf::from(name)),
                    error: None,
                    imports: match new {
                        true => imports(loader, &imported, seen),
                        false => Vec::new(),
                    },
                }
            }
            Err(reason) => Import {
                path: path.to_owned(),
                found_at: None,
                error: Some(reason),
                imports: Vec::new(),
            },
        });
    }
    found
}
