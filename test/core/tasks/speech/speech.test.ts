import { describe, expect, test } from 'vitest'
import type { ModelSet } from '../../../../core/models/engine-traits.ts'
import { Model } from '../../../../core/models/model.ts'
import { contentTypeOf, isOfFormat, type SpeechFormat } from '../../../../core/schemas/speech-format.ts'
import { parseVoices } from '../../../../core/tasks/protocols/openai-audio.ts'
import { filesOf, shownResult, taskNamed, taskRecord } from '../../../../core/tasks/registry.ts'
import { prepareSpeech } from '../../../../core/tasks/speech/speech.ts'
import { withMediaAddresses } from '../../../../core/workflows/node-inputs.ts'
import { traitsOf } from '../../../../gpu/presets/presets.ts'

function catalogOf(more: object): ModelSet {
  const model = Model.parse({ id: 'm', tasks: ['std/audio-speech'], engine: 'remote', url: 'http://h/v1', ...more })
  return new Map([
    [
      model.id,
      {
        id: model.id,
        engine: model.engine,
        tasks: model.tasks,
        extraParams: model.extra_params,
        traits: traitsOf(model),
      },
    ],
  ])
}
const prepared = (body: object, more: object = {}) =>
  prepareSpeech({ model: 'm', input: 'x', ...body }, catalogOf(more))

describe('the request to the engine', () => {
  test.each<[SpeechFormat | undefined, readonly SpeechFormat[] | undefined, SpeechFormat, SpeechFormat]>([
    [undefined, undefined, 'mp3', 'mp3'],
    ['opus', undefined, 'opus', 'opus'],
    [undefined, ['wav'], 'mp3', 'wav'],
    ['pcm', ['wav', 'flac'], 'pcm', 'wav'],
    ['flac', ['wav', 'flac'], 'flac', 'flac'],
  ])('for %s of an engine that writes %s', (response_format, speech_formats, format, engineFormat) => {
    const found = prepared({ response_format }, speech_formats ? { speech_formats } : {})
    expect([found.format, found.engineFormat, JSON.parse(found.body).response_format]).toEqual([
      format,
      engineFormat,
      engineFormat,
    ])
  })

  test('an empty language is left to the engine', () => {
    expect(JSON.parse(prepared({ language: '' }).body)).not.toHaveProperty('language')
  })

  test('an engine without WAV cannot be used', () => {
    expect(() => prepared({ response_format: 'wav' }, { speech_formats: ['mp3', 'opus'] })).toThrow(
      expect.objectContaining({
        code: 'unsupported_parameter',
        param: 'response_format',
        message: expect.stringContaining('mp3, opus and no WAV'),
      }),
    )
  })

  test.each([
    [undefined, undefined, undefined],
    [null, ['b', 'a'], 'b'],
    ['a', ['b', 'a'], 'a'],
    [{ id: 'a' }, ['b', 'a'], 'a'],
    ['anything', undefined, 'anything'],
    [{ id: 'voice_1' }, undefined, { id: 'voice_1' }],
  ])('the voice %j of %j', (voice, voices, sent) => {
    expect(JSON.parse(prepared({ voice }, voices ? { voices } : {}).body).voice).toEqual(sent)
  })

  test('the route', () => {
    expect(prepared({}).route.path).toBe('/v1/audio/speech')
    expect(prepared({}, { url: 'http://h/tts/v2' }).route.path).toBe('/tts/v2/audio/speech')
  })
})

test.each([
  ['mp3', Buffer.from([0xff, 0xfb, 0x90]), true],
  ['mp3', Buffer.from('ID3\x04'), true],
  ['mp3', Buffer.from([0xff, 0xf1, 0x50]), false],
  ['aac', Buffer.from([0xff, 0xf1, 0x50]), true],
  ['aac', Buffer.from([0xff, 0xfb, 0x90]), false],
  ['opus', Buffer.from('OggS'), true],
  ['flac', Buffer.from('fLaC'), true],
  ['flac', Buffer.from('OggS'), false],
  ['wav', Buffer.from('RIFF\0\0\0\0WAVE'), true],
  ['wav', Buffer.from('RIFF\0\0\0\0AVI '), false],
  ['wav', Buffer.alloc(0), false],
  ['mp3', Buffer.alloc(0), false],
  ['pcm', Buffer.alloc(0), true],
] as const)('%s begins with %j: %s', (format, begin, is) => expect(isOfFormat(begin, format)).toBe(is))

test.each([
  ['mp3', 'text/plain', undefined, 'audio/mpeg'],
  ['pcm', '', undefined, 'audio/pcm;rate=24000'],
  ['pcm', 'audio/L16; rate=16000', undefined, 'audio/pcm;rate=16000'],
  ['pcm', 'audio/L16; rate=16000', 22_050, 'audio/pcm;rate=22050'],
  ['pcm', 'audio/pcm;rate=1\r\nx: y', undefined, 'audio/pcm;rate=24000'],
] as const)('the content type of %s that the engine calls %j', (format, says, rate, type) => {
  expect(contentTypeOf(format, says, rate)).toBe(type)
})

const unknown = { language: null, gender: null, preview_url: null }
test.each<[answer: string, voices: object[]]>([
  [
    '{"voices":["a",{"id":"b","name":"Bee"}]}',
    [
      { id: 'a', name: 'a', ...unknown },
      { id: 'b', name: 'Bee', ...unknown },
    ],
  ],
  ['{"object":"list","data":[{"voice_id":"c","model_id":"m"}]}', [{ id: 'c', name: 'c', ...unknown }]],
  [
    '[{"id":"e","language":"en-US","gender":"female","preview_url":"https://example.com/e.mp3"}]',
    [{ id: 'e', name: 'e', language: 'en-US', gender: 'female', preview_url: 'https://example.com/e.mp3' }],
  ],
  ['[{"id":"f","language":7,"gender":"","preview_url":"javascript:0"}]', [{ id: 'f', name: 'f', ...unknown }]],
  ['["d"]', [{ id: 'd', name: 'd', ...unknown }]],
  ['{"voices":[{}]}', []],
  ['{"voices":"many"}', []],
  ['<html>', []],
])('voices in %s', (answer, voices) => expect(parseVoices(answer)).toEqual(voices))

describe('the result of a job', () => {
  const stored = { file_id: 'file-1', file_name: 'speech.wav', content_type: 'audio/wav', duration: 1.5, format: 'wav' }
  const link = ({ id, name }: { id: string; name: string }) => `at:${id}/${name}`

  test('has an address when it is read', () => {
    const shown = shownResult('std/audio-speech', stored, link)
    expect(shown).toEqual({
      audio_url: 'at:file-1/speech.wav',
      content_type: 'audio/wav',
      duration: 1.5,
      format: 'wav',
      file_id: 'file-1',
    })
    expect(taskRecord('std/audio-speech').result.parse(shown)).toEqual(shown)
    expect(filesOf('std/audio-speech', stored)).toEqual(['file-1'])
  })

  test('has no address without a file, and other tasks keep theirs', () => {
    expect(shownResult('std/audio-speech', null, link)).toBeNull()
    expect(shownResult('std/chat-completion', stored, link)).toBe(stored)
    expect(filesOf('std/chat-completion', stored)).toEqual([])
  })

  test('given whole to an audio field, is its address', () => {
    const { isMediaPath } = taskRecord('slug/speech-to-video')
    expect(
      withMediaAddresses(
        { audio_url: { audio_url: 'file-1', duration: 2 }, prompt: { audio_url: 'file-1' } },
        isMediaPath,
      ),
    ).toEqual({
      audio_url: 'file-1',
      prompt: { audio_url: 'file-1' },
    })
  })
})

test('the short name of the task', () => expect(taskNamed('std/speech')?.id).toBe('std/audio-speech'))
