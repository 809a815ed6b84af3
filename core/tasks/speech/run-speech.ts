import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Limits } from '../../config.ts'
import type { Files } from '../../files/files.ts'
import type { Ffmpeg } from '../../media/ffmpeg.ts'
import type { Media } from '../../media/media.ts'
import type { Registry } from '../../models/registry.ts'
import { contentTypeOf, isOfFormat, rateOf, type SpeechFormat, speechForms } from '../../schemas/speech-format.ts'
import { engineFault } from '../protocols/answer.ts'
import { audioFailure } from '../protocols/openai-audio.ts'
import { audioProtocol } from '../protocols/protocols.ts'
import { type RunJob, type RunTask, type TaskResult, workOfJob } from '../run-job.ts'
import { engineWavSamples } from '../wav.ts'
import type { Conversion } from './conversion.ts'
import { speechBody, speechRecording, speechUsage } from './speech.ts'
import type { SpeechResult } from './speech-request.ts'

interface SpeechRunnerOptions {
  files: Pick<Files, 'adopt' | 'workspace' | 'discard' | 'pathOf'>
  registry: Pick<Registry, 'find' | 'catalog'>
  media: Pick<Media, 'samples'>
  ffmpeg: Pick<Ffmpeg, 'found' | 'probe'>
  conversion: Conversion
  limits: Pick<Limits, 'output_size'>
}

/** Characters of the text by which an entry of the library is found. */
const maxLibraryPrompt = 10_000

/** Runs speech jobs: the audio is written to a file while the engine generates it. */
export function openSpeechRunner({ files, registry, media, ffmpeg, conversion, limits }: SpeechRunnerOptions): RunTask {
  async function run(...[job, lease, signal]: Parameters<RunJob>): Promise<TaskResult> {
    const { record, model, catalog, sender } = workOfJob('speech', job, registry, signal)
    const request = JSON.parse(job.inputs) as { input: string; seed?: number | null }
    const prepared = record.prepare(request, catalog)
    const { route, engineFormat, format, characters } = prepared
    await conversion.check(engineFormat, format)
    const body = speechBody(prepared, await speechRecording(prepared, media, sender))
    await using workspace = await files.workspace(job.id)
    const made = join(workspace.folder, `speech.${speechForms[format].ending}`)
    const spoken = await audioProtocol(route).synthesize(
      lease,
      { path: route.path, body, maxBytes: limits.output_size },
      signal,
    )
    const { contentType } = spoken
    let rate: number | undefined
    let seconds: number | undefined
    try {
      const converted = await conversion.convert(spoken, prepared)
      // `wx`: refuse a file that another process has created here.
      await pipeline(converted.audio, createWriteStream(made, { flags: 'wx', mode: 0o600 }), { signal })
      rate = converted.rate
      seconds = converted.seconds()
    } catch (thrown) {
      throw audioFailure(thrown, signal)
    }
    seconds ??= await lengthOf(made, { format, rate: rate ?? rateOf(contentType) }, ffmpeg, signal)
    const duration = seconds === undefined ? null : Math.round(seconds * 1000) / 1000
    const file = await files.adopt(job.organizationId, made, {
      name: `speech.${speechForms[format].ending}`,
      contentType: contentTypeOf(format, contentType, rate),
      purpose: 'output',
      durationMs: duration === null ? null : Math.round(duration * 1000),
      jobId: job.id,
      expiresAt: { keptMs: job.retentionMs },
      maxBytes: limits.output_size,
    })
    const result: SpeechResult = {
      file_id: file.id,
      file_name: file.name,
      content_type: contentTypeOf(format, contentType, rate),
      duration,
      format,
    }
    const ran: TaskResult = {
      result: JSON.stringify(result),
      usage: speechUsage(characters, seconds),
      price: model.price,
      files: [file],
      library: [
        {
          id: file.id,
          organizationId: job.organizationId,
          jobId: job.id,
          task: job.task,
          modelId: job.modelId,
          prompt: request.input.slice(0, maxLibraryPrompt),
          seed: request.seed ?? null,
          fps: null,
          numFrames: null,
          thumbnailId: null,
          createdAt: Date.now(),
        },
      ],
    }
    // The job was cancelled after the engine had finished, so its files are removed.
    if (signal.aborted) {
      await files.discard(ran.files)
      throw signal.reason
    }
    return ran
  }
  return Object.assign(run, { undo: (ran: Pick<TaskResult, 'files'>) => files.discard(ran.files) })
}

/** Returns the duration of a file in seconds; undefined if only ffprobe can measure it and it is not installed. */
async function lengthOf(
  path: string,
  { format, rate }: { format: SpeechFormat; rate: number },
  ffmpeg: SpeechRunnerOptions['ffmpeg'],
  signal: AbortSignal,
): Promise<number | undefined> {
  await using file = await open(path)
  const { size } = await file.stat()
  const { buffer, bytesRead } = await file.read(Buffer.alloc(64 << 10), 0, 64 << 10, 0)
  const begin = buffer.subarray(0, bytesRead)
  if (!isOfFormat(begin, format)) throw engineFault(`something other than ${format}`)
  if (format === 'pcm') return size / 2 / rate
  if (format === 'wav') {
    const head = plainWav(begin)
    if (head) return Math.min(head.bytes, size - head.from) / 2 / head.channels / head.rate
  }
  const found = await ffmpeg.found()
  if ('missing' in found) return undefined
  const { durationMs } = await ffmpeg.probe(path, signal).catch((cause: unknown) => {
    throw audioFailure(cause, signal)
  })
  // Nothing could be measured.
  return durationMs ? durationMs / 1000 : undefined
}

/** Returns undefined for WAV with other samples: a valid answer, whose duration only ffprobe can measure. */
function plainWav(begin: Buffer) {
  try {
    return engineWavSamples(begin)
  } catch {
    return undefined
  }
}
