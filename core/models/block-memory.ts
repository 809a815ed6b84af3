import type { GgufValue } from './gguf-format.ts'

/** What one block of a model keeps of one sequence. The last three add up: some blocks have both cache and state. */
export interface BlockMemory {
  /** Tokens that it keeps at most, for sliding window and chunked attention; null for the whole context. */
  window: number | null
  /** Numbers in the keys and in the values of one token; 0 without a cache. */
  keys: number
  values: number
  /** 32-bit numbers of a recurrent state, the same for every context length. */
  state: number
}

/** Reads a field of the model's architecture: `attention.key_length` for `llama.attention.key_length`. */
export type ArchitectureField = (key: string) => GgufValue | undefined

/**
 * Blocks with sliding window attention where the file does not list them: of `every` blocks one attends to the whole
 * context, the last of them or the `first`. `window`: tokens if the file has none; without both, none has a window.
 */
interface Pattern {
  every: number
  first?: true
  window?: number
  /** The window of the file does not count. */
  fixed?: true
  /** Only models with this many blocks have windows. */
  blocks?: number
}

/** Source of these tables and of all rules below: src/llama-model.cpp, src/llama-hparams.cpp and src/models of llama.cpp v0.5.0. */
const patterns: Readonly<Record<string, Pattern>> = {
  afmoe: { every: 4 },
  cohere2: { every: 4 },
  cohere2moe: { every: 4, first: true },
  exaone4: { every: 4, window: 4096, blocks: 64 },
  'exaone-moe': { every: 4, window: 128 },
  gemma2: { every: 2, window: 4096 },
  gemma3: { every: 6 },
  gemma3n: { every: 5 },
  'gpt-oss': { every: 2 },
  laguna: { every: 4, first: true },
  llama4: { every: 4, window: 8192, fixed: true },
  mellum: { every: 4 },
  'muse-glimmer': { every: 4 },
  olmo2: { every: 4 },
  plamo3: { every: 8 },
  smallthinker: { every: 4, first: true, fixed: true },
}
/** Every block with attention has the window of the file. */
const allWindows = new Set(['lfm2', 'lfm2moe'])

const recurrent = new Set(['mamba', 'mamba2', 'rwkv6', 'rwkv6qwen2', 'rwkv7', 'arwkv7'])
/** A block without key and value heads has a state instead. */
const stateWithoutHeads = new Set([
  'jamba',
  'plamo2',
  'granitehybrid',
  'lfm2',
  'lfm2moe',
  'kimi-linear',
  'kimi-k3',
  'bailingmoe3',
])
/** One block of so many has attention, the others a state, unless the file lists them. */
const attentionEvery: Readonly<Record<string, number>> = {
  qwen3next: 4,
  qwen35: 4,
  qwen35moe: 4,
  qwen4exp: 4,
  'minimax-01': 8,
}
/** Blocks with a feed-forward length have neither cache nor state. */
const feedForwardBlocks = new Set(['nemotron_h', 'nemotron_h_moe'])
/** Their blocks also keep the keys of an indexer. */
const indexed = new Set(['deepseek32', 'glm-dsa'])
/** The blocks of Gemma 3n after these use the cache of earlier ones. */
const gemma3nCached = 20

/** Computes what llama.cpp keeps for each block of a model, by its GGUF header or a description with the same fields. */
export function blockMemory(architecture: string, blockCount: number, field: ArchitectureField): BlockMemory[] {
  const number = (key: string): number | null => {
    const value = field(key)
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
  }
  const heads = perBlock(field('attention.head_count'), blockCount)
  const given = perBlock(field('attention.head_count_kv'), blockCount)
  const headsKv = given.length > 0 ? given : heads
  const feedForward = perBlock(field('feed_forward_length'), blockCount)
  const length = heads[0] ? Math.floor((number('embedding_length') ?? 0) / heads[0]) : 0
  const sizes = {
    key: number('attention.key_length') ?? length,
    value: number('attention.value_length') ?? length,
  }
  const windowSizes = {
    key: number('attention.key_length_swa') ?? sizes.key,
    value: number('attention.value_length_swa') ?? sizes.value,
  }
  // Latent attention keeps one compressed vector, in the place of the keys.
  const isLatent = Boolean(number('attention.key_length_mla') && number('attention.value_length_mla'))
  const indexer = indexed.has(architecture) ? (number('attention.indexer.key_length') ?? 0) : 0
  const windowOf = windows(architecture, blockCount, field)
  // Blocks that predict further tokens are not part of the usual context.
  const own = blockCount - (number('nextn_predict_layers') ?? 0)
  const cached = architecture === 'gemma3n' ? gemma3nCached : blockCount - (number('attention.shared_kv_layers') ?? 0)
  const hasStateAt = states(architecture, field)
  const state = stateNumbers(number, heads[0] ?? 0, architecture === 'minimax-01' ? sizes.key : 0)

  return Array.from({ length: blockCount }, (_, block) => {
    const isFeedForward = feedForwardBlocks.has(architecture) && (feedForward[block] ?? 0) > 0
    const at = headsKv[block] ?? headsKv[0] ?? 0
    const hasState = block < own && !isFeedForward && hasStateAt(block, at)
    const hasCache =
      block < own && block < cached && !isFeedForward && (!hasState || architecture === 'falcon-h1') && at > 0
    const window = hasCache ? windowOf(block) : null
    const size = window === null ? sizes : windowSizes
    return {
      window,
      keys: hasCache ? at * size.key + indexer : 0,
      values: hasCache && !isLatent ? at * size.value : 0,
      state: hasState ? state : 0,
    }
  })
}

/** Returns the window of each block; null for one that attends to the whole context. */
function windows(architecture: string, blockCount: number, field: ArchitectureField): (block: number) => number | null {
  const none = () => null
  const pattern = patterns[architecture]
  if ((pattern?.blocks ?? blockCount) !== blockCount) return none
  const given = field('attention.sliding_window')
  // A window of 0 switches it off.
  const window =
    given === 0 ? null : pattern?.fixed && given !== undefined ? (pattern.window ?? 4096) : (given ?? pattern?.window)
  if (typeof window !== 'number') return none
  const stated = field('attention.sliding_window_pattern')
  if (isFlags(stated)) return block => (stated[block] ? window : null)
  if (allWindows.has(architecture)) return () => window
  if (!pattern) return none
  const every = typeof stated === 'number' ? stated : pattern.every
  if (every === 0) return () => window
  const whole = pattern.first ? 0 : every - 1
  return block => (block % every === whole ? null : window)
}

/** Returns which blocks have a recurrent state. `headsKv`: the number of key and value heads of the block. */
function states(architecture: string, field: ArchitectureField): (block: number, headsKv: number) => boolean {
  if (recurrent.has(architecture) || architecture === 'falcon-h1') return () => true
  if (stateWithoutHeads.has(architecture) || feedForwardBlocks.has(architecture)) return (_, headsKv) => headsKv === 0
  const usual = attentionEvery[architecture]
  if (usual === undefined) return () => false
  const stated = field('attention.recurrent_layers')
  if (isFlags(stated)) return block => Boolean(stated[block])
  const interval = field('full_attention_interval')
  const every = typeof interval === 'number' && interval > 0 ? interval : usual
  return block => (block + 1) % every !== 0
}

/** Returns the 32-bit numbers of the state of one block. `linear`: size of a head of lightning attention. */
function stateNumbers(number: (key: string) => number | null, heads: number, linear: number): number {
  const embedding = number('embedding_length') ?? 0
  const head = number('wkv.head_size')
  if (head) return embedding * (head + (number('token_shift_count') ?? 2))
  const convolution = number('shortconv.l_cache')
  if (convolution) return embedding * (convolution - 1)
  const kernel = number('ssm.conv_kernel')
  const delta = number('kda.head_dim')
  if (delta) return heads * delta * (delta + 3 * ((kernel ?? 4) - 1))
  const [inner, size, groups] = [
    number('ssm.inner_size') ?? 0,
    number('ssm.state_size') ?? 0,
    number('ssm.group_count') ?? 0,
  ]
  const before = Math.max(0, (kernel ?? 1) - 1) * (inner + 2 * groups * size)
  return before + (linear > 0 ? heads * linear * linear : inner * size)
}

/** One entry for each block: a Boolean, or 1 and 0. */
const isFlags = (value: GgufValue | undefined): value is readonly (number | boolean)[] => Array.isArray(value)

/** Expands a value that is one number for all blocks, or has one for each. */
export function perBlock(value: GgufValue | undefined, blocks: number): readonly number[] {
  if (typeof value === 'number') return Array.from({ length: blocks }, () => value)
  return Array.isArray(value) && value.every(entry => typeof entry === 'number') ? value : []
}
