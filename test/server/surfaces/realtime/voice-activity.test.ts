import { describe, expect, test } from 'vitest'
import { sampleRate } from '../../../../core/media/audio-decoder.ts'
import { openPcmResampler } from '../../../../server/surfaces/realtime/resample.ts'
import { changedConfig, defaultTurnDetection } from '../../../../server/surfaces/realtime/session-config.ts'
import { openStableText } from '../../../../server/surfaces/realtime/stable-text.ts'
import { openVoiceActivity } from '../../../../server/surfaces/realtime/voice-activity.ts'

let seed = 7
const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648 - 0.5
type Sound = (second: number) => number
const silence: Sound = () => 0
const noise =
  (level: number): Sound =>
  () =>
    2 * level * random()
const tone =
  (hertz: number, level: number): Sound =>
  second =>
    level * Math.sin(2 * Math.PI * hertz * second)
/** A voice: harmonics with a syllable rhythm that never stops for long. */
const voice =
  (level: number): Sound =>
  second =>
    level * (0.6 + 0.4 * Math.sin(2 * Math.PI * 4 * second)) * (tone(140, 0.6)(second) + tone(420, 0.4)(second))
const plus =
  (...all: Sound[]): Sound =>
  second =>
    all.reduce((sum, one) => sum + one(second), 0)

function samplesOf(parts: [seconds: number, sound: Sound][], rate = sampleRate): Int16Array {
  const values: number[] = []
  for (const [seconds, sound] of parts)
    for (let at = 0; at < seconds * rate; at++) values.push(Math.round(32_767 * sound(values.length / rate)))
  return Int16Array.from(values)
}

/** The changes in seconds, for audio that arrives in pieces of a size that is no multiple of a frame. */
function changes(parts: [number, Sound][], more: object = {}, piece = 777): [string, number][] {
  const detector = openVoiceActivity({ ...defaultTurnDetection, ...more })
  const samples = samplesOf(parts)
  const found: [string, number][] = []
  for (let at = 0; at < samples.length; at += piece)
    for (const { type, at: where } of detector.push(samples.subarray(at, at + piece)))
      found.push([type, where / sampleRate])
  return found
}
const near = (seconds: number): number => expect.closeTo(seconds, 1) as number

describe('speech is detected', () => {
  const speech: [string, number][] = [
    ['started', near(1)],
    ['stopped', near(2.5)],
  ]
  test.each<[string, [number, Sound][], object, [string, number][]]>([
    [
      'in silence',
      [
        [1, silence],
        [1, voice(0.3)],
        [1, silence],
      ],
      {},
      speech,
    ],
    [
      'in noise',
      [
        [1, noise(0.01)],
        [1, plus(voice(0.3), noise(0.01))],
        [1, noise(0.01)],
      ],
      {},
      speech,
    ],
    [
      'above hum',
      [
        [1, tone(50, 0.1)],
        [1, plus(voice(0.4), tone(50, 0.1))],
        [1, tone(50, 0.1)],
      ],
      {},
      speech,
    ],
    [
      'at once',
      [
        [1, voice(0.3)],
        [1, silence],
      ],
      {},
      [
        ['started', near(0)],
        ['stopped', near(1.5)],
      ],
    ],
    [
      'through a short pause',
      [
        [1, silence],
        [0.4, voice(0.3)],
        [0.2, silence],
        [0.4, voice(0.3)],
        [1, silence],
      ],
      {},
      speech,
    ],
    [
      'until a shorter silence',
      [
        [1, silence],
        [1, voice(0.3)],
        [1, silence],
      ],
      { silence_duration_ms: 200 },
      [
        ['started', near(1)],
        ['stopped', near(2.2)],
      ],
    ],
    [
      'that does not end',
      [
        [1, silence],
        [3, voice(0.3)],
      ],
      {},
      [['started', near(1)]],
    ],
    ['not in silence', [[3, silence]], {}, []],
    ['not in steady noise', [[5, noise(0.003)]], {}, []],
    ['not in hum', [[3, tone(50, 0.3)]], {}, []],
    [
      'not in a click',
      [
        [1, silence],
        [0.02, voice(0.8)],
        [1, silence],
      ],
      {},
      [],
    ],
    [
      'if it is quiet, at a low threshold',
      [
        [1, silence],
        [1, voice(0.008)],
        [1, silence],
      ],
      { threshold: 0.1 },
      [
        ['started', near(1)],
        ['stopped', near(2.4)],
      ],
    ],
    [
      'not if it is quiet, at a high threshold',
      [
        [1, silence],
        [1, voice(0.008)],
        [1, silence],
      ],
      { threshold: 0.9 },
      [],
    ],
  ])('%s', (_, parts, more, expected) => {
    expect(changes(parts, more)).toEqual(expected)
    // The size of the pieces does not matter.
    expect(changes(parts, more, 16_000)).toEqual(changes(parts, more))
  })
})

test('24 kHz become 16 kHz: a tone keeps its level, one that 16 kHz cannot hold is removed', () => {
  const converted = (hertz: number, piece: number) => {
    const resample = openPcmResampler(24_000)
    const input = samplesOf([[1, tone(hertz, 0.5)]], 24_000)
    const output: number[] = []
    for (let at = 0; at < input.length; at += piece) output.push(...resample(input.subarray(at, at + piece)))
    return output
  }
  const level = (samples: number[]) => Math.sqrt(samples.reduce((sum, one) => sum + one * one, 0) / samples.length)
  const whole = converted(1_000, 24_000)
  expect(whole.length).toBeGreaterThan(15_980)
  expect(level(whole) / 32_767).toBeCloseTo(0.5 / Math.SQRT2, 2)
  expect(level(converted(11_000, 24_000)) / 32_767).toBeLessThan(0.005)
  expect(converted(1_000, 333)).toEqual(whole)
  const crossings = whole.filter((one, at) => at > 0 && one >= 0 && whole[at - 1]! < 0).length
  expect(crossings).toBeGreaterThanOrEqual(998)
  expect(crossings).toBeLessThanOrEqual(1_000)
})

test.each<[string, string[], string, string[]]>([
  [
    'words that two agree on',
    ['The cat', 'The cat sat on', 'The cat sat on the'],
    'The cat sat on the mat.',
    ['', 'The cat', ' sat on', ' the mat.'],
  ],
  ['never what is taken back', ['I scream', 'Ice cream is'], 'Ice cream is cold.', ['', '', 'Ice cream is cold.']],
  ['nothing after a contradiction', ['A b c', 'A b c d'], 'X y.', ['', 'A b c', '']],
  ['all at the end alone', [], 'Hello.', ['Hello.']],
])('partial text has %s', (_, partials, final, expected) => {
  const text = openStableText()
  expect([...partials.map(one => text.partial(one)), text.final(final)]).toEqual(expected)
})

const config = { rate: 24_000 as const, model: 'a', language: undefined, prompt: undefined, turnDetection: null }
test.each<[string, unknown, object | string]>([
  [
    'the newer form',
    {
      type: 'transcription',
      audio: { input: { format: { type: 'audio/pcm', rate: 16000 }, transcription: { model: 'b', language: 'en' } } },
    },
    { rate: 16_000, model: 'b', language: 'en' },
  ],
  [
    'the older form',
    {
      input_audio_format: 'pcm16',
      input_audio_transcription: { model: 'c' },
      turn_detection: { type: 'server_vad', threshold: 0.9 },
    },
    { model: 'c', turnDetection: { threshold: 0.9, prefix_padding_ms: 300, silence_duration_ms: 500 } },
  ],
  ['no turns', { audio: { input: { turn_detection: null } } }, { turnDetection: null }],
  ['another format', { input_audio_format: 'g711_ulaw' }, 'g711_ulaw'],
  ['another rate', { audio: { input: { format: { type: 'audio/pcm', rate: 8000 } } } }, '8000'],
  ['semantic turns', { turn_detection: { type: 'semantic_vad' } }, 'semantic_vad'],
  ['speech to speech', { type: 'realtime' }, 'realtime'],
  ['no object', 7, 'object'],
  ['a wrong threshold', { turn_detection: { threshold: 3 } }, 'threshold'],
])('a session takes or refuses by name: %s', (_, session, expected) => {
  if (typeof expected === 'string') expect(() => changedConfig(config, session)).toThrow(expected)
  else expect(changedConfig(config, session)).toMatchObject(expected)
})
