import { closeSync, openSync, readSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { sqliteBinding } from '../../assets.ts'

export type Connection = Sqlite.Database

/**
 * What every connection runs with. FULL stands here because better-sqlite3 is compiled with NORMAL for WAL, under
 * which an acknowledged job can vanish on power loss. busy_timeout comes first: the ones after it may have to wait.
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

/** Marks a file as ours (`PRAGMA application_id`): "infr". */
export const applicationId = 0x69_6e_66_72

/**
 * The one way to a connection. Throws SqliteError; throws Error when a pragma did not take, because a store that is
 * silently less durable is worse than none.
 */
export function openDatabase(path: string, { readonly = false }: { readonly?: boolean } = {}): Connection {
  const connection = new Sqlite(path, {
    readonly,
    fileMustExist: readonly,
    timeout: pragmas.busy_timeout,
    nativeBinding: sqliteBinding(),
  })
  try {
    for (const [name, value] of Object.entries(pragmas)) {
      // A reader cannot set the journal mode; it finds the one that the writer has set.
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

/** A database file as it lies there, whatever mode it is in: for looking at it before it is trusted, and for copies. */
export function openAsIs(path: string, { readonly = false }: { readonly?: boolean } = {}): Connection {
  return new Sqlite(path, {
    readonly,
    fileMustExist: true,
    timeout: pragmas.busy_timeout,
    nativeBinding: sqliteBinding(),
  })
}

/**
 * What is structurally wrong with the file, or undefined. Looks through a read-only connection: the last writing one
 * that closes would take the WAL into a database that may be damaged. Throws SqliteError when it cannot be read.
 */
export function structuralFault(path: string, look: (connection: Connection) => void = () => {}): string | undefined {
  const connection = openAsIs(path, { readonly: true })
  try {
    look(connection)
    // 70,000 pending jobs are 80,000 pages: a system call for each took half of the time of the check.
    if (isReadable(path)) connection.pragma('mmap_size = 2147418112')
    const finding = connection.pragma('quick_check(1)', { simple: true })
    return finding === 'ok' ? undefined : String(finding)
  } finally {
    connection.close()
  }
}

/**
 * Reads a file from its beginning to its end. A page of a mapped file that the disk cannot read ends the process by a
 * signal, without a sentence; a file that was just read whole is in memory. It is also the fastest way to get it there.
 */
function isReadable(path: string): boolean {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    const block = Buffer.allocUnsafeSlow(1 << 20)
    while (readSync(file, block) > 0);
    return true
  } catch {
    // SQLite finds the same, and says which page it is.
    return false
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** A lock file: a database that holds nothing, for the file lock that ends with its process. */
export function openLockFile(path: string, timeoutMs: number): Connection {
  return new Sqlite(path, { timeout: timeoutMs, nativeBinding: sqliteBinding() })
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
