import type { Cpu } from '../cpu/cpu.ts'
import { hasMoreThan, inlineBytes, isSmallBody, poolOfBody } from '../cpu/small-body.ts'
import { type InputPageQuery, inputPage } from '../dialects/responses/continuation.ts'
import type { AnswerFormat, CallerAnswer, PreparedRequest } from './engine-request.ts'
import { type AnswerForm, prepare, shape, type taskWork } from './prepare.ts'
import { showsCompression } from './transcription/transcription.ts'

/** Computing the compression ratio of a segment takes a hundred times as long as parsing the segment. */
const inlineSegments = 32
const fewSegments = (answers: readonly Buffer[], answerFormat: AnswerFormat): boolean =>
  !('words' in answerFormat && showsCompression(answerFormat)) ||
  !answers.some(answer => hasMoreThan(answer, 0x7b, inlineSegments))

/**
 * Runs `prepare` and `shape` in the event loop if the work is small, else in a thread. Both return a value in the first
 * case and a promise in the second.
 */
export function openPreparation({ calling }: Pick<Cpu, 'calling'>) {
  const call = calling<typeof taskWork>()

  return {
    /** Prepares the body of a request. */
    prepare(...request: Parameters<typeof prepare>): PreparedRequest | Promise<PreparedRequest> {
      const [_task, body, _catalog, _bounds, options] = request
      return isSmallBody(body) && (options?.contextLength ?? 0) <= inlineBytes
        ? prepare(...request)
        : call(poolOfBody(body), 'prepare', request, { give: [body] })
    },
    /** Returns a page of the items of a response's input, both as JSON text. */
    inputPage(input: string, query: InputPageQuery): string | Promise<string> {
      return input.length <= inlineBytes ? inputPage(input, query) : call('requests', 'inputPage', [input, query])
    },
    /** Shapes the answers of an engine, in another form if one is given. */
    shape(answers: Buffer[], answerFormat: AnswerFormat, form?: AnswerForm): CallerAnswer | Promise<CallerAnswer> {
      const size = answers.reduce((sum, answer) => sum + answer.length, 0)
      return size <= inlineBytes && fewSegments(answers, answerFormat)
        ? shape(answers, answerFormat, form)
        : call('requests', 'shape', [answers, answerFormat, form], { give: answers })
    },
  }
}
export type Preparation = ReturnType<typeof openPreparation>
