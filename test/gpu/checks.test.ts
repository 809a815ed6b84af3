import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { full } from '../_full.ts'
import { openFakeCard, runChecks } from './_fake-card.ts'

/**
 * The checks for machines with a card, against a card that is a folder and the packed executable. Each part passes, and
 * each check fails when what it looks at is wrong.
 */
let card: ReturnType<typeof openFakeCard>
beforeAll(() => (card = openFakeCard()))
afterEach(() => {
  card.misbehave()
  card.clear()
})
afterAll(() => card.close())

const minute = 60_000

interface Recorded {
  card: string
  driver: string
  parts: string[]
  checks: { name: string; outcome: string; figure: string; values: Record<string, unknown> }[]
  raw: Record<string, string>
}
const recorded = (): Recorded => JSON.parse(readFileSync(card.output, 'utf8')) as Recorded

/** With the least number of checks of each. The first two start a server, load models and send requests. */
const parts: [part: string, atLeast: number][] = [
  ['discovery', 9],
  ['worker', 1],
  ['memory', 9],
  ['swap', 5],
  ['gateway', 4],
  ['llama', 3],
]

describe('every part passes', () => {
  test.each(full ? parts : parts.slice(0, 2))('%s', { timeout: 2 * minute }, async (part, atLeast) => {
    const { code, lines, err } = await card.run(['--part', part])
    expect(
      lines.filter(line => /: fail/.test(line)),
      err,
    ).toEqual([])
    const found = recorded()
    expect(found).toMatchObject({ card: 'NVIDIA Fake', driver: '580.159.03', parts: [part] })
    expect(found.checks.filter(({ outcome }) => outcome === 'ok').length, lines.join('\n')).toBeGreaterThanOrEqual(
      atLeast,
    )
    for (const { name, outcome, figure } of found.checks) expect(lines).toContain(`${name}: ${outcome}, ${figure}`)
    expect(statSync(card.output).size).toBeLessThan(4 * 2 ** 20)
    expect(code).toBe(0)
  })
})

describe.runIf(full)('every check fails when what it looks at is wrong', () => {
  test.each<[fault: string, check: string, line: RegExp]>([
    ['smi-lenient', 'discovery.raw_outputs', /fail, .*an unknown field was expected to end nvidia-smi with 2/],
    ['smi-names', 'discovery.doctor', /fail, .*the card's name was expected/],
    ['smi-names', 'discovery.cards', /fail, .*NVML says NVIDIA Fake/],
    ['smi-differs', 'discovery.memory', /fail, 5\.\d+ GiB as infer reports \(never\)/],
    ['smi-hot', 'discovery.readings', /fail, .*temperature_celsius was expected to be at most 3 apart/],
    ['smi-hides', 'discovery.processes', /fail, .*the same processes were expected/],
    ['never-frees', 'memory.booked.1gb', /fail, .*1\.00 GiB were still in use when the server said/],
    ['never-frees', 'memory.free_after_stop', /fail, .*at most 5 s were expected/],
    ['never-frees', 'memory.free_after_kill', /fail, .*at most 5 s were expected/],
    ['never-frees', 'memory.survivors', /fail, 0 of \d+ processes left.*the memory stayed in use for 10 s/],
    ['others', 'memory.two_engines', /fail, .*both were expected to be loaded/],
    ['others', 'memory.eviction', /fail, .*checks\/second was expected to leave/],
    ['endless', 'memory.out_of_memory_at_load', /fail, answered 200 .*503 was expected/],
    ['endless', 'memory.out_of_memory_in_request', /fail, answered 200 .*500 or more was expected/],
    ['slow-parking', 'swap.park.1gb', /fail, parked in 2\.1\d s.*at most 2 s each way were expected/],
    [
      'refuses-lock',
      'swap.park.1gb',
      /skipped, refused here: cuCheckpointProcessLock answered CUDA_ERROR_NOT_SUPPORTED/,
    ],
    ['refuses-checkpoint', 'swap.park.1gb', /skipped, refused here: cuCheckpointProcessCheckpoint answered CUDA_/],
    ['refuses-restore', 'swap.park.1gb', /fail, parked, but not restored: cuCheckpointProcessRestore answered CUDA_/],
    ['forgets', 'swap.park.1gb', /fail, the engine answered otherwise after it was restored/],
    [
      'stops-decoding',
      'gateway.first_token.4',
      /fail, directly \d+ of 80 tokens came: .*connection ended after \d+ tokens/,
    ],
    ['draws-nothing', 'worker.overhead', /fail, a picture was answered/],
  ])('%s: %s', { timeout: minute }, async (fault, check, line) => {
    card.misbehave(fault)
    const { code, lines } = await card.run(['--part', check.split('.')[0]!, '--check', check])
    expect(lines[0]).toMatch(new RegExp(`^${check}: ${line.source}`))
    expect(code).toBe(line.source.startsWith('fail') ? 1 : 0)
  })

  test('an engine that takes more than is booked for it: the booking follows', async () => {
    card.misbehave('holds-more')
    const { lines } = await card.run(['--part', 'memory', '--check', 'memory.booked.2gb'])
    expect(lines[0]).toMatch(/^memory.booked.2gb: ok, 2.00 GiB of weights use 3.00 GiB, booked 3.\d+ GiB/)
  })

  test('without wrappers an engine survives the server', async () => {
    const PATH = card.pathOf('python3', 'sh', 'cat')
    const { code, lines } = await card.run(['--part', 'memory', '--check', 'memory.survivors'], { PATH })
    expect(lines[0]).toMatch(/^memory.survivors: fail, 1 of 1 processes left after 2 s/)
    expect(code).toBe(1)
  })

  test('without wrappers discovery says which are missing', async () => {
    const PATH = card.pathOf('python3', 'sh')
    const { lines } = await card.run(['--part', 'discovery', '--check', 'discovery.wrapper.bubblewrap_files'], { PATH })
    expect(lines[0]).toBe('discovery.wrapper.bubblewrap_files: skipped, bwrap is not installed')
  })
})

describe('the run', () => {
  test('without a driver it says so in one sentence and ends with 0', async () => {
    const found = await runChecks([], { PATH: card.pathOf('python3').split(':')[1]! })
    expect(found).toEqual({
      code: 0,
      err: '',
      lines: [
        'There is no NVIDIA card here: neither nvidia-smi nor its library (NVML) is installed. Nothing was checked.',
      ],
    })
  })

  test.each([
    ['no-card', /^There is no NVIDIA card here: the driver is installed and finds none\. Nothing was checked\.$/],
    ['no-nvml', /^There is no NVIDIA card that can be used here: nvmlInit_v2 answered 9\. Nothing was checked\.$/],
  ])('%s: one sentence, and ends with 0', async (fault, sentence) => {
    card.misbehave(fault)
    const { code, lines } = await card.run([])
    expect(lines).toEqual([expect.stringMatching(sentence)])
    expect(code).toBe(0)
  })

  test('a part that does not exist is named, with those that do', async () => {
    const { code, err } = await card.run(['--part', 'discovery,speed'])
    expect(err).toBe("There is no part 'speed'. Parts: discovery, gateway, memory, swap, worker, llama.\n")
    expect(code).toBe(64)
  })

  test('without budget every check is skipped', { timeout: minute }, async () => {
    const { code, lines } = await card.run(['--part', 'discovery,swap', '--budget', '0'])
    expect(
      lines.slice(0, -1).every(line => /: skipped, it needs \d+ s and 0 s of the budget are left$/.test(line)),
    ).toBe(true)
    expect(lines.at(-1)).toMatch(/^0 ok, 0 fail, \d+ skipped; figures in /)
    expect(code).toBe(0)
  })

  test('an executable that is missing is named', async () => {
    const { code, err } = await card.run(['--infer', '/nowhere/infer'])
    expect(err).toBe('/nowhere/infer is missing or cannot be run. In a checkout: npm run pack.\n')
    expect(code).toBe(64)
  })

  test('the file stays below 4 MiB whatever is printed', () => {
    const program = [
      'import sys',
      `sys.path.insert(0, ${JSON.stringify(resolve('test/gpu/checks'))})`,
      'from report import Budget, Report',
      `report = Report(${JSON.stringify(card.output)}, {"card": "x"})`,
      'for at in range(100): report.raw(str(at), "\\x01" * 10**6)',
      'for at in range(40): report.run(f"check.{at}", lambda check: check.measured("x" * 10**6, all=["y" * 10**5]), Budget(9))',
    ].join('\n')
    execFileSync('python3', ['-c', program], { stdio: 'ignore' })
    expect(statSync(card.output).size).toBeLessThan(4 * 2 ** 20)
    expect(recorded().checks).toHaveLength(40)
  })

  test('every file is valid Python without warnings', () => {
    const folder = resolve('test/gpu/checks')
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.py'))
    const program =
      'import sys\nfor path in sys.argv[1:]:\n with open(path) as file: compile(file.read(), path, "exec")'
    execFileSync('python3', ['-W', 'error', '-c', program, ...files.map(name => join(folder, name))])
  })
})
