import { describe, expect, test } from 'vitest'
import { openSseParser, type SseEvent } from '../../../cli/client/http.ts'

const message = (data: string): SseEvent => ({ event: 'message', data })

const streams: [rule: string, text: string, events: SseEvent[]][] = [
  ['an event ends at a blank line', 'data: a\n\ndata: b\n\n', [message('a'), message('b')]],
  ['lines may end with CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', [message('a'), message('b')]],
  ['line ends may be mixed', 'data: a\r\n\ndata: b\n\r\n', [message('a'), message('b')]],
  ['comments are ignored', ': ping\n\ndata: a\n: waiting position=3\n\n', [message('a')]],
  ['one space after the colon is not data', 'data:a\n\ndata:  b\n\n', [message('a'), message(' b')]],
  ['data lines of one event are joined', 'data: a\ndata: b\n\n', [message('a\nb')]],
  ['an empty data line counts as a line', 'data\ndata\n\n', [message('\n')]],
  ['an event may have a name', 'event: done\ndata: a\n\ndata: b\n\n', [{ event: 'done', data: 'a' }, message('b')]],
  ['a name without data is not an event', 'event: done\n\ndata: a\n\n', [message('a')]],
  ['id, retry and unknown fields are ignored', 'id: 1\nretry: 5\nfoo: bar\ndata: a\n\n', [message('a')]],
  ['a byte order mark at the start is dropped', '\uFEFFdata: a\n\n', [message('a')]],
  ['characters of several bytes are not split', 'data: grüße 🚀 日本\n\n', [message('grüße 🚀 日本')]],
  [
    'an error frame is data like any other',
    'data: {"error":{"message":"no"}}\n\n',
    [message('{"error":{"message":"no"}}')],
  ],
  ['data after the last blank line is dropped', 'data: a\n\ndata: b', [message('a')]],
]

describe.each(streams)('%s', (_, text, events) => {
  const bytes = Buffer.from(text)
  test.each([bytes.length, 1, 2, 3, 5])('in pieces of %i bytes', size => {
    const parser = openSseParser()
    const found: SseEvent[] = []
    for (let at = 0; at < bytes.length; at += size) found.push(...parser.feed(bytes.subarray(at, at + size)))
    expect(found).toEqual(events)
  })
  test('cut in two at any position', () => {
    for (let cut = 0; cut <= bytes.length; cut++) {
      const parser = openSseParser()
      expect([...parser.feed(bytes.subarray(0, cut)), ...parser.feed(bytes.subarray(cut))]).toEqual(events)
    }
  })
})

test('an event over the size limit fails', () => {
  const parser = openSseParser(1000)
  const endless = () => {
    for (let i = 0; i < 20; i++) parser.feed(Buffer.from('data: '.padEnd(100, 'x')))
  }
  expect(endless).toThrow('more than 1000 characters')
})

test('many data lines count toward the limit too', () => {
  const parser = openSseParser(1000)
  expect(() => parser.feed(Buffer.from('data: x\n'.repeat(600)))).toThrow('more than 1000 characters')
})

test('a stream of small events is not limited', () => {
  const parser = openSseParser(1000)
  for (let i = 0; i < 100; i++) expect(parser.feed(Buffer.from(`data: ${'x'.repeat(500)}\n\n`))).toHaveLength(1)
})
