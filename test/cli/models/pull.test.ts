import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import { pullProgressLine } from '../../../cli/models/pull.ts'
import { openHub, type Repository } from '../../fixtures/hub.ts'
import { entry, infer, temporaryFolder } from '../_infer.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

const big = randomBytes(3_000_000)
const repository: Repository = { files: { 'm-Q4_K_M.gguf': big, 'm-Q8_0.gguf': big, 'README.md': Buffer.from('x') } }

async function setUp(more: Partial<Repository> = {}) {
  const hub = await openHub({ 'o/m': { ...repository, ...more } })
  onTestFinished(() => hub.close())
  const home = temporaryFolder()
  const path = join(home, 'hub/models--o--m/snapshots', hub.commitOf('o/m'), 'm-Q4_K_M.gguf')
  const incomplete = () =>
    readdirSync(join(home, 'hub/models--o--m/blobs')).filter(name => name.endsWith('.incomplete'))
  return { hub, home, path, incomplete, env: { HF_ENDPOINT: hub.endpoint, HF_HOME: home } }
}

/** A pull in progress. */
function start(env: Record<string, string>) {
  const child = execa(process.execPath, [entry, 'model', 'pull', 'hf:o/m'], {
    env: { PATH: process.env.PATH ?? '', ...env },
    extendEnv: false,
    reject: false,
  })
  let said = ''
  child.stderr.on('data', piece => {
    said += String(piece)
  })
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    says: (text: string) => expect.poll(() => said).toContain(text),
    ends: child,
  }
}

test('in a pipe: progress as plain lines on standard error, the path on standard output', async () => {
  const { env, path } = await setUp()
  const { exitCode, stdout, stderr } = await infer(['model', 'pull', 'hf:o/m'], { env })
  expect([exitCode, stdout]).toEqual([0, `${path}\n`])
  expect(readFileSync(path)).toEqual(big)
  expect(stderr).toContain('Downloading m-Q4_K_M.gguf (2.9 MiB) from hf:o/m\nOther files: m-Q8_0.gguf\n')
  expect(stderr).toMatch(/m-Q4_K_M\.gguf: 100 % of 2\.9 MiB\n/)
  expect(stderr).toContain('Complete and verified')
  expect(stderr).not.toContain('\u001b')
  const again = await infer(['model', 'pull', 'hf:o/m'], { env })
  expect([again.stdout, again.stderr]).toEqual([stdout, expect.stringContaining('All files are already here.')])
})

test('--json: one object for each event', async () => {
  const { hub, env, path } = await setUp()
  hub.play('m-Q4_K_M.gguf', { cutAfter: 1_000_000 })
  const { stdout, stderr } = await infer(['model', 'pull', 'hf:o/m:Q4_K_M', '--json'], { env })
  const events = stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
  expect(stderr).toBe('')
  expect(events[0]).toEqual({ event: 'connect', host: new URL(hub.endpoint).host, what: 'o/m' })
  expect(events[1]).toMatchObject({ event: 'plan', bytes: 3_000_000, commit: hub.commitOf('o/m') })
  expect(events).toContainEqual(expect.objectContaining({ event: 'retry', wait_ms: 1000 }))
  expect(events).toContainEqual(
    expect.objectContaining({ event: 'progress', file: 'm-Q4_K_M.gguf', bytes: 3_000_000, total_bytes: 3_000_000 }),
  )
  expect(events.at(-1)).toMatchObject({ event: 'done', kind: 'gguf', path, repository: 'o/m' })
})

test('Ctrl-C ends it at once, a notice says that the part is kept, and the same command resumes', async () => {
  const { hub, env, path, incomplete } = await setUp()
  hub.play('m-Q4_K_M.gguf', { stallAfter: 2_000_000 })
  const child = start(env)
  await child.says('20 %')
  child.kill('SIGINT')
  const { exitCode, stderr } = await child.ends
  expect([exitCode, stderr]).toEqual([130, expect.stringContaining('The downloaded part is kept')])
  expect(incomplete()).toHaveLength(1)
  const again = await infer(['model', 'pull', 'hf:o/m'], { env })
  expect(again.exitCode).toBe(0)
  expect(again.stderr).toMatch(/Resuming m-Q4_K_M\.gguf after [\d.]+ [KM]iB\./)
  expect(readFileSync(path)).toEqual(big)
})

test('a killed pull leaves no lock and can be resumed', async () => {
  const { hub, env, path } = await setUp()
  hub.play('m-Q4_K_M.gguf', { stallAfter: 2_000_000 })
  const child = start(env)
  await child.says('20 %')
  child.kill('SIGKILL')
  await child.ends
  const again = await infer(['model', 'pull', 'hf:o/m'], { env })
  expect([again.exitCode, again.stderr.includes('Resuming')]).toEqual([0, true])
  expect(readFileSync(path)).toEqual(big)
})

test.runIf(hasTerminal)('on a terminal a bar moves', async () => {
  const { env, path } = await setUp()
  const terminal = inTerminal(['model', 'pull', 'hf:o/m'], env)
  await terminal.sees('Downloading')
  await terminal.sees('100 %')
  await terminal.sees(path)
  expect(await terminal.ends()).toBe(0)
  expect(terminal.everything()).toContain('━━━━━━━━━━━━━━━━━━━━━━━━ 100 %  2.9 MiB of 2.9 MiB')
})

test('the progress line fits its terminal', () => {
  const progress = { file: 'sub/a-very-long-name-of-a-model-Q4_K_M.gguf', bytes: 45e8, total: 1e10, rate: 5e7 }
  expect(pullProgressLine(progress, 200)).toBe(
    'a-very-long-name-of-a-model-Q4_K_M.gguf  ━━━━━━━━━━──────────────  45 %  4.2 GiB of 9.3 GiB  47.7 MiB/s  1 min left',
  )
  for (const width of [120, 80, 40, 20, 5])
    expect(pullProgressLine(progress, width).length).toBeLessThan(Math.max(width, 6))
  expect(pullProgressLine({ file: 'm', bytes: 0, total: 0, rate: undefined }, 80)).toContain('100 %')
})

test('a gated repository gets the token of the named file', async () => {
  const { env, home, path } = await setUp({ gatedFor: 'granted' })
  const without = await infer(['model', 'pull', 'hf:o/m'], { env })
  expect(without.exitCode).toBe(1)
  expect(without.stderr).toContain(`o/m is gated: accept its licence at ${env.HF_ENDPOINT}/o/m`)
  expect((await infer(['model', 'pull', 'hf:o/m'], { env: { ...env, HF_TOKEN: 'other' } })).stderr).toContain(
    'has no access yet',
  )
  writeFileSync(join(home, 'my-token'), 'granted\n')
  const given = await infer(['model', 'pull', 'hf:o/m', '--token-file', join(home, 'my-token')], { env })
  expect([given.exitCode, existsSync(path)]).toEqual([0, true])
  // The file that the login of the hub's own tools leaves.
  writeFileSync(join(home, 'token'), 'granted')
  expect((await infer(['model', 'pull', 'hf:o/m:Q8_0'], { env })).exitCode).toBe(0)
})

test('two processes that want the same file download it once', async () => {
  const { hub, env, path } = await setUp()
  const both = await Promise.all([1, 2].map(() => infer(['model', 'pull', 'hf:o/m'], { env })))
  expect(both.map(({ exitCode }) => exitCode)).toEqual([0, 0])
  expect(hub.requests.filter(({ at }) => at === 'store')).toHaveLength(1)
  expect(readFileSync(path)).toEqual(big)
})

test('a reference that is not on a hub is wrong usage', async () => {
  const ended = await infer(['model', 'pull', '/some/file.gguf'])
  expect(ended.exitCode).toBe(64)
  expect(ended.stderr).toContain('infer model add /some/file.gguf')
})

test('the built program uses the proxy of the environment, and says that it wants a login', async () => {
  const asked: string[] = []
  const proxy = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    response.writeHead(407).end()
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void proxy.close())
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const env = { HF_ENDPOINT: 'http://hub.test', HF_HOME: temporaryFolder(), HTTP_PROXY: `http://${address}` }
  const { exitCode, stderr } = await infer(['model', 'pull', 'hf:o/m'], { env })
  expect(stderr).toContain('Error: The proxy wants another login (407).')
  expect([exitCode, asked.length]).toEqual([65, 1])
})
