import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { tensor, type WritableGgufValue, writeGguf } from '../../../bin/gguf-writer.ts'
import { tinyEmbed, tinyRerank } from '../../../bin/tiny-bert.ts'
import { tinyChat } from '../../../bin/tiny-chat.ts'
import { Failure } from '../../../core/failure.ts'
import { type GgufContents, parseGguf } from '../../../core/models/gguf-format.ts'
import { ggufHeader, namesCoder, readGgufHeader } from '../../../core/models/gguf-header.ts'

const directory = mkdtempSync(join(tmpdir(), 'infer-gguf-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const file = (name: string, bytes: Uint8Array): string => {
  const path = join(directory, name)
  writeFileSync(path, bytes)
  return path
}

/** Feeds the parser pieces of at least the wanted size and at most `most` bytes more; counts the bytes it received. */
function parse(bytes: Buffer, more = 1 << 20, size = bytes.length): { contents: GgufContents; seen: number } {
  const parser = parseGguf('m.gguf', size)
  let seen = 0
  for (let step = parser.next(); ; ) {
    if (step.done) return { contents: step.value, seen }
    const piece = bytes.subarray(step.value.at, step.value.at + step.value.bytes + more)
    seen += piece.length
    step = parser.next(piece)
  }
}

const minimal: Record<string, WritableGgufValue> = {
  'general.architecture': ['string', 'llama'],
  'llama.block_count': ['u32', 2],
}
const small = (metadata: Record<string, WritableGgufValue> = {}) =>
  writeGguf({ ...minimal, ...metadata }, [
    tensor('token_embd.weight', [8, 4], 0),
    tensor('blk.0.a', [16], 0),
    tensor('blk.1.a', [32], 0),
  ])

test('the header of a chat model', async () => {
  expect(await readGgufHeader(file('chat.gguf', tinyChat()))).toMatchObject({
    version: 3,
    architecture: 'llama',
    kind: 'model',
    name: 'tiny-chat',
    license: 'mit',
    quantization: 'F32',
    contextLength: 4096,
    embeddingLength: 64,
    blockCount: 1,
    headCount: 4,
    headCountKv: [4],
    keyLength: 16,
    valueLength: 16,
    chatTemplate: expect.stringContaining('<|im_start|>'),
    poolingType: null,
    causal: true,
    classifier: false,
    splitCount: 1,
    adapterWidth: null,
  })
})

test('the headers of an embedding model and of a reranker', async () => {
  expect(await readGgufHeader(file('embed.gguf', tinyEmbed()))).toMatchObject({
    architecture: 'bert',
    poolingType: 'mean',
    causal: false,
    classifier: false,
    chatTemplate: null,
  })
  expect(await readGgufHeader(file('rerank.gguf', tinyRerank()))).toMatchObject({
    poolingType: 'rank',
    classifier: true,
    blockCount: 4,
  })
})

test('bytes and parameters are counted, per block too', () => {
  expect(ggufHeader('m', [parse(small()).contents])).toMatchObject({
    parameterCount: 80,
    tensorBytes: 320,
    blockBytes: [64, 128],
  })
})

test('values of each block are kept', () => {
  const { contents } = parse(
    small({
      'llama.embedding_length': ['u32', 64],
      'llama.attention.head_count': ['u32', 8],
      'llama.attention.head_count_kv': ['i32[]', [2, 0]],
      'llama.attention.sliding_window': ['u32', 512],
      'llama.attention.key_length': ['u32', 128],
    }),
  )
  expect(ggufHeader('m', [contents])).toMatchObject({
    headCountKv: [2, 0],
    keyLength: 128,
    valueLength: 8,
    slidingWindow: 512,
  })
})

test('only the length of a vocabulary is kept, and long lists of numbers are not read', () => {
  const tokens = Array.from({ length: 20_000 }, (_, at) => `token ${at}`)
  const bytes = small({
    'tokenizer.ggml.scores': ['f32[]', Array.from({ length: 1_000_000 }, () => 0)],
    'tokenizer.ggml.tokens': ['string[]', tokens],
  })
  const { contents, seen } = parse(bytes, 1024)
  expect(contents.metadata.get('tokenizer.ggml.tokens')).toEqual({ length: 20_000 })
  expect(ggufHeader('m', [contents]).vocabularySize).toBe(20_000)
  expect(seen).toBeLessThan(bytes.length - 3_900_000)
})

test('any division into pieces has the same result', () => {
  for (const bytes of [tinyChat(), small()])
    for (const more of [0, 1, 7, 4096]) expect(parse(bytes, more).contents).toEqual(parse(bytes).contents)
})

test('version 2 is parsed like version 3', () => {
  const bytes = small()
  bytes.writeUInt32LE(2, 4)
  expect(parse(bytes).contents).toEqual({ ...parse(small()).contents, version: 2 })
})

const bytesAt = (at: number, size: 4 | 8, value: number) => {
  const bytes = small()
  if (size === 4) bytes.writeUInt32LE(value, at)
  else bytes.writeBigUInt64LE(BigInt(value), at)
  return bytes
}
const firstKey = 24

test.each<[string, Buffer, RegExp]>([
  ['nothing at all', Buffer.alloc(0), /too short/],
  ['another kind of file', Buffer.from('PK\u0003\u0004'.padEnd(64)), /does not begin with 'GGUF'/],
  ['big-endian', bytesAt(4, 4, 0x03000000), /big-endian/],
  ['version 1', bytesAt(4, 4, 1), /version 1/],
  ['version 4', bytesAt(4, 4, 4), /version 4/],
  ['too many tensors', bytesAt(8, 8, 1e15), /1000000000000000 tensors/],
  ['too many entries', bytesAt(16, 8, 2 ** 40), /metadata entries/],
  ['a key longer than the file', bytesAt(firstKey, 8, 2 ** 50), /a metadata key of/],
  ['a value of an unknown type', bytesAt(firstKey + 8 + 20, 4, 77), /unknown type 77/],
  ['a text longer than the file', bytesAt(firstKey + 8 + 20 + 4, 8, 900_000), /ends in the middle/],
  ['a text longer than is read', bytesAt(firstKey + 8 + 20 + 4, 8, 2 ** 33), /at most 1048576 are allowed/],
  ['cut in the header', small().subarray(0, 90), /middle of its header/],
  ['cut in the data', tinyChat().subarray(0, -5000), /is incomplete: it has \d+ of \d+ bytes/],
  ['a wrong alignment', small({ 'general.alignment': ['u32', 33] }), /general\.alignment/],
  ['an alignment of nothing', small({ 'general.alignment': ['u32', 0] }), /general\.alignment/],
])('%s is refused with a sentence', (_, bytes, sentence) => {
  expect(() => parse(Buffer.from(bytes))).toThrow(sentence)
  expect(() => parse(Buffer.from(bytes))).toThrow(Failure)
})

test.each([
  ['a list', { long: ['i32[]', [1]] }],
  ['a list of texts', { long: ['string[]', ['a']] }],
] as const)('%s that claims more entries than the file has bytes is refused', (_, metadata) => {
  const bytes = writeGguf(metadata, [])
  const at = bytes.indexOf('long') + 4 + 4 + 4
  bytes.writeBigUInt64LE(2n ** 39n, at)
  expect(() => parse(bytes)).toThrow(/is too short for its list 'long' of 549755813888 entries/)
})

test('a header of endless texts is not read to the end', () => {
  const bytes = writeGguf({ long: ['string[]', ['a']] }, [])
  const at = bytes.indexOf('long') + 12
  bytes.writeBigUInt64LE(2n ** 34n, at)
  bytes.writeBigUInt64LE(2n ** 33n, at + 8)
  expect(() => parse(bytes, 0, 2 ** 40)).toThrow(/header of more than 256 MiB/)
})

test('a repeated metadata key is refused', () => {
  const bytes = writeGguf({ 'a.b': ['u32', 1], 'a.c': ['u32', 2] }, [])
  bytes.write('a.b', bytes.indexOf('a.c'))
  expect(() => parse(bytes)).toThrow(/'a\.b' twice/)
})

test('a tensor of an unknown type is counted by its bytes in the file', () => {
  const bytes = writeGguf(minimal, [tensor('new', [8], 0)])
  bytes.writeUInt32LE(99, bytes.indexOf('new') + 3 + 4 + 8)
  const { contents } = parse(bytes)
  expect(contents.tensors).toEqual([{ name: 'new', elements: 8, inputs: 8, bytes: null }])
  expect(ggufHeader('m', [contents]).tensorBytes).toBe(32)
})

test('a file without an architecture is refused', () => {
  expect(() => ggufHeader('m', [parse(writeGguf({}, [])).contents])).toThrow(/general\.architecture/)
})

test('damaged headers end in a Failure or a header, never in another exception', () => {
  const bytes = writeGguf(
    { ...minimal, list: ['f32[]', [1, 2]], words: ['string[]', ['a', 'b']], 'llama.attention.causal': ['bool', true] },
    [tensor('token_embd.weight', [4, 2], 0), tensor('blk.0.a', [4], 0)],
  )
  const damage = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(damage, fc.nat(bytes.length), (changes, length) => {
      const copy = Buffer.from(bytes)
      for (const [at, value] of changes) copy[at] = value
      try {
        ggufHeader('m', [parse(copy.subarray(0, length || copy.length)).contents])
      } catch (error) {
        expect(error).toBeInstanceOf(Failure)
      }
    }),
    { numRuns: 3000 },
  )
})

const part = (no: number, count: number, tensors: Parameters<typeof writeGguf>[1]) =>
  writeGguf({ ...(no === 0 ? minimal : {}), 'split.no': ['u32', no], 'split.count': ['u32', count] }, tensors)

test('a model in parts has the sums of its parts', async () => {
  const first = file('big-00001-of-00003.gguf', part(0, 3, []))
  file('big-00002-of-00003.gguf', part(1, 3, [tensor('blk.0.a', [64], 0)]))
  const third = file('big-00003-of-00003.gguf', part(2, 3, [tensor('blk.1.a', [32], 0), tensor('out', [8], 0)]))
  expect(await readGgufHeader(first)).toMatchObject({
    splitCount: 3,
    tensorBytes: 416,
    blockBytes: [256, 128],
    parameterCount: 104,
  })
  await expect(readGgufHeader(third)).rejects.toThrow(`Name the first: '${first}'`)
  truncateSync(third, 200)
  await expect(readGgufHeader(first)).rejects.toThrow(/00003-of-00003\.gguf' is incomplete/)
  rmSync(third)
  await expect(readGgufHeader(first)).rejects.toThrow("lacks 'big-00003-of-00003.gguf'")
})

test('a part with another file name is refused', async () => {
  await expect(readGgufHeader(file('renamed.gguf', part(0, 2, [])))).rejects.toThrow(/one of 2 parts/)
  await expect(readGgufHeader(file('m-00001-of-00009.gguf', part(0, 2, [])))).rejects.toThrow(/one of 2 parts/)
})

test('a missing file is named', async () => {
  await expect(readGgufHeader(join(directory, 'none.gguf'))).rejects.toThrow("There is no file '")
  await expect(readGgufHeader(directory)).rejects.toThrow('is not a file')
})

test.each([
  ['Qwen2.5 Coder 7B Instruct', true],
  ['qwen3-coder-30b-a3b-q4_k_m.gguf', true],
  ['CodeLlama-7B', true],
  ['codegemma-7b', true],
  ['starcoder2-15b', true],
  ['opencoder-8b', true],
  ['granite-8b-code-instruct', true],
  ['Codestral-22B', true],
  ['Devstral-Small', true],
  ['multilingual-encoder', false],
  ['decoder-only', false],
  ['neural-codec', false],
  ['Qwen3 8B', false],
] as const)('the name %s says that the model is made for writing programs: %s', (name, expected) => {
  expect(namesCoder(name)).toBe(expected)
})
