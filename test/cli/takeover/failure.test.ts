import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { protocolVersion } from '../../../cli/takeover/protocol.ts'
import { RestartNeeded } from '../../../cli/takeover/restart-needed.ts'
import { takeOver } from '../../../cli/takeover/take-over.ts'
import { Failure } from '../../../core/failure.ts'
import { openAsIs } from '../../../core/store/sqlite/database.ts'
import { until } from '../../gpu/launcher/_launch.ts'
import { entry, temporaryFolder } from '../_infer.ts'
import { prepare, serve } from '../_serve.ts'
import { billed, isAlive, secretOf, startEngine, stopAtEnd } from './_takeover.ts'

const real = [process.execPath, entry]

/** A new version that is prepared, gets the data directory, and ends with an error once `end` is called. */
function brokenVersion() {
  const folder = temporaryFolder()
  const path = join(folder, 'broken.mjs')
  writeFileSync(
    path,
    `import { existsSync } from 'node:fs'
    process.on('message', () => {
      process.stderr.write('got the data directory\\n')
      setInterval(() => existsSync('${folder}/end') && process.exit(3), 20)
    })
    process.send({ kind: 'prepared' })`,
  )
  return { program: [process.execPath, path], end: () => writeFileSync(join(folder, 'end'), '') }
}

function ask(dataDir: string, pid: number, program: string[], fallback = program) {
  const asked = takeOver({ dataDir, pid }, { protocol: protocolVersion, program, flags: {}, fallback }, () => {})
  // Prevents an unhandled rejection until the test looks at it.
  asked.catch(() => {})
  return asked
}

const codeOf = async (child: Awaited<ReturnType<typeof serve>>['child']) =>
  child.exitCode ?? ((await once(child, 'exit')) as [number | null])[0]

test('when no version can open the data directory, requests are refused and the process ends with an error', async () => {
  const dataDir = prepare()
  const first = await serve(dataDir)
  const broken = brokenVersion()
  const asked = ask(dataDir, first.child.pid!, broken.program)
  await first.until(() => first.stderr().includes('got the data directory'))
  const waits = fetch(`${first.url}/api/me`)
  // Those who watch the process are answered meanwhile.
  expect((await fetch(`${first.url}/livez`)).status).toBe(200)
  expect((await fetch(`${first.url}/healthz`)).status).toBe(200)
  broken.end()
  expect((await waits).status).toBe(503)
  await expect(asked).rejects.toThrow('has ended')
  expect(await codeOf(first.child)).toBe(70)
  expect(existsSync(join(dataDir, 'server.json'))).toBe(false)
})

/** The number of the schema of a database. */
function schemaOf(dataDir: string, changed?: number): number {
  const database = openAsIs(join(dataDir, 'infer.db'))
  const version = database.pragma('user_version', { simple: true }) as number
  if (changed !== undefined) database.pragma(`user_version = ${changed}`)
  database.close()
  return version
}

test.for([
  { when: 'no version can open the data directory', changes: false },
  { when: 'the new version has changed the database and no version can open it', changes: true },
])('when $when, the calls that ran meanwhile are billed', async ({ changes }) => {
  const dataDir = prepare(await startEngine())
  const first = await serve(dataDir)
  const headers = { authorization: `Bearer ${secretOf(dataDir)}`, 'content-type': 'application/json' }
  /** Resolves when the stream has begun. */
  const call = (tokens: number) =>
    fetch(`${first.url}/std/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({
        model: 'far',
        stream: true,
        messages: [{ role: 'user', content: `mode:stream,rate=10,tokens=${tokens}` }],
      }),
    })
  const broken = brokenVersion()
  const [answered, interrupted] = await Promise.all([call(40), call(6_000)])
  const asked = ask(dataDir, first.child.pid!, broken.program)
  await first.until(() => first.stderr().includes('got the data directory'))
  expect(await answered.text()).toContain('[DONE]')
  const version = changes ? schemaOf(dataDir, 9_999) : 0
  broken.end()
  await expect(asked).rejects.toThrow('has ended')
  await interrupted.text().catch(() => {})
  expect(await codeOf(first.child)).toBe(70)
  if (changes) {
    schemaOf(dataDir, version)
    const folder = join(dataDir, 'unwritten-records')
    const later = join(temporaryFolder(), 'later.json')
    const [kept, ...others] = readdirSync(folder)
    renameSync(join(folder, kept!), later)
    const before = billed(dataDir)
    const next = await serve(dataDir)
    // A process that ends later keeps its records while the next server runs already.
    renameSync(later, join(folder, kept!))
    await next.until(() => next.stderr().split('Wrote the records').length === others.length + 2)
    expect(billed(dataDir)).toBe(2)
    expect(before).toBeLessThan(2)
    next.child.kill('SIGTERM')
    expect(await codeOf(next.child)).toBe(0)
    expect(readdirSync(folder)).toEqual([])
  }
  expect(billed(dataDir)).toBe(2)
})

test('where no new server was started, the reason says whether a restart can help', async () => {
  const dataDir = prepare()
  const { child } = await serve(dataDir)
  const pid = child.pid!
  const request = { protocol: protocolVersion, program: real, flags: {} }
  const reason = (changes: object, dir = dataDir) =>
    takeOver({ dataDir: dir, pid }, { ...request, ...changes }, () => {}).catch((thrown: unknown) => thrown)
  expect(await reason({ protocol: 0 })).toBeInstanceOf(RestartNeeded)
  expect(await reason({}, temporaryFolder())).toBeInstanceOf(RestartNeeded)
  for (const changes of [{ flags: { listen: '127.0.0.1:1' } }, { program: ['/nowhere'] }]) {
    const failed = await reason(changes)
    expect(failed).toBeInstanceOf(Failure)
    expect(failed).not.toBeInstanceOf(RestartNeeded)
  }
})

test('a signal that arrives during a take-over also stops the server that takes over', async () => {
  const dataDir = prepare()
  const first = await serve(dataDir)
  const broken = brokenVersion()
  const asked = ask(dataDir, first.child.pid!, broken.program, real)
  await first.until(() => first.stderr().includes('got the data directory'))
  first.child.kill('SIGTERM')
  broken.end()
  const thrown = await asked.catch((failure: Error) => failure)
  const pid = Number(/serves as process (\d+)/.exec((thrown as Error).message)?.[1])
  expect(pid).toBeGreaterThan(0)
  expect(await codeOf(first.child)).toBe(0)
  await until(() => !isAlive(pid))
  expect(existsSync(join(dataDir, 'server.json'))).toBe(false)
})

test('a signal before the data directory is handed over ends the new server', async () => {
  const dataDir = prepare()
  const first = await serve(dataDir)
  const folder = temporaryFolder()
  writeFileSync(
    join(folder, 'slow.mjs'),
    `process.stderr.write('pid ' + process.pid + '\\n'); setInterval(() => {}, 1e6)`,
  )
  const asked = ask(dataDir, first.child.pid!, [process.execPath, join(folder, 'slow.mjs')])
  await first.until(() => /^pid \d+$/m.test(first.stderr()))
  first.child.kill('SIGTERM')
  await expect(asked).rejects.toThrow('is stopping')
  expect(await codeOf(first.child)).toBe(0)
  expect(() => process.kill(Number(/^pid (\d+)$/m.exec(first.stderr())![1]), 0)).toThrow('ESRCH')
})

test('a server that systemd does not know yet ends with the one before, and the next one can start', async () => {
  const dataDir = prepare()
  const folder = temporaryFolder()
  const [notified, busy] = [join(folder, 'notified'), join(folder, 'busy')]
  const script = `#!/bin/sh\necho "$@" >> ${notified}\nwhile [ -e ${busy} ]; do sleep 0.05; done\n`
  writeFileSync(join(folder, 'systemd-notify'), script, { mode: 0o755 })
  const environment = { NOTIFY_SOCKET: '@test', PATH: `${folder}:${process.env.PATH}` }
  const known = () =>
    existsSync(notified)
      ? [...readFileSync(notified, 'utf8').matchAll(/--pid=(\d+)/g)].map(([, pid]) => Number(pid))
      : []
  const first = await serve(dataDir, [], environment)
  await until(() => known().length === 1)
  // systemd takes its time from now on.
  writeFileSync(busy, '')
  const asked = ask(dataDir, first.child.pid!, real)
  await until(() => known().length === 2)
  expect((await fetch(`${first.url}/readyz`)).status).toBe(200)
  first.child.kill('SIGKILL')
  await expect(asked).rejects.toThrow('ended during the take-over')
  const next = known()[1]!
  stopAtEnd(next)
  await until(() => !isAlive(next))
  expect(first.stderr()).toContain('The server before ended before systemd knew this one, so this one ends')
  const third = await serve(dataDir)
  expect((await fetch(`${third.url}/readyz`)).status).toBe(200)
})
