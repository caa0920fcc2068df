//! How a session ends, and everything it started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Session, State};
use crate::terminal::{lock, process};

/// How long a program that was asked to end may rest before it is killed.
const GRACE: Duration = Duration::from_secs(1);
/// How long it may take when it is at work.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the system may take to end what was killed.
const KILLED: Duration = Duration::from_secs(5);

impl Session {
    /// Asks everything the session started to end, and kills what does not.
    pub(in crate::terminal) async fn close(self: &Arc<Self>) -> bool {
        let exited = lock(&self.state).exit.is_some();
        if !exited {
            process::signal_group(self.pid, Signal::HUP);
            process::signal_group(self.pid, Signal::CONT);
            if let Some(front) = self.pty.foreground().filter(|front| *front != self.pid) {
                process::signal_group(front, Signal::HUP);
                process::signal_group(front, Signal::CONT);
            }
            self.ends().await;
        }
        let session = Arc::clone(self);
        let finish = tokio::task::spawn_blocking(move || session.finish());
        finish.await.unwrap_or(false)
    }

    /// Waits for a program that was asked to end. A shell at its prompt may have missed that, as it
    /// may miss ctrl-c: any signal makes it look again.
    async fn ends(&self) {
        let asked = Instant::now();
        let mut rested = Duration::ZERO;
        let mut moments = self.moments.subscribe();
        while rested < GRACE && asked.elapsed() < PATIENCE {
            let ended = moments.wait_for(|moment| moment.ended);
            if tokio::time::timeout(LOOK, ended).await.is_ok() {
                return;
            }
            if process::waits(self.pid) != Some(false) {
                rested += LOOK;
                process::signal(self.pid, Signal::CHILD);
            }
        }
    }

    /// Kills what is left and waits until nothing is. Says whether nothing is.
    pub(in crate::terminal) fn finish(&self) -> bool {
        let mut gone = true;
        // What is being started while others are killed is found in the next round.
        for _ in 0..10 {
            let exited = lock(&self.state).exit.is_some();
            if !exited {
                process::signal_group(self.pid, Signal::KILL);
                process::signal(self.pid, Signal::KILL);
            }
            let members = process::members(self.pid, &self.nonce);
            for pid in &members {
                process::signal(*pid, Signal::KILL);
            }
            gone = process::wait(&members, KILLED);
            if members.is_empty() {
                break;
            }
        }
        lock(&self.state).closed = true;
        self.pty.ring();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
        lock(&self.state).abandon();
        gone
    }
}

impl State {
    /// Nobody will be answered any more.
    pub(super) fn abandon(&mut self) {
        self.waiters.clear();
        self.run = None;
    }
}
