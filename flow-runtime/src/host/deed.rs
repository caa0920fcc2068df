//! What a host does for a run: commands, tools, questions, delegates, calls of other workflows.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow_model::graph::PromptKind;

use super::called::Pending;
use super::driver::{Caller, Driver, LOOK_EVERY};
use super::local::{Error, Host, ReportStatus, StartOptions, now};
use super::secrets::{Prepared, foreign};
use super::sessions::is_terminal;
use super::shell::{Ended, Shell};
use super::{Answer, Asked, Kept, NoWorkflow, Question, ToolCall, judge_message};
use crate::journal::{self, Hash, RunId, Stream};
use crate::run::response::{COMPUTED_ERRORS, ERROR, Response, with_session_opened};
use crate::run::{
    AGENT_TIMEOUT, Action, Allowance, Deed, Failure, FailureKind, Happening, Refusal, unfit,
};
use crate::secret::{self, Secret};
use crate::terminal::Untold;
use crate::value::Value;

impl Host {
    /// Whether an action is a call of a tool that only the agent elsewhere may have. One with secrets
    /// is not: nobody but the host learns those.
    pub(super) fn is_for_caller(&self, what: &Deed) -> bool {
        let options = &self.inner.options;
        match what {
            Deed::Tool { tool, .. } => {
                options.agent_has_tools && what.is_for_agent() && !options.tools.has(tool)
            }
            _ => false,
        }
    }

    /// Does an action. `None` when nobody here can answer it.
    pub(super) async fn perform(&self, doing: &Doing, action: &Action) -> Option<Happening> {
        let run = doing.run;
        if self.is_for_caller(&action.what) {
            return None;
        }
        let timed_out = || Happening::TimedOut {
            action: action.id,
            result: Value::Null,
        };
        let asked = now();
        let (prepared, told) = match self.prepared(run, action).await {
            Prepared::Ready(prepared, told) => (prepared, told),
            Prepared::Missing => return None,
            Prepared::Failed(error) => {
                return Some(Happening::Failed {
                    action: action.id,
                    error,
                    result: Value::Null,
                });
            }
        };
        // Asking for a secret is not part of the action.
        let late = now().saturating_sub(asked);
        let own = matches!(action.what, Deed::Call { .. });
        let work = async |told| {
            let happening = self.deed(doing, &prepared, told).await;
            happening.map(|it| if own { it } else { foreign(it) })
        };
        let Some(deadline) = action.deadline else {
            return work(told).await;
        };
        let left = Duration::from_millis(deadline.saturating_add(late).saturating_sub(now()));
        if !left.is_zero()
            && let Ok(happening) = tokio::time::timeout(left, work(told)).await
        {
            return happening;
        }
        // What was over in time is heard of late.
        match own && self.was_over(called(run, action), deadline) {
            true => work(Vec::new()).await,
            false => Some(timed_out()),
        }
    }

    /// Something that a run wrote is known as a whole.
    pub(super) fn wrote(&self, run: RunId, action: &Action, text: &str) {
        let watch = &self.inner.options.watch;
        watch.output(run, &action.name(), text.as_bytes());
        self.log(run, action, text);
    }

    /// Adds to what a run wrote.
    fn log(&self, run: RunId, action: &Action, text: &str) {
        let log = self
            .journal()
            .log(run, &action.key, Stream::Stdout, text.as_bytes());
        // A log that cannot be written does not stop the run; its events would.
        drop(log);
    }

    async fn deed(&self, doing: &Doing, action: &Action, told: Vec<Secret>) -> Option<Happening> {
        let (run, base) = (doing.run, &*doing.directory);
        let id = action.id;
        let options = &self.inner.options;
        let failed = |error: Failure| Happening::Failed {
            action: id,
            error,
            result: Value::Null,
        };
        match &action.what {
            Deed::Shell {
                command,
                env,
                working_directory,
                ..
            } => {
                let directory = match working_directory {
                    Some(directory) => base.join(directory),
                    None => base.to_owned(),
                };
                let shell = Shell {
                    journal: self.journal(),
                    watch: &options.watch,
                    run,
                    step: &action.name(),
                    key: &action.key,
                    command,
                    env,
                    directory,
                    base,
                    input: None,
                    started_at: now(),
                    scrubber: self.scrubber(run),
                };
                Some(match shell.run().await {
                    Ended::Exited(result) => Happening::Completed { action: id, result },
                    Ended::NotStarted(failure) => failed(failure),
                })
            }
            Deed::Tool {
                tool,
                builtin: true,
                parameters,
            } if let Some(terminals) = options.terminals.as_ref().filter(|_| is_terminal(tool)) => {
                let terminals = terminals.clone().telling(told, self.scrubber(run));
                let called = self.in_terminal(&terminals, doing, action, tool, parameters);
                Some(called.await)
            }
            Deed::Environment {
                session, variables, ..
            } => Some(match self.environment(action, session, variables).await {
                Ok(result) => Happening::Completed { action: id, result },
                Err(error) => failed(error),
            }),
            Deed::Tool {
                tool, parameters, ..
            } => {
                let call = ToolCall {
                    run,
                    tool,
                    parameters,
                    key: &action.key,
                };
                Some(match options.tools.call(call).await {
                    Ok(result) => Happening::Completed { action: id, result },
                    Err(error) => failed(error),
                })
            }
            Deed::Prompt {
                message,
                kind,
                options,
            } => {
                let asked = Asked::Prompt(*kind, options);
                let answered = self.ask(run, action, message, asked).await;
                // What people were told is among what the run wrote.
                if let (PromptKind::Info, Some(_)) = (kind, &answered) {
                    let line = format!("{}\n", message.trim_end());
                    self.log(run, action, &secret::mask(&line));
                }
                answered
            }
            Deed::Judge { choices, result } => {
                self.let_settle(result).await;
                let looked = self.shown(run, action);
                let result = match &looked.what {
                    Deed::Judge { result, .. } => result,
                    _ => result,
                };
                let record = self.journal().run(run);
                let workflow = record.map(|record| record.workflow).unwrap_or_default();
                let shown = secret::mask_value(result);
                let message = judge_message(&workflow, &action.node, &shown);
                self.ask(run, action, &message, Asked::Judgement(choices))
                    .await
            }
            Deed::Delegate {
                instructions,
                returns,
                complaint,
                agent,
            } => {
                let mut told = instructions.clone();
                if let Some(schema) = returns {
                    told.push_str(&format!(
                        "\n\nAnswer with JSON alone that satisfies this JSON Schema:\n{schema}"
                    ));
                }
                if let Some(complaint) = complaint {
                    told.push_str(&format!("\n\nYour last answer did not: {complaint}"));
                }
                self.delegate(run, action, agent.as_deref(), &told, base)
                    .await
            }
            Deed::DelegateItem {
                task,
                inputs,
                prompt,
                agent,
                ..
            } => {
                let standard = || {
                    format!(
                        "Do the task `{task}` for this input and answer with its result:\n{inputs}"
                    )
                };
                let instructions = prompt.clone().unwrap_or_else(standard);
                self.delegate(run, action, Some(agent), &instructions, base)
                    .await
            }
            Deed::Call { .. } => self.call(doing, action).await,
        }
    }

    /// Asks until an answer is valid, declined, or put off.
    async fn ask(
        &self,
        run: RunId,
        action: &Action,
        message: &str,
        kind: Asked<'_>,
    ) -> Option<Happening> {
        let names = match kind {
            // Nobody prepares an answer to what only tells something.
            Asked::Prompt(PromptKind::Info, _) => vec![action.node.clone()],
            _ => self.names_of(run, action),
        };
        let question = Question {
            run,
            step: &action.node,
            names: &names,
            message,
            kind,
            complaint: None,
        };
        let completed = |result: &Value| Happening::Completed {
            action: action.id,
            result: result.clone(),
        };
        let valid = |result: &Value| {
            let run = Driver::open(self.clone(), run);
            match run.map(|driver| driver.run.check(&completed(result))) {
                Ok(Err(Refusal::Invalid(reason))) => Err(reason),
                _ => Ok(()),
            }
        };
        match self.inner.options.people.ask_until(question, &valid).await {
            Answer::Later | Answer::Unfit(_) => None,
            Answer::Declined(reason) => Some(Happening::Declined {
                action: action.id,
                reason,
            }),
            Answer::Given(result) => Some(completed(&result)),
        }
    }

    /// Every name that a step goes by, the most exact one first.
    fn names_of(&self, run: RunId, action: &Action) -> Vec<String> {
        let outermost = self.outermost(run).and_then(|it| self.report(it));
        let pending = outermost.and_then(|report| self.pending(&report));
        let is_it = |it: &Pending| it.run == run && it.action.id == action.id;
        let found = pending.ok().and_then(|all| all.into_iter().find(is_it));
        let whole = found.map(|it| [it.step, it.place]);
        let own = [action.name(), action.node.clone()];
        whole.into_iter().flatten().chain(own).collect()
    }

    /// What was answered beforehand to a task that is an agent's to do.
    async fn answered_before(
        &self,
        run: RunId,
        action: &Action,
        instructions: &str,
    ) -> Option<Happening> {
        let complaint = match &action.what {
            Deed::Delegate { complaint, .. } => complaint.as_deref(),
            _ => None,
        };
        let names = self.names_of(run, action);
        let question = Question {
            run,
            step: &action.node,
            names: &names,
            message: instructions,
            kind: Asked::Delegate,
            complaint,
        };
        // What misses `returns` was not answered: whoever is asked then has both tries.
        let valid = |result: &Value| match unfit(&action.what, &action.what.shape(result.clone())) {
            Some(reason) => Err(reason),
            None => Ok(()),
        };
        match self.inner.options.people.ask_until(question, &valid).await {
            Answer::Given(result) => Some(Happening::Completed {
                action: action.id,
                result: action.what.shape(result),
            }),
            Answer::Later | Answer::Unfit(_) | Answer::Declined(_) => None,
        }
    }

    async fn delegate(
        &self,
        run: RunId,
        action: &Action,
        agent: Option<&str>,
        instructions: &str,
        base: &Path,
    ) -> Option<Happening> {
        if let Some(answered) = self.answered_before(run, action, instructions).await {
            return Some(answered);
        }
        let agent_command = self.inner.options.agent.as_ref()?;
        let meant = agent.map(|agent| agent.trim_start_matches('@'));
        let program = self.program_of(run).ok();
        let own = meant.zip(program.as_ref());
        let own = own.and_then(|(agent, program)| self.instructions_of(program.graph(), agent));
        let told = match own {
            Some(own) => format!("{}\n\n{instructions}", own.trim_end()),
            None => instructions.to_owned(),
        };
        let env: Vec<(String, String)> = meant
            .map(|agent| ("FLOW_AGENT_NAME".to_owned(), agent.to_owned()))
            .into_iter()
            .collect();
        let shell = Shell {
            journal: self.journal(),
            watch: &self.inner.options.watch,
            run,
            step: &action.name(),
            key: &action.key,
            command: agent_command,
            env: &env,
            directory: base.to_owned(),
            base,
            input: Some(&told),
            started_at: now(),
            scrubber: self.scrubber(run),
        };
        let failed = |error: Failure| Happening::Failed {
            action: action.id,
            error,
            result: Value::Null,
        };
        // Whoever is waited for has the time that the step states; who works has some anyway.
        let longest = match action.deadline {
            Some(_) => Duration::MAX,
            None => Duration::from_millis(AGENT_TIMEOUT),
        };
        let Ok(ended) = tokio::time::timeout(longest, shell.run()).await else {
            return Some(Happening::TimedOut {
                action: action.id,
                result: Value::Null,
            });
        };
        Some(match ended {
            Ended::NotStarted(failure) => failed(failure),
            Ended::Exited(result) => match result.get("exit_code") {
                Some(Value::Int(0)) => {
                    let response = result
                        .get("stdout")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    if response.trim().is_empty() {
                        let message = format!("the agent command `{agent_command}` gave no answer");
                        return Some(failed(Failure::new(FailureKind::Action, message)));
                    }
                    let mut answered = vec![("response", Value::text(response.trim_end()))];
                    // Who was asked by name is named by the run.
                    if agent.is_none() {
                        answered.push(("agent_used", Value::text(agent_command)));
                    }
                    Happening::Completed {
                        action: action.id,
                        result: Value::map(answered),
                    }
                }
                _ => {
                    let stderr = result
                        .get("stderr")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    let ended = match result.get("exit_code") {
                        Some(Value::Int(code)) => format!("ended with exit code {code}"),
                        _ => "was stopped".to_owned(),
                    };
                    let mut message = format!("the agent command `{agent_command}` {ended}");
                    if !stderr.trim().is_empty() {
                        message.push_str(": ");
                        message.push_str(stderr.trim());
                    }
                    failed(Failure::new(FailureKind::Action, message))
                }
            },
        })
    }

    /// Whether a run was over by a time, in milliseconds since 1970.
    pub(super) fn was_over(&self, run: RunId, by: u64) -> bool {
        let record = self.journal().run(run);
        record.is_ok_and(|record| record.status.is_final() && record.updated_at <= by)
    }

    /// Returns when a run that is driven elsewhere is over, or, if only that is in the way, driven
    /// there no longer.
    async fn left_elsewhere(&self, run: RunId, is_held: bool) -> Result<(), Error> {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let is_over = self.journal().run(run)?.status.is_final();
            if is_over || (is_held && !self.journal().is_held(run)) {
                return Ok(());
            }
        }
    }

    /// Runs another workflow. Its id follows from the call's key, so that a repeated call finds the
    /// run it began. `None` when that run waits for somebody, or was told to stop.
    async fn call(&self, doing: &Doing, action: &Action) -> Option<Happening> {
        let (run, agent_driven) = (doing.run, doing.agent_driven);
        let Deed::Call {
            workflow,
            definition,
            inputs,
            variables,
            session,
            names_session,
            max_states,
            execution_timeout,
            save_on_success,
            depth,
            max_depth,
            response,
            goes_on,
        } = &action.what
        else {
            return None;
        };
        let failed = |final_state: &str, message: String| {
            let result = match response {
                true => Response::none(workflow.as_deref(), final_state, &message).into_value(),
                false => Value::Null,
            };
            Some(Happening::Failed {
                action: action.id,
                error: Failure::new(FailureKind::Action, message),
                result,
            })
        };
        let child = called(run, action);
        let known = self.journal().run(child);
        if let (true, Ok(record)) = (*goes_on, &known)
            && record.status == journal::Status::Failed
        {
            let again = Happening::Resumed(Allowance::default());
            if let Err(error) = Box::pin(self.record(child, again)).await {
                return failed(ERROR, error.to_string());
            }
        }
        if known.is_err() {
            let caller = self.start_of(run).ok();
            let beside = caller.and_then(|start| start.beside).map(PathBuf::from);
            let workflows = &self.inner.options.workflows;
            let found = match (workflow, definition) {
                (Some(name), _) => workflows.find_beside(name, beside.as_deref()),
                (None, Some(definition)) => workflows.compile(definition),
                (None, None) => Err(NoWorkflow::Unknown("the call names no workflow".to_owned())),
            };
            let graph = match found {
                Ok(graph) => graph,
                Err(reason) => return failed(reason.final_state(), reason.to_string()),
            };
            let options = StartOptions {
                variables: variables.clone(),
                session: session.clone(),
                inherits_session: !names_session,
                own_session: false,
                max_steps: *max_states,
                timeout: *execution_timeout,
                parent: Some((run, *depth)),
                max_depth: *max_depth,
                id: Some(child),
                agent_driven,
                beside,
                circle: None,
                keep: Value::Null,
            };
            if let Err(error) = self.start(&graph, inputs, options).await {
                let (step, name) = (&action.node, &graph.name);
                return match &error {
                    Error::Inputs(_) => failed(
                        "validation_failed",
                        format!("`{step}` cannot call `{name}` with these inputs: {error}"),
                    ),
                    Error::NoSession(_) => failed("validation_failed", error.to_string()),
                    _ => failed(ERROR, error.to_string()),
                };
            }
        }
        let report = loop {
            let driven = Box::pin(self.drive_unmasked(child, doing.caller.clone())).await;
            match driven {
                Ok(report) => break report,
                // It goes on elsewhere, or can only go on there.
                Err(
                    error @ (Error::Journal(journal::Error::Held { .. })
                    | Error::SessionElsewhere { .. }),
                ) => {
                    let caller = doing.caller.as_ref()?;
                    caller.rests();
                    let is_held = matches!(error, Error::Journal(_));
                    if let Err(error) = self.left_elsewhere(child, is_held).await {
                        return failed(ERROR, error.to_string());
                    }
                    caller.goes_on();
                }
                Err(error) => return failed(ERROR, error.to_string()),
            }
        };
        let status = match report.status {
            ReportStatus::Completed => "completed",
            ReportStatus::Failed => "failed",
            ReportStatus::Cancelled => "cancelled",
            ReportStatus::Waiting | ReportStatus::Interrupted => return None,
        };
        let success = report.status == ReportStatus::Completed;
        let error = report.error.as_ref().map(|error| error.message.clone());
        let kept = match definition {
            Some(definition) if success && save_on_success.unwrap_or(true) => {
                // A definition that cannot be kept has succeeded nevertheless.
                let kept = self.inner.options.workflows.keep(definition);
                kept.unwrap_or_default()
            }
            Some(_) | None => None,
        };
        let session_opened = self.is_own_session(run, report.session.as_deref());
        let result = if *response {
            Response {
                success,
                status,
                workflow_name: Some(report.workflow.clone()),
                workflow_id: Some(report.run.to_string()),
                session_id: report.session,
                final_state: report.final_state.unwrap_or_else(|| ERROR.to_owned()),
                states_executed: report.states_executed,
                elapsed_ms: report.elapsed_ms,
                recursion_depth: report.recursion_depth,
                return_values: report.return_values,
                final_variables: report.variables,
                output: report.output,
                workflow_saved: kept.as_ref().is_some_and(|kept| kept.is_new),
                message: kept.as_ref().map(Kept::sentence),
                saved_workflow_name: kept.map(|kept| kept.name),
                error: error.clone(),
            }
            .into_value()
        } else {
            let session = report.session.map_or(Value::Null, Value::text);
            let mut fields = vec![
                ("outputs", report.output),
                ("computed", report.computed),
                ("session_id", session),
            ];
            if matches!(&report.computed_errors, Value::Map(map) if !map.0.is_empty()) {
                fields.push((COMPUTED_ERRORS, report.computed_errors));
            }
            Value::map(fields)
        };
        if success {
            let result = match session_opened {
                true => with_session_opened(result),
                false => result,
            };
            Some(Happening::Completed {
                action: action.id,
                result,
            })
        } else {
            let reason = error.unwrap_or_else(|| "it did not complete".to_owned());
            let refused = report.error.as_ref().is_some_and(Failure::is_refusal);
            let how = match report.status {
                _ if refused => "was refused",
                ReportStatus::Cancelled => "was cancelled",
                _ => "failed",
            };
            let told = format!("the workflow `{}` {how}: ", report.workflow);
            // One that calls itself says once that it has failed.
            let reason = reason.rsplit(&told).next().unwrap_or(&reason);
            let message = format!("{told}{reason}");
            // A run that its own limit ended has timed out for whoever called it.
            let kind = match report.error.map(|error| error.kind) {
                Some(FailureKind::TimeLimit) => FailureKind::Timeout,
                Some(FailureKind::Refused) => FailureKind::Refused,
                // It cannot be taken up again.
                _ if report.status == ReportStatus::Cancelled => FailureKind::Cancelled,
                _ => FailureKind::Action,
            };
            Some(Happening::Failed {
                action: action.id,
                error: Failure::new(kind, message),
                result,
            })
        }
    }
}

/// For which run a host does something.
pub(super) struct Doing {
    pub(super) run: RunId,
    /// Where its commands run.
    pub(super) directory: Arc<Path>,
    pub(super) agent_driven: bool,
    /// The terminal session that the run had, where it has none any more.
    pub(super) closed: Option<String>,
    /// Who hears of a run that is called; `None` when such a run is let go of once it waits.
    pub(super) caller: Option<Caller>,
    /// The terminal session that it has opened, until the run has heard of it.
    pub(super) untold: Mutex<Option<Untold>>,
}

impl Doing {
    /// A session was opened, which is closed where the run does not hear of it.
    pub(super) fn opened(&self, untold: Option<Untold>) {
        *self.untold() = untold;
    }

    /// The session that it has opened.
    pub(super) fn take_untold(&self) -> Option<Untold> {
        self.untold().take()
    }

    fn untold(&self) -> MutexGuard<'_, Option<Untold>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The run that a call begins. It follows from the call's key.
pub(super) fn called(run: RunId, call: &Action) -> RunId {
    called_by(run, &call.key)
}

/// The run that the call of a key begins.
pub(super) fn called_by(run: RunId, key: &str) -> RunId {
    let digest = Hash::of(key.as_bytes());
    let mut seed = [0; 16];
    seed.copy_from_slice(&digest.0[..16]);
    RunId::new(run.at_millis(), u128::from_le_bytes(seed))
}
