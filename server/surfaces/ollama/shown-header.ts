import type { GgufHeader } from '../../../core/models/gguf-header.ts'

const units = [
  ['B', 1e9],
  ['M', 1e6],
  ['K', 1e3],
] as const

/** Returns a number of parameters as Ollama writes it, such as `8.2B`. */
export function parameterSize(count: number): string {
  const [unit, size] = units.find(([, least]) => count >= least) ?? ['', 1]
  return `${Number((count / size).toFixed(1))}${unit}`
}

/** Returns the details of a model by the header of its file. */
export const headerDetails = ({ architecture, sizeLabel, parameterCount, quantization }: GgufHeader) => ({
  family: architecture,
  families: [architecture],
  parameter_size: sizeLabel ?? parameterSize(parameterCount),
  quantization_level: quantization ?? '',
})

/** Returns the fields of the header under the names that they have in the file. Those that it lacks are left out. */
export function headerInfo(header: GgufHeader): Record<string, string | number> {
  const { architecture } = header
  const fields: Record<string, string | number | null> = {
    'general.architecture': architecture,
    'general.name': header.name,
    'general.parameter_count': header.parameterCount,
    'general.size_label': header.sizeLabel,
    [`${architecture}.context_length`]: header.contextLength,
    [`${architecture}.embedding_length`]: header.embeddingLength,
    [`${architecture}.feed_forward_length`]: header.feedForwardLength,
    [`${architecture}.block_count`]: header.blockCount,
    [`${architecture}.attention.head_count`]: header.headCount,
    [`${architecture}.attention.head_count_kv`]: header.headCountKv.length > 0 ? Math.max(...header.headCountKv) : null,
    [`${architecture}.attention.key_length`]: header.keyLength,
    [`${architecture}.attention.value_length`]: header.valueLength,
    [`${architecture}.attention.sliding_window`]: header.slidingWindow,
    [`${architecture}.vocab_size`]: header.vocabularySize,
    [`${architecture}.expert_count`]: header.expertCount,
    [`${architecture}.expert_used_count`]: header.expertUsedCount,
  }
  return Object.fromEntries(
    Object.entries(fields).filter((field): field is [string, string | number] => field[1] !== null),
  )
}
