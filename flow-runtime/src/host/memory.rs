//! Values kept between runs, for the memory tools of agents and workflows alike.

use std::time::{SystemTime, UNIX_EPOCH};

use flow_model::suggest::nearest_or_part;
use flow_model::tools::{
    self, ListMemoryKeysRequest, ListMemoryKeysResponse, LoadFromMemoryRequest,
    LoadFromMemoryResponse, Request, SaveToMemoryRequest, SaveToMemoryResponse,
};
use serde_json::Value as Json;

use super::{Boxed, ToolCall, Tools};
use crate::journal::{Error, Journal};
use crate::run::{Failure, FailureKind};
use crate::value::Value;

/// The memory of a journal.
#[derive(Clone, Debug)]
pub struct Memory(Journal);

impl Memory {
    /// The memory of this journal.
    #[must_use]
    pub fn new(journal: Journal) -> Self {
        Memory(journal)
    }

    /// Keeps a value.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub async fn save(&self, request: SaveToMemoryRequest) -> Result<SaveToMemoryResponse, Error> {
        let SaveToMemoryRequest { key, value } = request;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        let bytes = value.to_string().into_bytes();
        self.0.remember(&key, &bytes, at).await?;
        Ok(SaveToMemoryResponse {
            success: true,
            key,
            error: None,
        })
    }

    /// Recalls a value, or says which key was probably meant.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn load(&self, request: LoadFromMemoryRequest) -> Result<LoadFromMemoryResponse, Error> {
        let key = request.key;
        let kept = self.0.recall(&key)?;
        let value = kept.and_then(|bytes| serde_json::from_slice::<Json>(&bytes).ok());
        let error = match &value {
            Some(_) => None,
            None => {
                let keys = self.0.memory_keys("")?;
                let near = nearest_or_part(&key, keys.iter().map(String::as_str));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "list_memory_keys lists the keys there are".to_owned(),
                };
                Some(format!("nothing is kept under `{key}`: {help}"))
            }
        };
        Ok(LoadFromMemoryResponse {
            success: value.is_some(),
            key,
            value: value.unwrap_or_default(),
            error,
        })
    }

    /// Lists keys.
    ///
    /// # Errors
    ///
    /// Those of the journal.
    pub fn keys(&self, request: &ListMemoryKeysRequest) -> Result<ListMemoryKeysResponse, Error> {
        let keys = self.0.memory_keys(&request.prefix)?;
        Ok(ListMemoryKeysResponse {
            success: true,
            total: u32::try_from(keys.len()).unwrap_or(u32::MAX),
            keys,
        })
    }
}

impl Tools for Memory {
    fn has(&self, tool: &str) -> bool {
        [
            SaveToMemoryRequest::tool().name,
            LoadFromMemoryRequest::tool().name,
            ListMemoryKeysRequest::tool().name,
        ]
        .contains(&tool)
    }

    fn call<'a>(&'a self, call: ToolCall<'a>) -> Boxed<'a, Result<Value, Failure>> {
        Box::pin(async move {
            let failed = |reason: String| Failure::new(FailureKind::Action, reason);
            let parameters = call.parameters.to_json();
            let answer = if call.tool == SaveToMemoryRequest::tool().name {
                let request = tools::request(parameters).map_err(|it| failed(it.to_string()))?;
                self.save(request).await.map(serde_json::to_value)
            } else if call.tool == LoadFromMemoryRequest::tool().name {
                let request = tools::request(parameters).map_err(|it| failed(it.to_string()))?;
                self.load(request).map(serde_json::to_value)
            } else {
                let request: ListMemoryKeysRequest =
                    tools::request(parameters).map_err(|it| failed(it.to_string()))?;
                self.keys(&request).map(serde_json::to_value)
            };
            let answer = answer.map_err(|error| failed(error.to_string()))?;
            let answer = answer.map_err(|error| failed(error.to_string()))?;
            match &answer["error"] {
                Json::String(reason) => Err(failed(reason.clone())),
                _ => Ok(Value::from(&answer)),
            }
        })
    }
}
