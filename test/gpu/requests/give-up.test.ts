import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { fleetOf, send } from '../_fleet.ts'
import { temporary } from '../launcher/_launch.ts'

/**
 * An engine that says how many requests it works on, and works on each for `ms`, or for as long as its body says,
 * whether or not anybody is there.
 */
const script = `
const { createServer } = require('node:http')
const [path, ms, listens] = process.argv.slice(2)
let running = 0
createServer(async (req, res) => {
  if (req.url === '/health') return res.end(JSON.stringify({ status: 'ok', running }))
  running++
  let body = ''
  for await (const piece of req) body += piece
  res.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"type":"progress","fraction":0}\\n')
  const timer = setTimeout(done, Number(body) || Number(ms))
  let over = false
  function done() {
    if (over) return
    over = true
    clearTimeout(timer)
    running--
    res.end('{}\\n')
  }
  res.on('close', () => listens === 'yes' && setTimeout(done, 100))
}).listen(path)
`

function engine(ms: number, listens: boolean, concurrency = 1): Model {
  const file = join(temporary(), 'engine.cjs')
  writeFileSync(file, script)
  return Model.parse({
    id: 'draws',
    engine: 'custom',
    tasks: ['slug/text-to-image'],
    memory: '1GiB',
    concurrency,
    command: [process.execPath, file, '{socket}', String(ms), listens ? 'yes' : 'no'],
  })
}

async function giveUp(model: Model, of: Parameters<typeof fleetOf>[1] = {}) {
  const { fleet, log } = await fleetOf([model], of)
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  const sent = send(lease, '', { path: '/v1/generate', stream: true })
  await sent.begun
  const givenUpAt = performance.now()
  sent.exchange.abort()
  lease.release()
  using next = await fleet.lease(model, { waitMs: 30_000 })
  return { same: next.engineId === lease.engineId, ms: performance.now() - givenUpAt, log }
}

test('a slot is free again when the engine has let go of what was given up', async () => {
  const { same, ms } = await giveUp(engine(60_000, true))
  expect(same).toBe(true)
  expect(ms).toBeGreaterThan(90)
})

test('an engine that goes on with it is killed after the grace and loaded anew', async () => {
  const { same, ms, log } = await giveUp(engine(60_000, false))
  expect(same).toBe(false)
  expect(ms).toBeGreaterThan(490)
  expect(log.lines.some(line => line.includes('An engine ignores cancelled requests and is killed'))).toBe(true)
})

test('an engine that serves others is not killed while a slot is free', async () => {
  const model = engine(60_000, false, 4)
  const { fleet, log } = await fleetOf([model])
  const begin = async (body: string) => {
    const lease = await fleet.lease(model, { waitMs: 30_000 })
    const sent = send(lease, '', { path: '/v1/generate', stream: true, body })
    await sent.begun
    return () => {
      sent.exchange.abort()
      lease.release()
    }
  }
  const killed = () => log.lines.some(line => line.includes('An engine ignores cancelled requests and is killed'))
  const leases = () => fleet.snapshot().residents[0]?.leases
  const [cancelShort, cancelLong, cancelLast] = [await begin('1500'), await begin('60000'), await begin('60000')]
  cancelShort()
  cancelLong()
  // The slot of one is free when the engine has ended it, although it still works on the other.
  await expect.poll(leases).toBe(2)
  expect(killed()).toBe(false)
  cancelLast()
  await expect.poll(killed).toBe(true)
})

/**
 * A llama-server, which sees that a client has left at the next token, or in a prompt only when it was asked for nothing
 * for a second.
 */
const llamaServer = `
const { createServer } = require('node:http')
const port = process.argv[process.argv.indexOf('--port') + 1]
const reads = process.argv.includes('--reads')
let [running, askedAt] = [0, 0]
createServer((req, res) => {
  const json = value => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  if (req.url === '/health' || req.url === '/props') return json({ status: 'ok' })
  if (req.url === '/slots') {
    askedAt = Date.now()
    return json([{ id: 0, is_processing: running > 0 }])
  }
  running++
  res.writeHead(200, { 'content-type': 'text/event-stream' }).write(': reads the prompt\\n\\n')
  const look = () => {
    if (!reads) return setTimeout(() => running--, 50)
    const left = askedAt + 1000 - Date.now()
    if (left > 0) setTimeout(look, left)
    else running--
  }
  res.on('close', () => {
    askedAt = Date.now()
    look()
  })
}).listen(Number(port), '127.0.0.1')
`

test.each([
  ['in its prompt, where it is left in peace to notice it', ['--reads'], 1_000, 5_000],
  ['in its answer, where it is asked soon', [], 0, 1_000],
])('llama-server notices a cancellation %s', async (_, args, least, most) => {
  const bin = temporary()
  writeFileSync(join(bin, 'server.cjs'), llamaServer)
  const run = `#!/bin/sh\nexec '${process.execPath}' '${join(bin, 'server.cjs')}' "$@"\n`
  writeFileSync(join(bin, 'llama-server'), run, { mode: 0o755 })
  const model = Model.parse({
    id: 'draws',
    engine: 'llama-server',
    source: '/models/m.gguf',
    memory: '16MiB',
    concurrency: 1,
    args,
  })
  const { same, ms, log } = await giveUp(model, {
    limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 4_000 },
    environment: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
  })
  expect(same).toBe(true)
  expect(ms).toBeGreaterThan(least)
  expect(ms).toBeLessThan(most)
  expect(log.lines.some(line => line.includes('is killed'))).toBe(false)
})
