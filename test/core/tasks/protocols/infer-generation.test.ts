import { expect, test } from 'vitest'
import type { Failure } from '../../../../core/failure.ts'
import type { GenerationCall, GenerationInputs } from '../../../../core/tasks/protocols/generation-call.ts'
import { inferGeneration } from '../../../../core/tasks/protocols/infer-generation.ts'
import { type Answer, leaseOf } from './_elsewhere.ts'

/** Answers that the protocol `infer-generation` allows, and their results. */
const inputs = { prompt: 'a cat', seed: 7 } as GenerationInputs
const call: GenerationCall = { task: 'slug/text-to-image', model: 'm', inputs, folder: '/nowhere' }
const route = { protocol: 'infer-generation', path: '/v1/generate' } as const
const lines = (...messages: object[]) => messages.map(message => `${JSON.stringify(message)}\n`).join('')
const completed = { type: 'completed', files: [{ name: 'a.png', kind: 'image' }], seed_used: 8 }
const ndjson = 'application/x-ndjson'

async function generated(answer: Answer) {
  const { lease, sent } = await leaseOf(answer)
  const heard: unknown[] = []
  const report = { progress: (of: number) => heard.push(of), log: (...said: string[]) => heard.push(said) }
  const end = await inferGeneration
    .generate(lease, route, call, new AbortController().signal, report, () =>
      Promise.reject(new Error('Nothing is downloaded here')),
    )
    .catch((thrown: Failure) => thrown)
  return { end, heard, sent }
}

test('the call is JSON, progress and log lines are reported, and the files are the answer', async () => {
  const body = lines({ type: 'progress', fraction: 0.5 }, { type: 'log', level: 'WARN', message: 'slow' }, completed)
  const { end, heard, sent } = await generated({ type: ndjson, body })
  expect(end).toEqual(completed)
  expect(heard).toEqual([0.5, ['WARN', 'slow']])
  expect(sent.map(({ line, type }) => [line, type])).toEqual([['POST /v1/generate', 'application/json']])
  expect(JSON.parse(sent[0]!.body.toString())).toEqual(call)
})

test('the content type is ignored', async () => {
  expect((await generated({ body: lines(completed) })).end).toEqual(completed)
})

const error = (message: string, more: object = {}) => JSON.stringify({ error: { message, ...more } })
const json = 'application/json'
test.each<[what: string, answer: Answer, code: string, words: string]>([
  [
    'the request is at fault',
    { type: ndjson, body: lines({ type: 'failed', error: { message: 'too dark', invalid: true } }) },
    'invalid_value',
    'refused the request: too dark',
  ],
  [
    'the engine has failed',
    { type: ndjson, body: lines({ type: 'failed', error: { message: 'out of memory' } }) },
    'worker_error',
    'failed: out of memory',
  ],
  ['no word of an end', { type: ndjson, body: lines({ type: 'progress', fraction: 1 }) }, 'worker_error', 'without'],
  ['nothing', { type: ndjson, body: '' }, 'worker_error', 'without'],
  ['HTML', { type: 'text/html', body: '<html>\n' }, 'worker_error', 'not JSON'],
  ['more after the end', { type: ndjson, body: lines(completed, completed) }, 'worker_error', 'went on'],
  [
    'an end that is cut off',
    { type: ndjson, body: lines({ type: 'progress', fraction: 0 }), cut: true },
    'worker_error',
    '',
  ],
  ['400', { status: 400, type: json, body: error('no such size') }, 'invalid_value', 'no such size'],
  [
    '400 with a code',
    { status: 400, type: json, body: error('no masks', { code: 'unsupported_parameter' }) },
    'unsupported_parameter',
    'no masks',
  ],
  ['500', { status: 500, type: json, body: error('broken') }, 'worker_error', 'The engine answered 500. Trying'],
  ['503', { status: 503, type: json, body: error('busy') }, 'no_capacity', 'The engine takes no more requests. Try'],
])('%s', async (_, answer, code, words) => {
  const { end } = await generated(answer)
  expect(end).toMatchObject({ code, message: expect.stringContaining(words) as string })
})
