//! The registry against the contract of the interfaces.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// Tool, parameters, fields of the result.
const CONTRACT: &[(&str, &[&str], &[&str])] = &[
    (
        "open_terminal",
        &["shell", "working_directory", "environment"],
        &[
            "success",
            "session_id",
            "shell",
            "web_url",
            "screen_content",
            "timestamp",
            "error",
        ],
    ),
    (
        "send_input",
        &["session_id", "input_text", "keys"],
        &[
            "success",
            "session_id",
            "message",
            "screen_content",
            "process_running",
            "timestamp",
            "error",
        ],
    ),
    (
        "get_screen_content",
        &[
            "session_id",
            "content_mode",
            "line_count",
            "cursor",
            "max_chars",
        ],
        &[
            "success",
            "session_id",
            "process_running",
            "screen_content",
            "timestamp",
            "error",
        ],
    ),
    (
        "await_output",
        &["session_id", "pattern", "timeout", "target"],
        &[
            "success",
            "session_id",
            "match_text",
            "screen_content",
            "elapsed_time",
            "timestamp",
            "error",
        ],
    ),
    (
        "list_terminal_sessions",
        &[],
        &["success", "sessions", "total_sessions"],
    ),
    (
        "exit_terminal",
        &["session_id"],
        &["success", "session_id", "message"],
    ),
    (
        "run_command",
        &["session_id", "command", "timeout", "max_chars"],
        &["success", "exit_code", "output", "duration"],
    ),
    (
        "run_workflow",
        &[
            "workflow_name",
            "workflow_definition",
            "session_id",
            "initial_variables",
            "inputs",
            "max_states",
            "execution_timeout",
            "save_on_success",
            "wait_seconds",
        ],
        &[
            "success",
            "status",
            "workflow_name",
            "workflow_id",
            "session_id",
            "final_state",
            "states_executed",
            "total_elapsed_time",
            "workflow_signature",
            "execution_log",
            "final_variables",
            "workflow_saved",
            "saved_workflow_name",
            "available_workflows",
            "recursion_depth",
            "pending",
            "error",
        ],
    ),
];

fn tool(name: &str) -> &'static Tool {
    find(name).expect("a tool")
}

fn property(tool_name: &str, parameter: &str) -> &'static Value {
    &tool(tool_name).input_schema()["properties"][parameter]
}

/// The only fault of literal parameters.
fn only_fault(tool_name: &str, params: Value) -> ParameterFault {
    let mut faults = check(tool(tool_name), &params);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    faults.remove(0)
}

#[test]
fn every_tool_has_the_parameters_and_result_fields_of_the_contract() {
    let names: Vec<_> = all().iter().map(|tool| tool.name).collect();
    let contract: Vec<_> = CONTRACT.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, contract);
    for (name, parameters, fields) in CONTRACT {
        let tool = tool(name);
        let named: Vec<_> = tool.parameters().iter().map(|known| &*known.name).collect();
        assert_eq!(named, *parameters, "{name}");
        for field in *fields {
            assert!(tool.has_result_field(field), "{name}.{field}");
        }
    }
}

#[test]
fn the_schema_carries_the_defaults_of_the_contract() {
    for (tool, parameter, default) in [
        ("open_terminal", "shell", json!("bash")),
        ("get_screen_content", "content_mode", json!("screen")),
        ("await_output", "timeout", json!(10.0)),
        ("await_output", "target", json!("stream")),
        ("run_workflow", "max_states", json!(100)),
        ("run_workflow", "execution_timeout", json!(1800.0)),
        ("run_workflow", "save_on_success", json!(true)),
        ("run_workflow", "wait_seconds", json!(50.0)),
    ] {
        assert_eq!(
            property(tool, parameter)["default"],
            default,
            "{tool}.{parameter}"
        );
    }
}

#[test]
fn the_schema_carries_the_ranges_of_the_contract() {
    for (tool, parameter, minimum, maximum) in [
        ("await_output", "timeout", 0.1, 7200.0),
        ("run_command", "timeout", 0.1, 7200.0),
        ("run_workflow", "max_states", 1.0, 1000.0),
        ("run_workflow", "execution_timeout", 1.0, 7200.0),
    ] {
        let property = property(tool, parameter);
        assert_eq!(
            property["minimum"].as_f64(),
            Some(minimum),
            "{tool}.{parameter}"
        );
        assert_eq!(
            property["maximum"].as_f64(),
            Some(maximum),
            "{tool}.{parameter}"
        );
    }
    assert_eq!(
        property("get_screen_content", "content_mode")["enum"],
        json!(["screen", "since_input", "history", "tail"])
    );
}

#[test]
fn schemas_stand_alone_and_describe_every_property() {
    for tool in all() {
        let input = tool.input_schema();
        assert_eq!(input["additionalProperties"], json!(false), "{}", tool.name);
        for schema in [input, tool.output_schema()] {
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert!(!schema.to_string().contains("$ref"), "{}", tool.name);
            for refused in ["oneOf", "anyOf", "allOf"] {
                assert!(schema.get(refused).is_none(), "{}: {refused}", tool.name);
            }
            for (name, property) in schema["properties"].as_object().expect("properties") {
                assert!(property["description"].is_string(), "{}.{name}", tool.name);
            }
        }
        assert!(
            tool.parameter("session_id")
                .is_none_or(|session| !session.required && session.description.contains("Absent:")),
            "{}",
            tool.name
        );
    }
}

#[test]
fn only_what_the_contract_demands_is_required() {
    let required: Vec<_> = all()
        .iter()
        .flat_map(|tool| {
            tool.parameters()
                .iter()
                .map(move |known| (tool.name, known))
        })
        .filter(|(_, parameter)| parameter.required)
        .map(|(tool, parameter)| (tool, &*parameter.name))
        .collect();
    assert_eq!(
        required,
        [("await_output", "pattern"), ("run_command", "command")]
    );
}

#[test]
fn tools_with_a_limit_of_their_own_say_so() {
    let timed: Vec<_> = all().iter().filter(|tool| tool.times_itself).collect();
    let names: Vec<_> = timed.iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["await_output", "run_command", "run_workflow"]);
}

#[test]
fn a_request_type_finds_its_own_tool() {
    fn named<R: Request>() -> &'static str {
        R::tool().name
    }
    let names = [
        named::<OpenTerminalRequest>(),
        named::<SendInputRequest>(),
        named::<GetScreenContentRequest>(),
        named::<AwaitOutputRequest>(),
        named::<ListTerminalSessionsRequest>(),
        named::<ExitTerminalRequest>(),
        named::<RunCommandRequest>(),
        named::<RunWorkflowRequest>(),
    ];
    assert!(names.iter().eq(all().iter().map(|tool| &tool.name)));
}

#[test]
fn a_request_reads_with_its_defaults_and_writes_back_equal() {
    fn round_trip<R: Request + PartialEq + std::fmt::Debug>(params: Value) -> R {
        let read: R = request(params).expect("valid");
        let written = serde_json::to_value(&read).expect("it serialises");
        assert_eq!(request::<R>(written).expect("valid"), read);
        read
    }
    let open: OpenTerminalRequest = round_trip(json!({"environment": {"PORT": 8080, "CI": true}}));
    assert_eq!(open.shell, "bash");
    assert_eq!(open.environment["PORT"], "8080");
    assert_eq!(open.environment["CI"], "true");
    let send: SendInputRequest = round_trip(json!({"keys": ["ctrl-c", "enter"]}));
    assert_eq!((send.input_text.as_str(), send.keys.len()), ("", 2));
    let text: SendInputRequest = round_trip(json!({"input_text": "ctrl-c {\"enter\"}\\n"}));
    assert_eq!(text.input_text, "ctrl-c {\"enter\"}\\n");
    let read: GetScreenContentRequest = round_trip(json!({"content_mode": "tail"}));
    assert_eq!((read.line_count, read.max_chars), (None, 20_000));
    let wait: AwaitOutputRequest = round_trip(json!({"pattern": "ready"}));
    assert_eq!((wait.timeout, wait.target), (10.0, AwaitTarget::Stream));
    round_trip::<ListTerminalSessionsRequest>(Value::Null);
    round_trip::<ExitTerminalRequest>(json!({}));
    let command: RunCommandRequest = round_trip(json!({"command": "true", "timeout": 5}));
    assert_eq!(command.timeout, 5.0);
    let run: RunWorkflowRequest = round_trip(json!({"workflow_name": "deploy"}));
    assert_eq!((run.max_states, run.execution_timeout), (None, 1800.0));
    assert!(run.save_on_success && run.inputs.is_empty());
    assert_eq!(run.wait_seconds, 50.0);
    round_trip::<RunWorkflowRequest>(json!({"workflow_definition": {"name": "x"}}));
}

#[test]
fn null_is_absent_and_a_whole_float_is_an_integer() {
    let run: RunWorkflowRequest = request(json!({
        "workflow_name": "deploy",
        "workflow_definition": null,
        "max_states": 7.0,
        "save_on_success": null,
    }))
    .expect("valid");
    assert_eq!((run.max_states, run.save_on_success), (Some(7), true));
    assert_eq!(
        only_fault("await_output", json!({"pattern": null})).kind,
        FaultKind::Missing
    );
}

#[test]
fn a_refused_request_names_every_fault() {
    let refused = request::<RunWorkflowRequest>(json!({"max_states": 0, "inputs": []}))
        .expect_err("three faults");
    assert_eq!(refused.tool, "run_workflow");
    assert_eq!(
        refused.to_string(),
        "`max_states` of `run_workflow` must be from 1 to 1000, not 0\n\
         `inputs` of `run_workflow` must be an object, not an array\n\
         `run_workflow` needs `workflow_name` or `workflow_definition`"
    );
}

#[test]
fn an_unknown_parameter_suggests_the_nearest() {
    let fault = only_fault("await_output", json!({"pattern": "x", "timout": 3}));
    assert_eq!(fault.parameter, "timout");
    assert_eq!(
        fault.kind,
        FaultKind::Unknown {
            suggestion: Some("timeout".to_owned())
        }
    );
    assert_eq!(fault.message, "`await_output` has no parameter `timout`");
    assert_eq!(fault.help.as_deref(), Some("did you mean `timeout`?"));
    let fault = only_fault("send_input", json!({"keys": [], "text": "ls\n"}));
    assert_eq!(fault.help.as_deref(), Some("did you mean `input_text`?"));
    let fault = only_fault("open_terminal", json!({"cwd": "/tmp"}));
    assert_eq!(
        fault.help.as_deref(),
        Some("did you mean `working_directory`?")
    );
    let fault = only_fault("exit_terminal", json!({"force": true}));
    assert_eq!(fault.help.as_deref(), Some("it takes `session_id`"));
    let fault = only_fault("list_terminal_sessions", json!({"all": true}));
    assert_eq!(fault.help.as_deref(), Some("it takes none"));
}

#[test]
fn a_required_parameter_is_missing_but_a_session_never_is() {
    let fault = only_fault("run_command", json!({}));
    assert_eq!(
        (fault.parameter.as_str(), &fault.kind),
        ("command", &FaultKind::Missing)
    );
    assert_eq!(fault.message, "`run_command` needs `command`");
    assert_eq!(check(tool("exit_terminal"), &json!({})), []);
}

#[test]
fn input_is_text_or_keys() {
    let fault = only_fault("send_input", json!({"session_id": "s"}));
    assert_eq!(fault.parameter, "input_text");
    assert_eq!(fault.message, "`send_input` needs `input_text` or `keys`");
    assert_eq!(
        check(
            tool("send_input"),
            &json!({"input_text": "y", "keys": ["enter"]})
        ),
        []
    );
}

#[test]
fn a_workflow_is_given_by_name_or_by_definition() {
    let fault = only_fault("run_workflow", json!({"inputs": {}}));
    assert_eq!(
        (fault.parameter.as_str(), &fault.kind),
        ("workflow_name", &FaultKind::Missing)
    );
    let fault = only_fault(
        "run_workflow",
        json!({"workflow_definition": {}, "workflow_name": "deploy"}),
    );
    assert_eq!(fault.parameter, "workflow_name");
    let with = "workflow_definition".to_owned();
    assert_eq!(fault.kind, FaultKind::Conflict { with });
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_the_one_that_would_fit() {
    let fault = only_fault("await_output", json!({"pattern": "x", "timeout": "10"}));
    assert_eq!(
        fault.kind,
        FaultKind::WrongType {
            expected: vec![crate::graph::Type::Number],
            found: "a string",
            suggestion: Some("10".to_owned()),
        }
    );
    assert_eq!(
        fault.message,
        "`timeout` of `await_output` must be a number, not a string"
    );
    assert_eq!(fault.help.as_deref(), Some("write `10`"));
    let fault = only_fault("run_command", json!({"command": 7}));
    assert_eq!(fault.help.as_deref(), Some("write `\"7\"`"));
    let fault = only_fault("get_screen_content", json!({"line_count": 2.5}));
    assert_eq!(
        fault.message,
        "`line_count` of `get_screen_content` must be an integer, not a number"
    );
    let fault = only_fault("open_terminal", json!({"environment": {"A": "", "B": [1]}}));
    assert_eq!(fault.path, [Segment::Key("B".to_owned())]);
    assert_eq!(
        fault.message,
        "`environment.B` of `open_terminal` must be a string or a number or a boolean, not an array"
    );
    let fault = only_fault("open_terminal", json!(["bash"]));
    assert_eq!(
        fault.message,
        "the parameters of `open_terminal` must be an object, not an array"
    );
}

#[test]
fn a_number_out_of_range_is_told_with_the_range() {
    let fault = only_fault("await_output", json!({"pattern": "x", "timeout": 0}));
    assert_eq!(
        fault.kind,
        FaultKind::OutOfRange {
            minimum: Some(0.1),
            maximum: Some(7200.0),
            found: 0.0
        }
    );
    let fault = only_fault(
        "run_workflow",
        json!({"workflow_name": "x", "max_states": 1001}),
    );
    assert_eq!(
        fault.message,
        "`max_states` of `run_workflow` must be from 1 to 1000, not 1001"
    );
}

#[test]
fn a_word_that_is_not_allowed_suggests_the_nearest() {
    let fault = only_fault("get_screen_content", json!({"content_mode": "since_imput"}));
    let FaultKind::NotOneOf {
        allowed,
        suggestion,
        ..
    } = &fault.kind
    else {
        panic!("{fault:?}")
    };
    assert_eq!(allowed.len(), 4);
    assert_eq!(suggestion.as_deref(), Some("since_input"));
    let fault = only_fault("await_output", json!({"pattern": "x", "target": "both"}));
    assert_eq!(
        fault.help.as_deref(),
        Some("it can be `stream` or `screen`")
    );
}

#[test]
fn a_key_as_editors_write_it_or_mistyped_is_understood() {
    for (written, meant) in [
        ("C-c", "ctrl-c"),
        ("<C-d>", "ctrl-d"),
        ("^Z", "ctrl-z"),
        ("crtl-c", "ctrl-c"),
        ("M-x", "alt-x"),
        ("S-tab", "shift-tab"),
        ("ctrl-entr", "ctrl-enter"),
        ("<Entr>", "enter"),
    ] {
        let fault = only_fault("send_input", json!({"keys": [written]}));
        let told = format!("did you mean `{meant}`?");
        assert_eq!(fault.help, Some(told), "{written}");
    }
    let fault = only_fault("send_input", json!({"keys": ["make test"]}));
    let help = fault.help.unwrap_or_default();
    for told in ["`ctrl-`", "`enter`", "one character", "`input_text`"] {
        assert!(help.contains(told), "{help}");
    }
}

#[test]
fn one_thing_where_a_list_is_wanted_is_shown_as_a_list_of_it() {
    let fault = only_fault("send_input", json!({"keys": "enter"}));
    assert_eq!(fault.help.as_deref(), Some("write `[\"enter\"]`"));
    // What is no item is no list of it.
    let fault = only_fault("send_input", json!({"keys": 5}));
    assert_eq!(fault.help, None);
}

#[test]
fn a_key_that_does_not_exist_is_found_in_its_list() {
    let fault = only_fault("send_input", json!({"keys": ["ctrl-c", "entr"]}));
    assert_eq!(fault.path, [Segment::Index(1)]);
    assert_eq!(
        fault.message,
        "`keys[1]` of `send_input` names no key: `entr`"
    );
    assert_eq!(fault.help.as_deref(), Some("did you mean `enter`?"));
}

#[test]
fn a_pattern_must_be_a_regular_expression() {
    let fault = only_fault("await_output", json!({"pattern": "("}));
    assert!(matches!(fault.kind, FaultKind::InvalidPattern { .. }));
    assert_eq!(
        fault.message,
        "`pattern` of `await_output` is not a regular expression: unclosed group"
    );
}

#[test]
fn what_only_a_run_will_tell_is_taken_to_fit() {
    assert_eq!(
        check_parameters(
            tool("await_output"),
            &[("pattern", None), ("timeout", None)]
        ),
        []
    );
    let name = json!("deploy");
    assert_eq!(
        check_parameters(
            tool("run_workflow"),
            &[
                ("workflow_name", Some(&name)),
                ("workflow_definition", None)
            ]
        ),
        []
    );
    let faults = check_parameters(tool("run_command"), &[("comand", None)]);
    let parameters: Vec<_> = faults.iter().map(|fault| &*fault.parameter).collect();
    assert_eq!(parameters, ["comand"]);
}

#[test]
fn a_response_says_null_where_it_has_nothing() {
    fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        response: T,
    ) -> Value {
        let written = serde_json::to_value(&response).expect("it serialises");
        let read: T = serde_json::from_value(written.clone()).expect("it reads back");
        assert_eq!(read, response);
        written
    }
    let written = round_trip(AwaitOutputResponse {
        success: true,
        session_id: Some("s1".to_owned()),
        match_text: None,
        screen_content: Some("$ ".to_owned()),
        elapsed_time: 10.0,
        process_running: true,
        tail: Some(String::new()),
        foreground: None,
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        error: None,
    });
    assert_eq!(written.get("match_text"), Some(&Value::Null));
    let required = tool("await_output").output_schema()["required"].clone();
    for field in required.as_array().expect("a list") {
        let field = field.as_str().expect("a name");
        assert!(written.get(field).is_some(), "{field}");
    }
    let written = round_trip(LogEntry::Error {
        error: "no".to_owned(),
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
    });
    assert_eq!(written["phase"], "error");
}

#[test]
fn a_fault_inside_an_object_says_where_it_is() {
    let told = |updates: Value| {
        let params = json!({"workflow_id": "r", "updates": updates});
        let refused = request::<UpdateWorkflowStateRequest>(params);
        refused.map_err(|refused| refused.to_string())
    };
    let wrong = [
        (
            json!([{"path": "a"}, {"path": "a", "operation": "incr"}]),
            "`updates[1].operation` of `update_workflow_state` cannot be `incr`: \
             it can be `set`, `append`, `increment` or `merge`",
        ),
        (
            json!([{"path": "a", "operation": "x"}]),
            "`updates[0].operation` of `update_workflow_state` cannot be `x`: \
             it can be `set`, `append`, `increment` or `merge`",
        ),
        (
            json!([{"pth": "a", "value": 1}]),
            "`updates[0]` of `update_workflow_state` has no `pth`: did you mean `path`?",
        ),
        (
            json!([{"path": 5}]),
            "`updates[0].path` of `update_workflow_state` must be a string, not an integer: write `\"5\"`",
        ),
        (
            json!([{"value": 1}]),
            "`updates[0]` of `update_workflow_state` needs `path`",
        ),
        (
            json!([{"path": "a", "zzzz": 1}]),
            "`updates[0]` of `update_workflow_state` has no `zzzz`: it takes `path`, `operation` and `value`",
        ),
    ];
    for (updates, message) in wrong {
        assert_eq!(told(updates), Err(message.to_owned()));
    }
    assert!(told(json!([{"path": "a", "value": null}])).is_ok());
}

#[test]
fn the_registry_says_who_reads_the_text_of_a_parameter() {
    let readers: Vec<_> = all()
        .iter()
        .flat_map(|tool| tool.parameters().iter().map(move |it| (tool, &*it.name)))
        .map(|(tool, name)| (tool.name, name, tool.reader(name)))
        .filter(|(_, _, reader)| *reader != Reader::Tool)
        .collect();
    assert_eq!(
        readers,
        [
            ("send_input", "input_text", Reader::Program),
            ("await_output", "pattern", Reader::Pattern),
            ("run_command", "command", Reader::Shell),
            ("run_workflow", "workflow_definition", Reader::Run),
        ]
    );
}
