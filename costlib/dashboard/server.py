"""The dashboard's server: it reads, and answers GET alone."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from costlib.dashboard.shelf import Shelf
from costlib.errors import StorageError

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def application(root: Path, token: str = "") -> Starlette:
    """Return the dashboard of a folder as an ASGI application.

    Parameters
    ----------
    root
        The folder.
    token
        What the path of each address begins with. Without one only requests to this machine's own
        names are answered, so that no page of somebody else reads along.

    Raises
    ------
    InputError
        There is no such folder.
    """
    base = f"/{token}" if token else ""
    shelf = Shelf(root, base)

    def index(request: Request) -> Response:
        return _answer(request, shelf.index) or _missing()

    def page(request: Request) -> Response:
        entry = shelf.find(request.path_params["name"])
        if entry is None:
            return _missing()
        return _answer(request, lambda: shelf.page(entry)) or _missing()

    def _answer(request: Request, make: Callable[[], str]) -> Response | None:
        given = request.path_params.get("token", "")
        if not secrets.compare_digest(given.encode(), token.encode()):
            return None
        return HTMLResponse(make(), headers=_HEADERS)

    prefix = "/{token}" if token else ""
    local = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"])
    return Starlette(
        routes=[
            Route(f"{prefix}/", index, methods=["GET"]),
            Route(f"{prefix}/page/{{name:path}}", page, methods=["GET"]),
        ],
        middleware=[] if token else [local],
    )


def _missing() -> Response:
    return PlainTextResponse("there is no such page\n", status_code=404, headers=_HEADERS)


def serve(root: Path, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve the dashboard of a folder until Ctrl-C.

    Parameters
    ----------
    host, port
        Where to listen; any free port for 0. Off this machine, addresses hold a token.
    announce
        Called with the address once it can be opened.

    Raises
    ------
    InputError
        There is no such folder.
    StorageError
        Nobody may listen there, or somebody does already.
    """
    token = "" if _is_loopback(host) else secrets.token_urlsafe(16)
    app = application(root, token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"cannot listen on {host} port {port}: {reason}; try --port 0") from None
    shown = f"[{host}]" if ":" in host else host
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    announce(f"http://{shown}:{listener.getsockname()[1]}/{token}{'/' if token else ''}")
    uvicorn.Server(config).run(sockets=[listener])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
