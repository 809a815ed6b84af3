import type { EngineAddress } from '../../core/models/engine-address.ts'
import type { EnginePlacement } from '../../core/models/engine-placement.ts'
import type { Model } from '../../core/models/model.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import type { Preset } from '../presets/preset.ts'

export interface PlacementFacts {
  model: Pick<Model, 'gpu' | 'devices' | 'gpu_layers' | 'nodes'>
  preset: Pick<Preset, 'name' | 'runsOn'>
  /** The pool of its devices; undefined for this machine. */
  pool?: string | undefined
  /** Ids of its devices; empty if infer does not start the engine. */
  devices: readonly string[]
  /** Of a GGUF model: layers on GPUs, and all. */
  layout?: { gpuLayers: number; layers: number } | undefined
  /** Tokens of one request, if it has more cards than it needs for a longer context, and on the fewest. */
  longer?: { tokens: number; fewerTokens: number } | undefined
  /** What would make its context longer, as sentences, if it has no more cards for that. */
  longerContext?: readonly string[] | undefined
  /** Number of GPUs of the machine. */
  gpus: number
  /** Why the machine's GPUs cannot be used at all, as a sentence; null if they can, or there are none. */
  gpuFault: string | null
  /** Why the engine has no backend for the GPUs, as a part of a sentence; null if it has one or needs none. */
  backendFault: string | null
}

/** The command that gives the built-in engine a backend for the GPUs. */
export const gpuSetup = 'infer engine setup gpu'

/** Says where an engine runs, and why it does not use the GPUs of the machine. Pure. */
export function enginePlacement(facts: PlacementFacts): EnginePlacement {
  const { devices, layout, gpus, gpuFault } = facts
  const cards = devices.filter(id => !/(^|\/)cpu$/.test(id))
  const layers = layout ? { gpu: cards.length > 0 ? layout.gpuLayers : 0, total: layout.layers } : null
  const placed = (on: EnginePlacement['on'], detail: string, advice: string | null = null) => ({
    on,
    layers,
    detail: advice === null ? detail : `${detail}; run ${advice}`,
    advice,
    longerContext: facts.longer ? [] : (facts.longerContext ?? []),
  })
  if (facts.preset.runsOn === 'elsewhere') return placed('elsewhere', elsewhere([]))
  if (facts.pool !== undefined)
    return placed(cards.length > 0 ? 'gpu' : 'processor', inPool(facts.pool, cards, nodesOf(facts.model)))
  const onCards = `on ${cards.map(id => id.replace(/^gpu/, 'GPU ')).join(' and ')}`
  if (cards.length > 0 && layers === null) return placed('gpu', onCards)
  if (layers !== null && layers.gpu > 0) {
    const part = `${onCards}, ${layers.gpu} of ${layers.total} layers`
    const longer = facts.longer
      ? `; divided for a context of ${facts.longer.tokens} tokens, ${facts.longer.fewerTokens} on fewer GPUs`
      : ''
    return layers.gpu === layers.total
      ? placed('gpu', `${part}${longer}`)
      : placed('split', `${part}; ${restOf(facts)}`)
  }
  const onProcessor = 'on the processor'
  if (gpus > 0) {
    const unused = gpus === 1 ? 'the GPU is' : `${gpus} GPUs are`
    const { reason, advice } = reasonOf(facts, cards)
    return placed('processor', `${onProcessor}: ${unused} not used because ${reason}`, advice)
  }
  if (gpuFault === null) return placed('processor', onProcessor)
  return placed('processor', `${onProcessor}: the GPUs cannot be used (${gpuFault.replace(/\.$/, '')})`, 'infer doctor')
}

/** Where an engine runs in a pool. A pool of several machines chooses the cards itself, so only their number is known. */
function inPool(pool: string, cards: readonly string[], nodes: number): string {
  const own = cards.map(id => id.slice(pool.length + 1))
  const each = own.length / nodes === 1 ? '1 GPU' : `${own.length / nodes} GPUs`
  const count = nodes === 1 ? each : `${nodes} nodes with ${each} each`
  const where = own.some(id => id.includes('/')) ? count : own.map(id => id.replace(/^gpu/, 'GPU ')).join(' and ')
  return `in the pool '${pool}' on ${own.length === 0 ? 'the processor' : where}`
}

/** Where an engine with these addresses runs, as a part of a sentence, with those that fail. */
export function elsewhere(addresses: readonly EngineAddress[]): string {
  const where = addresses.length > 1 ? `on ${addresses.length} servers` : 'on a server'
  const failing = addresses.filter(({ state }) => state === 'unavailable')
  const faults = failing.map(({ url, reason }) => `; ${url} is unavailable, because it ${reason}`)
  return `${where} that infer does not start${faults.join('')}`
}

const restOf = ({ model }: PlacementFacts): string =>
  `the others are on the processor ${model.gpu_layers === undefined ? 'because they do not fit' : "by its setting 'gpu_layers'"}`

function reasonOf(
  { model, preset, layout, backendFault }: PlacementFacts,
  cards: readonly string[],
): { reason: string; advice: string | null } {
  const fixed = (reason: string) => ({ reason, advice: null })
  if (preset.runsOn === 'cpu') return fixed(`the engine '${preset.name}' knows no GPUs`)
  if (model.devices === 'cpu') return fixed("its setting is 'devices: cpu'")
  if (model.gpu === 'off') return fixed("its setting is 'gpu: off'")
  if (model.gpu_layers === 0) return fixed("its setting is 'gpu_layers: 0'")
  if (cards.length > 0) return fixed(`none of its ${layout!.layers} layers fits there`)
  if (backendFault !== null) return { reason: backendFault, advice: gpuSetup }
  return fixed('it was loaded before they could be used; it moves there with its next load')
}
