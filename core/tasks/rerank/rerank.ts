import { Failure, invalid } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import type { EngineTraits, ModelSet } from '../../models/engine-traits.ts'
import { parsed } from '../../schemas/issues.ts'
import { RerankRequest, RerankResponse, wantsCut } from '../../schemas/vectors.ts'
import { extraFields, modelFor } from '../catalog.ts'
import type { CallerAnswer, PreparedRequest } from '../engine-request.ts'
import { rerankMetering } from '../metering.ts'
import { answerUsage, engineFault, parseAnswer, scoreNumber, sigmoid } from '../protocols/answer.ts'
import type { TaskName, TextTaskRecord } from '../task.ts'
import { sampleTexts, testQuery, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'

/** Names the task. */
const rerank = { id: 'std/rerank', title: 'reranking' } as const satisfies TaskName

export interface RerankAnswerFormat {
  task: typeof rerank.id
  modelId: string
  top: number
  /** The texts to return; null if the caller does not want them. */
  documents: string[] | null
  count: number
  /** How to convert scores: engines send probabilities or logits, and callers may request either. */
  convert: 'none' | 'sigmoid' | 'logit'
  logits: boolean
}

/** Checks a rerank body and translates it for the engine. */
function prepareRerank(raw: unknown, catalog: ModelSet): PreparedRequest {
  const request = parsed(RerankRequest, raw)
  const entry = modelFor(rerank, request.model, catalog)
  const documents = request.documents.map((document, at) => textOf(document, request.rank_fields, at))
  const top = request.top_n ?? request.top_k ?? request.topN ?? 0
  const raws = request.raw_scores === true
  const logits = entry.traits.rerankScores === 'logit'
  const body = {
    model: entry.traits.upstreamId,
    query: request.query,
    ...documentFields(documents, entry.traits),
    top_n: documents.length,
    truncate_prompt_tokens: request.truncate_prompt_tokens ?? (wantsCut(request) ? -1 : undefined),
    truncate: entry.traits.rerankField && wantsCut(request) ? true : undefined,
    priority: request.priority ?? undefined,
    ...extraFields(raw, entry),
  }
  return {
    modelId: entry.id,
    path: entry.traits.routes.rerank!.path,
    bodies: [JSON.stringify(body)],
    stream: false,
    answerFormat: {
      task: rerank.id,
      modelId: entry.id,
      top: top === 0 ? documents.length : Math.min(top, documents.length),
      documents: request.return_documents ? documents : null,
      count: documents.length,
      logits,
      convert: raws === logits ? 'none' : logits ? 'sigmoid' : 'logit',
    },
  }
}

/** Returns the documents under the name that the engine expects. */
export const documentFields = (documents: string[], { rerankField }: Pick<EngineTraits, 'rerankField'>) =>
  rerankField === undefined ? { documents } : { [rerankField]: documents }

function textOf(
  document: string | { [name: string]: unknown; text?: string },
  fields: string[] | null | undefined,
  at: number,
): string {
  if (typeof document === 'string') return document
  const chosen = fields?.length
    ? fields.map(name => document[name]).filter(value => typeof value === 'string')
    : [document.text]
  const text = chosen.filter(value => value !== undefined).join('\n')
  if (!text)
    throw invalid(
      `documents[${at}]`,
      `'documents[${at}]' has no text in ${fields?.length ? fields.map(name => `'${name}'`).join(', ') : "'text'"}.`,
    )
  return text
}

/** Returns one score for each document, in the order of the request. */
export function rerankScores(answer: Record<string, unknown>, count: number): number[] {
  const items = Array.isArray(answer.results) ? answer.results : answer.data
  if (!Array.isArray(items) || items.length !== count)
    throw engineFault(`with another number of scores than the ${count} documents`)
  const scores: number[] = []
  for (const item of items as { index?: unknown; relevance_score?: unknown; score?: unknown }[]) {
    const place = item?.index
    if (
      typeof place !== 'number' ||
      !Number.isInteger(place) ||
      place < 0 ||
      place >= count ||
      scores[place] !== undefined
    )
      throw engineFault('scores with impossible indexes')
    scores[place] = scoreNumber(item.relevance_score ?? item.score)
  }
  return scores
}

/** Checks a probability: a value outside 0 to 1 shows that the engine sends logits, which would be misread. */
export function probability(value: number, modelId: string): number {
  if (value >= 0 && value <= 1) return value
  throw new Failure(
    'worker_error',
    `The engine gave the score ${value}, which is no probability. If it gives logits, set rerank_scores: logit for the model '${modelId}'.`,
  )
}

const converted = (value: number, how: RerankAnswerFormat['convert']): number =>
  how === 'sigmoid'
    ? sigmoid(value)
    : how === 'logit'
      ? Math.log(Math.max(value, 1e-12) / Math.max(1 - value, 1e-12))
      : value

/** Shapes an engine's scores for the caller: by score, ties by position, under `data` and under `results`. */
function shapeRerank(bytes: Uint8Array, answerFormat: RerankAnswerFormat): CallerAnswer {
  const answer = parseAnswer(bytes)
  const { inputTokens } = answerUsage(answer.usage)
  const ranked = rerankScores(answer, answerFormat.count)
    .map(value => (answerFormat.logits ? value : probability(value, answerFormat.modelId)))
    .map((value, index) => ({ index, relevance_score: converted(value, answerFormat.convert) }))
    .sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
    .slice(0, answerFormat.top)
  const response: RerankResponse = {
    id: `rerank-${ulid()}`,
    object: 'list',
    model: answerFormat.modelId,
    data: ranked.map(item =>
      answerFormat.documents ? { ...item, document: answerFormat.documents[item.index]! } : item,
    ),
    results: ranked.map(item =>
      answerFormat.documents ? { ...item, document: { text: answerFormat.documents[item.index]! } } : item,
    ),
    usage: { prompt_tokens: inputTokens, completion_tokens: 0, total_tokens: inputTokens },
    meta: { api_version: { version: '2' }, billed_units: { search_units: Math.ceil(answerFormat.count / 100) } },
  }
  return { body: JSON.stringify(response), usage: { inputTokens, outputTokens: 0, documents: answerFormat.count } }
}

/** The record of reranking. */
export const rerankTask: TextTaskRecord = {
  ...rerank,
  ...textTask,
  family: 'rerank',
  aliases: ['std/reranking'],
  description: 'Order documents by their relevance to a query.',
  path: '/std/v1/rerank',
  trial: 'infer rerank MODEL "a question" "an answer" "something else"',
  test: {
    stream: false,
    body: model => ({ model, query: testQuery, documents: testTexts }),
    fault(answer) {
      const { results } = answer as { results: { index: number; relevance_score: number }[] }
      if (new Set(results.map(({ index }) => index)).size !== testTexts.length)
        return `It ranked ${results.length} of ${testTexts.length} documents.`
      const scores = results.map(one => one.relevance_score)
      if (!scores.every(Number.isFinite)) return 'A score is not a number.'
      if (scores.some((score, at) => at > 0 && score > scores[at - 1]!)) return 'The results are not sorted by score.'
      return results[0]!.index === 0 ? undefined : 'The document that answers the question is not first.'
    },
  },
  sample: { query: 'cat', documents: sampleTexts },
  form: { panel: 'fields', hidden: ['top_k', 'return_documents'], first: [] },
  request: RerankRequest,
  otherFields: { max_tokens_per_doc: null },
  result: RerankResponse,
  metering: rerankMetering,
  prepare: prepareRerank,
  shape: (answers, answerFormat: RerankAnswerFormat) => shapeRerank(answers[0]!, answerFormat),
}
