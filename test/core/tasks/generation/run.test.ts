import { createSecretKey, randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openCpu } from '../../../../core/cpu/cpu.ts'
import { Failure } from '../../../../core/failure.ts'
import { type Files, openFiles } from '../../../../core/files/files.ts'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { openFfmpeg } from '../../../../core/media/ffmpeg.ts'
import { Model } from '../../../../core/models/model.ts'
import { openRegistry } from '../../../../core/models/registry.ts'
import { type GenerationTask, generationTasks } from '../../../../core/schemas/task.ts'
import { openSqliteStore } from '../../../../core/store/sqlite/store.ts'
import type { JobRecord, LogLine, Store } from '../../../../core/store/store.ts'
import { fillMedia, type TakenMedia } from '../../../../core/tasks/generation/media.ts'
import { prepareGeneration } from '../../../../core/tasks/generation/prepare.ts'
import type { GenerationResult } from '../../../../core/tasks/generation/result.ts'
import { openGenerationRunner } from '../../../../core/tasks/generation/run.ts'
import type { GenerationInputs } from '../../../../core/tasks/protocols/generation-call.ts'
import { openFleet } from '../../../../gpu/fleet.ts'
import { traitsOf } from '../../../../gpu/presets/presets.ts'
import { fakeModel } from '../../../_app.ts'
import { hasFfmpeg } from '../../../_ffmpeg.ts'
import { type LeasingFleet, leasing } from '../../../gpu/_leasing.ts'

const organizationId = newId('org')
const model = Model.parse(fakeModel('painter', [], { tasks: [...generationTasks], extra_params: ['shift'] }))
const limits = { link_lifetime: 86_400_000, output_size: 4 << 20, cancel_grace: 100 }

let dataDir: string
let store: Store
let files: Files
let fleet: LeasingFleet
let lines: string[] = []
const log = openLog('info', line => void lines.push(line))
const cpu = openCpu()
const ffmpeg = openFfmpeg({ environment: process.env })
const nowhere = openFfmpeg({ environment: { PATH: '/nowhere' } })
const registry = openRegistry({ models: [model], defaults: () => [], traits: traitsOf })

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'infer-runner-'))
  store = await openSqliteStore({ dataDir, log, minFreeBytes: 0, ballastBytes: 0, onFatal() {} })
  files = await openFiles({ dataDir, store, linkKey: createSecretKey(randomBytes(32)), limits, log })
  const opened = await openFleet({
    models: registry.all,
    dataDir,
    bootId: 'boot-runner',
    log,
    limits: { engine_backoff: 100, order_bound: 1, cancel_grace: 300 },
  })
  fleet = leasing(opened, registry.all())
  await store.organizations.create({
    id: organizationId,
    name: 'painters',
    plan: 'free',
    requestsPerMinute: null,
    jobsPerMinute: null,
    createdAt: Date.now(),
  })
})
afterAll(async () => {
  await fleet.close(0)
  await files.close()
  await store.close()
  await cpu.close()
  rmSync(dataDir, { recursive: true, force: true })
})
beforeEach(() => void (lines = []))

const small = { width: 64, height: 64, num_frames: 9, fps: 8, seed: 7 }

function jobOf(task: GenerationTask, body: object, taken: TakenMedia = {}): JobRecord {
  const prepared = prepareGeneration(task, { prompt: 'a cat', ...small, ...body }, model)
  return {
    id: newId('job'),
    organizationId,
    tokenId: newId('tok'),
    task,
    modelId: model.id,
    slug: null,
    inputs: JSON.stringify(fillMedia(prepared, taken)),
    priority: 0,
    rank: 0,
    maxAttempts: 3,
    startBy: null,
    timeoutMs: null,
    retentionMs: 3_600_000,
    notBefore: 0,
    createdAt: Date.now(),
    metadata: null,
    kind: 'async',
    status: 'processing',
    attempt: 1,
    claims: 1,
    boot: 'boot-runner',
    engineId: null,
    result: null,
    error: null,
    usage: null,
    cost: null,
    updatedAt: Date.now(),
    startedAt: Date.now(),
    finishedAt: null,
    expiresAt: null,
  } as JobRecord
}

const download = () => Promise.reject(new Error('Nothing is downloaded here'))

interface Run {
  signal?: AbortSignal
  /** Called with every progress. */
  progress?: (fraction: number) => void
  media?: typeof ffmpeg
}
async function run(job: JobRecord, { signal = new AbortController().signal, progress, media = ffmpeg }: Run = {}) {
  const runner = openGenerationRunner({ files, cpu, ffmpeg: media, log, registry, limits, download })
  const said: string[] = []
  const fractions: number[] = []
  using lease = await fleet.lease(model, { waitMs: 20_000 })
  const ran = await runner(job, lease, signal, {
    progress(fraction) {
      fractions.push(fraction)
      progress?.(fraction)
    },
    log: (_level: LogLine['level'], message) => void said.push(message),
  })
  const heard = JSON.parse(said[0]!) as GenerationInputs & { folder: string; model: string; task: string }
  return { runner, ran, result: JSON.parse(ran.result as string) as GenerationResult, heard, said, fractions }
}
const refusal = async (job: JobRecord, options?: Run): Promise<Failure> => {
  const thrown: unknown = await run(job, options).then(
    () => new Error('it went well'),
    (reason: unknown) => reason,
  )
  if (thrown instanceof Failure) return thrown
  throw thrown
}
/** Files of organizations, and folders of runs. */
const kept = () => [
  ...(existsSync(join(dataDir, 'files', organizationId)) ? readdirSync(join(dataDir, 'files', organizationId)) : []),
  ...readdirSync(join(dataDir, 'files', 'incoming')),
]
const workspaces = () =>
  readdirSync(join(dataDir, 'work'), { recursive: true, encoding: 'utf8' }).filter(name => name.includes('job_'))

test.each(['png', 'jpeg', 'webp'] as const)('images as %s: valid ones, of the requested size', async format => {
  const job = jobOf('slug/text-to-image', { num_images: 2, width: 96, output_format: format })
  const { ran, result, fractions } = await run(job)
  expect(result).toMatchObject({ width: 96, height: 64, seed: 7, seed_used: 7, prompt: 'a cat' })
  expect(result.images?.map(one => [one.content_type, one.width, one.height])).toEqual([
    [`image/${format}`, 96, 64],
    [`image/${format}`, 96, 64],
  ])
  expect(result.video).toBeUndefined()
  expect(result.timings.inference).toBeGreaterThan(0)
  expect(fractions.at(-1)).toBe(1)
  const outputs = ran.files.filter(({ purpose }) => purpose === 'output')
  expect(new Set(outputs.map(({ name }) => name)).size).toBe(2)
  for (const file of outputs)
    expect(await sharp(readFileSync(files.pathOf(file))).metadata()).toMatchObject({ format, width: 96, height: 64 })
  for (const thumbnail of ran.files.filter(({ purpose }) => purpose === 'thumbnail'))
    expect(await sharp(readFileSync(files.pathOf(thumbnail))).metadata()).toMatchObject({ format: 'webp' })
  expect(ran.files).toHaveLength(4)
  for (const file of ran.files) {
    expect(file).toMatchObject({ organizationId, jobId: job.id })
    expect(file.expiresAt! - file.createdAt).toBe(3_600_000)
  }
  const thumbnails = ran.files.filter(({ purpose }) => purpose === 'thumbnail')
  expect(ran.library).toEqual(
    outputs.map(({ id }, at) => ({
      id,
      organizationId,
      jobId: job.id,
      task: 'slug/text-to-image',
      modelId: 'painter',
      prompt: 'a cat',
      seed: 7,
      fps: null,
      numFrames: null,
      thumbnailId: thumbnails[at]!.id,
      createdAt: expect.any(Number) as number,
    })),
  )
  expect(workspaces()).toEqual([])
  const { runner } = await run(jobOf('slug/text-to-image', {}))
  await runner.undo(ran)
  for (const file of ran.files) expect(existsSync(files.pathOf(file))).toBe(false)
})

test('a video: measured, with a thumbnail and an entry in the library', async ({ skip }) => {
  skip(!hasFfmpeg)
  const job = jobOf('slug/text-to-video', { num_frames: 12, fps: 6 })
  const { ran, result } = await run(job)
  expect(result).toMatchObject({ width: 64, height: 64, num_frames: 12, fps: 6, duration_seconds: 2, seed_used: 7 })
  expect(result.video).toMatchObject({ file_name: 'video.mp4', content_type: 'video/mp4', duration: 2, num_frames: 12 })
  expect(result.video).not.toHaveProperty('figures')
  const [video, thumbnail] = ran.files
  expect(ran.library).toEqual([
    {
      id: video!.id,
      organizationId,
      jobId: job.id,
      task: 'slug/text-to-video',
      modelId: 'painter',
      prompt: 'a cat',
      seed: 7,
      fps: 6,
      numFrames: 12,
      thumbnailId: thumbnail!.id,
      createdAt: expect.any(Number) as number,
    },
  ])
  expect(video).toMatchObject({ width: 64, height: 64, durationMs: 2_000 })
})

test('without ffprobe a video is recognized by its first bytes, and its figures are marked as the requested ones', async ({
  skip,
}) => {
  skip(!hasFfmpeg)
  const { ran, result } = await run(jobOf('slug/text-to-video', {}), { media: nowhere })
  expect(result.video).toMatchObject({ figures: 'requested', width: 64, height: 64, fps: 8, num_frames: 9 })
  expect(ran.files).toHaveLength(1)
  const failure = await refusal(jobOf('slug/text-to-video', { prompt: 'mode:text' }), { media: nowhere })
  expect([failure.code, failure.message]).toEqual(['worker_error', expect.stringContaining('no MP4 video')])
})

test('the engine gets paths instead of ids, its own name for the model, and what the configuration lets through', async ({
  skip,
}) => {
  skip(!hasFfmpeg)
  const picture = await sharp({ create: { width: 80, height: 40, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const facts = { name: 'cat.png', contentType: 'image/png', purpose: 'input', expiresAt: null } as const
  const file = await files.keep(organizationId, picture, { ...facts, width: 80, height: 40 })
  const job = jobOf('slug/image-to-video', { image_url: 'x', shift: 3, other: 1 }, { image: file })
  const { heard } = await run(job)
  expect(heard).toMatchObject({ task: 'slug/image-to-video', model: 'painter', extra: { shift: 3 }, mask: null })
  const shared = join(dataDir, 'work', 'wkr_')
  expect(heard.image!.startsWith(shared)).toBe(true)
  expect(basename(heard.image!)).toBe(basename(files.pathOf(file)))
  expect(existsSync(heard.image!)).toBe(false)
  expect(job.inputs).toContain(file.id)
  // A job may wait for longer than its inputs are kept without one.
  const late = await files.keep(organizationId, picture, { ...facts, expiresAt: Date.now() - 1 })
  await run(jobOf('slug/image-to-video', { image_url: 'x' }, { image: late }))
  await files.remove(organizationId, file.id)
  const failure = await refusal(job)
  expect([failure.code, failure.param, failure.retryable]).toEqual(['not_found', 'image_url', false])
  expect(failure.message).toContain(file.id)
})

test('another seed, prompt or size reported by the engine is recorded', async () => {
  const { result } = await run(jobOf('slug/text-to-image', { prompt: 'mode:seeded' }))
  expect(result).toMatchObject({ seed: 7, seed_used: 8, prompt: 'mode:seeded, but better' })
  const odd = await run(jobOf('slug/text-to-image', { prompt: 'mode:odd,width=100' }))
  expect(odd.result).toMatchObject({ width: 100, height: 64 })
})

/** The fault of the engine, and its message. */
const hostile: [string, GenerationTask, string][] = [
  ['half-json', 'slug/text-to-image', 'that is not JSON'],
  ['html', 'slug/text-to-image', "that is not JSON: '<html>"],
  ['nan', 'slug/text-to-image', 'that is not JSON'],
  ['negative-progress', 'slug/text-to-image', 'a message that is none (fraction'],
  ['unknown-type', 'slug/text-to-image', 'a message that is none'],
  ['not-utf8', 'slug/text-to-image', 'not UTF-8'],
  ['many', 'slug/text-to-image', 'a message that is none (files'],
  ['long-line,mb=100', 'slug/text-to-image', 'a line of more than 1048576 bytes'],
  ['flood,mb=80', 'slug/text-to-image', 'more than 67108864 bytes of messages'],
  ['twice', 'slug/text-to-image', "went on after 'completed'"],
  ['after-completed', 'slug/text-to-image', "went on after 'completed'"],
  ['no-completed', 'slug/text-to-image', "without saying 'completed' or 'failed'"],
  ['nothing', 'slug/text-to-image', "without saying 'completed' or 'failed'"],
  ['crash', 'slug/text-to-image', 'out of memory'],
  ['failed,text=no-luck', 'slug/text-to-image', 'failed: no-luck'],
  ['status,code=500,text=broken', 'slug/text-to-image', 'The engine answered 500'],
  ['outside', 'slug/text-to-image', 'not the plain name of a file'],
  ['absolute', 'slug/text-to-image', '"/etc/passwd", which is not the plain name'],
  ['odd-name', 'slug/text-to-image', 'not the plain name of a file'],
  ['symlink', 'slug/text-to-image', 'it is a link'],
  ['hardlink', 'slug/text-to-image', 'hard links'],
  ['directory', 'slug/text-to-image', 'not a regular file'],
  ['fifo', 'slug/text-to-image', 'not a regular file'],
  ['missing', 'slug/text-to-image', 'cannot be read'],
  ['empty', 'slug/text-to-image', 'it is empty'],
  ['text', 'slug/text-to-image', 'which is no PNG image'],
  ['other-format', 'slug/text-to-image', 'which is no PNG image'],
  ['wrong-kind', 'slug/text-to-image', 'of kind audio instead of image'],
  ['more', 'slug/text-to-image', 'made 2 files instead of 1'],
  ['large,mb=5', 'slug/text-to-image', 'larger than'],
  ['text', 'slug/text-to-video', 'which is no MP4 video'],
  ['other-format', 'slug/text-to-video', 'which is no MP4 video'],
  ['large,mb=5', 'slug/text-to-video', 'larger than'],
  ['wrong-kind', 'slug/text-to-video', 'of kind audio instead of video'],
]
/** Whether the fake engine first makes a video in this mode. */
const needsFfmpeg = (mode: string, task: GenerationTask) =>
  task === 'slug/text-to-video' && (mode.startsWith('large') || mode === 'wrong-kind')
test.each(hostile.filter(([mode, task]) => hasFfmpeg || !needsFfmpeg(mode, task)))(
  'an engine in mode %s (%s) has failed: %s',
  async (mode, task, words) => {
    const before = kept()
    const failure = await refusal(jobOf(task, { prompt: `mode:${mode}` }))
    expect([failure.code, failure.retryable]).toEqual(['worker_error', true])
    expect(failure.message).toContain(words)
    expect(failure.message.length).toBeLessThan(700)
    expect(kept()).toEqual(before)
    expect(workspaces()).toEqual([])
  },
)

test.each([
  ['fewer', { num_images: 3 }, 'made 2 files instead of 3'],
  ['same-name', { num_images: 2 }, 'named one file twice'],
])('an engine in mode %s has failed', async (mode, body, words) => {
  const failure = await refusal(jobOf('slug/text-to-image', { prompt: `mode:${mode}`, ...body }))
  expect([failure.code, failure.message]).toEqual(['worker_error', expect.stringContaining(words)])
})

test.each([
  ['invalid,text=too-wild', 'invalid_value', 'too-wild'],
  ['status,code=400,text=too-wild', 'invalid_value', 'too-wild'],
  ['status,code=503,text=busy', 'no_capacity', 'takes no more requests'],
])('a refusal of the engine in mode %s is %s', async (mode, code, words) => {
  const failure = await refusal(jobOf('slug/text-to-image', { prompt: `mode:${mode}` }))
  expect([failure.code, failure.message]).toEqual([code, expect.stringContaining(words)])
})

test("the total size of a job's files is limited", async () => {
  const before = kept()
  const large = { prompt: 'mode:large,mb=1' }
  const { ran } = await run(jobOf('slug/text-to-image', { ...large, num_images: 3 }))
  await files.discard(ran.files)
  const failure = await refusal(jobOf('slug/text-to-image', { ...large, num_images: 4 }))
  expect([failure.code, failure.message]).toEqual(['worker_error', expect.stringContaining('larger than')])
  expect(kept()).toEqual(before)
})

describe('cancel', () => {
  const cancelled = new Failure('cancelled', 'The job was cancelled.')

  /** How many of its requests the engine saw aborted. */
  const aborts = () => fleet.output.recent(model.id).filter(({ text }) => text.startsWith('aborted ')).length

  test.each(['hang', 'late', 'slow,ms=60000', 'ignore,ms=100'])(
    'in mode %s: at once, the engine request is aborted, and no file is left',
    async mode => {
      const abort = new AbortController()
      const before = kept()
      const heard = aborts()
      const began = Promise.withResolvers<void>()
      const running = refusal(jobOf('slug/text-to-image', { prompt: `mode:${mode}` }), {
        signal: abort.signal,
        progress: () => began.resolve(),
      })
      await began.promise
      const at = performance.now()
      abort.abort(cancelled)
      expect(await running).toBe(cancelled)
      expect(performance.now() - at).toBeLessThan(2_000)
      await vi.waitFor(() => expect(aborts()).toBe(heard + 1), { timeout: 40_000, interval: 5 })
      expect(kept()).toEqual(before)
      await expect.poll(workspaces).toEqual([])
    },
  )

  test('an engine that continues is killed, and the next job gets a new one', async () => {
    const abort = new AbortController()
    const starts = () => fleet.snapshot().models[model.id]!.engineStarts
    await run(jobOf('slug/text-to-image', {}))
    const before = starts()
    const began = Promise.withResolvers<void>()
    const running = refusal(jobOf('slug/text-to-image', { prompt: 'mode:ignore,ms=60000' }), {
      signal: abort.signal,
      progress: () => began.resolve(),
    })
    await began.promise
    abort.abort(cancelled)
    expect(await running).toBe(cancelled)
    const gone = () => fleet.snapshot().residents.every(({ state }) => state !== 'ready')
    await vi.waitFor(() => expect(gone()).toBe(true), { interval: 20 })
    expect((await run(jobOf('slug/text-to-image', {}))).result.images).toHaveLength(1)
    expect(starts()).toBe(before + 1)
  })

  test('before the start', async () => {
    expect(await refusal(jobOf('slug/text-to-image', {}), { signal: AbortSignal.abort(cancelled) })).toBe(cancelled)
  })
})

test('none of this logged an error', () => {
  expect(lines.filter(line => line.includes('"level":"error"'))).toEqual([])
})
