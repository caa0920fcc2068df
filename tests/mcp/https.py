"""Our own MCP client reaches a server over https, and trusts whom the system trusts."""

import asyncio
import contextlib
import datetime
import ipaddress
import json
import socket

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.server.mcpserver import MCPServer


def certificates(directory):
    """An authority that nobody knows, and what it says of this machine."""
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)

    def name(text):
        return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

    def certificate(subject, key, issuer, issuer_key, *extensions):
        made = x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer))
        made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
        made = made.not_valid_before(now - day).not_valid_after(now + day)
        for extension, critical in extensions:
            made = made.add_extension(extension, critical)
        return made.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certificate("authority", authority, "authority", authority, (x509.BasicConstraints(True, None), True))
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    use = x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH])
    leaf = certificate("here", own, "authority", authority, (names, False), (use, False), (x509.BasicConstraints(False, None), True))
    key = own.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    paths = [directory / file for file in ("root.pem", "leaf.pem", "key.pem")]
    for path, text in zip(paths, (root, leaf, key)):
        path.write_bytes(text)
    return paths


@contextlib.asynccontextmanager
async def far(certificate, key):
    """A server of the Python SDK with one tool; gives its address."""
    server = MCPServer("far")

    @server.tool()
    def double(n: int) -> dict[str, int]:
        """Doubles a number."""
        return {"twice": 2 * n}

    door = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        server.streamable_http_app(), ssl_certfile=certificate, ssl_keyfile=key, log_level="critical", lifespan="on")
    served = uvicorn.Server(config)
    serving = asyncio.create_task(served.serve(sockets=[door]))
    try:
        yield f"https://127.0.0.1:{door.getsockname()[1]}/mcp"
    finally:
        served.should_exit = True
        await serving


async def tools_are_called_over_https_with_an_authority_that_is_trusted(place):
    root, leaf, key = certificates(place.root)
    place.workflow("double", "name: double\nsteps:\n"
                   "  - {id: ask, type: mcp_call, tool: far.double, parameters: {n: 21}, output_to: got}\n"
                   "outputs: {twice: '{{ state.got.twice }}'}\n")
    async with far(leaf, key) as url:
        place.write(".mcp.json", json.dumps({"mcpServers": {"far": {"type": "http", "url": url}}}))
        place.env["SSL_CERT_FILE"] = str(root)
        ran = json.loads(await place.flow("run", "double", "--format", "json"))
        assert ran["output"] == {"twice": 42}, ran
        # Nobody vouches for it otherwise.
        (place.root / "empty").mkdir()
        other = certificates(place.root / "empty")[0]
        place.env["SSL_CERT_FILE"] = str(other)
        refused = json.loads(await place.flow("run", "double", "--format", "json", code=1))
        assert "certificate" in refused["error"], refused
