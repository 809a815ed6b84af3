import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openFakeCard } from './_fake-card.ts'

/** What becomes of a run in which something hangs, that is ended from outside, or whose parts fail. */
let card: ReturnType<typeof openFakeCard>
beforeAll(() => (card = openFakeCard()))
afterAll(() => card.close())

interface Recorded {
  checks: { name: string; outcome: string; figure: string }[]
}
const recorded = (): Recorded['checks'] => (JSON.parse(readFileSync(card.output, 'utf8')) as Recorded).checks

/** Whether the process exists and has not ended: one that nobody has waited for yet counts as ended. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Starts a Python program with the modules of the checks on its path, and `OUTPUT` as the file of the report. */
function python(...lines: string[]) {
  const program = [
    'import os, signal, subprocess, sys, time',
    `sys.path.insert(0, ${JSON.stringify(resolve('test/gpu/checks'))})`,
    `OUTPUT = ${JSON.stringify(card.output)}`,
    ...lines,
  ].join('\n')
  const child = spawn('python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  return { child, printed: text(child.stdout) }
}

test('a check that hangs fails at its limit, and the next one runs', async () => {
  const { printed } = python(
    'from report import Budget, Report',
    'report = Report(OUTPUT, {})',
    'report.run("hangs", lambda check: time.sleep(60), Budget(100), limit=0.2)',
    'report.run("next", lambda check: check.measured("1 s"), Budget(100))',
  )
  expect(await printed).toBe('hangs: fail, it had not ended after 0 s\nnext: ok, 1 s\n')
})

test('a call of the driver that does not answer is refused', async () => {
  const { printed } = python(
    'from parking import Parking, Refused',
    'parking = object.__new__(Parking)',
    'parking.library = type("Library", (), {"cuHangs": staticmethod(lambda: time.sleep(60))})',
    'try: parking._call("cuHangs", seconds=0.1)',
    'except Refused as refused: print(refused)',
  )
  expect(await printed).toBe('cuHangs answered nothing within 0.1 s\n')
})

test('a value that is no JSON does not end the run', async () => {
  const { printed } = python(
    'from report import Budget, Report',
    'report = Report(OUTPUT, {})',
    'report.run("odd", lambda check: check.measured("1 s", odd={1: object}), Budget(100))',
  )
  expect(await printed).toBe('odd: ok, 1 s\n')
})

test('a part whose server does not start fails, and the next part runs', async () => {
  const checks = 'discovery.cards,worker.bare'
  const { code, lines } = await card.run(['--infer', '/bin/false', '--part', 'discovery,worker', '--check', checks])
  expect(lines[0]).toMatch(/^discovery: fail, ServerError: infer serve did not start/)
  expect(lines[1]).toMatch(/^worker.bare: ok/)
  expect(code).toBe(1)
})

test.each([
  ['SIGTERM', 143],
  ['SIGKILL', null],
] as const)('%s in a check: its server ends too', async (name, status) => {
  const folder = join(card.folder, name)
  const { child, printed } = python(
    'import run, types',
    'from report import Budget, Report',
    'from server import InferServer',
    'def check(check):',
    `    server = InferServer(${JSON.stringify(resolve('build/infer'))}, ${JSON.stringify(folder)}, [], dict(os.environ))`,
    '    with server:',
    '        print(server.process.pid, flush=True)',
    `        os.kill(os.getpid(), signal.${name})`,
    '        time.sleep(60)',
    'signal.signal(signal.SIGTERM, run.end)',
    'Report(OUTPUT, {}).run("ended", check, Budget(100))',
  )
  const code = new Promise<number | null>(settle => child.once('exit', settle))
  const pid = Number((await printed).split('\n')[0])
  expect(pid).toBeGreaterThan(1)
  expect(await code).toBe(status)
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 20_000)
  if (name === 'SIGTERM')
    expect(recorded()).toMatchObject([
      { name: 'ended', outcome: 'fail', figure: 'the run was ended meanwhile (SystemExit)' },
    ])
})

test('a check that measures for those before it is skipped without the time for that', async () => {
  const { printed } = python(
    'from once import Once',
    'once = Once("a measurement", lambda: 7)',
    'print(once.seconds(40), once(), once.seconds(40))',
  )
  expect(await printed).toBe('40 7 1.0\n')
})
