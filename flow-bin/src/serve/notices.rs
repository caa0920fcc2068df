//! The kernel's word that something in a directory has changed, where it gives it.

use std::path::Path;

pub(super) use kernel::Notices;

#[cfg(target_os = "linux")]
mod kernel {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;

    use rustix::fs::{inotify, statfs};
    use rustix::io::Errno;

    use super::Path;

    /// File systems whose every change passes through this kernel: the ext family, XFS, Btrfs,
    /// F2FS, ZFS, tmpfs, ramfs, overlayfs. Of changes on others nobody here may be told.
    const LOCAL: [u32; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0x0102_1994,
        0x8584_58f6,
        0x794c_7630,
    ];

    /// Directories that the kernel tells of.
    #[derive(Debug)]
    pub(crate) struct Notices(Option<OwnedFd>);

    impl Notices {
        pub(crate) fn new() -> Self {
            let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
            Notices(inotify::init(flags).ok())
        }

        /// Whether every change in a directory is told of from now on; not what is in directories
        /// in it.
        pub(crate) fn watch(&self, directory: &Path) -> bool {
            let changes = inotify::WatchFlags::MODIFY
                | inotify::WatchFlags::ATTRIB
                | inotify::WatchFlags::CREATE
                | inotify::WatchFlags::DELETE
                | inotify::WatchFlags::MOVE
                | inotify::WatchFlags::DELETE_SELF
                | inotify::WatchFlags::MOVE_SELF
                | inotify::WatchFlags::ONLYDIR;
            let is_local = |directory: &Path| {
                statfs(directory).is_ok_and(|found| {
                    u32::try_from(found.f_type).is_ok_and(|kind| LOCAL.contains(&kind))
                })
            };
            self.0.as_ref().is_some_and(|notices| {
                is_local(directory) && inotify::add_watch(notices, directory, changes).is_ok()
            })
        }

        /// Whether something has been told of.
        pub(crate) fn came(&self) -> bool {
            let Some(notices) = &self.0 else {
                return false;
            };
            let mut room = [MaybeUninit::uninit(); 512];
            match inotify::Reader::new(notices, &mut room).next() {
                Err(Errno::AGAIN) => false,
                // What cannot be read is taken for news.
                Ok(_) | Err(_) => true,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod kernel {
    use super::Path;

    /// Nobody tells of anything here.
    #[derive(Debug)]
    pub(crate) struct Notices;

    impl Notices {
        pub(crate) fn new() -> Self {
            Notices
        }

        pub(crate) fn watch(&self, _directory: &Path) -> bool {
            false
        }

        pub(crate) fn came(&self) -> bool {
            false
        }
    }
}
