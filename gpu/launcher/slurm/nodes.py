# The batch script of a job of several nodes: it follows wrapper.py. The first node has the endpoint, as in a job of one node. It starts
# the parts of the engine on the other nodes by one step of srun, which tells each by its standard input what to do. The end of any part
# ends all.
BEAT = 5
# Seconds without a beat of the first node after which a part ends; for a part to end after the first one has; and for srun after that.
SILENCE, PART_GRACE, STEP_GRACE = 40, 2, 10
LONGEST_LINE = 1 << 20
PYTHON = 'for p in python3 /usr/libexec/platform-python; do command -v "$p" >/dev/null 2>&1 && exec "$p" -I -c "$0"; done; exit 127'
# A byte at a time: what follows the first line is for the event loop.
BEGIN = 'import json; exec(json.loads(open(0, "rb", 0, closefd=False).readline().decode()))'


def address_towards(name):
    """The address of this node from which others reach it that reach `name`; None if the name is not known."""
    try:
        family, _, _, _, address = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            return probe.getsockname()[0]
    except OSError:
        return None


def last_host(hosts):
    """The last name of a list such as `gpu[1-3,7],cpu2`, by Slurm's own words."""
    try:
        return subprocess.check_output(['scontrol', 'show', 'hostnames', hosts], timeout=30).decode().split()[-1]
    except (OSError, subprocess.SubprocessError, IndexError):
        return ''


class Part(Wrapper):
    """The engine's part on one node. `rank`: 0 on the first one."""

    def place(self, rank, address, port):
        nodes = str(self.settings['nodes'])
        places = {'{nodes}': nodes, '{node_rank}': str(rank), '{first_node}': address, '{first_node_port}': str(port)}
        more = self.settings['others'] if rank > 0 else []
        argv = [
            re.sub(r'\{\w+\}', lambda found: places.get(found.group(), found.group()), part)
            for part in self.settings['argv'] + more
        ]
        env = dict(self.settings['env'])
        if env.get('VLLM_HOST_IP') == '127.0.0.1':
            env['VLLM_HOST_IP'] = address if rank == 0 else address_towards(address) or node_address()
        self.settings = dict(self.settings, argv=argv, env=env)


class First(Part):
    """The part on the first node, which publishes the endpoint and speaks for all."""

    step = line = status_of_lost = None

    def start(self, folder, shared):
        peer = last_host(os.environ.get('SLURM_JOB_NODELIST', ''))
        address = address_towards(peer) or node_address()
        with socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET) as probe:
            probe.bind((address, 0))
            port = probe.getsockname()[1]
        given = {name: self.settings[name] for name in ('env', 'cards', 'channel', 'outputs', 'dataDirectory', 'nodes')}
        given.update(argv=self.settings['argv'], others=self.settings['others'], first=address, port=port)
        given['orphanSeconds'] = SILENCE
        # By this word the lines of the wrappers differ from those of the engine.
        self.word = given['word'] = os.urandom(8).hex()
        self.place(0, address, port)
        target = super().start(folder, shared)
        self.begin_step(given)
        return target

    def begin_step(self, given):
        with open(__file__, encoding='utf8') as script:
            program = script.read().rsplit('\nmain', 1)[0]
        count = given['nodes'] - 1
        command = ['srun', '--relative=1', '--nodes=%d' % count, '--ntasks=%d' % count, '--ntasks-per-node=1']
        command += ['--cpus-per-task=' + os.environ.get('SLURM_CPUS_PER_TASK', '1'), '--mpi=none', '--export=ALL', '--label', '--unbuffered', '--kill-on-bad-exit=1', '--quiet', '--chdir=/']
        command += ['/bin/sh', '-c', PYTHON, BEGIN]
        try:
            self.step = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise Refused("The program 'srun', which starts its parts on other nodes, is not on PATH on its first node.")
        self.step_ended = self.waiting[self.step.pid] = self.loop.create_future()
        self.step.returncode = 0
        first_line = json.dumps('%s\n\n\nmain(%r, Other)\n' % (program, json.dumps(given))) + '\n'
        self.talk = asyncio.ensure_future(self.speak(first_line))
        self.hear = asyncio.ensure_future(self.listen_to_parts())
        self.follow = asyncio.ensure_future(self.follow_step())

    async def speak(self, first_line):
        """Tells the other parts that this one is there, until srun is gone."""
        self.line, _ = await self.loop.connect_write_pipe(asyncio.Protocol, self.step.stdin)
        self.line.write(first_line.encode())
        while not self.line.is_closing():
            self.line.write(b'\n')
            await asyncio.sleep(BEAT)

    async def listen_to_parts(self):
        reader = asyncio.StreamReader(limit=LONGEST_LINE, loop=self.loop)
        await self.loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=self.loop), self.step.stdout)
        while True:
            try:
                line = await reader.readline()
            except ValueError:
                continue
            if not line:
                return
            task, _, text = line.partition(b':')
            rank = int(task) + 1 if task.strip().isdigit() else None
            text = line if rank is None else text[1:]
            words = text.split()
            if words[:1] == [self.word.encode()]:
                status, node = (word.decode() for word in words[1:3])
                self.lost("Its part on the node '%s' has ended with %s." % (node, status), status)
            else:
                # As bytes: Python 3.6 knows only ASCII in the locale of a job, and would stop here at the first other character.
                sys.stdout.buffer.write(text if rank is None else b'rank %d: %s' % (rank, text))
                sys.stdout.buffer.flush()

    async def follow_step(self):
        await asyncio.wait([self.step_ended])
        # What the parts have said last explains more.
        await asyncio.wait([self.hear], timeout=2)
        self.lost('Its parts on other nodes have ended.')

    def lost(self, reason, status=None):
        if self.status is None and self.deadline is None:
            self.reason, self.status_of_lost = (reason,), status
            print(reason, flush=True)
            self.end(CANCEL_GRACE)

    def tell_end(self, grace):
        if self.line and not self.line.is_closing():
            self.line.write(b'%d\n' % grace)

    async def clear(self):
        if self.step:
            self.tell_end(0 if self.killed else PART_GRACE)
            await asyncio.wait([self.step_ended], timeout=STEP_GRACE)
            if not self.step_ended.done():
                os.kill(self.step.pid, signal.SIGKILL)
                await asyncio.wait([self.step_ended], timeout=1)
            await asyncio.wait([self.hear], timeout=1)
            for task in (self.talk, self.hear, self.follow):
                task.cancel()
        await super().clear()
        self.status = self.status_of_lost or self.status


class Other(Part):
    """The part on another node: it hears of the first one by its standard input."""

    async def run(self):
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self.loop.add_signal_handler(name, self.cancel)
        self.loop.add_signal_handler(signal.SIGCHLD, self.reap)
        libc.prctl(36, 1, 0, 0, 0)
        # It publishes nothing.
        self.publishing = self.loop.create_future()
        folder, lock = make_folder()
        try:
            hearing = asyncio.ensure_future(self.hear())
            self.place(int(os.environ['SLURM_PROCID']) + 1, self.settings['first'], self.settings['port'])
            self.start(folder, False)
            await self.supervise()
            hearing.cancel()
        except (Refused, OSError) as fault:
            self.status = '127'
            print(fault, flush=True)
            if self.engine:
                self.kill_all()
        await self.clear()
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
        print(self.settings['word'], self.status, os.environ.get('SLURMD_NODENAME', ''), flush=True)
        # Whatever its engine says: the end of one part is the end of all.
        return 0 if self.deadline is not None else 1

    async def hear(self):
        reader = asyncio.StreamReader(loop=self.loop)
        await self.loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=self.loop), os.fdopen(0, 'rb', 0))
        while True:
            line = await reader.readline()
            if not line:
                return self.cancel()
            self.heard_at = time.monotonic()
            if line.strip():
                self.end(float(line))

