//! The terminal tools of a host's runs.

use flow_model::tools::{self, Toolset};

use super::{Boxed, ToolCall, Tools};
use crate::run::{Failure, FailureKind};
use crate::terminal::Terminals;
use crate::value::Value;

impl Tools for Terminals {
    fn has(&self, tool: &str) -> bool {
        tools::find(tool).is_some_and(|tool| tool.toolset == Toolset::Terminal)
    }

    /// What a terminal could not do is a result too: it says `success: false`.
    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let answered = Terminals::call(self, call.tool, call.parameters.to_json()).await;
            match answered {
                Ok(answer) => Ok(Value::from(&answer)),
                Err(error) => Err(Failure::new(FailureKind::Action, error.to_string())),
            }
        })
    }
}
