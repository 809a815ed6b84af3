#!/bin/sh
''':'
for python in python3 /usr/libexec/platform-python; do
  command -v "$python" >/dev/null 2>&1 && exec "$python" -I "$0"
done
exit 127
'''
# The batch script of a job: starts one engine on a node, lets only the server of the job reach it, and ends with it.
# Python 3.6 or later, without packages. The last line, which the launcher adds, calls main() with the settings as JSON.
import asyncio
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

CONTROL = 'infer-control'
# Seconds: for an engine to end when Slurm ends the job, which kills it after KillWait (30 by default); before its time limit;
# and when no server has asked for it.
CANCEL_GRACE, LIMIT_GRACE, ORPHAN_GRACE = 3, 45, 5
# Seconds without a word of the server after which the address is published again: a restarted slurmctld may have lost it.
PUBLISH_AGAIN = 60
PASSED = re.compile(
    r'^((CUDA|HIP|ROCR|NVIDIA)_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK|SLURM_JOB_ID|SLURMD_NODENAME)$'
)
libc = ctypes.CDLL(None)


class Refused(Exception):
    """The engine cannot be started; the message is a sentence."""


def node_address():
    """The address of this node towards the server, which has submitted the job."""
    for name in (os.environ.get('SLURM_SUBMIT_HOST', ''), os.environ.get('SLURMD_NODENAME', '')):
        try:
            family, _, _, _, address = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
                return probe.getsockname()[0]
        except OSError:
            continue
    return socket.gethostbyname(socket.gethostname())


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def is_own_port(port):
    """Whether a process of this user listens there: another user of the node may have taken the port."""
    owners = set()
    for path in ('/proc/net/tcp', '/proc/net/tcp6'):
        try:
            with open(path) as lines:
                for fields in map(str.split, lines):
                    if fields[3] == '0A' and int(fields[1].rsplit(':', 1)[1], 16) == port:
                        owners.add(int(fields[7]))
        except (OSError, ValueError, IndexError):
            continue
    return owners == {os.getuid()}


def descendants():
    """The processes below this one, whatever session they are in: orphans come to it."""
    children = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % name) as stat:
                state, parent = stat.read().rsplit(')', 1)[1].split()[:2]
        except (OSError, ValueError):
            continue
        if state != 'Z':
            children.setdefault(int(parent), []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def make_folder():
    """A private folder of this job on the node. Removes those whose jobs were killed: nobody holds their locks."""
    base = os.environ.get('TMPDIR') or '/tmp'
    if len(base) > 60 or not os.path.isdir(base):
        base = '/tmp'
    prefix = 'infer-%d-' % os.getuid()
    for name in os.listdir(base):
        left = os.path.join(base, name)
        try:
            if name.startswith(prefix) and os.lstat(left).st_uid == os.getuid() and not os.path.islink(left):
                with open(os.path.join(left, 'lock'), 'a') as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
    folder = tempfile.mkdtemp(prefix=prefix, dir=base)
    lock = open(os.path.join(folder, 'lock'), 'a')
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.mkdir(os.path.join(folder, 'tmp'))
    os.mkdir(os.path.join(folder, 'home'))
    return folder, lock


class Wrapper:
    def __init__(self, settings, loop):
        self.settings = settings
        self.loop = loop
        self.engine = None
        self.status = None
        self.deadline = None
        self.killed = False
        self.is_cancelled = False
        self.is_over = False
        # A slurmctld that has lost its last seconds may start a job again of which it does not know that it runs.
        self.generation = int(time.time())
        self.reason = ()
        self.changed = asyncio.Event()
        self.heard_at = self.published_at = time.monotonic()
        self.waiting = {}
        self.publishing = None

    async def run(self):
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.loop.add_signal_handler(name, self.cancel)
        self.loop.add_signal_handler(signal.SIGUSR1, self.end, LIMIT_GRACE)
        self.loop.add_signal_handler(signal.SIGCHLD, self.reap)
        # PR_SET_CHILD_SUBREAPER: processes that lose their parent become children of this one.
        libc.prctl(36, 1, 0, 0, 0)
        if int(os.environ.get('SLURM_RESTART_COUNT') or 0) > 0:
            # What the first run had loaded is lost, and the server may have started another launch.
            await self.publish('exit', 'restarted', 'Slurm has started its job again.')
            return 0
        shared = self.open_log()
        folder, lock = make_folder()
        try:
            target = self.start(folder, shared)
            server = await self.listen(folder, target)
            host, port = server.sockets[0].getsockname()[:2]
            self.words = ('run', host, str(port))
            self.publishing = asyncio.ensure_future(self.publish(*self.words))
            await self.supervise()
            server.close()
        except (Refused, OSError) as fault:
            self.status, self.reason = '127', (str(fault),)
            print(fault, flush=True)
            if self.engine:
                self.kill_all()
        self.is_over = True
        await self.clear()
        if self.publishing:
            # The end is published last.
            await asyncio.wait([self.publishing], timeout=30)
        await self.publish('exit', self.status, *self.reason)
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
        return int(self.status) if self.status.isdigit() else 1

    def open_log(self):
        """Returns whether this node shares the data directory of the server; then the output goes to a file there."""
        try:
            with open(self.settings['marker']) as marker:
                shared = marker.read() == self.settings['nonce']
        except OSError:
            shared = False
        path = self.settings['log'] if shared else '/dev/null'
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        return shared

    def start(self, folder, shared):
        settings = self.settings
        argv = settings['argv']
        if not shared and any('{data_directory}' in part for part in argv):
            raise Refused('This engine needs the data directory of the server, which its node does not share.')
        port = free_port()
        home = settings['home'] if shared else os.path.join(folder, 'home')
        own = os.path.join(folder, 'tmp')
        places = {
            '{port}': str(port),
            '{socket}': os.path.join(folder, 's'),
            '{home}': home,
            '{outputs}': settings['outputs'] if shared else own,
            '{data_directory}': settings['dataDirectory'],
        }
        argv = [re.sub(r'\{\w+\}', lambda found: places.get(found.group(), found.group()), part) for part in argv]
        env = dict(settings['env'], HOME=home, TMPDIR=own, INFER_ENGINE_FOLDER=own)
        env.update((name, value) for name, value in os.environ.items() if PASSED.match(name))
        if settings['cards'] == 0:
            env['CUDA_VISIBLE_DEVICES'] = ''
        if not shutil.which(argv[0], path=env['PATH']):
            name = os.path.basename(argv[0])
            raise Refused("The program '%s' is not installed on its node, or not on PATH there." % name)

        def prepare():
            libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG

        program = shutil.which(argv[0], path=env['PATH'])
        self.engine = subprocess.Popen(
            argv, executable=program, env=env, cwd=home, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare
        )
        return places['{socket}'] if settings['channel'] == 'socket' else port

    def listen(self, folder, target):
        """Accepts connections of the server only: both sides prove that they have the key of this launch."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.options |= ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1
        context.verify_mode = ssl.CERT_REQUIRED
        context.set_alpn_protocols(['http/1.1', CONTROL])
        context.load_verify_locations(cadata=self.settings['certificate'])
        pair = os.path.join(folder, 'pair')
        with open(os.open(pair, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as file:
            file.write(self.settings['certificate'] + self.settings['key'])
        context.load_cert_chain(pair)
        os.remove(pair)

        async def accept(reader, writer):
            self.heard_at = time.monotonic()
            try:
                if writer.get_extra_info('ssl_object').selected_alpn_protocol() == CONTROL:
                    await self.control(reader, writer)
                else:
                    await self.forward(target, reader, writer)
            except (OSError, ValueError):
                pass
            finally:
                writer.close()

        return asyncio.start_server(accept, node_address(), 0, ssl=context, backlog=512)

    async def control(self, reader, writer):
        while True:
            line = await reader.readline()
            if not line:
                return
            self.heard_at = time.monotonic()
            stop = json.loads(line.decode()).get('stop')
            if stop is not None:
                self.end(stop / 1000)
            writer.write(b'{}\n')
            await writer.drain()

    async def forward(self, target, reader, writer):
        if isinstance(target, str):
            inner_reader, inner_writer = await asyncio.open_unix_connection(target)
        elif is_own_port(target):
            inner_reader, inner_writer = await asyncio.open_connection('127.0.0.1', target)
        else:
            return
        directions = [
            asyncio.ensure_future(self.copy(reader, inner_writer, True)),
            asyncio.ensure_future(self.copy(inner_reader, writer, False)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            inner_writer.close()

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

    def cancel(self):
        self.is_cancelled = True
        self.end(CANCEL_GRACE)

    def end(self, grace):
        """Asks the engine to end, and has it killed after so many seconds; a later call may only shorten that."""
        first = self.deadline is None
        at = time.monotonic() + grace
        self.deadline = at if first else min(self.deadline, at)
        if first and grace > 0 and self.engine and self.status is None:
            try:
                os.killpg(self.engine.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        self.changed.set()

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            if pid in self.waiting:
                ended = self.waiting.pop(pid)
                if not ended.done():
                    ended.set_result(code)
            elif self.engine and pid == self.engine.pid:
                self.engine.returncode = code
                self.status = 'SIGKILL' if self.killed else str(code) if code >= 0 else signal.Signals(-code).name
                self.changed.set()

    async def supervise(self):
        """Resolves when the engine has ended."""
        while self.status is None:
            now = time.monotonic()
            if self.deadline is None and now - self.heard_at > self.settings['orphanSeconds']:
                self.reason = ('No server has asked for it for %d s.' % self.settings['orphanSeconds'],)
                print(*self.reason, flush=True)
                self.end(ORPHAN_GRACE)
            elif self.deadline is not None and now >= self.deadline:
                self.killed = True
                self.kill_all()
            elif now - max(self.heard_at, self.published_at) > PUBLISH_AGAIN and self.publishing.done():
                self.publishing = asyncio.ensure_future(self.publish(*self.words))
            ahead = 1.0 if self.deadline is None else max(0.02, min(1.0, self.deadline - now))
            try:
                await asyncio.wait_for(self.changed.wait(), ahead)
            except asyncio.TimeoutError:
                pass
            self.changed.clear()

    def kill_all(self):
        left = [pid for pid in descendants() if pid not in self.waiting]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left

    async def clear(self):
        """Kills what the engine has left, also in sessions of its own."""
        until = time.monotonic() + 10
        while self.kill_all() and time.monotonic() < until:
            await asyncio.sleep(0.02)

    async def publish(self, *words):
        """Sets the comment of the job, which every user of the cluster may read. Repeats it while slurmctld is away."""
        comment = ' '.join((self.settings['comment'], 'g%d' % self.generation) + words)
        until = time.monotonic() + 120
        pause = 0.2
        while time.monotonic() < until and (words[0] == 'exit' or not self.is_over):
            command = ['scontrol', 'update', 'JobId=' + os.environ['SLURM_JOB_ID'], 'Comment=' + comment]
            try:
                child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                ended = self.waiting[child.pid] = self.loop.create_future()
                child.returncode = 0
                if await asyncio.wait_for(ended, 30) == 0:
                    self.published_at = time.monotonic()
                    return
            except asyncio.TimeoutError:
                os.kill(child.pid, signal.SIGKILL)
            except OSError as fault:
                print('Nobody learns where this engine is, because scontrol cannot be started: %s' % fault, flush=True)
                return
            if self.is_cancelled and words[0] == 'exit':
                # Slurm has ended the job: it knows why, and takes no more comments.
                return
            await asyncio.sleep(pause)
            pause = min(10, pause * 2)


def main(settings, kind=Wrapper):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    code = loop.run_until_complete(kind(json.loads(settings), loop).run())
    sys.stdout.flush()
    os._exit(code)
