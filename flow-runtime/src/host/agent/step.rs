//! Steps as agents get them: everything evaluated, with instructions that need no knowledge of the
//! workflow.

use flow_model::graph::{By, OutputFormat, PromptKind, Runner, Write};
use flow_model::tools::{AgentStep, AgentStepType};
use serde_json::{Map, Value as Json, json};

use super::super::judged::JUDGE_INSTRUCTIONS;
use super::super::local::Host;
use crate::journal::RunId;
use crate::run::frame::OwnPrompt;
use crate::run::{Action, Deed, Origin, Run, Tasks};
use crate::secret;
use crate::value::Value;

/// How sub-agents work, told to each of them.
const SUB_AGENT: &str = include_str!("sub_agent.md");
/// The same for a named agent that gets a whole item.
const WHOLE_ITEM: &str = include_str!("whole_item.md");

/// A step as an agent may see it.
pub(super) fn masked(step: AgentStep) -> AgentStep {
    let hide = |map: Map<String, Json>| {
        let entries = map.into_iter();
        entries
            .map(|(name, value)| (name, secret::mask_json(value)))
            .collect()
    };
    AgentStep {
        instructions: secret::mask(&step.instructions).into_owned(),
        definition: hide(step.definition),
        variable_replacements: hide(step.variable_replacements),
        ..step
    }
}

/// A task for a sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name in the run.
    pub id: String,
    /// The run.
    pub run: RunId,
    /// The inputs of the task: all a sub-agent needs to know.
    pub context: Value,
    /// Whether a sub-agent has begun it.
    pub begun: bool,
    /// What its sub-agent is told, where that is its own.
    pub prompt: Option<String>,
}

impl Task {
    /// About how many bytes it has in an answer.
    pub(super) fn size(&self) -> usize {
        let prompt = self.prompt.as_ref().map_or(0, String::len);
        // Names of fields and the run's id.
        self.id.len() + self.context.to_string().len() + prompt + 120
    }
}

/// Which of many tasks are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskPage {
    /// The index of the first.
    pub from: usize,
    /// How many; as many as fit into an answer when `None`.
    pub most: Option<usize>,
}

/// Bytes of tasks that fit into an answer: clients refuse much larger ones.
pub(super) const TASKS_FIT: usize = 200_000;

/// An action as a step.
pub(super) fn of_action(host: &Host, run: &Run, action: &Action) -> AgentStep {
    let agent_instructions = host.instructions_for(run.program().graph(), &action.what);
    let mut definition = Map::new();
    let mut put = |name: &str, value: Json| {
        definition.insert(name.to_owned(), value);
    };
    let (kind, mut instructions) = match &action.what {
        Deed::Shell {
            command,
            env,
            working_directory,
            by,
            output,
            reason,
        } => {
            put("command", json!(command));
            let begun_in = run.data().and_then(|data| data.start.directory.as_deref());
            let directory = match (begun_in, working_directory) {
                (Some(base), Some(given)) => {
                    let joined = std::path::Path::new(base).join(given);
                    Some(joined.to_string_lossy().into_owned())
                }
                (Some(base), None) => Some(base.to_owned()),
                (None, given) => given.clone(),
            };
            put("working_directory", json!(directory));
            let mut environment: Map<String, Json> = env
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            environment.insert("FLOW_STEP_KEY".to_owned(), json!(action.key));
            put("environment", Json::Object(environment));
            put("output_format", json!(format_word(*output)));
            let whose = match by {
                By::Agent => AgentStepType::AgentShellCommand,
                By::Host | By::Server => AgentStepType::Shell,
            };
            let mut text =
                "Run `command` with a shell, in `working_directory`, with `environment` \
                added. Submit {\"stdout\", \"stderr\", \"exit_code\"} as the result, unchanged, \
                also when the command fails."
                    .to_owned();
            if let Some(reason) = reason {
                put("reason", json!(reason));
                text.push_str(" You have to run it because: ");
                text.push_str(reason);
            }
            (whose, text)
        }
        Deed::Tool {
            tool, parameters, ..
        } => {
            put("tool", json!(tool));
            put("parameters", parameters.to_json());
            let mut text = format!(
                "Call the MCP tool `{tool}` with exactly these `parameters` and submit its answer \
                 as the result. If the tool does not exist or answers with an error, submit \
                 status \"failed\" with that error."
            );
            if let Some(returns) = returns_of(run, tool) {
                put("returns", returns);
                text.push_str(
                    " An answer that is not what `returns` declares is refused with the reason.",
                );
            }
            (AgentStepType::McpCall, text)
        }
        Deed::Prompt {
            message,
            kind,
            options,
        } => prompt(run, action, message, *kind, options, &mut put),
        Deed::Delegate {
            instructions,
            agent,
            returns,
            complaint,
        } => {
            put("instructions", json!(instructions));
            let mut text = match agent {
                None => "Do what `definition.instructions` says yourself.".to_owned(),
                Some(agent) => {
                    put("agent", json!(format!("@{agent}")));
                    if let Some(told) = &agent_instructions {
                        put("agent_instructions", json!(told));
                    }
                    format!(
                        "Hand `definition.instructions` to your sub-agent `{agent}`, after \
                         `definition.agent_instructions` if there are any. If you have no such \
                         sub-agent, do it yourself in its place."
                    )
                }
            };
            match returns {
                None => text.push_str(" Submit {\"response\": \"…\"} with the answer."),
                Some(returns) => {
                    put("returns", returns.to_json());
                    text.push_str(
                        " Submit as the result a value that satisfies the JSON Schema in \
                         `definition.returns`.",
                    );
                }
            }
            if let Some(complaint) = complaint {
                put("complaint", json!(complaint));
                text.push_str(
                    " The answer before was not accepted (where a result has a field \
                     `response`, that is taken as the answer): ",
                );
                text.push_str(complaint);
            }
            (AgentStepType::Delegate, text)
        }
        Deed::DelegateItem {
            agent,
            task,
            inputs,
            prompt,
        } => {
            let told = item_instructions(run, task, prompt.as_deref());
            put("instructions", json!(told));
            put("agent", json!(format!("@{agent}")));
            if let Some(told) = &agent_instructions {
                put("agent_instructions", json!(told));
            }
            put("inputs", inputs.to_json());
            let text = "Do what `definition.instructions` says for `definition.inputs`, whole, as \
                `definition.agent_instructions` says if there are any. Submit what you found or \
                made as the result."
                .to_owned();
            (AgentStepType::Delegate, text)
        }
        Deed::Judge { choices, result } => {
            let choices = choices.iter().enumerate().map(
                |(index, (description, state))| json!({"index": index, "description": description, "next_state": state}),
            );
            put("choices", Json::Array(choices.collect()));
            put("result", result.to_json());
            put("workflow", json!(run.program().graph().name));
            put("state", json!(action.node));
            (AgentStepType::Judge, JUDGE_INSTRUCTIONS.to_owned())
        }
        Deed::Call { .. } | Deed::Environment { .. } => (AgentStepType::Delegate, String::new()),
    };
    if let Some(seconds) = allowed(run, action) {
        put("timeout", json!(seconds));
        // A text of the definition may be the end of it so far.
        if !instructions.is_empty() && !instructions.ends_with(['.', '!', '?', ':', ';']) {
            instructions.push('.');
        }
        instructions.push_str(&format!(
            " Stop after {seconds} s: submit status \"timed_out\" then."
        ));
    }
    if action.attempt > 1 {
        put("attempt", json!(action.attempt));
        instructions.push_str(&format!(
            " This is attempt {}; the one before failed.",
            action.attempt
        ));
    }
    let node = run.node(action);
    // A judgement is written nowhere, and an item only with all the others.
    let is_whole = !matches!(action.what, Deed::Judge { .. } | Deed::DelegateItem { .. });
    let writes = node.filter(|_| is_whole).map(|node| &node.writes);
    if let Some(update) = writes.and_then(|writes| state_update(run, action, writes)) {
        put("state_update", update);
    }
    if let Some(description) = node.and_then(|node| node.description.as_deref()) {
        put("description", json!(description));
    }
    finish(
        run.step_name(action),
        kind,
        instructions,
        definition,
        run.origin(action),
    )
}

fn finish(
    id: String,
    kind: AgentStepType,
    instructions: String,
    definition: Map<String, Json>,
    origin: Origin,
) -> AgentStep {
    let replacements = origin.replacements.into_iter();
    AgentStep {
        id,
        kind,
        instructions,
        definition,
        variable_replacements: replacements
            .map(|(text, value)| (text, value.to_json()))
            .collect(),
        original_expression: origin.written,
    }
}

/// What the answer to a prompt must satisfy.
pub(in crate::host) fn validation(run: &Run, action: &Action) -> Option<Json> {
    let flow_model::graph::Kind::Prompt(prompt) = &run.node(action)?.kind else {
        return None;
    };
    let rules = prompt.validation.rules();
    (!rules.is_empty()).then_some(Json::Object(rules))
}

fn prompt(
    run: &Run,
    action: &Action,
    message: &str,
    kind: PromptKind,
    options: &[Value],
    put: &mut impl FnMut(&str, Json),
) -> (AgentStepType, String) {
    let word = match kind {
        PromptKind::Info => {
            put("message", json!(message));
            let text = "Show `message` to the person as it is. Submit without a result.";
            return (AgentStepType::UserMessage, text.to_owned());
        }
        PromptKind::Confirm => "confirm",
        PromptKind::Text => "text",
        PromptKind::Choice => {
            let options: Vec<Json> = options.iter().map(Value::to_json).collect();
            put("options", Json::Array(options));
            "choice"
        }
    };
    let answer = action.what.answer_form();
    put("prompt", json!(message));
    put("kind", json!(word));
    if let Some(rules) = validation(run, action) {
        put("validation", rules);
    }
    let text = format!(
        "Ask the person `prompt` and submit the answer as {answer}. Do not answer for them. An \
         answer that is not valid is refused with the reason: ask again then. If the person does \
         not want to answer, submit status \"declined\"."
    );
    (AgentStepType::UserInput, text)
}

/// Seconds that an action may take.
fn allowed(run: &Run, action: &Action) -> Option<f64> {
    let frame = run.data()?.frames.get(&action.frame)?;
    let allowed = action.allowed(frame.step.as_ref()?.since)?;
    Some(allowed as f64 / 1000.0)
}

/// What a declared tool returns, as a definition says it.
fn returns_of(run: &Run, tool: &str) -> Option<Json> {
    let mut tools = run.program().graph().tools.iter();
    let tool = tools.find(|known| known.name == tool)?;
    if let Some(ty) = tool.result {
        return Some(json!(ty.word()));
    }
    let fields = tool.returns.iter().map(|field| {
        let mut said = json!({"type": field.ty.word(), "required": field.required});
        if let Some(description) = &field.description {
            said["description"] = json!(description);
        }
        (field.name.to_string(), said)
    });
    let fields: Map<String, Json> = fields.collect();
    (!fields.is_empty()).then_some(Json::Object(fields))
}

/// What whoever does an item of a task whole is told.
pub(in crate::host) fn item_instructions(run: &Run, task: &str, prompt: Option<&str>) -> String {
    match (prompt, task_description(run, task)) {
        (Some(prompt), _) => prompt.to_owned(),
        (None, Some(description)) => format!("{task}: {description}"),
        (None, None) => format!("Do the task `{task}`."),
    }
}

fn task_description(run: &Run, task: &str) -> Option<String> {
    let mut tasks = run.program().graph().tasks.iter();
    let task = tasks.find(|known| known.name == task)?;
    task.description.as_ref().map(ToString::to_string)
}

const fn format_word(output: OutputFormat) -> &'static str {
    match output {
        OutputFormat::Result => "result",
        OutputFormat::Text => "text",
        OutputFormat::Lines => "lines",
        OutputFormat::Json => "json",
        OutputFormat::KeyValue => "key_value",
    }
}

/// Where the result goes. The server writes it; this is to know.
fn state_update(run: &Run, action: &Action, writes: &[Write]) -> Option<Json> {
    let mut updates: Vec<Json> = writes
        .iter()
        .map(|write| {
            let path = run.target(action, &write.path);
            json!({"path": path, "operation": write.operation})
        })
        .collect();
    match updates.len() {
        0 => None,
        1 => updates.pop(),
        _ => Some(Json::Array(updates)),
    }
}

/// Which tasks of a fan-out a step lists. Those that are over are never among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// All that are to be done, or one where they are done one after another: nobody has begun.
    New(TaskPage),
    /// Those begun and those to be done, for whoever has to start their sub-agents once more.
    Open(TaskPage),
    /// None: the same stand beside the step, in `open_tasks` of the answer.
    Beside,
}

/// Tasks as a step.
pub(super) fn of_tasks(
    host: &Host,
    run: &Run,
    id: RunId,
    tasks: &Tasks<'_>,
    which: Listed,
) -> AgentStep {
    let children = tasks.children;
    let mut definition = Map::new();
    let sequential = tasks.fan.sequential;
    let name = run.tasks_name(tasks);
    let (count, open) = (children.count(), tasks.open());
    let mut step = name.clone();
    let items: Vec<usize> = match which {
        Listed::New(_) if sequential => {
            let next = children.waiting.front().copied();
            step = next.map_or(step, |item| format!("{name}.{item}"));
            vec![next.unwrap_or(0)]
        }
        // Those after the one under way are handed out when it is over.
        Listed::Open(_) if sequential => children.running.keys().copied().collect(),
        Listed::New(page) | Listed::Open(page) => {
            let most = page.most.unwrap_or(usize::MAX);
            tasks.open_items().skip(page.from).take(most).collect()
        }
        Listed::Beside => Vec::new(),
    };
    let mut listed = Vec::new();
    let mut bytes = 0;
    for item in items {
        let mut task = listed_task(id, tasks, &name, item);
        // Of a step that is handed out for the first time they all wait.
        if matches!(which, Listed::Open(_)) || (open < count && !sequential) {
            let begun = children.running.contains_key(&item);
            task["status"] = json!(if begun { "running" } else { "waiting" });
        }
        bytes += task.to_string().len();
        if bytes > TASKS_FIT && !listed.is_empty() {
            break;
        }
        listed.push(task);
    }
    let is_beside = which == Listed::Beside;
    let from = match which {
        Listed::New(page) | Listed::Open(page) => page.from,
        Listed::Beside => 0,
    };
    let next = from + listed.len();
    let mut rest = String::new();
    if !sequential && !is_beside && next < open {
        definition.insert("next_task".to_owned(), json!(next));
        rest = format!(
            " `tasks` does not hold all of them: call `get_next_step` with `first_task: {next}` \
             for more, before you start any."
        );
    }
    if !is_beside {
        definition.insert("tasks".to_owned(), Json::Array(listed));
    }
    definition.insert("total_tasks".to_owned(), json!(count));
    definition.insert("open_tasks".to_owned(), json!(open));
    let at_once = tasks.fan.at_once(&run.program().graph().limits);
    definition.insert("task".to_owned(), json!(tasks.task.name));
    if let Some(description) = &tasks.task.description {
        definition.insert("description".to_owned(), json!(description));
    }
    definition.insert("max_parallel".to_owned(), json!(at_once));
    definition.insert("sequential".to_owned(), json!(sequential));
    let who = match &tasks.fan.runner {
        Runner::Agent(agent) => {
            definition.insert("agent".to_owned(), json!(format!("@{agent}")));
            if let Some(told) = host.instructions_of(run.program().graph(), agent) {
                definition.insert("agent_instructions".to_owned(), json!(told));
            }
            format!("your agent `{agent}`, or a sub-agent in its place,")
        }
        Runner::SubAgent | Runner::Host => "a sub-agent".to_owned(),
    };
    let prompts = Prompts::of(tasks);
    definition.insert("sub_agent_prompt".to_owned(), json!(prompts.shared()));
    let given = match prompts {
        Prompts::Standard(_) if definition.contains_key("agent_instructions") => {
            "`agent_instructions`, `sub_agent_prompt`"
        }
        Prompts::Standard(_) => "`sub_agent_prompt`",
        Prompts::Own { rules, .. } => {
            definition.insert("workflow_server_rules".to_owned(), json!(rules));
            "`sub_agent_prompt`, `workflow_server_rules`"
        }
        Prompts::OfItem { rules } => {
            definition.insert("workflow_server_rules".to_owned(), json!(rules));
            "the `sub_agent_prompt` of its task, `workflow_server_rules`"
        }
    };
    let instructions = if let Listed::Open(_) | Listed::Beside = which {
        let tasks = if is_beside { "open_tasks" } else { "tasks" };
        let which = match sequential && is_beside {
            true => "the task in `open_tasks` that has `begun`".to_owned(),
            false => format!("every task in `{tasks}`, at most {at_once} at a time"),
        };
        format!(
            "{open} of {count} tasks are not over, and sub-agents may be at work on them. If they are \
             not, because you go on with a run of before or because one was lost, start {who} for \
             {which}: give each {given} and, from its \
             task, `workflow_id`, `task_id` and `context`, and nothing else of what you know; it \
             goes on where the one before has stopped. Wait until all have ended, then call \
             `get_next_step`. If you cannot start sub-agents, do the tasks yourself by the same \
             prompt. Do not submit a result for this step: it is over when its tasks are.{rest}"
        )
    } else if sequential {
        format!(
            "Start {who} for the one task in `tasks`: give it {given} and, from the \
             task, `workflow_id`, `task_id` and `context`, and nothing else of what you know. Wait \
             until it has ended, then call `get_next_step`: it hands out the next of {count} tasks, \
             or what follows. If you cannot start sub-agents, do the task yourself by the same \
             prompt. Do not submit a result for this step."
        )
    } else {
        let which = match open < count {
            true => format!("the {open} tasks that are not over, of {count},"),
            false => format!("the {count} tasks,"),
        };
        format!(
            "Start {who} for every one of {which} at most {at_once} at a time: give \
             each {given} and, from its task, `workflow_id`, `task_id` and `context`, \
             and nothing else of what you know. Wait until all have ended, then call \
             `get_next_step`. If you cannot start sub-agents, do the tasks yourself by the same \
             prompt. Do not submit a result for this step: it is over when its tasks are.{rest}"
        )
    };
    finish(
        step,
        AgentStepType::ParallelTasks,
        instructions,
        definition,
        run.origin_of_tasks(tasks),
    )
}

fn listed_task(id: RunId, tasks: &Tasks<'_>, name: &str, item: usize) -> Json {
    let task = task_in(id, tasks, name, item);
    let mut listed = json!({
        "task_id": task.id,
        "workflow_id": id.to_string(),
        "context": task.context.to_json(),
    });
    if let Some(prompt) = task.prompt {
        listed["sub_agent_prompt"] = json!(prompt);
    }
    listed
}

/// What the sub-agents of a fan-out are told: the standard prompt, or the author's in its place,
/// which is then followed by the rules of the server.
#[derive(Clone, Copy)]
enum Prompts<'a> {
    Standard(&'static str),
    Own {
        prompt: &'a str,
        rules: &'static str,
    },
    /// Each task has its own.
    OfItem {
        rules: &'static str,
    },
}

impl<'a> Prompts<'a> {
    fn of(tasks: &Tasks<'a>) -> Self {
        match (&tasks.children.prompt, &tasks.fan.runner) {
            // What a named agent is told is part of its one step.
            (_, Runner::Agent(_)) => Prompts::Standard(WHOLE_ITEM),
            (None, Runner::SubAgent | Runner::Host) => Prompts::Standard(SUB_AGENT),
            (Some(OwnPrompt::Shared(prompt)), Runner::SubAgent | Runner::Host) => Prompts::Own {
                prompt,
                rules: SUB_AGENT,
            },
            (Some(OwnPrompt::OfItems(_)), Runner::SubAgent | Runner::Host) => {
                Prompts::OfItem { rules: SUB_AGENT }
            }
        }
    }

    /// What stands for every task that has none of its own.
    fn shared(self) -> &'a str {
        match self {
            Prompts::Standard(prompt) | Prompts::OfItem { rules: prompt } => prompt,
            Prompts::Own { prompt, .. } => prompt,
        }
    }
}

/// One task.
pub(super) fn task(run: &Run, id: RunId, tasks: &Tasks<'_>, item: usize) -> Task {
    task_in(id, tasks, &run.tasks_name(tasks), item)
}

fn task_in(id: RunId, tasks: &Tasks<'_>, name: &str, item: usize) -> Task {
    let items = tasks.children.items.as_list().unwrap_or_default();
    let value = items.get(item).cloned().unwrap_or_default();
    let own = tasks.children.prompt.as_ref();
    Task {
        id: format!("{name}.{item}"),
        run: id,
        context: crate::run::task_inputs(tasks.task, &value),
        begun: tasks.children.running.contains_key(&item),
        // A prompt that depends on the item is the task's own.
        prompt: own.and_then(|prompt| prompt.of_item(item)).map(Into::into),
    }
}
