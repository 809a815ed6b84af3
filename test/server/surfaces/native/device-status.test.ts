import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../../fixtures/nvidia-smi.ts'

interface Status {
  devices: { id: string; processes: { pid: number; engine_id: string | null }[] | null }[]
  engines: { id: string; pid: number }[]
}

const bin = mkdtempSync(join(tmpdir(), 'infer-smi-'))
const path = process.env.PATH
let app: TestApp

beforeAll(async () => {
  installNvidiaSmi(bin, {
    cards: `echo '${cardLine({ 'utilization.gpu': 87, 'temperature.gpu': 64, 'power.draw': 412.31 })}'
echo '${cardLine({ index: 1, uuid: 'GPU-2', 'utilization.gpu': '[N/A]', 'temperature.gpu': '[N/A]', 'power.draw': '[N/A]', 'power.limit': '[N/A]' })}'
echo '${cardLine({ index: 2, uuid: 'GPU-3' })}'`,
    processes: `cat '${join(bin, 'processes')}'`,
  })
  process.env.PATH = `${bin}:${path}`
  process.env.CUDA_VISIBLE_DEVICES = 'GPU-1,GPU-2'
  app = await startApp({ models: [fakeModel('fake', [], { devices: 1 })] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  delete process.env.CUDA_VISIBLE_DEVICES
  rmSync(bin, { recursive: true, force: true })
})

const status = async () => (await (await app.fetch('/api/system/status')).json()) as Status

test("status has the driver's readings of each GPU, and null where the driver reports none", async () => {
  expect((await status()).devices).toMatchObject([
    { id: 'gpu0', utilization: 0.87, temperature_celsius: 64, power_watts: 412.31, power_limit_watts: 700 },
    { id: 'gpu1', utilization: null, temperature_celsius: null, power_watts: null, power_limit_watts: null },
    { id: 'cpu', utilization: null, temperature_celsius: null, power_watts: null, processes: null },
  ])
})

test('a GPU that CUDA_VISIBLE_DEVICES leaves out is not used, and named in the status and in plans', async () => {
  const reason = 'gpu2 is left to others (CUDA_VISIBLE_DEVICES=GPU-1,GPU-2).'
  const left_devices = [{ id: 'gpu2', name: 'NVIDIA H200', reason }]
  expect(await status()).toMatchObject({ left_devices })
  const plan = await (await app.fetch('/api/plan?model=fake')).json()
  expect(plan).toMatchObject({ devices: [{ id: 'gpu0' }, { id: 'gpu1' }], left_devices })
})

test('processes on a GPU are listed, those of an engine with its id', async () => {
  await app.fetch('/std/v1/embeddings', { body: { model: 'fake', input: 'wake up' } })
  const others = `GPU-1, ${process.pid}, python3, 2048`
  const look = async () => {
    const { engines, devices } = await status()
    const { id, pid } = engines[0]!
    // Until the engine's own process is found, its PID is that of the wrapper.
    writeFileSync(join(bin, 'processes'), `GPU-1, ${pid}, /usr/bin/engine, 512\n${others}\n`)
    return devices.map(({ processes }) =>
      processes?.map(one => ({ ...one, ...(one.pid === pid && { pid: 'engine' }), ours: one.engine_id === id })),
    )
  }
  await expect.poll(look).toMatchObject([
    [
      { pid: 'engine', name: '/usr/bin/engine', bytes: 512 * 2 ** 20, ours: true },
      { pid: process.pid, name: 'python3', bytes: 2 ** 31, ours: false, engine_id: null },
    ],
    [],
    undefined,
  ])
})

test('metrics have the readings that a GPU reports', async () => {
  const text = await (await app.fetch('/metrics')).text()
  for (const line of [
    'infer_device_utilization_ratio{device="gpu0"} 0.87',
    'infer_device_temperature_celsius{device="gpu0"} 64',
    'infer_device_power_watts{device="gpu0"} 412.31',
  ])
    expect(text.split('\n')).toContain(line)
  expect(text).not.toMatch(/infer_device_(utilization|temperature|power)\w+\{device="(gpu1|cpu)"/)
})
