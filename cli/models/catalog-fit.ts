import { hostEnvironment } from '../../core/config.ts'
import { Model } from '../../core/models/model.ts'
import {
  type CatalogBuild,
  type CatalogEngine,
  type CatalogModel,
  catalogEngines,
} from '../../core/models/model-catalog/catalog-model.ts'
import { catalogShape, weightBytes } from '../../gpu/catalog-shape.ts'
import { filesNeed, ggufNeed, type PlacementTarget } from '../../gpu/estimate.ts'
import { findProgram } from '../../gpu/launcher/program.ts'
import { generates } from '../../gpu/presets/preset.ts'
import { sizeText } from '../quantities-text.ts'
import { openPlacementTargets } from './placement-targets.ts'

/** How well a build fits this machine, best first. */
export const grades = ['gpu', 'split', 'processor', 'slow', 'missing', 'no', 'external'] as const
export type Grade = (typeof grades)[number]

export interface Fit {
  grade: Grade
  /** GPUs that it takes; 0 on the processor. */
  devices: number
  /** Bytes on its devices; null when not known. */
  memory: number | null
  /** Of a GGUF model: layers on the GPU and all layers, the output counted as one. */
  layers: { gpu: number; total: number } | null
  /** Tokens of one request; null when the engine decides. */
  context: number | null
  /** Requests at once. */
  concurrency: number | null
  /** The same for a person. */
  text: string
}

/** What fits are decided by. */
export interface MachineFacts {
  targets: Readonly<Record<CatalogEngine, PlacementTarget>>
  gpus: number
  /** Main memory that models may take, in bytes. */
  mainMemory: number
  /** Programs of engines that are not installed. */
  missing: ReadonlySet<string>
}

/** A processor that reads more weights than this for each token is slow. Bytes. */
const slowAbove = 6 * 2 ** 30

const programs: Partial<Record<CatalogEngine, string>> = {
  'llama-server': 'llama-server',
  'whisper-server': 'whisper-server',
  vllm: 'vllm',
}

/** Looks at this machine. May take minutes where builds of the built-in engine for GPUs have to be tried. */
export async function machineFacts(dataDir: string): Promise<MachineFacts> {
  const targets = openPlacementTargets(dataDir)
  const path = hostEnvironment().PATH ?? ''
  const targetOf = async (engine: CatalogEngine) =>
    [engine, await targets.targetFor(Model.parse({ id: 'x', engine, source: 'x', tasks: tasksFor(engine) }))] as const
  return {
    targets: Object.fromEntries(await Promise.all(catalogEngines.map(targetOf))) as MachineFacts['targets'],
    gpus: (await targets.cards()).length,
    mainMemory: targets.mainMemory(),
    missing: new Set(Object.values(programs).filter(program => findProgram(program, path) === undefined)),
  }
}

const tasksFor = (engine: CatalogEngine) =>
  engine === 'whisper-server' ? ['std/audio-transcription' as const] : ['std/chat-completion' as const]

/** How a build fits this machine, by the estimate that the server places engines with. Pure. */
export function fitOf(model: CatalogModel, build: CatalogBuild, machine: MachineFacts): Fit {
  const { engine } = build
  if (engine === null) return unfit('external', null, `run it with ${model.runs_with ?? 'a server of your own'}`)
  const target = machine.targets[engine]
  if (target.kind === 'nvidia' && target.capacity === 0) return unfit('no', null, `no: ${engine} needs a GPU`)
  const shape = engine === 'gguf' || engine === 'llama-server' ? catalogShape(model, build) : null
  const fit = shape ? fitOfShape(model, build, shape, target, machine) : fitOfFiles(model, build, target, machine)
  const program = programs[engine]
  if (fit.grade === 'no' || program === undefined || !machine.missing.has(program)) return fit
  return { ...fit, grade: 'missing', text: `needs the program ${program}; then ${fit.text}` }
}

function fitOfShape(
  model: CatalogModel,
  build: CatalogBuild,
  shape: NonNullable<ReturnType<typeof catalogShape>>,
  target: PlacementTarget,
  machine: MachineFacts,
): Fit {
  const total = shape.blockCount + 1
  const beside = projectorBytes(build)
  const counts = target.kind === 'nvidia' ? Array.from({ length: Math.max(1, machine.gpus) }, (_, at) => at + 1) : [1]
  const made = counts.map(devices => ({ devices, ...ggufNeed(shape, { tasks: model.tasks }, { ...target, devices }) }))
  const fits = made.filter(
    ({ bytes, sizing, devices }) =>
      sizing !== null &&
      bytes + beside <= target.capacity * devices &&
      (target.kind === 'cpu' || sizing.need.cpu <= machine.mainMemory),
  )
  const best = fits.find(({ sizing }) => sizing!.gpuLayers === total) ?? fits[0]
  if (!best)
    return unfit('no', made.at(-1)!.bytes + beside, noMemory(made.at(-1)!.bytes + beside, target, counts.length))
  const sizing = best.sizing!
  const writes = generates(Model.parse({ id: 'x', tasks: model.tasks }))
  const context = writes ? sizing.context : sizing.encoderContext
  const concurrency = writes ? sizing.parallel : target.slots
  const memory = best.bytes + beside
  const size = `${sizeText(memory)}, ${concurrency} × ${context} tokens`
  const common = { memory, context, concurrency, layers: { gpu: sizing.gpuLayers, total } }
  if (sizing.gpuLayers === total)
    return {
      ...common,
      grade: 'gpu',
      devices: best.devices,
      text: `${gpuText(best.devices)}, all ${total} layers, ${size}`,
    }
  if (sizing.gpuLayers > 0)
    return {
      ...common,
      grade: 'split',
      devices: best.devices,
      text: `${gpuText(best.devices)} and processor, ${sizing.gpuLayers} of ${total} layers on the GPU, ${size}`,
    }
  return onProcessor(model, shape.tensorBytes, { ...common, devices: 0 }, size)
}

/** Of which only the size is known: engines that read other files than GGUF. */
function fitOfFiles(model: CatalogModel, build: CatalogBuild, target: PlacementTarget, machine: MachineFacts): Fit {
  const weights = weightBytes(model, build)
  if (weights === null) return unfit('no', null, 'its size is not known')
  const memory = filesNeed(weights, target.kind)
  const common = { memory, layers: null, context: null, concurrency: target.slots }
  if (target.kind === 'cpu') {
    if (memory > target.capacity) return unfit('no', memory, noMemory(memory, target, 1))
    return onProcessor(model, weights, { ...common, devices: 0 }, sizeText(memory))
  }
  // Engines that split a model want a number of GPUs that divides its heads.
  const counts = build.engine === 'vllm' ? [1, 2, 4, 8, 16].filter(count => count <= machine.gpus) : [1]
  const devices = counts.find(count => memory <= target.capacity * count)
  if (devices === undefined) return unfit('no', memory, noMemory(memory, target, counts.at(-1) ?? 1))
  return { ...common, grade: 'gpu', devices, text: `${gpuText(devices)}, ${sizeText(memory)}` }
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

/** Whether the size of the download is computed and not known. */
export const isSizeEstimated = ({ bytes, projector }: CatalogBuild): boolean =>
  bytes === null || projector?.bytes === null

/** Bytes of the image encoder, which lies beside the model on the same device. */
export const projectorBytes = ({ projector }: CatalogBuild): number =>
  projector === undefined ? 0 : (projector.bytes ?? 2 ** 30)

const gpuText = (devices: number): string => (devices === 1 ? 'GPU' : `${devices} GPUs`)

const noMemory = (bytes: number, { kind, capacity }: PlacementTarget, devices: number): string =>
  `no: needs ${sizeText(bytes)}, and ${sizeText(capacity * devices)} of ${kind === 'cpu' ? 'main memory' : 'GPU memory'} are available`

const unfit = (grade: Grade, memory: number | null, text: string): Fit => ({
  grade,
  devices: 0,
  memory,
  layers: null,
  context: null,
  concurrency: null,
  text,
})
