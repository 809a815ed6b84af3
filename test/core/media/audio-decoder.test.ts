import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { openFfmpeg } from '../../../core/media/ffmpeg.ts'
import { wavHead } from '../../../core/tasks/wav.ts'
import { mediaHere, origin } from './_media.ts'

const rate = 16_000
const tone = (seconds: number): Buffer => {
  const samples = Buffer.alloc(2 * rate * seconds)
  for (let at = 0; at < rate * seconds; at++) samples.writeInt16LE(Math.round(9_000 * Math.sin(at / 5)), 2 * at)
  return samples
}
const wav = (seconds: number, change: (head: Buffer) => void = () => {}): Buffer => {
  const samples = tone(seconds)
  const head = wavHead(16_000, samples.length)
  change(head)
  return Buffer.concat([head, samples])
}

const installed = !('missing' in (await openFfmpeg({ environment: { PATH: process.env.PATH } }).found()))
describe.each([
  ['with ffmpeg', process.env.PATH, installed],
  ['without ffmpeg', '', true],
] as const)('%s', (_name, path, able) => {
  let here: Awaited<ReturnType<typeof mediaHere>>
  beforeAll(async () => {
    here = await mediaHere({ path, limits: { audio_length: '20s', audio_decoded: '2MiB', audio_size: '4MiB' } })
  })
  afterAll(() => here.close())
  const sender = () => ({ organizationId: here.organizations[0], origin })
  const dataUrl = (bytes: Buffer) => `data:audio/wav;base64,${bytes.toString('base64')}`
  const left = () => readdirSync(join(here.dataDir, 'work'))

  test.runIf(able)('the audio is the same from any source', async () => {
    const bytes = wav(2)
    const onDisk = join(here.dataDir, 'sent-to-us.wav')
    writeFileSync(onDisk, bytes)
    const uploaded = await here.files.keep(here.organizations[0], bytes, {
      name: 'x',
      contentType: 'text/html',
      purpose: 'upload',
      expiresAt: null,
    })
    for (const value of [
      dataUrl(bytes),
      uploaded.id,
      here.files.link(uploaded, origin),
      new Uint8Array(bytes),
      { path: onDisk, bytes: bytes.length },
    ]) {
      await using sound = await here.decodeAudio(sender(), 'file', value)
      expect(sound).toMatchObject({ seconds: 2, bytes: 4 * rate })
      expect(readFileSync(sound.path).equals(tone(2))).toBe(true)
    }
    expect(left()).toEqual([])
    expect(await here.take(sender(), 'url', dataUrl(bytes), 'audio')).toMatchObject({
      contentType: 'audio/wav',
      durationMs: 2_000,
      name: 'audio.wav',
    })
    expect(left()).toEqual([])
  })

  test.runIf(able).each<[string, Buffer, RegExp]>([
    ['too long', wav(21), /longer than 20 s/],
    // A rate of 1 stretches a second of samples to four hours.
    ['a rate of 1', wav(1, head => head.writeUInt32LE(1, 24)), /./],
    ['a rate of 4 thousand million', wav(1, head => head.writeUInt32LE(0xffff_fff0, 24)), /./],
    ['65,535 channels', wav(1, head => head.writeUInt16LE(0xffff, 22)), /./],
    ['text', Buffer.from('hello'), /./],
    ['a playlist', Buffer.from('#EXTM3U\n#EXTINF:1,\n/etc/passwd\n'), /./],
    ['larger than it may be', Buffer.alloc((4 << 20) + 3), /^'file' is larger than 4 MB/],
    ['not all of its head', wav(1).subarray(0, 40), /./],
  ])('%s is refused with its field, and no file of it is left', async (_what, bytes, message) => {
    const before = performance.now()
    await expect(here.decodeAudio(sender(), 'file', dataUrl(bytes))).rejects.toMatchObject({
      code: 'invalid_audio',
      param: 'file',
      message: expect.stringMatching(message) as string,
    })
    expect(performance.now() - before).toBeLessThan(20_000)
    expect(left()).toEqual([])
  })

  test.runIf(able)('an empty file is refused as one', async () => {
    const path = join(here.dataDir, 'empty')
    writeFileSync(path, '')
    const refusal = {
      code: 'invalid_audio',
      param: 'file',
      message: expect.stringMatching(/^'file' is empty/) as string,
    }
    for (const value of [{ path, bytes: 0 }, new Uint8Array(0)]) {
      await expect(here.decodeAudio(sender(), 'file', value)).rejects.toMatchObject(refusal)
      await expect(here.take(sender(), 'file', value, 'audio')).rejects.toMatchObject(refusal)
    }
  })

  test.runIf(able)('24 bits in 32 are decoded, and measured for a job', async () => {
    const [second, samples] = [tone(1), Buffer.alloc(8 * rate)]
    for (let at = 0; at < 2 * rate; at++) samples.writeInt32LE(second.readInt16LE(2 * (at % rate)) * 65_536, 4 * at)
    const head = wavHead(rate, samples.length)
    head.writeUInt16LE(4, 32)
    head.writeUInt16LE(24, 34)
    // Broadcast files have long descriptions before their samples.
    const description = Buffer.alloc(20_000)
    description.write('bext')
    description.writeUInt32LE(description.length - 8, 4)
    const bytes = Buffer.concat([head.subarray(0, 36), description, head.subarray(36), samples])
    await using sound = await here.decodeAudio(sender(), 'file', dataUrl(bytes))
    expect(readFileSync(sound.path).equals(Buffer.concat([second, second]))).toBe(true)
    expect(await here.take(sender(), 'file', dataUrl(bytes), 'audio')).toMatchObject({ durationMs: 2_000 })
  })

  test.runIf(able)('truncated audio is as long as its samples', async () => {
    await using sound = await here.decodeAudio(sender(), 'file', dataUrl(wav(4).subarray(0, 44 + 2 * rate)))
    expect(sound.seconds).toBe(1)
  })
})

test('on a full disk no decoding is started', async () => {
  const here = await mediaHere({ path: '', full: 'The disk is nearly full.' })
  try {
    const [organizationId] = here.organizations
    await expect(here.decodeAudio({ organizationId, origin }, 'file', new Uint8Array(wav(1)))).rejects.toMatchObject({
      code: 'disk_full',
      message: 'The disk is nearly full.',
    })
  } finally {
    await here.close()
  }
})

test('the decoded audio that waits for engines is limited; that of jobs does not count', async () => {
  const here = await mediaHere({ path: '', limits: { audio_length: '20s', audio_decoded: '64KiB' } })
  try {
    const sender = { organizationId: here.organizations[0], origin }
    const one = () => here.decodeAudio(sender, 'file', new Uint8Array(wav(2)))
    const held = []
    for (let at = 0; at < 17; at++) held.push(await one())
    await expect(one()).rejects.toMatchObject({ code: 'no_capacity', retryAfterMs: expect.any(Number) as number })
    await using _ofJob = await here.decodeAudio({ ...sender, jobId: newId('job') }, 'file', new Uint8Array(wav(2)))
    for (const sound of held.splice(0, 2)) {
      await sound[Symbol.asyncDispose]()
      await sound[Symbol.asyncDispose]()
    }
    held.push(await one())
    await Promise.all(held.map(sound => sound[Symbol.asyncDispose]()))
  } finally {
    await here.close()
  }
})

test.runIf(installed)('a full disk under ffmpeg does not make the audio damaged', async () => {
  const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
  const { ffmpeg, ffprobe } = await openFfmpeg({ environment: { PATH: process.env.PATH } }).required()
  // The same program; its output goes to a full file system.
  const script = `#!/bin/sh\nfor last; do :; done\ncase "$last" in file:*) exec '${ffmpeg}' -y -i "$(echo "$*" | sed 's/.* -i file:\\([^ ]*\\) .*/\\1/')" -f s16le file:/dev/full;; esac\nexec '${ffmpeg}' "$@"\n`
  writeFileSync(join(bin, 'ffmpeg'), script, { mode: 0o755 })
  symlinkSync(ffprobe, join(bin, 'ffprobe'))
  const here = await mediaHere({ path: bin })
  try {
    const sender = { organizationId: here.organizations[0], origin }
    await expect(here.decodeAudio(sender, 'file', new Uint8Array(wav(2)))).rejects.toMatchObject({ code: 'disk_full' })
  } finally {
    await here.close()
    rmSync(bin, { recursive: true })
  }
})
