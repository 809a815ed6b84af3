import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { full } from '../_full.ts'
import { openFakeCard } from './_fake-card.ts'

/**
 * The checks of llama.cpp with a compiler and a llama-server that only pretend: the build, what is measured with it, and
 * what is said when a step fails. The built-in engine is the real one and computes on the processor.
 */
let card: ReturnType<typeof openFakeCard>
let sources: string
beforeAll(() => {
  card = openFakeCard()
  const script = (name: string, text: string, mode = 0o755) => {
    const path = join(card.folder, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }
  script('bin/nvcc', '#!/bin/sh\necho "Cuda compilation tools, release 13.0, V13.0.88"\n')
  const cmake = resolve('test/gpu/checks/fake/cmake.py')
  script('bin/cmake', `#!/bin/sh\nINFER_FAKE_CARD=${card.folder} exec python3 ${cmake} "$@"\n`)
  script('include/cublas_v2.h', '', 0o644)
  for (const name of ['libcudart', 'libcublas', 'libcublasLt']) script(`lib/${name}.so.13`, '', 0o644)
  const license = script('LICENSE', 'MIT', 0o644)
  sources = join(card.folder, 'llama.cpp.tar.xz')
  execFileSync('tar', ['--create', '--xz', '--file', sources, '--directory', join(license, '..'), 'LICENSE'])
})
afterEach(() => card.misbehave())
afterAll(() => card.close())

const minute = 60_000
const run = (...more: string[]) => card.run(['--part', 'llama', '--sources', sources, ...more])

interface Recorded {
  checks: { name: string; outcome: string; values: Record<string, number | string> }[]
  raw: Record<string, string>
}
const recorded = () => JSON.parse(readFileSync(card.output, 'utf8')) as Recorded

test.runIf(full)('builds, then measures the built-in engine and llama-server', { timeout: 2 * minute }, async () => {
  const { code, lines, err } = await run()
  const built = lines.find(line => line.startsWith('llama.build'))
  expect(built, err).toMatch(/: ok, compiled for 90-real in \d+ s on \d+ cores$/)
  expect(lines.filter(line => !/: ok, /.test(line)).slice(0, -1)).toEqual([])
  const values = Object.fromEntries(recorded().checks.map(check => [check.name, check.values]))
  expect(values['llama.load']).toMatchObject({ backend: 'off', server_seconds: expect.any(Number) })
  for (const count of [1, 4]) {
    expect(values[`llama.streams.${count}`]).toMatchObject({
      builtin_tokens_per_second: expect.any(Number),
      server_tokens_per_second: expect.any(Number),
      bare_first_token_ms: expect.any(Number),
    })
    expect(values[`llama.ratio.${count}`]).toMatchObject({ ratio: expect.any(Number) })
  }
  expect(values['llama.prompt']).toMatchObject({ ratio: expect.any(Number), bare: expect.any(Number) })
  expect(values['llama.layout.auto']!.layout).toMatch(/^4 × 8192 tokens, on the CPU/)
  expect(code).toBe(0)
})

describe.runIf(full)('each check fails, or is skipped, with a sentence', () => {
  test.each<[fault: string, check: string, line: RegExp]>([
    [
      'configure-fails',
      'llama.build',
      /fail, cmake cannot configure the build of llama.cpp: CMake Error at CMakeLists/,
    ],
    ['compile-fails', 'llama.build', /fail, llama.cpp does not compile: common.cuh\(7\): error: identifier/],
    ['compile-fails', 'llama.ratio.1', /skipped, there is no llama-server to compare with/],
    ['server-dies', 'llama.load', /fail, ServerError: .*Engine exited \(1\): the model cannot be loaded/],
    ['server-stops', 'llama.load', /fail, RuntimeError: server: 12 of 16 tokens came/],
  ])('%s: %s', { timeout: minute }, async (fault, check, line) => {
    card.misbehave(fault)
    const { code, lines } = await run('--check', check)
    expect(lines[0]).toMatch(new RegExp(`^${check}: ${line.source}`))
    expect(code).toBe(line.source.startsWith('fail') ? 1 : 0)
  })

  test('a build that takes too long is ended', { timeout: minute }, async () => {
    card.misbehave('compile-hangs')
    const { lines } = await run('--check', 'llama.build', '--budget', '12')
    expect(lines[0]).toMatch(/^llama.build: fail, llama.cpp does not compile within \d s, 1 of 147 steps done\.$/)
    expect(recorded().raw['llama.build.log']).toContain('Building CUDA object')
  })

  test('without a compiler the build is skipped', { timeout: minute }, async () => {
    const PATH = card.pathOf('python3', 'sh')
    const tools = PATH.split(':')[1]!
    const { lines } = await card.run(['--part', 'llama', '--sources', sources, '--check', 'llama.build'], {
      PATH: tools,
    })
    expect(lines[0]).toBe('llama.build: skipped, cmake is not installed; llama.cpp cannot be built.')
  })
})
