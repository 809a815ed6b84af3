import type { Cpu } from '../cpu/cpu.ts'
import { hasMore, inlineBytes, isSmallBody, poolOfBody } from '../cpu/small-body.ts'
import type { JsonBounds } from '../json.ts'
import type { Catalog } from '../models/catalog.ts'
import type { TextTask } from '../schemas/task.ts'
import { type PrepareOptions, prepare, shape } from './prepare.ts'
import type { AnswerFormat, Prepared, Shaped } from './prepared.ts'
import type { taskWork } from './task-work.ts'
import { showsCompression } from './transcription/transcription.ts'

/** The compression ratio that each segment of a transcription is shown with takes a hundred times as long as reading it. */
const inlineSegments = 32
const fewSegments = (answers: readonly Buffer[], answerFormat: AnswerFormat): boolean =>
  !('words' in answerFormat && showsCompression(answerFormat)) ||
  !answers.some(answer => hasMore(answer, 0x7b, inlineSegments))

/**
 * `prepare` and `shape`, in the event loop where the work is small and in a thread where it is not. Both return a value
 * where it is cheap, a promise where it is not.
 */
export function openPreparing({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof taskWork>()

  return {
    /** `prepare` of a caller's body. */
    prepare(
      task: TextTask,
      body: Buffer,
      catalog: Catalog,
      bounds: JsonBounds,
      options: PrepareOptions = {},
    ): Prepared | Promise<Prepared> {
      return isSmallBody(body)
        ? prepare(task, body, catalog, bounds, options)
        : call(poolOfBody(body), 'prepare', { task, body, catalog, bounds, options }, { give: [body] })
    },
    /** `shape` of an engine's answers. */
    shape(answers: Buffer[], answerFormat: AnswerFormat): Shaped | Promise<Shaped> {
      const size = answers.reduce((sum, answer) => sum + answer.length, 0)
      return size <= inlineBytes && fewSegments(answers, answerFormat)
        ? shape(answers, answerFormat)
        : call('requests', 'shape', { answers, answerFormat }, { give: answers })
    },
  }
}
export type Preparing = ReturnType<typeof openPreparing>
