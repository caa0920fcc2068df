//! `flow resume`, `flow answer`, `flow cancel`: going on with runs, and ending them.

use std::sync::Arc;

use anyhow::Result;
use flow_model::graph::PromptKind;
use flow_runtime::host::{self, Pending};
use flow_runtime::journal::{self, RunId, Status};
use flow_runtime::run::{Allowance, Deed, Happening};
use flow_runtime::value::Value;

use crate::cli::{AnswerArguments, CancelArguments, Driving, ResumeArguments, RunFormat};
use crate::engine::Engine;
use crate::exit::{Exit, Usage};
use crate::output::Output;
use crate::run::{self, Screen, finish, label};
use crate::target;

/// An engine that drives, over the journal of the run that a person means, and that run.
fn engine_of(
    asked: &str,
    driving: &Driving,
    output: &mut Output,
) -> Result<(Engine, Arc<Screen>, RunId)> {
    let (engine, screen, answered) = run::engine(target::library()?, Some(asked), driving, output)?;
    let run = engine.resolve(asked)?;
    if !answered.is_empty() {
        let graph = engine.graph(engine.host.outermost(run)?)?;
        let find = |name: &str| engine.workflow(name, None);
        for warning in run::prepared::warnings(&answered, &graph, find) {
            output.warning(&warning);
        }
    }
    Ok((engine, screen, run))
}

pub(crate) fn resume(arguments: &ResumeArguments, output: &mut Output) -> Result<Exit> {
    let (mut engine, screen, run) = engine_of(&arguments.run, &arguments.driving, output)?;
    let allowance = Allowance {
        max_steps: arguments.max_steps,
        timeout: arguments.timeout,
    };
    let status = engine.host.journal().run(run)?.status;
    if allowance != Allowance::default() && status != Status::Failed {
        let usage = Usage::new(format!("{run} has not failed: it is {status}"));
        let help = "--max-steps and --timeout let a failed run try again with more";
        return Err(usage.help(help).into());
    }
    let run = match status {
        Status::Failed => {
            let resumed = engine.host.record(run, Happening::Resumed(allowance));
            engine.wait(resumed)?;
            run
        }
        Status::Running | Status::Waiting | Status::Sleeping => engine.host.outermost(run)?,
        Status::Completed | Status::Cancelled => run,
    };
    go_on(&mut engine, &screen, run, &arguments.driving, output)
}

pub(crate) fn answer(arguments: &AnswerArguments, output: &mut Output) -> Result<Exit> {
    let (mut engine, screen, run) = engine_of(&arguments.run, &arguments.driving, output)?;
    let Pending {
        run: asking,
        action,
        ..
    } = asked(&engine, run, arguments.step.as_deref())?;
    let happening = match &arguments.answer {
        Some(text) => Happening::Completed {
            action: action.id,
            result: shaped(&action.what, text),
        },
        None => Happening::Declined {
            action: action.id,
            reason: "declined".to_owned(),
        },
    };
    let recorded = engine.host.record(asking, happening);
    engine.wait(recorded)?;
    let outermost = engine.host.outermost(asking)?;
    go_on(&mut engine, &screen, outermost, &arguments.driving, output)
}

pub(crate) fn cancel(arguments: &CancelArguments, output: &mut Output) -> Result<Exit> {
    let Some(mut engine) = Engine::reading(Some(&arguments.run))? else {
        return Err(Usage::new(format!("there is no run `{}`", arguments.run)).into());
    };
    let run = engine.resolve(&arguments.run)?;
    let reason = arguments.reason.as_deref().unwrap_or("cancelled by hand");
    let cancelled = engine.host.record(
        run,
        Happening::Cancelled {
            reason: reason.to_owned(),
        },
    );
    engine.wait(cancelled)?;
    // Nothing is left to do but to end what a dead host left running; a living one does it itself.
    let mut ended = vec![run];
    while let Some(run) = ended.pop() {
        match engine.drive(run) {
            Ok(_) => {}
            Err(error) if held(&error).is_some() => {}
            Err(error) => return Err(error),
        }
        ended.extend(engine.host.called(run)?.into_iter().map(|child| child.id));
    }
    output.tell(format_args!("{run} is cancelled"));
    Ok(Exit::Done)
}

/// Drives a run and tells how it stands then.
fn go_on(
    engine: &mut Engine,
    screen: &Screen,
    run: RunId,
    driving: &Driving,
    output: &mut Output,
) -> Result<Exit> {
    let driven = engine.drive(run);
    screen.end();
    let report = match driven {
        Ok(report) => report,
        Err(error) => match held(&error) {
            Some(pid) => {
                let who = pid.map_or_else(
                    || "another process".to_owned(),
                    |pid| format!("the process {pid}"),
                );
                output.tell(format_args!("{who} goes on with {run}"));
                if driving.format == RunFormat::Text {
                    output.help(&format!("`flow show {run}` shows how far it is"));
                    return Ok(Exit::Waiting);
                }
                engine.host.report(run)?
            }
            None => return Err(error),
        },
    };
    finish(engine, &report, driving, output)
}

/// Who drives a run, when that is why it cannot be driven here.
fn held(error: &anyhow::Error) -> Option<Option<u32>> {
    match error.downcast_ref::<host::Error>() {
        Some(host::Error::Journal(journal::Error::Held { pid, .. })) => Some(*pid),
        _ => None,
    }
}

/// The question that is meant, of those that a run and the runs it called ask.
fn asked(engine: &Engine, run: RunId, step: Option<&str>) -> Result<Pending> {
    let report = engine.host.report(run)?;
    let mut pending = engine.host.pending(&report)?;
    pending.retain(|awaited| awaited.action.what.is_asked());
    let steps: Vec<String> = pending
        .iter()
        .map(|awaited| format!("`{}`", awaited.step))
        .collect();
    let steps = steps.join(", ");
    if pending.is_empty() {
        let journal = engine.host.journal();
        let is_interrupted =
            journal.run(run)?.status == journal::Status::Running && !journal.is_held(run);
        let (how, way) = match is_interrupted {
            true => (
                "was interrupted and does not wait",
                format!("`flow resume {run}` goes on"),
            ),
            false => (
                "does not wait",
                format!("`flow show {run}` shows how it stands"),
            ),
        };
        let usage = Usage::new(format!("{run} {how} for an answer"));
        return Err(usage.help(way).into());
    }
    if let Some(step) = step {
        // A step by its name, or by the bare id that it has in its workflow.
        if pending.iter().any(|awaited| awaited.step == step) {
            pending.retain(|awaited| awaited.step == step);
        } else {
            pending.retain(|awaited| awaited.action.node == step);
        }
        if pending.is_empty() {
            let usage = Usage::new(format!("the step `{step}` does not ask anything"));
            return Err(usage.help(format!("those that do: {steps}")).into());
        }
    }
    if pending.len() > 1 {
        let usage = Usage::new(format!("several steps ask something: {steps}"));
        return Err(usage.help("say which with --step ID").into());
    }
    Ok(pending.swap_remove(0))
}

/// An answer in the shape of the result that the step has.
fn shaped(deed: &Deed, text: &str) -> Value {
    let json = serde_json::from_str::<serde_json::Value>(text)
        .map(|json| Value::from(&json))
        .ok();
    let plain = || json.clone().unwrap_or_else(|| Value::text(text));
    let answer = match deed {
        Deed::Prompt { kind, options, .. } => match kind {
            PromptKind::Info | PromptKind::Confirm => plain(),
            PromptKind::Text => match &json {
                Some(value @ (Value::Str(_) | Value::Map(_))) => value.clone(),
                Some(_) | None => Value::text(text),
            },
            // What is written may be an option, although it can be read as something else.
            PromptKind::Choice => {
                let value = options.iter().find(|option| label(option) == text.trim());
                value.cloned().unwrap_or_else(plain)
            }
        },
        Deed::Judge { .. }
        | Deed::Delegate { .. }
        | Deed::DelegateItem { .. }
        | Deed::Shell { .. }
        | Deed::Tool { .. }
        | Deed::Environment { .. }
        | Deed::Call { .. } => plain(),
    };
    deed.shape(answer)
}
