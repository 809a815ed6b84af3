import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Admitted } from '../../../core/admission/admission.ts'
import { type Log, openLog } from '../../../core/log.ts'
import { openSqliteStore, type StoreOptions } from '../../../core/store/sqlite/store.ts'
import type { NewJob, Store } from '../../../core/store/store.ts'
import { createOrganization, newJob as newStoredJob, organizationId } from '../../store/conformance/records.ts'
import { admittedWork } from '../_admission.ts'

export * from '../../store/conformance/records.ts'

/** A directory that is removed at the end of the scope. */
export function temporaryDirectory(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'infer-store-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** A log that keeps its lines. */
export function keptLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  return { log: openLog('debug', line => lines.push(line)), lines }
}

export type TestStore = AsyncDisposable & { store: Store; dataDir: string; fatal: [Error, number][]; lines: string[] }

/** A server's store with one organization, in its own directory unless one is given. */
export async function openTestStore(storeOptions: Partial<StoreOptions> = {}): Promise<TestStore> {
  const directory = temporaryDirectory()
  const dataDir = storeOptions.dataDir ?? directory.path
  const fatal: [Error, number][] = []
  const { log, lines } = keptLog()
  const store = await openSqliteStore({
    dataDir,
    log,
    minFreeBytes: 0,
    ballastBytes: 0,
    onFatal: (failure, exitCode) => fatal.push([failure, exitCode]),
    ...storeOptions,
  })
  if (!(await store.organizations.find(organizationId))) await createOrganization(store)
  return {
    store,
    dataDir,
    fatal,
    lines,
    async [Symbol.asyncDispose]() {
      await store.close()
      directory[Symbol.dispose]()
    },
  }
}

/** A job as the store accepts it, with the admission that the queue needs besides. */
export function newJob(job: Partial<NewJob> = {}): NewJob & { admitted: Admitted } {
  const made = newStoredJob(job)
  // Not a stored field.
  return Object.defineProperty(made, 'admitted', { value: admittedWork(made) }) as NewJob & { admitted: Admitted }
}
