"""What `flow serve` is measured against: one tool with the same answer, held ready in memory."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")

WORKFLOWS = [
    {
        "name": f"workflow_{n}",
        "description": f"Workflow number {n}",
        "version": None,
        "source": "project",
        "path": f"/project/.flow/workflows/workflow_{n}.yaml",
        "parameters": [
            {"name": "target", "type": "string", "required": True, "default": None, "description": "What to build"},
            {"name": "jobs", "type": "integer", "required": False, "default": 4, "description": None},
        ],
        "state_count": 2,
        "created": "2026-01-01T00:00:00.000Z",
        "run_count": 0,
        "success_count": 0,
        "last_run": None,
        "error": None,
    }
    for n in range(20)
]


@server.tool()
def list_workflows(include_global: bool = True) -> dict[str, object]:
    """Lists workflows."""
    return {"workflows": WORKFLOWS, "total": len(WORKFLOWS)}


server.run()
