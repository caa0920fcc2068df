//! What there is to judge, as it is when somebody looks.
//!
//! A tool that types answers before the program has: its result shows a screen on which nothing has
//! happened. Who judges is shown the screen of now. The run itself goes on from what was recorded.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::local::Host;
use crate::journal::RunId;
use crate::run::{Action, Deed};
use crate::terminal::Terminals;
use crate::value::Value;

/// How long a shell may take to be back at its prompt before somebody is asked at once.
const SETTLES: Duration = Duration::from_secs(1);

/// What whoever judges is told to do.
pub const JUDGE_INSTRUCTIONS: &str = "Decide which description in `choices` holds for `result`. \
    Submit {\"choice\": index} or {\"next_state\": name}, or {\"choice\": null} if none does.";

impl Host {
    /// An action that asks for a judgement with the screen as it is now; any other as it is.
    pub(super) fn shown<'a>(&self, run: RunId, action: &'a Action) -> Cow<'a, Action> {
        let Deed::Judge { choices, result } = &action.what else {
            return Cow::Borrowed(action);
        };
        let (Some((terminals, session)), Value::Map(map)) = (self.screen_of(result), result) else {
            return Cow::Borrowed(action);
        };
        let Ok(screen) = terminals.screen(session) else {
            return Cow::Borrowed(action);
        };
        let scrubber = self.inner.vault.scrubber(&run.to_string());
        let screen = scrubber.text(&screen).unwrap_or(screen);
        let mut map = (**map).clone();
        map.0
            .insert(Arc::from("screen_content"), Value::text(screen));
        Cow::Owned(Action {
            what: Deed::Judge {
                choices: choices.clone(),
                result: Value::Map(Arc::new(map)),
            },
            ..action.clone()
        })
    }

    /// Lets a shell that was just typed into do what it was told, for a moment.
    pub(super) async fn let_settle(&self, result: &Value) {
        if let Some((terminals, session)) = self.screen_of(result) {
            // One that is gone has settled.
            let _ = terminals.prompt(session, SETTLES).await;
        }
    }

    /// The session whose screen a result shows.
    fn screen_of<'a>(&'a self, result: &'a Value) -> Option<(&'a Terminals, &'a str)> {
        result.get("screen_content")?;
        let session = result.get("session_id")?.as_str()?;
        Some((self.inner.options.terminals.as_ref()?, session))
    }
}
