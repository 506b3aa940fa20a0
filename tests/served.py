"""A server on this machine that has one file, and faults on request."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Served:
    """What the server has, does and was asked.

    content by path; ranges: whether it knows Range; send: bytes of each answer's body before it
    breaks off, by request, then whole ones; status: an error for every request; hang: says nothing.
    asked: the Range of each request, None without.
    """

    content: dict[str, bytes]
    ranges: bool = True
    send: list[int] = field(default_factory=list)
    status: int = 0
    hang: bool = False
    url: str = ""
    asked: list[str | None] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one GET."""
        asked = handler.headers["Range"]
        content = self.content.get(handler.path)
        if self.hang:
            self.over.wait()
            return
        if self.status or content is None:
            handler.send_error(self.status or 404)
            return
        self.asked.append(asked)
        begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.ranges else 0
        if begin >= len(content) > 0 and begin:
            handler.send_error(416)
            return
        body = content[begin:]
        handler.send_response(206 if begin else 200)
        handler.send_header("Content-Length", str(len(body)))
        if begin:
            handler.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        handler.end_headers()
        handler.wfile.write(body[: self.send.pop(0)] if self.send else body)


@contextmanager
def serve(content: dict[str, bytes]) -> Iterator[Served]:
    """Serve the content by path until the block ends."""
    served = Served(content)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: Any) -> None:
            """Be quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield served
        finally:
            served.over.set()
            server.shutdown()
            thread.join()
