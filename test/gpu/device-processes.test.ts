import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { openDeviceProcesses } from '../../gpu/device-processes.ts'
import { type Device, noReadings } from '../../gpu/devices/device.ts'
import type { CardProcess } from '../../gpu/devices/nvidia-smi.ts'
import { newModelState } from '../../gpu/residency/model-state.ts'
import { newResident } from '../../gpu/residency/new-resident.ts'
import { cpu } from './_fleet.ts'
import { modelOf, wantedOf } from './_models.ts'

const card = (index: number): Device => ({
  ...cpu,
  ...noReadings,
  id: `gpu${index}`,
  kind: 'nvidia',
  cudaId: String(index),
  uuid: `GPU-${index}`,
})
const process_ = (pid: number): CardProcess => ({ pid, name: 'x', bytes: 1 })
type Answer = Map<string, CardProcess[] | null> | null

function open(
  answer: () => Promise<Answer> | Answer,
  { devices = [card(0), card(1), cpu], engines = [] as { id: string; pid: number; devices: string[] }[] } = {},
) {
  let asked = 0
  const residents = engines.map(({ id, devices }) =>
    newResident(newModelState(modelOf(id), wantedOf(id, 1), 1), id, { devices }, 0),
  )
  const source = {
    async processes() {
      asked++
      return answer()
    },
  }
  const pidOf = (engineId: string) => engines.find(({ id }) => id === engineId)?.pid ?? null
  const processes = openDeviceProcesses(
    source,
    () => devices,
    () => residents,
    pidOf,
  )
  return { processes, asked: () => asked, residents }
}

test('returns an empty list for a card without processes, and leaves out the CPU and cards whose processes are unknown', async () => {
  const { processes } = open(() => new Map([['GPU-1', null]]))
  expect([...(await processes())]).toEqual([['gpu0', []]])
})

test('finds the engine of a process by its process tree, among the engines on that card', async () => {
  const shell = spawn('/bin/sh', ['-c', 'sleep 600 & echo $!; wait'], { detached: true })
  onTestFinished(() => void process.kill(-shell.pid!, 'SIGKILL'))
  const [line] = (await once(shell.stdout, 'data')) as [Buffer]
  const child = Number(line.toString())
  const rows = [child, shell.pid!, process.pid, 2 ** 22 + 1].map(process_)
  const { processes } = open(() => new Map(['GPU-0', 'GPU-1'].map(uuid => [uuid, rows])), {
    engines: [{ id: 'wkr_1', pid: shell.pid!, devices: ['gpu0'] }],
  })
  const found = await processes()
  expect(found.get('gpu0')!.map(({ engineId }) => engineId)).toEqual(['wkr_1', 'wkr_1', null, null])
  expect(found.get('gpu1')!.map(({ engineId }) => engineId)).toEqual([null, null, null, null])
})

test('queries the driver once for concurrent callers, and never without cards', async () => {
  const { processes, asked } = open(() => new Map())
  await Promise.all([processes(), processes(), processes()])
  await processes()
  expect(asked()).toBe(1)
  const without = open(() => new Map(), { devices: [cpu] })
  expect(await without.processes()).toEqual(new Map())
  expect(without.asked()).toBe(0)
})

test('queries again as soon as an engine has another state', async () => {
  const { processes, asked, residents } = open(() => new Map(), {
    engines: [{ id: 'wkr_1', pid: process.pid, devices: ['gpu0'] }],
  })
  await processes()
  residents[0]!.state = 'ready'
  await processes()
  await processes()
  expect(asked()).toBe(2)
})

test('returns nothing when the query fails or hangs', async () => {
  expect(await open(() => null).processes()).toEqual(new Map())
  const { processes, asked } = open(() => new Promise<Answer>(() => {}))
  expect(await processes()).toEqual(new Map())
  expect(await processes()).toEqual(new Map())
  expect(asked()).toBe(1)
})
