import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openFfmpeg } from '../../../core/media/ffmpeg.ts'
import { readProbe } from '../../../core/media/probe.ts'
import { runProgram } from '../../../core/media/program.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-ffmpeg-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const at = (name: string) => join(folder, name)
const here = openFfmpeg({ environment: { PATH: process.env.PATH } })
const there = 'ffmpeg' in (await here.found())

/** A script of a few lines, in its own folder. */
function program(name: string, script: string): string {
  const place = mkdtempSync(join(folder, 'tools-'))
  writeFileSync(join(place, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(place, name), 0o755)
  return place
}

describe('a missing program is reported with what to do', () => {
  test('none on the PATH', async () => {
    for (const PATH of ['', '/nonexistent', '.', undefined]) {
      const ffmpeg = openFfmpeg({ environment: { PATH } })
      expect(await ffmpeg.found()).toEqual({
        missing: expect.stringMatching(/^ffmpeg and ffprobe are not installed\. .*apt install ffmpeg/) as string,
      })
      await expect(ffmpeg.probe('/tmp/x')).rejects.toMatchObject({
        code: 'unsupported_task',
        message: expect.stringMatching(/apt install ffmpeg/) as string,
      })
      await expect(ffmpeg.frame('/tmp/x')).rejects.toMatchObject({ code: 'unsupported_task' })
    }
  })

  test('a configured path without a program', async () => {
    const probing = program('ffprobe', 'echo ffprobe version 7.1')
    const ffmpeg = openFfmpeg({ ffmpeg: '/opt/none/ffmpeg', environment: { PATH: probing } })
    expect(await ffmpeg.found()).toEqual({
      missing: expect.stringMatching(/^\/opt\/none\/ffmpeg.*is not installed/) as string,
    })
  })

  test('another program of that name, and one that cannot run', async () => {
    const other = program('ffmpeg', 'echo hello')
    writeFileSync(join(other, 'ffprobe'), readFileSync(join(other, 'ffmpeg')), { mode: 0o755 })
    expect(await openFfmpeg({ environment: { PATH: other } }).found()).toEqual({
      missing: expect.stringMatching(/ffmpeg is not ffmpeg\./) as string,
    })
    const broken = program('ffmpeg', 'exit 127')
    writeFileSync(join(broken, 'ffprobe'), readFileSync(join(broken, 'ffmpeg')), { mode: 0o755 })
    expect(await openFfmpeg({ environment: { PATH: broken } }).found()).toEqual({
      missing: expect.stringMatching(/cannot be run/) as string,
    })
  })

  test('a version that is too old', async () => {
    const old = program('ffmpeg', 'echo "ffmpeg version 2.8.17-0ubuntu0.1 Copyright"')
    writeFileSync(join(old, 'ffprobe'), readFileSync(join(old, 'ffmpeg')), { mode: 0o755 })
    expect(await openFfmpeg({ environment: { PATH: old } }).found()).toEqual({
      missing: expect.stringMatching(
        /has version 2\.8\.17-0ubuntu0\.1, which is too old: 4 or newer is needed\./,
      ) as string,
    })
  })

  test('a program installed later is found', async () => {
    const place = at('later')
    mkdirSync(place)
    const ffmpeg = openFfmpeg({ environment: { PATH: place } })
    expect(await ffmpeg.found()).toHaveProperty('missing')
    writeFileSync(join(place, 'ffmpeg'), '#!/bin/sh\necho "ffmpeg version 9.9 Copyright"\n', { mode: 0o755 })
    writeFileSync(join(place, 'ffprobe'), '#!/bin/sh\necho "ffprobe version 9.9"\n', { mode: 0o755 })
    expect(await ffmpeg.found()).toEqual({
      ffmpeg: join(place, 'ffmpeg'),
      ffprobe: join(place, 'ffprobe'),
      version: '9.9',
      libx264: false,
      minterpolate: false,
    })
  })
})

describe('the output of ffprobe', () => {
  const read = (value: unknown) => readProbe(Buffer.from(JSON.stringify(value)))
  const video = { codec_type: 'video', codec_name: 'h264', width: 640, height: 480, avg_frame_rate: '30000/1001' }
  const format = { format_name: 'mov,mp4', duration: '2.500000' }

  test('a rotated video is measured upright', () => {
    const turned = { ...video, side_data_list: [{ side_data_type: 'Display Matrix', rotation: -90 }] }
    expect(read({ streams: [turned], format })).toMatchObject({ width: 480, height: 640, fps: 29.97, durationMs: 2500 })
    expect(read({ streams: [{ ...turned, side_data_list: [{ rotation: 180 }] }], format })).toMatchObject({
      width: 640,
    })
  })

  test('the cover image of a song is no video', () => {
    const cover = { ...video, codec_name: 'mjpeg', disposition: { attached_pic: 1 } }
    const sound = { codec_type: 'audio', codec_name: 'mp3', duration: '3' }
    expect(read({ streams: [cover, sound], format: {} })).toMatchObject({
      kind: 'audio',
      codec: 'mp3',
      durationMs: 3000,
    })
  })

  test.each([
    {},
    { streams: [], format },
    { streams: [{ codec_type: 'subtitle', codec_name: 'srt' }], format },
    { streams: [{ ...video, width: 0 }], format },
    { streams: [{ ...video, codec_name: undefined }], format },
    { streams: 'many', format },
  ])('%j is neither', value => {
    expect(() => read(value)).toThrow(expect.objectContaining({ code: 'invalid_video' }))
  })
})

describe('a program', () => {
  const shell = (script: string) => ({ file: '/bin/sh', args: ['-c', script] })
  const alive = (pid: number) =>
    existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')

  test('gets no environment, no input and no folder of the server', async () => {
    const said = (await runProgram(shell('env; pwd; cat'))).toString().trim().split('\n').sort()
    expect(said.filter(line => !/^(_|SHLVL|PWD|OLDPWD)=/.test(line))).toEqual([
      '/',
      'HOME=/nonexistent',
      'LANG=C.UTF-8',
      'PATH=/usr/local/bin:/usr/bin:/bin',
    ])
  })

  test.each<[string, object, object]>([
    ['late', { deadlineMs: 200 }, { code: 'invalid_video', message: /within 0\.2 s/ }],
    ['talkative', { maxOutput: 10_000 }, { code: 'invalid_video' }],
  ])('that is %s is ended with its children', async (_, bounds, failure) => {
    const pid = at('pid')
    rmSync(pid, { force: true })
    const script = `sh -c 'echo $$ > ${pid}; exec sleep 600' & while [ ! -s ${pid} ]; do sleep 0.01; done; ${'maxOutput' in bounds ? 'yes' : 'wait'}`
    const { message, ...more } = failure as { message?: RegExp }
    await expect(runProgram({ ...shell(script), ...bounds })).rejects.toMatchObject({
      ...more,
      ...(message ? { message: expect.stringMatching(message) as string } : {}),
    })
    await expect.poll(() => alive(Number(readFileSync(pid, 'utf8')))).toBe(false)
  })

  test('ends when its caller disconnects', async () => {
    const control = new AbortController()
    const running = runProgram({ ...shell('exec sleep 600'), signal: control.signal })
    control.abort(new Error('gone'))
    await expect(running).rejects.toThrow('gone')
  })

  test('that fails means a damaged file; a missing program is a server error', async () => {
    await expect(runProgram(shell('echo broken >&2; exit 1'))).rejects.toMatchObject({
      code: 'invalid_video',
      cause: 'broken\n',
    })
    await expect(runProgram({ file: '/nonexistent/ffprobe', args: [] })).rejects.toMatchObject({
      code: 'internal_error',
    })
  })
})

describe.skipIf(!there)('with ffmpeg', () => {
  const make = (name: string, ...args: string[]) =>
    execFileSync('ffmpeg', ['-v', 'error', '-nostdin', '-y', ...args, at(name)])
  beforeAll(() => {
    const film = ['-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=16:duration=2']
    const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440:duration=2']
    make('film.mp4', ...film, '-pix_fmt', 'yuv420p', '-c:v', 'libx264')
    make('spoken.mp4', ...film, ...tone, '-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-c:a', 'aac')
    make('film.webm', ...film, '-c:v', 'libvpx')
    make('tone.wav', ...tone)
    make('tone.mp3', ...tone)
    make('tone.ogg', ...tone, '-c:a', 'libopus')
  })

  test('its features are detected', async () => {
    expect(await here.found()).toMatchObject({
      version: expect.stringMatching(/^\S+$/) as string,
      libx264: true,
      minterpolate: true,
    })
  })

  test('video and audio are recognized by their content', async () => {
    const film = { kind: 'video', width: 64, height: 48, durationMs: 2000, fps: 16, frames: 32, hasAudio: false }
    expect(await here.probe(at('film.mp4'))).toMatchObject({ ...film, codec: 'h264' })
    expect(await here.probe(at('film.webm'))).toMatchObject({
      ...film,
      codec: 'vp8',
      durationMs: expect.closeTo(2000, -1) as number,
    })
    expect(await here.probe(at('spoken.mp4'))).toMatchObject({ kind: 'video', frames: 32, hasAudio: true })
    const sound = { kind: 'audio', width: null, height: null, fps: null, frames: null, hasAudio: true }
    expect(await here.probe(at('tone.wav'))).toMatchObject({ ...sound, durationMs: 2000, codec: 'pcm_s16le' })
    expect(await here.probe(at('tone.mp3'))).toMatchObject({ ...sound, codec: 'mp3' })
    expect(await here.probe(at('tone.ogg'))).toMatchObject({ ...sound, codec: 'opus' })
  })

  test("a frame is an image of the video's size", async () => {
    for (const ms of [0, 1500])
      expect(await sharp(await here.frame(at('film.mp4'), ms)).metadata()).toMatchObject({
        format: 'png',
        width: 64,
        height: 48,
      })
    expect((await here.frame(at('film.mp4'))).equals(await here.frame(at('film.mp4'), 1500))).toBe(false)
    await expect(here.frame(at('film.mp4'), 60_000)).rejects.toMatchObject({ code: 'invalid_video' })
    await expect(here.frame(at('tone.wav'))).rejects.toMatchObject({ code: 'invalid_video' })
  })

  test('a playlist that names other files is not followed', async () => {
    writeFileSync(
      at('list.m3u8'),
      `#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile://${at('film.mp4')}\n#EXT-X-ENDLIST\n`,
    )
    writeFileSync(at('list.txt'), `ffconcat version 1.0\nfile ${at('film.mp4')}\n`)
    for (const name of ['list.m3u8', 'list.txt'])
      await expect(here.probe(at(name))).rejects.toMatchObject({ code: 'invalid_video' })
  })

  test.each(['', 'no film at all', '<?xml version="1.0"?><MPD/>', 'RIFF\x10\0\0\0AVI LIST'])(
    '%j is neither',
    async text => {
      writeFileSync(at('other'), text)
      await expect(here.probe(at('other'))).rejects.toMatchObject({ code: 'invalid_video' })
    },
  )

  test('two run at once', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => here.probe(at('film.mp4'))))
    expect(all.map(({ frames }) => frames)).toEqual(Array(6).fill(32))
  })
})
