import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** What a step of the build reads and writes: files and folders, relative to the root. */
interface Step {
  inputs: readonly string[]
  outputs: readonly string[]
}

/** npm writes `node_modules/.package-lock.json` at every installation. */
const always = ['package.json', 'node_modules/.package-lock.json']

const steps = {
  /** dist/, by bin/build.ts. */
  dist: { inputs: [...always, 'bin', 'cli', 'core', 'gpu', 'server'], outputs: ['dist'] },
  /** Programs of test/fixtures, by test/_build.ts. */
  fixtures: {
    inputs: [...always, 'cli', 'core', 'gpu', 'test/_build.ts', 'test/fixtures'],
    outputs: ['build/fixtures'],
  },
  /** The types of the API for the console and the command line, by bin/console/write-api-types.ts. */
  'api-types': {
    inputs: [...always, 'bin/console', 'core', 'server'],
    outputs: ['server/console/app/api/types.generated.ts', 'cli/client/types.generated.ts'],
  },
} satisfies Record<string, Step>

const stampOf = (name: keyof typeof steps): string => join(root, 'build', `${name}.stamp`)

/** Whether the inputs of a step are those of its last run, and its outputs as that run left them. Takes 30 ms. */
export function upToDate(name: keyof typeof steps): boolean {
  const [file, { inputs, outputs }] = [stampOf(name), steps[name]]
  return existsSync(file) && readFileSync(file, 'utf8') === `${digest(inputs)} ${digest(outputs)}\n`
}

/** Begins a step. Call the result when the step has ended: inputs that changed meanwhile make it run again. */
export function beginStep(name: keyof typeof steps): () => void {
  const [file, { inputs, outputs }] = [stampOf(name), steps[name]]
  const before = digest(inputs)
  return () => {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${before} ${digest(outputs)}\n`)
  }
}

/**
 * Digest of the names, sizes and times of files, without reading them. A file with an older time than before counts as
 * changed too. Generated files are not inputs, because another step writes them.
 */
export function digest(paths: readonly string[], within = root): string {
  const sum = createHash('sha256').update(process.version)
  for (const path of paths.flatMap(path => filesAt(within, path))) {
    const { size, mtimeMs } = statSync(join(within, path))
    sum.update(`${path}\0${size}\0${mtimeMs}\n`)
  }
  return sum.digest('hex')
}

function filesAt(within: string, path: string): string[] {
  const found = statSync(join(within, path), { throwIfNoEntry: false })
  if (!found) return []
  if (!found.isDirectory()) return [path]
  return readdirSync(join(within, path), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && !/\.generated\.|\.pyc$/.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name).slice(within.length + 1))
    .toSorted()
}
