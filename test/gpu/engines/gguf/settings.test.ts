import { expect, test } from 'vitest'
import { file, spawnEngine, startEngine } from './_engine.ts'

const sized = (log: readonly string[]) =>
  log.map(line => JSON.parse(line) as { msg?: string; why?: string }).find(({ why }) => why)!.why!

test.each([
  ['by default', {}, /^4 × 4096 tokens, on the CPU: \d+ MiB of [\d.]+ GiB \(.* of f16 cache/],
  ['as configured', { flashAttention: 'off', parallel: 3, context: 512, batch: 64 }, /^3 × 512 tokens/],
  ['within the booked memory', { memory: 6 * 2 ** 20, mmap: false }, /of 6 MiB \(/],
] as const)('the engine sizes itself %s, logs it, and answers', async (_, settings, why) => {
  const engine = await startEngine({ model: 'tiny-chat.gguf', parallel: undefined, ...settings })
  expect(sized(engine.log)).toMatch(why)
  const { status, body } = await engine.chat({})
  expect([status, body.choices[0].message.content]).toEqual([200, expect.stringContaining('Hello')])
})

test('a configuration that does not fit is refused with the figures before anything is loaded', async () => {
  const engine = spawnEngine({ model: file('tiny-chat.gguf'), context: 2048, parallel: 64, memory: 8 * 2 ** 20 })
  const [code] = await engine.exited
  expect(code).not.toBe(0)
  expect(engine.log.join('\n')).toMatch(
    /does not fit: it needs \d+ MiB .* of which 8 MiB can be had .* concurrency: \d+/,
  )
})

test('a cache type that llama.cpp cannot use is refused with the reason, which llama.cpp does not give', async () => {
  const engine = spawnEngine({ model: file('tiny-chat.gguf'), kvType: 'q8_0' })
  await engine.exited
  expect(engine.log.join('\n')).toMatch(
    /cache of q8_0 holds numbers in blocks of 32, and the heads of this model have 16/,
  )
})

test('an encoder model is sized too', async () => {
  const engine = await startEngine({ model: 'tiny-embed.gguf', tasks: ['std/embeddings', 'std/score'] })
  expect(sized(engine.log)).toMatch(/on the CPU: \d+ MiB of/)
})
