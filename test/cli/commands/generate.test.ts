import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { failureOfUsage, openProgram } from '../../../cli/commands/program.ts'
import { exitCodeOf, failureOfThrown } from '../../../cli/terminal/exit-codes.ts'
import { openTerminal } from '../../../cli/terminal/terminal.ts'
import type { Failure } from '../../../core/failure.ts'
import { type Ended, entry, infer, json, temporaryFolder } from '../_infer.ts'
import {
  breaks,
  done,
  event,
  failed,
  file,
  jobId,
  jobServer,
  pictures,
  png,
  record,
  refuses,
  type Script,
  says,
  silent,
  snapshot,
  streams,
} from '../_jobs.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

/** A server whose job ends at the first poll, unless the script says otherwise. */
async function setUp(script: Script = {}) {
  const held: { url: string } = { url: '' }
  const server = await jobServer({
    events: [streams([snapshot(record({ status: 'processing', progress: 0.5 })), event('job.completed', {})])],
    job: [(...args) => says(done(held.url))(...args)],
    ...script,
  })
  held.url = server.url
  const folder = temporaryFolder()
  const run = (...args: string[]): Promise<Ended> => infer(args, { env: server.env })
  const body = () => server.asked('POST /api/jobs')[0]?.body as { task: string; model_id: string; inputs: object }
  return { ...server, folder, run, body }
}

test('an image is submitted, followed and saved by prompt and seed; standard output has only the path', async () => {
  const { run, folder, body, seen } = await setUp()
  const { exitCode, stdout, stderr } = await run(
    'run',
    'demo/picture',
    'A',
    'Cat,',
    'sitting!',
    '--task',
    'text-to-image',
    '--out',
    folder,
  )
  const path = join(folder, 'a-cat-sitting-42.png')
  expect([exitCode, stdout]).toEqual([0, `${path}\n`])
  expect(readFileSync(path)).toEqual(png)
  expect(stderr.trimEnd().split('\n')).toEqual([
    `demo/picture: ${jobId}`,
    'demo/picture: 50 %',
    'demo/picture: completed',
    `1×1, ${png.length} B, seed 42, made in 3 s`,
  ])
  expect(body()).toEqual({
    task: 'slug/text-to-image',
    model_id: 'demo/picture',
    inputs: { prompt: 'A Cat, sitting!' },
  })
  // A signed URL is downloaded without the token.
  expect(seen.find(({ path: asked }) => asked.startsWith('/files/'))?.authorization).toBeUndefined()
  expect(readdirSync(folder)).toEqual(['a-cat-sitting-42.png'])
})

test('every flag reaches the server under the field name of the API', async () => {
  const { run, folder, body } = await setUp()
  const picture = join(folder, 'photo')
  writeFileSync(picture, png)
  const flags = [
    '--negative-prompt',
    'dog',
    '--expand-prompt',
    '--seed',
    '7',
    '--steps',
    '12',
    '--guidance',
    '3.5',
    '--resolution',
    '480p',
  ]
  const more = ['--aspect', '1:1', '--count', '2', '--preset', 'fast_draft', '--strength', '0.4', '--format', 'webp']
  const media = [
    '--image',
    picture,
    '--mask',
    'https://h/mask.png',
    '--set',
    'style="ink"',
    '--set',
    'depth=3',
    '--set',
    'note=a b',
  ]
  const { exitCode } = await run(
    'run',
    'draw/inpainting',
    '--prompt',
    'x',
    ...flags,
    ...more,
    ...media,
    '--priority',
    'high',
    '--no-wait',
  )
  expect([exitCode, body()]).toEqual([
    0,
    {
      task: 'slug/inpainting',
      model_id: 'demo/picture',
      priority: 'high',
      inputs: {
        prompt: 'x',
        negative_prompt: 'dog',
        enable_prompt_expansion: true,
        image_url: `data:image/png;base64,${png.toString('base64')}`,
        mask_url: 'https://h/mask.png',
        seed: 7,
        num_inference_steps: 12,
        guidance_scale: 3.5,
        strength: 0.4,
        resolution: '480p',
        aspect_ratio: '1:1',
        num_images: 2,
        preset: 'fast_draft',
        output_format: 'webp',
        style: 'ink',
        depth: 3,
        note: 'a b',
      },
    },
  ])
})

test.each([
  ['the id', ['demo/picture', 'x', '--task', 'slug/text-to-image'], 'slug/text-to-image'],
  ['the displayed slug', ['draw/text-to-image', 'x'], 'slug/text-to-image'],
  ['the id with the name of the task', ['demo/picture/text-to-image', 'x'], 'slug/text-to-image'],
  ['the given inputs', ['demo/picture', 'x'], 'slug/text-to-image'],
  ['the only task', ['clip/fast', 'x', '--frames', '9', '--fps', '24'], 'slug/text-to-video'],
])('the task is chosen from %s', async (_, args, task) => {
  const { run, body } = await setUp()
  expect(await run('run', ...args, '--no-wait')).toEqual({ exitCode: 0, stdout: `${jobId}\n`, stderr: '' })
  expect(body().task).toBe(task)
})

test('--size is sent, a piped prompt is read, and --json prints the submitted job', async () => {
  const { env, body } = await setUp()
  const ended = await infer(['run', 'draw/text-to-image', '--size', '640x480', '--no-wait', '--json'], {
    env,
    input: 'a dog\n',
  })
  expect(json(ended)).toEqual({ id: jobId, queue_id: null, status: 'pending' })
  expect(body().inputs).toEqual({ prompt: 'a dog', image_size: { width: 640, height: 480 } })
})

test('a file with the chosen name is not overwritten, except when --out names it', async () => {
  const { run, folder } = await setUp()
  writeFileSync(join(folder, 'x-42.png'), 'mine')
  const first = await run('run', 'draw/text-to-image', 'x', '--out', `${folder}/`)
  const second = await run('run', 'draw/text-to-image', 'x', '--out', folder)
  expect([first.stdout, second.stdout]).toEqual([`${folder}/x-42-2.png\n`, `${folder}/x-42-3.png\n`])
  expect(readFileSync(join(folder, 'x-42.png'), 'utf8')).toBe('mine')
  const named = await run('run', 'draw/text-to-image', 'x', '--out', join(folder, 'x-42.png'))
  expect([named.exitCode, readFileSync(join(folder, 'x-42.png'))]).toEqual([0, png])
  const below = await run('run', 'draw/text-to-image', 'x', '--out', join(folder, 'new/deep/'))
  expect(below.stdout).toBe(`${folder}/new/deep/x-42.png\n`)
})

test('several images are numbered, and every path is printed', async () => {
  const url = { now: '' }
  const { run, folder, url: own, body } = await setUp({ job: [(...args) => says(done(url.now, {}, 3))(...args)] })
  url.now = own
  const { stdout } = await run('run', 'draw/text-to-image', 'x', '--count', '3', '--out', join(folder, 'cat.png'))
  expect(stdout).toBe([1, 2, 3].map(n => `${folder}/cat-${n}.png\n`).join(''))
  expect(body().inputs).toEqual({ prompt: 'x', num_images: 3, output_format: 'png' })
})

test('--out - writes the image itself', async () => {
  const { env } = await setUp()
  const child = spawn(process.execPath, [entry, 'run', 'draw/text-to-image', 'x', '--out', '-'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const pieces: Buffer[] = []
  child.stdout.on('data', piece => pieces.push(piece as Buffer))
  const [exitCode] = (await once(child, 'close')) as [number]
  expect([exitCode, Buffer.concat(pieces)]).toEqual([0, png])
})

test('--json prints the record and the paths of its files, and nothing on standard error', async () => {
  const { run, folder } = await setUp()
  const ended = await run('run', 'draw/text-to-image', 'x', '--out', folder, '--json')
  expect([ended.exitCode, ended.stderr]).toEqual([0, ''])
  expect(json(ended)).toMatchObject({ id: jobId, status: 'completed', saved: [join(folder, 'x-42.png')] })
})

test('a failed job exits with 1 and its reason, and saves nothing', async () => {
  const { run, folder } = await setUp({ job: [says(failed('The engine ran out of memory.'))] })
  const { exitCode, stdout, stderr } = await run('run', 'draw/text-to-image', 'x', '--out', folder)
  expect([exitCode, stdout, readdirSync(folder)]).toEqual([1, '', []])
  expect(stderr).toContain(`Error: The job ${jobId} failed: The engine ran out of memory.`)
})

test('a submission without an answer is repeated with the same idempotency key', async () => {
  const { run, seen, asked } = await setUp({ submit: [breaks, says({ id: jobId, status: 'pending' }, 202)] })
  const { exitCode, stderr } = await run('run', 'draw/text-to-image', 'x', '--no-wait')
  expect([exitCode, asked('POST /api/jobs')]).toEqual([0, [expect.anything(), expect.anything()]])
  expect(stderr).toContain('Retrying.')
  const keys = seen.filter(({ path }) => path === '/api/jobs').map(({ key }) => key)
  expect(keys[0]).toMatch(/^[\w-]{36}$/)
  expect(new Set(keys).size).toBe(1)
})

test('an error of the server is printed once, with its message', async () => {
  const refused = refuses(400, 'invalid_image', "'image_url' is no picture.")
  const { run, asked } = await setUp({ submit: [refused] })
  const { exitCode, stderr } = await run('run', 'draw/text-to-image', 'x')
  expect([exitCode, stderr.split('\n')[0], asked('POST /api/jobs').length]).toEqual([
    1,
    "Error: 'image_url' is no picture.",
    1,
  ])
})

test('an interrupted download is restarted and leaves no partial file', async () => {
  const half = (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': String(png.length) })
    response.write(png.subarray(0, 20), () => response.destroy())
  }
  const short = (response: ServerResponse) => void response.writeHead(200).end(png.subarray(0, 30))
  const { run, folder, asked } = await setUp({ files: [half, short, file] })
  const { exitCode, stdout } = await run('run', 'draw/text-to-image', 'x', '--out', folder)
  expect([exitCode, stdout, asked('/files/').length]).toEqual([0, `${folder}/x-42.png\n`, 3])
  expect(readFileSync(join(folder, 'x-42.png'))).toEqual(png)
  expect(readdirSync(folder)).toEqual(['x-42.png'])
})

test('expired files are reported as expired, and no file is left', async () => {
  const { run, folder } = await setUp({ files: [refuses(410, 'output_expired', 'The file is no longer kept.')] })
  const { exitCode, stdout, stderr } = await run('run', 'draw/text-to-image', 'x', '--out', join(folder, 'a.png'))
  expect([exitCode, stdout, readdirSync(folder)]).toEqual([1, '', []])
  expect(stderr).toContain('The file is no longer kept.')
})

/** The error of a command line, in this process: nothing is written and no request is sent. */
async function refusalOf(args: readonly string[], env: Record<string, string>): Promise<Failure> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const stdin = Readable.from([]) as unknown as NodeJS.ReadStream
  const terminal = openTerminal({ stdin, stdout: process.stdout, stderr: process.stderr, env: {} })
  const program = await openProgram(args, terminal)
  try {
    await program.parseAsync([...args], { from: 'user' })
  } catch (thrown) {
    return failureOfUsage(thrown, args, program) ?? failureOfThrown(thrown)
  } finally {
    vi.unstubAllEnvs()
  }
  throw new Error('It was not refused.')
}

/** A child process that generates an image, with its output. */
function start(env: Record<string, string>, ...args: string[]) {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', piece => (said.stdout += String(piece)))
  child.stderr.on('data', piece => (said.stderr += String(piece)))
  const ended = once(child, 'close').then(([exitCode]) => ({ exitCode: exitCode as number, ...said }))
  return {
    interrupt: () => child.kill('SIGINT'),
    ended,
    says: (text: string) => expect.poll(() => said.stderr).toContain(text),
  }
}

const working = streams([snapshot(record({ status: 'processing', progress: 0.5 }))], { hold: true })

test('Ctrl-C cancels the job, reports it and exits with 130', async () => {
  const { env, asked, folder } = await setUp({ events: [working], cancel: [says(record({ status: 'cancelled' }))] })
  const child = start(env, 'run', 'draw/text-to-image', 'x', '--out', folder)
  await child.says('50 %')
  child.interrupt()
  const { exitCode, stdout, stderr } = await child.ended
  expect([exitCode, stdout, asked('/cancel').length]).toEqual([130, '', 1])
  expect(stderr).toContain(`Cancelling ${jobId}. Press Ctrl-C again to leave it running.\n`)
  expect(stderr).toMatch(new RegExp(`Cancelled ${jobId}\\.\n$`))
  expect(stderr).not.toContain('Error')
})

test('a second Ctrl-C exits without the job and says how to find it', async () => {
  const { env, asked } = await setUp({ events: [working], cancel: [silent] })
  const child = start(env, 'run', 'draw/text-to-image', 'x')
  await child.says('50 %')
  child.interrupt()
  await expect.poll(() => asked('/cancel').length).toBe(1)
  child.interrupt()
  const { exitCode, stderr } = await child.ended
  expect([exitCode, stderr]).toEqual([130, expect.stringContaining(`Follow it: infer job watch ${jobId}`)])
})

test('the files of a job that ended before the cancel reached it are saved', async () => {
  const streaming: { response?: ServerResponse } = {}
  const { env, folder } = await setUp({
    events: [
      (response, ...rest) => {
        streaming.response = response
        working(response, ...rest)
      },
    ],
    cancel: [
      (...args) => {
        refuses(409, 'job_already_finished')(...args)
        streaming.response?.end(event('job.completed', {}))
      },
    ],
  })
  const child = start(env, 'run', 'draw/text-to-image', 'x', '--out', folder)
  await child.says('50 %')
  child.interrupt()
  const { exitCode, stdout } = await child.ended
  expect([exitCode, stdout, readFileSync(join(folder, 'x-42.png'))]).toEqual([130, `${folder}/x-42.png\n`, png])
})

test.each<[args: string[], said: string]>([
  [['run', 'draw/text-to-image'], 'There is no prompt'],
  [['run', 'draw/text-to-image', 'x', '--system', 'y'], '--system is for chat models'],
  [['run', 'draw/text-to-image', 'x', '--frames', '9'], 'text-to-image takes no --frames'],
  [['run', 'draw/text-to-image', 'x', '--video', 'http://h/v.mp4'], 'takes no --video'],
  [['run', 'draw/inpainting', 'x', '--image', 'http://h/a.png'], 'needs --mask <file>'],
  [['run', 'demo/picture', 'x', '--image', 'http://h/a.png'], 'Choose one with --task: text-to-image, inpainting'],
  [['run', 'demo/picture', 'x', '--task', 'text-to-video'], 'does not do text-to-video'],
  [['run', 'tiny-chat', 'x', '--frames', '9'], "'tiny-chat' does not make images or videos, and --frames is"],
  [['run', 'nothing', 'x', '--out', 'a.png'], "no model and no slug 'nothing'"],
  [['run', 'draw/text-to-image', 'x', '--out', '/dev/null/none/a.png'], 'There is no folder /dev/null/none'],
  [['run', 'draw/text-to-image', 'x', '--out', 'a.mp4'], 'is the name of a video'],
  [['run', 'draw/text-to-image', 'x', '--out', 'a.png', '--format', 'webp'], 'means png, but --format is webp'],
  [['run', 'draw/text-to-image', 'x', '--prompt', 'y'], 'given twice'],
  [['run', 'draw/text-to-image', 'x', '--set', 'prompt=y'], 'given twice'],
  [['run', 'draw/text-to-image', 'x', '--set', 'y'], 'name=value'],
  [['run', 'draw/text-to-image', 'x', '--size', 'big'], 'width x height'],
  [['run', 'draw/text-to-image', 'x', '--priority', 'now'], 'low, normal, high'],
  [['run', 'draw/text-to-image', 'x', '--steps', '51'], 'whole number from 1 to 50'],
  [['run', 'draw/text-to-image', 'x', '--aspect', '4:3'], '16:9, 9:16, 1:1'],
  [['run', 'draw/text-to-image', 'x', '--task', 'sing'], 'The tasks are'],
  [['run', 'draw/text-to-image', 'x', '--image', '/dev/null/a.png'], 'cannot be read'],
  [['run', 'draw/text-to-image', 'x', '--image', 'http://h/a.png'], 'takes no --image'],
  [['run', 'draw/text-to-imag', 'x'], "Did you mean 'draw/text-to-image'?"],
  [['run', 'tiny-cht', 'x'], "Did you mean 'tiny-chat'?"],
  [['run', 'draw/inpaintin', 'x', '--steps', '9'], "Did you mean 'draw/inpainting'?"],
  [['video', 'clip/fats', 'x'], "Did you mean 'clip/fast'?"],
  [['video', 'draw/text-to-image', 'x'], 'does not make that'],
  [['video', 'tiny-chat', 'x'], 'Available: demo/clip, clip/fast.'],
  [['video', 'clip/fast', 'x', '--all-formats', '--aspect', '1:1'], 'Remove one of the options'],
  [['video', 'clip/fast', 'x', '--all-formats', '--out', 'a.mp4'], 'Name a folder'],
  [['video', 'clip/fast'], 'There is no prompt'],
])('%j is refused in one sentence, and nothing is submitted', async (args, said) => {
  const { env, asked } = await setUp()
  const failure = await refusalOf(args, env)
  expect(failure.message).toContain(said)
  expect([failure.message.split('\n').length, [1, 64, 74].includes(exitCodeOf(failure)), asked('POST')]).toEqual([
    1,
    true,
    [],
  ])
})

test('a file that is too large or not an image is refused before anything is sent', async () => {
  const { run, folder, asked } = await setUp()
  const large = join(folder, 'large.png')
  writeFileSync(large, Buffer.concat([png, Buffer.alloc(10 << 20)]))
  const text = join(folder, 'a.png')
  writeFileSync(text, 'not a picture')
  const both = ['--mask', 'http://h/m.png']
  const first = await run('run', 'draw/inpainting', 'x', ...both, '--image', large)
  expect([first.exitCode, first.stderr]).toEqual([
    64,
    expect.stringMatching(/large\.png has 10\.0 MiB; --image takes at most 10\.0 MiB\. Make it smaller\./),
  ])
  const second = await run('run', 'draw/inpainting', 'x', ...both, '--image', text)
  expect([second.exitCode, second.stderr]).toEqual([
    64,
    expect.stringContaining('is not a JPEG, PNG, WebP, GIF or AVIF image'),
  ])
  mkdirSync(join(folder, 'b.png'))
  expect((await run('run', 'draw/inpainting', 'x', ...both, '--image', join(folder, 'b.png'))).exitCode).toBe(74)
  expect(asked('POST')).toEqual([])
})

test('a model that is switched off is reported as switched off', async () => {
  const { run } = await setUp({ models: [{ ...pictures, enabled: false }] })
  const { exitCode, stderr } = await run('run', 'draw/text-to-image', 'x')
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining("'draw/text-to-image' is disabled")])
})

test.skipIf(!hasTerminal)('in a terminal there is a bar with percent and the reason to wait, then a path', async () => {
  const url = { now: '' }
  const stream: { to?: ServerResponse } = {}
  const waiting = record({ queue_position: 2, eta_seconds: 90, waiting_for: { reason: 'model_loading', detail: '' } })
  const {
    env,
    folder,
    url: own,
  } = await setUp({
    events: [
      (response, ...rest) => {
        stream.to = response
        streams([snapshot(waiting)], { hold: true })(response, ...rest)
      },
    ],
    job: [(...args) => says(done(url.now))(...args)],
  })
  url.now = own
  const screen = inTerminal(['run', 'draw/text-to-image', 'x', '--out', folder], env)
  await screen.sees('waiting  2 ahead of it in the queue  about 1 min left  its model is loading')
  stream.to!.write(event('job.started', {}) + event('job.progress', { progress: 0.42, eta_seconds: 8 }))
  await screen.sees('━━━━━━━━━━──────────────  42 %  about 8 s left')
  stream.to!.end(event('job.completed', {}))
  await screen.sees('seed 42')
  await screen.sees(`${folder}/x-42.png`)
  expect(await screen.ends()).toBe(0)
})
