import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { engineWavSamples, WavLength, WavSamples, wavHead } from '../../../core/tasks/wav.ts'

interface Kind {
  code?: number
  channels?: number
  rate?: number
  bits?: number
  length?: number
  /** Before the samples. */
  chunks?: [name: string, content: Buffer][]
}

function fileOf(
  samples: Buffer,
  { code = 1, channels = 1, rate = 24_000, bits = 16, length, chunks = [] }: Kind = {},
): Buffer {
  const format = Buffer.alloc(code === 0xfffe ? 40 : 16)
  format.writeUInt16LE(code, 0)
  format.writeUInt16LE(channels, 2)
  format.writeUInt32LE(rate, 4)
  format.writeUInt16LE(bits, 14)
  const chunk = (name: string, content: Buffer, said = content.length) => {
    const head = Buffer.alloc(8)
    head.write(name, 'latin1')
    head.writeUInt32LE(said, 4)
    return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
  }
  const parts = [['fmt ', format], ...chunks] as [string, Buffer][]
  const body = [...parts.map(([name, content]) => chunk(name, content)), chunk('data', samples, length)]
  return Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), ...body])
}

const samplesOf = (...values: number[]) => Buffer.from(Int16Array.from(values).buffer)

/** The file, in pieces of this many bytes, through one of the two. */
async function through(stream: WavSamples | WavLength, file: Buffer, pieceBytes: number) {
  const out: Buffer[] = []
  stream.on('data', (piece: Buffer) => out.push(piece))
  const ended = once(stream, 'end')
  for (let at = 0; at < file.length; at += pieceBytes) stream.write(file.subarray(at, at + pieceBytes))
  stream.end()
  await ended
  return Buffer.concat(out)
}

describe('the header', () => {
  test('written here has the given values', () => {
    expect(engineWavSamples(wavHead(16_000, 10))).toEqual({ channels: 1, rate: 16_000, from: 44, bytes: 10 })
  })

  test.each([
    ['a length of nothing', 0],
    ['all ones', 0xffffffff],
    ['as much as signed numbers hold', 0x7fffffff],
  ])('of a stream, with %s, has an open length', (_name, length) => {
    expect(engineWavSamples(fileOf(samplesOf(1), { length }))?.bytes).toBe(Number.POSITIVE_INFINITY)
  })

  test('may have other chunks before the samples, also of odd length', () => {
    const chunks: [string, Buffer][] = [['LIST', Buffer.from('abc')]]
    expect(engineWavSamples(fileOf(samplesOf(1, 2), { chunks }))).toMatchObject({ from: 12 + 24 + 12 + 8, bytes: 4 })
  })

  test('is awaited until it is complete', () => {
    const file = fileOf(samplesOf(1, 2, 3))
    for (let length = 0; length < 44; length++) expect(engineWavSamples(file.subarray(0, length))).toBeUndefined()
    expect(engineWavSamples(file.subarray(0, 44))).toBeDefined()
  })

  test.each([
    ['no WAV', Buffer.from('<html>Not found</html>'), /not a WAV file/],
    ['floats', fileOf(Buffer.alloc(8), { code: 3, bits: 32 }), /kind 3 with 1 channels of 32 bits/],
    ['24 bits', fileOf(Buffer.alloc(6), { bits: 24 }), /24 bits/],
    ['six channels', fileOf(Buffer.alloc(12), { channels: 6 }), /6 channels/],
    ['an impossible rate', fileOf(Buffer.alloc(2), { rate: 1 }), /at 1 Hz/],
    [
      'endless other things',
      Buffer.concat([fileOf(Buffer.alloc(0), { chunks: [['LIST', Buffer.alloc(70_000)]] }).subarray(0, 70_000)]),
      /without samples/,
    ],
  ])('refuses %s', (_name, file, message) => {
    expect(() => engineWavSamples(file)).toThrow(
      expect.objectContaining({ code: 'worker_error', message: expect.stringMatching(message) }),
    )
  })
})

describe.each([1, 3, 7, 44, 45, 1000])('in pieces of %i bytes', pieceBytes => {
  test('samples are unchanged', async () => {
    const samples = samplesOf(1, -2, 300, -32768, 32767)
    const stream = new WavSamples()
    expect(await through(stream, fileOf(samples), pieceBytes)).toEqual(samples)
    expect(stream.seconds).toBeCloseTo(5 / 24_000, 9)
  })

  test('two channels become one', async () => {
    const stream = new WavSamples()
    const file = fileOf(samplesOf(10, 20, -10, -30, 32767, 32767), { channels: 2, code: 0xfffe })
    expect(await through(stream, file, pieceBytes)).toEqual(samplesOf(15, -20, 32767))
  })

  test('bytes after the samples are not audio', async () => {
    const file = Buffer.concat([fileOf(samplesOf(1, 2)), Buffer.from('LIST\x04\0\0\0abcd', 'latin1')])
    expect(await through(new WavSamples(), file, pieceBytes)).toEqual(samplesOf(1, 2))
  })

  test('a file is measured while it passes', async () => {
    const file = fileOf(Buffer.alloc(4800), { length: 0xffffffff })
    const stream = new WavLength()
    expect(await through(stream, file, pieceBytes)).toEqual(file)
    expect(stream.seconds).toBe(0.1)
  })
})

test('a file of another type passes too, and its length is unknown', async () => {
  const stream = new WavLength()
  const file = fileOf(Buffer.alloc(8), { code: 3, bits: 32 })
  expect(await through(stream, file, 10)).toEqual(file)
  expect(stream.seconds).toBeUndefined()
})

test('a file that ends in its header is an error', async () => {
  const stream = new WavSamples()
  const failed = once(stream, 'error')
  stream.end(fileOf(samplesOf(1)).subarray(0, 30))
  stream.resume()
  expect((await failed)[0]).toMatchObject({
    code: 'worker_error',
    message: expect.stringContaining('ends before its samples'),
  })
})
