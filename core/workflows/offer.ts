import type { ModelSet } from '../models/engine-traits.ts'
import type { Model } from '../models/model.ts'
import type { RegionLabel } from '../schemas/region.ts'
import { taskNamed, taskRecords } from '../tasks/registry.ts'
import type { Offer } from './diagnose-node.ts'

/** The models of a server, or of a configuration file. */
export interface ModelOffer {
  all(): readonly Model[]
  find(id: string): Model | undefined
  catalog(): ModelSet
}

/**
 * The tasks and models that workflows may use. Models that `allowed` refuses do not exist for the caller. `region`: where
 * the models of the workflow must be.
 */
export const offerOf = (
  models: ModelOffer,
  allowed: (modelId: string) => boolean,
  region: RegionLabel | null = null,
): Offer => ({
  region,
  task(name) {
    const task = taskNamed(name)
    return task && { name: task.id, type: task }
  },
  taskNames: () => taskRecords.map(({ id }) => id),
  model(id) {
    const model = allowed(id) ? models.find(id) : undefined
    return (
      model && {
        id,
        enabled: model.enabled,
        tasks: model.tasks,
        region: models.catalog().get(id)?.region,
        extraParams: model.extra_params,
        resolutions: model.resolutions,
        generationDefaults: model.generation_defaults,
        voices: models.catalog().get(id)?.traits.speech?.voices ?? undefined,
        voiceAliases: models.catalog().get(id)?.traits.speech?.aliases ?? {},
      }
    )
  },
  modelIds: () =>
    models
      .all()
      .filter(({ id }) => allowed(id))
      .map(({ id }) => id),
})
