import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Lease } from '../../core/models/fleet.ts'
import type { NewPause } from '../../core/models/pause.ts'
import { noReadings } from '../../gpu/devices/device.ts'
import type { DeviceSource } from '../../gpu/placement/memory.ts'
import { chat, cpu, fake, fleetOf, send } from './_fleet.ts'
import { until } from './launcher/_launch.ts'

const GiB = 2 ** 30
const pause = (of: Partial<NewPause> = {}): NewPause => ({
  devices: null,
  until: null,
  process: null,
  schedule: null,
  ...of,
})
const queued = { atOnce: false }

/** GPUs that show 4 GiB as used by each process of an engine, and for 300 ms after its end. */
function openCards(count: number) {
  const ended = new Map<number, number>()
  let pidsOn = (_id: string): number[] => []
  const known = new Map<number, string>()
  /** Bytes of other programs on each card. */
  const taken = new Map<string, number>()
  const used = (id: string): number => {
    for (const pid of pidsOn(id)) known.set(pid, id)
    let bytes = taken.get(id) ?? 0
    for (const [pid, on] of known) {
      if (on !== id) continue
      if (existsSync(`/proc/${pid}`)) ended.delete(pid)
      else if (!ended.has(pid)) ended.set(pid, performance.now())
      if (performance.now() - (ended.get(pid) ?? Number.POSITIVE_INFINITY) < 300 || !ended.has(pid)) bytes += 4 * GiB
    }
    return bytes
  }
  const devices: DeviceSource = {
    cards: async () => ({
      devices: Array.from({ length: count }, (_, at) => ({
        id: `gpu${at}`,
        kind: 'nvidia' as const,
        name: 'NVIDIA L4',
        totalBytes: 24 * GiB,
        usedBytes: used(`gpu${at}`),
        ...noReadings,
        cudaId: String(at),
        uuid: `GPU-${at}`,
        cores: null,
      })),
      reason: null,
      broken: false,
    }),
    processes: async () => null,
    cpu,
  }
  return { devices, used, taken, follow: (of: (id: string) => number[]) => void (pidsOn = of) }
}

async function fleetWithCards(count: number, models: ReturnType<typeof fake>[], of: { dataDir?: string } = {}) {
  const cards = openCards(count)
  const opened = await fleetOf(models, { devices: cards.devices, ...of })
  const { fleet } = opened
  cards.follow(id =>
    fleet.snapshot().residents.flatMap(({ devices, pid }) => (devices.includes(id) && pid !== null ? [pid] : [])),
  )
  return { ...opened, used: cards.used, taken: cards.taken }
}

test('a card under load is given back within 5 s of the last token: nothing is lost, and the order is kept', async () => {
  const model = fake('a', [], { devices: 1, concurrency: 2 })
  const { fleet, used, log } = await fleetWithCards(1, [model])
  await fleet.load(model)
  const order: number[] = []
  const answers: Promise<unknown>[] = []
  let held: Lease[] = []
  for (let at = 0; at < 20; at++)
    answers.push(
      fleet.lease(model, { waitMs: 60_000 }).then(async lease => {
        order.push(at)
        if (at < 2) held.push(lease)
        const answer = await send(lease, `Hello ${at}`).answer
        if (at >= 2) lease.release()
        return answer
      }),
    )
  await until(() => order.length === 2)
  await fleet.pauses.add(pause(), queued)
  const released = fleet.pauses.released()
  await Promise.all(answers.slice(0, 2))
  expect(used('gpu0')).toBe(4 * GiB)
  const lastToken = performance.now()
  for (const lease of held) lease.release()
  held = []
  await released
  expect(performance.now() - lastToken).toBeLessThan(5_000)
  expect(used('gpu0')).toBe(0)
  expect(fleet.waiting('a')).toBe(18)
  expect(order).toEqual([0, 1])
  expect(fleet.activity('a')).toMatchObject({ status: 'cold', paused: true, etaMs: null })
  expect(fleet.snapshot().devices[0]).toMatchObject({ paused: { endsAt: null }, bookedBytes: 0 })

  expect(await fleet.pauses.resume(null)).toEqual(['gpu0'])
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ failure: undefined })
  expect(order).toEqual(Array.from({ length: 20 }, (_, at) => at))
  expect(log.lines.filter(line => /^(error|warn)/.test(line) && !/sandbox|wrapper|outlive/i.test(line))).toEqual([])
})

test('a pause ends by itself at its time, and the model that is kept loaded comes back', async () => {
  const model = fake('a', [], { devices: 1, replicas: { min: 1, max: 1 } })
  const { fleet } = await fleetWithCards(1, [model])
  await until(() => fleet.activity('a').status === 'warm')
  await fleet.pauses.add(pause({ until: Date.now() + 1_500 }), queued)
  await fleet.pauses.released()
  expect(fleet.snapshot().residents).toEqual([])
  const waiting = chat(fleet, model)
  await until(() => fleet.activity('a').status === 'warm')
  expect((await waiting).failure).toBeUndefined()
  expect(fleet.pauses.list()).toEqual([])
})

test('a restarted server loads nothing on a paused card, and a model with room elsewhere runs there', async () => {
  const only = fake('only', [], { devices: [0], replicas: { min: 1, max: 1 } })
  const free = fake('free', [], { devices: 1, replicas: { min: 1, max: 1 } })
  const first = await fleetWithCards(2, [only, free])
  await until(() => ['only', 'free'].every(id => first.fleet.activity(id).status === 'warm'))
  await first.fleet.pauses.add(pause({ devices: ['0'] }), queued)
  await until(() => first.fleet.activity('free').status === 'warm' && first.fleet.activity('only').paused)
  await first.fleet.close(0)

  const { fleet } = await fleetWithCards(2, [only, free], { dataDir: first.dataDir })
  await until(() => fleet.activity('free').status === 'warm')
  expect(fleet.snapshot().residents.map(({ modelId, devices }) => [modelId, devices.join()])).toEqual([
    ['free', 'gpu1'],
  ])
  expect(fleet.activity('only')).toMatchObject({ paused: true, reason: expect.stringContaining('gpu0 is paused') })
  expect(await fleet.plan(only)).toMatchObject({
    status: 'wait',
    advice: 'To load it now, use gpu0 again with: infer gpu resume --device gpu0.',
    placement: { on: 'gpu', detail: 'on GPU 0' },
  })
  expect(await fleet.plan(free)).toMatchObject({ status: 'ready', advice: null })
  await fleet.pauses.resume(['gpu0'])
  await until(() => fleet.activity('only').status === 'warm')
})

test('at once: engines end with their requests', async () => {
  const model = fake('a', [], { devices: 1 })
  const { fleet } = await fleetWithCards(1, [model])
  const lease = await fleet.lease(model, { waitMs: 30_000 })
  const { answer } = send(lease, 'mode:slow,ms=60000')
  await fleet.pauses.add(pause(), { atOnce: true })
  const { failure } = await answer
  lease.release()
  // As of one that never began: jobs and calls that have sent nothing wait again, and no request is suspected.
  expect(failure).toMatchObject({ code: 'no_capacity', message: expect.stringContaining('its device is paused') })
  await fleet.pauses.released()
  expect(fleet.snapshot().residents).toEqual([])
})

test('devices are named by number, id, UUID or name; others are refused with those that exist', async () => {
  const { fleet } = await fleetWithCards(2, [])
  expect((await fleet.pauses.add(pause({ devices: ['1', 'gpu0', 'cpu'] }), queued)).devices).toEqual([
    'gpu1',
    'gpu0',
    'cpu',
  ])
  await expect(fleet.pauses.add(pause({ devices: ['7'] }), queued)).rejects.toThrow(
    "There is no device '7' here. This server has gpu0 (NVIDIA L4), gpu1 (NVIDIA L4), cpu (Processor).",
  )
})

test('a program that takes nearly all free memory gets that of an idle engine', async () => {
  const models = ['idle', 'kept'].map(id =>
    fake(id, [], { devices: [0], replicas: { min: id === 'kept' ? 1 : 0, max: 1 } }),
  )
  const other = fake('other', [], { devices: [1] })
  const { fleet, taken, log } = await fleetWithCards(2, [...models, other])
  await Promise.all(models.map(model => fleet.load(model)))
  await until(() => fleet.snapshot().residents.every(({ usedBytes }) => usedBytes !== null))
  taken.set('gpu0', 15.5 * GiB)
  // Its start measures the cards.
  await fleet.load(other)
  await until(() => !fleet.snapshot().residents.some(({ modelId }) => modelId === 'idle'))
  expect(fleet.activity('kept').status).toBe('warm')
  expect(log.lines.join()).toContain('another program takes the memory of gpu0')
})
