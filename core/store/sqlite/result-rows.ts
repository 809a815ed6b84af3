import { dirname, join } from 'node:path'
import type { LargeResult } from '../store.ts'
import type { Connection } from './database.ts'
import { pathsIn } from './directory.ts'
import { ResultFile } from './result-file.ts'

/** The columns of a result: its text, or the name and size of its file. */
export interface ResultRow {
  result: string | null
  file: string | null
  bytes: number | null
}

const form = /^[\w-]+\/[\w-]+(\.[\w-]+)*\.json$/

export const isResultName = (file: string): boolean => form.test(file)

/**
 * The path of a result's file. Throws for a name that infer would not create: the row may come from a restored
 * database.
 */
export function resultPath(folder: string, file: string): string {
  if (!isResultName(file)) throw new Error(`a result has the name '${file}', which was not created by infer`)
  return join(folder, file)
}

/** Converts a row to a result: the text if it is short, otherwise a handle. */
export function openResultOf(connection: Connection) {
  const folder = pathsIn(dirname(connection.name)).results
  return ({ result, file, bytes }: ResultRow): string | LargeResult | null =>
    file === null || bytes === null ? result : new ResultFile(resultPath(folder, file), bytes)
}

/** The writer's commands for result files. */
export function resultCommands(connection: Connection) {
  const erased = connection.prepare('DELETE FROM erasable_results WHERE file = ?')
  return {
    /** Records that these files were erased. */
    eraseResults(files: readonly string[]): void {
      for (const file of files) erased.run(file)
    },
  }
}

/** Reads of result files; short statements on a read-only connection. */
export function resultReads(connection: Connection) {
  const erasable = connection.prepare<[number], string>('SELECT file FROM erasable_results LIMIT ?').pluck()
  const named = connection.prepare<[string], number>('SELECT 1 FROM job_results WHERE file = ?').pluck()
  return {
    /** Files whose jobs were removed. */
    erasable: (limit: number): string[] => erasable.all(limit),
    /** Whether a job has its result in this file. */
    named: (file: string): boolean => named.get(file) !== undefined,
  }
}
