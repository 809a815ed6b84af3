import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ulid } from '../../ids.ts'
import { largeResultBytes } from '../store.ts'
import { type Connection, openAsIs } from './database.ts'
import { syncDirectory } from './directory.ts'
import { isResultName, resultPath } from './result-rows.ts'

interface Named {
  number: number
  file: string
  bytes: number
}

const namedIn = (connection: Connection): Named[] =>
  connection.prepare<[], Named>('SELECT number, file, bytes FROM job_results WHERE file IS NOT NULL').all()

/** Whether the file of a result exists with its full size. */
function isWhole(folder: string, { file, bytes }: Named): boolean {
  return isResultName(file) && statSync(resultPath(folder, file), { throwIfNoEntry: false })?.size === bytes
}

/** How many results that a database names are missing. Blocks the thread. */
export const missingResults = (connection: Connection, folder: string): number =>
  namedIn(connection).filter(row => !isWhole(folder, row)).length

/** How many bytes of results are in files. */
export const bytesOfResults = (connection: Connection): number =>
  connection.prepare<[], number>('SELECT coalesce(sum(bytes), 0) FROM job_results').pluck().get()!

/**
 * Moves the results that are in files into the rows of a copy of the database, so that the copy is complete in one
 * file. Returns how many are missing; their rows stay as they are. The copy is not durable yet: a crash loses it, which
 * is fine because it does not have its final name. Blocks the thread. `onCopied` gets bytes.
 */
export function importResultFiles(path: string, folder: string, onCopied: (bytes: number) => void = () => {}): number {
  const copy = openAsIs(path)
  try {
    copy.pragma('journal_mode = MEMORY')
    copy.pragma('synchronous = OFF')
    // The bytes are UTF-8 already: a JavaScript string would be decoded and encoded again.
    const importText = copy.prepare(
      'UPDATE job_results SET result = CAST(? AS TEXT), file = NULL, bytes = NULL WHERE number = ?',
    )
    let missing = 0
    copy.exec('BEGIN')
    for (const row of namedIn(copy)) {
      if (isWhole(folder, row)) importText.run(readFileSync(resultPath(folder, row.file)), row.number)
      else missing++
      onCopied(row.bytes)
    }
    copy.exec('DELETE FROM erasable_results; COMMIT')
    return missing
  } finally {
    copy.close()
  }
}

/**
 * The opposite of `importResultFiles`: writes the large results of a database that is to be served to files in
 * `folder`, durably. Results that are in files already are searched for in the folders `beside`. Returns how many were
 * not found.
 */
export function exportResultFiles(connection: Connection, folder: string, beside: readonly string[]): number {
  const touched = new Set([folder])
  const write = (file: string, make: (to: string) => void) => {
    const to = resultPath(folder, file)
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    make(to)
    const written = openSync(to, 'r+')
    fsyncSync(written)
    closeSync(written)
    touched.add(dirname(to))
  }
  let missing = 0
  for (const row of namedIn(connection)) {
    if (isWhole(folder, row)) continue
    const from = beside.find(other => isWhole(other, row))
    if (from === undefined) missing++
    else write(row.file, to => copyFileSync(resultPath(from, row.file), to))
  }
  const large = connection
    .prepare<[number], { number: number; organization_id: string; id: string }>(
      'SELECT number, organization_id, id FROM job_results JOIN jobs USING (number) WHERE octet_length(result) > ?',
    )
    .all(largeResultBytes)
  const textOf = connection
    .prepare<[number], Buffer>('SELECT CAST(result AS BLOB) FROM job_results WHERE number = ?')
    .pluck()
  const name = connection.prepare('UPDATE job_results SET result = NULL, file = ?, bytes = ? WHERE number = ?')
  for (const { number, organization_id, id } of large) {
    const bytes = textOf.get(number)!
    const file = `${organization_id}/${id}.${ulid()}.json`
    write(file, to => writeFileSync(to, bytes, { flag: 'wx', mode: 0o600 }))
    name.run(file, bytes.byteLength, number)
  }
  for (const one of touched) syncDirectory(one)
  return missing
}

/** The names of all result files, as a row would name them. Blocks the thread. */
export const resultsIn = (folder: string): string[] =>
  (existsSync(folder) ? readdirSync(folder) : []).flatMap(organization =>
    readdirSync(join(folder, organization))
      .map(name => `${organization}/${name}`)
      .filter(isResultName),
  )

/** Links result files into another folder: they stay there when the originals are erased. */
export function keepResultsBeside(folder: string, files: readonly string[], beside: string): void {
  for (const file of files) {
    const [from, to] = [resultPath(folder, file), resultPath(beside, file)]
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    try {
      linkSync(from, to)
    } catch {
      // A file system without hard links.
      copyFileSync(from, to)
    }
  }
}
