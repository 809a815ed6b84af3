import { objectOf } from '../../json.ts'
import type { BlockMemory } from '../block-memory.ts'

/** The fields of a model of transformers that decide its memory. Lengths are in numbers, unless they are of tokens. */
export interface TransformersShape {
  blockMemory: readonly BlockMemory[]
  /** Tokens that engines allow by default. */
  contextLength: number | null
  embeddingLength: number
  feedForwardLength: number
  /** Attention heads; 0 where it names none. */
  heads: number
  vocabularySize: number
  /** False for encoders, which keep no cache. */
  causal: boolean
  /** Whether its weights are stored in 32 bits; engines load them in 16. */
  isWide: boolean
}

type Fields = Readonly<Record<string, unknown>>

/** Values that configurations leave out, because they are the defaults of the class. Source: transformers 5.17. */
const defaults: Readonly<Record<string, Fields>> = {
  gemma2: { head_dim: 256, sliding_window: 4096, sliding_window_pattern: 2, max_position_embeddings: 8192 },
  gemma3_text: {
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 256,
    sliding_window: 4096,
    sliding_window_pattern: 6,
    max_position_embeddings: 131_072,
    vocab_size: 262_208,
  },
  cohere2: { sliding_window_pattern: 4 },
  gpt_oss: { sliding_window_pattern: 2 },
  llama4_text: { attention_chunk_size: 8192, no_rope_layer_interval: 4 },
  qwen3_next: { full_attention_interval: 4 },
  mistral: { max_position_embeddings: 32_768 },
}

/** Models whose window counts for every layer. Others that name one either list their layers or do not apply it. */
const windowEverywhere = new Set(['mistral', 'mixtral', 'starcoder2'])

/** Returns the shape of a model by its config.json; null if that does not describe a transformer as usual. */
export function transformersShape(config: unknown): TransformersShape | null {
  const whole = objectOf(config)
  // A model that also reads images describes its language model in a part of its own.
  const part = [whole.text_config, whole.llm_config, whole.language_config].find(one => 'hidden_size' in objectOf(one))
  const own: Fields = part === undefined ? whole : objectOf(part)
  const named = [own.model_type, whole.model_type].find(one => typeof one === 'string') ?? ''
  const type = named === 'gemma3' ? 'gemma3_text' : named
  const fields: Fields = { ...defaults[type], ...own }
  const number = (...names: string[]): number | null => {
    const value = names.map(name => fields[name]).find(one => typeof one === 'number')
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
  }
  const layers = number('num_hidden_layers', 'n_layer', 'num_layers')
  const embeddingLength = number('hidden_size', 'n_embd', 'd_model')
  if (layers === null || embeddingLength === null || layers > 4096) return null
  const heads = number('num_attention_heads', 'n_head') ?? 0
  const headsKv = number('num_key_value_heads', 'num_kv_heads') ?? heads
  const head = number('head_dim') ?? (heads > 0 ? Math.floor(embeddingLength / heads) : 0)
  const latent = number('kv_lora_rank')
  const keys = latent === null ? headsKv * head : latent + (number('qk_rope_head_dim') ?? 0)
  const values = latent === null ? keys : 0
  const kindOf = layerKinds(fields, type)
  const window = type.startsWith('llama4') ? number('attention_chunk_size') : number('sliding_window')
  const state = stateNumbers(number)
  const experts = number('num_experts_per_tok', 'num_experts_per_token') ?? 0
  return {
    blockMemory: Array.from({ length: layers }, (_, layer): BlockMemory => {
      const kind = kindOf(layer)
      if (kind === 'state') return { window: null, keys: 0, values: 0, state }
      if (kind === 'none') return { window: null, keys: 0, values: 0, state: 0 }
      return { window: kind === 'window' ? window : null, keys, values, state: type === 'falcon_h1' ? state : 0 }
    }),
    // The length that Gemma 3 names is already that with scaling.
    contextLength: contextLength(
      type === 'gemma3_text' ? {} : fields,
      number('max_position_embeddings', 'n_positions', 'max_seq_len', 'seq_length'),
    ),
    embeddingLength,
    feedForwardLength: Math.max(
      number('intermediate_size', 'n_inner', 'ffn_dim') ?? 4 * embeddingLength,
      experts * (number('moe_intermediate_size') ?? 0),
    ),
    heads,
    vocabularySize: number('vocab_size') ?? 0,
    causal: !/bert|electra|mpnet|^t5|encoder$/.test(type),
    isWide: (fields.dtype ?? fields.torch_dtype ?? whole.dtype ?? whole.torch_dtype) === 'float32',
  }
}

type LayerKind = 'full' | 'window' | 'state' | 'none'

/** Returns what each layer keeps: everything, a window, a state, or nothing. */
function layerKinds(fields: Fields, type: string): (layer: number) => LayerKind {
  const { layer_types: types, hybrid_override_pattern: pattern, no_rope_layers: withRope } = fields
  if (typeof pattern === 'string')
    return layer => (pattern[layer] === '*' ? 'full' : pattern[layer] === 'M' ? 'state' : 'none')
  if (Array.isArray(types))
    return layer => {
      const kind = String(types[layer])
      if (/sliding|chunked|local/.test(kind)) return 'window'
      return /full|global|^attention$/.test(kind) ? 'full' : /linear|mamba|conv|recurrent/.test(kind) ? 'state' : 'full'
    }
  if (/^(falcon_)?mamba2?$|^rwkv/.test(type)) return () => 'state'
  const period = fields.attn_layer_period
  if (typeof period === 'number') {
    const offset = Number(fields.attn_layer_offset ?? 0)
    return layer => (layer % period === offset ? 'full' : 'state')
  }
  const interval = fields.full_attention_interval
  if (typeof interval === 'number') return layer => ((layer + 1) % interval === 0 ? 'full' : 'state')
  if (type.startsWith('llama4')) {
    const every = Number(fields.no_rope_layer_interval)
    const rope = Array.isArray(withRope) && withRope.length > 0 ? withRope : null
    return layer => ((rope ? rope[layer] : (layer + 1) % every) ? 'window' : 'full')
  }
  const every = fields.sliding_window_pattern
  if (typeof every === 'number' && every > 0) return layer => ((layer + 1) % every === 0 ? 'full' : 'window')
  return windowEverywhere.has(type) ? () => 'window' : () => 'full'
}

/** Returns the numbers of a recurrent state: gated delta nets of Qwen3-Next, Mamba and its second version. */
function stateNumbers(number: (...names: string[]) => number | null): number {
  const deltas = number('linear_num_value_heads')
  if (deltas !== null) return deltas * (number('linear_key_head_dim') ?? 0) * (number('linear_value_head_dim') ?? 0)
  const size = number('mamba_d_state', 'ssm_state_size', 'state_size') ?? 0
  const inner = (number('mamba_n_heads', 'mamba_num_heads') ?? 0) * (number('mamba_d_head', 'mamba_head_dim') ?? 0)
  return size * (inner || (number('intermediate_size') ?? 0))
}

/** Returns the context with the scaling of the rotary embeddings, as vLLM 0.26 derives it. */
function contextLength(fields: Fields, trained: number | null): number | null {
  const scaling = objectOf(fields.rope_parameters ?? fields.rope_scaling)
  const { factor, original_max_position_embeddings: original } = scaling
  const kind = scaling.rope_type ?? scaling.type
  if (typeof factor !== 'number' || trained === null) return trained
  if (kind === 'yarn') return Math.floor((typeof original === 'number' ? original : trained) * factor)
  return kind === 'linear' || kind === 'dynamic' ? Math.floor(trained * factor) : trained
}
