import type { Registry } from '../models/registry.ts'
import { taskNamed } from '../tasks/registry.ts'
import type { Offer } from './diagnose-node.ts'

/** What workflows may be made of here. `allowed` says which models the caller may use; others are not there for him. */
export const offerOf = (registry: Pick<Registry, 'find'>, allowed: (modelId: string) => boolean): Offer => ({
  task(name) {
    const task = taskNamed(name)
    return task && { name: task.id, type: task }
  },
  model(id) {
    const model = allowed(id) ? registry.find(id) : undefined
    return model && { enabled: model.enabled, tasks: model.tasks }
  },
})
