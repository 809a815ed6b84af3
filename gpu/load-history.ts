import type { EngineLoad } from '../core/models/fleet.ts'
import type { Resident } from './residency/model-state.ts'

/** Loads that are kept of a model, and models of which some are kept. */
const kept = { ofModel: 20, models: 500 }

/** Keeps when engines were loaded, how long it took, and why they ended: the newest of each model, in memory. */
export function openLoadHistory(now: () => number = Date.now) {
  /** Newest first. The model whose engine began last is the last key. */
  const byModel = new Map<string, EngineLoad[]>()
  const change = (engineId: string, changes: Partial<EngineLoad>): void => {
    for (const loads of byModel.values()) {
      const at = loads.findIndex(load => load.engineId === engineId && load.endedAt === null)
      if (at >= 0) return void loads.splice(at, 1, { ...loads[at]!, ...changes })
    }
  }
  return {
    began(resident: Pick<Resident, 'engineId' | 'serves' | 'devices' | 'bytes'>) {
      const { engineId, serves, devices, bytes } = resident
      const load: EngineLoad = {
        engineId,
        devices: [...devices],
        bytes,
        state: 'loading',
        startedAt: now(),
        loadMs: null,
        endedAt: null,
        reason: null,
      }
      const loads = [load, ...(byModel.get(serves.model.id) ?? [])].slice(0, kept.ofModel)
      byModel.delete(serves.model.id)
      byModel.set(serves.model.id, loads)
      if (byModel.size > kept.models) byModel.delete(byModel.keys().next().value!)
    },
    ready: (engineId: string, loadMs: number): void => change(engineId, { state: 'ready', loadMs }),
    failed: (engineId: string, reason: string): void => change(engineId, { state: 'failed', endedAt: now(), reason }),
    ended: (engineId: string, reason: string): void => change(engineId, { state: 'ended', endedAt: now(), reason }),
    /** The loads of a model, newest first. */
    of: (modelId: string): readonly EngineLoad[] => byModel.get(modelId) ?? [],
  }
}
