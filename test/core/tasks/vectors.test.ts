import { expect, test } from 'vitest'
import { CohereEmbedResponse } from '../../../core/dialects/cohere/cohere-embed.ts'
import { Failure } from '../../../core/failure.ts'
import type { TextTask } from '../../../core/schemas/task.ts'
import { prepareInputs, shape } from '../../../core/tasks/preparation.ts'
import { catalogOf } from './_catalog.ts'

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))
const base64 = (...numbers: number[]) => Buffer.from(Float32Array.from(numbers).buffer).toString('base64')
function refusal(task: TextTask, body: object): [string, string | undefined] {
  try {
    prepareInputs(task, body, catalogOf())
  } catch (thrown) {
    return [(thrown as Failure).code, (thrown as Failure).param]
  }
  throw new Error('was taken')
}
/** Prepares the request, answers it by `answer`, and shapes the answer. */
function through(
  task: TextTask,
  body: object,
  catalog: ReturnType<typeof catalogOf>,
  answer: (body: never, at: number) => unknown,
) {
  const prepared = prepareInputs(task, { model: 'm', ...body }, catalog)
  const answers = prepared.bodies.map((text, at) => bytes(answer(JSON.parse(text as string) as never, at)))
  const shaped = shape(answers, prepared.answerFormat)
  return { prepared, body: JSON.parse(shaped.body as string) as { data: unknown }, usage: shaped.usage }
}
const embed = (body: { input: unknown; encoding_format: string }) => {
  const texts = typeof body.input === 'string' ? [body.input] : (body.input as string[])
  return {
    data: texts
      .map((text, index) => ({
        index,
        embedding: body.encoding_format === 'base64' ? base64(3, 4, text.length) : [3, 4, text.length],
      }))
      .reverse(),
    usage: { prompt_tokens: 9, total_tokens: 9 },
  }
}

test.each<[string, object, string, string | undefined]>([
  ['no input', { model: 'm' }, 'missing_required_parameter', 'input'],
  ['an empty text', { model: 'm', input: '' }, 'invalid_value', 'input'],
  ['an empty list', { model: 'm', input: [] }, 'invalid_value', 'input'],
  ['an empty text in a list', { model: 'm', input: ['a', ''] }, 'invalid_value', 'input[1]'],
  ['an object', { model: 'm', input: {} }, 'invalid_type', 'input'],
  ['2049 texts', { model: 'm', input: Array(2049).fill('a') }, 'array_above_max_length', 'input'],
  ['an unknown encoding', { model: 'm', input: 'a', encoding_format: 'int8' }, 'invalid_value', 'encoding_format'],
  ['no dimensions', { model: 'm', input: 'a', dimensions: 0 }, 'invalid_value', 'dimensions'],
])('embeddings of %s are refused', (_, body, code, param) =>
  expect(refusal('std/embeddings', body)).toEqual([code, param]),
)

test('embeddings come in the order of the input, whatever the engine’s order', () => {
  const { body, usage } = through('std/embeddings', { input: ['a', 'bb'] }, catalogOf(), embed)
  expect(body).toMatchObject({
    object: 'list',
    model: 'm',
    data: [
      { index: 0, embedding: [3, 4, 1] },
      { index: 1, embedding: [3, 4, 2] },
    ],
  })
  expect(usage).toMatchObject({ inputTokens: 9, outputTokens: 0 })
})

test.each([
  ['float', true, [3, 4, 1]],
  ['float', false, [3, 4, 1]],
  ['base64', true, base64(3, 4, 1)],
  ['base64', false, base64(3, 4, 1)],
] as const)('as %s from an engine with base64=%s', (encoding_format, able, expected) =>
  expect(
    through('std/embeddings', { input: 'a', encoding_format }, catalogOf({ base64: able }), embed).body,
  ).toMatchObject({ data: [{ embedding: expected }] }),
)

test('dimensions are truncated and normalized to length 1 where the engine cannot', () => {
  const catalog = catalogOf({ dimensions: false })
  const { body } = through('std/embeddings', { input: 'a', dimensions: 2 }, catalog, embed)
  const [{ embedding }] = body.data as [{ embedding: number[] }]
  expect(embedding[0]).toBeCloseTo(0.6)
  expect(embedding[1]).toBeCloseTo(0.8)
  expect(() => through('std/embeddings', { input: 'a', dimensions: 4 }, catalog, embed)).toThrow(/at most 3/)
})

test.each<[string, unknown]>([
  ['too few', { data: [] }],
  ['not numbers', { data: [{ embedding: ['a'] }] }],
  ['NaN', { data: [{ embedding: [null] }] }],
  ['an impossible index', { data: [{ index: 5, embedding: [1] }] }],
  ['nothing', {}],
  ['broken base64', { data: [{ embedding: 'AAA' }] }],
])('embeddings that are %s are the engine’s fault', (_, answer) =>
  expect(() => through('std/embeddings', { input: 'a' }, catalogOf(), () => answer)).toThrow(Failure),
)

const rank = (...scores: number[]) => ({
  results: scores.map((relevance_score, index) => ({ index, relevance_score })),
  usage: { prompt_tokens: 4, total_tokens: 4 },
})

test('a ranking is by score, ties by index, under both names', () => {
  const { body } = through(
    'std/rerank',
    { query: 'q', documents: ['a', 'b', 'c'], return_documents: true },
    catalogOf(),
    () => rank(0.2, 0.9, 0.2),
  )
  expect(body).toMatchObject({
    object: 'list',
    data: [
      { index: 1, relevance_score: 0.9, document: 'b' },
      { index: 0, document: 'a' },
      { index: 2, document: 'c' },
    ],
    results: [{ index: 1, document: { text: 'b' } }, { index: 0 }, { index: 2 }],
  })
})

test.each([
  [{}, 3],
  [{ top_n: 2 }, 2],
  [{ top_k: 1 }, 1],
  [{ topN: 2 }, 2],
  [{ top_n: 0 }, 3],
  [{ top_n: 99 }, 3],
])('%j gives %i of 3', (more, count) =>
  expect(
    (
      through('std/rerank', { query: 'q', documents: ['a', 'b', 'c'], ...more }, catalogOf(), () => rank(0.1, 0.2, 0.3))
        .body.data as unknown[]
    ).length,
  ).toBe(count),
)

test.each([
  ['probability', false, 0.5, 0.5],
  ['logit', false, 0, 0.5],
  ['logit', true, 2, 2],
  ['probability', true, 0.5, 0],
] as const)('an engine with %s scores, raw=%s: %d becomes %d', (rerankScores, raw_scores, given, expected) =>
  expect(
    (
      through('std/rerank', { query: 'q', documents: ['a'], raw_scores }, catalogOf({ rerankScores }), () =>
        rank(given),
      ).body.data as [{ relevance_score: number }]
    )[0].relevance_score,
  ).toBeCloseTo(expected),
)

test.each([
  [{ documents: [{ text: 't' }, 'u'] }, ['t', 'u']],
  [{ documents: [{ title: 'x', body: 'y' }], rank_fields: ['title', 'body'] }, ['x\ny']],
])('documents may be objects: %j', (body, texts) => {
  const asked: unknown[] = []
  through('std/rerank', { query: 'q', ...body }, catalogOf(), ({ documents }: { documents: string[] }) => {
    asked.push(...documents)
    return rank(...documents.map(() => 1))
  })
  expect(asked).toEqual(texts)
})

test.each<[string, object, string, string | undefined]>([
  ['no query', { model: 'm', documents: ['a'] }, 'missing_required_parameter', 'query'],
  ['no documents', { model: 'm', query: 'q' }, 'missing_required_parameter', 'documents'],
  ['empty documents', { model: 'm', query: 'q', documents: [] }, 'invalid_value', 'documents'],
  ['a document without text', { model: 'm', query: 'q', documents: [{ title: 'x' }] }, 'invalid_value', 'documents[0]'],
])('a rerank with %s is refused', (_, body, code, param) => expect(refusal('std/rerank', body)).toEqual([code, param]))

const scores = (...values: number[]) => ({
  data: values.map((score, index) => ({ index, object: 'score', score })),
  usage: { prompt_tokens: 5 },
})

test.each<[string, object, number]>([
  ['1 to 1', { text_1: 'a', text_2: 'b' }, 1],
  ['1 to N', { text_1: 'a', text_2: ['b', 'c'] }, 2],
  ['N to N', { queries: ['a', 'b'], documents: ['c', 'd'] }, 2],
  ['the other names', { data_1: 'a', data_2: ['b', 'c', 'd'] }, 3],
])('score %s, by the engine’s own route', (_, body, pairs) => {
  const values = Array.from({ length: pairs }, (_, at) => at / 10)
  expect(
    (through('std/score', body, catalogOf(), () => scores(...values)).body.data as { score: number }[]).map(
      ({ score }) => score,
    ),
  ).toEqual(values)
})

test('score by rerank calls: one for 1 to N, one for each pair otherwise', () => {
  const catalog = catalogOf({ scoreBy: 'rerank', rerankScores: 'logit' })
  const one = through('std/score', { text_1: 'q', text_2: ['a', 'b'] }, catalog, () => rank(0, 100))
  expect(one.prepared.bodies.length).toBe(1)
  expect((one.body.data as { score: number }[]).map(({ score }) => score)).toEqual([0.5, 1])
  const pairs = through('std/score', { text_1: ['p', 'q'], text_2: ['a', 'b'] }, catalog, () => rank(0))
  expect(pairs.prepared.bodies.length).toBe(2)
  expect(pairs.usage).toMatchObject({ inputTokens: 8, outputTokens: 0 })
})

test.each<[string, object, number[]]>([
  ['1 to N', { text_1: 'x', text_2: ['x', 'y'] }, [1, 0]],
  ['N to 1', { text_1: ['x', 'y'], text_2: 'x' }, [1, 0]],
  ['N to N', { text_1: ['x', 'y'], text_2: ['y', 'y'] }, [0, 1]],
])('score %s by cosine of embeddings', (_, body, expected) => {
  const vectors: Record<string, number[]> = { x: [1, 0], y: [0, 2] }
  const answer = ({ input }: { input: string[] }) => ({
    data: input.map((text, index) => ({ index, embedding: base64(...vectors[text]!) })),
  })
  expect(
    (through('std/score', body, catalogOf({ scoreBy: 'embeddings' }), answer).body.data as { score: number }[]).map(
      ({ score }) => score,
    ),
  ).toEqual(expected)
})

test('lists of different lengths are refused by name', () =>
  expect(refusal('std/score', { model: 'm', text_1: ['a', 'b'], text_2: ['a', 'b', 'c'] })).toEqual([
    'invalid_value',
    'text_2',
  ]))
test('half a pair is refused', () =>
  expect(refusal('std/score', { model: 'm', text_1: 'a' })).toEqual(['missing_required_parameter', 'text_1']))

/** Answers with these numbers for each input. */
const embedAs = (numbers: number[]) => (body: { input: unknown[] }) => ({
  data: body.input.map((_, index) => ({ index, embedding: numbers })),
  usage: { prompt_tokens: 9 },
})
const floatCatalog = catalogOf({ base64: false, dimensions: false })

test.each<[string, object, unknown]>([
  ['int8', { output_dtype: 'int8' }, [127, -63, 0]],
  ['uint8', { output_dtype: 'uint8' }, [255, 65, 128]],
  ['ubinary', { output_dtype: 'ubinary' }, [128]],
  ['binary of Jina', { embedding_type: 'binary' }, [0]],
  [
    'base64 of bytes',
    { output_dtype: 'int8', encoding_format: 'base64' },
    Buffer.from([127, 193, 0]).toString('base64'),
  ],
  ['base64 of Jina', { embedding_type: 'base64' }, base64(1, -0.5, 0)],
])('embeddings as %s', (_, more, expected) =>
  expect(through('std/embeddings', { input: ['a'], ...more }, floatCatalog, embedAs([1, -0.5, 0])).body).toMatchObject({
    data: [{ embedding: expected }],
  }),
)

test('the fields of Voyage and Jina reach the engine', () => {
  const jina = { input: [{ text: 'a' }, 'b'], task: 'retrieval.query', normalized: true, truncate: true }
  const { prepared, body } = through('std/embeddings', jina, floatCatalog, embedAs([3, 4]))
  expect(JSON.parse(prepared.bodies[0] as string)).toMatchObject({ input: ['a', 'b'], truncate_prompt_tokens: -1 })
  const [first] = body.data as { embedding: number[] }[]
  expect(Math.hypot(...first!.embedding)).toBeCloseTo(1)
  const voyage = { input: ['a'], input_type: 'query', output_dimension: 1, truncation: true }
  const sent = through('std/embeddings', voyage, catalogOf({ base64: false, dimensions: true }), embedAs([1])).prepared
  expect(JSON.parse(sent.bodies[0] as string)).toMatchObject({ dimensions: 1, truncate_prompt_tokens: -1 })
})

test.each([
  [{ truncate: 'END' }, -1],
  [{ truncation: 'END' }, -1],
  [{ truncate: 'NONE' }, undefined],
  [{ truncate: false }, undefined],
  [{ truncate: null }, undefined],
  [{ truncate: 'END', truncate_prompt_tokens: 8 }, 8],
])('texts that are too long, with %j', (more, cut) => {
  for (const [task, input] of [
    ['std/embeddings', { input: 'a' }],
    ['std/rerank', { query: 'q', documents: ['a'] }],
  ] as const) {
    const { bodies } = prepareInputs(task, { model: 'm', ...input, ...more }, catalogOf({}))
    expect((JSON.parse(bodies[0] as string) as { truncate_prompt_tokens?: number }).truncate_prompt_tokens).toBe(cut)
  }
})

test.each<[string, object, unknown]>([
  ['Cohere: a query', { texts: ['a', 'b'], input_type: 'search_query' }, ['query: a', 'query: b']],
  ['Cohere: a document', { texts: ['a'], input_type: 'search_document' }, ['passage: a']],
  ['Cohere: neither', { texts: ['a'], input_type: 'classification' }, ['a']],
  ['Voyage: a query', { input: 'a', input_type: 'query' }, 'query: a'],
  ['Jina: a document', { input: [{ text: 'a' }], task: 'retrieval.passage' }, ['passage: a']],
  ['no kind', { input: 'a' }, 'a'],
  ['tokens', { input: [1, 2], input_type: 'query' }, [1, 2]],
])('prefixes of a model: %s', (_, more, input) => {
  const catalog = catalogOf({ base64: false }, { embeddingPrefixes: { query: 'query: ', document: 'passage: ' } })
  const request = { model: 'm', ...more }
  const { bodies, answerFormat } = prepareInputs('std/embeddings', request, catalog)
  expect((JSON.parse(bodies[0] as string) as { input: unknown }).input).toEqual(input)
  // What the caller sent is repeated, without the prefix.
  if ('texts' in more) expect(answerFormat).toMatchObject({ cohere: { texts: more.texts } })
})

test.each<[string, object, string]>([
  ['late chunking', { input: 'a', late_chunking: true }, 'late_chunking'],
  ['an image', { input: ['a', { image: 'https://x.test/a.png' }] }, 'input[1].image'],
  ['an image of Cohere', { inputs: [{ content: [{ type: 'image_url', image_url: {} }] }] }, 'inputs[0].content[0]'],
  ['images of Cohere', { images: ['data:'] }, 'images'],
  ['no texts', { texts: [] }, 'texts'],
  ['texts cut at the start, in the form of NVIDIA', { input: 'a', truncate: 'START' }, 'truncate'],
  ['texts cut at the start', { texts: ['a'], truncate: 'START' }, 'truncate'],
  ['an unknown type', { texts: ['a'], embedding_types: ['int4'] }, 'embedding_types[0]'],
])('embeddings refuse %s by name', (_, more, param) =>
  expect(refusal('std/embeddings', { model: 'm', ...more })[1]).toBe(param),
)

test('embeddings in the form of Cohere', () => {
  const types = ['float', 'ubinary', 'base64']
  const request = { texts: ['a'], input_type: 'search_query', embedding_types: types, output_dimension: 2 }
  const { prepared, body, usage } = through('std/embeddings', request, floatCatalog, embedAs([3, 4, 9]))
  expect(JSON.parse(prepared.bodies[0] as string)).toMatchObject({ input: ['a'], truncate_prompt_tokens: -1 })
  const near = [expect.closeTo(0.6), expect.closeTo(0.8)]
  expect(CohereEmbedResponse.parse(body)).toEqual({
    id: expect.stringMatching(/^embed-/),
    response_type: 'embeddings_by_type',
    embeddings: { float: [near], ubinary: [[192]], base64: [base64(0.6, 0.8)] },
    texts: ['a'],
    images: [],
    meta: { api_version: { version: '2' }, billed_units: { input_tokens: 9 } },
  })
  expect(usage.inputTokens).toBe(9)
  const parts = {
    inputs: [
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    ],
    truncate: 'NONE',
  }
  const sent = JSON.parse(
    through('std/embeddings', parts, floatCatalog, embedAs([1])).prepared.bodies[0] as string,
  ) as object
  expect(sent).toMatchObject({ input: ['a\nb'] })
  expect(sent).not.toHaveProperty('truncate_prompt_tokens')
})

test('embeddings in the first form of Cohere are one list', () =>
  expect(
    through('std/embeddings', { texts: ['a'], response_type: 'embeddings_floats' }, floatCatalog, embedAs([1, 2])).body,
  ).toMatchObject({ response_type: 'embeddings_floats', embeddings: [[1, 2]] }))

test.each<[TextTask, object]>([
  ['std/rerank', { query: 'q', documents: ['a', 'b'], truncate: true }],
  ['std/score', { text_1: 'q', text_2: ['a', 'b'] }],
])('%s of an engine that calls the documents texts and answers a bare list', (task, body) => {
  const catalog = catalogOf({ rerankField: 'texts', scoreBy: 'rerank' })
  const sent: Record<string, unknown>[] = []
  const { body: shaped } = through(task, body, catalog, asked => {
    sent.push(asked)
    return [
      { index: 1, score: 0.9 },
      { index: 0, score: 0.1 },
    ]
  })
  expect(sent[0]).toMatchObject({ query: 'q', texts: ['a', 'b'] })
  expect(sent[0]).not.toHaveProperty('documents')
  expect(sent[0]!.truncate).toBe(task === 'std/rerank' ? true : undefined)
  expect(JSON.stringify(shaped.data)).toContain('0.9')
})
