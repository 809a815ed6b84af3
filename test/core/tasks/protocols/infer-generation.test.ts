import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Failure } from '../../../../core/failure.ts'
import { MessageReader } from '../../../../core/tasks/protocols/engine-messages.ts'
import type { GenerationCall, GenerationInputs } from '../../../../core/tasks/protocols/generation-call.ts'
import { ReceivedFiles } from '../../../../core/tasks/protocols/generation-files.ts'
import { inferGeneration } from '../../../../core/tasks/protocols/infer-generation.ts'
import { type Answer, leaseOf } from './_elsewhere.ts'

/** Answers that the protocol `infer-generation` allows, and their results. */
const inputs = { prompt: 'a cat', seed: 7 } as GenerationInputs
const call: GenerationCall = { task: 'slug/text-to-image', model: 'm', inputs, folder: '/nowhere' }
const route = { protocol: 'infer-generation', path: '/v1/generate' } as const
const lines = (...messages: object[]) => messages.map(message => `${JSON.stringify(message)}\n`).join('')
const completed = { type: 'completed', files: [{ name: 'a.png', kind: 'image' }], seed_used: 8 }
const ndjson = 'application/x-ndjson'

async function generated(answer: Answer, { folder, ...of }: { folder?: string; inputs?: GenerationInputs } = {}) {
  const { lease, sent } = await leaseOf(answer)
  if (folder !== undefined) Object.defineProperty(lease, 'sharesFolders', { value: false })
  const heard: unknown[] = []
  const report = { progress: (of: number) => heard.push(of), log: (...said: string[]) => heard.push(said) }
  const end = await inferGeneration
    .generate(lease, route, { ...call, ...of, ...(folder && { folder }) }, new AbortController().signal, report, () =>
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

/** What an engine that shares no folder gets and sends. */
describe('files', () => {
  const folder = () => {
    const made = mkdtempSync(join(tmpdir(), 'infer-files-'))
    onTestFinished(() => rmSync(made, { recursive: true, force: true }))
    return made
  }
  const made = (...sizes: (number | undefined)[]) => ({
    ...completed,
    files: sizes.map((bytes, at) => ({ name: `${at}.png`, kind: 'image', bytes })),
  })

  test('inputs follow the call, and results the answer', async () => {
    const here = folder()
    const [image, mask] = [join(here, 'a.png'), join(here, 'b')]
    writeFileSync(image, 'an image')
    writeFileSync(mask, 'white\n')
    // More than may wait for the disk.
    const large = Buffer.alloc(5 << 20, 'two')
    const messages = lines({ type: 'progress', fraction: 1 }, made(6, large.length))
    const body = Buffer.concat([Buffer.from(`${messages}first\n`), large])
    const { end, sent } = await generated(
      { body },
      { folder: here, inputs: { ...inputs, image, mask, video: null, audio: null, images: [image, mask] } },
    )
    expect(end).toEqual({
      ...completed,
      files: [
        { name: 'received-0', kind: 'image' },
        { name: 'received-1', kind: 'image' },
      ],
    })
    expect(readFileSync(join(here, 'received-0'), 'utf8')).toBe('first\n')
    expect(readFileSync(join(here, 'received-1')).equals(large)).toBe(true)
    expect(sent.map(({ type }) => type)).toEqual(['application/vnd.infer.files'])
    const [head, ...rest] = sent[0]!.body.toString().split('\n')
    expect(JSON.parse(head!)).toEqual({
      task: call.task,
      model: 'm',
      inputs: {
        ...inputs,
        image: 'input-0.png',
        mask: 'input-1',
        video: null,
        audio: null,
        images: ['input-0.png', 'input-1'],
      },
      files: [
        { name: 'input-0.png', bytes: 8 },
        { name: 'input-1', bytes: 6 },
      ],
    })
    expect(rest.join('\n')).toBe('an imagewhite\n')
  })

  const none = { ...inputs, image: null, mask: null, video: null, audio: null }
  test.each<[what: string, answer: Answer, words: string]>([
    ['a file without a size', { body: lines(made(undefined)) }, "named the file '0.png' without its size"],
    ['too few bytes', { body: `${lines(made(4, 4))}12345` }, 'ended its answer 3 bytes before the end of its files'],
    ['too many bytes', { body: `${lines(made(4))}12345` }, 'went on after the last byte of its files'],
    ['files that are too large', { body: lines(made(2 ** 32, 1)) }, 'made files of more than 4294967296 bytes'],
    ['a broken connection', { body: `${lines(made(4))}12`, cut: true }, ''],
    ['a failure', { body: lines({ type: 'failed', error: { message: 'out of memory' } }) }, 'failed: out of memory'],
    [
      'an engine that reads JSON',
      { status: 400, type: json, body: error('Extra data', { code: 'invalid_json' }) },
      'does not take files with a request',
    ],
    [
      'an engine that needs a folder',
      { status: 400, type: json, body: error("'folder' must be a path.") },
      'Update it there',
    ],
  ])('%s', async (_, answer, words) => {
    const { end } = await generated(answer, { folder: folder(), inputs: none })
    expect(end).toMatchObject({ code: 'worker_error', message: expect.stringContaining(words) as string })
  })

  test('pieces of any size give the same files', async () => {
    const contents = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(contents, fc.array(fc.nat(30), { maxLength: 20 }), async (files, cuts) => {
        const here = folder()
        let received: ReceivedFiles | undefined
        const reader = new MessageReader(message =>
          message.type === 'completed' ? (received = new ReceivedFiles(here, message.files)) : undefined,
        )
        const answer = Buffer.concat([Buffer.from(lines(made(...files.map(({ length }) => length)))), ...files])
        let at = 0
        for (const cut of [...cuts, answer.length]) reader.feed(answer.subarray(at, (at += cut)))
        reader.end()
        await received!.end()
        expect(received!.files.map(({ name }) => [...readFileSync(join(here, name))])).toEqual(
          files.map(one => [...one]),
        )
        rmSync(here, { recursive: true })
      }),
      { numRuns: 50 },
    )
  })
})
