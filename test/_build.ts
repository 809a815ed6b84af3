import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { upToDate } from '../bin/stamp.ts'

/** Builds dist/ before all tests if something that it is made of has changed: tests of the command line run it. */
export function setup(): void {
  if (upToDate('dist')) return
  execFileSync(process.execPath, [join(import.meta.dirname, '../bin/build.ts')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
