//! Values kept between runs and conversations.

use std::sync::Arc;

use flow_model::tools::{
    ListMemoryKeysRequest, ListMemoryKeysResponse, LoadFromMemoryRequest, LoadFromMemoryResponse,
    SaveToMemoryRequest, SaveToMemoryResponse,
};

use super::Server;
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
    if request.key.is_empty() {
        return Err(Refused::new("`key` of `save_to_memory` must not be empty"));
    }
    Ok(server.memory.save(request).await?)
}

async fn load_from_memory(
    server: Arc<Server>,
    request: LoadFromMemoryRequest,
    _call: Call,
) -> Result<LoadFromMemoryResponse, Refused> {
    Ok(server.memory.load(request)?)
}

async fn list_memory_keys(
    server: Arc<Server>,
    request: ListMemoryKeysRequest,
    _call: Call,
) -> Result<ListMemoryKeysResponse, Refused> {
    Ok(server.memory.keys(&request)?)
}
