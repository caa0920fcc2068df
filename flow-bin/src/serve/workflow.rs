//! Running workflows: `run_workflow` and `flow`.

use std::sync::Arc;
use std::time::Duration;

use flow_model::graph::Graph;
use flow_model::tools::{
    Entries, FlowRequest, FlowResponse, ListFormat, RunStatus, RunWorkflowRequest,
    RunWorkflowResponse, WorkflowSignature,
};
use flow_runtime::host::{self, Answer, Pending, Report, ReportStatus, StartOptions};
use flow_runtime::journal::RunId;
use flow_runtime::library::says_name;
use flow_runtime::run::{Happening, Refusal};
use flow_runtime::value::Value as Given;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult};
use serde_json::{Map, Value};

use super::definition::Definition;
use super::library::all_listings;
use super::progress::{News, Teller};
use super::runs::{Followed, Stood};
use super::standing::{self, Values, seconds};
use super::tool::{self, Call, LIST, Offer, Refused, Reply};
use super::{Server, elicit};
use crate::cli;
use crate::list;
use crate::output::Paint;
use crate::run::plan;

pub(super) fn offers() -> Vec<Offer> {
    vec![Offer::new(flow), Offer::new(run_workflow)]
}

/// A run that is wanted.
struct Wanted {
    graph: Graph,
    inputs: Given,
    options: StartOptions,
    /// Whether the person in front of the client may be asked.
    asks: bool,
    quiet: bool,
    wait: Duration,
}

/// How a run stands when its call is answered.
enum Outcome {
    /// So; still driven when the flag says so.
    Stands(Box<Report>, bool),
    /// The client asks the person first.
    Ask(Box<InputRequiredResult>),
    /// It was to run in a terminal session that does not exist.
    NoSession(String),
}

async fn run_workflow(
    server: Arc<Server>,
    request: RunWorkflowRequest,
    call: Call,
) -> Result<Reply<RunWorkflowResponse>, Refused> {
    let definition = match (&request.workflow_name, &request.workflow_definition) {
        (Some(name), _) => Definition::named(&server, name)?,
        (None, Some(definition)) => Definition::given(&server, definition)?,
        (None, None) => {
            return Err(Refused::new(
                "give `workflow_name` or `workflow_definition`",
            ));
        }
    };
    let is_named = match (&request.workflow_name, &request.workflow_definition) {
        (None, Some(definition)) => says_name(definition),
        _ => true,
    };
    let mut response = RunWorkflowResponse {
        success: false,
        status: RunStatus::Failed,
        workflow_name: definition.name().filter(|_| is_named),
        workflow_id: None,
        session_id: request.session_id.clone(),
        final_state: String::new(),
        states_executed: 0,
        total_elapsed_time: 0.0,
        workflow_signature: None,
        execution_log: Vec::new(),
        next_log_cursor: None,
        final_variables: Map::new(),
        return_values: Entries::default(),
        output: Value::Null,
        workflow_saved: false,
        saved_workflow_name: None,
        available_workflows: server.shelves.names(),
        recursion_depth: 0,
        pending: None,
        message: None,
        validation_errors: Vec::new(),
        warnings: Vec::new(),
        error: None,
        note: None,
    };
    let graph = match definition {
        Definition::Ready { graph, warnings } => {
            response.warnings = warnings;
            *graph
        }
        Definition::Unknown(name) => {
            response.final_state = "workflow_not_found".to_owned();
            response.error = Some(server.shelves.no_such(&name));
            return Ok(response.into());
        }
        Definition::Invalid {
            errors, warnings, ..
        } => {
            response.final_state = "definition_invalid".to_owned();
            let said = errors.join("\n");
            response.error = Some(format!("the definition has errors:\n{said}"));
            response.validation_errors = errors;
            response.warnings = warnings;
            return Ok(response.into());
        }
    };
    response.workflow_signature = Some(WorkflowSignature::of(&graph));
    // The definition's own limit counts where it is the shorter one.
    let own = graph.limits.timeout.unwrap_or(f64::INFINITY);
    let timeout = (request.execution_timeout < own).then_some(request.execution_timeout);
    let inputs = Given::from(&Value::Object(request.inputs));
    let variables = Given::from(&Value::Object(request.initial_variables));
    let (inputs, variables) = flow_runtime::input::fill(&graph, &inputs, &variables)
        .map_err(|faults| unfit(&graph, &host::Error::Inputs(faults)))?;
    let wanted = Wanted {
        graph,
        inputs,
        options: StartOptions {
            variables,
            session: request.session_id,
            max_steps: request.max_states.map(u64::from),
            timeout,
            keep: match request.workflow_definition {
                Some(definition) if request.save_on_success => Given::from(&definition),
                Some(_) | None => Given::Null,
            },
            circle: Some(call.circle.to_string()),
            ..StartOptions::default()
        },
        asks: true,
        quiet: false,
        wait: Duration::from_secs_f64(request.wait_seconds),
    };
    let (report, driven) = match run(&server, wanted, &call).await? {
        Outcome::Ask(ask) => return Ok(Reply::Ask(ask)),
        Outcome::NoSession(error) => {
            response.session_id = None;
            response.final_state = "validation_failed".to_owned();
            response.error = Some(error);
            return Ok(response.into());
        }
        Outcome::Stands(report, driven) => (*report, driven),
    };
    let values = Values::of(&report, true);
    let (log, next) = standing::latest_log(&server, report.run, values.log_room)?;
    response.status = status(&server, &report, driven)?;
    response.success = response.status == RunStatus::Completed;
    response.note = note(&server, &report, driven)?;
    response.workflow_id = Some(report.run.to_string());
    response.recursion_depth = report.recursion_depth;
    response.pending = standing::pending(&server, &report)?.into_iter().next();
    response.return_values = values.return_values;
    response.session_id = report.last_session.clone().or(response.session_id);
    response.final_variables = values.variables;
    response.output = values.output;
    response.states_executed = u32::try_from(report.states_executed).unwrap_or(u32::MAX);
    response.total_elapsed_time = seconds(report.elapsed_ms);
    response.error = standing::error(&report);
    response.final_state = report.final_state.unwrap_or_default();
    response.execution_log = log;
    response.next_log_cursor = next;
    match report.kept {
        None => {}
        Some(Ok(kept)) => {
            response.message = Some(kept.sentence());
            response.workflow_saved = kept.is_new;
            response.saved_workflow_name = Some(kept.name);
            response.available_workflows = server.shelves.names();
        }
        Some(Err(reason)) => {
            response.error = Some(format!("the run succeeded and is not stored: {reason}"));
        }
    }
    Ok(response.into())
}

async fn flow(
    server: Arc<Server>,
    request: FlowRequest,
    call: Call,
) -> Result<Reply<FlowResponse>, Refused> {
    let mut response = FlowResponse {
        flow_name: request.flow_name.clone(),
        ..FlowResponse::default()
    };
    if request.flow_name == LIST {
        response.success = true;
        response.workflows = Some(all_listings(&server, request.verbose)?);
        response.listing = written(&server, request.format, request.verbose);
        return Ok(response.into());
    }
    let name = tool::meant(&request.flow_name);
    let graph = match Definition::named(&server, name)? {
        Definition::Ready { graph, .. } => *graph,
        Definition::Unknown(name) => {
            response.error = Some(server.shelves.no_such(&name));
            response.available_workflows = Some(server.shelves.names());
            return Ok(response.into());
        }
        Definition::Invalid { errors, .. } => {
            let errors = errors.join("\n");
            response.error = Some(format!("the definition has errors:\n{errors}"));
            return Ok(response.into());
        }
    };
    let inputs = Given::from(&Value::Object(request.parameters));
    if request.dry_run {
        let inputs = checked(&graph, &inputs)?;
        response.plan = Some(plan::as_json(&graph, &inputs));
        response.success = true;
        return Ok(response.into());
    }
    let wanted = Wanted {
        graph,
        inputs,
        options: StartOptions {
            circle: Some(call.circle.to_string()),
            ..StartOptions::default()
        },
        asks: request.interactive.unwrap_or(true),
        quiet: request.quiet,
        wait: Duration::from_secs_f64(request.wait_seconds),
    };
    let (report, driven) = match run(&server, wanted, &call).await? {
        Outcome::Ask(ask) => return Ok(Reply::Ask(ask)),
        Outcome::NoSession(error) => return Err(Refused(error)),
        Outcome::Stands(report, driven) => (*report, driven),
    };
    let status = status(&server, &report, driven)?;
    let values = Values::of(&report, true);
    if request.verbose {
        let (log, _) = standing::latest_log(&server, report.run, values.log_room)?;
        response.execution_log = Some(log);
    }
    response.success = status == RunStatus::Completed;
    response.note = note(&server, &report, driven)?;
    response.status = Some(status);
    response.workflow_id = Some(report.run.to_string());
    response.pending = standing::pending(&server, &report)?.into_iter().next();
    response.states_executed = Some(report.states_executed);
    response.total_elapsed_time = Some(seconds(report.elapsed_ms));
    response.output = Some(values.output);
    response.return_values = report
        .return_values
        .is_some()
        .then_some(values.return_values);
    response.state = Some(values.state);
    response.error = standing::error(&report);
    response.final_state = report.final_state;
    Ok(response.into())
}

/// The list of workflows in a format other than JSON.
fn written(server: &Server, format: ListFormat, verbose: bool) -> Option<String> {
    let format = cli::ListFormat::from(format);
    if format == cli::ListFormat::Json {
        return None;
    }
    let catalogue = &server.shelves.reading().catalogue;
    Some(list::text(catalogue, format, verbose, Paint::none(), None))
}

/// Inputs with their defaults, or every fault.
fn checked(graph: &Graph, inputs: &Given) -> Result<Given, Refused> {
    host::complete(graph, inputs).map_err(|error| unfit(graph, &error))
}

/// Inputs that do not fit, with those that the workflow has.
fn unfit(graph: &Graph, error: &host::Error) -> Refused {
    let fields = graph.inputs.as_deref().unwrap_or_default();
    let known: Vec<String> = fields
        .iter()
        .map(|field| match field.required {
            true => format!("{} ({}, required)", field.name, field.ty.word()),
            false => format!("{} ({})", field.name, field.ty.word()),
        })
        .collect();
    let known = match known.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}", known.join(", ")),
    };
    let name = &graph.name;
    Refused(format!("inputs of `{name}` do not fit; {known}:\n{error}"))
}

/// Starts a run, or goes on with the one that the person was asked about, and waits for it.
async fn run(server: &Arc<Server>, wanted: Wanted, call: &Call) -> Result<Outcome, Refused> {
    let run = match asked_before(server, call)? {
        Some(run) => {
            if let Some(again) = answered(server, run, call).await? {
                return Ok(Outcome::Ask(again));
            }
            run
        }
        None => {
            let started = server
                .host
                .start(&wanted.graph, &wanted.inputs, wanted.options);
            match started.await {
                Ok(run) => run,
                Err(error @ host::Error::NoSession(_)) => {
                    return Ok(Outcome::NoSession(error.to_string()));
                }
                Err(error @ host::Error::Inputs(_)) => return Err(unfit(&wanted.graph, &error)),
                Err(error) => return Err(error.into()),
            }
        }
    };
    let teller = match wanted.quiet {
        true => None,
        false => Teller::new(call, &wanted.graph, run),
    };
    if let Some(teller) = &teller
        && call.state.is_none()
    {
        let parameters = plan::shown_inputs(&wanted.graph, &wanted.inputs);
        teller.outbox().put(News::Started { parameters });
    }
    let listening = server.audience.listen(run, call, teller, wanted.asks);
    let followed = server.follow(run, wanted.wait, call).await;
    listening.stop().await;
    let (report, driven) = match followed? {
        Followed::Stood(Stood::Let(report)) => (report, false),
        Followed::Stood(Stood::Elsewhere) => (Box::new(server.host.report(run)?), true),
        Followed::Stood(Stood::Broken(reason)) => return Err(Refused(reason)),
        Followed::Going => (Box::new(server.host.report(run)?), true),
    };
    let waits =
        report.status == ReportStatus::Waiting && (!driven || standing::asks(server, &report)?);
    if waits && wanted.asks && call.is_stateless && call.can_ask() && !put_off(call) {
        let pending = server.host.pending(&report)?;
        if let Some(ask) = question(server, run, &pending, None) {
            return Ok(Outcome::Ask(ask));
        }
    }
    Ok(Outcome::Stands(report, driven))
}

/// The run that the answer before asked about.
fn asked_before(server: &Server, call: &Call) -> Result<Option<RunId>, Refused> {
    let Some(state) = &call.state else {
        return Ok(None);
    };
    let run: Result<RunId, _> = state.parse();
    match run {
        Ok(run) => {
            server.host.journal().run(run)?;
            Ok(Some(run))
        }
        Err(_) => Err(Refused::new(
            "`requestState` is not one that this server gave",
        )),
    }
}

/// Whether the person closed a form without an answer.
fn put_off(call: &Call) -> bool {
    let answers = call.answers.iter().flatten();
    let mut said = answers.filter_map(|(_, it)| serde_json::from_value(it.clone()).ok());
    said.any(|it: ElicitResult| it.action == rmcp::model::ElicitationAction::Cancel)
}

/// Questions of a run for the client to ask; keys are runs and their actions.
fn question(
    server: &Server,
    run: RunId,
    pending: &[Pending],
    complaint: Option<(&str, &str)>,
) -> Option<Box<InputRequiredResult>> {
    let mut requests = InputRequests::new();
    for awaited in pending {
        let key = key(awaited);
        let complaint = complaint
            .filter(|(about, _)| *about == key)
            .map(|(_, it)| it);
        let workflow = workflow_of(server, awaited);
        let form = elicit::asked(&workflow, &awaited.action)
            .and_then(|(message, asked)| elicit::form(&message, asked, complaint));
        if let Some(form) = form {
            requests.insert(key, InputRequest::Elicitation(ElicitRequest::new(form)));
        }
    }
    if requests.is_empty() {
        return None;
    }
    Some(Box::new(InputRequiredResult::new(
        Some(requests),
        Some(run.to_string()),
    )))
}

/// The workflow of the run that asks.
fn workflow_of(server: &Server, awaited: &Pending) -> String {
    let record = server.host.journal().run(awaited.run);
    record.map(|record| record.workflow).unwrap_or_default()
}

fn key(awaited: &Pending) -> String {
    format!("{}/{}", awaited.run, awaited.action.id.0)
}

/// Records what the person said; an answer that is not valid is asked for again.
async fn answered(
    server: &Server,
    run: RunId,
    call: &Call,
) -> Result<Option<Box<InputRequiredResult>>, Refused> {
    let report = server.host.report(run)?;
    let pending = server.host.pending(&report)?;
    let answers = call.answers.iter().flatten();
    for (about, said) in answers {
        let Some(awaited) = pending.iter().find(|it| key(it) == *about) else {
            // Somebody else has answered it meanwhile.
            continue;
        };
        let action = &awaited.action;
        let Some((_, asked)) = elicit::asked("", action) else {
            continue;
        };
        let said: ElicitResult = serde_json::from_value(said.clone())
            .map_err(|error| Refused(format!("the answer to `{about}` cannot be read: {error}")))?;
        let happening = match elicit::answer(asked, &said) {
            Answer::Given(result) => Happening::Completed {
                action: action.id,
                result,
            },
            Answer::Declined(reason) => Happening::Declined {
                action: action.id,
                reason,
            },
            Answer::Unfit(reason) => {
                return Ok(question(server, run, &pending, Some((about, &reason))));
            }
            Answer::Later => continue,
        };
        match server.host.record(awaited.run, happening).await {
            Ok(()) => {}
            Err(host::Error::Refused(Refusal::Invalid(reason))) => {
                return Ok(question(server, run, &pending, Some((about, &reason))));
            }
            Err(
                host::Error::Refused(_)
                | host::Error::TooLate { .. }
                | host::Error::NotAsked { .. },
            ) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// What leads on from where a run stands.
fn note(server: &Server, report: &Report, driven: bool) -> Result<Option<String>, Refused> {
    let status = standing::loop_status(server, report)?;
    let alive = driven || standing::is_alive(server, report.run);
    Ok(standing::way_on(server, report, status, alive))
}

/// How a run stands, in the words of the run tools.
fn status(server: &Server, report: &Report, driven: bool) -> Result<RunStatus, Refused> {
    Ok(match report.status {
        ReportStatus::Completed => RunStatus::Completed,
        ReportStatus::Failed => RunStatus::Failed,
        ReportStatus::Cancelled => RunStatus::Cancelled,
        // A run that is still driven may nevertheless wait for an answer.
        ReportStatus::Waiting | ReportStatus::Interrupted => {
            match driven && !standing::asks(server, report)? {
                true => RunStatus::Running,
                false => RunStatus::Waiting,
            }
        }
    })
}
