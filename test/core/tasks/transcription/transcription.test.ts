import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { EngineTraits, ModelSet } from '../../../../core/models/engine-traits.ts'
import type { Feature } from '../../../../core/models/model.ts'
import type { TranscriptionTask } from '../../../../core/schemas/task.ts'
import { formBody } from '../../../../core/tasks/protocols/form-body.ts'
import { audioFile } from '../../../../core/tasks/protocols/openai-audio.ts'
import { languageCode, languageName } from '../../../../core/tasks/transcription/languages.ts'
import {
  prepareTranscription,
  type TranscriptionAnswerFormat,
} from '../../../../core/tasks/transcription/transcription.ts'
import type { Transcription, TranscriptionSegment } from '../../../../core/tasks/transcription/transcription-request.ts'
import { shapeTranscription, transcriptionOf } from '../../../../core/tasks/transcription/transcription-shape.ts'
import { writeTranscription } from '../../../../core/tasks/transcription/transcription-text.ts'

test.each([
  ['en', 'en', 'english'],
  ['EN', 'en', 'english'],
  ['en-GB', 'en', 'english'],
  ['zh_TW', 'zh', 'chinese'],
  ['German', 'de', 'german'],
  ['haitian creole', 'ht', 'haitian creole'],
  ['nb', 'no', 'norwegian'],
  ['yue', 'yue', 'cantonese'],
  ['xx', undefined, undefined],
  ['', undefined, undefined],
  ['constructor', undefined, undefined],
])('the language %j', (text, code, name) => {
  expect([languageCode(text), languageName(text)]).toEqual([code, name])
})

const both = {
  transcribe: { protocol: 'openai-audio', path: '/t' },
  translate: { protocol: 'openai-audio', path: '/e' },
} as const
const catalog = (features: Feature[], more: Partial<EngineTraits> = {}, extraParams: string[] = []): ModelSet =>
  new Map([
    [
      'm',
      {
        id: 'm',
        engine: 'custom',
        tasks: ['std/audio-transcription', 'std/audio-translation'],
        extraParams,
        traits: { routes: both, features: new Set(features), upstreamId: 'up', ...more } as EngineTraits,
      },
    ],
  ])
const all: Feature[] = ['segments', 'words', 'speakers', 'logprobs']
const prepared = (raw: object, given = catalog(all), task: TranscriptionTask = 'std/audio-transcription') =>
  prepareTranscription(task, { model: 'm', url: 'https://example.com/a.mp3', ...raw }, given)

test.each<[string, object, Feature[], [string, string][]]>([
  ['nothing asked', {}, all, [['response_format', 'json']]],
  ['plain text', { response_format: 'text' }, all, [['response_format', 'json']]],
  ['subtitles', { response_format: 'srt' }, all, [['response_format', 'verbose_json']]],
  ['an engine without times', {}, [], [['response_format', 'json']]],
  [
    'nulls',
    { language: null, prompt: null, temperature: null, response_format: null, stream: null },
    [],
    [['response_format', 'json']],
  ],
  ['a language to detect', { language: ' Auto' }, all, [['response_format', 'json']]],
  ['an empty language', { language: '' }, all, [['response_format', 'json']]],
  [
    'a cold one in German',
    { language: 'de-AT', temperature: 0 },
    all,
    [
      ['response_format', 'json'],
      ['language', 'de'],
      ['temperature', '0'],
    ],
  ],
  [
    'words',
    { response_format: 'verbose_json', timestamp_granularities: ['word'] },
    all,
    [
      ['response_format', 'verbose_json'],
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
    ],
  ],
  [
    'certainty',
    { include: ['logprobs'] },
    all,
    [
      ['response_format', 'json'],
      ['include[]', 'logprobs'],
    ],
  ],
  ['speakers', { response_format: 'diarized_json' }, all, [['response_format', 'diarized_json']]],
  [
    'how it is cut',
    { chunking_strategy: { type: 'server_vad', threshold: 0.5 } },
    all,
    [
      ['response_format', 'json'],
      ['chunking_strategy', '{"type":"server_vad","threshold":0.5}'],
    ],
  ],
])('an engine receives: %s', (_name, raw, features, fields) => {
  expect(prepared(raw, catalog(features)).fields).toEqual([['model', 'up'], ...fields])
})

test('fields that the configuration names are passed on, and no others', () => {
  const { fields } = prepared({ beam_size: 5, vad: true, api_base: 'x' }, catalog(all, {}, ['beam_size', 'vad']))
  expect(fields.slice(2)).toEqual([
    ['beam_size', '5'],
    ['vad', 'true'],
  ])
})

test.each<[object, Partial<EngineTraits>, string[], boolean, string[]]>([
  [{ vad_filter: true }, { vadFilter: true }, [], true, []],
  [{ vad_filter: true }, {}, ['vad_filter'], true, []],
  [{ vad_filter: true }, {}, [], false, ['vad_filter']],
  [{ vad_filter: false }, {}, [], false, []],
])('%j for an engine with %j and %j', (raw, traits, extraParams, sent, ignored) => {
  const found = prepared(raw, catalog(all, traits, extraParams))
  expect([found.fields.some(([name]) => name === 'vad_filter'), found.ignored]).toEqual([sent, ignored])
})

test('a translation has a route or a field, and no language', () => {
  const route = prepared({ language: 'de' }, catalog(all), 'std/audio-translation')
  expect([route.route.path, route.answerFormat.language, Object.fromEntries(route.fields)]).toEqual([
    '/e',
    null,
    { model: 'up', response_format: 'json' },
  ])
  const field = prepared({}, catalog(all, { translateField: true }), 'std/audio-translation')
  expect(Object.fromEntries(field.fields)).toMatchObject({ translate: 'true' })
})

test.each([
  ['json', true],
  ['text', true],
  ['srt', false],
  ['vtt', false],
  ['verbose_json', false],
  ['diarized_json', true],
])('%s can be streamed: %j', (response_format, stream) => {
  expect(prepared({ response_format, stream: true }).stream).toBe(stream)
})

const answerFormat: TranscriptionAnswerFormat = {
  task: 'std/audio-transcription',
  modelId: 'm',
  format: 'verbose_json',
  words: false,
  logprobs: false,
  language: null,
  seconds: 10,
  requestId: null,
}
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

test.each<[string, object, Partial<TranscriptionAnswerFormat>, object]>([
  [
    'a text alone is one segment',
    { text: ' Hi. ' },
    {},
    { text: 'Hi.', segments: [{ start: 0, end: 10, text: 'Hi.' }] },
  ],
  [
    'segments alone are the text',
    {
      segments: [
        { text: ' A', start: 0, end: 1 },
        { text: ' b.', start: 1, end: 2 },
      ],
    },
    {},
    { text: 'A b.' },
  ],
  ['lines are no part of a text', { text: '\n a \r\n\n b  c\n \n' }, {}, { text: 'a b  c' }],
  ['silence', { text: '', segments: [] }, {}, { text: '', segments: [], duration: 10 }],
  ['a code for the language', { text: 'x', language: 'fr' }, {}, { language: 'french' }],
  ['no language, though it was asked for', { text: 'x' }, { language: 'fr' }, { language: 'french' }],
  [
    'its own duration is not asked',
    { text: 'x', duration: '99' },
    { seconds: 1.23456 },
    { duration: 1.235, usage: { type: 'duration', seconds: 2 } },
  ],
  [
    'words that others have',
    { text: 'x', words: [{ word: ' x ', start: 0, end: '0.5' }] },
    { words: true },
    { words: [{ word: 'x', start: 0, end: 0.5 }] },
  ],
  [
    'Japanese pieces stay apart, punctuation does not',
    {
      text: 'x',
      segments: [
        {
          text: '日本。ok',
          words: [
            { word: '日', start: 0, end: 1 },
            { word: '本', start: 1, end: 2 },
            { word: '。', start: 2, end: 2 },
          ],
        },
      ],
    },
    { words: true },
    {
      words: [
        { word: '日', start: 0, end: 1 },
        { word: '本。', start: 1, end: 2 },
      ],
    },
  ],
])('shaped: %s', (_name, answer, more, expected) => {
  expect(transcriptionOf(answer as Record<string, unknown>, { ...answerFormat, ...more })).toMatchObject(expected)
})

test.each([
  ['nothing', {}, /without a text/],
  ['an error', { error: { message: 'no' } }, /gave up|no/],
  ['a number for a text', { text: 5 }, /without a text/],
])('%s is the engine’s fault', (_name, answer, message) => {
  expect(() => shapeTranscription(bytes(answer), answerFormat)).toThrow(message)
})

test('the compression ratio is computed where the engine omits it and the answer shows it', () => {
  const repeated = 'la la la la la la la la la la la la la la la la la la la la'
  const ratio = (text: string, more: Partial<TranscriptionAnswerFormat> = {}) =>
    transcriptionOf({ text }, { ...answerFormat, ...more }).segments[0]!.compression_ratio
  expect(ratio(repeated)).toBeGreaterThan(2.4)
  expect(ratio('The quick brown fox.')).toBeLessThan(1)
  expect(ratio(repeated, { format: 'json', result: true })).toBeGreaterThan(2.4)
  for (const format of ['json', 'text', 'srt', 'vtt'] as const) expect(ratio(repeated, { format })).toBe(0)
})

test.each([
  ['spaces', ' '.repeat(100_000)],
  ['tabs', '\t'.repeat(100_000)],
  ['empty lines', '\n '.repeat(50_000)],
])('a text of %s takes no longer than another', (_name, spaces) => {
  const before = performance.now()
  const { text } = transcriptionOf({ text: `x${spaces}y` }, answerFormat)
  expect(performance.now() - before).toBeLessThan(5_000)
  expect(text.split(/\s+/)).toEqual(['x', 'y'])
})

test('a result is complete, in any requested form; logprobs need json', () => {
  const answer = bytes({ text: 'Hi', logprobs: [{ token: 'Hi', logprob: -0.1 }, { token: 5 }] })
  expect(
    JSON.parse(shapeTranscription(answer, { ...answerFormat, format: 'srt', result: true }).body as string),
  ).toHaveProperty('segments')
  expect(
    JSON.parse(shapeTranscription(answer, { ...answerFormat, format: 'json', logprobs: true }).body as string),
  ).toEqual({
    text: 'Hi',
    logprobs: [{ token: 'Hi', logprob: -0.1, bytes: [72, 105] }],
    usage: { type: 'duration', seconds: 10 },
  })
})

const segment = (start: number, end: number, text: string): TranscriptionSegment => ({
  id: 0,
  seek: 0,
  start,
  end,
  text,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
})
const spoken: Transcription = {
  task: 'transcribe',
  language: 'english',
  duration: 4000,
  text: 'a b',
  segments: [segment(0, 59.9996, ' a --> b'), segment(3599.5, 3661.007, 'c')],
  usage: { type: 'duration', seconds: 4000 },
}
test.each([
  ['text', 'a b\n'],
  ['srt', '1\n00:00:00,000 --> 00:01:00,000\na -> b\n\n2\n00:59:59,500 --> 01:01:01,007\nc\n'],
  ['vtt', 'WEBVTT\n\n00:00:00.000 --> 00:01:00.000\na -> b\n\n00:59:59.500 --> 01:01:01.007\nc\n'],
] as const)('formatted as %s', (format, text) => {
  expect(writeTranscription(spoken, { format, requestId: null })).toBe(text)
})
test('subtitles of silence are empty', () => {
  const silent = { ...spoken, text: '', segments: [] }
  expect(writeTranscription(silent, { format: 'srt', requestId: null })).toBe('\n')
  expect(writeTranscription(silent, { format: 'vtt', requestId: null })).toBe('WEBVTT\n\n')
})

test('a form is parsed by other parsers as it was written', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'infer-form-')), 'samples')
  await writeFile(path, Buffer.from([1, 2, 3, 4]))
  const { contentType, body } = formBody(
    [
      ['prompt', 'Grüße,\r\n"--" 🙂'],
      ['a[]', '1'],
      ['a[]', '2'],
      ['na"me\r\n', 'x'],
    ],
    [audioFile({ path, bytes: 4 })],
  )
  const sent = await buffer(body.open())
  expect(sent.length).toBe(body.bytes)
  const form = await new Response(new Uint8Array(sent), { headers: { 'content-type': contentType } }).formData()
  expect([form.get('prompt'), form.getAll('a[]'), form.get('na_me__')]).toEqual(['Grüße,\r\n"--" 🙂', ['1', '2'], 'x'])
  const file = form.get('file') as File
  expect([file.name, file.type, file.size]).toEqual(['audio.wav', 'audio/wav', 48])
})
