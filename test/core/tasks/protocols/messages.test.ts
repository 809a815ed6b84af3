import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { EngineFault, MessageReader, messageBounds } from '../../../../core/tasks/protocols/engine-messages.ts'
import type { EngineMessage } from '../../../../core/tasks/protocols/generation-call.ts'

/** The messages in the pieces, and the error. */
function read(pieces: (string | Uint8Array)[], bounds = messageBounds): { heard: EngineMessage[]; fault?: string } {
  const heard: EngineMessage[] = []
  const reader = new MessageReader(message => void heard.push(message), bounds)
  try {
    for (const piece of pieces) reader.feed(typeof piece === 'string' ? Buffer.from(piece) : piece)
    reader.end()
    return { heard }
  } catch (thrown) {
    if (!(thrown instanceof EngineFault)) throw thrown
    return { heard, fault: thrown.message }
  }
}

const completed = { type: 'completed', files: [{ name: 'a.png', kind: 'image' }], seed_used: 7 } as const
const conversation = [
  { type: 'progress', fraction: 0 },
  { type: 'log', level: 'WARN', message: 'größer als gedacht 🐈' },
  { type: 'progress', fraction: 1 },
  completed,
] as const
const text = conversation.map(message => `${JSON.stringify(message)}\n`).join('')

test('a conversation is parsed the same however it is divided', () => {
  const bytes = Buffer.from(text)
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length), { maxLength: 30 }), cuts => {
      const at = [0, ...cuts, bytes.length].sort((a, b) => a - b)
      const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
      expect(read(pieces)).toEqual({ heard: conversation })
    }),
  )
})

test.each([
  ['the last line break is missing', text.slice(0, -1)],
  ['lines end as on Windows', text.replaceAll('\n', '\r\n')],
  ['there are empty lines', `\n\n${text.replaceAll('\n', '\n\n')} \n`],
  ['there are members that nobody knows', text.replace('"fraction":0', '"fraction":0,"eta":5,"__proto__":{"a":1}')],
])('it is ignored that %s', (_, said) => expect(read([said])).toEqual({ heard: conversation }))

test('a log line without a level has the level info', () => {
  expect(read([`{"type":"log","message":"x"}\n${JSON.stringify(completed)}`]).heard[0]).toMatchObject({ level: 'INFO' })
})

const line = (message: object) => `${JSON.stringify(message)}\n`
test.each<[string, string | Uint8Array, string]>([
  ['nothing', '', 'without saying'],
  ['progress alone', line({ type: 'progress', fraction: 0.5 }), 'without saying'],
  ['more than all', line({ type: 'progress', fraction: 1.01 }), 'fraction'],
  ['endless progress', '{"type":"progress","fraction":1e999}\n', 'fraction'],
  ['progress in words', line({ type: 'progress', fraction: 'half' }), 'fraction'],
  ['a list', '[]\n', 'a message that is none'],
  ['null', 'null\n', 'a message that is none'],
  ['a number', '5\n', 'a message that is none'],
  ['no files', line({ ...completed, files: [] }), 'files'],
  ['a file without a name', line({ ...completed, files: [{ name: '', kind: 'image' }] }), 'name'],
  ['a name that is long', line({ ...completed, files: [{ name: 'x'.repeat(129), kind: 'image' }] }), 'name'],
  ['another kind', line({ ...completed, files: [{ name: 'a', kind: 'program' }] }), 'kind'],
  ['a negative seed', line({ ...completed, seed_used: -1 }), 'seed_used'],
  ['half a seed', line({ ...completed, seed_used: 0.5 }), 'seed_used'],
  ['a long log line', line({ type: 'log', message: 'x'.repeat(4_097) }), 'message'],
  ['failed twice', line({ type: 'failed', error: { message: 'a' } }).repeat(2), "went on after 'failed'"],
  ['a deep value', `${'['.repeat(100_000)}\n`, 'not JSON'],
  ['half a character', Uint8Array.of(0xe2, 0x82), 'not UTF-8'],
])('%s is an error', (_, said, words) => {
  const { fault } = read([said])
  expect(fault).toContain(words)
  expect(fault!.length).toBeLessThan(400)
})

test('the size of lines and their sum are limited to the byte', () => {
  const bounds = { line: 100, total: 250 }
  const of = (length: number) => `${JSON.stringify({ type: 'log', message: '' }).padEnd(length)}\n`
  expect(read([of(100)], bounds).fault).toContain('without saying')
  expect(read([of(101)], bounds).fault).toBe('sent a line of more than 100 bytes')
  expect(read(['x'.repeat(60), 'x'.repeat(60)], bounds).fault).toBe('sent a line of more than 100 bytes')
  expect(read([of(99), of(99), of(48)], bounds)).toMatchObject({
    fault: expect.stringContaining('without saying') as string,
  })
  expect(read([of(99), of(99), of(50)], bounds).fault).toBe('sent more than 250 bytes of messages')
})

test('any input is a message or an error', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.json().map(json => Buffer.from(`${json}\n`)),
    fc.constantFrom(...text.split('\n')).map(part => Buffer.from(`${part}\n`)),
    fc.string({ unit: 'binary' }).map(part => Buffer.from(part)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
      const { heard, fault } = read(pieces)
      const lasts = heard.filter(({ type }) => type === 'completed' || type === 'failed')
      expect(lasts.length).toBeLessThanOrEqual(1)
      if (fault === undefined) expect(lasts).toEqual([heard.at(-1)])
    }),
    { numRuns: 2_000 },
  )
})
