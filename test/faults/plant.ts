import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A fault that somebody could make: a text of a product file, and what stands there instead. */
export interface Fault {
  file: string
  /** Occurs once in the file. */
  find: string
  replace: string
  /** The test files that should find it, cheapest first. */
  tests: string[]
}

const root = join(import.meta.dirname, '../..')
export const faults = JSON.parse(readFileSync(join(import.meta.dirname, 'faults.json'), 'utf8')) as Fault[]

/** Milliseconds for one test file. One that hangs has found the fault. */
const timeout = 300_000

/** Plants a fault in a copy of the tree and returns the test file that fails; undefined if none does. */
function found({ file, find, replace, tests }: Fault, tree: string): string | undefined {
  const path = join(tree, file)
  const before = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    before.replace(find, () => replace),
  )
  try {
    return tests.find(test => {
      const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--maxWorkers=1', '--bail=1', test]
      return spawnSync(process.execPath, vitest, { cwd: tree, timeout, stdio: 'ignore' }).status !== 0
    })
  } finally {
    writeFileSync(path, before)
  }
}

/** The numbers that somebody has typed; all, if none. Throws if one has no fault. */
export function numbersOf(args: readonly string[]): number[] {
  const numbers = args.map(Number)
  if (numbers.some(at => faults[at] === undefined))
    throw new Error(`There are faults 0 to ${faults.length - 1} in test/faults/faults.json.`)
  return numbers.length > 0 ? numbers : [...faults.keys()]
}

/**
 * Tries the faults of these numbers and prints a line for each. Exits with 1 if one was not found. The tests must
 * pass without a fault: a test that fails anyway finds everything.
 */
function plant(numbers: readonly number[]): void {
  const build = join(root, 'build')
  mkdirSync(build, { recursive: true })
  const tree = mkdtempSync(join(build, 'faults-'))
  execFileSync('git', ['clone', '--quiet', root, tree])
  // Hard links, because packages resolve their own dependencies by real paths. They need the same file system.
  execFileSync('cp', ['-al', join(root, 'node_modules'), tree])
  try {
    for (const at of numbers) {
      const fault = faults[at]!
      const by = found(fault, tree)
      if (by === undefined) process.exitCode = 1
      process.stdout.write(`${at} ${by === undefined ? 'NOT FOUND' : 'found'} ${fault.file}: ${by ?? fault.replace}\n`)
    }
  } finally {
    rmSync(tree, { recursive: true, force: true })
  }
}

if (import.meta.main) plant(numbersOf(process.argv.slice(2)))
