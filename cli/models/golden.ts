/** A test request of a task whose answer can be checked for every working model. */
export interface Golden {
  path: string
  /** Whether to stream, in order to measure the time to the first token and the rate. */
  stream: boolean
  body: (model: string) => object
  /** Returns why the answer is wrong, as a sentence; undefined when it is correct. Takes the body, or a `Streamed`. */
  fault: (answer: unknown) => string | undefined
}

interface Vector {
  embedding: number[]
}

/** The combined events of a stream: the text and the token usage. */
export interface Streamed {
  text: string
  finished: boolean
  completionTokens: number | undefined
}

const documents = ['Paris is the capital of France.', 'A cat sat on the mat.', 'Bread is made of flour and water.']
const query = 'What is the capital of France?'

const ofStream = (answer: unknown): string | undefined => {
  const { text, finished, completionTokens } = answer as Streamed
  if (text.trim() === '') return 'The answer is empty.'
  if (!finished) return 'The answer has no finish_reason.'
  if (completionTokens === undefined) return 'The answer has no usage.'
  return completionTokens > 0 ? undefined : 'The usage reports no completion tokens.'
}

/** Test requests by task. Other tasks cannot be tested. */
export const golden: Readonly<Record<string, Golden>> = {
  'std/chat-completion': {
    path: '/std/v1/chat/completions',
    stream: true,
    body: model => ({
      model,
      messages: [{ role: 'user', content: 'Say hello in one short sentence.' }],
      max_tokens: 64,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
    fault: ofStream,
  },
  'std/completion': {
    path: '/std/v1/completions',
    stream: true,
    body: model => ({
      model,
      prompt: 'The capital of France is',
      max_tokens: 32,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
    fault: ofStream,
  },
  'std/embeddings': {
    path: '/std/v1/embeddings',
    stream: false,
    body: model => ({ model, input: [documents[0], documents[1], documents[0]] }),
    fault(answer) {
      const vectors = (answer as { data: Vector[] }).data.map(({ embedding }) => embedding)
      const [first, other, again] = vectors
      if (!first || !other || !again) return `It returned ${vectors.length} vectors for three texts.`
      if (vectors.some(vector => vector.length === 0 || vector.length !== first.length))
        return 'Its vectors have different lengths.'
      if (vectors.some(vector => !(Math.hypot(...vector) > 0))) return 'A vector is zero or not a number.'
      if (cosine(first, again) < 0.999) return 'The same text got two different vectors.'
      return cosine(first, other) > 0.9999 ? 'Different texts got the same vector.' : undefined
    },
  },
  'std/rerank': {
    path: '/std/v1/rerank',
    stream: false,
    body: model => ({ model, query, documents }),
    fault(answer) {
      const { results } = answer as { results: { index: number; relevance_score: number }[] }
      if (new Set(results.map(({ index }) => index)).size !== documents.length)
        return `It ranked ${results.length} of ${documents.length} documents.`
      const scores = results.map(one => one.relevance_score)
      if (!scores.every(Number.isFinite)) return 'A score is not a number.'
      if (scores.some((score, at) => at > 0 && score > scores[at - 1]!)) return 'The results are not sorted by score.'
      return results[0]!.index === 0 ? undefined : 'The document that answers the question is not first.'
    },
  },
  'std/score': {
    path: '/std/v1/score',
    stream: false,
    body: model => ({ model, text_1: query, text_2: documents }),
    fault(answer) {
      const scores = (answer as { data: { score: number }[] }).data.map(({ score }) => score)
      if (scores.length !== documents.length)
        return `It returned ${scores.length} scores for ${documents.length} texts.`
      if (!scores.every(Number.isFinite)) return 'A score is not a number.'
      return scores[0] === Math.max(...scores)
        ? undefined
        : 'The text that answers the question does not have the highest score.'
    },
  },
  'std/moderation': {
    path: '/std/v1/moderations',
    stream: false,
    body: model => ({ model, input: [query, documents[1]] }),
    fault(answer) {
      const { results } = answer as { results: { category_scores: Record<string, number> }[] }
      if (results.length !== 2) return `It returned ${results.length} results for two texts.`
      return results.every(one => Object.values(one.category_scores).every(Number.isFinite))
        ? undefined
        : 'A score is not a number.'
    },
  },
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = a.reduce((sum, value, at) => sum + value * b[at]!, 0)
  return dot / (Math.hypot(...a) * Math.hypot(...b))
}
