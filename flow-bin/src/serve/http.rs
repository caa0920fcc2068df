//! MCP over HTTP on the loopback interface, for any number of clients.

use std::sync::Arc;

use anyhow::Result;

use super::Server;
use crate::engine::Interrupts;
use crate::output::Output;

/// Serves until this process is told to stop.
pub(super) async fn serve(
    server: &Arc<Server>,
    address: &str,
    interrupts: Interrupts,
    output: &mut Output,
) -> Result<()> {
    let _ = (server, address, interrupts, output);
    anyhow::bail!("serving over HTTP is not there yet")
}
