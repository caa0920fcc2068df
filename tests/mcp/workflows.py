"""The workflow toolset: every tool once well and once badly."""

import asyncio
import json
import os

from harness import accept, call, expect, refused

import mcp_types as types

HELLO = """\
name: hello
description: Says hello
inputs:
  who: {type: string, default: world, description: Whom to greet}
steps:
  - {id: greet, type: shell, command: "echo hello {{ inputs.who }}", output_format: text, output_to: said}
outputs:
  said: "{{ state.said }}"
"""
ASK = """\
name: ask
description: Asks for a name
steps:
  - {id: name, type: prompt, kind: text, message: Your name?, output_to: name}
  - {id: sure, type: prompt, kind: confirm, message: Sure?, output_to: sure}
outputs:
  name: "{{ state.name.input }}"
  sure: "{{ state.sure.confirmed }}"
"""
# Goes on until the file appears.
HANG = """\
name: hang
description: Waits for a file
steps:
  - {id: wait, type: shell, command: "while [ ! -e go ]; do sleep 0.01; done; echo went", timeout: 10m,
     output_format: text, output_to: said}
outputs:
  said: "{{ state.said }}"
"""
STATES = """\
name: two_states
description: Two states
initial_state: first
states:
  first:
    action: {type: shell, command: echo one}
    transitions: [{condition: success, next_state: second}]
  second:
    action: {type: shell, command: echo two}
"""


async def every_tool_has_schemas_and_truthful_hints(place):
    async def case(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, tool in tools.items():
            assert name.replace("_", "").isalpha() and name.islower(), name
            assert tool.description and tool.title, name
            assert tool.input_schema["type"] == "object", name
            assert tool.output_schema["type"] == "object", name
            assert "anyOf" not in tool.input_schema and "oneOf" not in tool.input_schema, name
        reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert {"list_workflows", "get_workflow_info", "load_from_memory"} <= reading, reading
        assert not {"flow", "run_workflow", "create_workflow", "delete_workflow", "save_to_memory"} & reading
        assert len(client.instructions.encode()) < 4096
        assert client.server_info.name == "flow"

    await place.every_way(case)


async def workflows_are_listed_with_their_parameters(place):
    place.workflow("hello", HELLO)
    place.workflow("broken", "steps: [{type: shel}]")

    async def case(client):
        listed = await call(client, "list_workflows")
        workflows = {workflow["name"]: workflow for workflow in listed["workflows"]}
        assert listed["total"] == len(workflows)
        expect(workflows["hello"], description="Says hello", source="project", state_count=1, run_count=0, error=None)
        expect(workflows["hello"]["parameters"][0], name="who", type="string", required=False, default="world")
        assert "shel" in workflows["broken"]["error"]
        assert workflows["plan"]["source"] == "builtin"
        own = await call(client, "list_workflows", {"include_global": False})
        assert [workflow["name"] for workflow in own["workflows"]] == ["broken", "hello"]
        reason = await refused(client, "list_workflows", {"include_globl": False})
        assert "include_global" in reason, reason

    await place.every_way(case)


async def what_is_changed_by_hand_is_seen_by_the_next_call(place):
    """Of every server on the project, however the change is made."""
    workflows = place.project / ".flow/workflows"

    def says(what):
        return f"name: one\ndescription: {what}\nsteps: [{{type: shell, command: make}}]\n"

    async def listed(client):
        own = await call(client, "list_workflows", {"include_global": False})
        return {workflow["name"]: workflow["description"] for workflow in own["workflows"]}

    async with place.connect("stdio", "legacy") as one, place.connect("http", "auto") as other:
        async def see(**wanted):
            for client in (one, other):
                seen = await listed(client)
                assert seen == wanted, (seen, wanted)

        await see()
        one_file = place.workflow("one", says("aaa"))
        await see(one="aaa")
        # As long as before and, for all the clock says, of the same time.
        times = one_file.stat()
        one_file.write_text(says("bbb"))
        os.utime(one_file, ns=(times.st_atime_ns, times.st_mtime_ns))
        await see(one="bbb")
        aside = place.write("aside.yaml", says("ccc"))
        aside.replace(one_file)
        await see(one="ccc")
        place.workflow("group/two", says("two").replace("name: one\n", ""))
        await see(one="ccc", **{"group:two": "two"})
        (workflows / "group").rename(place.project / "elsewhere")
        await see(one="ccc")
        linked = place.write("linked.yaml", says("ddd"))
        one_file.unlink()
        one_file.symlink_to(linked)
        await see(one="ddd")
        linked.write_text(says("eee"))
        await see(one="eee")
        # The directory itself is another one.
        workflows.rename(place.project / "before")
        await see()
        place.workflow("three", says("three").replace("name: one\n", ""))
        await see(three="three")


async def the_flow_tool_lists_plans_and_runs(place):
    place.workflow("hello", HELLO)

    async def case(client):
        tools = (await client.list_tools()).tools
        flow = next(tool for tool in tools if tool.name == "flow")
        names = flow.input_schema["properties"]["flow_name"]["enum"]
        assert names[0] == "list" and {"hello", "plan"} <= set(names), names
        assert flow.input_schema["required"] == ["flow_name"]
        listed = await call(client, "flow", {"flow_name": "list"})
        assert "hello" in [workflow["name"] for workflow in listed["workflows"]]
        review = next(it for it in listed["workflows"] if it["name"] == "code-review")
        assert set(review["parameters"][0]) == {"name", "type", "required", "default", "description"}, review
        listed = await call(client, "flow", {"flow_name": "list", "verbose": True})
        review = next(it for it in listed["workflows"] if it["name"] == "code-review")
        assert review["parameters"][0]["validation"]["pattern"].startswith("^"), review
        expect(review["parameters"][0], secret=False)
        table = await call(client, "flow", {"flow_name": "list", "format": "table"})
        assert "DESCRIPTION" in table["listing"], table
        yaml = await call(client, "flow", {"flow_name": "list", "format": "yaml", "verbose": True})
        assert "name: hello" in yaml["listing"]
        plan = await call(client, "flow", {"flow_name": "hello", "dry_run": True})
        expect(plan["plan"]["steps"][0], id="greet", type="shell", does="$ echo hello world")
        assert "workflow_id" not in plan
        ran = await call(client, "flow", {"flow_name": "hello", "parameters": {"who": "Ann"}})
        expect(ran, success=True, status="completed", output={"said": "hello Ann"}, final_state="completed", error=None)
        assert "execution_log" not in ran
        ran = await call(client, "flow", {"flow_name": "hello", "verbose": True})
        assert ran["execution_log"][0]["state"] == "greet", ran
        reason = await refused(client, "flow", {"flow_name": "hello", "parameters": {"whom": "Ann"}})
        assert "`whom`" in reason and "`who`" in reason, reason
        reason = await refused(client, "flow", {"flow_name": "list", "format": "tabel"})
        assert "`format`" in reason and "table" in reason, reason
        unknown = await call(client, "flow", {"flow_name": "hallo"})
        assert not unknown["success"] and "did you mean `hello`?" in unknown["error"], unknown
        assert "plan" in unknown["available_workflows"]

    await place.every_way(case)


async def a_workflow_runs_by_name_or_given_whole(place):
    place.workflow("hello", HELLO)
    place.workflow("two_states", STATES)

    async def case(client):
        ran = await call(client, "run_workflow", {"workflow_name": "hello", "inputs": {"who": "Ann"}})
        expect(
            ran, success=True, status="completed", workflow_name="hello", final_state="completed", states_executed=1,
            output={"said": "hello Ann"}, pending=None, error=None, workflow_saved=False, recursion_depth=0,
        )
        assert ran["workflow_id"].startswith("r-") and ran["total_elapsed_time"] >= 0
        assert "hello" in ran["available_workflows"]
        variables = {"workflow_name": "hello", "initial_variables": {"who": "Bob"}}
        assert (await call(client, "run_workflow", variables))["output"] == {"said": "hello Bob"}
        states = await call(client, "run_workflow", {"workflow_name": "two_states"})
        expect(states, success=True, final_state="second", states_executed=2)
        log = [entry for entry in states["execution_log"] if entry["phase"] == "execution"]
        assert [entry["state"] for entry in log] == ["first", "second"], log
        expect(log[0]["transition"], from_state="first", to_state="second", condition_met=True)
        assert log[1]["transition"] is None
        failed = await call(
            client, "run_workflow", {"workflow_definition": {"steps": [{"type": "shell", "command": "exit 3"}]}}
        )
        expect(failed, success=False, status="failed", workflow_saved=False)
        assert "3" in failed["error"], failed
        reason = await refused(client, "run_workflow", {})
        assert "`workflow_name`" in reason, reason
        reason = await refused(client, "run_workflow", {"workflow_name": "hello", "max_states": "many"})
        assert "`max_states`" in reason, reason
        unknown = await call(client, "run_workflow", {"workflow_name": "two_stats"})
        expect(unknown, success=False, final_state="workflow_not_found", workflow_id=None)
        assert "did you mean `two_states`?" in unknown["error"], unknown
        invalid = await call(client, "run_workflow", {"workflow_definition": {"steps": [{"type": "shel"}]}})
        expect(invalid, success=False, final_state="definition_invalid", workflow_id=None)
        assert "did you mean `shell`?" in invalid["error"], invalid
        assert len(invalid["validation_errors"]) == 1 and invalid["validation_errors"][0] in invalid["error"], invalid
        states = {name: {"action": {"type": "shell", "command": "true"}} for name in ("reached", "never")}
        lonely = {"initial_state": "reached", "states": states}
        ran = await call(client, "run_workflow", {"workflow_definition": lonely, "save_on_success": False})
        expect(ran, success=True, validation_errors=[])
        assert len(ran["warnings"]) == 1 and "`never`" in ran["warnings"][0], ran
        made = await call(client, "create_workflow", {
            "workflow_definition": {"name": "lonely", **lonely}, "overwrite_existing": True,
        })
        assert len(made["warnings"]) == 1 and "`never`" in made["warnings"][0], made

    await place.every_way(case)


async def variables_are_read_by_the_types_of_inputs_and_have_names_that_braces_can_hold(place):
    place.workflow("typed", """\
name: typed
inputs:
  count: {type: integer, required: true}
  share: {type: number, default: 0.5}
  force: {type: boolean, default: false}
  tags: {type: array, default: []}
  label: {type: string, default: none}
  build-id: {type: string, default: b}
initial_state: a-1
states:
  a-1:
    action: {type: shell, command: "echo {build-id} {x.y} {my-var} {other-var}", output_to: said}
    transitions: [{condition: {expression: "{{ inputs.force and count + 1 == 3 }}"}, next_state: end}]
  end: {action: {type: shell, command: "test -n {a-1_stdout}"}}
outputs:
  all: "{{ [inputs.count, inputs.share, inputs.force, inputs.tags, inputs.label] }}"
  said: "{{ state.said.stdout }}"
""")

    async def case(client):
        given = {"count": "2", "share": "0.25", "force": "yes", "tags": '["a"]', "label": "7", "build-id": "b-1",
                 "x.y": "dotted", "my-var": "dashed"}
        ran = await call(client, "run_workflow", {"workflow_name": "typed", "initial_variables": given})
        expect(ran, success=True, final_state="end")
        expect(ran["output"], all=[2, 0.25, True, ["a"], "7"])
        # What is no variable is left alone.
        assert ran["output"]["said"] == "b-1 dotted dashed {other-var}\n", ran["output"]
        for bad, words in (({"count": "two"}, ["`count`", "whole number", "`two`"]),
                           ({"count": "1", "force": "maybe"}, ["`force`", "true or false"]),
                           ({"count": "1", "my var": 1}, ["`my var`", "name of a variable"])):
            reason = await refused(client, "run_workflow", {"workflow_name": "typed", "initial_variables": bad})
            assert all(word in reason for word in words), reason

    await place.every_way(case)


async def a_run_out_of_time_says_where_it_was_and_how_it_gets_more(place):
    place.workflow("slow", """\
name: slow
initial_state: nap
states:
  nap: {action: {type: wait, duration_seconds: 600}}
""")
    place.workflow("hasty", """\
name: hasty
limits: {timeout: 1}
initial_state: nap
states:
  nap: {action: {type: wait, duration_seconds: 600}}
""")
    place.workflow("caller", """\
name: caller
initial_state: call
states:
  call:
    action: {tool: run_workflow, params: {workflow_name: slow, execution_timeout: 1, max_states: 7, save_on_success: false}}
    transitions: [{condition: always, next_state: miss}]
  miss:
    action: {tool: run_workflow, params: {workflow_name: "{{ 'slwo' }}"}}
    transitions: [{condition: failure, next_state: miss_all}]
  miss_all:
    action: {tool: run_workflow, params: {workflow_name: "{{ 'entirely_else' }}"}}
""")

    async def case(client):
        late = await call(client, "run_workflow", {"workflow_name": "slow", "execution_timeout": 1})
        expect(late, success=False, status="failed")
        assert all(it in late["error"] for it in ("longer than 1 s", "`execution_timeout`", "`nap`")), late["error"]
        late = await call(client, "run_workflow", {"workflow_name": "hasty"})
        assert all(it in late["error"] for it in ("longer than 1 s", "`limits.timeout`", "`nap`")), late["error"]
        ran = await call(client, "run_workflow", {"workflow_name": "caller"})
        log = {entry["state"]: entry for entry in ran["execution_log"] if entry["phase"] == "execution"}
        expect(log["call"]["params"], execution_timeout=1, max_states=7, save_on_success=False, workflow_name="slow")
        assert "`execution_timeout`" in log["call"]["error"] and "`nap`" in log["call"]["error"], log["call"]
        assert "did you mean `slow`?" in log["miss"]["error"], log["miss"]
        assert "hasty" in log["miss_all"]["error"] and "`entirely_else`" in log["miss_all"]["error"], log["miss_all"]

    await place.every_way(case)


async def a_signature_has_the_order_of_its_definition(place):
    def variables(*names):
        return {name: {"description": f"The {name}"} for name in names}

    definition = {
        "name": "ordered",
        "arguments": variables("ZONE", "ACCOUNT", "MODE"),
        "return_values": variables("WHEN", "HOW"),
        "initial_state": "set",
        "states": {"set": {"action": {"tool": "run_command", "params": {"command": "export HOW=well WHEN=now"}}}},
    }

    async def case(client):
        stored = {"workflow_definition": definition, "overwrite_existing": True}
        session = (await call(client, "open_terminal", {}))["session_id"]
        await call(client, "run_command", {"session_id": session, "command": "export ZONE=1 ACCOUNT=2 MODE=3"})
        made = await call(client, "create_workflow", stored)
        ran = await call(client, "run_workflow", {"workflow_name": "ordered", "session_id": session})
        expect(ran, success=True)
        assert list(ran["return_values"].items()) == [("WHEN", "now"), ("HOW", "well")], ran["return_values"]
        told = await call(client, "get_workflow_info", {"workflow": "ordered"})
        for answer in (made, ran, told):
            signature = answer["workflow_signature"]
            assert list(signature["arguments"]) == ["ZONE", "ACCOUNT", "MODE"], signature
            assert list(signature["return_values"]) == ["WHEN", "HOW"], signature
        await call(client, "exit_terminal", {"session_id": session})

    await place.every_way(case)


async def a_definition_that_succeeds_is_kept(place):
    async def case(client):
        name = f"kept_{case.count}"
        case.count += 1
        definition = {"name": name, "steps": [{"type": "shell", "command": f"echo {name}"}]}
        ran = await call(client, "run_workflow", {"workflow_definition": definition})
        expect(ran, success=True, workflow_saved=True, saved_workflow_name=name)
        expect(ran, message=f"the definition is stored as `{name}`")
        assert name in ran["available_workflows"]
        again = await call(client, "run_workflow", {"workflow_definition": {**definition, "name": "other"}})
        expect(again, success=True, workflow_saved=False, saved_workflow_name=name)
        assert "already" in again["message"] and f"`{name}`" in again["message"], again
        assert "other" not in again["available_workflows"]
        not_kept = {"name": "passing", "steps": [{"type": "shell", "command": "echo passing"}]}
        ran = await call(client, "run_workflow", {"workflow_definition": not_kept, "save_on_success": False})
        expect(ran, success=True, workflow_saved=False, saved_workflow_name=None)
        expect(ran, message=None)
        assert "passing" not in ran["available_workflows"]
        # One that is over with its start.
        at_once = {"name": f"{name}_at_once", "steps": [{"id": name, "type": "set_state", "updates": {name: 1}}]}
        ran = await call(client, "run_workflow", {"workflow_definition": at_once})
        expect(ran, success=True, workflow_saved=True, saved_workflow_name=at_once["name"])
        told = await call(client, "get_workflow_info", {"workflow": at_once["name"]})
        expect(told, run_count=1)

    case.count = 0
    await place.every_way(case)


async def a_definition_is_kept_by_whoever_ends_its_run(place):
    """The server that began the run is gone by then."""
    def definition(name):
        prompt = {"id": "name", "type": "prompt", "kind": "text", "message": "Who?", "output_to": "name"}
        return {"name": name, "steps": [prompt, {"type": "shell", "command": f"echo {name}"}]}

    runs = {}
    async with place.serve() as served:
        async with served.connect() as client:
            for name in ("by_server", "by_command", "by_agent", "unwanted", "cancelled"):
                given = {"workflow_definition": definition(name), "save_on_success": name != "unwanted"}
                ran = await call(client, "run_workflow", given)
                expect(ran, status="waiting", workflow_saved=False, saved_workflow_name=None)
                runs[name] = ran["workflow_id"]
        served.process.kill()
        await served.process.wait()
    await place.flow("answer", runs["by_command"], '"Ann"')
    async with place.connect() as client:
        ended = await call(client, "get_workflow_status", {"workflow_id": runs["by_command"]})
        expect(ended, status="completed", workflow_saved=True, saved_workflow_name="by_command")
        for name in ("by_server", "unwanted"):
            answer = {"workflow_id": runs[name], "step_id": "name", "result": "Ann"}
            await call(client, "submit_step_result", answer)
            ended = await call(client, "get_workflow_status", {"workflow_id": runs[name], "wait_seconds": 300})
            expect(ended, status="completed")
        answered = await call(client, "submit_result", {"workflow_id": runs["by_agent"], "result": "Ann"})
        expect(answered, status="completed")
        await call(client, "complete_workflow", {"workflow_id": runs["cancelled"], "status": "cancelled"})
        own = await call(client, "list_workflows", {"include_global": False})
        assert [it["name"] for it in own["workflows"]] == ["by_agent", "by_command", "by_server"], own


async def workflows_are_stored_looked_at_and_deleted(place):
    async def case(client):
        definition = {
            "name": "build",
            "description": "Builds",
            "arguments": {"ROOT": {"name": "ROOT", "description": "Where", "required": True}},
            "return_values": {"STATUS": {"name": "STATUS", "description": "How it went"}},
            "initial_state": "start",
            "states": {"start": {"action": {"tool": "send_input", "params": {"input_text": "export STATUS=ok\n"}}}},
        }
        made = await call(client, "create_workflow", {"workflow_definition": definition})
        expect(made, success=True, workflow_name="build", validation_errors=[], error=None)
        assert made["stored_file"].endswith(".flow/workflows/build.json")
        expect(made["workflow_signature"], description="Builds")
        expect(made["workflow_signature"]["arguments"]["ROOT"], required=True, description="Where")
        twice = await call(client, "create_workflow", {"workflow_definition": definition})
        expect(twice, success=False, workflow_name="build")
        assert "overwrite_existing" in twice["error"]
        over = {"workflow_definition": definition, "overwrite_existing": True}
        expect(await call(client, "create_workflow", over), success=True)
        text = "name: from_text\nsteps:\n  - {type: shell, command: make}\n"
        expect(await call(client, "create_workflow", {"workflow_definition": text}), success=True)
        wrong = "name: wrong\ninitial_state: strt\nstates:\n  start: {action: {tool: send_inpt, params: {}}}\n"
        wrong = await call(client, "create_workflow", {"workflow_definition": wrong})
        expect(wrong, success=False, stored_file="", workflow_signature=None)
        assert len(wrong["validation_errors"]) == 2, wrong
        assert any("definition:2:16" in error and "start" in error for error in wrong["validation_errors"]), wrong
        reason = await refused(client, "create_workflow", {"definition": {}})
        assert "workflow_definition" in reason, reason

        info = await call(client, "get_workflow_info", {"workflow": "build"})
        expect(info, name="build", description="Builds", source="project", state_count=1, run_count=0, last_run=None)
        assert info["found_at"].endswith("build.json") and info["created"]
        original = await call(client, "get_workflow_definition", {"workflow": "from_text"})
        expect(original, name="from_text", text=text, resolved_imports=[])
        assert original["definition"]["steps"] == [{"type": "shell", "command": "make"}]
        assert original["loaded_from"].endswith("from_text.yaml")
        for tool in ("get_workflow_info", "get_workflow_definition"):
            reason = await refused(client, tool, {"workflow": "buidl"})
            assert "did you mean `build`?" in reason and "from_text" in reason, reason
            assert "`workflow`" in await refused(client, tool, {})

        for name in ("build", "from_text"):
            gone = await call(client, "delete_workflow", {"workflow_name": name})
            expect(gone, success=True, workflow_name=name)
        builtin = await call(client, "delete_workflow", {"workflow_name": "plan"})
        assert not builtin["success"] and builtin["error"], builtin
        unknown = await call(client, "delete_workflow", {"workflow_name": "build"})
        assert not unknown["success"] and "there is no workflow `build`" in unknown["error"]
        assert "`workflow_name`" in await refused(client, "delete_workflow", {"workflow": "x"})

    await place.every_way(case)


async def the_schema_is_that_of_the_command_line(place):
    printed = json.loads(await place.flow("schema"))

    async def case(client):
        schema = await call(client, "get_workflow_schema")
        assert schema["json_schema"] == printed
        assert {"send_input", "await_output", "run_workflow"} <= set(schema["available_tools"])
        # What only agents call is no tool of a workflow.
        assert not {"flow", "create_workflow", "start_workflow"} & set(schema["available_tools"])
        assert "**await_output**" in schema["documentation"] and schema["schema_version"]
        short = await call(client, "get_workflow_schema", {"include_schema": False})
        assert short == {**schema, "json_schema": None}
        # Whoever has only the documentation can write any step.
        keys = short["documentation"]
        for key in ["`items*`", "`max_iterations*`", "`instructions*`", "`on_child_error`", "`transform`", "**type: wait**"]:
            assert key in keys, key
        assert "no parameter `x`" in await refused(client, "get_workflow_schema", {"x": 1})

    await place.every_way(case)


async def values_are_kept_between_connections(place):
    async with place.connect() as client:
        expect(await call(client, "save_to_memory", {"key": "research_1", "value": {"a": [1, None]}}), success=True)
        assert "`key`" in await refused(client, "save_to_memory", {"value": 1})

    async def case(client):
        kept = await call(client, "load_from_memory", {"key": "research_1"})
        expect(kept, success=True, value={"a": [1, None]})
        missing = await call(client, "load_from_memory", {"key": "research_2"})
        assert not missing["success"] and "research_1" in missing["error"], missing
        assert "`key`" in await refused(client, "load_from_memory", {"key": 5})
        keys = await call(client, "list_memory_keys", {"prefix": "research_"})
        expect(keys, keys=["research_1"], total=1)
        expect(await call(client, "list_memory_keys", {"prefix": "x"}), keys=[])
        assert "`prefix`" in await refused(client, "list_memory_keys", {"prefix": 1})

    await place.every_way(case)


async def a_person_is_asked_through_the_client(place):
    place.workflow("ask", ASK)
    asked = []

    async def elicit(_, params):
        asked.append(params.message)
        schema = params.requested_schema
        if "input" in schema["properties"]:
            return accept(input="Ann")
        assert schema["properties"]["confirmed"]["type"] == "boolean"
        return accept(confirmed=True)

    async def case(client):
        asked.clear()
        ran = await call(client, "run_workflow", {"workflow_name": "ask"})
        expect(ran, success=True, output={"name": "Ann", "sure": True})
        assert asked == ["Your name?", "Sure?"], asked
        ran = await call(client, "flow", {"flow_name": "ask"})
        expect(ran, success=True, output={"name": "Ann", "sure": True})
        asked.clear()
        ran = await call(client, "flow", {"flow_name": "ask", "interactive": False})
        expect(ran, success=False, status="waiting")
        assert asked == []

    await place.every_way(case, elicitation_callback=elicit)


async def a_person_who_declines_or_closes_the_form_is_heard(place):
    place.workflow("ask", ASK)

    async def decline(_, params):
        return types.ElicitResult(action="decline")

    async def refuses(client):
        ran = await call(client, "run_workflow", {"workflow_name": "ask"})
        expect(ran, success=False, status="failed")

    async def close(_, params):
        return types.ElicitResult(action="cancel")

    async def waits(client):
        ran = await call(client, "run_workflow", {"workflow_name": "ask"})
        expect(ran, success=False, status="waiting", error=None)
        expect(ran["pending"], type="prompt", message="Your name?")

    await place.every_way(refuses, elicitation_callback=decline)
    await place.every_way(waits, elicitation_callback=close)


async def a_run_that_nobody_can_answer_waits_and_goes_on_by_the_command_line(place):
    place.workflow("ask", ASK)

    async def case(client):
        ran = await call(client, "run_workflow", {"workflow_name": "ask"})
        expect(ran, success=False, status="waiting")
        expect(ran["pending"], step="name", type="prompt", kind="text", message="Your name?")
        run = ran["workflow_id"]
        await place.flow("answer", run, "Ann", code=5)
        stands = await call(client, "get_workflow_status", {"workflow_id": run})
        expect(stands, status="waiting", workflow_name="ask", state={"name": {"input": "Ann"}})
        expect(stands["pending"], step="sure")
        await place.flow("answer", run, "yes")
        stands = await call(client, "get_workflow_status", {"workflow_id": run})
        expect(stands, status="completed", output={"name": "Ann", "sure": True}, pending=None)
        reason = await refused(client, "get_workflow_status", {"workflow_id": "r-nothing"})
        assert "r-nothing" in reason, reason
        assert "`workflow_id`" in await refused(client, "get_workflow_status", {})

    await place.every_way(case)


async def a_long_run_outlives_its_call(place):
    place.workflow("hang", HANG)

    async def case(client):
        go = place.project / "go"
        go.unlink(missing_ok=True)
        ran = await call(client, "run_workflow", {"workflow_name": "hang", "wait_seconds": 0.2})
        expect(ran, success=False, status="running", error=None)
        run = ran["workflow_id"]
        expect(await call(client, "get_workflow_status", {"workflow_id": run}), status="running")
        following = asyncio.create_task(
            call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 300})
        )
        go.touch()
        expect(await following, status="completed", output={"said": "went"})

    await place.every_way(case)


async def a_cancelled_call_cancels_its_run(place):
    place.workflow("hang", HANG)

    async def case(client):
        progressed = asyncio.Event()
        told = []

        async def progress(_progress, _total, message):
            told.append(message)
            progressed.set()

        waiting = asyncio.create_task(
            client.call_tool("run_workflow", {"workflow_name": "hang"}, progress_callback=progress)
        )
        await progressed.wait()
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            pass
        runs = json.loads(await place.flow("runs", "--format", "json"))["runs"]
        run = runs[0]["run_id"]
        while True:
            stands = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 5})
            if stands["status"] != "running":
                break
        expect(stands, status="cancelled")
        ends = [message for message in told if message.startswith("Workflow cancelled")]
        assert len(ends) <= 1, told

    await place.every_way(case)


async def progress_is_told_in_order_with_details(place):
    place.workflow("two_states", STATES)
    place.workflow("fails", "steps:\n  - {id: bad, type: shell, command: exit 3}\n")

    async def case(client):
        told = []

        async def progress(done, total, message):
            told.append((done, total, message))

        ran = await call(client, "flow", {"flow_name": "two_states"}, progress_callback=progress)
        expect(ran, success=True)
        assert [message for _, _, message in told] == [
            "Starting workflow: two_states",
            "Entering state: first",
            "Completed state: first",
            "Entering state: second",
            "Completed state: second",
            "Completed workflow: two_states",
        ], told
        numbers = [done for done, _, _ in told]
        assert numbers == sorted(set(numbers)), numbers
        assert told[-1][0] == told[-1][1]
        told.clear()
        ran = await call(client, "run_workflow", {"workflow_name": "fails"}, progress_callback=progress)
        expect(ran, success=False)
        assert [message for _, _, message in told] == [
            "Starting workflow: fails",
            "Entering state: bad",
            "Failed state: bad",
            "Workflow failed: fails",
        ], told
        told.clear()
        await call(client, "flow", {"flow_name": "two_states", "quiet": True}, progress_callback=progress)
        assert told == []

    await place.every_way(case)


async def every_state_is_told_however_fast_they_pass(place):
    count = 3000
    place.workflow("fast", f"""\
limits: {{max_steps: 10000}}
state: {{n: 0}}
steps:
  - id: again
    type: while
    if: "{{{{ state.n < {count} }}}}"
    max_iterations: {count}
    steps:
      - {{id: one, type: set_state, updates: {{n: "{{{{ state.n + 1 }}}}"}}}}
""")
    told = []

    async def heard(message):
        if getattr(message, "method", None) == "notifications/progress":
            told.append(message.params)

    async def case(client):
        async def progress(*_):
            pass

        told.clear()
        ran = await call(client, "flow", {"flow_name": "fast"}, progress_callback=progress)
        expect(ran, success=True)
        # What came before this answer has been told.
        await call(client, "list_workflows")
        messages = [one.message for one in told]
        pair = ["Entering state: one", "Completed state: one"]
        assert messages == [
            "Starting workflow: fast",
            "Entering state: again",
            *(count * pair),
            "Completed state: again",
            "Completed workflow: fast",
        ], (len(messages), messages[:5], messages[-5:])
        numbers = [one.progress for one in told]
        assert numbers == sorted(set(numbers))

    await place.every_way(case, message_handler=heard)


async def details_of_progress_are_in_its_meta(place):
    place.workflow("hello", HELLO.replace("default: world", "default: world, secret: true"))
    told = []

    async def heard(message):
        params = getattr(message, "params", None)
        if getattr(message, "method", None) == "notifications/progress":
            told.append(params.model_dump(by_alias=True))

    async def case(client):
        told.clear()

        async def progress(*_):
            pass

        await call(client, "flow", {"flow_name": "hello"}, progress_callback=progress)
        metas = [one["_meta"] for one in told]
        assert len(metas) == 4, told
        expect(metas[0], flow_name="hello", initial_state="greet")
        assert all(meta["run_id"].startswith("r-") for meta in metas)
        assert "world" not in json.dumps(told), "a secret is told"
        expect(metas[1], state_id="greet")
        expect(metas[2], state_id="greet", next_state=None, status="success")
        expect(metas[3], status="completed", final_state="completed")

    await place.every_way(case, message_handler=heard)


async def progress_goes_on_with_a_run_that_has_waited(place):
    place.workflow("asks", """\
steps:
  - {id: q, type: prompt, kind: text, message: "Name?", output_to: a}
  - {id: all, type: foreach, items: [1], task: one}
  - {id: last, type: delegate, instructions: "Look.", output_to: b}
tasks:
  one: {inputs: {n: integer}, steps: [{id: ping, type: set_state, updates: {n: 1}}]}
""")
    place.workflow("retries", "steps:\n  - {id: try, type: shell_command, command: \"test -e go\"}\n")
    after = [
        "Completed state: q",
        "Entering state: all",
        "Entering state: all.0/ping",
        "Completed state: all.0/ping",
        "Completed state: all",
        "Entering state: last",
    ]

    async def case(client):
        told = []

        async def progress(done, total, message):
            told.append((done, total, message))

        async def heard(tool, arguments):
            told.clear()
            answer = await call(client, tool, arguments, progress_callback=progress)
            # What came before this answer has been told.
            await call(client, "list_workflows")
            numbers = [done for done, _, _ in told]
            assert numbers == sorted(set(numbers)), numbers
            return answer, [message for _, _, message in told]

        for tool, arguments in [
            ("flow", {"flow_name": "asks", "interactive": False}),
            ("start_workflow", {"workflow": "asks"}),
        ]:
            begun, messages = await heard(tool, arguments)
            assert messages == ["Starting workflow: asks", "Entering state: q"], messages
            run = begun["workflow_id"]
            _, messages = await heard("submit_result", {"workflow_id": run, "result": "Al"})
            assert messages == after, messages
            _, messages = await heard("get_next_step", {"workflow_id": run})
            assert messages == [], messages
            _, messages = await heard("submit_step_result", {"workflow_id": run, "step_id": "last", "result": "Seen."})
            assert messages == ["Completed state: last", "Completed workflow: asks"], messages
        go = place.project / "go"
        go.unlink(missing_ok=True)
        begun, _ = await heard("start_workflow", {"workflow": "retries"})
        expect(begun, status="failed")
        go.touch()
        resumed, messages = await heard("resume_workflow", {"workflow_id": begun["workflow_id"]})
        expect(resumed, status="completed")
        assert messages == ["Entering state: try", "Completed state: try", "Completed workflow: retries"], messages

    await place.every_way(case)


async def progress_tells_all_that_several_answers_do(place):
    place.workflow("all", """\
steps:
  - {id: all, type: foreach, items: [1, 2, 3], task: one, output_to: said}
outputs: {said: "{{ state.said }}"}
tasks:
  one:
    inputs: {n: integer}
    steps:
      - {id: q, type: prompt, kind: text, message: "Name {{ inputs.n }}?", output_to: a}
      - {id: r, type: return, value: "{{ state.a.input }}"}
""")
    steps = ["all", *(f"all.{item}/{step}" for item in range(3) for step in "qr")]

    async def elicit(_, params):
        return accept(input=params.message)

    async def case(client):
        told = []

        async def progress(_done, _total, message):
            told.append(message)

        ran = await call(client, "run_workflow", {"workflow_name": "all"}, progress_callback=progress)
        expect(ran, output={"said": ["Name 1?", "Name 2?", "Name 3?"]})
        await call(client, "list_workflows")
        for step in steps:
            assert told.count(f"Entering state: {step}") == 1, (step, told)
            assert told.count(f"Completed state: {step}") == 1, (step, told)

    await place.every_way(case, elicitation_callback=elicit)


async def log_messages_tell_who_gave_no_token(place):
    place.workflow("hello", HELLO)
    heard = []

    async def log(params):
        heard.append(params.data["message"])

    async def case(client):
        heard.clear()
        await call(client, "flow", {"flow_name": "hello"})
        assert heard[0] == "Starting workflow: hello" and heard[-1] == "Completed workflow: hello", heard

    await place.every_way(case, logging_callback=log, log_level="info")
    # Who does not want them is not told, in either era.
    async with place.connect("stdio", "auto", logging_callback=log) as client:
        heard.clear()
        await call(client, "flow", {"flow_name": "hello"})
        assert heard == []
    async with place.connect("stdio", "legacy", logging_callback=log) as client:
        place.workflow("bad", "name: bad\nsteps: [{id: a, type: shell, command: 'false'}]\n")
        for level in ("notice", "warning", "error"):
            heard.clear()
            await client.set_logging_level(level)
            await call(client, "flow", {"flow_name": "hello"})
            assert heard == [], (level, heard)
            # What a failure says is an error.
            await call(client, "flow", {"flow_name": "bad"})
            assert heard == ["Workflow failed: bad"], (level, heard)
        heard.clear()
        await client.set_logging_level("critical")
        await call(client, "flow", {"flow_name": "bad"})
        assert heard == [], heard


async def clients_hear_of_workflows_that_come_and_go(place):
    for transport in ("stdio", "http"):
        changed = asyncio.Event()

        async def heard(message):
            if getattr(message, "method", None) == "notifications/tools/list_changed":
                changed.set()

        async with place.connect(transport, "legacy", message_handler=heard) as client:
            await client.list_tools()
            place.workflow("fresh", HELLO.replace("hello", "fresh", 1))
            await changed.wait()
            changed.clear()
            flow = next(tool for tool in (await client.list_tools()).tools if tool.name == "flow")
            assert "fresh" in flow.input_schema["properties"]["flow_name"]["enum"]
            await call(client, "delete_workflow", {"workflow_name": "fresh"})
            await changed.wait()
        async with place.connect(transport, "auto") as client:
            async with client.listen(tools_list_changed=True) as subscription:
                await client.list_tools()
                definition = "name: fresh\nsteps: [{type: shell, command: make}]\n"
                await call(client, "create_workflow", {"workflow_definition": definition})
                await anext(aiter(subscription))
            await call(client, "delete_workflow", {"workflow_name": "fresh"})


async def resources_prompts_and_completion_work(place):
    place.workflow("hello", HELLO)

    async def case(client):
        resources = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert {"workflow://hello", "workflow://plan", "schema://workflow"} <= resources
        read = await client.read_resource("workflow://hello")
        assert read.contents[0].text == HELLO
        schema = json.loads((await client.read_resource("schema://workflow")).contents[0].text)
        assert schema["$schema"]
        run = (await call(client, "flow", {"flow_name": "hello"}))["workflow_id"]
        stands = json.loads((await client.read_resource(f"run://{run}")).contents[0].text)
        expect(stands, workflow_id=run, status="completed")
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["workflow://{name}", "run://{id}"]
        try:
            await client.read_resource("workflow://hullo")
            raise AssertionError("there is no such workflow")
        except Exception as error:
            assert "did you mean `hello`?" in str(error), error
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        # `run` alone is enough.
        assert not prompts["workflow"].arguments[0].required
        prompt = await client.get_prompt("workflow", {"workflow": "hello", "inputs": "who=Ann"})
        text = prompt.messages[0].content.text
        for part in ("`hello`", "start_workflow", "get_next_step", "80 %", "checkpoint_workflow", "resume_workflow", "who=Ann"):
            assert part in text, part
        for arguments, told in (
            ({"workflow": "hullo"}, ("hullo", "did you mean `hello`?")),
            ({"workflow": "hello", "inputs": "whom=Ann"}, ("`inputs` of `hello`", "whom", "it takes `who`")),
            ({"workflow": "hello", "inputs": '{"who": 3}'}, ("`inputs` of `hello`", "`who`")),
            ({"workflow": "hello", "inputs": "{who"}, ("not a JSON object",)),
            ({"workflow": "hello", "inputs": "Ann"}, ("`Ann`", "key=value")),
            ({"workflow": "hello", "who": "Ann"}, ("`who`", "`inputs`")),
        ):
            try:
                await client.get_prompt("workflow", arguments)
            except Exception as error:
                assert all(part in str(error) for part in told), (arguments, error)
                assert error.code == -32602, error
            else:
                raise AssertionError(f"{arguments} was answered")
        reference = types.PromptReference(type="ref/prompt", name="workflow")
        names = await client.complete(reference, {"name": "workflow", "value": "he"})
        assert names.completion.values == ["hello"]
        inputs = await client.complete(
            reference, {"name": "inputs", "value": ""}, context_arguments={"workflow": "hello"}
        )
        assert inputs.completion.values == ["who="]
        template = types.ResourceTemplateReference(type="ref/resource", uri="run://{id}")
        runs = await client.complete(template, {"name": "id", "value": run[:10]})
        assert run in runs.completion.values

    await place.every_way(case)


async def prompt_files_are_prompts_and_tools_alike(place):
    place.write(".flow/prompts/review.md", """\
---
description: Reviews a branch
arguments:
  branch: {type: string, required: true, description: What to review}
  depth: {type: integer, default: 1}
---
Review {{ branch }} to depth {{ depth + 1 }}.
""")
    place.write(".flow/prompts/broken.md", "---\narguments: [\n---\nText\n")
    place.write(".flow/agents/critic.md", "---\ndescription: Criticises\nmodel: large\n---\nYou criticise.\n")

    async def failed(asking):
        try:
            await asking
        except Exception as error:
            return str(error)
        raise AssertionError("it was answered")

    async def case(client):
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert {"workflow", "review", "broken"} <= set(prompts)
        review = prompts["review"]
        assert review.description == "Reviews a branch"
        assert [(it.name, it.required) for it in review.arguments] == [("branch", True), ("depth", False)]
        assert review.arguments[0].description == "What to review"
        # Texts are read by the types of the arguments.
        got = await client.get_prompt("review", {"branch": "a b", "depth": "2"})
        assert got.description == "Reviews a branch"
        assert got.messages[0].content.text == "Review a b to depth 3.\n"
        assert "branch" in await failed(client.get_prompt("review", {}))
        assert "depth" in await failed(client.get_prompt("review", {"branch": "b", "depth": "deep"}))
        assert "broken" in await failed(client.get_prompt("broken", {}))
        unknown = await failed(client.get_prompt("revew", {}))
        assert "revew" in unknown and "review" in unknown, unknown
        assert "`workflow`" in await failed(client.get_prompt("workflow", {}))

        asked = await call(client, "prompt", {"prompt_name": "review", "parameters": {"branch": "b"}})
        expect(asked, success=True, text="Review b to depth 2.\n", description="Reviews a branch")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool, names in (("agent", {"list", "critic"}), ("prompt", {"list", "broken", "review"})):
            properties = tools[tool].input_schema["properties"]
            assert names <= set(properties[f"{tool}_name"]["enum"]), properties
            table = await call(client, tool, {f"{tool}_name": "list", "format": "table"})
            assert "DESCRIPTION" in table["listing"], table
            yaml = await call(client, tool, {f"{tool}_name": "list", "format": "yaml", "verbose": True})
            assert f"{tool}s:" in yaml["listing"], yaml
        listed = await call(client, "prompt", {"prompt_name": "list", "verbose": True})
        assert [it["name"] for it in listed["prompts"]] == ["broken", "review"], listed
        assert listed["prompts"][0]["error"]
        asked = await call(client, "agent", {"agent_name": "critic"})
        expect(asked, success=True, text="You criticise.\n", settings={"model": "large"})
        for tool, name in (("agent", "critik"), ("prompt", "revew")):
            unknown = await call(client, tool, {f"{tool}_name": name})
            assert not unknown["success"] and name in unknown["error"], unknown
            assert f"`{tool}_name`" in await refused(client, tool, {})
            assert f"`{tool}_name`" in await refused(client, tool, {f"{tool}_name": 1})
        broken = await call(client, "prompt", {"prompt_name": "broken"})
        assert not broken["success"] and broken["error"], broken
        reason = await refused(client, "prompt", {"prompt_name": "review", "parameters": {"branch": "b", "deep": 1}})
        assert "`deep`" in reason, reason

    await place.every_way(case)


async def a_long_log_is_read_in_pages(place):
    count = 500
    place.workflow("long", f"""\
name: long
limits: {{max_steps: 1000}}
state: {{n: 0}}
steps:
  - id: again
    type: while
    if: "{{{{ state.n < {count} }}}}"
    max_iterations: 1000
    steps:
      - {{id: count, type: set_state, updates: {{n: "{{{{ state.n + 1 }}}}"}}}}
""")

    async def case(client):
        ran = await call(client, "run_workflow", {"workflow_name": "long", "max_states": 1000})
        expect(ran, success=True)
        # The last of it comes first, then all that was before.
        log, cursor, pages = [], ran["next_log_cursor"], 1
        assert cursor is not None and ran["execution_log"][-1]["state"] == "again"
        while cursor is not None:
            page = await call(client, "get_workflow_status", {"workflow_id": ran["workflow_id"], "log_cursor": cursor})
            assert page["execution_log"], page
            log, cursor, pages = log + page["execution_log"], page["next_log_cursor"], pages + 1
        assert pages > 2, pages
        log += ran["execution_log"]
        # The same from its start.
        whole, cursor = [], ""
        while cursor is not None:
            since = {"log_cursor": cursor} if cursor else {}
            page = await call(client, "get_workflow_status", {"workflow_id": ran["workflow_id"], **since})
            whole, cursor = whole + page["execution_log"], page["next_log_cursor"]
        assert whole == log
        assert [entry["state"] for entry in log if entry["state"] == "count"] == ["count"] * count, len(log)
        times = [entry["timestamp"] for entry in log if entry["state"] == "count"]
        assert times == sorted(times)
        reason = await refused(client, "get_workflow_status", {"workflow_id": ran["workflow_id"], "log_cursor": "next"})
        assert "`log_cursor`" in reason, reason

    await place.every_way(case)


async def notifications_stop_when_the_run_or_its_call_does(place):
    place.workflow("two_states", STATES)
    place.workflow("hang", HANG)
    told = []

    async def heard(message):
        if getattr(message, "method", None) == "notifications/progress":
            told.append(message.params.message)

    async def case(client):
        async def progress(*_):
            pass

        async def quiet():
            """What came before these answers has been told."""
            for _ in range(3):
                await call(client, "list_workflows")

        told.clear()
        await call(client, "flow", {"flow_name": "two_states"}, progress_callback=progress)
        await quiet()
        assert told[0] == "Starting workflow: two_states" and told[-1] == "Completed workflow: two_states", told
        assert len(told) == 6, told
        # A run that goes on after its call was answered is told to nobody.
        go = place.project / "go"
        go.unlink(missing_ok=True)
        told.clear()
        ran = await call(client, "flow", {"flow_name": "hang", "wait_seconds": 0}, progress_callback=progress)
        expect(ran, status="running")
        await quiet()
        before = list(told)
        assert before[:1] == ["Starting workflow: hang"], before
        go.touch()
        ended = await call(client, "get_workflow_status", {"workflow_id": ran["workflow_id"], "wait_seconds": 300})
        expect(ended, status="completed")
        await quiet()
        assert told == before, told

    await place.every_way(case, message_handler=heard)


async def toolsets_and_read_only_narrow_what_is_offered(place):
    async def names(*arguments):
        async with place.connect(arguments=arguments) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    everything = await names()
    workflow = await names("--toolsets", "workflow")
    assert {"flow", "run_workflow", "save_to_memory", "get_workflow_status"} <= workflow
    assert workflow < everything
    # Whoever can start runs can stop them, and close what they leave open.
    for toolset in ("workflow", "agent"):
        assert {"list_terminal_sessions", "exit_terminal", "complete_workflow"} <= await names("--toolsets", toolset)
    assert not {"open_terminal", "send_input"} & workflow
    async with place.connect(arguments=["--toolsets", "workflow"]) as client:
        opening = {"initial_state": "open", "states": {"open": {"action": {"tool": "open_terminal"}}}}
        ran = await call(client, "run_workflow", {"workflow_definition": opening, "save_on_success": False})
        expect(ran, success=True)
        listed = await call(client, "list_terminal_sessions", {})
        assert [it["session_id"] for it in listed["sessions"]] == [ran["session_id"]], listed
        expect(await call(client, "exit_terminal", {"session_id": ran["session_id"]}), success=True)
    reading = await names("--read-only")
    assert {"list_workflows", "get_workflow_status", "load_from_memory"} <= reading
    assert not {"flow", "run_workflow", "create_workflow", "save_to_memory", "send_input"} & reading
    async with place.connect(arguments=["--read-only"]) as client:
        try:
            await client.call_tool("run_workflow", {"workflow_name": "plan"})
            raise AssertionError("it is not offered")
        except Exception as error:
            assert "run_workflow" in str(error), error
    for arguments, tool, why in (
        (["--toolsets", "agent"], "create_workflow", "other --toolsets"),
        (["--toolsets", "workflow"], "start_workflow", "other --toolsets"),
        (["--read-only"], "start_workflow", "--read-only"),
    ):
        async with place.connect(arguments=arguments) as client:
            try:
                await client.call_tool(tool, {})
                raise AssertionError("it is not offered")
            except Exception as error:
                assert f"`{tool}` is not offered: the server was started with {why}" in str(error), error


async def as_many_states_are_executed_as_the_definition_or_the_call_allows(place):
    def counting(name, limits):
        place.workflow(name, f"""\
name: {name}
{limits}
state: {{n: 0}}
initial_state: again
states:
  again:
    action: {{type: set_state, updates: {{n: "{{{{ state.n + 1 }}}}"}}}}
    transitions: [{{condition: always, next_state: again}}]
""")

    counting("more", "limits: {max_steps: 150}")
    counting("less", "limits: {max_steps: 10}")
    counting("plain", "")
    place.workflow("steps", """\
name: steps
state: {n: 0}
outputs: {n: "{{ state.n }}"}
steps:
  - {id: again, type: while, condition: "{{ state.n < 300 }}", max_iterations: 1000, body: [{type: set_state, updates: {n: "{{ state.n + 1 }}"}}]}
""")
    async with place.connect() as client:
        for name, executed in (("more", 150), ("less", 10), ("plain", 100)):
            ran = await call(client, "run_workflow", {"workflow_name": name})
            expect(ran, status="failed", states_executed=executed)
            assert "`limits.max_steps`" in ran["error"] and "`max_states`" in ran["error"], ran["error"]
        expect(await call(client, "run_workflow", {"workflow_name": "steps"}), status="completed", output={"n": 300})
        # Given, it counts for the run, whatever the definition says.
        for name in ("more", "less", "plain", "steps"):
            ran = await call(client, "run_workflow", {"workflow_name": name, "max_states": 20})
            expect(ran, status="failed", states_executed=20)
            assert "`max_states`" in ran["error"] and "limits" not in ran["error"], ran["error"]


async def the_recursion_depth_is_that_of_the_deepest_call(place):
    place.workflow("down", """\
name: down
inputs: {n: {type: integer, required: true}}
steps:
  - {id: more, type: condition, if: "{{ inputs.n > 0 }}", then: [{id: sub, type: call, workflow: down, inputs: {n: "{{ inputs.n - 1 }}"}}]}
""")
    async with place.connect() as client:
        for n in (0, 1, 4):
            ran = await call(client, "run_workflow", {"workflow_name": "down", "inputs": {"n": n}})
            expect(ran, status="completed", recursion_depth=n)


async def the_log_says_what_failed_and_what_happened_last(place):
    place.workflow("endless", """\
name: endless
initial_state: a
states:
  a: {action: {type: shell, command: echo one}, transitions: [{condition: success, next_state: b}]}
  b: {action: {type: shell, command: echo two}, transitions: [{condition: success, next_state: a}]}
""")
    place.workflow("final", """\
name: final
initial_state: last
states:
  last: {action: {type: shell, command: "echo broken >&2; exit 3"}}
""")
    place.workflow("missed", """\
name: missed
initial_state: a
states:
  a: {action: {type: shell, command: exit 3}, transitions: [{condition: success, next_state: b}]}
  b: {action: {type: shell, command: echo two}}
""")
    place.workflow("went", """\
name: went
initial_state: a
states:
  a: {action: {type: shell, command: echo fine}, transitions: [{condition: failure, next_state: b}]}
  b: {action: {type: shell, command: echo two}}
""")
    place.workflow("judged", """\
name: judged
initial_state: a
states:
  a:
    action: {type: shell, command: echo fine}
    transitions: [{condition: {description: it is fine}, next_state: b}, {condition: {description: it is not}, next_state: a}]
  b: {action: {type: shell, command: echo two}}
""")
    async with place.connect() as client:
        async def ran(name):
            return await call(client, "run_workflow", {"workflow_name": name})

        # As many entries as states, and the error.
        log = (await ran("endless"))["execution_log"]
        assert [entry.get("state") for entry in log] == ["a", "b"] * 50 + [None], len(log)
        expect(log[-1], phase="error")
        for name in ("final", "missed"):
            log = (await ran(name))["execution_log"]
            expect(log[0], tool_success=False)
            assert "exit code 3" in log[0]["error"], log
        log = (await ran("went"))["execution_log"]
        expect(log[0], tool_success=True, error=None)
        expect(log[0]["transition"], condition_met=False)
        # A state whose transition is judged has been executed.
        waits = await ran("judged")
        expect(waits, status="waiting")
        log = waits["execution_log"]
        assert len(log) == 1, log
        expect(log[0], state="a", tool_success=True, transition=None)
        assert log[0]["result"]["stdout"] == "fine\n", log
        run = {"workflow_id": waits["workflow_id"]}
        assert (await call(client, "get_workflow_status", run))["execution_log"] == log
        await call(client, "submit_step_result", {**run, "step_id": waits["pending"]["step_id"], "result": {"choice": 0}})
        log = (await call(client, "get_workflow_status", run))["execution_log"]
        assert [entry["state"] for entry in log] == ["a", "b"], log
        expect(log[0]["transition"], to_state="b", condition_met=True)


async def a_run_that_sleeps_is_said_to_sleep_everywhere(place):
    place.workflow("nap", "name: nap\nsteps:\n  - {id: a, type: shell, command: 'true'}\n  - {id: z, type: wait, duration_seconds: 86400}\n")
    place.workflow("outer", "name: outer\nsteps: [{id: sub, type: call, workflow: nap}]\n")

    async def stands(client, run):
        status = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 0})
        while status["status"] == "running":
            status = await call(client, "get_workflow_status", {"workflow_id": run, "wait_seconds": 0})
        return status

    runs = {}
    async with place.connect() as client:
        started = {
            "nap": await call(client, "flow", {"flow_name": "nap", "wait_seconds": 0}),
            "outer": await call(client, "run_workflow", {"workflow_name": "outer", "wait_seconds": 0}),
            "agent": await call(client, "start_workflow", {"workflow": "nap", "wait_seconds": 0}),
        }
        run = started["agent"]["workflow_id"]
        turn = await call(client, "submit_step_result", {"workflow_id": run, "step_id": "a"})
        expect(turn, status="sleeping")
        for name, ran in started.items():
            status = await stands(client, ran["workflow_id"])
            expect(status, status="sleeping", alive=True)
            assert status["wake_at"], status
            runs[name] = (ran["workflow_id"], status["wake_at"])
        listed = json.loads(await place.flow("runs", "--status", "sleeping", "--format", "json"))["runs"]
        assert {run["run_id"]: run["wake_at"] for run in listed}.items() >= {runs["nap"], runs["agent"]}, listed
    # The server is gone, and it is still so.
    async with place.connect() as client:
        for name, (run, wake_at) in runs.items():
            status = await call(client, "get_workflow_status", {"workflow_id": run})
            expect(status, status="sleeping", wake_at=wake_at, alive=False)
        shown = json.loads(await place.flow("show", runs["nap"][0], "--format", "json"))
        expect(shown, status="sleeping", wake_at=runs["nap"][1])
        turn = await call(client, "get_next_step", {"workflow_id": runs["nap"][0], "wait_seconds": 0})
        expect(turn, status="sleeping", wake_at=runs["nap"][1])


async def faults_of_a_definition_given_as_an_object_are_told_by_path(place):
    definition = {
        "name": "typo", "description": "x", "initial_state": "s",
        "states": {"s": {"action": {"tool": "open_termnal"}, "transitions": [{"condition": "success", "next_state": "t"}]}},
    }
    async with place.connect() as client:
        made = await call(client, "create_workflow", {"workflow_definition": definition})
        ran = await call(client, "run_workflow", {"workflow_definition": definition})
        for told in (made["validation_errors"], ran["error"].splitlines()):
            told = "\n".join(told)
            assert "`states.s.action.tool`" in told and "`states.s.transitions[0].next_state`" in told, told
            assert "definition:" not in told, told
        # A text has lines.
        ran = await call(client, "run_workflow", {"workflow_definition": "name: typo\nsteps:\n  - {type: shel}\n"})
        assert ":3:" in ran["error"], ran["error"]


async def the_prompt_that_drives_workflows_is_offered_with_the_tools_it_names(place):
    for arguments, offered in (([], True), (["--toolsets", "agent"], True), (["--toolsets", "workflow"], False),
                               (["--toolsets", "terminal"], False), (["--read-only"], False)):
        async with place.connect(arguments=arguments) as client:
            prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert ("workflow" in prompts) == offered, (arguments, prompts)


async def a_tool_that_only_the_client_has_is_the_clients_to_call(place):
    place.workflow(
        "pr",
        """\
name: pr
steps:
  - {id: get, type: mcp_call, tool: forge.get_pr, parameters: {number: 7}, output_to: pr}
outputs:
  title: "{{ state.pr.title }}"
""",
    )

    async def case(client):
        for tool, arguments in [("flow", {"flow_name": "pr"}), ("run_workflow", {"workflow_name": "pr"})]:
            waits = await call(client, tool, arguments)
            expect(waits, status="waiting", error=None)
            pending = waits["pending"]
            expect(pending, type="mcp_call", tool="forge.get_pr", parameters={"number": 7})
            answer = {"workflow_id": waits["workflow_id"], "step_id": pending["step_id"], "result": {"title": "Mend it"}}
            turn = await call(client, "submit_step_result", answer)
            expect(turn, status="completed", output={"title": "Mend it"})

    await place.every_way(case)


async def null_is_a_value_to_remember(place):
    async with place.connect() as client:
        expect(await call(client, "save_to_memory", {"key": "nothing", "value": None}), success=True)
        keys = await call(client, "list_memory_keys")
        assert "nothing" in str(keys), keys
        assert "`value`" in await refused(client, "save_to_memory", {"key": "nothing"})


async def a_cancelled_run_is_said_to_be_cancelled_when_it_is_to_go_on(place):
    place.workflow("ask", ASK)
    async with place.connect() as client:
        ran = await call(client, "run_workflow", {"workflow_name": "ask"})
        await place.flow("cancel", ran["workflow_id"])
        reason = await refused(client, "resume_workflow", {"workflow_id": ran["workflow_id"]})
        assert "was cancelled" in reason, reason


async def a_judge_sees_the_screen_of_now_and_answers_by_name_and_the_values_come_back(place):
    definition = {
        "name": "asked",
        "return_values": {"RESULT": "what came of it"},
        "initial_state": "o",
        "states": {
            "o": {"action": {"tool": "open_terminal"}, "transitions": [{"condition": "success", "next_state": "t"}]},
            "t": {
                "action": {"tool": "send_input", "params": {"input_text": "echo $((40 + 2)) seen; export RESULT=good\n"}},
                "transitions": [
                    {"condition": {"description": "42 was seen"}, "next_state": "yes"},
                    {"condition": {"description": "it was not"}, "next_state": "no"},
                ],
            },
            "yes": {"action": {"tool": "run_command", "params": {"command": "echo $RESULT"}}},
            "no": {"action": {"type": "shell", "command": "exit 1"}},
        },
    }
    answers = [{"next_state": "yes"}, {"choice": "yes"}, {"choice": 0}, {"index": 0}, {"state": "yes"}, "yes", 0]
    async with place.connect() as client:
        for answer in answers:
            waits = await call(client, "run_workflow", {"workflow_definition": definition})
            pending = waits["pending"]
            expect(pending, type="judge")
            assert "42 seen" in pending["result"]["screen_content"], pending
            assert "next_state" in pending["instructions"], pending
            expect(pending["choices"][1], index=1, next_state="no", description="it was not")
            run = {"workflow_id": waits["workflow_id"]}
            step = (await call(client, "get_next_step", run))["step"]
            assert step["definition"]["result"]["screen_content"] == pending["result"]["screen_content"], step
            turn = await call(client, "submit_step_result", {**run, "step_id": pending["step_id"], "result": answer})
            expect(turn, status="completed", return_values={"RESULT": "good"})
            expect(await call(client, "get_next_step", run), return_values={"RESULT": "good"})
            status = await call(client, "get_workflow_status", run)
            expect(status, return_values={"RESULT": "good"}, recursion_depth=0, saved_workflow_name="asked")
            assert status["session_id"] == status["final_variables"]["session_id"], status
            assert "RESULT" in status["workflow_signature"]["return_values"], status
        assert (await call(client, "complete_workflow", run))["return_values"] == {"RESULT": "good"}
        shown = json.loads(await place.flow("show", run["workflow_id"], "--format", "json"))
        expect(shown, return_values={"RESULT": "good"}, session_id=status["session_id"])


async def a_judge_gets_the_text_that_a_state_has_read_and_the_screen_beside_it(place):
    ways = [
        {"condition": {"description": "it is done"}, "next_state": "yes"},
        {"condition": {"description": "it is not"}, "next_state": "yes"},
    ]
    typed = {"command": "seq 100 199"}
    async with place.connect() as client:
        for mode, first in {"since_input": "100", "tail": "196", "history": "100"}.items():
            params = {"content_mode": mode, **({"line_count": 5} if mode == "tail" else {})}
            definition = {
                "name": f"read_{mode}",
                "initial_state": "o",
                "states": {
                    "o": {"action": {"tool": "open_terminal"}, "transitions": [{"condition": "success", "next_state": "t"}]},
                    "t": {"action": {"tool": "run_command", "params": typed}, "transitions": [{"condition": "success", "next_state": "r"}]},
                    "r": {"action": {"tool": "get_screen_content", "params": params}, "transitions": ways},
                    "yes": {"action": {"tool": "exit_terminal"}},
                },
            }
            waits = await call(client, "run_workflow", {"workflow_definition": definition})
            result = waits["pending"]["result"]
            lines = result["screen_content"].split("\n")
            assert first in lines and "199" in lines, (mode, result)
            assert ("100" in lines) == (mode != "tail"), (mode, result)
            shown = result["screen"].split("\n")
            assert "199" in shown and "100" not in shown, (mode, result)
            turn = {"workflow_id": waits["workflow_id"], "step_id": waits["pending"]["step_id"], "result": 0}
            expect(await call(client, "submit_step_result", turn), status="completed")


async def runs_stand_under_their_own_names_and_nothing_is_called_by_how_it_came(place):
    body = {"steps": [{"id": "s", "type": "shell", "command": "echo same"}]}
    async with place.connect() as client:
        first = await call(client, "run_workflow", {"workflow_definition": {"name": "first", **body}})
        expect(first, workflow_name="first", saved_workflow_name="first", workflow_saved=True)
        second = await call(client, "run_workflow", {"workflow_definition": {"name": "second", **body}})
        expect(second, workflow_name="second", saved_workflow_name="first", workflow_saved=False)
        nameless = await call(client, "run_workflow", {"workflow_definition": body})
        expect(nameless, workflow_name=None, saved_workflow_name="first")
        runs = json.loads(await place.flow("runs", "--format", "json"))["runs"]
        assert [run["workflow"] for run in runs] == ["first", "second", "first"], runs
        bad = await call(client, "create_workflow", {"workflow_definition": {"steps": [{"type": "nonsense"}]}})
        expect(bad, success=False, workflow_name="")
        listed = await call(client, "create_workflow", {"workflow_definition": {"name": "list", **body, "outputs": {"x": "1"}}})
        assert any("_list" in warning for warning in listed["warnings"]), listed
        expect(await call(client, "flow", {"flow_name": "_list"}), status="completed")


async def a_plan_shows_variables_as_they_are_written(place):
    place.workflow("greet", """\
name: greet
initial_state: a
states:
  a:
    action: {tool: run_command, params: {command: "echo {who}", session_id: "{session_id}"}}
""")
    async with place.connect() as client:
        plan = await call(client, "flow", {"flow_name": "greet", "dry_run": True})
        assert "{who}" in str(plan["plan"]) and "variable(" not in str(plan["plan"]), plan
