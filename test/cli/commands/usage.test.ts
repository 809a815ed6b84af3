import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { version } from '../../../core/assets.ts'
import { entry, infer, inferProcess, json } from '../_infer.ts'
import { chunk, fakeServer } from '../_server.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

test('--version prints the version and nothing else', async () => {
  expect(await inferProcess(['--version'])).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: '' })
})

test.each([[['--help']], [[]]])('%j lists every command', async args => {
  const { exitCode, stdout, stderr } = await infer(args)
  expect([exitCode, stderr]).toEqual([0, ''])
  for (const name of ['serve', 'chat', 'model', 'org', 'token', 'doctor', 'backup', 'restore', 'db', 'routes'])
    expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'))
})

test.each([
  [['serve', '--help']],
  [['chat', '--help']],
  [['help', 'chat']],
  [['help', 'token', 'list']],
  [['token', 'help', 'list']],
  [['model', 'list', '--help']],
  [['org', 'create', '--help']],
  [['token', 'create', '--help']],
  [['token', 'scan', '--help']],
  [['doctor', '--help']],
  [['backup', '--help']],
  [['restore', '--help']],
  [['db', 'check', '--help']],
  [['routes', '--help']],
  [['engine', 'gguf', '--help']],
])('%j shows usage and examples', async args => {
  const { exitCode, stdout, stderr } = await infer(args)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain('Usage: infer ')
  expect(stdout).toMatch(/\nExamples:\n {2}/)
})

const wrong: [args: string[], said: string][] = [
  [['srve'], "Unknown command 'srve'. Did you mean 'serve'? See: infer --help"],
  [['frobnicate'], "Unknown command 'frobnicate'. See: infer --help"],
  [['--frobnicate'], "Unknown option '--frobnicate'. See: infer --help"],
  [['help', 'srve'], "There is no guide and no command 'srve'. Did you mean 'serve'? See: infer help"],
  [['srve', '--help'], "There is no command 'srve'. See: infer --help"],
  [['help', 'token', 'lst'], "There is no command 'token lst'. See: infer token --help"],
  [['workflow', 'nope', '--help'], "There is no command 'workflow nope'. See: infer workflow --help"],
  [['workflow', 'run', 'x', '--foo'], "Unknown option '--foo'. See: infer workflow run --help"],
  [['workflow', 'run', 'x', '--param', 'x'], "'x' is not a valid value of --param. Write it as name=value"],
  [['workflow', 'run', 'x', '--param'], '--param needs a value. See: infer workflow run --help'],
  [['job', 'list', '--status', 'lost'], "'lost' is not a valid value of --status. Write one of pending,"],
  [['serve', '--lisen', ':1'], "Unknown option '--lisen'. Did you mean '--listen'? See: infer serve --help"],
  [['serve', '--listen', 'nowhere'], 'Write it as host:port'],
  [['serve', '--port', '1'], "Unknown option '--port'. Write --listen host:port. See: infer serve --help"],
  [['serve', '--drain-timeout', 'soon'], 'Write a duration as 250ms, 30s, 5m, 2h or 90d.'],
  [['serve', '--log-level', 'loud'], 'debug, info, warn, error'],
  [['serve', 'now'], 'Too many arguments'],
  [['token', 'creat'], "Unknown command 'creat'. Did you mean 'create'? See: infer token --help"],
  [['token'], 'The subcommand is missing. See: infer token --help'],
  [['token', 'revoke'], "Missing required argument 'id'"],
  [['token', 'create', '--scopes', 'root'], "There is no scope 'root'."],
  [['token', 'create', '--expires', 'soon'], 'Write it as 90d, 12h, 2027-01-31 or never.'],
  [['token', 'create', '--expires', '10000000000d'], 'Write it as 90d, 12h, 2027-01-31 or never.'],
  [['token', 'show', ''], 'The argument <id> is empty. See: infer token show --help'],
  [['file', 'show', ''], 'The argument <id> is empty. See: infer file show --help'],
  [['engine', 'demo', '--socket', '99999999999999999999'], "'99999999999999999999' must be a path with a slash"],
  [['token', 'rotate', 'tok_1', '--overlap', '25h'], '--overlap is at most 24h.'],
  [['org', 'create', 'x'.repeat(129)], '1 to 128 characters'],
  [['chat', '--temperature', 'hot'], 'Write a number from 0 to 2.'],
  [['engine', 'gguf', '--id', 'x'], "Required option '--model <path>' not specified."],
  [['engine', 'gguf', '--model', 'x', '--id', 'x', '--task', 'std/magic'], "There is no task 'std/magic'."],
  [['engine', 'gguf', '--model', 'x', '--id', 'x'], 'Give either --socket <path> or --port'],
]

test.each(wrong)('%j is wrong usage: exit code 64 and one sentence', async (args, said) => {
  const { exitCode, stdout, stderr } = await infer(args)
  expect(stdout).toBe('')
  expect(stderr).toContain(said)
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  expect(exitCode).toBe(64)
})

test('with --json wrong usage prints an error body', async () => {
  const { exitCode, stderr } = await infer(['token', 'create', '--scopes', 'root', '--json'])
  expect(exitCode).toBe(64)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'invalid_value' } })
})

test('routes --json prints the whole table with scopes', async () => {
  const ended = await infer(['routes', '--json'])
  expect(ended.exitCode).toBe(0)
  const routes = json(ended) as { method: string; path: string; scope: string; summary: string }[]
  expect(routes.length).toBeGreaterThan(10)
  expect(routes.every(route => route.scope && route.summary && route.path.startsWith('/'))).toBe(true)
  expect(routes.find(({ path }) => path === '/std/v1/chat/completions')).toMatchObject({
    method: 'POST',
    scope: 'user:write',
  })
})

test('when the reader of the output closes, the program exits without a message and aborts its request', async () => {
  const gone = Promise.withResolvers<void>()
  const { url } = await fakeServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const talking = setInterval(() => response.write(chunk({ content: 'and so on ' })), 5)
    response.on('close', () => {
      clearInterval(talking)
      gone.resolve()
    })
  })
  const child = spawn(process.execPath, [entry, 'chat', 'm'], {
    env: { PATH: process.env.PATH, INFER_URL: url, INFER_TOKEN: 'x' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end('Hi')
  let stderr = ''
  child.stderr.on('data', piece => (stderr += String(piece)))
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [exitCode] = (await once(child, 'close')) as [number]
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  await gone.promise
})

/** Runs with lines of JavaScript preloaded, as an environment beyond our control might. */
const injected = (code: string) => ({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` })

test('files it writes are private, and JSON cannot reach the prototype of objects', async () => {
  const code = `process.on('exit', () => process.stderr.write(process.umask().toString(8) + ' ' + ('__proto__' in {})))`
  expect((await inferProcess(['routes'], { env: injected(code) })).stderr).toBe('77 false')
})

test('an uncaught error exits with 70', async () => {
  const { url } = await fakeServer(() => undefined)
  const code = `process.on('newListener', name => {
    if (name === 'uncaughtException') setImmediate(() => { throw new Error('injected') })
  })`
  const ended = await inferProcess(['chat', 'm'], {
    env: { ...injected(code), INFER_URL: url, INFER_TOKEN: 'x' },
    input: 'waits for ever',
  })
  expect(ended.exitCode).toBe(70)
  expect(ended.stderr).toContain('injected')
})

test.each<Record<string, string>>([{ FORCE_COLOR: '1' }, { CI: 'true', GITHUB_ACTIONS: 'true' }])(
  'a pipe gets no colours with %j',
  async env => {
    const { stdout } = await inferProcess(['routes'], { env })
    expect(stdout).toContain('/livez')
    expect(stdout).not.toContain('\u001b')
  },
)

test.skipIf(!hasTerminal)('a terminal gets colours, unless NO_COLOR is set', async () => {
  const [bright, dull] = [inTerminal(['routes']), inTerminal(['routes'], { NO_COLOR: '1' })]
  expect([await bright.ends(), await dull.ends()]).toEqual([0, 0])
  expect(bright.everything()).toContain('\u001b[2mmethod')
  expect(dull.everything()).toContain('method')
  expect(dull.everything()).not.toContain('\u001b')
})
