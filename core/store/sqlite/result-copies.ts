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
import { isResultName, resultPlace } from './result-rows.ts'

interface Named {
  number: number
  file: string
  bytes: number
}

const namedIn = (connection: Connection): Named[] =>
  connection.prepare<[], Named>('SELECT number, file, bytes FROM job_results WHERE file IS NOT NULL').all()

/** Whether the file of a result is there, whole by its size. */
function isWhole(folder: string, { file, bytes }: Named): boolean {
  return isResultName(file) && statSync(resultPlace(folder, file), { throwIfNoEntry: false })?.size === bytes
}

/** How many results that a database names are not there. Blocks the thread. */
export const missingResults = (connection: Connection, folder: string): number =>
  namedIn(connection).filter(row => !isWhole(folder, row)).length

/** How many bytes of results lie in files. */
export const bytesOfResults = (connection: Connection): number =>
  connection.prepare<[], number>('SELECT coalesce(sum(bytes), 0) FROM job_results').pluck().get()!

/**
 * Takes the results that lie in files into the rows of a copy of the database, so that it is whole in one file. Returns
 * how many are not there; their rows stay as they are. What is in the works on the copy is lost in a crash: it is not
 * under its name yet. Blocks the thread. `onTaken` hears bytes.
 */
export function importResultFiles(path: string, folder: string, onTaken: (bytes: number) => void = () => {}): number {
  const copy = openAsIs(path)
  try {
    copy.pragma('journal_mode = MEMORY')
    copy.pragma('synchronous = OFF')
    // The bytes are UTF-8 already: as text in JavaScript they would be decoded and encoded again.
    const take = copy.prepare(
      'UPDATE job_results SET result = CAST(? AS TEXT), file = NULL, bytes = NULL WHERE number = ?',
    )
    let missing = 0
    copy.exec('BEGIN')
    for (const row of namedIn(copy)) {
      if (isWhole(folder, row)) take.run(readFileSync(resultPlace(folder, row.file)), row.number)
      else missing++
      onTaken(row.bytes)
    }
    copy.exec('DELETE FROM erasable_results; COMMIT')
    return missing
  } finally {
    copy.close()
  }
}

/**
 * The other way round: writes the large results of a database that is to be served to files in `folder`, for good.
 * Those that lie in files already are looked for in the folders `beside`. Returns how many were not found there.
 */
export function exportResultFiles(connection: Connection, folder: string, beside: readonly string[]): number {
  const touched = new Set([folder])
  const write = (file: string, make: (to: string) => void) => {
    const to = resultPlace(folder, file)
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
    else write(row.file, to => copyFileSync(resultPlace(from, row.file), to))
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

/** Every file of a result that is there, by the name that a row would have. Blocks the thread. */
export const resultsIn = (folder: string): string[] =>
  (existsSync(folder) ? readdirSync(folder) : []).flatMap(organization =>
    readdirSync(join(folder, organization))
      .map(name => `${organization}/${name}`)
      .filter(isResultName),
  )

/** Gives files of results a second name in another folder: they stay there when these are erased. */
export function keepResultsBeside(folder: string, files: readonly string[], beside: string): void {
  for (const file of files) {
    const [from, to] = [resultPlace(folder, file), resultPlace(beside, file)]
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
    try {
      linkSync(from, to)
    } catch {
      // A file system without hard links.
      copyFileSync(from, to)
    }
  }
}
