//! The terminal tools: sessions on real shells and programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Key, Rule, Toolset, tool};

/// Starts a program in a new terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenTerminalRequest {
    /// The program to start: a shell (`bash`, `zsh`, `fish`, `sh`) or any other program by name or
    /// path (`python3`, `psql`). A program that does not exist is an error, not a session.
    #[serde(default = "bash")]
    pub shell: String,
    /// The directory to start in. Absent: the directory the server, or the workflow's run, works
    /// in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Environment variables to add to, or replace in, the inherited environment: name to value.
    /// Numbers and booleans are set as their text.
    #[serde(default, deserialize_with = "texts")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub environment: BTreeMap<String, String>,
}

/// A terminal was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenTerminalResponse {
    /// Whether the session is open.
    pub success: bool,
    /// The session's id, to be passed to the other terminal tools; null when none was opened.
    pub session_id: Option<String>,
    /// The program that was started.
    pub shell: String,
    /// Where a person can watch the session in a browser; null when the server serves no page.
    pub web_url: Option<String>,
    /// The screen once the program has shown its prompt or fallen quiet; null when no session was
    /// opened.
    pub screen_content: Option<String>,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// Types into a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendInputRequest {
    /// The session to type into. Absent: the one that the connection opened last; in a workflow the
    /// run's own, and for a run that never had one the latest of its connection that is no other
    /// run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The text to type, exactly as given: nothing is added, escaped or interpreted. End a command
    /// with a newline, which is the key Enter, or it is not executed. Several lines are one paste
    /// to a shell: send what is for a program that a line starts in another call. Give this or `keys`.
    #[serde(default)]
    pub input_text: String,
    /// Keys to press after the text, in order: `enter`, `tab`, `escape`, `space`, `backspace`,
    /// `delete`, `insert`, `home`, `end`, `page-up`, `page-down`, `up`, `down`, `left`, `right`,
    /// `f1` to `f12`, or a single character; with `ctrl-`, `alt-` or `shift-` in front, such as
    /// `ctrl-c`.
    #[serde(default)]
    pub keys: Vec<Key>,
}

/// Something was typed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendInputResponse {
    /// Whether the input was written to the terminal. What it brings about is not waited for.
    pub success: bool,
    /// The session typed into; null when there is no such session.
    pub session_id: Option<String>,
    /// What was done, in a sentence.
    pub message: String,
    /// The screen right after the input; null when there is no such session.
    pub screen_content: Option<String>,
    /// Whether the session's program is still running.
    pub process_running: bool,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// Which part of a terminal's text is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentMode {
    /// what is visible now
    #[default]
    Screen,
    /// everything that came after the last input
    SinceInput,
    /// everything kept, scrolled-away lines included
    History,
    /// the last lines of the history
    Tail,
}

/// Reads a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetScreenContentRequest {
    /// The session to read. Absent: the one that the connection opened last; in a workflow the run's
    /// own, and for a run that never had one the latest of its connection that is no other run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Which text is wanted, always as plain text without colours and control sequences.
    #[serde(default)]
    pub content_mode: ContentMode,
    /// The most lines to answer with; of more, the last ones are given. Absent: 50 for `tail`, no
    /// limit for the other modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub line_count: Option<u32>,
    /// Where to read on: the `next_cursor` of the previous answer. Absent: from the start of what
    /// `content_mode` selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The most characters in one answer; the rest is reached with `cursor`.
    #[serde(default = "a_page")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_chars: u32,
}

/// Text of a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GetScreenContentResponse {
    /// Whether the session could be read.
    pub success: bool,
    /// The session read; null when there is no such session.
    pub session_id: Option<String>,
    /// Whether the session's program is still running.
    pub process_running: bool,
    /// The text; null when there is no such session.
    pub screen_content: Option<String>,
    /// The `cursor` for the text that follows; null when this was the last of it.
    pub next_cursor: Option<String>,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// What a pattern is searched in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AwaitTarget {
    /// the output since the last input that no earlier match has consumed, without colours,
    /// control sequences and the echo of what was typed
    #[default]
    Stream,
    /// what is visible, for full-screen programs such as editors; also what was typed, its echo,
    /// and what stood there before
    Screen,
}

/// Waits for output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwaitOutputRequest {
    /// The session to watch. Absent: the one that the connection opened last; in a workflow the run's
    /// own, and for a run that never had one the latest of its connection that is no other run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// A regular expression (Rust syntax, no look-around or back-references). `^` and `$` match at
    /// every line; `(?i)` ignores case.
    pub pattern: String,
    /// The longest to wait, in seconds.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 0.1, max = 7200.0))]
    pub timeout: f64,
    /// What the pattern is searched in.
    #[serde(default)]
    pub target: AwaitTarget,
}

/// What was, or was not, awaited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitOutputResponse {
    /// Whether the session could be watched; true on a time-out too.
    pub success: bool,
    /// The session watched; null when there is no such session.
    pub session_id: Option<String>,
    /// The text that the pattern matched; null when it did not appear in time, or the program ended
    /// without showing it.
    pub match_text: Option<String>,
    /// The screen at the end of the wait; null when there is no such session.
    pub screen_content: Option<String>,
    /// How long the wait took, in seconds.
    pub elapsed_time: f64,
    /// Whether the session's program is still running.
    pub process_running: bool,
    /// The last lines of the output when nothing matched; else null.
    pub tail: Option<String>,
    /// The program in front when nothing matched; else null.
    pub foreground: Option<String>,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// Lists the terminals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTerminalSessionsRequest {}

/// The terminals there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListTerminalSessionsResponse {
    /// Whether they could be listed.
    pub success: bool,
    /// The sessions, in the order they were opened.
    pub sessions: Vec<TerminalSession>,
    /// How many there are.
    pub total_sessions: u32,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// A terminal session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalSession {
    /// Its id.
    pub session_id: String,
    /// The program it was opened with.
    pub shell: String,
    /// Whether that program is still running.
    pub process_running: bool,
    /// The program in front, which reads what is typed; null when it is not known.
    pub foreground: Option<String>,
    /// The shell's current directory; null when it is not known.
    pub working_directory: Option<String>,
    /// The program's exit code; null while it runs, or when a signal ended it.
    pub exit_code: Option<i32>,
    /// Where a person can watch the session in a browser; null when the server serves no page.
    pub web_url: Option<String>,
    /// When it was opened, in ISO 8601.
    pub created_at: String,
}

/// Closes a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitTerminalRequest {
    /// The session to close. Absent: the one that the connection opened last; in a workflow the run's
    /// own, which it has opened or was given, and no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// A terminal was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExitTerminalResponse {
    /// Whether the session is closed and nothing it started is left running.
    pub success: bool,
    /// The session closed; null when there is no such session.
    pub session_id: Option<String>,
    /// What was done, in a sentence.
    pub message: String,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// Runs a command in a terminal's shell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCommandRequest {
    /// The session whose shell runs the command. Absent: the one that the connection opened last; in
    /// a workflow the run's own, and for a run that never had one the latest of its connection that
    /// is no other run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The command line, as one would type it; the newline that executes it is added.
    pub command: String,
    /// The longest to wait for the command to finish, in seconds. A command that takes longer goes
    /// on running.
    #[serde(default = "thirty_seconds")]
    #[schemars(range(min = 0.1, max = 7200.0))]
    pub timeout: f64,
    /// The most characters of output in the answer; of more, the last ones are given.
    #[serde(default = "a_page")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_chars: u32,
}

/// How a command ended, or why it did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// it ran to its end
    Finished,
    /// it is still running
    TimedOut,
    /// nothing was typed: another program is in front of the shell
    Busy,
    /// the shell ended with it
    ShellExited,
    /// the shell wanted more, such as a closing quote; the line was abandoned
    Incomplete,
    /// there was nothing to run, such as only a comment
    NoCommand,
    /// nothing was run: the shell cannot be given this command, `error` says why
    Refused,
}

/// A command was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunCommandResponse {
    /// Whether the command finished with exit code 0.
    pub success: bool,
    /// The session it ran in; null when there is no such session.
    pub session_id: Option<String>,
    /// How the command ended, or why it did not run; null when there is no such session.
    pub status: Option<CommandStatus>,
    /// Its exit code; null when it did not finish, or when the code is not known.
    pub exit_code: Option<i32>,
    /// What it wrote, standard output and standard error as they came, without the prompt and the
    /// echo of the command; however it ended, with the colours and control sequences it wrote.
    pub output: String,
    /// The exact bytes of the output in base64 when they are not UTF-8, so that `output` cannot
    /// hold them; else null.
    pub output_base64: Option<String>,
    /// Whether `output` lacks its beginning because of `max_chars`.
    pub truncated: bool,
    /// How long it took, in seconds.
    pub duration: f64,
    /// The shell's directory after the command; null when it is not known.
    pub working_directory: Option<String>,
    /// The program in front when the shell is not at its prompt; null when it is.
    pub foreground: Option<String>,
    /// Whether the session's shell is still running.
    pub process_running: bool,
    /// When this was answered, in ISO 8601.
    pub timestamp: String,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// A value that has an obvious text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("type" = ["string", "number", "boolean"]), transform = drop_any_of)]
enum Scalar {
    Text(String),
    Number(serde_json::Number),
    Boolean(bool),
}

/// Leaves the list of types, which says the same in fewer words.
fn drop_any_of(schema: &mut schemars::Schema) {
    schema.remove("anyOf");
    schema.remove("description");
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let scalars = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
    let text = |scalar| match scalar {
        Scalar::Text(text) => text,
        Scalar::Number(number) => number.to_string(),
        Scalar::Boolean(value) => value.to_string(),
    };
    Ok(scalars
        .into_iter()
        .map(|(name, scalar)| (name, text(scalar)))
        .collect())
}

fn bash() -> String {
    "bash".to_owned()
}

fn ten_seconds() -> f64 {
    10.0
}

fn thirty_seconds() -> f64 {
    30.0
}

/// Clients spill answers of about 50,000 characters to a file; a page stays well below.
fn a_page() -> u32 {
    20_000
}

tool! {
OPEN_TERMINAL: OpenTerminalRequest => OpenTerminalResponse {
    name: "open_terminal",
    title: "Open a terminal",
    description: "Opens a terminal session with a shell or any other interactive program and \
        answers its session_id and first screen. The session keeps its directory, variables and \
        running programs between calls until exit_terminal.",
    toolset: Toolset::Terminal,
    read_only: false,
    destructive: false,
    idempotent: false,
    times_itself: false,
    rules: &[],
}
}

tool! {
SEND_INPUT: SendInputRequest => SendInputResponse {
    name: "send_input",
    title: "Type into a terminal",
    description: "Types text into a terminal session, exactly as given, and then presses named \
        keys. Does not wait for what it brings about: follow it with await_output. For a shell \
        command whose output and exit code are wanted, run_command does both at once.",
    toolset: Toolset::Terminal,
    read_only: false,
    destructive: true,
    idempotent: false,
    times_itself: false,
    rules: &[
        Rule::AtLeastOne(&["input_text", "keys"]),
        Rule::Keys("keys"),
        Rule::Typed("input_text"),
    ],
}
}

tool! {
GET_SCREEN_CONTENT: GetScreenContentRequest => GetScreenContentResponse {
    name: "get_screen_content",
    title: "Read a terminal",
    description: "Reads the text of a terminal session: the visible screen, everything since the \
        last input, the whole history or its last lines. Long texts come in pages.",
    toolset: Toolset::Terminal,
    read_only: true,
    destructive: false,
    idempotent: true,
    times_itself: false,
    rules: &[],
}
}

tool! {
AWAIT_OUTPUT: AwaitOutputRequest => AwaitOutputResponse {
    name: "await_output",
    title: "Wait for terminal output",
    description: "Waits until a regular expression matches new output of a terminal session and \
        answers at once when it does. Never matches the typed command itself, nor output that an \
        earlier match consumed. A time-out is not an error: match_text is then null.",
    toolset: Toolset::Terminal,
    // A match is consumed, so that the next wait starts after it.
    read_only: false,
    destructive: false,
    idempotent: false,
    times_itself: true,
    rules: &[Rule::Pattern("pattern")],
}
}

tool! {
LIST_TERMINAL_SESSIONS: ListTerminalSessionsRequest => ListTerminalSessionsResponse {
    name: "list_terminal_sessions",
    title: "List terminals",
    description: "Lists the terminal sessions with their program, what is in front in each, and \
        whether it is still running.",
    toolset: Toolset::Terminal,
    read_only: true,
    destructive: false,
    idempotent: true,
    times_itself: false,
    rules: &[],
}
}

tool! {
EXIT_TERMINAL: ExitTerminalRequest => ExitTerminalResponse {
    name: "exit_terminal",
    title: "Close a terminal",
    description: "Closes a terminal session: asks its programs to end, then kills whatever is \
        left, so that nothing it started goes on running.",
    toolset: Toolset::Terminal,
    read_only: false,
    destructive: true,
    // Without a session_id every call closes another session.
    idempotent: false,
    times_itself: false,
    rules: &[],
}
}

tool! {
RUN_COMMAND: RunCommandRequest => RunCommandResponse {
    name: "run_command",
    title: "Run a command in a terminal",
    description: "Types a command into the shell of a terminal session, waits for it to finish and \
        answers its exact output, exit code and duration. Says so when another program is in \
        front, the shell exited, or the command is incomplete.",
    toolset: Toolset::Terminal,
    read_only: false,
    destructive: true,
    idempotent: false,
    times_itself: true,
    rules: &[Rule::Command("command")],
}
}
