//! `flow run`: runs a workflow.

mod detail;
mod hidden;
mod inputs;
mod person;
pub(crate) mod plan;
pub(crate) mod prepared;
mod result;
mod screen;
mod unstarted;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use anyhow::Result;
use flow_model::Compiled;
use flow_model::diagnostic::{self, Severity};
use flow_model::graph::Graph;
use flow_runtime::host::{Answers, ReportStatus, StartOptions, Watch};
use flow_runtime::library::Library;

use crate::cli::{Driving, RunArguments, RunFormat};
use crate::engine::Engine;
use crate::exit::{Exit, Usage};
use crate::findings;
use crate::output::{Color, Output};
use crate::target;

pub(crate) use inputs::{Given, complain, described, gather};
pub(crate) use person::label;
pub(crate) use result::{elsewhere, finish, pending_json, unmoved};
use screen::Told;
pub(crate) use screen::{Screen, elapsed};
use unstarted::Unstarted;
pub(crate) use unstarted::told;

pub(crate) fn run(arguments: &RunArguments, output: &mut Output) -> Result<Exit> {
    let done = run_asked(arguments, output);
    let workflow = Some(arguments.workflow.as_str());
    told(done, workflow, None, arguments.driving.format, output)
}

/// The format that words ask for which nobody has understood yet.
pub(crate) fn asked_format(words: &[OsString]) -> RunFormat {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let asked = words.windows(2).find(|pair| pair[0] == "--format");
    let asked = asked.map(|pair| pair[1].as_ref());
    let asked = asked.or_else(|| words.iter().find_map(|it| it.strip_prefix("--format=")));
    match asked {
        Some("json") => RunFormat::Json,
        Some("jsonl") => RunFormat::Jsonl,
        _ => RunFormat::Text,
    }
}

/// Tells a program that nobody understands its words; people are told what is wrong with them.
pub(crate) fn refused_words(words: &[OsString], error: &clap::Error) {
    let drives = ["run", "resume", "answer"];
    let first = words.first();
    if !error.use_stderr() || !first.is_some_and(|it| drives.iter().any(|known| it == known)) {
        return;
    }
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let unstarted = Unstarted {
        workflow: None,
        run: None,
        final_state: None,
        faults: vec![first.trim_start_matches("error: ").to_owned()],
    };
    // Whoever does not listen hears nothing.
    let _ = unstarted.tell(asked_format(words), &mut Output::new(Color::Never));
}

fn run_asked(arguments: &RunArguments, output: &mut Output) -> Result<Exit> {
    let format = arguments.driving.format;
    let library = target::library()?;
    let compiled = target::any(&library, &arguments.workflow)?;
    let errors = findings::lines(&compiled, Severity::Error);
    let Some(graph) = checked(compiled, output) else {
        let unstarted = Unstarted {
            workflow: Some(&arguments.workflow),
            run: None,
            final_state: Some("definition_invalid"),
            faults: errors,
        };
        unstarted.tell(format, output)?;
        return Ok(Exit::Invalid);
    };
    if !arguments.variables.is_empty() {
        output.warning("`--var` is the old name of `--param`; use `-p key=value`");
    }
    let inputs = match gather(&graph, &Given::to_run(arguments))? {
        Ok(inputs) => inputs,
        Err(faults) => {
            let command = format!("run {}", arguments.workflow);
            complain(&graph, &command, &faults, output);
            let unstarted = Unstarted {
                workflow: Some(&graph.name),
                run: None,
                final_state: Some("validation_failed"),
                faults: faults.iter().map(ToString::to_string).collect(),
            };
            unstarted.tell(format, output)?;
            return Ok(Exit::Usage);
        }
    };
    if arguments.dry_run {
        return plan::show(&graph, &inputs.shown, format, output);
    }
    let beside = target::directory_of(&arguments.workflow);
    let (mut engine, screen, answered) = engine(library, None, &arguments.driving, output)?;
    let find = |name: &str| engine.workflow(name, beside.as_deref());
    for warning in prepared::warnings(&answered, &graph, find) {
        output.warning(&warning);
    }
    let is_contract = !graph.arguments.is_empty() || !graph.return_values.is_empty();
    let shell = arguments.session.as_deref();
    let session = match shell.or(is_contract.then_some("bash")) {
        Some(shell) => Some(engine.open_session(shell)?),
        None => None,
    };
    let options = StartOptions {
        beside,
        own_session: session.is_some(),
        session: session.clone(),
        max_steps: arguments.max_steps,
        timeout: arguments.timeout,
        ..StartOptions::default()
    };
    let run = engine.wait(engine.host.start(&graph, &inputs.given, options))?;
    let report = engine.drive(run);
    screen.end();
    let report = report?;
    let exit = finish(&engine, &report, &arguments.driving, output)?;
    let mut left = engine.sessions();
    if report.status != ReportStatus::Waiting {
        left.retain(|open| Some(open) != session.as_ref());
    }
    if left.is_empty() || arguments.driving.quiet {
        return Ok(exit);
    }
    let left = left.join(", ");
    match report.status {
        ReportStatus::Completed => output.tell(format_args!(
            "the terminal {left} that the run left open ends with this command"
        )),
        ReportStatus::Waiting => {
            output.tell(format_args!(
                "the terminal {left} of the run ends with this command: a later step that works in it \
                 will fail"
            ));
            output.help("answer while it runs (on a terminal, or with --answers), or run it in `flow serve`");
        }
        ReportStatus::Failed | ReportStatus::Cancelled | ReportStatus::Interrupted => {}
    }
    Ok(exit)
}

/// The graph of a definition without errors; the errors are told.
pub(crate) fn checked(compiled: Compiled, output: &mut Output) -> Option<Graph> {
    if compiled.graph().is_none() {
        let style = output.aside.style();
        let errors = compiled.findings.iter();
        for error in errors.filter(|finding| finding.severity == Severity::Error) {
            let text = diagnostic::text(error, &compiled.sources, style);
            output.tell(format_args!("{text}\n"));
        }
        output.error("a definition with errors cannot be run");
    }
    compiled.into_graph()
}

/// An engine whose progress and questions are shown as asked for, and the steps for which answers
/// are prepared.
pub(crate) fn engine(
    library: Library,
    asked: Option<&str>,
    driving: &Driving,
    output: &mut Output,
) -> Result<(Engine, Arc<Screen>, Vec<String>)> {
    let prepared = match &driving.answers {
        None => None,
        Some(path) => {
            let answers = Answers::new(&inputs::file(path, "answers")?);
            let wrong = |error| Usage::new(format!("`{}`: {error}", path.display()));
            Some(answers.map_err(wrong)?)
        }
    };
    let answered = prepared.iter().flat_map(Answers::steps);
    let answered = answered.map(str::to_owned).collect();
    let moves =
        io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
    let told = match driving.format {
        RunFormat::Jsonl => Told::Objects,
        RunFormat::Text | RunFormat::Json if driving.quiet => Told::Nothing,
        RunFormat::Text | RunFormat::Json if moves => Told::Live,
        RunFormat::Text | RunFormat::Json => Told::Lines,
    };
    let screen = Screen::new(told, output.aside);
    let somebody = io::stdin().is_terminal() && io::stderr().is_terminal();
    let person = person::Person::new(
        prepared,
        driving.interactive || somebody,
        Arc::clone(&screen),
    );
    let level = detail::Level::asked(driving.verbose).unwrap_or_else(|word| {
        output.warning(&format!(
            "FLOW_LOG is `{word}`, which is no level: it can be off, info or debug"
        ));
        None
    });
    let watch: Arc<dyn Watch> = match level {
        None => Arc::clone(&screen) as _,
        Some(level) => Arc::new(detail::Details {
            screen: Arc::clone(&screen),
            level,
        }),
    };
    let engine = Engine::new(library, asked, Arc::new(person), watch)?;
    Ok((engine, screen, answered))
}
