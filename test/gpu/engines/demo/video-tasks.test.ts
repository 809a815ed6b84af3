import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect } from 'vitest'
import { testWithFfmpeg as test } from '../../../_ffmpeg.ts'
import { callOf, type Demo, greys, made, newFolder, probe, startDemo } from './_engine.ts'

let demo: Demo
let image: string
beforeAll(async () => {
  demo = await startDemo()
  image = await made('given.png', '-f lavfi -i testsrc2=s=400x300 -frames:v 1')
})

const logged = (messages: readonly object[]) =>
  messages.flatMap(message => ('message' in message ? [String(message.message)] : []))

const videos: [task: 'text-to-video' | 'image-to-video', width: number, height: number, frames: number, fps: number][] =
  [
    ['text-to-video', 832, 480, 81, 16],
    ['text-to-video', 480, 832, 10, 24],
    ['text-to-video', 624, 624, 1, 1],
    ['text-to-video', 64, 64, 300, 60],
    ['text-to-video', 16, 16, 7, 7],
    ['image-to-video', 832, 480, 41, 16],
    ['image-to-video', 480, 832, 1, 30],
    ['image-to-video', 240, 240, 33, 25],
  ]
test.each(videos)(
  '%s %ix%i, %i frames at %i',
  async (task, width, height, num_frames, fps) => {
    const { files, messages } = await demo.generate(
      callOf(task, { width, height, num_frames, fps, image: task === 'image-to-video' ? image : null }),
    )
    expect(messages.at(-1)).toEqual({ type: 'completed', files: [{ name: 'video.mp4', kind: 'video' }], seed_used: 42 })
    const found = await probe(files[0]!)
    expect(found).toMatchObject({
      codec: 'h264',
      pixels: 'yuv420p',
      width,
      height,
      frames: num_frames,
      rate: `${fps}/1`,
    })
    expect(found.duration).toBeCloseTo(num_frames / fps, 2)
    expect(found.sound).toBeUndefined()
    // The data that a player needs first precedes the frames.
    const bytes = readFileSync(files[0]!)
    expect(bytes.indexOf('moov')).toBeLessThan(bytes.indexOf('mdat'))
  },
  60_000,
)

test('odd sides are made even, and that is reported', async () => {
  const { files, messages } = await demo.generate(callOf('text-to-video', { width: 321, height: 193 }))
  expect(await probe(files[0]!)).toMatchObject({ width: 320, height: 192, frames: 8 })
  expect(logged(messages).join()).toContain('321x193 is rounded to 320x192')
})

test('the same call gives the same bytes, another seed others, and every frame is different', async () => {
  const film = async (inputs: object) =>
    readFileSync((await demo.generate(callOf('text-to-video', { num_frames: 20, ...inputs }))).files[0]!)
  const first = await film({})
  expect((await film({})).equals(first)).toBe(true)
  expect((await film({ seed: 1 })).equals(first)).toBe(false)
  const frames = await greys((await demo.generate(callOf('text-to-video', { num_frames: 20 }))).files[0]!)
  expect(frames).toHaveLength(20)
  for (let index = 1; index < frames.length; index++) {
    const moved = frames[index]!.reduce((sum, value, at) => sum + Math.abs(value - frames[index - 1]![at]!), 0)
    expect(moved / frames[index]!.length).toBeGreaterThan(1)
  }
})

test('image-to-video begins with the image and zooms into it', async () => {
  const { files } = await demo.generate(
    callOf('image-to-video', { image, width: 400, height: 300, num_frames: 12, prompt: '' }),
  )
  const [given] = (await greys(image)) as [Buffer]
  const frames = await greys(files[0]!)
  /** The part without caption and counter. */
  const apart = (frame: Buffer) => {
    let sum = 0
    for (let y = 60; y < 240; y++)
      for (let x = 20; x < 380; x++) sum += Math.abs(frame[y * 400 + x]! - given[y * 400 + x]!)
    return sum / (180 * 360)
  }
  expect(apart(frames[0]!)).toBeLessThan(16)
  expect(apart(frames.at(-1)!)).toBeGreaterThan(2 * apart(frames[0]!))
})

describe('speech-to-video', () => {
  const cases: [name: string, num_frames: number, fps: number, picture: boolean][] = [
    ['speech.wav', 48, 16, true],
    ['speech.mp3', 75, 25, false],
    ['speech.ogg', 24, 16, true],
  ]
  test.each(cases)('%s in %i frames at %i', async (name, num_frames, fps, picture) => {
    const audio = await made(name, '-f lavfi -i sine=f=300:d=3')
    const { files } = await demo.generate(
      callOf('speech-to-video', { audio, num_frames, fps, image: picture ? image : null }),
    )
    const found = await probe(files[0]!)
    expect(found).toMatchObject({ codec: 'h264', width: 320, height: 192, frames: num_frames, rate: `${fps}/1` })
    expect(found.sound?.codec).toBe('aac')
    expect(found.duration).toBeCloseTo(num_frames / fps, 2)
    expect(found.sound?.duration).toBeCloseTo(num_frames / fps, 1)
    expect(found.whole).toBeCloseTo(num_frames / fps, 1)
  })

  test('the audio is visible in the frames', async () => {
    const audio = await made('half.wav', "-f lavfi -i sine=f=300:d=4,volume=0:enable='gt(t,2)'")
    const { files } = await demo.generate(callOf('speech-to-video', { audio, image, num_frames: 32, prompt: '' }))
    const frames = await greys(files[0]!)
    /** How much of the wave's band is white, in the part before and in the part after the current time. */
    const white = (frame: Buffer) => {
      let [past, future] = [0, 0]
      for (let y = 126; y < 180; y++)
        for (let x = 0; x < 320; x++) {
          if (frame[y * 320 + x]! <= 130) continue
          if (x < 160) past++
          else future++
        }
      return { past, future }
    }
    const [loud, turning, quiet] = [8, 16, 30].map(index => white(frames[index]!)) as [
      ReturnType<typeof white>,
      ReturnType<typeof white>,
      ReturnType<typeof white>,
    ]
    expect(loud.past).toBeGreaterThan(1500)
    expect(turning.past).toBeGreaterThan(1500)
    expect(turning.future).toBeLessThan(turning.past / 2)
    expect(quiet.past).toBeLessThan(loud.past / 2)
  })

  test('a file that is not audio is refused as such', async () => {
    const { messages, status, error } = await demo.generate(callOf('speech-to-video', { audio: image, image }))
    expect([status, error?.code, messages]).toEqual([400, 'invalid_audio', []])
  })
})

test('video-interpolation finds intermediate positions, and keeps the audio', async () => {
  const width = 160
  // A bright square that moves 4 pixels a frame: 8 frames a second, 2 seconds.
  const video = await made(
    'given.mp4',
    '-f lavfi -i color=black:s=160x96:r=8:d=2 -f lavfi -i testsrc=s=32x32:r=8:d=2 -f lavfi -i sine=d=2 ' +
      '-filter_complex [0][1]overlay=x=n*4+20:y=32 -map 2:a -c:v libx264 -crf 10 -pix_fmt yuv420p -c:a aac -shortest',
  )
  const { files, messages } = await demo.generate(
    callOf('video-interpolation', { video, width, height: 96, num_frames: 32, fps: 16 }),
  )
  expect(await probe(files[0]!)).toMatchObject({
    codec: 'h264',
    width,
    height: 96,
    frames: 32,
    rate: '16/1',
    duration: 2,
  })
  expect((await probe(files[0]!)).sound).toMatchObject({ codec: 'aac' })
  const centres = (await greys(files[0]!)).map(frame => {
    let [sum, count] = [0, 0]
    for (let at = 0; at < frame.length; at++) {
      if (frame[at]! < 60) continue
      sum += at % width
      count++
    }
    return sum / count
  })
  // Its movement between two frames here is half of that in the source.
  for (let index = 4; index < 26; index++) expect(centres[index + 1]! - centres[index]!).toBeCloseTo(2, -0.3)
  expect(messages.filter(message => message.type === 'progress').length).toBeGreaterThan(1)
})

test('without ffmpeg images are made, and videos refused with what to install', async () => {
  const without = await startDemo(['--ffmpeg', '/nowhere/ffmpeg'])
  expect((await without.generate(callOf('text-to-image'))).files).toHaveLength(1)
  const audio = join(newFolder(), 'a.wav')
  for (const call of [
    callOf('text-to-video'),
    callOf('image-to-video', { image }),
    callOf('speech-to-video', { audio }),
    callOf('video-interpolation', { video: audio }),
  ]) {
    const { status, error } = await without.generate(call)
    expect([status, error?.code]).toEqual([400, 'unsupported_task'])
    expect(error?.message).toMatch(/'\/nowhere\/ffmpeg' cannot be started.*apt install ffmpeg.*--ffmpeg/)
  }
  expect(await without.health()).toEqual({ status: 'ok', running: 0 })
})

test('a failing ffmpeg is reported with its own message', async () => {
  const { messages } = await demo.generate(callOf('text-to-video', {}, '/proc/nowhere'))
  expect(messages.at(-1)).toMatchObject({
    type: 'failed',
    error: { invalid: false, message: expect.stringMatching(/^ffmpeg exited with 1: .*No such file/) },
  })
})

test('an ffmpeg without the video encoder is not tried again', async () => {
  const program = join(newFolder(), 'ffmpeg')
  writeFileSync(
    program,
    `#!/bin/sh\nfor last; do :; done\n[ "$last" = -version ] && exec ffmpeg -version\nexec ffmpeg $(echo "$@" | sed s/libx264/libnone/)\n`,
    { mode: 0o755 },
  )
  const poor = await startDemo(['--step-ms', '0', '--ffmpeg', program])
  const { messages } = await poor.generate(callOf('text-to-video'))
  expect(messages.at(-1)).toMatchObject({
    type: 'failed',
    error: { invalid: true, message: expect.stringMatching(/^Video tasks need the encoder libnone, which .* without/) },
  })
})

test('a playlist in place of a video opens no other file', async () => {
  const other = await made('other.mp4', '-f lavfi -i testsrc=s=64x64:d=1')
  const video = join(dirname(other), 'list.mp4')
  writeFileSync(video, 'ffconcat version 1.0\nfile other.mp4\n')
  expect(await probe(video)).toMatchObject({ width: 64 })
  const { messages } = await demo.generate(callOf('video-interpolation', { video, width: 64, height: 64 }))
  expect(messages.at(-1)).toMatchObject({ type: 'failed' })
})
