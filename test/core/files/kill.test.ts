import { spawn } from 'node:child_process'
import { createHash, createSecretKey } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { idOfName } from '../../../core/files/file-path.ts'
import { openFiles } from '../../../core/files/files.ts'
import { newId } from '../../../core/ids.ts'
import { openLog } from '../../../core/log.ts'
import { openSqliteStore } from '../../../core/store/sqlite/store.ts'

const keeper = join(import.meta.dirname, '..', '..', 'fixtures', 'file-keeper.ts')
const kills = 5
let dataDir: string
beforeEach(() => void (dataDir = mkdtempSync(join(tmpdir(), 'infer-kill-'))))
afterEach(() => {
  vi.useRealTimers()
  rmSync(dataDir, { recursive: true, force: true })
})

/**
 * Runs the child until it has stored this many files and a little longer, then kills it. Returns the files that it
 * reported.
 */
async function killed(organization: string, after: number): Promise<string[]> {
  const child = spawn(process.execPath, [keeper, dataDir, organization], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  let ids = 0
  for await (const chunk of child.stdout) {
    said += String(chunk)
    ids = said.split('\n').length - 1
    if (ids >= after) child.kill('SIGKILL')
  }
  return said.split('\n').slice(0, ids)
}

test(`after ${kills} kills during the work no file is lost, half written or leaked`, async () => {
  const organization = newId('org')
  const acknowledged: string[] = []
  for (let kill = 0; kill < kills; kill++) acknowledged.push(...(await killed(organization, 3 + 7 * kill)))
  expect(acknowledged.length).toBeGreaterThan(kills * 3)

  const log = openLog('error')
  const store = await openSqliteStore({ dataDir, log, minFreeBytes: 0, ballastBytes: 0, onFatal() {} })
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * 3_600_000 })
  const files = await openFiles({
    dataDir,
    store,
    linkKey: createSecretKey(Buffer.alloc(32)),
    limits: { link_lifetime: 1000, output_size: 1 << 20 },
    log,
  })
  await files.sweep()
  expect(readdirSync(join(dataDir, 'files', 'incoming'))).toEqual([])
  expect(readdirSync(join(dataDir, 'work'))).toEqual([])
  for (const id of acknowledged) expect((await store.files.find(id))?.removedAt, id).toBeNull()
  const rows = await store.files.list(organization, { limit: 10_000 })
  const onDisk = readdirSync(join(dataDir, 'files', organization)).map(idOfName)
  expect(onDisk.toSorted()).toEqual(rows.map(({ id }) => id).toSorted())
  for (const row of rows) {
    const bytes = readFileSync(files.pathOf(row))
    expect([bytes.length, createHash('sha256').update(bytes).digest('hex')]).toEqual([row.bytes, row.sha256])
  }
  await files.close()
  await store.close()
})
