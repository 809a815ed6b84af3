import { taskTable } from '../../../../core/schemas/task-table.ts'
import type { Schema } from '../api/schema.ts'

/** Returns the name of a task for people. */
export const taskName = (task: Schema<'Task'>): string => taskTable[task].name

/** What a job is called: what was requested, else its task. */
export const jobTitle = ({ prompt, task }: Pick<Schema<'ListedJob'>, 'prompt' | 'task'>): string =>
  prompt ?? taskName(task)

export const tasksText = (tasks: readonly Schema<'Task'>[]): string => tasks.map(taskName).join(', ')

/** Whether the task waits for a person, an event or a time. */
export const isWait = (task: Schema<'Task'>): boolean => taskTable[task].kind === 'wait'

/** Whether results of the task are files. */
export const makesFiles = (task: Schema<'Task'>): boolean =>
  ['speech', 'image', 'generation'].includes(taskTable[task].kind)
