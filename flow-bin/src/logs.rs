//! `flow logs`: what the commands of a run wrote.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use flow_runtime::host::Host;
use flow_runtime::journal::{Chunk, RunId, Status, Stream};
use flow_runtime::run::{Deed, Effect};
use serde_json::{Value, json};

use crate::cli::{LogsArguments, ShowFormat};
use crate::engine::Engine;
use crate::exit::{Exit, Usage};
use crate::output::Output;
use crate::runs::find;

/// Pieces of a log read at once.
const PIECES: usize = 256;
/// How often a run that goes on is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &LogsArguments, output: &mut Output) -> Result<Exit> {
    let (mut engine, run) = find(&arguments.run)?;
    let (run, step) = match arguments.step.as_deref() {
        Some(step) => meant(&engine, run, step)?,
        None => (run, None),
    };
    let mut log = Log {
        arguments,
        step,
        run,
        steps: steps(&engine, run)?,
        ends: HashMap::new(),
        after: 0,
        writing: None,
        is_in_line: false,
        pieces: Vec::new(),
    };
    let has_run = |step: &String| log.steps.values().any(|known| known.is(step));
    if let Some(step) = &log.step
        && !arguments.follow
        && !has_run(step)
    {
        return Err(Usage::new(format!("no step `{step}` has run in {run}")).into());
    }
    loop {
        // Looked at first: what is written until a run is over is read afterwards.
        let goes_on = arguments.follow && goes_on(&engine, run)?;
        log.read(&engine, output)?;
        if !goes_on {
            break;
        }
        output.flush()?;
        if engine.pause(LOOK_EVERY) {
            return Ok(Exit::Interrupted);
        }
    }
    log.end(output)?;
    // The commands of a workflow that was called are in its own log.
    if log.after == 0 {
        for child in engine.host.called(run)? {
            output.help(&format!(
                "{run} wrote nothing itself; it called `{}`: `flow logs {}`",
                child.workflow, child.id
            ));
        }
    }
    Ok(Exit::Done)
}

/// The run that a step belongs to, and what it is called there: one of a called workflow has the
/// call before it.
fn meant(engine: &Engine, run: RunId, step: &str) -> Result<(RunId, Option<String>)> {
    for (_, effect) in engine.host.history(run)? {
        let Effect::Act(action) = effect else {
            continue;
        };
        let before = [action.name(), action.node.clone()];
        let mut before = before.iter();
        let rest = before.find_map(|name| step.strip_prefix(name.as_str())?.strip_prefix('/'));
        let (Deed::Call { .. }, Some(rest)) = (&action.what, rest) else {
            continue;
        };
        let called = Host::called_by(run, &action);
        if engine.host.journal().run(called).is_ok() {
            return meant(engine, called, rest);
        }
    }
    Ok((run, Some(step.to_owned())))
}

/// Whether somebody drives a run that is not over.
fn goes_on(engine: &Engine, run: RunId) -> Result<bool> {
    let journal = engine.host.journal();
    Ok(match journal.run(run)?.status {
        Status::Running | Status::Sleeping => journal.is_held(run),
        Status::Waiting | Status::Completed | Status::Failed | Status::Cancelled => false,
    })
}

/// The steps of a run so far, by the keys of their actions.
fn steps(engine: &Engine, run: RunId) -> Result<HashMap<String, Step>> {
    let history = engine.host.history(run)?.into_iter();
    let steps = history.filter_map(|(_, effect)| match effect {
        Effect::Act(action) => {
            let name = action.name();
            let id = action.node;
            Some((action.key, Step { name, id }))
        }
        _ => None,
    });
    Ok(steps.collect())
}

/// A step that wrote something.
struct Step {
    /// With the item it belongs to.
    name: String,
    id: String,
}

impl Step {
    /// Whether somebody means it: one of an item by its whole name, or all of them by their id.
    fn is(&self, asked: &str) -> bool {
        self.name == asked || self.id == asked
    }
}

/// A log while it is written out.
struct Log<'a> {
    arguments: &'a LogsArguments,
    /// The one step that is asked for.
    step: Option<String>,
    run: RunId,
    steps: HashMap<String, Step>,
    /// Where the pieces of each stream so far end.
    ends: HashMap<(String, Stream), u64>,
    /// The last piece that was read.
    after: u64,
    /// The action that wrote last.
    writing: Option<String>,
    /// What it wrote has no end of line yet.
    is_in_line: bool,
    pieces: Vec<Value>,
}

impl Log<'_> {
    /// Writes out what there is.
    fn read(&mut self, engine: &Engine, output: &mut Output) -> Result<()> {
        loop {
            let journal = engine.host.journal();
            let chunks = journal.log_chunks(self.run, self.after, PIECES)?;
            let Some(last) = chunks.last() else {
                return Ok(());
            };
            self.after = last.place;
            let is_new = |chunk: &Chunk| !self.steps.contains_key(&chunk.action);
            if chunks.iter().any(is_new) {
                self.steps = steps(engine, self.run)?;
            }
            for chunk in chunks {
                self.write(chunk, output)?;
            }
        }
    }

    fn write(&mut self, chunk: Chunk, output: &mut Output) -> Result<()> {
        let known = self.steps.get(&chunk.action);
        let wanted = self.step.as_deref();
        if wanted.is_some_and(|wanted| !known.is_some_and(|step| step.is(wanted))) {
            return Ok(());
        }
        let step = known.map_or("?", |step| step.name.as_str());
        let end = chunk.start + chunk.bytes.len() as u64;
        let stream = (chunk.action.clone(), chunk.stream);
        let read = self.ends.insert(stream, end).unwrap_or(0);
        let (dropped, kept) = whole_lines(&chunk, read);
        let text = String::from_utf8_lossy(kept);
        if let ShowFormat::Json = self.arguments.format {
            let mut piece = json!({"step": step, "stream": chunk.stream, "text": text});
            if dropped > 0 {
                piece["dropped"] = dropped.into();
            }
            match self.arguments.follow {
                true => output.line(piece)?,
                false => self.pieces.push(piece),
            }
            return Ok(());
        }
        // A heading where another step begins to write, unless only one was asked for.
        if wanted.is_none() && self.writing.as_deref() != Some(chunk.action.as_str()) {
            let heading = output.paint.dim(&format!("--- {step}"));
            if self.is_in_line {
                output.line("")?;
            }
            output.line(heading)?;
            self.writing = Some(chunk.action.clone());
        }
        if dropped > 0 {
            let mark = format!("[{dropped} bytes before this were dropped]");
            output.line(output.paint.dim(&mark))?;
        }
        output.print(&text)?;
        self.is_in_line = wanted.is_none() && !text.ends_with('\n');
        Ok(())
    }

    fn end(&self, output: &mut Output) -> Result<()> {
        if self.is_in_line {
            output.line("")?;
        }
        if let (ShowFormat::Json, false) = (self.arguments.format, self.arguments.follow) {
            output.line(format_args!("{:#}", json!({ "logs": self.pieces })))?;
        }
        Ok(())
    }
}

/// How many bytes are missing before a piece of a stream that was read up to a place, and the piece
/// from its first whole line on.
fn whole_lines(chunk: &Chunk, read: u64) -> (u64, &[u8]) {
    let missing = chunk.start.saturating_sub(read);
    if missing == 0 {
        return (0, &chunk.bytes);
    }
    let first = chunk.bytes.iter().position(|byte| *byte == b'\n');
    let first = first.map_or(0, |newline| newline + 1);
    (missing + first as u64, &chunk.bytes[first..])
}
