import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { meaningOf, openDatabase, pragmas } from '../../../../core/store/sqlite/database.ts'
import { openTestStore, temporaryDirectory } from '../_store.ts'

const failed = (code: string) => Object.assign(new Error(code), { name: 'SqliteError', code })

test('every connection runs with every pragma, above all synchronous FULL', () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'x.db')
  const writer = openDatabase(path)
  const reader = openDatabase(path, { readonly: true })
  for (const connection of [writer, reader]) {
    const found = Object.keys(pragmas).map(name => [name, connection.pragma(name, { simple: true })])
    expect(Object.fromEntries(found)).toEqual(pragmas)
    expect(connection.pragma('synchronous', { simple: true })).toBe(2)
    connection.close()
  }
})

test('a reader cannot write', () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'x.db')
  openDatabase(path).exec('CREATE TABLE t (a)').close()
  const reader = openDatabase(path, { readonly: true })
  expect(() => reader.exec('INSERT INTO t VALUES (1)')).toThrow(/readonly/)
  reader.close()
})

test.each([
  ['SQLITE_FULL', 'full'],
  ['SQLITE_IOERR_SHMSIZE', 'full'],
  ['SQLITE_IOERR_FSYNC', 'fatal'],
  ['SQLITE_IOERR', 'fatal'],
  ['SQLITE_CORRUPT', 'fatal'],
  ['SQLITE_CORRUPT_INDEX', 'fatal'],
  ['SQLITE_NOTADB', 'fatal'],
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_BUSY_SNAPSHOT', 'busy'],
  ['SQLITE_CONSTRAINT_UNIQUE', 'command'],
  ['SQLITE_MISMATCH', 'command'],
] as const)('%s is %s', (code, meaning) => {
  expect(meaningOf(failed(code))).toBe(meaning)
})

test('an error that SQLite did not throw concerns one command', () => {
  expect(meaningOf(new TypeError('x'))).toBe('command')
})

test('only the owner can read the data directory, and every file in it', async () => {
  const before = process.umask(0)
  try {
    await using opened = await openTestStore({ dataDir: join(temporaryDirectory().path, 'deep', 'data') })
    expect(statSync(opened.dataDir).mode & 0o777).toBe(0o700)
    const files = readdirSync(opened.dataDir)
    expect(files).toEqual(expect.arrayContaining(['infer.db', 'infer.db-wal', 'infer.db-shm', 'instance.lock']))
    for (const name of files) {
      const entry = statSync(join(opened.dataDir, name))
      expect([name, entry.mode & 0o777]).toEqual([name, entry.isDirectory() ? 0o700 : 0o600])
    }
  } finally {
    process.umask(before)
  }
})

test('all threads of a process load the same copy of SQLite', async () => {
  await using opened = await openTestStore()
  using _reader = openDatabase(join(opened.dataDir, 'infer.db'), { readonly: true })
  const loaded = readFileSync('/proc/self/maps', 'utf8').matchAll(/\/\S*sqlite\S*\.node$/gm)
  expect(new Set([...loaded].map(([path]) => path)).size).toBe(1)
})
