import { invalid } from '../../failure.ts'
import { ulid } from '../../ids.ts'
import type { ModelSet, ModelSetEntry } from '../../models/engine-traits.ts'
import { parsed } from '../../schemas/issues.ts'
import { ScoreRequest, ScoreResponse } from '../../schemas/vectors.ts'
import { extraFields, modelFor } from '../catalog.ts'
import { answerVectors } from '../embeddings/embeddings.ts'
import type { CallerAnswer, PreparedRequest } from '../engine-request.ts'
import { scoreMetering } from '../metering.ts'
import { answerUsage, engineFault, parseAnswer, scoreNumber, sigmoid } from '../protocols/answer.ts'
import { documentFields, probability, rerankScores } from '../rerank/rerank.ts'
import type { TaskName, TextTaskRecord } from '../task.ts'
import { sampleTexts, testQuery, testTexts } from '../task-test.ts'
import { textTask } from '../text-task.ts'

/** Names the task. */
export const score = { id: 'std/score', title: 'scoring' } as const satisfies TaskName

/** Maximum characters of all requests together if a text is repeated for every pair. */
const maxRepeated = 4 << 20

export interface ScoreAnswerFormat {
  task: typeof score.id
  modelId: string
  pairs: number
  by: 'score' | 'rerank' | 'embeddings'
  /** Number of texts on each side. */
  left: number
  right: number
  logits: boolean
}

/** Checks a score body and translates it for the engine's score route, its rerank route, or embeddings. */
function prepareScore(raw: unknown, catalog: ModelSet): PreparedRequest {
  const request = parsed(ScoreRequest, raw)
  const entry = modelFor(score, request.model, catalog)
  const [left, right] = sides(request)
  const by = entry.traits.scoreBy
  const pairs = Math.max(left.length, right.length)
  const shared = {
    model: entry.traits.upstreamId,
    truncate_prompt_tokens: request.truncate_prompt_tokens ?? undefined,
    priority: request.priority ?? undefined,
    ...extraFields(raw, entry),
  }
  const bodies = {
    score: () => [{ ...shared, text_1: left.length === 1 ? left[0] : left, text_2: right }],
    rerank: () =>
      rerankCalls(left, right).map(({ query, documents }) => ({
        ...shared,
        query,
        ...documentFields(documents, entry.traits),
        top_n: documents.length,
      })),
    embeddings: () => [
      { ...shared, input: [...left, ...right], encoding_format: entry.traits.base64 ? 'base64' : 'float' },
    ],
  }[by]()
  return {
    modelId: entry.id,
    path: pathFor(entry),
    bodies: bodies.map(body => JSON.stringify(body)),
    stream: false,
    answerFormat: {
      task: score.id,
      modelId: entry.id,
      pairs,
      by,
      left: left.length,
      right: right.length,
      logits: by === 'rerank' && entry.traits.rerankScores === 'logit',
    },
  }
}

function pathFor({ id, traits }: ModelSetEntry): string {
  const path = traits.routes[traits.scoreBy === 'embeddings' ? 'embed' : traits.scoreBy]?.path
  if (!path) throw invalid('model', `The engine of '${id}' has no way to score pairs.`, 'unsupported_task')
  return path
}

/** Returns both sides: 1↔1, 1↔N or N↔N, under any of the four pairs of names that clients use. */
function sides(request: ScoreRequest): [string[], string[]] {
  const names = [
    ['text_1', 'text_2'],
    ['queries', 'documents'],
    ['queries', 'items'],
    ['data_1', 'data_2'],
  ] as const
  const found = names.find(([one, two]) => request[one] != null && request[two] != null)
  if (!found)
    throw invalid(
      'text_1',
      "Send a pair to compare: 'text_1' and 'text_2' (or 'queries' and 'documents').",
      'missing_required_parameter',
    )
  const [left, right] = found.map(name => [request[name]!].flat()) as [string[], string[]]
  if (left.length !== right.length && left.length !== 1 && right.length !== 1)
    throw invalid(
      found[1],
      `'${found[0]}' has ${left.length} entries and '${found[1]}' ${right.length}; they must be as many, or one of them a single text.`,
    )
  return [left, right]
}

function rerankCalls(left: string[], right: string[]): { query: string; documents: string[] }[] {
  if (left.length === 1) return [{ query: left[0]!, documents: right }]
  const sizeOf = (texts: string[]) =>
    texts.reduce((sum, text) => sum + text.length, 0) * (texts.length === 1 ? left.length : 1)
  if (sizeOf(left) + sizeOf(right) > maxRepeated)
    throw invalid(
      'text_2',
      `This engine needs one request for each pair, and all requests together are larger than ${maxRepeated >> 20} MiB. Send fewer pairs.`,
      'payload_too_large',
    )
  return left.map((query, at) => ({ query, documents: [right[right.length === 1 ? 0 : at]!] }))
}

function cosine(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) throw engineFault('embeddings of different sizes')
  let dot = 0
  let aa = 0
  let bb = 0
  for (let at = 0; at < a.length; at++) {
    dot += a[at]! * b[at]!
    aa += a[at]! ** 2
    bb += b[at]! ** 2
  }
  return dot / (Math.sqrt(aa * bb) || 1)
}

function scoresBy(answers: Record<string, unknown>[], answerFormat: ScoreAnswerFormat): number[] {
  if (answerFormat.by === 'rerank') {
    const each = answerFormat.pairs / answers.length
    return answers
      .flatMap(answer => rerankScores(answer, each))
      .map(value => (answerFormat.logits ? sigmoid(value) : probability(value, answerFormat.modelId)))
  }
  const [answer] = answers
  if (answerFormat.by === 'embeddings') {
    const vectors = answerVectors(answer!, answerFormat.left + answerFormat.right)
    const at = (side: number, from: number, pair: number) => vectors[from + (side === 1 ? 0 : pair)]!
    return Array.from({ length: answerFormat.pairs }, (_, pair) =>
      cosine(at(answerFormat.left, 0, pair), at(answerFormat.right, answerFormat.left, pair)),
    )
  }
  const data = answer?.data
  if (!Array.isArray(data) || data.length !== answerFormat.pairs)
    throw engineFault(`with another number of scores than the ${answerFormat.pairs} pairs`)
  return (data as { score?: unknown }[]).map(item => scoreNumber(item?.score))
}

/** Scores in the order of the pairs. */
function shapeScore(bytes: Uint8Array[], answerFormat: ScoreAnswerFormat): CallerAnswer {
  const answers = bytes.map(parseAnswer)
  const inputTokens = answers.reduce((sum, answer) => sum + answerUsage(answer.usage).inputTokens, 0)
  const response: ScoreResponse = {
    id: `score-${ulid()}`,
    object: 'list',
    created: Math.floor(Date.now() / 1000),
    model: answerFormat.modelId,
    data: scoresBy(answers, answerFormat).map((value, index) => ({ index, object: 'score', score: value })),
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens, completion_tokens: 0, prompt_tokens_details: null },
  }
  return { body: JSON.stringify(response), usage: { inputTokens, outputTokens: 0, documents: answerFormat.pairs } }
}

/** The record of scoring. */
export const scoreTask: TextTaskRecord = {
  ...score,
  ...textTask,
  family: 'score',
  aliases: [],
  description: 'Score how well pairs of texts fit together.',
  path: '/std/v1/score',
  test: {
    stream: false,
    body: model => ({ model, text_1: testQuery, text_2: testTexts }),
    fault(answer) {
      const scores = (answer as { data: { score: number }[] }).data.map(one => one.score)
      if (scores.length !== testTexts.length)
        return `It returned ${scores.length} scores for ${testTexts.length} texts.`
      if (!scores.every(Number.isFinite)) return 'A score is not a number.'
      return scores[0] === Math.max(...scores)
        ? undefined
        : 'The text that answers the question does not have the highest score.'
    },
  },
  sample: { text_1: sampleTexts[0], text_2: sampleTexts[1] },
  form: { panel: 'fields', hidden: ['queries', 'documents', 'items', 'data_1', 'data_2'], first: [] },
  request: ScoreRequest,
  result: ScoreResponse,
  metering: scoreMetering,
  prepare: prepareScore,
  shape: (answers, answerFormat: ScoreAnswerFormat) => shapeScore(answers, answerFormat),
}
