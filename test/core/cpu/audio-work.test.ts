import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { audioKindOf } from '../../../core/cpu/audio-kind.ts'
import { decodeAudio } from '../../../core/cpu/audio-work.ts'
import { openCpu } from '../../../core/cpu/cpu.ts'
import { openResampler } from '../../../core/cpu/resample.ts'
import { wavHead } from '../../../core/tasks/wav.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-sound-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const bounds = { seconds: 10, bytes: 512 << 10, rate: 16_000, ms: 60_000 }
let files = 0
const next = (ending: string) => join(folder, `${++files}.${ending}`)

/** A WAV file with the given header around a tone of 440 Hz. */
function wav({ rate = 16_000, channels = 1, bits = 16, block = 0, seconds = 1, tag = 1 } = {}): Buffer {
  const frames = Math.round(rate * seconds)
  const head = wavHead(16_000, (frames * channels * bits) / 8)
  head.writeUInt16LE(tag, 20)
  head.writeUInt16LE(channels, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt16LE(block || (channels * bits) / 8, 32)
  head.writeUInt16LE(bits, 34)
  const samples = Buffer.alloc((frames * channels * bits) / 8)
  for (let frame = 0; frame < frames; frame++)
    for (let channel = 0; channel < channels; channel++) {
      const value = 0.5 * Math.sin((2 * Math.PI * 440 * frame) / rate)
      const at = ((frame * channels + channel) * bits) / 8
      if (tag === 3) samples.writeFloatLE(value, at)
      else if (bits === 8) samples[at] = Math.round(value * 127 + 128)
      else samples.writeIntLE(Math.round(value * (2 ** (bits - 1) - 1)), at, bits / 8)
    }
  return Buffer.concat([head, samples])
}

async function decoded(bytes: Buffer, limits = bounds): Promise<Int16Array> {
  const [from, into] = [next('sent'), next('raw')]
  writeFileSync(from, bytes)
  const { samples } = await decodeAudio(from, into, limits)
  const raw = readFileSync(into)
  expect(raw.length).toBe(2 * samples)
  return new Int16Array(raw.buffer, raw.byteOffset, samples)
}

/** The number of rising zero crossings. */
const rises = (samples: Int16Array) =>
  samples.filter((value, at) => at > 0 && value >= 0 && samples[at - 1]! < 0).length

test.each([
  ['16 bits', {}],
  ['8 bits', { bits: 8 }],
  ['24 bits in two channels', { bits: 24, channels: 2 }],
  ['float', { bits: 32, tag: 3 }],
  ['44,100 a second', { rate: 44_100 }],
  ['48,000 a second in six channels', { rate: 48_000, channels: 6 }],
  ['8,000 a second', { rate: 8_000 }],
])('a tone in WAV of %s keeps its length, its pitch and its loudness', async (_name, head) => {
  const samples = await decoded(wav(head))
  expect(Math.abs(samples.length - 16_000)).toBeLessThan(4)
  expect(Math.abs(rises(samples) - 440)).toBeLessThan(3)
  expect(Math.max(...samples)).toBeGreaterThan(15_000)
  expect(Math.max(...samples)).toBeLessThan(16_600)
})

test.each([
  ['24 bits at the top of 32', 24, 32, 8],
  ['24 bits at the bottom of 32', 24, 32, 0],
  ['20 bits at the top of 32', 20, 32, 12],
  ['16 bits at the top of 24', 16, 24, 8],
])('a tone of %s is as loud as it was, also after silence', async (_name, bits, container, shift) => {
  const whole = wav({ bits: container, seconds: 2 })
  whole.writeUInt16LE(bits, 34)
  for (let at = 44; at < whole.length; at += container / 8) {
    const value = whole.readIntLE(at, container / 8) / 2 ** (container - bits)
    whole.writeIntLE(at < 70_000 ? 0 : Math.trunc(value) * 2 ** shift, at, container / 8)
  }
  const samples = await decoded(whole)
  expect(samples.length).toBe(32_000)
  expect(Math.max(...samples)).toBeGreaterThan(16_000)
  expect(Math.max(...samples)).toBeLessThan(16_600)
})

test.each([
  ['more than it may', wav({ seconds: 11 }), /lasts longer than 10 s/],
  ['a forged rate of 1', wav({ rate: 1, seconds: 100_000 }), /has 1 samples a second/],
  ['a forged rate of 4 thousand million', Buffer.from(wav()).fill(0xff, 24, 28), /has 4294967295 samples a second/],
  ['a rate that stretches it', wav({ rate: 4_000, seconds: 12 }), /lasts longer than 10 s/],
  ['a rate that hides how much there is', wav({ rate: 384_000, seconds: 6 }), /more data than is allowed/],
  ['65,535 channels in one byte', wav({ channels: 65_535, bits: 8, block: 1, rate: 8 }), /65535 channels/],
  ['a block that contradicts its channels', wav({ channels: 2, block: 1 }), /contradictory header/],
  ['no samples', wav({ seconds: 0 }), /empty, damaged or cut short/],
  ['a head that is cut short', wav().subarray(0, 30), /cut short|no samples/],
  ['words', Buffer.from('This is not a sound.'), /an unknown format/],
  ['nothing', Buffer.alloc(0), /an unknown format/],
  ['an MP4', Buffer.from('\0\0\0\x20ftypM4A \0\0\0\0', 'latin1'), /is MP4 or M4A, which needs ffmpeg/],
  ['the head of a FLAC alone', Buffer.from('fLaC\0\0\0\x22'), /./],
  ['noise after ID3', Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\0'), Buffer.alloc(5_000, 7)]), /./],
])('%s is refused', async (_name, bytes, message) => {
  await expect(decoded(bytes)).rejects.toMatchObject({
    code: 'invalid_audio',
    message: expect.stringMatching(message) as string,
  })
})

const ffmpeg = (() => {
  try {
    return execFileSync('ffmpeg', ['-version']).length > 0
  } catch {
    return false
  }
})()

/** The same tone in another format. */
function encoded(ending: string, ...options: string[]): Buffer {
  const [from, to] = [next('wav'), next(ending)]
  writeFileSync(from, wav({ rate: 44_100, channels: 2, seconds: 2 }))
  execFileSync('ffmpeg', ['-v', 'error', '-threads', '1', '-i', from, ...options, to])
  return readFileSync(to)
}

test.runIf(ffmpeg).each([
  ['mp3', 'mp3', []],
  ['flac', 'flac', []],
  ['opus', 'ogg', ['-c:a', 'libopus']],
  ['vorbis', 'ogg', ['-c:a', 'libvorbis']],
])('%s is decoded', async (kind, ending, options) => {
  const bytes = encoded(ending, ...options)
  expect(audioKindOf(bytes.subarray(0, 512))).toEqual({ kind })
  const samples = await decoded(bytes)
  expect(Math.abs(samples.length - 32_000)).toBeLessThan(2_000)
  expect(Math.abs(rises(samples) - 880)).toBeLessThan(30)
  // Half of the file is half as long, or is refused as damaged; never longer.
  const half = await decoded(bytes.subarray(0, bytes.length >> 1)).then(
    ({ length }) => length,
    (thrown: { code?: string }) => thrown.code,
  )
  if (typeof half === 'number') expect(half).toBeLessThan(24_000)
  else expect(half).toBe('invalid_audio')
  await expect(decoded(bytes, { ...bounds, seconds: 1 })).rejects.toMatchObject({ code: 'invalid_audio' })
})

test('pieces of any size have the same result as one', () => {
  const signal = Float32Array.from({ length: 10_000 }, (_, at) => Math.sin(at / 30))
  for (const [from, to] of [
    [44_100, 16_000],
    [8_000, 16_000],
    [16_000, 16_000],
  ] as const) {
    const [whole, parts]: [number[], number[]] = [[], []]
    openResampler(from, to, sample => whole.push(sample))(signal)
    const put = openResampler(from, to, sample => parts.push(sample))
    for (let at = 0; at < signal.length; at += 37) put(signal.subarray(at, at + 37))
    expect(parts).toEqual(whole)
    expect(Math.abs(whole.length - (signal.length * to) / from)).toBeLessThanOrEqual(2)
  }
})

test('decoding that takes too long is aborted', async () => {
  await expect(decoded(wav(), { ...bounds, ms: 0 })).rejects.toMatchObject({
    code: 'invalid_audio',
    message: 'The audio could not be decoded within 0 s.',
  })
})

test('a file that cannot be opened leaves no open handle', async () => {
  const from = next('wav')
  writeFileSync(from, wav())
  const open = () => readdirSync('/proc/self/fd').length
  const before = open()
  for (let at = 0; at < 20; at++)
    await expect(decodeAudio(from, join(folder, 'not-there', 'x'), bounds)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(open()).toBeLessThan(before + 10)
})

const root = process.getuid?.() === 0
test.runIf(root)('a full disk is reported as such', async context => {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).status !== 0) return context.skip()
  try {
    const from = next('wav')
    writeFileSync(from, wav({ seconds: 8 }))
    await expect(decodeAudio(from, join(disk, 'x'), bounds)).rejects.toMatchObject({ code: 'disk_full' })
  } finally {
    spawnSync('umount', ['-l', disk])
  }
})

test('a caller that disconnects does not wait, and the next file is decoded', async () => {
  const cpu = openCpu()
  try {
    const [from, into] = [next('wav'), next('raw')]
    // Minutes of audio, the longest accepted input.
    writeFileSync(from, wav({ rate: 96_000, seconds: 60 }))
    const wide = { seconds: 3_600, bytes: 256 << 20, rate: 384_000, ms: 60_000 }
    const gone = new AbortController()
    const [running, waiting] = [into, next('raw')].map(to => cpu.decodeAudio(from, to, wide, gone.signal))
    const ends = Promise.allSettled([running, waiting])
    await expect.poll(() => existsSync(into)).toBe(true)
    gone.abort(new Error('left'))
    expect(await ends).toMatchObject([
      { status: 'rejected', reason: { message: 'left' } },
      { status: 'rejected', reason: { message: 'left' } },
    ])
    writeFileSync(from, wav())
    expect(await cpu.decodeAudio(from, next('raw'), bounds)).toEqual({ samples: 16_000 })
  } finally {
    await cpu.close()
  }
})
