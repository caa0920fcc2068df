//! Log messages to clients that gave no token for progress.
#![expect(
    deprecated,
    reason = "log messages are on their way out of the protocol and still in use"
)]

use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};

/// From which level on a connection wants messages.
pub(super) struct Threshold(Mutex<LoggingLevel>);

impl Default for Threshold {
    fn default() -> Self {
        Threshold(Mutex::new(LoggingLevel::Info))
    }
}

impl Threshold {
    pub(super) fn set(&self, level: LoggingLevel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Whether a call is told of runs. Clients of the stateless protocol say so with each call.
    pub(super) fn lets(&self, context: &RequestContext<RoleServer>, is_stateless: bool) -> bool {
        let level = match is_stateless {
            true => context.meta.log_level(),
            false => Some(*self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        matches!(level, Some(LoggingLevel::Debug | LoggingLevel::Info))
    }
}

/// Sends a message; false when the client is gone.
pub(super) async fn send(
    peer: &Peer<RoleServer>,
    is_bad: bool,
    message: String,
    mut details: Map<String, Value>,
) -> bool {
    let level = match is_bad {
        true => LoggingLevel::Error,
        false => LoggingLevel::Info,
    };
    details.insert("message".into(), message.into());
    let mut message = LoggingMessageNotificationParam::new(level, details.into());
    message.logger = Some("flow".to_owned());
    peer.notify_logging_message(message).await.is_ok()
}
