import { taskNamed } from './registry.ts'
import type { Link } from './task.ts'

/** Whether stored results of the task name files, which a reader gets by address. */
export const hasFiles = (task: string): boolean => taskNamed(task)?.files !== undefined

/** Returns a stored result as a reader gets it, with the addresses of its files. One without files stays as it is. */
export function shownResult(task: string, stored: unknown, link: Link): unknown {
  const files = taskNamed(task)?.files
  return files && stored !== null ? files.shown(stored as never, link) : stored
}

/** Returns the ids of the files without which a stored result is of no use. */
export const filesOf = (task: string, stored: unknown): string[] => taskNamed(task)?.files?.ids(stored as never) ?? []
