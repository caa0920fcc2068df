//! How a run stands, for whoever asked for it.

use std::sync::Arc;

use super::Driver;
use crate::host::agent::step::{item_instructions, validation};
use crate::host::called::Pending;
use crate::host::local::{Report, ReportStatus, now};
use crate::run::{Data, Deed, Effect, FailureKind, Status, frame};
use crate::value::Value;

impl Driver {
    /// How many levels of calls lie below the run. It knows of its own; the journal of all.
    fn levels_below(&self, data: &Data) -> u32 {
        match data.deepest.saturating_sub(data.start.depth) {
            0 => 0,
            own => self
                .host
                .levels_below(self.id)
                .map_or(own, |it| it.max(own)),
        }
    }

    fn lost_session(&self, data: &Data) -> Option<String> {
        let has_failed = data.status == Status::Failed;
        let mut sessions = has_failed.then(|| data.sessions_again())?;
        let lost = sessions.find(|it| it.closed || !self.host.has_session(it.id));
        lost.map(|session| session.id.to_owned())
    }

    pub(in crate::host) fn report(&self, status: Option<ReportStatus>) -> Report {
        let graph = self.run.program().graph();
        let Some(data) = self.run.data() else {
            return Report {
                run: self.id,
                workflow: graph.name.to_string(),
                status: status.unwrap_or(ReportStatus::Waiting),
                final_state: None,
                last_node: None,
                states_executed: 0,
                session: None,
                last_session: None,
                lost_session: None,
                recursion_depth: 0,
                return_values: None,
                output: Value::Null,
                state: Value::Null,
                computed: Value::Null,
                computed_errors: Value::Null,
                variables: Value::Null,
                error: None,
                elapsed_ms: 0,
                pending: Vec::new(),
                missing_secrets: Vec::new(),
                kept: None,
            };
        };
        let pending = self.run.pending().into_iter();
        let pending = pending.filter_map(|effect| match effect {
            Effect::Act(action) => Some(Pending {
                run: self.id,
                step: self.run.step_name(&action),
                asked: self.asks(&action.what),
                place: action.name(),
                instructions: match &action.what {
                    Deed::DelegateItem { task, prompt, .. } => {
                        Some(item_instructions(&self.run, task, prompt.as_deref()))
                    }
                    _ => None,
                },
                agent_instructions: self.host.instructions_for(graph, &action.what),
                validation: validation(&self.run, &action),
                answer_by: self.answered_by(&action).map(|due| due.at),
                action,
            }),
            _ => None,
        });
        let failed = data.error.as_ref().map(|error| error.kind);
        let final_state = match (graph.form, data.status, failed) {
            (_, Status::Failed, Some(FailureKind::Arguments)) => {
                Some("validation_failed".to_owned())
            }
            (_, Status::Failed, Some(FailureKind::ReturnValues)) => {
                Some("return_validation_failed".to_owned())
            }
            (flow_model::graph::Form::Steps, Status::Completed, _) => Some("completed".to_owned()),
            _ => data.last_node.clone(),
        };
        // A run that was stopped has gone on until now, whatever was recorded last; so has one that
        // somebody goes on with.
        let is_going = match status {
            Some(ReportStatus::Interrupted) => true,
            None => self.host.journal().is_held(self.id),
            Some(_) => false,
        };
        let until = match is_going && data.status == Status::Running {
            true => now().max(self.last_at),
            false => self.last_at,
        };
        let latest = data.latest_session();
        let mut variables = data.variables.clone();
        if let Some(session) = latest {
            variables.insert(Arc::from("session_id"), Value::text(session));
        }
        Report {
            run: self.id,
            workflow: graph.name.to_string(),
            status: match data.status {
                Status::Running => status.unwrap_or(ReportStatus::Waiting),
                Status::Completed => ReportStatus::Completed,
                Status::Failed => ReportStatus::Failed,
                Status::Cancelled => ReportStatus::Cancelled,
            },
            final_state,
            last_node: data.last_node.clone(),
            states_executed: data.executed(),
            session: data
                .session(data.frames.get(&frame::ROOT))
                .map(str::to_owned),
            last_session: latest.map(str::to_owned),
            lost_session: self.lost_session(data),
            recursion_depth: self.levels_below(data),
            return_values: data.return_values.clone(),
            output: data.output.clone(),
            state: self.run.flattened(),
            computed: self.run.derived(),
            computed_errors: self.run.derived_errors(),
            variables: Value::map(variables),
            error: data.error.clone(),
            elapsed_ms: until.saturating_sub(data.started_at),
            pending: pending.collect(),
            missing_secrets: self.host.missing_secrets(self.id),
            kept: self.host.kept(self.id, data),
        }
    }
}
