import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeNeeds, startApp, type TestApp, workspacesIn } from '../../../_app.ts'
import { hasFfmpeg, testWithFfmpeg } from '../../../_ffmpeg.ts'
import { ask, type Json, submitted, until } from './_painter.ts'

/** Requests for a model of sd-server, from the route to the stored file. The engine is test/fixtures/sd-server.ts. */
let app: TestApp
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const path = process.env.PATH
const at = (name: string) => join(bin, name)

beforeAll(async () => {
  const fixture = join(import.meta.dirname, '../../../fixtures/sd-server.ts')
  writeFileSync(at('sd-server'), `#!/bin/sh\nexec '${process.execPath}' '${fixture}' "$@"\n`)
  chmodSync(at('sd-server'), 0o755)
  await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
    .png()
    .toFile(at('image.png'))
  if (hasFfmpeg) {
    // What sd-server writes: Motion JPEG in AVI. The odd width is one that H.264 does not allow.
    const from = [
      '-f',
      'lavfi',
      '-i',
      'testsrc=size=63x64:rate=8:duration=1.125',
      '-c:v',
      'mjpeg',
      '-pix_fmt',
      'yuvj420p',
    ]
    execFileSync('ffmpeg', ['-v', 'error', ...from, at('video.avi')])
  }
  const model = (id: string, video: string) => ({
    id,
    slug: `fake/${id}`,
    engine: 'sd-server',
    source: at('image.png'),
    devices: 'cpu',
    memory: '16MiB',
    tasks: ['slug/text-to-image', 'slug/text-to-video'],
    args: ['--image', at('image.png'), '--video', at(video)],
    stop_grace: '500ms',
    sandbox_read: [...fakeNeeds.sandbox_read, bin],
  })
  process.env.PATH = `${bin}:${path}`
  app = await startApp({ models: [model('sd', 'video.avi'), model('broken', 'image.png')] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

const resultOf = async (id: string): Promise<Json> => (await ask(app, `/slug/requests/${id}`)).body

test('an image of a text', async () => {
  const id = await submitted(app, 'fake/sd/text-to-image')
  await until(app, id, 'COMPLETED')
  expect(await resultOf(id)).toMatchObject({ seed: 7, images: [{ width: 64, height: 64, content_type: 'image/png' }] })
})

testWithFfmpeg('a video becomes MP4 with the same frames', async () => {
  const id = await submitted(app, 'fake/sd/text-to-video')
  await until(app, id, 'COMPLETED')
  const { video } = await resultOf(id)
  expect(video).toMatchObject({ content_type: 'video/mp4', width: 64, height: 64, num_frames: 9, fps: 8 })
  const bytes = Buffer.from(await (await fetch(video.url as string)).arrayBuffer())
  expect(bytes.toString('latin1', 4, 8)).toBe('ftyp')
  expect(workspacesIn(app.dataDir)).toEqual([])
})

testWithFfmpeg('a file that is no video is an error of the engine', async () => {
  const id = await submitted(app, 'fake/broken/text-to-video')
  await until(app, id, 'FAILED')
  expect(JSON.stringify(await resultOf(id))).toContain('which is no video')
})
