import { type ChildProcess, spawn } from 'node:child_process'
import { createSecretKey } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createConnection } from 'node:net'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openKeeperClient } from '../../../gpu/launcher/keeper-client.ts'
import { messageFrame, openFrameReader } from '../../../gpu/launcher/keeper-frames.ts'
import { keeperProtocol, proofOf } from '../../../gpu/launcher/keeper-proof.ts'
import { identityOf } from '../../../gpu/launcher/processes.ts'
import { fetchHealth } from '../../../gpu/requests/health.ts'
import { killsOf } from '../../_full.ts'
import {
  dataKey,
  endSurvivors,
  keeperOf,
  keptLog,
  launcherIn,
  launchOptions,
  noSandbox,
  survivors,
  temporary,
  until,
  wrappersHere,
} from './_launch.ts'

const script = join(import.meta.dirname, '../fixtures/parent.ts')
const best = wrappersHere[0]!
const bestIsProtected = best.name !== 'plain'

/** A server with a running engine and its grandchild, which may outlive it by `graceMs`. */
async function serverWith(dataDir: string, launchId: string, graceMs: number, how = ''): Promise<ChildProcess> {
  onTestFinished(async () => {
    await endSurvivors(launchId)
  })
  const server = spawn(process.execPath, [script, dataDir, 'boot-1', launchId, how, String(graceMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void server.kill('SIGKILL'))
  await once(server.stdout, 'data')
  return server
}

async function killed(server: ChildProcess): Promise<void> {
  const gone = once(server, 'exit')
  server.kill('SIGKILL')
  await gone
}

const launcher = (dataDir: string, graceMs = 20_000, bootId = 'boot-2') =>
  launcherIn(dataDir, best, bootId, noSandbox, graceMs)

test('an engine outlives a server that is killed, and the next one takes it over', async () => {
  const dataDir = temporary()
  const launchId = `kept-${process.pid}`
  const server = await serverWith(dataDir, launchId, 20_000)
  const before = await survivors(launchId)
  await killed(server)

  const next = await launcher(dataDir)
  expect(next.swept).toEqual({ ended: 0, left: [] })
  expect(next.left()).toMatchObject([{ launchId, modelId: 'fake', state: 'running', note: { ready: true } }])
  const taken = next.adopt(launchId)!
  expect(await survivors(launchId)).toEqual(before)
  expect(next.left()).toEqual([])
  await until(() => next.logs(launchId).some(line => line.startsWith('listening')))
  await until(() => taken.pid() !== null && before.includes(taken.pid()!))

  await next.stop(launchId, 0)
  expect(await taken.exited).toMatchObject({ status: 'SIGKILL' })
  expect(await survivors(launchId)).toEqual([])
})

const rounds = killsOf(3, 100)
test.each([...(bestIsProtected ? [''] : []), 'plain'])(
  `without a next server nothing is left 2 s after the grace, ${rounds} times, how: '%s'`,
  { timeout: 30_000 + rounds * 6_000 },
  async how => {
    for (let round = 0; round < rounds; round++) {
      const launchId = `alone-${how}-${process.pid}-${round}`
      const server = await serverWith(temporary(), launchId, 1_000, how)
      await killed(server)
      const deadline = performance.now() + 3_000
      expect((await survivors(launchId)).length).toBeGreaterThanOrEqual(2)
      let left = await survivors(launchId)
      while (left.length > 0 && performance.now() < deadline) left = await survivors(launchId)
      expect(left).toEqual([])
    }
  },
)

test('with a keeper that is killed the engines end, and the next one starts another', async () => {
  const dataDir = temporary()
  const here = await launcher(dataDir)
  const [first, second] = [`first-${process.pid}`, `second-${process.pid}`]
  const launched = await here.start(launchOptions(first, ['--grandchild']))
  process.kill(here.keeper!.pid()!, 'SIGKILL')
  expect(await launched.exited).toMatchObject({ status: 'SIGKILL' })
  expect(await survivors(first)).toEqual([])
  const again = await here.start(launchOptions(second, []))
  expect((await survivors(second)).length).toBeGreaterThan(0)
  await here.stop(again.launchId, 0)
})

test('a server that closes ends the keeper', async () => {
  const here = await launcher(temporary())
  const launchId = `closed-${process.pid}`
  await here.start(launchOptions(launchId, []))
  const keeper = here.keeper!.pid()!
  await here.close()
  await until(async () => (await identityOf(keeper)) === undefined)
  expect(await survivors(launchId)).toEqual([])
})

test('a server lets go of its engines, and another takes them over while the first still runs', async () => {
  const dataDir = temporary()
  const first = await launcher(dataDir)
  const launchId = `handed-${process.pid}`
  await first.start(launchOptions(launchId, []))
  await until(() => first.logs(launchId).length > 0)
  const before = await survivors(launchId)
  let connected = false
  const waiting = keeperOf(dataDir, 20_000).then(client => {
    connected = true
    return client
  })
  // What comes after it is answered in order, so the keeper has seen the other one by then.
  await first.start(launchOptions(`${launchId}-second`, []))
  expect(connected).toBe(false)
  await first.leave()
  const client = await waiting
  expect(client.left().map(one => one.launchId)).toEqual([launchId, `${launchId}-second`])
  expect(await survivors(launchId)).toEqual(before)
  await client.end()
  await until(async () => (await survivors(launchId)).length === 0)
})

test('sockets outside a data directory with a long name stay until the last engine has ended', async () => {
  const dataDir = join(temporary(), 'x'.repeat(120))
  const first = await launcher(dataDir)
  const launchId = `long-${process.pid}`
  const { endpoint } = await first.start(launchOptions(launchId, []))
  const answers = () => fetchHealth(endpoint()!, '/health', [], 5_000)
  await until(async () => (await answers()).health === 'ready')
  const folder = dirname(dirname(endpoint()!.socketPath!))
  await first.leave()
  await first.close()
  expect((await answers()).health).toBe('ready')
  const next = await launcher(dataDir)
  const { exited } = next.adopt(launchId)!
  await next.stop(launchId, 0)
  await exited
  expect(existsSync(folder)).toBe(false)
})

test('a server that has let go starts nothing more, and takes no engine from the next one', async () => {
  const dataDir = temporary()
  const first = await launcher(dataDir)
  const [kept, late] = [`kept-${process.pid}`, `late-${process.pid}`]
  await first.start(launchOptions(kept, []))
  // The keeper is told of it right before the server lets go: the next one gets it.
  const underWay = `way-${process.pid}`
  const sleep = { file: '/bin/sleep', args: ['30'], env: { INFER_LAUNCH_ID: underWay }, cwd: '/' }
  const starting = first.keeper!.start(underWay, sleep, {})
  await Promise.resolve()
  await first.leave()
  expect(await starting).toMatchObject({ launchId: underWay })
  const next = await keeperOf(dataDir, 20_000)
  onTestFinished(() => next.end())
  expect(next.left().map(one => one.launchId)).toEqual([kept, underWay])
  await expect(first.start(launchOptions(late, []))).rejects.toThrow('another server has the engines')
  expect(await survivors(late)).toEqual([])
  const pid = next.pid()
  await next.release()
  const third = await keeperOf(dataDir, 20_000)
  onTestFinished(() => third.end())
  expect(third.pid()).toBe(pid)
})

test('an engine that is being stopped when the server lets go is not killed: the next one ends it', async () => {
  const dataDir = temporary()
  const first = await launcher(dataDir)
  const launchId = `stopping-${process.pid}`
  await first.start(launchOptions(launchId, ['--ignore-term']))
  await until(() => first.logs(launchId).some(line => line.startsWith('listening')))
  const before = await survivors(launchId)
  const stopping = first.stop(launchId, 1_000)
  await first.leave()
  await stopping
  expect(await survivors(launchId)).toEqual(before)
  const next = await launcher(dataDir)
  expect(next.left()).toMatchObject([{ launchId }])
  await next.stop(launchId, 0)
  expect(await survivors(launchId)).toEqual([])
})

test('who does not prove the key gets nothing, and no engine ends for it', async () => {
  const dataDir = temporary()
  const here = await launcher(dataDir)
  const launchId = `private-${process.pid}`
  await here.start(launchOptions(launchId, []))
  await until(() => here.logs(launchId).length > 0)
  const before = await survivors(launchId)
  const heard = await Promise.all([
    said(dataDir, () => [{ type: 'start', launchId: 'x', file: 'true', args: [], env: {}, cwd: '/', about: null }]),
    said(dataDir, () => [{ type: 'end' }]),
    said(dataDir, () => [{ type: 'prove', proof: '', graceMs: 1 }]),
    said(dataDir, nonce => [
      { type: 'prove', proof: proofOf(createSecretKey(Buffer.alloc(32, 8)), 'server', nonce), graceMs: 1 },
    ]),
    // The proof of the other side.
    said(dataDir, nonce => [{ type: 'prove', proof: proofOf(dataKey, 'keeper', nonce), graceMs: 1 }]),
    said(dataDir, () => [{ type: 'prove', proof: 'x'.repeat(2_000), graceMs: 1 }]),
  ])
  for (const messages of heard) expect(messages.map(({ type }) => type)).toEqual(['challenge'])
  expect(await survivors(launchId)).toEqual(before)
})

/** Everything that the keeper says to a client until it closes the connection. */
async function said(dataDir: string, say: (nonce: string) => object[]): Promise<Record<string, unknown>[]> {
  const socket = createConnection({ path: join(dataDir, 'run/keeper') })
  const heard: Record<string, unknown>[] = []
  const read = openFrameReader({
    message(message) {
      heard.push(message)
      if (message.type === 'challenge') for (const one of say(String(message.nonce))) socket.write(messageFrame(one))
    },
  })
  socket.on('data', read)
  socket.on('error', () => {})
  socket.write(messageFrame({ type: 'hello', protocol: keeperProtocol, nonce: 'n' }))
  await once(socket, 'close')
  return heard
}

test('an engine goes on when the server does not read its output', async () => {
  const dataDir = temporary()
  const socket = await ownerThatStopsReading(dataDir)
  const launchId = `flood-${process.pid}`
  onTestFinished(async () => {
    await endSurvivors(launchId)
  })
  const marker = join(dataDir, 'done')
  const flood = `process.stdout.write('x'.repeat(99).concat('\\n').repeat(160_000), () => { require('fs').writeFileSync(${JSON.stringify(marker)}, ''); setInterval(() => {}, 1e6) })`
  const env = { PATH: process.env.PATH ?? '', INFER_LAUNCH_ID: launchId }
  socket.write(
    messageFrame({
      type: 'start',
      launchId,
      file: process.execPath,
      args: ['-e', flood],
      env,
      cwd: dataDir,
      about: null,
    }),
  )
  const { existsSync } = await import('node:fs')
  await until(() => existsSync(marker))
  socket.destroy()
  // The next one gets the end of it, and no more.
  const next = await keeperOf(dataDir, 20_000)
  onTestFinished(() => next.end())
  let bytes = 0
  next.left()[0]!.read(chunk => (bytes += chunk.length))
  await until(() => bytes > 0)
  expect(bytes).toBeLessThan(300_000)
})

/** Owns the keeper of a data directory, and then reads nothing more. */
async function ownerThatStopsReading(dataDir: string) {
  const starter = await launcher(dataDir)
  await starter.start(launchOptions(`starter-${process.pid}`, []))
  await starter.leave()
  const socket = createConnection({ path: join(dataDir, 'run/keeper') })
  socket.on('error', () => {})
  const owns = Promise.withResolvers<void>()
  const read = openFrameReader({
    message(message) {
      if (message.type === 'challenge')
        socket.write(
          messageFrame({ type: 'prove', proof: proofOf(dataKey, 'server', String(message.nonce)), graceMs: 20_000 }),
        )
      if (message.type === 'owner') owns.resolve()
    },
    output() {},
  })
  socket.on('data', read)
  socket.write(messageFrame({ type: 'hello', protocol: keeperProtocol, nonce: 'n' }))
  await owns.promise
  socket.pause()
  return socket
}

test('a keeper with another key is ended with its engines, though a server owns it, and another is started', async () => {
  const dataDir = temporary()
  const launchId = `foreign-${process.pid}`
  await serverWith(dataDir, launchId, 20_000, 'plain')
  const log = keptLog()
  const key = createSecretKey(Buffer.alloc(32, 8))
  const other = await openKeeperClient({ dataDir, key, graceMs: 1_000, log })
  onTestFinished(() => other.end())
  expect(other.left()).toEqual([])
  expect(await survivors(launchId)).toEqual([])
  expect(log.lines).toEqual([expect.stringContaining('it has another key. It is ended')])
  const started = await other.start('next-1', { file: '/bin/sleep', args: ['30'], env: {}, cwd: '/' }, {})
  expect(started).toMatchObject({ launchId: 'next-1' })
})
