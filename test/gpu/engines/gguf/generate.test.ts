import { getLlama, type Llama, LlamaLogLevel, type Token } from 'node-llama-cpp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type GeneratedPiece,
  type GenerateWork,
  type Generator,
  openGenerator,
} from '../../../../gpu/engines/gguf/generate.ts'
import { noMutex } from '../../../../gpu/engines/gguf/mutex.ts'
import { openNative } from '../../../../gpu/engines/gguf/native.ts'
import { openRounds } from '../../../../gpu/engines/gguf/rounds.ts'
import { samplingOf } from '../../../../gpu/engines/gguf/sampling.ts'
import { openSlots } from '../../../../gpu/engines/gguf/slots.ts'
import { openVocabulary } from '../../../../gpu/engines/gguf/vocabulary.ts'
import { file } from './_engine.ts'

let llama: Llama
let generator: Generator
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
  const rounds = openRounds({ native, batchSize: 128, piece: 32, window: 0, exclusive: noMutex })
  generator = openGenerator({ native, model, vocabulary: openVocabulary(model), slots, rounds, context: 256 })
})
afterAll(() => llama.dispose())

/** The byte 'A' again and again, unless overridden. */
const sampling = samplingOf({ temperature: 0, logit_bias: { 68: 20, 2: -100, 260: -100 } }, 1000, 0)
async function said(more: Partial<GenerateWork>) {
  const pieces: GeneratedPiece[] = []
  const { signal } = new AbortController()
  const work = { prompt: [1, 70, 71] as Token[], sampling, limit: 30, stops: [], signal, ...more }
  const counts = await generator.generate(work, piece => void pieces.push(piece))
  return {
    ...counts,
    text: pieces.map(({ text }) => text).join(''),
    reason: pieces.at(-1)!.reason,
    tokens: pieces.flatMap(({ tokens }) => tokens),
    reasons: pieces.filter(({ reason }) => reason !== null).length,
  }
}

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
