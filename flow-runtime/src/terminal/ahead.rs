//! Reading on while what was read is taken apart.
//!
//! The kernel keeps some 12 KiB of what a program writes to a terminal, then the program waits. So a
//! second thread reads on as long as much comes, and ends when that is over.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{Builder, Scope};

use super::lock;
use super::pty::Pty;

/// This much at once is much: it is about what the kernel keeps.
pub(super) const MUCH: usize = 8 * 1024;
/// Bytes that wait to be taken, at most.
const ROOM: usize = 256 * 1024;
/// Bytes read at a time: more the kernel does not give.
const PIECE: usize = 4096;

/// What was read and not taken.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    held: Mutex<Held>,
    /// Told when there is room again.
    taken: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: VecDeque<u8>,
    /// A thread reads on.
    reads: bool,
    /// None may any more.
    over: bool,
}

/// Nobody reads on when this is gone.
pub(super) struct Reads<'a>(&'a Ahead);

impl Drop for Reads<'_> {
    fn drop(&mut self) {
        lock(&self.0.held).over = true;
        self.0.taken.notify_all();
    }
}

impl Ahead {
    /// Whoever reads from the terminal holds this, so that everything keeps its order.
    pub(super) fn hold(&self) -> MutexGuard<'_, Held> {
        lock(&self.held)
    }

    /// Lets a thread read on, until that is dropped.
    pub(super) fn reads(&self) -> Reads<'_> {
        Reads(self)
    }

    /// Tells that there is room.
    pub(super) fn took(&self) {
        self.taken.notify_one();
    }
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether there is something, and whether a thread reads on, which tells when there is.
    pub(super) fn stands(&self) -> (bool, bool) {
        (!self.is_empty(), self.reads)
    }

    /// Takes what was read first.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let taken = self.bytes.read(buffer);
        self.give_back();
        taken
    }

    /// Gives the room back that nobody needs.
    fn give_back(&mut self) {
        if self.bytes.is_empty() && !self.reads {
            self.bytes = VecDeque::new();
        }
    }
}

impl Pty {
    /// Reads on in a thread of its own, unless one does, as long as something comes.
    pub(super) fn read_ahead<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut held = self.ahead.hold();
        if held.reads || held.over {
            return;
        }
        let thread = Builder::new()
            .name("terminal-more".to_owned())
            .stack_size(64 * 1024);
        // Without it the program waits a little longer.
        held.reads = thread.spawn_scoped(scope, || self.fill()).is_ok();
    }

    fn fill(&self) {
        let mut piece = [0; PIECE];
        while self.more_comes() {
            let mut held = self.ahead.hold();
            while held.bytes.len() > ROOM && !held.over {
                held = match self.ahead.taken.wait(held) {
                    Ok(held) => held,
                    Err(poisoned) => poisoned.into_inner(),
                };
            }
            if held.over {
                break;
            }
            match self.read_now(&mut piece) {
                // Whoever takes it sees the end as well.
                Ok(0) => break,
                Ok(count) => {
                    let was_empty = held.is_empty();
                    held.bytes.extend(&piece[..count]);
                    drop(held);
                    if was_empty {
                        self.ring();
                    }
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(_) => break,
            }
        }
        let mut held = self.ahead.hold();
        held.reads = false;
        held.give_back();
        drop(held);
        // Whoever takes it looks at the terminal again.
        self.ring();
    }
}
