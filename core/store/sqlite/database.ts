import { closeSync, openSync, readSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { sqliteBinding } from '../../assets.ts'

/**
 * A connection to a database; `using` closes it. Statements are templates: what is inserted is SQL too, such as a list
 * of columns. Values are never inserted but bound when the statement runs; SQLite itself counts them.
 */
export class Connection extends Sqlite implements Disposable {
  /** Prepares a statement that reads such rows. */
  query<Row>(sql: TemplateStringsArray, ...parts: string[]): Sqlite.Statement<unknown[], Row> {
    return this.prepare<unknown[], Row>(String.raw({ raw: sql }, ...parts))
  }

  /** Prepares a statement that reads one column: its rows are values. */
  scalar<Value>(sql: TemplateStringsArray, ...parts: string[]): Sqlite.Statement<unknown[], Value> {
    return this.query<Value>(sql, ...parts).pluck()
  }

  /** Prepares a statement that changes rows and reads none. */
  statement(sql: TemplateStringsArray, ...parts: string[]): Sqlite.Statement {
    return this.query(sql, ...parts)
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

/**
 * The settings of every connection. `synchronous` FULL is explicit because better-sqlite3 is compiled with NORMAL for
 * WAL, under which an acknowledged job can vanish on power loss. busy_timeout comes first: the others may have to wait.
 */
export const pragmas = {
  busy_timeout: 5000,
  journal_mode: 'wal',
  synchronous: 2,
  foreign_keys: 1,
  wal_autocheckpoint: 1000,
  journal_size_limit: 67_108_864,
  trusted_schema: 0,
  cell_size_check: 1,
} as const

/** Marks a file as an infer database (`PRAGMA application_id`): "infr". */
export const applicationId = 0x69_6e_66_72

/**
 * Opens a connection with these settings. Throws SqliteError; throws Error if a setting did not take effect, because a
 * store that is silently less durable is worse than none.
 */
export function openDatabase(path: string, { readonly = false }: { readonly?: boolean } = {}): Connection {
  const connection = open(path, readonly, readonly)
  try {
    for (const [name, value] of Object.entries(pragmas)) {
      // A reader cannot set the journal mode; it uses the mode that the writer has set.
      if (!(readonly && name === 'journal_mode')) connection.pragma(`${name} = ${value}`)
      const now = connection.pragma(name, { simple: true })
      if (now !== value) throw new Error(`SQLite answers ${name} = ${String(now)} where ${value} was set`)
    }
  } catch (cause) {
    connection.close()
    throw cause
  }
  return connection
}

/** Opens a database file without changing its settings: for checks before it is trusted, and for copies. */
export const openAsIs = (path: string, { readonly = false }: { readonly?: boolean } = {}): Connection =>
  open(path, readonly, true)

const open = (path: string, readonly: boolean, fileMustExist: boolean): Connection =>
  new Connection(path, { readonly, fileMustExist, timeout: pragmas.busy_timeout, nativeBinding: sqliteBinding() })

/**
 * Returns the structural damage of the file, or undefined. Uses a read-only connection: the last writing connection
 * that closes would write the WAL into a database that may be damaged. Throws SqliteError if the file cannot be read.
 */
export function structuralFault(
  path: string,
  inspect: (connection: Connection) => void = () => {},
): string | undefined {
  using connection = openAsIs(path, { readonly: true })
  inspect(connection)
  // 70,000 pending jobs are 80,000 pages: a system call for each took half of the time of the check.
  if (isReadable(path)) connection.pragma('mmap_size = 2147418112')
  const finding = connection.pragma('quick_check(1)', { simple: true })
  return finding === 'ok' ? undefined : String(finding)
}

/**
 * Reads a file from beginning to end. If the disk cannot read a page of a mapped file, a signal ends the process
 * without a message; a file that was just read whole is in memory. It is also the fastest way to load it.
 */
function isReadable(path: string): boolean {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const block = Buffer.allocUnsafeSlow(1 << 20)
    while (readSync(file, block) > 0);
    return true
  } catch {
    // SQLite finds the same error, and names the page.
    return false
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Opens a lock file: an empty database, used for the file lock that ends with its process. */
export function openLockFile(path: string, timeoutMs: number): Connection {
  return new Connection(path, { timeout: timeoutMs, nativeBinding: sqliteBinding() })
}

/** The SQLite code of an error, such as `SQLITE_FULL`; undefined for anything else. */
export const sqliteCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && thrown.name === 'SqliteError' ? (thrown as Error & { code: string }).code : undefined

/**
 * What an SQLite error means for the store. `fatal`: the database can no longer be trusted to take a write (after a
 * failed fsync the next write would be accepted, and lost). `full`: no room. `busy`: another process holds the lock.
 * `command`: this one command is wrong, the others are fine.
 */
export function meaningOf(thrown: unknown): 'fatal' | 'full' | 'busy' | 'command' {
  const code = sqliteCode(thrown)
  if (code === undefined) return 'command'
  // The shared-memory file cannot grow: ENOSPC by another name.
  if (code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE') return 'full'
  if (code.startsWith('SQLITE_BUSY')) return 'busy'
  if (/^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|READONLY|NOMEM)/.test(code)) return 'fatal'
  return 'command'
}
