import { expect, test } from 'vitest'
import { isInBase64 } from '../../../../core/tasks/image/image-request.ts'

test.each([
  ['acme/picture', undefined, false],
  ['acme/picture', null, false],
  ['acme/picture', 'url', false],
  ['acme/picture', 'b64_json', true],
  ['acme/picture', 'base64', true],
  ['acme/gpt-image-1', undefined, false],
  ['gpt-image-1', undefined, true],
  ['gpt-image-1', null, true],
  ['gpt-image-1', 'url', false],
  ['openai/gpt-image-1', undefined, true],
  ['chatgpt-image-latest', undefined, true],
])('images of %s with response_format %s in base64: %s', (model, response_format, inBase64) => {
  expect(isInBase64({ model, response_format })).toBe(inBase64)
})
