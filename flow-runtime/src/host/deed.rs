//! What a host does for a run: commands, tools, questions, delegates, calls of other workflows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::driver::Driver;
use super::local::{Error, Host, ReportStatus, StartOptions, now};
use super::secrets::{Prepared, foreign};
use super::sessions::is_terminal;
use super::shell::{Ended, Shell};
use super::{Answer, Asked, Question, ToolCall, judge_message};
use crate::expression;
use crate::journal::{self, Hash, RunId};
use crate::run::{Action, Allowance, Deed, Failure, FailureKind, Happening, Refusal};
use crate::secret;
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
    pub(super) async fn perform(
        &self,
        run: RunId,
        action: &Action,
        directory: &Path,
        agent_driven: bool,
    ) -> Option<Happening> {
        if self.is_for_caller(&action.what) {
            return None;
        }
        let timed_out = || Happening::TimedOut {
            action: action.id,
            result: Value::Null,
        };
        let asked = now();
        let prepared = match self.prepared(run, action).await {
            Prepared::Ready(prepared) => prepared,
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
        let work = async {
            let happening = self.deed(run, &prepared, directory, agent_driven).await;
            happening.map(|it| if own { it } else { foreign(it) })
        };
        let Some(deadline) = action.deadline else {
            return work.await;
        };
        let left = Duration::from_millis(deadline.saturating_add(late).saturating_sub(now()));
        if left.is_zero() {
            return Some(timed_out());
        }
        match tokio::time::timeout(left, work).await {
            Ok(happening) => happening,
            Err(_) => Some(timed_out()),
        }
    }

    async fn deed(
        &self,
        run: RunId,
        action: &Action,
        base: &Path,
        agent_driven: bool,
    ) -> Option<Happening> {
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
                    started_at: now(),
                    scrubber: self.inner.vault.scrubber(&run.to_string()),
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
                self.in_terminal(terminals, run, action, tool, parameters)
                    .await
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
                self.ask(run, action, message, Asked::Prompt(*kind, options))
                    .await
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
            Deed::Call { .. } => self.call(run, action, agent_driven).await,
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
        let question = Question {
            run,
            step: &action.node,
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

    async fn delegate(
        &self,
        run: RunId,
        action: &Action,
        agent: Option<&str>,
        instructions: &str,
        base: &Path,
    ) -> Option<Happening> {
        let agent_command = self.inner.options.agent.as_ref()?;
        let meant = agent.map(|agent| agent.trim_start_matches('@'));
        let program = self.program_of(run).ok();
        let own = meant.zip(program.as_ref());
        let own = own.and_then(|(agent, program)| self.instructions_of(program.graph(), agent));
        let told = match own {
            Some(own) => format!("{}\n\n{instructions}", own.trim_end()),
            None => instructions.to_owned(),
        };
        let command = format!(
            "printf '%s' {} | {agent_command}",
            expression::quoted(&told)
        );
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
            command: &command,
            env: &env,
            directory: base.to_owned(),
            started_at: now(),
            scrubber: self.inner.vault.scrubber(&run.to_string()),
        };
        let failed = |error: Failure| Happening::Failed {
            action: action.id,
            error,
            result: Value::Null,
        };
        Some(match shell.run().await {
            Ended::NotStarted(failure) => failed(failure),
            Ended::Exited(result) => match result.get("exit_code") {
                Some(Value::Int(0)) => {
                    let response = result
                        .get("stdout")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
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

    /// Runs another workflow. Its id follows from the call's key, so that a repeated call finds the
    /// run it began. `None` when that run waits for somebody, or was told to stop.
    async fn call(&self, run: RunId, action: &Action, agent_driven: bool) -> Option<Happening> {
        let failed = |message: String, result: Value| {
            Some(Happening::Failed {
                action: action.id,
                error: Failure::new(FailureKind::Action, message),
                result,
            })
        };
        let Deed::Call {
            workflow,
            definition,
            inputs,
            variables,
            session,
            max_states,
            execution_timeout,
            save_on_success,
            depth,
            response,
            goes_on,
        } = &action.what
        else {
            return failed("this is no call".to_owned(), Value::Null);
        };
        let child = called(run, action);
        let known = self.journal().run(child);
        if let (true, Ok(record)) = (*goes_on, &known)
            && record.status == journal::Status::Failed
        {
            let again = Happening::Resumed(Allowance::default());
            if let Err(error) = Box::pin(self.record(child, again)).await {
                return failed(error.to_string(), Value::Null);
            }
        }
        if known.is_err() {
            let caller = self.start_of(run).ok();
            let beside = caller.and_then(|start| start.beside).map(PathBuf::from);
            let found = match (workflow, definition) {
                (Some(name), _) => {
                    let workflows = &self.inner.options.workflows;
                    workflows.find_beside(name, beside.as_deref())
                }
                (None, Some(definition)) => self.inner.options.workflows.compile(definition),
                (None, None) => Err("the call names no workflow".to_owned()),
            };
            let graph = match found {
                Ok(graph) => graph,
                Err(reason) => return failed(reason, Value::Null),
            };
            let options = StartOptions {
                variables: variables.clone(),
                session: session.clone(),
                own_session: false,
                max_steps: *max_states,
                timeout: *execution_timeout,
                parent: Some((run, *depth)),
                id: Some(child),
                agent_driven,
                beside,
                circle: None,
                keep: Value::Null,
            };
            if let Err(error) = self.start(&graph, inputs, options).await {
                return failed(error.to_string(), Value::Null);
            }
        }
        let driven = Box::pin(self.drive_unmasked(child)).await;
        let report = match driven {
            Ok(report) => report,
            Err(Error::Journal(journal::Error::Held { .. })) => return None,
            Err(error) => return failed(error.to_string(), Value::Null),
        };
        match report.status {
            ReportStatus::Completed | ReportStatus::Failed | ReportStatus::Cancelled => {}
            ReportStatus::Waiting | ReportStatus::Interrupted => return None,
        }
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
        let session = report.session.as_deref().map_or(Value::Null, Value::text);
        let result = if *response {
            Value::map([
                ("success", Value::Bool(success)),
                ("session_id", session),
                (
                    "workflow_saved",
                    Value::Bool(kept.as_ref().is_some_and(|kept| kept.is_new)),
                ),
                (
                    "message",
                    kept.as_ref()
                        .map_or(Value::Null, |kept| Value::text(kept.sentence())),
                ),
                (
                    "saved_workflow_name",
                    kept.map_or(Value::Null, |kept| Value::text(kept.name)),
                ),
                (
                    "total_elapsed_time",
                    Value::number(report.elapsed_ms as f64 / 1000.0),
                ),
                (
                    "recursion_depth",
                    Value::Int(i64::from(report.recursion_depth)),
                ),
                ("return_values", report.return_values.unwrap_or_default()),
                ("workflow_name", Value::text(&report.workflow)),
                ("workflow_id", Value::text(report.run.to_string())),
                (
                    "final_state",
                    report
                        .final_state
                        .as_deref()
                        .map_or(Value::Null, Value::text),
                ),
                (
                    "states_executed",
                    Value::Int(i64::try_from(report.states_executed).unwrap_or(i64::MAX)),
                ),
                ("final_variables", report.variables),
                ("output", report.output),
                ("error", error.as_deref().map_or(Value::Null, Value::text)),
            ])
        } else {
            Value::map([
                ("outputs", report.output),
                ("computed", report.computed),
                ("session_id", session),
            ])
        };
        if success {
            Some(Happening::Completed {
                action: action.id,
                result,
            })
        } else {
            let reason = error.unwrap_or_else(|| "it did not complete".to_owned());
            let message = format!("the workflow `{}` failed: {reason}", report.workflow);
            // A run that its own limit ended has timed out for whoever called it.
            let kind = match report.error.map(|error| error.kind) {
                Some(FailureKind::TimeLimit) => FailureKind::Timeout,
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
