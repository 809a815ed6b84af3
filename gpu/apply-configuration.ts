import type { Model } from '../core/models/model.ts'
import type { Residency } from './residency/residency.ts'

/** Applies the current configuration: updates the states of changed and kept loaded models, removes the others. */
export async function applyConfiguration(
  models: readonly Model[],
  parts: {
    residency: Residency
    /** Forgets what is known of all other models. */
    keep: (ids: ReadonlySet<string>) => void
    /** Determines the state of a model. Never rejects. */
    update: (model: Model) => Promise<unknown>
    /** Whether the model cannot run on this machine. */
    isUnfit: (model: Model) => Promise<boolean>
  },
): Promise<void> {
  const { residency, update } = parts
  const offered = new Map(models.flatMap(model => (model.enabled ? [[model.id, model]] : [])))
  for (const id of residency.known()) if (!offered.has(id)) residency.removeModel(id)
  parts.keep(new Set(offered.keys()))
  for (const model of offered.values()) {
    const known = residency.find(model.id)
    if (known ? known.model !== model : model.replicas.min > 0) await update(model)
  }
  residency.tick()
  residency.refresh()
  // Other models get a state with their first request; those that cannot run here get one now, which says why.
  for (const model of offered.values())
    if (!residency.find(model.id) && (await parts.isUnfit(model))) await update(model)
}
