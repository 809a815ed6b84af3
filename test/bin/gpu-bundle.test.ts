import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { discover } from '../../gpu/devices/nvidia-smi.ts'
import { full } from '../_full.ts'
import { openFakeCard, runChecks } from '../gpu/_fake-card.ts'

/** The bundle for a GPU machine is built, copied to an empty folder and run there; its report is recorded here. */
let folder: string
let card: ReturnType<typeof openFakeCard>
const made = (): string => join(folder, 'made')
const moved = (): string => join(folder, 'elsewhere', 'checks')

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'infer-bundle-'))
  card = openFakeCard()
  execFileSync(process.execPath, ['bin/gpu-bundle.ts', made()], { stdio: 'pipe' })
  mkdirSync(join(folder, 'elsewhere'))
  cpSync(made(), moved(), { recursive: true })
}, 300_000)
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
  card.close()
})

const run = (...args: string[]) =>
  runChecks(
    ['--device', 'fake', '--quick', '--output', card.output, ...args],
    {
      PATH: `${join(card.folder, 'bin')}:${process.env.PATH}`,
      LD_LIBRARY_PATH: join(card.folder, 'lib'),
      INFER_FAKE_CARD: card.folder,
    },
    [join(moved(), 'run')],
  )

test.runIf(full)('it has at most 56 MiB, and no fakes', () => {
  const files = readdirSync(made(), { recursive: true, encoding: 'utf8' })
  const bytes = files.reduce((sum, name) => sum + statSync(join(made(), name)).size, 0)
  expect(bytes).toBeLessThan(56 * 2 ** 20)
  expect(files).toEqual(expect.arrayContaining(['infer.xz', 'llama.cpp.tar.xz', 'run', 'checks/run.py']))
  expect(files.filter(name => /fake|pycache/.test(name))).toEqual([])
})

test.runIf(full)(
  'its checks run in the copied folder; their report is recorded as a table and as fixtures',
  {
    timeout: 60_000,
  },
  async () => {
    const { code, lines, err } = await run('--part', 'discovery')
    expect(lines[0], err).toMatch(/^bundle.files: ok, \d+ files, 0 changed or missing$/)
    expect(lines[1]).toMatch(/^bundle.unpack: ok, \d+\.\d s$/)
    expect(code, lines.join('\n')).toBe(0)

    const repository = join(folder, 'repository')
    mkdirSync(join(repository, 'test', 'bench'), { recursive: true })
    cpSync('test/bench/RESULTS.md', join(repository, 'test', 'bench', 'RESULTS.md'))
    const results = () => readFileSync(join(repository, 'test', 'bench', 'RESULTS.md'), 'utf8')
    for (let again = 0; again < 2; again++)
      execFileSync(process.execPath, ['bin/gpu-record.ts', card.output, repository], { stdio: 'pipe' })
    expect(results()).not.toContain('measured yet')
    expect(results().match(/^## NVIDIA Fake$/gm)).toHaveLength(1)
    expect(results()).toMatch(/^\d{4}-\d\d-\d\d, driver 580\.159\.03, commit \S+$/m)
    expect(results()).toMatch(/^\| discovery\.cards \| ok \| 1 of 1: NVIDIA Fake \|$/m)
    const recorded = join(repository, 'test', 'gpu', 'devices', 'recorded', 'nvidia-fake')
    expect(readFileSync(join(recorded, 'nvidia-smi-L.txt'), 'utf8')).toContain(
      'GPU 0: NVIDIA Fake (UUID: GPU-00000000-',
    )
    expect(
      (await discover({ environment: { PATH: join(card.folder, 'bin') + `:${process.env.PATH}` } })).devices,
    ).toHaveLength(1)
  },
)

test.runIf(full)('a file that was damaged in transfer is named', async () => {
  appendFileSync(join(moved(), 'checks', 'README.md'), 'x')
  const { code, lines } = await run('--part', 'discovery', '--check', 'bundle.files')
  expect(lines[0]).toMatch(/^bundle.files: fail, \d+ files, 1 changed or missing; .*checks\/README.md$/)
  expect(code).toBe(1)
})
