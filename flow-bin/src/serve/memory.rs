//! Values kept between runs and conversations.

use std::sync::Arc;

use flow_model::suggest::nearest_or_part;
use flow_model::tools::{
    ListMemoryKeysRequest, ListMemoryKeysResponse, LoadFromMemoryRequest, LoadFromMemoryResponse,
    SaveToMemoryRequest, SaveToMemoryResponse,
};
use serde_json::Value;

use super::Server;
use super::standing::now;
use super::tool::{Call, Offer, Refused};

pub(super) fn offers() -> Vec<Offer> {
    vec![
        Offer::new(save_to_memory),
        Offer::new(load_from_memory),
        Offer::new(list_memory_keys),
    ]
}

async fn save_to_memory(
    server: Arc<Server>,
    request: SaveToMemoryRequest,
    _call: Call,
) -> Result<SaveToMemoryResponse, Refused> {
    let SaveToMemoryRequest { key, value } = request;
    if key.is_empty() {
        return Err(Refused::new("`key` of `save_to_memory` must not be empty"));
    }
    let bytes = value.to_string().into_bytes();
    server.host.journal().remember(&key, &bytes, now()).await?;
    Ok(SaveToMemoryResponse {
        success: true,
        key,
        error: None,
    })
}

async fn load_from_memory(
    server: Arc<Server>,
    request: LoadFromMemoryRequest,
    _call: Call,
) -> Result<LoadFromMemoryResponse, Refused> {
    let key = request.key;
    let kept = server.host.journal().recall(&key)?;
    let value = kept.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let error = match &value {
        Some(_) => None,
        None => {
            let keys = server.host.journal().memory_keys("")?;
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

async fn list_memory_keys(
    server: Arc<Server>,
    request: ListMemoryKeysRequest,
    _call: Call,
) -> Result<ListMemoryKeysResponse, Refused> {
    let keys = server.host.journal().memory_keys(&request.prefix)?;
    Ok(ListMemoryKeysResponse {
        success: true,
        total: u32::try_from(keys.len()).unwrap_or(u32::MAX),
        keys,
    })
}
