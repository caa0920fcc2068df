//! The log of everything that was typed.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flow_model::tools::{Key, KeyCode};
use serde_json::{Value, json};

use super::error::Error;
use super::lock;

/// A file of JSON lines, one for each input.
#[derive(Debug)]
pub(super) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

/// An input that is about to be typed.
#[derive(Debug)]
pub(super) struct Entry {
    time: String,
    session: String,
    tool: &'static str,
    text: String,
    /// The text, where a secret of a run is in it.
    masked: Option<String>,
    keys: Vec<Key>,
}

impl Entry {
    pub(super) fn new(
        session: &str,
        tool: &'static str,
        text: &str,
        masked: Option<String>,
        keys: &[Key],
    ) -> Entry {
        Entry {
            time: now(),
            session: session.to_owned(),
            tool,
            text: text.to_owned(),
            masked,
            keys: keys.to_vec(),
        }
    }

    /// What a screen would show of it: the text, and keys that are characters.
    pub(super) fn text(&self) -> String {
        let keys = self.keys.iter().filter_map(character);
        self.text.chars().chain(keys).collect()
    }

    /// A line of the log that says nothing of what was typed.
    fn line(&self, time: &str) -> Value {
        json!({"time": time, "session_id": self.session, "tool": self.tool})
    }

    /// All of it that may be read.
    fn input(&self) -> String {
        let keys = self.keys.iter().map(|key| format!("<{key}>"));
        let text = self.masked.as_ref().unwrap_or(&self.text);
        std::iter::once(text.clone()).chain(keys).collect()
    }
}

/// The character that a key types.
fn character(key: &Key) -> Option<char> {
    match key.code {
        KeyCode::Char(character) if !key.ctrl && !key.alt => Some(character),
        _ => None,
    }
}

impl Audit {
    /// Opens the log for its owner alone.
    pub(super) fn open(path: &Path) -> Result<Audit, Error> {
        let file = open(path).map_err(|error| Error::Audit {
            path: path.to_owned(),
            error,
        })?;
        Ok(Audit {
            path: path.to_owned(),
            file: Mutex::new(file),
        })
    }

    /// Records an input.
    pub(super) fn record(&self, entry: &Entry) -> Result<(), Error> {
        let mut line = entry.line(&entry.time);
        line["input"] = json!(entry.input());
        self.write(&line)
    }

    /// Records an input that may be a secret: of what has characters, the length alone.
    pub(super) fn record_hidden(&self, entry: &Entry) -> Result<(), Error> {
        let length = entry.text().len();
        if length == 0 {
            return self.record(entry);
        }
        let mut line = entry.line(&entry.time);
        line["hidden_bytes"] = json!(length);
        let others = entry.keys.iter().filter(|key| character(key).is_none());
        let others: String = others.map(|key| format!("<{key}>")).collect();
        if !others.is_empty() {
            line["keys"] = json!(others);
        }
        self.write(&line)
    }

    /// Records that such an input was shown, and is no secret.
    pub(super) fn record_shown(&self, entry: &Entry) -> Result<(), Error> {
        let mut line = entry.line(&now());
        line["typed_at"] = json!(entry.time);
        line["input"] = json!(entry.input());
        self.write(&line)
    }

    fn write(&self, line: &Value) -> Result<(), Error> {
        let text = format!("{line}\n");
        let mut file = lock(&self.file);
        self.reopen(&mut file)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(|error| Error::Audit {
                path: self.path.clone(),
                error,
            })
    }

    /// Makes the log anew that was removed, or moved away: what is written to a file that nobody
    /// finds is not recorded.
    fn reopen(&self, file: &mut File) -> io::Result<()> {
        let own = file.metadata()?;
        let is_there = std::fs::metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
        if !is_there {
            *file = open(&self.path)?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn now() -> String {
    crate::run::time::iso(super::now())
}
