import { expect, test } from 'vitest'
import { eventDataIn, transcriptionPart } from '../../../../core/tasks/transcription/transcription-stream.ts'

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}
const dataOf = async (text: string, size = 1): Promise<string[]> => {
  const found: string[] = []
  for await (const data of eventDataIn(inPieces(text, size))) found.push(data)
  return found
}

test.each<[text: string, data: string[]]>([
  ['', []],
  [': ping\n\n', []],
  ['data: a\n\ndata:b\n\n', ['a', 'b']],
  ['event: x\r\ndata: grüße 猫\r\n\r\n', ['grüße 猫']],
  ['data: a\ndata: b\n\n', ['a\nb']],
  ['data: a\n\ndata: b', ['a', 'b']],
])('%j has the data %j, however it is cut', async (text, data) => {
  for (const size of [1, 3, 1000]) expect(await dataOf(text, size)).toEqual(data)
})

test('an event without an end is refused', async () => {
  await expect(dataOf(`data: ${'x'.repeat(2 << 20)}`, 64 << 10)).rejects.toThrow('an event of more than 1024 KiB')
})

const chunk = { object: 'transcription.chunk' }
test.each<[data: unknown, part: object | undefined]>([
  ['[DONE]', undefined],
  [
    { type: 'transcript.text.delta', delta: 'a' },
    { kind: 'delta', text: 'a' },
  ],
  [{ type: 'transcript.text.delta', delta: 7 }, undefined],
  [{ type: 'other', text: 'a' }, undefined],
  [
    { ...chunk, choices: [{ delta: { content: 'a' } }] },
    { kind: 'delta', text: 'a' },
  ],
  [{ ...chunk, choices: [{ delta: {} }] }, undefined],
  [{ ...chunk, choices: [null] }, undefined],
  [
    { ...chunk, choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
    { kind: 'done', usage: { inputTokens: 3, outputTokens: 4 } },
  ],
  [{ text: 'a' }, { kind: 'delta', text: 'a' }],
  [
    { type: 'transcript.text.segment', start: -1, end: 99, text: 'a', speaker: 'B' },
    { kind: 'segment', segment: { start: 0, end: 2, text: 'a', speaker: 'B' } },
  ],
  [5, undefined],
])('%j is %j', (data, part) =>
  expect(transcriptionPart(typeof data === 'string' ? data : JSON.stringify(data), 2)).toEqual(part),
)

test('an error and anything that is not JSON fail', () => {
  expect(() => transcriptionPart('{"error":{"message":"x"}}', 2)).toThrow('gave up on its answer')
  expect(() => transcriptionPart('{', 2)).toThrow('not JSON')
})
