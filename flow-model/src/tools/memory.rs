//! The tools that keep values between runs and conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Tool, Toolset, tool};

/// Keeps a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveToMemoryRequest {
    /// What the value is found by.
    pub key: String,
    /// The value; any JSON.
    pub value: Value,
}

/// A value was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SaveToMemoryResponse {
    /// Whether it is kept.
    pub success: bool,
    /// What it is found by.
    pub key: String,
    /// Why it is not; null when it is.
    pub error: Option<String>,
}

/// Asks for a kept value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadFromMemoryRequest {
    /// What the value is found by.
    pub key: String,
}

/// A kept value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFromMemoryResponse {
    /// Whether there is one.
    pub success: bool,
    /// What it is found by.
    pub key: String,
    /// The value; null when there is none.
    pub value: Value,
    /// Why there is none, with the key that was probably meant; null when there is one.
    pub error: Option<String>,
}

/// Asks which values are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListMemoryKeysRequest {
    /// Only keys that begin with this.
    #[serde(default)]
    pub prefix: String,
}

/// Which values are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListMemoryKeysResponse {
    /// Whether they could be listed.
    pub success: bool,
    /// The keys, in order.
    pub keys: Vec<String>,
    /// How many there are.
    pub total: u32,
}

tool! {
    SAVE_TO_MEMORY: SaveToMemoryRequest => SaveToMemoryResponse {
        name: "save_to_memory",
        title: "Keep a value",
        description: "Keeps a value under a key, for later runs and conversations about the same \
            project. A second call with the same key replaces the value.",
        toolset: Toolset::Workflow,
        read_only: false,
        destructive: true,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    LOAD_FROM_MEMORY: LoadFromMemoryRequest => LoadFromMemoryResponse {
        name: "load_from_memory",
        title: "Recall a value",
        description: "Answers the value that save_to_memory kept under a key.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

tool! {
    LIST_MEMORY_KEYS: ListMemoryKeysRequest => ListMemoryKeysResponse {
        name: "list_memory_keys",
        title: "List kept values",
        description: "Lists the keys that values are kept under, all or those with a prefix.",
        toolset: Toolset::Workflow,
        read_only: true,
        destructive: false,
        idempotent: true,
        times_itself: false,
        rules: &[],
    }
}

pub(super) static TOOLS: [&Tool; 3] = [&SAVE_TO_MEMORY, &LOAD_FROM_MEMORY, &LIST_MEMORY_KEYS];
