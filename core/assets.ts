import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { constants } from 'node:os'
import { isAbsolute, join, sep } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { compileFunction } from 'node:vm'
import { zstdDecompress, zstdDecompressSync } from 'node:zlib'
import type Sharp from 'sharp'
import { keeperArgument, ownParts } from './executable-parts.ts'
import { cacheDirectory, extractFile, extractTree, type FileContent, type TreeFile } from './extraction.ts'
import { Failure } from './failure.ts'

/** Defined by the build; absent when infer runs from source. */
declare const __INFER_VERSION__: string
declare const __INFER_BUILD__: string
declare const __INFER_LLAMA__: string
/** Defined by tests that run from source and start threads and children from bundles, which takes less processor time. */
declare const __INFER_ENTRIES__: typeof entries

/**
 * The form in which infer runs: from source, built (the bundle in dist/), or packed into one executable. Only this file
 * distinguishes the three.
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

/** The version of node-llama-cpp in this program. The builds for GPUs must have the same version. */
export const llamaVersion: string =
  form === 'source'
    ? (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: Record<string, string> })
        .dependencies['node-llama-cpp']!
    : __INFER_LLAMA__

/** Identifies the build: 16 hexadecimal digits over the code, its dependencies and its assets; `source` without a build. */
export const build: string = form === 'source' ? 'source' : __INFER_BUILD__

/**
 * Returns the bytes of a static asset by name, such as `docs/scalar.js` or `models/tiny-chat.gguf`. Do not write to them:
 * in the executable they may be its own memory pages. From source the assets are those of the last `npm run build`.
 */
export function readAsset(name: string): Uint8Array {
  if (packaged)
    return ownParts().has(`${name}.zst`)
      ? zstdDecompressSync(getRawAsset(`${name}.zst`))
      : new Uint8Array(getRawAsset(name))
  const path = join(dist, 'assets', name)
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new Failure('internal_error', `${path} is missing. Run: npm run build`, { cause })
  }
}

/** The same for a large text, which is decompressed outside the event loop: the 4 MB of the reference block it for 7 ms. */
export const readLargeText = async (name: string): Promise<Uint8Array> =>
  packaged ? promisify(zstdDecompress)(getRawAsset(`${name}.zst`)) : readAsset(name)

/** Returns the path of an asset on disk. In the executable the asset is extracted and verified first. */
export const assetPath = (name: string): string =>
  packaged ? extractFile(cacheFolder(), `assets/${name}`, contentOf(name)) : join(dist, 'assets', name)

const contentOf = (name: string): FileContent => ({
  size: ownParts().size(name),
  read: (into, at) => ownParts().read(name, into, at),
})

/**
 * Returns the file and arguments that start this program again as a child, and the environment variables with which the
 * child finds the extracted files. Without them it would extract the files again below its own HOME.
 */
export function selfCommand(args: readonly string[]): { file: string; args: string[]; env: Record<string, string> } {
  if (packaged) return { file: process.execPath, args: [...args], env: { INFER_CACHE_DIR: cacheDirectory() } }
  const entry = form === 'built' ? join(dist, 'main.cjs') : join(root, entries.main)
  return { file: process.execPath, args: [entry, ...args], env: {} }
}

/**
 * Returns the file, arguments and environment that start the process which keeps engines; `folder` is its argument. It gets
 * nothing else of this environment, where keys may be.
 */
export function keeperCommand(folder: string): { file: string; args: string[]; env: Record<string, string> } {
  const entry = form === 'built' ? join(dist, 'keeper.cjs') : join(root, entries.keeper)
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return {
    file: process.execPath,
    args: packaged ? [keeperArgument, folder] : [entry, folder],
    env: { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) },
  }
}

/** Files and folders that such a child reads. It writes to none of them after they are unpacked. */
export const selfFiles = (): string[] => [
  process.execPath,
  form === 'source' ? root : form === 'built' ? dist : cacheFolder(),
]

/** Whether the packages that a child needs are on disk. */
export const isUnpacked = (): boolean =>
  !packaged || [...trees, `assets/${font}`].every(name => existsSync(join(cacheFolder(), name)))

/** Writes those packages to disk and replaces files that differ. Extraction takes a second. */
export function unpack(): void {
  for (const name of trees) treeFolder(name)
  assetPath(font)
}

const trees = ['vendor', 'vendor-sharp'] as const

/** Font of the text in images of the demo engine. */
export const font = 'fonts/DejaVuSans.ttf'

/** The entries of children and threads when infer runs from source. */
const entries: Record<'main' | 'keeper' | ThreadName, string> =
  typeof __INFER_ENTRIES__ === 'undefined'
    ? {
        main: 'cli/main.ts',
        keeper: 'cli/keeper.ts',
        'store-writer': 'core/store/sqlite/writer.ts',
        'cpu-worker': 'cli/cpu-worker.ts',
      }
    : __INFER_ENTRIES__

type ThreadName = 'store-writer' | 'cpu-worker'

/** Entry of a worker thread: for `new Worker(...)`, or as a string for piscina's `filename`. */
export function workerPath(name: 'cpu-worker'): string
export function workerPath(name: 'store-writer'): string | URL
export function workerPath(name: ThreadName): string | URL {
  return name === 'cpu-worker' ? String(threadEntry(name)) : threadEntry(name)
}

/**
 * Returns the argument of `new Worker`. The executable reads the code of a thread from itself, never from disk.
 * @public bin/bundle.ts calls it in the code of piscina.
 */
export function threadEntry(name: ThreadName): string | URL {
  if (form === 'source') return join(root, entries[name])
  if (form === 'built') return join(dist, `${name}.cjs`)
  return new URL(`data:text/javascript,${encodeURIComponent(threadStart(`${name}.cjs`))}`)
}

/** A thread cannot load a CommonJS file that is not on disk, so its first lines compile the asset as one. */
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
 * Returns the better-sqlite3 addon for its option `nativeBinding`; undefined where better-sqlite3 finds it by itself.
 * Each thread loads it once. The executable loads a copy on disk, which it compares with the original every time.
 * All threads of a process load the same file: two copies of SQLite in one process drop each other's file locks, and one
 * truncates the shared memory of a database that the other has open.
 */
export function sqliteBinding(): string | undefined {
  if (form === 'source' && typeof __INFER_ENTRIES__ === 'undefined') return undefined
  sqlite ??= loadAddon(assetPath('native/better_sqlite3.node'))
  // The option accepts the loaded addon as well as its path; the types of better-sqlite3 declare only the path.
  return sqlite as string
}

const vendored = { 'node-llama-cpp': 'node_modules/node-llama-cpp/dist/index.js' }

/**
 * Imports a package that must be files on disk because it has native code; the executable extracts and verifies it first.
 * Its builds for GPUs are not part of the program: they are found below `backends`/node_modules, where npm puts them.
 */
export async function importVendored<T>(name: keyof typeof vendored, backends?: string): Promise<T> {
  if (backends !== undefined)
    registerHooks({
      resolve: (specifier, context, next) =>
        next(gpuBuild.test(specifier) ? pathToFileURL(backendEntry(backends, specifier)).href : specifier, context),
    })
  return (await import(form === 'source' ? name : pathToFileURL(join(treeFolder('vendor'), vendored[name])).href)) as T
}

const gpuBuild = /^@node-llama-cpp\/linux-x64-(cuda|cuda-ext|vulkan)$/
const backendEntry = (backends: string, specifier: string) =>
  join(backends, 'node_modules', specifier, 'dist', 'index.js')

/**
 * Loads sharp, which decodes images, into this thread; the executable extracts and verifies its files first. It takes
 * 20 MB of memory, so load it with the first image. Throws Failure `internal_error`, whose message says what to do.
 */
export function loadSharp(): typeof Sharp {
  const folder = form === 'source' ? root : treeFolder('vendor-sharp')
  const require = createRequire(join(folder, 'sharp'))
  const native = join(folder, `node_modules/@img/sharp-linux-${process.arch}/lib`)
  const addon = readdirSync(native).find(name => name.endsWith('.node')) ?? 'sharp.node'
  // Its library has its own threads, which outlive the thread that loaded it.
  loadAddon(join(native, addon), { keepLoaded: true })
  return require('sharp') as typeof Sharp
}

/** Loads the audio decoders for machines without ffmpeg: `core/cpu/audio-decoders.ts`. */
export async function loadAudioDecoders<T>(): Promise<T> {
  if (form === 'source') return (await import(pathToFileURL(join(root, 'core/cpu/audio-decoders.ts')).href)) as T
  const asset = 'audio-decoders.cjs'
  const module = { exports: {} }
  const code = Buffer.from(readAsset(asset)).toString('utf8')
  const run = compileFunction(code, ['exports', 'require', 'module'], { filename: asset })
  run(module.exports, createRequire(process.execPath), module)
  return module.exports as T
}

/** Returns a folder that contains a node_modules. */
function treeFolder(name: (typeof trees)[number]): string {
  if (!packaged) return join(dist, name)
  const files = JSON.parse(Buffer.from(readAsset(`${name}.json`)).toString('utf8')) as TreeFile[]
  return extractTree(cacheFolder(), name, files, () => readAsset(name))
}

const cacheFolder = () => join(cacheDirectory(), `${version}-${build}`)

/**
 * Returns the script that this process was forked to run instead of the command line. Only the single executable needs
 * it, because there `fork(script)` starts the program itself. Only files of the vendored packages are accepted.
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

/** Runs such a script in this process, with the arguments that Node would give it. */
export async function runForked(script: string): Promise<void> {
  process.argv.splice(1, forkedAt(), script)
  await import(pathToFileURL(script).href)
}

/** Index of the script in argv. fork() puts the options of its own process before it. */
const forkedAt = (): number =>
  process.argv.findIndex((argument, at) => at >= 2 && argument !== process.execArgv[at - 2])

/** RTLD_NODELETE of the system's loader. Node has no constant for it. */
const noDelete = 0x1000

/**
 * Loads native code from a file. With `keepLoaded` the code and its libraries stay loaded after the loading thread ends.
 * Throws Failure `internal_error`, whose message says what to do.
 */
export function loadAddon(path: string, { keepLoaded = false }: { keepLoaded?: boolean } = {}): unknown {
  const module = { exports: {} as unknown }
  try {
    process.dlopen(module, path, constants.dlopen.RTLD_LAZY | (keepLoaded ? noDelete : 0))
  } catch (cause) {
    throw new Failure('internal_error', addonRefusal(path, (cause as Error).message), { cause })
  }
  return module.exports
}

/** Returns why native code could not be loaded, as one sentence, from the error message of the system's loader. */
export function addonRefusal(path: string, reason: string): string {
  if (/version .?(GLIBC|GLIBCXX|CXXABI)_/.test(reason))
    return 'This system is too old for infer: it needs glibc 2.34 and libstdc++ of GCC 12 or newer, as in Debian 12, Ubuntu 22.04 or RHEL 10.'
  if (/failed to map segment|Operation not permitted/.test(reason))
    return `${path} is on a file system that does not allow running code (noexec); set INFER_CACHE_DIR to a directory elsewhere.`
  return `Native code could not be loaded: ${reason.trim()}.`
}
