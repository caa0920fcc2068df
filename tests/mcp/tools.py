"""Every tool that is served, once well and once badly."""

from harness import call, expect, refused

WORK = """\
name: work
description: Asks a tool, then for a name
inputs: {n: {type: integer, required: true}}
tools: {check: {}}
state: {seen: []}
computed: {count: {from: seen, transform: input.length}}
steps:
  - {id: ask, type: mcp_call, tool: check, parameters: {n: "{{ inputs.n }}"}, output_to: seen}
  - {id: name, type: prompt, kind: text, message: Who?, output_to: name}
outputs: {count: "{{ state.count }}"}
"""
HELLO = "name: hello\ninputs: {who: {type: string, default: you}}\nsteps: [{id: greet, type: shell, command: echo hello}]\n"
MADE = {"name": "made", "steps": [{"type": "shell", "command": "make"}]}

# Each tool with arguments that are right, what the answer has, arguments that are wrong, and what the
# refusal names. Words with a `$` are what an answer before had in that field.
CASES = [
    ("open_terminal", {"shell": "bash"}, {"success": True}, {"shel": "bash"}, "shell"),
    ("list_terminal_sessions", {}, {"total_sessions": 1}, {"all": True}, "all"),
    ("send_input", {"session_id": "$session_id", "input_text": "echo a$((1+1))b\n"}, {"success": True},
     {"session_id": "$session_id"}, "input_text"),
    ("await_output", {"session_id": "$session_id", "pattern": "a2b", "timeout": 300}, {"match_text": "a2b"},
     {"session_id": "$session_id", "pattern": "("}, "pattern"),
    ("get_screen_content", {"session_id": "$session_id"}, {"success": True},
     {"session_id": "$session_id", "content_mode": "al"}, "content_mode"),
    ("run_command", {"session_id": "$session_id", "command": "exit_code=0"}, {"exit_code": 0},
     {"session_id": "$session_id", "command": "true", "timeout": "long"}, "timeout"),
    ("exit_terminal", {"session_id": "$session_id"}, {"success": True}, {"session_id": 5}, "session_id"),
    ("flow", {"flow_name": "hello"}, {"status": "completed"}, {"flow_name": "hello", "parameters": {"whom": "me"}}, "whom"),
    ("run_workflow", {"workflow_name": "hello"}, {"success": True}, {"workflow_name": "hello", "max_states": 0}, "max_states"),
    ("create_workflow", {"workflow_definition": MADE}, {"success": True, "workflow_name": "made"}, {}, "workflow_definition"),
    ("list_workflows", {"include_global": False}, {"total": 3}, {"global": False}, "global"),
    ("get_workflow_info", {"workflow": "made"}, {"name": "made"}, {"workflow": "maid"}, "maid"),
    ("get_workflow_definition", {"workflow": "made"}, {"definition": MADE}, {"workflow": "maid"}, "maid"),
    ("delete_workflow", {"workflow_name": "made"}, {"success": True}, {"workflow": "made"}, "workflow_name"),
    ("get_workflow_schema", {}, {}, {"version": 1}, "version"),
    ("save_to_memory", {"key": "k", "value": [1]}, {"success": True}, {"key": "", "value": 1}, "key"),
    ("load_from_memory", {"key": "k"}, {"value": [1]}, {"key": 1}, "key"),
    ("list_memory_keys", {"prefix": "k"}, {"keys": ["k"]}, {"prefix": ["k"]}, "prefix"),
    ("agent", {"agent_name": "critic"}, {"success": True, "text": "You criticise.\n"},
     {"agent_name": "critic", "parameters": "all"}, "parameters"),
    ("prompt", {"prompt_name": "review", "parameters": {"branch": "b"}}, {"text": "Review b.\n"},
     {"prompt_name": "review"}, "branch"),
    ("explain_workflow", {"workflow": "work", "inputs": {"n": 1}}, {"required_tools": ["check"]},
     {"workflow": "work", "inputs": {"n": "one"}}, "n"),
    ("test_transformation", {"transform": "input + 1", "input": 1}, {"output": 2}, {"input": 1}, "transform"),
    ("start_workflow", {"workflow": "work", "inputs": {"n": 1}}, {"status": "waiting"},
     {"workflow_name": "work", "inputs": {"n": 1}}, "workflow"),
    ("get_next_step", {"workflow_id": "$workflow_id"}, {"status": "waiting"},
     {"workflow_id": "$workflow_id", "task_id": "none.0"}, "none.0"),
    ("submit_step_result", {"workflow_id": "$workflow_id", "step_id": "ask", "result": [1, 2]}, {"status": "waiting"},
     {"workflow_id": "$workflow_id", "step_id": "other", "result": 1}, "ask"),
    ("get_workflow_status", {"workflow_id": "$workflow_id"}, {"status": "waiting"}, {"workflow_id": "r-none"}, "workflow_id"),
    ("list_runs", {"workflow": "work", "limit": 200}, {"has_more": False}, {"status": "done"}, "status"),
    ("get_workflow_state", {"workflow_id": "$workflow_id", "paths": ["seen"]}, {"state": {"seen": [1, 2]}, "computed_errors": {}},
     {"workflow_id": "$workflow_id", "paths": "seen"}, "paths"),
    ("update_workflow_state", {"workflow_id": "$workflow_id", "updates": [
        {"path": "seen", "operation": "append", "value": 3}, {"path": "raw.gone", "value": None},
        {"path": "raw.left", "operation": "increment"}]},
     {"computed": {"count": 3}}, {"workflow_id": "$workflow_id", "updates": [{"path": "raw.gone"}]}, "updates[0].value"),
    ("get_state_dependencies", {"workflow_id": "$workflow_id", "field": "count"}, {"direct_deps": ["raw.seen"]},
     {"workflow_id": "$workflow_id", "field": "cont"}, "count"),
    ("trace_transformations", {"workflow_id": "$workflow_id", "field": "count"}, {},
     {"workflow_id": "$workflow_id", "field": 1}, "field"),
    ("debug_workflow", {"workflow_id": "$workflow_id"}, {}, {"workflow": "$workflow_id"}, "workflow_id"),
    ("checkpoint_workflow", {"workflow_id": "$workflow_id", "reason": "enough"}, {"success": True},
     {"workflow_id": "$workflow_id", "step_id": "nowhere", "reason": "enough"}, "nowhere"),
    ("resume_workflow", {"workflow_id": "$workflow_id"}, {"status": "waiting"}, {"workflow_id": "r-none"}, "workflow_id"),
    ("submit_result", {"workflow_id": "$workflow_id", "result": "Ann"}, {"status": "completed", "output": {"count": 3}},
     {"workflow_id": "$workflow_id", "result": 1, "status": "good"}, "status"),
    ("complete_workflow", {"workflow_id": "$workflow_id", "status": "success"}, {"success": True, "status": "completed"},
     {"workflow_id": "$workflow_id", "status": "done"}, "status"),
]


async def every_tool_is_called_once_well_and_once_badly(place):
    place.workflow("work", WORK)
    place.workflow("hello", HELLO)
    place.write(".flow/agents/critic.md", "---\ndescription: Criticises\n---\nYou criticise.\n")
    arguments = "arguments:\n  branch: {type: string, required: true}\n"
    place.write(".flow/prompts/review.md", f"---\n{arguments}---\nReview {{{{ branch }}}}.\n")

    async def case(client):
        served = {tool.name for tool in (await client.list_tools()).tools}
        tried = [tool for tool, *_ in CASES]
        assert sorted(tried) == sorted(served), (served - set(tried), set(tried) - served)
        last = {}

        def meant(arguments):
            return {name: last[value[1:]] if isinstance(value, str) and value.startswith("$") else value
                    for name, value in arguments.items()}

        for tool, good, has, bad, named in CASES:
            if "$workflow_id" not in good.values() and "$session_id" not in good.values():
                answer = await call(client, tool, meant(good))
                last.update({key: answer[key] for key in ("session_id", "workflow_id") if answer.get(key)})
                reason = await refused(client, tool, meant(bad))
            else:
                # A refused call changes nothing, so the right one still finds what it wants.
                reason = await refused(client, tool, meant(bad))
                answer = await call(client, tool, meant(good))
            expect(answer, **has)
            assert f"`{named}`" in reason, (tool, reason)

    await place.every_way(case)
