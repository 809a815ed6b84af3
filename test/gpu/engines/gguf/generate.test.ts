import { getLlama, type Llama, LlamaLogLevel, type Token } from 'node-llama-cpp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type GeneratedPiece,
  type GenerateWork,
  type Generator,
  openGenerator,
} from '../../../../gpu/engines/gguf/generate.ts'
import { openGuessLength } from '../../../../gpu/engines/gguf/guess-length.ts'
import type { Exclusive } from '../../../../gpu/engines/gguf/mutex.ts'
import { openNative } from '../../../../gpu/engines/gguf/native.ts'
import { openRounds } from '../../../../gpu/engines/gguf/rounds.ts'
import { samplingOf } from '../../../../gpu/engines/gguf/sampling.ts'
import { openSlots } from '../../../../gpu/engines/gguf/slots.ts'
import { openVocabulary } from '../../../../gpu/engines/gguf/vocabulary.ts'
import { file } from './_engine.ts'

let llama: Llama
let generator: Generator
/** The same model with guessed tokens, always as many as are known. */
let guessing: Generator
const decoded = { plain: 0, guessing: 0 }
let slots: ReturnType<typeof openSlots>
beforeAll(async () => {
  llama = await getLlama({
    gpu: false,
    build: 'never',
    skipDownload: true,
    maxThreads: 1,
    logLevel: LlamaLogLevel.disabled,
  })
  const model = await llama.loadModel({ modelPath: file('tiny-chat-random.gguf') })
  const memory = await model.createContext({ contextSize: 256, sequences: 2, threads: 1, batchSize: 128 })
  const native = openNative(llama, model, memory)
  slots = openSlots({ count: 2, queue: 4, worth: 16 })
  const vocabulary = openVocabulary(model)
  const counting =
    (kind: keyof typeof decoded): Exclusive =>
    work => {
      decoded[kind]++
      return work()
    }
  const options = { native, batchSize: 128, piece: 32, window: 0, exclusive: counting('plain') }
  generator = openGenerator({ native, model, vocabulary, slots, rounds: openRounds(options), context: 256 })
  const other = openNative(
    llama,
    model,
    await model.createContext({ contextSize: 256, sequences: 2, threads: 1, batchSize: 128 }),
  )
  const guessLength = { ...openGuessLength(6), best: () => 6 }
  guessing = openGenerator({
    native: other,
    model,
    vocabulary,
    slots: openSlots({ count: 2, queue: 4, worth: 16 }),
    rounds: openRounds({ ...options, native: other, exclusive: counting('guessing'), guessLength }),
    context: 256,
    guessLength,
  })
})
afterAll(() => llama.dispose())

/** The byte 'A' again and again, unless overridden. */
const sampling = samplingOf({ temperature: 0, logit_bias: { 68: 20, 2: -100, 260: -100 } }, 1000, 0)
async function said(more: Partial<GenerateWork>, by = generator) {
  const pieces: GeneratedPiece[] = []
  const { signal } = new AbortController()
  const work = { prompt: [1, 70, 71] as Token[], sampling, limit: 30, stops: [], signal, ...more }
  const counts = await by.generate(work, piece => void pieces.push(piece))
  return {
    ...counts,
    text: pieces.map(({ text }) => text).join(''),
    reason: pieces.at(-1)!.reason,
    tokens: pieces.flatMap(({ tokens }) => tokens),
    reasons: pieces.filter(({ reason }) => reason !== null).length,
  }
}

describe('guessed tokens', () => {
  const words = [1, 70, 71, 80, 81, 82, 90, 91, 70, 71, 80, 81, 82, 90, 92, 70, 71] as Token[]
  const free = (more: Parameters<typeof samplingOf>[0] = {}) =>
    samplingOf({ temperature: 0, logit_bias: { 2: -100, 260: -100 }, ...more }, 1000, 7)
  const few = 'root ::= ("ab" | "ac")+'
  test.each<[string, Partial<GenerateWork>]>([
    ['that repeats itself', { limit: 60 }],
    ['of a prompt that repeats itself', { prompt: words, sampling: free(), limit: 60 }],
    ['with random choices', { prompt: words, sampling: free({ temperature: 0.8, top_k: 3 }), limit: 60 }],
    ['with penalties', { prompt: words, sampling: free({ frequency_penalty: 0.7 }), limit: 40 }],
    ['with a grammar', { grammar: few, sampling: free(), limit: 41 }],
    ['with a grammar and random choices', { grammar: few, sampling: free({ temperature: 1 }), limit: 40 }],
    ['with a stop string', { stops: ['AAAAAAAAAAAAA'] }],
    ['with probabilities', { logprobs: 2, limit: 20 }],
    ['of one token', { prompt: words, limit: 1 }],
    ['to the end of the context', { limit: 252 }],
  ])('change nothing of an answer %s', async (_name, work) => {
    const { cachedTokens: _, tokens, ...plain } = await said(work)
    const { cachedTokens: __, tokens: others, ...guessed } = await said(work, guessing)
    expect(guessed).toEqual(plain)
    expect(others.map(({ token }) => token)).toEqual(tokens.map(({ token }) => token))
    for (const [at, { logprob }] of others.entries()) expect(logprob).toBeCloseTo(tokens[at]!.logprob, 3)
  })
  test('change nothing of the next answer in the same conversation, and compute fewer batches', async () => {
    const before = { ...decoded }
    const prompt = [1, ...Array<number>(20).fill(68)] as Token[]
    const plain = await said({ prompt, limit: 60 })
    const guessed = await said({ prompt, limit: 60 }, guessing)
    expect(guessed.text).toBe(plain.text)
    const [batches, fewer] = [decoded.plain - before.plain, decoded.guessing - before.guessing]
    expect(batches).toBeGreaterThanOrEqual(60)
    expect(fewer).toBeLessThan(batches / 4)
    const next = { prompt: [...prompt, ...Array<number>(60).fill(68), 70] as Token[], limit: 10 }
    const [one, two] = [await said(next), await said(next, guessing)]
    expect([two.text, two.cachedTokens]).toEqual([one.text, one.cachedTokens])
    expect(two.cachedTokens).toBeGreaterThan(70)
  })
})

describe('a grammar', () => {
  test('constrains from the first token on, and its end ends the answer', async () => {
    const { text, reason, reasons } = await said({ grammar: 'root ::= "x" [a-c]{3} "A"?' })
    expect(text).toMatch(/^x[a-c]{3}A?$/)
    expect([reason, reasons]).toEqual(['stop', 1])
  })
  test('can be combined with probabilities and penalties', async () => {
    const penalised = samplingOf({ temperature: 0, frequency_penalty: 1, logit_bias: { 68: 20 } }, 1000, 0)
    const { text, tokens } = await said({
      sampling: penalised,
      logprobs: 3,
      grammar: 'root ::= "AAxyz"',
    })
    expect(text).toBe('AAxyz')
    expect(tokens.map(({ token }) => token).join('')).toBe('AAxyz')
    expect(tokens.every(({ logprob, top_logprobs }) => logprob < 0 && top_logprobs.length === 3)).toBe(true)
  })
  test('that cannot be parsed is refused, and leaks no slot', async () => {
    await expect(said({ grammar: 'root ::= (' })).rejects.toMatchObject({ code: 'invalid_value' })
    expect(slots.free).toBe(2)
    expect((await said({})).text).toBe('A'.repeat(30))
  })
})

test('several answers, each with its end, and one failure for all', async () => {
  const ends: number[] = []
  const { signal } = new AbortController()
  const work = { prompt: [1, 70] as Token[], sampling, limit: 5, stops: [], signal, choices: 5 }
  const counts = await generator.generate(work, ({ reason }, choice) => void (reason !== null && ends.push(choice)))
  expect(new Set(ends)).toEqual(new Set([0, 1, 2, 3, 4]))
  expect(ends).toHaveLength(5)
  expect(counts.completionTokens).toBe(25)
  const broken = generator.generate(work, (_piece, choice) => {
    if (choice === 1) throw new Error('cannot be told')
  })
  await expect(broken).rejects.toThrow('cannot be told')
  await expect.poll(() => slots.free).toBe(2)
})

test('a caller that does not read blocks no other', async () => {
  const room = Promise.withResolvers<void>()
  const { signal } = new AbortController()
  const work = { prompt: [1, 72] as Token[], sampling, limit: 20, stops: [], signal }
  let told = ''
  const slow = generator.generate(work, ({ text }) => {
    told += text
    return room.promise
  })
  expect((await said({})).text).toBe('A'.repeat(30))
  expect(told.length).toBeLessThan(3)
  room.resolve()
  await slow
  expect(told).toBe('A'.repeat(20))
})
