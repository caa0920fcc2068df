//! Runs that this process drives, whoever asked for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow_runtime::host::{self, Host, Report};
use flow_runtime::journal::{self, RunId};
use flow_runtime::run::Happening;
use tokio::sync::watch;

use super::Server;
use super::tool::{Call, Refused};

/// How a run stood when it was let go of.
#[derive(Clone, Debug)]
pub(crate) enum Stood {
    /// So.
    Let(Box<Report>),
    /// Another process drives it.
    Elsewhere,
    /// It could not be driven, for this reason.
    Broken(String),
}

/// Runs driven in the background.
#[derive(Default)]
pub(crate) struct Runs {
    under_way: Mutex<HashMap<RunId, UnderWay>>,
}

struct UnderWay {
    /// Something was recorded for it after it was last driven.
    again: bool,
    stood: watch::Receiver<Option<Stood>>,
}

/// How waiting for a run ended.
pub(crate) enum Followed {
    /// The run was let go of.
    Stood(Stood),
    /// It is still going.
    Going,
}

impl Runs {
    fn under_way(&self) -> MutexGuard<'_, HashMap<RunId, UnderWay>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives a run, unless it is driven already; what was recorded before is taken in.
    fn go_on(server: &Arc<Server>, run: RunId) -> watch::Receiver<Option<Stood>> {
        let mut under_way = server.runs.under_way();
        if let Some(driven) = under_way.get_mut(&run) {
            driven.again = true;
            return driven.stood.clone();
        }
        let (told, stood) = watch::channel(None);
        let driven = UnderWay {
            again: false,
            stood: stood.clone(),
        };
        under_way.insert(run, driven);
        let server = Arc::clone(server);
        tokio::spawn(async move {
            loop {
                let how = drive(&server.host, run).await;
                let mut under_way = server.runs.under_way();
                let again = under_way.get_mut(&run).map(|driven| &mut driven.again);
                if let Some(again) = again
                    && std::mem::take(again)
                {
                    continue;
                }
                under_way.remove(&run);
                told.send_replace(Some(how));
                break;
            }
        });
        stood
    }

    /// Waits until a run is let go of, if it is driven here, but not for longer than this.
    pub(crate) async fn settled(&self, run: RunId, longest: Duration, call: &Call) {
        let driven = self
            .under_way()
            .get(&run)
            .map(|driven| driven.stood.clone());
        let Some(mut driven) = driven else {
            return;
        };
        tokio::select! {
            _ = driven.wait_for(Option::is_some) => {}
            () = tokio::time::sleep(longest) => {}
            () = call.cancelled() => {}
        }
    }

    /// Returns when nothing is driven here any more.
    pub(crate) async fn stopped(&self) {
        loop {
            let next = self.under_way().values().next().map(|it| it.stood.clone());
            let Some(mut driven) = next else {
                return;
            };
            // Whoever drives it also takes it off the list.
            let _ = driven.wait_for(Option::is_some).await;
        }
    }
}

async fn drive(host: &Host, run: RunId) -> Stood {
    match host.drive(run).await {
        Ok(report) => Stood::Let(Box::new(report)),
        Err(host::Error::Journal(journal::Error::Held { .. })) => Stood::Elsewhere,
        Err(error) => Stood::Broken(error.to_string()),
    }
}

impl Server {
    /// Drives a run in the background and waits for it as long as the call may. A call that is
    /// cancelled meanwhile cancels the run.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        run: RunId,
        longest: Duration,
        call: &Call,
    ) -> Result<Followed, Refused> {
        let mut driven = Runs::go_on(self, run);
        let cancelled = tokio::select! {
            biased;
            _ = driven.wait_for(Option::is_some) => false,
            () = call.cancelled() => true,
            () = tokio::time::sleep(longest) => return Ok(Followed::Going),
        };
        if cancelled {
            self.cancel(run).await?;
        }
        let stood = driven.wait_for(Option::is_some).await;
        let stood = stood.ok().and_then(|stood| stood.clone());
        Ok(Followed::Stood(stood.unwrap_or_else(|| {
            Stood::Broken("the run was let go of unexpectedly".to_owned())
        })))
    }

    async fn cancel(&self, run: RunId) -> Result<(), Refused> {
        let reason = "the call that waited for it was cancelled".to_owned();
        let cancelled = self.host.record(run, Happening::Cancelled { reason });
        match cancelled.await {
            // It ended meanwhile.
            Ok(()) | Err(host::Error::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
