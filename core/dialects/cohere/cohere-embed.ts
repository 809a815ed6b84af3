import type { z } from 'zod'
import { Failure } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import { failureOfIssues } from '../../schemas/issues.ts'
import { base64Of, typedVector } from '../../schemas/typed-vector.ts'
import type { ChatForm } from '../chat-form.ts'
import { CohereEmbedRequest, type cohereVectorTypes } from './cohere-embed-schemas.ts'

/** What an answer in Cohere's form depends on. */
export interface CohereFormat {
  types: (typeof cohereVectorTypes)[number][]
  texts: string[]
  /** Whether `embeddings` is a list of vectors, as in the first version of Cohere's API. */
  floats: boolean
}

const ownFields = ['texts', 'inputs', 'images', 'embedding_types', 'response_type']

/** Whether a body is in Cohere's form. No other API has these fields, and Cohere's has no `input`. */
export const isCohere = (raw: unknown): raw is Record<string, unknown> =>
  raw !== null && typeof raw === 'object' && !('input' in raw) && ownFields.some(name => name in raw)

/** Checks a body in Cohere's form. Throws Failure for an invalid one. */
export function wantedByCohere(raw: Record<string, unknown>) {
  const checked = CohereEmbedRequest.safeParse(raw)
  if (!checked.success) throw failureOfIssues(checked.error, raw)
  const { model, texts, inputs, embedding_types, truncate, max_tokens, ...more } = checked.data
  if (texts?.length && inputs?.length) throw wrong('inputs', "Send 'texts' or 'inputs', not both.")
  const input = texts?.length
    ? texts
    : (inputs ?? []).map(({ content }, at) => textOf(content, `inputs[${at}].content`))
  if (input.length === 0)
    throw new Failure('missing_required_parameter', "Missing required parameter: 'texts'.", { param: 'texts' })
  if (truncate === 'START')
    throw new Failure('unsupported_parameter', "'truncate' can be 'END' or 'NONE': engines cut texts at their end.", {
      param: 'truncate',
    })
  const floats = more.response_type === 'embeddings_floats' && !embedding_types
  return {
    model,
    input,
    dimensions: more.output_dimension,
    cutTokens: max_tokens ?? (truncate === 'NONE' ? undefined : -1),
    priority: more.priority,
    kind: more.input_type,
    cohere: { types: embedding_types ?? ['float'], texts: input, floats } satisfies CohereFormat,
  }
}

const wrong = (param: string, message: string): Failure => new Failure('invalid_value', message, { param })

function textOf(content: { type: string; text?: string | undefined }[], param: string): string {
  const parts = content.map(({ type, text }, at) => {
    if (type === 'text' && text !== undefined) return text
    throw new Failure(
      'unsupported_parameter',
      `'${param}[${at}]' is not a text: engines here embed texts only. Send parts of the type 'text' with 'text'.`,
      { param: `${param}[${at}]` },
    )
  })
  const joined = parts.join('\n')
  if (joined === '') throw wrong(param, `'${param}' must not be empty.`)
  return joined
}

/** Returns the answer in Cohere's form, as JSON. */
export function cohereAnswer(
  vectors: Float32Array[],
  inputTokens: number,
  { types, texts, floats }: CohereFormat,
): string {
  const listOf = (type: CohereFormat['types'][number]) =>
    vectors.map(vector => (type === 'base64' ? base64Of(vector) : Array.from(typedVector(vector, type))))
  return JSON.stringify({
    id: `embed-${ulid()}`,
    response_type: floats ? 'embeddings_floats' : 'embeddings_by_type',
    embeddings: floats ? listOf('float') : Object.fromEntries(types.map(type => [type, listOf(type)])),
    texts,
    images: [],
    meta: { api_version: { version: floats ? '1' : '2' }, billed_units: { input_tokens: inputTokens } },
  })
}

type Request = z.output<typeof CohereEmbedRequest>

/** The first version of Cohere's embeddings: the second, but without types its answer is a list of vectors. */
export const cohereEmbedForm: ChatForm<Request> = {
  schema: CohereEmbedRequest,
  isStream: () => false,
  chatBody: request => ({
    ...request,
    ...(request.embedding_types ? {} : { response_type: 'embeddings_floats' as const }),
  }),
  remembered: ({ model }) => ({ model }),
  // The task answers in Cohere's form already.
  answer: (_, answer) => answer,
  stream: () => {
    throw new Error('Embeddings have no stream')
  },
}
