import { createHash } from 'node:crypto'
import { modelAllowed } from '../../../core/accounts/model-allowed.ts'
import { Failure } from '../../../core/failure.ts'
import type { Model } from '../../../core/models/model.ts'
import { didYouMean, nearestModels } from '../../../core/nearest.ts'
import type { Call } from '../../http/request/call.ts'
import type { Owners } from '../../http/request/owners.ts'

/** The owner in the names of models whose id has none: Replicate's clients require `owner/name`. */
export const localOwner = 'local'

/** The only version of a model: 64 hexadecimal digits, as Replicate's versions. */
export const replicateVersion = ({ id }: Pick<Model, 'id'>): string =>
  createHash('sha256').update(`infer model ${id}`).digest('hex')

/** Returns `owner/name` of a model. Further parts of an id stay in the name. */
export const replicateName = ({ id }: Pick<Model, 'id'>): string => (id.includes('/') ? id : `${localOwner}/${id}`)

export const visibleModels = (call: Call, { registry }: Pick<Owners, 'registry'>): Model[] =>
  registry.all().filter(model => model.enabled && modelAllowed(call.caller.token.models, model.id))

/** Finds a model by `owner/name`, by its id, or by a version of it. Throws Failure `model_not_found`. */
export function findReplicateModel(name: string, call: Call, owners: Pick<Owners, 'registry'>): Model {
  const models = visibleModels(call, owners)
  // A version may come with the name of its model before it.
  const [plain, version] = name.split(':') as [string, string | undefined]
  const found = models.find(
    model => model.id === name || replicateName(model) === plain || replicateVersion(model) === (version ?? name),
  )
  if (found) return found
  const meant = nearestModels(plain, models.map(replicateName))
  throw new Failure(
    'model_not_found',
    `There is no model or version '${name.slice(0, 128)}' here.${didYouMean(meant)} GET /replicate/v1/models lists the existing ones.`,
    { param: 'version' },
  )
}
