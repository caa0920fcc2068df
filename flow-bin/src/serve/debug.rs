//! Looking into runs: dependencies and traces of computed state, what was done, transforms tried
//! out, plans.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow_model::suggest::nearest_or_part;
use flow_model::tools::{
    DebugWorkflowRequest, DebugWorkflowResponse, ExplainWorkflowRequest, ExplainWorkflowResponse,
    GetStateDependenciesRequest, GetStateDependenciesResponse, SlowTransformation, StateSize,
    StepVisit, TestTransformationRequest, TestTransformationResponse, TraceTransformationsRequest,
    TraceTransformationsResponse, TransformationTimes, TransformationTrace, VisitStatus,
};
use flow_runtime::expression::try_transform;
use flow_runtime::host::{Trace, Traces, Visit};
use flow_runtime::journal::RunId;
use flow_runtime::run::{Ending, time};
use flow_runtime::value::Value as Given;
use serde_json::{Value, json};

use super::agent::{run_of, workflow};
use super::definition::Definition;
use super::standing::{self, Standing, now};
use super::tool::{Call, Offer, Refused};
use super::{Server, explain};

/// Slow fields that are named.
const SLOWEST: usize = 5;

pub(super) fn offers() -> Vec<Offer> {
    vec![
        Offer::new(get_state_dependencies),
        Offer::new(trace_transformations),
        Offer::new(debug_workflow),
        Offer::new(test_transformation),
        Offer::new(explain_workflow),
    ]
}

async fn get_state_dependencies(
    server: Arc<Server>,
    request: GetStateDependenciesRequest,
    _call: Call,
) -> Result<GetStateDependenciesResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let program = server.host.program_of(run)?;
    let graph = program.graph();
    let maker = server.host.maker(run, bare(&request.field))?;
    let own = graph.dependencies(&request.field);
    if maker != run {
        let program = server.host.program_of(maker)?;
        if let Some(found) = program.graph().dependencies(bare(&request.field)) {
            return Ok(GetStateDependenciesResponse {
                field: found.field,
                direct_deps: found.direct,
                all_deps: found.all,
                // What follows it here.
                dependents: own.map(|own| own.dependents).unwrap_or_default(),
                made_in: maker.to_string(),
            });
        }
    }
    let Some(found) = own else {
        let computed = names(&server, run)?.computed;
        let computed = computed.iter().map(String::as_str);
        let written = graph.state.iter().map(|initial| initial.name.as_ref());
        let names: Vec<&str> = computed.chain(written).collect();
        return Err(no_field(&request.field, &names));
    };
    Ok(GetStateDependenciesResponse {
        field: found.field,
        direct_deps: found.direct,
        all_deps: found.all,
        dependents: found.dependents,
        made_in: run.to_string(),
    })
}

/// The computed fields of a run.
struct Names {
    /// All of them, each once.
    computed: Vec<String>,
    /// Those that it has from workflows it included.
    included: Vec<String>,
}

fn names(server: &Server, run: RunId) -> Result<Names, Refused> {
    let program = server.host.program_of(run)?;
    let own = program.graph().computed.iter();
    let mut computed: Vec<String> = own.map(|field| field.name.to_string()).collect();
    let included = server.host.included(run)?.into_iter();
    let included: Vec<String> = included.map(|(field, _)| field).collect();
    for field in &included {
        if !computed.contains(field) {
            computed.push(field.clone());
        }
    }
    Ok(Names { computed, included })
}

/// The field of a path: without its tier, and without what it names within the field.
fn bare(path: &str) -> &str {
    let mut parts = path.split(['.', '[']);
    match (parts.next(), parts.next()) {
        (Some("raw" | "computed" | "state" | "this"), Some(field)) => field,
        (Some(field), _) => field,
        (None, _) => path,
    }
}

fn no_field(field: &str, names: &[&str]) -> Refused {
    let help = match nearest_or_part(field, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "it has none".to_owned(),
        None => format!("there are {}", names.join(", ")),
    };
    Refused(format!(
        "`field`: the workflow has no field `{field}`: {help}"
    ))
}

async fn trace_transformations(
    server: Arc<Server>,
    request: TraceTransformationsRequest,
    _call: Call,
) -> Result<TraceTransformationsResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let field = request.field.as_deref().map(bare);
    let names = names(&server, run)?;
    if let Some(field) = field
        && !names.computed.iter().any(|known| known == field)
    {
        let known: Vec<&str> = names.computed.iter().map(String::as_str).collect();
        return Err(no_field(field, &known));
    }
    // All of this run, and of others what this one has from them.
    let mut makers: Vec<(RunId, Vec<&str>)> = Vec::new();
    let included = names.included.iter().map(String::as_str);
    for name in field
        .into_iter()
        .chain(included.filter(|_| field.is_none()))
    {
        let maker = server.host.maker(run, name)?;
        match makers.iter_mut().find(|(known, _)| *known == maker) {
            Some((_, names)) => names.push(name),
            None => makers.push((maker, vec![name])),
        }
    }
    let mut traces: Vec<(RunId, Trace)> = Vec::new();
    let mut left_out = 0;
    let mut add = |maker: RunId, found: Traces, names: Option<&[&str]>| {
        left_out += found.left_out;
        let is_meant = |trace: &Trace| names.is_none_or(|it| it.contains(&trace.field.as_str()));
        let found = found.traces.into_iter().filter(is_meant);
        traces.extend(found.map(|trace| (maker, trace)));
    };
    if field.is_none() {
        add(run, server.host.traces(run, None)?, None);
    }
    for (maker, names) in &makers {
        add(*maker, server.host.traces(*maker, field)?, Some(names));
    }
    traces.sort_by_key(|(_, trace)| trace.at);
    let most = usize::try_from(request.max_traces).unwrap_or(usize::MAX);
    let skipped = traces.len().saturating_sub(most);
    let listed = traces.into_iter().skip(skipped);
    Ok(TraceTransformationsResponse {
        workflow_id: run.to_string(),
        traces: listed
            .map(|(maker, it)| trace(maker, it, request.include_timing))
            .collect(),
        left_out: left_out + skipped as u64,
    })
}

fn trace(maker: RunId, trace: Trace, timed: bool) -> TransformationTrace {
    let mut inputs = trace.inputs.into_iter();
    let input = match (inputs.next(), inputs.len()) {
        (None, _) => Value::Null,
        (Some((_, only)), 0) => only.to_json(),
        (Some(first), _) => {
            let all = std::iter::once(first).chain(inputs);
            Value::Array(all.map(|(_, value)| value.to_json()).collect())
        }
    };
    TransformationTrace {
        field: trace.field,
        made_in: maker.to_string(),
        timestamp: time::iso(trace.at),
        trigger: trace.cause.unwrap_or_else(|| "start".to_owned()),
        input,
        output: trace.output.map_or(Value::Null, |output| output.to_json()),
        duration_ms: timed.then(|| millis(trace.duration)),
        error: trace.error,
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

async fn debug_workflow(
    server: Arc<Server>,
    request: DebugWorkflowRequest,
    _call: Call,
) -> Result<DebugWorkflowResponse, Refused> {
    let (server, run) = run_of(&server, &request.workflow_id)?;
    let stands = Standing::of(&server, run, Duration::ZERO).await?;
    let report = stands.report;
    let sizes = server.host.sizes(run)?;
    let visits = server.host.visits(run)?;
    let traces = server.host.traces(run, None)?;
    let most = usize::try_from(request.max_steps).unwrap_or(usize::MAX);
    let skipped = visits.len().saturating_sub(most);
    Ok(DebugWorkflowResponse {
        workflow_id: run.to_string(),
        status: stands.status,
        interrupted: stands.interrupted,
        current_step: report.last_node.clone(),
        step_history: visits.into_iter().skip(skipped).map(visit).collect(),
        left_out: skipped as u64,
        state_size: StateSize {
            raw_bytes: sizes.raw_bytes,
            computed_bytes: sizes.computed_bytes,
            state_bytes: sizes.state_bytes,
            total_transformations: sizes.transformations,
        },
        performance: times(&traces),
        events: sizes.events,
        error: standing::error(&report),
        workflow_name: report.workflow,
    })
}

fn visit(visit: Visit) -> StepVisit {
    let error = visit.ending.as_ref().and_then(Ending::error);
    let error = error.map(str::to_owned);
    let status = match visit.ending {
        Some(Ending::Success) => VisitStatus::Success,
        Some(Ending::Failure(_) | Ending::Timeout(_) | Ending::Stuck(_)) => VisitStatus::Failed,
        Some(Ending::Skipped) => VisitStatus::Skipped,
        Some(Ending::Stopped) => VisitStatus::Stopped,
        None => VisitStatus::Running,
    };
    StepVisit {
        step_id: visit.step,
        frame: visit.frame,
        started_at: time::iso(visit.started_at),
        completed_at: visit.ended_at.map(time::iso),
        status,
        error,
    }
}

fn times(traces: &Traces) -> TransformationTimes {
    let mut slowest: Vec<SlowTransformation> = traces
        .fields
        .iter()
        .map(|it| SlowTransformation {
            field: it.field.clone(),
            count: it.count,
            avg_ms: average(it.total, it.count),
        })
        .collect();
    slowest.sort_by(|a, b| b.avg_ms.total_cmp(&a.avg_ms));
    slowest.truncate(SLOWEST);
    let all = traces.fields.iter();
    let (total, count) = all.fold((Duration::ZERO, 0), |(total, count), it| {
        (total + it.total, count + it.count)
    });
    TransformationTimes {
        avg_transformation_time: average(total, count),
        slowest_transformations: slowest,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "evaluations of a run are far below 2^53"
)]
fn average(total: Duration, count: u64) -> f64 {
    millis(total) / count.max(1) as f64
}

async fn test_transformation(
    _server: Arc<Server>,
    request: TestTransformationRequest,
    _call: Call,
) -> Result<TestTransformationResponse, Refused> {
    let input = Given::from(&request.input);
    let context = Given::from(&Value::Object(request.context));
    let at = i64::try_from(now()).unwrap_or(i64::MAX);
    let began = Instant::now();
    let tried = try_transform(&request.transform, &input, &context, at);
    let execution_time_ms = millis(began.elapsed());
    let (output, error) = match tried {
        Ok(output) => (output.to_json(), None),
        Err(error) => (json!(null), Some(error.to_string())),
    };
    Ok(TestTransformationResponse {
        success: error.is_none(),
        output,
        error,
        execution_time_ms,
    })
}

async fn explain_workflow(
    server: Arc<Server>,
    request: ExplainWorkflowRequest,
    _call: Call,
) -> Result<ExplainWorkflowResponse, Refused> {
    let graph = workflow(&server, &request.workflow)?;
    let given = Given::from(&Value::Object(request.inputs));
    let given: Vec<(&str, Given)> = given
        .as_map()
        .into_iter()
        .flat_map(|map| map.0.iter().map(|(name, value)| (&**name, value.clone())))
        .collect();
    let inputs = match &graph.inputs {
        None => Given::map(given),
        Some(fields) => flow_runtime::input::complete(fields, &given).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Refused(format!("`inputs`: {}", faults.join("\n")))
        })?,
    };
    let find = |name: &str| match Definition::named(&server, name) {
        Ok(Definition::Ready { graph, .. }) => Some(*graph),
        Ok(Definition::Unknown(_) | Definition::Invalid { .. }) | Err(_) => None,
    };
    Ok(explain::explained(&graph, &inputs, find))
}
