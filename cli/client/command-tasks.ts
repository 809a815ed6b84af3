import type { Task } from '../../core/schemas/task.ts'
import { taskTable } from '../../core/schemas/task-table.ts'

/** The task that a model must support for each command. */
export const commandTasks = Object.fromEntries(
  Object.entries(taskTable).flatMap(([id, row]) => ('commands' in row ? row.commands.map(name => [name, id]) : [])),
) as Record<'run' | 'chat' | 'embed' | 'rerank' | 'image' | 'speak' | 'transcribe', Task>
