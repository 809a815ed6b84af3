import type { Limits } from '../config.ts'
import { ignoredLine } from '../ignored.ts'
import type { Media } from '../media/media.ts'
import type { Registry } from '../models/registry.ts'
import { answerBound } from './answer-bound.ts'
import { fetchFrom, withImages } from './chat/images.ts'
import type { Preparation } from './preparation.ts'
import { ask } from './protocols/ask.ts'
import { answeredResult, type RunTask, workOfJob } from './run-job.ts'
import { isStreamable } from './stream-shape.ts'

/** Runs text jobs. Requests are prepared and answers are shaped as for a synchronous caller. */
export function openTextRunner({
  registry,
  cpu,
  media,
  limits,
}: {
  registry: Pick<Registry, 'find' | 'catalog'>
  cpu: Pick<Preparation, 'prepare' | 'shape' | 'insertImages'>
  media: Pick<Media, 'imageDataUrl' | 'fileText' | 'audioBase64'>
  limits: Limits
}): RunTask {
  return async (...[job, lease, signal, report]) => {
    const { record, model, catalog, sender } = workOfJob('text', job, registry, signal)
    const checked = await cpu.prepare(record.id, Buffer.from(job.inputs), catalog, limits)
    const {
      path,
      bodies,
      droppable,
      answerFormat,
      unstored = false,
      several = false,
    } = await withImages(checked, fetchFrom(media, sender), cpu)
    if (isStreamable(answerFormat)) lease.prefer?.(bodies[0]!)
    const answers: Buffer[] = []
    const ignored = (paths: string) => report.log('WARN', ignoredLine(model.id, paths))
    for (const body of bodies)
      answers.push(
        await ask(lease, path, body, answerBound(answerFormat, limits), signal, {
          droppable,
          ignored,
          unstored,
          several,
        }),
      )
    return answeredResult(await cpu.shape(answers, answerFormat), model)
  }
}
