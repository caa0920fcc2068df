//! A pseudo-terminal with a program on it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use filedescriptor::FileDescriptor;
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, QueueSelector, SpecialCodeIndex, tcflush, tcgetattr, tcgetpgrp,
};

use super::ahead::{Ahead, Reads};
use super::error::Error;
use super::lag::{Late, lag};
use super::lock;
use super::options::Size;
use crate::secret;

/// Input that waits for a program to read it.
pub(super) const MAX_WAITING: usize = 4 << 20;
/// What the kernel takes of a line while it edits lines itself, its end included.
pub(super) const MAX_LINE: usize = 4096;

/// After this long without output, no more is about to come at once.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// The near end of a pseudo-terminal.
pub(super) struct Pty {
    /// Reads and writes without waiting.
    master: File,
    /// The same terminal, for its size.
    control: Mutex<Box<dyn MasterPty + Send>>,
    /// Wakes the reader.
    alarm: PipeWriter,
    /// What was read and nobody has taken.
    pub(super) ahead: Ahead,
    /// What could not be written yet.
    waiting: Mutex<VecDeque<u8>>,
    /// The last interrupt has thrown away what was typed and not read.
    has_discarded: AtomicBool,
}

/// How the terminal treats input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    /// The kernel shows what is typed.
    pub(super) echo: bool,
    /// The kernel edits lines; else a program does, or takes single keys.
    pub(super) lines: bool,
}

/// A program that was started.
pub(super) struct Started {
    pub(super) pty: Pty,
    pub(super) alarm: PipeReader,
    pub(super) child: Box<dyn portable_pty::Child + Send + Sync>,
    pub(super) pid: i32,
}

impl Pty {
    /// Starts a program on a new terminal.
    pub(super) fn start(
        program: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        directory: &Path,
        size: Size,
    ) -> Result<Started, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Pty(error.to_string());
        let pair = native_pty_system()
            .openpty(pty_size(size))
            .map_err(|error| failed(&error))?;
        let raw = pair
            .master
            .as_raw_fd()
            .ok_or_else(|| Error::Pty("the terminal has no descriptor".to_owned()))?;
        let master = FileDescriptor::dup(&raw)
            .and_then(|descriptor| descriptor.as_file())
            .map_err(|error| failed(&error))?;
        rustix::io::ioctl_fionbio(&master, true).map_err(|error| failed(&error))?;
        let (alarm_end, alarm) = io::pipe().map_err(|error| failed(&error))?;
        for end in [alarm_end.as_fd(), alarm.as_fd()] {
            rustix::io::ioctl_fionbio(end, true).map_err(|error| failed(&error))?;
        }
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.cwd(directory);
        for name in secret::withheld() {
            command.env_remove(name);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair
            .slave
            .spawn_command(command)
            .map_err(|error| failed(&error))?;
        let pid = child
            .process_id()
            .and_then(|pid| i32::try_from(pid).ok())
            .ok_or_else(|| Error::Pty("the program has no process id".to_owned()))?;
        // Only the program holds the other end now, so that its end is seen here.
        drop(pair.slave);
        let pty = Pty {
            master,
            control: Mutex::new(pair.master),
            alarm,
            ahead: Ahead::default(),
            waiting: Mutex::default(),
            has_discarded: AtomicBool::new(false),
        };
        Ok(Started {
            pty,
            alarm: alarm_end,
            child,
            pid,
        })
    }

    /// Reads what there is, up to the buffer's size. `Ok(0)` at the end, `WouldBlock` when there
    /// is nothing yet.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut held = self.ahead.hold();
        if held.is_empty() {
            return self.read_now(buffer);
        }
        let taken = held.take(buffer);
        drop(held);
        self.ahead.took();
        taken
    }

    /// Lets a thread read on while much comes, until that is dropped.
    pub(super) fn reads_ahead(&self) -> Reads<'_> {
        self.ahead.reads()
    }

    /// Reads from the terminal itself, as only who holds what was read ahead may.
    pub(super) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match (&self.master).read(buffer) {
            // The other end has been closed by everyone.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            other => other,
        }
    }

    /// How much waits for a program that does not read.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Writes, now or as soon as the terminal takes it. Says how much waits for a program that
    /// does not read.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, usize> {
        lag(Late::Writer);
        let mut waiting = lock(&self.waiting);
        if self.interrupts(bytes) {
            self.discard(&mut waiting);
        }
        if waiting.len() + bytes.len() > MAX_WAITING {
            return Err(waiting.len());
        }
        match self.takes_returns() {
            true => waiting.extend(bytes.iter().map(|byte| match byte {
                b'\n' => b'\r',
                other => *other,
            })),
            false => waiting.extend(bytes),
        }
        self.flush_locked(&mut waiting);
        let left = waiting.len();
        drop(waiting);
        if left > 0 {
            self.ring();
        }
        Ok(left)
    }

    /// Whether the terminal gives a line end for a carriage return. zsh makes it give the reverse as
    /// well while it edits a line, so that a line end that is typed ahead then would reach the program
    /// that the line starts as a carriage return, which ends no line. The key Enter is one always.
    fn takes_returns(&self) -> bool {
        let modes = tcgetattr(&self.master).map(|modes| modes.input_modes);
        modes.is_ok_and(|it| it.contains(InputModes::ICRNL) && !it.contains(InputModes::IGNCR))
    }

    /// Whether the terminal takes one of these bytes for an interrupt.
    fn interrupts(&self, bytes: &[u8]) -> bool {
        const USUAL: u8 = 0x03;
        bytes.contains(&USUAL)
            && tcgetattr(&self.master).is_ok_and(|modes| {
                let key = modes.special_codes[SpecialCodeIndex::VINTR];
                modes.local_modes.contains(LocalModes::ISIG)
                    && !modes.local_modes.contains(LocalModes::NOFLSH)
                    && key == USUAL
            })
    }

    /// Throws away what nobody has read, as the terminal does with what has reached it when an
    /// interrupt does: that would wait behind the rest.
    fn discard(&self, waiting: &mut VecDeque<u8>) {
        let unread = !waiting.is_empty() || self.unread_in_kernel() > 0;
        self.has_discarded.store(unread, Ordering::Relaxed);
        if !waiting.is_empty() || !self.mode().lines {
            waiting.clear();
            let _ = tcflush(&self.master, QueueSelector::OFlush);
        }
    }

    /// Whether the last interrupt has thrown away what was typed and not read.
    pub(super) fn has_discarded(&self) -> bool {
        self.has_discarded.load(Ordering::Relaxed)
    }

    fn flush_locked(&self, waiting: &mut VecDeque<u8>) {
        while !waiting.is_empty() {
            let (first, _) = waiting.as_slices();
            match (&self.master).write(first) {
                Ok(0) => return,
                Ok(count) => {
                    waiting.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Nobody is left to read it.
                    waiting.clear();
                }
            }
        }
    }

    /// Wakes the reader.
    pub(super) fn ring(&self) {
        // A full pipe wakes it as well.
        let _ = (&self.alarm).write(&[1]);
    }

    /// Waits until something can be read, somebody rings, or the time is up; writes what waits
    /// meanwhile.
    pub(super) fn wait(&self, alarm: &PipeReader, read: bool, until: Option<Instant>) {
        loop {
            let writing = !lock(&self.waiting).is_empty();
            let mut interest = PollFlags::empty();
            let (is_there, is_read) = self.ahead.hold().stands();
            if is_there {
                self.flush_locked(&mut lock(&self.waiting));
                return;
            }
            if read && !is_read {
                interest |= PollFlags::IN;
            }
            if writing {
                interest |= PollFlags::OUT;
            }
            let timeout = until.map(|until| {
                let left = until.saturating_duration_since(Instant::now());
                // A little more, so that the moment has passed when it is looked at.
                let left = left + Duration::from_micros(50);
                Timespec {
                    tv_sec: left.as_secs() as i64,
                    tv_nsec: left.subsec_nanos().into(),
                }
            });
            let mut alarm_and_terminal = [
                PollFd::new(alarm, PollFlags::IN),
                PollFd::new(&self.master, interest),
            ];
            // Without interest the terminal would still tell that it was hung up, again and again.
            let set = if interest.is_empty() {
                &mut alarm_and_terminal[..1]
            } else {
                &mut alarm_and_terminal[..]
            };
            match poll(set, timeout.as_ref()) {
                Ok(0) => return,
                Err(Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let rung = !set[0].revents().is_empty();
            let events = set.get(1).map_or(PollFlags::empty(), PollFd::revents);
            if rung {
                let mut scrap = [0; 64];
                while matches!((&mut &*alarm).read(&mut scrap), Ok(count) if count > 0) {}
            }
            if events.contains(PollFlags::OUT) {
                self.flush_locked(&mut lock(&self.waiting));
            }
            let readable = events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
            if rung || read && readable {
                return;
            }
        }
    }

    /// How the terminal treats input at the moment.
    pub(super) fn mode(&self) -> Mode {
        match tcgetattr(&self.master) {
            Ok(modes) => Mode {
                echo: modes.local_modes.contains(LocalModes::ECHO),
                lines: modes.local_modes.contains(LocalModes::ICANON),
            },
            Err(_) => Mode {
                echo: false,
                lines: false,
            },
        }
    }

    /// The process group in front, which reads what is typed.
    pub(super) fn foreground(&self) -> Option<i32> {
        tcgetpgrp(&self.master)
            .ok()
            .map(|pid| pid.as_raw_nonzero().get())
    }

    /// Bytes typed that nobody has read.
    pub(super) fn unread(&self) -> u64 {
        let queued = lock(&self.waiting).len() as u64;
        queued + self.unread_in_kernel()
    }

    fn unread_in_kernel(&self) -> u64 {
        let name = lock(&self.control).tty_name();
        name.and_then(|name| {
            rustix::fs::open(
                &name,
                rustix::fs::OFlags::RDONLY
                    | rustix::fs::OFlags::NOCTTY
                    | rustix::fs::OFlags::NONBLOCK
                    | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            )
            .ok()
        })
        .and_then(|far| {
            // What was written may be on its way; whoever looks makes it arrive.
            is_readable(&far);
            rustix::io::ioctl_fionread(&far).ok()
        })
        .unwrap_or(0)
    }

    /// Whether the program has written something that was not read.
    pub(super) fn has_output(&self) -> bool {
        let held = self.ahead.hold();
        !held.is_empty() || is_readable(&self.master)
    }

    /// Waits a moment for more output; says whether there is some.
    pub(super) fn more_comes(&self) -> bool {
        readable_within(&self.master, MOMENT)
    }

    pub(super) fn resize(&self, size: Size) -> Result<(), Error> {
        lock(&self.control)
            .resize(pty_size(size))
            .map_err(|error| Error::Pty(error.to_string()))
    }
}

/// Whether something can be read at once.
fn is_readable(end: &impl AsFd) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    readable_within(end, at_once)
}

fn readable_within(end: &impl AsFd, time: Timespec) -> bool {
    let mut set = [PollFd::new(end, PollFlags::IN)];
    poll(&mut set, Some(&time)).is_ok_and(|ready| ready > 0)
}

fn pty_size(size: Size) -> PtySize {
    PtySize {
        rows: size.rows,
        cols: size.columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}
