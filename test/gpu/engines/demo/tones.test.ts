import { execFileSync, spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { demoSampleRate, voices } from '../../../../gpu/engines/demo/chords.ts'
import { sampleCount } from '../../../../gpu/engines/demo/tones.ts'
import { full } from '../../../_full.ts'
import { decode, encode } from './_tones.ts'

const [alto, bass, soprano] = voices
const text = 'Hello, world! How are you? Grüße, 你好 🙂 – 0000 ffff ~~'

/** The audio at another rate, each sample interpolated from its two neighbours. */
function resampled(samples: Int16Array, to: number): Float64Array {
  return Float64Array.from({ length: Math.floor((samples.length * to) / demoSampleRate) }, (_, index) => {
    const place = (index * demoSampleRate) / to
    const first = Math.floor(place)
    const part = place - first
    return samples[first]! * (1 - part) + (samples[first + 1] ?? 0) * part
  })
}

const silence = (seconds: number) => new Int16Array(Math.round(seconds * demoSampleRate))
const joined = (...parts: Int16Array[]) => Int16Array.from(parts.flatMap(part => [...part]))

describe('text in tones is transcribed', () => {
  for (const voice of voices)
    for (const speed of [0.25, 0.5, 0.7, 1, 1.3, 1.7, 2, 4])
      for (const rate of full || speed === 1 ? [16_000, 24_000, 44_100, 48_000] : [24_000])
        test(`by ${voice.id} at speed ${speed}, ${rate} samples a second`, () => {
          expect(decode(resampled(encode(text, voice, speed), rate), rate).text).toBe(text)
        })

  test('quiet, as loud as possible, and on the scale from -1 to 1', () => {
    const samples = encode(text, bass!)
    for (const factor of [0.001, 0.05, 1.1, 1 / 32768])
      expect(
        decode(
          Float64Array.from(samples, sample => sample * factor),
          demoSampleRate,
        ).text,
      ).toBe(text)
  })

  test('clipped', () => {
    const loud = encode(text, soprano!).map(sample => Math.max(-32768, Math.min(32767, sample * 3)))
    expect(decode(loud, demoSampleRate).text).toBe(text)
  })

  test('in noise', () => {
    let state = 1
    const noise = () => {
      state = (state * 1103515245 + 12345) % 2 ** 31
      return (state / 2 ** 31 - 0.5) * 8000
    }
    expect(
      decode(
        encode(text, alto).map(sample => sample + noise()),
        demoSampleRate,
      ).text,
    ).toBe(text)
  })

  test('with silence around it, of any length', () => {
    for (const lead of [0.0003, 0.1234, 1.5])
      expect(decode(joined(silence(lead), encode(text, bass!), silence(0.7)), demoSampleRate).text).toBe(text)
  })

  test('several times in different voices', () => {
    const heard = decode(
      joined(encode('One.', alto), silence(0.5), encode('Two.', bass!, 2), encode('Three.', soprano!)),
      demoSampleRate,
    )
    expect(heard.text).toBe('One.\nTwo.\nThree.')
    expect(heard.segments.map(segment => segment.text)).toEqual(['One.', 'Two.', 'Three.'])
  })

  test('every byte', () => {
    const all = Array.from({ length: 0x250 }, (_, code) => String.fromCharCode(code)).join('')
    expect(decode(encode(all, alto, 2), demoSampleRate).text).toBe(all)
  })
})

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0

describe.skipIf(!hasFfmpeg)('compressed audio is transcribed', () => {
  for (const voice of voices)
    for (const [speed, ...codec] of [
      [2, 'mp3', '-b:a', '64k'],
      [1, 'mp3', '-b:a', '32k'],
      [1, 'mp3', '-b:a', '128k', '-ar', '44100'],
      [2, 'opus', '-b:a', '24k'],
      [1, 'opus', '-b:a', '64k'],
      [2, 'adts', '-b:a', '48k'],
    ] as const)
      test(`by ${voice.id} at speed ${speed} as ${codec.join(' ')}`, () => {
        const [format, ...options] = codec
        const raw = ['-f', 's16le', '-ac', '1']
        const run = (args: string[], input: Uint8Array) =>
          execFileSync('ffmpeg', ['-v', 'error', ...args], { input, maxBuffer: 64 * 2 ** 20 })
        const said = encode(text, voice, speed)
        const packed = run(
          [...raw, '-ar', '24000', '-i', 'pipe:0', '-threads', '1', ...options, '-f', format, 'pipe:1'],
          new Uint8Array(said.buffer),
        )
        const back = run(['-i', 'pipe:0', ...raw, '-ar', '16000', 'pipe:1'], packed)
        expect(decode(new Int16Array(Uint8Array.from(back).buffer), 16_000).text).toBe(text)
      })
})

test('sentences and words have their times in seconds', () => {
  const { segments, words } = decode(joined(silence(1), encode('Grüße an alle. Wie geht es?', alto)), demoSampleRate)
  const time = (byte: number) => expect.closeTo(1 + (2 + 4 + 8) * 0.03 + byte * 0.06, 2)
  expect(segments).toEqual([
    { start: time(0), end: time(17), text: 'Grüße an alle. ' },
    { start: time(17), end: time(29), text: 'Wie geht es?' },
  ])
  expect(words.map(word => word.text)).toEqual(['Grüße', 'an', 'alle.', 'Wie', 'geht', 'es?'])
  expect(words[1]).toEqual({ start: time(8), end: time(10), text: 'an' })
})

test('silence is transcribed as nothing', () => {
  const nothing = { text: '', segments: [], words: [] }
  expect(decode([], demoSampleRate)).toEqual(nothing)
  expect(decode(silence(2), demoSampleRate)).toEqual(nothing)
  expect(decode(encode('', alto), demoSampleRate)).toEqual(nothing)
  const sweep = Int16Array.from(
    { length: 5 * demoSampleRate },
    (_, at) => 9000 * Math.sin((at / demoSampleRate) ** 2 * 2500),
  )
  expect(decode(sweep, demoSampleRate)).toEqual(nothing)
  const marked = encode('x'.repeat(20), alto)
  // Its start is missing.
  expect(decode(marked.subarray(0.5 * demoSampleRate), demoSampleRate)).toEqual(nothing)
})

test('a text that breaks off is transcribed up to there', () => {
  const samples = encode('as far as it goes', alto)
  expect(decode(samples.subarray(0, samples.length / 2), demoSampleRate).text).toMatch(/^as far/)
})

test('the length is known before the synthesis', () => {
  for (const speed of [0.25, 1, 1.7])
    expect(encode(text, alto, speed).length).toBe(sampleCount(Buffer.byteLength(text), speed))
})

test('the same text gives the same audio, and other voices other audio', () => {
  expect(encode(text, alto)).toEqual(encode(text, alto))
  expect(encode(text, alto)).not.toEqual(encode(text, bass!))
})

test('four minutes are transcribed in seconds of work, not in minutes', () => {
  const long = 'The quick brown fox jumps over the lazy dog. '.repeat(90)
  const samples = resampled(encode(long, alto), 16_000)
  const before = process.cpuUsage()
  expect(decode(samples, 16_000).text).toBe(long)
  const { user } = process.cpuUsage(before)
  // It takes a tenth of that; a search over every start would take minutes.
  expect(user / 1e6).toBeLessThan(20)
})
