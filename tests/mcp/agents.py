"""Runs that agents drive: the loop, sub-agents, failures, restarts, and every tool badly once."""

import asyncio
import contextlib

from harness import FLOW, call, expect, refused

OVER = ("completed", "failed", "cancelled")
# What an agent has beside flow's tools.
TOOLS = """\
tools:
  check: {}
"""
KINDS = TOOLS + """\
name: kinds
inputs: {branch: {type: string, required: true}}
state: {n: 1}
outputs: {files: "{{ state.files }}", found: "{{ state.found.ok }}", said: "{{ state.goal.input }}", here: "{{ state.here }}"}
steps:
  - {id: diff, type: shell, command: "git diff {{ inputs.branch }}", output_format: lines, output_to: files}
  - {id: own, type: shell_command, command: echo done by the server, output_format: text, state_update: {path: raw.here}}
  - {id: check, type: mcp_call, tool: check, parameters: {files: "{{ state.files }}", n: "{{ state.n + 1 }}"}, output_to: found}
  - {id: tell, type: prompt, kind: info, message: "{{ state.files | length }} files"}
  - {id: ask, type: prompt, kind: text, message: What now?, validation: {pattern: "^go", error_message: say go}, output_to: goal}
"""
REACTIVE = """\
name: "standards:fix"
description: Checks files in batches until nothing is left to check
default_state:
  raw: {file_list: [], results: {}, rounds: 0, started: "{{ now() }}"}
state_schema:
  raw: {file_list: array, results: object, rounds: number}
  computed:
    valid: {from: raw.file_list, transform: "input.filter(f => f.endsWith('.ts'))"}
    batches:
      from: computed.valid
      transform: |
        input.reduce((all, file, index) => {
          const at = Math.floor(index / 2);
          (all[at] = all[at] || []).push(file);
          return all;
        }, []).map((files, index) => ({ id: `batch_${index}`, files }))
    open: {from: [computed.batches, raw.results], transform: "input[0].filter(b => input[1][b.id] !== 'ok')"}
    is_done: {from: computed.open, transform: "input.length === 0"}
outputs: {rounds: "{{ rounds }}", results: "{{ results }}"}
sub_agent_tasks:
  check_batch:
    inputs: {id: {type: string, required: true}, files: {type: array, required: true}}
    steps:
      - {id: look, type: mcp_call, mcp: {method: check_typescript, params: {files: "{{ inputs.files }}"}}, state_update: {path: "raw.results.{{ inputs.id }}", value: "{{ result.verdict }}"}}
steps:
  - {id: find, type: shell_command, command: "printf 'a.ts\\\\nb.ts\\\\nc.ts\\\\nd.js\\\\n'", output_format: lines, state_update: {path: raw.file_list}}
  - id: again
    type: while
    condition: "{{ !is_done && rounds < 5 }}"
    max_iterations: 5
    body:
      - {type: state_update, path: raw.rounds, operation: increment, value: 1}
      - {id: fan, type: parallel_foreach, items: "{{ open }}", sub_agent_task: check_batch, max_parallel: 10, wait_for_all: true}
  - {id: report, type: user_message, message: "{{ rounds }} rounds"}
"""
MANY = TOOLS + """\
name: many
inputs: {count: {type: integer, required: true}}
limits: {max_steps: 100000}
outputs: {sum: "{{ state.all | sum }}"}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: ask, type: mcp_call, tool: check, parameters: {n: "{{ inputs.n }}"}, output_to: got}
      - {id: give, type: return, value: "{{ state.got.n }}"}
steps:
  - {id: each, type: foreach, items: "{{ range(inputs.count) | list }}", task: one, agent: "@task", max_parallel: 50, output_to: all}
"""
SHORT = TOOLS + """\
name: short
inputs: {n: integer}
outputs: {n: "{{ state.b.n }}"}
steps:
  - {id: a, type: mcp_call, tool: check, parameters: {n: "{{ inputs.n }}"}, output_to: a}
  - {id: b, type: mcp_call, tool: check, parameters: {n: "{{ state.a.n }}"}, output_to: b}
"""
FRAGILE = TOOLS + """\
name: fragile
outputs: {kept: "{{ state.kept | default('nothing') }}"}
steps:
  - {id: twice, type: mcp_call, tool: check, retry: {attempts: 2, delay: 0}}
  - {id: spare, type: mcp_call, tool: check, on_error: continue, output_to: kept}
  - {id: last, type: mcp_call, tool: check}
"""


async def drive(client, workflow, answer, inputs=None):
    """Starts a workflow and plays its agent to the end."""
    started = await call(client, "start_workflow", {"workflow": workflow, "inputs": inputs or {}})
    return await go_on(lambda: client, started, answer)


async def go_on(client, turn, answer, task=None):
    """Plays an agent, or with a task a sub-agent, from a turn on. `client()` is who is connected now."""
    run = turn["workflow_id"]
    whose = {"workflow_id": run, **({"task_id": task} if task else {})}
    while turn["status"] not in OVER:
        step = turn["step"]
        if step is None:
            turn = await call(client(), "get_next_step", {**whose, "wait_seconds": 30})
        elif step["type"] == "parallel_tasks":
            assert "get_next_step" in step["definition"]["sub_agent_prompt"]
            await asyncio.gather(*(sub_agent(client, given, answer) for given in step["definition"]["tasks"]))
            turn = await call(client(), "get_next_step", whose)
        else:
            submitted = {"workflow_id": run, "step_id": step["id"], **answer(step)}
            turn = await call(client(), "submit_step_result", submitted)
    return turn


async def sub_agent(client, task, answer):
    """Knows nothing but its task."""
    turn = await call(client(), "get_next_step", {**{k: task[k] for k in ("workflow_id", "task_id")}, "wait_seconds": 60})
    return await go_on(client, turn, answer, task["task_id"])


async def the_agent_gets_its_steps_evaluated_and_the_server_does_the_rest(place):
    place.workflow("kinds", KINDS)

    async def case(client):
        turn = await call(client, "start_workflow", {"workflow": "kinds", "inputs": {"branch": "a b"}})
        run = turn["workflow_id"]
        expect(turn, status="waiting", state={"n": 1}, workflow_name="kinds")
        step = turn["step"]
        expect(step, id="diff", type="shell", original_expression="git diff {{ inputs.branch }}",
               variable_replacements={"{{ inputs.branch }}": "a b"})
        expect(step["definition"], command="git diff 'a b'", output_format="lines", timeout=30.0)
        assert "stdout" in step["instructions"], step
        # The same again until a submit, for whoever asks.
        again = await call(client, "get_next_step", {"workflow_id": run})
        assert again["step"] == step
        result = {"stdout": "x.rs\ny.rs\n", "stderr": "", "exit_code": 0}
        for bad, field in (({"exit_code": "1"}, "exit_code"), ({"exit_code": True}, "exit_code"), ({"exit_code": None}, "exit_code"),
                           ({"stdout": 5}, "stdout")):
            reason = await refused(client, "submit_step_result", {"workflow_id": run, "step_id": "diff", "result": bad})
            assert f"`result.{field}` must be" in reason, reason
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "diff", "result": result})
        expect(turn["step"], id="check", type="mcp_call")
        expect(turn["step"]["definition"], tool="check", parameters={"files": ["x.rs", "y.rs"], "n": 2})
        # The same step twice is answered as the first time, and that another result is not used is said.
        twice = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "diff", "result": result})
        assert twice == turn
        twice = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "diff", "result": "other"})
        assert "was not used" in twice["note"] and {**twice, "note": None} == turn, twice
        reason = await refused(client, "submit_step_result", {"workflow_id": run, "step_id": "ask", "result": "go"})
        assert "`ask` does not wait" in reason and "`check`" in reason, reason

        expect(await call(client, "get_workflow_state", {"workflow_id": run}),
               state={"n": 1, "files": ["x.rs", "y.rs"], "here": "done by the server"})
        paths = await call(client, "get_workflow_state", {"workflow_id": run, "paths": ["files.1", "raw.here", "gone"]})
        expect(paths, state={"files.1": "y.rs", "raw.here": "done by the server", "gone": None})
        status = await call(client, "get_workflow_status", {"workflow_id": run})
        expect(status, status="waiting", workflow_name="kinds")
        expect(status["pending"], id="check", type="mcp_call")

        turn = await call(client, "submit_result", {"workflow_id": run, "result": {"ok": True}})
        expect(turn["step"], id="tell", type="user_message")
        expect(turn["step"]["definition"], message="2 files")
        # Without a result it is only done.
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "tell"})
        expect(turn["step"], id="ask", type="user_input")
        expect(turn["step"]["definition"], prompt="What now?", kind="text")
        reason = await refused(client, "submit_step_result", {"workflow_id": run, "step_id": "ask", "result": "no"})
        assert "say go" in reason, reason
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "ask", "result": {"input": "go on"}})
        expect(turn, status="completed", step=None,
               output={"files": ["x.rs", "y.rs"], "found": True, "said": "go on", "here": "done by the server"})
        done = await call(client, "complete_workflow", {"workflow_id": run, "status": "success"})
        expect(done, success=True, status="completed")
        expect(done["final_state"], files=["x.rs", "y.rs"])

    await place.every_way(case)


async def every_tool_refuses_what_cannot_be_meant(place):
    place.workflow("kinds", KINDS)
    place.workflow("broken", "steps:\n  - {id: a, type: shel, command: x}\n")
    async with place.connect() as client:
        reason = await refused(client, "start_workflow", {"workflow": "kind", "inputs": {}})
        assert "`workflow`" in reason and "`kinds`" in reason, reason
        assert "F0" in await refused(client, "start_workflow", {"workflow": "broken"})
        reason = await refused(client, "start_workflow", {"workflow": "kinds", "inputs": {"brunch": 1}})
        assert "`inputs`" in reason and "branch" in reason and "brunch" in reason, reason
        turn = await call(client, "start_workflow", {"workflow": "kinds", "inputs": {"branch": "x"}})
        run = turn["workflow_id"]
        gone = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        for tool, arguments in {
            "get_next_step": {}, "submit_step_result": {"step_id": "x"}, "submit_result": {},
            "get_workflow_status": {}, "get_workflow_state": {}, "update_workflow_state": {"updates": [{"path": "a"}]},
            "checkpoint_workflow": {"reason": "x"}, "resume_workflow": {}, "complete_workflow": {},
            "get_state_dependencies": {"field": "x"}, "trace_transformations": {}, "debug_workflow": {},
        }.items():
            for unknown in (gone, "not an id", ""):
                assert await refused(client, tool, {"workflow_id": unknown, **arguments}), tool
            reason = await refused(client, tool, {"workflow_id": run, **arguments, "surplus": 1})
            assert "surplus" in reason, reason
        reason = await refused(client, "get_next_step", {"workflow_id": run, "task_id": "diff.0"})
        assert "no task `diff.0`" in reason, reason
        assert "step_id" in await refused(client, "submit_step_result", {"workflow_id": run})
        assert "status" in await refused(client, "submit_step_result", {"workflow_id": run, "step_id": "diff", "status": "odd"})
        reason = await refused(client, "update_workflow_state", {"workflow_id": run, "updates": [{"path": "raw.n", "operation": "append", "value": 1}]})
        assert "`updates`" in reason and "`n`" in reason, reason
        assert "updates" in await refused(client, "update_workflow_state", {"workflow_id": run, "updates": []})
        assert "not over" in await refused(client, "complete_workflow", {"workflow_id": run})
        assert "reason" in await refused(client, "checkpoint_workflow", {"workflow_id": run})
        done = await call(client, "complete_workflow", {"workflow_id": run, "status": "cancelled", "reason": "enough"})
        expect(done, success=True, status="cancelled", error=None)
        reason = await refused(client, "submit_step_result", {"workflow_id": run, "step_id": "nothing"})
        assert "was cancelled" in reason, reason
        assert await refused(client, "resume_workflow", {"workflow_id": run})
        assert await refused(client, "checkpoint_workflow", {"workflow_id": run, "reason": "late"})


async def a_reactive_workflow_loops_over_sub_agents_until_its_computed_state_says_so(place):
    place.workflow("standards:fix", REACTIVE)

    async def case(client):
        seen = []

        def answer(step):
            if step["type"] == "user_message":
                return {}
            files = step["definition"]["parameters"]["files"]
            seen.append(tuple(files))
            # The second batch passes only at the second try.
            late = "c.ts" in files and seen.count(("c.ts",)) == 1
            return {"result": {"verdict": "errors" if late else "ok"}}

        end = await drive(client, "standards:fix", answer)
        expect(end, status="completed", output={"rounds": 2, "results": {"batch_0": "ok", "batch_1": "ok"}})
        assert sorted(seen) == [("a.ts", "b.ts"), ("c.ts",), ("c.ts",)], seen
        run = end["workflow_id"]

        found = await call(client, "get_state_dependencies", {"workflow_id": run, "field": "open"})
        expect(found, field="computed.open", direct_deps=["computed.batches", "raw.results"],
               all_deps=["computed.batches", "computed.valid", "raw.file_list", "raw.results"],
               dependents=["computed.is_done"])
        found = await call(client, "get_state_dependencies", {"workflow_id": run, "field": "raw.file_list"})
        expect(found, direct_deps=[], dependents=["computed.valid", "computed.batches", "computed.open", "computed.is_done"])
        reason = await refused(client, "get_state_dependencies", {"workflow_id": run, "field": "opened"})
        assert "`open`" in reason, reason

        traced = await call(client, "trace_transformations", {"workflow_id": run, "field": "is_done", "include_timing": True})
        outputs = [trace["output"] for trace in traced["traces"]]
        assert outputs[-1] is True and False in outputs, outputs
        assert all(trace["duration_ms"] >= 0 and trace["trigger"] for trace in traced["traces"])
        assert traced["traces"][-1]["input"] == [] and traced["traces"][-1]["trigger"] == "open", traced
        untimed = await call(client, "trace_transformations", {"workflow_id": run, "max_traces": 2})
        assert len(untimed["traces"]) == 2 and untimed["left_out"] > 0
        assert untimed["traces"][0]["duration_ms"] is None
        assert "`is_done`" in await refused(client, "trace_transformations", {"workflow_id": run, "field": "is_don"})

        debug = await call(client, "debug_workflow", {"workflow_id": run})
        expect(debug, status="completed", workflow_name="standards:fix", current_step="report")
        history = [(visit["step_id"], visit["status"]) for visit in debug["step_history"]]
        assert history[0] == ("find", "success") and history[-1] == ("report", "success"), history
        assert sum(visit[0].endswith("/look") for visit in history) == 3, history
        assert debug["state_size"]["raw_bytes"] > 0 and debug["state_size"]["total_transformations"] > 3, debug
        slowest = debug["performance"]["slowest_transformations"]
        assert slowest[0]["avg_ms"] >= slowest[-1]["avg_ms"] > 0, slowest

    await place.every_way(case)


async def transforms_are_tried_out_and_workflows_explained(place):
    place.workflow("many", MANY)
    place.workflow("standards:fix", REACTIVE)
    async with place.connect() as client:
        tried = await call(client, "test_transformation", {
            "transform": "input.filter(f => !skip.includes(f))", "input": ["a", "b"], "context": {"skip": ["a"]}})
        expect(tried, success=True, output=["b"], error=None)
        assert tried["execution_time_ms"] > 0
        tried = await call(client, "test_transformation", {
            "transform": "try { return JSON.parse(input); } catch (e) { return {error: 'no'}; }", "input": "{"})
        expect(tried, success=True, output={"error": "no"})
        tried = await call(client, "test_transformation", {"transform": "input.nothing.at.all", "input": {}})
        expect(tried, success=False, output=None)
        assert tried["error"], tried
        tried = await call(client, "test_transformation", {"transform": "while (true) {}", "input": 1})
        expect(tried, success=False)
        assert "transform" in await refused(client, "test_transformation", {"input": 1})

        plan = await call(client, "explain_workflow", {"workflow": "many", "inputs": {"count": 3}})
        steps = {step["step_id"]: step for step in plan["steps"]}
        expect(steps["each"], type="foreach", done_by="sub-agents", estimated_sub_agents=3, task=None)
        expect(steps["ask"], task="one", done_by="agent")
        expect(plan, required_tools=["check"])
        plan = await call(client, "explain_workflow", {"workflow": "standards:fix"})
        steps = {step["step_id"]: step for step in plan["steps"]}
        assert steps["fan"]["conditions"] == ["while again: !is_done && rounds < 5"], steps["fan"]
        expect(steps["fan"], dependencies=["open"], estimated_sub_agents=None)
        expect(steps["find"], done_by="server")
        assert "count" in await refused(client, "explain_workflow", {"workflow": "many"})
        assert "`many`" in await refused(client, "explain_workflow", {"workflow": "meny"})


async def failures_go_through_retries_and_error_handling_and_a_failed_run_is_resumed(place):
    place.workflow("fragile", FRAGILE)
    async with place.connect() as client:
        turn = await call(client, "start_workflow", {"workflow": "fragile"})
        run = turn["workflow_id"]

        async def fail(step, why):
            return await call(client, "submit_step_result", {
                "workflow_id": run, "step_id": step, "status": "failed", "error": why})

        expect(turn["step"], id="twice")
        turn = await fail("twice", "no network")
        expect(turn["step"]["definition"], attempt=2)
        again = turn["step"]["id"]
        assert again != "twice"
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": again, "result": 1})
        expect(turn["step"], id="spare")
        turn = await fail("spare", "not there")
        expect(turn["step"], id="last")
        marked = await call(client, "checkpoint_workflow", {"workflow_id": run, "reason": "context is nearly full"})
        expect(marked, success=True)
        assert run in marked["resume_with"] and marked["checkpoint_id"].startswith(run), marked
        turn = await fail("last", "no use")
        expect(turn, status="failed", step=None, error="no use")
        done = await call(client, "complete_workflow", {"workflow_id": run, "status": "failed"})
        expect(done, success=False, status="failed", error="no use")

    # In another conversation.
    async with place.connect() as client:
        turn = await call(client, "resume_workflow", {"workflow_id": run})
        expect(turn, status="waiting", workflow_name="fragile")
        expect(turn["last_checkpoint"], step_id="last", reason="context is nearly full")
        assert turn["step"]["id"].startswith("last"), turn
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": turn["step"]["id"], "result": 1})
        expect(turn, status="completed", output={"kept": "nothing"})
        assert await refused(client, "resume_workflow", {"workflow_id": run})


async def state_is_updated_in_batches_that_are_made_whole_or_not_at_all(place):
    place.workflow("standards:fix", REACTIVE)
    async with place.connect() as client:
        turn = await call(client, "start_workflow", {"workflow": "standards:fix"})
        run = turn["workflow_id"]
        expect(turn["step"], type="parallel_tasks")

        async def update(*updates):
            return await call(client, "update_workflow_state", {"workflow_id": run, "updates": list(updates)})

        changed = await update({"path": "raw.results", "operation": "merge", "value": {"batch_0": "ok"}},
                               {"path": "raw.rounds", "operation": "increment"},
                               {"path": "state.who", "value": "agent"})
        expect(changed, success=True)
        assert [batch["id"] for batch in changed["computed"]["open"]] == ["batch_1"], changed
        for bad in ({"path": "computed.open", "value": []}, {"path": "raw.rounds", "operation": "merge", "value": 1}, {"path": ""}):
            await refused(client, "update_workflow_state", {"workflow_id": run, "updates": [{"path": "raw.rounds", "value": 99}, bad]})
        state = (await call(client, "get_workflow_state", {"workflow_id": run}))["state"]
        expect(state, rounds=2, who="agent", is_done=False)


async def a_run_that_waits_for_its_caller_is_continued_by_the_same_tools(place):
    place.workflow("ask", "name: ask\nsteps:\n  - {id: name, type: prompt, kind: text, message: Who?, output_to: name}\noutputs: {name: '{{ state.name.input }}'}\n")
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "ask"})
        expect(ran, status="waiting")
        turn = await call(client, "get_next_step", {"workflow_id": ran["workflow_id"]})
        expect(turn["step"], id="name", type="user_input")
        turn = await call(client, "submit_step_result", {"workflow_id": ran["workflow_id"], "step_id": "name", "result": "Ada"})
        expect(turn, status="completed", output={"name": "Ada"})


def plan_answer(step):
    """What an agent says in a planning session; `rounds` of revision by what it was shown."""
    given = step["definition"]
    if step["type"] == "user_input":
        if given["kind"] == "choice":
            return {"result": "approve" if "second" in given["prompt"] else "say what to change"}
        return {"result": {"input": "a shed in the garden"}}
    text = given["instructions"]
    if "Which questions" in text:
        return {"result": {"questions": ["how large?", "of what?", "who builds it?"]}}
    if "Find out" in text:
        return {"result": f"answer to {text.splitlines()[0]}"}
    if "Criticise" in text:
        return {"result": "add a roof"}
    if "Revise" in text:
        return {"result": {"response": "the second plan"}}
    return {"result": {"response": "the first plan"}}


async def a_planning_session_survives_its_server(place):
    """The built-in session, with sub-agents, and a server that is killed before every fourth answer."""
    place.workflow("survey", TOOLS + """\
name: survey
outputs: {all: "{{ state.all }}", plan: "{{ state.plan.plan }}"}
tasks:
  look:
    inputs: {place: {type: string, required: true}}
    steps:
      - {id: see, type: mcp_call, tool: check, parameters: {place: "{{ inputs.place }}"}, output_to: seen}
      - {id: here, type: shell_command, command: "printf %s {{ inputs.place }}", output_format: text, output_to: said}
      - {id: say, type: mcp_call, tool: check, parameters: {said: "{{ state.said }}"}, output_to: told}
      - {id: give, type: return, value: "{{ state.told.said }}"}
steps:
  - {id: each, type: foreach, items: [north, south, east, west], task: look, agent: "@task", output_to: all}
  - {id: plan, type: call, workflow: planning-session, output_to: plan}
""")
    killed = 0
    calls = 0
    async with contextlib.AsyncExitStack() as stack:
        connection = {}

        async def connect():
            process = await asyncio.create_subprocess_exec(
                FLOW, "serve", "--http", "127.0.0.1:0", cwd=place.project, env=place.env,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
            stack.callback(lambda: process.returncode is None and process.kill())
            url = (await process.stderr.readline()).decode().split()[-1]
            token = (await process.stderr.readline()).decode().split()[1].rstrip(",")
            connection.update(process=process, url=url, token=token)

        async def ask(tool, arguments):
            """One call in a connection of its own; asked again as long as there is no answer."""
            from harness import Served
            while True:
                served = Served(connection["process"], connection["url"], connection["token"])
                try:
                    async with served.connect() as client:
                        return await call(client, tool, arguments)
                except AssertionError:
                    raise
                except BaseException as error:
                    if any(isinstance(leaf, AssertionError) for leaf in leaves_of(error)):
                        raise
                    await connection["up"].wait()

        def leaves_of(error):
            if isinstance(error, BaseExceptionGroup):
                return [leaf for inner in error.exceptions for leaf in leaves_of(inner)]
            return [error]

        connection["up"] = asyncio.Event()
        connection["up"].set()
        await connect()

        async def restart():
            nonlocal killed
            killed += 1
            connection["up"].clear()
            connection["process"].kill()
            await connection["process"].wait()
            await connect()
            connection["up"].set()

        restarting = asyncio.Lock()

        async def agent(turn, task=None):
            nonlocal calls
            run = turn["workflow_id"]
            whose = {"workflow_id": run, **({"task_id": task} if task else {})}
            while turn["status"] not in OVER:
                step = turn["step"]
                if step is None:
                    turn = await ask("get_next_step", {**whose, "wait_seconds": 5})
                elif step["type"] == "parallel_tasks":
                    await asyncio.gather(*(start(given) for given in step["definition"]["tasks"]))
                    turn = await ask("get_next_step", whose)
                else:
                    calls += 1
                    if calls % 4 == 0:
                        async with restarting:
                            await restart()
                    if step["type"] == "mcp_call":
                        said = {"result": step["definition"]["parameters"]}
                    else:
                        said = plan_answer(step)
                    turn = await ask("submit_step_result", {"workflow_id": run, "step_id": step["id"], **said})
            return turn

        async def start(task):
            whose = {"workflow_id": task["workflow_id"], "task_id": task["task_id"]}
            return await agent(await ask("get_next_step", {**whose, "wait_seconds": 5}), task["task_id"])

        first = await ask("start_workflow", {"workflow": "survey"})
        end = await agent(first)
        expect(end, status="completed", output={"all": ["north", "south", "east", "west"], "plan": "the second plan"})
        assert killed >= 3, killed


async def a_thousand_runs_are_driven_side_by_side(place):
    place.workflow("short", SHORT)
    count = 1000
    async with place.connect() as client:
        few = asyncio.Semaphore(64)

        async def ask(tool, arguments):
            async with few:
                return await call(client, tool, arguments)

        turns = await asyncio.gather(*(
            ask("start_workflow", {"workflow": "short", "inputs": {"n": n}}) for n in range(count)))
        # All of them are under way before any goes on.
        for _ in range(2):
            turns = await asyncio.gather(*(
                ask("submit_step_result", {
                    "workflow_id": turn["workflow_id"], "step_id": turn["step"]["id"],
                    "result": turn["step"]["definition"]["parameters"]})
                for turn in turns))
        for n, turn in enumerate(turns):
            expect(turn, status="completed", output={"n": n})


async def ten_thousand_tasks_are_listed_in_pages_and_begun_by_any_number_of_sub_agents(place):
    place.workflow("many", MANY)
    count, done = 10_000, 200
    async with place.serve() as served:
        async with served.connect() as client, served.connect() as other:
            turn = await call(client, "start_workflow", {"workflow": "many", "inputs": {"count": count}})
            run = turn["workflow_id"]
            tasks, first = [], 0
            while first is not None:
                page = await call(client, "get_next_step", {"workflow_id": run, "first_task": first})
                tasks += [task["task_id"] for task in page["step"]["definition"]["tasks"]]
                first = page["step"]["definition"].get("next_task")
            assert len(set(tasks)) == count, len(tasks)
            # From the end, so that nothing depends on the order.
            left = iter(reversed(tasks[-done:]))

            async def sub_agents(client):
                for task in left:
                    turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": task})
                    step = turn["step"]
                    turn = await call(client, "submit_step_result", {
                        "workflow_id": run, "step_id": step["id"], "result": step["definition"]["parameters"]})
                    expect(turn, status="completed", output=step["definition"]["parameters"]["n"])

            await asyncio.gather(*(sub_agents(who) for who in (client, other) * 4))
            turn = await call(client, "get_next_step", {"workflow_id": run})
            expect(turn, status="waiting_for_tasks", step=None, open_task_count=count - done)
            assert len(turn["open_tasks"]) == 100
            # As many at a time as the step allows.
            for task in tasks[:50]:
                turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": task})
                expect(turn["step"], id=f"{task}/ask")
            turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": tasks[50]})
            expect(turn, status="waiting", step=None)
            turn = await call(client, "submit_step_result", {
                "workflow_id": run, "step_id": "each", "status": "failed", "error": "too many"})
            expect(turn, status="failed", error="too many")


async def fewer_sub_agents_than_tasks_finish_all_of_them(place):
    place.workflow("many", MANY)
    async with place.connect() as client:
        answer = lambda step: {"result": step["definition"]["parameters"]}
        end = await drive(client, "many", answer, {"count": 120})
        expect(end, status="completed", output={"sum": 120 * 119 // 2})


STOPPED = TOOLS + """\
name: stopped
outputs: {all: "{{ state.all | default('none') }}"}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: ask, type: mcp_call, tool: check, parameters: {n: "{{ inputs.n }}"}, output_to: got}
      - {id: give, type: return, value: "{{ state.got }}"}
steps:
  - {id: f, type: foreach, items: [1, 2, 3, 4], task: one, agent: "@task", on_child_error: ON_CHILD_ERROR, on_error: continue, output_to: all}
  - {id: after, type: mcp_call, tool: check}
"""


async def sub_agents_are_told_how_their_own_task_ended(place):
    for how in ("fail_all", "continue"):
        place.workflow(how, STOPPED.replace("name: stopped", f"name: {how}").replace("ON_CHILD_ERROR", how))

    async def case(client):
        async def begun(workflow):
            run = (await call(client, "start_workflow", {"workflow": workflow}))["workflow_id"]
            for task in ("f.0", "f.1"):
                turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": task})
                expect(turn["step"], id=f"{task}/ask")
            return run

        async def task(run, task):
            return await call(client, "get_next_step", {"workflow_id": run, "task_id": task})

        # Whoever drives the run gives the tasks up.
        run = await begun("continue")
        await call(client, "submit_step_result", {"workflow_id": run, "step_id": "f.0/ask", "result": "one"})
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "f", "status": "failed", "error": "no"})
        expect(turn["step"], id="after")
        expect(await task(run, "f.0"), status="completed", output="one", error=None)
        for stopped in ("f.1", "f.3"):
            turn = await task(run, stopped)
            expect(turn, status="cancelled", output=None)
            assert "stopped" in turn["error"], turn
        late = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "f.1/ask", "result": "late"})
        expect(late, status="cancelled", task_id="f.1")

        # The first that fails stops the others, and hears why it failed itself.
        run = await begun("fail_all")
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "f.0/ask", "status": "failed", "error": "broken"})
        expect(turn, status="failed", task_id="f.0")
        assert "broken" in turn["error"], turn
        assert "broken" in (await task(run, "f.0"))["error"]
        for stopped in ("f.1", "f.3"):
            expect(await task(run, stopped), status="cancelled", output=None)

        # The last task has its output like the others, and all keep it.
        run = await begun("continue")
        for n in range(4):
            await task(run, f"f.{n}")
            turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": f"f.{n}/ask", "result": f"did {n}"})
            expect(turn, status="completed", output=f"did {n}")
        for n in range(4):
            expect(await task(run, f"f.{n}"), status="completed", output=f"did {n}")
        await call(client, "submit_step_result", {"workflow_id": run, "step_id": "after", "result": 1})
        for n in range(4):
            expect(await task(run, f"f.{n}"), status="completed", output=f"did {n}")

        # A run that is cancelled takes its tasks along.
        run = await begun("continue")
        await call(client, "complete_workflow", {"workflow_id": run, "status": "cancelled"})
        for stopped in ("f.0", "f.3"):
            expect(await task(run, stopped), status="cancelled")

    async with place.connect() as client:
        await case(client)


async def an_agent_is_told_what_its_file_says(place):
    place.write(".flow/agents/expert.md", "---\ndescription: Knows\n---\nYou are an expert.\n")
    place.workflow("asks", """\
name: asks
tasks:
  one: {inputs: {file: {type: string, required: true}}, steps: [{type: return, value: 1}]}
steps:
  - {id: say, type: delegate, agent: "@expert", instructions: "Say."}
  - {id: f, type: foreach, items: "{{ ['a'] }}", task: one, agent: "@expert"}
""")
    told = "You are an expert.\n"
    async with place.connect() as client:
        waits = await call(client, "flow", {"flow_name": "asks"})
        expect(waits["pending"], agent_instructions=told, agent="expert")
        turn = await call(client, "start_workflow", {"workflow": "asks"})
        run = turn["workflow_id"]
        expect(turn["step"]["definition"], agent="@expert", agent_instructions=told, instructions="Say.")
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "say", "result": "said"})
        expect(turn["step"]["definition"], agent="@expert", agent_instructions=told)
        assert "`agent_instructions`" in turn["step"]["instructions"], turn
        turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": "f.0"})
        expect(turn["step"]["definition"], agent="@expert", agent_instructions=told)


async def an_agent_that_gets_a_whole_item_gets_no_other(place):
    place.workflow("whole", """\
name: whole
inputs: {files: {type: array, required: true}}
tasks:
  one: {inputs: {file: {type: string, required: true}}, steps: [{type: return, value: 1}]}
steps:
  - {id: f, type: foreach, items: "{{ inputs.files }}", task: one, agent: "@expert"}
  - {id: g, type: foreach, items: "{{ inputs.files }}", task: one, agent: "@expert", prompt: "Read {{ item }} of {{ inputs.files | length }}"}
""")
    async with place.connect() as client:
        turn = await call(client, "start_workflow", {"workflow": "whole", "inputs": {"files": ["a.rs", "b.rs"]}})
        run = turn["workflow_id"]
        for fan, replaced in (("f", {"{{ item }}": "b.rs"}), ("g", {"{{ item }}": "b.rs", "{{ inputs.files | length }}": 2})):
            turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": f"{fan}.1"})
            expect(turn["step"], variable_replacements=replaced)
            assert "a.rs" not in str(turn), turn
            for item in (0, 1):
                turn = await call(client, "get_next_step", {"workflow_id": run, "task_id": f"{fan}.{item}"})
                await call(client, "submit_step_result", {"workflow_id": run, "step_id": turn["step"]["id"], "result": "done"})


async def a_pending_item_says_what_is_to_be_done_with_it(place):
    place.workflow("items", """\
name: items
tasks:
  one: {description: "Look at a file.", inputs: {file: {type: string, required: true}}, steps: [{type: return, value: 1}]}
steps:
  - {id: f, type: foreach, items: [a.rs], task: one, agent: "@expert"}
  - {id: g, type: foreach, items: [a.rs], task: one, agent: "@expert", prompt: "Read {{ item }}."}
  - {id: names, type: delegate, instructions: "Which?", returns: {type: array, items: {type: string}}}
""")
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "items"})
        expect(ran["pending"], instructions="one: Look at a file.", inputs={"file": "a.rs"})
        run = ran["workflow_id"]
        for told in ("Read a.rs.", "Which?"):
            given = {"workflow_id": run, "step_id": ran["pending"]["step_id"], "result": "done"}
            await call(client, "submit_step_result", given)
            ran = await call(client, "get_workflow_status", {"workflow_id": run})
            expect(ran["pending"], instructions=told)
        assert ran["pending"]["answer_with"].startswith("a value"), ran["pending"]


async def included_fields_are_known_to_those_who_look_into_a_run(place):
    place.workflow("scores", """\
name: scores
state: {points: [3, 4]}
computed: {score: {from: points, transform: "input.length * 10"}}
steps: [{type: set_state, updates: {points: [5, 6, 7]}}]
""")
    place.workflow("game", TOOLS + """\
name: game
imports: [scores.yaml]
inputs: {n: {type: integer, required: true}}
computed: {twice: {from: score, transform: input * 2}}
steps:
  - {id: go, type: call, workflow: scores, shares_computed: true}
  - {id: ask, type: mcp_call, tool: check, parameters: {n: "{{ inputs.n }}"}}
""")
    async with place.connect() as client:
        turn = await call(client, "start_workflow", {"workflow": "game", "inputs": {"n": 4}})
        expect(turn["state"], score=30, twice=60)
        run = {"workflow_id": turn["workflow_id"]}
        paths = ["computed.score", "inputs.n", "raw.score", "computed"]
        read = await call(client, "get_workflow_state", {**run, "paths": paths})
        values = [30, 4, None, {"score": 30, "twice": 60}]
        assert read["state"] == dict(zip(paths, values)), read
        found = await call(client, "get_state_dependencies", {**run, "field": "score"})
        expect(found, field="computed.score", direct_deps=["raw.points"], dependents=["computed.twice"])
        assert found["made_in"] != run["workflow_id"], found
        traces = await call(client, "trace_transformations", {**run, "field": "computed.score"})
        assert [trace["output"] for trace in traces["traces"]] == [20, 30], traces
        assert {trace["made_in"] for trace in traces["traces"]} == {found["made_in"]}, traces
        traces = await call(client, "trace_transformations", run)
        assert [trace["field"] for trace in traces["traces"]] == ["score", "score", "twice"], traces
        for path in ("score", "inputs.n", "raw"):
            update = {**run, "updates": [{"path": path, "value": 1}]}
            assert f"`{path}`" in await refused(client, "update_workflow_state", update), path
