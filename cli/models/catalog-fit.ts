import { hostEnvironment } from '../../core/config.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { preferredQuantizations } from '../../core/models/hub/choose.ts'
import { Model } from '../../core/models/model.ts'
import {
  type CatalogBuild,
  type CatalogEngine,
  type CatalogModel,
  catalogEngines,
} from '../../core/models/model-catalog/catalog-model.ts'
import { modelCatalog } from '../../core/models/model-catalog/model-catalog.ts'
import type { Task } from '../../core/schemas/task.ts'
import { wantedContext } from '../../gpu/engines/gguf/sizing.ts'
import { catalogPagedShape, catalogShape, weightBytes } from '../../gpu/estimate/catalog-shape.ts'
import { filesNeed, ggufNeedOn, projectorNeed } from '../../gpu/estimate/estimate.ts'
import { eightBitContext, type LongerContexts, longerContextTexts } from '../../gpu/estimate/longer-context.ts'
import { pagedPlan } from '../../gpu/estimate/paged-plan.ts'
import type { PlacementTarget } from '../../gpu/estimate/target.ts'
import { gpuSetup } from '../../gpu/placement/engine-placement.ts'
import { generates } from '../../gpu/presets/preset.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { type EngineTarget, isInstalled, openPlacementTargets } from './engine-programs.ts'

/** How well a build fits this machine, best first. */
const grades = ['gpu', 'setup', 'split', 'processor', 'slow', 'missing', 'no', 'external'] as const
export type Grade = (typeof grades)[number]

interface Fit {
  grade: Grade
  /** Number of GPUs that it uses; 0 on the processor. */
  devices: number
  /** Bytes on its devices; null when not known. */
  memory: number | null
  /** For a GGUF model: layers on the GPU and all layers; the output layer counts as one. */
  layers: { gpu: number; total: number } | null
  /** Maximum tokens of one request; null when the engine decides. */
  context: number | null
  /** Maximum concurrent requests. */
  concurrency: number | null
  /** What would make the context longer, as sentences. */
  longer_context: readonly string[]
  /** All of it as text for the user. */
  text: string
}

/** The facts about this machine that decide what fits. */
export interface MachineFacts {
  targets: Readonly<Record<CatalogEngine, EngineTarget>>
  gpus: number
  /** Main memory that models may use, in bytes. */
  mainMemory: number
  /** Engines that are not installed. */
  missing: ReadonlySet<CatalogEngine>
}

/** A model on the processor counts as slow if each token reads more bytes of weights than this. */
const slowAbove = 6 * 2 ** 30

/** The tasks of the first model that the catalog has for an engine: those of the others are of the same kind. */
const tasksFor = (engine: CatalogEngine): readonly Task[] =>
  modelCatalog().find(({ builds }) => builds.some(build => build.engine === engine))!.tasks

/** Measures this machine. Can take minutes if the GPU builds of the built-in engine must be tested first. */
export async function machineFacts(dataDir: string): Promise<MachineFacts> {
  const targets = openPlacementTargets(dataDir)
  const path = hostEnvironment().PATH ?? ''
  const targetOf = async (engine: CatalogEngine) =>
    [engine, await targets.targetFor(Model.parse({ id: 'x', engine, source: '/x', tasks: tasksFor(engine) }))] as const
  return {
    targets: Object.fromEntries(await Promise.all(catalogEngines.map(targetOf))) as MachineFacts['targets'],
    gpus: (await targets.cards()).length,
    mainMemory: targets.mainMemory(),
    missing: new Set(catalogEngines.filter(engine => !isInstalled(engine, { dataDir, path, tasks: tasksFor(engine) }))),
  }
}

/**
 * Computes how a build fits this machine, with the estimate that the server uses for placement. Pure. `context`: the
 * maximum tokens of a request; the engine's choice if undefined.
 */
export function fitOf(model: CatalogModel, build: CatalogBuild, machine: MachineFacts, context?: number): Fit {
  const { engine } = build
  if (engine === null) return unfit('external', null, `run it with ${model.runs_with ?? 'a server of your own'}`)
  const target = machine.targets[engine]
  if (target.kind === 'gpu' && target.capacity === 0) return unfit('no', null, `no: ${engine} needs a GPU`)
  const shape = engineFacts(engine).reads === 'gguf' ? catalogShape(model, build) : null
  const fit = shape
    ? fitOfShape(model, build, shape, target, machine, context)
    : (fitOfPaged(model, build, target, machine, context) ?? fitOfFiles(model, build, target, machine))
  if (target.needsSetup && (fit.grade === 'gpu' || fit.grade === 'split'))
    return { ...fit, grade: 'setup', text: `after ${gpuSetup}: ${fit.text}` }
  if (fit.grade === 'no' || !machine.missing.has(engine)) return fit
  return { ...fit, grade: 'missing', text: `needs the engine ${engine}; then ${fit.text}` }
}

function fitOfShape(
  model: CatalogModel,
  build: CatalogBuild,
  shape: NonNullable<ReturnType<typeof catalogShape>>,
  target: PlacementTarget,
  machine: MachineFacts,
  given: number | undefined,
): Fit {
  const total = shape.blockCount + 1
  const beside = build.projector ? projectorNeed(projectorBytes(build)) : 0
  const counts = target.kind === 'gpu' ? Array.from({ length: Math.max(1, machine.gpus) }, (_, at) => at + 1) : [1]
  const entry = { engine: build.engine!, tasks: model.tasks, context_length: given }
  const made = counts.map(devices => ggufNeedOn(shape, entry, onCards(target, devices), beside))
  const fits = made.filter(
    ({ bytes, sizing, devices }) =>
      sizing !== null &&
      bytes <= bytesOn(target, devices) &&
      (target.kind === 'cpu' || sizing.need.cpu <= machine.mainMemory),
  )
  // On the fewest GPUs that take all layers, else on those that take most.
  const best = fits.toSorted((a, b) => b.sizing!.gpuLayers - a.sizing!.gpuLayers)[0]
  if (!best) return unfit('no', made.at(-1)!.bytes, noMemory(made.at(-1)!.bytes, target, counts.length))
  const sizing = best.sizing!
  const writes = generates(Model.parse({ id: 'x', tasks: model.tasks }))
  const context = writes ? sizing.context : sizing.encoderContext
  const concurrency = writes ? sizing.parallel : target.slots
  const memory = best.bytes
  const { devices } = best
  const wanted = wantedContext(shape)
  const longer =
    given === undefined && writes && context < wanted
      ? fits.find(other => other.sizing!.gpuLayers === total && other.sizing!.context >= wanted)
      : undefined
  const ways: LongerContexts = {
    tokens: context,
    eightBit: eightBitContext(shape, entry, onCards(target, devices), best, beside),
    cards: longer && { devices: longer.devices, tokens: longer.sizing!.context },
  }
  const size = `${sizeText(memory)}, ${concurrency} × ${context} tokens${longerText(ways)}`
  const common = {
    memory,
    context,
    concurrency,
    layers: { gpu: sizing.gpuLayers, total },
    longer_context: longerContextTexts(ways),
  }
  if (sizing.gpuLayers === total)
    return { ...common, devices, grade: 'gpu', text: `${gpuText(devices)}, all ${total} layers, ${size}` }
  const split = `${gpuText(devices)} and processor, ${sizing.gpuLayers} of ${total} layers on the GPU, ${size}`
  if (sizing.gpuLayers > 0) return { ...common, devices, grade: 'split', text: split }
  return onProcessor(model, shape.tensorBytes, { ...common, devices: 0 }, size)
}

/** The ways to a longer context in few words; empty if there is none. */
function longerText({ eightBit, cards }: LongerContexts): string {
  const ways = [
    ...(eightBit ? [`${eightBit.tokens} with an 8-bit cache`] : []),
    ...(cards ? [`${cards.tokens} with ${cards.devices} free GPUs`] : []),
  ]
  return ways.length > 0 ? ` (${ways.join(', ')})` : ''
}

/**
 * Computes the fit for vLLM and SGLang, whose cache must have room for one full request: on the fewest GPUs that allow a
 * long context, else on the fewest at all. Undefined for other engines and for models of unknown shape.
 */
function fitOfPaged(
  model: CatalogModel,
  build: CatalogBuild,
  target: PlacementTarget,
  machine: MachineFacts,
  given: number | undefined,
): Fit | undefined {
  const shape = engineFacts(build.engine).pagesCache ? catalogPagedShape(model, build) : null
  if (shape === null || target.kind === 'cpu') return undefined
  const plans = gpuCounts(build, machine).map(devices => {
    const { bytes: memory, fits, plan } = pagedPlan(shape, { context_length: given }, evenOn(target, devices))
    return { devices, memory, fits, context: plan.maxLength ?? given ?? shape.contextLength }
  })
  const fitting = plans.filter(({ fits }) => fits)
  const best = fitting.find(({ context }) => (context ?? 0) >= desiredContext(model, longContext)) ?? fitting[0]
  const most = plans.at(-1)!
  if (!best) return unfit('no', most.memory, noMemory(most.memory, target, most.devices))
  const { devices, memory, context } = best
  const text = `${gpuText(devices)}, ${sizeText(memory)}${context === null ? '' : `, ${context} tokens`}`
  return { grade: 'gpu', devices, memory, layers: null, context, concurrency: target.slots, longer_context: [], text }
}

/** The target with its largest cards, for a model that is divided by layers. */
const onCards = (target: PlacementTarget, devices: number): PlacementTarget => ({
  ...target,
  devices,
  ...(target.cards && { cards: target.cards.slice(0, devices) }),
})

/** The target with equal parts of its largest cards: of each as much as the smallest of them has. */
const evenOn = (target: PlacementTarget, devices: number): PlacementTarget => ({
  ...target,
  devices,
  capacity: target.cards?.[devices - 1] ?? target.capacity,
})

const bytesOn = ({ cards, capacity }: PlacementTarget, devices: number): number =>
  cards?.slice(0, devices).reduce((sum, bytes) => sum + bytes, 0) ?? capacity * devices

/** Numbers of GPUs to try: they must divide the number of attention heads, which is usually a power of two. */
const gpuCounts = ({ engine }: CatalogBuild, { gpus }: MachineFacts): number[] =>
  engineFacts(engine).spansCards ? [1, 2, 4, 8, 16].filter(count => count <= gpus) : [1]

/** Computes the fit from the file size alone, for engines that read files other than GGUF. */
function fitOfFiles(model: CatalogModel, build: CatalogBuild, target: PlacementTarget, machine: MachineFacts): Fit {
  const weights = weightBytes(model, build)
  if (weights === null) return unfit('no', null, 'its size is unknown')
  const memory = filesNeed(weights, target.kind)
  const common = { memory, layers: null, context: null, concurrency: target.slots, longer_context: [] }
  if (target.kind === 'cpu') {
    if (memory > target.capacity) return unfit('no', memory, noMemory(memory, target, 1))
    return onProcessor(model, weights, { ...common, devices: 0 }, sizeText(memory))
  }
  const counts = gpuCounts(build, machine)
  const devices = counts.find(count => memory <= evenOn(target, count).capacity * count)
  if (devices === undefined)
    return (
      inParts(model, build, weights, target, machine) ??
      unfit('no', memory, noMemory(memory, target, counts.at(-1) ?? 1))
    )
  return { ...common, grade: 'gpu', devices, text: `${gpuText(devices)}, ${sizeText(memory)}` }
}

/**
 * The fit of a pipeline whose encoders and model are on the GPU one after the other, and in main memory between: undefined
 * if it has no such parts, or one of them does not fit.
 */
function inParts(
  model: CatalogModel,
  build: CatalogBuild,
  weights: number,
  target: PlacementTarget,
  { mainMemory }: MachineFacts,
): Fit | undefined {
  const { further_parameters: further, ...own } = build
  if (further === undefined) return undefined
  const alone = weightBytes(model, own)!
  const memory = filesNeed(Math.max(alone, weights - alone), target.kind)
  if (memory > target.capacity || weights > mainMemory) return undefined
  const text = `GPU, ${sizeText(memory)}, with its parts in turn; ${sizeText(weights)} of main memory`
  return { ...unfit('split', memory, text), devices: 1, concurrency: target.slots }
}

function onProcessor(
  { parameters, active_parameters: active }: CatalogModel,
  weights: number,
  fit: Omit<Fit, 'grade' | 'text'>,
  size: string,
): Fit {
  const read = active !== null && parameters !== null ? weights * (active / parameters) : weights
  return read > slowAbove
    ? { ...fit, grade: 'slow', text: `processor, slow: ${size}` }
    : { ...fit, grade: 'processor', text: `processor, ${size}` }
}

/** Whether the download size is an estimate. */
export const isSizeEstimated = ({ bytes, projector }: CatalogBuild): boolean =>
  bytes === null || projector?.bytes === null

/** Bytes of the image encoder, which is loaded on the same device as the model. */
export const projectorBytes = ({ projector }: CatalogBuild): number =>
  projector === undefined ? 0 : (projector.bytes ?? 2 ** 30)

const gpuText = (devices: number): string => (devices === 1 ? 'GPU' : `${devices} GPUs`)

const noMemory = (bytes: number, target: PlacementTarget, devices: number): string =>
  `no: needs ${sizeText(bytes)}, and ${sizeText(bytesOn(target, devices))} of ${target.kind === 'cpu' ? 'main memory' : 'GPU memory'} are available`

/** A fit of which no more is known. */
const unfit = (grade: Grade, memory: number | null, text: string): Fit => ({
  grade,
  devices: 0,
  memory,
  layers: null,
  context: null,
  concurrency: null,
  longer_context: [],
  text,
})

/** The build of a catalog model for this machine. */
export interface BuildChoice {
  build: CatalogBuild
  fit: Fit
  /** Why this one, as a sentence. */
  why: string
}

/** If possible, weights use at most this part of the GPU, so that other models fit beside them. */
const halfOfGpu = 0.5

/**
 * Chooses the engine and quantization that fit this machine best; the catalog's order breaks ties. On a GPU chooses the
 * best quality that leaves half of it free, else the best that fits. On a processor chooses the usual quantization,
 * because the processor reads all weights for each token. `engine` restricts the choice, and
 * `context` is the maximum tokens of a request. Undefined when the catalog has no build for that engine.
 */
export function chooseBuild(
  model: CatalogModel,
  machine: MachineFacts,
  { engine, context }: { engine?: string | undefined; context?: number | undefined } = {},
): BuildChoice | undefined {
  const choices = model.builds
    .filter(build => build.package === undefined && (engine === undefined || build.engine === engine))
    .map(build => ({ build, fit: fitOf(model, build, machine, context), bytes: weightBytes(model, build) ?? 0 }))
  const rank = ({ fit }: (typeof choices)[number]) => rankOf(model, fit)
  const [first] = choices.toSorted((a, b) => rank(a) - rank(b))
  if (!first) return undefined
  const rivals = choices.filter(
    other =>
      other.build.engine === first.build.engine &&
      rank(other) === rank(first) &&
      other.fit.devices === first.fit.devices,
  )
  const quality = rivals.toSorted((a, b) => b.bytes - a.bytes)
  const usual = rivals.toSorted((a, b) => preference(a.build) - preference(b.build))
  const choose = ({ build, fit }: (typeof choices)[number], why: string): BuildChoice => ({
    build,
    fit,
    why: `${build.quantization ?? 'full precision'}: ${why}`,
  })
  if (choices.filter(({ build }) => build.engine === first.build.engine).length === 1)
    return choose(first, 'the only one in the catalog for this engine.')
  if (rivals.length === 1) return choose(first, 'no other quantization fits this machine as well.')
  if (!isOnGpus(first.fit))
    return choose(
      usual[0]!,
      first.fit.grade === 'no' || first.fit.grade === 'missing'
        ? 'the usual one.'
        : 'a processor reads all weights for each token, so a smaller file answers faster.',
    )
  const capacity = bytesOn(machine.targets[first.build.engine!], first.fit.devices)
  const halfFree = quality.find(({ bytes }) => bytes <= capacity * halfOfGpu)
  if (halfFree) return choose(halfFree, 'the best quality that leaves half of the GPU for other models.')
  const long = quality.find(({ fit }) => fit.context !== null && fit.context >= desiredContext(model, longContext))
  return long
    ? choose(long, `the best quality whose layers all fit on the GPU with a context of ${long.fit.context} tokens.`)
    : choose(quality[0]!, 'the best quality whose layers all fit on the GPU.')
}

/** Context that a good fit must have memory for, in tokens, unless the model was trained for less. */
const usualContext = 4096
/** Preferred context, in tokens, if a smaller quantization makes it possible. */
const longContext = 32_768

const desiredContext = (model: CatalogModel, tokens: number): number => Math.min(tokens, model.context ?? tokens)

/** Whether all of it is on GPUs, at least once those are set up. */
const isOnGpus = ({ grade, layers }: Fit): boolean =>
  grade === 'gpu' || (grade === 'setup' && layers?.gpu === layers?.total)

/** Returns the rank of a fit, lowest first: by its grade, and within a grade fits with a short context last. */
export const rankOf = (model: CatalogModel, fit: Fit): number =>
  grades.indexOf(fit.grade === 'setup' && !isOnGpus(fit) ? 'split' : fit.grade) + (isShort(model, fit) ? 0.5 : 0)

const isShort = (model: CatalogModel, { context }: Fit): boolean =>
  context !== null && context < desiredContext(model, Math.min(usualContext, encoderContext(model)))

/** Texts to embed or rerank are shorter than chats. */
const encoderContext = ({ kind }: CatalogModel): number =>
  kind === 'embedding' || kind === 'rerank' ? 2048 : Number.POSITIVE_INFINITY

function preference({ quantization }: CatalogBuild): number {
  const names: readonly string[] = preferredQuantizations
  const at = names.indexOf(quantization ?? '')
  return at < 0 ? names.indexOf('F16') - 0.5 : at
}
