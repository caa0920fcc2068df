"""A workflow run by the command line and by the server leaves the same journal."""

import json
import re
import sqlite3

from harness import call, expect, refused

# Runs, sessions, and what mktemp makes.
ID = re.compile(r"r-[0-9a-z]{18}|t-[a-z0-9]{8}|tmp\.\w{10}")
INPUTS = {
    "code-review": {"target_branch": "main", "source_branch": "topic"},
    "implement": {"test_command": "true"},
    "plan": {"plan_filename": "spec.md"},
    "planning-session": {},
    # One after the other, so that their order is certain.
    "task-runner": {
        "tasks": [{"name": "a", "command": "echo a"}, {"name": "b", "command": "echo b", "needs": ["a"]}]
    },
    "test-runner": {"command": "true"},
    "tour": {},
}


ANSWERS = {
    "info": {"acknowledged": True},
    "confirm": {"confirmed": True},
    "text": {"input": "A thing"},
    "choice": {"selected": "yes"},
}


def events(place, run):
    """The events of a run, without ids and times."""
    journal = sqlite3.connect(f"file:{place.project}/.flow/journal.db?mode=ro", uri=True)
    rows = journal.execute(
        "SELECT kind, body FROM events WHERE run = (SELECT key FROM runs WHERE id = ?) ORDER BY seq", (run,)
    )
    return [(kind, timeless(json.loads(ID.sub("ID", body.decode())))) for kind, body in rows]


def timeless(value):
    # A screen shows a prompt, which may tell the time.
    fleeting = {"at", "duration", "started_at", "elapsed_time", "timestamp", "elapsed_ms", "screen_content"}
    if isinstance(value, dict):
        return {name: timeless(item) for name, item in value.items() if name not in fleeting}
    return [timeless(item) for item in value] if isinstance(value, list) else value


async def every_built_in_leaves_the_same_journal(place):
    place.write("spec.md", "Build a thing.\n")
    place.write("PLAN.md", "- a piece\n")
    listed = json.loads(await place.flow("list", "--source", "builtin", "--format", "json"))["workflows"]
    async with place.connect() as client:
        for workflow in listed:
            name = workflow["name"]
            inputs = INPUTS[name]
            required = [one["name"] for one in workflow["parameters"] if one["required"] and one["name"] not in inputs]
            inputs = {**inputs, **{one: "x" for one in required}}
            served = await call(client, "flow", {"flow_name": name, "parameters": inputs})
            typed = {one: value if isinstance(value, str) else json.dumps(value) for one, value in inputs.items()}
            parameters = [word for one, value in typed.items() for word in ("-p", f"{one}={value}")]
            code = {"completed": 0, "failed": 1, "waiting": 5}[served["status"]]
            printed = await place.flow("run", name, *parameters, "--format", "json", "-q", code=code)
            typed = json.loads(printed)
            assert typed["status"] == served["status"], (name, typed, served)
            # A message is read by whoever types; an agent says that it was.
            while served["status"] == "waiting" and served["pending"]["type"] == "prompt":
                answer = ANSWERS[served["pending"]["kind"]]
                await call(client, "submit_result", {"workflow_id": served["workflow_id"], "result": answer})
                asked = {"workflow_id": served["workflow_id"], "wait_seconds": 60}
                served = await call(client, "get_workflow_status", asked)
            code = {"completed": 0, "failed": 1, "waiting": 5}[served["status"]]
            while typed["status"] == "waiting" and typed["pending"][0]["type"] == "prompt":
                answer = json.dumps(ANSWERS[typed["pending"][0]["kind"]])
                printed = await place.flow("answer", typed["run_id"], answer, "--format", "json", "-q", code=None)
                typed = json.loads(printed)
            of_server, of_command = events(place, served["workflow_id"]), events(place, typed["run_id"])
            assert of_server == of_command, (name, of_server, of_command)
            assert len(of_server) > 1, (name, of_server)


ASKS = """
tools: {t: {}}
state: {got: null}
steps:
  - {id: ask, type: prompt, kind: confirm, message: Go on?, output_to: got}
"""


async def a_run_of_the_users_journal_is_found_by_its_id(place):
    outside = place.root / "outside"
    outside.mkdir()
    (outside / "asks.yaml").write_text(ASKS)
    begun = await place.flow("run", "asks.yaml", "--format", "json", "-q", code=5, cwd=outside)
    run = json.loads(begun)["run_id"]
    # The project has runs of its own, so that it has a journal.
    place.write("asks.yaml", ASKS)
    own = json.loads(await place.flow("run", "asks.yaml", "--format", "json", "-q", code=5))["run_id"]
    arguments = ("--toolsets", "workflow,agent,debug")
    async with place.connect(arguments=arguments) as client:
        status = await call(client, "get_workflow_status", {"workflow_id": run})
        expect(status, workflow_id=run, status="waiting")
        expect(await call(client, "get_workflow_state", {"workflow_id": run}), state={"got": None})
        await call(client, "debug_workflow", {"workflow_id": run})
        read = await client.read_resource(f"run://{run}")
        assert json.loads(read.contents[0].text)["workflow_id"] == run
        answer = {"workflow_id": run, "step_id": "ask", "result": {"confirmed": True}}
        expect(await call(client, "submit_step_result", answer), status="completed")
        # Runs of here are as they were, and what nobody knows is unknown.
        expect(await call(client, "get_workflow_status", {"workflow_id": own}), status="waiting")
        assert "workflow_id" in await refused(client, "get_workflow_status", {"workflow_id": "r-nothing"})
    shown = json.loads(await place.flow("show", run, "--format", "json"))
    expect(shown, status="completed")


async def a_definition_is_kept_with_the_end_of_its_run_wherever_the_server_dies(place):
    kept = place.project / ".flow/workflows/once.json"
    steps = [{"id": "one", "type": "shell", "command": "echo one"}, {"id": "two", "type": "shell", "command": "echo two"}]
    definition = {"name": "once", "steps": steps}
    deaths = ends = 0
    for moment in ("before-commit", "after-commit"):
        for count in range(1, 30):
            (place.project / ".flow/journal.db").unlink(missing_ok=True)
            for rest in place.project.glob(".flow/journal.db-*"):
                rest.unlink()
            kept.unlink(missing_ok=True)
            place.env["FLOW_FAULT"] = f"{moment}:{count}"
            try:
                async with place.connect() as client:
                    ran = await call(client, "run_workflow", {"workflow_definition": definition})
                    expect(ran, status="completed", workflow_saved=True)
                break
            except Exception:
                deaths += 1
            finally:
                del place.env["FLOW_FAULT"]
            runs = json.loads(await place.flow("runs", "--format", "json"))["runs"]
            if not runs:
                continue
            run = runs[0]
            if run["status"] != "completed":
                resumed = await place.flow("resume", run["run_id"], "--format", "json", "-q")
                expect(json.loads(resumed), status="completed")
            else:
                ends += 1
            assert kept.exists(), (moment, count, runs)
            listed = json.loads(await place.flow("runs", "--format", "json"))["runs"]
            expect(listed[0], workflow="once")
    assert deaths > 5 and ends > 0, (deaths, ends)
