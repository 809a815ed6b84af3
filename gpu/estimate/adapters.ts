import { open, readFile, stat } from 'node:fs/promises'
import { basename, isAbsolute, join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { objectOf } from '../../core/json.ts'
import { type Adapter, enabledAdapters, sameAdapters } from '../../core/models/adapter.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { type GgufHeader, readGgufHeader, readHeader } from '../../core/models/gguf-header.ts'
import type { Model } from '../../core/models/model.ts'
import type { PlannedAdapter } from '../../core/models/model-plan.ts'
import { parseSafetensors, type TensorSizes } from '../../core/models/recognition/safetensors-header.ts'
import { type TransformersShape, transformersShape } from '../../core/models/recognition/transformers-shape.ts'
import type { MemoryPlan } from './estimate.ts'

/** What the files of an adapter say. */
export interface AdapterPlan extends Pick<Adapter, 'id' | 'source' | 'scale'> {
  /** Bytes of its tensors; null if its files are not on this machine. */
  bytes: number | null
  /** Its rank; null for a GGUF file, and if its files are not on this machine. */
  rank: number | null
  /** Why an engine of its base cannot use it, as a sentence; absent if nothing is known against it. */
  fault?: string
}

/** How an engine gets the adapters of its model. */
export interface AdaptersPlan {
  list: readonly AdapterPlan[]
  /** Rank and number of adapters for which vLLM and SGLang reserve memory. */
  rank: number
  atOnce: number
}

/** What the adapters of a model must fit. */
export interface AdapterBase {
  header?: Pick<GgufHeader, 'architecture' | 'embeddingLength'> | undefined
  shape?: Pick<TransformersShape, 'embeddingLength'> | undefined
}

/** The ranks that vLLM can reserve memory for. Source: its configuration, 0.26. */
const ranks = [8, 16, 32, 64, 128, 256, 320, 512]
/** That of an adapter whose files are not here. */
const usualRank = 64
/** Adapters whose requests are computed together; further ones are exchanged between batches. */
const mostAtOnce = 8

/** Reads the adapters of a model, and compares them with what is known of it; undefined if it has none. Never rejects. */
export async function planAdapters(
  model: Pick<Model, 'adapters'> & Partial<Pick<Model, 'engine'>>,
  base: AdapterBase,
  read: typeof readGgufHeader = readGgufHeader,
): Promise<AdaptersPlan | undefined> {
  const adapters = enabledAdapters(model)
  if (adapters.length === 0) return undefined
  const readsGguf = engineFacts(model.engine).reads === 'gguf'
  const list = await Array.fromAsync(adapters, async ({ id, source, scale }): Promise<AdapterPlan> => {
    try {
      const found = readsGguf ? await readGguf(source, base, read) : await readFolder(source, base)
      return { id, source, scale, ...found }
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown
      return { id, source, scale, bytes: null, rank: null, fault: thrown.message }
    }
  })
  const most = Math.max(...list.map(({ rank, fault }) => (fault ? 0 : (rank ?? usualRank))))
  return {
    list,
    rank: ranks.find(rank => rank >= most) ?? ranks.at(-1)!,
    atOnce: Math.min(mostAtOnce, list.length),
  }
}

/** Reads one adapter and the files of the model that is to be its base. */
export async function checkAdapter(
  { engine, source: of }: Pick<Model, 'engine' | 'source'>,
  source: string,
): Promise<AdapterPlan> {
  const header = of !== undefined && /\.gguf$/i.test(of) ? await readGgufHeader(of).catch(() => undefined) : undefined
  const config = of === undefined || header ? '' : await readFile(join(of, 'config.json'), 'utf8').catch(() => '')
  const shape = transformersShape(jsonIn(config)) ?? undefined
  const adapters = [{ id: source, source, scale: 1, enabled: true }]
  return (await planAdapters({ engine, adapters }, { header, shape }))!.list[0]!
}

/** The adapters that an engine is started with, in this order. */
export const usableAdapters = (plan: AdaptersPlan | undefined): readonly AdapterPlan[] =>
  plan?.list.filter(({ fault }) => fault === undefined) ?? []

/** The adapters with a fault that they did not have in the plan before. */
export const newFaults = ({ adapters }: MemoryPlan = {}, before: MemoryPlan = {}): AdapterPlan[] =>
  (adapters?.list ?? []).filter(
    ({ id, fault }) => fault !== undefined && !before.adapters?.list.some(one => one.id === id && one.fault === fault),
  )

/**
 * The adapters of a model in the form of the plan for people. `plan`: that of its engine, which may have been started before
 * some of them were configured; those are read now.
 */
export const plannedAdapters = (
  model: Pick<Model, 'id' | 'args' | 'engine' | 'source' | 'adapters'>,
  { adapters: started }: MemoryPlan = {},
): Promise<PlannedAdapter[]> =>
  Array.fromAsync(enabledAdapters(model), async ({ id, source }) => {
    const known = started?.list.find(one => one.id === id && one.source === source)
    const { bytes, rank, fault } = known ?? (await checkAdapter(model, source))
    return { id, bytes, fault: fault ?? (started && rankFault(model, rank, started)) ?? null }
  })

/** The rank that the arguments of a model name; undefined where infer chooses it. */
function givenRank(args: readonly string[]): number | undefined {
  const at = args.findIndex(arg => /^--max-lora-rank(=|$)/.test(arg))
  return at < 0 ? undefined : Number(args[at]!.split('=')[1] ?? args[at + 1])
}

/**
 * Why an engine of vLLM or SGLang that was started with memory for adapters of the rank `reserved` cannot load one of this
 * rank, as sentences; undefined if it can, or where the rank is not known.
 */
export function rankFault(
  { id, engine, args }: Pick<Model, 'id' | 'engine' | 'args'>,
  rank: number | null,
  { rank: reserved }: Pick<AdaptersPlan, 'rank'>,
): string | undefined {
  const given = givenRank(args)
  if (engineFacts(engine).loadsAdapters !== 'running' || rank === null || rank <= (given ?? reserved)) return undefined
  const remedy =
    given === undefined
      ? `The next load reserves more: infer model unload ${id}`
      : `Raise --max-lora-rank in 'args' of '${id}'.`
  return `The adapter has the rank ${rank}, and the running engine of '${id}' has memory for ${given ?? reserved}. ${remedy}`
}

/** What to know before an adapter is added to a base whose engine may run, as sentences. `found`: what its files say. */
export async function addedAdapterAdvice(
  base: Model,
  { source, scale, rank }: Pick<AdapterPlan, 'source' | 'scale' | 'rank'>,
): Promise<string[]> {
  const before = await planAdapters(base, {})
  const after = { ...base, adapters: [...(base.adapters ?? []), { id: '', source, scale, enabled: true }] }
  const fault = rankFault(base, rank, before ?? { rank: Number.POSITIVE_INFINITY })
  const isReplaced =
    before !== undefined && engineFacts(base.engine).loadsAdapters === 'running' && !sameAdapters(base, after)
  return [
    ...(fault === undefined ? [] : [fault]),
    ...(isReplaced
      ? [
          `An engine of '${base.id}' that runs already cannot read '${source}' in its sandbox, so it is replaced. It would stay with the folder in 'sandbox_read' of '${base.id}'.`,
        ]
      : []),
  ]
}

/** The rank of an adapter of PEFT in a folder; null where it is not known. */
export const adapterRank = async (source: string): Promise<number | null> =>
  isAbsolute(source) ? ((await readFolder(source, {}).catch(() => undefined))?.rank ?? null) : null

/** Bytes of the adapters that an engine loads as they are. */
export const adapterBytes = (plan: AdaptersPlan | undefined): number =>
  usableAdapters(plan).reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)

type Found = Pick<AdapterPlan, 'bytes' | 'rank' | 'fault'>

async function readGguf(source: string, { header: base }: AdapterBase, read: typeof readGgufHeader): Promise<Found> {
  const { kind, architecture, adapterWidth, tensorBytes } = await read(source)
  const name = `'${basename(source)}'`
  const width = base?.embeddingLength
  const fault =
    kind !== 'adapter'
      ? `${name} is a model and not a LoRA adapter.`
      : base && base.architecture !== architecture
        ? `The adapter ${name} is for models of the architecture '${architecture}', and its base has '${base.architecture}'. Name a base of the family for which it was trained.`
        : width != null && adapterWidth !== null && adapterWidth !== width
          ? `The adapter ${name} is for a model of width ${adapterWidth}, and its base has ${width}. Name the base of the size for which it was trained.`
          : undefined
  return { bytes: tensorBytes, rank: null, ...(fault === undefined ? {} : { fault }) }
}

const weightFile = 'adapter_model.safetensors'
/** Modules whose inputs have the width of the model. */
const fromWidth = /\.(q_proj|k_proj|v_proj|qkv_proj|gate_proj|up_proj)\.lora_A\.weight$/

/** Reads a folder of PEFT. Nothing is known of a name on the hub. */
async function readFolder(source: string, { shape }: AdapterBase): Promise<Found> {
  if (!isAbsolute(source)) return { bytes: null, rank: null }
  const unknown = { bytes: null, rank: null }
  const name = `'${basename(source)}'`
  const config = await readFile(join(source, 'adapter_config.json'), 'utf8').then(jsonIn, () => undefined)
  if (config === undefined)
    return {
      ...unknown,
      fault: `${name} is no folder of a LoRA adapter: it has no adapter_config.json that can be read.`,
    }
  const { r, peft_type: type } = config
  if (typeof type === 'string' && type !== 'LORA')
    return { ...unknown, fault: `The adapter ${name} is of the kind ${type}, and engines load only LORA.` }
  const rank = typeof r === 'number' && Number.isInteger(r) && r > 0 ? r : null
  if (rank !== null && rank > ranks.at(-1)!)
    return { ...unknown, rank, fault: `The adapter ${name} has the rank ${rank}, and ${ranks.at(-1)} is the most.` }
  const file = join(source, weightFile)
  const bytes = await stat(file).then(
    ({ size }) => size,
    () => null,
  )
  let tensors: TensorSizes | undefined
  try {
    tensors = bytes === null ? undefined : await tensorsOf(file, bytes)
  } catch (thrown) {
    if (thrown instanceof Failure) throw thrown
    const why = (thrown as NodeJS.ErrnoException).code
    return { bytes, rank, fault: `The file ${weightFile} of the adapter ${name} cannot be read: ${why}.` }
  }
  const [, first] = [...(tensors ?? [])].find(([tensor]) => fromWidth.test(tensor)) ?? []
  const width = first === undefined || rank === null ? undefined : first / rank
  if (shape && width !== undefined && Number.isInteger(width) && width !== shape.embeddingLength)
    return {
      bytes,
      rank,
      fault: `The adapter ${name} is for a model of width ${width}, and its base has ${shape.embeddingLength}. Name the base for which it was trained.`,
    }
  return { bytes, rank }
}

const jsonIn = (text: string): Record<string, unknown> | undefined => {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    return undefined
  }
}

async function tensorsOf(path: string, size: number): Promise<TensorSizes> {
  await using file = await open(path)
  return (await readHeader(file, parseSafetensors(path, size))).tensors
}

/**
 * Bytes that vLLM and SGLang reserve on their devices for adapters, whatever these change: for each of `atOnce` two matrices
 * of `rank` beside every projection of every block, in 16 bits.
 */
export function reservedBytes(
  { blockMemory, embeddingLength: width, feedForwardLength: inner }: TransformersShape,
  { rank, atOnce }: Pick<AdaptersPlan, 'rank' | 'atOnce'>,
  { engine }: Partial<Pick<Model, 'engine'>>,
): number {
  // Queries and output, keys, values, and the three projections of the feed-forward part: inputs and outputs of each.
  const numbers = blockMemory.reduce(
    (sum, { keys, values }) => sum + 4 * width + (width + keys) + (width + values) + 3 * (width + inner),
    0,
  )
  return numbers * rank * (atOnce + (engineFacts(engine).placesBase ? 1 : 0)) * 2
}
