import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { invalidValue } from '../failure.ts'
import { type BlockMemory, blockMemory, perBlock } from './block-memory.ts'
import { type GgufContents, type GgufValue, parseGguf, quantizations, type ReadRequest } from './gguf-format.ts'
import { partsOf } from './gguf-parts.ts'
import { type DiffusionFile, diffusionGgufOf } from './recognition/diffusion-tensors.ts'
import { absent, partsFault } from './source-files.ts'

const poolingTypes = ['none', 'mean', 'cls', 'last', 'rank'] as const
export type PoolingType = (typeof poolingTypes)[number]

/** Properties of a GGUF model from its header. Null if the file does not have one. All sizes in bytes. */
export interface GgufHeader {
  version: number
  architecture: string
  /** `model`, or a file that is not a model by itself: `adapter`, `mmproj`, `imatrix`. */
  kind: string
  /** What it is if it generates images or videos; null for a text model. */
  diffusion: DiffusionFile | null
  name: string | null
  /** Size as the authors write it, such as `8B` or `8x7B`. */
  sizeLabel: string | null
  description: string | null
  license: string | null
  parameterCount: number
  /** Quantization of most tensors, such as `Q4_K_M`. */
  quantization: string | null
  /** Context length of the training, in tokens. */
  contextLength: number | null
  embeddingLength: number | null
  feedForwardLength: number | null
  blockCount: number
  headCount: number | null
  /** Key and value heads of each block. */
  headCountKv: readonly number[]
  /** Dimensions of the key and of the value of one head. */
  keyLength: number | null
  valueLength: number | null
  /** Window of blocks with sliding window attention, in tokens; null if the file names none. */
  slidingWindow: number | null
  /** What each block keeps of a sequence. */
  blockMemory: readonly BlockMemory[]
  vocabularySize: number | null
  expertCount: number | null
  /** Active experts per token, and the feed-forward length of each. */
  expertUsedCount: number | null
  expertFeedForwardLength: number | null
  /** The Jinja template of the tokenizer. */
  chatTemplate: string | null
  /** Whether there is a template for reranking. */
  rerankTemplate: boolean
  /** How token vectors are pooled into one; null for models without pooling. */
  poolingType: PoolingType | null
  /** Whether a token attends only to the tokens before it. False for encoders. */
  causal: boolean
  /** Whether it has a classification head, which ranking needs. */
  classifier: boolean
  /** Whether its name says that it is made for writing programs, which takes long prompts. */
  codes: boolean
  /** Number of files of the model. */
  splitCount: number
  /** The embedding length of the models for which an adapter is; null for others, and if it does not tell. */
  adapterWidth: number | null
  /** All tensors of all files. */
  tensorBytes: number
  /** Tensors of each block; the rest of `tensorBytes` are embeddings, output and norms. */
  blockBytes: readonly number[]
  /** The output matrix, or the token embeddings if they are used in its place. */
  outputBytes: number
}

const codeNames = /(?<![a-z])code(?![cd])|(?<!\ben|\bde)coder|devstral/i

/** Whether a model's name says that it is made for writing programs: `Qwen2.5-Coder`, `CodeLlama`, `starcoder2`. */
export const namesCoder = (name: string): boolean => codeNames.test(name)

/** Minimum bytes of one read: headers of models with large vocabularies have megabytes. */
const readBytes = 256 << 10

/** Maximum number of blocks; the largest models have about 130. */
const maxBlocks = 4096

/**
 * Reads the header of a GGUF file, without its tensor data. For a model in several files (`-00001-of-00003.gguf`) pass the
 * first: the headers of the others are read too, and their tensors are counted.
 * Throws Failure `invalid_value`, which names the file, if it is not a model, is damaged or a part is missing.
 */
export async function readGgufHeader(path: string): Promise<GgufHeader> {
  const first = await readContents(path)
  const splitCount = Math.max(1, number(first, 'split.count') ?? 1)
  if (splitCount === 1) return ggufHeader(path, [first])
  const parts = partsOf(path)
  const [firstName] = parts
  if (parts.length !== splitCount)
    throw wrong(path, `is one of ${splitCount} parts, but its name does not end in '-00001-of-0000N.gguf'.`)
  if ((number(first, 'split.no') ?? 0) !== 0 || firstName !== path)
    throw wrong(path, `is not the first part of its model. Name the first: '${firstName}'.`)
  const missing = await absent(parts)
  if (missing.length > 0) throw invalidValue(partsFault(path, missing))
  const all = [first]
  for (const part of parts.slice(1)) all.push(await readContents(part))
  return ggufHeader(path, all)
}

/** Returns the properties of a model from the parsed headers of its files, in order. Messages call the model `name`. */
export function ggufHeader(name: string, files: readonly GgufContents[]): GgufHeader {
  const first = files[0]!
  const { metadata } = first
  const tensors = files.flatMap(file => file.tensors)
  // Programs that convert image models often write no architecture.
  const diffusion = diffusionGgufOf(
    text(first, 'general.architecture'),
    new Map(tensors.map(tensor => [tensor.name, tensor.elements])),
  )
  const architecture = text(first, 'general.architecture') ?? diffusion?.family
  if (!architecture) throw wrong(name, "has no 'general.architecture', so no engine can run it.")
  const own = (key: string) => number(first, `${architecture}.${key}`)
  const blockCount = own('block_count') ?? 0
  if (!Number.isInteger(blockCount) || blockCount < 0 || blockCount > maxBlocks)
    throw wrong(name, `claims to have ${blockCount} blocks, which no model has.`)

  const blockBytes = Array.from({ length: blockCount }, () => 0)
  let tensorBytes = 0
  let elements = 0
  for (const tensor of tensors) {
    const block = /^blk\.(\d+)\./.exec(tensor.name)?.[1]
    tensorBytes += tensor.bytes ?? 0
    elements += tensor.elements
    if (block !== undefined && Number(block) < blockCount) blockBytes[Number(block)]! += tensor.bytes ?? 0
  }

  const embeddings = tensors.find(tensor => tensor.name === 'token_embd.weight')
  const heads = perBlock(metadata.get(`${architecture}.attention.head_count`), blockCount)
  const headCount = heads.length > 0 ? Math.max(...heads) : null
  const embeddingLength = own('embedding_length')
  const headLength = embeddingLength !== null && headCount ? Math.floor(embeddingLength / headCount) : null
  const headCountKv = perBlock(metadata.get(`${architecture}.attention.head_count_kv`), blockCount)
  const causal = metadata.get(`${architecture}.attention.causal`)
  const quantization = number(first, 'general.file_type')
  const words = metadata.get('tokenizer.ggml.tokens')
  return {
    version: first.version,
    architecture,
    kind: text(first, 'general.type') ?? (architecture === 'clip' ? 'mmproj' : 'model'),
    diffusion,
    name: text(first, 'general.name'),
    sizeLabel: text(first, 'general.size_label'),
    description: text(first, 'general.description'),
    license: text(first, 'general.license'),
    parameterCount: elements,
    quantization: quantization === null ? null : (quantizations[quantization] ?? null),
    contextLength: own('context_length') || null,
    embeddingLength,
    feedForwardLength: Math.max(0, ...perBlock(metadata.get(`${architecture}.feed_forward_length`), 1)) || null,
    blockCount,
    headCount,
    headCountKv: headCountKv.length > 0 ? headCountKv : heads,
    keyLength: own('attention.key_length') ?? headLength,
    valueLength: own('attention.value_length') ?? headLength,
    slidingWindow: own('attention.sliding_window') || null,
    blockMemory: blockMemory(architecture, blockCount, key => metadata.get(`${architecture}.${key}`)),
    vocabularySize: own('vocab_size') ?? (isList(words) ? words.length : null),
    expertCount: own('expert_count') || null,
    expertUsedCount: own('expert_used_count') || null,
    expertFeedForwardLength: own('expert_feed_forward_length') || null,
    chatTemplate: text(first, 'tokenizer.chat_template'),
    rerankTemplate: metadata.has('tokenizer.chat_template.rerank'),
    poolingType: poolingTypes[own('pooling_type') ?? -1] ?? null,
    causal: typeof causal === 'boolean' ? causal : true,
    classifier: tensors.some(tensor => tensor.name.startsWith('cls.')),
    codes: namesCoder(`${text(first, 'general.name') ?? ''} ${basename(name)}`),
    splitCount: files.length,
    adapterWidth: tensors.find(({ name }) => readsWidth.test(name))?.inputs ?? null,
    // A tensor type that is newer than this program has an unknown size, so the size of the files is used.
    tensorBytes: tensors.some(({ bytes }) => bytes === null)
      ? files.reduce((sum, { dataBytes }) => sum + dataBytes, 0)
      : tensorBytes,
    blockBytes,
    outputBytes: tensors.find(({ name }) => name === 'output.weight')?.bytes ?? embeddings?.bytes ?? 0,
  }
}

/** Matrices of an adapter whose inputs are the width of its model. */
const readsWidth = /\.(attn_(q|k|v|qkv)|ffn_(gate|up))\.weight\.lora_a$/

const wrong = (name: string, what: string) => invalidValue(`'${name}' ${what}`)

const text = ({ metadata }: GgufContents, key: string): string | null => {
  const value = metadata.get(key)
  return typeof value === 'string' && value !== '' ? value : null
}

const number = ({ metadata }: GgufContents, key: string): number | null => {
  const value = metadata.get(key)
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

const isList = (value: GgufValue | undefined): value is Exclude<GgufValue, string | number | boolean> =>
  typeof value === 'object'

/** Parses a local file. */
async function readContents(path: string): Promise<GgufContents> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    throw invalidValue(
      missing ? `There is no file '${path}'.` : `'${path}' cannot be read: ${(cause as Error).message}.`,
      missing ? {} : { cause },
    )
  }
  try {
    const about = await file.stat()
    if (!about.isFile()) throw wrong(path, 'is not a file.')
    return await readHeader(file, parseGguf(path, about.size), readBytes)
  } finally {
    await file.close()
  }
}

/** Drives a header parser with pieces of an open file, each of `minBytes` at least. */
export async function readHeader<T>(
  file: FileHandle,
  parser: Generator<ReadRequest, T, Uint8Array>,
  minBytes = 0,
): Promise<T> {
  let step = parser.next()
  while (!step.done) {
    const { at, bytes } = step.value
    const piece = Buffer.allocUnsafe(Math.max(bytes, minBytes))
    let filled = 0
    // One read may return fewer bytes.
    for (let read = -1; read !== 0 && filled < piece.length; filled += read)
      read = (await file.read(piece, filled, piece.length - filled, at + filled)).bytesRead
    step = parser.next(piece.subarray(0, filled))
  }
  return step.value
}
