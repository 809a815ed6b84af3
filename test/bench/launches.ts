import type { Launch, Launcher } from '../../gpu/launcher/launcher.ts'
import { openLaunches } from '../../gpu/launcher/launches.ts'
import { openOutputs } from '../../gpu/launcher/outputs.ts'
import { type DeviceCapacity, type Occupant, place } from '../../gpu/residency/place.ts'

/**
 * Measures what many machines cost the event loop: a list of 1,000 launches, of which some have changed, and a decision where
 * a model is placed on 64 machines with 8 cards each, on which 500 models are loaded. Prints one line each, which ends with
 * MISSED above its bar; the exit code is then 1. Run: `npx node test/bench/launches.ts`.
 */
const bars = { listMs: 20, placeMs: 1 }
/** Measurements, and what each of them repeats: the clock of the thread has ticks of 4 ms. */
const rounds = 10
const repeats = 100
/** Processor time of the thread: on a busy machine any other clock would measure others. */
const threadMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
let missed = 0

function report(what: string, times: number[], barMs: number): void {
  const sorted = times.toSorted((a, b) => a - b)
  const isMissed = sorted.at(-1)! > barMs
  if (isMissed) missed++
  const [middle, most] = [sorted[Math.floor(sorted.length / 2)]!, sorted.at(-1)!].map(ms => ms.toFixed(2))
  console.log(`${what}: ${middle} ms, at most ${most} ms, bar ${barMs} ms${isMissed ? ' MISSED' : ''}`)
}

const launch = (number: number, round: number): Launch => ({
  launchId: `wkr_${number}-1`,
  engineId: `wkr_${number}`,
  modelId: `model-${number % 500}`,
  state: number % 10 === round % 10 ? 'pending' : 'running',
  reason: number % 10 === round % 10 ? 'Its partition has no free node.' : null,
  node: `node-${number % 64}`,
  pid: number,
  endpoint: { origin: `http://node-${number % 64}:${number}`, generation: 1 },
  status: null,
  endsAt: null,
  note: null,
  secrets: [],
})

/** The loop's processor time for each list: the launcher is asked, and its answer applied. */
async function measureLists(): Promise<number[]> {
  let round = 0
  let changed = () => {}
  let listed = Promise.withResolvers<void>()
  const launcher: Launcher = {
    pollMs: 60_000,
    async start() {},
    async list() {
      round++
      setImmediate(() => listed.resolve())
      return Array.from({ length: 1_000 }, (_, number) => launch(number, round))
    },
    async stop() {},
    async *logs(_launchId, _from, signal) {
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      yield { at: 0, bytes: Buffer.from('It was ended.') }
    },
    capacity: async () => ({ devices: [], reason: null, broken: false }),
    watch(listener) {
      changed = listener
      return () => {}
    },
    note() {},
    async leave() {},
    async close() {},
  }
  const silent = () => {}
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  const opening = threadMs()
  const launches = await openLaunches({ launcher, outputs: openOutputs(), log })
  report('the first list of 1,000 launches', [threadMs() - opening], bars.listMs)
  const times: number[] = []
  for (let count = 0; count < rounds; count++) {
    const from = threadMs()
    for (let repeat = 0; repeat < repeats; repeat++) {
      listed = Promise.withResolvers()
      changed()
      await listed.promise
    }
    times.push((threadMs() - from) / repeats)
  }
  if (launches.left().length !== 1_000) throw new Error('Not all launches were followed.')
  await launches.close()
  return times
}

const cards = 64 * 8
const gigabyte = 1e9
const capacities: DeviceCapacity[] = Array.from({ length: cards }, (_, number) => ({
  id: `node-${Math.floor(number / 8)}/gpu${number % 8}`,
  kind: 'gpu',
  capacity: 78 * gigabyte,
  totalBytes: 80 * gigabyte,
}))
const occupants: Occupant[] = Array.from({ length: 500 }, (_, number) => ({
  engineId: `wkr_${number}`,
  modelId: `model-${number}`,
  devices: [capacities[(number * 7) % cards]!.id],
  bytes: (20 + (number % 5) * 12) * gigabyte,
  busy: number % 3 === 0,
  pinned: number % 11 === 0,
  turnSince: number,
  turnUntil: null,
  lastUsedAt: number,
  runMs: 200,
  reloadMs: 5_000 + (number % 7) * 1_000,
}))

/** Models of one card, and each fourth time of four cards in equal parts. */
function measurePlacement(): number[] {
  const times: number[] = []
  for (let count = 0; count < rounds; count++) {
    const from = threadMs()
    for (let repeat = 0; repeat < repeats; repeat++) {
      const devices = repeat % 4 === 0 ? 4 : 1
      const bytes = (40 + (repeat % 30)) * gigabyte * devices
      const decision = place({ modelId: 'next', bytes, devices, kind: 'gpu', mayEvict: true }, occupants, capacities)
      if (decision.do === 'refuse') throw new Error(decision.reason)
    }
    times.push((threadMs() - from) / repeats)
  }
  return times
}

report('a list of 1,000 launches', await measureLists(), bars.listMs)
// The first decisions are those of code that was not compiled yet.
measurePlacement()
report('a placement on 64 machines × 8 cards, 500 models', measurePlacement(), bars.placeMs)
process.exitCode = missed > 0 ? 1 : 0
