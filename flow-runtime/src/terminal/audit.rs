//! The log of everything that was typed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::error::Error;

/// A file of JSON lines, one for each input.
#[derive(Debug)]
pub(super) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

impl Audit {
    /// Opens the log for its owner alone.
    pub(super) fn open(path: &Path) -> Result<Audit, Error> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .and_then(|file| {
                use std::os::unix::fs::PermissionsExt;
                file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
                Ok(file)
            })
            .map_err(|error| Error::Audit {
                path: path.to_owned(),
                error,
            })?;
        Ok(Audit {
            path: path.to_owned(),
            file: Mutex::new(file),
        })
    }

    /// Writes a line. What is typed where the terminal shows nothing is a secret: its length alone
    /// is kept.
    pub(super) fn record(
        &self,
        session: &str,
        tool: &str,
        input: &str,
        hidden: bool,
    ) -> Result<(), Error> {
        let now = super::now();
        let mut line = json!({
            "time": crate::run::time::iso(now),
            "session_id": session,
            "tool": tool,
        });
        if hidden {
            line["hidden_bytes"] = json!(input.len());
        } else {
            line["input"] = json!(input);
        }
        let mut text = line.to_string();
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes())
            .map_err(|error| Error::Audit {
                path: self.path.clone(),
                error,
            })
    }
}
