import { z } from 'zod'
import { invalid } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import { isObject } from '../../json.ts'
import {
  array,
  integer,
  modelId,
  namedObject,
  nonEmptyText,
  nullish,
  object,
  oneOf,
  optional,
  optionalString,
  string,
} from '../../schemas/fields.ts'
import { parsed } from '../../schemas/issues.ts'
import { base64Of, typedVector } from '../../schemas/typed-vector.ts'
import { vectorText } from '../../schemas/vector-text.ts'
import { dimensions, extras, inputType, vectorTypes, vectorTypeText } from '../../schemas/vectors.ts'
import type { ChatForm } from '../chat-form.ts'
import { noStream } from '../chat-terms.ts'

/** The wire shapes of Cohere's embeddings. Source: the types of its official client. */
const cohereVectorTypes = [...vectorTypes, 'base64'] as const
const maxTexts = 2048
const noImages = z
  .array(z.unknown())
  .nullish()
  .refine(images => !images?.length, { params: { notImplemented: true } })
  .describe('Not supported: the engines embed texts only. An empty list is accepted.')

export const CohereEmbedRequest = namedObject(
  'CohereEmbedRequest',
  'Texts to turn into vectors, in the form of Cohere.',
  {
    model: modelId,
    texts: nullish(z.array(nonEmptyText).max(maxTexts), 'Up to 2048 texts. Send these or `inputs`.'),
    inputs: nullish(
      z
        .array(
          z.object({
            content: z
              .array(
                z.object({
                  type: string('`text`; `image_url` is not supported.'),
                  text: optionalString('The text.'),
                }),
              )
              .min(1)
              .describe('Parts of the text, joined by line breaks.'),
          }),
        )
        .max(maxTexts),
      'Up to 2048 inputs of text parts.',
    ),
    images: noImages,
    input_type: inputType,
    embedding_types: nullish(
      z.array(z.enum(cohereVectorTypes)).min(1).max(cohereVectorTypes.length),
      `Types in which to return each vector. ${vectorTypeText} \`base64\` has 32-bit floats. Default: \`float\`.`,
    ),
    output_dimension: dimensions.describe('Shorten each vector to this many numbers, normalized again. Default: all.'),
    max_tokens: nullish(z.int().min(1), 'Cut each text to this many tokens.'),
    truncate: nullish(
      z.enum(['NONE', 'START', 'END']),
      '`END` cuts texts that are too long, `NONE` refuses them; `START` is not supported. Default: `END`.',
    ),
    priority: extras.priority,
    response_type: nullish(
      z.enum(['embeddings_floats', 'embeddings_by_type']),
      'Form of `embeddings`: a list of vectors as in the first version of the API, or one for each type.',
    ),
  },
)

const vectorLists = z.array(z.array(z.number()))
const ofType = (type: string) => optional(vectorLists, `Vectors of the type \`${type}\`.`)
export const CohereEmbedResponse = namedObject('CohereEmbedResponse', 'Vectors of texts, in the form of Cohere.', {
  id: string('Id of the answer.'),
  response_type: oneOf('Form of `embeddings`.', ['embeddings_floats', 'embeddings_by_type']),
  embeddings: z
    .union([
      vectorLists,
      z.object({
        float: ofType('float'),
        int8: ofType('int8'),
        uint8: ofType('uint8'),
        binary: ofType('binary'),
        ubinary: ofType('ubinary'),
        base64: optional(z.array(z.string()), '32-bit floats in base64.'),
      }),
    ])
    .describe('One vector for each text, in the order of the request, for each requested type.'),
  texts: array('The texts.', z.string()),
  images: array('Always empty.', z.unknown()),
  meta: object('For clients of Cohere.', {
    api_version: object('Version of the Cohere API.', { version: string('`1` or `2`.') }),
    billed_units: object('What was used.', { input_tokens: integer('Tokens of the texts.') }),
  }),
})

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
  isObject(raw) && !('input' in raw) && ownFields.some(name => name in raw)

/** Checks a body in Cohere's form. Throws Failure for an invalid one. */
export function wantedByCohere(raw: Record<string, unknown>) {
  const { model, texts, inputs, embedding_types, truncate, max_tokens, ...more } = parsed(CohereEmbedRequest, raw)
  if (texts?.length && inputs?.length) throw invalid('inputs', "Send 'texts' or 'inputs', not both.")
  const input = texts?.length
    ? texts
    : (inputs ?? []).map(({ content }, at) => textOf(content, `inputs[${at}].content`))
  if (input.length === 0) throw invalid('texts', "Missing required parameter: 'texts'.", 'missing_required_parameter')
  if (truncate === 'START')
    throw invalid(
      'truncate',
      "'truncate' can be 'END' or 'NONE': engines cut texts at their end.",
      'unsupported_parameter',
    )
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

function textOf(content: { type: string; text?: string | undefined }[], param: string): string {
  const parts = content.map(({ type, text }, at) => {
    if (type === 'text' && text !== undefined) return text
    throw invalid(
      `${param}[${at}]`,
      `'${param}[${at}]' is not a text: engines here embed texts only. Send parts of the type 'text' with 'text'.`,
      'unsupported_parameter',
    )
  })
  const joined = parts.join('\n')
  if (joined === '') throw invalid(param, `'${param}' must not be empty.`)
  return joined
}

/** Returns the answer in Cohere's form, as JSON. */
export function cohereAnswer(
  vectors: Float32Array[],
  inputTokens: number,
  { types, texts, floats }: CohereFormat,
): string {
  const shown = (vector: Float32Array, type: CohereFormat['types'][number]) =>
    type === 'base64' ? `"${base64Of(vector)}"` : vectorText(typedVector(vector, type))
  const listOf = (type: CohereFormat['types'][number]) => `[${vectors.map(vector => shown(vector, type)).join()}]`
  const embeddings = floats ? listOf('float') : `{${types.map(type => `"${type}":${listOf(type)}`).join()}}`
  const head = { id: `embed-${ulid()}`, response_type: floats ? 'embeddings_floats' : 'embeddings_by_type' }
  const rest = {
    texts,
    images: [],
    meta: { api_version: { version: floats ? '1' : '2' }, billed_units: { input_tokens: inputTokens } },
  }
  return `${JSON.stringify(head).slice(0, -1)},"embeddings":${embeddings},${JSON.stringify(rest).slice(1)}`
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
  stream: noStream,
}
