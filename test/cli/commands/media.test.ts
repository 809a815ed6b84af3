import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'
import { heardInWav, toneModel } from '../../server/surfaces/openai/_speech.ts'
import { runInProcess } from '../_in-process.ts'
import { temporaryFolder } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

/** `infer image`, `infer speak` and `infer transcribe` against a real server with the demo engine. */
let app: TestApp
let env: Record<string, string>
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting']
  app = await startApp({
    models: [
      { id: 'drawn', engine: 'demo', tasks, args: ['--step-ms', '0'] },
      toneModel({ tasks: ['std/audio-speech', 'std/audio-transcription'] }),
      toneModel({ id: 'other' }),
    ],
  })
  env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
})
afterAll(() => app[Symbol.asyncDispose]())

const run = (args: string[], options?: Parameters<typeof runInProcess>[2]) => runInProcess(args, env, options)
const small = ['--size', '128x64', '--steps', '1']

test('model test judges images, speech and transcripts by small jobs, of which nothing is left', async () => {
  const jobs = async () => (await run(['job', 'list', '--json'])).stdout.toString()
  const before = await jobs()
  const drawn = await run(['model', 'test', 'drawn', '--json'])
  const { models } = JSON.parse(drawn.stdout.toString()) as { models: { tests: object[] }[] }
  expect(models[0]!.tests).toEqual(
    ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting', 'std/image-generation', 'std/image-edit'].map(
      task =>
        expect.objectContaining({ task, result: 'passed', reason: null, latency_ms: expect.any(Number) as number }),
    ),
  )
  const tones = await run(['model', 'test', 'tones', '--json'])
  expect(JSON.parse(tones.stdout.toString())).toMatchObject({ passed: true })
  expect(await jobs()).toBe(before)
})

describe('image', () => {
  test('a prompt makes an image, --from edits it, --from alone makes variations', async () => {
    const folder = temporaryFolder()
    const first = await run(['image', 'A', 'cat', '--seed', '7', ...small, '--out', `${folder}/`], { isTerminal: true })
    const path = join(folder, 'a-cat-7.png')
    expect([first.exitCode, first.stdout.toString()]).toEqual([0, `${path}\n`])
    expect(await sharp(path).metadata()).toMatchObject({ format: 'png', width: 128, height: 64 })
    const edited = join(folder, 'edited.webp')
    const webp = join(folder, 'in.webp')
    await sharp(path).webp().toFile(webp)
    const second = await run(['image', 'a hat', '--from', path, '--from', webp, '--out', edited])
    expect([second.exitCode, second.stdout.toString()]).toEqual([0, `${edited}\n`])
    expect(await sharp(edited).metadata()).toMatchObject({ format: 'webp', width: 128, height: 64 })
    const third = await run(['image', '--from', path, '-n', '2', '--out', `${folder}/many/`, '--json'])
    expect(third.exitCode).toBe(0)
    const document = JSON.parse(third.stdout.toString()) as { task: string; status: string; saved: string[] }
    expect(document).toMatchObject({ task: 'std/image-edit', status: 'completed' })
    expect(document.saved).toHaveLength(2)
    const piped = await run(['image', 'a cat', ...small, '--transparent', '--out', '-'])
    expect(await sharp(piped.stdout).metadata()).toMatchObject({ format: 'png', hasAlpha: true })
  })

  test.each<[args: string[], message: string]>([
    [['--mask', 'package.json', 'x'], '--mask is for an image to edit'],
    [['x', '--out', '-', '-n', '2'], '--out - takes one image'],
    [['x', '--out', 'a.mp4'], 'is the name of a video'],
    [['x', '--out', 'a.png', '--format', 'webp'], 'means png, but --format is webp'],
    [['x', '--from', 'package.json'], 'is not a JPEG, PNG, WebP, GIF or AVIF image'],
    [['x', '--from', 'nothing.png'], 'there is no such file'],
    [['x', '--model', 'tones'], "'tones' is not a model that makes images. Available: drawn."],
  ])('%j is refused: %s', async (args, message) => {
    expect((await run(['image', ...args])).failure?.message).toContain(message)
  })
})

describe('speak and transcribe', () => {
  const text = 'The cat sat on the mat, and the dog barked at the cat.'

  test('speech is saved, or written to a pipe, and transcribed back', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'cat.wav')
    const saved = await run(['speak', text, '--voice', 'bass', '--out', path], { isTerminal: true })
    expect([saved.exitCode, saved.stdout.toString()]).toEqual([0, `${path}\n`])
    expect(saved.stderr).toBe('Model: tones. Choose another with --model: tones, other.\n')
    expect(heardInWav(readFileSync(path))).toBe(text)
    const piped = await run(['speak', 'Hello!', '--model', 'other', '--format', 'wav', '--speed', '2'])
    expect([piped.stderr, heardInWav(piped.stdout)]).toEqual(['', 'Hello!'])
    const document = await run(['speak', 'Hello!', '--out', `${folder}/`, '--json'])
    expect(JSON.parse(document.stdout.toString())).toEqual({
      model: 'tones',
      saved: join(folder, 'hello.mp3'),
      bytes: readFileSync(join(folder, 'hello.mp3')).length,
      content_type: 'audio/mpeg',
      job_id: expect.stringMatching(/^job_/) as string,
    })

    const heard = await run(['transcribe', path])
    expect([heard.exitCode, heard.stdout.toString(), heard.stderr]).toEqual([0, `${text}\n`, ''])
    const fromInput = await run(['transcribe', '-'], { input: piped.stdout })
    expect(fromInput.stdout.toString()).toBe('Hello!\n')
    const subtitles = await run(['transcribe', path, '--format', 'srt', '--out', join(folder, 'cat.srt')])
    expect(subtitles.stdout.toString()).toBe(`${join(folder, 'cat.srt')}\n`)
    expect(readFileSync(join(folder, 'cat.srt'), 'utf8')).toMatch(/^1\n00:00:00,\d{3} --> 00:00:\d\d,\d{3}\nThe cat/)
    const words = await run(['transcribe', path, '--words', '--json'])
    const { words: list } = JSON.parse(words.stdout.toString()) as { words: { word: string }[] }
    expect(list.map(({ word }) => word)).toEqual(text.split(' '))
    const url = `data:audio/wav;base64,${readFileSync(path, 'base64')}`
    expect((await run(['transcribe', url, '--format', 'vtt'])).stdout.toString()).toMatch(/^WEBVTT\n/)
    expect(readdirSync(folder).filter(name => name.endsWith('.part'))).toEqual([])
  })

  test.each<[args: string[], message: string]>([
    [['speak', 'x', '--out', '-', '--json'], 'Remove --json'],
    [['speak', 'x', '--out', 'a.wav', '--format', 'mp3'], 'means wav, but --format is mp3'],
    [['speak', 'x', '--reference-text', 'y'], '--reference-text is for --reference'],
    [['speak', 'x', '--voice', 'nobody'], "'tones' has no voice 'nobody'"],
    [['speak', 'x', '--model', 'drawn'], "'drawn' is not a model that synthesizes speech. Available: tones, other."],
    [['transcribe', 'nothing.mp3'], 'there is no such file'],
    [['transcribe', 'package.json', '--words'], '--words is for --format verbose'],
    [['transcribe', 'package.json', '--json', '--format', 'srt'], 'Remove --format srt'],
    [['transcribe', 'package.json'], "The audio in 'file'"],
    [['transcribe', 'package.json', '--translate'], 'offers no model that translates speech'],
  ])('%j is refused: %s', async (args, message) => {
    expect((await run(args)).failure?.message).toContain(message)
  })

  test('a stream that fails in the middle keeps its text and ends with the error', async () => {
    const server = await fakeServer((seen, response) => {
      if (seen.path === '/api/model-status')
        return answer(response, 200, {
          models: [{ model_id: 'far', status: 'warm', tasks: ['std/audio-transcription'] }],
        })
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: {"type":"transcript.text.delta","delta":"The cat\\u001b[31m"}\n\n')
      response.end('data: {"error":{"code":"worker_error","message":"The engine gave up."}}\n\n')
    })
    const own = { INFER_URL: server.url, INFER_TOKEN: 'infer-x' }
    const { exitCode, stdout, failure } = await runInProcess(['transcribe', 'https://a/b.mp3'], own, {
      isTerminal: true,
    })
    expect([exitCode, stdout.toString(), failure?.message]).toEqual([1, 'The cat[31m', 'The engine gave up.'])
    expect(server.seen.at(-1)!.body).toEqual({
      model: 'far',
      response_format: 'json',
      stream: true,
      url: 'https://a/b.mp3',
    })
  })
})
