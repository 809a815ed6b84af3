import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import type { EngineConnections } from '../../../gpu/requests/connections.ts'
import { EngineLease } from '../../../gpu/requests/lease.ts'
import type { Resident } from '../../../gpu/residency/model-state.ts'

/** An engine whose slots tell what happens to them. */
function engine(name: string, told: string[], origin = 'http://engine') {
  const hold = () => {
    told.push(`${name} holds`)
    return {
      pin: () => {
        told.push(`${name} pins`)
        throw new Error('far enough')
      },
      ended: () => {},
      release: () => told.push(`${name} releases`),
    }
  }
  const connections = {
    options: { slots: { hold } },
    take: () => ({ address: { origin } }),
    release: () => {},
  } as unknown as EngineConnections
  const resident = { engineId: name, devices: [], slots: 1, serves: { model: { id: 'm' } } } as unknown as Resident
  return { connections, resident }
}

test('a lease that moves to another engine leaves the slot of the first and pins its requests in the second', () => {
  const told: string[] = []
  const [one, two] = [engine('one', told), engine('two', told)]
  const energy = { take: () => ({}), release: () => {}, since: () => null } as never
  const lease = new EngineLease(one.resident, one.connections, energy, {
    onReleased: ({ engineId }) => void told.push(`${engineId} is free`),
    probe: false,
    waitedMs: 0,
    loadedMs: 0,
    move: () => two,
  })
  lease.prefer('{"messages":[]}')
  const listener = { accepted() {}, chunk() {}, finished() {}, failed() {} }
  expect(() => lease.open({ path: '/', body: '{}', stream: false, maxBytes: 1 }, listener)).toThrow('far enough')
  expect(told).toEqual(['one holds', 'one releases', 'two holds', 'one is free', 'two pins'])
  expect(lease.engineId).toBe('two')
})

test.each([
  [true, '00-1-2-01'],
  [false, undefined],
])('a WebSocket has the trace of its work, if the engine is a process of infer: %j', async (isOwnProcess, sent) => {
  await using server = Object.assign(new WebSocketServer({ port: 0, host: '127.0.0.1' }), {
    [Symbol.asyncDispose]: () => new Promise<void>(resolve => server.close(() => resolve())),
  })
  await once(server, 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { connections, resident } = engine('one', [], origin)
  Object.assign(connections.options, {
    endpoint: { origin },
    headers: ['content-type', 'application/json', 'authorization', 'Bearer key'],
    noProgressMs: 10_000,
    isOwnProcess,
    sharesFolders: true,
  })
  const energy = { take: () => ({}), release: () => {}, since: () => null } as never
  const options = { onReleased: () => {}, probe: false, waitedMs: 0, loadedMs: 0 }
  using lease = new EngineLease(resident, connections, energy, options)
  lease.traceparent = '00-1-2-01'
  const connected = once(server, 'connection') as Promise<[unknown, { headers: Record<string, string> }]>
  lease.connect('/ws', { opened() {}, message() {}, failed() {} })
  const [, { headers }] = await connected
  expect(headers).toMatchObject({ authorization: 'Bearer key' })
  expect(headers['content-type']).toBeUndefined()
  expect(headers.traceparent).toBe(sent)
})
