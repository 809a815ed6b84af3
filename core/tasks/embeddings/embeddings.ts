import { Failure } from '../../failure.ts'
import type { Catalog } from '../../models/catalog.ts'
import { failureOf } from '../../schemas/issues.ts'
import { EmbeddingsRequest } from '../../schemas/vectors.ts'
import { extraFields, modelFor } from '../catalog.ts'
import type { Prepared, Shaped } from '../prepared.ts'
import { engineFault, parseAnswer, usageOf } from '../protocols/answer.ts'
import type { TaskName } from '../task.ts'

/** Names the task. */
export const embeddings = { id: 'std/embeddings', title: 'embeddings' } as const satisfies TaskName

export interface EmbeddingsAnswerFormat {
  task: 'std/embeddings'
  modelId: string
  encoding: 'float' | 'base64'
  /** Set when the engine ignores `dimensions` and we cut and renormalise. */
  cutTo: number | null
  count: number
}

/** Checks an embeddings body and translates it for the engine. */
export function prepareEmbeddings(raw: unknown, catalog: Catalog): Prepared {
  const checked = EmbeddingsRequest.safeParse(raw)
  if (!checked.success) throw failureOf(checked.error, raw)
  const { model, input, encoding_format, dimensions, truncate_prompt_tokens, priority } = checked.data
  const entry = modelFor(embeddings, model, catalog)
  const { traits } = entry
  const encoding = encoding_format ?? 'float'
  const body = {
    model: traits.upstreamId,
    input,
    // Base64 needs a fourth of the bytes, so it is used even if the caller gets numbers.
    encoding_format: traits.base64 ? 'base64' : 'float',
    dimensions: traits.dimensions ? (dimensions ?? undefined) : undefined,
    truncate_prompt_tokens: truncate_prompt_tokens ?? undefined,
    priority: priority ?? undefined,
    ...extraFields(raw, entry),
  }
  return {
    modelId: entry.id,
    path: traits.routes['std/embeddings']!.path,
    bodies: [JSON.stringify(body)],
    stream: false,
    answerFormat: {
      task: 'std/embeddings',
      modelId: entry.id,
      encoding,
      cutTo: traits.dimensions ? null : (dimensions ?? null),
      count: typeof input === 'string' || typeof input[0] === 'number' ? 1 : input.length,
    },
  }
}

/** Parses vectors in either encoding as 32-bit floats, in the order of the input. */
export function vectorsOf(answer: Record<string, unknown>, count: number): Float32Array[] {
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
    const vector = new Float32Array(bytes.length / 4)
    for (let at = 0; at < vector.length; at++) vector[at] = bytes.readFloatLE(at * 4)
    if (!vector.every(Number.isFinite)) throw engineFault('an embedding with members that are no numbers')
    return vector
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every(Number.isFinite))
    throw engineFault('an embedding that is not a list of numbers')
  return Float32Array.from(value as number[])
}

/** Returns the first `size` numbers, scaled to length 1 (Matryoshka). Throws Failure if the vector has fewer. */
export function cut(vector: Float32Array, size: number, modelId: string): Float32Array {
  if (size > vector.length)
    throw new Failure('invalid_value', `'dimensions' must be at most ${vector.length}, the size of '${modelId}'.`, {
      param: 'dimensions',
    })
  const part = vector.slice(0, size)
  const length = Math.hypot(...part) || 1
  return part.map(member => member / length)
}

/** Shapes an engine's embeddings for the caller. */
export function shapeEmbeddings(bytes: Uint8Array, answerFormat: EmbeddingsAnswerFormat): Shaped {
  const answer = parseAnswer(bytes)
  const { inputTokens } = usageOf(answer.usage)
  const data = vectorsOf(answer, answerFormat.count).map((whole, index) => {
    const vector = answerFormat.cutTo === null ? whole : cut(whole, answerFormat.cutTo, answerFormat.modelId)
    const embedding =
      answerFormat.encoding === 'base64'
        ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
        : Array.from(vector)
    return { object: 'embedding', index, embedding }
  })
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens }
  return {
    body: JSON.stringify({ object: 'list', data, model: answerFormat.modelId, usage }),
    usage: { inputTokens, outputTokens: 0 },
  }
}
