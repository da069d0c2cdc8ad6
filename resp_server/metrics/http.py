"""HTTP/1.1 for a few small pages: one request a connection, GET and HEAD, nothing else.

Made for a port that anybody may find. A request is read up to MOST_HEAD_BYTES, a connection lives
MOST_SECONDS, there are at most MOST_CONNECTIONS, and when more come the oldest is given up: an
honest one is over in moments. What is wrong with a request is answered with a status, and what is
wrong with a page with 500. Knows nothing of what the pages say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

log = logging.getLogger(__name__)

MOST_HEAD_BYTES = 8192
MOST_SECONDS = 10.0
MOST_CONNECTIONS = 64
PLAIN_TEXT = "text/plain; charset=utf-8"
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reply:
    status: HTTPStatus
    body: bytes
    content_type: str = PLAIN_TEXT


Page = Callable[[], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str


class BadRequest(Exception):
    """A request that is answered with a status and no page."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def read_request(head: bytes) -> Request:
    """The request of which this is the head. BadRequest if it is none, or is not served."""
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(words) != 3:
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    method, target, version = words
    if not version.startswith("HTTP/"):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    if not version.startswith("HTTP/1."):
        raise BadRequest(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    if method not in ("GET", "HEAD"):
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    return Request(method, target.partition("?")[0])


def encode_reply(reply: Reply, *, with_body: bool = True) -> bytes:
    """Its bytes; the head of a reply to HEAD is that of the one to GET."""
    lines = [
        f"HTTP/1.1 {reply.status.value} {reply.status.phrase}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if reply.status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join(lines).encode("latin-1") + _END_OF_HEAD
    return head + reply.body if with_body else head


def told(status: HTTPStatus, text: str = "") -> Reply:
    """A reply of one line: the text, or what the status is called."""
    return Reply(status, f"{text or status.phrase}\n".encode())


class Visitors:
    """The connections that are open, oldest first."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        """`pages` by their paths."""
        self.pages = pages
        self._open: dict[Visitor, None] = {}

    def visitor(self) -> Visitor:
        return Visitor(self)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, visitor: Visitor) -> None:
        if len(self._open) >= MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.give_up()
        self._open[visitor] = None

    def remove(self, visitor: Visitor) -> None:
        self._open.pop(visitor, None)

    def close(self) -> None:
        for visitor in list(self._open):
            visitor.give_up()


class Visitor(asyncio.Protocol):
    """One connection: gathers the head of a request, answers it, and is gone."""

    def __init__(self, visitors: Visitors) -> None:
        self._visitors = visitors
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = self._loop.call_later(MOST_SECONDS, self.give_up)
        self._visitors.add(self)

    def data_received(self, data: bytes) -> None:
        if self._answering is not None:
            return  # only what is asked first is answered
        self._received += data[: MOST_HEAD_BYTES + 1]
        head, found, _ = self._received.partition(_END_OF_HEAD)
        if found or len(self._received) > MOST_HEAD_BYTES:
            self._received = b""
            self._answering = self._loop.create_task(self._answer(head))

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        self._visitors.remove(self)
        if self._answering is not None:
            self._answering.cancel()

    def give_up(self) -> None:
        self._transport.abort()

    async def _answer(self, head: bytes) -> None:
        try:
            answer = await self._reply(head)
        except Exception:
            log.exception("a page for monitoring could not be made")
            answer = encode_reply(told(HTTPStatus.INTERNAL_SERVER_ERROR))
        self._transport.write(answer)
        self._transport.close()

    async def _reply(self, head: bytes) -> bytes:
        try:
            if len(head) > MOST_HEAD_BYTES:
                raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            request = read_request(head)
            page = self._visitors.pages.get(request.path)
            if page is None:
                raise BadRequest(HTTPStatus.NOT_FOUND)
        except BadRequest as refusal:
            return encode_reply(told(refusal.status))
        return encode_reply(await page(), with_body=request.method == "GET")
