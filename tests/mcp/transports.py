"""How the server begins, is reached and ends."""

import asyncio
import contextlib
import json
import os
import signal
import stat

import httpx2
from harness import FLOW, call, expect

HANG = """\
name: hang
steps:
  - {id: wait, type: shell, command: "echo $$ > pid; exec sleep 1000", timeout: 1h}
"""
# Asks twice, and does something after each answer.
BETWEEN = """\
name: between
steps:
  - {id: a, type: prompt, kind: confirm, message: "one?"}
  - {id: s1, type: shell, by: server, command: "echo s1 >> side"}
  - {id: b, type: prompt, kind: confirm, message: "two?"}
  - {id: s2, type: shell, by: server, command: "echo s2 >> side"}
"""


async def http_wants_the_token_and_a_local_page(place):
    async with place.serve() as served:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        right = {**accept, "Authorization": f"Bearer {served.token}"}
        async with httpx2.AsyncClient() as http:
            async def status(headers):
                return (await http.post(served.url, json=body, headers=headers)).status_code

            refused = await http.post(served.url, json=body, headers=accept)
            assert refused.status_code == 401 and "Bearer" in refused.headers["WWW-Authenticate"]
            assert await status({**accept, "Authorization": "Bearer guess"}) == 401
            assert await status({**accept, "Authorization": f"Basic {served.token}"}) == 401
            assert await status({**right, "Host": "evil.example"}) == 403
            assert await status({**right, "Origin": "http://evil.example"}) == 403
            assert await status({**right, "Origin": "http://localhost:3000"}) not in (401, 403)
        port = served.url.split(":")[2].split("/")[0]
        note = place.project / f".flow/serve-{port}.json"
        assert stat.S_IMODE(note.stat().st_mode) == 0o600
        assert json.loads(note.read_text())["token"] == served.token
    assert not note.exists()


async def http_takes_the_token_of_the_environment(place):
    token = "chosen-by-somebody"
    async with place.serve(env={"FLOW_TOKEN": token}) as served:
        # Whoever chose it is not told it.
        assert served.token == "as", served.token
        served.token = token
        async with served.connect() as client:
            await client.list_tools()
    place.env["FLOW_TOKEN"] = "fifteen-letters"
    await place.flow("serve", "--http", "127.0.0.1:0", code=2)


async def http_answers_what_is_no_message_as_json_rpc_does(place):
    async with place.serve() as served:
        headers = {
            "Authorization": f"Bearer {served.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        async with httpx2.AsyncClient() as client:
            for said, code in (
                ('{"jsonrpc": "2.0", "id": 1, "meth', -32700),
                ("not json", -32700),
                ('{"id": 8, "method": "ping"}', -32600),
                ("[]", -32600),
                ("", -32600),
            ):
                answer = await client.post(served.url, headers=headers, content=said)
                assert answer.status_code == 400, (said, answer)
                assert answer.json()["error"]["code"] == code, (said, answer.text)
            answer = await client.post(served.url, headers={**headers, "Content-Type": "text/plain"}, content="{}")
            assert answer.status_code == 415, answer
            answer = await client.post(served.url, headers=headers, content=" " * (17 << 20))
            assert answer.status_code == 413, answer


async def a_server_in_a_terminal_says_so_and_ends_when_it_is_told_to(place):
    ours, its = os.openpty()
    process = await asyncio.create_subprocess_exec(
        FLOW, "serve", cwd=place.project, env=place.env,
        stdin=its, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert b"MCP" in await process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
        os.close(its)


async def http_listens_on_this_machine_only(place):
    await place.flow("serve", "--http", "0.0.0.0:0", code=2)
    await place.flow("serve", "--http", "nonsense", code=2)


def gone(pid):
    """Whether a process has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


async def _begun(place, tool="flow", asked={"flow_name": "hang"}, text=HANG):
    """A server with a run under way, by hand so that its end can be watched."""
    if text:
        place.workflow("hang", text)
    process = await asyncio.create_subprocess_exec(
        FLOW, "serve", cwd=place.project, env=place.env,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    for message in (
        {"id": 1, "method": "initialize", "params": initialize},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": asked}},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    pid = place.project / "pid"
    await until(lambda: pid.exists() and pid.read_text().strip())
    return process, int(pid.read_text())


@contextlib.asynccontextmanager
async def _session(served):
    """A session over HTTP, by hand so that its end can be chosen; saying nothing ends it."""
    headers = {"Authorization": f"Bearer {served.token}", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(300)) as http:
        async def say(method, params=None, **more):
            if method is None:
                return await http.delete(served.url, headers=session)
            said = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {}), **more}
            return await http.post(served.url, json=said, headers=session)

        session = {}
        initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        begun = await say("initialize", initialize, id=1)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        await say("notifications/initialized")
        yield say


async def ends(place, process, child):
    """The server ends by itself, leaves no process, and the run can be gone on with."""
    assert await process.wait() == 0, (await process.stderr.read()).decode()
    assert gone(child)
    runs = json.loads(await place.flow("runs", "--format", "json"))["runs"]
    assert len(runs) == 1 and runs[0]["status"] in ("running", "waiting"), runs
    (place.project / "pid").unlink()
    shown = json.loads(await place.flow("show", runs[0]["run_id"], "--format", "json"))
    assert shown, "the journal can be read"


async def a_client_that_leaves_ends_the_server_and_nothing_is_left(place):
    process, child = await _begun(place)
    process.stdin.close()
    await ends(place, process, child)


async def a_server_told_to_stop_leaves_nothing(place):
    for which in (signal.SIGTERM, signal.SIGINT):
        process, child = await _begun(place)
        process.send_signal(which)
        assert await process.wait() == 0, (await process.stderr.read()).decode()
        assert gone(child)
        (place.project / "pid").unlink()


async def a_server_told_to_stop_answers_open_calls_and_leaves_their_runs_to_be_gone_on_with(place):
    place.workflow("hang", HANG.replace("exec sleep 1000", "while [ ! -e go ]; do sleep 0.01; done"))
    pid = place.project / "pid"
    runs = []
    for tool, asked in (("run_workflow", {"workflow_name": "hang"}), ("flow", {"flow_name": "hang"})):
        async with place.serve() as served, _session(served) as say:
            asking = say("tools/call", {"name": tool, "arguments": asked}, id=2)
            open_call = asyncio.create_task(asking)
            await until(lambda: pid.exists() and pid.read_text().strip())
            served.process.send_signal(signal.SIGTERM)
            answer = await open_call
            assert await served.process.wait() == 0
        said = [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        answer = next(it for it in said if it.get("id") == 2)["result"]["structuredContent"]
        expect(answer, status="waiting")
        assert "interrupted" in answer["note"], answer
        runs.append(answer["workflow_id"])
        assert gone(int(pid.read_text()))
        pid.unlink()
    for tool, asked in (("run_workflow", {"workflow_name": "hang"}), ("flow", {"flow_name": "hang"})):
        process, child = await _begun(place, tool, asked, text=None)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0, (await process.stderr.read()).decode()
        said = [json.loads(line) for line in (await process.stdout.read()).splitlines()]
        answer = next(it for it in said if it.get("id") == 2)["result"]["structuredContent"]
        expect(answer, status="waiting")
        runs.append(answer["workflow_id"])
        pid.unlink()
    (place.project / "go").touch()
    for run in runs:
        await place.flow("resume", run)


async def a_client_that_ends_its_session_leaves_its_runs_to_the_server(place):
    place.workflow("hang", HANG.replace("exec sleep 1000", "while [ ! -e go ]; do sleep 0.01; done"))
    pid = place.project / "pid"
    async with place.serve() as served:
        async with _session(served) as say:
            asked = {"name": "run_workflow", "arguments": {"workflow_name": "hang"}}
            open_call = asyncio.create_task(say("tools/call", asked, id=2))
            await until(lambda: pid.exists() and pid.read_text().strip())
            assert (await say(None)).status_code == 204
            # Nothing is answered in a session that has ended.
            await open_call
        async with served.connect() as client:
            run = (await call(client, "list_runs", {}))["runs"][0]
            (place.project / "go").touch()
            ended = await call(client, "get_workflow_status", {"workflow_id": run["workflow_id"], "wait_seconds": 300})
            expect(ended, status="completed")


async def what_a_command_line_has_done_a_server_does_not_do_again(place):
    place.workflow("between", BETWEEN)
    async with place.connect() as client:
        for tool, asked in (("start_workflow", {"workflow": "between"}), ("run_workflow", {"workflow_name": "between"})):
            run = (await call(client, tool, asked))["workflow_id"]
            await place.flow("answer", run, "true", code=None)
            done = {"workflow_id": run, "step_id": "b", "result": {"confirmed": True}}
            expect(await call(client, "submit_step_result", done), status="completed")
            side = place.project / "side"
            assert side.read_text().split() == ["s1", "s2"], (tool, side.read_text())
            side.unlink()


async def several_servers_share_a_project(place):
    place.workflow("hang", HANG.replace("exec sleep 1000", "while [ ! -e go ]; do sleep 0.01; done"))
    async with place.connect("stdio", "legacy") as one, place.connect("http", "auto") as other:
        ran = await call(one, "flow", {"flow_name": "hang", "wait_seconds": 0})
        expect(ran, status="running")
        run = ran["workflow_id"]
        expect(await call(other, "get_workflow_status", {"workflow_id": run}), status="running")
        both = await asyncio.gather(*(
            call(client, "save_to_memory", {"key": f"k{n}", "value": n})
            for n, client in enumerate([one, other] * 10)
        ))
        assert all(answer["success"] for answer in both)
        assert len((await call(one, "list_memory_keys"))["keys"]) == 20
        (place.project / "go").touch()
        expect(
            await call(one, "get_workflow_status", {"workflow_id": run, "wait_seconds": 300}), status="completed"
        )
        expect(await call(other, "get_workflow_status", {"workflow_id": run}), status="completed")


async def a_run_that_lost_its_server_is_told_from_one_that_is_driven(place):
    place.workflow("hang", HANG.replace("exec sleep 1000", "while [ ! -e go ]; do sleep 0.01; done"))
    async with place.connect() as other:
        async def stands(**wanted):
            status = await call(other, "get_workflow_status", {"workflow_id": run})
            expect(status, **wanted)
            read = await other.read_resource(f"run://{run}")
            expect(json.loads(read.contents[0].text), **wanted)

        async with place.serve() as served:
            async with served.connect() as client:
                ran = await call(client, "flow", {"flow_name": "hang", "wait_seconds": 0})
                run = ran["workflow_id"]
                await stands(status="running", alive=True)
            served.process.kill()
            await served.process.wait()
        await stands(status="waiting", alive=False, pending=None)
        (place.project / "go").touch()
        await call(other, "resume_workflow", {"workflow_id": run, "wait_seconds": 300})
        await stands(status="completed", alive=False)


async def what_is_not_mcp_is_answered_and_survived(place):
    process = await asyncio.create_subprocess_exec(
        FLOW, "serve", cwd=place.project, env=place.env,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "no/such/method"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "flow", "arguments": {"flow_name": 7}}},
        "this is not json",
        {"jsonrpc": "2.0", "id": 4, "method": "ping"},
        {"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel", "params": {"level": "bogus"}},
        {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": 7}},
    ]
    deep = 1
    for _ in range(150):
        deep = [deep]
    arguments = {"transform": "1", "input": deep}
    lines.append({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "test_transformation", "arguments": arguments}})
    answers = {}
    for line in lines:
        text = line if isinstance(line, str) else json.dumps(line)
        process.stdin.write(text.encode() + b"\n")
        if "id" in line or isinstance(line, str):
            answer = json.loads(await process.stdout.readline())
            answers[answer["id"]] = answer
    assert answers[2]["error"]["code"] == -32601
    assert answers[3]["result"]["isError"] and "`flow_name`" in answers[3]["result"]["content"][0]["text"]
    assert answers[None]["error"]["code"] == -32700
    assert answers[4]["result"] == {}
    assert answers[5]["error"]["code"] == -32602 and "`warning`" in answers[5]["error"]["message"], answers[5]
    assert answers[6]["error"]["code"] == -32602, answers[6]
    assert answers[7]["error"]["code"] == -32700
    process.stdin.close()
    assert await process.wait() == 0


async def a_client_that_says_nothing_is_no_error(place):
    process = await asyncio.create_subprocess_exec(
        FLOW, "serve", cwd=place.project, env=place.env,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    process.stdin.close()
    assert await process.wait() == 0
    assert await process.stderr.read() == b""


async def a_session_that_has_ended_is_said_to_have_ended(place):
    async with place.serve() as served:
        headers = {"Authorization": f"Bearer {served.token}", "Accept": "application/json, text/event-stream"}
        begin = {
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        }
        async with httpx2.AsyncClient() as client:
            answer = await client.post(served.url, headers=headers, json=begin)
            session = {**headers, "Mcp-Session-Id": answer.headers["mcp-session-id"]}
            assert (await client.delete(served.url, headers=session)).status_code == 204
