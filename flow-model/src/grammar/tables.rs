//! The tables themselves, from the document down.

use super::Instead::{self, Canonical};
use super::StepKind as Kind;
use super::Type::{
    Any, Bool, Condition, Duration, Either, Int, Literal, Map, Millis, Null, Number, Regex, Step,
    Template, Text, Word,
};
use super::{Key, Pattern, Record, StepWord, Type};

/// A definition may have this many steps, nested ones included.
pub const MAX_STEPS: usize = 1000;
/// A definition may have this many states.
pub const MAX_STATES: usize = 100;
/// A state may have this many transitions.
pub const MAX_TRANSITIONS: usize = 20;
/// A contract may have this many variables of a kind.
pub const MAX_VARIABLES: usize = 20;
/// A loop without a bound of its own may run its body this often.
pub const DEFAULT_ITERATIONS: u32 = 100;
/// Node executions of a states run, unless the definition says otherwise.
pub const DEFAULT_MAX_STATES: u64 = 100;
/// Node executions of a steps run, unless the definition says otherwise.
pub const DEFAULT_MAX_STEPS: u64 = 10_000;
/// Calls may be nested this deep.
pub const MAX_CALL_DEPTH: u32 = 5;
/// Tasks may run inside each other this deep.
pub const MAX_TASK_DEPTH: usize = 50;
/// Children of a fan-out that run at once, unless the definition says otherwise.
pub const DEFAULT_PARALLEL: u32 = 10;
/// Children of a fan-out that may run at once.
pub const MAX_PARALLEL: u32 = 100;
/// Bytes of state, unless the definition says otherwise.
pub const DEFAULT_STATE_BYTES: u64 = 1 << 20;

const MANY: usize = 10_000;
const BIG: i64 = i64::MAX;
const DAY: f64 = 86_400.0;
/// How long a run may be given, in seconds: from, and up to.
pub const RUN_SECONDS: (f64, f64) = (0.1, 365.0 * DAY);

const fn key(name: &'static str, ty: &'static Type, doc: &'static str) -> Key {
    Key {
        name,
        ty,
        required: false,
        default: "",
        doc,
        instead: Canonical,
    }
}

impl Key {
    const fn required(mut self) -> Key {
        self.required = true;
        self
    }

    const fn default(mut self, text: &'static str) -> Key {
        self.default = text;
        self
    }
}

/// Another spelling of a key, with the same values.
const fn alias(name: &'static str, ty: &'static Type, instead: &'static str) -> Key {
    Key {
        name,
        ty,
        required: false,
        default: "",
        doc: "",
        instead: Instead::Name(instead),
    }
}

/// Another form of what `instead` names, with values of its own.
const fn form(
    name: &'static str,
    ty: &'static Type,
    instead: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        ty,
        required: false,
        default: "",
        doc,
        instead: Instead::Form(instead),
    }
}

impl Record {
    const fn one_of(mut self, keys: &'static [&'static str]) -> Record {
        self.one_of = keys;
        self
    }
}

const fn record(name: &'static str, doc: &'static str, keys: &'static [Key]) -> Record {
    Record {
        name,
        doc,
        keys,
        more: &[],
        rest: None,
        at_least: 0,
        one_of: &[],
    }
}

static TEXT: Type = Text(Pattern::Free, 65_536);
static SENTENCE: Type = Text(Pattern::Free, 500);
static SHORT: Type = Text(Pattern::Free, 200);
static NAME: Type = Text(Pattern::Name, 64);
static STEPS_LIST: Type = Type::List(&Step, MAX_STEPS);
static NAMES: Type = Type::List(&NAME, 1000);
static PATH: Type = Template;
/// The types of inputs, parameters and fields.
pub static TYPE_WORDS: &[&str] = &["string", "number", "integer", "boolean", "array", "object"];
static TYPE_WORD: Type = Word(TYPE_WORDS);
static COUNT: Type = Int(0, BIG);
static POSITIVE: Type = Int(1, BIG);
static ANY_NUMBER: Type = Number(f64::NEG_INFINITY, f64::INFINITY);

/// The whole document.
pub static DOCUMENT: Record = record(
    "workflow",
    "A workflow definition.",
    &[
        key(
            "name",
            &Text(Pattern::Workflow, 64),
            "What the workflow is called in lists and messages; it is found by its file's name.",
        )
        .default("the file's name without extension"),
        key("description", &SENTENCE, "What the workflow is for."),
        key("version", &VERSION, "A semantic version."),
        key(
            "imports",
            &IMPORTS,
            "Other files, relative to this one, whose `tasks`, `computed` and `agents` become visible here.",
        ),
        key(
            "inputs",
            &INPUTS,
            "Typed parameters of a run, in order. Without this key any input is accepted, untyped.",
        ),
        alias("parameters", &INPUTS, "inputs"),
        key("outputs", &OUTPUTS, "The typed result of a run."),
        key(
            "arguments",
            &VARIABLES,
            "Environment variables that must be set in the terminal before the run.",
        ),
        key(
            "return_values",
            &VARIABLES,
            "Environment variables that must be set in the terminal after the run.",
        ),
        key(
            "state",
            &STATE_VALUES,
            "State fields with their initial values.",
        ),
        key(
            "initial_state",
            &Either(&[&NAME, &STATE_VALUES]),
            "The state a run starts in. (With a map: an older spelling of `state`.)",
        ),
        form("default_state", &Type::Record(&DEFAULT_STATE), "state", ""),
        form(
            "state_schema",
            &Type::Record(&STATE_SCHEMA),
            "state` and `computed",
            "",
        ),
        key(
            "computed",
            &COMPUTED_FIELDS,
            "State derived from other state.",
        ),
        key(
            "tools",
            &TOOLS,
            "Signatures of tools that the host must provide.",
        ),
        key(
            "agents",
            &AGENTS,
            "Names and instructions of agents that `@name` delegation addresses.",
        ),
        key("tasks", &TASKS, "Steps that `foreach` runs once per item."),
        form(
            "sub_agent_tasks",
            &TASKS,
            "tasks` with `shares_state: true",
            "",
        ),
        key(
            "steps",
            &STEPS_LIST,
            "What the workflow does, top to bottom.",
        ),
        key(
            "states",
            &STATES,
            "What the workflow does, as a state machine.",
        ),
        key(
            "on_error",
            &ON_ERROR,
            "What happens when a step fails and nothing nearer handles it.",
        )
        .default("fail"),
        form(
            "error_handling",
            &Type::Record(&ERROR_HANDLING),
            "on_error",
            "",
        ),
        key(
            "on_resume",
            &Type::Record(&ON_RESUME),
            "What a resumed run does with what went before.",
        ),
        key("limits", &Type::Record(&LIMITS), "Bounds of a run."),
        form("max_states", &POSITIVE, "limits.max_steps", ""),
        form(
            "execution_timeout",
            &Duration(RUN_SECONDS.0, RUN_SECONDS.1),
            "limits.timeout",
            "",
        ),
        form("config", &Type::Record(&CONFIG), "limits", ""),
        key(
            "expressions",
            &Word(&["jinja", "js"]),
            "The dialect of `{{ … }}`.",
        )
        .default(
            "`jinja`; `js` when an older spelling that belongs to the JavaScript dialect is used",
        ),
        key(
            "strict",
            &Bool,
            "Turns every lint into an error and requires `needs_state` on every step.",
        )
        .default("false"),
    ],
);

static VERSION: Type = Either(&[&Text(Pattern::Version, 64), &ANY_NUMBER]);
static IMPORTS: Type = Type::List(&SENTENCE, 100);
static INPUTS: Type = Map(Pattern::Name, &INPUT, 1000);
/// One input: its type, or all there is to say of it.
pub static INPUT: Type = Either(&[&TYPE_WORD, &Type::Record(&FIELD)]);
static OUTPUTS: Type = Map(Pattern::Name, &OUTPUT, 1000);
static OUTPUT: Type = Either(&[&Template, &Type::Record(&OUTPUT_FIELD)]);
static VARIABLES: Type = Map(Pattern::Environment, &VARIABLE, MAX_VARIABLES);
static VARIABLE: Type = Either(&[&SHORT, &Type::Record(&VARIABLE_RECORD)]);
static STATE_VALUES: Type = Map(Pattern::Name, &Any, MANY);
static COMPUTED_FIELDS: Type = Map(Pattern::Name, &Type::Record(&COMPUTED), 1000);
static TOOLS: Type = Map(Pattern::Name, &Type::Record(&TOOL), 1000);
static AGENTS: Type = Map(Pattern::AgentKey, &AGENT, 1000);
static AGENT: Type = Either(&[&TEXT, &Type::Record(&AGENT_RECORD)]);
static TASKS: Type = Map(Pattern::Name, &Type::Record(&TASK), 1000);
static STATES: Type = Map(Pattern::Name, &Type::Record(&STATE), MAX_STATES);
static ON_ERROR: Type = Either(&[&ERROR_ACTION, &Type::Record(&ON_ERROR_RECORD)]);
static ERROR_ACTION: Type = Word(&["fail", "checkpoint_and_fail", "continue", "retry_workflow"]);

/// A typed input, parameter or property.
pub static FIELD: Record = record(
    "input",
    "A typed value. `NAME: string` is short for `NAME: {type: string}`.",
    &[
        key("type", &TYPE_WORD, "Its type.").required(),
        key("required", &Bool, "Whether it must be given.").default("false"),
        key("default", &Literal, "Its value when it is not given."),
        key("description", &SENTENCE, "What it is for."),
        key(
            "secret",
            &Bool,
            "Whether its value is kept out of logs, results and messages.",
        )
        .default("false"),
        key(
            "validation",
            &Type::Record(&VALIDATION),
            "What its value must satisfy.",
        ),
    ],
);

/// Rules for a value.
pub static VALIDATION: Record = record(
    "validation",
    "Rules beyond the type; those of another type are errors.",
    VALIDATION_KEYS,
);

static VALIDATION_KEYS: &[Key] = &[
    key(
        "pattern",
        &Regex,
        "A regular expression that must be found in a text.",
    ),
    key("min_length", &COUNT, "Characters of a text, at least."),
    key("max_length", &COUNT, "Characters of a text, at most."),
    key("enum", &Type::List(&Literal, 1000), "The allowed values."),
    key("min", &ANY_NUMBER, "The least number."),
    key("max", &ANY_NUMBER, "The greatest number."),
    key("min_items", &COUNT, "Items of a list, at least."),
    key("max_items", &COUNT, "Items of a list, at most."),
    key("item_type", &TYPE_WORD, "The type of every item of a list."),
    key(
        "required_keys",
        &Type::List(&SHORT, 1000),
        "Keys that a map must have.",
    ),
    key(
        "properties",
        &Map(Pattern::Free, &PROPERTY, 1000),
        "Typed keys of a map; rules may stand beside the type.",
    ),
    key(
        "error_message",
        &SENTENCE,
        "Said instead of the standard message.",
    ),
];

static PROPERTY: Type = Either(&[&TYPE_WORD, &Type::Record(&PROPERTY_RECORD)]);

/// A typed key of an object, with its rules beside the type.
pub static PROPERTY_RECORD: Record = Record {
    name: "property",
    doc: "A typed key of an object.",
    keys: FIELD.keys,
    more: VALIDATION_KEYS,
    rest: None,
    at_least: 0,
    one_of: &[],
};

/// A named result.
pub static OUTPUT_FIELD: Record = record(
    "output",
    "A named, typed result. `NAME: \"{{ … }}\"` is short for `NAME: {value: \"{{ … }}\"}`.",
    &[
        key("value", &Any, "What yields it.").required(),
        key("type", &TYPE_WORD, "Its type.").default("any"),
        key("description", &SENTENCE, "What it is."),
    ],
);

/// An environment variable of a contract.
pub static VARIABLE_RECORD: Record = record(
    "variable",
    "An environment variable. `NAME: \"description\"` is short for `NAME: {description: …}`.",
    &[
        key(
            "name",
            &Text(Pattern::Environment, 64),
            "The same as the key.",
        ),
        key("description", &SHORT, "What it is for.").required(),
        key("required", &Bool, "Whether it must be set.").default("true"),
    ],
);

/// Initial state by tier.
pub static DEFAULT_STATE: Record = record(
    "default_state",
    "Initial state by tier.",
    &[
        key("raw", &STATE_VALUES, "Fields that steps write."),
        key("state", &STATE_VALUES, "Fields that are set by hand."),
    ],
);

/// Types of state fields by tier.
pub static STATE_SCHEMA: Record = record(
    "state_schema",
    "Types of state fields by tier, and the computed ones.",
    &[
        key("raw", &STATE_TYPES, "Fields that steps write."),
        key("state", &STATE_TYPES, "Fields that are set by hand."),
        key("computed", &COMPUTED_FIELDS, "Derived fields."),
    ],
);

static STATE_TYPES: Type = Map(Pattern::Name, &TYPE_WORD, MANY);

/// A derived field.
pub static COMPUTED: Record = record(
    "computed",
    "A derived state field. It needs `transform` or `value`.",
    &[
        key(
            "from",
            &Either(&[&SENTENCE, &Type::List(&SENTENCE, 100)]),
            "One path, whose value is `input`; or a list of paths, whose values are the array `input`.",
        ),
        key(
            "transform",
            &TEXT,
            "JavaScript: an expression, an object, or a function body with `return`.",
        ),
        key(
            "value",
            &Template,
            "An expression of the workflow's dialect, instead of `transform`.",
        ),
        key(
            "on_error",
            &Word(&["propagate", "use_fallback", "ignore"]),
            "What a failing rule means.",
        )
        .default("propagate"),
        key("fallback", &Literal, "The value when the rule fails, where `on_error` is `use_fallback`."),
        key(
            "validate",
            &TEXT,
            "A JavaScript expression over `output` that must be true.",
        ),
        key("static", &Bool, "Computed once, at start.").default("false"),
    ],
)
.one_of(&["transform", "value"]);

/// A tool's signature.
pub static TOOL: Record = record(
    "tool",
    "The signature of a tool that the host provides.",
    &[
        key("description", &SENTENCE, "What it does."),
        key("params", &INPUTS, "Its parameters."),
        alias("parameters", &INPUTS, "params"),
        key(
            "returns",
            &Either(&[&TYPE_WORD, &INPUTS]),
            "The fields of its result, or its type.",
        ),
        key("idempotent", &Bool, "Whether calling it again is harmless."),
    ],
);

/// An agent.
pub static AGENT_RECORD: Record = record(
    "agent",
    "An agent. `name: instructions` is short for `name: {instructions: …}`.",
    &[
        key("instructions", &TEXT, "What it is told before the task.").required(),
        key("description", &SENTENCE, "What it is for."),
    ],
);

/// Steps that `foreach` runs once per item.
pub static TASK: Record = record(
    "task",
    "Steps run once per item, with inputs and state of their own.",
    &[
        key("description", &SENTENCE, "What it does."),
        key(
            "inputs",
            &INPUTS,
            "Typed parameters. An object item binds by name, any other to the only required input.",
        ),
        alias("parameters", &INPUTS, "inputs"),
        key("state", &STATE_VALUES, "State fields of its own."),
        alias("initial_state", &STATE_VALUES, "state"),
        form("default_state", &Type::Record(&DEFAULT_STATE), "state", ""),
        key(
            "shares_state",
            &Bool,
            "Whether it reads and writes the state of the workflow instead of its own.",
        )
        .default("false; true for `sub_agent_tasks` without a state of their own"),
        key("steps", &STEPS_LIST, "What it does.").required(),
        key(
            "on_error",
            &Type::Record(&TASK_ERROR),
            "What happens when it fails.",
        ),
        form(
            "error_handling",
            &Type::Record(&TASK_ERROR_HANDLING),
            "on_error",
            "",
        ),
    ],
);

/// What happens when a task fails.
pub static TASK_ERROR: Record = record(
    "task on_error",
    "What happens when a task fails.",
    &[
        key(
            "return",
            &Bool,
            "The error becomes the item's result instead of a failure.",
        )
        .default("false"),
        key("steps", &STEPS_LIST, "Steps run before the task ends."),
    ],
);

/// Another form of a task's `on_error`.
pub static TASK_ERROR_HANDLING: Record = record(
    "task error_handling",
    "Another form of a task's `on_error`.",
    &[
        form("return_on_error", &Bool, "on_error.return", ""),
        form("cleanup_on_error", &STEPS_LIST, "on_error.steps", ""),
    ],
);

/// What happens when a step fails and nothing nearer handles it.
pub static ON_ERROR_RECORD: Record = record(
    "on_error",
    "What happens when a step fails and nothing nearer handles it. A word is short for `{action: …}`.",
    &[
        key(
            "action",
            &ERROR_ACTION,
            "`fail`; `checkpoint_and_fail`; `continue`, as if on every step; `retry_workflow`, once more with fresh state.",
        )
        .default("fail"),
        key("collect_to", &PATH, "A state path that errors are appended to."),
        key("steps", &STEPS_LIST, "Steps run before the run fails."),
    ],
);

/// Another form of `on_error`.
pub static ERROR_HANDLING: Record = record(
    "error_handling",
    "Another form of `on_error`.",
    &[
        form("on_error", &ERROR_ACTION, "on_error.action", ""),
        form(
            "error_collection",
            &Type::Record(&ERROR_COLLECTION),
            "on_error.collect_to",
            "",
        ),
        form("on_failure", &STEPS_LIST, "on_error.steps", ""),
    ],
);

/// Another form of `on_error.collect_to`.
pub static ERROR_COLLECTION: Record = record(
    "error_collection",
    "Another form of `on_error.collect_to`.",
    &[
        key("enabled", &Bool, "Whether errors are collected.").default("true"),
        key("state_path", &PATH, "Where to."),
        key(
            "include_stack_traces",
            &Bool,
            "Accepted; errors carry no stack traces.",
        )
        .default("false"),
    ],
);

/// What a resumed run does with what went before.
pub static ON_RESUME: Record = record(
    "on_resume",
    "What a resumed run does with what went before.",
    &[
        key("retry_failed_steps", &Bool, "Failed steps run again.").default("true"),
        key(
            "skip_completed_steps",
            &Bool,
            "Completed steps do not run again.",
        )
        .default("true"),
        key(
            "reset_error_counts",
            &Bool,
            "Error counters start from zero.",
        )
        .default("false"),
    ],
);

/// Bounds of a run.
pub static LIMITS: Record = record(
    "limits",
    "Bounds of a run.",
    &[
        key("max_steps", &POSITIVE, "Executions of steps or states.")
            .default("10,000 for `steps`, 100 for `states`"),
        alias("max_states", &POSITIVE, "max_steps"),
        key(
            "timeout",
            &Duration(RUN_SECONDS.0, RUN_SECONDS.1),
            "How long a run may take, not counting waits for a person or agent.",
        )
        .default("none"),
        alias(
            "execution_timeout",
            &Duration(RUN_SECONDS.0, RUN_SECONDS.1),
            "timeout",
        ),
        key("max_depth", &Int(1, MAX_CALL_DEPTH as i64), "Nested calls.").default("5"),
        key(
            "max_parallel",
            &Int(1, MAX_PARALLEL as i64),
            "Children of one `foreach` at once; further items queue.",
        )
        .default("10"),
        key("max_state_bytes", &Int(1024, 1 << 30), "Size of the state.").default("1 MiB"),
    ],
);

/// Another form of `limits`.
pub static CONFIG: Record = record(
    "config",
    "Another form of `limits`.",
    &[
        form(
            "timeout_seconds",
            &Number(0.1, 365.0 * DAY),
            "limits.timeout",
            "",
        ),
        form("max_retries", &Int(0, 100), "retry", ""),
    ],
);

/// A state.
pub static STATE: Record = record(
    "state",
    "A state: an action and where to go after it.",
    &[
        key("description", &SENTENCE, "What it does."),
        key(
            "action",
            &Either(&[&Type::ActionStep, &Type::Record(&ACTION)]),
            "A tool with its parameters, or any step that acts: `{type: shell, …}`.",
        )
        .required(),
        key(
            "transitions",
            &Type::List(&Type::Record(&TRANSITION), MAX_TRANSITIONS),
            "Where to go, tried in order. Without any the state is final.",
        ),
        key(
            "timeout",
            &Duration(0.1, 300.0),
            "How long the action may take.",
        )
        .default("30 s"),
        alias("timeout_seconds", &Duration(0.1, 300.0), "timeout"),
        key(
            "on_timeout",
            &NAME,
            "The state to go to when the action did not end in time.",
        ),
    ],
);

/// A tool call of a state.
pub static ACTION: Record = record(
    "action",
    "A call of one of flow's tools or of a tool under `tools:`.",
    &[
        key("tool", &Text(Pattern::Free, 200), "The tool.").required(),
        key(
            "params",
            &PARAMETERS,
            "Its parameters. `session_id` is filled in when absent.",
        ),
        alias("parameters", &PARAMETERS, "params"),
    ],
);

static PARAMETERS: Type = Map(Pattern::Free, &Any, 1000);

/// Where to go after a state.
pub static TRANSITION: Record = record(
    "transition",
    "A condition and the state it leads to.",
    &[
        key("condition", &CONDITION_TYPE, "When it is taken.").required(),
        key("next_state", &NAME, "Where it leads.").required(),
        key(
            "pattern",
            &Regex,
            "The regular expression of `pattern_match` and `pattern_no_match`.",
        ),
    ],
);

static CONDITION_TYPE: Type = Either(&[&CONDITION_WORD, &Type::Record(&CONDITION_MAP)]);
static CONDITION_WORD: Type = Word(&[
    "success",
    "failure",
    "timeout",
    "pattern_match",
    "pattern_no_match",
    "always",
]);
static CONDITIONS: Type = Type::List(&INNER_CONDITION, 20);
static INNER_CONDITION: Type = Either(&[
    &Word(&["success", "failure", "timeout", "always"]),
    &Type::Record(&INNER_CONDITION_MAP),
]);

static CONDITION_KEYS: [Key; 10] = [
    key(
        "success",
        &Bool,
        "The action succeeded (`true`), or failed or timed out (`false`).",
    ),
    key(
        "timeout_occurred",
        &Bool,
        "The action timed out, or an await found nothing.",
    ),
    key(
        "pattern_match",
        &Regex,
        "Found in `match_text` or `screen_content`.",
    ),
    key("pattern_not_match", &Regex, "Found in neither."),
    key(
        "field_equals",
        &FIELD_VALUES,
        "Fields of the result that equal a value.",
    ),
    key(
        "field_contains",
        &FIELD_VALUES,
        "Fields of the result that contain a text.",
    ),
    key("expression", &Condition, "An expression that is true."),
    key("any", &CONDITIONS, "At least one holds."),
    key("all", &CONDITIONS, "Every one holds."),
    key("not", &INNER_CONDITION, "It does not hold."),
];

static FIELD_VALUES: Type = Map(Pattern::Free, &Any, 20);

/// A condition inside another; all given keys must hold.
pub static INNER_CONDITION_MAP: Record = Record {
    name: "inner condition",
    doc: "All given keys must hold.",
    keys: &CONDITION_KEYS,
    more: &[],
    rest: None,
    at_least: 1,
    one_of: &[],
};

/// A condition; all given keys must hold.
pub static CONDITION_MAP: Record = Record {
    name: "condition",
    doc: "All given keys must hold; `description` stands alone.",
    keys: &[key(
        "description",
        &SHORT,
        "Judged: the agent or person is asked whether it holds.",
    )],
    more: &CONDITION_KEYS,
    rest: None,
    at_least: 1,
    one_of: &[],
};

/// Keys of every step.
pub static COMMON: &[Key] = &COMMON_KEYS;

const COMMON_KEYS: [Key; 14] = [
    key("id", &NAME, "Unique in its graph.").default("made from the position"),
    key("type", &TEXT, "The step type.").required(),
    key("description", &SENTENCE, "What it does."),
    key(
        "needs_state",
        &NAMES,
        "The state fields its own templates may read.",
    )
    .default("all"),
    key("when", &Condition, "The step is skipped unless this holds."),
    key("output_to", &PATH, "Where its result is written."),
    key(
        "timeout",
        &Duration(0.01, 30.0 * DAY),
        "How long an attempt may take.",
    )
    .default("30 s for `shell` and `mcp_call`, 300 s for an agent at work, none for whoever is waited for"),
    key(
        "on_error",
        &STEP_ON_ERROR,
        "What a failure means: `fail`, `continue`, or `{goto: id}`.",
    )
    .default("fail"),
    key("retry", &RETRY_TYPE, "How failed attempts are repeated."),
    form("retry_count", &Int(0, 100), "retry.attempts", ""),
    form("retry_delay", &Millis(0.0, 86_400_000.0), "retry.delay", ""),
    key(
        "fallback_value",
        &Any,
        "The result when the last attempt failed; the step then succeeds.",
    ),
    key(
        "state_update",
        &STATE_UPDATES,
        "Writes the result, or a value made from it, to the state.",
    ),
    key("error_state_update", &STATE_UPDATES, "The same on failure."),
];

static RETRY_TYPE: Type = Type::Record(&RETRY);
static STEP_ON_ERROR: Type = Either(&[
    &Word(&["fail", "continue", "retry"]),
    &Type::Record(&GOTO_ERROR),
]);

/// A failure that jumps.
pub static GOTO_ERROR: Record = record(
    "step on_error",
    "A failure that jumps.",
    &[key("goto", &NAME, "The step to go to.").required()],
);

/// How failed attempts are repeated.
pub static RETRY: Record = record(
    "retry",
    "How failed attempts are repeated.",
    &[
        key(
            "attempts",
            &Int(1, 100),
            "Attempts in all, the first included.",
        )
        .required(),
        key(
            "delay",
            &Duration(0.0, DAY),
            "Pause before the second attempt.",
        )
        .default("0"),
        key(
            "backoff",
            &Number(1.0, 100.0),
            "Factor from one pause to the next.",
        )
        .default("1"),
        key("max_delay", &Duration(0.0, DAY), "What no pause exceeds.").default("none"),
    ],
);

static STATE_UPDATES: Type = Either(&[
    &Type::Record(&UPDATE),
    &Type::List(&Type::Record(&UPDATE), 100),
]);
static OPERATION: Type = Word(&["set", "append", "increment", "merge"]);
const WRITE_PATH: Key = key(
    "path",
    &PATH,
    "Where: a field, a dotted path, or one with `raw.` or `state.` before it.",
);
const WRITE_VALUE: Key = key(
    "value",
    &Any,
    "What. Without it: the step's result; 1 for `increment`.",
);
const WRITE_OPERATION: Key = key(
    "operation",
    &OPERATION,
    "How it combines with what is there.",
)
.default("set");

/// One write.
pub static UPDATE: Record = record(
    "state_update",
    "One write to the state.",
    &[WRITE_PATH.required(), WRITE_VALUE, WRITE_OPERATION],
);

const fn step(name: &'static str, doc: &'static str, keys: &'static [Key]) -> Record {
    Record {
        name,
        doc,
        keys,
        more: COMMON,
        rest: None,
        at_least: 0,
        one_of: &[],
    }
}

/// A branch.
pub static CONDITION_STEP: Record = step(
    "condition",
    "Runs one list of steps or another.",
    &[
        key("if", &Condition, "What decides.").required(),
        alias("condition", &Condition, "if"),
        key("then", &STEPS_LIST, "Steps when it holds.").required(),
        alias("then_steps", &STEPS_LIST, "then"),
        key("else", &STEPS_LIST, "Steps when it does not."),
        alias("else_steps", &STEPS_LIST, "else"),
    ],
);

/// A loop.
pub static WHILE_STEP: Record = step(
    "while",
    "Runs its steps as long as something holds.",
    &[
        key("if", &Condition, "What decides.").required(),
        alias("condition", &Condition, "if"),
        key("steps", &STEPS_LIST, "The body.").required(),
        alias("body", &STEPS_LIST, "steps"),
        key(
            "max_iterations",
            &Int(1, u32::MAX as i64),
            "How often at most; then the loop is over.",
        )
        .default("100, and reaching it fails the run"),
    ],
);

static AGENT_NAME: Type = Either(&[&Text(Pattern::Agent, 64), &Null]);
static CHILD_ERROR: Type = Word(&["fail", "continue", "retry_failed", "fail_all"]);

/// Once per item.
pub static FOREACH_STEP: Record = step(
    "foreach",
    "Runs inline `steps` in order, or a `task` in parallel, once per item.",
    &[
        key("items", &Any, "A list, or an expression that yields one.").required(),
        key("task", &NAME, "The task to run per item."),
        alias("sub_agent_task", &NAME, "task"),
        key("steps", &STEPS_LIST, "Steps to run per item, in the enclosing scope."),
        alias("body", &STEPS_LIST, "steps"),
        key("agent", &AGENT_NAME, "`@task` hands each child's steps to a sub-agent, `@name` the whole item to that agent.")
            .default("the host runs the task"),
        key("sequential", &Bool, "One item at a time.").default("false"),
        key("max_parallel", &Int(1, MAX_PARALLEL as i64), "Children at once; further items queue.")
            .default("`limits.max_parallel`"),
        key(
            "on_child_error",
            &Either(&[&CHILD_ERROR, &Type::Record(&ON_CHILD_ERROR)]),
            "What a failed child means.",
        )
        .default("fail"),
        key("max_retries", &Int(1, 100), "How often `on_child_error: retry_failed` tries again.")
            .default("1"),
        key("collect_to", &PATH, "A state path that the children's errors are appended to."),
        form("on_sub_agent_error", &Type::Record(&ON_SUB_AGENT_ERROR), "on_child_error", ""),
        form("wait_for_all", &Type::True, "on_child_error", "A `foreach` always waits for its children."),
        key("prompt", &Template, "Replaces the standard prompt of sub-agents."),
        alias("sub_agent_prompt_override", &Template, "prompt"),
    ],
)
.one_of(&["task", "steps"]);

/// What a failed child means.
pub static ON_CHILD_ERROR: Record = record(
    "on_child_error",
    "What a failed child means. A word is short for `{strategy: …}`.",
    &[
        key(
            "strategy",
            &CHILD_ERROR,
            "`fail` once all have ended; `continue` with null for it; `retry_failed`; `fail_all`, stopping the others.",
        )
        .required(),
        key("max_retries", &Int(1, 100), "How often `retry_failed` tries again.").default("1"),
        key("collect_to", &PATH, "A state path that errors are appended to."),
    ],
);

/// Another form of `on_child_error`.
pub static ON_SUB_AGENT_ERROR: Record = record(
    "on_sub_agent_error",
    "Another form of `on_child_error`.",
    &[
        key("strategy", &CHILD_ERROR, "As in `on_child_error`.").required(),
        key("max_retries", &Int(1, 100), "As in `on_child_error`.").default("1"),
        key("collect_errors", &Bool, "Whether errors are collected.").default("true"),
        form("error_state_path", &PATH, "on_child_error.collect_to", ""),
    ],
);

/// Leaves a loop, or starts its next iteration.
pub static JUMP_STEP: Record = step("jump", "Leaves a loop, or starts its next iteration.", &[]);

/// Jumps to another step.
pub static GOTO_STEP: Record = step(
    "goto",
    "Jumps to another step of its own list or of a list around it.",
    &[
        key("target", &NAME, "The step to go to.").required(),
        key(
            "max_iterations",
            &Int(1, u32::MAX as i64),
            "How often the jump is taken; then the run goes on below it.",
        )
        .required(),
    ],
);

/// Ends the run or the task.
pub static RETURN_STEP: Record = step(
    "return",
    "Ends the run, or the task it stands in.",
    &[key("value", &Any, "The result.").default("none")],
);

/// Ends the run or the task without a value.
pub static EXIT_STEP: Record = step("exit", "Ends the run, or the task it stands in.", &[]);

/// Writes state.
pub static SET_STATE_STEP: Record = step(
    "set_state",
    "Writes state: all of it or nothing.",
    &[
        key(
            "updates",
            &Either(&[
                &Map(Pattern::Free, &Any, 1000),
                &Type::List(&Type::Record(&UPDATE), 1000),
            ]),
            "Paths and values in the order written, earlier ones in scope of later ones; or a list with operations.",
        )
        .required(),
    ],
);

/// Another form of `set_state`.
pub static STATE_UPDATE_STEP: Record = Record {
    name: "older set_state",
    doc: "Another form of `set_state`: one write, or a list under `updates`.",
    keys: &[
        WRITE_PATH,
        WRITE_VALUE,
        WRITE_OPERATION,
        key(
            "updates",
            &Type::List(&Type::Record(&UPDATE), 1000),
            "Several writes.",
        ),
    ],
    more: COMMON,
    rest: None,
    at_least: 0,
    one_of: &["path", "updates"],
};

/// Runs another workflow.
pub static CALL_STEP: Record = step(
    "call",
    "Runs another workflow and waits for it.",
    &[
        key("workflow", &Template, "Its name.").required(),
        key("inputs", &PARAMETERS, "Its inputs."),
        key(
            "shares_computed",
            &Bool,
            "Whether the computed fields of the called workflow can be read here afterwards.",
        )
        .default("false; true for `include_workflow`"),
    ],
);

static SHELL_KEYS: &[Key] = &[
    key(
        "command",
        &Template,
        "The command. Every value in it is quoted for the place it stands in.",
    )
    .required(),
    key(
        "env",
        &Map(Pattern::Free, &Any, 1000),
        "Environment variables for it.",
    ),
    key("working_directory", &Template, "Where it runs.").default("where the run was started"),
    key(
        "output_format",
        &Word(&["result", "text", "lines", "json", "key_value"]),
        "What its result is: `{stdout, stderr, exit_code, duration}`, or standard output parsed.",
    )
    .default("result"),
    key("by", &Word(&["host", "server", "agent"]), "Who runs it.").default("host"),
    key("reason", &Template, "Why an agent has to run it."),
];

/// Runs a command.
pub static SHELL_STEP: Record = step("shell", "Runs a command.", SHELL_KEYS);

/// The same with a time-out in milliseconds.
pub static SHELL_MILLIS_STEP: Record = Record {
    name: "shell_command",
    doc: "`shell` with `timeout` in milliseconds.",
    keys: SHELL_KEYS,
    more: COMMON_MILLIS,
    rest: None,
    at_least: 0,
    one_of: &[],
};

static COMMON_MILLIS: &[Key] = &in_millis(COMMON_KEYS);

const fn in_millis(mut keys: [Key; 14]) -> [Key; 14] {
    keys[6] = key(
        "timeout",
        &Millis(10.0, 2_592_000_000.0),
        "How long an attempt may take, in milliseconds.",
    );
    keys
}

/// Calls a tool.
pub static MCP_CALL_STEP: Record = step(
    "mcp_call",
    "Calls a tool of an MCP server, of the host, or of flow itself.",
    &[
        key(
            "tool",
            &Text(Pattern::Free, 200),
            "`server.tool`, or a name unique among the servers.",
        )
        .required(),
        key("parameters", &PARAMETERS, "Its parameters."),
        alias("params", &PARAMETERS, "parameters"),
        form("mcp", &Type::Record(&MCP), "tool` and `parameters", ""),
    ],
);

/// Another form of `tool` and `parameters`.
pub static MCP: Record = record(
    "mcp",
    "Another form of `tool` and `parameters`.",
    &[
        form("method", &Text(Pattern::Free, 200), "tool", "").required(),
        form("params", &PARAMETERS, "parameters", ""),
    ],
);

/// A call of the tool `apply_hints` whose other keys are its parameters.
pub static APPLY_HINTS_STEP: Record = Record {
    name: "apply_hints",
    doc: "A call of the tool `apply_hints`; every other key is a parameter.",
    keys: &[],
    more: COMMON,
    rest: Some(&Any),
    at_least: 0,
    one_of: &[],
};

static OPTIONS: Type = Either(&[&Type::List(&Any, 1000), &Template]);
static PROMPT_KIND: Type = Word(&["info", "confirm", "text", "choice"]);

/// Tells or asks a person something.
pub static PROMPT_STEP: Record = step(
    "prompt",
    "Tells or asks a person something.",
    &[
        key("message", &Template, "What the person reads.").required(),
        alias("prompt", &Template, "message"),
        key("kind", &PROMPT_KIND, "What is asked.").default(
            "`choice` with `options`, `text` with `validation` and for `user_input`, else `info`",
        ),
        key("options", &OPTIONS, "What can be chosen."),
        alias("choices", &OPTIONS, "options"),
        key(
            "validation",
            &Type::Record(&VALIDATION),
            "What a text must satisfy.",
        ),
    ],
);

/// Lets time pass.
pub static WAIT_STEP: Record = step(
    "wait",
    "Lets time pass.",
    &[
        key("duration_seconds", &WAIT_DURATION, "How long.").required(),
        alias("duration", &WAIT_DURATION, "duration_seconds"),
        key("message", &Template, "Shown meanwhile."),
    ],
);

static WAIT_DURATION: Type = Either(&[&Number(0.0, 30.0 * DAY), &Template]);

/// Hands a task to an agent.
pub static DELEGATE_STEP: Record = step(
    "delegate",
    "Hands a task to an agent and waits for its answer.",
    &[
        key("instructions", &Template, "What the agent is told.").required(),
        alias("prompt", &Template, "instructions"),
        key("agent", &AGENT_NAME, "Which agent.").default("the one that drives the run"),
        key(
            "returns",
            &Map(Pattern::Free, &Literal, 1000),
            "A JSON Schema that the answer must satisfy; one that misses it is asked for once more.",
        ),
    ],
);

const fn word(word: &'static str, kind: Kind, record: &'static Record) -> StepWord {
    StepWord {
        word,
        kind,
        record,
        alias: false,
    }
}

const fn other(word: &'static str, kind: Kind, record: &'static Record) -> StepWord {
    StepWord {
        word,
        kind,
        record,
        alias: true,
    }
}

/// Every word that `type:` may have.
pub static STEPS: &[StepWord] = &[
    word("condition", Kind::Condition, &CONDITION_STEP),
    other("conditional", Kind::Condition, &CONDITION_STEP),
    word("while", Kind::While, &WHILE_STEP),
    other("while_loop", Kind::While, &WHILE_STEP),
    word("foreach", Kind::Foreach, &FOREACH_STEP),
    other("parallel_foreach", Kind::Foreach, &FOREACH_STEP),
    word("break", Kind::Break, &JUMP_STEP),
    word("continue", Kind::Continue, &JUMP_STEP),
    word("goto", Kind::Goto, &GOTO_STEP),
    word("return", Kind::Return, &RETURN_STEP),
    other("exit", Kind::Return, &EXIT_STEP),
    word("set_state", Kind::SetState, &SET_STATE_STEP),
    other("state_update", Kind::SetState, &STATE_UPDATE_STEP),
    word("call", Kind::Call, &CALL_STEP),
    other("include_workflow", Kind::Call, &CALL_STEP),
    word("shell", Kind::Shell, &SHELL_STEP),
    other("shell_command", Kind::Shell, &SHELL_MILLIS_STEP),
    other("agent_shell_command", Kind::Shell, &SHELL_MILLIS_STEP),
    word("mcp_call", Kind::McpCall, &MCP_CALL_STEP),
    other("apply_hints", Kind::McpCall, &APPLY_HINTS_STEP),
    word("prompt", Kind::Prompt, &PROMPT_STEP),
    other("user_message", Kind::Prompt, &PROMPT_STEP),
    other("user_input", Kind::Prompt, &PROMPT_STEP),
    other("info", Kind::Prompt, &PROMPT_STEP),
    other("confirm", Kind::Prompt, &PROMPT_STEP),
    other("text", Kind::Prompt, &PROMPT_STEP),
    other("choice", Kind::Prompt, &PROMPT_STEP),
    word("wait", Kind::Wait, &WAIT_STEP),
    other("wait_step", Kind::Wait, &WAIT_STEP),
    word("delegate", Kind::Delegate, &DELEGATE_STEP),
    other("agent_prompt", Kind::Delegate, &DELEGATE_STEP),
];
