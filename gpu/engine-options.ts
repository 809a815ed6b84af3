import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { build } from '../core/assets.ts'
import { engineFields } from '../core/models/change.ts'
import type { Model } from '../core/models/model.ts'
import type { ProcessorThreads } from '../core/models/model-plan.ts'
import { nodesOf } from '../core/models/spanned-nodes.ts'
import type { EngineOptions } from './engine.ts'
import { splitBytes } from './engines/gguf/card-split.ts'
import { engineEnvironment, enginePath } from './launcher/environment.ts'
import type { LaunchNeeds } from './launcher/launcher.ts'
import type { Memory } from './placement/memory.ts'
import type { ParkingChoice } from './placement/parking-choice.ts'
import type { Backend, LaunchFacts } from './presets/preset.ts'
import { presetOf } from './presets/presets.ts'
import { sandboxRequirementsOf } from './presets/sandbox-requirements.ts'
import type { Resident } from './residency/model-state.ts'
import { findProgram } from './sandbox/program.ts'

type HostEnvironment = Readonly<Record<string, string | undefined>>

/** By what an engine is started besides its model: plain data. */
export interface EngineStart {
  /** The secret of requests to it. */
  launchKey: string
  facts: LaunchFacts
  /** How it sees its devices, and only them. */
  visible: ReturnType<Memory['visibleTo']>
  /** What its launch asks its pool for; absent on this machine. */
  needs?: LaunchNeeds | undefined
}

/** How the engine of a resident is to be started, by its booking. */
export function launchFactsOf(
  resident: Resident,
  {
    threads,
    writes,
    parking,
  }: { threads: ProcessorThreads | null; writes: string | undefined; parking: ParkingChoice },
  {
    memory,
    needs,
    backendOf,
  }: {
    memory: Pick<Memory, 'cores' | 'cardsOf' | 'sharesOfDevices'>
    needs?: LaunchNeeds | undefined
    backendOf: (model: Model) => Backend | null
  },
): LaunchFacts {
  const { placement, slots } = resident
  const { split } = placement
  const bytes = split ? splitBytes(split, resident.devices.length) : (placement.estimate ?? resident.bytes)
  // Of cards of which its engine takes the same share, more is booked than it uses.
  const scale = bytes / Math.max(1, placement.bytes)
  const shares = resident.shares.map(share => share * scale)
  const { ofAll, ofFree } = memory.sharesOfDevices({ ...resident, bytes, shares })
  return {
    slots,
    threads: threads?.count ?? needs?.cpus ?? Math.max(1, memory.cores - 1),
    gpus: memory.cardsOf(resident).length,
    memoryShare: ofAll,
    freeShare: ofFree,
    bytes,
    backend: backendOf(resident.serves.model),
    plan: placement.plan,
    layers: resident.layers,
    conversations: writes,
    parking: parking.level ?? undefined,
  }
}

/** How an engine of the model is started and used, by its preset. */
export function engineOptionsOf(
  model: Model,
  engineId: string,
  { launchKey, facts, visible, needs }: EngineStart,
  environment: HostEnvironment,
): EngineOptions {
  const preset = presetOf(model)
  const key = preset.key(model, launchKey, environment)
  return {
    engineId,
    modelId: model.id,
    channel: preset.channel(model, facts),
    addresses: preset.addresses(model),
    argv: preset.command(model, facts),
    environments: preset.environments?.(model),
    sandbox: { ...sandboxRequirementsOf(model, preset, facts), devices: visible.files },
    env: { ...preset.env(model, launchKey, facts), ...model.env },
    visibleDevices: visible.variables,
    healthPath: preset.healthPath(model),
    headers: [...(key === undefined ? [] : ['authorization', `Bearer ${key}`]), ...(preset.headers ?? [])],
    loadStallMs: preset.loadStallMs(model),
    graceMs: model.stop_grace,
    ...(needs && { needs, source: model.source }),
    ...(nodesOf(model) > 1 && { otherNodes: preset.otherNodes }),
  }
}

/**
 * A hash of everything by which an engine is started: its model's configuration, command, variables and sandbox, its program,
 * the files of the model and those that its command names by absolute paths, and for built-in engines this program. Where it
 * is the same, a start now would make the same engine. Files are looked at one after the other: see `resolvedPathsOfAll`.
 */
export async function startHash(
  model: Model,
  options: EngineOptions,
  { dataDir, environment }: { dataDir: string; environment: HostEnvironment },
): Promise<string> {
  const inherited = engineEnvironment({
    host: environment,
    home: '',
    bootId: '',
    launchId: '',
    visibleDevices: {},
    more: {},
  })
  const path = enginePath(dataDir, inherited.PATH!, options.environments)
  const program = findProgram(options.argv[0] ?? '', path)
  const named = [program, model.source, model.speculative?.draft_model].filter(path => path !== undefined)
  const files = [
    ...(await Array.fromAsync(named, factsOf)),
    ...(await Array.fromAsync(
      options.argv.filter(part => isAbsolute(part)),
      fileFacts,
    )),
  ]
  const own = presetOf(model).sandbox?.isOwn ? build : null
  return createHash('sha256')
    .update(JSON.stringify([engineFields(model), options, inherited, files, own]))
    .digest('hex')
}

/** By what it is noticed that a file was replaced, or a file in a folder; links are followed. */
async function factsOf(path: string): Promise<unknown[]> {
  const names = await readdir(path).catch(() => undefined)
  if (names === undefined) return [path, await fileFacts(path)]
  return [path, await Array.fromAsync(names.toSorted(), async name => [name, await fileFacts(join(path, name))])]
}

/** Size and time of a file; null for anything else. */
async function fileFacts(path: string): Promise<[bytes: number, changedMs: number] | null> {
  const found = await stat(path).catch(() => undefined)
  return found?.isFile() ? [found.size, found.mtimeMs] : null
}
