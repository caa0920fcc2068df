//! How a session ends, and everything it started.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::{Session, State};
use crate::terminal::{lock, process};

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(1);
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
            let mut moments = self.moments.subscribe();
            let ended = moments.wait_for(|moment| moment.ended);
            let _ = tokio::time::timeout(GRACE, ended).await;
        }
        let session = Arc::clone(self);
        let finish = tokio::task::spawn_blocking(move || session.finish());
        finish.await.unwrap_or(false)
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
