import type { Admission, Requester } from '../admission/admission.ts'
import type { ModelSet } from '../models/engine-traits.ts'
import type { Model } from '../models/model.ts'
import { type Region, type RegionLabel, requiredLabel } from '../schemas/region.ts'
import type { WorkflowStore } from '../store/workflows.ts'
import { taskNamed, taskRecords } from '../tasks/registry.ts'
import type { Offer } from './diagnose-node.ts'
import { workflowOf } from './stored-workflow.ts'

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
  findWorkflow?: Offer['findWorkflow'],
): Offer => ({
  region,
  ...(findWorkflow ? { findWorkflow } : {}),
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

/** The tasks, models and workflows that a requester may use: models that its token may use, workflows of its organization. */
export const offerFor = (
  requester: Requester,
  owners: {
    admission: Pick<Admission, 'allowed'>
    registry: ModelOffer
    workflows: Pick<WorkflowStore, 'find' | 'named'>
  },
  region?: Region,
): Offer =>
  offerOf(
    owners.registry,
    id => owners.admission.allowed(requester, id),
    requiredLabel(region) ?? requiredLabel(requester.token.region as Region | null),
    (workflow, version) => workflowOf(requester.organizationId, { workflow, version }, owners.workflows),
  )
