import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { fleetOf, send } from '../_fleet.ts'
import { temporary } from '../launcher/_launch.ts'

/** An engine that says how many requests it works on, and works on each for `ms`, whether or not anybody is there. */
const script = `
const { createServer } = require('node:http')
const [path, ms, listens] = process.argv.slice(2)
let running = 0
createServer((req, res) => {
  if (req.url === '/health') return res.end(JSON.stringify({ status: 'ok', running }))
  running++
  res.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"type":"progress","fraction":0}\\n')
  const timer = setTimeout(done, Number(ms))
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

function engine(ms: number, listens: boolean): Model {
  const file = join(temporary(), 'engine.cjs')
  writeFileSync(file, script)
  return Model.parse({
    id: 'draws',
    engine: 'custom',
    tasks: ['slug/text-to-image'],
    memory: '1GiB',
    concurrency: 1,
    command: [process.execPath, file, '{socket}', String(ms), listens ? 'yes' : 'no'],
  })
}

async function giveUp(model: Model) {
  const { fleet, log } = await fleetOf([model])
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  const sent = send(lease, '', { path: '/v1/generate', stream: true })
  await sent.begun
  const givenUpAt = performance.now()
  sent.exchange.abort()
  lease.release()
  using next = await fleet.lease(model, { waitMs: 30_000 })
  return { same: next.engineId === lease.engineId, ms: performance.now() - givenUpAt, log }
}

test('a slot is free again when the engine has let go of what was given up', { timeout: 60_000 }, async () => {
  const { same, ms } = await giveUp(engine(60_000, true))
  expect(same).toBe(true)
  expect(ms).toBeGreaterThan(90)
})

test('an engine that goes on with it is killed after the grace and loaded anew', { timeout: 60_000 }, async () => {
  const { same, ms, log } = await giveUp(engine(60_000, false))
  expect(same).toBe(false)
  expect(ms).toBeGreaterThan(490)
  expect(log.lines.some(line => line.includes('An engine ignores cancelled requests and is killed'))).toBe(true)
})
