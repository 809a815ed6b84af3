import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { isAbsolute, join, sep } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compileFunction } from 'node:vm'
import { zstdDecompressSync } from 'node:zlib'
import type Sharp from 'sharp'
import { loadAddon } from './addon.ts'
import { cacheDirectory, extractFile, extractTree, type TreeFile } from './extraction.ts'
import { Failure } from './failure.ts'

/** Put in by the build; absent from source. */
declare const __INFER_VERSION__: string
declare const __INFER_BUILD__: string
declare const __INFER_LLAMA__: string

/**
 * Where the program's own parts lie. It runs in three forms: from source, built (the bundle in dist/), and packed into
 * one executable; nothing outside this file knows which.
 */
const form = typeof __INFER_BUILD__ === 'undefined' ? 'source' : isSea() ? 'packed' : 'built'
const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')

/** Whether this is the single executable. */
export const packaged: boolean = form === 'packed'

export const version: string =
  form === 'source'
    ? (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version
    : __INFER_VERSION__

/** The version of node-llama-cpp inside, which the builds for GPUs must have as well. */
export const llamaVersion: string =
  form === 'source'
    ? (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: Record<string, string> })
        .dependencies['node-llama-cpp']!
    : __INFER_LLAMA__

/** Names what was built: 16 hexadecimal digits over the code, its dependencies and its assets; `source` when nothing was. */
export const build: string = form === 'source' ? 'source' : __INFER_BUILD__

/**
 * Bytes of a static asset by name, such as `docs/scalar.js` or `models/tiny-chat.gguf`. Not to be written to: in the
 * executable they are the executable's own pages. From source the assets are those of the last `npm run build`.
 */
export function readAsset(name: string): Uint8Array {
  if (packaged) return new Uint8Array(getRawAsset(name))
  const path = join(dist, 'assets', name)
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new Failure('internal_error', `${path} is missing. Run: npm run build`, { cause })
  }
}

/** A path on disk of the asset, for what needs one; extracted and verified first when packed. */
export const assetPath = (name: string): string =>
  packaged ? extractFile(cacheFolder(), `assets/${name}`, readAsset(name)) : join(dist, 'assets', name)

/**
 * The file and arguments that start this same program again as a child, and what its environment needs so that it
 * finds what is extracted already instead of extracting it anew below a HOME of its own.
 */
export function selfCommand(args: readonly string[]): { file: string; args: string[]; env: Record<string, string> } {
  if (packaged) return { file: process.execPath, args: [...args], env: { INFER_CACHE_DIR: cacheDirectory() } }
  const entry = form === 'built' ? join(dist, 'main.cjs') : join(root, 'cli', 'main.ts')
  return { file: process.execPath, args: [entry, ...args], env: {} }
}

/** Files and folders that such a child reads. It writes none of them once they are unpacked. */
export const selfFiles = (): string[] => [
  process.execPath,
  form === 'source' ? root : form === 'built' ? dist : cacheFolder(),
]

/** Whether the packages that a child needs lie on disk. */
export const isUnpacked = (): boolean =>
  !packaged || [...trees, `assets/${font}`].every(name => existsSync(join(cacheFolder(), name)))

/** Puts them there, and replaces what is not as it should be. Takes a second when they have to be extracted. */
export function unpack(): void {
  for (const name of trees) treeFolder(name)
  assetPath(font)
}

const trees = ['vendor', 'vendor-sharp'] as const

/** What the demo engine writes with. */
export const font = 'fonts/DejaVuSans.ttf'

const threads = {
  'store-writer': 'core/store/sqlite/writer.ts',
  'cpu-worker': 'cli/cpu-worker.ts',
}

/** Entry of a worker thread: for `new Worker(...)`, or as a string for piscina's `filename`. */
export function workerPath(name: 'cpu-worker'): string
export function workerPath(name: 'store-writer'): string | URL
export function workerPath(name: keyof typeof threads): string | URL {
  return name === 'cpu-worker' ? String(threadEntry(name)) : threadEntry(name)
}

/** What `new Worker` takes. In the executable the code of a thread is read from it and never lies on disk. */
export function threadEntry(name: keyof typeof threads): string | URL {
  if (form === 'source') return join(root, threads[name])
  if (form === 'built') return join(dist, `${name}.cjs`)
  return new URL(`data:text/javascript,${encodeURIComponent(threadStart(`${name}.cjs`))}`)
}

/** A thread knows no CommonJS file that is not on disk, so its first lines set one up from the asset. */
const threadStart = (asset: string) => `
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { getAsset } from 'node:sea'
import { compileFunction } from 'node:vm'
const module = { exports: {} }
compileFunction(getAsset('${asset}', 'utf8'), ['exports', 'require', 'module', '__filename', '__dirname'], { filename: '${asset}' })(
  module.exports, createRequire(process.execPath), module, process.execPath, dirname(process.execPath))`

let sqlite: unknown

/**
 * The better-sqlite3 addon for its option `nativeBinding`; undefined where its own search finds it. Loaded once a
 * thread, in the executable from a copy on disk that is compared with the original every time.
 */
export function sqliteBinding(): string | undefined {
  if (form === 'source') return undefined
  sqlite ??= loadAddon(assetPath('native/better_sqlite3.node'))
  // The option takes the loaded addon as well as its path; the types of better-sqlite3 know only the path.
  return sqlite as string
}

const vendored = { 'node-llama-cpp': 'node_modules/node-llama-cpp/dist/index.js' }

/**
 * Imports a package that must stay real files on disk (native code beside it), extracted and verified first when packed.
 * Its builds for GPUs are no part of the program: they are looked for below `backends`/node_modules, where npm puts them.
 */
export async function importVendored<T>(name: keyof typeof vendored, backends?: string): Promise<T> {
  if (backends !== undefined)
    registerHooks({
      resolve: (specifier, context, next) =>
        next(gpuBuild.test(specifier) ? pathToFileURL(builtAt(backends, specifier)).href : specifier, context),
    })
  return (await import(form === 'source' ? name : pathToFileURL(join(treeFolder('vendor'), vendored[name])).href)) as T
}

const gpuBuild = /^@node-llama-cpp\/linux-x64-(cuda|cuda-ext|vulkan)$/
const builtAt = (backends: string, specifier: string) => join(backends, 'node_modules', specifier, 'dist', 'index.js')

/**
 * sharp, which decodes pictures, loaded into this thread from files that are extracted and verified first when packed.
 * Takes 20 MB of memory, so it is asked for when there is a picture. Throws Failure `internal_error` with what to do.
 */
export function loadSharp(): typeof Sharp {
  const folder = form === 'source' ? root : treeFolder('vendor-sharp')
  const require = createRequire(join(folder, 'sharp'))
  const native = join(folder, `node_modules/@img/sharp-linux-${process.arch}/lib`)
  const addon = readdirSync(native).find(name => name.endsWith('.node')) ?? 'sharp.node'
  // Its library has threads of its own, which outlive the thread of ours that loaded it.
  loadAddon(join(native, addon), { forEver: true })
  return require('sharp') as typeof Sharp
}

/** Loads the audio decoders for machines without ffmpeg, `core/cpu/sound-decoders.ts`, when there is audio to decode. */
export async function loadAudioDecoders<T>(): Promise<T> {
  if (form === 'source') return (await import(pathToFileURL(join(root, 'core/cpu/sound-decoders.ts')).href)) as T
  const asset = 'sound-decoders.cjs'
  const module = { exports: {} }
  const code = Buffer.from(readAsset(asset)).toString('utf8')
  const run = compileFunction(code, ['exports', 'require', 'module'], { filename: asset })
  run(module.exports, createRequire(process.execPath), module)
  return module.exports as T
}

/** A folder of packages below which there is a node_modules. */
function treeFolder(name: (typeof trees)[number]): string {
  if (!packaged) return join(dist, name)
  const files = JSON.parse(Buffer.from(readAsset(`${name}.json`)).toString('utf8')) as TreeFile[]
  return extractTree(cacheFolder(), name, files, () => zstdDecompressSync(readAsset(`${name}.zst`)))
}

const cacheFolder = () => join(cacheDirectory(), `${version}-${build}`)

/**
 * The script that this process was forked to run instead of the command line; only the single executable needs it,
 * because there `fork(script)` starts the program itself. Nothing but a file of the vendored packages is accepted.
 */
export function forkedScript(): string | undefined {
  if (!packaged || !process.send) return undefined
  const script = process.argv[forkedAt()]
  if (script === undefined || !isAbsolute(script) || !/\.[cm]?js$/.test(script)) return undefined
  try {
    const real = realpathSync(script)
    return real.startsWith(realpathSync(join(cacheFolder(), 'vendor')) + sep) ? real : undefined
  } catch {
    return undefined
  }
}

/** Runs such a script in this process, which then looks to it as if Node had been started with it. */
export async function runForked(script: string): Promise<void> {
  process.argv.splice(1, forkedAt(), script)
  await import(pathToFileURL(script).href)
}

/** fork() puts the options of its own process before the script. */
const forkedAt = (): number =>
  process.argv.findIndex((argument, at) => at >= 2 && argument !== process.execArgv[at - 2])
