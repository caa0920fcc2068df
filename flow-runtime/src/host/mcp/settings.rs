//! `.mcp.json`: which MCP servers a project has.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::library::{self, read};

/// What the file is called.
pub const FILE: &str = ".mcp.json";

/// Why a server of `.mcp.json` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read, or is not what it should be.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// One server's settings are not what they should be.
    #[error("{}: the server `{server}` {reason}", path.display())]
    Server {
        /// The file.
        path: PathBuf,
        /// The server.
        server: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The MCP servers of a project, by name. Nothing is started by reading this.
#[derive(Clone, Debug, Default)]
pub struct McpSettings {
    path: PathBuf,
    servers: BTreeMap<String, Value>,
}

/// How a server is reached, with every variable filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// A program that is talked to over its standard streams.
    Process {
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        directory: PathBuf,
    },
    /// An address.
    Http {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// What a server is reached by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// A program that is started.
    Program(String),
    /// An address.
    Address(String),
}

impl McpSettings {
    /// What the `.mcp.json` nearest to a directory says, up to the root of its project or
    /// repository; nothing when there is none.
    ///
    /// # Errors
    ///
    /// [`SettingsError::File`].
    pub fn around(directory: &Path) -> Result<Self, SettingsError> {
        let root = library::root_around(directory);
        for place in directory.ancestors() {
            let path = place.join(FILE);
            if path.is_file() {
                return McpSettings::read(&path);
            }
            if place == root {
                break;
            }
        }
        Ok(McpSettings::default())
    }

    /// What a file says.
    ///
    /// # Errors
    ///
    /// [`SettingsError::File`].
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let wrong = |reason: String| SettingsError::File {
            path: path.to_owned(),
            reason,
        };
        let bytes = read(path).map_err(|error| wrong(error.to_string()))?;
        let value: Value =
            serde_json::from_str(&bytes.lossy()).map_err(|error| wrong(error.to_string()))?;
        let servers = match value.get("mcpServers") {
            Some(Value::Object(servers)) => servers.clone(),
            Some(_) => return Err(wrong("`mcpServers` is not an object".to_owned())),
            None if value.is_object() => Map::new(),
            None => return Err(wrong("it is not an object with `mcpServers`".to_owned())),
        };
        Ok(McpSettings {
            path: path.to_owned(),
            servers: servers.into_iter().collect(),
        })
    }

    /// The names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The server and the tool that a name such as `server.tool` means; `None` when no server of
    /// that name is there.
    #[must_use]
    pub fn split<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
        // A server's name may have dots: the longest that fits is meant.
        let at = dots.find(|at| self.servers.contains_key(&name[..*at]))?;
        Some((&name[..at], &name[at + 1..]))
    }

    /// What a server is reached by, with every variable filled in. Nothing is started.
    ///
    /// # Errors
    ///
    /// [`SettingsError::Server`].
    pub fn started_by(&self, name: &str) -> Result<Started, SettingsError> {
        Ok(match self.server(name)? {
            Server::Process {
                command, directory, ..
            } => match command.contains('/') {
                true => Started::Program(directory.join(command).display().to_string()),
                false => Started::Program(command),
            },
            Server::Http { url, .. } => Started::Address(url),
        })
    }

    /// How a server is reached.
    pub(super) fn server(&self, name: &str) -> Result<Server, SettingsError> {
        let wrong = |reason: String| SettingsError::Server {
            path: self.path.clone(),
            server: name.to_owned(),
            reason,
        };
        let Some(Value::Object(entry)) = self.servers.get(name) else {
            return Err(wrong("is not an object".to_owned()));
        };
        self.reach(entry).map_err(wrong)
    }

    fn reach(&self, entry: &Map<String, Value>) -> Result<Server, String> {
        let kind = match entry.get("type") {
            Some(Value::String(kind)) => Some(kind.as_str()),
            Some(_) => return Err("has a `type` that is not text".to_owned()),
            None => None,
        };
        match (
            kind,
            entry.contains_key("command"),
            entry.contains_key("url"),
        ) {
            (Some("stdio"), _, _) | (None, true, false) => Ok(Server::Process {
                command: text(entry, "command")?.ok_or("has no `command` to start it with")?,
                args: texts(entry)?,
                env: pairs(entry, "env")?,
                directory: match text(entry, "cwd")? {
                    Some(directory) => self.directory().join(directory),
                    None => self.directory().to_owned(),
                },
            }),
            (Some("http" | "streamable-http" | "streamable_http"), _, _) | (None, false, true) => {
                Ok(Server::Http {
                    url: text(entry, "url")?.ok_or("has no `url`")?,
                    headers: pairs(entry, "headers")?,
                })
            }
            (Some("sse"), _, _) => Err(
                "is of type `sse`, which has been replaced; most servers offer `http` too"
                    .to_owned(),
            ),
            (Some(other), _, _) => Err(format!(
                "is of type `{other}`, which is neither `stdio` nor `http`"
            )),
            (None, true, true) => {
                Err("has both `command` and `url`; say which by `type`".to_owned())
            }
            (None, false, false) => Err("has neither `command` nor `url`".to_owned()),
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

fn text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => expand(text, key, variable).map(Some),
        Some(_) => Err(format!("has a `{key}` that is not text")),
    }
}

fn texts(entry: &Map<String, Value>) -> Result<Vec<String>, String> {
    let wrong = || "has `args` that are not a list of texts".to_owned();
    match entry.get("args") {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| expand(item.as_str().ok_or_else(wrong)?, "args", variable))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

fn pairs(entry: &Map<String, Value>, key: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("has a `{key}` that is not an object of texts");
    match entry.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Object(pairs)) => pairs
            .iter()
            .map(|(name, value)| {
                let value = value.as_str().ok_or_else(wrong)?;
                Ok((name.clone(), expand(value, key, variable)?))
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Fills in `${NAME}` and `${NAME:-default}`. Anything else stays as it is.
fn expand(
    text: &str,
    key: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, behind)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let value = variable(name).filter(|value| default.is_none() || !value.is_empty());
        match value.as_deref().or(default) {
            Some(value) => out.push_str(value),
            None => {
                return Err(format!(
                    "needs the environment variable {name} in `{key}`, which is not set"
                ));
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use std::fs;

    use super::*;

    fn settings(text: &str) -> (tempfile::TempDir, Result<McpSettings, SettingsError>) {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(FILE), text).unwrap();
        let settings = McpSettings::around(root.path());
        (root, settings)
    }

    #[test]
    fn variables_are_filled_in_with_their_defaults() {
        let given = |name: &str| match name {
            "SET" => Some("value".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let cases = [
            ("plain $SET {SET}", Ok("plain $SET {SET}")),
            ("a${SET}b${SET}", Ok("avaluebvalue")),
            ("${UNSET:-default}/x", Ok("default/x")),
            ("${UNSET:-}", Ok("")),
            ("${EMPTY:-default}", Ok("default")),
            ("${EMPTY}", Ok("")),
            ("${open", Ok("${open")),
            ("${UNSET}", Err("UNSET")),
        ];
        for (text, expected) in cases {
            match (expand(text, "args", given), expected) {
                (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{text}"),
                (Err(reason), Err(name)) => assert!(reason.contains(name), "{reason}"),
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn both_kinds_of_server_are_understood() {
        let (root, settings) = settings(
            r#"{"mcpServers": {
                "a": {"command": "serve", "args": ["-x", "${FLOW_NO_SUCH:-y}"], "env": {"K": "v"}},
                "b.c": {"type": "http", "url": "http://localhost:1/mcp", "headers": {"X-Key": "k"}},
                "b": {"url": "http://localhost:2"}
            }}"#,
        );
        let settings = settings.unwrap();
        assert_eq!(settings.names().collect::<Vec<_>>(), ["a", "b", "b.c"]);
        let process = Server::Process {
            command: "serve".to_owned(),
            args: vec!["-x".to_owned(), "y".to_owned()],
            env: vec![("K".to_owned(), "v".to_owned())],
            directory: root.path().to_owned(),
        };
        assert_eq!(settings.server("a"), Ok(process));
        let Ok(Server::Http { url, headers }) = settings.server("b.c") else {
            panic!("it is an address");
        };
        assert_eq!(url, "http://localhost:1/mcp");
        assert_eq!(headers, [("X-Key".to_owned(), "k".to_owned())]);
        assert_eq!(settings.split("a.b.c"), Some(("a", "b.c")));
        assert_eq!(settings.split("b.c.d"), Some(("b.c", "d")));
        assert_eq!(settings.split("b.d"), Some(("b", "d")));
        assert_eq!(settings.split("x.d"), None);
        assert_eq!(settings.split("tool"), None);
    }

    #[test]
    fn a_faulty_server_is_told_only_when_it_is_asked_for() {
        let (_root, settings) = settings(
            r#"{"mcpServers": {
                "good": {"command": "serve"},
                "text": "serve",
                "none": {},
                "old": {"type": "sse", "url": "http://localhost"},
                "args": {"command": "serve", "args": "x"},
                "both": {"command": "serve", "url": "http://localhost"},
                "secret": {"url": "http://localhost", "headers": {"K": "${FLOW_NO_SUCH}"}}
            }}"#,
        );
        let settings = settings.unwrap();
        assert!(settings.server("good").is_ok());
        let cases = [
            ("text", "not an object"),
            ("none", "neither"),
            ("old", "replaced"),
            ("args", "list of texts"),
            ("both", "say which"),
            ("secret", "FLOW_NO_SUCH"),
        ];
        for (server, words) in cases {
            let error = settings.server(server).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(server), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_settings_is_told_with_its_line() {
        for (text, words) in [
            ("{\n  \"mcpServers\": {,}\n}", "line 2"),
            ("[]", "not an object"),
            ("{\"mcpServers\": []}", "`mcpServers`"),
        ] {
            let error = settings(text).1.unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(FILE), "{error}");
        }
        assert_eq!(settings("{}").1.unwrap().names().count(), 0);
    }
}
