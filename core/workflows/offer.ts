import { z } from 'zod'
import type { Registry } from '../models/registry.ts'
import { taskNamed, taskTypes } from '../tasks/task-types.ts'
import type { Task } from '../tasks/tasks.ts'
import type { Offer, TaskType } from './diagnose-node.ts'
import type { Schema } from './schema-walk.ts'

const known = new Map<Task, TaskType>()

/** JSON Schemas take milliseconds to make and never change: made when a task is first looked at. */
function typeOf(task: Task): TaskType {
  const before = known.get(task)
  if (before) return before
  const { request, result } = taskTypes.get(task)!
  const schema = (of: z.ZodType, io: 'input' | 'output') =>
    z.toJSONSchema(of, { io, unrepresentable: 'any' }) as unknown as Schema
  const type: TaskType = { request, inputs: schema(request, 'input'), result: schema(result, 'output') }
  known.set(task, type)
  return type
}

/** What workflows may be made of here. `allowed` says which models the caller may use; others are not there for him. */
export const offerOf = (registry: Pick<Registry, 'find'>, allowed: (modelId: string) => boolean): Offer => ({
  task(name) {
    const task = taskNamed(name)
    return task && { name: task, type: typeOf(task) }
  },
  model(id) {
    const model = allowed(id) ? registry.find(id) : undefined
    return model && { enabled: model.enabled, tasks: model.tasks }
  },
})
