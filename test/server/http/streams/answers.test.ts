import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openStreams } from '../../../../server/http/streams/streams.ts'

function response(ended: string[], destroyed = false): ServerResponse {
  const end = (body: string, encoding: string) => void ended.push(`${body} ${encoding}`)
  return { destroyed, end } as unknown as ServerResponse
}

test('answers of one turn are written after it, in their order, but for clients that have disconnected', async () => {
  const streams = openStreams({ pingMs: 15_000, writeDeadlineMs: 30_000 })
  const ended: string[] = []
  streams.send(response(ended), 'first', 'latin1')
  streams.send(response(ended, true), 'gone', 'latin1')
  streams.send(response(ended), 'second', 'utf8')
  expect(ended).toEqual([])
  await nextTurn()
  expect(ended).toEqual(['first latin1', 'second utf8'])
  streams.send(response(ended), 'third', 'latin1')
  await nextTurn()
  expect(ended.at(-1)).toBe('third latin1')
})
