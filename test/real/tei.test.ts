import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { type Json, makeModels, minutes, startInfer } from './_engine.ts'

/**
 * Text Embeddings Inference on the processor, started by its preset in its sandbox, with tiny models of random weights: see
 * README.md of this folder. Skipped without INFER_REAL_TEI, its program, and INFER_REAL_PYTHON, a Python that makes models.
 */
const program = process.env.INFER_REAL_TEI ?? ''
const python = process.env.INFER_REAL_PYTHON ?? ''

describe.skipIf(program === '' || python === '')('TEI', () => {
  const models = makeModels(python, 'make-text-models.py', ['embedding', 'ranking'])
  const infer = startInfer(dirname(program), () => {
    mkdirSync(join(models.folder, 'empty'))
    const model = (id: string, source: string, tasks: string[], more: object = {}) => ({
      id,
      engine: 'tei',
      source: join(models.folder, source),
      devices: 'cpu',
      memory: '1GiB',
      // The precision of the expected values.
      args: ['--dtype', 'float32'],
      tasks,
      ...more,
    })
    return {
      models: [
        ...['mean', 'cls'].map(how => model(`embed-${how}`, `embed-${how}`, ['std/embeddings'])),
        model('cutting', 'embed-mean', ['std/embeddings'], { env: { AUTO_TRUNCATE: 'true' } }),
        model('rerank', 'rerank', ['std/rerank', 'std/score']),
        model('empty', 'empty', ['std/embeddings']),
      ],
    }
  })
  const { post, statusOf } = infer

  /** The port of the engine of a model, from its command line. */
  function portOf(source: string): number {
    for (const at of readdirSync('/proc').filter(name => Number(name) > 0))
      try {
        const [name, ...options] = readFileSync(`/proc/${at}/cmdline`, 'utf8').split('\0')
        if (name!.endsWith('text-embeddings-router') && options.includes(join(models.folder, source)))
          return Number(options[options.indexOf('--port') + 1])
      } catch {
        // The process has ended.
      }
    throw new Error(`No engine runs ${source}.`)
  }

  test.each(['mean', 'cls'])(
    'embeddings with pooling %s equal those of transformers',
    { timeout: 2 * minutes },
    async how => {
      const { texts, vectors, tokens } = models.expected.embedding
      for (const encoding_format of ['float', 'base64'] as const) {
        const { data, usage } = await infer.openai.embeddings.create({
          model: `embed-${how}`,
          input: texts,
          encoding_format,
        })
        expect(usage.prompt_tokens).toBe(tokens)
        for (const [at, vector] of (vectors[how] as number[][]).entries()) {
          const bytes = data[at]!.embedding as unknown as string
          const found =
            encoding_format === 'float'
              ? data[at]!.embedding
              : new Float32Array(Uint8Array.from(Buffer.from(bytes, 'base64')).buffer)
          expect(found).toHaveLength(vector.length)
          for (const [place, value] of vector.entries()) expect(found[place]).toBeCloseTo(value, 4)
        }
      }
    },
  )

  test('as many inputs as a request may have, and no more', { timeout: 2 * minutes }, async () => {
    const many = async (length: number) =>
      post('/std/v1/embeddings', { model: 'embed-mean', input: Array.from({ length }, (_, at) => `${at}`) })
    const most = await many(2048)
    expect([most.status, most.body.data?.length]).toEqual([200, 2048])
    const more = await many(2049)
    expect([more.status, more.body.error?.type]).toEqual([400, 'invalid_request_error'])
  })

  test.each([600, 200_000])(
    'a text of %i characters is refused, and cut where the configuration says so',
    { timeout: 2 * minutes },
    async length => {
      const input = 'x'.repeat(length)
      const refused = await post('/std/v1/embeddings', { model: 'embed-mean', input })
      expect([refused.status, refused.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      const cut = await post('/std/v1/embeddings', { model: 'cutting', input })
      expect([cut.status, cut.body.usage?.prompt_tokens]).toEqual([200, 512])
    },
  )

  test('documents are ranked and pairs scored as transformers does', { timeout: 2 * minutes }, async () => {
    const { query, scores } = models.expected.ranking as { query: string; scores: number[] }
    const documents = models.expected.embedding.texts as string[]
    const { body } = await post('/std/v1/rerank', { model: 'rerank', query, documents })
    const order = scores.map((_, at) => at).toSorted((a, b) => scores[b]! - scores[a]!)
    expect(body.results.map(({ index }: Json) => index)).toEqual(order)
    // TEI approximates GELU, and the head of this model makes small differences fifty times as large.
    for (const { index, relevance_score } of body.results) expect(relevance_score).toBeCloseTo(scores[index]!, 2)
    const scored = await post('/std/v1/score', { model: 'rerank', text_1: query, text_2: documents })
    for (const [at, { score }] of scored.body.data.entries()) expect(score).toBeCloseTo(scores[at]!, 2)

    for (const length of [600, 200_000]) {
      const long = { model: 'rerank', query, documents: ['x'.repeat(length)] }
      const refused = await post('/std/v1/rerank', long)
      expect([refused.status, refused.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      const cut = await post('/std/v1/rerank', { ...long, truncation: true })
      expect([cut.status, cut.body.results?.length]).toEqual([200, 1])
    }
  })

  test('the engine refuses other keys than that of infer', { timeout: 2 * minutes }, async () => {
    await infer.openai.embeddings.create({ model: 'embed-mean', input: 'a' })
    const url = `http://127.0.0.1:${portOf('embed-mean')}/v1/embeddings`
    for (const authorization of [undefined, 'Bearer wrong', `Bearer ${infer.app.secret}`]) {
      const headers = { 'content-type': 'application/json', ...(authorization ? { authorization } : {}) }
      const { status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ input: 'a' }) })
      expect(status).toBe(401)
    }
  })

  test('a folder without a model is named when the engine does not start', { timeout: 2 * minutes }, async () => {
    await infer.app.fetch('/api/models/empty/load', { method: 'POST' })
    await vi.waitFor(
      async () => expect((await statusOf('empty')).status.reason).toMatch(/the model cannot be loaded/),
      {
        timeout: minutes,
        interval: 200,
      },
    )
  })
})
