import { describe, expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { ChatRequest } from '../../../../core/schemas/chat.ts'
import { base64Of, normalized, shortened, truncation } from '../../../../gpu/engines/gguf/embeddings.ts'
import { checkOptions, type GgufEngineOptions } from '../../../../gpu/engines/gguf/options.ts'
import { exactAfter, pieceFrom, reusableTokens } from '../../../../gpu/engines/gguf/prompt.ts'
import { logit, ranked } from '../../../../gpu/engines/gguf/rerank.ts'
import { answerLimit, samplingOf, seedOf, stopsOf } from '../../../../gpu/engines/gguf/sampling.ts'
import { type PieceForm, type PieceKind, pieceBytes } from '../../../../gpu/engines/gguf/vocabulary.ts'

const failing = (run: () => unknown): Failure => {
  try {
    run()
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
  throw new Error('It did not fail.')
}

describe('options', () => {
  const good: GgufEngineOptions = {
    model: 'm.gguf',
    id: 'm',
    tasks: ['std/chat-completion'],
    port: 0,
    threads: 1,
    parallel: 1,
    gpu: 'off',
  }
  test('that are valid', () => {
    expect(() => checkOptions(good)).not.toThrow()
    expect(() => checkOptions({ ...good, port: undefined, socket: '/run/m.sock', parallel: 256 })).not.toThrow()
  })
  test.each([
    ['no task', { tasks: [] }, 'task'],
    ['nowhere to listen', { port: undefined }, 'socket'],
    ['two places to listen', { socket: '/run/m.sock' }, 'socket'],
    ['a path that no socket can have', { port: undefined, socket: `/${'x'.repeat(107)}` }, 'socket'],
    ['a port that does not exist', { port: 65_536 }, 'port'],
    ['no thread', { threads: 0 }, 'threads'],
    ['half a thread', { threads: 1.5 }, 'threads'],
    ['more sequences than llama.cpp has', { parallel: 257 }, 'parallel'],
    ['a context for nothing', { context: 1 }, 'context'],
    ['more layers than any model has', { gpuLayers: 5000 }, 'gpu-layers'],
    ['a batch of one token', { batch: 1 }, 'batch'],
  ])('%s', (_rule, change, param) => {
    const failure = failing(() => checkOptions({ ...good, ...change }))
    expect([failure.code, failure.param]).toEqual(['invalid_value', param])
  })
})

describe('sampling', () => {
  const request = (fields: object) =>
    ChatRequest.parse({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...fields })
  const sampling = (fields: object) => samplingOf(request(fields), 100, 5)
  test('defaults', () =>
    expect(sampling({})).toEqual({
      temperature: 0.8,
      topK: 40,
      topP: 0.95,
      minP: 0.05,
      seed: 5,
      penalties: undefined,
      bias: new Map(),
      reproducible: false,
    }))
  test.each([
    ['top_k −1 means all', { top_k: -1 }, { topK: 0 }],
    ['a temperature near 0 is 0', { temperature: 1e-30 }, { temperature: 0 }],
    ['top_p 0 leaves one token', { top_p: 0, temperature: 2 }, { temperature: 0, topP: 1 }],
    ['a seed is to be kept to', { seed: 0 }, { seed: 0, reproducible: true }],
    ['null is not a seed', { seed: null }, { seed: 5, reproducible: false }],
    ['one penalty', { presence_penalty: 1 }, { penalties: { penalty: 1, presencePenalty: 1, frequencyPenalty: 0 } }],
    ['penalties that change nothing', { presence_penalty: 0, repetition_penalty: 1 }, { penalties: undefined }],
    ['a bias of 0 is none', { logit_bias: { 1: 0, 2: -3 } }, { bias: new Map([[2, -3]]) }],
  ])('%s', (_rule, fields, expected) => expect(sampling(fields)).toMatchObject(expected))
  test.each([
    [{ repetition_penalty: 0 }, 'repetition_penalty'],
    [{ logit_bias: { 100: 1 } }, 'logit_bias'],
    [{ logit_bias: { '1e1': 1 } }, 'logit_bias'],
  ])('%j is refused', (fields, param) => expect(failing(() => sampling(fields)).param).toBe(param))

  test.each([
    [0, 0],
    [2 ** 32, 0],
    [2 ** 32 + 9, 9],
    [-1, 2 ** 32 - 2],
    [2 ** 32 - 1, 2 ** 32 - 2],
    [-2, 2 ** 32 - 2],
  ])('seed %d becomes %d', (given, seed) => expect(seedOf(given)).toBe(seed))
  test.each([
    [undefined, []],
    [null, []],
    ['x', ['x']],
    [
      ['x', '', 'y'],
      ['x', 'y'],
    ],
  ])('stop %j', (given, stops) => expect(stopsOf(given)).toEqual(stops))

  test.each([
    [10, 100, undefined, 90],
    [10, 100, 5, 5],
    [10, 100, 500, 90],
    [99, 100, 5, 1],
  ])('a prompt of %d in a context of %d, %s requested: %d', (prompt, context, asked, limit) =>
    expect(answerLimit(prompt, context, asked)).toBe(limit),
  )
  test('no space for an answer', () => {
    const failure = failing(() => answerLimit(100, 100, 1))
    expect(failure.code).toBe('context_length_exceeded')
    expect(failure.message).toMatch(/100 tokens.* 100/)
  })
})

describe('the reused part of a prompt', () => {
  test.each([
    ['all that agrees', 40, 0, 99, 16, false, 40],
    ['never the last token of the prompt', 100, 0, 99, 16, false, 99],
    ['with a seed only what was computed in whole pieces', 40, 64, 99, 16, true, 32],
    ['and no more than was computed so', 40, 20, 99, 16, true, 16],
    ['or all of exactly the same prompt', 120, 99, 99, 16, true, 99],
    ['but not its last piece for a longer one', 99, 99, 120, 16, true, 96],
    ['nor for a shorter one', 99, 99, 50, 16, true, 48],
    ['nothing of what was computed otherwise', 99, 0, 99, 16, true, 0],
  ])('reuses %s', (_rule, common, exact, wanted, piece, reproducible, expected) =>
    expect(reusableTokens(common, exact, wanted, piece, reproducible)).toBe(expected),
  )

  test.each([
    [99, 99, 99],
    [99, 120, 99],
    [99, 98, 96],
    [99, 15, 0],
  ])('of %d exact tokens, when %d are kept, %d stay exact', (exact, kept, expected) =>
    expect(exactAfter(exact, kept, 16)).toBe(expected),
  )

  test.each([
    [0, 100, 16],
    [96, 100, 3],
    [99, 100, 1],
    [0, 1, 1],
  ])('with a seed, from %d of %d tokens %d are computed next', (position, length, expected) =>
    expect(pieceFrom(position, length, 16)).toBe(expected),
  )
})

describe('bytes of a piece of vocabulary', () => {
  test.each<[string, string, PieceKind, PieceForm, number[]]>([
    ['a space before a word', '▁cat', 'normal', 'spaces', [32, 99, 97, 116]],
    ['what a user defined stays', '▁', 'user', 'spaces', [0xe2, 0x96, 0x81]],
    ['a byte', '<0xE2>', 'byte', 'spaces', [0xe2]],
    ['control tokens say nothing', '<|im_end|>', 'control', 'spaces', []],
    ['a space in the alphabet of GPT-2', 'Ġcat', 'normal', 'gpt2', [32, 99, 97, 116]],
    ['a line break in it', 'Ċ', 'normal', 'gpt2', [10]],
    ['part of a character in it', 'âĤ', 'normal', 'gpt2', [0xe2, 0x82]],
    ['the first and the last byte', 'Āÿ', 'normal', 'gpt2', [0, 255]],
    ['what is not of that alphabet', '中', 'normal', 'gpt2', [...Buffer.from('中')]],
  ])('%s', (_rule, text, kind, form, bytes) => expect([...pieceBytes(text, kind, form)]).toEqual(bytes))
})

describe('numbers', () => {
  test('length 1, also for zeros', () => {
    expect(normalized([3, 4])).toEqual([0.6, 0.8])
    expect(normalized([0, 0])).toEqual([0, 0])
    expect(shortened([0.6, 0.8], 1)).toEqual([1])
    expect(shortened([0.6, 0.8], null)).toEqual([0.6, 0.8])
    expect(failing(() => shortened([1], 2)).param).toBe('dimensions')
  })
  test('base64 of little-endian floats', () => expect(base64Of([1, -2])).toBe('AACAPwAAAMA='))
  test.each([
    [null, null],
    [0, null],
    [-1, 512],
    [9, 9],
  ])('truncation %s', (asked, most) => expect(truncation(asked, 512)).toBe(most))
  test('by score, then by index', () => {
    expect(ranked([0.1, 0.9, 0.1, 0.5], 0).map(item => item.index)).toEqual([1, 3, 0, 2])
    expect(ranked([0.1, 0.9], 5)).toHaveLength(2)
  })
  test('a probability back as a logit', () => {
    expect(logit(0.5)).toBe(0)
    expect([logit(0), logit(1)].every(Number.isFinite)).toBe(true)
  })
})
