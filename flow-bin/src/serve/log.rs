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

    /// What a call is told of runs. Clients of the stateless protocol say so with each call.
    pub(super) fn wanted(
        &self,
        context: &RequestContext<RoleServer>,
        is_stateless: bool,
    ) -> Option<Wanted> {
        let level = match is_stateless {
            true => context.meta.log_level(),
            false => Some(*self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        match level? {
            LoggingLevel::Debug | LoggingLevel::Info => Some(Wanted::Everything),
            LoggingLevel::Notice | LoggingLevel::Warning | LoggingLevel::Error => {
                Some(Wanted::Failures)
            }
            LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => None,
        }
    }
}

/// The levels that a client can name.
pub(super) const LEVELS: &str =
    "`debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert`, `emergency`";

/// What a client wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// What happens.
    Everything,
    /// That something failed.
    Failures,
}

/// Sends a message, if it is wanted; false when the client is gone.
pub(super) async fn send(
    peer: &Peer<RoleServer>,
    wanted: Wanted,
    is_bad: bool,
    message: String,
    mut details: Map<String, Value>,
) -> bool {
    let level = match (is_bad, wanted) {
        (true, _) => LoggingLevel::Error,
        (false, Wanted::Everything) => LoggingLevel::Info,
        (false, Wanted::Failures) => return true,
    };
    details.insert("message".into(), message.into());
    let mut message = LoggingMessageNotificationParam::new(level, details.into());
    message.logger = Some("flow".to_owned());
    peer.notify_logging_message(message).await.is_ok()
}
