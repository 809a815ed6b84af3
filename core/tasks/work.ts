import type { Task } from '../schemas/task.ts'
import { taskRecord } from './registry.ts'

/** Returns how much work a job is, to compare it with others of its model; null where its stored inputs do not say. */
export const workOf = (task: Task, inputs: string | null): number | null => taskRecord(task).metering.work(inputs)
