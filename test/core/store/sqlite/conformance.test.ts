import { checkDatabase } from '../../../../core/store/sqlite/admin.ts'
import { openSqliteStore } from '../../../../core/store/sqlite/store.ts'
import { conformance } from '../../../store/conformance/conformance.ts'
import { keptLog, temporaryDirectory } from '../_store.ts'

conformance('SQLite', async () => {
  const directory = temporaryDirectory()
  const fatal: string[] = []
  const { log } = keptLog()
  return {
    open: () =>
      openSqliteStore({
        dataDir: directory.path,
        log,
        minFreeBytes: 0,
        ballastBytes: 0,
        onFatal: failure => fatal.push(failure.message),
      }),
    findings: async () => [...fatal, ...(await checkDatabase(directory.path)).findings],
    async [Symbol.asyncDispose]() {
      directory[Symbol.dispose]()
    },
  }
})
