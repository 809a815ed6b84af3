import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Model } from '../../../core/models/model.ts'
import { openAddresses } from '../../../gpu/requests/addresses.ts'
import { chat, fleetOf, send } from '../_fleet.ts'

/** Addresses at a clock that the test sets. */
function addressesAt(...names: string[]) {
  const clock = { now: 1_000 }
  const addresses = openAddresses(names, undefined, () => clock.now)
  const begin = () => {
    const one = addresses.choose()!
    one.underWay++
    return one
  }
  const fail = (origin: string, how: { reached: boolean; pauseMs?: number }) =>
    addresses.failed(addresses.all.find(one => one.origin === origin)!, 'answered 500', how)
  const states = () => addresses.copy().map(({ state }) => state)
  return { addresses, clock, begin, fail, states }
}
const gone = { reached: false }
const answered = { reached: true }

test('work is balanced by what is under way', () => {
  const { begin, addresses } = addressesAt('a', 'b', 'c')
  for (let at = 0; at < 9; at++) begin()
  expect(addresses.all.map(({ underWay }) => underWay)).toEqual([3, 3, 3])
  ;(addresses.all[1] as { underWay: number }).underWay = 0
  expect([begin(), begin(), begin()].map(({ origin }) => origin)).toEqual(['b', 'b', 'b'])
})

test('an address that cannot be reached gets nothing for a time that doubles, then one request', () => {
  const { begin, fail, clock, addresses } = addressesAt('a', 'b')
  fail('a', gone)
  for (let at = 0; at < 5; at++) expect(begin().origin).toBe('b')
  clock.now += 1_000
  const trial = begin()
  expect(trial.origin).toBe('a')
  expect(begin().origin).toBe('b')
  trial.underWay--
  fail('a', gone)
  clock.now += 1_999
  expect(begin().origin).toBe('b')
  clock.now += 1
  const second = begin()
  expect(second.origin).toBe('a')
  addresses.succeeded(second)
  expect([begin(), begin()].map(({ origin }) => origin)).toEqual(['a', 'a'])
})

test('an address that still serves older requests is tried again too', () => {
  const { begin, fail, clock, addresses } = addressesAt('a', 'b')
  for (let at = 0; at < 4; at++) begin()
  fail('a', gone)
  expect(begin().origin).toBe('b')
  clock.now += 1_000
  const trial = begin()
  expect([trial.origin, begin().origin]).toEqual(['a', 'b'])
  // It has not ended: another one tries after a while.
  clock.now += 1_000
  expect(begin().origin).toBe('a')
  addresses.succeeded(trial)
  expect(addresses.copy().map(({ state }) => state)).toEqual(['ready', 'ready'])
})

test('answers with errors eject an address only three in a row', () => {
  const { fail, states, addresses } = addressesAt('a', 'b')
  fail('a', answered)
  fail('a', answered)
  addresses.succeeded(addresses.all[0]!)
  fail('a', answered)
  fail('a', answered)
  expect(states()).toEqual(['ready', 'ready'])
  fail('a', answered)
  expect(states()).toEqual(['unavailable', 'ready'])
})

test('when all are ejected, the one that is tried again soonest is tried', () => {
  const { fail, begin, clock, addresses } = addressesAt('a', 'b')
  fail('a', gone)
  clock.now += 10
  fail('b', gone)
  expect(begin().origin).toBe('a')
  expect(addresses.choose(new Set([addresses.all[0]!]))?.origin).toBe('b')
  expect(addresses.choose(new Set(addresses.all))).toBeUndefined()
})

test('the engine pauses only if every address asks for that', () => {
  const { fail, addresses, clock } = addressesAt('a', 'b')
  fail('a', { reached: true, pauseMs: 5_000 })
  expect(addresses.pauseMs()).toBe(0)
  fail('b', { reached: true, pauseMs: 3_000 })
  expect(addresses.pauseMs()).toBe(3_000)
  clock.now += 3_001
  expect(addresses.pauseMs()).toBe(0)
})

/** A server of one model on loopback. */
async function openServer(answer: RequestListener) {
  let served = 0
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      served++
      answer(request, response)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  function die(): void {
    server.close()
    server.closeAllConnections()
  }
  onTestFinished(die)
  return { url: `http://127.0.0.1:${port}/v1`, served: () => served, die }
}
const ok: RequestListener = (_request, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
const remoteAt = (...servers: { url: string }[]): Model =>
  Model.parse({ id: 'there', engine: 'remote', urls: servers.map(({ url }) => url) })

test('no request fails when one of two servers dies under load', async () => {
  const [one, other] = [await openServer(ok), await openServer(ok)]
  const model = remoteAt(one, other)
  const { fleet } = await fleetOf([model])
  const failures: unknown[] = []
  let left = 400
  async function client(): Promise<void> {
    while (left-- > 0) {
      if (left === 200) one.die()
      const { failure } = await chat(fleet, model)
      if (failure) failures.push(failure)
    }
  }
  await Promise.all(Array.from({ length: 20 }, client))
  expect(failures).toEqual([])
  expect(one.served()).toBeGreaterThan(50)
  expect(other.served()).toBeGreaterThan(200)
  const [resident] = fleet.snapshot().residents
  expect(resident!.addresses.map(({ state }) => state)).toEqual(['unavailable', 'ready'])
  expect(resident!.placement.detail).toMatch(
    /^on 2 servers that infer does not start; http:\S+ is unavailable, because it cannot be reached$/,
  )
})

test('the next requests of a slot go where its first one was accepted', async () => {
  const refuse: RequestListener = (_request, response) => void response.writeHead(500).end('{}')
  let isBroken = false
  const answer: RequestListener = (request, response) => (isBroken ? refuse : ok)(request, response)
  const servers = [await openServer(answer), await openServer(answer)]
  const model = remoteAt(...servers)
  const { fleet } = await fleetOf([model])
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  expect((await send(lease, 'begin').answer).failure).toBeUndefined()
  isBroken = true
  expect((await send(lease, 'poll').answer).failure).toMatchObject({ code: 'worker_error' })
  expect(servers.map(({ served }) => served()).toSorted((one, other) => one - other)).toEqual([0, 2])
})

test('an answer that has begun is not repeated elsewhere', async () => {
  const cut: RequestListener = (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write('data: {"a":1}\n\n', () => response.destroy())
  }
  const servers = [await openServer(cut), await openServer(cut)]
  const model = remoteAt(...servers)
  const { fleet } = await fleetOf([model])
  using lease = await fleet.lease(model, { waitMs: 30_000 })
  const { failure } = await send(lease, '', { stream: true }).answer
  expect(failure?.message).toMatch(/broke off its answer/)
  expect(servers.map(({ served }) => served()).toSorted((one, other) => one - other)).toEqual([0, 1])
})

test('a server that asks for a pause gets none, and others serve', async () => {
  const busy = await openServer((_request, response) => void response.writeHead(429, { 'retry-after': '60' }).end('{}'))
  const other = await openServer(ok)
  const model = remoteAt(busy, other)
  const { fleet } = await fleetOf([model])
  for (let at = 0; at < 6; at++) expect((await chat(fleet, model)).failure).toBeUndefined()
  expect(busy.served()).toBe(1)
})
