import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../../failure.ts'
import { isObject, jsonOf, objectOf } from '../../json.ts'
import type { EngineRoute } from '../../models/engine-traits.ts'
import type { Lease } from '../../models/fleet.ts'
import type { RunReport } from '../run-job.ts'
import { parseAnswer } from './answer.ts'
import { ask } from './ask.ts'
import { engineErrorOf, failureOfEngine } from './engine-error.ts'
import { faultClass } from './engine-text.ts'
import { formBody } from './form-body.ts'
import type { EngineFile, GenerationCall } from './generation-call.ts'
import { workerError } from './infer-generation.ts'
import { checkFields, formFields, furtherFields, imageFiles, openaiSize } from './openai-fields.ts'
import type { GenerationProtocol } from './protocol.ts'
import { takeContent } from './take-url.ts'

/** Pauses between two polls, in milliseconds. Hosted services limit the rate of requests. */
const pauses = { first: 100, factor: 1.5, last: 3_000 }
const maxAnswerBytes = 256 << 10
/** Requests that may fail one after another: the video is still being made when a connection breaks. */
const maxFailed = 4
/** How long the engine may take to delete a video, in milliseconds. */
const deleteMs = 2_000

/**
 * The video routes of OpenAI, which vLLM-Omni and SGLang-Diffusion have too: a form creates the video, its state is polled,
 * its content is fetched, and it is deleted at the end or when the signal aborts. If the work continues after a deletion,
 * an aborted video is not deleted: the slot is free when its status says that it has ended.
 */
export const openaiVideos: GenerationProtocol = {
  name: 'openai-videos',
  paths: { 'create-video': '/v1/videos', 'animate-image': '/v1/videos' },
  async generate(lease, route, call, signal, report) {
    signal.throwIfAborted()
    checkFields(lease.modelId, call, route, report)
    const id = await createVideo(lease, route, call)
    const path = `${route.path}/${id}`
    const workPath = route.deletion ? { workPath: path } : {}
    try {
      await untilCompleted(lease, path, signal, report, workPath)
      const file = await contentOf(lease, path, call.folder, signal)
      return { type: 'completed', files: [file], seed_used: call.inputs.seed }
    } finally {
      const continues = signal.aborted && route.deletion === 'continues'
      const options = { method: continues ? 'GET' : 'DELETE', ...workPath } as const
      await ask(lease, path, '', maxAnswerBytes, AbortSignal.timeout(deleteMs), options).catch(() => {})
      if (continues) lease.abandoned()
    }
  },
}

/** Not aborted by the signal: the answer comes at once, and a video without a known id could not be deleted. */
async function createVideo(lease: Lease, route: EngineRoute, call: GenerationCall): Promise<string> {
  const { inputs } = call
  const more = furtherFields(call, route)
  const fields = {
    model: call.model,
    prompt: inputs.prompt,
    size: openaiSize(inputs),
    ...('num_frames' in more ? {} : { seconds: Math.max(1, Math.round(inputs.num_frames / inputs.fps)) }),
    ...more,
  }
  const files = await imageFiles(inputs.image === null ? [] : [['input_reference', inputs.image]])
  const { body, contentType } = formBody(formFields(fields), files)
  const never = new AbortController().signal
  const { id } = parseAnswer(await ask(lease, route.path, body, maxAnswerBytes, never, { contentType }))
  if (typeof id === 'string' && /^[\w.-]{1,200}$/.test(id) && !/^\.+$/.test(id)) return id
  throw workerError(lease.modelId, 'answered without the id of a video')
}

async function untilCompleted(
  lease: Lease,
  path: string,
  signal: AbortSignal,
  report: RunReport,
  workPath: { workPath?: string },
): Promise<void> {
  for (let pause = pauses.first; ; pause = Math.min(pause * pauses.factor, pauses.last)) {
    await delay(pause, undefined, { signal }).catch(() => signal.throwIfAborted())
    const { status, progress, error } = await patiently(signal, async () => {
      const options = { method: 'GET', isAnswer: isFailedVideo, ...workPath } as const
      const bytes = await ask(lease, path, '', maxAnswerBytes, signal, options)
      return stateIn(bytes, lease.modelId)
    })
    if (status === 'failed' || status === 'cancelled') throw failureOfVideo(lease.modelId, status, error)
    // The content is still to be fetched.
    if (typeof progress === 'number' && progress > 0) report.progress(Math.min(progress / 100, 0.99))
    if (status === 'completed') return
    if (status !== 'queued' && status !== 'in_progress')
      throw workerError(lease.modelId, 'answered with no known status')
  }
}

/** Runs a request again when it fails by a fault of the engine or because the engine is full. */
async function patiently<T>(signal: AbortSignal, request: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request(attempt)
    } catch (thrown) {
      signal.throwIfAborted()
      const passes = thrown instanceof Failure && ['worker_error', 'no_capacity'].includes(thrown.code)
      if (!passes || attempt === maxFailed) throw thrown
      await delay(attempt * 500, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}

/** vLLM-Omni answers the state of a video that failed with an error status. */
function isFailedVideo(body: string): boolean {
  const { object, status } = objectOf(jsonOf(body))
  return object === 'video' && status === 'failed'
}

/** Not `parseAnswer`: the state of a video that failed has an `error` too. */
function stateIn(bytes: Buffer, modelId: string): Record<string, unknown> {
  const value = jsonOf(bytes.toString('utf8'))
  if (isObject(value)) return value
  throw workerError(modelId, 'answered with no JSON object')
}

/** Codes of OpenAI for prompts and images that its rules forbid. */
const forbidden = /moderation|content_policy|invalid_|safety/i

function failureOfVideo(modelId: string, status: string, error: unknown): Failure {
  const words = engineErrorOf({ error: error ?? {} })
  if (forbidden.test(`${words.code ?? ''} ${words.type}`)) return failureOfEngine(400, words, 'invalid_value')
  const code = Number(words.code)
  if (code >= 400 && code < 500) return failureOfEngine(code, words)
  const why = faultClass(words.message)
  return new Failure(
    'worker_error',
    status === 'cancelled'
      ? `The engine of '${modelId}' cancelled the video. Trying again may help.`
      : `The engine of '${modelId}' failed to make the video${why ? `: ${why}` : ''}. Trying again may help.`,
    { engineText: words.message.slice(0, 500) },
  )
}

/** Fetches the video. Some engines report `completed` a moment before its content is there. */
const contentOf = (lease: Lease, path: string, folder: string, signal: AbortSignal): Promise<EngineFile> =>
  patiently(signal, async attempt => {
    const part = `part-${attempt}`
    const contentType = await takeContent(lease, `${path}/content`, { folder, name: part }, signal)
    // The ending tells that the video is no MP4.
    const name = contentType.includes('webm') ? 'video.webm' : 'video.mp4'
    await rename(join(folder, part), join(folder, name))
    return { name, kind: 'video' }
  })
