//! `flow runs`, `flow show`: what the journal knows of runs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use flow_model::graph::Graph;
use flow_runtime::host::{Host, Visit};
use flow_runtime::journal::{Listing, RunId, RunRecord, Status};
use flow_runtime::run::{Deed, Ending, time};
use flow_runtime::secret;
use flow_runtime::value::Value as Given;
use serde_json::{Value, json};

use crate::cli::{RunsArguments, RunsFormat, ShowArguments, ShowFormat, Standing};
use crate::engine::{Engine, open_runs};
use crate::exit::{Exit, Usage};
use crate::output::{Cell, Look, Output, Paint, plain, table};
use crate::run::{elapsed, pending_json};

pub(crate) fn list(arguments: &RunsArguments, output: &mut Output) -> Result<Exit> {
    let engine = match arguments.outside {
        true => Engine::outside()?,
        false => Engine::reading(None)?,
    };
    let runs = match engine {
        None => Vec::new(),
        Some(engine) => {
            let mut listing = Listing::new();
            let asked = &arguments.status;
            for standing in asked {
                listing = listing.status(match standing {
                    Standing::Listed(status) => *status,
                    Standing::Interrupted => Status::Running,
                });
            }
            // What is listed under one of these may stand otherwise, all told.
            for (wanted, listed) in [
                (Status::Waiting, Status::Running),
                (Status::Sleeping, Status::Running),
                (Status::Sleeping, Status::Waiting),
            ] {
                if asked.contains(&Standing::Listed(wanted)) {
                    listing = listing.status(listed);
                }
            }
            let journal = engine.host.journal();
            let limit = arguments.limit.get();
            let mut runs: Vec<(RunRecord, bool)> = Vec::new();
            // What is listed may stand otherwise and not be wanted; then there may be more.
            while runs.len() < limit {
                let page = journal.list(&listing, limit)?;
                for mut run in page.runs {
                    let interrupted = stands(&engine.host, &mut run)?;
                    let is_wanted = |standing: &Standing| match standing {
                        Standing::Listed(status) => *status == run.status,
                        Standing::Interrupted => interrupted,
                    };
                    if asked.is_empty() || asked.iter().any(is_wanted) {
                        runs.push((run, interrupted));
                    }
                }
                match page.next {
                    Some(next) => listing = listing.before(next),
                    None => break,
                }
            }
            runs.truncate(limit);
            runs
        }
    };
    match arguments.format {
        RunsFormat::Json => {
            let runs = runs.iter();
            let runs: Vec<Value> = runs
                .map(|(run, interrupted)| record(run, *interrupted))
                .collect();
            output.line(format_args!("{:#}", json!({ "runs": runs })))?;
        }
        RunsFormat::Table if runs.is_empty() => output.tell("no runs"),
        RunsFormat::Table => {
            let heading = |text| Cell::new(text, Paint::dim);
            let mut rows = vec![vec![
                heading("RUN"),
                heading("WORKFLOW"),
                heading("STATUS"),
                heading("STARTED"),
                heading(""),
            ]];
            rows.extend(runs.iter().map(|(run, interrupted)| {
                let wakes = run.wake_at.map(|at| format!("until {}", time::iso(at)));
                let note = run.error.as_deref().or(run.pending.as_deref());
                let note = note.or(wakes.as_deref());
                vec![
                    Cell::new(&run.id.to_string(), Paint::bold),
                    Cell::new(&run.workflow, plain),
                    Cell::new(word(run, *interrupted), look(run.status)),
                    Cell::new(&time::iso(run.started_at), plain),
                    Cell::new(note.unwrap_or_default(), Paint::dim),
                ]
            }));
            let text = table(&rows, output.paint, output.width());
            output.print(text)?;
        }
    }
    if !arguments.outside {
        tell_outside(output)?;
    }
    Ok(Exit::Done)
}

/// Runs that began before there was a project here, or elsewhere outside of one, and are not over.
fn tell_outside(output: &mut Output) -> Result<()> {
    let Some(engine) = Engine::outside()? else {
        return Ok(());
    };
    if !engine.host.journal().list(&open_runs(), 1)?.runs.is_empty() {
        output.help(
            "there are runs from outside of projects that are not over: `flow runs --outside`",
        );
    }
    Ok(())
}

/// How a run stands, with those it has called and with nobody to drive it. Gives whether it was
/// interrupted.
fn stands(host: &Host, run: &mut RunRecord) -> Result<bool> {
    let mut holds = run.id;
    if let Status::Running | Status::Waiting = run.status {
        let called = host.called(run.id)?;
        let open = called.iter().find(|called| !called.status.is_final());
        // Whoever waits for one that sleeps does nothing else.
        if let Some(open) = open
            && let Some(until) = host.sleeps_until(&host.report(run.id)?)?
        {
            run.status = Status::Sleeping;
            run.wake_at = Some(until);
            run.pending = None;
            holds = open.id;
        }
    }
    Ok(!host.journal().is_held(holds) && alone(run))
}

/// A run that is marked as running and that nobody drives has lost its host, perhaps because
/// nothing more could be written. It waits for somebody to resume it.
/// Gives whether it was interrupted.
fn alone(run: &mut RunRecord) -> bool {
    let (status, reason) = match run.status {
        Status::Running => (Status::Waiting, "interrupted"),
        Status::Sleeping => (Status::Sleeping, "nobody wakes it"),
        Status::Waiting | Status::Completed | Status::Failed | Status::Cancelled => return false,
    };
    run.status = status;
    run.pending = Some(format!("{reason}; `flow resume` goes on"));
    status == Status::Waiting
}

/// How a run stands, for people.
fn word(run: &RunRecord, interrupted: bool) -> &'static str {
    match interrupted {
        true => "interrupted",
        false => run.status.as_str(),
    }
}

fn look(status: Status) -> Look {
    match status {
        Status::Completed => Paint::green,
        Status::Failed => Paint::red,
        Status::Waiting => Paint::yellow,
        Status::Running | Status::Sleeping => Paint::cyan,
        Status::Cancelled => Paint::dim,
    }
}

fn record(run: &RunRecord, interrupted: bool) -> Value {
    let mut record = json!({
        "run_id": run.id.to_string(),
        "workflow": run.workflow,
        "status": run.status.as_str(),
        "started_at": time::iso(run.started_at),
        "updated_at": time::iso(run.updated_at),
        "parent": run.parent.map(|parent| parent.to_string()),
        "pending": run.pending,
        "wake_at": run.wake_at.map(time::iso),
        "error": run.error,
    });
    if interrupted {
        record["interrupted"] = true.into();
    }
    record
}

/// The journal and the run that a person means.
pub(crate) fn find(asked: &str) -> Result<(Engine, RunId)> {
    let Some(engine) = Engine::reading(Some(asked))? else {
        let usage = Usage::new(format!(
            "there is no run `{asked}`: nothing has been run here"
        ));
        return Err(usage.into());
    };
    let run = engine.resolve(asked)?;
    Ok((engine, run))
}

/// The word for how a visit ended, and why.
fn outcome(visit: &Visit) -> (&'static str, Option<&str>) {
    match &visit.ending {
        None => ("under_way", None),
        Some(ending) => (ending.word(), ending.error()),
    }
}

pub(crate) fn show(arguments: &ShowArguments, output: &mut Output) -> Result<Exit> {
    let (engine, run) = find(&arguments.run)?;
    let journal = engine.host.journal();
    let mut known = journal.run(run)?;
    let interrupted = stands(&engine.host, &mut known)?;
    let mut report = engine.host.report(run)?;
    if matches!(known.status, Status::Running | Status::Sleeping) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_millis());
        let so_far = u64::try_from(now).map_or(0, |now| now.saturating_sub(known.started_at));
        report.elapsed_ms = report.elapsed_ms.max(so_far);
    }
    let mut pending = engine.host.pending(&report)?;
    if interrupted {
        // What its host was doing is nobody's to answer.
        pending.retain(|awaited| awaited.asked);
    }
    let steps = engine.host.visits(run)?;
    let inputs = inputs(&engine, &known)?;
    let called = engine.host.called(run)?;
    let error = report.error.as_ref();
    if let ShowFormat::Json = arguments.format {
        let mut shown = record(&known, interrupted);
        shown["inputs"] = inputs;
        shown["final_state"] = json!(report.final_state);
        shown["states_executed"] = json!(report.states_executed);
        shown["elapsed_ms"] = json!(report.elapsed_ms);
        shown["output"] = report.output.to_json();
        shown["return_values"] = match &report.return_values {
            Some(values) => values.to_json(),
            None => json!({}),
        };
        shown["session_id"] = json!(report.last_session);
        shown["state"] = report.state.to_json();
        shown["error"] = json!(error.map(|error| &error.message));
        shown["pending"] = pending.iter().map(|it| pending_json(run, it)).collect();
        shown["children"] = called.iter().map(|run| json!(run.id.to_string())).collect();
        shown["steps"] = steps
            .iter()
            .map(|step| {
                let (word, reason) = outcome(step);
                json!({
                    "step": step.step,
                    "frame": step.frame,
                    "started_at": time::iso(step.started_at),
                    "ended_at": step.ended_at.map(time::iso),
                    "outcome": word,
                    "error": reason,
                    "message": step.message,
                })
            })
            .collect();
        output.line(format_args!("{shown:#}"))?;
        return Ok(Exit::Done);
    }
    let paint = output.paint;
    let field = |name: &str, value: &str, look: Look| {
        vec![Cell::new(name, Paint::dim), Cell::new(value, look)]
    };
    let mut rows = vec![
        field("run", &run.to_string(), Paint::bold),
        field("workflow", &known.workflow, plain),
        field("status", word(&known, interrupted), look(known.status)),
        field("started", &time::iso(known.started_at), plain),
        field(
            "took",
            &elapsed(Duration::from_millis(report.elapsed_ms)),
            plain,
        ),
    ];
    // What it waited for may have ended without anybody who goes on with it.
    let is_left = known.status == Status::Waiting && pending.is_empty() && !journal.is_held(run);
    if interrupted || is_left {
        let way = format!("flow resume {run}");
        rows.push(field("goes on with", &way, plain));
    }
    if let Some(at) = known.wake_at {
        let name = match known.status {
            Status::Waiting => "waits until",
            _ => "wakes",
        };
        rows.push(field(name, &time::iso(at), plain));
    }
    if let Some(parent) = known.parent {
        rows.push(field("called by", &parent.to_string(), plain));
    }
    for child in &called {
        let text = format!("{} {} {}", child.id, child.workflow, child.status);
        rows.push(field("called", &text, plain));
    }
    output.print(table(&rows, paint, output.width()))?;
    if let Some(error) = error {
        // What went wrong is not cut, however narrow the terminal.
        let rows = [field("error", &error.message, Paint::red)];
        output.print(table(&rows, paint, None))?;
    }
    section("inputs", &inputs, output)?;
    if !steps.is_empty() {
        output.line("\nsteps")?;
        let rows: Vec<Vec<Cell>> = steps.iter().map(row).collect();
        output.print(table(&rows, paint, output.width()))?;
    }
    section("state", &report.state.to_json(), output)?;
    section("output", &report.output.to_json(), output)?;
    if let Some(values) = &report.return_values {
        section("return values", &values.to_json(), output)?;
    }
    // What is being done stands among the steps.
    let is_asked = |deed: &Deed| match deed {
        Deed::Prompt { .. }
        | Deed::Delegate { .. }
        | Deed::DelegateItem { .. }
        | Deed::Judge { .. }
        | Deed::Tool { .. } => true,
        Deed::Shell { .. } | Deed::Call { .. } | Deed::Environment { .. } => false,
    };
    let waits: Vec<Value> = pending
        .iter()
        .filter(|it| is_asked(&it.action.what))
        .map(|it| pending_json(run, it))
        .collect();
    if !waits.is_empty() && !known.status.is_final() {
        section("pending", &Value::Array(waits), output)?;
    }
    Ok(Exit::Done)
}

fn row(step: &Visit) -> Vec<Cell> {
    let (word, reason) = outcome(step);
    let look: Look = match step.ending {
        Some(Ending::Success) => Paint::green,
        Some(Ending::Failure(_) | Ending::Timeout(_) | Ending::Stuck(_)) => Paint::red,
        Some(Ending::Skipped | Ending::Stopped) => Paint::dim,
        None => Paint::cyan,
    };
    let took = step.ended_at.map(|ended| {
        let took = Duration::from_millis(ended.saturating_sub(step.started_at));
        elapsed(took)
    });
    vec![
        Cell::new("", plain),
        Cell::new(&step.step, plain),
        Cell::new(word, look),
        Cell::new(&took.unwrap_or_default(), Paint::dim),
        Cell::new(
            reason.or(step.message.as_deref()).unwrap_or_default(),
            plain,
        ),
    ]
}

/// A value under a heading, unless there is nothing in it.
fn section(name: &str, value: &Value, output: &mut Output) -> Result<()> {
    let is_empty = match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if !is_empty {
        output.line(format_args!("\n{name}\n{value:#}"))?;
    }
    Ok(())
}

/// What a run was given, without secrets.
fn inputs(engine: &Engine, run: &RunRecord) -> Result<Value> {
    let journal = engine.host.journal();
    let unreadable = "the run cannot be read; it was perhaps written by another version";
    let graph: Graph =
        serde_json::from_slice(&journal.definition(run.definition)?).context(unreadable)?;
    let first = journal.events(run.id, 1..=1, 1)?;
    let mut inputs = match first.first() {
        Some(event) => {
            let event: Value = serde_json::from_slice(&event.body).context(unreadable)?;
            secret::mask_value(&Given::from(&event["inputs"])).to_json()
        }
        None => Value::Null,
    };
    let fields = graph.inputs.as_deref().unwrap_or_default().iter();
    for field in fields.filter(|field| field.secret) {
        if let Some(value) = inputs
            .get_mut(field.name.as_ref())
            .filter(|it| !it.is_null())
        {
            *value = "***".into();
        }
    }
    Ok(inputs)
}
