import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Device, type Discovery, noReadings } from '../../../gpu/devices/device.ts'
import { openMemory } from '../../../gpu/placement/memory.ts'
import { newModelState, newResident, type Resident } from '../../../gpu/residency/model-state.ts'
import { cpu } from '../_fleet.ts'
import { GiB, modelOf, wantedOf } from '../_models.ts'
import { keptLog } from '../launcher/_launch.ts'

let used: number | null
let broken: boolean
let residents: Resident[]

beforeEach(() => {
  used = 0
  broken = false
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
})
const cards = async (): Promise<Discovery> =>
  broken ? { devices: [], reason: 'The driver is gone.', broken } : { devices: [card()], reason: null, broken }

async function open() {
  const log = keptLog()
  const memory = await openMemory({
    source: { cards, cpu },
    residents: () => residents,
    swept: false,
    log,
    changed() {},
  })
  onTestFinished(() => memory.close())
  const free = () => memory.capacities()[0]!.capacity / GiB
  return { memory, free, log }
}

const residentOn = (id: string, gigabytes: number, state: Resident['state'] = 'ready'): Resident =>
  Object.assign(newResident(newModelState(modelOf(id), wantedOf(id, gigabytes), 1), id, ['gpu0'], 0), { state })

describe('the memory that may be booked', () => {
  test('nearly all of an empty GPU, four fifths of the system memory', async () => {
    const { memory } = await open()
    expect(memory.capacities()).toEqual([
      { id: 'gpu0', kind: 'nvidia', capacity: 97 * GiB },
      { id: 'cpu', kind: 'cpu', capacity: 8 * GiB },
    ])
  })

  test('excludes what other processes use; a rise counts once it lasts, a drop at once', async () => {
    used = 10
    const { memory, free } = await open()
    expect(free()).toBe(87)
    used = 30
    await memory.measure()
    expect(free()).toBe(87)
    await memory.measure()
    expect(free()).toBe(67)
    used = 5
    await memory.measure()
    expect(free()).toBe(92)
  })

  test("memory of infer's engines, or just released by them, does not count as used by others", async () => {
    const { memory, free } = await open()
    residents = [residentOn('a', 40)]
    used = 40
    await memory.measure()
    await memory.measure()
    expect(free()).toBe(97)
    residents = []
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
    expect(memory.reason()).toBe('The driver is gone.')
    expect(memory.snapshot()[0]).toMatchObject({ totalBytes: 100 * GiB, temperatureCelsius: null })
    expect(log.lines).toEqual([expect.stringContaining('The GPUs cannot be used')])
    broken = false
    await memory.measure()
    expect(memory.reason()).toBeNull()
  })
})

describe('the memory use of a resident', () => {
  test('is the difference to what other processes use and what is booked beside it', async () => {
    used = 10
    const { memory } = await open()
    residents = [residentOn('a', 20), residentOn('b', 30)]
    used = 75
    expect(await memory.measuredUse(residents[1]!)).toBe(45 * GiB)
  })

  test('is unknown while another one is loading or stopping, and without measurements', async () => {
    const { memory } = await open()
    residents = [residentOn('a', 20, 'starting'), residentOn('b', 30)]
    used = 60
    expect(await memory.measuredUse(residents[1]!)).toBeNull()
    residents = [residents[1]!]
    used = null
    expect(await memory.measuredUse(residents[0]!)).toBeNull()
    expect(await memory.measuredUse(Object.assign(residentOn('c', 1), { devices: ['cpu'] }))).toBeNull()
  })

  test('its share of a GPU includes what other processes use there', async () => {
    used = 10
    const { memory } = await open()
    const resident = residentOn('a', 40)
    expect(memory.shareOfDevice(resident)).toBe(0.5)
    expect(memory.visibleTo(resident)).toBe('0')
    expect(memory.shareOfDevice(Object.assign(residentOn('b', 4), { devices: ['cpu'] }))).toBe(0.4)
    expect(memory.shareOfDevice(Object.assign(residentOn('c', 4), { devices: [] }))).toBe(1)
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
