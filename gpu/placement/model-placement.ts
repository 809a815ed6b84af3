import { openGgufHeaders } from '../../core/models/gguf-headers.ts'
import type { Model } from '../../core/models/model.ts'
import { missingFiles } from '../../core/models/source-files.ts'
import { withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import { type Sizing, writes } from '../engines/gguf/sizing.ts'
import {
  type LayoutOnCards,
  leastBytes,
  type MemoryEstimate,
  type MemoryPlan,
  planMemory,
  type Sized,
} from '../estimate/estimate.ts'
import { longerContextsOf } from '../estimate/longer-context.ts'
import { checkSource, type SourceFault } from '../estimate/source-check.ts'
import type { PlacementTarget } from '../estimate/target.ts'
import type { Backend, Preset } from '../presets/preset.ts'
import { presetOf } from '../presets/presets.ts'
import { wantedLevel } from '../presets/sandbox-requirements.ts'
import type { ModelState } from '../residency/model-state.ts'
import type { DeviceCapacity, LongerContext } from '../residency/place.ts'
import { unfitReason } from '../residency/place-in-pools.ts'
import { type SandboxSupport, sandboxRefusal } from '../sandbox/level.ts'
import type { openCardBackends } from './card-backend.ts'
import type { Memory } from './memory.ts'
import { capacitiesOf, devicesFor, placementTargetFor, type Where } from './placement-target.ts'
import type { openRefusedFiles } from './refused-files.ts'
import { type CardUse, spareShare } from './spare-memory.ts'

type Placement = ModelState['placement']

/** What earlier engines of a model have shown. A layout that infer chooses follows it. */
export interface LearnedMemory {
  /**
   * Bytes that they used more than they were to use; they are left free, up to a quarter of the device, because they may be
   * wrong.
   */
  excess: number
  /** Bytes of each device that it is planned for at most: with more, one ran out of memory. */
  bytesEach?: number | undefined
}

export function openModelPlacement(
  memory: Pick<Memory, 'devices' | 'left' | 'capacities' | 'refresh'>,
  backends: Pick<ReturnType<typeof openCardBackends>, 'find'>,
  sandbox: SandboxSupport,
  refused: Pick<ReturnType<typeof openRefusedFiles>, 'find'>,
  models: () => readonly Model[],
  // Each request for a model that is not loaded needs its placement.
  readHeader = openGgufHeaders(),
) {
  /** `backend`: the one that was found for the model, null for none; absent where that is not known. */
  const unsized = (model: Model, runsOn: Preset['runsOn'], backend?: Backend | null): Placement => ({
    modelId: model.id,
    bytes: 0,
    impossible: sandboxRefusal(model.id, wantedLevel(model, presetOf(model)), sandbox),
    ...devicesFor(model, backend === null ? 'cpu' : runsOn, memory.devices(), { backend, left: memory.left() }),
  })

  /** What a model takes of the cards, without trying its backend, which may take minutes; null if it runs elsewhere. */
  async function cardUse(model: Model): Promise<CardUse | null> {
    const preset = presetOf(model)
    const placement = unsized(model, preset.runsOn)
    if (placement.kind !== 'gpu') return null
    const slots = slotsFor(model)
    const target = placementTargetFor(placement, slots, memory.capacities())!
    const sized = await planMemory({ ...model, memory: model.memory ?? preset.memory }, target, { readHeader })
    const { bytes, plan, devices = placement.devices } = sized
    return {
      modelId: model.id,
      share: (bytes ?? bytesOfUnknown(placement, memory.capacities())) / devices,
      ...(placement.takesShare && { takesShare: true }),
      cards: devices,
      replicas: Math.max(model.replicas.min, model.replicas.max),
      grows: plan.paged?.most !== undefined || wantsMore(model, plan, slots),
    }
  }

  /** Bytes on each card of a model that no configured model needs. */
  async function spareOf(model: Model): Promise<number> {
    const others = models().filter(({ id, enabled }) => enabled && id !== model.id)
    const uses = (await Array.fromAsync([model, ...others], one => cardUse(one).catch(() => null))).filter(
      one => one !== null,
    )
    return spareShare(
      model.id,
      uses,
      memory.capacities().filter(({ kind }) => kind === 'gpu'),
    )
  }

  async function withBytes(
    model: Model,
    placement: Placement,
    { excess, bytesEach }: LearnedMemory,
    backend: Backend | null | undefined,
  ): Promise<Placement> {
    const where = placementTargetFor(placement, slotsFor(model), memory.capacities())
    if (!where) return placement
    const target = { ...where, backend: backend?.gpu }
    const sized = { ...model, memory: model.memory ?? presetOf(model).memory }
    const less = (capacity: number) =>
      Math.min(capacity - Math.min(excess / target.devices, capacity / 4), bytesEach ?? capacity)
    const smaller = {
      ...target,
      capacity: less(target.capacity),
      cards: target.cards?.map(less),
      ...(bytesEach !== undefined && { whole: target.whole ?? target.capacity }),
    }
    const inLess = excess > 0 || bytesEach !== undefined ? await planMemory(sized, smaller, { readHeader }) : undefined
    const least = inLess?.plan.layout ? inLess : await planMemory(sized, target, { readHeader })
    // What bound models leave free is not known to be free, and an engine that used more than planned gets no more.
    const mayGrow = placement.kind === 'gpu' && !placement.only && inLess === undefined
    const {
      bytes,
      plan,
      devices = placement.devices,
      split,
      longer,
    } = mayGrow ? await grown(model, sized, least, target) : least
    const mayBeLonger = model.replicas.max <= 1 ? least : { ...least, longer: undefined }
    const told = placement.kind === 'gpu' ? leastTold(model, plan, memory.capacities()) * devices : 0
    const bytesFrom = bytes === null ? 'unknown' : model.memory === undefined ? 'estimated' : 'configured'
    return {
      ...placement,
      devices,
      split,
      longer: mayBeLonger.longer && longer ? longerContext(model, longer, plan) : undefined,
      longerContext: await longerContextsOf(sized, inLess === least ? smaller : target, mayBeLonger, readHeader),
      bytes: bytes === null ? bytesOfUnknown(placement, memory.capacities()) : Math.max(bytes, told),
      bytesFrom,
      plan,
    }
  }

  /** Adds the memory that no configured model needs to that of an engine that serves better with more. */
  async function grown(model: Model, sized: Sized, least: MemoryEstimate, target: PlacementTarget) {
    const { bytes, plan, devices = target.devices } = least
    const most = plan.paged?.most
    if (bytes === null || (most === undefined && !wantsMore(model, plan, target.slots))) return least
    const spare = await spareOf(model)
    if (most !== undefined)
      return { ...least, bytes: Math.max(bytes, Math.min(most, bytes / devices + spare) * devices) }
    if (devices !== target.devices) return least
    const capacity = Math.min(target.capacity, bytes / target.devices + spare)
    const cards = target.cards?.map(bytes => Math.min(bytes, capacity))
    if (spare <= 0) return least
    const more = await planMemory(
      sized,
      { ...target, capacity, cards, whole: Number.POSITIVE_INFINITY },
      { readHeader },
    )
    return { ...more, longer: least.longer }
  }

  return {
    /**
     * Returns the placement of a model. Its memory is estimated unless it was `booked`. Where it fits nowhere, the cards
     * are measured first: another program may have released memory.
     */
    async placementOf(
      model: Model,
      booked?: Pick<Placement, 'bytes' | 'bytesFrom' | 'plan' | 'devices' | 'split' | 'longer' | 'longerContext'>,
      learned: LearnedMemory = { excess: 0 },
    ): Promise<Placement> {
      const preset = presetOf(model)
      const backend = preset.needsBackend ? await backends.find(model) : undefined
      const placement = unsized(model, preset.runsOn, backend)
      if (booked) {
        const { bytes, bytesFrom, plan, devices, split, longer, longerContext } = booked
        return { ...placement, bytes, bytesFrom, plan, devices, split, longer, longerContext }
      }
      const loadFault = await refused.find(model)
      if (loadFault) return { ...placement, loadFault }
      const fault = preset.sandbox?.isOwn ? (await checkSource(model, readHeader)).fault : undefined
      if (fault) return { ...placement, loadFault: withoutPaths(model, fault) }
      const sized = await withBytes(model, placement, learned, backend)
      const fits = unfitReason(sized, memory.capacities()) === null
      return fits || !(await memory.refresh()) ? sized : withBytes(model, placement, learned, backend)
    },
    /** The layout with which all layers of a GGUF model fit on these devices, if infer chooses it; null if there is none. */
    async layoutOn(model: Model, ids: readonly string[]): Promise<Sizing | null> {
      const preset = presetOf(model)
      const backend = preset.needsBackend ? await backends.find(model) : undefined
      const placement = unsized(model, preset.runsOn, backend)
      const where = placementTargetFor({ ...placement, only: ids }, slotsFor(model), memory.capacities())
      if (!where || !writes(model.tasks) || model.memory !== undefined) return null
      const free = { ...model, context_length: undefined, concurrency: undefined }
      const { plan } = await planMemory(free, { ...where, backend: backend?.gpu }, { readHeader })
      const { layout } = plan
      return layout && (where.kind === 'cpu' || layout.gpuLayers === layout.layers) ? layout : null
    },
    /** Whether a model surely cannot run here. Reads no headers and tries no backend, because that may take minutes. */
    async isUnfit(model: Model): Promise<boolean> {
      const preset = presetOf(model)
      if (preset.sandbox?.isOwn && model.source !== undefined && (await missingFiles(model.source)) !== undefined)
        return true
      if (preset.needsBackend && memory.devices().some(({ kind }) => kind !== 'cpu')) return false
      const placement = unsized(model, preset.needsBackend ? 'cpu' : preset.runsOn)
      const bytes = await leastBytes({ ...model, memory: model.memory ?? preset.memory })
      return unfitReason({ ...placement, bytes }, memory.capacities()) !== null
    },
  }
}

/** The layout on more cards as it is placed. `fewest`: that on the fewest. */
const longerContext = (
  model: Model,
  { layout, bytes, devices, split }: LayoutOnCards,
  fewest: MemoryPlan,
): LongerContext => ({
  layout: { bytes, estimate: bytes, devices, split, plan: { ...fewest, layout } },
  slots: slotsFor(model, { layout }),
  tokens: layout.context,
  fewerTokens: fewest.layout!.context,
})

/** Options by which a model's own arguments name the share. */
const ownShare = /^--(gpu-memory-utilization|mem-fraction-static)(=|$)/

/** Bytes of each card that an engine takes at least, by the least share that its preset tells it; 0 without one. */
function leastTold(model: Model, { paged }: MemoryPlan, capacities: readonly DeviceCapacity[]): number {
  const { leastShare, takesShare } = presetOf(model)
  if (leastShare === undefined || model.args.some(arg => ownShare.test(arg))) return 0
  const cards = capacities.filter(({ kind }) => kind === 'gpu')
  const largest = Math.max(0, ...cards.map(({ capacity, totalBytes = capacity }) => totalBytes))
  // Of an engine that is told a share for weights and cache, the rest comes besides.
  return Math.ceil(largest * leastShare + (takesShare ? 0 : (paged?.runtimeBytes ?? 0)))
}

/** Whether a model that generates text has fewer requests at a time than it would have with more memory. */
const wantsMore = ({ tasks, concurrency }: Model, { layout }: MemoryPlan, slots: number): boolean =>
  layout !== undefined && concurrency === undefined && writes(tasks) && layout.parallel < slots

/** How many requests an engine of a model gets at a time: as configured, as planned with its memory, or as usual. */
export function slotsFor(model: Model, { layout }: MemoryPlan = {}): number {
  const planned = writes(model.tasks) ? layout?.parallel : undefined
  return model.concurrency ?? planned ?? presetOf(model).slots
}

/** Bytes to book for a model of unknown size: all of its cards, or a quarter of the processor's memory. */
function bytesOfUnknown(where: Where, capacities: readonly DeviceCapacity[]): number {
  const { kind, devices } = where
  const bytes = capacitiesOf(where, capacities)
  if (bytes.length === 0) return 0
  return kind === 'cpu' ? bytes[0]! / 4 : Math.min(...bytes) * devices
}

/** The fault as callers see it: without the paths of files. */
const withoutPaths = ({ id, source }: Model, { text, lies }: SourceFault): SourceFault => ({
  lies,
  text: `The model '${id}' cannot be loaded. ${withoutLocations(text.replaceAll(`'${source}'`, 'Its file'))}`,
})
