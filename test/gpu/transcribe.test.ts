import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { AbortSource } from '../../core/abort-source.ts'
import type { Failure } from '../../core/failure.ts'
import { Model } from '../../core/models/model.ts'
import { transcribe } from '../../core/tasks/protocols/openai-audio.ts'
import { wavHead } from '../../core/tasks/wav.ts'
import { fleetOf } from './_fleet.ts'

/** A sound on its way to an engine elsewhere: read from the disk as it is sent. */
const folder = mkdtempSync(join(tmpdir(), 'infer-hear-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

function soundOf(samples: Buffer) {
  const path = join(folder, String(++files))
  writeFileSync(path, samples)
  return { path, bytes: samples.length, seconds: samples.length / 32_000, silent: false }
}

async function elsewhere(answer: (req: IncomingMessage, res: ServerResponse) => void) {
  const server = createServer(answer)
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => server.close().closeAllConnections())
  const { port } = server.address() as { port: number }
  const model = Model.parse({ id: 'there', engine: 'remote', url: `http://127.0.0.1:${port}/v1` })
  const { fleet } = await fleetOf([model])
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  onTestFinished(() => lease.release())
  return lease
}

const asked = { path: '/v1/audio/transcriptions', fields: [['model', 'm']] as [string, string][] }
const send = (
  lease: Awaited<ReturnType<typeof elsewhere>>,
  sound: ReturnType<typeof soundOf>,
  gone = new AbortSource(),
) => transcribe(lease, asked, sound, 1 << 20, gone)

/** How much memory lies outside the heap. */
const outside = () => process.memoryUsage().arrayBuffers

test('a long sound is sent whole, with its length, and is never held whole', async () => {
  const samples = Buffer.alloc(192 << 20, randomBytes((1 << 20) + 1))
  const expected = createHash('sha256').update(wavHead(16_000, samples.length)).update(samples).digest('hex')
  const sound = soundOf(samples)
  const before = outside()
  let most = 0
  const lease = await elsewhere((req, res) => {
    const hash = createHash('sha256')
    const begun: Buffer[] = []
    let [at, from] = [0, -1]
    req.on('data', (piece: Buffer) => {
      most = Math.max(most, outside() - before)
      if (from < 0) {
        begun.push(piece)
        from = Buffer.concat(begun).indexOf('RIFF')
        if (from >= 0) hash.update(Buffer.concat(begun).subarray(from))
      } else hash.update(piece.subarray(0, Math.max(0, from + 44 + samples.length - at)))
      at += piece.length
    })
    req.on('end', () => {
      const length = Number(req.headers['content-length'])
      res.end(JSON.stringify({ whole: length === at, sha256: hash.digest('hex') }))
    })
  })
  const answer = JSON.parse((await send(lease, sound)).toString()) as object
  expect(answer).toEqual({ whole: true, sha256: expected })
  // The runtime lets 64 MiB of what has been sent lie until it clears it away.
  expect(most).toBeLessThan(128 << 20)
})

test('a connection that breaks off is tried once more, with the sound from its start', async () => {
  const lengths: number[] = []
  const lease = await elsewhere((req, res) => {
    if (lengths.push(Number(req.headers['content-length'])) === 1) req.once('data', () => req.destroy())
    let at = 0
    req.on('data', (piece: Buffer) => (at += piece.length))
    req.on('end', () => res.end(JSON.stringify({ at })))
  })
  const { at } = JSON.parse((await send(lease, soundOf(randomBytes(4 << 20)))).toString()) as { at: number }
  expect(lengths).toEqual([at, at])
})

test('an engine that refuses before it has read all is heard', async () => {
  const lease = await elsewhere((req, res) => {
    req.once('data', () => res.writeHead(400).end('{"error":{"message":"too loud"}}'))
  })
  await expect(send(lease, soundOf(randomBytes(8 << 20)))).rejects.toThrow(/too loud/)
})

test('a sound that is shorter than it was, or gone, is no fault of the engine', async () => {
  const lease = await elsewhere((req, res) => req.resume().on('end', () => res.end('{}')))
  const sound = soundOf(randomBytes(1 << 20))
  truncateSync(sound.path, 1 << 10)
  const short = (await send(lease, sound).catch((thrown: unknown) => thrown)) as Failure
  expect([short.code, short.message]).toEqual(['internal_error', 'An input file was truncated while it was sent.'])
  rmSync(sound.path)
  expect(((await send(lease, sound).catch((thrown: unknown) => thrown)) as Failure).code).toBe('internal_error')
  // The connection serves the next one.
  expect((await send(lease, soundOf(randomBytes(1 << 10)))).toString()).toBe('{}')
})

test('whoever leaves ends it in the middle', async () => {
  const gone = new AbortSource()
  const closed = Promise.withResolvers<boolean>()
  const lease = await elsewhere(req => {
    req.once('close', () => closed.resolve(req.complete)).on('error', () => {})
    gone.abort(new Error('left'))
    req.resume()
  })
  await expect(send(lease, soundOf(randomBytes(32 << 20)), gone)).rejects.toThrow('left')
  expect(await closed.promise).toBe(false)
})
