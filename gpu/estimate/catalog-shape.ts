import { blockMemory } from '../../core/models/block-memory.ts'
import type { CatalogBuild, CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import type { ModelShape } from '../engines/gguf/sizing-need.ts'
import type { PagedShape } from './paged-plan.ts'

/** Bits per weight of a whole file. Source: tools/quantize/README.md of llama.cpp, Llama 3.1 8B; MXFP4: gpt-oss. */
const bitsPerWeight: Readonly<Record<string, number>> = {
  Q3_K_M: 3.91,
  Q4_0: 4.66,
  Q4_1: 5.11,
  Q4_K_M: 4.8944,
  Q5_0: 5.5,
  Q5_K_M: 5.7036,
  Q6_K: 6.5633,
  Q8_0: 8.5008,
  MXFP4: 4.6,
  F16: 16,
  BF16: 16,
}

/** Bits of one number of the output matrix, which K-quants keep at Q6_K. */
const outputBits = (quantization: string): number =>
  /_K/.test(quantization) ? 6.5625 : quantization === 'MXFP4' ? 8.5 : bitsOf(quantization)

const bitsOf = (quantization: string | null): number => bitsPerWeight[quantization ?? 'BF16'] ?? 16

/** Bytes of the weights: the file size when it is known, else by the parameters; null when neither is known. */
export function weightBytes({ parameters }: CatalogModel, build: CatalogBuild): number | null {
  const { bytes, quantization, further_parameters: further = 0 } = build
  if (bytes !== null) return bytes
  return parameters === null ? null : Math.round(((parameters + further) * bitsOf(quantization)) / 8)
}

/** Predicts the fields of a build's GGUF header that decide its memory; null when the catalog does not know them. */
export function catalogShape(model: CatalogModel, build: CatalogBuild): ModelShape | null {
  const figures = model.architecture
  const tensorBytes = weightBytes(model, build)
  if (figures === null || tensorBytes === null) return null
  const quantization = build.quantization ?? 'BF16'
  const matrix = figures.vocabulary * figures.embedding
  const outputBytes = Math.round((matrix * outputBits(quantization)) / 8)
  const inputBytes = figures.tied_embeddings ? 0 : Math.round((matrix * bitsOf(quantization)) / 8)
  const layerBytes = Math.max(0, Math.floor((tensorBytes - outputBytes - inputBytes) / figures.layers))
  const fields: Readonly<Record<string, number | undefined>> = {
    embedding_length: figures.embedding,
    'attention.head_count': figures.heads,
    'attention.head_count_kv': figures.kv_heads,
    'attention.key_length': figures.head_size,
    'attention.value_length': figures.head_size,
    'attention.sliding_window': figures.sliding_window ?? undefined,
    'attention.sliding_window_pattern': figures.full_attention_every ?? undefined,
  }
  return {
    architecture: figures.name,
    contextLength: figures.context,
    embeddingLength: figures.embedding,
    feedForwardLength: figures.feed_forward,
    blockCount: figures.layers,
    headCount: figures.heads,
    blockMemory: blockMemory(figures.name, figures.layers, key => fields[key]),
    keyLength: figures.head_size,
    valueLength: figures.head_size,
    vocabularySize: figures.vocabulary,
    expertUsedCount: figures.experts?.used ?? null,
    expertFeedForwardLength: figures.experts?.feed_forward ?? null,
    causal: figures.causal,
    classifier: figures.classifier,
    codes: model.kind === 'code',
    tensorBytes,
    blockBytes: Array.from({ length: figures.layers }, () => layerBytes),
    outputBytes,
  }
}

/** Predicts what decides the memory of a build that vLLM or SGLang runs; null when the catalog does not know it. */
export function catalogPagedShape(model: CatalogModel, build: CatalogBuild): PagedShape | null {
  const shape = catalogShape(model, build)
  if (shape === null) return null
  const { blockMemory, contextLength, causal, tensorBytes: weights } = shape
  const experts = (shape.expertUsedCount ?? 0) * (shape.expertFeedForwardLength ?? 0)
  return {
    blockMemory,
    contextLength,
    causal,
    weights,
    embeddingLength: shape.embeddingLength ?? 0,
    feedForwardLength: Math.max(shape.feedForwardLength ?? 0, experts),
    heads: shape.headCount ?? 0,
    vocabularySize: shape.vocabularySize ?? 0,
  }
}
