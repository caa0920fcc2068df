"""Runs cases against `flow serve` with a real MCP client.

    python harness.py MODULE [CASE...]

A case is a coroutine that takes a `Place`. It connects as often and in whatever way it wants;
`every_way` connects over both transports and in both eras of the protocol.
"""

import asyncio
import contextlib
import importlib
import inspect
import json
import os
import pathlib
import signal
import sys
import tempfile
import traceback

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

FLOW = os.environ["FLOW"]
# With a handshake and sessions, or without; which versions are spoken then.
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
TRANSPORTS = ("stdio", "http")
# Far longer than anything takes; a case that hangs fails.
LONGEST = 900
# Cases at the same time.
AT_ONCE = 4


class Place:
    """A project to serve, with nothing of the person who runs the tests in its environment."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.project = self.root / "project"
        (self.project / ".flow/workflows").mkdir(parents=True)
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("FLOW_")},
            "FLOW_CONFIG_DIR": str(self.root / "config"),
            "FLOW_DATA_DIR": str(self.root / "data"),
        }

    def write(self, path, text):
        path = self.project / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def workflow(self, name, text):
        return self.write(f".flow/workflows/{name}.yaml", text)

    async def flow(self, *arguments, code=0, cwd=None):
        """Runs the command line, which must end with this code if one is given, and gives its output."""
        process = await asyncio.create_subprocess_exec(
            FLOW, *arguments, cwd=cwd or self.project, env=self.env,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert code in (None, process.returncode), (arguments, process.returncode, err.decode())
        return out.decode()

    @contextlib.asynccontextmanager
    async def connect(self, transport="stdio", era="legacy", arguments=(), **callbacks):
        """A client of a server that lives as long as the connection does."""
        if transport == "stdio":
            server = StdioServerParameters(
                command=FLOW, args=["serve", *arguments], cwd=str(self.project), env=self.env
            )
            async with Client(server, mode=era, **callbacks) as client:
                yield client
        else:
            async with self.serve(arguments) as served:
                async with served.connect(era, **callbacks) as client:
                    yield client

    @contextlib.asynccontextmanager
    async def serve(self, arguments=(), env=None):
        """A server over HTTP."""
        process = await asyncio.create_subprocess_exec(
            FLOW, "serve", "--http", "127.0.0.1:0", *arguments, cwd=self.project,
            env={**self.env, **(env or {})},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )
        try:
            url = (await process.stderr.readline()).decode().split()[-1]
            token = (await process.stderr.readline()).decode().split()[1].rstrip(",")
            yield Served(process, url, token)
            # A case may have ended it.
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def every_way(self, case, **callbacks):
        """Runs a case over both transports and in both eras."""
        for transport in TRANSPORTS:
            for era in ERAS:
                try:
                    async with self.connect(transport, era, **callbacks) as client:
                        assert client.protocol_version == ERAS[era]
                        await case(client)
                except BaseException as error:
                    error.add_note(f"over {transport}, {era}")
                    raise


class Served:
    def __init__(self, process, url, token):
        self.process, self.url, self.token = process, url, token

    @contextlib.asynccontextmanager
    async def connect(self, era="legacy", **callbacks):
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(LONGEST)) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, **callbacks) as client:
                yield client


async def call(client, tool, arguments=None, **options):
    """Calls a tool that must not refuse, and gives its structured answer."""
    result = await client.call_tool(tool, arguments or {}, **options)
    assert not result.is_error, (tool, result.content)
    # Clients that know nothing of structure read the same.
    assert json.loads(result.content[0].text) == result.structured_content, tool
    return result.structured_content


async def refused(client, tool, arguments):
    """Calls a tool that must refuse, and gives the reason."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, arguments, result.structured_content)
    return result.content[0].text


def expect(answer, /, **fields):
    """Holds some fields of an answer."""
    for name, wanted in fields.items():
        assert answer.get(name) == wanted, f"{name} is {answer.get(name)!r}, not {wanted!r}, in {answer}"


def accept(**content):
    return types.ElicitResult(action="accept", content=content)


def leaves(error, notes=()):
    """The errors inside groups of errors, with where they happened."""
    notes = [*notes, *getattr(error, "__notes__", ())]
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner, notes)]
    return ["".join([*traceback.format_exception(error), *(f"{note}\n" for note in notes)])]


async def run(module, name, few):
    async with few:
        with tempfile.TemporaryDirectory() as root:
            try:
                case = getattr(module, name)
                await asyncio.wait_for(case(Place(root)), LONGEST)
            except BaseException as error:
                return [f"{name}:\n{leaf}" for leaf in leaves(error)]
    return []


def cases(module):
    """The coroutines of a module that take a place and are its own."""
    return [
        name for name, value in vars(module).items()
        if inspect.iscoroutinefunction(value) and value.__module__ == module.__name__
        and list(inspect.signature(value).parameters) == ["place"] and not name.startswith("_")
    ]


async def main(module, *names):
    module = importlib.import_module(module)
    few = asyncio.Semaphore(AT_ONCE)
    failures = await asyncio.gather(*(run(module, name, few) for name in names or cases(module)))
    failures = [failure for some in failures for failure in some]
    print("\n".join(failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    # Modules that import this one shall get the same classes.
    sys.modules["harness"] = sys.modules["__main__"]
    asyncio.run(main(*sys.argv[1:]))
