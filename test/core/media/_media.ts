import { createSecretKey, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openCpu } from '../../../core/cpu/cpu.ts'
import { openFiles } from '../../../core/files/files.ts'
import { newId } from '../../../core/ids.ts'
import { openLog } from '../../../core/log.ts'
import { openFfmpeg } from '../../../core/media/ffmpeg.ts'
import { openMedia } from '../../../core/media/media.ts'
import { Config } from '../../../core/models/config.ts'
import { openSqliteStore } from '../../../core/store/sqlite/store.ts'

export const origin = 'http://infer.test:8787'

/** Media over a real store and real files, with two organizations. Programs are searched in `path`. */
export async function mediaHere({
  path = process.env.PATH,
  media,
  limits,
  full,
}: {
  path?: string | undefined
  media?: { allowed_addresses: string[] }
  limits?: object
  /** The store's error for a full disk. */
  full?: string
} = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-media-'))
  const log = openLog('error')
  const store = await openSqliteStore({ dataDir, log, minFreeBytes: 0, ballastBytes: 0, onFatal() {} })
  const organizations = [newId('org'), newId('org')] as const
  for (const id of organizations)
    await store.organizations.create({
      id,
      name: `of ${id}`,
      plan: 'free',
      requestsPerMinute: null,
      jobsPerMinute: null,
      createdAt: Date.now(),
    })
  const config = Config.parse({ ...(media ? { media } : {}), ...(limits ? { limits } : {}) })
  const linkKey = createSecretKey(randomBytes(32))
  const files = await openFiles({ dataDir, store, linkKey, limits: config.limits, log })
  const cpu = openCpu()
  const ffmpeg = openFfmpeg({ environment: { PATH: path } })
  const writable: true | string = full ?? true
  return {
    dataDir,
    store,
    files,
    cpu,
    ffmpeg,
    organizations,
    ...openMedia({
      config,
      store: { files: store.files, stats: () => ({ ...store.stats(), writable }) },
      files,
      cpu,
      ffmpeg,
      log,
    }),
    async close() {
      await Promise.all([cpu.close(), files.close()])
      await store.close()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
