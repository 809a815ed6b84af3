/**
 * How many whole answers a second the fleet relays from an engine that answers at once. The engine is a process of
 * its own, so on two cores both sides share the machine. Run: npx node test/gpu/bench/relay.ts [seconds] [slots]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from '../../../core/log.ts'
import { Model } from '../../../core/models/model.ts'
import { openFleet } from '../../../gpu/fleet.ts'

const seconds = Number(process.argv[2] ?? 5)
const slots = Number(process.argv[3] ?? 64)
const dataDir = mkdtempSync(join(tmpdir(), 'infer-bench-'))
const engine = join(import.meta.dirname, '../../fixtures/engine.ts')
const model = Model.parse({
  id: 'bench',
  engine: 'custom',
  command: [process.execPath, engine, '--socket', '{socket}', '--instant'],
  concurrency: slots,
  memory: '64MiB',
})
const fleet = await openFleet({
  models: () => [model],
  dataDir,
  bootId: 'bench',
  log: openLog('warn'),
  limits: { engine_backoff: 1000, engine_turn: 10_000 },
  devices: {
    cards: async () => ({ devices: [], reason: null, broken: false }),
    cpu: { id: 'cpu', kind: 'cpu', name: 'cpu', totalBytes: 2 ** 34, usedBytes: null, cudaId: null, cores: 2 },
  },
})
await fleet.load(model)
const body = JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'Hello' }] })
const call = { path: '/v1/chat/completions', body, stream: false, maxBytes: 1 << 20 }
let done = 0
let failed = 0
const until = { stop: false }
async function worker(): Promise<void> {
  while (!until.stop) {
    const lease = await fleet.lease(model, { waitMs: 10_000 })
    await new Promise<void>(next => {
      lease.open(call, {
        accepted() {},
        chunk() {},
        finished() {
          done++
          next()
        },
        failed() {
          failed++
          next()
        },
      })
    })
    lease.release()
  }
}
const workers = Array.from({ length: slots }, worker)
const warm = 1
await new Promise(r => setTimeout(r, warm * 1000))
const from = done
const cpu = process.cpuUsage()
const at = performance.now()
await new Promise(r => setTimeout(r, seconds * 1000))
const elapsed = (performance.now() - at) / 1000
const used = process.cpuUsage(cpu)
const rate = Math.round((done - from) / elapsed)
until.stop = true
await Promise.all(workers)
await fleet.close(1000)
rmSync(dataDir, { recursive: true, force: true })
const perCore = Math.round((done - from) / ((used.user + used.system) / 1e6))
process.stdout.write(
  `relay: ${rate}/s with ${slots} slots, ${perCore} per second of our processor time, ${failed} failed\n`,
)
