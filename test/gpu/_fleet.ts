import { onTestFinished } from 'vitest'
import type { Failure } from '../../core/failure.ts'
import type { EngineCall, EngineExchange } from '../../core/models/engine-call.ts'
import type { Lease } from '../../core/models/fleet.ts'
import { Model } from '../../core/models/model.ts'
import { type Device, noReadings } from '../../gpu/devices/device.ts'
import { openFleet } from '../../gpu/fleet.ts'
import type { FleetOptions } from '../../gpu/fleet-options.ts'
import type { ProbedMachine } from '../../gpu/probe-machine.ts'
import { type LeasingFleet, leasing } from './_leasing.ts'
import { fakeEngine, keptLog, noSandbox, temporary, wrappersHere } from './launcher/_launch.ts'

/** A model that the fake engine serves. It needs 4 of the 10 GiB that the test's processor has, 8 of them bookable. */
export const fake = (id: string, flags: string[] = [], of: object = {}): Model =>
  Model.parse({
    id,
    engine: 'custom',
    memory: '4GiB',
    concurrency: 2,
    stop_grace: '2s',
    command: [process.execPath, fakeEngine, '--socket', '{socket}', '--id', '{id}', ...flags],
    ...of,
  })

export const cpu: Device = {
  id: 'cpu',
  kind: 'cpu',
  name: 'Processor',
  totalBytes: 10 * 2 ** 30,
  usedBytes: null,
  ...noReadings,
  cudaId: null,
  uuid: null,
  cores: 2,
}

/** A separate fleet that ends with the test. */
export async function fleetOf(
  models: Model[],
  { wrapper, sandbox, devices, ...of }: Partial<FleetOptions & ProbedMachine> = {},
) {
  const log = keptLog()
  const dataDir = temporary()
  const fleet = await openFleet({
    models: () => models,
    dataDir,
    bootId: `boot-${process.pid}`,
    log,
    limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 500 },
    environment: process.env,
    machine: {
      wrapper: wrapper ?? wrappersHere[0]!,
      sandbox: sandbox ?? noSandbox,
      devices: devices ?? {
        cards: async () => ({ devices: [], reason: null, broken: false }),
        processes: async () => null,
        cpu,
      },
    },
    ...of,
  })
  onTestFinished(() => fleet.close(0))
  return { fleet: leasing(fleet, models), log, dataDir }
}

export interface Answer {
  contentType: string
  text: string
  failure: Failure | undefined
  chunks: number
}

export interface Sent {
  exchange: EngineExchange
  /** Resolves when the request ends in any way except an abort. */
  answer: Promise<Answer>
  /** Resolves with the first bytes. */
  begun: Promise<void>
}

/** Sends a chat with this text through a lease. */
export function send(lease: Lease, text: string, of: Partial<EngineCall> & { more?: object } = {}): Sent {
  const { more, ...call } = of
  const stream = call.stream ?? false
  const body = JSON.stringify({ model: lease.modelId, messages: [{ role: 'user', content: text }], stream, ...more })
  const got: Answer = { contentType: '', text: '', failure: undefined, chunks: 0 }
  const ended = Promise.withResolvers<Answer>()
  const begun = Promise.withResolvers<void>()
  const exchange = lease.open(
    { path: '/v1/chat/completions', body, stream, maxBytes: 1 << 20, ...call },
    {
      accepted: contentType => void (got.contentType = contentType),
      chunk(bytes) {
        got.chunks++
        got.text += bytes.toString('utf8')
        begun.resolve()
      },
      finished: () => ended.resolve(got),
      failed(failure) {
        got.failure = failure
        ended.resolve(got)
      },
    },
  )
  return { exchange, answer: ended.promise, begun: begun.promise }
}

/** One chat from lease to release. */
export async function chat(fleet: LeasingFleet, model: Model, text = 'Hello', waitMs = 30_000): Promise<Answer> {
  using lease = await fleet.lease(model, { waitMs })
  return await send(lease, text).answer
}

/** The status that the engine of a lease reports. */
export async function statsOf(
  fleet: LeasingFleet,
  model: Model,
): Promise<Record<string, number> & { names: string[] }> {
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const { text } = await send(lease, '', { path: '/stats' }).answer
  return JSON.parse(text)
}
