/**
 * The throughput of the fleet's relay: whole answers a second from an engine that answers at once, then the processor
 * time per piece of a stream. The engine is a separate process, so on two cores both sides share the machine. Run: npx
 * node test/gpu/bench/relay.ts [seconds] [slots]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openLog } from '../../../core/log.ts'
import type { EngineCall } from '../../../core/models/engine-call.ts'
import { Model } from '../../../core/models/model.ts'
import { openFleet } from '../../../gpu/fleet.ts'
import { leasing } from '../_leasing.ts'

const seconds = Number(process.argv[2] ?? 5)
const slots = Number(process.argv[3] ?? 64)
const dataDir = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const engine = join(import.meta.dirname, '../../fixtures/engine.ts')
const modelOf = (id: string, concurrency: number, flags: string[]) =>
  Model.parse({
    id,
    engine: 'custom',
    command: [process.execPath, engine, '--socket', '{socket}', ...flags],
    concurrency,
    memory: '64MiB',
  })
const whole = modelOf('whole', slots, ['--instant'])
const streams = modelOf('streams', 200, [])
const opened = await openFleet({
  models: () => [whole, streams],
  dataDir,
  bootId: 'bench',
  log: openLog('warn'),
  limits: { engine_backoff: 1_000, cancel_grace: 5_000, order_bound: 1 },
})
const fleet = leasing(opened, [whole, streams])
const state = { stop: false, answers: 0, pieces: 0, failed: 0 }

async function worker(model: Model, call: EngineCall): Promise<void> {
  while (!state.stop) {
    using lease = await fleet.lease(model, { waitMs: 10_000 })
    await new Promise<void>(next => {
      lease.open(call, {
        accepted() {},
        chunk: () => void state.pieces++,
        finished() {
          state.answers++
          next()
        },
        failed() {
          state.failed++
          next()
        },
      })
    })
  }
}

/** Runs as many workers as there are slots and measures once they are warm. */
async function measure(
  model: Model,
  many: number,
  call: EngineCall,
): Promise<{ per: typeof state; cpuSeconds: number }> {
  await fleet.load(model)
  Object.assign(state, { stop: false })
  const workers = Array.from({ length: many }, () => worker(model, call))
  await pause(1_000)
  const from = { ...state }
  const cpu = process.cpuUsage()
  await pause(seconds * 1_000)
  const { user, system } = process.cpuUsage(cpu)
  const per = { ...state }
  for (const name of ['answers', 'pieces', 'failed'] as const) per[name] -= from[name]
  state.stop = true
  await Promise.all(workers)
  return { per, cpuSeconds: (user + system) / 1e6 }
}

const chat = (text: string, stream: boolean): EngineCall => ({
  path: '/v1/chat/completions',
  body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: text }] }),
  stream,
  maxBytes: 1 << 20,
})
const one = await measure(whole, slots, chat('Hello', false))
process.stdout.write(
  `relay: ${Math.round(one.per.answers / seconds)} whole answers/s over ${slots} slots, ` +
    `${Math.round(one.per.answers / one.cpuSeconds)} per second of our processor time, ${one.per.failed} failed\n`,
)
const many = await measure(streams, 200, chat('mode:stream,tokens=100,rate=50', true))
process.stdout.write(
  `relay: ${Math.round(many.per.pieces / seconds)} stream pieces/s over 200 streams, ` +
    `${((many.cpuSeconds / many.per.pieces) * 1e6).toFixed(1)} µs of our processor time each, ${many.per.failed} failed\n`,
)
await fleet.close(1_000)
rmSync(dataDir, { recursive: true, force: true })
