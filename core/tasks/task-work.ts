import { bufferOf, type Done, type ThreadWork } from '../cpu/thread-work.ts'
import { type InputPageQuery, inputPage } from '../dialects/responses/input-page.ts'
import type { JsonBounds } from '../json.ts'
import type { ModelSet } from '../models/engine-traits.ts'
import type { TextTask } from '../schemas/task.ts'
import type { AnswerFormat, CallerAnswer, PreparedRequest } from './engine-request.ts'
import { type AnswerForm, type PrepareOptions, prepare, shape } from './prepare.ts'

const encoded = (text: string | Uint8Array): Uint8Array =>
  typeof text === 'string' ? new TextEncoder().encode(text) : text

/** Thread work on the requests and answers of text tasks. */
export const taskWork = {
  prepare({
    task,
    body,
    catalog,
    bounds,
    options,
  }: {
    task: TextTask
    body: Uint8Array
    catalog: ModelSet
    bounds: JsonBounds
    options: PrepareOptions
  }): Done<PreparedRequest> {
    const prepared = prepare(task, bufferOf(body), catalog, bounds, options)
    const bodies = prepared.bodies.map(encoded)
    return { value: { ...prepared, bodies }, give: bodies }
  },
  inputPage: ({ input, query }: { input: string; query: InputPageQuery }): Done<string> => ({
    value: inputPage(input, query),
  }),
  shape({
    answers,
    answerFormat,
    form,
  }: {
    answers: Uint8Array[]
    answerFormat: AnswerFormat
    form?: AnswerForm | undefined
  }): Done<CallerAnswer> {
    const shaped = shape(answers, answerFormat, form)
    const body = encoded(shaped.body)
    return { value: { ...shaped, body }, give: [body] }
  },
} satisfies ThreadWork
