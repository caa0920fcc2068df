//! Directories of sessions' own, and what dead processes have left of them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::process::{Pid, test_kill_process};

use super::process;

/// What the names of the directories begin with.
const PREFIX: &str = "flow-terminal-";
/// A file that is locked as long as the process lives whose directory it is.
const OWNER: &str = "owner";

/// A directory of a session's own: the startup file of its shell and the shell's environment, which
/// may hold secrets. Nobody else can read it, and it goes with the session.
#[derive(Debug)]
pub(super) struct PrivateDirectory {
    pub(super) path: PathBuf,
    _owner: File,
}

impl PrivateDirectory {
    pub(super) fn create(name: &str, session: &str) -> io::Result<PrivateDirectory> {
        PrivateDirectory::create_in(&std::env::temp_dir(), name, session)
    }

    fn create_in(parent: &Path, name: &str, session: &str) -> io::Result<PrivateDirectory> {
        let path = parent.join(format!("{PREFIX}{name}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let owner = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path.join(".owner"))
            .and_then(|mut owner| {
                owner.lock()?;
                writeln!(owner, "{} {session}", std::process::id())?;
                // It has its name from the moment it is locked, so that it is never found unlocked
                // while this process lives.
                fs::rename(path.join(".owner"), path.join(OWNER))?;
                Ok(owner)
            });
        match owner {
            Ok(_owner) => Ok(PrivateDirectory { path, _owner }),
            Err(error) => {
                let _ = fs::remove_dir_all(&path);
                Err(error)
            }
        }
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The process that has a session, as long as it lives: this one, or another of the same user with
/// the same temporary directory.
pub(crate) fn owner_of(session: &str) -> Option<u32> {
    owner_in(&std::env::temp_dir(), session)
}

fn owner_in(parent: &Path, session: &str) -> Option<u32> {
    let entries = fs::read_dir(parent).ok()?;
    entries.flatten().find_map(|entry| {
        let name = entry.file_name();
        name.to_str().filter(|name| name.starts_with(PREFIX))?;
        let mut owner = owner_file(&entry.path()).ok()??;
        let mut written = String::new();
        owner.read_to_string(&mut written).ok()?;
        let (process, owned) = written.trim_end().split_once(' ')?;
        if owned != session {
            return None;
        }
        // One that can be locked is nobody's any more; whoever tidies up locks it as well.
        let process: i32 = process.parse().ok()?;
        let lives = test_kill_process(Pid::from_raw(process)?).is_ok();
        let is_held = lives && owner.try_lock().is_err();
        u32::try_from(process).ok().filter(|_| is_held)
    })
}

/// The file that the owner of a directory keeps locked; nothing where another user made it.
fn owner_file(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let directory = openat(
        CWD,
        path,
        flags | OFlags::DIRECTORY | OFlags::RDONLY,
        Mode::empty(),
    )?;
    let owner = openat(&directory, OWNER, flags | OFlags::RDWR, Mode::empty())?;
    if !is_own(&directory, FileType::Directory)? || !is_own(&owner, FileType::RegularFile)? {
        return Ok(None);
    }
    Ok(Some(File::from(owner)))
}

/// Removes what processes have left that were killed, once in the life of this one and beside
/// whatever else it does.
pub(super) fn sweep_once() {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        let sweeping = std::thread::Builder::new().name("flow-sweep".to_owned());
        // Where no thread can be had, there are greater worries than old files.
        let _ = sweeping.spawn(|| sweep(&std::env::temp_dir()));
    });
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            // What cannot be removed now is found again by the next process.
            let _ = remove_left(&entry.path());
        }
    }
}

/// Removes a directory whose owner is certainly gone. Whatever else bears such a name stays.
fn remove_left(path: &Path) -> io::Result<()> {
    let Some(owner) = owner_file(path)? else {
        return Ok(());
    };
    if owner.try_lock().is_err() {
        return Ok(());
    }
    // What has outlived the terminal, as `nohup` lets it, is known by the session's own word.
    let name = path.file_name().and_then(OsStr::to_str);
    if let Some(marker) = name.and_then(|name| name.strip_prefix(PREFIX)) {
        process::end_marked(marker);
    }
    // The lock file goes last: what is interrupted here is still known to be nobody's.
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            _ if entry.file_name() == OWNER => {}
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_file(path.join(OWNER))?;
    fs::remove_dir(path)
}

/// Whether a file is of a type, and this user's.
fn is_own(file: &OwnedFd, kind: FileType) -> io::Result<bool> {
    let status = fstat(file)?;
    let user = rustix::process::geteuid().as_raw();
    Ok(FileType::from_raw_mode(status.st_mode) == kind && status.st_uid == user)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use super::*;

    /// A directory as a killed process leaves it.
    fn left(parent: &Path, name: &str) -> PathBuf {
        let made = PrivateDirectory::create_in(parent, name, "t-left").unwrap();
        fs::write(made.path.join("bashrc"), "").unwrap();
        let kept = parent.join("kept");
        fs::rename(&made.path, &kept).unwrap();
        let path = made.path.clone();
        drop(made);
        fs::rename(&kept, &path).unwrap();
        path
    }

    #[test]
    fn a_session_is_its_owners_as_long_as_that_lives() {
        let parent = tempfile::tempdir().unwrap();
        left(parent.path(), "left");
        let live = PrivateDirectory::create_in(parent.path(), "live", "t-live").unwrap();
        let own = Some(std::process::id());
        assert_eq!(owner_in(parent.path(), "t-live"), own);
        assert_eq!(owner_in(parent.path(), "t-left"), None);
        assert_eq!(owner_in(parent.path(), "t-liv"), None);
        drop(live);
        assert_eq!(owner_in(parent.path(), "t-live"), None);
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let left = left(parent.path(), "left");
        fs::create_dir(left.join("folder")).unwrap();
        fs::write(left.join("folder/file"), "").unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env(process::MARKER, "left")
            .spawn()
            .unwrap();
        // Until it has become its program it carries nothing.
        let pid = i32::try_from(child.id()).unwrap();
        while cfg!(target_os = "linux") && !process::members(None, "left").contains(&pid) {
            std::thread::yield_now();
        }
        sweep(parent.path());
        assert!(!left.exists());
        if cfg!(not(target_os = "linux")) {
            child.kill().unwrap();
        }
        let ended = child.wait().unwrap();
        assert_eq!(ended.code(), None, "by a signal");
    }

    #[test]
    fn what_somebody_has_and_what_is_not_known_to_be_left_stays() {
        let parent = tempfile::tempdir().unwrap();
        let live = PrivateDirectory::create_in(parent.path(), "live", "t-live").unwrap();
        let unknown = parent.path().join(format!("{PREFIX}unknown"));
        fs::create_dir(&unknown).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let target = left(elsewhere.path(), "target");
        let link = parent.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let linked = left(parent.path(), "linked");
        fs::remove_file(linked.join(OWNER)).unwrap();
        std::os::unix::fs::symlink(target.join(OWNER), linked.join(OWNER)).unwrap();
        let file = parent.path().join(format!("{PREFIX}file"));
        fs::write(&file, "").unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        sweep(parent.path());
        for path in [&live.path, &unknown, &target, &link, &linked, &file, &other] {
            assert!(path.symlink_metadata().is_ok(), "{}", path.display());
        }
        assert!(target.join("bashrc").exists());
        let path = live.path.clone();
        drop(live);
        assert!(!path.exists());
    }
}
