import { beforeAll, describe, expect, test } from 'vitest'
import { EmbeddingsResponse, RerankResponse, ScoreResponse } from '../../../../core/schemas/vectors.ts'
import { type Json, startEngine } from './_engine.ts'

let embed: Awaited<ReturnType<typeof startEngine>>
let rank: Awaited<ReturnType<typeof startEngine>>
beforeAll(async () => {
  ;[embed, rank] = await Promise.all([
    startEngine({ model: 'tiny-embed.gguf', tasks: ['std/embeddings', 'std/score'] }),
    startEngine({ model: 'tiny-rerank.gguf', tasks: ['std/rerank', 'std/score'] }),
  ])
})

const vectors = async (fields: Json): Promise<number[][]> => {
  const { status, body } = await embed.post('/v1/embeddings', { model: 'toy', ...fields })
  expect([status, body.error]).toEqual([200, undefined])
  expect(() => EmbeddingsResponse.parse(body)).not.toThrow()
  expect(body.data.map((item: Json) => item.index)).toEqual(body.data.map((_: Json, at: number) => at))
  return body.data.map((item: Json) => item.embedding)
}
const dot = (a: number[], b: number[]) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)

describe('embeddings', () => {
  test('have length 1, and the same text gives the same vector', async () => {
    const [one, two, three] = await vectors({
      input: ['the cat sat on the street', 'the cat sat on the street', 'the market'],
    })
    expect(one).toHaveLength(64)
    expect(dot(one!, one!)).toBeCloseTo(1, 10)
    expect(two).toEqual(one)
    expect(three).not.toEqual(one)
    expect(await vectors({ input: 'the cat sat on the street' })).toEqual([one])
  })

  test('of texts that share words are more similar than of others', async () => {
    const [cat, kitten, market] = await vectors({
      input: ['a cat in the street', 'the cat and the street', 'market prices'],
    })
    expect(dot(cat!, kitten!)).toBeGreaterThan(0.7)
    expect(dot(cat!, market!)).toBeLessThan(0.4)
  })

  test('in base64 are the same as in numbers', async () => {
    const input = ['paris', 'berlin']
    const numbers = await vectors({ input })
    const encoded = (await vectors({ input, encoding_format: 'base64' })) as unknown as string[]
    const decoded = encoded.map(text => {
      const bytes = Buffer.from(text, 'base64')
      return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
    })
    expect(decoded).toEqual(numbers.map(vector => vector.map(Math.fround)))
  })

  test('are shortened and normalized to length 1 again', async () => {
    const [whole] = await vectors({ input: 'paris' })
    const [short] = await vectors({ input: 'paris', dimensions: 8 })
    expect(short).toHaveLength(8)
    expect(dot(short!, short!)).toBeCloseTo(1, 10)
    expect(short![0]! / short![1]!).toBeCloseTo(whole![0]! / whole![1]!, 6)
    const { status, body } = await embed.post('/v1/embeddings', { model: 'toy', input: 'a', dimensions: 65 })
    expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_value', 'dimensions'])
  })

  test('of tokens are those of their text', async () => {
    // [CLS] and [SEP] are added to tokens that lack them.
    const [cat] = await vectors({ input: [101] })
    expect(await vectors({ input: [[101], [101]] })).toEqual([cat, cat])
    expect(await vectors({ input: [2, 101, 3] })).toEqual([cat])
    expect(await vectors({ input: [102] })).not.toEqual([cat])
  })

  test('count every token, including those that the model adds', async () => {
    const usage = async (input: unknown) => (await embed.post('/v1/embeddings', { model: 'toy', input })).body.usage
    expect(await usage('cat')).toEqual({ prompt_tokens: 3, total_tokens: 3 })
    expect(await usage(['cat', 'cat street'])).toEqual({ prompt_tokens: 7, total_tokens: 7 })
    expect(await usage([7, 8])).toEqual({ prompt_tokens: 4, total_tokens: 4 })
  })

  test('of blanks alone are vectors too', async () => {
    const [blank] = await vectors({ input: '   ' })
    expect(dot(blank!, blank!)).toBeCloseTo(1, 10)
  })

  test('a text may fill the context but not exceed it', async () => {
    const words = (count: number) => Array.from({ length: count }, () => 'cat').join(' ')
    expect(await vectors({ input: words(510) })).toHaveLength(1)
    const { status, body } = await embed.post('/v1/embeddings', { model: 'toy', input: ['fine', words(511)] })
    expect([status, body.error.code, body.error.param]).toEqual([400, 'context_length_exceeded', 'input[1]'])
    expect(body.error.message).toMatch(/ 512 tokens\. .* 513 tokens/)
    const far = await embed.post('/v1/embeddings', { model: 'toy', input: words(50_000) })
    expect([far.status, far.body.error.code]).toEqual([400, 'context_length_exceeded'])
    const [cut] = await vectors({ input: words(511), truncate_prompt_tokens: -1 })
    expect([cut]).toEqual(await vectors({ input: words(510) }))
    expect(await vectors({ input: 'cat street', truncate_prompt_tokens: 3 })).toEqual(await vectors({ input: 'cat' }))
  })

  test.each([
    ['an empty text', { input: '' }],
    ['no texts', { input: [] }],
    ['an empty text among others', { input: ['a', ''] }],
    ['a token that does not exist', { input: [100_000] }],
    ['a token far out of range', { input: [2 ** 40] }],
    ['a negative token', { input: [-1] }],
    ['a fractional token', { input: [1.5] }],
    ['a mixture', { input: ['a', 1] }],
    ['an object', { input: { text: 'a' } }],
    ['nothing', {}],
  ])('%s is refused', async (_rule, fields) => {
    const { status, body } = await embed.post('/v1/embeddings', { model: 'toy', ...fields })
    expect([status, body.error.type]).toEqual([400, 'invalid_request_error'])
    expect(body.error.param).toMatch(/^input/)
  })

  test('of many concurrent callers are not mixed up', async () => {
    const texts = Array.from(
      { length: 24 },
      (_, at) => `text number ${at} about ${'cat dog street market'.split(' ')[at % 4]}`,
    )
    const alone = await vectors({ input: texts })
    const together = await Promise.all(texts.map(input => vectors({ input })))
    expect(together.map(([vector]) => vector)).toEqual(alone)
  })
})

const query = 'what is the capital of france'
const documents = [
  'the capital of germany is berlin',
  'cats and dogs',
  'paris is the capital of france',
  'cats and dogs',
]

describe('rerank', () => {
  const rerank = async (fields: Json) => {
    const answer = await rank.post('/v1/rerank', { model: 'toy', query, documents, ...fields })
    if (answer.status === 200) expect(() => RerankResponse.parse(answer.body)).not.toThrow()
    return answer
  }
  const order = (body: Json) => body.results.map((item: Json) => item.index)

  test('orders by words shared with the query, and keeps the order of equal scores', async () => {
    const { body } = await rerank({})
    expect(order(body)).toEqual([2, 0, 1, 3])
    const scores: number[] = body.results.map((item: Json) => item.relevance_score)
    expect(scores[0]).toBeGreaterThan(0.9)
    expect(scores[2]).toBe(scores[3])
    expect(scores.every(score => score > 0 && score < 1)).toBe(true)
    expect(body.data).toEqual(body.results)
    expect(body.meta.billed_units.search_units).toBe(1)
    expect((await rerank({})).body.results).toEqual(body.results)
  })

  test.each([
    ['top_n', { top_n: 2 }, [2, 0]],
    ['top_n above the number of documents', { top_n: 99 }, [2, 0, 1, 3]],
    ['top_n 0, which means all', { top_n: 0 }, [2, 0, 1, 3]],
    ['top_k, its name in other APIs', { top_k: 1 }, [2]],
  ])('%s', async (_rule, fields, expected) => expect(order((await rerank(fields)).body)).toEqual(expected))

  test('returns the documents on request', async () => {
    const { body } = await rerank({ return_documents: true, top_n: 1, documents: documents.map(text => ({ text })) })
    expect(body.results).toEqual([{ index: 2, relevance_score: expect.any(Number), document: { text: documents[2] } }])
    expect(body.data[0].document).toBe(documents[2])
  })

  test('raw scores are the logits of the probabilities', async () => {
    const { body } = await rerank({ documents: [documents[2]!] })
    const raw = (await rerank({ documents: [documents[2]!], raw_scores: true })).body.results[0].relevance_score
    expect(1 / (1 + Math.exp(-raw))).toBeCloseTo(body.results[0].relevance_score, 6)
  })

  test('counts query and document with their special tokens', async () => {
    // [CLS] cat [SEP] cat street, and the same with one word.
    expect((await rerank({ query: 'cat', documents: ['cat street', 'cat'] })).body.usage).toMatchObject({
      prompt_tokens: 9,
      total_tokens: 9,
    })
  })

  test('refuses a pair that does not fit, by name, unless truncation is allowed', async () => {
    const long = 'cat '.repeat(600)
    const { status, body } = await rerank({ documents: ['a', long] })
    expect([status, body.error.code, body.error.param]).toEqual([400, 'context_length_exceeded', 'documents[1]'])
    const cut = await rerank({ documents: ['a', long], truncate_prompt_tokens: -1 })
    expect(cut.status).toBe(200)
    const fits = await rerank({ query: 'cat', documents: ['cat '.repeat(509)] })
    expect(fits.body.usage.prompt_tokens).toBe(512)
  })

  test.each([
    ['query', { query: '' }],
    ['documents', { documents: [] }],
    ['documents[0]', { documents: [{ title: 'no text' }] }],
    ['top_n', { top_n: -1 }],
  ])('refuses a wrong %s', async (param, fields) => {
    const { status, body } = await rerank(fields)
    expect([status, body.error.param]).toEqual([400, param])
  })
})

describe('score', () => {
  const score = async (engine: typeof rank, fields: Json): Promise<number[]> => {
    const { status, body } = await engine.post('/v1/score', { model: 'toy', ...fields })
    expect([status, body.error]).toEqual([200, undefined])
    expect(() => ScoreResponse.parse(body)).not.toThrow()
    expect(body.data.map((item: Json) => item.index)).toEqual(body.data.map((_: Json, at: number) => at))
    return body.data.map((item: Json) => item.score)
  }

  test.each(['embed', 'rank'] as const)(
    'pairs one with one, one with many, many with one and many with many (%s)',
    async which => {
      const engine = which === 'embed' ? embed : rank
      const [same] = await score(engine, { text_1: query, text_2: query })
      const [good] = await score(engine, { text_1: query, text_2: documents[2] })
      const [bad] = await score(engine, { text_1: query, text_2: documents[1] })
      expect(same).toBeGreaterThan(good!)
      expect(good).toBeGreaterThan(bad!)
      expect(await score(engine, { text_1: query, text_2: [query, documents[2], documents[1]] })).toEqual([
        same,
        good,
        bad,
      ])
      expect(await score(engine, { text_1: [query, query], text_2: [documents[1], query] })).toEqual([bad, same])
      expect(await score(engine, { queries: [query], documents: [documents[2], documents[1]] })).toEqual([good, bad])
      expect(await score(engine, { data_1: [query], data_2: documents[2] })).toEqual([good])
      expect(await score(engine, { text_1: [query, documents[1]], text_2: query })).toHaveLength(2)
    },
  )

  test('by vectors is their cosine, by a cross-encoder the score of rerank', async () => {
    const [a, b] = await vectors({ input: [query, documents[0]!] })
    expect((await score(embed, { text_1: query, text_2: documents[0] }))[0]).toBeCloseTo(dot(a!, b!), 10)
    const { body } = await rank.post('/v1/rerank', { model: 'toy', query, documents: [documents[0]!] })
    expect(await score(rank, { text_1: query, text_2: documents[0] })).toEqual([body.results[0].relevance_score])
  })

  test('counts each text once by vectors, each pair by a cross-encoder', async () => {
    const usage = async (engine: typeof rank) =>
      (await engine.post('/v1/score', { model: 'toy', text_1: 'cat', text_2: ['cat', 'street'] })).body.usage
        .prompt_tokens
    expect([await usage(embed), await usage(rank)]).toEqual([9, 8])
  })

  test.each([
    ['text_2', { text_1: ['a', 'b'], text_2: ['a', 'b', 'c'] }],
    ['text_1', { text_1: 'a' }],
    ['text_1', {}],
    ['text_2', { text_1: 'a', text_2: [] }],
  ])('refuses a wrong pair at %s', async (param, fields) => {
    const { status, body } = await rank.post('/v1/score', { model: 'toy', ...fields })
    expect([status, body.error.param]).toEqual([400, param])
  })
})
