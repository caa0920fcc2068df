//! Calls that listen to runs: they are told what happens and asked what a run asks.

use std::collections::HashMap;
use std::sync::Mutex;

use flow_model::graph::Graph;
use flow_runtime::host::{Answer, Boxed, People, Question, Watch};
use flow_runtime::journal::{Journal, RunId};
use flow_runtime::run::Effect;

/// Everybody who listens to a run of this process.
pub(crate) struct Audience {
    journal: Journal,
    listeners: Mutex<HashMap<RunId, Vec<()>>>,
}

impl Audience {
    pub(crate) fn new(journal: Journal) -> Self {
        Audience {
            journal,
            listeners: Mutex::default(),
        }
    }
}

impl Watch for Audience {
    fn effect(&self, _run: RunId, _graph: &Graph, _effect: &Effect) {}

    fn output(&self, _run: RunId, _step: &str, _text: &[u8]) {}
}

impl People for Audience {
    fn ask<'a>(&'a self, _question: Question<'a>) -> Boxed<'a, Answer> {
        Box::pin(async { Answer::Later })
    }
}
