import { Model } from '../model.ts'
import { namesOf } from '../model-names.ts'
import type { PeerModel } from './listed-models.ts'
import { type PeerSettings, peerOfName } from './settings.ts'

/** The models that a peer has listed. */
export interface PeerOffer {
  name: string
  settings: PeerSettings
  models: readonly PeerModel[]
}

/** The id here of a model of a peer. */
export const peerModelId = (peer: string, name: string): string => `${peer}/${name}`

/**
 * Returns the models with those of the peers behind them: each as an entry of its own with `engine: infer`, so that all that holds
 * for such an entry holds for it. It has its name there as an alias where no model before has it, and where the name is not one
 * for models of a peer: rules such as `two/*` mean that peer. Two peers with the same name: the first one has it. Models whose id
 * would be too long are left out. `hasTasks`: whether the engine of a model supports all of its tasks; other tasks are left out.
 */
export function withPeerModels(
  models: readonly Model[],
  peers: readonly PeerOffer[],
  hasTasks: (model: Model) => boolean,
): readonly Model[] {
  if (peers.length === 0) return models
  const taken = new Set(models.flatMap(namesOf))
  const peerNames = Object.fromEntries(peers.map(({ name }) => [name, true]))
  const added: Model[] = []
  for (const peer of peers)
    for (const one of peer.models) {
      const isFree = !taken.has(one.name) && peerOfName(one.name, peerNames) === undefined
      const model = usable(modelOf(peer, one, isFree ? [one.name] : []), hasTasks)
      if (!model || taken.has(model.id)) continue
      for (const name of namesOf(model)) taken.add(name)
      added.push(model)
    }
  return [...models, ...added]
}

/** The model with the tasks that its engine supports; undefined if there are none. */
function usable(model: Model | undefined, hasTasks: (model: Model) => boolean): Model | undefined {
  if (!model || hasTasks(model)) return model
  const tasks = model.tasks.filter(task => hasTasks({ ...model, tasks: [task] }))
  return tasks.length > 0 ? { ...model, tasks } : undefined
}

function modelOf({ name: peer, settings }: PeerOffer, model: PeerModel, aliases: string[]): Model | undefined {
  const { name, description, tasks, features, contextLength, region, price } = model
  const entry = {
    id: peerModelId(peer, name),
    engine: 'infer',
    url: settings.url,
    api_key_env: settings.api_key_env,
    upstream_id: name,
    ...(aliases.length > 0 && { aliases }),
    description,
    tasks,
    features,
    context_length: contextLength,
    region,
    ...(price && { price }),
  }
  return Model.safeParse(entry).data
}
