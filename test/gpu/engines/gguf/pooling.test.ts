import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { file, spawnEngine, startEngine } from './_engine.ts'

/** The toy model with another pooling type in its header. */
function pooled(type: number): string {
  const bytes = readFileSync(file('tiny-embed.gguf'))
  const key = 'bert.pooling_type'
  // The key is followed by its value's type and the value, 32 bits each.
  bytes.writeUInt32LE(type, bytes.indexOf(key) + key.length + 4)
  const name = `pooled-${type}.gguf`
  writeFileSync(file(name), bytes)
  return name
}
const dot = (a: number[], b: number[]) => a.reduce((sum, value, at) => sum + value * b[at]!, 0)

test('the pooling type of the model applies: the mean of all tokens, the first, or the last', async () => {
  const [none, mean, first, last] = await Promise.all(
    [0, 1, 2, 3].map(async type => {
      const engine = await startEngine({ model: pooled(type), tasks: ['std/embeddings'] })
      const input = ['the cat sat on the street', 'the dog sat on the street']
      const { body } = await engine.post('/v1/embeddings', { model: 'toy', input })
      const vectors: number[][] = body.data.map((item: { embedding: number[] }) => item.embedding)
      for (const vector of vectors) expect(dot(vector, vector)).toBeCloseTo(1, 10)
      return vectors
    }),
  )
  // The first and the last token, [CLS] and [SEP], are the same in both texts; the words between them are not.
  expect(dot(mean![0]!, mean![1]!)).toBeLessThan(0.9)
  expect(dot(mean![0]!, first![0]!)).toBeLessThan(0.9)
  expect(dot(mean![0]!, last![0]!)).toBeLessThan(0.9)
  expect(dot(first![0]!, last![0]!)).toBeLessThan(0.9)
  // A model without a pooling type uses the last token.
  expect(dot(none![0]!, last![0]!)).toBeGreaterThan(0.9999)
})

test('a model that returns scores has no embeddings', async () => {
  const engine = spawnEngine({ model: file('tiny-rerank.gguf'), tasks: ['std/embeddings'] })
  await engine.exited
  expect(engine.log.join('\n')).toContain('according to its file it returns scores')
})
