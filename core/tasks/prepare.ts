import { canonicalHash } from '../canonical.ts'
import { bufferOf, type Done, type ThreadWork } from '../cpu/thread-work.ts'
import type { ChatAnswerFacts } from '../dialects/chat-form.ts'
import { type ChatFormName, chatBodyOf, formedAnswer } from '../dialects/chat-forms.ts'
import { inputPage } from '../dialects/responses/continuation.ts'
import { type JsonBounds, parseBoundedJson } from '../json.ts'
import type { ModelSet } from '../models/engine-traits.ts'
import type { TextTask } from '../schemas/task.ts'
import type { AnswerFormat, CallerAnswer, FormedRequest, PreparedRequest } from './engine-request.ts'
import { taskRecord } from './registry.ts'
import { checkRequestFields } from './request-fields.ts'

export interface PrepareOptions {
  /** Whether to compute the hash of the body. */
  hash?: boolean
  /** Whether to refuse fields that the task does not know. OpenAI-compatible endpoints ignore such fields. */
  strict?: boolean
  /** The form of the body, if it is another one than that of the task. */
  form?: ChatFormName | undefined
  /** What the form needs besides the body. */
  context?: unknown
  /** Characters of large texts in `context`, which are parsed with the body. */
  contextLength?: number | undefined
}

/** The form of an answer, and what it says besides. */
export interface AnswerForm extends FormedRequest {
  facts: ChatAnswerFacts
}

/**
 * Checks the body of a request and translates it for the engine of its model. Pure, and its input and output are plain
 * data: it runs inline for ordinary bodies and in a worker thread for large ones. Throws Failure for an invalid body.
 */
export const prepare = (
  task: TextTask,
  body: Buffer,
  catalog: ModelSet,
  bounds: JsonBounds,
  { hash = false, strict = false, form, context }: PrepareOptions = {},
): PreparedRequest => {
  const sent = parseBoundedJson(body, bounds)
  const formed = form && chatBodyOf(form, sent, context)
  const raw = formed ? formed.body : sent
  const model = strict ? catalog.get(String((raw as { model?: unknown } | null)?.model)) : undefined
  if (model) checkRequestFields(taskRecord(task), raw, model.extraParams)
  const bodyHash = hash ? canonicalHash(sent) : undefined
  const record = taskRecord(task)
  const prepared = record.prepare(raw, catalog)
  const contextLength = catalog.get(prepared.modelId)?.contextLength ?? null
  const inputs = raw as Record<string, unknown>
  const estimate = record.metering.estimate({ inputs, length: body.length, contextLength })
  return {
    ...prepared,
    estimate,
    ...(formed ? { form: { name: form, request: formed.request } } : {}),
    ...(bodyHash === undefined ? {} : { bodyHash }),
  }
}

/** The same for inputs that are parsed already, such as those of a durable job. */
export const prepareInputs = (task: TextTask, inputs: unknown, catalog: ModelSet): PreparedRequest =>
  taskRecord(task).prepare(inputs, catalog)

/**
 * Turns the engine's whole answers into the caller's answer, in another form if one is given. Pure; runs inline or in a
 * worker thread like `prepare`.
 */
export function shape(answers: Uint8Array[], answerFormat: AnswerFormat, form?: AnswerForm): CallerAnswer {
  const shaped = taskRecord(answerFormat.task).shape(answers, answerFormat)
  if (!form) return shaped
  const text = typeof shaped.body === 'string' ? shaped.body : Buffer.from(shaped.body).toString('utf8')
  return { ...shaped, body: formedAnswer(form, text, form.facts) }
}

const encoded = (text: string | Uint8Array): Uint8Array =>
  typeof text === 'string' ? new TextEncoder().encode(text) : text

/** Thread work on the requests and answers of text tasks. */
export const taskWork = {
  prepare([task, body, ...more]: Parameters<typeof prepare>): Done<PreparedRequest> {
    const prepared = prepare(task, bufferOf(body), ...more)
    const bodies = prepared.bodies.map(encoded)
    return { value: { ...prepared, bodies }, give: bodies }
  },
  inputPage: (request: Parameters<typeof inputPage>): Done<string> => ({ value: inputPage(...request) }),
  shape(request: Parameters<typeof shape>): Done<CallerAnswer> {
    const shaped = shape(...request)
    const body = encoded(shaped.body)
    return { value: { ...shaped, body }, give: [body] }
  },
} satisfies ThreadWork
