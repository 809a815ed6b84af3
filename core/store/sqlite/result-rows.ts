import { dirname, join } from 'node:path'
import type { LargeResult } from '../store.ts'
import type { Connection } from './database.ts'
import { pathsIn } from './directory.ts'
import { ResultFile } from './result-file.ts'

/** A result as a row has it: its text, or the name of the file that holds it and its size. */
export interface ResultRow {
  result: string | null
  file: string | null
  bytes: number | null
}

const form = /^[\w-]+\/[\w-]+(\.[\w-]+)*\.json$/

export const isResultName = (file: string): boolean => form.test(file)

/** Where a result lies. Throws for a name that we have not given: a row may come from a database that was restored. */
export function resultPlace(folder: string, file: string): string {
  if (!isResultName(file)) throw new Error(`a result has the name '${file}', which is none of ours`)
  return join(folder, file)
}

/** Results as they are given out: text that is short enough for a row, and otherwise a handle. */
export function openResultOf(connection: Connection) {
  const folder = pathsIn(dirname(connection.name)).results
  return ({ result, file, bytes }: ResultRow): string | LargeResult | null =>
    file === null || bytes === null ? result : new ResultFile(resultPlace(folder, file), bytes)
}

/** What the writer is told of files of results. */
export function resultCommands(connection: Connection) {
  const erased = connection.prepare('DELETE FROM erasable_results WHERE file = ?')
  return {
    /** These are not there any more. */
    'results.erased'(files: readonly string[]): void {
      for (const file of files) erased.run(file)
    },
  }
}

/** What is read of files of results; short statements on a read-only connection. */
export function resultReads(connection: Connection) {
  const erasable = connection.prepare<[number], string>('SELECT file FROM erasable_results LIMIT ?').pluck()
  const named = connection.prepare<[string], number>('SELECT 1 FROM job_results WHERE file = ?').pluck()
  return {
    /** Files whose jobs have been forgotten. */
    erasable: (limit: number): string[] => erasable.all(limit),
    /** Whether a job has its result in this file. */
    named: (file: string): boolean => named.get(file) !== undefined,
  }
}
