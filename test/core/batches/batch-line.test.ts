import { expect, test } from 'vitest'
import { batchWindow, readLine, shortEndpoint, slugIn } from '../../../core/batches/batch-line.ts'

const target = { endpoint: '/v1/embeddings', namesModel: true }
const whole = { custom_id: 'a', method: 'POST', url: '/v1/embeddings', body: { model: 'm', input: 'x' } }
const without = (name: string) => ({ ...whole, [name]: undefined })

test.each<[rule: string, line: unknown, code: string, param: string | null]>([
  ['text that is not JSON', '{"custom_id"', 'invalid_json_line', null],
  ['a list', [], 'invalid_json_line', null],
  ['null', null, 'invalid_json_line', null],
  ['no custom_id', without('custom_id'), 'missing_required_parameter', 'custom_id'],
  ['a number as custom_id', { ...whole, custom_id: 7 }, 'invalid_value', 'custom_id'],
  ['an empty custom_id', { ...whole, custom_id: '' }, 'invalid_value', 'custom_id'],
  ['a custom_id of 513 characters', { ...whole, custom_id: 'x'.repeat(513) }, 'invalid_value', 'custom_id'],
  ['no method', without('method'), 'missing_required_parameter', 'method'],
  ['PUT', { ...whole, method: 'PUT' }, 'invalid_method', 'method'],
  ['GET', { ...whole, method: 'GET' }, 'invalid_method', 'method'],
  ['no url', without('url'), 'missing_required_parameter', 'url'],
  ['a number as url', { ...whole, url: 1 }, 'invalid_url', 'url'],
  ['another url', { ...whole, url: '/v1/chat/completions' }, 'mismatched_url', 'url'],
  ['no body', without('body'), 'missing_required_parameter', 'body'],
  ['a text as body', { ...whole, body: 'x' }, 'invalid_value', 'body'],
  ['no model', { ...whole, body: { input: 'x' } }, 'missing_required_parameter', 'body.model'],
  ['a number as model', { ...whole, body: { model: 1 } }, 'invalid_value', 'body.model'],
  ['a stream', { ...whole, body: { model: 'm', stream: true } }, 'unsupported_parameter', 'body.stream'],
])('%s is a fault', (_, line, code, param) => {
  const read = readLine(typeof line === 'string' ? line : JSON.stringify(line), target)
  expect(read).toMatchObject({ fault: { code, param } })
  expect('fault' in read && read.fault.message).toMatch(/^['A-Z].*\.$/)
})

test('a whole line has its id and body; stream: false and other members are allowed', () => {
  const body = { ...whole.body, stream: false }
  expect(readLine(JSON.stringify({ ...whole, body, more: 1 }), target)).toEqual({ customId: 'a', body })
  expect(readLine(JSON.stringify({ ...whole, url: '/std/v1/embeddings' }), target)).toMatchObject({ customId: 'a' })
})

test('the body of a slug names no model', () => {
  const line = { ...whole, url: '/slug/demo/text-to-image', body: { prompt: 'x' } }
  const slug = { endpoint: 'slug/demo/text-to-image', namesModel: false }
  expect(readLine(JSON.stringify(line), slug)).toEqual({ customId: 'a', body: line.body })
})

test.each([
  ['/v1/embeddings', '/v1/embeddings', undefined],
  ['/std/v1/embeddings', '/v1/embeddings', undefined],
  ['/std/openai/v1/embeddings', '/v1/embeddings', undefined],
  ['slug/a/b', 'slug/a/b', 'a/b'],
  ['/slug/a/b', 'slug/a/b', 'a/b'],
  ['/std/slug', '/std/slug', undefined],
])('%s is short %s', (path, short, slug) => {
  expect(shortEndpoint(path)).toBe(short)
  expect(slugIn(short)).toBe(slug)
})

test.each([
  ['one batch without a limit', 1, 0, 128],
  ['four batches share the part of their organization', 4, 0, 32],
  ['half of a limit is left for other jobs', 1, 10, 5],
  ['each batch has at least one', 500, 4, 1],
])('%s', (_, batches, pendingJobs, window) => expect(batchWindow(batches, pendingJobs)).toBe(window))
