import { expect, test } from 'vitest'
import { completeUntil, factsOf } from '../../../server/std/frames.ts'

test.each([
  ['', 0],
  ['data: {', 0],
  ['data: {}\n', 0],
  ['data: {}\n\n', 10],
  ['data: {}\n\ndata: ', 10],
  ['data: {}\r\n\r\n', 12],
  ['data: {}\n\n: ping\n\nx', 18],
])('%j is complete until %i', (text, end) => expect(completeUntil(text)).toBe(end))

const content = '"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]'
test.each<[string, object]>([
  ['data: [DONE]', { kind: 'done' }],
  ['data:[DONE]', { kind: 'done' }],
  [': ping', { kind: 'comment' }],
  [`data: {${content}}`, { kind: 'content', finished: false, data: undefined }],
  [`data: {${content},"usage":null}`, { kind: 'content', data: undefined }],
  ['data: {"choices":[{"delta":{},"finish_reason":"stop"}]}', { kind: 'content', finished: true }],
  ['data: {"choices": [{"delta": {}, "finish_reason": "length"}]}', { kind: 'content', finished: true }],
  [
    'data: {"choices":[],"usage":{"prompt_tokens":1}}',
    { kind: 'usage', data: '{"choices":[],"usage":{"prompt_tokens":1}}' },
  ],
  ['data: {"choices": [], "usage": {"prompt_tokens": 1}}', { kind: 'usage' }],
  [
    `data: {${content},"usage":{"prompt_tokens":1}}`,
    { kind: 'content', data: `{${content},"usage":{"prompt_tokens":1}}` },
  ],
  ['data: {"error":{"message":"boom"}}', { kind: 'error', data: '{"error":{"message":"boom"}}' }],
  ['event: error\ndata: {"message":"boom"}', { kind: 'error', data: '{"message":"boom"}' }],
  ['data: {"choices":[{"delta":{"content":"an \\"error\\" in words"},"finish_reason":null}]}', { kind: 'content' }],
  ['data: {"id":"x"}', { kind: 'comment' }],
])('%s', (frame, facts) => expect(factsOf(frame)).toMatchObject(facts))
