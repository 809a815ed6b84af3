import type { Task } from '../../core/schemas/task.ts'
import { taskRecords } from '../../core/tasks/registry.ts'
import { shellWord } from '../serve/try-next.ts'

/**
 * Returns the command with which a user tries a model that does these tasks: that of the first task that has one, else
 * `infer model test`.
 */
export function tryCommand(id: string, can: readonly Task[]): string {
  const record = taskRecords.find(one => one.trial !== undefined && can.includes(one.id))
  return (record?.trial ?? 'infer model test MODEL').replace('MODEL', () => shellWord(id))
}
