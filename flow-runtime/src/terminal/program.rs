//! Programs that can be opened, checked before they are started.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::error::Error;

/// A shell whose prompts and commands can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// GNU bash.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
    /// dash, or another plain POSIX shell.
    Posix,
}

/// A program that exists and can be executed.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// As it was asked for.
    pub(super) asked: String,
    /// Where it is.
    pub(super) path: PathBuf,
    /// What it is, if it is a shell we know.
    pub(super) shell: Option<Shell>,
}

impl Program {
    /// Whether a command line is one of this program, by its name.
    pub(super) fn is_run_as(&self, line: &[u8]) -> bool {
        let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
        Path::new(OsStr::from_bytes(name)).file_name() == self.path.file_name()
    }

    /// Finds a program by name or path; a relative path starts from `directory`.
    pub(super) fn find(asked: &str, directory: &Path) -> Result<Program, Error> {
        let missing = || {
            let program = asked.to_owned();
            let first = asked.split_whitespace().next().filter(|it| *it != asked);
            match first.filter(|it| Program::find(it, directory).is_ok()) {
                Some(name) => Error::Arguments {
                    program,
                    name: name.to_owned(),
                },
                None => Error::NoProgram { program },
            }
        };
        if asked.is_empty() || asked.contains('\0') {
            return Err(missing());
        }
        let path = if asked.contains('/') {
            directory.join(asked)
        } else {
            find(asked).ok_or_else(missing)?
        };
        let unusable = |reason: &str| Error::BadProgram {
            program: asked.to_owned(),
            reason: reason.to_owned(),
        };
        let metadata = fs::metadata(&path).map_err(|_| missing())?;
        if !metadata.is_file() {
            return Err(unusable("it is not a file"));
        }
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err(unusable("it is not executable"));
        }
        check_format(&path).map_err(|reason| unusable(&reason))?;
        let shell = shell(&path);
        Ok(Program {
            asked: asked.to_owned(),
            path,
            shell,
        })
    }
}

/// The program of this name on the search path.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| {
            fs::metadata(candidate).is_ok_and(|metadata| {
                metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
            })
        })
}

/// Whether the system can execute this file. A spawn does not tell: the child would fail, inside
/// the terminal.
fn check_format(path: &Path) -> Result<(), String> {
    let mut file = fs::File::open(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut start = [0; 256];
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) => return Err(format!("it cannot be read: {error}")),
        }
    }
    let start = &start[..length];
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let interpreter = line.split_whitespace().next().unwrap_or_default();
        return match fs::metadata(interpreter) {
            Ok(found) if found.is_file() => Ok(()),
            _ => Err(format!("its interpreter `{interpreter}` does not exist")),
        };
    }
    const FORMATS: &[&[u8]] = &[
        b"\x7fELF",
        b"\xcf\xfa\xed\xfe",
        b"\xce\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
    ];
    if FORMATS.iter().any(|format| start.starts_with(format)) {
        Ok(())
    } else {
        Err("it is neither a program nor a script that names its interpreter (`#!`)".to_owned())
    }
}

/// Which shell a program is. Whatever is called `sh` behaves like one.
pub(super) fn shell(path: &Path) -> Option<Shell> {
    match path.file_name()?.to_str()? {
        "bash" => Some(Shell::Bash),
        "zsh" => Some(Shell::Zsh),
        "fish" => Some(Shell::Fish),
        "sh" | "dash" | "ash" => Some(Shell::Posix),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use super::*;

    fn refused(name: &str, content: &[u8], mode: u32) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let asked = path.to_str().unwrap();
        Program::find(asked, Path::new("/"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn what_cannot_be_executed_is_refused_before_it_is_started() {
        let message = refused("a", b"#!/no/such/thing -x\n", 0o755);
        assert!(
            message.contains("`/no/such/thing` does not exist"),
            "{message}"
        );
        let message = refused("a", b"echo hi\n", 0o755);
        assert!(message.contains("`#!`"), "{message}");
        let message = refused("a", b"#!/bin/sh\n", 0o644);
        assert!(message.contains("not executable"), "{message}");
        assert!(Program::find("no-such-program-at-all", Path::new("/")).is_err());
        let arguments = Program::find("sh -l", Path::new("/")).unwrap_err();
        let arguments = arguments.to_string();
        assert!(arguments.contains("to give `sh` arguments"), "{arguments}");
        let unknown = Program::find("no-such-program -l", Path::new("/")).unwrap_err();
        assert!(matches!(unknown, Error::NoProgram { .. }), "{unknown}");
        assert!(Program::find("/", Path::new("/")).is_err());
        assert!(Program::find("", Path::new("/")).is_err());
    }

    #[test]
    fn shells_are_known_by_their_file() {
        let bash = Program::find("bash", Path::new("/")).unwrap();
        assert_eq!(bash.shell, Some(Shell::Bash));
        let cat = Program::find("cat", Path::new("/")).unwrap();
        assert_eq!(cat.shell, None);
    }
}
