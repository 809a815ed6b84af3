import { expect, test } from 'vitest'
import type { ModelSetEntry } from '../../../../core/models/engine-traits.ts'
import { type RewriteOptions, rewriteRequest } from '../../../../core/tasks/rewriting/rewrite-request.ts'

const model = (features: string[]) =>
  ({ id: 'chat', traits: { features: new Set(features) } }) as unknown as Pick<ModelSetEntry, 'id' | 'traits'>
const options: RewriteOptions = {
  prompt: 'a cat',
  task: { title: 'text to video', category: 'video' },
  count: 2,
  maxLength: 300,
}
type Request = { messages: { content: unknown }[]; response_format?: object; seed?: number; max_tokens: number }
const request = (more: Partial<RewriteOptions> = {}, features: string[] = []) =>
  rewriteRequest({ ...options, ...more }, model(features)) as Request
const instructions = (more: Partial<RewriteOptions> = {}, features: string[] = []) =>
  request(more, features).messages[0]!.content as string

test.each([
  ['the task', {}, 'text to video'],
  ['the kind of result', {}, 'motion, camera'],
  ['the kind of result of images', { task: { title: 'text to image', category: 'image' as const } }, 'composition'],
  ['the number of prompts', {}, 'exactly 2 different prompts'],
  ['the length', {}, 'at most 300 characters'],
  ['the style', { style: 'watercolour' }, 'Style: watercolour.'],
  ['the language', { language: 'French' }, 'Write in this language: French.'],
  ['the language of the prompt', {}, 'Write in the language of the prompt.'],
  ['the instructions of the operator', { instructions: 'Never show people.' }, 'Never show people.'],
])('the instructions name %s', (_, more, words) => expect(instructions(more)).toContain(words))

test('the prompt is a message of its own', () => expect(request().messages[1]!.content).toBe('a cat'))

test('an image is part of the message', () => {
  expect(request({ imageUrl: 'https://example.com/cat.png' }).messages[1]!.content).toEqual([
    { type: 'image_url', image_url: { url: 'https://example.com/cat.png' } },
    { type: 'text', text: 'a cat' },
  ])
})

test('an engine that can be held to a schema answers with JSON of exactly that many prompts', () => {
  expect(request({}, ['json_schema']).response_format).toMatchObject({
    type: 'json_schema',
    json_schema: { schema: { properties: { prompts: { minItems: 2, maxItems: 2 } } } },
  })
})

test('any other engine answers with lines', () => {
  expect(request().response_format).toBe(undefined)
  expect(instructions()).toContain('one on each line')
})

test('a seed fits 32 bits', () => expect(request({ seed: 2 ** 31 + 7 }).seed).toBe(7))
test('the tokens grow with number and length, up to a limit', () => {
  expect([request().max_tokens, request({ maxLength: 10_000 }).max_tokens]).toEqual([2_348, 8_192])
})
