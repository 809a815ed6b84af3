import { type CohereFormat, cohereAnswer, isCohere, wantedByCohere } from '../../dialects/cohere/cohere-embed.ts'
import { Failure, invalid } from '../../failure.ts'
import { isObject } from '../../json.ts'
import { presentMembers } from '../../members.ts'
import type { ModelSet, ModelSetEntry } from '../../models/engine-traits.ts'
import { failureOfIssues } from '../../schemas/issues.ts'
import { base64Of, normalize, typedVector } from '../../schemas/typed-vector.ts'
import { vectorText } from '../../schemas/vector-text.ts'
import { EmbeddingsRequest, EmbeddingsResponse, type VectorType, wantsCut } from '../../schemas/vectors.ts'
import { extraFields, modelFor } from '../catalog.ts'
import type { CallerAnswer, PreparedRequest } from '../engine-request.ts'
import { vectorMetering } from '../metering.ts'
import { firstOf } from '../prediction.ts'
import { answerUsage, engineFault, parseAnswer } from '../protocols/answer.ts'
import type { TaskName, TextTaskRecord } from '../task.ts'
import { sampleTexts, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'

/** A request in any dialect, as far as the engine and the answer depend on it. */
interface WantedVectors {
  model: string
  input: string | number[] | (string | number[])[]
  encoding?: 'float' | 'base64'
  type?: VectorType
  normalized?: boolean
  dimensions?: number | null | undefined
  /** Tokens to which each input is cut; -1 for the context length. */
  cutTokens?: number | null | undefined
  priority?: number | null | undefined
  /** What the inputs are, such as `search_query`. */
  kind?: string | null | undefined
  cohere?: CohereFormat
}

/** Names the task. */
export const embeddings = { id: 'std/embeddings', title: 'embeddings' } as const satisfies TaskName

export interface EmbeddingsAnswerFormat {
  task: typeof embeddings.id
  modelId: string
  encoding: 'float' | 'base64'
  type: VectorType
  normalized: boolean
  /** Set when the engine ignores `dimensions` and we cut and renormalise. */
  cutTo: number | null
  count: number
  /** Set if the caller speaks Cohere's dialect. */
  cohere?: CohereFormat
}

/** Checks an embeddings body and translates it for the engine. */
function prepareEmbeddings(raw: unknown, catalog: ModelSet): PreparedRequest {
  const wanted: WantedVectors = isCohere(raw) ? wantedByCohere(raw) : wantedOf(raw)
  const { dimensions } = wanted
  const entry = modelFor(embeddings, wanted.model, catalog)
  const input = withPrefix(wanted, entry.embeddingPrefixes)
  const { traits } = entry
  const body = {
    model: traits.upstreamId,
    input,
    // Base64 needs a fourth of the bytes, so it is used even if the caller gets numbers.
    encoding_format: traits.base64 ? 'base64' : 'float',
    dimensions: traits.dimensions ? (dimensions ?? undefined) : undefined,
    truncate_prompt_tokens: wanted.cutTokens ?? undefined,
    priority: wanted.priority ?? undefined,
    ...extraFields(raw, entry),
  }
  return {
    modelId: entry.id,
    path: traits.routes.embed!.path,
    bodies: [JSON.stringify(body)],
    stream: false,
    answerFormat: {
      task: embeddings.id,
      modelId: entry.id,
      encoding: wanted.encoding ?? 'float',
      type: wanted.type ?? 'float',
      normalized: wanted.normalized ?? false,
      cutTo: traits.dimensions ? null : (dimensions ?? null),
      count: typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length,
      cohere: wanted.cohere,
    },
  }
}

/** Reads the dialects of OpenAI, Voyage, Jina and Together, whose fields do not contradict each other. */
function wantedOf(raw: unknown): WantedVectors {
  const checked = EmbeddingsRequest.safeParse(raw)
  if (!checked.success) throw imageFailure(raw) ?? failureOfIssues(checked.error, raw)
  const { model, input, encoding_format, embedding_type, output_dtype, normalized, ...more } = checked.data
  const isBase64 = encoding_format === 'base64' || (encoding_format == null && embedding_type === 'base64')
  return {
    model,
    input: textsOf(input),
    encoding: isBase64 ? 'base64' : 'float',
    type: output_dtype ?? (embedding_type === 'base64' ? undefined : embedding_type) ?? 'float',
    normalized: normalized === true,
    dimensions: more.dimensions ?? more.output_dimension,
    cutTokens: more.truncate_prompt_tokens ?? (wantsCut(more) ? -1 : undefined),
    priority: more.priority,
    kind: more.input_type ?? more.task,
  }
}

/** Names of queries and of documents: those of Cohere, Voyage and Jina. */
const isQuery = /(^|[._])query$/
const isDocument = /(^|[._])(document|passage)$/

/** Returns the texts after the prefix that the model has for their kind. Tokens are not changed. */
function withPrefix(
  { input, kind }: WantedVectors,
  prefixes: ModelSetEntry['embeddingPrefixes'] = {},
): WantedVectors['input'] {
  const name = kind ?? ''
  const prefix = isQuery.test(name) ? prefixes.query : isDocument.test(name) ? prefixes.document : undefined
  if (prefix === undefined) return input
  if (typeof input === 'string') return prefix + input
  return typeof input[0] === 'number'
    ? input
    : (input as (string | number[])[]).map(one => (typeof one === 'string' ? prefix + one : one))
}

const textsOf = (input: EmbeddingsRequest['input']): WantedVectors['input'] =>
  Array.isArray(input) && input.some(one => typeof one === 'object' && 'text' in one)
    ? input.map(one => (typeof one === 'object' && 'text' in one ? one.text : (one as string)))
    : (input as WantedVectors['input'])

/** Returns the failure for an input that is an image; undefined without one. */
function imageFailure(raw: unknown): Failure | undefined {
  const input = (raw as { input?: unknown } | null)?.input
  if (!Array.isArray(input)) return undefined
  const at = input.findIndex(one => isObject(one) && 'image' in one)
  if (at < 0) return undefined
  const param = `input[${at}].image`
  return invalid(param, `'${param}' is an image, but engines here embed texts only.`, 'unsupported_parameter')
}

/** Parses vectors in either encoding as 32-bit floats, in the order of the input. */
export function answerVectors(answer: Record<string, unknown>, count: number): Float32Array[] {
  if (!Array.isArray(answer.data) || answer.data.length !== count)
    throw engineFault(`with another number of embeddings than the ${count} inputs`)
  const vectors: Float32Array[] = []
  for (const [at, item] of (answer.data as { index?: unknown; embedding?: unknown }[]).entries()) {
    const place = typeof item?.index === 'number' ? item.index : at
    if (!Number.isInteger(place) || place < 0 || place >= count || vectors[place])
      throw engineFault('embeddings with impossible indexes')
    vectors[place] = vectorOf(item.embedding)
  }
  return vectors
}

function vectorOf(value: unknown): Float32Array {
  if (typeof value === 'string') {
    const bytes = Buffer.from(value, 'base64')
    if (bytes.length === 0 || bytes.length % 4 !== 0) throw engineFault('an embedding that is not base64 of floats')
    // Bytes of Node's pool begin at a multiple of 8, and all machines that run infer are little-endian.
    return finite(new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4))
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every(one => typeof one === 'number'))
    throw engineFault('an embedding that is not a list of numbers')
  return finite(Float32Array.from(value))
}

/** By index: an iterator takes eight times as long. */
function finite(vector: Float32Array): Float32Array {
  for (let at = 0; at < vector.length; at++)
    if (!Number.isFinite(vector[at]!)) throw engineFault('an embedding with members that are no numbers')
  return vector
}

/** Returns the first `size` numbers, scaled to length 1 (Matryoshka). Throws Failure if the vector has fewer. */
function cut(vector: Float32Array, size: number, modelId: string): Float32Array {
  if (size > vector.length)
    throw invalid('dimensions', `'dimensions' must be at most ${vector.length}, the size of '${modelId}'.`)
  return normalize(vector.subarray(0, size))
}

/** Shapes an engine's embeddings for the caller. */
function shapeEmbeddings(bytes: Uint8Array, answerFormat: EmbeddingsAnswerFormat): CallerAnswer {
  const answer = parseAnswer(bytes)
  const { inputTokens } = answerUsage(answer.usage)
  const vectors = answerVectors(answer, answerFormat.count).map(whole => {
    const vector = answerFormat.cutTo === null ? whole : cut(whole, answerFormat.cutTo, answerFormat.modelId)
    return answerFormat.normalized ? normalize(vector) : vector
  })
  const billed = { inputTokens, outputTokens: 0 }
  if (answerFormat.cohere) return { body: cohereAnswer(vectors, inputTokens, answerFormat.cohere), usage: billed }
  const data = vectors.map((vector, index) => {
    const typed = typedVector(vector, answerFormat.type)
    const embedding = answerFormat.encoding === 'base64' ? `"${base64Of(typed)}"` : vectorText(typed)
    return `{"object":"embedding","index":${index},"embedding":${embedding}}`
  })
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens }
  const rest = JSON.stringify({ model: answerFormat.modelId, usage }).slice(1)
  return { body: `{"object":"list","data":[${data.join()}],${rest}`, usage: billed }
}

/** The record of embeddings. */
export const embeddingsTask: TextTaskRecord = {
  ...embeddings,
  ...textTask,
  family: 'embeddings',
  aliases: ['std/embedding'],
  description: 'Turn texts into vectors with an embedding model of this server.',
  path: '/std/v1/embeddings',
  trial: 'infer embed MODEL "Hello"',
  test: {
    stream: false,
    body: model => ({ model, input: [testTexts[0], testTexts[1], testTexts[0]] }),
    fault(answer) {
      const vectors = (answer as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding)
      const [first, other, again] = vectors
      if (!first || !other || !again) return `It returned ${vectors.length} vectors for three texts.`
      if (vectors.some(vector => vector.length === 0 || vector.length !== first.length))
        return 'Its vectors have different lengths.'
      if (vectors.some(vector => !(Math.hypot(...vector) > 0))) return 'A vector is zero or not a number.'
      if (cosine(first, again) < 0.999) return 'The same text got two different vectors.'
      return cosine(first, other) > 0.9999 ? 'Different texts got the same vector.' : undefined
    },
  },
  sample: { input: sampleTexts[0], encoding_format: 'float' },
  form: { panel: 'fields', hidden: ['encoding_format', 'task', 'truncation'], first: [] },
  request: EmbeddingsRequest,
  result: EmbeddingsResponse,
  metering: vectorMetering,
  prediction: {
    media: [],
    request: input => presentMembers({ input: firstOf(input, 'input', 'texts', 'text', 'prompt') }),
    output: result => (result as { data: { embedding: unknown }[] }).data.map(({ embedding }) => embedding),
  },
  prepare: prepareEmbeddings,
  shape: (answers, answerFormat: EmbeddingsAnswerFormat) => shapeEmbeddings(answers[0]!, answerFormat),
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = a.reduce((sum, value, at) => sum + value * b[at]!, 0)
  return dot / (Math.hypot(...a) * Math.hypot(...b))
}
