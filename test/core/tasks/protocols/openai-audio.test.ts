import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { AbortSource } from '../../../../core/abort-source.ts'
import { openaiAudio } from '../../../../core/tasks/protocols/openai-audio.ts'
import { type Answer, leaseOf } from './_elsewhere.ts'

/** Answers that the protocol `openai-audio` allows, and their results. */
const json = 'application/json'
const error = (message: string) => JSON.stringify({ error: { message } })
const failed = (code: string, words: string) => ({ code, message: expect.stringContaining(words) as string })

describe('speech', () => {
  const path = openaiAudio.paths.synthesize!
  async function spoken(answer: Answer) {
    const { lease, sent } = await leaseOf(answer)
    const body = '{"input":"x"}'
    const { contentType, audio } = await openaiAudio.synthesize(lease, { path, body, maxBytes: 64 }, new AbortSource())
    return { contentType, bytes: await buffer(audio), sent }
  }
  const bytes = Buffer.from('RIFF....WAVE')

  test.each([
    ['with its type', 'audio/wav', 'audio/wav'],
    ['with another type', 'application/octet-stream', 'application/octet-stream'],
    ['without a type', undefined, ''],
  ])('audio %s', async (_, type, contentType) => {
    const heard = await spoken({ ...(type ? { type } : {}), body: bytes })
    expect([heard.contentType, heard.bytes]).toEqual([contentType, bytes])
    expect(heard.sent).toEqual([{ line: `POST ${path}`, type: json, body: Buffer.from('{"input":"x"}') }])
  })

  test.each<[string, Answer, object]>([
    ['JSON', { type: json, body: '{}' }, failed('worker_error', 'instead of audio')],
    ['a page', { type: 'text/html', body: '<html>' }, failed('worker_error', 'instead of audio')],
    ['nothing', { type: 'audio/wav', body: '' }, failed('worker_error', 'without any audio')],
    ['more than was allowed', { type: 'audio/wav', body: Buffer.alloc(65) }, failed('worker_error', 'more audio than')],
    ['audio that is cut off', { type: 'audio/wav', body: bytes, cut: true }, failed('worker_error', '')],
    ['400', { status: 400, type: json, body: error('no voice x') }, failed('invalid_value', 'no voice x')],
    [
      '500',
      { status: 500, type: json, body: error('broken') },
      failed('worker_error', 'The engine answered 500. Trying'),
    ],
    [
      '503',
      { status: 503, type: json, body: error('busy') },
      failed('no_capacity', 'The engine takes no more requests. Try'),
    ],
  ])('%s', async (_, answer, failure) => {
    await expect(spoken(answer)).rejects.toMatchObject(failure)
  })
})

test.each([
  ['under voices', { voices: ['a'] }, ['a']],
  ['under data', { data: [{ voice_id: 'a', name: 'A' }] }, ['a']],
  ['as a list', [{ id: 'a' }, 'b'], ['a', 'b']],
  ['in no known way', { all: 3 }, []],
])('voices %s', async (_, said, ids) => {
  const { lease, sent } = await leaseOf({ type: json, body: JSON.stringify(said) })
  const voices = await openaiAudio.voices(lease, openaiAudio.paths.synthesize!, new AbortSource())
  expect(voices.map(({ id }) => id)).toEqual(ids)
  expect(sent.map(({ line }) => line)).toEqual(['GET /v1/audio/voices'])
})

describe('transcripts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-openai-audio-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'samples')
  writeFileSync(path, Buffer.alloc(320, 1))

  async function transcribed(answer: Answer) {
    const { lease, sent } = await leaseOf(answer)
    const request = {
      path: openaiAudio.paths.transcribe!,
      fields: [['model', 'm']] as [string, string][],
    }
    const sound = { path, bytes: 320, seconds: 0.01 }
    const whole = await openaiAudio.transcribe(lease, request, sound, 64, new AbortSource())
    return { text: whole.toString(), sent: sent[0]! }
  }

  test('the audio is the file of a form, as WAV with 16,000 samples a second', async () => {
    const { text, sent } = await transcribed({ type: json, body: '{"text":"hi"}' })
    expect([text, sent.line]).toEqual(['{"text":"hi"}', 'POST /v1/audio/transcriptions'])
    const form = await new Response(new Uint8Array(sent.body), { headers: { 'content-type': sent.type! } }).formData()
    const wav = Buffer.from(await (form.get('file') as Blob).arrayBuffer())
    expect([form.get('model'), wav.toString('latin1', 0, 4), wav.readUInt32LE(24), wav.length]).toEqual([
      'm',
      'RIFF',
      16_000,
      44 + 320,
    ])
  })

  test.each<[string, Answer, object]>([
    ['more than was allowed', { type: json, body: ' '.repeat(65) }, failed('worker_error', '')],
    ['an answer that is cut off', { type: json, body: '{"te', cut: true }, failed('worker_error', '')],
    ['400', { status: 400, type: json, body: error('too loud') }, failed('invalid_value', 'too loud')],
    [
      '500',
      { status: 500, type: json, body: error('broken') },
      failed('worker_error', 'The engine answered 500. Trying'),
    ],
    [
      '503',
      { status: 503, type: json, body: error('busy') },
      failed('no_capacity', 'The engine takes no more requests. Try'),
    ],
  ])('%s', async (_, answer, failure) => {
    await expect(transcribed(answer)).rejects.toMatchObject(failure)
  })
})
