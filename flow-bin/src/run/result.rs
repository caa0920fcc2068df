//! How a run stands when it is let go of, told to a person or a program.

use anyhow::Result;
use flow_model::graph::{OnResume, PromptKind};
use flow_runtime::host::{JUDGE_INSTRUCTIONS, OpenTasks, Pending, Report, ReportStatus};
use flow_runtime::journal::RunId;
use flow_runtime::run::{Deed, FailureKind, time, unnumbered};
use flow_runtime::value::Value as Given;
use serde_json::{Value, json};

use super::person::label;
use crate::cli::{Driving, RunFormat};
use crate::engine::Engine;
use crate::exit::Exit;
use crate::output::{Output, clean};

/// Tasks of one step that are named.
const SHOWN_TASKS: usize = 5;

/// Tells the result of a run, and what the exit code is.
pub(crate) fn finish(
    engine: &Engine,
    report: &Report,
    driving: &Driving,
    output: &mut Output,
) -> Result<Exit> {
    let mut pending = engine.host.pending(report)?;
    if report.status == ReportStatus::Interrupted {
        // What was being done here is nobody's to answer.
        pending.retain(|awaited| awaited.asked);
    }
    let secrets = match report.status {
        ReportStatus::Waiting => engine.missing_secrets(report)?,
        ReportStatus::Completed
        | ReportStatus::Failed
        | ReportStatus::Cancelled
        | ReportStatus::Interrupted => Vec::new(),
    };
    let tasks = match report.status {
        ReportStatus::Waiting => engine.host.open_tasks(report.run, SHOWN_TASKS)?,
        ReportStatus::Completed
        | ReportStatus::Failed
        | ReportStatus::Cancelled
        | ReportStatus::Interrupted => Vec::new(),
    };
    match driving.format {
        RunFormat::Text => {
            if report.status == ReportStatus::Completed {
                match &report.return_values {
                    Some(values) if report.output == Given::Null => print(values, output)?,
                    _ => print(&report.output, output)?,
                }
            }
        }
        RunFormat::Json => {
            let object = as_json(report, &pending, &secrets, &tasks);
            output.line(format_args!("{object:#}"))?
        }
        RunFormat::Jsonl => output.line(as_json(report, &pending, &secrets, &tasks))?,
    }
    output.flush()?;
    let again = match engine.graph(report.run) {
        Ok(graph) => graph.on_resume,
        Err(_) => OnResume::DEFAULT,
    };
    tell(report, &pending, &secrets, again, output);
    for OpenTasks { step, count, names } in &tasks {
        let more = if *count > names.len() { ", …" } else { "" };
        let names = names.join(", ");
        let step = unnumbered(step);
        let noun = if *count == 1 { "task is" } else { "tasks are" };
        output.tell(format_args!(
            "  {step}: {count} {noun} for sub-agents: {names}{more}"
        ));
        let run = report.run;
        output.help(&format!(
            "an agent goes on with it through `flow serve`: `resume_workflow` with workflow_id {run}"
        ));
    }
    Ok(exit(report))
}

/// Tells a program how a run stands that another process goes on with.
pub(crate) fn elsewhere(
    engine: &Engine,
    report: &Report,
    driving: &Driving,
    output: &mut Output,
) -> Result<Exit> {
    let mut object = standing(engine, report)?;
    if report.status == ReportStatus::Waiting {
        object["status"] = json!("running");
    }
    tell_program(&object, driving.format, output)?;
    Ok(Exit::Waiting)
}

/// Tells a program why nothing could be done with a run, and how that stands as before.
pub(crate) fn unmoved(
    engine: &Engine,
    run: RunId,
    reason: &str,
    format: RunFormat,
    output: &mut Output,
) -> Result<()> {
    let report = engine.host.report(run)?;
    let mut object = standing(engine, &report)?;
    if report.status == ReportStatus::Waiting && engine.host.journal().is_held(run) {
        object["status"] = json!("running");
    }
    object["error"] = json!(reason);
    tell_program(&object, format, output)
}

/// How a run stands that nobody here has driven.
fn standing(engine: &Engine, report: &Report) -> Result<Value> {
    let mut pending = engine.host.pending(report)?;
    // What others do is nobody's to answer.
    pending.retain(|awaited| awaited.action.what.is_asked());
    Ok(as_json(report, &pending, &[], &[]))
}

fn tell_program(object: &Value, format: RunFormat, output: &mut Output) -> Result<()> {
    match format {
        RunFormat::Text | RunFormat::Json => output.line(format_args!("{object:#}"))?,
        RunFormat::Jsonl => output.line(object)?,
    }
    Ok(output.flush()?)
}

fn exit(report: &Report) -> Exit {
    match report.status {
        ReportStatus::Completed => Exit::Done,
        ReportStatus::Failed => match report.error.as_ref().map(|error| error.kind) {
            Some(FailureKind::Refused) => Exit::Refused,
            _ => Exit::Failed,
        },
        ReportStatus::Cancelled => Exit::Failed,
        ReportStatus::Waiting => Exit::Waiting,
        ReportStatus::Interrupted => Exit::Interrupted,
    }
}

/// The object that `run`, `resume` and `answer` print.
fn as_json(report: &Report, pending: &[Pending], secrets: &[String], tasks: &[OpenTasks]) -> Value {
    let mut object = json!({
        "run_id": report.run.to_string(),
        "workflow": report.workflow,
        "status": match report.status {
            ReportStatus::Completed => "completed",
            ReportStatus::Failed => "failed",
            ReportStatus::Waiting | ReportStatus::Interrupted => "waiting",
            ReportStatus::Cancelled => "cancelled",
        },
        "final_state": report.final_state,
        "states_executed": report.states_executed,
        "output": report.output.to_json(),
        "state": report.state.to_json(),
        "error": report.error.as_ref().map(|error| error.message.as_str()),
        "elapsed_ms": report.elapsed_ms,
        "pending": pending.iter().map(|it| pending_json(report.run, it)).collect::<Vec<_>>(),
    });
    if !secrets.is_empty() {
        object["missing_secrets"] = json!(secrets);
    }
    if !tasks.is_empty() {
        let tasks = tasks.iter();
        let tasks = tasks.map(|tasks| {
            json!({
                "step_id": tasks.step,
                "open_task_count": tasks.count,
                "open_tasks": tasks.names,
            })
        });
        object["open_tasks"] = tasks.collect();
    }
    if let Some(values) = &report.return_values {
        object["return_values"] = values.to_json();
    }
    object
}

/// Something that a run waits for, with everything needed to answer it: `workflow_id` and
/// `step_id` are what `submit_step_result` and `flow answer` take.
pub(crate) fn pending_json(asked: RunId, awaited: &Pending) -> Value {
    let action = &awaited.action;
    let mut pending = json!({
        "workflow_id": asked.to_string(),
        "step_id": awaited.step,
        "id": awaited.step,
        "run_id": awaited.run.to_string(),
        "step": action.node,
        "type": kind(&action.what),
    });
    // What is being done, or waits for a secret, is nobody's to answer.
    if awaited.asked {
        pending["answer_with"] = json!(action.what.answer_form());
    }
    if let Some(told) = &awaited.agent_instructions {
        pending["agent_instructions"] = json!(told);
    }
    if let Some(at) = awaited.answer_by {
        pending["answer_by"] = json!(time::iso(at));
    }
    if let Some(rules) = &awaited.validation {
        pending["validation"] = rules.clone();
    }
    match &action.what {
        Deed::Prompt {
            message,
            kind,
            options,
        } => {
            pending["kind"] = json!(kind);
            pending["message"] = json!(message);
            pending["options"] = options.iter().map(Given::to_json).collect();
        }
        Deed::Judge { choices, result } => {
            let choices = choices.iter().enumerate();
            let choices = choices.map(|(index, (description, state))| {
                json!({
                    "index": index,
                    "description": description,
                    "next_state": state,
                    "state": state,
                })
            });
            pending["choices"] = choices.collect();
            pending["result"] = result.to_json();
            pending["instructions"] = json!(JUDGE_INSTRUCTIONS);
        }
        Deed::Delegate {
            instructions,
            agent,
            returns,
            complaint,
        } => {
            pending["instructions"] = json!(instructions);
            pending["agent"] = json!(agent);
            if let Some(schema) = returns {
                pending["returns"] = schema.to_json();
            }
            if let Some(complaint) = complaint {
                pending["complaint"] = json!(complaint);
            }
        }
        Deed::DelegateItem {
            agent,
            task,
            inputs,
            ..
        } => {
            pending["instructions"] = json!(awaited.instructions);
            pending["agent"] = json!(agent);
            pending["task"] = json!(task);
            pending["inputs"] = inputs.to_json();
        }
        Deed::Tool {
            tool, parameters, ..
        } => {
            pending["tool"] = json!(tool);
            pending["parameters"] = parameters.to_json();
        }
        Deed::Shell {
            command,
            env,
            working_directory,
            ..
        } => {
            pending["command"] = json!(command);
            let env = env.iter().map(|(name, value)| (name.clone(), json!(value)));
            pending["environment"] = Value::Object(env.collect());
            pending["working_directory"] = json!(working_directory);
        }
        Deed::Call { .. } | Deed::Environment { .. } => {}
    }
    pending
}

fn kind(deed: &Deed) -> &'static str {
    match deed {
        Deed::Shell { .. } => "shell",
        Deed::Tool { .. } => "mcp_call",
        Deed::Prompt { .. } => "prompt",
        Deed::Delegate { .. } | Deed::DelegateItem { .. } => "delegate",
        Deed::Call { .. } => "call",
        Deed::Judge { .. } => "judge",
        Deed::Environment { .. } => "environment",
    }
}

/// The output of a run: a text as it is, anything else as JSON, nothing as nothing.
fn print(result: &Given, output: &mut Output) -> Result<()> {
    match result {
        Given::Null => {}
        Given::Map(map) if map.0.is_empty() => {}
        Given::Str(text) => output.line(text)?,
        other => output.line(format_args!("{:#}", other.to_json()))?,
    }
    Ok(())
}

/// What a person should know beyond the output, and what to do next.
fn tell(
    report: &Report,
    pending: &[Pending],
    secrets: &[String],
    again: OnResume,
    output: &mut Output,
) {
    let run = report.run;
    match report.status {
        ReportStatus::Completed => {}
        ReportStatus::Failed => {
            let (step, message) = match &report.error {
                Some(error) => (error.step.as_deref(), error.message.as_str()),
                None => (None, "the run failed"),
            };
            match step {
                Some(step) if !message.contains(step) => {
                    output.error(&format!("`{step}`: {message}"));
                }
                _ => output.error(message),
            }
            let kind = report.error.as_ref().map(|error| error.kind);
            let resume = match kind {
                Some(FailureKind::Arguments) => {
                    output.help(
                        "set them in this shell, or write `NAME=value` before the command, and run it again",
                    );
                    None
                }
                Some(FailureKind::TimeLimit) => {
                    Some("goes on, with its time again; --timeout TIME gives it another")
                }
                Some(FailureKind::ReturnValues) => Some("looks for them again"),
                // Its outputs, or its initial state: the same would happen again.
                _ if step.is_none() => None,
                _ if !again.skip_completed_steps => Some("begins with its first step again"),
                _ if !again.retry_failed_steps => Some("goes on after the failed step"),
                _ => Some("tries the failed step again"),
            };
            if let Some(resume) = resume {
                output.help(&format!("`flow resume {run}` {resume}"));
                // This process ends, and its sessions with it.
                let session = report.lost_session.as_ref().or(report.session.as_ref());
                if let Some(session) = session.filter(|_| again.skip_completed_steps) {
                    output.help(&format!(
                        "the terminal session `{session}` is gone then: where a step works in it, run the \
                         workflow again instead"
                    ));
                }
            }
            // A fan-out tells the limit that its children have reached.
            let is_limit = matches!(kind, Some(FailureKind::Limit | FailureKind::Child));
            if is_limit && message.contains("--max-steps") {
                output.help("with --max-steps N it may do more than before");
            }
        }
        ReportStatus::Cancelled => {
            let reason = report.error.as_ref().map(|error| clean(&error.message));
            match reason.filter(|reason| !reason.is_empty()) {
                Some(reason) => output.tell(format_args!("{run} was cancelled: {reason}")),
                None => output.tell(format_args!("{run} was cancelled")),
            }
        }
        ReportStatus::Interrupted => {
            output.tell(format_args!("interrupted; `flow resume {run}` goes on"));
        }
        ReportStatus::Waiting => {
            output.tell(format_args!("{run} waits"));
            for input in secrets {
                output.tell(format_args!("  it needs the secret `{input}`"));
                let variable = flow_runtime::secret::variable(input);
                output.help(&format!("{variable}=… flow resume {run}"));
            }
            for awaited in pending {
                question(report.run, awaited, pending, output);
            }
        }
    }
}

/// What is asked, and how to answer it.
fn question(run: RunId, awaited: &Pending, among: &[Pending], output: &mut Output) {
    let (asked, answer) = match &awaited.action.what {
        Deed::Prompt {
            message,
            kind,
            options,
        } => {
            let answer = match kind {
                PromptKind::Info | PromptKind::Confirm => "true".to_owned(),
                PromptKind::Text => "TEXT".to_owned(),
                PromptKind::Choice => {
                    let labels: Vec<String> = options.iter().map(label).collect();
                    labels.join("|")
                }
            };
            (clean(message), answer)
        }
        Deed::Judge { choices, .. } => {
            let states: Vec<&str> = choices.iter().map(|(_, state)| state.as_str()).collect();
            let mut asked = "which holds?".to_owned();
            for (description, state) in choices {
                asked.push_str(&format!("\n    {state}: {}", clean(description)));
            }
            (asked, states.join("|"))
        }
        Deed::Delegate {
            instructions,
            returns: None,
            ..
        } => (clean(instructions), "RESPONSE".to_owned()),
        Deed::Delegate {
            instructions,
            returns: Some(schema),
            complaint,
            ..
        } => {
            let mut asked = clean(instructions);
            asked.push_str(&format!("\n  answered by JSON that satisfies {schema}"));
            if let Some(complaint) = complaint {
                asked.push_str(&format!(
                    "\n  the last answer did not: {}",
                    clean(complaint)
                ));
            }
            (asked, "JSON".to_owned())
        }
        Deed::DelegateItem {
            task,
            inputs,
            agent,
            ..
        } => {
            let agent = agent.trim_start_matches('@');
            let asked = format!("@{agent} does the task `{task}` for {inputs}");
            (clean(&asked), "RESULT".to_owned())
        }
        Deed::Shell { .. } | Deed::Tool { .. } | Deed::Call { .. } | Deed::Environment { .. } => {
            return;
        }
    };
    output.tell(format_args!("  {}: {asked}", awaited.place));
    if let Some(at) = awaited.answer_by {
        output.tell(format_args!("  it waits until {}", time::iso(at)));
    }
    let which = match among {
        [_] => String::new(),
        _ => format!(" --step {}", awaited.answered_as(among)),
    };
    output.help(&format!("flow answer {run}{which} '{answer}'"));
}
