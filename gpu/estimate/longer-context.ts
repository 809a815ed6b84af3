import type { readGgufHeader } from '../../core/models/gguf-header.ts'
import { takesSmallCache, wantedContext, writes } from '../engines/gguf/sizing.ts'
import type { ModelShape } from '../engines/gguf/sizing-need.ts'
import {
  companionBytes,
  type EstimatedModel,
  ggufNeedOn,
  type MemoryEstimate,
  type Sized,
  sizingSettings,
} from './estimate.ts'
import type { PlacementTarget } from './target.ts'

/** The context that the memory has left to a model, in tokens, and what would make it longer. */
export interface LongerContexts {
  tokens: number
  /** With numbers of 8 bits in its cache. `settings`: what sets that in infer.yaml. */
  eightBit?: { tokens: number; settings: readonly string[] } | undefined
  /** On so many cards, if these are free. */
  cards?: { devices: number; tokens: number } | undefined
}

/**
 * Returns the context that a GGUF model would have with a cache of 8 bits, by the same estimate as `ggufNeedOn`; undefined
 * where it is not longer, the memory is not what makes it short, or its engine does not surely take such a cache.
 * `made`: the layout that it has with its settings.
 */
export function eightBitContext(
  header: ModelShape,
  model: EstimatedModel,
  target: PlacementTarget,
  made: Pick<ReturnType<typeof ggufNeedOn>, 'sizing' | 'devices'>,
  beside = 0,
  limit?: number,
): LongerContexts['eightBit'] {
  const { sizing, devices } = made
  if (!sizing || !writes(model.tasks) || sizing.context >= wantedContext(header)) return undefined
  const settings = sizingSettings(model, target.slots, target.kind)
  if (settings.kvType !== undefined || !takesSmallCache(header, settings)) return undefined
  const isFixed = settings.context !== undefined
  // A context that the options of llama-server name is not infer's to advise on.
  if (isFixed && model.context_length === undefined) return undefined
  const chosen = { ...model, context_length: undefined }
  const sized = (of: EstimatedModel) => ggufNeedOn(header, of, target, beside, limit)
  if (isFixed && (sized(chosen).sizing?.context ?? 0) > sizing.context) return undefined
  const [change, setting] = settings.isServer
    ? [{ args: [...(model.args ?? []), '-ctk', 'q8_0', '-ctv', 'q8_0'] }, 'args: [-ctk, q8_0, -ctv, q8_0]']
    : [{ kv_type: 'q8_0' as const }, 'kv_type: q8_0']
  const smaller = sized({ ...chosen, ...change })
  const tokens = smaller.sizing?.context ?? 0
  if (tokens <= sizing.context || smaller.sizing!.gpuLayers < sizing.gpuLayers || smaller.devices > devices)
    return undefined
  return { tokens, settings: [setting, ...(isFixed ? [`context_length: ${tokens}`] : [])] }
}

/** Says what would make the context longer, a sentence for each way. */
export function longerContextTexts({ tokens, eightBit, cards }: LongerContexts): string[] {
  const text = (how: string, longer: number) =>
    `With ${how} the context would be ${longer} tokens instead of ${tokens}.`
  const settings = eightBit?.settings.map(setting => `\`${setting}\``).join(' and ')
  return [
    ...(eightBit ? [text(`an 8-bit cache (${settings})`, eightBit.tokens)] : []),
    ...(cards ? [text(`${cards.devices} free GPUs`, cards.tokens)] : []),
  ]
}

/** Says what would make the context of a model longer whose memory was planned so, as `longerContextTexts` does. */
export async function longerContextsOf(
  model: Sized,
  target: PlacementTarget,
  { plan, devices = target.devices, longer }: MemoryEstimate,
  readHeader: typeof readGgufHeader,
): Promise<readonly string[]> {
  const { layout } = plan
  const header = layout && model.source !== undefined ? await readHeader(model.source).catch(() => null) : null
  if (!layout || !header) return []
  const made = { sizing: layout, devices }
  return longerContextTexts({
    tokens: layout.context,
    eightBit: eightBitContext(header, model, target, made, await companionBytes(model), model.memory),
    cards: longer && { devices: longer.devices, tokens: longer.layout.context },
  })
}
