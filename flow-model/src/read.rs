//! Tree to document. The structural pass has spoken before; what it found fault with is left out
//! here without a word.

use std::collections::HashSet;

use crate::document::{
    Act, Agent, Computed, Condition, Document, Exits, Field, OnError, Output, Path, StateField,
    Step, StepError, Task, Tool, Transition, Validation, Variable, Write,
};
use crate::expression::Dialect;
use crate::grammar::{self, Instead, Record, StepKind, StepWord, type_word};
use crate::graph::{
    By, ErrorAction, Form, Limits, OnChildError, OnComputeError, OnResume, Operation, OutputFormat,
    PromptKind, Retry, Type,
};
use crate::source::{Entry, Span, Spanned, Tree, Value};
use crate::structure::{doubled_type, duration, number, unwrap_document};

/// Reads a document. `stem` is the name of a workflow that has none.
pub(crate) fn document<'t>(tree: &'t Tree, dialect: Dialect, stem: &str) -> Document<'t> {
    let root = unwrap_document(tree);
    let fields = Fields::of(root, &grammar::DOCUMENT);
    let config = fields
        .own("config")
        .map(|t| Fields::of(t, &grammar::CONFIG));
    let mut written = HashSet::new();
    written_ids(root, &mut written);
    let reader = Reader {
        dialect,
        written,
        max_retries: config
            .as_ref()
            .and_then(|config| config.own("max_retries"))
            .and_then(count),
    };
    let form = if fields.get("states").is_some() {
        Some(Form::States)
    } else {
        fields.get("steps").map(|_| Form::Steps)
    };
    let steps = match form {
        Some(Form::States) => reader.states(fields.get("states")),
        Some(Form::Steps) | None => reader.steps(fields.get("steps"), "step"),
    };
    let name = match fields.spanned("name") {
        Some(name) => name,
        None => Spanned {
            value: stem.to_owned(),
            span: Span::new(root.span.file, 0..0),
        },
    };
    let initial = fields
        .get("initial_state")
        .and_then(|t| t.as_str().map(|text| spanned(text, t.span)));
    Document {
        name,
        description: fields.text("description"),
        version: fields.get("version").and_then(scalar_text),
        form,
        dialect,
        inputs: fields.get("inputs").map(read_fields),
        outputs: outputs(fields.get("outputs")),
        arguments: variables(fields.get("arguments")),
        return_values: variables(fields.get("return_values")),
        state: state(&fields),
        computed: reader.computed(&fields),
        tools: tools(fields.get("tools")),
        agents: agents(fields.get("agents")),
        tasks: reader.tasks(&fields),
        initial,
        steps,
        on_error: reader.on_error(&fields),
        on_resume: on_resume(fields.get("on_resume")),
        limits: limits(&fields, config.as_ref(), form),
        strict: fields.flag("strict").unwrap_or(false),
    }
}

/// Whether the document names its dialect.
pub(crate) fn named_dialect(tree: &Tree) -> Option<Dialect> {
    match unwrap_document(tree).get("expressions")?.as_str()? {
        "js" => Some(Dialect::Js),
        "jinja" => Some(Dialect::Jinja),
        _ => None,
    }
}

/// The files a document imports.
pub(crate) fn imports(tree: &Tree) -> Vec<Spanned<String>> {
    let list = unwrap_document(tree).get("imports").and_then(Tree::items);
    list.unwrap_or_default()
        .iter()
        .filter_map(|item| item.as_str().map(|text| spanned(text, item.span)))
        .collect()
}

/// A map seen through its record: canonical names find every spelling.
struct Fields<'t> {
    entries: &'t [Entry],
    record: &'static Record,
}

/// Keys under which null is a value like any other.
const VALUES: [&str; 2] = ["value", "fallback_value"];

impl<'t> Fields<'t> {
    fn of(tree: &'t Tree, record: &'static Record) -> Self {
        Fields {
            entries: tree.entries().unwrap_or_default(),
            record,
        }
    }

    fn entry(&self, name: &str) -> Option<&'t Entry> {
        self.entries.iter().find(|entry| {
            entry.key.value == name
                || self
                    .record
                    .find(&entry.key.value)
                    .is_some_and(|key| matches!(key.instead, Instead::Name(new) if new == name))
        })
    }

    /// The value under a canonical name, however it is spelled. Null says nothing, but where any
    /// value can stand it is one.
    fn get(&self, name: &str) -> Option<&'t Tree> {
        let entry = self.entry(name)?;
        let is_given = entry.value.value != Value::Null || VALUES.contains(&name);
        is_given.then_some(&entry.value)
    }

    /// The value under exactly this spelling.
    fn own(&self, name: &str) -> Option<&'t Tree> {
        let entry = self.entries.iter().find(|e| e.key.value == name)?;
        Some(&entry.value)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_str().map(str::to_owned)
    }

    fn spanned(&self, name: &str) -> Option<Spanned<String>> {
        let tree = self.get(name)?;
        tree.as_str().map(|text| spanned(text, tree.span))
    }

    fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)?.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn seconds(&self, name: &str) -> Option<f64> {
        self.get(name).and_then(duration)
    }

    fn count(&self, name: &str) -> Option<u32> {
        self.get(name).and_then(count)
    }
}

fn spanned(text: &str, span: Span) -> Spanned<String> {
    Spanned {
        value: text.to_owned(),
        span,
    }
}

fn count(tree: &Tree) -> Option<u32> {
    number(tree).map(|value| value.clamp(0.0, f64::from(u32::MAX)) as u32)
}

fn scalar_text(tree: &Tree) -> Option<String> {
    match &tree.value {
        Value::Str(scalar) => Some(scalar.text.clone()),
        Value::Int(value) => Some(value.to_string()),
        Value::Float(value) => Some(format!("{value:?}")),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn entries(tree: Option<&Tree>) -> &[Entry] {
    tree.and_then(Tree::entries).unwrap_or_default()
}

/// Entries without repeated keys: the first one counts.
fn unique(tree: Option<&Tree>) -> impl Iterator<Item = &Entry> {
    let mut seen = HashSet::new();
    entries(tree)
        .iter()
        .filter(move |entry| seen.insert(entry.key.value.as_str()))
}

fn read_fields(tree: &Tree) -> Vec<Field<'_>> {
    unique(Some(tree)).filter_map(field).collect()
}

fn field(entry: &Entry) -> Option<Field<'_>> {
    if let Some(word) = entry.value.as_str() {
        return Some(Field {
            name: entry.key.clone(),
            ty: type_word(word)?,
            ty_span: entry.value.span,
            required: false,
            default: None,
            description: None,
            secret: false,
            validation: Validation::default(),
        });
    }
    let fields = Fields::of(&entry.value, &grammar::PROPERTY_RECORD);
    let ty = fields.spanned("type")?;
    let mut validation = match fields.get("validation") {
        Some(tree) => read_validation(tree),
        None => Validation::default(),
    };
    // Rules of a property may stand beside its type.
    let beside = read_validation(&entry.value);
    validation.rules.extend(beside.rules);
    validation.properties.extend(beside.properties);
    Some(Field {
        name: entry.key.clone(),
        ty: type_word(&ty.value)?,
        ty_span: ty.span,
        required: fields.flag("required").unwrap_or(false),
        default: fields.get("default"),
        description: fields.text("description"),
        secret: fields.flag("secret").unwrap_or(false),
        validation,
    })
}

fn read_validation(tree: &Tree) -> Validation<'_> {
    let mut validation = Validation::default();
    for entry in unique(Some(tree)) {
        let Some(key) = grammar::VALIDATION.find(&entry.key.value) else {
            continue;
        };
        if key.name == "properties" {
            validation.properties = read_fields(&entry.value);
        }
        validation
            .rules
            .push((key.name, entry.key.span, &entry.value));
    }
    validation
}

fn outputs(tree: Option<&Tree>) -> Vec<Output<'_>> {
    unique(tree)
        .filter_map(|entry| {
            let (value, ty, description) = if entry.value.entries().is_some() {
                let fields = Fields::of(&entry.value, &grammar::OUTPUT_FIELD);
                let ty = fields.text("type").and_then(|word| type_word(&word));
                (fields.get("value")?, ty, fields.text("description"))
            } else {
                (&entry.value, None, None)
            };
            Some(Output {
                name: entry.key.clone(),
                ty: ty.unwrap_or(Type::Any),
                description,
                value,
            })
        })
        .collect()
}

fn variables(tree: Option<&Tree>) -> Vec<Variable> {
    unique(tree)
        .map(|entry| {
            let fields = Fields::of(&entry.value, &grammar::VARIABLE_RECORD);
            let shorthand = entry.value.as_str().map(str::to_owned);
            Variable {
                name: entry.key.clone(),
                inner_name: fields.spanned("name"),
                description: shorthand.or_else(|| fields.text("description")),
                required: fields.flag("required").unwrap_or(true),
            }
        })
        .collect()
}

/// State fields from every spelling, each name once per tier.
fn state<'t>(fields: &Fields<'t>) -> Vec<StateField<'t>> {
    let mut out: Vec<StateField<'t>> = Vec::new();
    let mut add = |tree: Option<&'t Tree>, by_hand: bool| {
        for entry in unique(tree) {
            out.push(StateField {
                name: entry.key.clone(),
                by_hand,
                ty: Type::Any,
                value: Some(&entry.value),
            });
        }
    };
    add(fields.get("state"), false);
    if fields
        .get("initial_state")
        .is_some_and(|t| t.entries().is_some())
    {
        add(fields.own("initial_state"), false);
    }
    if let Some(tree) = fields.own("default_state") {
        let tiers = Fields::of(tree, &grammar::DEFAULT_STATE);
        add(tiers.get("raw"), false);
        add(tiers.get("state"), true);
    }
    if let Some(tree) = fields.own("state_schema") {
        let tiers = Fields::of(tree, &grammar::STATE_SCHEMA);
        for (tier, by_hand) in [("raw", false), ("state", true)] {
            for entry in unique(tiers.get(tier)) {
                let Some(ty) = entry.value.as_str().and_then(type_word) else {
                    continue;
                };
                let same = |f: &&mut StateField<'t>| {
                    f.name.value == entry.key.value && f.by_hand == by_hand
                };
                match out.iter_mut().find(same) {
                    Some(field) => field.ty = ty,
                    None => out.push(StateField {
                        name: entry.key.clone(),
                        by_hand,
                        ty,
                        value: None,
                    }),
                }
            }
        }
    }
    out
}

fn tools(tree: Option<&Tree>) -> Vec<Tool<'_>> {
    unique(tree)
        .map(|entry| {
            let fields = Fields::of(&entry.value, &grammar::TOOL);
            let returns = fields.get("returns");
            Tool {
                name: entry.key.clone(),
                description: fields.text("description"),
                params: fields.get("params").map(read_fields),
                returns: returns.map(read_fields).unwrap_or_default(),
                result: returns.and_then(Tree::as_str).and_then(type_word),
                idempotent: fields.flag("idempotent"),
            }
        })
        .collect()
}

fn agents(tree: Option<&Tree>) -> Vec<Agent> {
    unique(tree)
        .filter_map(|entry| {
            let fields = Fields::of(&entry.value, &grammar::AGENT_RECORD);
            let instructions = match entry.value.as_str() {
                Some(text) => text.to_owned(),
                None => fields.text("instructions")?,
            };
            let name = entry.key.value.trim_start_matches('@');
            Some(Agent {
                name: spanned(name, entry.key.span),
                instructions,
            })
        })
        .collect()
}

fn on_resume(tree: Option<&Tree>) -> OnResume {
    let flag = |name: &str, default: bool| {
        tree.map(|tree| Fields::of(tree, &grammar::ON_RESUME))
            .and_then(|fields| fields.flag(name))
            .unwrap_or(default)
    };
    let standard = OnResume::DEFAULT;
    OnResume {
        retry_failed_steps: flag("retry_failed_steps", standard.retry_failed_steps),
        skip_completed_steps: flag("skip_completed_steps", standard.skip_completed_steps),
        reset_error_counts: flag("reset_error_counts", standard.reset_error_counts),
    }
}

fn limits(fields: &Fields<'_>, config: Option<&Fields<'_>>, form: Option<Form>) -> Limits {
    let given = fields
        .get("limits")
        .map(|t| Fields::of(t, &grammar::LIMITS));
    let of = |name: &str| given.as_ref().and_then(|given| given.get(name));
    let whole = |tree: &Tree| number(tree).map(|value| value.max(0.0) as u64);
    let standard = Limits::of(form.unwrap_or(Form::Steps));
    Limits {
        max_steps: of("max_steps")
            .or_else(|| fields.own("max_states"))
            .and_then(whole)
            .unwrap_or(standard.max_steps),
        timeout: of("timeout")
            .or_else(|| fields.own("execution_timeout"))
            .or_else(|| config.and_then(|config| config.own("timeout_seconds")))
            .and_then(duration),
        max_depth: of("max_depth")
            .and_then(count)
            .unwrap_or(standard.max_depth),
        max_parallel: of("max_parallel")
            .and_then(count)
            .unwrap_or(standard.max_parallel),
        max_state_bytes: of("max_state_bytes")
            .and_then(whole)
            .unwrap_or(standard.max_state_bytes),
    }
}

/// Every id that is written, so that a made one differs from all of them.
fn written_ids<'t>(tree: &'t Tree, ids: &mut HashSet<&'t str>) {
    for entry in entries(Some(tree)) {
        if entry.key.value == "id"
            && let Some(id) = entry.value.as_str()
        {
            ids.insert(id);
        }
        written_ids(&entry.value, ids);
    }
    for item in tree.items().unwrap_or_default() {
        written_ids(item, ids);
    }
}

struct Reader<'r> {
    dialect: Dialect,
    written: HashSet<&'r str>,
    max_retries: Option<u32>,
}

impl Reader<'_> {
    fn computed<'t>(&self, fields: &Fields<'t>) -> Vec<Computed<'t>> {
        let schema = fields
            .own("state_schema")
            .map(|tree| Fields::of(tree, &grammar::STATE_SCHEMA));
        let second = schema.as_ref().and_then(|schema| schema.get("computed"));
        unique(fields.get("computed"))
            .chain(unique(second))
            .map(|entry| self.computed_field(entry))
            .collect()
    }

    fn computed_field<'t>(&self, entry: &'t Entry) -> Computed<'t> {
        let fields = Fields::of(&entry.value, &grammar::COMPUTED);
        let from = fields.get("from");
        let list = from.and_then(Tree::items);
        Computed {
            name: entry.key.clone(),
            from: match list {
                Some(items) => items.iter().collect(),
                None => from.into_iter().collect(),
            },
            from_list: list.is_some(),
            transform: fields.get("transform"),
            value: fields.get("value").filter(|tree| tree.as_str().is_some()),
            on_error: match fields.text("on_error").as_deref() {
                Some("use_fallback") => OnComputeError::UseFallback,
                Some("ignore") => OnComputeError::Ignore,
                _ => OnComputeError::Propagate,
            },
            fallback: fields.own("fallback"),
            validate: fields.get("validate"),
            once: fields.flag("static").unwrap_or(false),
            dialect: self.dialect,
            imported: false,
        }
    }

    fn tasks<'t>(&self, fields: &Fields<'t>) -> Vec<Task<'t>> {
        let own = unique(fields.own("tasks")).map(|entry| self.task(entry, false));
        let shared = unique(fields.own("sub_agent_tasks")).map(|entry| self.task(entry, true));
        own.chain(shared).collect()
    }

    fn task<'t>(&self, entry: &'t Entry, sub_agent: bool) -> Task<'t> {
        let fields = Fields::of(&entry.value, &grammar::TASK);
        let own_state = state(&fields);
        let handling = fields.own("error_handling");
        let (returns_error, cleanup) = match (fields.get("on_error"), handling) {
            (Some(tree), _) => {
                let on_error = Fields::of(tree, &grammar::TASK_ERROR);
                (on_error.flag("return"), on_error.get("steps"))
            }
            (None, Some(tree)) => {
                let on_error = Fields::of(tree, &grammar::TASK_ERROR_HANDLING);
                (
                    on_error.flag("return_on_error"),
                    on_error.own("cleanup_on_error"),
                )
            }
            (None, None) => (None, None),
        };
        let declares_state = ["state", "initial_state", "default_state"]
            .iter()
            .any(|name| fields.own(name).is_some());
        Task {
            name: entry.key.clone(),
            description: fields.text("description"),
            inputs: fields.get("inputs").map(read_fields),
            state: own_state,
            shares_state: fields
                .flag("shares_state")
                .unwrap_or(sub_agent && !declares_state),
            dialect: self.dialect,
            steps: self.steps(fields.get("steps"), "step"),
            returns_error: returns_error.unwrap_or(false),
            handles_error: fields.get("on_error").is_some() || handling.is_some(),
            cleanup: self.steps(cleanup, "cleanup"),
            imported: false,
        }
    }

    fn on_error<'t>(&self, fields: &Fields<'t>) -> OnError<'t> {
        let action = |word: Option<&str>| match word {
            Some("checkpoint_and_fail") => ErrorAction::CheckpointAndFail,
            Some("continue") => ErrorAction::Continue,
            Some("retry_workflow") => ErrorAction::RetryWorkflow,
            _ => ErrorAction::Fail,
        };
        if let Some(tree) = fields.get("on_error") {
            if let Some(word) = tree.as_str() {
                return OnError {
                    action: action(Some(word)),
                    collect_to: None,
                    steps: Vec::new(),
                };
            }
            let inner = Fields::of(tree, &grammar::ON_ERROR_RECORD);
            return OnError {
                action: action(inner.text("action").as_deref()),
                collect_to: inner.get("collect_to"),
                steps: self.steps(inner.get("steps"), "on_error"),
            };
        }
        let Some(tree) = fields.own("error_handling") else {
            return OnError {
                action: ErrorAction::Fail,
                collect_to: None,
                steps: Vec::new(),
            };
        };
        let inner = Fields::of(tree, &grammar::ERROR_HANDLING);
        let collection = inner
            .own("error_collection")
            .map(|tree| Fields::of(tree, &grammar::ERROR_COLLECTION))
            .filter(|collection| collection.flag("enabled") != Some(false));
        OnError {
            action: action(inner.own("on_error").and_then(Tree::as_str)),
            collect_to: collection.and_then(|collection| collection.get("state_path")),
            steps: self.steps(inner.own("on_failure"), "on_error"),
        }
    }

    /// A list of steps; ids that are not written are made from `prefix` and the position.
    fn steps<'t>(&self, tree: Option<&'t Tree>, prefix: &str) -> Vec<Step<'t>> {
        let items = tree.and_then(Tree::items).unwrap_or_default();
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.step(item, &format!("{prefix}_{}", index + 1)))
            .collect()
    }

    fn step<'t>(&self, tree: &'t Tree, generated: &str) -> Option<Step<'t>> {
        let entries = tree.entries()?;
        let (word, kind) = step_word(entries)?;
        let fields = Fields {
            entries,
            record: word.record,
        };
        let head = entries.first().map_or(tree.span, |entry| entry.key.span);
        let id = fields.spanned("id").unwrap_or_else(|| {
            let mut made = generated.to_owned();
            while self.written.contains(made.as_str()) {
                made.push('_');
            }
            spanned(&made, head)
        });
        let act = self.act(&fields, word, kind, &id.value)?;
        Some(self.common(&fields, id, head, act, word))
    }

    fn common<'t>(
        &self,
        fields: &Fields<'t>,
        id: Spanned<String>,
        head: Span,
        act: Act<'t>,
        word: &'static StepWord,
    ) -> Step<'t> {
        let millis = matches!(word.word, "shell_command" | "agent_shell_command");
        let timeout = fields.seconds("timeout");
        let timeout = if millis {
            timeout.map(|ms| ms / 1000.0)
        } else {
            timeout
        };
        let on_error = fields.get("on_error");
        let goto = on_error
            .map(|tree| Fields::of(tree, &grammar::GOTO_ERROR))
            .and_then(|fields| fields.spanned("goto"));
        let error_word = on_error.and_then(Tree::as_str);
        let sets = word.kind == StepKind::SetState;
        let mut writes = match sets {
            true => set_state_writes(fields),
            false => Vec::new(),
        };
        let own = writes.len();
        let output_to = fields.get("output_to").and_then(path);
        writes.extend(output_to.map(|path| Write {
            path,
            operation: Operation::Set,
            value: None,
            beside: false,
        }));
        writes.extend(updates(fields.get("state_update")));
        for write in &mut writes[own..] {
            write.beside = sets;
        }
        Step {
            id,
            head,
            description: fields.text("description"),
            act,
            needs_state: fields
                .get("needs_state")
                .and_then(Tree::items)
                .map(|items| {
                    items
                        .iter()
                        .filter_map(|item| item.as_str().map(|text| spanned(text, item.span)))
                        .collect()
                }),
            when: fields.get("when"),
            timeout,
            on_error: match (goto, error_word) {
                (Some(target), _) => StepError::Goto(target),
                (None, Some("continue")) => StepError::Continue,
                (None, _) => StepError::Fail,
            },
            retry: self.retry(fields, error_word == Some("retry"), word.kind),
            fallback_value: fields.get("fallback_value"),
            writes,
            error_writes: updates(fields.get("error_state_update")),
            exits: None,
        }
    }

    fn retry(&self, fields: &Fields<'_>, wanted: bool, kind: StepKind) -> Option<Retry> {
        if let Some(tree) = fields.get("retry") {
            let retry = Fields::of(tree, &grammar::RETRY);
            return Some(Retry {
                attempts: retry.count("attempts")?,
                delay: retry.seconds("delay").unwrap_or(0.0),
                backoff: retry.get("backoff").and_then(number).unwrap_or(1.0),
                max_delay: retry.seconds("max_delay"),
            });
        }
        // Whoever says that a failure is final does not want it repeated.
        let is_final = matches!(
            fields.get("on_error").and_then(Tree::as_str),
            Some("fail" | "continue")
        );
        let count = fields.own("retry_count").and_then(count);
        if is_final && count.is_some() {
            return None;
        }
        let by_default = self
            .max_retries
            .filter(|_| kind.acts() && kind != StepKind::SetState);
        let again = match (count, wanted) {
            (Some(count), _) => count,
            (None, true) => self.max_retries.unwrap_or(1),
            (None, false) => by_default?,
        };
        let delay = fields.own("retry_delay").and_then(number).unwrap_or(0.0);
        (again > 0).then_some(Retry {
            attempts: again.saturating_add(1),
            delay: delay / 1000.0,
            backoff: 1.0,
            max_delay: None,
        })
    }

    fn act<'t>(
        &self,
        fields: &Fields<'t>,
        word: &'static StepWord,
        kind: Option<PromptKind>,
        id: &str,
    ) -> Option<Act<'t>> {
        Some(match word.kind {
            StepKind::Condition => Act::Condition {
                test: fields.get("if")?,
                then: self.steps(fields.get("then"), &format!("{id}_then")),
                otherwise: self.steps(fields.get("else"), &format!("{id}_else")),
            },
            StepKind::While => Act::While {
                test: fields.get("if")?,
                body: self.steps(fields.get("steps"), &format!("{id}_body")),
                max_iterations: fields.count("max_iterations"),
            },
            StepKind::Foreach => self.foreach(fields, word, id)?,
            StepKind::Break => Act::Break,
            StepKind::Continue => Act::Continue,
            StepKind::Goto => Act::Goto {
                target: fields.spanned("target")?,
                // Its absence has its own finding, and hides none about the target.
                max_iterations: fields
                    .count("max_iterations")
                    .unwrap_or(grammar::DEFAULT_ITERATIONS),
            },
            StepKind::Return => Act::Return {
                value: fields.get("value"),
            },
            StepKind::SetState => Act::SetState,
            StepKind::Call => Act::Call {
                workflow: fields.get("workflow")?,
                inputs: pairs(fields.get("inputs")),
                shares_computed: fields
                    .flag("shares_computed")
                    .unwrap_or(word.word == "include_workflow"),
            },
            StepKind::Shell => Act::Shell {
                command: fields.get("command")?,
                env: pairs(fields.get("env")),
                working_directory: fields.get("working_directory"),
                output: match fields.text("output_format").as_deref() {
                    Some("text") => OutputFormat::Text,
                    Some("lines") => OutputFormat::Lines,
                    Some("json") => OutputFormat::Json,
                    Some("key_value") => OutputFormat::KeyValue,
                    _ => OutputFormat::Result,
                },
                by: match (fields.text("by").as_deref(), word.word) {
                    (Some("server"), _) | (None, "shell_command") => By::Server,
                    (Some("agent"), _) | (None, "agent_shell_command") => By::Agent,
                    _ => By::Host,
                },
                reason: fields.get("reason"),
            },
            StepKind::McpCall => mcp_call(fields, word)?,
            StepKind::Prompt => {
                let options = fields.get("options");
                let written = fields.text("kind").and_then(|word| prompt_kind(&word));
                let implied = match word.word {
                    "user_message" => Some(PromptKind::Info),
                    "user_input" if options.is_none() => Some(PromptKind::Text),
                    _ if options.is_some() => Some(PromptKind::Choice),
                    _ if fields.get("validation").is_some() => Some(PromptKind::Text),
                    _ => None,
                };
                Act::Prompt {
                    message: fields.get("message")?,
                    kind: kind.or(written).or(implied).unwrap_or(PromptKind::Info),
                    options,
                    validation: fields
                        .get("validation")
                        .map(read_validation)
                        .unwrap_or_default(),
                }
            }
            StepKind::Wait => Act::Wait {
                duration: fields.get("duration_seconds")?,
                message: fields.get("message"),
            },
            StepKind::Delegate => Act::Delegate {
                instructions: fields.get("instructions")?,
                agent: agent(fields),
                returns: fields.get("returns"),
            },
        })
    }

    fn foreach<'t>(
        &self,
        fields: &Fields<'t>,
        word: &'static StepWord,
        id: &str,
    ) -> Option<Act<'t>> {
        let items = fields.get("items")?;
        let Some(task) = fields.spanned("task") else {
            return Some(Act::Loop {
                items,
                body: self.steps(fields.get("steps"), &format!("{id}_body")),
            });
        };
        let given = fields.get("on_child_error");
        let inner = given
            .map(|tree| Fields::of(tree, &grammar::ON_CHILD_ERROR))
            .or_else(|| {
                let tree = fields.own("on_sub_agent_error")?;
                Some(Fields::of(tree, &grammar::ON_SUB_AGENT_ERROR))
            });
        let strategy = given
            .and_then(|tree| tree.as_str().map(str::to_owned))
            .or_else(|| inner.as_ref()?.text("strategy"));
        let max_retries = fields
            .count("max_retries")
            .or_else(|| inner.as_ref()?.count("max_retries"));
        let collects = inner
            .as_ref()
            .is_none_or(|i| i.flag("collect_errors") != Some(false));
        let collect_to = fields.get("collect_to").or_else(|| {
            let inner = inner.as_ref()?;
            inner
                .get("collect_to")
                .or_else(|| inner.own("error_state_path"))
        });
        let named = agent(fields);
        let sub_agents = named.is_none() && word.word == "parallel_foreach";
        Some(Act::FanOut {
            items,
            agent: if sub_agents {
                Some(spanned("@task", task.span))
            } else {
                named
            },
            task,
            sequential: fields.flag("sequential").unwrap_or(false),
            max_parallel: fields.count("max_parallel"),
            on_child_error: match strategy.as_deref() {
                Some("continue") => OnChildError::Continue,
                Some("retry_failed") => OnChildError::RetryFailed(max_retries.unwrap_or(1)),
                Some("fail_all") => OnChildError::FailAll,
                _ => OnChildError::Fail,
            },
            collect_to: collect_to.filter(|_| collects),
            prompt: fields.get("prompt"),
        })
    }

    fn states<'t>(&self, tree: Option<&'t Tree>) -> Vec<Step<'t>> {
        unique(tree).filter_map(|entry| self.state(entry)).collect()
    }

    fn state<'t>(&self, entry: &'t Entry) -> Option<Step<'t>> {
        let fields = Fields::of(&entry.value, &grammar::STATE);
        let action = fields.get("action")?;
        let id = entry.key.clone();
        let mut step = match action.entries().and_then(step_word) {
            Some((word, kind)) => {
                let inner = Fields {
                    entries: action.entries()?,
                    record: word.record,
                };
                let act = self.act(&inner, word, kind, &id.value)?;
                self.common(&inner, id, entry.key.span, act, word)
            }
            None => {
                let inner = Fields::of(action, &grammar::ACTION);
                let act = Act::Tool {
                    tool: inner.spanned("tool")?,
                    open: false,
                    parameters: pairs(inner.get("params")),
                };
                self.common(
                    &inner,
                    id,
                    entry.key.span,
                    act,
                    grammar::step_word("mcp_call")?,
                )
            }
        };
        step.description = fields.text("description").or(step.description);
        step.timeout = fields.seconds("timeout");
        let written = fields.get("transitions").and_then(Tree::items);
        let written = written.unwrap_or_default();
        let mut transitions: Vec<Transition<'t>> = Vec::with_capacity(written.len());
        let mut unread_targets = Vec::new();
        for tree in written {
            match transition(tree) {
                Some(transition) => transitions.push(transition),
                None => {
                    let fields = Fields::of(tree, &grammar::TRANSITION);
                    unread_targets.extend(fields.spanned("next_state"));
                }
            }
        }
        step.exits = Some(Exits {
            unread: transitions.len() < written.len(),
            unread_targets,
            transitions,
            on_timeout: fields.spanned("on_timeout"),
        });
        Some(step)
    }
}

/// The step type, with the prompt kind that the word or a second `type` implies.
fn step_word(entries: &[Entry]) -> Option<(&'static StepWord, Option<PromptKind>)> {
    if let Some((_, kind)) = doubled_type(entries) {
        let kind = kind.value.as_str().and_then(prompt_kind);
        return Some((grammar::step_word("prompt")?, kind));
    }
    let entry = entries.iter().find(|entry| entry.key.value == "type")?;
    let word = grammar::step_word(entry.value.as_str()?)?;
    Some((word, prompt_kind(word.word)))
}

fn prompt_kind(word: &str) -> Option<PromptKind> {
    Some(match word {
        "info" => PromptKind::Info,
        "confirm" => PromptKind::Confirm,
        "text" => PromptKind::Text,
        "choice" => PromptKind::Choice,
        _ => return None,
    })
}

fn agent(fields: &Fields<'_>) -> Option<Spanned<String>> {
    fields.spanned("agent")
}

fn mcp_call<'t>(fields: &Fields<'t>, word: &'static StepWord) -> Option<Act<'t>> {
    if word.word == "apply_hints" {
        let parameters = fields
            .entries
            .iter()
            .filter(|entry| word.record.find(&entry.key.value).is_none())
            .map(|entry| (entry.key.clone(), &entry.value))
            .collect();
        let entry = fields.entries.iter().find(|e| e.key.value == "type")?;
        return Some(Act::Tool {
            tool: spanned("apply_hints", entry.value.span),
            open: true,
            parameters,
        });
    }
    if let Some(tree) = fields.own("mcp") {
        let mcp = Fields::of(tree, &grammar::MCP);
        let method = mcp.own("method")?;
        return Some(Act::Tool {
            tool: spanned(method.as_str()?, method.span),
            open: true,
            parameters: pairs(mcp.own("params")),
        });
    }
    Some(Act::Tool {
        tool: fields.spanned("tool")?,
        open: true,
        parameters: pairs(fields.get("parameters")),
    })
}

fn pairs(tree: Option<&Tree>) -> Vec<(Spanned<String>, &Tree)> {
    unique(tree)
        .map(|entry| (entry.key.clone(), &entry.value))
        .collect()
}

fn path(tree: &Tree) -> Option<Path<'_>> {
    Some(Path {
        text: tree.as_str()?,
        span: tree.span,
        tree: Some(tree),
    })
}

fn operation(fields: &Fields<'_>) -> Operation {
    match fields.text("operation").as_deref() {
        None | Some("set") => Operation::Set,
        Some("append") => Operation::Append,
        Some("merge") => Operation::Merge,
        // A word that is none is a finding of its own; of its value nothing more is asked.
        Some(_) => Operation::Increment,
    }
}

fn update(tree: &Tree) -> Option<Write<'_>> {
    let fields = Fields::of(tree, &grammar::UPDATE);
    Some(Write {
        path: path(fields.get("path")?)?,
        operation: operation(&fields),
        value: fields.get("value"),
        beside: false,
    })
}

fn updates(tree: Option<&Tree>) -> Vec<Write<'_>> {
    match tree.map(|tree| &tree.value) {
        Some(Value::List(items)) => items.iter().filter_map(update).collect(),
        Some(_) => tree.and_then(update).into_iter().collect(),
        None => Vec::new(),
    }
}

fn set_state_writes<'t>(fields: &Fields<'t>) -> Vec<Write<'t>> {
    let mut writes = Vec::new();
    // The older form has one write beside `type`.
    if let Some(first) = fields.own("path").and_then(path) {
        writes.push(Write {
            path: first,
            operation: operation(fields),
            value: fields.own("value"),
            beside: false,
        });
    }
    match fields.get("updates").map(|tree| (tree, &tree.value)) {
        Some((_, Value::List(items))) => writes.extend(items.iter().filter_map(update)),
        Some((tree, Value::Map(_))) => {
            writes.extend(unique(Some(tree)).map(|entry| Write {
                path: Path {
                    text: &entry.key.value,
                    span: entry.key.span,
                    tree: None,
                },
                operation: Operation::Set,
                value: Some(&entry.value),
                beside: false,
            }));
        }
        _ => {}
    }
    writes
}

fn transition(tree: &Tree) -> Option<Transition<'_>> {
    let fields = Fields::of(tree, &grammar::TRANSITION);
    let condition = fields.get("condition")?;
    Some(Transition {
        span: condition.span,
        condition: read_condition(condition, fields.get("pattern"))?,
        next: fields.spanned("next_state")?,
    })
}

fn read_condition<'t>(tree: &'t Tree, pattern: Option<&'t Tree>) -> Option<Condition<'t>> {
    if let Some(word) = tree.as_str() {
        return Some(match word {
            "success" => Condition::Success(true),
            "failure" => Condition::Success(false),
            "timeout" => Condition::TimedOut(true),
            "always" => Condition::Always,
            "pattern_match" => Condition::Match(pattern?),
            "pattern_no_match" => Condition::NoMatch(pattern?),
            _ => return None,
        });
    }
    let mut all: Vec<Condition<'t>> = Vec::new();
    for entry in unique(Some(tree)) {
        let value = &entry.value;
        let flag = || match value.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        };
        match entry.key.value.as_str() {
            "success" => all.push(Condition::Success(flag()?)),
            "timeout_occurred" => all.push(Condition::TimedOut(flag()?)),
            "pattern_match" => all.push(Condition::Match(value)),
            "pattern_not_match" => all.push(Condition::NoMatch(value)),
            "expression" => all.push(Condition::Expression(value)),
            "description" if tree.entries().is_some_and(|keys| keys.len() > 1) => return None,
            "description" => all.push(Condition::Judged(spanned(value.as_str()?, value.span))),
            "field_equals" => {
                all.extend(unique(Some(value)).map(|e| Condition::Equals(e.key.clone(), &e.value)))
            }
            "field_contains" => all
                .extend(unique(Some(value)).map(|e| Condition::Contains(e.key.clone(), &e.value))),
            "any" => all.push(Condition::Any(conditions(value)?)),
            "all" => all.push(Condition::All(conditions(value)?)),
            "not" => all.push(Condition::Not(Box::new(read_condition(value, None)?))),
            _ => {}
        }
    }
    match all.len() {
        0 => None,
        1 => all.pop(),
        _ => Some(Condition::All(all)),
    }
}

fn conditions(tree: &Tree) -> Option<Vec<Condition<'_>>> {
    let items = tree.items()?;
    items
        .iter()
        .map(|item| read_condition(item, None))
        .collect()
}
