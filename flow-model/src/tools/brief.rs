//! The tools that find agents and prompts and fill them in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ListFormat, Tool, Toolset, WorkflowParameter, tool};

/// Asks for an agent, or lists them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRequest {
    /// The agent, or `list` to learn which there are.
    pub agent_name: String,
    /// The agent's arguments, by name. Means nothing with `list`.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// How the list is written into `listing`; the list itself is there in any case.
    #[serde(default)]
    pub format: ListFormat,
    /// Whether arguments in the list have the rules that they must satisfy, and agents and prompts
    /// their files.
    #[serde(default)]
    pub verbose: bool,
}

/// Asks for a prompt, or lists them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptRequest {
    /// The prompt, or `list` to learn which there are.
    pub prompt_name: String,
    /// The prompt's arguments, by name. Means nothing with `list`.
    #[serde(default)]
    pub parameters: Map<String, Value>,
    /// How the list is written into `listing`; the list itself is there in any case.
    #[serde(default)]
    pub format: ListFormat,
    /// Whether arguments in the list have the rules that they must satisfy, and agents and prompts
    /// their files.
    #[serde(default)]
    pub verbose: bool,
}

/// A list of agents, or one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResponse {
    /// Whether there is what was asked for.
    pub success: bool,
    /// What was asked for.
    pub agent_name: String,
    /// The agents there are; only with `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<BriefListing>>,
    /// The list in the format asked for, when that is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<String>,
    /// What the agent is told: who it is and how it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the agent is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Everything else that its file says of it, such as a model or tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// A list of prompts, or one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptResponse {
    /// Whether there is what was asked for.
    pub success: bool,
    /// What was asked for.
    pub prompt_name: String,
    /// The prompts there are; only with `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Vec<BriefListing>>,
    /// The list in the format asked for, when that is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<String>,
    /// The prompt with its arguments filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the prompt is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// An agent or a prompt in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BriefListing {
    /// What it is found by.
    pub name: String,
    /// What it is for; null when it does not say.
    pub description: Option<String>,
    /// Where it comes from: `project`, `user` or `builtin`.
    pub source: String,
    /// Its file; only with `verbose`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its arguments; absent when it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<WorkflowParameter>>,
    /// What is wrong with it; null when nothing is.
    pub error: Option<String>,
}

tool! {
    AGENT: AgentRequest => AgentResponse {
        name: "agent",
        title: "Find an agent",
        description: "Answers the instructions of an agent of this project or the user by \
            agent_name, with parameters filled in, for you to follow or to hand to a sub-agent; or \
            lists every agent when agent_name is list.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    PROMPT: PromptRequest => PromptResponse {
        name: "prompt",
        title: "Find a prompt",
        description: "Answers a prompt of this project or the user by prompt_name, with parameters \
            filled in; or lists every prompt when prompt_name is list.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 2] = [&AGENT, &PROMPT];
