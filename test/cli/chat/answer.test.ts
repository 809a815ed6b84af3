import { expect, test } from 'vitest'
import { type AnswerPart, readAnswer } from '../../../cli/chat/ask.ts'

const delta = (content: object, finish: string | null = null) =>
  JSON.stringify({ choices: [{ index: 0, delta: content, finish_reason: finish }] })

async function pieces(...data: string[]): Promise<AnswerPart[]> {
  async function* events() {
    for (const one of data) yield { event: 'message', data: one }
  }
  const found: AnswerPart[] = []
  for await (const piece of readAnswer('http://server', events())) found.push(piece)
  return found
}

test('words arrive one by one, then the end with its finish reason and token counts', async () => {
  expect(
    await pieces(
      delta({ role: 'assistant', content: '' }),
      delta({ content: 'Hel' }),
      delta({ content: 'lo' }),
      delta({}, 'length'),
      '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}',
      '[DONE]',
    ),
  ).toEqual([
    { kind: 'text', text: 'Hel' },
    { kind: 'text', text: 'lo' },
    { kind: 'end', finishReason: 'length', tokens: { input: 3, output: 2 } },
  ])
})

test('reasoning is separated from the answer', async () => {
  expect(
    await pieces(delta({ content: null, reasoning_content: 'hm' }), delta({ content: 'Yes' }), '[DONE]'),
  ).toMatchObject([{ kind: 'reasoning', text: 'hm' }, { kind: 'text', text: 'Yes' }, { kind: 'end' }])
})

test('nothing is read after the end mark', async () => {
  expect(await pieces('[DONE]', 'not json')).toHaveLength(1)
})

test('chunks without a choice, a delta or usage yield nothing', async () => {
  expect(await pieces('{}', '{"choices":[]}', '{"choices":[{}],"usage":null}', '[DONE]')).toEqual([
    { kind: 'end', finishReason: 'stop', tokens: undefined },
  ])
})

test.each([
  [
    'an error frame is thrown as its failure',
    ['{"error":{"code":"worker_error","message":"Engine exited."}}'],
    'Engine exited.',
  ],
  ['a stream that stops early is an error', [delta({ content: 'Hel' })], 'ended too early'],
  ['an empty stream is an error', [], 'ended too early'],
  ['data that is not JSON is an error', ['{"choices'], 'not a JSON object'],
  ['data that is not an object is an error', ['null'], 'not a JSON object'],
])('%s', async (_, data, message) => {
  await expect(pieces(...data)).rejects.toThrow(message)
})
