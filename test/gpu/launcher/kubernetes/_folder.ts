import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A folder for all tests of a file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'infer-kubernetes-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
