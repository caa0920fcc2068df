//! Terminal sessions for agents; workflows that run here use the same ones.

use std::sync::Arc;

use flow_model::tools::{
    AwaitOutputRequest, ExitTerminalRequest, GetScreenContentRequest, ListTerminalSessionsRequest,
    OpenTerminalRequest, RunCommandRequest, SendInputRequest, Toolset,
};

use super::Server;
use super::tool::{Call, Offer, Refused};

/// The groups with tools that start runs.
const RUNNING: &[Toolset] = &[Toolset::Workflow, Toolset::Agent];

pub(super) fn offers() -> Vec<Offer> {
    /// A tool that is a method of the terminals.
    macro_rules! offer {
        ($request:ty, $method:ident) => {
            Offer::new(
                |server: Arc<Server>, request: $request, call: Call| async move {
                    let terminals = server.terminals.of(&call.circle);
                    let answering = terminals.$method(request);
                    let answer = server.unless_given_up(&call, answering).await?;
                    Ok(terminals.masked(answer))
                },
            )
        };
    }
    vec![
        Offer::new(
            |server: Arc<Server>, request: OpenTerminalRequest, call: Call| async move {
                let terminals = server.terminals.of(&call.circle);
                let opening = terminals.open_untold(request);
                let (answer, untold) = server.unless_given_up(&call, opening).await?;
                call.opened(untold);
                Ok(terminals.masked(answer))
            },
        ),
        offer!(SendInputRequest, send_input),
        offer!(GetScreenContentRequest, screen_content),
        offer!(AwaitOutputRequest, await_output),
        // Runs open terminals, and whoever can start runs must be able to close what they leave.
        offer!(ListTerminalSessionsRequest, list).also_in(RUNNING),
        offer!(ExitTerminalRequest, exit).also_in(RUNNING),
        offer!(RunCommandRequest, run_command),
    ]
}

impl Server {
    /// Waits for an answer, unless nobody wants it any more: an abandoned wait must not consume
    /// what a later one waits for.
    async fn unless_given_up<T>(
        &self,
        call: &Call,
        answering: impl Future<Output = T>,
    ) -> Result<T, Refused> {
        tokio::select! {
            answer = answering => Ok(answer),
            () = call.cancelled() => Err(Refused::new("the call was cancelled")),
            () = self.left() => Err(Refused::new("the server ends")),
        }
    }
}
