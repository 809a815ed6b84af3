import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Device, type Discovery, noReadings } from '../../../gpu/devices/device.ts'
import { openMemory } from '../../../gpu/placement/memory.ts'
import { newModelState, type Resident } from '../../../gpu/residency/model-state.ts'
import { newResident } from '../../../gpu/residency/new-resident.ts'
import { cpu } from '../_fleet.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'
import { keptLog } from '../launcher/_launch.ts'

let used: number | null
let unified = false
let broken: boolean
let residents: Resident[]
/** Gigabytes that the driver reports for each engine; null if it reports none. */
let reported: Record<string, number> | null
let asked: number

beforeEach(() => {
  reported = null
  asked = 0
  used = 0
  broken = false
  unified = false
  residents = []
})

const card = (): Device => ({
  id: 'gpu0',
  kind: 'nvidia',
  name: 'Card',
  totalBytes: 100 * GiB,
  usedBytes: used === null ? null : used * GiB,
  ...noReadings,
  temperatureCelsius: 64,
  cudaId: '0',
  uuid: null,
  cores: null,
  ...(unified && { isUnified: true, totalBytes: cpu.totalBytes }),
})
const cards = async (): Promise<Discovery> =>
  broken ? { devices: [], reason: 'The driver is gone.', broken } : { devices: [card()], reason: null, broken }

async function open() {
  const log = keptLog()
  let changes = 0
  const memory = await openMemory({
    source: { cards, cpu },
    residents: () => residents,
    async processes() {
      asked++
      const rows = Object.entries(reported ?? {}).map(([engineId, gigabytes], at) => {
        return { pid: at + 1, name: null, engineId: engineId || null, bytes: gigabytes * GiB }
      })
      return new Map(reported ? [['gpu0', rows]] : [])
    },
    measured(resident, [bytes]) {
      resident.bytes = Math.max(resident.bytes, bytes!)
      resident.shares = [resident.bytes]
    },
    swept: false,
    log,
    failed: () => undefined,
    changed: () => void changes++,
  })
  onTestFinished(() => memory.close())
  const free = () => memory.capacities()[0]!.capacity / GiB
  /** Gigabytes on the card that are neither booked nor used by other programs. */
  const unbooked = () => free() - residents.reduce((sum, { bytes }) => sum + bytes / GiB, 0)
  return { memory, free, unbooked, log, changes: () => changes }
}

const residentOn = (id: string, gigabytes: number, state: Resident['state'] = 'ready'): Resident =>
  Object.assign(newResident(newModelState(modelOf(id), wantedOf(id, gigabytes), 1), id, { devices: ['gpu0'] }, 0), {
    state,
  })

describe('the memory that may be booked', () => {
  test('nearly all of an empty GPU, four fifths of the system memory', async () => {
    const { memory } = await open()
    expect(memory.capacities()).toEqual([
      { id: 'gpu0', kind: 'gpu', capacity: 97 * GiB, totalBytes: 100 * GiB, usedByOthers: 0 },
      { id: 'cpu', kind: 'cpu', capacity: 8 * GiB, totalBytes: 10 * GiB, usedByOthers: 0 },
    ])
  })

  test('excludes what other processes use, with the measurement, and says that it has changed', async () => {
    used = 10
    const { memory, free, changes } = await open()
    expect(free()).toBe(87)
    used = 30
    await memory.measure()
    expect(free()).toBe(67)
    used = 5
    const before = changes()
    await memory.measure()
    expect([free(), changes()]).toEqual([92, before + 1])
    await memory.measure()
    expect(changes()).toBe(before + 1)
  })

  test("memory of infer's engines, or just released by them, does not count as used by others", async () => {
    const { memory, free } = await open()
    residents = [residentOn('a', 40)]
    used = 40
    await memory.measure()
    await memory.measure()
    expect(free()).toBe(97)
    memory.ended(residents[0]!)
    residents = []
    await memory.measure()
    await memory.measure()
    expect(free()).toBe(97)
    used = 0
    await memory.measure()
    expect(free()).toBe(97)
  })

  test('a driver that stops answering removes no GPU', async () => {
    const { memory, free, log } = await open()
    broken = true
    await memory.measure()
    await memory.measure()
    expect(free()).toBe(97)
    expect(memory.fault()).toBe('The driver is gone.')
    expect(memory.snapshot()[0]).toMatchObject({ totalBytes: 100 * GiB, temperatureCelsius: null })
    expect(log.lines).toEqual([expect.stringContaining('The GPUs cannot be used')])
    residents = [residentOn('a', 40, 'starting')]
    used = 40
    broken = false
    await memory.measure()
    broken = true
    residents = []
    await memory.measure()
    expect([free(), memory.largest({ kind: 'gpu', devices: 1 }) / GiB]).toEqual([97, 97])
    broken = false
    await memory.measure()
    expect(memory.fault()).toBeNull()
  })
})

describe('the memory use of a resident', () => {
  test('is the difference to what other processes use and what the engines beside it use', async () => {
    used = 10
    const { memory } = await open()
    residents = [residentOn('a', 20)]
    used = 30
    await memory.measure()
    residents.push(residentOn('b', 30))
    used = 75
    await memory.measure()
    expect(residents.map(memory.bytesInUse)).toEqual([20 * GiB, 45 * GiB])
  })

  test('is unknown while another one is loading or stopping, and without measurements', async () => {
    const { memory } = await open()
    residents = [residentOn('a', 20, 'starting'), residentOn('b', 30)]
    used = 60
    await memory.measure()
    expect(memory.bytesInUse(residents[1]!)).toBeNull()
    residents = [residents[1]!]
    used = null
    await memory.measure()
    expect(memory.bytesInUse(residents[0]!)).toBeNull()
    expect(memory.bytesInUse(Object.assign(residentOn('c', 1), { devices: ['cpu'] }))).toBeNull()
  })

  test('its share of the whole memory, and of what others leave free', async () => {
    used = 20
    const { memory } = await open()
    const resident = residentOn('a', 40)
    expect(memory.sharesOfDevices(resident)).toEqual({ ofAll: 0.4, ofFree: 0.5 })
    expect(memory.visibleTo(resident)).toEqual({ variables: { CUDA_VISIBLE_DEVICES: '0' }, files: ['nvidia'] })
    expect(memory.sharesOfDevices(Object.assign(residentOn('b', 4), { devices: ['cpu'] })).ofAll).toBe(0.4)
    expect(memory.sharesOfDevices(Object.assign(residentOn('c', 4), { devices: [] })).ofAll).toBe(1)
  })
})

test('a GPU without own memory shares the budget of the processor', async () => {
  unified = true
  const { memory } = await open()
  expect(memory.capacities()).toEqual([
    { id: 'gpu0', kind: 'gpu', capacity: 8 * GiB, totalBytes: 10 * GiB, usedByOthers: 0, sharesWith: ['cpu'] },
    { id: 'cpu', kind: 'cpu', capacity: 8 * GiB, totalBytes: 10 * GiB, usedByOthers: 0, sharesWith: ['gpu0'] },
  ])
  residents = [residentOn('a', 3), Object.assign(residentOn('b', 2), { devices: ['cpu'] })]
  expect(memory.snapshot().map(({ id, bookedBytes }) => [id, bookedBytes / GiB])).toEqual([
    ['gpu0', 5],
    ['cpu', 5],
  ])
})

describe('another program on a GPU with an engine', () => {
  test('is counted, and what it releases is free at once, where the driver reports no processes', async () => {
    const { memory, unbooked } = await open()
    residents = [residentOn('a', 40)]
    used = 40
    await memory.measure()
    used = 70
    await memory.measure()
    expect(unbooked()).toBe(27)
    residents.push(residentOn('b', 10, 'starting'))
    used = 45
    await memory.measure()
    expect(unbooked()).toBe(42)
  })

  test('is counted at once when an engine has found too little memory', async () => {
    const { memory, free, changes } = await open()
    residents = [residentOn('a', 50, 'starting')]
    reported = { '': 60, b: 10 }
    const before = changes()
    await memory.foundFull(residents[0]!)
    expect([free(), changes() - before]).toEqual([37, 1])
  })

  test('is counted exactly where the driver reports what each engine uses', async () => {
    const { memory, free } = await open()
    residents = [residentOn('a', 40)]
    reported = { a: 20 }
    used = 20
    await memory.measure()
    used = 35
    await memory.measure()
    expect(free()).toBe(82)
    expect(asked).toBe(2)
    await memory.measure()
    expect(asked).toBe(2)
  })

  test('an engine that grows is booked as it is, and no other program', async () => {
    const { memory, free } = await open()
    residents = [residentOn('a', 40)]
    reported = { a: 40 }
    used = 40
    await memory.measure()
    reported = { a: 65 }
    used = 65
    await memory.measure()
    expect([free(), residents[0]!.bytes / GiB]).toEqual([97, 65])
  })

  test('a report of processes that use more than the card shows is of another time', async () => {
    const { memory, free } = await open()
    residents = [residentOn('a', 40)]
    reported = { a: 60 }
    used = 20
    await memory.measure()
    expect([free(), residents[0]!.bytes / GiB]).toEqual([97, 40])
  })

  test('an engine that grows up to its booking takes nothing away', async () => {
    const { memory, unbooked } = await open()
    residents = [residentOn('a', 40)]
    used = 20
    await memory.measure()
    used = 38
    await memory.measure()
    expect(unbooked()).toBe(57)
  })
})

test('settle ends when the GPU has the free memory, and at once without measurements', async () => {
  used = 90
  const { memory } = await open()
  const resident = residentOn('a', 40, 'starting')
  residents = [resident]
  let settled = false
  const settling = memory.settle(resident).then(() => (settled = true))
  await memory.measure()
  expect(settled).toBe(false)
  used = 0
  await settling
  used = null
  await memory.measure()
  await memory.settle(resident)
})

describe('released', () => {
  test('waits until the GPU shows at most others plus bookings, and counts nothing as used by others', async () => {
    used = 10
    const { memory, free } = await open()
    residents = [residentOn('stays', 20)]
    used = 70
    let released = false
    const releasing = memory.released(['gpu0']).then(() => (released = true))
    await memory.measure()
    await memory.measure()
    expect(released).toBe(false)
    used = 30
    await releasing
    expect(free()).toBe(87)
  })

  test('does not wait for the CPU, nor without measurements', async () => {
    used = null
    const { memory } = await open()
    await memory.released(['cpu'])
    await memory.released(['gpu0'])
  })
})

test('the snapshot shows measured and booked memory', async () => {
  const { memory } = await open()
  residents = [residentOn('a', 40), residentOn('b', 10, 'stopping')]
  expect(memory.snapshot()).toMatchObject([
    { id: 'gpu0', totalBytes: 100 * GiB, usedBytes: 0, bookedBytes: 50 * GiB, temperatureCelsius: 64 },
    { id: 'cpu', usedBytes: null, bookedBytes: 0 },
  ])
})
