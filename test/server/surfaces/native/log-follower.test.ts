import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { ClientExchange } from '../../../../server/http/request/exchange.ts'
import type { Owners } from '../../../../server/http/request/owners.ts'
import { openStreams } from '../../../../server/http/streams/streams.ts'
import { LogFollower } from '../../../../server/surfaces/native/logs.ts'

test('no line is written after the end, and a reader that does not read the end is cut', async () => {
  // A response whose reader never reads: all writes stay in it.
  const res = new ServerResponse(new IncomingMessage(new Socket()))
  const errors: Error[] = []
  res.on('error', error => errors.push(error))
  const streams = openStreams({ pingMs: 1, writeDeadlineMs: 60 })
  const follow = () => () => undefined
  const exchange = {
    res,
    disconnected: false,
    head: () => res.writeHead(200),
    streams,
    access: { watch: () => () => undefined },
  } as unknown as ClientExchange
  const owners = { fleet: { output: { follow } }, journal: { follow } } as unknown as Owners
  const follower = new LogFollower(exchange, () => true, owners)
  follower.dismiss()
  follower.ping()
  await follower.over
  expect(errors).toEqual([])
  expect(streams.count).toBe(0)
})
