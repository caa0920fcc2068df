//! Runs that an agent drives step by step, and how any run stands.
//!
//! The loop itself is [`flow_runtime::host::Agents`]; here its answers get the form that the tools
//! of `flow_model::tools` promise.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow_model::graph::{Graph, Operation};
use flow_model::tools::{
    AgentStep, CheckpointWorkflowRequest, CheckpointWorkflowResponse, CompleteStatus,
    CompleteWorkflowRequest, CompleteWorkflowResponse, GetNextStepRequest, GetWorkflowStateRequest,
    GetWorkflowStateResponse, GetWorkflowStatusRequest, GetWorkflowStatusResponse, LoopStatus,
    NextStepResponse, OpenTask, ResumeWorkflowRequest, ResumeWorkflowResponse,
    StartWorkflowRequest, StartWorkflowResponse, StateOperation, StateUpdate, StepStatus,
    SubmitResultRequest, SubmitStepResultRequest, Toolset, UpdateWorkflowStateRequest,
    UpdateWorkflowStateResponse, WorkflowCheckpoint,
};
use flow_runtime::host::agent::{
    AgentError, Conclusion, Outcome, Patience, Submission, Task, TaskPage, Turn,
};
use flow_runtime::host::{self, StartOptions};
use flow_runtime::journal::{RunId, Status};
use flow_runtime::run::{Allowance, Checkpoint, Update, time};
use flow_runtime::value::Value as Given;
use serde_json::{Map, Value};

use super::Server;
use super::audience::Listening;
use super::definition::Definition;
use super::excerpt::{self, Room};
use super::progress::News;
use super::runs::LOOK_EVERY;
use super::standing::{self, Extent, object};
use super::tool::{Call, Offer, Refused};
use crate::run::plan;

/// How long the server is waited for when nobody says.
const WAIT: f64 = 50.0;

pub(super) fn offers() -> Vec<Offer> {
    vec![
        Offer::new(start_workflow),
        Offer::new(get_next_step).also_in(&[Toolset::Workflow]),
        Offer::new(submit_step_result).also_in(&[Toolset::Workflow]),
        Offer::new(submit_result),
        Offer::new(get_workflow_status).also_in(&[Toolset::Workflow]),
        Offer::new(get_workflow_state).also_in(&[Toolset::Workflow]),
        Offer::new(update_workflow_state),
        Offer::new(checkpoint_workflow),
        Offer::new(resume_workflow).also_in(&[Toolset::Workflow]),
        Offer::new(complete_workflow).also_in(&[Toolset::Workflow]),
    ]
}

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Self {
        Refused(error.to_string())
    }
}

/// The run that is meant, with the server of the journal that holds it.
pub(super) fn run_of(
    server: &Arc<Server>,
    workflow_id: &str,
) -> Result<(Arc<Server>, RunId), Refused> {
    let found = server.holding(workflow_id);
    found.map_err(|Refused(reason)| Refused(format!("`workflow_id`: {reason}")))
}

/// The workflow of a name, or why it cannot be run.
pub(super) fn workflow(server: &Server, name: &str) -> Result<Graph, Refused> {
    match Definition::named(server, name)? {
        Definition::Ready { graph, .. } => Ok(*graph),
        Definition::Unknown(name) => {
            let unknown = server.shelves.no_such(&name);
            Err(Refused(format!("`workflow`: {unknown}")))
        }
        Definition::Invalid { errors, .. } => {
            let errors = errors.join("\n");
            Err(Refused(format!(
                "`workflow`: the definition of `{name}` has errors:\n{errors}"
            )))
        }
    }
}

fn patience(seconds: f64) -> Patience {
    Patience::of(Duration::from_secs_f64(seconds))
}

async fn start_workflow(
    server: Arc<Server>,
    request: StartWorkflowRequest,
    call: Call,
) -> Result<StartWorkflowResponse, Refused> {
    let graph = workflow(&server, &request.workflow)?;
    let inputs = Given::from(&Value::Object(request.inputs));
    let options = StartOptions {
        circle: Some(call.circle.to_string()),
        session: request.session_id,
        ..StartOptions::default()
    };
    let agents = &server.agents;
    let started = agents
        .start(&graph, &inputs, options)
        .await
        .map_err(|error| match error {
            host::Error::Inputs(_) => Refused(format!("`inputs`: {error}")),
            error => error.into(),
        });
    let run = started?;
    let wait = patience(request.wait_seconds);
    let heard = server.audience.overhear(&server.host, run, &call);
    if let Some(heard) = &heard {
        let parameters = plan::shown_inputs(&graph, &inputs);
        heard.tell(News::Started { parameters });
    }
    let turn = agents.next(run, None, TaskPage::default(), wait).await;
    let turn = told(heard, turn).await?;
    let state = agents.state(run).await?;
    let next = answer(&server, turn)?;
    Ok(StartWorkflowResponse {
        workflow_id: next.workflow_id,
        workflow_name: graph.name.to_string(),
        status: next.status,
        state: Room::new().value(state.to_json(), ""),
        step: next.step,
        wake_at: next.wake_at,
        output: next.output,
        return_values: next.return_values,
        error: next.error,
        note: next.note,
    })
}

async fn get_next_step(
    server: Arc<Server>,
    request: GetNextStepRequest,
    call: Call,
) -> Result<NextStepResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let context = request.sub_agent_context.as_ref();
    let given = context.and_then(|context| context.get("task_id")?.as_str());
    let task = request.task_id.as_deref().or(given);
    if let (Some(task), Some(given)) = (task, given)
        && task != given
    {
        return Err(Refused(format!(
            "`task_id` is `{task}`, and that of `sub_agent_context` is `{given}`: give one of them"
        )));
    }
    if let (Some(context), None) = (context, task) {
        let has: Vec<String> = context.keys().map(|key| format!("`{key}`")).collect();
        return Err(Refused(format!(
            "`sub_agent_context` must have the `task_id` of the sub-agent's task as a text, and has {}; leave it out for the run itself",
            if has.is_empty() {
                "nothing".to_owned()
            } else {
                has.join(", ")
            }
        )));
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let page = TaskPage {
        from: number(request.first_task),
        most: request.max_tasks.map(number),
    };
    let patience = match request.wait_seconds {
        Some(seconds) => patience(seconds).for_others(),
        None => patience(WAIT),
    };
    let heard = server.audience.overhear(&server.host, run, &call);
    let turn = server.agents.next(run, task, page, patience).await;
    answer(&server, told(heard, turn).await?)
}

/// What came of a call, once its client has heard all that happened before.
async fn told<T>(heard: Option<Listening>, came: T) -> T {
    if let Some(heard) = heard {
        heard.stop().await;
    }
    came
}

async fn submit_step_result(
    server: Arc<Server>,
    request: SubmitStepResultRequest,
    call: Call,
) -> Result<NextStepResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let submission = submission(&request.result, request.status, request.error)?;
    let wait = patience(request.wait_seconds);
    submit(
        &server,
        run,
        Some(&request.step_id),
        submission,
        wait,
        &call,
    )
    .await
}

/// Submits what came of a step. A run that was interrupted goes on from then on; what was not its
/// to be answered is said to be so.
async fn submit(
    server: &Server,
    run: RunId,
    step: Option<&str>,
    submission: Submission,
    wait: Patience,
    call: &Call,
) -> Result<NextStepResponse, Refused> {
    let record = server.host.journal().run(run)?;
    let interrupted = record.status == Status::Running && !standing::is_alive(server, run);
    let page = TaskPage::default();
    let heard = server.audience.overhear(&server.host, run, call);
    let turn = server.agents.submit(run, step, submission, page, wait);
    let turn = turn.await;
    match told(heard, turn).await {
        Ok(turn) => answer(server, turn),
        Err(AgentError::NotPending { pending, .. }) if interrupted && pending.is_empty() => {
            Err(Refused(format!(
                "no step of {run} waits for a result: it was interrupted, and goes on from now; `get_next_step` says how it stands"
            )))
        }
        Err(error) => Err(error.into()),
    }
}

async fn submit_result(
    server: Arc<Server>,
    request: SubmitResultRequest,
    call: Call,
) -> Result<NextStepResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let submission = submission(&request.result, request.status, request.error)?;
    let wait = patience(request.wait_seconds);
    submit(&server, run, None, submission, wait, &call).await
}

fn submission(
    result: &Value,
    status: StepStatus,
    error: Option<String>,
) -> Result<Submission, Refused> {
    // An agent that forgets the status must not have failed for nobody to know.
    if let (StepStatus::Success, Some(said)) = (status, &error)
        && !said.trim().is_empty()
    {
        return Err(Refused::new(
            "`error` says why a step failed, and `status` is `success`: give `status` `failed`, or leave `error` out",
        ));
    }
    Ok(Submission {
        outcome: match status {
            StepStatus::Success => Outcome::Success,
            StepStatus::Failed => Outcome::Failed,
            StepStatus::TimedOut => Outcome::TimedOut,
            StepStatus::Declined => Outcome::Declined,
        },
        result: (!result.is_null()).then(|| Given::from(result)),
        error,
    })
}

async fn get_workflow_status(
    server: Arc<Server>,
    request: GetWorkflowStatusRequest,
    call: Call,
) -> Result<GetWorkflowStatusResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let wait = Duration::from_secs_f64(request.wait_seconds);
    server.host.go_on_with_left();
    let until = Instant::now() + wait;
    let left = || until.saturating_duration_since(Instant::now());
    loop {
        let has_settled = server.settled(run, left(), &call).await;
        let extent = Extent::Answer {
            log: request.include_log,
            cursor: request.log_cursor.as_deref(),
        };
        // Where nobody goes on with it, nothing is waited for.
        let wait = match standing::is_alive(&server, run) {
            true => left(),
            false => Duration::ZERO,
        };
        let status = standing::status(&server, run, wait, extent).await?;
        // Whoever is about to go on with it may not have done so when it was looked at.
        let goes_on = has_settled && status.status == LoopStatus::Running;
        if !goes_on || left() < LOOK_EVERY {
            return Ok(status);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn get_workflow_state(
    server: Arc<Server>,
    request: GetWorkflowStateRequest,
    _call: Call,
) -> Result<GetWorkflowStateResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let mut computed_errors = server.agents.computed_errors(run).await?;
    if let Some(paths) = &request.paths {
        computed_errors.retain(|name, _| {
            let names = |path: &String| path.split(['.', '[']).any(|part| part == name);
            paths.iter().any(names)
        });
    }
    let state = match request.paths {
        None => Room::new().map(object(&server.agents.state(run).await?), ""),
        Some(paths) => {
            let values = server.agents.values(run, paths.clone()).await?;
            let report = server.agents.report(run).await?;
            let mut read = Map::new();
            for (path, value) in paths.into_iter().zip(values) {
                let value = match value {
                    Some(value) => value.to_json(),
                    None => standing::beside_state(&server, &report, &path)?.unwrap_or_default(),
                };
                read.insert(path, value);
            }
            read
        }
    };
    Ok(GetWorkflowStateResponse {
        workflow_id: run.to_string(),
        state,
        computed_errors,
    })
}

async fn update_workflow_state(
    server: Arc<Server>,
    request: UpdateWorkflowStateRequest,
    _call: Call,
) -> Result<UpdateWorkflowStateResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    if request.updates.is_empty() {
        return Err(Refused::new("`updates` must have at least one change"));
    }
    let updates = request.updates.into_iter().enumerate();
    let updates: Result<Vec<Update>, Refused> = updates.map(|(at, it)| update(at, it)).collect();
    let updates = updates?;
    let changed = server.agents.update(run, updates).await;
    let changed = changed.map_err(|error| Refused(format!("`updates`: {error}")))?;
    Ok(UpdateWorkflowStateResponse {
        success: true,
        workflow_id: run.to_string(),
        computed: object(&changed.changed),
        computed_errors: changed.failed,
    })
}

fn update(at: usize, update: StateUpdate) -> Result<Update, Refused> {
    let operation = match update.operation {
        StateOperation::Set => Operation::Set,
        StateOperation::Append => Operation::Append,
        StateOperation::Increment => Operation::Increment,
        StateOperation::Merge => Operation::Merge,
    };
    let value = match (update.value, operation) {
        (Some(value), _) => Given::from(&value),
        (None, Operation::Increment) => Given::Int(1),
        (None, Operation::Set | Operation::Append | Operation::Merge) => {
            return Err(Refused(format!(
                "`updates[{at}].value` is missing: say what is written to `{}`; `null` is a value",
                update.path
            )));
        }
    };
    Ok(Update {
        path: update.path,
        operation,
        value,
    })
}

async fn checkpoint_workflow(
    server: Arc<Server>,
    request: CheckpointWorkflowRequest,
    _call: Call,
) -> Result<CheckpointWorkflowResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let step = match request.step_id {
        Some(step) => Some(step),
        None => {
            let page = TaskPage {
                from: 0,
                most: Some(0),
            };
            let turn = server.agents.next(run, None, page, Patience::NONE).await?;
            turn.step.map(|step| step.id)
        }
    };
    let marked = server.agents.checkpoint(run, step, request.reason).await?;
    let checkpoint = checkpoint(run, marked);
    Ok(CheckpointWorkflowResponse {
        success: true,
        workflow_id: run.to_string(),
        checkpoint_id: checkpoint.checkpoint_id.clone(),
        state_path: server.host.journal().path().display().to_string(),
        resume_with: format!("resume_workflow with workflow_id {run}"),
        checkpoint,
    })
}

fn checkpoint(run: RunId, checkpoint: Checkpoint) -> WorkflowCheckpoint {
    WorkflowCheckpoint {
        checkpoint_id: format!("{run}@{}", checkpoint.event),
        step_id: checkpoint.step,
        timestamp: time::iso(checkpoint.at),
        reason: checkpoint.reason,
    }
}

async fn resume_workflow(
    server: Arc<Server>,
    request: ResumeWorkflowRequest,
    call: Call,
) -> Result<ResumeWorkflowResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let agents = &server.agents;
    let allowance = Allowance {
        max_steps: request.max_states,
        timeout: request.execution_timeout,
    };
    let status = server.host.journal().run(run)?.status;
    if allowance != Allowance::default() && status != Status::Failed {
        return Err(Refused(format!(
            "`max_states` and `execution_timeout` let a failed run try again with more, and {run} has not failed: leave them out"
        )));
    }
    let secrets = Given::from(&Value::Object(request.inputs));
    let given = server.host.give_secrets(run, &secrets);
    given.map_err(|error| match error {
        host::Error::Inputs(_) => Refused(format!("`inputs`: {error}")),
        error => error.into(),
    })?;
    let heard = server.audience.overhear(&server.host, run, &call);
    let wait = patience(request.wait_seconds);
    let turn = match agents.resume_with(run, allowance).await {
        Ok(()) => agents.next(run, None, TaskPage::default(), wait).await,
        Err(error) => Err(error),
    };
    let turn = told(heard, turn).await?;
    let report = agents.report(run).await?;
    let last = agents.last_checkpoint(run).await?;
    let next = answer(&server, turn)?;
    Ok(ResumeWorkflowResponse {
        workflow_id: next.workflow_id,
        workflow_name: report.workflow,
        status: next.status,
        state: Room::new().value(report.state.to_json(), ""),
        last_checkpoint: last.map(|last| checkpoint(run, last)),
        step: next.step,
        open_tasks: next.open_tasks,
        open_step: next.open_step,
        open_task_count: next.open_task_count,
        next_task: next.next_task,
        wake_at: next.wake_at,
        output: next.output,
        return_values: next.return_values,
        error: next.error,
        missing_secrets: next.missing_secrets,
        note: next.note,
    })
}

async fn complete_workflow(
    server: Arc<Server>,
    request: CompleteWorkflowRequest,
    _call: Call,
) -> Result<CompleteWorkflowResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let how = match request.status {
        CompleteStatus::Success => Conclusion::Success,
        CompleteStatus::Failed => Conclusion::Failed,
        CompleteStatus::Cancelled => Conclusion::Cancelled,
    };
    let otherwise = "the agent that drove it ended it";
    let reason = request.reason.as_deref().unwrap_or(otherwise);
    let agents = &server.agents;
    agents.conclude(run, how, reason).await?;
    let turn = agents.next(run, None, TaskPage::default(), Patience::NONE);
    let next = answer(&server, turn.await?)?;
    let state = agents.state(run).await?;
    // Who cancels a run is not told that as an error.
    let cancelled = how == Conclusion::Cancelled && next.status == LoopStatus::Cancelled;
    Ok(CompleteWorkflowResponse {
        success: cancelled || next.status == LoopStatus::Completed,
        workflow_id: next.workflow_id,
        status: next.status,
        final_state: Room::new().value(state.to_json(), ""),
        output: next.output,
        return_values: next.return_values,
        error: next.error.filter(|_| !cancelled),
    })
}

/// What an agent is told, as the tools say it.
fn answer(server: &Server, turn: Turn) -> Result<NextStepResponse, Refused> {
    let report = match turn.status.is_over() && turn.task.is_none() {
        true => Some(server.host.report(turn.run)?),
        false => None,
    };
    let mut room = Room::new();
    let output = match turn.task {
        None => room.value(turn.output.to_json(), "output"),
        Some(_) => room.value_of_task(turn.output.to_json()),
    };
    let return_values = report
        .as_ref()
        .map(|report| standing::return_values(report, Some(&mut room)));
    let status = standing::turn_status(turn.status);
    let way_on = report.and_then(|report| standing::way_on(server, &report, status, false));
    Ok(NextStepResponse {
        workflow_id: turn.run.to_string(),
        task_id: turn.task,
        status,
        step: turn.step.map(plain),
        open_tasks: turn.open_tasks.into_iter().map(open_task).collect(),
        open_task_count: turn.open_count as u64,
        next_task: turn.open_next.map(|next| next as u64),
        open_step: turn.open_step.map(plain),
        wake_at: turn.wakes.map(time::iso),
        output,
        return_values: return_values.unwrap_or_default(),
        error: turn.error.map(|error| excerpt::reason(error.message)),
        missing_secrets: turn.missing_secrets,
        note: turn.note.or(way_on),
    })
}

/// A step with all that is to be done, which says again only in short what it was made from.
fn plain(step: AgentStep) -> AgentStep {
    let whole = "`definition` has it where it is used";
    AgentStep {
        variable_replacements: excerpt::brief(step.variable_replacements, whole),
        ..step
    }
}

fn open_task(task: Task) -> OpenTask {
    OpenTask {
        task_id: task.id,
        workflow_id: task.run.to_string(),
        context: task.context.to_json(),
        begun: task.begun,
        sub_agent_prompt: task.prompt,
    }
}
