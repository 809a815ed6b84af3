import type { Limits } from '../config.ts'
import { Failure } from '../failure.ts'
import type { Media } from '../media/media.ts'
import type { Registry } from '../models/registry.ts'
import { largeResultBytes } from '../store/store.ts'
import { answerBound } from './answer-bound.ts'
import { fetchFrom, withImages } from './chat/images.ts'
import type { Preparation } from './preparation.ts'
import { ask } from './protocols/ask.ts'
import { taskRecord } from './registry.ts'
import type { RunJob, RunTask, TaskResult } from './run-job.ts'

/** Runs text jobs. Requests are prepared and answers are shaped as for a synchronous caller. */
export function openTextRunner({
  registry,
  cpu,
  media,
  limits,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  cpu: Pick<Preparation, 'prepare' | 'shape'>
  media: Pick<Media, 'imageDataUrl' | 'fileText'>
  limits: Limits
}): RunTask {
  async function run(...[job, lease, signal]: Parameters<RunJob>): Promise<TaskResult> {
    const { task } = job
    const record = taskRecord(task)
    if (record.runner !== 'text') throw new Failure('unsupported_task', `The task ${task} is not answered in text.`)
    const model = registry.find(job.modelId)
    if (!model?.enabled) throw new Failure('model_not_found', `The model '${job.modelId}' is no longer offered here.`)
    const checked = await cpu.prepare(record.id, Buffer.from(job.inputs), registry.catalog(), limits)
    const sender = { organizationId: job.organizationId, origin: job.origin ?? '', jobId: job.id, signal }
    const prepared = await withImages(checked, fetchFrom(media, sender))
    const answers: Buffer[] = []
    const { path, bodies, droppable, answerFormat } = prepared
    for (const body of bodies)
      answers.push(await ask(lease, path, body, answerBound(answerFormat, limits), signal, { droppable }))
    const { body: shaped, usage } = await cpu.shape(answers, answerFormat)
    // A large result stays bytes, because it is written to a file unchanged.
    const result =
      typeof shaped === 'string' || shaped.byteLength > largeResultBytes
        ? shaped
        : Buffer.from(shaped.buffer, shaped.byteOffset, shaped.byteLength).toString('utf8')
    return { result, usage, price: model.price, files: [], library: [] }
  }
  // There is nothing to undo: a run writes no files.
  return Object.assign(run, { undo: async () => {} })
}
