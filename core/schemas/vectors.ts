import { z } from 'zod'
import {
  count,
  integer,
  modelId,
  namedObject,
  nonEmptyString,
  nonEmptyText,
  notImplemented,
  nullish,
  nullishBoolean,
  nullishInteger,
  nullishString,
  number,
  object,
  objects,
  optionalObject,
  optionalString,
  string,
  tokenIds,
} from './fields.ts'

/** The wire shapes of embeddings, rerank and score. Sources: OpenAI, Voyage, Jina and Cohere, vLLM's score API. */
export const extras = {
  user: nullishString(
    'Your own id of the end user. Accepted for compatibility; not stored and not sent to the engine.',
  ),
  truncate_prompt_tokens: nullish(
    z.int().min(-1),
    'Cut each input to this many tokens; -1 cuts to what the model reads. When absent, inputs that are too long are refused.',
  ),
  priority: nullishInteger('Passed to the engine, for engines that schedule by priority (vLLM). Default: 0.'),
}

/** Types of the numbers of a vector. */
export const vectorTypes = ['float', 'int8', 'uint8', 'binary', 'ubinary'] as const
export type VectorType = (typeof vectorTypes)[number]
export const vectorTypeText =
  '`int8` and `uint8` have a byte for each number from -1 to 1, `binary` and `ubinary` a bit for its sign, eight in a byte; the signed types are 128 less.'
export const dimensions = z.int().min(1).nullish()
export const inputType = nullish(
  z.string().max(64),
  'What the texts are: `query` or `document`, also as Cohere and Jina name them (`search_query`, `retrieval.passage`). A model with `embedding_prefixes` in `infer.yaml` gets the prefix for it; others get the texts as they are sent.',
)
const truncation = nullish(
  z.union([z.boolean(), z.enum(['END', 'NONE'])]),
  '`true` and `END` are the same as `truncate_prompt_tokens: -1`; `false` and `NONE` have no effect. Engines cut texts at their end.',
)

/** Whether texts that are too long shall be cut: `truncation` of Voyage, `truncate` of Jina and NVIDIA. */
export const wantsCut = (request: Partial<Record<'truncation' | 'truncate', z.output<typeof truncation>>>): boolean =>
  [request.truncation, request.truncate].some(value => value === true || value === 'END')

const InputObject = z.looseObject({ text: nonEmptyString('The text.') })

export const EmbeddingsRequest = namedObject('EmbeddingsRequest', 'Texts to turn into vectors.', {
  model: modelId,
  input: z
    .union([
      nonEmptyText,
      z.array(nonEmptyText).min(1).max(2048),
      tokenIds,
      z.array(tokenIds).min(1).max(2048),
      z
        .array(z.union([nonEmptyText, InputObject]))
        .min(1)
        .max(2048),
    ])
    .describe('A text or a list of token ids, or a list of up to 2048 of either. A text may be an object with `text`.'),
  encoding_format: nullish(
    z.enum(['float', 'base64']),
    '`float`: lists of numbers. `base64`: the bytes of the numbers in base64; floats have 32 bits, little-endian. Default: `float`.',
  ),
  dimensions: dimensions.describe(
    'Shorten each vector to this many numbers, normalized again. Default: all of the model.',
  ),
  output_dimension: dimensions.describe('The same as `dimensions` (Voyage).'),
  output_dtype: nullish(z.enum(vectorTypes), `Type of the numbers (Voyage). ${vectorTypeText} Default: \`float\`.`),
  embedding_type: nullish(
    z.enum([...vectorTypes, 'base64']),
    'The same as `output_dtype` (Jina); `base64` is the same as `encoding_format: "base64"`.',
  ),
  normalized: nullishBoolean('Whether to scale each vector to the length 1 (Jina). Default: as the engine returns it.'),
  input_type: inputType,
  task: inputType,
  truncation,
  truncate: truncation,
  late_chunking: notImplemented,
  return_multivector: notImplemented,
  ...extras,
})
export type EmbeddingsRequest = z.output<typeof EmbeddingsRequest>

const promptUsage = object('Token counts of the request.', {
  prompt_tokens: count('Tokens of the inputs.'),
  total_tokens: count('The same: nothing is generated.'),
})

export const EmbeddingsResponse = namedObject('EmbeddingsResponse', 'Vectors of texts.', {
  object: z.literal('list'),
  data: objects('One vector for each input, in the order of the request.', {
    object: z.literal('embedding'),
    index: integer('Position of the input in the request, from 0.'),
    embedding: z
      .union([z.array(z.number()), z.string()])
      .describe('The vector: a list of numbers, or base64 of their bytes.'),
  }),
  model: string('Id of the model.'),
  usage: promptUsage,
})

const Document = z.union([
  z.string(),
  z.looseObject({ text: optionalString('The text to rank, unless `rank_fields` names others.') }),
])

const maxResults = z.int().min(0).nullish()

export const RerankRequest = namedObject('RerankRequest', 'Documents to order by relevance to a query.', {
  model: modelId,
  query: nonEmptyString('What the documents are compared with.'),
  documents: z
    .array(Document)
    .min(1)
    .max(1000)
    .describe('1 to 1000 texts, or objects with the text in `text` or in the fields that `rank_fields` names.'),
  top_n: maxResults.describe('How many results to return, most relevant first. Default: all.'),
  top_k: maxResults.describe('The same as `top_n` (Voyage).'),
  topN: maxResults.describe('The same as `top_n` (camel case).'),
  rank_fields: nullish(
    z.array(z.string().max(128)).max(16),
    'Fields of document objects whose texts are ranked, joined by line breaks. Default: `text`.',
  ),
  return_documents: nullishBoolean('Whether to return the text of each document. Default: false.'),
  truncation,
  truncate: truncation,
  return_embeddings: notImplemented,
  raw_scores: nullishBoolean('Whether to return logits in place of probabilities from 0 to 1. Default: false.'),
  ...extras,
})
export type RerankRequest = z.output<typeof RerankRequest>

const rank = {
  index: integer('Position of the document in the request, from 0.'),
  relevance_score: number('Relevance: 0 to 1, or a logit with `raw_scores: true`.'),
}

export const RerankResponse = namedObject('RerankResponse', 'Documents ordered by relevance.', {
  id: string('Id of the answer.'),
  object: z.literal('list'),
  model: string('Id of the model.'),
  data: objects('The ranking, most relevant first, in the form of Voyage.', {
    ...rank,
    document: optionalString('The text, with `return_documents: true`.'),
  }),
  results: objects('The same ranking in the form of Cohere and Jina.', {
    ...rank,
    document: optionalObject('The document, with `return_documents: true`.', { text: string('The text.') }),
  }),
  usage: promptUsage.extend({ completion_tokens: z.literal(0) }).describe('Token counts of the request.'),
  meta: object('For clients of Cohere.', {
    api_version: object('Version of the Cohere API that this follows.', { version: z.literal('2') }),
    billed_units: object('What Cohere would bill.', { search_units: integer('One for each 100 documents.') }),
  }),
})
export type RerankResponse = z.output<typeof RerankResponse>

const side = z.union([nonEmptyText, z.array(nonEmptyText).min(1).max(1000)])

export const ScoreRequest = namedObject(
  'ScoreRequest',
  'Pairs of texts to score. Send one of the three names for a pair.',
  {
    model: modelId,
    text_1: nullish(side, 'First text of the pair, or a list of up to 1000. Needs `text_2`.'),
    text_2: nullish(
      side,
      'Second text of the pair, or a list. Lists are paired by position; one text is paired with each of a list.',
    ),
    queries: nullish(side, 'The same as `text_1`, together with `documents` or `items`.'),
    documents: nullish(side, 'The same as `text_2`, together with `queries`.'),
    items: nullish(side, 'The same as `text_2`, together with `queries`.'),
    data_1: nullish(side, 'The same as `text_1`, together with `data_2`.'),
    data_2: nullish(side, 'The same as `text_2`, together with `data_1`.'),
    use_activation: nullishBoolean('Accepted for compatibility with vLLM; has no effect.'),
    ...extras,
  },
)
export type ScoreRequest = z.output<typeof ScoreRequest>

export const ScoreResponse = namedObject('ScoreResponse', 'Scores of pairs of texts.', {
  id: string('Id of the answer.'),
  object: z.literal('list'),
  created: integer('Unix seconds.'),
  model: string('Id of the model.'),
  data: objects('One score for each pair, in the order of the request.', {
    index: integer('Position of the pair, from 0.'),
    object: z.literal('score'),
    score: number('Similarity or relevance; mostly 0 to 1, depending on the model.'),
  }),
  usage: object('Token counts of the request.', {
    prompt_tokens: count('Tokens of the texts.'),
    total_tokens: count('The same: nothing is generated.'),
    completion_tokens: count('0: nothing is generated.'),
    prompt_tokens_details: z.null().describe('Always null. For compatibility.'),
  }),
})
export type ScoreResponse = z.output<typeof ScoreResponse>
