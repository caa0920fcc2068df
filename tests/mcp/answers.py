"""Questions that runs ask, and their answers: by the names that the answers of the tools give."""

import asyncio
import json

from harness import accept, call, expect, refused

# Asks the same step more than once, each in another way.
LOOP = """\
name: loop
state: {n: 0, said: ""}
outputs: {said: "{{ state.said }}"}
steps:
  - id: again
    type: while
    condition: "{{ state.n < 3 }}"
    body:
      - {type: set_state, updates: {n: "{{ state.n + 1 }}"}}
      - {id: ask, type: prompt, kind: text, message: "Number {{ state.n }}?", output_to: got}
      - {type: set_state, updates: {said: "{{ state.said }}{{ state.got.input }}"}}
"""
MACHINE = """\
name: machine
initial_state: one
states:
  one:
    action: {type: prompt, kind: text, message: What?}
    transitions:
      - {condition: {description: it is a fruit}, next_state: fruit}
      - {condition: {description: it is a stone}, next_state: one}
  fruit: {action: {type: set_state, updates: {n: 1}}}
"""
AGAIN = """\
name: again
steps:
  - {id: d, type: delegate, instructions: Do it., retry: {attempts: 3, delay: 0}, output_to: got}
outputs: {got: "{{ state.got.response }}"}
"""
EACH = """\
name: each
tasks:
  one:
    inputs: {n: {type: integer, required: true}}
    steps:
      - {id: ask, type: prompt, kind: text, message: "Number {{ inputs.n }}?", output_to: got}
      - {type: return, value: "{{ inputs.n }}: {{ state.got.input }}"}
steps:
  - {id: f, type: foreach, items: "{{ [1, 2] }}", task: one, output_to: all}
outputs: {all: "{{ state.all }}"}
"""
INNER = """\
name: inner
steps:
  - {id: ask, type: prompt, kind: text, message: Who?, output_to: got}
outputs: {who: "{{ state.got.input }}"}
"""
OUTER = """\
name: outer
steps:
  - {id: sub, type: call, workflow: inner, output_to: got}
outputs: {who: "{{ state.got.who }}"}
"""


async def answer(client, ran, answers):
    """Answers what waits, by the names that it is given under, until the run is over."""
    run, asked = ran["workflow_id"], []
    while ran["status"] == "waiting":
        pending = ran["pending"]
        asked.append(pending["step_id"])
        turn = await call(client, "get_next_step", {"workflow_id": run})
        assert turn["step"]["id"] == pending["step_id"], (turn, pending)
        submitted = {k: pending[k] for k in ("workflow_id", "step_id")}
        turn = await call(client, "submit_step_result", {**submitted, **answers.pop(0)})
        assert turn["note"] is None, turn
        ran = await call(client, "get_workflow_status", {"workflow_id": run})
    return ran, asked


async def over(client, run):
    """How a run stands once it is over."""
    stands = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 0})
    while stands["status"] not in ("completed", "failed"):
        stands = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 0})
    return stands


async def what_waits_is_answered_by_the_name_it_is_told_under(place):
    for name, text in {"loop": LOOP, "machine": MACHINE, "again": AGAIN, "inner": INNER, "outer": OUTER}.items():
        place.workflow(name, text)

    async def case(client):
        said = [{"result": "a"}, {"result": "b"}, {"result": "c"}]
        for tool, argument in (("run_workflow", "workflow_name"), ("flow", "flow_name")):
            ran, asked = await answer(client, await call(client, tool, {argument: "loop"}), list(said))
            expect(ran, status="completed", output={"said": "abc"})
            assert len(set(asked)) == 3 and asked[0] == "ask", asked
        stone = [{"result": "granite"}, {"result": {"choice": 1}}, {"result": "apple"}, {"result": {"choice": 0}}]
        ran, asked = await answer(client, await call(client, "run_workflow", {"workflow_name": "machine"}), stone)
        expect(ran, status="completed", final_state="fruit")
        assert len(set(asked)) == 4, asked
        tries = [{"status": "failed", "error": "no"}, {"status": "failed", "error": "no"}, {"result": "done"}]
        ran, asked = await answer(client, await call(client, "run_workflow", {"workflow_name": "again"}), tries)
        expect(ran, status="completed", output={"got": "done"})
        ran, asked = await answer(client, await call(client, "run_workflow", {"workflow_name": "outer"}), [{"result": "Ann"}])
        expect(ran, status="completed", output={"who": "Ann"})
        assert asked == ["sub/ask"], asked

    await place.every_way(case)


async def questions_asked_at_once_are_told_apart(place):
    place.workflow("each", EACH)
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "each"})
        run = ran["workflow_id"]
        stands = await call(client, "get_workflow_status", {"workflow_id": run})
        by_message = {pending["message"]: pending["step_id"] for pending in stands["all_pending"]}
        assert len(set(by_message.values())) == 2, by_message
        shown = json.loads(await place.flow("show", run, "--format", "json"))
        assert {it["message"]: it["step_id"] for it in shown["pending"]} == by_message
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": by_message["Number 2?"], "result": "two"})
        expect(turn, status="waiting", note=None)
        assert turn["step"]["id"] == by_message["Number 1?"], turn
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": by_message["Number 1?"], "result": "one"})
        expect(turn, status="completed", output={"all": ["1: one", "2: two"]})
        # The second one first, on the command line.
        run = (await call(client, "run_workflow", {"workflow_name": "each"}))["workflow_id"]
        await place.flow("answer", run, "two", code=2)
        await place.flow("answer", run, "two", "--step", "ask", code=2)
        await place.flow("answer", run, "two", "--step", by_message["Number 2?"], code=5)
        await place.flow("answer", run, "one")
        stands = await call(client, "get_workflow_status", {"workflow_id": run})
        expect(stands, status="completed", output={"all": ["1: one", "2: two"]})


async def a_result_for_a_step_that_had_one_is_said_to_be_unused(place):
    place.workflow("loop", LOOP)
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "loop"})
        submit = {"workflow_id": ran["workflow_id"], "step_id": "ask"}
        turn = await call(client, "submit_step_result", {**submit, "result": "a"})
        second = turn["step"]["id"]
        assert turn["note"] is None and second != "ask", turn
        turn = await call(client, "submit_step_result", {**submit, "result": "b"})
        assert turn["step"]["id"] == second, turn
        assert "`ask`" in turn["note"] and f"`{second}`" in turn["note"], turn
        reason = await refused(client, "submit_step_result", {**submit, "step_id": "other", "result": "b"})
        assert f"`{second}`" in reason, reason


async def a_called_run_that_is_answered_itself_takes_its_caller_along(place):
    place.workflow("inner", INNER)
    place.workflow("outer", OUTER)

    async with place.connect() as client:
        # Its own run, and the outer one without waiting for what follows.
        for whose in (lambda it: {"workflow_id": it["run_id"], "step_id": it["step"]},
                      lambda it: {"workflow_id": it["workflow_id"], "step_id": it["step_id"], "wait_seconds": 0}):
            ran = await call(client, "run_workflow", {"workflow_name": "outer"})
            expect(ran, status="waiting")
            await call(client, "submit_step_result", {**whose(ran["pending"]), "result": "Ann"})
            expect(await over(client, ran["workflow_id"]), status="completed", output={"who": "Ann"})


async def an_answer_that_comes_after_the_call_was_answered_is_heard(place):
    place.workflow("inner", INNER)
    place.workflow("outer", OUTER)

    for transport in ("stdio", "http"):
        asked, filled = asyncio.Event(), asyncio.Event()

        async def elicit(_, params):
            asked.set()
            await filled.wait()
            return accept(input="Ann")

        async with place.connect(transport, elicitation_callback=elicit) as client:
            for name, step in (("inner", "ask"), ("outer", "sub/ask")):
                asked.clear(), filled.clear()
                calling = asyncio.create_task(call(client, "flow", {"flow_name": name, "wait_seconds": 0.5}))
                await asked.wait()
                ran = await calling
                expect(ran, status="waiting")
                expect(ran["pending"], step_id=step)
                run = {"workflow_id": ran["workflow_id"]}
                # The question can be seen while the form is open.
                stands = await call(client, "get_workflow_status", {**run, "wait_seconds": 60})
                expect(stands, status="waiting")
                turn = await call(client, "get_next_step", run)
                assert turn["step"]["id"] == step, turn
                filled.set()
                expect(await over(client, ran["workflow_id"]), status="completed", output={"who": "Ann"})


async def a_late_answer_that_is_not_valid_is_asked_for_again(place):
    place.workflow("picky", """\
outputs: {who: "{{ state.said.input }}"}
steps:
  - {id: ask, type: prompt, kind: text, message: Who?, validation: {pattern: "^[A-Z]"}, output_to: said}
""")

    for transport in ("stdio", "http"):
        asked, filled, answers, seen = asyncio.Event(), asyncio.Event(), ["ann", "bob", "Ann"], []

        async def elicit(_, params):
            seen.append(params.message)
            asked.set()
            await filled.wait()
            return accept(input=answers.pop(0))

        async with place.connect(transport, elicitation_callback=elicit) as client:
            calling = asyncio.create_task(call(client, "flow", {"flow_name": "picky", "wait_seconds": 0.5}))
            await asked.wait()
            ran = await calling
            expect(ran, status="waiting")
            filled.set()
            expect(await over(client, ran["workflow_id"]), status="completed", output={"who": "Ann"})
            assert len(seen) == 3 and seen[0] == "Who?" and "^[A-Z]" in seen[1], seen


async def a_form_is_taken_back_when_somebody_else_has_answered(place):
    place.workflow("ask", INNER)
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def elicit(_, params):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()

    async with place.connect(elicitation_callback=elicit) as client:
        ran = asyncio.create_task(call(client, "flow", {"flow_name": "ask"}))
        await asked.wait()
        run = json.loads(await place.flow("runs", "--format", "json"))["runs"][0]["run_id"]
        await call(client, "submit_step_result", {"workflow_id": run, "step_id": "ask", "result": "Bob"})
        expect(await ran, status="completed", output={"who": "Bob"})
        await taken_back.wait()


JUDGED = """\
name: fruit
initial_state: look
states:
  look:
    action: {type: shell, command: echo a round red thing}
    transitions:
      - {condition: {description: it is a fruit}, next_state: eat}
      - {condition: {description: it is a stone}, next_state: throw}
  eat: {action: {type: shell, command: "true"}}
  throw: {action: {type: prompt, kind: choice, message: How far?, options: [near, far]}}
"""


async def a_person_who_judges_is_told_what_and_must_choose(place):
    place.workflow("fruit", JUDGED)
    asked, answers = [], []

    async def elicit(_, params):
        asked.append(params.message)
        return accept(**answers.pop(0))

    async def case(client):
        asked.clear()
        answers[:] = [{}, {"choice": "eat"}]
        ran = await call(client, "run_workflow", {"workflow_name": "fruit"})
        expect(ran, status="completed", final_state="eat")
        for part in ("`fruit`", "`look`", "a round red thing"):
            assert part in asked[0], asked
        assert len(asked) == 2 and "choose" in asked[1], asked
        # What a form says is for people.
        asked.clear()
        answers[:] = [{"choice": "throw"}, {"selected": "away"}, {"selected": "far"}]
        ran = await call(client, "run_workflow", {"workflow_name": "fruit"})
        expect(ran, status="completed", final_state="throw")
        assert "choose one of near, far" in asked[2] and "{" not in asked[2], asked
        # None of them is a choice too.
        answers[:] = [{"choice": "-"}]
        expect(await call(client, "run_workflow", {"workflow_name": "fruit"}), status="failed")

    await place.every_way(case, elicitation_callback=elicit)


async def a_step_of_a_task_has_one_name_whoever_drives_the_run(place):
    place.workflow("each", EACH)

    async def case(client):
        for tool, arguments in (("flow", {"flow_name": "each"}), ("start_workflow", {"workflow": "each"})):
            begun = await call(client, tool, arguments)
            run = begun["workflow_id"]

            def submitted(step, result):
                return {"workflow_id": run, "step_id": step, "result": result}

            for wrong in ("f.7/ask", "f.0/other", "f/ask"):
                reason = await refused(client, "submit_step_result", submitted(wrong, "x"))
                assert "`f.0/ask`" in reason, reason
            first = await call(client, "submit_step_result", submitted("f.1/ask", "b"))
            assert first["step"] and first["step"]["id"] == "f.0/ask", (tool, first)
            # Said once more it is not used, and answered as before.
            again = await call(client, "submit_step_result", submitted("f.1/ask", "z"))
            assert again["step"] and again["step"]["id"] == "f.0/ask", (tool, again)
            done = await call(client, "submit_step_result", submitted("f.0/ask", "a"))
            expect(done, status="completed", output={"all": ["1: a", "2: b"]})

    await place.every_way(case)
