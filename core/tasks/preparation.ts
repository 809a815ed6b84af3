import { canonicalHash } from '../canonical.ts'
import type { Cpu } from '../cpu/cpu.ts'
import { hasMoreThan, inlineBytes, isSmallBody, poolOfBody } from '../cpu/small-body.ts'
import { bufferOf, type Done, type ThreadWork } from '../cpu/thread-work.ts'
import type { ChatAnswerFacts } from '../dialects/chat-form.ts'
import { type ChatFormName, chatBodyOf, formedAnswer } from '../dialects/chat-forms.ts'
import { type InputPageQuery, inputPage } from '../dialects/responses/continuation.ts'
import { type JsonBounds, parseBoundedJson } from '../json.ts'
import type { ModelSet } from '../models/engine-traits.ts'
import type { TextTask } from '../schemas/task.ts'
import { encodedText } from '../system-memory.ts'
import { type Filling, filled } from './chat/images.ts'
import type { AnswerFormat, CallerAnswer, FormedRequest, PreparedRequest } from './engine-request.ts'
import { estimatedInputs } from './profile.ts'
import { taskRecord } from './registry.ts'
import { checkRequestFields } from './request-fields.ts'
import { showsCompression } from './transcription/transcription.ts'

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
  const { contextLength = null, profile } = catalog.get(prepared.modelId) ?? {}
  const { inputs, length } = estimatedInputs(raw as Record<string, unknown>, body.length, profile)
  prepared.estimate = record.metering.estimate({ inputs, length, contextLength })
  prepared.bodyHash = bodyHash
  if (formed) {
    prepared.form = { name: form, request: formed.request, schemas: formed.notes.schemas }
    prepared.ignored = formed.notes.ignored
  }
  return prepared
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

const encoded = (text: string | Uint8Array): Uint8Array => (typeof text === 'string' ? encodedText(text) : text)

/** Thread work on the requests and answers of text tasks. */
export const taskWork = {
  prepare([task, body, ...more]: Parameters<typeof prepare>): Done<PreparedRequest> {
    const prepared = prepare(task, bufferOf(body), ...more)
    const bodies = prepared.bodies.map(encoded)
    const images = prepared.images?.flatMap(({ value }) => (typeof value === 'string' ? [] : [value])) ?? []
    return { value: { ...prepared, bodies }, give: [...bodies, ...images] }
  },
  insertImages(filling: Filling): Done<ReturnType<typeof filled>> {
    const value = filled(filling)
    return { value, give: value.bodies }
  },
  inputPage: (request: Parameters<typeof inputPage>): Done<string> => ({ value: inputPage(...request) }),
  shape(request: Parameters<typeof shape>): Done<CallerAnswer> {
    const shaped = shape(...request)
    const body = encoded(shaped.body)
    return { value: { ...shaped, body }, give: [body] }
  },
} satisfies ThreadWork

/** Bodies up to this size get their images in the event loop, which takes a fraction of a millisecond. */
const filledBytes = 256 << 10

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
    /** Puts images and files into the bodies of a request. */
    insertImages(filling: Filling): ReturnType<typeof filled> | Promise<ReturnType<typeof filled>> {
      const parts = [...filling.bodies, ...filling.replacements.map(([, replacement]) => replacement)]
      const size = parts.reduce((sum, { length }) => sum + length, 0)
      if (size <= filledBytes) return filled(filling)
      return call('requests', 'insertImages', filling, {
        give: parts.flatMap(one => (typeof one === 'string' ? [] : [bufferOf(one)])),
      })
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
