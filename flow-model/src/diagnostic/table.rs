//! Every rule in one place: its code, its title, and what `flow explain` says about it.

use super::Severity;

/// What a group of rules is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Text, keys, types, sizes.
    Form,
    /// States, steps, transitions.
    Flow,
    /// Tools, tasks, agents.
    Action,
    /// Templates, JavaScript, regular expressions.
    Expression,
    /// Inputs, state, scopes.
    Data,
    /// Values that do not fit.
    Value,
    /// Other files and other workflows.
    Import,
    /// What generated Rust cannot express.
    Rust,
    /// Things that are allowed and probably wrong.
    Lint,
}

impl Family {
    /// A heading for it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Family::Form => "Text, keys and types",
            Family::Flow => "Control flow",
            Family::Action => "Tools, tasks and agents",
            Family::Expression => "Expressions",
            Family::Data => "Names and state",
            Family::Value => "Values",
            Family::Import => "Other files",
            Family::Rust => "Generated Rust",
            Family::Lint => "Lints",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $family:ident, $title:literal, $bad:literal => $good:literal;)+) => {
        /// A rule of the checker. Codes are stable: one is never given to another rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every rule, by code.
            pub const ALL: &'static [Code] = &[$(Code::$name,)+];

            /// The code, such as `F020`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)+ }
            }

            /// The rule in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)+ }
            }

            /// What the rule is for.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Code::$name => concat!($($doc, "\n"),+),)+ }
            }

            /// A definition, or part of one, that breaks the rule; may be empty.
            #[must_use]
            pub const fn bad_example(self) -> &'static str {
                match self { $(Code::$name => $bad,)+ }
            }

            /// The same with the fault mended; may be empty.
            #[must_use]
            pub const fn good_example(self) -> &'static str {
                match self { $(Code::$name => $good,)+ }
            }

            /// What the rule is about.
            #[must_use]
            pub const fn family(self) -> Family {
                match self { $(Code::$name => Family::$family,)+ }
            }
        }
    };
}

impl Code {
    /// How bad a finding is when the definition does not say `strict`.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self.family() {
            Family::Lint => Severity::Warning,
            Family::Form
            | Family::Flow
            | Family::Action
            | Family::Expression
            | Family::Data
            | Family::Value
            | Family::Import
            | Family::Rust => Severity::Error,
        }
    }

    /// A few words for the place, when a finding has none of its own.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Code::Syntax => "not YAML",
            Code::NotUtf8 => "not UTF-8",
            Code::TooLarge => "too much",
            Code::Empty => "nothing here",
            Code::UnknownKey => "unknown key",
            Code::MissingKey => "something is missing here",
            Code::OutOfLimits => "outside the limits",
            Code::BadName | Code::BadAgent => "not such a name",
            Code::Conflict => "excludes another key",
            Code::UnknownStepType => "not a step type",
            Code::BadParameter => "does not fit the tool",
            Code::TemplateSyntax | Code::JavaScriptSyntax => "does not parse",
            Code::UnknownFilter => "unknown here",
            Code::UnknownName => "unknown name",
            Code::BadPath => "not a path",
            Code::BadLiteral => "does not fit",
            Code::NoOptions => "nothing to choose",
            Code::BadValidation => "cannot work",
            Code::UnusedInput | Code::UnusedState | Code::UnusedOutput => "never read",
            Code::UnusedTask => "never run",
            Code::PromptInTask => "nobody to ask",
            Code::AwaitWithoutTimeout => "no `timeout`",
            Code::UnboundedLoop => "no `max_iterations`",
            Code::RetryNotIdempotent => "may be done twice",
            Code::ParallelWrite => "set by all of them",
            Code::Unquoted => "not quoted",
            Code::ShadowedTier => "the same name",
            Code::UnknownWorkflow => "not known",
            Code::NeedsStateRequired => "no `needs_state`",
            Code::NoResult => "nothing to store",
            _ => "here",
        }
    }

    /// The way out, when a finding names no nearer one.
    pub(super) const fn way_out(self) -> &'static str {
        match self {
            Code::WrongType => "write a value of that kind",
            Code::NotAWord => "write one of these words",
            Code::OutOfLimits => "choose a value within the limits",
            Code::BadParameter => "look at the tool's parameters in the reference of the language",
            Code::BadCallInput => "look at the inputs of the called workflow",
            Code::TemplateSyntax => {
                "mend the expression; `{% raw %}` protects braces that are text"
            }
            Code::JavaScriptSyntax => "mend the JavaScript",
            Code::BadRegex => "mend the expression; look-around and back-references do not exist",
            Code::BadLiteral => "change the value or its declaration",
            Code::NeverHolds => "drop the transition, or change its condition",
            _ => "`flow explain` says more about this code",
        }
    }

    /// The rule with this code, in any case, with or without the `F` and leading zeros.
    #[must_use]
    pub fn parse(text: &str) -> Option<Code> {
        let text = text.trim();
        let digits = text.strip_prefix(['F', 'f']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = digits.trim_start_matches('0');
        Code::ALL
            .iter()
            .copied()
            .find(|code| code.as_str()[1..].trim_start_matches('0') == number)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

codes! {
    /// The text is neither YAML 1.2 nor JSON. YAML indents with spaces only, and a value that
    /// starts with `{`, `[`, `*`, `&`, `!`, `|`, `>`, `%`, `@` or a back-quote needs quotes. JSON has
    /// no comments.
    Syntax = "F001", Form, "the text is not YAML",
        "steps:\n  - type: shell\n    command: {{ inputs.what }}\n" => "steps:\n  - type: shell\n    command: \"{{ inputs.what }}\"\n";
    /// A definition is text in UTF-8.
    NotUtf8 = "F002", Form, "the file is not UTF-8", "" => "";
    /// Reading is bounded, so that no file can exhaust time or memory: 1 MiB of text, 100 levels
    /// of nesting, 50,000 keys and values with every alias written out.
    TooLarge = "F003", Form, "the definition is too large", "" => "";
    /// There is nothing to read: the file is empty or holds only comments.
    Empty = "F004", Form, "there is no definition", "" => "";
    /// A key may stand in a map once. Only a `prompt` step may say `type` twice, the second time
    /// for its kind.
    DuplicateKey = "F005", Form, "a key is given twice",
        "steps:\n  - type: shell\n    command: make\n    command: make test\n" => "steps:\n  - type: shell\n    command: make && make test\n";
    /// A key that the language does not have here. A misspelt key would otherwise be ignored
    /// without a word.
    UnknownKey = "F006", Form, "a key that does not exist here",
        "steps:\n  - type: shell\n    comand: make\n" => "steps:\n  - type: shell\n    command: make\n";
    /// A key that must be given is not.
    MissingKey = "F007", Form, "a key is missing",
        "steps:\n  - type: shell\n" => "steps:\n  - type: shell\n    command: make\n";
    /// The value has another type than the key takes.
    WrongType = "F008", Form, "a value of the wrong type",
        "steps: make\n" => "steps:\n  - type: shell\n    command: make\n";
    /// The value is not one of the words that the key takes.
    NotAWord = "F009", Form, "a word that is not one of those allowed",
        "steps:\n  - type: prompt\n    message: Go on?\n    kind: confrm\n" => "steps:\n  - type: prompt\n    message: Go on?\n    kind: confirm\n";
    /// A number, a length or a count is outside its limits. A command, a message and instructions
    /// have at least one letter.
    OutOfLimits = "F010", Form, "a value outside its limits",
        "initial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n    timeout: 1000\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n    timeout: 300\n";
    /// A name has characters that names of its kind may not have.
    BadName = "F011", Form, "a malformed name",
        "name: my flow\nsteps:\n  - type: shell\n    command: make\n" => "name: my-flow\nsteps:\n  - type: shell\n    command: make\n";
    /// Two keys that exclude each other are both given: two spellings of one key, or `steps` and
    /// `states`.
    Conflict = "F012", Form, "two keys that exclude each other",
        "steps:\n  - type: condition\n    if: \"{{ true }}\"\n    condition: \"{{ false }}\"\n    then: []\n" => "steps:\n  - type: condition\n    if: \"{{ true }}\"\n    then: []\n";
    /// The step's `type` is not a step type.
    UnknownStepType = "F013", Form, "a step type that does not exist",
        "steps:\n  - type: shel\n    command: make\n" => "steps:\n  - type: shell\n    command: make\n";

    /// A transition or `on_timeout` leads to a state that the definition does not have.
    NoSuchState = "F020", Flow, "transition to a state that does not exist",
        "initial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n    transitions:\n      - {condition: success, next_state: tset}\n      - {condition: failure, next_state: test}\n  test:\n    action: {tool: list_terminal_sessions}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n    transitions:\n      - {condition: always, next_state: test}\n  test:\n    action: {tool: list_terminal_sessions}\n";
    /// `initial_state` names a state that the definition does not have.
    NoInitialState = "F021", Flow, "the initial state does not exist",
        "initial_state: begin\nstates:\n  start:\n    action: {tool: list_terminal_sessions}\n" => "initial_state: start\nstates:\n  start:\n    action: {tool: list_terminal_sessions}\n";
    /// `goto` or `on_error: {goto: …}` names a step that does not exist.
    NoSuchStep = "F022", Flow, "jump to a step that does not exist",
        "steps:\n  - id: build\n    type: shell\n    command: make\n  - type: goto\n    target: biuld\n    max_iterations: 3\n" => "steps:\n  - id: build\n    type: shell\n    command: make\n  - type: goto\n    target: build\n    max_iterations: 3\n";
    /// A jump may reach steps of its own list or of a list around it. A loop or a branch has to be
    /// entered through its head, or its counter and its items would not exist.
    JumpInside = "F023", Flow, "jump into a loop or branch",
        "steps:\n  - id: check\n    type: condition\n    if: \"{{ true }}\"\n    then:\n      - id: inner\n        type: shell\n        command: make\n  - type: goto\n    target: inner\n    max_iterations: 3\n" => "steps:\n  - id: check\n    type: condition\n    if: \"{{ true }}\"\n    then:\n      - id: inner\n        type: shell\n        command: make\n  - type: goto\n    target: check\n    max_iterations: 3\n";
    /// Step ids are unique in their graph: the steps of the workflow with everything nested in
    /// them, or the steps of one task.
    DuplicateId = "F024", Flow, "an id is used twice",
        "steps:\n  - id: build\n    type: shell\n    command: make\n  - id: build\n    type: shell\n    command: make test\n" => "steps:\n  - id: build\n    type: shell\n    command: make\n  - id: test\n    type: shell\n    command: make test\n";
    /// `break` and `continue` belong inside a `while` or a `foreach` with inline `steps`.
    OutsideLoop = "F025", Flow, "break or continue outside a loop",
        "steps:\n  - type: break\n" => "steps:\n  - type: while\n    if: \"{{ true }}\"\n    max_iterations: 3\n    steps:\n      - type: break\n";
    /// Every way through a workflow calls the workflow itself again, or every way through a task
    /// runs the task again over a list that is never empty, directly or by way of others. No run
    /// can end before the depth limit fails it.
    EndlessRecursion = "F026", Flow, "recursion that cannot end",
        "name: again\nsteps:\n  - type: call\n    workflow: again\n" => "name: again\ninputs:\n  more: {type: boolean, default: false}\nsteps:\n  - type: call\n    workflow: again\n    when: \"{{ inputs.more }}\"\n";

    /// `action.tool` is neither one of flow's own tools nor declared under `tools:`.
    UnknownTool = "F030", Action, "a tool that does not exist",
        "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminl}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n";
    /// A parameter does not fit the tool's signature: it does not exist, is missing, or its value
    /// has the wrong type or is out of range.
    BadParameter = "F031", Action, "a parameter that does not fit the tool",
        "initial_state: a\nstates:\n  a:\n    action: {tool: await_output, params: {pattern: ready, timeout: soon}}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: await_output, params: {pattern: ready, timeout: 20}}\n";
    /// `foreach` names a task that is neither under `tasks:` nor imported.
    UnknownTask = "F032", Action, "a task that does not exist",
        "steps:\n  - type: foreach\n    items: [1, 2]\n    task: doubel\ntasks:\n  double:\n    inputs: {n: integer}\n    steps:\n      - type: return\n        value: \"{{ inputs.n * 2 }}\"\n" => "steps:\n  - type: foreach\n    items: [1, 2]\n    task: double\ntasks:\n  double:\n    inputs: {n: integer}\n    steps:\n      - type: return\n        value: \"{{ inputs.n * 2 }}\"\n";
    /// An agent is written `@` and lower-case letters, digits and hyphens.
    BadAgent = "F033", Action, "a malformed agent name",
        "steps:\n  - type: delegate\n    instructions: Review it.\n    agent: Code_Reviewer\n" => "steps:\n  - type: delegate\n    instructions: Review it.\n    agent: \"@code-reviewer\"\n";
    /// An input of a called workflow does not exist there, is missing, or has the wrong type: as it is
    /// written out, or because an expression is known to yield another. It is not read as that type:
    /// a text that is a number needs `| int`.
    BadCallInput = "F034", Action, "an input that does not fit the called workflow", "" => "";

    /// A template does not parse.
    TemplateSyntax = "F040", Expression, "a template that does not parse",
        "steps:\n  - type: shell\n    command: echo {{ inputs.name\n" => "steps:\n  - type: shell\n    command: echo {{ inputs.name }}\n";
    /// A JavaScript expression or transform does not parse.
    JavaScriptSyntax = "F041", Expression, "JavaScript that does not parse",
        "state: {files: []}\ncomputed:\n  count:\n    from: files\n    transform: \"input.length +\"\nsteps:\n  - type: shell\n    command: echo {{ state.count }}\n" => "state: {files: []}\ncomputed:\n  count:\n    from: files\n    transform: \"input.length + 1\"\nsteps:\n  - type: shell\n    command: echo {{ state.count }}\n";
    /// A regular expression does not compile. The syntax is that of Rust's `regex` crate: no
    /// look-around and no back-references, and in exchange no input can make it slow.
    BadRegex = "F042", Expression, "a regular expression that does not compile",
        "initial_state: a\nstates:\n  a:\n    action: {tool: await_output, params: {pattern: \"(ready\", timeout: 5}}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: await_output, params: {pattern: \"(ready)\", timeout: 5}}\n";
    /// A filter, function or test that expressions do not have.
    UnknownFilter = "F043", Expression, "an unknown filter, function or test",
        "inputs: {name: string}\nsteps:\n  - type: shell\n    command: echo {{ inputs.name | uper }}\n" => "inputs: {name: string}\nsteps:\n  - type: shell\n    command: echo {{ inputs.name | upper }}\n";
    /// `if`, `when` and `items` are one `{{ … }}` or a bare expression. With text around it the
    /// value would be a text, which is always true and never a list.
    TextAround = "F044", Expression, "text around an expression",
        "inputs: {n: integer}\nsteps:\n  - type: shell\n    when: \"{{ inputs.n }} > 3\"\n    command: make\n" => "inputs: {n: integer}\nsteps:\n  - type: shell\n    when: \"{{ inputs.n > 3 }}\"\n    command: make\n";
    /// A value is quoted for the place it stands in. In a comment nothing is quoted, and what is not
    /// harmless would end it; between `$'` and `'` the shells read backslashes in ways of their own;
    /// and in `${name:-…}` and back-quotes inside double quotes, each shell reads quotes differently.
    /// Put the value in a variable of the shell first: `v={{ inputs.v }}`, then `${name:-$v}`.
    /// A `case` inside `$(…)` takes values when its patterns are written as `(…)`.
    /// Which shell reads what `run_command` types is not known, so that no value stands in it where
    /// shells differ either: inside back-quotes, after `\'` inside single quotes, which does not
    /// end them in fish, after a comment with a quote in it, which is no comment in zsh, and after a
    /// `!` that may stand for an earlier command.
    /// Quotes do not help where the shell reads a text again after they are gone: as arithmetic or as the
    /// name of a variable, `a[$(…)]` is run by bash and zsh. Only whole numbers stand in `((…))`, in
    /// `[[ … -gt … ]]`, in `a[…]`, `${a[…]}` and `${x:…}`, after `let` and `declare -i`, and after
    /// `>&`; only letters, digits and `_` where a name is read, as by `read`, `unset`, `declare`,
    /// `printf -v` and `test -v`. `[ {{ inputs.n }} -gt 3 ]` takes every value: it computes nothing.
    /// A variable does not help either: what holds the value is computed in the same way.
    MisplacedValue = "F045", Expression, "a value where none can be quoted",
        "inputs: {target: string}\nsteps:\n  - type: shell\n    command: \"make # {{ inputs.target }}\"\n" => "inputs: {target: string}\nsteps:\n  - type: shell\n    command: make {{ inputs.target }}\n";

    /// An expression reads an input that `inputs:` does not declare.
    UnknownInput = "F050", Data, "an input that is not declared",
        "inputs: {branch: string}\nsteps:\n  - type: shell\n    command: git checkout {{ inputs.brnch }}\n" => "inputs: {branch: string}\nsteps:\n  - type: shell\n    command: git checkout {{ inputs.branch }}\n";
    /// An expression reads a state field that nothing declares and nothing writes.
    UnknownState = "F051", Data, "a state field that does not exist",
        "state: {count: 0}\nsteps:\n  - type: shell\n    command: echo {{ state.cuont }}\n" => "state: {count: 0}\nsteps:\n  - type: shell\n    command: echo {{ state.count }}\n";
    /// A name that means nothing here: `item` outside a loop, `error` outside failure steps,
    /// `result` outside `state_update`, or a name nobody declared.
    UnknownName = "F052", Data, "a name that means nothing here",
        "steps:\n  - type: shell\n    command: echo {{ item }}\n" => "steps:\n  - type: foreach\n    items: [1, 2]\n    steps:\n      - type: shell\n        command: echo {{ item }}\n";
    /// A step that lists `needs_state` may read those fields only.
    OutsideNeedsState = "F053", Data, "a state field outside needs_state",
        "state: {a: 1, b: 2}\nsteps:\n  - type: shell\n    needs_state: [a]\n    command: echo {{ state.a }} {{ state.b }}\n" => "state: {a: 1, b: 2}\nsteps:\n  - type: shell\n    needs_state: [a, b]\n    command: echo {{ state.a }} {{ state.b }}\n";
    /// A computed field is derived from others and cannot be written.
    WriteToComputed = "F054", Data, "a write to a computed field",
        "state: {n: 1}\ncomputed:\n  twice: {from: n, transform: input * 2}\nsteps:\n  - type: set_state\n    updates: {twice: 4}\n" => "state: {n: 1}\ncomputed:\n  twice: {from: n, transform: input * 2}\nsteps:\n  - type: set_state\n    updates: {n: 2}\n";
    /// Computed fields depend on each other in a circle, so none can be computed first.
    ComputedCycle = "F055", Data, "computed fields that depend on each other in a circle",
        "computed:\n  a: {from: b, transform: input}\n  b: {from: a, transform: input}\nsteps:\n  - type: shell\n    command: echo {{ state.a }}\n" => "state: {b: 1}\ncomputed:\n  a: {from: b, transform: input}\nsteps:\n  - type: shell\n    command: echo {{ state.a }}\n";
    /// A path in `output_to`, `path:` or `from:` is not a path: fields joined by dots, `raw.` or
    /// `state.` before them where the tier matters.
    BadPath = "F056", Data, "a malformed state path",
        "steps:\n  - type: shell\n    command: make\n    output_to: \"a..b\"\n" => "steps:\n  - type: shell\n    command: make\n    output_to: a.b\n";
    /// An expression has something that stands for a secret, and never its value: it can pass the
    /// secret on, join it to other text and ask whether there is one. Comparing it, measuring it or
    /// sending it through a filter would work on what stands for it.
    SecretExamined = "F057", Data, "a secret that an expression looks at",
        "inputs: {token: {type: string, secret: true}}\nsteps:\n  - type: shell\n    when: \"{{ inputs.token == 'x' }}\"\n    command: login {{ inputs.token }}\n" => "inputs: {token: {type: string, secret: true}}\nsteps:\n  - type: shell\n    when: \"{{ inputs.token is defined }}\"\n    command: login {{ inputs.token }}\n";

    /// A default or a literal has another type than declared, or breaks the declared validation; or an
    /// expression, or the result of a step, is known to be of another type.
    BadLiteral = "F060", Value, "a value that does not fit its declaration",
        "inputs:\n  retries: {type: integer, default: many}\nsteps:\n  - type: shell\n    command: make -j{{ inputs.retries }}\n" => "inputs:\n  retries: {type: integer, default: 3}\nsteps:\n  - type: shell\n    command: make -j{{ inputs.retries }}\n";
    /// A `choice` prompt has nothing to choose from.
    NoOptions = "F061", Value, "a choice without options",
        "steps:\n  - type: prompt\n    kind: choice\n    message: Which?\n" => "steps:\n  - type: prompt\n    kind: choice\n    message: Which?\n    options: [one, two]\n";
    /// `foreach` runs over a list; this value is known not to be one.
    NotAList = "F062", Value, "foreach over something that is not a list",
        "inputs: {name: string}\nsteps:\n  - type: foreach\n    items: \"{{ inputs.name }}\"\n    steps:\n      - type: shell\n        command: echo {{ item }}\n" => "inputs: {names: array}\nsteps:\n  - type: foreach\n    items: \"{{ inputs.names }}\"\n    steps:\n      - type: shell\n        command: echo {{ item }}\n";
    /// An environment variable is either an argument or a return value.
    ArgumentAndReturn = "F063", Value, "a variable that is both argument and return value",
        "arguments: {ROOT: where}\nreturn_values: {ROOT: where}\ninitial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n" => "arguments: {ROOT: where}\nreturn_values: {RESULT: what}\ninitial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n";
    /// A validation rule does not belong to the type, or no value can satisfy it.
    BadValidation = "F064", Value, "a validation rule that cannot work",
        "inputs:\n  n: {type: integer, validation: {min: 5, max: 1}}\nsteps:\n  - type: shell\n    command: make -j{{ inputs.n }}\n" => "inputs:\n  n: {type: integer, validation: {min: 1, max: 5}}\nsteps:\n  - type: shell\n    command: make -j{{ inputs.n }}\n";

    /// A file under `imports:` cannot be read.
    NoImport = "F070", Import, "an import that cannot be read", "" => "";
    /// Files import each other in a circle.
    ImportCycle = "F071", Import, "files that import each other in a circle", "" => "";
    /// Two files define the same task, computed field or agent.
    ImportClash = "F072", Import, "a name that is defined twice", "" => "";

    /// Compiled into Rust, every state, field, tool and task has an identifier made from its name;
    /// here two names give the same one. The definition itself is sound: `flow run` runs it.
    NameClash = "F080", Rust, "two names that are one in Rust", "" => "";

    /// No way leads here from the start.
    Unreachable = "F101", Lint, "a step or state that cannot be reached",
        "steps:\n  - type: return\n  - type: shell\n    command: make\n" => "steps:\n  - type: shell\n    command: make\n  - type: return\n";
    /// The action can end in a way that no transition covers; the run would then fail.
    UncoveredOutcome = "F102", Lint, "an outcome with no transition",
        "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n    transitions:\n      - {condition: success, next_state: b}\n  b:\n    action: {tool: exit_terminal}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n    transitions:\n      - {condition: success, next_state: b}\n      - {condition: failure, next_state: b}\n  b:\n    action: {tool: exit_terminal}\n";
    /// The condition contradicts itself, or waits for an outcome that this action cannot have.
    NeverHolds = "F103", Lint, "a condition that can never hold",
        "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n    transitions:\n      - {condition: {all: [success, failure]}, next_state: b}\n      - {condition: always, next_state: b}\n  b:\n    action: {tool: exit_terminal}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n    transitions:\n      - {condition: always, next_state: b}\n  b:\n    action: {tool: exit_terminal}\n";
    /// An earlier transition always holds when this one does, so this one is never taken.
    Hidden = "F104", Lint, "a transition hidden by an earlier one",
        "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n    transitions:\n      - {condition: always, next_state: b}\n      - {condition: failure, next_state: a}\n  b:\n    action: {tool: exit_terminal}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: open_terminal}\n    transitions:\n      - {condition: failure, next_state: b}\n      - {condition: always, next_state: b}\n  b:\n    action: {tool: exit_terminal}\n";
    /// Nothing on any way to this step has written the field, and it has no initial value.
    ReadBeforeWrite = "F105", Lint, "state read before anything writes it",
        "steps:\n  - type: shell\n    command: echo {{ state.version }}\n  - type: shell\n    command: git describe\n    output_to: version\n" => "steps:\n  - type: shell\n    command: git describe\n    output_to: version\n  - type: shell\n    command: echo {{ state.version }}\n";
    /// An input that nothing reads.
    UnusedInput = "F106", Lint, "an input that nothing reads",
        "inputs: {branch: string}\nsteps:\n  - type: shell\n    command: git status\n" => "inputs: {branch: string}\nsteps:\n  - type: shell\n    command: git checkout {{ inputs.branch }}\n";
    /// A state field that nothing reads: neither a step, nor a computed field, nor `outputs`.
    UnusedState = "F107", Lint, "a state field that nothing reads",
        "state: {count: 0}\nsteps:\n  - type: shell\n    command: make\n" => "state: {count: 0}\nsteps:\n  - type: shell\n    command: make -j{{ state.count }}\n";
    /// A task that nothing runs.
    UnusedTask = "F108", Lint, "a task that nothing runs",
        "steps:\n  - type: shell\n    command: make\ntasks:\n  each:\n    steps:\n      - type: shell\n        command: make\n" => "steps:\n  - type: foreach\n    items: [1]\n    task: each\ntasks:\n  each:\n    steps:\n      - type: shell\n        command: make\n";
    /// The workflow declares `outputs`, and this result is neither part of them nor read by
    /// anything else: it is lost when the run ends.
    UnusedOutput = "F109", Lint, "a result that nothing reads",
        "outputs: {done: \"{{ true }}\"}\nsteps:\n  - type: shell\n    command: make\n    output_to: log\n" => "outputs: {log: \"{{ state.log.stdout }}\"}\nsteps:\n  - type: shell\n    command: make\n    output_to: log\n";
    /// A sub-agent runs this task, and a sub-agent has no person to ask.
    PromptInTask = "F110", Lint, "a prompt inside a delegated task",
        "steps:\n  - type: foreach\n    items: [1]\n    agent: \"@task\"\n    task: deploy\ntasks:\n  deploy:\n    steps:\n      - type: prompt\n        kind: confirm\n        message: Deploy?\n" => "steps:\n  - type: prompt\n    kind: confirm\n    message: Deploy?\n  - type: foreach\n    items: [1]\n    agent: \"@task\"\n    task: deploy\ntasks:\n  deploy:\n    steps:\n      - type: shell\n        command: make deploy\n";
    /// Without a `timeout` the wait ends after the default of ten seconds, which is rarely what is
    /// meant.
    AwaitWithoutTimeout = "F111", Lint, "an await without a timeout",
        "initial_state: a\nstates:\n  a:\n    action: {tool: await_output, params: {pattern: ready}}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: await_output, params: {pattern: ready, timeout: 60}}\n";
    /// A loop without `max_iterations` fails the run after 100 iterations. An `on_error` that leads back to an
    /// earlier step does so every time, until `limits.max_steps`: `retry` has a bound, and so has a `goto` step.
    UnboundedLoop = "F112", Lint, "a loop without a bound",
        "state: {n: 0}\nsteps:\n  - type: while\n    if: \"{{ state.n < 3 }}\"\n    steps:\n      - type: set_state\n        updates: {n: \"{{ state.n + 1 }}\"}\n" => "state: {n: 0}\nsteps:\n  - type: while\n    if: \"{{ state.n < 3 }}\"\n    max_iterations: 10\n    steps:\n      - type: set_state\n        updates: {n: \"{{ state.n + 1 }}\"}\n";
    /// The tool is declared `idempotent: false`: calling it again may do its work twice.
    RetryNotIdempotent = "F113", Lint, "a retry of a tool that is not idempotent",
        "tools:\n  pay: {idempotent: false}\nsteps:\n  - type: mcp_call\n    tool: pay\n    retry: {attempts: 3}\n" => "tools:\n  pay: {idempotent: false}\nsteps:\n  - type: mcp_call\n    tool: pay\n";
    /// Tasks that run at the same time and share their parent's state all set the same path; the
    /// last one wins.
    ParallelWrite = "F114", Lint, "parallel tasks that set the same path",
        "state: {last: null}\nsteps:\n  - type: foreach\n    items: [1, 2]\n    task: each\n  - type: shell\n    command: echo {{ state.last }}\ntasks:\n  each:\n    shares_state: true\n    steps:\n      - type: set_state\n        updates: {last: \"{{ item }}\"}\n" => "state: {all: []}\nsteps:\n  - type: foreach\n    items: [1, 2]\n    task: each\n  - type: shell\n    command: echo {{ state.all }}\ntasks:\n  each:\n    shares_state: true\n    steps:\n      - type: set_state\n        updates: [{path: all, operation: append, value: \"{{ item }}\"}]\n";
    /// This looks like a password, token or key. Definitions are stored and shown; pass it as an
    /// input with `secret: true`.
    SecretLiteral = "F115", Lint, "a literal that looks like a secret",
        "steps:\n  - type: shell\n    command: deploy\n    env: {API_TOKEN: \"ghp_16C7e42F292c6912E7710c838347Ae178B4a\"}\n" => "inputs:\n  token: {type: string, required: true, secret: true}\nsteps:\n  - type: shell\n    command: deploy\n    env: {API_TOKEN: \"{{ inputs.token }}\"}\n";
    /// `| unquoted` puts a value into the command as it is: whoever controls the value controls
    /// the shell.
    Unquoted = "F116", Lint, "a value that is not quoted for the shell",
        "inputs: {flags: string}\nsteps:\n  - type: shell\n    command: make {{ inputs.flags | unquoted }}\n" => "inputs: {flags: array}\nsteps:\n  - type: shell\n    command: make {{ inputs.flags }}\n";
    /// The same name stands in two tiers; reading it finds computed, then raw, then state.
    ShadowedTier = "F117", Lint, "a name in two tiers",
        "state: {total: 1}\ncomputed:\n  total: {value: \"{{ 2 }}\"}\nsteps:\n  - type: shell\n    command: echo {{ state.total }}\n" => "state: {count: 1}\ncomputed:\n  total: {value: \"{{ state.count + 1 }}\"}\nsteps:\n  - type: shell\n    command: echo {{ state.total }}\n";
    /// An older spelling. It works, and means the same as the new one.
    Deprecated = "F118", Lint, "an older spelling",
        "steps:\n  - type: conditional\n    condition: \"{{ true }}\"\n    then_steps:\n      - type: shell\n        command: make\n" => "steps:\n  - type: condition\n    if: \"{{ true }}\"\n    then:\n      - type: shell\n        command: make\n";
    /// The called workflow is not known yet. It may still be found when the step runs.
    UnknownWorkflow = "F119", Lint, "a called workflow that is not known",
        "steps:\n  - type: call\n    workflow: some-other\n" => "steps:\n  - type: shell\n    command: make\n";
    /// What is typed into a terminal is read by whatever program is in front, so nothing quotes
    /// the value. `| sh` quotes it for a shell.
    TypedValue = "F120", Lint, "a value typed into a terminal unquoted",
        "inputs: {dir: string}\ninitial_state: a\nstates:\n  a:\n    action: {tool: send_input, params: {input_text: \"cd {{ inputs.dir }}\\n\"}}\n" => "inputs: {dir: string}\ninitial_state: a\nstates:\n  a:\n    action: {tool: send_input, params: {input_text: \"cd {{ inputs.dir | sh }}\\n\"}}\n";
    /// The value is quoted for the shell that reads the command, but that shell hands it to
    /// another interpreter, which reads it again: as an argument, through a pipe, or in a
    /// here-document. `trap`, `alias` and variables such as `PS1` are read again by the shell itself.
    /// What comes after the code is safe: `sh -c 'ls "$1"' sh {{ inputs.dir }}`.
    SecondInterpreter = "F121", Lint, "a value handed to a second interpreter",
        "inputs: {dir: string}\nsteps:\n  - type: shell\n    command: sh -c \"ls {{ inputs.dir }}\"\n" => "inputs: {dir: string}\nsteps:\n  - type: shell\n    command: ls {{ inputs.dir }}\n";
    /// Under `strict` every step says which state it reads.
    NeedsStateRequired = "F122", Lint, "a step without needs_state under strict", "" => "";
    /// `output_to` stores a step's result, and a step of this type has none.
    NoResult = "F123", Lint, "output_to on a step without a result",
        "steps:\n  - type: condition\n    if: \"{{ true }}\"\n    then: []\n    output_to: x\n" => "steps:\n  - type: condition\n    if: \"{{ true }}\"\n    then: []\n";
    /// No way from here leads to an end, so only a limit can stop the run.
    NeverEnds = "F124", Lint, "a loop of states that never ends",
        "initial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n    transitions:\n      - {condition: always, next_state: a}\n" => "initial_state: a\nstates:\n  a:\n    action: {tool: list_terminal_sessions}\n    transitions:\n      - {condition: success, next_state: b}\n      - {condition: always, next_state: a}\n  b:\n    action: {tool: list_terminal_sessions}\n";
    /// The key says something about a case that this step or field does not have, so it changes
    /// nothing.
    NoEffect = "F125", Lint, "a key without effect",
        "steps:\n  - type: foreach\n    items: [1, 2]\n    max_parallel: 2\n    steps:\n      - type: shell\n        command: echo {{ item }}\n" => "steps:\n  - type: foreach\n    items: [1, 2]\n    steps:\n      - type: shell\n        command: echo {{ item }}\n";
    /// `${{ … }}` is how other tools write an expression. Here the expression is `{{ … }}`, and the
    /// `$` stays in the command.
    DollarBefore = "F126", Lint, "a dollar sign before an expression",
        "inputs: {name: string}\nsteps:\n  - type: shell\n    command: echo ${{ inputs.name }}\n" => "inputs: {name: string}\nsteps:\n  - type: shell\n    command: echo {{ inputs.name }}\n";
    /// In JavaScript a name that nothing declares is undefined, so a condition on it never holds.
    UndefinedName = "F127", Lint, "a name that is always undefined",
        "expressions: js\ninputs: {count: integer}\nsteps:\n  - type: condition\n    if: \"{{ cuont > 1 }}\"\n    then:\n      - type: shell\n        command: echo {{ count }}\n" => "expressions: js\ninputs: {count: integer}\nsteps:\n  - type: condition\n    if: \"{{ count > 1 }}\"\n    then:\n      - type: shell\n        command: echo {{ count }}\n";
    /// `options` are values, shown and answered as they are. A map of a value and a label is one
    /// option as a whole: neither part of it is an answer.
    LabelledOption = "F128", Lint, "an option with a label",
        "steps:\n  - type: prompt\n    kind: choice\n    message: Which channel?\n    options:\n      - {value: stable, label: For everyone}\n      - {value: beta, label: For the brave}\n" => "steps:\n  - type: prompt\n    kind: choice\n    message: Which channel, stable for everyone or beta for the brave?\n    options: [stable, beta]\n";
}
