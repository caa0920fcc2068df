"""How runs stand, as the tools say it."""

import json

from harness import call, expect, refused

SLOW = """\
name: slow
steps:
  - {id: a, type: shell, by: server, command: echo}
  - {id: b, type: shell, by: server, command: "while [ ! -e go ]; do sleep 0.01; done"}
"""
BESIDE = """\
name: beside
tasks:
  t:
    inputs: {n: {type: integer, required: true}}
    steps:
      - id: which
        type: condition
        if: "{{ inputs.n == 1 }}"
        then: [{id: ask, type: prompt, kind: confirm, message: Go on?}]
        else: [{id: work, type: shell, command: "while [ ! -e go ]; do sleep 0.01; done"}]
steps:
  - {id: f, type: foreach, items: "{{ [1, 2] }}", task: t}
"""
OUTER = """\
name: outer
steps:
  - {id: sub, type: call, workflow: beside}
"""


async def looking_at_a_run_leaves_its_record_as_it_is(place):
    place.workflow("slow", SLOW)
    runs = []
    async with place.connect() as client:
        for tool, asked in (("run_workflow", {"workflow_name": "slow"}), ("start_workflow", {"workflow": "slow"})):
            ran = await call(client, tool, {**asked, "wait_seconds": 0.1})
            expect(ran, status="running")
            runs.append(ran["workflow_id"])
            stands = await call(client, "get_workflow_status", {"workflow_id": runs[-1]})
            expect(stands, status="running", alive=True, pending=None)
            await call(client, "get_workflow_state", {"workflow_id": runs[-1]})
    listed = json.loads(await place.flow("runs", "--format", "json"))["runs"]
    assert {run["run_id"] for run in listed} == set(runs)
    for run in listed:
        expect(run, status="waiting", interrupted=True)
        assert "flow resume" in run["pending"], run
        shown = json.loads(await place.flow("show", run["run_id"], "--format", "json"))
        expect(shown, interrupted=True, pending=[])
    async with place.connect() as client:
        for run in runs:
            # Nobody goes on with it, so that nobody waits that long.
            stands = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 600})
            expect(stands, status="waiting", interrupted=True)


async def a_question_is_answered_while_something_goes_on_beside_it(place):
    place.workflow("beside", BESIDE)
    place.workflow("outer", OUTER)

    async def case(client):
        for tool, asked in (
            ("run_workflow", {"workflow_name": "beside"}),
            ("flow", {"flow_name": "beside"}),
            ("run_workflow", {"workflow_name": "outer"}),
        ):
            (place.project / "go").unlink(missing_ok=True)
            # Nobody waits that long: the command ends when the question was answered.
            ran = await call(client, tool, {**asked, "wait_seconds": 600})
            expect(ran, status="waiting", success=False)
            expect(ran["pending"], step="ask")
            step = ran["pending"]["step_id"]
            run = {"workflow_id": ran["workflow_id"]}
            stands = await call(client, "get_workflow_status", {**run, "wait_seconds": 600})
            expect(stands, status="waiting", alive=True)
            answer = {**run, "step_id": step, "result": {"confirmed": True}, "wait_seconds": 0}
            expect(await call(client, "submit_step_result", answer), status="running", step=None)
            (place.project / "go").touch()
            expect(await call(client, "get_workflow_status", {**run, "wait_seconds": 600}), status="completed")

    await place.every_way(case)


async def a_run_that_was_interrupted_says_so_and_how_it_goes_on(place):
    place.workflow("slow", SLOW)
    runs = []
    async with place.connect() as client:
        for tool, asked in (("run_workflow", {"workflow_name": "slow"}), ("start_workflow", {"workflow": "slow"})):
            ran = await call(client, tool, {**asked, "wait_seconds": 0.1})
            runs.append({"workflow_id": ran["workflow_id"]})
            expect(await call(client, "get_workflow_status", runs[-1]), interrupted=False, note=None)
    async with place.connect() as client:
        for run in runs:
            stands = await call(client, "get_workflow_status", run)
            expect(stands, status="waiting", interrupted=True, alive=False, pending=None)
            assert f"`resume_workflow` with workflow_id {run['workflow_id']}" in stands["note"], stands["note"]
        reason = await refused(client, "submit_result", {**runs[0], "result": 1})
        assert "was interrupted, and goes on from now" in reason, reason
        (place.project / "go").touch()
        for run, tool in zip(runs, ("get_next_step", "resume_workflow")):
            expect(await call(client, tool, run), status="completed", note=None)
            expect(await call(client, "get_workflow_status", run), interrupted=False, note=None)


FAILS = """\
name: fails
tasks:
  t:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: work, type: shell, command: "test {{ inputs.n }} -ne 2 -o -e good && echo {{ inputs.n }} >> done"}
steps:
  - {id: f, type: foreach, items: "{{ [1, 2, 3] }}", task: t}
"""
ENDLESS = """\
name: endless
initial_state: a
states:
  a: {action: {type: set_state, updates: {n: 1}}, transitions: [{condition: always, next_state: b}]}
  b: {action: {type: set_state, updates: {n: 2}}, transitions: [{condition: always, next_state: c}]}
  c: {action: {type: set_state, updates: {n: 3}}}
"""


async def a_run_that_has_failed_says_what_leads_on(place):
    place.workflow("fails", FAILS)
    place.workflow("endless", ENDLESS)
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "fails"})
        run = {"workflow_id": ran["workflow_id"]}
        expect(ran, status="failed")
        way = f"`resume_workflow` with workflow_id {ran['workflow_id']} tries the items that failed again"
        for told in (ran, await call(client, "get_workflow_status", run), await call(client, "get_next_step", run)):
            assert told["note"].startswith(way), told["note"]
        (place.project / "good").touch()
        expect(await call(client, "resume_workflow", run), status="completed", note=None)
        assert sorted((place.project / "done").read_text().split()) == ["1", "2", "3"]
        ran = await call(client, "flow", {"flow_name": "fails"})
        assert "note" not in ran, ran
        ran = await call(client, "run_workflow", {"workflow_name": "endless", "max_states": 2})
        run = {"workflow_id": ran["workflow_id"]}
        expect(ran, status="failed")
        assert "`resume_workflow`" in ran["error"] and "a higher max_states" in ran["note"], ran
        reason = await refused(client, "resume_workflow", {**run, "max_states": 2})
        assert "2" in reason, reason
        expect(await call(client, "resume_workflow", {**run, "max_states": 3}), status="completed")
        reason = await refused(client, "resume_workflow", {**run, "max_states": 9})
        assert "`max_states`" in reason and "has not failed" in reason, reason


LONG = """\
name: long
initial_state: count
states:
  count: {action: {type: shell, command: seq 1 100000}}
"""
MANY = """\
name: many
steps:
  - {id: all, type: set_state, updates: {all: "{{ range(9000) | list }}", text: "{{ 'x' * 16000 }}"}}
  - {id: log, type: shell, command: seq 1 20000}
outputs: {text: "{{ state.text }}"}
"""
TOLD = """\
name: told
steps:
  - {id: read, type: delegate, instructions: Read it., output_to: got}
  - {id: use, type: delegate, instructions: "Use {{ state.got.response }}"}
"""
# What an agent can use of one answer, with room for the names around it.
ANSWER = 70_000


def size(answer):
    return len(json.dumps(answer, ensure_ascii=False))


async def answers_are_short_enough_and_lead_to_all_of_it(place):
    for name, text in {"long": LONG, "many": MANY, "told": TOLD}.items():
        place.workflow(name, text)
    whole = "".join(f"{n}\n" for n in range(1, 100_001))
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "long"})
        run = {"workflow_id": ran["workflow_id"]}
        stands = await call(client, "get_workflow_status", run)
        for answer in (ran, stands):
            assert size(answer) < ANSWER, size(answer)
            short = answer["final_variables"]["count_stdout"]
            assert short.startswith("1\n2\n") and short.endswith("\n99999\n100000\n"), short
            assert "572895 of 588895 characters left out" in short, short[11_990:12_200]
            logged = answer["execution_log"][0]["result"]["stdout"]
            assert size(logged) < 6_000, size(logged)
            for text, path in ((short, "variables.count_stdout"), (logged, "log.0.result.stdout")):
                assert f'`get_workflow_state` with paths ["{path}"] gives all' in text, text[2_900:3_200]
                read = await call(client, "get_workflow_state", {**run, "paths": [path]})
                assert read["state"] == {path: whole}
        assert json.loads((await client.read_resource(f"run://{run['workflow_id']}")).contents[0].text)["final_variables"]["count_stdout"] == whole

        ran = await call(client, "flow", {"flow_name": "many", "verbose": True})
        assert size(ran) < ANSWER, size(ran)
        # Texts of ordinary size are as they are.
        assert ran["output"] == {"text": "x" * 16_000}
        assert ran["state"]["all"][:2] == [0, 1] and "left out" in ran["state"]["all"][-1], ran["state"]["all"][-1]
        run = {"workflow_id": ran["workflow_id"]}
        assert size(await call(client, "get_workflow_state", run)) < ANSWER
        read = await call(client, "get_workflow_state", {**run, "paths": ["all", "text", "log.1.result.exit_code"]})
        assert read["state"] == {"all": list(range(9000)), "text": "x" * 16_000, "log.1.result.exit_code": 0}
        stands = await call(client, "get_workflow_status", {**run, "include_log": False})
        expect(stands, execution_log=[], next_log_cursor=None)

        # What is to be done is told whole, once.
        long = "word " * 12_000
        for tool, asked in (("run_workflow", {"workflow_name": "told"}), ("start_workflow", {"workflow": "told"})):
            ran = await call(client, tool, asked)
            run = {"workflow_id": ran["workflow_id"]}
            turn = await call(client, "submit_step_result", {**run, "step_id": "read", "result": {"response": long}})
            expect(turn["step"], id="use")
            assert turn["step"]["definition"]["instructions"] == f"Use {long}"
            stands = await call(client, "get_workflow_status", run)
            assert stands["pending"]["instructions"] == f"Use {long}", stands["pending"]
            for answer in (turn, stands, await call(client, "resume_workflow", run)):
                assert size(answer) < len(long) + ANSWER / 2, size(answer)
            read = await call(client, "get_workflow_state", {**run, "paths": ["got.response"]})
            assert read["state"]["got.response"] == long


PENDING = """\
name: pending
steps:
  - {id: ask, type: prompt, kind: choice, message: Which?, options: [a, b]}
  - {id: tool, type: mcp_call, tool: theirs, parameters: {n: 1}}
  - {id: do, type: delegate, instructions: Do it.}
"""
ANSWERED = {
    "ask": ("prompt", "{\"selected\": …} with one of `options`", {"selected": "a"}),
    "tool": ("mcp_call", "the tool's answer as it is", {"n": 1}),
    "do": ("delegate", "{\"response\": \"…\"}", {"response": "done"}),
}


async def what_waits_has_one_form_and_says_how_it_is_answered(place):
    place.workflow("pending", PENDING)
    async with place.connect() as client:
        for tool, asked in (("run_workflow", {"workflow_name": "pending"}), ("start_workflow", {"workflow": "pending"})):
            ran = await call(client, tool, asked)
            run = {"workflow_id": ran["workflow_id"]}
            for step, (kind, form, result) in ANSWERED.items():
                stands = await call(client, "get_workflow_status", run)
                assert stands["all_pending"] == [stands["pending"]], stands
                expect(stands["pending"], **run, step_id=step, id=step, step=step, type=kind)
                assert stands["pending"]["answer_with"].startswith(form), stands["pending"]
                if tool == "run_workflow" and step == "ask":
                    assert ran["pending"] == stands["pending"]
                turn = await call(client, "submit_step_result", {**run, "step_id": step, "result": result})
                expect(turn, note=None)
            expect(turn, status="completed")
            # The same again, and another one.
            expect(await call(client, "submit_step_result", {**run, "step_id": "do", "result": result}), note=None)
            again = await call(client, "submit_step_result", {**run, "step_id": "do", "result": {"response": "no"}})
            assert "this one was not used" in again["note"], again["note"]


TASKS = """\
name: fan
tasks:
  t:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: work, type: mcp_call, tool: theirs, parameters: {n: "{{ inputs.n }}"}}
steps:
  - {id: f, type: parallel_foreach, items: "{{ [1, 2, 3] }}", task: t}
"""


async def a_result_for_tasks_is_said_not_to_be_used_and_each_task_is_told_once(place):
    place.workflow("fan", TASKS)
    async with place.connect() as client:
        turn = await call(client, "start_workflow", {"workflow": "fan"})
        run = {"workflow_id": turn["workflow_id"]}
        expect(turn["step"], type="parallel_tasks")
        stands = await call(client, "get_workflow_status", run)
        expect(stands["pending"], type="parallel_tasks", step_id="f")
        turn = await call(client, "submit_step_result", {**run, "step_id": "f", "result": "done"})
        assert "over when its tasks are" in turn["note"], turn["note"]
        await call(client, "get_next_step", {**run, "task_id": "f.0"})
        turn = await call(client, "get_next_step", run)
        expect(turn, status="waiting_for_tasks")
        assert [task["task_id"] for task in turn["open_tasks"]] == ["f.0", "f.1", "f.2"]
        assert "tasks" not in turn["open_step"]["definition"] and "`open_tasks`" in turn["open_step"]["instructions"]
        done = await call(client, "complete_workflow", {**run, "status": "cancelled"})
        expect(done, success=True, status="cancelled", error=None)


async def runs_are_found_without_their_ids(place):
    place.workflow("slow", SLOW)
    place.workflow("pending", PENDING)
    place.workflow("fan", TASKS)
    async with place.connect(arguments=["--toolsets", "workflow,agent"]) as client:
        lost = (await call(client, "run_workflow", {"workflow_name": "slow", "wait_seconds": 0.1}))["workflow_id"]
        listed = await call(client, "list_runs")
        expect(listed["runs"][0], workflow_id=lost, workflow="slow", status="running", interrupted=False, pending=None)
    async with place.connect(arguments=["--toolsets", "agent"]) as client:
        asks = (await call(client, "start_workflow", {"workflow": "pending"}))["workflow_id"]
        fan = (await call(client, "start_workflow", {"workflow": "fan"}))["workflow_id"]
        done = (await call(client, "start_workflow", {"workflow": "pending"}))["workflow_id"]
        await call(client, "complete_workflow", {"workflow_id": done, "status": "failed", "reason": "enough"})
        listed = await call(client, "list_runs")
        assert [run["workflow_id"] for run in listed["runs"]] == [done, fan, asks, lost] and not listed["has_more"], listed
        expect(listed["runs"][0], status="failed", error="enough", called_by=None)
        expect(listed["runs"][1], status="waiting", pending="f", interrupted=False)
        expect(listed["runs"][2], status="waiting", pending="ask", interrupted=False)
        expect(listed["runs"][3], status="waiting", pending=None, interrupted=True)
        waiting = await call(client, "list_runs", {"status": "waiting", "limit": 2})
        assert [run["workflow_id"] for run in waiting["runs"]] == [fan, asks] and waiting["has_more"], waiting
        found = await call(client, "list_runs", {"workflow": "pending", "status": "failed"})
        assert [run["workflow_id"] for run in found["runs"]] == [done], found
        expect(await call(client, "list_runs", {"status": "running"}), runs=[], has_more=False)
        reason = await refused(client, "get_workflow_status", {"workflow_id": "r-none"})
        assert "`list_runs`" in reason and "flow runs" not in reason, reason
        # The prompt that drives workflows goes on with one.
        prompt = await client.get_prompt("workflow", {"workflow": "pending", "run": asks})
        text = prompt.messages[0].content.text
        assert f'`resume_workflow` with `workflow_id: "{asks}"`' in text and "start_workflow" not in text, text
        assert "`pending`" in text and "<" not in text.replace("<=", ""), text
        for wrong in ({"run": "r-none"}, {"run": asks, "workflow": "fan"}, {"run": asks, "inputs": "n=1"}):
            try:
                await client.get_prompt("workflow", wrong)
            except Exception as error:
                assert "run" in str(error), error
            else:
                raise AssertionError(wrong)


async def runs_count_for_the_workflow_that_holds_their_definition(place):
    async with place.connect() as client:
        async def ran(name, text):
            steps = [{"id": "s", "type": "shell", "command": f"echo {text}"}]
            return await call(client, "run_workflow", {"workflow_definition": {"name": name, "steps": steps}})

        async def tally(name):
            info = await call(client, "get_workflow_info", {"workflow": name})
            return info["run_count"], info["success_count"], info["last_run"]

        expect(await ran("lr", 1), saved_workflow_name="lr")
        first = await tally("lr")
        assert first[:2] == (1, 1), first
        # Another one of the same name is stored under another.
        expect(await ran("lr", 2), saved_workflow_name="lr_2")
        second = await tally("lr_2")
        assert await tally("lr") == first and second[:2] == (1, 1) and second[2] > first[2], (first, second)
        # The same one under another name counts for the one that is stored.
        expect(await ran("zz", 1), saved_workflow_name="lr", workflow_saved=False)
        third = await tally("lr")
        assert third[:2] == (2, 2) and third[2] > second[2], third
        assert await tally("lr_2") == second


async def every_tool_says_the_same_of_a_run_whose_server_was_killed(place):
    place.workflow("slow", SLOW)
    runs = []
    async with place.serve() as served:
        async with served.connect() as client:
            for tool, asked in (("run_workflow", {"workflow_name": "slow"}), ("start_workflow", {"workflow": "slow"})):
                ran = await call(client, tool, {**asked, "wait_seconds": 0.1})
                runs.append(ran["workflow_id"])
                for looking in ("get_workflow_status", "debug_workflow"):
                    stands = await call(client, looking, {"workflow_id": runs[-1]})
                    expect(stands, status="running", interrupted=False)
        served.process.kill()
        await served.process.wait()
    async with place.connect() as client:
        for run in runs:
            for looking in ("get_workflow_status", "debug_workflow"):
                stands = await call(client, looking, {"workflow_id": run})
                expect(stands, status="waiting", interrupted=True)
            read = await client.read_resource(f"run://{run}")
            expect(json.loads(read.contents[0].text), status="waiting", interrupted=True)
    for run in runs:
        # What the killed server has left is ended by this.
        await place.flow("cancel", run)


async def what_sub_agents_are_at_is_said_alike_and_in_short(place):
    """Ten thousand tasks, and every answer but the step itself stays short."""
    place.workflow("many", """\
name: many
inputs: {items: {type: array, required: true}}
tools: {t: {returns: {n: integer}}}
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps: [{id: do, type: mcp_call, tool: t}]
steps:
  - {id: each, type: foreach, items: "{{ inputs.items }}", task: one, agent: "@task"}
""")
    async with place.connect() as client:
        given = {"workflow": "many", "inputs": {"items": list(range(10_000))}}
        started = await call(client, "start_workflow", given)
        run = {"workflow_id": started["workflow_id"]}
        stands = await call(client, "get_workflow_status", run)
        expect(stands, status="waiting")
        expect(stands["pending"], step_id="each", total_tasks=10_000, next_task=20)
        await call(client, "get_next_step", {**run, "task_id": "each.7"})
        wrong = {**run, "step_id": "each.7/do", "result": {"n": "seven"}}
        reason = await refused(client, "submit_step_result", wrong)
        assert "`result.n` must be an integer, and is a string" in reason, reason
        for tool in ("submit_step_result", "submit_result"):
            failed = {**run, "error": "it broke"}
            reason = await refused(client, tool, {**failed, "step_id": "each.7/do"} if tool == "submit_step_result" else failed)
            assert "give `status` `failed`, or leave `error` out" in reason, reason
        two = {**run, "task_id": "each.7", "sub_agent_context": {"task_id": "each.8"}}
        assert "give one of them" in await refused(client, "get_next_step", two)
        expect(await call(client, "submit_step_result", {**wrong, "result": {"n": 7}}), status="completed")
        for tool in ("get_workflow_status", "debug_workflow"):
            stands = await call(client, tool, run)
            expect(stands, status="waiting_for_tasks", interrupted=False)
            assert len(json.dumps(stands)) < 100_000, len(json.dumps(stands))
        turn = await call(client, "get_next_step", run)
        expect(turn, status="waiting_for_tasks", open_task_count=9_999, next_task=100)
        assert len(json.dumps(turn)) < 40_000, len(json.dumps(turn))
        turn = await call(client, "get_next_step", {**run, "first_task": 9_990})
        expect(turn, next_task=None)
        assert [it["task_id"] for it in turn["open_tasks"]] == [f"each.{n}" for n in range(9_991, 10_000)], turn


async def what_is_long_is_told_by_its_ends_and_all_of_it_is_a_call_away(place):
    place.workflow("fails", "name: fails\ntools: {t: {}}\nsteps: [{id: do, type: mcp_call, tool: t}]\n")
    large = {
        "name": "large",
        "initial_state": "open",
        "return_values": {"LARGE": {"name": "LARGE", "description": "A long one"}},
        "states": {
            "open": {"action": {"tool": "open_terminal"}, "transitions": [{"condition": "success", "next_state": "set"}]},
            "set": {"action": {"tool": "run_command", "params": {"command": "export LARGE=$(printf 'x%.0s' {1..30000})"}}}
        },
    }
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_definition": large, "save_on_success": False})
        expect(ran, status="completed")
        run = {"workflow_id": ran["workflow_id"]}
        stands = await call(client, "get_workflow_status", run)
        completed = await call(client, "complete_workflow", run)
        for answer in (ran, stands, completed):
            told = answer["return_values"]["LARGE"]
            assert len(told) < 20_000 and '["return_values.LARGE"]' in told, told
        whole = await call(client, "get_workflow_state", {**run, "paths": ["return_values.LARGE"]})
        assert whole["state"]["return_values.LARGE"] == "x" * 30_000

        run = {"workflow_id": (await call(client, "start_workflow", {"workflow": "fails"}))["workflow_id"]}
        reason = "y" * 50_000
        failed = await call(client, "submit_step_result", {**run, "step_id": "do", "status": "failed", "error": reason})
        expect(failed, status="failed")
        stands = await call(client, "get_workflow_status", run)
        debugged = await call(client, "debug_workflow", run)
        [listed] = [it for it in (await call(client, "list_runs", {}))["runs"] if it["error"]]
        for answer in (failed, stands, debugged, listed):
            assert len(answer["error"]) < 5_000, len(answer["error"])
        whole = await call(client, "get_workflow_state", {**run, "paths": ["error"]})
        assert whole["state"]["error"] == reason
