//! What happens in a run, told to the client that waits for it: progress when it gave a token for
//! it, else log messages. In order, and nothing after the answer.

use flow_model::graph::{Graph, Node};
use flow_runtime::journal::RunId;
use flow_runtime::run::{Effect, Finish, Onward, Status};
use rmcp::model::{NotificationMetaObject, ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::log;
use super::tool::Call;

/// Steps that a slow client may lag behind; more are left out.
const MOST_UNTOLD: usize = 256;

/// Something worth telling.
pub(super) struct News {
    message: String,
    details: Map<String, Value>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Start,
    Step,
    Done,
    Failed,
}

impl News {
    fn new(kind: Kind, message: String, details: Value) -> Self {
        let details = match details {
            Value::Object(details) => details,
            _ => Map::new(),
        };
        News {
            message,
            details,
            kind,
        }
    }

    /// A run begins, with these parameters, secrets left out.
    pub(super) fn started(graph: &Graph, parameters: Value, run: RunId) -> Self {
        let name = &graph.name;
        let initial = match graph.body.entry {
            flow_model::graph::Target::Node(index) => graph.body.nodes.get(usize::from(index)),
            _ => None,
        };
        let details = json!({
            "flow_name": name,
            "run_id": run.to_string(),
            "parameters": parameters,
            "initial_state": initial.map(|node| node.id.as_ref()),
        });
        News::new(Kind::Start, format!("Starting workflow: {name}"), details)
    }

    /// What an effect has to say, if anything: states of the workflow itself, and its end.
    pub(super) fn of(run: RunId, graph: &Graph, effect: &Effect) -> Option<Self> {
        let name = &graph.name;
        let run = run.to_string();
        match effect {
            Effect::Entered(place) if place.frame == 0 => {
                let described = node(graph, &place.node).and_then(|it| it.description.as_deref());
                let details = json!({
                    "flow_name": name,
                    "run_id": run,
                    "state_id": place.node,
                    "state_description": described,
                });
                let message = format!("Entering state: {}", place.node);
                Some(News::new(Kind::Step, message, details))
            }
            Effect::Left {
                place,
                outcome,
                next,
            } if place.frame == 0 && *next != Onward::Nowhere => {
                let details = json!({
                    "flow_name": name,
                    "run_id": run,
                    "state_id": place.node,
                    "next_state": next.node(),
                    "status": outcome.word(),
                    "error": outcome.error(),
                });
                let message = format!("Completed state: {}", place.node);
                Some(News::new(Kind::Step, message, details))
            }
            Effect::Finish(finish) => Some(finished(name, &run, finish)),
            Effect::Entered(_)
            | Effect::Left { .. }
            | Effect::Act(_)
            | Effect::Sleep { .. }
            | Effect::Stop(_)
            | Effect::Yield => None,
        }
    }
}

fn finished(name: &str, run: &str, finish: &Finish) -> News {
    let error = finish.error.as_ref().map(|error| error.message.as_str());
    let (kind, status, verb) = match finish.status {
        Status::Completed | Status::Running => (Kind::Done, "completed", "Completed workflow"),
        Status::Failed => (Kind::Failed, "failed", "Workflow failed"),
        Status::Cancelled => (Kind::Failed, "cancelled", "Workflow cancelled"),
    };
    let details = json!({
        "flow_name": name,
        "run_id": run,
        "status": status,
        "error": error,
    });
    News::new(kind, format!("{verb}: {name}"), details)
}

fn node<'g>(graph: &'g Graph, id: &str) -> Option<&'g Node> {
    let bodies = [&graph.body, &graph.on_error.body];
    let mut nodes = bodies.into_iter().flat_map(|body| body.nodes.iter());
    nodes.find(|node| node.id == id)
}

/// Tells a client the news of one run.
pub(crate) struct Teller {
    news: mpsc::UnboundedSender<News>,
    telling: JoinHandle<()>,
}

/// How a client wants to be told.
enum Channel {
    Progress(ProgressToken),
    Log(log::Wanted),
}

impl Teller {
    /// Somebody who tells the caller; `None` when it does not want to be told.
    pub(super) fn new(call: &Call, graph: &Graph) -> Option<Self> {
        let channel = match call.context.meta.get_progress_token() {
            Some(token) => Channel::Progress(token),
            None => Channel::Log(call.log?),
        };
        let (news, untold) = mpsc::unbounded_channel();
        let peer = call.context.peer.clone();
        let expected = 2 * graph.body.nodes.len() + 1;
        let telling = tokio::spawn(tell(untold, peer, channel, expected));
        Some(Teller { news, telling })
    }

    pub(super) fn news(&self) -> mpsc::UnboundedSender<News> {
        self.news.clone()
    }

    /// Returns when everything has been told.
    pub(super) async fn finish(self) {
        drop(self.news);
        // A client that went away is not told.
        let _ = self.telling.await;
    }
}

async fn tell(
    mut untold: mpsc::UnboundedReceiver<News>,
    peer: Peer<RoleServer>,
    channel: Channel,
    expected: usize,
) {
    let mut told = 0_usize;
    let mut total = expected;
    let mut last_state = Value::Null;
    while let Some(mut news) = untold.recv().await {
        if let Some(state) = news.details.get("state_id") {
            last_state = state.clone();
        }
        match news.kind {
            Kind::Start => {}
            // A loop visits more states than there are.
            Kind::Step if untold.len() > MOST_UNTOLD => continue,
            Kind::Step => {
                told += 1;
                total = total.max(told + 1);
            }
            Kind::Done => {
                told = total.max(told + 1);
                total = told;
                news.details
                    .insert("final_state".into(), last_state.clone());
            }
            Kind::Failed => {
                told += 1;
                total = total.max(told);
                news.details
                    .insert("error_state".into(), last_state.clone());
            }
        }
        if !send(&peer, &channel, news, told, total).await {
            return;
        }
    }
}

/// Sends one message; false when the client is gone.
#[expect(clippy::cast_precision_loss, reason = "a count of states")]
async fn send(
    peer: &Peer<RoleServer>,
    channel: &Channel,
    news: News,
    told: usize,
    total: usize,
) -> bool {
    match channel {
        Channel::Progress(token) => {
            let mut progress = ProgressNotificationParam::new(token.clone(), told as f64)
                .with_total(total as f64)
                .with_message(news.message);
            progress.meta =
                serde_json::from_value::<NotificationMetaObject>(news.details.into()).ok();
            peer.notify_progress(progress).await.is_ok()
        }
        Channel::Log(wanted) => {
            let is_bad = news.kind == Kind::Failed;
            log::send(peer, *wanted, is_bad, news.message, news.details).await
        }
    }
}
