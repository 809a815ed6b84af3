import { rmSync } from 'node:fs'
import type { Model } from '../core/models/model.ts'
import { exchangeOf, isMade } from './caches/caches.ts'
import { generates } from './presets/preset.ts'
import { presetOf } from './presets/presets.ts'
import type { Resident } from './residency/model-state.ts'

/** Whether the engine of a model saves conversations. */
export const savesConversations = (model: Model): boolean =>
  generates(model) && presetOf(model).traits(model).savesConversations === true

/** The folder that an engine sees of those of its model: all of it, or an own one where infer moves what it writes. */
export function writtenFolder({ engineId, serves }: Resident, folder: string): string | undefined {
  if (!presetOf(serves.model).savesSlots) return folder
  const own = exchangeOf(folder, engineId)
  return isMade(own) ? own : undefined
}

/** Deletes the folder that only this engine has seen. */
export function removeOwn(conversations: string | undefined, writes: string | undefined): void {
  if (writes !== undefined && writes !== conversations) rmSync(writes, { recursive: true, force: true })
}
