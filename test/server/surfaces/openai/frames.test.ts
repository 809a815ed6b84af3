import { expect, test } from 'vitest'
import { completeUntil } from '../../../../server/work/relay.ts'

test.each([
  ['', 0],
  ['data: {', 0],
  ['data: {}\n', 0],
  ['data: {}\n\n', 10],
  ['data: {}\n\ndata: ', 10],
  ['data: {}\r\n\r\n', 12],
  ['data: {}\n\n: ping\n\nx', 18],
])('%j is complete until %i', (text, end) => expect(completeUntil(text)).toBe(end))
