"""The terminal toolset: every tool once well and once badly."""

import asyncio
import json

from harness import call, expect, refused
from transports import gone, until


async def a_terminal_is_opened_used_and_closed(place):
    async def case(client):
        opened = await call(client, "open_terminal", {"shell": "bash", "environment": {"GREETING": "hi"}})
        expect(opened, success=True, shell="bash", error=None)
        session = opened["session_id"]
        ran = await call(client, "run_command", {"session_id": session, "command": "echo $GREETING; exit_code() { return 3; }; exit_code"})
        expect(ran, success=False, status="finished", exit_code=3, output="hi\n")
        assert ran["duration"] >= 0
        sent = await call(client, "send_input", {"session_id": session, "input_text": "read name; echo \"<$name>\"\n"})
        expect(sent, success=True, process_running=True)
        await call(client, "send_input", {"session_id": session, "input_text": "Ann\n"})
        awaited = await call(client, "await_output", {"session_id": session, "pattern": "<.*>", "timeout": 300})
        expect(awaited, success=True, match_text="<Ann>")
        none = await call(client, "await_output", {"session_id": session, "pattern": "never", "timeout": 0.1})
        expect(none, success=True, match_text=None)
        for mode in ("screen", "since_input", "history", "tail"):
            shown = await call(client, "get_screen_content", {"session_id": session, "content_mode": mode})
            expect(shown, success=True, process_running=True)
            assert "<Ann>" in shown["screen_content"], (mode, shown)
        listed = await call(client, "list_terminal_sessions")
        assert session in [one["session_id"] for one in listed["sessions"]]
        assert listed["total_sessions"] == len(listed["sessions"])
        closed = await call(client, "exit_terminal", {"session_id": session})
        expect(closed, success=True, session_id=session)
        lost = await call(client, "run_command", {"session_id": session, "command": "true"})
        assert not lost["success"] and session in lost["error"], lost

    await place.every_way(case)


async def bad_arguments_name_themselves(place):
    async def case(client):
        for tool, arguments, named in (
            ("open_terminal", {"shel": "bash"}, "`shell`"),
            ("send_input", {}, "`input_text`"),
            ("get_screen_content", {"content_mode": "scren"}, "`screen`"),
            ("await_output", {"pattern": "("}, "`pattern`"),
            ("await_output", {"pattern": "x", "timeout": "5"}, "`timeout`"),
            ("list_terminal_sessions", {"x": 1}, "`x`"),
            ("exit_terminal", {"session_id": 5}, "`session_id`"),
            ("run_command", {}, "`command`"),
        ):
            reason = await refused(client, tool, arguments)
            assert named in reason, (tool, reason)
        missing = await call(client, "open_terminal", {"shell": "no-such-program"})
        assert not missing["success"] and "no-such-program" in missing["error"], missing

    await place.every_way(case)


async def a_wait_that_is_given_up_consumes_nothing(place):
    async def case(client):
        await call(client, "open_terminal", {"shell": "bash"})
        waiting = asyncio.create_task(client.call_tool("await_output", {"pattern": "needle", "timeout": 60}))
        # Another call in between: the one before has reached the server then.
        await call(client, "list_terminal_sessions")
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            pass
        await call(client, "list_terminal_sessions")
        await call(client, "send_input", {"input_text": "echo nee''dle\n"})
        found = await call(client, "await_output", {"pattern": "needle", "timeout": 300})
        expect(found, match_text="needle")
        await call(client, "exit_terminal", {})

    await place.every_way(case)


async def nothing_is_left_when_the_client_goes(place):
    for transport in ("stdio", "http"):
        async with place.connect(transport) as client:
            await call(client, "open_terminal", {"shell": "bash"})
            ran = await call(client, "run_command", {"command": "sleep 1000 & echo $!"})
            child = int(ran["output"].split()[-1])
            assert not gone(child)
        await until(lambda: gone(child))


async def workflows_use_the_terminals_of_the_agent(place):
    place.workflow("type", """\
initial_state: type
states:
  type:
    action: {tool: send_input, params: {input_text: "echo do''ne\\n"}}
    transitions: [{condition: success, next_state: wait}]
  wait:
    action: {tool: await_output, params: {pattern: "done", timeout: 300}}
    transitions: [{condition: success, next_state: end}]
  end:
    action: {tool: get_screen_content}
""")

    async def case(client):
        opened = await call(client, "open_terminal", {"shell": "bash"})
        session = opened["session_id"]
        ran = await call(client, "run_workflow", {"workflow_name": "type", "session_id": session})
        expect(ran, success=True, final_state="end", states_executed=3, session_id=session)
        shown = await call(client, "get_screen_content", {"session_id": session})
        assert "done" in shown["screen_content"]
        await call(client, "exit_terminal", {"session_id": session})

    await place.every_way(case)


async def a_contract_with_a_session_is_held_before_and_after_the_run(place):
    """Stored, run and read back over the protocol, in a session of the agent."""
    definition = {
        "name": "stamp",
        "arguments": {"ROOT": {"name": "ROOT", "description": "Where", "required": True}},
        "return_values": {"STAMP": {"name": "STAMP", "description": "What was made", "required": True}},
        "initial_state": "make",
        "states": {"make": {"action": {"tool": "run_command", "params": {"command": "export STAMP=at:$ROOT"}}}},
    }
    idle = {**definition, "name": "idle", "states": {"make": {"action": {"tool": "run_command", "params": {"command": "true"}}}}}

    async def case(client):
        for given in (definition, idle):
            stored = {"workflow_definition": given, "overwrite_existing": True}
            expect(await call(client, "create_workflow", stored), success=True)
        session = (await call(client, "open_terminal", {"shell": "bash"}))["session_id"]

        async def ran(name):
            return await call(client, "run_workflow", {"workflow_name": name, "session_id": session})

        missing = await ran("stamp")
        expect(missing, success=False, final_state="validation_failed", session_id=session, states_executed=0)
        assert "ROOT" in missing["error"], missing
        check = missing["execution_log"][0]
        expect(check, phase="pre_execution_validation")
        expect(check["validation_result"], valid=False, missing_vars=["ROOT"])
        await call(client, "run_command", {"session_id": session, "command": "export ROOT=/srv"})
        unmade = await ran("idle")
        expect(unmade, success=False, final_state="return_validation_failed")
        assert "STAMP" in unmade["error"], unmade
        made = await ran("stamp")
        expect(made, success=True, final_state="make", return_values={"STAMP": "at:/srv"})
        phases = [entry["phase"] for entry in made["execution_log"]]
        assert phases == ["pre_execution_validation", "execution", "post_execution_validation"], phases
        # The session goes on with what the run has left there.
        shown = await call(client, "run_command", {"session_id": session, "command": "echo $STAMP"})
        expect(shown, output="at:/srv\n")
        await call(client, "exit_terminal", {"session_id": session})
        lost = await ran("stamp")
        expect(lost, success=False)
        assert session in lost["error"], lost

    await place.every_way(case)


async def a_run_in_a_session_that_does_not_exist_is_not_started(place):
    """Also one whose workflow looks nothing up there; the answer names the sessions that exist."""
    definition = {
        "name": "touch",
        "initial_state": "make",
        "states": {"make": {"action": {"type": "shell", "command": "touch made"}}},
    }

    async def case(client):
        session = (await call(client, "open_terminal", {"shell": "bash"}))["session_id"]
        for unknown in ("t-unknown", ""):
            ran = await call(client, "run_workflow", {"workflow_definition": definition, "session_id": unknown})
            expect(ran, success=False, status="failed", final_state="validation_failed")
            expect(ran, session_id=None, workflow_id=None, states_executed=0, workflow_saved=False)
            assert f"`{unknown}`" in ran["error"] and session in ran["error"], ran
            typed = await call(client, "run_command", {"session_id": unknown, "command": "true"})
            expect(typed, success=False, session_id=None)
            assert f"`{unknown}`" in typed["error"] and session in typed["error"], typed
        assert not (place.project / "made").exists()
        await call(client, "exit_terminal", {"session_id": session})

    await place.every_way(case)


async def a_run_whose_terminal_is_in_a_server_can_only_be_answered_there(place):
    """Elsewhere the answer is refused, and the run waits as before."""
    place.workflow("ask", """\
initial_state: set
states:
  set:
    action: {tool: run_command, params: {command: "NAME=Ada"}}
    transitions: [{condition: success, next_state: ask}]
  ask:
    action: {type: prompt, kind: confirm, message: Go on?}
    transitions: [{condition: success, next_state: tell}]
  tell:
    action: {tool: run_command, params: {command: "echo $NAME"}}
""")
    async with place.connect() as client:
        session = (await call(client, "open_terminal", {"shell": "bash"}))["session_id"]
        ran = await call(client, "run_workflow", {"workflow_name": "ask", "session_id": session})
        expect(ran, status="waiting", session_id=session)
        run = ran["workflow_id"]
        await place.flow("answer", run, "true", code=2)
        place.write("answers.json", '{"ask": true}')
        await place.flow("resume", run, "--answers", "answers.json", code=5)
        shown = json.loads(await place.flow("show", run, "--format", "json"))
        expect(shown, status="waiting", error=None)
        await call(client, "submit_step_result", {
            "workflow_id": run, "step_id": shown["pending"][0]["step"], "result": {"confirmed": True},
        })
        await until_done(client, run)
        stands = await call(client, "get_workflow_status", {"workflow_id": run})
        expect(stands, status="completed", session_id=session)
        expect(stands["final_variables"], tell_output="Ada\n", session_id=session)


async def a_run_is_left_to_the_server_that_has_the_session_of_one_it_has_called(place):
    place.workflow("inner", """\
name: inner
steps: [{id: ask, type: prompt, kind: confirm, message: Go on?}]
""")
    place.workflow("middle", """\
name: middle
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: call}]
  call:
    action: {tool: run_workflow, params: {workflow_name: inner}}
    transitions: [{condition: success, next_state: type}]
  type: {action: {tool: run_command, params: {command: echo typed}}}
""")
    place.workflow("outer", """\
name: outer
steps:
  - {id: call, type: call, workflow: middle}
  - {id: after, type: shell, command: echo after}
""")
    async with place.connect() as client:
        for act in [("answer", "true"), ("cancel",)]:
            ran = await call(client, "run_workflow", {"workflow_name": "outer"})
            expect(ran, status="waiting")
            listed = json.loads(await place.flow("runs", "--format", "json"))["runs"]
            inner = next(it["run_id"] for it in listed if it["workflow"] == "inner" and it["status"] == "waiting")
            await place.flow(act[0], inner, *act[1:], code=5 if act[0] == "answer" else 0)
            # Whoever has given the answer may have the run for a moment more.
            run = {"workflow_id": ran["workflow_id"]}
            while (ended := await call(client, "get_workflow_status", run))["status"] in ("waiting", "running"):
                await asyncio.sleep(0.01)
            expect(ended, status="completed" if act[0] == "answer" else "failed")


async def an_item_is_left_to_the_server_that_has_its_session(place):
    place.workflow("fan", """\
name: fan
tasks:
  one:
    inputs: {n: {type: number, required: true}}
    steps:
      - {id: open, type: mcp_call, tool: open_terminal}
      - {id: ask, type: prompt, kind: confirm, message: Go on?}
      - {id: type, type: mcp_call, tool: run_command, parameters: {command: "echo {{ inputs.n }}"}, output_to: said}
      - {type: return, value: "{{ state.said.output }}"}
steps:
  - {id: each, type: foreach, items: [{n: 1}, {n: 2}], task: one, max_parallel: 2, output_to: said}
outputs: {said: "{{ state.said }}"}
""")
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "fan"})
        run = ran["workflow_id"]

        async def asked():
            stands = await call(client, "get_workflow_status", {"workflow_id": run})
            return sorted(it["step_id"] for it in stands["all_pending"])

        while len(steps := await asked()) < 2:
            pass
        for step in steps:
            await place.flow("answer", run, "true", "--step", step, code=2)
        assert await asked() == steps, "an answer was taken where the session is not"
        for step in steps:
            await call(client, "submit_step_result", {"workflow_id": run, "step_id": step, "result": {"confirmed": True}})
        ended = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 60})
        expect(ended, status="completed", output={"said": ["1\n", "2\n"]})


async def a_run_is_left_to_its_server_by_another_that_ends_the_run_it_has_called(place):
    place.workflow("inner", """\
name: inner
steps: [{id: ask, type: prompt, kind: text, message: Who?}]
""")
    place.workflow("middle", """\
name: middle
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: call}]
  call:
    action: {tool: run_workflow, params: {workflow_name: inner}}
    transitions: [{condition: always, next_state: type}]
  type: {action: {tool: run_command, params: {command: echo typed}}}
""")
    place.workflow("outer", """\
name: outer
steps: [{id: call, type: call, workflow: middle}]
""")

    async def start(client, workflow):
        if workflow == "driven":
            began = await call(client, "start_workflow", {"workflow": "middle"})
            return began["workflow_id"], began["step"]["id"]
        ran = await call(client, "run_workflow", {"workflow_name": workflow})
        return ran["workflow_id"], ran["pending"]["step_id"]

    async with place.connect() as client, place.connect() as other:
        for workflow in ("middle", "outer", "driven"):
            for tool in ("submit_result", "submit_step_result", "complete_workflow"):
                run, step = await start(client, workflow)
                asked = {"workflow_id": run, "result": {"input": "Ada"}}
                if tool == "submit_step_result":
                    asked["step_id"] = step
                elif tool == "complete_workflow":
                    listed = (await call(other, "list_runs", {"status": "waiting"}))["runs"]
                    inner = next(it["workflow_id"] for it in listed if it["workflow"] == "inner")
                    asked = {"workflow_id": inner, "status": "cancelled"}
                await call(other, tool, asked)
                # Whoever has it needs no word of that, and the other one is told.
                ended = await call(other, "get_next_step", {"workflow_id": run, "wait_seconds": 60})
                assert ended["status"] == "completed", (workflow, tool, ended)
                # The session lives on.
                listed = await call(client, "list_terminal_sessions")
                expect(listed, total_sessions=1)
                await call(client, "exit_terminal", {"session_id": listed["sessions"][0]["session_id"]})


async def a_caller_goes_on_when_another_process_gives_the_last_answer(place):
    place.workflow("leaf", """\
name: leaf
steps:
  - {id: first, type: prompt, kind: text, message: Who?}
  - {id: second, type: prompt, kind: text, message: Why?}
""")
    place.workflow("caller", """\
name: caller
steps: [{id: call, type: call, workflow: leaf}]
""")
    async with place.connect() as client, place.connect() as other:
        for _ in range(3):
            ran = await call(client, "run_workflow", {"workflow_name": "caller"})
            run = {"workflow_id": ran["workflow_id"]}
            await call(other, "submit_result", {**run, "result": {"input": "Ada"}})
            # It may be gone on with by the server before that looks.
            answered = await place.flow("answer", ran["workflow_id"], "for fun", "--format", "json", code=None)
            assert json.loads(answered)["status"] in ("waiting", "running", "completed"), answered
            # Nobody asks for the next step.
            while (await call(client, "get_workflow_status", run))["status"] != "completed":
                await asyncio.sleep(0.01)


async def tasks_that_are_answered_from_everywhere_at_once_type_what_they_have_to(place):
    place.workflow("inner", """\
name: inner
steps:
  - {id: first, type: prompt, kind: text, message: Who?}
  - {id: second, type: prompt, kind: text, message: Why?}
""")
    place.workflow("tasks", """\
name: tasks
tasks:
  each:
    inputs: {mark: {type: string, required: true}}
    steps:
      - {id: open, type: mcp_call, tool: open_terminal}
      - {id: ask, type: call, workflow: inner}
      - {id: type, type: mcp_call, tool: run_command, parameters: {command: 'echo {{ inputs.mark }} >> marks'}}
steps: [{id: all, type: foreach, items: [a, b, c], task: each}]
""")
    place.workflow("caller", """\
name: caller
steps: [{id: call, type: call, workflow: tasks}]
""")
    marks = place.project / "marks"
    async with place.connect() as client:
        for _ in range(4):
            marks.write_text("")
            ran = await call(client, "run_workflow", {"workflow_name": "caller"})
            run = ran["workflow_id"]
            while (stands := await call(client, "get_workflow_status", {"workflow_id": run}))["status"] in ("waiting", "running"):
                steps = [it["step_id"] for it in stands["all_pending"]]
                await asyncio.gather(*(place.flow("answer", run, "x", "--step", step, code=None) for step in steps))
            expect(stands, status="completed", error=None)
            assert sorted(marks.read_text().split()) == ["a", "b", "c"], marks.read_text()


async def a_failed_run_is_tried_again_where_its_session_is(place):
    place.workflow("tries", """\
name: tries
inputs: {file: {type: string, required: true}}
steps:
  - {id: look, type: shell, command: 'test -e {{ inputs.file }}'}
  - {id: type, type: mcp_call, tool: run_command, parameters: {command: echo typed}, on_error: continue}
""")
    async with place.connect() as client, place.connect() as other:
        await call(client, "open_terminal")
        file = place.project / "there"
        ran = await call(client, "run_workflow", {"workflow_name": "tries", "inputs": {"file": str(file)}})
        expect(ran, status="failed")
        run = {"workflow_id": ran["workflow_id"]}
        file.touch()
        assert "can only go on there" in await refused(other, "resume_workflow", run)
        resumed = await call(client, "resume_workflow", run)
        expect(resumed, status="completed")


async def a_run_goes_on_in_its_server_when_the_run_it_has_called_ends_elsewhere(place):
    place.workflow("inner", """\
name: inner
steps: [{id: ask, type: prompt, kind: confirm, message: Go on?}]
""")
    place.workflow("outer", """\
name: outer
initial_state: open
states:
  open:
    action: {tool: open_terminal}
    transitions: [{condition: success, next_state: call}]
  call:
    action: {tool: run_workflow, params: {workflow_name: inner}}
    transitions: [{condition: success, next_state: tell}]
  tell:
    action: {tool: run_command, params: {command: echo told}}
""")
    async with place.connect() as client:
        async def begun():
            ran = await call(client, "run_workflow", {"workflow_name": "outer"})
            expect(ran, status="waiting")
            listed = json.loads(await place.flow("runs", "--format", "json"))["runs"]
            return ran["workflow_id"], next(it["run_id"] for it in listed if it["parent"] == ran["workflow_id"])

        async def stands(run):
            return await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 60})

        outer, inner = await begun()
        await place.flow("cancel", inner)
        ended = await stands(outer)
        expect(ended, status="failed")
        assert "`inner` was cancelled" in ended["error"], ended
        expect(await call(client, "list_terminal_sessions"), total_sessions=0)
        outer, inner = await begun()
        # The run is not over for whoever has answered.
        await place.flow("answer", outer, "true", code=5)
        ended = await stands(outer)
        expect(ended, status="completed")
        expect(ended["final_variables"], tell_output="told\n")


async def until_done(client, run):
    while True:
        stands = await call(client, "get_next_step", {"workflow_id": run})
        if stands["status"] in ("completed", "failed", "cancelled"):
            return


async def the_session_that_is_meant_without_a_name_is_the_clients_own(place):
    place.workflow("type", """\
name: type
initial_state: here
states:
  here: {action: {tool: run_command, params: {command: "echo $OWNER"}}}
""")
    place.workflow("own", """\
name: own
steps:
  - {id: open, type: mcp_call, tool: open_terminal, parameters: {environment: {OWNER: the run}}}
  - {id: here, type: mcp_call, tool: run_command, parameters: {command: "echo $OWNER"}, output_to: said}
outputs: {said: "{{ state.said.output }}"}
""")
    async with place.serve() as served, served.connect() as ann, served.connect() as bob:
        opened = await call(ann, "open_terminal", {"environment": {"OWNER": "ann"}})
        expect(await call(ann, "run_command", {"command": "echo $OWNER"}), success=True, output="ann\n")
        lost = await call(bob, "run_command", {"command": "echo $OWNER"})
        assert not lost["success"] and "open_terminal" in lost["error"], lost
        named = {"session_id": opened["session_id"], "command": "echo $OWNER"}
        expect(await call(bob, "run_command", named), success=True, output="ann\n")
        # Runs have the default of whoever started them.
        ran = await call(ann, "run_workflow", {"workflow_name": "type"})
        expect(ran, status="completed", session_id=opened["session_id"])
        ran = await call(bob, "run_workflow", {"workflow_name": "type"})
        expect(ran["execution_log"][0]["result"], success=False)
        assert "open_terminal" in ran["execution_log"][0]["result"]["error"], ran
        await call(bob, "open_terminal", {"environment": {"OWNER": "bob"}})
        expect(await call(bob, "run_command", {"command": "echo $OWNER"}), output="bob\n")
        expect(await call(ann, "run_command", {"command": "echo $OWNER"}), output="ann\n")
        ran = await call(ann, "run_workflow", {"workflow_name": "own"})
        expect(ran, status="completed", output={"said": "the run\n"})


async def what_a_killed_server_left_of_its_sessions_the_next_one_removes(place):
    temporary = place.root / "temporary"
    temporary.mkdir()
    place.env["TMPDIR"] = str(temporary)
    async with place.serve() as killed:
        async with killed.connect() as client:
            await call(client, "open_terminal", {"shell": "bash"})
        killed.process.kill()
        await killed.process.wait()
    left = list(temporary.glob("flow-terminal-*"))
    assert len(left) == 1, left
    async with place.connect() as client:
        await call(client, "open_terminal", {"shell": "bash"})
        while left[0].exists():
            await call(client, "list_terminal_sessions")
        own = list(temporary.glob("flow-terminal-*"))
        assert len(own) == 1, own
    assert not list(temporary.glob("flow-terminal-*"))
