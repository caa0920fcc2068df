//! Tools from several providers.

use std::sync::Arc;

use super::{Boxed, NoTools, ToolCall, Tools};
use crate::run::Failure;
use crate::value::Value;

/// Several providers of tools: the first that has a tool is the one that is called.
#[derive(Clone, Default)]
pub struct Toolbox {
    providers: Vec<Arc<dyn Tools>>,
}

impl Toolbox {
    /// Tools of these providers.
    pub fn new(providers: impl IntoIterator<Item = Arc<dyn Tools>>) -> Self {
        Toolbox {
            providers: providers.into_iter().collect(),
        }
    }
}

impl Tools for Toolbox {
    fn has(&self, tool: &str) -> bool {
        self.providers.iter().any(|provider| provider.has(tool))
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        let mut providers = self.providers.iter();
        match providers.find(|provider| provider.has(call.tool)) {
            Some(provider) => provider.call(call),
            None => NoTools.call(call),
        }
    }
}
