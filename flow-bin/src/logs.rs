//! `flow logs`: what the commands of a run wrote.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use flow_runtime::journal::{Chunk, RunId, Status};
use flow_runtime::run::Effect;
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
    let mut log = Log {
        arguments,
        run,
        steps: steps(&engine, run)?,
        after: 0,
        writing: None,
        is_in_line: false,
        pieces: Vec::new(),
    };
    let has_run = |step: &String| log.steps.values().any(|known| known == step);
    if let Some(step) = &arguments.step
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
    Ok(Exit::Done)
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
fn steps(engine: &Engine, run: RunId) -> Result<HashMap<String, String>> {
    let history = engine.host.history(run)?.into_iter();
    let steps = history.filter_map(|(_, effect)| match effect {
        Effect::Act(action) => Some((action.key, action.node)),
        _ => None,
    });
    Ok(steps.collect())
}

/// A log while it is written out.
struct Log<'a> {
    arguments: &'a LogsArguments,
    run: RunId,
    steps: HashMap<String, String>,
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
        let step = self.steps.get(&chunk.action).map_or("?", String::as_str);
        let wanted = self.arguments.step.as_deref();
        if wanted.is_some_and(|wanted| wanted != step) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&chunk.bytes);
        if let ShowFormat::Json = self.arguments.format {
            let piece = json!({"step": step, "stream": chunk.stream, "text": text});
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
            self.writing = Some(chunk.action);
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
