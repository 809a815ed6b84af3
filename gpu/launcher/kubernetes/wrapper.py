# The wrapper of an engine, in a container beside it: lets only the server of the launch reach it. Ends when no server has asked
# for the engine during the grace of its pool; the probe of the engine's container then fails, and Kubernetes ends the engine.
# Python 3.7 or later, without packages. Its only argument is a folder with settings.json, certificate.pem and key.pem.
import asyncio
import json
import os
import signal
import ssl
import sys
import time

CONTROL = 'infer-control'


class Wrapper:
    def __init__(self, folder):
        with open(os.path.join(folder, 'settings.json')) as file:
            self.settings = json.load(file)
        self.pair = os.path.join(folder, 'certificate.pem'), os.path.join(folder, 'key.pem')
        self.heard_at = time.monotonic()
        self.is_ending = False
        self.open = 0

    async def run(self):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.end)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1
        context.verify_mode = ssl.CERT_REQUIRED
        context.set_alpn_protocols(['http/1.1', CONTROL])
        context.load_verify_locations(self.pair[0])
        context.load_cert_chain(*self.pair)
        server = await asyncio.start_server(
            self.accept, os.environ['POD_IP'], self.settings['port'], ssl=context, backlog=512
        )
        while not await self.is_over():
            await asyncio.sleep(0.1 if self.is_ending else 1)
        server.close()

    async def is_over(self):
        if time.monotonic() - self.heard_at > self.settings['orphanSeconds']:
            print('No server has asked for the engine for %d s.' % self.settings['orphanSeconds'], flush=True)
            return True
        # When the pod ends, the engine may still answer what it has begun.
        return self.is_ending and self.open == 0 and not await self.listens()

    async def listens(self):
        engine = await self.connect()
        if engine:
            engine[1].close()
        return engine is not None

    def end(self):
        self.is_ending = True

    async def accept(self, reader, writer):
        # The handshake is done, so it is the server, and not a probe.
        self.heard_at = time.monotonic()
        try:
            if writer.get_extra_info('ssl_object').selected_alpn_protocol() == CONTROL:
                await self.control(reader, writer)
            else:
                await self.forward(reader, writer)
        except (OSError, ValueError):
            pass
        finally:
            writer.close()

    async def control(self, reader, writer):
        while await reader.readline():
            self.heard_at = time.monotonic()
            writer.write(b'{}\n')
            await writer.drain()

    async def connect(self):
        """A connection to the engine; None while it does not listen."""
        target = self.settings['target']
        try:
            if isinstance(target, str):
                return await asyncio.open_unix_connection(target)
            return await asyncio.open_connection('127.0.0.1', target)
        except OSError:
            return None

    async def forward(self, reader, writer):
        engine = await self.connect()
        if not engine:
            return
        self.open += 1
        directions = [
            asyncio.ensure_future(self.copy(reader, engine[1], True)),
            asyncio.ensure_future(self.copy(engine[0], writer, False)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.open -= 1
            for direction in directions:
                direction.cancel()
            engine[1].close()

    async def copy(self, reader, writer, is_request):
        try:
            while True:
                data = await reader.read(65536)
                if not data:
                    return
                if is_request:
                    self.heard_at = time.monotonic()
                writer.write(data)
                await writer.drain()
        except OSError:
            return


asyncio.run(Wrapper(sys.argv[1]).run())
