import { StoreRefusal } from '../refusal.ts'
import { backupFiles } from './backup-files.ts'
import { sqliteCode } from './database.ts'
import { pathsIn } from './directory.ts'

/** Why the database of a data directory cannot be opened, as a sentence and an exit code for the user. */
export function refusalFor(thrown: unknown, dataDir: string): StoreRefusal {
  if (thrown instanceof StoreRefusal) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const code = sqliteCode(thrown)
  if (
    code &&
    /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|PERM|NOMEM|BUSY|LOCKED)/.test(code) &&
    code !== 'SQLITE_IOERR_DATA'
  )
    return new StoreRefusal(74, `The database in ${dataDir} cannot be opened: ${message} (${code}).`, thrown)
  return damaged(dataDir, message, thrown)
}

/** The refusal of a damaged database: the finding, and the command that restores a backup. */
export function damaged(dataDir: string, finding: string, cause?: unknown): StoreRefusal {
  const file = backupFiles(dataDir).files[0]?.path ?? '<backup file>'
  return new StoreRefusal(
    65,
    `The database ${pathsIn(dataDir).database} is damaged: ${finding.split('\n')[0]}. ` +
      `Nothing was changed. Restore a good copy with: infer restore ${file} --data-dir ${dataDir}`,
    cause,
  )
}
