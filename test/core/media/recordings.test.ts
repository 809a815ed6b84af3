import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openFfmpeg } from '../../../core/media/ffmpeg.ts'
import { checkProbe, type MediaProbe, measuredMs } from '../../../core/media/probe.ts'
import { mediaHere, origin } from './_media.ts'

const film: MediaProbe = {
  kind: 'video',
  width: 640,
  height: 480,
  durationMs: 2_000,
  fps: 16,
  frames: 32,
  codec: 'h264',
  hasAudio: true,
  container: 'mov,mp4,m4a,3gp,3g2,mj2',
}
const sound: MediaProbe = {
  ...film,
  kind: 'audio',
  width: null,
  height: null,
  fps: null,
  frames: null,
  container: 'mp3',
}

test.each<[MediaProbe, 'video' | 'audio', string]>([
  [film, 'video', 'video/mp4'],
  [film, 'audio', 'audio/mp4'],
  [{ ...film, container: 'matroska,webm' }, 'video', 'video/webm'],
  [{ ...film, width: 8192, durationMs: 600_000 }, 'video', 'video/mp4'],
  [sound, 'audio', 'audio/mpeg'],
  [{ ...sound, durationMs: 3_600_000 }, 'audio', 'audio/mpeg'],
  [{ ...sound, container: 'matroska,webm' }, 'audio', 'audio/webm'],
  [{ ...sound, container: 'caf' }, 'audio', 'application/octet-stream'],
])('%j is accepted as %s: %s', (probe, wanted, contentType) => {
  expect(checkProbe(probe, wanted).contentType).toBe(contentType)
})

test.each<[Partial<MediaProbe>, 'video' | 'audio', RegExp]>([
  [sound, 'video', /^The video has no video track/],
  [{ hasAudio: false }, 'audio', /^The audio has no audio track/],
  [{ width: 8193 }, 'video', /8193 × 480 pixels; no side may be longer than 8192/],
  [{ durationMs: 600_001 }, 'video', /lasts 600 s; the maximum is 600 s/],
  [{ durationMs: 3_600_001 }, 'audio', /the maximum is 3600 s/],
  [{ durationMs: 0 }, 'video', /has no length/],
  [{ fps: 1000 }, 'video', /1000 frames a second/],
  [{ frames: 1_000_000 }, 'video', /has 1000000 frames/],
])('%j is refused as %s', (other, wanted, message) => {
  expect(() => checkProbe({ ...film, ...other }, wanted)).toThrow(
    expect.objectContaining({
      code: wanted === 'video' ? 'invalid_video' : 'invalid_audio',
      message: expect.stringMatching(message) as string,
    }),
  )
})

test.each<[string, Pick<MediaProbe, 'fps' | 'frames'>, number]>([
  ['', { fps: null, frames: null }, 0],
  ['out_time_ms=N/A\nprogress=end\n', { fps: 25, frames: 25 }, 0],
  ['out_time_us=500\nout_time_us=621000\nout_time_ms=621000\n', { fps: null, frames: null }, 621],
  ['out_time_ms=961000\n', { fps: 25, frames: 25 }, 1001],
  ['out_time_ms=626000\n', { fps: 8, frames: 8 }, 1000],
  // Recorders of browsers write a rate that says nothing.
  ['out_time_ms=961000\n', { fps: 1000, frames: 30 }, 962],
])('the progress %j of %j is %d ms', (progress, probe, expected) => {
  expect(measuredMs(progress, probe)).toBe(expected)
})

test('without ffmpeg a video is refused with what to install, before anything is fetched', async () => {
  const here = await mediaHere({ path: '' })
  try {
    const sender = { organizationId: here.organizations[0], origin }
    await expect(here.take(sender, 'video_url', 'data:;base64,AAAA', 'video')).rejects.toMatchObject({
      code: 'unsupported_task',
      message: expect.stringMatching(/apt install ffmpeg/) as string,
    })
  } finally {
    await here.close()
  }
})

const found = await openFfmpeg({ environment: { PATH: process.env.PATH } }).found()
describe.skipIf('missing' in found)('with ffmpeg', () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-recordings-'))
  const made = (name: string, ...args: string[]): Buffer => {
    execFileSync('ffmpeg', ['-v', 'error', '-nostdin', '-f', 'lavfi', '-i', ...args, join(folder, name)])
    return readFileSync(join(folder, name))
  }
  let here: Awaited<ReturnType<typeof mediaHere>>
  beforeAll(async () => {
    here = await mediaHere()
  })
  afterAll(async () => {
    await here.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const dataUrl = (bytes: Buffer) => `data:video/mp4;base64,${bytes.toString('base64')}`
  const sender = () => ({ organizationId: here.organizations[0], origin })

  test('video and audio are stored unchanged, with their facts, and no temporary file is left', async () => {
    const video = made('film.mp4', 'testsrc=size=64x48:rate=16:duration=1', '-pix_fmt', 'yuv420p')
    const audio = made('tone.wav', 'sine=duration=1')
    const uploaded = await here.files.keep(here.organizations[0], video, {
      name: 'x',
      contentType: 'text/html',
      purpose: 'upload',
      expiresAt: null,
    })
    const kept = {
      name: 'video.mp4',
      contentType: 'video/mp4',
      width: 64,
      height: 48,
      durationMs: 1000,
      purpose: 'input',
    }
    for (const value of [dataUrl(video), uploaded.id, here.files.link(uploaded, origin)]) {
      const file = await here.take(sender(), 'video_url', value, 'video')
      expect(file).toMatchObject(kept)
      expect(file.id).not.toBe(uploaded.id)
      expect(readFileSync(here.files.pathOf(file)).equals(video)).toBe(true)
    }
    expect(await here.take(sender(), 'audio_url', dataUrl(audio), 'audio')).toMatchObject({
      name: 'audio.wav',
      contentType: 'audio/wav',
      durationMs: 1000,
    })
    expect(readdirSync(join(here.dataDir, 'work'))).toEqual([])
  })

  test('the duration of a file whose header has none is measured', async () => {
    const piped = (container: string, ...args: string[]) =>
      execFileSync('ffmpeg', ['-v', 'error', '-nostdin', '-f', 'lavfi', '-i', ...args, '-f', container, 'pipe:1'])
    for (const [kind, bytes, contentType] of [
      ['audio', piped('webm', 'sine=duration=1', '-c:a', 'libopus'), 'audio/webm'],
      ['audio', piped('flac', 'sine=duration=1'), 'audio/flac'],
      ['video', piped('matroska', 'testsrc=size=64x48:rate=8:duration=1'), 'video/webm'],
    ] as const) {
      const { durationMs, ...file } = await here.take(sender(), 'it', dataUrl(bytes), kind)
      expect(file).toMatchObject({ contentType })
      // The last block of FLAC has no length.
      expect(Math.abs(durationMs! - 1000)).toBeLessThan(110)
    }
  })

  test('a video without sound is refused as one where its audio is decoded', async () => {
    const video = made('still.mp4', 'testsrc=size=64x48:rate=4:duration=1')
    await expect(here.decodeAudio(sender(), 'file', dataUrl(video))).rejects.toMatchObject({
      code: 'invalid_audio',
      message: "The audio in 'file' has no audio track.",
    })
  })

  test.each<[string, 'video' | 'audio', () => Buffer, string, RegExp]>([
    [
      'a sound',
      'video',
      () => made('other.wav', 'sine=duration=1'),
      'invalid_video',
      /^The video in 'it' has no video track/,
    ],
    [
      'a silent film',
      'audio',
      () => made('silent.mp4', 'testsrc=duration=1'),
      'invalid_audio',
      /^The audio in 'it' has no audio track/,
    ],
    ['text', 'audio', () => Buffer.from('hello'), 'invalid_audio', /^The audio in 'it' could not be read/],
    [
      'half a film',
      'video',
      () => made('cut.mp4', 'testsrc=duration=1').subarray(0, 1000),
      'invalid_video',
      /^The video in 'it' could not be read/,
    ],
    ['too much', 'audio', () => Buffer.alloc((25 << 20) + 3), 'invalid_audio', /^'it' is larger than 25 MB/],
  ])('%s is not valid %s', async (_, kind, bytes, code, message) => {
    await expect(here.take(sender(), 'it', dataUrl(bytes()), kind)).rejects.toMatchObject({
      code,
      param: 'it',
      message: expect.stringMatching(message) as string,
    })
    expect(readdirSync(join(here.dataDir, 'work'))).toEqual([])
  })
})
