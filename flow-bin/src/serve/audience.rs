//! Calls that listen to runs: they are told what happens and asked what a run asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow_model::graph::Graph;
use flow_runtime::host::{Answer, Boxed, Host, People, Question, Valid, Watch};
use flow_runtime::journal::{Journal, RunId};
use flow_runtime::run::Effect;
use rmcp::{Peer, RoleServer};

use super::elicit;
use super::progress::{News, Outbox, Teller};
use super::tool::Call;

/// Everybody who listens to a run of this process.
pub(crate) struct Audience {
    journal: Journal,
    listeners: Mutex<Listeners>,
}

#[derive(Default)]
struct Listeners {
    by_run: HashMap<RunId, Vec<Listener>>,
    /// Tells listeners apart.
    last: u64,
}

struct Listener {
    number: u64,
    outbox: Option<Outbox>,
    /// Who can be asked while the call is open; what was asked then may be answered later.
    asks: Option<Peer<RoleServer>>,
}

/// A call while it listens to a run.
pub(crate) struct Listening {
    audience: Arc<Audience>,
    run: RunId,
    number: u64,
    teller: Option<Teller>,
}

impl Audience {
    pub(crate) fn new(journal: Journal) -> Self {
        Audience {
            journal,
            listeners: Mutex::default(),
        }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a call listen to a run: it is told what happens, and asked what the run asks if the
    /// client of its time answers requests.
    pub(crate) fn listen(
        self: &Arc<Self>,
        run: RunId,
        call: &Call,
        teller: Option<Teller>,
        asks: bool,
    ) -> Listening {
        let asks = asks && call.can_ask() && !call.is_stateless;
        let mut listeners = self.listeners();
        listeners.last += 1;
        let number = listeners.last;
        listeners.by_run.entry(run).or_default().push(Listener {
            number,
            outbox: teller.as_ref().map(Teller::outbox),
            asks: asks.then(|| call.context.peer.clone()),
        });
        Listening {
            audience: Arc::clone(self),
            run,
            number,
            teller,
        }
    }

    /// Lets a call that goes on with a run hear what happens to it until it is answered; `None` when
    /// its client does not want to be told.
    pub(crate) fn overhear(
        self: &Arc<Self>,
        host: &Host,
        run: RunId,
        call: &Call,
    ) -> Option<Listening> {
        if !Teller::is_wanted(call) {
            return None;
        }
        let program = host.program_of(run).ok()?;
        let teller = Teller::new(call, program.graph(), run);
        Some(self.listen(run, call, teller, false))
    }

    /// Whom a run can ask: a call that listens to it, or to the run that called it.
    fn askable(&self, run: RunId) -> Option<Peer<RoleServer>> {
        let mut run = run;
        loop {
            let found = self.listeners().by_run.get(&run).and_then(|listeners| {
                let mut asked = listeners.iter();
                asked.find_map(|listener| listener.asks.clone())
            });
            if found.is_some() {
                return found;
            }
            run = self.journal.run(run).ok()?.parent?;
        }
    }
}

impl Listening {
    /// Tells the client something that it should know first.
    pub(super) fn tell(&self, news: News) {
        if let Some(teller) = &self.teller {
            teller.outbox().put(news);
        }
    }

    /// Stops listening; everything that happened before has been told then.
    pub(crate) async fn stop(mut self) {
        self.leave();
        if let Some(teller) = self.teller.take() {
            teller.finish().await;
        }
    }

    fn leave(&self) {
        let mut listeners = self.audience.listeners();
        if let Some(list) = listeners.by_run.get_mut(&self.run) {
            list.retain(|listener| listener.number != self.number);
            if list.is_empty() {
                listeners.by_run.remove(&self.run);
            }
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Watch for Audience {
    fn effect(&self, run: RunId, _graph: &Graph, effect: &Effect) {
        let listeners = self.listeners();
        let Some(list) = listeners.by_run.get(&run) else {
            return;
        };
        for outbox in list.iter().filter_map(|listener| listener.outbox.as_ref()) {
            if let Some(news) = News::of(effect) {
                outbox.put(news);
            }
        }
    }

    fn output(&self, _run: RunId, _step: &str, _text: &[u8]) {}
}

impl People for Audience {
    fn ask<'a>(&'a self, question: Question<'a>) -> Boxed<'a, Answer> {
        self.ask_until(question, &|_| Ok(()))
    }

    fn ask_until<'a>(&'a self, question: Question<'a>, valid: Valid<'a>) -> Boxed<'a, Answer> {
        Box::pin(async move {
            // The form outlives the call: whoever fills it in later is heard as well, and asked
            // again if need be.
            let Some(peer) = self.askable(question.run) else {
                return Answer::Later;
            };
            let mut complaint = question.complaint.map(str::to_owned);
            loop {
                let form = elicit::form(question.message, question.kind, complaint.as_deref());
                let Some(form) = form else {
                    return Answer::Later;
                };
                let Some(said) = elicit::ask(peer.clone(), form).await else {
                    // The client is gone or cannot ask after all.
                    return Answer::Later;
                };
                match elicit::answer(question.kind, &said).checked(valid) {
                    Answer::Unfit(reason) => complaint = Some(reason),
                    answer => return answer,
                }
            }
        })
    }
}
