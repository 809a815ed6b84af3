import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { expect, onTestFinished, test } from 'vitest'
import { generationTasks } from '../../../core/schemas/task.ts'
import { startApp } from '../../_app.ts'
import { entry, infer, json, temporaryFolder } from '../_infer.ts'

/** The command line as a child process, a real server and the demo engine; other programs open the files. */
const demo = {
  id: 'infer/demo',
  engine: 'demo',
  slug: 'demo',
  tasks: [...generationTasks],
  devices: 'cpu',
  memory: '64MiB',
  concurrency: 2,
}
const hasFfmpeg = spawnSync('ffprobe', ['-version']).status === 0

async function setUp() {
  const app = await startApp({ models: [demo] })
  onTestFinished(() => app[Symbol.asyncDispose]())
  const folder = temporaryFolder()
  const env = { INFER_URL: app.url, INFER_TOKEN: app.secret }
  return { app, folder, env, run: (...args: string[]) => infer(args, { env }) }
}

interface Probed {
  width: number
  height: number
  nb_read_frames: string
  r_frame_rate: string
}
function probe(path: string): Probed {
  const entries = 'stream=width,height,nb_read_frames,r_frame_rate'
  const args = ['-v', 'error', '-count_frames', '-select_streams', 'v', '-show_entries', entries, '-of', 'json', path]
  const { stdout } = spawnSync('ffprobe', args, { encoding: 'utf8' })
  return (JSON.parse(stdout) as { streams: [Probed] }).streams[0]
}

test('an image has the requested size; the same seed gives the same bytes, in a second file', async () => {
  const { run, folder } = await setUp()
  const asked = ['run', 'demo/text-to-image', 'A cat', '--size', '320x192', '--seed', '7', '--out', folder]
  const [first, second] = [await run(...asked), await run(...asked)]
  const paths = [join(folder, 'a-cat-7.png'), join(folder, 'a-cat-7-2.png')] as const
  expect([first.stdout, second.stdout]).toEqual(paths.map(path => `${path}\n`))
  expect(first.stderr).toContain('320×192')
  expect(first.stderr).toContain('seed 7')
  const { format, width, height } = await sharp(paths[0]).metadata()
  expect([format, width, height]).toEqual(['png', 320, 192])
  expect(readFileSync(paths[0])).toEqual(readFileSync(paths[1]))
  // The image shows something: it has more than one colour.
  expect((await sharp(paths[0]).stats()).entropy).toBeGreaterThan(1)

  const masked = ['--image', paths[0], '--mask', paths[0], '--seed', '8', '--out', join(folder, 'other.webp')]
  const inpainted = await run('run', 'demo', 'A dog', '--task', 'inpainting', ...masked)
  expect([inpainted.exitCode, inpainted.stdout]).toEqual([0, `${folder}/other.webp\n`])
  const other = await sharp(join(folder, 'other.webp')).metadata()
  expect([other.format, other.width, other.height]).toEqual(['webp', 320, 192])
})

test('an image that is too large for a request is uploaded first', async () => {
  const { run, folder } = await setUp()
  const large = join(folder, 'noise.png')
  const raw = { width: 1300, height: 1200, channels: 3 } as const
  await sharp(randomBytes(1300 * 1200 * 3), { raw })
    .png({ compressionLevel: 0 })
    .toFile(large)
  const { exitCode, stdout, stderr } = await run(
    'run',
    'demo/image-to-image',
    'x',
    '--image',
    large,
    '--size',
    '64x64',
    '--seed',
    '1',
    '--out',
    folder,
  )
  expect([exitCode, stdout, stderr.split('\n')[0]]).toEqual([0, `${folder}/x-1.png\n`, 'Sending noise.png (4.5 MiB)…'])
  const job = json(await run('job', 'list', '--json')) as { jobs: { id: string }[] }
  const { inputs } = json(await run('job', 'show', job.jobs[0]!.id, '--json')) as { inputs: { image: string } }
  expect(inputs.image).toMatch(/^file-/)
})

test.skipIf(!hasFfmpeg)('three videos at once, one per aspect ratio, have the requested length and rate', async () => {
  const { run, folder } = await setUp()
  const length = ['--frames', '6', '--fps', '12', '--steps', '2', '--seed', '3', '--resolution', '480p']
  const ended = await run(
    'video',
    'demo',
    '--prompt',
    'A cat jumps',
    '--all-formats',
    ...length,
    '--out',
    `${folder}/clips/`,
  )
  expect(ended.exitCode).toBe(0)
  const names = ['16x9', '9x16', '1x1'].map(shape => `${folder}/clips/a-cat-jumps-3-${shape}.mp4`)
  expect(ended.stdout.trimEnd().split('\n').sort()).toEqual(names.toSorted())
  expect(
    names
      .map(probe)
      .map(({ width, height, nb_read_frames, r_frame_rate }) => [width, height, nb_read_frames, r_frame_rate]),
  ).toEqual([
    [832, 480, '6', '12/1'],
    [480, 832, '6', '12/1'],
    [624, 624, '6', '12/1'],
  ])
})

test('a job is submitted without waiting, listed, shown, followed, saved, repeated and deleted', async () => {
  const { run, folder } = await setUp()
  const submitted = await run('run', 'demo/text-to-image', 'a dog', '--size', '64x64', '--seed', '5', '--no-wait')
  const id = submitted.stdout.trimEnd()
  expect([submitted.exitCode, submitted.stderr, id]).toEqual([0, '', expect.stringMatching(/^job_/)])
  const watched = await run('job', 'watch', id.slice(-8), '--out', folder)
  expect([watched.exitCode, watched.stdout]).toEqual([0, `${folder}/a-dog-5.png\n`])
  expect((await sharp(join(folder, 'a-dog-5.png')).metadata()).width).toBe(64)

  const listed = json(await run('job', 'list', '--status', 'completed', '--json')) as { jobs: { id: string }[] }
  expect(listed.jobs.map(job => job.id)).toEqual([id])
  const shown = await run('job', 'show', id)
  expect(shown.stdout).toContain('prompt               a dog\n')
  expect(shown.stdout).toMatch(/\n {2}http:\/\/127\.0\.0\.1:\d+\/files\/file-\w+\/\S+sig=\S+\n/)
  const logs = await run('job', 'logs', id)
  expect(logs.exitCode).toBe(0)

  const again = (await run('job', 'retry', id)).stdout.trimEnd()
  expect(again).toMatch(/^job_/)
  expect(again).not.toBe(id)
  expect((await run('job', 'watch', again)).stdout).toMatch(new RegExp(`^${again} completed {2}64×64, .*seed 5`))
  expect((await run('job', 'cancel', again)).exitCode).toBe(1)
  expect((await run('job', 'delete', id, '--yes')).stdout).toBe(`${id} is deleted.\n`)
  expect((await run('job', 'show', id)).exitCode).toBe(1)
})

/** A child process of the command line, with its output. */
function start(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [entry, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', piece => (said.stdout += String(piece)))
  child.stderr.on('data', piece => (said.stderr += String(piece)))
  const ended = once(child, 'close').then(([exitCode]) => ({ exitCode: exitCode as number | null, ...said }))
  const says = (text: string | RegExp) =>
    expect.poll(() => said.stdout + said.stderr, { timeout: 60_000 }).toMatch(text)
  return { kill: (signal: NodeJS.Signals) => child.kill(signal), ended, says }
}

const long = ['demo/text-to-video', 'a long one', '--frames', '300', '--fps', '30']

test.skipIf(!hasFfmpeg)('Ctrl-C cancels the job on the server', async () => {
  const { env, folder, run } = await setUp()
  const child = start(['video', ...long, '--out', folder], env)
  await child.says(/: (working|\d+ %)/)
  child.kill('SIGINT')
  const { exitCode, stdout, stderr } = await child.ended
  expect([exitCode, stdout, readdirSync(folder)]).toEqual([130, '', []])
  expect(stderr).toMatch(/Cancelled job_\w+\.\n$/)
  const { jobs } = json(await run('job', 'list', '--json')) as { jobs: { status: string }[] }
  expect(jobs.map(({ status }) => status)).toEqual(['cancelled'])
})

test.skipIf(!hasFfmpeg)(
  'after a server is killed and restarted on another port, the video is still saved',
  async () => {
    const dataDir = temporaryFolder()
    const folder = temporaryFolder()
    const serve = () => start(['serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0'])
    const first = serve()
    await first.says(/ready http/)
    const child = start([
      'video',
      'demo',
      'a cat',
      '--frames',
      '40',
      '--seed',
      '9',
      '--out',
      folder,
      '--data-dir',
      dataDir,
    ])
    await child.says(/: (working|\d+ %)/)
    first.kill('SIGKILL')
    await first.ended
    await child.says(/Reconnecting to/)
    const second = serve()
    const { exitCode, stdout, stderr } = await child.ended
    expect([exitCode, stdout]).toEqual([0, `${folder}/a-cat-9.mp4\n`])
    expect(stderr).toContain('Connected again.')
    expect(existsSync(join(folder, 'a-cat-9.mp4'))).toBe(true)
    expect(probe(join(folder, 'a-cat-9.mp4')).nb_read_frames).toBe('40')
    second.kill('SIGTERM')
    await second.ended
  },
)
