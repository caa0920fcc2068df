//! Questions of runs as forms that a client shows to the person in front of it.

use std::borrow::Cow;

use flow_model::graph::PromptKind;
use flow_runtime::host::{Answer, Asked, judge_message};
use flow_runtime::run::{Action, Deed};
use flow_runtime::value::Value as Given;
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, RequestId, ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};

use crate::run::label;

/// The choice that no description holds; no state can be called so.
const NONE: &str = "-";

/// What an action of a workflow asks of a person; `None` when it asks nobody, or an agent.
pub(super) fn asked<'a>(workflow: &str, action: &'a Action) -> Option<(Cow<'a, str>, Asked<'a>)> {
    match &action.what {
        Deed::Prompt {
            message,
            kind,
            options,
        } => Some((
            Cow::Borrowed(message.as_str()),
            Asked::Prompt(*kind, options),
        )),
        Deed::Judge { choices, result } => {
            let message = judge_message(workflow, &action.node, result);
            Some((Cow::Owned(message), Asked::Judgement(choices)))
        }
        Deed::Shell { .. }
        | Deed::Tool { .. }
        | Deed::Environment { .. }
        | Deed::Delegate { .. }
        | Deed::DelegateItem { .. }
        | Deed::Call { .. } => None,
    }
}

/// A form that a client shows. It is taken back when nobody waits for what the person says any more.
struct Shown {
    peer: Peer<RoleServer>,
    id: RequestId,
    is_over: bool,
}

impl Drop for Shown {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (peer, id) = (self.peer.clone(), self.id.clone());
        let reason = "the question has been answered elsewhere, or is no longer asked";
        let taken_back = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        tokio::spawn(async move {
            // A client that went away shows nothing.
            let _ = peer.notify_cancelled(taken_back).await;
        });
    }
}

/// Shows a form and waits for what the person says; `None` when the client cannot.
pub(super) async fn ask(peer: Peer<RoleServer>, form: ElicitRequestParams) -> Option<ElicitResult> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let options = PeerRequestOptions::no_options();
    let sent = peer.send_cancellable_request(request, options).await.ok()?;
    let mut shown = Shown {
        peer,
        id: sent.id.clone(),
        is_over: false,
    };
    let said = sent.await_response().await;
    shown.is_over = true;
    match said {
        Ok(ClientResult::ElicitResult(said)) => Some(said),
        _ => None,
    }
}

/// The form for a question; `None` when a client cannot show it.
pub(super) fn form(
    message: &str,
    asked: Asked<'_>,
    complaint: Option<&str>,
) -> Option<ElicitRequestParams> {
    let message = match complaint {
        Some(complaint) => format!("{message}\n({complaint})"),
        None => message.to_owned(),
    };
    let schema: ElicitationSchema = serde_json::from_value(schema(asked)?).ok()?;
    Some(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema,
    })
}

/// What a person can fill in; `None` for what is an agent's to do.
fn schema(asked: Asked<'_>) -> Option<Value> {
    let one = |name: &str, field: Value| json!({"type": "object", "properties": {name: field}, "required": [name]});
    Some(match asked {
        Asked::Delegate => return None,
        Asked::Prompt(PromptKind::Info, _) => json!({"type": "object", "properties": {}}),
        Asked::Prompt(PromptKind::Confirm, _) => {
            one("confirmed", json!({"type": "boolean", "title": "Yes?"}))
        }
        Asked::Prompt(PromptKind::Text, _) => {
            one("input", json!({"type": "string", "title": "Answer"}))
        }
        Asked::Prompt(PromptKind::Choice, options) => {
            let labels: Vec<String> = options.iter().map(label).collect();
            one(
                "selected",
                json!({"type": "string", "title": "Choice", "enum": labels}),
            )
        }
        Asked::Judgement(choices) => {
            let titled: Vec<Value> = choices
                .iter()
                .map(|(description, state)| json!({"const": state, "title": description}))
                .chain([json!({"const": NONE, "title": "None of these"})])
                .collect();
            one(
                "choice",
                json!({"type": "string", "title": "What holds", "oneOf": titled}),
            )
        }
    })
}

/// What the person said. Whoever closes the form has not answered yet; what the form does not allow
/// is asked for again.
pub(super) fn answer(asked: Asked<'_>, said: &ElicitResult) -> Answer {
    match said.action {
        ElicitationAction::Decline => return Answer::Declined("declined".to_owned()),
        ElicitationAction::Accept => {}
        // A message that was closed was seen, and asks for nothing.
        _ if matches!(asked, Asked::Prompt(PromptKind::Info, _)) => {
            return Answer::Declined("closed".to_owned());
        }
        // Cancelled, or something of a later protocol.
        _ => return Answer::Later,
    }
    let field = |name: &str| {
        let content = said.content.as_ref()?;
        content.get(name).map(Given::from)
    };
    let (name, value, otherwise) = match asked {
        Asked::Delegate => return Answer::Later,
        Asked::Prompt(PromptKind::Info, _) => {
            ("acknowledged", Some(Given::Bool(true)), String::new())
        }
        Asked::Prompt(PromptKind::Confirm, _) => {
            let confirmed = field("confirmed").filter(|it| matches!(it, Given::Bool(_)));
            ("confirmed", confirmed, "say yes or no".to_owned())
        }
        Asked::Prompt(PromptKind::Text, _) => {
            let input = field("input").filter(|it| matches!(it, Given::Str(_)));
            ("input", input, "write an answer".to_owned())
        }
        Asked::Prompt(PromptKind::Choice, options) => {
            let selected = field("selected").and_then(|chosen| {
                let is_it =
                    |option: &&Given| **option == chosen || chosen.as_str() == Some(&label(option));
                options.iter().find(is_it).cloned()
            });
            let labels: Vec<String> = options.iter().map(label).collect();
            let otherwise = format!("choose one of {}", labels.join(", "));
            ("selected", selected, otherwise)
        }
        Asked::Judgement(choices) => {
            let choice = field("choice").and_then(|chosen| match chosen.as_str() {
                Some(NONE) => Some(Given::Null),
                Some(name) if choices.iter().any(|(_, state)| state == name) => Some(chosen),
                _ => None,
            });
            let otherwise = "choose what holds, or that none of it does".to_owned();
            ("choice", choice, otherwise)
        }
    };
    match value {
        Some(value) => Answer::Given(Given::map([(name, value)])),
        None => Answer::Unfit(otherwise),
    }
}
