//! MCP over standard input and output: one client, which started this process.

use anyhow::Result;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio_pipes;

use super::handler::Connection;
use crate::engine::Interrupts;

/// Serves until the client closes its end or this process is told to stop.
pub(super) async fn serve(connection: Connection, mut interrupts: Interrupts) -> Result<()> {
    let running = tokio::select! {
        running = connection.serve(stdio_pipes()) => match running {
            Ok(running) => running,
            // The client left before it said anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        },
        () = interrupts.next() => return Ok(()),
    };
    let stop = running.cancellation_token();
    let mut done = std::pin::pin!(running.waiting());
    tokio::select! {
        ended = &mut done => { ended?; }
        () = interrupts.next() => {
            stop.cancel();
            done.await?;
        }
    }
    Ok(())
}
