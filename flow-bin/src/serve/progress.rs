//! What happens in a run, told to the client that waits for it: progress when it gave a token for
//! it, else log messages. In order, and nothing after the answer.
//!
//! Runs do not wait for clients. What a client has not taken yet is kept, small, up to a limit;
//! one that reads gets all of it, and one that does not is told how much it missed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flow_model::graph::{Form, Graph, Target};
use flow_runtime::journal::RunId;
use flow_runtime::run::{Effect, Ending, Finish, Onward, Place, Status};
use rmcp::model::{NotificationMetaObject, ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::log;
use super::tool::Call;

/// Bytes of news that are kept for a client that does not take them: those of about a hundred
/// thousand states.
const MOST_UNTOLD: usize = 32 * 1024 * 1024;

/// The frame of the workflow itself.
const MAIN: u32 = 0;

/// Something worth telling.
#[derive(Debug)]
pub(super) enum News {
    /// A run begins, with these parameters, secrets left out.
    Started { parameters: Value },
    /// A state begins.
    Entered { place: Place },
    /// A state ends.
    Left {
        place: Place,
        outcome: Ending,
        next: Onward,
    },
    /// The run ends.
    Finished {
        status: Status,
        error: Option<String>,
        error_state: Option<String>,
    },
}

impl News {
    /// What an effect has to say, if anything: states, those of its tasks too, and the end.
    pub(super) fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Entered(place) => Some(News::Entered {
                place: place.clone(),
            }),
            Effect::Left {
                place,
                outcome,
                next,
            } => Some(News::Left {
                place: place.clone(),
                outcome: outcome.clone(),
                next: next.clone(),
            }),
            Effect::Finish(Finish { status, error, .. }) => Some(News::Finished {
                status: *status,
                error: error.as_ref().map(|error| error.message.clone()),
                error_state: error.as_ref().and_then(|error| error.step.clone()),
            }),
            Effect::Act(_)
            | Effect::Sleep { .. }
            | Effect::Stop(_)
            | Effect::Told { .. }
            | Effect::Yield => None,
        }
    }

    /// Whether it may be left out for a client that does not read.
    fn is_step(&self) -> bool {
        matches!(self, News::Entered { .. } | News::Left { .. })
    }

    /// The bytes it takes while it waits to be told, roughly.
    fn size(&self) -> usize {
        let texts = match self {
            News::Started { .. } | News::Finished { .. } => 0,
            News::Entered { place } => place.node.len() + place.within.len(),
            News::Left {
                place,
                outcome,
                next,
            } => {
                let next = next.node().map_or(0, str::len);
                let place = place.node.len() + place.within.len();
                place + outcome.error().map_or(0, str::len) + next
            }
        };
        size_of::<News>() + texts
    }
}

/// Where news of a run is put for one client. Putting it there never waits.
#[derive(Clone)]
pub(super) struct Outbox {
    news: mpsc::UnboundedSender<News>,
    shared: Arc<Backlog>,
}

/// What a client has not been told.
#[derive(Default)]
struct Backlog {
    /// Bytes that wait.
    untold: AtomicUsize,
    /// News that was left out since the last that was told.
    skipped: AtomicUsize,
}

impl Outbox {
    fn new() -> (Self, mpsc::UnboundedReceiver<News>) {
        let (news, untold) = mpsc::unbounded_channel();
        let shared = Arc::default();
        (Outbox { news, shared }, untold)
    }

    /// Has something told.
    pub(super) fn put(&self, news: News) {
        let size = news.size();
        let untold = self.shared.untold.fetch_add(size, Ordering::Relaxed);
        if news.is_step() && untold + size > MOST_UNTOLD {
            self.shared.untold.fetch_sub(size, Ordering::Relaxed);
            self.shared.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // Whoever tells it may have stopped with its client.
        let _ = self.news.send(news);
    }
}

/// Tells a client the news of one run.
pub(crate) struct Teller {
    outbox: Outbox,
    telling: JoinHandle<()>,
}

/// How a client wants to be told.
enum Channel {
    Progress(ProgressToken),
    Log(log::Wanted),
}

impl Teller {
    /// Somebody who tells the caller; `None` when it does not want to be told.
    pub(super) fn new(call: &Call, graph: &Graph, run: RunId) -> Option<Self> {
        let channel = match call.context.meta.get_progress_token() {
            Some(token) => Channel::Progress(token),
            None => Channel::Log(call.log?),
        };
        let (outbox, untold) = Outbox::new();
        let peer = call.context.peer.clone();
        let story = Story::new(graph, run);
        let telling = tokio::spawn(tell(untold, outbox.shared.clone(), peer, channel, story));
        Some(Teller { outbox, telling })
    }

    /// Whether the caller wants to be told.
    pub(super) fn is_wanted(call: &Call) -> bool {
        call.context.meta.get_progress_token().is_some() || call.log.is_some()
    }

    pub(super) fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }

    /// Returns when everything has been told.
    pub(super) async fn finish(self) {
        drop(self.outbox);
        // A client that went away is not told.
        let _ = self.telling.await;
    }
}

async fn tell(
    mut untold: mpsc::UnboundedReceiver<News>,
    shared: Arc<Backlog>,
    peer: Peer<RoleServer>,
    channel: Channel,
    mut story: Story,
) {
    while let Some(news) = untold.recv().await {
        shared.untold.fetch_sub(news.size(), Ordering::Relaxed);
        let skipped = shared.skipped.swap(0, Ordering::Relaxed);
        // Whoever ended the run hears of it too, beside the one that drives it.
        let is_end = matches!(news, News::Finished { .. });
        let told = story.tell(news, skipped);
        if !send(&peer, &channel, told).await || is_end {
            return;
        }
    }
}

/// What has been told of a run so far.
struct Story {
    flow_name: String,
    form: Form,
    run_id: String,
    initial_state: Option<String>,
    descriptions: HashMap<String, String>,
    told: usize,
    total: usize,
    last_state: Option<String>,
    /// The state that failed last without a way on.
    failed_state: Option<String>,
}

/// News as a client reads it.
#[derive(Debug, PartialEq)]
struct Told {
    message: String,
    details: Map<String, Value>,
    told: usize,
    total: usize,
    is_bad: bool,
}

impl Story {
    fn new(graph: &Graph, run: RunId) -> Self {
        let initial = match graph.body.entry {
            Target::Node(index) => graph.body.nodes.get(usize::from(index)),
            Target::Complete => None,
        };
        let described = graph.nodes().filter_map(|node| {
            let description = node.description.as_deref()?;
            Some((node.id.to_string(), description.to_owned()))
        });
        Story {
            flow_name: graph.name.to_string(),
            form: graph.form,
            run_id: run.to_string(),
            initial_state: initial.map(|node| node.id.to_string()),
            descriptions: described.collect(),
            told: 0,
            total: 2 * graph.body.nodes.len() + 1,
            last_state: None,
            failed_state: None,
        }
    }

    /// What the next news is for the client, after so many that were left out.
    fn tell(&mut self, news: News, skipped: usize) -> Told {
        if skipped > 0 {
            self.told += skipped;
            // It may have been among what was left out.
            self.last_state = None;
            self.failed_state = None;
        }
        let name = &self.flow_name;
        let mut is_bad = false;
        let (message, details) = match news {
            News::Started { parameters } => {
                let details = json!({
                    "parameters": parameters,
                    "initial_state": self.initial_state,
                });
                (format!("Starting workflow: {name}"), details)
            }
            News::Entered { place } => {
                self.told += 1;
                let state = place.name();
                let details = json!({
                    "state_id": state,
                    "state_description": self.descriptions.get(&place.node),
                });
                let message = format!("Entering state: {state}");
                if place.frame == MAIN {
                    self.last_state = Some(state);
                }
                (message, details)
            }
            News::Left {
                place,
                outcome,
                next,
            } => {
                self.told += 1;
                let state = place.name();
                let details = json!({
                    "state_id": state,
                    "next_state": next.node(),
                    "status": outcome.word(),
                    "error": outcome.error(),
                });
                let is_over = next == Onward::Nowhere;
                let verb = match outcome {
                    Ending::Failure(_) | Ending::Stuck(_) | Ending::Timeout(_) if is_over => {
                        "Failed"
                    }
                    Ending::Stopped => "Stopped",
                    _ => "Completed",
                };
                let message = format!("{verb} state: {state}");
                if place.frame == MAIN {
                    if verb == "Failed" {
                        self.failed_state = Some(state.clone());
                    }
                    self.last_state = Some(state);
                }
                (message, details)
            }
            News::Finished {
                status,
                error,
                error_state,
            } => {
                let (status, verb) = match status {
                    Status::Completed | Status::Running => ("completed", "Completed workflow"),
                    Status::Failed => ("failed", "Workflow failed"),
                    Status::Cancelled => ("cancelled", "Workflow cancelled"),
                };
                is_bad = status != "completed";
                self.told += 1;
                let mut details = json!({"status": status, "error": error});
                if is_bad {
                    let failed = self.failed_state.clone().or(error_state);
                    details["error_state"] = json!(failed.or(self.last_state.clone()));
                } else {
                    self.told = self.told.max(self.total);
                    self.total = self.told;
                    // As the answer says it.
                    details["final_state"] = match self.form {
                        Form::Steps => json!("completed"),
                        Form::States => json!(self.last_state),
                    };
                }
                (format!("{verb}: {name}"), details)
            }
        };
        let mut all = Map::new();
        all.insert("flow_name".into(), json!(self.flow_name));
        all.insert("run_id".into(), json!(self.run_id));
        if let Value::Object(details) = details {
            all.extend(details);
        }
        if skipped > 0 {
            all.insert("skipped".into(), json!(skipped));
        }
        // A loop visits more states than there are, and the end is still to come.
        let to_come = usize::from(!all.contains_key("final_state") && !is_bad);
        self.total = self.total.max(self.told + to_come);
        Told {
            message,
            details: all,
            told: self.told,
            total: self.total,
            is_bad,
        }
    }
}

/// Sends one message; false when the client is gone.
#[expect(clippy::cast_precision_loss, reason = "a count of states")]
async fn send(peer: &Peer<RoleServer>, channel: &Channel, told: Told) -> bool {
    match channel {
        Channel::Progress(token) => {
            let mut progress = ProgressNotificationParam::new(token.clone(), told.told as f64)
                .with_total(told.total as f64)
                .with_message(told.message);
            progress.meta =
                serde_json::from_value::<NotificationMetaObject>(told.details.into()).ok();
            peer.notify_progress(progress).await.is_ok()
        }
        Channel::Log(wanted) => {
            log::send(peer, *wanted, told.is_bad, told.message, told.details).await
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it panics")]

    use super::*;

    fn entered() -> News {
        let place = Place {
            frame: MAIN,
            node: "a".repeat(1000),
            within: String::new(),
        };
        News::Entered { place }
    }

    #[test]
    fn what_a_client_does_not_take_is_bounded_and_its_end_is_kept() {
        let (outbox, mut untold) = Outbox::new();
        let most = MOST_UNTOLD / entered().size();
        for _ in 0..most + 5 {
            outbox.put(entered());
        }
        outbox.put(News::Finished {
            status: Status::Completed,
            error: None,
            error_state: None,
        });
        assert_eq!(untold.len(), most + 1);
        assert_eq!(outbox.shared.skipped.load(Ordering::Relaxed), 5);
        let mut last = None;
        while let Ok(news) = untold.try_recv() {
            last = Some(news);
        }
        assert!(matches!(last, Some(News::Finished { .. })));
    }

    #[test]
    fn numbers_go_on_over_what_was_left_out() {
        let graph = flow_model::compile(
            flow_model::source::Source::new("x.yaml", "steps: [{id: a, type: return}]"),
            &flow_model::loader::NoLoader,
        );
        let graph = graph.into_graph().unwrap();
        let mut story = Story::new(&graph, RunId::new(0, 0));
        let first = story.tell(entered(), 0);
        let second = story.tell(entered(), 7);
        assert_eq!((first.told, second.told), (1, 9));
        assert_eq!(second.details["skipped"], 7);
        assert!(second.total > second.told);
    }
}
