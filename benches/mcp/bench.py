"""`flow serve` against a server made with the Python SDK, in one run, and against a program that only answers.

    cargo build --release -p flow-bin
    target/needs/venv/bin/python benches/mcp/bench.py [target/release/flow]

Talks JSON-RPC over pipes by hand, so that the client costs next to nothing. Prints the table that
docs/benchmarks.md has.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
WORKFLOWS = 20
STARTS = 20
CALLS = 2000

DEFINITION = """\
name: workflow_{n}
description: Workflow number {n}
inputs:
  target: {{type: string, required: true, description: What to build}}
  jobs: {{type: integer, default: 4}}
steps:
  - {{id: build, type: shell, command: "make -j {{{{ inputs.jobs }}}} {{{{ inputs.target }}}}", timeout: 5m}}
  - {{id: test, type: shell, command: make test}}
"""


class Server:
    def __init__(self, command, directory, env):
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command, cwd=directory, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.id = 0
        version = "2025-11-25"
        client = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client})
        self.first_answer = time.perf_counter() - self.started
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"the server ended: {self.process.args}")
            # Whether it is the answer is told without reading all of it.
            if b'"id":%d' % self.id in line or b'"id": %d' % self.id in line:
                return line

    def call(self, tool, arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def resident(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def median(values):
    return statistics.median(values)


def measure(name, command, directory, env, starts):
    first = []
    for _ in range(starts):
        server = Server(command, directory, env)
        first.append(server.first_answer * 1000)
        server.close()
    server = Server(command, directory, env)
    answer = json.loads(server.call("list_workflows", {}))["result"]
    listed = answer["structuredContent"]["workflows"]
    assert len([one for one in listed if one["name"].startswith("workflow_")]) == WORKFLOWS, listed
    calls = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        server.call("list_workflows", {"include_global": False})
        calls.append((time.perf_counter() - begun) * 1e6)
    resident = server.resident()
    server.close()
    calls.sort()
    return name, median(first), median(calls), calls[len(calls) * 99 // 100], resident


def main():
    flow = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/flow").resolve()
    with tempfile.TemporaryDirectory() as directory:
        workflows = pathlib.Path(directory) / ".flow/workflows"
        workflows.mkdir(parents=True)
        for n in range(WORKFLOWS):
            (workflows / f"workflow_{n}.yaml").write_text(DEFINITION.format(n=n))
        env = {**os.environ, "FLOW_CONFIG_DIR": f"{directory}/config", "FLOW_DATA_DIR": f"{directory}/data"}
        serve = [str(flow), "serve"]
        server = Server(serve, directory, env)
        said = pathlib.Path(directory) / "answer"
        said.write_bytes(server.call("list_workflows", {"include_global": False}))
        server.close()
        rows = [
            measure("flow serve", serve, directory, env, STARTS),
            measure("Python SDK (`MCPServer`)", [sys.executable, str(HERE / "peer.py")], directory, env, 3),
            measure("the same bytes at once", [sys.executable, str(HERE / "floor.py"), str(said)], directory, env, 3),
        ]
    print("| server | first answer | `list_workflows`, p50 | p99 | resident |")
    print("|---|---|---|---|---|")
    for name, first, half, most, resident in rows:
        print(f"| {name} | {first:.1f} ms | {half:.0f} µs | {most:.0f} µs | {resident:.1f} MB |")
    own, peer, floor = rows
    print(f"\n{peer[1] / own[1]:.0f} × first answer, {peer[2] / own[2]:.1f} × call, {peer[4] / own[4]:.1f} × memory")
    print(f"{own[2] - floor[2]:.0f} µs of a call are the server's own")


if __name__ == "__main__":
    main()
