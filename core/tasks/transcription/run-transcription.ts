import type { Limits } from '../../config.ts'
import { Failure } from '../../failure.ts'
import type { Media } from '../../media/media.ts'
import type { Registry } from '../../models/registry.ts'
import { largeResultBytes } from '../../store/store.ts'
import type { Preparation } from '../preparation.ts'
import { audioProtocol } from '../protocols/protocols.ts'
import { taskRecord } from '../registry.ts'
import type { RunJob, RunTask, TaskResult } from '../run-job.ts'
import { jobRequest, transcriptionFields } from './transcription.ts'
import type { TranscriptionRequest } from './transcription-request.ts'

/** Runs transcription jobs. Their audio is a stored file of the organization, and the result has the whole transcription. */
export function openTranscriptionRunner({
  registry,
  cpu,
  media,
  limits,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  cpu: Pick<Preparation, 'shape'>
  media: Pick<Media, 'decodeAudio' | 'samples'>
  limits: Pick<Limits, 'engine_answer'>
}): RunTask {
  async function run(...[job, lease, signal]: Parameters<RunJob>): Promise<TaskResult> {
    const { task, organizationId, id } = job
    const record = taskRecord(task)
    if (record.runner !== 'transcription')
      throw new Failure('unsupported_task', `The task ${task} does not take audio.`)
    const model = registry.find(job.modelId)
    if (!model?.enabled) throw new Failure('model_not_found', `The model '${job.modelId}' is no longer offered here.`)
    const request = jobRequest(JSON.parse(job.inputs) as TranscriptionRequest)
    const prepared = record.prepare(request, registry.catalog())
    const sender = { organizationId, origin: job.origin ?? '', jobId: id, signal }
    await using sound = await media.decodeAudio(sender, prepared.sound.field, prepared.sound.value)
    const answer = await audioProtocol(prepared.route).transcribe(
      lease,
      { path: prepared.route.path, fields: await transcriptionFields(prepared, media, sender) },
      sound,
      limits.engine_answer,
      signal,
    )
    // A result holds everything; a shorter response format is for synchronous callers only.
    const { body, usage } = await cpu.shape([answer], {
      ...prepared.answerFormat,
      seconds: sound.seconds,
      result: true,
    })
    const result =
      typeof body === 'string' || body.byteLength > largeResultBytes
        ? body
        : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')
    return { result, usage, price: model.price, files: [], library: [] }
  }
  // There is nothing to undo: a run stores no files.
  return Object.assign(run, { undo: async () => {} })
}
