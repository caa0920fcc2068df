//! How a session ends, and everything it started.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Exit, Moment, Session, State};
use crate::terminal::{lock, process};

/// How long a program that was asked to end may rest before it is killed.
const GRACE: Duration = Duration::from_secs(1);
/// How long it may take when it is at work.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the system may take to end what was killed.
const KILLED: Duration = Duration::from_secs(5);

/// Waits for what was in front of a shell and was asked to end: it may outlive that.
async fn front_ends(front: i32) {
    let asked = Instant::now();
    while asked.elapsed() < GRACE && process::group_name(front).is_some() {
        tokio::time::sleep(LOOK / 5).await;
    }
}

impl Session {
    /// Asks everything the session started to end, and kills what does not.
    pub(in crate::terminal) async fn close(self: &Arc<Self>) -> bool {
        let exited = lock(&self.state).exit.is_some();
        if !exited {
            let front = self.pty.foreground().filter(|front| *front != self.pid);
            process::signal_group(self.pid, Signal::HUP);
            process::signal_group(self.pid, Signal::CONT);
            if let Some(front) = front {
                process::signal_group(front, Signal::HUP);
                process::signal_group(front, Signal::CONT);
            }
            self.ends().await;
            if let Some(front) = front {
                front_ends(front).await;
            }
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

    /// Nobody reads what the terminal gives any more: a session that cannot go on ends, and whoever waits
    /// is told so.
    pub(super) fn give_in(&self) {
        process::signal_group(self.pid, Signal::KILL);
        let moment = {
            let mut state = lock(&self.state);
            state.exit.get_or_insert(Exit::Signal(None));
            state.drained = true;
            state.interrupt = None;
            state.end_run();
            state.abandon();
            Moment {
                ended: true,
                interrupts: state.interrupts + 1,
                ..*self.moments.borrow()
            }
        };
        self.moments.send_replace(moment);
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
            let members = process::members(Some(self.pid), &self.nonce);
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

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        reason = "a test that cannot be set up has failed"
    )]
    use serde_json::{Value, json};

    use crate::terminal::{Options, Terminals};

    #[tokio::test]
    async fn whoever_waits_is_told_when_nobody_reads_any_more() {
        let terminals = Terminals::new(Options::default()).unwrap();
        let opened = terminals.call("open_terminal", json!({"shell": "sh"}));
        let id = opened.await.unwrap()["session_id"].clone();
        let session = terminals.session(id.as_str()).unwrap();
        let command = json!({"command": "echo begun; sleep 1000"});
        let (ran, ()) = tokio::join!(terminals.call("run_command", command), async {
            let begun = json!({"pattern": "^begun"});
            terminals.call("await_output", begun).await.unwrap();
            session.give_in();
        });
        assert_eq!(ran.unwrap()["status"], "shell_exited");
        let typed = terminals.call("send_input", json!({"keys": ["ctrl-c"]}));
        assert_eq!(typed.await.unwrap()["success"], Value::Bool(false));
        terminals.close_all().await;
    }
}
