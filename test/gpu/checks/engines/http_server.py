"""The HTTP side of the check engines: asyncio, keep-alive, JSON answers and streams."""

import asyncio
import json
import signal

STATUS_TEXTS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error", 503: "Service Unavailable"}


class Request:
    def __init__(self, method, path, body):
        self.method = method
        self.path = path
        self.body = body

    def json(self):
        return json.loads(self.body)


class Answer:
    """Writes one answer. `send` after `begin_stream` writes a piece; `closed` is true when the client has disconnected."""

    def __init__(self, writer):
        self.writer = writer
        self.streaming = False

    @property
    def closed(self):
        return self.writer.transport.is_closing()

    def json(self, value, status=200):
        body = json.dumps(value).encode()
        head = f"HTTP/1.1 {status} {STATUS_TEXTS.get(status, 'Status')}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)

    def error(self, message, status=500):
        self.json({"error": {"message": message, "type": "server_error", "code": None}}, status)

    def begin_stream(self, content_type="text/event-stream"):
        self.streaming = True
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        self.writer.write(head.encode())

    def send(self, piece):
        self.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end(self):
        self.writer.write(b"0\r\n\r\n")


async def _requests(reader, writer, handle):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ", 2)
            headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
            if headers.get("expect") == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = b""
            if "chunked" in headers.get("transfer-encoding", ""):
                while size := int(await reader.readline(), 16):
                    body += (await reader.readexactly(size + 2))[:-2]
                await reader.readline()
            else:
                body = await reader.readexactly(int(headers.get("content-length", "0")))
            answer = Answer(writer)
            try:
                await handle(Request(method, path, body), answer)
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                answer.error(f"The request cannot be read: {error!r}", 400)
            if answer.streaming:
                answer.end()
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        pass
    finally:
        writer.close()


def serve(handle, socket=None, port=None, listening=None):
    """
    Answers with `handle(request, answer)` until SIGTERM. Listens on the Unix socket, else on the port of loopback, and
    calls `listening(port)` once it does; the port is None for a Unix socket.
    """

    async def main():
        def connected(reader, writer):
            return _requests(reader, writer, handle)

        if socket:
            server = await asyncio.start_unix_server(connected, socket, limit=2**20, backlog=1024)
        else:
            server = await asyncio.start_server(connected, "127.0.0.1", port, limit=2**20, backlog=1024)
        if listening:
            listening(None if socket else server.sockets[0].getsockname()[1])
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()
        server.close()

    asyncio.run(main())
