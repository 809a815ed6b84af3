import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Failure, invalid } from '../../failure.ts'
import { listOf } from '../../json.ts'
import type { EngineRoute } from '../../models/engine-traits.ts'
import type { EngineProgress, Lease } from '../../models/fleet.ts'
import { isVideoTask } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import { parseAnswer } from './answer.ts'
import { ask } from './ask.ts'
import { type AnswerWithFiles, askFiles } from './ask-files.ts'
import { Base64File, jsonWithFiles } from './base64-file.ts'
import { oneLine, withoutLocations } from './engine-text.ts'
import type { EngineInputs, GenerationCall } from './generation-call.ts'
import { type Completed, workerError } from './infer-generation.ts'
import type { GenerationProtocol } from './protocol.ts'
import { sdServerWithoutJobs } from './sd-server-without-jobs.ts'

const images = '/sdcpp/v1/img_gen'
const videos = '/sdcpp/v1/vid_gen'
const jobPath = (id: string): string => `/sdcpp/v1/jobs/${id}`

/** Pauses between two polls, in milliseconds: short for small images, long for videos. */
const pauses = { first: 50, factor: 1.3, last: 1_000 }
const maxSmallAnswer = 64 << 10
/** How long the engine may take to answer a cancellation, in milliseconds. */
const cancelMs = 2_000

/**
 * The API of stable-diffusion.cpp's server: a job is created, polled until it has ended, and cancelled if the signal
 * aborts. It reports no progress; that is read from what the engine prints. Servers from before this API are used through
 * `sdServerWithoutJobs`.
 */
export const sdServer: GenerationProtocol = {
  name: 'sd-server',
  paths: {
    'create-image': images,
    'edit-image': images,
    inpaint: images,
    'create-video': videos,
    'animate-image': videos,
  },
  async generate(lease, route, call, signal, report) {
    const { task, inputs } = call
    const frames = framesOf(inputs.num_frames)
    if (isVideoTask(task) && frames !== inputs.num_frames)
      report.log('INFO', `The engine makes 4n+1 frames: ${frames} instead of ${inputs.num_frames}.`)
    signal.throwIfAborted()
    lease.followProgress(sdServerProgress(inputs, report))
    const id = await createJob(lease, route, call)
    if (id === undefined) return sdServerWithoutJobs(lease, call, sdFields(call, route), signal, report)
    try {
      const completed = await endOfJob(lease, id, call, signal)
      report.progress(1)
      return completed
    } catch (thrown) {
      if (signal.aborted) await cancelJob(lease, id)
      throw thrown
    }
  },
}

/** Turns steps into a fraction of all images, or of a video, whose steps may be divided among two models. */
export function sdServerProgress(
  {
    num_images,
    num_frames,
    num_inference_steps,
  }: Pick<EngineInputs, 'num_images' | 'num_frames' | 'num_inference_steps'>,
  report: Pick<RunReport, 'progress'>,
): (progress: EngineProgress) => void {
  let earlierSteps = 0
  let last = { pass: 1, steps: 0 }
  return ({ pass, step, steps }) => {
    if (pass !== last.pass) earlierSteps += last.steps
    last = { pass, steps }
    const fraction =
      num_frames > 1
        ? (earlierSteps + step) / Math.max(num_inference_steps, earlierSteps + steps)
        : (pass - 1 + step / steps) / num_images
    // The image is decoded and encoded after its last step.
    report.progress(Math.min(fraction, 0.99))
  }
}

/**
 * Resolves with the id of the created job, or with undefined if the engine has no such API. Not aborted by the signal: the
 * answer comes at once, and a job without a known id could not be cancelled.
 */
async function createJob(lease: Lease, route: EngineRoute, call: GenerationCall): Promise<string | undefined> {
  const body = await jsonWithFiles(sdFields(call, route))
  try {
    const answer = parseAnswer(await ask(lease, route.path, body, maxSmallAnswer, new AbortController().signal))
    const { id } = answer
    if (typeof id === 'string' && /^[\w-]{1,100}$/.test(id)) return id
    throw workerError(lease.modelId, 'answered without the id of a job')
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'unsupported_task' && !isUnsupportedMode(thrown)) return undefined
    throw thrown
  }
}

/** Whether the engine has the API, but its model cannot do this task. */
const isUnsupportedMode = ({ message }: Failure): boolean => /does not support/.test(message)

async function endOfJob(lease: Lease, id: string, call: GenerationCall, signal: AbortSignal): Promise<Completed> {
  const path = jobPath(id)
  for (let pause = pauses.first, poll = 1; ; pause = Math.min(pause * pauses.factor, pauses.last), poll++) {
    await delay(pause, undefined, { signal }).catch(() => signal.throwIfAborted())
    const files = { folder: call.folder, prefix: `result-${poll}` }
    const answer = await askFiles(lease, { method: 'GET', path, body: '', workPath: path }, files, signal)
    const { status, error } = answer.answer
    if (status === 'completed') return resultOf(lease, answer, call)
    if (status === 'queued' || status === 'generating') continue
    const why = textOf((error as { message?: unknown } | null)?.message)
    throw workerError(
      lease.modelId,
      status === 'failed' || status === 'cancelled' ? `has ${status} the job: ${why}` : 'answered with no known status',
    )
  }
}

async function resultOf(lease: Lease, { answer, fileOf }: AnswerWithFiles, call: GenerationCall): Promise<Completed> {
  const result = (answer.result ?? {}) as { images?: unknown; b64_json?: unknown }
  const values = isVideoTask(call.task) ? [result] : listOf(result.images)
  const kind = isVideoTask(call.task) ? 'video' : 'image'
  if (values.length === 0) throw workerError(lease.modelId, 'completed the job without a result')
  const files: Completed['files'] = []
  for (const value of values) {
    const name = await fileOf((value as { b64_json?: unknown } | null)?.b64_json)
    // The ending tells that the video is no MP4 yet.
    const file = kind === 'video' ? `${name}.avi` : name
    if (kind === 'video') await rename(join(call.folder, name), join(call.folder, file))
    files.push({ name: file, kind })
  }
  return { type: 'completed', files, seed_used: call.inputs.seed }
}

/** Cancels a job. A job that already runs cannot be cancelled in versions until 2026: then the slot waits for its end. */
async function cancelJob(lease: Lease, id: string): Promise<void> {
  const signal = AbortSignal.timeout(cancelMs)
  await ask(lease, `${jobPath(id)}/cancel`, '{}', maxSmallAnswer, signal, { workPath: jobPath(id) }).catch(() => {})
}

const textOf = (value: unknown): string =>
  typeof value === 'string' && value.trim() !== ''
    ? withoutLocations(oneLine(value, value.length)).slice(0, 500)
    : 'it did not say why'

type Fields = Record<string, unknown>

/** Where `extra_params` of a model go in the engine's request. Source: examples/server/api.md of stable-diffusion.cpp. */
const samplingFields = ['scheduler', 'sample_method', 'eta', 'shifted_timestep', 'custom_sigmas', 'flow_shift'] as const
const guidanceFields = ['img_cfg', 'distilled_guidance', 'slg'] as const
const imageFields = ['control_strength', 'auto_resize_ref_image', 'increase_ref_index', 'hires'] as const
const videoFields = ['high_noise_sample_params', 'moe_boundary', 'vace_strength'] as const
const commonFields = [
  'clip_skip',
  'lora',
  'vae_tiling_params',
  'cache_mode',
  'cache_option',
  'scm_mask',
  'scm_policy_dynamic',
] as const

/** The number of frames that the engine makes for a requested number: one more than a multiple of four. */
const framesOf = (requested: number): number => Math.max(0, Math.floor((requested - 1) / 4)) * 4 + 1

/** Returns the request of the engine's own API. Throws Failure `unsupported_parameter` for an extra field that it lacks. */
function sdFields({ task, inputs }: GenerationCall, { images }: Pick<EngineRoute, 'images'>): Fields {
  const isVideo = isVideoTask(task)
  const { top, sampling, guidance } = sortExtra(inputs.extra, isVideo)
  const image = (path: string | null) => (path === null ? undefined : new Base64File(path))
  const references = inputs.images ?? (inputs.image === null ? [] : [inputs.image])
  const asReference = !isVideo && (images === 'reference' || references.length > 1)
  return {
    ...top,
    prompt: inputs.prompt,
    negative_prompt: inputs.negative_prompt ?? '',
    width: inputs.width,
    height: inputs.height,
    seed: inputs.seed,
    // Without an input image the engine ignores it, but refuses values outside of 0 to 1.
    strength: inputs.strength,
    ...(asReference
      ? { ref_images: references.map(path => new Base64File(path)) }
      : { init_image: image(inputs.image) }),
    ...(isVideo
      ? { video_frames: framesOf(inputs.num_frames), fps: inputs.fps }
      : { batch_count: inputs.num_images, mask_image: image(inputs.mask) }),
    // Every build writes AVI; only some write WebM. infer makes MP4 of it.
    output_format: isVideo ? 'avi' : inputs.output_format,
    output_compression: 100,
    sample_params: {
      ...sampling,
      sample_steps: inputs.num_inference_steps,
      guidance: { ...guidance, txt_cfg: inputs.guidance_scale },
    },
  }
}

function sortExtra(extra: Fields, isVideo: boolean) {
  const sorted: Record<'top' | 'sampling' | 'guidance', Fields> = { top: {}, sampling: {}, guidance: {} }
  const topFields: readonly string[] = [...commonFields, ...(isVideo ? videoFields : imageFields)]
  const places: readonly [readonly string[], Fields][] = [
    [topFields, sorted.top],
    [samplingFields, sorted.sampling],
    [guidanceFields, sorted.guidance],
  ]
  for (const [name, value] of Object.entries(extra)) {
    const fields = places.find(([names]) => names.includes(name))?.[1]
    if (!fields)
      throw invalid(
        name,
        `'${name}' is in 'extra_params' of this model, but its engine, sd-server, has no such field for this task. Leave it out.`,
        'unsupported_parameter',
      )
    fields[name] = value
  }
  return sorted
}
