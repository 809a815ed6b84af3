import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Builds dist/ once before all tests: tests of the command line run it. Takes a second. */
export function setup(): void {
  execFileSync(process.execPath, [join(import.meta.dirname, '../bin/build.ts')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
