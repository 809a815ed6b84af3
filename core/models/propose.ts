import { basename } from 'node:path'
import { type Task, tasksBy } from '../schemas/task.ts'
import type { GgufHeader } from './gguf-header.ts'
import { quantizationOf } from './hub/choose.ts'
import { modelIdPattern } from './model-id.ts'

/** The tasks of a model, and the reason why it has them as the end of a sentence. */
export interface Purpose {
  tasks: Task[]
  because: string
}

/**
 * Returns the tasks of a GGUF model by its header. The pooling type decides before the architecture, because generative
 * models are also fine-tuned for embedding and ranking. Null for a file that is not a model by itself.
 */
export function purposeOf(header: GgufHeader): Purpose | null {
  const { kind, architecture, poolingType, classifier, causal, chatTemplate } = header
  if (kind !== 'model') return null
  if (poolingType === 'rank') return { tasks: tasksBy('rerank'), because: 'its pooling type is rank' }
  if (classifier && !causal) return { tasks: tasksBy('rerank'), because: 'it has a ranking head' }
  if (poolingType !== null && poolingType !== 'none')
    return { tasks: tasksBy('embed'), because: `it pools its tokens into one vector (${poolingType})` }
  if (!causal) return { tasks: tasksBy('embed'), because: `${architecture} is an encoder` }
  if (chatTemplate !== null) return { tasks: tasksBy('chat', 'complete'), because: 'it has a chat template' }
  return { tasks: tasksBy('complete'), because: 'it has no chat template and only continues text' }
}

/** The same for a safetensors model, by its `config.json` and by whether it has a `modules.json`. */
export function purposeOfFolder(config: unknown, { pools }: { pools: boolean }): Purpose {
  const { architectures } = (typeof config === 'object' && config !== null ? config : {}) as { architectures?: unknown }
  const name = Array.isArray(architectures) && typeof architectures[0] === 'string' ? architectures[0] : 'It'
  if (/SequenceClassification/.test(name)) return { tasks: tasksBy('rerank'), because: `${name} is a classifier` }
  if (pools) return { tasks: tasksBy('embed'), because: 'it has a pooling configuration' }
  if (/ForCausalLM|ForConditionalGeneration|LMHeadModel/.test(name))
    return { tasks: tasksBy('chat', 'complete'), because: `${name} generates text` }
  if (/Model$|ForMaskedLM/.test(name)) return { tasks: tasksBy('embed'), because: `${name} is an encoder` }
  return { tasks: tasksBy('chat', 'complete'), because: `${name} does not tell its tasks` }
}

/**
 * Returns an id that is not in use: the first name that gives one, in lower case, without the quantization and file
 * suffixes. If it is in use, the quantization is appended, then a number.
 */
export function idFrom(
  names: readonly (string | null)[],
  quantization: string | null,
  taken: ReadonlySet<string>,
): string {
  const [slug = 'model'] = names.flatMap(name => slugOf(name ?? '') ?? [])
  const quantized = quantization === null ? slug : `${slug}-${quantization.toLowerCase()}`
  for (const id of [slug, quantized]) if (!taken.has(id)) return id
  for (let count = 2; ; count++) if (!taken.has(`${quantized}-${count}`)) return `${quantized}-${count}`
}

/** Turns a name into an id; undefined if the rest is too general to identify a model. */
export function slugOf(name: string): string | undefined {
  const file = basename(name)
    .replace(/-\d{5}-of-\d{5}(?=\.gguf$)/i, '')
    .replace(/\.(gguf|safetensors|sft|onnx)$/i, '')
    .replace(/[-_.]gguf$/i, '')
  const quantization = quantizationOf(file)
  const slug = (quantization ? file.replace(new RegExp(`[-._]?${quantization}`, 'i'), '') : file)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9._]+/g, '-')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
    .slice(0, 64)
    .replace(/[^a-z0-9]+$/, '')
  return /[a-z].*[a-z0-9]/.test(slug) &&
    modelIdPattern.test(slug) &&
    !/^(models?|ggml-model|main|snapshot|[0-9a-f]{40})$/.test(slug)
    ? slug
    : undefined
}
