import { z } from 'zod'

/** The wire shapes of embeddings, rerank and score. Sources: OpenAI, Voyage and Cohere, vLLM's score API. */
const text = z.string().min(1)
const tokenIds = z.array(z.int().min(0)).min(1)
const extras = {
  user: z.string().nullish(),
  truncate_prompt_tokens: z.int().min(-1).nullish(),
  priority: z.int().nullish(),
}

export const EmbeddingsRequest = z
  .object({
    model: z.string().min(1).max(256),
    input: z.union([text, z.array(text).min(1).max(2048), tokenIds, z.array(tokenIds).min(1).max(2048)]),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    dimensions: z.int().min(1).nullish(),
    ...extras,
  })
  .meta({ id: 'EmbeddingsRequest' })
export type EmbeddingsRequest = z.output<typeof EmbeddingsRequest>

const promptUsage = z.object({ prompt_tokens: z.int().min(0), total_tokens: z.int().min(0) })

export const EmbeddingsResponse = z
  .object({
    object: z.literal('list'),
    data: z.array(
      z.object({
        object: z.literal('embedding'),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string().describe('base64 of little-endian float32')]),
      }),
    ),
    model: z.string(),
    usage: promptUsage,
  })
  .meta({ id: 'EmbeddingsResponse' })

const Document = z.union([z.string(), z.looseObject({ text: z.string().optional() })])

export const RerankRequest = z
  .object({
    model: z.string().min(1).max(256),
    query: text,
    documents: z.array(Document).min(1).max(1000),
    top_n: z.int().min(0).nullish(),
    top_k: z.int().min(0).nullish(),
    topN: z.int().min(0).nullish(),
    rank_fields: z.array(z.string().max(128)).max(16).nullish(),
    return_documents: z.boolean().nullish(),
    raw_scores: z.boolean().nullish(),
    ...extras,
  })
  .meta({ id: 'RerankRequest' })
export type RerankRequest = z.output<typeof RerankRequest>

export const RerankResponse = z
  .object({
    id: z.string(),
    object: z.literal('list'),
    model: z.string(),
    data: z.array(z.object({ index: z.int(), relevance_score: z.number(), document: z.string().optional() })),
    results: z.array(
      z.object({ index: z.int(), relevance_score: z.number(), document: z.object({ text: z.string() }).optional() }),
    ),
    usage: promptUsage.extend({ completion_tokens: z.literal(0) }),
    meta: z.object({
      api_version: z.object({ version: z.literal('2') }),
      billed_units: z.object({ search_units: z.int() }),
    }),
  })
  .meta({ id: 'RerankResponse' })
export type RerankResponse = z.output<typeof RerankResponse>

const side = z.union([text, z.array(text).min(1).max(1000)])

export const ScoreRequest = z
  .object({
    model: z.string().min(1).max(256),
    text_1: side.nullish(),
    text_2: side.nullish(),
    queries: side.nullish(),
    documents: side.nullish(),
    items: side.nullish(),
    data_1: side.nullish(),
    data_2: side.nullish(),
    use_activation: z.boolean().nullish(),
    ...extras,
  })
  .meta({ id: 'ScoreRequest' })
export type ScoreRequest = z.output<typeof ScoreRequest>

export const ScoreResponse = z
  .object({
    id: z.string(),
    object: z.literal('list'),
    created: z.int(),
    model: z.string(),
    data: z.array(z.object({ index: z.int(), object: z.literal('score'), score: z.number() })),
    usage: z.object({
      prompt_tokens: z.int().min(0),
      total_tokens: z.int().min(0),
      completion_tokens: z.int().min(0),
      prompt_tokens_details: z.null(),
    }),
  })
  .meta({ id: 'ScoreResponse' })
export type ScoreResponse = z.output<typeof ScoreResponse>
