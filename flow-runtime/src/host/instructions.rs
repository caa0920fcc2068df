//! Who an agent is: what the definition says of it, else its file.

use flow_model::graph::Graph;

use super::local::Host;
use crate::run::Deed;
use crate::value::Value;

impl Host {
    /// What an agent is told before its task: the definition's own words, else those of its file. An
    /// agent whose file wants arguments is told the text as it is written.
    pub(super) fn instructions_of(&self, graph: &Graph, agent: &str) -> Option<String> {
        let mut described = graph.agents.iter();
        if let Some(known) = described.find(|known| known.name == agent) {
            return Some(known.instructions.to_string());
        }
        let files = self.inner.options.agents.as_ref()?;
        let brief = files.brief(agent).ok()?;
        let nothing = Value::map::<&str>([]);
        Some(brief.render(&nothing).unwrap_or(brief.body))
    }

    /// The same for the agent that an action goes to, if it goes to one that is named.
    pub(super) fn instructions_for(&self, graph: &Graph, deed: &Deed) -> Option<String> {
        let agent = match deed {
            Deed::Delegate { agent, .. } => agent.as_deref()?,
            Deed::DelegateItem { agent, .. } => agent,
            Deed::Shell { .. }
            | Deed::Tool { .. }
            | Deed::Prompt { .. }
            | Deed::Call { .. }
            | Deed::Environment { .. }
            | Deed::Judge { .. } => return None,
        };
        self.instructions_of(graph, agent.trim_start_matches('@'))
    }
}
