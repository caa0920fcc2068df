//! MCP over standard input and output: one client, which started this process.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Result;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::StdioReader;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};

use super::Server;
use super::handler::Connection;
use super::line::{Lines, Structure};
use crate::engine::Interrupts;

/// Serves until the client closes its end or this process is told to stop.
pub(super) async fn serve(server: &Arc<Server>, mut interrupts: Interrupts) -> Result<()> {
    let (reader, writer) = stdio_pipes();
    let reader = Heard {
        reader,
        server: Arc::clone(server),
    };
    let connection = Connection::new(server, Structure::AsText);
    let running = tokio::select! {
        running = connection.serve(Lines::new(reader, writer)) => match running {
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
            server.leave();
            stop.cancel();
            done.await?;
        }
    }
    Ok(())
}

/// What the client says. When it has said everything, runs are let go of before their calls are
/// given up: whoever leaves has not cancelled anything.
struct Heard {
    reader: StdioReader,
    server: Arc<Server>,
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.reader).poll_read(context, buffer);
        if matches!(&read, Poll::Ready(_)) && buffer.filled().len() == before {
            self.server.leave();
        }
        read
    }
}
