//! `flow resume`, `flow answer`, `flow cancel`: going on with runs, and ending them.

use std::sync::Arc;

use anyhow::Result;
use flow_model::graph::PromptKind;
use flow_runtime::host::{self, Pending};
use flow_runtime::journal::{self, RunId, Status};
use flow_runtime::run::{Allowance, Deed, Happening, Refusal};
use flow_runtime::value::Value;

use crate::cli::{AnswerArguments, CancelArguments, Driving, ResumeArguments, RunFormat};
use crate::engine::Engine;
use crate::exit::{self, Exit, Usage};
use crate::output::{Output, clean};
use crate::run::{self, Screen, elsewhere, finish, label};
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

/// Tells what came of going on with a run, also where nothing did: then it stands as before.
fn told(asked: &str, done: Result<Exit>, driving: &Driving, output: &mut Output) -> Result<Exit> {
    if let Err(error) = &done
        && driving.format != RunFormat::Text
        && !exit::is_unheard(error)
        && let Ok(Some(engine)) = Engine::reading(Some(asked))
        && let Ok(run) = engine.resolve(asked)
        && run::unmoved(&engine, run, &format!("{error:#}"), driving.format, output).is_ok()
    {
        return done;
    }
    run::told(done, None, asked.parse().ok(), driving.format, output)
}

pub(crate) fn resume(arguments: &ResumeArguments, output: &mut Output) -> Result<Exit> {
    let done = resumed(arguments, output);
    told(&arguments.run, done, &arguments.driving, output)
}

pub(crate) fn answer(arguments: &AnswerArguments, output: &mut Output) -> Result<Exit> {
    let done = answered(arguments, output);
    told(&arguments.run, done, &arguments.driving, output)
}

fn resumed(arguments: &ResumeArguments, output: &mut Output) -> Result<Exit> {
    let (mut engine, screen, run) = engine_of(&arguments.run, &arguments.driving, output)?;
    let allowance = Allowance {
        max_steps: arguments.max_steps,
        timeout: arguments.timeout,
    };
    let status = engine.host.journal().run(run)?.status;
    if allowance != Allowance::default() && status != Status::Failed {
        let more = "--max-steps and --timeout let a failed run try again with more";
        let (how, help) = match is_interrupted(&engine, run)? {
            true => (
                "was interrupted".to_owned(),
                format!("`flow resume {run}` goes on with what it has; {more}"),
            ),
            false => (format!("is {status}"), more.to_owned()),
        };
        let usage = Usage::new(format!("{run} has not failed: it {how}"));
        return Err(usage.help(help).into());
    }
    let run = match status {
        Status::Failed => {
            let resumed = engine.host.record(run, Happening::Resumed(allowance));
            match engine.wait(resumed) {
                // Somebody else has let it try again meanwhile.
                Err(host::Error::Refused(Refusal::NotFailed))
                    if allowance == Allowance::default() => {}
                resumed => resumed?,
            }
            run
        }
        Status::Running | Status::Waiting | Status::Sleeping => engine.host.outermost(run)?,
        Status::Completed | Status::Cancelled => run,
    };
    go_on(&mut engine, &screen, run, &arguments.driving, held, output)
}

fn answered(arguments: &AnswerArguments, output: &mut Output) -> Result<Exit> {
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
    // An answer that comes too late may end whoever waits for it.
    let outermost = engine.host.outermost(asking)?;
    let recorded = engine.host.record(asking, happening);
    let is_late = match engine.wait(recorded) {
        Ok(()) => false,
        // That its time was over is what the run goes on with.
        Err(error @ host::Error::TooLate { .. }) => {
            output.error(&error.to_string());
            true
        }
        // Whoever was first goes on with the run.
        Err(error @ (host::Error::NotAsked { .. } | host::Error::SessionElsewhere { .. })) => {
            return Err(unused(&error, outermost).into());
        }
        Err(error) => return Err(error.into()),
    };
    // A run that was called can be answered anywhere; its caller may go on elsewhere alone.
    let who = |error: &anyhow::Error| held(error).or_else(|| kept(error).map(Some));
    let driving = &arguments.driving;
    let exit = go_on(&mut engine, &screen, outermost, driving, who, output)?;
    // However the run goes on, the answer was not taken.
    Ok(match exit {
        Exit::Interrupted => exit,
        _ if is_late => Exit::Usage,
        _ => exit,
    })
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
    let caller = engine.host.outermost(run)?;
    if caller != run {
        // Whoever waited for it goes on, here unless somebody drives it already.
        let elsewhere = |owner: u32| {
            format!(
                "{caller}, which called it, goes on in the process {owner}, where its terminal \
                 session is"
            )
        };
        match engine.drive(caller) {
            Ok(report) if let Some(owner) = engine.host.goes_on_in(&report)? => {
                output.tell(format_args!("{}", elsewhere(owner)));
            }
            Ok(report) => {
                let status = engine.host.journal().run(caller)?.status;
                let reason = report.error.map(|error| format!(": {}", error.message));
                let reason = clean(&reason.unwrap_or_default());
                output.tell(format_args!(
                    "{caller}, which called it, is {status}{reason}"
                ));
            }
            Err(error) if held(&error).is_some() => {}
            Err(error) => match kept(&error) {
                Some(owner) => output.tell(format_args!("{}", elsewhere(owner))),
                None => return Err(error),
            },
        }
    }
    Ok(Exit::Done)
}

/// Drives a run and tells how it stands then, or who else goes on with it, which `who` tells from
/// why it cannot be driven here.
fn go_on(
    engine: &mut Engine,
    screen: &Screen,
    run: RunId,
    driving: &Driving,
    who: impl Fn(&anyhow::Error) -> Option<Option<u32>>,
    output: &mut Output,
) -> Result<Exit> {
    let driven = engine.drive(run);
    screen.end();
    let pid = match driven {
        Ok(report) => match engine.host.goes_on_in(&report)? {
            Some(pid) => Some(pid),
            None => return finish(engine, &report, driving, output),
        },
        Err(error) => match who(&error) {
            Some(pid) => pid,
            None => return Err(error),
        },
    };
    let who = pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("the process {pid}"),
    );
    output.tell(format_args!("{who} goes on with {run}"));
    if driving.format == RunFormat::Text {
        output.help(&format!("`flow show {run}` shows how far it is"));
        return Ok(Exit::Waiting);
    }
    let report = engine.host.report(run)?;
    elsewhere(engine, &report, driving, output)
}

/// Who drives a run, when that is why it cannot be driven here.
fn held(error: &anyhow::Error) -> Option<Option<u32>> {
    match error.downcast_ref::<host::Error>() {
        Some(host::Error::Journal(journal::Error::Held { pid, .. })) => Some(*pid),
        _ => None,
    }
}

/// Who has the terminal session of a run, when that is why it cannot be driven here.
fn kept(error: &anyhow::Error) -> Option<u32> {
    match error.downcast_ref::<host::Error>() {
        Some(host::Error::SessionElsewhere { owner, .. }) => Some(*owner),
        _ => None,
    }
}

/// Whether a run is marked as running and has lost its host.
fn is_interrupted(engine: &Engine, run: RunId) -> Result<bool> {
    let journal = engine.host.journal();
    Ok(journal.run(run)?.status == Status::Running && !journal.is_held(run))
}

/// That an answer is not used, and where to look instead.
fn unused(error: &host::Error, run: RunId) -> Usage {
    let usage = Usage::new(error.to_string());
    usage.help(format!("`flow show {run}` shows how it stands"))
}

/// The question that is meant, of those that a run and the runs it called ask.
fn asked(engine: &Engine, run: RunId, step: Option<&str>) -> Result<Pending> {
    let report = engine.host.report(run)?;
    let mut pending = engine.host.pending(&report)?;
    pending.retain(|awaited| awaited.action.what.is_asked());
    let steps: Vec<String> = pending
        .iter()
        .map(|awaited| format!("`{}`", awaited.answered_as(&pending)))
        .collect();
    let steps = steps.join(", ");
    if pending.is_empty() {
        let is_interrupted = is_interrupted(engine, run)?;
        if (step.is_some() || !is_interrupted)
            && let Some(error) = engine.host.asked_before(run, step)?
        {
            return Err(unused(&error, run).into());
        }
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
        // A step by its name, as history shows it, or by the bare id that it has in its workflow.
        let by_name = |awaited: &Pending| awaited.step == step;
        let by_place = |awaited: &Pending| awaited.place == step;
        if pending.iter().any(by_name) {
            pending.retain(by_name);
        } else if pending.iter().any(by_place) {
            pending.retain(by_place);
        } else {
            pending.retain(|awaited| awaited.action.node == step);
        }
        if pending.is_empty() {
            let usage = match engine.host.asked_before(run, Some(step))? {
                Some(error) => Usage::new(error.to_string()),
                None => Usage::new(format!("the step `{step}` does not ask anything")),
            };
            return Err(usage.help(format!("those that ask: {steps}")).into());
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
