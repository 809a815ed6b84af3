"""HTTP server of the worker, on a Unix socket or a port of this machine."""

import email.parser
import email.policy
import hmac
import json
import os
import select
import socket
import socketserver
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from .errors import Cancelled, EngineError, invalid
from .received_files import FILES_TYPE, PIECE, ReceivedFiles, receive_files

BODY_LIMIT = 128 << 20


@dataclass(frozen=True)
class Part:
    """One part of a multipart form."""

    name: str
    content: bytes
    filename: str | None


@dataclass(frozen=True)
class Request:
    """A request with its whole body."""

    content_type: str
    body: bytes
    """Of a request with files its line of JSON."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set once the caller has disconnected: stop the work."""
    files: ReceivedFiles | None = None
    """Of a request with files, which share no folder with infer."""

    def json(self) -> dict:
        """The body as a JSON object. Raises EngineError 400."""
        try:
            value = json.loads(self.body)
        except ValueError as error:
            raise invalid(f'The request body is not valid JSON: {error}', 'invalid_json') from None
        if not isinstance(value, dict):
            raise invalid('The request body must be a JSON object.')
        return value

    def form(self) -> list[Part]:
        """The parts of a multipart form. Raises EngineError 400."""
        head = b'Content-Type: ' + self.content_type.encode('latin-1') + b'\r\n\r\n'
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + self.body)
        if not message.is_multipart():
            raise invalid('The request body must be a multipart form.')
        return [
            Part(
                str(part.get_param('name', '', header='content-disposition')),
                part.get_payload(decode=True) or b'',
                part.get_filename(),
            )
            for part in message.iter_parts()
        ]


class Reply:
    """The answer to one request: either one `send`, or `begin` and any number of `write`."""

    def __init__(self, handler: 'Handler', cancelled: threading.Event) -> None:
        self._handler = handler
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self.begun = False

    def send(self, body: bytes | dict, content_type: str = 'application/json', status: int = 200) -> None:
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        self.begun = True
        self._handler.send_response(status)
        self._handler.send_header('Content-Type', content_type)
        self._handler.send_header('Content-Length', str(len(content)))
        self._handler.end_headers()
        self._write(content)

    def begin(self, content_type: str) -> None:
        """Starts an answer of unknown length."""
        self.begun = True
        self._handler.send_response(200)
        self._handler.send_header('Content-Type', content_type)
        self._handler.send_header('Transfer-Encoding', 'chunked')
        self._handler.end_headers()

    def write(self, content: bytes) -> None:
        """Sends one piece. May be called by several threads. Raises Cancelled when the caller has disconnected."""
        if content:
            self._write(b'%x\r\n%s\r\n' % (len(content), content))

    def line(self, message: dict) -> None:
        """Sends one line of JSON Lines."""
        self.write(json.dumps(message).encode() + b'\n')

    def file(self, path: str) -> None:
        """Sends the bytes of a file."""
        with open(path, 'rb') as source:
            while piece := source.read(PIECE):
                self.write(piece)

    def end(self) -> None:
        self._write(b'0\r\n\r\n')

    def _write(self, content: bytes) -> None:
        try:
            with self._lock:
                self._handler.wfile.write(content)
        except OSError:
            self._cancelled.set()
            raise Cancelled from None


Handle = Callable[[Request, Reply], None]
"""Answers a request. Raises EngineError, or Cancelled."""


class Server:
    """Answers `/health` at once, and the routes of the model once it is loaded."""

    def __init__(self, key: str | None, folder: str | None = None) -> None:
        self.routes: dict[str, Handle] | None = None
        """By method and path: `POST /v1/generate`; None while the model loads."""
        self.progress = 0.0
        """Loaded fraction of the model, 0 to 1."""
        self.key = key
        self.folder = folder
        """Where the files of requests are kept that have some."""
        self._running = 0
        self._lock = threading.Lock()

    def health(self) -> tuple[int, dict]:
        if self.routes is None:
            return 503, {'status': 'loading', 'progress': self.progress}
        return 200, {'status': 'ok', 'running': self._running}

    def route(self, method: str, path: str, authorization: str) -> Handle:
        """Finds the handler of a request. Raises EngineError."""
        if self.key is not None and not hmac.compare_digest(authorization.encode(), f'Bearer {self.key}'.encode()):
            raise EngineError(401, 'The engine key is missing or wrong: send it as bearer token.', 'invalid_api_key')
        if self.routes is None:
            raise EngineError(503, 'The model is still loading.', 'model_warming_up')
        handle = self.routes.get(f'{method} {path}')
        if handle is None:
            raise EngineError(404, f'Invalid URL ({method} {path}).', 'unknown_url')
        return handle

    def count(self, change: int) -> None:
        with self._lock:
            self._running += change

    def listen(self, path: str | None, port: int | None) -> 'UnixServer | TcpServer':
        """Opens the address. Call `serve_forever` of the result."""
        if path is None:
            server: UnixServer | TcpServer = TcpServer(('127.0.0.1', port or 0), Handler)
        else:
            if os.path.exists(path):
                os.unlink(path)
            mask = os.umask(0o177)
            try:
                server = UnixServer(path, Handler)
            finally:
                os.umask(mask)
        server.owner = self
        return server


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128
    owner: Server


class TcpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128
    owner: Server


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    server_version = 'infer-worker'
    sys_version = ''
    server: UnixServer | TcpServer

    def setup(self) -> None:
        super().setup()
        if self.connection.family != socket.AF_UNIX:
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def address_string(self) -> str:
        return 'local'

    def log_message(self, *_arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        owner = self.server.owner
        path = self.path.split('?', 1)[0]
        request = Request('', b'')
        reply = Reply(self, request.cancelled)
        try:
            if self.command == 'GET' and path == '/health':
                status, body = owner.health()
                return reply.send(body, status=status)
            authorization = self.headers.get('Authorization', '')
            content_type = self.headers.get('Content-Type', '')
            length = int(self.headers.get('Content-Length') or 0)
            if content_type == FILES_TYPE:
                # What is refused before its last byte is read must not be taken for the next request.
                self.close_connection = True
                handle = owner.route(self.command, path, authorization)
                with receive_files(self.rfile, length, owner.folder) as (head, files):
                    self.close_connection = False
                    return self.run(handle, Request(content_type, head, request.cancelled, files), reply)
            if length > BODY_LIMIT:
                self.close_connection = True
                raise EngineError(413, f'The request body has {length} bytes; at most {BODY_LIMIT} are allowed.')
            body = self.rfile.read(length)
            handle = owner.route(self.command, path, authorization)
            self.run(handle, Request(content_type, body, request.cancelled), reply)
        except Cancelled:
            self.close_connection = True
        except EngineError as error:
            self.refuse(reply, error)
        except Exception as error:  # noqa: BLE001: whatever a library raises is one failed request
            traceback.print_exc(file=sys.stderr)
            self.refuse(reply, EngineError(500, f'{type(error).__name__}: {error}'[:2000]))

    def run(self, handle: Handle, request: Request, reply: Reply) -> None:
        owner = self.server.owner
        owner.count(1)
        try:
            with Watch(self.connection, request.cancelled):
                handle(request, reply)
        finally:
            owner.count(-1)

    def refuse(self, reply: Reply, error: EngineError) -> None:
        """Sends an error, or closes the connection of an answer that has begun."""
        if reply.begun:
            self.close_connection = True
            return
        try:
            reply.send(error.body(), status=error.status)
        except Cancelled:
            self.close_connection = True


class Watch:
    """Sets an event as soon as the other side of a connection has closed it."""

    def __init__(self, connection: socket.socket, closed: threading.Event) -> None:
        self._connection = connection
        self._closed = closed
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_reason: object) -> None:
        self._stop.close()
        self._thread.join()
        self._stopped.close()

    def _watch(self) -> None:
        readable, _, _ = select.select([self._connection, self._stopped], [], [])
        if self._stopped in readable:
            return
        try:
            # No client of an engine sends a second request before the answer to the first.
            if not self._connection.recv(1, socket.MSG_PEEK):
                self._closed.set()
        except OSError:
            self._closed.set()
