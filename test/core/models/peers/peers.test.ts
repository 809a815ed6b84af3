import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLog } from '../../../../core/log.ts'
import type { Fleet } from '../../../../core/models/fleet.ts'
import type { PeerOffer } from '../../../../core/models/peers/offered-peer-models.ts'
import { openPeers } from '../../../../core/models/peers/peers.ts'
import { warm } from '../../jobs/_fleet.ts'

const own = { activity: () => warm, snapshot: () => ({ models: { 'box2/a': warm } }) } as unknown as Fleet

/** A server that answers each request for the list like this. */
async function listingServer(answer: (response: ServerResponse) => void) {
  const server = createServer((_, response) => answer(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Peers of one server, whose models the test sees. */
function peersAt(url: string, dataDir: string, variable?: string) {
  const offers: (readonly PeerOffer[])[] = []
  const logged: string[] = []
  const peers = openPeers({
    dataDir,
    config: { peers: { box2: { url, ...(variable && { api_key_env: variable }) } }, currency: 'USD' },
    environment: {},
    registry: {
      replacePeers(next) {
        offers.push(next)
        return { added: [], removed: [], replaced: [], updated: [] }
      },
    },
    log: openLog('error', line => void logged.push(line)),
  })
  return {
    peers,
    logged,
    offered: () => offers.at(-1)?.map(({ name }) => name),
    models: () => offers.at(-1)?.flatMap(({ models }) => models.map(({ name }) => name)),
    activity: () => peers.seenBy(own).activity('box2/a'),
  }
}

const listing = (more: object) =>
  JSON.stringify({ data: [{ id: 'a', tasks: ['std/embeddings'], status: 'warm', ...more }] })

test('what waits there counts here, and models stay known while it cannot be reached', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-peers-'))
  const server = await listingServer(response => response.end(listing({ queue_depth: 3, eta_seconds: 20 })))
  const first = peersAt(server.url, dataDir)
  expect(first.models()).toEqual([])
  const listed = Promise.withResolvers<void>()
  first.peers.follow(listed.resolve)
  await listed.promise
  expect(first.models()).toEqual(['a'])
  expect(first.activity()).toMatchObject({ status: 'warm', elsewhere: { waiting: 3, etaMs: 20_000 } })
  expect(first.peers.seenBy(own).snapshot().models['box2/a']).toEqual(first.activity())
  expect(first.peers.snapshot()).toMatchObject([{ name: 'box2', models: 1, fault: null }])
  first.peers.close()
  await server.close()

  const second = peersAt(server.url, dataDir)
  expect(second.models()).toEqual(['a'])
  expect(second.activity()).toBe(warm)
  second.peers.follow(() => {})
  const reason = `The peer 'box2' (${server.url}) cannot be reached: ECONNREFUSED.`
  await expect.poll(second.activity).toMatchObject({ status: 'unavailable', reason })
  expect(second.models()).toEqual(['a'])
  second.peers.close()
})

test('a listener that fails to apply what a peer lists is logged, and ends nothing', async () => {
  const server = await listingServer(response => response.end(listing({})))
  const { peers, models, logged } = peersAt(server.url, mkdtempSync(join(tmpdir(), 'infer-peers-')))
  peers.follow(() => Promise.reject(new Error('The disk is full.')))
  await expect
    .poll(() => logged.map(line => JSON.parse(line) as object))
    .toMatchObject([
      { level: 'error', message: 'The models that a peer has listed could not be applied', peer: 'box2' },
    ])
  expect(models()).toEqual(['a'])
  peers.close()
  await server.close()
})

test('peers in another order are offered in that order', () => {
  const { peers, offered } = peersAt('http://127.0.0.1:1', mkdtempSync(join(tmpdir(), 'infer-peers-')))
  const [one, two] = ['http://127.0.0.1:1', 'http://127.0.0.1:2'].map(url => ({ url }))
  peers.configure({ peers: { one: one!, two: two! }, currency: 'USD' })
  expect(offered()).toEqual(['one', 'two'])
  peers.configure({ peers: { two: two!, one: one! }, currency: 'USD' })
  expect(offered()).toEqual(['two', 'one'])
  peers.close()
})

test('a damaged peers.json costs only the models that it has', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-peers-'))
  const url = 'http://127.0.0.1:1'
  const stored = { box2: { url, models: [null, 'a', { name: 'b' }, { name: 'c', tasks: ['std/embeddings'] }] } }
  writeFileSync(join(dataDir, 'peers.json'), JSON.stringify(stored))
  const { peers, models } = peersAt(url, dataDir)
  expect(models()).toEqual(['c'])
  peers.close()
})

test.each<[what: string, answer: (response: ServerResponse) => void, variable: string | undefined, fault: RegExp]>([
  ['an unset variable', response => response.end(listing({})), 'UNSET', /the variable UNSET with its token is not set/],
  ['another server', response => response.end('<html>'), undefined, /does not answer as an infer does/],
  ['a redirect', response => response.writeHead(302, { location: '/' }).end(), undefined, /answers 302/],
  [
    'an error without a message',
    response => response.writeHead(500).end('{"error":{}}'),
    undefined,
    /answers 500: what it says is no answer of an infer\./,
  ],
  [
    'no token',
    response => response.writeHead(401).end('{"error":{"message":"A token is needed."}}'),
    undefined,
    /refuses the token of this server: A token is needed\. Make one there with 'infer token create'/,
  ],
])('%s is said as a sentence', async (_, answer, variable, fault) => {
  const server = await listingServer(answer)
  const { peers } = peersAt(server.url, mkdtempSync(join(tmpdir(), 'infer-peers-')), variable)
  peers.follow(() => {})
  await expect.poll(() => peers.snapshot()[0]?.fault).toMatch(fault)
  peers.close()
  await server.close()
})
