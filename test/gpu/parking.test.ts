import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Model } from '../../core/models/model.ts'
import { noReadings } from '../../gpu/devices/device.ts'
import type { DeviceSource } from '../../gpu/placement/memory.ts'
import { chat, cpu, fleetOf } from './_fleet.ts'
import { fakeEngine, temporary, until } from './launcher/_launch.ts'

const GiB = 2 ** 30
const card: DeviceSource = {
  cards: async () => ({
    devices: [
      {
        id: 'gpu0',
        kind: 'nvidia',
        name: 'NVIDIA L4',
        totalBytes: 24 * GiB,
        usedBytes: null,
        ...noReadings,
        cudaId: '0',
        uuid: 'GPU-0',
        cores: null,
      },
    ],
    reason: null,
    broken: false,
  }),
  processes: async () => null,
  cpu,
}

/** Two models, of which one fits on the card beside what the other keeps. The program of their engine is the fake one. */
async function twoModels({ name = 'vllm', ...of }: { name?: string; [field: string]: unknown } = {}) {
  const folder = temporary()
  const program = join(folder, name)
  writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${fakeEngine} --as ${name} "$@"\n`)
  chmodSync(program, 0o755)
  const source = join(folder, 'model')
  mkdirSync(source)
  writeFileSync(join(source, 'model.safetensors'), Buffer.alloc(3 << 20))
  const models = ['a', 'b'].map(id =>
    Model.parse({
      id,
      engine: name,
      source,
      memory: '14GiB',
      concurrency: 2,
      stop_grace: '2s',
      parking: 'auto',
      ...of,
    }),
  )
  const opened = await fleetOf(models, {
    devices: card,
    environment: { ...process.env, PATH: `${folder}:${process.env.PATH}` },
    limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 500, parking_memory: GiB },
  })
  const engine = (id: string) => opened.fleet.snapshot().residents.find(({ modelId }) => modelId === id)
  return { ...opened, a: models[0]!, b: models[1]!, engine }
}

test.each([
  ['vllm', 'auto', /--uds \{?\S+ --enable-sleep-mode/],
  ['vllm', 2, /--uds \{?\S+ --enable-sleep-mode/],
  ['sglang', 'auto', /--host 127\.0\.0\.1 .*--enable-memory-saver --enable-weights-cpu-backup/],
] as const)(
  'an engine of %s that makes room is parked and woken (parking: %s)',
  async (name, parking, options) => {
    const { fleet, a, b, engine, log } = await twoModels({ name, parking })
    expect((await chat(fleet, a)).failure).toBeUndefined()
    const { pid, command } = engine('a')!
    expect(command.join(' ')).toMatch(options)
    const says = /its engine is parked and keeps .* of the main memory and 1\.5 GiB of each GPU/
    expect(engine('a')!.parking).toMatch(says)
    // Of one that was not started yet.
    expect((await fleet.plan(b)).parking).toMatch(says)
    expect((await chat(fleet, b)).failure).toBeUndefined()
    expect(engine('a')).toMatchObject({ state: 'parked', pid, devices: ['gpu0', 'cpu'], leases: 0 })
    const answer = await chat(fleet, a)
    expect(answer.failure).toBeUndefined()
    expect(answer.text).toContain('"content"')
    expect(engine('a')).toMatchObject({
      state: 'ready',
      pid,
      devices: ['gpu0', 'cpu'],
      shares: [14 * GiB, expect.any(Number)],
    })
    expect(engine('b')!.state).toBe('parked')
    expect(log.lines.filter(line => /Engine (parked|woken)/.test(line))).toHaveLength(3)
  },
  60_000,
)

test('with parking: off it ends, and listens on a port without the routes that park it', async () => {
  const { fleet, a, b, engine } = await twoModels({ parking: 'off' })
  await chat(fleet, a)
  expect(engine('a')!.command.join(' ')).not.toMatch(/uds|sleep/)
  expect((await fleet.plan(a)).parking).toMatch(/its engine ends\. It is parked only with 'parking: auto'/)
  await chat(fleet, b)
  expect(engine('a')).toBeUndefined()
})

test('an engine that refuses to be parked ends, is started anew, and is not parked again', async () => {
  const { fleet, a, b, engine, log } = await twoModels({ env: { VLLM_SERVER_DEV_MODE: '0' } })
  for (const model of [a, b, a, b]) expect((await chat(fleet, model)).failure).toBeUndefined()
  await until(() => engine('a') === undefined)
  // Once for each model.
  expect((await fleet.plan(a)).parking).toMatch(
    /its engine ends\. It could not be parked\. The engine answered 404 at .sleep/,
  )
  expect(log.lines.filter(line => /could not be parked or woken.*404 at .sleep.level=1/.test(line))).toHaveLength(2)
})

test('an engine that is killed while it is parked is started anew by the next request', async () => {
  const { fleet, a, b, engine } = await twoModels()
  await chat(fleet, a)
  const { pid } = engine('a')!
  await chat(fleet, b)
  expect(engine('a')!.state).toBe('parked')
  process.kill(pid!, 'SIGKILL')
  await until(() => engine('a') === undefined)
  expect(fleet.activity('a')).toMatchObject({ status: 'cold', engineFailures: 0 })
  expect((await chat(fleet, a)).failure).toBeUndefined()
})
