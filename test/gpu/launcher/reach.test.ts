import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { holdControls } from '../../../gpu/launcher/held-controls.ts'
import { newLaunchKey } from '../../../gpu/launcher/launch-key.ts'
import { heard, isRefusal, isUnreachable, type Reach, refused } from '../../../gpu/launcher/reach.ts'
import { until } from './_launch.ts'

const reached: Reach = { node: 'n1', heardAt: 0, refusals: 0, refusedSince: 0 }
/** An engine that was refused at these times, after it had answered at 0. */
const refusedAt = (times: readonly number[], node = 'n1'): Reach =>
  times.reduce<Reach>((reach, at) => refused(reach, at), { ...reached, node })

test.each<[rule: string, one: Reach, others: readonly Reach[], now: number, verdict: boolean]>([
  ['one that answers can be reached', reached, [], 10_000, false],
  ['two refusals may be a restart of the network', refusedAt([100, 1_000]), [], 2_000, false],
  ['so may three in a moment', refusedAt([100, 150, 200]), [], 200, false],
  ['three over a while say that nobody is there', refusedAt([100, 250, 550]), [], 550, true],
  [
    'one that has never answered may not listen yet',
    { ...refusedAt([100, 250, 550]), heardAt: Number.NEGATIVE_INFINITY },
    [],
    9_000,
    false,
  ],
  ['whatever others on the same node say', refusedAt([100, 250, 550]), [refusedAt([100])], 550, true],
  ['one that has answered since is there', heard(refusedAt([100, 250, 550]), 600), [], 700, false],
  [
    'if nobody on another node has answered since, the server itself may be cut off',
    refusedAt([100, 250, 550]),
    [{ ...reached, node: 'n2', heardAt: 99 }],
    550,
    false,
  ],
  [
    'if all are refused, nothing is known of any',
    refusedAt([100, 250, 550]),
    [refusedAt([101, 251, 551], 'n2')],
    600,
    false,
  ],
  [
    'one on another node that has answered since shows that it is not the server',
    refusedAt([100, 250, 550]),
    [refusedAt([101, 251, 551], 'n2'), { ...reached, node: 'n3', heardAt: 101 }],
    551,
    true,
  ],
])('%s', (_, one, others, now, verdict) => {
  expect(isUnreachable(one, others, now)).toBe(verdict)
})

test('only an answer that nobody is there is a refusal', () => {
  const codes = ['ECONNREFUSED', 'EHOSTUNREACH', 'ECONNRESET', 'ETIMEDOUT', 'ENETUNREACH', undefined]
  expect(codes.filter(isRefusal)).toEqual(['ECONNREFUSED', 'EHOSTUNREACH'])
})

/** A wrapper that answers to whoever has its key. */
async function openWrapper(port = 0, tls?: Awaited<ReturnType<typeof newLaunchKey>>) {
  const own = tls ?? (await newLaunchKey())
  const sockets = new Set<Socket>()
  const { certificate, key } = own
  const options = { key, cert: certificate, ca: certificate, requestCert: true, ALPNProtocols: ['infer-control'] }
  const server = createServer(options, socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => socket.write('{}\n'))
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
  const die = (): void => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  onTestFinished(die)
  return { tls: own, address, die, sockets }
}

test('an engine whose wrapper is gone cannot be reached, until it answers again; if all are gone, nothing is known', async () => {
  const heardOf: string[] = []
  const controls = holdControls({ beatMs: 60_000, closed() {}, changed: (...what) => heardOf.push(what.join(' ')) })
  onTestFinished(() => controls.close())
  const [first, second] = [await openWrapper(), await openWrapper()]
  controls.keep({ launchId: 'one', node: 'n1', ...first })
  controls.keep({ launchId: 'two', node: 'n2', ...second })
  await until(() => first.sockets.size > 0 && second.sockets.size > 0)
  const since = performance.now()
  first.die()
  await until(() => controls.isUnreachable('one'))
  expect(performance.now() - since).toBeLessThan(2_000)
  expect(controls.isUnreachable('two')).toBe(false)
  await openWrapper(first.address.port, first.tls)
  await until(() => !controls.isUnreachable('one'))
  expect(heardOf).toEqual(['one false', 'one true'])
})
