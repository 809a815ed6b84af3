import { expect, test } from 'vitest'
import { EventStream } from '../../../../server/http/answer/sse.ts'
import type { Owners } from '../../../../server/http/request/owners.ts'
import { LogFollower } from '../../../../server/surfaces/native/logs.ts'
import { openExchange } from '../../_exchange.ts'

// The blank line ends an event for readers such as Python's httpx-sse, also after a comment or `retry` alone: those
// readers would get an event with empty data, which is no JSON.
test.each<[string, (stream: EventStream) => void, string]>([
  ['nothing yet', () => {}, ''],
  ['retry stands in the first event', s => s.send({ data: '1' }), 'retry: 2000\ndata: 1\n\n'],
  [
    'and in no other',
    s => {
      s.send({ id: 'evt_1', event: 'snapshot', data: '1' })
      s.send({ id: 'evt_2', data: '2' })
    },
    'retry: 2000\nid: evt_1\nevent: snapshot\ndata: 1\n\nid: evt_2\ndata: 2\n\n',
  ],
  [
    'shared bytes',
    s => s.sendShared({ id: 'evt_1', data: '{"a":', end: Buffer.from('1}\n\n') }),
    'retry: 2000\nid: evt_1\ndata: {"a":1}\n\n',
  ],
  [
    'a ping is a line without a blank one',
    s => {
      s.ping()
      s.send({ data: '1' })
      s.ping()
      s.ping()
      s.send({ data: '2' })
    },
    ': ping\nretry: 2000\ndata: 1\n\n: ping\n: ping\ndata: 2\n\n',
  ],
  [
    'the end of the server',
    s => {
      s.send({ id: 'evt_1', data: '1' })
      s.dismiss()
    },
    'retry: 2000\nid: evt_1\ndata: 1\n\n: the server is stopping\n',
  ],
])('the bytes of an event stream: %s', (_, write, expected) => {
  const { exchange, text } = openExchange()
  write(new EventStream(exchange))
  expect(text()).toBe(expected)
})

test('the bytes of a log follower: a ping is a line without a blank one', () => {
  const { exchange, text } = openExchange()
  const follow = () => () => undefined
  const owners = { fleet: { output: { follow } }, journal: { follow } } as unknown as Owners
  const follower = new LogFollower(exchange, () => true, owners)
  follower.ping()
  follower.dismiss()
  expect(text()).toBe(': ping\nevent: end\ndata: {"reason":"the server is stopping"}\n\n')
})
