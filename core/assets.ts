import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Where the program's own parts lie. It runs in three forms: from source, from the bundle in dist/, and packed into
 * one executable; nothing outside this file knows which.
 */
const root = fileURLToPath(new URL('..', import.meta.url))

/** Whether this is the single executable. */
export const packaged: boolean = false

export const version: string = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string })
  .version

/** Bytes of a static asset by name, such as `docs/scalar.js` or `models/tiny-chat.gguf`. */
export const readAsset = (name: string): Uint8Array => readFileSync(join(root, 'dist', 'assets', name))

/** A path on disk of the asset, for what needs one; extracted and verified first when packed. */
export const assetPath = (name: string): string => join(root, 'dist', 'assets', name)

/** The file and arguments that start this same program again as a child. */
export const selfCommand = (args: readonly string[]): { file: string; args: string[] } => ({
  file: process.execPath,
  args: [join(root, 'cli', 'main.ts'), ...args],
})

/** Entry of a worker thread, for `new Worker(...)` or piscina's `filename`. */
export const workerPath = (name: 'store-writer' | 'cpu-worker'): string =>
  join(root, name === 'store-writer' ? 'core/store/sqlite/writer.ts' : 'core/cpu/worker.ts')

/** The better-sqlite3 addon when it must be loaded from an extracted path; undefined where its own search finds it. */
export const sqliteBinding = (): string | undefined => undefined

/** Imports a package that must stay real files on disk (native code beside it). */
export const importVendored = <T>(name: 'node-llama-cpp'): Promise<T> => import(name) as Promise<T>

/** The script that this process was forked to run instead of the command line; only the single executable needs it. */
export const forkedScript = (): string | undefined => undefined

/** Runs such a script in this process. */
export const runForked = async (script: string): Promise<void> => {
  await import(script)
}
